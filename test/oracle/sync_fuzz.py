"""Random synchronization programs: the race detector compared with a definition that examines all pairs of accesses.

    python test/oracle/sync_fuzz.py --count 2000 --seed 1

Six threads access a few bytes of global and shared memory: in each of two blocks, lanes 0 and 1 of one warp and lane 0
of another. The blocks are of one cluster, of two, or of two ranks. Accesses are weak, strong with a scope, copies of
the asynchronous proxy, or invariant loads. Threads signal each other through flags, stored and polled with every order,
scope and width, with fences before and after. They also meet at barriers of the block or the warp. A flag is written
once and polled until it is set, so the ordering does not depend on the schedule.

The definition is a graph with edges for program order, barriers and copies. An edge also joins each release and acquire
pattern whose scopes include both threads (PTX ISA 9.0, 8.7 to 8.9). A race is a conflicting pair that is not morally
strong and that no path joins. If the proxies differ, the path must contain the required proxy fence.
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

from cute_dialect.interp import InterpError, Pointer, RunOptions
from cute_dialect.interp.exec.ranks import World
from cute_dialect.runtime.host_program import LaunchShape

SCOPES = ("cta", "cluster", "gpu", "sys")
RANKS = 0
"""In place of the number of blocks per cluster: each block is the grid of a rank."""
ACTORS = [(b, w, lane) for b in (0, 1) for w, lane in ((0, 0), (0, 1), (1, 0))]
FLAGS = 64  # byte offset of the first flag, after the cells
SPACES = {"": {"shared", "global"}, ".global": {"global"}, ".shared::cta": {"shared"}, ".shared::cluster": {"shared"}}


class Event(NamedTuple):
    """One step of one thread, or of all threads at a barrier. The fields after `what` are its modifiers."""

    what: str
    actor: int
    order: str = "weak"
    scope: str = "gpu"
    at: int = 0
    size: int = 4
    shared: bool = False


class Access(NamedTuple):
    """A node of the graph that accesses memory."""

    node: int
    actor: int
    space: str
    at: int
    size: int
    store: bool
    strong: bool
    scope: str = "gpu"
    copy: bool = False
    constant: bool = False


def program(rng: random.Random) -> tuple[list[Event], int]:
    """Return a random program and the number of blocks per cluster, or RANKS."""
    cluster = rng.choice([1, 2, RANKS])
    wide = "sys" if cluster == RANKS else "gpu"
    out: list[Event] = []
    good = rng.choice([0.6, 0.9, 1.0])

    def pick(right: str, *others: str) -> str:
        return right if rng.random() < good else rng.choice(others)

    def access(actor: int) -> None:
        shared = rng.random() < 0.3
        size = rng.choice([4, 4, 4, 8])
        at = rng.choice([0, 0, 8] if size == 8 else [0, 0, 4, 8])
        kind = rng.choice(["load", "store", "load", "store", "add", "strong load", "strong store", "constant", "copy"])
        if kind in ("constant", "copy") and rng.random() < 0.5:
            kind = "load"
        if kind == "copy":
            if rng.random() < good:
                out.append(Event("proxy", actor, rng.choice([*SPACES]) if rng.random() > good else ""))
            out.append(Event("copy", actor))
            if rng.random() < good:
                out.append(Event("wait", actor, rng.choice(["", "", ".read"])))
            return
        scope = pick(wide, *SCOPES)
        out.append(Event(kind, actor, "weak", scope, at, size, shared and kind != "constant"))

    actor = rng.randrange(len(ACTORS))
    flag = 0
    for _ in range(rng.randint(2, 5)):
        for _ in range(rng.randint(1, 2)):
            access(actor)
        how = rng.random()
        if how < 0.2:
            out.append(Event("barrier", ACTORS[actor][0]))
            actor = rng.choice([i for i, a in enumerate(ACTORS) if a[0] == ACTORS[actor][0]])
        elif how < 0.35:
            out.append(Event("warp barrier", actor - actor % 3))
            actor = actor - actor % 3 + rng.randrange(2)
        elif how < 0.95:
            to = rng.randrange(len(ACTORS))
            at, flag = FLAGS + 8 * flag, flag + 1
            released, acquired = rng.random() < 0.5, rng.random() < 0.5
            if released and rng.random() < good:
                out.append(Event("fence", actor, pick("acq_rel", "sc", "release", "acquire"), pick(wide, *SCOPES)))
            write = "relaxed" if released else pick("release", "relaxed", "weak")
            out.append(Event(rng.choice(["set", "set", "raise"]), actor, write, pick(wide, *SCOPES), at))
            poll = "relaxed" if acquired else pick("acquire", "relaxed")
            size = 8 if rng.random() > good else 4
            out.append(Event("poll", to, poll, pick(wide, *SCOPES), at, size))
            if acquired and rng.random() < good:
                out.append(Event("fence", to, pick("acq_rel", "sc", "acquire", "release"), pick(wide, *SCOPES)))
            actor = to
    access(actor)
    return out, cluster


def races(events: list[Event], cluster: int) -> list[tuple[Access, Access]]:
    """Return all pairs of accesses that race by the definition."""
    edges: dict[int, set[int]] = {}
    last: dict[int, int] = {}
    accesses: list[Access] = []
    proxied: list[tuple[int, set[str], int]] = []  # (node, spaces, block)
    copies: dict[int, list[tuple[int, int]]] = {}
    flags: dict[int, tuple[Event, int]] = {}
    polls: list[tuple[Event, int]] = []
    ordering: list[tuple[Event, int]] = []
    count = 0

    def node(*actors: int) -> int:
        nonlocal count
        count += 1
        edges[count] = set()
        for a in actors:
            if a in last:
                edges[last[a]].add(count)
            last[a] = count
        return count

    def inner(after: int) -> int:
        nonlocal count
        count += 1
        edges[count] = set()
        edges[after].add(count)
        return count

    for e in events:
        if e.what == "barrier":
            node(*(i for i, a in enumerate(ACTORS) if a[0] == e.actor))
            continue
        if e.what == "warp barrier":
            node(e.actor, e.actor + 1)
            continue
        n = node(e.actor)
        block = ACTORS[e.actor][0]
        space = f"shared {block}" if e.shared else "global"
        if e.what == "proxy":
            proxied.append((n, SPACES[e.order], block))
        elif e.what == "fence":
            ordering.append((e, n))
        elif e.what == "copy":
            read, write = inner(n), inner(n)
            accesses.append(Access(read, e.actor, f"shared {block}", 0, 16, False, False, copy=True))
            accesses.append(Access(write, e.actor, "global", 0, 16, True, False, copy=True))
            copies.setdefault(e.actor, []).append((read, write))
        elif e.what == "wait":
            for read, write in copies.get(e.actor, []):
                edges[read].add(n)
                if not e.order:
                    edges[write].add(n)
        else:
            strong = e.order != "weak" or e.what in ("add", "raise", "strong load", "strong store")
            store = e.what in ("store", "add", "strong store", "set", "raise")
            size = 4 if e.what in ("set", "raise") else e.size
            constant = e.what == "constant"
            accesses.append(Access(n, e.actor, space, e.at, size, store, strong, e.scope, constant=constant))
            if e.what in ("set", "raise"):
                flags[e.at] = (e, n)
                if e.order == "release":
                    ordering.append((e, n))
            if e.what == "poll":
                polls.append((e, n))
                if e.order == "acquire":
                    ordering.append((e, n))

    def needs(a: int, b: int) -> int:
        return 0 if ACTORS[a][0] == ACTORS[b][0] else {2: 1, 1: 2, RANKS: 3}[cluster]

    def hold(*scopes: str, a: int, b: int) -> bool:
        return all(SCOPES.index(s) >= needs(a, b) for s in scopes)

    for poll, r in polls:
        write, s = flags[poll.at]
        if (write.order == "weak" and write.what == "set") or poll.size != 4:
            continue
        if not hold(write.scope, poll.scope, a=write.actor, b=poll.actor):
            continue
        for e, n in ordering:
            first = e.actor == write.actor and e.order in ("release", "acq_rel", "sc") and n <= s
            if not first or (e.what != "fence" and n != s):
                continue
            for f, m in ordering:
                second = f.actor == poll.actor and f.order in ("acquire", "acq_rel", "sc") and m >= r
                if second and (f.what == "fence" or m == r) and hold(e.scope, f.scope, a=e.actor, b=f.actor):
                    edges[n].add(m)

    reach: dict[int, set[int]] = {}

    def after(n: int) -> set[int]:
        got = reach.get(n)
        if got is None:
            todo, got = [n], set[int]()
            while todo:
                for m in edges[todo.pop()] - got:
                    got.add(m)
                    todo.append(m)
            reach[n] = got
        return got

    def ordered(x: Access, y: Access) -> bool:
        if y.node not in after(x.node):
            return False
        if not (x.store and not x.copy and y.copy):
            return True
        space, *of = x.space.split()
        return any(
            space in spaces and f in after(x.node) and y.node in after(f)
            # A fence does not order shared memory that its block cannot address.
            and (space == "global" or cluster > 1 or of == [str(block)])
            for f, spaces, block in proxied
        )  # fmt: skip

    found: list[tuple[Access, Access]] = []
    for i, x in enumerate(accesses):
        for y in accesses[i + 1 :]:
            apart = x.space != y.space or x.at + x.size <= y.at or y.at + y.size <= x.at
            if apart or not (x.store or y.store):
                continue
            if not (x.constant or y.constant):
                if ordered(x, y) or ordered(y, x) or (x.actor == y.actor and not x.copy and not y.copy):
                    continue
                same = (x.at, x.size) == (y.at, y.size)
                if x.strong and y.strong and same and hold(x.scope, y.scope, a=x.actor, b=y.actor):
                    continue
            found.append((x, y))
    return found


def text(events: list[Event], block: str) -> str:
    """Return the kernel of a program. Each event runs only in its own thread; `block` is the number of the block."""
    lines = [
        "%d = llvm.mlir.addressof @dsmem : !llvm.ptr<3>",
        "%n16 = arith.constant 16 : i32",
        "%one = arith.constant 1 : i32",
        "%one64 = arith.constant 1 : i64",
        "%full = arith.constant -1 : i32",
    ]
    for i, (b, w, lane) in enumerate(ACTORS):
        lines += [
            f"%t{i} = arith.constant {32 * w + lane} : i32",
            f"%b{i} = arith.constant {b} : i32",
            f"%s{i} = arith.cmpi eq, %tid, %t{i} : i32",
            f"%u{i} = arith.cmpi eq, {block}, %b{i} : i32",
            f"%a{i} = arith.andi %s{i}, %u{i} : i1",
        ]
    for i, e in enumerate(events):
        if e.what == "barrier":
            lines.append(f"scf.if %u{3 * e.actor} {{ nvvm.barrier0 }}")
            continue
        if e.what == "warp barrier":
            lines += [
                f"%w{i} = arith.cmpi slt, %tid, %t{2} : i32",
                f"%v{i} = arith.andi %w{i}, %u{e.actor} : i1",
                f"scf.if %v{i} {{ nvvm.bar.warp.sync %full : i32 }}",
            ]
            continue
        lines += [f"scf.if %a{e.actor} {{", *_body(i, e), "}"]
    for a in sorted({e.actor for e in events if e.what == "copy"}):
        lines += [f"scf.if %a{a} {{", "nvvm.cp.async.bulk.wait_group 0", "}"]
    return "\n".join([*lines, "llvm.return"])


def _body(i: int, e: Event) -> list[str]:
    base, space, word = ("%d", 3, "shared") if e.shared else ("%a", 1, "global")
    pointer = f"!llvm.ptr<{space}>"
    address = f"%p{i} = llvm.getelementptr {base}[{e.at}] : ({pointer}) -> {pointer}, i8"
    value, kind = ("%one64", "i64") if e.size == 8 else ("%one", "i32")
    bits = f"b{8 * e.size}"
    ptx = "nvvm.inline_ptx"
    if e.what == "proxy":
        return [f'{ptx} "fence.proxy.async{e.order};"']
    if e.what == "fence":
        return [f'{ptx} "fence.{e.order}.{e.scope};"']
    if e.what == "copy":
        copy = "nvvm.cp.async.bulk.global.shared.cta %a, %d, %n16 : !llvm.ptr<1>, !llvm.ptr<3>"
        return [copy, "nvvm.cp.async.bulk.commit.group"]
    if e.what == "wait":
        return [f"nvvm.cp.async.bulk.wait_group 0{' {read}' if e.order else ''}"]
    if e.what == "poll":
        load = f'%f{i} = {ptx} "ld.{e.order}.{e.scope}.global.{bits} $0, [$1];" ro(%p{i} : {pointer}) -> {kind}'
        again = [f"%c{i} = arith.cmpi ne, %f{i}, {value} : {kind}", f"scf.condition(%c{i})"]
        return [address, "scf.while : () -> () {", load, *again, "} do { scf.yield }"]
    if e.what in ("load", "constant", "strong load"):
        how = ".global.nc" if e.what == "constant" else f".{word}"
        how = f".relaxed.{e.scope}{how}" if e.what == "strong load" else how
        return [address, f'%f{i} = {ptx} "ld{how}.{bits} $0, [$1];" ro(%p{i} : {pointer}) -> {kind}']
    if e.what in ("add", "raise"):
        order = "relaxed" if e.order == "weak" else e.order
        add = f"red.{order}.{e.scope}.{word}.add.u{8 * e.size} [$0], $1;"
        return [address, f'{ptx} "{add}" ro(%p{i}, {value} : {pointer}, {kind})']
    order = "relaxed" if e.what == "strong store" else e.order
    how = "" if order == "weak" else f".{order}.{e.scope}"
    return [address, f'{ptx} "st{how}.{word}.{bits} [$0], $1;" ro(%p{i}, {value} : {pointer}, {kind})']


def reported(events: list[Event], cluster: int, schedule: str) -> str:
    """Return the detector's report on a program, or ""."""
    if cluster == RANKS:
        return reported_of_ranks(events, schedule)
    module = kernel(text(events, "%cta"), "%a: !llvm.ptr<1>", DSMEM)
    try:
        run_kernel(
            module, "k", [Pointer(np.zeros(64, np.int64))], 2, 64, dynamic_smem=64, cluster=cluster, checks=["race"],
            schedule=schedule,
        )  # fmt: skip
    except InterpError as e:
        if e.kind != "race":
            raise
        return str(e)
    return ""


def reported_of_ranks(events: list[Event], schedule: str) -> str:
    """Return the detector's report on a program whose blocks are two ranks, or ""."""
    module = kernel(text(events, "%rank"), "%a: !llvm.ptr<1>, %rank: i32", DSMEM)
    world = World(2, RunOptions(checks=("race",), schedule=schedule))
    arrays = [np.zeros(64, np.int64) for _ in range(2)]
    addresses = world.allocate(arrays, "a")
    for rank in range(2):
        world.launch(rank, module, "k", [int(addresses[rank, 0]), rank], LaunchShape((1, 1, 1), (64, 1, 1), 64))
    try:
        world.run()
    except InterpError as e:
        if e.kind != "race":
            raise
        return str(e)
    return ""


def check(seed: int) -> list[bool]:
    """Compare one program, and its variants without one fence, barrier or wait. Return which variants have a race.

    Raises AssertionError if the detector and the definition disagree.
    """
    rng = random.Random(seed)
    events, cluster = program(rng)
    cases = [events]
    orders = [i for i, e in enumerate(events) if e.what in ("fence", "proxy", "barrier", "warp barrier", "wait")]
    if orders:
        dropped = rng.choice(orders)
        cases.append(events[:dropped] + events[dropped + 1 :])
    out: list[bool] = []
    for case in cases:
        want = races(case, cluster)
        schedule = rng.choice(["round-robin", "reverse", "random", "adversarial"])
        got = reported(case, cluster, schedule)
        shown = "\n".join(map(str, case))
        assert bool(got) == bool(want), (
            f"seed {seed}, {cluster} blocks per cluster, {schedule}:\n{shown}\n{want[:1]}\n{got}"
        )
        out.append(bool(want))
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    done = [racy for i in range(options.count) for racy in check(options.seed + i)]
    print(f"{len(done)} programs, {sum(done)} with races: detector and definition agree")


if __name__ == "__main__":
    main()
