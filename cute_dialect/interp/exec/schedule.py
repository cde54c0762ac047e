"""Schedulers: many blocks in lockstep, or warp by warp in a selectable order."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Generator, Iterable

import numpy as np

from cute_dialect.interp.compiler.function_compiler import Function
from cute_dialect.interp.errors import InterpError
from cute_dialect.interp.exec.replay import Replay
from cute_dialect.interp.machine.barriers import Block, Cluster, ClusterPool, RegisterPool, clusters_of
from cute_dialect.interp.machine.group import Group, Machine, Spurious, Transfers, Wait
from cute_dialect.interp.memory.allocations import Allocations
from cute_dialect.interp.memory.buffers import UNINIT_BYTE, Buffer, GlobalMemory
from cute_dialect.interp.reports.profile import occupancy
from cute_dialect.interp.types import round_up
from cute_dialect.interp.values import Array, Regs

WIDE_LANES = 16384
BESIDE = 4  # blocks that "random" keeps resident at once, even if one could finish alone
POLL_STEPS = 100  # Ops that one poll counts as, for each warp: polls are slower than other ops, and all warps poll.
POLL_ROUNDS = 16  # Rounds in which all warps only poll before another block is admitted. Their writes do not count.
FEW_RESIDENT = 8  # Number of resident clusters from which "random" admits those with the lowest numbers first.
SPIN_ROUNDS = 128  # Rounds in which warps only poll before memory is compared with that of the last such rounds.
FULL_ROUNDS = 3  # The same, if other blocks wait and none fits. Each warp must have seen the result of its last poll.


def collective(fn: Function) -> bool:
    """Return True if the function, or one that it calls, has warp-collective instructions."""
    return fn.collective or any(collective(f) for f in fn.callees)


def _memory_check(machine: Machine, lanes: int, smem: int, limit: int) -> None:
    need = lanes * machine.local_size + smem
    if need > limit:
        raise InterpError(
            "limit",
            f"memory limit: {need} bytes of local and shared memory needed, {limit} allowed; raise memory_limit",
        )


def check_room(machine: Machine, warps: int, limit: int) -> None:
    """Check that another block may become resident. Raises InterpError if its memory exceeds the limit."""
    lanes = warps * 32 + round_up(machine.threads, 32)
    _memory_check(machine, lanes, (len(machine.blocks) + 1) * machine.smem_size, limit)


def run_wide(
    machine: Machine,
    fn: Function,
    template: Regs,
    chosen: list[int],
    memory_limit: int,
    watch: Callable[[int], None],
    is_over_budget: Callable[[], bool],
) -> list[int]:
    """Run blocks in lockstep, as many at once as fit `WIDE_LANES`. `watch` gets the number of finished blocks.

    Returns the blocks that have not run because `is_over_budget` returned True.
    """
    padded = round_up(machine.threads, 32) if collective(fn) else machine.threads
    row = round_up(machine.smem_size, 1024)
    per = max(1, WIDE_LANES // padded)
    if machine.local_size or row:
        per = max(1, min(per, (64 << 20) // max(1, padded * machine.local_size + row)))
    body = fn.body
    assert body is not None
    for first in range(0, len(chosen), per):
        if first and is_over_budget():
            return chosen[first:]
        part = chosen[first : first + per]
        n = len(part)
        _memory_check(machine, n * padded, n * row, memory_limit)
        tid = np.tile(np.arange(padded, dtype=np.int64), n) if n > 1 else np.arange(padded, dtype=np.int64)
        where: int | Array = part[0] if n == 1 else np.repeat(np.array(part, np.int64), padded)
        smem = shared_buffer(n * row, machine.shared_names)
        starts = None if n == 1 or not row else np.repeat(np.arange(n, dtype=np.int64) * row, padded)
        machine.shared = {b: (smem, i * row) for i, b in enumerate(part)} if row else {}
        g = Group(machine, where, tid, smem, starts)
        machine.count.base = machine.count.steps
        machine.report.lanes = max(machine.report.lanes, g.lanes)
        regs = list(template)
        gen = body.run(regs, g)
        if gen is not None:
            for _ in gen:
                raise AssertionError("a group in lockstep has blocked")
        if machine.monitor is not None:
            machine.monitor.exits(g)
        _retire(machine, g)
        watch(first + n)
    return []


def shared_buffer(size: int, names: Allocations | None = None) -> Buffer:
    """Allocate unwritten shared memory."""
    buf = Buffer(0, np.full(size, UNINIT_BYTE, np.uint8), "shared memory")
    buf.names = names
    buf.watch()
    return buf


def _retire(machine: Machine, g: Group) -> None:
    machine.report.loads += g.loads
    machine.report.stores += g.stores
    if g.copies:
        machine.report.warnings.append(f"{len(g.copies)} cp.async were never waited for")


class Warp:
    """A warp known to the scheduler."""

    __slots__ = ("block", "gen", "group", "number", "used")

    def __init__(self, group: Group, block: Block, number: int, gen: Generator[Wait, None, None]) -> None:
        self.used = 0  # ops executed, with weighted polls
        self.group = group
        self.block = block
        self.number = number
        self.gen = gen


def run_warps(
    machine: Machine,
    fn: Function,
    template: Regs,
    chosen: list[list[int]],
    memory_limit: int,
    watch: Callable[[int], None],
    schedule: str,
    seed: int,
    is_over_budget: Callable[[], bool],
) -> list[list[int]]:
    """Run warp by warp. `chosen` lists the blocks of each cluster.

    One cluster is resident at first. Another is admitted when no resident warp can continue. A GPU holds a limited
    number of blocks and starts them in order of their numbers, but CUDA does not define the order in which the blocks
    that fit run. Among these, "round-robin" starts with the first, "reverse" and "adversarial" with the last. "random"
    picks any and admits others early. If all resident blocks wait for blocks that do not fit, the kernel deadlocks. A
    replayed schedule determines the order in the first cluster and then becomes round-robin, see `replay`.

    Returns the clusters that have not run because `is_over_budget` returned True when no block was resident.
    """
    rng = random.Random(seed)
    replay = Replay(schedule)
    if replay.turns:
        schedule = "round-robin"
    most = resident_blocks(machine)
    waiting = chosen[::-1] if schedule == "round-robin" else list(chosen)  # The next cluster is popped from the end.
    if schedule == "random":
        rng.shuffle(waiting)
    warps: list[Warp] = []
    machine.report.lanes = 32
    machine.transfers = transfers = Transfers(schedule, rng)
    machine.spurious = Spurious(schedule, seed)
    machine.pool = pool = ClusterPool(waiting, schedule, rng, smaller_clusters(machine))
    done = 0
    quiet = polled = rounds = 0
    seen = memory = -1
    count = machine.count
    recorder = machine.timeline
    cluster: list[Warp] = []
    while warps or waiting:
        early = schedule == "random" and waiting and len(machine.blocks) < min(BESIDE, most) and rng.random() < 0.25
        if not warps and done and is_over_budget():
            return waiting[::-1] if schedule == "round-robin" else waiting
        if not warps or early:
            check_room(machine, len(warps), memory_limit)
            warps.extend(admit(machine, fn, template, take_next(machine, waiting, most)))
        full = bool(waiting) and len(machine.blocks) + len(waiting[-1]) > most
        cluster = cluster or list(warps)
        order = list(warps)
        transfers.is_replayed = bool(replay.turns)
        if replay.turns:
            order = _take_turn(replay, cluster, warps, transfers)
        elif schedule == "reverse":
            order.reverse()
        elif schedule == "random":
            rng.shuffle(order)
        elif schedule == "adversarial":
            order = order[rounds % len(order) :] + order[: rounds % len(order)] if rounds % 2 else order[::-1]
            rounds += 1
        moved = transfers.is_replayed or transfers.next_round(False)
        count.advances += moved
        if recorder is not None:
            recorder.round_ends()
        for w in order:
            went, ended = run_warp(machine, w, warps, 0 if waiting else POLL_STEPS * len(warps))
            moved |= went
            done += ended
        watch(done + pool.taken)
        if not moved and transfers.next_round(True):
            moved = True
            count.advances += 1
        polled = 0 if moved else polled + 1
        if moved or (count.progress != seen and not (waiting and polled >= POLL_ROUNDS)):
            quiet = 0
            seen = count.progress
            continue
        quiet += 1
        polling = any(w.group.wait is not None and w.group.wait.spin for w in warps)
        if polling and quiet < (FULL_ROUNDS if full else 0 if waiting else SPIN_ROUNDS):
            continue
        if polling and (full or not waiting):
            before, memory = memory, memory_state([machine.memory], [machine])
            if memory != before:  # Blocks that store between their polls may go on.
                quiet = 0
                continue
        if full:
            raise deadlock(warps, 0, no_room(machine, most, waiting))
        if waiting:
            check_room(machine, len(warps), memory_limit)
            crowded = len(machine.blocks) > FEW_RESIDENT * len(waiting[-1])
            if schedule == "random" and crowded:
                waiting.sort(reverse=True)
            warps.extend(admit(machine, fn, template, take_next(machine, waiting, most)))
            quiet = polled = 0
            count.advances += 1
            continue
        raise deadlock(warps, machine.report.all_blocks - machine.report.blocks)
    if recorder is not None:
        recorder.round_ends()
    return []


def run_warp(machine: Machine, w: Warp, warps: list[Warp], poll: int) -> tuple[bool, int]:
    """Run a warp until it waits, polls or ends, unless it still waits. A warp that ends is removed from `warps`.

    Returns whether it did more than poll, and the number of blocks that ended. `poll` is the number of ops that a poll
    counts as.
    """
    wait, count, recorder = w.group.wait, machine.count, machine.timeline
    if wait is not None and not wait.ready():
        return False, 0
    w.group.wait = None
    count.base = count.steps - w.used
    if recorder is not None:
        recorder.begins(w.block.linear, w.number)
    try:
        w.group.wait = wait = next(w.gen)
    except InterpError as e:
        if e.kind == "limit":
            raise e.with_notes(_places(warps, w)) from None
        raise
    except StopIteration:
        return True, _end_warp(machine, w, warps)
    w.used = count.steps - count.base
    if wait.spin:
        w.used += poll
    else:
        w.group.advance()
    if recorder is not None:
        recorder.stops(wait)
    return not wait.spin, 0


def _end_warp(machine: Machine, w: Warp, warps: list[Warp]) -> int:
    """Remove a warp that has ended. Returns the number of blocks that end with it: those of its cluster, or 0."""
    w.group.advance()
    warps.remove(w)
    if machine.timeline is not None:
        machine.timeline.stops(None)
    if machine.monitor is not None:
        machine.monitor.exits(w.group)
    _retire(machine, w.group)
    wrong = w.block.warp_exits(w.number)
    if wrong is not None:
        raise w.group.fail(*wrong)
    w.block.groups.remove(w.group)
    blocks = w.block.cluster.blocks
    if any(b.groups for b in blocks):
        return 0
    machine.transfers.flush({b.key for b in blocks})
    for b in blocks:
        del machine.blocks[b.linear]
        machine.shared.pop(b.linear, None)
    return len(blocks)


def _take_turn(replay: Replay, cluster: list[Warp], warps: list[Warp], transfers: Transfers) -> list[Warp]:
    """Land a copy, or return the warp whose turn it is, as a list."""
    number = replay.next_warp(len(cluster), transfers)
    if number is None:
        return []
    w = cluster[number]
    replay.check(number, [w.group.wait] if w in warps else [])
    return [w]


def admit(machine: Machine, fn: Function, template: Regs, members: list[int]) -> list[Warp]:
    """Make the blocks of a cluster resident and return their warps."""
    cluster = Cluster()
    out: list[Warp] = []
    count = (machine.threads + 31) // 32
    body = fn.body
    assert body is not None
    for linear in members:
        smem = shared_buffer(round_up(machine.smem_size, 1024), machine.shared_names)
        block = Block(linear, smem, 0, cluster)
        block.key = machine.first + linear
        block.live_warps = count
        block.size = machine.smem_size
        block.registers = RegisterPool(machine.threads)
        cluster.blocks.append(block)
        machine.blocks[linear] = block
        machine.shared[linear] = (smem, 0)
        for number in range(count):
            tid = np.arange(32 * number, 32 * number + 32, dtype=np.int64)
            g = Group(machine, linear, tid, smem, None)
            block.groups.append(g)
            out.append(Warp(g, block, number, _drive(body.run, list(template), g)))
    if machine.monitor is not None:
        machine.monitor.admit(cluster)
    if machine.timeline is not None:
        for linear in members:
            machine.timeline.admits(linear, count)
    return out


def _drive(
    run: Callable[[Regs, Group], Generator[Wait, None, None] | None], regs: Regs, g: Group
) -> Generator[Wait, None, None]:
    gen = run(regs, g)
    if gen is not None:
        yield from gen


def _places(warps: list[Warp], runs: Warp | None = None, most: int = 16) -> list[str]:
    """Return one line per warp: its position and what it waits for.

    `runs` is the warp that caused the error; it is left out.
    """
    notes: list[str] = []
    shown = [w for w in warps if w is not runs]
    for w in shown[:most]:
        wait = w.group.wait
        x, y, z = w.group.block_coord(0)
        what = wait.text if wait is not None else "has not begun"
        where = f" at {wait.info.location}" if wait is not None and wait.info.location else ""
        op = f" ({wait.info.name})" if wait is not None else ""
        of = w.group.machine.of_rank
        notes.append(f"block ({x}, {y}, {z}){of} warp {w.number} {what}{op}{where}")
    if len(shown) > most:
        notes.append(f"and {len(shown) - most} more warps")
    return notes


def memory_state(memories: Iterable[GlobalMemory], machines: Iterable[Machine]) -> int:
    """Return a checksum of global memory, and of the shared memory of the resident blocks of machines."""
    buffers = [buf for memory in memories for buf in memory.buffers if buf.root is buf]
    seen = 0
    for buf in (*buffers, *(b.smem for machine in machines for b in machine.blocks.values())):
        seen = zlib.crc32(np.ascontiguousarray(buf.data).data, seen)
    return seen


def take_next(machine: Machine, waiting: list[list[int]], most: int) -> list[int]:
    """Remove and return the next cluster to start.

    It is the last of `waiting` among those that the GPU can start now: with room for n more clusters, the n lowest.
    """
    room = (most - len(machine.blocks)) // len(waiting[-1])
    if room < len(waiting):
        last = sorted(map(min, waiting))[max(room, 1) - 1]
        at = next(i for i in range(len(waiting) - 1, -1, -1) if min(waiting[i]) <= last)
        return waiting.pop(at)
    return waiting.pop()


def smaller_clusters(machine: Machine) -> list[list[int]]:
    """Return all clusters of the smaller of two sizes; none if there is one size."""
    return clusters_of(machine.grid, machine.cluster) if machine.preferred_cluster is not None else []


def resident_blocks(machine: Machine) -> int:
    """Return an upper bound of the number of blocks that the GPU holds at once, rounded down to whole clusters.

    Registers count only if ptxas has compiled the kernel. If it has not, a GPU may hold fewer blocks.
    """
    x, y, z = machine.cluster
    held = _per_sm(machine) * machine.target.sms
    if machine.resident is not None:
        held = min(held, machine.resident)
    return max(1, held // (x * y * z)) * (x * y * z)


def _per_sm(machine: Machine) -> int:
    one = occupancy(
        machine.threads, machine.smem_size, machine.registers, target=machine.target, columns=machine.tensor_columns
    )
    return max(1, one.blocks)


def check_cooperative(machine: Machine) -> None:
    """Check that all blocks of a cooperative launch fit. Raises InterpError, as CUDA refuses such a launch."""
    most, grid = resident_blocks(machine), machine.grid
    if grid[0] * grid[1] * grid[2] > most:
        raise InterpError(
            "argument",
            f"cooperative launch of {grid[0] * grid[1] * grid[2]} blocks, but {_held(machine, most)}",
            notes=(f"launch at most {most} blocks, each of which loops over its share of the work",),
        )


def _held(machine: Machine, most: int) -> str:
    """Return the number of blocks that the GPU holds at once, and its reasons."""
    t = machine.target
    block = f"{machine.threads} threads and {machine.smem_size} bytes of shared memory"
    if machine.registers:
        block += f" and {machine.registers} registers per thread"
    if machine.tensor_columns:
        block += f" and {machine.tensor_columns} columns of tensor memory"
    why = f"{t.sms} SMs of {t.chip}, {_per_sm(machine)} blocks an SM"
    if machine.resident is not None and machine.resident < _per_sm(machine) * t.sms:
        why = f"resident={machine.resident}"
    return f"the GPU{machine.of_rank} holds at most {most} blocks of {block} at once ({why})"


def no_room(machine: Machine, most: int, waiting: list[list[int]]) -> tuple[str, str]:
    """Return the deadlock notes for resident blocks that wait for blocks that cannot start."""
    absent = sum(map(len, waiting))
    return (
        f"{_held(machine, most)}; {absent} blocks cannot start, because the resident blocks wait for them",
        f"launch at most {most} blocks, each of which loops over its share of the work (a persistent grid), with "
        "cooperative=True, or let no block wait for one of a higher number",
    )


def deadlock(warps: list[Warp], absent: int, no_room: tuple[str, ...] = (), most: int = 4) -> InterpError:
    """Return the error for warps of which none can continue. With `no_room`, at most `most` of them are listed."""
    notes = [*no_room, *_places(warps, most=most if no_room else 64)]
    first = next((w for w in warps if w.group.wait is not None), warps[0])
    if not no_room and any(w.group.wait is not None and w.group.wait.spin for w in warps):
        notes.append("the polled value never changes: no other warp can write it, and no copy is in flight")
    if absent:
        notes.append(f"{absent} blocks of the grid were not selected to run; the warps may wait for them")
    wait = first.group.wait
    info = wait.info if wait is not None else None
    who = "1 warp waits and cannot" if len(warps) == 1 else f"{len(warps)} warps wait and none can"
    return InterpError(
        "deadlock",
        f"deadlock: {who} continue",
        op=info.name if info else "",
        op_text=info.text if info else "",
        frames=info.frames if info else (),
        notes=tuple(notes),
    )
