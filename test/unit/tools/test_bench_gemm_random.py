"""``cute-bench gemm --random``: problems drawn from a seed, and the table of results."""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np
import pytest

from cute_dialect.kernels.gemm.config import BITS, GemmConfig, SkinnyConfig
from cute_dialect.kernels.gemm.mma_sync import WarpConfig
from cute_dialect.op.execute.kernels import text_of
from cute_dialect.op.select.kernel_choice import Problem
from cute_dialect.tools.bench.cases.gemm import (
    build_random,
    chosen,
    computed,
    copied_for_torch,
    of_menu,
    random_problems,
    random_summary,
    way_for,
)
from cute_dialect.tools.cute_bench import main


def test_problems_of_a_seed() -> None:
    found = random_problems(400, 7)
    assert (
        found == random_problems(400, 7) and found[:50] == random_problems(50, 7) and found != random_problems(400, 8)
    )
    assert {p.element for p in found[:4]} == {"f16", "bf16", "f8E4M3FN", "tf32"}
    for element in ("f16", "bf16", "f8E4M3FN", "tf32"):
        majors = [p.major_a + p.major_b for p in found if p.element == element]
        assert all(majors.count(x) > 12 for x in ("kk", "kn", "mk", "mn"))
    for p in found:
        even = 128 // BITS[p.element]
        assert 16 <= p.m <= 16384 and 64 <= p.n <= 16384 and 64 <= p.k <= 16384
        assert p.k % even == 0 and p.n % 8 == 0 and (p.major_a == "k" or p.m % even == 0)
        assert p.major_b == "k" or p.n % even == 0
    powers = [p for p in found if all(x // (x & -x) in (1, 3) for x in p[:3])]
    assert 70 < len(powers) < 140  # A quarter of the problems have round sizes.
    for size, least in ((0, 16), (1, 64), (2, 64)):  # Half of each size lies below the middle of the log scale.
        below = sum(log(int(p[size])) < (log(least) + log(16384)) / 2 for p in found)
        assert 150 < below < 250


def test_each_has_a_kernel() -> None:
    found = [(p, way_for(p)) for p in random_problems(80, 3)]
    for p, way in found:
        kernel = way.kernel if way.choice is None else way.choice.skinny or way.choice.config
        assert isinstance(kernel, WarpConfig | SkinnyConfig | GemmConfig)
        kernel.check()
        assert (way.copied == ()) == (BITS[p.element] == 16 or p.major_a == "k" or p.major_b == "k" or not way.choice)
    # Adding majors for other types must not change the 16-bit problems of a seed.
    assert random_problems(2, 20) == [
        Problem(1856, 4488, 9648, "f16", "f16", "m", "k"), Problem(849, 160, 624, "bf16", "bf16", "k", "k"),
    ]  # fmt: skip


def test_copies_of_operands() -> None:
    large = Problem(4096, 2048, 2048, "f8E4M3FN", "bf16", "m", "n")
    assert way_for(large).copied == ("b",) and copied_for_torch(large) == ("a", "b")
    assert of_menu(large).key == "f8E4M3FN-bf16-mk 4096x2048x2048"
    small = large._replace(m=128, n=128)
    assert way_for(small).choice is None and of_menu(small).major_b == "k"
    assert way_for(large._replace(major_b="k")).copied == ()
    assert copied_for_torch(large._replace(element="tf32", output="f32")) == ()


@pytest.mark.parametrize("copied", [("a",), ("b",), ()])
def test_a_copy_is_given_to_the_kernel(copied: tuple[str, ...]) -> None:
    a, b, c = (np.asfortranarray(np.arange(float(n)).reshape(2, -1)) for n in (6, 8, 4))

    class Array:
        def __init__(self, values: np.ndarray):
            self.values = values

        def contiguous(self) -> np.ndarray:
            return np.ascontiguousarray(self.values)

    given: list[Any] = []
    way = way_for(Problem(64, 64, 64))._replace(copied=copied)
    computed(way, lambda *x: given.extend(x), Array(a), Array(b), c)
    for name, x, whole in zip("ab", given, (a, b)):
        values = x if name in copied else x.values
        assert values.flags.c_contiguous == (name in copied) and (values == whole).all()
    assert given[2] is c


@pytest.mark.slow
def test_building_in_processes(tmp_path: object) -> None:
    said = build_random(str(tmp_path), "sm_90a", 2, 5)
    names = [chosen(p).name for p in random_problems(2, 5)]
    assert [line.split(":")[0] for line in said] == names
    assert all("0 bytes spilled" in line for line in said)
    assert all("cute.gemm" in text_of(chosen(p)) for p in random_problems(2, 5))


def test_the_table() -> None:
    def row(element: str, shape: str, ratio: float) -> dict[str, object]:
        return {"name": f"gemm {element} kk {shape} normal", "ratio": ratio}

    lines = random_summary(
        [row("f16", "8192x8192x8192", 1.0), row("f16", "64x64x64", 0.5), row("tf32", "4096x4096x4096", 2.0)]
    )
    cells = {line[:42].strip(): line[42:].split() for line in lines[1:]}
    assert cells["all"] == ["3", "1.000", "0.500", "0.500", "2", "of", "3"]
    assert cells["f16"] == ["2", "0.707", "0.500", "0.500", "1", "of", "2"]
    assert cells[">= 1e11 flop"] == ["2", "1.414", "1.000", "1.000", "2", "of", "2"]
    assert "bf16" not in cells


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["sgemm", "--random", "3"], "--random applies only to op and to gemm without --tune"),
        (["gemm", "--random", "3", "--tune"], "--random applies only to op and to gemm without --tune"),
        (["gemm", "--seed", "3"], "--seed applies only to --random and --fit"),
    ],
)
def test_contradictory_options_are_rejected(options: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(options) == 1
    assert capsys.readouterr().err == f"cute-bench: error: {said}\n"


def test_a_number_of_problems(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gemm", "--random", "no"]) == 1
    assert "argument --random: expected a number of problems, got 'no'" in capsys.readouterr().err
