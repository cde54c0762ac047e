"""The all-reduce of ``examples/all_reduce_one_shot.py`` on several GPUs of one host, compared with that of NCCL.

    export NCCL_NVLS_ENABLE=0 TORCH_SYMM_MEM_DISABLE_MULTICAST=1 NVSHMEM_DISABLE_NVLS=1      # no multicast
    torchrun --nproc-per-node 2 test/gpu/all_reduce_gpus.py

Memory of peers comes from ``torch.distributed._symmetric_memory``. Ranks are delayed at random, so that they are as far
apart as the signals allow. The values are integers, so the results must be equal.
"""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem

import cute_dialect.lang as cute
from cute_dialect.lang.ranks import WORDS

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
import all_reduce_one_shot as example

OFF = {"NCCL_NVLS_ENABLE": "0", "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1", "NVSHMEM_DISABLE_NVLS": "1"}
"""Variables that switch multicast off, and their values."""
CALLS = 300


def symmetric(shape: tuple[int, ...], dtype: torch.dtype) -> cute.Symmetric:
    """Allocate a symmetric tensor of zeros on all ranks."""
    tensor = symm_mem.empty(shape, dtype=dtype, device="cuda").zero_()
    handle = symm_mem.rendezvous(tensor, dist.group.WORLD)
    table = torch.tensor(handle.buffer_ptrs, dtype=torch.int64, device="cuda")
    return cute.Symmetric(tensor, table, handle.rank, handle.world_size)


def main() -> None:
    wrong = [f"{name}={value}" for name, value in OFF.items() if os.environ.get(name) != value]
    if wrong:
        sys.exit(f"all_reduce_gpus.py: multicast must be off; export {' '.join(wrong)}")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    rng = random.Random(rank)
    for size in (1, 127, 128, 1000, 65536):
        blocks = -(-size // example.PER_BLOCK)
        staging, words = symmetric((2, ranks, size), torch.float32), symmetric((blocks, ranks, WORDS), torch.int64)
        ready = cute.Signals(words)
        x = torch.randint(-8, 8, (CALLS, size), device="cuda").float()
        out = torch.full_like(x, torch.nan)
        torch.cuda.synchronize()
        dist.barrier()
        for e in range(CALLS):
            if rng.random() < 0.2:
                torch.cuda._sleep(rng.randrange(200_000))
            example.all_reduce(x[e], staging, ready, out[e], e + 1)
        torch.cuda.synchronize()
        want = x.clone()
        dist.all_reduce(want)
        assert torch.equal(out, want), f"rank {rank}, {size} elements: {(out != want).sum().item()} differ"
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        dist.barrier()
        begin.record()
        for e in range(CALLS):
            example.all_reduce(x[e], staging, ready, out[e], CALLS + e + 1)
        end.record()
        torch.cuda.synchronize()
        if rank == 0:
            time = 1000 * begin.elapsed_time(end) / CALLS
            print(f"{ranks} GPUs, {size} elements: equal to NCCL's, {time:.1f} us per call")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
