"""The state of ``cute-lsp``: open documents, their analyses, and results of workers.

An analysis of the latest text runs in another process (:mod:`.workers`) and yields diagnostics, types and hints.
Results for outdated text are discarded.  :mod:`.features` handles the requests of the editor.
"""

from __future__ import annotations

import asyncio
import os
import re
from bisect import bisect_right
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import accumulate
from typing import Any, NamedTuple, TypeVar

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol
from pygls.uris import from_fs_path, to_fs_path
from pygls.workspace import TextDocument

from cute_dialect import __version__
from cute_dialect.tools.lsp import workers
from cute_dialect.tools.lsp.analysis_results import Analysis, Catalogue, Picture, Place, Problem, Span, ValueInfo
from cute_dialect.tools.lsp.mlir_text import MlirText
from cute_dialect.tools.lsp.workers import Job, Task


class View:
    """The current text of a document.  Offsets and columns count code points; the client may use another unit."""

    def __init__(self, document: TextDocument):
        self.text = document.source
        self.uri = document.uri
        self.lines = tuple(self.text.splitlines(keepends=True)) or ("",)
        self._codec = document.position_codec
        self._starts = [0, *accumulate(map(len, self.lines))]

    @cached_property
    def names(self) -> MlirText:
        return MlirText(self.text)

    def offset(self, position: types.Position) -> int:
        """Return the offset of a client position; a position outside the text is clamped."""
        if position.line >= len(self.lines):
            return len(self.text)
        column = self._codec.position_from_client_units(self.lines, position).character
        return min(self._starts[position.line] + min(column, self.length(position.line)), len(self.text))

    def length(self, line: int) -> int:
        """Return the length of a line without its line ending."""
        return len(self.lines[line].rstrip("\r\n"))

    def place(self, offset: int) -> Place:
        """Return the line and column of an offset."""
        line = min(max(bisect_right(self._starts, offset) - 1, 0), len(self.lines) - 1)
        return Place(line, offset - self._starts[line])

    def line_before(self, offset: int) -> str:
        """Return the part of a line before the offset."""
        return self.text[self._starts[self.place(offset).line] : offset]

    def line_at(self, offset: int) -> str:
        """Return the line that contains an offset."""
        return self.lines[self.place(offset).line].rstrip("\r\n")

    def position(self, place: Place) -> types.Position:
        """Convert a location to client units."""
        return self._codec.position_to_client_units(self.lines, types.Position(place.line, place.column))

    def range(self, start: int, end: int) -> types.Range:
        """Convert a range of offsets to client units."""
        return types.Range(self.position(self.place(start)), self.position(self.place(end)))

    def span(self, span: Span) -> types.Range:
        """Convert a span to client units."""
        end = max(span.end_column, span.column) if span.line == span.end_line else span.end_column
        return types.Range(
            self.position(Place(span.line, span.column)), self.position(Place(max(span.end_line, span.line), end))
        )

    def word(self, offset: int, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Return the match of a pattern that contains the offset or ends at it, within its line."""
        column = self.place(offset).column
        found = (m for m in pattern.finditer(self.line_at(offset)) if m.start() <= column <= m.end())
        return max(found, key=lambda m: m.start(), default=None)


T = TypeVar("T")

PATIENCE = 5.0
"""Seconds that a request for types waits for the analysis of the latest text."""

MOST_KEPT = 512
"""Maximum number of cached pictures and documentation texts."""

LONG = 30_000
"""MLIR text above this length is first analysed without passes, so that types are available earlier."""

_SEVERITIES = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "remark": types.DiagnosticSeverity.Information,
    "note": types.DiagnosticSeverity.Hint,
}


class Settings(NamedTuple):
    """Options of the program.

    ``delay`` is the number of seconds without a change before a check, ``timeout`` the time limit of a check in
    seconds.  ``pictures`` is "always", "never", or "auto" (not for clients known to display only text).
    """

    pipeline: str = "base"
    chip: str = ""
    delay: float = 0.15
    timeout: float = 60.0
    pictures: str = "auto"


@dataclass
class _Open:
    """An open document: the current version of its text and the latest results."""

    version: int = 0
    task: asyncio.Task[None] | None = None
    analysis: Analysis = field(default_factory=Analysis)
    analysed: int = -1
    news: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the current version has new results."""
    known: dict[Place, ValueInfo] = field(default_factory=dict[Place, ValueInfo])
    """Python: the values of names in the latest version that could be traced."""
    view: View | None = None
    viewed: int = -1


class _Protocol(LanguageServerProtocol):
    """The protocol of pygls, with an error response to requests whose parameters are invalid."""

    def structure_message(self, data: dict[str, Any]) -> Any:
        try:
            return super().structure_message(data)
        except JsonRpcException as e:
            if "id" in data and "method" in data:
                reason = e.__cause__ or e
                error = types.ResponseError(e.code or -32602, f"{data['method']}: {e.message}: {reason}")
                self._send_response(data["id"], error=error)
            raise


class CuteServer(LanguageServer):
    """The language server and its documents, by URI."""

    def __init__(self, settings: Settings):
        super().__init__("cute-lsp", __version__, protocol_cls=_Protocol)  # pyright: ignore[reportUnknownMemberType]
        self.settings = settings
        self.documents: dict[str, _Open] = {}
        self._kept: dict[object, asyncio.Task[Any]] = {}
        self.client = ""
        """The name of the client."""

    def language(self, document: TextDocument) -> str:
        """Return "mlir" or "python", or an empty string for other files."""
        name = document.filename or document.uri
        if document.language_id == "python" or name.endswith(".py"):
            return "python" if "cute_dialect" in document.source else ""
        return "mlir" if document.language_id == "mlir" or name.endswith(".mlir") else ""

    def view(self, uri: str) -> tuple[str, View]:
        """Return the language and the current text of a document; both are empty if it is not open."""
        state = self.documents.get(uri)
        if state is None:
            return "", View(TextDocument(uri, ""))
        document = self.workspace.get_text_document(uri)
        if state.view is None or state.viewed != state.version:
            state.view, state.viewed = View(document), state.version
        return self.language(document), state.view

    async def analysis(self, uri: str, seconds: float = PATIENCE) -> Analysis:
        """Return the analysis of the current text, or an empty one if it is not ready in ``seconds``."""
        state = self.documents.get(uri)
        if state is None:
            return Analysis()
        version = state.version
        if state.analysed != version and seconds > 0:
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(state.news.wait(), seconds)
        return state.analysis if state.analysed == version == state.version else Analysis()

    def known(self, uri: str) -> dict[Place, ValueInfo]:
        """Return the values of names in the latest Python text that could be traced."""
        state = self.documents.get(uri)
        return state.known if state is not None else {}

    # ------------------------------------------------------------------------------------------------worker processes

    async def catalogue(self) -> Catalogue:
        """Return the catalogue of names, computed once."""
        found = await self._once("catalogue", workers.catalogue, workers.no_catalogue)
        if not found.ops:
            self._kept.pop("catalogue", None)  # The next request tries again.
        return found

    async def picture(self, drawn: str) -> Picture:
        """Return the picture of a type or layout."""
        return await self._once(("picture", drawn), partial(workers.picture, drawn), workers.no_picture)

    async def documentation(self, kind: str, name: str) -> str:
        """Return the documentation of a catalogue entry in Markdown."""
        return await self._once((kind, name), partial(workers.documentation, kind, name), workers.no_documentation)

    async def _once(self, key: object, work: Callable[[], T], failed: Callable[[str], T]) -> T:
        """Run a task in another process, or return its cached or pending result."""
        task: asyncio.Task[T | None] | None = self._kept.get(key)
        if task is None:
            while len(self._kept) >= MOST_KEPT:
                self._kept.pop(next(k for k in self._kept if k != "catalogue"))
            task = asyncio.ensure_future(asyncio.to_thread(Job(work, failed).run, self.settings.timeout))
            self._kept[key] = task
        found = await asyncio.shield(task)
        return failed("the task was stopped") if found is None else found

    # ----------------------------------------------------------------------------------------------------- diagnostics

    def changed(self, uri: str) -> None:
        """Schedule a check of a document and cancel the current one."""
        state = self.documents.setdefault(uri, _Open())
        state.version += 1
        state.news.clear()
        if state.task is not None:
            state.task.cancel()
        state.task = asyncio.ensure_future(self._check(uri, state, state.version))

    def closed(self, uri: str) -> None:
        """Discard the state of a document."""
        state = self.documents.pop(uri, None)
        if state is not None and state.task is not None:
            state.task.cancel()
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, []))

    async def _check(self, uri: str, state: _Open, version: int) -> None:
        await asyncio.sleep(self.settings.delay)
        document = self.workspace.get_text_document(uri)
        language, view = self.view(uri)
        file = to_fs_path(uri) or uri
        if language == "mlir" and len(view.text) > LONG and self.settings.pipeline != "none":
            self._learn(state, version, await self._analyse(Task("mlir", file, view.text, "none")))
        result: Analysis | None = Analysis()
        if language == "mlir":
            result = await self._analyse(Task("mlir", file, view.text, self.settings.pipeline))
        elif language:
            result = await self._analyse(Task("python", file, view.text, chip=self.settings.chip))
        if not self._learn(state, version, result) or result is None:
            return
        self.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(
                uri, [self._diagnostic(view, file, p) for p in result.problems], document.version
            )
        )
        capable = self.client_capabilities.workspace
        if capable is not None and capable.inlay_hint is not None and capable.inlay_hint.refresh_support:
            self.workspace_inlay_hint_refresh(None)

    async def _analyse(self, task: Task) -> Analysis | None:
        """Return the analysis of a worker; cancelling this coroutine stops the worker."""
        job = Job(partial(workers.analyse, task), workers.told)
        try:
            return await asyncio.to_thread(job.run, self.settings.timeout)
        except asyncio.CancelledError:
            job.stop()
            raise

    @staticmethod
    def _learn(state: _Open, version: int, result: Analysis | None) -> bool:
        """Store an analysis and return True if it is of the current version."""
        if result is None or state.version != version:
            return False
        state.analysis, state.analysed = result, version
        state.known = result.known or state.known
        state.news.set()
        return True

    def _diagnostic(self, view: View, file: str, p: Problem) -> types.Diagnostic:
        here = os.path.abspath(p.file) == os.path.abspath(file) if p.file else True
        span = p.span if here else Span(0, 0, 0, 1)
        message = p.message if here else f"{p.file}:{p.span.line + 1}: {p.message}"
        related = [
            types.DiagnosticRelatedInformation(
                types.Location(
                    from_fs_path(os.path.abspath(r.file)) or view.uri,
                    types.Range(
                        types.Position(r.span.line, r.span.column), types.Position(r.span.end_line, r.span.end_column)
                    ),
                ),
                r.message,
            )
            for r in p.related
            if r.file
        ]
        return types.Diagnostic(
            view.span(span),
            message,
            severity=_SEVERITIES.get(p.severity, types.DiagnosticSeverity.Error),
            code=p.code,
            source="cute",
            related_information=related or None,
            data={"fix": p.fix} if p.fix and here else None,
        )
