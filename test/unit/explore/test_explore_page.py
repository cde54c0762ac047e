"""Pages in a real browser: what the document shows after pointing, clicking and keys.

Where there is no Chromium these are skipped, and say so; CUTE_TEST_BROWSER (CI sets it) makes that a failure.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browsers import browser, browser_path, open_page

from cute_dialect.tools.cute_explore import main

ROOT = Path(__file__).parents[3]
SLOW = ROOT / "examples" / "slow_transpose.py"
LINE = next(n for n, line in enumerate(SLOW.read_text().splitlines(), 1) if "a warp reads one bank" in line)


@pytest.fixture(scope="module")
def driver() -> Iterator[Any]:
    """A browser for all tests here."""
    if browser_path() is None and not os.environ.get("CUTE_TEST_BROWSER"):
        pytest.skip("no chromium and chromedriver on PATH (Debian: apt-get install chromium chromium-driver)")
    with browser() as found:
        yield found


@pytest.fixture(scope="module")
def slow(driver: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The browser with the page of the slow transpose."""
    path = tmp_path_factory.mktemp("explore") / "slow.html"
    assert main([str(SLOW), "-o", str(path), "-q"]) == 0
    open_page(driver, path)
    return driver


def lit(driver: Any, pane: str) -> list[str]:
    """The texts of the lines that are lit in a column."""
    return driver.execute_script(
        "return [...document.querySelectorAll(`[data-pane='${arguments[0]}'] .ln.lit > span`)].map(l => l.textContent)",
        pane,
    )


def click(driver: Any, pane: str, text: str) -> None:
    """Click the first line in sight of a column that has a text."""
    driver.execute_script(
        "[...document.querySelectorAll(`[data-pane='${arguments[0]}'] .ln`)]"
        ".find(l => l.textContent.includes(arguments[1])).click()",
        pane, text,
    )  # fmt: skip


def panes(driver: Any) -> dict[str, int]:
    """How many lines each column that is shown has in the document."""
    return driver.execute_script(
        "return Object.fromEntries([...document.querySelectorAll('.pane:not([hidden])')]"
        ".map(p => [p.dataset.pane, p.querySelectorAll('.ln').length]))"
    )


def test_the_slow_kernel(slow: Any) -> None:
    """The page opens with the conflict; a click on its row lights the line, and what it became."""
    assert [e for e in slow.get_log("browser") if e["level"] == "SEVERE"] == []
    assert all(panes(slow).values())
    assert slow.execute_script("return document.getElementById('tab').dataset.tab") == "accesses"
    row = slow.find_element("css selector", "#tab tr.bad")
    assert row.text.startswith(f"bank conflict line {LINE} shared") and "6144" in row.text
    row.click()
    (source,) = lit(slow, "source")
    assert "a warp reads one bank" in source
    assert any("ld.shared" in x for x in lit(slow, "ptx")) and any(
        "memref.load(%shared" in x for x in lit(slow, "trace")
    )
    note = slow.find_element("css selector", f"[data-pane=source] .ln[data-number='{LINE}'] em").text
    assert note.startswith("◀ llvm.load: bank conflict, 6144 transactions where 192 would do")


def test_links_lead_both_ways(slow: Any) -> None:
    click(slow, "ptx", "st.shared")
    (source,) = lit(slow, "source")
    assert "shared[row + turn, column] = a[" in source
    assert any("cute.memref.store(%shared" in x for x in lit(slow, "trace"))
    click(slow, "source", "shared[row + turn, column] = a[")
    assert any("st.shared" in x for x in lit(slow, "ptx")) and any("ld.global" in x for x in lit(slow, "ptx"))


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


def test_every_tab_shows_something(slow: Any) -> None:
    for button in slow.find_elements("css selector", "#tabs button"):
        button.click()
        assert slow.find_element("css selector", "#tab").text.strip(), button.text
    assert [e for e in slow.get_log("browser") if e["level"] == "SEVERE"] == []


EXAMPLES = sorted(p.name for p in (ROOT / "test" / "examples").glob("*.mlir"))


@pytest.mark.parametrize("name", EXAMPLES)
def test_shipped_kernels(driver: Any, tmp_path: Path, name: str) -> None:
    """No column is empty, nothing is said on the console, each column that has a place is linked to the source."""
    page = tmp_path / "page.html"
    assert main([str(ROOT / "test" / "examples" / name), "-o", str(page), "-q", "--blocks", "0"]) == 0
    began = time.perf_counter()
    open_page(driver, page)
    print(f"{name}: {time.perf_counter() - began:.2f} s")
    assert [e for e in driver.get_log("browser") if e["level"] == "SEVERE"] == []
    for button in driver.find_elements("css selector", "[data-toggle][aria-pressed=false]"):
        button.click()
    found = panes(driver)
    said = [m.text for m in driver.find_elements("css selector", ".missing")]
    if name == "layouts.mlir":  # functions of the host, which no kernel calls
        assert said == 2 * ["There is no kernel in this module."]
        found = {key: lines for key, lines in found.items() if key not in ("ptx", "sass")}
    else:
        assert said == []
    assert len(found) >= 5 and all(found.values()), found
    for key in found:
        lines = driver.execute_script(
            "const p = JSON.parse(document.getElementById('data').textContent).panes.find(p => p.key === arguments[0]);"
            "return p.groups.filter(g => g.length).length", key,
        )  # fmt: skip
        assert lines, key
