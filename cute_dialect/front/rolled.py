"""What loops of run time share: which places are carried, rounds of tracing, comparison of a turn's end with its head.

A loop is traced once, if the guess is right which places change from turn to turn; what else turns out to change is
added, what was traced is dropped, and the body is traced again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cute_dialect.front.branches import (
    Lost,
    blank,
    check_depth,
    check_shape,
    check_unmoved,
    erase,
    place_name,
    regions,
    remember_lost,
    slots_of,
)
from cute_dialect.front.errors import LoopError, MergeError
from cute_dialect.front.jumps import VALUE
from cute_dialect.front.merge import UnsaidForm, is_value
from cute_dialect.front.mutable_state import Snapshot, U, is_mutable, put, same
from cute_dialect.front.values import Form, form_of

if TYPE_CHECKING:
    from xdsl.ir import Block, Operation, SSAValue

    from cute_dialect.front.analysis import Site
    from cute_dialect.front.trace import Tracer

__all__ = ["MOST_ROUNDS", "Attached", "Retrace", "Rolled", "show_prints"]

MOST_ROUNDS = 8
"""Times a body is traced before a loop counts as one that does not settle."""
_OURS = ("regions", "lost", "consumers")


class Retrace(BaseException):
    """Tells a loop to drop what was traced and to begin anew."""

    def __init__(self, loop: Rolled):
        super().__init__()
        self.loop = loop


def show_prints(tracer: Tracer) -> None:
    """Print what loops of run time printed, once none is being traced: what was traced in vain prints nothing."""
    printed: list[Any] = tracer.state.get("printed", [])
    if printed and not any(isinstance(r, Rolled) for r in regions(tracer)):
        for args, more in printed:
            print(*args, **more)
        printed.clear()


class Attached:
    """The ``for`` statement whose body runs inside of a generator's loop of run time."""

    site: Site
    values: list[Any]
    """What its names are before."""
    roots: list[Any]
    out: list[Any]
    """What its names are at the end of a turn."""
    finals: list[Any] | None = None
    """What its names are after the generator's loop."""
    first = 0
    """The number of its first name among those of the loop."""

    def note(self) -> list[Any]:
        """Return where it is, for errors."""
        return [("the loop", self.site.place)]


class Rolled:
    """What loops of run time share: places that are carried, rounds of tracing, comparison."""

    site: Site
    tracer: Tracer
    rolled: bool
    caught: tuple[type[BaseException], ...]

    def begin(self, tracer: Tracer, site: Site, values: Mapping[str, Any]) -> None:
        """Remember where the loop begins and what everything is there."""
        check_depth(tracer)
        self.tracer = tracer
        self.site = site
        self.names = list(site.names)
        self.owners = [site] * len(self.names)
        self.values = [values.get(n, U) for n in self.names]
        self.attached: Attached | None = None
        self.snap = Snapshot(site.rooted(values), site.globals)
        tracer.state.setdefault("printed", [])
        self.side_data = Snapshot([v for k, v in tracer.state.items() if k not in _OURS])
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
        made: list[Operation] = []
        op = self.saved.last_op
        while op is not None and op is not self.last_op and op is not keep:
            made.append(op)
            op = op.prev_op
        dropped: set[Operation] = set()
        for op in reversed(made):
            # A part of a value from before the loop serves everything that sees the value, and objects remember it.
            if not tracer.is_part(op) or any(v.owner in dropped for v in op.operands):
                dropped.add(op)
        for op in made:
            if op in dropped:
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
        for i in range(len(self.names)):
            self.guess_one(i)

    def guess_one(self, i: int) -> None:
        """Choose whether a name is carried at first."""
        site, name, value = self.owners[i], self.names[i], self.values[i]
        if value is U or name[0] == "." or name in site.targets or name not in site.reads:
            return
        if name in site.memory.get("settled", ()):
            return
        form = form_of(value).widened().loosened()
        if len(form.types) == 1:
            self.locals[i] = form

    def open_round(self, block: Block) -> None:
        """Begin a trace of the body: give carried places the arguments of ``block``."""
        tracer = self.tracer
        self.rounds += 1
        if self.rounds > MOST_ROUNDS:
            names = ", ".join(f"'{self.names[i]}'" for i in self.locals if self.names[i][0] != ".")
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
        for i, (site, name) in enumerate(zip(self.owners, self.names)):
            if name in site.flags:  # a turn begins only if none of them is set
                entry[i] = False
        for (key, slot), form in self.heap.items():
            put(self.snap.objects[key][0], slot, form.make(self.arguments(block, form)))
        self.entry = entry
        self.entry_heap = self.snap.state()

    def attach(self, consumer: Attached) -> None:
        """Carry what the body of a ``for`` changes that takes what this loop yields."""
        if self.attached is consumer:
            return
        if self.attached is not None or self.rounds > 1:
            raise LoopError("F160", "a loop of run time yields to two 'for' statements", notes=self.note())
        self.attached = consumer
        first = len(self.names)
        site = consumer.site
        self.names += site.names
        self.owners += [site] * len(site.names)
        self.values += consumer.values
        self.entry += consumer.values
        self.snap.add(consumer.roots)
        now = self.snap.state()
        self.entry_heap = {**now, **self.entry_heap}
        for i in range(first, len(self.names)):
            self.guess_one(i)
            if i in self.locals:
                self.entry[i] = self.locals[i].make(self.arguments(self.blocks[0], self.locals[i]))
            elif self.names[i] in site.flags:
                self.entry[i] = False
        consumer.first = first
        self.joined(first, now)

    def joined(self, first: int, heap: Mapping[int, Any]) -> None:
        """Take note of names that were attached, from number ``first`` on."""

    def ending(self, values: Mapping[str, Any]) -> list[Any]:
        """Return what the names are at the end of a turn, those of a consumer too."""
        own = [values.get(n, U) for n in self.site.names]
        if self.attached is None:
            return own
        for name, value in zip(self.attached.site.names, self.attached.out):
            if name in self.attached.site.flags and value is not False:
                raise LoopError(
                    "F160", "'break' or 'return' out of a 'for' over a generator with a loop of run time",
                    hint="write the generator's loop here", notes=self.attached.note(),
                )  # fmt: skip
        return [*own, *self.attached.out]

    def arguments(self, block: Block, form: Form) -> list[SSAValue]:
        """Give a block arguments for the leaves of a form."""
        made: list[SSAValue] = [block.insert_arg(t, len(block.args)) for t in form.types]
        self.args += made
        return made

    def compare(self, values: Sequence[Any], heap: Mapping[int, Any]) -> bool:
        """Compare the end of a turn with its head; tell whether more must be carried than is."""
        check_unmoved(self.snap)
        grown = False
        self.unchanged: list[int] = []
        for i, (site, name, before, after) in enumerate(zip(self.owners, self.names, self.entry, values)):
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
                    raise self.place_error(
                        MergeError("F207", "the elements of a set change from turn to turn"), obj, None
                    )
                continue
            try:
                check_shape(obj, x, y, "at the head of a turn", "at its end")
            except MergeError as e:
                raise self.place_error(e, obj, None) from None
            for slot in slots_of(x):
                if x[slot] is not y[slot]:
                    grown |= self.carry_place(obj, key, slot, x[slot], y[slot])
        return grown

    def lose(self, i: int, error: MergeError | str) -> None:
        """Give a name no value from turn to turn and after the loop."""
        self.lost[i] = Lost(self.site, error)
        remember_lost(self.tracer, self.names[i], self.lost[i], self.owners[i].path)

    def fits(self, i: int, form: Form, after: Any) -> bool:
        """Tell whether the form of a carried local must change."""
        name = self.names[i]
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
        site = self.owners[i]
        if name in site.flags:
            return self.carry_flag(i, after)
        if name not in site.head and name not in site.live:
            self.dead.add(i)
            return False
        if before is U and after is not U and (name == VALUE or (site.once and name not in site.reads)):
            self.locals[i] = form_of(after).loosened()
            return True
        if before is U:
            return False  # set in the body: without a value before, and so after
        if after is U:
            self.lose(i, "side")
            return True
        try:
            if _other_mutable(before, after):
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
            if _other_mutable(before, after):
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
            if not joined.types and not isinstance(joined, UnsaidForm):
                raise MergeError("F209", "its static parts change")
        except MergeError as e:
            unsaid = getattr(type(obj), "__cute_unsaid__", {})
            if slot not in unsaid:
                raise self.place_error(e, obj, slot) from None
            joined = UnsaidForm(unsaid[slot])
        if joined == form:
            return False
        self.heap[key, slot] = joined
        return True

    def place_error(self, e: MergeError, obj: Any, slot: Any) -> LoopError:
        """Return the error of a place that one loop cannot carry."""
        code = e.code if e.code == "F207" else "F220"
        text = f"{place_name(obj, slot)} changes from one turn of this loop to the next: {e.message}"
        if code == "F207":
            text = e.message
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
        out = [i for i in self.unchanged if i in self.locals and i not in self.settled and self.names[i] != VALUE]
        self.settled.update(out)
        for i in out:
            del self.locals[i]
            self.owners[i].memory.setdefault("settled", set()).add(self.names[i])
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
        for i, (site, name, value) in enumerate(zip(self.owners, self.names, self.values)):
            final.append(U if i in self.dead or name in site.targets else value)
        for i, form in self.locals.items():
            n = len(form.types)
            final[i] = form.make(results[at : at + n])
            at += n
        for (key, slot), form in self.heap.items():
            n = len(form.types)
            put(self.snap.objects[key][0], slot, form.make(results[at : at + n]))
            at += n
        for i in range(len(final)):
            if i not in self.locals:
                self.left_without(final, i)
        self.conclude(final)

    def left_without(self, final: list[Any], i: int) -> None:
        """Remember why a name has no value after the loop, if it has none."""
        site, name = self.owners[i], self.names[i]
        if i in self.lost:
            final[i] = U
            remember_lost(self.tracer, name, self.lost[i], site.path)
        elif final[i] is U and name in site.live:
            why = "target" if name in site.targets else "turns"
            remember_lost(self.tracer, name, Lost(self.site, why), site.path)

    def conclude(self, final: list[Any]) -> None:
        """End the loop: what names are after it is known."""
        self.final = final
        self.ended = True
        show_prints(self.tracer)
        if self.attached is not None:
            self.attached.finals = final[self.attached.first :]

    def results(self) -> Sequence[Any]:
        """Return what the names that the loop assigns are after it, those that may be read."""
        return [self.final[i] for i in self.site.leaving]

    def enter(self) -> Sequence[Any]:
        """Return what the names that the loop assigns are at the head of a turn, those that may be read."""
        return [self.entry[i] for i in self.site.entering]


def _other_mutable(before: Any, after: Any) -> bool:
    """Tell whether an object that can change was exchanged for another."""
    if before is after:
        return False
    if isinstance(before, tuple) and isinstance(after, tuple) and len(before) == len(after):
        return any(map(_other_mutable, before, after))
    if type(before) is type(after) and is_value(before):
        return False
    return _holds_mutable(before) or _holds_mutable(after)


def _holds_mutable(value: Any) -> bool:
    if isinstance(value, tuple):
        return any(_holds_mutable(v) for v in value)
    return is_mutable(value)
