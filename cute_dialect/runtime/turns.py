"""The text of a replayed schedule: the order in which warps take steps and copies land.

`replay:0*3,1,c,1*2` lets warp 0 take three steps, warp 1 one, the oldest copy in flight land, and warp 1 take two more
steps. `c2` is the copy that was issued third of those in flight. The warps are those of the first cluster, numbered
across its blocks. A step ends before the next instruction that other warps can observe (`interp.exec.replay`).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from typing import NamedTuple

PREFIX = "replay:"
MOST_TURNS = 1_000_000
_TURN = re.compile(r"(?:(\d{1,6})(?:\*(\d{1,7}))?|c(\d{0,6}))")


class Turn(NamedTuple):
    """A step of a warp, or the landing of a copy: the number of the warp, or of the copy among those in flight."""

    number: int
    is_copy: bool = False


def parse_turns(text: str) -> list[Turn]:
    """Return the turns of a schedule. Raises ValueError with the part that is not understood.

    >>> parse_turns("replay:0*2,c1")
    [Turn(number=0, is_copy=False), Turn(number=0, is_copy=False), Turn(number=1, is_copy=True)]
    """
    out: list[Turn] = []
    for part in text.removeprefix(PREFIX).split(","):
        found = _TURN.fullmatch(part.strip())
        if found is None or found[2] == "0" or len(out) + int(found[2] or 1) > MOST_TURNS:
            raise ValueError(part)
        if found[1] is None:
            out.append(Turn(int(found[3] or 0), True))
        else:
            out += [Turn(int(found[1]))] * int(found[2] or 1)
    return out


def write_turns(turns: Iterable[Turn]) -> str:
    """Return the text of turns.

    >>> write_turns(parse_turns("replay:0*2,0,1,c,c1"))
    'replay:0*3,1,c,c1'
    """
    parts: list[str] = []
    for (number, is_copy), group in itertools.groupby(turns):
        count = len(list(group))
        if is_copy:
            parts += [f"c{number or ''}"] * count
        else:
            parts.append(f"{number}*{count}" if count > 1 else str(number))
    return PREFIX + ",".join(parts)
