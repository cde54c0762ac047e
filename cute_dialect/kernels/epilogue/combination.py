"""Epilogue of a GEMM: ``D = f(alpha * A B + beta * S + bias)``, or an arbitrary elementwise graph.

Kernels always receive the epilogue as a graph (:mod:`cute_dialect.kernels.epilogue.graph`), which
:mod:`cute_dialect.kernels.epilogue.emit` evaluates.

>>> fused = Epilogue(alpha="arg", bias="n", activation="gelu")
>>> fused.name, list(fused.arguments("f16"))
('alpha-bn-gelu', ['bias', 'alpha'])
>>> Epilogue().name
''

A hook is an elementwise function in the kernel language. ``hook(x, row, column)`` returns the new value of an element.
``x`` is its f32 value, and ``row`` and ``column`` (Int32) are its coordinates in D, which may be out of bounds.

>>> def clipped(x, row, column):
...     return cute.min(x, 6.0)
>>> Epilogue(activation="relu", hook=clipped).name
'relu-clipped'
"""

# Traced values define operators and element types that pyright cannot check.
# pyright: reportArgumentType=false, reportUnknownArgumentType=false, reportOperatorIssue=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, lru_cache, wraps
from typing import Any, NamedTuple, TypeAlias

import cute_dialect.lang as cute
from cute_dialect.kernels.common.elements import OUTPUTS, number
from cute_dialect.kernels.epilogue.activations import parsed
from cute_dialect.kernels.epilogue.graph import STRIP, Builder, Graph, Input, Output, parts_of

Hook: TypeAlias = Callable[[Any, Any, Any], Any]
"""``hook(x, row, column)``"""

BYTES = {name: bits // 8 for name, bits in OUTPUTS.items()}
"""Types of results and biases -> bytes of an element."""


class Addends(NamedTuple):
    """Arguments of an epilogue besides the accumulator; None for those that it does not use."""

    source: Any = None  # S, a matrix like D
    bias: Any = None  # a vector
    alpha: Any = None
    beta: Any = None
    operands: Any = None  # inputs and extra outputs of a graph
    extents: Any = None  # (M, N), for a graph that reduces rows or columns

    def in_order(self) -> tuple[Any, ...]:
        """Return the arguments that are given, in the order of the graph's inputs."""
        given = (self.source, self.bias, self.alpha, self.beta)
        return tuple([x for x in given if x is not None]) if self.operands is None else tuple(self.operands)


class Epilogue(NamedTuple):
    """``D = activation(alpha * A B + beta * S + bias)``, followed by ``hook``. The default returns the accumulator."""

    alpha: float | str = 1.0  # a number, or "arg" for an f32 argument of the launch
    beta: float | str = 0.0  # likewise; 0 means no S
    bias: str = ""  # "n": per column, "m": per row, "": none
    bias_type: str = "f32"
    activation: str = ""  # one of kernels/epilogue/activations.py, or none
    hook: Hook | None = None
    graph: Graph | None = None  # the whole epilogue as a graph, instead of the fields above

    @property
    def active(self) -> bool:
        """Return True unless D is the accumulator itself."""
        return self != Epilogue()

    @property
    def name(self) -> str:
        """The part of a kernel's name that stands for the epilogue."""
        parts: list[str] = []
        for name, value, default in (("alpha", self.alpha, 1.0), ("beta", self.beta, 0.0)):
            if value != default:
                parts.append(name if isinstance(value, str) else f"{name}{value:g}")
        if self.bias:
            parts.append(f"b{self.bias}{'' if self.bias_type == 'f32' else self.bias_type}")
        if self.activation:
            parts.append(self.activation.replace("(", "").replace(")", "").replace(", ", "_"))
        if self.hook is not None:
            parts.append(getattr(self.hook, "__name__", "hook"))
        if self.graph is not None:
            parts.append(self.graph.name)
        return "-".join(parts)

    @property
    def suffix(self) -> str:
        """The end of a kernel's name: the name of the epilogue after a hyphen, or nothing without an epilogue."""
        return f"-{self.name}" if self.active else ""

    @property
    def whole(self) -> bool:
        """Return True if the epilogue maps integers to integers exactly."""
        integers = not self.bias or self.bias_type in ("i32", "i8", "ui8")
        plain = self.hook is None and self.activation in ("", "relu")
        return self.alpha == 1.0 and self.beta in (0.0, 1.0) and integers and plain and self.graph is None

    @property
    def half(self) -> bool:
        """Return True if D has half of the accumulator's columns."""
        return self.graph is not None and self.graph.half

    @property
    def split(self) -> str:
        """The modes of a reshaped result, or empty if its rows and columns are one mode each."""
        return "" if self.graph is None else self.graph.outputs[0].split

    def suits_tma(self, widths: Sequence[int]) -> bool:
        """Return True if TMA can store the reshaped result in chunks of these widths."""
        assert self.graph is not None
        first = parts_of(self.split)[1][0]
        return self.graph.outputs[0].order == "n" and (first == "?" or all(int(first) % w == 0 for w in widths))

    @property
    def whole_rows(self) -> bool:
        """Return True if the epilogue uses a row reduction."""
        return self.graph is not None and self.graph.whole_rows

    @property
    def paired(self) -> bool:
        """Return True if the epilogue combines pairs of adjacent columns."""
        return self.graph is not None and self.graph.paired

    @property
    def reduces(self) -> bool:
        """Return True if the epilogue has reductions over rows or columns as outputs."""
        return self.graph is not None and self.graph.reduces

    @property
    def block(self) -> int:
        """Columns of a block whose elements share a scale; 0 for none."""
        return 0 if self.graph is None else self.graph.block

    @property
    def whole_tiles(self) -> bool:
        """Return True if the epilogue needs all columns of a tile at once, and must know which are out of bounds."""
        return self.whole_rows or self.block > 0

    def check_parts(self, columns: Any, addends: Addends, at_once: int) -> None:
        """Assert in a host function that the row reduction has a partial result per ``at_once`` columns."""
        if self.graph is not None:
            for x, t in zip(self.graph.outputs[1:], addends.in_order()[len(self.graph.inputs) :]):
                if x.reduce and x.axis == "n":
                    assert t.shape[0] * at_once >= columns, (
                        "a row reduction of the epilogue must have a partial result for each group of columns of C"
                    )

    @property
    def by_element(self) -> bool:
        """Return True for a graph whose outputs each need only one accumulator element."""
        return self.graph is not None and not (self.paired or self.reduces or self.whole_tiles)

    @property
    def by_elements(self) -> bool:
        """Return True if the epilogue reads or writes matrices other than the result."""
        if self.graph is not None:
            return len(self.graph.outputs) > 1 or any(x.kind == "aux" for x in self.graph.inputs)
        return self.beta != 0.0

    @property
    def by_row(self) -> bool:
        """Return True if the epilogue depends on the row, so that a batch must not be flattened into one matrix."""
        if self.graph is not None:
            return self.graph.by_row
        return self.bias == "m" or self.hook is not None

    def transposed(self) -> Epilogue:
        """Return the epilogue of the transposed result, with rows and columns exchanged.

        >>> Epilogue(bias="n").transposed().bias
        'm'
        """
        hook = None if self.hook is None else _transposed(self.hook)
        graph = None if self.graph is None else self.graph.transposed()
        return self._replace(bias={"m": "n", "n": "m"}.get(self.bias, ""), hook=hook, graph=graph)

    def as_graph(self, *, pairs: bool = True, batch: bool = False) -> Graph | None:
        """Return the graph that a kernel evaluates, or None if D is the accumulator itself.

        Args:
            pairs: Load adjacent elements of a row at once.
            batch: The result has a batch mode.
        """
        if self.graph is not None or not self.active:
            return self.graph
        return _as_graph(self, pairs, batch)

    def arguments(
        self, output: str, *, batch: bool = False, row_major: bool = True, vectors: bool = True, array: bool = False
    ) -> dict[str, Any]:
        """Return the launch arguments after C and their annotations: ``source``, ``bias``, ``alpha``, ``beta`` as used.

        Args:
            output: The type of D.
            batch: S has a batch mode.
            row_major: S has contiguous rows.
            vectors: Strides of S are multiples of 16 bytes.
            array: S is a pointer array.
        """
        if self.graph is not None:
            operands = tuple([annotation(x) for x in (*self.graph.inputs, *self.graph.outputs[1:])])
            return {"operands": operands} if operands else {}
        found: dict[str, Any] = {}
        if self.beta != 0.0:
            d = f"?{{div={16 // BYTES[output]}}}" if vectors else "?"
            strides = f"{d},1" if row_major else f"1,{d}"
            behind = "?{i64}" if array else d  # matrices of an array need offsets of 64 bits
            layout = f"(?,?,?):({strides},{behind})" if batch else f"(?,?):({strides})"
            found["source"] = cute.Tensor[number(output), layout, f"align<{16 if vectors else BYTES[output]}>"]
        if self.bias:
            align = BYTES[self.bias_type] * (2 if self.bias == "n" and row_major and vectors else 1)
            found["bias"] = cute.Tensor[number(self.bias_type), "?:1", f"align<{align}>"]
        kind = cute.Float64 if output == "f64" else cute.Float32
        return found | {name: kind(0.0) for name in ("alpha", "beta") if getattr(self, name) == "arg"}

    def check_shapes(
        self, C: Any, addends: Addends, *, pairs: bool = True, array: bool = False, groups: Any = None
    ) -> None:
        """Assert in a host function that the arguments match D, which is given as C.

        Args:
            C: The result.
            addends: The arguments.
            pairs: Adjacent elements of a row are loaded at once.
            array: C is a pointer array.
            groups: Number of groups or matrices of an array, for per-matrix operands.
        """
        m, n, *matrices = extents_of(C)
        matrices = [groups] if groups is not None and (array or not matrices) else matrices
        self.check_extents(m, n, addends, matrices, array=array)
        if (addends.source is not None or self.bias == "n") and C.leading_dim == 1 and pairs:
            assert n % 2 == 0, "C must have an even number of columns"

    def check_extents(self, m: Any, n: Any, addends: Addends, matrices: Any = (), *, array: bool = False) -> None:
        """Assert in a host function that the arguments match a D of ``m`` rows and ``n`` columns, and its batch."""
        if self.graph is not None:
            _check_operands(self.graph, addends.in_order(), m, n * (2 if self.half else 1), list(matrices))
            return
        if addends.source is not None:
            rows, columns, *more = addends.source.shape
            assert rows == m, "source and C must have the same M"
            assert columns == n, "source and C must have the same N"
            if matrices and not array:
                assert more[0] == matrices[0], "source and C must have the same number of matrices"
        if self.bias == "n":
            assert cute.size(addends.bias) == n, "bias must have a value for each column of C"
        elif self.bias == "m":
            assert cute.size(addends.bias) == m, "bias must have a value for each row of C"

    def check(self) -> None:
        """Raise ValueError if the fields contradict each other."""
        if self.graph is not None and self != Epilogue(graph=self.graph):
            raise ValueError(f"Epilogue: graph cannot be combined with other fields, got {self._replace(graph=None)}")
        if self.bias not in ("", "m", "n") or self.bias_type not in BYTES:
            raise ValueError(
                f"Epilogue: bias {self.bias!r} of type {self.bias_type!r} is not supported; use 'm' or 'n' and one of "
                f"{', '.join(BYTES)}"
            )
        if self.activation:
            parsed(self.activation)
        for name in ("alpha", "beta"):
            value = getattr(self, name)
            if isinstance(value, str) and value != "arg":
                raise ValueError(f'Epilogue: {name} is {value!r}; use a number or "arg"')


@lru_cache(maxsize=1024)
def _as_graph(e: Epilogue, pairs: bool, batch: bool) -> Graph:
    """Return a linear combination with its activation and hook as a graph, with inputs in the order of
    :class:`Addends`.
    """
    make = Builder()
    source = make.load(Input("aux", batch=batch, pairs=pairs)) if e.beta != 0.0 else None
    bias = make.load(Input({"n": "row", "m": "column"}[e.bias], e.bias_type, pairs=pairs)) if e.bias else None
    alpha, beta = (
        make.load(Input("scalar", number=True)) if x == "arg" else make.constant(float(x)) for x in (e.alpha, e.beta)
    )
    x = make.accum()
    if e.alpha != 1.0:
        x = make.call("multiply", x, alpha)
    if source is not None:
        x = make.call("add", x, source) if e.beta == 1.0 else make.call("multiply_add", source, beta, x)
    if bias is not None:
        x = make.call("add", x, bias)
    if e.activation:
        name, numbers = parsed(e.activation)
        x = make.call(name, x, *[make.constant(y) for y in numbers])
    if e.hook is not None:
        x = make.hook(e.hook, x)
    return Graph(tuple(make.nodes), tuple(make.inputs), (Output(x),))


def annotation(x: Input | Output) -> Any:
    """Return the annotation of a graph's input or extra output."""
    kind = number(x.element)
    if x.split:
        return _annotation_of_digits(x, kind)
    if isinstance(x, Output):
        if x.reduce:
            return cute.Tensor[cute.Float32, "(?,?,?):(?,1,?)" if x.batch else "(?,?):(?,1)"]
        if x.block:
            return cute.Tensor[kind, "(?,?,?):(?,?,?)" if x.batch else "(?,?):(?,?)", f"align<{kind.width // 8}>"]
        if x.tma:
            d = f"?{{div={128 // kind.width}}}"
            strides = f"1,{d}" if x.order == "m" else f"{d},1"
            layout = f"(?,?,?):({strides},{d})" if x.batch else f"(?,?):({strides})"
            return cute.Tensor[kind, layout, "align<16>"]
        x = Input("aux", x.element, False, x.batch, x.order, x.pairs)
    if x.number:
        return kind(0) if kind.is_integer else kind(0.0)
    if x.kind == "aux":
        d = "?{div=2}" if x.pairs else "?"
        strides = {"n": f"{d},1", "m": f"1,{d}", "": "?,?"}[x.order]
        layout = f"(?,?,?):({strides},{d})" if x.batch else f"(?,?):({strides})"
    else:
        d = "1" if x.order or x.kind == "scalar" else "?"
        layout = f"(?,?):({d},{'?{div=2}' if x.pairs else '?'})" if x.batch else f"?:{d}"
    return cute.Tensor[kind, layout, f"align<{kind.width // 8 * (2 if x.pairs else 1)}>"]


def _annotation_of_digits(x: Input | Output, kind: Any) -> Any:
    """Return the annotation of a tensor whose rows or columns are several modes."""
    rows, columns, matrices = parts_of(x.split)
    rows, columns = rows if _has(x, "m") else [], columns if _has(x, "n") else []
    shape = (*rows, *columns, *(matrices if x.batch else []))
    d = "?{div=2}" if x.pairs else "?"
    strides = [d] * len(shape)
    if x.order and _has(x, x.order):
        strides[0 if x.order == "m" else len(rows)] = "1"
    layout = f"({','.join(shape)}):({','.join(strides)})"
    return cute.Tensor[kind, layout, f"align<{kind.width // 8 * (2 if x.pairs else 1)}>"]


def _has(x: Input | Output, mode: str) -> bool:
    """Return True if a tensor varies by row (mode "m") or by column (mode "n")."""
    return isinstance(x, Output) or x.kind == "aux" or x.kind == {"m": "column", "n": "row"}[mode]


def grouped(x: Input | Output, t: Any) -> Any:
    """Group the modes of a reshaped tensor into one mode each for rows, columns and batch."""
    if not x.split:
        return t
    rows, columns, matrices = parts_of(x.split)
    counts = [len(rows) if _has(x, "m") else 0, len(columns) if _has(x, "n") else 0, len(matrices) if x.batch else 0]
    at = 0
    for count in counts:
        if count > 1:
            t = cute.group_modes(t, at, at + count)
        at += count > 0
    return t


def extents_of(t: Any) -> tuple[Any, ...]:
    """Return the numbers of rows, columns and matrices of a tensor, each of which may be several modes."""
    return tuple([cute.size(t, mode=[i]) for i in range(cute.rank(t))])


def _check_operands(graph: Graph, operands: tuple[Any, ...], m: Any, n: Any, matrices: list[Any]) -> None:
    """Assert in a host function that the operands of a graph match D."""
    halves = graph.halves
    stored = [Input("aux", x.element, False, x.batch, x.order, x.pairs, halves[x.node], x.split)
              for x in graph.outputs[1:] if not x.reduce and not x.block]  # fmt: skip
    reduced = zip(graph.outputs[1:], operands[len(graph.inputs) :])
    for x, t in reduced:
        if x.reduce:
            columns = n // 2 if halves[x.node] else n
            assert t.shape[1] == (m if x.axis == "n" else columns), (
                "partial results of a reduction must have the extent of C"
            )
            if x.axis == "m":
                assert t.shape[0] * STRIP >= m, (
                    "a column reduction of the epilogue must have a partial result for each 16 rows of C"
                )
    behind = list(zip(graph.outputs[1:], operands[len(graph.inputs) :]))
    plain = [t for x, t in behind if not x.reduce and not x.block]
    for x, t in behind:
        if x.block:
            assert t.shape[0] == m, "the scales must have one row per row of C"
            assert t.shape[1] * x.block >= n, "the scales must have one column per block of columns of C"
    for i, (x, t) in enumerate(zip((*graph.inputs, *stored), (*operands[: len(graph.inputs)], *plain))):
        if x.number:
            continue
        extents = {"aux": (m, n), "row": (n,), "column": (m,), "matrix": tuple(matrices) or (1,), "scalar": (1,)}
        if x.half:
            extents |= {"aux": (m, n // 2), "row": (n // 2,)}
        wanted = (*extents[x.kind], *(matrices if x.batch else ()))
        shape: tuple[Any, ...] = extents_of(grouped(x, t)) if x.split else t.shape if cute.rank(t) > 1 else (t.shape,)
        for have, want in zip(shape, wanted):
            assert have == want, f"operand {i} of the epilogue, {x.kind}, must have the extents of C"
        if x.pairs:
            assert n % 2 == 0, "C must have an even number of columns"


@cache
def _transposed(hook: Hook) -> Hook:
    """Return a hook with row and column exchanged."""

    @wraps(hook)
    def of_column(x: Any, row: Any, column: Any) -> Any:
        return hook(x, column, row)

    return of_column
