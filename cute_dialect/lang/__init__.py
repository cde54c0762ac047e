"""The kernel language: kernels written in Python. ``import cute_dialect.lang as cute``.

The public names are listed in the stub next to this file.  Each is imported on first use.
"""

from __future__ import annotations

from cute_dialect.exports import exports

__getattr__, __dir__ = exports(__name__)
