"""The Hopper GEMM in the language: :mod:`cute_dialect.kernels.gemm.hopper` is where to begin.

The public names stand in the stub beside this file; each is imported when it is first used.
"""

from __future__ import annotations

from cute_dialect.exports import exports

__getattr__, __dir__ = exports(__name__)
