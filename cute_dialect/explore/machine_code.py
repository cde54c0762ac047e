"""Disassembly with source locations, live registers and spills of each instruction, from nvdisasm."""

from __future__ import annotations

import re
from typing import NamedTuple

from cute_dialect.explore.source_locations import Text, of_sass
from cute_dialect.pipelines.ptxas import disassemble

__all__ = ["MachineCode", "disassembled"]

_LIVE = re.compile(r"/\*([0-9a-f]{4,})\*/.*?//\s*\|\s*(\d+)?")
_SECTION = re.compile(r"\.section\s+(\.text\.\S+?),")
_SPILL = re.compile(r"\b(STL|LDL)(?:\.\w+)*\b")


class MachineCode(NamedTuple):
    """Lines of machine code, with the live registers (0 if unknown) and spill ("store", "load" or "") of each."""

    text: Text
    live: list[int]
    spills: list[str]


def disassembled(cubin: bytes) -> MachineCode:
    """Disassemble a cubin.  Raises PtxasMissing if nvdisasm is not installed, PtxasError if it fails."""
    text, offsets = of_sass(disassemble(cubin, "-gi"))
    known = _live(disassemble(cubin, "-plr", "-lrm", "count"))
    live: list[int] = []
    section = ""
    for line, offset in zip(text.lines, offsets):
        m = _SECTION.search(line)
        section = m[1] if m is not None else section
        live.append(known.get((section, offset), 0) if offset is not None else 0)
    spills = [{"STL": "store", "LDL": "load"}.get(m[1], "") if (m := _SPILL.search(x)) else "" for x in text.lines]
    return MachineCode(text, live, spills)


def _live(ranges: str) -> dict[tuple[str, int | None], int]:
    """Return the live registers by section and offset."""
    section = ""
    found: dict[tuple[str, int | None], int] = {}
    for line in ranges.split("\n"):
        m = _SECTION.search(line)
        section = m[1] if m is not None else section
        at = _LIVE.search(line)
        if at is not None:
            found[section, int(at[1], 16)] = int(at[2] or 0)
    return found
