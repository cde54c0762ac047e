"""Names for programs written for CuTe DSL: ``import cute_dialect.lang.compat as cutlass``.

::

    python -m cute_dialect.lang.compat FILE [ARGS…]                 runs an unmodified program on the GPU
    python -m cute_dialect.lang.compat --device=cpu FILE [ARGS…]    on the interpreter

The program is not modified: its imports of ``cutlass`` resolve to this module, in this process only
(:mod:`cute_dialect.compat.run_program`).  ``docs/porting.md`` lists the differences between the two languages.

The module defines the names of ``cutlass.cutlass_dsl`` and ``cutlass.base_dsl``, which are outside of the language.
They query the target architecture, express conditions as functions, and serve as annotations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from importlib import import_module
from types import SimpleNamespace
from typing import Any, NamedTuple, TypeAlias

import cute_dialect.lang as cute
from cute_dialect.errors import CompileError as DSLRuntimeError
from cute_dialect.errors import CuteError as DSLBaseError
from cute_dialect.lang.control.loops import LoopRange, UnrolledRange
from cute_dialect.lang.control.loops import loop_range as cute_range
from cute_dialect.lang.tracing.errors import KernelTypeError
from cute_dialect.lang.values.dtypes import NumericType as NumericMeta
from cute_dialect.lang.values.forms import form_of
from cute_dialect.runtime.driver import CudaError as DSLCudaRuntimeError

__all__ = [
    "CUDA_VERSION",
    "Arch",
    "BaseDSL",
    "CuTeDSL",
    "DSLBaseError",
    "DSLCudaRuntimeError",
    "DSLRuntimeError",
    "Int",
    "JitArgument",
    "NumericMeta",
    "Tiler",
    "XTuple",
    "and_",
    "extract_mlir_values",
    "if_generate",
    "new_from_mlir_values",
    "not_",
    "or_",
    "range",
    "range_dynamic",
    "runtime",
    "select_",
]

Int: TypeAlias = int | cute.Integer
XTuple: TypeAlias = Any
Tiler: TypeAlias = Any


class Version(NamedTuple):
    """A CUDA version."""

    major: int
    minor: int


CUDA_VERSION = Version(12, 9)
"""The CUDA version whose PTX is generated."""


class Arch(IntEnum):
    """Architectures, by number."""

    sm_80, sm_86, sm_87, sm_89, sm_90, sm_90a = 800, 860, 870, 890, 900, 901
    sm_100, sm_100a, sm_100f, sm_103, sm_103a, sm_120, sm_120a = 1000, 1001, 1002, 1030, 1031, 1200, 1201

    @property
    def major(self) -> int:
        """The major version: 9 for sm_90a."""
        return self.value // 100


class BaseDSL:
    """The compiler, from which programs query the target architecture."""

    @classmethod
    def _get_dsl(cls) -> BaseDSL:
        return cls()

    def get_arch_enum(self) -> Arch:
        """Return the target architecture.

        >>> with cute.target("sm_90a"):
        ...     BaseDSL().get_arch_enum() >= Arch.sm_90
        True
        """
        return Arch[cute.current_target()]


CuTeDSL = BaseDSL


class JitArgument:
    """Base of argument classes, for compatibility. Objects of any class are passed by their contents."""


def _load_cubin_module_data(*_: Any) -> Any:
    raise NotImplementedError("load_cubin_module_data is not supported; use cute.compile(…).module()")


runtime = SimpleNamespace(cuda=SimpleNamespace(load_cubin_module_data=_load_cubin_module_data))
"""Accepted for compatibility: programs replace this function to change module loading. It is never called."""


def extract_mlir_values(x: Any) -> list[Any]:
    """Return the run-time values that an object holds."""
    return list(form_of(x).take(x))


def new_from_mlir_values(x: Any, values: Sequence[Any]) -> Any:
    """Return an object like ``x`` with other values, as many as :func:`extract_mlir_values` returns."""
    return form_of(x).make(list(values))


def if_generate(
    cond: Any,
    then_body: Callable[..., Any],
    else_body: Callable[..., Any] | None = None,
    input_args: Sequence[Any] = (),
    return_types: Sequence[Any] = (),
    **_: Any,
) -> Any:
    """Call ``then_body`` if a condition is true, else ``else_body``, and return the result.

    Programs in this language can use ``if``.  Raises F251 if there are results but no ``else_body``.
    """
    if return_types and else_body is None:
        raise KernelTypeError("F251", "if_generate: return_types needs an else_body")
    if else_body is None:
        if cond:
            then_body(*input_args)
        return None
    return then_body(*input_args) if cond else else_body(*input_args)


def select_(cond: Any, if_value: Any, else_value: Any) -> Any:
    """Return one of two numbers. Both are evaluated."""
    return cute.where(cond, if_value, else_value)


def loop_range(
    *args: object,
    unroll: int = 0,
    unroll_full: bool = False,
    prefetch_stages: int | None = None,
    vectorize: object = None,
) -> LoopRange | UnrolledRange:
    """Return a range for a run-time loop. ``prefetch_stages`` is a hint that has no effect on results, and is ignored.

    The other arguments are those of ``cute.range``.
    """
    del prefetch_stages
    return cute_range(*args, unroll=unroll, unroll_full=unroll_full, vectorize=vectorize)


range = range_dynamic = loop_range
"""``cutlass.range`` and its earlier name."""


def and_(lhs: Any, rhs: Any, **_: Any) -> Any:
    """Return the conjunction of two conditions. Both are evaluated."""
    return cute.Boolean(lhs) & cute.Boolean(rhs)


def or_(lhs: Any, rhs: Any, **_: Any) -> Any:
    """Return the disjunction of two conditions. Both are evaluated."""
    return cute.Boolean(lhs) | cute.Boolean(rhs)


def not_(lhs: Any, **_: Any) -> Any:
    """Return the negation of a condition."""
    return cute.Boolean(lhs) ^ cute.Boolean(True)


# ----------------------------------------------------------------------------------------------- names of other modules


_MODULES = {
    "cute": "cute_dialect.lang",
    "base_dsl": "cute_dialect.compat.cutlass",
    "cutlass_dsl": "cute_dialect.compat.cutlass",
    **{name: f"cute_dialect.lang.{name}" for name in ("cuda", "pipeline", "testing", "torch", "utils")},
}
_NAMES = {
    "const_expr": ("cute_dialect.lang.control.runtime", "const_expr"),
    "dynamic_expr": ("cute_dialect.lang.control.runtime", "dynamic_expr"),
    "dsl_user_op": ("cute_dialect.lang.control.runtime", "dsl_user_op"),
    "as_numeric": ("cute_dialect.lang.values.numeric", "as_number"),
    "dtype": ("cute_dialect.lang.calls.runtime_tensor", "number_type"),
    "range_constexpr": ("cute_dialect.lang.control.loops", "range_constexpr"),
    "T": ("cute_dialect.compat.extras", "T"),
}


def __getattr__(name: str) -> object:
    if name in __all__:  # The public path of this module forwards every name.
        return globals()[name]
    if name in _MODULES:
        found: object = import_module(_MODULES[name])
    elif name in _NAMES:
        module, own = _NAMES[name]
        found = getattr(import_module(module), own)
    elif name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    else:
        found = getattr(cute, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*_MODULES, *_NAMES, *dir(cute)})
