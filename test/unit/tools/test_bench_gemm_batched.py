"""``cute-bench gemm --batched``: problems, kernels and checks, with CPU tensors on the interpreter."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from cute_dialect.kernels.gemm.config import GemmConfig  # noqa: E402
from cute_dialect.op.execute.kernels import text_of  # noqa: E402
from cute_dialect.op.select.kernel_choice import Choice, Problem  # noqa: E402
from cute_dialect.pipelines import compile  # noqa: E402
from cute_dialect.tools.bench.cases import gemm as bench_gemm  # noqa: E402
from cute_dialect.tools.bench.cases.gemm import BATCHED, ODD_BATCHES, candidates, check, chosen, inputs, peer_of  # noqa: E402
from cute_dialect.tools.bench.runner import BenchError  # noqa: E402


class Runs:
    """A fake kernel that is ready to be called."""

    def __init__(self, choice: Choice, call: Any):
        self.choice, self._call = choice, call

    def __call__(self, *args: Any) -> None:
        self._call(*args)


@pytest.fixture(autouse=True)
def on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Allocate tensors on the CPU instead of the GPU."""
    for name in ("randint", "randn", "full", "empty"):
        make = getattr(torch, name)
        monkeypatch.setattr(torch, name, lambda *args, make=make, device=None, **options: make(*args, **options))


def test_the_next_kernels() -> None:
    for p in BATCHED[:3]:
        found = candidates(p, 5)
        assert len({c.name for c in found}) == 5 and found[0] == chosen(p) and candidates(p, 1) == found[:1]
        assert all(c.config.batch for c in found)


def test_each_has_a_kernel() -> None:
    assert len(BATCHED) == 12 and {p.matrices for p in BATCHED} == {32, 128, 16, 512}
    for p in BATCHED:
        choice = chosen(p)
        choice.config.check()
        assert choice.config.batch and choice.parts == 1


@pytest.mark.parametrize("major_b", ["k", "n"])
def test_measured_results_match_torch(major_b: str) -> None:
    problem = Problem(40, 48, 72, "f16", "f16", "k", major_b, 3)
    a, b, c = inputs(problem, integers=True)
    assert (a.shape, b.shape, c.shape) == ((40, 72, 3), (48, 72, 3), (40, 48, 3)) and bool(c.isnan().all())
    assert b.stride(1 if major_b == "k" else 0) == 1 and a.stride(1) == 1 and c.stride(1) == 1
    peer, expected = peer_of(problem, a, b)
    peer()
    for i in range(3):
        assert torch.equal(expected[..., i].double(), a[..., i].double() @ b[..., i].double().T)
    one = inputs(problem._replace(matrices=1), integers=False)
    assert [x.shape for x in one] == [(40, 72), (48, 72), (40, 48)]


@pytest.mark.slow
@pytest.mark.parametrize("shape", ODD_BATCHES[:2])
def test_a_wrong_kernel_is_found(shape: tuple[int, int, int, int]) -> None:
    choice = Choice(GemmConfig(tile=(128, 128, 64), stages=6, cluster_m=1, deferred=False, batch=True))
    kernel = compile(text_of(choice), emit="base").kernel("launch")

    def one_is_wrong(a: Any, b: Any, c: Any) -> None:
        kernel(a, b, c, device="cpu")
        c[-1, -1, -1] += 1

    right, wrong = Runs(choice, partial(kernel, device="cpu")), Runs(choice, one_is_wrong)
    assert check(right, shape, integers=True, repeats=2) == 0.0
    assert check(right, shape, integers=False, repeats=1) < bench_gemm._LIMITS["f16"]
    with pytest.raises(BenchError, match="1 elements are wrong on integer data"):
        check(wrong, shape, integers=True, repeats=1)


def test_report_of_choices_and_the_best(monkeypatch: pytest.MonkeyPatch) -> None:
    """With fake measurements, the chosen kernel is as fast as torch and the next one 1.25 times as fast."""
    taken = {chosen(p).name for p in BATCHED}
    checked: list[str] = []

    def measured(runner: Runs, problem: Problem, runs: int, *, integers: bool) -> dict[str, object]:
        return {"name": problem.key, "ratio": 1.0 if runner.choice == chosen(problem) else 1.25}

    monkeypatch.setattr(bench_gemm, "loaded", lambda folder, name: name)
    monkeypatch.setattr(bench_gemm, "Runner", Runs)
    monkeypatch.setattr(bench_gemm, "check", lambda r, *_, **__: checked.append(r.choice.name) or 0.0)
    monkeypatch.setattr(bench_gemm, "measure", measured)
    said: list[str] = []
    result = bench_gemm.run_batched("folder", runs=3, large=True, say=said.append, kernels=2)
    assert len(result["rows"]) == len(result["others"]) == len(BATCHED)  # type: ignore[arg-type]
    assert said[-2:] == [
        "  chosen: geometric mean 1.000, least 1.000",
        "  best: geometric mean 1.250, least 1.250",
    ]
    assert taken < set(checked) and all(any(name in line for line in said) for name in taken)
    alone = bench_gemm.run_batched("folder", runs=3, large=True, say=said.append)
    assert alone["others"] == [] and said[-1] == "  best: geometric mean 1.000, least 1.000"
