"""Steps of tcgen05 instructions: allocation, MMAs and copies of the tensor pipe, loads, stores, fences and commits.

The words of an allocation are pieces of the same partition as shared memory, and the same records say who is ordered
after an access. The rules are those of the PTX ISA (9.7.16.6), which the interpreter calls strict:

- An MMA or copy is complete for a thread that waits for an mbarrier which a later commit of its thread signals.
- A load or store is complete for its warp after tcgen05.wait, and for others that are ordered after a
  `fence::before_thread_sync` of it. The holder `("waited", warp)` stands for the wait.
- Another thread may use the words after a `fence::after_thread_sync`. The holder `("after", warp, lanes)` knows what
  the class of lanes knew at its last one.
- MMAs with one accumulator, shape and kind execute in order of issue, and so does an MMA after a copy.

A commit is an arrival in flight. It carries what its thread knows when it is issued, but not the thread's own accesses.
The mbarrier cannot complete its phase without it, so nothing is known too early.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, cast

from xdsl.ir import Operation

from cute_dialect.interp.machine.tensor_memory import Rect
from cute_dialect.prove.arithmetic import Learned
from cute_dialect.prove.facts import DONE, READ, WRITE, Actor, Record
from cute_dialect.prove.machine import Instruction, Machine
from cute_dialect.prove.program import Program
from cute_dialect.prove.regions import Region
from cute_dialect.prove.state import ALL_LANES, Flight, MBarrier, State, TensorColumns, Warp
from cute_dialect.prove.tensor_form import (
    COLUMNS,
    GROUPS,
    WORDS,
    Uses,
    bits_of_rect,
    copy_uses,
    fragment_of,
    multiply_uses,
    name_of,
    place_of,
)
from cute_dialect.prove.values import UNKNOWN, Value, symbol
from cute_dialect.prove.verdict import NotProved, Violation

RecordBits: TypeAlias = "Callable[[Record], int]"
COMMIT = -1
"""Start of a flight that is a commit."""
_SYNCHRONOUS, _PIPE = ("ld", "st"), "tensor"


class TensorMachine(Machine):
    """The abstract machine with tensor memory."""

    def __init__(self, program: Program, learned: Learned) -> None:
        super().__init__(program, learned)
        self._shared_units = program.window // learned.unit * program.blocks
        self._after: dict[tuple[int, int], int] = {}
        if program.has_tensor_memory:
            for w, classes in sorted(learned.classes.items()):
                for c, lanes in enumerate(classes):
                    self._after[w, c] = self._bit(("after", w, lanes))
                    self.table.after |= self._after[w, c]
            self._shared = Region((1 << self._shared_units) - 1)
            self.pieces.mask(self._shared)

    # -- places -------------------------------------------------------------------------------------------------------

    def _words(self, s: State, w: Warp, place: Value, rects: Sequence[Rect], op: Operation) -> int:
        """Return the pieces of some words of an allocation, which must be live."""
        key = (w.rank, self._number(w, place, op))
        found = s.tensor.get(key)
        if found is None or not found.is_live:
            raise Violation("oob", "tensor memory is used that is not allocated, or has been freed", op)
        bits = 0
        for rect in rects:
            if rect.end > found.columns:
                raise Violation("oob", f"{rect} of an allocation of {found.columns} columns of tensor memory", op)
            bits |= bits_of_rect(rect)
        return self._piece(s, key, bits)

    def _piece(self, s: State, key: tuple[int, int], bits: int) -> int:
        rank, number = key
        start = self._shared_units + WORDS * (rank * len(self.program.allocations) + number)
        region = self._regions.get(("tensor", start, bits))
        if region is None:
            region = self._regions["tensor", start, bits] = Region(bits << start)
        return self.mask(s, region)

    def _number(self, w: Warp, place: Value, op: Operation) -> int:
        """Return the number of the allocation that an address belongs to."""
        for number in range(len(self.program.allocations)):
            if place == symbol((_PIPE, w.rank, number)):
                return number
        raise NotProved("an address of tensor memory of another block is not modelled", op)

    def _first_byte(self, mask: int) -> str:
        units = self.pieces.units(mask)
        first = (units & -units).bit_length() - 1
        if first < self._shared_units:
            return super()._first_byte(mask)
        word = (first - self._shared_units) % WORDS
        return f"tensor memory lane {word % GROUPS * 16}, column {word // GROUPS} of an allocation"

    # -- order --------------------------------------------------------------------------------------------------------

    def _use(self, s: State, w: Warp, classes: Sequence[int], record: Record, mask: int, op: Operation) -> None:
        """Check and record an access to words of tensor memory."""
        touching = s.facts.touching(mask)
        name = f"tcgen05.{name_of(op).partition('.')[0]}"
        for earlier, common in touching:
            if (record.is_write or earlier.is_write) and not self._is_ordered(w, classes, record, earlier):
                verb = "writes" if record.is_write else "reads"
                raise Violation(
                    "race",
                    f"the {name} {verb} {self._first_byte(common)}, not ordered after an earlier operation: wait for "
                    "its commit or tcgen05.wait, with tcgen05.fence before and after the synchronization",
                    op,
                    self.sites.get((earlier.kind, earlier.actor)),
                )
        s.facts.add(record, mask, touching)
        self.sites[record.kind, record.actor] = op

    def _is_ordered(self, w: Warp, classes: Sequence[int], record: Record, earlier: Record) -> bool:
        kind, actor = earlier.actor[0], earlier.actor
        if kind in _SYNCHRONOUS and actor[1] == w.number:
            return bool(earlier.known & self._bit(("waited", w.number)))
        if kind == "alloc" and actor[1] == w.number:
            return True
        if kind == _PIPE and record.actor[0] == _PIPE and actor[1:3] == record.actor[1:3]:
            is_copy, key = actor[3] == (), record.actor[3]
            if key != () and (is_copy or actor[3] == key):
                return True
        holders = self._bits if record.actor[0] == "dealloc" else {}
        return all(earlier.known & (holders[w.number, c][0] if holders else self._after[w.number, c]) for c in classes)

    def _missing(self, s: State, mask: int, op: Operation) -> None:
        if missing := mask & ~s.facts.written:
            raise Violation(
                "uninit", f"the tcgen05 operation reads {self._first_byte(missing)}, which is unwritten", op
            )

    def _whole_warp(self, w: Warp, lanes: int, op: Operation) -> list[int]:
        if lanes != ALL_LANES:
            raise Violation("sync", f"tcgen05.{name_of(op)} in divergent code: all threads must execute it", op)
        if w.frames[-1].may_be:
            raise self._not_known(w)
        return self.classes_of(w, lanes)

    def _one_thread(self, w: Warp, lanes: int, op: Operation) -> int:
        classes = self.classes_of(w, lanes)
        if len(classes) != 1 or lanes.bit_count() != 1:
            raise Violation("sync", f"{lanes.bit_count()} threads execute tcgen05.{name_of(op)}; elect one", op)
        return classes[0]

    def _everyone(self, w: Warp, classes: Sequence[int]) -> int:
        return self.sources(w, classes)

    # -- allocation ---------------------------------------------------------------------------------------------------

    def _do_tensor_alloc(self, s: State, w: Warp, i: Instruction, lanes: int) -> bool:
        op = i.op
        classes = self._whole_warp(w, lanes, op)
        columns = self.number(i.args[1](w), lanes, op, "the number of columns of tcgen05.alloc")
        at = self.offset(w, i.args[0](w), lanes, op, "the address of tcgen05.alloc")
        key = (w.rank, self.program.allocations.index(op))
        mine = [a for (rank, _), a in s.tensor.items() if rank == w.rank]
        if columns not in (32, 64, 128, 256, 512):
            raise Violation("sync", f"tcgen05.alloc of {columns} columns; use 32, 64, 128, 256 or 512", op)
        if key in s.tensor or any(a.warp != w.number or a.has_relinquished for a in mine):
            raise NotProved("tensor memory is allocated twice, by two warps, or after the permit was given up", op)
        if sum(a.columns for a in mine) + columns > COLUMNS:
            raise NotProved("more than 512 columns of tensor memory are allocated", op)
        self._generic(s, w, i, 1, i.args[0](w), 4, (WRITE, "thread", "the tcgen05.alloc"))
        s.tensor[key] = TensorColumns(columns, at, w.number)
        words = self._piece(s, key, bits_of_rect(Rect((1 << 128) - 1, 0, columns)))
        s.facts.written &= ~words
        record = self.table.record(WRITE, ("alloc", w.number), DONE, self._everyone(w, classes), 0)
        s.facts.add(record, words, s.facts.touching(words))
        s.facts.written &= ~words
        self.sites[WRITE, ("alloc", w.number)] = op
        return True

    def _do_tensor_relinquish(self, s: State, w: Warp, i: Instruction, lanes: int) -> bool:
        self._whole_warp(w, lanes, i.op)
        mine = [key for key in s.tensor if key[0] == w.rank]
        if not mine:
            raise NotProved("the permit to allocate tensor memory is given up before an allocation", i.op)
        for key in mine:
            a = s.tensor[key]
            if a.warp != w.number:
                raise NotProved("the permit to allocate tensor memory is given up by another warp", i.op)
            s.tensor[key] = a._replace(has_relinquished=True)
        return True

    def _do_tensor_dealloc(self, s: State, w: Warp, i: Instruction, lanes: int) -> bool:
        op = i.op
        classes = self._whole_warp(w, lanes, op)
        columns = self.number(i.args[1](w), lanes, op, "the number of columns of tcgen05.dealloc")
        place, offset = place_of(i.args[0](w), op)
        key = (w.rank, self._number(w, place, op))
        words = self._words(s, w, place, [Rect((1 << 128) - 1, 0, columns)], op)
        found = s.tensor[key]
        if offset or columns != found.columns:
            raise Violation("sync", "tcgen05.dealloc of other columns than tcgen05.alloc has allocated", op)
        record = self.table.record(WRITE, ("dealloc", w.number), DONE, self._everyone(w, classes), 0)
        self._use(s, w, classes, record, words, op)
        s.tensor[key] = found._replace(is_live=False, slot=-1)
        return True

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
        """Check and record an access to shared memory. A write to the address of an allocation makes it unknown."""
        super().access(s, w, c, record, region, op, what, is_written)
        if s.tensor and record.is_write:
            for key, a in s.tensor.items():
                if a.slot >= 0 and region.units & self.region([a.slot], 4, op).units:
                    s.tensor[key] = a._replace(slot=-1)

    def _do_read(self, s: State, w: Warp, i: Instruction, lanes: int) -> bool:
        super()._do_read(s, w, i, lanes)
        if s.tensor and i.op.name == "llvm.load" and i.op.results[0] in self.program.relevant:
            pointer, value = i.args[0](w), UNKNOWN
            if isinstance(pointer, int) and str(i.op.results[0].type) == "i32":
                at = self._in_cluster(w, pointer, i.op)
                for (rank, number), a in s.tensor.items():
                    if a.slot == at and a.is_live:
                        value = symbol((_PIPE, rank, number))
            w.env[self.program.slot(i.op.results[0])] = value
        return True

    # -- the tensor pipe ----------------------------------------------------------------------------------------------

    def _do_tensor_multiply(self, s: State, w: Warp, i: Instruction, lanes: int) -> bool:
        op = i.op
        values = [read(w) for read in i.args]
        numbers = [self.number(values[n], lanes, op, "a descriptor of a tcgen05.mma") for n in (1, 2, 3)]
        first = 7 if "block_scale" in name_of(op) else 5
        constants = [self.number(v, lanes, op, "a constant of a tcgen05.mma") for v in values[first:]]
        key = (tuple(v for v in values[:1]), tuple(numbers), tuple(values[5:first]))
        uses = i.once(key, lambda: multiply_uses(op, values, [*numbers, *constants]))
        first_product = isinstance(values[4], int) and values[4] == 0
        self._issue(s, w, i, lanes, uses, accumulates=not first_product)
        return True

    def _do_tensor_copy(self, s: State, w: Warp, i: Instruction, lanes: int) -> bool:
        address = i.args[0](w)
        descriptor = self.number(i.args[1](w), lanes, i.op, "the descriptor of a tcgen05.cp")
        uses = i.once((address, descriptor), lambda: copy_uses(i.op, address, descriptor))
        self._issue(s, w, i, lanes, uses, accumulates=False)
        return True

    def _issue(self, s: State, w: Warp, i: Instruction, lanes: int, uses: Uses, *, accumulates: bool) -> None:
        """Check and record an operation of the tensor pipe."""
        op = i.op
        c = self._one_thread(w, lanes, op)
        operand = self._record(READ, ("mma", w.number, c), DONE)
        start = w.rank * self.program.window
        for n, units in enumerate(uses.units):
            region = i.once(
                (w.number, n, units), lambda units=units: self.region([16 * u + start for u in units], 16, op)
            )
            self._has_arrived(s, w, c, region, op)
            self.access(s, w, c, operand, region, op, "the tcgen05 operation")
        actor: Actor = (_PIPE, w.number, c, uses.key)
        for place, rect in uses.reads:
            words = self._words(s, w, place, [rect], op)
            self._missing(s, words, op)
            self._use(s, w, [c], self._record(READ, actor, DONE), words, op)
        for place, rect in uses.writes:
            words = self._words(s, w, place, [rect], op)
            if accumulates:
                self._missing(s, words, op)
            self._use(s, w, [c], self._record(WRITE, actor, DONE), words, op)

    def _has_arrived(self, s: State, w: Warp, c: int, region: Region, op: Operation) -> None:
        """Check that a fence stands between the wait for an operand and the operation."""
        bit = self._bits[w.number, c][0]
        for r, common in s.facts.touching(self.mask(s, region)):
            own = r.actor == ("thread", w.number, c)
            if r.is_write and not own and r.known & bit and not r.known & self._after[w.number, c]:
                raise Violation(
                    "race",
                    f"the tcgen05 operation may start before {self._first_byte(common)} is written: add "
                    "tcgen05.fence::after_thread_sync after the wait for it",
                    op,
                    self.sites.get((r.kind, r.actor)),
                )

    def _do_tensor_commit(self, s: State, w: Warp, i: Instruction, lanes: int) -> bool:
        op = i.op
        c = self._one_thread(w, lanes, op)
        at = self.offset(w, i.args[0](w), lanes, op, "the mbarrier of a tcgen05.commit")
        if at // self.program.window != w.rank:
            raise NotProved("a tcgen05.commit to another block is not modelled", op)
        b = self._barrier(s, w, c, at, op)
        self._in_phase(s, w, c, at, b, op)
        self._fence_before(s, w, c)
        arrivals, bit, pipe = self._bit(("arrivals", at)), self._bits[w.number, c][0], (w.number, c)

        def known(r: Record) -> int:
            kind, own = r.actor[0], r.actor[1:3] == pipe
            if own and kind in (_PIPE, "mma"):
                return r.known | arrivals
            is_own_access = own and kind in ("thread", "copy", "bulk")
            return r.known | arrivals if r.known & bit and not is_own_access else r.known

        self._update(s, known, lambda r: r.fenced | arrivals if r.fenced & bit else r.fenced)
        for tokens in (s.facts.tokens, s.facts.fenced):
            for token, holders in tokens.items():
                if holders & bit:
                    tokens[token] = holders | arrivals
        self._renew(s, ("commit", w.number, c), arrivals)
        self.sites["commit", (w.rank, w.number, c)] = op
        s.flying.append(Flight(at, 0, COMMIT))
        return True

    def land(self, s: State, index: int) -> None:
        """Complete a copy or commit in flight."""
        if s.flying[index].start != COMMIT:
            super().land(s, index)
            return
        at = s.flying.pop(index).barrier
        b = s.mbarriers[at]
        if not b.pending:
            raise Violation(
                "sync", f"a tcgen05.commit arrives at the mbarrier at {self.place(at)}, which expects none", None
            )
        b.pending -= 1
        self._complete(s, at, b, None)

    def _complete(self, s: State, at: int, b: MBarrier, op: Operation | None) -> None:
        if not b.pending and not b.bytes and any(f.barrier == at and f.start == COMMIT for f in s.flying):
            raise Violation(
                "sync", f"the mbarrier at {self.place(at)} completes its phase while a tcgen05.commit is in flight", op
            )
        super()._complete(s, at, b, op)

    # -- loads, stores and fences -------------------------------------------------------------------------------------

    def _do_tensor_read(self, s: State, w: Warp, i: Instruction, lanes: int) -> bool:
        words, classes = self._fragment(s, w, i, lanes, i.args[1](w))
        self._missing(s, words, i.op)
        self._use(s, w, classes, self._record(READ, ("ld", w.number), DONE), words, i.op)
        return True

    def _do_tensor_write(self, s: State, w: Warp, i: Instruction, lanes: int) -> bool:
        words, classes = self._fragment(s, w, i, lanes, i.args[2](w))
        self._use(s, w, classes, self._record(WRITE, ("st", w.number), DONE), words, i.op)
        return True

    def _fragment(self, s: State, w: Warp, i: Instruction, lanes: int, packed: Value) -> tuple[int, list[int]]:
        op = i.op
        classes = self._whole_warp(w, lanes, op)
        place, offset = place_of(i.args[0](w), op)
        warp = w.number % self.program.warps
        rects = i.once((offset, warp), lambda: fragment_of(op, offset, warp, packed))
        return self._words(s, w, place, rects, op), classes

    def _do_tensor_wait(self, s: State, w: Warp, i: Instruction, lanes: int) -> bool:
        self._whole_warp(w, lanes, i.op)
        actor: Actor = (name_of(i.op).removeprefix("wait."), w.number)
        waited = self._bit(("waited", w.number))
        self._update(s, lambda r: r.known | waited if r.actor == actor else r.known, lambda r: r.fenced)
        return True

    def _do_tensor_fence(self, s: State, w: Warp, i: Instruction, lanes: int) -> bool:
        for c in self.classes_of(w, lanes):
            if ".before." in name_of(i.op):
                self._fence_before(s, w, c)
            else:
                bit, own = self._bits[w.number, c]
                s.facts.carry(bit | own, self._after[w.number, c])
        return True

    def _fence_before(self, s: State, w: Warp, c: int) -> None:
        """Let a class of lanes pass on the loads and stores that its warp has waited for."""
        waited, (bit, own) = self._bit(("waited", w.number)), self._bits[w.number, c]

        def known(r: Record) -> int:
            is_done = r.actor[0] in _SYNCHRONOUS and r.actor[1] == w.number and r.known & waited
            return r.known | bit | own if is_done else r.known

        self._update(s, known, lambda r: r.fenced)

    def _update(self, s: State, known: RecordBits, fenced: RecordBits) -> None:
        """Change the holders of all records."""
        old, s.facts.records = s.facts.records, {}
        for r, mask in old.items():
            new = self.table.derived(r, known(r), fenced(r), r.ticket)
            if new is not None:
                s.facts.records[new] = s.facts.records.get(new, 0) | mask

    # -- the end of a block -------------------------------------------------------------------------------------------

    def _ends(self, s: State, w: Warp) -> None:
        super()._ends(s, w)
        if not self.program.allocations or any(o.frames for o in s.warps if o.rank == w.rank):
            return
        mine = 0
        for o in s.warps:
            if o.rank == w.rank:
                mine |= self.sources(o, range(len(self.learned.classes[o.number])))
        for key, a in s.tensor.items():
            if key[0] == w.rank and a.is_live:
                raise Violation(
                    "exit", "the block ends, but its tensor memory is not freed", self.program.allocations[key[1]]
                )
        names = self.table.names()
        for token, known in s.facts.tokens.items():
            name = cast("tuple[object, ...]", names[token])
            if name[0] == "commit" and not known & mine:
                where = next(
                    (op for (kind, who), op in self.sites.items() if kind == "commit" and who[1:] == name[1:]), None
                )
                raise Violation(
                    "exit", "a tcgen05.commit may be in flight when its block ends; wait for its mbarrier", where
                )
