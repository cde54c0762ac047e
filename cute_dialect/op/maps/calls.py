"""Functions of elements over any number of arrays: :func:`elementwise`, and ``add``, ``mul`` and the like.

    op.elementwise(lambda x, y, s: op.epilogue.relu(x * s + y), x, bias, 0.5)

A function is run once with stand-ins, as epilogues are, and becomes a graph; arrays expand to one shape.  Modes of the
arrays that lie behind each other are one, so that a kernel sees matrices, and arrays without gaps as one row.
"""

# torch is not there where the types are checked; arrays are of any library, functions of users.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportUnknownLambdaType=false

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from cute_dialect.kernels.elementwise_graph import ELEMENTS, Plan, elementwise_text
from cute_dialect.kernels.epilogue_graph import Builder, Graph, Input, Output
from cute_dialect.op.dtypes import element_name
from cute_dialect.op.epilogue.proxy import Needed, Proxy
from cute_dialect.op.epilogue.tracing import name_of
from cute_dialect.op.errors import DtypeError, EpilogueError, LayoutError, ShapeError, UnsupportedError
from cute_dialect.op.keywords import check_keywords
from cute_dialect.op.known import KnownCalls
from cute_dialect.op.overlap import overlap
from cute_dialect.op.rows.call import RowCall, RowKernel
from cute_dialect.runtime.arrays import ArrayView

if TYPE_CHECKING:  # pragma: no cover
    from typing import Never

__all__ = ["Elementwise", "add", "div", "elementwise", "mul", "sub"]

_MOST = 2**30
"""Elements of a mode of several, and vectors of a call."""


class _Found(NamedTuple):
    """A traced function: its graph, which of its arguments the inputs are, and whether it gives a tuple."""

    graph: Graph
    inputs: tuple[int, ...]
    several: bool


class Elementwise:
    """A function of elements, to be called with arrays and numbers; made by :func:`elementwise`.

    What the function reads besides its arguments, in closures and globals, is read at the first call with such
    arguments; one whose code was replaced (``function.__code__ = …``) is traced again.
    """

    def __init__(self, function: Callable[..., Any], name: str = "") -> None:
        self.function = function
        self.name = name or f"elementwise {name_of(function)}"
        self._known = KnownCalls()
        self.slopes: dict[object, Any] = {}
        """Its derivatives, by the kind of arguments."""

    def __repr__(self) -> str:
        return f"<{self.name}>"

    def __call__(
        self, *arrays: Any, out: Any = None, dtype: object = None, device: object = None, **unknown: Never
    ) -> Any:  # fmt: skip
        """Compute the function of elements; arguments as of :func:`elementwise`."""
        if unknown:
            check_keywords(self.name, self.__call__, unknown, interpreted=False)
        tensors = tuple([x for x in arrays if not isinstance(x, bool | int | float)])
        code = getattr(self.function, "__code__", None)
        numbers = (dtype, code, *[repr(x) if isinstance(x, bool | int | float) else None for x in arrays])
        plain = out is None and device is None
        if plain and not self._known.is_traced():
            done = self._known.again(numbers, *tensors)
            if done is not None:
                return done
        if self._learns(tensors):
            if out is not None:
                raise UnsupportedError(f"{self.name}: expected no out where gradients are wanted, or in torch.compile")
            from cute_dialect.op.maps.gradients import learned

            return learned(self, arrays, dtype, device)
        return self.computed(arrays, out, dtype, device, (tensors, numbers) if plain else None)

    def kernel(self, *arrays: Any, dtype: object = None) -> RowKernel:
        """Return the kernel of a call: of arrays of numpy that lie like its own, however long."""
        seen: list[RowKernel] = []
        self.computed(arrays, None, dtype, "cpu", seen=seen)
        return seen[0]

    def _learns(self, tensors: Sequence[Any]) -> bool:
        """Tell whether torch wants gradients, or compiles."""
        torch = sys.modules.get("torch")
        if torch is None:
            return False
        wanted = torch.is_grad_enabled() and any([getattr(x, "requires_grad", False) for x in tensors])
        return wanted or torch.compiler.is_compiling()

    def computed(
        self, arrays: Sequence[Any], out: Any, dtype: object, device: object, key: tuple[Any, Any] | None = None,
        seen: list[RowKernel] | None = None,
    ) -> Any:  # fmt: skip
        """Compute the function, without gradients; ``key``: what the call is known by; ``seen``: gets the kernel, which
        is not launched then.
        """
        names = [f"argument {i}" for i in range(len(arrays))]
        given = {n: x for n, x in zip(names, arrays) if not isinstance(x, bool | int | float)}
        if not given:
            raise EpilogueError(f"{self.name}: expected an array among the arguments, got numbers")
        more = [f"out {i}" for i in range(len(out))] if isinstance(out, tuple | list) else ["out"]
        outs = dict(zip(more, out if isinstance(out, tuple | list) else (out,)))
        one = RowCall(self.name, {**given, **outs}, device, [*given, *outs], ELEMENTS)
        views = [one.views[n] for n in given]
        for n, view in one.views.items():
            if view.dtype not in ELEMENTS:
                raise DtypeError(f"{self.name}: expected {n} of {', '.join(ELEMENTS)}, got {view.dtype}")
        shape = _common(self.name, [v.shape for v in views])
        found = self.traced(arrays, views)
        count = len(found.graph.outputs)
        if out is not None and len(outs) != count:
            raise ShapeError(f"{self.name}: expected {count} results as out, got {len(outs)}")
        kinds = [given_out.dtype for n in outs if (given_out := one.views.get(n)) is not None]
        if dtype is not None and kinds and any(k != element_name(dtype) for k in kinds):
            raise DtypeError(f"{self.name}: expected out of {element_name(dtype)}, as dtype says, got {kinds[0]}")
        element = element_name(dtype) if dtype is not None else _result_of([v.dtype for v in views])
        if element not in ELEMENTS:
            raise DtypeError(f"{self.name}: expected a result of {', '.join(ELEMENTS)}, got {element}")
        wide = [_expanded(v, shape) for v in views]
        order = _order(wide, [one.views[n] for n in outs if n in one.views], len(shape))
        made: list[Any] = []
        written: list[ArrayView] = []
        for n in (*outs, *[""] * count)[:count]:
            if one.views.get(n) is not None:
                one.expect(n, shape)
                made.append(outs[n])
                written.append(_turned(one.views[n], order))
                self._check_out(n, one.views[n], wide, kinds)
            else:
                made.append(one.ordered_result(shape, order, element))
                written.append(_turned(one.view_of(made[-1]), order))
        if 0 not in shape:
            kernel, args = self._prepared(one, found, [_turned(v, order) for v in wide], written, arrays, given, names)
            if seen is not None:
                seen.append(kernel)
                return None
            one.launch(kernel, *args)
            if key is not None:
                one.remember(self._known, key[1], key[0], tuple(made) if found.several else made[0])
        return tuple(made) if found.several else made[0]

    def _check_out(self, name: str, view: ArrayView, wide: Sequence[ArrayView], kinds: Sequence[str]) -> None:
        """Check that a result may be written while arrays are read."""
        if any(step == 0 and n > 1 for n, step in zip(view.shape, view.strides)):
            raise LayoutError(f"{self.name}: expected {name} with an address for each element, got {view.strides}")
        for v in wide:
            same = (v.pointer, v.strides, v.dtype) == (view.pointer, view.strides, view.dtype)
            if not same and overlap(v, view):
                raise LayoutError(f"{self.name}: {name} shares memory with an array that lies otherwise")

    def _prepared(
        self, one: RowCall, found: _Found, wide: list[ArrayView], written: list[ArrayView], arrays: Sequence[Any],
        given: dict[str, Any], names: Sequence[str],
    ) -> tuple[RowKernel, tuple[Any, ...]]:  # fmt: skip
        """Return the kernel and its arguments, of arrays that have expanded."""
        places = {n: i for i, n in enumerate(given)}
        while len(modes := _modes([*wide, *written])) > 2:  # what lies in the most modes is copied
            lying = [len(_modes([v, *written])) for v in wide]
            worst = lying.index(max(lying))
            if lying[worst] <= len(_modes(written)) and len(_modes(written)) > 2:
                raise LayoutError(f"{self.name}: expected out whose rows are at one distance from each other")
            wide[worst] = one.contiguous(wide[worst])
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
                operands.append(float(arrays[number]))
                inputs.append(x)
                continue
            i = places[names[number]]
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
                raise LayoutError(f"{self.name}: expected out with contiguous rows, got strides {view.strides}")
            results.append(view._replace(shape=(m, n), strides=(down, 1)))
        outputs = [x._replace(element=view.dtype) for x, view in zip(found.graph.outputs, results)]
        plan = Plan(Graph(found.graph.nodes, tuple(inputs), tuple(outputs)))
        if _is_flat(plan, inputs, [x for x in (*operands, *results) if isinstance(x, ArrayView)], m, n):
            plan, line = plan._replace(flat=True), {"shape": (1, m * n), "strides": (-(-m * n // 16) * 16, 1)}
            named = [x.kind for x in inputs] + ["aux"] * len(results)
            lying = [x._replace(**line) if k == "aux" else x for k, x in zip(named, (*operands, *results))]
            operands, results = lying[: len(operands)], lying[len(operands) :]
            m, n = 1, m * n
        if m * -(-n // plan.vector) >= _MOST:
            raise UnsupportedError(f"{self.name}: expected at most {_MOST} vectors of 16 bytes, got {m} rows of {n}")
        return RowKernel(plan.name, elementwise_text, (plan,)), (*operands, *results)

    def traced(self, arrays: Sequence[Any], views: Sequence[ArrayView]) -> _Found:
        """Return the graph; integers of Python are constants of it, floats where the function asks for them."""
        try:
            inspect.signature(self.function).bind(*arrays)
        except TypeError as e:
            raise EpilogueError(f"{self.name}: {e}: called with {len(arrays)} arguments") from None
        except ValueError:  # it has none to look at
            pass
        constants: set[str] = set()
        while True:
            try:
                return self._run(arrays, views, constants)
            except Needed as e:
                constants |= set(e.names)

    def _run(self, arrays: Sequence[Any], views: Sequence[ArrayView], constants: set[str]) -> _Found:
        make, given, there = Builder(), list[Any](), iter(views)
        numbers: list[int] = []
        for i, x in enumerate(arrays):
            if isinstance(x, bool | int) or (isinstance(x, float) and f"argument {i}" in constants):
                given.append(x)
                continue
            view = None if isinstance(x, float) else next(there)
            if view is None:
                node, needs, shape = make.load(Input("scalar", number=True)), {f"argument {i}"}, ()
            else:
                node, needs, shape = make.load(Input("aux", view.dtype)), set[str](), view.shape
            numbers.append(i)
            given.append(Proxy(self.name, make, node, shape, frozenset(needs), f"argument {i}"))
        results = self.function(*given)
        several = isinstance(results, tuple | list)
        outputs: list[Output] = []
        for x in results if several else [results]:
            if isinstance(x, bool | int | float):
                outputs.append(Output(make.constant(float(x))))
            elif isinstance(x, Proxy):
                outputs.append(Output(x.node))
            else:
                raise EpilogueError(
                    f"{self.name}: expected results that are computed from the arguments, got {type(x).__name__}"
                )
        if not outputs:
            raise EpilogueError(f"{self.name}: expected at least one result")
        wrong = [n.op for n in make.nodes if n.op in ("row", "column", "matrix", "even", "odd", "block", "random")]
        if wrong:
            raise EpilogueError(f"{self.name}: expected functions of elements, got {wrong[0]}()")
        graph = make.graph(outputs)
        return _Found(graph, tuple([numbers[i] for i in make.kept]), several)


def elementwise(
    function: Callable[..., Any], *arrays: Any, out: Any = None, dtype: object = None, device: object = None,
    **unknown: Never,
) -> Any:  # fmt: skip
    """Return a function of elements of arrays, which expand to one shape, and of numbers; computed in f32 and rounded
    once.  A function that returns a tuple gives several results.

    ``function``: of as many arguments, written with operators and functions of :mod:`cute_dialect.op.epilogue`, numpy
    or torch; without arrays the result is a function of them, which is traced once for arrays of a kind.  ``out``:
    where the result goes, or a tuple; may be one of the arrays.  ``dtype``: of the results, else that of the arrays; of
    arrays of several types f32, but that 8 bits give way to 16.  ``device="cpu"``: run it on the interpreter.
    Raises subclasses of :class:`cute_dialect.op.OpError`.
    """
    if unknown:
        check_keywords("elementwise", elementwise, unknown, interpreted=False)
    made = Elementwise(function)
    if not arrays and out is None and dtype is None and device is None:
        return made
    return made(*arrays, out=out, dtype=dtype, device=device)


add = Elementwise(lambda x, y: x + y, "add")
sub = Elementwise(lambda x, y: x - y, "sub")
mul = Elementwise(lambda x, y: x * y, "mul")
div = Elementwise(lambda x, y: x / y, "div")


# ------------------------------------------------------------------------------------------------------------- layouts


def _common(call: str, shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Return the shape that shapes expand to.  Raises ShapeError."""
    rank = max(map(len, shapes))
    found = [1] * rank
    for shape in shapes:
        for i, n in enumerate(shape, rank - len(shape)):
            if n not in (found[i], 1) and found[i] != 1:
                said = ", ".join(map(str, shapes))
                raise ShapeError(f"{call}: expected arrays whose shapes expand to one, got {said}")
            found[i] = n if found[i] == 1 else found[i]
    return tuple(found)


def _result_of(elements: Sequence[str]) -> str:
    """Return the type of results.

    >>> _result_of(["f16", "f16"]), _result_of(["bf16", "i8"]), _result_of(["f16", "bf16"])
    ('f16', 'bf16', 'f32')
    """
    kinds = set(elements)
    if len(kinds) > 1:
        kinds -= {"i8", "ui8", "f8E4M3FN", "f8E5M2"}
    return kinds.pop() if len(kinds) == 1 else "f32"


def _expanded(view: ArrayView, shape: tuple[int, ...]) -> ArrayView:
    """Return an array as it is read for a shape: where it expands, by strides of 0."""
    more = len(shape) - len(view.shape)
    old = zip(view.shape, view.strides, shape[more:])
    strides = (0,) * more + tuple([step if have == n and n != 1 else 0 for have, step, n in old])
    return view._replace(shape=shape, strides=strides)


def _order(views: Sequence[ArrayView], outs: Sequence[ArrayView], rank: int) -> list[int]:
    """Return the order of the modes in which the first result, or the first array that has all of them, lies."""
    for view in (*outs, *views):
        if all(step > 0 for n, step in zip(view.shape, view.strides) if n > 1):
            return sorted(range(rank), key=lambda i: (-view.strides[i] if view.shape[i] > 1 else 0, i))
    return list(range(rank))


def _turned(view: ArrayView, order: Sequence[int]) -> ArrayView:
    """Return an array with its modes in an order."""
    return view._replace(shape=tuple([view.shape[i] for i in order]), strides=tuple([view.strides[i] for i in order]))


def _is_flat(plan: Plan, inputs: Sequence[Input], arrays: Sequence[ArrayView], m: int, n: int) -> bool:
    """Tell whether matrices (m, n) without gaps, whose rows are no whole vectors, are taken as one row."""
    whole = all(x.strides == (n, 1) for x in arrays if len(x.shape) == 2)
    vector = plan._replace(flat=True).vector
    told = [x for x in inputs if x.kind in ("row", "column")]
    return m > 1 and n % vector != 0 and n >= vector and m * n <= _MOST and whole and bool(told)


def _modes(views: Sequence[ArrayView]) -> list[tuple[int, list[int]]]:
    """Return the modes of arrays of one shape, those in one that lie behind each other in all: extent, strides."""
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
