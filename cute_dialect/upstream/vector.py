"""The vector dialect of upstream MLIR. Upstream parses vector.transfer_read and vector.transfer_write in C++."""

from collections.abc import Sequence
from typing import Self, cast

from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    BoolAttr,
    DenseArrayBase,
    IndexType,
    IntegerType,
    ShapedType,
    TensorType,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.parser import Parser
from xdsl.printer import Printer

from cute_dialect.upstream.attrs import attrs, opaque_types
from cute_dialect.upstream.constraints import Vector, element_type, is_vector, items
from cute_dialect.upstream.constraints import vector as make_vector
from cute_dialect.upstream.lazy import TableDialect
from cute_dialect.upstream.op import TableOp, make_ops
from cute_dialect.upstream.spec import SEGMENTS

_I32 = IntegerType(32)


def minor_identity(shaped: Attribute, vector: Vector) -> AffineMapAttr:
    """Return upstream's default permutation map: the identity on the last dimensions of `shaped`."""
    rank = len(cast("ShapedType", shaped).get_shape())
    inner = element_type(shaped)
    taken = vector.get_num_dims() - (inner.get_num_dims() if is_vector(inner) else 0)
    return AffineMapAttr(AffineMap(rank, 0, AffineMap.identity(rank).results[rank - taken :]))


def _defaults(properties: dict[str, Attribute], shaped: Attribute, vector: Vector) -> None:
    map_ = cast("AffineMapAttr", properties.setdefault("permutation_map", minor_identity(shaped, vector)))
    flags = [BoolAttr.from_bool(False)] * len(map_.data.results)
    properties.setdefault("in_bounds", ArrayAttr(flags))


class _TransferOp(TableOp):
    """Base of both transfer ops: handles the defaults of `in_bounds` and `permutation_map`."""

    def print_dict(self, printer: Printer, shaped: Attribute, vector: Vector) -> None:
        """Print the attribute dictionary without default values."""
        hidden: set[str] = set(SEGMENTS)
        if self.properties.get("permutation_map") == minor_identity(shaped, vector):
            hidden.add("permutation_map")
        if all(b == BoolAttr.from_bool(False) for b in items(self.properties.get("in_bounds"))):
            hidden.add("in_bounds")
        shown = {k: v for k, v in sorted(self.properties.items()) if k not in hidden}
        printer.print_op_attributes(shown | self.attributes)

    def print_indexed(self, printer: Printer, base: SSAValue, indices: Sequence[SSAValue]) -> None:
        """Print `%m[%i, %j]`."""
        printer.print_ssa_value(base)
        printer.print_string("[")
        printer.print_list(indices, printer.print_ssa_value)
        printer.print_string("]")

    @classmethod
    def types(cls, parser: Parser, first_vector: bool) -> tuple[Attribute, Vector]:
        """Parse `: S, V` or `: V, S` and return the shaped type and the vector type."""
        parser.parse_punctuation(":")
        pos = parser.pos
        first = parser.parse_type()
        parser.parse_punctuation(",")
        second = parser.parse_type()
        shaped, vector = (second, first) if first_vector else (first, second)
        if not is_vector(vector) or is_vector(shaped) or element_type(shaped) is None:
            parser.raise_error(
                f"expected a vector type and a ranked memref or tensor type, got {first} and {second}", pos
            )
        return shaped, vector

    @classmethod
    def mask_type(cls, vector: Vector, map_: Attribute) -> Vector:
        """Return the type of the mask: the vector's shape, in the order of the memory dimensions."""
        shape = list(vector.get_shape())
        results = [str(r) for r in cast("AffineMapAttr", map_).data.results]
        order = sorted((r, n) for r, n in zip(results, shape) if r.startswith("d"))
        return make_vector(IntegerType(1), [n for _, n in order])


class TransferReadOp(_TransferOp):
    """`vector.transfer_read %m[%i, %j], %pad {in_bounds = [true]} : memref<?x?xf32>, vector<4xf32>`"""

    name = "vector.transfer_read"

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        base = parser.parse_unresolved_operand()
        indices = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_unresolved_operand)
        parser.parse_punctuation(",")
        padding = parser.parse_unresolved_operand()
        mask = parser.parse_unresolved_operand() if parser.parse_optional_punctuation(",") is not None else None
        properties = parser.parse_optional_attr_dict()
        shaped, vector = cls.types(parser, False)
        _defaults(properties, shaped, vector)
        element = element_type(shaped) or shaped
        operands = [parser.resolve_operand(base, shaped)]
        operands += [parser.resolve_operand(i, IndexType()) for i in indices]
        operands.append(parser.resolve_operand(padding, element))
        if mask is not None:
            operands.append(parser.resolve_operand(mask, cls.mask_type(vector, properties["permutation_map"])))
        sizes = [1, len(indices), 1, int(mask is not None)]
        properties[SEGMENTS[0]] = DenseArrayBase.from_list(_I32, sizes)
        return cls.create(operands=operands, result_types=[vector], attributes=properties)

    def print(self, printer: Printer) -> None:
        base, padding = self.group("base")[0], self.group("padding")[0]
        printer.print_string(" ")
        self.print_indexed(printer, base, self.group("indices"))
        printer.print_string(", ")
        printer.print_list([padding, *self.group("mask")], printer.print_ssa_value)
        vector = cast("Vector", self.results[0].type)
        self.print_dict(printer, base.type, vector)
        printer.print_string(" : ")
        printer.print_list([base.type, vector], printer.print_attribute)


class TransferWriteOp(_TransferOp):
    """`vector.transfer_write %v, %m[%i, %j], %mask {in_bounds = [true]} : vector<4xf32>, memref<?x?xf32>`"""

    name = "vector.transfer_write"

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        value = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        base = parser.parse_unresolved_operand()
        indices = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_unresolved_operand)
        mask = parser.parse_unresolved_operand() if parser.parse_optional_punctuation(",") is not None else None
        properties = parser.parse_optional_attr_dict()
        shaped, vector = cls.types(parser, True)
        _defaults(properties, shaped, vector)
        operands = [parser.resolve_operand(value, vector), parser.resolve_operand(base, shaped)]
        operands += [parser.resolve_operand(i, IndexType()) for i in indices]
        if mask is not None:
            operands.append(parser.resolve_operand(mask, cls.mask_type(vector, properties["permutation_map"])))
        properties[SEGMENTS[0]] = DenseArrayBase.from_list(_I32, [1, 1, len(indices), int(mask is not None)])
        results: list[Attribute] = [shaped] if isinstance(shaped, TensorType) else []
        return cls.create(operands=operands, result_types=results, attributes=properties)

    def print(self, printer: Printer) -> None:
        value, base = self.group("valueToStore")[0], self.group("base")[0]
        printer.print_string(" ")
        printer.print_ssa_value(value)
        printer.print_string(", ")
        self.print_indexed(printer, base, self.group("indices"))
        for mask in self.group("mask"):
            printer.print_string(", ")
            printer.print_ssa_value(mask)
        vector = cast("Vector", value.type)
        self.print_dict(printer, base.type, vector)
        printer.print_string(" : ")
        printer.print_list([vector, base.type], printer.print_attribute)


OPS = make_ops("vector", (TransferReadOp, TransferWriteOp))
"""All ops of the dialect by name without prefix: `OPS["broadcast"]`."""

VECTOR = TableDialect("vector", OPS, attrs("vector"), opaque_types("vector"))
