"""Python's own errors during tracing, reported with the user's line, the call chain, the cause and a suggestion.

Each error keeps its original class as a base, so ``except AttributeError`` still works.  The original error is the
attribute ``original``.  A value that a branch or loop could not merge is an error only when it is read.  Python then
reports the name as unbound, and :func:`translated` replaces that report with the reason.
"""

from __future__ import annotations

import ast
import difflib
import dis
import inspect
import linecache
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from types import CodeType, FrameType, TracebackType
from typing import TYPE_CHECKING, Any

from cute_dialect.errors import CompileError, Place, UsageError
from cute_dialect.lang.control.branches import Lost, regions
from cute_dialect.lang.rewrite.convert import is_converted
from cute_dialect.lang.rewrite.desugaring import VALUE
from cute_dialect.lang.rewrite.source import is_convertible, parsed
from cute_dialect.lang.tracing.errors import MergeError, StaticError, UnboundError
from cute_dialect.lang.tracing.source_location import is_library, is_machinery, is_user_code, place_at

if TYPE_CHECKING:
    from cute_dialect.lang.rewrite.analysis import Site
    from cute_dialect.lang.tracing.tracer import Tracer

# ------------------------------------------------------------------------------------------------------ Python's errors


RAISE = dis.opmap["RAISE_VARARGS"]
_KEYWORD = re.compile(r"(\S+)\(\) got an unexpected keyword argument '(\w+)'")
_KEPT = ("name", "obj", "value")
"""Attributes of Python's errors that are not in their ``__dict__``."""


class PythonError(CompileError):
    """F162: a Python error in traced code. Instances belong to a subclass that also derives from the original class."""


def as_ours(error: Exception, at: TracebackType | None) -> CompileError | None:
    """Return the language's form of a Python error raised during tracing.

    The result is None for an internal error of the compiler, or if no user's line led to it.
    """
    frames: list[tuple[FrameType, int]] = []
    while at is not None:
        frames.append((at.tb_frame, at.tb_lasti))
        at = at.tb_next
    users = [n for n, (frame, _) in enumerate(frames) if is_user_code(frame.f_code)]
    if not users or isinstance(error, StopIteration | StopAsyncIteration):
        return None
    inner = [f.f_code for f, _ in frames[users[-1] + 1 :]]
    if any(map(is_machinery, inner)) and not _is_said(error, *frames[-1]):
        return None
    frame, index = frames[next((n for n in reversed(users) if not is_library(frames[n][0].f_code)), users[-1])]
    place = place_at(frame.f_code, index)
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if isinstance(error, UsageError):
        text = str(error)
    return _made(error, text, _hint(error, frame, place), place)


def _is_said(error: Exception, frame: FrameType, index: int) -> bool:
    """Return True if the language raised the error on purpose, with a message for the user."""
    code: CodeType = frame.f_code
    if code.co_code[index] != RAISE or not is_machinery(code):
        return False
    return not isinstance(error, AssertionError | NotImplementedError) or code.co_name == "check"


def _made(error: Exception, text: str, hint: str, place: Place) -> CompileError | None:
    try:
        kind = _class_for(type(error))
        made = kind.__new__(kind, "F162", text)
    except TypeError:  # Some classes cannot be subclassed.
        return None
    CompileError.__init__(made, "F162", text, hint=hint, place=place)
    made.__dict__.update({k: v for k, v in error.__dict__.items() if k not in made.__dict__ and k != "__notes__"})
    for name in _KEPT:
        if hasattr(type(error), name) and not isinstance(inspect.getattr_static(type(error), name), property):
            setattr(made, name, getattr(error, name))
    made.args = error.args
    return made


@lru_cache(maxsize=256)
def _class_for(kind: type[Exception]) -> type[PythonError]:
    body = {"__module__": kind.__module__, "__qualname__": kind.__qualname__, "__doc__": kind.__doc__}
    return type(kind.__name__, (PythonError, kind), body)


# ------------------------------------------------------------------------------------------------------------- hints


def _hint(error: Exception, frame: FrameType, place: Place) -> str:
    if isinstance(error, AttributeError) and error.name:
        return similar(error.name, _attributes(error.obj))
    if isinstance(error, NameError) and error.name:
        builtins: Any = frame.f_builtins
        return similar(error.name, [n for n in (*frame.f_locals, *frame.f_globals, *builtins) if n[:1] != "."])
    if isinstance(error, TypeError) and (match := _KEYWORD.search(str(error))):
        called = _called(place, frame)
        if called is not None:
            return _parameters(called, match[2])
    return ""


def similar(name: str, candidates: Iterable[str]) -> str:
    found = difflib.get_close_matches(name, sorted(set(candidates)), 1)
    return f"did you mean '{found[0]}'?" if found else ""


def _attributes(of: object) -> list[str]:
    try:
        return [n for n in dir(of) if not n.startswith("__")]
    except Exception:  # A user-defined __dir__ may raise anything.
        return []


def _called(place: Place, frame: FrameType) -> Any:
    """Return the function called at ``place``, or None if looking it up could run user code."""
    try:
        node = parsed(place.text().strip(), mode="eval").body
    except (SyntaxError, ValueError):
        return None
    func: Any = node.func if isinstance(node, ast.Call) else None
    names: list[str] = []
    while isinstance(func, ast.Attribute):
        names.append(func.attr)
        func = func.value
    if not isinstance(func, ast.Name):
        return None
    at: Any = frame.f_locals.get(func.id, frame.f_globals.get(func.id))
    for name in reversed(names):
        if not inspect.ismodule(at):
            return None
        at = getattr(at, name, None)
    return at if inspect.isfunction(at) or inspect.isclass(at) else None


def _parameters(function: Any, wrong: str) -> str:
    try:
        names = [n for n in inspect.signature(function).parameters if n not in ("self", "_")]
    except (TypeError, ValueError):
        return ""
    return similar(wrong, names) or f"parameters: {', '.join(names)}"


def arguments_error(
    error: TypeError, signature: inspect.Signature, given: Mapping[str, object], options: Sequence[str] = ()
) -> tuple[str, str]:
    """Return the message and hint for arguments that do not match a signature; unknown names are reported first.

    ``options`` are the names of the options of a call, which it takes besides the parameters.
    """
    names = list(signature.parameters)
    kinds = {p.kind for p in signature.parameters.values()}
    unknown = [n for n in given if n not in names]
    if not unknown or inspect.Parameter.VAR_KEYWORD in kinds:
        return str(error), ""
    hint = similar(unknown[0], names) or similar(unknown[0], options) or f"parameters: {', '.join(names)}"
    return f"there is no parameter '{unknown[0]}'", hint


# ----------------------------------------------------------------- values lost in branches, recursion, unconverted code


_NAME = re.compile(r"'([^']+)'")


def translated(error: BaseException, tracer: Tracer) -> CompileError | None:
    """Return the language's error for a Python error raised during tracing, or None to keep Python's."""
    if isinstance(error, CompileError):
        return None
    frames = _frames(error.__traceback__)
    if not frames:
        return None
    if isinstance(error, UnboundLocalError | NameError) and (lost := _unbound(error, frames, tracer)) is not None:
        return lost
    if isinstance(error, RecursionError):
        return _recursion(frames)
    code, index = frames[-1]
    if regions(tracer) and is_converted(code) and code.co_code[index] == RAISE:
        return CompileError(
            "F156", f"this raise would run at compile time, whatever the run-time condition: {type(error).__name__}: "
            f"{error}", hint="use 'assert' for a check at run time", place=place_at(code, index),
        )  # fmt: skip
    return as_ours(error, error.__traceback__) if isinstance(error, Exception) else None


def _frames(at: TracebackType | None) -> list[tuple[CodeType, int]]:
    found: list[tuple[CodeType, int]] = []
    while at is not None:
        found.append((at.tb_frame.f_code, at.tb_lasti))
        at = at.tb_next
    return found


def _unbound(error: NameError, frames: list[tuple[CodeType, int]], tracer: Tracer) -> CompileError | None:
    match = _NAME.search(str(error))
    code, index = frames[-1]
    if match is None or not is_converted(code):
        return None
    name = match[1]
    lost: Lost | None = tracer.state.get("lost", {}).get((name, code.co_filename))
    if lost is None:
        return None
    made = _lost(name, lost)
    made.place = place_at(code, index)
    return made


def _lost(name: str, lost: Lost) -> CompileError:
    site, error = lost.site, lost.error
    shown = "the returned value" if name == VALUE else f"'{name}'"
    loop = site.kind in ("for", "while")
    note = ("the loop" if loop else "the branch", site.place)
    line = site.place.line
    if isinstance(error, MergeError):
        text = (
            error.message if error.message.startswith(shown) else f"{shown} differs after this branch: {error.message}"
        )
        return MergeError(error.code, text, hint=error.hint, notes=error.notes or [note])
    if error == "target":
        return UnboundError(
            "F222", f"{shown} is the variable of a run-time loop (line {line}) and has no value after the loop",
            hint="copy it to another name inside the loop", notes=[note],
        )  # fmt: skip
    where = f"in a loop that may run zero times (line {line})" if loop else _side(site, error)
    return UnboundError("F210", f"{shown} is set only {where}", hint=f"assign {shown} before line {line}", notes=[note])


def _side(site: Site, side: str) -> str:
    line = site.place.line
    if site.text:
        return f"if no {site.text} ran before it (line {line})"
    truth = "true" if side == "side" else "false"
    return f"if `{site.place.text()}` is {truth} (line {line})"


def _recursion(frames: list[tuple[CodeType, int]]) -> CompileError | None:
    counts: dict[CodeType, int] = {}
    for code, _ in frames:
        if is_converted(code):
            counts[code] = counts.get(code, 0) + 1
    if not counts or max(counts.values()) < 20:
        return None
    code = max(counts, key=lambda c: counts[c])
    first = next(i for c, i in frames if c is code)
    return CompileError(
        "F161", f"'{code.co_name}' recurses without end at compile time: the condition that ends it is known only at "
        "run time", hint="write a loop", place=place_at(code, first),
    )  # fmt: skip


_SOURCELESS = "kernels are compiled from their source: save the program in a file, or use a notebook"
_UNCONVERTED = "this function is not compiled as kernel code; see cute.jit and cute.convert_package"


def explained(error: StaticError) -> None:
    """Add a hint that names the Python code that asked for a run-time value: an unconverted function, or one in C."""
    if error.is_located:  # An inner trace has already explained the error.
        return
    for code, index in reversed(_frames(error.__traceback__)):
        if not is_user_code(code):
            continue
        if is_converted(code):
            error.hint = _asked_by(error, place_at(code, index)) or error.hint
            return
        if error.code not in ("F143", "F145"):
            return
        why = "an operator, a property or a C function called it"
        if not linecache.getlines(code.co_filename):
            why = "it has no source (F102)"
        elif not is_convertible(code.co_filename, None):
            why = "it belongs to a library; see cute.convert_package"
        if error.code == "F143":
            error.hint = _UNCONVERTED if linecache.getlines(code.co_filename) else _SOURCELESS
        error.notes.append((f"'{code.co_name}' was not compiled as kernel code: {why}", place_at(code, index)))
        return


def _asked_by(error: StaticError, place: Place) -> str:
    """Return the hint for converted code in which Python itself asks for a truth value or an index, or ""."""
    if error.code not in ("F143", "F144"):
        return ""
    text = place.text().strip()
    if linecache.getline(place.file, place.line).lstrip().startswith("case "):
        return "write each alternative that captures a name as a separate case"
    try:
        node = parsed(text, mode="eval").body
    except SyntaxError:
        return ""
    if error.code == "F144":
        if not isinstance(node, ast.Subscript):
            return ""
        return (
            f"`{ast.unparse(node.value)}` is a Python object, which is indexed at compile time: make it a tensor (an "
            "array argument or cute.make_rmem_tensor), use 'x if c else y', or pass the index as cute.Constexpr"
        )
    if isinstance(node, ast.Call):
        return f"Python's `{ast.unparse(node.func)}` needs the values at compile time: compare them in a loop"
    if isinstance(node, ast.Compare):
        return "Python compares these objects at compile time: compare their numbers instead"
    return ""
