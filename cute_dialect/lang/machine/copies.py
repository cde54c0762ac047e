"""Copies of tensors: by an atom, by a tiled copy, or with the widest possible accesses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from cute_dialect.algebra.evaluation import size
from cute_dialect.algebra.values import Layout as LayoutPayload
from cute_dialect.algebra.values import layout_modes, raw_layout
from cute_dialect.lang.machine.atoms import CopyAtom, check_target, refuse
from cute_dialect.lang.machine.elect import one_of_the_warp
from cute_dialect.lang.machine.operands import as_attribute, in_kernel, pointer, tensor_operand
from cute_dialect.lang.machine.tiled_copy import TiledCopy, copy_atom_of
from cute_dialect.lang.machine.tiled_mma import thread_coord
from cute_dialect.lang.machine.tma import Im2colOp, prefetch_columns, prefetch_tile, with_map
from cute_dialect.lang.tracing.errors import KernelTypeError, LayoutError
from cute_dialect.lang.tracing.tracer import current, parse_type
from cute_dialect.lang.values.dtypes import Boolean, Int16, Int64
from cute_dialect.lang.values.dynamic import is_dynamic
from cute_dialect.lang.values.indexing import check_access
from cute_dialect.lang.values.int_tuples import to_ssa
from cute_dialect.lang.values.layouts import Layout
from cute_dialect.lang.values.numeric import as_number
from cute_dialect.lang.values.tensors import Tensor
from cute_dialect.lang.values.tuple_functions import group_modes
from cute_dialect.spaces import AddressSpace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdsl.ir import SSAValue

    from cute_dialect.lang.values.pointers import Pointer
    from cute_dialect.lang.values.signature_types import Int

# -------------------------------------------------------------------------------------------------------------- copying

_STATE = {"tma_bar_ptr": "tma_bar", "mcast_mask": "multicast_mask", "cache_policy": "cache_hint"}
"""Maps the arguments of a copy to fields of the atom."""


def field_value(field: str, value: Any, what: str) -> SSAValue:
    """Return the SSA value for a field of an atom."""
    if field == "tma_bar":
        return pointer(value, f"the barrier of {what}", "i64", tuple(space for space in AddressSpace if space.shared))
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
    dst: Tensor,
    *,
    pred: Tensor | None = None,
    thread: Int | None = None,
    tma_bar_ptr: Pointer | None = None,
    mcast_mask: Int | None = None,
    cache_policy: Int | None = None,
    im2col_offsets: Sequence[Int] | None = None,
    tma_desc_ptr: Pointer | None = None,
    partial: bool = False,
    unroll_factor: int | None = None,
) -> None:
    """Copy a tensor to one of equal size, with an atom or a tiled copy.

    For instructions that one thread issues (TMA, bulk copies), one thread of the warp is elected. A tiled copy that
    distributes the instructions over several threads elects none.

    Args:
        atom: the copy atom or tiled copy.
        src: the source tensor.
        dst: the destination tensor.
        pred: a register tensor of Boolean with one flag per element, or per access if mode 0 has stride 0 or size 1.
        thread: the thread index, if ``src`` and ``dst`` are whole tiles of a tiled copy.
        tma_bar_ptr: the mbarrier that counts the bytes of a TMA load.
        mcast_mask: the blocks of the cluster that a multicast load writes to, one bit per block.
        cache_policy: an L2 cache policy.
        im2col_offsets: the filter-tap offsets of an im2col load, W first.
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
    source, destination = tensor_operand(src, what, "source"), tensor_operand(dst, what, "destination")
    state = _state_of(found, tma_bar_ptr, mcast_mask, cache_policy, what)
    state["im2col_offsets"] = im2col_offsets
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
        tracer.op(name, operands, None, None, attributes=attributes)
    except LayoutError as e:
        _refuse_copy(what, e, source, destination)


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
