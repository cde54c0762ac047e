"""Which ops may be erased when unused, or computed earlier than they stand."""

from __future__ import annotations

from xdsl.ir import Operation
from xdsl.traits import IsTerminator, is_side_effect_free, is_speculatable


def is_pure(op: Operation) -> bool:
    """Tell whether an op has neither side effects nor undefined behaviour, and is no terminator.

    Holds for ops of all dialects, by their traits: no memory effect (looking into regions) and speculatable.  Ops of
    which nothing is known are not pure.  ``cute.shape_div`` and ``cute.ceil_div`` are pure if their divisor is a static
    tree without a zero.
    """
    if op.has_trait(IsTerminator, value_if_unregistered=True):
        return False
    return is_speculatable(op) and is_side_effect_free(op)
