"""What CuTe DSL has beside its language (``cutlass.cutlass_dsl``, ``cutlass.base_dsl``): the chip by name, conditions
as functions, and names for annotations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from types import SimpleNamespace
from typing import Any, NamedTuple, TypeAlias

import cute_dialect.lang as cute
from cute_dialect.front.dtypes import NumericType as NumericMeta
from cute_dialect.front.errors import KernelTypeError
from cute_dialect.front.values import form_of
from cute_dialect.runtime.driver import CudaError as DSLCudaRuntimeError

__all__ = [
    "CUDA_VERSION",
    "Arch",
    "BaseDSL",
    "CuTeDSL",
    "DSLCudaRuntimeError",
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
    "runtime",
    "select_",
]

Int: TypeAlias = int | cute.Integer
XTuple: TypeAlias = Any
Tiler: TypeAlias = Any


class Version(NamedTuple):
    """A version of CUDA."""

    major: int
    minor: int


CUDA_VERSION = Version(12, 9)
"""The version of CUDA whose PTX is written."""


class Arch(IntEnum):
    """Chips, by number."""

    sm_80, sm_86, sm_87, sm_89, sm_90, sm_90a = 800, 860, 870, 890, 900, 901
    sm_100, sm_100a, sm_100f, sm_103, sm_103a, sm_120, sm_120a = 1000, 1001, 1002, 1030, 1031, 1200, 1201

    @property
    def major(self) -> int:
        """The first part of its number: 9 for sm_90a."""
        return self.value // 100


class BaseDSL:
    """The compiler, as programs ask it for the chip."""

    @classmethod
    def _get_dsl(cls) -> BaseDSL:
        return cls()

    def get_arch_enum(self) -> Arch:
        """Return the chip that is compiled for.

        >>> with cute.target("sm_90a"):
        ...     BaseDSL().get_arch_enum() >= Arch.sm_90
        True
        """
        return Arch[cute.current_target()]


CuTeDSL = BaseDSL


class JitArgument:
    """A base for classes whose objects are arguments: they are taken apart by what they hold, of any base."""


def _load_cubin_module_data(*_: Any) -> Any:
    raise NotImplementedError("this compiler loads its modules itself: cute.compile(…).module() gives one")


runtime = SimpleNamespace(cuda=SimpleNamespace(load_cubin_module_data=_load_cubin_module_data))
"""What programs replace that change how the vendor's compiler loads modules; it is not called here."""


def extract_mlir_values(x: Any) -> list[Any]:
    """Return the values that an object holds which are known when the kernel runs."""
    return list(form_of(x).take(x))


def new_from_mlir_values(x: Any, values: Sequence[Any]) -> Any:
    """Return an object like ``x`` of other values, as many as :func:`extract_mlir_values` gives."""
    return form_of(x).make(list(values))


def if_generate(
    cond: Any,
    then_body: Callable[..., Any],
    else_body: Callable[..., Any] | None = None,
    input_args: Sequence[Any] = (),
    return_types: Sequence[Any] = (),
    **_: Any,
) -> Any:
    """Call ``then_body`` where a condition holds, else ``else_body``; returns what it returns.

    A program in this language says ``if``.  Raises F251 for results without an ``else_body``.
    """
    if return_types and else_body is None:
        raise KernelTypeError("F251", "if_generate: expected an else_body, since there are results")
    if else_body is None:
        if cond:
            then_body(*input_args)
        return None
    return then_body(*input_args) if cond else else_body(*input_args)


def select_(cond: Any, if_value: Any, else_value: Any) -> Any:
    """Return one of two numbers; both are computed."""
    return cute.where(cond, if_value, else_value)


def and_(lhs: Any, rhs: Any, **_: Any) -> Any:
    """Return whether both conditions hold; both are computed."""
    return cute.Boolean(lhs) & cute.Boolean(rhs)


def or_(lhs: Any, rhs: Any, **_: Any) -> Any:
    """Return whether one of two conditions holds; both are computed."""
    return cute.Boolean(lhs) | cute.Boolean(rhs)


def not_(lhs: Any, **_: Any) -> Any:
    """Return whether a condition does not hold."""
    return cute.Boolean(lhs) ^ cute.Boolean(True)
