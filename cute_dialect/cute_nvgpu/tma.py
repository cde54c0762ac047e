"""TMA ops, tiled and im2col: tensor maps built on the host, and the instructions.

On the host, ``cute_nvgpu.make_tma_load`` (``…_store``, ``…_reduce``) builds an atom and a coordinate tensor for a
global tensor. Both are passed to a kernel as arguments, where ``cute.copy`` moves tiles of the coordinate tensor::

    %a = cute.atom.set_value(%atom, %bar) {field = tma_bar} : (!load, !bar) -> !load
    cute.copy(%a, %tile_of_coords, %smem) : (!load, !coords, !smem) -> ()

The ops of im2col are used in the same way::

    %atom = cute_nvgpu.make_tma_load_im2col(%activations) : (!nhwc) -> !load
    …
    cute_nvgpu.arch.tma_load_im2col(%atom, %c, %w, %h, %n, %smem, %bar, %s, %r) : (!load, i32, …, i16, i16) -> ()
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, cast

from xdsl.dialects.builtin import IntegerAttr, StringAttr, i16, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import operand_def, opt_prop_def, result_def, traits_def, var_operand_def
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure

from cute_dialect.algebra.leaf import AlgebraError
from cute_dialect.algebra.trees import depth
from cute_dialect.algebra.values import AnyLayout, IntTuple, Layout, Swizzle, Tile, raw_layout
from cute_dialect.arch.errors import ArchError
from cute_dialect.cute_nvgpu.tma_types import (
    ROWS,
    Im2colAtomType,
    Im2colMap,
    TmaAtomType,
    TmaLoadIm2colType,
    TmaLoadType,
    TmaMap,
    TmaReduceIm2colType,
    TmaReduceType,
    TmaStoreIm2colType,
    TmaStoreType,
    canonical,
    check_alignment,
)
from cute_dialect.dialect.atom_types import is_tensor_map
from cute_dialect.dialect.base import cute_op, ops_of
from cute_dialect.dialect.machine import MachineOp
from cute_dialect.dialect.memory_types import (
    ConstrainedIntType,
    CoordTensor,
    CoordTensorType,
    MemRefType,
    PtrType,
    integer_width,
    is_barrier,
    ptr,
)
from cute_dialect.dialect.typed_values import Properties, payload_text
from cute_dialect.dialect.types import ComposedLayoutType, CuteType, LayoutType, ShapeType, TileType
from cute_dialect.dialect.views import expect, expect_operands
from cute_dialect.spaces import AddressSpace

MAP_ALIGNMENT = 64
"""Alignment of a tensor map in bytes."""

# ---------------------------------------------------------------------------------------------------------- on the host


def _number(properties: Properties, name: str, default: int) -> int:
    value = properties.get(name)
    return value.value.data if isinstance(value, IntegerAttr) else default


def _word(properties: Properties, name: str, default: str) -> str:
    value = properties.get(name)
    return value.data if isinstance(value, StringAttr) else default


def modes_of(layout: Layout) -> Layout:
    """Return a layout with at least one mode: a single leaf becomes a mode."""
    if isinstance(layout.shape, tuple):
        return layout
    return raw_layout((layout.shape,), (layout.stride,))  # type: ignore[arg-type]


def derived(operand_types: Sequence[Attribute], properties: Properties) -> object:
    """Return the :class:`~cute_dialect.arch.tensor_map.TensorMapSpec` of a ``make_tma_*`` op. Raises AlgebraError."""
    from cute_dialect.arch.descriptors import SWIZZLES  # late: start-up
    from cute_dialect.arch.tma import derive  # late: start-up

    gmem, smem, tiler = operand_types
    assert isinstance(gmem, MemRefType) and isinstance(smem, CuteType) and isinstance(tiler, CuteType)
    if not isinstance(gmem.layout, Layout):
        raise AlgebraError(f"operand #0 must have a plain layout, got {payload_text(gmem.layout)}")
    swizzle = _number(properties, "swizzle", 0)
    if swizzle not in SWIZZLES:
        raise AlgebraError(f"property 'swizzle' is {swizzle}; use 0, 32, 64 or 128 bytes")
    layout, tile = cast("AnyLayout", smem.data), cast("Tile | int", tiler.data)
    if isinstance(layout, Layout):
        layout = modes_of(layout)
    try:
        spec = derive(
            modes_of(gmem.layout),
            layout,
            tile if isinstance(tile, tuple) else (tile,),  # type: ignore[arg-type]
            str(gmem.element),
            pointer_swizzle=Swizzle(SWIZZLES.index(swizzle), 4, 3) if swizzle else None,
            multicast=_number(properties, "multicast", 1),
            interleave=_number(properties, "interleave", 0),
            unpack=_number(properties, "unpack", 0),
        )
        return replace(spec, l2_promotion=_number(properties, "l2", 128), oob_fill=_word(properties, "oob", "zero"))
    except ArchError as e:
        raise AlgebraError(str(e)) from None


class _MakeTmaOp(MachineOp):
    ATOM: ClassVar[type[TmaAtomType]]
    WORDS = ("oob", "reduction", "mode")
    gmem = operand_def(MemRefType)
    smem_layout = operand_def()
    tiler = operand_def()
    swizzle = opt_prop_def(IntegerAttr)
    interleave = opt_prop_def(IntegerAttr)
    l2 = opt_prop_def(IntegerAttr)
    coords = result_def(CoordTensorType)
    traits = traits_def(Pure())

    def __init__(
        self, gmem: SSAValue, smem_layout: SSAValue, tiler: SSAValue, properties: Mapping[str, Attribute] | None = None
    ):
        self.build_inferred([gmem, smem_layout, tiler], properties)

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        from cute_dialect.arch.tensor_map import TensorMapSpec  # late: start-up

        expect_operands(operand_types, 3)
        gmem, smem, tiler = operand_types
        expect(gmem, MemRefType, 0, "a !cute.memref in gmem")
        assert isinstance(gmem, MemRefType)
        if gmem.space != AddressSpace.gmem:
            raise AlgebraError(f"operand #0 must be a !cute.memref in gmem, got one in {gmem.space}")
        expect(smem, (LayoutType, ComposedLayoutType), 1, "a layout")
        expect(tiler, (TileType, ShapeType), 2, "a !cute.tile or a !cute.shape")
        spec = derived(operand_types, properties)
        assert isinstance(spec, TensorMapSpec)
        mode = _word(properties, "mode", "")
        if mode and (spec.rank != 2 or spec.box[1] != ROWS or spec.multicast != 1):
            raise AlgebraError(
                f"mode {mode} moves {ROWS} rows of a matrix; this tile has boxes of {payload_text(spec.box)} elements "
                f"(contiguous first), multicast = {spec.multicast}; use a tile of {ROWS} rows of a matrix whose rows "
                "are contiguous, and multicast = 1"
            )
        m = TmaMap(
            element=gmem.element,
            box=(spec.box[0], 1) if mode else spec.box,
            swizzle=spec.swizzle,
            interleave=spec.interleave,
            element_strides=spec.element_strides,
            oob=spec.oob_fill,
            l2=spec.l2_promotion,
            reduction=_word(properties, "reduction", "add") if cls.ATOM is TmaReduceType else "",
            cta_group=_number(properties, "cta_group", 1),
            mode=mode,
            unpack=spec.unpack,
        )
        m = canonical(m)
        cls.ATOM.check(m)
        coordinates = spec.coordinates
        assert isinstance(gmem.layout, Layout)
        if not isinstance(gmem.layout.shape, tuple):
            coordinates = raw_layout(coordinates.shape[0], coordinates.stride[0])  # type: ignore[index]
        origin: IntTuple = (0,) * spec.rank
        return [cls.ATOM(m), CoordTensorType(CoordTensor(origin, coordinates))]


@cute_op
class MakeTmaLoadOp(_MakeTmaOp):
    """Builds, on the host, a tensor map for loads of tiles of a global tensor, and the coordinate tensor of the global
    tensor.

    Syntax: ``%atom, %coords = cute_nvgpu.make_tma_load(%gmem, %smem_layout, %tiler) {…} : (G, L, T) -> (ATOM, COORDS)``

    ``%smem_layout`` is the layout of one tile in shared memory, either plain or swizzled (``S<b,m,s> o 0 o L``, in
    elements). ``swizzle = 32|64|128 : i32`` (bytes) sets the swizzle for a plain layout, if the pointer carries the
    swizzle. The other properties are:

    * ``multicast = N : i32``: a tile is loaded in N slices. Each CTA loads one slice and multicasts it to all N CTAs.
    * ``interleave = 16|32 : i32``
    * ``oob = nan``
    * ``l2 = 0|64|256 : i32`` (bytes)
    * ``cta_group = 2 : i32``: the bytes count at the mbarrier of the even block of the pair, also for the odd one.
    * ``mode = gather4``: the tile has four rows of a matrix, and a copy takes their indices in the field ``rows``.
      ``make_tma_store`` has ``mode = scatter4``.
    * ``unpack = 16 : i32``: 4-bit and 6-bit elements of global memory, 16 of them in 16 bytes of shared memory. The
      tile in shared memory has an 8-bit element for each of them.

    Inference:
        ``cute_dialect.arch.tma.derive`` computes the box, the order of dimensions and the coordinates. TMA dimension 0
        is the contiguous one. A violation of a static limit is an error of the op. Other limits are checked at launch:
        the launch fails with the reason, or runs the ``cute.fallback`` of the host function.

    Example:
        %atom, %coords = cute_nvgpu.make_tma_load(%g, %l, %t) {swizzle = 128 : i32} : (!cute.memref<f16, gmem, "(?,?):(?,1)">, !cute.layout<"(128,64):(64,1)">, !cute.tile<"[128:1;64:1]">) -> (!cute_nvgpu.atom.tma_load<f16, box = (64, 128), swizzle = 128>, !cute.coord_tensor<"(0,0)", "(?,?):(1@1,1@0)">)
    """  # noqa: E501

    name = "cute_nvgpu.make_tma_load"
    swizzle = opt_prop_def(IntegerAttr)
    multicast = opt_prop_def(IntegerAttr)
    interleave = opt_prop_def(IntegerAttr)
    oob = opt_prop_def(StringAttr)
    l2 = opt_prop_def(IntegerAttr)
    cta_group = opt_prop_def(IntegerAttr)
    mode = opt_prop_def(StringAttr)
    unpack = opt_prop_def(IntegerAttr)
    atom = result_def(TmaLoadType)
    ATOM = TmaLoadType


@cute_op
class MakeTmaStoreOp(_MakeTmaOp):
    """Builds, on the host, a tensor map for stores of tiles to a global tensor, and the coordinate tensor; see
    ``make_tma_load``.

    Example:
        %atom, %coords = cute_nvgpu.make_tma_store(%g, %l, %t) : (!cute.memref<f32, gmem, "(?,?):(?{div=4},1)">, !cute.layout<"(64,32):(32,1)">, !cute.shape<"(64,32)">) -> (!cute_nvgpu.atom.tma_store<f32, box = (32, 64)>, !cute.coord_tensor<"(0,0)", "(?,?):(1@1,1@0)">)
    """  # noqa: E501

    name = "cute_nvgpu.make_tma_store"
    mode = opt_prop_def(StringAttr)
    atom = result_def(TmaStoreType)
    ATOM = TmaStoreType


@cute_op
class MakeTmaReduceOp(_MakeTmaOp):
    """Builds, on the host, a tensor map for reductions of tiles into a global tensor, and the coordinate tensor; see
    ``make_tma_load``.

    ``reduction = add|min|max|inc|dec|and|or|xor``; the default is ``add``.

    Example:
        %atom, %coords = cute_nvgpu.make_tma_reduce(%g, %l, %t) {reduction = add} : (!cute.memref<f32, gmem, "(?,?):(?{div=4},1)">, !cute.layout<"(64,32):(32,1)">, !cute.shape<"(64,32)">) -> (!cute_nvgpu.atom.tma_reduce<f32, add, box = (32, 64)>, !cute.coord_tensor<"(0,0)", "(?,?):(1@1,1@0)">)
    """  # noqa: E501

    name = "cute_nvgpu.make_tma_reduce"
    reduction_ = opt_prop_def(StringAttr, prop_name="reduction")
    atom = result_def(TmaReduceType)
    ATOM = TmaReduceType


class MapOfNumbersOp(MachineOp):
    """Base of the ops that build a tensor map from a gmem address and its extents and strides, all ``i64``."""

    ATOM: ClassVar[type[TmaAtomType] | type[Im2colAtomType]]
    WHAT: ClassVar[str]
    """Name of the atom in error messages."""
    address = operand_def(PtrType)
    numbers = var_operand_def(i64)
    atom = result_def()
    traits = traits_def(Pure())

    def __init__(
        self,
        address: SSAValue,
        extents: Sequence[SSAValue],
        strides: Sequence[SSAValue],
        atom: TmaAtomType | Im2colAtomType,
    ):
        super().__init__(operands=[address, [*extents, *strides]], result_types=[atom])

    def check_types(self) -> None:
        """Raise AlgebraError unless the numbers of extents and strides match the dimensions of the atom."""
        atom, address = self.result_types[0], self.operand_types[0]
        if not isinstance(atom, self.ATOM):
            raise AlgebraError(f"result #0 must be {self.WHAT} atom, got {atom}")
        expect(address, PtrType, 0, "a !cute.ptr in gmem")
        assert isinstance(address, PtrType)
        if address.data.space != AddressSpace.gmem or address.data.element != atom.element:
            raise AlgebraError(f"operand #0 must be a !cute.ptr<{atom.element}, gmem>, got {address}")
        rank, given = atom.data.rank, self.operand_types[1:]
        if len(given) != 2 * rank - 1 or any(t != i64 for t in given):
            raise AlgebraError(
                f"the operands after the address are {', '.join(map(str, given)) or 'none'}; pass "
                f"{2 * rank - 1} i64 ({rank} extents, {rank - 1} strides)"
            )


@cute_op
class MakeTensorMapOp(MapOfNumbersOp):
    """Builds a tensor map from scalars: the address, the extents in elements, and the strides of dimensions 1 and up in
    bytes (all ``i64``).

    ``make_tma_load``, ``make_tma_store`` and ``make_tma_reduce`` are lowered to this op, and this op to a call of
    ``cute_tensor_map_tiled_<rank>d``.

    Example:
        %atom = cute_nvgpu.arch.make_tensor_map(%p, %m, %n, %s) : (!cute.ptr<f16, gmem>, i64, i64, i64) -> !cute_nvgpu.atom.tma_load<f16, box = (64, 128), swizzle = 128>
    """  # noqa: E501

    name = "cute_nvgpu.arch.make_tensor_map"
    ATOM, WHAT = TmaAtomType, "a TMA"


# ---------------------------------------------------------------------------------------------------- instructions


def check_coordinates(types: Sequence[Attribute]) -> None:
    """Raise AlgebraError unless the operands after the map are coordinates, one per dimension."""
    for i, t in enumerate(types, 1):
        if (t.width if isinstance(t, ConstrainedIntType) else integer_width(t)) != 32:
            raise AlgebraError(f"operand #{i} must be an i32 coordinate ({len(types)} dimensions), got {t}")


def check_shared(m: TmaMap | Im2colMap, smem: Attribute, at: int) -> PtrType:
    """Raise AlgebraError unless operand ``at`` points to shared memory with the element type and swizzle of the map."""
    from cute_dialect.arch.descriptors import SWIZZLES  # late: start-up

    if not isinstance(smem, PtrType) or smem.data.space != AddressSpace.smem or smem.data.element != m.held:
        raise AlgebraError(f"operand #{at} must be a !cute.ptr<{m.held}, smem>, got {smem}")
    swizzle = smem.data.swizzle
    if swizzle is not None and (swizzle.base, swizzle.shift, SWIZZLES[min(swizzle.bits, 3)]) != (4, 3, m.swizzle):
        raise AlgebraError(f"smem does not have the swizzle of the tensor map ({smem}); use one of {m.swizzle} bytes")
    return smem


def expect_rest(types: Sequence[Attribute], allowed: tuple[list[Attribute], ...], what: str, at: int) -> None:
    """Raise AlgebraError unless the types of operand ``at`` and the following ones are one of the allowed lists."""
    if list(types) not in allowed:
        raise AlgebraError(f"the operands after #{at - 1} are {', '.join(map(str, types))}; pass at most {what}")


class TensorMapInstruction(MachineOp):
    """Op of the form ``(%map, %c0, …, …)`` with one i32 coordinate per dimension, innermost first."""

    args = var_operand_def()
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(self, operands: Sequence[SSAValue]):
        super().__init__(operands=[list(operands)])


class _TmaInstruction(TensorMapInstruction):
    """Instruction of one box, which is in shared memory on one side."""

    ATOM: ClassVar[type[TmaAtomType]]
    SMEM: ClassVar[bool] = True
    """True if shared memory follows the coordinates."""

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        if not operand_types:
            raise AlgebraError("there are no operands; pass a tensor map, coordinates and shared memory")
        atom = operand_types[0]
        expect(atom, cls.ATOM, 0, f"a !{cls.ATOM.name}")
        assert isinstance(atom, TmaAtomType)
        rank = atom.data.coordinates
        if len(operand_types) < rank + 1 + cls.SMEM:
            wanted = f"{rank} coordinates and shared memory" if cls.SMEM else f"{rank} coordinates"
            raise AlgebraError(f"the number of operands after the map is {len(operand_types) - 1}; pass {wanted}")
        check_coordinates(operand_types[1 : 1 + rank])
        if cls.SMEM:
            smem = check_shared(atom.data, operand_types[1 + rank], 1 + rank)
            check_alignment(atom.data._replace(swizzle=0), smem.data.alignment, str(smem))
        at = 1 + rank + cls.SMEM
        cls.check_rest(operand_types[at:], at)
        return []

    @classmethod
    def check_rest(cls, types: Sequence[Attribute], at: int) -> None:
        """Raise AlgebraError unless the operands after the shared memory are valid."""
        expect_rest(types, ([], [i64]), "an i64 cache hint", at)


@cute_op
class ArchTmaLoadOp(_TmaInstruction):
    """Loads one box. The mbarrier counts the bytes. One thread issues it.

    Syntax: ``cute_nvgpu.arch.tma_load(%map, %c0, …, %smem, %bar [, %mask : i16] [, %hint : i64]) : (…) -> ()``

    A load with ``cta_group = 2`` signals the mbarrier at the offset of ``%bar`` in the even block of the pair. A load
    with ``mode = gather4`` has five coordinates: the column, and the indices of four rows. Rows outside the tensor are
    filled.

    PTX ISA 9.7.9.25.5.2 "cp.async.bulk.tensor".

    Example:
        cute_nvgpu.arch.tma_load(%map, %x, %y, %smem, %bar) : (!cute_nvgpu.atom.tma_load<f16, box = (64, 128), swizzle = 128>, i32, i32, !cute.ptr<f16, smem, align<1024>, S<3,4,3>>, !cute.ptr<i64, smem>) -> ()
    """  # noqa: E501

    name = "cute_nvgpu.arch.tma_load"
    ATOM = TmaLoadType

    @classmethod
    def check_rest(cls, types: Sequence[Attribute], at: int) -> None:
        if not types or not is_barrier(types[0]):
            got = ", ".join(map(str, types)) or "none"
            raise AlgebraError(f"operand #{at} must be a !cute.ptr<i64, smem>, the barrier, got {got}")
        expect_rest(types[1:], ([], [i16], [i64], [i16, i64]), "an i16 mask and an i64 cache hint", at + 1)


@cute_op
class ArchTmaStoreOp(_TmaInstruction):
    """Stores one box, in the current bulk group. One thread issues it, after a fence of the async proxy.

    Syntax: ``cute_nvgpu.arch.tma_store(%map, %c0, …, %smem [, %hint : i64]) : (…) -> ()``

    A store with ``mode = scatter4`` has five coordinates: the column, and the indices of four different rows. Rows past
    the end of the tensor are dropped; indices must not be negative.

    PTX ISA 9.7.9.25.5.2 "cp.async.bulk.tensor".

    Example:
        cute_nvgpu.arch.tma_store(%map, %x, %y, %smem) : (!cute_nvgpu.atom.tma_store<f16, box = (64, 128)>, i32, i32, !cute.ptr<f16, smem, align<128>>) -> ()
    """  # noqa: E501

    name = "cute_nvgpu.arch.tma_store"
    ATOM = TmaStoreType


@cute_op
class ArchTmaReduceOp(_TmaInstruction):
    """Reduces one box into global memory, in the current bulk group; see ``tma_store``.

    PTX ISA 9.7.9.25.5.3 "cp.reduce.async.bulk.tensor".

    Example:
        cute_nvgpu.arch.tma_reduce(%map, %x, %y, %smem) : (!cute_nvgpu.atom.tma_reduce<f32, add, box = (32, 64)>, i32, i32, !cute.ptr<f32, smem, align<128>>) -> ()
    """  # noqa: E501

    name = "cute_nvgpu.arch.tma_reduce"
    ATOM = TmaReduceType


@cute_op
class ArchTmaPrefetchOp(_TmaInstruction):
    """Prefetches one box into the L2 cache.

    Syntax: ``cute_nvgpu.arch.tma_prefetch(%map, %c0, … [, %hint : i64]) : (…) -> ()``

    PTX ISA 9.7.9.25.5.4 "cp.async.bulk.prefetch.tensor".

    Example:
        cute_nvgpu.arch.tma_prefetch(%map, %x, %y) : (!cute_nvgpu.atom.tma_load<f16, box = (64, 128), swizzle = 128>, i32, i32) -> ()
    """  # noqa: E501

    name = "cute_nvgpu.arch.tma_prefetch"
    ATOM = TmaLoadType
    SMEM = False


@cute_op
class ArchPrefetchTensormapOp(MachineOp):
    """Prefetches a tensor map into the cache, before its first use.

    PTX ISA 9.7.9.16 "prefetch, prefetchu".

    Example:
        cute_nvgpu.arch.prefetch_tensormap(%map) : (!cute_nvgpu.atom.tma_load<f16, box = (64, 128), swizzle = 128>) -> ()
    """  # noqa: E501

    name = "cute_nvgpu.arch.prefetch_tensormap"
    atom = operand_def()
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(self, atom: SSAValue):
        super().__init__(operands=[atom])

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        expect_operands(operand_types, 1)
        atom = operand_types[0]
        if not is_tensor_map(atom):
            raise AlgebraError(f"operand #0 must be a TMA atom, got {atom}")
        return []


@cute_op
class TensorMapAddressOp(MachineOp):
    """Returns the address of an atom's tensor map, 128 bytes.

    Example:
        %p = cute_nvgpu.arch.tensor_map_address(%atom) : (!cute_nvgpu.atom.tma_load<f16, box = (64, 128), swizzle = 128>) -> !cute.ptr<i64, generic, align<64>>
    """  # noqa: E501

    name = "cute_nvgpu.arch.tensor_map_address"
    atom = operand_def()
    address = result_def(PtrType)
    traits = traits_def(Pure())

    def __init__(self, atom: SSAValue):
        self.build_inferred([atom])

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        expect_operands(operand_types, 1)
        if not is_tensor_map(operand_types[0]):
            raise AlgebraError(f"operand #0 must be a TMA atom, got {operand_types[0]}")
        return [PtrType(ptr(i64, AddressSpace.generic, MAP_ALIGNMENT))]


@cute_op
class TensorMapAtOp(MachineOp):
    """Returns an atom that uses the tensor map at an address in global memory.

    A kernel that changes tensor maps copies that of an atom to global memory, changes it there, and uses this atom.

    Example:
        %new = cute_nvgpu.arch.tensor_map_at(%atom, %p) : (!cute_nvgpu.atom.tma_load<f16, box = (64, 128), swizzle = 128>, !cute.ptr<i64, gmem, align<64>>) -> !cute_nvgpu.atom.tma_load<f16, box = (64, 128), swizzle = 128>
    """  # noqa: E501

    name = "cute_nvgpu.arch.tensor_map_at"
    atom = operand_def()
    address = operand_def(PtrType)
    result = result_def()
    traits = traits_def(Pure())

    def __init__(self, atom: SSAValue, address: SSAValue):
        self.build_inferred([atom, address])

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        expect_operands(operand_types, 2)
        atom, address = operand_types
        if not is_tensor_map(atom):
            raise AlgebraError(f"operand #0 must be a TMA atom, got {atom}")
        expect(address, PtrType, 1, "a !cute.ptr")
        assert isinstance(address, PtrType)
        spaces = (AddressSpace.gmem, AddressSpace.generic)
        if address.data.space not in spaces or address.data.alignment < MAP_ALIGNMENT:
            raise AlgebraError(f"operand #1 must be a !cute.ptr in gmem or generic, aligned to 64 bytes, got {address}")
        return [atom]


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
    """Required operands after the coordinates. ``{}`` is replaced by the number of offsets."""

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        if not operand_types:
            raise AlgebraError(f"there are no operands; pass a tensor map, coordinates, {cls.WANTS.replace('{} ', '')}")
        atom = operand_types[0]
        expect(atom, cls.ATOM, 0, f"a !{cls.ATOM.name}")
        assert isinstance(atom, Im2colAtomType)
        m = atom.data
        wants = cls.WANTS.format(m.offsets)
        least = 1 + m.rank + sum((m.offsets if "offsets" in w else 1) for w in _WANTED if w in wants)
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
    for i, t in enumerate(types[: m.offsets], at):
        if t != i16:
            raise AlgebraError(f"operand #{i} must be an i16 offset ({m.offsets} of them), got {t}")
    return list(types[m.offsets :])


@cute_op
class ArchTmaLoadIm2colOp(_Im2colInstruction):
    """Loads the pixels of one instruction, starting at a base pixel. The mbarrier counts the bytes. One thread issues
    it.

    Syntax: ``cute_nvgpu.arch.tma_load_im2col(%map, %c, %w [, %h [, %d]], %n, %smem, %bar, %ow [, %oh [, %od]]
    [, %mask : i16] [, %hint : i64]) : (…) -> ()``

    The i32 coordinates are those of the first channel and the first base pixel. Base pixels follow in the order W, H,
    D, N within the box of corners. The i16 offsets, filter tap times dilation, are added to the coordinates of all base
    pixels. Shared memory holds (pixels, channels) with contiguous channels and the swizzle of the map. A load of mode
    ``w`` or ``w_128`` has one offset, along W, and the halo of the map.

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
        expect_rest(rest, ([], [i16], [i64], [i16, i64]), "an i16 mask and an i64 cache hint", at + 2 + m.offsets)


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
        expect_rest(check_offsets(m, types, at), ([], [i64]), "an i64 cache hint", at + m.offsets)


OPS = ops_of(__name__)
