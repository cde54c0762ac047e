"""The server of ``cute-lsp``: what an editor asks, answered from the text as the editor has it.

Names are looked up in the text; diagnostics, types and hints come from an analysis of the newest text, in a process of
its own (:mod:`.workers`).  What a stale analysis finds is dropped.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, field
from typing import NamedTuple

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import from_fs_path, to_fs_path
from pygls.workspace import TextDocument

from cute_dialect import __version__
from cute_dialect.tools.lsp.records import Analysis, Problem, Span
from cute_dialect.tools.lsp.workers import Job, Task

__all__ = ["Settings", "make_server"]

_SEVERITIES = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "remark": types.DiagnosticSeverity.Information,
    "note": types.DiagnosticSeverity.Hint,
}


class Settings(NamedTuple):
    """Options of the program.  ``delay``: seconds without a change before a text is checked; ``timeout``: seconds."""

    pipeline: str = "base"
    chip: str = ""
    delay: float = 0.15
    timeout: float = 60.0


@dataclass
class _Open:
    """A document that is open: the newest version of its text and what is known of which version."""

    version: int = 0
    task: asyncio.Task[None] | None = None
    analysis: Analysis = field(default_factory=Analysis)
    analysed: int = -1


class CuteServer(LanguageServer):
    """The server and the state of its documents, by URI."""

    def __init__(self, settings: Settings):
        super().__init__("cute-lsp", __version__)  # pyright: ignore[reportUnknownMemberType]
        self.settings = settings
        self.documents: dict[str, _Open] = {}

    def language(self, document: TextDocument) -> str:
        """Return "mlir" or "python", or nothing for a file of another kind."""
        name = document.filename or document.uri
        if document.language_id == "python" or name.endswith(".py"):
            return "python"
        return "mlir" if document.language_id == "mlir" or name.endswith(".mlir") else ""

    def analysis(self, uri: str) -> Analysis:
        """Return what is known of the text as it is now; nothing while that is being found out."""
        state = self.documents.get(uri)
        return state.analysis if state is not None and state.analysed == state.version else Analysis()

    def changed(self, uri: str) -> None:
        """Check a document soon; a check that runs is stopped."""
        state = self.documents.setdefault(uri, _Open())
        state.version += 1
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
        language = self.language(document)
        text = document.source
        file = to_fs_path(uri) or uri
        if language == "python":
            if "cute_dialect" not in text:
                language = ""
            task = Task("python", file, text, chip=self.settings.chip)
        else:
            task = Task("mlir", file, text, self.settings.pipeline)
        if not language:
            result: Analysis | None = Analysis()
        else:
            job = Job(task)
            try:
                result = await asyncio.to_thread(job.run, self.settings.timeout)
            except asyncio.CancelledError:
                job.stop()
                raise
        if result is None or state.version != version:
            return
        state.analysis, state.analysed = result, version
        self.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(
                uri, [self._diagnostic(document, file, p) for p in result.problems], document.version
            )
        )
        if self.client_capabilities.workspace is not None and self.client_capabilities.workspace.inlay_hint is not None:
            self.workspace_inlay_hint_refresh(None)

    def range(self, document: TextDocument, span: Span) -> types.Range:
        """Return a span in the units of the client."""
        found = types.Range(
            types.Position(span.line, span.column), types.Position(span.end_line, max(span.end_column, span.column))
        )
        return document.position_codec.range_to_client_units(document.lines, found)

    def _diagnostic(self, document: TextDocument, file: str, p: Problem) -> types.Diagnostic:
        here = os.path.abspath(p.file) == os.path.abspath(file) if p.file else True
        span = p.span if here else Span(0, 0, 0, 1)
        message = p.message if here else f"{p.file}:{p.span.line + 1}: {p.message}"
        related = [
            types.DiagnosticRelatedInformation(
                types.Location(
                    from_fs_path(os.path.abspath(r.file)) or document.uri,
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
            self.range(document, span),
            message,
            severity=_SEVERITIES.get(p.severity, types.DiagnosticSeverity.Error),
            code=p.code,
            source="cute",
            related_information=related or None,
            data={"fix": p.fix} if p.fix and here else None,
        )


def make_server(settings: Settings) -> CuteServer:
    """Make the server; ``start_io`` runs it."""
    server = CuteServer(settings)

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def opened(ls: CuteServer, params: types.DidOpenTextDocumentParams) -> None:  # pyright: ignore[reportUnusedFunction]
        ls.changed(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def changed(ls: CuteServer, params: types.DidChangeTextDocumentParams) -> None:  # pyright: ignore[reportUnusedFunction]
        ls.changed(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def saved(ls: CuteServer, params: types.DidSaveTextDocumentParams) -> None:  # pyright: ignore[reportUnusedFunction]
        if params.text_document.uri.endswith(".py"):  # what it imports may be new on disk
            ls.changed(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def closed(ls: CuteServer, params: types.DidCloseTextDocumentParams) -> None:  # pyright: ignore[reportUnusedFunction]
        ls.closed(params.text_document.uri)

    @server.feature(
        types.TEXT_DOCUMENT_CODE_ACTION,
        types.CodeActionOptions(code_action_kinds=[types.CodeActionKind.QuickFix]),
    )
    def actions(ls: CuteServer, params: types.CodeActionParams) -> list[types.CodeAction]:  # pyright: ignore[reportUnusedFunction]
        found: list[types.CodeAction] = []
        for d in params.context.diagnostics:
            fix = d.data.get("fix") if isinstance(d.data, dict) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
            if not isinstance(fix, str):
                continue
            edit = types.WorkspaceEdit({params.text_document.uri: [types.TextEdit(d.range, fix)]})
            found.append(
                types.CodeAction(
                    f"Write {fix}", types.CodeActionKind.QuickFix, diagnostics=[d], is_preferred=True, edit=edit
                )
            )
        return found

    return server
