"""Addresses of bulk loads to shared memory, in the shared memory of the block or of its cluster.

``cp.async.bulk`` and ``cp.async.bulk.tensor`` have two forms of destination.  ``.shared::cluster`` is as old as the
instructions, and ``.shared::cta`` needs PTX 8.6 and has no multicast.  On sm_120, which has no clusters of several
blocks, ptxas 13.5 implements the first form by a call of a subroutine, which uses registers and stack::

    cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%rd4], [%rd1, {%r1, %r2}], [%rd5];

On other targets, where both forms are one instruction, loads keep the first one.
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from cute_dialect.ir.editing import make_op
from cute_dialect.passes.lowering.types import pointer
from cute_dialect.passes.lowering.walk import Lowering
from cute_dialect.spaces import AddressSpace
from cute_dialect.upstream import llvm


def cluster_address(low: Lowering, address: SSAValue) -> SSAValue:
    """Convert an address in the block's own shared memory to an address in the shared memory of the cluster."""
    cluster = pointer(AddressSpace.dsmem)
    if address.type == cluster:
        return address
    return low.build.once(
        ("shared::cluster", address), lambda: make_op(llvm.OPS["addrspacecast"], [address], [cluster])
    )


def load_address(low: Lowering, address: SSAValue, cluster: object) -> SSAValue:
    """Return the destination of a bulk load to shared memory, in the form of the target.

    Args:
        low: the lowering of the function.
        address: the address in shared memory.
        cluster: None if the load concerns one block, so that it may have the ``.shared::cta`` form.
    """
    if cluster is None and low.target is not None and not low.target.has_clusters:
        return address
    return cluster_address(low, address)
