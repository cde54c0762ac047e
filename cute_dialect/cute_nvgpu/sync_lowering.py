"""``cute-to-base`` lowering of synchronisation, warp and cluster ops: one instruction per op.

The lowering uses nvvm and llvm ops if they exist, because they keep LLVM from moving or duplicating convergent
instructions. The other ops, none of which is convergent, become inline PTX.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from math import prod
from typing import Any, cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, IntegerType, VectorType, f32, f64, i1, i32, i64
from xdsl.ir import Attribute, Operation, SSAValue

from cute_dialect.arch.targets import DEFAULT_TARGET
from cute_dialect.cute_nvgpu.sync import REGISTERS, ROWS, ArchOp
from cute_dialect.dialect.memory_types import element_bits, integer_width, natural_alignment
from cute_dialect.passes.base import PassError
from cute_dialect.passes.lowering.fragments import bits_as
from cute_dialect.passes.lowering.types import lowered, pointer
from cute_dialect.passes.lowering.walk import Handler, Lowering
from cute_dialect.spaces import AddressSpace
from cute_dialect.upstream import llvm, nvvm

Lower = Callable[[Lowering, ArchOp, list[SSAValue]], SSAValue | list[SSAValue] | None]
"""Function that emits an op from its lowered operands, and returns the lowered result or results."""

WAIT_HINT = 10_000_000
"""Maximum time in nanoseconds that one ``mbarrier.try_wait`` suspends the thread before the loop around it retries."""

ALL_LANES = -1
"""Member mask of a full warp."""

_SCOPES = {"cta": "block", "cluster": "cluster", "gpu": "device", "sys": None}
"""Scope -> LLVM sync scope."""

_ORDERS = {"relaxed": "monotonic", "acquire": "acquire", "release": "release", "acq_rel": "acq_rel"}


def _effect(name: str, properties: Callable[[ArchOp], Mapping[str, Any]] = lambda op: {}) -> Lower:
    """Lower to ``nvvm.NAME`` on the same operands, without a result; ``properties`` returns its properties."""

    def lower(low: Lowering, op: ArchOp, operands: list[SSAValue]) -> None:
        low.build.add(nvvm.OPS[name](*operands, **properties(op), result_types=[]))

    return lower


def _value(name: str, t: Attribute) -> Lower:
    """Lower to ``nvvm.NAME`` on the same operands, with a result of this type."""

    def lower(low: Lowering, op: ArchOp, operands: list[SSAValue]) -> SSAValue:
        return low.build.emit(nvvm.OPS[name](*operands, result_types=[t]))

    return lower


def _intrinsic(name: str, *, result: Attribute | None = None) -> Lower:
    """Lower to the LLVM intrinsic ``llvm.nvvm.NAME`` on the same operands."""

    def lower(low: Lowering, op: ArchOp, operands: list[SSAValue]) -> SSAValue | None:
        call = low.build.add(llvm.CallIntrinsicOp(f"llvm.nvvm.{name}", operands, result))
        return call.results[0] if result is not None else None

    return lower


def _ptx(text: str, *, result: Attribute) -> Lower:
    def lower(low: Lowering, op: ArchOp, operands: list[SSAValue]) -> SSAValue:
        return low.build.emit(nvvm.InlinePtxOp(text, operands, results=(result,)))

    return lower


def _constant(low: Lowering, n: int) -> SSAValue:
    return low.build.constant(n, i32)


# -------------------------------------------------------------------------------------------- mbarriers, fences, groups


def _mbarrier_wait(low: Lowering, op: ArchOp, operands: list[SSAValue]) -> None:
    hint = _constant(low, WAIT_HINT)
    low.build.add(nvvm.OPS["mbarrier.try_wait.parity"](*operands, hint, result_types=[]))


def _arrive_cluster(low: Lowering, op: ArchOp, operands: list[SSAValue]) -> None:
    # The arrival has block scope, as in CUTLASS. It only signals that data was read, so the fence of all writes that
    # ".release.cluster" implies would be wasted.
    bar, cta, *pred = operands
    remote = low.build.emit(nvvm.OPS["mapa"](bar, cta, result_types=[pointer(AddressSpace.dsmem)]))
    if pred:
        text = "mbarrier.arrive.shared::cluster.b64 _, [$0];"
        low.build.add(nvvm.InlinePtxOp(text, [remote], predicate=pred[0]))
        return
    low.build.add(nvvm.OPS["mbarrier.arrive"](remote, result_types=[]))


def _arrive_expect_tx(low: Lowering, op: ArchOp, operands: list[SSAValue]) -> None:
    bar, size, *cta = operands
    if cta:
        bar = low.build.emit(nvvm.OPS["mapa"](bar, cta[0], result_types=[pointer(AddressSpace.dsmem)]))
        low.build.add(nvvm.InlinePtxOp("mbarrier.arrive.expect_tx.shared::cluster.b64 _, [$0], $1;", [bar, size]))
        return
    low.build.add(nvvm.OPS["mbarrier.arrive.expect_tx"](bar, size, result_types=[]))


def _fence_proxy(low: Lowering, op: ArchOp, operands: list[SSAValue]) -> None:
    kind, _, space = op.word("space").partition("_")
    kinds = {"shared": "async.shared", "global": "async.global", "all": "async"}
    low.build.add(nvvm.OPS["fence.proxy"](kind=kinds[kind], space=space or None, result_types=[]))


def _fence_acq_rel(low: Lowering, op: ArchOp, operands: list[SSAValue]) -> None:
    low.build.add(llvm.OPS["fence"](ordering="acq_rel", syncscope=_SCOPES[op.word("scope")], result_types=[]))


# ---------------------------------------------------------------------------------------------------- barriers, cluster


def _syncwarp(low: Lowering, op: ArchOp, operands: list[SSAValue]) -> None:
    low.build.add(nvvm.OPS["bar.warp.sync"](_constant(low, ALL_LANES), result_types=[]))


def _cluster_arrive(low: Lowering, op: ArchOp, operands: list[SSAValue]) -> None:
    name = "cluster.arrive.relaxed" if op.flag("relaxed") else "cluster.arrive"
    low.build.add(nvvm.OPS[name](aligned=True, result_types=[]))


def _sreg(cls: type[nvvm.SRegOp], bound: int | None = None) -> Lower:
    def lower(low: Lowering, op: ArchOp, operands: list[SSAValue]) -> SSAValue:
        return low.build.emit(cls(bound))

    return lower


def _map_cluster(low: Lowering, op: ArchOp, operands: list[SSAValue]) -> SSAValue:
    return low.build.emit(nvvm.OPS["mapa"](*operands, result_types=[lowered(op.results[0].type)]))


def _store_async(low: Lowering, op: ArchOp, operands: list[SSAValue]) -> None:
    t = operands[1].type
    kind = str(t) if t in (f32, f64) else f"b{element_bits(t)}"
    text = f"st.async.shared::cluster.mbarrier::complete_tx::bytes.{kind} [$0], $1, [$2];"
    low.build.add(nvvm.InlinePtxOp(text, operands))


_REDUCTIONS = {
    "add": ("add", "u"), "min": ("min", "s"), "max": ("max", "s"), "umin": ("min", "u"), "umax": ("max", "u"),
    "and": ("and", "b"), "or": ("or", "b"), "xor": ("xor", "b"), "inc": ("inc", "u"), "dec": ("dec", "u"),
}  # fmt: skip


def _reduce_async(operation: str, letter: str) -> Lower:
    def lower(low: Lowering, op: ArchOp, operands: list[SSAValue]) -> None:
        kind = f"{operation}.{letter}{element_bits(operands[1].type)}"
        text = f"red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.{kind} [$0], $1, [$2];"
        low.build.add(nvvm.InlinePtxOp(text, operands))

    return lower


def _setmaxnreg(low: Lowering, op: ArchOp, operands: list[SSAValue]) -> None:
    """Lower ``setmaxnreg``.

    ptxas drops the instruction (note C7508) unless it knows the initial number of registers per thread. It does if the
    block size and the number of blocks per SM are given, and no register limit.
    """
    function = low.entry.parent_op() if low.entry is not None else None
    if function is not None and function.name == "llvm.func":
        if not {"nvvm.reqntid", "nvvm.maxntid"} & function.attributes.keys():
            raise PassError("setmaxnreg requires a kernel with known_block_size", op)
        if "nvvm.maxnreg" in function.attributes:
            raise PassError("setmaxnreg cannot be combined with nvvm.maxnreg on the kernel; remove nvvm.maxnreg", op)
        function.attributes.setdefault("nvvm.minctasm", IntegerAttr(1, i32))
    low.build.add(nvvm.OPS["setmaxregister"](regCount=op.number("count"), action=op.word("action"), result_types=[]))


_QUERY = (
    "{ .reg .pred p; .reg .b128 h; ld.shared.b128 h, [$4]; "
    "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, h; "
    "selp.b32 $0, 1, 0, p; mov.b32 $1, 0; mov.b32 $2, 0; mov.b32 $3, 0; "
    "@p clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {$1, $2, $3, _}, h; }"
)
"""Outcome and first block of a response.  The coordinates of an unsuccessful one are undefined, hence the predicate."""


def _try_cancel(low: Lowering, op: ArchOp, operands: list[SSAValue]) -> None:
    make = nvvm.OPS["clusterlaunchcontrol.try.cancel"]
    low.build.add(make(*operands, multicast=op.flag("multicast") or None, result_types=[]))


def _query(low: Lowering, op: ArchOp, operands: list[SSAValue]) -> list[SSAValue]:
    made = low.build.add(nvvm.InlinePtxOp(_QUERY, operands, results=(i32, i32, i32, i32)))
    flag, *block = made.results
    return [low.build.emit(arith.TruncIOp(flag, i1)), *block]


# ---------------------------------------------------------------------------------------------------------------- warps


def _warp_id(low: Lowering, op: ArchOp, operands: list[SSAValue]) -> SSAValue:
    # The shuffle tells ptxas that the number is warp-uniform, so that ptxas keeps it in a uniform register.
    tid = low.build.emit(nvvm.ThreadIdXOp(DEFAULT_TARGET.threads))
    warp = low.build.emit(arith.ShRUIOp(tid, _constant(low, 5)))
    return _shuffle(low, warp, _constant(low, 0), "idx", 32)


def _shuffle(low: Lowering, value: SSAValue, index: SSAValue, mode: str, width: int) -> SSAValue:
    """Shuffle a 32-bit value.

    PTX ISA "shfl.sync": bits 8-12 of the clamp are the segment mask, bits 0-4 the bound.
    """
    clamp = (32 - width) << 8 | (0 if mode == "up" else 31)
    operands = [_constant(low, ALL_LANES), value, index, _constant(low, clamp)]
    return low.build.emit(nvvm.ShflSyncOp(*operands, kind=mode, type=value.type))


def _shfl_sync(low: Lowering, op: ArchOp, operands: list[SSAValue]) -> SSAValue:
    value, index = operands
    mode, width = op.word("mode"), op.number("width")
    t, build = value.type, low.build
    if t in (i32, f32):
        return _shuffle(low, value, index, mode, width)
    bits = element_bits(t)
    integer = IntegerType(bits)

    def cast(x: SSAValue, to: Attribute) -> SSAValue:
        return x if x.type == to else build.emit(llvm.OPS["bitcast"](x, result_types=[to]))

    raw = cast(value, integer)
    if bits < 32:
        wide = build.emit(arith.ExtUIOp(raw, i32))
        return cast(build.emit(arith.TruncIOp(_shuffle(low, wide, index, mode, width), integer)), t)
    pair = cast(raw, VectorType(i32, [2]))
    halves = [_shuffle(low, build.lane(pair, i), index, mode, width) for i in range(2)]
    return cast(cast(build.vector(halves), i64), t)


def _vote(kind: str, t: Attribute) -> Lower:
    def lower(low: Lowering, op: ArchOp, operands: list[SSAValue]) -> SSAValue:
        return low.build.emit(
            nvvm.OPS["vote.sync"](_constant(low, ALL_LANES), operands[0], kind=kind, result_types=[t])
        )

    return lower


def _redux(low: Lowering, op: ArchOp, operands: list[SSAValue]) -> SSAValue:
    return low.build.emit(
        nvvm.OPS["redux.sync"](operands[0], _constant(low, ALL_LANES), kind=op.word("kind"), result_types=[i32])
    )


def _redux_f32(low: Lowering, op: ArchOp, operands: list[SSAValue]) -> SSAValue:
    lanes, kind = _constant(low, ALL_LANES), f"f{op.word('kind')}"
    make = nvvm.OPS["redux.sync"]
    return low.build.emit(
        make(operands[0], lanes, kind=kind, abs=op.flag("abs"), nan=op.flag("nan"), result_types=[f32])
    )


def _store_bulk_zero(low: Lowering, op: ArchOp, operands: list[SSAValue]) -> None:
    size = low.build.emit(arith.ExtUIOp(operands[1], i64))
    # ptxas 13.5 takes a register only, and nvvm.st.bulk would give it the name of an array.
    low.build.add(nvvm.InlinePtxOp("st.bulk.weak.shared::cta [$0], $1, 0;", [operands[0], size]))


# -------------------------------------------------------------------------------------------------------------- atomics

_FLOAT_ATOMICS = {"add": "fadd", "min": "fmin", "max": "fmax", "exch": "xchg"}
_INTEGER_ATOMICS = {
    "add": "add", "min": "min", "max": "max", "umin": "umin", "umax": "umax", "and": "_and", "or": "_or",
    "xor": "_xor", "exch": "xchg",
}  # fmt: skip
"""Atomic -> name in LLVM."""


def _atomic(name: str) -> Lower:
    def lower(low: Lowering, op: ArchOp, operands: list[SSAValue]) -> SSAValue:
        address, value = operands
        t = op.result_types[0]
        kind = (_FLOAT_ATOMICS if integer_width(t) is None else _INTEGER_ATOMICS)[name]
        return low.build.emit(
            llvm.OPS["atomicrmw"](
                address,
                value,
                bin_op=kind,
                ordering=_ORDERS[op.word("order")],
                syncscope=_SCOPES[op.word("scope")],
                alignment=natural_alignment(t),
                result_types=[t],
            )
        )

    return lower


def _cas(low: Lowering, op: ArchOp, operands: list[SSAValue]) -> SSAValue:
    address, value, expected = operands
    t = value.type
    order = _ORDERS[op.word("order")]
    both = llvm.LLVMStructType([t, i1])
    found = low.build.emit(
        llvm.OPS["cmpxchg"](
            address,
            expected,
            value,
            success_ordering=order,
            failure_ordering="acquire" if order in ("acquire", "acq_rel") else "monotonic",
            syncscope=_SCOPES[op.word("scope")],
            alignment=natural_alignment(t),
            result_types=[both],
        )
    )
    return low.build.extract(found, (0,), t)


def _load_acquire(low: Lowering, op: ArchOp, operands: list[SSAValue]) -> SSAValue:
    t = op.results[0].type
    scope = _SCOPES[op.word("scope")]
    return low.build.emit(
        llvm.LoadOp(operands[0], t, alignment=natural_alignment(t), ordering="acquire", syncscope=scope)
    )


def _store_release(low: Lowering, op: ArchOp, operands: list[SSAValue]) -> None:
    address, value = operands
    scope = _SCOPES[op.word("scope")]
    low.build.add(
        llvm.StoreOp(value, address, alignment=natural_alignment(value.type), ordering="release", syncscope=scope)
    )


def _opaque(low: Lowering, op: ArchOp, operands: list[SSAValue]) -> SSAValue:
    """Pass each register through an empty inline assembly, so that LLVM recomputes values derived from it."""
    build, (x,) = low.build, operands

    def hidden(word: SSAValue) -> SSAValue:
        letter = REGISTERS[str(word.type)]
        return build.emit(llvm.InlineAsmOp("", f"={letter},0", [word], word.type))

    kind = x.type
    if not isinstance(kind, VectorType):
        return hidden(x)
    t = cast("VectorType[Attribute]", kind)
    words = prod(t.get_shape()) * element_bits(t.element_type) // 32
    bits = bits_as(build, x, VectorType(i32, [words]))
    return bits_as(build, build.vector([hidden(build.lane(bits, i)) for i in range(words)]), t)


LOWER: Mapping[str, Lower] = {
    "mbarrier_init": _effect("mbarrier.init"),
    "mbarrier_inval": _effect("mbarrier.inval"),
    "mbarrier_arrive": _effect("mbarrier.arrive"),
    "mbarrier_arrive_cluster": _arrive_cluster,
    "mbarrier_arrive_expect_tx": _arrive_expect_tx,
    "mbarrier_expect_tx": _effect("mbarrier.expect_tx"),
    "mbarrier_wait": _mbarrier_wait,
    "mbarrier_try_wait": _value("mbarrier.try_wait", i1),
    "fence_mbarrier_init": _effect("fence.mbarrier.init"),
    "fence_proxy_async": _fence_proxy,
    "fence_acq_rel": _fence_acq_rel,
    "barrier": _effect("barrier0"),
    "named_barrier": _effect("barrier"),
    "named_barrier_arrive": _intrinsic("barrier.cta.arrive.aligned.count"),
    "syncwarp": _syncwarp,
    "cluster_arrive": _cluster_arrive,
    "cluster_wait": _effect("cluster.wait", lambda op: {"aligned": True}),
    "cluster_rank": _sreg(nvvm.ClusterRankOp),
    "cluster_size": _sreg(nvvm.ClusterSizeOp),
    "elect_one": _value("elect.sync", i1),
    "warp_id": _warp_id,
    "lane_id": _sreg(nvvm.LaneIdOp, 32),
    "map_cluster": _map_cluster,
    "store_async": _store_async,
    **{f"reduce_async_{k}": _reduce_async(*v) for k, v in _REDUCTIONS.items()},
    "setmaxnreg": _setmaxnreg,
    "griddepcontrol_wait": _effect("griddepcontrol", lambda op: {"kind": "wait"}),
    "griddepcontrol_launch_dependents": _effect("griddepcontrol", lambda op: {"kind": "launch_dependents"}),
    "clc_try_cancel": _try_cancel,
    "clc_query": _query,
    "cp_async_commit_group": _effect("cp.async.commit.group"),
    "cp_async_wait_group": _effect("cp.async.wait.group", lambda op: {"n": op.number("n")}),
    "cp_async_mbarrier_arrive": _effect("cp.async.mbarrier.arrive", lambda op: {"noinc": op.flag("noinc")}),
    "bulk_commit_group": _effect("cp.async.bulk.commit.group"),
    "bulk_wait_group": _effect(
        "cp.async.bulk.wait_group", lambda op: {"group": op.number("n"), "read": op.flag("read") or None}
    ),
    "shfl_sync": _shfl_sync,
    "vote_any": _vote("any", i1),
    "vote_all": _vote("all", i1),
    "ballot": _vote("ballot", i32),
    "redux_sync": _redux,
    "redux_sync_f32": _redux_f32,
    "store_bulk_zero": _store_bulk_zero,
    **{f"atomic_{k}": _atomic(k) for k in _INTEGER_ATOMICS},
    "atomic_cas": _cas,
    "load_acquire": _load_acquire,
    "store_release": _store_release,
    "opaque": _opaque,
    "exp2_approx": _intrinsic("ex2.approx.ftz.f", result=f32),
    "log2_approx": _intrinsic("lg2.approx.ftz.f", result=f32),
    "rcp_approx": _value("rcp.approx.ftz.f", f32),
    "sqrt_approx": _intrinsic("sqrt.approx.ftz.f", result=f32),
    "rsqrt_approx": _intrinsic("rsqrt.approx.ftz.f", result=f32),
    "tanh_approx": _ptx("tanh.approx.f32 $0, $1;", result=f32),
}
"""Op name without ``cute_nvgpu.arch.`` -> lowering function."""


def handler_of(lower: Lower) -> Handler:
    """Return the handler of ``cute-to-base`` that lowers an op of a row."""

    def handler(low: Lowering, op: Operation) -> None:
        assert isinstance(op, ArchOp)
        result = lower(low, op, [low.value(o) for o in op.operands])
        results = result if isinstance(result, list) else [] if result is None else [result]
        for old, new in zip(op.results, results):
            low.values[old] = new

    return handler


@cache
def _handlers() -> dict[str, Handler]:
    return {f"cute_nvgpu.arch.{row.name}": handler_of(LOWER[row.name]) for row in ROWS}


TO_BASE: Mapping[str, Handler] = _handlers()
