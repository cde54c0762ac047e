"""The grouped GEMM for sm_100 on the interpreter, with exact results for small integers, under strict checks.

Rows and columns of no group are NaN before and after, and operands outside the groups are NaN.
"""

# Arrays of many types, and helpers that pytest finds.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from arch_support import find_ptxas

from cute_dialect.interp import InterpError
from cute_dialect.kernels.gemm.grouped_sm100 import GroupedSm100Config, Sm100Config, grouped_sm100_text
from cute_dialect.pipelines import compile
from cute_dialect.pipelines.compiler import compile_lazily

CHECKS = ["race", "uninit", "oob", "sync", "strict"]
SIZES = (5, 0, 70, 1)
SMALL = Sm100Config(tile=(64, 64), stages=2, sms=2, group=2)


def numbers(*shape: int, dtype: Any = np.float16) -> np.ndarray:
    return np.random.default_rng(sum(shape)).integers(-2, 3, shape).astype(dtype)


def wide(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float64)


@cache
def kernel(config: GroupedSm100Config) -> Any:
    return compile(grouped_sm100_text(config), emit="base").kernel("launch")


def run(config: GroupedSm100Config, *given: Any, schedule: str = "round-robin") -> None:
    kernel(config)(*given, device="cpu", checks=CHECKS, schedule=schedule)


def stretches(sizes: tuple[int, ...]) -> tuple[np.ndarray, list[slice]]:
    ends = np.cumsum(sizes).astype(np.int32)
    return ends, [slice(e - n, e) for n, e in zip(sizes, ends.tolist())]


def rows_of_groups(base: Sm100Config, kind: Any, sizes: tuple[int, ...], n: int, k: int) -> list[Any]:
    """Return A, B, C and the ends of groups of rows, and the expected C."""
    ends, parts = stretches(sizes)
    a, b = numbers(ends[-1] + 12, k, dtype=kind), numbers(len(sizes), n, k, dtype=kind)
    a[ends[-1] :] = np.nan
    found = np.full((len(a), n), np.nan, np.float32 if base.output == "f32" else np.float16)
    want = wide(found)
    for g, part in enumerate(parts):
        want[part] = wide(a[part]) @ wide(b[g]).T
    lines = (
        np.ascontiguousarray(b.transpose(0, 2, 1)).transpose(2, 1, 0) if base.major_b == "n" else b.transpose(1, 2, 0)
    )
    return [a, lines, found, ends, want]


@pytest.mark.end_to_end
@pytest.mark.sample("64 rows")
@pytest.mark.parametrize(
    ("base", "kind", "n"),
    [
        (SMALL, np.float16, 72),
        (SMALL._replace(tile=(128, 96), major_b="n", output="f32"), np.float16, 104),
        (SMALL._replace(tile=(256, 64)), np.float16, 72),
        (SMALL._replace(element="f8E4M3FN", output="f32"), ml_dtypes.float8_e4m3fn, 68),
        (SMALL._replace(element="tf32", output="f32", chip="sm_110a"), np.float32, 68),
    ],
    ids=["64 rows", "128 rows, columns of B", "pair", "bytes", "tf32"],
)
def test_groups_of_rows(base: Sm100Config, kind: Any, n: int) -> None:
    *given, want = rows_of_groups(base, kind, SIZES, n, 144 if base.element != "tf32" else 36)
    run(GroupedSm100Config(base), *given)
    assert np.array_equal(wide(given[2]), want, equal_nan=True)


@pytest.mark.slow
@pytest.mark.parametrize("schedule", ["reverse", "adversarial"])
def test_schedules(schedule: str) -> None:
    *given, want = rows_of_groups(SMALL, np.float16, (70, 64, 3), 136, 200)
    run(GroupedSm100Config(SMALL), *given, schedule=schedule)
    assert np.array_equal(wide(given[2]), want, equal_nan=True)


@pytest.mark.slow
def test_more_groups_than_the_table_has() -> None:
    sizes = tuple(np.random.default_rng(0).integers(0, 2, 140).tolist())
    *given, want = rows_of_groups(SMALL, np.float16, sizes, 32, 64)
    run(GroupedSm100Config(SMALL._replace(tile=(64, 32))), *given)
    assert np.array_equal(wide(given[2]), want, equal_nan=True)


@pytest.mark.slow
def test_groups_of_columns() -> None:
    ends, parts = stretches(SIZES)
    a, b = numbers(len(SIZES), 72, 72), numbers(ends[-1] + 4, 72)
    b[ends[-1] :] = np.nan
    found = np.full((72, len(b)), np.nan, np.float16)
    want = wide(found)
    for g, part in enumerate(parts):
        want[:, part] = wide(a[g]) @ wide(b[part]).T
    run(GroupedSm100Config(SMALL, "n"), a.transpose(1, 2, 0), b, found, ends)
    assert np.array_equal(found, want, equal_nan=True)


@pytest.mark.slow
def test_first_rows_of_matrices_with_begins() -> None:
    """The rows of a matrix past its length stay; so do those between groups whose begins are given."""
    lengths = np.array([3, 0, 70], np.int32)
    a, b = numbers(3, 70, 64), numbers(3, 40, 64)
    a[0, 3:], a[1] = np.nan, np.nan
    found = np.full((3, 70, 40), np.nan, np.float16)
    want = wide(found)
    for g, length in enumerate(lengths):
        want[g, :length] = wide(a[g, :length]) @ wide(b[g]).T
    run(GroupedSm100Config(SMALL, "rows"), *(x.transpose(1, 2, 0) for x in (a, b, found)), lengths)
    assert np.array_equal(found, want, equal_nan=True)
    ends, begins = np.array([5, 66], np.int32), np.array([2, 20], np.int32)
    rows, out = numbers(70, 64), np.full((70, 40), np.nan, np.float16)
    run(GroupedSm100Config(SMALL, "m", begins=True), rows, b[:2].transpose(1, 2, 0), out, ends, begins)
    want = np.full((70, 40), np.nan)
    for g, (begin, end) in enumerate(zip(begins, ends)):
        want[begin:end] = wide(rows[begin:end]) @ wide(b[g]).T
    assert np.array_equal(out, want, equal_nan=True)


@pytest.mark.slow
@pytest.mark.skipif(find_ptxas() is None, reason="needs ptxas")
@pytest.mark.parametrize("tile", [(128, 256), (256, 256)])
def test_machine_code(tile: tuple[int, int], tmp_path: Path) -> None:
    """No spills."""
    config = GroupedSm100Config(Sm100Config(tile=tile, stages=2)).deepest()
    (code,) = compile(grouped_sm100_text(config), emit="ptx", chip="sm_100a", cache=False).artifact.code
    (tmp_path / "k.ptx").write_text(code.ptx)
    command = [str(find_ptxas()), "-arch=sm_100a", "-v", str(tmp_path / "k.ptx"), "-o", str(tmp_path / "k.cubin")]
    report = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    assert "0 bytes spill stores, 0 bytes spill loads" in report, report


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (GroupedSm100Config(SMALL, "k"), "form is 'k'; use one of m, n, rows on sm_100"),
        (GroupedSm100Config(SMALL._replace(major_a="m")), "form 'm' needs A contiguous along K"),
        (GroupedSm100Config(SMALL._replace(major_b="n"), "n"), "form 'n' needs B contiguous along K"),
        (GroupedSm100Config(SMALL._replace(batch=True)), "grouped GEMMs do not support batch, direct or scaling"),
        (GroupedSm100Config(SMALL._replace(stages=20)), "use at most 13 stages"),
    ],
)
def test_refused(config: GroupedSm100Config, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        config.check()


# ------------------------------------------------------------------------------------------------------------- mutants

MUTANTS = {
    "a warp stores rows of the next group by TMA": (r"(%whole = arith\.cmpi )sle", r"\1sge"),
    "one row more is stored": (r"(arith\.cmpi )slt(, %\d+, %end )", r"\1sle\2"),
    "the table is read before it is complete": (r"^ *cute_nvgpu\.arch\.barrier\(\).*$", ""),
}
"""A change of the kernel -> a pattern, and its replacement."""


@pytest.mark.slow
@pytest.mark.parametrize("what", MUTANTS)
def test_mutants_are_found(what: str) -> None:
    """Each changed line gives a report of the interpreter, or a wrong result."""
    lines, found = grouped_sm100_text(GroupedSm100Config(SMALL)).splitlines(), 0
    pattern, replacement = MUTANTS[what]
    for i, line in enumerate(lines):
        if not re.search(pattern, line):
            continue
        text = "\n".join([*lines[:i], re.sub(pattern, replacement, line), *lines[i + 1 :]])
        *given, want = rows_of_groups(SMALL, np.float16, SIZES, 72, 72)
        try:
            compile_lazily(text, "mutant", chip="sm_100a").kernel("launch")(*given, device="cpu", checks=CHECKS)
        except InterpError:
            found += 1
            continue
        assert not np.array_equal(wide(given[2]), want, equal_nan=True), f"line {i + 1}: {line}"
        found += 1
    assert found
