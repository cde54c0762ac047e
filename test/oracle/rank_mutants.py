"""Mutation test of kernels of several GPUs: one signal, wait, barrier, scope, order or bound changed.

    python test/oracle/rank_mutants.py             # all mutants, as in make slow
    python test/oracle/rank_mutants.py --missed    # only those that no run reveals

The kernel of ``examples/all_reduce_one_shot.py`` runs on two ranks, three calls in a row, under every schedule. A
mutant is caught if one of them ends with a report. A wrong result reveals a wrong bound, too. Any other mutant must be
equivalent, for a reason in EQUAL, or it is missed, and the exit status is 1. Comparisons that only feed assertions are
left out: these are checks of the interpreter itself.
"""

from __future__ import annotations

import argparse
import linecache
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from mutations import Mutation, find, mutated, mutations
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
KERNEL = "all_reduce_kernel"


EQUAL = {
    ("slt becomes sle", "for i in range(first + thread, last, THREADS):"): "no iteration, if both bounds are equal",
}
"""A change and its source line -> the reason why the kernel stays the same."""


class Verdict(NamedTuple):
    """The classification of a mutant: caught, result, equal or missed, and the report, schedule or reason."""

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


def original() -> ModuleOp:
    """Return the lowered module of the kernel."""
    seen: list[ModuleOp] = []
    launch = World.launch

    def keep(self: World, rank: int, module: ModuleOp, *args: object) -> None:
        seen.append(module)
        launch(self, rank, module, *args)  # type: ignore[arg-type]

    World.launch = keep  # type: ignore[method-assign, assignment]
    try:
        assert example.run(2, 200, 1)
    finally:
        World.launch = launch
    return seen[0]


def verdict(module: ModuleOp, mutation: Mutation) -> Verdict:
    """Run a mutant under every schedule, and classify it."""
    wrong = ""
    with replaced(mutated(module, KERNEL, mutation)):
        for schedule in SCHEDULES:
            try:
                if not example.run(2, 200, 3, schedule, seed=1):
                    wrong = wrong or schedule
            except InterpError as e:
                return Verdict("caught", f"{e.kind}, {schedule}")
    if wrong and mutation.kind == "bound":
        return Verdict("result", wrong)
    op = next(o for i, o in enumerate(find(module, KERNEL).walk()) if i == mutation.place)
    reason = EQUAL.get((mutation.what, source(op)), "")
    if reason and not wrong:
        return Verdict("equal", reason)
    return Verdict("missed", f"wrong result, {wrong}" if wrong else "right result")


def feeds_assertions(op: Operation) -> bool:
    """Return True if the results of an op are used, and only by assertions."""
    users = [use.operation for result in op.results for use in result.uses]
    logic = ("arith.andi", "arith.ori", "arith.xori", "arith.select")
    return bool(users) and all(u.name == "cf.assert" or (u.name in logic and feeds_assertions(u)) for u in users)


def every_mutation(module: ModuleOp) -> list[Mutation]:
    """Return the mutations of the kernel, in textual order."""
    kernel = find(module, KERNEL)
    ops = list(kernel.walk())
    found = [*mutations(kernel), *signal_mutations(kernel)]
    return sorted((m for m in found if not feeds_assertions(ops[m.place])), key=lambda m: m.place)


def source(op: Operation) -> str:
    """Return the source line of an op."""
    position = location_position(op.location)
    return linecache.getline(position.file, position.line).strip() if position is not None else ""


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="mutants of kernels of several GPUs")
    parser.add_argument("--missed", action="store_true", help="show only the missed mutants")
    args = parser.parse_args(argv)
    module = original()
    every = every_mutation(module)
    ops = list(find(module, KERNEL).walk())
    count: Counter[str] = Counter()
    for mutation in every:
        found = verdict(module, mutation)
        count[found.how] += 1
        if found.how == "missed" or not args.missed:
            print(f"{found.how:7} {mutation.kind:7} {mutation.what:45} {found.by:24} {source(ops[mutation.place])}")
    print(f"{len(every)} mutants: " + ", ".join(f"{n} {how}" for how, n in sorted(count.items())))
    return 1 if count["missed"] else 0


if __name__ == "__main__":
    sys.exit(main())
