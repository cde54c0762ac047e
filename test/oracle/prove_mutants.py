"""Mutants of the shipped kernels: the prover's verdict against the interpreter's.

    python test/oracle/prove_mutants.py --only 'GEMM sm_80' --share 0.3
    python test/oracle/prove_mutants.py --part 3/16     # mutants 2, 18, 34, … of each kernel

A kernel that the prover proves is mutated as in `mutants.py` (a synchronizing op dropped, moved or weakened). A mutant
that is still proved must run on all problems of the kernel, with all schedules, without a report about shared memory or
synchronization. The exit status is 1 if one has a report.
"""

from __future__ import annotations

import argparse
import collections
import sys
import time
from collections.abc import Sequence
from itertools import product
from random import Random

from mutants import Original, chosen, originals
from mutations import mutated
from prove_fuzz import part_of
from xdsl.dialects.builtin import ModuleOp

from cute_dialect.interp import InterpError
from cute_dialect.prove.proof import PROVED, SCHEDULES, is_about_synchronization, prove

KINDS = ("race", "deadlock", "sync", "wgmma", "tcgen05")
"""Kinds of reports that contradict a proof, if they are about shared memory."""


def report(run: Original, module: ModuleOp) -> str:
    """Return the first report of the interpreter that contradicts a proof, empty if there is none."""
    for problem, schedule in product(run.problems, SCHEDULES):
        try:
            run.run(module, problem, schedule)
        except InterpError as e:
            if e.kind in KINDS and is_about_synchronization(e):
                return f"{schedule}: {str(e).partition(chr(10))[0]}"
    return ""


def main(argv: Sequence[str] | None = None) -> int:
    """Judge mutants and print the counts. Return 1 if a proof is contradicted."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="kernels whose name holds this")
    parser.add_argument("--share", type=float, default=1.0, help="of the mutants, chosen by --seed (default: all)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--part", type=part_of, default="1/1", help="I/N: every N-th mutant from the I-th on")
    parser.add_argument("--limit", type=float, default=30, help="CPU seconds of a proof (default: %(default)s)")
    parser.add_argument("--verbose", action="store_true", help="print a line per mutant")
    options = parser.parse_args(argv)
    random, wrong, total = Random(options.seed), 0, collections.Counter[str]()
    started = time.process_time()
    for run in originals(options.only):
        name = f"{run.name}, @{run.kernel}"
        first = prove(run.module, run.kernel, seconds=options.limit)
        counts = collections.Counter[str]()
        mutants = chosen(run, ("drop", "move", "weaken"), options.share, random) if first else []
        for mutation in mutants[options.part]:
            module = mutated(run.module, run.kernel, mutation)
            proof = prove(module, run.kernel, seconds=options.limit)
            said = report(run, module) if proof else ""
            counts["false proofs" if said else "proved" if proof else "not proved"] += 1
            wrong += bool(said)
            if said or options.verbose:
                label = "FALSE PROOF" if said else proof.verdict
                what = f"{mutation.kind} {mutation.what} (op {mutation.place})"
                print(f"{label} of {name}: {what}: {said or proof.reason}", flush=True)
        total += counts
        verdict = PROVED if first else f"{first.verdict}: {first.reason} {first.location}"
        print(f"{name}: {verdict}; mutants: {dict(counts)}", flush=True)
    print(f"{dict(total)}, {time.process_time() - started:.0f} CPU s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
