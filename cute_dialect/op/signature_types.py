"""Types of arguments in the signatures of operations, such as ``Array``.

They document a parameter for readers.  To a type checker each of them is ``Any``, because arrays belong to any library
and are checked at the call.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from cute_dialect.lang.values.signature_types import Array

__all__ = ["Array", "Arrays", "Epilogue", "Factor", "Operand", "Sizes"]

Arrays: TypeAlias = Any
"""An array, or a sequence of arrays, one per GEMM or group."""
Factor: TypeAlias = Any
"""A number, or where the operation allows it an array of numbers."""
Epilogue: TypeAlias = Any
"""A function of the accumulator and further arguments, plain or traced."""
Operand: TypeAlias = Any
"""An array, a number, or a traced value of an epilogue."""
Sizes: TypeAlias = Any
"""An integer, or one integer per dimension."""
