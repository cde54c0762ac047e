"""Tensor maps written by the kernel: fences needed between the writes and the copies that use the map."""

from __future__ import annotations

import numpy as np
import pytest
from interp_support import DSMEM, kernel, run_kernel

from cute_dialect.interp import InterpError, Pointer, TensorMap

MAP = "!llvm.ptr {llvm.byval = !llvm.array<128 x i8>, llvm.align = 64 : i64, nvvm.grid_constant}"
COPY = """
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c16 = arith.constant 16 : i32
    %n = arith.constant 128 : i32
    %d = llvm.mlir.addressof @dsmem : !llvm.ptr<3>
    %bar = llvm.getelementptr %d[512] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %user = arith.cmpi eq, %tid, %c0 : i32
    %there = llvm.addrspacecast %w : !llvm.ptr<1> to !llvm.ptr
    scf.if %user {
      nvvm.mbarrier.init %bar, %c1 : !llvm.ptr<3>, i32
      nvvm.fence.mbarrier.init
    }
    %writes = arith.cmpi slt, %tid, %c16 : i32
    scf.if %writes {
      %from = llvm.getelementptr %m[%tid] : (!llvm.ptr, i32) -> !llvm.ptr, i64
      %to = llvm.getelementptr %w[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i64
      %v = llvm.load %from : !llvm.ptr -> i64
      llvm.store %v, %to : i64, !llvm.ptr<1>
      RELEASE
    }
    nvvm.barrier0
    scf.if %user {
      ACQUIRE
      AGAIN
      nvvm.mbarrier.arrive.expect_tx %bar, %n : !llvm.ptr<3>, i32
      nvvm.cp.async.bulk.tensor.shared.cluster.global %d, %there, %bar, box[%c0] : !llvm.ptr<3>, !llvm.ptr
      nvvm.mbarrier.try_wait.parity %bar, %c0, %c0 : !llvm.ptr<3>, i32, i32
    }
    llvm.return
"""
RELEASE = 'nvvm.inline_ptx "fence.proxy.tensormap::generic.release.{};"'
ACQUIRE = 'nvvm.inline_ptx "fence.proxy.tensormap::generic.acquire.{} [$0], 128;" ro(%there : !llvm.ptr)'
AGAIN = "%x = llvm.load %m : !llvm.ptr -> i64\nllvm.store %x, %w : i64, !llvm.ptr<1>"
EXPECTED = (
    "uses the tensor map in argument 1 at byte offset 0, element (0), which the kernel has written: missing "
    "fence.proxy.tensormap::generic.release by the writer, or fence.proxy.tensormap::generic.acquire of its 128 bytes "
    "before the copy, with scopes that include both threads"
)


def run(release: str, acquire: str, again: str = "", writes: bool = True) -> str:
    """Return the report on a copy whose tensor map was written by other threads of the block, or ""."""
    text = COPY.replace("RELEASE", release).replace("ACQUIRE", acquire).replace("AGAIN", again)
    if not writes:
        text = text.replace("llvm.store %v, %to : i64, !llvm.ptr<1>", "").replace("%there, %bar", "%m, %bar")
    module = kernel(text, f"%m: {MAP}, %w: !llvm.ptr<1>", DSMEM)
    tm = TensorMap("f16", (64,), (), (64,), pointer=Pointer(np.arange(64, dtype=np.float16)))
    try:
        run_kernel(module, "k", [tm, Pointer(np.zeros(16, np.int64))], 1, 64, dynamic_smem=1024, checks=["race"])
    except InterpError as e:
        assert e.kind == "race", e
        return e.message
    return ""


@pytest.mark.parametrize("scope", ["cta", "cluster", "gpu", "sys"])
def test_a_map_that_was_released_and_acquired(scope: str) -> None:
    assert run(RELEASE.format(scope), ACQUIRE.format(scope)) == ""
    assert run("", "", writes=False) == ""


def test_the_fences_of_nvvm() -> None:
    assert run("nvvm.fence.proxy.release <gpu>", "nvvm.fence.proxy.acquire <gpu> %there, %n") == ""


@pytest.mark.parametrize(
    ("release", "acquire"),
    [
        ("", ""),
        (RELEASE.format("gpu"), ""),
        ("", ACQUIRE.format("gpu")),
        (ACQUIRE.format("gpu"), RELEASE.format("gpu")),
        ('nvvm.inline_ptx "fence.proxy.async;"', 'nvvm.inline_ptx "fence.proxy.async;"'),
        ('nvvm.inline_ptx "fence.acq_rel.sys;"', 'nvvm.inline_ptx "fence.acq_rel.sys;"'),
    ],
)
def test_a_map_without_one_of_its_fences(release: str, acquire: str) -> None:
    assert run(release, acquire) == EXPECTED


def test_a_map_that_is_written_again_after_the_fence() -> None:
    assert run(RELEASE.format("gpu"), ACQUIRE.format("gpu"), AGAIN) == EXPECTED
    again = "\n".join([AGAIN, RELEASE.format("cta"), ACQUIRE.format("cta")])
    assert run(RELEASE.format("gpu"), ACQUIRE.format("gpu"), again) == ""


@pytest.mark.parametrize(
    "text",
    [
        "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [$0], [$0], 128;",
    ],
)
def test_instructions_that_change_maps_are_refused_by_name(text: str) -> None:
    module = kernel(f'nvvm.inline_ptx "{text}" ro(%w : !llvm.ptr<1>)\nllvm.return', "%w: !llvm.ptr<1>")
    with pytest.raises(InterpError) as e:
        run_kernel(module, "k", [Pointer(np.zeros(16, np.int64))], 1, 32)
    assert e.value.message == f"the PTX instruction {text.split()[0]} is not modelled by the interpreter"
