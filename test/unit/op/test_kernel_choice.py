"""Tables of tuned kernels, and ``cute-bench gemm --tune`` with fake measurements."""

from __future__ import annotations

import json
import multiprocessing
from pathlib import Path

import pytest

from cute_dialect.kernels.gemm.config import GemmConfig, SkinnyConfig
from cute_dialect.op.select import kernel_choice as module
from cute_dialect.op.select.candidates import suits
from cute_dialect.op.select.cost_model import best
from cute_dialect.op.select.gemm_dispatch import choose
from cute_dialect.op.select.kernel_choice import (
    Choice,
    Problem,
    TableError,
    decode,
    encode,
    few_rows,
    save,
    table_path,
    tuned,
)
from cute_dialect.op.tuning import space as tuning_space
from cute_dialect.tools import cute_bench
from cute_dialect.tools.bench.cases import gemm as bench_gemm
from cute_dialect.tools.bench.runner import BenchError

GPU = "NVIDIA Test 100"
PROBLEM = Problem(2048, 2048, 2048)
OTHER = Choice(GemmConfig(group=4))
FEW = few_rows(SkinnyConfig(columns=128, stages_a=6, stages=6, parts=2))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Use an empty settings folder."""
    monkeypatch.setenv("CUTE_CONFIG_DIR", str(tmp_path))
    tuned.cache_clear()
    yield tmp_path
    tuned.cache_clear()


@pytest.mark.parametrize("element", list(bench_gemm.OUTPUTS))
def test_every_choice_of_the_space_can_be_written_and_read(element: str) -> None:
    for problem in bench_gemm.tuned_problems((), element):
        space = tuning_space(problem)
        assert space[0] == best(problem) and len(space) > 20
        for choice in space:
            assert suits(choice, problem)
            assert decode(json.loads(json.dumps(encode(choice)))) == choice
        assert len({c.name for c in space}) == len(space)


def test_user_table_has_priority() -> None:
    assert choose(PROBLEM, gpu=GPU) == best(PROBLEM)
    path = save(GPU, {PROBLEM.key: (OTHER, 612.34), "f16-f16-kk 1x8x8": (FEW, 1.0)})
    assert path == table_path(GPU) and path.name == "nvidia-test-100.json"
    assert choose(PROBLEM, gpu=GPU) == OTHER
    assert choose(PROBLEM._replace(m=1, n=8, k=8), gpu=GPU) == FEW
    assert choose(PROBLEM) == choose(PROBLEM, gpu="another") == best(PROBLEM)
    save(GPU, {PROBLEM.key: (FEW, 700.0)})  # The other entry is unchanged.
    assert set(tuned(GPU)) == {PROBLEM.key, "f16-f16-kk 1x8x8"} and choose(PROBLEM, gpu=GPU) == FEW
    assert json.loads(path.read_text())["kernels"][PROBLEM.key]["tflops"] == 700.0


def test_package_table_is_the_fallback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's table overrides one of two problems of the package's table."""
    shipped = save(GPU, {PROBLEM.key: (OTHER, 1.0), "f16-f16-kk 1x8x8": (OTHER, 1.0)}, tmp_path / "shipped.json")
    monkeypatch.setattr(module, "shipped_path", lambda gpu: shipped)
    module.shipped.cache_clear()
    save(GPU, {PROBLEM.key: (FEW, 2.0)})
    assert tuned(GPU) == {PROBLEM.key: FEW, "f16-f16-kk 1x8x8": OTHER}
    module.shipped.cache_clear()


def test_tables_of_the_package_are_good() -> None:
    tables = list((Path(module.__file__).parent / "tables").glob("*.json"))
    for path in tables:
        assert module.read(path)
        assert path.name == module.shipped_path(json.loads(path.read_text())["gpu"]).name


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "is not a table of kernels"),
        ('{"format": 1}', "'kernels'"),
        (
            '{"format": 1, "kernels": {"f16-f16-kk 8x8x8": {"kernel": {"tiles": 3}}}}',
            "GemmConfig has no field 'tiles'",
        ),
        (
            '{"format": 1, "kernels": {"f16-f16-kk 8x8x8": {"kernel": {"stages": "4"}}}}',
            "must be of type int",
        ),
        ('{"format": 1, "kernels": {"f16-f16-kk 8x8x8": {"kernel": {"stages": 9}}}}', "at most 232448 are available"),
        ('{"format": 1, "kernels": {"8x8": {"kernel": {}}}}', "'8x8' is not a problem"),
        ("[]", "is not a table of kernels"),
    ],
)
def test_invalid_tables_are_ignored(text: str, says: str) -> None:
    path = table_path(GPU)
    path.parent.mkdir(parents=True)
    path.write_text(text)
    with pytest.raises(TableError, match=says) as e:
        choose(PROBLEM, gpu=GPU)
    assert str(path) in str(e.value)


def test_tables_of_another_format_are_ignored() -> None:
    path = table_path(GPU)
    path.parent.mkdir(parents=True)
    path.write_text('{"format": 0, "kernels": 7}')
    assert choose(PROBLEM, gpu=GPU) == best(PROBLEM)


def _write(folder: str, i: int) -> None:
    for j in range(20):
        save(GPU, {f"f16-f16-kk 1x8x{8 * (20 * i + j + 1)}": (OTHER, 1.0)}, Path(folder) / "t.json")


def test_a_reader_never_sees_half_a_table(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    save(GPU, {PROBLEM.key: (OTHER, 1.0)}, path)
    writers = [multiprocessing.get_context("fork").Process(target=_write, args=(str(tmp_path), i)) for i in range(2)]
    for w in writers:
        w.start()
    while any(w.is_alive() for w in writers):
        assert PROBLEM.key in module.read(path)
    assert all(w.exitcode == 0 for w in writers)
    assert not list(tmp_path.glob("*.tmp"))


# ----------------------------------------------------------------------------------------------------------- tuning


class FakeRunner:
    def __init__(self, choice: Choice, module: object):
        self.choice = choice


@pytest.fixture
def speeds(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """Return fake measured speeds of kernels, 100 by default. A negative speed marks a kernel with wrong results."""
    found: dict[str, float] = {}

    def check(runner: FakeRunner, shape: object, *, integers: bool, repeats: int) -> float:
        if found.get(runner.choice.name, 0) < 0:
            raise BenchError(f"{runner.choice.name}: wrong")
        return 0.0

    def measure(runner: FakeRunner, problem: Problem, runs: int, *, integers: bool) -> dict[str, object]:
        ours = speed(runner)
        return {"name": problem.key, "kernel": "", "ours": ours, "peer": 100.0, "unit": "TFLOP/s", "ratio": ours / 100}

    def in_turns(runners: list[FakeRunner], problem: Problem, runs: int) -> dict[str, float]:
        return {r.choice.name: 1e6 / found.get(f"final {r.choice.name}", speed(r)) for r in runners}

    def speed(runner: FakeRunner) -> float:
        return found.get(runner.choice.name, 100.0)

    monkeypatch.setattr(bench_gemm, "in_turns", in_turns)
    monkeypatch.setattr(bench_gemm, "check", check)
    monkeypatch.setattr(bench_gemm, "measure", measure)
    monkeypatch.setattr(bench_gemm, "runner_of", lambda folder, choice: FakeRunner(choice, folder))
    monkeypatch.setattr(cute_bench, "_require", lambda **_: None)
    monkeypatch.setattr(cute_bench, "_machine", lambda: {"gpu": GPU, "torch": "none"})
    return found


def test_tuning_saves_the_fastest_kernel(speeds: dict[str, float], capsys: pytest.CaptureFixture[str]) -> None:
    fastest = Choice(GemmConfig(group=16))
    speeds.update({fastest.name: 120.0, Choice(GemmConfig(group=4)).name: -1.0, FEW.name: 110.0})
    arguments = ["gemm", "--tune", "--run", "DIR", "--shapes", "4096x4096x4096", "128x8192x8192"]
    assert cute_bench.main(arguments) == 0
    out = capsys.readouterr().out
    assert f"saved: {table_path(GPU)}" in out and "wrong result: f16-f16-kk-128x256-c2d-g4" in out
    assert choose(Problem(4096, 4096, 4096), gpu=GPU) == fastest
    assert choose(Problem(128, 8192, 8192), gpu=GPU) == FEW


def test_gains_below_one_percent_are_not_saved(speeds: dict[str, float]) -> None:
    speeds[Choice(GemmConfig(group=16)).name] = 100.9
    assert cute_bench.main(["gemm", "--tune", "--run", "DIR", "--shapes", "4096x4096x4096", "--element", "bf16"]) == 0
    problem = Problem(4096, 4096, 4096, "bf16", "bf16")
    assert tuned(GPU) == {problem.key: best(problem)}


def test_the_final_decides(speeds: dict[str, float]) -> None:
    one, two = Choice(GemmConfig(group=16)), Choice(GemmConfig(group=4))
    speeds.update({one.name: 130.0, two.name: 120.0, f"final {one.name}": 105.0, f"final {two.name}": 108.0})
    assert cute_bench.main(["gemm", "--tune", "--run", "DIR", "--shapes", "4096x4096x4096"]) == 0
    assert choose(Problem(4096, 4096, 4096), gpu=GPU) == two


def test_measuring_does_not_write_the_table(speeds: dict[str, float]) -> None:
    assert cute_bench.main(["gemm_tune", "--run", "DIR", "--shapes", "4096x4096x4096"]) == 0
    assert not table_path(GPU).exists()


def test_contradictory_overrides_are_rejected(speeds: dict[str, float], capsys: pytest.CaptureFixture[str]) -> None:
    assert cute_bench.main(["rows", "--tune", "--run", "DIR"]) == 1
    assert "--tune applies only to gemm and attention, got rows" in capsys.readouterr().err
    with pytest.raises(ValueError, match="unsupported element type 'f64'; expected one of f16, bf16, f8E4M3FN, tf32"):
        bench_gemm.tuned_problems((), "f64")


def test_few_tiles_with_large_k_use_split_k() -> None:
    """Split-K fills the GPU once, counting the blocks of all matrices."""
    few, many = (Problem(256, 256, 16384, "f16", "f16", "k", "n", matrices) for matrices in (4, 400))
    assert best(few).parts > 1 and best(few).config.batch and best(many).parts == 1
    shared = best(few)
    tiles = 4 * (256 // shared.config.tile[0]) * (256 // shared.config.tile[1])
    assert tiles * shared.parts <= 132 and suits(shared, few)
    assert not suits(shared, few._replace(matrices=132)) and suits(shared._replace(parts=1), few._replace(matrices=132))
