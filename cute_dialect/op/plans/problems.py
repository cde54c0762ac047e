"""Products of any sizes as their kernel takes them: one address for all A, for all B, for all C, and a table
(:data:`cute_dialect.kernels.pointer_array_gemm.COLUMNS`) of where each begins; who computes which tile.

>>> tiles_of([(130, 64, 8), (0, 64, 8), (64, 100, 16)], (64, 64)).tolist()
[3, 0, 2]
>>> turns_of([(130, 64, 8), (0, 64, 8), (64, 100, 16)], (64, 64)).tolist()
[[2, 0], [2, 1], [0, 0], [0, 1], [0, 2]]
"""

# What numpy makes of numbers or arrays has no type that pyright knows.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cute_dialect.op.elements import SIZES
from cute_dialect.op.errors import AlignmentError
from cute_dialect.op.plans.calling_convention import Operands, transposed
from cute_dialect.runtime.arrays import ArrayView
from cute_dialect.runtime.binding import MAX_EXTENT_I32
from cute_dialect.runtime.device_memory import span

if TYPE_CHECKING:  # pragma: no cover
    from numpy import int32, int64
    from numpy.typing import NDArray

    from cute_dialect.kernels.pointer_array_gemm import ListedConfig

__all__ = ["Laid", "extents_of", "laid_flat", "sizes_of", "tiles_of", "turns_of"]


class Laid(NamedTuple):
    """Operands as flat arrays that begin with the lowest address of all, and the table of products."""

    a: ArrayView
    b: ArrayView
    d: ArrayView
    c: ArrayView | None
    bias: ArrayView | None
    table: NDArray[int64]


def extents_of(x: Operands, *, flipped: bool = False) -> tuple[int, int, int]:
    """Return M, N and K, as the kernel has them; K is 0 where nothing is multiplied."""
    m, n = x.d.shape
    k = x.a.shape[1] if x.alpha != 0.0 else 0
    return (n, m, k) if flipped else (m, n, k)


def _matrices(x: Operands, *, flipped: bool) -> tuple[ArrayView, ArrayView, ArrayView, ArrayView | None]:
    """Return A (M, K), B (N, K), C and the source as the kernel has them."""
    if flipped:
        return transposed(x.b), x.a, transposed(x.d), None if x.c is None else transposed(x.c)
    return x.a, transposed(x.b), x.d, x.c


def copied_at_once(call: str, config: ListedConfig, x: Operands, *, flipped: bool, most: int = 16) -> int:
    """Return the bytes that one copy of a product's operands may move: of which addresses, steps between lines, and
    lines are multiples; 1 where there is no kernel of so few.  Raises AlignmentError for matrices between elements.
    """
    units = [most]
    a, b, d, _ = _matrices(x, flipped=flipped)
    matrices = [("D", d, False, config.stores_vectors)]
    if extents_of(x)[2]:
        matrices += [("A", a, not config.by_k[0], True), ("B", b, not config.by_k[1], True)]
    for name, view, columns, vectors in matrices:
        item = SIZES[view.dtype]
        if view.pointer % item:
            raise AlignmentError(f"{call}: expected {name} at whole elements, got {view.pointer % item} bytes more")
        if vectors:
            line, step = (0, 1) if columns else (1, 0)
            units += [view.pointer, view.shape[line] * item, view.strides[step] * item]
    found = gcd(*units)
    return next((size for size in (16, 8, 4) if found % size == 0 and config.takes(size)), 1)


def sizes_of(call: str, config: ListedConfig, found: Sequence[Operands], *, flipped: bool, most: int) -> list[int]:
    """Return the bytes that one copy moves of each product's operands: 16, or what all others allow; 0 of a product
    without elements.
    """
    each = [copied_at_once(call, config, x, flipped=flipped, most=most) if all(x.d.shape) else 0 for x in found]
    others = [size for size in each if 0 < size < 16]
    least = next(size for size in (16, 8, 4, 1) if config.takes(size) and gcd(size, *others) == size)
    return [min(size, least) if 0 < size < 16 else size for size in each]


def laid_flat(config: ListedConfig, found: Sequence[Operands], *, flipped: bool) -> Laid:
    """Return products as the kernel takes them; of those without elements nothing is asked."""
    from cute_dialect.kernels.pointer_array_gemm import COLUMNS

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
    # Where no product has any K, nobody reads A and B.
    a, b, _, _ = _matrices(first, flipped=flipped)
    spare = flat["c"]._replace(shape=(0,))
    laid_a, laid_b = (flat.get(n, spare._replace(dtype=v.dtype)) for n, v in (("a", a), ("b", b)))
    return Laid(laid_a, laid_b, flat["c"], flat.get("source"), flat.get("bias"), table)


def _flat(views: Sequence[ArrayView]) -> ArrayView:
    """Return the memory of matrices, from the lowest address to the highest, as elements."""
    first = views[0]
    low = min([v.pointer for v in views])
    if first.device < 0:  # all in one piece of memory, of which this is a part
        memory: Any = first.keep
        high = max([sum(span(v)) for v in views])
        at = low - memory.ctypes.data
        keep, size = memory[at : at + high - low], (high - low) // SIZES[first.dtype]
    else:
        keep, size = tuple([v.keep for v in views]), MAX_EXTENT_I32
    return first._replace(pointer=low, shape=(size,), strides=(1,), keep=keep)


def tiles_of(extents: Sequence[tuple[int, int, int]], tile: tuple[int, int]) -> NDArray[int64]:
    """Return how many tiles each product has."""
    sizes = np.array(extents, np.int64).reshape(-1, 3)
    return -(-sizes[:, 0] // tile[0]) * -(-sizes[:, 1] // tile[1])


def turns_of(extents: Sequence[tuple[int, int, int]], tile: tuple[int, int]) -> NDArray[int32]:
    """Return the product and the tile of each block: those of the longest K first, so that the last are short."""
    tiles = tiles_of(extents, tile)
    order = np.argsort([-k for _, _, k in extents], kind="stable")
    products = np.repeat(order, tiles[order])
    before = np.repeat(np.cumsum(tiles[order]) - tiles[order], tiles[order])
    return np.stack([products, np.arange(len(products)) - before], axis=1).astype(np.int32)
