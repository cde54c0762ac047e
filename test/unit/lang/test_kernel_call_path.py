"""The modules that a repeated call of a language kernel on the CPU passes through before the interpreter starts."""

from __future__ import annotations

import numpy as np
from call_path import modules_before_the_interpreter

import cute_dialect.lang as cute

OF_LANG, ALL = 10, 16
"""Ceilings for the number of modules, of ``lang`` and of the whole package.  Lower them when the count falls."""


@cute.kernel
def double(x: cute.Tensor, y: cute.Tensor) -> None:
    i = cute.arch.thread_idx().x
    y[i] = x[i] * 2


@cute.jit
def run(x: cute.Tensor, y: cute.Tensor) -> None:
    double(x, y).launch(grid=1, block=32)


def test_modules_before_the_interpreter_only_fall() -> None:
    x = np.ones(32, np.float32)
    y = np.zeros_like(x)
    run(x, y, device="cpu")  # The first call imports modules and compiles.
    found = modules_before_the_interpreter(lambda: run(x, y, device="cpu"))
    of_lang = [name for name in found if name.startswith("cute_dialect.lang.")]
    assert len(of_lang) <= OF_LANG, of_lang
    assert len(found) <= ALL, found
