"""Memoized inference of result types, and construction of ops with inferred types.

Result types come from one of three sources:

* ops of this project: :meth:`cute_dialect.dialect.base.CuteOp.infer_types`;
* upstream MLIR ops: the rules of the tables;
* xDSL ops: the constraints of the definition.

:func:`infer_types_memo` selects the source by the class of the op. Results are kept in one bounded memo, keyed by
class, operand types and properties. The front-end, the constructors and the verifier share it. Types hash in less than
a microsecond, because payloads cache their hash.

>>> from xdsl.dialects.arith import AddiOp
>>> from xdsl.dialects.builtin import i32
>>> infer_types_memo(AddiOp, (i32, i32))
(IntegerType(32),)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

from xdsl.dialects.builtin import UNKNOWN_LOC, LocationAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import IRDLOperation, OptionalDef, VariadicDef, VerificationContext
from xdsl.utils.exceptions import VerifyException

from cute_dialect.algebra.leaf import AlgebraError
from cute_dialect.ir.editing import make_op

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.upstream.op import TableOp

__all__ = ["infer_types_memo", "make_inferred"]

OperationT = TypeVar("OperationT", bound=Operation)

MOST = 8192
"""Capacity of the memo; the least recently used entry is evicted first. A large kernel has a few hundred entries."""

_NONE: Mapping[str, Attribute] = {}


def infer_types_memo(
    op_class: type[Operation], operand_types: Sequence[Attribute], properties: Mapping[str, Attribute] | None = None
) -> tuple[Attribute, ...]:
    """Return the result types of an op of this class. Raises AlgebraError if the class does not accept these operands.

    Raises TypeError if operands and properties do not determine the results (``arith.extsi``, ``scf.if``).
    """
    return _infer(op_class, tuple(operand_types), tuple(properties.items()) if properties else ())


def make_inferred(
    op_class: type[OperationT],
    operands: Sequence[SSAValue] = (),
    properties: Mapping[str, Attribute] | None = None,
    location: LocationAttr = UNKNOWN_LOC,
) -> OperationT:
    """Make an op without attributes, successors and regions, and infer its result types.

    Raises the same errors as :func:`infer_types_memo`.
    """
    types = _infer(op_class, tuple([o.type for o in operands]), tuple(properties.items()) if properties else ())
    return make_op(op_class, operands, types, properties, location)


@lru_cache(maxsize=MOST)
def _infer(
    op_class: type[Operation], operand_types: tuple[Attribute, ...], properties: tuple[tuple[str, Attribute], ...]
) -> tuple[Attribute, ...]:
    given = dict(properties) if properties else _NONE
    own = getattr(op_class, "infer_types", None)
    if own is not None:
        try:
            return tuple(own(operand_types, given))
        except NotImplementedError:
            raise TypeError(f"'{op_class.name}' needs result types: the op does not infer them") from None
    if hasattr(op_class, "spec"):
        return _by_table(op_class, operand_types, given)  # pyright: ignore[reportArgumentType]
    if issubclass(op_class, IRDLOperation):
        return _by_constraints(op_class, operand_types, given)
    raise TypeError(f"'{op_class.name}' needs result types: there is no rule to infer them")


def _by_table(
    op_class: type[TableOp], operand_types: Sequence[Attribute], properties: Mapping[str, Attribute]
) -> tuple[Attribute, ...]:
    """Infer the types with the rules of the upstream table."""
    from xdsl.dialects.builtin import DenseArrayBase

    from cute_dialect.upstream.spec import SEGMENTS, infer_results  # late: start-up

    spec = op_class.spec()
    segments = properties.get(SEGMENTS[0])
    given = [int(n) for n in segments.get_values()] if isinstance(segments, DenseArrayBase) else None
    try:
        sizes = spec.operand_sizes(len(operand_types), given if "o" in spec.traits else None)
    except ValueError as e:
        raise AlgebraError(str(e)) from None
    types: dict[str, tuple[Attribute, ...]] = {}
    start = 0
    for argument, size in zip(spec.operands, sizes):
        types[argument.name] = tuple(operand_types[start : start + size])
        start += size
    if spec.rules and (wrong := spec.mismatch(types)) is not None:
        raise AlgebraError(f"'{op_class.name}' op {wrong}")
    return tuple(infer_results(spec, types, properties))


def _by_constraints(
    op_class: type[IRDLOperation], operand_types: Sequence[Attribute], properties: Mapping[str, Attribute]
) -> tuple[Attribute, ...]:
    """Infer the types from the constraints of the xDSL definition, as the xDSL parser does for omitted types."""
    definition = op_class.get_irdl_definition()
    if not definition.results:
        return ()
    values = (*definition.operands, *definition.results)
    if any(isinstance(d, VariadicDef) for _, d in values):
        raise TypeError(f"'{op_class.name}' needs result types: a variadic op cannot infer them")
    if len(operand_types) != len(definition.operands):
        raise AlgebraError(
            f"'{op_class.name}' op expected {len(definition.operands)} operands, got {len(operand_types)}"
        )
    context = VerificationContext()
    try:
        for (name, operand), t in zip(definition.operands, operand_types):
            try:
                operand.constr.verify((t,), context)
            except VerifyException as e:
                raise AlgebraError(f"'{op_class.name}' op operand '{name}': {e}") from None
        for name, declared in definition.properties.items():
            if name in properties and not isinstance(declared, OptionalDef):
                declared.constr.verify(properties[name], context)
    except VerifyException as e:
        raise AlgebraError(f"'{op_class.name}' op {e}") from None
    found: list[Attribute] = []
    for name, result in definition.results:
        known = context.attr_variables | context.range_variables | context.int_variables
        if not result.constr.can_infer(known, length_known=True):
            raise TypeError(f"'{op_class.name}' needs result types: the type of '{name}' cannot be inferred")
        found.extend(result.constr.infer(context, length=1))
    return tuple(found)
