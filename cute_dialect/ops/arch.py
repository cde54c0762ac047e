"""Machine-level ops, ``cute_nvgpu.arch.*``: one op an instruction."""

from __future__ import annotations

from xdsl.ir import Operation

OPS: list[type[Operation]] = []
