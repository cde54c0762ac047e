"""Tiled copies: thread-value layouts, partitioning of tiles among threads, retiling of fragments.

A *thread-value layout* ``TV`` maps ``(thread, value)`` to the column-major index in a tile.  A copy atom moves
``AtomVal`` values with ``AtomThr`` threads.  The atom has a layout ``(thread, value)`` -> position for the source, for
the destination and for its reference side, to which ``TV`` refers.

>>> tiler, tv = make_layout_tv(Layout("(4,32):(32,1)"), Layout("(4,4):(4,1)"))
>>> tiler, tv
((16, 128), Layout("((32,4),(4,4)):((64,4),(16,1))"))
>>> from cute_dialect.algebra.leaf import Dyn
>>> block = Layout((16, 128), (Dyn(), 1))
>>> layout, offset = thread_slice(tile_to_thread(block, tiler, tv), 74)
>>> layout, offset
(Layout("((1,(4,4)),1,1):((0,(1,?)),0,0)"), Dyn(?))

Source: the CuTe documentation, "Tiled copies"; CUTLASS ``include/cute/atom/copy_atom.hpp`` (BSD-3).
"""

from __future__ import annotations

from typing import cast

from cute_dialect.algebra.compose import compose
from cute_dialect.algebra.evaluation import cosize, crd2idx, evaluate, size
from cute_dialect.algebra.inverses import left_inverse, right_inverse
from cute_dialect.algebra.layout import coalesce, make_layout, upcast
from cute_dialect.algebra.leaf import AlgebraError, Leaf
from cute_dialect.algebra.leaf import div as leaf_div
from cute_dialect.algebra.leaf import mod as leaf_mod
from cute_dialect.algebra.slicing import slice_and_offset, tree_dice
from cute_dialect.algebra.tiling import Tiler, logical_product, raked_product, zip_layouts, zipped_divide
from cute_dialect.algebra.trees import column_major, is_static, product, product_each, shown, tree_leaves
from cute_dialect.algebra.values import (
    UNDERSCORE,
    AnyLayout,
    Basis,
    ComposedLayout,
    Coord,
    IntTuple,
    Layout,
    Stride,
    layout_modes,
    raw_layout,
)

# ------------------------------------------------------------------------------------------------- construction


def make_layout_tv(threads: Layout, values: Layout) -> tuple[IntTuple, Layout]:
    """Return the tile and the thread-value layout of a thread layout and a value layout, as ``(tiler, TV)``.

    Every thread holds the values of one block, and the blocks tile the result side by side.

    Args:
        threads: static layout ``(m, n)`` -> thread.
        values: static layout ``(m, n)`` -> value.

    Raises:
        AlgebraError: a layout is not static, or does not number its elements without gaps.

    >>> make_layout_tv(Layout("(16,8):(8,1)"), Layout("(1,8):(0,1)"))
    ((16, 64), Layout("((8,16),8):((128,1),16)"))
    """
    if not is_static(threads) or not is_static(values):
        raise AlgebraError(f"expected static layouts, got {shown(threads)} and {shown(values)}")
    for what, x in (("thread", threads), ("value", values)):
        if product(right_inverse(x).shape) != product(x.shape):
            raise AlgebraError(f"expected a {what} layout that numbers its elements without gaps, got {shown(x)}")
    mn = raked_product(threads, values)
    counts = (product(threads.shape), product(values.shape))
    return product_each(mn.shape), compose(right_inverse(mn), raw_layout(counts, column_major(counts)))


def make_cotiled_layout(addresses: Layout, data: Layout) -> tuple[tuple[Layout, ...], Layout]:
    """Return the tile and the thread-value layout of a copy whose threads access given addresses, as ``(tiler, TV)``.

    Args:
        addresses: static layout ``(thread, value)`` -> address.
        data: static injective layout of the data: coordinates -> address.

    Raises:
        AlgebraError: the addresses are not those of a tile of the data.

    >>> lanes = Layout("((32,4),(8,32)):((0,2097152),(1,65536))")  # of tensor memory
    >>> make_cotiled_layout(lanes, Layout("(128,64):(65536,1)"))
    ((Layout("128:1"), Layout("8:1")), Layout("((32,4),(8,32)):((0,32),(128,1))"))
    """
    places = compose(left_inverse(data), addresses)
    _check_places(places, addresses, data)
    extents = tuple([product(s) for s in data.shape]) if isinstance(data.shape, tuple) else (product(data.shape),)
    whole = column_major(extents)
    assert isinstance(whole, tuple)
    tiler: list[Layout] = []
    for i in range(len(extents)):
        along = raw_layout(extents, tuple([int(j == i) for j in range(len(extents))]))
        tiler.append(_sorted_modes(compose(along, places)))
    inside = make_layout(*[compose(raw_layout(e, d), t) for e, d, t in zip(extents, whole, tiler)])
    return tuple(tiler), compose(left_inverse(inside), places)


def _check_places(places: Layout, addresses: Layout, data: Layout) -> None:
    """Raise AlgebraError unless the data have the addresses at the places: one step and the end of each mode."""
    have, held = cosize(places), size(data)
    if have > held:  # type: ignore[operator]
        raise AlgebraError(f"they have {held} elements, and the threads access the element {have - 1}")  # type: ignore[operator]
    count = size(addresses)
    assert isinstance(count, int)
    wanted = {count - 1}
    step = 1
    for extent in tree_leaves(addresses.shape):
        wanted |= {step, (extent - 1) * step} if extent != 1 else set()  # type: ignore[operator]
        step *= extent  # type: ignore[operator]
    for i in sorted(wanted):
        at = evaluate(i, addresses)
        if evaluate(cast("Coord", evaluate(i, places)), data) != at:
            raise AlgebraError(f"they have no element at offset {at}")


def _sorted_modes(layout: Layout) -> Layout:
    """Return the modes that reach different values, in the order of their strides."""
    shape, stride = tree_leaves(layout.shape), tree_leaves(layout.stride)
    modes = sorted((d, s) for s, d in zip(shape, stride) if s != 1 and d != 0)  # type: ignore[type-var]
    if not modes:
        return raw_layout(1, 0)
    return coalesce(raw_layout(tuple([s for _, s in modes]), tuple([d for d, _ in modes])))  # type: ignore[misc]


def reference_map(ref: Layout, side: Layout) -> Layout | None:
    """Return the map from ``(thread, value)`` of one side of an atom to its reference index; None if they are equal.

    >>> reference_map(Layout("(32,8):(8,1)"), Layout("(32,8):(8,1)")) is None
    True
    """
    return None if ref == side else compose(right_inverse(ref), side)


# -------------------------------------------------------------------------------------------------- partitioning


def tile_to_thread(
    layout: Layout,
    tiler: Tiler,
    tv: Layout,
    atom: tuple[int, int] = (1, 1),
    side: Layout | None = None,
) -> Layout:
    """Partition a block ``(M, N, …)`` as ``((thread, (v, rest_v)), (RestM, RestN, …))``.

    ``v`` is the mode of values of one atom, and ``rest_v`` the mode of atoms per thread and tile.

    Args:
        layout: layout of the block.
        tiler: tile that the thread-value layout covers.
        tv: thread-value layout over the tile.
        atom: threads and values of one copy atom on the reference side.
        side: result of :func:`reference_map` for the side that is partitioned.

    Raises:
        AlgebraError: the tile does not fit.
    """
    block, rest = _two(zipped_divide(layout, tiler))
    return make_layout(compose(block, thread_values(tv, atom, side)), rest)


def thread_values(tv: Layout, atom: tuple[int, int], side: Layout | None = None) -> Layout:
    """Return the layout ``(thread, (v, rest_v))`` -> index in the tile of one side of a tiled copy.

    Args:
        tv: thread-value layout over the tile, of the reference side.
        atom: threads and values of one copy atom on the reference side.
        side: result of :func:`reference_map` for the side.

    A load of tensor memory gives each of 32 threads the words of its lane. On the reference side, that of tensor
    memory, each thread names all lanes:

    >>> tv = Layout("((32,4),(8,32)):((0,32),(128,1))")
    >>> thread_values(tv, (32, 256), reference_map(Layout("(32,256):(0,1)"), Layout("(32,8):(8,1)")))
    Layout("(128,(8,1)):(1,(128,32))")
    """
    _check_counts(tv, atom)
    atom_tv, rest_tv = _two(zipped_divide(tv, atom))
    if side is not None:
        atom_tv = compose(atom_tv, side)
    return coalesce(zip_layouts(atom_tv, rest_tv), (1, (1, 1)))


def _check_counts(tv: Layout, atom: tuple[int, int]) -> None:
    if type(tv.shape) is not tuple or len(tv.shape) != 2:
        raise AlgebraError(f"expected a thread-value layout of rank 2 (thread, value), got {shown(tv)}")
    for what, have, need in zip(("threads", "values"), product_each(tv.shape), atom):
        if type(have) is not int or have % need:
            raise AlgebraError(
                f"expected a thread-value layout whose number of {what} is a multiple of the atom's {need}, "
                f"got {have} in {shown(tv)}"
            )


def _two(layout: Layout) -> list[Layout]:
    modes = layout_modes(layout)
    if len(modes) != 2:
        # unreachable: callers in this package have checked it
        raise AlgebraError(f"expected a layout of two modes, got {shown(layout)}")
    return modes


def thread_slice(thread_value: Layout, thread: Coord) -> tuple[Layout, IntTuple]:
    """Return a thread's partition ``((v, rest_v), RestM, RestN, …)`` of a block, and its offset.

    Modes of static extent 1 have stride 0 in the result.

    Args:
        thread_value: ``((thread, value), rest)``, as :func:`tile_to_thread` returns it.
        thread: thread index, or a coordinate of the thread mode.
    """
    tile, rest = _two(thread_value)
    threads, values = _two(tile)
    part = make_layout(values, *layout_modes(rest))
    return unit_modes_still(part), evaluate(thread, threads)


def composed_thread_slice(layout: ComposedLayout, thread_value: Layout, thread: Coord) -> tuple[AnyLayout, IntTuple]:
    """Return a thread's partition of a block with a composed (swizzled) layout; see :func:`thread_slice`.

    The partition is a plain layout if the swizzle does not permute the thread's values, else a composed layout.

    Args:
        layout: layout of the block.
        thread_value: its outer layout after :func:`tile_to_thread`.
        thread: thread index, or a coordinate of the thread mode.

    Raises:
        AlgebraError: the slice is not defined.

    >>> from cute_dialect.algebra.text import parse_composed_layout
    >>> tile = parse_composed_layout("S<3,3,3> o 0 o (8,64):(64,1)")
    >>> tiler, tv = make_layout_tv(Layout("(8,8):(8,1)"), Layout("(1,8):(0,1)"))
    >>> composed_thread_slice(tile, tile_to_thread(tile.outer, tiler, tv, (1, 8)), 11)
    (Layout("((8,1),1,1):((1,0),0,0)"), 80)
    """
    tile, rest = _two(thread_value)
    threads, values = _two(tile)
    modes = (threads, values, *layout_modes(rest))
    whole = ComposedLayout(layout.inner, layout.offset, make_layout(*modes))
    sliced = slice_and_offset((thread, *[UNDERSCORE] * (len(modes) - 1)), whole)
    part, offset = cast("tuple[AnyLayout, IntTuple]", sliced)
    if isinstance(part, ComposedLayout):
        return ComposedLayout(part.inner, part.offset, unit_modes_still(part.outer)), offset
    return unit_modes_still(part), offset


def unit_modes_still(layout: Layout) -> Layout:
    """Set the stride of every leaf mode of static extent 1 to 0, the normal form of partitions.

    >>> unit_modes_still(Layout("((1,4),1):((7,1),16)"))
    Layout("((1,4),1):((0,1),0)")
    """

    def walk(s: IntTuple, d: Stride) -> Stride:
        if type(s) is tuple:
            return tuple([walk(x, y) for x, y in zip(s, d)])  # type: ignore[arg-type]
        return 0 if type(s) is int and s == 1 else d

    return raw_layout(layout.shape, walk(layout.shape, layout.stride))


def retile(fragment: Layout, tiler: IntTuple, tv: Layout, atom_values: int = 1) -> Layout:
    """Reorder a register fragment ``(V, M, N, …)`` of another partition into the value order of a tiled copy.

    The result is ``((v, rest_v), RestM, RestN, …)``.

    Args:
        fragment: layout of the fragment.
        tiler: tile of the copy.
        tv: thread-value layout of the copy.
        atom_values: values of one copy atom.

    Raises:
        AlgebraError: the fragment does not consist of whole blocks.
    """
    modes = layout_modes(fragment)
    if not modes or tv.shape == () or any(type(x) is int and x < 1 for x in tree_leaves(tiler)):
        raise AlgebraError(
            "expected a non-empty fragment, thread-value layout and tile, got "
            f"{shown(fragment)}, {shown(tv)} and {shown(tiler)}"
        )
    if atom_values < 1:
        raise AlgebraError(f"a copy atom of {atom_values} values; an atom has at least one")
    counts = product(modes[0].shape)
    threads = product(tv.shape[0]) if type(tv.shape) is tuple else 1
    if type(counts) is not int or type(threads) is not int:
        raise AlgebraError(f"expected static values and threads, got {shown(fragment)} and {shown(tv)}")
    blocks = upcast(compose(right_inverse(tv), raw_layout(tiler, column_major(tiler))), threads * counts)
    order = zipped_divide(logical_product(raw_layout(counts, 1), right_inverse(blocks)), raw_layout(atom_values, 1))
    tile, rest = _two(zipped_divide(fragment, (counts, *product_each(blocks.shape))))
    return unit_modes_still(make_layout(compose(tile, order), *layout_modes(rest)[1:]))


# ----------------------------------------------------------------------------------------- tiles, thread layouts


def thread_coord(thread: Leaf, threads: Layout) -> IntTuple:
    """Return the coordinate of a thread in a thread layout: ``(thread / stride) % extent`` per mode.

    Modes of extent 1 or stride 0 have coordinate 0.

    >>> thread_coord(74, Layout("(32,2,2,1):(1,32,64,0)"))
    (10, 0, 1, 0)
    """

    def walk(s: IntTuple, d: Stride) -> IntTuple:
        if type(s) is tuple:
            return tuple([walk(x, y) for x, y in zip(s, d)])  # type: ignore[arg-type]
        if s == 1 or d == 0:
            return 0
        if isinstance(d, Basis):
            raise AlgebraError(f"expected a thread layout with integer strides, got the stride {shown(d)}")
        return leaf_mod(leaf_div(thread, d), s)  # type: ignore[arg-type]

    return walk(threads.shape, threads.stride)


def local_tile(
    layout: AnyLayout, tiler: Tiler, coord: Coord, projection: Coord | None = None
) -> tuple[AnyLayout, IntTuple]:
    """Return the tile at a coordinate as ``(tile modes…, rest modes…)``, and its offset.

    Rest modes are kept where the coordinate has ``_`` or no element.

    Args:
        layout: layout of the tensor.
        tiler: tile to cut the tensor into.
        coord: coordinate among the tiles.
        projection: tuple with ``_`` for each element of tiler and coordinate that has no mode in the tensor.

    Raises:
        AlgebraError: the arguments do not fit each other.

    >>> local_tile(Layout("(64,32):(32,1)"), (16, 8), (1, 2))
    (Layout("(16,8):(32,1)"), 528)
    >>> local_tile(Layout("(64,32):(32,1)"), (16, 128, 8), (1, 0, UNDERSCORE), (1, UNDERSCORE, 1))
    (Layout("(16,8,4):(32,1,8)"), 512)
    """
    if projection is not None:
        for what in (tiler, coord):
            if type(projection) is not tuple or type(what) is not tuple or len(what) != len(projection):
                raise AlgebraError(
                    f"expected a tiler and a coordinate with the same rank as the projection {shown(projection)}, "
                    f"got {shown(what)}"
                )
        tiler, coord = tree_dice(projection, tiler), tree_dice(projection, coord)
    divided = zipped_divide(layout, tiler)
    tile, rest = _halves(divided)
    keep: Coord = (UNDERSCORE,) * len(tile) if type(tile) is tuple else UNDERSCORE
    return slice_and_offset((keep, _filled(coord, rest)), divided)


def local_partition(layout: AnyLayout, threads: Layout, thread: Leaf) -> tuple[AnyLayout, IntTuple]:
    """Return a thread's share of a tensor whose elements are distributed by a thread layout, and its offset.

    The tensor is divided into tiles of the shape of ``threads``.  The thread gets one element of each tile.

    >>> local_partition(Layout("(8,16):(16,1)"), Layout("(4,8):(8,1)"), 9)
    (Layout("(2,2):(64,8)"), 17)
    """
    divided = zipped_divide(layout, product_each(threads.shape))
    _, rest = _halves(divided)
    coord = thread_coord(thread, threads)
    flat: Coord = (
        tuple([crd2idx(c, s) for c, s in zip(coord, threads.shape)])  # type: ignore[arg-type]
        if type(coord) is tuple
        else (coord,)
    )
    keep: Coord = (UNDERSCORE,) * len(rest) if type(rest) is tuple else UNDERSCORE
    return slice_and_offset((flat, keep), divided)


def _halves(divided: AnyLayout) -> tuple[IntTuple, IntTuple]:
    shape = divided.outer.shape if isinstance(divided, ComposedLayout) else divided.shape
    if type(shape) is not tuple or len(shape) != 2:
        # unreachable: callers in this package have checked it
        raise AlgebraError(f"expected a layout divided into a tile and a rest, got {shown(divided)}")
    return shape[0], shape[1]


def _filled(coord: Coord, rest: IntTuple) -> Coord:
    if type(coord) is not tuple or type(rest) is not tuple:
        return coord
    if len(coord) > len(rest):
        raise AlgebraError(f"expected a tile coordinate of rank at most {len(rest)}, got {shown(coord)}")
    return coord + (UNDERSCORE,) * (len(rest) - len(coord))


__all__ = [
    "composed_thread_slice",
    "local_partition",
    "local_tile",
    "make_layout_tv",
    "reference_map",
    "retile",
    "thread_coord",
    "thread_slice",
    "tile_to_thread",
    "unit_modes_still",
]
