"""``cute.nvgpu.warp``: instructions that the threads of a warp execute together."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from cute_dialect.arch.targets import BLACKWELL
from cute_dialect.lang.machine.atoms import CopyOp, MmaOp, element_text
from cute_dialect.lang.nvgpu.common import OperandMajorMode, check_kind, major_text, triple
from cute_dialect.lang.tracing.errors import KernelTypeError
from cute_dialect.lang.values.dtypes import (
    Boolean,
    Float4E2M1FN,
    Float8E4M3FN,
    Float8E5M2,
    Float8E8M0FNU,
    Float16,
    Float32,
    Float64,
    Int32,
    TFloat32,
)

if TYPE_CHECKING:
    from cute_dialect.lang.values.dtypes import Numeric


__all__ = [
    "MXF8F6F4_SUPPORTED_PAIRS",
    "LdMatrix8x8x16bOp",
    "LdMatrix8x16x8bOp",
    "LdMatrix16x16x8bOp",
    "MmaB1Op",
    "MmaF8F6F4Op",
    "MmaF16BF16Op",
    "MmaF64Op",
    "MmaFP8Op",
    "MmaI8Op",
    "MmaMXF4NVF4Op",
    "MmaMXF4Op",
    "MmaMXF8F6F4Op",
    "MmaMXF8Op",
    "MmaSparseOp",
    "MmaTF32Op",
    "MovMatrixOp",
    "ShuffleOp",
    "StMatrix8x8x16bOp",
    "StMatrix16x8x8bOp",
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


@dataclass(frozen=True)
class LdMatrix8x16x8bOp(_MatrixCopyOp):
    """``ldmatrix`` of 8-bit elements: loads 1, 2 or 4 matrices of 8 rows of 16 elements.

    With ``unpack_bits`` 4 or 6, each row holds 16 numbers of so many bits, followed by padding to 16 bytes. Each number
    becomes an element (sm_100a, sm_120a and their families).
    """

    unpack_bits: int | None = None
    mnemonic: ClassVar[str] = "ldsm"

    @property
    def chip(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The first chip with the instruction, or a rule."""
        return BLACKWELL if self.unpack_bits else "sm_75"

    def atom_text(self, dtype: Any, bits: int | None) -> str:
        return _from_packed(super().atom_text(dtype, bits), self.unpack_bits, self.name)


@dataclass(frozen=True)
class LdMatrix16x16x8bOp(CopyOp):
    """``ldmatrix`` of 8-bit elements: loads 1 or 2 matrices of 16 rows of 16 elements, transposed.

    ``unpack_bits`` 4 or 6 is that of :class:`LdMatrix8x16x8bOp`. Needs sm_100a, sm_120a or their families.
    """

    num_matrices: int = 1
    unpack_bits: int | None = None
    chip: ClassVar[str] = BLACKWELL

    def atom_text(self, dtype: Any, bits: int | None) -> str:
        text = f"!cute_nvgpu.atom.ldsm<val_type = {dtype.mlir_type}, num_matrices = {self.num_matrices}, t>"
        return _from_packed(text, self.unpack_bits, self.name)


def _from_packed(text: str, unpack_bits: int | None, name: str) -> str:
    """Add the packed format in memory to the text of an atom.  Raises F251 for another width than 4 or 6."""
    if unpack_bits is None:
        return text
    if unpack_bits not in (4, 6):
        raise KernelTypeError("F251", f"warp.{name}: unpack_bits is {unpack_bits!r}; use 4, 6 or None")
    return f"{text[:-1]}, from = {'b4x16_p64' if unpack_bits == 4 else 'b6x16_p32'}>"


@dataclass(frozen=True)
class StMatrix16x8x8bOp(CopyOp):
    """``stmatrix`` of 8-bit elements: stores 1, 2 or 4 matrices of 16 rows of 8 elements, transposed.

    Each matrix has 8 rows of 16 bytes in shared memory. Needs sm_100a, sm_120a or their families.
    """

    num_matrices: int = 1
    chip: ClassVar[str] = BLACKWELL

    def atom_text(self, dtype: Any, bits: int | None) -> str:
        return f"!cute_nvgpu.atom.stsm<val_type = {dtype.mlir_type}, num_matrices = {self.num_matrices}, t>"


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


_NARROW = ("Float8E4M3FN", "Float8E5M2", "Float6E3M2FN", "Float6E2M3FN", "Float4E2M1FN")


@dataclass(frozen=True)
class MmaF8F6F4Op(MmaOp):
    """``mma.sync`` 16x8x32 of floats of 8, 6 and 4 bits into Float32 or Float16 (sm_120a, sm_120f).

    The fragments of operands of 6 and 4 bits are Int8: an element of 6 bits is in the low bits, one of 4 bits in bits 5
    to 2.
    """

    a_dtype: type[Numeric]
    b_dtype: type[Numeric]
    acc_dtype: type[Numeric] = Float32
    shape_mnk: tuple[int, int, int] = (16, 8, 32)

    def atom_text(self) -> str:
        check_kind(self.a_dtype, _NARROW, f"warp.{self.name}: a_dtype")
        check_kind(self.b_dtype, _NARROW, f"warp.{self.name}: b_dtype")
        check_kind(self.acc_dtype, ("Float16", "Float32"), f"warp.{self.name}: acc_dtype")
        return _text(self, (self.acc_dtype, self.a_dtype, self.b_dtype), "kind = f8f6f4")


def _scaled(
    op: MmaMXF8F6F4Op | MmaMXF8Op | MmaMXF4Op | MmaMXF4NVF4Op,
    types: tuple[type[Numeric], type[Numeric]],
    known: tuple[str, ...],
    factors: str,
    kind: str,
) -> str:
    a, b = types
    for name, dtype in (("a_dtype", a), ("b_dtype", b)):
        check_kind(dtype, known, f"warp.{op.name}: {name}")
    check_kind(op.acc_dtype, ("Float32",), f"warp.{op.name}: acc_dtype")
    check_kind(op.sf_dtype, (factors,), f"warp.{op.name}: sf_dtype")
    shape = type(op).shape_mnk
    if triple(op.shape_mnk, f"warp.{op.name}") != shape:
        raise KernelTypeError("F251", f"warp.{op.name}: shape_mnk is {op.shape_mnk}; use {shape} or omit it")
    return _text(op, (op.acc_dtype, a, b), f"kind = {kind}")


MXF8F6F4_SUPPORTED_PAIRS = frozenset(
    pair for f8 in (Float8E4M3FN, Float8E5M2) for pair in ((Float4E2M1FN, f8), (f8, Float4E2M1FN))
)
"""Pairs of element types of A and B, one of 4 bits and one of 8, that GEMMs of CuTe DSL mix with MmaMXF8F6F4Op.

The MMA multiplies any two of the types of :class:`MmaF8F6F4Op`.
"""


@dataclass(frozen=True)
class MmaMXF8F6F4Op(MmaOp):
    """``mma.sync`` 16x8x32 of floats of 8, 6 and 4 bits with a Float8E8M0FNU factor per 32 elements (sm_120a, sm_120f).

    Fragments are those of :class:`MmaF8F6F4Op`.
    """

    a_dtype: type[Numeric]
    b_dtype: type[Numeric]
    acc_dtype: type[Numeric] = Float32
    sf_dtype: type[Numeric] = Float8E8M0FNU
    shape_mnk: tuple[int, int, int] = field(default=(16, 8, 32), kw_only=True)

    def atom_text(self) -> str:
        return _scaled(self, (self.a_dtype, self.b_dtype), _NARROW, "Float8E8M0FNU", "mxf8f6f4")


@dataclass(frozen=True)
class MmaMXF8Op(MmaOp):
    """``mma.sync`` 16x8x32 of 8-bit floats of one type with a Float8E8M0FNU factor per 32 elements."""

    ab_dtype: type[Numeric]
    acc_dtype: type[Numeric] = Float32
    sf_dtype: type[Numeric] = Float8E8M0FNU
    shape_mnk: tuple[int, int, int] = field(default=(16, 8, 32), kw_only=True)

    def atom_text(self) -> str:
        return _scaled(self, (self.ab_dtype, self.ab_dtype), _FP8, "Float8E8M0FNU", "mxf8f6f4")


@dataclass(frozen=True)
class MmaMXF4Op(MmaOp):
    """``mma.sync`` 16x8x64 of Float4E2M1FN with a Float8E8M0FNU factor per 32 elements (sm_120a, sm_120f)."""

    ab_dtype: type[Numeric] = Float4E2M1FN
    acc_dtype: type[Numeric] = Float32
    sf_dtype: type[Numeric] = Float8E8M0FNU
    shape_mnk: tuple[int, int, int] = field(default=(16, 8, 64), kw_only=True)

    def atom_text(self) -> str:
        return _scaled(self, (self.ab_dtype, self.ab_dtype), ("Float4E2M1FN",), "Float8E8M0FNU", "mxf4")


@dataclass(frozen=True)
class MmaMXF4NVF4Op(MmaOp):
    """``mma.sync`` 16x8x64 of Float4E2M1FN with a Float8E4M3FN factor per 16 elements, without sign."""

    ab_dtype: type[Numeric] = Float4E2M1FN
    acc_dtype: type[Numeric] = Float32
    sf_dtype: type[Numeric] = Float8E4M3FN
    shape_mnk: tuple[int, int, int] = field(default=(16, 8, 64), kw_only=True)

    def atom_text(self) -> str:
        return _scaled(self, (self.ab_dtype, self.ab_dtype), ("Float4E2M1FN",), "Float8E4M3FN", "mxf4nvf4")


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

    The elements are Float16, BFloat16, TFloat32, 8-bit floats, or 8-bit or 4-bit integers. On sm_120a, ``kind``
    selects floats of 8, 6 and 4 bits.

    Args:
        b_dtype: the type of B, if it differs from that of A.
        selector: which threads provide the sparsity metadata.
        saturate: True to saturate integer sums.
        kind: f8f6f4, or with scale factors mxf8f6f4, mxf4 or mxf4nvf4.
    """

    ab_dtype: type[Numeric] = Float16
    acc_dtype: type[Numeric] = Float32
    shape_mnk: tuple[int, int, int] = (16, 8, 32)
    selector: int = 0
    b_dtype: type[Numeric] | None = field(default=None, kw_only=True)
    saturate: bool = field(default=False, kw_only=True)
    kind: str = field(default="", kw_only=True)

    def atom_text(self) -> str:
        types = (self.acc_dtype, self.ab_dtype, self.b_dtype or self.ab_dtype)
        more = ("saturate" if self.saturate else "", f"selector = {self.selector}" if self.selector else "")
        more += (f"kind = {self.kind}" if self.kind else "",)
        return _text(self, types, *more, kind="mma_sp")


def __dir__() -> list[str]:
    return sorted(__all__)
