"""The edits of ``docs/blackwell.md`` break the example as the page says."""

from __future__ import annotations

import re
import runpy
import shlex
import subprocess
from pathlib import Path

import numpy as np
import pytest

from cute_dialect.errors import CuteError
from cute_dialect.interp import InterpError
from cute_dialect.pipelines import compile as compile_cute
from cute_dialect.tools import cute_run

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "test" / "examples" / "tile_sm100.mlir"
PAIR = "gemm_sm100_pair.mlir"
PAGE = (ROOT / "docs" / "blackwell.md").read_text()
BUGS = re.findall(
    r"^```diff\n(.*?)^```\n\n```sh\n(sed .*?)\n(cute-run .*?)\n```\n\n```text\n(.*?)\n```$",
    PAGE,
    re.MULTILINE | re.DOTALL,
)
BLOCKS = re.findall(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
NAMES = [
    *("pair", "sm_100", "sm_100 groups", "sm_100 scales", "sm_100 sparse", "attention"),
    *("A in tensor memory", "sm_120", "scaled", "mma", "packed", "cluster sizes"),
]


def run(file: Path, schedule: str = "round-robin") -> tuple[np.ndarray, np.ndarray]:
    """Run the kernel in a file on integers, and return the result and the expected one."""
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, (rows, 192)).astype(np.float16) for rows in (128, 32))
    c = np.full((128, 32), np.nan, np.float32)
    module = compile_cute(str(file), emit="base")
    module.kernel("launch")(a, b, c, device="cpu", checks=("race", "uninit", "strict"), schedule=schedule)
    return c, a.astype(np.float32) @ b.astype(np.float32).T


def edited(diff: str, file: Path = EXAMPLE) -> str:
    """Return an example with a diff applied."""
    lines = diff.splitlines()
    old, new = ("\n".join(line[1:] for line in lines if line[0] in (" ", sign)) for sign in "-+")
    text = file.read_text()
    assert text.count(old) == 1
    return text.replace(old, new)


@pytest.mark.sample("adversarial")
@pytest.mark.parametrize("schedule", ["round-robin", "reverse", "random", "adversarial"])
def test_the_example_is_right(schedule: str) -> None:
    got, want = run(EXAMPLE, schedule)
    assert np.array_equal(got, want)


@pytest.mark.sample(every=2)
@pytest.mark.parametrize(("diff", "edit", "command", "message"), BUGS)
def test_bug(
    diff: str, edit: str, command: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    (tmp_path / "test").symlink_to(ROOT / "test")
    subprocess.run(edit, shell=True, check=True)
    assert (tmp_path / "broken.mlir").read_text() == edited(diff, tmp_path / edit.split()[-3])
    assert cute_run.main(shlex.split(command)[1:]) == 1
    assert capsys.readouterr().err.splitlines()[0] == message


def test_the_page_has_three_bugs_of_a_block_and_one_of_a_pair() -> None:
    assert [edit.split()[-3].rpartition("/")[2] for _, edit, _, _ in BUGS] == [EXAMPLE.name] * 3 + [PAIR]


@pytest.mark.parametrize("check", ["race,uninit,strict", "race"])
def test_a_wrong_phase_in_another_order(check: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (file := tmp_path / "broken.mlir").write_text(edited(BUGS[1][0]))
    arguments = ["--device=cpu", "--in=128x192:randint", "--in=32x192:randint", "--in=128x32"]
    assert cute_run.main([str(file), *arguments, f"--check={check}", "--schedule=adversarial"]) == 1
    text = "race on tensor memory .*, lanes .*, columns" if check == "race" else "depends on unwritten tensor memory"
    assert re.search(text, capsys.readouterr().err.splitlines()[0])


@pytest.mark.sample("mma")
@pytest.mark.parametrize(("program", "printed"), BLOCKS, ids=NAMES)
def test_program(program: str, printed: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (file := tmp_path / "program.py").write_text(program)
    runpy.run_path(str(file))
    assert capsys.readouterr().out == printed


def test_the_first_k_block_accumulates(tmp_path: Path) -> None:
    (file := tmp_path / EXAMPLE.name).write_text(EXAMPLE.read_text().replace("cmpi ne, %k, %c0", "cmpi eq, %c0, %c0"))
    with pytest.raises(InterpError, match=r'nothing has written: .*; set the field "accumulate" of the MMA to false'):
        run(file)


def test_an_mbarrier_past_the_end(tmp_path: Path) -> None:
    text = EXAMPLE.read_text().replace('"3:1"', '"2:1"')
    (file := tmp_path / EXAMPLE.name).write_text(text)
    with pytest.raises(InterpError, match=r"mbarrier outside shared memory: 8 bytes at byte offset \d+ of \d+ bytes"):
        run(file)


def test_expect_tx_of_no_bytes(tmp_path: Path) -> None:
    text = re.sub(r"(%bytes\w* = arith.constant) \d+", r"\1 0", EXAMPLE.read_text())
    (file := tmp_path / EXAMPLE.name).write_text(text)
    with pytest.raises(InterpError, match="covers the copy, or expect_tx of its bytes before that phase completes"):
        run(file)


def test_a_misspelled_property(tmp_path: Path) -> None:
    text = EXAMPLE.read_text().replace(
        "columns = 32 : i32} : (!slot)", "columns = 32 : i32, cta_grup = 2 : i32} : (!slot)"
    )
    (file := tmp_path / EXAMPLE.name).write_text(text)
    with pytest.raises(CuteError, match="has no property 'cta_grup'; its properties are columns, cta_group"):
        run(file)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[fa, fsfa]", "[fsfa, fa]", r"cute.gemm: a is \[SFA, A\]; pass \[A, SFA\]"),
        (
            "(cute.Float8E4M3FN)",
            "(cute.Float8E4M3FN, shape_mnk=(16, 8, 64))",
            r"MmaMXF8Op: shape_mnk is \(16, 8, 64\); use",
        ),
    ],
)
def test_mistake_in_a_program(old: str, new: str, message: str, tmp_path: Path) -> None:
    program = BLOCKS[NAMES.index("mma")][0]
    assert program.count(old) == 1
    (file := tmp_path / "program.py").write_text(program.replace(old, new))
    with pytest.raises(CuteError, match=message):
        runpy.run_path(str(file))


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
