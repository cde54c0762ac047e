"""The modules that a call of ``op.mm`` on the CPU passes through before the interpreter starts."""

from __future__ import annotations

import numpy as np
import pytest
from call_path import modules_before_the_interpreter

from cute_dialect import op

OF_OP, ALL = 6, 12
"""Ceilings for the number of modules, of ``op`` and of the whole package.  Lower them when the count falls."""


@pytest.mark.end_to_end  # The call compiles a kernel.
def test_modules_before_the_interpreter_only_fall() -> None:
    a, b = (np.ones((64, 64), np.float16) for _ in range(2))
    op.mm(a, b, device="cpu")  # The first call imports modules, chooses the kernel and compiles it.
    found = modules_before_the_interpreter(lambda: op.mm(a, b, device="cpu"))
    of_op = [name for name in found if name.startswith("cute_dialect.op.")]
    assert len(of_op) <= OF_OP, of_op
    assert len(found) <= ALL, found
