"""The row kernels of :mod:`.rows`: sum, softmax, RMSNorm, LayerNorm, each with one exchange between warps."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from cute_dialect.kernels.builder import Value
from cute_dialect.kernels.row_arithmetic import lanes_of, named
from cute_dialect.kernels.row_emitter import STREAM, RowEmitter

__all__ = ["RowKernel"]

LOG2_E = 1.4426950408889634
LOWEST = -3.4028234663852886e38
"""The smallest finite ``f32``; unlike minus infinity it can be subtracted from itself."""


class _Moments(NamedTuple):
    """Mean and squared deviations from it of some elements; how many is a number where it is known."""

    mean: Value
    deviation: Value
    elements: Value | float


class RowKernel(RowEmitter):
    """See the module."""

    def one_row(self, x: Value) -> None:
        {"softmax": self._softmax, "rmsnorm": self._rmsnorm, "layernorm": self._layernorm}[self.op](x)

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
        result = named(self.total(named(self.over_warp(total, self.add), "of_warp"), self.add), "of_row")
        if self.narrow:
            result = b.op("arith.truncf", result, type=self.element)
        writer = self.thread.eq(0)
        if self.real is not None:
            writer = writer & self.real
        named(writer, "writes")
        with b.if_(writer):
            b.store(self.y, self.row, result)

    def _softmax(self, x: Value) -> None:
        """``2^((x - m) log2 e)`` with each warp's own maximum ``m``, then one exchange of ``(m, sum)``."""
        b, n, g = self.b, self.values, self.group
        b.say("The largest element of the warp.")
        own = self.combined(x, n, self.maximum, lambda v: v)
        largest = self.over_warp(self.wide(own), self.maximum)
        # Finite, so that a warp of infinities does not make NaN of it; a NaN stays one.
        largest = self.maximum(largest, self.f32(LOWEST))
        scale, shift = self.splat(self.f32(LOG2_E), g), self.splat(largest, g)

        def powers(v: Value) -> Value:
            return self.each(v, lambda p: b.arch("exp2_approx", p))

        b.say("Powers beside it, and their sum.")
        kept = None
        if self.narrow:  # powers are made twice, so that the row stays as narrow as it is
            total = self.combined(x, n, self.add, lambda v: powers((self.wide(v) - shift) * scale))
        else:
            kept = self.mapped(lambda v: powers((v[0] - shift) * scale), x)
            total = self.combined(kept, n, self.add, self.wide)
        total = self.over_warp(total, self.add)
        factor = self.f32(1.0)
        m = largest
        if self.warps > 1:
            parts = self.exchange(largest, total)
            m = self.all_lanes([p[0] for p in parts], self.maximum)
            total = self.all_lanes([p[1] * self._power(p[0], m) for p in parts], self.add)
            factor = self._power(largest, m)
        b.say("Each is scaled to the sum of the row.")
        if kept is None:
            down, shift = self.splat(b.arch("log2_approx", total), g), self.splat(m, g)
            self.store(self.mapped(lambda v: powers((v[0] - shift) * scale - down), self.again(x)))
        else:
            by = self.splat(factor * b.arch("rcp_approx", total), g)
            self.store(self.mapped(lambda v: v[0] * by, kept))

    def _power(self, x: Value, m: Value) -> Value:
        return self.b.arch("exp2_approx", (x - m) * self.f32(LOG2_E))

    def _rmsnorm(self, x: Value) -> None:
        b, n, g = self.b, self.values, self.group

        def square(v: Value) -> Value:
            v = self.wide(v)
            return v * v

        b.say("The mean square, of this thread, of the warp, of the row.")
        squares = self.over_warp(self.combined(x, n, self.add, square), self.add)
        mean = self.total(squares, self.add) * self.f32(1 / self.n)
        by = self.splat(b.arch("rsqrt_approx", mean + self.f32(self.eps)), g)
        self.store(self.mapped(lambda v: v[0] * by * v[1], self.again(x), self.weight(0)))

    def _layernorm(self, x: Value) -> None:
        """Each thread's mean and squared deviations from it, combined (Chan, Golub, LeVeque 1979)."""
        b, n, g = self.b, self.values, self.group
        b.say("The mean of this thread, and how far its elements are from it.")
        count = self._count()
        total = self.combined(x, n, self.add, self.wide)
        mean = total * (self._inverse(count) if isinstance(count, Value) else self.f32(1 / count))

        def square(v: Value) -> Value:
            v = self.wide(v) - self.splat(mean, lanes_of(v))
            return v * v

        deviation = self._over_own(x, square)
        b.say("Both of the warp, then of the row.")
        of = self._over_lanes(_Moments(mean, deviation, count), min(32, self.c.threads))
        if self.warps > 1:
            known = [of.elements] if isinstance(of.elements, Value) else []
            parts = [_Moments(p[0], p[1], p[2] if known else of.elements) for p in self.exchange(of[0], of[1], *known)]
            while len(parts) > 1:
                parts = [self._merged(p, q) for p, q in zip(parts[::2], parts[1::2])]
            of = self._over_lanes(parts[0], min(32, self.warps))
        variance = of.deviation * self.f32(1 / self.n)
        by, center = self.splat(b.arch("rsqrt_approx", variance + self.f32(self.eps)), g), self.splat(of.mean, g)
        weights = self.weight(0), self.weight(1)
        self.store(self.mapped(lambda v: (v[0] - center) * by * v[1] + v[2], self.again(x), *weights))

    def _over_own(self, x: Value, term: Callable[[Value], Value]) -> Value:
        """The sum over the elements that this thread has; nothing of the neutral ones in their place."""
        if not self.tail:
            return self.combined(x, self.values, self.add, term)
        whole = self.chunks * self.width
        last = self.combined(self.part(x, whole, self.width), self.width, self.add, term)
        last = self.b.select(self._outside_tail(), self.f32(0.0), last)
        if not whole:
            return last
        return self.combined(self.part(x, 0, whole), whole, self.add, term) + last

    def _count(self) -> Value | float:
        """How many elements of the row this thread has."""
        if not self.tail:
            return float(self.values)
        fewer = self.f32(self.chunks * self.width)
        return self.b.select(self._outside_tail(), fewer, self.f32(self.values))

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
        """Of the elements of both; the same, bit for bit, whichever is first."""
        apart = x.mean - y.mean
        deviation = x.deviation + y.deviation
        m, n = x.elements, y.elements
        if not isinstance(m, Value) or not isinstance(n, Value):
            assert not isinstance(m, Value) and m == n
            mean = (x.mean + y.mean) * self.f32(0.5)
            return _Moments(mean, deviation + apart * apart * self.f32(m / 2), 2 * m)
        by = self._inverse(m + n)
        mean = (x.mean * m + y.mean * n) * by
        return _Moments(mean, deviation + apart * apart * (m * n * by), m + n)
