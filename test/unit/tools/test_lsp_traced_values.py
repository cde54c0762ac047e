"""Values recorded in a trace for the language server: the first value of each binding."""

from __future__ import annotations

import pytest

from cute_dialect.tools.lsp.analysis import watched
from cute_dialect.tools.lsp.analysis_results import Place

TEXT = """\
def f(n, *more,
      by=2):
    total = 0
    for i in range(3):
        total += i * n
    round = [1]
    round.append(round)
    long = tuple(range(40))
    (first, [second]), third = (1, [2]), "3"
    with open("/dev/null") as file, file as other:
        last = (deep := 5) + 1
    again = \\
        [x for x in long]
    return total

def g():
    ü = 1; größe = 2
    yield größe
    raise KeyError(ü)

def h(whole):
    pass
"""


def seen(call: str) -> dict[tuple[int, str], tuple[str, bool]]:
    """Return the values recorded during a call by line (from 1) and name, after checking their columns in the text."""
    with watched("text.py", TEXT) as found:
        scope: dict[str, object] = {}
        exec(compile(TEXT, "text.py", "exec"), scope)
        exec(call, scope)
    lines = TEXT.splitlines()
    for place, known in found.items():
        assert lines[place.line][place.column :].startswith(known.name)
    return {(place.line + 1, known.name): (known.text, known.argument) for place, known in found.items()}


def test_values() -> None:
    found = seen("f(7, 8, 9)")
    assert found[1, "n"] == ("7", True) and found[1, "more"] == ("(8, 9)", True) and found[2, "by"] == ("2", True)
    assert found[3, "total"] == ("0", False) and found[4, "i"] == ("0", False)
    assert found[6, "round"][0] == "(1)"
    assert found[8, "long"][0].endswith("15, …)")
    assert [found[9, n][0] for n in ("first", "second", "third")] == ["1", "2", "'3'"]
    assert found[11, "last"][0] == "6" and found[11, "deep"][0] == "5"
    assert found[12, "again"][0].startswith("(0, 1, ")
    assert not any(name in ("file", "other", "f") for _, name in found)


def test_a_list_in_itself_ends() -> None:
    assert seen("r = [1]; r.append(r); h(r)")[21, "whole"] == ("(1, (1, (1, (…, …))))", True)


def test_exceptions_propagate() -> None:
    with pytest.raises(KeyError, match="1"):
        seen("list(g())")
    found = seen("next(g())")
    assert found[17, "ü"][0] == "1" and found[17, "größe"][0] == "2"


def test_previous_trace_function_is_restored() -> None:
    import sys

    before = sys.gettrace()
    with watched("text.py", TEXT) as found:
        assert sys.gettrace() is not before
    assert sys.gettrace() is before and found == {} and Place(0, 0) not in found
