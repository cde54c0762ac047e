"""Problems of gated activations: the checked plan of a call.

>>> checked_plan("silu", "bf16", 16384, 3584).vector
8
"""

from __future__ import annotations

from cute_dialect.kernels.elementwise.graph import ACTIVATIONS, Plan, gated_plan
from cute_dialect.op.errors import UnsupportedError

_MOST = 2**30
"""Limit of vectors per call."""


def check_activation(activation: object) -> None:
    """Raise UnsupportedError for an unknown activation."""
    if activation not in ACTIVATIONS:
        raise UnsupportedError(
            f"gated: activation={activation!r} is not supported; use one of {', '.join(ACTIVATIONS)}"
        )


def checked_plan(activation: str, element: str, rows: int, n: int, *, is_gradient: bool = False) -> Plan:
    """Return the plan for results of ``rows`` rows of ``n`` elements.  Raises UnsupportedError."""
    plan = gated_plan(activation, element, is_gradient=is_gradient)
    if rows * -(-n // plan.vector) >= _MOST:
        raise UnsupportedError(f"gated: {rows} rows of {n} elements exceed the limit of {_MOST} vectors of 16 bytes")
    return plan
