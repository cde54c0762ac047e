"""GEMM kernels in the kernel language. For Hopper, start with :mod:`cute_dialect.kernels.gemm.hopper`.

The stub next to this file lists the public names. Each name is imported on first use.
"""

from __future__ import annotations

from cute_dialect.exports import exports

__getattr__, __dir__ = exports(__name__)
