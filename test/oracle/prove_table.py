"""The table of the examples in docs/prove.md: which kernels are proved, and why the others are not.

python test/oracle/prove_table.py            print the table
python test/oracle/prove_table.py --write    replace it in docs/prove.md
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from xdsl.dialects.builtin import ModuleOp

from cute_dialect.pipelines import compile as compile_cute
from cute_dialect.prove.proof import Proof, prove

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "test" / "examples"
PAGE = ROOT / "docs" / "prove.md"
SECONDS = 300
"""Limit of CPU time per kernel. The proofs of the table take a third of it at most."""
BEGIN, END = "<!-- table of test/oracle/prove_table.py -->\n", "<!-- end of the table -->\n"


def row(file: str, proof: Proof) -> str:
    """Return the row of a kernel."""
    if proof:
        result = f"proved{''.join(f', for {a}' for a in proof.assumed)}"
        extent = proof.checked or "neither shared memory nor barriers"
        extent += f"; {proof.states} states" if proof.states else ""
    else:
        reason, late, _ = proof.reason.partition(" after ")  # the number of states depends on the time
        if late and reason == "the search did not converge":
            return f"| `{file}` | `{proof.kernel}` | {proof.verdict} | {reason} in {SECONDS} s |"
        line = proof.location.rpartition(f"{file}:")[2].partition(":")[0]
        result, extent = proof.verdict, f"{proof.reason}{f' (line {line})' if line else ''}"
    return f"| `{file}` | `{proof.kernel}` | {result} | {extent} |"


def table(files: Sequence[Path]) -> list[str]:
    """Return the rows of the kernels of some files."""
    rows: list[str] = []
    for file in files:
        compiled = compile_cute(file, emit="base")
        rows += [row(file.name, prove(cast(ModuleOp, compiled.lowered(n)), n, seconds=SECONDS)) for n in compiled.names]
    return rows


def published() -> list[str]:
    """Return the rows in docs/prove.md."""
    text = PAGE.read_text()
    return text[text.index(BEGIN) + len(BEGIN) : text.index(END)].splitlines()[2:]


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table, or write it to the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="replace the table in docs/prove.md")
    options = parser.parse_args(argv)
    rows = table(sorted(EXAMPLES.glob("*.mlir")))
    lines = ["| file | kernel | verdict | checked, or what stands in the way |", "|---|---|---|---|", *rows]
    if not options.write:
        print("\n".join(lines))
        return 0
    text = PAGE.read_text()
    before, after = text[: text.index(BEGIN) + len(BEGIN)], text[text.index(END) :]
    PAGE.write_text(before + "\n".join(lines) + "\n" + after)
    return 0


if __name__ == "__main__":
    sys.exit(main())
