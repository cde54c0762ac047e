"""C as text: lines, variables, literals, values of host functions as expressions.

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
    """A kernel that cannot be exported as asked, or a folder that cannot be written; the message says what to do."""


@dataclass(frozen=True)
class Scalar:
    """A number, an address or a tensor map: an expression without effects, and its type in C.

    ``argument``: of an address, the parameter of the host function that it is of, where that is known.
    """

    text: str
    type: str = "int64_t"
    argument: int | None = None

    @property
    def constant(self) -> int | None:
        """The number, where it is a literal."""
        return int(self.text.strip("()")) if _LITERAL.fullmatch(self.text) else None


Value: TypeAlias = "Scalar | tuple[Value, ...] | None"
"""What a register of a host program holds; ``None`` was never set."""

_LITERAL = re.compile(r"\d+|\(-\d+\)")

_TAKEN = frozenset(
    """auto break case char const continue default do double else enum extern float for goto if inline int long main
    register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while
    asm errno linux unix NULL INFINITY NAN INT64_MIN INT64_C
    stream module plan found launch grid block cluster smem empty nothing wanted leaf bits
    launch_grid launch_block launch_smem""".split()  # noqa: SIM905
)
"""Words of C, and the variables of the functions written here."""


def name(text: str) -> str:
    """Return a name as C takes it."""
    made = re.sub(r"\W", "_", text, flags=re.ASCII) or "_"
    if made in _TAKEN or re.fullmatch(r"v\d+|refused_\d+|type_\d+|cute_\w+", made):
        return f"{made}_"
    return f"_{made}" if made[0].isdigit() else made


def number(value: int) -> str:
    """Return an integer of 64 bits as a literal."""
    if value == -(1 << 63):
        return "INT64_MIN"
    made = str(value) if -(1 << 31) < value < 1 << 31 else f"INT64_C({value})"
    return f"({made})" if value < 0 else made


def real(value: float) -> str:
    """Return a double as a literal, exactly.

    >>> real(0.5), real(float("-inf"))
    ('0x1.0000000000000p-1', '-INFINITY')
    """
    if math.isnan(value):
        return "NAN"
    return ("-" if value < 0 else "") + "INFINITY" if math.isinf(value) else value.hex()


def text(message: str) -> str:
    """Return a format of ``printf`` that prints this message."""
    return quoted(message.replace("%", "%%"))


def quoted(text: str) -> str:
    """Return a string of C."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def at(value: Value, path: tuple[int, ...] | list[int]) -> Value:
    """Return the part of a value at a path of indices."""
    for i in path:
        assert isinstance(value, tuple)
        value = value[i]
    return value


def each(f: Callable[[Sequence[Scalar]], Value], *values: Value) -> Value:
    """Return what ``f`` makes of the scalars of values of one form; of what was never set, it is not asked."""
    if isinstance(values[0], tuple):
        return tuple([each(f, *parts) for parts in zip(*[v for v in values if isinstance(v, tuple)])])
    scalars = [v for v in values if isinstance(v, Scalar)]
    return f(scalars) if len(scalars) == len(values) else None


class Function:
    """The body of a function that is being written: variables, declared at its top, and statements."""

    def __init__(self, indent: int = 1):
        self.lines: list[str] = []
        self._declared: list[tuple[str, str]] = []
        self._indent = indent
        self._types: dict[str, str] = {}

    def line(self, text: str) -> None:
        """Add a statement."""
        self.lines.append("    " * self._indent + text if text else "")

    def variable(self, type: str, argument: int | None = None) -> Scalar:
        """Declare a variable."""
        made = f"v{len(self._declared)}"
        self._declared.append((type, made))
        return Scalar(made, type, argument)

    def let(self, type: str, expression: str, argument: int | None = None) -> Scalar:
        """Return a variable that holds an expression; a literal stays one."""
        if type == "int64_t" and _LITERAL.fullmatch(expression):
            return Scalar(expression, type)
        made = self.variable(type, argument)
        self.line(f"{made.text} = {expression};")
        return made

    def type(self, text_: str) -> str:
        """Return the variable that holds the text of a type, for messages."""
        return self._types.setdefault(text_, f"type_{len(self._types)}")

    def refuse(self, call: str, leave: str = "return found") -> None:
        """Leave with what a call of ``support.c`` finds, unless that is that all is well."""
        self.line(f"if ((found = {call}) != CUTE_PLANNED) {leave};")

    def say(self, condition: str, ended: str, message: str, *arguments: str) -> None:
        """Return from the function with a message, unless a condition holds.

        ``message``: a format of ``printf``, quoted; ``arguments`` are signed integers.
        """
        if condition.endswith(" != 0") and (Scalar(condition[:-5]).constant or 0) != 0:
            return
        given = "".join([f", (long long)({a})" for a in arguments])
        self.line(f"if (!({condition})) return cute_say({ended}, {message}{given});")

    @contextmanager
    def block(self, head: str, tail: str = "}") -> Generator[None]:
        """Put the statements that are added inside into braces."""
        self.line(f"{head} {{" if head else "{")
        self._indent += 1
        yield
        self._indent -= 1
        self.line(tail)

    @property
    def body(self) -> list[str]:
        """The lines of the body, without variables that nothing reads."""
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
    # Volatile: nobody fuses a product and a sum, which would round once where the program rounds twice.
    volatile = "volatile " if type == "double" else ""
    return f"    {volatile}{type} {variable} = {'{0}' if type.startswith('struct') else '0'};"
