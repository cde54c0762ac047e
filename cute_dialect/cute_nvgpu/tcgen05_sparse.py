"""MMA of tensor memory with a sparse A: the atom type, and ``cute_nvgpu.arch.tcgen05_mma_sp`` for one instruction.

``cute.sparse_gemm`` takes A as the kept elements, and the metadata E as a tensor of words in tensor memory
(:mod:`cute_dialect.arch.tcgen05_sparse`)::

    cute.sparse_gemm(%mma, %d, %a, %b, %e, %d) : …
    →
    cute_nvgpu.arch.tcgen05_mma_sp(%d, %a0, %b0, %e0) {selector = 0 : i32, …} : …
    cute_nvgpu.arch.tcgen05_mma_sp(%d, %a1, %b1, %e0) {selector = 1 : i32, …} : …

``tmem_copy`` with the shape 128x128b writes 4 columns of E.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from xdsl.dialects.builtin import BoolAttr, IntegerAttr
from xdsl.ir import Attribute
from xdsl.irdl import irdl_attr_definition, operand_def, opt_prop_def, prop_def, var_operand_def

from cute_dialect.algebra.layout import coalesce
from cute_dialect.algebra.leaf import AlgebraError
from cute_dialect.algebra.values import Layout
from cute_dialect.arch.tcgen05_sparse import (
    ALIGNED_COLUMNS,
    BLOCK_COLUMNS,
    columns_of,
    metadata_fragment,
    metadata_layout,
)
from cute_dialect.cute_nvgpu.tcgen05 import Tcgen05AtomType, Tcgen05InstructionOp
from cute_dialect.dialect.base import cute_op, ops_of
from cute_dialect.dialect.memory_types import MemRef, MemRefType, PtrType, ptr
from cute_dialect.dialect.typed_values import payload_text
from cute_dialect.spaces import AddressSpace

ALIGNMENT = 4 * BLOCK_COLUMNS
"""Alignment of a tensor of metadata in tensor memory, in bytes: the columns that one copy writes."""


@irdl_attr_definition
class Tcgen05MmaSpType(Tcgen05AtomType):
    """``!cute_nvgpu.atom.tcgen05_mma_sp<MxNxK, (D,A,B,C), A = smem|tmem, major = (k|mn, k|mn) [, saturate] [, cta_group
    = 2] [, negate_a] [, negate_b] [, kind = K, sf = S, vec = V]>``

    ``tcgen05.mma`` with a sparse A, whose options are those of ``tcgen05_mma``. K is twice that of the dense atom. M is
    128, or 256 with ``cta_group = 2``, and N a multiple of 16, or of 32 with ``cta_group = 2``.

    A is ``(M, K/2)``: half of each group of 4 elements in a row is kept (2 of tf32, 8 of mxf4 and mxf4nvf4). The
    metadata E is in tensor memory. ``vec`` is that of the dense atom, so that a factor scales ``2 * vec`` elements
    along K.
    """

    name = "cute_nvgpu.atom.tcgen05_mma_sp"
    SPARSE: ClassVar[bool] = True

    @property
    def metadata_columns(self) -> int:
        """Columns of E that one instruction reads."""
        return columns_of(self.row)

    def tmem_fragment(self, operand: str, part: Layout) -> MemRefType:
        if operand != "E":
            return super().tmem_fragment(operand, part)
        shape = part.shape
        assert isinstance(shape, tuple)
        _, m, k = (*shape, 1, 1)[:3]
        if len(shape) > 3 or not isinstance(m, int) or not isinstance(k, int):
            raise AlgebraError(f"the partition of E has the shape {payload_text(shape)}; use (V,RestM,RestK)")
        layout = metadata_fragment(self.row, (m, k))
        return MemRefType(MemRef(ptr(self.element("E"), AddressSpace.tmem, ALIGNMENT), layout))

    def check_tmem_operand(self, operand: str, t: MemRefType, values: Layout) -> None:
        if operand != "E":
            super().check_tmem_operand(operand, t, values)
            return
        wanted = metadata_layout(self.row)
        if coalesce(values) != coalesce(wanted):
            raise AlgebraError(
                f"mode V of E is {payload_text(values)} of {t}; {self} needs {payload_text(wanted)}, as "
                "cute.tiled.mma.make_fragment_E returns it"
            )
        if t.alignment < ALIGNMENT:
            raise AlgebraError(
                f"E is aligned to {t.alignment} bytes ({t}); it must be aligned to {ALIGNMENT} bytes, {BLOCK_COLUMNS} "
                "columns"
            )


ATTRS: list[type[Attribute]] = [Tcgen05MmaSpType]


@cute_op
class Tcgen05MmaSpOp(Tcgen05InstructionOp):
    """Issues one ``tcgen05.mma.sp``, with a sparse A: ``D = A * B + D`` if it accumulates, otherwise ``D = A * B``.

    Syntax: ``cute_nvgpu.arch.tcgen05_mma_sp(%D, %A, %B, %E [, %SFA, %SFB] [, %accumulate]) {accumulate = true, selector
    = 0 : i32, sf_a = 0 : i32, sf_b = 0 : i32, atom = ATOM} : (D, A, B, E [, SFA, SFB] [, i1]) -> ()``

    One thread issues it. A holds the kept elements, 32 bytes per row; B is 64 bytes deep. ``%E`` points to the first of
    two columns of metadata, which ``tmem_copy`` writes. For elements of 16 and 32 bits the instruction reads one of
    them, ``selector``; for others it reads both, and ``selector`` is 0. An atom with block scales needs ``%SFA``,
    ``%SFB``, ``sf_a`` and ``sf_b``, as for ``tcgen05_scaled_mma``.

    Example:
        cute_nvgpu.arch.tcgen05_mma_sp(%d, %a, %b, %p) {accumulate = false, selector = 1 : i32, atom = !cute_nvgpu.atom.tcgen05_mma_sp<128x64x32, (f32,f16,f16,f32), A = smem, major = (k, k)>} : (!cute.memref<f32, tmem, "(128,64):(65536,1)">, !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(128,16):(64,1)">, !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(64,32):(64,1)">, !cute.ptr<i16, tmem, align<16>>) -> ()
    """  # noqa: E501

    name = "cute_nvgpu.arch.tcgen05_mma_sp"
    d = operand_def(MemRefType)
    a = operand_def(MemRefType)
    b = operand_def(MemRefType)
    e = operand_def(PtrType)
    rest = var_operand_def()
    atom = prop_def(Tcgen05MmaSpType)
    accumulate = prop_def(BoolAttr)
    selector = opt_prop_def(IntegerAttr)
    sf_a = opt_prop_def(IntegerAttr)
    sf_b = opt_prop_def(IntegerAttr)

    def pointers(self, atom: Tcgen05AtomType) -> Sequence[str]:
        return ("E", *super().pointers(atom))

    def numbers(self, atom: Tcgen05AtomType) -> Mapping[str, tuple[Sequence[int], str]]:
        assert isinstance(atom, Tcgen05MmaSpType)
        selectors = range(ALIGNED_COLUMNS // atom.metadata_columns)
        known = f"0 to {selectors[-1]}" if len(selectors) > 1 else "0"
        return {"selector": (selectors, f"{{n}}; an MMA on {atom.row.a} needs {known}"), **super().numbers(atom)}


OPS = ops_of(__name__)
