"""Drawings of layouts: every cell shows the offset that the layout gives, computed by the oracle or by hand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from svg_pictures import cells, shown
from tensor_layouts import Layout as Oracle

import cute_dialect.lang as cute
from cute_dialect.viz import Drawing, DrawingError, draw, draw_divide, draw_layout, draw_swizzle, draw_tv


@pytest.mark.parametrize(
    "shape, stride",
    [
        ((8, 8), (8, 1)),
        (((2, 4), (4, 2)), ((1, 16), (2, 8))),
        (7, 3),
        ((3, 5, 2), (1, 4, 32)),
        ((4, 6), (0, 2)),
        ((5, 4), (-1, 7)),
    ],
    ids=str,
)
def test_each_cell_matches_the_layout(shape: object, stride: object) -> None:
    """There is one panel per coordinate of the modes after the first two. The title of a cell lists the other cells
    with the same offset.
    """
    oracle = Oracle(shape, stride)
    drawn = draw(cute.make_layout(shape, stride=stride))
    sizes = [cute.size(m) for m in shape] if isinstance(shape, tuple) else [1, shape]
    found = cells(drawn)
    assert len(found) == len(drawn.panels) * sizes[0] * sizes[1]
    for (panel, i, j), (title, text) in found.items():
        coord = (i, j, panel)[: len(sizes)] if isinstance(shape, tuple) else (j,)
        offset = oracle(*coord)
        assert text == [str(offset)]
        assert title.partition("\n")[0].endswith(f"→ {offset}")
        said = f"({','.join(map(str, coord))})" if len(coord) > 1 else str(j)
        assert title.startswith(said)
        same = [c for c in found.values() if c[1] == text]
        assert (len(same) > 1) == ("←" in title)


def test_a_long_mode_is_wrapped() -> None:
    found = cells(draw("100:3"))
    assert len(found) == 4 * 32
    for (_, i, j), (title, text) in found.items():
        n = 32 * i + j
        assert (title, text) == ((f"{n} → {3 * n}", [str(3 * n)]) if n < 100 else ("beyond the layout", []))


def test_nested_coordinates_have_titles_and_heavier_lines() -> None:
    drawn = draw("((2,2),(2,(2,2))):((1,4),(2,(8,16)))")
    title, text = cells(drawn)[0, 3, 6]
    assert title == "(3,6) = ((1,1),(0,(1,1))) → 29" and text == ["29"]
    assert drawn.panels[0].column_breaks == [(2, 1), (4, 2)] and 'class="l2"' in drawn.svg
    # A heavy line precedes the fifth of the eight columns, and light lines precede the third and the seventh.
    (x0, y0), side = shown(drawn).origin[0], shown(drawn).side
    heavy = re.search(r'class="l2"[^>]* d="([^"]*)"', drawn.svg)
    assert heavy is not None and f"M{x0 + 4 * side:g} {y0:g}v{4 * side:g}" in heavy[1]
    assert f"M{x0 + 2 * side:g} {y0:g}v" not in heavy[1]


def test_drawings_of_dynamic_layouts() -> None:
    """Dynamic extents are drawn as a few cells with named strides. If sizes are passed, the drawing is complete."""
    some = cells(draw("(m,4):(ld,1)"))
    assert [some[0, i, 3][1] for i in range(4)] == [["3"], ["ld+3"], ["2ld+3"], ["3ld+3"]]
    assert "⋮" in str(draw("(m,4):(ld,1)")) and "ld: known at run time" in str(draw("(m,4):(ld,1)"))
    full = cells(draw("(m,4):(ld,1)", sizes={"m": 2, "ld": 10}))
    assert {k[1:]: v[1] for k, v in full.items()} == {(i, j): [str(10 * i + j)] for i in range(2) for j in range(4)}
    seen: list[str] = []

    @cute.kernel
    def kernel(x: cute.Tensor) -> None:
        seen.append(str(draw_layout(x.layout)))
        seen.append(draw_layout(x, sizes=(3, 5, 5)).title)

    @cute.jit
    def host(x: cute.Tensor) -> None:
        kernel(x).launch(grid=1, block=32)

    cute.trace(host, cute.runtime.make_fake_tensor(cute.Float32, (cute.sym_int(), cute.sym_int()), (cute.sym_int(), 1)))
    assert "known at run time" in seen[0] and seen[1] == "(3,5):(5,1)"


def test_in_a_host_function() -> None:
    @cute.jit
    def picture() -> None:
        seen.append(cute.viz.render_layout_svg(cute.make_layout((2, 3))))

    seen: list[Drawing] = []
    picture()
    assert {k[1:]: t for k, (_, t) in cells(seen[0]).items()} == {
        (i, j): [str(i + 2 * j)] for i in range(2) for j in range(3)
    }


def test_arrays_and_shapes() -> None:
    import numpy as np

    array = np.zeros((4, 6), np.float32).T[::2]
    assert draw(array).title == "(3,4):(2,6)" and draw((2, (3, 4))).title == "(2,(3,4)):(1,(2,6))"


def test_divided_by_a_tiler() -> None:
    """Cells of one tile have one colour, and the columns on the right match the oracle."""
    from tensor_layouts import zipped_divide

    oracle = zipped_divide(Oracle((9, (4, 8)), (59, (13, 1))), (Oracle(3, 3), Oracle((2, 4), (1, 8))))
    drawn = draw_divide("(9,(4,8)):(59,(13,1))", "(3:3,(2,4):(1,8))")
    found = cells(drawn)
    tiles = {}
    for (panel, k, t), (_, text) in found.items():
        if panel == 1:
            assert text == [str(oracle(k, t))]
            tiles.setdefault(t, set()).add(oracle(k, t))
    assert len(tiles) == 12 and all(len(t) == 24 for t in tiles.values())
    keys: dict[str, set[int]] = {}
    for i in range(9):
        for j in range(32):
            cell = drawn.panels[0].cells[i][j]
            keys.setdefault(cell.key, set()).add(int(cell.lines[0]))
    assert keys == {f"t{t}": held for t, held in tiles.items()}


def test_a_swizzled_layout() -> None:
    layout = cute.make_composed_layout(cute.make_swizzle(2, 0, 2), 0, cute.make_layout((4, 4), stride=(4, 1)))
    found = cells(draw(layout))
    assert all(found[0, i, j][1] == [str(4 * i + (j ^ i))] for i in range(4) for j in range(4))
    both = cells(draw_swizzle(layout, bits=32))
    assert all(
        both[0, i, j][1] == [str(4 * i + j)] and both[1, i, j][1] == [str(4 * i + (j ^ i))]
        for i in range(4)
        for j in range(4)
    )
    assert both[1, 3, 1][0] == "(3,1) → 13 → 14\nbyte 56, bank 14"
    alone = cells(draw("S<3,4,3>"))
    assert all(alone[1, i, j][1] == [str(i ^ j)] for i in range(8) for j in range(8))


# ------------------------------------------------------------------------------------------------- threads and values


def test_threads_and_values(tmp_path: Path) -> None:
    """The tile of ``make_layout_tv`` over (4,32) threads of (4,4) values: each row of threads has 32. The values were
    computed by hand.
    """
    threads, values = cute.make_layout((4, 32), stride=(32, 1)), cute.make_layout((4, 4), stride=(4, 1))
    tiler, tv = cute.make_layout_tv(threads, values)
    drawn = cute.viz.render_tv_layout_svg(tv, tiler, tmp_path / "tv.svg")
    assert (tmp_path / "tv.svg").read_text() == str(drawn)
    found = cells(drawn)
    assert len(found) == 16 * 128
    for (_, i, j), (title, _) in found.items():
        assert title.startswith(f"({i},{j}): T{i // 4 * 32 + j // 4}V{j % 4 + 4 * (i % 4)}\n"), (i, j)
    # The title of a cell also lists the other cells of its thread.
    assert found[0, 0, 0][0].endswith("T0: (0,0), (0,1), (0,2), (0,3), (1,0), (1,1), (1,2), (1,3) and 8 more")
    # Cells are too small for two lines of text, so each thread's block has one label.
    assert {t for t in shown(drawn).words if t.startswith("T")} == {f"T{t}" for t in range(128)}


def test_one_row() -> None:
    tiler, tv = cute.make_layout_tv(cute.make_layout((32,), stride=(1,)), cute.make_layout((1,), stride=(1,)))
    found = cells(draw_tv(tv, (1, tiler[0])))
    assert [found[0, 0, j][1] for j in range(32)] == [[f"T{j}", "V0"] for j in range(32)]


def test_cells_of_several_threads_and_of_none() -> None:
    found = cells(draw_tv("(4,1):(0,0)", (1, 2)))
    assert found[0, 0, 0] == ("(0,0): T0V0, T1V0, T2V0, T3V0\nT0: (0,0)", ["T0+3", "V0"])
    assert found[0, 0, 1] == ("(0,1): no thread", [])


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: draw_tv("(2,2):(2,1)", (1, 2)), "thread 1, value 0 is at 2, outside of the tile of 1 x 2"),
        (lambda: draw_tv("4:1", (2, 2)), "the thread-value layout must have rank 2 (thread, value), got 4:1"),
        (lambda: draw_tv("(2,2):(2,1)", "(2,)2"), "cannot read the tile '(2,)2': "),
        (lambda: draw_tv("(2,2):(2,1)", (2, 2, 2)), "the tile must be (M, N) with positive extents, got (2, 2, 2)"),
        (lambda: draw("(512,512):(1,512)"), "the drawing would have 262144 cells; at most 65536 are drawn"),
        (lambda: draw("(2,2,65):(1,2,4)"), "modes 2 and higher would need 65 panels; at most 64 are drawn"),
        (lambda: draw("(4,8:(8,1)"), "expected ',' or ')', got ':'\n  (4,8:(8,1)\n      ^"),
        (lambda: draw("(rows,8):(8,1,)x)"), "expected the end, got 'x'\n  (rows,8):(8,1,)x)\n                 ^"),
        (lambda: draw("((m,2),4):((1,m),8)"), "the extent m inside a nested mode is dynamic; give sizes={'m': 8}"),
        (lambda: draw("(m,8):(8,1)", sizes={"n": 2}), "sizes= has no dynamic leaf 'n'; leaves: m"),
        (lambda: draw("(4,8):(8,1)", sizes={"m": 2}), "sizes= is not allowed, because (4,8):(8,1) is static"),
        (
            lambda: draw("S<2,0,3> o 0 o (m,8):(8,1)"),
            "a swizzled layout with dynamic sizes cannot be drawn; give sizes={'m': 8}",
        ),
        (
            lambda: draw(object),
            "cannot draw this object; draw a layout, its text such as '(4,8):(8,1)', a tensor, a shape or an array",
        ),
        (lambda: draw("SM80_16x8x15_F32F16F16F32_TN"), "expected the name of an atom"),
        (lambda: draw_divide("(4,4):(4,1)", "(3,5"), "give a tiler such as '(2,4)' or '[3:3;(2,4):(1,8)]'"),
        (
            lambda: draw_divide("(m,4):(4,1)", (2, 2)),
            "draw_divide: the layout (m,4):(4,1) is dynamic; give sizes={'m': 8}",
        ),
        (lambda: draw_swizzle("(4,4):(4,1)"), "draw_swizzle needs a swizzled layout such as"),
        (
            lambda: draw("(2,2)").save("drawing.gif"),
            "the file name must end in .svg, .png, .html, .tex, got 'drawing.gif'",
        ),
        (lambda: draw("(2,2)").save(3), "draw: file must be a path, got 3"),  # type: ignore[arg-type]
        (lambda: draw("(2,2)").save("a\0.svg"), r"draw: file must be a path, got 'a\x00.svg'"),
        (lambda: draw("(2,2)").with_theme("blue"), "theme must be one of auto, light, dark, got 'blue'"),
    ],
)
def test_undrawable_objects_are_rejected(make: object, message: str) -> None:
    with pytest.raises(DrawingError) as e:
        make()  # pyright: ignore
    assert message in str(e.value)


# ------------------------------------------------------------------------------------------------------------- files


def test_files(tmp_path: Path) -> None:
    """Each file format is written atomically and replaces an existing file."""
    drawn = draw("(4,4):(4,1)")
    for suffix in ("svg", "html", "tex", "png"):
        file = tmp_path / f"x.{suffix}"
        file.write_text("before")
        drawn.save(file)
        assert b"before" not in file.read_bytes()
    assert (tmp_path / "x.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    width = int.from_bytes((tmp_path / "x.png").read_bytes()[16:20], "big")
    assert width == 2 * drawn.width
    assert len(list(tmp_path.iterdir())) == 4
    drawn.save(tmp_path / "a" / "folder" / "x.svg")
    drawn.save(tmp_path / "a" / "folder" / "x.svg")
    (tmp_path / "a" / "y.svg").mkdir()
    with pytest.raises(IsADirectoryError):
        drawn.save(tmp_path / "a" / "y.svg")
    assert sorted(p.name for p in (tmp_path / "a").rglob("*")) == ["folder", "x.svg", "y.svg"]
    (tmp_path / "plain").write_text("")
    # The file has default permissions.
    assert (tmp_path / "x.svg").stat().st_mode == (tmp_path / "plain").stat().st_mode
    page = (tmp_path / "x.html").read_text()
    assert drawn.svg in page and page.count("onmouseover") == 1 and "<script" not in page


def test_light_and_dark() -> None:
    """By default colours follow the page. A drawing with a fixed theme has no ``prefers-color-scheme`` rule."""
    drawn = draw("(4,4):(4,1)")
    assert "prefers-color-scheme:dark" in drawn.svg
    light, dark = drawn.with_theme("light").svg, drawn.with_theme("dark").svg
    assert "prefers-color-scheme" not in light + dark and "#ffffff" in light and "#ffffff" not in dark
    assert drawn._repr_svg_() == drawn.svg and drawn.svg in drawn._repr_html_()  # pyright: ignore[reportPrivateUsage]


def test_labels_contrast_with_every_color() -> None:
    """The contrast of text with each fill is at least 4.5, as WCAG level AA requires."""
    from cute_dialect.viz.palette import KINDS, LEVELS, tone

    def light(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        r, g, b = (c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
        return 0.2126 * r + 0.7152 * g + 0.0722 * b

    for theme in ("light", "dark"):
        ink = light(tone("ink", theme))
        for name in [f"q{i}" for i in range(KINDS)] + [f"s{i}" for i in range(LEVELS)] + ["none", "paper", "bad"]:
            a, b = sorted((light(tone(name, theme)), ink))
            assert (b + 0.05) / (a + 0.05) >= 4.5, (theme, name)


def test_latex_has_each_cell(capsys: pytest.CaptureFixture[str]) -> None:
    layout = cute.make_composed_layout(cute.make_swizzle(1, 0, 2), 0, cute.make_layout((4, 2), stride=(2, 1)))
    cute.print_latex(layout)
    printed = capsys.readouterr().out
    found = re.findall(r"\\node\[fill=q\d+\] at \((\d),(\d)\) \{(\d)\};", printed)
    assert {(int(i), int(j)): int(n) for i, j, n in found} == {
        (i, j): layout((i, j)) for i in range(4) for j in range(2)
    }
    assert printed.count("\\node at") == 6 and printed.count("{") == printed.count("}")
    cute.print_latex("SM80_8x8x4_F64F64F64F64_TN")
    assert "{\\shortstack{T5 \\\\ V0}}" in capsys.readouterr().out


def test_latex_of_a_product() -> None:
    """One picture in the arrangement of CUTLASS: A on the left, B above, and C between them, with borders and names."""
    drawn = draw("SM80_16x8x8_F32F16F16F32_TN")
    found = {
        (int(i), int(j)): words
        for i, j, words in re.findall(r"\\node\[fill=\w+\] at \((\d+),(\d+)\) \{\\shortstack\{(.*?)\}\};", drawn.latex)
    }
    assert drawn.latex.count("\\begin{tikzpicture}") == 1 and len(found) == 16 * 8 + 8 * 8 + 16 * 8
    rows, columns = 8 + 3, 8 + 3  # Panels are three cells apart.
    a, b, c = drawn.panels
    for panel, top, left in ((a, rows, 0), (b, 0, columns), (c, rows, columns)):
        for i in range(panel.rows):
            for j in range(panel.columns):
                assert found[top + i, left + j] == " \\\\ ".join(panel.cells[i][j].lines)
    assert all(f"{{{name}}};" in drawn.latex for name in "MNK")
    copy = draw(cute.make_tiled_copy_tv(
        cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cute.Float32, num_bits_per_copy=64),
        cute.make_layout((4, 4), stride=(4, 1)), cute.make_layout((1, 2)),
    ))  # fmt: skip
    # the elements that one instruction moves
    assert "line width=4pt,shift={(-0.5,-0.5)}] (0,0) -- (0,2);" in copy.latex


def test_small_cells_of_one_thread_have_one_word() -> None:
    """If cells are too small for labels, each row of cells of a thread gets one label with its values."""
    copy = cute.make_tiled_copy_tv(
        cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cute.Float16, num_bits_per_copy=128),
        cute.make_layout((16, 8), stride=(8, 1)), cute.make_layout((1, 8)),
    )  # fmt: skip
    words = [w for w in shown(draw(copy)).words if w.startswith("T")]
    assert words == 2 * [f"T{t} V0–7" for t in range(128)]
