"""Writes the tables of ``docs/performance.md`` from the results that are committed.

    python -m cute_dialect.tools.gen_performance            # rewrites the tables
    python -m cute_dialect.tools.gen_performance --check    # exit 1 if one is not what the results say

A table stands between ``<!-- NAME -->`` and ``<!-- /NAME -->``; what is around it is written by hand.  The results lie
in ``test/bench/results``: ``h200.json`` (``cute-bench all``), ``h200_profile.json`` and, with ``--cases``,
``h200_op_profile.json`` (``python -m cute_dialect.tools.bench_profile``), ``h100_energy.json`` (``cute-bench energy``),
``h200_accuracy.json`` (``cute-bench accuracy``), ``h100_prologue.json`` (``cute-bench prologue``),
``h200_gemm_random.json`` and ``h100_gemm_random.json`` (``cute-bench gemm --random``), one a group of
``cute-bench op``, ``op/h200_GROUP.json``, and all of them, ``h100_op.json``; one a group and card of
``cute-bench op --random``, ``random/h200_GROUP.json``.
"""

# What comes out of JSON has no types.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import exp, log
from pathlib import Path
from typing import Any

from cute_dialect.tools.bench_random import GROUPS, quantiles

__all__ = ["main", "render"]

Row = Mapping[str, Any]
THEIRS = "torch's"
LARGE = ("2048x2048x2048", "4096x4096x4096", "8192x8192x8192", "16384x8192x8192", "8192x28672x4096", "4096x4096x14336")


def render(text: str, results: Path) -> str:
    """Make every table in ``text`` anew.  Raises ``ValueError`` for a table of unknown name."""

    def table(found: re.Match[str]) -> str:
        name = found.group(1)
        if name not in TABLES:
            raise ValueError(f"unknown table {name!r}, expected one of {', '.join(sorted(TABLES))}")
        file, make = TABLES[name]
        data = {f.stem: json.loads(f.read_text(encoding="utf-8")) for f in sorted(results.glob(file))}
        if not data:
            raise ValueError(f"table {name!r}: there are no results {results / file}")
        data = data if set(file) & {"*", "?"} else next(iter(data.values()))
        return f"<!-- {name} -->\n" + "\n".join(make(data)) + f"\n<!-- /{name} -->"

    return re.sub(r"<!-- (\w+) -->\n.*?<!-- /\1 -->", table, text, flags=re.S)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(head)} |", "|" + "---|" * len(head), *(f"| {' | '.join(row)} |" for row in rows)]


def _number(x: float) -> str:
    return f"{x:.3f}" if x < 10 else f"{x:.1f}" if x < 1000 else f"{x:.0f}"


def _pair(row: Row) -> str:
    return f"{_number(row['ours'])} / {_number(row['peer'])} ({row['ratio']:.3f})"


def _mean(ratios: Sequence[float]) -> float:
    return exp(sum(map(log, ratios)) / len(ratios))


def _gemm(data: Row) -> list[str]:
    found = {r["name"]: r for r in data["results"]}
    columns = [(e, d) for e in ("f16", "bf16") for d in ("normal", "int")]
    rows = [
        [shape, *(_pair(found[f"gemm {e} kk {shape} {d}"]) for e, d in columns)] for shape in (*LARGE, "128x8192x8192")
    ]
    means = [_mean([found[f"gemm {e} kk {s} {d}"]["ratio"] for s in LARGE]) for e, d in columns]
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
        if name.startswith("transpose"):
            return name.endswith("16384²") and "-2" in name
        return re.match(r"(sum|softmax|rmsnorm|layernorm) ", name)

    return _chosen(data, wanted, ("kernel", "TB/s", "torch", "ratio"))


def _steady(data: Row) -> list[str]:
    head = ("launched without pause", "W", "SM MHz", "TFLOP/s")
    return _table(
        head, ((r["name"], f"{r['W']:.0f}", f"{r['MHz']:.0f}", f"{r['TFLOP/s']:.0f}") for r in data["steady"])
    )


def _counters(data: Row) -> list[str]:
    columns = ("us", "MHz", "DRAM %", "read MB", "written MB", "L2 %", "tensor %", "issue %")
    rows = ([r["name"], *(f"{r[c]:.0f}" if r[c] >= 100 else f"{r[c]:.1f}" for c in columns)] for r in data["counters"])
    return _table(("one launch under `ncu`, caches cold", "µs", *columns[1:]), rows)


def _op_counters(data: Row) -> list[str]:
    columns = ("kernels", "us", "MHz", "DRAM %", "read MB", "written MB", "L2 %", "tensor %", "issue %")
    rows = (
        [r["name"], *(_short(r[c]) if c in r else "" for c in columns)] for r in data["counters"]
    )  # fmt: skip
    return _table(("one call under `ncu`, caches cold", *(("µs" if c == "us" else c) for c in columns)), rows)


def _short(x: float) -> str:
    return f"{x:.0f}" if x >= 100 or x == int(x) else f"{x:.1f}"


def _energy(data: Row) -> list[str]:
    rows = (
        (r["kernel"], f"{r['W']:.0f}", f"{r['MHz']:.0f}", f"{r['pJ/FLOP']:.3f}", f"{r['ours']:.0f}")
        for r in data["rows"]
    )
    return _table(("8192x8192x8192, f16, normal", "W", "SM MHz", "pJ a FLOP", "TFLOP/s"), rows)


def _accuracy(data: Row) -> list[str]:
    rows = (
        (r["name"], f"{r['rms']:.2e}", f"{r[THEIRS]:.2e}", f"{r['ours']:.2e}", f"{r['peer']:.2e}") for r in data["rows"]
    )
    return _table(("kernel and data", "RMS, ours", "RMS, torch", "largest, ours", "largest, torch"), rows)


def _percentile(ratios: Sequence[float], share: float) -> float:
    return sorted(ratios)[int(share * len(ratios))]


def _random(data: Row) -> list[str]:
    head = ("problems", "geometric mean", "5th percentile", "least", "ahead")
    rows: list[tuple[str, ...]] = []
    for file, one in data.items():
        gpu = file.partition("_")[0].upper()
        kinds: dict[str, list[float]] = {}
        for r in one["rows"]:
            kept = not r.get("copied", {}).get("torch")
            for kind in ("all", *["all of which torch copies nothing"] * kept, r["name"].split()[1]):
                kinds.setdefault(kind, []).append(r["ratio"])
        for element, ratios in kinds.items():
            numbers = (_mean(ratios), _percentile(ratios, 0.05), min(ratios))
            ahead = f"{sum(x >= 1 for x in ratios)} of {len(ratios)}"
            rows.append((f"{gpu}, {element}", *(f"{x:.3f}" for x in numbers), ahead))
    return _table(head, rows)


def _random_op(data: Row) -> list[str]:
    """Return a row per group and card of ``cute-bench op --random``, and one for the problems with torch.compile."""
    rows: list[tuple[str, ...]] = []
    for one in sorted(data.values(), key=lambda x: GROUPS.index(x["group"])):
        ratios = [r["ratio"] for r in one["rows"]]
        compiled = [r["ratio"] for r in one["rows"] if "compiled" in r.get("peers_us", {})]
        card = one["machine"]["gpu"].removeprefix("NVIDIA ")
        rows.append((one["group"], card, *_spread(ratios)))
        if compiled and len(compiled) < len(ratios):
            rows.append((f"{one['group']}, torch.compile among the peers", card, *_spread(compiled)))
    return _table(("group", "card", "problems", "geometric mean", "5th percentile", "least", "ahead"), rows)


def _random_op_kinds(data: Row) -> list[str]:
    """Return a row per operation of each group and card of ``cute-bench op --random``."""
    rows: list[tuple[str, ...]] = []
    for one in sorted(data.values(), key=lambda x: GROUPS.index(x["group"])):
        kinds: dict[str, list[float]] = {}
        for r in one["rows"]:
            kinds.setdefault(r["operation"], []).append(r["ratio"])
        card = one["machine"]["gpu"].removeprefix("NVIDIA ")
        rows += [(one["group"], kind, card, *_spread(found)) for kind, found in sorted(kinds.items())]
    return _table(
        ("group", "operation", "card", "problems", "geometric mean", "5th percentile", "least", "ahead"), rows
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


def _op_summary(data: Row) -> list[str]:
    found: dict[tuple[str, str], list[float]] = {}
    for one in data.values():
        for r in one["rows"]:
            if r["ratio"] == r["ratio"]:  # there is a peer
                found.setdefault((r["group"], r["operation"]), []).append(r["ratio"])
    rows = (
        (*key, f"{_mean(x):.3f}", f"{min(x):.3f}", f"{sum(y >= 1 for y in x)} of {len(x)}") for key, x in found.items()
    )
    return _table(("group", "operation", "geometric mean", "least", "ahead"), rows)


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


_COLUMNS = ("name", "group", "operation", "us", "ours", "peer", "unit", "ratio")
"""Of a row of ``cute-bench op``; the others are peers."""


TABLES: Mapping[str, tuple[str, Callable[[Row], list[str]]]] = {
    "gemm": ("h200.json", _gemm),
    "gemm_other": ("h200.json", _gemm_other),
    "gemm_mma": ("h200.json", _gemm_mma),
    "memory": ("h200.json", _memory),
    "steady": ("h200_profile.json", _steady),
    "counters": ("h200_profile.json", _counters),
    "energy": ("h100_energy.json", _energy),
    "op_counters": ("h200_op_profile.json", _op_counters),
    "accuracy": ("h200_accuracy.json", _accuracy),
    "random": ("h?00_gemm_random.json", _random),
    "op": ("op/h200_*.json", _op_summary),
    "op_h100": ("h100_op*.json", _op_summary),
    "random_op": ("random/*.json", _random_op),
    "random_op_kinds": ("random/*.json", _random_op_kinds),
    "prologue": ("h100_prologue.json", _prologue),
    "attention": ("op/h200_attention.json", _op_rows),
    "grouped": ("op/h200_grouped.json", _op_rows),
    "conv": ("op/h200_conv.json", _op_rows),
}
"""Table -> file of results, and what makes the lines of the table from it."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; give the exit status."""
    parser = argparse.ArgumentParser(description="Write the tables of docs/performance.md from test/bench/results.")
    parser.add_argument("--check", action="store_true", help="only say whether they are what the results say")
    parser.add_argument("--root", default=".", metavar="DIR", help="the top of the repository (default: here)")
    options = parser.parse_args(argv)
    page = Path(options.root) / "docs" / "performance.md"
    text = page.read_text(encoding="utf-8")
    made = render(text, Path(options.root) / "test" / "bench" / "results")
    if options.check:
        if made != text:
            print(
                f"{page}: tables differ from the results: python -m cute_dialect.tools.gen_performance", file=sys.stderr
            )
        return int(made != text)
    temporary = page.with_suffix(".tmp")
    temporary.write_text(made, encoding="utf-8")
    temporary.replace(page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
