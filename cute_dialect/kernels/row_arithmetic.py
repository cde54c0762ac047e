"""Arithmetic on register tensors for the row kernels: by groups of elements, widened where they are used."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from xdsl.dialects.builtin import VectorType

from cute_dialect.algebra.evaluation import size
from cute_dialect.algebra.values import Layout
from cute_dialect.kernels.script import Script
from cute_dialect.kernels.values import Value
from cute_dialect.memory_types import MemRefType

__all__ = ["Combine", "RowArithmetic", "lanes_of", "named"]

_T = TypeVar("_T")

Combine = Callable[[Value, Value], Value]


def named(value: Value, name: str) -> Value:
    """Return the value, by that name in the text."""
    b = value.builder
    assert isinstance(b, Script)
    return value if value.ssa.name_hint is not None else b.let(name, value)


def lanes_of(x: Value) -> int:
    """Return the length of a vector."""
    t = x.type
    assert isinstance(t, VectorType)
    return t.get_shape()[0]


class RowArithmetic:
    """The arithmetic of a thread that has ``values`` elements of a row."""

    def __init__(self, b: Script, element: str, values: int):
        self.b, self.element, self.values = b, element, values
        self.group = min(4, values & -values) if values else 1
        self.narrow = element != "f32"

    def registers(self, element: str, n: int) -> Value:
        """Allocate a register tensor of ``n`` elements."""
        return self.b.registers(f'!cute.memref<{element}, rmem, align<16>, "{n}:1">')

    def part(self, tensor: Value, offset: int, n: int) -> Value:
        """Return ``n`` elements of a register tensor."""
        return self.b.view(self.moved(tensor, offset), f"{n}:1")

    def moved(self, tensor: Value, offset: int) -> Value:
        """Return the iterator, so many elements further on."""
        return self.b.pointer(tensor, offset) if offset else self.b.iterator(tensor)

    def length(self, fragment: Value) -> int:
        """Return how many elements a register tensor has."""
        t = fragment.type
        assert isinstance(t, MemRefType)
        n = size(t.layout.shape) if isinstance(t.layout, Layout) else 0
        assert isinstance(n, int)
        return n

    def f32(self, x: float) -> Value:
        """Make a constant of type ``f32``."""
        return self.b.constant(x, "f32")

    def splat(self, x: Value, n: int) -> Value:
        """Make a vector of equal elements."""
        filled = self.registers("f32", n)
        self.b.do("cute.fill", filled, x)
        return self.b.load_vec(filled)

    def wide(self, x: Value) -> Value:
        """Return a number or a vector as ``f32``."""
        vector = isinstance(x.type, VectorType)
        wide = f"vector<{lanes_of(x)}xf32>" if vector else "f32"
        return x if str(x.type) == wide else self.b.op("arith.extf", x, type=wide)

    def grouped(self, values: Value, n: int) -> tuple[Value, int]:
        """Return a register tensor by groups of up to four elements, and their size; sums then have no long chain of
        steps.
        """
        g = min(4, n & -n)
        if n == g:
            return values, g
        return self.b.view(self.b.iterator(values), f"({g},{n // g}):(1,{g})"), g

    def combined(self, values: Value, n: int, combine: Combine, term: Callable[[Value], Value]) -> Value:
        """Return what ``term`` makes of the elements of a register tensor, by groups, all of it as one."""
        b = self.b
        view, g = self.grouped(values, n)

        def group(i: Value | int) -> Value:
            return term(b.load_vec(b.slice(view, None, i) if n > g else values))

        total = group(0)
        if n > g:
            with b.for_(1, n // g, carry=[total]) as loop:
                loop.next(combine(loop.args[0], group(loop.iv)))
            (total,) = loop.results
        return self.over_vector(total, combine)

    def over_vector(self, total: Value, combine: Combine) -> Value:
        """Combine the elements of a vector into one."""
        b = self.b
        g = lanes_of(total)
        element = str(total.type).removesuffix(">").rpartition("x")[2]
        lanes = named(self.registers(element, g), "lanes")
        b.store_vec(total, lanes)
        return self.tree([b.load(lanes, i) for i in range(g)], combine)

    def mapped(self, function: Callable[[Value], Value], values: Value) -> Value:
        """Return ``function`` of the elements of a tensor, by groups and as ``f32``, in new registers."""
        b, n = self.b, self.values
        out = self.registers("f32", n)
        views = [self.grouped(t, n)[0] for t in (values, out)]
        if n == self.group:
            b.store_vec(function(self.wide(b.load_vec(values))), out)
        else:
            with b.for_(0, n // self.group) as loop:
                x, y = (b.slice(v, None, loop.iv) for v in views)
                b.store_vec(function(self.wide(b.load_vec(x))), y)
        return out

    def each(self, x: Value, function: Callable[[Value], Value]) -> Value:
        """Return a function of each element of a vector."""
        b, n = self.b, lanes_of(x)
        lanes = self.registers("f32", n)
        b.store_vec(x, lanes)
        with b.for_(0, n) as loop:
            b.store(lanes, loop.iv, function(b.load(lanes, loop.iv)))
        return b.load_vec(lanes)

    def tree(self, items: list[_T], combine: Callable[[_T, _T], _T]) -> _T:
        """Combine a power of two of items into one."""
        while len(items) > 1:
            items = [combine(x, y) for x, y in zip(items[::2], items[1::2])]
        return items[0]

    def add(self, x: Value, y: Value) -> Value:
        """Return the sum."""
        return x + y

    def maximum(self, x: Value, y: Value) -> Value:
        """Return the larger one."""
        return self.b.binary("max", x, y)

    def over_lanes(self, x: Value, combine: Combine, lanes: int) -> Value:
        """Combine over groups of ``lanes`` lanes; all of them get the result."""
        offset = lanes // 2
        while offset:
            x = combine(x, self.b.arch("shfl_sync", x, offset))
            offset //= 2
        return x
