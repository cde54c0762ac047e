"""Instructions before which a warp gives way to others in a replayed schedule, see `exec.replay`."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING

from cute_dialect.interp.errors import attr_of, op_name
from cute_dialect.interp.machine.group import Group, Wait
from cute_dialect.interp.values import Regs

if TYPE_CHECKING:  # pragma: no cover
    from xdsl.ir import Operation

    from cute_dialect.interp.errors import OpInfo

SWITCHES: frozenset[str] = frozenset(
    {
        "nvvm.mbarrier.init",
        "nvvm.mbarrier.inval",
        "nvvm.mbarrier.arrive",
        "nvvm.mbarrier.arrive.expect_tx",
        "nvvm.mbarrier.try_wait.parity",
        "nvvm.cp.async.mbarrier.arrive",
        "nvvm.fence.mbarrier.init",
        "nvvm.barrier0",
        "nvvm.barrier",
        "nvvm.cp.async.bulk.tensor.shared.cluster.global",
        "nvvm.cp.async.bulk.shared.cluster.global",
        "nvvm.wgmma.mma_async",
        "nvvm.wgmma.wait.group.sync.aligned",
        "nvvm.cluster.arrive",
        "nvvm.cluster.arrive.relaxed",
        "nvvm.cluster.wait",
        "nvvm.setmaxregister",
    }
)
"""Instructions before which a warp stops."""
_INLINE = re.compile(r"\s*(mbarrier\.|st\.async|wgmma\.wait_group)")
_ARRIVE = "llvm.nvvm.barrier.cta.arrive"


def is_switch(op: Operation) -> bool:
    """Return True if a warp stops before an op in a replayed schedule."""
    name = op_name(op)
    if name in SWITCHES:
        return True
    if name in ("llvm.inline_asm", "nvvm.inline_ptx"):
        text = getattr(attr_of(op, "asm_string") or attr_of(op, "ptxCode"), "data", "")
        return _INLINE.match(text) is not None
    return name == "llvm.call_intrinsic" and getattr(attr_of(op, "intrin"), "data", "").startswith(_ARRIVE)


def stop_before(info: OpInfo) -> Callable[[Regs, Group], Generator[Wait, None, None]]:
    """Return a step at which a warp gives way to others before it executes an op."""

    def gen(R: Regs, g: Group) -> Generator[Wait, None, None]:
        if g.mask.n:
            yield Wait(lambda: True, info, "is about to execute")

    return gen
