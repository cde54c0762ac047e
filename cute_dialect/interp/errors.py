"""Exceptions of the interpreter.

Callers see `InterpError`: a kind, the op with its source location, the thread and block, and a message. `Fault` is
raised inside an op, which knows only the lanes; the runner that executes the op turns it into an `InterpError`.
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
    """A kernel did something wrong, or uses something that this interpreter does not support.

    Attributes:
        kind: "oob", "misaligned", "readonly", "overflow", "division", "poison", "divergence", "sync", "deadlock",
            "limit", "argument", "unsupported", "trap", "assert", "arithmetic", "race", "uninit", "wgmma",
            "tcgen05", "promise"
            or "internal".
        message: the message alone, without location.
        op: name of the op.
        location: `FILE:LINE:COL`, empty if the IR carries no locations.
        frames: the location of the op and of the calls that it was inlined through, innermost first.
        thread, block: coordinates (x, y, z) of the first offending thread, None if unknown.
        rank: its rank, None if unknown or if there is one rank.
        address: the offending address, None if there is none.
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
        rank: int | None = None,
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
        self.rank = rank
        self.address = address
        self.notes = notes
        super().__init__(self.render())

    def with_notes(self, notes: Sequence[str]) -> InterpError:
        """Return the same error with additional notes."""
        return InterpError(
            self.kind,
            self.message,
            op=self.op,
            op_text=self.op_text,
            frames=self.frames,
            thread=self.thread,
            block=self.block,
            rank=self.rank,
            address=self.address,
            notes=(*self.notes, *notes),
        )

    def render(self) -> str:
        """Return the whole diagnostic, several lines."""
        lines = [f"{self.location}: error: {self.message}" if self.location else f"error: {self.message}"]
        lines += _source(self.frames[0].position) if self.frames else ()
        for text, position in callers(self.frames):
            lines += [f"{position}: note: {text}", *_source(position)]
        if self.op and not (self.frames and is_python(self.frames[0].position)):
            lines.append(f"  op: {self.op_text or self.op}")
        if self.thread is not None:
            where = f"  thread ({', '.join(map(str, self.thread))})"
            if self.block is not None:
                where += f" of block ({', '.join(map(str, self.block))})"
            if self.rank is not None:
                where += f" of rank {self.rank}"
            lines.append(where)
        if self.address is not None:
            lines.append(f"  address {self.address:#x}")
        lines.extend(f"  note: {n}" for n in self.notes)
        return "\n".join(lines)


class Fault(Exception):
    """A fault of the executing op. `lane` is the index in the group of the first offending lane, -1 if unknown."""

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
    """Raised if an op reads a poison or undef operand. The runner then makes its results poison."""


class OpInfo:
    """An op as it appears in diagnostics. Created when the op is compiled; its text is built only when needed."""

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
        return self._op

    @property
    def frames(self) -> tuple[Frame, ...]:
        """Source locations of the op, see :func:`cute_dialect.ir.diagnostics.location_frames`."""
        return location_frames(self._op.location)

    @property
    def location(self) -> str:
        """`FILE:LINE:COL` of the op, empty if unknown."""
        return location_text(self._op)

    @property
    def text(self) -> str:
        """The op as one line of IR, at most 200 characters."""
        return op_text(self._op)


def instruction_name(info: OpInfo) -> str:
    """Return the name of an op for a diagnostic: for intrinsics of tcgen05 that of the instruction, ``tcgen05.cp``."""
    intrinsic = str(getattr(attr_of(info.source, "intrin"), "data", ""))
    family, _, rest = intrinsic.removeprefix("llvm.nvvm.").partition(".")
    return f"tcgen05.{rest.split('.')[0]}" if family == "tcgen05" else info.name


def op_text(op: Operation) -> str:
    """Return the op in generic form on one line, at most 200 characters. An op with regions gives its name only."""
    from io import StringIO

    from xdsl.printer import Printer

    out = StringIO()
    try:
        if op.regions:
            return op_name(op)
        Printer(out, print_generic_format=True).print_op(op)
    except Exception:  # Printing must never hide the diagnostic itself.
        return op_name(op)
    text = " ".join(out.getvalue().split())
    return text if len(text) <= 200 else text[:197] + "..."


def is_python(position: Position | None) -> bool:
    """Return True for a position in a kernel of the language, whose author has not seen the IR."""
    return position is not None and position.file != "-" and not position.file.endswith(".mlir")


def value_name(name: str, op: Operation) -> str:
    """Return the name of a value as its source spells it: ``'tile'`` in Python, ``%tile`` in MLIR.

    Args:
        name: the value's name without a prefix.
        op: an op with a location in that source.
    """
    return f"'{name}'" if is_python(location_position(op.location)) else f"%{name}"


def op_name(op: Operation) -> str:
    """Return the name of an op, also if the context does not know it (`builtin.unregistered`)."""
    if op.name == "builtin.unregistered":
        known = getattr(op, "op_name", None)
        data = getattr(known, "data", None)
        if isinstance(data, str):
            return data
    return op.name


def attr_of(op: Operation, name: str) -> Attribute | None:
    """Return an attribute that is stored as a property or in the attribute dictionary."""
    got = op.properties.get(name)
    return got if got is not None else op.attributes.get(name)


def location_text(op: Operation) -> str:
    """Return `FILE:LINE:COL` of an op, empty if unknown."""
    position = location_position(op.location)
    return str(position) if position is not None else ""


def _source(position: Position) -> list[str]:
    """Return the source line with its marker. Nothing for a `.mlir` file, since the op itself is shown."""
    text = source_line(position.file, position.line) if is_python(position) else None
    return marked_line(text, position) if text is not None and text.strip() else []
