"""Tracing: a Python function runs once with proxies, and its operations are recorded as a graph.

    def example(accum, alpha, C, beta, aux, bias):
        F = alpha * accum + (beta * C + aux)
        E = relu(F + 1) + bias
        D = E + F
        return D, F

    traced = trace(example, {"accum": FakeTensor("f32", (128, 256)), "alpha": 0.5, "C": c, …})

The function itself, run on NumPy arrays or torch tensors, is the reference.

Kernels and recorded calls are cached by the identity of the functions in them.  :func:`current` returns the function
itself until its code, its defaults, or what it reads changes (``hook.__code__ = …``, a global, a variable of an
enclosing function).  From then on it returns a copy, a new one after each change:

>>> def double(x): return 2 * x
>>> def triple(x): return 3 * x
>>> current(double) is double
True
>>> double.__code__ = triple.__code__
>>> current(double) is double, current(double) is current(double), current(double)(2)
(False, True, 6)
"""

# Arrays belong to any library, and functions are the user's.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false

from __future__ import annotations

import copy
import dis
import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from types import FunctionType, MappingProxyType, MethodType
from typing import TYPE_CHECKING, Any, NamedTuple

from cute_dialect.files import PACKAGE
from cute_dialect.kernels.epilogue.functions import NUMPY
from cute_dialect.kernels.epilogue.graph import Graph, Input, Node, Output, constant_of, evaluate
from cute_dialect.op.arrays.dtypes import element_name
from cute_dialect.op.epilogue.output_layout import Argument, Making, Origin, View, own_modes, view_of_result
from cute_dialect.op.epilogue.tracer_values import Integer, Needed, Proxy, Reduced, Scales
from cute_dialect.op.errors import EpilogueError
from cute_dialect.op.keywords import similar
from cute_dialect.tracebacks import user_frames

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.lang.calls.cache.dependencies import Watched


class FakeTensor(NamedTuple):
    """The description of an array without its memory."""

    element: str
    shape: tuple[int, ...]
    layout: str = "row"  # "row" for row-major, "column" for column-major


class Placed(NamedTuple):
    """The graph input of an array that is reshaped or permuted, and its place in the accumulator."""

    input: Input
    view: View


def shape_in_sums(x: Input, sums: Sequence[int]) -> tuple[int, ...]:
    """Return the shape of an input, which broadcasts to the accumulator."""
    n = sums[-1] // 2 if x.half else sums[-1]
    shape = {"aux": (sums[-2], n), "row": (1, n), "column": (sums[-2], 1)}.get(x.kind, (1, 1))
    return (*((sums[0],) if (x.batch or x.kind == "matrix") and len(sums) == 3 else ()), *shape)


class Traced:
    """A traced epilogue: a graph with the names of its arguments and results.  :func:`trace` makes it.

    Args:
        function: the traced function.
        graph: the recorded graph.
        arguments: the arguments that the graph reads.
        results: names of the graph's outputs; the first is D.
        returned: the same names in the order in which the function returns them.
        form: "one", "tuple" or "dict", the type that the function returns.
        fixed: numbers that are constants of the graph.
        parameters: names of the function's parameters.
        examples: the examples of the trace, arrays as :class:`FakeTensor`.
        views: places in the accumulator of results that are reshaped or permuted, by name.
    """

    def __init__(
        self, function: Callable[..., Any], graph: Graph, arguments: Sequence[Argument], results: Sequence[str],
        returned: Sequence[str], form: str, fixed: Mapping[str, Any], parameters: Sequence[str],
        examples: Mapping[str, Any], views: Mapping[str, View] = MappingProxyType({}),
    ):  # fmt: skip
        self.examples, self.views = dict(examples), dict(views)
        self.returned = tuple(returned)
        self.function, self.graph, self.arguments, self.results = function, graph, tuple(arguments), tuple(results)
        self.form, self.fixed, self.parameters = form, dict(fixed), tuple(parameters)

    @cached_property
    def name(self) -> str:
        """Name of the function."""
        return name_of(self.function)

    @cached_property
    def is_random(self) -> bool:
        """True if the epilogue takes a seed or an offset."""
        return any([x.number and x.element == "i64" for x in self.graph.inputs])

    @property
    def key(self) -> str:
        """Name of the graph.  Equal names mean equal kernels."""
        return self.graph.name

    def __repr__(self) -> str:
        return f"<epilogue {self.name}({', '.join(self.parameters)}) -> {', '.join(self.results)}: {self.key}>"

    def __str__(self) -> str:
        lines = [f"epilogue {self.name}: {self.key}"]
        names = {a.number: a.name for a in self.arguments}
        for i, node in enumerate(self.graph.nodes):
            operands = ", ".join(f"%{x}" for x in node.operands)
            value = ""
            if node.op == "load":
                x = self.graph.inputs[node.value]
                value = f"{names[node.value]}: {x.kind} of {x.element}"
            elif node.value is not None:
                value = repr(_shown(node))
            lines.append(f"  %{i} = {node.op} {operands}{value}".rstrip())
        lines += [f"  {name} = %{x.node}" for name, x in zip(self.results, self.graph.outputs)]
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """Return the epilogue as data that :meth:`from_json` reads."""
        lists: dict[str, Any] = {n: list(getattr(self, n)) for n in ("results", "returned", "parameters")}
        lists |= {"arguments": [list(x) for x in self.arguments], "form": self.form, "fixed": self.fixed}
        lists |= {"views": self.views}
        return lists | {"name": self.name, "graph": self.graph.to_json(), "examples": self.examples}

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Traced:
        """Return the epilogue of :meth:`to_json`; its function evaluates the graph on arrays."""
        x = dict(fields)
        examples = {n: t if isinstance(t, int | float) else FakeTensor(t[0], tuple(t[1]), t[2])
                    for n, t in x["examples"].items()}  # fmt: skip
        arguments = [Argument(*a)._replace(view=View.from_json(a[4])) for a in x["arguments"]]
        views = {n: view for n, v in x["views"].items() if (view := View.from_json(v)) is not None}

        def of_arrays(accum: Any, **given: Any) -> Any:
            numbers = {n: given[n] for n in x["fixed"]}
            raise EpilogueError(
                f"epilogue {x['name']}: the arguments {numbers} differ from those of the saved plan, {x['fixed']}; "
                "make another plan for them"
            )

        of_arrays.__name__ = x["name"]
        kind = inspect.Parameter.KEYWORD_ONLY
        names = [inspect.Parameter(n, kind) for n in dict.fromkeys(("accum", *x["parameters"]))]
        of_arrays.__signature__ = inspect.Signature(names)  # type: ignore[attr-defined]
        return cls(
            of_arrays, Graph.from_json(x["graph"]), arguments, x["results"], x["returned"], x["form"], x["fixed"],
            x["parameters"], examples, views,
        )  # fmt: skip

    def shape_of(self, sums: Sequence[int], name: str = "D") -> tuple[int, ...]:
        """Return the shape of a result for an accumulator shape."""
        output = self.graph.outputs[self.results.index(name)]
        node = output.node
        if output.reduce:
            m, n, columns = "m" in output.axis, "n" in output.axis, self.base_of(sums, node)[-1]
            return (*sums[:-2], 1 if m else sums[-2], 1 if n else columns)
        if output.block:
            return (*sums[:-1], -(-sums[-1] // output.block))
        found = self.base_of(sums, node)
        view = self.views.get(name)
        try:
            return found if view is None else view.shape(found)
        except ValueError as e:
            raise EpilogueError(f"epilogue {self.name}: {name}: {e}") from None

    def base_of(self, sums: Sequence[int], node: int) -> tuple[int, ...]:
        """Return the shape of a node's values: that of the accumulator, or with half as many columns."""
        return (*sums[:-1], sums[-1] // 2) if self.graph.halves[node] else tuple(sums)

    def reference(self, accum: Any, **arguments: Any) -> Any:
        """Run the function on NumPy arrays or torch tensors."""
        return self.function(accum, **{name: arguments[name] for name in self.parameters if name != "accum"})

    def evaluate(self, accum: Any, inputs: Sequence[Any], arrays: Any = NUMPY, place: Any = None) -> dict[str, Any]:
        """Evaluate the graph on arrays that broadcast, and return its results by name; ``inputs`` are ordered as
        ``arguments``.
        """
        values = evaluate(self.graph, accum, inputs, arrays, place)
        return {name: values[x.node] for name, x in zip(self.results, self.graph.outputs)}

    def formed(self, results: Mapping[str, Any]) -> Any:
        """Return the results in the form that the function returns: one, a tuple, or a dict."""
        if self.form == "dict":
            return {name: results[name] for name in self.returned}
        found = tuple([results[name] for name in self.returned])
        return found if self.form == "tuple" else found[0]


def _shown(node: Node) -> object:
    return constant_of(node) if node.op == "constant" else node.value


def name_of(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", type(function).__name__)


class _Given(NamedTuple):
    """Shape (None for a number) and type of an argument."""

    shape: tuple[int, ...] | None
    element: str
    number: Any = None


def given(value: Any, what: str) -> _Given:
    """Return shape and type of an example.  Raises EpilogueError if it is neither a number nor an array."""
    if isinstance(value, bool | int | float):
        return _Given(None, "f32", value)
    if isinstance(value, FakeTensor):
        return _Given(tuple(value.shape), element_name(value.element))
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if shape is None or dtype is None:
        raise EpilogueError(f"{what} is a {type(value).__name__}; it must be a number, an array or a FakeTensor")
    return _Given(tuple(shape), element_name(dtype))


def described_as(value: Any, what: str) -> Any:
    """Return an example without its memory: a number or a :class:`FakeTensor`."""
    x = given(value, what)
    if x.shape is None or isinstance(value, FakeTensor):
        return value
    steps: Any = value.stride() if hasattr(value, "stride") else getattr(value, "strides", None) or ()
    item = 1 if hasattr(value, "stride") else value.itemsize
    columns = len(x.shape) > 1 and steps[-2] == item and steps[-1] != item
    return FakeTensor(x.element, x.shape, "column" if columns else "row")


def broadcast_kind(shape: Sequence[int], result: Sequence[int]) -> tuple[str, bool] | None:
    """Return the broadcast kind of a shape for a result of shape (M, N) or (L, M, N), or None if it does not broadcast.

    The second value is True if each matrix of the batch has its own values.

    >>> broadcast_kind((256,), (128, 256)), broadcast_kind((4, 128, 1), (4, 128, 256)), broadcast_kind((3,), (2, 4))
    (('row', False), ('column', True), None)
    """
    if len(shape) > len(result):
        return ("scalar", False) if all(n == 1 for n in shape) else None
    full = (*(1,) * (len(result) - len(shape)), *shape)
    if any(have not in (1, want) for have, want in zip(full, result)):
        return None
    rows, columns = full[-2] != 1, full[-1] != 1
    batch = len(full) == 3 and full[0] != 1
    kind = {(True, True): "aux", (True, False): "column", (False, True): "row", (False, False): "scalar"}[rows, columns]
    return ("matrix", False) if kind == "scalar" and batch else (kind, batch)


def trace(
    function: Callable[..., Any],
    examples: Mapping[str, Any],
    element_compute: str = "f32",
    runtime: Sequence[str] | None = None,
    placed: Mapping[str, Placed] = MappingProxyType({}),
) -> Traced:
    """Trace an epilogue: run the function once with proxies.

    Python numbers become arguments of the kernel if it only computes with them.  They become constants if the
    function needs their value (``if``, ``range``, ``math.sqrt``), or if they are integers.  Seeds and offsets of
    :func:`.functions.random` are integers that stay arguments.

    Args:
        function: the function; its parameter ``accum`` is the accumulator.
        examples: an array, a :class:`FakeTensor` or a number for each parameter. Shapes (N,) and (1, N) are
            per-column values, (M, 1) per-row values, (M, N) per-element values; one element is a scalar. A batch has
            L in front, or one array for all matrices.
        element_compute: type of the computation, f32.
        runtime: names of the numbers that are kernel arguments; the other numbers are constants. None to find out.
        placed: arrays whose place in the accumulator is known.

    Raises:
        EpilogueError: if the function cannot be traced.
    """
    if element_compute not in ("f32", "float32"):
        raise EpilogueError(
            f"epilogue {name_of(function)}: element_compute={element_compute!r} is not supported; use 'f32'"
        )
    constants = [
        name for name, x in examples.items()
        if isinstance(x, bool | int) or (isinstance(x, float) and runtime is not None and name not in runtime)
    ]  # fmt: skip
    if runtime is not None:
        constants = [name for name in constants if name not in runtime]
    whole = [n for n, x in examples.items() if isinstance(x, int) and not isinstance(x, bool)]
    if runtime is not None:
        whole = [n for n in whole if n in runtime]
    while True:
        try:
            return _traced(function, examples, [n for n in constants if n not in whole], whole, placed)
        except Needed as e:
            constants += [n for n in e.names if n not in whole and n not in constants]
            whole = [n for n in whole if n not in e.names]
        except EpilogueError as e:
            add_place(e, function, f"epilogue {name_of(function)}")
            raise


def add_place(error: EpilogueError, function: Callable[..., Any], what: str) -> None:
    """Add file and line after ``what``, the traced function's name: of the innermost user frame, else of its ``def``.

    A function of this package has no such line, and the message stays as it is.
    """
    frame = user_frames(error.__traceback__)
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    code = getattr(inspect.unwrap(function), "__code__", None)
    if frame is not None:
        place = f"{frame.tb_frame.f_code.co_filename}:{frame.tb_lineno}"
    elif code is not None and not code.co_filename.startswith(PACKAGE):
        place = f"{code.co_filename}:{code.co_firstlineno}"
    else:
        return
    error.args = (str(error).replace(f"{what}:", f"{what} ({place}):", 1),)


def _traced(
    function: Callable[..., Any], examples: Mapping[str, Any], constants: Sequence[str], whole: Sequence[str],
    placed: Mapping[str, Placed],
) -> Traced:  # fmt: skip
    what = f"epilogue {name_of(function)}"
    parameters = list(inspect.signature(function).parameters)
    missing = [n for n in parameters if n not in examples]
    if missing:
        raise EpilogueError(f"{what}: {missing_arguments(missing, parameters, examples)}")
    if "accum" not in parameters:
        raise EpilogueError(
            f"{what}: the function needs a parameter accum, the accumulator; it has ({', '.join(parameters)})"
        )
    sums = given(examples["accum"], f"{what}: accum")
    if sums.shape is None or len(sums.shape) not in (2, 3):
        raise EpilogueError(f"{what}: accum must have shape (M, N) or (L, M, N), got {sums.shape or 'a number'}")
    make = Making(sums.shape)
    arguments: dict[str, Any] = {}
    for name in parameters:
        if name == "accum":
            arguments[name] = Proxy(what, make, make.accum(), sums.shape)
            continue
        x = given(examples[name], f"{what}: {name}")
        if name in whole:
            arguments[name] = Integer(name)
            continue
        if name in placed:
            input, view = placed[name]._replace(input=placed[name].input._replace(element=x.element))
            shape = shape_in_sums(input, sums.shape)
            arguments[name] = Proxy(what, make, make.argument(name, input, view), shape, frozenset(), name)
            continue
        if name in constants and x.shape is None:
            arguments[name] = x.number
            continue
        found = ("scalar", False, False) if x.shape is None else _kind(x.shape, sums.shape)
        shape = x.shape or ()
        origin = Origin(name, shape, x.element, own_modes(shape), _itself) if shape and x.element != "i1" else None
        if found is None:  # The first operation with a value of accum determines its place in the accumulator.
            if origin is None:
                raise EpilogueError(f"{what}: {name} of shape {shape} does not broadcast to {sums.shape}")
            arguments[name] = Proxy(what, make, -1, shape, name=name, modes=origin.modes, origin=origin)
            continue
        kind, batch, half = found
        node = make.argument(name, Input(kind, x.element, number=x.shape is None, batch=batch, half=half))
        needs = frozenset((name,)) if x.shape is None else frozenset[str]()
        if x.element == "i1":
            node = make.call("not_equal", node, make.constant(0))
        arguments[name] = Proxy(what, make, node, shape, needs, name, None, origin)
    found = function(**arguments)
    form, results = _results(what, function, found)
    outputs: list[Output] = []
    views: dict[str, View] = {}
    names = ["D", *(n for n in results if n != "D")]
    for name in names:
        x = results[name]
        if isinstance(x, Scales) and name != "D":
            outputs.append(Output(x.of.node, x.element, block=x.width))
            continue
        if isinstance(x, Reduced) and name != "D":
            outputs.append(Output(x.of.node, "f32", reduce=x.operation, axis=x.axes))
            continue
        if not isinstance(x, Proxy):
            raise EpilogueError(f"{what}: result {name} must be computed from the arguments, got {type(x).__name__}")
        view = view_of_result(x, name)
        if view is not None:
            views[name] = view
        outputs.append(Output(x.node, x.stored, split="" if view is None else view.split))
    graph = make.graph(outputs)
    kept = [make.arguments[i]._replace(number=number) for number, i in enumerate(make.kept)]
    return Traced(
        function, graph, kept, names, list(results), form, {n: examples[n] for n in constants if n in parameters},
        parameters, {n: described_as(examples[n], f"{what}: {n}") for n in parameters}, views,
    )  # fmt: skip


def missing_arguments(missing: Sequence[str], parameters: Sequence[str], given: Collection[str]) -> str:
    """Return the error for parameters that are not in ``args``, which has the names ``given``."""
    wanted = ", ".join(n for n in parameters if n != "accum")
    quoted = ", ".join(f'"{n}"' for n in missing)
    for other in given:
        if other not in parameters and (near := similar(other, missing)):
            if other == "accum":
                return f"parameter {near[0]} is not in args; call it accum if it is the accumulator"
            return f'args has no {quoted}, but "{other}"; did you mean "{near[0]}"? Its arguments are {wanted}'
    return f"args has no {quoted}; its arguments are {wanted}"


def _itself(node: int) -> int:
    return node


def _kind(shape: tuple[int, ...], sums: tuple[int, ...]) -> tuple[str, bool, bool] | None:
    """Return the broadcast kind of a shape, and whether it covers (M, N / 2).  None if it does not broadcast."""
    found = broadcast_kind(shape, sums)
    if found is not None:
        return *found, False
    found = broadcast_kind(shape, (*sums[:-1], sums[-1] // 2)) if sums[-1] % 2 == 0 else None
    return None if found is None else (*found, True)


def _results(what: str, function: Callable[..., Any], found: Any) -> tuple[str, dict[str, Any]]:
    """Return the form and the results by name, in the function's order."""
    if isinstance(found, Mapping):
        form, results = "dict", {str(k): v for k, v in found.items()}
    elif isinstance(found, tuple | list):
        names = returned_names(function, len(found))
        form, results = "tuple", dict(zip(names, found))
        if len(results) != len(found):
            raise EpilogueError(f"{what}: results need different names, got {', '.join(names)}")
    else:
        form, results = "one", {"D": found}
    if "D" not in results:
        raise EpilogueError(f"{what}: one result must be named D, got {', '.join(results) or 'none'}")
    return form, results


def returned_names(function: Callable[..., Any], count: int) -> list[str]:
    """Return the variable names in ``return D, F``, or D, D1, D2 and so on if they are not variables.

    >>> def f(x):
    ...     D = E = x
    ...     return E, D
    >>> returned_names(f, 2)
    ['E', 'D']
    """
    made = ["D", *(f"D{i}" for i in range(1, count))]
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:
        return made
    before: list[str | None] = []
    for step in dis.get_instructions(code):
        if step.opname.startswith(("LOAD_FAST", "LOAD_DEREF", "LOAD_NAME", "LOAD_GLOBAL")):
            names: Any = step.argval
            before += names if isinstance(names, tuple) else [names]
        elif step.opname == "BUILD_TUPLE" and step.arg == count:
            found = before[-count:]
            if len(found) == count and None not in found:
                return [str(n) for n in found]
            before = []
        else:
            before.append(None)
    return made


# ----------------------------------------------------------------------------------------------------- edited functions


_MOST = 1024
"""Maximum number of functions whose versions are tracked."""


class _Version(NamedTuple):
    function: Any
    """The function that the user passed; the reference keeps its id from being reused."""
    watched: Watched
    stands_for: Any
    """The function that caches use as the key of this version."""


_versions: dict[int, _Version] = {}
_forgotten = False
"""True if versions were dropped, so that a function without an entry may be a later version."""


def current(function: Any) -> Any:
    """Return the object that represents the current version of a function; None for None."""
    global _forgotten
    if function is None or not callable(function):
        return function
    known = _versions.get(id(function))
    if known is not None and known.function is function and not known.watched.has_changed():
        return known.stands_for
    # imported late: calls without user functions do not need the language
    from cute_dialect.lang.calls.cache.dependencies import watched_by  # late: start-up

    if len(_versions) >= _MOST:
        _versions.clear()
        _forgotten = True
    made = function if known is None and not _forgotten else _copied(function)
    _versions[id(function)] = _Version(function, watched_by(function, objects=True), made)
    return made


def _copied(function: Any) -> Any:
    """Return a function with the same behavior that does not compare equal to it."""
    if isinstance(function, MethodType):
        return MethodType(_copied(function.__func__), function.__self__)
    if not isinstance(function, FunctionType):
        return copy.copy(function)
    made = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    made.__kwdefaults__ = function.__kwdefaults__
    made.__qualname__, made.__module__ = function.__qualname__, function.__module__
    made.__dict__.update(function.__dict__)
    return made
