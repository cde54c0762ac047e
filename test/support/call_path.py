"""The modules that a call passes through before the interpreter starts."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType


def modules_before_the_interpreter(call: Callable[[], object]) -> list[str]:
    """Return the modules of the package whose functions a call enters before the first one of the interpreter."""
    found: dict[str, None] = {}
    is_interpreted = False

    def enter(frame: FrameType, event: str, _: object) -> None:
        nonlocal is_interpreted
        name = frame.f_globals.get("__name__", "")
        is_interpreted |= name.startswith("cute_dialect.interp")
        if event == "call" and not is_interpreted and name.startswith("cute_dialect."):
            found[name] = None

    before = sys.getprofile()
    sys.setprofile(enter)
    try:
        call()
    finally:
        sys.setprofile(before)
    assert is_interpreted
    return list(found)
