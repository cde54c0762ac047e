"""Calls of ``op`` to replay in the interpreter and on a GPU, with their expected results."""

# pyright: basic

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

import torch

from cute_dialect import op
from cute_dialect.op.epilogue import FakeTensor, trace
from cute_dialect.op.execute import kernel_cache


def near(found: Any, wanted: Any, tolerance: float) -> None:
    found, wanted = (x if isinstance(x, tuple) else (x,) for x in (found, wanted))
    assert len(found) == len(wanted)
    for x, y in zip(found, wanted):
        assert x.shape == y.shape and float((x.double() - y).abs().max()) <= tolerance * float(y.abs().max())


def normal(*shape: int, dtype: Any = torch.float16) -> Any:
    return torch.randn(shape).to(dtype)


def small(*shape: int) -> Any:
    return torch.randint(-5, 6, shape, dtype=torch.int8)


def image(*shape: int) -> Any:
    return normal(*shape).to(memory_format=torch.channels_last)


def squares(accum: Any) -> Any:
    return accum, op.epilogue.sum(accum * accum, -1)


def row_sums(accum: Any, x: Any, s: float) -> Any:
    D = op.epilogue.relu(accum * s + x)
    return {"D": D, "most": op.epilogue.max(D, -2), "total": op.epilogue.sum(accum)}


SQUARES = trace(squares, {"accum": FakeTensor("f32", (64, 64))})
SEVERAL = trace(row_sums, {"accum": FakeTensor("f32", (64, 64)), "x": FakeTensor("f32", (64,)), "s": 0.5})
E4M3, E5M2, F32 = torch.float8_e4m3fn, torch.float8_e5m2, torch.float32


def product(a: Any, b: Any) -> Any:
    return a.double() @ b.double()


def with_squares(a: Any, b: Any) -> Any:
    return product(a, b), (product(a, b) ** 2).sum(-1, keepdim=True)


def with_several(a: Any, b: Any, x: Any) -> Any:
    d = (product(a, b) * 0.5 + x.double()).relu()
    return d, d.amax(-2, keepdim=True), product(a, b).sum().reshape(1, 1)


def scaled(a: Any, b: Any, x: Any, y: Any, *bias: Any) -> Any:
    k = a.shape[1]
    x, y = x.double(), y.double()
    if x.dim() == 2 and x.shape[1] > 1:
        x, y = x.repeat_interleave(128, 1)[:, :k], y.repeat_interleave(128, 1)[:, :k].t()
    return (a.double() * x) @ (b.double() * y) + sum(t.double() for t in bias)


def exponents(*shape: int) -> Any:
    return torch.randint(125, 130, shape, dtype=torch.uint8).view(torch.float8_e8m0fnu)


def of_scales(recipe: str, kind: Any = None) -> Callable[[], tuple[Any, ...]]:
    shapes = {"tensor": ((), (1, 1)), "row": ((33, 1), (1, 48)), "block": ((33, 2), (1, 2)), "line": ((33, 2), (48, 2))}
    make = kind or (lambda *shape: torch.rand(shape) + 0.5)
    return lambda: (normal(33, 208, dtype=E4M3), normal(48, 208, dtype=E4M3).t(), *(make(*s) for s in shapes[recipe]))


def convolved(x: Any, f: Any, **how: Any) -> Any:
    return torch.nn.functional.conv2d(x.double(), f.double(), **how)


CALLS: dict[str, tuple[Callable[..., Any], Callable[[], tuple[Any, ...]], Callable[..., Any], float]] = {
    "mm": (op.mm, lambda: (normal(40, 72), normal(72, 56)), product, 2e-3),
    "mm of any rows": (op.mm, lambda: (normal(37, 41), normal(41, 35)), product, 2e-3),
    "mm transposed": (
        lambda a, b: op.mm(a, b, torch.empty(56, 40, dtype=torch.float16).t()),
        lambda: (normal(40, 72), normal(72, 56)), product, 2e-3,
    ),
    "bmm": (op.bmm, lambda: (normal(3, 40, 72), normal(3, 72, 56)), product, 2e-3),
    "3xtf32": (
        lambda a, b: op.mm(a, b, math="3xtf32"), lambda: (normal(33, 37, dtype=F32), normal(37, 35, dtype=F32)),
        product, 1e-5,
    ),
    "fast_bf16": (
        lambda a, b: op.mm(a, b, math="fast_bf16"), lambda: (normal(33, 40, dtype=F32), normal(40, 35, dtype=F32)),
        product, 2e-2,
    ),
    "squares": (
        lambda a, b: op.mm(a, b, epilogue=SQUARES), lambda: (normal(64, 72), normal(72, 64)), with_squares, 2e-3,
    ),
    "several": (
        lambda a, b, x: tuple(op.mm(a, b, epilogue=SEVERAL, args={"x": x, "s": 0.5}).values()),
        lambda: (normal(64, 72), normal(72, 64), normal(64, dtype=F32)), with_several, 2e-3,
    ),
    "scaled tensor": (op.scaled_mm, of_scales("tensor"), scaled, 1e-2),
    "scaled row": (op.scaled_mm, of_scales("row"), scaled, 1e-2),
    "scaled row of exponents": (op.scaled_mm, of_scales("row", exponents), scaled, 1e-2),
    "scaled row fast": (lambda *x: op.scaled_mm(*x, fast=True), of_scales("row"), scaled, 1e-2),
    "scaled row with bias": (
        lambda a, b, x, y, bias: op.scaled_mm(a, b, x, y, bias=bias, dtype="f32"),
        lambda: (*of_scales("row")(), normal(48, dtype=F32)), scaled, 1e-3,
    ),
    "scaled block": (op.scaled_mm, of_scales("block"), scaled, 1e-2),
    "scaled block of exponents": (op.scaled_mm, of_scales("block", exponents), scaled, 1e-2),
    "scaled block1x128": (op.scaled_mm, of_scales("line"), scaled, 1e-2),
    "depthwise": (
        lambda x, f: op.conv2d(x, f, None, 1, 1, 1, 64), lambda: (image(2, 64, 7, 9), image(64, 1, 3, 3)),
        lambda x, f: convolved(x, f, padding=1, groups=64), 2e-3,
    ),
    "first layer": (
        lambda x, f: op.conv2d(x, f, None, 2, 3), lambda: (image(2, 3, 15, 17), image(16, 3, 7, 7)),
        lambda x, f: convolved(x, f, padding=3, stride=2), 2e-3,
    ),
    "weights of few channels": (
        lambda x, g: op.conv2d_weight(x, (16, 3, 7, 7), g, 2, 3), lambda: (image(2, 3, 16, 16), image(2, 16, 8, 8)),
        lambda x, g: torch.nn.grad.conv2d_weight(x.double(), (16, 3, 7, 7), g.double(), 2, 3), 3e-3,
    ),
    "by unfolding": (
        lambda x, g: op.conv2d_weight(x, (16, 12, 3, 3), g, 1, 1, math="3xtf32"),
        lambda: (image(2, 12, 6, 6).float(), image(2, 16, 6, 6).float()),
        lambda x, g: torch.nn.grad.conv2d_weight(x.double(), (16, 12, 3, 3), g.double(), 1, 1), 1e-5,
    ),
    "conv2d": (
        lambda x, f, b: op.conv2d(x, f, b, 1, 1, activation="relu"),
        lambda: (image(2, 64, 8, 8), image(32, 64, 3, 3), normal(32)),
        lambda x, f, b: convolved(x, f, padding=1, bias=b.double()).relu(), 2e-3,
    ),
    "conv2d of images that are copied": (
        lambda x, f: op.conv2d(x, f, None, 1, 1), lambda: (normal(2, 64, 8, 8), normal(32, 64, 3, 3)),
        lambda x, f: convolved(x, f, padding=1), 2e-3,
    ),
}  # fmt: skip


class _Nothing:
    """A module and kernel that does nothing."""

    alignment = 16

    def kernel(self, name: str) -> _Nothing:
        return self

    def __call__(self, *given: Any, **_: Any) -> None:
        return None

    def by_address(self, *given: Any) -> None:
        return None


def texts() -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each kernel of :data:`CALLS`."""
    from launched_here import Seen, here

    found: dict[str, str] = {}

    def noted(name: str, text: Callable[[], str], *_: Any, **__: Any) -> _Nothing:
        found.setdefault(name, text())
        return _Nothing()

    with here(Seen(works=False)), patch.object(kernel_cache, "load_or_compile", noted):
        for call, make, _, _ in CALLS.values():
            call(*make())
    yield from found.items()
