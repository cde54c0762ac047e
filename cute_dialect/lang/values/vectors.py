"""Per-thread vectors: all elements of a small tensor as one value, with elementwise operators.

A vector has a static shape, and its elements are in the order of the shape's linear index (first mode fastest).
Broadcasting follows NumPy: a mode of extent 1 is repeated, and missing leading modes have extent 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, cast

from cute_dialect.algebra.evaluation import size
from cute_dialect.algebra.text import to_text
from cute_dialect.algebra.trees import column_major, is_static, weakly_congruent
from cute_dialect.algebra.values import UNDERSCORE, Layout
from cute_dialect.lang.tracing.errors import KernelTypeError, LayoutError, LimitError, MergeError
from cute_dialect.lang.tracing.tracer import concatenated, current, extract, shuffle, vector_of_length
from cute_dialect.lang.values import indexing, numeric
from cute_dialect.lang.values.dtypes import Boolean, Int32, Numeric
from cute_dialect.lang.values.dynamic import Dynamic, Form, give_operators, method_of
from cute_dialect.lang.values.forms import ConstForm
from cute_dialect.lang.values.indexing import check_access
from cute_dialect.lang.values.tensors import Tensor, make_rmem_tensor

if TYPE_CHECKING:
    from xdsl.ir import Attribute, SSAValue

    from cute_dialect.lang.values.signature_types import Coord, Number, Shape, Value

NumberClass = type[Numeric]

MAX_ELEMENTS = 1024
"""Maximum number of elements. More would not fit in a thread's registers."""


class TensorSSA(Dynamic):
    """A vector: the values of a tensor's elements, in registers."""

    __slots__ = ("dtype", "shape", "ssa")

    ssa: SSAValue
    shape: Any
    """The shape: a tree of Python integers."""
    dtype: NumberClass
    """The element type."""

    def __init__(self, value: TensorSSA, shape: Shape, dtype: NumberClass):
        """Create a vector of the elements of another one.

        Args:
            value: a vector with elements of ``dtype``.
            shape: its new shape, of the same size.
            dtype: the element type.
        """
        if not isinstance(value, TensorSSA) or value.dtype is not dtype or value.size != size(shape):  # pyright: ignore
            raise KernelTypeError(
                "F238", f"TensorSSA: the value must be a vector of {size(shape)} elements of {dtype!r}, got {value!r}"
            )
        self.ssa, self.shape, self.dtype = value.ssa, shape, dtype

    def ir_value(self, **_: object) -> TensorSSA:
        """Return the vector itself. CuTe DSL programs call this to pass vectors to ops."""
        return self

    @classmethod
    def of(cls, ssa: SSAValue, shape: Any, dtype: NumberClass) -> TensorSSA:
        """Return the vector for a value of type ``vector<N x T>``."""
        made = object.__new__(cls)
        made.ssa = ssa
        made.shape = shape
        made.dtype = dtype
        return made

    @property
    def element_type(self) -> NumberClass:
        """The element type."""
        return self.dtype

    @property
    def size(self) -> int:
        """The number of elements."""
        return cast("int", size(self.shape))

    @property
    def number(self) -> Numeric:
        """The vector as one number whose SSA value is a vector, for the functions of numbers."""
        return self.dtype.of(self.ssa)

    def to(self, dtype: NumberClass) -> TensorSSA:
        """Return the vector with its elements converted to another type."""
        return self if dtype is self.dtype else TensorSSA.of(dtype(self.number).ssa, self.shape, dtype)

    def bitcast(self, dtype: NumberClass) -> TensorSSA:
        """Return the bits as elements of another type. A different width rescales the extent of the first mode.

        The bits of a 32-bit word as Boolean are 32 elements, lowest bit first.
        """
        if self.dtype.width == 1:
            raise KernelTypeError("F236", f"{self.dtype!r} elements cannot be reinterpreted as {dtype!r}")
        shape = _recast_shape(self.shape, self.dtype.width, dtype.width)
        if shape is None:
            raise KernelTypeError(
                "F243", f"the first mode of {shape_text(self.shape)} is not a whole number of {dtype!r} elements "
                f"({self.dtype.width} to {dtype.width} bits)",
            )  # fmt: skip
        return TensorSSA.of(numeric.emit("vector.bitcast", [self.ssa], vector_type(dtype, shape)), shape, dtype)

    def reshape(self, shape: Shape) -> TensorSSA:
        """Return the same elements in the same order with another shape of equal size."""
        shape = static_shape(shape)
        if size(shape) != self.size:
            raise LayoutError(
                "F243", f"reshape: {shape_text(shape)} has {size(shape)} elements, but the vector of shape "
                f"{shape_text(self.shape)} has {self.size}",
            )  # fmt: skip
        return TensorSSA.of(self.ssa, shape, self.dtype)

    def broadcast_to(self, shape: Shape) -> TensorSSA:
        """Return the vector broadcast to a shape: modes of extent 1 are repeated, and leading modes added."""
        shape = static_shape(shape)
        if not _spreads_to(self.shape, shape):
            raise _unfit(self.shape, shape)
        return TensorSSA.of(_spread(self, shape), shape, self.dtype)

    # ------------------------------------------------------------------------------------------------------ elements

    def __getitem__(self, coord: object) -> Any:
        where = indexing.normalised(coord, self.shape, "vector")
        if not indexing.is_static_coord(where):
            found = self._in_registers()[coord]
            return load(found) if indexing.has_open_mode(where) else found
        if not indexing.has_open_mode(where):
            return self.dtype.of(extract(self.ssa, cast("int", self._layout(where))))
        layout, offset = indexing.part(where, self._layout)
        picked = [offset + cast("int", layout(i)) for i in range(cast("int", size(layout)))]
        return TensorSSA.of(shuffle(self.ssa, picked), layout.shape, self.dtype)

    def __setitem__(self, coord: object, value: object) -> None:
        raise KernelTypeError(
            "F237", "a vector is a value, and its elements cannot be assigned",
            hint="assign to the register tensor that it came from, or to one created with cute.make_rmem_tensor",
        )  # fmt: skip

    def _in_registers(self) -> Any:
        """Return a register tensor that holds the vector, for run-time indices."""
        held = make_rmem_tensor(self.shape, self.dtype)
        store(held, self)
        return held

    @property
    def _layout(self) -> Layout:
        return Layout(self.shape)

    def __iter__(self) -> Iterator[Any]:
        return iter([self.dtype.of(extract(self.ssa, i)) for i in range(self.size)])

    def __len__(self) -> int:
        return self.size

    # ------------------------------------------------------------------------------------------------------ reductions

    def reduce(
        self,
        op: ReductionOp | Callable[[Value, Value], Value],
        init_val: Number = None,
        reduction_profile: Coord = 0,
        *,
        order: str = "tree",
    ) -> Value:
        """Return the elements combined into a number, or into a vector of the modes given as ``None``.

        Args:
            op: a :class:`ReductionOp`, or a function of two numbers.
            init_val: an initial value, or None.
            reduction_profile: a coordinate with ``None`` at each mode to keep.
            order: ``"tree"`` combines neighbors pairwise, ``"serial"`` goes from the first element to the last.
        """
        return reduced(self, op, init_val, reduction_profile, order)

    def sum(self) -> Numeric:
        """Return the sum of the elements, added pairwise."""
        return self.reduce("add")

    def max(self) -> Numeric:
        """Return the largest element."""
        return self.reduce("max")

    def min(self) -> Numeric:
        """Return the smallest element."""
        return self.reduce("min")

    def all(self) -> Boolean:
        """Return True if all elements are true."""
        return self.to(Boolean).reduce("and")

    def any(self) -> Boolean:
        """Return True if any element is true."""
        return self.to(Boolean).reduce("or")

    if TYPE_CHECKING:  # operators, defined by give_operators()

        def __add__(self, other: object) -> TensorSSA: ...
        def __radd__(self, other: object) -> TensorSSA: ...
        def __sub__(self, other: object) -> TensorSSA: ...
        def __rsub__(self, other: object) -> TensorSSA: ...
        def __mul__(self, other: object) -> TensorSSA: ...
        def __rmul__(self, other: object) -> TensorSSA: ...
        def __truediv__(self, other: object) -> TensorSSA: ...
        def __rtruediv__(self, other: object) -> TensorSSA: ...
        def __floordiv__(self, other: object) -> TensorSSA: ...
        def __rfloordiv__(self, other: object) -> TensorSSA: ...
        def __mod__(self, other: object) -> TensorSSA: ...
        def __rmod__(self, other: object) -> TensorSSA: ...
        def __and__(self, other: object) -> TensorSSA: ...
        def __rand__(self, other: object) -> TensorSSA: ...
        def __or__(self, other: object) -> TensorSSA: ...
        def __ror__(self, other: object) -> TensorSSA: ...
        def __xor__(self, other: object) -> TensorSSA: ...
        def __rxor__(self, other: object) -> TensorSSA: ...
        def __lshift__(self, other: object) -> TensorSSA: ...
        def __rlshift__(self, other: object) -> TensorSSA: ...
        def __rshift__(self, other: object) -> TensorSSA: ...
        def __rrshift__(self, other: object) -> TensorSSA: ...
        def __pow__(self, other: object) -> TensorSSA: ...
        def __rpow__(self, other: object) -> TensorSSA: ...
        def __lt__(self, other: object) -> TensorSSA: ...
        def __le__(self, other: object) -> TensorSSA: ...
        def __gt__(self, other: object) -> TensorSSA: ...
        def __ge__(self, other: object) -> TensorSSA: ...
        def __neg__(self) -> TensorSSA: ...
        def __pos__(self) -> TensorSSA: ...
        def __invert__(self) -> TensorSSA: ...
        def __abs__(self) -> TensorSSA: ...

    # ------------------------------------------------------------------------------------------------------ protocols

    def __cute_size__(self, path: Sequence[int] | None) -> int:
        """Return the number of elements of the vector or of one of its modes."""
        shape = self.shape
        for i in path or ():
            shape = shape[i]
        return cast("int", size(shape))

    def __cute_store__(self, tensor: Tensor) -> None:
        store(tensor, self)

    def __cute_map__(self, f: Callable[..., Any], *args: Any, by_element: bool = False) -> TensorSSA:
        """Return ``f(*args)`` element by element; ``self`` is one of the arguments (:func:`mapped`)."""
        return mapped(f, args, by_element=by_element)

    def __cute_form__(self) -> Form:
        return VectorForm(self.shape, self.dtype)

    def describe(self) -> str:
        name = self.ssa.name_hint
        return f"vector '{name}' of {self.dtype!r}" if name else f"this vector of {self.dtype!r}"

    def __repr__(self) -> str:
        return f"vector<{self.size}x{self.dtype}> o {shape_text(self.shape)}"

    __hash__ = object.__hash__


def _is_operand(x: object) -> bool:
    return isinstance(x, TensorSSA) or numeric.is_number(x)


give_operators(
    TensorSSA, takes=_is_operand,
    binary=lambda name, a, b: mapped(lambda x, y: numeric.binary(name, x, y), (a, b)),
    compare=lambda name, a, b: mapped(lambda x, y: numeric.compare(name, x, y), (a, b)),
    apply=lambda name, *args: mapped(getattr(numeric, name), args),
)  # fmt: skip


# ------------------------------------------------------------------------------------------------------- element-wise


def mapped(f: Callable[..., Any], args: Sequence[Any], *, by_element: bool = False) -> TensorSSA:
    """Apply ``f`` to numbers for each element of vectors. Scalars among the arguments are broadcast.

    ``f`` receives numbers whose SSA values are vectors, which the arith and math ops accept.  With ``by_element`` it
    receives one set of elements at a time.  It returns a number.
    """
    shape: Any = 1
    for x in args:
        if isinstance(x, TensorSSA):
            shape = broadcast_shape(shape, x.shape)
    n = _size_checked(shape)
    if by_element:
        columns = [_elements(x, shape) if isinstance(x, TensorSSA) else [x] * n for x in args]
        results = [numeric.as_number(f(*row)) for row in zip(*columns)]
        return vector_of(results, shape)
    found = f(*(x.dtype.of(_spread(x, shape)) if isinstance(x, TensorSSA) else x for x in args))
    result = numeric.as_number(found)
    ssa = result.ssa
    if ssa.type.name != "vector":  # The result does not depend on the arguments.
        ssa = numeric.emit("vector.broadcast", [ssa], vector_type(type(result), shape))
    return TensorSSA.of(ssa, shape, type(result))


def vector_of(numbers: Sequence[Any], shape: Any = None) -> TensorSSA:
    """Return a vector of numbers of one type, in the order of the linear index of ``shape``."""
    found = [numeric.as_number(x) for x in numbers]
    shape = len(found) if shape is None else shape
    dtype = type(found[0])
    for x in found:
        if type(x) is not dtype:
            raise KernelTypeError(
                "F203",
                f"the elements of a vector must have one type, got {dtype!r} and {type(x)!r}",
                hint="convert with .to(…)",
            )
    return TensorSSA.of(
        numeric.emit("vector.from_elements", [x.ssa for x in found], vector_type(dtype, shape)), shape, dtype
    )


def _elements(x: TensorSSA, shape: Any) -> list[Any]:
    spread = _spread(x, shape)
    return [x.dtype.of(extract(spread, i)) for i in range(cast("int", size(shape)))]


# -------------------------------------------------------------------------------------------------------------- shapes


def static_shape(shape: Any) -> Any:
    """Return a shape as a tree of Python integers.  Raises F240 for a dynamic one."""
    import operator

    layout_shape = getattr(shape, "shape", None)
    if layout_shape is not None:
        shape = layout_shape
    if isinstance(shape, tuple | list):
        return tuple(static_shape(s) for s in shape)
    if isinstance(shape, Numeric) and not shape.is_static:
        raise LayoutError("F240", "a vector needs a static shape, but an extent is known only at run time")
    return operator.index(shape)


def broadcast_shape(a: Any, b: Any) -> Any:
    """Return the common shape of two broadcast vectors.  Raises F243 if their shapes do not match.

    >>> broadcast_shape((4, 1), (4, 8)), broadcast_shape((8,), (4, 8)), broadcast_shape((), (2, (2, 3)))
    ((4, 8), (4, 8), (2, (2, 3)))
    """
    found = _met(a, b)
    if found is None:
        raise _unfit(a, b)
    return found


def _met(a: Any, b: Any) -> Any:
    found = _broadcast(a, b)
    if found is None and isinstance(a, int) != isinstance(b, int):  # A plain extent is treated as a shape of one mode.
        found = _broadcast((a,) if isinstance(a, int) else a, (b,) if isinstance(b, int) else b)
    return found


def _broadcast(a: Any, b: Any) -> Any:
    if a == b:
        return a
    if isinstance(a, tuple) and isinstance(b, tuple):
        rank = max(len(a), len(b))
        a, b = (1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b
        modes = [_broadcast(x, y) for x, y in zip(a, b)]
        return None if any(m is None for m in modes) else tuple(modes)
    if a == 1 or b == 1:
        return b if a == 1 else a
    if size(a) == size(b) and (isinstance(a, int) or isinstance(b, int)):
        return b if isinstance(a, int) else a
    return None


def _spreads_to(shape: Any, target: Any) -> bool:
    found = _met(shape, target)
    return found is not None and size(found) == size(target)


def _unfit(a: Any, b: Any) -> LayoutError:
    return LayoutError(
        "F243", f"vectors of shapes {shape_text(a)} and {shape_text(b)} cannot be broadcast: the extents of a "
        "mode must be equal, or one of them 1",
    )  # fmt: skip


def _size_checked(shape: Any) -> int:
    n = cast("int", size(shape))
    if n > MAX_ELEMENTS:
        raise LimitError("F171", f"a vector can have at most {MAX_ELEMENTS} elements, but {shape_text(shape)} has {n}")
    return n


def shape_text(shape: Any) -> str:
    return to_text(shape)


def _recast_shape(shape: Any, old: int, new: int) -> Any:
    """Return a shape for elements of another width. The first extent is rescaled; None if it is not an integer then."""
    if isinstance(shape, tuple):
        first = _recast_shape(shape[0], old, new) if shape else None
        return None if first is None else (first, *shape[1:])
    return None if shape * old % new else shape * old // new


# ----------------------------------------------------------------------------------------------------------- emission


def vector_type(dtype: NumberClass, shape: Any) -> Attribute:
    """Return the type of vectors of a shape.  Raises F171 for too many elements."""
    return vector_of_length(dtype.attribute, _size_checked(shape))


def _spread(x: TensorSSA, shape: Any) -> SSAValue:
    """Return the SSA value of a vector broadcast to a matching shape."""
    if size(shape) == x.size:
        return x.ssa
    if x.size == 1:
        return numeric.emit("vector.broadcast", [extract(x.ssa, 0)], vector_type(x.dtype, shape))
    own = (x.shape,) if isinstance(x.shape, int) else x.shape
    layout = Layout(shape, _repeating(own, column_major(own), shape))
    return shuffle(x.ssa, [cast("int", layout(i)) for i in range(cast("int", size(shape)))])


def _repeating(shape: Any, stride: Any, target: Any) -> Any:
    """Return strides over ``target`` that repeat the elements of ``shape``."""
    if isinstance(target, tuple):
        if isinstance(shape, tuple):
            missing = len(target) - len(shape)
            shape, stride = (1,) * missing + shape, (0,) * missing + stride
            return tuple(_repeating(s, d, t) for s, d, t in zip(shape, stride, target))
        return _zeros(target) if shape == 1 else column_major(target, stride)
    return 0 if size(shape) == 1 and target != 1 else stride


def _zeros(target: Any) -> Any:
    return tuple(map(_zeros, target)) if isinstance(target, tuple) else 0


# ------------------------------------------------------------------------------------------------ tensors and vectors


@method_of(Tensor, "_load")
def load(tensor: Tensor) -> TensorSSA:
    """Return all elements as a vector. The shape must be static."""
    shape = tensor.shape_payload
    dtype = tensor.element_type
    if dtype is None:
        raise KernelTypeError(
            "F260", "a coordinate tensor has no memory and cannot be loaded; index it to get integers"
        )
    if not is_static(shape):
        raise LayoutError(
            "F240", f"a vector needs a static shape, but {tensor.describe()} has shape {shape_text(shape)}",
            hint="use a tile or a slice of static shape",
        )  # fmt: skip
    _size_checked(shape)
    check_access(tensor, "read")
    return TensorSSA.of(current().value("cute.memref.load_vec", [tensor.ssa]), shape, dtype)


@method_of(Tensor, "_store")
def store(tensor: Tensor, vector: TensorSSA) -> None:
    """Store a vector with the same shape and element type."""
    if not isinstance(vector, TensorSSA):
        raise KernelTypeError(
            "F235", f"store needs a vector, got {vector!r}", hint="use t.fill(x) to set all elements to a number"
        )
    if tensor.element_type is None:
        raise KernelTypeError("F260", "a coordinate tensor has no memory and cannot be written")
    if vector.dtype is not tensor.element_type:
        raise KernelTypeError(
            "F235", f"a vector of {vector.dtype!r} cannot be stored in a tensor of {tensor.element_type!r}",
            hint=f"convert it with v.to(cute.{tensor.element_type!r})",
        )  # fmt: skip
    shape = tensor.shape_payload
    if vector.shape != shape:
        if not is_static(shape) or not _spreads_to(vector.shape, shape):
            raise LayoutError(
                "F243", f"a vector of shape {shape_text(vector.shape)} cannot be stored in a tensor of shape "
                f"{shape_text(shape)}", hint="use v.reshape(…) for a different shape of equal size",
            )  # fmt: skip
        vector = vector.broadcast_to(shape)
    check_access(tensor, "write")
    current().op("cute.memref.store_vec", [vector.ssa, tensor.ssa])


# ----------------------------------------------------------------------------------------------------------- reductions


class ReductionOp(Enum):
    """Reduction operators."""

    ADD = "add"
    MUL = "mul"
    MAX = "max"
    MIN = "min"
    AND = "and"
    OR = "or"
    XOR = "xor"


def reduced(v: TensorSSA, op: Any, init: Any, profile: Any, order: str) -> Any:
    """Return the reduction of a vector (:meth:`TensorSSA.reduce`)."""
    if order not in ("tree", "serial"):
        raise KernelTypeError("F238", f"reduce: order must be 'tree' or 'serial', got {order!r}")
    name = _name(op)
    combine: Callable[[Any, Any], Any] = op if name is None else lambda a, b: numeric.binary(name, a, b)
    if name in ("add", "mul", "max", "min"):  # 8-bit floats and Booleans are computed in a wider type.
        v = v.to(numeric.computing(v.dtype))
    kept, rows = _rows(v, profile)
    if len(rows[0]) == 1 and not kept:
        return _scalar(v, name, combine, init, [row[0] for row in rows], order)
    if name is None:
        columns = [_scalar(v, None, combine, init, list(column), order) for column in zip(*rows)]
        return vector_of(columns, kept)
    parts = [TensorSSA.of(shuffle(v.ssa, row), kept, v.dtype) for row in rows]
    return _folded(parts, lambda a, b: mapped(combine, (a, b)), init, order)


def _name(op: Any) -> str | None:
    """Return the name of an arithmetic reduction, or None for a user-defined function."""
    if isinstance(op, ReductionOp):
        return op.value
    if isinstance(op, str) and op in ReductionOp._value2member_map_:
        return op
    if callable(op):
        return None
    known = ", ".join(f"ReductionOp.{x.name}" for x in ReductionOp)
    raise KernelTypeError("F238", f"reduce: op must be one of {known}, or a function of two numbers, got {op!r}")


def _rows(v: TensorSSA, profile: Any) -> tuple[Any, list[list[int]]]:
    """Return the remaining shape, and the element indices at each reduced coordinate."""

    def as_coord(p: Any) -> Any:
        if isinstance(p, tuple | list):
            return tuple(map(as_coord, p))
        return UNDERSCORE if p is None or isinstance(p, slice) else 0

    coord = as_coord(profile)
    if not weakly_congruent(coord, v.shape):
        raise LayoutError(
            "F241", f"reduce: the reduction profile {indexing.coord_text(profile)} does not match the shape "
            f"{shape_text(v.shape)}",
        )  # fmt: skip
    whole = Layout(v.shape)
    if not indexing.has_open_mode(coord):
        return (), [[i] for i in range(v.size)]
    keeps, _ = indexing.part(coord, whole)
    kept = [cast("int", keeps(i)) for i in range(cast("int", size(keeps)))]
    if not indexing.has_open_mode(_other(coord)):  # Nothing is reduced.
        return keeps.shape, [kept]
    drops, _ = indexing.part(_other(coord), whole)
    return keeps.shape, [[cast("int", drops(r)) + i for i in kept] for r in range(cast("int", size(drops)))]


def _other(coord: Any) -> Any:
    if isinstance(coord, tuple):
        return tuple(map(_other, coord))
    return 0 if coord is UNDERSCORE else UNDERSCORE


def _scalar(
    v: TensorSSA, name: str | None, combine: Callable[[Any, Any], Any], init: Any, picked: list[int], order: str
) -> Any:
    """Return the combination of the selected elements as a number."""
    if order == "serial" or name is None:
        elements = [v.dtype.of(extract(v.ssa, i)) for i in picked]
        return _folded(elements, combine, init, order)
    at = TensorSSA.of(shuffle(v.ssa, picked), len(picked), v.dtype)
    while (n := at.size) > 1:
        half = n // 2
        pairs = [TensorSSA.of(shuffle(at.ssa, range(i, 2 * half, 2)), half, v.dtype) for i in (0, 1)]
        both = mapped(combine, pairs)
        if n % 2:
            last = shuffle(at.ssa, [n - 1])
            ssa = concatenated(both.ssa, last)
            both = TensorSSA.of(ssa, half + 1, v.dtype)
        at = both
    result = v.dtype.of(extract(at.ssa, 0))
    return result if init is None else combine(init, result)


def _folded(items: list[Any], combine: Callable[[Any, Any], Any], init: Any, order: str) -> Any:
    if order == "serial":
        found = items[0] if init is None else combine(init, items[0])
        for x in items[1:]:
            found = combine(found, x)
        return found
    while len(items) > 1:
        pairs = [combine(a, b) for a, b in zip(items[::2], items[1::2])]
        items = pairs + ([items[-1]] if len(items) % 2 else [])
    return items[0] if init is None else combine(init, items[0])


# ------------------------------------------------------------------------------------------------- functions of vectors


def full(shape: Shape, fill_value: Number, dtype: type[Numeric] | None = None) -> TensorSSA:
    """Return a vector with all elements equal to a number. The element type defaults to the number's."""
    number = numeric.as_number(fill_value)
    number = (
        number
        if dtype is None
        else numeric.literal(dtype, fill_value)
        if _is_literal(fill_value, dtype)
        else dtype(number)
    )
    shape = static_shape(shape)
    ssa = numeric.emit("vector.broadcast", [number.ssa], vector_type(type(number), shape))
    return TensorSSA.of(ssa, shape, type(number))


def _is_literal(x: object, dtype: type[Numeric]) -> bool:
    return isinstance(x, int) and not isinstance(x, bool) and dtype.width > 1


def full_like(like: Tensor | TensorSSA, fill_value: Number, dtype: type[Numeric] | None = None) -> TensorSSA:
    """Return a vector with the shape and element type of a vector or tensor and all elements equal to a number."""
    return full(like.shape, fill_value, like.element_type if dtype is None else dtype)


def zeros_like(like: Tensor | TensorSSA, dtype: type[Numeric] | None = None) -> TensorSSA:
    """Return a vector of zeros with the shape and element type of a vector or tensor."""
    return full_like(like, 0, dtype)


def ones_like(like: Tensor | TensorSSA, dtype: type[Numeric] | None = None) -> TensorSSA:
    """Return a vector of ones with the shape and element type of a vector or tensor."""
    return full_like(like, 1, dtype)


def empty_like(like: Tensor | TensorSSA, dtype: type[Numeric] | None = None) -> TensorSSA:
    """Return a vector with the shape and element type of a vector or tensor. Its elements are zero."""
    return full_like(like, 0, dtype)


def arange(start: int, stop: int | None = None, step: int = 1, dtype: type[Numeric] = Int32) -> TensorSSA:
    """Return the integers of ``range(start, stop, step)``, or of ``range(start)``, as a vector."""
    numbers = range(start) if stop is None else range(start, stop, step)
    if not numbers:
        raise LayoutError("F243", f"arange: a vector cannot be empty, got {numbers}")
    return vector_of([numeric.literal(dtype, n) for n in numbers])


def where(condition: Value, x: Value, y: Value) -> Value:
    """Return ``x`` where the condition is true, else ``y``, element by element. Both are evaluated."""
    if isinstance(condition, bool) or (isinstance(condition, Numeric) and condition.is_static):
        condition = Boolean.exactly(bool(condition))
    if any(isinstance(v, TensorSSA) for v in (condition, x, y)):
        return mapped(_select, (condition, x, y))
    return _select(condition, x, y)


def _select(condition: Any, x: Any, y: Any) -> Numeric:
    test = numeric.as_number(condition)
    if type(test) is not Boolean:
        raise KernelTypeError(
            "F151", f"where: the condition must be Boolean, got {test.describe()}", hint="compare it: x != 0"
        )
    a, b, kind = numeric.pair(x if isinstance(y, Numeric) else numeric.as_number(x), y, "where")
    a, b = (kind(a), kind(b)) if type(a) is not kind or type(b) is not kind else (a, b)
    if test.is_static:
        return a if test.value else b
    left, right = numeric.alike(a.ssa, b.ssa)
    chosen: SSAValue = test.ssa
    if chosen.type.name == "vector" and left.type.name != "vector":
        wide = numeric.shaped(left.type, chosen)
        left, right = (numeric.emit("vector.broadcast", [v], wide) for v in (left, right))
    return kind.of(numeric.emit("arith.select", [chosen, left, right], left.type))


def concat(*parts: TensorSSA) -> TensorSSA:
    """Return the concatenated elements of vectors of the same type, as a vector with one mode."""
    first = parts[0]
    for p in parts:
        if p.dtype is not first.dtype:
            raise KernelTypeError(
                "F203",
                f"concat: the vectors must have one element type, got {first.dtype!r} and {p.dtype!r}",
                hint="convert with .to(…)",
            )
    ssa, n = first.ssa, first.size
    for p in parts[1:]:
        ssa = concatenated(ssa, p.ssa)
        n += p.size
    return TensorSSA.of(ssa, n, first.dtype)


def any_(v: TensorSSA) -> Boolean:
    """Return True if any element of a vector is true."""
    return v.any()


def all_(v: TensorSSA) -> Boolean:
    """Return True if all elements of a vector are true."""
    return v.all()


# --------------------------------------------------------------------------------------------------------------- forms


class VectorForm(Form):
    """The form of vectors of one shape and element type."""

    __slots__ = ("dtype", "shape", "types")

    def __init__(self, shape: Any, dtype: NumberClass):
        self.shape = (shape,) if isinstance(shape, int) else shape  # A plain extent is treated as a shape of one mode.
        self.dtype = dtype
        self.types = (vector_type(dtype, shape),)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VectorForm) and self.shape == other.shape and self.dtype is other.dtype

    def __hash__(self) -> int:
        return hash((VectorForm, self.shape, self.dtype))

    def __repr__(self) -> str:
        return f"VectorForm({shape_text(self.shape)}, {self.dtype!r})"

    def take(self, value: object) -> list[SSAValue]:
        assert isinstance(value, TensorSSA)
        return [value.ssa]

    def make(self, leaves: Sequence[SSAValue]) -> TensorSSA:
        return TensorSSA.of(leaves[0], self.shape, self.dtype)

    def join(self, other: Form) -> Form:
        if self == other:
            return self
        if isinstance(other, VectorForm):
            raise MergeError(
                "F205", f"it is a vector of {self.dtype!r} with shape {shape_text(self.shape)} or one of "
                f"{other.dtype!r} with shape {shape_text(other.shape)}",
                hint="convert with v.to(…), or change the shape with v.reshape(…) or v.broadcast_to(…)",
            )  # fmt: skip
        none = isinstance(other, ConstForm) and other.value is None
        raise MergeError("F208" if none else "F205", f"it is a vector of {self.dtype!r} or {other!r}")
