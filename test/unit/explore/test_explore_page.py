"""The explore page of a kernel: its data compared with the locations in the compiled artefacts, and the page in a
browser. The tests are skipped without Chromium, unless CUTE_TEST_BROWSER is set, as in CI.
"""

from __future__ import annotations

import json
import os
import re
import runpy
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browsers import browser, browser_path, open_page

import cute_dialect.lang as cute
from cute_dialect.explore.page import Roofline, draw_roofline
from cute_dialect.tools.cute_explore import main

ROOT = Path(__file__).parents[3]
SLOW = ROOT / "examples" / "slow_transpose.py"
LINE = next(n for n, line in enumerate(SLOW.read_text().splitlines(), 1) if "a warp reads from a single bank" in line)


@pytest.fixture(scope="module")
def driver() -> Iterator[Any]:
    """Start one browser for all tests of this file."""
    if browser_path() is None and not os.environ.get("CUTE_TEST_BROWSER"):
        pytest.skip("no chromium and chromedriver on PATH (Debian: apt-get install chromium chromium-driver)")
    with browser() as found:
        yield found


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the page of the slow transpose."""
    path = tmp_path_factory.mktemp("explore") / "slow.html"
    assert main([str(SLOW), "-o", str(path), "-q"]) == 0
    return path


@pytest.fixture(scope="module")
def data(page: Path) -> dict[str, Any]:
    """Return the data of the page."""
    return data_of(page)


def data_of(page: Path) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page.read_text(), re.DOTALL)
    assert found is not None
    return json.loads(found[1])


@pytest.fixture(scope="module")
def slow(driver: Any, page: Path) -> Any:
    """Open the page in the browser."""
    open_page(driver, page)
    return driver


def pane(data: dict[str, Any], key: str) -> dict[str, Any]:
    return next(p for p in data["panes"] if p["key"] == key)


def tab(data: dict[str, Any], key: str) -> dict[str, Any]:
    return next(t for t in data["tabs"] if t["key"] == key)


def lines_of(data: dict[str, Any], key: str, of: str, number: int) -> list[str]:
    """Return the lines of pane ``key`` that line ``number`` (from 0) of pane ``of`` highlights."""
    groups = set(pane(data, of)["groups"][number])
    p = pane(data, key)
    return [line for line, found in zip(p["lines"], p["groups"]) if groups & set(found)]


def test_each_line_has_its_groups(data: dict[str, Any]) -> None:
    for p in data["panes"]:
        assert p["lines"] or p["missing"], p["key"]
        assert len(p["lines"]) == len(p["groups"])
        assert any(p["groups"]) or not p["lines"], p["key"]


def test_line_of_a_bank_conflict_maps_to_shared_loads(data: dict[str, Any]) -> None:
    """The line maps to its instructions and back in every pane, and excludes accesses of other lines."""
    at = LINE - 1
    (load,) = [x for x in lines_of(data, "trace", "source", at) if "cute.memref.load" in x]
    assert "%shared" in load
    ptx = lines_of(data, "ptx", "source", at)
    assert sum("ld.shared" in x for x in ptx) == 4 and not any("ld.global" in x or "st.shared" in x for x in ptx)
    if not pane(data, "sass")["missing"]:
        sass = lines_of(data, "sass", "source", at)
        assert sum("LDS" in x for x in sass) == 4 and not any("LDG" in x or "STS" in x for x in sass)
    for key in ("trace", "cute-to-base", "ptx", "sass"):
        p = pane(data, key)
        for i, (text, groups) in enumerate(zip(p["lines"], p["groups"])):
            if groups and ("ld.shared" in text or "LDS" in text):
                assert any("a warp reads from a single bank" in x for x in lines_of(data, "source", key, i))


def test_the_conflict_is_named_with_its_line(data: dict[str, Any]) -> None:
    (table,) = tab(data, "accesses")["parts"]
    worst, *others = table["rows"]
    shown = {c["head"]: cell for c, cell in zip(table["columns"], worst["cells"])}
    assert (shown["memory"], shown["transactions"], shown["ideal"]) == (
        "shared",
        6144,
        192,
    )  # 6 blocks, 8 warps, 4 iterations
    assert shown["where"] == f"line {LINE}" and worst["line"] == LINE - 1
    assert set(worst["groups"]) & set(pane(data, "source")["groups"][LINE - 1])
    assert data["first"] == "accesses" and len(others) == 3 and not any(row["bad"] for row in others)


def test_ptx_is_linked_to_the_lines_that_its_directives_name(data: dict[str, Any]) -> None:
    """Each PTX instruction is linked to the source line of its `.loc`, as in separately compiled PTX."""
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
    p = pane(data, "ptx")
    source = pane(data, "source")
    for kind in ("ld.shared.b32", "st.shared.b32", "ld.global.b32", "st.global.b32"):
        found: set[int] = set()
        for text, groups in zip(p["lines"], p["groups"]):
            if text.split()[:1] == [kind]:
                found |= {n for n, g in zip(source["numbers"], source["groups"]) if set(g) & set(groups)}
        assert found == wanted[kind], kind


def test_values_have_drawings(data: dict[str, Any]) -> None:
    (definition,) = [i for i, x in enumerate(pane(data, "trace")["lines"]) if "alloc_smem" in x]
    (group,) = pane(data, "trace")["groups"][definition]
    names = {name: key for name, _, key, _ in data["values"][str(group)]}
    assert "<svg" in data["drawings"][names["%shared"]]


def test_tabs(data: dict[str, Any]) -> None:
    (row,) = tab(data, "shared")["parts"][0]["rows"]
    assert row["cells"][1:4] == ["shared", 0, 4096] and "allocate_tensor" in pane(data, "source")["lines"][row["line"]]
    picture, numbers, _ = tab(data, "roofline")["parts"]
    counted = {r["cells"][0]: r["cells"][1] for r in numbers["rows"]}
    assert (
        counted["bytes of global memory, total"] == f"{2 * 64 * 96 * 4:,}"
        and counted["floating-point operations, f32 units"] == "0"
    )
    assert "no floating-point operation" in picture["html"]
    assert "<svg" in tab(data, "timeline")["parts"][0]["html"]
    assert tab(data, "faults")["says"].startswith("This run has no race, no out-of-bounds access")


# ----------------------------------------------------------------------------------------------------- in a browser


def lit(driver: Any, pane: str) -> list[str]:
    """Return the highlighted lines of a pane."""
    return driver.execute_script(
        "return [...document.querySelectorAll(`[data-pane='${arguments[0]}'] .ln.lit > span`)].map(l => l.textContent)",
        pane,
    )


def click(driver: Any, pane: str, text: str) -> None:
    """Click the first visible line of a pane that contains a text."""
    driver.execute_script(
        "[...document.querySelectorAll(`[data-pane='${arguments[0]}'] .ln`)]"
        ".find(l => l.textContent.includes(arguments[1])).click()",
        pane, text,
    )  # fmt: skip


def panes(driver: Any) -> dict[str, int]:
    """Return the number of lines of each visible pane."""
    return driver.execute_script(
        "return Object.fromEntries([...document.querySelectorAll('.pane:not([hidden])')]"
        ".map(p => [p.dataset.pane, p.querySelectorAll('.ln').length]))"
    )


def test_the_slow_kernel(slow: Any) -> None:
    """The page opens at the line of the conflict. A click on its row highlights the line and its generated code."""
    assert [e for e in slow.get_log("browser") if e["level"] == "SEVERE"] == []
    assert all(panes(slow).values())
    assert slow.execute_script("return document.getElementById('tab').dataset.tab") == "accesses"
    assert [x.strip()[:7] for x in lit(slow, "source")] == ["b[acros"]
    row = slow.find_element("css selector", "#tab tr.bad")
    assert row.text.startswith(f"bank conflict line {LINE} shared") and "6144" in row.text
    row.click()
    (source,) = lit(slow, "source")
    assert "a warp reads from a single bank" in source
    assert any("ld.shared" in x for x in lit(slow, "ptx")) and any(
        "memref.load(%shared" in x for x in lit(slow, "trace")
    )
    line = slow.find_element("css selector", f"[data-pane=source] .ln[data-number='{LINE}']")
    assert line.find_element("css selector", "em").text == "◀ 32×"
    assert line.get_attribute("title") == "bank conflict: llvm.load, 6144 transactions, ideally 192"


def test_links_work_in_both_directions(slow: Any) -> None:
    click(slow, "ptx", "st.shared")
    (source,) = lit(slow, "source")
    assert "shared[row + turn, column] = a[" in source
    assert any("cute.memref.store(%shared" in x for x in lit(slow, "trace"))
    click(slow, "source", "shared[row + turn, column] = a[")
    assert any("st.shared" in x for x in lit(slow, "ptx")) and any("ld.global" in x for x in lit(slow, "ptx"))


def test_pointing_with_the_mouse(slow: Any) -> None:
    """Hovering over a line highlights the linked lines in all panes, and a click keeps them highlighted."""
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    ActionChains(slow).send_keys(Keys.ESCAPE).perform()
    (line,) = slow.find_elements("css selector", f"[data-pane=source] .ln[data-number='{LINE - 2}'] > span")
    ActionChains(slow).move_to_element_with_offset(line, 0, 0).perform()
    assert any("arch.barrier" in x for x in lit(slow, "trace")) and any("bar.sync" in x for x in lit(slow, "ptx"))
    ActionChains(slow).move_to_element(slow.find_element("id", "title")).perform()
    assert lit(slow, "trace") == lit(slow, "ptx") == []
    ActionChains(slow).move_to_element_with_offset(line, 0, 0).click().perform()
    ActionChains(slow).move_to_element(slow.find_element("id", "title")).perform()
    assert any("bar.sync" in x for x in lit(slow, "ptx"))


def test_rows_of_tables_lead_to_lines_by_keys(slow: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    slow.find_element("css selector", "[data-tab=registers]").click()
    rows = slow.find_elements("css selector", "#tab tr[data-g]")
    (row,) = [r for r in rows if "cute.arch.sync_threads()" in r.text]
    row.send_keys(Keys.ENTER)
    assert [x.strip() for x in lit(slow, "source")] == ["cute.arch.sync_threads()"]
    assert any("bar.sync" in x for x in lit(slow, "ptx"))


def test_dark(slow: Any) -> None:
    """The button switches from the system's theme to light, then dark, and drawings follow."""
    slow.find_element("css selector", "[data-tab=timeline]").click()

    def colours() -> list[str]:
        return slow.execute_script(
            "return [document.body, document.querySelector('#tab rect.paper')].map("
            "e => getComputedStyle(e)[e === document.body ? 'backgroundColor' : 'fill'])"
        )

    slow.find_element("id", "theme").click()
    assert colours() == ["rgb(255, 255, 255)", "rgb(255, 255, 255)"]
    slow.find_element("id", "theme").click()
    page, paper = (sum(map(int, re.findall(r"\d+", c))) for c in colours())
    assert page < 100 and paper < 100
    slow.find_element("id", "theme").click()


def test_narrow_window(slow: Any, page: Path) -> None:
    slow.set_window_size(1280, 800)
    try:
        open_page(slow, page)
        assert set(panes(slow)) == {"source", "trace", "ptx", "sass"}
        assert slow.execute_script("const m = document.getElementById('panes'); return m.scrollWidth <= m.clientWidth")
    finally:
        slow.set_window_size(1800, 1100)
        open_page(slow, page)


def test_layouts_are_drawn(slow: Any) -> None:
    slow.find_element("css selector", "[data-tab=layouts]").click()
    click(slow, "trace", "%shared = cute.memref.alloc_smem")
    assert slow.execute_script("return document.querySelectorAll('#tab figure svg').length") >= 1
    assert "(32,32):(32,1)" in slow.find_element("css selector", "#tab figure").text


def test_keys(slow: Any) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    def focus() -> str:
        return slow.execute_script("return document.querySelector('.pane.focus').dataset.pane")

    click(slow, "source", "shared = cute.utils.SmemAllocator()")
    slow.execute_script("document.querySelector('[data-pane=source] .view').focus()")
    ActionChains(slow).send_keys("jjj").perform()
    now = slow.execute_script("return document.querySelector('[data-pane=source] .ln.now > span').textContent")
    assert now.strip().startswith("for turn in range(0, 32, 8)")
    ActionChains(slow).send_keys(Keys.TAB).perform()
    assert focus() == "trace"
    ActionChains(slow).send_keys("/", "alloc_smem", Keys.ENTER, Keys.ESCAPE).perform()
    assert "alloc_smem" in slow.execute_script("return document.querySelector('[data-pane=trace] .ln.now').textContent")
    ActionChains(slow).send_keys(Keys.ESCAPE).perform()
    assert lit(slow, "source") == []


def test_columns_are_hidden_and_shown(slow: Any) -> None:
    for key in [p for p in panes(slow) if p != "source"]:
        slow.find_element("css selector", f"[data-toggle='{key}']").click()
    assert list(panes(slow)) == ["source"]
    for button in slow.find_elements("css selector", "[data-toggle][aria-pressed=false]"):
        button.click()
    assert all(panes(slow).values()) and len(panes(slow)) >= 7


def test_every_tab_has_content(slow: Any) -> None:
    for button in slow.find_elements("css selector", "#tabs button"):
        button.click()
        assert slow.find_element("css selector", "#tab").text.strip(), button.text
    assert [e for e in slow.get_log("browser") if e["level"] == "SEVERE"] == []


DOCS = re.findall(r"^cute-explore (.*)$", (ROOT / "docs" / "explore.md").read_text(), re.MULTILINE)


@pytest.mark.slow
def test_first_command_of_the_document(data: dict[str, Any]) -> None:
    """The figures that docs/explore.md states match the page."""
    assert DOCS[0] == "examples/slow_transpose.py -o slow.html" and len(DOCS) == 3
    text = (ROOT / "docs" / "explore.md").read_text()
    assert f"line {LINE}, 6144 transactions, ideally 192" in text
    assert [t["title"] for t in data["tabs"]] == re.findall(r"^\| ([A-Z][a-z ]+) \|", text, re.MULTILINE)[1:]


@pytest.mark.slow
@pytest.mark.parametrize("command", DOCS[1:], ids=lambda x: x.split()[0])
def test_commands_of_the_document(driver: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    monkeypatch.chdir(ROOT)
    page = tmp_path / "page.html"
    words = [str(page) if w.endswith(".html") else w for w in command.split()]
    assert main([words[0], "-q", *words[1:]]) == 0
    assert_all_is_there(driver, page)


# ------------------------------------------------------------------------------------------------- what is shipped


def assert_all_is_there(driver: Any, page: Path, *, missing: tuple[str, ...] = (), empty: bool = False) -> None:
    """Assert that every pane has content and that the browser reports no error. The page explains panes in ``missing``.
    Unless ``empty`` is set, each pane has a line that is linked to the source.
    """
    began = time.perf_counter()
    open_page(driver, page)
    print(f"{page.name}: {time.perf_counter() - began:.2f} s")
    assert [e for e in driver.get_log("browser") if e["level"] == "SEVERE"] == []
    for button in driver.find_elements("css selector", "[data-toggle][aria-pressed=false]"):
        button.click()
    said = [m.text for m in driver.find_elements("css selector", ".missing")]
    assert said == len(missing) * ["There is no kernel in this module."]
    found = {key: lines for key, lines in panes(driver).items() if key not in missing}
    assert len(found) >= 4 and all(found.values()), found
    linked = driver.execute_script(
        "const all = JSON.parse(document.getElementById('data').textContent).panes;"
        "const own = new Set(all[0].groups.flat());"
        "return Object.fromEntries(all.map(p => [p.key, p.groups.some(g => g.some(x => own.has(x)))]))"
    )
    assert empty or all(linked[key] for key in found), linked


EXAMPLES = sorted(p.name for p in (ROOT / "test" / "examples").glob("*.mlir"))


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_shipped_kernels(driver: Any, tmp_path: Path, name: str) -> None:
    page = tmp_path / f"{name}.html"
    assert main([str(ROOT / "test" / "examples" / name), "-o", str(page), "-q", "--blocks", "0"]) == 0
    assert_all_is_there(driver, page, missing=("ptx", "sass") if name == "layouts.mlir" else ())


OF_THE_LIBRARY = (
    "descriptors.py", "mixture_of_experts.py", "plans.py", "resnet_block.py", "train_tiny_transformer.py",
    "transformer_block.py", "tv_layout.py",
)  # fmt: skip
"""Programs without a kernel of their own: they call `op`, or print layouts and atoms."""

PROGRAMS = sorted(p.name for p in (ROOT / "examples").glob("*.py") if p.name != "lit.cfg.py")


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(
    driver: Any, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    page = tmp_path / f"{name}.html"
    status = main([str(ROOT / "examples" / name), "-o", str(page), "-q"])
    if name in OF_THE_LIBRARY:
        assert status == 1 and "no function to show" in capfd.readouterr().err
        return
    assert status == 0
    assert_all_is_there(driver, page, empty=name == "layouts.py")


# ------------------------------------------------------------------------------------------------- pieces of the page


@pytest.mark.slow
def test_roofline_bound_of_a_run() -> None:
    """By hand: 24,000 bytes take 5 ns at 4.8 TB/s, and 9.895 million operations take 10 ns at 989.5 TFLOP/s."""
    found = Roofline({"f32 units": 0.0, "tensor cores, 16-bit": 9.895e6}, 20_000, 4_000)
    assert found.times == {"memory": 5.0, "f32 units": 0.0, "tensor cores, 16-bit": 10.0}
    assert found.bound == "tensor cores, 16-bit" and found.reached == 989.5e3
    assert "412 operations per byte: at most 989.5 TFLOP/s, by tensor cores, 16-bit" in draw_roofline(found).svg
    copied = Roofline({"f32 units": 0.0}, 48_000, 0)
    assert copied.bound == "memory" and "no floating-point operation" in draw_roofline(copied).svg


@pytest.mark.slow
@pytest.mark.parametrize("program", ["ptxas", "nvdisasm"])
def test_without_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    """Without ptxas or nvdisasm, the pane of machine code reports it and the other panes are complete."""
    from cute_dialect.pipelines import ptxas

    find = ptxas.find_program
    monkeypatch.setattr(ptxas, "find_program", lambda name, wheel: None if name == program else find(name, wheel))
    monkeypatch.setenv("CUTE_CACHE", "0")
    page = tmp_path / "slow.html"
    assert main([str(SLOW), "-o", str(page), "-q", "--no-run"]) == 0
    found = data_of(page)
    missing = {p["key"]: p["missing"] for p in found["panes"] if not p["lines"]}
    assert list(missing) == ["sass"] and f"no {program} found" in missing["sass"]
    assert tab(found, "registers")["says"] == missing["sass"]
    assert tab(found, "accesses")["says"] == tab(found, "timeline")["says"] == "Not run: --no-run."
