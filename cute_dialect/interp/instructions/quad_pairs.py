"""`mma.sync.m8n8k4` on f16: each of the four quad-pairs of a warp computes its own MMA.

Fragment layouts come from the table of atoms (PTX ISA 9.0, 9.7.14.5.1).
"""

# Values are numpy arrays of many types, picked at run time; pyright cannot follow their element types.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cute_dialect.interp.exec.compiler import FnCompiler
from cute_dialect.interp.exec.group import Group
from cute_dialect.interp.values import Array, Regs, to_lanes

if TYPE_CHECKING:
    from xdsl.ir import Operation

    from cute_dialect.algebra.values import Layout

LANES = np.array([[t + 4 * g if t < 4 else t + 12 + 4 * g for t in range(8)] for g in range(4)])
"""Maps quad-pair g and logical thread t to a lane."""


def _positions(layout: Layout) -> Array:
    from cute_dialect.algebra.evaluation import evaluate
    from cute_dialect.algebra.values import layout_modes

    threads, values = layout_modes(layout)
    first = np.array([evaluate(t, threads) for t in range(8)])
    n = int(np.prod(values.shape))  # pyright: ignore[reportCallIssue, reportArgumentType]
    return first[:, None] + np.array([evaluate(v, values) for v in range(n)])[None, :]


def emit(c: FnCompiler, op: Operation, majors: tuple[str, str], counts: tuple[int, int, int]) -> None:
    """Compile one MMA. `majors` are those of A and B, `counts` the register counts of A, B and C."""
    from cute_dialect.arch.table import find_mma_sync

    slots = [c.use(v) for v in op.operands]
    outs = c.defines(op.results[0])
    leaves = [c.leaf_of(s) for s in slots]
    out_leaves = [c.leaf_of(s) for s in outs]
    accumulator = "f32" if leaves[-1].name == "f32" else "f16"
    row = find_mma_sync((8, 8, 4), (accumulator, "f16", "f16", accumulator), majors)
    a_at, b_at, c_at = (_positions(row.layout(x)) for x in "ABC")
    c.fn.collective = True

    def values(R: Regs, g: Group, first: int, count: int) -> Array:
        parts = [to_lanes(R[s], x, g.lanes).reshape(g.lanes // 32, 32, -1) for s, x in zip(slots, leaves)]
        held = np.concatenate(parts[first : first + count], axis=2).astype(np.float64)
        return held[:, LANES]  # (warps, quad-pair, thread, value)

    def step(R: Regs, g: Group) -> None:
        warps = g.lanes // 32
        tiles: list[Array] = []
        start = 0
        for at, count, shape in ((a_at, counts[0], (4, 8)), (b_at, counts[1], (4, 8)), (c_at, counts[2], (8, 8))):
            flat = np.zeros((warps, 4, shape[0] * shape[1]))
            flat[:, :, at] = values(R, g, start, count)
            tiles.append(flat.reshape(warps, 4, *shape))  # column-major: (second, first)
            start += count
        product = np.einsum("wqkm,wqkn->wqnm", tiles[0], tiles[1]) + tiles[2]
        found = product.reshape(warps, 4, 64)[:, :, c_at]
        lanes = np.zeros((warps, 32, found.shape[-1]))
        lanes[:, LANES] = found
        per = found.shape[-1] // len(outs)
        for i, (s, leaf) in enumerate(zip(outs, out_leaves)):
            part = np.ascontiguousarray(lanes[:, :, i * per : (i + 1) * per]).astype(leaf.dtype)
            R[s] = part.reshape(g.lanes, *leaf.shape)

    c.emit(op, step, keep=True)


__all__ = ["emit"]
