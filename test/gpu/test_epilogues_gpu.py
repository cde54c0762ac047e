"""Function epilogues on the GPU: exact on small integers, close to the function on normally distributed data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from fused_products import CASES, Case  # noqa: E402

from cute_dialect import op  # noqa: E402
from cute_dialect.op.epilogue import ACTIVATIONS, FakeTensor, trace  # noqa: E402

TYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "bool": torch.bool}


@pytest.fixture(autouse=True)
def _prebuilt(prebuilt: Callable[[str], None]) -> None:
    prebuilt("fused")


def integers(x: FakeTensor) -> torch.Tensor:
    shape = tuple(x.shape)
    if x.element == "bool":
        return torch.randint(0, 2, shape, device="cuda").bool()
    if x.element == "i64":
        return torch.randint(0, 2**40, shape, device="cuda")
    found = torch.randint(-2, 3, shape, device="cuda").to(TYPES[x.element])
    return found.t().contiguous().t() if x.layout == "column" else found


def data(case: Case) -> tuple[torch.Tensor, torch.Tensor, dict[str, Any]]:
    torch.manual_seed(0)
    m, n, k = case.shape
    batch = (case.batch,) if case.batch else ()
    # Most elements are 0, so that sums and products of the others are exact in 16 bits.
    a, b = (
        torch.randint(-1, 2, (*batch, *s), device="cuda").to(TYPES[case.element])
        * (torch.rand((*batch, *s), device="cuda") < 0.05)
        for s in ((m, k), (k, n))
    )
    return a, b, {p: integers(x) if isinstance(x, FakeTensor) else x for p, x in case.arguments.items()}


def wide(args: dict[str, Any]) -> dict[str, Any]:
    kept = (torch.bool, torch.int64)
    return {p: x.double() if torch.is_tensor(x) and x.dtype not in kept else x for p, x in args.items()}


def near(found: torch.Tensor, want: torch.Tensor) -> bool:
    eps = torch.finfo(found.dtype).eps
    want = want.expand(found.shape)
    return bool(((found.double() - want).abs() <= 2 * eps * want.abs() + 1e-6).all())


@pytest.mark.parametrize("name", [n for n in CASES if n != "activations"])
def test_the_function_itself(name: str) -> None:
    case = CASES[name]
    a, b, args = data(case)
    multiply: Any = op.bmm if case.batch else op.mm
    want = case.function(a.double() @ b.double(), **wide(args))
    shape = (*((case.batch,) if case.batch else ()), *case.shape[:2])
    traced = trace(case.function, {**args, "accum": FakeTensor("f32", shape)})
    for epilogue in (case.function, traced, traced):  # The last epilogue repeats a cached call.
        found = multiply(a, b, epilogue=epilogue, args=args)
        for x, y in zip(*(list(r.values()) if isinstance(r, dict) else r if isinstance(r, tuple) else (r,)
                          for r in (found, want))):  # fmt: skip
            assert (
                near(x, y)
                if any(part in name for part in ("swiglu", "batch", "whole"))
                else torch.equal(x.double(), y.expand(x.shape))
            )


def test_reductions_a_hundred_times_the_same_bits() -> None:
    case = CASES["reductions"]
    m, n, k = case.shape
    torch.manual_seed(0)
    a, b = torch.randn(m, k, device="cuda").half(), torch.randn(k, n, device="cuda").half()
    args = {"bias": torch.randn(n, device="cuda")}
    traced = trace(case.function, {**args, "accum": FakeTensor("f32", (m, n))})
    first = op.mm(a, b, epilogue=traced, args=args)
    want = case.function(a.double() @ b.double(), **wide(args))
    assert all(near(first[x], want[x]) or torch.allclose(first[x].double(), want[x], 1e-3, 0.5) for x in want)
    for _ in range(100):
        found = op.mm(a, b, epilogue=traced, args=args)
        assert all(torch.equal(found[x], first[x]) for x in first)


def test_beta_of_zero_on_the_device() -> None:
    case = CASES["numbers on the device"]
    a, b, args = data(case)
    args |= {"beta": torch.zeros(1, device="cuda"), "alpha": torch.full((1,), 2.0, device="cuda")}
    want = case.function(a.double() @ b.double(), **wide(args))
    args["C"] = torch.full_like(args["C"], float("nan"))
    for x, y in zip(op.mm(a, b, epilogue=case.function, args=args), want):
        assert torch.equal(x.double(), y)


def test_activations() -> None:
    """Errors stay below two units in the last place of f16, and NaN inputs give NaN outputs."""
    case = CASES["activations"]
    m, n, k = case.shape
    torch.manual_seed(0)
    a = torch.zeros(m, k, device="cuda").half()
    a[:, 0] = 1.0
    b = torch.zeros(k, n, device="cuda").half()
    b[0] = torch.linspace(-100.0, 100.0, n, device="cuda").half()
    b[0, :3] = torch.tensor([float("inf"), -float("inf"), float("nan")])
    b[1:, :3] = 0.0
    a[:, 1:] = 0.0
    found = op.mm(a, b, epilogue=case.function, args=case.arguments)
    wanted = case.function(b[0].double(), **case.arguments)
    assert set(found) == set(wanted) == {"D", *ACTIVATIONS}
    for name, want in wanted.items():
        for row in (found[name][0].double(), found[name][-1].double()):
            limit = 2 * torch.finfo(torch.float16).eps * want.abs() + 2.0**-23
            assert bool(((row - want).abs() <= limit)[3:].all()), name
            assert bool(row[2].isnan()) and bool(want[2].isnan()), name
            for i in (0, 1):
                assert float(row[i]) == float(want[i]), name


def test_a_graph_that_is_captured() -> None:
    case = CASES["example 4096x4096x512"]
    a, b, args = data(case)
    traced = trace(case.function, {**args, "accum": FakeTensor("f32", case.shape[:2])})
    d, f = torch.empty(case.shape[:2], device="cuda").half(), torch.empty(case.shape[:2], device="cuda").half()
    args |= {"D": d, "F": f}
    op.mm(a, b, epilogue=traced, args=args)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        op.mm(a, b, epilogue=traced, args=args)
    a.neg_()
    d.fill_(float("nan"))
    graph.replay()
    want = case.function(a.double() @ b.double(), **wide({p: x for p, x in args.items() if p not in ("D", "F")}))
    assert torch.equal(d.double(), want[0]) and torch.equal(f.double(), want[1])
