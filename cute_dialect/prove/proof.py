"""Verdicts on the protocol of a kernel, and their replay on the interpreter.

    proof = prove(module, "gemm", candidates=[("64x128x192", run), ...])
    print(proof)                      # proved for all …, refuted …, or not proved …

A violation that the search finds is abstract: it may rest on a value that the prover does not know. The candidates run
the kernel on the interpreter, on growing problems and with all schedules. Only a violation that one of them reproduces
refutes the kernel.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from cute_dialect.errors import UsageError
from cute_dialect.interp.errors import InterpError, attr_of
from cute_dialect.interp.exec.program import symbol_name
from cute_dialect.prove.arithmetic import Learned
from cute_dialect.prove.decisions import lowest
from cute_dialect.prove.program import Program
from cute_dialect.prove.search import Found, search
from cute_dialect.prove.values import ANY, Atom, Linear, Terms
from cute_dialect.prove.verdict import NotProved, where

PROVED, REFUTED, NOT_PROVED = "proved", "refuted", "not proved"
SCHEDULES = ("round-robin", "adversarial", "reverse", "random")
REPORTS = ("race", "deadlock", "sync", "uninit", "wgmma", "oob", "misaligned", "divergence")
"""Kinds of reports of the interpreter that reproduce a violation."""
AXIOMS = (
    "a wgmma completes only after the four warps of its warpgroup have issued it",
    "an mbarrier operation without a scope orders the threads of the cluster",
    "complete_tx of a copy is a release to threads that wait for the mbarrier",
    "fence.proxy.async makes accesses of threads visible to asynchronous copies (PTX ISA, Proxies)",
    "copies in flight land eventually, and a warp that can run does",
    "tensor maps have the boxes that cute.args declares",
    "integer arithmetic on sizes does not overflow, and sizes are not negative",
)
NOT_COVERED = "global memory, values, other clusters, and warp instructions that some lanes do not reach"
_GROUPS = {
    "barrier|barriers": ("barrier", "warp_sync"),
    "mbarrier operation|mbarrier operations": ("mbarrier_init", "mbarrier_arrive", "mbarrier_wait"),
    "asynchronous copy|asynchronous copies": ("tensor_load", "tensor_store", "bulk_load", "bulk_store", "cp_async"),
    "wait for copies|waits for copies": ("bulk_wait", "cp_wait"),
    "wgmma|wgmma": ("wgmma",),
    "wait for wgmma|waits for wgmma": ("wgmma_wait",),
    "access of shared memory|accesses of shared memory": ("read", "write"),
}
"""Singular and plural of the instructions that a proof counts, and their kinds of effects."""
Run = Callable[[str], object]
"""Runs the kernel on the interpreter with a schedule, with the checks race and uninit."""


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

    def __bool__(self) -> bool:
        return self.verdict == PROVED

    def _extent(self) -> str:
        """Return the instructions that were checked, and the number of states."""
        if not self.checked:
            return "the kernel has no shared memory and no barrier"
        if not self.states:
            return f"checked {self.checked}, on one path: no step depends on a size"
        return f"checked {self.checked}, in {self.states} states"

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


def prove(module: ModuleOp, kernel: str, candidates: Iterable[tuple[str, Run]] = (), *, seconds: float = 60) -> Proof:
    """Prove or refute that the synchronization of a kernel is right for all trip counts.

    Args:
        module: The lowered module, of compile(…, emit="base").
        kernel: Name of the kernel.
        candidates: Problems on which a counterexample is replayed, each with the text that names it.
        seconds: Limit of CPU time for the search.
    """
    started = time.process_time()
    bodies = (o for o in module.walk() if o.name.endswith("func") and o.regions and o.regions[0].blocks)
    functions = {symbol_name(o): o for o in bodies}
    func = functions.get(kernel)
    if func is None:
        raise UsageError(f"prove: the module has no kernel '{kernel}'; it has {', '.join(functions) or 'none'}")
    learned = Learned()
    try:
        program = Program(module, func)
        found, visited = search(program, learned, seconds)
    except NotProved as e:
        used = time.process_time() - started
        return Proof(kernel, NOT_PROVED, e.reason, where(e.op), cure=e.cure, seconds=used)
    used = time.process_time() - started
    if found is None:
        checked = describe_effects([e.kind for e in program.effects.values()])
        return Proof(
            kernel,
            PROVED,
            assumed=_assumed(func, learned),
            excluded=_excluded(func, learned),
            checked=checked,
            states=visited.states,
            seconds=used,
        )
    return _replayed(func, found, candidates, learned, visited.states, used)


def _assumed(func: Operation, learned: Learned) -> tuple[str, ...]:
    least = [f"{describe(func, terms)} >= {n}" for terms, n in learned.minimum.items()]
    ranges = [
        f"{describe(func, tuple((a, c * factor) for a, c in terms))} < 2^{width - 1}"
        for (terms, width), factor in learned.ranges.items()
        if factor >> width - 20
    ]
    return (*least, *ranges)


def _excluded(func: Operation, learned: Learned) -> tuple[str, ...]:
    found = [(describe(func, terms), v.text, where(v.op)) for terms, v in learned.excluded.items()]
    return tuple(f"{name} = 0: {text}{f' (at {at})' if at else ''}" for name, text, at in found)


def _replayed(
    func: Operation,
    found: Found,
    candidates: Iterable[tuple[str, Run]],
    learned: Learned,
    states: int,
    used: float,
) -> Proof:
    """Return the verdict on a violation: refuted if the interpreter reports one, too."""
    v, kernel = found.violation, symbol_name(func)
    assumed = _assumed(func, learned)
    sizes = _sizes(func, found, learned)
    tried = 0
    for name, run in candidates:
        for schedule in SCHEDULES:
            tried += 1
            try:
                run(schedule)
            except InterpError as e:
                if e.kind not in REPORTS:
                    raise
                if not _is_about_synchronization(e):
                    continue
                cure = f"the interpreter reports, for {name} with the schedule {schedule}:\n{str(e).splitlines()[0]}"
                return Proof(
                    kernel, REFUTED, v.text, where(v.op), where(v.earlier), cure, sizes, assumed, "", states, used
                )
    why = f"in {tried} runs the interpreter does not reproduce it" if tried else "no arguments to replay it on"
    reason = f"{v.text} (abstract counterexample: {why})"
    return Proof(kernel, NOT_PROVED, reason, where(v.op), where(v.earlier), "", sizes, assumed, "", states, used)


def _is_about_synchronization(e: InterpError) -> bool:
    """Return False for a report about global memory, which the prover does not cover."""
    text = str(e).partition("\n")[0]
    is_reused = "barrier" in text and "may still be in use" in text
    return e.kind in ("deadlock", "sync", "wgmma", "divergence") or "shared memory" in text or is_reused


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

    Empty if they may contradict each other: the search does not relate `n` and `n % 7`.
    """
    bounds: dict[tuple[Terms, int | None], tuple[int | None, int | None]] = {}
    for c in found.choices:
        low, high = bounds.get(c.base, (lowest(c.base[0], learned.minimum), None))
        bounds[c.base] = (c.bound + 1, high) if c.answer else (low, c.bound)
    if not _are_independent({terms for terms, _ in bounds}):
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


def describe(func: Operation, terms: Terms) -> str:
    """Return a sum of symbols in the names of the kernel."""
    parts = [name if factor == 1 else f"{factor}*{name}" for a, factor in terms for name in [_atom(func, a)]]
    return " + ".join(parts).replace("+ -1*", "- ")


def _atom(func: Operation, atom: tuple[object, ...]) -> str:
    kind = atom[0]
    if kind == "argument":
        arg = func.regions[0].blocks[0].args[int(str(atom[1]))]
        path = cast("tuple[int, ...]", atom[2])
        kinds = getattr(attr_of(func, "cute.args"), "data", ())
        kind = str(getattr(kinds[arg.index], "data", "")) if arg.index < len(kinds) else ""
        return f"{arg.name_hint or f'argument {atom[1]}'}{_member(kind, path)}"
    if kind == "register":
        return str(atom[1])
    if kind == "trips":
        span, step = atom[1], atom[2]
        text = (
            describe(func, span.terms) + (f" + {span.const}" if span.const else "")
            if isinstance(span, Linear)
            else str(span)
        )
        by = describe(func, step.terms) if isinstance(step, Linear) else str(step)
        return f"iterations of ({text}) by {by}" if by != "1" else f"({text})"
    if kind == ANY:
        kind, atom = str(atom[1]).partition(" ")[0], atom[1:]
    sides = [
        describe(func, x.terms) + (f" + {x.const}" if x.const else "") if isinstance(x, Linear) else str(x)
        for x in atom[1:]
    ]
    return f"({f' {_WORDS.get(str(kind), kind)} '.join(sides)})"


_WORDS = {
    "muli": "*", "addi": "+", "subi": "-", "ceildivsi": "ceildiv", "ceildivui": "ceildiv", "divui": "/", "divsi": "/",
    "remui": "%", "remsi": "%", "shrui": ">>", "shrsi": ">>", "shli": "<<", "andi": "&", "ori": "|", "xori": "^",
}  # fmt: skip


def _member(kind: str, path: Sequence[int]) -> str:
    """Return the name of a field of an argument of a type: the extents and strides of a tensor are numbered by mode.

    >>> _member('!cute.memref<f32, gmem, "(32,?):(?,1)">', (1, 0))
    '.shape[1]'
    """
    layout = re.search(r'"([^"]*):([^":]*)">$', kind)
    if layout is None or len(path) not in (2, 3) or path[0] != 1:
        return "".join(f"[{i}]" for i in path)
    modes = layout[1 + path[1]].strip("()").split(",")
    dynamic = [i for i, mode in enumerate(modes) if mode.startswith("?")]
    nth = path[2] if len(path) > 2 else 0
    if nth >= len(dynamic) or "(" in "".join(modes):
        return "".join(f"[{i}]" for i in path)
    return f".{'stride' if path[1] else 'shape'}" + (f"[{dynamic[nth]}]" if len(modes) > 1 else "")
