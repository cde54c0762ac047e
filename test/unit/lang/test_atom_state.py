"""Run-time state of atoms is merged at branches and loops like any other value."""

from __future__ import annotations

from typing import Any

import numpy as np
from front_tensors import shared_tensor
from tracing import text_of, trace_kernel

import cute_dialect.lang as cute
from cute_dialect.lang.control.runtime import converted
from cute_dialect.lang.values.forms import form_of

warpgroup = cute.nvgpu.warpgroup
arch = cute.arch


def wgmma() -> Any:
    return cute.make_tiled_mma(warpgroup.MmaF16BF16Op(cute.Float16, cute.Float32, (64, 32, 16)))


@cute.kernel
def multiply(A: cute.Tensor, B: cute.Tensor, C: cute.Tensor, mma: cute.TiledMma) -> None:
    """Compute C = A B^T over tiles of K. The first MMA overwrites the accumulator."""
    tid = arch.thread_idx().x
    sA = shared_tensor('f16, smem, align<1024>, S<3,4,3>, "(64,64):(64,1)"')
    sB = shared_tensor('f16, smem, align<1024>, S<3,4,3>, "(32,64):(64,1)"')
    thr = mma.get_slice(tid)
    rA, rB = mma.make_fragment_A(thr.partition_A(sA)), mma.make_fragment_B(thr.partition_B(sB))
    acc = mma.make_fragment_C(mma.partition_shape_C((64, 32)))
    acc.fill(7.0)  # The first MMA overwrites these values.
    gA, gB = cute.local_tile(A, (64, 64), (0, None)), cute.local_tile(B, (32, 64), (0, None))
    mma.set(warpgroup.Field.ACCUMULATE, False)
    for k in range(cute.size(gA, mode=[2])):
        cute.cooperative_copy(gA[None, None, k], sA, tid, 128)
        cute.cooperative_copy(gB[None, None, k], sB, tid, 128)
        arch.fence_view_async_shared()
        arch.sync_threads()
        warpgroup.fence()
        for i in range(4):
            cute.gemm(mma, acc, rA[None, None, i], rB[None, None, i], acc)
            mma.set(warpgroup.Field.ACCUMULATE, True)
        warpgroup.commit_group()
        warpgroup.wait_group(0)
        arch.sync_threads()
    cute.autovec_copy(acc, thr.partition_C(cute.local_tile(C, (64, 32), (0, 0))))


@cute.jit
def product(A: cute.Tensor, B: cute.Tensor, C: cute.Tensor) -> None:
    multiply(A, B, C, wgmma()).launch(grid=1, block=128)


def test_the_flag_is_carried_through_a_loop() -> None:
    rng = np.random.default_rng(5)
    a, b = (rng.integers(-4, 5, (rows, 192)).astype(np.float16) for rows in (64, 32))
    c = np.zeros((64, 32), np.float32)
    product(
        *(cute.from_dlpack(x, assumed_align=16).mark_layout_dynamic(leading_dim=1) for x in (a, b, c)), device="cpu"
    )
    assert (c == a.astype(np.float64) @ b.T.astype(np.float64)).all()


def test_the_flag_of_a_branch() -> None:
    def body() -> None:
        mma = wgmma()
        mma.set(warpgroup.Field.ACCUMULATE, False)
        if arch.block_idx().x > 3:
            mma.set(warpgroup.Field.ACCUMULATE, True)
        found = mma.get(warpgroup.Field.ACCUMULATE)
        assert type(found) is cute.Boolean and not found.is_static

    trace_kernel(converted(body), {}, threads=128)


def test_forms() -> None:
    """Values of one form differ only in their dynamic parts, and a static value has no IR operands."""

    def body() -> None:
        mma, other = wgmma(), wgmma()
        assert form_of(mma) == form_of(other) and form_of(mma).types == ()
        assert form_of(mma.get_slice(arch.thread_idx().x)) == form_of(other.get_slice(arch.thread_idx().x))
        assert len(form_of(mma.get_slice(arch.thread_idx().x)).types) == 1
        other.set(warpgroup.Field.ACCUMULATE, arch.block_idx().x > 0)
        assert form_of(mma) != form_of(other)
        kept = form_of(other).make(form_of(other).take(other))
        assert isinstance(kept, cute.TiledMma) and kept.type == mma.type and kept.accumulate.ssa is other.accumulate.ssa
        atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cute.Float32)
        tiled = cute.make_tiled_copy_tv(atom, cute.make_layout(32), cute.make_layout(4))
        again = form_of(tiled).make(form_of(tiled).take(tiled))
        assert isinstance(again, cute.TiledCopy) and again.type == tiled.type and again.atom.type == atom.type

    trace_kernel(body, {}, threads=128)


def test_branch_over_two_slices() -> None:
    """A branch merges two slices of a tiled MMA that differ only in the thread index."""

    def body() -> None:
        mma = wgmma()
        if arch.block_idx().x > 3:
            thr = mma.get_slice(arch.thread_idx().x)
        else:
            thr = mma.get_slice(arch.thread_idx().x + 0 * arch.block_idx().x)
        thr.partition_C(cute.make_identity_tensor((64, 32)))

    assert "scf.if" in text_of(trace_kernel(converted(body), {}, threads=128))
