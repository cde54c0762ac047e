"""Typed values, which an op's inference takes and gives, and the constraint over their types.

A :class:`Typed` is a payload of the algebra with the kind of type that holds it.  :class:`OneOfKinds` is the constraint
that says which kinds a position of an op takes.  The walks below visit dynamic leaves in *storage order*: depth first;
shape before stride; for a composed layout ``A o off o B`` first ``B``, then the offset, then ``A``.

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
from cute_dialect.types import TYPES, CuteType


class Typed(NamedTuple):
    """A value of the algebra together with the kind of type that holds it."""

    kind: str
    """``"layout"``, ``"shape"``, …: a key of :data:`cute_dialect.types.TYPES`."""
    payload: Any  # what it is follows from the kind, which no type checker sees; OneOfKinds has checked it


Properties = Mapping[str, Attribute]


class OneOfKinds(AttrConstraint[Attribute]):
    """The type at this position is one of some kinds of value types.

    ``stripped``: the position prints as ``<"…">``, without the name of its (only) type.
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
        """In words, for messages: ``!cute.layout or !cute.composed_layout``."""
        names = [f"!cute.{k}" for k in TYPES if k in self.kinds]
        if len(names) == len(TYPES):
            return "a cute value"
        return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " or " + names[-1]

    def accepts(self, attribute: Attribute) -> bool:
        """Tell whether the type is of one of the kinds."""
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
    """Replace the dynamic leaves of a payload, in storage order, by ``scalars`` (as many as there are)."""
    source = iter(scalars)
    return map_leaves(lambda leaf: next(source) if isinstance(leaf, Dyn) else leaf, payload)


def track(operands: list[Typed]) -> list[Typed]:
    """Prepare operands for inference: track the divisibility of all if any of them carries one."""
    if any(carries_divisor(p) for _, p in operands):
        return [Typed(k, tracked(p)) for k, p in operands]
    return operands


# --------------------------------------------------------------------------------------------------------------- types


def typed(attribute: Attribute) -> Typed:
    """Read the typed value that a value type describes."""
    assert isinstance(attribute, CuteType)
    return Typed(attribute.kind, attribute.data)


def wrap(value: Typed) -> CuteType:
    """Build the type of a typed value.  Raises AlgebraError if the payload is not a legal value of its kind."""
    kind, payload = value
    try:
        return TYPES[kind](payload)
    except VerifyException as e:
        raise AlgebraError(f"result: {e}") from None


def weaker_or_equal(written: Any, inferred: Any) -> bool:
    """Tell whether a written payload is the inferred one up to weaker divisibility."""
    return implies(inferred, written)


def type_weaker_or_equal(written: Attribute, inferred: Attribute) -> bool:
    """Tell whether a written type is the inferred one up to weaker divisibility."""
    if written == inferred:
        return True
    if isinstance(written, CuteType) and isinstance(inferred, CuteType):
        return written.kind == inferred.kind and weaker_or_equal(written.data, inferred.data)
    if not (written.name.startswith("cute.") and inferred.name.startswith("cute.")):
        return False
    from cute_dialect.memory_types import tensor_weaker_or_equal

    return tensor_weaker_or_equal(written, inferred)


def payload_text(payload: Any) -> str:
    """Write a payload in its canonical text, for messages."""
    return text.to_text(payload)


# ------------------------------------------------------------------------------------------------------------- layouts


def outer(layout: AnyLayout) -> Layout:
    """Return the layout itself, or ``B`` of ``A o off o B``."""
    return layout.outer if isinstance(layout, ComposedLayout) else layout


def layout_like(payload: AnyLayout) -> Typed:
    """Pair a layout or composed layout with its kind; a trivial wrap ``S<0,m,s> o 0 o B`` decays to ``B``."""
    if isinstance(payload, ComposedLayout):
        if is_trivial_wrap(payload.inner, payload.offset):
            return Typed("layout", payload.outer)
        return Typed("composed_layout", payload)
    return Typed("layout", payload)
