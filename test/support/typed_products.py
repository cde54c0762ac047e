"""Products of every type of elements that ``op.mm`` multiplies on the GPU, and the kernels that it takes for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch

from cute_dialect import op
from cute_dialect.op.compiled import text_of

GPU = "NVIDIA H200"
I8, U8, I32 = torch.int8, torch.uint8, torch.int32
E4, E5 = torch.float8_e4m3fn, torch.float8_e5m2
F16, BF16, F32 = torch.float16, torch.bfloat16, torch.float32


class TypedProduct(NamedTuple):
    """``a @ b`` of (M, K) and (K, N), K contiguous; ``fused``: with ``alpha``, a bias a column and relu."""

    a: torch.dtype
    b: torch.dtype
    out: torch.dtype
    shape: tuple[int, int, int] = (264, 400, 272)
    fused: bool = False

    @property
    def name(self) -> str:
        """``int8*uint8->int32 264x400x272``"""
        a, b, out = (str(t).removeprefix("torch.") for t in (self.a, self.b, self.out))
        return f"{a}*{b}->{out} {'x'.join(map(str, self.shape))}{' fused' * self.fused}"

    def operands(self, device: str) -> tuple[torch.Tensor, torch.Tensor]:
        """Return A and B: integers, small where the result is."""
        m, n, k = self.shape
        if device == "meta":
            return torch.empty(m, k, dtype=self.a, device=device), torch.empty(n, k, dtype=self.b, device=device).t()
        generator = torch.Generator(device).manual_seed(m + n + k)
        wide = not self.a.is_floating_point and self.out in (I32, F32)

        def matrix(dtype: torch.dtype, rows: int) -> torch.Tensor:
            low, high = (-128, 128) if wide else (-3, 4)
            low, high = (0, high - low) if dtype == U8 else (low, high)
            values = torch.randint(low, high, (rows, k), generator=generator, device=device, dtype=I32)
            return values.to(F32).to(dtype)

        return matrix(self.a, m), matrix(self.b, n).t()

    def more(self, device: str) -> dict[str, Any]:
        """Return the other arguments."""
        found: dict[str, Any] = {"dtype": self.out}
        if self.fused:
            bias = torch.empty(self.shape[1], device=device)
            if device != "meta":
                bias = torch.arange(self.shape[1], device=device, dtype=F32) % 37 - 17.5
            found |= {"alpha": 0.25, "bias": bias, "activation": "relu"}
        return found

    def explained(self) -> Any:
        """Return how the H200 computes it."""
        return op.explain(op.mm, *self.operands("meta"), gpu=GPU, **self.more("meta"))


def exact(case: TypedProduct, a: torch.Tensor, b: torch.Tensor, more: dict[str, Any]) -> torch.Tensor:
    """Return what ``op.mm`` gives, in float64: its sums are exact here, and so is each step but the last."""
    x = a.double() @ b.double()
    if case.fused:
        x = (more["alpha"] * x + more["bias"].double()).clamp(min=0)
    return rounded(x, case.out)


def rounded(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return numbers as those of a type, to nearest even, saturating in 8 bits and as integers; as float64."""
    if not dtype.is_floating_point:
        info = torch.iinfo(dtype)
        return torch.round(x).clamp(info.min, info.max)
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


def texts() -> Iterator[tuple[str, str]]:
    """Names and texts of the kernels."""
    choices = {c.name: c for c in (case.explained().choice for case in CASES) if c is not None}
    for name, choice in choices.items():
        yield name, text_of(choice)
