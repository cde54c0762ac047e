"""Branches whose condition is known when the kernel runs only: both sides are traced, what they leave is merged."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from cute_dialect.front.errors import MergeError, SyntaxErrorInKernel
from cute_dialect.front.jumps import VALUE
from cute_dialect.front.merge import is_value
from cute_dialect.front.mutable_state import Snapshot, U, is_mutable, kept_in, put, same
from cute_dialect.front.values import Dynamic, Form, form_of

if TYPE_CHECKING:
    from xdsl.ir import Attribute, Block, Operation, SSAValue

    from cute_dialect.front.analysis import Site
    from cute_dialect.front.trace import Tracer

__all__ = [
    "Branch",
    "Lost",
    "Merger",
    "Open",
    "blank",
    "check_depth",
    "check_iterator",
    "check_unmoved",
    "erase",
    "pick",
    "place_name",
    "regions",
    "remember_lost",
    "slots_of",
]

_CHEAP = """
    addi subi muli andi ori xori shli cmpi cmpf select addf subf mulf negf extsi extui trunci extf truncf sitofp uitofp
    bitcast minsi maxsi minui maxui minimumf maximumf minnumf maxnumf constant index_cast
"""
CHEAP = frozenset(f"arith.{name}" for name in _CHEAP.split())
"""Ops that may run where their side is not taken: pure, never a fault, an instruction or two."""
MOST_SPECULATED = 8
"""Ops a side."""


def regions(tracer: Tracer) -> list[Any]:
    """Return the branches and loops of run time that are being traced, outermost first."""
    return tracer.state.setdefault("regions", [])


class Open(NamedTuple):
    """A region of run time that is being traced, and its blocks."""

    blocks: list[Block]


DEEPEST = 64
"""Branches and loops of run time that may be nested in one another, across all functions."""


def check_depth(tracer: Tracer) -> None:
    """Refuse branches nested so deep that only a recursion whose end is decided at run time makes them (F161)."""
    if len(regions(tracer)) >= DEEPEST:
        raise RecursionError(f"branches and loops of run time are nested {DEEPEST} deep")


def erase(blocks: Sequence[Block]) -> None:
    """Drop the ops of blocks that are not used; what they used forgets them."""
    for block in blocks:
        for op in list(block.ops)[::-1]:
            op.detach()
            op.erase(safe_erase=False)


class Lost:
    """Why a name has no value after a branch or a loop; told if it is read there."""

    __slots__ = ("error", "site")

    def __init__(self, site: Site, error: MergeError | str):
        self.site = site
        self.error = error


def remember_lost(tracer: Tracer, name: str, lost: Lost, path: str | None = None) -> None:
    """Keep why a name of a file has no value, for the error if it is read."""
    tracer.state.setdefault("lost", {})[name, path or lost.site.path] = lost


def blank(form: Form, tracer: Tracer) -> list[SSAValue]:
    """Return leaves that are never read, for a value that is not there."""
    from xdsl.dialects.builtin import AnyFloat, IndexType, IntegerType

    leaves: list[SSAValue] = []
    for t in form.types:
        if isinstance(t, IntegerType | IndexType):
            leaves.append(tracer.constant(0, t))
        elif isinstance(t, AnyFloat):
            leaves.append(tracer.constant(0.0, t))
        else:
            raise MergeError(
                "F209", f"a value of type {t} is returned where a run-time condition holds, none where it does not",
                hint="return it at the end of the function, or on both sides of the condition",
            )  # fmt: skip
    return leaves


class Merger:
    """The results of a branch: pairs of leaves, one from each side."""

    def __init__(self, tracer: Tracer, condition: SSAValue, blocks: Sequence[Block], before: Snapshot | None):
        self.tracer = tracer
        self.condition = condition
        self.blocks = blocks
        self.before = before
        self.types: list[Attribute] = []
        self.pairs: list[tuple[SSAValue, SSAValue]] = []
        self.made: list[tuple[list[int | SSAValue], Form, Callable[[Any], None]]] = []
        self.partners: tuple[dict[int, Any], dict[int, Any]] = ({}, {})
        self.fresh: dict[tuple[int, int], Any] = {}

    def merge(self, a: Any, b: Any, use: Callable[[Any], None], *, returned: bool = False) -> None:
        """Merge two values; ``use`` is called with the result when the branch is made.  Raises MergeError."""
        if same(a, b):
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
        """Merge a value that one side returns, while the other goes on: it is read only after the first."""
        form = form_of(b if a is U else a)
        if not form.types:
            use(b if a is U else a)
        elif a is U:
            self.leaves(form, blank(form, self.tracer), self.taken(form, b, 1), use)
        else:
            self.leaves(form, self.taken(form, a, 0), blank(form, self.tracer), use)

    def taken(self, form: Form, value: Any, side: int) -> list[SSAValue]:
        """Return the leaves of a value; conversions go into its side."""
        with self.tracer.into(self.blocks[side]):
            return form.take(value)

    def leaves(self, form: Form, a: list[SSAValue], b: list[SSAValue], use: Callable[[Any], None]) -> None:
        """Note the leaves of both sides, and who gets the value that the results make."""
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
        """Tell whether two different values are containers or instances of one class."""
        return (type(a) is type(b) and kept_in(a) is not None) or (isinstance(a, tuple) and type(a) is type(b))

    def structure(self, a: Any, b: Any, use: Callable[[Any], None]) -> None:
        """Merge containers or instances element by element; those that can change must be new on both sides."""
        key = (id(a), id(b))
        if key in self.fresh:
            use(self.fresh[key])
            return
        if isinstance(a, tuple):
            if len(a) != len(b):
                raise MergeError("F204", f"it is a tuple of {len(a)} or of {len(b)}")
            self.rebuilt(a, b, list(range(len(a))), lambda i: (a[i], b[i]), use)
            return
        if is_mutable(a) and not is_value(a):
            self.check_new(a, b)
        x: Any = kept_in(a)
        y: Any = kept_in(b)
        if isinstance(x, set) or isinstance(y, set):
            raise MergeError("F209", "it is one set or another", hint="use a list, or one set for both")
        check_shape(a, x, y)
        if is_value(a):
            made = copy.copy(a)
        else:
            made = object.__new__(type(a)) if not isinstance(a, list | dict) else copy.copy(a)
        self.fresh[key] = made
        for slot in slots_of(x):

            def set_(value: Any, slot: Any = slot) -> None:
                if isinstance(made, list | dict):
                    made[slot] = value
                else:
                    object.__setattr__(made, slot, value)

            self.merge(x[slot], y[slot], set_)
        use(made)

    def rebuilt(self, a: Any, b: Any, slots: list[int], get: Callable[[int], Any], use: Callable[[Any], None]) -> None:
        """Merge two tuples: the result is made when all elements are known."""
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

    def check_new(self, a: Any, b: Any) -> None:
        """Check that two objects which can change exist since the branch only, and that no third is in play."""
        name = type(a).__name__
        if self.before is not None and (id(a) in self.before.seen or id(b) in self.before.seen):
            raise MergeError(
                "F209", f"it is one {name} or another, one of which was there before the branch",
                hint="change it in place, or copy it on both sides",
            )  # fmt: skip
        first, second = self.partners
        if first.setdefault(id(a), b) is not b or second.setdefault(id(b), a) is not a:
            raise MergeError("F209", f"two names share one {name} on one side, and hold different ones on the other")

    # ---------------------------------------------------------------------------------------------------- the result

    def finish(self, results: Sequence[SSAValue]) -> None:
        """Give each merged value to where it belongs."""
        for at, form, use in self.made:
            use(form.make([results[k] if isinstance(k, int) else k for k in at]))

    def yields(self, side: int) -> list[SSAValue]:
        """Return the leaves that a side yields."""
        return [pair[side] for pair in self.pairs]


def slots_of(kept: Any) -> list[Any]:
    """Return the places of what an object holds: keys, attributes, indices; of a set none."""
    return list(kept) if isinstance(kept, dict) else [] if isinstance(kept, set) else list(range(len(kept)))


def check_shape(obj: Any, x: Any, y: Any, first: str = "on one side", second: str = "on the other") -> None:
    """Check that an object has the same elements, keys or attributes at two moments.  Raises F207.

    ``first``, ``second``: how messages call the moments.
    """
    name = type(obj).__name__
    if isinstance(x, dict):
        if list(x) != list(y) and set(x) != set(y):
            only = sorted(str(k) for k in set(x) ^ set(y))
            what = "keys" if isinstance(obj, dict) else "attributes"
            raise MergeError("F207", f"{_an(name)} has other {what} {first} than {second}: {', '.join(only)}")
    elif len(x) != len(y):
        raise MergeError(
            "F207", f"{_an(name)} has {_elements(len(x))} {first}, {len(y)} {second}",
            hint="its length must be known while compiling: append on both sides, or select the value to append",
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
    """Refuse to advance an iterator that a branch or loop of run time shares with what surrounds it (F159)."""
    for region in regions(tracer):
        snap = getattr(region, "snap", None)
        if snap is not None and id(iterator) in snap.iterators:
            raise shared(iterator)


def shared(obj: Any) -> MergeError:
    """Return the error for an iterator that is advanced, or an array that is changed, where a region shares it."""
    if hasattr(obj, "tobytes") or hasattr(obj, "getvalue"):
        what = "an array of numpy" if hasattr(obj, "dtype") else f"an object of type '{type(obj).__name__}'"
        return MergeError(
            "F209", f"{what} is changed in a branch or loop of run time",
            hint="keep what changes in a list, or in a tensor of registers",
        )  # fmt: skip
    return MergeError(
        "F159", "an iterator that was made before a branch or loop of run time is advanced inside of it",
        hint="make it inside, or use an index",
    )  # fmt: skip


def check_unmoved(snap: Snapshot) -> None:
    """Refuse a region that changed state which a snapshot cannot restore: iterators, arrays, globals."""
    if (moved := snap.moved()) is not None:
        raise shared(moved)
    if (found := snap.rebound_global()) is not None:
        raise SyntaxErrorInKernel(
            "F158", f"the global '{found[0]}' of module '{found[1]}' is assigned in a branch or loop of run time: it "
            "would be, once, while compiling", hint="return the value, or keep it in an object that is passed",
        )  # fmt: skip


class Branch:
    """An ``if`` of run time; generated code walks its two sides, then asks for what both leave."""

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
        """Begin a side: give the names that the branch assigns what they were before, open the side's block."""
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
        """End a side."""
        assert self.snap is not None
        self.outs.append(tuple(values.get(n, U) for n in self.site.names))
        self.heaps.append(self.snap.state())
        check_unmoved(self.snap)
        del regions(self.tracer)[self.depth + 1 :]
        if self.side == 2:
            del regions(self.tracer)[self.depth :]
            self.tracer.block = self.saved

    def results(self) -> tuple[Any, ...]:
        """Make the ``scf.if``; give the names what they are after it, and the places of objects too."""
        tracer, site = self.tracer, self.site
        assert self.snap is not None
        merger = Merger(tracer, self.condition, self.blocks, self.snap)
        final: list[Any] = [U] * len(site.leaving)
        for i, at in enumerate(site.leaving):
            name, a, b = site.names[at], self.outs[0][at], self.outs[1][at]

            def set_(value: Any, i: int = i) -> None:
                final[i] = value

            counts = len(merger.made), len(merger.pairs), len(merger.types)
            try:
                merger.merge(a, b, set_, returned=name == VALUE)
                if (a is U) != (b is U) and name != VALUE:
                    remember_lost(tracer, name, Lost(site, "side" if b is U else "other side"))
            except MergeError as e:  # an error only if it is read
                del merger.made[counts[0] :], merger.pairs[counts[1] :], merger.types[counts[2] :]
                final[i] = U
                remember_lost(tracer, name, Lost(site, e))
        for key, (obj, _) in self.snap.objects.items():
            x, y = (heap[key] for heap in self.heaps)
            self.merge_places(merger, obj, x, y)
        op = self.make(merger)
        merger.finish(op.results)
        return tuple(final)

    def merge_places(self, merger: Merger, obj: Any, x: Any, y: Any) -> None:
        """Merge what both sides left in an object that was there before."""
        unsaid = getattr(type(obj), "__cute_unsaid__", {})
        try:
            if isinstance(x, set):
                if x != y:
                    raise MergeError("F207", "a set has other elements on one side than on the other")
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
    """Return how messages name a place of an object."""
    kind = type(obj).__name__
    if isinstance(obj, list | dict):
        return f"an element of a {kind}" if slot is None else f"element {slot!r} of a {kind}"
    return f"a {kind}" if slot is None else f"{kind}.{slot}"


def named(error: MergeError, name: str, site: Site, what: str = "differs after this branch") -> MergeError:
    """Return an error of a merge with the name of the place, and the branch."""
    cls = type(error)
    return cls(
        error.code, error.message if error.code == "F207" else f"{name} {what}: {error.message}", hint=error.hint,
        notes=[*error.notes, (f"the {'branch' if site.kind in ('if', 'with') else 'loop'}", site.place)],
    )  # fmt: skip


def pick(tracer: Tracer, condition: Any, first: Callable[[], Any], second: Callable[[], Any]) -> Any:
    """Return one of two values by a condition of run time; each is traced into a side of its own."""
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
        snap.restore()
    del regions(tracer)[depth:]
    merger = Merger(tracer, condition.ssa, blocks, snap)
    result: list[Any] = []
    merger.merge(values[0], values[1], result.append)
    for key, (obj, _) in snap.objects.items():
        x, y = (heap[key] for heap in heaps)
        check_shape(obj, x, y)
        for slot in slots_of(x):
            if x[slot] is not y[slot]:
                merger.merge(x[slot], y[slot], lambda value, obj=obj, slot=slot: put(obj, slot, value))
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
    """Append the ops of a block to where ops go."""
    for op in list(block.ops):
        op.detach()
        tracer.block.add_op(op)
