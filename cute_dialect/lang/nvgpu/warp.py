"""``cute.nvgpu.warp``: instructions that the threads of a warp execute together."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from cute_dialect.lang.machine.atoms import CopyOp, MmaOp, element_text
from cute_dialect.lang.nvgpu.common import OperandMajorMode, check_kind, major_text, triple
from cute_dialect.lang.values.dtypes import Boolean, Float16, Float32, Float64, Int32, TFloat32

if TYPE_CHECKING:
    from cute_dialect.lang.values.dtypes import Numeric


__all__ = [
    "LdMatrix8x8x16bOp",
    "LdMatrix8x16x8bOp",
    "MmaB1Op",
    "MmaF16BF16Op",
    "MmaF64Op",
    "MmaFP8Op",
    "MmaI8Op",
    "MmaSparseOp",
    "MmaTF32Op",
    "MovMatrixOp",
    "ShuffleOp",
    "StMatrix8x8x16bOp",
]


@dataclass(frozen=True)
class _MatrixCopyOp(CopyOp):
    transpose: bool = False
    num_matrices: int = 1
    mnemonic: ClassVar[str] = ""

    def atom_text(self, dtype: Any, bits: int | None) -> str:
        order = "t" if self.transpose else "n"
        count = self.num_matrices
        return f"!cute_nvgpu.atom.{self.mnemonic}<val_type = {dtype.mlir_type}, num_matrices = {count}, {order}>"


class LdMatrix8x8x16bOp(_MatrixCopyOp):
    """``ldmatrix``: loads 1, 2 or 4 matrices of 8 rows of 16 bytes from shared memory, optionally transposed."""

    mnemonic: ClassVar[str] = "ldsm"
    chip: ClassVar[str] = "sm_75"


class LdMatrix8x16x8bOp(_MatrixCopyOp):
    """``ldmatrix`` of 8-bit elements: loads 1, 2 or 4 matrices of 8 rows of 16 elements."""

    mnemonic: ClassVar[str] = "ldsm"
    chip: ClassVar[str] = "sm_75"


class StMatrix8x8x16bOp(_MatrixCopyOp):
    """``stmatrix``: stores 1, 2 or 4 matrices of 8 rows of 16 bytes to shared memory, optionally transposed."""

    mnemonic: ClassVar[str] = "stsm"
    chip: ClassVar[str] = "sm_90"


@dataclass(frozen=True)
class MovMatrixOp(CopyOp):
    """``movmatrix``: transposes the 8x8 matrix of 16-bit elements held by a warp, registers to registers."""

    chip: ClassVar[str] = "sm_75"

    def atom_text(self, dtype: Any, bits: int | None) -> str:
        return f"!cute_nvgpu.atom.movm<val_type = {dtype.mlir_type}>"


@dataclass(frozen=True)
class ShuffleOp(CopyOp):
    """``shfl.sync`` of 32-bit registers.

    With ``transpose`` 1 or 4, each thread has two values, and lanes ``t`` and ``t ^ transpose`` exchange one each. This
    transposes blocks of 2x2. With 0, every lane receives the value of lane 0.
    """

    transpose: int = 0

    def atom_text(self, dtype: Any, bits: int | None) -> str:
        kind = f"transpose = {self.transpose}" if self.transpose else "broadcast"
        return f"!cute_nvgpu.atom.shuffle<val_type = {dtype.mlir_type}, {kind}>"


def _text(op: Any, types: tuple[Any, Any, Any], *more: str, kind: str = "mma_sync") -> str:
    """Return the text of the type of a warp MMA; ``types`` are those of D, A and B."""
    what = f"warp.{op.name}"
    d, a, b = (element_text(t, what, signed=True) for t in types)
    names = ["i1" if x == "ui1" else x for x in (d, a, b, d)]
    options = "".join(f", {m}" for m in more if m)
    return f"!cute_nvgpu.atom.{kind}<{'x'.join(map(str, triple(op.shape_mnk, what)))}, ({','.join(names)}){options}>"


@dataclass(frozen=True)
class MmaF16BF16Op(MmaOp):
    """``mma.sync`` 16x8x8 or 16x8x16 of Float16 or BFloat16 into Float32, or of Float16 into Float16.

    The shape 8x8x4 of Float16 (sm_70) uses eight threads and supports both major modes.
    """

    ab_dtype: type[Numeric]
    acc_dtype: type[Numeric]
    shape_mnk: tuple[int, int, int] = (16, 8, 16)
    a_major_mode: OperandMajorMode = field(default=OperandMajorMode.K, kw_only=True)
    b_major_mode: OperandMajorMode = field(default=OperandMajorMode.K, kw_only=True)

    def atom_text(self) -> str:
        check_kind(self.ab_dtype, ("Float16", "BFloat16"), f"warp.{self.name}: ab_dtype")
        check_kind(self.acc_dtype, ("Float16", "Float32"), f"warp.{self.name}: acc_dtype")
        types = (self.acc_dtype, self.ab_dtype, self.ab_dtype)
        majors = major_text(self.a_major_mode), major_text(self.b_major_mode)
        more = "" if majors == ("k", "k") else f"major = ({majors[0]}, {majors[1]})"
        return _text(self, types, more)


@dataclass(frozen=True)
class MmaTF32Op(MmaOp):
    """``mma.sync`` 16x8x4 or 16x8x8 of TFloat32 into Float32."""

    shape_mnk: tuple[int, int, int] = (16, 8, 8)

    def atom_text(self) -> str:
        return _text(self, (Float32, TFloat32, TFloat32))


@dataclass(frozen=True)
class MmaF64Op(MmaOp):
    """``mma.sync`` of Float64: 8x8x4; on sm_90 also 16x8x4, 16x8x8 and 16x8x16."""

    shape_mnk: tuple[int, int, int] = (8, 8, 4)

    def atom_text(self) -> str:
        return _text(self, (Float64, Float64, Float64))


@dataclass(frozen=True)
class MmaI8Op(MmaOp):
    """``mma.sync`` 8x8x16, 16x8x16 or 16x8x32 of 8-bit integers into Int32.

    Overflowing sums wrap; with ``saturate`` they saturate.
    """

    a_dtype: type[Numeric]
    b_dtype: type[Numeric]
    shape_mnk: tuple[int, int, int] = (16, 8, 32)
    saturate: bool = False

    def atom_text(self) -> str:
        for t, n in ((self.a_dtype, "a_dtype"), (self.b_dtype, "b_dtype")):
            check_kind(t, ("Int8", "Uint8", "Int4", "Uint4"), f"warp.{self.name}: {n}")
        return _text(self, (Int32, self.a_dtype, self.b_dtype), "saturate" if self.saturate else "")


_FP8 = ("Float8E4M3FN", "Float8E5M2")


@dataclass(frozen=True)
class MmaFP8Op(MmaOp):
    """``mma.sync`` 16x8x16 or 16x8x32 of 8-bit floats into Float32 or Float16 (sm_89)."""

    ab_dtype: type[Numeric]
    acc_dtype: type[Numeric]
    shape_mnk: tuple[int, int, int] = (16, 8, 32)
    b_dtype: type[Numeric] | None = field(default=None, kw_only=True)

    def atom_text(self) -> str:
        b = self.b_dtype or self.ab_dtype
        check_kind(self.ab_dtype, _FP8, f"warp.{self.name}: ab_dtype")
        check_kind(b, _FP8, f"warp.{self.name}: b_dtype")
        check_kind(self.acc_dtype, ("Float16", "Float32"), f"warp.{self.name}: acc_dtype")
        return _text(self, (self.acc_dtype, self.ab_dtype, b))


@dataclass(frozen=True)
class MmaB1Op(MmaOp):
    """``mma.sync`` of single bits, combined by xor or and; the set bits are counted into Int32."""

    bit_op: str = "xor"
    shape_mnk: tuple[int, int, int] = (16, 8, 256)

    def atom_text(self) -> str:
        return _text(self, (Int32, Boolean, Boolean), self.bit_op)


@dataclass(frozen=True)
class MmaSparseOp(MmaOp):
    """``mma.sp``: an MMA whose A is 2:4 sparse and stored compressed.

    The elements are Float16, BFloat16, TFloat32, 8-bit floats, or 8-bit or 4-bit integers.

    Args:
        b_dtype: the type of B, if it differs from that of A.
        selector: which threads provide the sparsity metadata.
        saturate: True to saturate integer sums.
    """

    ab_dtype: type[Numeric] = Float16
    acc_dtype: type[Numeric] = Float32
    shape_mnk: tuple[int, int, int] = (16, 8, 32)
    selector: int = 0
    b_dtype: type[Numeric] | None = field(default=None, kw_only=True)
    saturate: bool = field(default=False, kw_only=True)

    def atom_text(self) -> str:
        types = (self.acc_dtype, self.ab_dtype, self.b_dtype or self.ab_dtype)
        more = ("saturate" if self.saturate else "", f"selector = {self.selector}" if self.selector else "")
        return _text(self, types, *more, kind="mma_sp")


def __dir__() -> list[str]:
    return sorted(__all__)
