"""``cute-bench op``: one group per module, kernels built once, and wrong results that do not stop other cases."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

pytest.importorskip("torch")

from cute_dialect.op.execute import kernel_cache
from cute_dialect.op.select.timing import Sample
from cute_dialect.tools.bench import runner
from cute_dialect.tools.bench.cases import op as bench_op
from cute_dialect.tools.bench.cases.op import cases_of, groups
from cute_dialect.tools.bench.cases.op.attention import named
from cute_dialect.tools.bench.cases.op.decode import Decode, decoding
from cute_dialect.tools.bench.cases.op.rows import Rows
from cute_dialect.tools.bench.runner import BenchError, Trial
from cute_dialect.tools.cute_bench import main


class Fake(NamedTuple):
    """A fake case whose result is right or wrong."""

    name: str
    right: bool = True

    @property
    def operation(self) -> str:
        return "fake"

    def kernels(self) -> Mapping[str, Callable[[], str]]:
        from cute_dialect.kernels.copies.transpose import transpose_text

        return {"one": transpose_text}

    def trial(self) -> Trial:
        assert os.environ["CUTE_KERNELS"] == "folder"

        def check() -> float:
            if not self.right:
                raise BenchError(f"{self.name}: an error of 2 of the limit")
            return 0.5

        return Trial(check, lambda: None, {"torch": lambda: None, "compiled": lambda: None}, 1, 8e6, "TB/s")


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Install one group of three fake cases with known times, of which the second gives a wrong result."""
    times = {"ours": 2.0, "torch": 4.0, "compiled": 3.0}

    def compare(contestants: Sequence[tuple[str, object]], **_: object) -> dict[str, Sample]:
        return {name: Sample(times[name], 0, 0, 1) for name, _ in contestants}

    monkeypatch.setattr(runner, "compare", compare)
    monkeypatch.setattr(bench_op, "groups", lambda: ["fakes"])
    of_group = {"fakes": (Fake("a"), Fake("b", right=False), Fake("c"))}
    monkeypatch.setattr(bench_op, "cases_of", of_group.get)


def test_the_fastest_peer_is_the_peer(fakes: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUTE_KERNELS", raising=False)
    said: list[str] = []
    found = bench_op.run("folder", runs=1, large=False, say=said.append)
    assert found["rows"] == [
        {"name": n, "group": "fakes", "operation": "fake", "torch": 2.0, "compiled": 8 / 3, "us": 2.0, "ours": 4.0,
         "peer": 8 / 3, "unit": "TB/s", "ratio": 1.5}
        for n in ("a", "c")
    ]  # fmt: skip
    assert found["wrong"] == ["b: BenchError: b: an error of 2 of the limit"]
    assert "  WRONG b: BenchError: b: an error of 2 of the limit" in said
    assert said[-1].split() == ["fakes", "fake", "2", "1.500", "1.500", "1.500", "2", "of", "2"]
    assert "CUTE_KERNELS" not in os.environ


@pytest.mark.slow
def test_each_kernel_is_compiled_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(bench_op, "cases_of", {"fakes": (Fake("a"), Fake("b"))}.get)
    (said,) = bench_op.build(str(tmp_path), "sm_90a", ["fakes"])
    assert said.startswith("one: ") and [p.name for p in tmp_path.iterdir()] == ["one"]


def test_groups_are_modules() -> None:
    assert "products" in groups()
    with pytest.raises(ValueError, match=r"--groups: unknown group 'x'; choose from .*products"):
        cases_of("x")


@pytest.mark.sample(every=5)
@pytest.mark.parametrize("group", groups())
def test_cases_have_unique_names_and_kernels(group: str) -> None:
    cases = cases_of(group)
    assert len({c.name for c in cases}) == len(cases) == len({(type(c), c) for c in cases})
    assert all(c.operation and pickle.dumps(c.kernels()) for c in cases)  # Other processes generate the texts.


@pytest.mark.parametrize("operation", ["cross_entropy", "softmax backward"])
def test_calls_launch_only_kernels_of_their_case(operation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other kernels would be missing in the folder of ``--run``."""
    names: list[str] = []
    load = kernel_cache.load_or_compile

    def noted(name: str, text: partial[str], **options: Any) -> Any:
        names.append(name)
        return load(name, text, **options)

    monkeypatch.setattr(kernel_cache, "load_or_compile", noted)
    monkeypatch.setattr(kernel_cache, "LIBRARIES", type(kernel_cache.LIBRARIES)())
    case = Rows(operation.split()[0], "backward" in operation, "bf16", 2, 264)
    case.trial("cpu", False).check()
    assert names and set(names) <= set(case.kernels())


@pytest.mark.slow
def test_attention_launches_only_kernels_of_its_case(monkeypatch: pytest.MonkeyPatch) -> None:
    names: list[str] = []
    load = kernel_cache.load_or_compile

    def noted(name: str, text: partial[str], **options: Any) -> Any:
        names.append(name)
        return load(name, text, **options)

    monkeypatch.setattr(kernel_cache, "load_or_compile", noted)
    for case in (decoding(40, 2, 2, 2, 1, 64, page=16), named(20, True, 64, 1, 2, 1, packed=True, backward=True)):
        names.clear()
        monkeypatch.setattr(kernel_cache, "LIBRARIES", type(kernel_cache.LIBRARIES)())
        trial = case.trial("cpu") if isinstance(case, Decode) else case.problem.trial("cpu")
        trial.check()
        assert names and set(names) == set(case.kernels())


def test_names_of_attention() -> None:
    names = [case.name for case in cases_of("attention_backward")]
    assert {"full 256 backward bf16 1x8x16384", "causal 128 shared backward bf16 8x16x2048"} <= set(names)
    assert {"causal 128 packed backward bf16 4x16x4096", "window 128 backward bf16 1x16x16384"} <= set(names)
    kernels = {kernel for case in cases_of("attention_backward") for kernel in case.kernels()}
    assert {f"attention-backward-bf16-256-right-64x64{end}" for end in ("", "-delta", "-dq")} <= kernels
    assert all("-lse-" in kernel for kernel in kernels if "backward" not in kernel and "combine" not in kernel)
    assert "decode page 64 bf16 d128 h32/8 16x4x16384" in [case.name for case in cases_of("decode")]


def test_unknown_groups_are_rejected(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["op", "--groups", "x", "--build", "y"]) == 1
    assert "cute-bench: error: --groups: unknown group" in capsys.readouterr().err
