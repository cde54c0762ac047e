"""Number of thread block clusters that a GPU runs at once; it depends on how the chip groups its SMs."""

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
    """Return the number of resident clusters of ``size`` blocks with ``smem`` bytes of shared memory per block.

    An H100 with 132 SMs runs 66 clusters of two blocks, 30 of four and 15 of eight, with one block per SM
    (``cuOccupancyMaxActiveClusters``).  Raises CudaError before sm_90, which has no clusters.
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
