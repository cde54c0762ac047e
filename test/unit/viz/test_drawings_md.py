"""The code blocks of docs/drawings.md run and reproduce the stored pictures."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "drawings.md"


@pytest.mark.slow
def test_pictures_of_the_page_are_current(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To update the pictures, run ``python test/unit/viz/test_drawings_md.py``."""
    (tmp_path / "pictures").mkdir()
    monkeypatch.chdir(tmp_path)
    make()
    shown = re.findall(r"!\[[^]]*\]\((pictures/\w+\.svg)\)", PAGE.read_text())
    assert sorted(shown) == sorted(f"pictures/{p.name}" for p in (tmp_path / "pictures").iterdir())
    assert "wgmma" in (PAGE.parent / "pictures/timeline.svg").read_text()
    shown.remove("pictures/timeline.svg")  # The number of executed ops changes with each compiler pass.
    for name in shown:
        assert (PAGE.parent / name).read_text() == (tmp_path / name).read_text(), name


def make() -> None:
    """Run the code blocks of the page."""
    names: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL):
        exec(compile(block, str(PAGE), "exec"), names)


if __name__ == "__main__":
    import os

    os.chdir(PAGE.parent)
    make()
