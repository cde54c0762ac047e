"""Elementwise functions over any number of arrays: :func:`elementwise`, ``add``, ``mul`` and the like.

    op.elementwise(lambda x, y, s: op.epilogue.relu(x * s + y), x, bias, 0.5)

Like an epilogue, a function runs once with proxies and becomes a graph.  Its arrays broadcast to one shape.  Modes
that are adjacent in memory in all arrays are merged, so that the kernel sees matrices, and contiguous arrays as one
row.
"""

# torch is not installed where the types are checked. Arrays belong to any library, and functions are the user's.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportUnknownLambdaType=false

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from cute_dialect.kernels.common.philox import index_shapes
from cute_dialect.kernels.elementwise.graph import ELEMENTS, Plan, elementwise_text, kinds_of
from cute_dialect.kernels.epilogue.graph import Builder, Graph, Input, Node, Output
from cute_dialect.op.arrays.dtypes import compute_type, element_name, result_element
from cute_dialect.op.arrays.library import is_autocast
from cute_dialect.op.arrays.operand_views import overlap
from cute_dialect.op.epilogue.output_layout import Making
from cute_dialect.op.epilogue.tracer_values import Integer, Needed, Proxy
from cute_dialect.op.epilogue.tracing import add_place, name_of
from cute_dialect.op.errors import ArgumentError, DtypeError, EpilogueError, LayoutError, ShapeError, UnsupportedError
from cute_dialect.op.execute.array_call import RowCall, RowKernel
from cute_dialect.op.execute.autocast import F32_ELEMENTS, recast
from cute_dialect.op.execute.call_cache import KnownCalls
from cute_dialect.op.execute.recording import needs_gradients
from cute_dialect.op.keywords import check_keywords, checks_keywords
from cute_dialect.runtime.arrays import ArrayView

if TYPE_CHECKING:  # pragma: no cover
    from typing import Never

    from cute_dialect.op.signature_types import Array

_BETWEEN_NUMBERS = {
    "add", "subtract", "multiply", "divide", "floor_divide", "remainder", "negative", "abs", "maximum", "minimum",
    "multiply_add", "scaled",
}  # fmt: skip
"""Functions of numbers, which do not take booleans only."""

_NUMBERS = frozenset((bool, int, float))

_MOST = 2**30
"""Limit of elements per merged mode, and of vectors per call."""


class _Found(NamedTuple):
    """A traced function."""

    graph: Graph
    # The argument of each input. A negative number n is `places[-n - 1]`.
    inputs: tuple[int, ...]
    several: bool  # True if the function returns a tuple
    places: tuple[str, ...] = ()  # indices that random numbers depend on: "row", "column", "matrix"


class _Making(Making):
    """Builds the graph of an elementwise function.

    Random numbers depend on the indices of their element, but a kernel does not see the modes of the function's
    arrays.  So the indices are operands, in arrays that are loaded like any other.
    """

    ARRANGES: ClassVar[bool] = False

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__(shape)
        self.numbers: list[int] = []
        self.places: list[str] = []
        self._indices: dict[str, int] = {}

    def integer(self, name: str) -> int:
        """Return the node of an integer that is a launch argument."""
        if name not in self._integers:
            self.numbers.append(int(name.split()[-1]))
            self._integers[name] = self.load(Input("scalar", "i64", number=True))
        return self._integers[name]

    def random(self, seed: int, offset: int, half: bool = False) -> int:
        """Return the node of a uniform random number in [0, 1) per element."""
        if not self._indices:
            for place in index_shapes(self.sums):
                self.places.append(place)
                self.numbers.append(-len(self.places))
                self._indices[place] = self.load(Input("aux", "i32"))
        at = [self._indices.get(place, -1) for place in ("row", "column", "matrix")]
        at = [self.constant(0) if node < 0 else node for node in at]
        return self.add(Node("random", (seed, offset, *at)))


class Elementwise:
    """An elementwise function, to be called with arrays and numbers.  :func:`elementwise` makes it.

    Closures and globals are read at the first call with arguments of a kind.  If the function's code is replaced
    (``function.__code__ = …``), it is traced again.
    """

    def __init__(self, function: Callable[..., Any], name: str = "") -> None:
        self.function = function
        self.name = name or f"elementwise {name_of(function)}"
        self._known = KnownCalls(tf32=False)
        self._is_random = False  # each seed would be another cached call
        self._takes_numbers = False  # a call had numbers among its arrays
        self.slopes: dict[object, Any] = {}  # derivatives by the kind of arguments

    def __repr__(self) -> str:
        return f"<{self.name}>"

    def __call__(
        self, *arrays: Array, out: Array = None, dtype: object = None, device: object = None, **unknown: Never
    ) -> Array:
        """Compute the function; for the arguments see :func:`elementwise`."""
        if unknown:
            check_keywords(self.name, self.__call__, unknown, interpreted=False)
        known = self._known
        code = getattr(self.function, "__code__", None)
        tensors, numbers = arrays, (dtype, code, len(arrays))
        is_split = self._takes_numbers and not _NUMBERS.isdisjoint(map(type, arrays))
        if is_split:
            tensors, numbers = _split(dtype, code, arrays)
        plain = out is None and device is None
        if plain and not known.is_traced():
            done = known.again(numbers, *tensors)
            if done is not None:
                return done
        if not is_split and any([isinstance(x, bool | int | float) for x in arrays]):
            self._takes_numbers = True
            tensors, numbers = _split(dtype, code, arrays)
            done = self._known.again(numbers, *tensors) if plain and not self._known.is_traced() else None
            if done is not None:
                return done
        if out is None and self.name in F32_ELEMENTS and is_autocast(arrays[0]):
            return recast(self.name, lambda x, **how: self(x, **how), {"x": arrays[0]}, dtype=dtype, device=device)
        if self._learns(tensors):
            if out is not None:
                raise UnsupportedError(
                    f"{self.name}: out cannot be used when gradients are required, or in torch.compile; "
                    "call it under torch.no_grad()"
                )
            from cute_dialect.op.torch.elementwise import call_with_gradients  # late: torch

            if plain and not self._is_random and not self._known.is_traced():
                return self._known.computed(numbers, tensors, lambda: call_with_gradients(self, arrays, dtype, device))
            return call_with_gradients(self, arrays, dtype, device)
        if not plain or self._is_random:
            return self.computed(arrays, out, dtype, device)
        return known.recorded(numbers, tensors, lambda: self.computed(arrays, None, dtype, None))

    def kernel(self, *arrays: Any, dtype: object = None) -> RowKernel:
        """Return the kernel of a call with NumPy arrays of the same layouts, of any length."""
        seen: list[RowKernel] = []
        self.computed(arrays, None, dtype, "cpu", seen=seen)
        return seen[0]

    def _learns(self, tensors: Sequence[Any]) -> bool:
        """Return True if torch requires gradients, or compiles."""
        torch = sys.modules.get("torch")
        return torch is not None and (needs_gradients(*tensors) or torch.compiler.is_compiling())

    def computed(
        self, arrays: Sequence[Any], out: Any, dtype: object, device: object, seen: list[RowKernel] | None = None
    ) -> Any:
        """Compute the function without gradients.

        Args:
            seen: if given, the kernel is appended to it instead of launched.
        """
        names = [f"argument {i}" for i in range(len(arrays))]
        given = {n: x for n, x in zip(names, arrays) if not isinstance(x, bool | int | float)}
        if not given:
            raise EpilogueError(f"{self.name}: all arguments are numbers; pass at least one array")
        more = [f"out {i}" for i in range(len(out))] if isinstance(out, tuple | list) else ["out"]
        outs = dict(zip(more, out if isinstance(out, tuple | list) else (out,)))
        one = RowCall(self.name, {**given, **outs}, device, [*given, *outs], ELEMENTS)
        views = [one.views[n] for n in given]
        for n, view in one.views.items():
            if view.dtype not in ELEMENTS:
                raise DtypeError(f"{self.name}: {n} has dtype {view.dtype}; it must have one of {', '.join(ELEMENTS)}")
        shape = _common(self.name, [v.shape for v in views])
        compute = compute_type([v.dtype for v in views], dtype)
        found = self.traced(arrays, views, shape, compute)
        count = len(found.graph.outputs)
        if out is not None and len(outs) != count:
            raise ShapeError(f"{self.name}: out has {len(outs)} arrays; the function has {count} results")
        kinds = [given_out.dtype for n in outs if (given_out := one.views.get(n)) is not None]
        if dtype is not None and kinds and any(k != element_name(dtype) for k in kinds):
            raise DtypeError(f"{self.name}: out has dtype {kinds[0]}, but dtype is {element_name(dtype)}; omit one")
        if dtype is not None and element_name(dtype) not in ELEMENTS:
            raise DtypeError(
                f"{self.name}: dtype {element_name(dtype)} is not supported; use one of {', '.join(ELEMENTS)}"
            )
        values = kinds_of(found.graph, compute)
        elements = [
            element_name(dtype) if dtype is not None else result_element(values[x.node], [v.dtype for v in views])
            for x in found.graph.outputs
        ]
        wide = [_expanded(_bytes(v), shape) for v in views]
        order = _order(wide, [one.views[n] for n in outs if n in one.views], len(shape))
        made: list[Any] = []
        written: list[ArrayView] = []
        for n, element in zip((*outs, *[""] * count)[:count], elements):
            if one.views.get(n) is not None:
                one.expect(n, shape)
                made.append(outs[n])
                written.append(_turned(one.views[n], order))
                self._check_out(n, _bytes(one.views[n]), wide, kinds)
            else:
                made.append(one.ordered_result(shape, order, element))
                written.append(_turned(one.view_of(made[-1]), order))
        found = self._stored(found, [v.dtype for v in written], compute)
        written = [_bytes(v) for v in written]
        if 0 not in shape:
            for place in found.places:
                wide.append(_expanded(_numbered(place, shape, one), shape))
            kernel, args = self._prepared(
                one, found, [_turned(v, order) for v in wide], written, arrays, given, names, compute
            )
            if seen is not None:
                seen.append(kernel)
                return None
            one.launch(kernel, *args)
            self._is_random = self._is_random or bool(found.places)
        return tuple(made) if found.several else made[0]

    def _check_out(self, name: str, view: ArrayView, wide: Sequence[ArrayView], kinds: Sequence[str]) -> None:
        """Check that a result may be written while the arrays are read."""
        if any(step == 0 and n > 1 for n, step in zip(view.shape, view.strides)):
            raise LayoutError(f"{self.name}: {name} has strides {view.strides}; its elements must not share addresses")
        for v in wide:
            same = (v.pointer, v.strides, v.dtype) == (view.pointer, view.strides, view.dtype)
            if not same and overlap(v, view):
                raise LayoutError(f"{self.name}: {name} overlaps an argument of another layout; pass separate memory")

    def _prepared(
        self, one: RowCall, found: _Found, wide: list[ArrayView], written: list[ArrayView], arrays: Sequence[Any],
        given: dict[str, Any], names: Sequence[str], compute: str,
    ) -> tuple[RowKernel, tuple[Any, ...]]:  # fmt: skip
        """Return the kernel and its arguments for broadcast arrays."""
        places = {n: i for i, n in enumerate(given)}
        places |= {n: i for i, n in enumerate(found.places, len(given))}
        while len(modes := _modes([*wide, *written])) > 2:  # Copy the array that adds the most modes.
            lying = [len(_modes([v, *written])) for v in wide]
            worst = lying.index(max(lying))
            if lying[worst] <= len(_modes(written)) and len(_modes(written)) > 2:
                raise LayoutError(f"{self.name}: the rows of out must have a constant stride; pass a contiguous array")
            wide[worst] = _bytes(one.contiguous(wide[worst]))
        if len(modes) == 1 and any(stride != 1 for stride in modes[0][1][len(wide) :]):
            modes.append((1, []))  # a result with gaps: rows of one element
        rows, columns = ([(1, []), *modes] if modes else [(1, []), (1, [])])[-2:]
        m, n = rows[0], columns[0]
        steps = [
            (rows[1][i] if rows[1] else -(-n // 16) * 16, columns[1][i] if columns[1] else 1)
            for i in range(len(wide) + len(written))
        ]
        operands: list[Any] = []
        inputs: list[Input] = []
        for number, x in zip(found.inputs, found.graph.inputs):
            if x.number:
                operands.append(arrays[number] if x.element == "i64" else float(arrays[number]))
                inputs.append(x)
                continue
            i = places[names[number] if number >= 0 else found.places[-number - 1]]
            down, along = steps[i] if any(wide[i].strides) else (0, 0)
            view = wide[i]
            if m == 1 and along:
                kind, shape, strides = "aux", (1, n), (steps[i][0], along)
            elif down == along == 0:
                kind, shape, strides = "scalar", (1,), (1,)
            elif along == 0:
                kind, shape, strides = "column", (m,), (down,)
            elif down == 0 and along == 1:
                kind, shape, strides = "row", (n,), (1,)
            else:
                kind, shape, strides = "aux", (m, n), (down, along)
            inputs.append(Input(kind, x.element, order="n" if strides[-1] == 1 and kind != "scalar" else ""))
            operands.append(view._replace(shape=shape, strides=strides))
        results: list[ArrayView] = []
        for view, (down, along) in zip(written, steps[len(wide) :]):
            if along != 1:
                raise LayoutError(f"{self.name}: out has strides {view.strides}; its rows must be contiguous")
            results.append(view._replace(shape=(m, n), strides=(down, 1)))
        outputs = [x._replace(element=view.dtype) for x, view in zip(found.graph.outputs, results)]
        plan = Plan(Graph(found.graph.nodes, tuple(inputs), tuple(outputs)), compute=compute)
        if _is_flat(plan, inputs, [x for x in (*operands, *results) if isinstance(x, ArrayView)], m, n):
            plan, line = plan._replace(flat=True), {"shape": (1, m * n), "strides": (-(-m * n // 16) * 16, 1)}
            named = [x.kind for x in inputs] + ["aux"] * len(results)
            lying = [x._replace(**line) if k == "aux" else x for k, x in zip(named, (*operands, *results))]
            operands, results = lying[: len(operands)], lying[len(operands) :]
            m, n = 1, m * n
        if m * -(-n // plan.vector) >= _MOST:
            raise UnsupportedError(
                f"{self.name}: {m} rows of {n} elements exceed the limit of {_MOST} vectors of 16 bytes"
            )
        return RowKernel(plan.name, elementwise_text, (plan,)), (*operands, *results)

    def _stored(self, found: _Found, elements: Sequence[str], compute: str) -> _Found:
        """Convert results that are stored as ``i1`` to booleans.

        Raises DtypeError for results that cannot be stored in their type.
        """
        make = Builder()
        make.inputs += found.graph.inputs
        make.nodes += found.graph.nodes
        kinds, outputs = kinds_of(found.graph, compute), list[Output]()
        for x, element in zip(found.graph.outputs, elements):
            kind = kinds[x.node]
            if element == "i64" and (kind == "f" or compute != "i64") and kind != "b":
                raise DtypeError(f"{self.name}: a result of floats cannot be stored as i64; store it as i32 or f64")
            if element.startswith(("i", "ui")) and element != "i1" and compute == "f64" and kind != "b":
                raise DtypeError(
                    f"{self.name}: a result in f64 cannot be stored as {element}; store it as a float, or compare it"
                )
            node = x.node
            if element == "i1" and kind != "b":
                node = make.call("not_equal", node, make.constant(0 if kind == "i" else 0.0))
            outputs.append(x._replace(node=node))
        graph = make.graph(outputs)
        return found._replace(graph=graph, inputs=tuple([found.inputs[i] for i in make.kept]))

    def traced(
        self, arrays: Sequence[Any], views: Sequence[ArrayView], shape: tuple[int, ...] | None = None,
        compute: str = "f32",
    ) -> _Found:  # fmt: skip
        """Return the graph.  Python integers are constants of it, floats only if the function uses their value."""
        try:
            inspect.signature(self.function).bind(*arrays)
        except TypeError as e:
            raise EpilogueError(f"{self.name}: {e}: called with {len(arrays)} arguments") from None
        except ValueError:  # Builtins may have no signature.
            pass
        shape = _common(self.name, [v.shape for v in views]) if shape is None else shape
        constants: set[str] = set()
        while True:
            try:
                return self._run(arrays, views, constants, shape, compute)
            except Needed as e:
                constants |= set(e.names)
            except EpilogueError as e:
                add_place(e, self.function, self.name)
                raise

    def _run(
        self, arrays: Sequence[Any], views: Sequence[ArrayView], constants: set[str], shape: tuple[int, ...],
        compute: str,
    ) -> _Found:  # fmt: skip
        make, given, there = _Making(shape), list[Any](), iter(views)
        numbers = make.numbers
        for i, x in enumerate(arrays):
            if isinstance(x, bool) or (isinstance(x, int | float) and f"argument {i}" in constants):
                given.append(x)
                continue
            if isinstance(x, int):  # A seed; it becomes a constant if its value is needed.
                given.append(Integer(f"argument {i}"))
                continue
            view = None if isinstance(x, float) else next(there)
            numbers.append(i)
            if view is None:
                node, needs, extents = make.load(Input("scalar", number=True)), {f"argument {i}"}, ()
            else:
                node, needs, extents = make.load(Input("aux", _bytes(view).dtype)), set[str](), view.shape
                if view.dtype == "i1":
                    whole = compute in ("i32", "i64")
                    node = make.call("not_equal", node, make.constant(0 if whole else 0.0))
            given.append(Proxy(self.name, make, node, extents, frozenset(needs), f"argument {i}"))
        results = self.function(*given)
        several = isinstance(results, tuple | list)
        outputs: list[Output] = []
        for x in results if several else [results]:
            if isinstance(x, bool | int | float):
                whole = compute in ("i32", "i64") or isinstance(x, bool)
                outputs.append(Output(make.constant(x if whole else float(x))))
            elif isinstance(x, Integer):
                raise Needed(frozenset((x.name,)))
            elif isinstance(x, Proxy):
                outputs.append(Output(x.node))
            else:
                raise EpilogueError(f"{self.name}: results must be computed from the arguments, got {type(x).__name__}")
        if not outputs:
            raise EpilogueError(f"{self.name}: the function returns nothing; return at least one result")
        wrong = [n.op for n in make.nodes if n.op in ("row", "column", "matrix", "even", "odd", "block", "whole")]
        if wrong:
            raise EpilogueError(f"{self.name}: {wrong[0]}() is not supported here; use elementwise functions only")
        graph = make.graph(outputs)
        self._check(graph, compute)
        return _Found(graph, tuple([numbers[i] for i in make.kept]), several, tuple(make.places))

    def _check(self, graph: Graph, compute: str) -> None:
        """Raise EpilogueError for operations that the types of the graph do not support."""
        kinds = kinds_of(graph, compute)
        for node in graph.nodes:
            of = [kinds[i] for i in node.operands]
            if node.op == "where" and of[0] != "b":
                raise EpilogueError(f"{self.name}: the condition of where() is a number; compare it, such as x != 0")
            if node.op in _BETWEEN_NUMBERS and set(of) == {"b"}:
                raise EpilogueError(f"{self.name}: {node.op}() does not take booleans only; use &, | and ~")
            if node.op in ("logical_and", "logical_or", "logical_not") and "f" in of:
                raise EpilogueError(f"{self.name}: {node.op}() does not take floats; compare them, such as x != 0")


def _split(dtype: object, code: object, arrays: Sequence[Any]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return the arrays among arguments, and the cache key of the other arguments."""
    tensors = tuple([x for x in arrays if not isinstance(x, bool | int | float)])
    return tensors, (dtype, code, *[repr(x) if isinstance(x, bool | int | float) else None for x in arrays])


@checks_keywords
def elementwise(
    function: Callable[..., Any], *arrays: Array, out: Array = None, dtype: object = None, device: object = None,
    **unknown: Never,
) -> Any:  # fmt: skip
    """Apply a function to the elements of arrays that broadcast, and to numbers, in one kernel.

    The function is computed in f32 (f64 or integers if the arrays require it) and rounded once.  If it returns a
    tuple, there are several results.

    Args:
        function: takes as many arguments as are passed; written with operators and functions of
            :mod:`cute_dialect.op.epilogue`, NumPy or torch.
        arrays: arrays and numbers; without them the result is an :class:`Elementwise`, which is traced once per kind
            of arguments.
        out: memory for the result, or a tuple; may be one of the arrays.
        dtype: type of the results, by default that of the arrays. Mixed types give f32, but 8-bit and 16-bit types
            give the 16-bit one.
        device: ``"cpu"`` runs on the interpreter.

    Raises:
        OpError: if the arguments are not supported.
    """
    if unknown:
        check_keywords("elementwise", elementwise, unknown, interpreted=False)
    if not callable(function):
        bool(function)  # A missing argument raises its own error.
        raise ArgumentError(f"elementwise: function is {function!r}; pass a function of the elements, such as a lambda")
    made = Elementwise(function)
    if not arrays and out is None and dtype is None and device is None:
        return made
    return made(*arrays, out=out, dtype=dtype, device=device)


add = Elementwise(lambda x, y: x + y, "add")
sub = Elementwise(lambda x, y: x - y, "sub")
mul = Elementwise(lambda x, y: x * y, "mul")
div = Elementwise(lambda x, y: x / y, "div")
for _f, _sign in ((add, "+"), (sub, "-"), (mul, "*"), (div, "/")):
    _f.__doc__ = f"Return ``x {_sign} y``, element by element. Other arguments: see ``op.elementwise``."


# ------------------------------------------------------------------------------------------------------------- layouts


def _common(call: str, shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Return the shape that arrays broadcast to.  Raises ShapeError."""
    rank = max(map(len, shapes))
    found = [1] * rank
    for shape in shapes:
        for i, n in enumerate(shape, rank - len(shape)):
            if n not in (found[i], 1) and found[i] != 1:
                text = ", ".join(map(str, shapes))
                raise ShapeError(f"{call}: arrays of shapes {text} do not broadcast")
            found[i] = n if found[i] == 1 else found[i]
    return tuple(found)


def _bytes(view: ArrayView) -> ArrayView:
    """Return a boolean array as bytes, any other array unchanged."""
    return view._replace(dtype="ui8") if view.dtype == "i1" else view


def _numbered(place: str, shape: tuple[int, ...], one: RowCall) -> ArrayView:
    """Return the row, column or batch indices as an array that broadcasts to a shape."""
    of = index_shapes(shape)[place]
    return one.indices(prod(of), of)


def _expanded(view: ArrayView, shape: tuple[int, ...]) -> ArrayView:
    """Broadcast an array to a shape, with strides of 0."""
    more = len(shape) - len(view.shape)
    old = zip(view.shape, view.strides, shape[more:])
    strides = (0,) * more + tuple([step if have == n and n != 1 else 0 for have, step, n in old])
    return view._replace(shape=shape, strides=strides)


def _order(views: Sequence[ArrayView], outs: Sequence[ArrayView], rank: int) -> list[int]:
    """Return the memory order of the modes of the first result, or of the first array without broadcast modes."""
    for view in (*outs, *views):
        if all(step > 0 for n, step in zip(view.shape, view.strides) if n > 1):
            return sorted(range(rank), key=lambda i: (-view.strides[i] if view.shape[i] > 1 else 0, i))
    return list(range(rank))


def _turned(view: ArrayView, order: Sequence[int]) -> ArrayView:
    """Return an array with its modes in another order."""
    return view._replace(shape=tuple([view.shape[i] for i in order]), strides=tuple([view.strides[i] for i in order]))


def _is_flat(plan: Plan, inputs: Sequence[Input], arrays: Sequence[ArrayView], m: int, n: int) -> bool:
    """Return True if contiguous matrices (m, n), whose rows are not whole vectors, are processed as one row."""
    whole = all(x.strides == (n, 1) for x in arrays if len(x.shape) == 2)
    vector = plan._replace(flat=True).vector
    broadcast = [x for x in inputs if x.kind in ("row", "column")]
    return m > 1 and n % vector != 0 and n >= vector and m * n <= _MOST and whole and bool(broadcast)


def _modes(views: Sequence[ArrayView]) -> list[tuple[int, list[int]]]:
    """Return extents and strides of the modes of arrays of one shape, with modes merged that are adjacent in all
    arrays.
    """
    modes: list[tuple[int, list[int]]] = []
    for i, n in enumerate(views[0].shape):
        steps = [v.strides[i] for v in views]
        if n == 1:
            continue
        if modes and modes[-1][0] * n <= _MOST and all(x == y * n for x, y in zip(modes[-1][1], steps)):
            modes[-1] = (modes[-1][0] * n, steps)
        else:
            modes.append((n, steps))
    return modes
