"""Errors name the caller's parameter, whichever step of a launch rejects the argument."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

from cute_dialect.errors import CompileError
from cute_dialect.pipelines import compile as compile_cute
from cute_dialect.runtime import load
from cute_dialect.runtime.launch import CompiledModule
from cute_dialect.runtime.launch_plan import AlignmentError, DtypeError, ShapeError

_V = '!cute.memref<f32, gmem, "?:1">'
_V16 = '!cute.memref<f32, gmem, align<16>, "?:1">'
_L = '!cute.layout<"4:1">'


@lru_cache(maxsize=8)
def compiled(host: str = "", kernel: str = "") -> CompiledModule:
    """Compile @launch(a_1, l, b_1, n), which passes b_1, a_1 to @k. ``host`` and ``kernel`` add attributes."""
    text = f"""
module attributes {{gpu.container_module}} {{
  gpu.module @kernels {{
    gpu.func @k(%p: {_V}, %l: {_L}, %q: {_V16}, %r: i32) kernel{f" attributes {{{kernel}}}" if kernel else ""} {{
      gpu.return
    }}
  }}
  func.func @launch(%a_1: {_V16}, %l: {_L}, %b_1: {_V}, %n: i32){f" attributes {{{host}}}" if host else ""} {{
    %one = arith.constant 1 : i32
    gpu.launch_func @kernels::@k blocks in (%one, %one, %one) threads in (%one, %one, %one) : i32
      args(%b_1 : {_V}, %l : {_L}, %a_1 : {_V16}, %n : i32)
    return
  }}
}}
"""
    return compile_cute(text, emit="base")


def vector(offset: int = 0) -> np.ndarray:
    """Return eight numbers that start ``offset`` elements after a 16-byte boundary."""
    whole = np.zeros(16, np.float32)
    start = (-whole.ctypes.data // 4) % 4 + offset
    return whole[start : start + 8]


NAMES = 'cute.names = ["a_1", "config.l", "b[0]", "n"]'


def test_names_are_those_of_the_attribute() -> None:
    """xDSL strips a trailing number from a value's name, but the attribute keeps the original name."""
    assert compiled().kernel("launch").target.names == ["a", "l", "b", "n"]
    assert compiled(NAMES).kernel("launch").target.names == ["a_1", "config.l", "b[0]", "n"]


def test_messages_name_the_argument_of_the_call() -> None:
    call = compiled(NAMES).kernel("launch")
    good = vector()
    with pytest.raises(DtypeError, match=r"argument b\[0\] expects elements of f32, got i32"):
        call.plan(good, (4, 1), np.zeros(4, np.int32), 1)
    with pytest.raises(DtypeError, match=r"argument config.l expects a pair"):
        call.plan(good, 3, good, 1)
    # This error arises for a kernel parameter, whose name and position differ from the caller's.
    with pytest.raises(AlignmentError, match=r"argument a_1: expected an address that is a multiple of 16"):
        call.plan(vector(1), (4, 1), vector(2), 1)


def test_kernels_name_only_their_own_parameters() -> None:
    module = compiled(NAMES, 'cute.names = ["first", "layout", "second", "count"]')
    (kernel,) = module.manifest["kernels"]
    assert kernel["names"] == ["first", "second", "count"]
    assert [p["type"] for p in kernel["params"]] == [_V, _V16, "i32"]
    assert [len(b) for b in module.kernel("launch").plan(vector(), (4, 1), vector(), 1).packed.buffers] == [16, 16, 4]


@pytest.mark.parametrize("names", ['["a", "b"]', '["a", "b", "c", "a"]', '["a", "b", "c", 3]', '"a"'])
def test_invalid_names_are_rejected(names: str) -> None:
    with pytest.raises(CompileError, match=r"@launch: cute.names needs 4 different strings, one per argument"):
        compiled(f"cute.names = {names}")


SYMBOLS = 'cute.symbols = ["n: 0.shape[0] = 2.shape[0]", "ld: 0.stride[0] = 2.stride[0]"]'


def test_shared_symbols_must_agree(tmp_path: Path) -> None:
    """Loaded kernels also check that extents of the same name are equal."""
    module = compiled(f"{NAMES}, {SYMBOLS}")
    module.save(tmp_path / "saved")
    for call in (module.kernel("launch"), load(tmp_path / "saved").kernel("launch")):
        call.plan(vector(), (4, 1), vector(), 1)
        with pytest.raises(ShapeError, match=r"^'n' is 8 in argument a_1, mode 0, and 4 in argument b\[0\], mode 0$"):
            call.plan(vector(), (4, 1), vector()[:4], 1)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ('["n"]', r'cute.symbols needs strings like "n: 0.shape\[0\] = 1.shape\[0\]", got "n"'),
        ('["n: 0.shape[0]"]', "cute.symbols needs strings like"),
        ("3 : i32", "cute.symbols needs strings like"),
        (
            '["n: 0.shape[0] = 2.shape[1]"]',
            "'n' refers to mode 1 of argument 2, which is not an array with such a mode",
        ),
        (
            '["n: 0.shape[0] = 3.shape[0]"]',
            "'n' refers to mode 0 of argument 3, which is not an array with such a mode",
        ),
        (
            '["n: 0.shape[0] = 9.shape[0]"]',
            "'n' refers to mode 0 of argument 9, which is not an array with such a mode",
        ),
    ],
)
def test_invalid_symbols_are_rejected(said: str, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        compiled(f"cute.symbols = {said}")
