"""``for``: Python's own over what is static, ``scf.for`` over ranges, ``scf.while`` where a jump may end it.

A loop over a static range is traced once, as one of run time; if its body needs the index as a Python number, or what
it changes cannot be carried, it becomes Python's loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import GeneratorType
from typing import TYPE_CHECKING, Any

from cute_dialect.front.branches import check_iterator, regions
from cute_dialect.front.convert import is_converted
from cute_dialect.front.errors import CuteError, LimitError, LoopError, StaticError, SyntaxErrorInKernel
from cute_dialect.front.generators import GeneratorFor
from cute_dialect.front.loop_ranges import LoopRange, UnrolledRange
from cute_dialect.front.places import same
from cute_dialect.front.recording import remark
from cute_dialect.front.rolled import Rolled
from cute_dialect.front.trace import locate
from cute_dialect.front.truth import both, inverted, select

if TYPE_CHECKING:
    from xdsl.ir import SSAValue

    from cute_dialect.front.analysis import Site
    from cute_dialect.front.trace import Tracer

__all__ = ["MOST_TURNS", "For", "StaticFor", "loop_over"]

MOST_TURNS = 4096
"""Turns of a loop that is walked while compiling."""


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
        self.last_op = tracer.block.last_op  # a trace that is dropped leaves the bounds
        self.guess()

    def bounds(self) -> None:
        """Find the type of the index, and the bounds as values of it."""
        from cute_dialect.front.dtypes import Boolean, Int32
        from cute_dialect.front.numeric import as_number, literal, promoted

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
        start, stop, step = (
            literal(kind, y) if isinstance(y, int) and (x is not step or y > 0) else x
            for x, y in zip((start, stop, step), bounds)
        )
        self.kind = kind
        self.first, self.last = kind(start), kind(stop)
        self.counted = not step.is_static or step.value < 0 or self.may_wrap(step.value)
        if self.counted:
            self.count(step)
        else:
            self.step = kind(step)
            self.check_end(step.value)

    def check_end(self, step: int) -> None:
        """Check, on the interpreter and on request, that an Int32 index does not wrap: machine code does not check."""
        from cute_dialect.front.numeric import facts_of

        tracer, high = self.tracer, facts_of(self.last).high
        most = (1 << (self.kind.width - int(self.kind.signed))) - step
        if step > 1 and (high is None or high > most) and tracer.state.get("asserts"):
            from xdsl.dialects.builtin import StringAttr

            text = (
                f"the index of this range wraps: a range of {self.kind!r} with a step of {step} ends at {most} at "
                "most; count in Int64"
            )
            fits: Any = self.last <= most
            tracer.op("cf.assert", [fits.ssa], (), {"msg": StringAttr(text)})

    def may_wrap(self, step: int) -> bool:
        """Return True if the first number past the end may not fit the type of the index.

        Int32 is left out: it wraps only in ranges that end within a step of 2**31, and is the type of most loops.
        """
        from cute_dialect.front.dtypes import Int32
        from cute_dialect.front.numeric import facts_of

        if step == 1 or (self.kind is Int32 and not self.last.is_static):
            return False
        most = (1 << (self.kind.width - int(self.kind.signed))) - 1
        high = facts_of(self.last).high
        return high is None or high > most - (step - 1)

    def count(self, step: Any) -> None:
        """Count iterations from 0, in a type in which neither their number nor the distance of the bounds wraps."""
        from cute_dialect.front.dtypes import Int32, Uint32, Uint64

        self.user = kind = self.kind
        wide: Any = Int32 if kind.width < 32 else Uint32 if kind.width == 32 else Uint64
        self.origin: Any = wide(self.first)
        first, last, origin, end = self.first, self.last, self.origin, wide(self.last)
        if step.is_static:
            up: Any = step.value > 0
            self.stride: Any = wide(abs(step.value))
            size = self.stride
        else:
            step = kind(step)
            self.check_step(step)
            up, self.stride = (step > 0), wide(step)
            size = select(up, self.stride, wide(0) - self.stride) if kind.signed else self.stride
            size = select(step == 0, wide(1), size)
        forwards = not step.is_static or step.value > 0
        backwards = kind.signed if not step.is_static else step.value < 0
        runs: Any = None
        distance: Any = None
        if forwards:
            runs, distance = first < last, end - origin
        if backwards:
            back = (first > last, origin - end)
            runs, distance = back if not forwards else (select(up, runs, back[0]), select(up, distance, back[1]))
        if not step.is_static:
            runs = both(runs, lambda: step != 0)
        if size.is_static and size.value == 1:
            turns = select(runs, distance, wide(0))
        else:  # of no iteration all bits are set, so that adding 1 gives 0
            none = wide.exactly(-1 if wide.signed else (1 << wide.width) - 1)
            turns = select(runs, (distance - 1) // size, none) + 1
        self.upwards = None if forwards and backwards else forwards
        self.bounds_now = (self.first, self.last)
        self.kind = wide
        self.first, self.last, self.step = wide(0), turns, wide(1)

    def check_step(self, step: Any) -> None:
        """Check, on the interpreter and on request, that a step known at run time is not 0."""
        if self.tracer.state.get("asserts"):
            from xdsl.dialects.builtin import StringAttr

            self.tracer.op("cf.assert", [(step != 0).ssa], (), {"msg": StringAttr("the step of a range is 0")})

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

        if self.counted:
            moved = self.kind.of(index) * self.stride
            number = self.user(self.origin - moved if self.upwards is False else self.origin + moved)
            first, last = map(facts_of, self.bounds_now)
            low, high = first.low, None if last.high is None else last.high - 1
            if self.upwards is False:
                low, high = None if last.low is None else last.low + 1, first.high
            elif self.upwards is None:
                low = high = None
            return self.user.of(number.ssa, Facts(low, high, facts_of(number).divisor))
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
        out = self.ending(values)
        heap = self.snap.state()
        flags = [out[self.names.index(f)] for f in self.site.flags]
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

    def enter(self) -> Sequence[Any]:
        if self.rolled:
            return super().enter()
        self.enters = False
        return [self.values[i] for i in self.site.entering]

    def make_for(self, out: Sequence[Any], heap: Mapping[int, Any]) -> None:
        """Make the ``scf.for``."""
        from xdsl.dialects.builtin import IntegerAttr, StringAttr, UnitAttr, i32
        from xdsl.ir import Region

        tracer = self.tracer
        tracer.op("scf.yield", self.outgoing(out, heap), ())
        if self.numbers.unroll == 1:  # ptxas makes copies of short loops unless the first of a turn says this
            said = {"ptxCode": StringAttr('.pragma "nounroll";')}
            pragma = tracer.op("nvvm.inline_ptx", [], [], said, segments=[0, 0, 0])
            pragma.detach()
            first = self.body.first_op
            assert first is not None
            self.body.insert_op_before(pragma, first)
        tracer.block = self.saved
        del regions(tracer)[self.depth :]
        operands = [self.first.ssa, self.last.ssa, self.step.ssa, *self.initial()]
        types = [v.type for v in operands[3:]]
        properties = {} if self.kind.signed else {"unsignedCmp": UnitAttr()}
        attributes = {"cute.unroll": IntegerAttr(self.numbers.unroll, i32)} if self.numbers.unroll > 1 else None
        op = tracer.op("scf.for", operands, types, properties, regions=[Region(self.body)], attributes=attributes)
        self.finished(op.results)

    def make_while(self, out: Sequence[Any], heap: Mapping[int, Any], flags: Sequence[Any]) -> None:
        """Make an ``scf.while`` with the counter: a jump may end the loop."""
        remark("R1", "a jump may end this loop, so that its turns are not counted: it is a while", self.site.place)
        from xdsl.ir import Block, Region

        from cute_dialect.front.dtypes import Boolean

        tracer, kind = self.tracer, self.kind
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
        for name, value in zip(self.site.flags, results[len(results) - len(flag_values) :]):
            self.final[self.names.index(name)] = Boolean.of(value)

    def again(self, error: BaseException) -> bool:
        """Walk a static range as Python does, if tracing it once did not work."""
        if self.static is None or not self.rolled or isinstance(error, RecursionError | LimitError):
            return False
        if isinstance(error, SyntaxErrorInKernel) and error.code in ("F150", "F158"):
            return False
        if len(self.static) > MOST_TURNS:
            if isinstance(error, StaticError) and error.code != "F141":
                locate(error)
                raise StaticError(
                    "F141", f"this loop of {len(self.static)} turns cannot be one loop of run time: {error.message}",
                    hint=f"at most {MOST_TURNS} turns are walked while compiling", notes=[("here", error.place)],
                ) from error  # fmt: skip
            return False
        if isinstance(error, CuteError):
            locate(error)
            why = f" ({error.place})" if error.place is not None else ""
            text = f"the {len(self.static)} turns of this loop are traced one after the other: {error.message}{why}"
            remark("R2", text, self.site.place)
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


def loop_over(
    tracer: Tracer | None, iterable: Any, site: Site, values: Mapping[str, Any]
) -> For | StaticFor | GeneratorFor:
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
    if cls is GeneratorType and tracer is not None and is_converted(iterable.gi_code):
        check_iterator(tracer, iterable)
        return GeneratorFor(tracer, iterable, site, values)
    if cls is UnrolledRange:
        return StaticFor(iterable.numbers)
    if tracer is not None and isinstance(iterable, Iterator):
        check_iterator(tracer, iterable)
    return StaticFor(iterable)
