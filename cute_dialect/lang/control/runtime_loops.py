"""Common parts of run-time loops: carried places, tracing rounds, comparison of the end of an iteration with its start.

The body is traced once if the initial guess of the carried places is right.  Otherwise the places that turn out to
change are added, the trace is discarded, and the body is traced again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import CellType
from typing import TYPE_CHECKING, Any

from cute_dialect.lang.control.aliases import Surroundings, shared_error
from cute_dialect.lang.control.branches import (
    Lost,
    blank,
    check_depth,
    check_shape,
    check_unmoved,
    consumers,
    erase,
    place_name,
    regions,
    remember_lost,
    slots_of,
    unchanged,
)
from cute_dialect.lang.control.mutable_state import (
    Snapshot,
    U,
    UnsaidForm,
    carried_form,
    holds_containers,
    is_mutable,
    put,
    replaced_in,
    same,
    shared_in,
)
from cute_dialect.lang.rewrite.desugaring import VALUE
from cute_dialect.lang.tracing.errors import LoopError, MergeError
from cute_dialect.lang.values.dynamic import Form
from cute_dialect.lang.values.forms import form_of, is_value

if TYPE_CHECKING:
    from xdsl.ir import Block, Operation, SSAValue

    from cute_dialect.lang.rewrite.analysis import Site
    from cute_dialect.lang.tracing.tracer import Tracer

MOST_ROUNDS = 8
"""Number of times that a body is traced before an error is raised."""
_OURS = ("regions", "lost", "consumers")


class Retrace(BaseException):
    """Signals a loop to discard its trace and start again."""

    def __init__(self, loop: Rolled):
        super().__init__()
        self.loop = loop


def show_prints(tracer: Tracer) -> None:
    """Print the output of Python's ``print`` in run-time loops once none is open. Discarded traces print nothing."""
    printed: list[Any] = tracer.state.get("printed", [])
    if printed and not any(isinstance(r, Rolled) for r in regions(tracer)):
        for args, more in printed:
            print(*args, **more)
        printed.clear()


class Attached:
    """A ``for`` statement whose body runs inside a generator's run-time loop."""

    site: Site
    values: list[Any]
    """The values of its names before the loop."""
    roots: list[Any]
    out: list[Any]
    """The values of its names at the end of an iteration."""
    finals: list[Any] | None = None
    """The values of its names after the generator's loop."""
    first = 0
    """The index of its first name among those of the loop."""

    def note(self) -> list[Any]:
        """Return a note with its position, for errors."""
        return [("the loop", self.site.place)]


class Rolled:
    """Base of run-time loops: carried places, tracing rounds, comparison."""

    site: Site
    tracer: Tracer
    rolled: bool
    replaces = True
    """True if the loop carries lists, dicts and objects that its body replaces."""
    caught: tuple[type[BaseException], ...]

    def begin(self, tracer: Tracer, site: Site, values: Mapping[str, Any]) -> None:
        """Record the insertion point and the state at the start of the loop."""
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
        self.replaced: set[int] = set()
        self.lost: dict[int, Lost] = {}
        self.lost_before: dict[tuple[str, str], Lost] = {}
        """The lost names, by file, at the start of a round."""
        self.dead: set[int] = set()
        self.settled: set[int] = set()
        self.blocks: list[Block] = []
        self.rounds = 0
        self.ended = False

    def dropped(self) -> None:
        """Discard everything traced since the loop began, and restore the objects."""
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
            # A part of a value from before the loop serves all uses of the value, and objects refer to it.
            if not tracer.is_part(op) or any(v.owner in dropped for v in op.operands):
                dropped.add(op)
        for op in made:
            if op in dropped:
                op.detach()
                op.erase(safe_erase=False)

    def again_from_the_start(self) -> None:
        """Discard a tracing round."""
        if self not in regions(self.tracer):
            regions(self.tracer).append(self)
        self.dropped()

    # ---------------------------------------------------------------------------------------------------- a round

    def guess(self) -> None:
        """Choose the initially carried names: numbers assigned in an iteration and read in the next."""
        for i in range(len(self.names)):
            self.guess_one(i)

    def guess_one(self, i: int) -> None:
        """Decide whether a name is carried initially."""
        site, name, value = self.owners[i], self.names[i], self.values[i]
        if value is U or name[0] == "." or name in site.targets or name not in site.reads:
            return
        if name in site.memory.get("settled", ()):
            return
        form = form_of(value).widened().loosened()
        if len(form.types) == 1:
            self.locals[i] = form

    def open_round(self, block: Block) -> None:
        """Begin a trace of the body, with arguments of ``block`` for the carried places."""
        tracer = self.tracer
        self.rounds += 1
        if self.rounds > MOST_ROUNDS:
            names = ", ".join(f"'{self.names[i]}'" for i in self.locals if self.names[i][0] != ".")
            raise LoopError("F221", f"the types of the loop-carried values do not converge: {names}", notes=self.note())
        if self.rounds > 1:
            self.again_from_the_start()
            self.drop_replaced()
        self.blocks = [block]
        self.dead.clear()
        self.lost_before = dict(tracer.state.get("lost", {}))
        regions(tracer).append(self)
        entry = [U if i in self.lost else v for i, v in enumerate(self.values)]
        self.args: list[SSAValue] = []
        for i, form in self.locals.items():
            entry[i] = form.make(self.arguments(block, form))
        for i, (site, name) in enumerate(zip(self.owners, self.names)):
            if name in site.flags:  # An iteration begins only if no flag is set.
                entry[i] = False
        for (key, slot), form in self.heap.items():
            put(self.snap.objects[key][0], slot, form.make(self.arguments(block, form)))
        self.entry = entry
        self.entry_heap = self.snap.state()

    def drop_replaced(self) -> None:
        """Stop carrying the contents of objects from before the loop that an iteration replaces."""
        forms = [(f, self.values[i]) for i, f in self.locals.items()]
        forms += [(f, self.snap.objects[key][1][slot]) for (key, slot), f in self.heap.items()]
        self.replaced = {id(x) for f, value in forms if value is not U for x in replaced_in(f, value)}
        for at in [at for at in self.heap if at[0] in self.replaced]:
            del self.heap[at]

    def attach(self, consumer: Attached) -> None:
        """Also carry the changes of a ``for`` body that consumes the values yielded by this loop."""
        if self.attached is consumer:
            return
        if self.attached is not None or self.rounds > 1:
            raise LoopError("F160", "a run-time loop yields to two 'for' statements", notes=self.note())
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
        """Called after names were attached, from index ``first`` on."""

    def ending(self, values: Mapping[str, Any]) -> list[Any]:
        """Return the values of the names at the end of an iteration, including a consumer's."""
        own = [values.get(n, U) for n in self.site.names]
        if self.attached is None:
            return own
        for name, value in zip(self.attached.site.names, self.attached.out):
            if name in self.attached.site.flags and value is not False:
                raise LoopError(
                    "F160", "'break' or 'return' cannot leave a 'for' over a generator with a run-time loop",
                    hint="write the generator's loop in place of the 'for'", notes=self.attached.note(),
                )  # fmt: skip
        return [*own, *self.attached.out]

    def arguments(self, block: Block, form: Form) -> list[SSAValue]:
        """Add block arguments for the leaves of a form."""
        made: list[SSAValue] = [block.insert_arg(t, len(block.args)) for t in form.types]
        self.args += made
        return made

    def compare(self, values: Sequence[Any], heap: Mapping[int, Any]) -> bool:
        """Compare the end of an iteration with its start. Return True if more must be carried."""
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
                elif holds_containers(form):
                    grown |= self.fits(i, form, after)
                elif same(before, after) or (name in site.flags and after is False):
                    self.unchanged.append(i)
                else:
                    grown |= self.fits(i, form, after)
            elif i not in self.lost and name not in site.targets and not same(before, after):
                grown |= self.carry(i, name, before, after)
        containers = {key for (key, _), form in self.heap.items() if holds_containers(form)}
        for key, (obj, _) in self.snap.objects.items():
            x, y = self.entry_heap[key], heap[key]
            if x is y and key not in containers:
                continue
            if isinstance(x, set):
                if x != y:
                    raise self.place_error(
                        MergeError("F207", "the elements of a set change between iterations"), obj, None
                    )
                continue
            try:
                check_shape(obj, x, y, "at the start of an iteration", "at its end")
            except MergeError as e:
                raise self.place_error(e, obj, None) from None
            for slot in slots_of(x):
                if x[slot] is not y[slot] or ((key, slot) in self.heap and holds_containers(self.heap[key, slot])):
                    grown |= self.carry_place(obj, key, slot, x[slot], y[slot])
        return grown or self.loses_shared(values, heap)

    def loses_shared(self, values: Sequence[Any], heap: Mapping[int, Any]) -> bool:
        """Return True if a name cannot be carried because something else refers to an object that it replaces.

        Raises LoopError for an attribute or element.
        """
        names = [(i, f) for i, f in self.locals.items() if holds_containers(f)]
        places = [(at, f) for at, f in self.heap.items() if holds_containers(f)]
        if not names and not places:
            return False
        contents = {key: unchanged(x, heap[key]) for key, x in self.entry_heap.items()}
        kept = [v for i, v in enumerate(self.entry) if i not in self.locals and v is values[i]]
        static = [x for form in (*self.locals.values(), *self.heap.values()) for x in shared_in(form)]
        around = Surroundings(self.site.names, [*kept, *static], contents, consumers(self.tracer))
        first: set[int] = set()
        last: set[int] = set()
        for i, form in names:
            try:
                around.check_once(replaced_in(form, self.values[i]), first)
                around.check_once(replaced_in(form, values[i]), last)
            except MergeError as e:
                del self.locals[i]
                self.lose(i, self.changes(e, self.names[i]))
                return True
        variables = [v for i, v in enumerate(values) if i in self.locals]
        for (key, slot), form in places:
            obj, initial = self.snap.objects[key]
            now = heap[key][slot]
            if type(obj) is CellType and any(now is v for v in variables):
                continue  # It is the variable of one of the names.
            try:
                around.check_once(replaced_in(form, initial[slot]), first)
                around.check_once(replaced_in(form, now), last)
            except MergeError as e:
                raise self.place_error(e, obj, slot) from None
        return False

    def lose(self, i: int, error: MergeError | str) -> None:
        """Leave a name without a value in the loop and after it."""
        key = self.names[i], self.owners[i].path
        inner = self.tracer.state.get("lost", {}).get(key)
        if error == "side" and inner is not self.lost_before.get(key) and isinstance(inner.error, MergeError):
            self.lost[i] = inner  # A branch in the body assigns values that do not merge.
            return
        self.lost[i] = Lost(self.site, error)
        remember_lost(self.tracer, self.names[i], self.lost[i], self.owners[i].path)

    def fits(self, i: int, form: Form, after: Any) -> bool:
        """Return True if the form of a carried name must change."""
        name = self.names[i]
        if name == VALUE and after is U:
            return False
        try:
            after_form = carried_form(after, self.values[i]) if holds_containers(form) else form_of(after)
            joined = form.join(after_form).loosened()
            if joined == form:
                return False
            self.locals[i] = joined
        except MergeError:
            try:  # A literal assigned before the loop adapts to the type in the loop.
                joined = form_of(self.values[i]).join(form_of(after)).loosened()
                if joined == form or self.rounds > MOST_ROUNDS // 2:
                    raise
                self.locals[i] = joined
            except MergeError as e:
                del self.locals[i]
                self.lose(i, self.changes(e, name))
        return True

    def carry(self, i: int, name: str, before: Any, after: Any) -> bool:
        """Carry a name that changed. Return True if the body must be traced again."""
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
            return False  # It is set in the body, and has no value before the loop or after it.
        if after is U:
            self.lose(i, "side")
            return True
        try:
            if _other_mutable(before, after):
                self.locals[i] = self.replaced_form(before, after)
                return True
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

    def replaced_form(self, before: Any, after: Any) -> Form:
        """Return the form of a container or object that an iteration replaces by another one."""
        kind = type(before if is_mutable(before) else after).__name__
        if not self.replaces or self.attached is not None or type(before) is not type(after):
            raise MergeError("F220", f"it is a different {kind} object after an iteration", hint="change it in place")
        return carried_form(before, after).join(carried_form(after, before)).loosened()

    def carry_flag(self, i: int, after: Any) -> bool:
        """Record that a jump may end the loop. Return True if the body must be traced again."""
        raise NotImplementedError

    def carry_place(self, obj: Any, key: int, slot: Any, before: Any, after: Any) -> bool:
        """Carry an attribute or element that the loop body changes.

        Return True if the body must be traced again.
        """
        form = self.heap.get((key, slot))
        if before is after is U or (same(before, after) and not (form is not None and holds_containers(form))):
            return False
        try:
            if key in self.replaced:
                raise shared_error(obj)
            initial = self.snap.objects[key][1][slot]
            first = form_of(initial)
            if form is not None and holds_containers(form):
                joined = form.join(carried_form(after, initial)).loosened()
            elif _other_mutable(before, after):
                joined = self.replaced_form(before, after)
            elif form is None and first.widened() != first:  # A number is treated like a local.
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
        """Return the error for a place that a run-time loop cannot carry."""
        code = e.code if e.code == "F207" else "F220"
        text = f"{place_name(obj, slot)} changes between iterations of this loop: {e.message}"
        if code == "F207":
            text = e.message
        return LoopError(code, text, hint=e.hint, notes=self.note())

    def changes(self, e: MergeError, name: str) -> MergeError:
        """Return the error for a name that a run-time loop cannot carry."""
        text = f"'{name}' changes between iterations of this loop: {e.message}"
        return MergeError("F220", text, hint=e.hint, notes=self.note())

    def note(self) -> list[Any]:
        """Return a note with the position of the loop, for errors."""
        return [("the loop", self.site.place)]

    def settle(self) -> bool:
        """Stop carrying numbers that did not change. Return True if there were any."""
        out = [i for i in self.unchanged if i in self.locals and i not in self.settled and self.names[i] != VALUE]
        self.settled.update(out)
        for i in out:
            del self.locals[i]
            self.owners[i].memory.setdefault("settled", set()).add(self.names[i])
        return bool(out)

    def initial(self) -> list[SSAValue]:
        """Return the initial values of the loop."""
        leaves: list[SSAValue] = []
        self.snap.restore()  # Forms of containers read the contents from before the loop.
        with self.tracer.into(self.saved):
            for i, form in self.locals.items():
                value = self.values[i]
                leaves += blank(form, self.tracer) if value is U else form.take(value)
            for (key, slot), form in self.heap.items():
                leaves += form.take(self.snap.objects[key][1][slot])
        return leaves

    def outgoing(self, values: Sequence[Any], heap: Mapping[int, Any]) -> list[SSAValue]:
        """Return the values at the end of an iteration."""
        leaves: list[SSAValue] = []
        for i, form in self.locals.items():
            leaves += blank(form, self.tracer) if values[i] is U else form.take(values[i])
        for (key, slot), form in self.heap.items():
            leaves += form.take(heap[key][slot])
        return leaves

    def finished(self, results: Sequence[SSAValue]) -> None:
        """Set the values of names and places after the loop."""
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
        """Record why a name has no value after the loop, if it has none."""
        site, name = self.owners[i], self.names[i]
        if i in self.lost:
            final[i] = U
            remember_lost(self.tracer, name, self.lost[i], site.path)
        elif final[i] is U and name in site.live:
            why = "target" if name in site.targets else "turns"
            remember_lost(self.tracer, name, Lost(self.site, why), site.path)

    def conclude(self, final: list[Any]) -> None:
        """End the loop. ``final`` are the values of the names after it."""
        self.final = final
        self.ended = True
        show_prints(self.tracer)
        if self.attached is not None:
            self.attached.finals = final[self.attached.first :]

    def results(self) -> Sequence[Any]:
        """Return the values after the loop of the assigned names that may be read."""
        return [self.final[i] for i in self.site.leaving]

    def enter(self) -> Sequence[Any]:
        """Return the values at the start of an iteration of the assigned names that may be read."""
        return [self.entry[i] for i in self.site.entering]


def _other_mutable(before: Any, after: Any) -> bool:
    """Return True if a mutable object was replaced by another."""
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
