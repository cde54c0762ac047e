"""The edits of ``docs/blackwell.md`` break the example as the page says."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from cute_dialect.interp import InterpError
from cute_dialect.pipelines import compile as compile_cute

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "test" / "examples" / "tile_sm100.mlir"
PAGE = (ROOT / "docs" / "blackwell.md").read_text()
BUGS = re.findall(r"^```diff\n(.*?)^```\n\n```text\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def run(file: Path, schedule: str = "round-robin") -> tuple[np.ndarray, np.ndarray]:
    """Run the kernel in a file on integers, and return the result and the expected one."""
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, (rows, 192)).astype(np.float16) for rows in (128, 32))
    c = np.full((128, 32), np.nan, np.float32)
    module = compile_cute(str(file), emit="base")
    module.kernel("launch")(a, b, c, device="cpu", checks=("race", "uninit", "strict"), schedule=schedule)
    return c, a.astype(np.float32) @ b.astype(np.float32).T


def edited(diff: str) -> str:
    """Return the example with a diff applied."""
    lines = diff.splitlines()
    old, new = ("\n".join(line[1:] for line in lines if line[0] in (" ", sign)) for sign in "-+")
    text = EXAMPLE.read_text()
    assert text.count(old) == 1
    return text.replace(old, new)


@pytest.mark.sample("adversarial")
@pytest.mark.parametrize("schedule", ["round-robin", "reverse", "random", "adversarial"])
def test_the_example_is_right(schedule: str) -> None:
    got, want = run(EXAMPLE, schedule)
    assert np.array_equal(got, want)


@pytest.mark.sample(every=2)
@pytest.mark.parametrize(("diff", "message"), BUGS)
def test_bug(diff: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / EXAMPLE.name
    file.write_text(edited(diff))
    with pytest.raises(InterpError) as e:
        run(file)
    first = str(e.value).splitlines()[0].replace(f"{tmp_path}/", "")
    assert first == " ".join(message.split())


def test_the_page_has_three_bugs() -> None:
    assert len(BUGS) == 3


SYNCHRONIZATION = re.compile(
    r"arch\.(mbarrier_(wait|init|arrive_expect_tx)|tcgen05_(fence|commit)|tmem_(wait|dealloc|alloc)|barrier\(\)|fence_)"
)
LINES = [i for i, line in enumerate(EXAMPLE.read_text().splitlines()) if SYNCHRONIZATION.search(line)]


@pytest.mark.sample(every=7)
@pytest.mark.parametrize("line", LINES)
def test_every_synchronization_is_needed(line: int, tmp_path: Path) -> None:
    lines = EXAMPLE.read_text().splitlines()
    file = tmp_path / EXAMPLE.name
    file.write_text("\n".join(lines[:line] + lines[line + 1 :]))
    with pytest.raises(InterpError):
        run(file)
