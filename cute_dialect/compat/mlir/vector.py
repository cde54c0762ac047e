"""The builders of the ``vector`` dialect that programs for CuTe DSL call. Vectors are
:class:`~cute_dialect.compat.mlir.packs.Pack`.
"""

from __future__ import annotations

from typing import Any

from cute_dialect.compat.mlir.packs import Pack, bits_as, element, with_element
from cute_dialect.lang.tracing.errors import KernelTypeError

__all__ = ["bitcast", "extract", "extractelement", "from_elements", "insertelement"]


def from_elements(result: Any, elements: Any, **_: Any) -> Pack:
    """Return a vector of the given numbers. Raises F251 if their count does not match the type."""
    if len(result) != len(elements):
        raise KernelTypeError(
            "F251", f"vector.from_elements: the type needs {len(result)} numbers, got {len(elements)}"
        )
    return Pack(kind(x) for kind, x in zip(result, elements))


def bitcast(result: Any, source: Any, **_: Any) -> Any:
    """Reinterpret the bits of a vector as another type."""
    return bits_as(result, source)


def extract(source: Any, dynamic_position: Any = (), static_position: Any = (), **_: Any) -> Any:
    """Return the element of a vector at a static index."""
    if len(dynamic_position):
        raise KernelTypeError(
            "F251",
            "vector.extract: the position must be known at compile time",
            hint="vectors are in registers, which cannot be indexed at run time",
        )
    return element(source, list(static_position))


def extractelement(source: Any, *, position: Any, **_: Any) -> Any:
    """Return the element of a vector at a static index."""
    return element(source, position)


def insertelement(source: Any, dest: Any, *, position: Any, **_: Any) -> Pack:
    """Return a copy of a vector with the element at a static index replaced."""
    return with_element(dest, position, source)
