"""Which part of a tile a thread of a tiled copy has.

A tiled copy is an atom, a layout ``TV`` from (thread, value) to an index in a tile, and the tile.  Source: CuTe,
``TiledCopy::tile2thrfrg`` and the tiled-copy page of its documentation.

Worked example, ``TV = ((32,4),(4,4)):((64,4),(16,1))`` over the tile ``(16,128)``, a block ``(16,128):(304,1)``:

>>> from cute_dialect.algebra.text import parse_layout
>>> tv, block = parse_layout("((32,4),(4,4)):((64,4),(16,1))"), parse_layout("(16,128):(304,1)")
>>> parts = tile_to_thread(block, (Layout(16, 1), Layout(128, 1)), tv, (1, 1))
>>> print(parts)
(((32,4),(1,(4,4))),(1,1)):(((4,1216),(1,(1,304))),(4864,128))
>>> part, offset = thread_slice(parts, 74)
>>> print(part, offset)                    # 74 mod 32 = 10 columns of 4, 74 div 32 = 2 rows of 4
((1,(4,4)),1,1):((0,(1,304)),0,0) 2472
"""

from __future__ import annotations

from cute_dialect.algebra.compose import composition
from cute_dialect.algebra.layout import coalesce, evaluate
from cute_dialect.algebra.leaf import AlgebraError
from cute_dialect.algebra.make import make_layout
from cute_dialect.algebra.tiling import zip_layouts, zipped_divide
from cute_dialect.algebra.values import IntTuple, Layout, Leaf, Stride, Tile, layout_modes, raw_layout


def tile_to_thread(
    layout: Layout, tiler: Tile, layout_tv: Layout, atom: tuple[int, int], ref_to_side: Layout | None = None
) -> Layout:
    """A tensor's layout, seen as ``((thread, (v, rest_v)), (RestM, RestN, …))``.

    ``layout``: the tensor, rank that of ``tiler``.  ``layout_tv``: (thread, value) -> column-major index in the tile.
    ``atom``: threads and values of one instruction.  ``ref_to_side``: from the (thread, value) of the side at hand to
    that of the atom's reference side; ``None`` where both agree, as for atoms of one thread.  Raises AlgebraError.
    """
    tile, rest = layout_modes(zipped_divide(layout, tiler))
    inner, outer = layout_modes(zipped_divide(layout_tv, atom))
    if ref_to_side is not None:
        inner = composition(inner, ref_to_side)
    tv = coalesce(zip_layouts(inner, outer), (1, (1, 1)))
    return make_layout(composition(tile, tv), rest)


def thread_slice(parts: Layout, thread: Leaf) -> tuple[Layout, IntTuple]:
    """One thread's part of :func:`tile_to_thread`: its layout ``((v, rest_v), RestM, …)`` and its offset.

    Modes of static extent 1 get stride 0.  Raises AlgebraError for another structure.
    """
    thr_val, rest = layout_modes(parts)
    modes = layout_modes(thr_val)
    if len(modes) != 2:
        raise AlgebraError(f"expected a thread mode and a value mode, got {thr_val}")
    threads, values = modes
    own = make_layout(values, *layout_modes(rest))
    return normal_form(own), evaluate(thread, threads)


def normal_form(layout: Layout) -> Layout:
    """The same layout with stride 0 in every mode of static extent 1.

    >>> from cute_dialect.algebra.text import parse_layout
    >>> print(normal_form(parse_layout("((1,4),1):((7,1),9)")))
    ((1,4),1):((0,1),0)
    """
    return raw_layout(layout.shape, _zero_where_one(layout.shape, layout.stride))


def _zero_where_one(shape: IntTuple, stride: Stride) -> Stride:
    if isinstance(shape, tuple):
        assert isinstance(stride, tuple)
        return tuple([_zero_where_one(s, d) for s, d in zip(shape, stride)])
    return 0 if isinstance(shape, int) and shape == 1 else stride
