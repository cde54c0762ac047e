"""Tiled MMA on the CPU interpreter: several warps, rest modes, ranks, loops and swizzled shared memory."""

# pyright: basic

from typing import Any

import numpy as np
import pytest

import cute_dialect.lang as cute
from cute_dialect.lang.nvgpu import MmaUniversalOp, warp, warpgroup
from cute_dialect.pipelines import compile as compile_cute

MMA_SYNC = warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 8, 16))
WGMMA = warpgroup.MmaF16BF16Op(cute.Float16, cute.Float32, (64, 64, 16))


def run(
    kernel: Any, shape: tuple[int, int, int], threads: int, dtype: type = np.float16, *more: int
) -> tuple[np.ndarray, np.ndarray]:
    """Run a kernel (A, B, D, …) on random integers, and return its D and the expected A * B."""
    m, n, k = shape
    rng = np.random.default_rng(m + n + k)
    a, c = rng.integers(-3, 4, (m, k)), rng.integers(-3, 4, (n, k))
    d = np.full((m, n), np.nan, np.float32)
    arrays = [cute.from_dlpack(x) for x in (a.astype(dtype), c.astype(dtype), d)]
    kernel(*arrays, *more).launch(grid=1, block=threads, device="cpu")
    return d, a @ c.T


def lowered(kernel: Any, shape: tuple[int, int, int], threads: int, *more: int) -> Any:
    """Return the kernel lowered to base IR."""
    m, n, k = shape
    arrays = [np.zeros((m, k), np.float16), np.zeros((n, k), np.float16), np.zeros((m, n), np.float32)]
    given = [cute.from_dlpack(x) for x in arrays]
    return compile_cute(cute.trace(kernel, *given, *more, grid=1, block=threads).module(), emit="base").lowered()


@pytest.mark.sample(every=4)
@pytest.mark.parametrize(
    ("threads", "layout", "permutation"),
    [
        (32, "(1,1,1):(0,0,0)", (None, None, None)),
        (128, "(2,2,1):(1,2,0)", (None, None, None)),
        (128, "(2,2,1):(2,1,0)", (None, None, None)),
        (128, "(4,1,1):(1,0,0)", (None, None, None)),
        (128, "(2,2,1):(1,2,0)", (None, 32, None)),
        (128, "(2,2,1):(1,2,0)", (None, "(8,2,2):(1,16,8)", None)),
        (64, "(1,2,1):(0,1,0)", (32, None, 32)),
    ],
)
def test_warps_and_permutations(threads: int, layout: str, permutation: tuple[Any, ...]) -> None:
    tiles = tuple([cute.layout(p) if isinstance(p, str) else p for p in permutation])

    @cute.kernel
    def multiply(A: Any, B: Any, D: Any):
        mma = cute.make_tiled_mma(MMA_SYNC, cute.layout(layout), tiles)
        thread = mma.get_slice(cute.arch.thread_idx().x)
        a, b, d = thread.partition_A(A), thread.partition_B(B), thread.partition_C(D)
        ra, rb, rd = mma.make_fragment_A(a), mma.make_fragment_B(b), mma.make_fragment_C(d)
        cute.autovec_copy(a, ra)
        cute.autovec_copy(b, rb)
        cute.gemm(mma, rd, ra, rb)
        cute.autovec_copy(rd, d)

    got, wanted = run(multiply, (64, 64, 64), threads)
    assert np.array_equal(got, wanted)


def test_k_in_a_loop_keeps_the_accumulators_in_registers() -> None:
    @cute.kernel
    def multiply(A: Any, B: Any, D: Any):
        mma = cute.make_tiled_mma(MMA_SYNC, (2, 2, 1))
        thread = mma.get_slice(cute.arch.thread_idx().x)
        a, b, d = thread.partition_A(A), thread.partition_B(B), thread.partition_C(D)
        rd = mma.make_fragment_C(d)
        cute.clear(rd)
        for k in range(A.shape[1] // 16):
            ra, rb = (cute.make_rmem_tensor_like(x[None, None, k]) for x in (a, b))
            cute.autovec_copy(a[None, None, k], ra)
            cute.autovec_copy(b[None, None, k], rb)
            cute.gemm(mma, rd, ra, rb, rd)
        cute.autovec_copy(rd, d)

    got, wanted = run(multiply, (32, 16, 128), 128)
    assert np.array_equal(got, wanted)
    base = str(lowered(multiply, (32, 16, 128), 128))
    assert "scf.for" in base and "llvm.alloca" not in base


@pytest.mark.parametrize("ranks", ["VVV", "MN", "MK", "VM", "VMK"])
def test_ranks_of_gemm(ranks: str) -> None:
    # One thread multiplies small register tensors. Mode V, where present, has extent 1.
    shapes = {
        "VVV": (1, 1, 1, (1, 1, 1)),
        "MN": (3, 2, (3, 2), (3, 2, 1)),
        "MK": ((3, 4), (2, 4), (3, 2), (3, 2, 4)),
        "VM": ((1, 3), (1, 2), (1, 3, 2), (3, 2, 1)),
        "VMK": ((1, 3, 4), (1, 2, 4), (1, 3, 2), (3, 2, 4)),
    }
    *parts, shape = shapes[ranks]

    @cute.kernel
    def multiply(A: Any, B: Any, D: Any):
        ra, rb, rd = (cute.make_rmem_tensor(part, cute.Float32) for part in parts)
        for fragment, source in ((ra, A), (rb, B)):
            for i in cute.range_constexpr(cute.size(source)):
                fragment[i] = source[i]
        atom = cute.make_mma_atom(MmaUniversalOp(cute.Float32))
        cute.gemm(atom, rd, ra, rb)
        cute.gemm(atom, rd, ra, rb, rd)
        for i in cute.range_constexpr(cute.size(D)):
            D[i] = rd[i]

    got, wanted = run(multiply, shape, 1, np.float32)
    assert np.array_equal(got, 2 * wanted)


def test_c_and_d_may_differ() -> None:
    @cute.kernel
    def multiply(A: Any, B: Any, D: Any):
        mma = cute.make_tiled_mma(MMA_SYNC)
        thread = mma.get_slice(cute.arch.thread_idx().x)
        a, b, d = thread.partition_A(A), thread.partition_B(B), thread.partition_C(D)
        ra, rb, rd, rc = mma.make_fragment_A(a), mma.make_fragment_B(b), mma.make_fragment_C(d), mma.make_fragment_C(d)
        cute.autovec_copy(a, ra)
        cute.autovec_copy(b, rb)
        rc.fill(5.0)
        cute.gemm(mma, rd, ra, rb, rc)
        cute.autovec_copy(rd, d)

    got, wanted = run(multiply, (16, 8, 16), 32)
    assert np.array_equal(got, wanted + 5)


def wgmma_loop(stages: int, loop: bool, branch: bool = False) -> Any:
    """Return a GEMM of two warpgroups. Each computes 128 x 64 of D with two atoms from swizzled 64-wide k-tiles."""

    def multiply(A: Any, B: Any, D: Any, more: Any):
        tid = cute.arch.thread_idx().x
        mma = cute.make_tiled_mma(WGMMA, (2, 1, 1))
        thread = mma.get_slice(tid)
        rows = warpgroup.make_smem_layout_atom(warpgroup.SmemLayoutAtomKind.K_SW128, cute.Float16)
        tiles = []
        for source in (A, B):
            layout = cute.tile_to_shape(rows, (source.shape[0], 64, stages), (0, 1, 2))
            tile = cute.smem_tensor(cute.Float16, layout.outer, 1024, layout.inner)
            for start in range(0, cute.size(source), 256):
                tile[tid + start] = source[tid + start]
            tiles.append(tile)
        a, b = thread.partition_A(tiles[0]), thread.partition_B(tiles[1])
        cute.arch.fence_proxy("async.shared", space="cta")
        cute.arch.sync_threads()
        d = thread.partition_C(D)
        acc = mma.make_fragment_C(d)
        step(mma, acc, a, b, 0, False)
        if branch:
            if more != 0:
                for stage in cute.range_constexpr(1, stages):
                    step(mma, acc, a, b, stage, True)
        elif loop:
            for stage in range(1, cute.Int32(stages)):
                step(mma, acc, a, b, stage, True)
                warpgroup.wait_group(1)
        warpgroup.wait_group(0, acc)
        cute.autovec_copy(acc, d)

    def step(mma: Any, acc: Any, a: Any, b: Any, stage: Any, accumulate: bool):
        warpgroup.fence()
        cute.gemm(mma, acc, a[None, None, None, stage], b[None, None, None, stage], accumulate=accumulate)
        warpgroup.commit_group()

    if branch:
        return cute.kernel(multiply)

    @cute.kernel
    def without_a_flag(A: Any, B: Any, D: Any):
        multiply(A, B, D, None)

    return without_a_flag


@pytest.mark.slow
def test_wgmma_over_stages_in_a_loop() -> None:
    got, wanted = run(wgmma_loop(3, loop=True), (256, 64, 192), 256)
    assert np.array_equal(got, wanted)


def test_wgmma_under_a_condition() -> None:
    got, wanted = run(wgmma_loop(2, loop=False, branch=True), (256, 64, 128), 256, np.float16, 1)
    assert np.array_equal(got, wanted)


@pytest.mark.parametrize("branch", [False, True])
def test_accumulators_cross_loops_and_branches_as_structs(branch: bool) -> None:
    kernel = wgmma_loop(2 if branch else 3, loop=not branch, branch=branch)
    base = lowered(kernel, (256, 64, 128 if branch else 192), 256, *([1] if branch else []))
    around = [o for o in base.walk() if o.name in ("scf.for", "scf.if")]
    (op,) = [o for o in around if any(i.name == "nvvm.wgmma.mma_async" for i in o.walk())]
    assert op.name == ("scf.if" if branch else "scf.for")
    assert [str(t)[:17] for t in op.result_types] == ["!llvm.struct<(f32"] * 2
    taken_apart = [i for i in op.walk() if i.name in ("llvm.insertvalue", "llvm.extractvalue")]
    assert not [i for i in taken_apart if i.operands[0].type in op.result_types]


def test_coordinates_are_partitioned_like_the_data() -> None:
    """Every thread stores m * 100 + n at the coordinates of its accumulators."""

    @cute.kernel
    def number(A: Any, B: Any, D: Any):
        thread = cute.make_tiled_mma(MMA_SYNC, (2, 2, 1)).get_slice(cute.arch.thread_idx().x)
        where, d = thread.partition_C(cute.make_identity_tensor((32, 16))), thread.partition_C(D)
        for i in cute.range_constexpr(4):
            m, n = where[i]
            d[i] = cute.Float32(m * 100 + n)

    d, _ = run(number, (32, 16, 1), 128)
    assert np.array_equal(d, np.arange(32)[:, None] * 100 + np.arange(16)[None, :])
