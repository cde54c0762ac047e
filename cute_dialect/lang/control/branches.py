"""Run-time branches, and ``and``, ``or``, ``not`` and ``==``: both sides are traced, and their values are merged."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from cute_dialect.lang.control.aliases import Surroundings
from cute_dialect.lang.control.mutable_state import (
    Snapshot,
    U,
    empty_like,
    is_mutable,
    kept_in,
    parts_of,
    put,
    same,
    set_part,
)
from cute_dialect.lang.control.positions import BUFFER, FILE, RANDOM, described
from cute_dialect.lang.rewrite.desugaring import VALUE
from cute_dialect.lang.tracing.errors import MergeError, StaticError, SyntaxErrorInKernel
from cute_dialect.lang.tracing.tracer import current, emit
from cute_dialect.lang.values.dtypes import Boolean, Numeric
from cute_dialect.lang.values.dynamic import Dynamic, Form
from cute_dialect.lang.values.forms import form_of, is_value

if TYPE_CHECKING:
    from types import FrameType

    from xdsl.ir import Attribute, Block, Operation, SSAValue

    from cute_dialect.lang.rewrite.analysis import Site
    from cute_dialect.lang.tracing.tracer import Tracer

_CHEAP = """
    addi subi muli andi ori xori shli cmpi cmpf select addf subf mulf negf extsi extui trunci extf truncf sitofp uitofp
    bitcast minsi maxsi minui maxui minimumf maximumf minnumf maxnumf constant index_cast
"""
CHEAP = frozenset(f"arith.{name}" for name in _CHEAP.split())
"""Ops that may run speculatively: pure, never faulting, one or two instructions."""
MOST_SPECULATED = 8
"""Maximum number of speculated ops per side."""


def regions(tracer: Tracer) -> list[Any]:
    """Return the open run-time branches and loops, outermost first."""
    return tracer.state.setdefault("regions", [])


class Open(NamedTuple):
    """A run-time region that is being traced, and its blocks."""

    blocks: list[Block]


DEEPEST = 64
"""Maximum nesting depth of run-time branches and loops, across all functions."""


def check_depth(tracer: Tracer) -> None:
    """Raise an error for nesting so deep that only a recursion with a run-time end can cause it (F161)."""
    if len(regions(tracer)) >= DEEPEST:
        raise RecursionError(f"run-time branches and loops are nested {DEEPEST} deep")


def erase(blocks: Sequence[Block]) -> None:
    """Erase the ops of unused blocks, including their uses of other values."""
    for block in blocks:
        for op in list(block.ops)[::-1]:
            op.detach()
            op.erase(safe_erase=False)


class Lost:
    """The reason why a name has no value after a branch or loop. It is reported if the name is read."""

    __slots__ = ("error", "site")

    def __init__(self, site: Site, error: MergeError | str):
        self.site = site
        self.error = error


def remember_lost(tracer: Tracer, name: str, lost: Lost, path: str | None = None) -> None:
    """Record why a name has no value, for the error if it is read."""
    tracer.state.setdefault("lost", {})[name, path or lost.site.path] = lost


def had_reason(tracer: Tracer, site: Site, name: str) -> bool:
    """Return True if a name without a value has lost it in an earlier merge that failed."""
    lost = tracer.state.get("lost", {}).get((name, site.path))
    return lost is not None and isinstance(lost.error, MergeError)


def blank(form: Form, tracer: Tracer) -> list[SSAValue]:
    """Return placeholder leaves for a value that is never read."""
    from xdsl.dialects.builtin import AnyFloat, IndexType, IntegerType

    leaves: list[SSAValue] = []
    for t in form.types:
        if isinstance(t, IntegerType | IndexType):
            leaves.append(tracer.constant(0, t))
        elif isinstance(t, AnyFloat):
            leaves.append(tracer.constant(0.0, t))
        else:
            raise MergeError(
                "F209", f"a value of type {t} is returned only if a run-time condition holds",
                hint="return it at the end of the function, or on both sides of the condition",
            )  # fmt: skip
    return leaves


class Merger:
    """The results of a branch: pairs of leaves, one per side."""

    def __init__(
        self,
        tracer: Tracer,
        condition: SSAValue,
        blocks: Sequence[Block],
        before: Snapshot,
        heaps: Sequence[Mapping[int, Any]],
        names: Mapping[str, tuple[Any, Any]],
    ):
        self.tracer = tracer
        self.condition = condition
        self.blocks = blocks
        self.before = before
        self.heaps = heaps
        self.names = names
        self.surroundings: Surroundings | None = None
        self.kept: list[Any] = []
        self.types: list[Attribute] = []
        self.pairs: list[tuple[SSAValue, SSAValue]] = []
        self.made: list[tuple[list[int | SSAValue], Form, Callable[[Any], None]]] = []
        self.partners: tuple[dict[int, Any], dict[int, Any]] = ({}, {})
        self.fresh: dict[tuple[int, int], Any] = {}

    def merge(self, a: Any, b: Any, use: Callable[[Any], None], *, returned: bool = False) -> None:
        """Merge two values. ``use`` is called with the result once the branch is built.  Raises MergeError."""
        if same(a, b):
            if a is b:
                self.kept.append(a)
            use(a)
            return
        if a is U or b is U:
            if not returned:
                use(U)
                return
            self.one_sided(a, b, use)
            return
        if not isinstance(a, Dynamic) and not isinstance(b, Dynamic) and self.is_structure(a, b):
            self.structure(a, b, use)
            return
        form = form_of(a).join(form_of(b))
        self.leaves(form, self.taken(form, a, 0), self.taken(form, b, 1), use)

    def one_sided(self, a: Any, b: Any, use: Callable[[Any], None]) -> None:
        """Merge a value that one side returns while the other side goes on."""
        form = form_of(b if a is U else a)
        if not form.types:
            use(b if a is U else a)
        elif a is U:
            self.leaves(form, blank(form, self.tracer), self.taken(form, b, 1), use)
        else:
            self.leaves(form, self.taken(form, a, 0), blank(form, self.tracer), use)

    def taken(self, form: Form, value: Any, side: int) -> list[SSAValue]:
        """Return the leaves of a value. Conversions are emitted into its side."""
        with self.tracer.into(self.blocks[side]):
            return form.take(value)

    def leaves(self, form: Form, a: list[SSAValue], b: list[SSAValue], use: Callable[[Any], None]) -> None:
        """Add the leaves of both sides, and the callback that receives the merged value."""
        at: list[int | SSAValue] = []
        for x, y, t in zip(a, b, form.types):
            if x is y:
                at.append(x)
            elif (x, y) in self.pairs:
                at.append(self.pairs.index((x, y)))
            elif _is_truth(x, True) and _is_truth(y, False):
                at.append(self.condition)
            else:
                at.append(len(self.pairs))
                self.pairs.append((x, y))
                self.types.append(t)
        self.made.append((at, form, use))

    # ------------------------------------------------------------------------------------------------- containers

    def is_structure(self, a: Any, b: Any) -> bool:
        """Return True if two values are containers or instances of the same class."""
        return (type(a) is type(b) and kept_in(a) is not None) or (isinstance(a, tuple) and type(a) is type(b))

    def structure(self, a: Any, b: Any, use: Callable[[Any], None]) -> None:
        """Merge containers or instances element by element into a new one, which replaces those of both sides."""
        key = (id(a), id(b))
        if key in self.fresh:
            use(self.fresh[key])
            return
        if isinstance(a, tuple):
            if len(a) != len(b):
                raise MergeError("F204", f"it is a tuple of {len(a)} or {len(b)} elements")
            self.rebuilt(a, b, list(range(len(a))), lambda i: (a[i], b[i]), use)
            return
        if is_mutable(a) and not is_value(a):
            self.check_aliases(a, b)
        x, y = self.content(a, 0), self.content(b, 1)
        if isinstance(x, set) or isinstance(y, set):
            raise MergeError(
                "F209", f"it is one of two {type(a).__name__}s", hint="use a list, or the same object on both sides"
            )
        check_shape(a, x, y)
        made = copy.copy(a) if is_value(a) else empty_like(a, x)
        self.fresh[key] = made
        first, second = (
            parts_of(obj, kept, self.attributes(obj, side)) for side, (obj, kept) in enumerate(((a, x), (b, y)))
        )
        check_shape(a, first, second)
        for part in first:
            self.merge(first[part], second[part], lambda value, part=part: set_part(made, part, value))
        use(made)

    def content(self, obj: Any, side: int) -> Any:
        """Return the contents of an object at the end of a side."""
        known = self.heaps[side].get(id(obj))
        return kept_in(obj) if known is None else known

    def attributes(self, obj: Any, side: int) -> Any:
        """Return the attributes that an instance of a container class had at the end of a side, if recorded."""
        held = getattr(obj, "__dict__", None)
        return None if held is None else self.heaps[side].get(id(held))

    def rebuilt(self, a: Any, b: Any, slots: list[int], get: Callable[[int], Any], use: Callable[[Any], None]) -> None:
        """Merge two tuples. The result is built when all elements are known."""
        values: list[Any] = [None] * len(slots)
        missing = len(slots)
        kind = type(a)

        def set_(value: Any, i: int) -> None:
            nonlocal missing
            values[i] = value
            missing -= 1
            if missing == 0:
                use(tuple(values) if kind is tuple else kind(*values))

        for i in slots:
            x, y = get(i)
            self.merge(x, y, lambda value, i=i: set_(value, i))

    def check_aliases(self, a: Any, b: Any) -> None:
        """Raise F209 unless two mutable objects correspond one to one and no other reference shows either."""
        name = type(a).__name__
        first, second = self.partners
        if first.setdefault(id(a), b) is not b or second.setdefault(id(b), a) is not a:
            raise MergeError(
                "F209", f"two names share one {name} object on one side and have different ones on the other",
                hint="use a separate object for each name",
            )  # fmt: skip
        old = [obj for obj in (a, b) if id(obj) in self.before.seen]
        if old:
            self.visible().check(old)

    def visible(self) -> Surroundings:
        """Return the references, other than merged variables, that can reach an object after the branch."""
        if self.surroundings is None:
            contents = {key: unchanged(x, self.heaps[1][key]) for key, x in self.heaps[0].items()}
            kept = [x for x, y in self.names.values() if x is y]
            self.surroundings = Surroundings(self.names, kept, contents, consumers(self.tracer))
        return self.surroundings

    def check_kept(self) -> None:
        """Raise F209 if a merged object is also part of a value that both sides leave equal."""
        if self.surroundings is None:
            return
        self.surroundings.reached.add(self.kept)
        self.surroundings.check(
            obj for partners in self.partners for obj in partners.values() if id(obj) in self.before.seen
        )

    def is_replaced(self, obj: Any) -> bool:
        """Return True if a merged object replaces this one."""
        return any(partners.get(id(obj), obj) is not obj for partners in self.partners)

    def mark(self) -> Any:
        """Return the state to which :meth:`forget` returns."""
        counts = len(self.made), len(self.pairs), len(self.types), len(self.kept)
        return counts, dict(self.fresh), tuple(dict(p) for p in self.partners)

    def forget(self, mark: Any) -> None:
        """Drop the results of a merge that failed."""
        counts, self.fresh, self.partners = mark
        for results, n in zip((self.made, self.pairs, self.types, self.kept), counts):
            del results[n:]

    # ---------------------------------------------------------------------------------------------------- the result

    def finish(self, results: Sequence[SSAValue]) -> None:
        """Pass each merged value to its callback."""
        for at, form, use in self.made:
            use(form.make([results[k] if isinstance(k, int) else k for k in at]))

    def yields(self, side: int) -> list[SSAValue]:
        """Return the leaves that a side yields."""
        return [pair[side] for pair in self.pairs]


def consumers(tracer: Tracer) -> list[FrameType]:
    """Return the frames of generators that ``for`` statements are consuming, outermost first."""
    return tracer.state.setdefault("consumers", [])


def unchanged(x: Any, y: Any) -> Any:
    """Return the part of an object's contents that is the same in two states."""
    if x is y:
        return x
    if isinstance(x, dict):
        return {k: v for k, v in x.items() if k in y and y[k] is v}
    if isinstance(x, set):
        return x & y
    return [v for v, w in zip(x, y) if v is w]


def slots_of(kept: Any) -> list[Any]:
    """Return the slots of an object's content: keys, attributes or indices; none for a set."""
    return list(kept) if isinstance(kept, dict) else [] if isinstance(kept, set) else list(range(len(kept)))


def check_shape(obj: Any, x: Any, y: Any, first: str = "on one side", second: str = "on the other") -> None:
    """Raise F207 unless an object has the same elements, keys or attributes in two states.

    ``first`` and ``second`` name the states in messages.
    """
    name = type(obj).__name__
    if isinstance(x, dict):
        if list(x) != list(y) and set(x) != set(y):
            only = sorted(str(k) for k in set(x) ^ set(y))
            what = "keys" if isinstance(obj, dict) else "attributes"
            raise MergeError("F207", f"{_an(name)} has different {what} {first} and {second}: {', '.join(only)}")
        if isinstance(obj, dict) and list(x) != list(y):
            raise MergeError(
                "F207", f"{_an(name)} has its keys in another order {first} than {second}",
                hint="insert the keys in the same order",
            )  # fmt: skip
    elif len(x) != len(y):
        raise MergeError(
            "F207", f"{_an(name)} has {_elements(len(x))} {first} and {len(y)} {second}",
            hint="its length must be known at compile time: append on both sides, or select the value to append",
        )  # fmt: skip


def _an(name: str) -> str:
    return f"an {name}" if name[0] in "aeiouAEIOU" else f"a {name}"


def _elements(n: int) -> str:
    return f"{n} element" if n == 1 else f"{n} elements"


def _is_truth(value: SSAValue, truth: bool) -> bool:
    owner: Any = value.owner
    if getattr(owner, "name", "") != "arith.constant":
        return False
    from xdsl.dialects.builtin import IntegerAttr, IntegerType

    attribute = owner.properties["value"]
    return (
        isinstance(attribute, IntegerAttr) and attribute.type == IntegerType(1) and bool(attribute.value.data) == truth
    )


def check_iterator(tracer: Tracer, iterator: Any) -> None:
    """Raise F159 if an iterator that an open run-time branch or loop shares with its surroundings is advanced."""
    for region in regions(tracer):
        snap = getattr(region, "snap", None)
        if snap is not None and id(iterator) in snap.iterators:
            raise shared(iterator)


_CURES = {
    RANDOM: "draw the numbers before it",
    FILE: "read the file before it",
    BUFFER: "create it inside, or write to a file on disk",
}


def shared(obj: Any) -> MergeError:
    """Return the error for an iterator or array shared with the surroundings of a region and changed in it."""
    what = described(obj)
    if not what and not isinstance(obj, Iterator):
        what = f"an attribute of a '{type(obj).__name__}' object"
    if what:
        return MergeError(
            "F209", f"{what} is changed in a run-time branch or loop",
            hint=_CURES.get(what, "keep the changing values in a list or in a register tensor"),
        )  # fmt: skip
    return MergeError(
        "F159", "an iterator created before a run-time branch or loop is advanced inside it",
        hint="create it inside, or use an index",
    )  # fmt: skip


def check_unmoved(snap: Snapshot) -> None:
    """Raise if a region changed state that a snapshot cannot restore: iterators, arrays, globals."""
    if (moved := snap.moved()) is not None:
        raise shared(moved)
    if (found := snap.rebound_global()) is not None:
        raise SyntaxErrorInKernel(
            "F158", f"the global '{found[0]}' of module '{found[1]}' is assigned in a run-time branch or loop, which "
            "would happen once, at compile time",
            hint="return the value, or store it in an object passed as an argument",
        )  # fmt: skip


class Branch:
    """A run-time ``if``. Converted code runs both sides, then fetches the merged results."""

    __slots__ = ("blocks", "condition", "depth", "entry", "heaps", "outs", "saved", "side", "site", "snap", "tracer")
    rolled = True

    def __init__(self, tracer: Tracer, condition: SSAValue, site: Site):
        self.tracer = tracer
        self.condition = condition
        self.site = site
        self.side = 0
        self.outs: list[tuple[Any, ...]] = []
        self.heaps: list[dict[int, Any]] = []
        self.blocks: list[Block] = []
        self.saved = tracer.block
        self.snap: Snapshot | None = None
        self.entry: tuple[Any, ...] = ()
        self.depth = len(regions(tracer))

    def __iter__(self) -> Branch:
        return self

    def __next__(self) -> int:
        self.side += 1
        if self.side > 2:
            raise StopIteration
        return 3 if self.side == 1 else 2

    def enter(self, values: Mapping[str, Any]) -> tuple[Any, ...]:
        """Begin a side: reset the names that the branch assigns to their values before it, and open a block."""
        from xdsl.ir import Block

        if self.snap is None:
            check_depth(self.tracer)
            self.entry = tuple(values.get(n, U) for n in self.site.names)
            self.snap = Snapshot(self.site.rooted(values), self.site.globals)
            regions(self.tracer).append(self)
        else:
            self.snap.restore()
        self.tracer.block = Block()
        self.blocks.append(self.tracer.block)
        return tuple([self.entry[i] for i in self.site.entering])

    def leave(self, values: Mapping[str, Any]) -> None:
        """End a side and record its values."""
        assert self.snap is not None
        self.outs.append(tuple(values.get(n, U) for n in self.site.names))
        self.heaps.append(self.snap.state())
        check_unmoved(self.snap)
        del regions(self.tracer)[self.depth + 1 :]
        if self.side == 2:
            del regions(self.tracer)[self.depth :]
            self.tracer.block = self.saved

    def results(self) -> tuple[Any, ...]:
        """Emit the ``scf.if`` and return the merged values of the names; merged object fields are stored."""
        tracer, site = self.tracer, self.site
        assert self.snap is not None
        pairs = dict(zip(site.names, zip(*self.outs)))
        merger = Merger(tracer, self.condition, self.blocks, self.snap, self.heaps, pairs)
        final: list[Any] = [U] * len(site.leaving)
        for i, at in enumerate(site.leaving):
            name, a, b = site.names[at], self.outs[0][at], self.outs[1][at]

            def set_(value: Any, i: int = i) -> None:
                final[i] = value

            mark = merger.mark()
            try:
                merger.merge(a, b, set_, returned=name == VALUE)
                if (
                    (a is U) != (b is U)
                    and name != VALUE
                    and not (self.entry[at] is U and had_reason(tracer, site, name))
                ):
                    remember_lost(tracer, name, Lost(site, "side" if b is U else "other side"))
            except MergeError as e:  # The error is raised only if the name is read.
                merger.forget(mark)
                final[i] = U
                remember_lost(tracer, name, Lost(site, e))
        for key, (obj, _) in self.snap.objects.items():
            x, y = (heap[key] for heap in self.heaps)
            if merger.is_replaced(obj):
                self.snap.restore(obj)  # An enclosing loop compares it.
            elif x is not y:
                self.merge_places(merger, obj, x, y)
        try:
            merger.check_kept()
        except MergeError as e:
            raise named(e, "a container or object", site) from None
        op = self.make(merger)
        merger.finish(op.results)
        return tuple(final)

    def merge_places(self, merger: Merger, obj: Any, x: Any, y: Any) -> None:
        """Merge the two states of an object that existed before the branch."""
        unsaid = getattr(type(obj), "__cute_unsaid__", {})
        try:
            if isinstance(x, set):
                if x != y:
                    raise MergeError("F207", "a set has different elements on the two sides")
                return
            check_shape(obj, x, y)
            for slot in slots_of(x):
                if x[slot] is y[slot]:
                    continue
                try:
                    merger.merge(x[slot], y[slot], lambda value, slot=slot: put(obj, slot, value))
                except MergeError:
                    if slot not in unsaid:
                        raise
                    put(obj, slot, unsaid[slot])
        except MergeError as e:
            raise named(e, place_name(obj, locals().get("slot")), self.site) from None

    def make(self, merger: Merger) -> Operation:
        """Append the ``scf.if``."""
        from xdsl.ir import Region

        tracer = self.tracer
        for side, block in enumerate(self.blocks):
            with tracer.into(block):
                tracer.op("scf.yield", merger.yields(side), ())
        then, other = self.blocks
        lone = other.first_op is other.last_op and not merger.pairs
        return tracer.op(
            "scf.if", [self.condition], merger.types, regions=[Region(then), Region() if lone else Region(other)]
        )


def place_name(obj: Any, slot: Any) -> str:
    """Return the name of an object's slot for messages."""
    kind = type(obj).__name__
    if isinstance(obj, list | dict):
        return f"an element of a {kind}" if slot is None else f"element {slot!r} of a {kind}"
    return f"a {kind}" if slot is None else f"{kind}.{slot}"


def named(error: MergeError, name: str, site: Site, what: str = "differs after this branch") -> MergeError:
    """Return a merge error extended by the name of the place, and a note with the branch or loop."""
    cls = type(error)
    return cls(
        error.code, error.message if error.code == "F207" else f"{name} {what}: {error.message}", hint=error.hint,
        notes=[*error.notes, (f"the {'branch' if site.kind in ('if', 'with') else 'loop'}", site.place)],
    )  # fmt: skip


def pick(tracer: Tracer, condition: Any, first: Callable[[], Any], second: Callable[[], Any]) -> Any:
    """Return one of two values by a run-time condition. Each is traced into its own side."""
    from xdsl.ir import Block, Region

    check_depth(tracer)
    snap = Snapshot([first, second])
    values: list[Any] = []
    blocks: list[Block] = []
    heaps: list[Any] = []
    depth = len(regions(tracer))
    regions(tracer).append(Open(blocks))
    for side in (first, second):
        with tracer.into(Block()) as block:
            blocks.append(block)
            values.append(side())
        check_unmoved(snap)
        heaps.append(snap.state())
        if side is first:  # The second side leaves what both change alike.
            snap.restore()
    del regions(tracer)[depth:]
    merger = Merger(tracer, condition.ssa, blocks, snap, heaps, {})
    result: list[Any] = []
    merger.merge(values[0], values[1], result.append)
    for key, (obj, _) in snap.objects.items():
        x, y = (heap[key] for heap in heaps)
        if merger.is_replaced(obj):
            snap.restore(obj)
            continue
        if x is y:
            continue
        check_shape(obj, x, y)
        for slot in slots_of(x):
            if x[slot] is not y[slot]:
                merger.merge(x[slot], y[slot], lambda value, obj=obj, slot=slot: put(obj, slot, value))
    merger.check_kept()
    if all(_is_cheap(b) for b in blocks) and all(_selectable(t) for t in merger.types):
        for block in blocks:
            splice(block, tracer)
        merger.finish([tracer.value("arith.select", [condition.ssa, x, y], [x.type]) for x, y in merger.pairs])
        return result[0]
    for side, block in enumerate(blocks):
        with tracer.into(block):
            tracer.op("scf.yield", merger.yields(side), ())
    lone = blocks[1].first_op is blocks[1].last_op and not merger.pairs
    op = tracer.op(
        "scf.if", [condition.ssa], merger.types, regions=[Region(blocks[0]), Region() if lone else Region(blocks[1])]
    )
    merger.finish(op.results)
    return result[0]


def _selectable(t: Attribute) -> bool:
    from xdsl.dialects.builtin import AnyFloat, IndexType, IntegerType

    return isinstance(t, IntegerType | IndexType | AnyFloat)


def _is_cheap(block: Block) -> bool:
    ops = list(block.ops)
    return len(ops) <= MOST_SPECULATED and all(op.name in CHEAP for op in ops)


def splice(block: Block, tracer: Tracer) -> None:
    """Append the ops of a block at the insertion point."""
    for op in list(block.ops):
        op.detach()
        tracer.block.add_op(op)


# ----------------------------------------------------------------------------------------------------- and, or, not, ==


def truth_of(x: Any) -> Any:
    """Return the truth of a value: True, False, or a run-time Boolean."""
    if x is True or x is False:
        return x
    if isinstance(x, Numeric) and not x.is_static:
        return x if type(x) is Boolean else Boolean(x)
    return bool(x)


def is_dynamic_truth(x: Any) -> bool:
    """Return True for a run-time Boolean."""
    return type(x) is Boolean and not x.is_static


def inverted(x: Any) -> Any:
    """Return the negation of a run-time Boolean."""
    return Boolean.of(emit("arith.xori", [x.ssa, current().constant(True, x.ssa.type)]))


def both(a: Any, b: Callable[[], Any]) -> Any:
    """Return ``a and b()`` for a run-time Boolean ``a``. Costly operands are evaluated only if ``a`` is true."""
    return _joined(a, b, conjunction=True)


def either(a: Any, b: Callable[[], Any]) -> Any:
    """Return ``a or b()`` for a run-time Boolean ``a``. Costly operands are evaluated only if ``a`` is false."""
    return _joined(a, b, conjunction=False)


def _joined(a: Any, b: Callable[[], Any], *, conjunction: bool) -> Any:
    from xdsl.ir import Block, Region

    tracer = current()
    snap = Snapshot([b])
    depth = len(regions(tracer))
    block = Block()
    regions(tracer).append(Open([block]))
    with tracer.into(block):
        value = b()
    del regions(tracer)[depth:]
    check_unmoved(snap)
    now = snap.state()
    # If the operand changes objects, it must run conditionally.
    if any(now[key] is not kept for key, (_, kept) in snap.objects.items()):
        snap.restore()
        erase([block])
        return pick(tracer, a, b, lambda: False) if conjunction else pick(tracer, a, lambda: True, b)
    if block.first_op is None and (value is True or value is False):
        return (a if value else False) if conjunction else (True if value else a)
    if not isinstance(value, bool | Boolean):
        word = "and" if conjunction else "or"
        raise StaticError(
            "F151", f"'{word}' would give a bool or {_named(value)}, depending on a run-time condition",
            hint="compare both sides, or write 'x if c else y'",
        )  # fmt: skip
    number = value if isinstance(value, Boolean) else Boolean(value)
    t = Boolean.attribute
    ops = list(block.ops)
    if len(ops) <= MOST_SPECULATED and all(op.name in CHEAP for op in ops):
        splice(block, tracer)
        return Boolean.of(tracer.value("arith.andi" if conjunction else "arith.ori", [a.ssa, number.ssa], [t]))
    with tracer.into(block):
        tracer.op("scf.yield", [number.ssa], ())
    with tracer.into(Block()) as other:
        tracer.op("scf.yield", [tracer.constant(not conjunction, t)], ())
    sides = [Region(block), Region(other)] if conjunction else [Region(other), Region(block)]
    return Boolean.of(tracer.value("scf.if", [a.ssa], [t], regions=sides))


def select(condition: Any, a: Any, b: Any) -> Any:
    """Return ``a if condition else b`` for two values that are already computed."""
    truth = truth_of(condition)
    if truth is True or truth is False:
        return a if truth else b
    return pick(current(), truth, lambda: a, lambda: b)


def _named(value: Any) -> str:
    return value.describe() if isinstance(value, Dynamic) else repr(value)


def equal(a: Any, b: Any) -> Any:
    """Return ``a == b``. Tuples, lists and dataclasses are compared leaf by leaf."""
    cls = type(a)
    for base in (tuple, list):
        if isinstance(a, base) and isinstance(b, base):
            if not cls.__eq__ is type(b).__eq__ is base.__eq__:
                return a == b
            return _all_equal(a, b) if len(a) == len(b) else False
    if cls is type(b):
        fields = getattr(cls, "__dataclass_fields__", None)
        if fields is not None and cls.__dataclass_params__.eq and _is_generated(cls.__eq__):
            names = [f.name for f in fields.values() if f.compare]
            return _all_equal([getattr(a, n) for n in names], [getattr(b, n) for n in names])
    return a == b


def _is_generated(f: Any) -> bool:
    code = getattr(f, "__code__", None)
    return code is not None and code.co_filename == "<string>"


def _all_equal(a: Any, b: Any) -> Any:
    result: Any = True
    for x, y in zip(a, b):
        if x is y and not isinstance(x, Dynamic):
            continue
        one = truth_of(equal(x, y))
        if one is False:
            return False
        if one is not True:
            result = one if result is True else both(result, lambda one=one: one)
    return result


def unequal(a: Any, b: Any) -> Any:
    """Return ``a != b``. Tuples, lists and dataclasses are compared leaf by leaf."""
    if type(a) is not type(b) or (not isinstance(a, tuple | list) and not hasattr(type(a), "__dataclass_fields__")):
        return a != b
    same = equal(a, b)
    return inverted(same) if is_dynamic_truth(same) else not same
