"""Annotations of parameters.

>>> Constexpr[int], TensorAnnotation.of((None, "m", ("k", 16)))
(Constexpr[int], Tensor[None, 'm', ('k', 16)])
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from cute_dialect.lang.tracing.errors import KernelTypeError
from cute_dialect.lang.values.dtypes import NumericType, type_of_mlir


class _Subscripted:
    """A subscripted annotation class: ``C[x, …]``."""

    __slots__ = ("args", "origin")

    def __init__(self, origin: type, args: tuple[object, ...]):
        self.origin = origin
        self.args = args

    def __repr__(self) -> str:
        names = [a.__name__ if isinstance(a, type) else repr(a) for a in self.args]
        return f"{self.origin.__name__}[{', '.join(names)}]"

    def __call__(self, *args: Any) -> Any:
        raise TypeError(f"{self!r} is an annotation and cannot be called")

    def __or__(self, other: object) -> Any:
        return typing.Union[self, other]  # noqa: UP007  (it makes the value)

    __ror__ = __or__


def subscripted(origin: type, args: object) -> object:
    """Return the annotation ``origin[args]``."""
    return _Subscripted(origin, args if isinstance(args, tuple) else (args,))


class _Annotation:
    """Base of classes that serve only as annotations."""

    def __class_getitem__(cls, args: Any) -> object:
        return subscripted(cls, args)


if TYPE_CHECKING:
    _T = TypeVar("_T")
    Constexpr = Annotated[_T, "static"]  # A type checker sees the type of the argument.
else:

    class Constexpr(_Annotation):
        """A parameter whose value is a constant of the kernel: another value needs another specialization."""


_CONSTEXPR: Any = Constexpr


class IntTuple(_Annotation):
    """Annotation of a tree of integers. Python integers are compile-time constants; ``Int32`` leaves are parameters."""


class Shape(IntTuple):
    """Annotation of a shape: a tree of integers."""


class Stride(IntTuple):
    """Annotation of strides: a tree of integers."""


class Coord(IntTuple):
    """Annotation of a coordinate: a tree of integers and None."""


class Tile(IntTuple):
    """Annotation of a tiler: a tree of integers, layouts and None."""


class Stream(_Annotation):
    """The stream of a launch: a stream of torch, cupy or cuda-python, or its handle.

    ``Stream(handle)`` wraps a handle.
    """

    def __init__(self, handle: int = 0):
        self.handle = handle

    def __repr__(self) -> str:
        return f"Stream({self.handle})"


class Generic(str):
    """The name of a generic parameter in an annotation."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class TensorAnnotation:
    """The annotation ``Tensor[…]``: an element type (None: any), then extents, or the layout as text.

    An extent is a number, a symbol's name, a pair of symbol and divisor, or None for any extent.
    """

    __slots__ = ("alignment", "dims", "dtype", "layout")

    def __init__(self, dtype: object, dims: tuple[object, ...] | None, layout: str | None, alignment: int | None):
        self.dtype = dtype
        self.dims = dims
        self.layout = layout
        self.alignment = alignment

    @classmethod
    def of(cls, args: object) -> TensorAnnotation:
        """Return the annotation for the arguments between the brackets."""
        entries = args if isinstance(args, tuple) else (args,)
        dtype, *rest = entries
        if isinstance(dtype, str) and not isinstance(dtype, Generic):
            dtype = type_of_mlir(dtype)
        texts = [e for e in rest if isinstance(e, str) and (":" in e or e.startswith("align<"))]
        if texts:
            if len(texts) != len(rest):
                raise KernelTypeError("F124", f"Tensor[…] takes either a layout or extents, got {entries!r}")
            layout = next((t for t in texts if ":" in t), None)
            align = next((t for t in texts if t.startswith("align<")), None)
            return cls(dtype, None, layout, int(align[6:-1]) if align is not None else None)
        return cls(dtype, tuple(rest) or None, None, None)

    def __repr__(self) -> str:
        if self.layout is not None:
            return f"Tensor[{self.dtype!r}, {self.layout!r}]"
        return f"Tensor[{', '.join(map(repr, (self.dtype, *(self.dims or ()))))}]"

    def __or__(self, other: object) -> Any:
        return typing.Union[self, other]  # noqa: UP007  (it makes the value)

    __ror__ = __or__

    def __call__(self, *args: Any) -> Any:
        raise TypeError(f"{self!r} is an annotation and cannot be called")

    def resolved(self, names: Mapping[str, object]) -> TensorAnnotation:
        """Return the annotation with generic parameters replaced by their values."""

        def known(x: object) -> object:
            if isinstance(x, tuple):
                return tuple([known(y) for y in x])
            name = generic_name(x)
            return names.get(name, x) if name is not None else x

        dims = None if self.dims is None else tuple([known(d) for d in self.dims])
        return TensorAnnotation(known(self.dtype), dims, self.layout, self.alignment)


def generic_name(x: object) -> str | None:
    """Return the name of a generic parameter (a ``Generic`` or a Python 3.12 type parameter), or None."""
    if isinstance(x, Generic):
        return str(x)
    return x.__name__ if isinstance(x, typing.TypeVar) else None


def annotations_of(function: Callable[..., Any], names: Mapping[str, object]) -> dict[str, object]:
    """Return the annotations of a function. Strings are evaluated; those that fail to evaluate are left out.

    ``names`` maps generic parameters to their values.
    """
    found: dict[str, object] = {}
    given = dict(getattr(function, "__annotations__", {}))
    for name, annotation in given.items():
        if isinstance(annotation, str):
            annotation = _evaluated(name, annotation, function, names)
        if annotation is not None:
            found[name] = annotation
    return found


def _evaluated(name: str, text: str, function: Any, names: Mapping[str, object]) -> object:
    space = dict(function.__globals__)
    for free, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        try:
            space[free] = cell.cell_contents
        except ValueError:  # The cell is still empty.
            continue
    space.update(names)
    try:
        found = eval(text, space)
        # With `from __future__ import annotations` a quoted annotation is a string in a string.
        return eval(found, space) if isinstance(found, str) else found
    except KernelTypeError:
        raise
    except Exception as e:  # The annotation uses names of the user that do not evaluate here; it is ignored.
        if any(word in text for word in ("Tensor[", "Pointer[", "Constexpr")):
            raise KernelTypeError("F124", f"the annotation {text} of '{name}' cannot be evaluated: {e}") from None
        return None


def without_none(annotation: object) -> tuple[object, bool]:
    """Return an annotation without ``| None``, and True if it had that."""
    if isinstance(annotation, types.UnionType) or typing.get_origin(annotation) is typing.Union:
        args = typing.get_args(annotation)
        rest = [a for a in args if a is not type(None)]
        if len(rest) < len(args) and len(rest) == 1:
            return rest[0], True
        return None, type(None) in args
    return annotation, False


def is_constexpr(annotation: object) -> bool:
    """Return True for ``Constexpr`` and ``Constexpr[…]``."""
    return annotation is _CONSTEXPR or (isinstance(annotation, _Subscripted) and annotation.origin is _CONSTEXPR)


def is_int_tuple(annotation: object) -> bool:
    """Return True for the annotation of a tree of integers."""
    origin = annotation.origin if isinstance(annotation, _Subscripted) else annotation
    return isinstance(origin, type) and issubclass(origin, IntTuple)


def constexpr_name(annotation: object) -> str | None:
    """Return the generic parameter that ``Constexpr[N]`` deduces, or None."""
    if isinstance(annotation, _Subscripted) and annotation.origin is _CONSTEXPR and len(annotation.args) == 1:
        return generic_name(annotation.args[0])
    return None


def is_number_type(annotation: object) -> bool:
    """Return True for a concrete number type, such as ``Float32``."""
    return isinstance(annotation, NumericType) and annotation.mlir_type != ""


def pointer_element(annotation: object) -> str | None:
    """Return the generic parameter that ``Pointer[T]`` deduces, or None."""
    if isinstance(annotation, _Subscripted) and annotation.origin.__name__ == "Pointer" and len(annotation.args) == 1:
        return generic_name(annotation.args[0])
    return None
