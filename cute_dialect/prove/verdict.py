"""Findings of the protocol prover, and source locations of ops."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Operation

from cute_dialect.interp.errors import location_text


def where(op: Operation | None) -> str:
    """Return `FILE:LINE:COL` of an op, or its name if it has no location."""
    return "" if op is None else location_text(op) or op.name


class NotProved(Exception):
    """The prover cannot decide: the op or pattern in the way, and what would help."""

    def __init__(self, reason: str, op: Operation | None = None, cure: str = "") -> None:
        super().__init__(reason)
        self.reason, self.op, self.cure = reason, op, cure


@dataclass(frozen=True)
class Step:
    """One event of a counterexample."""

    text: str
    location: str


class Violation(Exception):
    """A step that a correct protocol never takes.

    Attributes:
        kind: "race", "deadlock", "sync", "uninit", "wgmma", "order" (a wait or arrival whose phase depends on the
            schedule) or "exit".
        earlier: The earlier access or arrival, if there is one.
    """

    def __init__(self, kind: str, text: str, op: Operation | None, earlier: Operation | None = None) -> None:
        super().__init__(text)
        self.kind, self.text, self.op, self.earlier = kind, text, op, earlier
