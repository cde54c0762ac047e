"""Copy instructions, ``cute_nvgpu.arch.*``: one op an instruction, over views of the values a thread has in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import StringAttr, i1, i16, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import operand_def, opt_operand_def, prop_def, traits_def, var_operand_def
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from cute_dialect.algebra.leaf import AlgebraError
from cute_dialect.algebra.values import ComposedLayout, raw_layout
from cute_dialect.ir.editing import fill_op
from cute_dialect.memory_types import CopyAtomType, MemRefType, PtrType, element_bits
from cute_dialect.nvgpu_copy_types import LdsmType, MovmType, ShuffleType, SimtAsyncCopyType, StsmType
from cute_dialect.ops.base import cute_op
from cute_dialect.ops.views import InstructionOp, expect, expect_operands


class _CopyInstructionOp(InstructionOp):
    """One instruction of a copy atom; both sides hold exactly the values of one thread in one instruction."""

    ATOM: ClassVar[type[CopyAtomType]]

    def __init__(self, atom: CopyAtomType, source: SSAValue, destination: SSAValue, *rest: SSAValue):
        fill_op(self, [source, destination, *rest], properties={"atom": atom})

    def verify_(self) -> None:
        from cute_dialect.ops.copy_checks import check_copy

        try:
            types = self.operand_types
            expect_operands(types, 2, 3 if self.ATOM is SimtAsyncCopyType else 2)
            atom = self.properties["atom"]
            assert isinstance(atom, self.ATOM)
            for i, t in enumerate(types[:2]):
                expect(t, MemRefType, i, "a !cute.memref")
            source, destination = check_copy(atom, _as_values(types[0]), _as_values(types[1]), None)
            for what, side in (("source", source), ("destination", destination)):
                if any(n != 1 for n in side.counts):
                    raise AlgebraError(f"expected the values of one instruction in the {what}, got more")
        except AlgebraError as e:
            raise VerifyException(f"'{self.name}' op {e}") from None


def _as_values(t: Attribute) -> Attribute:
    """The same tensor with one mode, that of the values."""
    assert isinstance(t, MemRefType)
    layout = t.layout
    if isinstance(layout, ComposedLayout) or not isinstance(layout.shape, tuple):
        return t
    assert isinstance(layout.stride, tuple)
    return t.with_layout(raw_layout((layout.shape,), (layout.stride,)))


@cute_op
class CpAsyncOp(_CopyInstructionOp):
    """One ``cp.async``; with a predicate the destination is zero-filled where it is false, and nothing is read.

    Syntax: ``cute_nvgpu.arch.cp_async(%gmem, %smem [, %pred]) {atom = ATOM} : (G, S [, i1]) -> ()``

    Example:
        cute_nvgpu.arch.cp_async(%g, %s) {atom = !cute_nvgpu.atom.simt_async_copy<f16, cache = global, 128 b>} : (!cute.memref<f16, gmem, align<16>, "8:1">, !cute.memref<f16, smem, align<16>, "8:1">) -> ()
    """  # noqa: E501

    name = "cute_nvgpu.arch.cp_async"
    ATOM: ClassVar[type[CopyAtomType]] = SimtAsyncCopyType
    source = operand_def(MemRefType)
    destination = operand_def(MemRefType)
    pred = opt_operand_def(i1)
    atom = prop_def(SimtAsyncCopyType)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())


@cute_op
class LdmatrixOp(_CopyInstructionOp):
    """One ``ldmatrix``: ``%smem`` is the row whose address this thread gives, ``%rmem`` what it gets.

    Syntax: ``cute_nvgpu.arch.ldmatrix(%smem, %rmem) {atom = ATOM} : (S, R) -> ()``

    Example:
        cute_nvgpu.arch.ldmatrix(%s, %r) {atom = !cute_nvgpu.atom.ldsm<val_type = f16, num_matrices = 4, n>} : (!cute.memref<f16, smem, align<16>, "8:1">, !cute.memref<f16, rmem, "(2,4):(1,2)">) -> ()
    """  # noqa: E501

    name = "cute_nvgpu.arch.ldmatrix"
    ATOM: ClassVar[type[CopyAtomType]] = LdsmType
    source = operand_def(MemRefType)
    destination = operand_def(MemRefType)
    atom = prop_def(LdsmType)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())


@cute_op
class StmatrixOp(_CopyInstructionOp):
    """One ``stmatrix`` (sm_90): ``%smem`` is the row whose address this thread gives, ``%rmem`` what it holds.

    Syntax: ``cute_nvgpu.arch.stmatrix(%rmem, %smem) {atom = ATOM} : (R, S) -> ()``

    Example:
        cute_nvgpu.arch.stmatrix(%r, %s) {atom = !cute_nvgpu.atom.stsm<val_type = f16, num_matrices = 2, t>} : (!cute.memref<f16, rmem, "4:1">, !cute.memref<f16, smem, align<16>, "8:1">) -> ()
    """  # noqa: E501

    name = "cute_nvgpu.arch.stmatrix"
    ATOM: ClassVar[type[CopyAtomType]] = StsmType
    source = operand_def(MemRefType)
    destination = operand_def(MemRefType)
    atom = prop_def(StsmType)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())


@cute_op
class MovmatrixOp(_CopyInstructionOp):
    """One ``movmatrix``: the 8x8 matrix that the registers of a warp hold, transposed.

    Syntax: ``cute_nvgpu.arch.movmatrix(%from, %to) {atom = ATOM} : (R, R) -> ()``

    Example:
        cute_nvgpu.arch.movmatrix(%r, %f) {atom = !cute_nvgpu.atom.movm<val_type = f16>} : (!cute.memref<f16, rmem, "2:1">, !cute.memref<f16, rmem, "2:1">) -> ()
    """  # noqa: E501

    name = "cute_nvgpu.arch.movmatrix"
    ATOM: ClassVar[type[CopyAtomType]] = MovmType
    source = operand_def(MemRefType)
    destination = operand_def(MemRefType)
    atom = prop_def(MovmType)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())


@cute_op
class ShuffleOp(_CopyInstructionOp):
    """One shuffle of a warp: 2x2 blocks transposed, or the value of lane 0 for all.

    Syntax: ``cute_nvgpu.arch.shuffle(%from, %to) {atom = ATOM} : (R, R) -> ()``

    Example:
        cute_nvgpu.arch.shuffle(%r, %f) {atom = !cute_nvgpu.atom.shuffle<val_type = f32, transpose = 4>} : (!cute.memref<f32, rmem, "2:1">, !cute.memref<f32, rmem, "2:1">) -> ()
    """  # noqa: E501

    name = "cute_nvgpu.arch.shuffle"
    ATOM: ClassVar[type[CopyAtomType]] = ShuffleType
    source = operand_def(MemRefType)
    destination = operand_def(MemRefType)
    atom = prop_def(ShuffleType)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())


# ------------------------------------------------------------------------------------------------------ runs and caches


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
    """Bytes of a tensor that is one contiguous run, as bulk copies move it.

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
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

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
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(self, source: SSAValue, destination: SSAValue, reduction: StringAttr, hint: Sequence[SSAValue] = ()):
        fill_op(self, [source, destination, *hint], properties={"reduction": reduction})

    def check(self) -> None:
        from cute_dialect.nvgpu_bulk_types import REDUCTIONS, reduced_as

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
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

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
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def check(self) -> None:
        t = self.tensor.type
        assert isinstance(t, MemRefType)
        if t.space != "gmem":
            raise AlgebraError(f"expected a tensor in gmem, got {t.space} in {t}")
        if self.level.data not in ("L1", "L2"):
            raise AlgebraError(f'expected level = "L1" or "L2", got "{self.level.data}"')


OPS: list[type[Operation]] = [
    CpAsyncOp,
    LdmatrixOp,
    StmatrixOp,
    MovmatrixOp,
    ShuffleOp,
    BulkCopyOp,
    BulkReduceOp,
    BulkPrefetchOp,
    PrefetchOp,
]
"""Ops of ``cute_nvgpu``."""

CUTE_OPS: list[type[Operation]] = []
"""Ops of ``cute``."""
