"""Gated activations ``f(a) * b`` of the halves of a row, and their gradients, as elementwise plans.

>>> gated_plan("silu", "bf16").vector, len(gated_plan("gelu", "f16", is_gradient=True).graph.outputs)
(8, 2)
"""

from __future__ import annotations

from functools import cache

from cute_dialect.kernels.elementwise.graph import Plan
from cute_dialect.kernels.epilogue.graph import Builder, Input, Output

__all__ = ["ACTIVATIONS", "gated_plan"]

ACTIVATIONS = ("silu", "gelu", "gelu_tanh", "relu", "sigmoid")
"""Supported activations ``f``."""


@cache
def gated_plan(activation: str, element: str, *, is_gradient: bool = False) -> Plan:
    """Return the plan of matrices (a, b) -> result, or (a, b, gradient of the result) -> (gradients of a and b)."""
    make = Builder()
    a, b = (make.load(Input("aux", element, order="n")) for _ in range(2))
    value = make.call(activation, a)
    if not is_gradient:
        return Plan(make.graph([Output(make.call("multiply", value, b), element)]))
    g = make.load(Input("aux", element, order="n"))
    # A graph numbers its inputs in the order of this expression: a, b, g.
    of_a = make.call("multiply", make.call("multiply", make.call(f"d_{activation}", a), b), g)
    return Plan(make.graph([Output(of_a, element), Output(make.call("multiply", g, value), element)]))
