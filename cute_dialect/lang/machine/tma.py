"""TMA: tensor maps built by the host, and their atoms and coordinates in kernels.

The host creates ``atom, coords = cute.nvgpu.cpasync.make_tiled_tma_atom(op, gmem, smem_layout, tile)`` and passes both
to a kernel.  There, ``cute.copy(atom, …)`` copies tiles of ``coords`` to or from shared memory.

For convolutions, ``make_im2col_tma_atom(op, image, channels=64, pixels=128, …)`` creates a map of an image.  In the
kernel ``cute.copy`` moves the channels of consecutive pixels in the box of the map.  One side of the copy is a
coordinate tensor: the channels lie along dimension 0, and the pixels are a mode of stride 0 that starts at the first
pixel.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from cute_dialect.algebra.evaluation import evaluate, size
from cute_dialect.algebra.inverses import right_inverse
from cute_dialect.algebra.layout import coalesce, make_layout
from cute_dialect.algebra.leaf import AlgebraError
from cute_dialect.algebra.tiling import logical_divide
from cute_dialect.algebra.values import Basis, Swizzle, layout_modes, raw_layout
from cute_dialect.algebra.values import ComposedLayout as ComposedPayload
from cute_dialect.algebra.values import Layout as Payload
from cute_dialect.arch.descriptors import SWIZZLES
from cute_dialect.lang.machine.atoms import CopyAtom, CopyOp, Record, check_target, element_text, parsed_atom, refuse
from cute_dialect.lang.machine.instructions import as_attribute, in_kernel, tensor_operand
from cute_dialect.lang.tracing.errors import KernelTypeError, LayoutError
from cute_dialect.lang.tracing.tracer import current, parse_type
from cute_dialect.lang.values.dtypes import Int8, Int16, Int32, Uint8
from cute_dialect.lang.values.int_tuples import Tree
from cute_dialect.lang.values.pointers import Pointer

if TYPE_CHECKING:
    from xdsl.ir import Attribute, SSAValue

    from cute_dialect.lang.machine.tiled_mma import TiledMma
    from cute_dialect.lang.values.dtypes import Numeric
    from cute_dialect.lang.values.signature_types import Coord, LayoutLike, Shape, Tiler
    from cute_dialect.lang.values.tensors import Tensor

MAP_BYTES, MAP_ALIGNMENT = 128, 64
"""Size and alignment of a tensor map in bytes."""


class TmaOp(CopyOp):
    """Base of the descriptors of TMA copies.

    ``direction`` is load, store or reduce.  ``multicast`` is True if a load writes to several blocks of the cluster,
    and None for other directions.
    """

    chip: ClassVar[str] = "sm_90"
    direction: ClassVar[str] = ""
    multicast: ClassVar[bool | None] = None
    needs_barrier: ClassVar[bool] = False

    def atom_text(self, dtype: type[Numeric], bits: int | None) -> str:
        raise KernelTypeError(
            "F250", f"cute.make_copy_atom: a TMA atom needs a tensor map built by the host, got {self.name}",
            hint="use cute.nvgpu.cpasync.make_tiled_tma_atom(op, gmem, smem_layout, cta_tiler) on the host",
        )  # fmt: skip


def _shared_layout(layout: Any, dtype: type[Numeric], what: str) -> tuple[SSAValue, int]:
    """Return the layout of a tile in shared memory, and the width of the pointer's swizzle in bytes (0: none).

    The swizzle of a composed layout may act on elements, or on bytes (``S<b,4,3>``) as for pointers.
    """
    from cute_dialect.lang.values.layouts import (  # late: start-up
        ComposedLayout,
        Layout,
        as_layout,  # late: start-up
    )

    found = as_layout(layout)
    if isinstance(found, ComposedLayout):
        inner = found.inner
        if isinstance(inner, Swizzle) and (inner.base, inner.shift) == (4, 3) and 0 < inner.bits <= 3:
            return found.outer.ssa, SWIZZLES[inner.bits]
        return found.ssa, 0
    if not isinstance(found, Layout):
        raise KernelTypeError("F254", f"{what}: smem_layout must be a layout, got {layout!r}")
    return found.ssa, 0


def make_tiled_tma_atom(
    op: TmaOp, gmem_tensor: Tensor, smem_layout: LayoutLike, cta_tiler: Tiler, num_multicast: int = 1, *,
    internal_type: type[Numeric] | None = None, oob: str = "zero", l2_promotion: int = 128,
) -> TmaInfo:  # fmt: skip
    """Create the TMA atom of a global tensor and its coordinate tensor. Called on the host.

    Args:
        op: a TMA descriptor.
        gmem_tensor: the tensor in global memory. It may be scale factors, with the layout of
            ``blockscaled.tile_atom_to_shape_SF``; their map moves bytes, whatever ``internal_type`` is.
        smem_layout: the layout of one tile in shared memory, plain or swizzled. A last mode of stages is left out.
        cta_tiler: the tile's extents.
        num_multicast: number of blocks that share a tile; each loads its part and multicasts it to all of them.
        internal_type: element type in shared memory, by default that of the tensor. ``Int8`` for a tensor of 4-bit or
            6-bit floats unpacks them, 16 elements to 16 bytes, as MMAs of f8f6f4 and mxf8f6f4 read them (sm_100).
        oob: fill value for out-of-bounds elements, ``"zero"`` or ``"nan"``.
        l2_promotion: L2 promotion size in bytes.
    """
    from cute_dialect.lang.machine.factor_maps import FactorBlocks, holds_factors, refuse_plain  # late: start-up
    from cute_dialect.lang.values.layouts import as_layout, is_layout  # late: start-up
    from cute_dialect.lang.values.tensors import Tensor  # late: start-up

    if not isinstance(op, TmaOp):
        raise KernelTypeError(
            "F250", f"cute.nvgpu.cpasync.make_tiled_tma_atom: op must be a TMA descriptor, got {op!r}"
        )
    what = f"make_tiled_tma_atom({op.name})"
    tracer = current()
    source = global_source(gmem_tensor, op, what, "atom and coordinates")
    if holds_factors(source):
        blocks = FactorBlocks(source, _of_one_stage(smem_layout, cta_tiler), cta_tiler, what)
        made = make_tiled_tma_atom(op, blocks.tensor, as_layout(blocks.smem), blocks.tiler, num_multicast)
        return TmaInfo(made.atom, blocks.coordinates(made.tma_tensor), smem_layout)
    refuse_plain(source, _of_one_stage(smem_layout, cta_tiler), what)
    unpacks = source.element_type.width in (4, 6) and internal_type in (Int8, Uint8) and op.direction == "load"
    if internal_type not in (None, source.element_type) and not unpacks:
        raise KernelTypeError(
            "F254", f"{what}: internal_type must be the element type {source.element_type!r}, got {internal_type!r}",
            hint="use cute.recast_tensor; Int8 unpacks a tensor of 4-bit or 6-bit floats",
        )  # fmt: skip
    if num_multicast != 1 and not op.multicast:
        raise KernelTypeError(
            "F254", f"{what}: num_multicast={num_multicast} needs a multicast load",
            hint="use cute.nvgpu.cpasync.CopyBulkTensorTileG2SMulticastOp()",
        )  # fmt: skip
    layout, swizzle = _shared_layout(_of_one_stage(smem_layout, cta_tiler), source.element_type, what)
    tiler = cta_tiler.ssa if is_layout(cta_tiler) else Tree(_tuple(cta_tiler), "tiler").ssa
    properties: dict[str, Attribute] = {}
    given: dict[str, Any] = {
        "swizzle": swizzle or None, "l2": l2_promotion if l2_promotion != 128 else None,
        "multicast": num_multicast if num_multicast != 1 else None,
        "oob": oob if oob != "zero" else None, "reduction": getattr(op, "reduction_kind", None),
        "cta_group": 2 if getattr(getattr(op, "cta_group", None), "value", 1) == 2 else None,
        "mode": getattr(op, "mode", None), "unpack": 16 if unpacks else None,
    }  # fmt: skip
    for name, value in given.items():
        if value is not None:
            properties[name] = as_attribute(value)
    try:
        made = tracer.op(f"cute_nvgpu.make_tma_{op.direction}", [reduced(source, op), layout, tiler], None, properties)
    except LayoutError as e:
        refuse("F254", what, e, hint=f"the tensor is {source!r}, smem_layout is {smem_layout}")
    atom, coords = made.results
    found = CopyAtom(atom.type, op, atom)
    found.map_modes = _map_modes(coords.type, atom.type.data.rank)
    return TmaInfo(found, Tensor.of(coords), smem_layout)


class TmaInfo(Record):
    """A TMA atom with its coordinate tensor and the layout of shared memory for which it was created.

    It unpacks to the first two: ``atom, coords = make_tiled_tma_atom(…)``.
    """

    __slots__ = ("atom", "smem_layout", "tma_tensor")

    is_static = False

    def __init__(self, atom: CopyAtom, tma_tensor: Tensor, smem_layout: LayoutLike):
        self.atom = atom
        self.tma_tensor = tma_tensor
        self.smem_layout = smem_layout

    def __iter__(self) -> Iterator[CopyAtom | Tensor]:
        return iter((self.atom, self.tma_tensor))

    def __getitem__(self, i: int) -> CopyAtom | Tensor:
        return (self.atom, self.tma_tensor)[i]

    def __len__(self) -> int:
        return 2

    def fixed(self) -> tuple[object, ...]:
        return (self.atom.type,)

    def parts(self) -> tuple[object, ...]:
        return (self.atom, self.tma_tensor, self.smem_layout)

    @classmethod
    def remade(cls, fixed: tuple[object, ...], parts: Sequence[Any]) -> TmaInfo:
        return cls(*parts)


def _of_one_stage(smem: LayoutLike, tiler: Tiler) -> LayoutLike:
    """Return the layout of one tile, without a last mode of stages that the tile does not have."""
    from cute_dialect.lang.values.layouts import as_layout, is_layout  # late: start-up

    payload = getattr(smem, "payload", smem)
    plain = payload.outer if isinstance(payload, ComposedPayload) else payload
    extents = 1 if is_layout(tiler) or not isinstance(tiler, tuple | list) else len(tiler)
    if not (isinstance(plain, Payload) and isinstance(plain.shape, tuple) and len(plain.shape) == extents + 1 > 2):
        return smem
    made = make_layout(*layout_modes(plain)[:extents])
    if isinstance(payload, ComposedPayload):
        return as_layout(ComposedPayload(payload.inner, payload.offset, made))
    return as_layout(made)


def _map_modes(coords: Any, rank: int) -> tuple[int, ...]:
    """Return the mode of the tensor for each dimension of its map, or () if the modes are not single dimensions."""
    strides = coords.layout.stride if isinstance(coords.layout.stride, tuple) else (coords.layout.stride,)
    found: dict[int, int] = {}
    for mode, stride in enumerate(strides):
        if stride == 0:
            continue
        if not isinstance(stride, Basis) or stride.value != 1 or len(stride.path) != 1:
            return ()
        found[stride.path[0]] = mode
    return tuple(found[d] for d in range(rank)) if sorted(found) == list(range(rank)) else ()


def global_source(tensor: Any, op: TmaOp, what: str, result: str) -> Tensor:
    """Return the global tensor of a tensor map, after checking that this is the host and that the target supports TMA.

    ``what`` names the function in errors, ``result`` the values that it returns.  Raises F260 in a kernel, F254 for a
    coordinate tensor.
    """
    if current().kind != "host":
        raise KernelTypeError(
            "F260", f"{what}: a tensor map can only be created in a host function",
            hint=f"create it in the @cute.jit function that launches the kernel, and pass {result}",
        )  # fmt: skip
    check_target(op.name, op.chip)
    source = tensor_operand(tensor, what, "global tensor")
    if source.element_type is None:
        raise KernelTypeError("F254", f"{what}: gmem_tensor must be in memory, got a coordinate tensor")
    return source


def reduced(source: Tensor, op: TmaOp) -> SSAValue:
    """Return a global tensor as an op's map needs it. A reduction depends on the signedness of integers."""
    from cute_dialect.dialect.tensors import recast_type  # late: start-up

    element = element_text(source.element_type, op.name, signed=True)
    if op.direction != "reduce" or not element.startswith("ui"):
        return source.ssa
    return current().value("cute.recast_tensor", [source.ssa], [recast_type(source.type, parse_type(element))])


def _tuple(x: Any) -> Any:
    return tuple(map(_tuple, x)) if isinstance(x, list | tuple) else x


def _of_operand(
    modes: tuple[int, int],
    mcast: int,
    op: TmaOp,
    gmem: Tensor,
    smem: LayoutLike,
    tiler: Any,
    tiled_mma: TiledMma,
    cluster: Any,
    internal_type: type[Numeric] | None,
) -> TmaInfo:
    from cute_dialect.lang.machine.factor_maps import holds_factors  # late: start-up
    from cute_dialect.lang.machine.tiled_mma import in_tensor_memory  # late: start-up

    count = 1
    if cluster is not None and getattr(op, "multicast", None):
        shape = getattr(cluster, "shape", cluster)
        count = int(size(_tuple(shape)[mcast]))
    x, k = (tiler[m] for m in modes)
    if isinstance(x, int) and in_tensor_memory(tiled_mma.atom):
        x //= tiled_mma.size  # Each block of a pair loads its part.
        if modes[0] == 0 and tiled_mma.atom.type.SPARSE and not holds_factors(gmem):
            k //= 2  # A holds the kept elements.
        if internal_type is None and tiled_mma.atom.type.is_unpacked("AB"[modes[0]]) and not holds_factors(gmem):
            internal_type = Int8
    made = make_tiled_tma_atom(op, gmem, _as_matrix(smem), (x, k), count, internal_type=internal_type)
    return TmaInfo(made.atom, made.tma_tensor, smem)


def _as_matrix(smem: LayoutLike) -> LayoutLike:
    """Return a layout ((X, K), RestX, RestK [, stages]) of an MMA's partition as a layout (X, K) of the tile.

    Others are unchanged.
    """
    from cute_dialect.lang.values.layouts import as_layout  # late: start-up

    payload = as_layout(smem).payload
    plain = payload.outer if isinstance(payload, ComposedPayload) else payload
    if not (isinstance(plain, Payload) and isinstance(plain.shape, tuple) and len(plain.shape) in (3, 4)):
        return smem
    values, rest_x, rest_k = layout_modes(plain)[:3]
    if not isinstance(values.shape, tuple) or len(values.shape) != 2:
        return smem
    x, k = layout_modes(values)
    modes = [coalesce(make_layout(x, rest_x)), coalesce(make_layout(k, rest_k))]
    made = raw_layout(tuple(m.shape for m in modes), tuple(m.stride for m in modes))
    if isinstance(payload, ComposedPayload):
        return as_layout(ComposedPayload(payload.inner, payload.offset, made))
    return as_layout(made)


def make_tiled_tma_atom_A(
    op: TmaOp,
    gmem_tensor: Tensor,
    smem_layout: LayoutLike,
    mma_tiler_mnk: Shape,
    tiled_mma: TiledMma,
    cluster_shape_vmnk: Shape = None,
    *,
    internal_type: type[Numeric] | None = None,
) -> TmaInfo:
    """Create the TMA atom and coordinates of operand A (M, K) of a GEMM, or of its scale factors.

    Multicast is along N of the cluster. 4-bit and 6-bit floats are unpacked if the MMA reads a byte per element. See
    :func:`make_tiled_tma_atom` for scale factors.
    """
    return _of_operand(
        (0, 2), 2, op, gmem_tensor, smem_layout, mma_tiler_mnk, tiled_mma, cluster_shape_vmnk, internal_type
    )


def make_tiled_tma_atom_B(
    op: TmaOp,
    gmem_tensor: Tensor,
    smem_layout: LayoutLike,
    mma_tiler_mnk: Shape,
    tiled_mma: TiledMma,
    cluster_shape_vmnk: Shape = None,
    *,
    internal_type: type[Numeric] | None = None,
) -> TmaInfo:
    """Create the TMA atom and coordinates of operand B (N, K) of a GEMM, or of its scale factors.

    Multicast is along M of the cluster. 4-bit and 6-bit floats are unpacked if the MMA reads a byte per element. See
    :func:`make_tiled_tma_atom` for scale factors.
    """
    return _of_operand(
        (1, 2), 1, op, gmem_tensor, smem_layout, mma_tiler_mnk, tiled_mma, cluster_shape_vmnk, internal_type
    )


# --------------------------------------------------------------------------------------------------------- in a kernel


def _tma_atom(atom: Any, what: str) -> CopyAtom:
    if not isinstance(atom, CopyAtom) or not isinstance(atom.op, TmaOp):
        raise KernelTypeError("F254", f"{what}: atom must be a TMA atom, got {atom!r}")
    return atom


def map_of(atom: CopyAtom, what: str) -> Pointer:
    """Return the address of the tensor map of a TMA atom, in generic memory."""
    op = in_kernel(what).op("cute_nvgpu.arch.tensor_map_address", [_tma_atom(atom, what).ssa])
    return Pointer.of(op.results[0])


def checked_map(pointer: Any, what: str) -> Pointer:
    """Return the address of a tensor map.  Raises F254 unless it is a pointer aligned to 64 bytes."""
    if not isinstance(pointer, Pointer):
        raise KernelTypeError("F254", f"{what}: the address of a tensor map must be a pointer, got {pointer!r}")
    if pointer.alignment < MAP_ALIGNMENT:
        raise KernelTypeError(
            "F254", f"{what}: a tensor map must be aligned to {MAP_ALIGNMENT} bytes, got {pointer!r}",
            hint="state the alignment: cute.make_ptr(cute.Int64, p.toint(), p.memspace, assumed_align=64)",
        )  # fmt: skip
    return pointer


def with_map(atom: CopyAtom, pointer: Any, what: str) -> CopyAtom:
    """Return a TMA atom that uses the tensor map at an address."""
    found = _tma_atom(atom, what)
    operands = [found.ssa, checked_map(pointer, what).ssa]
    value = in_kernel(what).value("cute_nvgpu.arch.tensor_map_at", operands, [found.type])
    return CopyAtom(found.type, found.op, value, found.state)


def prefetch_descriptor(atom: CopyAtom) -> None:
    """Prefetch the tensor map of a TMA atom."""
    what = "cute.nvgpu.cpasync.prefetch_descriptor"
    in_kernel(what).op("cute_nvgpu.arch.prefetch_tensormap", [_tma_atom(atom, what).ssa])


def prefetch_tile(atom: CopyAtom, coords: Any, what: str) -> None:
    """Prefetch one box of a TMA load into the L2 cache."""
    if coords.is_memory or not hasattr(atom.type, "LOADS") or not atom.type.LOADS:
        raise KernelTypeError("F254", f"{what}: needs a TMA load and its coordinate tensor, got {coords!r}")
    if size(coords.shape_payload) != atom.type.values():
        raise KernelTypeError(
            "F254", f"{what}: the coordinates must cover one box ({atom.type.values()} elements), got {coords!r}"
        )
    first = coords.iterator
    if atom.type.data.mode:
        rows = dict(atom.state).get("rows")
        if rows is None:
            raise KernelTypeError("F254", f"{what}: needs the row indices", hint='atom.set("rows", (i, j, k, l))')
        first = (first[0], *(first[1] + row for row in rows))
    where = [Int32(x).ssa for x in first]
    in_kernel(what).op("cute_nvgpu.arch.tma_prefetch", [atom.ssa, *where])


def tma_partition(
    atom: CopyAtom, cta_coord: Coord, cta_layout: LayoutLike, smem_tensor: Tensor, gmem_tensor: Tensor
) -> tuple[Tensor, Tensor]:
    """Partition shared memory and coordinates for a TMA atom: ``(tile, rest…)``, with one copy per element of the rest.

    Mode 0 of both tensors is the tile.  With multicast the result is this block's part of the tile.

    Args:
        atom: a TMA atom.
        cta_coord: this block's position among the blocks that share the tile.
        cta_layout: the layout of those blocks.
        smem_tensor: the tensor in shared memory.
        gmem_tensor: the TMA coordinate tensor.
    """
    from cute_dialect.lang.machine.factor_maps import repeats  # late: start-up
    from cute_dialect.lang.machine.tiled_mma import static_payload  # late: start-up
    from cute_dialect.lang.values.layout_functions import filter_zeros  # late: start-up

    what = "cute.nvgpu.cpasync.tma_partition"
    found = _tma_atom(atom, what)
    smem = tensor_operand(smem_tensor, what, "shared tensor")
    gmem = tensor_operand(gmem_tensor, what, "tensor of coordinates")
    if gmem.is_memory or not smem.is_memory:
        raise KernelTypeError(
            "F254", f"{what}: needs a tensor in shared memory and a TMA coordinate tensor, got {smem!r} and {gmem!r}"
        )
    here, there = _first_size(smem), _first_size(gmem)
    if here != there:
        raise KernelTypeError(
            "F254", f"{what}: mode 0 of both tensors must be the tile, but the sizes are {here} and {there}",
            hint=f"merge modes with cute.group_modes(t, 0, 2)\nthe tensors are {smem!r} and {gmem!r}",
        )  # fmt: skip
    blocks = int(size(static_payload(cta_layout, f"{what}: cta_layout")))
    if blocks == 1:
        return smem, gmem
    if not isinstance(found.op, TmaOp) or not found.op.multicast:
        raise KernelTypeError(
            "F254", f"{what}: {found.op.name} loads for one block, but cta_layout has {blocks}",
            hint="use cute.nvgpu.cpasync.CopyBulkTensorTileG2SMulticastOp()",
        )  # fmt: skip
    if repeats(smem):  # Scale factors: the parts are those of the factors.
        smem, gmem = filter_zeros(smem), filter_zeros(gmem)
    place = cta_layout(cta_coord) if callable(cta_layout) else cta_coord
    return _slice(smem, smem, blocks, place, what), _slice(gmem, smem, blocks, place, what)


def _first_size(tensor: Any) -> Any:
    shape = tensor.shape_payload
    return size(shape[0]) if isinstance(shape, tuple) else size(shape)


def _slice(tensor: Any, smem: Any, blocks: int, place: Any, what: str) -> Any:
    """Return block ``place``'s part of mode 0 of a tensor. The parts are consecutive in shared memory."""
    from cute_dialect.lang.values.layout_functions import composition  # late: start-up
    from cute_dialect.lang.values.layouts import Layout  # late: start-up

    layout = smem.payload
    plain = layout.outer if not isinstance(layout, Payload) else layout
    tile = layout_modes(plain)[0] if isinstance(plain.shape, tuple) else plain
    order = right_inverse(tile)
    n = int(size(tile))
    if int(size(order)) != n or n % blocks:
        raise KernelTypeError("F254", f"{what}: the tile {tile} cannot be split evenly over {blocks} blocks")
    parts = Layout(logical_divide(order, raw_layout(n // blocks, 1)))
    rest = (None,) * (len(tensor.shape_payload) - 1 if isinstance(tensor.shape_payload, tuple) else 0)
    return composition(tensor, (parts, *rest))[((None, place), *rest)]


# -------------------------------------------------------------------------------------------------------------- masks


def make_layout_image_mask(layout: LayoutLike, coord: Coord, mode: int) -> Int16:
    """Return an Int16 mask with a bit for each block that a layout reaches from ``coord`` along one mode.

    For ``(2,4):(1,2)`` along mode 1 from (1, 0) these are blocks 1, 3, 5 and 7: ``0b10101010``.
    """
    from cute_dialect.lang.machine.tiled_mma import static_payload  # late: start-up

    what = "cute.make_layout_image_mask"
    payload = static_payload(layout, f"{what}: layout")
    modes = layout_modes(payload)
    if not isinstance(coord, tuple | list) or len(coord) != len(modes):
        raise KernelTypeError("F254", f"{what}: coord must have {len(modes)} modes, got {coord!r}")
    if int(size(payload)) > 16:
        raise KernelTypeError("F254", f"{what}: the cluster can have at most 16 blocks, got {payload}")
    along = modes[mode]
    pattern = 0
    for i in range(int(size(along))):
        pattern |= 1 << int(evaluate(i, along))  # pyright: ignore[reportArgumentType]
    start: Any = 0
    for i, (c, m) in enumerate(zip(coord, modes)):
        if i != mode:
            start = start + _offset(c, m)
    mask: Any = Int32(pattern)
    return Int16(mask << Int32(start))


def _offset(coord: Any, mode: Any) -> Any:
    from cute_dialect.lang.values.layouts import Layout  # late: start-up

    return 0 if int(size(mode)) == 1 else Layout(mode)(coord)


def create_tma_multicast_mask(cta_layout_vmnk: LayoutLike, cta_coord_vmnk: Coord, mcast_mode: int) -> Int16:
    """Return the mask of the blocks of the cluster that share a tile along one mode; see ``make_layout_image_mask``."""
    return make_layout_image_mask(cta_layout_vmnk, cta_coord_vmnk, mcast_mode)


# --------------------------------------------------------------------------------------------------------------- im2col


class Im2colOp(TmaOp):
    """Base of the descriptors of im2col TMA copies."""

    multicast: ClassVar[bool | None] = None


def make_im2col_tma_atom(
    op: Im2colOp, gmem_tensor: Tensor, *, channels: int, pixels: int, lower: Sequence[int], upper: Sequence[int],
    pixel_strides: Sequence[int] | None = None, swizzle: int = 0, oob: str = "zero", l2_promotion: int = 128,
    halo: int = 0,
) -> CopyAtom:  # fmt: skip
    """Create the im2col TMA atom of an image (C, W, …, N) with contiguous C. Called on the host.

    For a filter of S taps along W with padding p and dilation d, ``lower`` is -p and ``upper`` is p - (S - 1) * d. A
    copy for tap s sets ``atom.set("im2col_offsets", (s * d, …))``.

    An atom of ``CopyBulkTensorIm2colWG2SOp`` loads pixels along W and N, and keeps the coordinates H and D. Corners and
    strides are those along W. Its tiles have ``pixels + halo`` pixels. ``CopyBulkTensorIm2colW128G2SOp`` loads 128
    pixels, with a halo after each 32. A copy sets one offset, that along W.

    Args:
        op: an im2col TMA descriptor.
        gmem_tensor: the image in global memory.
        channels: channels per instruction.
        pixels: pixels per instruction.
        lower: lower corner of the box of base pixels, W first, as an offset from the image's first pixel.
        upper: upper corner, W first, as an offset from the image's last pixel.
        pixel_strides: the strides of the convolution; None means 1.
        swizzle: the swizzle width of the rows in shared memory, in bytes.
        oob: fill value for out-of-bounds elements.
        l2_promotion: L2 promotion size in bytes.
        halo: pixels that a load along W adds: 0 to 511 after the last one, or 0 to 31 after each 32.
    """
    what = f"make_im2col_tma_atom({getattr(op, 'name', op)})"
    if not isinstance(op, Im2colOp):
        raise KernelTypeError("F250", f"{what}: op must be an im2col TMA descriptor")
    tracer = current()
    source = global_source(gmem_tensor, op, what, "the atom")
    image: Any = reduced(source, op)
    words: list[str] = [str(image.type.data.ptr.element)]
    words += [reduction] if (reduction := getattr(op, "reduction_kind", "")) else []
    words += [f"channels = {int(channels)}", f"pixels = {int(pixels)}"]
    wide = getattr(op, "wide", "")
    for name, numbers, other in (("lower", lower, 0), ("upper", upper, 0), ("pixel_strides", pixel_strides, 1)):
        if numbers is not None:
            rest = [other] * (len(source.shape) - 2 - len(numbers)) if wide else []
            words.append(f"{name} = ({', '.join(str(int(n)) for n in [*numbers, *rest])})")
    given = (
        ("swizzle", swizzle, 0),
        ("oob", oob, "zero"),
        ("l2", l2_promotion, 128),
        ("mode", wide, ""),
        ("halo", halo, 0),
    )
    words += [f"{name} = {value}" for name, value, usual in given if value != usual]
    type = parsed_atom(f"!cute_nvgpu.atom.tma_{op.direction}_im2col<{', '.join(words)}>", what)
    made = tracer.op(f"cute_nvgpu.make_tma_{op.direction}_im2col", [image], [type])
    try:
        made.check_types()  # The type was given explicitly, so check that the tensor fits it.
    except AlgebraError as e:
        refuse("F254", what, e, hint=f"the tensor is {source!r}")
    return CopyAtom(type, op, made.results[0])


def prefetch_columns(atom: CopyAtom, coords: Any, what: str) -> None:
    """Prefetch into the L2 cache the data of one im2col load."""
    kind: Any = atom.type
    if coords.is_memory or not kind.LOADS:
        raise KernelTypeError("F254", f"{what}: needs an im2col load and a coordinate tensor, got {coords!r}")
    moved = kind.data.channels * kind.data.rows
    if size(coords.shape_payload) != moved:
        raise KernelTypeError(
            "F254", f"{what}: the coordinates must cover one instruction ({moved} elements), got {coords!r}"
        )
    offsets = dict(atom.state).get("im2col_offsets", (0,) * kind.data.offsets)
    where = [*[Int32(x).ssa for x in coords.iterator], *[Int16(x).ssa for x in offsets]]
    in_kernel(what).op("cute_nvgpu.arch.tma_prefetch_im2col", [atom.ssa, *where])
