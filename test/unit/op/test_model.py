"""The performance model: predicted fastest kernels, and cost files of other GPUs."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from cute_dialect import op
from cute_dialect.kernels.epilogue.combination import Epilogue
from cute_dialect.kernels.gemm.config import GemmConfig, SplitConfig
from cute_dialect.op.select import cost_model
from cute_dialect.op.select.candidates import blocks, menu, suiting, suits
from cute_dialect.op.select.cost_model import (
    COSTS,
    Costs,
    Work,
    best,
    costs_of,
    costs_path,
    predict,
    ranked,
    tell_clusters,
    times,
    work_of,
    write_costs,
)
from cute_dialect.op.select.gemm_dispatch import choose
from cute_dialect.op.select.kernel_choice import Choice, Problem, TableError, decode, encode
from cute_dialect.tools.bench.cases.gemm import of_menu, random_problems

GPU = "NVIDIA Test 200"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Use an empty settings folder."""
    monkeypatch.setenv("CUTE_CONFIG_DIR", str(tmp_path))
    costs_of.cache_clear()
    yield tmp_path
    costs_of.cache_clear()


@pytest.mark.sample("f16-f16-kk")
@pytest.mark.parametrize(
    ("element", "output", "majors"),
    [
        ("f16", "f16", "kk"),
        ("bf16", "f32", "mn"),
        ("f8E4M3FN", "bf16", "kk"),
        ("f8E4M3FN", "f32", "kk"),
        ("tf32", "f32", "kk"),
    ],
)
def test_the_menu_has_kernels_only(element: str, output: str, majors: str) -> None:
    found = menu(Problem(64, 64, 64, element, output, majors[0], majors[1]))
    assert len(found) == len({c.name for c in found}) > 25
    for c in found:
        assert (c.config.element, c.config.output, "".join(c.majors)) == (element, output, majors)
        if c.skinny is not None:
            c.skinny.check()
        elif c.parts > 1:
            SplitConfig(c.config, c.parts).check()
        else:
            c.config.check()
        assert decode(json.loads(json.dumps(encode(c)))) == c


def test_every_problem_has_a_kernel_that_can_compute_it() -> None:
    for p in (
        *map(of_menu, random_problems(120, 11)),
        Problem(1, 8, 8),
        Problem(16384, 16384, 16384),
        Problem(1, 64, 16384),
    ):
        c = best(p)
        assert suits(c, p)
        assert c.parts == 1 or blocks(c, p) <= 132


def test_predictions_of_the_cost_model() -> None:
    large = Problem(8192, 8192, 8192)
    m, n, _ = best(large).config.tile
    assert m * n >= 128 * 192
    assert ranked(large, count=1) == [(predict(best(large), large), best(large))]
    # A larger K takes longer, and no kernel is faster than reading A and B once.
    for p in map(of_menu, random_problems(60, 5)):
        t = predict(best(p), p)
        assert predict(best(p), p._replace(k=2 * p.k)) > t
        size = {"f16": 2, "bf16": 2, "f8E4M3FN": 1, "tf32": 4}[p.element]
        assert t > (p.m * p.k + p.n * p.k) * size / COSTS.dram / 1e6
    # For few rows and a large B, the kernel uses most SMs.
    few = Problem(16, 8192, 8192)
    assert blocks(best(few), few) > 80


@pytest.mark.slow
def test_vectorized_predictions_match_scalar_ones() -> None:
    """Vectorized predictions equal scalar ones for several cost tables, and the fastest kernel comes first."""
    rng = random.Random(3)
    for number, p in enumerate(
        [
            *map(of_menu, random_problems(24, 21)),
            *(of_menu(p)._replace(matrices=2**i % 97) for i, p in enumerate(random_problems(12, 22))),
        ]
    ):
        costs = COSTS
        if number % 2:
            drawn = {n: v * rng.uniform(0.5, 2.0) for n, v in COSTS._asdict().items() if n not in cost_model.RANGES}
            costs = COSTS._replace(**{**drawn, "sms": rng.choice([66, 114, 132, 148])})
        found = menu(p, costs.sms)
        taken, fit = times(found, p, costs), suiting(found, p)
        assert np.isfinite(taken).all() and (taken > 0).all()
        for i in rng.sample(range(len(found)), 40):
            c = found.choice(i)
            assert predict(c, p, costs) == pytest.approx(taken[i], rel=1e-12)
            assert suits(c, p) == fit[i]
            if c.parts > 1:
                assert fit[i] == (blocks(c, p) <= costs.sms and -(-p.k // c.config.tile[2]) >= 2 * c.parts)
        listed = ranked(p, costs)
        assert listed[0] == (taken[fit].min(), best(p, costs)) and len(listed) == fit.sum()
        assert [t for t, _ in listed] == sorted(taken[fit])


def test_costs_of_another_gpu() -> None:
    p = Problem(4096, 4096, 4096)
    half = COSTS._replace(sms=66, fours=15, eights=7)
    write_costs(costs_path(GPU), GPU, half, [("date", "2026-11-23")])
    assert costs_path(GPU).name == "costs-nvidia-test-200.json"
    assert costs_of(GPU).sms == 66
    assert choose(p, gpu=GPU) == best(p, costs_of(GPU)) and choose(p, gpu=GPU).config.sms == 66
    assert 1.7 < predict(best(p, half), p, half) / predict(best(p), p) < 2.3
    assert costs_of("another", sms=114) == COSTS._replace(sms=114, fours=25, eights=12)
    # The model chooses split-K if combining the slices is free, but not if it is expensive.
    q = Problem(128, 512, 16384)
    free = COSTS._replace(split=0.0, split_tile=0.0, few_split=0.0)
    dear = COSTS._replace(split=900.0, few_split=900.0, stream=900.0)
    assert best(q, free).parts > 1 or (best(q, free).skinny is not None and best(q, free).skinny.parts > 1)  # type: ignore[union-attr]
    assert best(q, dear).parts == 1 and not best(q, dear).config.stream_k


def test_clusters_beyond_residency() -> None:
    """If 29 of 30 clusters of four are resident, the last one waits until another ends."""
    p = Problem(120 * 64, 128, 4096)
    fours = Choice(GemmConfig(tile=(64, 128, 64), cluster_m=4, deferred=False, stages=8))
    tell_clusters("a chip", 132, 29, 13)
    told = costs_of("a chip")
    assert (told.fours, told.eights) == (29, 13) and costs_of("another chip").fours == 30
    assert predict(fours, p, told) > 1.4 * predict(fours, p, COSTS)
    assert predict(fours, p._replace(m=116 * 64), told) == predict(fours, p._replace(m=116 * 64), COSTS)
    assert best(p, told) != fours


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "is not a file of GPU costs"),
        ('{"format": 1}', "'costs'"),
        ('{"format": 1, "costs": {"smx": 3}}', "unknown costs smx"),
        ('{"format": 1, "costs": {"dram": "fast"}}', "dram is 'fast'"),
        ('{"format": 1, "costs": {"dram": -1}}', "dram is -1"),
        ('{"format": 1, "costs": {"sms": 0}}', "sms is 0"),
        ('{"format": 1, "costs": {"launch": 1e999}}', "launch is inf"),
        ("[]", "is not a file of GPU costs"),
    ],
)
def test_invalid_cost_files_are_ignored(text: str, says: str) -> None:
    path = costs_path(GPU)
    path.parent.mkdir(parents=True)
    path.write_text(text)
    with pytest.raises(TableError, match=says) as e:
        choose(Problem(64, 64, 64), gpu=GPU)
    assert str(path) in str(e.value)


def test_costs_of_another_format_are_ignored() -> None:
    path = costs_path(GPU)
    path.parent.mkdir(parents=True)
    path.write_text('{"format": 0, "costs": 7}')
    assert costs_of(GPU) == COSTS


def test_costs_of_the_package_are_good() -> None:
    for path in (Path(cost_model.__file__).parent / "tables").glob("costs-*.json"):
        assert isinstance(cost_model.read_costs(path), Costs)


def test_every_sm_count_has_a_choice() -> None:
    assert choose(Problem(4096, 4096, 4096), sms=78).config.sms == 78
    assert isinstance(choose(Problem(4096, 4096, 4096), sms=78), Choice)
    assert GemmConfig().sms == 132


def test_the_choice_counts_the_work_of_an_epilogue() -> None:
    """With a small K, an expensive epilogue selects a ping-pong kernel, which is slower than the default without the
    epilogue.
    """
    p, epilogue = Problem(16384, 4096, 1024, "bf16", "bf16"), Epilogue(bias="n", bias_type="bf16", activation="silu")
    plain, fused = choose(p), choose(p, epilogue=epilogue)
    assert plain.config.schedule == "cooperative" and fused.config.schedule == "pingpong"
    work = work_of(epilogue, "bf16")
    assert work.specials == 2 and work.instructions > work_of(Epilogue(bias="n"), "bf16").instructions
    assert predict(plain, p) < predict(fused, p) < predict(fused, p, work=work) < predict(plain, p, work=work)
    reading = work_of(Epilogue(beta=1.0), "bf16")
    assert reading.read == 16
    assert predict(plain, p, work=reading) > predict(plain, p)
    found = op.explain(op.mm, (16384, 1024), (1024, 4096), element="bf16", activation="silu")
    assert found.epilogue > 0 and "  epilogue  " in str(found) and f"{found.epilogue:.1f} us of it" in str(found)
    assert "  epilogue  " not in str(op.explain(op.mm, (64, 64), (64, 64)))


@pytest.mark.parametrize(
    ("problem", "work", "name"),
    [
        (Problem(2118, 2840, 128, "f16", "f16", "k", "n"), Work(35.5, 2, written=16), "128x128-c1t-q6"),  # 26.7 us
        (Problem(8535, 784, 96, "f16", "f16"), Work(31.5, 1, written=16), "128x112-c1t-q6"),  # 30.0
        (Problem(3295, 136, 344, "f16", "f16", "k", "n"), Work(35, 3), "128x32-c1-q9"),  # 11.4
        (Problem(1245, 9432, 1368, "bf16", "bf16", "k", "n"), Work(10, 2, 16, prefetched=16), "128x128-c2n2t-q6"),
    ],
)
def test_choices_for_epilogues(problem: Problem, work: Work, name: str) -> None:
    """On an H200, these kernels are faster than others with a similar prediction for the plain GEMM."""
    assert best(problem, COSTS, work).name.split("-", 3)[3] == name


def test_few_rows_kernels_pay_for_second_results() -> None:
    p, work = Problem(73, 5680, 5160, "bf16", "bf16", "k", "n"), Work(42.5, 6, written=16)
    times = {c.name.split("-", 3)[3]: t for t, c in ranked(p, COSTS, work=work)}
    assert times["128x192-y-p4-q3.4-h"] > times["64x96-c4dw-q10"]  # 43.8 and 32.5 us on an H200
