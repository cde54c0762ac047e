"""Example arguments of functions, with which ``cute-check`` and editors can trace them.

::

    @cute.example(lambda: (cute.runtime.make_fake_compact_tensor(cute.Float32, (cute.sym_int(),)), 2.0))
    @cute.jit
    def scale(x, by): ...
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from cute_dialect.lang.calls.decorators import KernelFunction
from cute_dialect.lang.calls.generics import generic_names
from cute_dialect.lang.calls.runtime_tensor import make_fake_compact_tensor, sym_int
from cute_dialect.lang.calls.traced import Traced
from cute_dialect.lang.tracing.errors import CompileError, KernelTypeError
from cute_dialect.lang.values.annotations import TensorAnnotation, annotations_of, is_number_type
from cute_dialect.lang.values.dtypes import NumericType

__all__ = ["Example", "example", "examples_of"]

T = TypeVar("T")
ALIGNED = 16
"""Alignment of tensors created from annotations, in bytes. NumPy and torch arrays have the same."""


class Example(NamedTuple):
    """An example call: a function that returns the argument tuple (receiver first), and a kernel's grid and block."""

    arguments: Callable[[], Any]
    launch: dict[str, Any]


def example(arguments: Callable[[], Any], **launch: Any) -> Callable[[T], T]:
    """Add example arguments to a function. Place it above ``@cute.jit`` or ``@cute.kernel``, once per specialization.

    Args:
        arguments: a function that returns the tuple of arguments, called when the example is traced.
        launch: grid and block of a kernel.

    Example:
        >>> from cute_dialect.lang.calls.decorators import jit
        >>> @example(lambda: (1,))
        ... @jit
        ... def twice(n): return 2 * n
    """
    if not callable(arguments):
        raise KernelTypeError(
            "F112", f"cute.example needs a function that returns the arguments, got {arguments!r}",
            hint="cute.example(lambda: (x, y))",
        )  # fmt: skip

    def add(function: T) -> T:
        if not isinstance(function, Traced):
            raise CompileError(
                "F102", f"cute.example must decorate a function under @cute.jit or @cute.kernel, got {function!r}",
                hint="place it above the other decorator",
            )  # fmt: skip
        function.__dict__.setdefault("_examples", []).insert(0, Example(arguments, launch))
        return function

    return add


def examples_of(function: Traced) -> list[Example]:
    """Return the examples of a function: those given, or one derived from its annotations, or none.

    Annotations suffice if each parameter without a default is a tensor with an element type and extents, or a number
    type. Named extents become symbols, and tensors are compact with the last mode contiguous.  A kernel gets one block
    of 128 threads.
    """
    given: list[Example] = function.__dict__.get("_examples", [])
    if given:
        return given
    made = _of_annotations(function)
    launch = {"grid": 1, "block": 128} if isinstance(function, KernelFunction) else {}
    return [Example(lambda: made, launch)] if made is not None else []


def _of_annotations(function: Traced) -> tuple[Any, ...] | None:
    if isinstance(function.function, staticmethod | classmethod) or generic_names(function):
        return None
    found = annotations_of(function.function, {})
    symbols: dict[str, Any] = {}
    out: list[Any] = []
    for p in inspect.signature(function.function).parameters.values():
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) or p.default is not p.empty:
            break
        made = _argument(found.get(p.name), symbols) if p.kind is not p.KEYWORD_ONLY else None
        if made is None:
            return None
        out.append(made)
    return tuple(out)


def _argument(annotation: object, symbols: dict[str, Any]) -> Any:
    """Return an example argument for an annotation, or None if the annotation is not specific enough."""
    if isinstance(annotation, NumericType) and is_number_type(annotation):
        return annotation(1)  # Numbers are run-time arguments, so any value will do.
    if not isinstance(annotation, TensorAnnotation) or annotation.dims is None:
        return None
    if not isinstance(annotation.dtype, NumericType):
        return None
    shape = [_extent(d, symbols) for d in annotation.dims]
    order = tuple(range(len(shape) - 1, -1, -1))
    return make_fake_compact_tensor(annotation.dtype, shape, stride_order=order, assumed_align=ALIGNED)


def _extent(dim: object, symbols: dict[str, Any]) -> Any:
    name, divisor = dim if isinstance(dim, tuple) else (dim, 1)
    if isinstance(name, int):
        return name
    if name is None:
        return sym_int(divisor)
    return symbols.setdefault(str(name), sym_int(divisor))
