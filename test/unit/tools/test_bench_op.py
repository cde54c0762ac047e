"""``cute-bench op``: one group per module, kernels built once, and wrong results that do not stop other cases."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest

pytest.importorskip("torch")

from cute_dialect import op
from cute_dialect.kernels.attention.config import AttentionConfig
from cute_dialect.op.execute import kernel_cache
from cute_dialect.op.select import timing
from cute_dialect.tools.bench import runner
from cute_dialect.tools.bench.cases import op as bench_op
from cute_dialect.tools.bench.cases.op import cases_of, groups
from cute_dialect.tools.bench.cases.op.attention import Attention, named
from cute_dialect.tools.bench.cases.op.decode import Decode, decoding
from cute_dialect.tools.bench.cases.op.flex import Flex
from cute_dialect.tools.bench.cases.op.layers import Gated, LinearLoss, Quantize, Rope
from cute_dialect.tools.bench.cases.op.mixed import Mixed
from cute_dialect.tools.bench.cases.op.optimizers import Adamw
from cute_dialect.tools.bench.cases.op.routing import Route
from cute_dialect.tools.bench.cases.op.routing import Rows as ExpertRows
from cute_dialect.tools.bench.cases.op.rows import NormQuantize, Rows, Sample
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

    def compare(contestants: Sequence[tuple[str, object]], **_: object) -> dict[str, timing.Sample]:
        return {name: timing.Sample(times[name], 0, 0, 1) for name, _ in contestants}

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
    assert "  failed: b: BenchError: b: an error of 2 of the limit" in said
    assert said[-1].split() == ["fakes", "fake", "2", "1.500", "1.500", "1.500", "2", "of", "2"]
    assert "CUTE_KERNELS" not in os.environ


def test_cases_are_measured_until_the_gpu_fails(fakes: None, monkeypatch: pytest.MonkeyPatch) -> None:
    alive = iter([True, False])
    monkeypatch.setattr(bench_op, "is_gpu_alive", lambda: next(alive))
    found = bench_op.run("folder", runs=1, large=False, say=lambda line: None)
    assert [r["name"] for r in cast("list[dict[str, object]]", found["rows"])] == ["a"]
    assert cast("list[str]", found["wrong"])[1:] == ["the GPU context is broken: cases after b were not measured"]


def test_results_are_returned_if_all_cases_fail(fakes: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_op, "cases_of", {"fakes": (Fake("b", right=False),)}.get)
    found = bench_op.run("folder", runs=1, large=False, say=lambda line: None)
    assert found == {"rows": [], "wrong": ["b: BenchError: b: an error of 2 of the limit"]}


class Untraceable(Fake):
    """A case whose kernels cannot be listed, or whose text cannot be generated."""

    def kernels(self) -> Mapping[str, Callable[[], str]]:
        if not self.right:
            raise IndexError("no kernels")
        return {"two": lambda: str(int("text"))}


def test_a_kernel_that_fails_does_not_stop_the_build(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def in_this_process(work: Callable[[Any], str], jobs: Sequence[Any], names: Sequence[str]) -> list[str]:
        return [work(job) for job in jobs]

    monkeypatch.setattr(bench_op, "in_processes", in_this_process)
    built: list[str] = []

    def build_kernel(job: tuple[str, Callable[[], str], str, str]) -> str:
        job[1]()
        built.append(job[0])
        return f"{job[0]}: 0 bytes spilled"

    monkeypatch.setattr(bench_op, "build_kernel", build_kernel)
    cases = (Untraceable("b", right=False), Untraceable("c"), Fake("a"))
    monkeypatch.setattr(bench_op, "cases_of", {"fakes": cases}.get)
    lines = bench_op.build(str(tmp_path), "sm_90a", ["fakes"])
    assert built == ["one"] and lines[1] == "one: 0 bytes spilled"
    assert lines[0].startswith("failed: two: ValueError: ") and lines[2] == "failed: b: IndexError: no kernels"
    monkeypatch.setattr(bench_op, "groups", lambda: ["fakes"])
    assert main(["op", "--groups", "fakes", "--build", str(tmp_path)]) == 1


def _rounded_gradients(call: Attention, q: Any, k: Any, v: Any, grad: Any, missing: slice | None = None) -> list[Any]:
    """Compute gradients with P, dS and O rounded to bf16, as kernels do; dQ misses a block of keys."""
    import torch

    def rounded(x: torch.Tensor) -> torch.Tensor:
        return x.bfloat16().double()

    shared, scale = call.heads // call.heads_k, call.head**-0.5
    many = [x.double().repeat_interleave(shared, 1) for x in (k, v)]
    rows, q, grad = torch.arange(call.queries), q.double(), grad.double()
    scores = q @ many[0].mT * scale
    p = scores.masked_fill(~call.seen(rows, call.queries, call.keys), -torch.inf).softmax(-1)
    delta = (grad * rounded(rounded(p) @ many[1])).sum(-1, keepdim=True)
    ds = rounded(p * (grad @ many[1].mT - delta))
    of_keys = [x.unflatten(1, (-1, shared)).sum(2) for x in (ds.mT @ q * scale, rounded(p).mT @ grad)]
    if missing is not None:
        ds[..., missing] = 0
    return [x.bfloat16() for x in (ds @ many[0] * scale, *of_keys)]


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Run torch on one thread, because the threads of small operations mostly wait for each other."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def test_gradients_are_checked_against_their_rounding_error(one_thread: None) -> None:
    import torch

    call = Attention("bf16", 64, 1, 2, 1, 128, 128, "top_left", None, "bhsd", (), True)
    q, k, v = call.operands("cpu")
    grad = torch.randn_like(q)
    right = _rounded_gradients(call, q, k, v, grad)
    assert 0.2 < call.check_gradient(right, q, k, v, grad) < 0.8
    tile = [x.clone() for x in right]
    tile[1][:, :, -32:] *= 0.9  # The last keys have the smallest gradients.
    wrong = [tile, _rounded_gradients(call, q, k, v, grad, missing=slice(64, 96))]
    wrong.append([right[0], right[1], right[2] * float("nan")])
    for found in wrong:
        with pytest.raises(BenchError, match="times the limit"):
            call.check_gradient(found, q, k, v, grad)
        with pytest.raises(BenchError, match="times the limit"):  # Even if the peer has the same error.
            call.check_gradient(found, q, k, v, grad, [found])
    # If a peer has larger errors than the rounding of P and dS explains, the limit is twice its error.
    reference = call.exact_gradients(0, q, k, v, grad)
    far = [want[None] + 6 * error[None] for _, want, error in reference]
    with pytest.raises(BenchError, match="times the limit"):
        call.check_gradient(far, q, k, v, grad)
    near = [want[None] + 4 * error[None] for _, want, error in reference]
    assert call.check_gradient(far, q, k, v, grad, [near]) < 1


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
@pytest.mark.parametrize("backward", [False, True])
def test_flex_attention_launches_only_kernels_of_its_case(backward: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    names: list[str] = []
    load = kernel_cache.load_or_compile

    def noted(name: str, text: partial[str], **options: Any) -> Any:
        names.append(name)
        return load(name, text, **options)

    monkeypatch.setattr(kernel_cache, "load_or_compile", noted)
    monkeypatch.setattr(kernel_cache, "LIBRARIES", type(kernel_cache.LIBRARIES)())
    case = Flex("alibi", 64, backward).tiny()
    assert case.trial("cpu").check() < 0.5
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


@pytest.mark.parametrize("backward", [False, True])
def test_routing_is_checked(backward: bool) -> None:
    case = Route("f32", 5, 16, 3, "sigmoid", None if backward else 4, None if backward else 2, backward)
    assert 0 <= case.trial("cpu").check() <= 1
    assert len(case.kernels()) == 1


@pytest.mark.parametrize("filters", [(0, 1.0), pytest.param((3, 0.8), marks=pytest.mark.slow)])
def test_samples_are_checked(filters: tuple[int, float]) -> None:
    case = Sample("bf16", 3, 40, *filters)
    assert 0 <= case.trial("cpu").check() <= 1
    assert len(case.kernels()) == 1


@pytest.mark.parametrize("block", [None, 128])
def test_norms_to_8_bits_are_checked(block: int | None) -> None:
    case = NormQuantize("bf16", 3, 256, block)
    assert 0 <= case.trial("cpu").check() <= 1
    assert len(case.kernels()) == 1


@pytest.mark.parametrize("operation", ["dispatch", "combine", "combine backward"])
def test_rows_of_experts_are_checked(operation: str) -> None:
    case = ExpertRows(operation, "bf16", 5, 24, 6, 2)
    assert 0 <= case.trial("cpu").check() <= 1
    assert len(case.kernels()) == 1 + (operation == "dispatch")


@pytest.mark.slow
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("element", ["f8E4M3FN", "f8E5M2"])
def test_attention_of_bytes_is_checked(monkeypatch: pytest.MonkeyPatch, element: str, causal: bool) -> None:
    case = named(4096, causal, 64, element=element).problem.tiny()
    trial = case.trial("cpu", kernel=AttentionConfig(element, 64, tile_m=64, tile_n=32, output="bf16"))
    assert 0.1 < trial.check() <= 1
    attention = op.attention
    monkeypatch.setattr(op, "attention", lambda *a, **k: attention(*a, **k) * 1.1)
    with pytest.raises(BenchError, match=r"of the limit for the norm of the result"):
        trial.check()


def test_names_of_attention() -> None:
    of_bytes = cases_of("attention_8_bit")
    assert "causal 128 f8E4M3FN 4x16x16384" in [case.name for case in of_bytes]
    assert all("f8E" in next(iter(case.kernels())) for case in of_bytes)
    assert of_bytes[0].problem.traffic * 8 == named(1024).problem.traffic * 5  # type: ignore[attr-defined]
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


@pytest.mark.sample("ui4-g128-bf16")
@pytest.mark.parametrize("format", ["ui4-g128-bf16", "i8-row-f32-z"])
def test_packed_weights_on_the_interpreter(format: str) -> None:
    case = Mixed(3, 200, 300, format, "bf16", bias=True)
    trial = case.tiny().trial("cpu")
    assert 0 < trial.check() < 1 and list(trial.peers) == ["torch"]
    assert any(name.startswith("mixed-") for name in case.kernels())
    assert [*case._replace(m=4096, n=5120, k=1280).kernels()][1].startswith("unpack-")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "case"),
    [
        ("quantize", Quantize("bf16", 5, 384)),
        ("rope", Rope("bf16", 2, 9, 4, 2, 32)),
        ("gated", Gated("bf16", 5, 72)),
        ("gated", Gated("bf16", 5, 72, backward=True)),
        ("linear_cross_entropy", LinearLoss("bf16", 40, 64, 150)),
    ],
)
def test_layers_are_checked(function: str, case: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    trial = case.trial("cpu")
    assert 0 < trial.check() <= 1
    assert trial.ours() is not None and trial.traffic > 0

    right = getattr(op, function)

    def wrong(*x: Any, **how: Any) -> Any:
        found = right(*x, **how)
        return (found[0], found[1] * 1.1) if isinstance(found, tuple) else found * 1.1

    monkeypatch.setattr(op, function, wrong)
    with pytest.raises(BenchError, match=f"^{case.operation}"):
        case.trial("cpu").check()


@pytest.mark.parametrize("state", ["f32", pytest.param("bf16", marks=pytest.mark.slow)])
def test_steps_of_optimizers_are_checked(state: str) -> None:
    case = Adamw("bf16", state, ((3, 5), (16,)), 2)
    assert 0 < case.trial("cpu").check() <= 1
    assert len(case.kernels()) == 1
