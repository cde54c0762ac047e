"""im2col TMA ops: tensor maps built on the host, and the instructions::

%atom = cute_nvgpu.make_tma_load_im2col(%activations) : (!nhwc) -> !load
…
cute_nvgpu.arch.tma_load_im2col(%atom, %c, %w, %h, %n, %smem, %bar, %s, %r) : (!load, i32, …, i16, i16) -> ()
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import i16, i64
from xdsl.ir import Attribute
from xdsl.irdl import operand_def, result_def, traits_def
from xdsl.traits import Pure

from cute_dialect.algebra.leaf import AlgebraError
from cute_dialect.algebra.trees import depth
from cute_dialect.algebra.values import Layout
from cute_dialect.cute_nvgpu.tma.maps import Im2colMap
from cute_dialect.cute_nvgpu.tma.ops import (
    MapOfNumbersOp,
    TensorMapInstruction,
    check_coordinates,
    check_shared,
    expect_rest,
)
from cute_dialect.cute_nvgpu.tma.types import Im2colAtomType, TmaLoadIm2colType, TmaReduceIm2colType, TmaStoreIm2colType
from cute_dialect.dialect.base import cute_op, ops_of
from cute_dialect.dialect.machine import MachineOp
from cute_dialect.dialect.memory_types import MemRefType, is_barrier
from cute_dialect.dialect.typed_values import Properties, payload_text
from cute_dialect.dialect.views import expect, expect_operands
from cute_dialect.spaces import AddressSpace


class _MakeIm2colOp(MachineOp):
    ATOM: ClassVar[type[Im2colAtomType]]
    gmem = operand_def(MemRefType)
    traits = traits_def(Pure())

    def check_types(self) -> None:
        """Raise AlgebraError unless a tensor map of the atom's type can describe the tensor."""
        expect_operands(self.operand_types, 1)
        gmem, atom = self.operand_types[0], self.result_types[0]
        if not isinstance(atom, self.ATOM):
            raise AlgebraError(f"result #0 must be a !{self.ATOM.name}, got {atom}")
        expect(gmem, MemRefType, 0, "a !cute.memref in gmem")
        assert isinstance(gmem, MemRefType)
        m = atom.data
        if gmem.space != AddressSpace.gmem or gmem.element != m.element:
            raise AlgebraError(f"operand #0 must be a !cute.memref<{m.element}, gmem, …>, got {gmem}")
        layout = gmem.layout
        wanted = {3: "(C,W,N)", 4: "(C,W,H,N)", 5: "(C,W,H,D,N)"}[m.rank]
        plain = isinstance(layout, Layout) and isinstance(layout.shape, tuple) and depth(layout.shape) == 1
        if not plain or len(layout.shape) != m.rank:  # type: ignore[arg-type,union-attr]
            raise AlgebraError(f"the layout of operand #0 is {payload_text(layout)}; the atom needs modes {wanted}")
        assert isinstance(layout, Layout) and isinstance(layout.stride, tuple)
        if layout.stride[0] != 1:
            raise AlgebraError(
                f"the layout of operand #0 is {payload_text(layout)}; mode 0 (channels) must have stride 1"
            )


@cute_op
class MakeTmaLoadIm2colOp(_MakeIm2colOp):
    """Builds, on the host, a tensor map for im2col loads of activations.

    Syntax: ``%atom = cute_nvgpu.make_tma_load_im2col(%gmem) : (G) -> ATOM``

    ``%gmem`` has modes (C, W, N), (C, W, H, N) or (C, W, H, D, N), of which C is contiguous. The atom type contains the
    static parameters:

    * the numbers of channels and pixels per instruction;
    * the corners of the box of base pixels;
    * the strides of the convolution;
    * the swizzle.

    For a filter of S taps along W with padding p and dilation d, ``lower`` is -p. ``upper`` is p - (S - 1) * d. The
    offset of tap s in the instruction is s * d.

    Example:
        %atom = cute_nvgpu.make_tma_load_im2col(%g) : (!cute.memref<f16, gmem, "(?,?,?,?):(1,?{div=8},?{div=8},?{div=8})">) -> !cute_nvgpu.atom.tma_load_im2col<f16, channels = 64, pixels = 128, lower = (-1, -1), upper = (-1, -1), swizzle = 128>
    """  # noqa: E501

    name = "cute_nvgpu.make_tma_load_im2col"
    atom = result_def(TmaLoadIm2colType)
    ATOM = TmaLoadIm2colType


@cute_op
class MakeTmaStoreIm2colOp(_MakeIm2colOp):
    """Builds, on the host, a tensor map for im2col stores. See ``make_tma_load_im2col``.

    Example:
        %atom = cute_nvgpu.make_tma_store_im2col(%g) : (!cute.memref<f16, gmem, "(?,?,?):(1,?{div=8},?{div=8})">) -> !cute_nvgpu.atom.tma_store_im2col<f16, channels = 64, pixels = 128, lower = (0), upper = (0)>
    """  # noqa: E501

    name = "cute_nvgpu.make_tma_store_im2col"
    atom = result_def(TmaStoreIm2colType)
    ATOM = TmaStoreIm2colType


@cute_op
class MakeTmaReduceIm2colOp(_MakeIm2colOp):
    """Builds, on the host, a tensor map for im2col reductions. See ``make_tma_load_im2col``.

    Example:
        %atom = cute_nvgpu.make_tma_reduce_im2col(%g) : (!cute.memref<f16, gmem, "(?,?,?):(1,?{div=8},?{div=8})">) -> !cute_nvgpu.atom.tma_reduce_im2col<f16, add, channels = 64, pixels = 128, lower = (0), upper = (0)>
    """  # noqa: E501

    name = "cute_nvgpu.make_tma_reduce_im2col"
    atom = result_def(TmaReduceIm2colType)
    ATOM = TmaReduceIm2colType


@cute_op
class MakeIm2colMapOp(MapOfNumbersOp):
    """Builds an im2col tensor map from scalars: the address, the extents in elements, and the strides of dimensions 1
    and up in bytes (all ``i64``).

    ``make_tma_load_im2col`` is lowered to this op, and this op to a call of ``cute_tensor_map_im2col_<rank>d``.

    Example:
        %atom = cute_nvgpu.arch.make_im2col_map(%p, %m, %n, %m, %s, %s) : (!cute.ptr<f16, gmem>, i64, i64, i64, i64, i64) -> !cute_nvgpu.atom.tma_load_im2col<f16, channels = 64, pixels = 128, lower = (0), upper = (0)>
    """  # noqa: E501

    name = "cute_nvgpu.arch.make_im2col_map"
    ATOM, WHAT = Im2colAtomType, "an im2col"


class _Im2colInstruction(TensorMapInstruction):
    """Instruction of im2col pixels. The coordinates are those of the first channel and the first base pixel."""

    ATOM: ClassVar[type[Im2colAtomType]]
    WANTS: ClassVar[str]
    """Required operands after the coordinates. ``{}`` is replaced by the number of spatial dimensions."""

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        if not operand_types:
            raise AlgebraError(f"there are no operands; pass a tensor map, coordinates, {cls.WANTS.replace('{} ', '')}")
        atom = operand_types[0]
        expect(atom, cls.ATOM, 0, f"a !{cls.ATOM.name}")
        assert isinstance(atom, Im2colAtomType)
        m = atom.data
        wants = cls.WANTS.format(m.spatial)
        least = 1 + m.rank + sum((m.spatial if "offsets" in w else 1) for w in _WANTED if w in wants)
        if len(operand_types) < least:
            raise AlgebraError(
                f"the number of operands after the map is {len(operand_types) - 1}; pass {m.rank} coordinates, {wants}"
            )
        check_coordinates(operand_types[1 : 1 + m.rank])
        cls.check_rest(m, operand_types[1 + m.rank :], 1 + m.rank)
        return []

    @classmethod
    def check_rest(cls, m: Im2colMap, types: Sequence[Attribute], at: int) -> None:
        """Raise AlgebraError unless the operands after the coordinates are valid. The first of them is operand
        ``at``.
        """
        raise NotImplementedError(cls.name)


_WANTED = ("shared memory", "barrier", "offsets")


def check_smem(m: Im2colMap, smem: Attribute, at: int) -> None:
    """Raise AlgebraError unless operand ``at`` points to shared memory that can hold the pixels of one instruction."""
    if check_shared(m, smem, at).data.alignment % 128:
        raise AlgebraError(f"smem is not aligned to 128 bytes ({smem}), as TMA requires; write align<128>")


def check_offsets(m: Im2colMap, types: Sequence[Attribute], at: int) -> list[Attribute]:
    """Check the offsets, which start at operand ``at``, and return the types after them. Raises AlgebraError."""
    for i, t in enumerate(types[: m.spatial], at):
        if t != i16:
            raise AlgebraError(f"operand #{i} must be an i16 offset ({m.spatial} of them), got {t}")
    return list(types[m.spatial :])


@cute_op
class ArchTmaLoadIm2colOp(_Im2colInstruction):
    """Loads the pixels of one instruction, starting at a base pixel. The mbarrier counts the bytes. One thread issues
    it.

    Syntax: ``cute_nvgpu.arch.tma_load_im2col(%map, %c, %w [, %h [, %d]], %n, %smem, %bar, %ow [, %oh [, %od]]
    [, %mask : i16] [, %hint : i64]) : (…) -> ()``

    The i32 coordinates are those of the first channel and the first base pixel. Base pixels follow in the order W, H,
    D, N within the box of corners. The i16 offsets, filter tap times dilation, are added to the coordinates of all base
    pixels. Shared memory holds (pixels, channels) with contiguous channels and the swizzle of the map.

    PTX ISA 9.7.9.25.5.2 "cp.async.bulk.tensor", 5.5.5 "Im2col mode".

    Example:
        cute_nvgpu.arch.tma_load_im2col(%map, %c, %w, %n, %smem, %bar, %s) : (!cute_nvgpu.atom.tma_load_im2col<f16, channels = 64, pixels = 128, lower = (-1), upper = (-1), swizzle = 128>, i32, i32, i32, !cute.ptr<f16, smem, align<1024>, S<3,4,3>>, !cute.ptr<i64, smem>, i16) -> ()
    """  # noqa: E501

    name = "cute_nvgpu.arch.tma_load_im2col"
    ATOM = TmaLoadIm2colType
    WANTS = "shared memory, a barrier and {} offsets"

    @classmethod
    def check_rest(cls, m: Im2colMap, types: Sequence[Attribute], at: int) -> None:
        check_smem(m, types[0], at)
        if not is_barrier(types[1]):
            raise AlgebraError(f"operand #{at + 1} must be a !cute.ptr<i64, smem>, the barrier, got {types[1]}")
        rest = check_offsets(m, types[2:], at + 2)
        expect_rest(rest, ([], [i16], [i64], [i16, i64]), "an i16 mask and an i64 cache hint", at + 2 + m.spatial)


class _Im2colWrite(_Im2colInstruction):
    """Base of the stores and reductions from shared to global memory."""

    WANTS = "shared memory"

    @classmethod
    def check_rest(cls, m: Im2colMap, types: Sequence[Attribute], at: int) -> None:
        check_smem(m, types[0], at)
        expect_rest(types[1:], ([], [i64]), "an i64 cache hint", at + 1)


@cute_op
class ArchTmaStoreIm2colOp(_Im2colWrite):
    """Stores the pixels of one instruction, starting at a base pixel, in the current bulk group. Pixels out of bounds
    are not stored.

    Syntax: ``cute_nvgpu.arch.tma_store_im2col(%map, %c, %w [, %h [, %d]], %n, %smem [, %hint : i64]) : (…) -> ()``

    One thread issues it, after a fence of the async proxy. PTX ISA 9.7.9.25.5.2 "cp.async.bulk.tensor".

    Example:
        cute_nvgpu.arch.tma_store_im2col(%map, %c, %w, %n, %smem) : (!cute_nvgpu.atom.tma_store_im2col<f16, channels = 64, pixels = 128, lower = (0), upper = (0)>, i32, i32, i32, !cute.ptr<f16, smem, align<128>>) -> ()
    """  # noqa: E501

    name = "cute_nvgpu.arch.tma_store_im2col"
    ATOM = TmaStoreIm2colType


@cute_op
class ArchTmaReduceIm2colOp(_Im2colWrite):
    """Reduces the pixels of one instruction into global memory, in the current bulk group; see ``tma_store_im2col``.

    PTX ISA 9.7.9.25.5.3 "cp.reduce.async.bulk.tensor".

    Example:
        cute_nvgpu.arch.tma_reduce_im2col(%map, %c, %w, %n, %smem) : (!cute_nvgpu.atom.tma_reduce_im2col<f16, add, channels = 64, pixels = 128, lower = (0), upper = (0)>, i32, i32, i32, !cute.ptr<f16, smem, align<128>>) -> ()
    """  # noqa: E501

    name = "cute_nvgpu.arch.tma_reduce_im2col"
    ATOM = TmaReduceIm2colType


@cute_op
class ArchTmaPrefetchIm2colOp(_Im2colInstruction):
    """Prefetches the pixels of one instruction into the L2 cache.

    Syntax: ``cute_nvgpu.arch.tma_prefetch_im2col(%map, %c, %w [, %h [, %d]], %n, %ow [, %oh [, %od]] [, %hint : i64])
    : (…) -> ()``

    PTX ISA 9.7.9.25.5.4 "cp.async.bulk.prefetch.tensor".

    Example:
        cute_nvgpu.arch.tma_prefetch_im2col(%map, %c, %w, %n, %s) : (!cute_nvgpu.atom.tma_load_im2col<f16, channels = 64, pixels = 128, lower = (-1), upper = (-1)>, i32, i32, i32, i16) -> ()
    """  # noqa: E501

    name = "cute_nvgpu.arch.tma_prefetch_im2col"
    ATOM = TmaLoadIm2colType
    WANTS = "{} offsets"

    @classmethod
    def check_rest(cls, m: Im2colMap, types: Sequence[Attribute], at: int) -> None:
        expect_rest(check_offsets(m, types, at), ([], [i64]), "an i64 cache hint", at + m.spatial)


OPS = ops_of(__name__)
