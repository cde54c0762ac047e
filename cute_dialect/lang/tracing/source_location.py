"""Source positions of user frames: the line that emits an op, and the calls that led to it."""

from __future__ import annotations

import contextlib
import os
import sys
from functools import lru_cache
from types import CodeType, FrameType
from typing import TYPE_CHECKING

from cute_dialect.errors import Place
from cute_dialect.files import PACKAGE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xdsl.dialects.builtin import LocationAttr

_MACHINERY = tuple(f"lang/{p}/" for p in ("tracing", "values", "rewrite", "control", "machine", "calls"))
_TRACING = f"{PACKAGE}lang/tracing/"
_INLINED = f"{PACKAGE}lang/ranks.py"
"""A file of short functions in the language: the location of their ops is that of the call."""
_KERNEL_CODE = ("lang/", "compat/", "kernels/")
_STANDARD = os.path.dirname(contextlib.__file__) + "/"


def is_kernel_code(filename: str) -> bool:
    """Return True for a file of this package that is written in the language, so that its functions are converted."""
    path = filename.removeprefix(PACKAGE)
    return path != filename and path.startswith(_KERNEL_CODE) and not path.startswith(_MACHINERY)


def is_machinery_class(cls: type) -> bool:
    """Return True for a class of the tracer and of its values."""
    return _path_of(cls).startswith(_MACHINERY)


def is_package_class(cls: type) -> bool:
    """Return True for a class of this package, except classes written in the language."""
    path = _path_of(cls)
    return path != "" and not (path.startswith(_KERNEL_CODE) and not path.startswith(_MACHINERY))


def _path_of(cls: type) -> str:
    """Return the path of the module of a class, relative to this package; "" for other classes."""
    top, _, rest = cls.__module__.partition(".")
    return rest.replace(".", "/") if top == "cute_dialect" else ""


@lru_cache(maxsize=4096)
def _is_hidden(filename: str) -> bool:
    """Return True if frames of a file belong to this package's machinery or to Python."""
    if not filename.startswith(PACKAGE):
        return filename.startswith("<frozen") or (filename.startswith(_STANDARD) and "site-packages" not in filename)
    return not is_kernel_code(filename)


_positions: dict[int, tuple[CodeType, list[Place]]] = {}


def place_at(code: CodeType, index: int) -> Place:
    """Return the position of an instruction, given by its offset in bytes."""
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
    """Return True for code of this package, except its kernel code."""
    return code.co_filename.startswith(PACKAGE) and _is_hidden(code.co_filename)


def is_library(code: CodeType) -> bool:
    """Return True for code in ``lang`` or ``compat`` that is written in the language itself."""
    return is_kernel_code(code.co_filename) and not code.co_filename.startswith(f"{PACKAGE}kernels/")


def holds(code: CodeType, place: Place) -> bool:
    """Return True if a position lies in the text of a function."""
    if code.co_filename != place.file:
        return False
    return code.co_firstlineno <= place.line <= max((line for _, _, line in code.co_lines() if line), default=0)


def is_user_code(code: CodeType) -> bool:
    """Return True for user code, as opposed to this package's machinery."""
    return not _is_hidden(code.co_filename)


def place_of(function: object) -> Place:
    """Return the position of a function's definition."""
    code = getattr(function, "__code__", None)
    return Place(code.co_filename, code.co_firstlineno, 1) if code is not None else Place("?", 0, 0)


def place_of_frame(frame: FrameType) -> Place:
    """Return the current position of a frame."""
    return place_at(frame.f_code, frame.f_lasti)


def user_frames(frame: FrameType | None = None) -> Iterator[FrameType]:
    """Yield the user's frames of the trace, innermost first, up to the start of the trace."""
    at = frame if frame is not None else sys._getframe(1)
    while at is not None:
        code = at.f_code
        if not _is_hidden(code.co_filename):
            yield at
        elif code.co_name == "trace_boundary" and code.co_filename.startswith(_TRACING):
            return
        at = at.f_back


def user_places(frame: FrameType | None = None) -> list[Place]:
    """Return the positions of the user's frames, innermost first."""
    return [place_of_frame(f) for f in user_frames(frame or sys._getframe(1))]


def place_of_location(at: object) -> Place | None:
    """Return the user's source position in an op's location, of the innermost call."""
    from xdsl.dialects.builtin import CallSiteLoc, FileLineColLoc, NameLoc

    while isinstance(at, CallSiteLoc | NameLoc):
        at = at.callee if isinstance(at, CallSiteLoc) else at.location
    return Place(at.filename.data, at.line.data, at.column.data) if isinstance(at, FileLineColLoc) else None


_locations: dict[tuple[int, ...], tuple[LocationAttr, list[CodeType]]] = {}
"""Addresses of the code of a chain of calls, each with an offset -> its location, and the code, whose addresses are
therefore not used again."""


def location() -> LocationAttr:
    """Return the location for a new op: the user's line, and the calls that led to it."""
    # A code object is known by its address: to hash it takes long, and identical text in two files gives equal ones.
    key, codes = list[int](), list[CodeType]()
    at = sys._getframe(1)
    while at is not None:
        code = at.f_code
        if not _is_hidden(code.co_filename):
            key += id(code), at.f_lasti
            codes.append(code)
        elif code.co_name == "trace_boundary" and code.co_filename.startswith(_TRACING):
            break
        at = at.f_back
    found = _locations.get(calls := tuple(key))
    if found is None:
        if len(_locations) >= _MOST_LOCATIONS:
            _locations.clear()
        found = _locations[calls] = _location(codes, key[1::2]), codes
    return found[0]


_MOST_LOCATIONS = 65536


def _location(codes: list[CodeType], offsets: list[int]) -> LocationAttr:
    from xdsl.dialects.builtin import UNKNOWN_LOC, CallSiteLoc, FileLineColLoc, IntAttr, NameLoc, StringAttr

    made: LocationAttr | None = None
    for code, index in zip(reversed(codes), reversed(offsets)):
        if code.co_filename == _INLINED and made is not None:
            continue
        place = place_at(code, index)
        here = FileLineColLoc(StringAttr(place.file), IntAttr(place.line), IntAttr(place.col))
        made = here if made is None else CallSiteLoc(NameLoc(StringAttr(code.co_qualname), here), made)
    return made if made is not None else UNKNOWN_LOC
