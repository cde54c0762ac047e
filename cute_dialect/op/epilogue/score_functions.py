"""Tracing of ``score_mod`` and ``mask_mod`` of flex attention, and the derivative of a score.

    def alibi(score, b, h, q_idx, kv_idx):
        return score + slopes[h] * (kv_idx - q_idx)

A function runs once with proxies of one element each (:mod:`.tracer_values`), so it has the operators and functions of
an epilogue.  The indices are integers.  A torch tensor of the function's scope may be indexed by traced values; it
becomes an argument of the kernel.  Numbers of the scope are constants of the graph.
"""

# Arrays and functions are the user's.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportUntypedBaseClass=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache, partial
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeAlias, TypeGuard, TypeVar, cast

from cute_dialect.kernels.attention.score_graph import ARRAYS, INTEGERS, ScoreGraph, is_wide, kind_of
from cute_dialect.kernels.epilogue.functions import FUNCTIONS
from cute_dialect.kernels.epilogue.graph import Builder, Input, Output, constant_of
from cute_dialect.op.arrays.dtypes import element_name
from cute_dialect.op.epilogue import functions
from cute_dialect.op.epilogue.derivative import WITHOUT, rule_of
from cute_dialect.op.epilogue.tracer_values import Proxy, call
from cute_dialect.op.epilogue.tracing import add_place, name_of
from cute_dialect.op.errors import EpilogueError

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.lang.calls.cache.dependencies import Watched

__all__ = ["GraphOf", "NativeScores", "TracedScores", "native_scores", "trace_body", "trace_scores", "with_slopes"]

SIGNATURES = {"score_mod": "(score, b, h, q_idx, kv_idx)", "mask_mod": "(b, h, q_idx, kv_idx)"}
"""Parameters of the functions."""

_INDICES = ("matrix", "head", "row", "column")
"""Indices in the order of the parameters."""

_Function: TypeAlias = Callable[..., Any]


class TracedScores(NamedTuple):
    """The graph of the functions, None if they change nothing, and the tensors that it reads."""

    graph: ScoreGraph | None
    captured: tuple[Any, ...]


GraphOf: TypeAlias = Callable[..., TracedScores]
"""``graph_of(score, visible)``, as :func:`trace_body` passes it."""

_R = TypeVar("_R")


class _ScoreBuilder(Builder):
    """Builds a graph whose inputs are captured tensors."""

    def __init__(self, what: str) -> None:
        super().__init__()
        self.what, self.tensors = what, list[Any]()
        self.computes = False
        """True if a function computes with tensors while it is traced, so that each call must trace it."""

    def number_of(self, tensor: Any) -> int:
        """Return the input of a captured tensor.  Raises EpilogueError."""
        for i, x in enumerate(self.tensors):
            if x is tensor:
                return i
        element = element_name(tensor.dtype)
        if element not in ARRAYS:
            raise EpilogueError(
                f"{self.what}: a captured tensor has dtype {element}; it must have one of {', '.join(ARRAYS)}"
            )
        self.tensors.append(tensor)
        return self.array(Input("captured", element))

    def captured(self, array: Any) -> int | None:
        """Return the node of a captured tensor of one element."""
        if isinstance(array, _Part):
            array.refuse()
        if not _is_tensor(array):
            return None
        if tuple(array.shape) not in ((), (1,)):
            raise EpilogueError(
                f"{self.what}: a captured tensor of shape {tuple(array.shape)} is an operand; index it, such as "
                "bias[h, q_idx, kv_idx]"
            )
        return self.element(self.number_of(array))

    def kind(self, node: int) -> str:
        """Return the kind of a node's values: b (boolean), i (integer) or f (float)."""
        return kind_of(self, node)

    def constant(self, value: bool | int | float) -> int:
        """Return a constant.  Raises EpilogueError for an integer of more than 64 bits."""
        if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
            raise EpilogueError(
                f"{self.what}: the constant {value} has more than 64 bits; use integers from -2**63 to 2**63 - 1, or "
                "a float"
            )
        return super().constant(value)


_KINDS = {"b": "bool", "i": "int", "f": "float"}
"""Kinds of values -> their types in errors."""


class _Score(Proxy):
    """A traced score, index or element of a captured tensor: a tensor of one element."""

    __slots__ = ()

    @property
    def dtype(self) -> Any:
        """The torch type: float32, int32, int64 or bool."""
        integer = "int64" if is_wide(self.make, self.node) else "int32"
        name = {"b": "bool", "i": integer, "f": "float32"}[self._kind()]
        return getattr(sys.modules.get("torch"), name, name)

    @property
    def device(self) -> Any:
        """None: values are in registers."""
        return None

    def _kind(self) -> str:
        return self.make.kind(self.node)  # type: ignore[attr-defined]

    def to(self, dtype: Any, *others: Any, **more: Any) -> _Score:
        """Convert the value to a float type, or an integer to an integer type."""
        element = element_name(dtype)
        if element in INTEGERS and self._kind() != "f":
            value: _Score = functions.where(self, 1, 0) if self._kind() == "b" else self  # type: ignore[assignment]
            unchanged = element == ("i64" if is_wide(self.make, value.node) else "i32")
            return value if unchanged else value._again(self.make.cast(value.node, element))
        if element == "i1":
            return self if self._kind() == "b" else call("not_equal", self, 0)
        if element not in ("f16", "bf16", "f32"):
            raise EpilogueError(
                f"{self.what}: conversion to {element} is not supported; use float32, float16, bfloat16"
            )
        if self._kind() == "b":
            return functions.where(self, 1.0, 0.0)  # type: ignore[return-value]
        return self if element == "f32" and self._kind() == "f" else self._again(self.make.cast(self.node, element))

    def type(self, dtype: Any) -> _Score:
        """Convert the value, like :meth:`to`."""
        return self.to(dtype)

    def float(self) -> _Score:
        """Convert the value to f32."""
        return self.to("f32")

    def long(self) -> _Score:
        """Convert the value to an integer of 64 bits."""
        return self.to("i64")

    def int(self) -> _Score:
        """Convert the value to an integer of 32 bits."""
        return self.to("i32")

    def bool(self) -> _Score:
        """Return True where the value is not 0."""
        return self.to("i1")

    def __and__(self, other: Any) -> Any:
        return self._of_bools("logical_and", "&", other)

    def __or__(self, other: Any) -> Any:
        return self._of_bools("logical_or", "|", other)

    def __xor__(self, other: Any) -> Any:
        return self._of_bools("not_equal", "^", other)

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __invert__(self) -> Any:
        return self._of_bools("logical_not", "~")

    def __lshift__(self, other: Any) -> Any:
        return call("multiply", self, self._power("<<", other))

    def __rshift__(self, other: Any) -> Any:
        return call("floor_divide", self, self._power(">>", other))

    def _of_bools(self, name: str, symbol: str, *others: Any) -> Any:
        """Apply an operator of bits to Booleans.  Raises EpilogueError for other operands."""
        for x in (self, *others):
            if isinstance(x, _Part):
                x.refuse()
            node = x.node if isinstance(x, Proxy) else self.make.captured(x)
            kind = type(x).__name__ if node is None else _KINDS[self.make.kind(node)]  # type: ignore[attr-defined]
            if kind != "bool":
                raise EpilogueError(
                    f"{self.what}: an operand of {symbol} is {kind}; pass bool values, such as comparisons (for bits "
                    "of integers, use // and %)"
                )
        return call(name, self, *others)

    def _power(self, symbol: str, count: Any) -> Any:
        """Return the factor of a shift.  Raises EpilogueError."""
        if self._kind() != "i" or not isinstance(count, int) or isinstance(count, bool) or not 0 <= count <= 30:
            raise EpilogueError(f"{self.what}: {symbol} needs an integer and a constant from 0 to 30; use // and *")
        return 1 << count

    def __float__(self) -> Any:
        raise EpilogueError(
            f"{self.what}: float() needs a value that is known while tracing, but this one is computed by the kernel; "
            "use x.float()"
        )

    def __int__(self) -> Any:
        raise EpilogueError(
            f"{self.what}: int() needs a value that is known while tracing, but this one is computed by the kernel; "
            "use x.int()"
        )

    def __index__(self) -> Any:
        raise EpilogueError(
            f"{self.what}: a list, a tuple or range() needs a value that is known while tracing, but this one is "
            "computed by the kernel; to index by it, make a torch tensor of the list outside of the function"
        )

    def __array__(self, *args: object, **more: object) -> NoReturn:
        raise EpilogueError(
            f"{self.what}: a NumPy array is indexed by, or combined with, a traced value; make a torch tensor of it "
            "outside of the function, such as torch.from_numpy(x)"
        )

    @classmethod
    def __torch_function__(cls, function: Any, types: object, args: Any = (), kwargs: Any = None) -> Any:
        of_bits = _OF_BITS.get(function.__name__.strip("_"))
        if of_bits is None or kwargs:
            return super().__torch_function__(function, types, args, kwargs)
        first, *others = args if isinstance(args[0], Proxy) else reversed(args)
        return of_bits(first, *others)

    def new_ones(self, *size: Any, **more: Any) -> _Score:
        """Return True: what torch's combinations of masks start from."""
        return self._again(self.make.constant(True))

    def new_zeros(self, *size: Any, **more: Any) -> _Score:
        """Return False."""
        return self._again(self.make.constant(False))

    def _again(self, node: Any) -> _Score:
        return type(self)(self.what, self.make, node, ())


_OF_BITS = {
    "and": operator.and_, "or": operator.or_, "xor": operator.xor, "invert": operator.invert,
    "bitwise_and": operator.and_, "bitwise_or": operator.or_, "bitwise_xor": operator.xor,
    "bitwise_not": operator.invert, "logical_xor": operator.xor, "rand": operator.and_, "ror": operator.or_,
    "rxor": operator.xor,
}  # fmt: skip
"""Torch functions on bits -> operators."""


class _Part:
    """A captured tensor with fewer indices than dimensions, as ``bias[h]`` of ``bias[h][q_idx]``."""

    def __init__(self, make: _ScoreBuilder, tensor: Any, indices: tuple[Any, ...]) -> None:
        self.make, self.tensor, self.indices = make, tensor, indices

    def __getitem__(self, index: Any) -> Any:
        return _element(self.make, self.tensor, (*self.indices, *(index if isinstance(index, tuple) else (index,))))

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        self.refuse()

    def refuse(self, *others: Any) -> NoReturn:
        """Raise EpilogueError because it is used as an operand."""
        shape, count = tuple(self.tensor.shape), len(self.indices)
        raise EpilogueError(
            f"{self.make.what}: a captured tensor of shape {shape} has {_indices(count)}, but one element is needed; "
            f"pass {_indices(len(shape))}"
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __neg__ = refuse
    __lt__ = __le__ = __gt__ = __ge__ = __and__ = __rand__ = __or__ = __ror__ = __bool__ = __index__ = refuse


def _indices(count: int) -> str:
    return f"{count} {'index' if count == 1 else 'indices'}"


def _is_tensor(x: object) -> TypeGuard[Any]:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def _element(make: _ScoreBuilder, tensor: Any, indices: tuple[Any, ...]) -> Any:
    """Return an element of a captured tensor, or a part of it if there are fewer indices than dimensions."""
    rank = len(tensor.shape)
    nodes: list[int] = []
    for x in indices:
        if isinstance(x, Proxy) and make.kind(x.node) == "i":
            nodes.append(x.node)
        elif isinstance(x, int) and not isinstance(x, bool):
            nodes.append(make.constant(x))
        else:
            found = make.captured(x) if not isinstance(x, Proxy) else None
            if found is None or make.kind(found) != "i":
                node = x.node if isinstance(x, Proxy) else found
                kind = type(x).__name__ if node is None else _KINDS[make.kind(node)]
                raise EpilogueError(
                    f"{make.what}: a captured tensor has an index of type {kind}; use integers: q_idx, kv_idx, h, b, "
                    "and numbers computed from them"
                )
            nodes.append(found)
    if len(nodes) > rank:
        raise EpilogueError(
            f"{make.what}: a captured tensor of shape {tuple(tensor.shape)} has {_indices(len(nodes))}; pass {rank}"
        )
    if len(nodes) < rank:
        return _Part(make, tensor, indices)
    return _Score(make.what, make, make.element(make.number_of(tensor), *nodes), ())


@cache
def _metadata() -> frozenset[object]:
    """Return torch's functions whose results depend only on the type and the shape of a tensor."""
    of = sys.modules["torch"].Tensor
    properties = [getattr(of, name).__get__ for name in ("shape", "dtype", "ndim", "is_cuda")]
    return frozenset((*properties, of.size, of.dim, of.numel, of.nelement, of.ndimension, of.__len__))


@contextmanager
def _captures(make: _ScoreBuilder) -> Generator[None]:
    """Let torch tensors be indexed by traced values."""
    torch = sys.modules.get("torch")
    if torch is None:
        yield
        return

    class Captures(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if function is torch.Tensor.__getitem__ and _is_tensor(args[0]):
                index = args[1] if isinstance(args[1], tuple) else (args[1],)
                if any([isinstance(x, Proxy) for x in index]):
                    return _element(make, args[0], index)
            if any([isinstance(x, Proxy) for x in (*args, *(kwargs or {}).values())]):
                return _Score.__torch_function__(function, types, args, kwargs)
            make.computes = make.computes or function not in _metadata()
            return function(*args, **(kwargs or {}))

    with Captures():
        yield


def trace_scores(
    call: str, score_mod: _Function | None, mask_mod: _Function | None, *, keeps_score: bool = False
) -> TracedScores:
    """Trace the functions, or return the graph of an earlier trace.

    A trace is used again for functions of the same code whose closures hold equal numbers, and tensors of the same
    types and shapes, until something else that they read changes.

    Args:
        call: name of the operation, for errors.
        score_mod: ``score_mod(score, b, h, q_idx, kv_idx)``, or None.
        mask_mod: ``mask_mod(b, h, q_idx, kv_idx)``, or None.
        keeps_score: return a graph of scores, even if they do not change.

    Raises:
        EpilogueError: if a function cannot be traced.
    """
    held = _Held([], [], [])
    try:
        key = keeps_score, _key(score_mod, held), _key(mask_mod, held)
    except ValueError:  # an empty cell
        return _trace(_ScoreBuilder(call), call, score_mod, mask_mod, keeps_score)
    known = _traces.get(key)
    if known is not None and known.watched is not None and not known.watched.has_changed():
        return TracedScores(known.graph, tuple([held.tensors[x] if type(x) is int else x for x in known.captured]))
    make = _ScoreBuilder(call)
    found = _trace(make, call, score_mod, mask_mod, keeps_score)
    if known is not None and known.watched is None:
        return found
    if len(_traces) >= _MOST:
        _traces.clear()
    watched = None if make.computes else _watched(score_mod, mask_mod, held.functions)
    places = [next((i for i, t in enumerate(held.tensors) if t is x), x) for x in found.captured]
    captured = () if watched is None else tuple(places)
    _traces[key] = _Trace(found.graph, captured, watched, tuple(held.others))
    return found


def _trace(
    make: _ScoreBuilder, call: str, score_mod: _Function | None, mask_mod: _Function | None, keeps_score: bool
) -> TracedScores:
    """Return :func:`trace_scores` of functions that have not been traced."""
    score = make.accum() if score_mod is None else _run(make, call, "score_mod", score_mod)
    visible = None if mask_mod is None else _run(make, call, "mask_mod", mask_mod)
    return _graph_of(make, score, visible, keeps_score)


def _graph_of(make: _ScoreBuilder, score: int, visible: int | None, keeps_score: bool) -> TracedScores:
    """Return the graph of the nodes of the score and of visible keys."""
    outputs: list[Output] = []
    names: list[str] = []
    if score != make.accum() or keeps_score:
        outputs.append(Output(score))
        names.append("score")
    if visible is not None:
        if make.kind(visible) != "b":
            visible = make.call("not_equal", visible, make.constant(0))
        node = make.nodes[visible]
        if node.op != "constant" or not constant_of(node):
            outputs.append(Output(visible))
            names.append("visible")
    if not outputs:
        return TracedScores(None, ())
    graph = make.graph(outputs)
    return TracedScores(ScoreGraph(graph, tuple(names)), tuple([make.tensors[i] for i in make.kept]))


def trace_body(call: str, body: Callable[[Sequence[object], GraphOf], _R], *, keeps_score: bool = False) -> _R:
    """Run a function that computes a score and visible keys from proxies, and return its result.

    Args:
        call: name of the operation, for errors.
        body: ``body(proxies, graph_of)``; the proxies stand for the score and the indices in the order of a
            ``score_mod``.  ``graph_of(score, visible)`` returns the graph of two results; ``visible`` may be omitted.
        keeps_score: as in :func:`trace_scores`.
    """
    make = _ScoreBuilder(call)
    proxies = [_Score(call, make, node, ()) for node in (make.accum(), *map(make.place, _INDICES))]

    def node(found: object) -> int:
        if isinstance(found, Proxy):
            return found.node
        known = make.captured(found)
        if known is None:
            raise EpilogueError(f"{call}: a function returns a {type(found).__name__}; return a tensor")
        return known

    def graph_of(score: object, visible: object = None) -> TracedScores:
        return _graph_of(make, node(score), None if visible is None else node(visible), keeps_score)

    with _captures(make):
        return body(proxies, graph_of)


def _run(make: _ScoreBuilder, call: str, kind: str, function: _Function) -> int:
    """Run a function with proxies, and return the node of its result.  Raises EpilogueError."""
    if not callable(function):
        cure = "; pass the mask as block_mask" if hasattr(function, "kv_num_blocks") else ""
        raise EpilogueError(
            f"{call}: {kind} is of type {type(function).__name__}; pass a function {kind}{SIGNATURES[kind]}{cure}"
        )
    what = make.what = f"{call}: {kind} {name_of(function)}"
    given = [_Score(what, make, make.place(index), ()) for index in _INDICES]
    if kind == "score_mod":
        given.insert(0, _Score(what, make, make.accum(), ()))
    try:
        with _captures(make):
            found = function(*given)
        if isinstance(found, bool | int | float):
            return make.constant(found)
        if isinstance(found, Proxy):
            return found.node
        node = make.captured(found)
        if node is None:
            raise EpilogueError(
                f"{what}: the result is a {type(found).__name__}; return a value computed from {SIGNATURES[kind]}"
            )
        return node
    except EpilogueError as e:
        add_place(e, function, what)
        raise
    except TypeError as e:
        said = str(e).replace("'_Score'", "a traced value").replace("_Score", "a traced value")
        if e.__traceback__ is None or e.__traceback__.tb_next is None:
            raise EpilogueError(f"{what}: {said}; the function is called as {kind}{SIGNATURES[kind]}") from e
        cure = "use arithmetic, comparisons, torch.where and the functions of op.epilogue"
        error = EpilogueError(f"{what}: {said}; {cure}")
        error.__traceback__ = e.__traceback__
        add_place(error, function, what)
        raise error from e


# --------------------------------------------------------------------------------------------------------------- traces


_MOST = 256
"""Maximum number of traces that are kept."""

_PARTS = 64
"""Maximum number of parts of mutable objects that a kept trace compares at each call; tracing would be faster."""

_DEPTH = 8
"""Functions in closures of functions, up to which closures are compared by their contents."""


class _Trace(NamedTuple):
    """A trace that is used again."""

    graph: ScoreGraph | None
    captured: tuple[object, ...]  # places among the tensors of the closures, or other tensors
    watched: Watched | None  # what the functions read, apart from their closures; None to trace them at each call
    others: tuple[object, ...]  # objects of which the key has the id


_traces: dict[object, _Trace] = {}


class _Held(NamedTuple):
    """Objects in a cache key."""

    tensors: list[object]  # of which the key has the type and the shape
    others: list[object]  # of which the key has the id
    functions: list[FunctionType]  # of which the key has the closures


def _key(x: object, held: _Held, depth: int = 0) -> object:
    """Return the cache key of a function, or of an object that it holds.  Raises ValueError for an empty cell.

    Args:
        held: the objects in the key are appended.
        depth: number of functions and tuples around the object.
    """
    kind = type(x)
    if x is None or kind is int or kind is bool or kind is str:
        return kind, x
    if isinstance(x, float):
        return kind, x if x and x == x else repr(x)
    if _is_tensor(x):
        place = next((i for i, t in enumerate(held.tensors) if t is x), len(held.tensors))
        held.tensors.append(x)
        return place, x.dtype, x.shape
    if isinstance(x, FunctionType) and depth < _DEPTH:
        code, space = x.__code__, x.__globals__
        held.functions.append(x)
        held.others.extend((code, space))
        parts = [id(code), id(space)]
        if x.__defaults__ or x.__kwdefaults__ or x.__dict__:
            defaults = x.__defaults__, tuple((x.__kwdefaults__ or {}).items())
            parts += [_key(defaults, held, depth + 1), _key(x.__dict__ or None, held)]
        return (*parts, *[_key(cell.cell_contents, held, depth + 1) for cell in x.__closure__ or ()])
    if depth < _DEPTH:
        inner: tuple[object, ...] = x if isinstance(x, tuple) else ()
        if isinstance(x, MethodType):
            inner = x.__func__, x.__self__
        elif isinstance(x, partial):
            inner = x.func, x.args, *x.keywords.items()
        if inner or kind is tuple:
            return (kind, *[_key(part, held, depth + 1) for part in inner])
    held.others.append(x)
    return id(x)


def _watched(
    score_mod: _Function | None, mask_mod: _Function | None, functions: Sequence[FunctionType]
) -> Watched | None:
    """Return the code and the objects that the functions depend on, or None if comparing them would be slow.

    Args:
        functions: functions whose closures are excluded, because :func:`_key` compares them.
    """
    # imported late: other calls do not need the language
    from cute_dialect.lang.calls.cache.dependencies import Watched, watched_by  # late: start-up

    found = watched_by(*[x for x in (score_mod, mask_mod) if x is not None], objects=True)
    if sum([_count(held) for _, held in found.contents]) > _PARTS:
        return None
    compared = {id(x) for f in functions for x in (f, *(f.__closure__ or ()))}
    entries = tuple([e for e in found.entries if id(e.owner) not in compared])
    return Watched(entries, found.contents, found.same)


def _count(held: object) -> int:
    """Return the number of parts of an object's contents."""
    return sum(map(_count, cast("tuple[object, ...]", held))) if isinstance(held, tuple) else 1


# ---------------------------------------------------------------------------------------------------------- derivatives


_RULES: dict[str, Callable[..., Sequence[Any]]] = {"tanh": lambda g, r, x: (g - g * r * r,)}
"""Rules that need no further exponential.  Their absolute error of 1e-7 is enough for a score."""


class NativeScores(NamedTuple):
    """The graph of soft cap, ALiBi and mask, None without them, and the names of its inputs."""

    graph: ScoreGraph | None
    inputs: tuple[str, ...]  # "softcap", "1 / softcap", "alibi_slopes", "mask"


@lru_cache(maxsize=64)
def native_scores(softcap: bool, alibi: bool, bias: str) -> NativeScores:
    """Return the functions of scores of ``op.attention`` as a graph.

    Args:
        softcap: ``softcap tanh(score / softcap)``.
        alibi: subtract ``slope |q_idx + keys - queries - kv_idx|``.
        bias: element type of the mask, "" for none; "i1" for a mask of visible keys.

    >>> native_scores(True, False, "").inputs, native_scores(False, False, "").graph
    (('1 / softcap', 'softcap'), None)
    """
    make, names = _ScoreBuilder("attention"), list[str]()

    def number(name: str) -> int:
        names.append(name)
        return make.load(Input("scalar", number=True))

    def element(name: str, kind: str, *indices: str) -> int:
        names.append(name)
        return make.element(make.array(Input("captured", kind)), *[make.place(x) for x in indices])

    score, outputs = make.accum(), dict[str, int]()
    if softcap:
        cap, inverse = number("softcap"), number("1 / softcap")
        score = make.call("multiply", make.call("tanh", make.call("multiply", score, inverse)), cap)
    if alibi:
        own = make.call("add", make.place("row"), make.call("subtract", make.place("keys"), make.place("queries")))
        away = make.call("abs", make.call("subtract", own, make.place("column")))
        slope = element("alibi_slopes", "f32", "head", "matrix")
        score = make.call("subtract", score, make.call("multiply", slope, away))
    if bias:
        held = element("mask", bias, "row", "column", "head", "matrix")
        if bias == "i1":
            outputs["visible"] = held
        else:
            score = make.call("add", score, held)
    if score != make.accum():
        outputs = {"score": score, **outputs}
    if not outputs:
        return NativeScores(None, ())
    graph = make.graph([Output(x) for x in outputs.values()])
    return NativeScores(ScoreGraph(graph, tuple(outputs)), tuple([names[i] for i in make.kept]))


@lru_cache(maxsize=256)
def with_slopes(of: ScoreGraph | None, inputs: tuple[int, ...] = ()) -> ScoreGraph | None:
    """Return a graph that also has the derivatives of its score; they are absent where they are 1.

    Args:
        of: the graph.
        inputs: captured tensors that need gradients; their slopes are always there.

    Raises EpilogueError if a function has no derivative, or if gradients of captured tensors are not supported: their
    derivatives must not depend on the score, and the function must read such a tensor once.
    """
    if of is None or not of.has("score"):
        return of
    make = _ScoreBuilder("flex_attention: score_mod")
    make.inputs += of.graph.inputs
    values, slopes = _slopes(make, of, inputs)
    outputs = [Output(_node(make, values[of.node(name)])) for name in of.names]
    names = list(of.names)
    for name, value in slopes.items():
        if name != "slope" or not isinstance(value, int | float) or value != 1:
            names.append(name)
            outputs.append(Output(_node(make, value)))
    graph = make.graph(outputs)
    reads = list[bool]()  # nodes that depend on the score
    for node in graph.nodes:
        reads.append(node.op == "accum" or any([reads[i] for i in node.operands]))
    for name, output in zip(names, graph.outputs):
        if name.startswith("slope ") and reads[output.node]:
            raise EpilogueError(
                f"{make.what}: gradients of captured tensors are supported if their derivatives do not depend on the "
                "score; pass tensor.detach(), or add the tensor to the score, as in return g(score) + f(…)"
            )
    if make.kept != tuple(range(len(of.graph.inputs))):  # inputs keep their order, which launches rely on
        order = {old: new for new, old in enumerate(make.kept)}
        back = {new: old for old, new in order.items()}
        nodes = [n._replace(value=back[n.value]) if n.op in ("load", "element") else n for n in graph.nodes]
        graph = graph._replace(nodes=tuple(nodes), inputs=of.graph.inputs)
    return ScoreGraph(graph, tuple(names))


def _node(make: _ScoreBuilder, value: Any) -> int:
    return value.node if isinstance(value, Proxy) else make.constant(value)


def _slopes(make: _ScoreBuilder, of: ScoreGraph, inputs: tuple[int, ...]) -> tuple[list[Any], dict[str, Any]]:
    """Return the values of all nodes, and the derivatives of the score by name."""
    graph, what = of.graph, make.what
    values: list[Any] = []
    for node in graph.nodes:
        operands = [values[i] for i in node.operands]
        if node.op == "constant":
            values.append(constant_of(node))
        elif node.op == "cast" and isinstance(operands[0], Proxy):
            values.append(operands[0].cast(node.value))
        elif node.op in FUNCTIONS and any([isinstance(x, Proxy) for x in operands]):
            values.append(call(node.op, *operands))
        elif node.op in FUNCTIONS:
            values.append(getattr(functions, node.op)(*operands))
        else:
            values.append(
                _Score(what, make, make.add(node._replace(operands=tuple([_node(make, x) for x in operands]))), ())
            )
    needed: list[bool] = []
    for node in graph.nodes:
        own = node.op == "accum" or (node.op == "element" and node.value in inputs)
        needed.append(own or (node.op not in WITHOUT and any([needed[i] for i in node.operands])))
    gradients: list[Any] = [None] * len(graph.nodes)
    gradients[of.node("score")] = 1.0
    for i in reversed(range(len(graph.nodes))):
        node, g = graph.nodes[i], gradients[i]
        if g is None or not needed[i] or node.op in WITHOUT or node.op in ("accum", "element", "load"):
            continue
        operands = [values[k] for k in node.operands]
        if node.op == "cast":
            found: Sequence[Any] = (g,)
        else:
            found = (_RULES.get(node.op) or rule_of(what, node.op))(g, values[i], *operands)
        for k, x in zip(node.operands, found):
            if x is not None and needed[k]:
                gradients[k] = x if gradients[k] is None else gradients[k] + x
    slopes: dict[str, Any] = {"slope": 0.0, **{f"slope {n}": 0.0 for n in inputs}}
    for n in inputs:
        if sum([node.op == "element" and node.value == n for node in graph.nodes]) > 1:
            raise EpilogueError(
                f"{what}: a captured tensor that needs a gradient is read at several indices; read it once, or pass "
                "tensor.detach()"
            )
    for node, gradient in zip(graph.nodes, gradients):
        if gradient is not None and node.op == "accum":
            slopes["slope"] = gradient
        elif gradient is not None and node.op == "element" and node.value in inputs:
            slopes[f"slope {node.value}"] = gradient
    return values, slopes
