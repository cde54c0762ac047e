"""The tables in docs/prove.md: which kernels are proved, and why the others are not.

python test/oracle/prove_table.py                      print the table of the examples
python test/oracle/prove_table.py --write              replace it in docs/prove.md
python test/oracle/prove_table.py --shipped            print that of GEMM and attention kernels of Hopper
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from mutants import Original, originals
from xdsl.dialects.builtin import ModuleOp

from cute_dialect.pipelines import compile as compile_cute
from cute_dialect.prove.proof import Proof, prove

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "test" / "examples"
PAGE = ROOT / "docs" / "prove.md"
SECONDS = 300
"""Limit of CPU time per kernel. The proofs of the table take a third of it at most."""
BEGIN, END = "<!-- table of test/oracle/prove_table.py -->\n", "<!-- end of the table -->\n"
SHIPPED_SECONDS = 60
"""Limit of CPU time per shipped kernel."""
FAMILIES = ("GEMM sm_90", "sparse GEMM", "attention", "latent attention")
"""First words of the names of the shipped kernels in the table."""


def row(file: str, proof: Proof, seconds: int = SECONDS) -> str:
    """Return the row of a kernel."""
    if proof:
        result = f"proved{''.join(f', for {a}' for a in proof.assumed)}"
        extent = proof.checked or "neither shared memory nor barriers"
        extent += f"; {proof.states} states" if proof.states else ""
    else:
        reason, late, _ = proof.reason.partition(" after ")  # the number of states depends on the time
        if late and reason == "the search did not converge":
            return f"| `{file}` | `{proof.kernel}` | {proof.verdict} | {reason} in {seconds} s |"
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


def shipped_row(run: Original) -> str:
    """Return the row of a shipped kernel. The line of a reason is left out: it is one of generated code."""
    proof = prove(run.module, run.kernel, seconds=SHIPPED_SECONDS)
    return row(run.subject.name, replace(proof, location=""), SHIPPED_SECONDS).replace("`", "", 2)


def shipped() -> list[Original]:
    """Return the shipped kernels of the table."""
    return [run for run in originals("") if run.name.startswith(FAMILIES)]


def published() -> list[str]:
    """Return the rows in docs/prove.md."""
    text = PAGE.read_text()
    return text[text.index(BEGIN) + len(BEGIN) : text.index(END)].splitlines()[2:]


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table, or write it to the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="replace the table in docs/prove.md")
    parser.add_argument("--shipped", action="store_true", help="the GEMM and attention kernels of Hopper")
    options = parser.parse_args(argv)
    if options.shipped and options.write:
        parser.error("--write: docs/prove.md has no table of the shipped kernels; leave --write out")
    rows = [shipped_row(run) for run in shipped()] if options.shipped else table(sorted(EXAMPLES.glob("*.mlir")))
    first = "configuration" if options.shipped else "file"
    lines = [f"| {first} | kernel | verdict | checked, or what stands in the way |", "|---|---|---|---|", *rows]
    if not options.write:
        print("\n".join(lines))
        return 0
    text = PAGE.read_text()
    before, after = text[: text.index(BEGIN) + len(BEGIN)], text[text.index(END) :]
    PAGE.write_text(before + "\n".join(lines) + "\n" + after)
    return 0


if __name__ == "__main__":
    sys.exit(main())
