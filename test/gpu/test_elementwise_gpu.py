"""Elementwise functions on the GPU compared with float64: all lengths, alignments and layouts, repeats, CUDA graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from elementwise_calls import CALLS, Call  # noqa: E402

from cute_dialect import op  # noqa: E402

TYPES = {
    "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "f8E4M3FN": torch.float8_e4m3fn,
    "i8": torch.int8, "f64": torch.float64,
}  # fmt: skip
LIMITS = {
    torch.float64: 1e-14, torch.float32: 4e-6, torch.float16: 1.1e-3, torch.bfloat16: 9e-3,
    torch.float8_e4m3fn: 0.07, torch.int8: 0.0,
}  # fmt: skip


@pytest.fixture(autouse=True)
def _prebuilt(prebuilt: Callable[[str], None]) -> None:
    prebuilt("elementwise")


def tensors(call: Call, m: int, n: int, gap: int, offset: int) -> list[Any]:
    def make(element: str, shape: tuple[int, ...]) -> torch.Tensor:
        if element == "i8":
            return torch.randint(-60, 60, shape, device="cuda", dtype=torch.int8)
        if len(shape) < 2 or 1 in shape:
            return torch.randn(shape, device="cuda").to(TYPES[element])
        flat = torch.randn(shape[0] * (shape[1] + gap) + offset, device="cuda").to(TYPES[element])
        return flat.as_strided(shape, (shape[1] + gap, 1), offset)

    return call.arrays(m, n, make)


def close(got: torch.Tensor, wanted: torch.Tensor) -> None:
    limit = LIMITS[got.dtype] * (wanted.abs() + 1) + (0.0 if got.dtype == torch.float64 else 1e-6)
    share = float(((got.double() - wanted).abs() / limit).max())
    assert share <= 1, share


@pytest.mark.parametrize("call", CALLS, ids=lambda c: c.name)
def test_beside_float64(call: Call) -> None:
    for m, n, gap, offset in ((1, 1, 0, 0), (64, 4096, 0, 0), (37, 1001, 0, 0), (64, 256, 16, 0), (19, 333, 3, 1)):
        given = tensors(call, m, n, gap, offset)
        dtype = None if call.dtype is None else TYPES[call.dtype]
        exact = call.made.function(*[x.double() if isinstance(x, torch.Tensor) else x for x in given])
        exact = exact if isinstance(exact, tuple) else (exact,)
        for _ in range(2):  # first call, cached call
            found = call.made(*given, dtype=dtype)
            found = found if isinstance(found, tuple) else (found,)
            for f, e in zip(found, exact):
                close(f, e.clamp(-128, 127) if call.dtype == "i8" else e)


def test_in_place_on_streams_and_from_a_graph() -> None:
    x, y = (torch.randn(511, 1024, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    wanted = x.double() + y.double()
    graph, side = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    op.add(x, y)
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        first = op.add(x, y)
    with torch.cuda.graph(graph):
        second = op.add(x, y)
    graph.replay()
    torch.cuda.synchronize()
    close(first, wanted)
    close(second, wanted)
    assert op.add(x, y, out=x) is x
    close(x, wanted)


def test_gradients() -> None:
    call = next(c for c in CALLS if c.name == "swiglu f32")
    x, y = (torch.randn(64, 256, device="cuda", requires_grad=True) for _ in range(2))
    dy = torch.randn(64, 256, device="cuda")
    doubles = [t.detach().double().requires_grad_() for t in (x, y)]
    wanted = torch.autograd.grad(call.made.function(*doubles), doubles, dy.double())
    for got, want in zip(torch.autograd.grad(call.made(x, y), (x, y), dy), wanted):
        close(got, want)
