"""Emits the row kernels of :mod:`.rows`: one row is shared by some threads, which exchange partial results once.

A thread has ``values`` elements of its row, in ``chunks`` vectors that lie as many vectors apart as threads share the
row, so that a warp reads 512 bytes at a time.  What is left of a row after whole chunks, if anything, is one more chunk
that only the first threads have; the others hold a neutral element there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import contextmanager
from math import inf
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import VectorType

from cute_dialect.algebra.layout import size
from cute_dialect.algebra.values import Layout
from cute_dialect.kernels.builder import Value
from cute_dialect.kernels.script import Script
from cute_dialect.memory_types import MemRefType

if TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Generator

    from cute_dialect.kernels.rows import RowConfig

__all__ = ["RowEmitter"]

LOG2_E = 1.4426950408889634
LOWEST = -3.4028234663852886e38
"""The smallest finite ``f32``; unlike minus infinity it can be subtracted from itself."""

STREAM = 8
"""Vectors a thread has under way in a sum over long rows."""

Combine = Callable[[Value, Value], Value]


def _named(value: Value, name: str) -> Value:
    """The value, by that name in the text."""
    b = value.builder
    assert isinstance(b, Script)
    return value if value.ssa.name_hint is not None else b.let(name, value)


class RowEmitter:
    """One kernel: ``width`` elements an access."""

    def __init__(self, b: Script, op: str, element: str, n: int, config: RowConfig, width: int, eps: float):
        from cute_dialect.kernels.rows import BITS

        self.b, self.op, self.element, self.n, self.c, self.width, self.eps = b, op, element, n, config, width, eps
        self.step = config.sharing * width
        """Elements of a row that all its threads read at once."""
        chunks = n // self.step
        self.rounds = 0
        if op == "sum" and chunks >= 2 * STREAM:
            self.rounds, chunks = divmod(chunks, STREAM)
        self.chunks, self.tail = chunks, n % self.step != 0
        self.values = (self.chunks + self.tail) * width
        self.group = min(4, self.values & -self.values) if self.values else 1
        align = width * BITS[element] // 8
        aligned = f", align<{align}>" if width > 1 else ""
        stride = f"?{{div={width}}}" if width > 1 else "?"
        self.matrix = f'!cute.memref<{element}, gmem{aligned}, "(?,{n}):({stride},1)">'
        self.vector = f'!cute.memref<{element}, gmem{aligned}, "{n}:1">'
        self.column = f'!cute.memref<{element}, gmem, "?:1">'
        self.atom_type = f"!cute_nvgpu.atom.universal_copy<{element}>"

    def parameters(self) -> dict[str, str]:
        """Names and types of the kernel's parameters."""
        between = {"rmsnorm": ("w",), "layernorm": ("w", "b")}.get(self.op, ())
        out = self.column if self.op == "sum" else self.matrix
        return {"x": self.matrix, **dict.fromkeys(between, self.vector), "y": out}

    def name_types(self) -> None:
        """Name the types of parameters."""
        suffix = "_v" if self.width > 1 else ""
        self.b.name_type(f"matrix{suffix}", self.matrix)
        if self.op == "sum":
            self.b.name_type("column", self.column)
        if "w" in self.parameters():
            self.b.name_type(f"weights{suffix}", self.vector)
        self.b.name_type("atom", self.atom_type)

    # ------------------------------------------------------------------------------------------------------ the kernel

    def kernel(self, name: str) -> None:
        """``gpu.func @name``."""
        b, c = self.b, self.c
        cluster = (c.cluster, 1, 1) if c.cluster > 1 else None
        attributes = [f"nvvm.minctasm = {max(1, 1024 // c.block)} : i32"]
        with b.kernel(name, self.parameters(), threads=c.block, cluster=cluster, attributes=attributes) as p:
            self.weights = p[1:-1]
            self._begin(p[0], p[-1])
            emit = {
                "sum": self._sum, "softmax": self._softmax, "rmsnorm": self._rmsnorm, "layernorm": self._layernorm
            }  # fmt: skip
            emit[self.op]()

    def launch(self, variants: Sequence[str]) -> None:
        """The host function."""
        b, c = self.b, self.c
        with b.host("launch", self.parameters()) as p:
            rows = self._rows(p[0])
            b.say("The grid follows from the number of rows.")
            same = _named(b.compare("eq", self._rows(p[-1]), rows), "same")
            b.do("cf.assert", same, msg='"y must have as many rows as x"')
            grid = b.ceil_div(rows, c.rows) if c.rows > 1 else rows
            b.launch(self.op, p, grid=_named(grid * c.cluster, "grid"), threads=c.block, variants=variants)

    def _rows(self, matrix: Value) -> Value:
        b = self.b
        size = b.op("cute.size", matrix, mode=b.type("array<i32: 0>"))
        return _named(b.op("cute.get_scalars", size, type="i32"), "rows")

    def _begin(self, x: Value, y: Value) -> None:
        b, c = self.b, self.c
        if c.cluster > 1:
            b.run("cluster_arrive", relaxed=True)
        tid, block = _named(b.thread_id(), "tid"), _named(b.block_id(), "block")
        self.lane = _named(b.arch("lane_id"), "lane")
        self.atom = _named(b.atom(self.atom_type), "atom")
        self.rank: Value | None = None
        self.thread = tid
        if c.cluster > 1:
            self.rank = _named(b.arch("cluster_rank"), "rank")
            block = _named(block // c.cluster, "cluster")
            self.thread = _named(self.rank * c.threads + tid, "thread")
        self.row = block
        self.real: Value | None = None
        if c.rows > 1:
            self.thread = _named(tid % c.threads, "thread")
            self.row = _named(block * c.rows + tid // c.threads, "row")
            rows = self._rows(x)
            self.real = _named(self.row < rows, "real")
            # Threads beyond the last row read that one: they take part in shuffles, but write nothing.
            source = _named(b.select(self.real, self.row, rows - 1), "source")
        else:
            source = self.row
        b.say("Where this thread begins in each round of a row, and its row.")
        first = self.thread * self.width
        if self.width > 1:
            first = b.op("cute.assume", first, type=f"!cute.i32<divby {self.width}>")
        self.first = _named(first, "first")
        self.x = _named(b.slice(x, source, None), "gX")
        self.y = y

    # ------------------------------------------------------------------------------------------------ memory, registers

    def registers(self, element: str, n: int) -> Value:
        """A register tensor of ``n`` elements."""
        return self.b.registers(f'!cute.memref<{element}, rmem, align<16>, "{n}:1">')

    def part(self, tensor: Value, offset: int, n: int) -> Value:
        """``n`` elements of a register tensor."""
        return self.b.view(self._moved(tensor, offset), f"{n}:1")

    def _moved(self, tensor: Value, offset: int) -> Value:
        return self.b.pointer(tensor, offset) if offset else self.b.iterator(tensor)

    def _pieces(self, start: int, chunks: int) -> tuple[str, str, int]:
        """Layouts of ``chunks`` chunks in memory and in registers, and where they begin in registers."""
        w = self.width
        if chunks == 1 or w == 1:
            shape = str(w if chunks == 1 else chunks)
            return f"{shape}:{1 if chunks == 1 else self.step}", f"{shape}:1", start * w
        return f"({w},{chunks}):(1,{self.step})", f"({w},{chunks}):(1,{w})", start * w

    def _move(self, tensor: Value, at: Value, fragment: Value, start: int, chunks: int, *, store: bool) -> None:
        b = self.b
        outside, inside, skip = self._pieces(start, chunks)
        begin = b.op("cute.add_offset", b.iterator(tensor), b.int_tuple(at))
        there = _named(b.view(begin, outside), "thread_part")
        here = fragment
        if skip or self._length(fragment) != self.width * chunks or ":(" in inside:
            here = _named(b.view(self._moved(fragment, skip), inside), "registers")
        b.copy(self.atom, *((here, there) if store else (there, here)))

    def _length(self, fragment: Value) -> int:
        t = fragment.type
        assert isinstance(t, MemRefType)
        n = size(t.layout.shape) if isinstance(t.layout, Layout) else 0
        assert isinstance(n, int)
        return n

    @contextmanager
    def _in_tail(self) -> Generator[None]:
        """The threads that have part of the last chunk, which begins after whole chunks."""
        b = self.b
        last = (self.n // self.step) * self.step
        if self.c.sharing == 1:
            yield
            return
        with b.if_(self.thread < (self.n - last) // self.width):
            yield

    def _offset(self, chunk: int) -> Value:
        """Where this thread's part of a chunk begins in a row."""
        b = self.b
        if chunk == 0:
            return self.first
        at = self.thread * self.width + chunk * self.step
        return b.op("cute.assume", at, type=f"!cute.i32<divby {self.width}>") if self.width > 1 else at

    def load(self, tensor: Value, neutral: float = 0.0) -> Value:
        """This thread's elements of a row (what :attr:`rounds` leave), as ``f32`` registers."""
        b, w = self.b, self.width
        b.say("What this thread has of a row; all its loads are under way together.")
        raw = _named(self.registers(self.element, self.values), "values")
        skip = self.rounds * STREAM
        if self.tail:
            rest = self.part(raw, self.chunks * w, w)
            b.do("cute.fill", rest, b.constant(neutral, self.element))
        if self.chunks:
            self._move(tensor, self._offset(skip), raw, 0, self.chunks, store=False)
        if self.tail:
            with self._in_tail():
                self._move(tensor, self._offset(skip + self.chunks), raw, self.chunks, 1, store=False)
        return self.widened(raw, self.values)

    def widened(self, raw: Value, n: int) -> Value:
        """Registers as ``f32``."""
        if self.element == "f32":
            return raw
        b = self.b
        wide = self.registers("f32", n)
        b.store_vec(b.op("arith.extf", b.load_vec(raw), type=f"vector<{n}xf32>"), wide)
        return wide

    def store(self, values: Value) -> None:
        """Write this thread's elements of the row."""
        b = self.b
        if self.element != "f32":
            raw = self.registers(self.element, self.values)
            b.store_vec(b.op("arith.truncf", b.load_vec(values), type=f"vector<{self.values}x{self.element}>"), raw)
            values = raw
        with self._if_real():
            row = _named(b.slice(self.y, self.row, None), "gY")
            if self.chunks:
                self._move(row, self._offset(0), values, 0, self.chunks, store=True)
            if self.tail:
                with self._in_tail():
                    self._move(row, self._offset(self.chunks), values, self.chunks, 1, store=True)

    @contextmanager
    def _if_real(self) -> Generator[None]:
        if self.real is None:
            yield
        else:
            with self.b.if_(self.real):
                yield

    # ------------------------------------------------------------------------------------------------------ arithmetic

    def f32(self, x: float) -> Value:
        """A constant."""
        return self.b.constant(x, "f32")

    def splat(self, x: Value, n: int) -> Value:
        """A vector of equal elements."""
        filled = self.registers("f32", n)
        self.b.do("cute.fill", filled, x)
        return self.b.load_vec(filled)

    def grouped(self, values: Value, n: int) -> tuple[Value, int]:
        """A register tensor by groups of up to four elements, and their size; sums then have no long chain of steps."""
        g = min(4, n & -n)
        if n == g:
            return values, g
        return self.b.view(self.b.iterator(values), f"({g},{n // g}):(1,{g})"), g

    def combined(self, values: Value, n: int, combine: Combine, term: Callable[[Value], Value] | None = None) -> Value:
        """All elements of a register tensor as one, or what ``term`` makes of them."""
        b = self.b
        view, g = self.grouped(values, n)

        def group(i: Value | int) -> Value:
            x = b.load_vec(b.slice(view, None, i) if n > g else values)
            return x if term is None else term(x)

        total = group(0)
        if n > g:
            with b.for_(1, n // g, carry=[total]) as loop:
                loop.next(combine(loop.args[0], group(loop.iv)))
            (total,) = loop.results
        return self.over_vector(total, combine)

    def over_vector(self, total: Value, combine: Combine) -> Value:
        """The elements of a vector as one."""
        b = self.b
        t = total.type
        assert isinstance(t, VectorType)
        g = t.get_shape()[0]
        lanes = _named(self.registers("f32", g), "lanes")
        b.store_vec(total, lanes)
        parts = [b.load(lanes, i) for i in range(g)]
        while len(parts) > 1:
            parts = [combine(parts[i], parts[i + 1]) for i in range(0, len(parts), 2)]
        return parts[0]

    def mapped(self, n: int, function: Callable[[list[Value]], Value], *tensors: Value) -> Value:
        """``function`` of the groups of elements of some register tensors, in new registers."""
        b = self.b
        out = self.registers("f32", n)
        views = [self.grouped(t, n)[0] for t in (*tensors, out)]
        if n == self.group:
            b.store_vec(function([b.load_vec(t) for t in tensors]), out)
            return out
        with b.for_(0, n // self.group) as loop:
            parts = [b.slice(v, None, loop.iv) for v in views]
            b.store_vec(function([b.load_vec(p) for p in parts[:-1]]), parts[-1])
        return out

    def each(self, values: Value, n: int, name: str) -> None:
        """Replace each element by a fast function of it."""
        b = self.b
        with b.for_(0, n) as loop:
            b.store(values, loop.iv, b.arch(name, b.load(values, loop.iv)))

    def add(self, x: Value, y: Value) -> Value:
        """The sum."""
        return x + y

    def maximum(self, x: Value, y: Value) -> Value:
        """The larger one."""
        return self.b.binary("max", x, y)

    # ------------------------------------------------------------------------------------------------------- exchanges

    def over_lanes(self, x: Value, combine: Combine, lanes: int) -> Value:
        """Combine over groups of ``lanes`` lanes; all of them get the result."""
        offset = lanes // 2
        while offset:
            x = combine(x, self.b.arch("shfl_sync", x, offset))
            offset //= 2
        return x

    def over_warp(self, x: Value, combine: Combine) -> Value:
        """Combine over the threads of a row that share a warp."""
        return self.over_lanes(x, combine, min(32, self.c.threads))

    @property
    def warps(self) -> int:
        """Warps that share a row, in all blocks."""
        return max(1, self.c.threads // 32) * self.c.cluster

    def exchange(self, *parts: Value) -> list[list[Value]]:
        """Every warp's ``parts``: lane ``i`` gets those of the warps ``i``, ``i + 32``, …, modulo the number of warps.

        Nothing is exchanged within one warp.
        """
        b, c = self.b, self.c
        if self.warps == 1:
            return [list(parts)]
        warps = self.warps
        b.say("The warps put their numbers into shared memory.")
        buffers = [_named(b.alloc_smem(f'!cute.memref<f32, smem, "{warps}:1">'), "partials") for _ in parts]
        warp = _named(b.arch("warp_id"), "warp")
        if c.cluster == 1:
            with b.if_(self.lane.eq(0)):
                for buffer, x in zip(buffers, parts):
                    b.store(buffer, warp, x)
            b.run("barrier")
        else:
            # Lane i writes to block i.  Every block has begun: its shared memory is there.
            assert self.rank is not None
            b.run("cluster_wait")
            with b.if_(self.lane < c.cluster):
                for buffer, x in zip(buffers, parts):
                    far = b.arch("map_cluster", b.iterator(buffer), self.lane)
                    where = self.rank * (warps // c.cluster) + warp
                    b.store(b.view(far, f"{warps}:1"), where, x)
            b.run("cluster_arrive")
            b.run("cluster_wait")
        if warps >= 32:
            return [[b.load(buffer, self.lane + i) for buffer in buffers] for i in range(0, warps, 32)]
        at = self.lane % warps
        return [[b.load(buffer, at) for buffer in buffers]]

    def total(self, x: Value, combine: Combine) -> Value:
        """One value over the whole row, given the warp's."""
        return self.all_lanes([p[0] for p in self.exchange(x)], combine)

    def all_lanes(self, parts: Sequence[Value], combine: Combine) -> Value:
        """Combine what the lanes have got by an exchange."""
        total = parts[0]
        for p in parts[1:]:
            total = combine(total, p)
        return total if self.warps == 1 else self.over_lanes(total, combine, min(32, self.warps))

    # ------------------------------------------------------------------------------------------------------ operations

    def _sum(self) -> None:
        b = self.b
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
                self._move(self.x, at, raw, 0, STREAM, store=False)
                wide = self.widened(raw, size)
                view, _ = self.grouped(wide, size)
                with b.for_(0, size // g, carry=loop.args) as inner:
                    inner.next(inner.args[0] + b.load_vec(b.slice(view, None, inner.iv) if size > g else wide))
                loop.next(*inner.results)
            total = self.over_vector(loop.results[0], self.add)
        if self.values:
            rest = self.combined(self.load(self.x), self.values, self.add)
            total = rest if total is None else total + rest
        assert total is not None
        b.say("By shuffles: the sum of the warp, then of the row; all lanes have it.")
        result = _named(self.total(_named(self.over_warp(total, self.add), "of_warp"), self.add), "of_row")
        if self.element != "f32":
            result = b.op("arith.truncf", result, type=self.element)
        writer = self.thread.eq(0)
        if self.real is not None:
            writer = writer & self.real
        _named(writer, "writes")
        with b.if_(writer):
            b.store(self.y, self.row, result)

    def _softmax(self) -> None:
        """``2^((x - m) log2 e)`` with each warp's own maximum ``m``, then one exchange of ``(m, sum)``."""
        b, n, g = self.b, self.values, self.group
        x = self.load(self.x, -inf)
        b.say("The largest element of the warp.")
        largest = self.over_warp(self.combined(x, n, self.maximum), self.maximum)
        # Finite, so that a warp of infinities does not make NaN of it; a NaN stays one.
        largest = self.maximum(largest, self.f32(LOWEST))
        scale, shift = self.splat(self.f32(LOG2_E), g), self.splat(largest, g)
        b.say("Powers beside it, and their sum.")
        powers = self.mapped(n, lambda v: (v[0] - shift) * scale, x)
        self.each(powers, n, "exp2_approx")
        total = self.over_warp(self.combined(powers, n, self.add), self.add)
        factor = self.f32(1.0)
        if self.warps > 1:
            parts = self.exchange(largest, total)
            m = self.all_lanes([p[0] for p in parts], self.maximum)
            total = self.all_lanes([p[1] * self._power(p[0], m) for p in parts], self.add)
            factor = self._power(largest, m)
        b.say("Each is scaled to the sum of the row.")
        by = self.splat(factor * b.arch("rcp_approx", total), g)
        self.store(self.mapped(n, lambda v: v[0] * by, powers))

    def _power(self, x: Value, m: Value) -> Value:
        return self.b.arch("exp2_approx", (x - m) * self.f32(LOG2_E))

    def _rmsnorm(self) -> None:
        b, n, g = self.b, self.values, self.group
        x = self.load(self.x)
        b.say("The mean square, of this thread, of the warp, of the row.")
        squares = self.over_warp(self.combined(x, n, self.add, lambda v: v * v), self.add)
        mean = self.total(squares, self.add) * self.f32(1 / self.n)
        by = self.splat(b.arch("rsqrt_approx", mean + self.f32(self.eps)), g)
        w = self.load(self.weights[0])
        self.store(self.mapped(n, lambda v: v[0] * by * v[1], x, w))

    def _layernorm(self) -> None:
        """Each warp's mean and squared deviations from it, then one exchange (Chan, Golub, LeVeque 1979)."""
        b, n, g = self.b, self.values, self.group
        x = self.load(self.x)
        count = self._count()
        b.say("The mean of the warp, and how far its elements are from it.")
        total = self.over_warp(self.combined(x, n, self.add), self.add)
        mean = self._mean(total, count)
        if self.tail:  # where there is no element, nothing deviates
            with b.if_(self._outside_tail()):
                b.do("cute.fill", self.part(x, self.chunks * self.width, self.width), mean)
        center = self.splat(mean, g)
        squares = self.combined(self.mapped(n, lambda v: v[0] - center, x), n, self.add, lambda v: v * v)
        deviation = self.over_warp(squares, self.add)
        if self.warps > 1:
            parts = self.exchange(total, deviation, count)
            mean = self.all_lanes([p[0] for p in parts], self.add) * self.f32(1 / self.n)
            deviation = self.all_lanes([p[1] + self._apart(p[0], p[2], mean) for p in parts], self.add)
        b.say("The variance of the row.")
        variance = deviation * self.f32(1 / self.n)
        by, center = self.splat(b.arch("rsqrt_approx", variance + self.f32(self.eps)), g), self.splat(mean, g)
        w, shift = self.load(self.weights[0]), self.load(self.weights[1])
        self.store(self.mapped(n, lambda v: (v[0] - center) * by * v[1] + v[2], x, w, shift))

    def _outside_tail(self) -> Value:
        """Whether the thread has no part of the last chunk."""
        return self.thread >= (self.n % self.step) // self.width

    def _count(self) -> Value:
        """How many elements of the row this warp has."""
        own = self.f32(self.chunks * self.width)
        if self.tail:
            more = self.f32((self.chunks + 1) * self.width)
            own = self.b.select(self._outside_tail(), own, more)
            return self.over_warp(own, self.add)
        return self.f32(self.chunks * self.width * min(32, self.c.threads))

    def _mean(self, total: Value, count: Value) -> Value:
        b = self.b
        return total * b.arch("rcp_approx", self.maximum(count, self.f32(1.0)))

    def _apart(self, total: Value, count: Value, mean: Value) -> Value:
        """How far apart a warp's elements and the row's are, beyond the warp's own deviations."""
        distance = self._mean(total, count) - mean
        return count * (distance * distance)
