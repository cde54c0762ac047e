"""The documentation site, built as ``make site`` builds it and opened in a browser from its files.

The browser tests are skipped without Chromium, unless CUTE_TEST_BROWSER is set, as in CI.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browsers import browser, browser_path

from cute_dialect.tools.docs import site as gen_site

ROOT = Path(__file__).parents[3]
PAGES = (
    "index.html",
    "language.html",
    "dialect.html",
    "atoms.html",
    "reference/cute_dialect.lang.html",
    "reference/dialect/algebra.html",
    "reference/atoms/ldmatrix.html",
    "tutorials/layouts_by_pictures.html",
    "tutorials/first_kernel.html",
    "examples/index.html",
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    assert gen_site.main(["-o", str(folder)]) == 0
    return folder / "html"


@pytest.fixture(scope="module")
def driver() -> Iterator[Any]:
    if browser_path() is None and not os.environ.get("CUTE_TEST_BROWSER"):
        pytest.skip("there is no chromium with chromedriver here")
    with browser() as found:
        yield found


def show(driver: Any, page: str, width: int, scheme: str) -> None:
    """Open a page at a window width and in a colour scheme."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    driver.get(page)


def errors(driver: Any) -> list[str]:
    """Return the browser's errors since the last call."""
    return [entry["message"] for entry in driver.get_log("browser")]


@pytest.mark.slow
@pytest.mark.parametrize("width,scheme", [(1400, "light"), (390, "dark")])
def test_pages(site: Path, driver: Any, width: int, scheme: str) -> None:
    """Pages open without errors, load their pictures, and fit the width of a phone."""
    for name in PAGES:
        show(driver, (site / name).as_uri(), width, scheme)
        assert driver.execute_script("return document.querySelector('h1').innerText.length") > 3
        broken = "return [...document.images].filter((i) => i.complete && !i.naturalWidth).map((i) => i.src)"
        assert driver.execute_script(broken) == [] and errors(driver) == [], name
        assert driver.execute_script("return document.documentElement.scrollWidth") <= width, name
        paper = driver.execute_script("return getComputedStyle(document.body).backgroundColor")
        assert (sum(map(int, paper[4:-1].split(","))) > 380) == (scheme == "light"), (name, paper)


@pytest.mark.slow
def test_the_start_page(site: Path, driver: Any) -> None:
    show(driver, (site / "index.html").as_uri(), 1400, "light")
    text = driver.execute_script("return document.querySelector('article').innerText")
    assert "@cute.kernel" in text and "pip install" in text and "torch" in text
    pictures = driver.execute_script("return [...document.querySelectorAll('article img')].map((i) => i.src)")
    assert [Path(p).name for p in pictures] == ["start.svg", "flow.svg"]


@pytest.mark.slow
def test_search_in_files(site: Path, driver: Any) -> None:
    """Search works without a server, and its first results link to the right pages."""
    from selenium.webdriver.support.ui import WebDriverWait

    show(driver, (site / "search.html").as_uri() + "?q=zipped_divide", 1400, "light")
    links = "return [...document.querySelectorAll('ul.search a')].map((a) => a.href)"
    found = WebDriverWait(driver, 30).until(lambda d: d.execute_script(links))
    assert any("cute_dialect.lang.html#" in link for link in found) and errors(driver) == []
    driver.get(found[0])
    assert "zipped_divide" in driver.execute_script("return document.querySelector('article').innerText")


@pytest.mark.slow
def test_a_long_table_can_be_filtered(site: Path, driver: Any) -> None:
    show(driver, (site / "dialect.html").as_uri(), 1400, "light")
    field = driver.find_elements("css selector", "#all-ops input.filter")[0]
    field.send_keys("zipped div")
    rows = "return [...document.querySelectorAll('#all-ops tbody tr')].filter((r) => !r.hidden).map((r) => r.innerText)"
    (row,) = driver.execute_script(rows)
    assert row.startswith("cute.zipped_divide")


@pytest.mark.slow
def test_tutorials_have_outputs_and_notebooks(site: Path, driver: Any) -> None:
    for name in gen_site.TUTORIALS:
        show(driver, (site / "tutorials" / f"{name}.html").as_uri(), 1400, "light")
        assert driver.find_elements("css selector", ".cell_output"), name
        (link,) = driver.find_elements("css selector", f"a.download[href$='{name}.ipynb']")
        assert Path(link.get_attribute("href").removeprefix("file://")).is_file()


@pytest.mark.slow
def test_anchors_resolve(site: Path) -> None:
    """Links between pages, including those of Sphinx, name an existing file and id."""
    ids: dict[Path, set[str]] = {}
    dead: list[str] = []
    for page in sorted(site.rglob("*.html")):
        if "_modules" in page.parts or page.name == "genindex.html":
            continue
        for link in set(re.findall(r'href="([^":?]*#[^"]+)"', page.read_text(encoding="utf-8"))):
            path, _, anchor = link.partition("#")
            there = (page.parent / path).resolve() if path else page
            if there not in ids:
                text = there.read_text(encoding="utf-8") if there.is_file() else ""
                ids[there] = set(re.findall(r'\bid="([^"]+)"', text))
            if anchor not in ids[there]:
                dead.append(f"{page.name}: {link}")
    assert len(ids) > 50 and dead == []


@pytest.mark.slow
@pytest.mark.parametrize("link", ["[a](nowhere.md)", "[b](#nothing)", "![c](none.svg)"])
def test_a_broken_link_fails(link: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A broken link makes the build fail, name the link and its page, and keep the old site."""
    source, html = tmp_path / "source", tmp_path / "html"
    source.mkdir()
    (source / "static").symlink_to(ROOT / "docs" / "site" / "static")
    (source / "conf.py").write_text((ROOT / "docs" / "site" / "conf.py").read_text(encoding="utf-8"))
    (source / "index.md").write_text("# Start\n\nAll is well.\n")
    assert gen_site.build(source, html) == 0
    (source / "index.md").write_text(f"# Start\n\nAll is not well: {link}.\n")
    assert gen_site.build(source, html) != 0
    assert "index.md:3" in capfd.readouterr().err
    assert "All is well" in (html / "index.html").read_text(encoding="utf-8")
