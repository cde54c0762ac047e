"""Copy instructions, ``cute_nvgpu.arch.*``: one op an instruction, over views of the values a thread has in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import i1
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import attr_def, operand_def, opt_operand_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from cute_dialect.algebra.leaf import AlgebraError
from cute_dialect.algebra.values import ComposedLayout, raw_layout
from cute_dialect.memory_types import CopyAtomType, MemRefType
from cute_dialect.nvgpu_copy_types import LdsmType, SimtAsyncCopyType, StsmType
from cute_dialect.ops.base import Properties, cute_op
from cute_dialect.ops.views import MemoryOp, expect, expect_operands, parse_no_result, print_no_result


class _InstructionOp(MemoryOp):
    """One instruction of a copy atom; both sides hold exactly the values of one thread in one instruction."""

    ATOM: ClassVar[type[CopyAtomType]]

    def __init__(self, atom: CopyAtomType, source: SSAValue, destination: SSAValue, *rest: SSAValue):
        Operation.__init__(self, operands=[source, destination, *rest], attributes={"atom": atom})

    def verify_(self) -> None:
        from cute_dialect.ops.copy_checks import check_copy

        try:
            types = self.operand_types
            expect_operands(types, 2, 3 if self.ATOM is SimtAsyncCopyType else 2)
            atom = self.attributes.get("atom")
            assert isinstance(atom, self.ATOM)
            for i, t in enumerate(types[:2]):
                expect(t, MemRefType, i, "a !cute.memref")
            if len(types) == 3 and types[2] != i1:
                raise AlgebraError(f"operand #2 must be i1, got {types[2]}")
            source, destination = check_copy(atom, _as_values(types[0]), _as_values(types[1]), None)
            for what, side in (("source", source), ("destination", destination)):
                if any(n != 1 for n in side.counts):
                    raise AlgebraError(f"expected the values of one instruction in the {what}, got more")
        except AlgebraError as e:
            raise VerifyException(f"'{self.name}' op {e}") from None

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        return []

    @classmethod
    def parse(cls, parser: Parser) -> Operation:
        return parse_no_result(cls, parser)

    def print(self, printer: Printer) -> None:
        print_no_result(self, printer)


def _as_values(t: Attribute) -> Attribute:
    """The same tensor with one mode, that of the values."""
    assert isinstance(t, MemRefType)
    layout = t.layout
    if isinstance(layout, ComposedLayout) or not isinstance(layout.shape, tuple):
        return t
    assert isinstance(layout.stride, tuple)
    return t.with_layout(raw_layout((layout.shape,), (layout.stride,)))


@cute_op
class CpAsyncOp(_InstructionOp):
    """One ``cp.async``; with a predicate the destination is zero-filled where it is false, and nothing is read.

    Syntax: ``cute_nvgpu.arch.cp_async(%gmem, %smem [, %pred]) {atom = ATOM} : (G, S [, i1]) -> ()``

    Example:
        cute_nvgpu.arch.cp_async(%g, %s) {atom = !cute_nvgpu.atom.simt_async_copy<f16, cache = global, 128 b>} : (!cute.memref<f16, gmem, align<16>, "8:1">, !cute.memref<f16, smem, align<16>, "8:1">) -> ()
    """  # noqa: E501

    name = "cute_nvgpu.arch.cp_async"
    ATOM: ClassVar[type[CopyAtomType]] = SimtAsyncCopyType
    source = operand_def(MemRefType)
    destination = operand_def(MemRefType)
    pred = opt_operand_def(i1)
    atom = attr_def(SimtAsyncCopyType)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())


@cute_op
class LdmatrixOp(_InstructionOp):
    """One ``ldmatrix``: ``%smem`` is the row whose address this thread gives, ``%rmem`` what it gets.

    Syntax: ``cute_nvgpu.arch.ldmatrix(%smem, %rmem) {atom = ATOM} : (S, R) -> ()``

    Example:
        cute_nvgpu.arch.ldmatrix(%s, %r) {atom = !cute_nvgpu.atom.ldsm<val_type = f16, num_matrices = 4, n>} : (!cute.memref<f16, smem, align<16>, "8:1">, !cute.memref<f16, rmem, "(2,4):(1,2)">) -> ()
    """  # noqa: E501

    name = "cute_nvgpu.arch.ldmatrix"
    ATOM: ClassVar[type[CopyAtomType]] = LdsmType
    source = operand_def(MemRefType)
    destination = operand_def(MemRefType)
    atom = attr_def(LdsmType)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())


@cute_op
class StmatrixOp(_InstructionOp):
    """One ``stmatrix`` (sm_90): ``%smem`` is the row whose address this thread gives, ``%rmem`` what it holds.

    Syntax: ``cute_nvgpu.arch.stmatrix(%rmem, %smem) {atom = ATOM} : (R, S) -> ()``

    Example:
        cute_nvgpu.arch.stmatrix(%r, %s) {atom = !cute_nvgpu.atom.stsm<val_type = f16, num_matrices = 2, t>} : (!cute.memref<f16, rmem, "4:1">, !cute.memref<f16, smem, align<16>, "8:1">) -> ()
    """  # noqa: E501

    name = "cute_nvgpu.arch.stmatrix"
    ATOM: ClassVar[type[CopyAtomType]] = StsmType
    source = operand_def(MemRefType)
    destination = operand_def(MemRefType)
    atom = attr_def(StsmType)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())


OPS: list[type[Operation]] = [CpAsyncOp, LdmatrixOp, StmatrixOp]
"""Ops of ``cute_nvgpu``."""

CUTE_OPS: list[type[Operation]] = []
"""Ops of ``cute``."""
