"""Int tuples: shapes, coordinates, strides and tilers as users write them, and as operands of ops.

Users write plain Python: integers, typed numbers, ``None`` or ``:`` for a whole mode, and tuples of these.  Tilers may
contain layouts, and ``E(0)`` is a basis element.  A :class:`Tree` combines such a value with its kind (``"shape"``,
``"coord"``, …).  It has a type, and creates an SSA value when an op needs one.  :func:`tree_of` is the inverse.

>>> Tree((4, (None, 8)), "coord").text
'(4,(_,8))'
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from operator import index
from typing import TYPE_CHECKING, Any

from cute_dialect.algebra.leaf import AlgebraError, Dyn
from cute_dialect.algebra.text import to_text
from cute_dialect.algebra.trees import is_static as is_static_payload
from cute_dialect.algebra.trees import leaves as payload_leaves
from cute_dialect.algebra.trees import shape_to_tile
from cute_dialect.algebra.values import UNDERSCORE, Layout, Swizzle
from cute_dialect.algebra.values import Basis as BasisPayload
from cute_dialect.lang.tracing.errors import LayoutError
from cute_dialect.lang.tracing.tracer import current
from cute_dialect.lang.values.dtypes import Int32, Int64, Numeric, Uint32
from cute_dialect.lang.values.folding import Facts

if TYPE_CHECKING:
    from xdsl.ir import Attribute, SSAValue

    from cute_dialect.lang.values.signature_types import Coord, IntTuple

DIVISOR_CAP = 1 << 30
"""Largest divisor recorded in types."""


class ScaledBasis:
    """A step of ``value`` along one mode of a coordinate. Coordinate tensors have such strides.

    >>> E(0), 4 * E(1, 0)
    (1@0, 4@0@1)
    """

    __slots__ = ("path", "value")

    def __init__(self, value: Any, path: tuple[int, ...]):
        self.value = value
        self.path = path

    def __rmul__(self, n: Any) -> ScaledBasis:
        return ScaledBasis(n * self.value, self.path)

    __mul__ = __rmul__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ScaledBasis) and self.path == other.path and bool(self.value == other.value)

    __cute_same__ = __eq__

    def __hash__(self) -> int:
        return hash((self.path, self.value))

    def __repr__(self) -> str:
        return "@".join([str(self.value), *map(str, reversed(self.path))])


def E(*path: int) -> ScaledBasis:
    """Return the basis element of a mode, given as a path with the outermost index first.

    >>> E(1)
    1@1
    """
    return ScaledBasis(1, path)


# --------------------------------------------------------------------------------------------------- trees of users


def is_tree(x: object) -> bool:
    """Return True for an int tuple: an integer, ``None``, or a tuple of these."""
    if isinstance(x, Numeric):
        return type(x).is_integer
    return x is None or isinstance(x, int | tuple | list | ScaledBasis) or (isinstance(x, slice) and x == slice(None))


def leaves(tree: object) -> list[Any]:
    """Return the leaves of an int tuple, depth first.

    >>> leaves((1, (2, (3, None))))
    [1, 2, 3, None]
    """
    if not isinstance(tree, tuple | list):
        return [tree]
    return [leaf for branch in tree for leaf in leaves(branch)]


def map_tree(f: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """Apply a function to each leaf of a tree, and the corresponding leaves of other trees.

    >>> map_tree(lambda n: n * 2, (1, (2, 3)))
    (2, (4, 6))
    """
    inner = isinstance(tree, tuple | list)
    for other in others:
        if isinstance(other, tuple | list) != inner or (inner and len(other) != len(tree)):
            raise LayoutError("F241", f"the trees {tree_text(tree)} and {tree_text(other)} have different profiles")
    if not inner:
        return f(tree, *others)
    return tuple(map_tree(f, *branches) for branches in zip(tree, *others))


def tree_text(tree: object) -> str:
    """Return an int tuple as text for messages and ``print``.

    >>> tree_text((4, (None, 8)))
    '(4,(_,8))'
    """
    if isinstance(tree, tuple | list):
        return f"({','.join(map(tree_text, tree))})"
    if tree is None or isinstance(tree, slice):
        return "_"
    return str(tree)


def _split(x: Any, numbers: list[Numeric]) -> Any:
    """Return the payload of a user's value, and append its dynamic numbers."""
    kind = type(x)
    if kind is int:
        return x
    if kind is tuple or isinstance(x, tuple | list):
        return tuple([_split(y, numbers) for y in x])
    if x is None or (isinstance(x, slice) and x == slice(None)) or x is UNDERSCORE:
        return UNDERSCORE
    if isinstance(x, Numeric):
        if not kind.is_integer:
            raise LayoutError(
                "F241",
                f"a shape, stride or coordinate needs integers, got {x.describe()}",
                hint="convert with cute.Int32(x)",
            )
        if x.is_static:
            return int(x.value)
        number = _as_index(x)
        numbers.append(number)
        return Dyn(type(number).width, _divisor(number))
    if isinstance(x, ScaledBasis):
        return BasisPayload(_split(x.value, numbers), x.path)
    payload = getattr(x, "payload", None)
    if payload is not None:
        numbers.extend(x.numbers)
        return payload
    if isinstance(x, Layout | Swizzle):
        return x
    if hasattr(x, "__index__") and not isinstance(x, bool):
        return index(x)
    raise LayoutError("F241", f"a shape, stride or coordinate consists of integers, None and tuples, got {x!r}")


def _as_index(x: Numeric) -> Numeric:
    """Return an integer as Int32 or Int64, the types of dynamic leaves."""
    kind = type(x)
    if kind is Int32 or kind is Int64:
        return x
    if kind is Uint32 and (x.facts is None or x.facts.high is None or x.facts.high >= 1 << 31):
        return Int64(x)
    return (Int32 if kind.width <= 32 else Int64)(x)


def _divisor(number: Numeric) -> int:
    from math import gcd

    divisor = number.facts.divisor if number.facts is not None else 1
    if divisor > DIVISOR_CAP:
        divisor = gcd(divisor, DIVISOR_CAP)
    return divisor if divisor > 1 else 0


# ------------------------------------------------------------------------------------------------ operands of ops


@lru_cache(maxsize=8192)
def cute_type(kind: str, payload: Any) -> Attribute:
    """Return the cute type of a payload.  Raises AlgebraError for an invalid payload."""
    from cute_dialect.dialect.typed_values import Typed, wrap  # late: start-up

    return wrap(Typed(kind, payload))


class Tree:
    """An int tuple with its kind: ``"int_tuple"``, ``"shape"``, ``"coord"``, ``"stride"`` or ``"tiler"``.

    A tiler that contains a layout or ``None`` is a tile, otherwise a shape.
    """

    __slots__ = ("kind", "numbers", "payload")

    def __init__(self, tree: object, kind: str):
        self.numbers: list[Numeric] = []
        payload = _split(tree, self.numbers)
        if kind == "tiler":
            kind = "tile" if _is_tile(payload) else "shape"
        if kind == "tile":
            payload = _tile(payload)
        self.kind = kind
        self.payload = payload

    @property
    def type(self) -> Attribute:
        try:
            return cute_type(self.kind, self.payload)
        except AlgebraError as e:
            raise LayoutError("F240", str(e)) from None

    @property
    def is_static(self) -> bool:
        """True if it is completely known at compile time."""
        return not self.numbers

    @property
    def ssa(self) -> SSAValue:
        """The SSA value, created with ``cute.make_coord`` and the like."""
        return filled(self.kind, self.payload, self.numbers)

    @property
    def text(self) -> str:
        """The text in the dialect's syntax."""
        return to_text(self.payload, self.kind)


def _is_tile(payload: Any) -> bool:
    if isinstance(payload, tuple):
        return any(map(_is_tile, payload))
    return payload is UNDERSCORE or isinstance(payload, Layout)


def _tile(payload: Any) -> Any:
    """Return a tile, with extents replaced by layouts."""
    if isinstance(payload, tuple):
        return tuple([_tile(x) for x in payload])
    if isinstance(payload, int | Dyn):
        return shape_to_tile(payload)
    return payload


def filled(kind: str, payload: Any, numbers: Sequence[Numeric]) -> SSAValue:
    """Return the SSA value of a payload, with ``numbers`` for its dynamic leaves in storage order."""
    tracer = current()
    try:
        type = cute_type(kind, payload)
    except AlgebraError as e:
        raise LayoutError("F240", str(e)) from None
    if not numbers:
        return tracer.static(type)
    if kind == "layout":
        n = len(dynamic_leaves_of(payload.shape))
        shape = filled("shape", payload.shape, numbers[:n])
        return tracer.value("cute.make_layout", [shape, filled("stride", payload.stride, numbers[n:])], [type])
    if kind == "composed_layout":
        n = len(dynamic_leaves_of(payload.outer))
        m = n + len(dynamic_leaves_of(payload.offset))
        inner_kind = "swizzle" if isinstance(payload.inner, Swizzle) else "layout"
        outer = filled("layout", payload.outer, numbers[:n])
        offset = filled("int_tuple", payload.offset, numbers[n:m])
        inner = filled(inner_kind, payload.inner, numbers[m:])
        return tracer.value("cute.make_composed_layout", [inner, offset, outer], [type])
    scalars = [_scalar(n, leaf) for n, leaf in zip(numbers, dynamic_leaves_of(payload), strict=True)]
    return tracer.value(f"cute.make_{kind}", scalars, [type])


def dynamic_leaves_of(payload: Any) -> list[Dyn]:
    """Return the dynamic leaves of a payload, in storage order."""
    values = [leaf.value if isinstance(leaf, BasisPayload) else leaf for leaf in payload_leaves(payload)]
    return [v for v in values if isinstance(v, Dyn)]


def _scalar(number: Numeric, leaf: Dyn) -> SSAValue:
    """Return the operand for a dynamic leaf, annotated with the leaf's divisor."""
    value = (Int32 if leaf.width == 32 else Int64)(number).ssa
    if leaf.div <= 1:
        return value
    return current().value("cute.assume", [value], [_constrained(leaf.width, leaf.div)])


@lru_cache(maxsize=1024)
def _constrained(width: int, divisor: int) -> Attribute:
    from cute_dialect.dialect.memory_types import constrained_int  # late: start-up

    return constrained_int(width, divisor)


def to_ssa(tree: object, kind: str = "coord") -> SSAValue:
    """Return the SSA value of an int tuple of a kind such as ``"coord"``, ``"shape"`` or ``"int_tuple"``."""
    return Tree(tree, kind).ssa


# ------------------------------------------------------------------------------------------------------- the way back


def scalars_of(ssa: SSAValue) -> Sequence[SSAValue]:
    """Return the dynamic integers of an SSA value, from one ``cute.get_scalars`` per value next to its definition."""
    tracer = current()
    known: dict[SSAValue, Sequence[SSAValue]] = tracer.state.setdefault("scalars", {})
    found = known.get(ssa)
    if found is None:
        from xdsl.dialects.builtin import UnitAttr

        properties = {"only_dynamic": UnitAttr()}
        found = known[ssa] = tracer.after(ssa, "cute.get_scalars", [ssa], properties=properties).results
    return found


def numbers_of(ssa: SSAValue, payload: Any, *, shapes: int = 0) -> list[Numeric]:
    """Return the dynamic integers of an SSA value as numbers. The first ``shapes`` are extents, which are positive."""
    return [
        (Int32 if leaf.width == 32 else Int64).of(value, Facts(0 if i < shapes else None, None, max(1, leaf.div)))
        for i, (value, leaf) in enumerate(zip(scalars_of(ssa), dynamic_leaves_of(payload), strict=True))
    ]


LAYOUT_CLASSES: dict[type, Callable[[Any, Sequence[Numeric]], Any]] = {}
"""Maps payload classes of layouts to constructors of layouts from a payload and its numbers; ``layouts`` fills it."""


def tree_of(payload: Any, numbers: Iterator[Numeric]) -> Any:
    """Return the int tuple of a payload. Dynamic leaves are taken from ``numbers``."""
    if isinstance(payload, tuple):
        return tuple([tree_of(x, numbers) for x in payload])
    if isinstance(payload, Dyn):
        return next(numbers)
    if payload is UNDERSCORE:
        return None
    if isinstance(payload, BasisPayload):
        return ScaledBasis(tree_of(payload.value, numbers), payload.path)
    if isinstance(payload, Layout):
        own = [next(numbers) for _ in dynamic_leaves_of(payload)]
        return LAYOUT_CLASSES[Layout](payload, own)
    return payload


def from_ssa(ssa: SSAValue) -> Any:
    """Return the int tuple of an SSA value: static leaves as integers, dynamic ones as Int32 or Int64."""
    type: Any = ssa.type
    payload = type.data
    if is_static_payload(payload):
        return tree_of(payload, iter(()))
    shapes = len(dynamic_leaves_of(payload)) if type.kind == "shape" else 0
    return tree_of(payload, iter(numbers_of(ssa, payload, shapes=shapes)))


# ------------------------------------------------------------------------------------------------------------ profiles


def modes_of(x: Any) -> Any:
    """Return the shape of a layout or tensor, or a tree itself."""
    return x if is_tree(x) else x.shape


def counted(n: Any) -> Any:
    """Return a number of elements, marked as non-negative."""
    if isinstance(n, Numeric) and not n.is_static:
        facts = n.facts or Facts()
        n.facts = Facts(max(0, facts.low or 0), facts.high, facts.divisor)
    return n


def congruent(a: IntTuple, b: IntTuple) -> bool:
    """Return True if two trees have the same profile.

    >>> congruent((1, (2, 3)), (4, (5, 6))), congruent((1, 2), (4, (5, 6)))
    (True, False)
    """
    a, b = modes_of(a), modes_of(b)
    if isinstance(a, tuple | list) and isinstance(b, tuple | list):
        return len(a) == len(b) and all(map(congruent, a, b))
    return not isinstance(a, tuple | list) and not isinstance(b, tuple | list)


def has_underscore(x: Coord) -> bool:
    """Return True if a coordinate leaves a mode open.

    >>> has_underscore((1, (None, 2)))
    True
    """
    return any(leaf is None or isinstance(leaf, slice) for leaf in leaves(x))
