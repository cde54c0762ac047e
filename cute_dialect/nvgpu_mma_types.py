"""MMA atom types of ``cute_nvgpu``, and the tiled MMA."""

from __future__ import annotations

from xdsl.ir import Attribute

ATTRS: list[type[Attribute]] = []
"""Types of ``cute_nvgpu``."""

CUTE_ATTRS: list[type[Attribute]] = []
"""Types of ``cute``: the tiled MMA."""
