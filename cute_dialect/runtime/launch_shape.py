"""Say how much of a kernel is launched."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

__all__ = ["Dim3", "LaunchShape"]

Dim3: TypeAlias = tuple[int, int, int]
"""Numbers along x, y and z."""


class LaunchShape(NamedTuple):
    """The shape of one launch, each along x, y and z: ``grid`` in blocks, ``block`` in threads, ``smem`` in bytes of
    dynamic shared memory a block, ``cluster`` in blocks (``None``: what the kernel says, else one).

    ``cooperative``: all blocks run at once, so that they may wait for each other.  ``pdl``: it may begin while the
    launch before it on the stream still runs, and waits for it by ``griddepcontrol.wait``.
    """

    grid: Dim3 = (1, 1, 1)
    block: Dim3 = (1, 1, 1)
    smem: int = 0
    cluster: Dim3 | None = None
    cooperative: bool = False
    pdl: bool = False
