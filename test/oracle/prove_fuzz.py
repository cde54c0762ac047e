"""Random protocols: the prover's verdict against runs of the interpreter.

    python test/oracle/prove_fuzz.py --count 200 --seed 1

Each case is a producer-consumer ring with a random number of stages, perhaps a defect, and up to two random mutations
of its lowered code (a synchronizing op dropped, moved or weakened). A proved case must run without a report at every
tried size, with all schedules. The prover itself reproduces the refuted ones. The exit status is 1 for a
proof that a run contradicts, and for a draw with fewer than a tenth of either verdict.
"""

from __future__ import annotations

import argparse
import collections
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import cast

from mutations import find, mutated, mutations
from xdsl.dialects.builtin import ModuleOp

import cute_dialect.lang as cute
from cute_dialect.interp import InterpError
from cute_dialect.prove.proof import SCHEDULES, Proof, prove
from cute_dialect.runtime.launch import CompiledModule

sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "prove"))

from rings import DEFECTS, arrays, ring

KERNEL = "ring_kernel"


def run(compiled: CompiledModule, module: ModuleOp, columns: int, schedule: str) -> None:
    """Run a module on an array with this many columns. Raises InterpError for a report."""
    call = CompiledModule(compiled.artifact, lambda _: module).kernel("launch")
    call(*arrays(columns), device="cpu", checks=("race", "uninit"), schedule=schedule, seed=1)


def judge(random: Random, compiled: dict[tuple[int, str], CompiledModule]) -> tuple[Proof, str, str]:
    """Draw a protocol. Return the verdict, the protocol, and a report that contradicts a proof (empty: none)."""
    stages, defect = random.randint(1, 3), random.choice((*[""] * 12, *DEFECTS))
    key = (stages, defect)
    if key not in compiled:
        kind = cute.compile(ring(stages, defect), *arrays(2), device="cpu")
        compiled[key] = kind.kernel(cpu=True).module
    one = compiled[key]
    module = cast(ModuleOp, one.lowered(KERNEL))
    name = f"{stages} stages, {defect or 'no defect'}"
    for _ in range(random.choice((0, 1, 1, 2))):
        found = [m for m in mutations(find(module, KERNEL)) if m.kind != "bound"]
        chosen = random.choice(found)
        module = mutated(module, KERNEL, chosen)
        name += f", {chosen.kind} {chosen.what} (op {chosen.place})"
    sizes = range(1, 2 * stages + 4)
    candidates = [(f"{n} columns", lambda schedule, n=n: run(one, module, n, schedule)) for n in reversed(sizes)]
    proof = prove(module, KERNEL, candidates, seconds=20)
    if proof:
        for n in sizes:
            for schedule in SCHEDULES:
                try:
                    run(one, module, n, schedule)
                except InterpError as e:
                    return proof, name, f"{n} columns, {schedule}: {str(e).splitlines()[0]}"
    return proof, name, ""


def main(argv: Sequence[str] | None = None) -> int:
    """Judge random protocols and print the counts. Return 1 if a proof is contradicted, or if the draw is one-sided."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--verbose", action="store_true", help="print a line per protocol")
    options = parser.parse_args(argv)
    random, counts, wrong = Random(options.seed), collections.Counter[str](), 0
    compiled: dict[tuple[int, str], CompiledModule] = {}
    started = time.process_time()
    for _ in range(options.count):
        proof, name, report = judge(random, compiled)
        counts[proof.verdict] += 1
        if report:
            wrong += 1
            print(f"FALSE PROOF of {name}: {report}", flush=True)
        elif options.verbose or proof.verdict == "not proved":
            print(f"{proof.verdict}: {name}: {proof.reason} {proof.location}", flush=True)
    print(f"{dict(counts)}, {wrong} false proofs, {time.process_time() - started:.0f} CPU s")
    rare = [v for v in ("proved", "refuted") if counts[v] * 10 < options.count]
    return 1 if wrong or rare else 0


if __name__ == "__main__":
    sys.exit(main())
