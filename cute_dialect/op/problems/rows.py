"""Row functions, quantization to 8 bits and gated activations: tables, arguments, and the problems of calls.

>>> RowProblem("softmax", "bf16", 8192, 50257).family
'registers'
>>> RowProblem("rms_norm", "bf16", 100, 3, "w", flat=True).family, RowProblem("softmax", "f32", 1, 1 << 20).family
('packed', 'streamed')

Elements of a region share a scale of the quantization:

>>> regions_of_block((128, 128)), shape_of_scales("block", (3, 5, 300))
('tile', (3, 5, 3))
>>> QuantizeProblem("quantize", "row", "bf16", "i8", 100, 4096).config.threads
128

>>> checked_plan("silu", "bf16", 16384, 3584).vector
8

``torch.nn.functional.layer_norm(x, (8,), w, b)`` takes the normalized shape before the weight, ``op.layer_norm(x, w,
b)`` takes none.  An int or a sequence of ints can only be a shape, so the second argument identifies the order:

>>> norm_arguments("rms_norm", ("weight", "eps"), ((8,), None, 1e-6), None, {})
((8,), {'weight': None, 'eps': 1e-06})
>>> norm_arguments("rms_norm", ("weight", "eps"), (None, 1e-6), None, {})
(None, {'weight': None, 'eps': 1e-06})
"""

# Arrays belong to any library.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, prod
from operator import index
from typing import TYPE_CHECKING, Any, NamedTuple

from cute_dialect.kernels.common.elements import BITS
from cute_dialect.kernels.elementwise.graph import ACTIVATIONS, Plan, gated_plan
from cute_dialect.kernels.epilogue.functions import LARGEST
from cute_dialect.kernels.rows.config import longest
from cute_dialect.kernels.rows.gradients import longest_gradient
from cute_dialect.kernels.rows.packed import MAPPED, is_packed_length
from cute_dialect.kernels.rows.packed_norm_gradients import is_packed_norm_length
from cute_dialect.kernels.rows.quantize import BLOCK, QuantizeConfig, choose_config
from cute_dialect.kernels.rows.streamed import OPERATIONS
from cute_dialect.kernels.rows.topk import TopkConfig, choose_topk, longest_row
from cute_dialect.op.arrays.dtypes import element_name
from cute_dialect.op.errors import ArgumentError, DtypeError, LayoutError, ShapeError, UnsupportedError
from cute_dialect.op.keywords import as_number
from cute_dialect.runtime.arrays import view_of
from cute_dialect.runtime.call_options import index_of

if TYPE_CHECKING:  # pragma: no cover
    from typing import TypeGuard

    from cute_dialect.runtime.arrays import ArrayView


class RowFunction(NamedTuple):
    """A row function with kernels of its own.

    The kind selects its arguments, the operands of its torch operator and of its gradient, and the check of shapes.
    """

    name: str  # of the function, of its torch operator and of its kernels
    kind: str
    """``map`` from a row to a row, whose gradient is computed from the result; ``number`` from a row to a number;
    ``norm`` with a weight, a bias and a residual; ``loss`` with a target per row."""
    has_gradient: bool = True  # a kernel computes the gradient, ``…_backward``; torch computes that of sums


ROW_FUNCTIONS = (
    RowFunction("softmax", "map"),
    RowFunction("log_softmax", "map"),
    RowFunction("rms_norm", "norm"),
    RowFunction("layer_norm", "norm"),
    RowFunction("sum", "number", has_gradient=False),
    RowFunction("mean", "number", has_gradient=False),
    RowFunction("max", "number"),
    RowFunction("logsumexp", "number"),
    RowFunction("cross_entropy", "loss"),
)
"""The row functions.  Operators, gradients, caches of calls and explanations are derived from this table."""

FUNCTIONS = tuple([f.name for f in ROW_FUNCTIONS])
MAPS, NORMS, NUMBERS = (tuple([f.name for f in ROW_FUNCTIONS if f.kind == kind]) for kind in ("map", "norm", "number"))
NUMBERS_BY_KERNEL = tuple([f.name for f in ROW_FUNCTIONS if f.kind == "number" and f.has_gradient])
"""Functions from a row to a number whose gradient has a kernel."""
LOSS = "cross_entropy"


class RowProblem(NamedTuple):
    """A call of a row function: types, extents and alignment, but no addresses."""

    call: str  # name of the function, or "…_backward" of its gradient
    element: str
    rows: int
    n: int  # length of a row
    takes: str = ""
    """Operands other than ``x``: the gradient of the result as rows (d) or as one number per row (g), a weight (w), a
    bias (b), a residual or the gradient of its sum (r)."""
    flat: bool = False  # the matrices are contiguous and aligned to 16 bytes

    @property
    def is_gradient(self) -> bool:
        return self.call.endswith("_backward")

    @property
    def is_norm_gradient(self) -> bool:
        return self.call.endswith("norm_backward")

    @property
    def op(self) -> str:
        """Name of the operation in :mod:`cute_dialect.kernels.rows.forward`."""
        return self.call.replace("_norm", "norm")

    @property
    def family(self) -> str:
        """The family of kernels.

        - "packed": short contiguous rows that are not whole vectors;
        - "streamed": rows that are too long for registers and shared memory;
        - "registers": all others.

        Raises UnsupportedError for rows that are too long, if the function has no kernel for streamed rows.
        """
        packs = is_packed_norm_length if self.is_norm_gradient else is_packed_length
        is_map = self.call not in NUMBERS and not self.call.startswith(LOSS)
        if self.flat and packs(self.element, self.n) and (not is_map or self.is_norm_gradient or self.op in MAPPED):
            return "packed"
        if not is_map:
            return "registers"
        most = longest_gradient(self.element) if self.is_norm_gradient else longest(self.op, self.element, self.takes)
        if self.n > most and self.op not in OPERATIONS:
            raise UnsupportedError(f"{self.call}: rows have {self.n} elements; {self.element} has at most {most}")
        return "streamed" if self.n > most else "registers"

    @property
    def bytes(self) -> int:
        """Bytes of the matrices that a call reads and writes, each once."""
        if self.call.startswith(LOSS) or self.call in NUMBERS:
            matrices = 1 + self.is_gradient
        else:
            matrices = 3 + ("r" in self.takes) if self.is_gradient else 2 + 2 * ("r" in self.takes)
        return matrices * self.rows * self.n * BITS[self.element] // 8


WIDE = ("bf16", "f16", "f32")
"""Types that are quantized."""

QUANTIZED = tuple(LARGEST)
"""Types of quantized values."""


class QuantizeProblem(NamedTuple):
    """A launch: types and extents, but no addresses."""

    task: str  # see QuantizeConfig
    regions: str  # see choose_config
    element: str
    result: str
    rows: int
    n: int  # length of a row

    @property
    def config(self) -> QuantizeConfig:
        return choose_config(self.regions, self.element, self.result, self.n, self.task)

    @property
    def scales(self) -> tuple[int, int]:
        """Shape of the scales: one per region."""
        c = self.config
        return -(-self.rows // c.rows), -(-self.n // c.block) if c.block else 1

    @property
    def bytes(self) -> int:
        """Bytes that are read and written, each once."""
        elements = self.rows * self.n
        return elements * (BITS[self.element] + BITS[self.result]) // 8 + 4 * prod(self.scales)


def regions_of_block(block: object, has_scale: bool = False) -> str:
    """Return the regions that the argument ``block`` selects.  Raises UnsupportedError, ArgumentError.

    Args:
        has_scale: the scales are given, and their shape selects the regions.
    """
    if has_scale and block is not None:
        raise ArgumentError(f"quantize: block={block!r} cannot be combined with scale, whose shape selects it; omit it")
    known = ((None, "array"), ("row", "row"), (BLOCK, "block"), ((1, BLOCK), "block"), ((BLOCK, BLOCK), "tile"))
    for value, regions in known:
        if type(block) is type(value) and block == value:
            return regions
    raise UnsupportedError(f"quantize: block={block!r} is not supported; use None, 'row', 128 or (128, 128)")


def shape_of_scales(regions: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of the scales of an array.  Raises ShapeError."""
    if regions == "array":
        return ()
    if regions == "row":
        return (*shape[:-1], 1)
    if regions == "block":
        return (*shape[:-1], -(-shape[-1] // BLOCK))
    if len(shape) != 2:
        raise ShapeError(f"quantize: x has shape {shape}; block=(128, 128) needs a matrix")
    return -(-shape[0] // BLOCK), -(-shape[1] // BLOCK)


def regions_of_scales(call: str, name: str, shape: tuple[int, ...], scales: str, found: tuple[int, ...]) -> str:
    """Return the regions that given scales have.  Raises ShapeError.

    Args:
        call, name, scales: names of the function, the array and the scales, for errors.
        shape: of the array.
        found: shape of the scales.
    """
    if prod(found) == 1:
        return "array"
    kinds = ("row", "block", "tile") if len(shape) == 2 else ("row", "block")
    allowed = {shape_of_scales(regions, shape): regions for regions in reversed(kinds)}
    if found not in allowed:
        known = ", ".join(str(s) for s in reversed(allowed))
        raise ShapeError(f"{call}: {scales} has shape {found}, but {name} has {shape}; pass one element, or {known}")
    return allowed[found]


_MOST = 2**30
"""Limit of vectors per call."""


def check_activation(activation: object) -> None:
    """Raise UnsupportedError for an unknown activation."""
    if activation not in ACTIVATIONS:
        raise UnsupportedError(
            f"gated: activation={activation!r} is not supported; use one of {', '.join(ACTIVATIONS)}"
        )


def checked_plan(activation: str, element: str, rows: int, n: int, *, is_gradient: bool = False) -> Plan:
    """Return the plan for results of ``rows`` rows of ``n`` elements.  Raises UnsupportedError."""
    plan = gated_plan(activation, element, is_gradient=is_gradient)
    if rows * -(-n // plan.vector) >= _MOST:
        raise UnsupportedError(f"gated: {rows} rows of {n} elements exceed the limit of {_MOST} vectors of 16 bytes")
    return plan


class NormQuantization(NamedTuple):
    """The 8-bit type of the result of a norm, and the elements that share a scale.

    >>> NormQuantization.of("rms_norm", "int8", 128)
    NormQuantization(element='i8', regions='block')
    """

    element: str
    regions: str  # "row" or "block"

    @classmethod
    def of(cls, call: str, dtype: object, block: object) -> NormQuantization:
        """Return the quantization that arguments select.  Raises DtypeError, UnsupportedError."""
        element = element_name(dtype)
        if element not in QUANTIZED:
            raise DtypeError(f"{call}: quantize={element} is not supported; use one of {', '.join(QUANTIZED)}")
        for value, regions in ((None, "row"), ("row", "row"), (BLOCK, "block")):
            if type(block) is type(value) and block == value:
                return cls(element, regions)
        raise UnsupportedError(f"{call}: block={block!r} is not supported with quantize; use None, 'row' or {BLOCK}")


def check_topk(element: str, rows: int, n: int, k: object, largest: object) -> tuple[int, TopkConfig]:
    """Return ``k`` and the configuration for rows of ``n`` elements.  Raises ArgumentError, UnsupportedError."""
    whole = index_of(k)
    if whole is None or not 0 <= whole <= n:
        raise ArgumentError(f"topk: k is {k!r}; pass a number from 0 to the length of the rows, {n}")
    if type(largest) is not bool:
        raise ArgumentError(f"topk: largest is {largest!r}; pass True or False")
    c = choose_topk(element, n, rows, largest=largest)
    if c is None:
        raise UnsupportedError(f"topk: rows of {n} elements are too long; pass at most {longest_row(element)}")
    if whole > c.capacity:
        raise UnsupportedError(f"topk: k={whole} exceeds the limit of {c.capacity}; pass a smaller k, or sort the rows")
    return whole, c


def check_eps(call: str, eps: object) -> None:
    """Raise DtypeError if eps is not a number, or ArgumentError if it is negative or not finite."""
    found = as_number(call, "eps", eps)
    if not 0 <= found < inf:
        raise ArgumentError(f"{call}: eps is {found!r}; pass a finite number of at least 0")


def check_ignore_index(call: str, value: object) -> None:
    """Raise DtypeError if ``ignore_index`` is not an integer, or ArgumentError if it is not one of 32 bits."""
    found = index_of(value)
    if found is None:
        raise DtypeError(f"{call}: ignore_index is {value!r}; pass an integer")
    if not -(2**31) <= found < 2**31:
        raise ArgumentError(f"{call}: ignore_index is {value}; pass an integer of 32 bits")


def norm_arguments(
    call: str, names: Sequence[str], given: Sequence[Any], shape: Any, by_name: Mapping[str, Any]
) -> tuple[Any, dict[str, Any]]:
    """Return the normalized shape (None without one) and the other arguments of a norm by name.

    Args:
        names: the arguments that may be positional, in order, without the normalized shape.
        given: the positional arguments after ``x``.
        shape: ``normalized_shape`` if it was passed by name.
        by_name: the arguments in ``names`` that were passed by name.

    Raises:
        ArgumentError: if an argument is passed twice, or there are too many.
    """
    rest = list(given)
    if rest and _is_shape(rest[0]):
        if shape is not None:
            raise ArgumentError(f"{call}: normalized_shape is given twice ({rest[0]} and {shape}); pass it once")
        shape = rest.pop(0)
    if len(rest) > len(names):
        raise ArgumentError(
            f"{call}: too many positional arguments after x ({len(given)}); allowed are normalized_shape (optional), "
            f"{', '.join(names)}"
        )
    found = dict(zip(names, rest))
    for name, value in by_name.items():
        if name in found:
            raise ArgumentError(f"{call}: {name} is given twice, by position and by name; pass it once")
        found[name] = value
    return shape, found


def _is_shape(value: object) -> TypeGuard[int | Sequence[int]]:
    """Return True for an int or a sequence of ints."""
    if isinstance(value, int):
        return not isinstance(value, bool)
    return isinstance(value, tuple | list) and all([hasattr(n, "__index__") for n in value])


def as_rows(call: str, shape: object, x: Any, arrays: Mapping[str, Any]) -> dict[str, Any] | None:
    """Check a normalized shape, and return the arrays with its dimensions merged.

    Returns None if the shape has one dimension, so that the arrays can be used unchanged.

    Args:
        x: the array to normalize.
        arrays: ``x`` and all arrays that have the shape as their last dimensions; None for absent ones.

    Raises:
        ArgumentError: if ``shape`` is not an int or a sequence of ints.
        ShapeError: if the last dimensions of an array are not ``shape``.
        LayoutError: if ``out`` cannot be reshaped in place.
    """
    if not _is_shape(shape):
        raise ArgumentError(f"{call}: normalized_shape is {shape!r}; pass an int or a tuple of ints, such as (8,)")
    wanted = (shape,) if isinstance(shape, int) else tuple([index(n) for n in shape])
    have = getattr(x, "shape", None)
    if have is None:
        return None  # RowCall reports it.
    have = tuple(have)
    if not wanted or have[len(have) - len(wanted) :] != wanted or len(have) < len(wanted):
        raise ShapeError(
            f"{call}: normalized_shape is {wanted}, but x has shape {have}; pass the last dimensions of x, such as "
            f"{have[-max(1, len(wanted)) :]}"
        )
    if len(wanted) == 1:
        return None
    found: dict[str, Any] = {}
    for name, t in arrays.items():
        if t is None:
            continue
        if not hasattr(t, "reshape"):
            raise DtypeError(
                f"{call}: {name} is a {type(t).__name__} without reshape(), which a normalized_shape of several "
                "dimensions needs; pass an array of torch, numpy or cupy"
            )
        outer = tuple(t.shape)[: len(t.shape) - len(wanted)]
        if tuple(t.shape)[len(outer) :] != wanted:
            raise ShapeError(f"{call}: {name} has shape {tuple(t.shape)}; normalized_shape is {wanted}")
        if name == "out" and not _is_packed(view_of(t), len(wanted)):
            raise LayoutError(
                f"{call}: out has strides {view_of(t).strides}; its last {len(wanted)} dimensions must be contiguous"
            )
        found[name] = t.reshape((*outer, prod(wanted)))
    return found


def _is_packed(view: ArrayView, dimensions: int) -> bool:
    """Return True if the last dimensions of an array are contiguous, so that they can be merged without a copy."""
    step = 1
    for size, stride in list(zip(view.shape, view.strides))[: -dimensions - 1 : -1]:
        if size > 1 and stride != step:
            return False
        step *= size
    return True


def one_dimension(call: str, dim: object) -> int:
    """Return a dimension that is passed as an int or as a sequence of one int.  Raises ArgumentError."""
    if isinstance(dim, tuple | list) and len(dim) == 1:
        dim = dim[0]
    if isinstance(dim, bool) or not hasattr(dim, "__index__"):
        raise ArgumentError(f"{call}: dim is {dim!r}; pass one dimension as an int, the last one (-1)")
    return index(dim)  # type: ignore[arg-type]
