"""Drawings of layouts: every cell says what the algebra says."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

import cute_dialect.lang as cute
from cute_dialect.lang import viz

NAMES = {"svg": "http://www.w3.org/2000/svg"}


def cells(drawing: object) -> dict[tuple[int, int], tuple[str, list[str]]]:
    """Return what hovering shows and what stands in each cell, by row and column."""
    found: dict[tuple[int, int], tuple[str, list[str]]] = {}
    for group in ET.fromstring(str(drawing)).findall("svg:g", NAMES):
        rect, title = group.find("svg:rect", NAMES), group.find("svg:title", NAMES)
        assert rect is not None and title is not None and title.text is not None
        at = tuple((int(rect.attrib[k]) - viz.MARGIN) // viz.CELL for k in "yx")
        found[at[0], at[1]] = title.text, [t.text or "" for t in group.findall("svg:text", NAMES)]
    return found


def test_threads_and_values(tmp_path: Path) -> None:
    """The tile of ``make_layout_tv`` over (4,32) threads of (4,4) values: rows of 32 threads, by hand."""
    threads, values = cute.make_layout((4, 32), stride=(32, 1)), cute.make_layout((4, 4), stride=(4, 1))
    tiler, tv = cute.make_layout_tv(threads, values)
    drawn = viz.render_tv_layout_svg(tv, tiler, tmp_path / "tv.svg")
    assert (tmp_path / "tv.svg").read_text() == str(drawn)
    found = cells(drawn)
    assert len(found) == 16 * 128
    for (i, j), (_, text) in found.items():
        assert text == [f"T{i // 4 * 32 + j // 4}", f"V{j % 4 + 4 * (i % 4)}"], (i, j)


def test_one_row() -> None:
    tiler, tv = cute.make_layout_tv(cute.make_layout((32,), stride=(1,)), cute.make_layout((1,), stride=(1,)))
    found = cells(viz.render_tv_layout_svg(tv, (1, tiler[0])))
    assert [found[0, j][1] for j in range(32)] == [[f"T{j}", "V0"] for j in range(32)]


def test_several_threads_hold_one_value_and_nobody() -> None:
    found = cells(viz.render_tv_layout_svg("(4,1):(0,0)", (1, 2)))
    assert found[0, 0] == ("(0,0): T0V0 T1V0 T2V0 T3V0", ["T0 +3", "V0"])
    assert found[0, 1] == ("(0,1): nobody", [])


def test_a_swizzled_layout() -> None:
    layout = cute.make_composed_layout(cute.make_swizzle(2, 0, 2), 0, cute.make_layout((4, 4), stride=(4, 1)))
    found = cells(viz.render_layout_svg(layout))
    assert all(found[i, j][1] == [str(4 * i + (j ^ i))] for i in range(4) for j in range(4))


def test_in_a_host_function() -> None:
    @cute.jit
    def picture() -> None:
        seen.append(cute.viz.render_layout_svg(cute.make_layout((2, 3))))

    seen: list[viz.Drawing] = []
    picture()
    assert re.findall(r"-&gt; (\d)", str(seen[0])) == ["0", "2", "4", "1", "3", "5"]


@pytest.mark.parametrize(
    "draw, message",
    [
        (lambda: viz.render_tv_layout_svg("(2,2):(2,1)", (1, 2)), "thread 1, value 0 is at 2, outside of the tile"),
        (lambda: viz.render_tv_layout_svg("4:1", (2, 2)), "expected a thread-value layout and a tile (M, N) to draw"),
        (lambda: viz.render_layout_svg("(2,2,2):(1,2,4)"), "expected a layout to draw of rank 1 or 2, got (2,2,2)"),
        (lambda: viz.render_layout_svg("(512,512):(1,512)"), "a drawing has at most 16384 cells"),
    ],
)
def test_what_cannot_be_drawn(draw: object, message: str) -> None:
    with pytest.raises(cute.CuteError, match=re.escape(message)):
        draw()  # pyright: ignore


def test_latex_has_each_cell(capsys: pytest.CaptureFixture[str]) -> None:
    layout = cute.make_composed_layout(cute.make_swizzle(1, 0, 2), 0, cute.make_layout((4, 2), stride=(2, 1)))
    cute.print_latex(layout)
    printed = capsys.readouterr().out
    found = re.findall(r"\\node\[box,fill=black!\d+\] at \((\d),(\d)\) \{(\d)\};", printed)
    assert {(int(i), int(j)): int(n) for i, j, n in found} == {
        (i, j): layout((i, j)) for i in range(4) for j in range(2)
    }
    assert printed.count("\\node at") == 6 and printed.count("{") == printed.count("}")
