"""Copies of runs of bytes, ``cute_nvgpu.arch.bulk_*``, and prefetches."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import StringAttr, i16, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import operand_def, opt_operand_def, prop_def, var_operand_def
from xdsl.utils.exceptions import VerifyException

from cute_dialect.algebra.leaf import AlgebraError
from cute_dialect.algebra.values import ComposedLayout
from cute_dialect.ir.editing import fill_op
from cute_dialect.memory_types import MemRefType, PtrType, element_bits
from cute_dialect.ops.base import cute_op
from cute_dialect.ops.views import InstructionOp


class _RunOp(InstructionOp):
    """An op on contiguous runs of bytes."""

    def verify_(self) -> None:
        try:
            self.check()
        except AlgebraError as e:
            raise VerifyException(f"'{self.name}' op {e}") from None

    def check(self) -> None:
        """Raise AlgebraError unless the operands fit."""
        raise NotImplementedError(self.name)


def run_bytes(t: Attribute, what: str, spaces: tuple[str, ...]) -> int:
    """Return bytes of a tensor that is one contiguous run, as bulk copies move it.

    Raises AlgebraError unless it lies in one of ``spaces``, has no swizzle, is static, contiguous, aligned to 16 bytes
    and a multiple of 16 bytes long.
    """
    from cute_dialect.algebra.evaluation import size
    from cute_dialect.algebra.layout import coalesce

    assert isinstance(t, MemRefType)
    if t.space not in spaces:
        raise AlgebraError(f"expected a {what} in {' or '.join(spaces)}, got {t.space} in {t}")
    layout = t.layout
    if isinstance(layout, ComposedLayout) or t.data.ptr.swizzle is not None:
        raise AlgebraError(f"expected a {what} without swizzle, got {t}")
    n = size(layout)
    run = coalesce(layout)
    if not isinstance(n, int) or not (n == 1 or (run.shape == n and run.stride == 1)):
        raise AlgebraError(f"expected a {what} that is one contiguous run of static size, got {t}")
    n_bytes = n * element_bits(t.element) // 8
    if n_bytes % 16 or t.alignment % 16:
        raise AlgebraError(
            f"expected a {what} aligned to 16 bytes and a multiple of 16 bytes long, got {n_bytes} bytes aligned to "
            f"{t.alignment} in {t}"
        )
    return n_bytes


@cute_op
class BulkCopyOp(_RunOp):
    """Copy a contiguous run asynchronously (``cp.async.bulk``, sm_90); one thread issues it.

    Syntax: ``cute_nvgpu.arch.bulk_copy(%src, %dst [, %bar] [, %mask : i16] [, %hint : i64]) : (S, D, …) -> ()``

    gmem to smem, and smem to the shared memory of another block of the cluster (dsmem), signal the bytes on the
    mbarrier ``%bar``; smem to gmem is completed by ``bulk_commit_group`` and ``bulk_wait_group``.  Both sides are runs of
    equally many bytes, a multiple of 16, aligned to 16.  ``%mask`` (gmem to smem): the blocks of the cluster that get
    the run, each at the same place.  ``%hint`` (to or from gmem): an L2 cache policy.

    Example:
        cute_nvgpu.arch.bulk_copy(%g, %s, %bar) : (!cute.memref<f32, gmem, align<16>, "256:1">, !cute.memref<f32, smem, align<16>, "256:1">, !cute.ptr<i64, smem>) -> ()
    """  # noqa: E501

    name = "cute_nvgpu.arch.bulk_copy"
    source = operand_def(MemRefType)
    destination = operand_def(MemRefType)
    rest = var_operand_def()

    def __init__(self, source: SSAValue, destination: SSAValue, rest: Sequence[SSAValue] = ()):
        fill_op(self, [source, destination, *rest])

    def check(self) -> None:
        source, destination = self.source.type, self.destination.type
        assert isinstance(source, MemRefType)
        a = run_bytes(source, "source", ("gmem", "smem"))
        b = run_bytes(destination, "destination", ("smem",) if source.space == "gmem" else ("gmem", "dsmem"))
        if a != b:
            raise AlgebraError(f"expected runs of equal length, got {a} and {b} bytes")
        assert isinstance(destination, MemRefType)
        signals = destination.space != "gmem"
        rest = [o.type for o in self.rest]
        if signals != (bool(rest) and isinstance(rest[0], PtrType)):
            wanted = "an mbarrier" if signals else "no mbarrier (a bulk group completes it)"
            raise AlgebraError(f"expected {wanted} for a copy from {source.space} to {destination.space}")
        if signals:
            bar = rest.pop(0)
            assert isinstance(bar, PtrType)
            if bar.data.element != i64 or bar.data.space not in ("smem", "dsmem"):
                raise AlgebraError(f"operand #2 must be a !cute.ptr<i64, smem>, got {bar}")
        last = "neither mask nor cache hint"
        allowed: tuple[tuple[Attribute, ...], ...] = ((),)
        if source.space == "gmem":
            last, allowed = "at most an i16 mask and an i64 cache hint", ((), (i16,), (i64,), (i16, i64))
        elif destination.space == "gmem":
            last, allowed = "at most an i64 cache hint", ((), (i64,))
        if tuple(rest) not in allowed:
            raise AlgebraError(
                f"expected {last} for a copy from {source.space} to {destination.space}, "
                f"got {', '.join(map(str, rest))}"
            )


@cute_op
class BulkReduceOp(_RunOp):
    """Combine a contiguous run of shared memory with one of global memory (``cp.reduce.async.bulk``, sm_90).

    Syntax: ``cute_nvgpu.arch.bulk_reduce(%src, %dst [, %hint : i64]) {reduction = "add"} : (S, D [, i64]) -> ()``

    Element by element, atomically, in the bulk group at hand; one thread issues it, after a fence of the async proxy.
    ``reduction``: add, min, max, inc, dec, and, or, xor, of those that the element type has.

    PTX ISA 9.7.9.25.4.2 "cp.reduce.async.bulk".

    Example:
        cute_nvgpu.arch.bulk_reduce(%s, %g) {reduction = "add"} : (!cute.memref<f32, smem, align<16>, "256:1">, !cute.memref<f32, gmem, align<16>, "256:1">) -> ()
    """  # noqa: E501

    name = "cute_nvgpu.arch.bulk_reduce"
    source = operand_def(MemRefType)
    destination = operand_def(MemRefType)
    hint = opt_operand_def(i64)
    reduction = prop_def(StringAttr)

    def __init__(self, source: SSAValue, destination: SSAValue, reduction: StringAttr, hint: Sequence[SSAValue] = ()):
        fill_op(self, [source, destination, *hint], properties={"reduction": reduction})

    def check(self) -> None:
        from cute_dialect.cute_nvgpu.bulk.types import REDUCTIONS, reduced_as

        source, destination = self.source.type, self.destination.type
        a, b = run_bytes(source, "source", ("smem",)), run_bytes(destination, "destination", ("gmem",))
        assert isinstance(source, MemRefType) and isinstance(destination, MemRefType)
        if a != b or source.element != destination.element:
            raise AlgebraError(f"expected runs of equal length and element type, got {source} and {destination}")
        word = self.reduction.data
        if word not in REDUCTIONS:
            raise AlgebraError(f"expected reduction = one of {', '.join(REDUCTIONS)}, got '{word}'")
        reduced_as(source.element, word)


@cute_op
class BulkPrefetchOp(_RunOp):
    """Bring a contiguous run of global memory into the L2 cache (``cp.async.bulk.prefetch``, sm_90).

    Syntax: ``cute_nvgpu.arch.bulk_prefetch(%t) : (T) -> ()``

    Example:
        cute_nvgpu.arch.bulk_prefetch(%g) : (!cute.memref<f32, gmem, align<16>, "256:1">) -> ()
    """

    name = "cute_nvgpu.arch.bulk_prefetch"
    tensor = operand_def(MemRefType)

    def check(self) -> None:
        run_bytes(self.tensor.type, "tensor", ("gmem",))


@cute_op
class PrefetchOp(_RunOp):
    """Bring the cache line of the first element of a tensor into a cache.

    Syntax: ``cute_nvgpu.arch.prefetch(%t) {level = "L1"|"L2"} : (T) -> ()``

    Example:
        cute_nvgpu.arch.prefetch(%g) {level = "L2"} : (!cute.memref<f32, gmem, "(?,?):(?,1)">) -> ()
    """

    name = "cute_nvgpu.arch.prefetch"
    tensor = operand_def(MemRefType)
    level = prop_def(StringAttr)

    def check(self) -> None:
        t = self.tensor.type
        assert isinstance(t, MemRefType)
        if t.space != "gmem":
            raise AlgebraError(f"expected a tensor in gmem, got {t.space} in {t}")
        if self.level.data not in ("L1", "L2"):
            raise AlgebraError(f'expected level = "L1" or "L2", got "{self.level.data}"')


OPS: list[type[Operation]] = [BulkCopyOp, BulkReduceOp, BulkPrefetchOp, PrefetchOp]
"""The ops of this module."""
