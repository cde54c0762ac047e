"""What all ops of the dialect share: assembly forms, inference, verification.

An op states its result type once, in :meth:`CuteOp.infer`, over *typed values*: pairs of a kind (``"layout"``) and a
payload of the algebra.  The verifier and the parser run it over the payloads of the operand types, lowering runs the
same function over payloads whose dynamic leaves carry SSA values.

Assembly forms, one word an op (:attr:`CuteOp.form`):

* ``functional``  ``cute.size (%x) : (T) -> T``
* ``arrow``       ``cute.get_shape(%x) : T -> T``
* ``inferred``    ``cute.slice(%x, %c) : T, T``       the result types are not written
* ``result``      ``cute.static : T``                 only the result type is written
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, NamedTuple

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, IntegerType, UnitAttr, i32
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import IRDLOperation
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.mlir_lexer import MLIRTokenKind

from cute_dialect.algebra import text
from cute_dialect.algebra.int_tuple import map_leaves
from cute_dialect.algebra.layout import Layout
from cute_dialect.algebra.leaf import AlgebraError, Dyn
from cute_dialect.algebra.swizzle import ComposedLayout
from cute_dialect.types import TYPES, CuteType, Payload


class Typed(NamedTuple):
    """A value of the algebra together with the kind of type that holds it."""

    kind: str
    payload: Payload


Properties = Mapping[str, Attribute]

LAYOUTS = frozenset({"layout", "composed_layout"})
INNER = frozenset({"layout", "swizzle"})
INDEXABLE = frozenset({"shape", "int_tuple", "coord", "stride", "tile", "layout", "composed_layout"})
ARITH = frozenset({"int_tuple", "shape"})
TUPLE_LIKE = frozenset({"shape", "stride", "coord", "int_tuple", "tile"})
SLICEABLE = frozenset({"shape", "stride", "coord", "int_tuple", "layout", "composed_layout"})
TUPLE_OR_LAYOUT = frozenset({"int_tuple", "coord", "stride", "shape", "layout", "composed_layout"})
DIVIDER = frozenset({"layout", "tile", "shape"})
ORDERABLE = frozenset({"int_tuple", "shape", "coord"})
COMPARABLE = frozenset({"int_tuple", "shape", "coord", "stride", "layout"})
ANY_CUTE = frozenset(TYPES)


def dynamic_leaves(payload: Payload) -> list[Dyn]:
    """The dynamic leaves in storage order: depth first; shape then stride; for composed layouts B, offset, A."""
    found: list[Dyn] = []

    def visit(leaf: Payload) -> Payload:
        if isinstance(leaf, Dyn):
            found.append(leaf)
        return leaf

    map_leaves(visit, payload)
    return found


def has_div(payload: Payload) -> bool:
    """Whether some leaf carries a divisibility."""
    return any(d.div > 1 for d in dynamic_leaves(payload))


def tracked(payload: Payload) -> Payload:
    """The same payload with divisibility tracking switched on (a plain ``?`` counts as a multiple of 1)."""
    return map_leaves(
        lambda x: Dyn(x.width, 1, x.value, x.emitter) if isinstance(x, Dyn) and x.div == 0 else x, payload
    )


def wrap(value: Typed) -> CuteType:
    """The type of a typed value.  Raises AlgebraError if the payload is not a legal value of its kind."""
    cls = TYPES[value.kind]
    try:
        return cls(value.payload)
    except VerifyException as e:
        raise AlgebraError(str(e)) from None


def weaker_or_equal(written: Payload, inferred: Payload) -> bool:
    """Whether a written payload equals the inferred one up to weaker ``div`` annotations."""
    if isinstance(written, Dyn) and isinstance(inferred, Dyn):
        return written.width == inferred.width and (inferred.div or 1) % (written.div or 1) == 0
    if isinstance(written, tuple) and isinstance(inferred, tuple):
        return len(written) == len(inferred) and all(map(weaker_or_equal, written, inferred))
    if isinstance(written, Layout) and isinstance(inferred, Layout):
        return weaker_or_equal(written.shape, inferred.shape) and weaker_or_equal(written.stride, inferred.stride)
    if isinstance(written, ComposedLayout) and isinstance(inferred, ComposedLayout):
        return (
            weaker_or_equal(written.inner, inferred.inner)
            and weaker_or_equal(written.offset, inferred.offset)
            and weaker_or_equal(written.outer, inferred.outer)
        )
    from cute_dialect.algebra.int_tuple import Basis

    if isinstance(written, Basis) and isinstance(inferred, Basis):
        return written.path == inferred.path and weaker_or_equal(written.value, inferred.value)
    return type(written) is type(inferred) and written == inferred


class CuteOp(IRDLOperation):
    """Base of the ops whose result types follow from their operands."""

    form: ClassVar[str] = "functional"
    operand_kinds: ClassVar[tuple[frozenset[str], ...]] = ()
    """What each operand may be; the last entries may be absent (optional operands) down to ``min_operands``."""
    min_operands: ClassVar[int | None] = None
    space_before_parens: ClassVar[bool] = False
    lift: ClassVar[bool] = False
    """Whether a tensor is accepted in place of the first layout operand (memory half)."""

    # ------------------------------------------------------------------------------------------------ to be overridden

    @classmethod
    def infer(cls, operands: Sequence[Typed], properties: Properties) -> Sequence[Typed]:
        """The results.  Raises AlgebraError where a precondition of the op is violated."""
        raise NotImplementedError(cls.name)

    @classmethod
    def parse_prefix(cls, parser: Parser) -> dict[str, Attribute]:
        """Parse what stands between the op name and its operands, e.g. ``<[1, 0]>``; gives properties."""
        return {}

    def print_prefix(self, printer: Printer) -> None:
        """Print what :meth:`parse_prefix` reads."""

    # ------------------------------------------------------------------------------------------------------- inference

    @classmethod
    def check_operand_kinds(cls, types: Sequence[Attribute]) -> None:
        """Raise AlgebraError if an operand type is not of a kind that the op takes."""
        least = len(cls.operand_kinds) if cls.min_operands is None else cls.min_operands
        if not least <= len(types) <= len(cls.operand_kinds):
            raise AlgebraError(f"expected {_count(least, len(cls.operand_kinds))}, got {len(types)}")
        for i, (t, kinds) in enumerate(zip(types, cls.operand_kinds)):
            if not (isinstance(t, CuteType) and t.kind in kinds):
                raise AlgebraError(f"operand #{i} must be {_kinds_text(kinds)}, got {t}")

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        """The result types for these operand types.  Raises AlgebraError."""
        if cls.lift and operand_types:
            from cute_dialect.memory_types import TensorType

            if isinstance(operand_types[0], TensorType):
                from cute_dialect.ops.lifted import infer_lifted

                return infer_lifted(cls, operand_types, properties)
        cls.check_operand_kinds(operand_types)
        operands = [Typed(t.kind, t.data) for t in operand_types if isinstance(t, CuteType)]
        if any(has_div(o.payload) for o in operands):
            operands = [Typed(k, tracked(p)) for k, p in operands]
        return [wrap(r) for r in cls.infer(operands, properties)]

    def verify_(self) -> None:
        try:
            inferred = self.infer_types(self.operand_types, self.properties)
        except AlgebraError as e:
            raise VerifyException(f"'{self.name}' op {e}") from None
        actual = self.result_types
        if len(inferred) != len(actual):
            raise VerifyException(f"'{self.name}' op has {len(inferred)} results, got {len(actual)}")
        for i, (want, got) in enumerate(zip(inferred, actual)):
            if want != got and not type_weaker_or_equal(got, want):
                raise VerifyException(f"'{self.name}' op result #{i}: expected {want}, got {got}")

    # --------------------------------------------------------------------------------------------------------- assembly

    @classmethod
    def parse(cls, parser: Parser) -> Operation:
        properties = cls.parse_prefix(parser)
        at = parser.pos
        operands = parse_operand_list(parser)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        types_at = parser.pos
        operand_types, result_types = parse_signature(parser, cls.form, cls.operand_kinds, None)
        if len(operand_types) != len(operands):
            parser.raise_error(f"expected {len(operands)} operand types, got {len(operand_types)}", types_at, parser.pos)
        values = [parser.resolve_operand(o, t) for o, t in zip(operands, operand_types)]
        if result_types is None:
            try:
                result_types = cls.infer_types(operand_types, properties)
            except AlgebraError as e:
                parser.raise_error(f"'{cls.name}' op {e}", at, parser.pos)
        return cls.create(operands=values, result_types=result_types, properties=properties, attributes=attributes)

    def print(self, printer: Printer) -> None:
        self.print_prefix(printer)
        if self.space_before_parens:
            printer.print_string(" ")
        print_operand_list(printer, self.operands)
        if self.attributes:
            printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        print_signature(printer, self.form, self.operand_types, self.result_types)


def type_weaker_or_equal(written: Attribute, inferred: Attribute) -> bool:
    """Whether a written type is the inferred one up to weaker divisibility."""
    if isinstance(written, CuteType) and isinstance(inferred, CuteType):
        return written.kind == inferred.kind and weaker_or_equal(written.data, inferred.data)
    from cute_dialect.memory_types import tensor_weaker_or_equal

    return tensor_weaker_or_equal(written, inferred)


def _count(least: int, most: int) -> str:
    return f"{least} operand{'' if least == 1 else 's'}" if least == most else f"{least} to {most} operands"


def _kinds_text(kinds: frozenset[str]) -> str:
    names = [f"!cute.{k}" for k in TYPES if k in kinds]
    if len(names) == len(TYPES):
        return "a cute value"
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " or " + names[-1]


# ---------------------------------------------------------------------------------------------------- parsing helpers


def parse_operand_list(parser: Parser) -> list[UnresolvedOperand]:
    """``( %a, %b )``"""
    return parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_unresolved_operand)


def print_operand_list(printer: Printer, operands: Sequence[SSAValue]) -> None:
    """``(%a, %b)``"""
    with printer.in_parens():
        printer.print_list(operands, printer.print_ssa_value)


def at_token(parser: Parser, kind: MLIRTokenKind) -> bool:
    """Whether the next token is of this kind; nothing is consumed."""
    return parser._current_token.kind is kind  # pyright: ignore[reportPrivateUsage]


def parse_type(parser: Parser, kinds: frozenset[str] | None) -> Attribute:
    """A type, or, where only one kind is possible, its stripped form ``<"…">``."""
    if kinds is not None and len(kinds) == 1 and at_token(parser, MLIRTokenKind.LESS):
        (kind,) = kinds
        cls = TYPES[kind]
        return cls(cls.parse_parameter(parser))
    return parser.parse_type()


def parse_signature(
    parser: Parser,
    form: str,
    operand_kinds: Sequence[frozenset[str]],
    result_kinds: Sequence[frozenset[str]] | None,
) -> tuple[list[Attribute], list[Attribute] | None]:
    """The types after the colon: ``(T, T) -> T``, ``T -> T`` or ``T, T``.  Results are ``None`` when not written."""

    def operand_kind(i: int) -> frozenset[str] | None:
        return operand_kinds[min(i, len(operand_kinds) - 1)] if operand_kinds else None

    types: list[Attribute] = []

    def one() -> None:
        types.append(parse_type(parser, operand_kind(len(types))))

    if form == "functional":
        parser.parse_comma_separated_list(parser.Delimiter.PAREN, one)
    elif form == "arrow" and parser.parse_optional_punctuation("(") is not None:  # listing form (T) -> T
        one()
        parser.parse_punctuation(")")
    else:
        parser.parse_comma_separated_list(parser.Delimiter.NONE, one)
    if form == "inferred":
        return types, None
    parser.parse_punctuation("->")
    kinds = result_kinds[0] if result_kinds else None
    if parser.parse_optional_punctuation("(") is not None:
        results = parser.parse_comma_separated_list(parser.Delimiter.NONE, lambda: parse_type(parser, kinds))
        parser.parse_punctuation(")")
    else:
        results = [parse_type(parser, kinds)]
    return types, results


def print_signature(printer: Printer, form: str, operands: Sequence[Attribute], results: Sequence[Attribute]) -> None:
    """The counterpart of :func:`parse_signature`."""
    if form == "functional":
        with printer.in_parens():
            printer.print_list(operands, printer.print_attribute)
    else:
        printer.print_list(operands, printer.print_attribute)
    if form == "inferred":
        return
    printer.print_string(" -> ")
    if len(results) == 1:
        printer.print_attribute(results[0])
    else:
        with printer.in_parens():
            printer.print_list(results, printer.print_attribute)


def parse_mode(parser: Parser, *, required: bool) -> dict[str, Attribute]:
    """``<[i, j]>``, gives the property ``mode``."""
    if not required and parser.parse_optional_punctuation("<") is None:
        return {}
    if required:
        parser.parse_punctuation("<")
    indices = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
    parser.parse_punctuation(">")
    return {"mode": DenseArrayBase.from_list(i32, indices)}


def mode_of(properties: Properties) -> tuple[int, ...]:
    """The property ``mode`` as a path; absent is the empty path."""
    mode = properties.get("mode")
    return () if mode is None else tuple(mode.get_values())  # pyright: ignore


def print_mode(printer: Printer, properties: Properties) -> None:
    """The counterpart of :func:`parse_mode`."""
    if "mode" in properties:
        printer.print_string("<[" + ", ".join(map(str, mode_of(properties))) + "]>")


def int_property(properties: Properties, name: str) -> int:
    """An ``i32`` property as a number."""
    attribute = properties[name]
    assert isinstance(attribute, IntegerAttr)
    return attribute.value.data


def parse_int_prefix(parser: Parser, *names: str) -> dict[str, Attribute]:
    """``<16, 8>``, gives ``i32`` properties."""
    parser.parse_punctuation("<")
    properties: dict[str, Attribute] = {}
    for i, name in enumerate(names):
        if i:
            parser.parse_punctuation(",")
        properties[name] = IntegerAttr(parser.parse_integer(), i32)
    parser.parse_punctuation(">")
    return properties


UNIT = UnitAttr()
SCALARS = (IntegerType(32), IntegerType(64))


def payload_text(payload: Payload) -> str:
    """The canonical text, for messages."""
    return text.to_text(payload)
