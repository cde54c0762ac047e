"""Charts of the performance pages: SVG, drawn from the committed results.

    python -m cute_dialect.tools.docs.performance            # writes the tables and the charts
    python -m cute_dialect.tools.docs.performance --check    # exit 1 if one differs from the results

A chart has a row for each group of problems.  A dot is a problem at its ratio: the time of the fastest peer divided
by ours.  A bar spans the 5th to the 95th percentile, and a line marks the median.

>>> svg = chart("Speed compared with torch", [Series("mm", "H200", [0.9, 1.1, 1.3])])
>>> svg.count("<circle"), ">1.100<" in svg
(3, True)
"""

# JSON values are untyped.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from math import log2
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

__all__ = ["AREAS", "CHARTS", "Series", "by_operation", "chart", "draw", "named", "random_problems", "spread"]

AREAS: Mapping[str, tuple[str, ...]] = {
    "GEMM": ("products", "types", "modes"),
    "scaled GEMM": ("scaled",),
    "GEMM with epilogue": ("epilogues",),
    "grouped GEMM": ("grouped",),
    "convolution": ("conv",),
    "attention": ("attention",),
    "rows": ("rows",),
    "element-wise": ("elementwise",),
}
"""Map areas to their groups of ``cute-bench op``."""

LABELS, LEFT, RIGHT, WIDTH = 250, 260, 620, 900
LOWEST, HIGHEST = 1 / 4, 4.0
"""Ratios at the ends of the axis.  Dots outside are drawn at the ends."""
COLUMNS = {"problems": 676, "median": 730, "5th": 784, "least": 838, "faster": 892}
ROW, TOP = 24, 62
STYLE = """\
text{font:12px system-ui,'Segoe UI','DejaVu Sans',sans-serif;fill:#1a1d21}
.t{font-weight:600;font-size:14px}.d{fill:#5a6470}.e{text-anchor:end}.n{text-anchor:middle}
.x{stroke:#c9d0d8;stroke-width:1}.one{stroke:#5a6470;stroke-width:1.4}.r{fill:#f4f6f8}
.H200{fill:#3b6fc4;stroke:#3b6fc4}.H100{fill:#c4701e;stroke:#c4701e}
.b{fill-opacity:.22;stroke:none}.p{fill-opacity:.5;stroke:none}.m{stroke-width:3}
@media (prefers-color-scheme:dark){text{fill:#e6e8eb}.d{fill:#a3acb6}.x{stroke:#3a424c}.one{stroke:#a3acb6}
.r{fill:#1b1f25}.H200{fill:#7aa5ea;stroke:#7aa5ea}.H100{fill:#e09a52;stroke:#e09a52}}"""


class Series(NamedTuple):
    """A row of a chart."""

    label: str
    card: str
    """``H100`` or ``H200``."""
    ratios: Sequence[float]


class Spread(NamedTuple):
    """The distribution of ratios."""

    problems: int
    median: float
    fifth: float
    """5th percentile."""
    least: float
    faster: int
    """Number of ratios of at least 1."""


def spread(ratios: Sequence[float]) -> Spread:
    """Return the distribution of some ratios.

    >>> spread([2.0, 0.5, 1.0])
    Spread(problems=3, median=1.0, fifth=0.5, least=0.5, faster=2)
    """
    found = sorted(ratios)
    return Spread(len(found), median(found), found[len(found) // 20], found[0], sum(x >= 1 for x in found))


def _x(ratio: float) -> float:
    inside = min(max(ratio, LOWEST), HIGHEST)
    return LEFT + (RIGHT - LEFT) * (log2(inside) - log2(LOWEST)) / (log2(HIGHEST) - log2(LOWEST))


def chart(title: str, rows: Sequence[Series]) -> str:
    """Return a chart as SVG."""
    height = TOP + ROW * len(rows) + 24
    bottom = TOP + ROW * len(rows)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}"'
        f' role="img" aria-label="{escape(title)}">',
        f"<style>\n{STYLE}\n</style>",
        f'<text class="t" x="8" y="22">{escape(title)}</text>',
        f'<text class="d e" x="{_x(1) - 8:.1f}" y="46">slower</text>',
        f'<text class="d" x="{_x(1) + 8:.1f}" y="46">faster</text>',
        *(f'<text class="d e" x="{x}" y="46">{name}</text>' for name, x in COLUMNS.items()),
    ]
    for i in range(0, len(rows), 2):
        parts.append(f'<rect class="r" x="0" y="{TOP + ROW * i}" width="{WIDTH}" height="{ROW}"/>')
    for tick in (0.25, 0.5, 0.7, 1.0, 1.4, 2.0, 4.0):
        x = _x(tick)
        kind = "one" if tick == 1 else "x"
        parts.append(f'<line class="{kind}" x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{bottom}"/>')
        parts.append(f'<text class="d n" x="{x:.1f}" y="{bottom + 16}">{tick:g}</text>')
    for i, row in enumerate(rows):
        parts += _row(row, TOP + ROW * i, row.label == rows[i - 1].label if i else False)
    return "\n".join([*parts, "</svg>", ""])


def _row(row: Series, top: int, repeated: bool) -> Iterable[str]:
    middle, base = top + ROW // 2, top + ROW // 2 + 4
    found = sorted(row.ratios)
    low, high = found[len(found) // 20], found[-1 - len(found) // 20]
    if not repeated:
        yield f'<text x="8" y="{base}">{escape(row.label)}</text>'
    yield f'<text class="d e" x="{LABELS}" y="{base}">{row.card}</text>'
    x, width = _x(low), _x(high) - _x(low)
    yield f'<rect class="{row.card} b" x="{x:.1f}" y="{middle - 7}" width="{width:.1f}" height="14"/>'
    for ratio in found:
        yield f'<circle class="{row.card} p" cx="{_x(ratio):.1f}" cy="{middle}" r="2"/>'
    x, of = _x(median(found)), spread(found)
    yield f'<line class="{row.card} m" x1="{x:.1f}" y1="{middle - 9}" x2="{x:.1f}" y2="{middle + 9}"/>'
    shown = (
        str(of.problems),
        f"{of.median:.3f}",
        f"{of.fifth:.3f}",
        f"{of.least:.3f}",
        f"{100 * of.faster / of.problems:.0f} %",
    )
    for text, at in zip(shown, COLUMNS.values()):
        yield f'<text class="e" x="{at}" y="{base}">{text}</text>'


# -------------------------------------------------------------------------------------------------------------- results


def _card(result: Mapping[str, Any]) -> str:
    return result["machine"]["gpu"].removeprefix("NVIDIA ").split()[0]


def _read(results: Path, *patterns: str) -> list[Any]:
    files = [f for pattern in patterns for f in sorted(results.glob(pattern))]
    return [json.loads(f.read_text(encoding="utf-8")) for f in files]


def _grouped(rows: Iterable[tuple[str, str, float]]) -> list[Series]:
    """Group (label, card, ratio) into rows.  NaN, a problem without a peer, is omitted."""
    found: dict[tuple[str, str], list[float]] = {}
    for label, card, ratio in rows:
        if ratio == ratio:
            found.setdefault((label, card), []).append(ratio)
    labels = list(dict.fromkeys(label for label, _ in found))
    return [Series(name, c, found[name, c]) for name in labels for c in ("H200", "H100") if (name, c) in found]


def named(results: Path) -> list[Series]:
    """Return the named problems of ``cute-bench op``, one row per area and card."""
    area = {group: name for name, groups in AREAS.items() for group in groups}
    rows = [
        (area[r["group"]], _card(one), r["ratio"])
        for one in _read(results, "op/*.json", "h100_op.json")
        for r in one["rows"]
    ]
    order = list(AREAS)
    return _grouped(sorted(rows, key=lambda r: order.index(r[0])))


def random_problems(results: Path) -> list[Series]:
    """Return the random problems, one row per group and card."""
    gemms = [("GEMM", _card(one), r["ratio"]) for one in _read(results, "h?00_gemm_random.json") for r in one["rows"]]
    names = {
        "epilogue": "GEMM with epilogue",
        "conv": "convolution",
        "attention": "attention",
        "rows": "rows",
        "host": "host time of a call",
    }
    found = {one["group"]: one for one in _read(results, "random/*.json")}
    rows = [(name, _card(found[g]), r["ratio"]) for g, name in names.items() if g in found for r in found[g]["rows"]]
    return _grouped([*gemms, *rows])


def by_operation(*groups: str) -> Callable[[Path], list[Series]]:
    """Return a reader of the named problems of some groups, one row per operation and card."""

    def rows(results: Path) -> list[Series]:
        return _grouped(
            (r["operation"], _card(one), r["ratio"])
            for one in _read(results, "op/*.json", "h100_op.json") for r in one["rows"] if r["group"] in groups
        )  # fmt: skip

    return rows


def _random_of(group: str) -> Callable[[Path], list[Series]]:
    def rows(results: Path) -> list[Series]:
        found = [
            (r["operation"], _card(one), r["ratio"])
            for one in _read(results, f"random/*_{group}.json")
            for r in one["rows"]
        ]
        return _grouped(sorted(found, key=lambda r: r[0]))

    return rows


def _random_gemms(results: Path) -> list[Series]:
    return _grouped(
        (f"{r['name'].split()[1]}", _card(one), r["ratio"])
        for one in _read(results, "h?00_gemm_random.json")
        for r in one["rows"]
    )


_NAMED, _RANDOM = "Named problems, ratio to the fastest peer: ", "Random problems, ratio to the fastest peer: "
CHARTS: Mapping[str, tuple[str, Callable[[Path], list[Series]]]] = {
    "named": ("Named problems: ratio to the fastest peer", named),
    "random": ("Random problems: ratio to the fastest peer", random_problems),
    "gemm": (_NAMED + "GEMM", by_operation(*AREAS["GEMM"], *AREAS["scaled GEMM"])),
    "gemm_random": ("Random GEMMs: ratio to torch", _random_gemms),
    "epilogue": (_NAMED + "GEMM with epilogue", by_operation("epilogues")),
    "epilogue_random": (_RANDOM + "GEMM with epilogue", _random_of("epilogue")),
    "grouped": (_NAMED + "grouped GEMM", by_operation("grouped")),
    "convolution": (_NAMED + "convolution", by_operation("conv")),
    "convolution_random": (_RANDOM + "convolution", _random_of("conv")),
    "attention": (_NAMED + "attention", by_operation("attention")),
    "attention_random": (_RANDOM + "attention", _random_of("attention")),
    "rows": (_NAMED + "rows", by_operation("rows")),
    "rows_random": (_RANDOM + "rows", _random_of("rows")),
    "elementwise": (_NAMED + "element-wise", by_operation("elementwise")),
    "host": ("Host time of random calls: ratio to torch", _random_of("host")),
}
"""Map charts to their titles and the functions that read their rows."""


def draw(results: Path) -> dict[str, str]:
    """Return the SVG of every chart by name."""
    return {name: chart(title, rows(results)) for name, (title, rows) in CHARTS.items()}
