"""Matrix instructions of one thread and of one warp, and their atom types: ``fma``, ``dp4a``, ``mma.sync``."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, ClassVar

from xdsl.ir import Attribute
from xdsl.irdl import irdl_attr_definition, operand_def, prop_def, var_operand_def

from cute_dialect.arch.errors import AtomError
from cute_dialect.cute_nvgpu.gemm import MmaInstructionOp
from cute_dialect.cute_nvgpu.tiled_mma import MmaAtomType, MmaKey
from cute_dialect.dialect.base import cute_op, ops_of
from cute_dialect.dialect.memory_types import MemRefType

if TYPE_CHECKING:
    from cute_dialect.arch.atom import MmaAtom


@cache
def _rows_by_types(prefixes: tuple[str, ...]) -> dict[tuple[tuple[int, int, int], tuple[str, ...]], str]:
    from cute_dialect.arch.atom import MmaAtom  # late: start-up
    from cute_dialect.arch.table import ATOMS  # late: start-up

    rows = [ATOMS[name] for name in ATOMS if name.startswith(prefixes)]
    return {(r.shape_mnk, (r.d, r.a, r.b, r.c)): r.name for r in rows if isinstance(r, MmaAtom)}


def _find_by_types(key: MmaKey, names: tuple[str, ...], prefix: str, what: str) -> MmaAtom:
    from cute_dialect.arch.table import mma_atom  # late: start-up

    rows = _rows_by_types((prefix,))
    found = rows.get((key.shape, names))
    if found is None:
        known = "; ".join(f"{'x'.join(map(str, s))} ({','.join(t)})" for s, t in rows)
        raise AtomError(
            f"{'x'.join(map(str, key.shape))} ({','.join(names)}) is not supported; use one of these {what}: {known}"
        )
    return mma_atom(found)


@irdl_attr_definition
class UniversalFmaType(MmaAtomType):
    """``!cute_nvgpu.atom.universal_fma<1x1x1, (D,A,B,C)>``: ``fma`` of one thread; ``mad`` for i32."""

    name = "cute_nvgpu.atom.universal_fma"

    @classmethod
    def find(cls, key: MmaKey, names: tuple[str, str, str, str]) -> MmaAtom:
        return _find_by_types(key, names, "UniversalFMA_", "multiply-adds")


@irdl_attr_definition
class DotProductType(MmaAtomType):
    """``!cute_nvgpu.atom.dot_product<1x1x4, (i32,i8,i8,i32)>``: ``dp4a``; 1x1x2 with (i32,i16,i8,i32) is
    ``dp2a.lo``.
    """

    name = "cute_nvgpu.atom.dot_product"

    @classmethod
    def find(cls, key: MmaKey, names: tuple[str, str, str, str]) -> MmaAtom:
        return _find_by_types(key, names, "SM61_", "dot products")


@irdl_attr_definition
class MmaSyncType(MmaAtomType):
    """``!cute_nvgpu.atom.mma_sync<MxNxK, (D,A,B,C) [, major = (k|mn, k|mn)] [, saturate] [, xor|and]
    [, kind = KIND [, sf = SF, vec = V]]>``

    ``saturate`` clamps integer accumulators to their range. ``xor`` and ``and`` select the operation on single bits,
    before the population count. Majors other than ``(k, k)`` exist only for 8x8x4 with f16.

    ``kind`` selects the instructions of sm_120 on elements of 8, 6 and 4 bits: ``f8f6f4``, or with scale factors
    ``mxf8f6f4`` (ue8m0 per 32 elements along K), ``mxf4`` (the same, 4 bits only) or ``mxf4nvf4`` (ue4m3 per 16).
    ``sf`` and ``vec`` state the factors; they follow from the kind. Elements of 6 and 4 bits of the first two kinds are
    one per byte, with fragments of ``i8`` (:mod:`cute_dialect.arch.sm120`).
    """

    name = "cute_nvgpu.atom.mma_sync"
    OPTIONS: ClassVar[frozenset[str]] = frozenset({"major", "saturate", "bit_op", "kind", "sf", "vec"})

    @classmethod
    def find(cls, key: MmaKey, names: tuple[str, str, str, str]) -> MmaAtom:
        from cute_dialect.arch.table import find_mma_sync, find_narrow_mma  # late: start-up

        check_kind(key)
        if key.kind:
            return find_narrow_mma(key.shape, names, key.kind, key.sf, key.vec)
        return find_mma_sync(key.shape, names, key.majors, key.saturate, key.bit_op)


def check_kind(key: MmaKey) -> None:
    """Raise AtomError for options that the instructions of sm_120 lack, or for factors without a kind."""
    if key.kind and (key.saturate or key.bit_op or key.majors != ("k", "k")):
        raise AtomError(f"kind = {key.kind} has k-major operands and no 'saturate', 'xor' or 'and'; remove them")
    if not key.kind and (key.sf or key.vec):
        raise AtomError("sf and vec need a kind; write kind = mxf8f6f4, mxf4 or mxf4nvf4")


ATTRS: list[type[Attribute]] = [UniversalFmaType, DotProductType, MmaSyncType]


class _SeparateAccumulatorOp(MmaInstructionOp):
    """Instruction ``(%D, %A, %B, %C)`` whose result D and accumulator C are separate operands."""

    d = operand_def(MemRefType)
    a = operand_def(MemRefType)
    b = operand_def(MemRefType)
    c = operand_def(MemRefType)


@cute_op
class FmaOp(_SeparateAccumulatorOp):
    """Issues one multiply-add per thread.

    Syntax: ``cute_nvgpu.arch.fma(%D, %A, %B, %C) {atom = ATOM} : (D, A, B, C) -> ()``

    Example:
        cute_nvgpu.arch.fma(%d, %a, %b, %d) {atom = !cute_nvgpu.atom.universal_fma<1x1x1, (f32,f32,f32,f32)>} : (!cute.memref<f32, rmem, "1:0">, !cute.memref<f32, rmem, "1:0">, !cute.memref<f32, rmem, "1:0">, !cute.memref<f32, rmem, "1:0">) -> ()
    """  # noqa: E501

    name = "cute_nvgpu.arch.fma"
    atom = prop_def(UniversalFmaType)


@cute_op
class DotProductOp(_SeparateAccumulatorOp):
    """Issues one ``dp4a`` or ``dp2a`` per thread.

    Syntax: ``cute_nvgpu.arch.dot_product(%D, %A, %B, %C) {atom = ATOM} : (D, A, B, C) -> ()``
    """

    name = "cute_nvgpu.arch.dot_product"
    atom = prop_def(DotProductType)


@cute_op
class MmaSyncOp(_SeparateAccumulatorOp):
    """Issues one ``mma.sync`` per warp. Each operand is a view of one thread's values of one atom, in the order of the
    atom. SFA and SFB are the scale factors of an atom that has them.

    Syntax: ``cute_nvgpu.arch.mma_sync(%D, %A, %B, %C [, %SFA, %SFB]) {atom = ATOM} : (D, A, B, C [, SFA, SFB]) -> ()``

    Example:
        cute_nvgpu.arch.mma_sync(%d, %a, %b, %d) {atom = !cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>} : (!cute.memref<f32, rmem, align<16>, "(2,2):(1,2)">, !cute.memref<f16, rmem, align<16>, "(2,2,2):(1,2,4)">, !cute.memref<f16, rmem, align<8>, "(2,2):(1,2)">, !cute.memref<f32, rmem, align<16>, "(2,2):(1,2)">) -> ()
    """  # noqa: E501

    name = "cute_nvgpu.arch.mma_sync"
    scales = var_operand_def(MemRefType)
    atom = prop_def(MmaSyncType)


OPS = ops_of(__name__)
