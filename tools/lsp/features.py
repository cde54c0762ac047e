"""Request handlers of ``cute-lsp``, dispatched by the language of the document."""

# pyright: reportUnusedFunction=false

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import TypeAlias

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams

from cute_dialect.tools.lsp import mlir_features
from cute_dialect.tools.lsp.analysis_results import Catalogue, Hint, Picture, Place, ValueInfo
from cute_dialect.tools.lsp.server import CuteServer, Settings, View

_Positioned: TypeAlias = (
    types.DefinitionParams
    | types.ReferenceParams
    | types.DocumentHighlightParams
    | types.PrepareRenameParams
    | types.RenameParams
)

TEXT_CLIENTS = ("neovim", "vim", "helix", "eglot", "emacs", "kakoune", "kak-lsp", "coc.nvim")
"""Name prefixes of clients that would display an embedded picture as text."""

_TRIGGERS = ("%", "@", "!", "#", "^", ".", "-", '"')


def make_server(settings: Settings) -> CuteServer:
    """Create the server; run it with ``start_io``."""
    server = CuteServer(settings)
    _add_documents(server)
    _add_questions(server)
    _add_names(server)
    return server


def _add_documents(server: CuteServer) -> None:
    @server.feature(types.INITIALIZE)
    def initialize(ls: CuteServer, params: types.InitializeParams) -> None:
        ls.client = params.client_info.name if params.client_info is not None else ""

    @server.feature(types.INITIALIZED)
    async def ready(ls: CuteServer, params: types.InitializedParams) -> None:
        await ls.catalogue()  # Load it before the first request.

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def opened(ls: CuteServer, params: types.DidOpenTextDocumentParams) -> None:
        ls.changed(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def changed(ls: CuteServer, params: types.DidChangeTextDocumentParams) -> None:
        ls.changed(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def saved(ls: CuteServer, params: types.DidSaveTextDocumentParams) -> None:
        if params.text_document.uri.endswith(".py"):  # The modules that it imports may have changed on disk.
            ls.changed(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def closed(ls: CuteServer, params: types.DidCloseTextDocumentParams) -> None:
        ls.closed(params.text_document.uri)

    @server.feature(
        types.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionOptions(code_action_kinds=[types.CodeActionKind.QuickFix])
    )
    def actions(ls: CuteServer, params: types.CodeActionParams) -> list[types.CodeAction]:
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


def _add_questions(server: CuteServer) -> None:
    @server.feature(types.TEXT_DOCUMENT_HOVER)
    async def hover(ls: CuteServer, params: types.HoverParams) -> types.Hover | None:
        language, view = ls.view(params.text_document.uri)
        offset = view.offset(params.position)
        found = None
        if language == "mlir":
            found = await _hover_mlir(ls, view, offset)
        elif language == "python":
            found = await _hover_python(ls, view, offset)
        if found is None or not found[0]:
            return None
        text, start, end = found
        return types.Hover(_content(ls, text), view.range(start, end))

    @server.feature(
        types.TEXT_DOCUMENT_COMPLETION,
        types.CompletionOptions(trigger_characters=list(_TRIGGERS), resolve_provider=True),
    )
    async def completion(ls: CuteServer, params: types.CompletionParams) -> types.CompletionList:
        language, view = ls.view(params.text_document.uri)
        offset = view.offset(params.position)
        items: list[types.CompletionItem] = []
        if language == "mlir":
            known = await ls.analysis(params.text_document.uri, 0)
            items = mlir_features.completions(view, offset, await ls.catalogue(), known)
        elif language == "python":
            items = python_completions(view, offset, await ls.catalogue())
        return types.CompletionList(is_incomplete=False, items=items)

    @server.feature(types.COMPLETION_ITEM_RESOLVE)
    async def resolve(ls: CuteServer, item: types.CompletionItem) -> types.CompletionItem:
        kind, name = _asked(item.data)
        text = await ls.documentation(kind, name) if name else ""
        if text:
            item.documentation = types.MarkupContent(types.MarkupKind.Markdown, text)
        return item

    @server.feature(types.TEXT_DOCUMENT_INLAY_HINT)
    async def hints(ls: CuteServer, params: types.InlayHintParams) -> list[types.InlayHint]:
        found = await ls.analysis(params.text_document.uri)
        _, view = ls.view(params.text_document.uri)
        first, last = params.range.start.line, params.range.end.line
        return [_hint(view, h) for h in found.hints if first <= h.line <= last]


def _add_names(server: CuteServer) -> None:
    def view_of(ls: CuteServer, params: _Positioned) -> tuple[View, int] | None:
        language, view = ls.view(params.text_document.uri)
        return (view, view.offset(params.position)) if language == "mlir" else None

    @server.feature(types.TEXT_DOCUMENT_DEFINITION)
    def definition(ls: CuteServer, params: types.DefinitionParams) -> types.Location | None:
        at = view_of(ls, params)
        return mlir_features.definition(*at) if at is not None else None

    @server.feature(types.TEXT_DOCUMENT_REFERENCES)
    def references(ls: CuteServer, params: types.ReferenceParams) -> list[types.Location]:
        at = view_of(ls, params)
        return mlir_features.references(*at, params.context.include_declaration) if at is not None else []

    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT)
    def highlights(ls: CuteServer, params: types.DocumentHighlightParams) -> list[types.DocumentHighlight]:
        at = view_of(ls, params)
        return mlir_features.highlights(*at) if at is not None else []

    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    def symbols(ls: CuteServer, params: types.DocumentSymbolParams) -> list[types.DocumentSymbol]:
        language, view = ls.view(params.text_document.uri)
        return mlir_features.symbols(view) if language == "mlir" else []

    @server.feature(types.TEXT_DOCUMENT_PREPARE_RENAME)
    def prepare(ls: CuteServer, params: types.PrepareRenameParams) -> types.Range | None:
        at = view_of(ls, params)
        name = at[0].names.at(at[1]) if at is not None else None
        if at is None or name is None or at[0].names.definition(name) is None:
            return None
        return at[0].range(name.start, name.end)

    @server.feature(types.TEXT_DOCUMENT_RENAME, types.RenameOptions(prepare_provider=True))
    def rename(ls: CuteServer, params: types.RenameParams) -> types.WorkspaceEdit | None:
        at = view_of(ls, params)
        if at is None:
            return None
        try:
            return types.WorkspaceEdit({at[0].uri: mlir_features.renamed(*at, params.new_name)})
        except ValueError as e:
            raise JsonRpcInvalidParams(str(e)) from e


# --------------------------------------------------------------------------------------------------------------- hover


async def _hover_mlir(ls: CuteServer, view: View, offset: int) -> tuple[str, int, int] | None:
    """Return the documentation of the subject at an offset in Markdown, and its start and end."""
    catalogue = await ls.catalogue()
    found = mlir_features.subject(view, offset, catalogue)
    if found is None:
        return None
    names = view.names
    if found.kind == "value":
        text = await _value(ls, view, offset)
    elif found.kind in ("alias", "type", "attribute"):
        text = f"```mlir\n{found.name} = {found.text}\n```" if found.kind == "alias" and found.text else ""
        if found.kind != "alias":
            text = await ls.documentation(found.kind, found.name)
        if found.text.startswith("!"):
            text += _shown(ls, await ls.picture(mlir_features.expanded(names, found.text)))
    elif found.kind == "symbol":
        text = f"```mlir\n{found.text}\n```" if found.text else ""
    elif found.kind == "property":
        text = f"`{found.name}`{': ' if found.text else ''}{found.text}, property of `{found.op}`"
    else:
        text = await ls.documentation(found.kind, found.name)
    return text, found.start, found.end


async def _value(ls: CuteServer, view: View, offset: int) -> str:
    """Return the documentation of a value: its type, the picture of its layout, and its defining op."""
    name = view.names.at(offset)
    origin = view.names.definition(name) if name is not None else None
    if name is None or origin is None:
        return ""
    type_text = (await ls.analysis(view.uri)).types.get(view.place(origin.start), "")
    text = f"```mlir\n{name.text}{' : ' if type_text else ''}{type_text}\n```"
    if type_text.startswith("!cute"):
        text += _shown(ls, await ls.picture(type_text))
    op = view.names.op_at(origin.start)
    if op is None or not op.start <= origin.start < op.at:
        return text
    catalogue = await ls.catalogue()
    entry = catalogue.ops.get(mlir_features.full_name(op.name, catalogue))
    line = mlir_features.defined_as(view.names, origin).partition("\n")[0]
    return f"{text}\n\n```mlir\n{line}\n```" + (f"\n\n`{op.name}`: {entry.summary}" if entry is not None else "")


async def _hover_python(ls: CuteServer, view: View, offset: int) -> tuple[str, int, int] | None:
    """Return the documentation of a public name, or the traced value of a name, and its start and end."""
    public = public_at(view, offset, await ls.catalogue())
    if public is not None:
        return await ls.documentation("python", public[0]), public[1], public[2]
    await ls.analysis(view.uri)
    known = known_at(view, offset, ls.known(view.uri))
    if known is None:
        return None
    one, start, end = known
    text = f"```python\n{one.name}: {one.text}\n```"
    if one.drawn:
        text += _shown(ls, await ls.picture(one.drawn))
    return text, start, end


def _shown(ls: CuteServer, picture: Picture) -> str:
    """Return a picture as Markdown for the client."""
    return shown(picture, draws(ls.settings.pictures, ls.client, _takes_markdown(ls)))


def shown(picture: Picture, drawn: bool) -> str:
    """Return a picture as Markdown: the drawing if ``drawn``, and the table.

    >>> shown(Picture("<svg/>", "", ""), True), shown(Picture("<svg/>", "", ""), False)
    ('\\n\\n![layout](data:image/svg+xml;base64,PHN2Zy8+)', '')
    """
    parts: list[str] = []
    if picture.svg and drawn:
        data = base64.b64encode(picture.svg.encode()).decode()
        parts.append(f"![layout](data:image/svg+xml;base64,{data})")
    if picture.table:
        parts.append(f"```text\n{picture.table.rstrip()}\n```")
    if picture.note and drawn:
        parts.append(picture.note)
    return "".join(f"\n\n{p}" for p in parts)


def draws(setting: str, client: str, markdown: bool) -> bool:
    """Return True if a client displays drawings: it accepts Markdown and is not a terminal editor.

    >>> draws("auto", "Visual Studio Code", True), draws("auto", "Neovim", True), draws("always", "Neovim", True)
    (True, False, True)
    """
    if setting != "auto":
        return setting == "always"
    return markdown and not client.lower().startswith(TEXT_CLIENTS)


def _takes_markdown(ls: CuteServer) -> bool:
    capable = ls.client_capabilities.text_document
    hover = capable.hover if capable is not None else None
    return hover is not None and types.MarkupKind.Markdown in (hover.content_format or ())


def _content(ls: CuteServer, text: str) -> types.MarkupContent:
    """Return a text for the client; Markdown markup is removed for clients without Markdown support."""
    if _takes_markdown(ls):
        return types.MarkupContent(types.MarkupKind.Markdown, text)
    plain = re.sub(r"^```.*\n?|\*\*|`|!\[layout\]\([^)]*\)\n*", "", text, flags=re.MULTILINE)
    return types.MarkupContent(types.MarkupKind.PlainText, plain.strip())


def _hint(view: View, h: Hint) -> types.InlayHint:
    return types.InlayHint(
        view.position(Place(h.line, h.column)), h.label, kind=types.InlayHintKind.Type, tooltip=h.whole
    )


def _asked(data: object) -> tuple[str, str]:
    """Return the kind and name sent with a completion, or empty strings for other data."""
    if not isinstance(data, dict):
        return "", ""
    kind, name = data.get("kind"), data.get("name")  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    return (kind, name) if isinstance(kind, str) and isinstance(name, str) else ("", "")


# --------------------------------------------------------------------------------------------------------------- Python


_CHAIN = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_IMPORTED = re.compile(
    r"^\s*(?:import\s+cute_dialect\.lang(?P<inner>(?:\.\w+)*)\s+as\s+(?P<module>\w+)"
    r"|from\s+cute_dialect\s+import\s+lang(?:\s+as\s+(?P<lang>\w+))?"
    r"|from\s+cute_dialect\.lang(?P<home>(?:\.\w+)*)\s+import\s+(?P<names>[^#\n(]+|\([^)]*\)))",
    re.MULTILINE,
)
_DEF = re.compile(r"(?P<indent>[ \t]*)(?:async\s+)?def\s")


def aliases(text: str) -> dict[str, str]:
    """Map the names that a text imports from the language to their names in the catalogue.

    >>> aliases("import cute_dialect.lang as c\\nfrom cute_dialect.lang import arch, copy as put")
    {'c': 'cute', 'arch': 'cute.arch', 'put': 'cute.copy'}
    """
    found: dict[str, str] = {}
    for m in _IMPORTED.finditer(text):
        if m["module"]:
            found[m["module"]] = f"cute{m['inner']}"
        elif m["names"]:
            for one in m["names"].strip("() \n").split(","):
                name, _, other = one.partition(" as ")
                if name.strip().isidentifier():
                    found[other.strip() or name.strip()] = f"cute{m['home'] or ''}.{name.strip()}"
        else:
            found[m["lang"] or "lang"] = "cute"
    return found


def public_at(view: View, offset: int, catalogue: Catalogue) -> tuple[str, int, int] | None:
    """Return the public name at an offset, as in the catalogue, and its start and end."""
    chain = view.word(offset, _CHAIN)
    if chain is None:
        return None
    base = offset - view.place(offset).column
    column = view.place(offset).column
    end = next((i for i in range(column, chain.end()) if view.line_at(offset)[i] == "."), chain.end())
    first, *rest = view.line_at(offset)[chain.start() : end].split(".")
    home = aliases(view.text).get(first)
    if home is None:
        return None
    whole = ".".join([home, *rest])
    if whole not in catalogue.python and whole != "cute":
        return None
    return whole, base + chain.start(), base + end


def known_at(view: View, offset: int, known: Mapping[Place, ValueInfo]) -> tuple[ValueInfo, int, int] | None:
    """Return the most recent binding of the name at an offset, and the start and end of the name.

    Bindings above the offset in the same function and in enclosing functions are considered.
    """
    word = view.word(offset, re.compile(r"[^\W\d]\w*"))
    if word is None:
        return None
    base = offset - view.place(offset).column
    if word.start() and view.line_at(offset)[word.start() - 1] == ".":
        return None
    here = Place(view.place(offset).line, word.start())
    candidates = sorted(p for p, k in known.items() if k.name == word[0] and p <= here)
    for first in [*_functions(view, here.line), 0]:
        inside = [p for p in candidates if p.line >= first]
        if inside:
            return known[inside[-1]], base + word.start(), base + word.end()
    return None


def _functions(view: View, line: int) -> list[int]:
    """Return the first lines of the functions around a line, innermost first."""
    found: list[int] = []
    text = view.lines[line]
    indent = len(text) - len(text.lstrip()) if text.strip() else 1 << 20
    if _DEF.match(text):
        found.append(line)
    for n in range(line - 1, -1, -1):
        start = _DEF.match(view.lines[n])
        if start is not None and len(start["indent"]) < indent:
            found.append(n)
            indent = len(start["indent"])
    return found


def python_completions(view: View, offset: int, catalogue: Catalogue) -> list[types.CompletionItem]:
    """Return the public names after ``cute.`` or one of its modules."""
    before = view.line_before(offset)
    typed = re.search(r"(?<![\w.])([^\W\d]\w*(?:\.\w+)*)\.(\w*)$", before)
    if typed is None or "#" in before:
        return []
    first, _, rest = typed[1].partition(".")
    home = aliases(view.text).get(first)
    if home is None:
        return []
    prefix = f"{home}.{rest}." if rest else f"{home}."
    where = view.range(offset - len(typed[2]), offset)
    found: list[types.CompletionItem] = []
    for entry in catalogue.python.values():
        name = entry.name.removeprefix(prefix)
        if entry.name.startswith(prefix) and "." not in name:
            found.append(
                types.CompletionItem(
                    name,
                    kind=_kind(entry.name, entry.signature, catalogue),
                    detail=f"{name}{entry.signature}" if entry.signature else entry.summary or None,
                    text_edit=types.TextEdit(where, name),
                    data={"kind": "python", "name": entry.name},
                )
            )
    return found


def _kind(name: str, signature: str, catalogue: Catalogue) -> types.CompletionItemKind:
    last = name.rpartition(".")[2]
    if any(other.startswith(f"{name}.") for other in catalogue.python):
        return types.CompletionItemKind.Module
    if last[:1].isupper():
        return types.CompletionItemKind.Constant if last.isupper() and not signature else types.CompletionItemKind.Class
    return types.CompletionItemKind.Function
