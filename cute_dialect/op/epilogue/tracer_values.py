"""Proxies for arrays while an epilogue is traced: their operators, and NumPy and torch functions, add nodes to the
graph.
"""

# Operands are anything that users write.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NoReturn

from cute_dialect.kernels.epilogue.functions import FUNCTIONS, LARGEST
from cute_dialect.kernels.epilogue.graph import Builder
from cute_dialect.op.epilogue import output_layout
from cute_dialect.op.epilogue.output_layout import Modes, Origin, extents
from cute_dialect.op.errors import EpilogueError
from cute_dialect.op.keywords import similar


class Needed(Exception):
    """Raised if the function uses the value of a number; the tracer then makes it a constant."""

    def __init__(self, names: frozenset[str]):
        super().__init__(", ".join(sorted(names)))
        self.names = sorted(names)


class Integer:
    """An integer argument.

    It is an argument of the launch as long as it only seeds random numbers.  Any other use raises :class:`Needed`.
    """

    def __init__(self, name: str):
        self.name = name

    def _needed(self, *others: Any) -> NoReturn:
        raise Needed(frozenset((self.name,)))

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __neg__ = _needed
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = __abs__ = __invert__ = __round__ = _needed
    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = __and__ = __rand__ = __or__ = __ror__ = __xor__ = _needed
    __lshift__ = __rshift__ = __rlshift__ = __rrshift__ = __divmod__ = __rxor__ = __pos__ = _needed
    __bool__ = __int__ = __float__ = __index__ = __str__ = __repr__ = __format__ = __hash__ = _needed  # type: ignore[assignment]
    __array__ = __array_ufunc__ = __array_function__ = __torch_function__ = __complex__ = _needed

    def __getattr__(self, name: str) -> NoReturn:
        self._needed()


class NoSuchAttribute(EpilogueError, AttributeError):
    """Raised for an attribute that traced values do not have."""


class Reduced:
    """A reduction of rows (``axes`` "n"), columns ("m") or all elements ("nm").  It can only be a result."""

    def __init__(self, of: Any, operation: str, axes: str):
        self.of, self.operation, self.axes = of, operation, axes

    def __getattr__(self, name: str) -> Any:
        raise NoSuchAttribute(self._said())

    def refuse(self, *others: Any) -> NoReturn:
        """Raise EpilogueError because it is used as an operand."""
        raise EpilogueError(self._said())

    def _said(self) -> str:
        return (
            f"{self.of.what}: {self.operation}() cannot be an operand, because a tile holds only a part of a row or "
            "column; return it as a result, or use whole_rows=True for rows of at most 256 elements"
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __neg__ = refuse
    __lt__ = __le__ = __gt__ = __ge__ = __abs__ = __pow__ = __bool__ = __float__ = __array_ufunc__ = refuse


class Scales(Reduced):
    """The scales of an 8-bit value, one per ``width`` columns of a row.  They can only be a result."""

    def __init__(self, of: Any, width: int, element: str):
        super().__init__(of, "quantize", "")
        self.width, self.element = width, element

    def _said(self) -> str:
        return f"{self.of.what}: the scales of quantize() cannot be an operand; return them as a result"


OF_NUMPY = {
    "add": "add", "subtract": "subtract", "multiply": "multiply", "divide": "divide", "true_divide": "divide",
    "floor_divide": "floor_divide", "remainder": "remainder", "negative": "negative", "absolute": "abs",
    "fabs": "abs", "sqrt": "sqrt", "exp": "exp", "exp2": "exp2", "log": "log", "maximum": "maximum",
    "minimum": "minimum", "tanh": "tanh", "less": "less", "less_equal": "less_equal", "greater": "greater",
    "greater_equal": "greater_equal", "equal": "equal", "not_equal": "not_equal", "logical_and": "logical_and",
    "logical_or": "logical_or", "logical_not": "logical_not", "bitwise_and": "bitwise_and", "where": "where",
    "bitwise_or": "bitwise_or", "invert": "bitwise_not", "bitwise_not": "bitwise_not",
}  # fmt: skip
"""NumPy functions -> functions of the graph."""

OF_TORCH = {
    **OF_NUMPY, "abs": "abs", "sub": "subtract", "mul": "multiply", "div": "divide", "neg": "negative",
    "rsqrt": "rsqrt", "relu": "relu", "sigmoid": "sigmoid", "silu": "silu", "gelu": "gelu", "erf": "erf",
    "softplus": "softplus", "mish": "mish", "hardswish": "hardswish", "hardsigmoid": "hardsigmoid", "relu6": "relu6",
    "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal", "ne": "not_equal",
}  # fmt: skip
"""Torch functions -> functions of the graph."""

_ARRANGING = {"reshape": "reshape", "transpose": "permute", "permute_dims": "permute"}
"""NumPy functions -> methods."""


class Proxy:
    """A traced value: a node of the graph with the operators of an array.

    Args:
        what: prefix of error messages.
        make: builder of the graph.
        node: node of the value, -1 while its place in the accumulator is not known.
        shape: shape of the array that it represents.
        needs: names of the Python numbers that are all that it depends on.
        name: name of the argument that it is.
        modes: modes as digits of the accumulator's indices, if it is reshaped or permuted.
        origin: the single argument that it is computed from.
    """

    __slots__ = ("make", "modes", "name", "needs", "node", "origin", "shape", "stored", "what")
    __array_priority__ = 1000

    def __init__(
        self, what: str, make: Builder, node: int, shape: tuple[int, ...], needs: frozenset[str] = frozenset(),
        name: str = "", modes: Modes | None = None, origin: Origin | None = None,
    ):  # fmt: skip
        self.modes, self.origin = modes, origin
        self.stored = ""  # type of the stored result, "" for any
        self.what, self.make, self.node, self.shape, self.needs, self.name = what, make, node, shape, needs, name

    @property
    def ndim(self) -> int:
        """Number of modes."""
        return len(self.shape)

    def arranged(self, shape: tuple[int, ...], modes: Modes, origin: Origin | None) -> Proxy:
        """Return the value with other modes."""
        return Proxy(self.what, self.make, self.node, shape, self.needs, self.name, modes, origin)

    def known(self, node: int, shape: tuple[int, ...], modes: Modes) -> Proxy:
        """Return the value of ``node``, reshaped or permuted as ``modes`` describes."""
        return Proxy(self.what, self.make, node, shape, self.needs, self.name, modes)

    def reshape(self, *shape: Any) -> Proxy:
        """Return the value with another shape."""
        return output_layout.reshape(self, shape[0] if isinstance(shape[0], tuple | list) else shape)

    view = reshape

    def permute(self, *dims: Any) -> Proxy:
        """Return the value with its modes in another order."""
        return output_layout.permute(self, dims[0] if isinstance(dims[0], tuple | list) else dims)

    def _as_sums(self, call: str) -> None:
        """Raise EpilogueError if the value is reshaped or permuted."""
        if self.modes is not None or self.node < 0:
            raise EpilogueError(f"{self.what}: {call}() must come before reshape() and permute()")

    def pair(self) -> tuple[Proxy, Proxy]:
        """Return the even and the odd columns.  Raises EpilogueError if the number of columns is odd."""
        self._as_sums("pairs")
        if not self.shape or self.shape[-1] % 2 or self.make.nodes[self.node].op in ("even", "odd"):
            raise EpilogueError(
                f"{self.what}: pairs() needs an even number of columns and cannot be nested; the shape is {self.shape}"
            )
        shape = (*self.shape[:-1], self.shape[-1] // 2)
        first, second = self.make.pair(self.node)
        return Proxy(self.what, self.make, first, shape), Proxy(self.what, self.make, second, shape)

    def cast(self, element: str) -> Proxy:
        """Return the value rounded to another type."""
        if self.node < 0:
            raise EpilogueError(
                f"{self.what}: cast() of an argument of shape {self.shape} must come after it is combined with accum"
            )
        node = self.make.cast(self.node, element)
        return Proxy(self.what, self.make, node, self.shape, self.needs, "", self.modes)

    def random(self, seed: Any, offset: Any) -> Proxy:
        """Return a uniform random number in [0, 1) for each element.  Raises EpilogueError."""
        self._as_sums("random")
        make = self.make
        if not isinstance(make, output_layout.Making):
            raise EpilogueError(f"{self.what}: random() is not supported here; use elementwise functions only")
        nodes = [self._whole(make, name, x) for name, x in (("seed", seed), ("offset", offset))]
        half = make.is_half(self.node)
        shape = (*make.sums[:-1], make.sums[-1] // 2) if half else make.sums
        if self.shape != shape:
            raise EpilogueError(f"{self.what}: random() needs a value of shape {shape}, got {self.shape}")
        return Proxy(self.what, make, make.random(nodes[0], nodes[1], half), shape)

    def _whole(self, make: Any, name: str, x: Any) -> int:
        """Return the node of a seed or an offset.  Raises EpilogueError."""
        if isinstance(x, Integer):
            return make.integer(x.name)
        if isinstance(x, int) and not isinstance(x, bool):
            return make.constant(x)
        node = make.nodes[x.node] if isinstance(x, Proxy) and x.node >= 0 else None
        read = make.inputs[node.value] if node is not None and node.op == "load" else None
        if not isinstance(x, Proxy) or read is None or read.kind != "scalar" or read.element not in INTEGERS:
            raise EpilogueError(
                f"{self.what}: {name} must be an integer, or an argument that is an array of one integer"
            )
        return x.node

    def quantized(self, element: str, width: int, scales: str) -> tuple[Proxy, Scales]:
        """Return 8-bit values and their scales; see :func:`.functions.quantize`.  Raises EpilogueError."""
        self._as_sums("quantize")
        make, known = self.make, self.make.nodes
        if len(self.shape) < 2 or self.make_half() or any(n.op == "block" and n.value != width for n in known):
            raise EpilogueError(
                f"{self.what}: quantize() needs all columns of the accumulator, and one block size per epilogue; "
                f"the shape is {self.shape}, the block {width}"
            )
        one = Proxy(self.what, make, make.block(call("abs", self).node, width), self.shape)
        scale, inverse = scales_of(one, element, scales, call)
        found = call("multiply", self, inverse)
        found.stored = element
        return found, Scales(scale, width, scales)

    def make_half(self) -> bool:
        """Return True if the value has half as many columns as the accumulator."""
        return self.shape[-1] != self.make.sums[-1] if isinstance(self.make, output_layout.Making) else False

    def place(self, index: str) -> Proxy:
        """Return the row, column or batch index of each element.  Raises EpilogueError."""
        self._as_sums(index)
        axis = {"matrix": -3, "row": -2, "column": -1}[index]
        if len(self.shape) < -axis:
            raise EpilogueError(f"{self.what}: {index}() needs at least {-axis} modes, got shape {self.shape}")
        shape = tuple([n if i == axis + len(self.shape) else 1 for i, n in enumerate(self.shape)])
        return Proxy(self.what, self.make, self.make.place(index), shape)

    def reduced(self, operation: str, dim: object) -> Reduced:
        """Reduce rows (-1), columns (-2) or all elements (None).  Raises EpilogueError for other dimensions."""
        self._as_sums(operation)
        rank = len(self.shape)
        axes = {None: "nm", (-2, -1): "nm"}.get(dim, "")  # type: ignore[call-overload]
        if isinstance(dim, int) and not axes:
            axes = {-1: "n", -2: "m"}.get(dim - rank if dim >= 0 else dim, "")
        if not axes or rank < 2:
            raise EpilogueError(
                f"{self.what}: {operation}() along dim={dim} of shape {self.shape} is not supported; "
                "dim is -1, -2 or None, of a matrix or a batch"
            )
        return Reduced(self, operation, axes)

    def of_rows(self, operation: str, dim: object) -> Proxy:
        """Return a row reduction that can be an operand.  Raises EpilogueError for other dimensions."""
        found = self.reduced(operation, dim)
        if found.axes != "n":
            raise EpilogueError(f"{self.what}: whole_rows=True needs dim=-1, got dim={dim} of shape {self.shape}")
        node = self.make.whole(operation, self.node)
        return Proxy(self.what, self.make, node, (*self.shape[:-1], 1))

    def _value(self, use: str) -> NoReturn:
        """Reject the conversion of a traced value to a Python value.

        Raises Needed if it depends on Python numbers only, else EpilogueError.
        """
        if self.needs:
            raise Needed(self.needs)
        raise EpilogueError(
            f"{self.what}: {use} needs a value that is known while tracing, but this one is computed by the kernel; "
            "use where(condition, x, y) to select per element"
        )

    def __bool__(self) -> bool:
        self._value("`if`, `while`, `and`, `or` or `not`")

    def __float__(self) -> float:
        self._value("float()")

    def __int__(self) -> int:
        self._value("int()")

    def __index__(self) -> int:
        self._value("an index")

    def __len__(self) -> int:
        self._value("len()")

    def __iter__(self) -> NoReturn:
        self._value("a loop")

    def __getitem__(self, index: object) -> NoReturn:
        self._value("an index")

    def __array__(self, *args: object, **more: object) -> NoReturn:
        raise EpilogueError(f"{self.what}: a NumPy function that cannot be traced was called; use those of op.epilogue")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in OF_TORCH:
            return partial(call, OF_TORCH[name], self)
        if name in ("clamp", "clip"):
            return partial(_clamped, self)
        methods = [n for n in vars(Proxy) if not n.startswith("_")]
        near = similar(name, [*OF_TORCH, "clamp", "clip", *methods])
        guess = f"; did you mean .{near[0]}?" if near else ""
        raise NoSuchAttribute(f"{self.what}: traced values have no attribute .{name}{guess}")

    def __hash__(self) -> int:
        return id(self)

    def __array_ufunc__(self, function: Any, method: str, *inputs: Any, **more: Any) -> Any:
        name = OF_NUMPY.get(function.__name__)
        if name is None or method != "__call__" or more:
            raise unknown(self.what, f"numpy.{function.__name__}")
        return call(name, *inputs)

    def __array_function__(self, function: Any, types: object, args: Any, kwargs: Any) -> Any:
        name = OF_NUMPY.get(function.__name__)
        if function.__name__ in _ARRANGING and not kwargs and len(args) == 2:
            return getattr(args[0], _ARRANGING[function.__name__])(args[1])
        if function.__name__ == "clip" and not kwargs and len(args) == 3:
            return clamp(*args)
        if name is None or kwargs:
            raise unknown(self.what, f"numpy.{function.__name__}")
        return call(name, *args)

    @classmethod
    def __torch_function__(cls, function: Any, types: object, args: Any = (), kwargs: Any = None) -> Any:
        name, kwargs = OF_TORCH.get(function.__name__.strip("_")), dict(kwargs or {})
        what = next((x.what for x in (*args, *kwargs.values()) if isinstance(x, Proxy)), "epilogue")
        kwargs.pop("inplace", None)
        approximate = kwargs.pop("approximate", "none")
        if function.__name__ in ("reshape", "permute") and not kwargs and len(args) == 2:
            return getattr(args[0], function.__name__)(args[1])
        if function.__name__ in ("clamp", "clip"):
            return clamp(*args, *(kwargs.get(n) for n in ("min", "max")[len(args) - 1 :]))
        if name is None or kwargs:
            raise unknown(what, f"torch.{function.__name__}")
        if name == "gelu" and approximate == "tanh":
            name = "gelu_tanh"
        return call(name, *args)

    def __add__(self, other: Any) -> Any:
        return call("add", self, other)

    def __radd__(self, other: Any) -> Any:
        return call("add", other, self)

    def __sub__(self, other: Any) -> Any:
        return call("subtract", self, other)

    def __rsub__(self, other: Any) -> Any:
        return call("subtract", other, self)

    def __mul__(self, other: Any) -> Any:
        return call("multiply", self, other)

    def __rmul__(self, other: Any) -> Any:
        return call("multiply", other, self)

    def __truediv__(self, other: Any) -> Any:
        return call("divide", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return call("divide", other, self)

    def __floordiv__(self, other: Any) -> Any:
        return call("floor_divide", self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return call("floor_divide", other, self)

    def __mod__(self, other: Any) -> Any:
        return call("remainder", self, other)

    def __rmod__(self, other: Any) -> Any:
        return call("remainder", other, self)

    def __pow__(self, other: Any) -> Any:
        if isinstance(other, Integer):
            raise Needed(frozenset((other.name,)))
        if not isinstance(other, int) or not 1 <= other <= 8:
            raise EpilogueError(f"{self.what}: exponent {other!r} is not supported; use an integer from 1 to 8")
        found: Any = self
        for bit in bin(other)[3:]:
            found = found * found
            found = found * self if bit == "1" else found
        return found

    def __neg__(self) -> Any:
        return call("negative", self)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return call("abs", self)

    def __lt__(self, other: Any) -> Any:
        return call("less", self, other)

    def __le__(self, other: Any) -> Any:
        return call("less_equal", self, other)

    def __gt__(self, other: Any) -> Any:
        return call("greater", self, other)

    def __ge__(self, other: Any) -> Any:
        return call("greater_equal", self, other)

    def __eq__(self, other: object) -> Any:
        return call("equal", self, other)

    def __ne__(self, other: object) -> Any:
        return call("not_equal", self, other)

    def __and__(self, other: Any) -> Any:
        return call("bitwise_and", self, other)

    def __or__(self, other: Any) -> Any:
        return call("bitwise_or", self, other)

    __rand__, __ror__ = __and__, __or__

    def __invert__(self) -> Any:
        return call("bitwise_not", self)


INTEGERS = ("i32", "i64", "ui8")
"""Types of seeds in memory."""

_LEAST = 2.0**-110
"""If no magnitude of a block is greater, its scale is 1."""


def scales_of(amax: Any, element: str, scales: str, call: Callable[..., Any]) -> tuple[Any, Any]:
    """Return the scale of 8-bit values and its inverse, given the largest magnitude of a block.

    Args:
        amax: the largest magnitude.
        element: type of the 8-bit values.
        scales: "f32" or "e8m0".
        call: ``call(name, *operands)`` applies a function.
    """
    most = LARGEST[element]
    if scales == "e8m0":
        scale = call("power_of_two", call("maximum", amax, _LEAST), most)
    else:
        scale = call("divide", amax, most)
    some = call("greater", amax, _LEAST)
    return call("where", some, scale, 1.0), call("where", some, call("divide", 1.0, scale), 1.0)


def interleaved(x: Any, y: Any) -> Any:
    """Return a value with even columns from `x` and odd columns from `y`, one of which may be a number."""
    like = x if isinstance(x, Proxy) else y
    x, y = (t.node if isinstance(t, Proxy) else like.make.constant(t) for t in (x, y))
    shape = (*like.shape[:-1], like.shape[-1] * 2)
    return Proxy(like.what, like.make, like.make.interleave(x, y), shape)


def unknown(what: str, name: str) -> EpilogueError:
    """Return the error for a function that cannot be traced."""
    library, _, short = name.rpartition(".")
    near = similar(short, [*(OF_NUMPY if library == "numpy" else OF_TORCH), "clip", "reshape"])
    guess = f"; did you mean {library}.{near[0]}? Use" if near and near[0] != short else "; use"
    return EpilogueError(f"{what}: {name} cannot be traced{guess} functions of op.epilogue, arithmetic and comparisons")


def call(name: str, *operands: Any) -> Any:
    """Apply a function to traced values and numbers."""
    proxies = [x for x in operands if isinstance(x, Proxy)]
    for x in operands:
        if isinstance(x, Integer):
            raise Needed(frozenset((x.name,)))
    what, make = proxies[0].what, proxies[0].make
    if name in _OF_BITS:
        name = _of_bools(what, name, operands)
    origin = proxies[0].origin if len(proxies) == 1 and all([_plain(x) for x in operands]) else None
    if origin is not None:
        origin = origin._replace(build=partial(_again, origin.build, make, name, operands))
        if proxies[0].node < 0:
            return proxies[0].arranged(proxies[0].shape, origin.modes, origin)
    modes: Modes | None = None
    if any([x.modes is not None or x.node < 0 for x in proxies]):
        found, modes = output_layout.operands_of(name, what, operands, proxies)
        operands = tuple(found)
        proxies = [x for x in operands if isinstance(x, Proxy)]
    nodes: list[int] = []
    for x in operands:
        if isinstance(x, Proxy):
            nodes.append(x.node)
        elif isinstance(x, bool | int | float):
            nodes.append(make.constant(x))
        elif isinstance(x, Reduced):
            x.refuse()
        elif (found_node := make.captured(x)) is not None:
            nodes.append(found_node)
        elif hasattr(x, "item") and getattr(x, "shape", None) == ():
            nodes.append(make.constant(x.item()))
        else:
            raise EpilogueError(
                f"{what}: {name} has an operand of type {type(x).__name__}; pass arrays as arguments of the epilogue"
            )
    if len(nodes) != FUNCTIONS[name].arity:
        raise EpilogueError(f"{what}: {name} takes {FUNCTIONS[name].arity} operands, got {len(nodes)}")
    if name == "multiply" and len(proxies) == 2:
        name, nodes = _scaled(proxies, nodes)
    shape = _shape(what, proxies) if modes is None else extents(modes)
    return type(proxies[0])(what, make, make.call(name, *nodes), shape, _needs(proxies), "", modes, origin)


_OF_BITS = {
    "bitwise_and": ("&", "logical_and"),
    "bitwise_or": ("|", "logical_or"),
    "bitwise_not": ("~", "logical_not"),
}
"""Functions of bits -> their operator, and the function that they are for Booleans."""


def _of_bools(what: str, name: str, operands: Sequence[Any]) -> str:
    """Return the logical function of an operator of bits.  Raises EpilogueError if an operand is not Boolean."""
    symbol, logical = _OF_BITS[name]
    for x in operands:
        if not (x.node < 0 or _is_bool(x.make, x.node) if isinstance(x, Proxy) else isinstance(x, bool)):
            raise EpilogueError(
                f"{what}: an operand of {symbol} is not Boolean; pass comparisons, such as x != 0, or arrays of bool "
                "(for bits of integers, use // and %)"
            )
    return logical


def _is_bool(make: Builder, node: int) -> bool:
    """Return True if the values of a node are Booleans."""
    found = make.nodes[node]
    if found.op == "where":
        return all([_is_bool(make, i) for i in found.operands[1:]])
    return found.op in FUNCTIONS and FUNCTIONS[found.op].result == "b"


def _plain(x: Any) -> bool:
    return isinstance(x, Proxy | bool | int | float)


def _again(build: Callable[[int], int], make: Builder, name: str, operands: tuple[Any, ...], node: int) -> int:
    """Apply a function to the value that `build` makes from an argument's node, and to numbers."""
    return make.call(name, *[build(node) if isinstance(x, Proxy) else make.constant(x) for x in operands])


def _scaled(proxies: list[Any], nodes: list[int]) -> tuple[str, list[int]]:
    """Return the product as ``scaled`` for beta and C, so that C is not read if beta is 0."""
    names = [x.name for x in proxies]
    if names in (["beta", "C"], ["C", "beta"], ["beta", "c"], ["c", "beta"]):
        scalar = names.index("beta")
        if not proxies[scalar].shape or all(n == 1 for n in proxies[scalar].shape):
            return "scaled", [nodes[scalar], nodes[1 - scalar]]
    return "multiply", nodes


def _needs(proxies: list[Any]) -> frozenset[str]:
    """Return the Python numbers that a value depends on, or nothing if it depends on arrays, too."""
    found = [x.needs for x in proxies]
    return frozenset().union(*found) if all(found) else frozenset()


def _shape(what: str, proxies: list[Any]) -> tuple[int, ...]:
    """Return the shape that operands broadcast to."""
    rank = max(len(x.shape) for x in proxies)
    found = [1] * rank
    for x in proxies:
        for i, n in enumerate((*(1,) * (rank - len(x.shape)), *x.shape)):
            if found[i] != n and 1 not in (found[i], n):
                shapes = " and ".join(str(tuple(x.shape)) for x in proxies)
                raise EpilogueError(f"{what}: operands of shapes {shapes} do not broadcast")
            found[i] = max(found[i], n)
    return tuple(found)


def _clamped(x: Any, low: Any = None, high: Any = None, **by: Any) -> Any:
    """Apply ``x.clamp(min=…, max=…)`` of torch."""
    return clamp(x, by.get("min", low), by.get("max", high))


def clamp(x: Any, low: Any = None, high: Any = None) -> Any:
    """Clamp elements between two bounds.  Each bound may be None."""
    x = x if low is None else call("maximum", x, low)
    return x if high is None else call("minimum", x, high)
