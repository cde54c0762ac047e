"""Proxy fences: their ordering with copies by the async proxy, and fences that the interpreter does not model."""

from __future__ import annotations

import numpy as np
import pytest
from interp_support import DSMEM, kernel, run_kernel

from cute_dialect.interp import InterpError, Pointer

CTA = "nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}"
CLUSTER = "nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cluster>}"
GLOBAL = "nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.global>}"
ALL = "nvvm.fence.proxy {kind = #nvvm.proxy_kind<async>}"
ALIAS = "nvvm.fence.proxy {kind = #nvvm.proxy_kind<alias>}"
FENCES = {
    CTA: {"own", "cluster"},
    CLUSTER: {"own", "cluster", "remote"},
    GLOBAL: {"global"},
    ALL: {"own", "cluster", "remote", "global"},
    ALIAS: set[str](),
    "nvvm.fence.proxy.release <gpu>": set[str](),
    "nvvm.memory.barrier <sys>": set[str](),
    "nvvm.fence.sc.cluster": set[str](),
    "nvvm.fence.mbarrier.init": set[str](),
    "llvm.fence seq_cst": set[str](),
    **{
        f'nvvm.inline_ptx "{text};"': covers
        for text, covers in {
            "fence.proxy.async": {"own", "cluster", "remote", "global"},
            "membar.proxy.async": {"own", "cluster", "remote", "global"},
            "fence.proxy.async.global": {"global"},
            "fence.proxy.async.shared::cta": {"own", "cluster"},
            "fence.proxy.async.shared::cluster": {"own", "cluster", "remote"},
            "fence.proxy.alias": set[str](),
            "fence.proxy.tensormap::generic.release.gpu": set[str](),
            "membar.sys": set[str](),
            "fence.acq_rel.sys": set[str](),
            "fence.sc.gpu": set[str](),
        }.items()
    },
}

STORE = """
    %n = arith.constant 128 : i32
    %c0 = arith.constant 0 : i32
    %d = llvm.mlir.addressof @dsmem : !llvm.ptr<3>
    %lead = arith.cmpi eq, %tid, %c0 : i32
"""
OWN = (
    STORE
    + """
    %p = llvm.getelementptr %d[%tid] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    llvm.store %tid, %p : i32, !llvm.ptr<3>
    FENCE
    nvvm.barrier0
    scf.if %lead {
      nvvm.cp.async.bulk.global.shared.cta %a, %d, %n : !llvm.ptr<1>, !llvm.ptr<3>
      nvvm.cp.async.bulk.commit.group
      nvvm.cp.async.bulk.wait_group 0
    }
    llvm.return
    """
)
# Stores through the generic proxy to global memory, then a bulk copy that overwrites them.
OVER = (
    STORE
    + """
    %q = llvm.getelementptr %a[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %tid, %q : i32, !llvm.ptr<1>
    %p = llvm.getelementptr %d[%tid] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    llvm.store %tid, %p : i32, !llvm.ptr<3>
    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
    FENCE
    nvvm.barrier0
    scf.if %lead {
      nvvm.cp.async.bulk.global.shared.cta %a, %d, %n : !llvm.ptr<1>, !llvm.ptr<3>
      nvvm.cp.async.bulk.commit.group
      nvvm.cp.async.bulk.wait_group 0
    }
    llvm.return
    """
)
# Each block writes the other's shared memory. WRITER is a fence before the cluster barrier, READER one after it.
REMOTE = (
    STORE
    + """
    %c1 = arith.constant 1 : i32
    %other = arith.subi %c1, %cta : i32
    nvvm.cluster.arrive
    nvvm.cluster.wait
    %far = nvvm.mapa %d, %other : !llvm.ptr<3> -> !llvm.ptr<7>
    %p = llvm.getelementptr %far[%tid] : (!llvm.ptr<7>, i32) -> !llvm.ptr<7>, i32
    llvm.store %tid, %p : i32, !llvm.ptr<7>
    WRITER
    nvvm.cluster.arrive
    nvvm.cluster.wait
    READER
    %row = arith.muli %cta, %ntid : i32
    %q = llvm.getelementptr %a[%row] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    scf.if %lead {
      nvvm.cp.async.bulk.global.shared.cta %q, %d, %n : !llvm.ptr<1>, !llvm.ptr<3>
      nvvm.cp.async.bulk.commit.group
      nvvm.cp.async.bulk.wait_group 0
    }
    llvm.return
    """
)


def run(body: str, blocks: int = 1, cluster: int = 1) -> str:
    """Run a kernel of 32 threads per block and return its report, or ""."""
    module = kernel(body, "%a: !llvm.ptr<1>", DSMEM)
    try:
        run_kernel(
            module, "k", [Pointer(np.zeros(32 * blocks, np.int32))], blocks, 32, dynamic_smem=128, cluster=cluster,
            checks=["race"],
        )  # fmt: skip
    except InterpError as e:
        assert e.kind == "race", e
        return str(e)
    return ""


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("fence", FENCES)
def test_a_copy_needs_the_fence_of_its_memory(fence: str) -> None:
    covers = FENCES[fence]
    assert ("missing fence.proxy.async" in run(OWN.replace("FENCE", fence))) == ("own" not in covers)
    over = run(OVER.replace("FENCE", fence))
    assert bool(over) == ("global" not in covers), over
    remote = run(REMOTE.replace("WRITER", fence).replace("READER", ""), 2, 2)
    assert bool(remote) == ("remote" not in covers), remote
    near = run(REMOTE.replace("WRITER", "").replace("READER", fence), 2, 2)
    assert bool(near) == ("cluster" not in covers), near


def test_missing_fence_names_both_accesses() -> None:
    assert "argument 0 at byte offset 0" in run(OVER.replace("FENCE", ""))
    assert (
        "missing fence.proxy.async: argument 0 at byte offset 0, element (0) was written through the generic proxy and "
        "is now overwritten through the asynchronous proxy"
    ) in run(OVER.replace("FENCE", ""))


def test_a_fence_counts_for_the_threads_that_issue_it() -> None:
    """Lane 0 stores and copies, but lane 1 issues the fence, so the store is not ordered before the copy."""
    body = OWN.replace("nvvm.barrier0", "").replace("%lead = arith.cmpi eq", "%lead = arith.cmpi ult")
    body = body.replace("llvm.store %tid, %p : i32, !llvm.ptr<3>", "")
    write = "llvm.store %tid, %d : i32, !llvm.ptr<3>"
    one = body.replace("%tid, %c0", "%c0, %c0").replace(
        "FENCE",
        f"""
        %zero = arith.cmpi eq, %tid, %c0 : i32
        scf.if %zero {{
          {write}
        }} else {{
          {ALL}
        }}
        """,
    )
    one = one.replace("scf.if %lead", "scf.if %zero").replace("%n = arith.constant 128", "%n = arith.constant 16")
    assert "missing fence.proxy.async" in run(one)
    assert not run(one.replace(write, f"{write}\n{ALL}"))


@pytest.mark.parametrize(
    "fence",
    [
        "fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster",
        "fence.release.sync_restrict::shared::cta.cluster",
        "fence.proxy.asink",
        "fence.gpu.acq_rel",
        "fence",
        "membar.gpu",
    ],
)
def test_unmodelled_fences_are_rejected(fence: str) -> None:
    with pytest.raises(InterpError) as e:
        run_kernel(kernel(f'nvvm.inline_ptx "{fence};"\nllvm.return'), "k", [])
    assert e.value.kind == "unsupported"
    assert e.value.message == (
        f"{fence} is not supported; supported fences: fence.{{sc,acq_rel,acquire,release}}.SCOPE, membar.LEVEL, "
        "fence.proxy.{alias,async,async.global,async.shared::cta,async.shared::cluster}, "
        "fence.proxy.tensormap::generic, fence.mbarrier_init.release.cluster"
    )
