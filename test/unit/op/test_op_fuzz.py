"""The fuzzer of ``op`` (``test/gpu/op_fuzz.py``) on the interpreter: sample calls are right, and it detects faults."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

sys.path.insert(0, str(Path(__file__).parents[2] / "gpu"))

import op_fuzz  # noqa: E402
from random_calls import FAMILIES, Call, Draw, draw, element_functions, problem_of, public_functions  # noqa: E402

from cute_dialect import op  # noqa: E402

SAMPLE = (
    "mm f16", "mm f32 3xtf32", "mm i8 u8", "bmm e4m3", "linear f16 bias", "matmul f16", "mm_array f16", "int_mm",
    "grouped_mm bf16 rows", "scaled_mm", "softmax bf16", "layer_norm f16", "logsumexp f32", "transpose",
    "cross_entropy", "elementwise", "conv2d dgrad f16", "conv1d fprop f16", "attention f16 full", "attention packed",
    "gated", "rope", "append_kv", "merge_attention", "quantize", "dequantize", "attention_backward",
    "scaled_dot_product_attention", "linear_cross_entropy", "mm_packed", "pack_weight", "pack_gptq", "pack_awq",
    "flex_attention", "create_block_mask", "mla_decode", "topk", "sample", "mm_sparse", "compress_2_4",
    "cascade_attention", "merge_attention_", "embedding", "adamw_",
)  # fmt: skip


@pytest.mark.sample("mm f16")
@pytest.mark.parametrize("family", SAMPLE)
def test_random_calls_are_correct(family: str) -> None:
    result = op_fuzz.job(family, 0, 1, seed=3, device="cpu")
    assert result.wrong == [] and result.made == 1


def test_every_public_function_is_called() -> None:
    """The text of each drawn call starts with the function's name, which must cover all public functions."""
    called = {
        draw(family, random.Random(f"{family} {i}"), "cpu", True).text.partition("(")[0].removeprefix("op.")
        for family in FAMILIES
        for i in range(40 if family == "elementwise" else 1)
    }
    # Elementwise functions are excluded, because the elementwise family covers them.
    assert called == public_functions() - element_functions()


def test_views_and_options_vary() -> None:
    calls = [draw("mm f16", random.Random(i), "cpu", True) for i in range(200)]
    layouts = {m.layout for call in calls for m in call.memory.values()}
    assert layouts == {"contiguous", "padded", "odd rows", "transposed", "misaligned", "strided"}
    assert any(call.learned for call in calls) and any(call.out is not None for call in calls)
    assert any(0 in m.view.shape for call in calls for m in call.memory.values())


def test_jobs_add_up_to_the_requested_calls() -> None:
    jobs = op_fuzz.numbers(5000)
    assert sum(count for _, _, count in jobs) == 5000 and {family for family, _, _ in jobs} == set(FAMILIES)
    assert max(count for _, _, count in jobs) <= op_fuzz.MOST
    assert {family for family, _, _ in op_fuzz.numbers(50, "conv2d")} == {f for f in FAMILIES if "conv2d" in f}
    assert op_fuzz.numbers(20, "rope") == [("rope", 0, 20)]


def _forward(value: float = 1.0) -> Call:
    """Return a call of ``op.add``, which writes to an ``out`` whose rows have gaps."""
    d = Draw(random.Random(1), "cpu", True)
    call = Call("op.add", "cpu")
    call.memory = {n: d.memory((5, 7), torch.float32, layouts=("padded",)) for n in "xy"}
    call.out = d.memory((5, 7), torch.float32, layouts=("padded",), filled=False)
    call.function = lambda x, y, out: op.add(x, y, out=out, device="cpu").mul_(value)
    call.exact = lambda x, y: x + y
    return call


def test_faults_are_found() -> None:
    assert problem_of(_forward()) == ""
    assert "elements are off" in problem_of(_forward(1.0001))
    around = _forward()
    assert around.out is not None
    base, function = around.out.base, around.function

    def overruns(**given: object) -> object:
        base[-1] = 0.0
        return function(**given)

    around.function = overruns
    assert problem_of(around) == "memory around out changed"
    spoils = _forward()
    view, function = spoils.memory["x"].view, spoils.function

    def writes(**given: object) -> object:
        found = function(**given)
        view[0, 0] = 3.5
        return found

    spoils.function = writes
    assert problem_of(spoils) == "argument x or memory around it changed"


def test_unwritten_results_and_wrong_gradients_are_found() -> None:
    unwritten = _forward()
    unwritten.function = lambda x, y, out: out
    assert "elements are off" in problem_of(unwritten)
    learns = _forward()
    learns.out, learns.learned = None, ("x", "y")
    learns.function = lambda x, y: op.add(x, y, device="cpu")
    assert problem_of(learns) == ""
    learns.function = lambda x, y: op.add(x, y.detach() + 0.999 * (y - y.detach()), device="cpu")
    assert problem_of(learns).startswith("gradient of y")
    learns.function = lambda x, y: op.add(x, y.detach(), device="cpu")
    assert problem_of(learns) == "there is no gradient of y"


def test_wrong_calls_are_reported_with_a_reproducer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = op.transpose
    monkeypatch.setattr(op, "transpose", lambda x, out=None, **how: real(x, **how) + 1)
    result = op_fuzz.job("transpose", 0, 1, seed=3, device="cpu")
    assert [(family, number) for family, number, _ in result.wrong] == [("transpose", 0)]
    monkeypatch.setattr(sys, "argv", ["op_fuzz.py", "--device", "cpu", "--seed", "3", "--call", "transpose", "0"])
    assert op_fuzz.main() == 1
    assert "op.transpose: x=" in capsys.readouterr().out
