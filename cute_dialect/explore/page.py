"""One self-contained HTML page of what was collected and measured: no server, nothing from elsewhere."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from cute_dialect.explore.collect import Collected
from cute_dialect.explore.drawings import Drawings
from cute_dialect.explore.links import Pane
from cute_dialect.explore.measured import Measured

__all__ = ["page", "page_data"]


def page(data: Mapping[str, Any]) -> str:
    """Return the page of the data that :func:`page_data` gives."""
    here = files("cute_dialect.explore")
    parts = {
        "TITLE": html.escape(str(data["title"])),
        "STYLE": (here / "page.css").read_text(encoding="utf-8"),
        # "</script>" in a text would end the element that holds the data.
        "DATA": json.dumps(data, separators=(",", ":"), ensure_ascii=False)
        .replace("</", "<\\/")
        .replace("<!--", "\\u003c!--"),
        "SCRIPT": (here / "page.js").read_text(encoding="utf-8"),
    }
    out: list[str] = []
    rest = (here / "page.html").read_text(encoding="utf-8")
    for name, text in parts.items():
        before, _, rest = rest.partition(f"@{name}@")
        out += [before, text]
    return "".join([*out, rest])


def page_data(title: str, facts: str, made: Collected, drawings: Drawings, measured: Measured) -> dict[str, Any]:
    """Return all that the page shows, as plain data."""
    return {
        "title": title,
        "facts": facts,
        "mlir": made.is_mlir,
        "panes": [_pane(p) for p in made.panes],
        "values": {str(g): [list(v) for v in found] for g, found in drawings.values.items()},
        "named": {str(line): list(value) for line, value in drawings.named.items()},
        "drawings": drawings.pictures,
        "accesses": measured.accesses,
        "races": measured.races,
        "tabs": [t.json() for t in measured.tabs],
        "first": measured.first,
        "start": measured.start,
    }


def _pane(p: Pane) -> dict[str, Any]:
    out: dict[str, Any] = {
        "key": p.key, "title": p.title, "kind": p.kind, "lines": p.lines, "groups": [list(g) for g in p.groups],
        "shown": p.shown, "missing": p.missing,
    }  # fmt: skip
    if p.numbers is not None:
        out["numbers"] = p.numbers
    if p.own is not None:
        out["own"] = [list(g) for g in p.own]
    if p.notes is not None:
        out["notes"] = p.notes
    return out
