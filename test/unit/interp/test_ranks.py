"""Streams of several ranks: order of their launches, barriers, reports, resident blocks and unsupported options."""

from __future__ import annotations

import numpy as np
import pytest

import cute_dialect.lang as cute
from cute_dialect.interp import InterpError, RunOptions
from cute_dialect.interp.exec.ranks import World
from cute_dialect.runtime.call_options import SCHEDULES


@cute.kernel
def copy_kernel(x: cute.Symmetric, out: cute.Tensor, writes: cute.Constexpr[bool], reads: cute.Constexpr[bool]):
    """Write this rank's x, or read that of the next rank."""
    t = cute.arch.thread_idx().x
    if writes:
        x.local[t] = x.rank + 1
    if reads:
        out[t] = x.peer((x.rank + 1) % x.ranks)[t]


@cute.jit
def copy(x: cute.Symmetric, out: cute.Tensor, writes: cute.Constexpr[bool], reads: cute.Constexpr[bool]):
    copy_kernel(x, out, writes, reads).launch(grid=1, block=32)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_only_a_barrier_orders_calls_of_two_ranks(schedule: str) -> None:
    for barrier in (True, False):
        out = np.zeros((2, 32), np.int32)
        with cute.testing.ranks(2, schedule=schedule) as world:
            x = world.symmetric(32, cute.Int32, name="x", unwritten=True)
            world.run(lambda rank, x=x, out=out: copy(x.on(rank), out[rank], True, False))
            if barrier:
                world.barrier()
                reports = world.run(lambda rank, x=x, out=out: copy(x.on(rank), out[rank], False, True))
                assert (out == [[2], [1]]).all()
                assert [(r.launches, r.blocks, r.loads, r.stores) for r in reports] == [(1, 1, 64, 32)] * 2
                assert reports[0].lane_ops == reports[1].lane_ops > 0
                continue
            with pytest.raises(InterpError, match=r"read-after-write race on 'x' of rank .*on rank") as e:
                world.run(lambda rank, x=x, out=out: copy(x.on(rank), out[rank], False, True))
            assert e.value.rank is not None and f"of rank {e.value.rank}" in str(e.value)


@cute.kernel
def add_kernel(a: cute.Tensor, b: cute.Tensor):
    t = cute.arch.thread_idx().x
    b[31 - t] = a[t] + 1


@cute.jit
def add(a: cute.Tensor, b: cute.Tensor):
    add_kernel(a, b).launch(grid=1, block=32)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_calls_of_one_rank_are_ordered(schedule: str) -> None:
    """Each call reads what another thread wrote in the call before, and overwrites what it read."""
    arrays = np.zeros((3, 2, 32), np.int32)

    def calls(rank: int) -> None:
        for i in range(4 + rank):
            add(arrays[rank, i % 2], arrays[rank, 1 - i % 2])

    with cute.testing.ranks(3, schedule=schedule) as world:
        reports = world.run(calls)
    assert [r.launches for r in reports] == [4, 5, 6]
    assert [int(arrays[r].max()) for r in range(3)] == [4, 5, 6]


def test_a_call_after_the_world_runs_at_once() -> None:
    a, b = np.zeros(32, np.int32), np.zeros(32, np.int32)
    with cute.testing.ranks(1) as world:
        assert world.run(lambda rank: None)[0].blocks == 0
    add(a, b, device="cpu")
    assert (b == 1).all()


def test_lines_that_kernels_print(capsys: pytest.CaptureFixture[str]) -> None:
    @cute.kernel
    def kernel(s: cute.Signals, waits: cute.Int32):
        if cute.arch.thread_idx().x == 0:
            cute.printf("hello {}", s.words.rank)
            s.wait(0, 0, waits)

    @cute.jit
    def run(s: cute.Signals, waits: cute.Int32):
        kernel(s, waits).launch(grid=1, block=32)

    with cute.testing.ranks(2) as world:
        s = world.signals()
        world.run(lambda rank: run(s.on(rank), 0))
        assert capsys.readouterr().out == "rank 0: hello 0\nrank 1: hello 1\n"
        with pytest.raises(InterpError, match="deadlock"):
            world.run(lambda rank: run(s.on(rank), rank))
        assert capsys.readouterr().out == "rank 0: hello 0\nrank 1: hello 1\n"
        with pytest.raises(InterpError, match="a kernel of these ranks has failed; make new ranks"):
            world.run(lambda rank: None)


def test_an_error_of_the_host_discards_the_queues() -> None:
    a, b = np.zeros((2, 32), np.int32), np.zeros((2, 32), np.int32)

    def calls(rank: int) -> None:
        add(a[rank], b[rank])
        assert rank == 0

    with cute.testing.ranks(2) as world:
        with pytest.raises(AssertionError):
            world.run(calls)
        assert [r.launches for r in world.run(lambda rank: None)] == [0, 0]
    assert not b.any()


def test_wrong_arguments_are_refused() -> None:
    for count in (0, 1.5, "2"):
        with pytest.raises(cute.CuteError, match="count must be an integer of at least 1"), cute.testing.ranks(count):
            pass
    with cute.testing.ranks(2) as world, cute.testing.ranks(2) as other:
        x = world.symmetric(4, "f4")
        for shape in (-1, 2.5, (2, None)):
            with pytest.raises(cute.CuteError, match="shape must consist of integers of at least 0"):
                world.symmetric(shape, "f4")
        for dtype in ("foo", None, 7):
            with pytest.raises(cute.CuteError, match="dtype must be a type such as"):
                world.symmetric(4, dtype)
        with pytest.raises(cute.CuteError, match="slots must be an integer of at least 1"):
            world.signals(1.5)
        for rank in (-1, 2):
            with pytest.raises(cute.CuteError, match=f"there is no rank {rank}; the tensor has 2 ranks"):
                x.on(rank)
        with pytest.raises(cute.CuteError, match="on: got rank 1 in the call of rank 0; pass the number"):
            world.run(lambda rank: x.on(1 - rank))
        with pytest.raises(cute.CuteError, match="the tensor belongs to another world; allocate it"):
            other.run(x.on)
        with pytest.raises(cute.CuteError, match="barrier: no launch has ended"):
            world.run(lambda rank: world.barrier())
        with pytest.raises(cute.CuteError, match="run: called in the function of another run"):
            world.run(lambda rank: other.run(other.barrier))
        world.barrier()
        assert len(world.run(x.on)) == 2


def test_unsupported_options() -> None:
    for options in ({"blocks": "0"}, {"reports": ("banks",)}, {"schedule": "replay:0"}):
        with pytest.raises(InterpError, match="ranks support neither"):
            World(2, RunOptions(**options))  # type: ignore[arg-type]


@pytest.mark.slow
def test_signals_have_the_scope_of_the_system_in_ptx() -> None:
    @cute.kernel
    def kernel(s: cute.Signals):
        s.set(0, 0, 1)
        s.add(0, 0)
        s.wait(0, 0, 1, then="tma")

    @cute.jit
    def run(s: cute.Signals):
        kernel(s).launch(grid=1, block=32)

    with cute.testing.ranks(2) as world:
        ptx = cute.compile(run, world.signals().on(0)).ptx
    assert "st.release.sys.global.b64" in ptx and "ld.acquire.sys.global.b64" in ptx
    assert "fence.proxy.async.global" in ptx and "multimem" not in ptx
    assert "release.sys.global.add" in ptx


@cute.kernel
def neighbors_kernel(s: cute.Signals, out: cute.Symmetric, absent: cute.Int32):
    """Each rank signals the ranks at three distances, and waits for three others."""
    t, me, n = cute.arch.thread_idx().x, s.words.rank, s.words.ranks
    if t < 3:
        distance = 1
        if t == 1:
            distance = 7
        if t == 2:
            distance = n // 2
        out.peer((me + distance) % n)[t] = me
        if me != absent:
            s.set((me + distance) % n, t, 1)
        s.wait(t, (me + n - distance) % n, 1)


@cute.jit
def neighbors(s: cute.Signals, out: cute.Symmetric, absent: cute.Int32):
    neighbors_kernel(s, out, absent).launch(grid=1, block=32)


@pytest.mark.slow
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_many_ranks(schedule: str) -> None:
    count = 200
    with cute.testing.ranks(count, schedule=schedule) as world:
        s, out = world.signals(3), world.symmetric(3, cute.Int32)
        world.run(lambda rank: neighbors(s.on(rank), out.on(rank), -1))
        for rank in range(count):
            assert out[rank].tolist() == [(rank - d) % count for d in (1, 7, count // 2)]
    with cute.testing.ranks(count, schedule=schedule) as world:
        s, out = world.signals(3), world.symmetric(3, cute.Int32)
        with pytest.raises(InterpError, match="deadlock") as e:
            world.run(lambda rank: neighbors(s.on(rank), out.on(rank), 5))
        assert "rank 5" in str(e.value)


@cute.kernel
def dependent_kernel(a: cute.Tensor, b: cute.Tensor, x: cute.Symmetric, waits: cute.Constexpr[int]):
    """Copy a to b and to x. Wait for the preceding grids first (1), after the accesses of a and b (2), or never (0)."""
    t = cute.arch.thread_idx().x
    if waits == 1:
        cute.arch.griddepcontrol_wait()
    b[t] = a[31 - t]
    if waits == 2:
        cute.arch.griddepcontrol_wait()
    x.local[31 - t] = b[t]


@cute.jit
def dependent(a: cute.Tensor, b: cute.Tensor, x: cute.Symmetric, waits: cute.Constexpr[int]):
    dependent_kernel(a, b, x, waits).launch(grid=1, block=32, pdl=True)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_dependent_launches_are_ordered_by_their_wait(schedule: str) -> None:
    for waits in (1, 0, 2):
        a, b = np.arange(32, dtype=np.int32), np.zeros(32, np.int32)
        with cute.testing.ranks(1, schedule=schedule) as world:
            x = world.symmetric(32, cute.Int32)

            def calls(rank: int, a: np.ndarray = a, b: np.ndarray = b, x: object = x, waits: int = waits) -> None:
                dependent(a, b, x.on(rank), waits)  # type: ignore[attr-defined]
                dependent(b, a, x.on(rank), waits)  # type: ignore[attr-defined]

            if waits == 1:
                world.run(calls)
                assert (a == np.arange(32)).all() and (x[0] == a[::-1]).all()
                continue
            with pytest.raises(InterpError, match=r"before griddepcontrol.wait") as e:
                world.run(calls)
            assert e.value.kind == "race"


@pytest.mark.parametrize("shared", ["input", "output", "columns", "both", "instance"])
def test_ranks_share_only_arrays_that_none_writes(shared: str) -> None:
    """Two ranks may read one array, and write interleaved parts of another one, but no element of both."""
    a, b = np.ones((2, 32), np.float32), np.zeros((32, 2), np.float32)
    with cute.testing.ranks(2) as world:
        x = world.symmetric(32, cute.Float32, name="x")

        def calls(rank: int) -> None:
            if shared == "instance":  # of rank 0, as an ordinary argument
                add(a[rank], x[0])
            elif shared == "both":  # rank 1 reads what rank 0 writes
                add(a[rank], a[1 - rank])
            else:
                add(a[0 if shared == "input" else rank], b[:, 0 if shared == "output" else rank])

        if shared in ("input", "columns"):
            world.run(calls)
            assert (b == 2).all()
            return
        with pytest.raises(InterpError, match=r"but rank . (reads|writes) the same array") as e:
            world.run(calls)
        assert e.value.kind == "race"


@pytest.mark.slow
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_operations_run_on_ranks(schedule: str) -> None:
    """A chain of Hopper GEMMs of each rank: TMA, wgmma, mbarriers and dependent launches."""
    from cute_dialect import op

    rng = np.random.default_rng(0)
    a = rng.integers(-2, 3, (2, 136, 72)).astype(np.float16)
    b = rng.integers(-2, 3, (2, 72, 72)).astype(np.float16)
    out: dict[int, np.ndarray] = {}

    def calls(rank: int) -> None:
        out[rank] = op.mm(op.mm(a[rank], b[rank]), b[rank])

    with cute.testing.ranks(2, schedule=schedule) as world:
        reports = world.run(calls)
    want = a.astype(np.float32) @ b.astype(np.float32) @ b.astype(np.float32)
    assert all((out[r] == want[r]).all() for r in range(2)) and reports[0].launches == 2


@cute.kernel
def limited_kernel(s: cute.Signals, out: cute.Tensor, limit: cute.Int64):
    t = cute.arch.thread_idx().x
    if t < s.words.ranks:
        if s.words.rank == 0:
            s.set(t, 0, 5)
        out[t] = s.wait(0, t, 1, limit=limit)


@cute.jit
def limited(s: cute.Signals, out: cute.Tensor, limit: cute.Int64):
    limited_kernel(s, out, limit).launch(grid=1, block=32)


@pytest.mark.parametrize("schedule", ["round-robin", "adversarial"])
def test_a_wait_with_a_limit_ends(schedule: str) -> None:
    """Rank 1 sets no signal."""
    out = np.full((2, 2), -1, np.int64)
    with cute.testing.ranks(2, schedule=schedule) as world:
        s = world.signals()
        world.run(lambda rank: limited(s.on(rank), out[rank], 500))
        assert out.tolist() == [[5, 0], [5, 0]]
        with pytest.raises(InterpError, match="deadlock"):
            world.run(lambda rank: limited(s.on(rank), out[rank], 1 << 60))


def test_arrays_that_follow_each_other_in_memory() -> None:
    """Their sizes are no multiples of 16 bytes."""
    a, b = np.zeros((2, 33), np.int32), np.zeros((2, 33), np.int32)
    with cute.testing.ranks(2) as world:
        world.run(lambda rank: [add(a[i, :32], b[i, :32]) for i in ([0, 1] if rank else [])])
        x, y = np.zeros(67, np.int32), np.zeros(67, np.int32)
        world.run(lambda rank: [add(x[i : i + 33], y[i : i + 33]) for i in (0, 33)] if rank else None)
    assert b[:, :32].all() and not b[:, 32].any()
