"""Random protocols: the prover's verdict against runs of the interpreter.

    python test/oracle/prove_fuzz.py --count 200 --seed 1
    python test/oracle/prove_fuzz.py --count 2000 --part 3/16     # cases 2, 18, 34, …, which 16 processes can share

Each case is one of the protocols of `rings.py` (mbarriers, TMA, cp.async, named barriers, alternating consumers) with a
random number of stages, perhaps a defect, and up to two random mutations of its lowered code (a synchronizing op
dropped, moved or weakened). A proved case must run without a report at every tried size, with all schedules; its
certificate must be accepted; and no interleaving of its steps may reach a violation, nor break a condition under which
one schedule stands for all. If all interleavings of any length are few enough, the two engines must agree. The prover
itself reproduces the refuted cases. The exit status is 1 for a proof that anything contradicts, and for a draw with
fewer than a tenth of either verdict.
"""

from __future__ import annotations

import argparse
import collections
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Literal, cast

from mutations import find, mutated, mutations
from xdsl.dialects.builtin import ModuleOp

import cute_dialect.lang as cute
from cute_dialect.interp import InterpError
from cute_dialect.prove.arithmetic import Learned
from cute_dialect.prove.certificate import FACTS
from cute_dialect.prove.exhaustive import explore
from cute_dialect.prove.machine import Machine
from cute_dialect.prove.program import Program, find_kernel
from cute_dialect.prove.proof import PROVED, REFUTED, SCHEDULES, Proof, prove
from cute_dialect.prove.recheck import RejectedError, recheck
from cute_dialect.prove.verdict import NotProved, Violation
from cute_dialect.runtime.launch import CompiledModule

sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "prove"))

from rings import FAMILIES, Family


@dataclass(frozen=True)
class Protocol:
    """A compiled protocol, and its arguments for a number of steps."""

    compiled: CompiledModule
    arguments: Callable[[int], tuple[object, ...]]

    @property
    def kernel(self) -> str:
        """Name of the kernel."""
        return self.compiled.names[0]

    def run(self, module: ModuleOp, steps: int, schedule: str) -> None:
        """Run a mutated module for a number of steps. Raises InterpError for a report."""
        call = CompiledModule(self.compiled.artifact, lambda _: module).kernel("launch")
        call(*self.arguments(steps), device="cpu", checks=("race", "uninit"), schedule=schedule, seed=1)


def part_of(text: str) -> slice:
    """Return the items of a part such as 3/16: the third of 16, which takes every sixteenth item.

    >>> list(range(10))[part_of("2/4")]
    [1, 5, 9]
    """
    part, parts = map(int, text.split("/"))
    if not 1 <= part <= parts:
        raise ValueError(text)
    return slice(part - 1, None, parts)


def draw(
    random: Random, compiled: dict[tuple[str, int, str], Protocol], families: Sequence[Family]
) -> tuple[Protocol, ModuleOp, int, str]:
    """Return a protocol of a family, its mutated module, its number of stages, and a description."""
    build, defects, arguments = random.choice(families)
    stages, defect = random.randint(2, 3), random.choice((*[""] * 12, *defects))
    key = (build.__name__, stages, defect)
    if key not in compiled:
        kind = cute.compile(build(stages, defect), *arguments(2), device="cpu")
        compiled[key] = Protocol(kind.kernel(cpu=True).module, arguments)
    one = compiled[key]
    module = cast(ModuleOp, one.compiled.lowered(one.kernel))
    name = f"{build.__name__}, {stages} stages, {defect or 'no defect'}"
    for _ in range(random.choice((0, 1, 1, 2))):
        chosen = random.choice([m for m in mutations(find(module, one.kernel)) if m.kind != "bound"])
        module = mutated(module, one.kernel, chosen)
        name += f", {chosen.kind} {chosen.what} (op {chosen.place})"
    return one, module, stages, name


def judge(one: Protocol, module: ModuleOp, stages: int) -> tuple[Proof, str]:
    """Return the verdict on a protocol, and a report that contradicts a proof (empty: none)."""
    sizes = range(1, 2 * stages + 4)
    candidates = [(f"{n} steps", lambda schedule, n=n: one.run(module, n, schedule)) for n in reversed(sizes)]
    proof = prove(module, one.kernel, candidates, seconds=20, certify=True)
    wrong = contradiction(module, one.kernel, proof, stages + 2)
    if wrong or not proof:
        return proof, wrong
    for n in sizes:
        for schedule in SCHEDULES:
            try:
                one.run(module, n, schedule)
            except InterpError as e:
                return proof, f"{n} steps, {schedule}: {str(e).splitlines()[0]}"
    return proof, ""


def contradiction(module: ModuleOp, kernel: str, proof: Proof, trips: int) -> str:
    """Return the objection of the checker of certificates, or of all interleavings, to a verdict (empty: none)."""
    program = Program(module, find_kernel(module, kernel)) if proof.verdict in (PROVED, REFUTED) else None
    if program is None:
        return ""
    if proof and proof.engine == FACTS:
        if proof.certificate is None:
            return f"no certificate: {proof.uncertified}"
        try:
            recheck(module, program.kernel, proof.certificate)
        except RejectedError as e:
            return f"the certificate is rejected: {e}"
        short = interleaved(program, trips=trips, kind=Machine)
        if short:
            return f"an interleaving of at most {trips} steps: {short.text}"
    free = interleaved(program)
    if free is not None and bool(free) == bool(proof):
        return f"all interleavings: {free.text if free else 'no violation'}"
    return ""


def interleaved(program: Program, **how: Any) -> Violation | Literal[False] | None:
    """Return a violation that an interleaving reaches, False if none does, and None if they are too many."""
    try:
        found, _ = explore(program, Learned(), 30, most=4000, **how)
    except NotProved:
        return None
    return found.violation if found else False


def main(argv: Sequence[str] | None = None) -> int:
    """Judge random protocols and print the counts. Return 1 if a proof is contradicted, or if the draw is one-sided."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="families whose name contains this, such as alternating")
    parser.add_argument("--part", type=part_of, default="1/1", help="I/N: every N-th protocol from the I-th on")
    parser.add_argument("--verbose", action="store_true", help="print a line per protocol")
    options = parser.parse_args(argv)
    families = [f for f in FAMILIES if options.only in f[0].__name__]
    counts, wrong = collections.Counter[str](), 0
    compiled: dict[tuple[str, int, str], Protocol] = {}
    started = time.process_time()
    for n in range(options.count)[options.part]:
        one, module, stages, name = draw(Random(f"{options.seed} {n}"), compiled, families)
        proof, report = judge(one, module, stages)
        counts[proof.verdict] += 1
        if report:
            wrong += 1
            print(f"FALSE PROOF of {name}: {report}", flush=True)
        elif options.verbose or proof.verdict == "not proved":
            print(f"{proof.verdict}: {name}: {proof.reason} {proof.location}", flush=True)
    print(f"{dict(counts)}, {wrong} false proofs, {time.process_time() - started:.0f} CPU s")
    rare = [v for v in ("proved", "refuted") if counts[v] * 10 < counts.total()]
    return 1 if wrong or rare else 0


if __name__ == "__main__":
    sys.exit(main())
