"""The abstract machine: steps of warps on base IR, with the checks of the protocol.

Each step mirrors the semantics of the instruction in `interp`: what it waits for, its accesses, and whom it orders.
A step returns False if it has to wait; it has then changed nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar, cast

import numpy as np
from xdsl.ir import Block, Operation, SSAValue

from cute_dialect.interp.errors import attr_of
from cute_dialect.interp.instructions.moves import enum_word
from cute_dialect.interp.memory.buffers import SMEM_ORIGIN, WINDOW_BITS
from cute_dialect.prove.arithmetic import Evaluator, Learned, Reader, Run, size_in_bytes, trips_between
from cute_dialect.prove.attributes import integer_of
from cute_dialect.prove.decisions import Restart
from cute_dialect.prove.effects import MAY_BE, bytes_stored, multicast_mask, segment_sizes, signals, wait_count
from cute_dialect.prove.facts import DONE, READ, WRITE, Actor, Facts, Record, Table
from cute_dialect.prove.program import Box, Code, Program, closure
from cute_dialect.prove.regions import Partition, Region
from cute_dialect.prove.sequences import is_while, iterations, settled, value_varies, variable, while_loop
from cute_dialect.prove.state import (
    ALL_LANES,
    COPIES_ARRIVE,
    LOOPS,
    Flight,
    Frame,
    MBarrier,
    Named,
    Product,
    State,
    Warp,
)
from cute_dialect.prove.tensor_form import WORDS
from cute_dialect.prove.values import (
    UNKNOWN,
    Accumulator,
    Counter,
    Guard,
    Lanes,
    Linear,
    Spread,
    Strided,
    Terms,
    Value,
    symbol,
    trips_of,
    uniform,
)
from cute_dialect.prove.verdict import NotProved, Violation
from cute_dialect.prove.wgmma_form import wgmma_form, whole_struct

T = TypeVar("T")
MOST_STEPS = 400_000
"""Steps between two decisions. Loops of known length end, so more than that means a loop that never blocks."""


@dataclass(slots=True)
class Instruction:
    """An op that a warp executes: a step of the protocol, control flow or a computation.

    Attributes:
        args: Functions that return the operands.
        kind: Kind of the effect, empty without one.
        compute: The function that returns the result.
        slot: Slot of the result.
        elects: True for an election of a lane, which is unknown under a condition that is not known.
        cache: Masks of accesses by warp, lanes and addresses, and other constants of the op.
    """

    op: Operation
    args: tuple[Reader, ...]
    kind: str
    step: Callable[[State, Warp, Instruction, int], bool] | None = None
    control: Callable[[State, Warp, Frame, Instruction], None] | None = None
    compute: Run | None = None
    slot: int = 0
    elects: bool = False
    cache: dict[object, object] = field(default_factory=dict[object, object])

    def once(self, key: object, make: Callable[[], T]) -> T:
        """Return a value that is made on first use."""
        got = self.cache.get(key)
        if got is None:
            got = self.cache[key] = make()
        return cast("T", got)


class Machine(Evaluator):
    """Runs the warps of a block."""

    def __init__(self, program: Program, learned: Learned) -> None:
        super().__init__(program, learned)
        self.sites: dict[tuple[str, Actor], Operation] = {}
        self.trace: list[tuple[int, Operation]] | None = None
        self._regions: dict[object, Region] = {}
        self._instructions: dict[Code, list[Instruction]] = {}
        self._last_loops: dict[Code, int] = {}
        self._trips: dict[
            tuple[Operation, int | Linear, int | Linear, int | Linear],
            tuple[Linear, int, int, int | Linear, int | Linear],
        ] = {}
        for w in range(program.warps * program.blocks):
            learned.classes.setdefault(w, [ALL_LANES])
        self._bits: dict[tuple[int, int], tuple[int, int]] = {}
        everyone = 0
        for w, classes in sorted(learned.classes.items()):
            for c, lanes in enumerate(classes):
                bit = self._bit(("all", w, lanes))
                own = self._bit(("own", w, lanes)) if lanes.bit_count() > 1 else bit
                self._bits[w, c] = (bit, own)
                everyone |= bit
        self.table = Table(everyone)
        units = program.window // learned.unit
        self.pieces = Partition((units + WORDS * len(program.allocations)) * program.blocks)
        self._windows = [Region(((1 << units) - 1) << (units * rank)) for rank in range(program.blocks)]
        for window in self._windows:
            self.pieces.mask(window)

    def start(self) -> State:
        """Return the state at the launch of a block."""
        s = State(Facts(self.table))
        warps, blocks = self.program.warps, self.program.blocks
        each = min(255, 65536 // self.program.threads // 8 * 8)
        s.pool = (65536 - each * self.program.threads,) * blocks
        for n in range(warps * blocks):
            w = Warp(n, np.arange(32, dtype=np.int64) + 32 * (n % warps), n // warps)
            w.registers = each
            w.frames.append(self._frame(self.program.kernel.regions[0].block, None, ALL_LANES))
            s.warps.append(w)
        return s

    def _frame(
        self,
        block: Block,
        op: Operation | None,
        lanes: int,
        partial: int = 0,
        may_be: bool = False,
        guard: Guard | None = None,
    ) -> Frame:
        return Frame(self.program.code(block), op, lanes, partial=partial, entered=lanes, may_be=may_be, guard=guard)

    # -- holders of facts ---------------------------------------------------------------------------------------------

    def _bit(self, holder: Actor) -> int:
        return 1 << self.learned.holders.setdefault(holder, len(self.learned.holders))

    def classes_of(self, w: Warp, lanes: int) -> list[int]:
        """Return the classes that make up some lanes. Raises Restart if they split a class."""
        classes = self.learned.classes[w.number]
        out: list[int] = []
        for c, members in enumerate(classes):
            if members & lanes == members:
                out.append(c)
            elif members & lanes:
                classes[c : c + 1] = [members & lanes, members & ~lanes]
                raise Restart
        return out

    def _separate(self, w: Warp) -> None:
        """Distinguish all lanes of a warp."""
        self.learned.classes[w.number] = [1 << i for i in range(32)]
        raise Restart

    def sources(self, w: Warp, classes: Sequence[int]) -> int:
        """Return the bits of the knowledge that some classes release together."""
        out = 0
        for c in classes:
            bit, own = self._bits[w.number, c]
            out |= bit | own
        return out

    def targets(self, w: Warp, classes: Sequence[int]) -> int:
        """Return the bits of classes that learn something."""
        out = 0
        for c in classes:
            out |= self._bits[w.number, c][0]
        return out

    def _renew(self, s: State, token: Hashable, known: int) -> None:
        """Record an event that only some holders know. Copies and wgmma in flight do not carry it."""
        number = self.table.token(token)
        s.facts.token(number, known)
        bit = 1 << number
        for products in s.products.values():
            for p in products.values():
                p.tokens &= ~bit
        for i, f in enumerate(s.flying):
            if f.tokens & bit:
                s.flying[i] = f._replace(tokens=f.tokens & ~bit)

    def _known(self, s: State, sources: int) -> int:
        """Return the mask of the tokens that one of some holders knows."""
        out = 0
        for token, known in s.facts.tokens.items():
            if known & sources:
                out |= 1 << token
        return out

    def _learn(self, s: State, tokens: int, holders: int) -> None:
        """Order some holders after the events of a mask of tokens."""
        for token, known in s.facts.tokens.items():
            if tokens >> token & 1:
                s.facts.tokens[token] = known | holders

    def _record(self, kind: str, actor: Actor, ticket: int) -> Record:
        return self.table.record(kind, actor, ticket, 0, 0)

    # -- shared memory ------------------------------------------------------------------------------------------------

    def place(self, offset: int) -> str:
        """Return the name of a place in shared memory for messages."""
        rank, offset = divmod(offset, self.program.window)
        block = f" of block {rank} of the cluster" if self.program.blocks > 1 else ""
        return f"shared memory byte {offset}{self.program.names.place(offset)}{block}"

    def region(self, offsets: Sequence[int], nbytes: int, op: Operation) -> Region:
        """Return the region of accesses of `nbytes` bytes."""
        key = (tuple(offsets), nbytes)
        got = self._regions.get(key)
        if got is None:
            unit, mask = self.learned.unit, 0
            for at in set(offsets):
                inside = at % self.program.window <= self.program.shared_size - nbytes
                if not 0 <= at < self.program.window * self.program.blocks or not inside:
                    raise Violation("oob", f"access of {nbytes} bytes at {self.place(at)}, out of bounds", op)
                while at % unit or nbytes % unit:
                    unit //= 2
                if unit != self.learned.unit:
                    self.learned.unit = unit
                    raise Restart
                mask |= ((1 << (nbytes // unit)) - 1) << (at // unit)
            got = self._regions[key] = Region(mask)
        return got

    def mask(self, s: State, region: Region) -> int:
        """Return the pieces of a region, and bring the masks of a state up to date."""
        got = self.pieces.mask(region)
        self.refresh(s)
        return got

    def refresh(self, s: State) -> None:
        """Bring the masks of a state up to date with the pieces that accesses have told apart."""
        if s.facts.version != self.pieces.version:
            s.barrier_units = self.pieces.current(s.barrier_units, s.facts.version)
            s.facts.refresh(self.pieces)

    def offset(self, w: Warp, value: Value, lanes: int, op: Operation, what: str) -> int:
        """Return the byte offset of an address that all active lanes share, in the shared memory of the cluster."""
        return self._in_cluster(w, self.number(value, lanes, op, what), op)

    def _in_cluster(self, w: Warp, address: int, op: Operation) -> int:
        """Return the offset in the cluster of an address of the own block, or of one that `mapa` has returned."""
        rank = (address >> WINDOW_BITS) - 1 if address >> WINDOW_BITS else w.rank
        local = (address & ((1 << WINDOW_BITS) - 1)) - SMEM_ORIGIN
        if not 0 <= local < self.program.window or not 0 <= rank < self.program.blocks:
            raise Violation("oob", f"access of shared memory byte {local}{self.program.names.place(local)}", op)
        return local + rank * self.program.window

    def number(self, value: Value, lanes: int, op: Operation, what: str) -> int:
        """Return an integer that all active lanes share."""
        if isinstance(value, np.ndarray):
            active = value[lane_array(lanes)]
            value = int(active[0]) if len(active) and (active == active[0]).all() else UNKNOWN
        if not isinstance(value, int):
            raise NotProved(f"{what} is not known", op, _why_unknown(value))
        return value

    def access(
        self,
        s: State,
        w: Warp,
        c: int,
        record: Record,
        region: Region,
        op: Operation,
        what: str,
        is_written: bool = False,
    ) -> None:
        """Check and record an access that class c of a warp makes or issues.

        Args:
            is_written: True if the memory is written whenever the access happens.
        """
        mask = self.mask(s, region)
        if overlap := mask & s.barrier_units:
            verb = "overwrites" if record.is_write else "reads"
            raise Violation("sync", f"{what} {verb} {self._first_byte(overlap)}, which holds a live mbarrier", op)
        if not record.is_write and not is_written and (missing := mask & ~s.facts.written):
            self._uninitialized(s, record, missing, op, what)
        touching = s.facts.touching(mask)
        if touching:
            self._ordered(w, c, record, touching, op, what)
        if self.program.blocks > 1:
            for rank, window in enumerate(self._windows):
                if rank != w.rank and mask & self.pieces.mask(window):
                    self._visit(s, w, rank, op)
        s.facts.add(record, mask, touching)
        self.sites[record.kind, record.actor] = op

    def _uninitialized(self, s: State, record: Record, missing: int, op: Operation, what: str) -> None:
        """Report a read of bytes that may be unwritten."""
        maybe = missing & s.facts.maybe_written()
        if (maybe or record.may_be) and self.learned.skips and not self.learned.asks_all:
            self.learned.asks_all = True
            raise Restart
        if record.may_be:
            verb, text = "may read", "which may be unwritten: conditions of reads and of writes are not related"
        elif missing == maybe:
            verb, text = "reads", "which is written only under a condition that may be false"
        else:
            verb, text, missing = "reads", "which nothing has written", missing & ~maybe
        raise Violation("uninit", f"{what} {verb} {self._first_byte(missing)}, {text}", op)

    def _first_byte(self, mask: int) -> str:
        units = self.pieces.units(mask)
        return self.place(((units & -units).bit_length() - 1) * self.learned.unit)

    def _ordered(
        self, w: Warp, c: int, record: Record, touching: list[tuple[Record, int]], op: Operation, what: str
    ) -> None:
        """Check that an access comes after all earlier accesses that conflict with it."""
        kind, is_write = record.kind, record.is_write
        bit, own = self._bits[w.number, c]
        for earlier, common in touching:
            if not is_write and not earlier.is_write:
                continue
            known, fenced = earlier.known, earlier.fenced
            if not known & bit:
                if known & own:
                    self._separate(w)
                self._race(earlier, common, kind, op, what)
            if record.is_async and earlier.is_write and not earlier.is_async and not fenced & bit:
                if fenced & own:
                    self._separate(w)
                raise Violation(
                    "race",
                    f"{what} uses {self._first_byte(common)}, which a thread has written, but no "
                    "fence.proxy.async makes the write visible to asynchronous copies",
                    op,
                    self.sites.get((earlier.kind, earlier.actor)),
                )

    def _visit(self, s: State, w: Warp, rank: int, op: Operation) -> None:
        """Record that a warp uses the shared memory of another block, which must not end before."""
        if not any(o.frames for o in s.warps if o.rank == rank):
            raise Violation("sync", f"access to the shared memory of block {rank} of the cluster, which has ended", op)
        self._renew(s, ("visit", rank, w.number), self.sources(w, self.classes_of(w, w.frames[-1].lanes)))
        self.sites["visit", (rank, w.number)] = op

    def _block_ends(self, s: State, rank: int) -> None:
        """Check that other blocks and bulk copies have finished with the shared memory of a block that ends."""
        mine = 0
        for w in s.warps:
            if w.rank == rank:
                mine |= self.sources(w, range(len(self.learned.classes[w.number])))
        for o in s.warps:
            known = s.facts.tokens.get(self.table.token(("visit", rank, o.number)), mine)
            if not known & mine:
                where = self.sites.get(("visit", (rank, o.number)))
                text = f"block {rank} of the cluster may end before another block uses its shared memory; add a "
                raise Violation("exit", text + "cluster barrier before its end", where)
        names = self.table.names()
        for token, known in s.facts.tokens.items():
            name = cast("tuple[object, ...]", names[token])
            if name[0] == "copies" and s.warps[cast("int", name[1])].rank == rank and not known & mine:
                text = "a cp.async may be in flight when its block ends; wait for its mbarrier"
                raise Violation("exit", text, self.sites.get(("copies", (name[1],))))
        window = self.mask(s, self._windows[rank])
        for r, mask in s.facts.records.items():
            if r.actor[0] == "tma" and mask & window and not r.known & mine:
                block = f"block {rank} of the cluster" if self.program.blocks > 1 else "the block"
                text = f"a bulk copy may be in flight when {block} ends; wait for its mbarrier"
                raise Violation("exit", text, self._site(r.actor))

    def _race(self, earlier: Record, common: int, kind: str, op: Operation, what: str) -> None:
        verb = "reads" if kind == READ else "writes"
        raise Violation(
            "race",
            f"{what} {verb} {self._first_byte(common)}, not ordered after the {_describe(earlier)}",
            op,
            self.sites.get((earlier.kind, earlier.actor)),
        )

    # -- running ------------------------------------------------------------------------------------------------------

    def advance(self, s: State, w: Warp, single: bool = False, tiles: int | None = None) -> bool:
        """Run a warp until it has to wait or ends. Return True if it took a step.

        Args:
            single: Stop after one step that other warps can see.
            tiles: Number of tiles that the warp may begin before others have ended theirs, None for any.
        """
        moved = False
        budget = MOST_STEPS
        frames, env = w.frames, w.env
        while frames:
            budget -= 1
            if not budget:
                raise NotProved("a loop does not end, or is too long to follow", frames[-1].op)
            f = frames[-1]
            if f.undecided:
                if tiles is not None and is_while(f.op) and self._is_ahead(s, w, f):
                    if not tiles:
                        return moved
                    tiles, moved = tiles - 1, True
                self._iterate(s, w, f)
                continue
            instructions = self._instructions.get(f.code)
            if instructions is None:
                instructions = self._instructions[f.code] = [self._instruction(op) for op in f.code.ops]
            i = instructions[f.index]
            while i.compute is not None:
                env[i.slot] = UNKNOWN if f.may_be and i.elects else i.compute(s, w, f.lanes)
                f.index += 1
                i = instructions[f.index]
            if i.control is not None:
                i.control(s, w, f, i)
                if not frames:
                    return True
                continue
            assert i.step is not None
            if f.may_be and i.kind not in MAY_BE:
                raise self._not_known(w)
            waiting = w.joined
            if not i.step(s, w, i, f.lanes):
                return moved or w.joined is not waiting  # An arrival that has to wait is a step, too.
            if self.trace is not None:
                self.trace.append((w.number, i.op))
            f.index += 1
            moved = True
            if single:
                return True
        return moved

    def _is_ahead(self, s: State, w: Warp, f: Frame) -> bool:
        """Return True if another warp has not ended the tile before the one that a warp is about to begin.

        Without this, a role that skips tiles gets ahead of the others by any number of them.
        """
        if not f.at:
            return False
        following = f.position + f.pace
        for o in s.warps:
            if o is w or not o.frames:
                continue
            tiles = [g for g in o.frames if is_while(g.op)]
            if any(g.loop is None or g.position + g.pace * g.undecided < following for g in tiles):
                return True
            if not tiles and any(g.index <= self._last_loop(g.code) for g in o.frames):
                return True
        return False

    def _last_loop(self, code: Code) -> int:
        """Return the position of the last op of a block that contains a loop over tiles, -1 if there is none."""
        got = self._last_loops.get(code)
        if got is None:
            loops = [n for n, op in enumerate(code.ops) if any(map(is_while, op.walk()))]
            got = self._last_loops[code] = loops[-1] if loops else -1
        return got

    def _not_known(self, w: Warp) -> NotProved:
        """Return the error that a condition of the innermost branches and loops is not known."""
        outer = next(f for f in w.frames if f.may_be)
        op = outer.op
        assert op is not None
        if op.name == "scf.while":
            return NotProved("the number of iterations of a while loop depends on a value that is not known", op)
        if op.name == "scf.for":
            return NotProved("the bounds of a loop are not known", op, _why_unknown(self.get(w, op.operands[1])))
        condition = op.operands[0]
        if self._compares_lanes(w, condition):
            return NotProved(
                "a branch compares threads with a size, so some threads of a warp may take it and others not",
                op,
                "move the synchronization out of the branch, or compare sizes only with sizes",
            )
        why = _why_unknown(self.get(w, condition))
        return NotProved("a branch depends on a value that is not known", op, why)

    def _compares_lanes(self, w: Warp, condition: SSAValue) -> bool:
        """Return True if a condition depends on a comparison of a value per lane with a size."""
        for value in closure([condition]):
            if isinstance(value.owner, Operation) and value.owner.name == "arith.cmpi":
                sides = [self.get(w, v) for v in value.owner.operands]
                lanes = any(isinstance(v, (np.ndarray, Spread)) for v in sides)
                if lanes and any(isinstance(v, (Linear, Spread)) for v in sides):
                    return True
        return False

    def _instruction(self, op: Operation) -> Instruction:
        """Return the step of an op, its control flow, or its computation."""
        effect = self.program.effects.get(op)
        i = Instruction(op, tuple(self.reader(v) for v in op.operands), effect.kind if effect else "")
        control = {
            "scf.yield": self._leave,
            "scf.if": self._branch,
            "scf.for": self._enter,
            "scf.while": self._enter_while,
        }.get(op.name)
        if op.name.endswith(".return"):
            control = self._return
        if control is not None:
            i.control = control
        elif effect is not None:
            i.step = getattr(self, f"_do_{effect.kind}")
        else:
            i.compute, i.slot, i.elects = self.compiled(op), self.program.slot(op.results[0]), "elect" in op.name
        return i

    def _return(self, s: State, w: Warp, f: Frame, i: Instruction) -> None:
        w.frames.pop()
        self._ends(s, w)
        if not any(o.frames for o in s.warps if o.rank == w.rank):
            self._block_ends(s, w.rank)

    def _branch(self, s: State, w: Warp, f: Frame, i: Instruction) -> None:
        op, c = i.op, i.args[0](w)
        if isinstance(c, np.ndarray):
            chosen = mask_of(c) & f.lanes
            if chosen not in (0, f.lanes):
                first, second = i.once("effects", lambda: [self._has_effect(r.walk()) for r in op.regions])
                if first and second:
                    raise NotProved("the lanes of a warp take both sides of a branch", op)
                f.index += 1
                if second:
                    w.frames.append(self._frame(op.regions[1].block, op, f.lanes & ~chosen, 2, f.may_be, f.guard))
                else:
                    w.frames.append(self._frame(op.regions[0].block, op, chosen, 1, f.may_be, f.guard))
                return
            c = int(chosen != 0)
        if isinstance(c, Linear) and self.program.may_be(op) and not self.learned.asks_all:
            self.learned.skips = True
        elif isinstance(c, Linear):
            c = int(self.is_positive(s, w, c, op))
        f.index += 1
        if not isinstance(c, int):
            for r in op.results:
                w.env[self.program.slot(r)] = self._either(w, op, r.index) if r in self.program.pending else UNKNOWN
            if op in self.program.scopes:
                # Any lane may take either side: the accesses of both may happen.
                guard = None
                if isinstance(c, Guard) and not (f.may_be and f.guard is None):
                    guard = c if f.guard is None else c & f.guard
                blocks = [(r.block, guard if n == 0 else None) for n, r in enumerate(op.regions) if r.blocks]
                w.frames += [self._frame(b, op, f.lanes, 3, True, g) for b, g in reversed(blocks)]
            return
        region = op.regions[0 if c else 1]
        if region.blocks:
            w.frames.append(self._frame(region.block, op, f.lanes, may_be=f.may_be, guard=f.guard))

    def _has_effect(self, ops: Iterable[Operation]) -> bool:
        return any(o in self.program.effects for o in ops)

    def _enter(self, s: State, w: Warp, f: Frame, i: Instruction) -> None:
        op = i.op
        lower, upper, step = bounds = i.args[0](w), i.args[1](w), i.args[2](w)
        new = self._frame(op.regions[0].block, op, f.lanes, may_be=f.may_be)
        new.bounds, new.undecided = bounds, True
        known = (int, Linear)
        if not isinstance(step, known) or not all(isinstance(v, (*known, np.ndarray)) for v in (lower, upper)):
            new.may_be = True
        if isinstance(step, int) and step > 0 and all(isinstance(v, (int, np.ndarray)) for v in (lower, upper)):
            new.guard = f.guard  # otherwise the loop may have no iteration
        for n, slot in i.once("relevant", lambda: self._relevant(op.regions[0].block.args[1:])):
            w.env[slot] = i.args[3 + n](w)
        f.index += 1
        w.frames.append(new)

    def _iterate(self, s: State, w: Warp, f: Frame) -> None:
        """Decide whether a loop goes on."""
        op = f.op
        assert op is not None and f.bounds is not None
        if op.name == "scf.while":
            self._iterate_while(s, w, f, op)
            return
        lower, upper, step = f.bounds
        iv: Value
        numbers = (int, np.ndarray)
        if isinstance(lower, int) and isinstance(upper, int) and isinstance(step, int):
            iv = lower + f.at * step
            goes = iv < upper
        elif isinstance(lower, numbers) and isinstance(upper, numbers) and isinstance(step, int) and step > 0:
            iv = np.asarray(lower + f.at * step + np.zeros(32, np.int64))
            f.lanes = mask_of(np.asarray(iv < upper, np.int64)) & f.lanes
            goes = f.lanes != 0
        elif f.may_be and not (isinstance(lower, int) and isinstance(upper, int)):
            # Each lane may run any number of iterations. Without synchronization, one stands for all of them.
            goes, iv = f.at == 0, UNKNOWN
            for arg in op.regions[0].block.args[1:]:
                if arg in self.program.pending:
                    raise self._not_known(w)
                w.env[self.program.slot(arg)] = UNKNOWN
        else:
            goes, iv = self._question(s, w, f, op)
        f.undecided = False
        if op in self.learned.outer:
            w.tile = f.position if f.loop is not None else iv if isinstance(iv, int) else w.tile
        args = op.regions[0].block.args
        if goes:
            f.index = 0
            w.env[f.code.args[0]] = iv
            return
        for r, arg in zip(op.results, args[1:]):
            if r in self.program.relevant:
                w.env[self.program.slot(r)] = self.get(w, arg)
        self._forget(w, f)
        w.frames.pop()

    def _enter_while(self, s: State, w: Warp, f: Frame, i: Instruction) -> None:
        op = i.op
        f.index += 1
        if op not in self.program.scopes:
            for _, slot in i.once("results", lambda: self._relevant(op.results)):
                w.env[slot] = UNKNOWN
            return
        loop = while_loop(op)
        body = op.regions[1].block
        new = self._frame(body, op, f.lanes, may_be=f.may_be)
        digest = loop.digest([self._fixed(s, w, v) for v in loop.leaves])
        new.bounds, new.undecided = (0, UNKNOWN if digest is None else iterations(digest), 1), True
        if digest is None:
            new.may_be = True
        elif any(g.loop is not None for g in w.frames):
            raise NotProved("a while loop inside a loop of unknown length is not modelled", op)
        for n, slot in i.once("relevant", lambda: self._relevant(body.args)):
            w.env[slot] = i.args[loop.passes[n]](w)
        w.frames.append(new)

    def _fixed(self, s: State, w: Warp, value: SSAValue) -> Value:
        """Return a value that is fixed before a loop begins, although an op in the loop may compute it."""
        op = value.owner
        is_pure = isinstance(op, Operation) and not op.regions and op not in self.program.effects
        if is_pure and isinstance(op, Operation) and (not op.operands or op.name == "llvm.extractvalue"):
            return self.evaluate(s, w, op, ALL_LANES)
        return self.get(w, value)

    def _iterate_while(self, s: State, w: Warp, f: Frame, op: Operation) -> None:
        """Decide whether a while loop goes on."""
        assert f.bounds is not None
        upper, loop, args = f.bounds[1], while_loop(op), op.regions[1].block.args
        if isinstance(upper, Linear):
            terms = upper.terms
            self._learn_while(op, terms)
            base = self.base(w, terms)
            goes = self.is_positive(s, w, Linear(terms, -f.at), op, base if f.at else None)
            f.loop, f.position, w.tile = base, f.at, f.at
        else:
            # The number is not known. Without synchronization, one iteration stands for all of them.
            goes = f.at == 0
            for arg in args:
                if arg in self.program.pending:
                    raise self._not_known(w)
                w.env[self.program.slot(arg)] = UNKNOWN
        f.undecided = False
        if goes:
            f.index = 0
            if isinstance(upper, Linear):
                for arg, carried in zip(args, loop.passes):
                    if carried in loop.variables:
                        digest = str(upper.terms[0][0][1])
                        w.env[self.program.slot(arg)] = variable(digest, loop.variables.index(carried))
            return
        for r, arg, carried in zip(op.results, args, loop.passes):
            if r in self.program.relevant:
                w.env[self.program.slot(r)] = UNKNOWN if carried in loop.variables else self.get(w, arg)
        self._forget(w, f)
        w.frames.pop()

    def _learn_while(self, op: Operation, terms: Terms) -> None:
        """Learn that a while loop counts tiles. Raises Restart if that is new."""
        learned = self.learned
        if op not in learned.outer or terms not in learned.outer_bases or terms not in learned.loop_bases:
            learned.outer.add(op)
            learned.outer_bases.add(terms)
            learned.loop_bases.add(terms)
            raise Restart

    def _question(self, s: State, w: Warp, f: Frame, op: Operation) -> tuple[bool, Value]:
        """Ask whether a loop with a symbolic bound goes on."""
        assert f.bounds is not None
        lower, upper, step = f.bounds
        known = (int, Linear)
        if not isinstance(lower, known) or not isinstance(upper, known) or not isinstance(step, known):
            raise NotProved("the bounds of a loop are not known", op, _why_unknown(upper))
        lower, step = self.concrete(s, w, lower, op), self.concrete(s, w, step, op)
        if not f.at and isinstance(upper, Linear):
            self._learn_outer(w)
            if isinstance(lower, int) and isinstance(step, int) and lower >= 0:
                upper = _counted(upper)
            number = self.concrete(s, w, upper, op)
            if isinstance(number, int) and isinstance(lower, int):
                f.static, upper = self.base(w, upper.terms), number
        f.bounds = (lower, upper, step)
        assert isinstance(lower, known) and isinstance(upper, known) and isinstance(step, known)
        if isinstance(lower, int) and isinstance(upper, int) and isinstance(step, int):
            return lower + f.at * step < upper, lower + f.at * step
        span = upper - lower if isinstance(upper, Linear) else None
        if isinstance(span, int) and isinstance(step, int) and step > 0:
            return f.at * step < span, lower + f.at * step
        key = op, lower, upper, step
        plan = self._trips.get(key)
        if plan is None:
            plan = self._trips[key] = _plan_of(lower, upper, step, op)
        trips, first, pace, lower, grain = plan
        at = first + pace * f.at
        difference = trips - at
        assert isinstance(difference, Linear)
        self._learn_loop(w, trips.terms)
        base = self.base(w, trips.terms)
        goes = self.is_positive(s, w, difference, op, base if f.at else None)
        f.loop, f.position = base, at
        if isinstance(f.bounds[0], int) and isinstance(f.bounds[2], int):
            return goes, Counter(base, at)
        return goes, Strided(Counter(base, at), lower, grain)

    def _learn_loop(self, w: Warp, terms: Terms) -> None:
        """Learn that a loop of unknown length has a base."""
        self._learn_outer(w)
        if terms not in self.learned.loop_bases:
            self.learned.loop_bases.add(terms)
            raise Restart

    def _learn_outer(self, w: Warp) -> None:
        """Learn that a loop contains one with a symbolic bound: the outermost of unknown length, or of known length."""
        outer = next((g for g in w.frames[:-1] if g.loop is not None), None)
        if outer is None or outer.op is None or outer.loop is None:
            tiles = next((g.op for g in w.frames[:-1] if _is_of_known_length(g)), None)
            if tiles is not None and tiles not in self.learned.outer:
                self.learned.outer.add(tiles)
                raise Restart
            return
        if outer.op not in self.learned.outer or outer.loop[0] not in self.learned.outer_bases:
            self.learned.outer.add(outer.op)
            self.learned.outer_bases.add(outer.loop[0])
            raise Restart

    def _leave(self, s: State, w: Warp, f: Frame, i: Instruction) -> None:
        parent = f.op
        assert parent is not None
        values = [read(w) for read in i.once("values", lambda: [self._held_reader(v) for v in i.op.operands])]
        if parent.name in LOOPS:
            is_while = parent.name == "scf.while"
            args = parent.regions[1].block.args if is_while else parent.regions[0].block.args[1:]
            if is_while:
                values = [settled(values[carried]) for carried in while_loop(parent).passes]
            for n, slot in i.once("relevant", lambda: self._relevant(args)):
                v = values[n]
                w.env[slot] = v if f.lanes == f.entered else _merged(f.lanes, v, w.env.get(slot, UNKNOWN))
            for slot in f.code.slots:
                w.env.pop(slot, None)
            f.at += 1
            f.undecided = True
            return
        if f.partial != 3:
            for n, slot in i.once("relevant", lambda: self._relevant(parent.results)):
                w.env[slot] = self._merge(s, w, f, parent, n, values[n]) if f.partial else values[n]
        self._forget(w, f)
        w.frames.pop()

    def _relevant(self, values: Sequence[SSAValue]) -> list[tuple[int, int]]:
        """Return the positions and slots of the values that the protocol depends on."""
        return [(n, self.program.slot(v)) for n, v in enumerate(values) if v in self.program.relevant]

    def _held_reader(self, value: SSAValue) -> Reader:
        """Return a function that returns a value, or the registers of a wgmma that it may hold."""
        return (lambda w: self.held(w, value)) if value in self.program.pending else self.reader(value)

    def _merge(self, s: State, w: Warp, f: Frame, op: Operation, index: int, value: Value) -> Value:
        """Return a result of an scf.if that only some lanes have entered."""
        other = op.regions[1 if f.partial == 1 else 0].block
        last = other.last_op
        assert last is not None
        v = last.operands[index]
        slots: list[int] = []
        for o in other.ops:  # pure, or it would have been refused
            if o.results and not o.regions and o not in self.program.effects:
                for r in o.results:
                    slots.append(self.program.slot(r))
                    w.env[slots[-1]] = self.evaluate(s, w, o, ALL_LANES & ~f.lanes)
        got = _merged(f.lanes, value, self.get(w, v))
        for slot in slots:
            w.env.pop(slot, None)
        return got

    def _either(self, w: Warp, op: Operation, index: int) -> Value:
        """Return the registers of wgmma that a result of an scf.if has, whichever side is taken."""
        out: Value = UNKNOWN
        for region in op.regions:
            last = region.block.last_op
            assert last is not None
            held = self.held(w, last.operands[index])
            if isinstance(held, Accumulator):
                out = _merged(0, out, held)
        return out

    def _forget(self, w: Warp, f: Frame) -> None:
        for slot in f.code.slots:
            w.env.pop(slot, None)
        if f.op is not None and f.op.name in LOOPS:
            for slot in f.code.args:
                w.env.pop(slot, None)

    def _ends(self, s: State, w: Warp) -> None:
        """Check that nothing of a warp is in flight at its end."""
        for c in range(len(self.learned.classes[w.number])):
            for kind, text in (
                ("bulk", "a bulk copy may still read shared memory"),
                ("copy", "a cp.async is in flight"),
            ):
                actor = (kind, w.number, c)
                arrivals = self._arrivals(s) if kind == "copy" else 0  # checked when the block ends
                if any(r.actor == actor and r.ticket != DONE and not r.known & arrivals for r in s.facts.records):
                    raise Violation("exit", f"{text} when its thread ends", self._site(actor))
        if w.issued > w.waited:
            raise Violation("exit", "a wgmma is in flight when its warp ends", None)
        for (rank, ident), b in list(s.named.items()):
            if rank == w.rank and b.expected is None:
                self._complete_named(s, (rank, ident), b)
        self._complete_cluster(s)

    def _arrivals(self, s: State) -> int:
        """Return the holders that stand for the arrivals at all mbarriers."""
        out = 0
        for at in s.mbarriers:
            out |= self._bit(("arrivals", at))
        return out

    def _site(self, actor: Actor) -> Operation | None:
        return self.sites.get((READ, actor)) or self.sites.get((WRITE, actor))

    # -- mbarriers ----------------------------------------------------------------------------------------------------

    def _do_mbarrier_init(self, s: State, w: Warp, i: Instruction, lanes: int) -> bool:
        op = i.op
        at = self.offset(w, i.args[0](w), lanes, op, "the address of an mbarrier")
        count = self.number(i.args[1](w), lanes, op, "the count of an mbarrier")
        (c, *more) = self.classes_of(w, lanes)
        if more or self.learned.classes[w.number][c].bit_count() > 1 or at in s.mbarriers:
            raise Violation("sync", f"mbarrier.init of {self.place(at)}, which is already initialized", op)
        if not 1 <= count < 1 << 20:
            raise Violation("sync", f"mbarrier.init with a count of {count}; it must be 1 to 2^20 - 1", op)
        if at % 8:
            raise Violation("sync", f"mbarrier.init of {self.place(at)}; an mbarrier is aligned to 8 bytes", op)
        if self.learned.unit > 8:
            held = Region(1 << at // self.learned.unit)
        else:
            held = self.region([at], 8, op)
        units = self.mask(s, held)
        record = self._record(WRITE, ("thread", w.number, c), DONE)
        self._ordered(w, c, record, s.facts.touching(units), op, "the initialization of an mbarrier")
        s.barrier_units |= units
        s.mbarriers[at] = MBarrier(count, count)
        self._renew(s, ("init", at), self._bits[w.number, c][0])
        s.facts.fenced[self.table.token(("init", at))] = 0
        self.sites["mbarrier", ("init", at)] = op
        w.inits = (*w.inits, (at, c))
        return True

    def _do_fence_init(self, s: State, w: Warp, i: Instruction, lanes: int) -> bool:
        classes = self.classes_of(w, lanes)
        for at, c in w.inits:
            if c in classes:
                s.mbarriers[at].fenced = True
                s.facts.fenced.pop(self.table.token(("init", at)), None)  # needed no more
        return True

    def _do_fence_proxy(self, s: State, w: Warp, i: Instruction, lanes: int) -> bool:
        op = i.op
        kind = enum_word(attr_of(op, "kind"))
        if kind != "async.global":
            s.facts.fence(self.sources(w, self.classes_of(w, lanes)))
        return True

    def _barrier(self, s: State, w: Warp, c: int, at: int, op: Operation, copy: bool = False) -> MBarrier:
        """Return the mbarrier at an offset, whose initialization must be visible to a class of lanes."""
        b = s.mbarriers.get(at)
        if b is None:
            raise Violation("sync", f"no mbarrier is initialized at {self.place(at)}", op)
        bit = self._bits[w.number, c][0]
        token = self.table.token(("init", at))
        known = s.facts.tokens[token]
        if copy and not b.fenced and not s.facts.fenced[token] & bit:
            raise Violation(
                "race", f"a copy signals the mbarrier at {self.place(at)}, but no fence follows its init", op
            )
        if not known & bit:
            raise Violation("race", f"the init of the mbarrier at {self.place(at)} is not visible to this thread", op)
        return b

    def _in_phase(self, s: State, w: Warp, c: int, at: int, b: MBarrier, op: Operation) -> None:
        """Check that an operation is ordered after the last completed phase, so it counts for the phase in progress."""
        if b.phase and not s.facts.knows(("phase", at), self._bits[w.number, c][0]):
            raise Violation(
                "order",
                f"this operation on the mbarrier at {self.place(at)} is not ordered after its previous phase, so it "
                "may count for that phase",
                op,
            )

    def _do_mbarrier_arrive(self, s: State, w: Warp, i: Instruction, lanes: int) -> bool:
        op = i.op
        pointer = i.args[0](w)
        lanes = self._predicated(w, op, lanes)
        if not lanes:
            return True
        nbytes = 0
        if op.name.endswith("expect_tx"):
            nbytes = self.number(i.args[1](w), lanes, op, "the number of expected bytes")
        classes = self.classes_of(w, lanes)
        offsets = self._lane_offsets(w, pointer, lanes, op, "the address of an mbarrier")
        for at in sorted(set(offsets.values())):
            here = [c for c in classes if offsets[_first(self.learned.classes[w.number][c])] == at]
            if any(len({offsets[i] for i in _lanes(self.learned.classes[w.number][c])}) > 1 for c in classes):
                self._separate(w)
            for c in here:
                b = self._barrier(s, w, c, at, op)
                self._in_phase(s, w, c, at, b, op)
            if (rank := at // self.program.window) != w.rank:
                self._visit(s, w, rank, op)
            b = s.mbarriers[at]
            n = sum(self.learned.classes[w.number][c].bit_count() for c in here)
            b.bytes += nbytes * n
            if n > b.pending:
                raise Violation(
                    "sync",
                    f"{n} arrivals at the mbarrier at {self.place(at)} with only {b.pending} of {b.count} pending",
                    op,
                )
            b.pending -= n
            s.facts.carry(self.sources(w, here), self._bit(("arrivals", at)))
            self._complete(s, at, b, op)
        return True

    def _predicated(self, w: Warp, op: Operation, lanes: int) -> int:
        """Return the lanes whose predicate of inline PTX is true."""
        if op.name != "nvvm.inline_ptx" or len(op.operands) < 2:
            return lanes
        c = self.get(w, op.operands[1])
        if isinstance(c, np.ndarray):
            return lanes & mask_of(c)
        if not isinstance(c, int):
            raise NotProved("the predicate of an arrival is not known", op, _why_unknown(c))
        return lanes if c else 0

    def _lane_offsets(self, w: Warp, pointer: Value, lanes: int, op: Operation, what: str) -> dict[int, int]:
        """Return the byte offset of each active lane."""
        if isinstance(pointer, np.ndarray):
            return {i: self._in_cluster(w, int(pointer[i]), op) for i in _lanes(lanes)}
        if not isinstance(pointer, int):
            raise NotProved(f"{what} is not known", op, _why_unknown(pointer))
        return dict.fromkeys(_lanes(lanes), self._in_cluster(w, pointer, op))

    def _complete(self, s: State, at: int, b: MBarrier, op: Operation | None) -> None:
        """Complete the phase of an mbarrier if nothing is pending."""
        if b.pending or b.bytes:
            return
        left = sum(f.nbytes for f in s.flying if f.barrier == at)
        if left:
            raise Violation(
                "sync",
                f"the mbarrier at {self.place(at)} completes its phase while {left} bytes of copies that signal it are "
                "in flight",
                op,
            )
        arrivals, published = self._bit(("arrivals", at)), self._bit(("published", at))
        for w in s.warps:
            for (where, c), lag in list(w.lag.items()):
                if where != at:
                    continue
                taken = ("taken", at, w.number, c)
                if lag == 0 and self.table.token(taken) in s.facts.tokens and not s.facts.knows(taken, arrivals):
                    raise Violation(
                        "order",
                        f"the mbarrier at {self.place(at)} may complete two phases while warp {w.number} still waits "
                        "for the first",
                        op,
                    )
                w.lag[where, c] = min(2, lag + 1)
        s.facts.carry(arrivals, published)
        if at in self.learned.skipped and b.phase:
            self._renew(s, ("earlier", at), s.facts.tokens[self.table.token(("phase", at))])
        self._renew(s, ("phase", at), published | arrivals)
        b.pending = b.count
        b.phase, b.parity, b.delivers = min(2, b.phase + 1), b.parity ^ 1, False

    def _do_mbarrier_wait(self, s: State, w: Warp, i: Instruction, lanes: int) -> bool:
        op = i.op
        at = self.offset(w, i.args[0](w), lanes, op, "the address of an mbarrier")
        parity = self.number(i.args[1](w), lanes, op, "the parity of a wait") & 1
        classes = self.classes_of(w, lanes)
        passes = all([self._may_pass(s, w, c, at, parity, op) for c in classes])
        if not passes:
            return False
        for c in classes:
            w.lag[at, c] = 0
            self._renew(s, ("taken", at, w.number, c), self._bits[w.number, c][1])
        s.facts.carry(self._bit(("published", at)), self.targets(w, classes))
        return True

    def _may_pass(self, s: State, w: Warp, c: int, at: int, parity: int, op: Operation) -> bool:
        """Return True if a wait of a class of lanes passes.

        Let m be the phase in progress. A wait with the parity of m waits for phase n = m, and any other for n = m - 1,
        which is complete (n = -1 before the first completion: the wait passes at once). Another schedule may reach the
        wait in another phase m'. It waits for the same phase n there if n <= m' <= n + 1:

        - m' <= n + 1, because phase n + 1 completes only after the wait has passed, which `_complete` checks.
        - n <= m', if the completion of phase n - 1 is ordered before the wait, which is checked here.

        The latter holds for n <= 0, and if the thread itself has taken phase n - 1 or n: no phase has completed since
        (`lag` 0), or one and the wait is for that one. Otherwise the thread skips phases, as a consumer of a ping-pong
        GEMM skips those of the other's tiles. Then it must be ordered after the completion of phase n - 1 or n in
        another way, such as a barrier with a thread that has taken it.
        """
        b = self._barrier(s, w, c, at, op)
        lag, current = w.lag.get((at, c)), parity == b.parity
        if lag is None:
            is_ordered = b.phase == 0 or (b.phase == 1 and not current)  # n <= 0
        else:
            is_ordered = lag == 0 or (lag == 1 and not current)
        if not is_ordered and not self._knows_phase(s, w, c, at, current):
            if lag is None:
                text = f"the first wait at the mbarrier at {self.place(at)} may miss a phase and wait for the next"
            elif lag == 1:
                text = f"this wait at the mbarrier at {self.place(at)} may pass a phase early"
            else:
                text = f"this wait at the mbarrier at {self.place(at)} is two phases late, so its parity is ambiguous"
            raise Violation("order", text, op)
        return not current

    def _knows_phase(self, s: State, w: Warp, c: int, at: int, current: bool) -> bool:
        """Return True if a class is ordered after the phase before the one that it waits for, or after a later one.

        Args:
            current: True if it waits for the phase in progress, False for the one before.
        """
        bit = self._bits[w.number, c][0]
        if s.facts.knows(("phase", at), bit):
            return True
        if current:
            return False
        if at not in self.learned.skipped:
            self.learned.skipped.add(at)
            raise Restart
        return s.facts.knows(("earlier", at), bit)

    # -- barriers of the block ----------------------------------------------------------------------------------------

    def _do_barrier(self, s: State, w: Warp, i: Instruction, lanes: int) -> bool:
        op = i.op
        if w.passed:
            w.passed, w.joined = False, None
            return True
        if w.joined is not None:
            return False
        if lanes != ALL_LANES:
            raise Violation("sync", "a barrier in divergent code: some threads of the warp do not reach it", op)
        arrives = op.name == "llvm.call_intrinsic"
        ident, expected = 0, None
        values = [self.number(self.get(w, v), lanes, op, "the id or count of a barrier") for v in op.operands]
        sizes = (1, 1) if arrives else segment_sizes(op) or (len(values), 0)
        if sizes[0]:
            ident = values[0]
        if sizes[1]:
            expected = values[sizes[0]]
        if not 0 <= ident < 16 or (expected is not None and (expected <= 0 or expected % 32)):
            raise Violation(
                "sync", f"barrier {ident} with {expected} threads; ids are 0 to 15, counts multiples of 32", op
            )
        at = w.rank, ident
        b = s.named.setdefault(at, Named())
        classes = self.classes_of(w, lanes)
        bit = self._bits[w.number, 0][0]
        for party in b.before:
            if not s.facts.knows(("party", at, party), self.sources(w, classes)):
                raise Violation(
                    "race",
                    f"barrier {ident} may still be in use: this arrival is not ordered after that of warp {party} in "
                    "the previous phase",
                    op,
                )
        if b.arrived and b.expected != expected:
            raise Violation("sync", f"warps specify different thread counts of barrier {ident}", op)
        b.expected = expected
        b.arrived += 32
        b.parties = (*b.parties, w.number)
        s.facts.carry(self.sources(w, classes), self._bit(("meeting", at)))
        self._renew(s, ("party*", at, w.number), bit | self._bit(("meeting", at)))
        if not arrives:
            w.joined = at
        self._complete_named(s, at, b)
        if arrives or w.passed:
            w.passed, w.joined = False, None
            return True
        return False

    def _do_cluster_arrive(self, s: State, w: Warp, i: Instruction, lanes: int) -> bool:
        op = i.op
        if lanes != ALL_LANES:
            raise Violation("sync", "a cluster barrier in divergent code: some threads of the warp do not reach it", op)
        if w.gathered is not None:
            raise Violation("sync", "a warp arrives twice at the cluster barrier without a wait between", op)
        w.gathered = False
        meeting = self._bit(("cluster meeting",))
        if op.name.endswith("relaxed"):
            # fence.mbarrier.init releases the initializations before it, even to a relaxed arrival.
            for at, _ in w.inits:
                if s.mbarriers[at].fenced:
                    s.facts.tokens[self.table.token(("init", at))] |= meeting
        else:
            s.facts.carry(self.sources(w, self.classes_of(w, lanes)), meeting)
        self._complete_cluster(s)
        return True

    def _complete_cluster(self, s: State) -> None:
        """Complete the phase of the cluster barrier if all live warps have arrived."""
        live = [w for w in s.warps if w.frames]
        if live and all(w.gathered is False for w in live):
            for w in live:
                w.gathered = True
            s.facts.carry(self._bit(("cluster meeting",)), self._bit(("cluster met",)))

    def _do_cluster_wait(self, s: State, w: Warp, i: Instruction, lanes: int) -> bool:
        op = i.op
        if w.gathered is None:
            raise Violation("sync", "a warp waits at the cluster barrier without an arrival", op)
        if not w.gathered:
            return False
        w.gathered = None
        s.facts.carry(self._bit(("cluster met",)), self.targets(w, self.classes_of(w, ALL_LANES)))
        return True

    def _complete_named(self, s: State, ident: tuple[int, int], b: Named) -> None:
        need = 32 * sum(bool(w.frames) for w in s.warps if w.rank == ident[0]) if b.expected is None else b.expected
        if not b.arrived or b.arrived < need:
            return
        for party in b.before:
            s.facts.tokens.pop(self.table.token(("party", ident, party)), None)
        for party in set(b.parties):
            now, arrived = (self.table.token((kind, ident, party)) for kind in ("party", "party*"))
            s.facts.tokens[now] = s.facts.tokens.pop(arrived)
        b.arrived, b.before, b.parties = 0, tuple(sorted(set(b.parties))), ()
        meeting = self._bit(("meeting", ident))
        for w in s.warps:
            if w.joined == ident:
                w.passed = True
                s.facts.carry(meeting, self.targets(w, self.classes_of(w, ALL_LANES)))

    def _do_warp_sync(self, s: State, w: Warp, i: Instruction, lanes: int) -> bool:
        op = i.op
        mask = self.number(i.args[0](w), lanes, op, "the mask of a warp barrier") & ALL_LANES
        if mask & lanes != mask or not mask:
            raise Violation("sync", "bar.warp.sync names lanes that do not execute it", op)
        classes = self.classes_of(w, lanes)
        if len(classes) > 1 or lanes.bit_count() > 1:
            s.facts.carry(self.sources(w, classes), self.targets(w, classes))
        return True

    def _do_registers(self, s: State, w: Warp, i: Instruction, lanes: int) -> bool:
        op = i.op
        count = integer_of(op, "regCount")
        increase = enum_word(attr_of(op, "action")) == "increase"
        if w.resized:
            raise NotProved("a warp changes its number of registers twice", op)
        if (count < w.registers) if increase else (count > w.registers):
            raise Violation(
                "sync", f"setmaxnreg {'increase' if increase else 'decrease'} from {w.registers} to {count}", op
            )
        more = 32 * (count - w.registers)
        if more > s.pool[w.rank]:
            return False
        s.pool = tuple(free - more if rank == w.rank else free for rank, free in enumerate(s.pool))
        w.registers, w.resized = count, True
        return True

    # -- bulk copies --------------------------------------------------------------------------------------------------

    def _issuer(self, w: Warp, lanes: int, op: Operation) -> int:
        classes = self.classes_of(w, lanes)
        if len(classes) != 1 or lanes.bit_count() != 1:
            raise Violation("race", f"{lanes.bit_count()} threads issue the same bulk copy; elect one", op)
        return classes[0]

    def _do_tensor_load(self, s: State, w: Warp, i: Instruction, lanes: int) -> bool:
        op = i.op
        box = self.program.box(op.operands[1])
        if box is None:
            raise NotProved("the size of a TMA copy is not known: its tensor map is not an argument of the kernel", op)
        return self._load(s, w, op, lanes, signals(op), box)

    def _do_bulk_load(self, s: State, w: Warp, i: Instruction, lanes: int) -> bool:
        op = i.op
        nbytes = self.number(i.args[3](w), lanes, op, "the size of a bulk copy")
        return self._load(s, w, op, lanes, 2, Box(nbytes, nbytes))

    def _load(self, s: State, w: Warp, op: Operation, lanes: int, signal: int, box: Box) -> bool:
        """Issue a copy to shared memory that signals the mbarrier in the operand `signal`."""
        c = self._issuer(w, lanes, op)
        start = self.offset(w, self.get(w, op.operands[0]), lanes, op, "the destination of a bulk copy")
        at = self.offset(w, self.get(w, op.operands[signal]), lanes, op, "the mbarrier of a bulk copy")
        window = self.program.window
        for rank in self._targets_of_copy(w, op, lanes, start // window):
            here, there = (rank * window + x % window for x in (start, at))
            b = self._barrier(s, w, c, there, op, copy=True)
            self._in_phase(s, w, c, there, b, op)
            record = self._record(WRITE, ("tma", there), DONE)
            self.access(s, w, c, record, self.region([here], box.placed, op), op, "the bulk copy")
            tokens = self._known(s, self.sources(w, (c,))) & self.table.order
            s.flying.append(Flight(there, box.counted, here, tokens))
        return True

    def _targets_of_copy(self, w: Warp, op: Operation, lanes: int, rank: int) -> Sequence[int]:
        """Return the ranks of the blocks that a copy writes to: those of a multicast mask, or of its destination."""
        multicast = multicast_mask(op)
        if multicast is None:
            return (rank,)
        mask = self.number(self.get(w, multicast), lanes, op, "the mask of a multicast copy") & 0xFFFF
        if mask >> self.program.blocks:
            raise Violation("sync", f"the multicast mask {mask:#x} names blocks that the cluster does not have", op)
        return [r for r in range(self.program.blocks) if mask >> r & 1]

    def land(self, s: State, index: int) -> None:
        """Complete a copy in flight."""
        f = s.flying.pop(index)
        b = s.mbarriers[f.barrier]
        if f.start == COPIES_ARRIVE:
            if f.nbytes > b.pending:
                text = f"{f.nbytes} arrivals of cp.async at the mbarrier at {self.place(f.barrier)} with only "
                raise Violation("sync", f"{text}{b.pending} of {b.count} pending", None)
            b.pending -= f.nbytes
        else:
            b.bytes -= f.nbytes
            b.delivers = True
        self._learn(s, f.tokens, self._bit(("arrivals", f.barrier)))
        if not any(g.barrier == f.barrier for g in s.flying):
            # Copies that signal one mbarrier are complete together: their sum decides.
            s.facts.land(("tma", f.barrier), self._bit(("arrivals", f.barrier)))
        self._complete(s, f.barrier, b, None)

    def _do_async_store(self, s: State, w: Warp, i: Instruction, lanes: int) -> bool:
        """Issue a store of each lane to shared memory of the cluster, which signals its bytes at an mbarrier.

        A block that ends must know that the stores have landed, as for bulk copies, so they are no visits of the warp.
        """
        visits = [self.table.token(("visit", rank, w.number)) for rank in range(self.program.blocks)]
        before = {token: s.facts.tokens.get(token) for token in visits}
        op, nbytes = i.op, i.once("bytes", lambda: bytes_stored(i.op))
        what = "the st.async"
        offsets = self._lane_offsets(w, i.args[0](w), lanes, op, f"the address of {what}")
        barriers = self._lane_offsets(w, i.args[2](w), lanes, op, f"the mbarrier of {what}")
        for at in sorted(set(barriers.values())):
            here = mask_of(np.asarray([barriers.get(lane) == at for lane in range(32)], np.int64))
            classes = self.classes_of(w, here)
            if len({offsets[lane] for lane in _lanes(here)}) < here.bit_count():
                raise Violation("race", f"{what}: several lanes write the same bytes", op)
            for c in classes:
                b = self._barrier(s, w, c, at, op, copy=True)
                self._in_phase(s, w, c, at, b, op)
                mine = [offsets[lane] for lane in _lanes(here & self.learned.classes[w.number][c])]
                record = self._record(WRITE, ("tma", at), DONE)
                self.access(s, w, c, record, self.region(mine, nbytes, op), op, what)
            tokens = self._known(s, self.sources(w, classes)) & self.table.order
            s.flying.append(Flight(at, nbytes * here.bit_count(), offsets[_first(here)], tokens))
        for token, known in before.items():
            s.facts.tokens.pop(token, None)
            if known is not None:
                s.facts.tokens[token] = known
        return True

    def _do_tensor_store(self, s: State, w: Warp, i: Instruction, lanes: int) -> bool:
        op = i.op
        box = self.program.box(op.operands[0])
        if box is None:
            raise NotProved("the size of a TMA store is not known: its tensor map is not an argument of the kernel", op)
        return self._store(s, w, op, lanes, box.placed)

    def _do_bulk_store(self, s: State, w: Warp, i: Instruction, lanes: int) -> bool:
        op = i.op
        return self._store(s, w, op, lanes, self.number(i.args[2](w), lanes, op, "the size of a store"))

    def _store(self, s: State, w: Warp, op: Operation, lanes: int, nbytes: int) -> bool:
        """Issue a copy of a group from shared memory."""
        c = self._issuer(w, lanes, op)
        start = self.offset(w, self.get(w, op.operands[1]), lanes, op, "the source of a bulk store")
        record = self._record(READ, ("bulk", w.number, c), w.bulk.get(c, 0))
        self.access(s, w, c, record, self.region([start], nbytes, op), op, "the bulk store")
        return True

    def _do_bulk_commit(self, s: State, w: Warp, i: Instruction, lanes: int) -> bool:
        for c in self.classes_of(w, lanes):
            actor, n = ("bulk", w.number, c), w.bulk.get(c, 0)
            if n or any(r.actor == actor for r in s.facts.records):
                w.bulk[c] = n + 1
        return True

    def _do_bulk_wait(self, s: State, w: Warp, i: Instruction, lanes: int) -> bool:
        op = i.op
        keep = i.once("count", lambda: (wait_count(op) or 0,))[0]
        for c in self.classes_of(w, lanes):
            done = w.bulk.get(c, 0) - keep
            if done > 0:
                actor = ("bulk", w.number, c)
                s.facts.complete(actor, done, self._bits[w.number, c][1])
                s.facts.retire(actor, done)
        return True

    # -- cp.async -----------------------------------------------------------------------------------------------------

    def _do_cp_async(self, s: State, w: Warp, i: Instruction, lanes: int) -> bool:
        op = i.op
        nbytes = integer_of(op, "size")
        self._generic(s, w, i, lanes, i.args[0](w), nbytes, (WRITE, "copy", "the cp.async"))
        return True

    def _do_cp_commit(self, s: State, w: Warp, i: Instruction, lanes: int) -> bool:
        for c in self.classes_of(w, lanes):
            w.copies[c] = w.copies.get(c, 0) + 1
        return True

    def _do_copies_arrive(self, s: State, w: Warp, i: Instruction, lanes: int) -> bool:
        """Issue arrivals that follow the earlier cp.async of each lane.

        The phase cannot be complete without them. So its waiters, and no others, are ordered after the copies.
        """
        op = i.op
        at = self.offset(w, i.args[0](w), lanes, op, "the address of an mbarrier")
        if at // self.program.window != w.rank:
            raise NotProved("a cp.async.mbarrier.arrive at another block is not modelled", op)
        classes = self.classes_of(w, lanes)
        arrivals = self._bit(("arrivals", at))
        for c in classes:
            b = self._barrier(s, w, c, at, op)
            self._in_phase(s, w, c, at, b, op)
            s.facts.land(("copy", w.number, c), arrivals)
            self._renew(s, ("copies", w.number, c), arrivals)
        self.sites["copies", (w.number,)] = op
        tokens = self._known(s, self.sources(w, classes)) & self.table.order
        s.flying.append(Flight(at, lanes.bit_count(), COPIES_ARRIVE, tokens))
        return True

    def _do_cp_wait(self, s: State, w: Warp, i: Instruction, lanes: int) -> bool:
        op = i.op
        keep = i.once("count", lambda: (wait_count(op),))[0]
        for c in self.classes_of(w, lanes):
            n = w.copies.get(c, 0)
            done = n + 1 if keep is None else n - keep
            actor = ("copy", w.number, c)
            s.facts.complete(actor, done, self._bits[w.number, c][1])
            s.facts.retire(actor, done)
        return True

    # -- accesses of threads ------------------------------------------------------------------------------------------

    def _do_read(self, s: State, w: Warp, i: Instruction, lanes: int) -> bool:
        mask, nbytes, what = i.once("size", lambda: _extent_of_read(i.op))
        self._generic(s, w, i, lanes & mask, i.args[0](w), nbytes, (READ, "thread", what))
        return True

    def _do_write(self, s: State, w: Warp, i: Instruction, lanes: int) -> bool:
        self._do_reads_accumulator(s, w, i, lanes)
        mask, nbytes, what, pointer = i.once("size", lambda: _extent_of_write(i.op))
        self._generic(s, w, i, lanes & mask, i.args[pointer](w), nbytes, (WRITE, "thread", what))
        return True

    def _generic(
        self, s: State, w: Warp, i: Instruction, lanes: int, pointer: Value, nbytes: int, how: tuple[str, str, str]
    ) -> None:
        """Check and record an access by each active lane. `how`: its kind, the kind of actor, and its name."""
        op, (kind, by, what), may_be = i.op, how, w.frames[-1].may_be
        at = pointer.tobytes() if isinstance(pointer, np.ndarray) else pointer
        key = (w.number, lanes, at)
        masks = cast("list[tuple[int, Region]] | None", i.cache.get(key))
        if masks is None:
            offsets = self._lane_offsets(w, pointer, lanes, op, f"the address of {what}")
            masks, seen = list[tuple[int, Region]](), 0
            for c in self.classes_of(w, lanes):
                mine = [offsets[i] for i in _lanes(self.learned.classes[w.number][c])]
                region = self.region(mine, nbytes, op)
                size = region.units.bit_count() * self.learned.unit
                if kind == WRITE and (region.units & seen or size != nbytes * len(mine)):
                    raise Violation("race", f"{what}: several lanes write the same bytes", op)
                seen |= region.units
                masks.append((c, region))
            i.cache[key] = masks
        for c, region in masks:
            ticket, known = (w.copies.get(c, 0), 0) if by == "copy" else (DONE, self._bits[w.number, c][1])
            record = self.table.record(kind, (by, w.number, c), ticket, known, 0, may_be)
            is_written = kind == READ and may_be and self._is_promised(s, w, c, region, (pointer, nbytes, lanes))
            self.access(s, w, c, record, region, op, what, is_written)
        if kind == WRITE and may_be and (guard := w.frames[-1].guard) is not None and lanes:
            units = self._units_of_lanes(w, pointer, nbytes, lanes, op)
            size = self.program.window // self.learned.unit * self.program.blocks
            s.facts.promise(np.asarray(list(units.values()), np.int64), list(units), guard, size)

    def _units_of_lanes(
        self, w: Warp, pointer: Value, nbytes: int, lanes: int, op: Operation
    ) -> dict[int, tuple[int, ...]]:
        """Return the units of shared memory that each lane accesses."""
        unit = self.learned.unit
        offsets = self._lane_offsets(w, pointer, lanes, op, "an address")
        return {lane: tuple(range(at // unit, (at + nbytes) // unit)) for lane, at in offsets.items()}

    def _is_promised(self, s: State, w: Warp, c: int, region: Region, how: tuple[Value, int, int]) -> bool:
        """Return True if the condition of a read implies that of writes of each byte that it reads.

        Args:
            how: The address, the number of bytes and the lanes.
        """
        f = w.frames[-1]
        if f.guard is None or not s.facts.guards:
            return False
        missing = self.pieces.units(self.mask(s, region) & ~s.facts.written)
        lanes = how[2] & self.learned.classes[w.number][c]
        units = self._units_of_lanes(w, how[0], how[1], lanes, f.ops[f.index])
        return all(
            s.facts.is_promised(unit, lane, f.guard)
            for lane, mine in units.items()
            for unit in mine
            if missing >> unit & 1
        )

    # -- wgmma --------------------------------------------------------------------------------------------------------

    def _do_wgmma_fence(self, s: State, w: Warp, i: Instruction, lanes: int) -> bool:
        w.fenced = True
        return True

    def _do_wgmma(self, s: State, w: Warp, i: Instruction, lanes: int) -> bool:
        op = i.op
        if lanes != ALL_LANES:
            raise Violation("sync", "a wgmma in divergent code: some threads of the warp do not reach it", op)
        form = wgmma_form(op)
        a, b = (
            None if v is None else self.number(self.get(w, v), lanes, op, "the descriptor of a wgmma")
            for v in (form.a, form.b)
        )
        assert b is not None
        acc = self._accumulators(w, form.accumulators)
        chained = isinstance(acc, Accumulator) and acc.whole and acc.number >= w.waited
        if not w.fenced and not (chained and form.a is not None and not form.registers):
            raise Violation(
                "wgmma", "missing wgmma.fence: registers of this wgmma were accessed since the last one", op
            )
        for v in form.registers:
            if v in self.program.pending and isinstance(held := self.held(w, v), Accumulator):
                self._check_registers(w, held, op)
        if isinstance(acc, Accumulator) and not acc.whole:
            self._check_registers(w, acc, op)
        group = w.number // 4
        if (w.number % self.program.warps // 4 + 1) * 128 > self.program.threads:
            raise Violation("sync", "a wgmma needs a warpgroup of 128 threads", op)
        number = w.issued
        w.issued += 1
        products = s.products.setdefault(group, {})
        operands = form.text, a, b, self._flag(w, form.flag, lanes, op)
        p = products.setdefault(number, Product(operands))
        if p.operands != operands:
            raise Violation("sync", "the warps of a warpgroup issue different wgmma", op)
        p.warps |= 1 << (w.number % 4)
        classes = self.classes_of(w, lanes)
        p.tokens |= self._known(s, self.sources(w, classes))
        first = next(c for c in classes if self.learned.classes[w.number][c] & 1)
        record = self._record(READ, ("wgmma", group), number)
        region = i.once((w.number, a, b), lambda: self._operands_of_wgmma(w, op, a, b))
        self.access(s, w, first, record, region, op, "the wgmma")
        w.env[self.program.slot(op.results[0])] = Accumulator(number, True)
        return True

    def _flag(self, w: Warp, value: SSAValue | None, lanes: int, op: Operation) -> Hashable:
        """Return the value that enables the accumulator of a wgmma, which the warps must have in common."""
        if value is None:
            return None
        flag = self.get(w, value)
        what = "the register that enables the accumulator of a wgmma"
        if isinstance(flag, Linear) and not value_varies(flag):
            return flag
        return int(self.number(flag, lanes, op, what) != 0)

    def _accumulators(self, w: Warp, values: tuple[SSAValue, ...]) -> Value:
        """Return the accumulators of a wgmma: those of one earlier wgmma, or the last of several."""
        struct = whole_struct(values)
        if struct is not None:
            return self.held(w, struct) if struct in self.program.pending else UNKNOWN
        held = [a for v in values if v in self.program.pending and isinstance(a := self.held(w, v), Accumulator)]
        return Accumulator(max(a.number for a in held), False) if held else UNKNOWN

    def _operands_of_wgmma(self, w: Warp, op: Operation, a: int | None, b: int) -> Region:
        """Return the region that a warp's part of a wgmma reads."""
        start = w.rank * self.program.window
        parts = wgmma_form(op).units(a, b, w.number % 4)
        return self.region([16 * u + start for units in parts for u in units], 16, op)

    def _do_wgmma_commit(self, s: State, w: Warp, i: Instruction, lanes: int) -> bool:
        w.groups = (*w.groups, w.issued)
        return True

    def _do_wgmma_wait(self, s: State, w: Warp, i: Instruction, lanes: int) -> bool:
        op = i.op
        keep = i.once("count", lambda: (wait_count(op) or 0,))[0]
        done = len(w.groups) - keep
        target = w.groups[done - 1] if done > 0 else w.waited
        group = w.number // 4
        products = s.products.get(group, {})
        if any(p.warps != 15 for n, p in products.items() if n < target):
            return False
        holders, tokens = self.targets(w, self.classes_of(w, lanes)), 0
        for n, p in products.items():
            if n < target:
                tokens |= p.tokens
        self._learn(s, tokens, holders)
        actor = ("wgmma", group)
        s.facts.complete(actor, target, holders)
        w.waited, w.fenced = max(w.waited, target), False
        w.groups = w.groups[max(0, done) :]
        slowest = min(o.waited for o in s.warps[4 * group : 4 * group + 4])
        for n in [n for n in products if n < slowest]:
            del products[n]
        s.facts.retire(actor, slowest)
        return True

    def _do_reads_accumulator(self, s: State, w: Warp, i: Instruction, lanes: int) -> bool:
        for read in i.once("registers", lambda: [self.reader(v) for v in self.program.registers_of(i.op)]):
            if isinstance(acc := read(w), Accumulator):
                self._check_registers(w, acc, i.op)
        relevant = self.program.relevant
        for slot in i.once("results", lambda: [self.program.slot(r) for r in i.op.results if r in relevant]):
            w.env[slot] = UNKNOWN
        return True

    def held(self, w: Warp, value: SSAValue) -> Value:
        """Return the registers of a value that may be those of a wgmma."""
        roots = self.program.roots(value)
        if roots == (value,):
            return self.get(w, value)
        found = [a for r in roots if isinstance(a := self.get(w, r), Accumulator)]
        return Accumulator(max(a.number for a in found), False) if found else UNKNOWN

    def _check_registers(self, w: Warp, acc: Accumulator, op: Operation) -> None:
        if acc.number >= w.waited:
            raise Violation("wgmma", "accumulator registers are used before their wgmma has been waited for", op)


def _plan_of(
    lower: int | Linear, upper: int | Linear, step: int | Linear, op: Operation
) -> tuple[Linear, int, int, int | Linear, int | Linear]:
    """Return the number of iterations of a loop that other loops may share, as a symbol, and how this loop counts.

    The loop goes on while the symbol is above `first + pace * iteration`. The last items are the lower bound and the
    step of its induction variable, which is `lower + grain * (first + pace * iteration)`.
    """
    first, pace, grain = 0, 1, step
    if isinstance(lower, int) and isinstance(step, int) and isinstance(upper, Linear):
        if step <= 0:
            raise NotProved("a loop has a step that is not positive", op)
        first, pace, trips = lower, step, upper
    else:
        if isinstance(step, Linear):
            if len(step.terms) != 1 or step.const:
                raise NotProved("a loop has a step that is a sum", op)
            atom, pace = step.terms[0]
            grain = symbol(atom)
            parts = dict(lower.terms) if isinstance(lower, Linear) else {}
            first = parts.get(atom, 0)
            lower = lower - grain * first if isinstance(lower, Linear) else lower
        trips = trips_between(lower, upper, grain)
    if first < 0:
        raise NotProved("a loop of unknown length begins below zero", op)
    return _counted(trips), first, pace, lower, grain


def _counted(span: Linear) -> Linear:
    """Return a number of iterations as a symbol, which is above an index for the same indices as a distance."""
    if len(span.terms) == 1 and span.terms[0][1] == 1:
        return span
    less = min(span.const, 0)
    trips = trips_of(Linear(span.terms, span.const - less)) + less
    assert isinstance(trips, Linear)
    return trips


def _is_of_known_length(f: Frame) -> bool:
    """Return True for a for loop whose bounds and step are numbers."""
    is_for = f.op is not None and f.op.name == "scf.for" and f.bounds is not None
    return is_for and all(isinstance(v, int) for v in f.bounds or ())


def _extent_of_read(op: Operation) -> tuple[int, int, str]:
    """Return the lanes that pass an address, the bytes that each of them reads, and the name of the access."""
    if op.name == "nvvm.ldmatrix":
        return (1 << 8 * integer_of(op, "num")) - 1, 16, "the ldmatrix"
    return ALL_LANES, size_in_bytes(op.results[0].type), "the load"


def _extent_of_write(op: Operation) -> tuple[int, int, str, int]:
    """Return the lanes that pass an address, the bytes that each writes, the name, and the operand of the address."""
    if op.name == "nvvm.stmatrix":
        return (1 << 8 * (len(op.operands) - 1)) - 1, 16, "the stmatrix", 0
    return ALL_LANES, size_in_bytes(op.operands[0].type), "the store", 1


def _merged(lanes: int, value: Value, other: Value) -> Value:
    """Return a value that is `other` in the lanes outside of a mask."""
    numbers = (int, np.ndarray)
    if isinstance(value, numbers) and isinstance(other, numbers):
        return uniform(np.where(lane_array(lanes), value, other).astype(np.int64))
    registers = [v.number for v in (value, other) if isinstance(v, Accumulator)]
    if registers and value != other:
        return Accumulator(max(registers), False)
    return value if value is other else UNKNOWN


def _lanes(mask: int) -> list[int]:
    return [i for i in range(32) if mask >> i & 1]


def _first(mask: int) -> int:
    return (mask & -mask).bit_length() - 1


def lane_array(mask: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return a mask of lanes as an array."""
    return np.asarray((mask >> np.arange(32)) & 1, np.bool_)


def mask_of(values: Lanes) -> int:
    """Return the lanes whose value is not zero."""
    return int.from_bytes(np.packbits(values != 0, bitorder="little").tobytes(), "little")


def _why_unknown(value: Value) -> str:
    if isinstance(value, Counter):
        return "it depends on the iteration of a loop of unknown length"
    if isinstance(value, (Linear, Spread, Guard)):
        return "it depends on an argument or on the number of the block"
    return "it is read from memory, or computed by an op that the prover does not evaluate"


def _describe(r: Record) -> str:
    kind = "write" if r.kind == WRITE else "read"
    if r.actor[0] == "tma":
        return "TMA copy that writes it"
    if r.actor[0] == "wgmma":
        return f"wgmma of warpgroup {r.actor[1]} that reads it"
    if r.actor[0] == "bulk":
        return f"bulk store of warp {r.actor[1]} that reads it"
    if r.actor[0] == "copy":
        return f"cp.async of warp {r.actor[1]} that writes it"
    return f"{kind} of warp {r.actor[1]}"
