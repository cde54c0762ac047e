"""The table of effects: the instructions that the protocol prover models, and those that cannot change a protocol.

The interpreter defines the instructions. Those that only compute with registers are the ones in its tables of integers,
floats, vectors, moves and conversions, so both sides agree on what has no effect. An op in neither table makes a kernel
"not proved", by name. Nothing is skipped silently.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from xdsl.ir import Attribute, Operation, SSAValue

from cute_dialect.interp.errors import attr_of
from cute_dialect.interp.instructions import conversions, float_ops, integer_ops, moves, vectors
from cute_dialect.interp.instructions.moves import enum_word
from cute_dialect.interp.instructions.ptx import only_computes
from cute_dialect.prove.attributes import integer_or_none, integers_of
from cute_dialect.prove.tensor_form import tensor_form
from cute_dialect.prove.verdict import NotProved, where
from cute_dialect.prove.wgmma_form import is_wgmma_text, wgmma_form


@dataclass(frozen=True)
class Effect:
    """The effect of an op on the protocol.

    Attributes:
        kind: Name of the machine's step, see `machine`.
        operands: The operands that the protocol depends on.
        blocks: True if the op may wait.
    """

    kind: str
    operands: tuple[int, ...] = ()
    blocks: bool = False


COMPUTES: frozenset[str] = frozenset(
    {
        *integer_ops.OPS,
        *float_ops.OPS,
        *moves.OPS,
        *vectors.OPS,
        *conversions.OPS,
        "llvm.getelementptr",
        "llvm.addrspacecast",
        "llvm.ptrtoint",
        "llvm.inttoptr",
        "llvm.mlir.addressof",
        "llvm.alloca",
        "llvm.intr.lifetime.start",
        "llvm.intr.lifetime.end",
        "llvm.intr.stacksave",
        "llvm.intr.stackrestore",
        "nvvm.mma.sync",
        "nvvm.mma.sp.sync",
        "nvvm.shfl.sync",
        "nvvm.elect.sync",
        "nvvm.mapa",
        "nvvm.vote.sync",
        "nvvm.vote.ballot.sync",
        "nvvm.match.sync",
        "nvvm.redux.sync",
        "nvvm.rcp.approx.ftz.f",
    }
)
"""Ops whose only effect is their result."""
NO_EFFECT: frozenset[str] = frozenset(
    {
        "nvvm.prefetch",
        "nvvm.cp.async.bulk.prefetch",
        "nvvm.cp.async.bulk.tensor.prefetch",
        "nvvm.nanosleep",
        "nvvm.griddepcontrol",
        "nvvm.griddepcontrol.wait",
        "nvvm.griddepcontrol.launch.dependents",
        "llvm.fence",
        "nvvm.memory.barrier",
        "cf.assert",
    }
)
"""Ops that only order or prefetch global memory, and fences: ignoring an order can only lose a proof."""
CONTROL: frozenset[str] = frozenset(
    {
        "scf.if",
        "scf.for",
        "scf.while",
        "scf.condition",
        "scf.yield",
        "llvm.return",
        "gpu.return",
        "func.return",
    }
)
EFFECTS: dict[str, Effect] = {
    "nvvm.mbarrier.init": Effect("mbarrier_init", (0, 1)),
    "nvvm.mbarrier.arrive": Effect("mbarrier_arrive", (0,)),
    "nvvm.mbarrier.arrive.expect_tx": Effect("mbarrier_arrive", (0, 1)),
    "nvvm.mbarrier.try_wait.parity": Effect("mbarrier_wait", (0, 1), blocks=True),
    "nvvm.fence.mbarrier.init": Effect("fence_init"),
    "nvvm.fence.proxy": Effect("fence_proxy"),
    "nvvm.barrier0": Effect("barrier", blocks=True),
    "nvvm.barrier": Effect("barrier", (0, 1), blocks=True),
    "nvvm.bar.warp.sync": Effect("warp_sync", (0,)),
    "nvvm.cp.async.bulk.tensor.shared.cluster.global": Effect("tensor_load", (0, 1, -1)),
    "nvvm.cp.async.bulk.shared.cluster.global": Effect("bulk_load", (0, 2, 3)),
    "nvvm.cp.async.bulk.global.shared.cta": Effect("bulk_store", (1, 2)),
    "nvvm.cp.async.bulk.tensor.global.shared.cta": Effect("tensor_store", (0, 1)),
    "nvvm.cp.async.bulk.tensor.reduce": Effect("tensor_store", (0, 1)),
    "nvvm.cp.async.bulk.commit.group": Effect("bulk_commit"),
    "nvvm.cp.async.bulk.wait_group": Effect("bulk_wait"),
    "nvvm.wgmma.fence.aligned": Effect("wgmma_fence"),
    "nvvm.wgmma.mma_async": Effect("wgmma", (1, 2)),
    "nvvm.wgmma.commit.group.sync.aligned": Effect("wgmma_commit"),
    "nvvm.wgmma.wait.group.sync.aligned": Effect("wgmma_wait", blocks=True),
    "nvvm.cp.async.shared.global": Effect("cp_async", (0,)),
    "nvvm.cp.async.commit.group": Effect("cp_commit"),
    "nvvm.cp.async.wait.group": Effect("cp_wait"),
    "nvvm.cp.async.wait.all": Effect("cp_wait"),
    "nvvm.cp.async.mbarrier.arrive": Effect("copies_arrive", (0,)),
    "nvvm.ldmatrix": Effect("read", (0,)),
    "nvvm.stmatrix": Effect("write", (0,)),
    "nvvm.cluster.arrive": Effect("cluster_arrive"),
    "nvvm.cluster.arrive.relaxed": Effect("cluster_arrive"),
    "nvvm.cluster.wait": Effect("cluster_wait", blocks=True),
    "nvvm.setmaxregister": Effect("registers", blocks=True),
}
"""The steps of ops, by name. Loads, stores, intrinsics and inline PTX: see `effect_of`."""

MAY_BE = ("read", "write", "cp_async", "reads_accumulator")
"""Steps that are modelled under a condition that is not known: they may have happened or not."""

_WAIT = re.compile(r"\s*wgmma\.wait_group\.sync\.aligned (\d+);\s*")
_REMOTE_ARRIVE = re.compile(r"\s*mbarrier\.arrive(\.release\.cluster)?\.shared::cluster\.b64 _, \[\$0\];\s*")
_STORE_ASYNC = re.compile(
    r"\s*st\.async(\.weak)?\.shared::cluster\.mbarrier::complete_tx::bytes\.[busf](32|64) \[\$0\], \$1, \[\$2\];\s*"
)
_REDUCE = re.compile(
    r"\s*cp\.reduce\.async\.bulk\.global\.shared::cta\.bulk_group\.\w+(\.noftz)?\.\w+ \[\$0\], \[\$1\], \$2;\s*"
)
_ARRIVE = "llvm.nvvm.barrier.cta.arrive.aligned.count"
_PURE_INTRINSICS = re.compile(
    r"llvm\.(nvvm\.(ex2|lg2|rcp|rsqrt|sqrt|sin|cos|tanh|fm(in|ax)|f2|ff2|add|fma|mul|prmt|bitcast)\b.*"
    r"|(exp2?|log2?|sqrt|fabs|fma|min|max|minnum|maxnum|umin|umax|smin|smax|ctpop|ctlz|cttz|fshl|fshr)\b.*)"
)
SHARED = 3
CLUSTER = 7
GLOBAL = 1


def effect_of(op: Operation) -> Effect | None:
    """Return the step of an op, None if it has no effect on a protocol. Raises NotProved for an unknown effect."""
    name = op.name
    known = EFFECTS.get(name)
    if known is not None:
        _check(op)
        return known
    if name in ("llvm.load", "llvm.store"):
        return _access(op)
    if name in ("llvm.inline_asm", "nvvm.inline_ptx"):
        text = getattr(attr_of(op, "asm_string") or attr_of(op, "ptxCode"), "data", "")
        if _WAIT.fullmatch(text):
            return Effect("wgmma_wait", blocks=True)
        if op.name == "llvm.inline_asm" and is_wgmma_text(text):
            form = wgmma_form(op)
            return Effect("wgmma", tuple(op.operands.index(v) for v in form.essential))
        if op.name == "nvvm.inline_ptx" and _REDUCE.fullmatch(text):
            return Effect("bulk_store", (1, 2))
        if op.name == "nvvm.inline_ptx" and _STORE_ASYNC.fullmatch(text) and len(op.operands) == 3:
            return Effect("async_store", (0, 2))
        if op.name == "nvvm.inline_ptx" and _REMOTE_ARRIVE.fullmatch(text):
            return Effect("mbarrier_arrive", (0, 1))
        if not text.strip() or text.strip().startswith(".pragma") or only_computes(text):
            return None
        raise NotProved(f"the effect of inline PTX {text.strip()[:60]!r} is not modelled", op)
    if name == "llvm.call_intrinsic":
        called = getattr(attr_of(op, "intrin"), "data", "")
        if (form := tensor_form(op)) is not None:
            return Effect(*form)
        if called == _ARRIVE:
            return Effect("barrier", (0, 1))
        if _PURE_INTRINSICS.fullmatch(called):
            return None
        raise NotProved(f"the effect of {called} is not modelled", op)
    if name in ("llvm.atomicrmw", "llvm.cmpxchg"):
        if address_space(op.operands[0]) == GLOBAL:
            return None
        raise NotProved(f"{name} of shared memory is not modelled", op)
    if name in COMPUTES or name in NO_EFFECT or name in CONTROL or name.startswith("nvvm.read.ptx.sreg."):
        return None
    raise NotProved(f"the effect of {name} is not modelled", op)


def _access(op: Operation) -> Effect | None:
    pointer = int(op.name == "llvm.store")
    space = address_space(op.operands[pointer])
    if space in (GLOBAL, "local", "argument"):
        return None
    if space in (SHARED, CLUSTER):
        return Effect("write" if pointer else "read", (pointer,))
    raise NotProved(f"{op.name} through a generic pointer: its memory is not known", op)


def address_space(pointer: SSAValue) -> int | str:
    """Return the memory of a pointer: its address space, "local", "argument" or "unknown" for a generic one."""
    seen: set[SSAValue] = set()
    while pointer not in seen:
        seen.add(pointer)
        space = _space_of(pointer.type)
        if space:
            return space
        op = pointer.owner
        if not isinstance(op, Operation):
            parent = op.parent_op()
            return "argument" if parent is not None and parent.name.endswith("func") else "unknown"
        if op.name == "llvm.alloca":
            return "local"
        if op.name not in (
            "llvm.getelementptr",
            "llvm.addrspacecast",
            "llvm.bitcast",
            "builtin.unrealized_conversion_cast",
        ):
            return "unknown"
        pointer = op.operands[0]
    return "unknown"


def _space_of(kind: Attribute) -> int:
    found = re.fullmatch(r"!llvm\.ptr<(\d+)>", str(kind))
    return int(found[1]) if found else 0


def _check(op: Operation) -> None:
    """Raise NotProved for a variant of an op that the table does not describe."""
    allowed = _VARIANTS.get(op.name)
    if allowed is not None:
        allowed(op)


def _load(op: Operation) -> None:
    sizes = segment_sizes(op)
    if sizes[7:8] == (1,):
        raise NotProved("a predicated TMA load is not modelled", op)
    if enum_word(attr_of(op, "group")):
        raise NotProved("a TMA load for a pair of blocks is not modelled", op)
    if enum_word(attr_of(op, "mode")) not in ("", "tile"):
        mode = enum_word(attr_of(op, "mode")).removeprefix("tile_")
        raise NotProved(f"a TMA load of mode {mode} is not modelled", op)


def _bulk_store(op: Operation) -> None:
    if segment_sizes(op)[4:5] == (1,):
        raise NotProved("a bulk store with a byte mask is not modelled", op)


def _store(op: Operation) -> None:
    if any(segment_sizes(op)[4:]):
        raise NotProved("a predicated TMA store is not modelled", op)
    if enum_word(attr_of(op, "mode")) == "tile_scatter4":
        raise NotProved("a TMA store of mode scatter4 is not modelled", op)


def _plain_matrix(op: Operation) -> None:
    if str(attr_of(op, "shape")).replace(" ", "").find("m=8,n=8") < 0:
        raise NotProved(f"{op.name} of matrices other than 8x8 is not modelled", op)


def _fence_proxy(op: Operation) -> None:
    if not enum_word(attr_of(op, "kind")).startswith("async"):
        raise NotProved("a proxy fence of this kind is not modelled", op)


_OPERANDS = {
    "nvvm.mbarrier.init": 2,
    "nvvm.mbarrier.arrive": 1,
    "nvvm.mbarrier.arrive.expect_tx": 2,
    "nvvm.mbarrier.try_wait.parity": 3,
}


def _plain_mbarrier(op: Operation) -> None:
    if len(op.operands) != _OPERANDS[op.name]:
        raise NotProved("an mbarrier operation with a predicate or an explicit count is not modelled", op)
    if len(op.results) or enum_word(attr_of(op, "scope")) == "cluster" or attr_of(op, "relaxed") is not None:
        raise NotProved("an mbarrier operation with a result, cluster scope or relaxed order is not modelled", op)


def _copies_arrive(op: Operation) -> None:
    if not integer_or_none(op, "noinc"):
        raise NotProved("a cp.async.mbarrier.arrive that raises the pending count is not modelled; use noinc", op)


def _plain_barrier(op: Operation) -> None:
    if len(op.results) or (attr_of(op, "operandSegmentSizes") is not None and segment_sizes(op)[2:3] == (1,)):
        raise NotProved("a barrier with a reduction is not modelled", op)


def segment_sizes(op: Operation) -> tuple[int, ...]:
    """Return the number of operands of each group of operands."""
    return integers_of(op, "operandSegmentSizes")


_VARIANTS: dict[str, Callable[[Operation], None]] = {
    "nvvm.cp.async.bulk.tensor.shared.cluster.global": _load,
    "nvvm.cp.async.bulk.global.shared.cta": _bulk_store,
    "nvvm.fence.proxy": _fence_proxy,
    **dict.fromkeys(_OPERANDS, _plain_mbarrier),
    "nvvm.cp.async.bulk.tensor.global.shared.cta": _store,
    "nvvm.ldmatrix": _plain_matrix,
    "nvvm.stmatrix": _plain_matrix,
    "nvvm.barrier": _plain_barrier,
    "nvvm.cp.async.mbarrier.arrive": _copies_arrive,
}


def wait_count(op: Operation) -> int | None:
    """Return the number of groups that a wait may leave in flight, None for a wait for all copies."""
    if op.name == "llvm.inline_asm":
        found = _WAIT.fullmatch(getattr(attr_of(op, "asm_string"), "data", ""))
        assert found is not None
        return int(found[1])
    for key in ("group", "n"):
        if (count := integer_or_none(op, key)) is not None:
            return count
    return None


def multicast_mask(op: Operation) -> SSAValue | None:
    """Return the operand of a load to shared memory that selects the blocks of the cluster, if it has one."""
    sizes = segment_sizes(op)
    which = 4 if op.name == "nvvm.cp.async.bulk.shared.cluster.global" else 5
    return op.operands[sum(sizes[:which])] if sizes[which : which + 1] == (1,) else None


def bytes_stored(op: Operation) -> int:
    """Return the number of bytes that each lane of an st.async stores."""
    found = _STORE_ASYNC.fullmatch(getattr(attr_of(op, "ptxCode"), "data", ""))
    assert found is not None
    return int(found[2]) // 8


def signals(op: Operation) -> int:
    """Return the operand of a TMA load that is its mbarrier, after the destination, the map and the coordinates."""
    return 2 + segment_sizes(op)[2]


__all__ = ["EFFECTS", "Effect", "effect_of", "signals", "wait_count", "where"]
