"""Functions on trees: int tuples, shapes, coordinates, strides and tiles.

A tree is a leaf or a ``tuple`` of trees.  A *mode* is a direct child of a tuple.  Most functions also accept a layout,
of which they use the shape, or a composed layout, of which they use the outer layout.

>>> rank((2, (3, 4))), depth((2, (3, 4))), flatten((2, (3, 4))), product((2, (3, 4)))
(2, 2, (2, 3, 4), 24)
>>> congruent((1, (1, 1)), (2, (3, 4))), weakly_congruent((1, 2), (2, (3, 4)))
(True, True)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias, TypeVar

from cute_dialect.algebra.leaf import AlgebraError, Dyn, Leaf, mul
from cute_dialect.algebra.values import (
    UNDERSCORE,
    Basis,
    ComposedLayout,
    Coord,
    IntTuple,
    Layout,
    Payload,
    Stride,
    Swizzle,
    Tile,
    raw_layout,
    tree_text,
)

Tree: TypeAlias = "IntTuple | Coord | Stride | Tile"
P = TypeVar("P", bound=Payload)


def shown(value: object) -> str:
    """Return the canonical text of a value.  A tuple that contains a layout is a tile."""
    return tile_text(value) if _has_layout(value) else tree_text(value)  # type: ignore[arg-type]


def tile_text(tile: Payload) -> str:
    """Return the canonical text of a tile, also if it contains no layout."""
    return "[" + ";".join([tile_text(t) for t in tile]) + "]" if type(tile) is tuple else str(tile)


def _has_layout(value: object) -> bool:
    return type(value) is tuple and any([type(v) is Layout or _has_layout(v) for v in value])  # type: ignore[reportUnknownVariableType]


# -------------------------------------------------------------------------------------------------- structure


def _tree_of(value: Payload) -> Tree:
    if isinstance(value, Layout):
        return value.shape
    if isinstance(value, ComposedLayout):
        return value.outer.shape
    return value  # type: ignore[return-value]


def rank(value: Payload) -> int:
    """Return the number of modes: 1 for a leaf, 0 for ``()``."""
    tree = _tree_of(value)
    return len(tree) if type(tree) is tuple else 1


def depth(value: Payload) -> int:
    """Return the nesting depth: 0 for a leaf, 1 for ``()``."""
    tree = _tree_of(value)
    if type(tree) is tuple:
        return 1 + max([depth(t) for t in tree], default=0)
    return 0


def tile_rank(tile: Tile) -> int:
    """Return the number of slots.  A leaf tile has one, whatever its layout."""
    return len(tile) if type(tile) is tuple else 1


def leaves(value: Payload) -> list[object]:
    """Return the leaves in depth-first order.  For a layout, including one in a tile, the shape comes before the
    stride.

    For a composed layout the order is outer layout, offset, inner part: the order in which its run-time scalars are
    stored.  A swizzle has no leaves.

    >>> leaves(Layout((2, (3, 4))))
    [2, 3, 4, 1, 2, 6]
    """
    out: list[object] = []
    _leaves(value, out)
    return out


def _leaves(value: Payload, out: list[object]) -> None:
    if isinstance(value, tuple):
        for v in value:
            if isinstance(v, tuple | Layout):
                _leaves(v, out)
            else:
                out.append(v)
    elif isinstance(value, Layout):
        _leaves(value.shape, out)
        _leaves(value.stride, out)
    elif isinstance(value, ComposedLayout):
        _leaves(value.outer, out)
        _leaves(value.offset, out)
        _leaves(value.inner, out)
    elif not isinstance(value, Swizzle):
        out.append(value)


def tree_leaves(tree: Tree) -> list[object]:
    """Return the leaves of one tree in depth-first order.  Leaves of a tile are its layouts and underscores."""
    if type(tree) is not tuple:
        return [tree]
    out: list[object] = []
    for t in tree:
        if type(t) is tuple:
            out += tree_leaves(t)
        else:
            out.append(t)
    return out


def tree_flatten(tree: Tree) -> Tree:
    """Flatten one tree: a leaf stays a leaf, a tuple becomes a tuple of its leaves."""
    return tuple(tree_leaves(tree)) if type(tree) is tuple else tree  # type: ignore[return-value]


def flatten(value: Payload) -> Payload:
    """Flatten a value: a leaf stays a leaf, a tuple becomes a tuple of its leaves.

    For a layout, shape and stride are flattened; for a composed layout, those of its outer layout.  For a tile, whose
    leaves are layouts, use :func:`tree_flatten`.

    >>> flatten(((2, 3), ())), flatten(()), flatten(5), flatten(Layout("(2,(5,(3))):(15,(3,(1)))"))
    ((2, 3), (), 5, Layout("(2,5,3):(15,3,1)"))
    """
    if isinstance(value, Layout):
        return raw_layout(tree_flatten(value.shape), tree_flatten(value.stride))  # type: ignore[arg-type]
    if isinstance(value, ComposedLayout):
        return ComposedLayout(value.inner, value.offset, flatten(value.outer))  # type: ignore[arg-type]
    return tree_flatten(value)  # type: ignore[arg-type]


def unwrap(tree: Tree) -> Tree:
    """Remove tuples of exactly one element: ``((5))`` gives ``5``."""
    while type(tree) is tuple and len(tree) == 1:
        tree = tree[0]
    return tree


def is_static(value: Payload) -> bool:
    """Return True if no leaf is dynamic.  Underscores, swizzles and basis elements with a static value are static."""
    t = type(value)
    if t is int:
        return True
    if t is tuple:
        return all([is_static(v) for v in value])  # type: ignore[union-attr]
    if t is Layout:
        return is_static(value.shape) and is_static(value.stride)  # type: ignore[union-attr]
    if t is Basis:
        return not isinstance(value.value, Dyn)  # type: ignore[union-attr]
    if t is ComposedLayout:
        return is_static(value.outer) and is_static(value.offset) and is_static(value.inner)  # type: ignore[union-attr]
    return not isinstance(value, Dyn)


def map_leaves(f: Callable[[Leaf], Leaf], value: Payload) -> Payload:
    """Apply ``f`` to every integer leaf and to the values of basis elements.  ``_`` and swizzles are unchanged.

    Leaves are visited in text order: shape, then stride.  A composed layout is visited as outer, offset, inner.

    >>> map_leaves(lambda n: n * 2, Layout((2, 3), (1, 4)))
    Layout("(4,6):(2,8)")
    """
    t = type(value)
    if t is tuple:
        return tuple([map_leaves(f, v) for v in value])  # type: ignore[union-attr,return-value]
    if t is Layout:
        shape = map_leaves(f, value.shape)  # type: ignore[union-attr]
        return raw_layout(shape, map_leaves(f, value.stride))  # type: ignore[union-attr,arg-type]
    if t is ComposedLayout:
        outer = map_leaves(f, value.outer)  # type: ignore[union-attr]
        offset = map_leaves(f, value.offset)  # type: ignore[union-attr]
        return ComposedLayout(map_leaves(f, value.inner), offset, outer)  # type: ignore[union-attr,arg-type]
    if t is Basis:
        return Basis(f(value.value), value.path)  # type: ignore[union-attr]
    if value is UNDERSCORE or t is Swizzle:
        return value
    return f(value)  # type: ignore[arg-type]


# ---------------------------------------------------------------------------------------------- divisibility


def tracked(value: P) -> P:
    """Make every dynamic leaf track its divisibility.  Leaves without a divisor get divisor 1.

    This is sound because every integer is a multiple of 1.  Tensor operations always track divisibility.  Layout
    operations track it as soon as one operand carries a divisor (:func:`carries_divisor`).
    """
    return map_leaves(_tracked, value)  # type: ignore[return-value]


def _tracked(n: Leaf) -> Leaf:
    return Dyn(n.width, 1, n.value, n.emitter) if isinstance(n, Dyn) and not n.div else n


def untracked(value: Payload) -> Payload:
    """Remove all divisors."""
    return map_leaves(lambda n: Dyn(n.width, 0, n.value, n.emitter) if isinstance(n, Dyn) and n.div else n, value)


def carries_divisor(value: Payload) -> bool:
    """Return True if a dynamic leaf has a known divisor above 1."""
    for x in leaves(value):
        n = x.value if isinstance(x, Basis) else x
        if isinstance(n, Dyn) and n.div > 1:
            return True
    return False


def implies(inferred: Payload, written: Payload) -> bool:
    """Return True if ``inferred`` is at least as precise as ``written``: equal except for larger divisors.

    >>> implies((Dyn(div=16), 4), (Dyn(div=8), 4)), implies(Dyn(div=8), Dyn(div=16)), implies(4, Dyn())
    (True, False, False)
    """
    if isinstance(inferred, Dyn):
        return (
            isinstance(written, Dyn)
            and inferred.width == written.width
            and (inferred.div or 1) % (written.div or 1) == 0
        )
    if type(inferred) is not type(written):
        return False
    if isinstance(inferred, tuple) and isinstance(written, tuple):
        return len(inferred) == len(written) and all(map(implies, inferred, written))
    if isinstance(inferred, Basis) and isinstance(written, Basis):
        return inferred.path == written.path and implies(inferred.value, written.value)
    if isinstance(inferred, Layout) and isinstance(written, Layout):
        return implies(inferred.shape, written.shape) and implies(inferred.stride, written.stride)
    if isinstance(inferred, ComposedLayout) and isinstance(written, ComposedLayout):
        return (
            implies(inferred.inner, written.inner)
            and implies(inferred.offset, written.offset)
            and implies(inferred.outer, written.outer)
        )
    return inferred == written


# --------------------------------------------------------------------------------------------------- relations


def congruent(a: Tree, b: Tree) -> bool:
    """Return True if two trees have the same nesting.  The kinds of their leaves are not compared."""
    if type(a) is tuple:
        if type(b) is not tuple or len(a) != len(b):
            return False
        return all(not ((type(x) is tuple or type(y) is tuple) and not congruent(x, y)) for x, y in zip(a, b))
    return type(b) is not tuple


def weakly_congruent(a: Tree, b: Tree) -> bool:
    """Return True if ``a`` is nested no deeper than ``b``: a leaf of ``a`` matches any subtree of ``b``.

    >>> weakly_congruent((1, 2), (2, (3, 4))), weakly_congruent((1,), 3), weakly_congruent(1, ())
    (True, False, True)
    """
    if type(a) is not tuple:
        return True
    return type(b) is tuple and len(a) == len(b) and all(map(weakly_congruent, a, b))


def compatible(a: IntTuple, b: IntTuple) -> bool:
    """Return True if ``a`` is the static integer ``product(b)``, or if ranks are equal and all modes compatible."""
    if type(a) is tuple:
        return type(b) is tuple and len(a) == len(b) and all(map(compatible, a, b))
    return isinstance(a, int) and a == product(b)


# -------------------------------------------------------------------------------------------------- selection


def get(value: Payload, path: Sequence[int] = ()) -> Payload:
    """Return the mode at a path of mode indices; for a layout or composed layout, the sublayout.

    Index 0 of a leaf is the leaf itself and must end the path.

    Raises:
        AlgebraError: an index is out of range.  The message names the depth.

    >>> get(Layout("(6,(2,5)):(10,(5,1))"), [1, 0])
    Layout("2:5")
    >>> get((6, 2), [2])
    Traceback (most recent call last):
        ...
    cute_dialect.algebra.leaf.AlgebraError: expected mode index in [0, 2) at depth 0, got 2
    """
    if isinstance(value, ComposedLayout):
        return ComposedLayout(value.inner, value.offset, get(value.outer, path))  # type: ignore[arg-type]
    if isinstance(value, Layout):
        return raw_layout(tree_get(value.shape, path), tree_get(value.stride, path))  # type: ignore[arg-type]
    return tree_get(value, path)  # type: ignore[arg-type,return-value]


def tree_get(tree: Tree, path: Sequence[int]) -> Tree:
    """Return the subtree at a path; see :func:`get`.  In a tile the path selects a slot, never a mode of its layout.

    Raises:
        AlgebraError: an index is out of range.
    """
    for i, index in enumerate(path):
        if type(tree) is not tuple:
            _check_index(index, 1, i)
            if i or len(path) > 1:
                raise AlgebraError(f"expected the path {list(path)} to end at the leaf at depth {i}")
            return tree
        _check_index(index, len(tree), i)
        tree = tree[index]
    return tree


def _check_index(index: int, rank_: int, at: int) -> None:
    if not 0 <= index < rank_:
        raise AlgebraError(f"expected mode index in [0, {rank_}) at depth {at}, got {index}")


def select(value: Payload, indices: Iterable[int]) -> Payload:
    """Return the modes at ``indices``, in that order, always as a tuple.  A leaf counts as one mode.

    Raises:
        AlgebraError: an index is outside ``[0, rank)``.

    >>> select(Layout("(6,5,2):(10,2,1)"), [2, 0]), select(6, [0]), select((6, 5), [])
    (Layout("(2,6):(1,10)"), (6,), ())
    """
    if isinstance(value, ComposedLayout):
        return ComposedLayout(value.inner, value.offset, select(value.outer, indices))  # type: ignore[arg-type]
    if isinstance(value, Layout):
        indices = list(indices)
        shape = tree_select(value.shape, indices)
        return raw_layout(shape, tree_select(value.stride, indices))  # type: ignore[arg-type]
    return tree_select(value, indices)  # type: ignore[arg-type,return-value]


def tree_select(tree: Tree, indices: Iterable[int]) -> Tree:
    """Return the modes of one tree at ``indices``; see :func:`select`.  In a tile the indices select slots.

    Raises:
        AlgebraError: an index is out of range.
    """
    modes = tree if type(tree) is tuple else (tree,)
    out: list[object] = []
    for i in indices:
        _check_index(i, len(modes), 0)
        out.append(modes[i])
    return tuple(out)  # type: ignore[return-value]


def tile_shape(tile: Tile) -> IntTuple:
    """Replace every layout of a tile by its shape.  Raises AlgebraError if a slot is ``_``.

    >>> tile_shape((Layout(6), (Layout("(2,5):(5,1)"), Layout(3))))
    (6, ((2, 5), 3))
    """
    if type(tile) is tuple:
        return tuple([tile_shape(t) for t in tile])
    if not isinstance(tile, Layout):
        raise AlgebraError("expected a layout in every slot of the tile, got '_'")
    return tile.shape


def tile_layouts(tile: Tile) -> list[Layout]:
    """Return the layouts of a tile in depth-first order, without ``_``.  Raises AlgebraError if there is none."""
    layouts = [t for t in tree_leaves(tile) if isinstance(t, Layout)]
    if not layouts:
        raise AlgebraError("expected a tile with at least one layout slot, got none")
    return layouts


def shape_to_tile(shape: IntTuple) -> Tile:
    """Convert a shape to a tile: a leaf ``n`` becomes the layout ``n:1``, a static 1 becomes ``1:0``.

    Raises:
        AlgebraError: a static extent is below 1.

    >>> shape_to_tile((4, 1))
    (Layout("4:1"), Layout("1:0"))
    """
    if type(shape) is tuple:
        return tuple([shape_to_tile(s) for s in shape])
    if type(shape) is int and shape <= 0:
        raise AlgebraError(f"expected extents >= 1 in a tiler, got {shape}")
    return raw_layout(shape, 0 if type(shape) is int and shape == 1 else 1)


# ---------------------------------------------------------------------------------------------------- products


def product(tree: IntTuple) -> Leaf:
    """Return the product of the leaves, 1 for ``()``.  Raises AlgebraError if a leaf is not an integer."""
    if type(tree) is int:
        return tree
    p: Leaf = 1
    for x in tree_leaves(tree):
        if type(p) is int and type(x) is int:
            p *= x
        elif isinstance(x, int | Dyn):
            p = mul(p, x)
        else:
            raise AlgebraError(f"expected integer leaves in a product, got {x}")
    if type(p) is int:
        check_range(p)
    return p


def product_each(tree: IntTuple) -> tuple[Leaf, ...]:
    """Return the product of the leaves of every mode.  A scalar ``n`` gives ``(n,)``."""
    return tuple([product(t) for t in tree]) if type(tree) is tuple else (product(tree),)


def check_range(n: int) -> int:
    """Return ``n``.  Raises AlgebraError unless it fits in a signed 64-bit integer."""
    if not -0x8000000000000000 <= n <= 0x7FFFFFFFFFFFFFFF:
        raise AlgebraError(f"expected a result that fits in 64 bits, got {n}")
    return n


def prefix_product(tree: IntTuple) -> IntTuple:
    """Replace every leaf by the product of all leaves before it in depth-first order, starting with 1.

    >>> prefix_product((2, (3, 4)))
    (1, (2, 6))
    """
    return _running(tree, 1, False)[0]


def column_major(shape: IntTuple, start: Leaf = 1) -> IntTuple:
    """Return compact strides that start at ``start``, first leaf fastest.  A static extent of 1 gets stride 0.

    >>> column_major((6, 1, (5, 2)))
    (1, 0, (6, 30))
    """
    return _running(shape, start, True)[0]


def _running(tree: IntTuple, p: Leaf, zero_ones: bool) -> tuple[IntTuple, Leaf]:
    if type(tree) is tuple:
        out: list[IntTuple] = []
        for t in tree:
            element, p = _running(t, p, zero_ones)
            out.append(element)
        return tuple(out), p
    if zero_ones and type(tree) is int and tree == 1:
        return 0, p
    if type(p) is int:
        # Only products used as strides must fit in 64 bits.  The product after the last leaf may overflow.
        check_range(p)
        if type(tree) is int:
            return p, p * tree
    return p, mul(p, tree)  # type: ignore[arg-type]


def row_major(shape: IntTuple) -> IntTuple:
    """Return compact strides, last leaf fastest.  A static extent of 1 gets the running product, not 0.

    >>> row_major((6, 1, (5, 2)))
    (10, 10, (2, 1))
    """

    def walk(tree: IntTuple, p: Leaf) -> tuple[IntTuple, Leaf]:
        if type(tree) is tuple:
            out: list[IntTuple] = []
            for t in reversed(tree):
                element, p = walk(t, p)
                out.append(element)
            return tuple(reversed(out)), p
        if type(p) is int:
            check_range(p)
            if type(tree) is int:
                return p, p * tree
        return p, mul(p, tree)  # type: ignore[arg-type]

    return walk(shape, 1)[0]
