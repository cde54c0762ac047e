"""``vector`` as kernels for CuTe DSL call it, on :class:`cute_dialect.lang.mlir.packs.Pack`."""

from __future__ import annotations

from typing import Any

from cute_dialect.front.errors import KernelTypeError
from cute_dialect.lang.mlir.packs import Pack, bits_as, element, with_element

__all__ = ["bitcast", "extract", "extractelement", "from_elements", "insertelement"]


def from_elements(result: Any, elements: Any, **_: Any) -> Pack:
    """Return numbers as a vector of a type.  Raises F251 for another number of them."""
    if len(result) != len(elements):
        raise KernelTypeError("F251", f"vector.from_elements: expected {len(result)} numbers, got {len(elements)}")
    return Pack(kind(x) for kind, x in zip(result, elements))


def bitcast(result: Any, source: Any, **_: Any) -> Any:
    """Return the bits of a vector as another type."""
    return bits_as(result, source)


def extract(source: Any, dynamic_position: Any = (), static_position: Any = (), **_: Any) -> Any:
    """Return an element of a vector, at a static place."""
    if len(dynamic_position):
        raise KernelTypeError(
            "F251", "vector.extract: expected a static position", hint="numbers of a vector lie in registers"
        )
    return element(source, list(static_position))


def extractelement(source: Any, *, position: Any, **_: Any) -> Any:
    """Return an element of a vector, at a static place."""
    return element(source, position)


def insertelement(source: Any, dest: Any, *, position: Any, **_: Any) -> Pack:
    """Return a vector with another element at a static place."""
    return with_element(dest, position, source)
