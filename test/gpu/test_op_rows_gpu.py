"""Row functions on the GPU compared with float64: all alignments, repeats, two streams, CUDA graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
from row_calls import CALLS, GRADIENTS, SUMS, TRANSPOSES  # noqa: E402

from cute_dialect import op  # noqa: E402
from cute_dialect.op.functions import row_gradients as row_grads  # noqa: E402
from cute_dialect.op.functions import rows  # noqa: E402

TYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
LIMITS = {"f32": 4e-6, "f16": 1.1e-3, "bf16": 9e-3}
EPS = 1e-5


@pytest.fixture(autouse=True)
def _prebuilt(prebuilt: Callable[[str], None]) -> None:
    prebuilt("op_rows")


def close(element: str, got: torch.Tensor, wanted: torch.Tensor, more: float = 0.0) -> None:
    scale = wanted.square().mean().sqrt() + more
    limit = LIMITS[element] * (wanted.abs() + scale) + 1e-7
    share = float(((got.double() - wanted).abs() / limit).max())
    assert share <= 1, share


def matrix(element: str, count: int, n: int, gap: int = 0, offset: int = 0) -> torch.Tensor:
    flat = torch.randn(count * (n + gap) + offset, device="cuda").to(TYPES[element])
    return flat.as_strided((count, n), (n + gap, 1), offset)


def reference(call: str, x: torch.Tensor, given: dict[str, torch.Tensor]) -> torch.Tensor:
    n = x.shape[1]
    if call == "softmax" or call == "log_softmax":
        return getattr(torch, call)(x, -1)
    if call == "rms_norm":
        return F.rms_norm(x, (n,), given.get("weight"), EPS)
    return F.layer_norm(x, (n,), given.get("weight"), given.get("bias"), EPS)


MAPS = [c for c in CALLS if c[0] not in SUMS]


@pytest.mark.parametrize("call, element, n, takes", MAPS, ids=lambda x: str(x))
def test_row_to_row(call: str, element: str, n: int, takes: str) -> None:
    """Rows are contiguous, padded or misaligned. Poisoned outputs are filled; memory around them stays intact."""
    torch.manual_seed(n)
    for count, gap, offset in ((1, 0, 0), (133, 0, 0), (7, 8, 0), (133, 3, 1)):
        x = matrix(element, count, n, gap, offset)
        given: dict[str, Any] = {}
        if "w" in takes:
            given["weight"] = matrix(element, 1, n)[0]
        if "b" in takes:
            given["bias"] = matrix(element, 1, n, 0, 1)[0]
        if "norm" in call:
            given["eps"] = EPS
        place = torch.full((count + 2, n + gap), 7.0, device="cuda", dtype=x.dtype)
        out = place[1:-1, :n]
        exact = {k: v.double() for k, v in given.items() if k != "eps"}
        if "r" in takes:
            residual = matrix(element, count, n)
            found, total = getattr(op, call)(x, residual=residual, out=out, **given)
            assert torch.equal(total, x + residual)
            wanted = reference(call, total.double(), exact)
        else:
            found = getattr(op, call)(x, out=out, **given)
            wanted = reference(call, x.double(), exact)
        assert found is out
        close(element, out, wanted)
        out.fill_(7.0)
        assert bool((place == 7).all())


@pytest.mark.parametrize("call, element, n", [c[:3] for c in CALLS if c[0] in SUMS], ids=lambda x: str(x))
def test_row_to_number(call: str, element: str, n: int) -> None:
    torch.manual_seed(n)
    for count, gap, offset in ((1, 0, 0), (133, 0, 0), (7, 8, 0), (133, 3, 1)):
        x = matrix(element, count, n, gap, offset)
        exact = x.double()
        if call == "cross_entropy":
            target = torch.randint(0, n, (count,), device="cuda")
            target[count // 2 :: 5] = -100 if count > 1 else 0
            for reduction in ("none", "mean", "sum"):
                found = op.cross_entropy(x, target, reduction=reduction)
                kind = "f32" if reduction == "none" else element
                close(kind, found, F.cross_entropy(exact, target, reduction=reduction))
            continue
        found = getattr(op, call)(x)
        wanted = {"sum": exact.sum, "mean": exact.mean, "max": exact.amax, "logsumexp": exact.logsumexp}[call](-1)
        close(element, found, wanted, n**0.5 if call == "sum" else 0.0)


@pytest.mark.parametrize("call, element, n, takes", GRADIENTS, ids=lambda x: str(x))
def test_gradients(call: str, element: str, n: int, takes: str) -> None:
    """Gradients for more rows than thread groups, for one row, and for padded, misaligned rows."""
    torch.manual_seed(n)
    for count, gap, offset in ((1, 0, 0), (1500, 0, 0), (7, 8, 0), (133, 3, 1)):
        x, dy = matrix(element, count, n, gap, offset), matrix(element, count, n)
        if call == "cross_entropy":
            gradient_of_entropy(element, x)
        elif call in ("max", "logsumexp"):
            exact, g = x.double().requires_grad_(), dy[:, 0].contiguous()
            y = exact.amax(-1) if call == "max" else exact.logsumexp(-1)
            close(element, row_grads.number_backward(call, g, x), torch.autograd.grad(y, exact, g.double())[0])
        elif "softmax" in call:
            y = getattr(torch, call)(x, -1)
            d, s = dy.double(), y.double()
            total = (s * d if call == "softmax" else d).sum(-1, keepdim=True)
            wanted = s * (d - total) if call == "softmax" else d - s.exp() * total
            close(element, getattr(row_grads, f"{call}_backward")(dy, y), wanted)
        else:
            gradients_of_norm(call, element, takes, x, dy)


ONE_ALIGNED = [("bf16", 787, 512), ("f32", 512, 787), ("f16", 1600, 1211)]


@pytest.mark.parametrize("element, m, n", [*TRANSPOSES, *ONE_ALIGNED], ids=str)
def test_transposes(element: str, m: int, n: int) -> None:
    for x in (matrix(element, m, n), matrix(element, m, n, 3, 1)):
        assert torch.equal(op.transpose(x), x.t())


def gradient_of_entropy(element: str, x: torch.Tensor) -> None:
    count, n = x.shape
    target, exact = torch.randint(0, n, (count,), device="cuda"), x.double().requires_grad_()
    for reduction in ("none", "mean", "sum"):
        _, lse, total = rows.cross_entropy_with_lse(x, target, reduction=reduction)
        g = torch.randn(count, device="cuda") if total is None else torch.randn((), device="cuda").to(x.dtype)
        loss = F.cross_entropy(exact, target, reduction=reduction)
        (wanted,) = torch.autograd.grad(loss, exact, g.double())
        found = row_grads.cross_entropy_backward(g, x, target, lse, total if reduction == "mean" else None)
        close(element, found, wanted)


def gradients_of_norm(call: str, element: str, takes: str, x: torch.Tensor, dy: torch.Tensor) -> None:
    """Gradients of the norms match float64, and a second call gives the same bits."""
    w, b = (matrix(element, 1, x.shape[1])[0] for _ in range(2))
    exact = [t.double().requires_grad_() for t, kind in ((x, "x"), (w, "w"), (b, "b")) if kind in f"x{takes}"]
    given = dict(zip(("weight", "bias"), exact[1:]))
    wanted = torch.autograd.grad(reference(call, exact[0], given), exact, dy.double())

    def ours() -> list[torch.Tensor]:
        weight = w if "w" in takes else None
        if call == "rms_norm":
            found = row_grads.rms_norm_backward(dy, x, weight, EPS)
        else:
            found = row_grads.layer_norm_backward(dy, x, weight, "b" in takes, EPS)
        return [t for t in found if t is not None]

    first = ours()
    for got, of in zip(first, wanted, strict=True):
        close(element, got, of, 1e-3)
    for _ in range(5):
        assert all(torch.equal(a, b) for a, b in zip(ours(), first))


def test_a_step_of_training() -> None:
    """The row functions work with autograd and ``torch.compile``."""
    x = torch.randn(64, 4096, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    w = torch.randn(4096, device="cuda", dtype=torch.bfloat16, requires_grad=True)

    def f(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return op.softmax(op.rms_norm(x, w, EPS)).float().square().sum()

    exact = [t.detach().double().requires_grad_() for t in (x, w)]
    wanted = torch.autograd.grad(torch.softmax(F.rms_norm(exact[0], (4096,), exact[1], EPS), -1).square().sum(), exact)
    for g in (f, torch.compile(f, fullgraph=True, backend="aot_eager")):
        for got, of in zip(torch.autograd.grad(g(x, w), (x, w)), wanted):
            assert float((got.double() - of).norm() / of.norm()) < 0.05


def test_calls_that_were_made_before() -> None:
    """Every specialization is replayed on other memory, on two streams and in a CUDA graph."""
    torch.manual_seed(0)
    xs = [torch.randn(3, 40, n, device="cuda", dtype=torch.bfloat16) for n in (768, 1001, 4096)]
    other = torch.cuda.Stream()
    for turn in range(4):
        for x in xs:
            for i in range(3):
                with torch.cuda.stream(other if (turn + i) % 2 else torch.cuda.current_stream()):
                    torch.cuda.synchronize()
                    close("bf16", op.softmax(x[i]), torch.softmax(x[i].double(), -1))
                    y, s = op.rms_norm(x[i], residual=x[(i + 1) % 3], eps=EPS)
                    total = x[i] + x[(i + 1) % 3]
                    assert torch.equal(s, total)
                    close("bf16", y, F.rms_norm(total.double(), total.shape[-1:], None, EPS))
    assert len(rows._KNOWN["softmax"]) >= 2
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        results = [op.softmax(x[0]) for x in xs]
    for _ in range(3):
        for y in results:
            y.fill_(float("nan"))
        graph.replay()
        torch.cuda.synchronize()
        for x, y in zip(xs, results):
            close("bf16", y, torch.softmax(x[0].double(), -1))


def test_a_hundred_times_the_same_bits() -> None:
    x = torch.randn(200, 50257, device="cuda", dtype=torch.bfloat16)
    first = op.softmax(x)
    for _ in range(100):
        assert torch.equal(op.softmax(x), first)


def test_as_torch_of_extremes() -> None:
    x = torch.randn(6, 1001, device="cuda", dtype=torch.bfloat16)
    x[0, :500], x[1], x[2, 17], x[3, 5] = -torch.inf, -torch.inf, torch.nan, torch.inf
    for ours, theirs in ((op.softmax, torch.softmax), (op.log_softmax, torch.log_softmax), (op.max, torch.amax),
                         (op.logsumexp, torch.logsumexp)):  # fmt: skip
        torch.testing.assert_close(ours(x), theirs(x, -1), equal_nan=True, atol=2e-2, rtol=8e-3)
