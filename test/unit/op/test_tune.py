"""``op.tune`` with fake times, and kernels that run on the interpreter."""

# The type checker runs without torch.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from products_on_the_cpu import put_in_place  # noqa: E402

from cute_dialect import op  # noqa: E402
from cute_dialect.op import tuning as module  # noqa: E402
from cute_dialect.op import tuning as of_plans  # noqa: E402
from cute_dialect.op.functions import tune as public  # noqa: E402
from cute_dialect.op.plans import gemm as of_plans_gemm  # noqa: E402
from cute_dialect.op.select import gemm_dispatch  # noqa: E402
from cute_dialect.op.select.gemm_dispatch import choose  # noqa: E402
from cute_dialect.op.select.kernel_choice import Problem, table_path, tuned  # noqa: E402
from cute_dialect.op.select.timing import Sample  # noqa: E402

GPU = "NVIDIA Test 300"
tune = partial(op.tune, budget=1e6)  # A slow machine must not make the tuner skip kernels.


def half(*shape: int) -> Any:
    return torch.randint(-2, 3, shape, generator=torch.Generator().manual_seed(sum(shape))).half()


A, B = half(72, 264), half(264, 88)
PROBLEM = Problem(72, 88, 264, major_b="n")


def nothing(*_: object) -> None:
    """Replace kernel runs in the tuner."""


def gpu_of(device: object) -> tuple[str, int]:
    return GPU, 132


@pytest.fixture
def speeds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[dict[str, float]]:
    """Return fake times of kernels by name in microseconds, 10 by default."""
    monkeypatch.setenv("CUTE_CONFIG_DIR", str(tmp_path))
    found: dict[str, float] = {}

    def compare(contestants: Sequence[tuple[str, Callable[[], object]]], **_: object) -> dict[str, Sample]:
        times = {name: found.get(name, 10.0) for name, _ in contestants}
        return {name: Sample(t, t, t, 1) for name, t in times.items()}

    monkeypatch.setattr(module, "compare", compare)
    for tuner in (public, of_plans_gemm):
        monkeypatch.setattr(tuner, "check_place", nothing)
    monkeypatch.setattr(module, "_NEAR", 5)
    monkeypatch.setattr(gemm_dispatch, "gpu_of", gpu_of)
    put_in_place(monkeypatch)
    tuned.cache_clear()
    yield found
    tuned.cache_clear()
    gemm_dispatch.forget_plans()


@pytest.mark.slow
def test_later_calls_use_the_fastest_kernel(speeds: dict[str, float]) -> None:
    rule = choose(PROBLEM, 132, GPU)
    others = [c for c in module.space(PROBLEM) if c != rule]
    speeds[others[2].name] = 7.0
    said: list[str] = []
    found = tune(op.mm, A, B, bias=half(88), say=said.append)
    assert (found.kernel, found.before, found.microseconds, found.before_microseconds) == (others[2], rule, 7.0, 10.0)
    assert found.saved == table_path(GPU) and choose(PROBLEM, 132, GPU) == others[2]
    assert found.measured[0] == (others[2].name, 7.0) and len(found.measured) == len(others) + 1
    assert not found.left_out and said == [f"{len(others) + 1} kernels are {x}" for x in ("compiled", "measured")]
    assert "1.429 times as long" in str(found)


@pytest.mark.slow
def test_gains_below_one_percent_are_not_saved(speeds: dict[str, float]) -> None:
    rule = choose(PROBLEM, 132, GPU)
    speeds[module.space(PROBLEM)[3].name] = 9.95
    found = tune(op.mm, A, B)
    assert found.kernel == rule and found.saved is None and not table_path(GPU).exists()
    speeds[module.space(PROBLEM)[3].name] = 5.0
    assert tune(op.mm, A, B, save=False).saved is None and not table_path(GPU).exists()


@pytest.mark.slow
def test_wrong_kernels_are_excluded(speeds: dict[str, float], monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = next(c for c in module.space(PROBLEM) if c != choose(PROBLEM, 132, GPU))
    speeds[wrong.name] = 1.0
    multiply = op.mm

    def broken(a: Any, b: Any, out: Any = None, **more: Any) -> Any:
        result = multiply(a, b, out, **more)
        if more.get("kernel") == wrong:
            result[5, 7] += 1
        return result

    gemm = public.gemm
    others = {n: getattr(gemm, n) for n in ("bmm", "PLAIN", "FUSED", "GRAPHS")}
    monkeypatch.setattr(public, "gemm", SimpleNamespace(mm=broken, **others))

    def explained(function: object, *given: Any, **more: Any) -> op.Explanation:
        return op.explain(multiply, *given, **more)

    monkeypatch.setattr(public, "explain", explained)
    found = tune(broken, A, B)
    assert (wrong.name, "another result") in found.left_out and found.kernel != wrong


@pytest.mark.slow
def test_tuning_does_not_modify_arguments(speeds: dict[str, float]) -> None:
    out, c = half(72, 88), half(72, 88)
    before = out.clone()
    tune(op.mm, A, B, out, c=c, beta=2.0, activation="relu")
    assert torch.equal(out, before)


@pytest.mark.slow
def test_plans_are_tuned(speeds: dict[str, float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_plans, "prepared", lambda arguments: arguments.launch)
    plan = op.Gemm(element="f16", layout="row", beta=1.0)
    plan.activation = "relu"
    monkeypatch.setattr(plan, "where", lambda: {"gpu": GPU, "sms": 132, "opclass": "tensor_op", "chip": 90})
    a, b, c, d = A, B, half(72, 88), torch.zeros(72, 88).half()
    arguments = plan.arguments(a, b, c, d, device="cpu")
    rule = choose(PROBLEM, 132, GPU)
    faster = next(x for x in module.space(PROBLEM) if x != rule)
    speeds[faster.name] = 7.0
    found = of_plans.tuned_plan(plan, arguments, 1e6, True, None)
    assert (found.kernel, found.before, found.saved) == (faster, rule, table_path(GPU)) and not found.left_out
    assert not d.any() and plan.arguments(a, b, c, d, device="cpu").operation.choice.name == faster.name
    assert tune(op.mm, a, b).kernel == faster  # Plans and functions share a table.
    with pytest.raises(op.DeviceError, match=r"tune: a \(Tensor\) is not a torch tensor on a GPU; pass one"):
        monkeypatch.undo()
        plan.tune(a, b)


@pytest.mark.slow
def test_plans_that_split_f32_are_tuned(speeds: dict[str, float], monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans that split f32 are tuned for the problem of the three tf32 parts, like the function."""
    monkeypatch.setattr(of_plans, "prepared", lambda arguments: arguments.launch)
    plan = op.Gemm(element="f32", layout="row")
    plan.math_operation = "multiply_add_fast_f32"
    monkeypatch.setattr(plan, "where", lambda: {"gpu": GPU, "sms": 132, "opclass": "tensor_op", "chip": 90})
    a, b = half(40, 37).float(), half(37, 72).float()
    problem = Problem(40, 72, 120, "tf32", "f32", sums="two")
    rule = choose(problem, 132, GPU)
    faster = next(x for x in module.space(problem) if x != rule)
    speeds[faster.name] = 7.0
    found = of_plans.tuned_plan(plan, plan.arguments(a, b, device="cpu"), 1e6, True, None)
    assert (found.kernel, found.before, found.saved) == (faster, rule, table_path(GPU)) and not found.left_out
    assert plan.arguments(a, b, device="cpu").operation.choice == faster
    gemm_dispatch.forget_plans()
    assert op.explain(op.mm, a, b, math="3xtf32", gpu=GPU).choice == faster


def test_invalid_tuning_calls_are_rejected() -> None:
    with pytest.raises(op.DeviceError, match=r"tune: a \(Tensor\) is not a torch tensor on a GPU; pass one"):
        tune(op.mm, A, B)
    with pytest.raises(op.UnsupportedError, match=r"tune: linear is not supported; pass op\.mm, op\.bmm or"):
        tune(op.linear, A, B)
    with pytest.raises(op.UnsupportedError, match="tune: kernel is not supported"):
        tune(op.mm, A, B, kernel="f16-f16-kn-64x32-c1")
