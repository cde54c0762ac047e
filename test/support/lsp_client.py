"""A client of ``cute-lsp`` over standard input and output."""

from __future__ import annotations

import asyncio
import base64
import concurrent.futures
import json
import re
import sys
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from lsprotocol import types
from pygls.lsp.client import LanguageClient

__all__ = ["Editor", "applied", "position", "svg_in"]

T = TypeVar("T")


class Editor:
    """A client and its server, in a separate event loop."""

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
        """Return the result of an awaitable. The timeout only ends a hanging test."""

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
        """Wait for the diagnostics of the newest version and return them."""
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

    # ------------------------------------------------------------------------------------------------------- questions

    def send(self, body: str) -> None:
        """Send a message that may be invalid, and ignore the response."""
        data = body.encode()
        self.client.protocol.writer.write(b"Content-Length: %d\r\n\r\n%s" % (len(data), data))

    def request(self, identity: str, method: str, params: object) -> object:
        """Send a request without checking its parameters, and return the response."""
        future: concurrent.futures.Future[object] = concurrent.futures.Future()
        self.client.protocol._request_futures[identity] = future
        self.send(json.dumps({"jsonrpc": "2.0", "id": identity, "method": method, "params": params}))
        return self.wait(asyncio.wrap_future(future, loop=self.loop), 20)

    def hover(self, uri: str, at: types.Position) -> str:
        """Return the hover text at a position, or ""."""
        asked = types.HoverParams(types.TextDocumentIdentifier(uri), at)
        found = self.wait(self.client.text_document_hover_async(asked))
        if found is None:
            return ""
        assert isinstance(found.contents, types.MarkupContent)
        assert found.range is not None and found.range.start <= at
        return found.contents.value

    def completions(self, uri: str, at: types.Position) -> dict[str, types.CompletionItem]:
        """Return the completions at a position, by label."""
        asked = types.CompletionParams(types.TextDocumentIdentifier(uri), at)
        found = self.wait(self.client.text_document_completion_async(asked))
        assert isinstance(found, types.CompletionList)
        return {i.label: i for i in found.items}

    def documentation(self, item: types.CompletionItem) -> str:
        """Return the documentation of a completion."""
        found = self.wait(self.client.completion_item_resolve_async(item)).documentation
        assert isinstance(found, types.MarkupContent)
        return found.value

    def hints(self, uri: str) -> list[tuple[int, int, str]]:
        """Return the line, the character and the text of all inlay hints."""
        whole = types.Range(types.Position(0, 0), types.Position(1 << 20, 0))
        asked = types.InlayHintParams(types.TextDocumentIdentifier(uri), whole)
        found = self.wait(self.client.text_document_inlay_hint_async(asked)) or []
        return [(h.position.line, h.position.character, str(h.label)) for h in found]


def position(text: str, marked: str, further: int = 0) -> types.Position:
    """Return the UTF-16 position ``further`` characters past the start of ``marked``, which must occur once."""
    at = text.index(marked)
    assert text.find(marked, at + 1) < 0, marked
    before = text[: at + further]
    column = len(before[before.rfind("\n") + 1 :].encode("utf-16-le")) // 2
    return types.Position(before.count("\n"), column)


def applied(text: str, edits: Sequence[types.TextEdit]) -> str:
    """Apply single-line edits to a text."""
    lines = text.split("\n")
    for e in sorted(edits, key=lambda e: (e.range.start.line, e.range.start.character), reverse=True):
        assert e.range.start.line == e.range.end.line
        line = lines[e.range.start.line].encode("utf-16-le")
        start, end = 2 * e.range.start.character, 2 * e.range.end.character
        lines[e.range.start.line] = (line[:start] + e.new_text.encode("utf-16-le") + line[end:]).decode("utf-16-le")
    return "\n".join(lines)


def svg_in(markdown: str) -> str:
    """Return the SVG drawing in a Markdown text."""
    (data,) = re.findall(r"!\[layout\]\(data:image/svg\+xml;base64,([^)]*)\)", markdown)
    return base64.b64decode(data).decode()
