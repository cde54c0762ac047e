"""``cute.nvgpu.tcgen05``: MMAs with accumulators in tensor memory, and copies of tensor memory (sm_100, sm_110).

One thread issues the MMAs, and an mbarrier signals their completion::

    mma = cute.make_tiled_mma(tcgen05.MmaF16BF16Op(cute.Float16, cute.Float32, (128, 128, 16)))
    …
    cute.gemm(mma, acc, tCrA, tCrB, acc)
    mma.set(tcgen05.Field.ACCUMULATE, True)
    tcgen05.commit(done)

The names are CuTe DSL's. With ``CtaGroup.TWO`` a pair of blocks of the cluster executes an MMA: M and N are those of
both, each block loads its half of A and B and holds its half of the accumulator, and a thread of the even block issues.
``get_slice(v)`` returns the partitions of block ``v`` of the pair.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from cute_dialect.arch.targets import LOAD_REDUCTIONS, TCGEN05
from cute_dialect.lang.machine.atoms import CopyOp, MmaOp, element_text
from cute_dialect.lang.machine.tensor_memory import CtaGroup as CtaGroup
from cute_dialect.lang.machine.tensor_memory import commit as commit
from cute_dialect.lang.machine.tensor_memory import fence_after_thread_sync as fence_after_thread_sync
from cute_dialect.lang.machine.tensor_memory import fence_before_thread_sync as fence_before_thread_sync
from cute_dialect.lang.machine.tensor_memory import get_s2t_smem_desc_tensor as get_s2t_smem_desc_tensor
from cute_dialect.lang.machine.tensor_memory import group_number
from cute_dialect.lang.machine.tensor_memory import make_s2t_copy as make_s2t_copy
from cute_dialect.lang.machine.tensor_memory import make_tmem_copy as make_tmem_copy
from cute_dialect.lang.machine.tensor_memory import tile_to_mma_shape as tile_to_mma_shape
from cute_dialect.lang.machine.tensor_memory import tmem_columns as find_tmem_tensor_col_offset
from cute_dialect.lang.machine.wgmma import SmemLayoutAtomKind as SmemLayoutAtomKind
from cute_dialect.lang.machine.wgmma import make_smem_layout_atom as make_smem_layout_atom
from cute_dialect.lang.nvgpu.common import OperandMajorMode as OperandMajorMode
from cute_dialect.lang.nvgpu.common import check_kind, major_text, triple
from cute_dialect.lang.tracing.errors import KernelTypeError
from cute_dialect.lang.values.dtypes import Float4E2M1FN, Float8E4M3FN, Float32, Int32, TFloat32, Uint32

if TYPE_CHECKING:
    from cute_dialect.lang.values.dtypes import Numeric

    _ScaledMma: TypeAlias = "MmaMXF8F6F4Op | MmaMXF8Op | MmaMXF4Op | MmaMXF4NVF4Op"
    _Mma: TypeAlias = "MmaF16BF16Op | MmaTF32Op | MmaF8F6F4Op | MmaI8Op | MmaSparseOp | MmaWsOp | _ScaledMma"


__all__ = [
    "Cp2x64x128b0123Op",
    "Cp2x64x128b0213Op",
    "Cp4x32x128bOp",
    "Cp4x256bOp",
    "Cp128x128bOp",
    "Cp128x256bOp",
    "CtaGroup",
    "Field",
    "Ld16x32bx2Op",
    "Ld16x64bOp",
    "Ld16x128bOp",
    "Ld16x256bOp",
    "Ld32x32bOp",
    "LdRed16x32bx2Op",
    "LdRed32x32bOp",
    "MmaF8F6F4Op",
    "MmaF16BF16Op",
    "MmaI8Op",
    "MmaMXF4NVF4Op",
    "MmaMXF4Op",
    "MmaMXF8F6F4Op",
    "MmaMXF8Op",
    "MmaSparseOp",
    "MmaTF32Op",
    "MmaWsOp",
    "OperandMajorMode",
    "OperandSource",
    "Pack",
    "Repetition",
    "SmemLayoutAtomKind",
    "St16x32bx2Op",
    "St16x64bOp",
    "St16x128bOp",
    "St16x256bOp",
    "St32x32bOp",
    "TmemLoadRedOp",
    "Unpack",
    "commit",
    "fence_after_thread_sync",
    "fence_before_thread_sync",
    "find_tmem_tensor_col_offset",
    "get_s2t_smem_desc_tensor",
    "make_s2t_copy",
    "make_smem_layout_atom",
    "make_tmem_copy",
    "tile_to_mma_shape",
]


class OperandSource(StrEnum):
    """The memory that an MMA reads A from: shared memory or tensor memory."""

    SMEM = "smem"
    TMEM = "tmem"


class Field(StrEnum):
    """Fields of an MMA that can be set at run time.

    SFA and SFB are pointers to the scale factors of the next MMA in tensor memory.
    """

    ACCUMULATE = "accumulate"
    SFA = "sfa"
    SFB = "sfb"


# ---------------------------------------------------------------------------------------------------------------- MMAs


def _text(
    op: _Mma, types: tuple[type[Numeric], type[Numeric], type[Numeric]], *more: str, atom: str = "tcgen05_mma"
) -> str:
    """Return the text of the type of an MMA; ``types`` are those of D, A and B."""
    what = f"tcgen05.{op.name}"
    pair = "cta_group = 2" if group_number(op.cta_group, what) == 2 else ""
    d, a, b = (element_text(t, what, signed=True) for t in types)
    m, n, k = triple(op.instruction_shape, what)
    source = str(getattr(op.a_src, "value", op.a_src)).lower()
    if source not in tuple(OperandSource):
        raise KernelTypeError(
            "F250", f"{what}: a_src must be OperandSource.SMEM or OperandSource.TMEM, got {op.a_src!r}"
        )
    majors = f"major = ({major_text(op.a_major_mode)}, {major_text(op.b_major_mode)})"
    options = "".join(f", {x}" for x in (pair, *more) if x)
    return f"!cute_nvgpu.atom.{atom}<{m}x{n}x{k}, ({d},{a},{b},{d}), A = {source}, {majors}{options}>"


def _negated(op: MmaF16BF16Op | MmaTF32Op | MmaF8F6F4Op) -> tuple[str, str]:
    return "negate_a" if op.negate_a else "", "negate_b" if op.negate_b else ""


@dataclass(frozen=True)
class MmaF16BF16Op(MmaOp):
    """``tcgen05.mma`` with K = 16 of Float16 or BFloat16 into Float32, or of Float16 into Float16.

    M is 64 or 128, for a pair of blocks 128 or 256, and N up to 256. ``negate_a`` and ``negate_b`` multiply by -A and
    -B.
    """

    ab_dtype: type[Numeric]
    acc_dtype: type[Numeric]
    instruction_shape: tuple[int, int, int]
    cta_group: CtaGroup = CtaGroup.ONE
    a_src: OperandSource = OperandSource.SMEM
    a_major_mode: OperandMajorMode = OperandMajorMode.K
    b_major_mode: OperandMajorMode = OperandMajorMode.K
    negate_a: bool = field(default=False, kw_only=True)
    negate_b: bool = field(default=False, kw_only=True)
    chip: ClassVar[str] = TCGEN05

    def atom_text(self) -> str:
        check_kind(self.ab_dtype, ("Float16", "BFloat16"), f"tcgen05.{self.name}: ab_dtype")
        check_kind(self.acc_dtype, ("Float16", "Float32"), f"tcgen05.{self.name}: acc_dtype")
        return _text(self, (self.acc_dtype, self.ab_dtype, self.ab_dtype), *_negated(self))


@dataclass(frozen=True)
class MmaTF32Op(MmaOp):
    """``tcgen05.mma`` with K = 8 of TFloat32 into Float32."""

    instruction_shape: tuple[int, int, int]
    cta_group: CtaGroup = CtaGroup.ONE
    a_src: OperandSource = OperandSource.SMEM
    a_major_mode: OperandMajorMode = OperandMajorMode.K
    b_major_mode: OperandMajorMode = OperandMajorMode.K
    negate_a: bool = field(default=False, kw_only=True)
    negate_b: bool = field(default=False, kw_only=True)
    chip: ClassVar[str] = TCGEN05

    def atom_text(self) -> str:
        return _text(self, (Float32, TFloat32, TFloat32), *_negated(self))


@dataclass(frozen=True)
class MmaF8F6F4Op(MmaOp):
    """``tcgen05.mma`` with K = 32 of floats of 8, 6 or 4 bits into Float32 or Float16, one element per byte."""

    a_dtype: type[Numeric]
    b_dtype: type[Numeric]
    acc_dtype: type[Numeric]
    instruction_shape: tuple[int, int, int]
    cta_group: CtaGroup = CtaGroup.ONE
    a_src: OperandSource = OperandSource.SMEM
    a_major_mode: OperandMajorMode = OperandMajorMode.K
    b_major_mode: OperandMajorMode = OperandMajorMode.K
    negate_a: bool = field(default=False, kw_only=True)
    negate_b: bool = field(default=False, kw_only=True)
    chip: ClassVar[str] = TCGEN05

    def atom_text(self) -> str:
        check_kind(self.acc_dtype, ("Float16", "Float32"), f"tcgen05.{self.name}: acc_dtype")
        return _text(self, (self.acc_dtype, self.a_dtype, self.b_dtype), *_negated(self))


@dataclass(frozen=True)
class MmaI8Op(MmaOp):
    """``tcgen05.mma`` with K = 32 of 8-bit integers into Int32 (sm_100a, sm_110a).

    Overflowing sums wrap; with ``saturate`` they saturate.
    """

    a_dtype: type[Numeric]
    b_dtype: type[Numeric]
    instruction_shape: tuple[int, int, int]
    cta_group: CtaGroup = CtaGroup.ONE
    a_src: OperandSource = OperandSource.SMEM
    a_major_mode: OperandMajorMode = OperandMajorMode.K
    b_major_mode: OperandMajorMode = OperandMajorMode.K
    saturate: bool = field(default=False, kw_only=True)
    chip: ClassVar[str] = TCGEN05

    def atom_text(self) -> str:
        for t, n in ((self.a_dtype, "a_dtype"), (self.b_dtype, "b_dtype")):
            check_kind(t, ("Int8", "Uint8"), f"tcgen05.{self.name}: {n}")
        return _text(self, (Int32, self.a_dtype, self.b_dtype), "saturate" if self.saturate else "")


_FP8 = ("Float8E4M3FN", "Float8E5M2")
_NARROW = (*_FP8, "Float6E3M2FN", "Float6E2M3FN", "Float4E2M1FN")


def _scaled(op: _ScaledMma, types: tuple[type[Numeric], type[Numeric]], kind: str, factors: str, vec: int) -> str:
    if op.a_src == OperandSource.TMEM:
        raise KernelTypeError(
            "F250", f"tcgen05.{op.name}: a_src must be OperandSource.SMEM; an MMA with block scales reads A from there"
        )
    for name in ("a_major_mode", "b_major_mode"):
        if getattr(op, name) == OperandMajorMode.MN:
            raise KernelTypeError(
                "F250", f"tcgen05.{op.name}: {name} must be OperandMajorMode.K for an MMA with block scales"
            )
    return _text(op, (Float32, *types), f"kind = {kind}", f"sf = {factors}", f"vec = {vec}")


@dataclass(frozen=True)
class MmaMXF8F6F4Op(MmaOp):
    """``tcgen05.mma`` with K = 32 of floats of 8, 6 or 4 bits, and a Float8E8M0FNU factor per 32 elements along K.

    The accumulator is Float32. M is 128, for a pair of blocks 128 or 256, and N a multiple of 8 (of 16 for a pair) up
    to 256. Both operands are K-major in shared memory, one element per byte.
    """

    a_dtype: type[Numeric]
    b_dtype: type[Numeric]
    instruction_shape: tuple[int, int, int]
    cta_group: CtaGroup = CtaGroup.ONE
    a_src: OperandSource = OperandSource.SMEM
    a_major_mode: OperandMajorMode = OperandMajorMode.K
    b_major_mode: OperandMajorMode = OperandMajorMode.K
    chip: ClassVar[str] = TCGEN05

    def atom_text(self) -> str:
        for t, n in ((self.a_dtype, "a_dtype"), (self.b_dtype, "b_dtype")):
            check_kind(t, _NARROW, f"tcgen05.{self.name}: {n}")
        return _scaled(self, (self.a_dtype, self.b_dtype), "mxf8f6f4", "f8E8M0FNU", 32)


@dataclass(frozen=True)
class MmaMXF8Op(MmaOp):
    """``tcgen05.mma`` of 8-bit floats of one type, with a Float8E8M0FNU factor per 32 elements along K.

    See :class:`MmaMXF8F6F4Op`.
    """

    ab_dtype: type[Numeric]
    instruction_shape: tuple[int, int, int]
    cta_group: CtaGroup = CtaGroup.ONE
    a_src: OperandSource = OperandSource.SMEM
    a_major_mode: OperandMajorMode = OperandMajorMode.K
    b_major_mode: OperandMajorMode = OperandMajorMode.K
    chip: ClassVar[str] = TCGEN05

    def atom_text(self) -> str:
        check_kind(self.ab_dtype, _FP8, f"tcgen05.{self.name}: ab_dtype")
        return _scaled(self, (self.ab_dtype, self.ab_dtype), "mxf8f6f4", "f8E8M0FNU", 32)


@dataclass(frozen=True)
class MmaMXF4Op(MmaOp):
    """``tcgen05.mma`` with K = 64 of Float4E2M1FN, and a Float8E8M0FNU factor per 32 elements along K.

    Both operands are K-major in shared memory, two elements per byte. See :class:`MmaMXF8F6F4Op` for M and N.
    """

    instruction_shape: tuple[int, int, int]
    cta_group: CtaGroup = CtaGroup.ONE
    a_src: OperandSource = OperandSource.SMEM
    a_major_mode: ClassVar[OperandMajorMode] = OperandMajorMode.K
    b_major_mode: ClassVar[OperandMajorMode] = OperandMajorMode.K
    chip: ClassVar[str] = TCGEN05

    def atom_text(self) -> str:
        return _scaled(self, (Float4E2M1FN, Float4E2M1FN), "mxf4", "f8E8M0FNU", 32)


@dataclass(frozen=True)
class MmaMXF4NVF4Op(MmaOp):
    """``tcgen05.mma`` with K = 64 of Float4E2M1FN, and a factor per 16 elements along K.

    The factors are Float8E4M3FN, whose sign is ignored, or Float8E8M0FNU. See :class:`MmaMXF4Op`.
    """

    sf_dtype: type[Numeric]
    instruction_shape: tuple[int, int, int]
    cta_group: CtaGroup = CtaGroup.ONE
    a_src: OperandSource = OperandSource.SMEM
    a_major_mode: ClassVar[OperandMajorMode] = OperandMajorMode.K
    b_major_mode: ClassVar[OperandMajorMode] = OperandMajorMode.K
    chip: ClassVar[str] = TCGEN05

    def atom_text(self) -> str:
        check_kind(self.sf_dtype, ("Float8E4M3FN", "Float8E8M0FNU"), f"tcgen05.{self.name}: sf_dtype")
        factors = "ue4m3" if self.sf_dtype is Float8E4M3FN else "f8E8M0FNU"
        return _scaled(self, (Float4E2M1FN, Float4E2M1FN), "mxf4nvf4", factors, 16)


@dataclass(frozen=True)
class MmaWsOp(MmaOp):
    """``tcgen05.mma.ws``, for products with few rows: M of 32, 64 or 128, and N of 64, 128 or 256.

    The types of A, B and the accumulator, and K, are those of the other MMAs. One block executes it. With M of 32 and
    64 the columns of the accumulator are divided among the quarters or halves of the lanes.
    """

    a_dtype: type[Numeric]
    b_dtype: type[Numeric]
    acc_dtype: type[Numeric]
    instruction_shape: tuple[int, int, int]
    a_src: OperandSource = OperandSource.SMEM
    a_major_mode: OperandMajorMode = OperandMajorMode.K
    b_major_mode: OperandMajorMode = OperandMajorMode.K
    saturate: bool = field(default=False, kw_only=True)
    cta_group: ClassVar[CtaGroup] = CtaGroup.ONE
    chip: ClassVar[str] = TCGEN05

    def atom_text(self) -> str:
        return _text(self, (self.acc_dtype, self.a_dtype, self.b_dtype), "saturate" if self.saturate else "", "ws")


@dataclass(frozen=True)
class MmaSparseOp(MmaOp):
    """``tcgen05.mma.sp``, whose A is 2:4 sparse (1:2 for TFloat32) and stored compressed.

    K is 32 for Float16 and BFloat16, 16 for TFloat32, and 64 for 8-bit types. M is 128, and N a multiple of 16; a pair
    of blocks needs 256 and a multiple of 32. ``cute.sparse_gemm`` takes the metadata E as a tensor in tensor memory
    with the layout ``blackwell.make_tmem_layout_e``. With ``sf_dtype`` the MMA has block scales, as the dense MMA that
    ``blackwell.make_blockscaled_trivial_tiled_mma`` selects for the types and ``sf_vec``; a factor then scales ``2 *
    sf_vec`` elements along K, of which half are kept.

    Args:
        saturate: saturate integer sums.
        sf_dtype: the type of the scale factors, Float8E8M0FNU or Float8E4M3FN.
        sf_vec: kept elements along K that share a factor, 32 or 16.
    """

    a_dtype: type[Numeric]
    b_dtype: type[Numeric]
    acc_dtype: type[Numeric]
    instruction_shape: tuple[int, int, int]
    cta_group: CtaGroup = CtaGroup.ONE
    a_src: OperandSource = OperandSource.SMEM
    a_major_mode: OperandMajorMode = OperandMajorMode.K
    b_major_mode: OperandMajorMode = OperandMajorMode.K
    saturate: bool = field(default=False, kw_only=True)
    sf_dtype: type[Numeric] | None = field(default=None, kw_only=True)
    sf_vec: int = field(default=32, kw_only=True)
    chip: ClassVar[str] = TCGEN05

    def atom_text(self) -> str:
        more = ["saturate"] if self.saturate else []
        if self.sf_dtype is not None:
            check_kind(self.sf_dtype, ("Float8E4M3FN", "Float8E8M0FNU"), f"tcgen05.{self.name}: sf_dtype")
            factors = "ue4m3" if self.sf_dtype is Float8E4M3FN else "f8E8M0FNU"
            is_packed = self.a_dtype is self.b_dtype is Float4E2M1FN
            kind = "mxf8f6f4" if not is_packed else "mxf4" if self.sf_vec == 32 else "mxf4nvf4"
            more += [f"kind = {kind}", f"sf = {factors}", f"vec = {self.sf_vec}"]
        return _text(self, (self.acc_dtype, self.a_dtype, self.b_dtype), *more, atom="tcgen05_mma_sp")


# -------------------------------------------------------------------------------------------------------------- copies


class Repetition(Enum):
    """Repetitions of a load or a store of tensor memory along the columns."""

    x1, x2, x4, x8, x16, x32, x64, x128 = 1, 2, 4, 8, 16, 32, 64, 128


class Pack(Enum):
    """Packing of loads: with PACK_16b_IN_32b the lower halves of two columns are one register."""

    NONE = 0
    PACK_16b_IN_32b = 1


class Unpack(Enum):
    """Unpacking of stores: with UNPACK_32b_IN_16b the halves of a register are stored to two columns."""

    NONE = 0
    UNPACK_32b_IN_16b = 1


@dataclass(frozen=True)
class _Load(CopyOp):
    repeat: Repetition = Repetition.x1
    pack: Pack = Pack.NONE
    chip: ClassVar[str] = TCGEN05
    shape: ClassVar[str]

    def atom_text(self, dtype: type[Numeric], bits: int | None) -> str:
        packed = self.pack is Pack.PACK_16b_IN_32b
        return _copy_text(self, "load", dtype, "pack" if packed else "")


@dataclass(frozen=True)
class _Store(CopyOp):
    repeat: Repetition = Repetition.x1
    unpack: Unpack = Unpack.NONE
    chip: ClassVar[str] = TCGEN05
    shape: ClassVar[str]

    def atom_text(self, dtype: type[Numeric], bits: int | None) -> str:
        packed = self.unpack is Unpack.UNPACK_32b_IN_16b
        return _copy_text(self, "store", dtype, "unpack" if packed else "")


class TmemLoadRedOp(Enum):
    """Reductions of :class:`LdRed32x32bOp`: MAX, MIN, and of the absolute values MAXABS and MINABS (Float32)."""

    MAX, MIN, MAXABS, MINABS = "max", "min", "max, abs", "min, abs"


@dataclass(frozen=True)
class _LoadReduce(_Load):
    redOp: TmemLoadRedOp = TmemLoadRedOp.MAX
    nan: bool = False
    chip: ClassVar[str] = LOAD_REDUCTIONS
    reduces: ClassVar[bool] = True

    def atom_text(self, dtype: type[Numeric], bits: int | None) -> str:
        if self.pack is not Pack.NONE:
            raise KernelTypeError("F250", f"tcgen05.{self.name}: a load with a reduction has no pack; use Pack.NONE")
        if not isinstance(self.redOp, TmemLoadRedOp):
            raise KernelTypeError(
                "F250", f"tcgen05.{self.name}: redOp must be a tcgen05.TmemLoadRedOp, got {self.redOp!r}"
            )
        if dtype is Uint32:  # Memory has no signedness, so the reduction would be that of Int32.
            raise KernelTypeError(
                "F250", f"tcgen05.{self.name}: reduces Float32 and Int32, got Uint32; use cute.recast_tensor"
            )
        return _copy_text(self, "load", dtype, f"red = {self.redOp.value}{', nan' if self.nan else ''}")


def _copy_text(op: _Load | _Store, direction: str, dtype: type[Numeric], option: str) -> str:
    if not isinstance(op.repeat, Repetition):
        raise KernelTypeError("F250", f"tcgen05.{op.name}: repeat must be a tcgen05.Repetition, got {op.repeat!r}")
    more = f", {option}" if option else ""
    return f"!cute_nvgpu.atom.tmem_{direction}<{dtype.mlir_type}, {op.shape}, x{op.repeat.value}{more}>"


class Ld32x32bOp(_Load):
    """Load of 32 lanes per warp: thread ``t`` gets consecutive columns of lane ``t``."""

    shape: ClassVar[str] = "32x32b"


class LdRed32x32bOp(_LoadReduce):
    """Load as :class:`Ld32x32bOp` that also reduces the columns of each thread (sm_103, sm_110).

    The destination of ``cute.copy`` is a tuple: the values, and a register tensor with one element per instruction. A
    NaN is ignored, or is the result with ``nan``.
    """

    shape: ClassVar[str] = "32x32b"


class LdRed16x32bx2Op(_LoadReduce):
    """Load as :class:`Ld16x32bx2Op` that also reduces the columns of each thread; see :class:`LdRed32x32bOp`."""

    shape: ClassVar[str] = "16x32bx2"


class Ld16x64bOp(_Load):
    """Load of 16 lanes per warp, two threads per lane and column pair."""

    shape: ClassVar[str] = "16x64b"


class Ld16x128bOp(_Load):
    """Load of 16 lanes per warp, 128 bits of each lane per repetition."""

    shape: ClassVar[str] = "16x128b"


class Ld16x256bOp(_Load):
    """Load of 16 lanes per warp, 256 bits of each lane per repetition: the layout of ``mma.sync`` accumulators."""

    shape: ClassVar[str] = "16x256b"


class Ld16x32bx2Op(_Load):
    """Load of 16 lanes per warp at two ranges of columns, one for each half of the warp."""

    shape: ClassVar[str] = "16x32bx2"


class St32x32bOp(_Store):
    """Store of 32 lanes per warp, the inverse of :class:`Ld32x32bOp`."""

    shape: ClassVar[str] = "32x32b"


class St16x64bOp(_Store):
    """Store of 16 lanes per warp, the inverse of :class:`Ld16x64bOp`."""

    shape: ClassVar[str] = "16x64b"


class St16x128bOp(_Store):
    """Store of 16 lanes per warp, the inverse of :class:`Ld16x128bOp`."""

    shape: ClassVar[str] = "16x128b"


class St16x256bOp(_Store):
    """Store of 16 lanes per warp, the inverse of :class:`Ld16x256bOp`."""

    shape: ClassVar[str] = "16x256b"


class St16x32bx2Op(_Store):
    """Store of 16 lanes per warp, the inverse of :class:`Ld16x32bx2Op`."""

    shape: ClassVar[str] = "16x32bx2"


@dataclass(frozen=True)
class _SharedCopy(CopyOp):
    cta_group: CtaGroup = CtaGroup.ONE
    chip: ClassVar[str] = TCGEN05
    shape: ClassVar[str]

    def atom_text(self, dtype: type[Numeric], bits: int | None) -> str:
        pair = ", cta_group = 2" if group_number(self.cta_group, f"tcgen05.{self.name}") == 2 else ""
        return f"!cute_nvgpu.atom.tmem_copy<{dtype.mlir_type}, {self.shape}{pair}>"


class Cp4x32x128bOp(_SharedCopy):
    """Copy of 32 rows of 16 bytes from shared memory to each quarter of the lanes, as scale factors need.

    With ``CtaGroup.TWO`` both blocks of a pair copy from the same address of their shared memory.
    """

    shape: ClassVar[str] = "32x128b_warpx4"


class Cp2x64x128b0213Op(_SharedCopy):
    """Copy of 64 rows of 16 bytes from shared memory to lanes 0 to 63, and to lanes 64 to 127."""

    shape: ClassVar[str] = "64x128b_warpx2_02_13"


class Cp2x64x128b0123Op(_SharedCopy):
    """Copy of 64 rows of 16 bytes from shared memory: rows 0 to 31 to lanes 0 to 31 and 32 to 63, others further on."""

    shape: ClassVar[str] = "64x128b_warpx2_01_23"


class Cp128x128bOp(_SharedCopy):
    """Copy of 128 rows of 16 bytes from shared memory to the lanes."""

    shape: ClassVar[str] = "128x128b"


class Cp128x256bOp(_SharedCopy):
    """Copy of 128 rows of 32 bytes from shared memory to the lanes: the first 16 bytes of all rows come first."""

    shape: ClassVar[str] = "128x256b"


class Cp4x256bOp(_SharedCopy):
    """Copy of 4 rows of 32 bytes from shared memory, to one lane of each quarter, not supported by the interpreter."""

    shape: ClassVar[str] = "4x256b"


def __dir__() -> list[str]:
    return sorted(__all__)
