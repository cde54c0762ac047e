"""The grouped Hopper GEMM on the interpreter, with exact results for small integers. Rows of no group are NaN before
and after, and the padding around a group is NaN or infinite.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from cute_dialect.kernels.gemm.config import GemmConfig, GroupedConfig
from cute_dialect.kernels.gemm.grouped import grouped_text
from cute_dialect.pipelines import compile

CHECKS = ["race", "uninit", "oob", "sync"]
BASE = GemmConfig(
    cluster_m=1, deferred=False, early=False, serpentine=False, tile=(128, 64, 64), stages=3, sms=3, group=2
)
TURNS = BASE._replace(schedule="pingpong", tile=(64, 64, 64))
SIZES = (5, 0, 70, 64, 1, 0)


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).integers(-2, 3, shape).astype(np.float16)


def wide(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float64)


@cache
def kernel(config: GroupedConfig) -> Any:
    return compile(grouped_text(config), emit="base").kernel("launch")


def run(config: GroupedConfig, *given: Any, checks: Sequence[str] = CHECKS) -> None:
    kernel(config)(*given, device="cpu", checks=checks)


def stretches(sizes: tuple[int, ...]) -> tuple[np.ndarray, list[slice]]:
    ends = np.cumsum(sizes).astype(np.int32)
    return ends, [slice(e - n, e) for n, e in zip(sizes, ends.tolist())]


@pytest.mark.end_to_end
@pytest.mark.sample("deferred")
@pytest.mark.parametrize(
    "base",
    [
        BASE._replace(deferred=True),
        TURNS,
        BASE._replace(tile=(64, 128, 64), cluster_m=2, sms=4),
        BASE._replace(tile=(192, 64, 64), cluster_n=2, sms=4, output="f32"),
        BASE._replace(tile=(256, 64, 64), major_b="n", major_c="m"),
    ],
    ids=["deferred", "turns", "along M", "along N, f32", "256 rows, columns of C"],
)
def test_groups_of_rows(base: GemmConfig) -> None:
    ends, parts = stretches(SIZES)
    rows = ends[-1] + 12  # a multiple of 8, because TMA needs columns of whole 16 bytes if A is M-major
    a, b = numbers(rows, 72), numbers(len(SIZES), 88, 72)
    a[ends[-1] :] = np.nan
    order = "F" if base.major_c == "m" else "C"
    found = np.full((rows, 88), np.nan, np.float32 if base.output == "f32" else np.float16, order)
    want = wide(found)
    for g, part in enumerate(parts):
        want[part] = wide(a[part]) @ wide(b[g]).T
    lines = np.ascontiguousarray(b.transpose(0, 2, 1)).transpose(2, 1, 0) if base.major_b == "n" else None
    run(GroupedConfig(base), a, b.transpose(1, 2, 0) if lines is None else lines, found, ends)
    assert np.array_equal(found, want, equal_nan=True)


@pytest.mark.slow
@pytest.mark.parametrize(("tile", "deferred"), [((64, 80, 128), True), ((128, 176, 128), False)])
def test_groups_with_scales(tile: tuple[int, int, int], deferred: bool) -> None:
    """Tiles overlap two or three scale blocks of columns. Scales outside a group are NaN."""
    ends, parts = stretches(SIZES)
    n, k = 248, 656
    rng, rows = np.random.default_rng(n), ends[-1] + 12
    a, b = (rng.integers(-2, 3, shape).astype(ml_dtypes.float8_e4m3fn) for shape in ((rows, k), (len(SIZES), n, k)))
    sa, sb = (np.exp2(rng.integers(-2, 3, shape)).astype(np.float32) for shape in ((rows, 6), (len(SIZES), 2, 6)))
    a[ends[-1] :], sa[ends[-1] :] = np.nan, np.nan
    output = ml_dtypes.bfloat16 if deferred else np.float32
    found = np.full((rows, n), np.nan, output)
    want = wide(found)
    for g, part in enumerate(parts):
        of_b = sb[g].repeat(128, 0)[:n].repeat(128, 1)[:, :k]
        want[part] = (wide(a[part]) * sa[part].repeat(128, 1)[:, :k]) @ (wide(b[g]) * of_b).T
    base = BASE._replace(
        element="f8E4M3FN", output="bf16" if deferred else "f32", tile=tile, promote=True, scaled=True,
        deferred=deferred,
    )  # fmt: skip
    run(GroupedConfig(base), a, b.transpose(1, 2, 0), found, ends, sa, sb.transpose(1, 2, 0))
    assert np.array_equal(wide(found), wide(want.astype(output)), equal_nan=True)


@pytest.mark.slow
def test_more_groups_than_the_table_has() -> None:
    sizes = tuple(np.random.default_rng(0).integers(0, 2, 260).tolist())
    ends, parts = stretches(sizes)
    a, b = numbers(ends[-1], 64), numbers(len(sizes), 16, 64)
    found = np.full((ends[-1], 16), np.nan, np.float16)
    run(GroupedConfig(BASE._replace(tile=(64, 16, 64))), a, b.transpose(1, 2, 0), found, ends)
    assert all(np.array_equal(found[p], wide(a[p]) @ wide(b[g]).T) for g, p in enumerate(parts))


@pytest.mark.slow
@pytest.mark.parametrize("base", [BASE, TURNS._replace(cluster_n=2, sms=4)], ids=["cooperative", "turns, shared"])
def test_groups_of_steps(base: GemmConfig) -> None:
    ends, parts = stretches(SIZES)
    a, b = numbers(ends[-1] + 4, 72), numbers(ends[-1] + 4, 88)  # 144 rows
    a[ends[-1] :], b[ends[-1] :] = np.nan, np.inf
    a[7], b[8] = np.nan, -np.inf  # in the third group
    found = np.full((len(SIZES), 72, 88), np.nan, np.float16)
    run(GroupedConfig(base._replace(major_a="m", major_b="n"), "k"), a.T, b.T, found.transpose(1, 2, 0), ends)
    for g, part in enumerate(parts):
        if g != 2:
            assert np.array_equal(found[g], wide(a[part]).T @ wide(b[part])), g
        else:
            assert not np.isfinite(found[g]).any()


@pytest.mark.slow
def test_groups_of_columns() -> None:
    ends, parts = stretches(SIZES)
    a, b = numbers(len(SIZES), 72, 72), numbers(ends[-1] + 4, 72)
    b[ends[-1] :] = np.nan
    found = np.full((72, ends[-1] + 4), np.nan, np.float16)
    want = wide(found)
    for g, part in enumerate(parts):
        want[:, part] = wide(a[g]) @ wide(b[part]).T
    run(GroupedConfig(TURNS, "n"), a.transpose(1, 2, 0), b, found, ends)
    assert np.array_equal(found, want, equal_nan=True)


@pytest.mark.slow
def test_rows_in_use() -> None:
    lengths = (5, 0, 130, 136)
    a, b = numbers(4, 136, 72), numbers(4, 72, 72)
    found = np.full((4, 136, 72), np.nan, np.float16)
    want = wide(found)
    for g, n in enumerate(lengths):
        a[g, n:] = np.nan
        want[g, :n] = wide(a[g, :n]) @ wide(b[g]).T
    given = (x.transpose(1, 2, 0) for x in (a, b, found))
    run(GroupedConfig(BASE, "rows"), *given, np.array(lengths, np.int32))
    assert np.array_equal(found, want, equal_nan=True)


@pytest.mark.slow
@pytest.mark.parametrize("ends", [(3, 1000, 20, -5), (7, 2, 9, 4)])
def test_invalid_offsets_stay_in_bounds(ends: tuple[int, ...]) -> None:
    a, b = numbers(40, 64), numbers(4, 64, 64)
    memory = np.full((80, 64), 7, np.float16)
    run(GroupedConfig(TURNS), a, b.transpose(1, 2, 0), memory[20:60], np.array(ends, np.int32), checks=["oob"])
    assert (memory[:20] == 7).all() and (memory[60:] == 7).all()


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (GroupedConfig(BASE, "q"), "form is 'q'; use one of m, n, k, rows"),
        (GroupedConfig(BASE._replace(batch=True)), "grouped GEMMs do not support batch"),
        (GroupedConfig(BASE._replace(deferred=True, major_a="m", major_b="n"), "k"), "needs deferred=False"),
        (GroupedConfig(BASE._replace(major_b="n"), "k"), "needs operands contiguous .*, got A along k"),
        (GroupedConfig(BASE._replace(major_a="m")), "needs operands contiguous .*, got A along m"),
        (GroupedConfig(BASE._replace(major_b="n"), "n"), "needs operands contiguous .*, got A along k"),
        (GroupedConfig(BASE, "rows", begins=True), "needs begins=False"),
        (GroupedConfig(BASE._replace(stages=9)), "bytes of shared memory"),
    ],
)
def test_unsupported_configurations_are_rejected(config: GroupedConfig, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        config.check()
