"""Entry points that run a kernel or a host function, and their options.

**Sampled blocks.** Blocks are numbered like on the device, x first: block (x, y, z) of a grid (X, Y, Z) is x + X · (y +
Y · z). A cluster runs whole or not at all.

**Uniform barriers.** A value is divergent if it may differ between threads of a block. Sources are thread ids, loads,
atomics, collectives and calls. A value computed from a divergent value is divergent, and so are values merged under a
divergent condition. If no barrier of a kernel is under a divergent condition, blocks can run in lockstep and pass each
barrier as a whole.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from cute_dialect.arch.targets import DEFAULT_CHIP, DEFAULT_TARGET, TARGETS
from cute_dialect.interp.compiler.function_compiler import Function
from cute_dialect.interp.errors import InterpError, attr_of, op_name
from cute_dialect.interp.exec.program import Program, lay_out_shared, place_globals, symbol_name
from cute_dialect.interp.exec.schedule import check_cooperative, run_warps, run_wide, shared_buffer
from cute_dialect.interp.machine.barriers import clusters_of, mixed_clusters
from cute_dialect.interp.machine.group import Counter, Dim3, Group, Machine
from cute_dialect.interp.memory.allocations import Allocations
from cute_dialect.interp.memory.arguments import Argument, Binder, Pointer
from cute_dialect.interp.memory.tensor_map import TensorMap
from cute_dialect.interp.race.clocks import PrecedingGrids
from cute_dialect.interp.reports.profile import Profile
from cute_dialect.interp.reports.run_report import FlopCount, Progress, RunReport
from cute_dialect.interp.reports.timeline import Recorder
from cute_dialect.interp.types import Type, round_up
from cute_dialect.interp.values import POISON, Regs, Value
from cute_dialect.runtime.call_options import CHECKS, REPORTS, SCHEDULES, read_checks
from cute_dialect.runtime.host_memory import host_arrays
from cute_dialect.runtime.host_program import LaunchShape
from cute_dialect.runtime.progress import Task
from cute_dialect.runtime.turns import PREFIX

if TYPE_CHECKING:
    from xdsl.ir import Operation

    from cute_dialect.interp.field import Algebra
    from cute_dialect.interp.machine.group import Observer
    from cute_dialect.interp.memory.accesses import Part, Site


WIDTHS = ("auto", "warp")
DEFAULT_MEMORY_LIMIT = 4 << 30


@dataclass(frozen=True)
class RunOptions:
    """Options of `run_kernel`, validated on construction.

    - schedule: order of warps and of asynchronous copies. "round-robin" (default), "reverse", "random" (see `seed`) or
      "adversarial" (copies and wgmma complete as late as possible, and the order of warps changes). "replay:0*3,1,c"
      is an exact order, see `runtime.turns`
    - seed: seed of the "random" schedule
    - overflow: "error" reports arithmetic that breaks its `nsw` or `nuw` flag, "wrap" lets it wrap
    - max_steps: number of ops of a warp (or of blocks in lockstep) between two checks that a loop still makes progress;
      default 10^6, see `interp.compiler.control_flow`
    - memory_limit: limit for shared and local memory together, in bytes
    - blocks: the blocks to run, as linear numbers or as text such as "0,5,16:32" or "sample:16:seed". None runs all.
      Whole clusters run. `RunReport.written` then marks the bytes that were written; all others keep their old value
    - progress: called repeatedly with a `Progress`
    - checks: "race" detects data races. "strict" does too, and requires the order of tcgen05 operations of the PTX ISA
      (see `race.tensor_order`). "uninit" reports uses of shared memory, registers or arrays (`Pointer.unwritten`) that
      nothing has written. "oob" and "sync" are always on
    - check_budget: work, in units of `Counter.work`, after which "race" and "uninit" stop (None: no limit).
      `RunReport.unchecked` is the number of blocks that ran without them
    - reports: "banks", "coalescing" and "occupancy" fill `RunReport.profile`; "timeline" fills `RunReport.timeline` and
      runs warp by warp; "flops" fills `RunReport.flops`
    - chip: the target chip. Its number of SMs and their limits determine how many blocks are resident at once
    - registers: registers per thread that ptxas reports, 0 if unknown; they limit the resident blocks too
    - resident: number of blocks that are resident at once, for a GPU that is shared or smaller. None: that of the chip
    - algebra: arithmetic of floats over a field, see `field`. None computes like the machine
    - width: "warp" runs warp by warp. "auto" runs many whole blocks in lockstep where the result cannot differ

    Raises:
        InterpError: kind "argument", if an option has an unknown value.
    """

    schedule: str = "round-robin"
    seed: int = 0
    overflow: str = "error"
    max_steps: int | None = None
    memory_limit: int = DEFAULT_MEMORY_LIMIT
    blocks: Sequence[int] | str | None = None
    progress: Callable[[Progress], None] | None = None
    width: str = "auto"
    checks: Sequence[str] | str = ()
    check_budget: int | None = None
    reports: Sequence[str] = ()
    chip: str = DEFAULT_CHIP
    registers: int = 0
    resident: int | None = None
    algebra: Algebra | None = None

    def __post_init__(self) -> None:
        if self.schedule not in SCHEDULES and not self.schedule.startswith(PREFIX):
            known = ", ".join(f'"{s}"' for s in SCHEDULES)
            raise InterpError("argument", f"unknown schedule {self.schedule!r}; use one of {known}")
        if self.chip not in TARGETS:
            raise InterpError("argument", f"unknown chip {self.chip!r}; use one of {', '.join(TARGETS)}")
        if self.resident is not None and self.resident < 1:
            raise InterpError("argument", f"resident is {self.resident}; at least one block must be resident")
        if self.width not in WIDTHS:
            raise InterpError("argument", f'unknown width {self.width!r}; use "auto" or "warp"')
        if isinstance(self.checks, str):
            object.__setattr__(self, "checks", read_checks(self.checks).names)
        for name, known, given in (("check", CHECKS, self.checks), ("report", REPORTS, self.reports)):
            for one in given:
                if one not in known:
                    raise InterpError("argument", f"unknown {name} {one!r}; use one of {', '.join(known)}")


_SOURCES = (
    "nvvm.read.ptx.sreg.tid.",
    "nvvm.read.ptx.sreg.lane",
    "nvvm.read.ptx.sreg.warp",
    "gpu.thread_id",
    "gpu.lane_id",
    "gpu.subgroup_id",
    "gpu.global_id",
    "gpu.shuffle",
    "llvm.load",
    "llvm.call",
    "func.call",
    "llvm.atomicrmw",
    "llvm.cmpxchg",
    "llvm.call_intrinsic",
    "llvm.inline_asm",
    "nvvm.shfl",
    "nvvm.vote",
    "nvvm.match",
    "nvvm.redux",
    "nvvm.elect",
    "nvvm.ldmatrix",
    "nvvm.barrier",
    "nvvm.mbarrier",
    "nvvm.inline_ptx",
)
_BRANCHES = ("cf.cond_br", "llvm.cond_br", "cf.switch", "llvm.switch")


def divergent_values(func: Operation) -> set[int]:
    """Return the ids of the values in a kernel that may differ between threads of a block (an over-approximation)."""
    out: set[int] = set()
    rows: list[tuple[Operation, str, list[int], bool]] = []
    for op in func.walk():
        if op is not func:
            name = op_name(op)
            rows.append((op, name, [id(o) for o in op.operands], name.startswith(_SOURCES)))
    before = -1
    while len(out) != before:
        before = len(out)
        for op, name, operands, is_source in rows:
            bad = is_source or not out.isdisjoint(operands)
            if name == "scf.for":
                body = op.regions[0].blocks[0]
                yielded = body.last_op.operands if body.last_op is not None else ()
                bounds = not out.isdisjoint(operands[:3])
                if bounds:
                    out.add(id(body.args[0]))
                for arg, init, y, res in zip(body.args[1:], operands[3:], yielded, op.results):
                    if bounds or init in out or id(y) in out:
                        out.update((id(arg), id(res)))
            elif op.regions:
                inner = [b for r in op.regions for b in r.blocks]
                ends = [id(o) for b in inner if b.last_op is not None for o in b.last_op.operands]
                if bad or not out.isdisjoint(ends):
                    out.update([id(v) for v in (*op.results, *(a for b in inner for a in b.args))])
            else:
                if bad:
                    out.update([id(r) for r in op.results])
                if op.successor_uses:
                    _branch(op, name in _BRANCHES and operands[0] in out, bad, out)
    return out


def _branch(op: Operation, divides: bool, bad: bool, out: set[int]) -> None:
    """Mark block arguments that depend on a divergent branch or receive divergent values."""
    region = op.parent_region()
    if divides and region is not None:
        out.update([id(a) for b in region.blocks if b is not region.blocks[0] for a in b.args])
    elif bad:
        out.update([id(a) for s in op.successors for a in s.args])


def barriers_uniform(func: Operation, barriers: list[Operation]) -> bool:
    """Return True if each of these barriers is reached by all threads of a block or by none."""
    if not barriers:
        return True
    divergent = divergent_values(func)
    for barrier in barriers:
        op: Operation = barrier
        while op is not func:
            region = op.parent_region()
            if region is not None and len(region.blocks) > 1:
                for b in region.blocks:
                    last = b.last_op
                    if last is not None and op_name(last) in _BRANCHES and id(last.operands[0]) in divergent:
                        return False
            parent = op.parent_op()
            if parent is None or parent is func:
                break
            op = parent
            name = op_name(op)
            if name == "scf.for":
                if any(id(o) in divergent for o in op.operands[:3]):
                    return False
            elif name == "scf.while":
                end = op.regions[0].blocks[0].last_op
                if end is None or id(end.operands[0]) in divergent:
                    return False
            elif any(id(o) in divergent for o in op.operands):
                return False
    return True


_SYNTAX = "numbers and ranges like 0,5,16:32 or sample:COUNT[:SEED]"


def choose(
    wanted: Sequence[int] | str | None, grid: Dim3, cluster: Dim3, mixed: list[list[int]] | None = None
) -> list[list[int]]:
    """Return the clusters to run, each as the list of its blocks. `mixed` are clusters of two sizes.

    `wanted` is None for all blocks, a sequence of linear block numbers, or text:

    - `0,5,17`: block numbers; `0:8`: a half-open range, whose ends may be omitted; both may be mixed
    - `sample:16`, `sample:16:7`: a sample of that many blocks, namely the first, the last and random others. The second
      number is the seed (default 0)

    Raises InterpError ("argument") if the text cannot be parsed or a number is outside the grid.

    >>> choose("1,6:", (8, 1, 1), (2, 1, 1))
    [[0, 1], [6, 7]]
    """
    clusters = clusters_of(grid, cluster) if mixed is None else mixed
    if wanted is None:
        return clusters
    total = grid[0] * grid[1] * grid[2]
    if isinstance(wanted, str):
        word, _, rest = wanted.partition(":")
        if word.strip() == "sample":
            return _sample(clusters, rest, wanted)
        numbers = [n for part in wanted.split(",") for n in _part(part, total, wanted)]
    else:
        numbers = [int(b) for b in wanted]
    bad = [n for n in numbers if not 0 <= n < total]
    if bad:
        raise InterpError("argument", f"block {bad[0]} does not exist; the grid has {total} blocks")
    chosen = set(numbers)
    if not chosen:
        raise InterpError("argument", f"no block selected; select at least one of the {total} blocks")
    return [members for members in clusters if not chosen.isdisjoint(members)]


def _part(text: str, total: int, whole: str) -> Sequence[int]:
    low, colon, high = text.strip().partition(":")
    try:
        if not colon:
            return [int(low)]
        first, last = int(low or 0), int(high) if high else total
    except ValueError:
        raise InterpError("argument", f"invalid blocks {whole!r}; use {_SYNTAX}") from None
    if last > total or first < 0:
        raise InterpError("argument", f"blocks {text.strip()} do not all exist; the grid has {total} blocks")
    return range(first, last)


def _sample(clusters: list[list[int]], rest: str, whole: str) -> list[list[int]]:
    count_text, _, seed_text = rest.partition(":")
    try:
        count, seed = int(count_text), int(seed_text or 0)
    except ValueError:
        raise InterpError("argument", f"invalid blocks {whole!r}; use {_SYNTAX}") from None
    if count < 1:
        raise InterpError("argument", f"the sample has {count} blocks; it must have at least one")
    n = -(-count // len(clusters[0]))
    if n >= len(clusters):
        return clusters
    ends = [0, len(clusters) - 1][: min(n, 2)]
    middle = random.Random(seed).sample(range(1, len(clusters) - 1), n - len(ends)) if n > 2 else []
    return [clusters[i] for i in sorted([*ends, *middle])]


MAX_THREADS = DEFAULT_TARGET.threads
DEFAULT_MAX_STEPS = 1_000_000
MOST_CHECKED_BYTES = 32 << 20
"""Limit of total array size for checks with a budget. The history of accesses takes about ten times as much."""
ONE_THREAD = LaunchShape()
DEFAULTS = RunOptions()
Result: TypeAlias = "int | float | bool | np.ndarray | np.generic | tuple[Result, ...] | None"


def _dim(v: Sequence[int], what: str) -> Dim3:
    dims = [int(x) for x in v]
    dims += [1] * (3 - len(dims))
    if len(dims) != 3 or any(d < 1 for d in dims):
        raise InterpError("argument", f"{what} needs one to three positive integers, got {v!r}")
    return (dims[0], dims[1], dims[2])


def count_steps(wanted: int | None) -> int:
    """Return the number of steps after which loops are checked. Raises InterpError if it is not positive."""
    if wanted is not None and wanted < 1:
        raise InterpError("argument", f"max_steps is {wanted}; it must be 1 or more")
    return DEFAULT_MAX_STEPS if wanted is None else wanted


def _static_dims(func: Operation, name: str) -> list[int]:
    got = attr_of(func, name)
    values = getattr(got, "get_values", None)
    return [int(v) for v in values()] if values is not None else []


def find_kernel(program: Program, name: str) -> Operation:
    """Return the function with a name. Raises InterpError if there is none."""
    func = program.find(name)
    if func is None or not func.regions:
        known = sorted({symbol_name(o) for o in program.module.walk() if op_name(o).endswith(".func")})
        raise InterpError("argument", f"there is no function @{name}; functions: {', '.join('@' + k for k in known)}")
    return func


def _stack_size(fn: Function) -> int:
    return fn.frame_size + max((_stack_size(f) for f in fn.callees), default=0)


def place_locals(machine: Machine, fn: Function) -> None:
    """Lay out the local memory of a thread: its size, its allocations and the bytes that they cover."""
    machine.local_size = _stack_size(fn)
    machine.local_valid = np.zeros(machine.local_size, np.bool_)
    machine.local_names = Allocations(fn.allocas)
    todo = [(fn, 0)]
    while todo:
        f, base = todo.pop()
        for a in f.allocas:
            machine.local_valid[base + a.start : base + a.start + a.size] = True
        todo += [(callee, base + f.frame_size) for callee in f.callees]


def registers_of(fn: Function, args: list[list[Value]]) -> Regs:
    """Return the registers of a group before the first op, which hold the arguments."""
    regs = list(fn.template)
    for slots, values in zip(fn.params, args):
        for s, v in zip(slots, values):
            regs[s] = v
    return regs


def run_kernel(
    module: Operation,
    kernel: str,
    args: Sequence[Argument],
    shape: LaunchShape = ONE_THREAD,
    options: RunOptions = DEFAULTS,
) -> RunReport:
    """Run a lowered kernel on the CPU. Arrays passed as pointers are modified in place.

    Args:
        module: The module that contains the kernel, directly or in a `gpu.module`, after `cute-to-base`.
        kernel: Its symbol, or `module::symbol`.
        args: One entry per parameter: an int, a float, a `Pointer`, or a nested tuple for a struct (`()` if empty).
        shape: Grid, block and cluster dimensions, and the size in bytes of an `external` shared global of size 0.
        options: Schedule, checks and reports, see `RunOptions`.

    Raises:
        InterpError: The kernel or an argument is wrong; `kind` is the category of the error.

    Example: `run_kernel(m, "add", [Pointer(a), Pointer(b), Pointer(c), n], LaunchShape((8, 1, 1), (128, 1, 1)))`.
    """
    begin = time.perf_counter()
    checks, blocks, budget = options.checks, options.blocks, options.check_budget
    program = Program(module, options.overflow, options.algebra)
    func = find_kernel(program, kernel)
    machine = machine_of(func, shape, options, Counter(count_steps(options.max_steps)))
    grid3 = machine.grid
    if budget is not None and sum(_array_sizes(args).values()) > MOST_CHECKED_BYTES:
        checks, budget = [c for c in checks if c not in ("race", "uninit", "strict")], None
        machine.report.unchecked = grid3[0] * grid3[1] * grid3[2]
    program.tracks = machine.tracks = "uninit" in checks
    program.stops = options.schedule.startswith(PREFIX)
    if "flops" in options.reports:
        machine.report.flops = program.flops = FlopCount()
    others = lay_out_shared(program, machine, func, shape.smem)
    fn = program.function(func)
    machine.tensor_columns = program.tensor_columns
    if shape.cooperative:
        check_cooperative(machine)
    binder = Binder(machine.memory, False, options.algebra)
    values = bind_all(binder, fn, args, kernel)
    if "uninit" in checks and blocks is None:  # If blocks are left out, data that they would have written may be read.
        for buf in binder.unwritten.values():
            buf.watch()
    place_globals(machine, others)
    machine.memory.add_host_arrays(host_arrays())
    place_locals(machine, fn)
    chosen = choose(blocks, grid3, machine.cluster, clusters_for(machine, options))
    report = machine.report
    report.checks = tuple(c for c in CHECKS if c in checks or c in ("oob", "sync"))
    report.blocks = sum(map(len, chosen))
    report.all_blocks = grid3[0] * grid3[1] * grid3[2]
    if blocks is not None:
        report.written = [(b.source, b.track()) for b in machine.memory.buffers if b.source is not None and b.writable]
    machine.strict_uninit = "uninit" in checks
    plain = (
        (machine.preferred_cluster or machine.cluster) == (1, 1, 1)
        and options.schedule == "round-robin"
        and options.width == "auto"
    )
    counted = [r for r in options.reports if r not in ("timeline", "flops")]
    if "timeline" in options.reports:
        machine.timeline = Recorder(machine)
        report.timeline = machine.timeline.timeline
        plain = False
    wide = widest = plain and not _needs_warp(fn) and _lockstep(fn, func)
    machine.strict_tensor_order = "strict" in checks
    if "race" in checks or "strict" in checks:
        from cute_dialect.interp.race.lockstep import WideMonitor  # late: start-up
        from cute_dialect.interp.race.monitor import Monitor  # late: start-up

        wide = wide and not _needs_clocks(fn) and not shape.pdl
        machine.monitor = WideMonitor(machine) if wide else Monitor(machine)
        machine.preceding = PrecedingGrids.of(fn, func, args, binder.buffer_of, shape.pdl)
        machine.observe = machine.monitor.observe
    monitor = machine.monitor
    unchecked_observe: Observer | None = None
    if counted:
        machine.report.profile = Profile(counted, machine.threads, machine.smem_size, machine.target)
        machine.report.profile.columns = machine.tensor_columns
        unchecked_observe = machine.report.profile.observe
        machine.observe = _both(machine.observe, unchecked_observe)
    machine.wide = wide
    template = registers_of(fn, values)
    with np.errstate(all="ignore"), _report_progress(options.progress, machine, begin) as watch:

        def run(clusters: list[list[int]], is_over_budget: Callable[[], bool]) -> list[list[int]]:
            before = report.blocks - sum(map(len, clusters))

            def watch_all(done: int) -> None:
                watch(before + done)

            limit = options.memory_limit
            if machine.wide:
                flat = [b for c in clusters for b in c]
                return [[b] for b in run_wide(machine, fn, template, flat, limit, watch_all, is_over_budget)]
            how = options.schedule, options.seed
            return run_warps(machine, fn, template, clusters, limit, watch_all, *how, is_over_budget)

        left = run(chosen, lambda: budget is not None and machine.count.work > budget)
        if left:
            report.unchecked = sum(map(len, left))
            machine.monitor, machine.observe, machine.strict_uninit = None, unchecked_observe, False
            machine.wide = widest
            run(left, lambda: False)
    if monitor is not None:
        report.writes = monitor.writes()
    count = machine.count
    report.ops, report.lane_ops = count.steps, count.lane_ops
    report.fences = machine.fences
    if machine.poison_stores:
        report.warnings.append(f"{machine.poison_stores} stores of a poison (undefined) value: 0 was written")
    report.seconds = time.perf_counter() - begin
    return report


def clusters_for(machine: Machine, options: RunOptions) -> list[list[int]]:
    """Return the clusters of a launch: of one size, or of two as the schedule mixes them."""
    larger = machine.preferred_cluster
    if larger is None:
        return clusters_of(machine.grid, machine.cluster)
    return mixed_clusters(machine.grid, machine.cluster, larger, options.schedule, options.seed)


def machine_of(func: Operation, shape: LaunchShape, options: RunOptions, count: Counter) -> Machine:
    """Return the machine of a launch, with checked dimensions and without memory. Raises InterpError."""
    grid, block = _dim(shape.grid, "a grid"), _dim(shape.block, "a block")
    machine = Machine(count, grid, block, True, TARGETS[options.chip])
    if machine.threads > MAX_THREADS:
        raise InterpError("argument", f"a block has at most {MAX_THREADS} threads, got {machine.threads}")
    _check_bounds(func, block)
    declared = _static_dims(func, "nvvm.cluster_dim")
    machine.cluster = _dim(shape.cluster if shape.cluster is not None else (declared or (1, 1, 1)), "a cluster")
    machine.preferred_cluster = shape.preferred_cluster
    whole = machine.preferred_cluster or machine.cluster
    if any(g % c for g, c in zip(grid, whole)):
        raise InterpError("argument", f"the grid {grid} is not a multiple of the cluster {whole}")
    machine.registers, machine.resident = options.registers, options.resident
    return machine


@contextmanager
def _report_progress(
    wanted: Callable[[Progress], None] | None, machine: Machine, begin: float
) -> Generator[Callable[[int], None]]:
    """Provide the function that receives the number of finished blocks: it calls `wanted` or shows a progress line."""

    def progress(done: int) -> Progress:
        return Progress(done, machine.report.blocks, machine.count.lane_ops, time.perf_counter() - begin)

    if wanted is not None:
        yield lambda done: wanted(progress(done))
        return
    with Task("running", machine.report.blocks, "blocks") as task:

        def show(done: int) -> None:
            now = progress(done)
            task.update(done, name=f"{now.lane_ops / max(now.seconds, 1e-9) / 1e6:.3g} M lane-ops/s")

        yield show


def bind_all(binder: Binder, fn: Function, args: Sequence[Argument], name: str) -> list[list[Value]]:
    """Return the leaves of the arguments of a kernel, and place their arrays in memory. Raises InterpError."""
    if len(args) != len(fn.param_types):
        raise InterpError("argument", f"@{name} takes {len(fn.param_types)} arguments, got {len(args)}")
    return [binder.bind(t, a, f"argument {i}") for i, (t, a) in enumerate(zip(fn.param_types, args))]


def _array_sizes(args: Sequence[Argument]) -> dict[int, int]:
    """Return the size in bytes of each array behind the arguments, by the array's identity."""
    found: dict[int, int] = {}
    for a in args:
        pointer = a.pointer if isinstance(a, TensorMap) else a
        if isinstance(pointer, Pointer):
            found[id(pointer.buffer)] = pointer.buffer.nbytes
        elif isinstance(pointer, tuple):
            found.update(_array_sizes(pointer))
    return found


def _check_bounds(func: Operation, block: Dim3) -> None:
    exact = _static_dims(func, "nvvm.reqntid")
    if exact and tuple((exact + [1, 1])[:3]) != block:
        raise InterpError("argument", f"the kernel requires blocks of {exact} threads, got {list(block)}")
    most = _static_dims(func, "nvvm.maxntid")
    if most and block[0] * block[1] * block[2] > int(np.prod(most)):
        raise InterpError("argument", f"the kernel allows blocks of at most {most} threads, got {list(block)}")


def _needs_warp(fn: Function) -> bool:
    return bool(fn.needs_warp) or any(_needs_warp(f) or f.barriers for f in fn.callees)


def _needs_clocks(fn: Function) -> bool:
    return bool(fn.needs_clocks) or any(_needs_clocks(f) for f in fn.callees)


def _both(first: Observer | None, second: Observer) -> Observer:
    if first is None:
        return second

    def observe(g: Group, site: Site, parts: list[Part], value: Value | None) -> None:
        first(g, site, parts, value)
        second(g, site, parts, value)

    return observe


def _lockstep(fn: Function, func: Operation) -> bool:
    return barriers_uniform(func, fn.barriers)


def run_function(
    module: Operation, name: str, args: Sequence[Argument], *, overflow: str = "error", max_steps: int | None = None
) -> tuple[Result, ...]:
    """Run a function on plain values and return its results. A struct is a nested tuple, poison is None.

    An argument may also be an array, of shape `(n,)` for a scalar parameter and `(n, …)` for a vector. All n inputs are
    then evaluated at once, and results that depend on them are arrays.

    Example: for `func.func @f(%a: i32, %b: i32) -> i32` that adds, `run_function(m, "f", [2, 3]) == (5,)` and
    `run_function(m, "f", [np.arange(4), 10])` gives `(array([10, 11, 12, 13]),)`.
    """
    program = Program(module, overflow)
    func = find_kernel(program, name)
    fn = program.function(func)
    if len(args) != len(fn.param_types):
        raise InterpError("argument", f"@{name} takes {len(fn.param_types)} arguments, got {len(args)}")
    limit = count_steps(max_steps)
    machine = Machine(Counter(limit), (1, 1, 1), (1, 1, 1), False)
    binder = Binder(machine.memory, vectorised=True)
    values = [binder.bind(t, a, f"argument {i}") for i, (t, a) in enumerate(zip(fn.param_types, args))]
    place_globals(machine, lay_out_shared(program, machine, func, 0))
    place_locals(machine, fn)
    lanes = binder.lanes
    machine.threads = lanes
    g = Group(machine, 0, np.arange(lanes, dtype=np.int64), shared_buffer(round_up(machine.smem_size, 1024)), None)
    regs = registers_of(fn, values)
    body = fn.body
    assert body is not None
    with np.errstate(all="ignore"):
        gen = body.run(regs, g)
        if gen is not None:
            for wait in gen:
                raise InterpError("unsupported", f"a host function cannot block, but this one {wait.text}")
    return _results(fn.result_types, [regs[s] for s in fn.out])


def _results(types: Sequence[Type], values: list[Value]) -> tuple[Result, ...]:
    """Return the results whose leaves are these values."""
    ends = itertools.accumulate(len(t.leaves) for t in types)
    return tuple([_result(t, values[end - len(t.leaves) : end]) for t, end in zip(types, ends)])


def _result(t: Type, values: list[Value]) -> Result:
    if not t.children and len(t.leaves) == 1:
        v = values[0]
        return None if v is POISON else v  # type: ignore[return-value]
    return _results(t.children, values)
