"""Sizes, profiles and modes of shapes, coordinates, layouts and tensors.

On Python tuples they are computed in Python; on layouts and tensors they emit ops if needed.

>>> size((4, (2, 3))), group_modes((2, 3, 4), 0, 2)
(24, ((2, 3), 4))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from cute_dialect.algebra.slicing import tree_dice, tree_slice
from cute_dialect.algebra.values import UNDERSCORE
from cute_dialect.lang.tracing.errors import LayoutError
from cute_dialect.lang.values.dtypes import Numeric
from cute_dialect.lang.values.indexing import check_part
from cute_dialect.lang.values.int_tuples import Tree, counted, is_tree, leaves, map_tree, modes_of, tree_text
from cute_dialect.lang.values.layouts import apply, as_layout, is_tensor, layout_of, make_layout, over_layout
from cute_dialect.lang.values.tuple_arithmetic import ceil_div, product

if TYPE_CHECKING:
    from cute_dialect.lang.values.signature_types import Coord, Int, IntTuple, LayoutLike, Shape, Stride


def _path(mode: Any) -> list[int] | None:
    if mode is None:
        return None
    return [int(i) for i in mode] if isinstance(mode, tuple | list) else [int(mode)]


# ----------------------------------------------------------------------------------------------- sizes, profiles


def size(x: LayoutLike, mode: int | Sequence[int] | None = None) -> Int:
    """Return the number of elements of a shape, layout, tensor or tiled operation, or of one of its modes.

    >>> size((4, (2, 3))), size((4, (2, 3)), mode=[1]), size(make_layout((4, 8)), mode=[0])
    (24, 6, 4)
    """
    path = _path(mode)
    if is_tree(x):
        return product(get(x, path) if path else x)
    own = getattr(x, "__cute_size__", None)
    if own is not None:
        return own(path)
    if isinstance(x, str):
        x = as_layout(x)
    if hasattr(type(x), "ssa"):
        return counted(apply("cute.size", x, mode=path or None))
    if not hasattr(x, "size"):
        allowed = "a shape, layout, tensor or tiled operation"
        raise LayoutError("F240", f"cute.size needs {allowed}, got {type(x).__name__}")
    return product(get(x.size, path) if path else x.size)


def cosize(x: LayoutLike, mode: int | Sequence[int] | None = None) -> Int:
    """Return the largest offset of a layout plus one.

    >>> cosize(make_layout((5, 3), (1, 7)))
    19
    """
    return counted(apply("cute.cosize", layout_of(x), mode=_path(mode)))


def size_in_bytes(dtype: type[Numeric], x: LayoutLike | None) -> Int:
    """Return the size of a layout's elements in memory, from the first to the last, in bytes; 0 for None.

    >>> from cute_dialect.lang.values.dtypes import Float16
    >>> size_in_bytes(Float16, make_layout((4, 8))), size_in_bytes(Float16, None)
    (64, 0)
    """
    if x is None:
        return 0
    made = layout_of(x)
    outer = made.outer if hasattr(made, "outer") else made
    return ceil_div(cosize(outer) * dtype.width, 8)


def rank(x: LayoutLike, mode: int | Sequence[int] | None = None) -> int:
    """Return the number of modes; 1 for an integer.

    >>> rank((4, (2, 3))), rank(8)
    (2, 1)
    """
    tree = modes_of(x) if mode is None else get(modes_of(x), _path(mode))
    return len(tree) if isinstance(tree, tuple | list) else 1


def depth(x: LayoutLike) -> int:
    """Return the nesting depth, 0 for an integer.

    >>> depth((4, (2, 3)))
    2
    """
    tree = modes_of(x)
    return 1 + max([depth(t) for t in tree], default=0) if isinstance(tree, tuple | list) else 0


def is_static(x: LayoutLike) -> bool:
    """Return True if a tree, layout or number is completely known at compile time."""
    if isinstance(x, tuple | list):
        return all(map(is_static, x))
    if hasattr(x, "is_static"):
        return bool(x.is_static)
    return not hasattr(type(x), "ssa")


def weakly_congruent(a: IntTuple, b: IntTuple) -> bool:
    """Return True if the profile of ``a`` is a coarsening of the profile of ``b``.

    >>> weakly_congruent((1, 2), (4, (5, 6)))
    True
    """
    a, b = modes_of(a), modes_of(b)
    if not isinstance(a, tuple | list):
        return True
    return isinstance(b, tuple | list) and len(a) == len(b) and all(map(weakly_congruent, a, b))


def is_major(mode: int, stride: Stride) -> bool:
    """Return True if the stride of a mode is a static 1.

    >>> is_major(0, (1, 8)), is_major(1, (1, 8))
    (True, False)
    """
    return any(type(d) is int and d == 1 for d in leaves(get(stride, [mode])))


def shape(x: LayoutLike, mode: int | Sequence[int] | None = None) -> Shape:
    """Return the shape of a layout or tensor, or of one of its modes. A shape is returned unchanged.

    >>> shape(make_layout((4, (2, 3))), mode=[1])
    (2, 3)
    """
    path = _path(mode)
    return get(modes_of(x), path) if path else modes_of(x)


# ----------------------------------------------------------------------------------------------------------- modes


def get(x: LayoutLike, mode: int | Sequence[int]) -> LayoutLike:
    """Return the mode at a path of indices.

    >>> get((4, (2, 3)), [1, 0]), get(make_layout((4, 8)), [1])
    (2, 8:4)
    """
    path = _path(mode) or []
    if is_tensor(x):
        return over_layout(x, lambda layout: get(layout, path))
    if not is_tree(x):
        return apply("cute.get", as_layout(x), mode=path)
    at = x
    for i, which in enumerate(path):
        modes: Sequence[Any] = at if isinstance(at, tuple | list) else (at,)
        if not 0 <= which < len(modes):
            raise LayoutError(
                "F240", f"get: the mode at depth {i} of {tree_text(x)} must be in [0, {len(modes)}), got {which}"
            )
        at = modes[which]
    return at


def select(x: LayoutLike, mode: Sequence[int]) -> LayoutLike:
    """Return the selected modes, in the given order.

    >>> select((4, 5, 6), [2, 0]), select(make_layout((4, 8, 2)), [1])
    ((6, 4), (8):(4))
    """
    if is_tree(x):
        return tuple(get(x, [i]) for i in mode)
    return apply("cute.select", as_layout(x), mode=list(mode))


def front(x: LayoutLike) -> LayoutLike:
    """Return the first mode.

    >>> front((4, 5))
    4
    """
    return get(x, [0])


def back(x: LayoutLike) -> LayoutLike:
    """Return the last mode.

    >>> back((4, 5))
    5
    """
    return get(x, [rank(x) - 1])


def _padded(name: str, x: Any, element: Any, up_to_rank: int | None) -> Any:
    wanted = rank(x) + 1 if up_to_rank is None else up_to_rank
    if is_tree(x):
        modes = tuple(x) if isinstance(x, tuple | list) else (x,)
        more = (element,) * max(0, wanted - len(modes))
        return modes + more if name == "append" else more + modes
    if is_tensor(x):
        return over_layout(x, lambda layout: _padded(name, layout, element, up_to_rank))
    return apply(f"cute.{name}_to_rank", as_layout(x), as_layout(element), rank=wanted)


def append(x: LayoutLike, element: LayoutLike, up_to_rank: int | None = None) -> LayoutLike:
    """Append a mode to a tree or layout, or as many as needed for a rank.

    >>> append((4, 5), 6), append(make_layout(6, 2), make_layout(1, 0), up_to_rank=3)
    ((4, 5, 6), (6,1,1):(2,0,0))
    """
    return _padded("append", x, element, up_to_rank)


def prepend(x: LayoutLike, element: LayoutLike, up_to_rank: int | None = None) -> LayoutLike:
    """Prepend a mode to a tree or layout, or as many as needed for a rank.

    >>> prepend((4, 5), 6)
    (6, 4, 5)
    """
    return _padded("prepend", x, element, up_to_rank)


def append_ones(x: LayoutLike, up_to_rank: int | None = None) -> LayoutLike:
    """Append modes of extent 1 to a shape or layout.

    >>> append_ones((4, 5), up_to_rank=4)
    (4, 5, 1, 1)
    """
    return append(x, 1 if is_tree(x) else make_layout(1, 0), up_to_rank)


def prepend_ones(x: LayoutLike, up_to_rank: int | None = None) -> LayoutLike:
    """Prepend modes of extent 1 to a shape or layout.

    >>> prepend_ones((4, 5))
    (1, 4, 5)
    """
    return prepend(x, 1 if is_tree(x) else make_layout(1, 0), up_to_rank)


def group_modes(x: LayoutLike, begin: int, end: int | None = None) -> LayoutLike:
    """Group modes ``begin`` to ``end-1`` of a tree, layout or tensor into one mode.

    >>> group_modes((2, 3, 4), 0, 2), group_modes(make_layout((2, 3, 4)), 1, 3)
    (((2, 3), 4), (2,(3,4)):(1,(2,6)))
    """
    last = rank(x) if end is None or end == -1 else end
    if not is_tree(x):
        return apply("cute.group_modes", as_layout(x), begin=begin, end=last)
    modes = tuple(x) if isinstance(x, tuple | list) else (x,)
    if not 0 <= begin < last <= len(modes):
        raise LayoutError("F240", f"group_modes({tree_text(x)}): needs 0 <= begin < end <= {len(modes)}, got "
                          f"{begin} and {last}")  # fmt: skip
    return (*modes[:begin], modes[begin:last], *modes[last:])


def flatten(x: LayoutLike) -> LayoutLike:
    """Return the modes without nesting.

    >>> flatten((4, (2, (3,)))), flatten(make_layout((4, (2, 3))))
    ((4, 2, 3), (4,2,3):(1,4,8))
    """
    if is_tree(x):
        return tuple(leaves(x)) if isinstance(x, tuple | list) else x
    return apply("cute.flatten", as_layout(x))


def flatten_to_tuple(x: LayoutLike) -> tuple[IntTuple, ...]:
    """Return the leaves of a tree as a tuple, even for a single leaf.

    >>> flatten_to_tuple(4), flatten_to_tuple((4, (2, 3)))
    ((4,), (4, 2, 3))
    """
    return tuple(leaves(x))


def unflatten(sequence: Sequence[IntTuple], profile: IntTuple) -> IntTuple:
    """Return the elements of a sequence as a tree with a given profile.

    >>> unflatten((4, 2, 3), (0, (0, 0)))
    (4, (2, 3))
    """
    given = list(leaves(sequence))
    if len(given) != len(leaves(profile)):
        raise LayoutError(
            "F241", f"unflatten: {tree_text(profile)} needs {len(leaves(profile))} elements, got {len(given)}"
        )
    source = iter(given)
    return map_tree(lambda _: next(source), profile)


def slice_(x: LayoutLike, coord: Coord) -> LayoutLike:
    """Return the modes that a coordinate leaves open.

    >>> slice_((4, (2, 3)), (1, (None, 0))), slice_(make_layout((4, 8)), (None, 2))
    ((2,), (4):(1))
    """
    if is_tree(x):
        return _part(x, coord, tree_slice)
    made = apply("cute.slice", as_layout(x), Tree(coord, "coord"))
    if getattr(x, "element_type", None) is not None:
        check_part(made, x, coord, x.shape_payload, lambda: x.shape, "elements")
    return made


def dice(x: LayoutLike, coord: Coord) -> LayoutLike:
    """Return the modes at which a coordinate has an integer.

    >>> dice((4, (2, 3)), (1, (None, 0))), dice(make_layout((4, 8)), (None, 2))
    ((4, 3), (8):(4))
    """
    if is_tree(x):
        return _part(x, coord, tree_dice)
    return apply("cute.dice", as_layout(x), Tree(map_tree(_open_or_zero, coord), "coord"))


def _open_or_zero(leaf: Any) -> Any:
    return UNDERSCORE if leaf is None or isinstance(leaf, slice) else 0


def _part(x: Any, coord: Any, part: Callable[..., Any]) -> Any:
    """Return the parts of a tree at the open (or the fixed) modes of a coordinate."""
    if not weakly_congruent(coord, x):
        raise LayoutError("F241", f"the coordinate {tree_text(coord)} does not match the profile of {tree_text(x)}")
    return part(map_tree(_open_or_zero, coord), map_tree(lambda leaf: leaf, x))


def repeat(x: IntTuple, n: int) -> IntTuple:
    """Return a tuple with the element repeated ``n`` times, or the element itself if ``n`` is 1.

    >>> repeat(4, 3), repeat(4, 1)
    ((4, 4, 4), 4)
    """
    return x if n == 1 else (x,) * n


def repeat_as_tuple(x: IntTuple, n: int) -> tuple[IntTuple, ...]:
    """Return a tuple with the element repeated ``n`` times, even for 1.

    >>> repeat_as_tuple(4, 1)
    (4,)
    """
    return (x,) * n


def repeat_like(x: IntTuple, target: IntTuple) -> IntTuple:
    """Return a tree with the profile of ``target`` and the element at each leaf.

    >>> repeat_like(1, (4, (2, 3)))
    (1, (1, 1))
    """
    return map_tree(lambda _: x, target)


def transform_leaf(f: Callable[..., Any], *trees: IntTuple) -> IntTuple:
    """Apply a function to the corresponding leaves of trees with the same profile.

    >>> transform_leaf(lambda a, b: a * b, (2, (3, 4)), (5, (6, 7)))
    (10, (18, 28))
    """
    return map_tree(f, *trees)


def tuple_cat(*tuples: IntTuple) -> tuple[IntTuple, ...]:
    """Return the concatenated modes of all trees.

    >>> tuple_cat((1, 2), 3, (4,))
    (1, 2, 3, 4)
    """
    return tuple(mode for x in tuples for mode in (x if isinstance(x, tuple | list) else (x,)))
