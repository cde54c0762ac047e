"""Tiled copies: an atom dealt out over threads and values; and the functions that copy tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cute_dialect.algebra.values import Layout as LayoutPayload
from cute_dialect.front.atoms import CopyAtom, Record, check_target, refuse
from cute_dialect.front.errors import KernelTypeError, LayoutError

if TYPE_CHECKING:
    from xdsl.ir import Attribute, SSAValue

    from cute_dialect.front.tensors import Tensor
    from cute_dialect.front.tiled import TiledMma

__all__ = [
    "ThrCopy",
    "TiledCopy",
    "autovec_copy",
    "basic_copy",
    "basic_copy_if",
    "cooperative_copy",
    "copy",
    "copy_atom_call",
    "make_cotiled_copy",
    "make_tiled_copy",
    "make_tiled_copy_A",
    "make_tiled_copy_B",
    "make_tiled_copy_C",
    "make_tiled_copy_C_atom",
    "make_tiled_copy_D",
    "make_tiled_copy_S",
    "make_tiled_copy_tv",
    "prefetch",
]


class TiledCopy(Record):
    """A copy of tiles by many threads: an atom, which thread has which values, and the tile that all cover.

    ``get_slice(tid)`` gives one thread's part in it.
    """

    __slots__ = ("atom", "type")

    atom: CopyAtom
    type: Attribute

    def __init__(self, type: Attribute, atom: CopyAtom):
        self.type = type
        self.atom = atom

    is_static = True

    def fixed(self) -> tuple[object, ...]:
        return (self.type,)

    def parts(self) -> tuple[object, ...]:
        return (self.atom,)

    @classmethod
    def remade(cls, fixed: tuple[Any, ...], parts: Sequence[Any]) -> TiledCopy:
        return cls(*fixed, *parts)

    @property
    def ssa(self) -> SSAValue:
        """Its SSA value."""
        from cute_dialect.front.trace import current

        return current().at_top("cute.make_tiled_copy", self.type, [self.atom.ssa])

    @property
    def name(self) -> str:
        """How messages name it."""
        return f"a tiled copy of {self.atom.op.name}"

    def __repr__(self) -> str:
        return str(self.type)

    @property
    def op(self) -> Any:
        """The descriptor that its atom was made of."""
        return self.atom.op

    @property
    def value_type(self) -> Any:
        """The type of the values it moves."""
        return self.atom.value_type

    @property
    def layout_tv_tiled(self) -> Any:
        """(thread, value) -> column-major index in the tile."""
        from cute_dialect.front.layouts import Layout

        return Layout(self.type.data.layout_tv)

    layout_tv = layout_tv_tiled
    layout_src_tv = property(lambda self: self.atom.layout_src_tv)
    layout_dst_tv = property(lambda self: self.atom.layout_dst_tv)

    @property
    def tiler_mn(self) -> Any:
        """The extents of the tile that all threads cover together."""
        from cute_dialect.ops.tile_copies import tile_extents

        return tile_extents(self.type.data.tiler)

    @property
    def size(self) -> int:
        """How many threads it is for."""
        from cute_dialect.algebra.evaluation import size
        from cute_dialect.algebra.values import layout_modes

        return int(size(layout_modes(self.type.data.layout_tv)[0]))

    def __cute_size__(self, path: Any) -> int:
        return sized(self, path)

    def set(self, field: str, value: Any) -> None:
        """Set a field of its atom's run-time state; see :class:`CopyAtom`."""
        self.atom.set(field, value)

    def get_slice(self, thr_idx: Any) -> ThrCopy:
        """Return one thread's part in it."""
        return ThrCopy(self.type, self.atom, thr_idx)

    def retile(self, src: Tensor) -> Tensor:
        """Return a fragment of another partition (of a tiled MMA) in the order in which the copy moves its values."""
        return _view("cute.tiled.copy.retile", self.ssa, src, (), f"retile by {self.name}", "fragment")

    def describe(self) -> str:
        """Return a text: the instruction, who moves what, and the tile."""
        lines = [
            f"atom      {self.atom.type}",
            f"threads   {self.size}, values of {self.value_type!r}",
            f"tile      {self.tiler_mn}",
            f"layout_tv {self.layout_tv_tiled}",
        ]
        return "\n".join(lines)


def sized(tiled: Any, path: Any) -> int:
    """Return what ``cute.size`` says of a tiled copy or product: its threads."""
    if path:
        raise KernelTypeError("F251", f"{tiled.name} has no modes: cute.size counts its threads")
    return tiled.size


class ThrCopy(TiledCopy):
    """One thread's part in a tiled copy."""

    __slots__ = ("thr_idx",)

    thr_idx: Any

    def __init__(self, type: Attribute, atom: CopyAtom, thr_idx: Any):
        super().__init__(type, atom)
        self.thr_idx = thr_idx

    def parts(self) -> tuple[object, ...]:
        return (self.atom, self.thr_idx)

    def partition_S(self, src: Tensor) -> Tensor:
        """Return the thread's part of a source: ``((v,rest_v), RestM, RestN, …)``, ``v`` the values of one atom."""
        return self._partition("S", src)

    def partition_D(self, dst: Tensor) -> Tensor:
        """Return the thread's part of a destination; see :meth:`partition_S`."""
        return self._partition("D", dst)

    def _partition(self, side: str, tensor: Tensor) -> Tensor:
        name = f"cute.tiled.copy.partition_{side}"
        what = f"partition_{side} by {self.name}"
        return _view(name, self.ssa, tensor, (thread_coord(self.thr_idx),), what, "tensor")

    def retile_S(self, src: Tensor) -> Tensor:
        """Return a fragment in the order in which the copy reads its values; see :meth:`TiledCopy.retile`."""
        return self.retile(src)

    def retile_D(self, dst: Tensor) -> Tensor:
        """Return a fragment in the order in which the copy writes its values; see :meth:`TiledCopy.retile`."""
        return self.retile(dst)


def thread_coord(thr_idx: Any) -> SSAValue:
    """Return a thread's number as a coordinate; tuples of coordinates are refused (F254)."""
    from cute_dialect.front.numeric import as_number
    from cute_dialect.front.tuples import to_ssa

    number = as_number(thr_idx)
    if not type(number).is_integer:
        raise KernelTypeError("F254", f"expected a thread's number, got {number.describe()}")
    return to_ssa(int(number.value) if number.is_static else number, "coord")


def tensor_operand(x: Any, what: str, role: str) -> Any:
    """Return a tensor; raises F254 for anything else."""
    from cute_dialect.front.tensors import Tensor

    if not isinstance(x, Tensor):
        from cute_dialect.front.values import Dynamic

        shown = x.describe() if isinstance(x, Dynamic) else repr(x)
        hint = "store it in a register tensor first: r.store(v)" if hasattr(type(x), "__cute_store__") else ""
        raise KernelTypeError("F254", f"{what}: expected a tensor as the {role}, got {shown}", hint=hint)
    return x


def _view(name: str, tiled: SSAValue, tensor: Any, more: Sequence[SSAValue], what: str, role: str) -> Any:
    from cute_dialect.front.tensors import Tensor
    from cute_dialect.front.trace import current

    t = tensor_operand(tensor, what, role)
    try:
        made = current().value(name, [tiled, t.ssa, *more])
    except LayoutError as e:
        refuse("F254", what, e, hint=f"the {role} is {t!r}")
    return Tensor.of(made, t.element_type)


# -------------------------------------------------------------------------------------------------- making tiled copies


def static_payload(x: Any, what: str) -> LayoutPayload:
    """Return the payload of a static plain layout, or of the compact one of a shape; raises F251 for others."""
    from cute_dialect.algebra.trees import is_static
    from cute_dialect.front.layouts import as_layout

    if isinstance(x, LayoutPayload):
        return x
    found = as_layout(x)
    payload = getattr(found, "payload", None)
    if not isinstance(payload, LayoutPayload) or not is_static(payload):
        raise KernelTypeError("F251", f"{what}: expected a static layout, got {found}")
    return payload


def _copy_atom(x: Any, what: str) -> CopyAtom:
    if isinstance(x, TiledCopy):
        return x.atom
    if not isinstance(x, CopyAtom):
        raise KernelTypeError("F250", f"{what}: expected a copy atom, got {x!r}", hint="cute.make_copy_atom(op, dtype)")
    return x


def _tiled(atom: Any, what: str, layout_tv: LayoutPayload, extents: Any) -> TiledCopy:
    from cute_dialect.algebra.leaf import AlgebraError
    from cute_dialect.ops.tile_copies import made_copy

    found = _copy_atom(atom, what)
    try:
        return TiledCopy(made_copy(found.type, layout_tv, extents), found)
    except AlgebraError as e:
        refuse("F251", what, e)


def make_tiled_copy_tv(atom: CopyAtom, thr_layout: Any, val_layout: Any) -> TiledCopy:
    """Return the tiled copy of a layout of threads and a layout of the values of each, side by side.

    ``(4,32):(32,1)`` threads of ``(4,4):(4,1)`` values cover a tile of 16 x 128.
    """
    from cute_dialect.algebra.leaf import AlgebraError
    from cute_dialect.algebra.tiled_copy import make_layout_tv

    what = "cute.make_tiled_copy_tv"
    threads, values = (
        static_payload(thr_layout, f"{what}, thr_layout"),
        static_payload(val_layout, f"{what}, val_layout"),
    )
    try:
        extents, layout_tv = make_layout_tv(threads, values)
    except AlgebraError as e:
        refuse("F251", what, e)
    return _tiled(atom, what, layout_tv, extents)


def make_tiled_copy(atom: CopyAtom, layout_tv: Any, tiler_mn: Any) -> TiledCopy:
    """Return the tiled copy of a layout (thread, value) -> column-major index in a tile of the extents ``tiler_mn``."""
    what = "cute.make_tiled_copy"
    return _tiled(atom, what, static_payload(layout_tv, f"{what}, layout_tv"), _extents(tiler_mn, what))


def _extents(tiler: Any, what: str) -> Any:
    """Return the extents of a tiler: integers, or layouts that cover each mode from its start."""
    if isinstance(tiler, tuple | list):
        return tuple([_extents(t, what) for t in tiler])
    if isinstance(tiler, int):
        return tiler
    from cute_dialect.algebra.evaluation import size
    from cute_dialect.algebra.layout import coalesce

    payload = static_payload(tiler, f"{what}, tiler_mn")
    n = int(size(payload))
    if str(coalesce(payload)) != f"{n}:1":
        raise KernelTypeError("F251", f"{what}: expected a tiler of whole ranges, got {payload}")
    return n


def _of_mma(operand: str, atom: CopyAtom, tiled_mma: TiledMma) -> TiledCopy:
    from cute_dialect.front.tiled import TiledMma

    what = f"cute.make_tiled_copy_{operand}"
    if not isinstance(tiled_mma, TiledMma):
        raise KernelTypeError("F251", f"{what}: expected a tiled MMA, got {tiled_mma!r}")
    found = _copy_atom(atom, what)
    from cute_dialect.algebra.leaf import AlgebraError
    from cute_dialect.front.trace import op_class
    from cute_dialect.ops.inference import infer_types_memo

    try:
        (made,) = infer_types_memo(op_class(what), [found.type, tiled_mma.type], {})
    except AlgebraError as e:
        refuse("F251", what, e)
    return TiledCopy(made, found)


def make_tiled_copy_A(atom: CopyAtom, tiled_mma: TiledMma) -> TiledCopy:
    """Return the tiled copy that moves exactly the fragments of A of a tiled MMA."""
    return _of_mma("A", atom, tiled_mma)


def make_tiled_copy_B(atom: CopyAtom, tiled_mma: TiledMma) -> TiledCopy:
    """Return the tiled copy that moves exactly the fragments of B of a tiled MMA."""
    return _of_mma("B", atom, tiled_mma)


def make_tiled_copy_C(atom: CopyAtom, tiled_mma: TiledMma) -> TiledCopy:
    """Return the tiled copy that moves exactly the accumulators of a tiled MMA."""
    return _of_mma("C", atom, tiled_mma)


def make_tiled_copy_S(atom: CopyAtom, tiled_copy: TiledCopy) -> TiledCopy:
    """Return the tiled copy by ``atom`` of the same threads, values and tile as another, whose source they are."""
    return _tiled(atom, "cute.make_tiled_copy_S", tiled_copy.type.data.layout_tv, tiled_copy.tiler_mn)


def make_tiled_copy_D(atom: CopyAtom, tiled_copy: TiledCopy) -> TiledCopy:
    """Return the tiled copy by ``atom`` of the same threads, values and tile as another, whose destination they are."""
    return _tiled(atom, "cute.make_tiled_copy_D", tiled_copy.type.data.layout_tv, tiled_copy.tiler_mn)


def make_tiled_copy_C_atom(atom: CopyAtom, tiled_mma: TiledMma) -> TiledCopy:
    """Return the smallest tiled copy that moves accumulators of a tiled MMA by ``atom``: one instruction a warp.

    Its tile is as long as the atom needs along N: values of the accumulators one after another.
    """
    from cute_dialect.algebra.compose import compose
    from cute_dialect.algebra.inverses import left_inverse
    from cute_dialect.algebra.make_layouts import make_layout
    from cute_dialect.algebra.values import layout_modes, raw_layout

    what = "cute.make_tiled_copy_C_atom"
    whole = make_tiled_copy_C(atom, tiled_mma)
    threads, values = layout_modes(whole.type.data.layout_tv)
    first = make_layout(threads, compose(values, raw_layout(whole.atom.type.values(), 1)))
    rows = whole.tiler_mn[0]
    extents = _covered(first, rows, what)
    if extents[0] != rows:
        first = compose(left_inverse(raw_layout(extents, (1, rows))), first)
    return _tiled(atom, what, first, extents)


def _covered(layout_tv: LayoutPayload, rows: int, what: str) -> tuple[int, int]:
    """Return the extents of what a layout (thread, value) -> m + rows * n covers; refuses one with gaps."""
    from cute_dialect.algebra.evaluation import evaluate, size

    places = {int(evaluate(i, layout_tv)) for i in range(int(size(layout_tv)))}  # pyright: ignore[reportArgumentType]
    m, n = 1 + max(i % rows for i in places), 1 + max(i // rows for i in places)
    if len(places) != m * n:
        raise KernelTypeError("F251", f"{what}: the values of one atom leave gaps in the tile {m} x {n}: {layout_tv}")
    return m, n


def make_cotiled_copy(atom: CopyAtom, atom_layout_tv: Any, data_layout: Any) -> TiledCopy:
    """Return the tiled copy of a layout (thread, value) -> offset in ``data_layout``."""
    from cute_dialect.algebra.compose import compose
    from cute_dialect.algebra.inverses import left_inverse
    from cute_dialect.algebra.leaf import AlgebraError

    what = "cute.make_cotiled_copy"
    data = static_payload(data_layout, f"{what}, data_layout")
    try:
        layout_tv = compose(left_inverse(data), static_payload(atom_layout_tv, f"{what}, atom_layout_tv"))
    except AlgebraError as e:
        refuse("F251", what, e)
    return _tiled(atom, what, layout_tv, data.shape)


# -------------------------------------------------------------------------------------------------------------- copying

_STATE = {"tma_bar_ptr": "tma_bar", "mcast_mask": "multicast_mask", "cache_policy": "cache_hint"}
"""Argument of a copy -> the field of the atom."""


def field_value(field: str, value: Any, what: str) -> SSAValue:
    """Return the SSA value that a field of an atom takes."""
    from cute_dialect.front.dtypes import Boolean, Int16, Int64
    from cute_dialect.front.machine import pointer
    from cute_dialect.front.numeric import as_number

    if field == "tma_bar":
        return pointer(value, f"the barrier of {what}", "i64", ("smem", "dsmem"))
    if field == "im2col_offsets":
        from cute_dialect.front.tuples import to_ssa

        return to_ssa(value, "coord")
    kinds = {"multicast_mask": Int16, "cache_hint": Int64, "pred": Boolean}
    if field not in kinds:
        raise KernelTypeError("F254", f"{what}: an atom has no field '{field}'")
    return kinds[field](as_number(value)).ssa


def atom_with_state(atom: CopyAtom, given: dict[str, Any], what: str) -> SSAValue:
    """Return an atom's SSA value with its state and what the copy gives; raises F254 for what it has no field for."""
    from xdsl.dialects.builtin import StringAttr

    from cute_dialect.front.trace import current

    t = current()
    value = atom.ssa
    state = {**dict(atom.state), **{k: v for k, v in given.items() if v is not None}}
    having = atom.type.fields()
    for field, x in state.items():
        if field not in having:
            has = f"it has {', '.join(having)}" if having else "it has no run-time state"
            names = {v: k for k, v in _STATE.items()}
            raise KernelTypeError("F254", f"{what}: {atom.op.name} takes no {names.get(field, field)} ({has})")
        operands = [value, field_value(field, x, what)]
        value = t.value("cute.atom.set_value", operands, [atom.type], {"field": StringAttr(field)})
    return value


def _state_of(atom: CopyAtom, tma_bar_ptr: Any, mcast_mask: Any, cache_policy: Any, what: str) -> dict[str, Any]:
    """Return the fields that a copy sets; checks the barrier and the mask of multicast copies."""
    from cute_dialect.front.values import is_dynamic

    multicast = getattr(atom.op, "multicast", None)
    if multicast is False and mcast_mask is not None and not is_dynamic(mcast_mask) and int(mcast_mask) == 0:
        mcast_mask = None
    if multicast is False and mcast_mask is not None:
        raise KernelTypeError(
            "F254", f"{what}: {atom.op.name} takes no mcast_mask",
            hint="make the atom with cute.nvgpu.cpasync.CopyBulkTensorTileG2SMulticastOp()",
        )  # fmt: skip
    state = dict(atom.state)
    if multicast is True and mcast_mask is None and "multicast_mask" not in state:
        raise KernelTypeError(
            "F254", f"{what}: {atom.op.name} needs mcast_mask: a bit for each block that it writes to"
        )
    if getattr(atom.op, "needs_barrier", False) and tma_bar_ptr is None and "tma_bar" not in state:
        raise KernelTypeError("F254", f"{what}: {atom.op.name} needs tma_bar_ptr, the mbarrier of its bytes")
    return {"tma_bar": tma_bar_ptr, "multicast_mask": mcast_mask, "cache_hint": cache_policy}


def copy(
    atom: CopyAtom | TiledCopy, src: Tensor, dst: Tensor, *, pred: Tensor | None = None, thread: Any = None,
    tma_bar_ptr: Any = None, mcast_mask: Any = None, cache_policy: Any = None, partial: bool = False,
    unroll_factor: int | None = None,
) -> None:  # fmt: skip
    """Copy a tensor to one of equal size, by an atom or a tiled copy.

    ``pred``: a register tensor of Boolean, a flag an element, or with stride 0 or size 1 in mode 0 a flag an access.
    ``thread``: ``src`` and ``dst`` are whole tiles of a tiled copy, of which this thread moves its part.
    ``tma_bar_ptr``: the mbarrier that counts the bytes of a TMA load; ``mcast_mask``: the blocks of the cluster that a
    multicast writes to; ``cache_policy``: an L2 cache policy.  ``partial``: threads may pass the end of a tensor that
    the tile does not divide.  A copy that one thread issues (TMA, bulk) is issued by one thread of the warp.
    """
    del unroll_factor  # copies are unrolled as far as their layouts ask
    found = _copy_atom(atom, "cute.copy")
    what = f"cute.copy by {found.op.name}"
    from xdsl.dialects.builtin import UnitAttr

    from cute_dialect.front.machine import in_kernel

    tracer = in_kernel(what)
    check_target(found.op.name, found.op.chip)
    source, destination = tensor_operand(src, what, "source"), tensor_operand(dst, what, "destination")
    state = _state_of(found, tma_bar_ptr, mcast_mask, cache_policy, what)
    if found.type.ONE_THREAD and "pred" not in dict(found.state):
        from cute_dialect.front.elected import one_of_the_warp

        state["pred"] = one_of_the_warp()
    value = atom_with_state(found, state, what)
    operands = [value, source.ssa, destination.ssa]
    name = "cute.copy"
    if thread is not None:
        if not isinstance(atom, TiledCopy):
            raise KernelTypeError("F254", f"{what}: 'thread' is for tiled copies", hint="cute.make_tiled_copy_tv")
        operands = [_with_state(atom, value), *operands[1:], thread_coord(thread)]
        name = "cute.tiled_copy"
    if pred is not None:
        flags = tensor_operand(pred, what, "predicate")
        operands.append((flags if hasattr(found.type, "row") else _spread(flags, source)).ssa)
    attributes = {"partial": UnitAttr()} if partial else None
    try:
        tracer.op(name, operands, None, None, attributes=attributes)
    except LayoutError as e:
        refuse("F254", what, e, hint=f"the source is {source!r}, the destination {destination!r}")


def _with_state(tiled: TiledCopy, atom: SSAValue) -> SSAValue:
    from cute_dialect.front.trace import current

    if atom is tiled.atom.ssa:
        return tiled.ssa
    return current().value("cute.make_tiled_copy", [atom], [tiled.type])


def _spread(pred: Any, source: Any) -> Any:
    """Return a predicate of one flag an element, where mode 0 of the given one counts a thread's accesses.

    Mode 0 of a partition is ``(v, rest_v)``; flags ``(rest_v, M, K)`` become ``((v, rest_v), M, K)`` with stride 0
    along ``v``.
    """
    from cute_dialect.algebra.evaluation import size
    from cute_dialect.algebra.values import layout_modes, raw_layout

    if pred.is_memory and source.payload is not None:
        shape = source.shape_payload
        flags = pred.payload
        if isinstance(shape, tuple) and isinstance(shape[0], tuple) and isinstance(flags, LayoutPayload):
            modes = layout_modes(flags) if isinstance(flags.shape, tuple) else [flags]
            accesses, values = size(shape[0][1:]), size(shape[0][0])
            if len(modes) == len(shape) and 1 < int(size(modes[0])) == accesses and values != 1:
                from cute_dialect.front.layouts import Layout
                from cute_dialect.front.tensors import Tensor
                from cute_dialect.front.trace import current

                first = modes[0]
                spread = raw_layout(
                    ((values, first.shape), *(m.shape for m in modes[1:])),
                    ((0, first.stride), *(m.stride for m in modes[1:])),
                )
                operands = [pred.iterator.ssa, Layout(spread).ssa]
                return Tensor.of(current().value("cute.make_view", operands), pred.element_type)
    return pred


def copy_atom_call(atom: CopyAtom, src: Tensor, dst: Tensor, *, pred: Tensor | None = None, **state: Any) -> None:
    """Copy what one instruction moves; see :func:`copy`."""
    copy(atom, src, dst, pred=pred, **state)


def autovec_copy(src: Tensor, dst: Tensor) -> None:
    """Copy a tensor to one of equal size at the widest access that both sides prove."""
    _plain_copy(src, dst, None, "cute.autovec_copy")


def basic_copy(src: Tensor, dst: Tensor) -> None:
    """Copy a tensor to one of equal size, element by element or wider where both sides prove it."""
    _plain_copy(src, dst, None, "cute.basic_copy")


def basic_copy_if(pred: Tensor, src: Tensor, dst: Tensor) -> None:
    """Copy the elements whose flag is true."""
    _plain_copy(src, dst, pred, "cute.basic_copy_if")


def _plain_copy(src: Any, dst: Any, pred: Any, what: str) -> None:
    from cute_dialect.front.machine import in_kernel

    tracer = in_kernel(what)
    source, destination = tensor_operand(src, what, "source"), tensor_operand(dst, what, "destination")
    if source.element_type is None or destination.element_type is None:
        raise KernelTypeError("F254", f"{what}: expected tensors in memory, got coordinates", hint="index them")
    from cute_dialect.front.trace import parse_type

    atom = tracer.at_top("cute.atom", parse_type(f"!cute_nvgpu.atom.universal_copy<{source.type.data.ptr.element}>"))
    operands = [atom, source.ssa, destination.ssa]
    if pred is not None:
        operands.append(_spread(tensor_operand(pred, what, "predicate"), source).ssa)
    try:
        tracer.op("cute.copy", operands)
    except LayoutError as e:
        refuse("F254", what, e, hint=f"the source is {source!r}, the destination {destination!r}")


def cooperative_copy(src: Tensor, dst: Tensor, thread: Any, threads: int) -> None:
    """Copy a tile between memories with threads 0 to ``threads - 1``, at the widest access that both sides prove.

    Both shapes are static.  Nothing is synchronised.
    """
    what = "cute.cooperative_copy"
    from cute_dialect.front.machine import as_attribute, in_kernel

    tracer = in_kernel(what)
    source, destination = tensor_operand(src, what, "source"), tensor_operand(dst, what, "destination")
    operands = [source.ssa, destination.ssa, thread_coord(thread)]
    try:
        tracer.op("cute.cooperative_copy", operands, None, {"threads": as_attribute(int(threads))})
    except LayoutError as e:
        refuse("F254", what, e, hint=f"the source is {source!r}, the destination {destination!r}")


def prefetch(atom: CopyAtom | TiledCopy, tensor: Tensor) -> None:
    """Fetch into the L2 cache what a TMA load by this atom would read: its coordinates of one box."""
    from cute_dialect.front.machine import in_kernel

    found = _copy_atom(atom, "cute.prefetch")
    what = f"cute.prefetch by {found.op.name}"
    tracer = in_kernel(what)
    source = tensor_operand(tensor, what, "source")
    if found.type.TENSOR_MAP:
        from cute_dialect.front.tma import prefetch_tile

        prefetch_tile(found, source, what)
        return
    if source.memspace != "gmem":
        raise KernelTypeError("F254", f"{what}: expected a tensor in gmem, got {source!r}")
    from cute_dialect.front.machine import as_attribute

    tracer.op("cute_nvgpu.arch.prefetch", [source.ssa], None, {"level": as_attribute("L2")})
