"""The table in ``docs/porting.md`` of NVIDIA examples that run, checked by running them.

``CUTE_DSL_EXAMPLES`` names the folder ``examples/python/CuTeDSL`` of a checkout of NVIDIA/cutlass.  Every program of
the table runs there, on the interpreter. A program listed as running succeeds, and any other ends with the
error that the table quotes.  Without a checkout, only the format of the table is checked.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "porting.md").read_text()
EXAMPLES = os.environ.get("CUTE_DSL_EXAMPLES", "")
FOLDERS = (
    "cute/ampere",
    "cute/blackwell/kernel/blockscaled_gemm",
    "cute/blackwell/kernel/dense_gemm",
    "cute/blackwell/tutorial",
    "cute/blackwell_geforce",
    "cute/hopper",
    "cute_ext/ampere",
    "dsl_tutorials",
)


class Row(NamedTuple):
    """A program with its arguments. ``error`` is the expected error text of a program that does not run."""

    path: str
    arguments: str
    error: str


def rows() -> list[Row]:
    section = PAGE.partition("### Which programs run\n")[2].partition("\n### ")[0]
    found: list[Row] = []
    for path, arguments, result in re.findall(r"^\| `([\w/.]+\.py)` \| (.*?) \| (.*) \|$", section, re.MULTILINE):
        quoted = re.search(r"^no: `([^`]+)`", result)
        assert result == "yes" or result.startswith("yes; ") or quoted, f"{path}: {result}"
        found.append(Row(path, arguments.strip("`"), quoted[1] if quoted else ""))
    return found


ROWS = rows()


def test_the_table_has_each_program_once_and_its_count() -> None:
    paths = [row.path for row in ROWS]
    assert paths == sorted(set(paths)) and len(paths) > 40
    assert f"{sum(not row.error for row in ROWS)} of {len(ROWS)} run" in PAGE


@pytest.mark.skipif(not EXAMPLES, reason="CUTE_DSL_EXAMPLES names no checkout of examples/python/CuTeDSL")
def test_every_program_of_the_checkout_has_a_row() -> None:
    there = [p for folder in FOLDERS for p in (Path(EXAMPLES) / folder).rglob("*.py")]
    assert sorted(p.relative_to(EXAMPLES).as_posix() for p in there) == [row.path for row in ROWS]


@pytest.mark.skipif(not EXAMPLES, reason="CUTE_DSL_EXAMPLES names no checkout of examples/python/CuTeDSL")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.path)
def test_cute_dsl_example_runs_as_listed(row: Row, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "cute_dialect.lang.compat", "--device=cpu", str(Path(EXAMPLES) / row.path)]
    ran = subprocess.run(
        [*command, *shlex.split(row.arguments)], cwd=tmp_path, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    output = ran.stdout + ran.stderr
    assert (ran.returncode == 0) == (not row.error), output[-3000:]
    assert row.error in output, output[-3000:]
