"""A feed-forward block whose weights are divided over GPUs: ``python tensor_parallel_rows.py --ranks 4``.

Each rank has some columns of the first weight and the same rows of the second one.  Its two GEMMs give a partial sum of
the output.  ``op.distributed.all_reduce`` adds those of all ranks, the residual, and computes the RMSNorm of the next
block, in one kernel.

Without torchrun, all ranks run in this process on the interpreter, which checks every access for races between ranks.
Under torchrun, each rank is a process with a GPU, and runs the same function::

    export NCCL_NVLS_ENABLE=0 TORCH_SYMM_MEM_DISABLE_MULTICAST=1 NVSHMEM_DISABLE_NVLS=1      # no multicast
    torchrun --nproc-per-node 2 examples/tensor_parallel_rows.py
"""

# RUN: %python %s --ranks 2 | FileCheck %s
# CHECK: 2 ranks, 16 tokens of 64 features: right, equal on all ranks

from __future__ import annotations

import argparse
import os
from typing import NamedTuple

import torch

import cute_dialect.lang as cute
from cute_dialect import op

EPS = 1e-5
LIMIT = 1 << 26
"""Largest size on the interpreter, which takes about a minute."""
SCHEDULES = ("round-robin", "reverse", "random", "adversarial")


class Block(NamedTuple):
    """The input and the weights of the block, all of them or those of a rank."""

    x: torch.Tensor  # (tokens, features)
    up: torch.Tensor  # (features, hidden)
    down: torch.Tensor  # (hidden, features)
    norm: torch.Tensor  # (features)

    def of_rank(self, rank: int, ranks: int) -> Block:
        """Return the block of a rank: its columns of `up` and its rows of `down`."""
        up, down = self.up.chunk(ranks, 1)[rank], self.down.chunk(ranks, 0)[rank]
        return Block(self.x, up.contiguous(), down.contiguous(), self.norm)


def make_block(tokens: int, features: int, hidden: int) -> Block:
    """Return random data, equal on all ranks."""
    random = torch.Generator().manual_seed(0)
    shapes = (tokens, features), (features, hidden), (hidden, features), (features,)
    return Block(*[torch.randn(s, generator=random).bfloat16() / 4 for s in shapes])


def forward(mine: Block) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the norm of the output of the block with its residual, and the output, on this rank."""
    hidden = op.mm(mine.x, mine.up, activation="silu")
    return op.distributed.all_reduce(op.mm(hidden, mine.down), mine.x, mine.norm, EPS)


def reference(block: Block) -> tuple[torch.Tensor, torch.Tensor]:
    """Compute the block in float64."""
    x, up, down, norm = (t.double() for t in block)
    total = torch.nn.functional.silu(x @ up) @ down + x
    return torch.nn.functional.rms_norm(total, norm.shape, norm, EPS), total


def check(found: tuple[torch.Tensor, torch.Tensor], block: Block) -> None:
    """Raise AssertionError unless results are as in float64, with the error of bf16 sums."""
    for got, want in zip(found, reference(block)):
        torch.testing.assert_close(got.cpu().double(), want, rtol=0.03, atol=0.015 * float(want.abs().max()))


def on_gpus(block: Block) -> str:
    """Run this rank, a process of torchrun."""
    import torch.distributed as dist

    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    found = forward(Block(*[t.cuda() for t in block.of_rank(rank, ranks)]))
    torch.cuda.synchronize()
    op.distributed.check()
    check(found, block)
    first = found[0].clone()
    dist.broadcast(first, 0)
    assert torch.equal(first, found[0]), f"rank {rank} differs from rank 0"
    dist.barrier()
    dist.destroy_process_group()
    return "" if rank else f"{ranks} GPUs"


def on_this_machine(block: Block, ranks: int, schedule: str) -> str:
    """Run all ranks in this process."""
    found: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
    with cute.testing.ranks(ranks, schedule=schedule) as world:
        world.run(lambda rank: found.update({rank: forward(block.of_rank(rank, ranks))}))
    for rank in range(ranks):
        check(found[rank], block)
        assert torch.equal(found[rank][0], found[0][0]), f"rank {rank} differs from rank 0"
    return f"{ranks} ranks"


def main() -> None:
    parser = argparse.ArgumentParser(description="a tensor-parallel feed-forward block")
    parser.add_argument("--ranks", type=int, default=2, help="without torchrun")
    parser.add_argument("--tokens", type=int, default=16)
    parser.add_argument("--features", type=int, default=64)
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument(
        "--schedule", choices=SCHEDULES, default="round-robin", help="order of ranks and blocks on the interpreter"
    )
    args = parser.parse_args()
    is_torchrun = "LOCAL_RANK" in os.environ
    ranks = int(os.environ["WORLD_SIZE"]) if is_torchrun else args.ranks
    if not 1 <= args.ranks <= 32:
        parser.error("--ranks must be from 1 to 32")
    if args.tokens < 1:
        parser.error("--tokens must be at least 1")
    if not 1 <= args.features <= 16384:
        parser.error("--features must be from 1 to 16384, the longest row of the norm")
    if args.hidden < 1 or args.hidden % ranks:
        parser.error(f"--hidden must be a positive multiple of {ranks}, the number of ranks")
    if not is_torchrun and args.tokens * args.features * (args.hidden + ranks * ranks) > LIMIT:
        parser.error(
            f"--tokens x --features x (--hidden + --ranks x --ranks) must be at most {LIMIT:,} on the interpreter"
        )
    block = make_block(args.tokens, args.features, args.hidden)
    who = on_gpus(block) if is_torchrun else on_this_machine(block, args.ranks, args.schedule)
    if who:
        print(f"{who}, {args.tokens} tokens of {args.features} features: right, equal on all ranks")


if __name__ == "__main__":
    main()
