"""Sources of the documentation site: every page is in the navigation, and every link and anchor exists."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from cute_dialect.arch import ATOMS
from cute_dialect.passes.registry import PASSES
from cute_dialect.tools.docs import site
from cute_dialect.tools.docs.reference import PACKAGES, public_names
from cute_dialect.tools.docs.site import atom_pages, dialect_pages, dialect_text, families, names_text

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as repository hosts generate them."""
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


def broken(page: Path) -> list[str]:
    """Return the links of a page to files or headings that do not exist."""
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


def test_every_page_is_in_the_navigation() -> None:
    assert sorted(p.stem for p in (ROOT / "docs").glob("*.md")) == sorted((*site.GUIDES, *site.REFERENCES))
    assert sorted(p.stem for p in (ROOT / "docs" / "tutorials").glob("*.md")) == sorted(site.TUTORIALS)
    assert sorted(p.stem for p in (ROOT / "docs" / "performance").glob("*.md")) == sorted(site.PERFORMANCE)
    reference = [p.stem for p in (ROOT / "docs" / "reference").glob("*.md")]
    assert sorted(reference) == sorted(site.LANGUAGE_REFERENCE)


def test_every_package_with_a_stub_has_a_page() -> None:
    stubs = {".".join(p.parent.relative_to(ROOT).parts) for p in (ROOT / "cute_dialect").rglob("__init__.pyi")}
    assert stubs <= set(PACKAGES)


@pytest.mark.parametrize("package", PACKAGES)
def test_a_page_has_every_public_name(package: str) -> None:
    text = names_text(package, set())
    missing = [n for n in public_names(package) if not re.search(rf"\b{re.escape(n)}\b", text)]
    assert missing == []


def test_links_become_those_of_the_site() -> None:
    text = "[a](../../examples/hello.py) [b](../../CHANGELOG.md) [c](../../passes)\n"
    text += "```\n[d](../passes)\n```\n[e](layouts.md#f)"
    made = site.page_text(text, "docs/tutorials/epilogue.md")
    code = "```\n[d](../passes)\n```"
    assert made == f"[a](../examples/hello.md) [b](../project/changelog.md) c\n{code}\n[e](layouts.ipynb#f)"
    assert site.page_text("[docs/abi.md](docs/abi.md)", "CONTRIBUTING.md") == "[](../abi.md)"
    assert site.page_text("[a](docs/abi.md#in-c)", "CONTRIBUTING.md") == "[a](../abi.md#in-c)"


def test_a_tutorial_becomes_a_notebook() -> None:
    text = (ROOT / "docs" / "tutorials" / "first_kernel.md").read_text(encoding="utf-8")
    cells = json.loads(site.notebook(text))["cells"]
    code = [c["source"] for c in cells if c["cell_type"] == "code"]
    assert code == re.findall(r"^```python\n(.*?)\n```$", text, re.DOTALL | re.MULTILINE)
    assert cells[0]["source"].startswith("# A first kernel")


@pytest.mark.slow  # Each picture is drawn.
def test_every_atom_has_a_row_and_each_picture_an_entry() -> None:
    pages = atom_pages()
    assert {"mma_sync", "wgmma", "ldmatrix", "tma_load"} <= set(pages)
    shown = {atom.name for atoms in families().values() for atom in atoms}
    assert all(name in shown for name in ATOMS if "_64x" not in name)
    for family, atoms in families().items():
        rows = re.findall(r"^\| (\w+) \|", pages[family], re.MULTILINE)
        assert {a.name for a in atoms} <= set(rows)


def test_every_op_is_in_the_table_and_on_a_page() -> None:
    """The generated pages contain every op of docs/dialect.md."""
    whole = (ROOT / "docs" / "dialect.md").read_text(encoding="utf-8")
    ops = re.findall(r"^### `(.*)`$", whole, re.MULTILINE)
    table = dialect_text(whole)
    pages = {group: (text, pictures) for group, text, pictures in dialect_pages()}
    entries = [op for text, _ in pages.values() for op in re.findall(r"^## `(.*)`$", text, re.MULTILINE)]
    assert entries == ops == re.findall(r"^\| \[`([\w.]+)`\]\(reference/dialect/", table, re.MULTILINE)
    text, pictures = pages["algebra"]
    assert "cute.composition" in pictures and "pictures/ops/cute.composition.svg" in text


def test_the_start_page_has_the_kernel_its_speed_and_all_pages() -> None:
    text = site.start_text()
    assert "@cute.kernel" in text and "@cute.jit" in text and "geometric mean of the six large" in text
    assert "| add f32 16384x16384 seed |" in text and "<!--" not in text
    assert all(f"\n{page}\n" in text for page in (*site.GUIDES, *site.REFERENCES))


def test_the_picture_of_the_flow_names_passes_that_exist() -> None:
    picture = (ROOT / "docs" / "pictures" / "flow.svg").read_text(encoding="utf-8")
    named = re.findall(r'class="c"[^>]*>((?:cute|convert-cute)[\w-]*)<', picture)
    assert len(named) == 5 and set(named) <= set(PASSES)
