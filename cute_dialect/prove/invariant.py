"""The inductive invariant of a proved kernel, as a certificate.

The states of the search are not kept. They are visited again, with what the search has learned, written node by node.
"""

from __future__ import annotations

import time
from collections import deque
from typing import cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

import cute_dialect
from cute_dialect.prove.arithmetic import Learned
from cute_dialect.prove.certificate import END, HINTS, Content, base_ir_hash, claim_of, digest_of
from cute_dialect.prove.codec import Child, Codec
from cute_dialect.prove.decisions import Restart, Undecided
from cute_dialect.prove.moves import Move, choose_move
from cute_dialect.prove.program import Program
from cute_dialect.prove.recheck import Outcome, encoded, first_outcome, machine_of, outcomes
from cute_dialect.prove.search import MOST_RESTARTS, MOST_STATES, Keys
from cute_dialect.prove.state import State
from cute_dialect.prove.values import Base
from cute_dialect.prove.verdict import NotProved


def certify(module: ModuleOp, kernel: Operation, learned: Learned, engine: str, seconds: float) -> Content:
    """Return the certificate of a kernel that a search has proved. Raises NotProved if it takes too long.

    Args:
        module: The lowered module.
        kernel: The kernel in it.
        learned: Facts about the kernel from the search.
        engine: The engine that has proved it, see `certificate`.
        seconds: Limit of CPU time.
    """
    deadline = time.process_time() + seconds
    learned = _copied(learned)
    for _ in range(MOST_RESTARTS):
        try:
            return _Writer(module, kernel, learned, engine, deadline).content()
        except Restart:
            continue
    raise NotProved("the search restarts too often")


def _copied(learned: Learned) -> Learned:
    """Return an independent copy, without the ranges, which are found again."""
    out = Learned(unit=learned.unit, asks_all=learned.asks_all)
    for name in HINTS:
        into: object = getattr(out, name)
        if isinstance(into, (dict, set)):
            cast("dict[object, object]", into).update(getattr(learned, name))
    out.classes = {w: list(c) for w, c in learned.classes.items()}
    out.askers = {op: set(terms) for op, terms in learned.askers.items()}
    out.ranges = {}
    return out


class _Writer:
    """One visit of all states."""

    def __init__(self, module: ModuleOp, kernel: Operation, learned: Learned, engine: str, deadline: float) -> None:
        self.module, self.kernel, self.learned, self.deadline = module, kernel, learned, deadline
        program = Program(module, kernel)
        self.codec = Codec(program)
        self.engine = engine
        self.machine = machine_of(program, learned, engine)
        self.codec.machine = self.machine
        self.keys = Keys(self.machine)
        self.numbers: dict[tuple[Child, Child], int] = {}
        self.moves: dict[Child, int] = {}
        self.work: deque[tuple[State, Undecided | None, tuple[Child, Child]]] = deque()
        self._move(Move())

    def _move(self, move: Move) -> int:
        node = self.codec.write((move.dropped, dict(move.shifts), move.tiles))
        return self.moves.setdefault(node, len(self.moves))

    def content(self) -> Content:
        """Visit all states and return the certificate."""
        start = self._edge(first_outcome(self.machine, self.engine, self.deadline))
        rows: list[list[object]] = []
        while self.work:
            s, question, nodes = self.work.popleft()
            if len(self.numbers) > MOST_STATES:
                raise NotProved(f"the invariant has more than {MOST_STATES} states")
            edges = [self._edge(o) for o in outcomes(self.machine, self.engine, s, question, self.deadline)]
            rows.append([*nodes, edges])
        content: dict[str, object] = {
            **claim_of(self.kernel, self.learned),
            "engine": self.engine,
            "tool": f"cute-dialect {cute_dialect.__version__}",
            "base_ir": base_ir_hash(self.module, self.kernel),
            "hints": self.codec.write({name: getattr(self.learned, name) for name in HINTS}),
            "tokens": self.codec.write(self.machine.table.names()),
            "moves": list(self.moves),
            "start": start,
            "states": rows,
        }
        content["nodes"] = [list(node) for node in self.codec.nodes]
        return cast("Content", {**content, "digest": digest_of(content)})

    def _edge(self, outcome: Outcome) -> list[int]:
        """Return the edge to a successor, and visit it later if it is new."""
        if outcome is None:
            return [END, 0]
        s, question = outcome
        move = choose_move(self.keys, s)
        nodes = encoded(self.codec, s, question, move)
        target = self.numbers.get(nodes)
        if target is None:
            target = self.numbers[nodes] = len(self.numbers)
            read = self.codec.read(nodes[1])
            asked = None if read is None else Undecided(*cast("tuple[Base, int]", read))
            self.work.append((s, asked, nodes))
        return [target, self._move(move)]
