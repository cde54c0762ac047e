"""``cute-bench op --groups types``: products of integers, of 8-bit floats, of results of 8 bits."""

# torch is not there where the types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportPrivateUsage=false
# pyright: reportPrivateImportUsage=false

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from cute_dialect import op
from cute_dialect.op.compiled import text_of
from cute_dialect.op.dtypes import OUTPUTS
from cute_dialect.tools.bench_add import BenchError
from cute_dialect.tools.bench_op import Trial

__all__ = ["CASES", "Typed"]

_LONG = {short: long for long, short in OUTPUTS.items()}
_LIMITS = {"f32": 2.0**-18, "f16": 2.0**-10, "bf16": 2.0**-7, "f8E4M3FN": 2.0**-3, "f8E5M2": 2.0**-2}
"""Largest error beside float64, of the element and of the result's root mean square: about two units in the last
place; of sums of 8-bit floats, of which tensor cores keep 14 bits, 2^-7 at least.
"""


class Typed(NamedTuple):
    """``a @ b`` of (M, K) and (K, N), contiguous along K; types by their short names."""

    m: int
    n: int
    k: int
    a: str
    b: str
    output: str

    @property
    def operation(self) -> str:
        """``mm i8 i8 -> i32``"""
        return f"mm {self.a} {self.b} -> {self.output}"

    @property
    def name(self) -> str:
        """The row's name."""
        return f"{self.operation} {self.m}x{self.n}x{self.k}"

    def _operands(self, device: str) -> tuple[Any, Any]:
        import torch

        def matrix(element: str, rows: int) -> torch.Tensor:
            dtype = getattr(torch, _LONG[element])
            if device == "meta":
                return torch.empty(rows, self.k, device=device, dtype=dtype)
            if dtype.is_floating_point:
                return torch.randn(rows, self.k, device=device).to(dtype)
            info = torch.iinfo(dtype)
            return torch.randint(info.min, info.max + 1, (rows, self.k), device=device, dtype=dtype)

        return matrix(self.a, self.m), matrix(self.b, self.n).t()

    def _dtype(self) -> Any:
        import torch

        return getattr(torch, _LONG[self.output])

    def kernels(self) -> Mapping[str, Callable[[], str]]:
        """Return the kernel that is chosen."""
        choice = op.explain(op.mm, *self._operands("meta"), dtype=self._dtype(), gpu="NVIDIA H200").choice
        assert choice is not None
        return {choice.name: lambda: text_of(choice)}

    def trial(self) -> Trial:
        """Make normal data, or integers of the whole range."""
        import torch

        torch.manual_seed(0)
        a, b = self._operands("cuda")
        dtype = self._dtype()

        def ours() -> torch.Tensor:
            return op.mm(a, b, dtype=dtype)

        def check() -> float:
            rows = slice(0, self.m, max(1, self.m // 64))
            wanted, found = a[rows].double() @ b.double(), ours()[rows].double()
            if not dtype.is_floating_point:
                info = torch.iinfo(dtype)
                if not torch.equal(found, wanted.clamp(info.min, info.max)):
                    raise BenchError(f"{self.name}: sums of integers are not exact")
                return 0.0
            limit = max(_LIMITS[self.output], 2.0**-7 if a.dtype.itemsize == 1 else 0.0)
            if dtype.itemsize == 1:
                wanted = wanted.clamp(torch.finfo(dtype).min, torch.finfo(dtype).max)
            error = (found - wanted).abs() / (limit * (wanted.abs() + wanted.square().mean().sqrt()))
            if not float(error.max()) <= 1:
                raise BenchError(f"{self.name}: an error of {float(error.max()):.2f} of the limit")
            return float(error.max())

        def peer() -> torch.Tensor:
            if not a.dtype.is_floating_point:
                return torch._int_mm(a, b)
            if a.dtype.itemsize == 1:
                one = torch.ones((), device="cuda")
                return torch._scaled_mm(a, b, one, one, out_dtype=dtype, use_fast_accum=True)
            return torch.mm(a, b).to(dtype)

        sizes = [x.numel() * x.element_size() for x in (a, b)]
        traffic = sum(sizes) + self.m * self.n * dtype.itemsize
        return Trial(check, ours, {"torch": peer}, traffic, 2.0 * self.m * self.n * self.k, "TFLOP/s")


CASES = (
    *(Typed(s, s, s, "i8", "i8", "i32") for s in (4096, 8192)),
    Typed(4096, 4096, 4096, "i8", "i8", "bf16"),
    Typed(128, 8192, 8192, "i8", "i8", "i32"),
    *(Typed(s, s, s, "f8E5M2", "f8E4M3FN", "bf16") for s in (4096, 8192)),
    *(Typed(s, s, s, "f8E4M3FN", "f8E4M3FN", "f8E4M3FN") for s in (4096, 8192)),
    Typed(4096, 4096, 4096, "f16", "f16", "f8E4M3FN"),
)
