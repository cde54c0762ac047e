"""The epilogue of a GEMM, before its sums are stored: ``D = f(alpha * A B + beta * S + bias)``.

The sums of a warp group lie in registers as ``wgmma`` leaves them (PTX ISA, "Register fragments and shared memory
matrix layouts"): register ``4 j + 2 h + e`` of lane ``l`` of warp ``w`` is row ``16 w + l / 4 + 8 h``, column
``8 j + 2 (l % 4) + e``.  An epilogue changes them there, in f32, before they are rounded.

>>> fused = Epilogue(alpha="arg", bias="n", activation="gelu")
>>> fused.name, list(fused.arguments("f16"))
('alpha-bn-gelu', ['bias', 'alpha'])
>>> Epilogue().name
''

Elementwise functions of your own are hooks, written in the language: ``hook(x, row, column)`` gives the new value of an
element; ``x`` is its f32 value, ``row`` and ``column`` its place in D (Int32), which may lie outside of D.

>>> def clipped(x, row, column):
...     return cute.min(x, 6.0)
>>> Epilogue(activation="relu", hook=clipped).name
'relu-clipped'
"""

# Operators and element types are those of values in a trace.
# pyright: reportArgumentType=false, reportUnknownArgumentType=false, reportOperatorIssue=false

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from typing import Any, NamedTuple, TypeAlias

import cute_dialect.lang as cute
from cute_dialect.kernels.gemm.elements import OUTPUTS, number

__all__ = ["ACTIVATIONS", "Addends", "Epilogue", "Fused", "Hook"]

Hook: TypeAlias = Callable[[Any, Any, Any], Any]
"""``hook(x, row, column)``"""

BYTES = {name: bits // 8 for name, bits in OUTPUTS.items()}
"""Types of results and biases, and bytes of an element."""


class Addends(NamedTuple):
    """What an epilogue takes besides the sums; None for what it has not: ``source`` like D, ``bias`` a vector,
    ``alpha`` and ``beta`` numbers.
    """

    source: Any = None
    bias: Any = None
    alpha: Any = None
    beta: Any = None


class Epilogue(NamedTuple):
    """``D = activation(alpha * A B + beta * S + bias)``, then ``hook``; the default leaves the sums as they are.

    ``alpha``, ``beta``: numbers, or ``"arg"`` for an f32 argument of that name of the launch; ``beta = 0``: no ``S``.
    ``bias``: ``"n"``, a value for each column, ``"m"``, for each row, or none; ``bias_type``: f16, bf16 or f32.
    ``activation``: one of ``ACTIVATIONS`` or none.
    """

    alpha: float | str = 1.0
    beta: float | str = 0.0
    bias: str = ""
    bias_type: str = "f32"
    activation: str = ""
    hook: Hook | None = None

    @property
    def active(self) -> bool:
        """Tell whether anything happens."""
        return self != Epilogue()

    @property
    def name(self) -> str:
        """Names it in a kernel's name."""
        parts: list[str] = []
        for name, value, default in (("alpha", self.alpha, 1.0), ("beta", self.beta, 0.0)):
            if value != default:
                parts.append(name if isinstance(value, str) else f"{name}{value:g}")
        if self.bias:
            parts.append(f"b{self.bias}{'' if self.bias_type == 'f32' else self.bias_type}")
        if self.activation:
            parts.append(self.activation)
        if self.hook is not None:
            parts.append(getattr(self.hook, "__name__", "hook"))
        return "-".join(parts)

    @property
    def whole(self) -> bool:
        """Tell whether it makes integers of integers, exactly."""
        integers = not self.bias or self.bias_type in ("i32", "i8", "ui8")
        plain = self.hook is None and self.activation in ("", "relu")
        return self.alpha == 1.0 and self.beta in (0.0, 1.0) and integers and plain

    def transposed(self) -> Epilogue:
        """Return the same of the transposed result: rows are its columns.

        >>> Epilogue(bias="n").transposed().bias
        'm'
        """
        hook = None if self.hook is None else _transposed(self.hook)
        return self._replace(bias={"m": "n", "n": "m"}.get(self.bias, ""), hook=hook)

    def arguments(
        self, output: str, *, batch: bool = False, row_major: bool = True, vectors: bool = True
    ) -> dict[str, Any]:  # fmt: skip
        """Return more arguments of the launch, after C, and their annotations: of ``source`` (S, as C), ``bias``,
        ``alpha``, ``beta`` those that there are.  ``vectors``: rows of S are of whole 16 bytes.
        """
        found: dict[str, Any] = {}
        if self.beta != 0.0:
            d = f"?{{div={16 // BYTES[output]}}}" if vectors else "?"
            strides = f"{d},1" if row_major else f"1,{d}"
            layout = f"(?,?,?):({strides},{d})" if batch else f"(?,?):({strides})"
            found["source"] = cute.Tensor[number(output), layout, f"align<{16 if vectors else BYTES[output]}>"]
        if self.bias:
            align = BYTES[self.bias_type] * (2 if self.bias == "n" and row_major and vectors else 1)
            found["bias"] = cute.Tensor[number(self.bias_type), "?:1", f"align<{align}>"]
        return found | {name: cute.Float32 for name in ("alpha", "beta") if getattr(self, name) == "arg"}

    def check_shapes(self, C: Any, addends: Addends, *, pairs: bool = True) -> None:
        """Assert in a host function that the arguments fit D, which C is; ``pairs``: see :class:`Fused`."""
        m, n, *matrices = C.shape
        if addends.source is not None:
            rows, columns, *more = addends.source.shape
            assert rows == m, "source and C must have the same M"
            assert columns == n, "source and C must have the same N"
            if matrices:
                assert more[0] == matrices[0], "source and C must have the same number of matrices"
        if self.bias == "n":
            assert cute.size(addends.bias) == n, "bias must have a value for each column of C"
        elif self.bias == "m":
            assert cute.size(addends.bias) == m, "bias must have a value for each row of C"
        if (addends.source is not None or self.bias == "n") and C.leading_dim == 1 and pairs:
            assert n % 2 == 0, "C must have an even number of columns"

    def check(self) -> None:
        """Raise ValueError unless there is such an epilogue."""
        if self.bias not in ("", "m", "n") or self.bias_type not in BYTES:
            raise ValueError(
                f"expected a bias along m or n of {', '.join(BYTES)}, got {self.bias!r} of {self.bias_type}"
            )
        if self.activation and self.activation not in ACTIVATIONS:
            raise ValueError(f"expected an activation of {', '.join(ACTIVATIONS)}, got {self.activation!r}")
        for name in ("alpha", "beta"):
            value = getattr(self, name)
            if isinstance(value, str) and value != "arg":
                raise ValueError(f'expected a number or "arg" for {name}, got {value!r}')


@cache
def _transposed(hook: Hook) -> Hook:
    """Return a hook that gives another one row and column in turn."""

    @wraps(hook)
    def of_column(x: Any, row: Any, column: Any) -> Any:
        return hook(x, column, row)

    return of_column


# ------------------------------------------------------------------------------------------------------- activations


def relu(x: Any) -> Any:
    """Return ``max(x, 0)``."""
    return cute.max(x, 0 if x.is_integer else 0.0)


def _sigmoid_times(x: Any, y: Any) -> Any:
    """Return ``x / (1 + 2^y)``; an infinite power gives 0."""
    return x * cute.arch.rcp_approx(cute.arch.exp2(y) + 1.0)


_LOG2_E = 1.4426950408889634


def silu(x: Any) -> Any:
    """Return ``x / (1 + e^-x)``."""
    return _sigmoid_times(x, x * -_LOG2_E)


def gelu_tanh(x: Any) -> Any:
    """Return ``x (1 + tanh u) / 2 = x / (1 + e^-2u)`` with ``u = sqrt(2 / pi) (x + 0.044715 x^3)``."""
    scale = -2 * 0.7978845608028654 * _LOG2_E
    return _sigmoid_times(x, x * (x * x * (0.044715 * scale) + scale))


_ERF = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)
"""``1 - erf(z) = t (a1 + t (a2 + ...)) e^(-z^2)``, ``t = 1 / (1 + 0.3275911 z)``, within 1.5e-7 (Abramowitz and Stegun,
7.1.26).
"""


def gelu(x: Any) -> Any:
    """Return ``x (1 + erf(x / sqrt 2)) / 2``; the tail of negative ``x`` is not a difference of near numbers."""
    z = cute.max(x, x * -1.0) * 0.7071067811865476
    t = cute.arch.rcp_approx(z * 0.3275911 + 1.0)
    total = cute.Float32(0.5 * _ERF[-1])
    for a in reversed(_ERF[:-1]):
        total = total * t + 0.5 * a
    tail = total * t * cute.arch.exp2(z * z * -_LOG2_E)
    return x * (tail if x < 0.0 else 1.0 - tail)


ACTIVATIONS: dict[str, Callable[[Any], Any]] = {"relu": relu, "gelu": gelu, "gelu_tanh": gelu_tanh, "silu": silu}
"""Name to function; ``gelu`` is the one with erf, ``gelu_tanh`` the approximation that torch calls ``tanh``."""


# ------------------------------------------------------------------------------------------------------ in the kernel


class Fused:
    """An epilogue in a kernel; ``pairs``: neighbours in a row of C, and of what is like it, are loaded at once;
    ``whole``: sums and result are integers, and so is all between where it is exact.
    """

    def __init__(self, epilogue: Epilogue, addends: Addends, *, pairs: bool = True, whole: bool = False):
        self.epilogue, self.addends, self.pairs = epilogue, addends, pairs
        self.compute = cute.Int32 if whole and epilogue.whole else cute.Float32

    def taken(self, values: Any) -> Any:
        """Return sums in the type that the epilogue computes in."""
        if values.element_type is self.compute:
            return values
        found = cute.make_rmem_tensor_like(values, self.compute)
        found.store(values.load().to(self.compute))
        return found

    def apply(self, values: Any, columns: int, row: Any, column: Any, matrix: Any = None) -> None:
        """Change the registers of 16 rows and ``columns`` columns of a warp, ``values[0]`` the first.

        ``row``, ``column``: in D, of the first of them; ``matrix``: of a batch.
        """
        e, lane = self.epilogue, cute.arch.lane_idx()
        if not e.active:
            return
        alpha, beta = self.addends.alpha if e.alpha == "arg" else e.alpha, e.beta
        beta = self.addends.beta if beta == "arg" else beta
        rows = [row + lane // 4 + 8 * half for half in range(2)]
        lines = [self.line(r, matrix) for r in rows]
        of_row = [self.row_bias(r) for r in rows]
        first = column + lane % 4 * 2
        for j in range(columns // 8):  # registers: the passes unroll it
            at = first + j * 8
            of_column = self.column_bias(at)
            for half in cute.range_constexpr(2):
                added = self.pair(lines[half], at)
                for i in cute.range_constexpr(2):
                    x = values[j * 4 + (2 * half + i)]
                    if e.alpha != 1.0:
                        x = x * alpha
                    if added is not None:
                        x = x + added[i] if e.beta == 1.0 else added[i] * beta + x
                    if e.bias == "n":
                        x = x + of_column[i]
                    elif e.bias == "m":
                        x = x + of_row[half]
                    if e.activation:
                        x = ACTIVATIONS[e.activation](x)
                    if e.hook is not None:
                        x = e.hook(x, rows[half], at + i)
                    values[j * 4 + (2 * half + i)] = x

    def apply_each(self, values: Any, ids: Any) -> None:
        """Change registers one by one; ``ids``: the place of each in D, a matrix."""
        e = self.epilogue
        if not e.active:
            return
        alpha, beta = (getattr(self.addends, n) if getattr(e, n) == "arg" else getattr(e, n) for n in ("alpha", "beta"))
        source, bias = self.addends.source, self.addends.bias
        for i in range(cute.size(values)):  # registers: the passes unroll it
            (row, column), x = ids[i], values[i]
            if e.alpha != 1.0:
                x = x * alpha
            if source is not None:
                added = source[cute.min(row, source.shape[0] - 1), cute.min(column, source.shape[1] - 1)]
                added = added.to(self.compute)
                x = x + added if e.beta == 1.0 else added * beta + x
            if e.bias:
                x = x + bias[cute.min(column if e.bias == "n" else row, cute.size(bias) - 1)].to(self.compute)
            if e.activation:
                x = ACTIVATIONS[e.activation](x)
            values[i] = x if e.hook is None else e.hook(x, row, column)

    # What lies outside of D is not used, but must be readable: the last values stand for it.

    def row_bias(self, row: Any) -> Any:
        """Return the bias of a row."""
        if self.epilogue.bias != "m":
            return None
        bias = self.addends.bias
        return bias[cute.min(row, cute.size(bias) - 1)].to(self.compute)

    def column_bias(self, column: Any) -> Any:
        """Return the bias of two columns."""
        return self.pair(self.addends.bias, column) if self.epilogue.bias == "n" else None

    def line(self, row: Any, matrix: Any) -> Any:
        """Return a row of the source."""
        source = self.addends.source
        if source is None:
            return None
        at = cute.min(row, source.shape[0] - 1)
        return source[at, None] if matrix is None else source[at, None, matrix]

    def pair(self, line: Any, column: Any) -> Any:
        """Return two neighbours of a vector as f32, the first in an even place."""
        if line is None:
            return None
        if not self.pairs:
            last = cute.size(line) - 1
            return [line[cute.min(column + i, last)].to(self.compute) for i in range(2)]
        at = line.iterator + cute.min(column, cute.size(line) - 2)
        two = cute.make_tensor(at.align(2 * line.element_type.width // 8), cute.make_layout(2))
        return two.load().to(self.compute)
