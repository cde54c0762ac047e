"""Passes independent of cute, with upstream's names.

These are canonicalize, cse, loop-invariant-code-motion, reconcile-unrealized-casts and strip-debuginfo.  The first
three are xDSL's.  ``reconcile-unrealized-casts`` follows upstream's algorithm, because xDSL's does not handle casts of
one value to several.  Other generic passes (``inline``, ``mem2reg`` …) run in upstream MLIR, once only base ops remain;
see :mod:`cute_dialect.passes.registry`.
"""

from __future__ import annotations

from xdsl.dialects.builtin import UnknownLoc, UnrealizedConversionCastOp
from xdsl.ir import Operation, OpResult

from cute_dialect.passes.base import Pass, PassContext


class CanonicalizePass(Pass):
    """Fold constants, apply the canonicalization patterns of all ops, and remove dead code, to a fixpoint.

    %c0 = arith.constant 0 : i32
    %1 = arith.addi %0, %c0 : i32         -->   uses of %1 become uses of %0
    """

    name = "canonicalize"
    summary = "fold, simplify, remove dead ops"
    scope = "generic"
    in_upstream = True

    def run(self, op: Operation, ctx: PassContext) -> None:
        from xdsl.pattern_rewriter import GreedyRewritePatternApplier, PatternRewriteWalker
        from xdsl.transforms.canonicalize import CanonicalizationRewritePattern
        from xdsl.transforms.dead_code_elimination import region_dce

        pattern = GreedyRewritePatternApplier([CanonicalizationRewritePattern()], ctx=ctx.context, folding_enabled=True)
        for region in op.regions:
            PatternRewriteWalker(pattern, post_walk_func=region_dce).rewrite_region(region)


class CsePass(Pass):
    """Replace an op without side effects by an equal one that dominates it.

    %1 = arith.addi %a, %b : i32
    %2 = arith.addi %a, %b : i32          -->   uses of %2 become uses of %1
    """

    name = "cse"
    summary = "eliminate common subexpressions"
    scope = "generic"
    in_upstream = True

    def run(self, op: Operation, ctx: PassContext) -> None:
        from xdsl.transforms.common_subexpression_elimination import cse

        cse(op)


class LoopInvariantCodeMotionPass(Pass):
    """Hoist ops out of ``scf.for`` that are speculatable, have no side effects, and depend on nothing in the loop."""

    name = "loop-invariant-code-motion"
    summary = "hoist invariant ops out of loops"
    scope = "generic"
    in_upstream = True

    def run(self, op: Operation, ctx: PassContext) -> None:
        from xdsl.dialects.scf import ForOp
        from xdsl.transforms.loop_invariant_code_motion import move_loop_invariant_code

        for loop in [o for o in op.walk(region_first=True) if isinstance(o, ForOp)]:
            move_loop_invariant_code(loop)


class ReconcileUnrealizedCastsPass(Pass):
    """Remove chains of ``builtin.unrealized_conversion_cast`` that end with the types they started with.

        %1 = builtin.unrealized_conversion_cast %0 : i32 to !t
        %2 = builtin.unrealized_conversion_cast %1 : !t to i32     -->   uses of %2 become uses of %0

    Unused casts are removed, too.  Casts that are still needed stay without an error.
    """

    name = "reconcile-unrealized-casts"
    summary = "remove casts that cancel out"
    scope = "generic"
    in_upstream = True

    def run(self, op: Operation, ctx: PassContext) -> None:
        casts = [o for o in op.walk() if isinstance(o, UnrealizedConversionCastOp)]
        for cast in casts:
            source: UnrealizedConversionCastOp | None = cast
            while source is not None:
                if source.inputs.types == cast.result_types:
                    for result, value in zip(cast.results, tuple(source.inputs), strict=True):
                        result.replace_all_uses_with(value)
                    break
                source = _source(source)
        for cast in reversed(casts):
            if all(result.first_use is None for result in cast.results):
                cast.detach()
                cast.erase()


def _source(cast: UnrealizedConversionCastOp) -> UnrealizedConversionCastOp | None:
    """Return the cast whose results, all and in order, are the inputs of this one."""
    inputs = tuple(cast.inputs)
    if not inputs or not isinstance(inputs[0], OpResult):
        return None
    owner = inputs[0].op
    return owner if isinstance(owner, UnrealizedConversionCastOp) and tuple(owner.results) == inputs else None


class StripDebugInfoPass(Pass):
    """Set every location to ``loc(unknown)``."""

    name = "strip-debuginfo"
    summary = "drop source locations"
    scope = "generic"
    in_upstream = True

    def run(self, op: Operation, ctx: PassContext) -> None:
        unknown = UnknownLoc()
        for o in op.walk():
            o.location = unknown
            for region in o.regions:
                for block in region.blocks:
                    for arg in block.args:
                        arg.location = unknown
