"""Linear combinations as epilogues: ``activation(alpha * accum + beta * C + bias)``, each operand in its own type.

>>> traced = combination((("C", FakeTensor("f32", (8, 16))), ("beta", 0.5)), (8, 16), "relu")
>>> [x.name for x in traced.arguments], traced.graph.inputs[1].element
(['beta', 'C'], 'f32')
"""

# Traced values take operands of any type.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from functools import lru_cache
from inspect import Parameter, Signature
from typing import Any

from cute_dialect.op.epilogue.functions import activated
from cute_dialect.op.epilogue.tracing import FakeTensor, Traced, trace

__all__ = ["combination", "is_rounded"]


@lru_cache(maxsize=256)
def combination(kinds: tuple[tuple[str, Any], ...], sums: tuple[int, ...], activation: str) -> Traced:
    """Return the epilogue that combines some operands.

    Args:
        kinds: pairs of a name (``scale_a``, ``scale_b``, ``alpha``, ``C``, ``beta``, ``bias``) and a FakeTensor or a
            number; numbers of ``alpha`` and ``beta`` become arguments of the launch.
        sums: shape of the accumulator.
        activation: activation as text, such as ``"relu"``, or "".
    """
    function: Any = activated(activation) if activation else None

    def combined(**x: Any) -> Any:
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

    names = ["accum", *(name for name, _ in kinds)]
    combined.__signature__ = Signature([Parameter(n, Parameter.KEYWORD_ONLY) for n in names])  # type: ignore[attr-defined]
    return trace(combined, {"accum": FakeTensor("f32", sums), **dict(kinds)}, runtime=["alpha", "beta"])


def is_rounded(source: str, result: str) -> bool:
    """Return True if values of one floating type would be rounded, or widened, to become those of another.

    >>> is_rounded("f32", "bf16"), is_rounded("bf16", "bf16"), is_rounded("i32", "i8")
    (True, False, False)
    """
    return source != result and source[0] in "fb" and result[0] in "fb" and "f64" not in (source, result)
