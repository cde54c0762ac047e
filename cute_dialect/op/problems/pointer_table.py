"""Kernel arguments of a pointer-array GEMM: one base address per operand, a table of offsets, and the tile schedule.

The table has the columns :data:`cute_dialect.kernels.gemm.pointer_array.COLUMNS`.

>>> tiles_of([(130, 64, 8), (0, 64, 8), (64, 100, 16)], (64, 64)).tolist()
[3, 0, 2]
>>> turns_of([(130, 64, 8), (0, 64, 8), (64, 100, 16)], (64, 64)).tolist()
[[2, 0], [2, 1], [0, 0], [0, 1], [0, 2]]
"""

# Pyright does not infer the types of NumPy's results.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cute_dialect.kernels.gemm.pointer_array import COLUMNS
from cute_dialect.op.arrays.dtypes import SIZES
from cute_dialect.op.arrays.operand_views import turn
from cute_dialect.op.errors import AlignmentError
from cute_dialect.op.problems.operands import Operands
from cute_dialect.runtime.arrays import ArrayView
from cute_dialect.runtime.binding import MAX_EXTENT_I32
from cute_dialect.runtime.device_memory import span

if TYPE_CHECKING:  # pragma: no cover
    from numpy import int32, int64
    from numpy.typing import NDArray

    from cute_dialect.kernels.gemm.pointer_array import ListedConfig

__all__ = ["Laid", "extents_of", "laid_flat", "sizes_of", "tiles_of", "turns_of"]


class Laid(NamedTuple):
    """Operands as flat arrays that begin at the lowest address, and the table of GEMMs."""

    a: ArrayView
    b: ArrayView
    d: ArrayView
    c: ArrayView | None
    bias: ArrayView | None
    table: NDArray[int64]


def extents_of(x: Operands, *, flipped: bool = False) -> tuple[int, int, int]:
    """Return M, N and K as the kernel sees them; K is 0 if alpha is 0."""
    m, n = x.d.shape
    k = x.a.shape[1] if x.alpha != 0.0 else 0
    return (n, m, k) if flipped else (m, n, k)


def _matrices(x: Operands, *, flipped: bool) -> tuple[ArrayView, ArrayView, ArrayView, ArrayView | None]:
    """Return A (M, K), B (N, K), D and C as the kernel sees them."""
    if flipped:
        return turn(x.b), x.a, turn(x.d), None if x.c is None else turn(x.c)
    return x.a, turn(x.b), x.d, x.c


def copied_at_once(call: str, config: ListedConfig, x: Operands, *, flipped: bool, most: int = 16) -> int:
    """Return the bytes that one copy of a GEMM's operands may move, 1 for single elements.

    Addresses, line strides and line lengths must be multiples of it.  Raises AlignmentError for an address that is
    not a multiple of the element size.
    """
    units = [most]
    a, b, d, _ = _matrices(x, flipped=flipped)
    matrices = [("D", d, False, config.stores_vectors)]
    if extents_of(x)[2]:
        matrices += [("A", a, not config.by_k[0], True), ("B", b, not config.by_k[1], True)]
    for name, view, columns, vectors in matrices:
        item = SIZES[view.dtype]
        if view.pointer % item:
            raise AlignmentError(
                f"{call}: the address of {name} is {view.pointer % item} mod {item}; it must be a multiple of the "
                "element size"
            )
        if vectors:
            line, step = (0, 1) if columns else (1, 0)
            units += [view.pointer, view.shape[line] * item, view.strides[step] * item]
    found = gcd(*units)
    return next((size for size in (16, 8, 4) if found % size == 0 and config.takes(size)), 1)


def sizes_of(call: str, config: ListedConfig, found: Sequence[Operands], *, flipped: bool, most: int) -> list[int]:
    """Return the bytes per copy for each GEMM: 16, or a common smaller size for all others; 0 for empty GEMMs."""
    each = [copied_at_once(call, config, x, flipped=flipped, most=most) if all(x.d.shape) else 0 for x in found]
    others = [size for size in each if 0 < size < 16]
    least = next(size for size in (16, 8, 4, 1) if config.takes(size) and gcd(size, *others) == size)
    return [min(size, least) if 0 < size < 16 else size for size in each]


def laid_flat(config: ListedConfig, found: Sequence[Operands], *, flipped: bool) -> Laid:
    """Return GEMMs as the kernel takes them.  Empty ones may have any layout."""
    table = np.zeros((len(found), len(COLUMNS)), np.int64)
    each: dict[str, list[tuple[int, ArrayView, int]]] = {name: [] for name in ("a", "b", "c", "source", "bias")}
    for i, x in enumerate(found):
        table[i, :3] = m, n, k = extents_of(x, flipped=flipped)
        if m == 0 or n == 0:
            continue
        a, b, d, c = _matrices(x, flipped=flipped)
        if k:
            each["a"].append((i, a, a.strides[0 if config.by_k[0] else 1]))
            each["b"].append((i, b, b.strides[0 if config.by_k[1] else 1]))
        each["c"].append((i, d, d.strides[0]))
        if c is not None:
            each["source"].append((i, c, c.strides[0]))
        if x.bias is not None:
            each["bias"].append((i, x.bias, 0))
    flat: dict[str, ArrayView] = {}
    for name, given in each.items():
        if not given:
            continue
        flat[name] = one = _flat([view for _, view, _ in given])
        which = [i for i, _, _ in given]
        item = SIZES[one.dtype]
        table[which, COLUMNS.index(name)] = [(view.pointer - one.pointer) // item for _, view, _ in given]
        if name != "bias":
            table[which, COLUMNS.index(f"ld{name}")] = [line for _, _, line in given]
    first = next(x for x in found if 0 not in x.d.shape)
    # If K is 0 in all GEMMs, A and B are not read, so any memory will do.
    a, b, _, _ = _matrices(first, flipped=flipped)
    spare = flat["c"]._replace(shape=(0,))
    laid_a, laid_b = (flat.get(n, spare._replace(dtype=v.dtype)) for n, v in (("a", a), ("b", b)))
    return Laid(laid_a, laid_b, flat["c"], flat.get("source"), flat.get("bias"), table)


def _flat(views: Sequence[ArrayView]) -> ArrayView:
    """Return the memory of matrices, from the lowest address to the highest, as elements."""
    first = views[0]
    low = min([v.pointer for v in views])
    if first.device < 0:  # Host matrices are all in one allocation; take the part of it that they use.
        memory: Any = first.keep
        high = max([sum(span(v)) for v in views])
        at = low - memory.ctypes.data
        keep, size = memory[at : at + high - low], (high - low) // SIZES[first.dtype]
    else:
        keep, size = tuple([v.keep for v in views]), MAX_EXTENT_I32
    return first._replace(pointer=low, shape=(size,), strides=(1,), keep=keep)


def tiles_of(extents: Sequence[tuple[int, int, int]], tile: tuple[int, int]) -> NDArray[int64]:
    """Return the number of tiles of each GEMM."""
    sizes = np.array(extents, np.int64).reshape(-1, 3)
    return -(-sizes[:, 0] // tile[0]) * -(-sizes[:, 1] // tile[1])


def turns_of(extents: Sequence[tuple[int, int, int]], tile: tuple[int, int]) -> NDArray[int32]:
    """Return the GEMM and the tile of each block, by descending K, so that the last tiles are short."""
    tiles = tiles_of(extents, tile)
    order = np.argsort([-k for _, _, k in extents], kind="stable")
    products = np.repeat(order, tiles[order])
    before = np.repeat(np.cumsum(tiles[order]) - tiles[order], tiles[order])
    return np.stack([products, np.arange(len(products)) - before], axis=1).astype(np.int32)
