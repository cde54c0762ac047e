"""Self-contained HTML page of the collected and measured data, without a server or external resources."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from cute_dialect.explore.collect import Collected
from cute_dialect.explore.drawings import Drawings
from cute_dialect.explore.links import Pane, Source
from cute_dialect.explore.tabs import Measured, Part, Tab, Table


def page(data: Mapping[str, Any]) -> str:
    """Render the data of :func:`page_data` as an HTML page."""
    here = files("cute_dialect.explore")
    parts = {
        "TITLE": html.escape(str(data["title"])),
        "STYLE": (here / "page.css").read_text(encoding="utf-8"),
        # "</script>" in a text would end the element that contains the data.
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
    """Return the contents of the page as plain data."""
    return {
        "title": title,
        "facts": facts,
        "mlir": made.is_mlir,
        "panes": [_pane(p) for p in made.panes],
        "values": drawings.values,
        "named": drawings.named,
        "drawings": drawings.pictures,
        "marks": [m._asdict() for m in measured.marks],
        "tabs": [_tab(t) for t in measured.tabs],
        "first": measured.first,
        "start": measured.start,
    }


def _pane(p: Pane) -> dict[str, Any]:
    out: dict[str, Any] = {
        "key": p.key, "title": p.title, "kind": p.kind, "lines": p.lines, "groups": p.groups, "shown": p.shown,
        "missing": p.missing,
    }  # fmt: skip
    if isinstance(p, Source):
        out |= {"numbers": [number or None for _, number in p.places], "own": p.own}
    if p.notes:
        out["notes"] = p.notes
    return out


def _tab(t: Tab) -> dict[str, Any]:
    return {"key": t.key, "title": t.title, "says": t.says, "count": t.count, "parts": [_part(p) for p in t.parts]}


def _part(p: Part) -> dict[str, Any]:
    if isinstance(p, Table):
        return {"columns": [c._asdict() for c in p.columns], "rows": [r._asdict() for r in p.rows]}
    return p._asdict()
