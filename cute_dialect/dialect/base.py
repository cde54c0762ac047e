"""Base class of all ops of the dialect: type inference, verification and assembly format.

An op declares its operands and results with :class:`~cute_dialect.dialect.typed_values.OneOfKinds` and implements
:meth:`CuteOp.infer`, a function over typed values. The parser, the verifier and the builders call it with the payloads
of the operand types. Lowering calls the same function with payloads whose dynamic leaves carry SSA values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, TypeAlias, TypeVar

from xdsl.dialects.builtin import IntegerAttr, UnitAttr, i32
from xdsl.ir import Attribute, BlockArgument, Operation, OpResult, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    OpDef,
    OperandDef,
    OptionalDef,
    RangeLengthConstraint,
    RangeOf,
    ResultDef,
    VariadicDef,
    VarResultDef,
    irdl_op_definition,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from cute_dialect.algebra.leaf import AlgebraError
from cute_dialect.dialect.asm import (
    mode_attr,
    parse_ints,
    parse_mode,
    parse_operand_list,
    parse_signature,
    print_ints,
    print_mode,
    print_operand_list,
    print_signature,
)
from cute_dialect.dialect.inference import infer_types_memo
from cute_dialect.dialect.memory_types import is_tensor
from cute_dialect.dialect.tensor_lifting import infer_lifted
from cute_dialect.dialect.typed_values import OneOfKinds, Properties, Typed, track, type_weaker_or_equal, typed, wrap
from cute_dialect.ir.editing import fill_op

__all__ = ["AlgebraOp", "CuteOp", "InferredOp", "cute_op", "ops_of"]

CuteOpT = TypeVar("CuteOpT", bound="CuteOp")


class CuteOp(IRDLOperation):
    """Base of the ops. Subclasses are decorated with :func:`cute_op`."""

    FORM: ClassVar[str] = "functional"
    """Form in which types are written; see :mod:`cute_dialect.dialect.asm`."""
    SPACED: ClassVar[bool] = False
    """True if the printer writes a space before the operands."""
    LIFT: ClassVar[bool] = False
    """True if the first operand may also be a tensor."""
    LOOKS_BACK: ClassVar[bool] = False
    """True if :meth:`check_definitions` is called for each op separately."""

    OPERAND_KINDS: ClassVar[tuple[OneOfKinds | None, ...]]
    """Allowed kinds of each operand, from the definition. None marks an operand that is not of a value type."""
    MIN_OPERANDS: ClassVar[int]
    MAX_OPERANDS: ClassVar[int | None]
    RESULT_KINDS: ClassVar[tuple[OneOfKinds | None, ...]]
    VALUES: ClassVar[tuple[int, int] | None]
    """Numbers of operands and results if both are fixed, otherwise None."""

    def __init__(
        self,
        *,
        operands: Sequence[SSAValue | Operation | Sequence[SSAValue | Operation] | None] = (),
        result_types: Sequence[Attribute | Sequence[Attribute] | None] = (),
        properties: Mapping[str, Attribute | None] | None = None,
    ):
        """Skip the grouping of operands and results that xDSL does, if each group has exactly one value."""
        values = [o for o in operands if isinstance(o, OpResult | BlockArgument)]
        types = [t for t in result_types if isinstance(t, Attribute)]
        if self.VALUES == (len(values), len(types)) == (len(operands), len(result_types)):
            fill_op(self, values, types, {k: v for k, v in (properties or {}).items() if v is not None})
        else:
            super().__init__(operands=operands, result_types=result_types, properties=properties)

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for constant in list(cls.__dict__):
            if constant.isupper():  # xDSL treats a class variable without an annotation as a field of the op.
                cls.__annotations__.setdefault(constant, "ClassVar")

    # ------------------------------------------------------------------------------------------------ to be overridden

    @classmethod
    def infer(cls, operands: Sequence[Typed], properties: Properties) -> Sequence[Typed]:
        """Infer the results. Raises AlgebraError if a precondition of the op is violated."""
        raise NotImplementedError(cls.name)

    @classmethod
    def parse_prefix(cls, parser: Parser) -> dict[str, Attribute]:
        """Parse the text between the op name and its operands, such as ``<[1, 0]>``, and return the properties."""
        return {}

    def print_prefix(self, printer: Printer) -> None:
        """Print the properties in the format that :meth:`parse_prefix` reads."""

    # ------------------------------------------------------------------------------------------------------- inference

    @classmethod
    def check_operand_kinds(cls, types: Sequence[Attribute]) -> None:
        """Raise AlgebraError if the number of operands or the kind of an operand is wrong."""
        most = cls.MAX_OPERANDS
        if len(types) < cls.MIN_OPERANDS or (most is not None and len(types) > most):
            raise AlgebraError(f"expected {_count(cls.MIN_OPERANDS, most)}, got {len(types)}")
        for i, (t, kinds) in enumerate(zip(types, cls.OPERAND_KINDS)):
            if kinds is not None and not kinds.accepts(t) and not (i == 0 and cls.LIFT and is_tensor(t)):
                raise AlgebraError(f"operand #{i}: expected {kinds}, got {t}")

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        """Infer the result types for these operand types.

        Raises AlgebraError if a precondition of the op is violated. Raises NotImplementedError if the operand types do
        not determine the results, as in ``cute.make_shape``.
        """
        if cls.infer.__func__ is CuteOp.infer.__func__:
            raise NotImplementedError(cls.name)
        cls.check_operand_kinds(operand_types)
        if cls.LIFT and is_tensor(operand_types[0]):
            return infer_lifted(cls, operand_types, properties)
        return [wrap(r) for r in cls.infer(track([typed(t) for t in operand_types]), properties)]

    # ---------------------------------------------------------------------------------------------------- verification

    def check_result_count(self) -> None:
        """Raise AlgebraError if the number of results differs from the declared one."""
        declared = [definition for _, definition in self.get_irdl_definition().results]
        fixed = not any(isinstance(definition, VarResultDef) for definition in declared)
        if fixed and declared and len(self.results) != len(declared):
            raise AlgebraError(f"expected {plural(len(declared), 'result')}, got {len(self.results)}")

    def check_types(self) -> None:
        """Raise AlgebraError if a result type differs from the inferred one by more than weaker divisibility."""
        inferred = infer_types_memo(type(self), self.operand_types, self.properties)
        actual = self.result_types
        if len(inferred) != len(actual):
            raise AlgebraError(f"expected {plural(len(inferred), 'result')}, got {len(actual)}")
        wrong = [
            f"result #{i}: expected {want}, got {got}"
            for i, (want, got) in enumerate(zip(inferred, actual))
            if not type_weaker_or_equal(got, want)
        ]
        if wrong:
            raise AlgebraError("; ".join(wrong))

    def verify_(self) -> None:
        try:
            self.check_operand_kinds(self.operand_types)
            verify_properties(self)
            self.check_attributes()
            self.check_result_count()
            self.check_types()
            if self.LOOKS_BACK:
                self.check_definitions()
        except AlgebraError as e:
            raise VerifyException(f"'{self.name}' op {e}") from None

    def check_attributes(self) -> None:
        """Raise AlgebraError for an attribute that is not a property, if the op writes them in one dictionary."""

    def check_definitions(self) -> None:
        """Raise AlgebraError for errors that only the attributes or the defining ops of the operands reveal."""

    # --------------------------------------------------------------------------------------------------------- assembly

    @classmethod
    def parse(cls, parser: Parser) -> Operation:
        at = parser.pos
        properties = cls.parse_prefix(parser)
        operands = parse_operand_list(parser)
        attributes = cls.parse_attributes(parser)
        parser.parse_punctuation(":")
        types_at = parser.pos
        operand_types, result_types = parse_signature(parser, cls.FORM, cls.OPERAND_KINDS, cls.RESULT_KINDS)
        if len(operand_types) != len(operands):
            parser.raise_error(
                f"expected {plural(len(operands), 'operand type')}, got {len(operand_types)}", types_at, parser.pos
            )
        values = [parser.resolve_operand(o, t) for o, t in zip(operands, operand_types)]
        if result_types is None:
            try:
                result_types = infer_types_memo(cls, operand_types, properties)
            except AlgebraError as e:
                parser.raise_error(f"'{cls.name}' op {e}", at)
        return cls.create(operands=values, result_types=result_types, properties=properties, attributes=attributes)

    @classmethod
    def parse_attributes(cls, parser: Parser) -> dict[str, Attribute]:
        """Parse the optional attribute dictionary. Properties that have their own syntax are rejected here."""
        at = parser.pos
        attributes = parser.parse_optional_attr_dict()
        for name in cls.get_irdl_definition().properties:
            if name in attributes:
                parser.raise_error(
                    f"property '{name}' is written before the operands, not in the attribute dictionary", at
                )
        return attributes

    def print(self, printer: Printer) -> None:
        self.print_prefix(printer)
        if self.SPACED:
            printer.print_string(" ")
        print_operand_list(printer, self.operands)
        if self.attributes:
            printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        print_signature(
            printer, self.FORM, self.operand_types, self.result_types, self.OPERAND_KINDS, self.RESULT_KINDS
        )

    # --------------------------------------------------------------------------------------------------------- building

    def build_inferred(
        self,
        operands: Sequence[SSAValue | Operation],
        properties: Mapping[str, Attribute] | None = None,
        result_types: Sequence[Attribute] | None = None,
    ) -> None:
        """Initialise the op with operands, properties and result types, which are inferred unless they are given.

        Raises AlgebraError if the result types cannot be inferred.
        """
        values = [SSAValue.get(o) for o in operands]
        properties = dict(properties or {})
        if result_types is None:
            try:
                result_types = infer_types_memo(type(self), [v.type for v in values], properties)
            except AlgebraError as e:
                raise AlgebraError(f"'{self.name}' op {e}") from None
        fill_op(self, values, result_types, properties)


class InferredOp(CuteOp):
    """Base of the ops whose operands and properties determine their results.

    The constructor takes the operands and then the properties, in the order of their declaration or by name::

        GroupModesOp(layout, 0, 2)
        GroupModesOp(input=layout, begin=0, end=2)
    """

    def __init__(self, *given: Argument, result_type: Attribute | None = None, **named: Argument):
        definition = self.get_irdl_definition()
        names = [name for name, _ in definition.operands]
        values = dict(zip((*names, *definition.properties), given, strict=False)) | named
        if len(values) != len(given) + len(named) or not values.keys() <= {*names, *definition.properties}:
            raise TypeError(f"'{self.name}' takes {', '.join((*names, *definition.properties))}, got {[*values]}")
        operands = [v for v in map(values.get, names) if isinstance(v, SSAValue | Operation)]
        found = {name: property_of(values.get(name)) for name in definition.properties}
        properties = {name: attribute for name, attribute in found.items() if attribute is not None}
        self.build_inferred(operands, properties, result_type and [result_type])

    @classmethod
    def parse_prefix(cls, parser: Parser) -> dict[str, Attribute]:
        declared = cls.get_irdl_definition().properties
        if "mode" in declared:
            return parse_mode(parser, required=not isinstance(declared["mode"], OptionalDef))
        return parse_ints(parser, *declared) if declared else {}

    def print_prefix(self, printer: Printer) -> None:
        declared = self.get_irdl_definition().properties
        if "mode" in declared:
            print_mode(printer, self.properties)
        elif declared:
            print_ints(printer, self.properties, *declared)


class AlgebraOp(InferredOp):
    """Base of the pure ops of the layout algebra."""

    traits = traits_def(Pure())


Argument: TypeAlias = SSAValue | Operation | Sequence[int] | int | None
"""Operand or property of an :class:`InferredOp`; False, None and an empty path mean that it is absent."""


def property_of(value: Argument) -> Attribute | None:
    """Return the attribute of a property: ``i32`` for an int, a path for a sequence, a unit for True."""
    if isinstance(value, bool):
        return UnitAttr() if value else None
    if isinstance(value, int):
        return IntegerAttr(value, i32)
    return mode_attr(value) if isinstance(value, Sequence) and value else None


_OPS: dict[str, list[type[CuteOp]]] = {}
"""Module -> the ops that it defines."""


def ops_of(module: str) -> list[type[CuteOp]]:
    """Return the ops that a module defines with :func:`cute_op`, in their order."""
    return _OPS[module]


def cute_op(cls: type[CuteOpT]) -> type[CuteOpT]:
    """Register a subclass of :class:`CuteOp` as an op; a replacement for ``irdl_op_definition``.

    The op keeps the verifier of :class:`CuteOp`, whose messages are shorter than those of xDSL. If the op overrides the
    verifier, xDSL's checks of the definition run first.
    """
    inherited = cls.verify_ is CuteOp.verify_
    irdl_op_definition(cls)
    if inherited:
        cls.verify_ = CuteOp.verify_
    for name in _FROM_DEFINITION:
        setattr(cls, name, _FromDefinition(name))
    _OPS.setdefault(cls.__module__, []).append(cls)
    return cls


class _FromDefinition:
    """Class variable that is computed from the definition of the op on first access."""

    def __init__(self, name: str):
        self._name = name

    def __get__(self, op: CuteOp | None, cls: type[CuteOp]) -> object:
        value = _FROM_DEFINITION[self._name](cls.get_irdl_definition())
        setattr(cls, self._name, value)
        return value


def _max_operands(definition: OpDef) -> int | None:
    unbounded = any(isinstance(d, VariadicDef) and not isinstance(d, OptionalDef) for _, d in definition.operands)
    return None if unbounded else len(definition.operands)


def _values(definition: OpDef) -> tuple[int, int] | None:
    all_of_them = [d for _, d in (*definition.operands, *definition.results)]
    if definition.options or any(isinstance(d, VariadicDef) for d in all_of_them):
        return None
    return len(definition.operands), len(definition.results)


_FROM_DEFINITION: Mapping[str, Callable[[OpDef], object]] = {
    "OPERAND_KINDS": lambda d: tuple(_kinds_of(o) for _, o in d.operands),
    "RESULT_KINDS": lambda d: tuple(_kinds_of(r) for _, r in d.results),
    "MIN_OPERANDS": lambda d: sum(not isinstance(o, VariadicDef) for _, o in d.operands),
    "MAX_OPERANDS": _max_operands,
    "VALUES": _values,
}


def element_constraint(definition: OperandDef | ResultDef) -> object:
    """Return the type constraint of an operand or result; for a variadic one, the constraint of each element."""
    constraint: object = definition.constr
    while isinstance(constraint, RangeLengthConstraint):
        constraint = constraint.constraint  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    if isinstance(constraint, RangeOf):
        constraint = constraint.constr  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return constraint  # pyright: ignore[reportUnknownVariableType]


def _kinds_of(definition: OperandDef | ResultDef) -> OneOfKinds | None:
    constraint = element_constraint(definition)
    return constraint if isinstance(constraint, OneOfKinds) else None


def verify_properties(op: CuteOp) -> None:
    """Raise AlgebraError if a required property is missing, has the wrong type, or is not declared."""
    declared = op.get_irdl_definition().properties
    for name, definition in declared.items():
        attribute = op.properties.get(name)
        if attribute is None:
            if not isinstance(definition, OptionalDef):
                raise AlgebraError(f"requires the property '{name}'")
        elif not definition.constr.verifies(attribute):
            raise AlgebraError(f"property '{name}' has the wrong type: {attribute}")
    for name in op.properties:
        if name not in declared:
            raise AlgebraError(f"has no property '{name}'")


def plural(n: int, what: str) -> str:
    """Format a count with its noun: ``1 operand``, ``2 operands``."""
    return f"{n} {what}{'' if n == 1 else 's'}"


def _count(least: int, most: int | None) -> str:
    if most is None:
        return f"at least {plural(least, 'operand')}"
    return plural(least, "operand") if least == most else f"{least} to {most} operands"
