"""Links between lines of different panes: panes with the groups of their lines.

A group is a chain of source locations.  Lines of one group, in any pane, derive from the same source, so links work in
both directions.  A source line belongs to every group that has one of its frames.  Hovering a line of a helper function
therefore highlights all code derived from it, wherever it was inlined.

**Source locations.** A location is a chain of frames: the innermost ``(file, line)`` first, followed by its callers.
Each function splits a text into display lines without location syntax, and the chains of each line.

:func:`disassembled` gives source locations, live registers and spills of each instruction, from nvdisasm.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from cute_dialect.pipelines.ptxas import disassemble

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


# ---------------------------------------------------------------------------------------------------------------- links


MOST_LINES = 20_000
"""Maximum number of lines of a pane. A longer pane is cut, with a message."""


@dataclass
class Pane:
    """A column of the page: its lines, and the groups of each line.

    ``kind`` is "source", "mlir", "ptx" or "sass".  ``notes`` are texts next to lines, such as live registers.
    ``missing`` is the reason why the pane has no lines.
    """

    key: str
    title: str
    kind: str
    lines: list[str]
    groups: list[tuple[int, ...]]
    shown: bool = True
    notes: list[str] = field(default_factory=list[str])
    missing: str = ""

    def cut(self, most: int = MOST_LINES) -> None:
        """Drop the lines after the first ``most``, and append a line with their number."""
        if len(self.lines) > most:
            self.lines[most:] = [f"… {len(self.lines) - most} more lines are not shown"]
            self.groups[most:] = [()]
            if self.notes:
                self.notes[most:] = [""]


@dataclass
class Source(Pane):
    """The first column, the text of the source files.

    - places: file and line of each line; "" and 0 for the heading of a file
    - own: the groups whose innermost location is the line
    - several: True if there is more than one file
    """

    places: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    own: list[tuple[int, ...]] = field(default_factory=list[tuple[int, ...]])
    several: bool = False
    _line_of: dict[int, int] = field(default_factory=dict[int, int])

    def line_of(self, groups: Iterable[int]) -> int:
        """Return the first line, from 0, that is the innermost location of one of the groups, -1 if there is none."""
        if not self._line_of:
            self._line_of = {g: i for i, found in enumerate(self.own) for g in found}
        return min((self._line_of[g] for g in groups if g in self._line_of), default=-1)

    def name_of(self, line: int) -> str:
        """Return ``line 7`` for a line counted from 0, or ``file:7`` if there are several files."""
        file, number = self.places[line] if line >= 0 else ("", 0)
        if not number:
            return ""
        return f"{os.path.basename(file)}:{number}" if self.several else f"line {number}"

    def text_of(self, line: int) -> str:
        """Return the beginning of the text of a line counted from 0."""
        return self.lines[line].strip()[:110] if line >= 0 else ""


@dataclass
class Groups:
    """The groups of a page: chains of locations with absolute file names."""

    chains: list[Chain] = field(default_factory=list[Chain])
    _numbers: dict[Chain, int] = field(default_factory=dict[Chain, int])
    _inner: dict[tuple[str, int], list[int]] = field(default_factory=dict[tuple[str, int], list[int]])

    def number(self, chain: Chain) -> int:
        """Return the number of a chain's group, created on first use."""
        absolute = _absolute(chain)
        found = self._numbers.get(absolute)
        if found is None:
            found = self._numbers[absolute] = len(self.chains)
            self.chains.append(absolute)
            self._inner.setdefault(absolute[0], []).append(found)
        return found

    def at(self, file: str, line: int) -> tuple[int, ...]:
        """Return the groups whose innermost location is this line."""
        return tuple(self._inner.get((os.path.abspath(file), line), ()))

    def of_chain(self, chain: Chain) -> tuple[int, ...]:
        """Return the group of a chain, or the groups of its innermost location if the chain has none."""
        found = self._numbers.get(_absolute(chain))
        return (found,) if found is not None else self.at(*chain[0]) if chain else ()

    def at_place(self, place: str) -> tuple[int, ...]:
        """Return the groups whose innermost location is ``FILE:LINE:COL``. Empty if the text is not a location."""
        file, _, rest = place.rpartition(":")
        file, _, line = file.rpartition(":")
        return self.at(file, int(line)) if rest.isdecimal() and line.isdecimal() else ()


def _absolute(chain: Chain) -> Chain:
    return tuple((os.path.abspath(file), line) for file, line in chain)


def linked(groups: Groups, text: Text, *, callers: bool = True) -> list[tuple[int, ...]]:
    """Return the groups of each line of a text.

    ``callers`` is True if the text's locations include their callers. If not, a location stands for all existing groups
    of which it is the innermost one.
    """
    out: list[tuple[int, ...]] = []
    for chains in text.chains:
        found: dict[int, None] = {}
        for chain in chains:
            known = groups.at(*chain[0]) if len(chain) == 1 and not callers else ()
            for n in known or (groups.number(chain),):
                found[n] = None
        out.append(tuple(found))
    return out


def source_pane(groups: Groups, files: Sequence[tuple[str, str]]) -> Source:
    """Return the source pane from the ``(name, text)`` of each file, concatenated.

    A line belongs to every group that has the line as a frame.
    """
    of_line: dict[tuple[str, int], list[int]] = {}
    for number, chain in enumerate(groups.chains):
        for frame in dict.fromkeys(chain):
            of_line.setdefault(frame, []).append(number)
    pane = Source("source", "source", "source", [], [], several=len(files) > 1)
    for name, text in files:
        if pane.several:
            _add(pane, f"── {_shown(name)} ──", (), (), ("", 0))
        for n, line in enumerate(text.rstrip("\n").split("\n"), 1):
            place = os.path.abspath(name), n
            _add(pane, line, tuple(of_line.get(place, ())), groups.at(*place), (name, n))
    return pane


def _add(pane: Source, line: str, groups: tuple[int, ...], own: tuple[int, ...], place: tuple[str, int]) -> None:
    pane.lines.append(line)
    pane.groups.append(groups)
    pane.own.append(own)
    pane.places.append(place)


def _shown(name: str) -> str:
    """Return the shorter one of a file's relative and absolute names."""
    return min(os.path.relpath(name), os.path.abspath(name), key=len)


def files_of(groups: Groups) -> Iterable[str]:
    """Return the files in which groups have locations, in order."""
    return dict.fromkeys(file for chain in groups.chains for file, _ in chain)


# --------------------------------------------------------------------------------------------------------- machine code


_LIVE = re.compile(r"/\*([0-9a-f]{4,})\*/.*?//\s*\|\s*(\d+)?")
_SECTION = re.compile(r"\.section\s+(\.text\.\S+?),")
_SPILL = re.compile(r"\b(STL|LDL)(?:\.\w+)*\b")


class MachineCode(NamedTuple):
    """Lines of machine code, with the live registers (0 if unknown) and spill ("store", "load" or "") of each."""

    text: Text
    live: list[int]
    spills: list[str]


def disassembled(cubin: bytes) -> MachineCode:
    """Disassemble a cubin.  Raises PtxasMissing if nvdisasm is not installed, PtxasError if it fails."""
    text, offsets = of_sass(disassemble(cubin, "-gi"))
    known = _live(disassemble(cubin, "-plr", "-lrm", "count"))
    live: list[int] = []
    section = ""
    for line, offset in zip(text.lines, offsets):
        m = _SECTION.search(line)
        section = m[1] if m is not None else section
        live.append(known.get((section, offset), 0) if offset is not None else 0)
    spills = [{"STL": "store", "LDL": "load"}.get(m[1], "") if (m := _SPILL.search(x)) else "" for x in text.lines]
    return MachineCode(text, live, spills)


def _live(ranges: str) -> dict[tuple[str, int | None], int]:
    """Return the live registers by section and offset."""
    section = ""
    found: dict[tuple[str, int | None], int] = {}
    for line in ranges.split("\n"):
        m = _SECTION.search(line)
        section = m[1] if m is not None else section
        at = _LIVE.search(line)
        if at is not None:
            found[section, int(at[1], 16)] = int(at[2] or 0)
    return found
