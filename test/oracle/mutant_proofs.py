"""Proofs that an unreported mutant is equivalent to its kernel, each with the clause of the PTX ISA.

Each reason names a section of the PTX ISA in brackets. A moved op commutes with the ops that it crosses if it does not
order any of them (:data:`COMMUTES`). The remaining reasons are separate facts (:data:`FACTS`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from mutant_kernels import Subject
from mutations import EFFECTS, Mutation, crossed, has_effect
from xdsl.dialects.builtin import DenseArrayBase, FixedBitwidthType, Float32Type, IntegerAttr, StringAttr
from xdsl.ir import Attribute, Operation, SSAValue

from cute_dialect.upstream.llvm import GEPOp

LOADS = ("nvvm.cp.async.bulk.tensor.shared.cluster.global",)
STORES = ("nvvm.cp.async.bulk.tensor.global.shared.cta",)
CP_ASYNC = ("nvvm.cp.async.shared.global", "nvvm.cp.async.commit.group", "nvvm.cp.async.wait.group")
BULK = (*STORES, "nvvm.cp.async.bulk.commit.group", "nvvm.cp.async.bulk.wait_group")
BARRIER_ARRIVAL = "llvm.call_intrinsic"
"""The arrival at a named barrier, the only intrinsic with effects."""
WGMMA = (
    "nvvm.wgmma.mma_async", "nvvm.wgmma.commit.group.sync.aligned", "nvvm.wgmma.wait.group.sync.aligned",
    "llvm.inline_asm",
)  # fmt: skip


class Commutes(NamedTuple):
    """`op` commutes with the ops of `others`, by `clause`."""

    op: str
    others: tuple[str, ...]
    clause: str


def _but(*ops: str) -> tuple[str, ...]:
    return tuple(o for o in EFFECTS if o not in ops)


COMMUTES = (
    Commutes(
        "nvvm.mbarrier.init",
        ("nvvm.mbarrier.init",),
        "initializations of two mbarriers are writes to different memory by one thread (program order)",
    ),
    Commutes(
        "nvvm.fence.mbarrier.init",
        ("nvvm.mbarrier.arrive.expect_tx",),
        "fence.mbarrier_init orders earlier mbarrier.init before the asynchronous proxy and other"
        " blocks of the cluster"
        " (membar, fence); an arrival of the same thread is neither",
    ),
    Commutes(
        "nvvm.mbarrier.arrive.expect_tx",
        (*LOADS, "nvvm.fence.mbarrier.init"),
        "a phase completes when no arrival is pending and the tx-count is zero (mbarrier, phase"
        " completion): bytes may come before"
        " they are expected while this arrival is pending",
    ),
    Commutes(
        "nvvm.mbarrier.try_wait.parity",
        (
            "nvvm.mbarrier.try_wait.parity",
            "nvvm.wgmma.fence.aligned",
            "nvvm.wgmma.wait.group.sync.aligned",
            "nvvm.barrier",
        ),
        "what comes after is ordered after both; wgmma.fence and wgmma.wait_group order accesses of MMAs"
        " (wgmma.fence, wgmma.wait_group), of which a wait for an mbarrier has none",
    ),
    Commutes(
        "nvvm.mbarrier.try_wait.parity",
        ("nvvm.elect.sync",),
        "elect.sync elects a lane of the warp and orders no accesses to memory (elect.sync); all lanes execute both",
    ),
    Commutes(
        "nvvm.mbarrier.arrive",
        ("nvvm.mbarrier.arrive",),
        "both arrivals release the same accesses of the thread (release patterns), and a thread that needs one of the"
        " two phases waits for it",
    ),
    Commutes(
        "nvvm.wgmma.fence.aligned",
        _but(*WGMMA),
        "wgmma.fence orders accesses to registers of wgmma.mma_async (wgmma.fence) and was moved across none",
    ),
    Commutes(
        "nvvm.wgmma.commit.group.sync.aligned",
        _but(*WGMMA),
        "wgmma.commit_group closes the group of earlier wgmma.mma_async (wgmma.commit_group) and was moved across none",
    ),
    Commutes(
        "nvvm.wgmma.wait.group.sync.aligned",
        ("nvvm.mbarrier.try_wait.parity", "nvvm.elect.sync", "nvvm.wgmma.fence.aligned"),
        "wgmma.wait_group orders the reads and writes of wgmma.mma_async (wgmma.wait_group); a wait has none of either",
    ),
    Commutes(
        "nvvm.wgmma.wait.group.sync.aligned",
        ("llvm.load",),
        "wgmma.wait_group orders the reads and writes of wgmma.mma_async (wgmma.wait_group); MMAs write registers only,"
        " which no load from memory reads",
    ),
    Commutes(
        "nvvm.barrier0",
        ("nvvm.shfl.sync", "nvvm.cluster.arrive.relaxed"),
        "a shuffle moves registers between the lanes of a warp, no memory (shfl.sync), and"
        " barrier.cluster.arrive.relaxed orders no accesses to memory (barrier.cluster), which a barrier orders",
    ),
    Commutes(
        "nvvm.cp.async.commit.group",
        _but(*CP_ASYNC),
        "cp.async.commit_group closes the group of earlier cp.async (cp.async.commit_group) and was moved across none",
    ),
    Commutes(
        "nvvm.cp.async.bulk.commit.group",
        _but(*BULK),
        "cp.async.bulk.commit_group closes the group of earlier bulk copies"
        " (cp.async.bulk.commit_group) and was moved across none",
    ),
    Commutes(
        "nvvm.fence.proxy",
        ("nvvm.bar.warp.sync", "nvvm.barrier", BARRIER_ARRIVAL),
        "a proxy fence may stand anywhere on the path of causality between the write and the"
        " asynchronous read (causality order);"
        " the thread that issues the copy executes it after the barrier",
    ),
    Commutes(
        "nvvm.bar.warp.sync",
        ("nvvm.fence.proxy",),
        "a proxy fence may stand anywhere on the path of causality between the write and the"
        " asynchronous read (causality order);"
        " the thread that issues the copy executes it after the barrier",
    ),
    Commutes(
        "nvvm.bar.warp.sync",
        ("nvvm.elect.sync",),
        "elect.sync elects a lane of the warp and orders no accesses to memory (elect.sync), which the barrier orders",
    ),
    Commutes(
        BARRIER_ARRIVAL,
        ("nvvm.fence.proxy",),
        "a proxy fence may stand anywhere on the path of causality between the write and the"
        " asynchronous read (causality order);"
        " all threads that issue MMAs execute one after they have waited for the barrier",
    ),
    Commutes(
        BARRIER_ARRIVAL,
        ("nvvm.bar.warp.sync",),
        "all lanes arrive at the named barrier (bar), each after its own accesses: the barrier of the warp only makes"
        " it converge",
    ),
    Commutes(
        BARRIER_ARRIVAL,
        ("nvvm.wgmma.commit.group.sync.aligned", "nvvm.wgmma.fence.aligned"),
        "wgmma.commit_group closes the group of earlier wgmma.mma_async (wgmma.commit_group) and wgmma.fence orders"
        " accesses to registers (wgmma.fence): neither orders the accesses that the arrival releases",
    ),
    Commutes(
        "nvvm.barrier",
        ("nvvm.fence.proxy",),
        "a proxy fence may stand anywhere on the path of causality between the write and the"
        " asynchronous read (causality order);"
        " all threads that issue MMAs execute it after the barrier",
    ),
    Commutes(
        "nvvm.barrier",
        ("nvvm.mbarrier.try_wait.parity", "nvvm.wgmma.fence.aligned"),
        "what comes after is ordered after both, and the barrier's arrivals do not depend on the phase, for every"
        " schedule ends (bar)",
    ),
    Commutes(
        "nvvm.fence.proxy",
        ("nvvm.wgmma.fence.aligned",),
        "wgmma.fence orders accesses to registers of wgmma.mma_async (wgmma.fence), the proxy fence those to memory",
    ),
    Commutes(
        "nvvm.cluster.arrive.relaxed",
        ("llvm.load", "nvvm.barrier0", "nvvm.shfl.sync", "nvvm.mbarrier.arrive.expect_tx", "nvvm.elect.sync", *LOADS),
        "barrier.cluster.arrive.relaxed orders no accesses to memory (barrier.cluster), and the"
        " first loads are of the block's"
        " own, whose mbarriers it has initialized itself",
    ),
    Commutes(
        "nvvm.barrier0",
        ("nvvm.cluster.wait", "nvvm.mbarrier.arrive.expect_tx", "nvvm.elect.sync", *LOADS),
        "what comes after is ordered after both; a load by the thread that has initialized its mbarrier does not"
        " wait, and other threads wait for that mbarrier",
    ),
    Commutes(
        "nvvm.cluster.wait",
        ("nvvm.barrier0",),
        "what comes after is ordered after both (bar, barrier.cluster)",
    ),
    Commutes(
        "nvvm.cluster.wait",
        ("nvvm.shfl.sync",),
        "a shuffle moves registers between the lanes of a warp, no memory (shfl.sync), which barrier.cluster orders",
    ),
    Commutes("nvvm.setmaxregister", EFFECTS, "setmaxnreg changes the register limit of a warp (setmaxnreg)"),
)


def _commutes(subject: Subject, mutation: Mutation, op: Operation) -> str:
    if mutation.kind != "move":
        return ""
    across = crossed(op, earlier=mutation.what.endswith("earlier"))
    names = {o.name for top in across for o in top.walk() if has_effect(o)}
    return next((c.clause for c in COMMUTES if c.op == op.name and names <= set(c.others)), "")


WAITS = {"nvvm.mbarrier.try_wait.parity", "nvvm.cluster.wait", "nvvm.barrier0", "nvvm.barrier"}
"""Waits that an arrival may release."""
ARRIVALS = (
    "nvvm.mbarrier.arrive", "nvvm.cp.async.mbarrier.arrive", "nvvm.inline_ptx", "nvvm.cluster.arrive", BARRIER_ARRIVAL,
)  # fmt: skip


def _stronger(subject: Subject, mutation: Mutation, op: Operation) -> str:
    """A later arrival orders more ops before it, and an earlier wait orders more ops after it."""
    if mutation.kind != "move":
        return ""
    earlier = mutation.what.endswith("earlier")
    names = {o.name for top in crossed(op, earlier=earlier) for o in top.walk() if has_effect(o)}
    if op.name in ARRIVALS and not earlier and not names & WAITS:
        return (
            "an arrival orders what is before it (release patterns): later it orders more, and nothing"
            " between waits for it"
        )
    # No other block's arrival at the cluster barrier depends on a load of this block.
    loads = {"nvvm.mbarrier.arrive.expect_tx", *LOADS} if op.name == "nvvm.cluster.wait" else set[str]()
    # The end of a wgmma.mma_async is known only after wgmma.wait_group, so the instruction itself releases no wait.
    if op.name in ("nvvm.mbarrier.try_wait.parity", "nvvm.cluster.wait") and earlier and names <= loads | {
        "llvm.load", "llvm.store", "nvvm.stmatrix", "nvvm.elect.sync", "nvvm.wgmma.fence.aligned", "nvvm.shfl.sync",
        "nvvm.wgmma.mma_async",
    }:  # fmt: skip
        return (
            "a wait orders what is after it (acquire patterns): earlier it orders more, and nothing between lets it end"
        )
    across = [o for top in crossed(op, earlier=earlier) for o in top.walk() if has_effect(o)]
    if op.name == "nvvm.barrier" and earlier and names == {"nvvm.mbarrier.arrive"} and all(map(_only_arrival, across)):
        return (
            "a barrier orders what is after it (bar): earlier it orders more; the arrival that it crosses is not needed"
            " for the barrier to end, for every schedule ends, and a thread that needs its phase waits for it"
        )
    return ""


def _elsewhere(subject: Subject, mutation: Mutation, op: Operation) -> str:
    """A wait for copies into shared memory, a fence of shared memory, or a barrier was moved across global accesses."""
    barriers = ("nvvm.bar.warp.sync", "nvvm.barrier")
    waits = ("nvvm.cp.async.wait.group", "nvvm.mbarrier.try_wait.parity", *barriers)
    is_fence = op.name == "nvvm.fence.proxy" and "space" in op.properties
    if mutation.kind != "move" or not (is_fence or op.name in waits):
        return ""
    across = [o for top in crossed(op, earlier=mutation.what.endswith("earlier")) for o in top.walk()]
    effects = [o for o in across if has_effect(o)]
    if not all(o.name in ("llvm.load", "llvm.store") and "ptr<1>" in str(o.operands[-1].type) for o in effects):
        return ""
    if op.name in barriers:
        return "the barrier was moved across accesses to global memory only, whose races are reported (bar)"
    if is_fence:
        return (
            "fence.proxy.async with a state space orders accesses to shared memory only (membar, fence), and was moved"
            " across none"
        )
    return "the wait is for copies into shared memory, and was moved across no access to their destination"


def _phase_known(subject: Subject, mutation: Mutation, op: Operation) -> str:
    """Bytes are expected before the wait for an empty slot, by a thread that is ordered after the last copies to it."""
    expect, wait = "nvvm.mbarrier.arrive.expect_tx", "nvvm.mbarrier.try_wait.parity"
    across = {f"{expect} earlier": (wait, "nvvm.elect.sync"), f"{wait} later": (expect,)}.get(mutation.what)
    if across is None:
        return ""
    earlier = mutation.what.endswith("earlier")
    if not {o.name for top in crossed(op, earlier=earlier) for o in top.walk() if has_effect(o)} <= {*across}:
        return ""
    return (
        "the arrival belongs to the next phase (phase of the mbarrier object), for an earlier wait orders it after the"
        " copies of the previous phase: one that is not ordered is reported; nothing between needs that arrival"
    )


def _nothing_left(subject: Subject, mutation: Mutation, op: Operation) -> str:
    """The last cp.async wait of the kernel, or a barrier moved before it, waits only for empty groups."""
    if mutation.what == "nvvm.barrier0 earlier":
        effects = [o for top in crossed(op, earlier=True) for o in top.walk() if has_effect(o)]
        if len(effects) != 1:
            return ""
        op = effects[0]
    function = op.parent_op()
    while function is not None and not function.name.endswith("func"):
        function = function.parent_op()
    waits = [o for o in function.walk() if o.name == "nvvm.cp.async.wait.group"] if function is not None else []
    if not waits or op is not waits[-1]:
        return ""
    return "the groups left are empty, their copies lie past K: a block that ends with a copy in flight is reported"


def _lower_bound(subject: Subject, mutation: Mutation, op: Operation) -> str:
    """A loop that counts the groups that reach a bound, or that refines it, has fewer iterations."""
    fewer = ("a loop ends one step earlier", "a loop begins one step later")
    if not subject.lower or mutation.kind != "bound" or mutation.what not in fewer or op.name != "scf.for":
        return ""
    inside = {o.name for o in op.walk()}
    # Loops that append candidates have atomics, but no ballots.
    return subject.lower if any("vote" in name for name in inside) else ""


def _other_stage(subject: Subject, mutation: Mutation, op: Operation) -> str:
    """A wait for one stage was moved across a read of another stage, or before copies and arrivals for others."""
    copied, wait = "nvvm.cp.async.mbarrier.arrive", "nvvm.mbarrier.try_wait.parity"
    if mutation.kind != "move" or op.name != wait:
        return ""
    earlier = mutation.what.endswith("earlier")
    names = {o.name for top in crossed(op, earlier=earlier) for o in top.walk() if has_effect(o)}
    if not earlier and names <= {"llvm.load", "llvm.store"}:
        return (
            "what is accessed there is of a stage that was waited for before: an access before its wait is reported as"
            " a race"
        )
    others = {*LOADS, "nvvm.mbarrier.arrive.expect_tx", "nvvm.mbarrier.arrive", copied, wait}
    if earlier and names <= others | {"llvm.load", "nvvm.cp.async.shared.global", "nvvm.shfl.sync"}:
        return (
            "earlier it orders more, and what it waits for does not need the ops between, for every schedule ends:"
            " otherwise the wait would never end, under any schedule"
        )
    return ""


def _copies_covered(subject: Subject, mutation: Mutation, op: Operation) -> str:
    """An arrival for cp.async was moved before copies, after which there is another one, or after a wait."""
    copied = "nvvm.cp.async.mbarrier.arrive"
    if mutation.kind != "move" or op.name != copied:
        return ""
    earlier = mutation.what.endswith("earlier")
    names = {o.name for top in crossed(op, earlier=earlier) for o in top.walk() if has_effect(o)}
    copies = {"llvm.load", "nvvm.shfl.sync", "nvvm.cp.async.shared.global"}
    if not earlier and names <= copies | {copied, "nvvm.mbarrier.try_wait.parity"}:
        return (
            "an arrival covers all earlier cp.async of the thread (cp.async.mbarrier.arrive): later it covers more, and"
            " what it crosses does not wait for it, for every schedule ends"
        )
    ops = list(_function(op).walk())
    again = any(o.name == copied for o in ops[next(i for i, o in enumerate(ops) if o is op) + 1 :])
    if earlier and again and names <= copies:
        return (
            "the next arrival covers the copies, too (cp.async.mbarrier.arrive), and the waits before each use of them"
            " include one for it: a use without is reported as a race under every schedule"
        )
    return ""


def _ahead(subject: Subject, mutation: Mutation, op: Operation) -> str:
    """A barrier was moved before the last read of a step."""
    if not subject.ahead or mutation.what != "nvvm.barrier0 earlier":
        return ""
    effects = [o for top in crossed(op, earlier=True) for o in top.walk() if has_effect(o)]
    return subject.ahead if [o.name for o in effects] == ["llvm.load"] else ""


def _stored_result(subject: Subject, mutation: Mutation, op: Operation) -> str:
    """A barrier was moved before stores to global memory that no thread reads."""
    if mutation.what != "nvvm.barrier0 earlier":
        return ""
    effects = [o for top in crossed(op, earlier=True) for o in top.walk() if has_effect(o)]
    if not effects or any(o.name != "llvm.store" or not _is_global(o.operands[1].type) for o in effects):
        return ""
    function = op.parent_op()
    while function is not None and not function.name.endswith("func"):
        function = function.parent_op()
    following = list(function.walk()) if function is not None else []
    following = following[next(i for i, o in enumerate(following) if o is op) :]
    if any(o.name in LOADS or (o.name == "llvm.load" and _is_global(o.operands[0].type)) for o in following):
        return ""
    return "the results that it crosses are in global memory, which no thread reads after the barrier (bar)"


def _is_global(pointer: Attribute) -> bool:
    return str(pointer) == "!llvm.ptr<1>"


def _regrouped(subject: Subject, mutation: Mutation, op: Operation) -> str:
    """A copy now belongs to another commit group."""
    if mutation.kind == "weaken" or not op.name.endswith("commit.group") or "wgmma" in op.name:
        return ""
    return (
        "a copy belongs to the next group or to the one before instead (cp.async.commit_group,"
        " cp.async.bulk.commit_group); the waits before the"
        " end and before each use of the memory cover that group, too: copies without a wait are reported"
    )


def _producer(subject: Subject, mutation: Mutation, op: Operation) -> str:
    """The mutant changes the cluster barrier arrival of a warpgroup that only issues loads."""
    if op.name != "nvvm.cluster.arrive" or mutation.kind == "drop":
        return ""
    role = crossed(op, earlier=True)
    names = {o.name for top in role for o in top.walk() if has_effect(o)}
    loads = {*LOADS, "nvvm.mbarrier.try_wait.parity", "nvvm.mbarrier.arrive.expect_tx", "nvvm.elect.sync"}
    if not names or not names <= loads:
        return ""
    return (
        "this warpgroup has only issued loads, each of which the consumers of its block wait for"
        " before they arrive at"
        " the same barrier of the cluster with release (barrier.cluster)"
    )


def _unused(subject: Subject, mutation: Mutation, op: Operation) -> str:
    """The initialization of an mbarrier that no thread uses with this configuration."""
    if (mutation.kind, op.name) != ("drop", "nvvm.mbarrier.init"):
        return ""
    return "no thread uses this mbarrier: a use without mbarrier.init is reported (mbarrier.init)"


def _unawaited(subject: Subject, mutation: Mutation, op: Operation) -> str:
    if (mutation.kind, op.name) != ("drop", "nvvm.mbarrier.arrive"):
        return ""
    return (
        "no thread waits for the phase that this arrival completes: a missing arrival would leave its waiter for ever"
        " (mbarrier, phase completion), and every schedule ends"
    )


def _once(subject: Subject, mutation: Mutation, op: Operation) -> str:
    """The wait for a staging buffer, or its barrier, is redundant in kernels that use each buffer once."""
    if not subject.once:
        return ""
    near = [o.name for o in (op, op.prev_op, op.prev_op.prev_op if op.prev_op else None) if o is not None]
    staging = op.name.startswith("nvvm.cp.async.bulk.") or (
        op.name == "nvvm.bar.warp.sync" and any(n == "nvvm.cp.async.bulk.wait_group" or n == "scf.if" for n in near[1:])
    )
    return subject.once if staging else ""


def _no_group_too_many(subject: Subject, mutation: Mutation, op: Operation) -> str:
    """A wait that allows as many bulk groups in flight as were committed never waits.

    The proof covers such a wait and the warp barrier after it.
    """
    if mutation.kind == "move":
        across = crossed(op, earlier=mutation.what.endswith("earlier"))
        if any(o.name == "nvvm.cp.async.bulk.commit.group" for top in across for o in top.walk()):
            return ""
    if op.name == "nvvm.bar.warp.sync" and op.prev_op is not None:
        op = next((o for o in op.prev_op.walk() if o.name == "nvvm.cp.async.bulk.wait_group"), op)
    if op.name != "nvvm.cp.async.bulk.wait_group":
        return ""
    function, loops = op.parent_op(), False
    while function is not None and not function.name.endswith("func"):
        loops |= function.name in ("scf.for", "scf.while")
        function = function.parent_op()
    if function is None or loops:
        return ""
    committed = 0
    for o in function.walk():
        if o is op:
            break
        commits = sum(i.name == "nvvm.cp.async.bulk.commit.group" for i in o.walk())
        if commits and o.name in ("scf.for", "scf.while"):
            return ""
        committed += o.name == "nvvm.cp.async.bulk.commit.group"
    allowed = op.properties["group"]
    assert isinstance(allowed, IntegerAttr)
    if committed > allowed.value.data:
        return ""
    return (
        "the wait allows as many bulk groups in flight as the thread has committed before it"
        " (cp.async.bulk.wait_group), so it never waits"
    )


def _same_shape(subject: Subject, mutation: Mutation, op: Operation) -> str:
    if op.name != "nvvm.wgmma.fence.aligned":
        return ""
    return (
        "wgmma.fence is not needed between wgmma.mma_async of one shape that accumulate in the same registers"
        " (wgmma.fence), and these are not accessed otherwise"
    )


def _fenced_later(subject: Subject, mutation: Mutation, op: Operation) -> str:
    """The initializations of several pipelines each end with a fence; the last one covers all."""
    fence = "nvvm.fence.mbarrier.init"
    fences = [op] if op.name == fence and mutation.kind in ("drop", "move") else []
    if op.name == "nvvm.mbarrier.init" and mutation.kind == "move":
        across = crossed(op, earlier=mutation.what.endswith("earlier"))
        effects = [o for top in across for o in top.walk() if has_effect(o)]
        fences = [o for o in effects if o.name == fence]
        if {o.name for o in effects} - {fence, op.name}:
            return ""
    function = op.parent_op()
    while function is not None and not function.name.endswith("func"):
        function = function.parent_op()
    every = [] if function is None else [o for o in function.walk() if o.name == fence]
    if not fences or every[-1] in fences:
        return ""
    return (
        "fence.mbarrier_init orders all earlier mbarrier.init of the thread (membar, fence), and elect.sync elects the"
        " same thread each time (elect.sync): the last fence covers the initializations before it"
    )


def _initialized_by_producer(subject: Subject, mutation: Mutation, op: Operation) -> str:
    """The barrier of the block was moved before the initialization of the last mbarriers."""
    if mutation.what != "nvvm.barrier0 earlier":
        return ""
    names = {o.name for top in crossed(op, earlier=True) for o in top.walk() if has_effect(o)}
    if names != {"nvvm.elect.sync", "nvvm.mbarrier.init", "nvvm.fence.mbarrier.init"}:
        return ""
    return (
        "the thread that initializes these mbarriers fills the stages of others, too, and its arrivals there release"
        " the initializations (release patterns): a use that is not ordered after the initialization is reported"
    )


def _without_copies(subject: Subject, mutation: Mutation, op: Operation) -> str:
    """The initializations are fenced in a kernel whose mbarriers are used by threads of the block only."""
    fence = "nvvm.fence.mbarrier.init"
    crosses = mutation.kind == "move" and {
        o.name for top in crossed(op, earlier=mutation.what.endswith("earlier")) for o in top.walk() if has_effect(o)
    } == {fence}
    if op.name != fence and not (crosses and op.name == "nvvm.mbarrier.init"):
        return ""
    function = op.parent_op()
    while function is not None and not function.name.endswith("func"):
        function = function.parent_op()
    if function is None or any(o.name.startswith(("nvvm.cp.async.bulk", "nvvm.cluster")) for o in function.walk()):
        return ""
    return (
        "fence.mbarrier_init orders mbarrier.init before the asynchronous proxy and other blocks of the cluster"
        " (membar, fence): no copy signals these mbarriers, and the barrier of the block orders their use by threads"
    )


def _fenced_again(subject: Subject, mutation: Mutation, op: Operation) -> str:
    """Another proxy fence follows before the next MMA or bulk copy, executed by the threads that issue it."""
    fence = "nvvm.fence.proxy"
    if op.name != fence or (mutation.kind not in ("drop", "weaken") and mutation.what != f"{fence} earlier"):
        return ""
    # The next barrier also orders these writes before the MMAs of threads that pass it in other code.
    barrier = next((o for o in _following(op) if o.name == "nvvm.barrier"), None)
    others = [o for o in _function(op).walk() if barrier is not None and o.name == barrier.name and o is not barrier]
    same = [o for o in others if barrier is not None and _same_value(o.operands[0], barrier.operands[0])]
    if not _next_fences(op, op) or any(_next_fences(o, op) is None for o in same):
        return ""
    return (
        "the next proxy fence is on the path of causality between the writes and the MMAs, too (causality order): it is"
        " before the next MMA, and all threads that issue MMAs execute it"
    )


def _next_fences(start: Operation, like: Operation) -> list[Operation] | None:
    """Return the proxy fences that come next on the paths after an op, None if an MMA or bulk copy may come before.

    The fences are like another one, which the mutant lacks and which is not among them: the paths after it are others.
    """
    met: list[Operation] = []
    at: Operation | None = start
    while at is not None and not at.name.endswith("func"):
        ops = _following(at)
        if at is not start and at.name in ("scf.for", "scf.while"):
            ops = [at, *ops]  # the next iteration
        found = _first_of(ops, like, met)
        if found is not None:
            return met if found.name == like.name else None
        at = at.parent_op()
    return met


def _first_of(ops: Iterable[Operation], like: Operation, met: list[Operation]) -> Operation | None:
    """Return the fence that comes before all MMAs and bulk copies, or one of these, or None if a path has neither.

    Fences are added to ``met``, except `like` itself.
    """
    for op in ops:
        if op.name == like.name and op.properties == like.properties:
            met += [op] if op is not like else []
            return op
        if op.name in (*LOADS, *STORES, "nvvm.wgmma.mma_async") or _is_mma_asm(op):
            return op
        paths = [_first_of(region.blocks[0].ops if region.blocks else [], like, met) for region in op.regions]
        access = next((found for found in paths if found is not None and found.name != like.name), None)
        if access is not None:
            return access
        always = paths[:1] if op.name == "scf.while" else paths if op.name == "scf.if" else []
        if always and all(always):
            return always[0]
    return None


def _is_mma_asm(op: Operation) -> bool:
    return op.name == "llvm.inline_asm" and "wgmma.mma_async" in str(op.properties["asm_string"])


def _one_group(subject: Subject, mutation: Mutation, op: Operation) -> str:
    """MMAs join a later group, and a wait completes that group before their registers are accessed."""
    commit = "nvvm.wgmma.commit.group.sync.aligned"
    if op.name != commit or mutation.kind not in ("drop", "move"):
        return ""
    loop = op.parent_op()
    following, at = list[Operation](), op.next_op
    while at is not None:
        following.append(at)
        at = at.next_op
    if loop is not None and loop.name in ("scf.for", "scf.while") and op.parent is not None:
        following += op.parent.ops  # the next iteration
    later = 0
    for at in following:
        left = _groups_left(at)
        # The first later commit closes the group; those after it may stay pending.
        if left is not None and later and left < later:
            return (
                "the MMAs join a later group (wgmma.commit_group), and a wait completes it; an access to their"
                " registers before that wait is reported"
            )
        later += at.name == commit
    return ""


def _waited_again(subject: Subject, mutation: Mutation, op: Operation) -> str:
    """A wait for MMAs before another one, in the block or the next iteration, which completes them as well."""
    left = _groups_left(op)
    weaker = mutation.kind in ("drop", "weaken") or mutation.what.endswith(" earlier")
    if not weaker or left is None:
        return ""
    at, loop = op.next_op, op.parent_op()
    following: list[Operation] = []
    while at is not None:
        following.append(at)
        at = at.next_op
    if loop is not None and loop.name in ("scf.for", "scf.while") and op.parent is not None:
        following += [o for o in op.parent.ops if o is not op]
    if all(_groups_left(o) is None for o in following):
        return ""
    return (
        "the next wait completes the MMAs, too (wgmma.wait_group); an access to their accumulators or to memory that"
        " they read before that wait is reported, and values of A are not overwritten"
    )


def _loads_before_both(subject: Subject, mutation: Mutation, op: Operation) -> str:
    """A barrier of a warp was moved before a wait for MMAs, or the wait after the barrier."""
    earlier = mutation.what == "nvvm.bar.warp.sync earlier"
    if not earlier and (mutation.kind != "move" or _groups_left(op) is None):
        return ""
    effects = [o for top in crossed(op, earlier=earlier) for o in top.walk() if has_effect(o)]
    if not effects or any(_groups_left(o) is None if earlier else o.name != "nvvm.bar.warp.sync" for o in effects):
        return ""
    return (
        "the warp's loads from memory are before both (bar.warp.sync), and all its threads execute the wait"
        " (wgmma.wait_group.sync.aligned) before the arrival"
    )


def _barrier_and_wait(subject: Subject, mutation: Mutation, op: Operation) -> str:
    """A named barrier was moved across a wait for MMAs."""
    if mutation.kind != "move" or op.name != "nvvm.barrier":
        return ""
    across = crossed(op, earlier=mutation.what.endswith("earlier"))
    effects = [o for top in across for o in top.walk() if has_effect(o)]
    if not effects or any(_groups_left(o) is None for o in effects):
        return ""
    return (
        "what comes after is ordered after both (bar, wgmma.wait_group); an access to memory that an MMA still reads,"
        " by a thread that has passed the barrier, is reported"
    )


def _all_start(subject: Subject, mutation: Mutation, op: Operation) -> str:
    """A wait for the blocks of a cluster that have started."""
    if mutation.what != "nvvm.cluster.wait earlier":
        return ""
    at: Operation | None = op
    while at is not None:
        before = at.prev_op
        while before is not None and not before.name.startswith("nvvm.cluster"):
            before = before.prev_op
        if before is not None:
            if before.name != "nvvm.cluster.arrive.relaxed":
                return ""
            return (
                "a wait orders what is after it (barrier.cluster.wait): earlier it orders more, and each block arrives"
                " when it starts, before it waits for anything"
            )
        at = at.parent_op()
    return ""


def _groups_left(op: Operation) -> int | None:
    """Return the number of groups that a wait for MMAs leaves pending, or None for another op."""
    if op.name == "nvvm.wgmma.wait.group.sync.aligned":
        group = op.properties["group"]
        return group.value.data if isinstance(group, IntegerAttr) else None
    code = op.properties.get("asm_string") if op.name == "llvm.inline_asm" else None
    found = re.match(r"wgmma\.wait_group\.sync\.aligned (\d+)", code.data) if isinstance(code, StringAttr) else None
    return int(found[1]) if found else None


def _function(op: Operation) -> Operation:
    """Return the function that contains an op."""
    at = op.parent_op()
    while at is not None and not at.name.endswith("func"):
        at = at.parent_op()
    assert at is not None
    return at


def _following(op: Operation) -> list[Operation]:
    """Return the ops after an op in its block."""
    found: list[Operation] = []
    at = op.next_op
    while at is not None:
        found.append(at)
        at = at.next_op
    return found


def _address(pointer: SSAValue) -> tuple[SSAValue, int]:
    """Return the base of a pointer and its offset from it, in bytes. The base is computed from run-time values."""
    offset = 0
    while isinstance(op := pointer.owner, GEPOp) and len(op.operands) == 1:
        indices, element = op.properties["rawConstantIndices"], op.properties["elem_type"]
        assert isinstance(indices, DenseArrayBase)
        if len(indices) != 1 or not isinstance(element, FixedBitwidthType):
            break
        offset += int(indices.get_values()[0]) * element.size
        pointer = op.operands[0]
    return pointer, offset


def _same_value(one: SSAValue, other: SSAValue) -> bool:
    """Return True if two values are computed by the same ops without effects."""
    if one is other:
        return True
    a, b = one.owner, other.owner
    return (
        isinstance(a, Operation)
        and isinstance(b, Operation)
        and (a.name, a.properties, len(a.operands)) == (b.name, b.properties, len(b.operands))
        and not a.regions
        and a.name.startswith(("arith.", "nvvm.read.ptx.sreg."))
        and all(_same_value(x, y) for x, y in zip(a.operands, b.operands))
    )


ARRIVES = ("nvvm.mbarrier.arrive", "nvvm.mbarrier.arrive.expect_tx", "nvvm.cp.async.mbarrier.arrive")


def _only_arrival(like: Operation) -> Operation | None:
    """Return the only op of the kernel that arrives at the mbarrier of an op, None if there may be others."""
    base, offset = _address(like.operands[0])
    found: list[Operation] = []
    for o in _function(like).walk():
        if o.name == "nvvm.inline_ptx" and "mbarrier" in str(o.properties["ptxCode"]):
            return None
        if o.name not in ARRIVES:
            continue
        at = _address(o.operands[0])
        if at[0] is not base:
            return None
        if at == (base, offset):
            found.append(o)
    return found[0] if len(found) == 1 else None


def _released_before(first: Operation, wait: Operation) -> bool:
    """Return True if the threads that release the mbarrier of a wait release that of an earlier wait afterwards.

    Both mbarriers expect as many arrivals, and each of the two has one op that arrives at it, in the same iterations.
    So a phase of the first is complete only when the same phase of the other one is.
    """
    releases = [a if (a := _only_arrival(w)) and a.name == "nvvm.mbarrier.arrive" else None for w in (first, wait)]
    counts = [
        next((o.operands[1] for o in _function(w).walk() if _is_init(o) and _same_mbarrier(o, w)), None)
        for w in (first, wait)
    ]
    if None in releases or None in counts or not _same_value(first.operands[1], wait.operands[1]):
        return False
    if not _same_value(*(count for count in counts if count is not None)):
        return False
    last, earlier = (_guarded(o) for o in releases if o is not None)
    if len(last) != len(earlier) or last[-1] not in _following(earlier[-1]):
        return False
    return all(_same_value(a.operands[0], b.operands[0]) for a, b in zip(last[1:], earlier[1:]))


def _is_init(op: Operation) -> bool:
    return op.name == "nvvm.mbarrier.init"


def _same_mbarrier(one: Operation, other: Operation) -> bool:
    return _address(one.operands[0]) == _address(other.operands[0])


def _guarded(op: Operation) -> list[Operation]:
    """Return an op and the scf.if ops whose conditions it needs to be executed, from the inside out."""
    found = [op]
    while (parent := found[-1].parent_op()) is not None and parent.name == "scf.if":
        if found[-1].parent is not parent.regions[0].blocks[0]:
            break
        found.append(parent)
    return found


def _covering(wait: Operation) -> Operation | None:
    """Return an earlier wait of the block that waits for everything that a wait waits for, None if there is none."""
    before = wait.prev_op
    while before is not None:
        if before.name == wait.name and _released_before(before, wait):
            return before
        before = before.prev_op
    return None


def _released_last(subject: Subject, mutation: Mutation, op: Operation) -> str:
    """A wait for a slot that its consumers release before another one, or their release of it, orders nothing."""
    wait = "nvvm.mbarrier.try_wait.parity"
    if mutation.what == "nvvm.mbarrier.arrive earlier":
        waits = [o for o in _function(op).walk() if o.name == wait and _same_mbarrier(o, op)]
        covered = bool(waits) and all(_covering(o) is not None for o in waits)
    else:
        weaker = mutation.kind == "drop" or mutation.what.endswith(" later")
        covered = op.name == wait and weaker and _covering(op) is not None
    if not covered:
        return ""
    return (
        "the threads that release this mbarrier release another one afterwards, for which the same phase has been"
        " waited before (release patterns, acquire patterns)"
    )


def _loaded_only(subject: Subject, mutation: Mutation, op: Operation) -> str:
    """A proxy fence was moved before stores of f32, which no MMA and no bulk copy of the kernel accesses."""
    if mutation.what != "nvvm.fence.proxy earlier":
        return ""
    effects = [o for top in crossed(op, earlier=True) for o in top.walk() if has_effect(o)]
    if not all(o.name == "llvm.store" and isinstance(o.operands[0].type, Float32Type) for o in effects):
        return ""
    function = _function(op)
    types = re.findall(r"\btma_\w+<(\w+)", str(function.attributes.get("cute.args")))
    for o in function.walk():
        if o.name == "nvvm.wgmma.mma_async":
            types += [str(o.properties[key]) for key in ("typeA", "typeB")]
        elif _is_mma_asm(o):
            types += re.findall(r"\.m64n\d+k\d+\.\w+\.(\w+)\.(\w+)", str(o.properties["asm_string"]))[0]
        elif o.name.startswith("nvvm.cp.async.bulk.") and "tensor" not in o.name and "group" not in o.name:
            return ""
    if not types or any("f32" in t for t in types):
        return ""
    return (
        "fence.proxy.async orders generic accesses before asynchronous ones (membar, fence): the stores are of f32, of"
        " which no MMA and no bulk copy accesses any; one that does without a fence is reported as a race"
    )


def _converges(subject: Subject, mutation: Mutation, op: Operation) -> str:
    """A barrier of the warp before an arrival of all its lanes, moved across the arrival or the wait before it."""
    if op.name != "nvvm.bar.warp.sync":
        return ""
    after = op.next_op
    while after is not None and not has_effect(after) and after.name != "llvm.call_intrinsic":
        after = after.next_op
    if after is None or "barrier.cta.arrive.aligned" not in str(after.properties.get("intrin")):
        return ""
    return (
        "all lanes arrive at the named barrier after it (bar), the one that waits for copies after its wait; the"
        " barrier of the warp only makes it converge"
    )


def _covered(subject: Subject, mutation: Mutation, op: Operation) -> str:
    """The first of several waits of a producer is for the slot that consumers release last."""
    if not subject.covered or (mutation.kind, op.name) != ("drop", "nvvm.mbarrier.try_wait.parity"):
        return ""
    block = op.parent
    waits = [o for o in block.ops if o.name == op.name] if block is not None else []
    copies = (*LOADS, "nvvm.cp.async.shared.global")
    loads = block is not None and any(o.name in copies for top in block.ops for o in top.walk())
    return subject.covered if loads and len(waits) > 1 and op is not waits[0] else ""


def _at_begin(subject: Subject, mutation: Mutation, op: Operation) -> str:
    """A producer's wait at the begin of a tile, not in the loop over its steps."""
    if not subject.begin or (mutation.kind, op.name) != ("drop", "nvvm.mbarrier.try_wait.parity"):
        return ""
    if op.parent is None or not any(o.name in LOADS for top in op.parent.ops for o in top.walk()):
        return ""
    at = op.parent_op()
    while at is not None and not at.name.endswith("func"):
        if at.name == "scf.for":
            return ""
        at = at.parent_op()
    return subject.begin


def _passed(subject: Subject, mutation: Mutation, op: Operation) -> str:
    """A wait for a full slot follows a named barrier of threads that have waited for it."""
    if not subject.passed or (mutation.kind, op.name) != ("drop", "nvvm.mbarrier.try_wait.parity"):
        return ""
    before = op.prev_op
    while before is not None and before.name not in ("nvvm.barrier", op.name):
        before = before.prev_op
    return subject.passed if before is not None and before.name == "nvvm.barrier" else ""


def _read_before(subject: Subject, mutation: Mutation, op: Operation) -> str:
    """A named barrier before stores to shared memory was moved after the first one."""
    if not subject.read or mutation.what != "nvvm.barrier later":
        return ""
    effects = [o for top in crossed(op, earlier=False) for o in top.walk() if has_effect(o)]
    stores = len(effects) == 1 and effects[0].name == "llvm.store"
    return subject.read if stores and "ptr<3>" in str(effects[0].operands[1].type) else ""


def _known_already(subject: Subject, mutation: Mutation, op: Operation) -> str:
    """The barrier before the fence includes a thread that has read the flag with acquire."""
    if op.name == "nvvm.barrier" and mutation.what.endswith("later"):
        across = crossed(op, earlier=False)
        return _known_already(subject, mutation, across[-1]) if across[-1].name == "llvm.fence" else ""
    before = op.prev_op
    while before is not None and before.name != "nvvm.barrier":
        before = before.prev_op
    polls = before.prev_op if op.name == "llvm.fence" and before is not None else None
    if polls is None or not any(o.name == "llvm.load" and "ordering" in o.properties for o in polls.walk()):
        return ""
    return (
        "the thread that polls reads the counter with ld.acquire.gpu, and the barrier passes on what it has learnt"
        " (synchronizes-with, causality order): the fence behind it is one too many"
    )


def _at_the_end(subject: Subject, mutation: Mutation, op: Operation) -> str:
    """A named barrier after which its warps have nothing to do."""
    if op.name != "nvvm.barrier" or mutation.kind == "move":
        return ""
    at: Operation | None = op
    while at is not None and not at.name.endswith("func"):
        after = at.next_op
        while after is not None:
            if any(has_effect(o) for o in after.walk()):
                return ""
            after = after.next_op
        at = at.parent_op()
        if at is not None and at.name in ("scf.while", "scf.for"):
            return ""
    return "no access of these warps follows that the barrier could order (bar): it only takes the last arrivals"


SAME: dict[tuple[str, str], str] = {
    ("drop", "nvvm.setmaxregister"): ("setmaxnreg changes the register limit of a warp (setmaxnreg), and nothing else"),
    ("weaken", "nvvm.cp.async.bulk.wait_group waits for reads only"): (
        "no thread of the grid reads what the bulk copies write; the end of the grid completes them"
        " (cp.async.bulk.wait_group)"
    ),
    ("weaken", "llvm.fence release"): (
        "before the atomic that others poll, a release is what is needed (release patterns); PTX spells it"
        " fence.acq_rel as well"
    ),
    ("weaken", "another named barrier"): (
        "all threads of the barrier take the other number with it (bar), and nothing else uses that one"
    ),
}
"""(kind, what) of a mutation -> reason why it changes nothing."""


def _same(subject: Subject, mutation: Mutation, op: Operation) -> str:
    return SAME.get((mutation.kind, mutation.what), "")


FACTS: tuple[Callable[[Subject, Mutation, Operation], str], ...] = (
    _commutes,
    _stronger,
    _producer,
    _regrouped,
    _ahead,
    _lower_bound,
    _other_stage,
    _copies_covered,
    _phase_known,
    _nothing_left,
    _elsewhere,
    _unused,
    _unawaited,
    _once,
    _no_group_too_many,
    _same_shape,
    _fenced_later,
    _initialized_by_producer,
    _without_copies,
    _fenced_again,
    _one_group,
    _waited_again,
    _loads_before_both,
    _barrier_and_wait,
    _all_start,
    _converges,
    _covered,
    _released_last,
    _loaded_only,
    _at_begin,
    _passed,
    _read_before,
    _known_already,
    _stored_result,
    _at_the_end,
    _same,
)


def proof(subject: Subject, mutation: Mutation, op: Operation) -> str:
    """Return the reason with its clause, or an empty string if there is none."""
    return next((reason for fact in FACTS if (reason := fact(subject, mutation, op))), "")
