"""GEMMs of every element type that ``op.mm`` supports on the GPU, and the kernels selected for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import torch

from cute_dialect import op
from cute_dialect.kernels.gemm.split_tf32 import ORDERS, PartsConfig, split_text
from cute_dialect.op.execute.kernels import text_of
from cute_dialect.op.functions.scaled import scaled_kernel

GPU = "NVIDIA H200"
I8, U8, I32 = torch.int8, torch.uint8, torch.int32
E4, E5 = torch.float8_e4m3fn, torch.float8_e5m2
F16, BF16, F32, F64 = torch.float16, torch.bfloat16, torch.float32, torch.float64


class TypedProduct(NamedTuple):
    """A GEMM ``a @ b`` of (M, K) and (K, N).

    B is K-major if ``k_major``, else row-major.  ``fused`` adds ``alpha``, a per-column bias and relu.
    """

    a: torch.dtype
    b: torch.dtype
    out: torch.dtype
    shape: tuple[int, int, int] = (264, 400, 272)
    fused: bool = False
    math: str = "default"
    accumulator: str | None = None
    k_major: bool = True

    @property
    def name(self) -> str:
        """Return a name such as ``int8*uint8->int32 264x400x272``."""
        a, b, out = (str(t).removeprefix("torch.") for t in (self.a, self.b, self.out))
        how = f" {self.math}" * (self.math != "default") + f" in {self.accumulator}" * (self.accumulator is not None)
        return (
            f"{a}*{b}->{out}{how} {'x'.join(map(str, self.shape))}{' fused' * self.fused}{' rows' * (not self.k_major)}"
        )

    def operands(self, device: str) -> tuple[torch.Tensor, torch.Tensor]:
        """Return A and B with integer values, small unless the result type is wide."""
        m, n, k = self.shape
        if device == "meta":
            a, b = torch.empty(m, k, dtype=self.a, device=device), torch.empty(n, k, dtype=self.b, device=device).t()
            return (a, b) if self.k_major else (a, torch.empty(k, n, dtype=self.b, device=device))
        generator = torch.Generator(device).manual_seed(m + n + k)
        wide = not self.a.is_floating_point and self.out in (I32, F32)

        def matrix(dtype: torch.dtype, rows: int) -> torch.Tensor:
            low, high = (-128, 128) if wide else (-3, 4)
            low, high = (0, high - low) if dtype == U8 else (low, high)
            values = torch.randint(low, high, (rows, k), generator=generator, device=device, dtype=I32)
            return values.to(F32).to(dtype)

        a, b = matrix(self.a, m), matrix(self.b, n).t()
        return (a, b) if self.k_major else (a, b.contiguous())

    def more(self, device: str) -> dict[str, Any]:
        """Return the keyword arguments of the call."""
        found: dict[str, Any] = {"dtype": self.out, "math": self.math, "accumulator": self.accumulator}
        if self.fused:
            bias = torch.empty(self.shape[1], device=device)
            if device != "meta":
                bias = torch.arange(self.shape[1], device=device, dtype=F32) % 37 - 17.5
            found |= {"alpha": 0.25, "bias": bias, "activation": "relu"}
        return found

    def explained(self) -> Any:
        """Return the explanation of the call for an H200."""
        return op.explain(op.mm, *self.operands("meta"), gpu=GPU, **self.more("meta"))


def exact(case: TypedProduct, a: torch.Tensor, b: torch.Tensor, more: dict[str, Any]) -> torch.Tensor:
    """Return the expected result of ``op.mm`` in float64. Every step except the last is exact."""
    x = a.double() @ b.double()
    if case.fused:
        x = (more["alpha"] * x + more["bias"].double()).clamp(min=0)
    return rounded(x, case.out)


def rounded(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return numbers rounded to a type (nearest even; 8-bit and integer types saturate), as float64."""
    if not dtype.is_floating_point:
        info = torch.iinfo(dtype)
        return torch.round(x).clamp(info.min, info.max)
    if dtype == F64:
        return x
    limit = torch.finfo(dtype).max if dtype.itemsize == 1 else float("inf")
    return x.to(F32).clamp(-limit, limit).to(dtype).double()


INTEGERS = [(x, y) for x in (I8, U8) for y in (I8, U8)]
FLOATS = [(x, y) for x in (E4, E5) for y in (E4, E5)]
CASES = [
    *(TypedProduct(*pair, out) for pair in INTEGERS for out in (I32, I8)),
    *(TypedProduct(I8, I8, out, fused=fused) for out in (I32, I8, U8, F16, BF16, F32) for fused in (False, True)),
    *(TypedProduct(*pair, out) for pair in FLOATS for out in (BF16, E4)),
    *(TypedProduct(x, x, out, fused=fused) for x in (E4, F16, BF16) for out in (E4, E5) for fused in (False, True)),
    TypedProduct(I8, I8, I32, (4096, 4096, 1024)), TypedProduct(I8, I8, I32, (16, 4096, 4096)),
    TypedProduct(U8, I8, I32, (256, 256, 16384)), TypedProduct(I8, U8, I8, (1000, 3000, 512), fused=True),
    TypedProduct(I8, I8, I32, (65, 131, 77)), TypedProduct(E5, E4, BF16, (65, 131, 77)),
    TypedProduct(F16, F16, E4, (4096, 4096, 1024), fused=True), TypedProduct(I8, I8, F32, (1, 1, 1)),
]  # fmt: skip


MATHS = [
    *(
        TypedProduct(x, x, x, shape, fused, math, None, k_major)
        for x, math in ((F32, "exact"), (F32, "tf32"), (F32, "3xtf32"), (F64, "default"))
        for shape, fused, k_major in (
            ((264, 400, 272), False, True), ((264, 400, 272), True, False), ((2048, 1024, 1024), False, False),
            ((1027, 1025, 1023), False, False), ((65, 131, 77), True, True),
        )
    ),
    *(TypedProduct(x, x, BF16, shape, math="promote") for x in (F16, BF16, E4) for shape in ((264, 400, 272),)),
    *(TypedProduct(F16, F16, out, fused=fused, accumulator="f16") for out in (F16, F32) for fused in (False, True)),
    TypedProduct(F16, F16, F32, (65, 131, 77), accumulator="f16"), TypedProduct(I8, I8, I32, (3001, 1025, 1023)),
    TypedProduct(E4, E4, BF16, (3001, 1025, 1023)),
]  # fmt: skip
CASES += MATHS


SCALED = [
    (264, 400, 272, recipe, fast)
    for recipe, fast in (("tensor", False), ("row", False), ("row", True), ("block", False), ("block1x128", False))
] + [
    (4096, 4096, 2048, "block", False), (33, 2112, 7168, "block", False), (2048, 4096, 1024, "row", False),
    (4096, 4096, 2048, "block1x128", False), (33, 2112, 7168, "block1x128", False),
]  # fmt: skip
"""M, N, K, the scaling recipe, and whether the tensor cores accumulate all of K."""


def texts() -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield the name of each kernel, and a function that returns its text."""
    found: dict[str, Callable[[], str]] = {}
    for case in CASES:
        way = case.explained()
        if way.choice is not None:
            found[way.choice.name] = partial(text_of, way.choice)
        else:
            found[way.other.name] = partial(text_of, way.other)
        if way.by_torch:  # PyTorch computes this epilogue.
            sums = case._replace(
                fused=False, out=F32 if case.a.itemsize == 1 and case.a.is_floating_point else case.out
            )
            way = sums.explained()
            if way.choice is not None:
                found[way.choice.name] = partial(text_of, way.choice)
            else:
                found[way.other.name] = partial(text_of, way.other)
    for m, n, k, recipe, fast in SCALED:
        for exponents in (False, True)[: 1 + recipe.startswith("block")]:
            choice = scaled_kernel(m, n, k, recipe, dtype="f32", fast=fast, gpu=GPU, exponents=exponents)
            found[choice.name] = partial(text_of, choice)
    for config in (PartsConfig(order, row) for order in ORDERS for row in (True, False)):
        found[config.name] = partial(split_text, config)
    yield from found.items()
