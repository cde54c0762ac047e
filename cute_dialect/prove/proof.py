"""Verdicts on the protocol of a kernel, and their replay on the interpreter.

    proof = prove(module, "gemm", candidates=[("64x128x192", run), ...])
    print(proof)                      # proved for all …, refuted …, or not proved …

A violation that the search finds is abstract: it may rest on a value that the prover does not know. The candidates run
the kernel on the interpreter, on growing problems, with the schedule of the counterexample and with the named ones.
Only a violation that one of them reproduces refutes the kernel.

If a wait or arrival may count for another phase, one schedule does not stand for all. Then all interleavings are tried
(`exhaustive`), within a limit of states.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from cute_dialect.errors import UsageError
from cute_dialect.interp.errors import InterpError
from cute_dialect.interp.exec.program import symbol_name
from cute_dialect.interp.exec.replay import MISFIT
from cute_dialect.prove.arithmetic import Learned
from cute_dialect.prove.axioms import NOT_COVERED
from cute_dialect.prove.certificate import FACTS, INTERLEAVINGS, Content
from cute_dialect.prove.counterexample import schedule_of, steps_of
from cute_dialect.prove.decisions import dividend, interval_of
from cute_dialect.prove.exhaustive import explore
from cute_dialect.prove.invariant import certify
from cute_dialect.prove.names import describe, excluded_sizes, preconditions
from cute_dialect.prove.program import Program, find_kernel
from cute_dialect.prove.search import Found, search
from cute_dialect.prove.values import Atom, Linear, Terms
from cute_dialect.prove.verdict import NotProved, where

PROVED, REFUTED, NOT_PROVED = "proved", "refuted", "not proved"
AUTO, EXHAUSTIVE = "auto", "exhaustive"
ENGINES = (AUTO, FACTS, EXHAUSTIVE)
SCHEDULES = ("round-robin", "adversarial", "reverse", "random")
REPORTS = ("race", "deadlock", "sync", "uninit", "wgmma", "tcgen05", "oob", "misaligned", "divergence")
"""Kinds of reports of the interpreter that reproduce a violation."""
_GROUPS = {
    "barrier|barriers": ("barrier", "warp_sync"),
    "mbarrier operation|mbarrier operations": ("mbarrier_init", "mbarrier_arrive", "mbarrier_wait"),
    "asynchronous copy|asynchronous copies": ("tensor_load", "tensor_store", "bulk_load", "bulk_store", "cp_async"),
    "wait for copies|waits for copies": ("bulk_wait", "cp_wait"),
    "wgmma|wgmma": ("wgmma",),
    "wait for wgmma|waits for wgmma": ("wgmma_wait",),
    "tcgen05 operation|tcgen05 operations": ("tensor_multiply", "tensor_copy", "tensor_read", "tensor_write"),
    "commit of tcgen05|commits of tcgen05": ("tensor_commit",),
    "access of shared memory|accesses of shared memory": ("read", "write"),
}
"""Singular and plural of the instructions that a proof counts, and their kinds of effects."""
Run = Callable[[str], object]
"""Runs the kernel on the interpreter with a schedule, with the checks race and uninit."""
Command = Callable[[str, str], str]
"""Returns the command that runs a problem, given by the name of its candidate, with a schedule."""


@dataclass(frozen=True)
class Proof:
    """The verdict on the protocol of one kernel.

    Attributes:
        verdict: "proved", "refuted" or "not proved".
        reason: The violation, or what stands in the way of a proof.
        location: Source location of the reason.
        earlier: Source location of the earlier access of a race.
        cure: A change that would help, or the report of the interpreter that reproduces the violation.
        sizes: The trip counts of a counterexample, if they are known to occur together.
        assumed: Preconditions that the proof needs.
        checked: The instructions that were checked, by kind: `6 barriers, 2 wgmma`.
        states: Number of states visited.
        seconds: CPU seconds.
        excluded: The violation at the size 0 that a precondition excludes, such as `x.shape[1] = 0: deadlock: …`.
        engine: "facts" (one schedule with happens-before) or "interleavings" (all of them).
        problem, schedule: The arguments and the schedule with which the interpreter reproduces a violation.
        certificate: The certificate of a proof, if it was requested.
        uncertified: The reason why there is none.
    """

    kernel: str
    verdict: str
    reason: str = ""
    location: str = ""
    earlier: str = ""
    cure: str = ""
    sizes: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    checked: str = ""
    states: int = 0
    seconds: float = 0.0
    excluded: tuple[str, ...] = ()
    engine: str = FACTS
    problem: str = ""
    schedule: str = ""
    certificate: Content | None = field(default=None, repr=False, compare=False)
    uncertified: str = ""

    def __bool__(self) -> bool:
        return self.verdict == PROVED

    def _extent(self) -> str:
        """Return the instructions that were checked, and the number of states."""
        if not self.checked:
            return "the kernel has no shared memory and no barrier"
        if not self.states:
            return f"checked {self.checked}, on one path: no step depends on a size"
        how = "" if self.engine == FACTS else " of all interleavings"
        return f"checked {self.checked}, in {self.states} states{how}"

    def __str__(self) -> str:
        if self.verdict == PROVED:
            sizes = ", ".join(self.assumed) or "trip counts"
            lines = [f"{self.kernel}: proved for all {sizes}: no race and no deadlock in shared memory"]
            lines += [f"  not for {e}" for e in self.excluded]
            if self.excluded:
                conditions = " and ".join(a for a in self.assumed if a.endswith(" >= 1"))
                lines += [
                    f"  if this can occur, write `if {conditions}:` around the body of the kernel, or do not launch it"
                ]
            lines += [f"  {self._extent()}, {self.seconds:.1f} s; not covered: {NOT_COVERED}"]
            return "\n".join(lines)
        lines = [f"{self.kernel}: {self.verdict}: {self.reason}"]
        lines += [f"  at {self.location}"] if self.location else []
        lines += [f"  the earlier access: {self.earlier}"] if self.earlier else []
        lines += [f"  for {', '.join(self.sizes)}"] if self.sizes else []
        lines += [f"  {line}" for line in self.cure.splitlines()]
        return "\n".join(lines)


def prove(
    module: ModuleOp,
    kernel: str,
    candidates: Iterable[tuple[str, Run]] = (),
    *,
    seconds: float = 60,
    engine: str = AUTO,
    certify: bool = False,
    command: Command | None = None,
) -> Proof:
    """Prove or refute that the synchronization of a kernel is right for all trip counts.

    Args:
        module: The lowered module, of compile(…, emit="base").
        kernel: Name of the kernel.
        candidates: Problems on which a counterexample is replayed, each with the text that names it.
        seconds: Limit of CPU time for the search.
        engine: "facts" searches one schedule, "exhaustive" all interleavings. "auto" tries the first and then, if its
            conditions do not hold, the second.
        certify: Write the certificate of a proof.
        command: Returns the command that replays a problem with a schedule.
    """
    if engine not in ENGINES:
        raise UsageError(f"prove: engine={engine!r}; it must be one of {', '.join(ENGINES)}")
    func = find_kernel(module, kernel)
    job = _Job(module, func, seconds, certify, command)
    try:
        if engine == EXHAUSTIVE:
            return job.explore(tuple(candidates), Learned())
        return job.search(candidates, engine == AUTO)
    except NotProved as e:
        return Proof(kernel, NOT_PROVED, e.reason, where(e.op), cure=e.cure, seconds=job.used())


@dataclass
class _Job:
    """The proof of one kernel."""

    module: ModuleOp
    func: Operation
    seconds: float
    certify: bool
    command: Command | None

    def __post_init__(self) -> None:
        self.started = time.process_time()
        self.kernel = symbol_name(self.func)

    def used(self) -> float:
        """Return the CPU seconds so far."""
        return time.process_time() - self.started

    def search(self, candidates: Iterable[tuple[str, Run]], falls_back: bool) -> Proof:
        """Return the verdict of the search, or of all interleavings if one schedule does not stand for them."""
        learned = Learned()
        program = Program(self.module, self.func)
        found, visited = search(program, learned, self.seconds)
        if found is None:
            return self._proved(program, learned, FACTS, visited.states)
        tried = tuple(candidates)
        steps = steps_of(program, learned, found.choices)
        proof = self._replayed(found, tried, learned, schedule_of(program, steps), visited.states)
        if proof.verdict == REFUTED or found.violation.kind != "order" or not falls_back:
            return proof
        try:
            other = self.explore(tried, learned)
        except NotProved:
            return proof
        return other if other.verdict != NOT_PROVED else proof

    def explore(self, candidates: Sequence[tuple[str, Run]], learned: Learned) -> Proof:
        """Return the verdict of all interleavings."""
        program = Program(self.module, self.func)
        found, visited = explore(program, learned, self.seconds)
        if found is None:
            return self._proved(program, learned, INTERLEAVINGS, visited.states)
        schedule = schedule_of(program, visited.steps)
        return replace(self._replayed(found, candidates, learned, schedule, visited.states), engine=INTERLEAVINGS)

    def _proved(self, program: Program, learned: Learned, engine: str, states: int) -> Proof:
        checked = describe_effects([e.kind for e in program.effects.values()])
        proof = Proof(
            self.kernel,
            PROVED,
            assumed=preconditions(self.func, learned),
            excluded=excluded_sizes(self.func, learned),
            checked=checked,
            states=states,
            seconds=self.used(),
            engine=engine,
        )
        if not self.certify:
            return proof
        try:
            return replace(proof, certificate=certify(self.module, self.func, learned, engine, self.seconds))
        except NotProved as e:
            return replace(proof, uncertified=e.reason)

    def _replayed(
        self, found: Found, candidates: Sequence[tuple[str, Run]], learned: Learned, replay: str, states: int
    ) -> Proof:
        """Return the verdict on a violation: refuted if the interpreter reports one, too."""
        v = found.violation
        proof = Proof(
            self.kernel,
            NOT_PROVED,
            v.text,
            where(v.op),
            where(v.earlier),
            sizes=_sizes(self.func, found, learned),
            assumed=preconditions(self.func, learned),
            states=states,
            seconds=self.used(),
        )
        tried = 0
        for name, run in candidates:
            for schedule in (replay, *SCHEDULES):
                tried += 1
                try:
                    run(schedule)
                except InterpError as e:
                    if e.kind not in (*REPORTS, MISFIT):
                        raise
                    if e.kind == MISFIT or not is_about_synchronization(e):
                        continue
                    given = "the schedule of the counterexample" if schedule == replay else f"the schedule {schedule}"
                    cure = f"the interpreter reports, for {name} with {given}:\n{str(e).splitlines()[0]}"
                    if self.command is not None:
                        cure += f"\nto replay it: {self.command(name, schedule)}"
                    return replace(proof, verdict=REFUTED, cure=cure, problem=name, schedule=schedule)
        why = f"in {tried} runs the interpreter does not reproduce it" if tried else "no arguments to replay it on"
        return replace(proof, reason=f"{v.text} (abstract counterexample: {why})")


def is_about_synchronization(e: InterpError) -> bool:
    """Return False for a report about global memory, which the prover does not cover."""
    text = str(e).partition("\n")[0]
    is_reused = "barrier" in text and "may still be in use" in text
    is_inside = "shared memory" in text or "tensor memory" in text
    return e.kind in ("deadlock", "sync", "wgmma", "tcgen05", "divergence") or is_inside or is_reused


def describe_effects(kinds: Iterable[str]) -> str:
    """Return the number of instructions of each group, such as `4 barriers, 12 accesses of shared memory`.

    >>> describe_effects(["read", "write", "barrier"])
    '1 barrier, 2 accesses of shared memory'
    """
    group = {kind: name for name, members in _GROUPS.items() for kind in members}
    counts = Counter(group[kind] for kind in kinds if kind in group)
    return ", ".join(f"{counts[n]} {n.split('|')[counts[n] > 1]}" for n in _GROUPS if counts[n])


def _sizes(func: Operation, found: Found, learned: Learned) -> tuple[str, ...]:
    """Return the trip counts of a counterexample, such as `k_tiles = 3`.

    Empty if they may contradict each other: the search relates `n` and `n / 7` in no way, and `n % 7` to `n` only if
    it has decided it (`decisions.remainder_of`).
    """
    bounds: dict[tuple[Terms, int | None], tuple[int | None, int | None]] = {}
    for c in found.choices:
        low, high = bounds.get(c.base) or interval_of({}, c.base, learned)
        bounds[c.base] = (c.bound + 1, high) if c.answer else (low, c.bound)
    if not _are_independent({dividend(terms) for terms, _ in bounds}):
        return ()
    out: list[str] = []
    for (terms, tile), (low, high) in bounds.items():
        name = describe(func, terms) + (f" in tile {tile}" if tile is not None and found.has_tiles else "")
        out.append(f"{name} = {low}" if low == high else f"{name} >= {low}" if high is None else f"{name} <= {high}")
    return tuple(out)


def _are_independent(sums: Iterable[Terms]) -> bool:
    """Return True if sums of sizes can have any values together: no size is in two, and no quotient in any."""
    seen: set[Hashable] = set()
    for terms in sums:
        found = {size for atom, _ in terms for size in _sizes_in(atom)}
        if None in found or found & seen:
            return False
        seen |= found
    return True


def _sizes_in(atom: Atom) -> Iterator[Atom | None]:
    """Yield the arguments and registers in a symbol, and None for an op whose values are not followed."""
    if atom[0] in ("argument", "register"):
        yield atom
    elif atom[0] == "trips":
        for part in atom[1:]:
            for inner, _ in part.terms if isinstance(part, Linear) else ():
                yield from _sizes_in(inner)
    else:
        yield None
