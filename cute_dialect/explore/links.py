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

__all__ = ["Groups", "Pane", "linked", "source_pane"]


@dataclass
class Pane:
    """A column of the page: its lines and the groups of each.

    ``kind``: "source", "mlir", "ptx" or "sass".  ``numbers``: those of the lines, where they are not 1, 2, …;
    ``notes``: what stands beside a line, such as live registers.  ``missing``: why it has no lines.  ``own``: of the
    source, the groups that a line is the innermost place of.
    """

    key: str
    title: str
    kind: str
    lines: list[str]
    groups: list[tuple[int, ...]]
    shown: bool = True
    numbers: list[int | None] | None = None
    notes: list[str] | None = None
    missing: str = ""
    own: list[tuple[int, ...]] | None = None

    def of_group(self, group: int) -> list[int]:
        """Return the lines of a group, counted from 0."""
        return [i for i, groups in enumerate(self.groups) if group in groups]


@dataclass
class Groups:
    """The groups of a page: chains of places, whose files have absolute names."""

    chains: list[Chain] = field(default_factory=list[Chain])
    _numbers: dict[Chain, int] = field(default_factory=dict[Chain, int])
    _inner: dict[tuple[str, int], list[int]] = field(default_factory=dict[tuple[str, int], list[int]])

    def number(self, chain: Chain) -> int:
        """Return the number of a chain's group, a new one if need be."""
        absolute = tuple((os.path.abspath(file), line) for file, line in chain)
        found = self._numbers.get(absolute)
        if found is None:
            found = self._numbers[absolute] = len(self.chains)
            self.chains.append(absolute)
            self._inner.setdefault(absolute[0], []).append(found)
        return found

    def at(self, file: str, line: int) -> tuple[int, ...]:
        """Return the groups whose innermost place is this line."""
        return tuple(self._inner.get((os.path.abspath(file), line), ()))

    def at_place(self, place: str) -> tuple[int, ...]:
        """Return the groups whose innermost place is ``FILE:LINE:COL``; none where it is no place."""
        file, _, rest = place.rpartition(":")
        file, _, line = file.rpartition(":")
        return self.at(file, int(line)) if rest.isdecimal() and line.isdecimal() else ()


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


def source_pane(groups: Groups, files: Sequence[tuple[str, str]]) -> Pane:
    """Return the pane of the source, ``(name, text)`` of each file, one below the other.

    A line is in each group of which a frame is that line.
    """
    of_line: dict[tuple[str, int], list[int]] = {}
    for number, chain in enumerate(groups.chains):
        for frame in dict.fromkeys(chain):
            of_line.setdefault(frame, []).append(number)
    lines: list[str] = []
    found: list[tuple[int, ...]] = []
    own: list[tuple[int, ...]] = []
    numbers: list[int | None] = []
    for name, text in files:
        if len(files) > 1:
            lines.append(f"── {os.path.relpath(name)} ──")
            found.append(())
            own.append(())
            numbers.append(None)
        for n, line in enumerate(text.rstrip("\n").split("\n"), 1):
            lines.append(line)
            found.append(tuple(of_line.get((os.path.abspath(name), n), ())))
            own.append(groups.at(name, n))
            numbers.append(n)
    return Pane("source", "source", "source", lines, found, numbers=numbers, own=own)


def files_of(groups: Groups) -> Iterable[str]:
    """Return the files that groups have places in, in order."""
    return dict.fromkeys(file for chain in groups.chains for file, _ in chain)
