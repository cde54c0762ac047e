"""Places of the user's frames: which line emits, and through which calls it was reached."""

from __future__ import annotations

import contextlib
import os
import sys
from functools import lru_cache
from types import CodeType, FrameType
from typing import TYPE_CHECKING

from cute_dialect.files import PACKAGE
from cute_dialect.front.errors import Place

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xdsl.dialects.builtin import LocationAttr

__all__ = [
    "holds",
    "is_library",
    "is_machinery",
    "is_user_code",
    "location",
    "place_at",
    "place_of",
    "place_of_frame",
    "place_of_location",
    "user_frames",
    "user_places",
]

_FRONT = f"{PACKAGE}front/"
_STANDARD = os.path.dirname(contextlib.__file__) + "/"
_WRITTEN_IN_THE_LANGUAGE = ("lang", "kernels")


@lru_cache(maxsize=4096)
def _is_hidden(filename: str) -> bool:
    """Tell whether frames of a file belong to the front-end, to other machinery of this package, or to Python's."""
    if not filename.startswith(PACKAGE):
        return filename.startswith("<frozen") or (filename.startswith(_STANDARD) and "site-packages" not in filename)
    return filename[len(PACKAGE) :].split("/")[0] not in _WRITTEN_IN_THE_LANGUAGE


_positions: dict[int, tuple[CodeType, list[Place]]] = {}


def place_at(code: CodeType, index: int) -> Place:
    """Return the place of an instruction, given by its offset in bytes."""
    known = _positions.get(id(code))
    if known is None or known[0] is not code:
        file = code.co_filename
        known = _positions[id(code)] = code, [
            Place(
                file, line or 0, (col or 0) + 1 if col is not None else 0, end_line or 0,
                (end_col or 0) + 1 if end_col is not None else 0,
            ) for line, end_line, col, end_col in code.co_positions()
        ]  # fmt: skip
    places = known[1]
    return places[index // 2] if 0 <= index < 2 * len(places) else Place(code.co_filename, code.co_firstlineno, 1)


def is_machinery(code: CodeType) -> bool:
    """Tell whether code is this package's, and none of what it has written in the language."""
    return code.co_filename.startswith(PACKAGE) and _is_hidden(code.co_filename)


def is_library(code: CodeType) -> bool:
    """Tell whether code is of what this package has written in the language for users to call."""
    return code.co_filename.startswith(f"{PACKAGE}lang/")


def holds(code: CodeType, place: Place) -> bool:
    """Tell whether a place is in the text of a function."""
    if code.co_filename != place.file:
        return False
    return code.co_firstlineno <= place.line <= max((line for _, _, line in code.co_lines() if line), default=0)


def is_user_code(code: CodeType) -> bool:
    """Tell whether frames of this code are the user's, not machinery of the front-end."""
    return not _is_hidden(code.co_filename)


def place_of(function: object) -> Place:
    """Return where a function is defined."""
    code = getattr(function, "__code__", None)
    return Place(code.co_filename, code.co_firstlineno, 1) if code is not None else Place("?", 0, 0)


def place_of_frame(frame: FrameType) -> Place:
    """Return where a frame is."""
    return place_at(frame.f_code, frame.f_lasti)


def user_frames(frame: FrameType | None = None) -> Iterator[FrameType]:
    """Yield the frames of the trace that are the user's, innermost first; what started the trace ends them."""
    at = frame if frame is not None else sys._getframe(1)
    while at is not None:
        code = at.f_code
        if not _is_hidden(code.co_filename):
            yield at
        elif code.co_name == "trace_boundary" and code.co_filename.startswith(_FRONT):
            return
        at = at.f_back


def user_places(frame: FrameType | None = None) -> list[Place]:
    """Return the places of the user's frames, innermost first."""
    return [place_of_frame(f) for f in user_frames(frame or sys._getframe(1))]


def place_of_location(at: object) -> Place | None:
    """Return the user's line that the location of an op says, the innermost of its calls."""
    from xdsl.dialects.builtin import CallSiteLoc, FileLineColLoc, NameLoc

    while isinstance(at, CallSiteLoc | NameLoc):
        at = at.callee if isinstance(at, CallSiteLoc) else at.location
    return Place(at.filename.data, at.line.data, at.column.data) if isinstance(at, FileLineColLoc) else None


def location() -> LocationAttr:
    """Return the location of the op that is being made: the user's line, and the calls that led there."""
    # The same text in two files is equal code, at different places.
    key = tuple((f.f_code, f.f_lasti, f.f_code.co_filename) for f in user_frames(sys._getframe(1)))
    return _location(key)


@lru_cache(maxsize=65536)
def _location(key: tuple[tuple[CodeType, int, str], ...]) -> LocationAttr:
    from xdsl.dialects.builtin import UNKNOWN_LOC, CallSiteLoc, FileLineColLoc, IntAttr, NameLoc, StringAttr

    made: LocationAttr | None = None
    for code, index, _ in reversed(key):
        place = place_at(code, index)
        here = FileLineColLoc(StringAttr(place.file), IntAttr(place.line), IntAttr(place.col))
        made = here if made is None else CallSiteLoc(NameLoc(StringAttr(code.co_qualname), here), made)
    return made if made is not None else UNKNOWN_LOC
