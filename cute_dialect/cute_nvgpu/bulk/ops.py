"""Bulk copies and reductions of runs of bytes, ``cute_nvgpu.arch.bulk_*``, and prefetches."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import StringAttr, i16, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import operand_def, opt_operand_def, prop_def, var_operand_def
from xdsl.utils.exceptions import VerifyException

from cute_dialect.algebra.evaluation import size
from cute_dialect.algebra.layout import coalesce
from cute_dialect.algebra.leaf import AlgebraError
from cute_dialect.algebra.values import ComposedLayout
from cute_dialect.cute_nvgpu.bulk.types import DESTINATIONS, REDUCTIONS, reduced_as
from cute_dialect.dialect.base import cute_op, ops_of
from cute_dialect.dialect.memory_types import MemRefType, PtrType, element_bits
from cute_dialect.dialect.views import InstructionOp
from cute_dialect.ir.editing import fill_op
from cute_dialect.spaces import AddressSpace


class _RunOp(InstructionOp):
    """Base of the bulk ops, which access contiguous runs of bytes."""

    def verify_(self) -> None:
        try:
            self.check()
        except AlgebraError as e:
            raise VerifyException(f"'{self.name}' op {e}") from None

    def check(self) -> None:
        """Raise AlgebraError unless the operands are valid."""
        raise NotImplementedError(self.name)


def run_bytes(t: Attribute, what: str, spaces: tuple[AddressSpace, ...]) -> int:
    """Return the size in bytes of a tensor that is one contiguous run, as bulk copies require.

    Raises AlgebraError unless the tensor is in one of ``spaces``, has no swizzle, and has a static contiguous layout.
    Its alignment and its size must be multiples of 16 bytes.
    """
    assert isinstance(t, MemRefType)
    if t.space not in spaces:
        raise AlgebraError(f"the {what} is in {t.space} ({t}); it must be in {' or '.join(spaces)}")
    layout = t.layout
    if isinstance(layout, ComposedLayout) or t.data.ptr.swizzle is not None:
        raise AlgebraError(f"the {what} has a swizzle ({t}); use one without")
    n = size(layout)
    run = coalesce(layout)
    if not isinstance(n, int) or not (n == 1 or (run.shape == n and run.stride == 1)):
        raise AlgebraError(f"the {what} is not one contiguous run of static size ({t}); use a contiguous static layout")
    n_bytes = n * element_bits(t.element) // 8
    if n_bytes % 16 or t.alignment % 16:
        raise AlgebraError(
            f"the {what} has {n_bytes} bytes aligned to {t.alignment} ({t}); size and alignment must be "
            "multiples of 16 bytes"
        )
    return n_bytes


@cute_op
class BulkCopyOp(_RunOp):
    """Copies a contiguous run asynchronously (``cp.async.bulk``, sm_90). One thread issues it.

    Syntax: ``cute_nvgpu.arch.bulk_copy(%src, %dst [, %bar] [, %mask : i16] [, %hint : i64]) : (S, D, …) -> ()``

    Copies from gmem to smem, and from smem to the shared memory of another block of the cluster (dsmem), signal
    completion on the mbarrier ``%bar``. Copies from smem to gmem are completed with ``bulk_commit_group`` and
    ``bulk_wait_group``.

    * Both runs have the same size in bytes, a multiple of 16, and are aligned to 16 bytes.
    * ``%mask`` (gmem to smem) selects the blocks of the cluster that receive the run, each at the same offset of its
      shared memory.
    * ``%hint`` (to or from gmem) is an L2 cache policy.

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
        a = run_bytes(source, "source", tuple(DESTINATIONS))
        b = run_bytes(destination, "destination", DESTINATIONS[source.space])
        if a != b:
            raise AlgebraError(f"the runs have {a} and {b} bytes; their lengths must be equal")
        assert isinstance(destination, MemRefType)
        signals = destination.space != AddressSpace.gmem
        rest = [o.type for o in self.rest]
        if signals != (bool(rest) and isinstance(rest[0], PtrType)):
            needs = "needs an mbarrier" if signals else "takes no mbarrier, because a bulk group completes it"
            raise AlgebraError(f"a copy from {source.space} to {destination.space} {needs}")
        if signals:
            bar = rest.pop(0)
            assert isinstance(bar, PtrType)
            if bar.data.element != i64 or not bar.data.space.shared:
                raise AlgebraError(f"operand #2 must be a !cute.ptr<i64, smem>, got {bar}")
        last = "neither mask nor cache hint"
        allowed: tuple[tuple[Attribute, ...], ...] = ((),)
        if source.space == AddressSpace.gmem:
            last, allowed = "at most an i16 mask and an i64 cache hint", ((), (i16,), (i64,), (i16, i64))
        elif destination.space == AddressSpace.gmem:
            last, allowed = "at most an i64 cache hint", ((), (i64,))
        if tuple(rest) not in allowed:
            raise AlgebraError(
                f"a copy from {source.space} to {destination.space} does not take "
                f"{', '.join(map(str, rest))}; pass {last}"
            )


@cute_op
class BulkReduceOp(_RunOp):
    """Reduces a contiguous run of shared memory into a run of global memory (``cp.reduce.async.bulk``, sm_90).

    Syntax: ``cute_nvgpu.arch.bulk_reduce(%src, %dst [, %hint : i64]) {reduction = "add"} : (S, D [, i64]) -> ()``

    The reduction is atomic for each element and belongs to the current bulk group. One thread issues it, after a fence
    of the async proxy. ``reduction`` is add, min, max, inc, dec, and, or, xor, if the element type supports it.

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
        source, destination = self.source.type, self.destination.type
        a = run_bytes(source, "source", (AddressSpace.smem,))
        b = run_bytes(destination, "destination", (AddressSpace.gmem,))
        assert isinstance(source, MemRefType) and isinstance(destination, MemRefType)
        if a != b or source.element != destination.element:
            raise AlgebraError(
                f"the runs are {source} and {destination}; their lengths and element types must be equal"
            )
        word = self.reduction.data
        if word not in REDUCTIONS:
            raise AlgebraError(f"the reduction is '{word}'; use one of {', '.join(REDUCTIONS)}")
        reduced_as(source.element, word)


@cute_op
class BulkPrefetchOp(_RunOp):
    """Prefetches a contiguous run of global memory into the L2 cache (``cp.async.bulk.prefetch``, sm_90).

    Syntax: ``cute_nvgpu.arch.bulk_prefetch(%t) : (T) -> ()``

    Example:
        cute_nvgpu.arch.bulk_prefetch(%g) : (!cute.memref<f32, gmem, align<16>, "256:1">) -> ()
    """

    name = "cute_nvgpu.arch.bulk_prefetch"
    tensor = operand_def(MemRefType)

    def check(self) -> None:
        run_bytes(self.tensor.type, "tensor", (AddressSpace.gmem,))


@cute_op
class PrefetchOp(_RunOp):
    """Prefetches the cache line of the first element of a tensor.

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
        if t.space != AddressSpace.gmem:
            raise AlgebraError(f"the tensor is in {t.space} ({t}); it must be in gmem")
        if self.level.data not in ("L1", "L2"):
            raise AlgebraError(f'the level is "{self.level.data}"; use "L1" or "L2"')


OPS = ops_of(__name__)
