"""Loops: Python's own while everything is static, ``scf.for`` or ``scf.while`` otherwise.

A rolled loop is traced once, if the guess is right which places change from turn to turn; what else turns out to
change is added, what was traced is dropped, and the body is traced again.  A loop over a static range whose body needs
the index as a Python number becomes Python's loop in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cute_dialect.front.branches import Lost, blank, check_shape, erase, place_name, regions, remember_lost, slots_of
from cute_dialect.front.errors import (
    LimitError,
    LoopError,
    MergeError,
    StaticError,
    SyntaxErrorInKernel,
)
from cute_dialect.front.jumps import VALUE
from cute_dialect.front.loop_ranges import LoopRange, UnrolledRange
from cute_dialect.front.places import Snapshot, U, is_mutable, put, same
from cute_dialect.front.truth import both, inverted, truth_of
from cute_dialect.front.values import Form, form_of

if TYPE_CHECKING:
    from xdsl.ir import Block, SSAValue

    from cute_dialect.front.analysis import Site
    from cute_dialect.front.trace import Tracer

__all__ = ["MOST_ROUNDS", "MOST_TURNS", "For", "Retrace", "StaticFor", "While", "loop_over"]

MOST_ROUNDS = 8
"""Times a body is traced before a loop counts as one that does not settle."""
MOST_TURNS = 4096
"""Turns of a loop that is walked while compiling."""
MOST_STATIC_TESTS = 1 << 16


class Retrace(BaseException):
    """Tells a loop to drop what was traced and to begin anew."""

    def __init__(self, loop: Rolled):
        super().__init__()
        self.loop = loop


class StaticFor:
    """A ``for`` over something that Python walks while compiling."""

    __slots__ = ("iterable",)
    rolled = False
    enters = False
    caught = ()

    def __init__(self, iterable: Iterable[Any]):
        self.iterable = iterable

    def __iter__(self) -> Iterator[Any]:
        return iter(self.iterable)

    def over(self, flags: Sequence[Any]) -> bool:
        """Tell whether a jump that is certain has ended the loop."""
        return any(f is True for f in flags)


class Rolled:
    """What loops of run time share: places that are carried, rounds of tracing, comparison."""

    site: Site
    tracer: Tracer
    rolled: bool
    caught: tuple[type[BaseException], ...]

    def begin(self, tracer: Tracer, site: Site, values: Mapping[str, Any]) -> None:
        """Remember where the loop begins and what everything is there."""
        self.tracer = tracer
        self.site = site
        self.values = tuple(values.get(n, U) for n in site.names)
        self.snap = Snapshot([values[n] for n in site.roots if n in values])
        self.side_data = Snapshot([v for k, v in tracer.state.items() if k not in ("regions", "lost")])
        self.saved = tracer.block
        self.last_op = tracer.block.last_op
        self.depth = len(regions(tracer))
        self.locals: dict[int, Form] = {}
        self.heap: dict[tuple[int, Any], Form] = {}
        self.lost: dict[int, Lost] = {}
        self.dead: set[int] = set()
        self.settled: set[int] = set()
        self.blocks: list[Block] = []
        self.rounds = 0
        self.ended = False

    def dropped(self) -> None:
        """Drop what was traced since the loop began, and put objects back."""
        tracer = self.tracer
        tracer.block = self.saved
        for region in regions(tracer)[self.depth :][::-1]:
            erase(region.blocks)
        del regions(tracer)[self.depth :]
        self.snap.restore()
        self.side_data.restore()
        keep = tracer.last_constant if self.saved is tracer.entry else None
        while (op := self.saved.last_op) is not None and op is not self.last_op and op is not keep:
            op.detach()
            op.erase(safe_erase=False)

    def again_from_the_start(self) -> None:
        """Drop a round."""
        if self not in regions(self.tracer):
            regions(self.tracer).append(self)
        self.dropped()

    # ---------------------------------------------------------------------------------------------------- a round

    def guess(self) -> None:
        """Choose what is carried at first: numbers that are read in the next turn and assigned in this one."""
        site = self.site
        settled = site.memory.get("settled", ())
        for i, (name, value) in enumerate(zip(site.names, self.values)):
            if value is U or name in settled or name in site.flags or name in site.targets or name not in site.head:
                continue
            form = form_of(value).widened().loosened()
            if len(form.types) == 1 and name[0] != ".":
                self.locals[i] = form

    def open_round(self, block: Block) -> None:
        """Begin a trace of the body: give carried places the arguments of ``block``."""
        tracer = self.tracer
        self.rounds += 1
        if self.rounds > MOST_ROUNDS:
            names = ", ".join(f"'{self.site.names[i]}'" for i in self.locals if self.site.names[i][0] != ".")
            raise LoopError("F221", f"what changes from turn to turn does not settle: {names}", notes=self.note())
        if self.rounds > 1:
            self.again_from_the_start()
        self.blocks = [block]
        self.dead.clear()
        regions(tracer).append(self)
        entry = [U if i in self.lost else v for i, v in enumerate(self.values)]
        self.args: list[SSAValue] = []
        for i, form in self.locals.items():
            entry[i] = form.make(self.arguments(block, form))
        for name in self.site.flags:  # a turn begins only if none of them is set
            if name in self.site.names:
                entry[self.site.names.index(name)] = False
        for (key, slot), form in self.heap.items():
            put(self.snap.objects[key][0], slot, form.make(self.arguments(block, form)))
        self.entry = tuple(entry)
        self.entry_heap = self.snap.state()

    def arguments(self, block: Block, form: Form) -> list[SSAValue]:
        """Give a block arguments for the leaves of a form."""
        made: list[SSAValue] = [block.insert_arg(t, len(block.args)) for t in form.types]
        self.args += made
        return made

    def compare(self, values: Sequence[Any], heap: Mapping[int, Any]) -> bool:
        """Compare the end of a turn with its head; tell whether more must be carried than is."""
        site = self.site
        grown = False
        self.unchanged: list[int] = []
        for i, (name, before, after) in enumerate(zip(site.names, self.entry, values)):
            form = self.locals.get(i)
            if form is not None:
                if after is U and name != VALUE:
                    del self.locals[i]
                    self.lose(i, "side")
                    grown = True
                elif same(before, after) or (name in site.flags and after is False):
                    self.unchanged.append(i)
                else:
                    grown |= self.fits(i, form, after)
            elif i not in self.lost and name not in site.targets and not same(before, after):
                grown |= self.carry(i, name, before, after)
        for key, (obj, _) in self.snap.objects.items():
            x, y = self.entry_heap[key], heap[key]
            if isinstance(x, set):
                if x != y:
                    raise self.place_error(MergeError("F207", "its elements change from turn to turn"), obj, None)
                continue
            try:
                check_shape(obj, x, y)
            except MergeError as e:
                raise self.place_error(e, obj, None) from None
            for slot in slots_of(x):
                if x[slot] is not y[slot]:
                    grown |= self.carry_place(obj, key, slot, x[slot], y[slot])
        return grown

    def lose(self, i: int, error: MergeError | str) -> None:
        """Give a name no value from turn to turn and after the loop."""
        self.lost[i] = Lost(self.site, error)
        remember_lost(self.tracer, self.site.names[i], self.lost[i])

    def fits(self, i: int, form: Form, after: Any) -> bool:
        """Tell whether the form of a carried local must change."""
        name = self.site.names[i]
        if name == VALUE and after is U:
            return False
        try:
            joined = form.join(form_of(after)).loosened()
            if joined == form:
                return False
            self.locals[i] = joined
        except MergeError:
            try:  # a literal before the loop takes the type of what follows
                joined = form_of(self.values[i]).join(form_of(after)).loosened()
                if joined == form or self.rounds > MOST_ROUNDS // 2:
                    raise
                self.locals[i] = joined
            except MergeError as e:
                del self.locals[i]
                self.lose(i, self.changes(e, name))
        return True

    def carry(self, i: int, name: str, before: Any, after: Any) -> bool:
        """Carry a local that changed; tell whether that is news."""
        site = self.site
        if name in site.flags:
            return self.carry_flag(i, after)
        if name not in site.head and name not in site.live:
            self.dead.add(i)
            return False
        if name == VALUE and before is U:
            self.locals[i] = form_of(after).loosened()
            return True
        if before is U:
            return False  # set in the body: without a value before, and so after
        if after is U:
            self.lose(i, "side")
            return True
        try:
            if _holds_mutable(before) or _holds_mutable(after):
                kind = type(before if is_mutable(before) else after).__name__
                raise MergeError("F220", f"it is another {kind} after a turn", hint="change it in place")
            form = form_of(before).widened().loosened()
            if len(form.types) != 1 or not isinstance(before, int | float):
                form = form_of(before).join(form_of(after)).loosened()
            self.locals[i] = form
            if not self.locals[i].types:
                raise MergeError("F209", "its static parts change")
        except MergeError as e:
            self.locals.pop(i, None)
            self.lose(i, self.changes(e, name))
        return True

    def carry_flag(self, i: int, after: Any) -> bool:
        """Note that a jump may end the loop; tell whether that is news."""
        raise NotImplementedError

    def carry_place(self, obj: Any, key: int, slot: Any, before: Any, after: Any) -> bool:
        """Carry a place of an object that changed; tell whether that is news."""
        form = self.heap.get((key, slot))
        if same(before, after) or before is after is U:
            return False
        try:
            if _holds_mutable(before) or _holds_mutable(after):
                raise MergeError("F220", "it is another object after a turn", hint="change it in place")
            first = form_of(self.snap.objects[key][1][slot])
            if form is None and first.widened() != first:  # a number: as a local
                joined = first.widened().loosened()
            else:
                try:
                    joined = (form or first).join(form_of(after)).loosened()
                except MergeError:
                    joined = first.join(form_of(after)).loosened()
                    if self.rounds > MOST_ROUNDS // 2:
                        raise
            if not joined.types:
                raise MergeError("F209", "its static parts change")
        except MergeError as e:
            raise self.place_error(e, obj, slot) from None
        if joined == form:
            return False
        self.heap[key, slot] = joined
        return True

    def place_error(self, e: MergeError, obj: Any, slot: Any) -> LoopError:
        """Return the error of a place that one loop cannot carry."""
        code = e.code if e.code == "F207" else "F220"
        text = f"{place_name(obj, slot)} changes from one turn of this loop to the next: {e.message}"
        return LoopError(code, text, hint=e.hint, notes=self.note())

    def changes(self, e: MergeError, name: str) -> MergeError:
        """Return the error of a name that one loop cannot carry."""
        text = f"'{name}' changes from one turn of this loop to the next: {e.message}"
        return MergeError("F220", text, hint=e.hint, notes=self.note())

    def note(self) -> list[Any]:
        """Return where the loop is, for errors."""
        return [("the loop", self.site.place)]

    def settle(self) -> bool:
        """Take out of what is carried the numbers that came back as they went; tell whether there were any."""
        out = [i for i in self.unchanged if i in self.locals and i not in self.settled and self.site.names[i] != VALUE]
        self.settled.update(out)
        settled = self.site.memory.setdefault("settled", set())
        for i in out:
            del self.locals[i]
            settled.add(self.site.names[i])
        return bool(out)

    def initial(self) -> list[SSAValue]:
        """Return the values that enter the loop."""
        leaves: list[SSAValue] = []
        with self.tracer.into(self.saved):
            for i, form in self.locals.items():
                value = self.values[i]
                leaves += blank(form, self.tracer) if value is U else form.take(value)
            for (key, slot), form in self.heap.items():
                leaves += form.take(self.snap.objects[key][1][slot])
        return leaves

    def outgoing(self, values: Sequence[Any], heap: Mapping[int, Any]) -> list[SSAValue]:
        """Return the values that leave a turn."""
        leaves: list[SSAValue] = []
        for i, form in self.locals.items():
            leaves += blank(form, self.tracer) if values[i] is U else form.take(values[i])
        for (key, slot), form in self.heap.items():
            leaves += form.take(heap[key][slot])
        return leaves

    def finished(self, results: Sequence[SSAValue]) -> None:
        """Give everything its value after the loop."""
        self.snap.restore()
        at = 0
        final: list[Any] = []
        for i, (name, value) in enumerate(zip(self.site.names, self.values)):
            final.append(U if i in self.dead or name in self.site.targets else value)
        for i, form in self.locals.items():
            n = len(form.types)
            final[i] = form.make(results[at : at + n])
            at += n
        for (key, slot), form in self.heap.items():
            n = len(form.types)
            put(self.snap.objects[key][0], slot, form.make(results[at : at + n]))
            at += n
        for i, name in enumerate(self.site.names):
            if i in self.locals:
                continue
            if i in self.lost:
                final[i] = U
                remember_lost(self.tracer, name, self.lost[i])
            elif final[i] is U and name in self.site.live:
                remember_lost(self.tracer, name, Lost(self.site, "target" if name in self.site.targets else "turns"))
        self.final = final

    def results(self) -> tuple[Any, ...]:
        """Return what the names that the loop assigns are after it."""
        return tuple(self.final)

    def enter(self) -> tuple[Any, ...]:
        """Return what the names that the loop assigns are at the head of a turn."""
        return self.entry


def _holds_mutable(value: Any) -> bool:
    if isinstance(value, tuple):
        return any(_holds_mutable(v) for v in value)
    return is_mutable(value)


class While(Rolled):
    """A ``while``: Python's until its test is one of run time; then ``scf.while``, from the first turn on."""

    rolled = enters = False

    def __init__(self, tracer: Tracer | None, site: Site, values: Mapping[str, Any]):
        self.turns = 0
        self.done = False
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
                    "F141", f"this loop has made {MOST_STATIC_TESTS} turns while compiling", notes=self.note()
                )
            return 1
        if self.ended:
            raise StopIteration
        self.before = Block()
        self.open_round(self.before)
        self.tracer.block = self.before
        return 3

    def test(self, condition: Any, values: Mapping[str, Any]) -> bool:
        """Tell whether the body is run (or, of a loop of run time, traced)."""
        truth = truth_of(condition)
        if not self.rolled:
            if truth is True or truth is False:
                self.done = not truth
                return truth
            raise Retrace(self)
        from xdsl.ir import Block

        from cute_dialect.front.dtypes import Boolean

        if truth is True or truth is False:
            truth = Boolean.exactly(truth)
        self.condition = truth.ssa
        self.tested = tuple(values.get(n, U) for n in self.site.names)
        self.tested_heap = self.snap.state()
        self.after = Block()
        self.blocks.append(self.after)
        self.tracer.block = self.after
        return True

    def again(self, error: BaseException) -> bool:
        """Begin anew, rolled, if that is what was raised."""
        if not isinstance(error, Retrace) or error.loop is not self:
            return False
        self.dropped()
        self.rolled = self.enters = True
        self.caught = ()
        self.guess()
        return True

    def guess(self) -> None:
        super().guess()
        from cute_dialect.front.dtypes import Boolean
        from cute_dialect.front.number_forms import NumberForm

        for i, name in enumerate(self.site.names):
            if name in self.site.flags and name not in self.site.memory.get("settled", ()):
                self.locals[i] = NumberForm(Boolean)

    def carry_flag(self, i: int, after: Any) -> bool:
        from cute_dialect.front.dtypes import Boolean
        from cute_dialect.front.number_forms import NumberForm

        self.locals[i] = NumberForm(Boolean)
        return True

    def open_round(self, block: Block) -> None:
        super().open_round(block)
        entry = list(self.entry)  # here the test reads the flags itself
        at = 0
        for i, form in self.locals.items():
            if self.site.names[i] in self.site.flags:
                entry[i] = form.make(self.args[at : at + 1])
            at += len(form.types)
        self.entry = tuple(entry)

    def leave(self, values: Mapping[str, Any]) -> None:
        """End a turn: compare, and make the loop if all that changes is carried."""
        tracer = self.tracer
        del regions(tracer)[self.depth + 1 :]
        out = tuple(values.get(n, U) for n in self.site.names)
        heap = self.snap.state()
        if self.compare(out, heap) or self.settle():
            return
        tracer.op("scf.yield", self.outgoing(out, heap), ())
        tracer.block = self.before
        exits = self.exits()
        forwarded = self.forwarded(exits)
        tracer.op("scf.condition", [self.condition, *forwarded], ())
        self.make(forwarded, exits)

    def exits(self) -> list[tuple[Any, Form, list[SSAValue]]]:
        """Return what places hold where the loop ends: after a test that fails."""
        found: list[tuple[Any, Form, list[SSAValue]]] = []
        for i, name in enumerate(self.site.names):
            value = self.tested[i]
            if i in self.lost or value is U or (name not in self.site.live and name not in self.site.flags):
                continue
            if i not in self.locals and same(value, self.values[i]):
                continue
            form = form_of(value)
            found.append((i, form, form.take(value)))
        for key, (_, kept) in self.snap.objects.items():
            now = self.tested_heap[key]
            if isinstance(now, set):
                continue
            for slot in now if isinstance(now, dict) else range(len(now)):
                if (key, slot) in self.heap or now[slot] is not kept[slot]:
                    form = form_of(now[slot])
                    found.append(((key, slot), form, form.take(now[slot])))
        return found

    def forwarded(self, exits: Sequence[tuple[Any, Form, list[SSAValue]]]) -> list[SSAValue]:
        """Return the values of the first region that the second one or what follows reads; rewire the second one."""
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
        """Make the ``scf.while``."""
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
        for i, name in enumerate(self.site.names):
            if i in exited:
                continue
            if i in self.locals or i in self.lost or i in self.dead:
                final[i] = U
            if i in self.lost:
                remember_lost(tracer, name, self.lost[i])
            elif final[i] is U and name in self.site.live:
                remember_lost(tracer, name, Lost(self.site, "turns"))
        self.final = final
        self.ended = True


def _within(op: Any, block: Block) -> bool:
    """Tell whether an op is in a block or in a region of one of its ops."""
    at = op.parent_block()
    while at is not None:
        if at is block:
            return True
        owner = at.parent_op()
        at = None if owner is None else owner.parent_block()
    return False


class For(Rolled):
    """A ``for`` over a range of run time, or over a static one that is traced once if that works."""

    def __init__(
        self, tracer: Tracer, numbers: LoopRange, site: Site, values: Mapping[str, Any], *, static: range | None
    ):
        self.begin(tracer, site, values)
        self.numbers = numbers
        self.static = static
        self.rolled = self.enters = True
        self.caught: tuple[type[BaseException], ...] = (Exception,) if static is not None else ()
        self.bounds()
        self.guess()

    def bounds(self) -> None:
        """Find the type of the index, and the bounds as values of it."""
        from cute_dialect.front.dtypes import Boolean, Int32
        from cute_dialect.front.numeric import as_number, promoted

        start, stop, step = (as_number(x) for x in (self.numbers.start, self.numbers.stop, self.numbers.step))
        for x in (start, stop, step):
            if not type(x).is_integer:
                raise LoopError("F224", f"a bound of a range is no integer: {x.describe()}", notes=self.note())
        if step.is_static and step.value == 0:
            raise LoopError("F223", "the step of a range is 0", notes=self.note())
        bounds = (self.numbers.start, self.numbers.stop, self.numbers.step)
        written = [x for x, y in zip((start, stop, step), bounds) if not isinstance(y, int)]
        kind = Int32
        for n, x in enumerate(written or (start, stop, step)):
            kind = type(x) if n == 0 else promoted(kind.exactly(0), x, "add")
        if kind is Boolean:
            kind = Int32
        self.kind = kind
        self.downwards = step.is_static and step.value < 0
        if self.downwards:
            size = -step.value
            self.origin = kind(start)
            high: Any = kind(start)
            turns = (high - kind(stop) + kind(size - 1)) // kind(size)
            self.stride = size
            start, stop, step = kind(0), turns, kind(1)
        self.first, self.last, self.step = kind(start), kind(stop), kind(step)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        from xdsl.ir import Block

        if not self.rolled:
            return next(self.iterator)
        if self.ended:
            raise StopIteration
        self.body = Block()
        index = self.body.insert_arg(self.kind.attribute, 0)
        self.open_round(self.body)
        self.tracer.block = self.body
        self.index = index
        self.number_now = self.number(index)
        return self.number_now

    def number(self, index: SSAValue) -> Any:
        """Return what the user's variable is."""
        from cute_dialect.front.numeric import Facts, facts_of

        if self.downwards:
            return self.origin - self.kind.of(index) * self.kind.exactly(self.stride)
        first, last, step = facts_of(self.first), facts_of(self.last), facts_of(self.step)
        from math import gcd

        divisor = gcd(first.divisor if not (self.first.is_static and self.first.value == 0) else 0, step.divisor) or 1
        high = None if last.high is None else last.high - 1
        return self.kind.of(index, Facts(first.low, high, divisor))

    def carry_flag(self, i: int, after: Any) -> bool:
        return False

    def over(self, flags: Sequence[Any]) -> bool:
        """Tell whether a jump that is certain has ended the loop."""
        return any(f is True for f in flags)

    def leave(self, values: Mapping[str, Any]) -> None:
        """End a turn: compare, and make the loop if all that changes is carried."""
        tracer = self.tracer
        del regions(tracer)[self.depth + 1 :]
        out = tuple(values.get(n, U) for n in self.site.names)
        heap = self.snap.state()
        flags = [out[self.site.names.index(f)] for f in self.site.flags if f in self.site.names]
        if self.compare(out, heap) or self.settle():
            return
        if any(f is not False for f in flags):
            self.make_while(out, heap, flags)
        else:
            self.make_for(out, heap)
        if self.static is not None and not any(f is not False for f in flags):
            for i, name in enumerate(self.site.names):  # the last index is known
                if (name,) == self.site.targets and same(out[i], self.number_now):
                    self.final[i] = self.static[-1]

    def enter(self) -> tuple[Any, ...]:
        if self.rolled:
            return self.entry
        self.enters = False
        return self.values

    def make_for(self, out: Sequence[Any], heap: Mapping[int, Any]) -> None:
        """Make the ``scf.for``."""
        from xdsl.dialects.builtin import IntegerAttr, UnitAttr, i64
        from xdsl.ir import Region

        tracer = self.tracer
        tracer.op("scf.yield", self.outgoing(out, heap), ())
        tracer.block = self.saved
        del regions(tracer)[self.depth :]
        operands = [self.first.ssa, self.last.ssa, self.step.ssa, *self.initial()]
        types = [v.type for v in operands[3:]]
        properties = {} if self.kind.signed else {"unsignedCmp": UnitAttr()}
        attributes = {"cute.unroll": IntegerAttr(self.numbers.unroll, i64)} if self.numbers.unroll else None
        op = tracer.op("scf.for", operands, types, properties, regions=[Region(self.body)], attributes=attributes)
        self.finished(op.results)
        self.ended = True

    def make_while(self, out: Sequence[Any], heap: Mapping[int, Any], flags: Sequence[Any]) -> None:
        """Make an ``scf.while`` with the counter: a jump may end the loop."""
        from xdsl.ir import Block, Region

        from cute_dialect.front.dtypes import Boolean

        tracer, kind = self.tracer, self.kind
        names = [f for f in self.site.flags if f in self.site.names]
        flag_values = [Boolean(f).ssa for f in flags]
        following = (kind.of(self.index) + self.step).ssa
        tracer.op("scf.yield", [following, *self.outgoing(out, heap), *flag_values], ())
        types = [*(a.type for a in self.body.args), *(v.type for v in flag_values)]
        for v in flag_values:
            self.body.insert_arg(v.type, len(self.body.args))
        before = Block(arg_types=types)
        tracer.block = before
        goes_on: Any = kind.of(before.args[0]) < self.last
        for argument in before.args[len(before.args) - len(flag_values) :]:
            flag = inverted(Boolean.of(argument))
            goes_on = both(goes_on, lambda flag=flag: flag)
        tracer.op("scf.condition", [goes_on.ssa, *before.args], ())
        tracer.block = self.saved
        del regions(tracer)[self.depth :]
        false = [tracer.constant(False, v.type) for v in flag_values]
        op = tracer.op(
            "scf.while", [self.first.ssa, *self.initial(), *false], types, regions=[Region(before), Region(self.body)]
        )
        results = list(op.results)
        self.finished(results[1 : len(results) - len(flag_values)])
        for name, value in zip(names, results[len(results) - len(flag_values) :]):
            self.final[self.site.names.index(name)] = Boolean.of(value)
        self.ended = True

    def again(self, error: BaseException) -> bool:
        """Walk a static range as Python does, if tracing it once did not work."""
        if self.static is None or not self.rolled or isinstance(error, RecursionError | LimitError):
            return False
        if isinstance(error, SyntaxErrorInKernel) and error.code in ("F150", "F158"):
            return False
        if len(self.static) > MOST_TURNS:
            if isinstance(error, StaticError):
                raise StaticError(
                    "F141", f"this loop of {len(self.static)} turns needs its index while compiling: {error.message}",
                    hint=f"at most {MOST_TURNS} turns are walked while compiling", notes=self.note(),
                ) from error  # fmt: skip
            return False
        self.walk()
        return True

    def walk(self) -> None:
        """Become Python's loop."""
        assert self.static is not None
        self.dropped()
        self.rolled = False
        self.enters = True
        self.caught = ()
        self.iterator = iter(self.static)


def loop_over(tracer: Tracer | None, iterable: Any, site: Site, values: Mapping[str, Any]) -> For | StaticFor:
    """Return the loop over what a ``for`` was given."""
    cls = type(iterable)
    if cls is range:
        if tracer is None or tracer.kind != "kernel" or len(iterable) < 2:
            return StaticFor(iterable)
        return For(tracer, LoopRange(iterable.start, iterable.stop, iterable.step), site, values, static=iterable)
    if cls is LoopRange:
        if tracer is None:
            return StaticFor(iterable.python())
        return For(tracer, iterable, site, values, static=None)
    if cls is UnrolledRange:
        return StaticFor(iterable.numbers)
    return StaticFor(iterable)
