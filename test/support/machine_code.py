"""Comparison of the opcodes of a cubin with given counts: ``python machine_code.py FILE OPCODE=COUNT …``.

The exit status is 1 if a count differs, or if the kernel spills registers.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path

from cute_dialect.pipelines.ptxas import disassemble

OPCODE = re.compile(r"^\s+/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+\s+)?([A-Z0-9]+)", re.MULTILINE)


def opcodes(cubin: bytes) -> Counter[str]:
    """Return the number of instructions of each opcode."""
    return Counter(OPCODE.findall(disassemble(cubin)))


def main(path: str, *wanted: str) -> int:
    """Print the counts that differ, and return the exit status."""
    have = opcodes(Path(path).read_bytes())
    status = 0
    for name, count in (w.split("=") for w in (*wanted, "STL=0", "LDL=0")):
        if have[name] != int(count):
            print(f"{path}: {have[name]} {name}, expected {count}")
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
