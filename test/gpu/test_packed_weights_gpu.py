"""``op.mm_packed`` on the GPU, compiled on the GPU machine: float64, cached calls, ``torch.compile``, CUDA graphs."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from cute_dialect import op  # noqa: E402
from cute_dialect.op.functions import packed_weights  # noqa: E402
from cute_dialect.op.problems.packed_weights import format_of  # noqa: E402
from cute_dialect.op.select.mixed_input import choose_plan  # noqa: E402

TYPES: dict[str, Any] = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}


def packed(format: str, n: int, k: int) -> tuple[Any, Any]:
    """Return random packed weights, and their values in float64."""
    f, device = format_of("", format), "cuda"
    top, groups = 1 << f.bits, f.groups(k)
    scales = (torch.rand(n, groups, device=device) + 0.5).to(TYPES[f.scale])
    at = torch.arange(k, device=device) // (f.group or k)
    if f.weight == "f8E4M3FN":
        q = torch.randn(n, k, device=device).to(torch.float8_e4m3fn)
        return op.pack_weight(q, scales, group=f.group or None), q.double() * scales.double()[:, at]
    q = torch.randint(0, top, (n, k), dtype=torch.uint8, device=device)
    z = torch.randint(0, top, (n, groups), dtype=torch.uint8, device=device) if f.zeros else None
    p = op.pack_weight(q, scales, top // 2 if z is None else z, bits=f.bits, group=f.group or None)
    points: Any = top // 2 if z is None else z.double()[:, at]
    return p, (q.double() - points) * scales.double()[:, at]


def check(y: Any, x: Any, w: Any, bias: Any = 0.0) -> None:
    """Compare a result with float64. Weights may have been rounded to the type of x."""
    wide = x.double()
    exact, spread = wide @ w.T + bias, (wide.square() @ w.square().T).sqrt()
    unit = 2.0**-8 if y.dtype == torch.bfloat16 else 2.0**-11
    assert bool(((y.double() - exact).abs() <= 1.01 * unit * exact.abs() + 6 * unit * spread).all())


@pytest.fixture(params=["packed", "unpacked"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Multiply by packed weights, or unpack them for an ordinary GEMM."""
    if request.param == "unpacked":
        plain = choose_plan
        monkeypatch.setattr(packed_weights, "choose_plan", lambda *a: plain(*a)._replace(config=None))
    packed_weights._KNOWN.clear()  # pyright: ignore[reportPrivateUsage]
    return str(request.param)


@pytest.mark.parametrize(
    ("format", "element"),
    [
        ("ui4-g128-bf16", "bf16"), ("ui4-g64-f16-z", "f16"), ("ui4-g32-f32", "bf16"), ("ui4-row-f32-z", "f16"),
        ("i8-g32-bf16-z", "bf16"), ("i8-row-f32", "f16"), ("f8E4M3FN-row-f32", "bf16"), ("f8E4M3FN-g128-f16", "f16"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("n,k", [(1000, 1288), (300, 4096)])
def test_formats(format: str, element: str, n: int, k: int) -> None:
    torch.manual_seed(k)
    p, w = packed(format, n, k)
    for m in (1, 13, 33, 64, 65, 130, 300, 1030):
        x, y = torch.randn(m, k, device="cuda").to(TYPES[element]), torch.full((m, n), torch.nan, device="cuda")
        y = y.to(TYPES[element])
        op.mm_packed(x, p, out=y)
        check(y, x, w)


@pytest.mark.parametrize("m", [3, 200])
def test_cached_calls(way: str, m: int) -> None:
    """Calls are replayed, also those that unpack the weights."""
    p, w = packed("ui4-g32-bf16", 200, 520)
    bias, kept = torch.randn(200, device="cuda").bfloat16(), list[Any]()
    for _ in range(5):
        x = torch.randn(m, 520, device="cuda").bfloat16()
        kept += [x, op.mm_packed(x, p, bias)]
        check(kept[-1], x, w, bias.double())
    assert len(packed_weights._KNOWN) == 1  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("m", [3, 200])
def test_compile(way: str, m: int, backend: str) -> None:
    if backend == "inductor":
        pytest.importorskip("triton", reason="NOT RUN: triton is not installed")
    torch.compiler.reset()
    p, w = packed("ui4-g64-bf16", 200, 520)
    x, bias = torch.randn(m, 520, device="cuda").bfloat16().requires_grad_(), torch.randn(200, device="cuda").bfloat16()
    f = torch.compile(lambda x: op.mm_packed(x, p, bias) * 2, fullgraph=True, backend=backend)
    for _ in range(2):
        check(f(x) / 2, x, w, bias.double())
    g = torch.randn(m, 200, device="cuda").bfloat16()
    f(x).backward(g)
    check(x.grad / 2, g, w.T)


@pytest.mark.parametrize("m", [3, 200])
def test_cuda_graph(way: str, m: int) -> None:
    p, w = packed("i8-g128-f32", 200, 520)
    x = torch.randn(m, 520, device="cuda").bfloat16()
    for _ in range(3):
        op.mm_packed(x, p)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = op.mm_packed(x, p)
    for _ in range(2):
        x.copy_(torch.randn(m, 520, device="cuda"))
        y.fill_(torch.nan)
        graph.replay()
        check(y, x, w)
