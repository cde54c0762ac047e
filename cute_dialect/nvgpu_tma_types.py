"""TMA atom types of ``cute_nvgpu``."""

from __future__ import annotations

from xdsl.ir import Attribute

ATTRS: list[type[Attribute]] = []
