"""One-shot all-reduce of several GPUs in one kernel, on the CPU: ``python all_reduce_one_shot.py --ranks 4``.

Each rank pushes its vector to all ranks, signals that it is there, waits for the signals of all ranks, and adds the
vectors in the order of the ranks, so all ranks get the same bits.  Each block does so for its own part of the vector.

The staging buffer has two halves, which calls use in turn, so no acknowledgement is needed.  Rank r writes a half again
in call e + 2, after it has seen the signals of call e + 1 of all ranks, which they set after call e has read the half.

All ranks run in this process on the interpreter, which checks every access for races between ranks.  ``--bug`` plants a
defect, and the interpreter reports it at its line::

    python all_reduce_one_shot.py --bug no-wait
    python all_reduce_one_shot.py --bug one-half --schedule random
"""

# RUN: %python %s --ranks 2 | FileCheck %s
# CHECK: 3 all-reduces of 2 ranks, 200 elements: right
# RUN: not %python %s --ranks 2 --calls 1 --bug no-wait 2>&1 | FileCheck %s --check-prefix BUG
# BUG: read-after-write race on 'staging' of rank 0

from __future__ import annotations

import argparse

import numpy as np

import cute_dialect.lang as cute

THREADS = 64
PER_BLOCK = 128
"""Elements per block."""
BUGS = ("no-signal", "no-wait", "wait-for-one", "signal-first", "no-barrier", "one-half", "wrong-slot", "stale-call")


@cute.kernel
def all_reduce_kernel(
    x: cute.Tensor,
    staging: cute.Symmetric,
    ready: cute.Signals,
    out: cute.Tensor,
    call: cute.Int32,
    bug: cute.Constexpr[str],
):
    """Sum `x` of all ranks into `out`. `staging` is (2, ranks, n); `call` is the number of the call, from 1 on."""
    block, thread = cute.arch.block_idx().x, cute.arch.thread_idx().x
    me, n = staging.rank, staging.ranks
    half = 0 if bug == "one-half" else call % 2
    first = block * PER_BLOCK
    last = cute.min(first + PER_BLOCK, cute.size(x))

    if bug == "signal-first" and thread < n:
        ready.set(thread, block, call)
    for distance in cute.range_constexpr(n):  # each rank starts with another one, so that no link is used by all
        there = staging.peer((me + distance) % n)
        for i in range(first + thread, last, THREADS):
            there[half, me, i] = x[i]
    cute.arch.sync_threads()

    if thread < n:  # thread r signals rank r and waits for rank r
        if bug not in ("no-signal", "signal-first"):
            ready.set(thread, block + 1 if bug == "wrong-slot" else block, call)
        if bug == "wait-for-one":
            if thread == (me + 1) % n:
                ready.wait(block, thread, call)
        elif bug != "no-wait":
            ready.wait(block, thread, call - 1 if bug == "stale-call" else call)
    if bug != "no-barrier":
        cute.arch.sync_threads()

    for i in range(first + thread, last, THREADS):
        total = cute.Float32(0.0)
        for r in cute.range_constexpr(n):
            total += cute.Float32(staging.local[half, r, i])
        out[i] = total.to(out.element_type)


@cute.jit
def all_reduce(
    x: cute.Tensor,
    staging: cute.Symmetric,
    ready: cute.Signals,
    out: cute.Tensor,
    call: cute.Int32,
    bug: cute.Constexpr[str] = "",
):
    blocks = cute.ceil_div(cute.size(x), PER_BLOCK)
    all_reduce_kernel(x, staging, ready, out, call, bug).launch(grid=blocks, block=THREADS)


def run(ranks: int, size: int, calls: int, schedule: str = "round-robin", seed: int = 0, bug: str = "") -> bool:
    """Run `calls` all-reduces, all queued at once, and return True if all results are right."""
    rng = np.random.default_rng(0)
    blocks = -(-size // PER_BLOCK)
    x = rng.integers(-8, 8, (calls, ranks, size)).astype(np.float32)
    out = np.full((calls, ranks, size), np.nan, np.float32)
    with cute.testing.ranks(ranks, schedule=schedule, seed=seed) as world:
        staging = world.symmetric((2, ranks, size), cute.Float32, name="staging", unwritten=True)
        ready = world.signals(blocks + 1, name="ready")

        def calls_of(rank: int) -> None:
            for e in range(calls):
                all_reduce(x[e, rank], staging.on(rank), ready.on(rank), out[e, rank], e + 1, bug)

        world.run(calls_of)
    return bool((out == x.sum(axis=1, keepdims=True)).all())


def main() -> None:
    parser = argparse.ArgumentParser(description="one-shot all-reduce of several ranks on the CPU interpreter")
    parser.add_argument("--ranks", type=int, default=3)
    parser.add_argument("--size", type=int, default=200, help="elements of the vector of each rank")
    parser.add_argument("--calls", type=int, default=3)
    parser.add_argument(
        "--schedule",
        choices=("round-robin", "reverse", "random", "adversarial"),
        default="round-robin",
        help="order of ranks and blocks",
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--bug", choices=BUGS, default="", help="plant a defect")
    args = parser.parse_args()
    if min(args.ranks, args.size, args.calls) < 1:
        parser.error("--ranks, --size and --calls must be at least 1")
    if args.seed < 0:
        parser.error("--seed must be at least 0")
    try:
        right = run(args.ranks, args.size, args.calls, args.schedule, args.seed, args.bug)
    except cute.InterpError as e:
        raise SystemExit(str(e)) from None
    what = f"{args.calls} all-reduces of {args.ranks} ranks, {args.size} elements"
    if not right:
        raise SystemExit(f"{what}: WRONG")
    print(f"{what}: right")


if __name__ == "__main__":
    main()
