"""``op.distributed`` on the GPUs of one host, compared with NCCL: results, delays, CUDA graphs, and failed calls.

    export NCCL_NVLS_ENABLE=0 TORCH_SYMM_MEM_DISABLE_MULTICAST=1 NVSHMEM_DISABLE_NVLS=1      # no multicast
    torchrun --nproc-per-node 2 test/gpu_dist/run.py

``test_gpus.py`` starts it where two GPUs are visible. Elements are integers, so all results must be equal to those of
NCCL, bit by bit.
"""

from __future__ import annotations

import os
import random
import sys
import time

os.environ.setdefault("CUTE_DIST_TIMEOUT_MS", "2000")

import torch
import torch.distributed as dist

from cute_dialect import op
from cute_dialect.op.execute.rank_groups import MULTICAST_OFF

CALLS, REPLAYS = 300, 100
TYPES = (torch.float16, torch.bfloat16, torch.float32)


def integers(*shape: int, dtype: torch.dtype) -> torch.Tensor:
    """Return random integers, different on each rank."""
    return torch.randint(-4, 5, shape, device="cuda").to(dtype)


def summed(x: torch.Tensor) -> torch.Tensor:
    """Return NCCL's sum in f32, rounded once."""
    total = x.float()
    dist.all_reduce(total)
    return total.to(x.dtype)


def test_values() -> None:
    """Sizes of both algorithms, odd sizes, and addresses that are not aligned."""
    for dtype in TYPES:
        for size in (1, 7, 1000, 65536, 1_000_003, 4_194_304):
            x = integers(size + 1, dtype=dtype)[size % 2 :]
            found, want = op.distributed.all_reduce(x), summed(x)
            assert torch.equal(found, want), f"{dtype}, {size}: {(found != want).sum().item()} differ"


def test_norms() -> None:
    for dtype in TYPES:
        for rows, columns in ((1, 4096), (5, 333), (700, 8192)):
            x = integers(rows, columns, dtype=dtype)
            residual, weight = torch.ones_like(x), torch.full((columns,), 0.5, dtype=dtype, device="cuda")
            normed, total = op.distributed.all_reduce(x, residual, weight, 1e-5)
            want = (summed(x).float() + 1).to(dtype)
            assert torch.equal(total, want)
            exact = torch.nn.functional.rms_norm(want.double(), (columns,), weight.double(), 1e-5)
            torch.testing.assert_close(normed.double(), exact, rtol=2 * torch.finfo(dtype).eps, atol=1e-6)
            first = normed.clone()
            dist.broadcast(first, 0)
            assert torch.equal(first, normed), "ranks differ"


def test_gemms() -> None:
    """Integers, so products and sums are exact before they are rounded."""
    ranks, rank = dist.get_world_size(), dist.get_rank()
    for dtype in TYPES[:2]:
        for rows, k, columns in ((64, 512, 128), (300, 1000, 520), (129, 77, 45), (1024, 4096, 1024)):
            a, b = integers(rows, k, dtype=dtype), integers(k, columns, dtype=dtype)
            whole = torch.empty(ranks * rows, k, dtype=dtype, device="cuda")
            dist.all_gather_into_tensor(whole, a)
            part = integers(ranks * rows, k, dtype=dtype)
            total = summed((part.double() @ b.double()).to(dtype))
            for _ in range(20):
                product, gathered = op.distributed.all_gather_matmul(a, b, return_a=True)
                assert torch.equal(gathered, whole)
                assert torch.equal(product, (whole.double() @ b.double()).to(dtype))
                scattered = op.distributed.matmul_reduce_scatter(part, b)
                assert torch.equal(scattered, total[rank * rows : (rank + 1) * rows])
                assert torch.equal(op.distributed.matmul_all_reduce(part, b), total)


def test_delays() -> None:
    """Ranks are as far apart as the signals allow."""
    rng = random.Random(dist.get_rank())
    xs = [integers(rng_size, dtype=torch.bfloat16) for rng_size in (8, 4096, 300_000, 2_000_000)]
    wants = [summed(x) for x in xs]
    found: list[torch.Tensor] = []
    for i in range(CALLS):
        if rng.random() < 0.2:
            torch.cuda._sleep(rng.randrange(200_000))
        found.append(op.distributed.all_reduce(xs[i % len(xs)]))
        if len(found) == 20:
            start = i + 1 - len(found)
            assert all(torch.equal(y, wants[(start + j) % len(xs)]) for j, y in enumerate(found))
            found.clear()


def test_graphs() -> None:
    """A captured call is replayed, between other calls."""
    x = integers(10_000, dtype=torch.bfloat16)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        op.distributed.all_reduce(x)
        stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            y = op.distributed.all_reduce(x)
        for i in range(REPLAYS):
            x.copy_(integers(10_000, dtype=torch.bfloat16))
            want = summed(x)
            graph.replay()
            assert torch.equal(y, want), f"replay {i}"
            if i % 7 == 0:
                assert torch.equal(op.distributed.all_reduce(x), want)


def test_failures() -> None:
    """A missing rank and another call are reported on all ranks that wait, and the group can be used afterwards."""
    rank, x = dist.get_rank(), integers(4096, dtype=torch.float32)
    last = dist.get_world_size() - 1
    for other in (None, lambda: op.distributed.all_reduce(x[:1024])):
        call = other if rank == last else lambda: op.distributed.all_reduce(x)
        start = time.monotonic()
        if call is not None:
            call()
        torch.cuda.synchronize()
        assert time.monotonic() - start < 30
        if rank != last:
            what = f"rank {last} " + ("sent nothing within 2 s" if other is None else "made another call")
            try:
                op.distributed.check()
            except op.DistributedError as e:
                assert what in str(e), str(e)
            else:
                raise AssertionError(f"no error; expected: {what}")
        op.distributed.reset()
        assert torch.equal(op.distributed.all_reduce(x), summed(x))


def main() -> None:
    wrong = [f"{name}={value}" for name, value in MULTICAST_OFF.items() if os.environ.get(name) != value]
    if wrong:
        sys.exit(f"run.py: multicast must be off; export {' '.join(wrong)}")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    for test in (test_values, test_norms, test_gemms, test_delays, test_graphs, test_failures):
        test()
        torch.cuda.synchronize()
        dist.barrier()
        if dist.get_rank() == 0:
            print(f"{test.__name__}: passed on {dist.get_world_size()} GPUs", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
