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

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import TYPE_CHECKING, ClassVar

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
from cute_dialect.lang.values.dtypes import Float4E2M1FN, Float8E4M3FN, Float8E8M0FNU, Float32, Int32, TFloat32, Uint32

if TYPE_CHECKING:
    from cute_dialect.lang.values.dtypes import Numeric


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


_FP8 = ("Float8E4M3FN", "Float8E5M2")
_NARROW = (*_FP8, "Float6E3M2FN", "Float6E2M3FN", "Float4E2M1FN")
_SUMS = ("Float16", "Float32")
_S8 = ("Int8", "Uint8")
_FACTORS = ("Float8E4M3FN", "Float8E8M0FNU")

# A dataclass lists the fields of its last base first, so a descriptor names the types of its operands as its last base.


@dataclass(frozen=True)
class _OfAb:
    ab_dtype: type[Numeric]


@dataclass(frozen=True)
class _OfAbAcc(_OfAb):
    acc_dtype: type[Numeric]


@dataclass(frozen=True)
class _OfAAndB:
    a_dtype: type[Numeric]
    b_dtype: type[Numeric]


@dataclass(frozen=True)
class _OfAAndBAcc(_OfAAndB):
    acc_dtype: type[Numeric]


@dataclass(frozen=True)
class _OfFactors:
    sf_dtype: type[Numeric]


@dataclass(frozen=True)
class _KMajorMma(MmaOp):
    """Base of the MMAs of tensor memory, which builds the text of the atom from the fields and class variables."""

    instruction_shape: tuple[int, int, int]
    cta_group: CtaGroup = CtaGroup.ONE
    a_src: OperandSource = OperandSource.SMEM
    chip: ClassVar[str] = TCGEN05
    ATOM: ClassVar[str] = "tcgen05_mma"
    TYPES: ClassVar[tuple[type[Numeric] | str, type[Numeric] | str, type[Numeric] | str]]
    """Types of D, A and B: types, or names of fields."""
    ALLOWED: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Field -> the types that it may have. Other combinations are refused by the table of atoms."""
    FLAGS: ClassVar[tuple[str, ...]] = ()
    """Fields of the type bool that are options of the atom."""

    def _majors(self) -> tuple[OperandMajorMode, OperandMajorMode]:
        """Return the majors of A and B."""
        return OperandMajorMode.K, OperandMajorMode.K

    def _scaling(self) -> tuple[str, type[Numeric], int] | None:
        """Return the kind, the type of the factors and the elements that share one; None without block scales."""
        return None

    def atom_text(self) -> str:
        what = f"tcgen05.{self.name}"
        for name, allowed in self.ALLOWED.items():
            if getattr(self, name) is not None:
                check_kind(getattr(self, name), allowed, f"{what}: {name}")
        scaling, options = self._scaling(), [name for name in self.FLAGS if getattr(self, name)]
        if scaling is not None:
            self._check_scaled(what)
            kind, factors, vec = scaling
            sf = "ue4m3" if factors is Float8E4M3FN else "f8E8M0FNU"
            options += [f"kind = {kind}", f"sf = {sf}", f"vec = {vec}"]
        if group_number(self.cta_group, what) == 2:
            options.insert(0, "cta_group = 2")
        types = (getattr(self, t) if isinstance(t, str) else t for t in self.TYPES)
        d, a, b = (element_text(t, what, signed=True) for t in types)
        m, n, k = triple(self.instruction_shape, what)
        source = str(getattr(self.a_src, "value", self.a_src)).lower()
        if source not in tuple(OperandSource):
            raise KernelTypeError(
                "F250", f"{what}: a_src must be OperandSource.SMEM or OperandSource.TMEM, got {self.a_src!r}"
            )
        major_a, major_b = map(major_text, self._majors())
        return (
            f"!cute_nvgpu.atom.{self.ATOM}<{m}x{n}x{k}, ({d},{a},{b},{d}), A = {source}, major = ({major_a}, {major_b})"
            f"{''.join(f', {option}' for option in options)}>"
        )

    def _check_scaled(self, what: str) -> None:
        """Raise F250 unless A is in shared memory and both operands are K-major."""
        if self.a_src == OperandSource.TMEM:
            raise KernelTypeError(
                "F250", f"{what}: a_src must be OperandSource.SMEM; an MMA with block scales reads A from there"
            )
        for name, major in zip(("a_major_mode", "b_major_mode"), self._majors()):
            if major == OperandMajorMode.MN:
                raise KernelTypeError("F250", f"{what}: {name} must be OperandMajorMode.K for an MMA with block scales")


@dataclass(frozen=True)
class _Mma(_KMajorMma):
    a_major_mode: OperandMajorMode = OperandMajorMode.K
    b_major_mode: OperandMajorMode = OperandMajorMode.K

    def _majors(self) -> tuple[OperandMajorMode, OperandMajorMode]:
        return self.a_major_mode, self.b_major_mode


@dataclass(frozen=True)
class _FloatMma(_Mma):
    negate_a: bool = field(default=False, kw_only=True)
    negate_b: bool = field(default=False, kw_only=True)
    FLAGS = ("negate_a", "negate_b")


@dataclass(frozen=True)
class _SaturatingMma(_Mma):
    saturate: bool = field(default=False, kw_only=True)
    FLAGS = ("saturate",)


@dataclass(frozen=True)
class MmaF16BF16Op(_FloatMma, _OfAbAcc):
    """``tcgen05.mma`` with K = 16 of Float16 or BFloat16 into Float32, or of Float16 into Float16.

    M is 64 or 128, for a pair of blocks 128 or 256, and N up to 256. ``negate_a`` and ``negate_b`` multiply by -A and
    -B.
    """

    TYPES = ("acc_dtype", "ab_dtype", "ab_dtype")
    ALLOWED = {"ab_dtype": ("Float16", "BFloat16"), "acc_dtype": _SUMS}


@dataclass(frozen=True)
class MmaTF32Op(_FloatMma):
    """``tcgen05.mma`` with K = 8 of TFloat32 into Float32."""

    TYPES = (Float32, TFloat32, TFloat32)


@dataclass(frozen=True)
class MmaF8F6F4Op(_FloatMma, _OfAAndBAcc):
    """``tcgen05.mma`` with K = 32 of floats of 8, 6 or 4 bits into Float32 or Float16, one element per byte."""

    TYPES = ("acc_dtype", "a_dtype", "b_dtype")
    ALLOWED = {"acc_dtype": _SUMS}


@dataclass(frozen=True)
class MmaI8Op(_SaturatingMma, _OfAAndB):
    """``tcgen05.mma`` with K = 32 of 8-bit integers into Int32 (sm_100a, sm_110a).

    Overflowing sums wrap; with ``saturate`` they saturate.
    """

    TYPES = (Int32, "a_dtype", "b_dtype")
    ALLOWED = {"a_dtype": _S8, "b_dtype": _S8}


@dataclass(frozen=True)
class MmaMXF8F6F4Op(_Mma, _OfAAndB):
    """``tcgen05.mma`` with K = 32 of floats of 8, 6 or 4 bits, and a Float8E8M0FNU factor per 32 elements along K.

    The accumulator is Float32. M is 128, for a pair of blocks 128 or 256, and N a multiple of 8 (of 16 for a pair) up
    to 256. Both operands are K-major in shared memory, one element per byte.
    """

    TYPES = (Float32, "a_dtype", "b_dtype")
    ALLOWED = {"a_dtype": _NARROW, "b_dtype": _NARROW}

    def _scaling(self) -> tuple[str, type[Numeric], int]:
        return "mxf8f6f4", Float8E8M0FNU, 32


@dataclass(frozen=True)
class MmaMXF8Op(_Mma, _OfAb):
    """``tcgen05.mma`` of 8-bit floats of one type, with a Float8E8M0FNU factor per 32 elements along K.

    See :class:`MmaMXF8F6F4Op`.
    """

    TYPES = (Float32, "ab_dtype", "ab_dtype")
    ALLOWED = {"ab_dtype": _FP8}

    def _scaling(self) -> tuple[str, type[Numeric], int]:
        return "mxf8f6f4", Float8E8M0FNU, 32


@dataclass(frozen=True)
class MmaMXF4Op(_KMajorMma):
    """``tcgen05.mma`` with K = 64 of Float4E2M1FN, and a Float8E8M0FNU factor per 32 elements along K.

    Both operands are K-major in shared memory, two elements per byte. See :class:`MmaMXF8F6F4Op` for M and N.
    """

    a_major_mode: ClassVar[OperandMajorMode] = OperandMajorMode.K
    b_major_mode: ClassVar[OperandMajorMode] = OperandMajorMode.K
    TYPES = (Float32, Float4E2M1FN, Float4E2M1FN)

    def _scaling(self) -> tuple[str, type[Numeric], int]:
        return "mxf4", Float8E8M0FNU, 32


@dataclass(frozen=True)
class MmaMXF4NVF4Op(_KMajorMma, _OfFactors):
    """``tcgen05.mma`` with K = 64 of Float4E2M1FN, and a factor per 16 elements along K.

    The factors are Float8E4M3FN, whose sign is ignored, or Float8E8M0FNU. See :class:`MmaMXF4Op`.
    """

    a_major_mode: ClassVar[OperandMajorMode] = OperandMajorMode.K
    b_major_mode: ClassVar[OperandMajorMode] = OperandMajorMode.K
    TYPES = (Float32, Float4E2M1FN, Float4E2M1FN)
    ALLOWED = {"sf_dtype": _FACTORS}

    def _scaling(self) -> tuple[str, type[Numeric], int]:
        return "mxf4nvf4", self.sf_dtype, 16


@dataclass(frozen=True)
class MmaWsOp(_SaturatingMma, _OfAAndBAcc):
    """``tcgen05.mma.ws``, for products with few rows: M of 32, 64 or 128, and N of 64, 128 or 256.

    The types of A, B and the accumulator, and K, are those of the other MMAs. One block executes it, so ``cta_group``
    is ``CtaGroup.ONE``. With M of 32 and 64 the columns of the accumulator are divided among the quarters or halves of
    the lanes.
    """

    TYPES = ("acc_dtype", "a_dtype", "b_dtype")
    ws: ClassVar[bool] = True
    FLAGS = ("saturate", "ws")


@dataclass(frozen=True)
class MmaSparseOp(_SaturatingMma, _OfAAndBAcc):
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

    sf_dtype: type[Numeric] | None = field(default=None, kw_only=True)
    sf_vec: int = field(default=32, kw_only=True)
    ATOM = "tcgen05_mma_sp"
    TYPES = ("acc_dtype", "a_dtype", "b_dtype")
    ALLOWED = {"sf_dtype": _FACTORS}

    def _scaling(self) -> tuple[str, type[Numeric], int] | None:
        if self.sf_dtype is None:
            return None
        is_packed = self.a_dtype is self.b_dtype is Float4E2M1FN
        return "mxf8f6f4" if not is_packed else "mxf4" if self.sf_vec == 32 else "mxf4nvf4", self.sf_dtype, self.sf_vec


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
