"""Which lines of which pane belong together: panes with the groups of their lines.

A group is a chain of places in the source.  Lines of one group, in whatever pane, were made from one another: so links
lead both ways.  A line of the source is in each group that one of its frames is in, so pointing at a helper's line
lights up all that it became, wherever it was inlined.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from cute_dialect.explore.places import Chain, Text

__all__ = ["Groups", "Pane", "Source", "linked", "source_pane"]

MOST_LINES = 20_000
"""Lines of a pane beyond which it is cut, and says so."""


@dataclass
class Pane:
    """A column of the page: its lines and the groups of each.

    ``kind``: "source", "mlir", "ptx" or "sass".  ``notes``: what stands beside a line, such as live registers.
    ``missing``: why it has no lines.
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
        """Drop the lines beyond so many; one more says how many those were."""
        if len(self.lines) > most:
            self.lines[most:] = [f"… {len(self.lines) - most} more lines are not shown"]
            self.groups[most:] = [()]
            if self.notes:
                self.notes[most:] = [""]


@dataclass
class Source(Pane):
    """The first column, the text of files.  ``places``: file and line of each line, "" and 0 of a file's heading;
    ``own``: the groups that a line is the innermost place of; ``several``: whether there is more than one file.
    """

    places: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    own: list[tuple[int, ...]] = field(default_factory=list[tuple[int, ...]])
    several: bool = False
    _line_of: dict[int, int] = field(default_factory=dict[int, int])

    def line_of(self, groups: Iterable[int]) -> int:
        """Return the first line, from 0, that is the innermost place of one of the groups; -1: there is none."""
        if not self._line_of:
            self._line_of = {g: i for i, found in enumerate(self.own) for g in found}
        return min((self._line_of[g] for g in groups if g in self._line_of), default=-1)

    def name_of(self, line: int) -> str:
        """Return ``line 7`` of a line counted from 0, with the name of its file where there are several."""
        file, number = self.places[line] if line >= 0 else ("", 0)
        if not number:
            return ""
        return f"{os.path.basename(file)}:{number}" if self.several else f"line {number}"

    def text_of(self, line: int) -> str:
        """Return the start of the text of a line counted from 0."""
        return self.lines[line].strip()[:110] if line >= 0 else ""


@dataclass
class Groups:
    """The groups of a page: chains of places, whose files have absolute names."""

    chains: list[Chain] = field(default_factory=list[Chain])
    _numbers: dict[Chain, int] = field(default_factory=dict[Chain, int])
    _inner: dict[tuple[str, int], list[int]] = field(default_factory=dict[tuple[str, int], list[int]])

    def number(self, chain: Chain) -> int:
        """Return the number of a chain's group, a new one if need be."""
        absolute = _absolute(chain)
        found = self._numbers.get(absolute)
        if found is None:
            found = self._numbers[absolute] = len(self.chains)
            self.chains.append(absolute)
            self._inner.setdefault(absolute[0], []).append(found)
        return found

    def at(self, file: str, line: int) -> tuple[int, ...]:
        """Return the groups whose innermost place is this line."""
        return tuple(self._inner.get((os.path.abspath(file), line), ()))

    def of_chain(self, chain: Chain) -> tuple[int, ...]:
        """Return the group of a chain, if there is one; else those of its innermost place."""
        found = self._numbers.get(_absolute(chain))
        return (found,) if found is not None else self.at(*chain[0]) if chain else ()

    def at_place(self, place: str) -> tuple[int, ...]:
        """Return the groups whose innermost place is ``FILE:LINE:COL``; none where it is no place."""
        file, _, rest = place.rpartition(":")
        file, _, line = file.rpartition(":")
        return self.at(file, int(line)) if rest.isdecimal() and line.isdecimal() else ()


def _absolute(chain: Chain) -> Chain:
    return tuple((os.path.abspath(file), line) for file, line in chain)


def linked(groups: Groups, text: Text, *, callers: bool = True) -> list[tuple[int, ...]]:
    """Return the groups of each line of a text.

    ``callers``: whether its places say what they were called from; else a place stands for all groups that it is the
    innermost of, which must be known by then.
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
    """Return the pane of the source, ``(name, text)`` of each file, one below the other.

    A line is in each group of which a frame is that line.
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
    """Return the shorter of a file's names, from here or from the root."""
    return min(os.path.relpath(name), os.path.abspath(name), key=len)


def files_of(groups: Groups) -> Iterable[str]:
    """Return the files that groups have places in, in order."""
    return dict.fromkeys(file for chain in groups.chains for file, _ in chain)
