"""``cute.nvgpu``: descriptors of the instructions of NVIDIA GPUs, from which atoms are made.

``cpasync``: copies that wait for nothing; ``warp``: instructions of a warp; ``warpgroup``: of four warps.
"""

from __future__ import annotations

from cute_dialect.exports import exports

__getattr__, __dir__ = exports(__name__)
