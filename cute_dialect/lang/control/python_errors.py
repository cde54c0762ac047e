"""Python errors raised in traced code, reported with the user's line, the call chain and a spelling suggestion.

Each error keeps its original class as a base, so ``except AttributeError`` still works. The original error is the
attribute ``original``.
"""

from __future__ import annotations

import ast
import difflib
import dis
import inspect
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from types import CodeType, FrameType, TracebackType
from typing import Any

from cute_dialect.lang.tracing.errors import CompileError, Place
from cute_dialect.lang.tracing.parsing import parsed
from cute_dialect.lang.tracing.source_location import is_machinery, is_user_code, place_at

__all__ = ["RAISE", "PythonError", "arguments_error", "as_ours"]

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
    frame, index = frames[users[-1]]
    inner = [f.f_code for f, _ in frames[users[-1] + 1 :]]
    if any(map(is_machinery, inner)) and not _is_said(error, *frames[-1]):
        return None
    place = place_at(frame.f_code, index)
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return _made(error, text, _hint(error, frame, place), place)


def _is_said(error: Exception, frame: FrameType, index: int) -> bool:
    """Return True if the front-end raised the error on purpose, with a message for the user."""
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
