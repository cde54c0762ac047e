"""The TMA instructions: one op each, and how machine-level ops are written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import StringAttr, i16, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import operand_def, traits_def, var_operand_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect

from cute_dialect.algebra.leaf import AlgebraError
from cute_dialect.memory_types import ConstrainedIntType, PtrType, integer_width
from cute_dialect.nvgpu_tma_types import TmaAtomType, TmaLoadType, TmaMap, TmaReduceType, TmaStoreType
from cute_dialect.ops.asm import parse_operand_list, print_operand_list
from cute_dialect.ops.base import Properties, cute_op
from cute_dialect.ops.tma_copy import check_alignment
from cute_dialect.ops.views import MemoryOp, expect, expect_operands


class MachineOp(MemoryOp):
    """``%r, … = op(%a, …) {prop = …} : (T, …) -> (R, …)``; one result stands without parentheses, none is ``()``."""

    WORDS: ClassVar[tuple[str, ...]] = ()
    """Properties that are strings and are written as bare words."""

    @classmethod
    def parse(cls, parser: Parser) -> Operation:
        operands = parse_operand_list(parser)
        properties: dict[str, Attribute] = {}
        attributes: dict[str, Attribute] = {}
        declared = cls.get_irdl_definition().properties

        def one() -> None:
            name = parser.parse_identifier()
            if parser.parse_optional_punctuation("=") is None:
                parser.raise_error(f"expected '=' and a value after '{name}'")
            word = parser.parse_optional_identifier() if name in cls.WORDS else None
            value = StringAttr(word) if word is not None else parser.parse_attribute()
            (properties if name in declared else attributes)[name] = value

        if parser.parse_optional_punctuation("{") is not None:
            parser.parse_comma_separated_list(parser.Delimiter.NONE, one)
            parser.parse_punctuation("}")
        parser.parse_punctuation(":")
        at = parser.pos
        types = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
        parser.parse_punctuation("->")
        results = parser.parse_optional_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
        if results is None:
            results = [parser.parse_type()]
        return cls.create(
            operands=parser.resolve_operands(operands, types, at),
            result_types=results,
            properties=properties,
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        print_operand_list(printer, self.operands)
        entries = sorted({**self.properties, **self.attributes}.items())
        if entries:
            printer.print_string(" {")
            for i, (name, value) in enumerate(entries):
                printer.print_string(f"{', ' if i else ''}{name} = ")
                if name in self.WORDS and isinstance(value, StringAttr) and value.data.isidentifier():
                    printer.print_string(value.data)
                else:
                    printer.print_attribute(value)
            printer.print_string("}")
        printer.print_string(" : ")
        with printer.in_parens():
            printer.print_list(self.operand_types, printer.print_attribute)
        printer.print_string(" -> ")
        if len(self.results) == 1:
            printer.print_attribute(self.result_types[0])
        else:
            with printer.in_parens():
                printer.print_list(self.result_types, printer.print_attribute)


def is_barrier(t: Attribute) -> bool:
    """Whether a type is that of a pointer to an mbarrier."""
    return isinstance(t, PtrType) and t.data.space == "smem" and t.data.element == i64


class _TmaInstruction(MachineOp):
    """``(%map, %c0, …, %smem …)``: i32 coordinates, innermost first; shared memory that holds one box."""

    ATOM: ClassVar[type[TmaAtomType]]
    SMEM: ClassVar[bool] = True
    """Whether shared memory follows the coordinates."""

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        if not operand_types:
            raise AlgebraError("expected a tensor map, coordinates and shared memory, got no operands")
        atom = operand_types[0]
        expect(atom, cls.ATOM, 0, f"a !{cls.ATOM.name}")
        assert isinstance(atom, TmaAtomType)
        rank = atom.data.rank
        if len(operand_types) < rank + 1 + cls.SMEM:
            wanted = f"{rank} coordinates and shared memory" if cls.SMEM else f"{rank} coordinates"
            raise AlgebraError(f"expected {wanted}, got {len(operand_types) - 1} of these")
        for i, t in enumerate(operand_types[1 : 1 + rank], 1):
            if (t.width if isinstance(t, ConstrainedIntType) else integer_width(t)) != 32:
                raise AlgebraError(f"operand #{i} must be an i32 coordinate ({rank} dimensions), got {t}")
        if cls.SMEM:
            smem = operand_types[1 + rank]
            if not isinstance(smem, PtrType) or smem.data.space != "smem" or smem.data.element != atom.element:
                raise AlgebraError(f"operand #{1 + rank} must be a !cute.ptr<{atom.element}, smem>, got {smem}")
            cls.check_swizzle(atom.data, smem)
        at = 1 + rank + cls.SMEM
        cls.check_rest(operand_types[at:], at)
        return []

    @classmethod
    def check_swizzle(cls, m: TmaMap, smem: PtrType) -> None:
        """Raise AlgebraError if the pointer carries another swizzle, or is not aligned enough for an instruction."""
        from cute_dialect.arch.gmma import SWIZZLES

        swizzle = smem.data.swizzle
        if swizzle is not None and (swizzle.base, swizzle.shift, SWIZZLES[min(swizzle.bits, 3)]) != (4, 3, m.swizzle):
            raise AlgebraError(f"expected smem with a swizzle of {m.swizzle} bytes, as the tensor map has, got {smem}")
        check_alignment(m._replace(swizzle=0), smem.data.alignment, str(smem))

    @classmethod
    def check_rest(cls, types: Sequence[Attribute], at: int) -> None:
        """Raise AlgebraError unless what follows shared memory is as it should be."""
        if list(types) not in ([], [i64]):
            raise AlgebraError(
                f"expected at most an i64 cache hint from operand #{at}, got {', '.join(map(str, types))}"
            )


@cute_op
class ArchTmaLoadOp(_TmaInstruction):
    """Load one box; the barrier counts its bytes.  One thread issues it.

    Syntax: ``cute_nvgpu.arch.tma_load(%map, %c0, …, %smem, %bar [, %mask : i16] [, %hint : i64]) : (…) -> ()``

    PTX ISA 9.7.9.25.5.2 "cp.async.bulk.tensor".

    Example:
        cute_nvgpu.arch.tma_load(%map, %x, %y, %smem, %bar) : (!cute_nvgpu.atom.tma_load<f16, box = (64, 128), swizzle = 128>, i32, i32, !cute.ptr<f16, smem, align<1024>, S<3,4,3>>, !cute.ptr<i64, smem>) -> ()
    """  # noqa: E501

    name = "cute_nvgpu.arch.tma_load"
    args = var_operand_def()
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    ATOM = TmaLoadType

    def __init__(self, operands: Sequence[SSAValue]):
        super().__init__(operands=[list(operands)])

    @classmethod
    def check_rest(cls, types: Sequence[Attribute], at: int) -> None:
        if not types or not is_barrier(types[0]):
            raise AlgebraError(f"operand #{at} must be a !cute.ptr<i64, smem>, the barrier, got {_shown(types)}")
        if list(types[1:]) not in ([], [i16], [i64], [i16, i64]):
            raise AlgebraError(
                f"expected at most an i16 mask and an i64 cache hint from operand #{at + 1}, got {_shown(types[1:])}"
            )


def _shown(types: Sequence[Attribute]) -> str:
    return ", ".join(map(str, types)) or "none"


@cute_op
class ArchTmaStoreOp(_TmaInstruction):
    """Store one box, in the bulk group at hand.  One thread issues it, after a fence of the async proxy.

    Syntax: ``cute_nvgpu.arch.tma_store(%map, %c0, …, %smem [, %hint : i64]) : (…) -> ()``

    PTX ISA 9.7.9.25.5.2 "cp.async.bulk.tensor".

    Example:
        cute_nvgpu.arch.tma_store(%map, %x, %y, %smem) : (!cute_nvgpu.atom.tma_store<f16, box = (64, 128)>, i32, i32, !cute.ptr<f16, smem, align<128>>) -> ()
    """  # noqa: E501

    name = "cute_nvgpu.arch.tma_store"
    args = var_operand_def()
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    ATOM = TmaStoreType

    def __init__(self, operands: Sequence[SSAValue]):
        super().__init__(operands=[list(operands)])


@cute_op
class ArchTmaReduceOp(_TmaInstruction):
    """Combine one box with global memory, in the bulk group at hand; as ``tma_store``.

    PTX ISA 9.7.9.25.5.3 "cp.reduce.async.bulk.tensor".

    Example:
        cute_nvgpu.arch.tma_reduce(%map, %x, %y, %smem) : (!cute_nvgpu.atom.tma_reduce<f32, add, box = (32, 64)>, i32, i32, !cute.ptr<f32, smem, align<128>>) -> ()
    """  # noqa: E501

    name = "cute_nvgpu.arch.tma_reduce"
    args = var_operand_def()
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    ATOM = TmaReduceType

    def __init__(self, operands: Sequence[SSAValue]):
        super().__init__(operands=[list(operands)])


@cute_op
class ArchPrefetchTensormapOp(MachineOp):
    """Fetch a tensor map into the cache, before its first use.

    PTX ISA 9.7.9.16 "prefetch, prefetchu".

    Example:
        cute_nvgpu.arch.prefetch_tensormap(%map) : (!cute_nvgpu.atom.tma_load<f16, box = (64, 128), swizzle = 128>) -> ()
    """  # noqa: E501

    name = "cute_nvgpu.arch.prefetch_tensormap"
    atom = operand_def()
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(self, atom: SSAValue):
        super().__init__(operands=[atom])

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        expect_operands(operand_types, 1)
        atom = operand_types[0]
        if not atom.name.startswith("cute_nvgpu.atom.tma_"):
            raise AlgebraError(f"operand #0 must be a TMA atom, got {atom}")
        return []


@cute_op
class ArchTmaPrefetchOp(_TmaInstruction):
    """Bring one box into the L2 cache.

    Syntax: ``cute_nvgpu.arch.tma_prefetch(%map, %c0, … [, %hint : i64]) : (…) -> ()``

    PTX ISA 9.7.9.25.5.4 "cp.async.bulk.prefetch.tensor".

    Example:
        cute_nvgpu.arch.tma_prefetch(%map, %x, %y) : (!cute_nvgpu.atom.tma_load<f16, box = (64, 128), swizzle = 128>, i32, i32) -> ()
    """  # noqa: E501

    name = "cute_nvgpu.arch.tma_prefetch"
    args = var_operand_def()
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    ATOM = TmaLoadType
    SMEM = False


OPS: list[type[Operation]] = [
    ArchTmaLoadOp,
    ArchTmaStoreOp,
    ArchTmaReduceOp,
    ArchTmaPrefetchOp,
    ArchPrefetchTensormapOp,
]
"""Ops of ``cute_nvgpu``."""
