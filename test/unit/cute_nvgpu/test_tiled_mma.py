"""Tiled multiplies on the CPU interpreter: several warps, rest modes, ranks, loops, swizzled shared memory."""

from __future__ import annotations

import numpy as np
import pytest

from cute_dialect.kernels.builder import Builder
from cute_dialect.kernels.values import Value
from cute_dialect.memory_types import MemRefType
from cute_dialect.pipelines import compile as compile_cute

MMA_SYNC = "!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>"
WGMMA = "!cute_nvgpu.atom.wgmma<64x64x16, (f32,f16,f16,f32), A = smem, major = (k, k)>"


def gmem(element: str, m: int, n: int) -> str:
    return f'!cute.memref<{element}, gmem, "({m},{n}):({n},1)">'


def tiled(b: Builder, atom: str, layout: str, permutation: str = "") -> Value:
    more = f', permutation_MNK = <"{permutation}">' if permutation else ""
    t = f'!cute.tiled_mma<{atom}, atom_layout_MNK = <"{layout}">{more}>'
    return b.op("cute.make_tiled_mma", b.atom(atom), type=t)


def move(b: Builder, source: Value, target: Value) -> None:
    t = target.type
    assert isinstance(t, MemRefType)
    b.copy(b.atom(f"!cute_nvgpu.atom.universal_copy<{t.element}>"), source, target)


def run(b: Builder, shape: tuple[int, int, int], dtype: type = np.float16, *more: int) -> tuple[np.ndarray, np.ndarray]:
    """What kernel @k(A, B, D, …) makes of random integers, and A * B."""
    m, n, k = shape
    rng = np.random.default_rng(m + n + k)
    a, c = rng.integers(-3, 4, (m, k)), rng.integers(-3, 4, (n, k))
    d = np.full((m, n), np.nan, np.float32)
    compile_cute(b.text(), emit="base").kernel("k")(
        a.astype(dtype), c.astype(dtype), d, *more, grid=(1, 1, 1), device="cpu"
    )
    return d, a @ c.T


@pytest.mark.parametrize(
    ("threads", "layout", "permutation"),
    [
        (32, "(1,1,1):(0,0,0)", ""),
        (128, "(2,2,1):(1,2,0)", ""),
        (128, "(2,2,1):(2,1,0)", ""),
        (128, "(4,1,1):(1,0,0)", ""),
        (128, "(2,2,1):(1,2,0)", "[_;32:1;_]"),
        (128, "(2,2,1):(1,2,0)", "[_;(8,2,2):(1,16,8);_]"),
        (64, "(1,2,1):(0,1,0)", "[32:1;_;32:1]"),
    ],
)
def test_warps_and_permutations(threads: int, layout: str, permutation: str) -> None:
    m, n, k = 64, 64, 64
    b = Builder()
    with b.kernel("k", {"A": gmem("f16", m, k), "B": gmem("f16", n, k), "D": gmem("f32", m, n)}, threads=threads) as (
        pa,
        pb,
        pd,
    ):
        tid = b.thread_id()
        mma = tiled(b, MMA_SYNC, layout, permutation)
        ta, tb, td = b.partition("A", mma, pa, tid), b.partition("B", mma, pb, tid), b.partition("C", mma, pd, tid)
        fa, fb, fd = (b.op(f"cute.tiled.mma.make_fragment_{x}", mma, t) for x, t in zip("ABC", (ta, tb, td)))
        move(b, ta, fa)
        move(b, tb, fb)
        b.gemm(mma, fd, fa, fb)
        move(b, fd, td)
    got, wanted = run(b, (m, n, k))
    assert np.array_equal(got, wanted)


def test_k_in_a_loop_keeps_the_accumulators_in_registers() -> None:
    m, n, k = 32, 16, 128
    b = Builder()
    with b.kernel("k", {"A": gmem("f16", m, k), "B": gmem("f16", n, k), "D": gmem("f32", m, n)}, threads=128) as (
        pa,
        pb,
        pd,
    ):
        tid = b.thread_id()
        mma = tiled(b, MMA_SYNC, "(2,2,1):(1,2,0)")
        ta, tb, td = b.partition("A", mma, pa, tid), b.partition("B", mma, pb, tid), b.partition("C", mma, pd, tid)
        fd = b.op("cute.tiled.mma.make_fragment_C", mma, td)
        b.do("cute.clear", fd)
        with b.for_(0, k // 16) as loop:
            sa, sb = b.slice(ta, None, None, loop.iv), b.slice(tb, None, None, loop.iv)
            fa, fb = b.fragment_like(sa), b.fragment_like(sb)
            move(b, sa, fa)
            move(b, sb, fb)
            b.gemm(mma, fd, fa, fb, fd)
        move(b, fd, td)
    text = b.text()
    got, wanted = run(b, (m, n, k))
    assert np.array_equal(got, wanted)
    base = str(compile_cute(text, emit="base").lowered())
    assert "llvm.alloca" not in base


@pytest.mark.parametrize("ranks", ["VVV", "MN", "MK", "VM", "VMK"])
def test_ranks_of_gemm(ranks: str) -> None:
    # One thread multiplies small register tensors; V is 1 but where it is left out.
    shapes = {
        "VVV": ("1:0", "1:0", "1:0", (1, 1, 1)),
        "MN": ("3:1", "2:1", "(3,2):(1,3)", (3, 2, 1)),
        "MK": ("(3,4):(1,3)", "(2,4):(1,2)", "(3,2):(1,3)", (3, 2, 4)),
        "VM": ("(1,3):(0,1)", "(1,2):(0,1)", "(1,3,2):(0,1,3)", (3, 2, 1)),
        "VMK": ("(1,3,4):(0,1,3)", "(1,2,4):(0,1,2)", "(1,3,2):(0,1,3)", (3, 2, 4)),
    }
    a, c, d, (m, n, k) = shapes[ranks]
    atom = "!cute_nvgpu.atom.universal_fma<1x1x1, (f32,f32,f32,f32)>"
    b = Builder()
    with b.kernel("k", {"A": gmem("f32", m, k), "B": gmem("f32", n, k), "D": gmem("f32", m, n)}, threads=1) as (
        pa,
        pb,
        pd,
    ):
        fa, fb, fd = (b.registers(f'!cute.memref<f32, rmem, "{x}">') for x in (a, c, d))
        for fragment, source, count in ((fa, pa, m * k), (fb, pb, n * k)):
            for i in range(count):
                b.store(fragment, i, b.load(source, i))
        b.gemm(b.atom(atom), fd, fa, fb)
        b.gemm(b.atom(atom), fd, fa, fb, fd)
        for i in range(m * n):
            b.store(pd, i, b.load(fd, i))
    got, wanted = run(b, (m, n, k), np.float32)
    assert np.array_equal(got, 2 * wanted)


def test_c_and_d_may_differ() -> None:
    m, n, k = 16, 8, 16
    b = Builder()
    with b.kernel("k", {"A": gmem("f16", m, k), "B": gmem("f16", n, k), "D": gmem("f32", m, n)}, threads=32) as (
        pa,
        pb,
        pd,
    ):
        tid = b.thread_id()
        mma = tiled(b, MMA_SYNC, "(1,1,1):(0,0,0)")
        ta, tb, td = b.partition("A", mma, pa, tid), b.partition("B", mma, pb, tid), b.partition("C", mma, pd, tid)
        fa, fb, fd, fc = (b.op(f"cute.tiled.mma.make_fragment_{x}", mma, t) for x, t in zip("ABCC", (ta, tb, td, td)))
        move(b, ta, fa)
        move(b, tb, fb)
        b.do("cute.fill", fc, b.constant(5.0, "f32"))
        b.gemm(mma, fd, fa, fb, fc)
        move(b, fd, td)
    got, wanted = run(b, (m, n, k))
    assert np.array_equal(got, wanted + 5)


def wgmma_loop(stages: int, loop: bool, branch: bool = False) -> Builder:
    """Two warp groups, each 128 x 64 of D in two atoms; k-tiles of 64 in swizzled stages of shared memory."""
    m, n, k = 256, 64, 64 * stages
    b = Builder()
    parameters = {"A": gmem("f16", m, k), "B": gmem("f16", n, k), "D": gmem("f32", m, n)}
    with b.kernel("k", parameters | ({"more": "i32"} if branch else {}), threads=256) as (pa, pb, pd, *flag):
        tid = b.thread_id()
        mma = tiled(b, WGMMA, "(2,1,1):(1,0,0)")
        parts: list[Value] = []
        for operand, source, x in (("A", pa, m), ("B", pb, n)):
            layout = f"((8,{x // 8}),64,{stages}):((64,512),1,{64 * x})"
            smem = b.alloc_smem(f'!cute.memref<f16, smem, align<1024>, S<3,4,3>, "{layout}">')
            with b.for_(0, x * k, 256) as fill:
                where = tid + fill.iv
                b.store(smem, where, b.load(source, where))
            parts.append(b.partition(operand, mma, smem, tid))
        b.run("fence_proxy_async")
        b.run("barrier")
        td = b.partition("C", mma, pd, tid)
        acc = b.op("cute.tiled.mma.make_fragment_C", mma, td)

        def tile(stage: Value | int, first: bool) -> None:
            b.run("wgmma_fence")
            where = b.slice(parts[0], None, None, None, stage), b.slice(parts[1], None, None, None, stage)
            b.gemm(mma, acc, where[0], where[1], None if first else acc)
            b.run("wgmma_commit_group")

        tile(0, first=True)
        if branch:
            with b.if_(flag[0].ne(0)):
                for stage in range(1, stages):
                    tile(stage, first=False)
        elif loop:
            with b.for_(1, stages) as steps:
                tile(steps.iv, first=False)
                b.run("wgmma_wait_group", n=1)
        b.run("wgmma_wait_group", acc, n=0)
        move(b, acc, td)
    return b


def test_wgmma_over_stages_in_a_loop() -> None:
    got, wanted = run(wgmma_loop(3, loop=True), (256, 64, 192))
    assert np.array_equal(got, wanted)


def test_wgmma_under_a_condition() -> None:
    got, wanted = run(wgmma_loop(2, loop=False, branch=True), (256, 64, 128), np.float16, 1)
    assert np.array_equal(got, wanted)


def test_accumulators_cross_loops_and_branches_as_structs() -> None:
    for b in (wgmma_loop(3, loop=True), wgmma_loop(2, loop=False, branch=True)):
        lowered = compile_cute(b.text(), emit="base").lowered()
        (op,) = [
            o
            for o in lowered.walk()
            if o.name in ("scf.for", "scf.if") and any(i.name == "nvvm.wgmma.mma_async" for i in o.walk())
        ]
        assert [str(t)[:17] for t in op.result_types] == ["!llvm.struct<(f32"] * 2
        taken_apart = [i for i in op.walk() if i.name in ("llvm.insertvalue", "llvm.extractvalue")]
        assert not [i for i in taken_apart if i.operands[0].type in op.result_types]


def test_coordinates_are_partitioned_like_the_data() -> None:
    # Every thread writes m * 100 + n to where its accumulators go.
    b = Builder()
    with b.kernel("k", {"A": gmem("f16", 1, 1), "B": gmem("f16", 1, 1), "D": gmem("f32", 32, 16)}, threads=128) as (
        _,
        _,
        pd,
    ):
        tid = b.thread_id()
        mma = tiled(b, MMA_SYNC, "(2,2,1):(1,2,0)")
        ids = b.view(b.int_tuple((0, 0)), "(32,16):(1@0,1@1)")
        where, td = b.partition("C", mma, ids, tid), b.partition("C", mma, pd, tid)
        for i in range(4):
            m, n = b.results("cute.get_scalars", b.load(where, i), types=["i32", "i32"])
            b.store(td, i, b.op("arith.uitofp", m * 100 + n, type="f32"))
    d = np.full((32, 16), np.nan, np.float32)
    one = np.zeros((1, 1), np.float16)
    compile_cute(b.text(), emit="base").kernel("k")(one, one, d, grid=(1, 1, 1), device="cpu")
    assert np.array_equal(d, np.arange(32)[:, None] * 100 + np.arange(16)[None, :])
