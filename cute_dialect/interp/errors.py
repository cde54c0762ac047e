"""Errors of the interpreter: one exception for users, one signal between an op and the runner.

`InterpError` is what callers see: a kind, the op and its source location, the thread and block, and a message of the
form "expected …, got …".  `Fault` is raised inside an op, which knows only the lanes; the runner that executes the op
adds the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cute_dialect.errors import CuteError
from cute_dialect.ir.diagnostics import callers, location_frames, location_position, marked_line, source_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdsl.ir import Attribute, Operation

    from cute_dialect.ir.diagnostics import Frame, Position


class InterpError(CuteError):
    """A kernel did something wrong, or something this interpreter does not do.

    Attributes:

    - kind: "oob", "misaligned", "readonly", "overflow", "division", "poison", "divergence", "sync", "deadlock",
      "limit", "argument", "unsupported", "trap", "assert", "arithmetic", "race",
      "promise" or "internal"
    - message: the bare sentence, without position
    - op, location: name of the op and `FILE:LINE:COL` (empty when the IR carries no locations)
    - frames: the place of the op and the places of the calls that it was inlined through, innermost first
    - thread, block: coordinates (x, y, z) of the first offending thread, None where they make no sense
    - address: the offending address, None where it makes no sense
    """

    def __init__(
        self,
        kind: str,
        message: str,
        *,
        op: str = "",
        op_text: str = "",
        frames: tuple[Frame, ...] = (),
        thread: tuple[int, int, int] | None = None,
        block: tuple[int, int, int] | None = None,
        address: int | None = None,
        notes: tuple[str, ...] = (),
    ) -> None:
        self.kind = kind
        self.message = message
        self.op = op
        self.op_text = op_text
        self.frames = frames
        self.location = str(frames[0].position) if frames else ""
        self.thread = thread
        self.block = block
        self.address = address
        self.notes = notes
        super().__init__(self.render())

    def with_notes(self, notes: Sequence[str]) -> InterpError:
        """Return the same error, with more notes."""
        return InterpError(
            self.kind,
            self.message,
            op=self.op,
            op_text=self.op_text,
            frames=self.frames,
            thread=self.thread,
            block=self.block,
            address=self.address,
            notes=(*self.notes, *notes),
        )

    def render(self) -> str:
        """Return the whole diagnostic, several lines."""
        lines = [f"{self.location}: error: {self.message}" if self.location else f"error: {self.message}"]
        lines += _source(self.frames[0].position) if self.frames else ()
        for text, position in callers(self.frames):
            lines += [f"{position}: note: {text}", *_source(position)]
        if self.op:
            lines.append(f"  op: {self.op_text or self.op}")
        if self.thread is not None:
            where = f"  thread ({', '.join(map(str, self.thread))})"
            if self.block is not None:
                where += f" of block ({', '.join(map(str, self.block))})"
            lines.append(where)
        if self.address is not None:
            lines.append(f"  address {self.address:#x}")
        lines.extend(f"  note: {n}" for n in self.notes)
        return "\n".join(lines)


class Fault(Exception):
    """Raised by an executing op; `lane` is the index in the group of the first offending lane, -1 when unknown."""

    def __init__(
        self, kind: str, message: str, lane: int = -1, address: int | None = None, notes: tuple[str, ...] = ()
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.lane = lane
        self.address = address
        self.notes = notes


class PoisonUse(Exception):
    """An operation met a poison or undef operand; the runner makes its results poison."""


class OpInfo:
    """An op as diagnostics name it; made once when the op is compiled, text made only when needed."""

    __slots__ = ("_op", "name", "operands", "pure", "removable", "results")

    def __init__(
        self, op: Operation, name: str, operands: tuple[int, ...], results: tuple[int, ...], pure: bool
    ) -> None:
        self._op = op
        self.name = name
        self.operands = operands
        self.results = results
        self.pure = pure
        self.removable = False

    @property
    def source(self) -> Operation:
        """The op."""
        return self._op

    @property
    def frames(self) -> tuple[Frame, ...]:
        """The places of the op, see :func:`cute_dialect.ir.diagnostics.location_frames`."""
        return location_frames(self._op.location)

    @property
    def location(self) -> str:
        """The `FILE:LINE:COL` of the op, empty when unknown."""
        return location_text(self._op)

    @property
    def text(self) -> str:
        """The op as one line of IR, at most 200 characters."""
        return op_text(self._op)


def op_text(op: Operation) -> str:
    """Return one line of an op, in generic form, at most 200 characters; regions are left out."""
    from io import StringIO

    from xdsl.printer import Printer

    out = StringIO()
    try:
        if op.regions:
            return op_name(op)
        Printer(out, print_generic_format=True).print_op(op)
    except Exception:  # printing must never hide the diagnostic itself
        return op_name(op)
    text = " ".join(out.getvalue().split())
    return text if len(text) <= 200 else text[:197] + "..."


def op_name(op: Operation) -> str:
    """Return the op's name, also of an op that the context does not know (`builtin.unregistered`)."""
    if op.name == "builtin.unregistered":
        known = getattr(op, "op_name", None)
        data = getattr(known, "data", None)
        if isinstance(data, str):
            return data
    return op.name


def attr_of(op: Operation, name: str) -> Attribute | None:
    """Return an attribute, whether it is stored as property or in the dictionary."""
    got = op.properties.get(name)
    return got if got is not None else op.attributes.get(name)


def location_text(op: Operation) -> str:
    """Return `FILE:LINE:COL` of an op, empty when unknown."""
    position = location_position(op.location)
    return str(position) if position is not None else ""


def _source(position: Position) -> list[str]:
    """Return the line of a source with its mark; nothing of a file of IR, of which the op is shown anyway."""
    text = None if position.file.endswith(".mlir") else source_line(position.file, position.line)
    return marked_line(text, position) if text is not None and text.strip() else []
