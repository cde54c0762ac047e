"""The modules that a call of ``op.mm`` on the CPU passes through before the interpreter starts."""

from __future__ import annotations

import sys
from types import FrameType

import numpy as np
import pytest

from cute_dialect import op

OF_OP, ALL = 10, 19
"""Ceilings for the number of modules, of ``op`` and of the whole package.  Lower them when the count falls."""


@pytest.mark.end_to_end  # The call compiles a kernel.
def test_modules_before_the_interpreter_only_fall() -> None:
    a, b = (np.ones((64, 64), np.float16) for _ in range(2))
    op.mm(a, b, device="cpu")  # The first call imports modules, chooses the kernel and compiles it.
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
        op.mm(a, b, device="cpu")
    finally:
        sys.setprofile(before)
    assert is_interpreted
    of_op = [name for name in found if name.startswith("cute_dialect.op.")]
    assert len(of_op) <= OF_OP, of_op
    assert len(found) <= ALL, list(found)
