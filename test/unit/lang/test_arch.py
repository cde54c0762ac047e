"""``cute.arch``: thread indices, warps, barriers and atomics, traced and compared with numpy."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import value_reference
from cells import Cells, shared
from front_tensors import when
from tracing import run_kernel_on_cpu, text_of, trace_kernel

import cute_dialect.lang as cute
from cute_dialect.errors import CuteError
from cute_dialect.lang.calls.function_traces import host_function
from cute_dialect.lang.tracing.tracer import empty_module

arch = cute.arch


def run(
    body: Callable[..., Any], *, dtype: Any = np.int32, threads: int = 64, grid: int = 1, size: int = 64, fill: int = 0
) -> Any:
    """Run ``body(out)`` and return the array."""
    element = {"int32": "i32", "float32": "f32", "int64": "i64", "float16": "f16"}[np.dtype(dtype).name]
    module = trace_kernel(
        body, {"out": f'!cute.memref<{element}, gmem, "{size}:1">'}, Cells, threads=threads, grid=grid
    )
    out = np.full(size, fill, dtype)
    run_kernel_on_cpu(module, [out], grid=grid, threads=threads)
    return out


LANES = np.arange(64)


def test_indices() -> None:
    def body(out: Cells) -> None:
        t, b = arch.thread_idx(), arch.block_idx()
        assert t.y.value == 0 and arch.block_dim().x.value == 32 and arch.grid_dim() == (2, 1, 1)
        out[t.x + arch.block_dim().x * b.x] = arch.lane_idx() + 100 * b[0]

    assert (run(body, threads=32, grid=2) == LANES % 32 + 100 * (LANES // 32)).all()


@pytest.mark.parametrize("name", ["warp_idx", "canonical_warp_idx_sync"])
def test_warp(name: str) -> None:
    def body(out: Cells) -> None:
        out[arch.thread_idx().x] = getattr(arch, name)()

    assert (run(body) == LANES // 32).all()


def test_warpgroup() -> None:
    def body(out: Cells) -> None:
        out[arch.thread_idx().x] = arch.warpgroup_idx()

    assert (run(body, threads=256, size=256) == np.arange(256) // 128).all()


def test_ranges_fold() -> None:
    def body(out: Cells) -> None:
        tid = arch.thread_idx().x
        assert (tid // 64).value == 0 and (arch.lane_idx() // 32).value == 0
        out[tid] = tid % 64

    text = text_of(trace_kernel(body, {"out": '!cute.memref<i32, gmem, "64:1">'}, Cells, threads=64))
    assert "rem" not in text


def test_without_clusters() -> None:
    def body(out: Cells) -> None:
        assert arch.block_idx_in_cluster().value == 0 and arch.cluster_size().value == 1
        assert arch.block_in_cluster_idx() == (0, 0, 0) and arch.block_in_cluster_dim() == (1, 1, 1)
        out[arch.thread_idx().x] = arch.cluster_idx().x + 10 * arch.cluster_dim().x

    assert (run(body, threads=64, grid=1) == 10).all()


SHUFFLES = {
    "shuffle_sync": lambda i: i // 32 * 32 + 3,
    "shuffle_sync_up": lambda i: np.where(i % 32 >= 3, i - 3, i),
    "shuffle_sync_down": lambda i: np.where(i % 32 < 29, i + 3, i),
    "shuffle_sync_bfly": lambda i: i ^ 3,
}


@pytest.mark.parametrize("name", SHUFFLES)
@pytest.mark.parametrize("kind", [cute.Int8, cute.Int16, cute.Int32, cute.Int64, cute.Float16, cute.Float32])
def test_shuffles(name: str, kind: Any) -> None:
    def body(out: Cells) -> None:
        tid = arch.thread_idx().x
        out[tid] = cute.Int32(getattr(arch, name)(kind(tid), 3))

    assert (run(body) == SHUFFLES[name](LANES)).all()


def test_shuffles_of_groups() -> None:
    def body(out: Cells) -> None:
        tid = arch.thread_idx().x
        x = arch.shuffle_sync_up(tid, 1, mask_and_clamp=(32 - 8) << 8)
        out[tid] = 100 * x + arch.shuffle_sync(tid, 2, mask_and_clamp=(32 - 8) << 8 | 31)

    groups = LANES // 8 * 8
    assert (run(body, size=64) == 100 * np.where(LANES % 8 > 0, LANES - 1, LANES) + groups + 2).all()


def test_shuffle_of_a_tuple() -> None:
    def body(out: Cells) -> None:
        tid = arch.thread_idx().x
        number, (half, small) = arch.shuffle_sync_bfly((tid, (cute.Float16(tid), tid % 32 < 3)), 1)
        out[tid] = number + 100 * cute.Int32(half) + 10000 * cute.Int32(small)

    other = LANES ^ 1
    assert (run(body) == other + 100 * other + 10000 * (other % 32 < 3)).all()


def test_votes() -> None:
    def body(out: Cells) -> None:
        tid = arch.thread_idx().x
        few = (tid % 32) < 3
        ballot = cute.Int32(arch.vote_ballot_sync(few))
        flags = [
            arch.vote_any_sync(few),
            arch.vote_all_sync(few),
            arch.vote_uni_sync(few),
            arch.vote_uni_sync(tid < 64),
        ]
        out[tid] = ballot + sum(cute.Int32(f) << 4 + i for i, f in enumerate(flags))

    assert (run(body) == 0b111 + (0b1001 << 4)).all()


@pytest.mark.parametrize("group", [32, 8, 1])
@pytest.mark.parametrize("kind", [cute.Int32, cute.Float32, cute.Uint32, cute.Float16])
def test_reductions(kind: Any, group: int) -> None:
    def body(out: Cells) -> None:
        tid = arch.thread_idx().x
        v = kind(tid % 32)
        found = (
            arch.warp_reduction_sum(v, group) * kind(4)
            + arch.warp_reduction_max(v, group)
            - arch.warp_reduction_min(v, group)
        )
        out[tid] = cute.Int32(found) + cute.Int32(arch.warp_reduction(v, lambda a, b: a + b, threads_in_group=group))

    lanes = (LANES % 32).reshape(-1, group)
    expected = lanes.sum(1) * 5 + lanes.max(1) - lanes.min(1)
    assert (run(body) == np.repeat(expected, group)).all()


@pytest.mark.parametrize("kind", ["add", "and", "or", "xor", "min", "max"])
def test_redux(kind: str) -> None:
    def body(out: Cells) -> None:
        tid = arch.thread_idx().x
        out[tid] = arch.warp_redux_sync(tid - 40, kind)

    lanes = (LANES - 40).reshape(2, 32)
    names = {
        "add": "add",
        "and": "bitwise_and",
        "or": "bitwise_or",
        "xor": "bitwise_xor",
        "min": "minimum",
        "max": "maximum",
    }
    assert (run(body) == np.repeat(getattr(np, names[kind]).reduce(lanes, axis=1), 32)).all()


def test_barriers() -> None:
    def body(out: Cells) -> None:
        tid = arch.thread_idx().x
        s = shared("i32", 64)
        s[tid] = tid
        arch.sync_threads()
        x = s[63 - tid]
        arch.barrier(barrier_id=1)
        s[tid] = x
        arch.barrier(barrier_id=2, number_of_threads=64)
        y = s[63 - tid]
        arch.barrier()
        s[tid] = y
        arch.sync_warp()
        arch.fence_acq_rel_cta()
        arch.fence_acq_rel_gpu()
        arch.fence_view_async_shared()
        arch.fence_proxy("async.shared", space="cta")
        out[tid] = x + 100 * s[tid // 32 * 32]

    assert (run(body) == 63 - LANES + 100 * (LANES // 32 * 32)).all()


def test_mbarriers() -> None:
    def body(out: Cells) -> None:
        tid = arch.thread_idx().x
        bars, s = shared("i64", 1), shared("i32", 64)
        s[tid] = tid
        arch.sync_threads()
        with when(tid == 0):
            arch.mbarrier_init(bars.at(), 64)
            arch.mbarrier_init_fence()
        arch.sync_threads()
        arch.mbarrier_arrive(bars.at())
        arch.mbarrier_wait(bars.at(), 0)
        x = s[63 - tid]
        more = arch.mbarrier_conditional_try_wait(tid < 40, bars.at(), 0)
        done = arch.mbarrier_try_wait(bars.at(), 0)
        out[tid] = x + 100 * cute.Int32(done) + 1000 * cute.Int32(more)

    assert (run(body) == 1100 + 63 - LANES).all()


ATOMICS = {
    "add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}  # fmt: skip


@pytest.mark.parametrize("name", ATOMICS)
def test_atomics(name: str) -> None:
    def body(out: Cells) -> None:
        tid = arch.thread_idx().x
        getattr(arch, f"atomic_{name}")(out.at(tid % 4), tid + 3, sem="relaxed", scope="gpu")
        arch.red(out.at(4 + tid % 4), tid + 3, op=name)

    values = (LANES + 3).astype(np.int32).reshape(16, 4)
    expected = ATOMICS[name](ATOMICS[name].reduce(values, axis=0), 21)
    found = run(body, size=8, fill=21)
    assert (found[:4] == expected).all() and (found[4:] == expected).all()


def test_unsigned_and_float_atomics() -> None:
    def body(out: Cells) -> None:
        arch.atomic_max(out.at(0), cute.Uint32(0xFFFFFFFF))
        arch.atomic_max(out.at(1), -1)

    assert run(body, size=2, fill=5).tolist() == [-1, 5]

    def floats(out: Cells) -> None:
        arch.atomic_fmax(out.at(0), cute.Float32(arch.thread_idx().x))
        arch.atomic_fmin(out.at(1), -1.5)
        arch.atomic_add(out.at(2), 0.5)

    assert run(floats, size=3, dtype=np.float32).tolist() == [63, -1.5, 32]


def test_exchange_and_compare() -> None:
    def body(out: Cells) -> None:
        tid = arch.thread_idx().x
        old = arch.atomic_cas(out.at(1), cmp=0, val=tid + 1)
        with when(old == 0):
            out[2] = tid + 1
        last = arch.atomic_exch(out.at(0), tid)
        arch.atomic_add(out.at(3), last)
        arch.store(out.at(4), 7, sem="release", scope="gpu")
        out[5] = arch.load(out.at(4), cute.Int32, sem="acquire", scope="gpu") + arch.load(out.at(4))

    out = run(body, size=6)
    assert out[1] == out[2] and 1 <= out[1] <= 64
    assert out[3] + out[0] == 63 * 64 // 2
    assert out[4] == 7 and out[5] == 14


def test_approximations() -> None:
    def body(out: Cells) -> None:
        tid = arch.thread_idx().x
        x = cute.Float32(tid) * 0.125 + 0.5
        functions = [
            arch.exp2,
            arch.log2_approx,
            arch.rcp_approx,
            arch.sqrt_approx,
            arch.rsqrt_approx,
            arch.tanh_approx,
            arch.exp,
        ]
        for i, f in enumerate(functions):
            out[tid + 64 * i] = f(arch.opaque(x))

    x = LANES * 0.125 + 0.5
    found = run(body, dtype=np.float32, size=448).reshape(7, 64)
    for got, want in zip(found, [2**x, np.log2(x), 1 / x, np.sqrt(x), x**-0.5, np.tanh(x), np.exp(x)]):
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-6)


def test_packed_float_operations_round_like_scalar_ones() -> None:
    rng = np.random.default_rng(1)
    given = (rng.standard_normal((6, 64)) * 2.0 ** rng.integers(-30, 30, (6, 64))).astype(np.float32)

    def body(out: Cells) -> None:
        tid = arch.thread_idx().x
        a, b, c = ((out[tid + 128 * i], out[tid + 64 + 128 * i]) for i in range(3))
        made = (arch.add_packed_f32x2(a, b), arch.mul_packed_f32x2(a, b), arch.fma_packed_f32x2(a, b, c))
        x, y = arch.add_packed_f32x2(arch.mul_packed_f32x2(a, b), [1.0, cute.Float32(2)])  # not a fused multiply-add
        for i, pair in enumerate((*made, (x, y))):
            for j, value in enumerate(pair):
                out[tid + 384 + 64 * (2 * i + j)] = value

    memory = np.concatenate([given.ravel(), np.zeros(512, np.float32)])
    module = trace_kernel(body, {"out": '!cute.memref<f32, gmem, "896:1">'}, Cells, threads=64)
    run_kernel_on_cpu(module, [memory], threads=64)
    a, b, c = given.reshape(3, 2, 64)
    fused = np.array([float(Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))) for x, y, z in
                      zip(a.ravel(), b.ravel(), c.ravel())], np.float32).reshape(2, 64)  # fmt: skip
    expected = [a + b, a * b, fused, a * b + np.array([[1], [2]], np.float32)]
    assert (memory[384:].reshape(4, 2, 64) == np.array(expected)).all()
    assert text_of(module).count("math.fma") == 2


@pytest.mark.parametrize(
    ("pair", "words"),
    [
        (1.0, "src_b is 1.0; pass a pair of Float32"),
        ((1.0,), r"src_b is \(1.0,\); pass a pair of Float32"),
        ((1.0, 2), r"src_b\[1\] is 2, of type Int32; pass a Float32, such as cute.Float32\(x\)"),
        ((None, 1.0), r"src_b\[0\] is None; pass a Float32"),
    ],
)
def test_pairs_are_of_two_floats(pair: Any, words: str) -> None:
    with pytest.raises(CuteError, match=f"cute.arch.mul_packed_f32x2: {words}"):
        run(lambda out: arch.mul_packed_f32x2((1.0, 2.0), pair))
    with pytest.raises(CuteError, match="add_packed_f32x2: rnd is 'rx'; use one of 'rn', 'rz', 'rm', 'rp'"):
        run(lambda out: arch.add_packed_f32x2((1.0, 2.0), (1.0, 2.0), rnd="rx"))


@pytest.mark.parametrize("chip", ["sm_90a", "sm_100", "sm_120"])
def test_packed_float_operations_round_in_each_mode(chip: str) -> None:
    """Two scalar instructions before sm_100, one packed instruction from sm_100 on, with the same results."""
    rng = np.random.default_rng(2)
    bits = rng.integers(0, 1 << 32, (6, 64), np.uint64).astype(np.uint32)
    bits[:, :8] &= 0x807FFFFF  # denormals
    cases = [("add", "rz", False), ("sub", "rm", True), ("mul", "rp", False), ("fma", "rn", True), ("fma", "rz", False)]

    def body(out: Cells) -> None:
        tid = arch.thread_idx().x
        operands = [(out[tid + 128 * i], out[tid + 64 + 128 * i]) for i in range(3)]
        for i, (name, rnd, ftz) in enumerate(cases):
            call = getattr(arch, f"{name}_packed_f32x2")
            made = call(*operands[: 3 if name == "fma" else 2], rnd=rnd, ftz=ftz)
            for j, value in enumerate(made):
                out[tid + 384 + 64 * (2 * i + j)] = value

    memory = np.concatenate([bits.view(np.float32).ravel(), np.zeros(640, np.float32)])
    module = trace_kernel(body, {"out": '!cute.memref<f32, gmem, "1024:1">'}, Cells, threads=64, chip=chip)
    run_kernel_on_cpu(module, [memory], threads=64)
    found = memory[384:].view(np.uint32).reshape(5, 2, 64)
    given = bits.reshape(3, 2, 64)
    for (name, rnd, ftz), got in zip(cases, found):
        opcode = f"{name}.{rnd}{'.ftz' * ftz}.f32"
        for j in range(2):
            for lane in range(64):
                row = [int(x) for x in given[: 3 if name == "fma" else 2, j, lane]]
                assert value_reference.accepts(opcode, "f32", row, int(got[j, lane])), (opcode, row)
    assert ("f32x2" in text_of(module)) == (chip != "sm_90a")


def test_greatest_of_three() -> None:
    given = np.array([[1, np.nan, -0.0, np.nan], [2, 3, 0.0, np.nan], [-5, np.nan, -1, np.nan]], np.float32)

    def body(out: Cells) -> None:
        tid = arch.thread_idx().x
        x = [out[tid + 4 * i] for i in range(3)]
        out[tid + 12], out[tid + 16] = arch.fmax(*x), arch.fmin(*x)

    memory = np.concatenate([given.ravel(), np.zeros(8, np.float32)])
    module = trace_kernel(body, {"out": '!cute.memref<f32, gmem, "20:1">'}, Cells, threads=4, chip="sm_100")
    run_kernel_on_cpu(module, [memory], threads=4)
    np.testing.assert_array_equal(memory[12:].reshape(2, 4), [[2, 3, 0, np.nan], [-5, 3, -1, np.nan]])


def test_reductions_of_floats_by_one_instruction() -> None:
    """``redux.sync`` of f32: NaN is ignored unless ``nan`` is set or all lanes have it, and -0.0 is below 0.0."""
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((4, 32)).astype(np.float32)
    rows[1, 5] = rows[3] = np.nan
    rows[2] = np.where(np.arange(32) % 2, 0.0, -0.0)
    cases = [("max", False, False), ("fmin", False, False), ("min", True, False), ("max", True, True)]

    def body(out: Cells) -> None:
        tid = arch.thread_idx().x
        for i, (kind, magnitude, nan) in enumerate(cases):
            out[tid + 128 * (i + 1)] = arch.warp_redux_sync(out[tid], kind, abs=magnitude, nan=nan)

    memory = np.concatenate([rows.ravel(), np.zeros(512, np.float32)])
    module = trace_kernel(body, {"out": '!cute.memref<f32, gmem, "640:1">'}, Cells, threads=128, chip="sm_100a")
    run_kernel_on_cpu(module, [memory], threads=128)
    found = memory[128:].reshape(4, 4, 32)
    for (kind, magnitude, nan), got in zip(cases, found):
        x = np.abs(rows) if magnitude else rows
        choose = np.fmax if "max" in kind else np.fmin
        want = [np.nan if nan and np.isnan(row).any() else choose.reduce(row) for row in x]
        np.testing.assert_array_equal(got, np.broadcast_to(np.array(want, np.float32)[:, None], (4, 32)))
    assert not np.signbit(found[0, 2]).any() and np.signbit(found[1, 2]).all()
    with pytest.raises(
        CuteError, match=r"F280: cute.arch.warp_redux_sync of Float32 needs sm_100a/f or sm_103a/f, but"
    ):
        trace_kernel(lambda: arch.warp_redux_sync(1.5, "max"), {}, chip="sm_120a")


def test_bulk_store_of_zeros() -> None:
    def body(out: Cells) -> None:
        tid = arch.thread_idx().x
        held = shared("f32", 64)
        held[tid] = cute.Float32(1)
        arch.sync_threads()
        with when(tid == 3):
            arch.store_bulk_zero(held.at(16), 128)
        arch.sync_threads()
        out[tid] = held[tid]

    module = trace_kernel(body, {"out": '!cute.memref<f32, gmem, "64:1">'}, Cells, threads=64, chip="sm_100")
    out = np.full(64, np.nan, np.float32)
    run_kernel_on_cpu(module, [out], threads=64)
    assert out.tolist() == [1.0] * 16 + [0.0] * 32 + [1.0] * 16


def test_inline_ptx() -> None:
    def body(out: Cells) -> None:
        tid = arch.thread_idx().x
        total = arch.inline_ptx("add.s32 $0, $1, $2;", tid, 100, result=cute.Int32)
        out[tid] = total + cute.Int32(arch.prmt(tid, 0, 0x4441)) * 0
        arch.nanosleep(10)

    assert (run(body) == LANES + 100).all()


@pytest.mark.parametrize("options", [{"sem": "relaxed"}, {"sem": "relaxed", "scope": "cta"}, {"cop": "cg"}])
@pytest.mark.parametrize("dtype", [np.int32, np.float32, np.int64, np.float16])
def test_strong_and_cached_accesses(dtype: Any, options: dict[str, str]) -> None:
    def body(out: Cells) -> None:
        tid = arch.thread_idx().x
        arch.store(out.at(tid), out.kind(tid), **options)
        arch.sync_threads()
        value = arch.load(out.at(63 - tid), **options)
        arch.sync_threads()
        out[tid] = value + out.kind(1)

    assert (run(body, dtype=dtype) == 64 - LANES).all()


def test_matches_and_choices() -> None:
    def body(out: Cells) -> None:
        tid = arch.thread_idx().x
        same = arch.popc(arch.match_any(tid // 8)) + 100 * arch.popc(arch.match_any(cute.Float32(tid % 4)))
        greater = arch.fmax(cute.Float32(tid), 20.0) + 1000 * arch.fmin(cute.Float32(tid), 3.0)
        out[tid] = cute.Int32(same) + cute.Int32(greater) * 10000

    expected = 8 + 100 * 8 + 10000 * (np.maximum(LANES, 20) + 1000 * np.minimum(LANES, 3))
    assert (run(body) == expected).all()


def test_elect_and_registers() -> None:
    def body(out: Cells) -> None:
        tid = arch.thread_idx().x
        arch.setmaxregister_decrease(40)
        arch.sync_threads()
        arch.setmaxregister_increase(240)
        arch.griddepcontrol_wait()
        arch.griddepcontrol_launch_dependents()
        arch.cp_async_commit_group()
        arch.cp_async_wait_group(0)
        arch.cp_async_bulk_commit_group()
        arch.cp_async_bulk_wait_group(0, read=True)
        with when(arch.elect_one()):
            out[tid // 32] = tid // 32 + 1

    assert run(body, threads=128, size=4).tolist() == [1, 2, 3, 4]


ERRORS = {
    "F119: cute.arch.thread_idx can only be used in a kernel, not in a host function\nhint: call it in the kernel": (
        lambda: arch.thread_idx()
    ),
    "F251: cute.arch.barrier: barrier_id must be 0 to 15, got 16": lambda: arch.barrier(16),
    "F251: cute.arch.barrier: number_of_threads must be a positive multiple of 32, got 33": lambda: arch.barrier(1, 33),
    "F251: cute.arch.setmaxregister_increase: property count is 13 : i32; use a multiple of 8 from 24 to 256 (i32)": (
        lambda: arch.setmaxregister_increase(13)
    ),
    "F251: cute.arch.fence_proxy: kind must be one of 'async.shared' with space='cta', 'async.shared' with "
    "space='cluster', "
    "'async.shared', 'async.global', 'async', got 'alias', space=None": lambda: arch.fence_proxy("alias"),
    "F253: cute.arch.warp_redux_sync: needs an Int32 or Uint32 and one of add, and, or, xor, min, max, or a Float32 "
    "and min or max, got this Float32 and 'add'\nhint: use cute.arch.warp_reduction for other types": (
        lambda: arch.warp_redux_sync(1.5, "add")
    ),
    "F253: cute.arch.vote_any_sync: the mask must be FULL_MASK, because the whole warp executes it; got 15": (
        lambda: arch.vote_any_sync(True, 15)
    ),
    "F262: 'ptr' of cute.arch.mbarrier_wait must be a pointer to i64 in smem, got 3": (
        lambda: arch.mbarrier_wait(3, 0)
    ),
    "F251: cute.arch.inline_ptx: result must be a type of 16 to 64 bits, got Int8": (
        lambda: arch.inline_ptx("mov.b32 $0, 0;", result=cute.Int8)
    ),
}  # fmt: skip


@pytest.mark.parametrize("message", ERRORS)
def test_errors(message: str) -> None:
    call = ERRORS[message]

    def body(*_: object) -> None:
        call()

    with pytest.raises(CuteError) as caught:
        if message.startswith("F119"):
            with host_function(empty_module(), "f", [], chip="sm_90a"):
                body()
        else:
            trace_kernel(body, {})
    caught.value.place = None
    caught.value.calls = []
    assert str(caught.value) == f"error {message}"


def test_unsupported_targets_are_rejected() -> None:
    with pytest.raises(CuteError) as caught:
        trace_kernel(lambda: arch.elect_one(), {}, chip="sm_80")
    caught.value.place = None
    caught.value.calls = []
    assert str(caught.value) == "error F280: cute.arch.elect_one needs sm_90 or later, but the target is sm_80"
