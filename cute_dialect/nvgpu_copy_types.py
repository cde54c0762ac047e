"""Copy atom types of ``cute_nvgpu`` beyond plain loads and stores."""

from __future__ import annotations

from xdsl.ir import Attribute

ATTRS: list[type[Attribute]] = []
