"""Tiles, partitions and offsets of tensors; shared memory."""

from __future__ import annotations

from xdsl.ir import Operation

from cute_dialect.ops import shared_memory

OPS: list[type[Operation]] = []
"""Ops of ``cute_nvgpu``."""

CUTE_OPS: list[type[Operation]] = [*shared_memory.OPS]
"""Ops of ``cute``."""
