"""Copy instructions, ``cute_nvgpu.arch.*``."""

from __future__ import annotations

from xdsl.ir import Operation

OPS: list[type[Operation]] = []
"""Ops of ``cute_nvgpu``."""

CUTE_OPS: list[type[Operation]] = []
"""Ops of ``cute``."""
