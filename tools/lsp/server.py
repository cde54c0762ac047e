"""The state of ``cute-lsp``: documents, what is known of them, and what has been asked of workers.

Diagnostics, types and hints come from an analysis of the newest text, in a process of its own (:mod:`.workers`).  What
a stale analysis finds is dropped.  :mod:`.features` answers what an editor asks.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, TypeVar

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol
from pygls.uris import from_fs_path, to_fs_path
from pygls.workspace import TextDocument

from cute_dialect import __version__
from cute_dialect.tools.lsp import workers
from cute_dialect.tools.lsp.analysis_results import Analysis, Catalogue, Known, Picture, Place, Problem, Span
from cute_dialect.tools.lsp.documents import View
from cute_dialect.tools.lsp.workers import Job, Task

__all__ = ["CuteServer", "Settings"]

T = TypeVar("T")

PATIENCE = 5.0
"""Seconds that a question about types waits for the analysis of the newest text."""

MOST_KEPT = 512
"""Pictures and documentation that are kept."""

LONG = 30_000
"""Characters of a text of MLIR that is first read alone, so that types do not wait for what passes say."""

_SEVERITIES = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "remark": types.DiagnosticSeverity.Information,
    "note": types.DiagnosticSeverity.Hint,
}


class Settings(NamedTuple):
    """Options of the program.  ``delay``: seconds without a change before a text is checked; ``timeout``: seconds;
    ``pictures``: "always", "never", or "auto", for clients that are not known to show text alone.
    """

    pipeline: str = "base"
    chip: str = ""
    delay: float = 0.15
    timeout: float = 60.0
    pictures: str = "auto"


@dataclass
class _Open:
    """A document that is open: the newest version of its text and what is known of which version."""

    version: int = 0
    task: asyncio.Task[None] | None = None
    analysis: Analysis = field(default_factory=Analysis)
    analysed: int = -1
    news: asyncio.Event = field(default_factory=asyncio.Event)
    """Something was found out about the newest version."""
    known: dict[Place, Known] = field(default_factory=dict[Place, Known])
    """Of Python: what names were in the newest version that could be traced."""
    view: View | None = None
    viewed: int = -1


class _Protocol(LanguageServerProtocol):
    """pygls' protocol, which also answers a request whose parameters cannot be read, with an error."""

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
    """The server and the state of its documents, by URI."""

    def __init__(self, settings: Settings):
        super().__init__("cute-lsp", __version__, protocol_cls=_Protocol)  # pyright: ignore[reportUnknownMemberType]
        self.settings = settings
        self.documents: dict[str, _Open] = {}
        self._kept: dict[object, asyncio.Task[Any]] = {}
        self.client = ""
        """The name of the client."""

    def language(self, document: TextDocument) -> str:
        """Return "mlir" or "python", or nothing for a file of another kind."""
        name = document.filename or document.uri
        if document.language_id == "python" or name.endswith(".py"):
            return "python" if "cute_dialect" in document.source else ""
        return "mlir" if document.language_id == "mlir" or name.endswith(".mlir") else ""

    def view(self, uri: str) -> tuple[str, View]:
        """Return the language of a document and its text as it is now; of one that is not open, nothing."""
        state = self.documents.get(uri)
        if state is None:
            return "", View(TextDocument(uri, ""))
        document = self.workspace.get_text_document(uri)
        if state.view is None or state.viewed != state.version:
            state.view, state.viewed = View(document), state.version
        return self.language(document), state.view

    async def analysis(self, uri: str, seconds: float = PATIENCE) -> Analysis:
        """Return what is known of the text as it is now; nothing if that takes longer than that."""
        state = self.documents.get(uri)
        if state is None:
            return Analysis()
        version = state.version
        if state.analysed != version and seconds > 0:
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(state.news.wait(), seconds)
        return state.analysis if state.analysed == version == state.version else Analysis()

    def known(self, uri: str) -> dict[Place, Known]:
        """Return what the names of a text of Python were when it could last be traced."""
        state = self.documents.get(uri)
        return state.known if state is not None else {}

    # -------------------------------------------------------------------------------------------------- work elsewhere

    async def catalogue(self) -> Catalogue:
        """Return all that can be named; collected once."""
        found = await self._once("catalogue", workers.catalogue, workers.no_catalogue)
        if not found.ops:
            self._kept.pop("catalogue", None)  # the next one who asks tries again
        return found

    async def picture(self, drawn: str) -> Picture:
        """Return a type or a layout as a picture."""
        return await self._once(("picture", drawn), partial(workers.picture, drawn), workers.no_picture)

    async def documentation(self, kind: str, name: str) -> str:
        """Return what is known of something of the catalogue in Markdown."""
        return await self._once((kind, name), partial(workers.documentation, kind, name), workers.no_documentation)

    async def _once(self, key: object, work: Callable[[], T], failed: Callable[[str], T]) -> T:
        """Do a piece of work in a process of its own, unless it has been done or is under way."""
        task: asyncio.Task[T | None] | None = self._kept.get(key)
        if task is None:
            while len(self._kept) >= MOST_KEPT:
                self._kept.pop(next(k for k in self._kept if k != "catalogue"))
            task = asyncio.ensure_future(asyncio.to_thread(Job(work, failed).run, self.settings.timeout))
            self._kept[key] = task
        found = await asyncio.shield(task)
        return failed("it was stopped") if found is None else found

    # ----------------------------------------------------------------------------------------------------- diagnostics

    def changed(self, uri: str) -> None:
        """Check a document soon; a check that runs is stopped."""
        state = self.documents.setdefault(uri, _Open())
        state.version += 1
        state.news.clear()
        if state.task is not None:
            state.task.cancel()
        state.task = asyncio.ensure_future(self._check(uri, state, state.version))

    def closed(self, uri: str) -> None:
        """Forget a document."""
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
        """Return what a worker finds out; it ends when this is cancelled."""
        job = Job(partial(workers.analyse, task), workers.told)
        try:
            return await asyncio.to_thread(job.run, self.settings.timeout)
        except asyncio.CancelledError:
            job.stop()
            raise

    @staticmethod
    def _learn(state: _Open, version: int, result: Analysis | None) -> bool:
        """Note what was found out, if that is about the newest version."""
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
