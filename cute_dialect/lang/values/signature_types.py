"""Types of operands in the signatures of the kernel language, such as ``Int`` and ``Shape``.

They document a parameter for readers.  To a type checker each of them is ``Any``, because the operands are checked when
a kernel is traced.  Modules import them for annotations only::

    if TYPE_CHECKING:
        from cute_dialect.lang.values.signature_types import Shape

    def make_identity_tensor(shape: Shape) -> Tensor: ...
"""

from __future__ import annotations

from typing import Any, TypeAlias

Array: TypeAlias = Any
"""An array of torch, numpy, cupy, or a library with DLPack or the CUDA array interface."""
Int: TypeAlias = Any
"""A Python integer or an integer of the language, such as an ``Int32``."""
Number: TypeAlias = Any
"""A Python number or a number of the language."""
Condition: TypeAlias = Any
"""A Python bool or a ``Boolean``."""
Value: TypeAlias = Any
"""A number or a vector (``TensorSSA``)."""
IntTuple: TypeAlias = Any
"""An integer or a nested tuple of integers."""
Shape: TypeAlias = Any
"""The extents of a layout or tensor, an integer tuple."""
Stride: TypeAlias = Any
"""The strides of a layout or tensor, an integer tuple."""
Coord: TypeAlias = Any
"""A coordinate: an integer tuple whose leaves may be None, which selects the whole mode."""
Tiler: TypeAlias = Any
"""A shape, a layout, or a tuple of shapes, layouts and None."""
LayoutLike: TypeAlias = Any
"""A layout, a composed layout, a tensor or a shape.  Functions return the kind of their operand."""
