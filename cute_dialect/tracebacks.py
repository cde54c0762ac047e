"""Tracebacks of uncaught errors: the user's frames and the message, without the frames of this package.

``import cute_dialect`` wraps ``sys.excepthook``.  When an error of one of this package's classes ends the program, the
hook removes the frames of the package and of other libraries before Python prints the traceback.  Errors of other
classes are printed unchanged, so a bug of the package shows all its frames.  ``CUTE_TRACEBACK=full`` switches the hook
off.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from types import TracebackType

from cute_dialect.files import PACKAGE

__all__ = ["install", "shorten"]


def shorten(error: BaseException) -> None:
    """Remove the package's frames from the traceback of an error of this package and from those of its causes.

    If no frame of the user's is left, the traceback becomes None and Python prints the message alone.
    """
    for each in _chain(error):
        if not _is_ours(each):
            return
        each.__traceback__ = _users_frames(each.__traceback__)
        if _repeats_cause(each):
            each.__cause__ = None


def install() -> None:
    """Wrap ``sys.excepthook``, once."""
    previous = sys.excepthook
    if getattr(previous, "_shortens", False):
        return

    def hook(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        from cute_dialect.runtime.settings import word  # late: only when an error ends the program

        if word("CUTE_TRACEBACK") != "full":
            shorten(error)
            traceback = error.__traceback__
        previous(kind, error, traceback)

    hook._shortens = True  # pyright: ignore[reportFunctionMemberAccess]
    sys.excepthook = hook


def _is_ours(error: BaseException) -> bool:
    return any(c.__module__.startswith("cute_dialect.") for c in type(error).__mro__)


def _repeats_cause(error: BaseException) -> bool:
    """Return True if the message contains that of the cause, as for a Python error in traced code."""
    cause = error.__cause__
    return cause is not None and not _is_ours(cause) and str(cause) in str(error)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and those that Python prints before it, latest first."""
    seen: set[int] = set()
    at: BaseException | None = error
    while at is not None and id(at) not in seen:
        seen.add(id(at))
        yield at
        at = at.__cause__ or (None if at.__suppress_context__ else at.__context__)


def _users_frames(traceback: TracebackType | None) -> TracebackType | None:
    """The frames that are neither this package's nor a library's."""
    kept: list[TracebackType] = []
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        if not file.startswith(PACKAGE) and not _is_library(file):
            kept.append(traceback)
        traceback = traceback.tb_next
    made: TracebackType | None = None
    for t in reversed(kept):
        made = TracebackType(made, t.tb_frame, t.tb_lasti, t.tb_lineno)
    return made


def _is_library(file: str) -> bool:
    """Return True for Python's own modules and installed packages."""
    return file.startswith(("<frozen", _STANDARD)) or "site-packages" in file or "dist-packages" in file


_STANDARD = os.path.dirname(os.__file__) + "/"
