"""A feed-forward block of sequence and tensor parallelism: ``python tensor_parallel_mlp.py --ranks 4``.

Each rank has some rows of the input, some columns of the first weight and the same rows of the second one.  The first
GEMM gathers the rows of all ranks while it multiplies them, the second one adds the products of all ranks and returns
the rows of this one::

    hidden = op.silu(op.distributed.all_gather_matmul(x, up))
    y = op.distributed.matmul_reduce_scatter(hidden, down)

Without torchrun, all ranks run in this process on the interpreter, which checks every access for races between ranks.
Under torchrun, each rank is a process with a GPU, and runs the same function::

    export NCCL_NVLS_ENABLE=0 TORCH_SYMM_MEM_DISABLE_MULTICAST=1 NVSHMEM_DISABLE_NVLS=1      # no multicast
    torchrun --nproc-per-node 2 examples/tensor_parallel_mlp.py

With ``--one-gpu`` the ranks share a GPU of this process, each with a stream.
"""

# RUN: %python %s --ranks 2 | FileCheck %s
# CHECK: 2 ranks, 16 tokens of 64 features: right

from __future__ import annotations

import argparse
import os
from typing import NamedTuple

import torch

import cute_dialect.lang as cute
from cute_dialect import op

LIMIT = 1 << 24
"""Largest size on the interpreter, which takes about a minute."""
SCHEDULES = ("round-robin", "reverse", "random", "adversarial")


class Block(NamedTuple):
    """The input and the weights of the block, all of them or those of a rank."""

    x: torch.Tensor  # (tokens, features)
    up: torch.Tensor  # (features, hidden)
    down: torch.Tensor  # (hidden, features)

    def of_rank(self, rank: int, ranks: int) -> Block:
        """Return the rows of `x`, the columns of `up` and the rows of `down` of a rank."""
        parts = self.x.chunk(ranks)[rank], self.up.chunk(ranks, 1)[rank], self.down.chunk(ranks)[rank]
        return Block(*[t.contiguous() for t in parts])


def make_block(tokens: int, features: int, hidden: int) -> Block:
    """Return random data, equal on all ranks."""
    random = torch.Generator().manual_seed(0)
    shapes = (tokens, features), (features, hidden), (hidden, features)
    return Block(*[torch.randn(s, generator=random).bfloat16() / 4 for s in shapes])


def forward(mine: Block, group: object = None) -> torch.Tensor:
    """Return the rows of the output of this rank."""
    hidden = op.silu(op.distributed.all_gather_matmul(mine.x, mine.up, group=group))
    return op.distributed.matmul_reduce_scatter(hidden, mine.down, group=group)


def check(found: torch.Tensor, block: Block, rank: int, ranks: int) -> None:
    """Raise AssertionError unless the rows are as in float64, with the error of bf16 sums."""
    x, up, down = (t.double() for t in block)
    want = torch.nn.functional.silu(x @ up) @ down
    rows = want.chunk(ranks)[rank]
    torch.testing.assert_close(found.cpu().double(), rows, rtol=0.03, atol=0.015 * float(want.abs().max()))


def under_torchrun(block: Block) -> str:
    """Run this rank, a process of torchrun."""
    import torch.distributed as dist

    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    found = forward(Block(*[t.cuda() for t in block.of_rank(rank, ranks)]))
    torch.cuda.synchronize()
    op.distributed.check()
    check(found, block, rank, ranks)
    dist.barrier()
    dist.destroy_process_group()
    return "" if rank else f"{ranks} GPUs"


def on_one_gpu(block: Block, ranks: int) -> str:
    """Run all ranks on a GPU of this process."""
    group, streams = op.distributed.LocalGroup([0] * ranks), [torch.cuda.Stream() for _ in range(ranks)]
    parts = [Block(*[t.cuda() for t in block.of_rank(rank, ranks)]) for rank in range(ranks)]
    torch.cuda.synchronize()
    found: list[torch.Tensor] = []
    for rank, stream in enumerate(streams):
        with torch.cuda.stream(stream):
            found.append(forward(parts[rank], group[rank]))
    torch.cuda.synchronize()
    op.distributed.check(group)
    for rank in range(ranks):
        check(found[rank], block, rank, ranks)
    return f"{ranks} ranks of a GPU"


def on_this_machine(block: Block, ranks: int, schedule: str) -> str:
    """Run all ranks on the interpreter."""
    found: dict[int, torch.Tensor] = {}
    with cute.testing.ranks(ranks, schedule=schedule) as world:
        world.run(lambda rank: found.update({rank: forward(block.of_rank(rank, ranks))}))
    for rank in range(ranks):
        check(found[rank], block, rank, ranks)
    return f"{ranks} ranks"


def main() -> None:
    parser = argparse.ArgumentParser(description="a feed-forward block of sequence and tensor parallelism")
    parser.add_argument("--ranks", type=int, default=2, help="without torchrun")
    parser.add_argument("--tokens", type=int, default=16)
    parser.add_argument("--features", type=int, default=64)
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--one-gpu", action="store_true", help="run all ranks on a GPU of this process")
    parser.add_argument(
        "--schedule", choices=SCHEDULES, default="round-robin", help="order of ranks and blocks on the interpreter"
    )
    args = parser.parse_args()
    is_torchrun = "LOCAL_RANK" in os.environ
    ranks = int(os.environ["WORLD_SIZE"]) if is_torchrun else args.ranks
    if not 1 <= args.ranks <= 32:
        parser.error("--ranks must be from 1 to 32")
    if args.features < 1:
        parser.error("--features must be at least 1")
    for name, value in (("--tokens", args.tokens), ("--hidden", args.hidden)):
        if value < 1 or value % ranks:
            parser.error(f"{name} must be a positive multiple of {ranks}, the number of ranks")
    on_cpu = not is_torchrun and not args.one_gpu
    if on_cpu and args.tokens * args.features * args.hidden > LIMIT:
        parser.error(f"--tokens x --features x --hidden must be at most {LIMIT:,} on the interpreter")
    block = make_block(args.tokens, args.features, args.hidden)
    if is_torchrun:
        who = under_torchrun(block)
    else:
        who = on_one_gpu(block, ranks) if args.one_gpu else on_this_machine(block, ranks, args.schedule)
    if who:
        print(f"{who}, {args.tokens} tokens of {args.features} features: right")


if __name__ == "__main__":
    main()
