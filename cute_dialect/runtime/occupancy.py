"""How many clusters of blocks a GPU runs at once: its multiprocessors come in groups, which differ among chips."""

from __future__ import annotations

from cute_dialect.runtime.driver import driver
from cute_dialect.runtime.launch_shape import LaunchShape

__all__ = ["clusters_at_once"]

_NOTHING = b""".version 8.0
.target sm_90
.address_size 64
.visible .entry nothing() { ret; }
\0"""


def clusters_at_once(device: int, size: int, smem: int = 200 << 10) -> int:
    """Return how many clusters of ``size`` blocks of ``smem`` bytes of shared memory run at once on a device.

    An H100 of 132 multiprocessors runs 66 of two blocks, 30 of four and 15 of eight, each a multiprocessor
    (``cuOccupancyMaxActiveClusters``).  Raises CudaError; before sm_90 there are no clusters.
    """
    gpu = driver()
    before = gpu.enter(device)
    try:
        function = gpu.get_function(gpu.load_module(_NOTHING), "nothing")
        gpu.allow_smem(function, smem)
        shape = LaunchShape((gpu.multiprocessors(device) * size, 1, 1), (128, 1, 1), smem, (size, 1, 1))
        return gpu.active_clusters(function, shape)
    finally:
        if before:
            gpu.set_context(before)
