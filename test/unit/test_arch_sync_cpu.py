"""What the machine-level ops do, on the CPU interpreter."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest
from sync_support import kernel, out, run

from cute_dialect.interp import InterpError

LANES = np.arange(32)
STORE = '\ncute.memref.store(%o, %c, %r) : (!cute.memref<{0}, gmem, "?:1">, !cute.coord<"?">, {0}) -> ()'
LOAD = '%v = cute.memref.load(%x, %c) : (!cute.memref<{0}, gmem, "?:1">, !cute.coord<"?">) -> {0}\n'


def unary(op: str, element: str, result: str | None = None) -> str:
    """``o[tid] = op(x[tid])``"""
    result = result or element
    parameters = f'%x: !cute.memref<{element}, gmem, "?:1">, %o: !cute.memref<{result}, gmem, "?:1">'
    return kernel(LOAD.format(element) + op + STORE.format(result), parameters)


DTYPES = {
    "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "f16": np.float16, "bf16": ml_dtypes.bfloat16,
    "f32": np.float32, "f64": np.float64,
}  # fmt: skip


@pytest.mark.parametrize("element", DTYPES)
def test_shuffle_moves_every_type_bit_by_bit(element: str) -> None:
    dtype = np.dtype(DTYPES[element])
    x = np.random.default_rng(1).integers(0, 256, 32 * dtype.itemsize, np.uint8).view(dtype)
    o = np.zeros(32, dtype)
    op = f"%i = arith.constant 5 : i32\n%r = cute_nvgpu.arch.shfl_sync(%v, %i) : ({element}, i32) -> {element}"
    run(unary(op, element), x, o)
    assert o.tobytes() == x[LANES ^ 5].tobytes()


def source(mode: str, index: int, width: int) -> np.ndarray:
    """The lane that each lane reads."""
    base = LANES & ~(width - 1)
    inside = LANES - base
    target = {"bfly": inside ^ index, "up": inside - index, "down": inside + index, "idx": index + 0 * inside}[mode]
    return np.where((target >= 0) & (target < width), base + target, LANES)


@pytest.mark.parametrize("width", [32, 8, 2])
@pytest.mark.parametrize("mode", ["bfly", "up", "down", "idx"])
def test_shuffle_modes_and_widths(mode: str, width: int) -> None:
    for index in (0, 1, width // 2):
        o = out()
        op = (
            f"%i = arith.constant {index} : i32\n"
            f'%r = cute_nvgpu.arch.shfl_sync(%v, %i) {{mode = "{mode}", width = {width} : i32}} : (i32, i32) -> i32'
        )
        run(unary(op, "i32"), (LANES * 10).astype(np.int32), o)
        assert o.tolist() == (source(mode, index, width) * 10).tolist()


@pytest.mark.parametrize("kind", ["add", "and", "or", "xor", "min", "max", "umin", "umax"])
def test_redux_combines_the_warp(kind: str) -> None:
    x = np.random.default_rng(2).integers(-(1 << 31), 1 << 31, 32).astype(np.int32)
    u = x.view(np.uint32)
    wanted = {
        "add": lambda: x.sum(dtype=np.int32), "and": lambda: np.bitwise_and.reduce(x),
        "or": lambda: np.bitwise_or.reduce(x), "xor": lambda: np.bitwise_xor.reduce(x), "min": x.min, "max": x.max,
        "umin": lambda: u.min().view(np.int32), "umax": lambda: u.max().view(np.int32),
    }[kind]()  # fmt: skip
    o = out()
    run(unary(f'%r = cute_nvgpu.arch.redux_sync(%v) {{kind = "{kind}"}} : (i32) -> i32', "i32"), x, o)
    assert (o == wanted).all()


def test_votes() -> None:
    x = np.arange(32, dtype=np.int32)
    flag = "%k = arith.constant 29 : i32\n%f = arith.cmpi sgt, %v, %k : i32\n"
    o = out()
    run(unary(flag + "%r = cute_nvgpu.arch.ballot(%f) : (i1) -> i32", "i32"), x, o)
    assert (o.view(np.uint32) == 0xC0000000).all()
    for name, wanted in (("vote_any", 1), ("vote_all", 0)):
        op = f"{flag}%b = cute_nvgpu.arch.{name}(%f) : (i1) -> i1\n%r = arith.extui %b : i1 to i32"
        run(unary(op, "i32"), x, o)
        assert (o == wanted).all()


def test_ids_and_the_elected_thread() -> None:
    body = (
        "%w = cute_nvgpu.arch.warp_id() : () -> i32\n%l = cute_nvgpu.arch.lane_id() : () -> i32\n"
        "%e = cute_nvgpu.arch.elect_one() : () -> i1\n%b = arith.extui %e : i1 to i32\n"
        "%h = arith.constant 100 : i32\n%t = arith.constant 10000 : i32\n"
        "%x = arith.muli %w, %h : i32\n%y = arith.muli %b, %t : i32\n%s = arith.addi %x, %l : i32\n"
        "%r = arith.addi %s, %y : i32"
    )
    o = out(96)
    run(kernel(body + STORE.format("i32"), '%o: !cute.memref<i32, gmem, "?:1">', 96), o, threads=96)
    tid = np.arange(96)
    assert o.tolist() == (tid // 32 * 100 + tid % 32 + (tid % 32 == 0) * 10000).tolist()


APPROX: dict[str, tuple[Callable[[np.ndarray], np.ndarray], float, float, float]] = {
    "exp2": (np.exp2, -20, 20, 2**-22), "log2": (np.log2, 0.1, 100, 2**-20), "rcp": (np.reciprocal, 0.1, 9, 2**-22),
    "sqrt": (np.sqrt, 0, 9, 2**-22), "rsqrt": (lambda x: 1 / np.sqrt(x), 0.1, 9, 2**-21.5),
    "tanh": (np.tanh, -3, 3, 2**-10),
}  # fmt: skip


@pytest.mark.parametrize("name", APPROX)
def test_fast_functions(name: str) -> None:
    f, low, high, tolerance = APPROX[name]
    x = np.linspace(low, high, 32).astype(np.float32)
    o = out(dtype=np.float32)
    run(unary(f"%r = cute_nvgpu.arch.{name}_approx(%v) : (f32) -> f32", "f32"), x, o)
    assert np.allclose(o, f(x.astype(np.float64)), rtol=tolerance, atol=tolerance)


ATOMICS = [
    (name, element)
    for name in ("add", "min", "max", "umin", "umax", "and", "or", "xor")
    for element in ("i32", "i64", "f32", "f64", "f16", "bf16")
    if element[0] == "i" or name == "add" or (name in ("min", "max") and element in ("f32", "f64"))
]


@pytest.mark.parametrize("name, element", ATOMICS)
def test_atomics_of_a_block_meet_in_one_place(name: str, element: str) -> None:
    dtype = np.dtype(DTYPES[element])
    rng = np.random.default_rng(3)
    x = rng.integers(-8, 9, 32).astype(dtype)
    body = (
        LOAD.format(element)
        + f'%p = cute.get_iter(%o) : !cute.memref<{element}, gmem, "?:1">\n'
        + f"%r = cute_nvgpu.arch.atomic_{name}(%p, %v) : (!cute.ptr<{element}, gmem>, {element}) -> {element}"
    )
    parameters = f'%x: !cute.memref<{element}, gmem, "?:1">, %o: !cute.memref<{element}, gmem, "?:1">'
    o = np.full(4, 3, dtype)
    run(kernel(body, parameters), x, o)
    all_ = np.concatenate([np.full(1, 3, dtype), x])
    unsigned = all_.view(np.dtype(f"u{dtype.itemsize}")) if element[0] == "i" else all_
    wanted = {
        "add": lambda: all_.astype(np.float64).sum(), "min": all_.min, "max": all_.max,
        "umin": lambda: unsigned.min().view(dtype), "umax": lambda: unsigned.max().view(dtype),
        "and": lambda: np.bitwise_and.reduce(all_), "or": lambda: np.bitwise_or.reduce(all_),
        "xor": lambda: np.bitwise_xor.reduce(all_),
    }[name]()  # fmt: skip
    assert o.tolist() == [float(wanted) if element[0] != "i" else int(wanted), *([3] * 3)]


def test_atomics_give_what_was_there() -> None:
    """A ticket counter: each thread gets its own number; then compare-and-swap by the first and exchange by one."""
    body = (
        '%p = cute.get_iter(%n) : !cute.memref<i32, gmem, "4:1">\n%one = arith.constant 1 : i32\n'
        '%r = cute_nvgpu.arch.atomic_add(%p, %one) {order = "acq_rel"} : (!cute.ptr<i32, gmem>, i32) -> i32'
    )
    counter, o = np.zeros(4, np.int32), out(64)
    parameters = '%n: !cute.memref<i32, gmem, "4:1">, %o: !cute.memref<i32, gmem, "?:1">'
    run(kernel(body + STORE.format("i32"), parameters, 64), counter, o, threads=64)
    assert sorted(o.tolist()) == list(range(64)) and counter.tolist() == [64, 0, 0, 0]
    cas = (
        '%p = cute.get_iter(%n) : !cute.memref<i32, gmem, "4:1">\n%k = arith.constant 64 : i32\n'
        "%t = arith.addi %tid, %k : i32\n"
        "%r = cute_nvgpu.arch.atomic_cas(%p, %t, %k) : (!cute.ptr<i32, gmem>, i32, i32) -> i32"
    )
    run(kernel(cas + STORE.format("i32"), parameters, 64), counter, o, threads=64)
    assert o.tolist().count(64) >= 1 and 64 <= counter[0] < 128
    swap = body.replace("atomic_add", "atomic_exch").replace("%p, %one", "%p, %tid")
    before = int(counter[0])
    run(kernel(swap + STORE.format("i32"), parameters, 64), counter, o, threads=64)
    assert sorted([*o.tolist(), int(counter[0])]) == sorted([before, *range(64)])


SMEM = '!cute.memref<i32, smem, "{n}:1">'
BAR = '!cute.memref<i64, smem, "2:1">'


def test_a_barrier_orders_shared_memory() -> None:
    s = SMEM.format(n=64)
    body = (
        f"%s = cute.memref.alloc_smem() : {s}\n"
        f'cute.memref.store(%s, %c, %tid) : ({s}, !cute.coord<"?">, i32) -> ()\n'
        "cute_nvgpu.arch.barrier() : () -> ()\n"
        "%k = arith.constant 63 : i32\n%j = arith.subi %k, %tid : i32\n"
        '%d = cute.make_coord(%j) : (i32) -> !cute.coord<"?">\n'
        f'%r = cute.memref.load(%s, %d) : ({s}, !cute.coord<"?">) -> i32'
    )
    o = out(64)
    run(kernel(body + STORE.format("i32"), '%o: !cute.memref<i32, gmem, "?:1">', 64), o, threads=64)
    assert o.tolist() == list(range(63, -1, -1))


def produce_and_consume(wait: str, tell: str) -> str:
    """Warp 0 writes what warp 1 reads."""
    s = SMEM.format(n=32)
    return (
        f"%s = cute.memref.alloc_smem() : {s}\n%bars = cute.memref.alloc_smem() : {BAR}\n"
        f"%b = cute.get_iter(%bars) : {BAR}\n"
        "%w = cute_nvgpu.arch.warp_id() : () -> i32\n%l = cute_nvgpu.arch.lane_id() : () -> i32\n"
        "%zero = arith.constant 0 : i32\n%one = arith.constant 1 : i32\n%n = arith.constant 32 : i32\n"
        "%all = arith.constant 64 : i32\n%first = arith.cmpi eq, %tid, %zero : i32\n"
        "scf.if %first {\n"
        "  cute_nvgpu.arch.mbarrier_init(%b, %n) : (!cute.ptr<i64, smem>, i32) -> ()\n"
        "  cute_nvgpu.arch.fence_mbarrier_init() : () -> ()\n}\n"
        "cute_nvgpu.arch.barrier() : () -> ()\n"
        "%producer = arith.cmpi eq, %w, %zero : i32\n"
        '%lc = cute.make_coord(%l) : (i32) -> !cute.coord<"?">\n'
        "scf.if %producer {\n"
        f'  %x = arith.muli %l, %n : i32\n  cute.memref.store(%s, %lc, %x) : ({s}, !cute.coord<"?">, i32) -> ()\n'
        f"  {tell}\n}} else {{\n  {wait}\n"
        f"  %k = arith.constant 31 : i32\n  %j = arith.subi %k, %l : i32\n"
        '  %jc = cute.make_coord(%j) : (i32) -> !cute.coord<"?">\n'
        f'  %r = cute.memref.load(%s, %jc) : ({s}, !cute.coord<"?">) -> i32\n'
        '  cute.memref.store(%o, %lc, %r) : (!cute.memref<i32, gmem, "?:1">, !cute.coord<"?">, i32) -> ()\n}'
    )


HANDSHAKES = {
    "mbarrier": (
        "cute_nvgpu.arch.mbarrier_wait(%b, %zero) : (!cute.ptr<i64, smem>, i32) -> ()",
        "cute_nvgpu.arch.mbarrier_arrive(%b) : (!cute.ptr<i64, smem>) -> ()",
    ),
    "named": (
        "cute_nvgpu.arch.named_barrier(%one, %all) : (i32, i32) -> ()",
        "cute_nvgpu.arch.named_barrier_arrive(%one, %all) : (i32, i32) -> ()",
    ),
}


@pytest.mark.parametrize("how", HANDSHAKES)
def test_one_warp_waits_for_another(how: str) -> None:
    o = out(32)
    wait, tell = HANDSHAKES[how]
    run(kernel(produce_and_consume(wait, tell), '%o: !cute.memref<i32, gmem, "?:1">', 64), o, threads=64)
    assert o.tolist() == [(31 - i) * 32 for i in range(32)]


def test_a_wait_for_arrivals_that_never_come_is_a_deadlock() -> None:
    body = produce_and_consume(HANDSHAKES["mbarrier"][0], "cute_nvgpu.arch.syncwarp() : () -> ()")
    with pytest.raises(InterpError, match="deadlock") as e:
        run(kernel(body, '%o: !cute.memref<i32, gmem, "?:1">', 64), out(32), threads=64)
    assert any("for phase parity 0" in n and "32 of 32 arrivals missing" in n for n in e.value.notes)


def test_expected_bytes_hold_the_phase_back() -> None:
    """``try_wait`` on a phase that is complete; then a phase whose bytes never come."""
    body = (
        f"%bars = cute.memref.alloc_smem() : {BAR}\n%b = cute.get_iter(%bars) : {BAR}\n"
        "%one = arith.constant 1 : i32\n%zero = arith.constant 0 : i32\n%n = arith.constant 64 : i32\n"
        "%e = cute_nvgpu.arch.elect_one() : () -> i1\nscf.if %e {\n"
        "  cute_nvgpu.arch.mbarrier_init(%b, %one) : (!cute.ptr<i64, smem>, i32) -> ()\n"
        "  cute_nvgpu.arch.mbarrier_arrive(%b) : (!cute.ptr<i64, smem>) -> ()\n}\n"
        "cute_nvgpu.arch.syncwarp() : () -> ()\n"
        "%f = cute_nvgpu.arch.mbarrier_try_wait(%b, %zero) : (!cute.ptr<i64, smem>, i32) -> i1\n"
        "%r = arith.extui %f : i1 to i32"
    )
    o = out(32)
    run(kernel(body + STORE.format("i32"), '%o: !cute.memref<i32, gmem, "?:1">'), o)
    assert (o == 1).all()
    stuck = body.replace("mbarrier_arrive(%b) : (!cute.ptr<i64, smem>)",
                         "mbarrier_arrive_expect_tx(%b, %n) : (!cute.ptr<i64, smem>, i32)")  # fmt: skip
    with pytest.raises(InterpError) as e:
        run(kernel(stuck + STORE.format("i32"), '%o: !cute.memref<i32, gmem, "?:1">'), o)
    assert any("64 bytes missing" in n for n in e.value.notes)


def cluster_kernel(body: str) -> str:
    """A kernel of clusters of four blocks; ``%rank``, ``%next`` (the rank after it) are there."""
    return kernel(
        "%rank = cute_nvgpu.arch.cluster_rank() : () -> i32\n%size = cute_nvgpu.arch.cluster_size() : () -> i32\n"
        "%one = arith.constant 1 : i32\n%zero = arith.constant 0 : i32\n%up = arith.addi %rank, %one : i32\n"
        "%next = arith.remui %up, %size : i32\n%block = nvvm.read.ptx.sreg.ctaid.x : i32\n"
        "%n = arith.constant 32 : i32\n%at = arith.muli %block, %n : i32\n%i = arith.addi %at, %tid : i32\n"
        '%oc = cute.make_coord(%i) : (i32) -> !cute.coord<"?">\n' + body,
        '%o: !cute.memref<i32, gmem, "?:1">',
        attributes=", known_cluster_size = array<i32: 4, 1, 1>",
    )


SYNC = "cute_nvgpu.arch.cluster_arrive() : () -> ()\ncute_nvgpu.arch.cluster_wait() : () -> ()\n"


def test_blocks_of_a_cluster_read_and_write_each_others_memory() -> None:
    s = SMEM.format(n=32)
    far = s.replace("smem", "dsmem")
    body = (
        f"%s = cute.memref.alloc_smem() : {s}\n%p = cute.get_iter(%s) : {s}\n"
        "%q = cute_nvgpu.arch.map_cluster(%p, %next) : (!cute.ptr<i32, smem>, i32) -> !cute.ptr<i32, dsmem>\n"
        '%ly = cute.static : !cute.layout<"32:1">\n'
        f"%d = cute.make_view(%q, %ly) : {far}\n"
        f'cute.memref.store(%d, %c, %i) : ({far}, !cute.coord<"?">, i32) -> ()\n'
        + SYNC
        + f'%r = cute.memref.load(%d, %c) : ({far}, !cute.coord<"?">) -> i32\n'
        + f'%m = cute.memref.load(%s, %c) : ({s}, !cute.coord<"?">) -> i32\n'
        "%h = arith.constant 1000 : i32\n%x = arith.muli %r, %h : i32\n%y = arith.addi %x, %m : i32\n"
        + SYNC
        + 'cute.memref.store(%o, %oc, %y) : (!cute.memref<i32, gmem, "?:1">, !cute.coord<"?">, i32) -> ()'
    )
    o = out(8 * 32)
    run(cluster_kernel(body), o, grid=8)
    block, lane = np.divmod(np.arange(8 * 32), 32)
    before = (block & ~3) + (block - 1) % 4
    assert o.tolist() == ((block * 32 + lane) * 1000 + before * 32 + lane).tolist()


def test_remote_arrivals_complete_a_phase() -> None:
    """Each block waits for the arrivals of the elected thread of the one before; a false predicate does not arrive."""
    body = (
        f"%bars = cute.memref.alloc_smem() : {BAR}\n%b = cute.get_iter(%bars) : {BAR}\n"
        "%first = arith.cmpi eq, %tid, %zero : i32\nscf.if %first {\n"
        "  cute_nvgpu.arch.mbarrier_init(%b, %n) : (!cute.ptr<i64, smem>, i32) -> ()\n"
        "  cute_nvgpu.arch.fence_mbarrier_init() : () -> ()\n}\n"
        "cute_nvgpu.arch.cluster_arrive() {relaxed} : () -> ()\ncute_nvgpu.arch.cluster_wait() : () -> ()\n"
        "%half = arith.constant 16 : i32\n%low = arith.cmpi ult, %tid, %half : i32\n"
        "cute_nvgpu.arch.mbarrier_arrive_cluster(%b, %next, %low) : (!cute.ptr<i64, smem>, i32, i1) -> ()\n"
        "scf.if %low {\n"
        "  cute_nvgpu.arch.mbarrier_arrive_cluster(%b, %next) : (!cute.ptr<i64, smem>, i32) -> ()\n}\n"
        "cute_nvgpu.arch.mbarrier_wait(%b, %zero) : (!cute.ptr<i64, smem>, i32) -> ()\n" + SYNC
        + 'cute.memref.store(%o, %oc, %rank) : (!cute.memref<i32, gmem, "?:1">, !cute.coord<"?">, i32) -> ()'
    )  # fmt: skip
    o = out(4 * 32)
    run(cluster_kernel(body), o, grid=4)
    assert o.tolist() == np.repeat(np.arange(4), 32).tolist()


def test_flags_and_fences_of_a_thread_alone() -> None:
    body = (
        '%p = cute.get_iter(%o) : !cute.memref<i32, gmem, "?:1">\n%k = arith.constant 5 : i32\n'
        "cute_nvgpu.arch.store_release(%p, %k) : (!cute.ptr<i32, gmem>, i32) -> ()\n"
        'cute_nvgpu.arch.fence_acq_rel() {scope = "sys"} : () -> ()\n'
        'cute_nvgpu.arch.fence_proxy_async() {space = "all"} : () -> ()\n'
        "cute_nvgpu.arch.griddepcontrol_wait() : () -> ()\n"
        "cute_nvgpu.arch.griddepcontrol_launch_dependents() : () -> ()\n"
        "cute_nvgpu.arch.cp_async_commit_group() : () -> ()\n"
        "cute_nvgpu.arch.cp_async_wait_group() {n = 0 : i32} : () -> ()\n"
        "cute_nvgpu.arch.bulk_commit_group() : () -> ()\n"
        "cute_nvgpu.arch.bulk_wait_group() {n = 0 : i32} : () -> ()\n"
        "%v = cute_nvgpu.arch.load_acquire(%p) : (!cute.ptr<i32, gmem>) -> i32\n"
        "%w = arith.addi %v, %v : i32\n"
        "cute_nvgpu.arch.store_release(%p, %w) : (!cute.ptr<i32, gmem>, i32) -> ()"
    )
    o = out(32)
    run(kernel(body, '%o: !cute.memref<i32, gmem, "?:1">'), o)
    assert o.tolist() == [10] + [77] * 31
