"""TMA boxes of a tile: the box copies that fill a tile in shared memory.

On the host :func:`cute_dialect.arch.tma.derive` chooses the box.  In the kernel the global side is a layout of TMA
coordinates (basis strides), and the shared side a layout of elements.  A copy must consist of exactly such boxes.

>>> from cute_dialect.algebra.text import parse_layout
>>> tile, smem = parse_layout("(128,128):(1@1,1@0)"), parse_layout("(128,(64,2)):(64,(1,8192))")
>>> list(boxes(tile, smem, (64, 128)))
[((0, 0), 0), ((64, 0), 8192)]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise, product

from cute_dialect.algebra.values import Layout, layout_modes
from cute_dialect.arch.errors import TmaError
from cute_dialect.arch.tma import Run, match_modes


def boxes(
    coords: Layout, smem: Layout, counts: Sequence[int], strides: Sequence[int] = ()
) -> Iterator[tuple[tuple[int, ...], int]]:
    """Return the boxes of a copy as pairs: TMA coordinates relative to the tile, and offset in shared memory.

    The offset is in elements.

    Args:
        coords: static layout of the tile, whose strides step along TMA dimensions.
        smem: static layout of the same shape.
        counts: number of elements that one instruction moves along each dimension.
        strides: element strides along each dimension; the default is 1.

    Raises:
        TmaError: the boxes do not fill the tile.
    """
    rank = len(counts)
    rest = _rest(_runs(coords, smem, rank), counts, strides or (1,) * rank)
    # The run with the largest stride in shared memory is the outermost loop.
    for indices in product(*(range(extent) for extent, _, _, _ in reversed(rest))):
        at, offset = [0] * rank, 0
        for i, (_, stride, path, step) in zip(indices, reversed(rest)):
            at[path[0]] += i * step
            offset += i * stride
        yield tuple(at), offset


def _runs(coords: Layout, smem: Layout, rank: int) -> list[Run]:
    ours, theirs = layout_modes(coords), layout_modes(smem)
    if 1 in (len(ours), len(theirs)):  # a whole tile as one mode
        ours, theirs = [coords], [smem]
    if len(ours) != len(theirs):
        raise TmaError(f"expected the same number of modes on both sides, got {coords} and {smem}", "rank")
    runs = [run for i, (a, b) in enumerate(zip(ours, theirs)) for run in match_modes(a, b, f"mode {i}")]
    runs.sort(key=lambda run: run[1])
    for extent, _, path, _ in runs:
        if len(path) != 1 or path[0] >= rank:
            raise TmaError(f"expected coordinates in the {rank} dimensions of the tensor map, got {coords}", "rank")
        assert extent > 1
    for (extent, stride, _, _), (_, above, _, _) in pairwise(runs):
        if above < extent * stride:
            raise TmaError(f"the elements of {smem} overlap", "smem")
    return runs


def _rest(runs: list[Run], counts: Sequence[int], strides: Sequence[int]) -> list[Run]:
    """Return the runs of the tile that remain after the leading runs have filled a box."""
    left = list(runs)
    filled = 1
    for dim, (count, every) in enumerate(zip(counts, strides)):
        taken, what = 1, f"dimension {dim}"
        wanted = f"{count} elements at stride {filled} in shared memory, like the box {tuple(counts)}"
        while taken < count:
            if not left:
                raise TmaError(f"expected {wanted}, got a tile of {taken}", what)
            extent, stride, path, step = left.pop(0)
            if path != (dim,) or stride != filled or step != taken * every:
                raise TmaError(
                    f"expected {wanted}, but after {taken} of them got {extent} elements at stride {stride} along "
                    f"dimension {path[0]}, every {step}",
                    what,
                )
            most = min(extent, count // taken)
            if extent % most or count % (taken * most):
                raise TmaError(f"expected {wanted}, got {extent * taken}", what)
            if extent > most:
                left.insert(0, (extent // most, stride * most, path, step * most))
            taken *= most
            filled *= most
    return left


__all__ = ["boxes"]
