"""``cute-lsp`` by a real client over standard input and output: one server for all tests."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
from lsprotocol import types
from pygls.lsp.client import LanguageClient

from cute_dialect.tools.cute_lsp import main

T = TypeVar("T")
WRONG = """func.func @f(%l: !cute.layout<"(6,5):(5,1)">) {
  %0 = cute.sise(%l) : (!cute.layout<"(6,5):(5,1)">) -> !cute.int_tuple<"30">
  return
}
"""


class Editor:
    """A client and its server, in an event loop of their own."""

    def __init__(self, *arguments: str) -> None:
        self.loop = asyncio.new_event_loop()
        self.client = LanguageClient("test", "1")
        self.told: dict[tuple[str, int | None], list[types.Diagnostic]] = {}
        self.news = asyncio.Event()
        self.versions: dict[str, int] = {}

        @self.client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def published(params: types.PublishDiagnosticsParams) -> None:
            self.told[params.uri, params.version] = list(params.diagnostics)
            self.news.set()

        self.wait(self.client.start_io(sys.executable, "-m", "cute_dialect.tools.cute_lsp", *arguments))
        markdown = types.HoverClientCapabilities(content_format=[types.MarkupKind.Markdown])
        asked = types.InitializeParams(
            types.ClientCapabilities(text_document=types.TextDocumentClientCapabilities(hover=markdown))
        )
        self.capabilities = self.wait(self.client.initialize_async(asked)).capabilities
        self.client.initialized(types.InitializedParams())

    def wait(self, what: Coroutine[Any, Any, T] | asyncio.Future[T], seconds: float = 120) -> T:
        """Return what comes of something; the time only ends a test that hangs."""

        async def both() -> T:
            return await asyncio.wait_for(what, seconds)

        return self.loop.run_until_complete(both())

    def open(self, uri: str, text: str, language: str = "mlir") -> None:
        self.versions[uri] = 1
        self.client.text_document_did_open(
            types.DidOpenTextDocumentParams(types.TextDocumentItem(uri, language, 1, text))
        )

    def change(self, uri: str, *changes: types.TextDocumentContentChangeEvent) -> None:
        self.versions[uri] += 1
        named = types.VersionedTextDocumentIdentifier(self.versions[uri], uri)
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(named, list(changes)))

    def replace(self, uri: str, text: str) -> None:
        self.change(uri, types.TextDocumentContentChangeWholeDocument(text))

    def diagnostics(self, uri: str) -> list[types.Diagnostic]:
        """Return those of the newest version, when they come."""
        key = (uri, self.versions[uri])

        async def until() -> None:
            while key not in self.told:
                self.news.clear()
                await self.news.wait()

        self.wait(until())
        return self.told[key]

    def checked(self, uri: str, text: str, language: str = "mlir") -> list[types.Diagnostic]:
        self.open(uri, text, language)
        return self.diagnostics(uri)

    def close(self) -> int | None:
        self.wait(self.client.shutdown_async(None))
        self.client.exit(None)
        self.wait(self.client._server.wait())
        status = self.client._server.returncode
        self.wait(self.client.stop())
        self.loop.close()
        return status


@pytest.fixture(scope="module")
def editor() -> Iterator[Editor]:
    made = Editor()
    yield made
    assert made.close() == 0


def applied(text: str, edits: list[types.TextEdit]) -> str:
    """Return a text with edits of one line each made."""
    lines = text.split("\n")
    for e in sorted(edits, key=lambda e: (e.range.start.line, e.range.start.character), reverse=True):
        assert e.range.start.line == e.range.end.line
        line = lines[e.range.start.line]
        lines[e.range.start.line] = line[: e.range.start.character] + e.new_text + line[e.range.end.character :]
    return "\n".join(lines)


def fixed(editor: Editor, uri: str, text: str, d: types.Diagnostic) -> str:
    """Return a text with the one quick fix of a diagnostic applied."""
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
    """What stands before in the line may take two units of UTF-16 for one code point."""
    uri = "file:///unsaved/units.mlir"
    text = 'module {\n  "test.op"() {a = "😀😀"} : () -> () }\n'.replace("test.op", "cute.sise")
    (d,) = editor.checked(uri, text)
    assert (d.range.start.character, d.range.end.character) == (2, 13)
    text = 'func.func @f() attributes {a = "😀😀"} { "cute.sise"() : () -> () return }\n'
    editor.replace(uri, text)
    (d,) = editor.diagnostics(uri)
    marked = text.encode("utf-16-le")[2 * d.range.start.character : 2 * d.range.end.character].decode("utf-16-le")
    assert marked == '"cute.sise"'


def test_changes_of_a_part(editor: Editor) -> None:
    uri = "file:///unsaved/part.mlir"
    assert len(editor.checked(uri, WRONG)) == 1
    at = types.Range(types.Position(1, 14), types.Position(1, 15))
    editor.change(uri, types.TextDocumentContentChangePartial(at, "z"))
    assert editor.diagnostics(uri) == []


def test_help_and_wrong_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0 and "vim.lsp.config" in capsys.readouterr().out
    for arguments, said in (
        (["--pipeline", "bass"], "--pipeline: unknown pipeline 'bass'"),
        (["--chip", "sm_1"], "--chip: expected one of "),
        (["--timeout", "0"], "--delay and --timeout: expected seconds, got a number below 0"),
        (["--log", str(Path("/nowhere/at/all"))], "--log: /nowhere/at/all: No such file or directory"),
    ):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == 2 and said in capsys.readouterr().err
