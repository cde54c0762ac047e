"""Purity of ops: ops that may be erased when unused, or hoisted."""

from __future__ import annotations

from xdsl.ir import Operation
from xdsl.traits import IsTerminator, is_side_effect_free, is_speculatable


def is_pure(op: Operation) -> bool:
    """Return True if an op has no side effects and no undefined behaviour, and is not a terminator.

    The traits of the op decide: no memory effect, including in its regions, and speculatable. Ops without these traits
    are not pure. ``cute.shape_div`` and ``cute.ceil_div`` are pure if their divisor is a static tree without a zero.
    """
    if op.has_trait(IsTerminator, value_if_unregistered=True):
        return False
    return is_speculatable(op) and is_side_effect_free(op)
