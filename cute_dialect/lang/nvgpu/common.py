"""Descriptors of single-thread instructions: plain copies, multiply-adds, bulk copies."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar

from cute_dialect.lang.machine.atoms import CopyOp, MmaOp, element_text
from cute_dialect.lang.tracing.errors import KernelTypeError

if TYPE_CHECKING:
    from cute_dialect.lang.values.dtypes import Numeric


__all__ = [
    "BulkCopyOp",
    "BulkReduceOp",
    "CopyUniversalOp",
    "DotProductOp",
    "LoadCacheMode",
    "MmaUniversalOp",
    "OperandMajorMode",
]


class LoadCacheMode(StrEnum):
    """Caches used by an asynchronous copy."""

    ALWAYS = "always"
    """L1 and L2."""
    GLOBAL = "global"
    """L2 only; requires 128-bit copies."""


class OperandMajorMode(StrEnum):
    """The contiguous mode of an MMA operand."""

    K = "k"
    MN = "mn"


@dataclass(frozen=True)
class CopyUniversalOp(CopyOp):
    """Plain loads and stores of one thread.

    Without ``num_bits_per_copy`` the width is the largest that the alignment of both sides allows.
    """

    def atom_text(self, dtype: Any, bits: int | None) -> str:
        width = f", {bits} b" if bits else ""
        return f"!cute_nvgpu.atom.universal_copy<{dtype.mlir_type}{width}>"


@dataclass(frozen=True)
class BulkCopyOp(CopyOp):
    """Asynchronous copies of contiguous bytes by one thread.

    Copies from global to shared memory complete on an mbarrier, and copies to global memory in a bulk group.
    """

    chip: ClassVar[str] = "sm_90"

    def atom_text(self, dtype: Any, bits: int | None) -> str:
        return f"!cute_nvgpu.atom.bulk_copy<{dtype.mlir_type}{f', {bits} b' if bits else ''}>"


@dataclass(frozen=True)
class BulkReduceOp(CopyOp):
    """Atomic reductions of contiguous bytes of shared memory into global memory.

    ``kind`` is add, min, max, inc, dec, and, or, or xor. Unsigned integers are combined as unsigned.
    """

    kind: str = "add"
    chip: ClassVar[str] = "sm_90"

    def atom_text(self, dtype: Any, bits: int | None) -> str:
        element = element_text(dtype, self.name, signed=True)
        return f"!cute_nvgpu.atom.bulk_reduce<{element}, {self.kind}{f', {bits} b' if bits else ''}>"


@dataclass(frozen=True)
class MmaUniversalOp(MmaOp):
    """One multiply-add of one thread, with all operands of one type."""

    abacc_dtype: type[Numeric]

    def atom_text(self) -> str:
        t = element_text(self.abacc_dtype, self.name)
        return f"!cute_nvgpu.atom.universal_fma<1x1x1, ({t},{t},{t},{t})>"


@dataclass(frozen=True)
class DotProductOp(MmaOp):
    """``dp4a`` and ``dp2a`` of one thread: dot products of four 8-bit pairs, or of two 16-bit and two 8-bit integers.

    The accumulator is Int32, or Uint32 if A and B are unsigned.
    """

    a_dtype: type[Numeric]
    b_dtype: type[Numeric]

    def atom_text(self) -> str:
        check_kind(self.a_dtype, ("Int8", "Uint8", "Int16", "Uint16"), f"{self.name}: a_dtype")
        check_kind(self.b_dtype, ("Int8", "Uint8"), f"{self.name}: b_dtype")
        a, b = (element_text(t, self.name, signed=True) for t in (self.a_dtype, self.b_dtype))
        d = "i32" if self.a_dtype.signed or self.b_dtype.signed else "ui32"
        return f"!cute_nvgpu.atom.dot_product<1x1x{32 // self.a_dtype.width}, ({d},{a},{b},{d})>"


def major_text(major: Any) -> str:
    """Return the text of a major mode in the type of an atom. Raises F250 if ``major`` is not one."""
    found = str(getattr(major, "value", major)).lower()
    if found not in ("k", "mn"):
        raise KernelTypeError(
            "F250", f"the major mode must be OperandMajorMode.K or OperandMajorMode.MN, got {major!r}"
        )
    return found


def triple(shape: Any, what: str) -> tuple[int, int, int]:
    """Return a shape (M, N, K) as three integers. Raises F250 for anything else."""
    if isinstance(shape, tuple | list) and len(shape) == 3 and all(isinstance(n, int) for n in shape):
        m, n, k = shape
        return m, n, k
    raise KernelTypeError("F250", f"{what}: the shape must be three integers (M, N, K), got {shape!r}")


def check_kind(dtype: Any, allowed: tuple[str, ...], what: str) -> None:
    """Raise F250 if ``dtype`` is not one of the allowed types."""
    name = getattr(dtype, "__name__", repr(dtype))
    if name not in allowed:
        raise KernelTypeError("F250", f"{what} must be one of {', '.join(allowed)}, got {name}")


def __dir__() -> list[str]:
    return sorted(__all__)
