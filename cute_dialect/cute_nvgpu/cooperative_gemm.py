"""``cute.cooperative_gemm``: the GEMM of two tiles by all threads of a tiled MMA, and its checks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, cast

from xdsl.dialects.builtin import BoolAttr, IntegerAttr
from xdsl.ir import Attribute, Operation
from xdsl.irdl import operand_def, opt_prop_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect

from cute_dialect.algebra.evaluation import size
from cute_dialect.algebra.leaf import AlgebraError
from cute_dialect.algebra.tiled_mma import OPERAND_MODES
from cute_dialect.algebra.trees import is_static
from cute_dialect.algebra.values import ComposedLayout, layout_modes
from cute_dialect.cute_nvgpu.gemm import gemm_operands
from cute_dialect.cute_nvgpu.tiled_mma import (
    MODES,
    PartitionAOp,
    PartitionBOp,
    PartitionCOp,
    TiledMmaType,
    check_element,
    fragment,
)
from cute_dialect.dialect.asm import print_operand_list
from cute_dialect.dialect.base import cute_op, ops_of
from cute_dialect.dialect.memory import fragment_like
from cute_dialect.dialect.memory_types import MemRefType, element_bits
from cute_dialect.dialect.typed_values import Properties, payload_text
from cute_dialect.dialect.types import CoordType
from cute_dialect.dialect.views import MemoryOp, expect, expect_operands, parse_no_result

PARTITIONS = {"A": PartitionAOp, "B": PartitionBOp, "C": PartitionCOp}
"""Operand -> op that returns a thread's partition of it."""


class OperandPartition(NamedTuple):
    """A thread's partition of an operand.

    ``tile`` is the partition of the tile in memory, or None for accumulators. ``fragment`` is the tensor that ``gemm``
    takes.
    """

    tile: MemRefType | None
    fragment: MemRefType


def cooperative_parts(types: Sequence[Attribute]) -> dict[str, OperandPartition]:
    """Return each thread's partitions of A, B and C.

    ``types`` are the types of the tiled MMA, C, A, B and the thread index. Raises AlgebraError that names the operand
    and mode for tiles that do not fit.
    """
    expect_operands(types, 5)
    mma, c, a, b, tid = types
    expect(mma, TiledMmaType, 0, "a !cute.tiled_mma")
    assert isinstance(mma, TiledMmaType)
    expect(tid, CoordType, 4, "a !cute.coord")
    if mma.atom.SPARSE:
        raise AlgebraError(
            f"the tiled MMA has a sparse atom ({mma}); use a dense one, or cute.sparse_gemm for a sparse A"
        )
    if size(layout_modes(mma.tiled.threads)[3]) != 1:
        raise AlgebraError(
            f"the tiled MMA has several atoms along K ({mma}), so threads would hold partial sums; use one atom along K"
        )
    parts: dict[str, OperandPartition] = {}
    extents: dict[str, tuple[str, int]] = {}
    for i, (operand, t) in enumerate((("C", c), ("A", a), ("B", b)), 1):
        expect(t, MemRefType, i, f"a !cute.memref, operand {operand}")
        assert isinstance(t, MemRefType)
        if t.space.per_thread:
            if operand != "C":
                raise AlgebraError(
                    f"{operand} is not in memory that the threads share ({t}); use a tile in gmem or smem"
                )
            parts[operand] = OperandPartition(None, t)
            continue
        check_element(mma.atom, operand, t)
        if element_bits(t.element) < 8:
            raise AlgebraError(f"{operand} has elements {t.element}; use elements of whole bytes")
        _check_tile(mma, operand, t, extents)
        (tile,) = PARTITIONS[operand].infer_types([mma, t, tid], {})
        assert isinstance(tile, MemRefType)
        parts[operand] = OperandPartition(tile, _fragment(mma, operand, tile))
    gemm_operands([mma, parts["C"].fragment, parts["A"].fragment, parts["B"].fragment])
    return parts


def _fragment(mma: TiledMmaType, operand: str, tile: MemRefType) -> MemRefType:
    if not mma.atom.in_shared_memory(operand) and tile.element != mma.atom.element(operand):
        return fragment_like(tile)  # tf32 operands are loaded and kept as f32.
    made = fragment(mma, operand, tile)
    assert isinstance(made, MemRefType)
    return made


def _check_tile(mma: TiledMmaType, operand: str, t: MemRefType, extents: dict[str, tuple[str, int]]) -> None:
    layout = t.layout
    if isinstance(layout, ComposedLayout):
        raise AlgebraError(
            f"the layout of {operand} is not plain ({payload_text(layout)}); use a plain layout and put a "
            "swizzle on the pointer"
        )
    names = MODES[operand]
    if not isinstance(layout.shape, tuple) or len(layout.shape) != 2:
        raise AlgebraError(f"the tile of {operand} is {payload_text(layout.shape)}; use ({','.join(names)})")
    if not is_static(layout.shape):
        raise AlgebraError(f"the shape of {operand} is not static ({payload_text(layout.shape)}); use static extents")
    for name, mode, at in zip(names, layout_modes(layout), OPERAND_MODES[operand]):
        n, whole = cast("int", size(mode)), cast("int", mma.tiled.tile_size[at])
        if n % whole:
            raise AlgebraError(
                f"{operand} has extent {n} along {name} in {payload_text(layout.shape)}; it must be a "
                f"multiple of {whole}, the tile of the MMA"
            )
        other, same = extents.setdefault(name, (operand, n))
        if same != n:
            raise AlgebraError(f"mode {name} of {other} and {operand} has extents {same} and {n}; they must be equal")


@cute_op
class CooperativeGemmOp(MemoryOp):
    """Multiplies whole tiles with all threads of a tiled MMA: ``C = C + A * B``.

    Syntax: ``cute.cooperative_gemm(%mma, %C, %A, %B, %tid) [{accumulate = false}] : (TM, C, A, B, !cute.coord<"?">) -> ()``

    ``%A`` is a tile ``(M,K)`` and ``%B`` a tile ``(N,K)`` in global or shared memory. Each extent is static and a
    multiple of the extent that all threads of the MMA cover. ``%C`` is a tile ``(M,N)`` in such memory, or the
    accumulators of the thread (``make_fragment_C``). A thread reads and writes only its own part of a tile ``%C``. With
    ``accumulate = false`` the op computes ``C = A * B``.

    Fragments are loaded with ``ldmatrix`` if alignment, layout and swizzle allow it. Otherwise the widest access that
    the types of both sides allow is used. Operands that ``wgmma`` reads from shared memory are not loaded. The product
    is complete when the op returns. The op does not synchronize otherwise. The tiles must be written and visible (to
    the async proxy, for ``wgmma``) before it.

    Example:
        cute.cooperative_gemm(%mma, %c, %sA, %sB, %k) : (!cute.tiled_mma<!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>, atom_layout_MNK = <"(2,2,1):(1,2,0)">>, !cute.memref<f32, smem, align<16>, "(64,32):(32,1)">, !cute.memref<f16, smem, align<16>, "(64,32):(32,1)">, !cute.memref<f16, smem, align<16>, "(32,32):(32,1)">, !cute.coord<"?">) -> ()
    """  # noqa: E501

    name = "cute.cooperative_gemm"
    mma = operand_def(TiledMmaType)
    c = operand_def(MemRefType)
    a = operand_def(MemRefType)
    b = operand_def(MemRefType)
    tid = operand_def(CoordType)
    accumulate = opt_prop_def(BoolAttr)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    @property
    def accumulates(self) -> bool:
        """True if the product is added to C."""
        return not isinstance(self.accumulate, IntegerAttr) or bool(self.accumulate.value.data)

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        cooperative_parts(operand_types)
        return []

    @classmethod
    def parse(cls, parser: Parser) -> Operation:
        op = parse_no_result(cls, parser)
        if "accumulate" in op.attributes:
            op.properties["accumulate"] = op.attributes.pop("accumulate")
        return op

    def print(self, printer: Printer) -> None:
        print_operand_list(printer, self.operands)
        given = {**self.properties, **self.attributes}
        if given:
            printer.print_op_attributes(given)
        printer.print_string(" : ")
        with printer.in_parens():
            printer.print_list(self.operand_types, printer.print_attribute)
        printer.print_string(" -> ()")


OPS = ops_of(__name__)
