"""Tables and charts of the performance pages, generated from the committed results.

    python -m cute_dialect.tools.docs.performance            # rewrites the tables and the charts
    python -m cute_dialect.tools.docs.performance --check    # exit 1 if one differs from the results

The pages are ``docs/performance.md`` and ``docs/performance/*.md``.  A table stands between ``<!-- NAME -->`` and
``<!-- /NAME -->``; the text around it is written by hand.  The charts are ``docs/pictures/performance/*.svg``.  The
results are in ``test/bench/results``:

=========================================================  ============================================================
``h200.json``                                              ``cute-bench all``
``h200_profile.json``, ``h200_op_profile.json``            ``python -m cute_dialect.tools.bench.profile``, ``--cases``
``h100_energy.json``                                       ``cute-bench energy``
``h200_accuracy.json``                                     ``cute-bench accuracy``
``h100_prologue.json``                                     ``cute-bench prologue``
``h200_gemm_random.json``, ``h100_gemm_random.json``       ``cute-bench gemm --random``
``op/h200_GROUP.json``, ``h100_op.json``                   ``cute-bench op``, one group; all groups
``random/CARD_GROUP.json``                                 ``cute-bench op --random GROUP``
=========================================================  ============================================================
"""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from math import log2
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from cute_dialect.tools.bench.runner import geometric_mean, quantiles
from cute_dialect.tools.cute_bench import RANDOM_GROUPS
from cute_dialect.tools.docs import write_or_check

# --------------------------------------------------------------------------------------------------------------- charts


# JSON values are untyped.


AREAS: Mapping[str, tuple[str, ...]] = {
    "GEMM": ("products", "types", "modes"),
    "scaled GEMM": ("scaled",),
    "GEMM with epilogue": ("epilogues",),
    "grouped GEMM": ("grouped",),
    "packed weights": ("mixed",),
    "convolution": ("conv",),
    "attention": ("attention",),
    "attention backward": ("attention_backward",),
    "decoding": ("decode",),
    "rows": ("rows",),
    "element-wise": ("elementwise",),
    "optimizers": ("optimizers",),
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
        "decode": "decoding",
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


def _random_of(*groups: str) -> Callable[[Path], list[Series]]:
    def rows(results: Path) -> list[Series]:
        found = [
            (r["operation"], _card(one), r["ratio"])
            for one in _read(results, *[f"random/*_{group}.json" for group in groups])
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
    "attention_backward": (_NAMED + "gradients of attention, decoding", by_operation("attention_backward", "decode")),
    "attention_random": (_RANDOM + "attention", _random_of("attention", "decode")),
    "rows": (_NAMED + "rows", by_operation("rows")),
    "rows_random": (_RANDOM + "rows", _random_of("rows")),
    "elementwise": (_NAMED + "element-wise", by_operation("elementwise")),
    "host": ("Host time of random calls: ratio to torch", _random_of("host")),
}
"""Map charts to their titles and the functions that read their rows."""


def draw(results: Path) -> dict[str, str]:
    """Return the SVG of every chart by name."""
    return {name: chart(title, rows(results)) for name, (title, rows) in CHARTS.items()}


# --------------------------------------------------------------------------------------------------------------- tables


# JSON values are untyped.


Row = Mapping[str, Any]
THEIRS = "torch's"
LARGE = ("2048x2048x2048", "4096x4096x4096", "8192x8192x8192", "16384x8192x8192", "8192x28672x4096", "4096x4096x14336")


def render(text: str, results: Path) -> str:
    """Return ``text`` with regenerated tables.  Raises ``ValueError`` for an unknown table."""

    def table(found: re.Match[str]) -> str:
        name = found.group(1)
        if name in SUMMARIES:
            return f"<!-- {name} -->\n" + "\n".join(SUMMARIES[name](results)) + f"\n<!-- /{name} -->"
        if name not in TABLES:
            raise ValueError(f"unknown table {name!r}; the tables are {', '.join(sorted({*TABLES, *SUMMARIES}))}")
        file, make = TABLES[name]
        files = [f for pattern in file.split() for f in sorted(results.glob(pattern))]
        data = {f.stem: json.loads(f.read_text(encoding="utf-8")) for f in files}
        if not data:
            raise ValueError(f"table {name!r}: results {results / file} do not exist")
        data = data if set(file) & {"*", "?"} else next(iter(data.values()))
        return f"<!-- {name} -->\n" + "\n".join(make(data)) + f"\n<!-- /{name} -->"

    return re.sub(r"<!-- (\w+) -->\n.*?<!-- /\1 -->", table, text, flags=re.S)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(head)} |", "|" + "---|" * len(head), *(f"| {' | '.join(row)} |" for row in rows)]


def _number(x: float) -> str:
    return f"{x:.3f}" if x < 10 else f"{x:.1f}" if x < 1000 else f"{x:.0f}"


def _pair(row: Row) -> str:
    return f"{_number(row['ours'])} / {_number(row['peer'])} ({row['ratio']:.3f})"


def _gemm(data: Row) -> list[str]:
    found = {r["name"]: r for r in data["results"]}
    columns = [(e, d) for e in ("f16", "bf16") for d in ("normal", "int")]
    rows = [
        [shape, *(_pair(found[f"gemm {e} kk {shape} {d}"]) for e, d in columns)] for shape in (*LARGE, "128x8192x8192")
    ]
    means = [geometric_mean([found[f"gemm {e} kk {s} {d}"]["ratio"] for s in LARGE]) for e, d in columns]
    rows.append(["geometric mean of the six large", *(f"**{x:.3f}**" for x in means)])
    return _table(("M x N x K", "f16 normal", "f16 int", "bf16 normal", "bf16 int"), rows)


def _gemm_other(data: Row) -> list[str]:
    names = [
        r
        for r in data["results"]
        if re.match(r"gemm (f16 (?!kk)|f8|tf32)", r["name"]) or r["name"].startswith("gemm f16 gelu")
    ]
    return _table(("other", "ours / peer (ratio)"), ((r["name"].removeprefix("gemm "), _pair(r)) for r in names))


def _chosen(data: Row, names: Callable[[str], object], head: Sequence[str]) -> list[str]:
    rows = (
        (r["name"], _number(r["ours"]), _number(r["peer"]), f"{r['ratio']:.3f}")
        for r in data["results"]
        if names(r["name"])
    )
    return _table(head, rows)


def _gemm_mma(data: Row) -> list[str]:
    def wanted(name: str) -> object:
        if name.startswith("sgemm"):
            return "4096" in name or "naive" in name or "coalesced" in name or "pipelined 8192" in name
        return re.match(r"gemm_sm80 f16-128x128x32-3-kk (2048|4096|4095)|gemm_sm80 f16-128x256x32-4-kk 4095", name)

    return _chosen(data, wanted, ("kernel", "TFLOP/s", "cuBLAS", "ratio"))


def _memory(data: Row) -> list[str]:
    def wanted(name: str) -> object:
        if name.startswith("add"):
            return "16384" in name and ("stream" in name or "f32" in name)
        return name.startswith("transpose") and name.endswith("16384²") and "-2" in name

    return _chosen(data, wanted, ("kernel", "TB/s", "torch", "ratio"))


def _memory_rows(data: Row) -> list[str]:
    return _chosen(
        data, lambda name: re.match(r"(sum|softmax|rmsnorm|layernorm) ", name), ("kernel", "TB/s", "torch", "ratio")
    )


def _steady(data: Row) -> list[str]:
    head = ("launched back to back", "W", "SM MHz", "TFLOP/s")
    return _table(
        head, ((r["name"], f"{r['W']:.0f}", f"{r['MHz']:.0f}", f"{r['TFLOP/s']:.0f}") for r in data["steady"])
    )


def _counters(data: Row) -> list[str]:
    columns = ("us", "MHz", "DRAM %", "read MB", "written MB", "L2 %", "tensor %", "issue %")
    rows = ([r["name"], *(f"{r[c]:.0f}" if r[c] >= 100 else f"{r[c]:.1f}" for c in columns)] for r in data["counters"])
    return _table(("one launch under `ncu`, caches cold", "µs", *columns[1:]), rows)


def _op_counters(data: Row) -> list[str]:
    columns = ("kernels", "us", "MHz", "DRAM %", "read MB", "written MB", "L2 %", "tensor %", "issue %")
    rows = ([r["name"], *(_short(r[c]) if c in r else "" for c in columns)] for r in data["counters"])
    return _table(("one call under `ncu`, caches cold", *(("µs" if c == "us" else c) for c in columns)), rows)


def _short(x: float) -> str:
    return f"{x:.0f}" if x >= 100 or x == int(x) else f"{x:.1f}"


def _energy(data: Row) -> list[str]:
    rows = (
        (r["kernel"], f"{r['W']:.0f}", f"{r['MHz']:.0f}", f"{r['pJ/FLOP']:.3f}", f"{r['ours']:.0f}")
        for r in data["rows"]
    )
    return _table(("8192x8192x8192, f16, normal", "W", "SM MHz", "pJ per FLOP", "TFLOP/s"), rows)


def _accuracy(data: Row) -> list[str]:
    rows = (
        (r["name"], f"{r['rms']:.2e}", f"{r[THEIRS]:.2e}", f"{r['ours']:.2e}", f"{r['peer']:.2e}") for r in data["rows"]
    )
    return _table(("kernel and data", "RMS, ours", "RMS, torch", "largest, ours", "largest, torch"), rows)


def _percentile(ratios: Sequence[float], share: float) -> float:
    return sorted(ratios)[int(share * len(ratios))]


def _random(data: Row) -> list[str]:
    head = ("problems", "geometric mean", "5th percentile", "least", "faster")
    rows: list[tuple[str, ...]] = []
    for file, one in data.items():
        gpu = file.partition("_")[0].upper()
        kinds: dict[str, list[float]] = {}
        for r in one["rows"]:
            kept = not r.get("copied", {}).get("torch")
            for kind in ("all", *["all that torch runs without a copy"] * kept, r["name"].split()[1]):
                kinds.setdefault(kind, []).append(r["ratio"])
        for element, ratios in kinds.items():
            numbers = (geometric_mean(ratios), _percentile(ratios, 0.05), min(ratios))
            ahead = f"{sum(x >= 1 for x in ratios)} of {len(ratios)}"
            rows.append((f"{gpu}, {element}", *(f"{x:.3f}" for x in numbers), ahead))
    return _table(head, rows)


def _random_op(data: Row) -> list[str]:
    """Return rows per group and card of ``cute-bench op --random``, then those compared with torch.compile or copy."""
    rows: list[tuple[str, ...]] = []
    for one in sorted(data.values(), key=lambda x: RANDOM_GROUPS.index(x["group"])):
        ratios = [r["ratio"] for r in one["rows"]]
        compiled = [r["ratio"] for r in one["rows"] if "compiled" in r.get("peers_us", {})]
        copied = [r["of_copy"] for r in one["rows"] if "of_copy" in r]
        card = one["machine"]["gpu"].removeprefix("NVIDIA ")
        rows.append((one["group"], card, *_spread(ratios)))
        if compiled and len(compiled) < len(ratios):
            rows.append((f"{one['group']}, with torch.compile as a peer", card, *_spread(compiled)))
        if copied:
            rows.append((f"{one['group']}, share of the copy bandwidth", card, *_spread(copied)))
    return _table(("group", "card", "problems", "geometric mean", "5th percentile", "least", "faster"), rows)


def _random_op_kinds(data: Row) -> list[str]:
    """Return a row per operation of each group and card of ``cute-bench op --random``."""
    rows: list[tuple[str, ...]] = []
    for one in sorted(data.values(), key=lambda x: RANDOM_GROUPS.index(x["group"])):
        kinds: dict[str, list[float]] = {}
        for r in one["rows"]:
            kinds.setdefault(r["operation"], []).append(r["ratio"])
        card = one["machine"]["gpu"].removeprefix("NVIDIA ")
        rows += [(one["group"], kind, card, *_spread(found)) for kind, found in sorted(kinds.items())]
    return _table(
        ("group", "operation", "card", "problems", "geometric mean", "5th percentile", "least", "faster"), rows
    )


def _spread(ratios: Sequence[float]) -> tuple[str, str, str, str, str]:
    mean, fifth, least, ahead = quantiles(ratios)
    return str(len(ratios)), f"{mean:.3f}", f"{fifth:.3f}", f"{least:.3f}", f"{ahead} of {len(ratios)}"


def _prologue(data: Row) -> list[str]:
    found: dict[str, dict[str, float]] = {}
    kernels: dict[str, str] = {}
    for r in data["rows"]:
        size, _, what = r["name"].partition(" to ")
        found.setdefault(size, {})[what] = r["ours"]
        kernels[size] = r["kernel"]
    rows = [(f"{s} each", kernels[s], *(f"{x[w]:.2f}" for w in ("load", "wgmma", "end"))) for s, x in found.items()]
    return _table(("f16", "kernel", "first load, us", "first `wgmma`, us", "end of a block, us"), rows)


def _op_summary(*areas: str) -> Callable[[Row], list[str]]:
    """Return a function that writes a row per operation of some areas, on both cards."""
    groups = [group for area in areas for group in AREAS[area]]
    cards = ("H200", "H100")

    def rows(data: Row) -> list[str]:
        found: dict[str, dict[str, list[float]]] = {}
        for one in data.values():
            card = one["machine"]["gpu"].removeprefix("NVIDIA ").split()[0]
            for r in one["rows"]:
                if r["group"] in groups and r["ratio"] == r["ratio"]:  # NaN means that there is no peer.
                    found.setdefault(r["operation"], {}).setdefault(card, []).append(r["ratio"])
        shown = [card for card in cards if any(card in x for x in found.values())]
        head = ["operation", *(f"{c}: {name}" for c in shown for name in ("geometric mean", "least", "faster"))]
        return _table(head, ([name, *(x for c in shown for x in _three(of.get(c, [])))] for name, of in found.items()))

    return rows


def _three(ratios: Sequence[float]) -> tuple[str, str, str]:
    if not ratios:
        return "", "", ""
    return f"{geometric_mean(ratios):.3f}", f"{min(ratios):.3f}", f"{sum(x >= 1 for x in ratios)} of {len(ratios)}"


def _summary(series: Callable[[Path], list[Series]]) -> Callable[[Path], list[str]]:
    """Return a function that writes a row per area and card."""

    def rows(results: Path) -> list[str]:
        head = ("area", "card", "problems", "median ratio", "5th percentile", "least", "faster")
        return _table(head, map(row, series(results)))

    def row(one: Series) -> Sequence[str]:
        of = spread(one.ratios)
        numbers = (f"{x:.3f}" for x in (of.median, of.fifth, of.least))
        return one.label, one.card, str(of.problems), *numbers, f"{of.faster} of {of.problems}"

    return rows


def _random_commands(data: Row) -> list[str]:
    rows = ((one["command"], _gpu(one), one["date"]) for one in data.values())
    return _table(("command", "card", "date"), ((f"`{c}`", g, d) for c, g, d in rows))


def _gpu(result: Row) -> str:
    return result["machine"]["gpu"].removeprefix("NVIDIA ")


def _op_rows(data: Row) -> list[str]:
    rows = list(data["rows"])
    peers = list(dict.fromkeys(k for r in rows for k in r if k not in _COLUMNS))
    made = (
        (
            r["name"],
            f"{r['us']:.4g}",
            f"{_number(r['ours'])} {r['unit']}",
            *(_number(r[k]) if k in r else "" for k in peers),
            f"{r['ratio']:.3f}" if r["ratio"] == r["ratio"] else "",
        )
        for r in rows
    )
    return _table(("problem", "µs", "ours", *peers, "ratio"), made)


def _dated_rows(data: Row) -> list[str]:
    """Return the table of all rows, and a line with the command, the card, torch and the date."""
    line = f"Measured by {data['command']} on one {_gpu(data)}, torch {data['machine']['torch']}, {data['date']}."
    return [*_op_rows(data), "", line]


_COLUMNS = ("name", "group", "operation", "us", "ours", "peer", "unit", "ratio")
"""Columns of ``cute-bench op`` that are not peers."""


TABLES: Mapping[str, tuple[str, Callable[[Row], list[str]]]] = {
    "gemm": ("h200.json", _gemm),
    "gemm_other": ("h200.json", _gemm_other),
    "gemm_mma": ("h200.json", _gemm_mma),
    "memory": ("h200.json", _memory),
    "memory_rows": ("h200.json", _memory_rows),
    "steady": ("h200_profile.json", _steady),
    "counters": ("h200_profile.json", _counters),
    "energy": ("h100_energy.json", _energy),
    "op_counters": ("h200_op_profile.json", _op_counters),
    "accuracy": ("h200_accuracy.json", _accuracy),
    "random": ("h?00_gemm_random.json", _random),
    **{
        f"op_{name}": ("op/*.json h100_op.json", _op_summary(*areas))
        for name, areas in {
            "gemm": ("GEMM", "scaled GEMM"),
            "epilogues": ("GEMM with epilogue",),
            "grouped": ("grouped GEMM",),
            "convolution": ("convolution",),
            "attention": ("attention",),
            "rows": ("rows",),
            "elementwise": ("element-wise",),
        }.items()
    },
    "random_commands": ("random/*.json", _random_commands),
    "random_op": ("random/*.json", _random_op),
    "random_op_kinds": ("random/*.json", _random_op_kinds),
    "prologue": ("h100_prologue.json", _prologue),
    "attention": ("op/h200_attention.json", _op_rows),
    "attention_backward": ("op/h200_attention_backward.json", _dated_rows),
    "decode": ("op/h200_decode.json", _dated_rows),
    "grouped": ("op/h200_grouped.json", _op_rows),
    "conv": ("op/h200_conv.json", _op_rows),
    "mixed": ("op/h200_mixed.json", _dated_rows),
    "optimizers": ("op/h200_optimizers.json", _dated_rows),
}
"""Map tables to files of results (glob patterns) and the function that writes their lines."""

SUMMARIES: Mapping[str, Callable[[Path], list[str]]] = {
    "summary": _summary(named),
    "summary_random": _summary(random_problems),
}
"""Tables of all areas."""


def written(root: Path) -> dict[Path, str]:
    """Map the pages and charts below the repository root to their generated texts."""
    results = root / "test" / "bench" / "results"
    pages = [root / "docs" / "performance.md", *sorted((root / "docs" / "performance").glob("*.md"))]
    charts = root / "docs" / "pictures" / "performance"
    return {page: render(page.read_text(encoding="utf-8"), results) for page in pages} | {
        charts / f"{name}.svg": svg for name, svg in draw(results).items()
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program and return its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m cute_dialect.tools.docs.performance",
        description="Write the tables and charts of the performance pages.",
    )
    parser.add_argument("--check", action="store_true", help="report the files that differ, and write nothing")
    parser.add_argument("--root", default=".", metavar="DIR", help="top of the repository (default: .)")
    options = parser.parse_args(argv)
    return write_or_check(written(Path(options.root)), "performance", check=options.check)


if __name__ == "__main__":
    sys.exit(main())
