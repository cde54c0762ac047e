"""Short tracebacks: the user's frames and the message, without the frames of this package and of other libraries.

Errors are shortened in three places:

- where the outermost call of the language ends (``lang.tracing.tracer.finish_error``), so that ``traceback.print_exc``,
  pytest and logging show the user's frames only;
- in ``sys.excepthook``, for every error that ends a program;
- in ``_render_traceback_``, which IPython and Jupyter call to print an error.

Only subclasses of ``CuteError`` are shortened. Any other error is a bug of this package or the user's own error, and
keeps all its frames. An exception is an error of ``torch.compile`` that reports an error of ``cute_dialect.op``: a
program that ends with it prints the error of ``op``, with the lines that ``torch.compile`` traced.

``CUTE_TRACEBACK=full`` disables all of this.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Iterator
from types import FrameType, TracebackType

from cute_dialect.errors import CuteError, OpError
from cute_dialect.files import PACKAGE

__all__ = ["install", "is_full", "shorten", "user_frames"]

_ENDS = 4
"""Number of frames that are kept at each end of a long traceback, such as that of a runaway recursion."""


def is_full() -> bool:
    """Return True if ``CUTE_TRACEBACK=full`` is set."""
    from cute_dialect.runtime.settings import word  # late: start-up

    return word("CUTE_TRACEBACK") == "full"


def shorten(error: CuteError) -> None:
    """Remove the package's frames from the traceback of an error, and internal errors from its causes.

    If none of the frames is the user's, the traceback becomes None and Python prints the message alone. A cause is
    removed if the package caught it and the message repeats it or none of its frames is the user's.
    """
    at: BaseException = error
    seen = {id(error)}
    while True:
        before = at.__cause__ or (None if at.__suppress_context__ else at.__context__)
        at.__traceback__ = user_frames(at.__traceback__)
        if before is None or id(before) in seen:
            return
        seen.add(id(before))
        if _was_caught_here(before) and (user_frames(before.__traceback__) is None or str(before) in str(error)):
            at.__cause__, at.__suppress_context__ = None, True
            return
        if not isinstance(before, CuteError) and not _was_caught_here(before):
            return
        at = before


def user_frames(traceback: TracebackType | None) -> TracebackType | None:
    """Return the traceback without the frames of this package and of libraries; of many frames the first and last."""
    kept: list[TracebackType] = []
    while traceback is not None:
        if not _is_ours(traceback.tb_frame) and not _is_library(traceback.tb_frame):
            kept.append(traceback)
        traceback = traceback.tb_next
    if len(kept) > 2 * _ENDS:
        kept = [*kept[:_ENDS], *kept[-_ENDS:]]
    found: TracebackType | None = None
    for t in reversed(kept):
        found = TracebackType(found, t.tb_frame, t.tb_lasti, t.tb_lineno)
    return found


def install() -> None:
    """Wrap ``sys.excepthook`` and define what IPython prints. A second call has no effect."""
    previous = sys.excepthook
    if getattr(previous, "_shortens", False):
        return

    def hook(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        traced = None if isinstance(error, CuteError) or is_full() else _refused_in_a_graph(error)
        if traced is not None:
            error, kind, traceback = traced, type(traced), traced.__traceback__
        elif isinstance(error, CuteError) and not is_full():
            shorten(error)
            traceback = error.__traceback__
            error.shown_lines = _lines(traceback)
        previous(kind, error, traceback)

    hook._shortens = True  # pyright: ignore[reportFunctionMemberAccess]
    sys.excepthook = hook
    CuteError._render_traceback_ = _lines_for_ipython  # pyright: ignore[reportAttributeAccessIssue]
    OpError.hides_frames = lambda caught: isinstance(caught.value, OpError) and not is_full()


_REFUSED = re.compile(r"raised exception (\w+)\((.*)\)$", re.MULTILINE)
"""The words in which ``torch.compile`` reports an exception that traced code raises."""


def _refused_in_a_graph(error: BaseException) -> OpError | None:
    """Return the error of ``op`` that an error of ``torch.compile`` reports, with the user's frames, or None."""
    if not type(error).__module__.startswith("torch._dynamo."):
        return None
    at: BaseException | None = error
    seen: set[int] = set()
    traced = list(getattr(error, "real_stack", None) or ())
    while at is not None and id(at) not in seen and not isinstance(at, OpError):
        seen.add(id(at))
        named = _REFUSED.search(str(at))
        if named is not None:
            is_ours = any(x.filename.startswith(PACKAGE) for x in traced)
            at = _error_named(named[1], named[2]) if is_ours else None
            break
        at = at.__cause__ or at.__context__
    if not isinstance(at, OpError):
        return None
    at.__cause__, at.__context__, at.__traceback__ = None, None, user_frames(error.__traceback__)
    at.add_note("torch.compile traced:")
    for x in [x for x in traced if not _is_hidden(x.filename)]:
        at.add_note(f'  File "{x.filename}", line {x.lineno}, in {x.name}\n    {x.line}')
    at.add_note("CUTE_TRACEBACK=full shows the error of torch.compile.")
    return at


def _error_named(name: str, message: str) -> OpError | None:
    """Return an error of a class of this package with a message, given as a literal of Python."""
    kind = next((x for x in _subclasses(OpError) if x.__name__ == name), None)
    try:
        text = ast.literal_eval(message)
    except (SyntaxError, ValueError):
        return None
    return kind(text) if kind is not None and isinstance(text, str) else None


def _subclasses(kind: type[OpError]) -> Iterator[type[OpError]]:
    for x in kind.__subclasses__():
        yield x
        yield from _subclasses(x)


def _is_hidden(file: str) -> bool:
    """Return True for a file of this package or of a library."""
    return file.startswith((PACKAGE, "<frozen", _STANDARD)) or "site-packages" in file or "dist-packages" in file


def _lines_for_ipython(error: CuteError, *_: object) -> list[str]:
    import traceback

    if not is_full():
        shorten(error)
        error.shown_lines = _lines(error.__traceback__)
    try:
        return "".join(traceback.format_exception(error)).splitlines()
    finally:
        error.shown_lines = frozenset()


def _lines(traceback: TracebackType | None) -> frozenset[tuple[str, int]]:
    """Return the file and line of each frame."""
    found: set[tuple[str, int]] = set()
    while traceback is not None:
        found.add((traceback.tb_frame.f_code.co_filename, traceback.tb_lineno))
        traceback = traceback.tb_next
    return frozenset(found)


def _was_caught_here(error: BaseException) -> bool:
    """Return True if the outermost frame of the traceback is the package's: the error did not reach the user's code."""
    return error.__traceback__ is None or _is_ours(error.__traceback__.tb_frame)


def _is_ours(frame: FrameType) -> bool:
    """Return True for the package's code, and for code that it generated."""
    if frame.f_code.co_filename.startswith("<"):
        return str(frame.f_globals.get("__name__")).startswith("cute_dialect.")
    return frame.f_code.co_filename.startswith(PACKAGE)


def _is_library(frame: FrameType) -> bool:
    """Return True for Python's own modules and installed packages, with the methods that dataclasses generate."""
    file = frame.f_code.co_filename
    if file == "<string>":
        file = str(frame.f_globals.get("__file__"))
    return file.startswith(("<frozen", _STANDARD)) or "site-packages" in file or "dist-packages" in file


_STANDARD = os.path.dirname(os.__file__) + "/"
