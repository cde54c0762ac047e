"""The command ``cute-viz``."""

from __future__ import annotations

import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from svg_pictures import cells

from cute_dialect.tools.cute_viz import EPILOG, build_parser, main
from cute_dialect.viz import draw, draw_banks, draw_divide, draw_swizzle, draw_tv


def test_the_command_draws(tmp_path: Path) -> None:
    """The command runs in a separate process that imports neither xDSL nor numpy."""
    file = tmp_path / "x.svg"
    program = (
        "import sys; from cute_dialect.tools.cute_viz import main; status = main(sys.argv[1:]); "
        "print([m for m in ('xdsl', 'numpy', 'torch', 'mlir') if m in sys.modules]); sys.exit(status)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "(4,32):(32,1)", "-o", file], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "[]\n", "")
    assert {k[1:]: t for k, (_, t) in cells(file.read_text()).items()} == {
        (i, j): [str(32 * i + j)] for i in range(4) for j in range(32)
    }


@pytest.mark.parametrize(
    "arguments, drawing",
    [
        (["(m,8):(ld,1)", "--size", "m=4", "--size", "ld=12"], lambda: draw("(4,8):(12,1)")),
        (["S<3,4,3>"], lambda: draw_swizzle("S<3,4,3>")),
        (
            ["S<2,0,2> o 0 o (4,4):(4,1)", "--swizzle", "--bits", "32"],
            lambda: draw_swizzle("S<2,0,2> o 0 o (4,4):(4,1)", bits=32),
        ),
        (["(2,2):(2,1)", "--tv", "2,2"], lambda: draw_tv("(2,2):(2,1)", (2, 2))),
        (["(2,2):(2,1)", "--tiler", "(2,2)"], lambda: draw_tv("(2,2):(2,1)", (2, 2))),
        (["(8,4):(4,1)", "--divide", "(2,2:2)"], lambda: draw_divide("(8,4):(4,1)", "(2,2:2)")),
        (
            ["(32,8):(8,1)", "--banks", "(32,8):(1,32)", "--bits", "32"],
            lambda: draw_banks("(32,8):(8,1)", "(32,8):(1,32)", bits=32),
        ),
        (
            ["SM80_8x8x4_F64F64F64F64_TN", "--theme", "dark"],
            lambda: draw("SM80_8x8x4_F64F64F64F64_TN").with_theme("dark"),
        ),
    ],
)
def test_each_drawing(
    arguments: list[str], drawing: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = str(drawing())  # pyright: ignore
    assert main([*arguments, "-o", str(tmp_path / "x.svg")]) == 0
    assert (tmp_path / "x.svg").read_text() == wanted
    assert main([*arguments, "-o", "-"]) == 0
    assert capsys.readouterr().out == wanted


def test_tables_of_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["(2,m):(4,1)", "--size", "m=3"]) == 0
    assert main(["(2,2):(2,1)", "--tv", "(2,2)"]) == 0
    out = capsys.readouterr().out
    assert " 1  | 4 | 5 | 6 |" in out and " 1  | T0V1 | T1V1 |" in out


def test_help_teaches(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Each example in the help text runs."""
    import shlex

    with pytest.raises(SystemExit) as e:
        main(["--help"])
    assert e.value.code == 0 and EPILOG.splitlines()[1] in capsys.readouterr().out
    shown = [line.split("  #")[0] for line in EPILOG.splitlines() if line.startswith("  cute-viz ")]
    assert len(shown) == 11
    for n, line in enumerate(shown):
        words = shlex.split(line)
        at = words.index("-o")
        assert main([*words[1:at], "-o", str(tmp_path / f"{n}.svg")]) == 0, line
        ET.parse(tmp_path / f"{n}.svg")
    assert build_parser().prog == "cute-viz"


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["(4,32:(32,1)"], "cute-viz: error: expected ',' or ')', got ':'\n  (4,32:(32,1)\n       ^\n"),
        (
            ["(4,8):(8,1", "-o", "x.svg"],
            "cute-viz: error: expected ',' or ')', got the end\n  (4,8):(8,1\n            ^\n",
        ),
        (
            ["(-4,8):(8,1)"],
            "cute-viz: error: (-4,8):(8,1) is not a layout: expected extents >= 1, got -4 in (-4,8):(8,1)\n",
        ),
        (["(4,8):(8,1)", "--size", "m"], "cute-viz: error: --size: expected NAME=NUMBER such as m=8, got 'm'\n"),
        (
            ["(4,m)", "--size", "m=2", "--size", "m=3"],
            "cute-viz: error: --size: expected one number for m, got 2 and 3\n",
        ),
        (["(4,8):(8,1)", "--size", "m=8"], "cute-viz: error: sizes= is not allowed, because (4,8):(8,1) is static\n"),
        (
            ["(4,8):(8,1)", "-o", "x.gif"],
            "cute-viz: error: the file name must end in .svg, .png, .html, .tex, got 'x.gif'\n",
        ),
        (["(4,8):(8,1)", "-o", "/dev/null/x.svg"], "cute-viz: error: /dev/null/x.svg: Not a directory\n"),
        (
            ["(m,8)"],
            "cute-viz: error: a table of text: the layout (m,8):(1,m) is dynamic; give sizes={'m': 8}\n",
        ),
        (["S<1,0,1>"], "cute-viz: error: a swizzle cannot be printed as text; add -o FILE\n"),
        (["(4,8)", "--divide", "2"], "cute-viz: error: only layouts are printed as text; add -o FILE\n"),
        (["(2,2,2)"], "cute-viz: error: expected rank 1 or 2 to draw, got rank 3; group the modes first\n"),
    ],
)
def test_errors(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 1
    assert capsys.readouterr().err == message


def test_drawing_options_are_exclusive(capsys: pytest.CaptureFixture[str]) -> None:
    for wrong in (["--tv", "2,2", "--divide", "2"], ["--tiler", "2,2", "--divide", "2"]):
        with pytest.raises(SystemExit) as e:
            main(["(2,2)", *wrong])
        assert e.value.code == 2
    assert "give one of --tv, --divide, --swizzle, --banks" in capsys.readouterr().err
