"""Products and divides of layouts, and tiling to a shape.

>>> zipped_divide(Layout("(12,10,3):(10,1,120)"), (4, 5))
Layout("((4,5),(3,2,3)):((10,1),(40,5,120))")
>>> blocked_product(Layout("(2,5):(5,1)"), Layout("(3,4):(1,3)"))
Layout("((2,3),(5,4)):((5,10),(1,30))")
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, TypeVar

from cute_dialect.algebra.arithmetic import ceil_div_tree
from cute_dialect.algebra.complements import bounded_complement, extended_complement, minimal_complement
from cute_dialect.algebra.compose import as_tiler, check_tile_rank, compose, compose_static, fold_static
from cute_dialect.algebra.layout import append_to_rank, coalesce, concat, make_layout, ordered_stride
from cute_dialect.algebra.leaf import AlgebraError, Dyn
from cute_dialect.algebra.trees import (
    check_range,
    is_static,
    product,
    product_each,
    rank,
    shown,
    tile_shape,
    tree_leaves,
)
from cute_dialect.algebra.values import (
    UNDERSCORE,
    Basis,
    ComposedLayout,
    IntTuple,
    Layout,
    Stride,
    Tile,
    layout_modes,
    raw_layout,
)

A = TypeVar("A", Layout, ComposedLayout, Layout | ComposedLayout)
Tiler: TypeAlias = "Layout | Tile | IntTuple"
_UNIT = raw_layout(1, 0)

# ------------------------------------------------------------------------------------------------------ products


def _on_outer(f: Callable[[Layout], Layout], layout: A) -> A:
    if isinstance(layout, ComposedLayout):
        return ComposedLayout(layout.inner, layout.offset, f(layout.outer))  # type: ignore
    return f(layout)  # type: ignore


def _repetition(a: Layout, b: Layout) -> Layout:
    if not is_static(a):
        raise AlgebraError(f"expected a static layout to repeat, got {shown(a)}")
    return _repeated(a, b)


def _repeated(a: Layout, b: Layout) -> Layout:
    if _has_basis(b.stride):
        raise AlgebraError(f"expected integer strides in the layout of repetitions, got {shown(b)}")
    if _has_basis(a.stride) and not is_static(b):
        raise AlgebraError(
            f"expected a static layout of repetitions, because the repeated layout has basis strides, got {shown(b)}"
        )
    return compose(minimal_complement(a), b)


def _has_basis(d: Stride) -> bool:
    return any([_has_basis(x) for x in d]) if type(d) is tuple else isinstance(d, Basis)


def logical_product(a: A, b: Layout) -> A:
    """Repeat ``a`` over the layout ``b``: ``(a, b')``, where ``b'`` steps over copies of ``a``.

    Raises:
        AlgebraError: ``a`` is not static, ``b`` does not have integer strides, or ``b`` does not fit the gaps of ``a``.
            For a composed ``a`` these conditions apply to its outer layout.

    >>> logical_product(Layout("(2,5):(5,1)"), Layout("(3,4):(1,3)"))
    Layout("((2,5),(3,4)):((5,1),(10,30))")
    """
    return _on_outer(lambda x: concat(x, _repetition(x, b)), a)


def zipped_product(a: A, b: Layout) -> A:
    """Return :func:`logical_product`; the two are the same for layouts."""
    return logical_product(a, b)


def tiled_product(a: A, b: Layout) -> A:
    """Return ``(a, b'_0, b'_1, …)``: :func:`logical_product` with the modes of ``b'`` spliced.

    >>> tiled_product(Layout("(2,5):(5,1)"), Layout("(3,4):(1,3)"))
    Layout("((2,5),3,4):((5,1),10,30)")
    """
    return _on_outer(lambda x: make_layout(x, *layout_modes(_repetition(x, b))), a)


def flat_product(a: A, b: Layout) -> A:
    """Return ``(a_0, …, b'_0, …)``: :func:`logical_product` with the modes of both parts spliced.

    >>> flat_product(Layout("(2,5):(5,1)"), Layout("(3,4):(1,3)"))
    Layout("(2,5,3,4):(5,1,10,30)")
    """
    return _on_outer(lambda x: make_layout(*layout_modes(x), *layout_modes(_repetition(x, b))), a)


def _padded(a: Layout, b: Layout) -> tuple[Layout, Layout, int]:
    n = max(rank(a), rank(b))
    if rank(a) != rank(b):
        a, b = append_to_rank(a, _UNIT, n), append_to_rank(b, _UNIT, n)
    return a, b, n


def zip_layouts(a: Layout, b: Layout) -> Layout:
    """Return ``((a_0, b_0), (a_1, b_1), …)``; a scalar ``a`` gives the one mode ``((a, b))``.

    Raises:
        AlgebraError: ``a`` is a tuple, and ``b`` is not a tuple of equal rank.
    """
    if type(a.shape) is not tuple:
        return raw_layout(((a.shape, b.shape),), ((a.stride, b.stride),))
    if type(b.shape) is not tuple or len(a.shape) != len(b.shape):
        raise AlgebraError(f"expected two layouts of rank {len(a.shape)} to pair, got {shown(a)} and {shown(b)}")
    return raw_layout(
        tuple(zip(a.shape, b.shape)),
        tuple(zip(a.stride, b.stride)),  # type: ignore[arg-type]
    )


def blocked_product(a: A, b: Layout) -> A:
    """Return ``(a_i, b'_i)`` per mode: blocks of ``a`` side by side.  The smaller rank is padded with ``1:0``.

    >>> blocked_product(Layout("4:1"), Layout("(2,3):(1,2)"))
    Layout("((4,2),(1,3)):((1,4),(0,8))")
    """

    def f(x: Layout) -> Layout:
        x, y, _ = _padded(x, b)
        return zip_layouts(x, _repetition(x, y))

    return _on_outer(f, a)


def raked_product(a: A, b: Layout) -> A:
    """Return ``(b'_i, a_i)`` per mode, each coalesced: the elements of ``a`` interleaved.

    >>> raked_product(Layout("(4,32):(32,1)"), Layout("(4,4):(4,1)"))
    Layout("((4,4),(4,32)):((512,32),(128,1))")
    """

    def f(x: Layout) -> Layout:
        x, y, n = _padded(x, b)
        return coalesce(zip_layouts(_repetition(x, y), x), (1,) * n)

    return _on_outer(f, a)


# ------------------------------------------------------------------------------------------------------- divides


def _divide(a: Layout, tiler: Layout) -> Layout:
    n, d = tiler.shape, tiler.stride
    if type(n) is int and type(d) is int and (d == 1 or (d == 0 and n == 1)):
        # Fast path: a tiler n:1 or 1:0.
        if type(a.shape) is int and type(a.stride) is int:
            return raw_layout((n, -(-a.shape // n)), (d * a.stride, check_range(n * a.stride)))
        folded = fold_static(a)
        if folded is not None and folded[0]:
            # Repetitions of n over the extents of a are contiguous, so they form one mode.
            count, left = 1, n
            for x in tree_leaves(a.shape):
                count *= -(-x // left)  # type: ignore[operator]
                left = -(-left // x)  # type: ignore[operator]
            parts = compose_static(*folded, (n, count), (d, n))  # type: ignore
            assert parts is not None
            return raw_layout(*parts)
    return compose(a, concat(tiler, extended_complement(tiler, a.shape)))


def _check_divider(tiler: Layout, nested: bool) -> None:
    strides = tiler.stride
    if type(strides) is int:
        return
    if nested and _has_basis(strides):
        raise AlgebraError(f"expected integer strides in the layouts of a tiler, got {shown(tiler)}")
    if not is_static(strides) and type(tiler.shape) is tuple and len(tiler.shape) > 1:
        raise AlgebraError(f"expected static strides or rank 1 in a tiler, got {shown(tiler)}")


def logical_divide(a: A, tiler: Tiler) -> A:
    """Divide ``a`` into tiles: ``(tile, rest)`` for a layout tiler, mode by mode for a tile or shape.

    In a tile ``_`` keeps a mode, and surplus modes of ``a`` are unchanged.  A size that is not a multiple of the tile
    is rounded up.  An extent ``?{div=128}`` divided by 128 is exact.

    The extents of a nested mode are consumed one after the other.  The tile should be a multiple or a divisor of each
    of them.  Otherwise tile times rest is not the size of the mode: 4 in ``(3,4)`` gives ``4 * 2``.  Flatten or
    coalesce such a mode first.

    Raises:
        AlgebraError: the tiler has more modes than ``a`` or does not fit.

    >>> logical_divide(Layout("24:3"), Layout("6:2")), logical_divide(Layout("(12,10):(10,1)"), (4, 5))
    (Layout("(6,(2,2)):(6,(3,36))"), Layout("((4,3),(5,2)):((10,40),(1,5))"))
    """
    return _on_outer(lambda x: _logical(x, as_tiler(tiler), False), a)


def _logical(a: Layout, tile: Tile, nested: bool) -> Layout:
    if tile is UNDERSCORE:
        return a
    if isinstance(tile, Layout):
        _check_divider(tile, nested)
        return _divide(a, tile)
    assert type(tile) is tuple
    check_tile_rank(tile, a)
    modes = layout_modes(a)
    parts = [_logical(m, t, True) for m, t in zip(modes, tile)]
    return make_layout(*parts, *modes[len(parts) :])


def zipped_divide(a: A, tiler: Tiler) -> A:
    """Return ``((tile modes), (rest modes))``: :func:`logical_divide` with tiles and rests grouped.

    Every divided mode must have rank 2 afterwards, and so must a mode under ``_``.

    Raises:
        AlgebraError: a mode does not divide into a tile and a rest, or :func:`logical_divide` fails.

    >>> zipped_divide(Layout((Dyn(), Dyn()), (Dyn(), 1)), (16, 128))
    Layout("((16,128),(?,?)):((?,1),(?,128))")
    """
    return _on_outer(lambda x: _zipped(x, as_tiler(tiler), False), a)


def _zipped(a: Layout, tile: Tile, nested: bool) -> Layout:
    if tile is UNDERSCORE:
        return a
    if isinstance(tile, Layout):
        _check_divider(tile, nested)
        return _divide(a, tile)
    assert type(tile) is tuple
    check_tile_rank(tile, a)
    modes = layout_modes(a)
    shapes: tuple[list[IntTuple], list[IntTuple]] = ([], [])
    strides: tuple[list[Stride], list[Stride]] = ([], [])
    for i, (m, t) in enumerate(zip(modes, tile)):
        part = _zipped(m, t, True)
        if type(part.shape) is not tuple or len(part.shape) != 2:
            raise AlgebraError(f"expected mode {i} to divide into a tile and a rest, got {shown(part)}")
        for j in (0, 1):
            shapes[j].append(part.shape[j])
            strides[j].append(part.stride[j])  # type: ignore[index]
    for m in modes[len(tile) :]:
        shapes[1].append(m.shape)
        strides[1].append(m.stride)
    return raw_layout((tuple(shapes[0]), tuple(shapes[1])), (tuple(strides[0]), tuple(strides[1])))


def tiled_divide(a: A, tiler: Tiler) -> A:
    """Return ``((tile modes), rest_0, rest_1, …)``: :func:`zipped_divide` with the rest modes spliced.

    >>> tiled_divide(Layout("(12,10,3):(10,1,120)"), (4, 5))
    Layout("((4,5),3,2,3):((10,1),40,5,120)")
    """

    def f(x: Layout) -> Layout:
        tile, rest = _two(zipped_divide(x, tiler))
        return make_layout(tile, *layout_modes(rest))

    return _on_outer(f, a)


def flat_divide(a: A, tiler: Tiler) -> A:
    """Return ``(tile_0, …, rest_0, …)``: :func:`zipped_divide` with the modes of both parts spliced.

    >>> flat_divide(Layout("(12,10,3):(10,1,120)"), (4, 5))
    Layout("(4,5,3,2,3):(10,1,40,5,120)")
    """

    def f(x: Layout) -> Layout:
        tile, rest = _two(zipped_divide(x, tiler))
        return make_layout(*layout_modes(tile), *layout_modes(rest))

    return _on_outer(f, a)


def _two(layout: Layout) -> list[Layout]:
    if type(layout.shape) is not tuple or len(layout.shape) != 2:
        # unreachable: callers in this package have checked it
        raise AlgebraError(f"expected a layout divided into a tile and a rest, got {shown(layout)}")
    return layout_modes(layout)


# -------------------------------------------------------------------------------------------------- tile, shapes


def ceil_div(shape: IntTuple, tiler: Tiler) -> IntTuple:
    """Return the number of tiles that cover a shape, per mode.  Surplus modes are copied.

    Division by a shape rounds up.  A layout gives the shape of its complement in ``size(shape)``.

    Raises:
        AlgebraError: the tiler has a larger rank, a static 0 or ``_``.

    >>> ceil_div((7, 9, 4), (2, 4)), ceil_div((8, 18), (Layout("2:1"), Layout("4:1"))), ceil_div(30, Layout("5:2"))
    ((4, 3, 4), (4, 5), (2, 3))
    """
    if _is_shape(tiler):
        return ceil_div_tree(shape, tiler)  # type: ignore[arg-type]
    tile = as_tiler(tiler)
    if tile is UNDERSCORE:
        raise AlgebraError("expected a layout in every slot of the tiler, got '_'")
    if isinstance(tile, Layout):
        return bounded_complement(tile, product(shape)).shape
    assert type(tile) is tuple
    if type(shape) is not tuple:
        return ceil_div_tree(shape, product(tile_shape(tile)))
    if len(tile) > len(shape):
        raise AlgebraError(f"expected a tiler of rank at most {len(shape)} for {shown(shape)}, got rank {len(tile)}")
    return tuple([ceil_div(s, t) for s, t in zip(shape, tile)]) + shape[len(tile) :]


def _is_shape(tiler: Tiler) -> bool:
    if type(tiler) is tuple:
        return all([_is_shape(t) for t in tiler])
    return type(tiler) is int or isinstance(tiler, Dyn)


def tile_to_shape(block: A, shape: IntTuple, order: IntTuple | None = None) -> A:
    """Repeat a block until it covers ``shape``.  Each mode of the result is ``(block mode, count)``; counts round up.

    Args:
        block: layout of the block.  Extents may be dynamic.  A dynamic stride is allowed only in a block of one mode.
        shape: shape to cover.
        order: permutation of ``0 … rank - 1``.  Modes of smaller order are filled first; the default is ascending.

    Raises:
        AlgebraError: the block has a larger rank, or ``order`` is not a permutation.

    >>> tile_to_shape(Layout("(2,3):(3,1)"), (4, 6)), tile_to_shape(Layout("(2,3):(3,1)"), (4, 6), (1, 0))
    (Layout("((2,2),(3,2)):((3,6),(1,12))"), Layout("((2,2),(3,2)):((3,12),(1,6))"))
    >>> tile_to_shape(Layout("(32,?):(1,0)"), (64, Dyn()))
    Layout("((32,2),(?,?)):((1,32),(0,64))")
    """
    n = rank(shape)
    outer = block.outer if isinstance(block, ComposedLayout) else block
    if rank(outer) > n:
        raise AlgebraError(f"expected a block of rank at most {n} for the shape {shown(shape)}, got {shown(outer)}")
    if order is None:
        order = tuple(range(n))
    elif not is_static(order):
        raise AlgebraError(f"expected a static order, got {shown(order)}")
    flat = order if type(order) is tuple else (order,)
    if any([type(x) is not int for x in flat]) or sorted(flat) != list(range(n)):  # type: ignore[type-var]
        raise AlgebraError(f"expected a permutation of 0 … {n - 1} as the order, got {shown(order)}")
    outer = append_to_rank(outer, _UNIT, n) if n else outer
    counts = ceil_div_tree(product_each(shape), product_each(outer.shape))
    repetitions = raw_layout(counts, ordered_stride(counts, flat))
    tiled = zip_layouts(outer, _repeated(outer, repetitions))
    if isinstance(block, ComposedLayout):
        return ComposedLayout(block.inner, block.offset, tiled)  # type: ignore
    return tiled  # type: ignore


__all__ = [
    "Tiler",
    "blocked_product",
    "ceil_div",
    "flat_divide",
    "flat_product",
    "logical_divide",
    "logical_product",
    "raked_product",
    "tile_to_shape",
    "tiled_divide",
    "tiled_product",
    "zip_layouts",
    "zipped_divide",
    "zipped_product",
]
