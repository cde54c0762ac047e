"""Findings of ``cute-check`` and their output as text, JSON and SARIF."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import NamedTuple


class Related(NamedTuple):
    """A related location of a finding, or a note without a location (line 0)."""

    message: str
    file: str = ""
    line: int = 0
    col: int = 0


class Finding(NamedTuple):
    """A diagnostic.  Lines and columns count from 1, 0 means unknown.  ``text`` is the printed form."""

    severity: str
    code: str
    message: str
    file: str
    line: int
    col: int
    end_line: int
    end_col: int
    related: tuple[Related, ...]
    hint: str
    text: str


def as_text(found: Sequence[Finding]) -> str:
    return "".join([f.text if f.text.endswith("\n") else f"{f.text}\n" for f in found])


def as_json(found: Sequence[Finding]) -> str:
    """Return a JSON list; paths are as given on the command line."""
    rows = [{**f._asdict(), "related": [r._asdict() for r in f.related]} for f in found]
    return json.dumps(rows, indent=2) + "\n"


_LEVELS = {"error": "error", "warning": "warning", "remark": "note", "note": "note"}


def as_sarif(found: Sequence[Finding]) -> str:
    """Return a SARIF 2.1.0 log (OASIS Standard); paths inside the current folder are relative."""
    from cute_dialect import __version__  # late: start-up

    rules = sorted({f.code for f in found})
    driver = {
        "name": "cute-check",
        "version": __version__,
        "rules": [{"id": code, "shortDescription": {"text": f"error {code} of the language"}} for code in rules],
    }
    results = [
        {
            "ruleId": f.code,
            "ruleIndex": rules.index(f.code),
            "level": _LEVELS[f.severity],
            "message": {"text": f.message + (f"\nhint: {f.hint}" if f.hint else "")},
            "locations": [_location(f.file, f.line, f.col, f.end_line, f.end_col)],
            "relatedLocations": [
                {**_location(r.file, r.line, r.col), "message": {"text": r.message}} for r in f.related if r.line
            ],
        }
        for f in found
    ]
    log = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}],
    }
    return json.dumps(log, indent=2) + "\n"


def _location(file: str, line: int, col: int, end_line: int = 0, end_col: int = 0) -> dict[str, object]:
    inside = os.path.relpath(file)
    uri = inside if not inside.startswith(os.pardir) else os.path.abspath(file)
    region = {"startLine": line, "startColumn": col, "endLine": end_line, "endColumn": end_col}
    known = {k: v for k, v in region.items() if v}
    place: dict[str, object] = {"artifactLocation": {"uri": uri.replace(os.sep, "/")}}
    if line:
        place["region"] = known
    return {"physicalLocation": place}
