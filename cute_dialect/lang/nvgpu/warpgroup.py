"""``cute.nvgpu.warpgroup``: warpgroup MMAs, ``wgmma`` (sm_90a)."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar

from cute_dialect.lang.machine.atoms import MmaOp, element_text
from cute_dialect.lang.machine.wgmma import SmemLayoutAtomKind as SmemLayoutAtomKind
from cute_dialect.lang.machine.wgmma import commit_group as commit_group
from cute_dialect.lang.machine.wgmma import fence as fence
from cute_dialect.lang.machine.wgmma import make_smem_layout_atom as make_smem_layout_atom
from cute_dialect.lang.machine.wgmma import wait_group as wait_group
from cute_dialect.lang.nvgpu.common import OperandMajorMode as OperandMajorMode
from cute_dialect.lang.nvgpu.common import check_kind, major_text, triple
from cute_dialect.lang.tracing.errors import KernelTypeError
from cute_dialect.lang.values.dtypes import Float32, TFloat32

if TYPE_CHECKING:
    from cute_dialect.lang.values.dtypes import Numeric


__all__ = [
    "Field",
    "MmaF8Op",
    "MmaF16BF16Op",
    "MmaI8Op",
    "MmaSparseOp",
    "MmaTF32Op",
    "OperandMajorMode",
    "OperandSource",
    "SmemLayoutAtomKind",
    "commit_group",
    "fence",
    "make_smem_layout_atom",
    "wait_group",
]


class OperandSource(StrEnum):
    """The memory that an MMA reads A from: shared memory or registers."""

    SMEM = "smem"
    RMEM = "rmem"


class Field(StrEnum):
    """Fields of an MMA atom that can be set at run time."""

    ACCUMULATE = "accumulate"


def _source(source: Any) -> str:
    found = str(getattr(source, "value", source)).lower()
    if found not in tuple(OperandSource):
        raise KernelTypeError("F250", f"a_src must be OperandSource.SMEM or OperandSource.RMEM, got {source!r}")
    return found


def _text(op: Any, types: tuple[Any, Any, Any], *more: str, kind: str = "wgmma") -> str:
    """Return the text of the type of a warpgroup MMA; ``types`` are those of D, A and B."""
    what = f"warpgroup.{op.name}"
    d, a, b = (element_text(t, what, signed=True) for t in types)
    m, n, k = triple(op.instruction_shape, what)
    return (
        f"!cute_nvgpu.atom.{kind}<{m}x{n}x{k}, ({d},{a},{b},{d}), A = {_source(op.a_src)}, "
        f"major = ({major_text(op.a_major_mode)}, {major_text(op.b_major_mode)}){''.join(f', {x}' for x in more if x)}>"
    )


def _negated(op: Any) -> tuple[str, str]:
    return "negate_a" if op.negate_a else "", "negate_b" if op.negate_b else ""


@dataclass(frozen=True)
class MmaF16BF16Op(MmaOp):
    """``wgmma`` 64xNx16 of Float16 or BFloat16. A and B in shared memory may be K-major or MN-major.

    ``negate_a`` and ``negate_b`` multiply by -A and -B; all floating-point MMAs have them.
    """

    ab_dtype: type[Numeric]
    acc_dtype: type[Numeric]
    instruction_shape: tuple[int, int, int]
    a_src: OperandSource = OperandSource.SMEM
    a_major_mode: OperandMajorMode = OperandMajorMode.K
    b_major_mode: OperandMajorMode = OperandMajorMode.K
    negate_a: bool = field(default=False, kw_only=True)
    negate_b: bool = field(default=False, kw_only=True)
    chip: ClassVar[str] = "sm_90a"

    def atom_text(self) -> str:
        what = f"warpgroup.{self.name}"
        check_kind(self.ab_dtype, ("Float16", "BFloat16"), f"{what}: ab_dtype")
        check_kind(self.acc_dtype, ("Float16", "Float32"), f"{what}: acc_dtype")
        return _text(self, (self.acc_dtype, self.ab_dtype, self.ab_dtype), *_negated(self))


@dataclass(frozen=True)
class _MmaOfBytes(MmaOp):
    """Base class of ``wgmma`` 64xNx32 of 8-bit types, K-major."""

    a_dtype: type[Numeric]
    b_dtype: type[Numeric]
    acc_dtype: type[Numeric]
    instruction_shape: tuple[int, int, int]
    a_src: OperandSource = OperandSource.SMEM
    a_major_mode: OperandMajorMode = OperandMajorMode.K
    b_major_mode: OperandMajorMode = OperandMajorMode.K
    chip: ClassVar[str] = "sm_90a"
    inputs: ClassVar[tuple[str, ...]]
    """Allowed types of A and B."""
    sums: ClassVar[tuple[str, ...]]
    """Allowed types of the accumulators."""

    def more(self) -> tuple[str, ...]:
        """Return the additional options in the type of the atom."""
        raise NotImplementedError

    def atom_text(self) -> str:
        what = f"warpgroup.{self.name}"
        for t, n in ((self.a_dtype, "a_dtype"), (self.b_dtype, "b_dtype")):
            check_kind(t, self.inputs, f"{what}: {n}")
        check_kind(self.acc_dtype, self.sums, f"{what}: acc_dtype")
        return _text(self, (self.acc_dtype, self.a_dtype, self.b_dtype), *self.more())


@dataclass(frozen=True)
class MmaF8Op(_MmaOfBytes):
    """``wgmma`` 64xNx32 of 8-bit floats, K-major."""

    negate_a: bool = field(default=False, kw_only=True)
    negate_b: bool = field(default=False, kw_only=True)
    inputs: ClassVar[tuple[str, ...]] = ("Float8E4M3FN", "Float8E5M2")
    sums: ClassVar[tuple[str, ...]] = ("Float16", "Float32")

    def more(self) -> tuple[str, ...]:
        return _negated(self)


@dataclass(frozen=True)
class MmaI8Op(_MmaOfBytes):
    """``wgmma`` 64xNx32 of 8-bit integers into Int32, K-major.

    Overflowing sums wrap; with ``saturate`` they saturate.
    """

    saturate: bool = False
    inputs: ClassVar[tuple[str, ...]] = ("Int8", "Uint8")
    sums: ClassVar[tuple[str, ...]] = ("Int32",)

    def more(self) -> tuple[str, ...]:
        return ("saturate",) if self.saturate else ()


@dataclass(frozen=True)
class MmaTF32Op(MmaOp):
    """``wgmma`` 64xNx8 of TFloat32 into Float32, K-major."""

    acc_dtype: type[Numeric]
    instruction_shape: tuple[int, int, int]
    a_src: OperandSource = OperandSource.SMEM
    a_major_mode: OperandMajorMode = OperandMajorMode.K
    b_major_mode: OperandMajorMode = OperandMajorMode.K
    negate_a: bool = field(default=False, kw_only=True)
    negate_b: bool = field(default=False, kw_only=True)
    chip: ClassVar[str] = "sm_90a"

    def atom_text(self) -> str:
        check_kind(self.acc_dtype, ("Float32",), f"warpgroup.{self.name}: acc_dtype")
        return _text(self, (Float32, TFloat32, TFloat32), *_negated(self))


@dataclass(frozen=True)
class MmaSparseOp(MmaOp):
    """``wgmma`` whose A is 2:4 sparse and stored compressed, with twice the K of the dense shape of its types.

    Args:
        selector: which threads provide the sparsity metadata.
        saturate: True to saturate integer sums.
    """

    a_dtype: type[Numeric]
    b_dtype: type[Numeric]
    acc_dtype: type[Numeric]
    instruction_shape: tuple[int, int, int]
    a_src: OperandSource = OperandSource.SMEM
    a_major_mode: OperandMajorMode = OperandMajorMode.K
    b_major_mode: OperandMajorMode = OperandMajorMode.K
    selector: int = 0
    saturate: bool = False
    chip: ClassVar[str] = "sm_90a"

    def atom_text(self) -> str:
        more = ("saturate" if self.saturate else "", f"selector = {self.selector}" if self.selector else "")
        return _text(self, (self.acc_dtype, self.a_dtype, self.b_dtype), *more, kind="wgmma_sp")


def __dir__() -> list[str]:
    return sorted(__all__)
