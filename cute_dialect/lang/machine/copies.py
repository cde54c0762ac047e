"""Copies of tensors: by an atom, by a tiled copy, or with the widest possible accesses.

A tiled copy distributes a copy atom over threads and values.  Its slice is one thread's partition.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any, NoReturn

from cute_dialect.algebra.compose import compose
from cute_dialect.algebra.evaluation import evaluate, size
from cute_dialect.algebra.inverses import left_inverse
from cute_dialect.algebra.layout import coalesce, flat_modes, make_layout
from cute_dialect.algebra.leaf import AlgebraError
from cute_dialect.algebra.tiled_copy import make_layout_tv, thread_values
from cute_dialect.algebra.values import Layout as LayoutPayload
from cute_dialect.algebra.values import layout_modes, raw_layout
from cute_dialect.lang.machine.atoms import CopyAtom, check_target, make_copy_atom, refuse
from cute_dialect.lang.machine.instructions import as_attribute, emit_machine, in_kernel, pointer, tensor_operand
from cute_dialect.lang.machine.threads import issued_by_one, one_of_the_warp
from cute_dialect.lang.machine.tiled_mma import Tiled, TiledMma, partition_view, static_payload, thread_coord
from cute_dialect.lang.machine.tma import Im2colOp, prefetch_columns, prefetch_tile, with_map
from cute_dialect.lang.tracing.errors import KernelTypeError, LayoutError
from cute_dialect.lang.tracing.tracer import current, op_class, parse_type
from cute_dialect.lang.values.dtypes import Boolean, Int16, Int64
from cute_dialect.lang.values.dynamic import is_dynamic
from cute_dialect.lang.values.indexing import check_access, check_thread
from cute_dialect.lang.values.int_tuples import to_ssa
from cute_dialect.lang.values.layouts import Layout
from cute_dialect.lang.values.numeric import as_number
from cute_dialect.lang.values.tensors import Tensor, make_tensor
from cute_dialect.lang.values.tuple_functions import group_modes
from cute_dialect.spaces import AddressSpace

if TYPE_CHECKING:
    from xdsl.ir import Attribute, SSAValue

    from cute_dialect.algebra.values import IntTuple, Tile
    from cute_dialect.lang.values.pointers import Pointer
    from cute_dialect.lang.values.signature_types import Int, LayoutLike, Tiler, Value


class TiledCopy(Tiled):
    """A copy of tiles by many threads: an atom, the assignment of values to threads, and the tile that they cover.

    ``get_slice(tid)`` returns one thread's slice.
    """

    __slots__ = ()
    making = "cute.make_tiled_copy"

    atom: CopyAtom

    def __init__(self, type: Attribute, atom: CopyAtom):
        self.type = type
        self.atom = atom

    def fixed(self) -> tuple[object, ...]:
        return (self.type,)

    def parts(self) -> tuple[object, ...]:
        return (self.atom,)

    @classmethod
    def remade(cls, fixed: tuple[Any, ...], parts: Sequence[Any]) -> TiledCopy:
        return cls(*fixed, *parts)

    @property
    def name(self) -> str:
        return f"a tiled copy of {self.atom.op.name}"

    @property
    def value_type(self) -> Any:
        """The element type."""
        return self.atom.value_type

    @property
    def layout_tv_tiled(self) -> Any:
        """Layout (thread, value) -> column-major index in the tile."""
        return Layout(self.type.data.layout_tv)

    layout_tv = layout_tv_tiled
    layout_src_tv = property(lambda self: self.atom.layout_src_tv)
    layout_dst_tv = property(lambda self: self.atom.layout_dst_tv)

    @property
    def tiler_mn(self) -> Any:
        """The extents of the tile that all threads cover together; a layout for a mode that the tile does not fill."""
        return _shown_tile(self.type.data.tiler)

    @property
    def size(self) -> int:
        return int(size(layout_modes(self.type.data.layout_tv)[0]))

    def set(self, field: str, value: Value) -> None:
        """Set a field of the atom's run-time state; see :class:`CopyAtom`."""
        self.atom.set(field, value)

    def get_slice(self, thr_idx: Int) -> ThrCopy:
        """Return one thread's slice of the copy."""
        return ThrCopy(self.type, self.atom, thr_idx)

    def retile(self, src: Tensor) -> Tensor:
        """Return a fragment of another partition (of a tiled MMA) in the order in which the copy moves its values."""
        return partition_view("cute.tiled.copy.retile", self.ssa, src, (), f"retile by {self.name}", "fragment")

    def describe(self) -> str:
        """Describe the instruction, the thread-value layout and the tile."""
        lines = [
            f"atom      {self.atom.type}",
            f"threads   {self.size}, values of {self.value_type!r}",
            f"tile      {self.tiler_mn}",
            f"layout_tv {self.layout_tv_tiled}",
        ]
        return "\n".join(lines)


class ThrCopy(TiledCopy):
    """One thread's slice of a tiled copy."""

    __slots__ = ("thr_idx",)

    thr_idx: Any

    def __init__(self, type: Attribute, atom: CopyAtom, thr_idx: Any):
        super().__init__(type, atom)
        self.thr_idx = thr_idx

    def parts(self) -> tuple[object, ...]:
        return (self.atom, self.thr_idx)

    def partition_S(self, src: Tensor) -> Tensor:
        """Return the thread's partition ``((v,rest_v), RestM, …)`` of a source; ``v`` are the values of one atom."""
        return self._partition("S", src)

    def partition_D(self, dst: Tensor) -> Tensor:
        """Return the thread's partition of a destination; see :meth:`partition_S`."""
        return self._partition("D", dst)

    def _partition(self, side: str, tensor: Tensor) -> Tensor:
        name = f"cute.tiled.copy.partition_{side}"
        what = f"partition_{side} by {self.name}"
        made = partition_view(name, self.ssa, tensor, (thread_coord(self.thr_idx),), what, "tensor")
        check_thread(made, tensor, self.thr_idx, self.size, self.name)
        return made

    def retile_S(self, src: Tensor) -> Tensor:
        """Return a fragment in the order in which the copy reads its values; see :meth:`TiledCopy.retile`."""
        return self.retile(src)

    def retile_D(self, dst: Tensor) -> Tensor:
        """Return a fragment in the order in which the copy writes its values; see :meth:`TiledCopy.retile`."""
        return self.retile(dst)


def copy_atom_of(x: Any, what: str) -> CopyAtom:
    """Return a copy atom, or that of a tiled copy.  Raises F250 for anything else."""
    if isinstance(x, TiledCopy):
        return x.atom
    if not isinstance(x, CopyAtom):
        raise KernelTypeError(
            "F250", f"{what}: atom must be a copy atom, got {x!r}", hint="use cute.make_copy_atom(op, dtype)"
        )
    return x


def _shown_tile(tiler: Tile | IntTuple) -> Any:
    if isinstance(tiler, tuple):
        return tuple([_shown_tile(part) for part in tiler])
    return Layout(tiler) if isinstance(tiler, LayoutPayload) and not _is_contiguous(tiler) else int(size(tiler))


def _is_contiguous(tile: LayoutPayload) -> bool:
    kept = coalesce(tile)
    return size(tile) == 1 or (kept.shape, kept.stride) == (size(tile), 1)


def _tiled(atom: Any, what: str, layout_tv: LayoutPayload, tiler: Tile | IntTuple) -> TiledCopy:
    from cute_dialect.dialect.tile_copies import made_copy  # late: start-up

    found = copy_atom_of(atom, what)
    try:
        return TiledCopy(made_copy(found.type, layout_tv, tiler), found)
    except AlgebraError as e:
        refuse("F251", what, e)


def make_tiled_copy_tv(atom: CopyAtom, thr_layout: LayoutLike, val_layout: LayoutLike) -> TiledCopy:
    """Create a tiled copy from a thread layout and a layout of each thread's values.

    For example, ``(4,32):(32,1)`` threads with ``(4,4):(4,1)`` values each cover a tile of 16 x 128.
    """
    what = "cute.make_tiled_copy_tv"
    threads, values = (
        static_payload(thr_layout, f"{what}: thr_layout"),
        static_payload(val_layout, f"{what}: val_layout"),
    )
    try:
        extents, layout_tv = make_layout_tv(threads, values)
    except AlgebraError as e:
        refuse("F251", what, e)
    return _tiled(atom, what, layout_tv, extents)


def make_tiled_copy(atom: CopyAtom, layout_tv: LayoutLike, tiler_mn: Tiler) -> TiledCopy:
    """Create a tiled copy from a layout (thread, value) -> column-major index in a tile.

    ``tiler_mn`` has the extents of the tile, or for each mode a layout of its elements, such as (8,2):(1,16).
    """
    what = "cute.make_tiled_copy"
    return _tiled(atom, what, static_payload(layout_tv, f"{what}: layout_tv"), _tile(tiler_mn, what))


def _tile(tiler: Any, what: str) -> Any:
    if isinstance(tiler, tuple | list):
        return tuple([_tile(t, what) for t in tiler])
    return tiler if isinstance(tiler, int) else static_payload(tiler, f"{what}: tiler_mn")


def _of_mma(operand: str, atom: CopyAtom, tiled_mma: TiledMma) -> TiledCopy:
    from cute_dialect.dialect.inference import infer_types_memo  # late: start-up

    what = f"cute.make_tiled_copy_{operand}"
    if not isinstance(tiled_mma, TiledMma):
        raise KernelTypeError("F251", f"{what}: tiled_mma must be a tiled MMA, got {tiled_mma!r}")
    found = copy_atom_of(atom, what)
    try:
        (made,) = infer_types_memo(op_class(what), [found.type, tiled_mma.type], {})
    except AlgebraError as e:
        refuse("F251", what, e)
    return TiledCopy(made, found)


def make_tiled_copy_A(atom: CopyAtom, tiled_mma: TiledMma) -> TiledCopy:
    """Create the tiled copy for the fragments of A of a tiled MMA."""
    return _of_mma("A", atom, tiled_mma)


def make_tiled_copy_B(atom: CopyAtom, tiled_mma: TiledMma) -> TiledCopy:
    """Create the tiled copy for the fragments of B of a tiled MMA."""
    return _of_mma("B", atom, tiled_mma)


def make_tiled_copy_C(atom: CopyAtom, tiled_mma: TiledMma) -> TiledCopy:
    """Create the tiled copy for the accumulators of a tiled MMA."""
    return _of_mma("C", atom, tiled_mma)


def make_tiled_copy_S(atom: CopyAtom, tiled_copy: TiledCopy) -> TiledCopy:
    """Create a tiled copy with the tile of another, in which each thread has the values that it reads in the other."""
    return _with_side(atom, "cute.make_tiled_copy_S", tiled_copy, "src")


def make_tiled_copy_D(atom: CopyAtom, tiled_copy: TiledCopy) -> TiledCopy:
    """Create a tiled copy with the tile of another, in which each thread has the values that it writes in the other."""
    return _with_side(atom, "cute.make_tiled_copy_D", tiled_copy, "dst")


def _with_side(atom: CopyAtom, what: str, tiled_copy: TiledCopy, side: str) -> TiledCopy:
    from cute_dialect.dialect.atom_types import TiledCopy as Payload  # late: start-up
    from cute_dialect.dialect.atom_types import TiledCopyType, verify_tiled_copy  # late: start-up

    found, data = copy_atom_of(atom, what), tiled_copy.type.data
    try:
        counts = (data.atom.threads(), data.atom.values())
        made = Payload(found.type, thread_values(data.layout_tv, counts, data.atom.reference_map(side)), data.tiler)
        verify_tiled_copy(made)
        return TiledCopy(TiledCopyType(made), found)
    except AlgebraError as e:
        refuse("F251", what, e)


def make_tiled_copy_C_atom(atom: CopyAtom, tiled_mma: TiledMma) -> TiledCopy:
    """Create the smallest tiled copy that moves accumulators of a tiled MMA: one instruction per warp.

    Its tile has the rows and columns that the first values of all threads reach. With a permutation of the MMA, these
    need not be consecutive.
    """
    what = "cute.make_tiled_copy_C_atom"
    whole = make_tiled_copy_C(atom, tiled_mma)
    threads, values = layout_modes(whole.type.data.layout_tv)
    first = make_layout(threads, compose(values, raw_layout(whole.atom.type.values(), 1)))
    rows, columns = (int(size(t)) for t in whole.type.data.tiler)
    reached = [_reached(first, (rows, columns), stride) for stride in ((1, 0), (0, 1))]
    extents = tuple([int(size(t)) for t in reached])
    if extents != (rows, columns):
        tile = make_layout(*(compose(raw_layout(n, d), t) for n, d, t in zip((rows, columns), (1, rows), reached)))
        first = compose(left_inverse(tile), first)
    if len({int(evaluate(i, first)) for i in range(int(size(first)))}) != extents[0] * extents[1]:  # pyright: ignore
        raise KernelTypeError("F251", f"{what}: the values of one atom do not fill a tile of rows and columns: {first}")
    return _tiled(atom, what, first, tuple([n if _is_contiguous(t) else t for t, n in zip(reached, extents)]))


def _reached(layout_tv: LayoutPayload, shape: tuple[int, int], stride: tuple[int, int]) -> LayoutPayload:
    """Return the layout of the coordinates of one mode of a tile that a layout (thread, value) reaches, in order."""
    modes = flat_modes(compose(raw_layout(shape, stride), layout_tv))
    moved = sorted((d, n) for n, d in zip(*modes) if d != 0 and n != 1)
    return coalesce(raw_layout(tuple([n for _, n in moved]), tuple([d for d, _ in moved])))


def make_cotiled_copy(atom: CopyAtom, atom_layout_tv: LayoutLike, data_layout: LayoutLike) -> TiledCopy:
    """Create a tiled copy from a layout (thread, value) -> offset in ``data_layout``."""
    what = "cute.make_cotiled_copy"
    data = static_payload(data_layout, f"{what}: data_layout")
    try:
        layout_tv = compose(left_inverse(data), static_payload(atom_layout_tv, f"{what}: atom_layout_tv"))
    except AlgebraError as e:
        refuse("F251", what, e)
    return _tiled(atom, what, layout_tv, data.shape)


# -------------------------------------------------------------------------------------------------------------- copying

_STATE = {"tma_bar_ptr": "tma_bar", "mcast_mask": "multicast_mask", "cache_policy": "cache_hint"}
"""Maps the arguments of a copy to fields of the atom."""


def field_value(field: str, value: Any, what: str) -> SSAValue:
    """Return the SSA value for a field of an atom."""
    if field == "tma_bar":
        return pointer(value, f"the barrier of {what}", "i64", tuple(space for space in AddressSpace if space.shared))
    if field == "rows":
        if not (isinstance(value, tuple | list) and len(value) == 4):
            raise KernelTypeError("F254", f"{what}: rows must be a tuple or list of four row indices, got {value!r}")
        hint = ""
        try:
            if not any(x is None or isinstance(x, tuple | list | slice) for x in value):
                return to_ssa(tuple(value), "coord")
        except LayoutError as e:
            hint = e.hint
        raise KernelTypeError("F254", f"{what}: rows must be four integers, got {value!r}", hint=hint)
    if field == "im2col_offsets":
        return to_ssa(value, "coord")
    kinds = {"multicast_mask": Int16, "cache_hint": Int64, "pred": Boolean}
    if field not in kinds:
        raise KernelTypeError("F254", f"{what}: unknown atom field '{field}'")
    return kinds[field](as_number(value)).ssa


def atom_with_state(atom: CopyAtom, given: dict[str, Any], what: str) -> SSAValue:
    """Return an atom's SSA value with its state and a copy's arguments.  Raises F254 for a field it lacks."""
    from xdsl.dialects.builtin import StringAttr

    t = current()
    value = atom.ssa
    state = {**dict(atom.state), **{k: v for k, v in given.items() if v is not None}}
    having = atom.type.fields()
    for field, x in state.items():
        if field not in having:
            has = f"run-time fields: {', '.join(having)}" if having else "it has no run-time fields"
            names = {v: k for k, v in _STATE.items()}
            raise KernelTypeError("F254", f"{what}: {atom.op.name} does not take {names.get(field, field)} ({has})")
        operands = [value, field_value(field, x, what)]
        value = t.value("cute.atom.set_value", operands, [atom.type], {"field": StringAttr(field)})
    return value


def _state_of(atom: CopyAtom, tma_bar_ptr: Any, mcast_mask: Any, cache_policy: Any, what: str) -> dict[str, Any]:
    """Return the fields that a copy sets, and check the barrier and the multicast mask."""
    multicast = getattr(atom.op, "multicast", None)
    if multicast is False and mcast_mask is not None and not is_dynamic(mcast_mask) and int(mcast_mask) == 0:
        mcast_mask = None
    if multicast is False and mcast_mask is not None:
        raise KernelTypeError(
            "F254", f"{what}: {atom.op.name} does not take mcast_mask",
            hint="create the atom with cute.nvgpu.cpasync.CopyBulkTensorTileG2SMulticastOp()",
        )  # fmt: skip
    state = dict(atom.state)
    if multicast is True and mcast_mask is None and "multicast_mask" not in state:
        raise KernelTypeError(
            "F254", f"{what}: {atom.op.name} needs mcast_mask, with one bit per destination block of the cluster"
        )
    if getattr(atom.op, "needs_barrier", False) and tma_bar_ptr is None and "tma_bar" not in state:
        raise KernelTypeError("F254", f"{what}: {atom.op.name} needs tma_bar_ptr, the mbarrier that counts its bytes")
    return {"tma_bar": tma_bar_ptr, "multicast_mask": mcast_mask, "cache_hint": cache_policy}


def copy(
    atom: CopyAtom | TiledCopy,
    src: Tensor,
    dst: Tensor | tuple[Tensor, Tensor],
    *,
    pred: Tensor | None = None,
    thread: Int | None = None,
    tma_bar_ptr: Pointer | None = None,
    mcast_mask: Int | None = None,
    cache_policy: Int | None = None,
    im2col_offsets: Sequence[Int] | None = None,
    rows: Sequence[Int] | None = None,
    tma_desc_ptr: Pointer | None = None,
    partial: bool = False,
    unroll_factor: int | None = None,
) -> None:
    """Copy a tensor to one of equal size, with an atom or a tiled copy.

    For instructions that one thread issues (TMA, bulk copies, ``tcgen05.cp``), one thread of the warp is elected. A
    tiled copy that distributes the instructions over several threads elects none. A load of tensor memory includes the
    wait for it; after stores, call ``cute.arch.fence_view_async_tmem_store``.

    Args:
        atom: the copy atom or tiled copy. A ``CopyUniversalOp`` without a width copies tensors of any element type.
        src: the source tensor.
        dst: the destination tensor; for a load with a reduction, the values and the results of the reduction.
        pred: a register tensor of Boolean with one flag per element, or per access if mode 0 has stride 0 or size 1.
        thread: the thread index, if ``src`` and ``dst`` are whole tiles of a tiled copy.
        tma_bar_ptr: the mbarrier that counts the bytes of a TMA load.
        mcast_mask: the blocks of the cluster that a multicast load writes to, one bit per block.
        cache_policy: an L2 cache policy.
        im2col_offsets: the filter-tap offsets of an im2col load, W first.
        rows: the four row indices of a gather4 load or a scatter4 store, relative to the tile's first row.
        tma_desc_ptr: the address of the tensor map that a TMA copy uses in place of the atom's.
        partial: allow accesses to be cut at the end of a tensor that the tile does not divide.
        unroll_factor: ignored; copies are always unrolled.
    """
    del unroll_factor  # Copies are always unrolled as far as their layouts need.
    found = copy_atom_of(atom, "cute.copy")
    what = f"cute.copy by {found.op.name}"
    from xdsl.dialects.builtin import UnitAttr

    tracer = in_kernel(what)
    check_target(found.op.name, found.op.chip)
    if getattr(found.op, "reduces", False):
        load_and_reduce(found, src, dst, what)
        return
    source, destination = tensor_operand(src, what, "source"), tensor_operand(dst, what, "destination")
    found = _of_elements(found, source, destination)
    state = _state_of(found, tma_bar_ptr, mcast_mask, cache_policy, what)
    state.update(im2col_offsets=im2col_offsets, rows=rows)
    if getattr(found.op, "mode", "") and rows is None and "rows" not in dict(found.state):
        raise KernelTypeError("F254", f"{what}: {found.op.name} needs rows, the indices of its four rows")
    shared_out = isinstance(atom, TiledCopy) and atom.size > 1  # Each thread of the tiled copy issues its own part.
    if found.type.ONE_THREAD and not shared_out and "pred" not in dict(found.state):
        state["pred"] = one_of_the_warp()
    value = atom_with_state(found if tma_desc_ptr is None else with_map(found, tma_desc_ptr, what), state, what)
    operands = [value, _with_sign(source, found), _with_sign(destination, found)]
    name = "cute.copy"
    if thread is not None:
        if not isinstance(atom, TiledCopy):
            raise KernelTypeError("F254", f"{what}: 'thread' needs a tiled copy", hint="cute.make_tiled_copy_tv")
        operands = [_with_state(atom, value), *operands[1:], thread_coord(thread)]
        name = "cute.tiled_copy"
    if pred is not None:
        flags = tensor_operand(pred, what, "predicate")
        operands.append((flags if hasattr(found.type, "row") else _spread(flags, source)).ssa)
    if pred is None:
        check_access(source, "read")
        check_access(destination, "write")
    attributes = {"partial": UnitAttr()} if partial else None
    try:
        if destination.memspace == AddressSpace.tmem and source.memspace == AddressSpace.smem:
            issued_by_one(lambda: tracer.op(name, operands, None, None, attributes=attributes))
        else:
            tracer.op(name, operands, None, None, attributes=attributes)
    except LayoutError as e:
        _refuse_copy(what, e, source, destination)
    if source.memspace == AddressSpace.tmem:
        emit_machine("tmem_wait", what=what, kind="load")


def load_and_reduce(atom: CopyAtom, src: Tensor, dst: object, what: str) -> None:
    """Load tensor memory, one instruction at a time, with the reduction of each; then wait for the loads."""
    if not isinstance(dst, tuple | list) or len(dst) != 2:
        raise KernelTypeError(
            "F254", f"{what}: dst must be a tuple of the values and the results of the reduction, got {dst!r}"
        )
    source = tensor_operand(src, what, "source")
    values, results = (tensor_operand(x, what, name) for x, name in zip(dst, ("values", "results")))
    modes = len(layout_modes(source.payload)) - 1
    counts = [int(size(mode)) for mode in layout_modes(source.payload)[1:]]
    if int(size(results.shape_payload)) != prod(counts):
        raise KernelTypeError(
            "F254",
            f"{what}: the results of the reduction must have one element per instruction, {prod(counts)}, got "
            f"{results!r}",
        )
    for number, at in enumerate(product(*(range(n) for n in reversed(counts)))):
        where = (None, *reversed(at)) if modes else None
        result = make_tensor(results.iterator + evaluate(number, results.payload), raw_layout(1, 0))
        operands = [source[where].ssa, values[where].ssa, result.ssa]
        try:
            current().op("cute_nvgpu.arch.tmem_load_red", operands, None, {"atom": atom.type})
        except LayoutError as e:
            _refuse_copy(what, e, source, values)
    emit_machine("tmem_wait", what=what, kind="load")


def _of_elements(atom: CopyAtom, source: Tensor, destination: Tensor) -> CopyAtom:
    """Return the atom of plain copies of any width for the element type of the tensors; other atoms unchanged."""
    element = source.element_type
    if atom.type.name != "cute_nvgpu.atom.universal_copy" or atom.type.data.bits:
        return atom
    if element is None or element is not destination.element_type or element.width == atom.value_type.width:
        return atom
    return make_copy_atom(atom.op, element)


def _with_sign(tensor: Any, atom: CopyAtom) -> SSAValue:
    """Return a tensor's value, recast to unsigned integers if the atom's type requires them."""
    from xdsl.dialects.builtin import IntegerType

    from cute_dialect.dialect.tensors import recast_type  # late: start-up

    wanted: Any = atom.type.element  # pyright: ignore[reportAttributeAccessIssue]
    given: Any = tensor.is_memory and tensor.type.data.ptr.element
    kinds = isinstance(wanted, IntegerType) and isinstance(given, IntegerType)
    if not kinds or wanted == given or wanted.width != given.width:
        return tensor.ssa
    return current().value("cute.recast_tensor", [tensor.ssa], [recast_type(tensor.type, wanted)])


def _with_state(tiled: TiledCopy, atom: SSAValue) -> SSAValue:
    if atom is tiled.atom.ssa:
        return tiled.ssa
    return current().value("cute.make_tiled_copy", [atom], [tiled.type])


def _spread(pred: Any, source: Any) -> Any:
    """Return a predicate with one flag per element, for a predicate whose mode 0 counts a thread's accesses.

    Mode 0 of a partition is ``(v, rest_v)``.  Flags ``(rest_v, M, K)`` become ``((v, rest_v), M, K)`` with stride 0
    along ``v``.
    """
    if pred.is_memory and source.payload is not None:
        shape = source.shape_payload
        flags = pred.payload
        if isinstance(shape, tuple) and isinstance(shape[0], tuple) and isinstance(flags, LayoutPayload):
            modes = layout_modes(flags) if isinstance(flags.shape, tuple) else [flags]
            accesses, values = size(shape[0][1:]), size(shape[0][0])
            if len(modes) == len(shape) and 1 < int(size(modes[0])) == accesses and values != 1:
                first = modes[0]
                spread = raw_layout(
                    ((values, first.shape), *(m.shape for m in modes[1:])),
                    ((0, first.stride), *(m.stride for m in modes[1:])),
                )
                operands = [pred.iterator.ssa, Layout(spread).ssa]
                return Tensor.of(current().value("cute.make_view", operands), pred.element_type)
    return pred


def copy_atom_call(atom: CopyAtom, src: Tensor, dst: Tensor, *, pred: Tensor | None = None, **state: Any) -> None:
    """Copy the elements of one instruction; see :func:`copy`."""
    copy(atom, src, dst, pred=pred, **state)


def autovec_copy(src: Tensor, dst: Tensor) -> None:
    """Copy a tensor to one of equal size, with the widest access that both layouts and alignments allow."""
    _plain_copy(src, dst, None, "cute.autovec_copy")


def basic_copy(src: Tensor, dst: Tensor) -> None:
    """Copy a tensor to one of equal size, element by element, or wider if both layouts and alignments allow."""
    _plain_copy(src, dst, None, "cute.basic_copy")


def basic_copy_if(pred: Tensor, src: Tensor, dst: Tensor) -> None:
    """Copy the elements whose flag in ``pred`` is true."""
    _plain_copy(src, dst, pred, "cute.basic_copy_if")


def _plain_copy(src: Any, dst: Any, pred: Any, what: str) -> None:
    tracer = in_kernel(what)
    source, destination = tensor_operand(src, what, "source"), tensor_operand(dst, what, "destination")
    if source.element_type is None or destination.element_type is None:
        raise KernelTypeError(
            "F254", f"{what}: src and dst must be tensors in memory, got a coordinate tensor", hint="index it"
        )
    if source.element_type.width != destination.element_type.width:
        raise KernelTypeError(
            "F254", f"{what}: src has elements of {source.element_type!r} and dst of {destination.element_type!r}, "
            "which differ in width", hint="convert the elements: dst.store(src.load().to(dst.element_type))",
        )  # fmt: skip
    atom = tracer.at_top("cute.atom", parse_type(f"!cute_nvgpu.atom.universal_copy<{source.type.data.ptr.element}>"))
    if pred is None and _rank(source) != _rank(destination):  # Copy element i to element i in colexicographic order.
        source, destination = (_as_one_mode(x) for x in (source, destination))
    operands = [atom, source.ssa, destination.ssa]
    if pred is None:
        check_access(source, "read")
        check_access(destination, "write")
    else:
        operands.append(_spread(tensor_operand(pred, what, "predicate"), source).ssa)
    try:
        tracer.op("cute.copy", operands)
    except LayoutError as e:
        _refuse_copy(what, e, source, destination)


def _refuse_copy(what: str, error: LayoutError, source: Tensor, destination: Tensor) -> NoReturn:
    hint = f"src is {source!r}, dst is {destination!r}"
    if "must have a static shape" in error.message:
        hint += "; copy a tile of static shape, such as cute.local_tile(src, tiler, coord)"
    refuse("F254", what, error, hint=hint, arguments=("the atom", "src", "dst"))


def _rank(x: Tensor) -> int:
    return len(x.shape_payload) if isinstance(x.shape_payload, tuple) else 1


def _as_one_mode(x: Tensor) -> Tensor:
    return group_modes(x, 0, _rank(x))


def cooperative_copy(src: Tensor, dst: Tensor, thread: Int, threads: int) -> None:
    """Copy a tile with threads 0 to ``threads - 1``, with the widest access that both sides allow.

    Both shapes must be static.  The call does not synchronize the threads.
    """
    what = "cute.cooperative_copy"
    tracer = in_kernel(what)
    source, destination = tensor_operand(src, what, "source"), tensor_operand(dst, what, "destination")
    operands = [source.ssa, destination.ssa, thread_coord(thread)]
    try:
        tracer.op("cute.cooperative_copy", operands, None, {"threads": as_attribute(int(threads))})
    except LayoutError as e:
        refuse("F254", what, e, hint=f"src is {source!r}, dst is {destination!r}", arguments=("src", "dst", "thread"))


def prefetch(atom: CopyAtom | TiledCopy, tensor: Tensor, *, level: str = "L2") -> None:
    """Prefetch into the L2 cache the data that a copy with this atom would read.

    A TMA atom prefetches its box, a bulk copy its whole range.  Other atoms prefetch the cache line in which the tensor
    starts, and allow ``level="L1"``.
    """
    found = copy_atom_of(atom, "cute.prefetch")
    what = f"cute.prefetch by {found.op.name}"
    tracer = in_kernel(what)
    source = tensor_operand(tensor, what, "source")
    levels = ("L2",) if found.type.ONE_THREAD else ("L1", "L2")
    if level not in levels:
        raise KernelTypeError("F254", f"{what}: level must be {' or '.join(levels)}, got {level!r}")
    if found.type.TENSOR_MAP:
        (prefetch_columns if isinstance(found.op, Im2colOp) else prefetch_tile)(found, source, what)
        return
    if source.memspace != AddressSpace.gmem:
        raise KernelTypeError("F254", f"{what}: the tensor must be in global memory, got {source!r}")
    if found.type.ONE_THREAD:
        try:
            tracer.op("cute_nvgpu.arch.bulk_prefetch", [source.ssa], ())
        except LayoutError as e:
            refuse("F254", what, e, hint=f"src is {source!r}", arguments=("src",))
        return
    tracer.op("cute_nvgpu.arch.prefetch", [source.ssa], None, {"level": as_attribute(level)})
