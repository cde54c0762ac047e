"""Random programs of loads and stores: the interpreter's `uninit` check compared with a definition by bytes.

    python test/oracle/memory_fuzz.py --count 2000 --seed 1

One warp writes parts of three adjacent shared arrays, of an uninitialized array, and of local memory. An access has 1
to 16 bytes, per lane or uniform. The warp also reads, copies through registers, by cp.async and by bulk copies, adds
atomically, and initializes and invalidates mbarriers in the same memory.

The definition keeps a list of bytes for each array and for each lane's local memory. A byte holds nothing, data or an
mbarrier. The first error ends a program. The interpreter must report the same kind of error at the same place.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from interp_support import kernel, run_kernel

from cute_dialect.interp import InterpError, Pointer
from cute_dialect.runtime.call_options import SCHEDULES


class Area(NamedTuple):
    """A range of memory: its state space, its size and its offset in the space."""

    space: str
    size: int
    start: int = 0


AREAS = {
    "a": Area("shared", 48),
    "b": Area("shared", 32, 48),
    "c": Area("shared", 64, 80),
    "g": Area("global", 96),
    "r": Area("local", 40),
}
SHARED = [name for name, area in AREAS.items() if area.space == "shared"]
POINTERS = {"shared": "!llvm.ptr<3>", "global": "!llvm.ptr<1>", "local": "!llvm.ptr"}
TYPES = {1: "i8", 2: "i16", 4: "i32", 8: "i64", 16: "vector<4xi32>"}
GLOBALS = "".join(
    f'"llvm.mlir.global"() <{{addr_space = 3 : i32, alignment = 16 : i64, global_type = !llvm.array<{AREAS[n].size} x '
    f'i8>, linkage = #llvm.linkage<"internal">, sym_name = "{n}"}}> ({{}}) : () -> ()\n'
    for n in SHARED
)
NOTHING, DATA, BARRIER = "nothing", "data", "mbarrier"


class Span(NamedTuple):
    """Accessed bytes of an area: `size` bytes in each lane below `lanes`, from `at` on, `stride` bytes apart."""

    area: str
    at: int
    size: int
    stride: int
    lanes: int

    def first(self, lane: int) -> int:
        return self.at + self.stride * lane

    @property
    def align(self) -> int:
        return min(self.size, (self.at | self.stride | 16) & -(self.at | self.stride | 16))


class Step(NamedTuple):
    """One operation of the warp. `kept` is the number of loaded bytes that are stored again."""

    what: str
    on: Span
    to: Span | None = None
    kept: int = 0


def program(rng: random.Random) -> list[Step]:
    """Return a random program. Most of its steps are valid, so that it does not end early."""

    def span(areas: list[str], size: int = 0, align: int = 0, lanes: int = 0) -> Span:
        area = rng.choice(areas)
        size = size or rng.choice([1, 2, 4, 4, 8, 16])
        lanes = lanes or rng.choice([1, 1, 2, 5, 32])
        stride = size if rng.random() < 0.5 else 0
        step = align or rng.choice([size, size, 1, 2, 4])
        room = AREAS[area].size - size - stride * (lanes - 1)
        if room < 0 and rng.random() < 0.9:
            lanes, room = 1, AREAS[area].size - size
        at = rng.randrange(0, max(room, 0) + 1) // step * step
        if rng.random() < 0.02:
            at = rng.choice([-step, (room // step + 1) * step])
        return Span(area, at, size, stride, lanes)

    def fill(area: str) -> list[Step]:
        return [Step("store", Span(area, at, 8, 0, 32)) for at in range(0, AREAS[area].size, 8)]

    out = [step for area in AREAS for step in fill(area) if rng.random() < 0.98 and area != "g"]
    if rng.random() < 0.7:
        out += fill("g")
    for _ in range(rng.randint(3, 14)):
        what = rng.choices(
            ["fill", "store", "load", "move", "use", "undefined", "atomic", "cp.async", "bulk", "init", "inval"],
            [5, 5, 4, 3, 2, 1, 1, 2, 1, 1, 1],
        )[0]
        on = span([*AREAS])
        if what == "fill":
            out += fill(rng.choice([*AREAS]))
        elif what in ("store", "load"):
            out.append(Step(what, on))
        elif what == "move":
            kept = rng.choice([n for n in (1, 2, 4, 8) if n <= on.size]) if on.size < 16 else 16
            out.append(Step(what, on, span([*AREAS], kept, 0, on.lanes)._replace(lanes=on.lanes), kept))
        elif what == "use":
            out.append(Step(what, span(["r"])))
        elif what == "undefined":
            out.append(Step(what, span([*AREAS] if rng.random() < 0.2 else ["r"], 4)))
        elif what == "atomic":
            out.append(Step(what, span([*SHARED, "g"], 4, 4)))
        elif what == "cp.async":
            size = rng.choice([4, 8, 16])
            to = span(SHARED, size, size)
            source = span(["g"], size, size, to.lanes)._replace(lanes=to.lanes)
            out.append(Step(what, source._replace(size=rng.choice([size, size, 0, size // 2])), to, size))
        elif what == "bulk":
            out.append(Step(what, span(SHARED, 16, 16, 1), span(["g"], 16, 16, 1)))
        else:
            out.append(Step(what, span(SHARED, 8, 8, 1)))
    return out


class Wrong(Exception):
    """A wrong access: the kind of error, and part of its message."""

    def __init__(self, kind: str, words: str) -> None:
        super().__init__(kind, words)
        self.kind = kind
        self.words = words


class Memory:
    """The definition: the contents of each byte of each area, and of local memory per lane."""

    def __init__(self) -> None:
        self.bytes = {n: [[NOTHING] * a.size for _ in range(32 if n == "r" else 1)] for n, a in AREAS.items()}

    def of(self, span: Span, lane: int) -> list[str]:
        return self.bytes[span.area][lane if span.area == "r" else 0]

    def inside(self, span: Span, size: int) -> None:
        """Raise Wrong if a lane accesses bytes outside the area."""
        for lane in range(span.lanes):
            if not 0 <= span.first(lane) <= AREAS[span.area].size - size:
                raise Wrong("oob", "")

    def no_barrier(self, span: Span, size: int) -> None:
        """Raise Wrong if a lane accesses an mbarrier."""
        start = AREAS[span.area].start
        for lane in range(span.lanes):
            for at in range(span.first(lane), span.first(lane) + size):
                if self.of(span, lane)[at] == BARRIER:
                    raise Wrong("sync", f"shared memory at byte offset {start + at},")

    def missing(self, span: Span) -> list[tuple[int, int]]:
        """Return (lane, byte) of every uninitialized byte that the lanes read."""
        return [
            (lane, at)
            for lane in range(span.lanes)
            for at in range(span.first(lane), span.first(lane) + span.size)
            if self.of(span, lane)[at] == NOTHING
        ]

    def read(self, span: Span) -> None:
        """Check a read whose value is used."""
        self.inside(span, span.size)
        self.no_barrier(span, span.size)
        found = self.missing(span)
        if found:
            raise Wrong("uninit", f" at byte offset {AREAS[span.area].start + found[0][1]}")

    def write(self, span: Span) -> None:
        self.inside(span, span.size)
        self.no_barrier(span, span.size)
        for lane in range(span.lanes):
            self.of(span, lane)[span.first(lane) : span.first(lane) + span.size] = [DATA] * span.size


def judge(steps: list[Step]) -> Wrong | None:
    """Return the first error of a program."""
    memory = Memory()
    try:
        for step in steps:
            _judge(memory, step)
    except Wrong as e:
        return e
    return None


def _judge(memory: Memory, step: Step) -> None:
    on, to = step.on, step.to
    if step.what == "store":
        memory.write(on)
    elif step.what == "load" and on.area == "r":
        memory.inside(on, on.size)
    elif step.what == "load":
        memory.read(on)
    elif step.what == "use":
        memory.inside(on, on.size)
        if memory.missing(on):
            raise Wrong("uninit", " depends on local memory at byte offset ")
    elif step.what == "undefined":
        memory.inside(on, on.size)
        if on.area != "r":
            raise Wrong("uninit", " depends on register 0 of llvm.mlir.undef")
        for lane in range(on.lanes):
            memory.of(on, lane)[on.first(lane) : on.first(lane) + on.size] = [NOTHING] * on.size
    elif step.what == "move":
        assert to is not None
        _judge(memory, Step("load", on))
        held = [memory.of(on, lane)[on.first(lane) :][: step.kept] for lane in range(on.lanes)]
        memory.inside(to, to.size)
        if to.area != "r" and any(NOTHING in part for part in held):
            raise Wrong("uninit", " depends on local memory at byte offset ")
        memory.write(to)
        if to.area == "r":
            for lane, part in enumerate(held):
                memory.of(to, lane)[to.first(lane) : to.first(lane) + to.size] = part
    elif step.what == "atomic":
        memory.read(on)
        memory.write(on)
    elif step.what == "cp.async":
        assert to is not None
        memory.inside(to, to.size)
        if on.size:
            memory.read(on)
        memory.write(to)
    elif step.what == "bulk":
        assert to is not None
        memory.inside(on, on.size)
        memory.inside(to, to.size)
        memory.read(on)
        memory.write(to)
    else:
        memory.inside(on, on.size)
        cell = memory.of(on, 0)
        valid = cell[on.at] == BARRIER
        if valid != (step.what == "inval"):
            raise Wrong("sync", "already initialized" if valid else "no mbarrier is initialized")
        cell[on.at : on.at + 8] = [BARRIER if step.what == "init" else NOTHING] * 8


def text(steps: list[Step]) -> str:
    """Return the text of a program's kernel."""
    lines = [f"%base_{n} = llvm.mlir.addressof @{n} : !llvm.ptr<3>" for n in SHARED]
    lines += [
        f"%bytes = arith.constant {AREAS['r'].size} : i32",
        "%base_r = llvm.alloca %bytes x i8 {alignment = 16 : i64} : (i32) -> !llvm.ptr",
        "%base_g = llvm.getelementptr %g[0] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8",
        "%c1 = arith.constant 1 : i32",
        "%c16 = arith.constant 16 : i32",
        "%u = llvm.mlir.undef : i32",
    ]
    lines += [f"%d{n} = arith.constant {'1' if n < 16 else 'dense<1>'} : {t}" for n, t in TYPES.items()]
    for i, step in enumerate(steps):
        body: list[str] = []
        on = _pointer(body, f"on{i}", step.on)
        to = _pointer(body, f"to{i}", step.to) if step.to is not None else ""
        body += _body(i, step, on, to)
        lines += [
            f"%n{i} = arith.constant {step.on.lanes} : i32",
            f"%l{i} = arith.cmpi slt, %tid, %n{i} : i32",
            f"scf.if %l{i} {{",
            *body,
            "}",
        ]
    return "\n".join([*lines, "llvm.return"])


def _pointer(body: list[str], name: str, span: Span) -> str:
    """Emit the address of a span. Return its SSA name and type."""
    pointer = POINTERS[AREAS[span.area].space]
    if span.stride:
        body += [
            f"%{name}s = arith.constant {span.stride} : i32",
            f"%{name}m = arith.muli %tid, %{name}s : i32",
            f"%{name}q = llvm.getelementptr %base_{span.area}[%{name}m] : ({pointer}, i32) -> {pointer}, i8",
            f"%{name} = llvm.getelementptr %{name}q[{span.at}] : ({pointer}) -> {pointer}, i8",
        ]
    else:
        body.append(f"%{name} = llvm.getelementptr %base_{span.area}[{span.at}] : ({pointer}) -> {pointer}, i8")
    return f"%{name}"


def _body(i: int, step: Step, on: str, to: str) -> list[str]:
    span, kind = step.on, TYPES.get(step.on.size, "")
    pointer = POINTERS[AREAS[span.area].space]
    load = f"%v{i} = llvm.load {on} {{alignment = {span.align} : i64}} : {pointer} -> {kind}"
    if step.what == "store":
        return [f"llvm.store %d{span.size}, {on} {{alignment = {span.align} : i64}} : {kind}, {pointer}"]
    if step.what == "load":
        return [load]
    if step.what == "use":
        return [load, f"llvm.store %v{i}, %out {{alignment = 1 : i64}} : {kind}, !llvm.ptr<1>"]
    if step.what == "undefined":
        return [f"llvm.store %u, {on} {{alignment = {span.align} : i64}} : i32, {pointer}"]
    if step.what == "move":
        assert step.to is not None
        narrow = step.kept != span.size
        cut = [f"%w{i} = llvm.trunc %v{i} : {kind} to {TYPES[step.kept]}"] if narrow else []
        end = f"{TYPES[step.kept]}, {POINTERS[AREAS[step.to.area].space]}"
        value = f"%w{i}" if narrow else f"%v{i}"
        return [load, *cut, f"llvm.store {value}, {to} {{alignment = {step.to.align} : i64}} : {end}"]
    if step.what == "atomic":
        return [f"%v{i} = llvm.atomicrmw add {on}, %c1 monotonic : {pointer}, i32"]
    if step.what == "cp.async":
        how = "cg" if step.kept == 16 else "ca"
        return [
            f"%z{i} = arith.constant {span.size} : i32",
            f'"nvvm.cp.async.shared.global"({to}, {on}, %z{i}) <{{modifier = #nvvm<load_cache_modifier {how}>, '
            f"size = {step.kept} : i32}}> : (!llvm.ptr<3>, !llvm.ptr<1>, i32) -> ()",
            '"nvvm.cp.async.wait.all"() : () -> ()',
        ]
    if step.what == "bulk":
        return [
            f'"nvvm.cp.async.bulk.global.shared.cta"({to}, {on}, %c16) <{{operandSegmentSizes = array<i32: 1, 1, 1, 0, '
            "0>}> : (!llvm.ptr<1>, !llvm.ptr<3>, i32) -> ()",
            "nvvm.cp.async.bulk.commit.group",
            "nvvm.cp.async.bulk.wait_group 0",
        ]
    if step.what == "init":
        return [f'"nvvm.mbarrier.init"({on}, %c1) : (!llvm.ptr<3>, i32) -> ()']
    return [f'"nvvm.mbarrier.inval"({on}) : (!llvm.ptr<3>) -> ()']


def reported(steps: list[Step], schedule: str, width: str) -> tuple[str, str]:
    """Return the kind and the message of the interpreter's report, or empty strings."""
    module = kernel(text(steps), "%g: !llvm.ptr<1>, %out: !llvm.ptr<1>", GLOBALS)
    given = Pointer(np.zeros(AREAS["g"].size, np.uint8), unwritten=True), Pointer(np.zeros(16, np.uint8))
    try:
        run_kernel(module, "k", given, 1, 32, checks=["uninit"], schedule=schedule, width=width)
    except InterpError as e:
        return e.kind, e.message
    return "", ""


def check(seed: int) -> str:
    """Compare one program and return the kind of its error. Raises AssertionError if the two checkers differ."""
    rng = random.Random(seed)
    steps = program(rng)
    want = judge(steps)
    schedule, width = rng.choice(SCHEDULES), rng.choice(["auto", "warp"])
    kind, message = reported(steps, schedule, width)
    same = kind == (want.kind if want else "") and (want is None or want.words in message)
    shown = "\n".join(map(str, steps))
    assert same, f"seed {seed}, {schedule}, {width}:\n{shown}\nexpected {want!r}, got {kind}: {message}"
    return kind


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    kinds = Counter(check(options.seed + i) or "nothing" for i in range(options.count))
    said = ", ".join(f"{n} {kind}" for kind, n in sorted(kinds.items()))
    print(f"{options.count} programs ({said}): interpreter and definition agree")


if __name__ == "__main__":
    main()
