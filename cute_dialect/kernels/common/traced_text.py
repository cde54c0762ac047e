"""Kernels as MLIR text: the printed trace of a function, or the trace itself for callers that run it in this
process.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from functools import wraps
from typing import TYPE_CHECKING, ParamSpec

if TYPE_CHECKING:  # pragma: no cover
    import cute_dialect.lang as cute


_Given = ParamSpec("_Given")

_KEPT: ContextVar[list[cute.Compiled] | None] = ContextVar("kept", default=None)


def printed(program: Callable[_Given, cute.Compiled]) -> Callable[_Given, str]:
    """Decorate a function that returns a trace so that it returns the text, with type aliases and source comments.

    >>> from cute_dialect.kernels.copies.repack_rows import pad_text
    >>> pad_text().count("gpu.func"), type(traced_by(pad_text)).__name__
    (1, 'Compiled')
    """

    @wraps(program)
    def text(*args: _Given.args, **options: _Given.kwargs) -> str:
        made, kept = program(*args, **options), _KEPT.get()
        if kept is None:
            return made.mlir(aliases=True, comments=True)
        kept.append(made)
        return ""

    text.__annotations__ = {**program.__annotations__, "return": str}
    return text


def traced_by(text: Callable[[], str]) -> cute.Compiled | str:
    """Return the trace of a :func:`printed` function that ``text`` is or calls, or the text if there is none.

    Skipping printing and parsing saves a fifth of the time until a kernel runs on the interpreter.
    """
    kept: list[cute.Compiled] = []
    before = _KEPT.set(kept)
    try:
        found = text()
    finally:
        _KEPT.reset(before)
    return kept[0] if kept else found
