"""Python line numbers appear in the line info of kernels and in reports of the interpreter."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cute_dialect.lang as cute
from cute_dialect.interp import InterpError
from cute_dialect.ir.printing import ir_text
from cute_dialect.pipelines import compile

LINES = open(__file__).read().splitlines()  # noqa: SIM115


def line_of(text: str) -> int:
    """Return the line number in this file that ends in this comment."""
    (found,) = (i for i, line in enumerate(LINES, 1) if line.endswith(f"# {text}"))
    return found


def helper(x: Any, i: Any) -> Any:
    return x[i] * x[i]  # squares


@cute.kernel
def square(x: Any, y: Any) -> None:
    i, _, _ = cute.arch.thread_idx()
    y[i] = helper(x, i)  # calls


@cute.jit
def run(x: Any, y: Any) -> None:
    square(x, y).launch(grid=1, block=32)


def test_line_info_names_the_helper_and_its_caller() -> None:
    traced = cute.compile(run, np.ones(32, np.float32), np.ones(32, np.float32))
    (code,) = compile(traced.module(), lineinfo=True, emit="ptx").artifact.code
    assert f'\t.file\t1 "{__file__}"' in code.ptx
    callee, caller = line_of("squares"), line_of("calls")
    assert re.search(
        rf"\t\.loc\t1 {caller} 12\n"
        rf"\t\.loc\t1 {callee} 12, function_name \$L__function0, inlined_at 1 {caller} 12\n\tmul",
        code.ptx,
    )
    assert "\t.b8 " + ",".join(map(str, b"helper\0")) in code.ptx


def test_the_interpreter_shows_the_line_and_the_call() -> None:
    with pytest.raises(InterpError) as caught:
        run(np.ones(8, np.float32), np.ones(32, np.float32), device="cpu")
    lines = str(caught.value).splitlines()
    assert lines[0] == (
        f"{__file__}:{line_of('squares')}:12: error: out-of-bounds read of tensor 'x': "
        "index 8 is outside [0, 8); access it under an 'if' that tests the index"
    )
    assert lines[1] == "    return x[i] * x[i]  # squares"
    assert lines[2] == "           ^"
    assert lines[3:5] == [
        f"{__file__}:{line_of('calls')}:12: note: in 'helper', called from here",
        "    y[i] = helper(x, i)  # calls",
    ]


def test_the_same_text_in_two_files(tmp_path: Path) -> None:
    """Equal code in two files has different locations."""
    text = "import cute_dialect.lang as cute\n@cute.jit\ndef host(n: int):\n    cute.printf('%d', cute.Int32(n))\n"
    for name in ("one.py", "two.py"):
        path = tmp_path / name
        path.write_text(text)
        traced = cute.trace(runpy.run_path(str(path))["host"], 1)
        places = re.findall(r'"([^"]*\.py)":4:', ir_text(traced.module(), debuginfo=True))
        assert places and set(places) == {str(path)}
