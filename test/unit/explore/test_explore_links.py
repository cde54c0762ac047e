"""The links of a page, compared with the places that the artefacts themselves carry, read here in another way."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from cute_dialect.tools.cute_explore import main

ROOT = Path(__file__).parents[3]
SLOW = ROOT / "examples" / "slow_transpose.py"
LINE = next(n for n, line in enumerate(SLOW.read_text().splitlines(), 1) if "a warp reads one bank" in line)


def data_of(page: Path) -> dict[str, Any]:
    """The data of a page."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page.read_text(), re.DOTALL)
    assert found is not None
    return json.loads(found[1])


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The page of the slow transpose."""
    path = tmp_path_factory.mktemp("explore") / "slow.html"
    assert main([str(SLOW), "-o", str(path), "-q"]) == 0
    return data_of(path)


def pane(data: dict[str, Any], key: str) -> dict[str, Any]:
    return next(p for p in data["panes"] if p["key"] == key)


def lines_of(data: dict[str, Any], key: str, of: str, number: int) -> list[str]:
    """The lines of a pane that a line of another one (counted from 0) lights up."""
    groups = set(pane(data, of)["groups"][number])
    p = pane(data, key)
    return [line for line, found in zip(p["lines"], p["groups"]) if groups & set(found)]


def test_each_line_has_its_groups(slow: dict[str, Any]) -> None:
    for p in slow["panes"]:
        assert p["lines"] or p["missing"], p["key"]
        assert len(p["lines"]) == len(p["groups"])
        assert any(p["groups"]) or not p["lines"], p["key"]


def test_the_line_of_the_conflict_becomes_loads_of_shared_memory(slow: dict[str, Any]) -> None:
    """Of line and instruction, both ways, in every pane; the other lines' accesses are not among them."""
    at = LINE - 1
    (load,) = [x for x in lines_of(slow, "trace", "source", at) if "cute.memref.load" in x]
    assert "%shared" in load
    ptx = lines_of(slow, "ptx", "source", at)
    assert sum("ld.shared" in x for x in ptx) == 4 and not any("ld.global" in x or "st.shared" in x for x in ptx)
    if not pane(slow, "sass")["missing"]:
        sass = lines_of(slow, "sass", "source", at)
        assert sum("LDS" in x for x in sass) == 4 and not any("LDG" in x or "STS" in x for x in sass)
    for key in ("trace", "cute-to-base", "ptx", "sass"):
        p = pane(slow, key)
        for i, (text, groups) in enumerate(zip(p["lines"], p["groups"])):
            if groups and ("ld.shared" in text or "LDS" in text):
                assert any("a warp reads one bank" in x for x in lines_of(slow, "source", key, i))


def test_the_conflict_is_named_with_its_line(slow: dict[str, Any]) -> None:
    worst = slow["accesses"][0]
    assert (worst["space"], worst["transactions"], worst["ideal"]) == (
        "shared",
        6144,
        192,
    )  # 6 blocks, 8 warps, 4 turns
    assert worst["where"] == f"line {LINE}" and worst["line"] == LINE - 1
    assert set(worst["groups"]) & set(pane(slow, "source")["groups"][LINE - 1])
    assert slow["first"] == "accesses" and [a["excess"] for a in slow["accesses"][1:]] == [0, 0, 0]


def test_ptx_is_linked_to_the_lines_that_its_directives_name(slow: dict[str, Any]) -> None:
    """Each instruction of PTX with a `.loc` lights up the line that this says, read from PTX compiled apart."""
    import runpy

    import numpy as np

    import cute_dialect.lang as cute

    f = runpy.run_path(str(SLOW))["transpose"]
    made = cute.trace(
        f, np.zeros((64, 96), np.float32), np.zeros((96, 64), np.float32), 32, options="--generate-line-info"
    )
    where, wanted = None, {}
    for line in made.ptx.splitlines():
        place = re.match(r"\s*\.loc\s+\d+ (\d+)", line)
        if place is not None:
            where = int(place[1])
        elif where and re.match(r"\t[a-z@].*;", line):
            wanted.setdefault(line.split()[0], set()).add(where)
    p = pane(slow, "ptx")
    source = pane(slow, "source")
    for kind in ("ld.shared.b32", "st.shared.b32", "ld.global.b32", "st.global.b32"):
        found: set[int] = set()
        for text, groups in zip(p["lines"], p["groups"]):
            if text.split()[:1] == [kind]:
                found |= {n for n, g in zip(source["numbers"], source["groups"]) if set(g) & set(groups)}
        assert found == wanted[kind], kind


def test_values_have_drawings(slow: dict[str, Any]) -> None:
    (definition,) = [i for i, x in enumerate(pane(slow, "trace")["lines"]) if "alloc_smem" in x]
    (group,) = pane(slow, "trace")["groups"][definition]
    names = {name: key for name, _, key in slow["values"][str(group)]}
    assert "<svg" in slow["drawings"][names["%shared"]]


def test_tabs(slow: dict[str, Any]) -> None:
    tabs = {t["key"]: t for t in slow["tabs"]}
    (row,) = tabs["shared"]["parts"][0]["rows"]
    assert row["cells"][1:4] == ["%shared", 0, 4096]
    counted = {r["cells"][0]: r["cells"][1] for r in tabs["roofline"]["parts"][0]["rows"]}
    assert counted["bytes in all"] == f"{2 * 64 * 96 * 4:,}" and counted["floating-point operations, scalar"] == "0"
    assert "<svg" in tabs["timeline"]["parts"][0]["html"]
    assert tabs["faults"]["says"].startswith("No race, no access out of bounds")
