"""The row kernels of :mod:`.rows`: sum, softmax, RMSNorm, LayerNorm, each with one exchange between warps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from cute_dialect.kernels.row_arithmetic import lanes_of, named
from cute_dialect.kernels.row_emitter import RowEmitter
from cute_dialect.kernels.row_memory import STREAM, Line
from cute_dialect.kernels.values import Value

__all__ = ["RowKernel"]

LOG2_E = 1.4426950408889634
LOWEST = -3.4028234663852886e38
"""The smallest finite ``f32``; unlike minus infinity it can be subtracted from itself."""

GROUP = 8
"""Elements of a thread whose mean and deviations are found at once."""


class _Moments(NamedTuple):
    """Mean and squared deviations from it of some elements; how many is a number where it is known."""

    mean: Value
    deviation: Value
    elements: Value | float


class RowKernel(RowEmitter):
    """An emitter of the row kernels that the module describes."""

    def work(self, lines: Sequence[Line]) -> None:
        {"softmax": self._softmax, "rmsnorm": self._rmsnorm, "layernorm": self._layernorm}[self.op](lines)

    def sum(self) -> None:
        b = self.b
        row = named(b.slice(self.x, self.source, None), "gX")
        total: Value | None = None
        if self.rounds:
            size = STREAM * self.width
            g = min(4, size)
            zero = b.op("arith.constant", type=f"vector<{g}xf32>", value=b.type(f"dense<0.0> : vector<{g}xf32>"))
            with b.for_(0, self.rounds, carry=[zero]) as loop:
                raw = self.registers(self.element, size)
                at = loop.iv * (STREAM * self.step) + self.thread * self.width
                if self.width > 1:
                    at = b.op("cute.assume", at, type=f"!cute.i32<divby {self.width}>")
                self.move(self.at(row, at), raw, 0, STREAM)
                view, _ = self.grouped(raw, size)
                with b.for_(0, size // g, carry=loop.args) as inner:
                    part = b.slice(view, None, inner.iv) if size > g else raw
                    inner.next(inner.args[0] + self.wide(b.load_vec(part)))
                loop.next(*inner.results)
            total = self.over_vector(loop.results[0], self.add)
        if self.values:
            rest = self.combined(self.load(row), self.values, self.add, self.wide)
            total = rest if total is None else total + rest
        assert total is not None
        b.say("By shuffles: the sum of the warp, then of the row; all lanes have it.")
        (result,) = self.exchange([named(self.over_warp(total, self.add), "of_warp")], self._sums, self._added)
        named(result, "of_row")
        if self.narrow:
            result = b.op("arith.truncf", result, type=self.element)
        writer = self.thread.eq(0)
        if self.real is not None:
            writer = writer & self.real
        named(writer, "writes")
        with b.if_(writer):
            b.store(self.y, self.row, result)

    def _softmax(self, lines: Sequence[Line]) -> None:
        """Compute ``2^((x - m) log2 e)`` with each warp's own maximum ``m``, then one exchange of ``(m, sum)``."""
        b, n = self.b, self.values
        (line,) = lines

        def powers(v: Value, shift: Value) -> Value:
            scaled = (v - self.splat(shift, lanes_of(v))) * self.splat(self.f32(LOG2_E), lanes_of(v))
            return self.each(scaled, lambda p: b.arch("exp2_approx", p))

        def summed(x: Value, n: int, shift: Value) -> Value:
            return self.combined(x, n, self.add, lambda v: powers(self.wide(v), shift))

        kept = None
        if self.c.in_parts:
            b.say("The largest element so far, and the sum of powers beside it; both of the thread, then of the warp.")
            largest, total = self.f32(LOWEST), self.f32(0.0)
            for x, _, count in self.arriving(line):
                own = self.maximum(largest, self.wide(self.combined(x, count, self.maximum, lambda v: v)))
                total = total * self._power(largest, own) + summed(x, count, own)
                largest = own
            own = self.over_warp(largest, self.maximum)
            total = total * self._power(largest, own)
            largest = own
        else:
            b.say("The largest element of the warp.")
            own = self.combined(self.values_of(line), n, self.maximum, lambda v: v)
            largest = self.over_warp(self.wide(own), self.maximum)
            # Finite, so that a warp of infinities does not make NaN of it; a NaN stays one.
            largest = self.maximum(largest, self.f32(LOWEST))
            b.say("Powers beside it, and their sum.")
            x = self.values_of(line)
            if line.slot is not None and not self.spare:
                total = summed(x, n, largest)
            else:
                kept = self.mapped(lambda v: powers(v, largest), x)
                total = self.combined(kept, n, self.add, lambda v: v)
        total = self.over_warp(total, self.add)

        def combine(parts: list[Value], lanes: int) -> list[Value]:
            m = self.over_lanes(parts[0], self.maximum, lanes)
            return [m, self.over_lanes(parts[1] * self._power(parts[0], m), self.add, lanes)]

        def merge(warps: list[list[Value]]) -> list[Value]:
            m = self.tree([x[0] for x in warps], self.maximum)
            return [m, self.tree([x[1] * self._power(x[0], m) for x in warps], self.add)]

        m, total = self.exchange([largest, total], combine, merge)
        b.say("Each is scaled to the sum of the row.")
        by = b.arch("rcp_approx", total)
        if kept is not None:
            by = by if self.warps == 1 else self._power(largest, m) * by
            self.finish(lines, lambda _, v, w: v * self.splat(by, lanes_of(v)), values=kept)
        else:  # made again: there are no registers to keep them
            self.finish(lines, lambda _, v, w: powers(v, m) * self.splat(by, lanes_of(v)))

    def _power(self, x: Value, m: Value) -> Value:
        return self.b.arch("exp2_approx", (x - m) * self.f32(LOG2_E))

    def _rmsnorm(self, lines: Sequence[Line]) -> None:
        b = self.b

        def square(v: Value) -> Value:
            v = self.wide(v)
            return v * v

        b.say("The mean square, of this thread, of the warp, of the row.")
        squares = [self.over_warp(self._total(x, square), self.add) for x in lines]
        early, spans = self._early_weights(lines), self.early_spans()
        sums = self.exchange(squares, self._sums, self._added)
        by = [b.arch("rsqrt_approx", x * self.f32(1 / self.n) + self.f32(self.eps)) for x in sums]
        weights = early or self._weights()
        self.finish(lines, lambda i, v, w: v * self.splat(by[i], lanes_of(v)) * w[0], weights, early=spans)

    def _total(self, line: Line, term: Callable[[Value], Value]) -> Value:
        """Return the sum of what ``term`` makes of this thread's elements, part by part as they come."""
        total: Value | None = None
        for x, _, n in self.arriving(line):
            more = self.combined(x, n, self.add, term)
            total = more if total is None else total + more
        assert total is not None
        return total

    def _sums(self, parts: list[Value], lanes: int) -> list[Value]:
        return [self.over_lanes(x, self.add, lanes) for x in parts]

    def _added(self, warps: list[list[Value]]) -> list[Value]:
        return [self.tree(list(x), self.add) for x in zip(*warps)]

    def _weights(self) -> list[Value]:
        if self.c.in_parts:  # so do they
            return []
        return [self.weight(i) for i in range(self.weight_count)]

    def _early_weights(self, lines: Sequence[Line]) -> list[Value]:
        """Load weights while the warps exchange their numbers, where registers are free because rows are elsewhere."""
        registers = self.weight_count * self.values * self.bits // 32
        return self._weights() if lines[0].slot is not None and not self.held and registers <= 32 else []

    def _layernorm(self, lines: Sequence[Line]) -> None:
        """Compute mean and squared deviations from it, combined from groups of elements (Chan, Golub, LeVeque 1979)."""
        b = self.b
        b.say("Mean and deviations of this thread, of the warp, then of the row.")
        own = [self._over_lanes(self._own(x), min(32, self.c.threads)) for x in lines]
        early, spans = self._early_weights(lines), self.early_spans()
        elements = own[0].elements

        def flat(rows: Sequence[_Moments]) -> list[Value]:
            last = rows[0].elements
            return [x for of in rows for x in of[:2]] + ([last] if isinstance(last, Value) else [])

        def rows(parts: list[Value]) -> list[_Moments]:
            n = parts[-1] if isinstance(elements, Value) else elements
            return [_Moments(parts[2 * i], parts[2 * i + 1], n) for i in range(len(lines))]

        def combine(parts: list[Value], lanes: int) -> list[Value]:
            nonlocal elements
            found = [self._over_lanes(x, lanes) for x in rows(parts)]
            elements = found[0].elements
            return flat(found)

        def merge(warps: list[list[Value]]) -> list[Value]:
            nonlocal elements
            found = [self.tree(list(x), self._merged) for x in zip(*map(rows, warps))]
            elements = found[0].elements
            return flat(found)

        own = rows(self.exchange(flat(own), combine, merge))
        by = [b.arch("rsqrt_approx", of.deviation * self.f32(1 / self.n) + self.f32(self.eps)) for of in own]

        def normal(i: int, v: Value, w: list[Value]) -> Value:
            n = lanes_of(v)
            if self.narrow:  # one multiply-add less: rounding the element was the larger error
                return (v * self.splat(by[i], n) - self.splat(own[i].mean * by[i], n)) * w[0] + w[1]
            return (v - self.splat(own[i].mean, n)) * self.splat(by[i], n) * w[0] + w[1]

        self.finish(lines, normal, early or self._weights(), early=spans)

    def _own(self, line: Line) -> _Moments:
        """Return those of this thread's elements; nothing of the neutral ones where it has none."""
        whole = self.chunks * self.width
        total: _Moments | None = None
        last: _Moments | None = None
        for x, first, n in self.arriving(line):
            end = min(n, whole - first)
            for start in range(0, end, GROUP):
                part = self._of_group(self.part(x, start, min(GROUP, end - start)), min(GROUP, end - start))
                total = part if total is None else self._merged(total, part)
            if n > end:
                last = self._of_group(self.part(x, end, self.width), self.width)
        if last is None:
            assert total is not None
            return total
        b, outside, none = self.b, self.outside_tail(), self.f32(0.0)
        assert not isinstance(last.elements, Value)
        if total is None:
            total = _Moments(none, none, 0.0)
            more = last
        else:
            more = self._merged(total, last)
        assert not isinstance(total.elements, Value) and not isinstance(more.elements, Value)
        return _Moments(
            b.select(outside, total.mean, more.mean),
            b.select(outside, total.deviation, more.deviation),
            b.select(outside, self.f32(total.elements), self.f32(more.elements)),
        )

    def _of_group(self, x: Value, n: int) -> _Moments:
        """Return those of a few elements: first their mean, then how far they are from it."""
        mean = self.combined(x, n, self.add, self.wide) * self.f32(1 / n)

        def square(v: Value) -> Value:
            v = self.wide(v) - self.splat(mean, lanes_of(v))
            return v * v

        return _Moments(mean, self.combined(x, n, self.add, square), float(n))

    def _inverse(self, count: Value) -> Value:
        return self.b.arch("rcp_approx", self.maximum(count, self.f32(1.0)))

    def _over_lanes(self, x: _Moments, lanes: int) -> _Moments:
        """Combine over groups of lanes; all of them get the result."""
        shuffle = self.b.arch
        offset = lanes // 2
        while offset:
            count = shuffle("shfl_sync", x.elements, offset) if isinstance(x.elements, Value) else x.elements
            other = _Moments(shuffle("shfl_sync", x.mean, offset), shuffle("shfl_sync", x.deviation, offset), count)
            x = self._merged(x, other)
            offset //= 2
        return x

    def _merged(self, x: _Moments, y: _Moments) -> _Moments:
        """Return those of the elements of both; the same, bit for bit, whichever is first."""
        apart = x.mean - y.mean
        deviation = x.deviation + y.deviation
        m, n = x.elements, y.elements
        if isinstance(m, Value) or isinstance(n, Value):
            assert isinstance(m, Value) and isinstance(n, Value)
            by = self._inverse(m + n)
            mean = (x.mean * m + y.mean * n) * by
            return _Moments(mean, deviation + apart * apart * (m * n * by), m + n)
        if m == n:
            mean = (x.mean + y.mean) * self.f32(0.5)
        else:
            mean = x.mean - apart * self.f32(n / (m + n))
        return _Moments(mean, deviation + apart * apart * self.f32(m * n / (m + n)), m + n)
