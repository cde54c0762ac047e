"""``cutlass._mlir.ir``: the types that programs for CuTe DSL make by themselves."""

from __future__ import annotations

from typing import Any

from cute_dialect.lang.mlir.packs import Pack, pack_type

__all__ = ["Value", "VectorType"]

Value = Pack


class VectorType(tuple[Any, ...]):
    """The type of a vector: a tuple of its numbers' types."""

    __slots__ = ()

    def __new__(cls, of: Any) -> VectorType:
        return super().__new__(cls, of)

    @classmethod
    def get(cls, shape: Any, element: Any, **_: Any) -> VectorType:
        """Return the type of a vector of one mode.

        >>> import cute_dialect.lang as cute
        >>> VectorType.get([2], cute.Float32).shape
        [2]
        """
        (count,) = shape
        return cls(pack_type(int(count), element))

    @property
    def shape(self) -> list[int]:
        """Its extents."""
        return [len(self)]

    @property
    def element_type(self) -> Any:
        """The type of its numbers."""
        return self[0]
