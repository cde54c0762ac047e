"""Typed values, the operands and results of type inference, and the constraint on their types.

A :class:`Typed` is a payload of the algebra together with the kind of its type. :class:`OneOfKinds` is the constraint
that restricts an operand or result of an op to some kinds. The functions below visit dynamic leaves in *storage order*:
depth first, shape before stride. A composed layout ``A o off o B`` is visited in the order ``B``, offset, ``A``.

>>> [str(d) for d in dynamic_leaves(text.parse_layout("(?,8):(8,?{i64})"))]
['?', '?{i64}']
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from typing_extensions import TypeVar
from xdsl.ir import Attribute
from xdsl.irdl import AttrConstraint, IntConstraint, VerificationContext
from xdsl.utils.exceptions import VerifyException

from cute_dialect.algebra import text
from cute_dialect.algebra.leaf import AlgebraError, Dyn, Leaf
from cute_dialect.algebra.trees import carries_divisor, implies, leaves, map_leaves, tracked
from cute_dialect.algebra.values import AnyLayout, Basis, ComposedLayout, Layout, Payload
from cute_dialect.algebra.verify import is_trivial_wrap
from cute_dialect.dialect.memory_types import tensor_weaker_or_equal
from cute_dialect.dialect.types import TYPES, CuteType


class Typed(NamedTuple):
    """A payload of the algebra with the kind of its type."""

    kind: str
    """``"layout"``, ``"shape"``, …: a key of :data:`cute_dialect.dialect.types.TYPES`."""
    payload: Any  # The class depends on the kind, which OneOfKinds has checked.


Properties = Mapping[str, Attribute]


class OneOfKinds(AttrConstraint[Attribute]):
    """Constraint that the type is a value type of one of the kinds.

    ``stripped``: the type prints as ``<"…">``, without its name; there must be only one kind.
    """

    __slots__ = ("is_stripped", "kinds")

    def __init__(self, *kinds: str, stripped: bool = False):
        self.kinds = frozenset(kinds)
        self.is_stripped = stripped

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OneOfKinds) and (self.kinds, self.is_stripped) == (other.kinds, other.is_stripped)

    def __hash__(self) -> int:
        return hash((self.kinds, self.is_stripped))

    def __repr__(self) -> str:
        return f"OneOfKinds({', '.join(sorted(self.kinds))})"

    def __str__(self) -> str:
        """Format the kinds for messages: ``!cute.layout or !cute.composed_layout``."""
        names = [f"!cute.{k}" for k in TYPES if k in self.kinds]
        if len(names) == len(TYPES):
            return "a cute value"
        return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " or " + names[-1]

    def accepts(self, attribute: Attribute) -> bool:
        """Return True if the type is of one of the kinds."""
        return isinstance(attribute, CuteType) and attribute.kind in self.kinds

    def verify(self, attr: Attribute, constraint_context: VerificationContext) -> None:
        if not self.accepts(attr):
            raise VerifyException(f"expected {self}, got {attr}")

    def mapping_type_vars(self, type_var_mapping: Mapping[TypeVar, AttrConstraint | IntConstraint]) -> OneOfKinds:
        return self


INT_TUPLE = OneOfKinds("int_tuple")
SHAPE = OneOfKinds("shape")
COORD = OneOfKinds("coord")
STRIDE = OneOfKinds("stride")
LAYOUT = OneOfKinds("layout")
TILE = OneOfKinds("tile")
COMPOSED = OneOfKinds("composed_layout")
ANY_CUTE = OneOfKinds(*TYPES)
ANY_LAYOUT = OneOfKinds("layout", "composed_layout")
INNER = OneOfKinds("layout", "swizzle")
INDEXABLE = OneOfKinds("shape", "int_tuple", "coord", "stride", "tile", "layout", "composed_layout")
ARITH = OneOfKinds("int_tuple", "shape")
TUPLE_LIKE = OneOfKinds("shape", "stride", "coord", "int_tuple", "tile")
SLICEABLE = OneOfKinds("shape", "stride", "coord", "int_tuple", "layout", "composed_layout")
TUPLE_OR_LAYOUT = OneOfKinds("int_tuple", "coord", "stride", "shape", "layout", "composed_layout")
DIVIDER = OneOfKinds("layout", "tile", "shape")
ORDERABLE = OneOfKinds("int_tuple", "shape", "coord")
COMPARABLE = OneOfKinds("int_tuple", "shape", "coord", "stride", "layout")


# --------------------------------------------------------------------------------------------------------------- walks


def dynamic_leaves(payload: Any) -> list[Dyn]:
    """List the dynamic leaves in storage order."""
    values = [leaf.value if isinstance(leaf, Basis) else leaf for leaf in leaves(payload)]
    return [v for v in values if isinstance(v, Dyn)]


def bind(payload: Any, scalars: Iterable[Leaf]) -> Payload:
    """Replace the dynamic leaves of a payload by ``scalars``, one per leaf, in storage order."""
    source = iter(scalars)
    return map_leaves(lambda leaf: next(source) if isinstance(leaf, Dyn) else leaf, payload)


def track(operands: list[Typed]) -> list[Typed]:
    """Track the divisibility of all operands if any of them carries one."""
    if any(carries_divisor(p) for _, p in operands):
        return [Typed(k, tracked(p)) for k, p in operands]
    return operands


# --------------------------------------------------------------------------------------------------------------- types


def typed(attribute: Attribute) -> Typed:
    """Return the typed value that a value type describes."""
    assert isinstance(attribute, CuteType)
    return Typed(attribute.kind, attribute.data)


def wrap(value: Typed) -> CuteType:
    """Return the type of a typed value. Raises AlgebraError if the payload is illegal for its kind."""
    kind, payload = value
    try:
        return TYPES[kind](payload)
    except VerifyException as e:
        raise AlgebraError(f"result: {e}") from None


def type_weaker_or_equal(written: Attribute, inferred: Attribute) -> bool:
    """Return True if two types are equal except that the written one has weaker divisibility."""
    if written == inferred:
        return True
    if isinstance(written, CuteType) and isinstance(inferred, CuteType):
        return written.kind == inferred.kind and implies(inferred.data, written.data)
    return tensor_weaker_or_equal(written, inferred)


def payload_text(payload: Any) -> str:
    """Format a payload as canonical text, for messages."""
    return text.to_text(payload)


# ------------------------------------------------------------------------------------------------------------- layouts


def outer(layout: AnyLayout) -> Layout:
    """Return the layout itself, or ``B`` of ``A o off o B``."""
    return layout.outer if isinstance(layout, ComposedLayout) else layout


def layout_like(payload: AnyLayout) -> Typed:
    """Pair a layout or composed layout with its kind. A trivial composition ``S<0,m,s> o 0 o B`` becomes ``B``."""
    if isinstance(payload, ComposedLayout):
        if is_trivial_wrap(payload.inner, payload.offset):
            return Typed("layout", payload.outer)
        return Typed("composed_layout", payload)
    return Typed("layout", payload)
