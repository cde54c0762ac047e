"""Atom type and instructions of a warpgroup, ``cute_nvgpu.arch.wgmma*``, on views of one atom's values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from xdsl.dialects.builtin import BoolAttr, IntegerAttr, i1, i32
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_attr_definition, operand_def, opt_operand_def, prop_def, var_operand_def

from cute_dialect.algebra.leaf import AlgebraError
from cute_dialect.algebra.trees import is_static
from cute_dialect.algebra.values import ComposedLayout
from cute_dialect.arch.elements import bits_of
from cute_dialect.arch.errors import AtomError
from cute_dialect.cute_nvgpu.gemm import MmaInstructionOp
from cute_dialect.cute_nvgpu.tiled_mma import MmaAtomType, MmaKey
from cute_dialect.dialect.base import cute_op, ops_of
from cute_dialect.dialect.memory_types import MemRefType
from cute_dialect.dialect.typed_values import Properties, payload_text
from cute_dialect.dialect.views import InstructionOp, expect, expect_operands

if TYPE_CHECKING:
    from cute_dialect.arch.atom import MmaAtom


@irdl_attr_definition
class WgmmaType(MmaAtomType):
    """``!cute_nvgpu.atom.wgmma<64xNxK, (D,A,B,C), A = smem|rmem, major = (k|mn, k|mn) [, saturate] [, negate_a] [,
    negate_b]>``

    ``A`` and ``major`` are optional; the defaults are A in shared memory, and k-major for both operands. ``negate_a``
    and ``negate_b`` negate A and B, which must be floating-point (an input scale of -1).
    """

    name = "cute_nvgpu.atom.wgmma"
    ASYNCHRONOUS: ClassVar[bool] = True
    OPTIONS: ClassVar[frozenset[str]] = frozenset({"A", "major", "saturate", "negate"})

    @classmethod
    def find(cls, key: MmaKey, names: tuple[str, str, str, str]) -> MmaAtom:
        from cute_dialect.arch.table import find_wgmma  # late: start-up

        return find_wgmma(*wgmma_key(key, names, 256, "wgmma"))


def wgmma_key(
    key: MmaKey, names: tuple[str, str, str, str], depth_bits: int, what: str
) -> tuple[int, tuple[str, str, str], str, tuple[str, str], bool]:
    """Return the arguments of ``find_wgmma``. Raises AtomError for a shape that does not exist.

    ``depth_bits`` is the width of K elements of A in bits.
    """
    d, a, b, c = names
    m, n, k = key.shape
    if c != d:
        raise AtomError(f"C has elements {c}; they must be those of D, {d}")
    depth = depth_bits // bits_of(a)
    if m != 64 or k != depth:
        raise AtomError(f"{m}x{n}x{k} is not supported by {what} on {a}; use 64x{n}x{depth}")
    if key.negate and d == "i32":
        raise AtomError(f"negated operands must be floating-point, got {a} and {b}")
    return n, (d, a, b), key.source_a, key.majors, key.saturate


ATTRS: list[type[Attribute]] = [WgmmaType]


@cute_op
class WgmmaOp(MmaInstructionOp):
    """Issues one ``wgmma.mma_async`` per warpgroup: ``D = A * B + D`` if it accumulates, otherwise ``D = A * B``.

    Syntax: ``cute_nvgpu.arch.wgmma(%D, %A, %B [, %scale_d]) {accumulate = true, atom = ATOM} : (D, A, B [, i1]) -> ()``

    ``%scale_d`` selects between the two at run time; ``accumulate`` must then be true. B, and A unless it is in
    registers, are tiles of one instruction in shared memory; layout, swizzle and address determine their matrix
    descriptors. A ``wgmma_fence`` must precede the first ``wgmma`` of a batch. D may be read after
    ``wgmma_commit_group`` and ``wgmma_wait_group``.

    Example:
        cute_nvgpu.arch.wgmma(%d, %a, %b) {accumulate = false, atom = !cute_nvgpu.atom.wgmma<64x8x16, (f32,f16,f16,f32), A = smem, major = (k, k)>} : (!cute.memref<f32, rmem, align<16>, "(2,2,1):(1,2,0)">, !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(64,16):(64,1)">, !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(8,16):(64,1)">) -> ()
    """  # noqa: E501

    name = "cute_nvgpu.arch.wgmma"
    WRITES = "struct"
    OPERANDS: ClassVar[tuple[str, ...]] = ("D", "A", "B")
    FLAGS: ClassVar[int] = 1
    d = operand_def(MemRefType)
    a = operand_def(MemRefType)
    b = operand_def(MemRefType)
    scale_d = opt_operand_def(i1)
    atom = prop_def(WgmmaType)
    accumulate = prop_def(BoolAttr)

    def check_types(self) -> None:
        """Raise AlgebraError unless the operands and flags match the atom."""
        super().check_types()
        check_scale_d(self)


def check_scale_d(op: MmaInstructionOp) -> None:
    """Raise AlgebraError unless ``%scale_d`` and ``accumulate`` are consistent."""
    accumulate = op.properties["accumulate"]
    assert isinstance(accumulate, IntegerAttr)
    for i, flag in enumerate(op.operands[len(op.OPERANDS) :], len(op.OPERANDS)):
        if flag.type != i1:
            raise AlgebraError(f"operand #{i} must be an i1, got {flag.type}")
        if not accumulate.value.data:
            raise AlgebraError("accumulate must be true if there is a scale_d operand, got false")


class _AccumulatorsOp(InstructionOp):
    """Base of the ops with accumulator operands. The accumulators pass through, so that no access to them moves across
    the op.
    """

    WRITES = "tied"

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        for i, t in enumerate(operand_types):
            expect(t, MemRefType, i, "an accumulator tensor in rmem")
            assert isinstance(t, MemRefType)
            if not t.space.per_thread:
                raise AlgebraError(f"operand #{i} must be an accumulator tensor in rmem, got {t}")
            if isinstance(t.layout, ComposedLayout) or not is_static(t.layout):
                raise AlgebraError(f"operand #{i} must have a static plain layout, got {payload_text(t.layout)}")
        return []


@cute_op
class WgmmaFenceOp(_AccumulatorsOp):
    """Orders register accesses before the following ``wgmma``.

    Syntax: ``cute_nvgpu.arch.wgmma_fence(%acc…) : (T…) -> ()``

    The fence is required before the first ``wgmma``, and after other instructions have written registers of a
    ``wgmma``.

    Example:
        cute_nvgpu.arch.wgmma_fence() : () -> ()
    """

    name = "cute_nvgpu.arch.wgmma_fence"
    accumulators = var_operand_def(MemRefType)

    def __init__(self, *accumulators: SSAValue):
        super().__init__(operands=[list(accumulators)])


@cute_op
class WgmmaCommitGroupOp(InstructionOp):
    """Commits all ``wgmma`` issued since the last commit to a group.

    Syntax: ``cute_nvgpu.arch.wgmma_commit_group() : () -> ()``

    Example:
        cute_nvgpu.arch.wgmma_commit_group() : () -> ()
    """

    name = "cute_nvgpu.arch.wgmma_commit_group"

    def __init__(self) -> None:
        super().__init__()

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        expect_operands(operand_types, 0)
        return []


@cute_op
class WgmmaWaitGroupOp(_AccumulatorsOp):
    """Waits until at most ``n`` of the most recent groups are pending.

    Syntax: ``cute_nvgpu.arch.wgmma_wait_group(%acc…) {n = 0 : i32} : (T…) -> ()``

    Pass the accumulators that are read afterwards as operands, so that no read of them moves before the wait.

    Example:
        cute_nvgpu.arch.wgmma_wait_group() {n = 1 : i32} : () -> ()
    """

    name = "cute_nvgpu.arch.wgmma_wait_group"
    accumulators = var_operand_def(MemRefType)
    n = prop_def(IntegerAttr)

    def __init__(self, *accumulators: SSAValue, n: int = 0):
        super().__init__(operands=[list(accumulators)], properties={"n": IntegerAttr(n, i32)})

    def check_types(self) -> None:
        """Raise AlgebraError unless the operands are accumulators and ``n`` is in range."""
        super().check_types()
        n = self.properties["n"]
        if n not in [IntegerAttr(i, i32) for i in range(8)]:
            raise AlgebraError(f"property n is {n}; use 0 to 7 of type i32")


OPS = ops_of(__name__)
