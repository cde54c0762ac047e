"""Parser for the compiled code in a printed ``gpu.binary`` op.

Reading the attribute through MLIR's Python bindings would import op classes for 50 ms.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

__all__ = ["GpuObject", "parse_objects"]


class GpuObject(NamedTuple):
    """One compiled object of a ``gpu.module``.  ``format``: ``isa`` (PTX), ``bin``, ``offload`` or ``fatbin``."""

    module: str
    chip: str
    format: str
    data: bytes


_OBJECT = re.compile(
    r'#gpu\.object<#nvvm\.target<((?:[^">]|"[^"]*")*)>'  # the target
    r'(?:, properties = \{(?:[^"}]|"[^"]*")*\})?, (?:kernels = .*?, )?'
    r'(?:(assembly|bin|offload) = )?"((?:[^"\\]|\\.)*)"',
    re.S,
)
_FORMATS: Mapping[str | None, str] = {"assembly": "isa", "bin": "bin", "offload": "llvm", None: "fatbin"}


def parse_objects(text: str) -> Iterator[tuple[str, str, bytes]]:
    """Yield chip, format and bytes of each object in the printed attribute ``[#gpu.object<…>, …]``.

    >>> list(parse_objects(r'[#gpu.object<#nvvm.target<chip = "sm_80">, assembly = "a\\0Ab\\22">]'))
    [('sm_80', 'isa', b'a\\nb"')]
    """
    for target, form, escaped in _OBJECT.findall(text):
        chip = re.search(r'chip = "([^"]*)"', target)
        raw: bytes = escaped.encode()
        data = re.sub(rb"\\([0-9A-Fa-f]{2}|\\)", _unescape, raw)
        kind = _FORMATS[form or None]
        yield chip.group(1) if chip else "", kind, data.rstrip(b"\0") if kind == "isa" else data


def _unescape(found: re.Match[bytes]) -> bytes:
    code = found.group(1)
    return b"\\" if code == b"\\" else bytes([int(code, 16)])
