"""Examples of calls: what a function can be traced with where nobody calls it, as ``cute-check`` and editors do.

@cute.example(lambda: (cute.runtime.make_fake_compact_tensor(cute.Float32, (cute.sym_int(),)), 2.0))
@cute.jit
def scale(x, by): ...
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from cute_dialect.front.errors import CompileError, KernelTypeError
from cute_dialect.front.jit import KernelFunction, Traced

__all__ = ["Example", "example", "examples_of"]

T = TypeVar("T")
ALIGNED = 16
"""Bytes that tensors made of annotations are aligned to, as arrays of numpy and torch are."""


class Example(NamedTuple):
    """A call: what gives its arguments (a tuple; of a method the receiver comes first), and grid, block of a kernel."""

    arguments: Callable[[], Any]
    launch: dict[str, Any]


def example(arguments: Callable[[], Any], **launch: Any) -> Callable[[T], T]:
    """Give a function an example of its arguments; above ``@cute.jit`` or ``@cute.kernel``, once for each kind.

    ``arguments``: a function that returns a tuple of them, called when the example is traced.  ``launch``: grid and
    block of a kernel.

    >>> from cute_dialect.front.jit import jit
    >>> @example(lambda: (1,))
    ... @jit
    ... def twice(n): return 2 * n
    >>> [e.arguments() for e in examples_of(twice)]
    [(1,)]
    """
    if not callable(arguments):
        raise KernelTypeError(
            "F112", f"cute.example takes a function that returns the arguments, got {arguments!r}",
            hint="cute.example(lambda: (x, y))",
        )  # fmt: skip

    def add(function: T) -> T:
        if not isinstance(function, Traced):
            raise CompileError(
                "F102", f"cute.example goes above @cute.jit or @cute.kernel, not on {function!r}",
                hint="put it first",
            )  # fmt: skip
        function.__dict__.setdefault("_examples", []).insert(0, Example(arguments, launch))
        return function

    return add


def examples_of(function: Traced) -> list[Example]:
    """Return the examples of a function: those it was given, or one that its annotations make, or none.

    Annotations are enough where each parameter without a default is a tensor whose element type and extents are said,
    or a number of one type.  Extents that are names are symbols; tensors are compact, the last mode first in memory.  A
    kernel then has one block of 128 threads.
    """
    given: list[Example] = function.__dict__.get("_examples", [])
    if given:
        return given
    made = _of_annotations(function)
    launch = {"grid": 1, "block": 128} if isinstance(function, KernelFunction) else {}
    return [Example(lambda: made, launch)] if made is not None else []


def _of_annotations(function: Traced) -> tuple[Any, ...] | None:
    from cute_dialect.front.annotations import annotations_of

    if isinstance(function.function, staticmethod | classmethod):
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
    """Return what stands for an argument of an annotation; None where that does not say enough."""
    from cute_dialect.front.annotations import TensorAnnotation, is_number_type
    from cute_dialect.front.dtypes import NumericType
    from cute_dialect.front.runtime_tensor import make_fake_compact_tensor

    if isinstance(annotation, NumericType) and is_number_type(annotation):
        return annotation(1)  # numbers are passed: what it is does not matter
    if not isinstance(annotation, TensorAnnotation) or annotation.dims is None:
        return None
    if not isinstance(annotation.dtype, NumericType):
        return None
    shape = [_extent(d, symbols) for d in annotation.dims]
    order = tuple(range(len(shape) - 1, -1, -1))
    return make_fake_compact_tensor(annotation.dtype, shape, stride_order=order, assumed_align=ALIGNED)


def _extent(dim: object, symbols: dict[str, Any]) -> Any:
    from cute_dialect.front.runtime_tensor import sym_int

    name, divisor = dim if isinstance(dim, tuple) else (dim, 1)
    if isinstance(name, int):
        return name
    if name is None:
        return sym_int(divisor)
    return symbols.setdefault(str(name), sym_int(divisor))
