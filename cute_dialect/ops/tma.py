"""TMA: tensor maps made on the host, the run-time state of their atoms, the instructions.

On the host ``cute_nvgpu.make_tma_load`` (``…_store``, ``…_reduce``) makes an atom and a tensor of coordinates of a
global tensor; both go to a kernel as arguments.  There ``cute.copy`` moves tiles of the coordinate tensor::

    %a = cute.atom.set_value(%atom, %bar) {field = tma_bar} : (!load, !bar) -> !load
    cute.copy(%a, %tile_of_coords, %smem) : (!load, !coords, !smem) -> ()
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, cast

from xdsl.dialects.builtin import IntegerAttr, StringAttr, i1, i16, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import operand_def, opt_prop_def, prop_def, result_def, traits_def, var_operand_def
from xdsl.traits import Pure

from cute_dialect.algebra.leaf import AlgebraError, Dyn
from cute_dialect.algebra.values import AnyLayout, IntTuple, Layout, Tile, raw_layout
from cute_dialect.memory_types import CoordTensor, CoordTensorType, MemRefType, PtrType, TiledCopyType
from cute_dialect.nvgpu_tma_types import (
    TmaAtomType,
    TmaLoadType,
    TmaMap,
    TmaReduceType,
    TmaStoreType,
    canonical,
    check_map,
)
from cute_dialect.ops import arch_tma
from cute_dialect.ops.arch_tma import MachineOp, is_barrier
from cute_dialect.ops.base import Properties, cute_op
from cute_dialect.ops.kinds import payload_text
from cute_dialect.ops.views import expect, expect_operands
from cute_dialect.types import ComposedLayoutType, CoordType, CuteType, LayoutType, ShapeType, TileType

# ---------------------------------------------------------------------------------------------------------- on the host


def _number(properties: Properties, name: str, default: int) -> int:
    value = properties.get(name)
    return value.value.data if isinstance(value, IntegerAttr) else default


def _word(properties: Properties, name: str, default: str) -> str:
    value = properties.get(name)
    return value.data if isinstance(value, StringAttr) else default


def modes_of(layout: Layout) -> Layout:
    """A layout of modes: one of a single leaf gets a mode of its own."""
    if isinstance(layout.shape, tuple):
        return layout
    return raw_layout((layout.shape,), (layout.stride,))  # type: ignore[arg-type]


def derived(operand_types: Sequence[Attribute], properties: Properties) -> object:
    """The :class:`~cute_dialect.arch.tensor_map.TensorMapSpec` of a ``make_tma_*`` op.  Raises AlgebraError."""
    from cute_dialect.algebra.values import Swizzle
    from cute_dialect.arch.errors import ArchError
    from cute_dialect.arch.gmma import SWIZZLES
    from cute_dialect.arch.tma import derive

    gmem, smem, tiler = operand_types
    assert isinstance(gmem, MemRefType) and isinstance(smem, CuteType) and isinstance(tiler, CuteType)
    if not isinstance(gmem.layout, Layout):
        raise AlgebraError(f"operand #0 must have a plain layout, got {payload_text(gmem.layout)}")
    swizzle = _number(properties, "swizzle", 0)
    if swizzle not in SWIZZLES:
        raise AlgebraError(f"property 'swizzle': expected 0, 32, 64 or 128 bytes, got {swizzle}")
    layout, tile = cast("AnyLayout", smem.data), cast("Tile | int", tiler.data)
    if isinstance(layout, Layout):
        layout = modes_of(layout)
    try:
        return derive(
            modes_of(gmem.layout),
            layout,
            tile if isinstance(tile, tuple) else (tile,),  # type: ignore[arg-type]
            str(gmem.element),
            pointer_swizzle=Swizzle(SWIZZLES.index(swizzle), 4, 3) if swizzle else None,
            multicast=_number(properties, "multicast", 1),
            interleave=_number(properties, "interleave", 0),
            l2_promotion=_number(properties, "l2", 128),
            oob_fill=_word(properties, "oob", "zero"),
        )
    except ArchError as e:
        raise AlgebraError(str(e)) from None


class _MakeTmaOp(MachineOp):
    ATOM: ClassVar[type[TmaAtomType]]
    WORDS = ("oob", "reduction")

    def __init__(
        self,
        gmem: SSAValue,
        smem_layout: SSAValue,
        tiler: SSAValue,
        properties: Mapping[str, Attribute] | None = None,
    ):
        self.build_inferred([gmem, smem_layout, tiler], properties)

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        from cute_dialect.arch.tensor_map import TensorMapSpec

        expect_operands(operand_types, 3)
        gmem, smem, tiler = operand_types
        expect(gmem, MemRefType, 0, "a !cute.memref in gmem")
        assert isinstance(gmem, MemRefType)
        if gmem.space != "gmem":
            raise AlgebraError(f"operand #0 must be a !cute.memref in gmem, got one in {gmem.space}")
        expect(smem, (LayoutType, ComposedLayoutType), 1, "a layout")
        expect(tiler, (TileType, ShapeType), 2, "a !cute.tile or a !cute.shape")
        spec = derived(operand_types, properties)
        assert isinstance(spec, TensorMapSpec)
        m = TmaMap(
            element=gmem.element,
            box=spec.box,
            swizzle=spec.swizzle,
            interleave=spec.interleave,
            element_strides=spec.element_strides,
            oob=spec.oob_fill,
            l2=spec.l2_promotion,
            reduction=cls.reduction(properties),
        )
        m = canonical(m)
        check_map(m)
        coordinates = spec.coordinates
        assert isinstance(gmem.layout, Layout)
        if not isinstance(gmem.layout.shape, tuple):
            coordinates = raw_layout(coordinates.shape[0], coordinates.stride[0])  # type: ignore[index]
        origin: IntTuple = (0,) * spec.rank
        return [cls.ATOM(m), CoordTensorType(CoordTensor(origin, coordinates))]

    @classmethod
    def reduction(cls, properties: Properties) -> str:
        """The reduction of a reduce atom."""
        return ""


@cute_op
class MakeTmaLoadOp(_MakeTmaOp):
    """A tensor map for loads of tiles of a global tensor, and the tensor of its coordinates; on the host.

    Syntax: ``%atom, %coords = cute_nvgpu.make_tma_load(%gmem, %smem_layout, %tiler) {…} : (G, L, T) -> (ATOM, COORDS)``

    ``%smem_layout`` is the layout of one tile in shared memory, plain or swizzled (``S<b,m,s> o 0 o L`` on elements);
    ``swizzle = 32|64|128 : i32`` (bytes) says it of a plain one, for memory whose pointer carries the swizzle.
    Further properties: ``multicast = N : i32`` (a tile is loaded in N slices, one a CTA, each for all of them),
    ``interleave = 16|32 : i32``, ``oob = nan``, ``l2 = 0|64|256 : i32`` (bytes).

    Inference: the box, the order of dimensions and the coordinates as ``cute_dialect.arch.tma.derive`` gives them; TMA
    dimension 0 is the contiguous one.  Static limits are errors here, the others of the launch: it then fails with the
    reason, or takes the host function's ``cute.fallback``.

    Example:
        %atom, %coords = cute_nvgpu.make_tma_load(%g, %l, %t) {swizzle = 128 : i32} : (!cute.memref<f16, gmem, "(?,?):(?,1)">, !cute.layout<"(128,64):(64,1)">, !cute.tile<"[128:1;64:1]">) -> (!cute_nvgpu.atom.tma_load<f16, box = (64, 128), swizzle = 128>, !cute.coord_tensor<"(0,0)", "(?,?):(1@1,1@0)">)
    """  # noqa: E501

    name = "cute_nvgpu.make_tma_load"
    gmem = operand_def(MemRefType)
    smem_layout = operand_def()
    tiler = operand_def()
    swizzle = opt_prop_def(IntegerAttr)
    multicast = opt_prop_def(IntegerAttr)
    interleave = opt_prop_def(IntegerAttr)
    oob = opt_prop_def(StringAttr)
    l2 = opt_prop_def(IntegerAttr)
    atom = result_def(TmaLoadType)
    coords = result_def(CoordTensorType)
    traits = traits_def(Pure())
    ATOM = TmaLoadType


@cute_op
class MakeTmaStoreOp(_MakeTmaOp):
    """A tensor map for stores of tiles to a global tensor, and the tensor of its coordinates; see ``make_tma_load``.

    Example:
        %atom, %coords = cute_nvgpu.make_tma_store(%g, %l, %t) : (!cute.memref<f32, gmem, "(?,?):(?{div=4},1)">, !cute.layout<"(64,32):(32,1)">, !cute.shape<"(64,32)">) -> (!cute_nvgpu.atom.tma_store<f32, box = (32, 64)>, !cute.coord_tensor<"(0,0)", "(?,?):(1@1,1@0)">)
    """  # noqa: E501

    name = "cute_nvgpu.make_tma_store"
    gmem = operand_def(MemRefType)
    smem_layout = operand_def()
    tiler = operand_def()
    swizzle = opt_prop_def(IntegerAttr)
    interleave = opt_prop_def(IntegerAttr)
    l2 = opt_prop_def(IntegerAttr)
    atom = result_def(TmaStoreType)
    coords = result_def(CoordTensorType)
    traits = traits_def(Pure())
    ATOM = TmaStoreType


@cute_op
class MakeTmaReduceOp(_MakeTmaOp):
    """A tensor map for reductions of tiles into a global tensor, and its coordinates; see ``make_tma_load``.

    ``reduction = add|min|max|inc|dec|and|or|xor``; default ``add``.

    Example:
        %atom, %coords = cute_nvgpu.make_tma_reduce(%g, %l, %t) {reduction = add} : (!cute.memref<f32, gmem, "(?,?):(?{div=4},1)">, !cute.layout<"(64,32):(32,1)">, !cute.shape<"(64,32)">) -> (!cute_nvgpu.atom.tma_reduce<f32, add, box = (32, 64)>, !cute.coord_tensor<"(0,0)", "(?,?):(1@1,1@0)">)
    """  # noqa: E501

    name = "cute_nvgpu.make_tma_reduce"
    gmem = operand_def(MemRefType)
    smem_layout = operand_def()
    tiler = operand_def()
    reduction_ = opt_prop_def(StringAttr, prop_name="reduction")
    swizzle = opt_prop_def(IntegerAttr)
    interleave = opt_prop_def(IntegerAttr)
    l2 = opt_prop_def(IntegerAttr)
    atom = result_def(TmaReduceType)
    coords = result_def(CoordTensorType)
    traits = traits_def(Pure())
    ATOM = TmaReduceType

    @classmethod
    def reduction(cls, properties: Properties) -> str:
        return _word(properties, "reduction", "add")


@cute_op
class MakeTensorMapOp(MachineOp):
    """A tensor map from numbers: address, extents in elements, strides of dimensions 1 and up in bytes (all ``i64``).

    What ``make_tma_load`` and its like become.  Lowers to a call of ``cute_tensor_map_tiled_<rank>d``.

    Example:
        %atom = cute_nvgpu.arch.make_tensor_map(%p, %m, %n, %s) : (!cute.ptr<f16, gmem>, i64, i64, i64) -> !cute_nvgpu.atom.tma_load<f16, box = (64, 128), swizzle = 128>
    """  # noqa: E501

    name = "cute_nvgpu.arch.make_tensor_map"
    address = operand_def(PtrType)
    numbers = var_operand_def(i64)
    atom = result_def()
    traits = traits_def(Pure())

    def __init__(self, address: SSAValue, extents: Sequence[SSAValue], strides: Sequence[SSAValue], atom: TmaAtomType):
        super().__init__(operands=[address, [*extents, *strides]], result_types=[atom])

    def check_types(self) -> None:
        atom, address = self.result_types[0], self.operand_types[0]
        if not isinstance(atom, TmaAtomType):
            raise AlgebraError(f"result #0 must be a TMA atom, got {atom}")
        expect(address, PtrType, 0, "a !cute.ptr in gmem")
        assert isinstance(address, PtrType)
        if address.data.space != "gmem" or address.data.element != atom.element:
            raise AlgebraError(f"operand #0 must be a !cute.ptr<{atom.element}, gmem>, got {address}")
        wanted = 2 * atom.data.rank - 1
        given = self.operand_types[1:]
        if len(given) != wanted or any(t != i64 for t in given):
            raise AlgebraError(
                f"expected {wanted} i64 ({atom.data.rank} extents, {atom.data.rank - 1} strides) after the address, "
                f"got {', '.join(map(str, given)) or 'none'}"
            )


# ------------------------------------------------------------------------------------------------------- state of atoms

_LOADS = ("tma_load", "tma_load_im2col")
_OTHERS = ("tma_store", "tma_reduce", "tma_store_im2col", "tma_reduce_im2col")
_BULK = ("bulk_copy", "bulk_reduce")
FIELDS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "tma_bar": ("a !cute.ptr<i64, smem>", (*_LOADS, "bulk_copy")),
    "im2col_offsets": ("a !cute.coord with an offset a spatial dimension", ("tma_load_im2col",)),
    "multicast_mask": ("i16", (*_LOADS, "bulk_copy")),
    "cache_hint": ("i64", (*_LOADS, *_OTHERS, *_BULK)),
    "pred": ("i1", (*_LOADS, *_OTHERS, *_BULK)),
}
"""Field of an atom -> type of its value, atoms that have it."""

_FIELD_TYPES = {"multicast_mask": i16, "cache_hint": i64, "pred": i1}


def _fits(field: str, atom: Attribute, value: Attribute) -> bool:
    if field == "tma_bar":
        remote = atom.name.endswith("bulk_copy") and isinstance(value, PtrType) and value.data.space == "dsmem"
        return is_barrier(value) or (remote and value.data.element == i64)  # type: ignore[union-attr]
    if field == "im2col_offsets":
        from cute_dialect.nvgpu_im2col_types import Im2colAtomType

        assert isinstance(atom, Im2colAtomType)
        if not isinstance(value, CoordType):
            return False
        leaves = value.data if isinstance(value.data, tuple) else (value.data,)
        return len(leaves) == atom.data.spatial and all(isinstance(x, int | Dyn) for x in leaves)
    return value == _FIELD_TYPES[field]


@cute_op
class AtomSetValueOp(MachineOp):
    """An atom with a value of its run-time state; the type stays.

    Syntax: ``%b = cute.atom.set_value(%a, %v) {field = FIELD} : (ATOM, V) -> ATOM`` with one of the fields below.

    ``tma_bar``: the mbarrier (``!cute.ptr<i64, smem>``) that a load's bytes are counted by; a load needs one.
    ``accumulate`` (of wgmma and its tiled MMA): i1, whether a ``gemm`` without C adds to D instead.
    ``multicast_mask``: i16, a bit a CTA of the cluster that the load writes to, each at the same offset of its shared
    memory.  ``cache_hint``: i64, an L2 cache policy.  ``pred``: i1, nothing is done where it is false.
    ``im2col_offsets``: a coordinate (W first) by which all pixels of an im2col load are moved, else nothing.
    The atom may be that of a tiled copy.
    A copy sees the values that are set in the function it is in, on the way from the atom to the copy.

    Example:
        %b = cute.atom.set_value(%a, %bar) {field = tma_bar} : (!cute_nvgpu.atom.tma_load<f16, box = (64, 128)>, !cute.ptr<i64, smem>) -> !cute_nvgpu.atom.tma_load<f16, box = (64, 128)>
    """  # noqa: E501

    name = "cute.atom.set_value"
    atom = operand_def()
    value = operand_def()
    field = prop_def(StringAttr)
    result = result_def()
    traits = traits_def(Pure())
    WORDS = ("field",)

    def __init__(self, atom: SSAValue, value: SSAValue, field: str):
        self.build_inferred([atom, value], {"field": StringAttr(field)})

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        expect_operands(operand_types, 2)
        atom, value = operand_types
        field = _word(properties, "field", "")
        if field == "accumulate":
            from cute_dialect.ops.gemm import check_accumulate_flag

            check_accumulate_flag(atom, value)
            return [atom]
        inner = atom.data.atom if isinstance(atom, TiledCopyType) else atom
        kind = inner.name.removeprefix("cute_nvgpu.atom.")
        having = [f for f, (_, kinds) in FIELDS.items() if kind in kinds]
        if not having:
            expect(atom, (), 0, "an atom with run-time state (tma_load, tma_store, tma_reduce, bulk_copy, bulk_reduce)")
        if field not in FIELDS:
            raise AlgebraError(f"property 'field': expected one of {', '.join(FIELDS)}, got {field or 'none'}")
        if field not in having:
            raise AlgebraError(f"property 'field': {inner.name} has no {field} (it has {', '.join(having)})")
        if not _fits(field, inner, value):
            raise AlgebraError(f"operand #1 must be {FIELDS[field][0]} for {field}, got {value}")
        return [atom]


OPS: list[type[Operation]] = [
    MakeTmaLoadOp,
    MakeTmaStoreOp,
    MakeTmaReduceOp,
    MakeTensorMapOp,
    *arch_tma.OPS,
]
"""Ops of ``cute_nvgpu``."""

CUTE_OPS: list[type[Operation]] = [AtomSetValueOp]
"""Ops of ``cute``."""
