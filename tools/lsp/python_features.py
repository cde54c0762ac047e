"""Editor features for Python kernels: traced values and names of ``cute``."""

from __future__ import annotations

import re
from collections.abc import Mapping

from lsprotocol import types

from cute_dialect.tools.lsp.analysis_results import Catalogue, Place, ValueInfo
from cute_dialect.tools.lsp.documents import View

__all__ = ["completions", "known_at", "public_at"]

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


def completions(view: View, offset: int, catalogue: Catalogue) -> list[types.CompletionItem]:
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
