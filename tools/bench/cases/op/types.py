"""``cute-bench op --groups types``: GEMMs of integers, 8-bit floats, 8-bit results, f32 and f64."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

from cute_dialect import op
from cute_dialect.kernels.gemm.split_tf32 import split_text
from cute_dialect.op.execute.kernels import any_text, text_of
from cute_dialect.tools.bench.checks import check_exact, check_limit
from cute_dialect.tools.bench.peers import dtype, normal, operator
from cute_dialect.tools.bench.runner import Text, Trial

__all__ = ["CASES", "Typed"]

_ROUNDED = {"f64": 2.0**-53, "f32": 2.0**-24, "f16": 2.0**-11, "bf16": 2.0**-8, "f8E4M3FN": 2.0**-4, "f8E5M2": 2.0**-3}
"""Maximum relative error of rounding to a type."""


def _error_of_sums(element: str, math: str, k: int) -> float:
    """Return the error of sums of ``k`` products, relative to their RMS.

    Tensor cores truncate sums of 8-bit floats to 13 bits, once per 32 products, with an error of half a unit on
    average.  They round f32 operands to 11 bits, with an error of a quarter of a unit on average.  These errors add up
    like a random walk; the maximum of some million sums is six times as large.  Sums in f32 and f64 are off by at most
    a unit per product.
    """
    if element.startswith("f8"):
        return k / 32 * 2.0**-14
    if math == "tf32":
        return 6 * 2.0**-11 / 3**0.5
    return k * 2.0 ** (-53 if element == "f64" else -24)


class Typed(NamedTuple):
    """``a @ b`` of (M, K) and (K, N) with short type names.

    ``majors`` are the contiguous modes of A and B: by default ``kn`` for f32 and f64, else ``kk``.
    """

    m: int
    n: int
    k: int
    a: str
    b: str
    output: str
    math: str = "default"
    majors: str = ""

    @property
    def operation(self) -> str:
        """The operation, for example ``mm i8 i8 -> i32``."""
        more = f" {self.math}" * (self.math != "default") + f" {self.majors}" * (self.majors != "")
        return f"mm {self.a} {self.b} -> {self.output}{more}"

    @property
    def lying(self) -> str:
        """The contiguous modes of A and B."""
        return self.majors or ("kn" if self.a in ("f32", "f64") else "kk")

    @property
    def name(self) -> str:
        return f"{self.operation} {self.m}x{self.n}x{self.k}"

    def _operands(self, device: str) -> tuple[Any, Any]:
        import torch

        def matrix(element: str, rows: int) -> torch.Tensor:
            kind = dtype(element)
            if device == "meta":
                return torch.empty(rows, self.k, device=device, dtype=kind)
            if kind.is_floating_point:
                return normal(element, rows, self.k, device=device)
            info = torch.iinfo(kind)
            return torch.randint(info.min, info.max + 1, (rows, self.k), device=device, dtype=kind)

        def rows(x: torch.Tensor) -> torch.Tensor:
            return torch.empty(x.shape, device=device, dtype=x.dtype) if device == "meta" else x.contiguous()

        a, b = matrix(self.a, self.m), matrix(self.b, self.n).t()
        return rows(a.t()).t() if self.lying[0] == "m" else a, rows(b) if self.lying[1] == "n" else b

    def kernels(self) -> Mapping[str, Text]:
        """Return the kernels of the call by name, with functions that generate their texts."""
        found = op.explain(op.mm, *self._operands("meta"), dtype=dtype(self.output), math=self.math, gpu="NVIDIA H200")
        choice, other = found.choice, found.other
        if choice is None:
            assert other is not None
            return {other.name: partial(any_text, other)}
        texts: dict[str, Text] = {choice.name: partial(text_of, choice)}
        return texts | {c.name: partial(split_text, c) for c in found.parts}

    def trial(self) -> Trial:
        """Create normally distributed values, or integers of the full range."""
        import torch

        torch.manual_seed(0)
        torch.backends.cuda.matmul.allow_tf32 = self.math == "tf32"  # This setting applies to torch's matmul.
        a, b = self._operands("cuda")
        kind = dtype(self.output)

        def ours() -> torch.Tensor:
            return op.mm(a, b, dtype=kind, math=self.math)

        def check() -> float:
            rows = slice(0, self.m, max(1, self.m // 64))
            wanted, found = a[rows].double() @ b.double(), ours()[rows].double()
            if not kind.is_floating_point:
                info = torch.iinfo(kind)
                check_exact(self.name, found, wanted.clamp(info.min, info.max))
                return 0.0
            of_sums = _error_of_sums(self.a, self.math, self.k)
            if kind.itemsize == 1:
                wanted = wanted.clamp(torch.finfo(kind).min, torch.finfo(kind).max)
            near, scale = wanted.abs(), wanted.square().mean().sqrt()
            return check_limit(self.name, found, wanted, 1.01 * _ROUNDED[self.output] * near + of_sums * (near + scale))

        # Shapes that torch does not support are padded with zeros.
        short = [-size % 16 if a.dtype.itemsize == 1 else 0 for size in (self.m, self.n, self.k)]
        pad = torch.nn.functional.pad
        aligned = (a, b)
        if a.dtype.itemsize == 1 and self.lying != "kk":  # Torch needs 8-bit operands contiguous along K.
            aligned = (a.contiguous(), b.t().contiguous().t())
        if any(short):
            aligned = (pad(a.view(torch.uint8), (0, short[2], 0, short[0])).view(a.dtype),
                       pad(b.t().view(torch.uint8), (0, short[2], 0, short[1])).view(b.dtype).t())  # fmt: skip

        def peer() -> torch.Tensor:
            if not a.dtype.is_floating_point:
                return operator("_int_mm")(*aligned)
            if a.dtype.itemsize == 1:
                one = torch.ones((), device="cuda")
                return operator("_scaled_mm")(*aligned, one, one, out_dtype=kind, use_fast_accum=True)
            return torch.mm(a, b) if a.dtype == kind else torch.mm(a, b).to(kind)

        sizes = [x.numel() * x.element_size() for x in (a, b)]
        traffic = sum(sizes) + self.m * self.n * kind.itemsize
        return Trial(check, ours, {"torch": peer}, traffic, 2.0 * self.m * self.n * self.k, "TFLOP/s")


CASES = (
    *(Typed(s, s, s, "i8", "i8", "i32") for s in (4096, 8192)),
    Typed(4096, 4096, 4096, "i8", "i8", "bf16"),
    Typed(128, 8192, 8192, "i8", "i8", "i32"),
    *(Typed(s, s, s, "f8E5M2", "f8E4M3FN", "bf16") for s in (4096, 8192)),
    *(Typed(s, s, s, "f8E4M3FN", "f8E4M3FN", "f8E4M3FN") for s in (4096, 8192)),
    Typed(4096, 4096, 4096, "f16", "f16", "f8E4M3FN"),
    *(Typed(s, s, s, "f32", "f32", "f32", math) for math in ("exact", "3xtf32", "tf32") for s in (4096, 8192)),
    *(Typed(s, s, s, "f64", "f64", "f64") for s in (4096, 8192)),
    *(Typed(s, s, s, "f32", "f32", "f32", "tf32", majors) for majors in ("mk", "mn") for s in (4096, 8192)),
    *(Typed(m, n, 8192, "f32", "f32", "f32", "tf32", "kn") for m, n in ((1024, 1024), (128, 8192), (8192, 256))),
    *(
        Typed(s, s, s, x, x, y, "default", majors)
        for x, y in (("i8", "i32"), ("f8E4M3FN", "bf16"))
        for majors in ("kn", "mk")
        for s in (4096, 8192)
    ),
    Typed(2048, 50257, 2048, "f16", "f16", "f16"),
    *(
        Typed(s, s, s, x, x, y, m)
        for s in (4095, 513)
        for x, y, m in (
            ("i8", "i32", "default"),
            ("f8E4M3FN", "bf16", "default"),
            ("f32", "f32", "tf32"),
            ("f32", "f32", "exact"),
            ("f64", "f64", "default"),
        )
    ),
)
