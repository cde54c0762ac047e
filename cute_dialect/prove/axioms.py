"""The axioms of protocol proofs, each with its source, and the properties that no proof covers."""

from __future__ import annotations

from typing import NamedTuple


class Axiom(NamedTuple):
    """A statement that every proof assumes, and the clause or practice that it rests on."""

    text: str
    source: str


AXIOMS = (
    Axiom(
        "a wgmma completes only after the four warps of its warpgroup have issued it",
        "PTX ISA, wgmma.mma_async: .sync.aligned, all threads of the warpgroup execute the same instruction; practice "
        "of CUTLASS, where one thread of a warpgroup releases a stage",
    ),
    Axiom(
        "an mbarrier operation without a scope orders the threads of the cluster",
        "practice of CUTLASS; PTX ISA, mbarrier.arrive, has .cta as the default scope",
    ),
    Axiom(
        "complete_tx of a copy is a release to threads that wait for the mbarrier",
        "PTX ISA, Async operations: the complete-tx on an mbarrier has .release semantics at .cluster scope",
    ),
    Axiom(
        "fence.proxy.async makes accesses of threads visible to asynchronous copies",
        "PTX ISA, Memory Consistency Model, Proxies; membar, fence",
    ),
    Axiom(
        "copies in flight land eventually, and a warp that can run does",
        "practice: the PTX ISA states no progress guarantee for them",
    ),
    Axiom(
        "arrays whose elements decide on loops and branches are not written during the launch",
        "precondition; that the kernel does not write them through the same argument is checked",
    ),
    Axiom(
        "while loops end",
        "precondition: their conditions depend on sizes and block numbers alone, or on global memory",
    ),
    Axiom(
        "a tcgen05.commit arrives after the earlier MMAs and copies of its thread; MMAs with one accumulator, shape "
        "and kind execute in order of issue, and so does an MMA after a copy",
        "PTX ISA, tcgen05 memory consistency model",
    ),
    Axiom(
        "tcgen05.alloc finds free columns",
        "precondition: blocks of other kernels on the multiprocessor free theirs",
    ),
    Axiom("tensor maps have the boxes that cute.args declares", "CUDA Driver API, cuTensorMapEncodeTiled, boxDim"),
    Axiom(
        "integer arithmetic on sizes does not overflow, and sizes are not negative",
        "precondition; products that only small sizes keep in range are listed as preconditions",
    ),
)
NOT_COVERED = "global memory, values, other clusters, and warp instructions that some lanes do not reach"
