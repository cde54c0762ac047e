"""Control-flow errors that ``test/errors/lang`` cannot cover: edited files, and values that leak out of a region."""

from __future__ import annotations

import linecache
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from traced import Traced

from cute_dialect.errors import CuteError
from cute_dialect.lang.control.runtime import converted
from cute_dialect.lang.tracing.errors import StaticError
from cute_dialect.lang.values.dtypes import Int32


def refusal(source: str, kinds: Sequence[Any] = (Int32, Int32), **scope: Any) -> str:
    """Trace the function ``f`` of a source text and return its error message without the call stack."""
    linecache.cache["k.py"] = (len(source), None, source.splitlines(True), "k.py")
    names: dict[str, Any] = {"__name__": "k", **scope}
    exec(compile(source, "k.py", "exec", dont_inherit=True), names)
    with pytest.raises(CuteError) as error:
        Traced(names["f"], kinds)
    return "\n".join(line for line in str(error.value).splitlines() if not line.startswith("called from"))


def test_changed_file(tmp_path: Path) -> None:
    path = tmp_path / "changed.py"
    path.write_text("def f(a):\n    return a + 1\n")
    names: dict[str, Any] = {"__name__": "changed"}
    exec(compile(path.read_text(), str(path), "exec"), names)
    path.write_text("def f(a):\n    return a + 2\n")
    with pytest.raises(CuteError) as error:
        converted(names["f"])
    assert str(error.value) == (
        f"{path}:1:1: error F101: 'f' does not match its source because {path} changed after it was imported\n"
        "    1 | def f(a):\n      | ^\nhint: restart Python, or reload the module"
    )


def test_no_source() -> None:
    """A function without source code is traced unconverted, and a run-time condition in it is an error."""
    names: dict[str, Any] = {"__name__": "k"}
    exec("def f(a):\n    return 1 if a > 2 else a + 3", names)
    assert converted(names["f"]) is names["f"]
    with pytest.raises(CuteError) as error:
        Traced(names["f"], [Int32])
    assert "error F143: the truth value of this Boolean is known only at run time" in str(error.value)
    assert "note: 'f' was not compiled as kernel code: it has no source (F102)" in str(error.value)


def test_a_value_that_leaks_is_refused() -> None:
    """Using a value that left its branch through an object of a library is an error."""
    hidden: Any = np.poly1d([1])
    hidden.cell = [0]
    source = """\
def f(a, b):
    if a < b:
        hidden.cell[0] = a + b
    return hidden.cell[0] + 1
"""
    assert (
        refusal(source, hidden=hidden)
        == """\
k.py:4:12: error F211: a value of type i32 is used outside the branch or loop that computes it
    4 |     return hidden.cell[0] + 1
      |            ^
k.py:3:26: note: it is computed here
    3 |         hidden.cell[0] = a + b
      |                          ^
hint: it was stored in an object that the branch does not track: pass it as an argument, or return the value"""
    )


def test_assignment_to_an_array_element_is_rejected() -> None:
    source = """\
def f(a, b):
    if a < b:
        table[0] = 5
    return table[0]
"""
    assert (
        refusal(source, table=np.zeros(3))
        == """\
k.py:2:8: error F209: a NumPy array is changed in a run-time branch or loop
    2 |     if a < b:
      |        ^^^^^
hint: keep the changing values in a list or in a register tensor"""
    )


def test_dynamic_numbers_in_sets_are_rejected() -> None:
    def f(a: int, b: int) -> int:
        return len({a, b})

    def g(a: int, b: int) -> int:
        return {a: 1}[a] + b

    for function in (f, g):
        with pytest.raises(StaticError, match="F147"):
            Traced(function, [Int32, Int32])
