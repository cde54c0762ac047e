"""``while`` loops: run by Python while their tests are static, compiled to ``scf.while`` otherwise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cute_dialect.lang.control.branches import regions, slots_of, truth_of
from cute_dialect.lang.control.mutable_state import U, holds_containers, put, same, shaped_like
from cute_dialect.lang.control.runtime_loops import Retrace, Rolled
from cute_dialect.lang.tracing.errors import LoopError, StaticError
from cute_dialect.lang.values.dtypes import Boolean
from cute_dialect.lang.values.dynamic import Form
from cute_dialect.lang.values.forms import NumberForm, form_of

if TYPE_CHECKING:
    from xdsl.ir import Block, SSAValue

    from cute_dialect.lang.rewrite.analysis import Site
    from cute_dialect.lang.tracing.tracer import Tracer

MOST_STATIC_TESTS = 1 << 16


class While(Rolled):
    """A ``while`` loop. At the first run-time test it restarts as an ``scf.while`` from the first iteration."""

    rolled = enters = False

    def __init__(self, tracer: Tracer | None, site: Site, values: Mapping[str, Any]):
        self.turns = 0
        self.done = False
        self.yielded = False
        self.caught = ()
        if tracer is not None:
            self.caught = (Retrace,)
            self.begin(tracer, site, values)

    def __iter__(self) -> While:
        return self

    def __next__(self) -> int:
        from xdsl.ir import Block

        if not self.rolled:
            if self.done:
                raise StopIteration
            self.turns += 1
            if self.turns > MOST_STATIC_TESTS and self.caught:
                raise StaticError(
                    "F141", f"this loop ran for {MOST_STATIC_TESTS} iterations at compile time", notes=self.note()
                )
            return 1
        if self.ended:
            raise StopIteration
        self.before = Block()
        self.open_round(self.before)
        self.tracer.block = self.before
        return 3

    def test(self, condition: Any, values: Mapping[str, Any]) -> bool:
        """Return True if the body runs or, in a run-time loop, is traced."""
        truth = truth_of(condition)
        if not self.rolled:
            if truth is True or truth is False:
                self.done = not truth
                return truth
            raise Retrace(self)
        from xdsl.ir import Block

        if truth is True or truth is False:
            truth = Boolean.exactly(truth)
        self.condition = truth.ssa
        own = [values.get(n, U) for n in self.site.names]
        self.tested = own + list(self.entry[len(own) :])
        self.tested_heap = self.snap.state()
        self.take_replaced()
        self.after = Block()
        self.blocks.append(self.after)
        self.tracer.block = self.after
        return True

    def again(self, error: BaseException) -> bool:
        """Restart as a run-time loop if that is the exception raised."""
        if not isinstance(error, Retrace) or error.loop is not self:
            return False
        if self.yielded:
            raise LoopError(
                "F160", "the condition of this loop becomes a run-time value after the loop has yielded",
                notes=self.note(),
            )  # fmt: skip
        self.dropped()
        self.rolled = self.enters = True
        self.caught = ()
        self.guess()
        return True

    def guess(self) -> None:
        super().guess()
        for i, name in enumerate(self.names):
            if name in self.site.flags and name not in self.site.memory.get("settled", ()):
                self.locals[i] = NumberForm(Boolean)

    def joined(self, first: int, heap: Mapping[int, Any]) -> None:
        self.tested += self.entry[first:]
        self.tested_heap = {**heap, **self.tested_heap}

    def carry_flag(self, i: int, after: Any) -> bool:
        if self.owners[i] is self.site:
            self.locals[i] = NumberForm(Boolean)
        return self.owners[i] is self.site

    def open_round(self, block: Block) -> None:
        super().open_round(block)
        at = 0
        for i, form in self.locals.items():  # The test reads the flags itself.
            if self.owners[i] is self.site and self.names[i] in self.site.flags:
                self.entry[i] = form.make(self.args[at : at + 1])
            at += len(form.types)

    def leave(self, values: Mapping[str, Any]) -> None:
        """End an iteration: compare the values, and emit the loop if all changes are carried."""
        tracer = self.tracer
        del regions(tracer)[self.depth + 1 :]
        out = self.ending(values)
        heap = self.snap.state()
        if self.compare(out, heap) or self.settle() or self.loses_shared(self.tested, self.tested_heap):
            return
        tracer.op("scf.yield", self.outgoing(out, heap), ())
        tracer.block = self.before
        exits = self.exits()
        forwarded = self.forwarded(exits)
        tracer.op("scf.condition", [self.condition, *forwarded], ())
        self.make(forwarded, exits)

    def take_replaced(self) -> None:
        """Record the contents of the objects that an iteration replaces, because the body may change them."""
        values = {i: (form, self.tested[i]) for i, form in self.locals.items()}
        values |= {(key, slot): (form, self.tested_heap[key][slot]) for (key, slot), form in self.heap.items()}
        self.tested_parts: dict[Any, tuple[Form, list[SSAValue]]] = {}
        for at, (form, value) in values.items():
            if holds_containers(form) and value is not U:
                exact = shaped_like(form, value)
                self.tested_parts[at] = exact, exact.take(value)

    def exits(self) -> list[tuple[Any, Form, list[SSAValue]]]:
        """Return the carried values at the exit, after the failed test."""
        found: list[tuple[Any, Form, list[SSAValue]]] = []
        for i, (site, name) in enumerate(zip(self.owners, self.names)):
            value = self.tested[i]
            if i in self.lost or value is U or (name not in site.live and name not in site.flags):
                continue
            if i not in self.locals and same(value, self.values[i]):
                continue
            form = form_of(value)
            found.append((i, *self.tested_parts.get(i, (form, form.take(value)))))
        for key, (_, kept) in self.snap.objects.items():
            now = self.tested_heap[key]
            if isinstance(now, set):
                continue
            for slot in slots_of(now):
                if (key, slot) in self.heap or now[slot] is not kept[slot]:
                    form = form_of(now[slot])
                    taken = self.tested_parts.get((key, slot), (form, form.take(now[slot])))
                    found.append(((key, slot), *taken))
        return found

    def forwarded(self, exits: Sequence[tuple[Any, Form, list[SSAValue]]]) -> list[SSAValue]:
        """Return the first region's values used in the second region or after the loop; rewire the second region."""
        made = [*self.before.args, *(r for op in self.before.ops for r in op.results)]
        inside = set(made)
        needed: dict[SSAValue, None] = {}
        for _, _, leaves in exits:
            for leaf in leaves:
                if leaf in inside:
                    needed[leaf] = None
        for value in made:
            uses = [use for use in value.uses if _within(use.operation, self.after)]
            if uses:
                needed[value] = None
            if value in needed:
                argument = self.after.insert_arg(value.type, len(self.after.args))
                argument.name_hint = value.name_hint
                for use in uses:
                    use.operation.operands[use.index] = argument
        return [value for value in made if value in needed]

    def make(self, forwarded: list[SSAValue], exits: Sequence[tuple[Any, Form, list[SSAValue]]]) -> None:
        """Emit the ``scf.while``."""
        from xdsl.ir import Region

        tracer = self.tracer
        tracer.block = self.saved
        del regions(tracer)[self.depth :]
        op = tracer.op(
            "scf.while", self.initial(), [v.type for v in forwarded], regions=[Region(self.before), Region(self.after)]
        )
        results = dict(zip(forwarded, op.results))
        self.snap.restore()
        final: list[Any] = list(self.values)
        exited: set[int] = set()
        for place, form, leaves in exits:
            value = form.make([results.get(leaf, leaf) for leaf in leaves])
            if isinstance(place, int):
                final[place] = value
                exited.add(place)
            else:
                put(self.snap.objects[place[0]][0], place[1], value)
        for i in range(len(final)):
            if i in exited:
                continue
            if i in self.locals or i in self.dead or self.names[i] in self.owners[i].targets:
                final[i] = U
            self.left_without(final, i)
        self.conclude(final)


def _within(op: Any, block: Block) -> bool:
    """Return True if an op is nested in a block."""
    at = op.parent_block()
    while at is not None:
        if at is block:
            return True
        owner = at.parent_op()
        at = None if owner is None else owner.parent_block()
    return False
