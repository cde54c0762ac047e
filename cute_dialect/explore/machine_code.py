"""Machine code as text, with places, live registers and spills of each instruction, by nvdisasm."""

from __future__ import annotations

import re
import subprocess
import tempfile
from typing import NamedTuple

from cute_dialect.explore.places import Text, of_sass
from cute_dialect.pipelines.cuda_programs import PtxasError, PtxasMissing, find_program

__all__ = ["MachineCode", "disassembled"]

_LIVE = re.compile(r"/\*([0-9a-f]{4,})\*/.*?//\s*\|\s*(\d+)?")
_SECTION = re.compile(r"\.section\s+(\.text\.\S+?),")
_SPILL = re.compile(r"\b(STL|LDL)(?:\.\w+)*\b")


class MachineCode(NamedTuple):
    """Lines of machine code; of each the registers that are live there (0: none, or no instruction), and whether it
    spills: "store", "load" or nothing."""

    text: Text
    live: list[int]
    spills: list[str]


def disassembled(cubin: bytes) -> MachineCode:
    """Return machine code as text.  Raises PtxasMissing where there is no nvdisasm, PtxasError where it fails."""
    path = find_program("nvdisasm", "cuda_nvdisasm")
    if path is None:
        raise PtxasMissing("no nvdisasm found: pip install nvidia-cuda-nvdisasm, or put one on PATH")
    with tempfile.NamedTemporaryFile(prefix="cute-", suffix=".cubin") as f:
        f.write(cubin)
        f.flush()
        plain = _run(path, "-c", "-gi", f.name)
        ranges = _run(path, "-c", "-plr", "-lrm", "count", f.name)
    text, offsets = of_sass(plain)
    known = _live(ranges)
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


def _run(path: str, *arguments: str) -> str:
    done = subprocess.run([path, *arguments], capture_output=True, text=True, errors="replace", check=False)
    if done.returncode != 0:
        raise PtxasError(f"{path}: {(done.stderr or done.stdout).strip() or f'it ended with {done.returncode}'}")
    return done.stdout
