"""Linear combinations as epilogues: ``activation(alpha * accum + beta * C + bias)``, each operand in its own type.

>>> traced = combination((("C", FakeTensor("f32", (8, 16))), ("beta", 0.5)), (8, 16), "relu")
>>> [x.name for x in traced.arguments], traced.graph.inputs[1].element
(['beta', 'C'], 'f32')
"""

# Traced values take operands of any type.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from inspect import Parameter, Signature
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from cute_dialect.op.epilogue.functions import activated
from cute_dialect.op.epilogue.tracing import FakeTensor, Traced, trace

if TYPE_CHECKING:  # pragma: no cover
    import torch

__all__ = ["LinearCombination", "combination", "combined", "is_per_matrix", "is_rounded"]


class LinearCombination(NamedTuple):
    """Epilogue arguments and arithmetic of a call."""

    alpha: Any = 1.0  # a number; grouped GEMMs also take factors per group
    beta: float = 1.0
    c: Any = None  # an array; GEMMs of lists also take lists
    bias: Any = None
    activation: str = ""
    hook: Callable[..., object] | None = None
    math: str = "default"
    accumulator: object = None

    @property
    def usual(self) -> bool:
        """True if all arguments have their defaults."""
        return self.plain and self.math == "default" and self.accumulator is None

    def of_sums(self) -> LinearCombination:
        """Return the arithmetic without the epilogue."""
        return LinearCombination(math=self.math, accumulator=self.accumulator)

    @property
    def plain(self) -> bool:
        """True if there is no epilogue."""
        return self.alpha == 1.0 and self.c is None and self.bias is None and not self.activation and self.hook is None

    @property
    def key(self) -> tuple[object, ...]:
        """Cache key of the arguments, without the tensors themselves."""
        alpha, beta, c, bias, activation, hook, math, accumulator = self
        return (
            type(alpha), alpha or repr(alpha), type(beta), beta or repr(beta), c is None, bias is None, activation,
            hook, math, accumulator,
        )  # fmt: skip

    @property
    def tensors(self) -> tuple[torch.Tensor, ...]:
        """The given tensors among ``c`` and ``bias``."""
        return tuple([t for t in (self.c, self.bias) if t is not None])


@lru_cache(maxsize=256)
def combination(kinds: tuple[tuple[str, Any], ...], sums: tuple[int, ...], activation: str) -> Traced:
    """Return the epilogue that combines some operands.

    Args:
        kinds: pairs of a name (``scale_a``, ``scale_b``, ``alpha``, ``C``, ``beta``, ``bias``) and a FakeTensor or a
            number; numbers of ``alpha`` and ``beta`` become arguments of the launch.
        sums: shape of the accumulator.
        activation: activation as text, such as ``"relu"``, or "".
    """
    function = combined(activation, *[name for name, _ in kinds])
    return trace(function, {"accum": FakeTensor("f32", sums), **dict(kinds)}, runtime=["alpha", "beta"])


def combined(activation: str, *names: str) -> Callable[..., Any]:
    """Return the function of ``accum`` and the named operands (see :func:`combination`) that combines them."""
    function: Any = activated(activation) if activation else None

    def combine(**x: Any) -> Any:
        value = x["accum"]
        for name in ("scale_a", "scale_b"):
            value = value * x[name] if name in x else value
        if "alpha" in x:
            value = x["alpha"] * value
        if "C" in x:
            value = value + (x["beta"] * x["C"] if "beta" in x else x["C"])
        if "bias" in x:
            value = value + x["bias"]
        return value if function is None else function(value)

    parameters = [Parameter(n, Parameter.KEYWORD_ONLY) for n in ("accum", *names)]
    combine.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return combine


def is_per_matrix(factor: Any) -> bool:
    """Return True for an array with one factor per matrix of a batch: (L,) or (L, 1, 1)."""
    if isinstance(factor, int | float):
        return False
    shape: Any = getattr(factor, "shape", ())
    return len(shape) in (1, 3) and shape[0] > 1 and prod(shape[1:]) == 1


def is_rounded(source: str, result: str) -> bool:
    """Return True if values of one floating type would be rounded, or widened, to become those of another.

    >>> is_rounded("f32", "bf16"), is_rounded("bf16", "bf16"), is_rounded("i32", "i8")
    (True, False, False)
    """
    return source != result and source[0] in "fb" and result[0] in "fb" and "f64" not in (source, result)
