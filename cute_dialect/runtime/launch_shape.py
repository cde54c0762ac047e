"""Grid, block, cluster and launch attributes of a kernel launch."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

__all__ = ["Dim3", "LaunchShape"]

Dim3: TypeAlias = tuple[int, int, int]
"""Extents along x, y and z."""


class LaunchShape(NamedTuple):
    """The shape and attributes of one launch.

    Args:
        grid: blocks along x, y and z.
        block: threads along x, y and z.
        smem: dynamic shared memory per block, in bytes.
        cluster: blocks per cluster along x, y and z; ``None`` uses the cluster of the kernel, by default one block.
        cooperative: all blocks are resident at once, so they may wait for each other.
        pdl: programmatic dependent launch: may start before the previous launch on the stream ends, and waits for it
            with ``griddepcontrol.wait``.
    """

    grid: Dim3 = (1, 1, 1)
    block: Dim3 = (1, 1, 1)
    smem: int = 0
    cluster: Dim3 | None = None
    cooperative: bool = False
    pdl: bool = False
