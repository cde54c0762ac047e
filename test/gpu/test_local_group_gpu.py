"""Ranks of one process that share a GPU: sums and GEMMs, missing ranks, and CUDA graphs.

Each rank has a stream.  Ranks make bursts of calls in random order and with random delays, so that they are as far
apart as the signals allow.  Elements are integers, so sums must be exact.
"""

# pyright: basic

from __future__ import annotations

import random
import time
from collections.abc import Callable
from math import prod
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="NOT RUN: torch is not installed")

from cute_dialect import op  # noqa: E402
from cute_dialect.op.select import all_reduce as choice  # noqa: E402
from cute_dialect.op.select import rank_gemm as rank_choice  # noqa: E402

CALLS, INPUTS = 500, 8
SIZES = (1, 1000, 4096, 70_001, 600_000)
"""One row, a ragged end, and several rows per block."""
DTYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}


@pytest.fixture(autouse=True)
def _limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUTE_DIST_TIMEOUT_MS", "3000")


class World:
    """Ranks of a GPU, with their streams."""

    def __init__(self, ranks: int, seed: int = 0) -> None:
        self.group = op.distributed.LocalGroup([0] * ranks)
        self.streams = [torch.cuda.Stream() for _ in range(ranks)]
        self.rng = random.Random(seed)
        for stream in self.streams:  # Later allocations of the stream take this memory.
            with torch.cuda.stream(stream):
                [torch.empty(n << 10, dtype=torch.uint8, device="cuda") for n in (256 << 10, *[512] * 16)]
                torch.cuda._sleep(1000)
        torch.cuda.synchronize()

    def burst(self, calls: int, call: Callable[[int, int], Any]) -> list[list[Any]]:
        """Return ``call(rank, i)`` for each i below ``calls`` and each rank."""
        ranks = len(self.streams)
        found: list[list[Any]] = [[None] * ranks for _ in range(calls)]
        for rank in self.rng.sample(range(ranks), ranks):
            with torch.cuda.stream(self.streams[rank]):
                for i in range(calls):
                    if self.rng.random() < 0.2:
                        torch.cuda._sleep(self.rng.randrange(200_000))
                    found[i][rank] = call(rank, i)
        torch.cuda.synchronize()
        op.distributed.check(self.group)
        return found


def integers(*shape: int, dtype: Any, leading: int = 0) -> Any:
    """Return small integers.

    The arrays of the first ``leading`` dimensions begin at multiples of 16 bytes. All ranks then have the same kernel,
    which the call of the first rank loads. CUDA may not load another one while a rank waits.
    """
    inner = shape[leading:]
    size = prod(inner)
    values = torch.randint(-4, 5, (*shape[:leading], -(-size // 8) * 8), device="cuda").to(dtype)
    return values[..., :size].unflatten(-1, inner)


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("two_shot", [False, True], ids=["one_shot", "two_shot"])
@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
def test_sums(dtype: Any, two_shot: bool, ranks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "ONE_SHOT_BYTES", {32: 0 if two_shot else 1 << 30})
    world = World(ranks)
    for size in SIZES:
        x = integers(INPUTS, ranks, size, dtype=dtype, leading=2)
        want = x.float().sum(1).to(dtype)
        torch.cuda.synchronize()
        done = 0
        while done < CALLS // len(SIZES):
            count = world.rng.randrange(1, INPUTS + 1)
            found = world.burst(count, lambda r, i, x=x: op.distributed.all_reduce(x[i, r], group=world.group[r]))
            for i in range(count):
                for rank in range(ranks):
                    differ = (found[i][rank] != want[i]).sum().item()
                    assert differ == 0, f"{size} elements, call {done + i}, rank {rank}: {differ} differ"
            done += count


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("two_shot", [False, True], ids=["one_shot", "two_shot"])
@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
def test_sums_with_a_residual_and_a_norm(
    dtype: Any, two_shot: bool, ranks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choice, "ONE_SHOT_BYTES", {32: 0 if two_shot else 1 << 30})
    world = World(ranks, 1)
    shapes = (1, 4096), (5, 333), (200, 8192)
    for rows, columns in shapes:
        x = integers(INPUTS, ranks, rows, columns, dtype=dtype, leading=2)
        residual = integers(rows, columns, dtype=dtype)
        weight = torch.randn(columns, device="cuda").to(dtype)
        want = (x.float().sum(1) + residual.float()).to(dtype)
        norm = torch.nn.functional.rms_norm(want.double(), (columns,), weight.double(), 1e-5)
        torch.cuda.synchronize()
        done = 0

        def call(rank: int, i: int, x: Any = x, residual: Any = residual, weight: Any = weight) -> Any:
            return op.distributed.all_reduce(x[i, rank], residual, weight, 1e-5, group=world.group[rank])

        while done < CALLS // len(shapes):
            count = world.rng.randrange(1, INPUTS + 1)
            for i, of_ranks in enumerate(world.burst(count, call)):
                for normed, total in of_ranks:
                    assert torch.equal(total, want[i])
                    assert torch.equal(normed, of_ranks[0].norm), "ranks differ"
                torch.testing.assert_close(
                    of_ranks[0].norm.double(), norm[i], rtol=2 * torch.finfo(dtype).eps, atol=1e-6
                )
            done += count


def test_addresses_that_are_not_aligned() -> None:
    """A rank whose array is not aligned has another kernel. Both are loaded by calls in which ranks have the same."""
    world = World(2)
    x = integers(2, 10_008, dtype=torch.bfloat16)
    for first in (0, 1):
        part = x[:, first : 10_000 + first]
        world.burst(1, lambda r, i, part=part: op.distributed.all_reduce(part[r], group=world.group[r]))
    for _ in range(20):
        (found,) = world.burst(1, lambda r, i: op.distributed.all_reduce(x[r, r : 10_000 + r], group=world.group[r]))
        assert all(torch.equal(y, x[0, :10_000] + x[1, 1:10_001]) for y in found)


def test_replays_of_a_graph_per_rank() -> None:
    world = World(2)
    x = integers(2, 50_000, dtype=torch.bfloat16)

    def call(rank: int, _: int) -> Any:
        return op.distributed.all_reduce(x[rank], group=world.group[rank])

    world.burst(1, call)
    graphs, found = [torch.cuda.CUDAGraph() for _ in range(2)], []
    for rank, graph in enumerate(graphs):
        with torch.cuda.graph(graph, stream=world.streams[rank]):
            found.append(call(rank, 0))
    for i in range(100):
        x.copy_(integers(2, 50_000, dtype=torch.bfloat16))
        torch.cuda.synchronize()
        for rank in world.rng.sample(range(2), 2):
            with torch.cuda.stream(world.streams[rank]):
                graphs[rank].replay()
        torch.cuda.synchronize()
        op.distributed.check(world.group)
        assert torch.equal(found[0], x[0] + x[1]) and torch.equal(found[1], found[0]), f"replay {i}"
        if i % 7 == 0:
            world.burst(2, call)


PRODUCTS = {"gather": "all_gather_matmul", "scatter": "matmul_reduce_scatter", "sum": "matmul_all_reduce"}
SHAPES = (64, 512, 128), (300, 1000, 520), (129, 77, 45), (1024, 2048, 1024)
"""Rows of a rank's shard, K, and columns."""


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("kind", [*PRODUCTS, "sum-two_shot"])
@pytest.mark.parametrize("name", ["f16", "bf16"])
def test_gemms(name: str, kind: str, ranks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums of integers are exact before they are rounded, so all ranks and repetitions must give these bits."""
    if kind == "sum-two_shot":
        monkeypatch.setattr(rank_choice, "ONE_SHOT_BYTES", {32: 0})
    function, dtype, world = getattr(op.distributed, PRODUCTS[kind.split("-")[0]]), DTYPES[name], World(ranks, 2)
    for rows, k, columns in SHAPES:
        m = rows if kind == "gather" else rows * ranks
        a = integers(2, ranks, m, k, dtype=dtype, leading=2)
        b = integers(ranks, k, columns, dtype=dtype, leading=1)
        if kind == "gather":
            want = (a.double().flatten(1, 2)[:, None] @ b.double()[None]).to(dtype)
        else:
            total = (a.double() @ b.double()[None]).to(dtype).float().cumsum(1)[:, -1].to(dtype)
            parts = total.unflatten(1, (ranks, rows))
            want = parts if kind == "scatter" else total[:, None].expand(-1, ranks, -1, -1)
        torch.cuda.synchronize()
        world.burst(1, lambda r, i, a=a, b=b: function(a[0, r], b[r], group=world.group[r]))
        done = 0
        while done < CALLS // len(SHAPES):
            count = world.rng.randrange(1, INPUTS + 1)
            found = world.burst(count, lambda r, i, a=a, b=b: function(a[i % 2, r], b[r], group=world.group[r]))
            for i in range(count):
                for rank in range(ranks):
                    differ = (found[i][rank] != want[i % 2, rank]).sum().item()
                    assert differ == 0, f"{rows} x {k} x {columns}, call {done + i}, rank {rank}: {differ} differ"
            done += count


def test_gathered_operands() -> None:
    world = World(2, 3)
    for k in (512, 77):
        a, b = (integers(2, rows, k, dtype=torch.bfloat16, leading=1) for rows in (200, 96))

        def call(rank: int, _: int, a: Any = a, b: Any = b) -> Any:
            return op.distributed.all_gather_matmul(a[rank], b[rank].T, return_a=True, group=world.group[rank])

        for of_ranks in world.burst(20, call):
            for rank, (product, gathered) in enumerate(of_ranks):
                assert torch.equal(gathered, a.flatten(0, 1))
                assert torch.equal(product, (a.flatten(0, 1).double() @ b[rank].T.double()).bfloat16())


def test_a_missing_rank_and_another_call_are_reported() -> None:
    world = World(2)
    x = integers(2, 4096, dtype=torch.float32)
    world.burst(1, lambda r, i: op.distributed.all_reduce(x[r], group=world.group[r]))
    start = time.monotonic()
    with torch.cuda.stream(world.streams[0]):
        op.distributed.all_reduce(x[0], group=world.group[0])
    with torch.cuda.stream(world.streams[1]), pytest.raises(op.DistributedError, match="call 2 of rank 1 is"):
        op.distributed.all_reduce(x[1, :100], group=world.group[1])
    torch.cuda.synchronize()
    assert time.monotonic() - start < 30
    with pytest.raises(op.DistributedError, match=r"rank 1 sent nothing within 3 s \(rank 0 did\)"):
        op.distributed.check(world.group)
    op.distributed.reset(world.group)
    (found,) = world.burst(1, lambda r, i: op.distributed.all_reduce(x[r], group=world.group[r]))
    assert all(torch.equal(y, x[0] + x[1]) for y in found)


def test_wrong_streams_and_devices() -> None:
    world = World(2)
    x = integers(2, 64, dtype=torch.float32)
    world.burst(1, lambda r, i: op.distributed.all_reduce(x[r], group=world.group[r]))
    with torch.cuda.stream(world.streams[0]), pytest.raises(op.OpError, match="ranks 0 and 1 share a stream of cuda:0"):
        op.distributed.all_reduce(x[1], group=world.group[1])
    op.distributed.reset(world.group)
    with pytest.raises(op.OpError, match=r"the device of rank 1 is cuda:99; this machine has"):
        op.distributed.LocalGroup([0, 99])
    with pytest.raises(op.OpError, match="x is in CPU memory, but the ranks of the group are GPUs"):
        op.distributed.all_reduce(x[0].cpu(), group=world.group[0], device="cpu")
