"""The checker of certificates: it recomputes the successors of each state, and searches for nothing.

A certificate lists the states in which a warp asks an undecided question about a size. The checker reads one state
after the other from the file, takes both answers, runs the block to its next question, makes the move that the
certificate names, and compares the result with the state that is named. The first state is that of the launch. So if no
step reports a violation, the states are an inductive invariant.

The checker shares the steps of instructions (`machine`, `effects`, `arithmetic`, `facts`) and the slice of the kernel
(`program`) with the prover. It does not share the search, its comparison of states, or its choice of moves. It checks
the conditions of each move itself (`moves.check_move`), and each step starts from a state of the file: if the file
leaves a value out, an instruction that needs it is not proved.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TypeAlias, cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from cute_dialect.errors import CuteError
from cute_dialect.prove.arithmetic import Learned
from cute_dialect.prove.certificate import (
    END,
    FACTS,
    HINTS,
    INTERLEAVINGS,
    Content,
    Row,
    base_ir_hash,
    claim_of,
    digest_of,
)
from cute_dialect.prove.codec import Child, Codec, CodecError
from cute_dialect.prove.decisions import Restart, Undecided, split
from cute_dialect.prove.exhaustive import Interleaved, interleavings
from cute_dialect.prove.machine import Machine
from cute_dialect.prove.moves import Move, WrongMove, apply_move, check_move, settle
from cute_dialect.prove.program import Program, find_kernel
from cute_dialect.prove.state import ALL_LANES, State
from cute_dialect.prove.tensor_steps import TensorMachine
from cute_dialect.prove.values import Base
from cute_dialect.prove.verdict import NotProved, Violation

Outcome: TypeAlias = "tuple[State, Undecided | None] | None"
"""A state and the question that it asks. None for the end of the block."""
LIMIT = 3600.0
"""CPU seconds of a check, unless specified."""


class RejectedError(CuteError):
    """A certificate that is not a proof. The text names the first thing that is wrong."""


def recheck(module: ModuleOp, kernel: Operation, content: Content, seconds: float = LIMIT) -> int:
    """Check a certificate of a kernel and return the number of its states.

    Args:
        module: The lowered module, of compile(…, emit="base").
        kernel: The kernel in it.
        content: The certificate of the kernel, see `certificate`.
        seconds: Limit of CPU time.

    Raises:
        RejectedError: the certificate is not a proof for this kernel; the text names the first thing that is wrong.
    """
    if content.get("digest") != digest_of(content):
        raise RejectedError("the content does not match its digest: the file was changed after it was written")
    base_ir = base_ir_hash(module, kernel)
    if content.get("base_ir") != base_ir:
        raise RejectedError(
            f"the certificate is for another program: its base_ir is {_short(content.get('base_ir'))}, and that of "
            f"this kernel is '{base_ir}'; prove the kernel again"
        )
    checker = _Checker(content, time.process_time() + seconds)
    try:
        return checker.check(module, kernel)
    except RejectedError:
        raise
    except Restart:
        raise RejectedError(f"{checker.where}: the hints do not distinguish what this step depends on") from None
    except (CodecError, NotProved, Violation, WrongMove) as e:
        raise RejectedError(f"{checker.where}: {e}") from None
    except Exception as e:  # A changed state can break any assumption of the steps.
        raise RejectedError(f"{checker.where}: not understood ({type(e).__name__}: {e})") from None


def recheck_all(modules: Mapping[str, ModuleOp], certificates: Sequence[Content], seconds: float = LIMIT) -> list[str]:
    """Check one certificate for each kernel, and return a line for each. Raises RejectedError.

    Args:
        modules: The lowered module of each kernel, by name.
        certificates: The content of a file of certificates.
        seconds: Limit of CPU time per kernel.
    """
    lines: list[str] = []
    given = [c.get("kernel") for c in certificates]
    for name, module in modules.items():
        if given.count(name) != 1:
            raise RejectedError(
                f"{name}: the file has {given.count(name)} certificates of this kernel; it must have one"
            )
        content, started = certificates[given.index(name)], time.process_time()
        try:
            states = recheck(module, find_kernel(module, name), content, seconds)
        except RejectedError as e:
            raise RejectedError(f"{name}: certificate rejected: {e}") from None
        sizes = ", ".join(content["preconditions"]) or "trip counts"
        used = time.process_time() - started
        lines.append(f"{name}: certificate accepted: proved for all {sizes}; {states} states, {used:.1f} s")
    return lines


def machine_of(program: Program, learned: Learned, engine: str) -> Machine:
    """Return the machine whose steps an engine takes."""
    return (TensorMachine if engine == FACTS else Interleaved)(program, learned)


def proceed(machine: Machine, s: State, deadline: float) -> Undecided | None:
    """Run a state in the fixed order of warps to the next question. Return None at the end of the block.

    Copies land when no warp can continue. Then a warp may begin a tile before others have ended theirs.

    Raises Violation if even then no warp can continue.
    """
    try:
        while True:
            if time.process_time() > deadline:
                raise NotProved("the limit of time is reached; raise --limit")
            if [w.number for w in s.warps if w.frames and machine.advance(s, w, tiles=0)]:
                continue
            if s.flying:
                machine.land(s, 0)
            elif not any(w.frames and machine.advance(s, w, tiles=1) for w in s.warps):
                break
    except Undecided as question:
        return question
    waiting = [w for w in s.warps if w.frames]
    if waiting:
        raise Violation("deadlock", f"deadlock of {len(waiting)} warps", waiting[0].frames[-1].op)
    return None


def first_outcome(machine: Machine, engine: str, deadline: float) -> Outcome:
    """Return the first state of a block."""
    s = machine.start()
    if engine != FACTS:
        return s, None
    question = proceed(machine, s, deadline)
    return None if question is None else (s, question)


def outcomes(machine: Machine, engine: str, s: State, question: Undecided | None, deadline: float) -> Iterator[Outcome]:
    """Yield the successors of a state, which does not change: one per answer, or one per step that is possible."""
    if engine != FACTS:
        ends = True
        for _, child in interleavings(machine, s):
            ends = False
            yield child, None
        if ends:
            yield None
        return
    assert question is not None
    for answer in (True, False):
        child = s.copy()
        split(child.decisions, question, machine.learned, answer)
        following = proceed(machine, child, deadline)
        yield None if following is None else (child, following)


def encoded(codec: Codec, s: State, question: Undecided | None, move: Move) -> tuple[Child, Child]:
    """Make a move, and return the nodes of the state and its question."""
    apply_move(codec.machine.learned, s, move)
    settle(s)
    if question is None:
        return codec.write(s), "N"
    terms, tile = question.base
    base = terms, None if tile is None else tile - move.tiles
    return codec.write(s), codec.write((base, question.bound - move.shifts.get(question.base, 0)))


class _Checker:
    """One check of a certificate.

    Attributes:
        where: The part that is checked now.
        last: The last state that an edge has reached.
    """

    def __init__(self, content: Content, deadline: float) -> None:
        self.content, self.deadline = content, deadline
        self.where, self.last = "the tables", -1

    def _read(self, module: ModuleOp, kernel: Operation) -> None:
        """Read the tables."""
        content = self.content
        self.engine: str = content["engine"]
        if self.engine not in (FACTS, INTERLEAVINGS):
            raise RejectedError(f"the engine is {self.engine!r}; it must be {FACTS!r} or {INTERLEAVINGS!r}")
        program = Program(module, kernel)
        self.codec = Codec(program, content["nodes"])
        self.learned, hints = Learned(), cast("dict[str, object]", self.codec.read(content["hints"]))
        if sorted(hints) != sorted(HINTS):
            raise RejectedError(f"the hints are {', '.join(hints)}; they must be {', '.join(HINTS)}")
        for name, value in hints.items():
            setattr(self.learned, name, value)
        self._check_hints(program.warps * program.blocks)
        self._check_claim(kernel)
        self.ranges, self.learned.ranges = self.learned.ranges, {}
        self.small, self.learned.small = self.learned.small, set()
        self.machine = machine_of(program, self.learned, self.engine)
        self.codec.machine = self.machine
        for token in cast("tuple[Hashable, ...]", self.codec.read(content["tokens"])):
            self.machine.table.token(token)
        self.moves = [self._move(node) for node in content["moves"]]
        self.rows: list[Row] = content["states"]

    def _check_hints(self, warps: int) -> None:
        """Check that the hints have the form that the steps rely on. They decide only what states distinguish."""
        h = self.learned
        if sorted(h.classes) != list(range(warps)):
            raise RejectedError("the hints name other warps than the kernel has")
        for w, classes in h.classes.items():
            if sum(classes) != ALL_LANES or any(a < 1 or a & b for i, a in enumerate(classes) for b in classes[:i]):
                raise RejectedError(f"the hints do not divide the lanes of warp {w} into classes")
        if h.unit not in (1, 2, 4, 8, 16) or sorted(h.holders.values()) != list(range(len(h.holders))):
            raise RejectedError("the hints have a wrong unit of shared memory, or wrong numbers of holders")
        if any(n < 1 for n in h.modulus.values()) or any(n < -1 for n in h.threshold.values()):
            raise RejectedError("the hints have a wrong divisor or threshold")
        if any(n != 1 for n in h.minimum.values()):
            raise RejectedError("a precondition is not of the form 'size >= 1'")

    def _check_claim(self, kernel: Operation) -> None:
        """Compare what the certificate states with what this tool proves."""
        content = cast("dict[str, object]", self.content)
        for key, expected in claim_of(kernel, self.learned).items():
            if content.get(key) == expected:
                continue
            given, needed = _items(content.get(key)), _items(expected)
            for one in (v for v in needed if v not in given):
                raise RejectedError(f"{key}: {_short(one)} is missing")
            for one in (v for v in given if v not in needed):
                raise RejectedError(f"{key}: {_short(one)} is not part of this proof")
            raise RejectedError(f"{key}: the order is changed")

    def _move(self, node: Child) -> Move:
        dropped, shifts, tiles = cast("tuple[tuple[Base, ...], dict[Base, int], int]", self.codec.read(node))
        return Move(dropped, shifts, tiles)

    def check(self, module: ModuleOp, kernel: Operation) -> int:
        """Check everything, and return the number of states."""
        self._read(module, kernel)
        self.where = "the launch"
        self._compare(first_outcome(self.machine, self.engine, self.deadline), self.content["start"])
        for number, (node, asked, edges) in enumerate(self.rows):
            self.where = f"state {number}"
            if number > self.last:
                raise RejectedError(f"state {number} is not reached from an earlier one")
            s = self.codec.read(node)
            if not isinstance(s, State):
                raise RejectedError(f"state {number} is not a state")
            question = None if asked == "N" else Undecided(*cast("tuple[Base, int]", self.codec.read(asked)))
            following = list(outcomes(self.machine, self.engine, s, question, self.deadline))
            if len(following) != len(edges):
                raise RejectedError(
                    f"state {number} has {len(following)} successors, but the certificate names {len(edges)}"
                )
            for outcome, edge in zip(following, edges):
                self._compare(outcome, edge)
        if self.learned.ranges != self.ranges or self.learned.small != self.small:
            raise RejectedError("the certificate assumes other ranges of sizes than the steps of the kernel do")
        return len(self.rows)

    def _compare(self, outcome: Outcome, edge: Sequence[int]) -> None:
        """Compare a successor with the state that an edge names."""
        target, move = edge
        if outcome is None:
            if (target, move) != (END, 0):
                raise RejectedError(f"{self.where}: the block ends, but the edge leads to state {target}")
            return
        if not 0 <= target <= min(self.last + 1, len(self.rows) - 1) or not 0 <= move < len(self.moves):
            raise RejectedError(f"{self.where}: the edge leads to state {target} by move {move}, which does not exist")
        s, question = outcome
        check_move(self.learned, s, self.moves[move])
        got = encoded(self.codec, s, question, self.moves[move])
        expected = tuple(self.rows[target][:2])
        if got != expected:
            what = "asks another question" if got[0] == expected[0] else f"has other {self._difference(s, expected[0])}"
            raise RejectedError(f"{self.where}: the successor {what} than state {target} of the certificate")
        self.last = max(self.last, target)

    def _difference(self, s: State, node: Child) -> str:
        """Return the parts in which a state differs from that of a node."""
        other = self.codec.read(node)
        if not isinstance(other, State):
            return "contents"
        write, left_out = self.codec.write, ("facts", "barrier_units")
        names = [name for name in vars(s) if name not in left_out]
        return ", ".join(name for name in names if write(getattr(s, name)) != write(getattr(other, name))) or "facts"


def _items(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else [value]


def _short(value: object) -> str:
    text = repr(value)
    if isinstance(value, dict):
        text = str(cast("dict[str, object]", value).get("text", text))
    return text if len(text) <= 120 else text[:117] + "..."
