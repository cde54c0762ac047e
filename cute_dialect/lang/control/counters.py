"""Loop counters for run-time ranges: the counter of ``scf.for`` or ``scf.while`` that implements ``range``.

Python's ranges never wrap and may have negative steps.  A machine counter wraps, and ``scf.for`` only counts up.
:func:`choose_counter` selects the cheapest counter that yields the range's values:

======================================  ====================================================================
range                                   counter
======================================  ====================================================================
end far from the limit of the type      the index itself
step and start known to be positive     the index itself, as an unsigned number, which cannot wrap
8 and 16 bits                           ``index * sign`` in Int32
step known, or known to be positive     ``|index - start|``, from 0 to the distance of the bounds
the same, if that counter may wrap      the iteration number
any other step                          the index, and the remaining distance to its last value
======================================  ====================================================================

The kernels of this package count the index itself in Int32: the launcher limits the extents that end their ranges. The
interpreter checks that the index does not wrap.

``range(n - 1, -1, -1)`` counts ``j`` from 0 to ``n``, with the index ``n - 1 - j``.
"""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING, Any

from cute_dialect.lang.control.branches import both, select
from cute_dialect.lang.values.dtypes import Boolean, Int32, Uint32, Uint64
from cute_dialect.lang.values.folding import Facts, facts_of, is_natural, least_greatest

if TYPE_CHECKING:
    from xdsl.ir import SSAValue

    from cute_dialect.lang.tracing.tracer import Tracer

_MOST_LONG_STEP = 1 << 20
"""Steps up to this size need 2**43 iterations to wrap a 64-bit distance."""

_MOST_OFFSET = 1 << 16
"""Constants up to this size may be added to the index of a thread that still counts as positive."""

_SIZES = ("nvvm.read.ptx.sreg.ntid.", "nvvm.read.ptx.sreg.nctaid.", "nvvm.read.ptx.sreg.cluster.nctaid.")
_PLACES = ("nvvm.read.ptx.sreg.tid.", "nvvm.read.ptx.sreg.ctaid.", "nvvm.read.ptx.sreg.cluster.ctaid.")

_GROWING = {
    f"arith.{name}"
    for name in ("addi", "muli", "shli", "shrui", "shrsi", "divui", "divsi", "minsi", "minui", "maxsi", "maxui")
}


class Counter:
    """A loop counter: its bounds, and the mapping to the index of the range."""

    __slots__ = ("known", "left", "origin", "runs", "scale", "size", "start", "step", "stop", "user")

    def __init__(self, user: Any, start: Any, stop: Any, step: Any, known: Facts):
        self.user = user
        self.start, self.stop, self.step = start, stop, step
        self.known = known  # facts of the index
        self.origin: Any = None  # index = origin + scale * counter
        self.scale: Any = 1
        self.runs: Any = None  # True if there is a first iteration, for a counter of the remaining distance
        self.left: Any = None  # distance from the index to the last value of the range
        self.size: Any = None  # absolute value of the step

    @property
    def kind(self) -> Any:
        """The type of the counter."""
        return type(self.start)

    def index(self, counter: SSAValue) -> Any:
        """Return the value of the range in an iteration."""
        number = self.kind.of(counter)
        if type(self.scale) is int and self.scale < 0:
            number = (0 if self.origin is None else self.origin) - number * -self.scale
        else:
            number = number * self.scale
            if self.origin is not None:
                number = self.origin + number
        return self.user.of(self.user(number).ssa, self.known)


def _is_launch_size(value: SSAValue, depth: int = 8, *, places: bool = False) -> bool:
    """Return True for the grid or block size of a launch and values derived by growth, such as the total threads.

    With ``places`` also for the indices of threads and blocks, and for 0.
    """
    from xdsl.dialects.arith import ConstantOp
    from xdsl.dialects.builtin import IntegerAttr
    from xdsl.ir import Operation

    op = value.owner
    if not isinstance(op, Operation) or depth == 0:
        return False
    if isinstance(op, ConstantOp):
        if not isinstance(op.value, IntegerAttr):
            return False
        return 0 <= op.value.value.data <= _MOST_OFFSET if places else op.value.value.data > 0
    if op.name.startswith(_SIZES) or (places and op.name.startswith(_PLACES)):
        return True
    return op.name in _GROWING and all(_is_launch_size(v, depth - 1, places=places) for v in op.operands)


def _known(first: Any, last: Any, step: Any) -> Facts:
    """Return the known facts about the values of a range."""
    a, b, s = facts_of(first), facts_of(last), facts_of(step)
    divisor = gcd(0 if first.is_static and first.value == 0 else a.divisor, s.divisor) or 1
    above, below = None if b.low is None else b.low + 1, None if b.high is None else b.high - 1
    if s.low is not None and s.low >= 0:
        return Facts(a.low, below, divisor)
    if s.high is not None and s.high <= 0:
        return Facts(above, a.high, divisor)
    low = None if a.low is None or above is None else min(a.low, above)
    return Facts(low, None if a.high is None or below is None else max(a.high, below), divisor)


def choose_counter(tracer: Tracer, kind: Any, first: Any, last: Any, step: Any, *, bounded: bool = False) -> Counter:
    """Return the counter of a range of type ``kind``. A static step may be of another type.

    ``bounded`` promises that an Int32 index does not wrap.
    """
    known = _known(first, last, step)
    if not step.is_static:
        step = kind(step)
        launch = kind is Int32 and (is_natural(step) or _is_launch_size(step.ssa))
        _check_step(tracer, step, positive=launch)
        if launch and (bounded or not _may_wrap(kind, last, _ends(step)[1])):
            _check_end(tracer, last, step)
            return Counter(kind, first, last, step, known)
        if launch and _starts_at_zero_or_above(tracer, first):
            return _unsigned_index(kind, first, last, step, known)
        if kind.width < 32:
            return _widened(kind, first, last, step, known)
        if kind.signed and is_natural(step) and is_natural(first):
            return _distance(kind, first, last, step, known)
        return _remaining(kind, first, last, step, known)
    size = abs(step.value)
    if step.value > 0 and ((bounded and kind is Int32 and not last.is_static) or not _may_wrap(kind, last, size)):
        _check_end(tracer, last, step)
        return Counter(kind, first, last, kind(step), known)
    if kind.width < 32:
        return _widened(kind, first, last, step, known)
    if step.value > 0 and kind.signed and _starts_at_zero_or_above(tracer, first):
        return _unsigned_index(kind, first, last, kind(step), known)
    a, b = _ends(first), _ends(last)
    most = a[1] - b[0] if step.value < 0 else b[1] - a[0]
    if size == 1 or most <= (1 << kind.width) - size or (kind.width == 64 and size <= _MOST_LONG_STEP):
        return _distance(kind, first, last, step, known)
    return _iterations(kind, first, last, step, known)


def _ends(x: Any) -> tuple[int, int]:
    """Return the minimum and maximum possible value of a number."""
    facts, (low, high) = facts_of(x), least_greatest(type(x))
    return low if facts.low is None else facts.low, high if facts.high is None else facts.high


def _starts_at_zero_or_above(tracer: Tracer, first: Any) -> bool:
    """Return True if a range starts at a number known to be positive or at the index of a thread or block."""
    if is_natural(first):
        return True
    if first.is_static or not _is_launch_size(first.ssa, places=True):
        return False
    if tracer.state.get("asserts"):
        _assert(
            tracer, first >= 0, "the start of range is negative: the number of threads of this launch exceeds Int32"
        )
    return True


def _may_wrap(kind: Any, last: Any, step: int) -> bool:
    """Return True if the first value past the end may not fit the type of the index."""
    return step != 1 and _ends(last)[1] > least_greatest(kind)[1] - (step - 1)


def _widened(kind: Any, first: Any, last: Any, step: Any, known: Facts) -> Counter:
    """Count 8- and 16-bit indices in Int32, which cannot wrap. Descending ranges count the negated index."""
    first, last, step = Int32(first), Int32(last), Int32.exactly(step.value) if step.is_static else Int32(step)
    if step.is_static:
        sign: Any = 1 if step.value > 0 else -1
    else:
        sign = 1 if is_natural(step) else select(step < 0, Int32(-1), Int32(1))
    step = step * sign
    if not step.is_static and (facts_of(step).low or 0) < 1:  # A step of 0 is an error, but must not hang.
        step = select(step < 1, Int32(1), step)
    if type(sign) is not int or sign < 0:
        first, last = first * sign, last * sign
    counter = Counter(kind, first, last, step, known)
    counter.scale = sign
    return counter


def _unsigned_index(kind: Any, first: Any, last: Any, step: Any, known: Facts) -> Counter:
    """Count a signed index that is never negative as an unsigned one, whose sum with a step cannot wrap."""
    wide = _unsigned(kind)
    if not is_natural(last):
        last = select(last < 0, kind(0), last)
    return Counter(kind, wide(first), wide(last), wide(step), known)


def _distance(kind: Any, first: Any, last: Any, step: Any, known: Facts) -> Counter:
    """Count from 0 to the distance of the bounds, by the absolute value of the step. The sum must not wrap."""
    down = step.is_static and step.value < 0
    low, high = (last, first) if down else (first, last)
    size = abs(step.value) if step.is_static else _ends(step)[1]
    (a, b), (c, d) = _ends(low), _ends(high)
    signed = kind.signed and d - a <= least_greatest(kind)[1] - size and c - b >= least_greatest(kind)[0]
    wide: Any = kind if signed else _unsigned(kind)
    distance: Any = wide(high) - wide(low)
    if not signed and c < b:
        distance = select(low < high, distance, wide(0))
    stride = wide(size) if step.is_static else wide(step)
    if not step.is_static and (facts_of(step).low or 0) < 1:
        stride = select(stride == 0, wide(1), stride)
    counter = Counter(kind, wide(0), distance, stride, known)
    counter.origin, counter.scale = wide(first), -1 if down else 1
    return counter


def _iterations(kind: Any, first: Any, last: Any, step: Any, known: Facts) -> Counter:
    """Count iterations from 0."""
    wide, size, down = _unsigned(kind), abs(step.value), step.value < 0
    low, high = (last, first) if down else (first, last)
    none = wide.exactly((1 << wide.width) - 1)  # Adding 1 gives 0.
    distance: Any = wide(high) - wide(low)
    turns = select(low < high, (distance - 1) // wide(size), none) + 1
    counter = Counter(kind, wide(0), turns, wide(1), known)
    counter.origin, counter.scale = wide(first), -size if down else size
    return counter


def _remaining(kind: Any, first: Any, last: Any, step: Any, known: Facts) -> Counter:
    """Compare the remaining distance with the step, because the sign of the step is unknown."""
    wide = _unsigned(kind)
    forwards: Any = Boolean(first < last)
    left: Any = wide(last) - wide(first)
    size: Any = wide(step)
    if kind.signed and not is_natural(step):
        up: Any = step > 0
        backwards = both(step < 0, lambda: first > last)
        forwards = select(up, forwards, backwards)
        left = select(up, left, wide(first) - wide(last))
        size = select(up, size, wide(0) - size)
    elif (facts_of(step).low or 0) < 1:
        forwards = both(forwards, lambda: step != 0)
    counter = Counter(kind, first, last, step, known)
    counter.runs, counter.left, counter.size = forwards, left - 1, size
    return counter


def _unsigned(kind: Any) -> Any:
    return Uint64 if kind.width == 64 else Uint32


def _assert(tracer: Tracer, holds: Any, text: str) -> None:
    from xdsl.dialects.builtin import StringAttr

    tracer.op("cf.assert", [holds.ssa], (), {"msg": StringAttr(text)})


def _check_step(tracer: Tracer, step: Any, *, positive: bool) -> None:
    """Emit a check that a run-time step is nonzero or, for a launch size, positive. Only with asserts enabled."""
    if not tracer.state.get("asserts") or (facts_of(step).low or 0) > 0:
        return
    if positive and not is_natural(step):
        _assert(
            tracer, step > 0, "the step of range is not positive: the number of threads of this launch exceeds Int32"
        )
    else:
        _assert(tracer, step != 0, "the step of range is 0")


def _check_end(tracer: Tracer, last: Any, step: Any) -> None:
    """Emit a check that an Int32 index does not wrap. Only with asserts enabled; release builds do not check."""
    if not tracer.state.get("asserts"):
        return
    kind, past = type(last), least_greatest(type(last))[1] + 1
    if _ends(last)[1] <= past - _ends(step)[1] or (step.is_static and step.value == 1):
        return
    where = past - step.value if step.is_static else f"{past} minus the step"
    most = kind.exactly(past - step.value) if step.is_static else kind(past - 1) - (step - 1)
    size = f"a step of {step.value}" if step.is_static else "this step"
    text = f"the index of this range overflows {kind!r}: with {size} the range must end at {where} or below; use Int64"
    _assert(tracer, last <= most, text)
