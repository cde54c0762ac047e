"""Sparse MMA operands: decoding of the metadata, and expansion of A to its full K.

The layouts of the metadata are in the table of atoms (PTX ISA 9.0, 9.7.14.6.1, 9.7.15.6.1).
"""

# Values are numpy arrays of many types, picked at run time; pyright cannot follow their element types.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from cute_dialect.interp.errors import Fault
from cute_dialect.interp.values import Array

if TYPE_CHECKING:
    from cute_dialect.algebra.values import Layout
    from cute_dialect.arch.atom import Metadata


@lru_cache(maxsize=64)
def positions(layout: Layout) -> Array:
    """Return the offset of each `(thread, value)` of a layout."""
    from cute_dialect.algebra.evaluation import evaluate  # late: start-up
    from cute_dialect.algebra.trees import product  # late: start-up
    from cute_dialect.algebra.values import layout_modes  # late: start-up

    threads, values = layout_modes(layout)
    first, second = (
        np.array([evaluate(i, x) for i in range(product(x.shape))])  # type: ignore[arg-type]
        for x in (threads, values)
    )
    return first[:, None] + second[None, :]


@lru_cache(maxsize=8)
def kept_table(held: Metadata) -> Array:
    """Map the 4 metadata bits of a group to the positions of its nonzero elements, of shape `(16, kept)`.

    Invalid bits map to -1.
    """
    table = np.full((16, held.group // 2), -1)
    for bits, elements in held.kept.items():
        table[bits] = elements
    return table


def contributing(held: Metadata, selector: int, threads: int) -> Array:
    """Return a mask of the threads that provide metadata: those that the selector picks in each quad."""
    each = 4 // held.selectors
    return np.arange(threads) % 4 // each == selector


def words_of(held: Metadata, m: int, columns: int, e: Array, selector: int) -> Array:
    """Return the metadata matrix E, `(n, m, columns)`, unsigned, from one register per thread, `(n, threads)`."""
    bits = 4 * held.groups
    values = np.stack([e.astype(np.uint32) >> np.uint32(bits * i) for i in range(held.registers.values)], axis=-1)
    values &= np.uint32((1 << bits) - 1)
    asked = contributing(held, selector, e.shape[1])
    flat = np.zeros((e.shape[0], m * columns), np.uint32)
    flat[:, positions(held.layout)[asked]] = values[:, asked]
    return flat.reshape(-1, columns, m).transpose(0, 2, 1)


def expand(
    held: Metadata, a: Array, words: Array, ask: Array, selector: int, name: str, *, lanes: bool = True
) -> Array:
    """Return a sparse operand `(n, m, k / 2)` at full K. `words` has shape `(n, m, columns)`.

    Args:
        ask: Mask over n of the entries to check. Invalid metadata bits in these are a fault.
        lanes: True if the threads are those of the running group. The fault then names the thread that holds the bits.
    """
    n, m, columns = words.shape
    shifts = np.arange(held.groups, dtype=np.uint32) * np.uint32(4)
    bits = (words[..., None] >> shifts & np.uint32(15)).reshape(n, m, columns * held.groups)
    where = kept_table(held)[bits]
    wrong = (where[..., 0] < 0) & ask[:, None, None]
    if wrong.any():
        i, r, g = (int(x[0]) for x in np.nonzero(wrong))
        known = ", ".join(f"{b:04b}" for b in held.kept)
        at = positions(held.group_layout(m))
        holds = (at == r + m * g).any(axis=1) & contributing(held, selector, len(at))
        raise Fault(
            "argument",
            f"{name}: the metadata of row {r}, group {g} of A is {int(bits[i, r, g]):04b}; it must be one of {known}",
            i * len(at) + int(holds.argmax()) if lanes else -1,
        )
    out = np.zeros((n, m, columns * held.groups, held.group), a.dtype)
    np.put_along_axis(out, np.maximum(where, 0), a.reshape(where.shape), axis=-1)
    return out.reshape(n, m, -1)


def expand_warpgroup(a: Array, registers: list[Array], kind: str, selector: int) -> Array:
    """Return the compressed A, `(64, k / 2)`, at full K.

    Args:
        registers: The metadata registers of the lanes of each warp.
        kind: The PTX type of A.
    """
    from cute_dialect.arch.elements import by_ptx  # late: start-up
    from cute_dialect.arch.mma_sp import metadata  # late: start-up

    held = metadata(64, 2 * a.shape[1], by_ptx(kind))
    e = np.concatenate(registers).view(np.uint32)[None]
    words = words_of(held, 64, 2 * a.shape[1] // held.columns, e, selector)
    return expand(held, a[None], words, np.ones(1, np.bool_), selector, "wgmma.mma_async.sp", lanes=False)[0]


__all__ = ["contributing", "expand", "expand_warpgroup", "positions", "words_of"]
