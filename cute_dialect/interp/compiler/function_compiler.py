"""Compilation of ops to Python closures: one flat list of closures per block.

Each scalar or vector SSA value has a slot in a list of registers; an aggregate has one slot per leaf. A builder (see
`instructions`) inspects an op once, reads its attributes, allocates slots, and emits a closure `step(R, g)` over
registers and group. Constants are in the initial registers and cost nothing at run time. Builders are selected by op
name, so any class works, and so do ops that the context does not know.

**Steps.** A step is ``step(R, g)`` over registers and group; a step that may wait is a generator.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

from cute_dialect.interp.compiler import undefined
from cute_dialect.interp.compiler.switches import is_switch, stop_before
from cute_dialect.interp.errors import Fault, InterpError, OpInfo, attr_of, op_name, op_text
from cute_dialect.interp.machine.group import Group, TensorAccess, Wait
from cute_dialect.interp.memory.allocations import Pieces, local_allocation
from cute_dialect.interp.types import Leaf, Type, type_of
from cute_dialect.interp.values import POISON, Pending, Regs, Undefined, Value
from cute_dialect.ir.diagnostics import location_frames

if TYPE_CHECKING:  # pragma: no cover
    from xdsl.ir import Attribute, Block, Operation, SSAValue

    from cute_dialect.interp.exec.program import Program
    from cute_dialect.interp.memory.allocations import Allocation
    from cute_dialect.interp.reports.run_report import FlopCount


Step: TypeAlias = Callable[[Regs, Group], None]
GenStep: TypeAlias = Callable[[Regs, Group], Generator[Wait, None, None]]
Run: TypeAlias = "Callable[[Regs, Group], Generator[Wait, None, None] | None]"


class Code:
    """Straight-line code under construction."""

    def __init__(self, lists: list[tuple[list[Step], list[OpInfo]]], flops: FlopCount | None = None) -> None:
        self.lists = lists
        self.flops = flops
        self.parts: list[Run] = []
        self.steps: list[Step] = []
        self.infos: list[OpInfo] = []
        self.blocking = False

    def add(self, step: Step, info: OpInfo) -> None:
        """Append a step that never waits."""
        self.steps.append(step if self.flops is None else self.flops.step(step, info.source))
        self.infos.append(info)

    def add_blocking(self, gen: GenStep, info: OpInfo) -> None:
        """Append a step that may wait."""
        self._flush()
        self.blocking = True
        self.parts.append(_guarded(gen if self.flops is None else self.flops.blocking(gen, info.source), info))

    def _flush(self) -> None:
        if self.steps:
            self.parts.append(_straight(self.steps, self.infos))
            self.lists.append((self.steps, self.infos))
            self.steps, self.infos = [], []

    def finish(self) -> Run:
        """Return one runner for all steps."""
        self._flush()
        if len(self.parts) == 1:
            return self.parts[0]
        parts = tuple(self.parts)
        if not self.blocking:

            def run_all(R: Regs, g: Group) -> None:
                for p in parts:
                    p(R, g)

            return run_all

        def run_parts(R: Regs, g: Group) -> Generator[Wait, None, None]:
            for p in parts:
                inner = p(R, g)
                if inner is not None:
                    yield from inner

        return run_parts


def _straight(steps: list[Step], infos: list[OpInfo]) -> Run:
    def run(R: Regs, g: Group) -> None:
        n = len(steps)
        k = g.count
        k.steps += n
        k.lane_ops += n * g.mask.n
        it: Iterator[Step] = iter(steps)
        while True:
            try:
                for s in it:
                    s(R, g)
                return
            except InterpError:
                raise
            except Exception as e:
                at: int = n - 1 - it.__length_hint__()  # type: ignore[attr-defined]
                if not isinstance(e, Fault) and defer(infos[at], steps[at], R, g):
                    continue
                held = None if isinstance(e, Fault) else settle(infos[at], R, g)
                if held is None:
                    recover(e, infos[at], R, g)
                    continue
                try:
                    steps[at](R, g)
                except InterpError:
                    raise
                except Exception as e2:
                    recover(e2, infos[at], R, g)
                for s, v in held.items():
                    R[s] = v

    return run


def _guarded(gen: GenStep, info: OpInfo) -> Run:
    def run(R: Regs, g: Group) -> Generator[Wait, None, None]:
        k = g.count
        k.steps += 1
        k.lane_ops += g.mask.n
        try:
            yield from gen(R, g)
        except InterpError:
            raise
        except Exception as e:
            recover(e, info, R, g)

    return run


class Moved:
    """Results of an op that moves registers of a tcgen05.ld in flight. The op is executed when the warp waits.

    The ops are executed in order, so a long chain of moves does not recurse.
    """

    __slots__ = ("_inputs", "_results", "_run", "_values")

    def __init__(self, info: OpInfo, step: Step, R: Regs, g: Group) -> None:
        self._inputs = {s: R[s] for s in info.operands}
        self._results = info.results
        self._values: list[Value] | None = None
        active = g.mask

        def run(regs: dict[int, Value]) -> None:
            mask, g.mask = g.mask, active
            try:
                step(regs, g)  # type: ignore[arg-type]
            finally:
                g.mask = mask

        self._run = run
        g.tensor_moves.append(self.execute)

    def waits(self) -> bool:
        """Return True if the op has not been executed."""
        return self._values is None

    def execute(self) -> None:
        """Execute the op. Raises Fault until the loads of its operands have been waited for."""
        if self._values is None:
            regs = {s: v.result() if isinstance(v, Pending) else v for s, v in self._inputs.items()}
            self._run(regs)
            self._values = [regs[d] for d in self._results]

    def register(self, index: int) -> Value:
        """Return result `index`. Raises Fault until the loads have been waited for."""
        self.execute()
        assert self._values is not None
        return self._values[index]


def _in_flight(v: Value) -> bool:
    if not isinstance(v, Pending):
        return False
    source = v.source
    return source.waits() if isinstance(source, Moved) else isinstance(source, TensorAccess) and not source.waited


def defer(info: OpInfo, step: Step, R: Regs, g: Group) -> bool:
    """Make the results of an op pending if it only moves registers of a tcgen05.ld that is in flight.

    Machine code may hold such registers anywhere, so moving them before the wait is no error.
    """
    if info.name not in undefined.MOVES or not any(_in_flight(R[s]) for s in info.operands):
        return False
    moved = Moved(info, step, R, g)
    for i, d in enumerate(info.results):
        R[d] = Pending(moved, i)
    return True


def settle(info: OpInfo, R: Regs, g: Group) -> dict[int, Value] | None:
    """Resolve pending and undefined operands to plain values before an op acts on them. None if there are none.

    Registers whose asynchronous writer was waited for keep their value. Operands that are undefined only in other lanes
    are returned, to be restored after the op.
    """
    found = False
    held: dict[int, Value] = {}
    for s in info.operands:
        v = R[s]
        if not isinstance(v, (Pending, Undefined)):
            continue
        try:
            R[s] = v.result() if isinstance(v, Pending) else v.used(g.mask, info.name)
        except Fault as f:
            raise g.fail(f, info) from None
        found = True
        if isinstance(v, Undefined):
            held[s] = v
    return held if found else None


def recover(e: Exception, info: OpInfo, R: Regs, g: Group) -> None:
    """Handle an exception in an op: make its results poison if an operand was, else raise InterpError."""
    if isinstance(e, Fault):
        raise g.fail(e, info) from None
    for s in info.operands:
        v = R[s]
        if isinstance(v, Undefined):
            try:
                v.used(g.mask, info.name)
            except Fault as f:
                raise g.fail(f, info) from None
    poisoned = any(R[s] is POISON for s in info.operands)
    if poisoned and info.pure:
        for s in info.results:
            R[s] = POISON
        return
    if poisoned:
        raise g.fail(Fault("poison", f"{info.name} on a poison (undefined) value"), info) from e
    if isinstance(e, MemoryError):
        raise g.fail(Fault("limit", "out of memory"), info) from e
    raise g.fail(Fault("internal", f"internal error of the interpreter: {type(e).__name__}: {e}"), info) from e


Builder: TypeAlias = "Callable[[FnCompiler, Operation], None]"


LOCAL_GUARD = 128  # unused bytes after each alloca
TERMINATORS = (
    "scf.yield",
    "scf.condition",
    "llvm.return",
    "func.return",
    "gpu.return",
    "gpu.yield",
    "llvm.unreachable",
    "ub.unreachable",
)


class RegionCode:
    """A compiled region. After `run`, its results are in the slots `out`."""

    __slots__ = ("blocking", "out", "run")

    def __init__(self, run: Run, blocking: bool, out: tuple[int, ...]) -> None:
        self.run = run
        self.blocking = blocking
        self.out = out


class Function:
    """A compiled function. `template` holds the initial registers: constants, and POISON for all others."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.params: tuple[tuple[int, ...], ...] = ()
        self.param_types: tuple[Type, ...] = ()
        self.result_types: tuple[Type, ...] = ()
        self.template: list[Value] = []
        self.body: RegionCode | None = None
        self.frame_size = 0
        self.out: tuple[int, ...] = ()
        self.leaves: list[Leaf] = []
        self.barriers: list[Operation] = []
        self.needs_warp: list[str] = []
        self.needs_clocks: list[str] = []  # ops that order threads by other means than block-wide barriers
        self.collective = False
        self.callees: list[Function] = []
        self.allocas: list[Allocation] = []  # allocas in its frame


class FnCompiler:
    """Compiles one function. The builders of `instructions` receive it."""

    def __init__(self, program: Program, op: Operation, name: str) -> None:
        self.program = program
        self.op = op
        self.fn = Function(name)
        self.slots: dict[SSAValue, tuple[int, ...]] = {}
        self.lists: list[tuple[list[Step], list[OpInfo]]] = []
        self.code = Code(self.lists, program.flops)
        self.frame = 0
        self.roots: set[int] = set()  # slots that an op other than a pure step reads
        self.cfg: list[tuple[int, int]] = []  # enclosing CFGs: (id, block)
        self.homes: list[tuple[tuple[int, int], ...]] = []
        self.liveouts: dict[tuple[int, int], set[int]] = {}
        self.next_cfg = 0
        self.loops = 0  # nesting depth in scf.while and CFG cycles
        self._ins: list[int] = []
        self._outs: list[int] = []
        self._types: dict[int, tuple[Attribute, Type]] = {}
        self.op_now = op  # the op being compiled
        self.overflow_errors = program.overflow == "error"
        self.pieces = Pieces(program.segments)
        self.ptx_registers: dict[str, int] = {}  # declared by inline PTX for the whole function
        self.late: dict[int, int] = {}  # slots whose poison becomes a fault when a select picks it

    # -- slots --------------------------------------------------------------------------------------------------------

    def new_slot(self, leaf: Leaf, value: Value = POISON, *, fixed: bool = False) -> int:
        """Allocate a register. `fixed`: a constant or block argument, exempt from live-out tracking."""
        self.fn.template.append(value)
        self.fn.leaves.append(leaf)
        self.homes.append(() if fixed else tuple(self.cfg))
        return len(self.fn.template) - 1

    def leaf_of(self, slot: int) -> Leaf:
        return self.fn.leaves[slot]

    def slots_of(self, value: SSAValue) -> tuple[int, ...]:
        """Return the slots of an operand without recording a use, for ops that only rename it."""
        got = self.slots.get(value)
        if got is None:
            owner = value.owner
            text = op_name(owner) if hasattr(owner, "operands") else "a block argument"  # type: ignore[arg-type]
            raise InterpError("internal", f"operand defined by {text} is used before it is compiled")
        return got

    def uses(self, value: SSAValue) -> tuple[int, ...]:
        """Return the slots of an operand and record the use."""
        got = self.slots_of(value)
        for s in got:
            self._note_use(s)
        self._ins.extend(got)
        return got

    def reads(self, slot: int) -> None:
        """Record that the current op reads a slot that is not one of its operands."""
        if slot not in self._ins:
            self._note_use(slot)
            self._ins.append(slot)

    def type_of(self, value: SSAValue) -> Type:
        """Return a value's type as leaves, cached by identity since hashing a type with many fields is slow."""
        known = self._types.get(id(value.type))
        if known is None or known[0] is not value.type:
            known = self._types[id(value.type)] = value.type, type_of(value.type)
        return known[1]

    def use(self, value: SSAValue) -> int:
        """Return the slot of a scalar or vector operand."""
        got = self.uses(value)
        if len(got) != 1:
            raise InterpError("unsupported", f"an operand has type {value.type}; use a scalar or vector")
        return got[0]

    def _note_use(self, slot: int) -> None:
        home = self.homes[slot]
        for (cfg, block), (here_cfg, here_block) in zip(home, self.cfg):
            if cfg != here_cfg:
                break
            if block != here_block:
                self.liveouts.setdefault((cfg, block), set()).add(slot)
                break

    def defines(self, value: SSAValue) -> tuple[int, ...]:
        """Allocate slots for a result."""
        slots = tuple(self.new_slot(leaf) for leaf in type_of(value.type).leaves)
        self.slots[value] = slots
        self._outs.extend(slots)
        return slots

    def define(self, value: SSAValue) -> int:
        """Allocate the slot of a scalar or vector result."""
        got = self.defines(value)
        if len(got) != 1:
            raise InterpError("unsupported", f"a result has type {value.type}; use a scalar or vector")
        return got[0]

    def alias(self, value: SSAValue, slots: Sequence[int]) -> None:
        """Map a result to existing slots, at no cost at run time."""
        self.slots[value] = tuple(slots)

    def constant(self, value: SSAValue, leaf_values: Sequence[Value]) -> None:
        """Define a result that is constant."""
        leaves = type_of(value.type).leaves
        self.slots[value] = tuple(self.new_slot(leaf, v, fixed=True) for leaf, v in zip(leaves, leaf_values))

    # -- code ---------------------------------------------------------------------------------------------------------

    def emit(self, op: Operation, step: Step, *, pure: bool = True, keep: bool = False, track: bool = True) -> None:
        """Emit a step.

        Args:
            pure: Poison operands make the results poison, and the step is removed if its results are not read.
            keep: Do not remove a pure step.
            track: Track undefined bits for the step. False if the step does so itself.
        """
        info = self._info(op, pure)
        info.removable = pure and not keep
        if track and self.program.tracks:
            step = undefined.track(self, op, step, info)
        self.code.add(step, info)
        if not info.removable:
            self.roots.update(self._ins)

    def emit_blocking(self, op: Operation, gen: GenStep, info: OpInfo | None = None) -> None:
        """Emit a step that may wait: a generator function that yields as long as it waits."""
        self.roots.update(self._ins)
        info = info or self._info(op, False)
        self.code.add_blocking(undefined.track_waiting(gen, info) if self.program.tracks else gen, info)

    def info(self, op: Operation) -> OpInfo:
        """Return the op's entry for diagnostics."""
        return self._info(op, False)

    def _info(self, op: Operation, pure: bool) -> OpInfo:
        return OpInfo(op, op_name(op), tuple(self._ins), tuple(self._outs), pure)

    def emit_control(self, op: Operation, gen: GenStep, blocking: bool) -> None:
        """Emit a structured op: a generator function that yields only if `blocking`."""
        info = self._info(op, False)
        self.roots.update(self._ins)
        if blocking:
            self.code.add_blocking(gen, info)
            return

        def step(R: Regs, g: Group) -> None:
            for _ in gen(R, g):
                raise AssertionError("a region without blocking ops has blocked")

        self.code.add(step, info)

    def compile_op(self, op: Operation) -> None:
        """Compile an op with the builder for its name. Raises InterpError if there is none."""
        name = op_name(op)
        builder = self.program.builder(name)
        outer = self._ins, self._outs
        self._ins, self._outs = [], []
        self.op_now = op
        if builder is None:
            raise InterpError(
                "unsupported",
                f"{name} is not supported by the interpreter; it runs lowered kernels (cute-to-base)",
                op=name,
                op_text=op_text(op),
                frames=location_frames(op.location),
            )
        if self.program.stops and is_switch(op):
            self.emit_blocking(op, stop_before(self.info(op)))
        try:
            builder(self, op)
        except InterpError as e:
            if e.op:
                raise
            raise InterpError(
                e.kind, e.message, op=name, op_text=op_text(op), frames=location_frames(op.location), notes=e.notes
            ) from None
        self.pieces.note(self, op)
        self._ins, self._outs = outer

    def compile_block_ops(self, block: Block) -> tuple[Run, bool, Operation | None]:
        """Compile the ops of a block without its terminator: (runner, may block, terminator).

        The terminator is None if a structured op omits an empty `scf.yield`.
        """
        outer, self.code = self.code, Code(self.lists, self.program.flops)
        last: Operation | None = block.last_op
        if last is not None and not last.successors and op_name(last) not in TERMINATORS:
            last = None
        op = block.first_op
        while op is not None and op is not last:
            self.compile_op(op)
            op = op.next_op
        code, self.code = self.code, outer
        return code.finish(), code.blocking, last

    def block_args(self, block: Block, *, fixed: bool = True) -> tuple[int, ...]:
        """Allocate slots for a block's arguments, flattened."""
        out: list[int] = []
        for arg in block.args:
            slots = tuple(self.new_slot(leaf, fixed=fixed) for leaf in type_of(arg.type).leaves)
            self.slots[arg] = slots
            out.extend(slots)
        return tuple(out)

    def flat_defines(self, values: Sequence[SSAValue]) -> tuple[int, ...]:
        """Allocate slots for several results and return them, concatenated."""
        out: list[int] = []
        for v in values:
            out.extend(self.defines(v))
        return tuple(out)

    def flat_uses(self, values: Sequence[SSAValue]) -> tuple[int, ...]:
        """Return the slots of several operands, concatenated."""
        out: list[int] = []
        for v in values:
            out.extend(self.uses(v))
        return tuple(out)

    def alloca(self, op: Operation, size: int, align: int) -> int:
        """Reserve bytes in the function's stack frame, followed by a guard, and return their offset."""
        align = max(align, 1)
        self.frame = (self.frame + align - 1) // align * align
        at = self.frame
        self.frame += size + LOCAL_GUARD
        self.fn.allocas.append(local_allocation(op, at, size))
        return at

    def prune(self) -> None:
        """Remove pure steps whose results are not read.

        This is not only faster: the overflow of an unused index is not a fault.
        """
        live = self.roots | set(self._ins)
        for part in self.fn.out:
            live.add(part)
        sources: dict[int, tuple[int, ...]] = {}
        for _, infos in self.lists:
            for info in infos:
                for r in info.results:
                    sources[r] = info.operands
        todo = list(live)
        while todo:
            for s in sources.get(todo.pop(), ()):
                if s not in live:
                    live.add(s)
                    todo.append(s)
        for steps, infos in self.lists:
            kept = [i for i, info in enumerate(infos) if not info.removable or any(r in live for r in info.results)]
            steps[:] = [steps[i] for i in kept]
            infos[:] = [infos[i] for i in kept]


def result_types(op: Operation) -> Sequence[Attribute]:
    """Return the result types of a function op (func.func, llvm.func, gpu.func), without void."""
    ft = attr_of(op, "function_type")
    outs = getattr(ft, "outputs", None)
    if outs is None:
        outs = getattr(ft, "output", None)
        return () if outs is None or outs.name == "llvm.void" else (outs,)
    return tuple(t for t in outs.data if t.name != "llvm.void")
