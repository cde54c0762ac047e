"""References to Python objects outside the places that a run-time branch or loop merges.

A merged list is a new object.  It replaces the lists of both sides only if no other reference shows one of them::

    ys = xs
    if c: xs = [1, 2]          # refused if ys is read later: after the branch, xs is ys only on one side

:class:`Surroundings` finds the objects that stay visible.  It starts at the variables of all frames of the trace that
are read later, according to their byte code, and follows the contents that both sides leave equal.
"""

from __future__ import annotations

import dis
import sys
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from types import CodeType, FrameType, FunctionType
from typing import Any

from cute_dialect.files import PACKAGE
from cute_dialect.lang.control.mutable_state import Snapshot, names_read
from cute_dialect.lang.rewrite.source import is_convertible
from cute_dialect.lang.tracing.errors import MergeError
from cute_dialect.lang.tracing.source_location import is_machinery_class
from cute_dialect.lang.tracing.tracer import trace_boundary

_JUMPS = frozenset((*dis.hasjrel, *dis.hasjabs))
_ENDS = frozenset(
    ("RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE", "JUMP_FORWARD", "JUMP_BACKWARD",
     "JUMP_BACKWARD_NO_INTERRUPT", "JUMP_ABSOLUTE", "INTERPRETER_EXIT")
)  # fmt: skip
_STORES = frozenset(("STORE_FAST", "DELETE_FAST", "STORE_DEREF", "DELETE_DEREF"))
_READS_ALL = frozenset(("locals", "eval", "exec", "vars", "dir"))
_LIVE: dict[int, tuple[CodeType, dict[int, frozenset[str]]]] = {}


def _variables(instruction: dis.Instruction, names: frozenset[str]) -> frozenset[str]:
    found = instruction.argval
    found = found if isinstance(found, tuple) else (found,)
    return names.intersection(n for n in found if isinstance(n, str))


def _live_after(code: CodeType) -> dict[int, frozenset[str]]:
    """Return the variables that may be read after each instruction, by its offset."""
    known = _LIVE.get(id(code))
    if known is not None and known[0] is code:
        return known[1]
    every = frozenset((*code.co_varnames, *code.co_cellvars, *code.co_freevars))
    body = list(dis.get_instructions(code))
    offsets = [i.offset for i in body]
    if any(i.opname.startswith(("LOAD_GLOBAL", "LOAD_NAME")) and i.argval in _READS_ALL for i in body):
        live = dict.fromkeys(offsets, every)
    else:
        live = _solve(code, body, every)
    _LIVE[id(code)] = code, live
    return live


def _solve(code: CodeType, body: Sequence[dis.Instruction], every: frozenset[str]) -> dict[int, frozenset[str]]:
    following: dict[int, list[int]] = {i.offset: [] for i in body}
    for i, after in pairwise(body):
        if i.opname not in _ENDS:
            following[i.offset].append(after.offset)
    for i in body:
        if i.opcode in _JUMPS:
            following[i.offset].append(i.argval)
    for entry in getattr(dis.Bytecode(code), "exception_entries", ()):
        for offset in following:
            if entry.start <= offset < entry.end:
                following[offset].append(entry.target)
    none: frozenset[str] = frozenset()
    before = dict.fromkeys(following, none)
    after_each = dict(before)
    changed = True
    while changed:
        changed = False
        for i in reversed(body):
            after = none.union(*(before.get(t, none) for t in following[i.offset]))
            after_each[i.offset] = after
            named = _variables(i, every) if i.opname not in ("LOAD_CONST", "KW_NAMES") else none
            now = after - named if i.opname in _STORES else after | named
            if now != before[i.offset]:
                before[i.offset] = now
                changed = True
    return after_each


def is_read_later(frame: FrameType, name: str) -> bool:
    """Return True if a frame may read a variable after the call that it is executing."""
    live = _live_after(frame.f_code)
    offsets = [*live]
    at = bisect_right(offsets, frame.f_lasti) - 1  # It may be in the cache of an instruction.
    return at < 0 or name in live[offsets[at]]


def _is_own(frame: FrameType) -> bool:
    """Return True for a frame of the tracer itself."""
    path = frame.f_code.co_filename
    return path.startswith(PACKAGE) and not is_convertible(path, frame.f_globals.get("__name__"))


def _frames() -> Iterator[FrameType]:
    """Return the frames of the traced program, innermost first."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code is not trace_boundary.__code__:
        if not _is_own(frame):
            yield frame
        frame = frame.f_back


class _Reached(Snapshot):
    """The objects reachable from roots, apart from contents that a region changes."""

    __slots__ = ("contents", "variables")

    def __init__(self, contents: Mapping[int, Any], variables: Variables):
        self.contents = contents
        self.variables = variables
        super().__init__(())

    def content(self, obj: Any, kind: int) -> Any:
        known = self.contents.get(id(obj))
        return super().content(obj, kind) if known is None else known

    def led_to(self, f: FunctionType) -> list[Any]:
        found = super().led_to(f)
        own = [
            cell for name, cell in zip(f.__code__.co_freevars, f.__closure__ or ()) if self.variables.has(f, name, cell)
        ]
        return [x for x in found if not any(x is cell for cell in own)] if own else found


class Variables:
    """The variables of one frame that a region assigns."""

    def __init__(self, frame: FrameType | None, names: Iterable[str]):
        self.names = frozenset(names)
        self.values: Mapping[str, Any] = {}
        self.within: tuple[str, ...] = ()
        if frame is not None and self.names:
            self.values = {n: v for n, v in frame.f_locals.items() if n in self.names}
            parts = frame.f_code.co_qualname.split(".<locals>.")
            self.within = tuple(".<locals>.".join(parts[: k + 1]) for k in range(len(parts)))

    def has(self, f: FunctionType, name: str, cell: Any) -> bool:
        """Return True if the cell of a nested function holds one of the variables."""
        if name not in self.values:
            return False
        outer = f.__code__.co_qualname.rpartition(".<locals>.")[0]
        try:
            held = cell.cell_contents
        except ValueError:
            return False
        return held is self.values[name] and (outer in self.within or outer.startswith(f"{self.within[-1]}.<locals>."))

    def has_outer(self, frame: FrameType, name: str, value: Any) -> bool:
        """Return True if a variable of an enclosing function is one of the variables."""
        return name in self.values and value is self.values[name] and frame.f_code.co_qualname in self.within[:-1]


class Surroundings:
    """The objects that a branch or loop leaves visible outside the places that it merges.

    Args:
        names: the names that the region assigns in its frame.
        kept: the values of those that it does not change.
        contents: the contents of the objects that it changes, without the changed slots, by id.
        suspended: the frames of generators that ``for`` statements are consuming.
    """

    def __init__(
        self, names: Iterable[str], kept: Iterable[Any], contents: Mapping[int, Any], suspended: Iterable[FrameType]
    ):
        frames = list(_frames())
        variables = Variables(frames[0] if frames else None, names)
        self.reached = _Reached(contents, variables)
        self.names: dict[int, str] = {}
        for k, frame in enumerate([*frames, *(f for f in suspended if f not in frames)]):
            self.add_frame(frame, variables, own=k == 0, suspended=k >= len(frames))
        self.reached.add(kept)

    def add_frame(self, frame: FrameType, variables: Variables, *, own: bool, suspended: bool) -> None:
        """Add the variables of a frame that are read later, and the globals that its code names."""
        roots: list[Any] = []
        for name, value in frame.f_locals.items():
            if hasattr(type(value), "__cute_iterates__"):
                roots += value.iterated
            elif (own and name in variables.names) or (name[0] == "." and is_machinery_class(type(value))):
                continue
            elif (suspended or is_read_later(frame, name)) and not variables.has_outer(frame, name, value):
                roots.append(value)
                self.names.setdefault(id(value), name)
        if is_convertible(frame.f_code.co_filename, frame.f_globals.get("__name__")):
            held = frame.f_globals
            roots += [held[n] for n in names_read(frame.f_code) if n in held]
        self.reached.add(roots)

    def check(self, objects: Iterable[Any]) -> None:
        """Raise F209 if one of the objects stays visible."""
        for obj in objects:
            if id(obj) in self.reached.seen:
                raise shared_error(obj, self.names.get(id(obj), ""))

    def check_once(self, objects: Iterable[Any], seen: set[int]) -> None:
        """Raise F209 if one of the objects stays visible or is in ``seen``, the ids of others, and add them to it."""
        for obj in objects:
            self.check((obj,))
            if id(obj) in seen:
                raise shared_error(obj)
            seen.add(id(obj))


def shared_error(obj: Any, name: str = "") -> MergeError:
    """Return the error for an object that a region replaces and another name, or something else, refers to."""
    other = f"'{name}'" if name and name[0] != "." else "another variable, element or attribute"
    cure = "change its attributes in place"
    if isinstance(obj, list):
        cure = "change it in place (xs[:] = …), or copy it first (xs = list(xs))"
    elif isinstance(obj, dict):
        cure = "change it in place (d.update(…)), or copy it first (d = dict(d))"
    text = f"it refers to two different {type(obj).__name__} objects, and {other} also refers to one of them"
    return MergeError("F209", text, hint=cure)
