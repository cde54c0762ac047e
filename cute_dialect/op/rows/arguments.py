"""Arguments of row functions, in torch's order or in this package's.

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
from math import prod
from operator import index
from typing import TYPE_CHECKING, Any

from cute_dialect.op.errors import ArgumentError, DtypeError, LayoutError, ShapeError
from cute_dialect.runtime.arrays import view_of

if TYPE_CHECKING:  # pragma: no cover
    from typing import TypeGuard

    from cute_dialect.runtime.arrays import ArrayView


def check_number(call: str, name: str, value: object) -> None:
    """Raise DtypeError if an argument is not a number of Python or of an array library."""
    if not hasattr(value, "__float__"):
        raise DtypeError(f"{call}: {name} is {value!r}; pass a number")


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
