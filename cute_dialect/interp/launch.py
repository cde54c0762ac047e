"""Running a kernel or a host function: arguments, blocks, warps and the scheduler."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from cute_dialect.interp.errors import InterpError, op_name
from cute_dialect.interp.group import Counter, Dim3, Group, Wait
from cute_dialect.interp.memory import SMEM_ORIGIN, UNINIT_BYTE, Buffer, GlobalMemory
from cute_dialect.interp.ops.data import literal
from cute_dialect.interp.program import Function, Program, attr_of, symbol_name
from cute_dialect.interp.sync import Block, Cluster
from cute_dialect.interp.types import Leaf, Type, round_up, size_of, type_of
from cute_dialect.interp.uniform import barriers_uniform
from cute_dialect.interp.values import POISON, Array, Regs, Value, wrap_int

if TYPE_CHECKING:
    from xdsl.ir import Operation

WIDE_LANES = 16384
SMEM_LIMIT = 232448  # bytes of shared memory a block may have on sm_90
MAX_THREADS = 1024
DEFAULT_STEP_LIMIT = 100_000_000
DEFAULT_MEMORY_LIMIT = 4 << 30
MAX_PRINTS = 100_000
SPIN_ROUNDS = 256  # rounds in which warps only poll, and nothing changes, before it counts as a deadlock


class Pointer:
    """A pointer argument: a place in an array whose memory the kernel reads and writes.

    - buffer: any C-contiguous numpy array; all its bytes may be reached, unless `window` says otherwise
    - byte_offset: where the pointer points, from the array's start
    - window: the (byte offset, byte length) rows that belong to the tensor; touching other bytes is an error. For a
      tensor with padded rows: `[(r * row_stride_bytes, row_bytes) for r in range(rows)]`
    """

    def __init__(
        self,
        buffer: Array,
        byte_offset: int = 0,
        name: str = "",
        window: Sequence[tuple[int, int]] | None = None,
    ) -> None:
        self.buffer = buffer
        self.byte_offset = byte_offset
        self.name = name
        self.window = window


Argument: TypeAlias = "int | float | Pointer | np.ndarray | np.generic | Sequence[Argument]"
Result: TypeAlias = "int | float | bool | np.ndarray | np.generic | tuple[Result, ...] | None"


class RunReport:
    """What a launch did.

    - ops: ops executed by groups of lanes; lane_ops: the same times the active lanes
    - loads, stores: by lane; fences: fence ops met (they do nothing here)
    - seconds: wall clock; blocks: number of blocks run; lanes: width of a group (32, or more when blocks ran in
      lockstep)
    - warnings: sentences, each once a place; printf: what the kernel printed, one entry a thread's call
    """

    def __init__(self) -> None:
        self.ops = 0
        self.lane_ops = 0
        self.loads = 0
        self.stores = 0
        self.fences = 0
        self.seconds = 0.0
        self.blocks = 0
        self.lanes = 0
        self.warnings: list[str] = []
        self.printf: list[str] = []

    @property
    def lane_ops_per_second(self) -> float:
        return self.lane_ops / self.seconds if self.seconds else 0.0

    def __repr__(self) -> str:
        return (
            f"RunReport(blocks={self.blocks}, lanes={self.lanes}, ops={self.ops}, lane_ops={self.lane_ops}, "
            f"loads={self.loads}, stores={self.stores}, seconds={self.seconds:.3f}, warnings={len(self.warnings)})"
        )


class Launch:
    """Everything the groups of one launch share."""

    def __init__(self, program: Program, count: Counter, grid: Dim3, block: Dim3, is_kernel: bool) -> None:
        self.program = program
        self.memory = GlobalMemory()
        self.count = count
        self.grid = grid
        self.block = block
        self.cluster: Dim3 = (1, 1, 1)
        self.threads = block[0] * block[1] * block[2]
        self.is_kernel = is_kernel
        self.wide = True
        self.smem_size = 0
        self.local_size = 0
        self.blocks: dict[int, Block] = {}
        self.shared: dict[int, tuple[Buffer, int]] = {}
        self.symbols: dict[str, int] = {}
        self.report = RunReport()
        self.fences = 0
        self.poison_stores = 0
        self._warned: set[tuple[str, int]] = set()

    def warn(self, key: tuple[str, int], text: str) -> None:
        """Add a warning, once a key."""
        if key not in self._warned and len(self._warned) < 1000:
            self._warned.add(key)
            self.report.warnings.append(text)

    def print(self, text: str) -> None:
        if len(self.report.printf) < MAX_PRINTS:
            self.report.printf.append(text)

    def symbol_address(self, name: str) -> int:
        got = self.symbols.get(name)
        if got is None:
            raise InterpError("unsupported", f"expected a global named @{name}")
        return got


# -- globals ----------------------------------------------------------------------------------------------------------


def _place_globals(launch: Launch, func: Operation, dynamic_smem: int) -> None:
    """Give every global an address: shared ones an offset, dynamic shared memory after the static."""
    static: list[tuple[str, int, int]] = []
    at = 0
    dynamic: list[tuple[str, int]] = []
    used = _names_used(launch.program, func)
    for op in launch.program.module.walk():
        if op_name(op) != "llvm.mlir.global":
            continue
        name = symbol_name(op)
        if name not in used:
            continue
        t = attr_of(op, "global_type")
        if t is None:
            raise InterpError("unsupported", f"expected global @{name} to have a type")
        size, align = size_of(t)
        align = max(_int(op, "alignment"), align, 1)
        if _int(op, "addr_space") == 3:
            if size == 0:
                dynamic.append((name, align))
            else:
                static.append((name, size, align))
            continue
        data = _initial(op, t, size)
        constant = attr_of(op, "constant") is not None
        buf = launch.memory.add(data, f"global @{name}", writable=not constant)
        launch.symbols[name] = buf.base
    for name, size, align in static:
        at = round_up(at, align)
        launch.symbols[name] = SMEM_ORIGIN + at
        at += size
    for name, align in dynamic:
        start = round_up(at, align)
        launch.symbols[name] = SMEM_ORIGIN + start
        at = start
    launch.smem_size = at + dynamic_smem
    if launch.smem_size > SMEM_LIMIT:
        raise InterpError("limit", f"expected at most {SMEM_LIMIT} bytes of shared memory, got {launch.smem_size}")


def _names_used(program: Program, func: Operation) -> set[str]:
    """The globals that a function and those it calls refer to."""
    out: set[str] = set()
    todo, seen = [func], {func}
    while todo:
        for op in todo.pop().walk():
            for key in ("global_name", "callee"):
                ref = attr_of(op, key)
                data = getattr(getattr(ref, "root_reference", ref), "data", None)
                if not isinstance(data, str):
                    continue
                if key == "global_name":
                    out.add(data)
                else:
                    callee = program.find(data, op)
                    if callee is not None and callee not in seen:
                        seen.add(callee)
                        todo.append(callee)
    return out


def _int(op: Operation, name: str) -> int:
    data = getattr(getattr(attr_of(op, name), "value", None), "data", None)
    return data if isinstance(data, int) else 0


def _initial(op: Operation, t: object, size: int) -> Array:
    data = np.zeros(size, np.uint8)
    value = attr_of(op, "value")
    if value is None and op.regions and op.regions[0].blocks:
        if any(
            op_name(o) not in ("llvm.mlir.undef", "llvm.mlir.zero", "llvm.mlir.poison", "llvm.return")
            for o in op.regions[0].walk()
        ):
            raise InterpError("unsupported", f"expected an initialiser of undef or zero for global @{symbol_name(op)}")
        return data
    if value is None:
        return data
    text = getattr(value, "data", None)
    if isinstance(text, (str, bytes)):
        raw = text.encode("latin-1", "replace") if isinstance(text, str) else text
        data[: len(raw)] = np.frombuffer(raw[:size], np.uint8)
        return data
    kind = type_of(t)  # type: ignore[arg-type]
    for leaf, off, v in zip(kind.leaves, kind.offsets, literal(value, kind)):
        raw_leaf = np.ascontiguousarray(np.asarray(v, leaf.dtype)).reshape(-1).view(np.uint8)
        data[off : off + len(raw_leaf)] = raw_leaf
    return data


# -- arguments --------------------------------------------------------------------------------------------------------


class _Binder:
    """Turns arguments into leaf values, and arrays behind pointers into buffers."""

    def __init__(self, memory: GlobalMemory, vectorised: bool) -> None:
        self.memory = memory
        self.vectorised = vectorised
        self.lanes = 1
        self._known: dict[int, tuple[Buffer, Array]] = {}

    def bind(self, t: Type, arg: Argument, where: str) -> list[Value]:
        if t.children or not t.leaves:
            if not isinstance(arg, (tuple, list)):
                raise InterpError("argument", f"{where}: expected a tuple for {t.text}, got {type(arg).__name__}")
            if len(arg) != len(t.children):
                raise InterpError(
                    "argument", f"{where}: expected {len(t.children)} fields for {t.text}, got {len(arg)}"
                )
            out: list[Value] = []
            for i, (child, a) in enumerate(zip(t.children, arg)):
                out.extend(self.bind(child, a, f"{where}[{i}]"))
            return out
        return [self._leaf(t.leaves[0], arg, where)]

    def _leaf(self, leaf: Leaf, arg: Argument, where: str) -> Value:
        if leaf.kind == "p":
            if isinstance(arg, Pointer):
                return self._pointer(arg, where)
            if isinstance(arg, int) and not isinstance(arg, bool):
                return arg
            raise InterpError("argument", f"{where}: expected a Pointer, got {type(arg).__name__}")
        if isinstance(arg, Pointer) or (isinstance(arg, (tuple, list)) and not leaf.shape):
            raise InterpError("argument", f"{where}: expected a value of type {leaf!r}, got {type(arg).__name__}")
        arr = np.asarray(arg)
        rank = len(leaf.shape)
        if arr.ndim == rank + 1 and self.vectorised:
            if self.lanes not in (1, len(arr)):
                raise InterpError("argument", f"{where}: expected {self.lanes} values, got {len(arr)}")
            self.lanes = len(arr)
        elif arr.shape != leaf.shape:
            raise InterpError(
                "argument", f"{where}: expected a value of type {leaf!r}, got an array of shape {arr.shape}"
            )
        if leaf.kind == "f":
            if arr.ndim == 0:
                return leaf.dtype.type(arr.item() if arr.dtype != leaf.dtype else arr[()])
            return arr.astype(leaf.dtype)
        if arr.dtype.kind not in "iub":
            raise InterpError("argument", f"{where}: expected an integer of type {leaf!r}, got {arr.dtype}")
        lo, hi = -(1 << (leaf.width - 1)), (1 << leaf.width) - 1
        if arr.size and (int(arr.min()) < lo or int(arr.max()) > hi):
            raise InterpError(
                "argument", f"{where}: expected a value that fits {leaf!r}, got {arr.min()} to {arr.max()}"
            )
        if arr.ndim == 0:
            return wrap_int(int(arr), leaf.width)
        if leaf.width == 1:
            return (arr & 1).astype(np.bool_)
        return arr.astype(leaf.dtype)

    def _pointer(self, p: Pointer, where: str) -> int:
        array = p.buffer
        if not isinstance(array, np.ndarray):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InterpError("argument", f"{where}: expected Pointer of a numpy array, got {type(array).__name__}")
        root = array
        while isinstance(root.base, np.ndarray) and root.base.flags.c_contiguous:
            root = root.base
        if not array.flags.c_contiguous:
            raise InterpError("argument", f"{where}: expected a C-contiguous array; pass its base and a window")
        start = array.__array_interface__["data"][0]
        for buf, held in self._known.values():
            base = held.__array_interface__["data"][0]
            if base <= start and start + array.nbytes <= base + held.nbytes and array.nbytes:
                if p.window is not None:
                    self._windows(buf, p, start - base, where)
                return buf.base + (start - base) + p.byte_offset
            if start < base + held.nbytes and base < start + array.nbytes:
                raise InterpError("argument", f"{where}: overlaps {buf.name} partly; pass the array that holds both")
        data = array.reshape(-1).view(np.uint8)
        name = f'{where.partition("[")[0]} "{p.name}"' if p.name else where
        buf = self.memory.add(data, name, writable=array.flags.writeable)
        self._known[id(array)] = (buf, array)
        if p.window is not None:
            self._windows(buf, p, 0, where)
        return buf.base + p.byte_offset

    def _windows(self, buf: Buffer, p: Pointer, shift: int, where: str) -> None:
        valid = buf.valid if buf.valid is not None else np.zeros(buf.size, np.bool_)
        for off, length in p.window or ():
            if off < 0 or length < 0 or shift + off + length > buf.size:
                raise InterpError(
                    "argument", f"{where}: expected window rows within {buf.size} bytes, got ({off}, {length})"
                )
            valid[shift + off : shift + off + length] = True
        buf.valid = valid


def _dim(v: Sequence[int] | int, what: str) -> Dim3:
    dims = [v] if isinstance(v, int) else [int(x) for x in v]
    dims += [1] * (3 - len(dims))
    if len(dims) != 3 or any(d < 1 for d in dims):
        raise InterpError("argument", f"expected {what} of one to three positive integers, got {v!r}")
    return (dims[0], dims[1], dims[2])


def _static_dims(func: Operation, name: str) -> list[int]:
    got = attr_of(func, name)
    values = getattr(got, "get_values", None)
    return [int(v) for v in values()] if values is not None else []


def _find(program: Program, name: str) -> Operation:
    func = program.find(name)
    if func is None or not func.regions:
        known = sorted({symbol_name(o) for o in program.module.walk() if op_name(o).endswith(".func")})
        raise InterpError("argument", f"expected a function, one of {', '.join('@' + k for k in known)}; got @{name}")
    return func


def _stack_size(fn: Function) -> int:
    return fn.frame_size + max((_stack_size(f) for f in fn.callees), default=0)


def _registers(fn: Function, args: list[list[Value]]) -> Regs:
    regs = list(fn.template)
    for slots, values in zip(fn.params, args):
        for s, v in zip(slots, values):
            regs[s] = v
    return regs


# -- kernels ----------------------------------------------------------------------------------------------------------


def run_kernel(
    module: Operation,
    kernel: str,
    args: Sequence[Argument],
    grid: Sequence[int] | int = (1, 1, 1),
    block: Sequence[int] | int = (1, 1, 1),
    *,
    dynamic_smem: int = 0,
    schedule: str = "round-robin",
    seed: int = 0,
    overflow: str = "error",
    step_limit: int | None = None,
    memory_limit: int = DEFAULT_MEMORY_LIMIT,
    blocks: Sequence[int] | None = None,
    progress: Callable[[int, int], None] | None = None,
    width: str = "auto",
    cluster: Sequence[int] | int | None = None,
) -> RunReport:
    """Run a lowered kernel on the CPU; arrays behind pointer arguments are changed in place.

    - module: what holds the kernel (`gpu.module` inside or not), after `cute-to-base`; kernel: its symbol, or
      `module::symbol`
    - args: one entry a parameter: int, float, `Pointer`, or a nested tuple for a struct (an empty struct is `()`)
    - grid, block: numbers of blocks and of threads, x first; cluster: blocks of a cluster (default: what the kernel
      says, else 1)
    - dynamic_smem: bytes behind an `external` shared global of size 0
    - schedule: order of warps: "round-robin", "reverse" or "random" (by `seed`)
    - overflow: "error" reports arithmetic that breaks its `nsw`/`nuw` promise, "wrap" lets it wrap
    - step_limit: ops that groups may execute (default 10^8); memory_limit: bytes for shared and local memory
    - blocks: linear block numbers to run, the others are left out; progress: called with (blocks done, blocks in all)
    - width: "warp" runs warp by warp; "auto" runs whole blocks, many at once, where that cannot be told apart

    Raises InterpError: see its `kind`.

    Example: `run_kernel(m, "add", [Pointer(a), Pointer(b), Pointer(c), n], grid=(8,), block=(128,))`.
    """
    begin = time.perf_counter()
    grid3, block3 = _dim(grid, "a grid"), _dim(block, "a block")
    if schedule not in ("round-robin", "reverse", "random"):
        raise InterpError("argument", f'expected schedule "round-robin", "reverse" or "random", got {schedule!r}')
    if width not in ("auto", "warp"):
        raise InterpError("argument", f'expected width "auto" or "warp", got {width!r}')
    program = Program(module, overflow)
    func = _find(program, kernel)
    launch = Launch(program, Counter(DEFAULT_STEP_LIMIT if step_limit is None else step_limit), grid3, block3, True)
    if launch.threads > MAX_THREADS:
        raise InterpError("argument", f"expected at most {MAX_THREADS} threads a block, got {launch.threads}")
    _check_bounds(func, block3)
    declared = _static_dims(func, "nvvm.cluster_dim")
    launch.cluster = _dim(cluster if cluster is not None else (declared or (1, 1, 1)), "a cluster")
    if any(g % c for g, c in zip(grid3, launch.cluster)):
        raise InterpError(
            "argument", f"expected a grid that is a multiple of the cluster {launch.cluster}, got {grid3}"
        )
    fn = program.function(func)
    values = _bind_all(launch.memory, fn, args, kernel)
    _place_globals(launch, func, dynamic_smem)
    launch.local_size = _stack_size(fn)
    total = grid3[0] * grid3[1] * grid3[2]
    chosen = list(range(total)) if blocks is None else sorted({int(b) for b in blocks})
    if any(not 0 <= b < total for b in chosen):
        raise InterpError("argument", f"expected block numbers in [0, {total}), got {chosen[0]} to {chosen[-1]}")
    alone = launch.cluster == (1, 1, 1) and schedule == "round-robin" and width == "auto"
    launch.wide = alone and not _needs_warp(fn) and _lockstep(fn, func)
    template = _registers(fn, values)
    with np.errstate(all="ignore"):
        if launch.wide:
            _run_wide(launch, fn, template, chosen, memory_limit, progress)
        else:
            _run_warps(launch, fn, template, chosen, memory_limit, progress, schedule, seed)
    report = launch.report
    count = launch.count
    report.ops, report.lane_ops = count.steps, count.lane_ops
    report.loads, report.stores = count.loads, count.stores
    report.fences = launch.fences
    report.blocks = len(chosen)
    if launch.poison_stores:
        report.warnings.append(f"{launch.poison_stores} stores of a poison (undefined) value: 0 was written")
    report.seconds = time.perf_counter() - begin
    return report


def _bind_all(memory: GlobalMemory, fn: Function, args: Sequence[Argument], name: str) -> list[list[Value]]:
    if len(args) != len(fn.param_types):
        raise InterpError("argument", f"@{name}: expected {len(fn.param_types)} arguments, got {len(args)}")
    binder = _Binder(memory, vectorised=False)
    return [binder.bind(t, a, f"argument {i}") for i, (t, a) in enumerate(zip(fn.param_types, args))]


def _check_bounds(func: Operation, block: Dim3) -> None:
    exact = _static_dims(func, "nvvm.reqntid")
    if exact and tuple((exact + [1, 1])[:3]) != block:
        raise InterpError(
            "argument", f"expected the {exact} threads a block that the kernel requires, got {list(block)}"
        )
    most = _static_dims(func, "nvvm.maxntid")
    if most and block[0] * block[1] * block[2] > int(np.prod(most)):
        raise InterpError("argument", f"expected at most {most} threads a block, got {list(block)}")


def _needs_warp(fn: Function) -> bool:
    return bool(fn.needs_warp) or any(_needs_warp(f) or f.barriers for f in fn.callees)


def _collective(fn: Function) -> bool:
    return fn.collective or any(_collective(f) for f in fn.callees)


def _lockstep(fn: Function, func: Operation) -> bool:
    return barriers_uniform(func, fn.barriers)


def _memory_check(launch: Launch, lanes: int, smem: int, limit: int) -> None:
    need = lanes * launch.local_size + smem
    if need > limit:
        raise InterpError("limit", f"memory limit: {need} bytes of local and shared memory needed, {limit} allowed")


def _run_wide(
    launch: Launch,
    fn: Function,
    template: Regs,
    chosen: list[int],
    memory_limit: int,
    progress: Callable[[int, int], None] | None,
) -> None:
    """Blocks in lockstep, as many at once as fit `WIDE_LANES`."""
    padded = round_up(launch.threads, 32) if _collective(fn) else launch.threads
    row = round_up(launch.smem_size, 1024)
    per = max(1, WIDE_LANES // padded)
    if launch.local_size or row:
        per = max(1, min(per, (64 << 20) // max(1, padded * launch.local_size + row)))
    body = fn.body
    assert body is not None
    for first in range(0, len(chosen), per):
        part = chosen[first : first + per]
        n = len(part)
        _memory_check(launch, n * padded, n * row, memory_limit)
        tid = np.tile(np.arange(padded, dtype=np.int64), n) if n > 1 else np.arange(padded, dtype=np.int64)
        where: int | Array = part[0] if n == 1 else np.repeat(np.array(part, np.int64), padded)
        smem = _shared(n * row)
        starts = None if n == 1 or not row else np.repeat(np.arange(n, dtype=np.int64) * row, padded)
        launch.shared = {b: (smem, i * row) for i, b in enumerate(part)} if row else {}
        g = Group(launch, where, tid, smem, starts)
        launch.report.lanes = max(launch.report.lanes, g.lanes)
        regs = list(template)
        gen = body.run(regs, g)
        if gen is not None:
            for _ in gen:
                raise AssertionError("a group in lockstep has blocked")
        _retire(launch, g)
        if progress is not None:
            progress(first + n, len(chosen))


def _shared(size: int) -> Buffer:
    return Buffer(0, np.full(size, UNINIT_BYTE, np.uint8), "shared memory", shadow=np.zeros(size, np.uint8))


def _retire(launch: Launch, g: Group) -> None:
    launch.count.loads += g.loads
    launch.count.stores += g.stores
    if g.copies:
        launch.report.warnings.append(f"{len(g.copies)} cp.async were never waited for")


class _Warp:
    """A warp in the scheduler."""

    __slots__ = ("block", "gen", "group", "number")

    def __init__(self, group: Group, block: Block, number: int, gen: Generator[Wait, None, None]) -> None:
        self.group = group
        self.block = block
        self.number = number
        self.gen = gen


def _run_warps(
    launch: Launch,
    fn: Function,
    template: Regs,
    chosen: list[int],
    memory_limit: int,
    progress: Callable[[int, int], None] | None,
    schedule: str,
    seed: int,
) -> None:
    """Warp by warp. One cluster is resident; another joins whenever none of the resident warps can go on."""
    rng = random.Random(seed)
    waiting = _clusters(launch, chosen)
    waiting.reverse()
    warps: list[_Warp] = []
    launch.report.lanes = 32
    done, total = 0, len(chosen)
    quiet = 0
    seen = -1
    _memory_check(launch, round_up(launch.threads, 32), launch.smem_size, memory_limit)
    while warps or waiting:
        if not warps:
            warps.extend(_admit(launch, fn, template, waiting.pop()))
        order = list(warps)
        if schedule == "reverse":
            order.reverse()
        elif schedule == "random":
            rng.shuffle(order)
        moved = False
        for w in order:
            wait = w.group.wait
            if wait is not None and not wait.ready():
                continue
            w.group.wait = None
            try:
                w.group.wait = next(w.gen)
                moved |= not w.group.wait.spin
            except StopIteration:
                moved = True
                warps.remove(w)
                _retire(launch, w.group)
                w.block.warp_exits()
                w.block.groups.remove(w.group)
                if all(not b.groups for b in w.block.cluster.blocks):
                    for b in w.block.cluster.blocks:
                        del launch.blocks[b.linear]
                        launch.shared.pop(b.linear, None)
                        done += 1
                    if progress is not None:
                        progress(done, total)
        if moved or launch.count.progress != seen:
            quiet = 0
            seen = launch.count.progress
            continue
        quiet += 1
        polling = any(w.group.wait is not None and w.group.wait.spin for w in warps)
        if polling and quiet < SPIN_ROUNDS and not waiting:
            continue
        if waiting:
            resident = len(warps) * 32
            _memory_check(
                launch,
                resident + round_up(launch.threads, 32),
                (len(launch.blocks) + 1) * launch.smem_size,
                memory_limit,
            )
            warps.extend(_admit(launch, fn, template, waiting.pop()))
            quiet = 0
            continue
        raise _deadlock(warps)


def _clusters(launch: Launch, chosen: list[int]) -> list[list[int]]:
    """The chosen blocks, by cluster; a cluster is run whole."""
    c, grid = launch.cluster, launch.grid
    if c == (1, 1, 1):
        return [[b] for b in chosen]
    out: dict[Dim3, list[int]] = {}
    for b in range(grid[0] * grid[1] * grid[2]):
        at = (b % grid[0] // c[0], b // grid[0] % grid[1] // c[1], b // (grid[0] * grid[1]) // c[2])
        out.setdefault(at, []).append(b)
    wanted = set(chosen)
    return [members for members in out.values() if wanted & set(members)]


def _admit(launch: Launch, fn: Function, template: Regs, members: list[int]) -> list[_Warp]:
    """Make the blocks of a cluster resident."""
    cluster = Cluster()
    out: list[_Warp] = []
    count = (launch.threads + 31) // 32
    body = fn.body
    assert body is not None
    for linear in members:
        smem = _shared(round_up(launch.smem_size, 1024))
        block = Block(linear, smem, 0, cluster)
        block.live_warps = count
        cluster.blocks.append(block)
        launch.blocks[linear] = block
        launch.shared[linear] = (smem, 0)
        for number in range(count):
            tid = np.arange(32 * number, 32 * number + 32, dtype=np.int64)
            g = Group(launch, linear, tid, smem, None)
            block.groups.append(g)
            out.append(_Warp(g, block, number, _drive(body.run, list(template), g)))
    return out


def _drive(
    run: Callable[[Regs, Group], Generator[Wait, None, None] | None], regs: Regs, g: Group
) -> Generator[Wait, None, None]:
    gen = run(regs, g)
    if gen is not None:
        yield from gen


def _deadlock(warps: list[_Warp]) -> InterpError:
    notes: list[str] = []
    first = next((w for w in warps if w.group.wait is not None), warps[0])
    for w in warps[:64]:
        wait = w.group.wait
        x, y, z = w.group.block_coord(0)
        what = wait.text if wait is not None else "is ready"
        where = f" at {wait.info.location}" if wait is not None and wait.info.location else ""
        op = f" ({wait.info.name})" if wait is not None else ""
        notes.append(f"block ({x}, {y}, {z}) warp {w.number} {what}{op}{where}")
    if len(warps) > 64:
        notes.append(f"and {len(warps) - 64} more warps")
    wait = first.group.wait
    info = wait.info if wait is not None else None
    return InterpError(
        "deadlock",
        f"deadlock: {len(warps)} warps wait and none can go on",
        op=info.name if info else "",
        op_text=info.text if info else "",
        location=info.location if info else "",
        notes=tuple(notes),
    )


# -- host functions ---------------------------------------------------------------------------------------------------


def run_function(
    module: Operation,
    name: str,
    args: Sequence[Argument],
    *,
    overflow: str = "error",
    step_limit: int | None = None,
) -> tuple[Result, ...]:
    """Run a function on plain values; the results, one entry each, a struct as a nested tuple, poison as None.

    An argument may also be an array, of shape `(n,)` for a scalar parameter and `(n, …)` for a vector: then all n
    inputs are evaluated at once, and what depends on them comes back as an array.

    Example: for `func.func @f(%a: i32, %b: i32) -> i32` that adds, `run_function(m, "f", [2, 3]) == (5,)` and
    `run_function(m, "f", [np.arange(4), 10])` gives `(array([10, 11, 12, 13]),)`.
    """
    program = Program(module, overflow)
    func = _find(program, name)
    fn = program.function(func)
    if len(args) != len(fn.param_types):
        raise InterpError("argument", f"@{name}: expected {len(fn.param_types)} arguments, got {len(args)}")
    limit = DEFAULT_STEP_LIMIT if step_limit is None else step_limit
    launch = Launch(program, Counter(limit), (1, 1, 1), (1, 1, 1), False)
    binder = _Binder(launch.memory, vectorised=True)
    values = [binder.bind(t, a, f"argument {i}") for i, (t, a) in enumerate(zip(fn.param_types, args))]
    _place_globals(launch, func, 0)
    launch.local_size = _stack_size(fn)
    lanes = binder.lanes
    launch.threads = lanes
    g = Group(launch, 0, np.arange(lanes, dtype=np.int64), _shared(round_up(launch.smem_size, 1024)), None)
    regs = _registers(fn, values)
    body = fn.body
    assert body is not None
    with np.errstate(all="ignore"):
        gen = body.run(regs, g)
        if gen is not None:
            for wait in gen:
                raise InterpError("unsupported", f"expected a host function, got one that {wait.text}")
    leaves = [regs[s] for s in fn.out]
    out: list[Result] = []
    at = 0
    for t in fn.result_types:
        n = len(t.leaves)
        out.append(_result(t, leaves[at : at + n]))
        at += n
    return tuple(out)


def _result(t: Type, values: list[Value]) -> Result:
    if not t.children and len(t.leaves) == 1:
        v = values[0]
        return None if v is POISON else v  # type: ignore[return-value]
    out: list[Result] = []
    at = 0
    for child in t.children:
        n = len(child.leaves)
        out.append(_result(child, values[at : at + n]))
        at += n
    return tuple(out)


__all__ = ["Pointer", "RunReport", "run_function", "run_kernel"]
