"""``cute.nvgpu``: descriptors of NVIDIA GPU instructions, from which atoms are made.

``cpasync`` has asynchronous copies, ``warp`` instructions of a warp, and ``warpgroup`` instructions of four warps.
"""

from __future__ import annotations

from cute_dialect.exports import exports

__getattr__, __dir__ = exports(__name__)
