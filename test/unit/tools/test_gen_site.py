"""The documentation site without building it: every page has a place, every link and anchor leads somewhere."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from cute_dialect.tools import gen_site

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as repository hosts make them."""
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


def broken(page: Path) -> list[str]:
    """The links of a page to files or headings that are not there."""
    text = re.sub(r"`[^`\n]*`", "", FENCE.sub("", page.read_text(encoding="utf-8")))
    wrong: list[str] = []
    for link in re.findall(r"\]\((?!https?:)([^)\s]+)\)", text):
        path, _, anchor = link.partition("#")
        there = page.parent / path if path else page
        if not there.exists() or (anchor and anchor not in anchors(there)):
            wrong.append(link)
    return wrong


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_and_anchors_lead_somewhere(page: Path) -> None:
    assert broken(page) == []


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "x.md"
    page.write_text("# One: `f(x)`\n[a](#one-fx) [b](#two) [c](no.md) [d](x.md#one-fx) `[e](no.md)`\n")
    assert broken(page) == ["#two", "no.md"]


def test_every_page_has_a_place() -> None:
    assert sorted(p.stem for p in (ROOT / "docs").glob("*.md")) == sorted((*gen_site.GUIDES, *gen_site.REFERENCES))
    assert sorted(p.stem for p in (ROOT / "docs" / "tutorials").glob("*.md")) == sorted(gen_site.TUTORIALS)


def test_every_package_with_a_stub_has_a_page() -> None:
    stubs = {".".join(p.parent.relative_to(ROOT).parts) for p in (ROOT / "cute_dialect").rglob("__init__.pyi")}
    assert stubs == set(gen_site.PACKAGES)


def test_links_become_those_of_the_site() -> None:
    text = "[a](../../examples/hello.py) [b](../../CHANGELOG.md) [c](../../passes)\n"
    text += "```\n[d](../passes)\n```\n[e](layouts.md#f)"
    made = gen_site.page_text(text, "docs/tutorials/epilogue.md")
    code = "```\n[d](../passes)\n```"
    assert made == f"[a](../examples/hello.md) [b](../project/changelog.md) c\n{code}\n[e](layouts.ipynb#f)"
    assert gen_site.page_text("[a](docs/abi.md#in-c)", "CONTRIBUTING.md") == "[a](../abi.md#in-c)"


def test_a_tutorial_becomes_a_notebook() -> None:
    text = (ROOT / "docs" / "tutorials" / "first_kernel.md").read_text(encoding="utf-8")
    cells = json.loads(gen_site.notebook(text))["cells"]
    code = [c["source"] for c in cells if c["cell_type"] == "code"]
    assert code == re.findall(r"^```python\n(.*?)\n```$", text, re.DOTALL | re.MULTILINE)
    assert cells[0]["source"].startswith("# A first kernel")


def test_each_kind_of_atom_is_drawn() -> None:
    families = gen_site.drawn_atoms()
    assert {"mma_sync", "wgmma", "ldmatrix", "tma_load"} <= set(families)
    assert all(families.values())


def test_the_start_page_has_the_kernel_and_the_speed_of_the_results() -> None:
    text = gen_site.start_text()
    assert "@cute.kernel" in text and "geometric mean of the six large" in text and "──trace──►" in text
    assert all(f"\n{page}\n" in text for page in (*gen_site.GUIDES, *gen_site.REFERENCES))
