"""Links between lines of different panes: panes with the groups of their lines.

A group is a chain of source locations.  Lines of one group, in any pane, derive from the same source, so links work in
both directions.  A source line belongs to every group that has one of its frames.  Hovering a line of a helper function
therefore highlights all code derived from it, wherever it was inlined.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from cute_dialect.explore.source_locations import Chain, Text

__all__ = ["Groups", "Pane", "Source", "linked", "source_pane"]

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
