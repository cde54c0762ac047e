"""The epilogue of the generators of GEMMs; what it may be says :mod:`cute_dialect.kernels.gemm.epilogue`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from cute_dialect.kernels.builder import Builder
from cute_dialect.kernels.gemm.epilogue import Epilogue
from cute_dialect.kernels.values import Value

__all__ = ["ACTIVATIONS", "Fused", "arguments", "checks"]

_VECTOR_BYTES = {"f16": 2, "bf16": 2, "f32": 4}


def arguments(epilogue: Epilogue, output: str, *, batch: bool = False) -> dict[str, str]:
    """Return the types of :meth:`Epilogue.arguments`."""
    found: dict[str, str] = {}
    for name, annotation in epilogue.arguments(output, batch=batch).items():
        if not hasattr(annotation, "layout"):
            found[name] = "f32"
            continue
        kind, align = annotation.dtype.mlir_type, annotation.alignment
        aligned = f"align<{align}>, " if align > _VECTOR_BYTES[kind] else ""
        found[name] = f'!cute.memref<{kind}, gmem, {aligned}"{annotation.layout}">'
    return found


def checks(
    epilogue: Epilogue, b: Builder, arguments: dict[str, Value], rows: Value, columns: Value, matrices: list[Value]
) -> None:
    """Emit host code: assert that the arguments' shapes fit D."""
    found: list[tuple[Value, str]] = []
    if "source" in arguments:
        names = ("M", "N", "number of matrices")
        extents = _extents(b, arguments["source"], 2 + len(matrices))
        for extent, expected, name in zip(extents, (rows, columns, *matrices), names):
            found.append((extent.eq(expected), f"source and C must have the same {name}"))
    if "bias" in arguments:
        (extent,) = _extents(b, arguments["bias"], 1)
        along, name = (columns, "column") if epilogue.bias == "n" else (rows, "row")
        found.append((extent.eq(along), f"bias must have a value for each {name} of C"))
    if "source" in arguments or epilogue.bias == "n":
        found.append(((columns % 2).eq(0), "C must have an even number of columns"))
    for ok, text in found:
        b.do("cf.assert", ok, msg=f'"{text}"')


def _extents(b: Builder, tensor: Value, count: int) -> tuple[Value, ...]:
    shape = b.op("cute.get_shape", b.op("cute.get_layout", tensor))
    return b.results("cute.get_scalars", shape, types=["i32"] * count)


def _relu(b: Builder, x: Value) -> Value:
    return b.binary("max", x, b.constant(0.0, "f32"))


def _exp2(b: Builder, x: Value) -> Value:
    return b.arch("exp2_approx", x)


def _sigmoid_times(b: Builder, x: Value, y: Value) -> Value:
    """Return ``x / (1 + 2^y)``; an infinite power gives 0."""
    return x * b.arch("rcp_approx", _exp2(b, y) + b.constant(1.0, "f32"))


_LOG2_E = 1.4426950408889634


def _silu(b: Builder, x: Value) -> Value:
    """Return ``x / (1 + e^-x)``"""
    return _sigmoid_times(b, x, x * b.constant(-_LOG2_E, "f32"))


def _gelu_tanh(b: Builder, x: Value) -> Value:
    """Return ``x (1 + tanh u) / 2 = x / (1 + e^-2u)`` with ``u = sqrt(2 / pi) (x + 0.044715 x^3)``."""
    scale = -2 * 0.7978845608028654 * _LOG2_E
    cubic = x * x * b.constant(0.044715 * scale, "f32") + b.constant(scale, "f32")
    return _sigmoid_times(b, x, x * cubic)


_ERF = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)
"""``1 - erf(z) = t (a1 + t (a2 + ...)) e^(-z^2)``, ``t = 1 / (1 + 0.3275911 z)``, within 1.5e-7 (Abramowitz and Stegun,
7.1.26).
"""


def _gelu(b: Builder, x: Value) -> Value:
    """Return ``x (1 + erf(x / sqrt 2)) / 2``; the tail of negative ``x`` is not a difference of near numbers."""

    def f32(value: float) -> Value:
        return b.constant(value, "f32")

    z = b.binary("max", x, x * f32(-1.0)) * f32(0.7071067811865476)
    t = b.arch("rcp_approx", z * f32(0.3275911) + f32(1.0))
    total = f32(0.5 * _ERF[-1])
    for a in reversed(_ERF[:-1]):
        total = total * t + f32(0.5 * a)
    tail = total * t * _exp2(b, z * z * f32(-_LOG2_E))
    negative = b.op("arith.cmpf", x, f32(0.0), type="i1", predicate="4 : i64", fastmath="#arith.fastmath<none>")
    return x * b.select(negative, tail, f32(1.0) - tail)


ACTIVATIONS: dict[str, Callable[[Builder, Value], Value]] = {
    "relu": _relu,
    "gelu": _gelu,
    "gelu_tanh": _gelu_tanh,
    "silu": _silu,
}
"""Name to function; ``gelu`` is the one with erf, ``gelu_tanh`` the approximation that torch calls ``tanh``."""


class Fused:
    """Emits an epilogue in a kernel; ``output``: elements of D; ``arguments``: of :meth:`Epilogue.arguments`."""

    def __init__(self, b: Builder, epilogue: Epilogue, output: str, arguments: dict[str, Value]):
        self.b, self.e, self.output, self.arguments = b, epilogue, output, arguments

    def apply(self, values: Value, columns: int, first: tuple[Value, Value], lane: Value, matrix: Value | None) -> None:
        """Change the registers of ``columns`` columns; ``first``: row and column in D of the first of this warp's 16
        rows; ``matrix``: of a batch.
        """
        b, e = self.b, self.e
        column_0 = first[1] + (lane % 4) * 2
        rows = [first[0] + lane // 4 + 8 * half for half in range(2)]
        lines = [self._line(row, matrix) for row in rows]
        # A value a row, for all columns.
        row_bias = [self._bias(row, 1) if e.bias == "m" else None for row in rows]
        scale = {name: self._number(name) for name in ("alpha", "beta") if getattr(e, name) != 1.0}
        with b.for_(0, columns // 8) as loop:  # register tensors: the loop is unrolled
            column = column_0 + loop.iv * 8
            column_bias = self._bias(column, 2) if e.bias == "n" else None
            for half in range(2):
                pair = self._source(lines[half], column)
                for i in range(2):
                    where = loop.iv * 4 + (2 * half + i)
                    x = b.load(values, where)
                    if "alpha" in scale:
                        x = x * scale["alpha"]
                    if pair is not None:
                        s = self._element(pair, i)
                        x = s * scale["beta"] + x if "beta" in scale else s + x
                    bias = row_bias[half] if column_bias is None else column_bias
                    if bias is not None:
                        x = x + self._element(bias, i)
                    if e.activation:
                        x = ACTIVATIONS[e.activation](b, x)
                    if e.hook is not None:
                        x = cast("Any", e.hook)(b, x, rows[half], column + i)  # the generators' own hooks
                    b.store(values, where, x)

    def _number(self, name: str) -> Value:
        value = getattr(self.e, name)
        return self.arguments[name] if value == "arg" else self.b.constant(float(value), "f32")

    def _element(self, value: Value, i: int) -> Value:
        """Return element ``i`` of a pair, as f32; or a number that is for both."""
        b = self.b
        if str(value.type).startswith("vector"):
            value = b.op("vector.extract", value, type="f32", static_position=f"array<i64: {i}>")
        return value

    def _widened(self, value: Value, element: str, count: int) -> Value:
        if element == "f32":
            return value
        to = "f32" if count == 1 else f"vector<{count}xf32>"
        return self.b.op("arith.extf", value, type=to)

    def _inside(self, where: Value, extent: Value, count: int) -> Value:
        """Return the place, or the last one of the tensor: values for what lies outside are not used, but must be
        readable.
        """
        return self.b.minimum(where, extent - count)

    def _bias(self, where: Value, count: int) -> Value:
        b, tensor, element = self.b, self.arguments["bias"], self.e.bias_type
        (extent,) = _extents(b, tensor, 1)
        at = self._inside(where, extent, count)
        if count == 1:
            return self._widened(b.load(tensor, at), element, 1)
        return self._widened(self._two(b.pointer(tensor, at), element), element, 2)

    def _two(self, pointer: Value, element: str) -> Value:
        b = self.b
        aligned = f"!cute.ptr<{element}, gmem, align<{2 * _VECTOR_BYTES[element]}>>"
        return b.load_vec(b.view(b.op("cute.assume", pointer, type=aligned), "2:1"))

    def _line(self, row: Value, matrix: Value | None) -> tuple[Value, Value] | None:
        """Return a row of the source, and its length."""
        b = self.b
        if "source" not in self.arguments:
            return None
        tensor = self.arguments["source"]
        rows, columns, *_ = _extents(b, tensor, 2 if matrix is None else 3)
        at = (self._inside(row, rows, 1), None, *([matrix] if matrix is not None else []))
        return b.slice(tensor, *at), columns

    def _source(self, line: tuple[Value, Value] | None, column: Value) -> Value | None:
        if line is None:
            return None
        tensor, columns = line
        at = self._inside(column, columns, 2)
        return self._widened(self._two(self.b.pointer(tensor, at), self.output), self.output, 2)
