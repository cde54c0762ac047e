"""Parsing of source locations from IR, PTX and machine code.

A location is a chain of frames: the innermost ``(file, line)`` first, followed by its callers.  Each function splits a
text into display lines without location syntax, and the chains of each line.
"""

from __future__ import annotations

import re
from typing import NamedTuple, TypeAlias

__all__ = ["Chain", "Text", "of_mlir", "of_ptx", "of_sass"]

Chain: TypeAlias = "tuple[tuple[str, int], ...]"
"""Frames as (file, line), innermost first."""

_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"(?::(\d+):(\d+))?')
_AT_END = re.compile(r"\s+loc\(")


class Text(NamedTuple):
    """Lines, and the chains of each line."""

    lines: list[str]
    chains: list[tuple[Chain, ...]]


def of_mlir(text: str) -> Text:
    """Split IR that is printed with locations, one op per line.

    >>> of_mlir('%0 = a.b loc(callsite("f"("h.py":3:5) at "x.py":41:7))')
    Text(lines=['%0 = a.b'], chains=[((('h.py', 3), ('x.py', 41)),)])
    """
    lines: list[str] = []
    chains: list[tuple[Chain, ...]] = []
    for line in text.rstrip("\n").split("\n"):
        plain, found = _split(line)
        if line.startswith("#loc"):
            continue
        lines.append(plain)
        chains.append(found)
    return Text(lines, _opened(lines, chains))


def _opened(lines: list[str], chains: list[tuple[Chain, ...]]) -> list[tuple[Chain, ...]]:
    """Assign the chains of a line that closes a region to the line that opens it, since both belong to one op."""
    out = list(chains)
    open_: list[list[int]] = []
    for i, line in enumerate(lines):
        words = line.strip()
        own = open_.pop() if words.startswith("}") and open_ else []
        if words.endswith("{"):
            open_.append([*own, i])
        else:
            for j in own:
                out[j] = out[j] or chains[i]
    return out


def _split(line: str) -> tuple[str, tuple[Chain, ...]]:
    """Return a line without locations, and the chains of its op.

    Locations of function and block arguments are dropped.
    """
    out: list[str] = []
    found: list[Chain] = []
    at = 0
    while (m := _AT_END.search(line, at)) is not None:
        end = _closing(line, m.end())
        if end is None or _in_string(line, m.start()):
            out.append(line[at : m.end()])
            at = m.end()
            continue
        out.append(line[at : m.start()])
        at = end
        if not line[end:].strip():  # The last location is that of the op; the others belong to arguments.
            found = _Reader(line[m.end() : end - 1]).chains()
    out.append(line[at:])
    return "".join(out).rstrip(), tuple(dict.fromkeys(c for c in found if c))


def _closing(line: str, at: int) -> int | None:
    """Return the position after the parenthesis that closes the one opened before ``at``."""
    depth = 1
    while at < len(line):
        if line[at] == '"':
            m = _STRING.match(line, at)
            if m is None:
                return None
            at = m.end()
            continue
        depth += {"(": 1, ")": -1}.get(line[at], 0)
        at += 1
        if depth == 0:
            return at
    return None


def _in_string(line: str, at: int) -> bool:
    return any(m.start() < at < m.end() for m in _STRING.finditer(line))


class _Reader:
    """Parser for the contents of ``loc(…)``."""

    def __init__(self, text: str):
        self._tokens = re.findall(r'"(?:[^"\\]|\\.)*"(?::\d+:\d+)?(?: to (?:\d+)?:\d+)?|[\w.]+|[(),\[\]<>#:=]', text)
        self._at = 0

    def chains(self) -> list[Chain]:
        """Return the chains of a location: one, or those of all parts of a fused location."""
        token = self._next()
        if token == "callsite":
            self._expect("(")
            callee = self.chains()
            self._expect("at")
            caller = self.chains()
            self._expect(")")
            return [c + d for c in callee or [()] for d in caller or [()]]
        if token == "fused":
            while self._peek() not in ("[", ""):
                self._next()
            self._expect("[")
            parts: list[Chain] = []
            while self._peek() not in ("]", ""):
                parts += self.chains()
                if self._peek() == ",":
                    self._next()
            self._expect("]")
            return parts
        m = _STRING.match(token)
        if m is None:
            return []
        if m[2] is not None:
            return [((m[1].replace('\\"', '"').replace("\\\\", "\\"), int(m[2])),)]
        if self._peek() == "(":
            self._next()
            inner = self.chains()
            self._expect(")")
            return inner
        return []

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _next(self) -> str:
        token = self._peek()
        self._at += 1
        return token

    def _expect(self, token: str) -> None:
        if self._peek() == token:
            self._next()


# ------------------------------------------------------------------------------------------------------ PTX and SASS

_FILE = re.compile(r'^\s*\.file\s+(\d+) "((?:[^"\\]|\\.)*)"')
_PLACE = re.compile(r"^\s*\.loc\s+(\d+) (\d+) (\d+)(?:, function_name [^,]+, inlined_at (\d+) (\d+) (\d+))?")


def of_ptx(ptx: str) -> Text:
    r"""Split PTX with ``.loc`` directives, which are removed and applied to the instructions after them.

    >>> of_ptx('\t.loc\t1 41 7\n\tret;\n\t.file\t1 "x.py"\n')
    Text(lines=['  ret;'], chains=[((('x.py', 41),),)])
    """
    source = ptx.rstrip("\n").split("\n")
    files = {int(m[1]): m[2] for line in source if (m := _FILE.match(line)) is not None}
    lines: list[str] = []
    chains: list[tuple[Chain, ...]] = []
    known: dict[tuple[int, int, int], Chain] = {}
    here: Chain = ()
    for line in source:
        m = _PLACE.match(line)
        if m is not None:
            key = (int(m[1]), int(m[2]), int(m[3]))
            here = ((files.get(key[0], "?"), key[1]),) if key[1] else ()
            if m[4] is not None:
                here += known.get((int(m[4]), int(m[5]), int(m[6])), ())
            known[key] = here
            continue
        if _FILE.match(line):
            continue
        words = line.strip()
        if words.startswith((".entry", ".visible .entry", ".func", ".visible .func")):
            here = ()
        instruction = line.startswith("\t") and words.endswith(";") and not words.startswith((".", "//"))
        shown = line.expandtabs()  # A column of the page is narrow.
        lines.append(shown[6:] if shown.startswith(8 * " ") else shown)
        chains.append((here,) if instruction and here else ())
    return Text(lines, chains)


_SASS_PLACE = re.compile(r'//## File "((?:[^"\\]|\\.)*)", line (\d+)(?: inlined at "((?:[^"\\]|\\.)*)", line (\d+))?')
_OFFSET = re.compile(r"/\*([0-9a-f]{4,})\*/")


_INSTRUCTION = re.compile(r"^\s+(/\*[0-9a-f]{4,}\*/)\s+(@!?\w+)?\s*(.*?)\s*;?\s*$")


def _compact(line: str) -> str:
    r"""Compress a line of machine code to fewer columns.

    >>> _compact("        /*01a0*/               @P0 IADD3 R3, -R0, R3, RZ ;"), _compact("\t.align\t128")
    ('/*01a0*/   @P0 IADD3 R3, -R0, R3, RZ', '  .align  128')
    """
    m = _INSTRUCTION.match(line)
    if m is not None:
        return f"{m[1]} {m[2] or '':>5} {m[3]}"
    words = line.expandtabs().rstrip()
    return f"  {words.lstrip()}" if words.startswith(" ") else words


def of_sass(sass: str) -> tuple[Text, list[int | None]]:
    """Split the output of ``nvdisasm -c -gi``. Also returns the offset of each line that is an instruction.

    A block of ``//## File`` lines lists the frames of the following code, innermost first.
    """
    lines: list[str] = []
    chains: list[tuple[Chain, ...]] = []
    offsets: list[int | None] = []
    here: list[tuple[str, int]] = []
    fresh = True
    for line in sass.rstrip("\n").split("\n"):
        m = _SASS_PLACE.search(line)
        if m is not None:
            if fresh:
                here, fresh = [], False
            frames = [(m[1], int(m[2]))] + ([(m[3], int(m[4]))] if m[3] is not None else [])
            here += frames if not here or here[-1] != frames[0] else frames[1:]
            continue
        if line.lstrip().startswith("//##"):
            continue
        fresh = True
        if line.startswith("\t.section") or line.startswith(".section"):
            here = []
        at = _OFFSET.search(line)
        lines.append(_compact(line))
        chains.append((tuple(f for f in here if f[1]),) if at is not None and any(f[1] for f in here) else ())
        offsets.append(int(at[1], 16) if at is not None else None)
    return Text(lines, chains), offsets
