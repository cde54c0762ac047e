"""Random programs of cp.async groups, mbarriers and named barriers: the race detector compared with a definition.

    python test/oracle/async_fuzz.py --count 2000 --seed 1

Lane 0 of each of three warps stores, loads and copies (cp.async) words of shared memory. It signals another warp with
an mbarrier, a named barrier of two warps or the barrier of the block. Some waits are missing or leave one group more in
flight.

The definition is a graph. Edges follow program order, lead from an arrival to its wait and pass through barriers. An
edge also leads from the issue of a copy to the copy, and from the copy to a wait for its group. See PTX ISA 9.0:
9.7.9.25 "Asynchronous copy", mbarrier, barrier. Two accesses of a word race if one is a write and no path joins them.
The end of the block counts as a write that follows all threads.
"""

from __future__ import annotations

import argparse
import random
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from interp_support import DSMEM, kernel, run_kernel

from cute_dialect.interp import InterpError, Pointer

SCHEDULES = ("round-robin", "reverse", "random", "adversarial")
WARPS, WORDS, BARS = 3, 3, 64  # BARS is the byte offset of the first mbarrier.


class Event(NamedTuple):
    """A step of a warp.

    ``number`` is the index of the word, mbarrier or barrier, or the number of groups that may stay in flight. ``to`` is
    the warp that receives the signal.
    """

    what: str
    warp: int
    number: int = 0
    to: int = 0


def program(rng: random.Random) -> list[Event]:
    """Return a random program. Each part has accesses by one warp, a wait for its copies, and a signal to another."""
    out: list[Event] = []
    good = rng.choice([0.7, 0.9, 1.0])
    warp = rng.randrange(WARPS)
    for number in range(rng.randint(2, 5)):
        groups = 0
        for _ in range(rng.randint(1, 3)):
            what = rng.choice(["load", "store", "copy"])
            out.append(Event(what, warp, rng.randrange(WORDS)))
            if what == "copy":
                groups += 1
                if rng.random() < good:
                    out.append(Event("commit", warp))
        if groups and rng.random() < good:
            out.append(Event("wait group", warp, 0 if rng.random() < good else 1))
        to = rng.choice([w for w in range(WARPS) if w != warp])
        how = rng.choice(["mbarrier", "named", "block"])
        if how == "mbarrier":
            out.append(Event("arrive", warp, number))
            if rng.random() < good:
                out.append(Event("wait", to, number))
        elif rng.random() < good:
            out.append(Event(how, warp, number + 1, to))
        warp = to
    out.append(Event("load", warp, rng.randrange(WORDS)))
    return out


def racy(events: list[Event]) -> bool:
    """Return True if two accesses race by the definition."""
    before: list[set[int]] = []  # For each node, the nodes that have a path to it.
    last: dict[int, int] = {}
    accesses: list[tuple[int, int, bool]] = []  # (node, word, is a write)
    arrivals: dict[int, int] = {}
    open_: dict[int, list[int]] = {w: [] for w in range(WARPS)}
    groups: dict[int, list[list[int]]] = {w: [] for w in range(WARPS)}

    def node(*after: int) -> int:
        before.append({n for a in after for n in (a, *before[a])})
        return len(before) - 1

    def step(*warps: int, after: tuple[int, ...] = ()) -> int:
        made = node(*(last[w] for w in warps if w in last), *after)
        last.update(dict.fromkeys(warps, made))
        return made

    for e in events:
        if e.what in ("load", "store"):
            accesses.append((step(e.warp), e.number, e.what == "store"))
        elif e.what == "copy":
            open_[e.warp].append(node(step(e.warp)))
            accesses.append((open_[e.warp][-1], e.number, True))
        elif e.what == "commit":
            groups[e.warp].append(open_[e.warp])
            open_[e.warp] = []
        elif e.what == "wait group":
            done = groups[e.warp][: len(groups[e.warp]) - e.number]
            step(e.warp, after=tuple(n for group in done for n in group))
        elif e.what == "arrive":
            arrivals[e.number] = step(e.warp)
        elif e.what == "wait":
            step(e.warp, after=(arrivals[e.number],))
        else:
            step(*((e.warp, e.to) if e.what == "named" else range(WARPS)))
    end = step(*range(WARPS))
    accesses += [(end, word, True) for word in range(WORDS)]
    return any(
        word == other and (writes or also) and i not in before[j] and j not in before[i]
        for at, (i, word, writes) in enumerate(accesses)
        for j, other, also in accesses[at + 1 :]
    )


def text(events: list[Event]) -> str:
    """Return the text of the kernel."""
    lines = [f"%c{n} = arith.constant {n} : i32" for n in (*range(8), 31, 32, 64)]
    lines += [
        "%tk = arith.constant 1000 : i32",
        "%d = llvm.mlir.addressof @dsmem : !llvm.ptr<3>",
        "%warp = arith.divui %tid, %c32 : i32",
        "%lane = arith.andi %tid, %c31 : i32",
        "%lead = arith.cmpi eq, %lane, %c0 : i32",
        "%zero = arith.cmpi eq, %tid, %c0 : i32",
    ]
    for w in range(WARPS):
        lines.append(f"%in{w} = arith.cmpi eq, %warp, %c{w} : i32")
        lines.append(f"%is{w} = arith.andi %in{w}, %lead : i1")
    for n in range(WORDS):
        lines.append(f"%p{n} = llvm.getelementptr %d[{4 * n}] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8")
    for n in range(5):
        lines.append(f"%b{n} = llvm.getelementptr %d[{BARS + 8 * n}] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8")
    lines.append("scf.if %zero {")
    lines += [f"nvvm.mbarrier.init %b{n}, %c1 : !llvm.ptr<3>, i32" for n in range(5)]
    lines.append("}\nnvvm.barrier0")
    for at, e in enumerate(events):
        alone = {
            "load": f"%v{at} = llvm.load %p{e.number} : !llvm.ptr<3> -> i32\n"
            f"llvm.store %v{at}, %q{at} : i32, !llvm.ptr<1>",
            "store": f"llvm.store %c1, %p{e.number} : i32, !llvm.ptr<3>",
            "copy": f"nvvm.cp.async.shared.global %p{e.number}, %a, 4, cache = ca : !llvm.ptr<3>, !llvm.ptr<1>",
            "commit": "nvvm.cp.async.commit.group",
            "wait group": f"nvvm.cp.async.wait.group {e.number}",
            "arrive": f"%s{at} = nvvm.mbarrier.arrive %b{e.number} : !llvm.ptr<3> -> i64",
            "wait": f"nvvm.mbarrier.try_wait.parity %b{e.number}, %c0, %tk : !llvm.ptr<3>, i32, i32",
        }.get(e.what)
        if e.what == "load":
            lines.append(f"%q{at} = llvm.getelementptr %out[{at}] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32")
        if alone is not None:
            lines.append(f"scf.if %is{e.warp} {{\n{alone}\n}}")
        elif e.what == "named":
            lines.append(f"%m{at} = arith.ori %in{e.warp}, %in{e.to} : i1")
            lines.append(f"scf.if %m{at} {{\nnvvm.barrier id = %c{e.number} number_of_threads = %c64\n}}")
        else:
            lines.append("nvvm.barrier0")
    return "\n".join([*lines, "llvm.return"])


def found(events: list[Event], schedule: str) -> InterpError | None:
    """Return the interpreter's report, or None."""
    module = kernel(text(events), "%a: !llvm.ptr<1>, %out: !llvm.ptr<1>", DSMEM)
    args = [Pointer(np.ones(1, np.int32)), Pointer(np.zeros(64, np.int32))]
    try:
        run_kernel(module, "k", args, grid=1, block=32 * WARPS, dynamic_smem=128, schedule=schedule, checks=["race"])
    except InterpError as e:
        if e.kind != "race":
            raise
        return e
    return None


def check(seed: int) -> bool:
    """Return True if the program has a race. Raises AssertionError if the detector and the definition disagree."""
    events, schedule = program(random.Random(seed)), SCHEDULES[seed % len(SCHEDULES)]
    want, got = racy(events), found(events, schedule)
    assert want == (got is not None), (
        f"seed {seed}, {schedule}: expected {'a' if want else 'no'} race, got {got}\n" + "\n".join(map(str, events))
    )
    return want


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    some = sum(check(seed) for seed in range(options.seed, options.seed + options.count))
    print(f"{options.count} programs, {some} with a race: the race detector agrees with the definition")


if __name__ == "__main__":
    main()
