"""Index of the names in MLIR text, also for text that is cut off at any position.

Each answer of the index is compared with a search through all names, ops or braces.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from lsprotocol import types
from pygls.workspace import TextDocument

from cute_dialect.tools.lsp import mlir_features
from cute_dialect.tools.lsp.analysis_results import Analysis, Catalogue, Entry
from cute_dialect.tools.lsp.mlir_text import MlirText, Name, Op
from cute_dialect.tools.lsp.server import View

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted(p for p in ROOT.rglob("*.mlir") if p.stat().st_size < 40_000)
CATALOGUE = Catalogue({"cute.size": Entry("cute.size", "", (("mode", ""),))}, flags={"cse": Entry("cse", "")})


def innermost(text: MlirText, offset: int) -> Op | None:
    inside = [op for op in text.ops if op.start <= offset <= op.end]
    return max(inside, key=lambda op: (op.start, -op.end), default=None)


def braces(text: MlirText, offset: int) -> int:
    """Return the index of the innermost braces around an offset. A separator belongs to the text before it."""
    tops = [n for n, (start, _) in enumerate(text.opened) if text.parents[n] == -1 and start <= offset]
    inside = [n for n, (start, end) in enumerate(text.opened) if text.parents[n] != -1 and start < offset < end]
    return max(inside, key=lambda n: text.opened[n][0], default=tops[-1])


def meant(text: MlirText, name: Name) -> Name | None:
    """Return the definition of a name, found by searching all definitions."""
    if name.definition:
        return name
    same = [n for n in text.names if n.definition and (n.kind, n.text) == (name.kind, name.text)]
    if name.kind in ("symbol", "alias"):
        return same[0] if same else None
    return next((n for scope in text.visible(name.scope) for n in same if n.scope == scope), None)


@pytest.mark.parametrize("seed", range(60))
def test_a_cut_text(seed: int) -> None:
    choice = random.Random(seed)
    whole = choice.choice(FILES).read_text()
    begin = choice.randrange(len(whole) + 1)
    a, b = sorted(choice.randrange(len(whole) + 1) for _ in range(2))
    source = (whole[:a] + choice.choice(['"', "{", "}", "(", "%", "!x<", "// -----\n", ""]) + whole[b:])[begin:][
        :12_000
    ]
    view = View(TextDocument("file:///cut.mlir", source))
    text = view.names
    for op in text.ops:
        assert 0 <= op.start <= op.at <= op.end <= len(source)
    for name in text.names:
        assert source[name.start : name.end] == name.text
    for start, end in text.opened:
        assert 0 <= start <= end <= len(source)
    mlir_features.symbols(view)
    for name in choice.sample(text.names, min(20, len(text.names))):
        assert text.definition(name) == meant(text, name)
        assert name in text.references(name.start)
    for _ in range(20):
        at = choice.randrange(len(source) + 1)
        assert text.op_at(at) == innermost(text, at)
        assert text.scope_at(at) == braces(text, at)
        assert all(n.end < at for n in text.values_at(at))
        place = view.position(view.place(at))
        assert view.offset(place) == at or source[at - 1 : at + 1] == "\r\n" or source[at - 1 : at] in "\r\n"
        found = mlir_features.subject(view, at, CATALOGUE)
        assert found is None or found.start <= at <= found.end
        for item in mlir_features.completions(view, at, CATALOGUE, Analysis()):
            assert isinstance(item.text_edit, types.TextEdit) and item.text_edit.range.end == place


def test_scopes() -> None:
    text = MlirText(
        "func.func @f(%a: i32) {\n  %b = test.op : i32\n  scf.for %i = %a to %b step %b {\n    test.use %i, %b\n  }\n"
        "  ^bb1(%c: i32):\n  test.use %c\n}\nfunc.func @g(%a: i64) {\n  test.use %a, %b\n}\n"
    )
    last = text.text.rindex("%a")
    assert [n.start for n in text.references(last)] == [text.text.index("%a: i64"), last]
    assert text.definition(text.names[-1]) is None  # A function cannot use names of another.
    inner = text.text.index("%i, %b")
    assert [n.text for n in text.values_at(inner)] == ["%i", "%b", "%a"]


def test_positions_use_the_encoding_of_the_client() -> None:
    view = View(TextDocument("file:///x.mlir", 'a "😀" %x\n😀 %y'))
    at = view.text.index("%x")
    assert view.position(view.place(at)) == types.Position(0, 7) and view.offset(types.Position(0, 7)) == at
    assert view.offset(types.Position(1, 3)) == view.text.index("%y")
    assert view.offset(types.Position(7, 0)) == len(view.text)
