"""``cute-lsp`` with a real client over standard input and output. All tests share one server."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path

import pytest
from lsp_client import Editor, applied, position, svg_in
from lsprotocol import types
from pygls.exceptions import JsonRpcException
from xdsl.ir import Operation

from cute_dialect.dialect.sizes import SizeOp
from cute_dialect.ir.context import make_context
from cute_dialect.passes.registry import PASSES
from cute_dialect.tools.cute_lsp import main
from cute_dialect.tools.docs.dialect import op_text

WRONG = """func.func @f(%l: !cute.layout<"(6,5):(5,1)">) {
  %0 = cute.sise(%l) : (!cute.layout<"(6,5):(5,1)">) -> !cute.int_tuple<"30">
  return
}
"""
KERNEL = """// RUN: cute-opt %s --cute-expand-ops | FileCheck %s
!L = !cute.layout<"(8,4):(4,1)">
gpu.module @m {
  gpu.func @k(%tile: !L, %n: i32) kernel {
    %size = "cute.size"(%tile) <{mode = array<i32: 0>}> : (!L) -> !cute.int_tuple<"8">
    scf.if %flag {
      %inner = cute.get<[0]>(%tile) : (!L) -> !cute.layout<"8:4">
    }
    gpu.return
  }
}
func.func @host() {
  return
}
"""
"""It does not parse: what is %flag?"""

SCALE = """import numpy as np
import cute_dialect.lang as cute
from cute_dialect.lang import arch

@cute.example(lambda: (np.zeros((64, 32), np.float32),))
@cute.jit
def scale(ä, by: cute.Constexpr = 2):
    \"\"\"Scale.\"\"\"
    tile = cute.make_layout((4, 8), stride=(8, 1))
    shape = ä.shape; wide = cute.zipped_divide(ä, (4, 8))  # 😀
    kernel(ä, tile, by).launch(grid=1, block=32)

@cute.kernel
def kernel(a: cute.Tensor, tile: cute.Layout, by: cute.Constexpr):
    thread, _, _ = arch.thread_idx()
    part = cute.make_rmem_tensor(tile, cute.Float32)
"""


@pytest.fixture(scope="module")
def editor() -> Iterator[Editor]:
    made = Editor()
    yield made
    assert made.close() == 0


def fixed(editor: Editor, uri: str, text: str, d: types.Diagnostic) -> str:
    """Return the text after applying the only quick fix of a diagnostic."""
    context = types.CodeActionContext([d])
    asked = types.CodeActionParams(types.TextDocumentIdentifier(uri), d.range, context)
    (action,) = editor.wait(editor.client.text_document_code_action_async(asked)) or []
    assert isinstance(action, types.CodeAction) and action.edit is not None and action.edit.changes is not None
    return applied(text, list(action.edit.changes[uri]))


def test_a_typo_is_underlined_and_fixed(editor: Editor) -> None:
    uri = "file:///unsaved/typo.mlir"
    (d,) = editor.checked(uri, WRONG)
    assert d.message == "unregistered operation 'cute.sise'; did you mean 'cute.size'?"
    assert (d.range.start.line, d.range.start.character, d.range.end.character) == (1, 7, 16)
    assert d.severity == types.DiagnosticSeverity.Error and d.source == "cute"
    right = fixed(editor, uri, WRONG, d)
    assert right == WRONG.replace("sise", "size")
    editor.replace(uri, right)
    assert editor.diagnostics(uri) == []


def test_columns_are_the_clients(editor: Editor) -> None:
    """Columns count UTF-16 code units, of which some characters take two."""
    uri = "file:///unsaved/units.mlir"
    text = 'module {\n  "test.op"() {a = "😀😀"} : () -> () }\n'.replace("test.op", "cute.sise")
    (d,) = editor.checked(uri, text)
    assert (d.range.start.character, d.range.end.character) == (2, 13)
    text = 'func.func @f() attributes {a = "😀😀"} { "cute.sise"() : () -> () return }\n'
    editor.replace(uri, text)
    (d,) = editor.diagnostics(uri)
    marked = text.encode("utf-16-le")[2 * d.range.start.character : 2 * d.range.end.character].decode("utf-16-le")
    assert marked == '"cute.sise"'


def test_incremental_changes(editor: Editor) -> None:
    uri = "file:///unsaved/part.mlir"
    assert len(editor.checked(uri, WRONG)) == 1
    at = types.Range(types.Position(1, 14), types.Position(1, 15))
    editor.change(uri, types.TextDocumentContentChangePartial(at, "z"))
    assert editor.diagnostics(uri) == []


# ---------------------------------------------------------------------------------------------------------------- MLIR


@pytest.fixture(scope="module")
def kernel(editor: Editor) -> str:
    uri = "file:///unsaved/kernel.mlir"
    (d,) = editor.checked(uri, KERNEL)
    assert d.message == "use of undeclared SSA value name '%flag'"
    return uri


def test_hover_shows_the_type_and_layout_of_a_value(editor: Editor, kernel: str) -> None:
    said = editor.hover(kernel, position(KERNEL, "(%tile) <", 3))
    assert said.startswith('```mlir\n%tile : !cute.layout<"(8,4):(4,1)">\n```')
    svg = ElementTree.fromstring(svg_in(said))
    numbers = [e.text for e in svg.iter("{http://www.w3.org/2000/svg}text")]
    assert [n for n in numbers if n == "31"] == ["31"] and svg.attrib["aria-label"] == "(8,4):(4,1)"
    table = said.rpartition("```text\n")[2].split("\n")
    assert table[0] == "(8,4):(4,1)" and table[-3].split(" | ") == [" 7 ", "28", "29", "30", "31 |"]
    made = editor.hover(kernel, position(KERNEL, "%size"))
    assert '%size : !cute.int_tuple<"8">' in made and "`cute.size`: Returns the number of elements of a value." in made


def test_hover_documents_ops_types_passes_and_properties(editor: Editor, kernel: str) -> None:
    as_in_the_docs = op_text(SizeOp).removeprefix("### `cute.size`\n")
    assert editor.hover(kernel, position(KERNEL, "cute.size", 7)) == f"**`cute.size`**\n{as_in_the_docs}"
    said = editor.hover(kernel, position(KERNEL, '!cute.layout<"(8,4)', 8))
    assert "A shape and a congruent stride." in said and 'aria-label="(8,4):(4,1)"' in svg_in(said)
    assert PASSES["cute-expand-ops"].summary in editor.hover(kernel, position(KERNEL, "expand-ops", 2))
    said = editor.hover(kernel, position(KERNEL, "mode = "))
    assert said == "`mode`: array<i32: …>, property of `cute.size`"
    assert "func.return" in editor.hover(kernel, position(KERNEL, "  return", 4))
    assert "gpu.func @k(%tile: !L, %n: i32) kernel" in editor.hover(kernel, position(KERNEL, "@k"))
    alias = editor.hover(kernel, position(KERNEL, "!L, %n", 1))
    assert alias.startswith('```mlir\n!L = !cute.layout<"(8,4):(4,1)">') and svg_in(alias)
    assert editor.hover(kernel, position(KERNEL, "FileCheck")) == ""


def test_definition_references_and_rename(editor: Editor, kernel: str) -> None:
    doc, at = types.TextDocumentIdentifier(kernel), position(KERNEL, "<[0]>(%tile", 7)
    found = editor.wait(editor.client.text_document_definition_async(types.DefinitionParams(doc, at)))
    assert isinstance(found, types.Location)
    assert found.range == types.Range(position(KERNEL, "%tile: "), position(KERNEL, "%tile: ", 5))
    for declared, count in ((True, 3), (False, 2)):
        asked = types.ReferenceParams(types.ReferenceContext(declared), doc, at)
        places = editor.wait(editor.client.text_document_references_async(asked)) or []
        assert len(places) == count and {p.uri for p in places} == {kernel}
    marked = editor.wait(editor.client.text_document_document_highlight_async(types.DocumentHighlightParams(doc, at)))
    kinds = [m.kind for m in marked or []]
    assert kinds == [types.DocumentHighlightKind.Write, *2 * [types.DocumentHighlightKind.Read]]
    edit = editor.wait(editor.client.text_document_rename_async(types.RenameParams(doc, at, "block")))
    assert edit is not None and edit.changes is not None
    assert applied(KERNEL, edit.changes[kernel]) == KERNEL.replace("%tile", "%block")
    for name, said in (("n", "%n is already in use"), ("a b", "expected a name such as %tile")):
        with pytest.raises(JsonRpcException, match=said):
            editor.wait(editor.client.text_document_rename_async(types.RenameParams(doc, at, name)))


def test_symbols(editor: Editor, kernel: str) -> None:
    asked = types.DocumentSymbolParams(types.TextDocumentIdentifier(kernel))
    found = editor.wait(editor.client.text_document_document_symbol_async(asked)) or []
    tree = [
        (s.name, s.detail, [c.name for c in s.children or []]) for s in found if isinstance(s, types.DocumentSymbol)
    ]
    assert tree == [("@m", "gpu.module", ["@k"]), ("@host", "func.func", [])]


def test_completion(editor: Editor, kernel: str) -> None:
    ops = editor.completions(kernel, position(KERNEL, "cute.size", 7))
    assert set(ops) == {op.name for op in make_context_ops() if op.name.startswith("cute.")}
    assert ops["cute.size"].detail == "Returns the number of elements of a value."
    assert op_text(SizeOp).partition("\n")[2] in editor.documentation(ops["cute.size"])
    flags = editor.completions(kernel, position(KERNEL, "--cute-expand", 3))
    assert {f"--{name}" for name in PASSES} <= set(flags)
    kinds = editor.completions(kernel, position(KERNEL, "!cute.int_tuple", 6))
    assert {"!L", "!cute.layout", "!cute.memref", "!cute_nvgpu.atom.wgmma"} <= set(kinds)
    values = editor.completions(kernel, position(KERNEL, "<[0]>(%tile", 7))
    assert list(values) == ["%size", "%n", "%tile"]
    assert values["%tile"].detail == '!cute.layout<"(8,4):(4,1)">'
    assert set(editor.completions(kernel, position(KERNEL, "@host", 1))) == {"@m", "@k", "@host"}
    assert "mode" in editor.completions(kernel, position(KERNEL, "mode = "))
    assert editor.completions(kernel, position(KERNEL, "FileCheck", 2)) == {}


def make_context_ops() -> list[type[Operation]]:
    """Return all ops of the dialects that a program may name."""
    context = make_context()
    for name in context.registered_dialect_names:
        context.get_optional_op(f"{name}.none")
    return list(context.loaded_ops)


def test_completion_in_incomplete_text(editor: Editor) -> None:
    """Completion works in unsaved text that does not parse and has characters of two UTF-16 units."""
    uri = "file:///unsaved/written.mlir"
    text = 'func.func @f(%l: !cute.layout<"4:1">) attributes {a = "😀"} { %s = cute.si\n'
    editor.checked(uri, text)
    item = editor.completions(uri, position(text, "\n"))["cute.size"]
    assert isinstance(item.text_edit, types.TextEdit)
    assert applied(text, [item.text_edit]) == text.replace("cute.si", "cute.size")
    editor.replace(uri, text.replace("\n", "ze(%\n"))
    assert set(editor.completions(uri, position(text, "\n", 4))) == {"%l"}
    assert "%l" in editor.hover(uri, position(text, "%l", 1))


def test_inlay_hints(editor: Editor) -> None:
    uri = "file:///unsaved/hints.mlir"
    text = KERNEL.replace("scf.if %flag {", "scf.execute_region {").replace("    }\n", "      scf.yield\n    }\n", 1)
    text = text.replace('-> !cute.layout<"8:4">', "-> !M").replace("!L =", '!M = !cute.layout<"8:4">\n!L =')
    assert editor.checked(uri, text) == []
    line = position(text, "%inner").line
    assert editor.hints(uri) == [(line, len("      %inner"), ': !cute.layout<"8:4">')]


def test_a_long_text(editor: Editor) -> None:
    """The server answers a request about the last of 2,000 lines."""
    uri, count = "file:///unsaved/long.mlir", 2000
    ops = "".join(f"  %v{i} = arith.addi %v{i - 1}, %n : i32\n" for i in range(1, count))
    text = f"func.func @f(%v0: i32, %n: i32) -> i32 {{\n{ops}  return %v{count - 1} : i32\n}}\n"
    editor.open(uri, text)
    last = position(text, "return %v", 8)
    values = editor.completions(uri, last)
    assert len(values) == count + 1 and next(iter(values)) == f"%v{count - 1}"
    asked = types.DefinitionParams(types.TextDocumentIdentifier(uri), last)
    found = editor.wait(editor.client.text_document_definition_async(asked))
    assert isinstance(found, types.Location) and found.range.start == types.Position(count - 1, 2)
    asked_for = types.ReferenceParams(types.ReferenceContext(True), asked.text_document, position(text, "%n: ", 1))
    assert len(editor.wait(editor.client.text_document_references_async(asked_for)) or []) == count
    assert editor.diagnostics(uri) == []  # Types are known after the check.
    assert editor.hover(uri, last).startswith(f"```mlir\n%v{count - 1} : i32")
    editor.client.text_document_did_close(types.DidCloseTextDocumentParams(asked.text_document))


@pytest.mark.parametrize(
    "method, params",
    [
        ("textDocument/hover", {"textDocument": {"uri": 3}, "position": "here"}),
        ("textDocument/hover", {"textDocument": {"uri": "file:///a.mlir"}, "position": {"line": "x", "character": 0}}),
        ("textDocument/completion", None),
        ("textDocument/rename", {"textDocument": {"uri": "file:///a.mlir"}, "position": {"line": 0, "character": 0}}),
        ("textDocument/definition", []),
    ],
)
def test_invalid_parameters_get_a_response(editor: Editor, method: str, params: object) -> None:
    with pytest.raises(JsonRpcException) as e:
        editor.request(f"invalid {method}", method, params)
    assert method in str(e.value)


def test_nonsense_is_survived(editor: Editor, kernel: str) -> None:
    doc = types.TextDocumentIdentifier(kernel)
    for line, character in ((10**6, 0), (0, 10**6), (2**31 - 1, 2**31 - 1)):
        assert editor.hover(kernel, types.Position(line, character)) == "" or line == 0
        editor.completions(kernel, types.Position(line, character))
    assert editor.hover("file:///not/open.mlir", types.Position(0, 0)) == ""
    asked: list[tuple[str, object]] = [
        ("textDocument/nothing", {}),
        ("textDocument/hover", {"textDocument": {"uri": 3}, "position": "here"}),
        ("textDocument/hover", {"textDocument": {"uri": kernel}, "position": {"line": -1, "character": -4}}),
        ("textDocument/completion", None),
        ("completionItem/resolve", {"label": "x", "data": {"kind": ["op"], "name": 7}}),
        ("completionItem/resolve", {"label": "x", "data": {"kind": "op", "name": "no.such"}}),
        ("textDocument/rename", {"textDocument": {"uri": kernel}, "position": {"line": 0, "character": 0}}),
    ]
    for i, (method, params) in enumerate(asked):
        editor.send(json.dumps({"jsonrpc": "2.0", "id": f"strange {i}", "method": method, "params": params}))
    editor.send("{")
    strange = "file:///unsaved/strange.mlir"
    for text in ("", "\n", "%", '"', "}{)(", "\x00\ud7ff😀%😀", "!a = !a\n%x : !a"):
        editor.open(strange, text)
        for at in (types.Position(0, 0), types.Position(0, 1), types.Position(1, 9)):
            editor.hover(strange, at)
            editor.completions(strange, at)
        editor.wait(editor.client.text_document_document_symbol_async(types.DocumentSymbolParams(doc)))
    assert "cute.size" in editor.hover(kernel, position(KERNEL, "cute.size", 7))


# -------------------------------------------------------------------------------------------------------------- Python


@pytest.fixture(scope="module")
def scale(editor: Editor) -> str:
    uri = "file:///unsaved/scale.py"
    assert editor.checked(uri, SCALE, "python") == []
    return uri


def test_hover_of_traced_values(editor: Editor, scale: str) -> None:
    said = editor.hover(scale, position(SCALE, "tile, by).launch", 2))
    assert said.startswith("```python\ntile: Layout (4,8):(8,1)\n```")
    assert 'aria-label="(4,8):(8,1)"' in svg_in(said) and "| 24 | 25 |" in said
    assert "wide: tensor<ptr<f32, gmem, align<16>> o ((4,8)," in editor.hover(scale, position(SCALE, "wide = "))
    assert "part: tensor<ptr<f32, rmem" in editor.hover(scale, position(SCALE, "part = "))
    assert editor.hover(scale, position(SCALE, "by: cute.Constexpr)", 1)).startswith("```python\nby: 2\n")
    assert editor.hover(scale, position(SCALE, "Scale.")) == ""


def test_names_of_the_language(editor: Editor, scale: str) -> None:
    said = editor.hover(scale, position(SCALE, "make_layout", 4))
    assert "cute.make_layout(shape: Shape, stride: Stride = None, order: IntTuple = None) -> Layout" in said
    assert "Return the layout of a shape and strides" in said
    assert "cute.arch.thread_idx() -> Dim3" in editor.hover(scale, position(SCALE, "thread_idx"))
    names = editor.completions(scale, position(SCALE, "make_layout", 5))
    assert {"make_layout", "Tensor", "arch", "local_tile"} <= set(names)
    assert "Return the layout of a shape and strides" in editor.documentation(names["make_layout"])
    inner = editor.completions(scale, position(SCALE, "thread_idx", 6))
    assert {"thread_idx", "sync_threads"} <= set(inner) and "make_layout" not in inner


def test_hints_follow_assigned_names(editor: Editor, scale: str) -> None:
    found = {(line, character): label for line, character, label in editor.hints(scale)}
    end = position(SCALE, "tile = ", 4)
    assert found.pop((end.line, end.character)) == ": Layout (4,8):(8,1)"
    end = position(SCALE, "wide = ", 4)
    assert found.pop((end.line, end.character)).startswith(": tensor<ptr<f32, gmem")
    end = position(SCALE, "part = ", 4)
    assert found.pop((end.line, end.character)).startswith(": tensor<ptr<f32, rmem") and not found


def test_python_without_examples_gets_advice(editor: Editor) -> None:
    uri = "file:///unsaved/bare.py"
    text = "import cute_dialect.lang as cute\n\n@cute.jit\ndef fill(x, by):\n    pass\n"
    (d,) = editor.checked(uri, text, "python")
    assert d.severity == types.DiagnosticSeverity.Hint and "@cute.example(lambda: (x, by))" in d.message
    assert d.range == types.Range(types.Position(3, 4), types.Position(3, 8))


def test_python_that_does_not_parse(editor: Editor) -> None:
    """If Python does not parse, the values of the last trace stay available, and names are still completed."""
    uri = "file:///unsaved/broken.py"
    assert editor.checked(uri, SCALE, "python") == []
    broken = SCALE.replace("    part = ", "    more = tile + cute.arch.\n    part = ")
    editor.replace(uri, broken)
    (d,) = editor.diagnostics(uri)
    assert d.message.startswith("SyntaxError")
    assert "sync_threads" in editor.completions(uri, position(broken, "cute.arch.\n", 10))
    assert editor.hover(uri, position(broken, "tile + ")).startswith("```python\ntile: Layout (4,8):(8,1)")


def test_other_python_is_left_alone(editor: Editor) -> None:
    uri = "file:///unsaved/other.py"
    assert editor.checked(uri, "raise SystemExit(3)\nx = 1\n", "python") == []
    assert editor.hover(uri, types.Position(1, 0)) == "" and editor.hints(uri) == []


def test_help_and_wrong_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0 and "vim.lsp.config" in capsys.readouterr().out
    for arguments, said in (
        (["--pipeline", "bass"], "--pipeline: unknown pipeline 'bass'"),
        (["--chip", "sm_1"], "--chip: expected one of "),
        (["--timeout", "0"], "--delay must be at least 0 and --timeout above 0"),
        (["--log", str(Path("/nowhere/at/all"))], "--log: /nowhere/at/all: No such file or directory"),
    ):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == 2 and said in capsys.readouterr().err
