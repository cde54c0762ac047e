"""``cute-fold-static``: replace values with static types by ``cute.static``, and erase dead pure ops.

The pass walks once in reverse order (users before producers, nested regions before their op), so a whole chain of ops
disappears at once.

Before::

    func.func @f(%n: i32) -> (!cute.layout<"(6,5):(5,1)">, !cute.int_tuple<"?">) {
      %s = cute.make_shape() : () -> !cute.shape<"(6,5)">
      %d = cute.make_stride() : () -> !cute.stride<"(5,1)">
      %l = cute.make_layout(%s, %d) : (!cute.shape<"(6,5)">, !cute.stride<"(5,1)">) -> !cute.layout<"(6,5):(5,1)">
      %c = cute.make_coord(%n) : (i32) -> !cute.coord<"(?,2)">
      %i = cute.layout_eval(%c, %l) : (!cute.coord<"(?,2)">, !cute.layout<"(6,5):(5,1)">) -> !cute.int_tuple<"?">
      return %l, %i : !cute.layout<"(6,5):(5,1)">, !cute.int_tuple<"?">
    }

After::

    func.func @f(%n: i32) -> (!cute.layout<"(6,5):(5,1)">, !cute.int_tuple<"?">) {
      %l = cute.static : !cute.layout<"(6,5):(5,1)">
      %c = cute.make_coord(%n) : (i32) -> !cute.coord<"(?,2)">
      %i = cute.layout_eval(%c, %l) : (!cute.coord<"(?,2)">, !cute.layout<"(6,5):(5,1)">) -> !cute.int_tuple<"?">
      return %l, %i : !cute.layout<"(6,5):(5,1)">, !cute.int_tuple<"?">
    }

Arguments of blocks and functions stay, whatever their type.  So does an existing ``cute.static``, even if unused.
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects.builtin import UnrealizedConversionCastOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import IsTerminator, MemoryEffect, Pure, is_side_effect_free, is_speculatable

from cute_dialect.dialect.arith import ElemLessOp, EqualOp
from cute_dialect.dialect.make import StaticOp
from cute_dialect.dialect.typed_values import typed
from cute_dialect.dialect.types import is_static_type
from cute_dialect.ir.editing import make_op
from cute_dialect.passes.base import Pass, PassContext
from cute_dialect.passes.emitter import constant

_HELP = __doc__ or ""
"""Text of ``--help``: inside the class, ``__doc__`` would be the docstring of the class."""


class FoldStaticPass(Pass):
    """Replace values with static types by ``cute.static``, and remove dead pure ops."""

    name = "cute-fold-static"
    summary = "make static layout values constants"
    scope = "cute"
    description = _HELP
    counts_changes = True

    def run(self, op: Operation, ctx: PassContext) -> None:
        purity = Purity()
        folded = removed = 0
        for block in blocks_of(op):
            removed_here, folded_here = _fold_block(block, purity)
            removed += removed_here
            folded += folded_here
        if folded:
            ctx.count("values made static", folded)
        if removed:
            ctx.count("ops removed", removed)

    def legal_after(self, op: Operation) -> Iterable[Operation]:
        """Yield pure ops that are dead or produce a used static value."""
        purity = Purity()
        for o in op.walk():
            if o is op or o.name == StaticOp.name or not purity(o):
                continue
            used = [r for r in o.results if r.first_use is not None]
            if not used or comparison(o) is not None or any(is_static_type(r.type) for r in used):
                yield o


def blocks_of(op: Operation) -> list[Block]:
    """Return the blocks directly in an op, last first."""
    return [block for region in reversed(op.regions) for block in reversed(region.blocks)]


class Purity:
    """Cache of :func:`is_pure` for op classes whose traits alone decide it."""

    def __init__(self) -> None:
        # Upstream's cast is pure; xDSL's lacks the trait for speculation.
        self._known: dict[type[Operation], bool] = {UnrealizedConversionCastOp: True}

    def __call__(self, op: Operation) -> bool:
        kind = type(op)
        known = self._known.get(kind)
        if known is not None:
            return known
        if op.has_trait(IsTerminator, value_if_unregistered=True) or not op.get_traits_of_type(MemoryEffect):
            self._known[kind] = False
            return False
        if op.has_trait(Pure):
            self._known[kind] = True
            return True
        return is_pure(op)  # depends on operands and regions of the op


def comparison(op: Operation) -> bool | None:
    """Evaluate a comparison of two static values; None for any other op.

    ``equal`` compares types (structure and values), ``elem_less`` all leaves.
    """
    if op.name == EqualOp.name:
        lhs, rhs = op.operand_types
        return lhs == rhs if is_static_type(lhs) and is_static_type(rhs) else None
    if op.name == ElemLessOp.name:
        lhs, rhs = op.operand_types
        if is_static_type(lhs) and is_static_type(rhs):
            answer = ElemLessOp.infer_condition([typed(lhs), typed(rhs)])
            assert isinstance(answer, bool)
            return answer
    return None


def _fold_block(block: Block, purity: Purity) -> tuple[int, int]:
    """Fold a block from its end; return the numbers of removed ops and folded values."""
    removed = folded = 0
    op = block.last_op
    while op is not None:
        previous = op.prev_op
        for inner in blocks_of(op):
            removed_there, folded_there = _fold_block(inner, purity)
            removed += removed_there
            folded += folded_there
        if op.name != StaticOp.name and purity(op):
            folded += _fold(op, block)
            if all(r.first_use is None for r in op.results):
                block.erase_op(op)
                removed += 1
        op = previous
    return removed, folded


def _fold(op: Operation, block: Block) -> int:
    """Replace the static results of an op; return the number of replaced results."""
    answer = comparison(op)
    if answer is not None:
        if op.results[0].first_use is None:
            return 0
        return _replace(op.results[0], constant(int(answer), 1), op, block)
    folded = 0
    for result in op.results:
        if result.first_use is not None and is_static_type(result.type):
            folded += _replace(result, make_op(StaticOp, (), [result.type]), op, block)
    return folded


def _replace(old: SSAValue, new: Operation, op: Operation, block: Block) -> int:
    new.location = op.location
    new.results[0].name_hint = old.name_hint
    block.insert_op_before(new, op)
    old.replace_all_uses_with(new.results[0])
    return 1


def is_pure(op: Operation) -> bool:
    """Return True if an op has no side effects and no undefined behaviour, and is not a terminator.

    The traits of the op decide: no memory effect, including in its regions, and speculatable. Ops without these traits
    are not pure. ``cute.shape_div`` and ``cute.ceil_div`` are pure if their divisor is a static tree without a zero.
    """
    if op.has_trait(IsTerminator, value_if_unregistered=True):
        return False
    return is_speculatable(op) and is_side_effect_free(op)
