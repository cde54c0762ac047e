"""Tiled MMA: partitioning of the operands of an MMA atom that is repeated over threads and values.

An atom computes an ``(M, N, K)`` MMA with the threads of ``ThrID``.  Its thread-value layouts map ``(thread, value)``
to the column-major index in its ``(M, K)``, ``(N, K)`` and ``(M, N)`` tiles.  A tiled MMA repeats the atom over an atom
layout ``(AM, AN, AK)`` and permutes each mode by a tile.

>>> mma = TiledMma((16, 8, 16), Layout("32:1"), Layout("(2,2,1):(1,2,0)"))
>>> mma.threads, mma.tile_size
(Layout("(32,2,2,1):(1,32,64,0)"), (32, 16, 16))
>>> C = Layout("((4,8),(2,2)):((32,1),(16,8))")
>>> layout, offset = mma.partition("C", Layout("(64,32):(32,1)"), C, 0)
>>> layout, offset
(Layout("((2,2),2,2):((1,256),1024,16)"), 0)

Source: the CuTe documentation, "MMA atoms"; CUTLASS ``include/cute/atom/mma_atom.hpp`` (BSD-3).
"""

from __future__ import annotations

from typing import cast

from cute_dialect.algebra.complements import minimal_complement
from cute_dialect.algebra.compose import compose
from cute_dialect.algebra.evaluation import crd2idx, evaluate
from cute_dialect.algebra.inverses import right_inverse
from cute_dialect.algebra.layout import make_layout
from cute_dialect.algebra.leaf import AlgebraError, Leaf
from cute_dialect.algebra.slicing import slice_and_offset
from cute_dialect.algebra.tiled_copy import thread_coord, unit_modes_still
from cute_dialect.algebra.tiling import logical_divide, tiled_product, zipped_divide
from cute_dialect.algebra.trees import column_major, is_static, product, shown
from cute_dialect.algebra.values import (
    UNDERSCORE,
    AnyLayout,
    ComposedLayout,
    Coord,
    IntTuple,
    Layout,
    Tile,
    Underscore,
    layout_modes,
    raw_layout,
)
from cute_dialect.algebra.verify import verify_layout

OPERAND_MODES = {"A": (0, 2), "B": (1, 2), "C": (0, 1), "E": (0, 2), "SFA": (0, 2), "SFB": (1, 2)}
"""Operand -> its two modes of (M, N, K).  E is the metadata of a sparse A; SFA and SFB are scale factors."""


class TiledMma:
    """The partitioning of a tiled MMA.

    Args:
        shape_mnk: shape of the atom.
        thr_id: logical thread of the atom -> thread.
        atom_layout: ``(AM, AN, AK)`` -> atom.
        permutation: one tile per mode M, N, K.  ``_`` is the atom's extent times the number of atoms along the mode.

    Attributes:
        threads: ``(ThrV, ThrM, ThrN, ThrK)`` -> thread.
        tile_size: the ``(M, N, K)`` that all threads cover in one step.

    Raises:
        AlgebraError: the parts do not fit together.
    """

    __slots__ = ("permutation", "shape_mnk", "threads", "tile_size")

    def __init__(
        self,
        shape_mnk: tuple[int, int, int],
        thr_id: Layout,
        atom_layout: Layout,
        permutation: tuple[Tile | IntTuple, ...] = (UNDERSCORE, UNDERSCORE, UNDERSCORE),
    ):
        if type(atom_layout.shape) is not tuple or len(atom_layout.shape) != 3:
            raise AlgebraError(f"expected an atom layout of rank 3 (M,N,K), got {shown(atom_layout)}")
        if len(permutation) != 3:
            raise AlgebraError(f"expected a permutation of rank 3 (M,N,K), got rank {len(permutation)}")
        verify_layout(atom_layout)
        self.shape_mnk = shape_mnk
        self.threads = tiled_product(thr_id, atom_layout)
        modes = layout_modes(self.threads)
        tiles: list[Layout] = []
        for extent, mode, p in zip(shape_mnk, modes[1:], permutation):
            tiles.append(_permutation(extent, mode, p))
        self.permutation = tuple(tiles)
        self.tile_size = tuple([product(t.shape) for t in tiles])

    def operand_tile(self, operand: str) -> tuple[Layout, Layout]:
        """Return the permutation tiles of the two modes of operand "A", "B", "C" or "E"."""
        i, j = OPERAND_MODES[operand]
        return self.permutation[i], self.permutation[j]

    def thread_fragments(self, operand: str, layout: Layout, atom_tv: Layout) -> Layout:
        """Rewrite the layout of an operand as ``((ThrV, (Thr0, Thr1)), (FrgV, (Rest0, Rest1, …)))``.

        Args:
            operand: "A", "B" or "C".
            layout: ``(M,K,…)``, ``(N,K,…)`` or ``(M,N,…)``.
            atom_tv: the atom's thread-value layout of the operand.

        >>> mma = TiledMma((16, 8, 16), Layout("32:1"), Layout("(2,2,1):(1,2,0)"))
        >>> mma.thread_fragments("C", Layout("(64,32):(32,1)"), Layout("((4,8),(2,2)):((32,1),(16,8))"))[0]
        Layout("((4,8),(2,2)):((2,32),(512,8))")
        """
        i, j = OPERAND_MODES[operand]
        if type(layout.shape) is not tuple or len(layout.shape) < 2:
            raise AlgebraError(f"expected a layout of rank 2 or more for operand {operand}, got {shown(layout)}")
        permuted = logical_divide(layout, (self.permutation[i], self.permutation[j]))
        atoms = zipped_divide(permuted, (raw_layout(self.shape_mnk[i], 1), raw_layout(self.shape_mnk[j], 1)))
        tile, rest = layout_modes(atoms)
        values = make_layout(compose(tile, atom_tv), rest)
        counts = self._counts(operand)
        return zipped_divide(values, (UNDERSCORE, (raw_layout(counts[0], 1), raw_layout(counts[1], 1))))

    def _counts(self, operand: str) -> tuple[Leaf, Leaf]:
        modes = layout_modes(self.threads)
        i, j = OPERAND_MODES[operand]
        return product(modes[1 + i].shape), product(modes[1 + j].shape)

    def partition(self, operand: str, layout: Layout, atom_tv: Layout, thread: Leaf) -> tuple[Layout, IntTuple]:
        """Return a thread's partition ``(FrgV, Rest0, Rest1, …)`` of an operand, and its offset.

        Threads along a mode that the operand lacks share a partition.  Modes of static extent 1 have stride 0.
        """
        threads, value, *rest = self._thread_modes(operand, layout, atom_tv)
        return unit_modes_still(make_layout(value, *rest)), evaluate(self._thread(operand, thread), threads)

    def composed_partition(
        self, operand: str, layout: ComposedLayout, atom_tv: Layout, thread: Leaf
    ) -> tuple[AnyLayout, IntTuple]:
        """Return a thread's partition of an operand with a composed (swizzled) layout; see :meth:`partition`.

        The result is a plain layout if the swizzle does not permute the thread's values, else a composed layout.

        >>> from cute_dialect.algebra.text import parse_composed_layout
        >>> mma = TiledMma((16, 8, 16), Layout("32:1"), Layout("(2,2,1):(1,2,0)"))
        >>> C = Layout("((4,8),(2,2)):((32,1),(16,8))")
        >>> tile = parse_composed_layout("S<2,3,3> o 0 o (32,32):(32,1)")
        >>> mma.composed_partition("C", tile, C, 40)[1]  # row 18, whose offset 576 is swizzled
        584
        """
        modes = self._thread_modes(operand, layout.outer, atom_tv)
        whole = ComposedLayout(layout.inner, layout.offset, make_layout(*modes))
        coord = cast("Coord", (self._thread(operand, thread), *[UNDERSCORE] * (len(modes) - 1)))
        part, offset = cast("tuple[AnyLayout, IntTuple]", slice_and_offset(coord, whole))
        if isinstance(part, ComposedLayout):
            return ComposedLayout(part.inner, part.offset, unit_modes_still(part.outer)), offset
        return unit_modes_still(part), offset

    def _thread_modes(self, operand: str, layout: Layout, atom_tv: Layout) -> list[Layout]:
        """Return the modes of :meth:`thread_fragments` as a list: threads, values of one atom, rest modes."""
        threads, values = layout_modes(self.thread_fragments(operand, layout, atom_tv))
        value, rest = layout_modes(values)
        return [threads, value, *layout_modes(rest)]

    def _thread(self, operand: str, thread: Leaf) -> Coord:
        """Return the coordinate of a thread in the thread mode of an operand, ``(ThrV, (Thr0, Thr1))``."""
        # Each mode is linearized, because thread modes and fragment modes may be nested differently.
        coords = cast("tuple[IntTuple, ...]", thread_coord(thread, self.threads))
        shapes = cast("tuple[IntTuple, ...]", self.threads.shape)
        v, *mnk = [crd2idx(c, s) for c, s in zip(coords, shapes)]
        i, j = OPERAND_MODES[operand]
        return cast("Coord", (v, (mnk[i], mnk[j])))

    def layout_tv(self, operand: str, atom_tv: Layout) -> Layout:
        """Return the layout ``(thread, value)`` -> column-major index in the tile of the operand.

        A tiled copy with this layout and the operand's ``tile_size`` loads exactly the fragments of the MMA.

        >>> mma = TiledMma((16, 8, 16), Layout("32:1"), Layout("(2,2,1):(1,2,0)"))
        >>> mma.layout_tv("C", Layout("((4,8),(2,2)):((32,1),(16,8))"))
        Layout("((4,8,2,2),((2,2),(1,1))):((64,1,16,256),((32,8),(32,512)))")
        """
        i, j = OPERAND_MODES[operand]
        shape = (self.tile_size[i], self.tile_size[j])
        if not is_static(shape):
            # unreachable: callers in this package have checked it
            raise AlgebraError(f"expected a static tile, got {shown(shape)}")
        fragments = self.thread_fragments(operand, raw_layout(shape, column_major(shape)), atom_tv)
        threads, values = layout_modes(fragments)
        v, along = layout_modes(threads)
        first, second = layout_modes(along)
        # Threads along the mode that the operand lacks get stride 0.
        missing = 3 - i - j
        counts = product(layout_modes(self.threads)[1 + missing].shape)
        steps = [first, second]
        if counts != 1:
            steps.insert(missing, raw_layout(counts, 0))
        gaps = minimal_complement(self.threads)
        complete = make_layout(*layout_modes(self.threads), gaps) if product(gaps.shape) != 1 else self.threads
        if complete is not self.threads:
            steps.append(raw_layout(product(gaps.shape), 0))
        return make_layout(compose(make_layout(v, *steps), right_inverse(complete)), values)


def _permutation(extent: int, atoms: Layout, tile: Tile | IntTuple) -> Layout:
    if isinstance(tile, Underscore):
        count = product(atoms.shape)
        if type(count) is not int:
            raise AlgebraError(f"expected a static atom layout, got {shown(atoms)}")
        return raw_layout(extent * count, 1)
    if isinstance(tile, Layout):
        verify_layout(tile)
        return tile
    if type(tile) is int and tile > 0:
        return raw_layout(tile, 1)
    raise AlgebraError(f"expected a layout, an extent or '_' as a permutation, got {shown(tile)}")


__all__ = ["OPERAND_MODES", "TiledMma"]
