"""Every example compiled for every chip: the result is PTX or an error with a location, and LLVM never aborts.

    python test/oracle/target_grid.py                     every example for every chip that LLVM supports
    python test/oracle/target_grid.py --count 20 --seed 3 a random sample of these pairs
    python test/oracle/target_grid.py --chips sm_75 sm_80 only these chips

Each failing pair is printed with its message. The exit status is 1 if there was a failure.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from random import Random

from cute_dialect.arch.targets import TARGETS
from cute_dialect.errors import CompileError
from cute_dialect.pipelines import compile as compile_cute

EXAMPLES = Path(__file__).parents[1] / "examples"
KERNELS = tuple(sorted(p.stem for p in EXAMPLES.glob("*.mlir") if "gpu.module" in p.read_text()))
"""The examples that contain kernels."""


def outcome(kernel: str, chip: str) -> str:
    """Return the outcome of compiling a kernel for a chip: ``ptx``, ``refused`` with a location, or the failure."""
    path = EXAMPLES / f"{kernel}.mlir"
    try:
        module = compile_cute(path, chip=chip, emit="ptx", cache=False)
    except CompileError as e:
        lines = [line for line in str(e).splitlines() if "error:" in line]
        ours = rf"{re.escape(str(path))}:\d+:\d+: error: ({chip}|PTX \d\.\d) has no .*, which needs "
        return "refused" if lines and all(re.match(ours, line) for line in lines) else f"failed: {e}"
    said = [code.ptx for code in module.artifact.code]
    wrong = [ptx for ptx in said if f".target {chip}" not in ptx]
    return "ptx" if said and not wrong else "failed: no PTX for this chip"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, help="how many pairs, chosen at random (default: all)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--chips", nargs="*", default=list(TARGETS), choices=list(TARGETS))
    options = parser.parse_args()
    pairs = [(kernel, chip) for kernel in KERNELS for chip in options.chips]
    if options.count is not None:
        pairs = Random(options.seed).sample(pairs, min(options.count, len(pairs)))
    found: dict[str, int] = {}
    for kernel, chip in pairs:
        result = outcome(kernel, chip)
        found[result.partition(":")[0]] = found.get(result.partition(":")[0], 0) + 1
        if result.startswith("failed"):
            print(f"{kernel} for {chip}: {result}")
    print(", ".join(f"{n} {what}" for what, n in sorted(found.items())))
    return 1 if "failed" in found else 0


if __name__ == "__main__":
    raise SystemExit(main())
