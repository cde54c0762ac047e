"""Editor features for MLIR text, which need not parse: hover, navigation, rename, completion."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from lsprotocol import types

from cute_dialect.tools.lsp.analysis_results import Analysis, Catalogue, Entry, Place
from cute_dialect.tools.lsp.mlir_text import MlirText, Name, Op
from cute_dialect.tools.lsp.server import View

_RUN = re.compile(r"\s*//\s*RUN:")
_FLAG = re.compile(r"-{0,2}(?P<name>[a-zA-Z][\w-]*)")
_DOTTED = re.compile(r"[!#](?P<name>[a-zA-Z_]\w*(?:\.[\w$]+)+)")
_ALIAS = re.compile(r"[!#][a-zA-Z_][a-zA-Z0-9_$]*(?![a-zA-Z0-9_$.])")
_LONGEST = 20_000
"""Maximum length of a type, in characters; longer types are truncated."""

_WORD = re.compile(r"[a-zA-Z_][\w$.]*")
_KINDS = {  # Kinds of ops; other ops define functions.
    "gpu.module": types.SymbolKind.Module,
    "builtin.module": types.SymbolKind.Module,
    "module": types.SymbolKind.Module,
    "memref.global": types.SymbolKind.Variable,
    "llvm.mlir.global": types.SymbolKind.Variable,
}
_SPELLED = {
    "value": re.compile(r"%(?:[0-9]+|[a-zA-Z$._-][a-zA-Z0-9$._-]*)"),
    "symbol": re.compile(r"@[a-zA-Z_][a-zA-Z0-9_$.]*"),
    "alias": re.compile(r"[!#][a-zA-Z_][a-zA-Z0-9_$]*"),
    "block": re.compile(r"\^[a-zA-Z0-9$._-]+"),
}


class Subject(NamedTuple):
    """The subject at a location.  ``kind``: "flag", "type", "attribute", "op", "property", "value", "symbol", "alias".

    ``name`` is the name in the catalogue, ``text`` the definition in the document, and ``op`` the owner of a property.
    """

    kind: str
    name: str
    start: int
    end: int
    text: str = ""
    op: str = ""


def subject(view: View, offset: int, catalogue: Catalogue) -> Subject | None:
    line, base = view.line_at(offset), offset - view.place(offset).column
    if _RUN.match(line):
        word = view.word(offset, _FLAG)
        if word is None or word["name"] not in catalogue.flags:
            return None
        return Subject("flag", word["name"], base + word.start(), base + word.end())
    dotted = view.word(offset, _DOTTED)
    if dotted is not None and not _in_comment(view, offset):
        start = base + dotted.start()
        end = body_end(view.text, base + dotted.end())
        kind = "type" if view.text[start] == "!" else "attribute"
        return Subject(kind, dotted["name"], start, base + dotted.end(), view.text[start:end])
    name = view.names.at(offset)
    if name is not None and name.kind != "block":
        found = view.names.definition(name)
        return Subject(name.kind, name.text, name.start, name.end, defined_as(view.names, found) if found else "")
    op = view.names.op_at(offset)
    word = view.word(offset, _WORD)
    if op is None or word is None or _in_comment(view, offset):
        return None
    start, end = base + word.start(), base + word.end()
    if op.at <= start + 1 and end <= op.at + len(op.name) + 2:
        return Subject("op", full_name(op.name, catalogue), start, end)
    what = dict(_properties(op, catalogue)).get(word[0])
    if what is None:
        return None
    return Subject("property", word[0], start, end, what, full_name(op.name, catalogue))


def full_name(name: str, catalogue: Catalogue) -> str:
    """Return the qualified name of an op; the dialect may be omitted in the text (``return``)."""
    found = (n for n in (name, f"func.{name}", f"builtin.{name}") if n in catalogue.ops)
    return next(found, name)


def _properties(op: Op, catalogue: Catalogue) -> Iterable[tuple[str, str]]:
    entry = catalogue.ops.get(full_name(op.name, catalogue))
    return entry.properties if entry is not None else ()


def _in_comment(view: View, offset: int) -> bool:
    at = view.line_before(offset).find("//")
    return at >= 0 and not _in_string(view.line_before(offset)[:at])


def _in_string(before: str) -> bool:
    return len(re.findall(r'(?<!\\)"', before)) % 2 == 1


def body_end(text: str, at: int) -> int:
    """Return the end of the ``<…>`` that starts at an offset, or the offset if there is none.

    >>> body_end('!cute.layout<"4:1"> x', 12)
    19
    """
    if text[at : at + 1] != "<":
        return at
    depth, i = 0, at
    while i < min(len(text), at + _LONGEST):
        c = text[i]
        if c == '"':
            closing = text.find('"', i + 1)
            i = closing if closing >= 0 else len(text)
        elif c == "<":
            depth += 1
        elif c == ">" and text[i - 1] != "-":
            depth -= 1
            if not depth:
                return i + 1
        elif c == "\n" and depth == 0:
            break
        i += 1
    return at


def defined_as(names: MlirText, name: Name) -> str:
    """Return the text of a definition: the value of an alias, or else the header of the op."""
    text = names.text
    if name.kind == "alias":
        end = text.find("\n", name.end)
        return text[name.end : end if end >= 0 else len(text)].partition("=")[2].strip()
    op = names.op_at(name.start)
    if op is None:
        return ""
    head = text[op.start : op.end]
    if name.kind == "symbol" or not op.start <= name.start < op.at:
        head = head.partition("{\n")[0].partition("{ ")[0]
    return head.strip()


def expanded(names: MlirText, text: str, depth: int = 8) -> str:
    """Return the text of a type with its aliases expanded.

    >>> expanded(MlirText('!a = !cute.i32<divby 4>\\n!b = tuple<!a>'), "!b")
    'tuple<!cute.i32<divby 4>>'
    """

    def meant(m: re.Match[str]) -> str:
        found = next((n for n in names.definitions("alias") if n.text == m[0]), None)
        return expanded(names, defined_as(names, found), depth - 1) if found is not None else m[0]

    return _ALIAS.sub(meant, text) if depth and len(text) < _LONGEST else text


# ---------------------------------------------------------------------------------------------------- names in the text


def definition(view: View, offset: int) -> types.Location | None:
    """Return the location of the definition of the name at an offset."""
    name = view.names.at(offset)
    found = view.names.definition(name) if name is not None else None
    return types.Location(view.uri, view.range(found.start, found.end)) if found is not None else None


def references(view: View, offset: int, with_definition: bool) -> list[types.Location]:
    """Return the locations of all uses of the name at an offset."""
    found = view.names.references(offset)
    return [types.Location(view.uri, view.range(n.start, n.end)) for n in found if with_definition or not n.definition]


def highlights(view: View, offset: int) -> list[types.DocumentHighlight]:
    """Return the occurrences of the name at an offset as highlights; definitions are marked as writes."""
    kinds = types.DocumentHighlightKind
    return [
        types.DocumentHighlight(view.range(n.start, n.end), kinds.Write if n.definition else kinds.Read)
        for n in view.names.references(offset)
    ]


def renamed(view: View, offset: int, new: str) -> list[types.TextEdit]:
    """Return the edits that rename the name at an offset; ``new`` may omit the sigil.

    Raises:
        ValueError: there is no name at the offset, or ``new`` is invalid or already in use.
    """
    name = view.names.at(offset)
    if name is None or view.names.definition(name) is None:
        raise ValueError("no name that is defined in this text is at the cursor")
    whole = new if new[:1] == name.text[0] else name.text[0] + new
    if not _SPELLED[name.kind].fullmatch(whole):
        raise ValueError(f"expected a name such as {name.text}, got {new!r}")
    found = view.names.references(offset)
    if whole != name.text and any(view.names.definition(n._replace(text=whole, definition=False)) for n in found):
        raise ValueError(f"{whole} is already in use")
    return [types.TextEdit(view.range(n.start, n.end), whole) for n in found]


def symbols(view: View) -> list[types.DocumentSymbol]:
    """Return the functions, modules and other symbols of a text as a tree."""
    top: list[types.DocumentSymbol] = []
    around: list[tuple[int, list[types.DocumentSymbol]]] = []
    for name in view.names.definitions("symbol"):
        op = view.names.op_at(name.start)
        if op is None:
            continue
        while around and around[-1][0] <= op.start:
            around.pop()
        inside: list[types.DocumentSymbol] = []
        made = types.DocumentSymbol(
            name.text,
            _KINDS.get(op.name, types.SymbolKind.Function),
            view.range(op.start, op.end),
            view.range(name.start, name.end),
            detail=op.name,
            children=inside,
        )
        (around[-1][1] if around else top).append(made)
        around.append((op.end, inside))
    return top


# ----------------------------------------------------------------------------------------------------------- completion


def completions(view: View, offset: int, catalogue: Catalogue, analysis: Analysis) -> list[types.CompletionItem]:
    before = view.line_before(offset)
    return [
        types.CompletionItem(
            item.label,
            kind=item.kind,
            detail=item.detail or None,
            text_edit=types.TextEdit(view.range(offset - item.replaced, offset), item.label),
            filter_text=item.label,
            sort_text=item.order or None,
            data=item.data,
        )
        for item in _items(view, before, offset, catalogue, analysis)
    ]


class _Item(NamedTuple):
    """A completion; ``replaced`` is the number of characters before the offset that it replaces."""

    label: str
    kind: types.CompletionItemKind
    replaced: int
    detail: str = ""
    data: dict[str, str] | None = None
    order: str = ""


def _items(view: View, before: str, offset: int, catalogue: Catalogue, analysis: Analysis) -> Iterator[_Item]:
    kinds = types.CompletionItemKind
    if _RUN.match(before):
        flag = re.search(r"(?<![\w-])--?([\w-]*)$", before)
        if flag is not None:
            yield from _entries("flag", catalogue.flags.values(), kinds.Property, len(flag[0]), "--")
        return
    at = before.find("//")
    if at >= 0 and not _in_string(before[:at]):
        return
    generic = re.search(r'(?:^|[={}])\s*"([\w.$]*)$', before)
    if _in_string(before):
        if generic is not None:
            yield from _ops(generic[1], catalogue)
        return
    marked = re.search(r"[%@!#^][\w$.-]*$", before)
    if marked is None:
        yield from _words(view, before, offset, catalogue)
        return
    word = marked[0]
    if word[0] == "%":
        for i, name in enumerate(_once(view.names.values_at(offset - len(word)))):
            type_text = analysis.types.get(view.place(name.start), "")
            yield _Item(name.text, kinds.Variable, len(word), type_text, order=f"{i:05}")
    elif word[0] == "@":
        for name in _once(view.names.definitions("symbol")):
            op = view.names.op_at(name.start)
            yield _Item(name.text, kinds.Function, len(word), op.name if op is not None else "")
    elif word[0] == "^":
        scopes = set(view.names.visible(view.names.scope_at(offset)))
        for name in _once(n for n in view.names.definitions("block") if n.scope in scopes):
            yield _Item(name.text, kinds.Reference, len(word))
    else:
        for name in _once(n for n in view.names.definitions("alias") if n.text[0] == word[0]):
            yield _Item(name.text, kinds.TypeParameter, len(word), defined_as(view.names, name)[:80])
        kind, known = ("type", catalogue.types) if word[0] == "!" else ("attribute", catalogue.attributes)
        yield from _entries(kind, known.values(), kinds.Class, len(word), word[0])


def _once(names: Iterable[Name]) -> list[Name]:
    """Return the names with duplicate texts removed."""
    return list({n.text: n for n in reversed(list(names))}.values())[::-1]


def _entries(
    kind: str, entries: Iterable[Entry], shown: types.CompletionItemKind, replaced: int, mark: str = ""
) -> Iterator[_Item]:
    for e in entries:
        yield _Item(f"{mark}{e.name}", shown, replaced, e.summary, {"kind": kind, "name": e.name})


def _words(view: View, before: str, offset: int, catalogue: Catalogue) -> Iterator[_Item]:
    """Yield the properties of an op inside its braces, and ops at the start of a statement."""
    word = re.search(r"[a-zA-Z_][\w$.]*$", before)
    typed = word[0] if word is not None else ""
    rest = before[: len(before) - len(typed)].rstrip()
    op = view.names.op_at(offset - len(typed) - 1) if offset > len(typed) else None
    opened = rest.rfind("{")
    if opened > rest.rfind("}") and op is not None and rest[-1] in "{," and view.place(op.at) >= _line(view, offset):
        for name, what in _properties(op, catalogue):
            data = {"kind": "op", "name": full_name(op.name, catalogue)}
            yield _Item(name, types.CompletionItemKind.Property, len(typed), what, data, "0")
        if rest[-1] == ",":
            return
    if not rest or rest[-1] in "={}":
        yield from _ops(typed, catalogue)


def _line(view: View, offset: int) -> Place:
    return Place(view.place(offset).line, 0)


def _ops(typed: str, catalogue: Catalogue) -> Iterator[_Item]:
    """Yield the ops of the dialect being typed; before a dialect, the ops of this package and all dialects."""
    dialect, dot, _ = typed.partition(".")
    if dot:
        wanted = (e for e in catalogue.ops.values() if e.name.startswith(f"{dialect}."))
        yield from _entries("op", wanted, types.CompletionItemKind.Function, len(typed))
        return
    ours = (e for e in catalogue.ops.values() if e.name.startswith("cute"))
    yield from _entries("op", ours, types.CompletionItemKind.Function, len(typed))
    for name in sorted({e.partition(".")[0] for e in catalogue.ops}):
        yield _Item(name, types.CompletionItemKind.Module, len(typed), "a dialect")
