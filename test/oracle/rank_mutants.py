"""Mutation test of kernels of several GPUs: one signal, wait, barrier, scope, order or bound changed.

    python test/oracle/rank_mutants.py             # all mutants, as in make slow
    python test/oracle/rank_mutants.py one_shot    # those of one kernel
    python test/oracle/rank_mutants.py --missed    # only those that no run reveals
    python test/oracle/rank_mutants.py gather --shard 2/16     # the second sixteenth of them

Each kernel runs on two ranks, several calls in a row, under every schedule: the one of
``examples/all_reduce_one_shot.py``, and those of ``op.distributed``, whose waits also fail in some runs. A mutant is
caught if one of the runs ends with a report. A wrong result reveals a wrong bound, and a mutant of the handling of
failed waits. Any other mutant must be equivalent, for a reason in EQUAL, or it is missed, and the exit status is 1.
Comparisons that only feed assertions are left out: these are checks of the interpreter itself.
"""

from __future__ import annotations

import argparse
import linecache
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import rank_gemm_runs
from all_reduce_runs import Case, gives_up, reports_other_call
from all_reduce_runs import run as run_case
from mutations import Mutation, find, mutated, mutations
from rank_gemm_runs import Case as GemmCase
from rank_gemm_runs import run as run_gemm
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr
from xdsl.ir import Operation
from xdsl.rewriter import InsertPoint, Rewriter

from cute_dialect.interp import InterpError
from cute_dialect.interp.errors import location_position
from cute_dialect.interp.exec.ranks import World

sys.path.append(str(Path(__file__).parents[2] / "examples"))
import all_reduce_one_shot as example

SCHEDULES = ("round-robin", "reverse", "random", "adversarial")
RELEASE, ACQUIRE = 5, 4


class Run(NamedTuple):
    """A run of a kernel, which returns True if its results are right."""

    name: str
    right: Callable[[], bool]
    fails: bool = False  # a wait fails in it


class Subject(NamedTuple):
    """A kernel and its runs."""

    name: str
    kernel: str
    runs: tuple[Run, ...]
    files: tuple[str, ...] = ()  # files whose ops are changed; default: all


def _subject(name: str, case: Case) -> Subject:
    """Return a kernel of ``op.distributed`` with its runs."""
    runs = [Run(s, lambda s=s: run_case(case, s)) for s in SCHEDULES]
    if not case.norm:
        other = case._replace(size=case.size - 1)
        runs.append(Run("another end", lambda: run_case(other, SCHEDULES[0])))
    for rank, first in ((0, 0), (1, 0), (0, 1)):
        at = f"rank {rank} gives up in step {first + 1}"
        runs.append(Run(at, lambda r=rank, f=first: gives_up(case, r, f), fails=True))
    runs.append(Run("other call", lambda: reports_other_call(case), fails=True))
    return Subject(name, "two_shot" if case.two_shot else "one_shot", tuple(runs))


def _gemm_subject(kind: str) -> Subject:
    """Return a GEMM of several ranks. Its pipeline and epilogue are tested by ``mutants.py``."""
    case = GemmCase(kind, rows=13, columns=136, k=20, calls=3)
    if kind == "gather":  # more vectors in a unit than the helpers copy together
        case = case._replace(rows=20, k=132, slab=16, returns_a=True, blocks=3)
    runs = [Run(s, lambda s=s: run_gemm(case, s)) for s in SCHEDULES]
    for rows in (17, 64):
        other = case._replace(rows=rows, calls=1)
        runs.append(Run(f"{rows} rows", lambda c=other: run_gemm(c, SCHEDULES[0])))
    for rank in range(2):
        runs.append(Run(f"rank {rank} gives up", lambda r=rank: rank_gemm_runs.gives_up(case, r), fails=True))
    runs.append(Run("other call", lambda: rank_gemm_runs.reports_other_call(case), fails=True))
    runs.append(Run("after a failure", lambda: rank_gemm_runs.sends_nothing_after_a_failure(case), fails=True))
    own = "gather_gemm" if kind == "gather" else "scatter_gemm"
    return Subject(kind, own, tuple(runs), ("tile_signals.py", f"{own}.py"))


EXAMPLE = tuple([Run(s, lambda s=s: example.run(2, 200, 3, s, seed=1)) for s in SCHEDULES])
SUM = Case("f32", size=2 * 136 + 66, length=136, residual=True, calls=3)
NORM = Case("f32", size=3 * 136, length=136, norm=True, calls=3)
SUBJECTS = (
    Subject("example", "all_reduce_kernel", EXAMPLE),
    _subject("one_shot", SUM),
    _subject("one_shot_norm", NORM),
    _subject("two_shot", SUM._replace(size=4 * 136 + 66, two_shot=True)),
    _subject("two_shot_norm", NORM._replace(size=5 * 136, two_shot=True)),
    _gemm_subject("gather"),
    _gemm_subject("scatter"),
    _gemm_subject("one_shot")._replace(name="gemm_one_shot"),
    _gemm_subject("two_shot")._replace(name="gemm_two_shot"),
)


_STEPS_BARRIER = "cute.arch.sync_threads()  # steps is loaded"
_WAIT = "seen = self.x.ready.wait(2 * slot + self.half, writer, least, then=then, limit=limit)"
_RECORD = 'cute.arch.red(self.x.steps.iterator + _FAILURE, cute.Int64(1), op="max")'
_FLAG = "cute.arch.barrier(HELPER_BARRIER, HELPERS)  # the flag is clear"
EQUAL = {
    ("slt becomes sle", "for i in range(first + thread, last, THREADS):"): "no iteration, if both bounds are equal",
    ("nvvm.barrier0 later", _STEPS_BARRIER): "it is still before the store to steps",
    ("nvvm.barrier0 earlier", _STEPS_BARRIER): "it is still after the load of steps",
    (
        "a loop ends one step later",
        "for row in range(cute.arch.block_idx().x, rows, grid):",
    ): "no elements, on all ranks",
    (
        "a loop ends one step later",
        "for turn in range(2 * cute.ceil_div(groups - cute.arch.block_idx().x, grid)):",
    ): "a step without rows, on all ranks",
    ("slt becomes sle", "if column < length:"): "a vector without elements",
    ("slt becomes sle", "if row < rows:"): "a row without elements",
    # This is staging memory. In other arrays the element does not exist, and the mutant is caught.
    ("sgt becomes sge", "if i < count:"): "a 0 of the vector that the sender has stored",
    ("slt becomes sle", "seen = x.ready.wait(slot, thread, least, limit=x.limit)"): "a limit that includes its end",
    ("llvm.atomicrmw of the block's scope", 'cute.arch.red(failed.iterator, 1, op="max")'): "it is in shared memory",
    ("llvm.store monotonic", "x.ready.set(there, 2 * cute.arch.block_idx().x + half, ABORT)"): "no data precedes it",
    (
        "ult becomes ule",
        "if is_usable & (place.matrix != self.call.x.staging.rank) & (row < self.pieces.shard):",
    ): "tiles beyond a shard exist in clusters only",
    ("nvvm.fence.proxy later", _WAIT): "it is still before the loads",
    ("slt becomes sle", _WAIT): "a limit that includes its end",
    ("llvm.atomicrmw of the block's scope", _RECORD): "all write the same number, which is read after they have ended",
    ("llvm.atomicrmw of the block's scope", 'cute.arch.red(steps + _FAILURE, cute.Int64(1), op="max")'): (
        "all write the same number, which is read after they have ended"
    ),
    (
        "llvm.atomicrmw of the block's scope",
        'cute.arch.red(self.failed.iterator, 1, op="max")',
    ): "it is in shared memory",
    ("a loop ends one step later", "for tile in range(tiles.first, count, tiles.step):"): "it adds a tile again",
    ("a loop ends one step later", "for start in range(cute.arch.thread_idx().x - 32, count, HELPERS * _TOGETHER):"): (
        "its vectors do not exist"
    ),
    **{
        (what, _FLAG): "only the thread that sets the flag clears it, or another one of its warp"
        for what in (
            "nvvm.barrier",
            "nvvm.barrier later",
            "nvvm.barrier earlier",
            "a barrier of the warp for a named one",
        )
    },
}
"""A change and its source line -> the reason why the kernel stays the same."""


UNFINISHED = ("gather", "scatter", "gemm_one_shot", "gemm_two_shot")
"""Kernels of which not all missed mutants are classified yet."""


class Verdict(NamedTuple):
    """The classification of a mutant: caught, result, equal or missed, and the report, run or reason."""

    how: str
    by: str


def _ordering(op: Operation) -> int:
    ordering = op.properties.get("ordering")
    return int(ordering.value.data) if isinstance(ordering, IntegerAttr) else 0


def _narrow(op: Operation) -> None:
    op.properties["syncscope"] = StringAttr("device")


def _one_more(op: Operation, by: int) -> None:
    """Add a number to the value that a store writes."""
    constant = arith.ConstantOp(IntegerAttr(by, op.operands[0].type))
    total = arith.AddiOp(op.operands[0], constant.result)
    Rewriter.insert_op([constant, total], InsertPoint.before(op))
    op.operands[0] = total.result


def signal_mutations(kernel: Operation) -> Iterator[Mutation]:
    """Yield the mutations of signals and waits that `mutations` does not have."""
    for place, op in enumerate(kernel.walk()):
        if op.name == "llvm.store" and _ordering(op) == RELEASE:
            yield Mutation("drop", "a signal", place, Rewriter.erase_op)
            yield Mutation("weaken", "a signal of the GPU's scope", place, _narrow)
            yield Mutation("weaken", "a signal of the next call", place, lambda o: _one_more(o, 1))
            yield Mutation("weaken", "a signal of the last call", place, lambda o: _one_more(o, -1))
        if op.name == "llvm.load" and _ordering(op) == ACQUIRE:
            yield Mutation("weaken", "a wait of the GPU's scope", place, _narrow)


@contextmanager
def replaced(module: ModuleOp) -> Iterator[None]:
    """Launch `module` instead of the compiled one, within the ``with`` block."""
    launch = World.launch

    def other(self: World, rank: int, _: Operation, *args: object) -> None:
        launch(self, rank, module, *args)  # type: ignore[arg-type]

    World.launch = other  # type: ignore[method-assign]
    try:
        yield
    finally:
        World.launch = launch


def original(subject: Subject) -> ModuleOp:
    """Return the lowered module of a kernel."""
    seen: list[ModuleOp] = []
    launch = World.launch

    def keep(self: World, rank: int, module: ModuleOp, *args: object) -> None:
        seen.append(module)
        launch(self, rank, module, *args)  # type: ignore[arg-type]

    World.launch = keep  # type: ignore[method-assign, assignment]
    try:
        assert subject.runs[0].right()
    finally:
        World.launch = launch
    return seen[0]


def verdict(subject: Subject, module: ModuleOp, mutation: Mutation) -> Verdict:
    """Make the runs of a mutant, and classify it."""
    wrong = ""
    with replaced(mutated(module, subject.kernel, mutation)):
        for run in subject.runs:
            try:
                if not run.right():
                    if mutation.kind == "bound" or run.fails:
                        return Verdict("result", run.name)
                    wrong = wrong or run.name
            except InterpError as e:
                return Verdict("caught", f"{e.kind}, {run.name}")
    op = next(o for i, o in enumerate(find(module, subject.kernel).walk()) if i == mutation.place)
    reason = EQUAL.get((mutation.what, source(op)), "")
    if reason and not wrong:
        return Verdict("equal", reason)
    return Verdict("missed", f"wrong result, {wrong}" if wrong else "right result")


def feeds_assertions(op: Operation) -> bool:
    """Return True if the results of an op are used, and only by assertions."""
    users = [use.operation for result in op.results for use in result.uses]
    logic = ("arith.andi", "arith.ori", "arith.xori", "arith.select")
    return bool(users) and all(u.name == "cf.assert" or (u.name in logic and feeds_assertions(u)) for u in users)


def every_mutation(kernel: Operation) -> list[Mutation]:
    """Return the mutations of a kernel, in textual order."""
    ops = list(kernel.walk())
    found = [*mutations(kernel), *signal_mutations(kernel)]
    return sorted((m for m in found if not feeds_assertions(ops[m.place])), key=lambda m: m.place)


def source(op: Operation) -> str:
    """Return the source line of an op."""
    position = location_position(op.location)
    return linecache.getline(position.file, position.line).strip() if position is not None else ""


def file(op: Operation) -> str:
    """Return the name of the source file of an op."""
    position = location_position(op.location)
    return Path(position.file).name if position is not None else ""


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="mutants of kernels of several GPUs")
    parser.add_argument("subject", nargs="?", choices=[s.name for s in SUBJECTS], help="default: all")
    parser.add_argument("--missed", action="store_true", help="show only the missed mutants")
    parser.add_argument("--shard", default="1/1", help="number and count of shards, such as 2/16")
    args = parser.parse_args(argv)
    shard, shards = map(int, args.shard.split("/"))
    missed = 0
    for subject in SUBJECTS:
        if args.subject in (None, subject.name):
            missed += _report(subject, args.missed, slice(shard - 1, None, shards))
    return 1 if missed else 0


def mutants(subject: Subject, module: ModuleOp) -> list[Mutation]:
    """Return the mutants of a kernel."""
    kernel = find(module, subject.kernel)
    ops = list(kernel.walk())
    return [m for m in every_mutation(kernel) if not subject.files or file(ops[m.place]) in subject.files]


def _report(subject: Subject, only_missed: bool, shard: slice) -> int:
    """Print the verdict of each mutant of a shard of those of a kernel, and return the number of missed ones."""
    module = original(subject)
    ops, every = list(find(module, subject.kernel).walk()), mutants(subject, module)[shard]
    count: Counter[str] = Counter()
    for mutation in every:
        found = verdict(subject, module, mutation)
        count[found.how] += 1
        if found.how == "missed" or not only_missed:
            line = source(ops[mutation.place])
            print(f"{found.how:7} {mutation.kind:7} {mutation.what:45} {found.by:24} {line}", flush=True)
    verdicts = ", ".join(f"{n} {how}" for how, n in sorted(count.items()))
    print(f"{subject.name}: {len(every)} mutants: {verdicts}", flush=True)
    return count["missed"]


if __name__ == "__main__":
    sys.exit(main())
