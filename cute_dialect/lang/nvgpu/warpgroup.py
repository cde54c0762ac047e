"""``cute.nvgpu.warpgroup``: products of the four warps of a group, ``wgmma`` (sm_90a)."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar

from cute_dialect.front.atoms import MmaOp, element_text
from cute_dialect.front.dtypes import Float32, TFloat32
from cute_dialect.front.errors import KernelTypeError
from cute_dialect.front.wgmma import SmemLayoutAtomKind as SmemLayoutAtomKind
from cute_dialect.front.wgmma import commit_group as commit_group
from cute_dialect.front.wgmma import fence as fence
from cute_dialect.front.wgmma import make_smem_layout_atom as make_smem_layout_atom
from cute_dialect.front.wgmma import wait_group as wait_group
from cute_dialect.lang.nvgpu.common import OperandMajorMode as OperandMajorMode
from cute_dialect.lang.nvgpu.common import check_kind, major_text, triple

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
    """Where a product reads A: from shared memory or from registers."""

    SMEM = "smem"
    RMEM = "rmem"


class Field(StrEnum):
    """What of a product may be set when the kernel runs."""

    ACCUMULATE = "accumulate"


def _source(source: Any) -> str:
    found = str(getattr(source, "value", source)).lower()
    if found not in ("smem", "rmem"):
        raise KernelTypeError("F250", f"expected OperandSource.SMEM or OperandSource.RMEM, got {source!r}")
    return found


def _text(
    shape: Any, types: tuple[Any, Any, Any], source: Any, majors: tuple[Any, Any], what: str, *more: str,
    kind: str = "wgmma",
) -> str:  # fmt: skip
    d, a, b = (element_text(t, what, signed=True) for t in types)
    m, n, k = triple(shape, what)
    return (
        f"!cute_nvgpu.atom.{kind}<{m}x{n}x{k}, ({d},{a},{b},{d}), A = {_source(source)}, "
        f"major = ({major_text(majors[0])}, {major_text(majors[1])}){''.join(f', {m}' for m in more if m)}>"
    )


def _negated(op: Any) -> tuple[str, str]:
    return "negate_a" if op.negate_a else "", "negate_b" if op.negate_b else ""


@dataclass(frozen=True)
class MmaF16BF16Op(MmaOp):
    """``wgmma`` 64xNx16 of Float16 or BFloat16; A and B may be K-major or MN-major in shared memory.

    ``negate_a``, ``negate_b`` (of all products of floats): -A or -B is multiplied instead.
    """

    ab_dtype: Any
    acc_dtype: Any
    instruction_shape: Any
    a_src: Any = OperandSource.SMEM
    a_major_mode: Any = OperandMajorMode.K
    b_major_mode: Any = OperandMajorMode.K
    negate_a: bool = field(default=False, kw_only=True)
    negate_b: bool = field(default=False, kw_only=True)
    chip: ClassVar[str] = "sm_90a"

    def atom_text(self) -> str:
        what = f"warpgroup.{self.name}"
        check_kind(self.ab_dtype, ("Float16", "BFloat16"), f"{what}, ab_dtype")
        check_kind(self.acc_dtype, ("Float16", "Float32"), f"{what}, acc_dtype")
        types = (self.acc_dtype, self.ab_dtype, self.ab_dtype)
        majors = (self.a_major_mode, self.b_major_mode)
        return _text(self.instruction_shape, types, self.a_src, majors, what, *_negated(self))


@dataclass(frozen=True)
class _MmaOfBytes(MmaOp):
    """The base of ``wgmma`` 64xNx32 of types of 8 bits, K-major."""

    a_dtype: Any
    b_dtype: Any
    acc_dtype: Any
    instruction_shape: Any
    a_src: Any = OperandSource.SMEM
    a_major_mode: Any = OperandMajorMode.K
    b_major_mode: Any = OperandMajorMode.K
    chip: ClassVar[str] = "sm_90a"
    inputs: ClassVar[tuple[str, ...]]
    """The types of A and B."""
    sums: ClassVar[tuple[str, ...]]
    """The types of the accumulators."""

    def more(self) -> tuple[str, ...]:
        """Return what else the type of the atom says."""
        raise NotImplementedError

    def atom_text(self) -> str:
        what = f"warpgroup.{self.name}"
        for t, n in ((self.a_dtype, "a_dtype"), (self.b_dtype, "b_dtype")):
            check_kind(t, self.inputs, f"{what}, {n}")
        check_kind(self.acc_dtype, self.sums, f"{what}, acc_dtype")
        types = (self.acc_dtype, self.a_dtype, self.b_dtype)
        majors = (self.a_major_mode, self.b_major_mode)
        return _text(self.instruction_shape, types, self.a_src, majors, what, *self.more())


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

    ``saturate``: sums that would overflow stick at the ends of their range instead of wrapping.
    """

    saturate: bool = False
    inputs: ClassVar[tuple[str, ...]] = ("Int8", "Uint8")
    sums: ClassVar[tuple[str, ...]] = ("Int32",)

    def more(self) -> tuple[str, ...]:
        return ("saturate",) if self.saturate else ()


@dataclass(frozen=True)
class MmaTF32Op(MmaOp):
    """``wgmma`` 64xNx8 of TFloat32 into Float32, K-major."""

    acc_dtype: Any
    instruction_shape: Any
    a_src: Any = OperandSource.SMEM
    a_major_mode: Any = OperandMajorMode.K
    b_major_mode: Any = OperandMajorMode.K
    negate_a: bool = field(default=False, kw_only=True)
    negate_b: bool = field(default=False, kw_only=True)
    chip: ClassVar[str] = "sm_90a"

    def atom_text(self) -> str:
        what = f"warpgroup.{self.name}"
        check_kind(self.acc_dtype, ("Float32",), f"{what}, acc_dtype")
        types = (Float32, TFloat32, TFloat32)
        majors = (self.a_major_mode, self.b_major_mode)
        return _text(self.instruction_shape, types, self.a_src, majors, what, *_negated(self))


@dataclass(frozen=True)
class MmaSparseOp(MmaOp):
    """``wgmma`` whose A is sparse, of which the kept half is given; twice the K of the dense product of its types.

    ``selector``: which threads are asked for metadata; ``saturate``: integer sums stick at the ends of their range.
    """

    a_dtype: Any
    b_dtype: Any
    acc_dtype: Any
    instruction_shape: Any
    a_src: Any = OperandSource.SMEM
    a_major_mode: Any = OperandMajorMode.K
    b_major_mode: Any = OperandMajorMode.K
    selector: int = 0
    saturate: bool = False
    chip: ClassVar[str] = "sm_90a"

    def atom_text(self) -> str:
        types = (self.acc_dtype, self.a_dtype, self.b_dtype)
        majors = (self.a_major_mode, self.b_major_mode)
        more = ("saturate" if self.saturate else "", f"selector = {self.selector}" if self.selector else "")
        what = f"warpgroup.{self.name}"
        return _text(self.instruction_shape, types, self.a_src, majors, what, *more, kind="wgmma_sp")
