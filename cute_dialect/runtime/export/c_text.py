"""Building blocks of C source: lines, variables, literals, and values of host functions as expressions.

>>> number(-5), text('a "b" 5%'), name("in.bias")
('(-5)', '"a \\\\"b\\\\" 5%%"', 'in_bias')
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

from cute_dialect.errors import CuteError

__all__ = ["ExportError", "Function", "Scalar", "Value", "at", "each", "name", "number", "quoted", "real", "text"]


class ExportError(CuteError, ValueError):
    """A kernel cannot be exported as requested, or a folder cannot be written."""


@dataclass(frozen=True)
class Scalar:
    """A number, address or tensor map: a C expression without side effects, and its C type.

    ``argument`` is the array parameter that an address belongs to, if known.
    """

    text: str
    type: str = "int64_t"
    argument: int | None = None

    @property
    def constant(self) -> int | None:
        """The value, if the expression is a literal."""
        return int(self.text.strip("()")) if _LITERAL.fullmatch(self.text) else None


Value: TypeAlias = "Scalar | tuple[Value, ...] | None"
"""Value of a register of a host program; ``None`` was never set."""

_LITERAL = re.compile(r"\d+|\(-\d+\)")

_TAKEN = frozenset(
    """auto break case char const continue default do double else enum extern float for goto if inline int long main
    register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while
    asm errno linux unix NULL INFINITY NAN INT64_MIN INT64_C
    stream module plan found launch grid block cluster smem empty nothing wanted leaf bits
    launch_grid launch_block launch_smem""".split()  # noqa: SIM905
)
"""C keywords and the variables of the generated functions."""


def name(text: str) -> str:
    """Convert a name to a C identifier."""
    made = re.sub(r"\W", "_", text, flags=re.ASCII) or "_"
    if made in _TAKEN or re.fullmatch(r"v\d+|refused_\d+|type_\d+|cute_\w+", made):
        return f"{made}_"
    return f"_{made}" if made[0].isdigit() else made


def number(value: int) -> str:
    """Return a 64-bit integer literal."""
    if value == -(1 << 63):
        return "INT64_MIN"
    made = str(value) if -(1 << 31) < value < 1 << 31 else f"INT64_C({value})"
    return f"({made})" if value < 0 else made


def real(value: float) -> str:
    """Return an exact double literal.

    >>> real(0.5), real(float("-inf"))
    ('0x1.0000000000000p-1', '-INFINITY')
    """
    if math.isnan(value):
        return "NAN"
    return ("-" if value < 0 else "") + "INFINITY" if math.isinf(value) else value.hex()


def text(message: str) -> str:
    """Return a quoted ``printf`` format that prints this message."""
    return quoted(message.replace("%", "%%"))


def quoted(text: str) -> str:
    """Return a C string literal."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def at(value: Value, path: tuple[int, ...] | list[int]) -> Value:
    """Return the part of a value at an index path."""
    for i in path:
        assert isinstance(value, tuple)
        value = value[i]
    return value


def each(f: Callable[[Sequence[Scalar]], Value], *values: Value) -> Value:
    """Apply ``f`` to the corresponding scalars of values with the same structure; unset scalars give ``None``."""
    if isinstance(values[0], tuple):
        return tuple([each(f, *parts) for parts in zip(*[v for v in values if isinstance(v, tuple)])])
    scalars = [v for v in values if isinstance(v, Scalar)]
    return f(scalars) if len(scalars) == len(values) else None


class Function:
    """Body of a C function under construction: statements, and variables declared at the top."""

    def __init__(self, indent: int = 1):
        self.lines: list[str] = []
        self._declared: list[tuple[str, str]] = []
        self._indent = indent
        self._types: dict[str, str] = {}

    def line(self, text: str) -> None:
        """Append a statement."""
        self.lines.append("    " * self._indent + text if text else "")

    def variable(self, type: str, argument: int | None = None) -> Scalar:
        made = f"v{len(self._declared)}"
        self._declared.append((type, made))
        return Scalar(made, type, argument)

    def let(self, type: str, expression: str, argument: int | None = None) -> Scalar:
        """Assign an expression to a new variable; return an integer literal as it is."""
        if type == "int64_t" and _LITERAL.fullmatch(expression):
            return Scalar(expression, type)
        made = self.variable(type, argument)
        self.line(f"{made.text} = {expression};")
        return made

    def type(self, text_: str) -> str:
        """Return the C variable that holds the text of a type, for messages."""
        return self._types.setdefault(text_, f"type_{len(self._types)}")

    def refuse(self, call: str, leave: str = "return found") -> None:
        """Write a call of a function in ``support.c``, and the statement ``leave`` for its failure."""
        self.line(f"if ((found = {call}) != CUTE_PLANNED) {leave};")

    def say(self, condition: str, ended: str, message: str, *arguments: str) -> None:
        """Write a check that returns from the C function with a message unless a condition holds.

        ``message`` is a quoted ``printf`` format, and ``arguments`` are signed integers.
        """
        if condition.endswith(" != 0") and (Scalar(condition[:-5]).constant or 0) != 0:
            return
        given = "".join([f", (long long)({a})" for a in arguments])
        self.line(f"if (!({condition})) return cute_say({ended}, {message}{given});")

    @contextmanager
    def block(self, head: str, tail: str = "}") -> Generator[None]:
        """Enclose the statements added in the context in braces."""
        self.line(f"{head} {{" if head else "{")
        self._indent += 1
        yield
        self._indent -= 1
        self.line(tail)

    @property
    def body(self) -> list[str]:
        """Lines of the body, without unused variables."""
        lines = self.lines
        while True:
            read = {v for line in lines for v in _VARIABLE.findall(_ASSIGNED.sub("", line))}
            kept = [line for line in lines if not (m := _ASSIGNED.match(line)) or m[1] in read]
            if len(kept) == len(lines):
                break
            lines = kept
        types = [f"    static const char {own}[] = {quoted(type)};" for type, own in self._types.items()]
        own = [_declaration(type, v) for type, v in self._declared if v in read]
        found = ["    int found = CUTE_PLANNED;"] if any("found" in line for line in lines) else []
        return [*types, *own, *found, *lines]


_VARIABLE = re.compile(r"\bv\d+\b")
_ASSIGNED = re.compile(r"\s*(v\d+) = ")


def _declaration(type: str, variable: str) -> str:
    # Volatile prevents contraction to a fused multiply-add, which rounds once where the program rounds twice.
    volatile = "volatile " if type == "double" else ""
    return f"    {volatile}{type} {variable} = {'{0}' if type.startswith('struct') else '0'};"
