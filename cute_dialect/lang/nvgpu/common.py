"""Descriptors of what one thread does: plain copies, multiply-adds, bulk copies."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

from cute_dialect.front.atoms import CopyOp, MmaOp, element_text
from cute_dialect.front.errors import KernelTypeError

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
    """Which caches an asynchronous copy goes through."""

    ALWAYS = "always"
    """L1 and L2."""
    GLOBAL = "global"
    """L2 only; copies of 128 bits."""


class OperandMajorMode(StrEnum):
    """Which index of an operand is contiguous in memory."""

    K = "k"
    MN = "mn"


@dataclass(frozen=True)
class CopyUniversalOp(CopyOp):
    """Plain loads and stores of one thread; without a width as wide as both sides prove."""

    def atom_text(self, dtype: Any, bits: int | None) -> str:
        width = f", {bits} b" if bits else ""
        return f"!cute_nvgpu.atom.universal_copy<{dtype.mlir_type}{width}>"


@dataclass(frozen=True)
class BulkCopyOp(CopyOp):
    """Runs of bytes copied asynchronously by one thread: global to shared memory (counted by an mbarrier) and back."""

    chip: ClassVar[str] = "sm_90"

    def atom_text(self, dtype: Any, bits: int | None) -> str:
        return f"!cute_nvgpu.atom.bulk_copy<{dtype.mlir_type}{f', {bits} b' if bits else ''}>"


@dataclass(frozen=True)
class BulkReduceOp(CopyOp):
    """Runs of shared memory combined with global memory, atomically: add, min, max, inc, dec, and, or, xor.

    Unsigned integers are combined as such.
    """

    kind: str = "add"
    chip: ClassVar[str] = "sm_90"

    def atom_text(self, dtype: Any, bits: int | None) -> str:
        element = element_text(dtype, self.name, signed=True)
        return f"!cute_nvgpu.atom.bulk_reduce<{element}, {self.kind}{f', {bits} b' if bits else ''}>"


@dataclass(frozen=True)
class MmaUniversalOp(MmaOp):
    """One multiply-add of one thread, all of one type."""

    abacc_dtype: Any

    def atom_text(self) -> str:
        t = element_text(self.abacc_dtype, self.name)
        return f"!cute_nvgpu.atom.universal_fma<1x1x1, ({t},{t},{t},{t})>"


@dataclass(frozen=True)
class DotProductOp(MmaOp):
    """``dp4a``, ``dp2a`` of one thread: four products of 8-bit integers, or two of 16-bit ones and 8-bit ones.

    They are added to an Int32; where A and B are unsigned to an Uint32.
    """

    a_dtype: Any
    b_dtype: Any

    def atom_text(self) -> str:
        check_kind(self.a_dtype, ("Int8", "Uint8", "Int16", "Uint16"), f"{self.name}, a_dtype")
        check_kind(self.b_dtype, ("Int8", "Uint8"), f"{self.name}, b_dtype")
        a, b = (element_text(t, self.name, signed=True) for t in (self.a_dtype, self.b_dtype))
        d = "i32" if self.a_dtype.signed or self.b_dtype.signed else "ui32"
        return f"!cute_nvgpu.atom.dot_product<1x1x{32 // self.a_dtype.width}, ({d},{a},{b},{d})>"


def major_text(major: Any) -> str:
    """Return how an atom's type writes a major mode; raises F250 for what is none."""
    found = str(getattr(major, "value", major)).lower()
    if found not in ("k", "mn"):
        raise KernelTypeError("F250", f"expected OperandMajorMode.K or OperandMajorMode.MN, got {major!r}")
    return found


def triple(shape: Any, what: str) -> tuple[int, int, int]:
    """Return a shape (M, N, K); raises F250 for anything else."""
    if isinstance(shape, tuple | list) and len(shape) == 3 and all(isinstance(n, int) for n in shape):
        m, n, k = shape
        return m, n, k
    raise KernelTypeError("F250", f"{what}: expected a shape (M, N, K) of integers, got {shape!r}")


def check_kind(dtype: Any, allowed: tuple[str, ...], what: str) -> None:
    """Raise F250 unless a type is one of those named."""
    name = getattr(dtype, "__name__", repr(dtype))
    if name not in allowed:
        raise KernelTypeError("F250", f"{what}: expected one of {', '.join(allowed)}, got {name}")
