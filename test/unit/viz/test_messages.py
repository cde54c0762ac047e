"""Layouts in error messages are drawn to the file that ``CUTE_ERROR_SVG`` names, in Python and in ``cute-opt``."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from svg_pictures import cells

import cute_dialect.lang as cute
from cute_dialect.viz.dispatch import draw_message, layouts_in

WRONG = """func.func @f(%l: !cute.layout<"(6,5):(5,1)">) {
  %0 = cute.zipped_divide(%l, %l) : (!cute.layout<"(6,5):(5,1)">, !cute.layout<"(6,5):(5,1)">) -> !cute.layout<"6:5">
  return
}
"""


def test_layouts_of_a_message() -> None:
    said = (
        "f((4,8):(8,1), S<2,0,2> o 0 o (4,4):(4,1)): "
        "tensor<ptr<f32, gmem> o (?,(2,?{div=4})):(1@0,(?,1@1))>, at 3:4, in (2)"
    )
    assert layouts_in(said) == ["(4,8):(8,1)", "S<2,0,2> o 0 o (4,4):(4,1)", "(?,(2,?{div=4})):(1@0,(?,1@1))", "3:4"]
    assert layouts_in("x.py:3: no layouts here (1, 2): nothing") == []


def test_errors_of_the_language(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "pictures"
    monkeypatch.setenv("CUTE_ERROR_SVG", str(folder))
    with pytest.raises(cute.LayoutError) as e:
        cute.zipped_divide(cute.make_layout((4, 6), stride=(6, 1)), (3, 4, 5))
    named = re.search(r"note: drawn in (\S+)", str(e.value))
    assert named is not None and Path(named[1]).parent == folder
    found = cells(Path(named[1]).read_text())
    assert {k[1:]: t for k, (_, t) in found.items()} == {(i, j): [str(6 * i + j)] for i in range(4) for j in range(6)}
    # Messages with equal layouts share a file, and a message without layouts writes none.
    with pytest.raises(cute.LayoutError, match=re.escape(named[1])):
        cute.zipped_divide(cute.make_layout((4, 6), stride=(6, 1)), (3, 4, 5))
    assert len(list(folder.iterdir())) == 1
    assert draw_message("nothing", str(folder)) == "" and draw_message("(512,512):(1,512)", str(folder)) == ""
    monkeypatch.delenv("CUTE_ERROR_SVG")
    with pytest.raises(cute.LayoutError) as e:
        cute.zipped_divide(cute.make_layout((4, 6), stride=(6, 1)), (3, 4, 5))
    assert "drawn" not in str(e.value)


def test_invalid_folder_does_not_hide_the_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.write_text("")
    monkeypatch.setenv("CUTE_ERROR_SVG", str(file))
    with pytest.raises(cute.LayoutError) as e:
        cute.zipped_divide(cute.make_layout((4, 6), stride=(6, 1)), (3, 4, 5))
    assert str(e.value).startswith("error F240: ") and f"note: CUTE_ERROR_SVG: expected a folder, got '{file}'" in str(
        e.value
    )


def test_errors_of_cute_opt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    from cute_dialect.tools.cute_opt import main

    (tmp_path / "wrong.mlir").write_text(WRONG)
    monkeypatch.setenv("CUTE_ERROR_SVG", str(tmp_path))
    assert main([str(tmp_path / "wrong.mlir")]) == 1
    err = capfd.readouterr().err
    named = re.search(r"wrong.mlir:2:8: note: drawn in (\S+\.svg)", err)
    assert named is not None
    # The expected layout, (((2,3),5),1), is one column of 30. The actual layout is the second panel.
    found = cells(Path(named[1]).read_text())
    assert len([k for k in found if k[0] == 0]) == 30 and [found[1, 0, j][1] for j in range(6)] == [
        [str(5 * j)] for j in range(6)
    ]
