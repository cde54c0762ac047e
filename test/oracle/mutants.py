"""Mutation test of the interpreter's checks: shipped kernels with one synchronizing op or bound changed.

    python test/oracle/mutants.py                      # all mutants, as in make slow
    python test/oracle/mutants.py --share 0.05 --seed 3 # a random sample
    python test/oracle/mutants.py --only 'ping-pong'
    python test/oracle/mutants.py --only 'latent attention' --jobs 16           # 16 processes
    python test/oracle/mutants.py --only 'latent attention' --jobs 16 --part 3/4 # the third of four machines

An op or bound is dropped, weakened, moved or shifted. The mutant is caught if some schedule of SCHEDULES ends with a
report. A wrong result also reveals a wrong bound. It does not count for an ordering op, because another run may win the
race.

A mutant that neither reports nor changes the result must be equivalent to the kernel, for a reason that
`mutant_proofs.py` states with its clause. Otherwise it is missed, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import collections
import gc
import os
import signal
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cached_property
from itertools import cycle, islice
from multiprocessing import get_context
from random import Random
from typing import NamedTuple, TypeAlias

from mutant_kernels import Problem, Subject, subjects
from mutant_proofs import proof
from mutations import Mutation, find, mutated, mutations, trapped
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from cute_dialect.interp import InterpError
from cute_dialect.pipelines import compile as compile_cute
from cute_dialect.runtime.launch import CompiledModule

SCHEDULES = ("round-robin", "adversarial", "reverse", "random")
CHECKS = ("race", "oob", "uninit", "sync")
SECONDS = 120
"""CPU seconds for all runs of one mutant."""


FEWER = "one arrival fewer expected"
"""If all threads of a warpgroup arrive after they have waited for one wgmma, the missing arrival shows after as many
uses of the mbarrier as the warpgroup has threads: only then a phase ends before any thread arrives for it.
"""


UNREACHED = "no thread reaches the bound itself, in problems that are multiples of the tile and in others"
"""The reason why a comparison that is off by one is equivalent, and needs no run of its own."""


class Verdict(NamedTuple):
    """The classification of a mutant.

    `how` is caught, result, equal or missed. `by` is the report kind and schedule, the schedule alone, or the proof.
    """

    how: str
    by: str
    message: str = ""


class Hang(BaseException):
    """A mutant ran longer than SECONDS."""


Accesses: TypeAlias = "dict[tuple[str, str, str], int]"


def _in_global(accesses: Accesses) -> Accesses:
    return {key: n for key, n in accesses.items() if key[0] == "global"}


class Original:
    """A compiled shipped kernel, and the problems for which its host function launches it."""

    def __init__(self, subject: Subject, compiled: CompiledModule, kernel: str, problems: list[Problem]):
        self.subject, self.compiled, self.kernel, self.problems = subject, compiled, kernel, problems
        self.name = f"{subject.name}, @{kernel}"
        self.module = compiled.lowered(kernel)

    def mutations(self) -> list[Mutation]:
        """Return every mutation of the kernel."""
        return mutations(find(self.module, self.kernel))

    def run(self, module: ModuleOp, problem: Problem, schedule: str) -> bool:
        """Return True if the results are correct. Raises InterpError for reports of the interpreter."""
        arrays = problem()
        call = CompiledModule(self.compiled.artifact, lambda _: module).kernel(self.subject.kernel)
        call(*arrays, device="cpu", checks=CHECKS, schedule=schedule, seed=1)
        return self.subject.right(arrays)

    @cached_property
    def accesses(self) -> Accesses:
        """Reads and writes of the unchanged kernel in all its problems."""
        return self.traced(self.module)

    def traced(self, module: ModuleOp) -> Accesses:
        """Count the requests of each access of shared and global memory, by source location."""
        counts: collections.Counter[tuple[str, str, str]] = collections.Counter()
        for problem in self.problems:
            call = CompiledModule(self.compiled.artifact, lambda _: module).kernel(self.subject.kernel)
            report = call(*problem(), device="cpu", reports=("banks", "coalescing"))
            assert report is not None and report.profile is not None
            for line in report.profile.lines:
                counts[line.space, line.op, line.location] += line.requests
        return {key: n for key, n in counts.items() if n}

    def written(self, module: ModuleOp) -> list[bytes]:
        """Return a mask of the bytes written in each problem."""
        out: list[bytes] = []
        for problem in self.problems:
            call = CompiledModule(self.compiled.artifact, lambda _: module).kernel(self.subject.kernel)
            x, y, z = call.plan(*problem()).shape.grid
            report = call(*problem(), device="cpu", blocks=f"0:{x * y * z}")
            assert report is not None
            out += [mask.tobytes() for _, mask in report.written]
        return out

    def same_bound(self, mutation: Mutation, op: Operation) -> str:
        """Return the reason why a bound that is off by one makes no difference."""
        now = self.traced(mutated(self.module, self.kernel, mutation))
        if now == self.accesses:
            return "memory is accessed as before: the guards of the accesses imply the bound too"
        if op.name == "arith.cmpi" and self.written(mutated(self.module, self.kernel, mutation)) == self.written(
            self.module
        ):
            return "the same bytes are written: at the bound the branch for the edge does the same, element by element"
        if op.name == "scf.for" and _in_global(now) == _in_global(self.accesses):
            return "a step more reads and writes nothing in global memory: it adds products of the zeros that pad K"
        return ""

    def reached(self, place: int) -> bool:
        """Return True if both sides of a comparison are equal for some thread of some problem."""
        module = trapped(self.module, self.kernel, place)
        for problem in self.problems:
            try:
                self.run(module, problem, "round-robin")
            except InterpError:
                return True
        return False

    def runs(self, mutation: Mutation, is_proved: bool) -> list[tuple[Problem, str]]:
        """Return the problems and schedules to run.

        A wrong bound does not depend on the schedule. A mutant that is proved equivalent runs under each schedule once,
        on the problems in turn.
        """
        if mutation.kind == "bound":
            return [(problem, SCHEDULES[0]) for problem in self.problems]
        if is_proved:
            return list(zip(cycle(self.problems), SCHEDULES))
        # The last problem of a subject is its smallest, and most mutants are caught by it.
        return [(problem, schedule) for schedule in SCHEDULES for problem in self.problems[::-1]]

    def verdict(self, mutation: Mutation) -> Verdict:
        """Classify a mutant as caught, result, equal or missed."""
        op = next(o for i, o in enumerate(find(self.module, self.kernel).walk()) if i == mutation.place)
        if mutation.kind == "bound" and op.name == "arith.cmpi" and not self.reached(mutation.place):
            return Verdict("equal", UNREACHED)
        wrong = ""
        module = mutated(self.module, self.kernel, mutation)
        reason = proof(self.subject, mutation, op)
        for problem, schedule in self.runs(mutation, is_proved=bool(reason)):
            try:
                right = self.run(module, problem, schedule)
            except InterpError as e:
                if e.kind == "argument":
                    raise
                return Verdict("caught", f"{e.kind}, {schedule}", str(e).partition("\n")[0])
            if not right:
                wrong = wrong or schedule
        if mutation.what == FEWER and self.subject.long is not None:
            try:
                self.run(module, self.subject.long, SCHEDULES[0])
            except InterpError as e:
                return Verdict("caught", f"{e.kind}, {SCHEDULES[0]}, many uses", str(e).partition("\n")[0])
        if wrong and mutation.kind == "bound":
            return Verdict("result", wrong)
        if not reason and not wrong and mutation.kind == "bound":
            reason = self.same_bound(mutation, op)
        if reason and not wrong:
            return Verdict("equal", reason)
        return Verdict("missed", f"wrong result, {wrong}" if wrong else "right result", str(op)[:200])


def originals(only: str) -> Iterator[Original]:
    """Yield the kernels whose name contains `only`."""
    for subject in subjects():
        if "@" not in only and only not in subject.name:
            continue
        compiled = compile_cute(subject.text(), emit="base", filename=f"{subject.name}.mlir")
        launched: dict[str, list[Problem]] = {}
        for problem in subject.problems:
            launched.setdefault(compiled.kernel(subject.kernel).plan(*problem()).kernel, []).append(problem)
        for kernel, problems in launched.items():
            if only in f"{subject.name}, @{kernel}":
                yield Original(subject, compiled, kernel, problems)


def limited(run: Original, mutation: Mutation) -> Verdict:
    """Return the verdict; a mutant that exceeds the time limit is missed."""

    def stop(*_: object) -> None:
        raise Hang

    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        return run.verdict(mutation)
    except Hang:
        return Verdict("missed", f"no end within {SECONDS} CPU s")
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def chosen(run: Original, kinds: Sequence[str], share: float, random: Random) -> list[Mutation]:
    """Return a random share of the kernel's mutations of these kinds."""
    every = [m for m in run.mutations() if m.kind in kinds]
    return [m for m in every if share >= 1 or random.random() < share]


Case: TypeAlias = "tuple[Original, Mutation]"
_CASES: list[Case] = []
"""The mutants of a run with several processes, which are forked after the kernels have been compiled."""


def _limited_case(place: int) -> Verdict:
    return limited(*_CASES[place])


def verdicts(cases: Iterable[Case], jobs: int) -> Iterator[tuple[Original, Mutation, Verdict]]:
    """Yield the verdict of each mutant, in order, from a number of processes."""
    if jobs == 1:
        yield from ((run, mutation, limited(run, mutation)) for run, mutation in cases)
        return
    _CASES[:] = cases
    with ProcessPoolExecutor(jobs, get_context("fork")) as pool:
        for case, verdict in zip(_CASES, pool.map(_limited_case, range(len(_CASES)))):
            yield *case, verdict


def part_of(text: str) -> tuple[int, int]:
    """Return K and N of ``K/N``."""
    part, _, parts = text.partition("/")
    if not (part.isdigit() and parts.isdigit() and 1 <= int(part) <= int(parts)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a part; write K/N with 1 <= K <= N, as in 3/16")
    return int(part), int(parts)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the mutants and print the table. Return 1 if one is missed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--share", type=float, default=1.0, help="of the mutants, chosen by --seed (default: all)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="kernels whose name holds this")
    parser.add_argument("--kinds", default="drop,move,weaken,bound", help="which (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=1, help="processes (default: %(default)s)")
    parser.add_argument("--part", type=part_of, default=(1, 1), metavar="K/N", help="every Nth mutant, from the Kth on")
    parser.add_argument("--verbose", action="store_true", help="a line a mutant")
    options = parser.parse_args(argv)
    table: dict[str, collections.Counter[str]] = {}
    reasons: collections.Counter[str] = collections.Counter()
    random, (part, parts) = Random(options.seed), options.part
    cases = (
        (run, mutation)
        for run in originals(options.only)
        for mutation in chosen(run, options.kinds.split(","), options.share, random)
    )
    for run, mutation, v in verdicts(islice(cases, part - 1, None, parts), options.jobs):
        row = table.setdefault(run.name, collections.Counter())
        row[v.how] += 1
        row["all"] += 1
        if v.how == "equal":
            reasons[v.by] += 1
        if options.verbose or v.how == "missed":
            at = f"{run.name}: {mutation.kind} {mutation.what} (op {mutation.place})"
            print(f"{v.how:7} {at}: {v.by} {v.message}", flush=True)
    print(f"\n{'kernel':44}{'mutants':>8}{'caught':>8}{'result':>8}{'equal':>8}{'missed':>8}")
    for name, row in [*table.items(), ("all", sum(table.values(), collections.Counter()))]:
        print(f"{name:44}" + "".join(f"{row[k]:8}" for k in ("all", "caught", "result", "equal", "missed")))
    for reason, n in reasons.most_common():
        print(f"{n:5} equal: {reason}")
    print(f"{sum(os.times()[:4]):.0f} CPU s")
    return 1 if any(row["missed"] for row in table.values()) else 0


if __name__ == "__main__":
    gc.set_threshold(100_000, 20, 20)  # Copies of kernels have hundreds of thousands of objects without cycles to free.
    sys.exit(main())
