"""``mm``, ``bmm`` and the functions that call them on GPUs without wgmma: the chosen kernels, exact results, errors."""

# pyright: basic

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from launched_here import Seen, here

import cute_dialect.op as op
from cute_dialect.op.errors import UnsupportedError
from cute_dialect.op.execute import gemm as products
from cute_dialect.op.select.other_dispatch import plan_on

torch = pytest.importorskip("torch")
f16, bf16, f32, f64, i8, e4m3 = (
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.int8,
    torch.float8_e4m3fn,
)


def whole(*shape: int, t: Any = f16) -> Any:
    """Return small integers, whose products every kernel computes exactly."""
    return torch.randint(-4, 5, shape).to(t)


def rows_and_maximum(accum: Any) -> Any:
    return accum, op.epilogue.max(accum, dim=-1)


def doubled(value: Any, *_: Any) -> Any:
    return value * 2


Case = Callable[[], tuple[Any, Any]]


def mm(a: Any, b: Any, **more: Any) -> tuple[Any, Any]:
    return op.mm(a, b, **more), a.to(f64) @ b.to(f64)


def with_bias(a: Any, b: Any, bias: Any) -> tuple[Any, Any]:
    got = op.mm(a, b, bias=bias, activation="relu", alpha=2.0)
    return got, torch.relu(2 * (a.to(f64) @ b.to(f64)) + bias.to(f64))


def added(c: Any, a: Any, b: Any) -> tuple[Any, Any]:
    return op.addmm(c, a, b, beta=0.5), 0.5 * c.to(f64) + a.to(f64) @ b.to(f64)


def into_columns(a: Any, b: Any) -> tuple[Any, Any]:
    out = torch.full((b.shape[1], a.shape[0]), float("nan"), dtype=a.dtype).T
    assert op.mm(a, b, out) is out
    return out, a.to(f64) @ b.to(f64)


def batch(a: Any, b: Any, **more: Any) -> tuple[Any, Any]:
    return op.bmm(a, b, **more), a.to(f64) @ b.to(f64)


def of_factors(a: Any, b: Any, alpha: Any) -> tuple[Any, Any]:
    return op.bmm(a, b, alpha=alpha), alpha.to(f64)[:, None, None] * (a.to(f64) @ b.to(f64))


def layer(x: Any, w: Any, bias: Any) -> tuple[Any, Any]:
    return op.linear(x, w, bias, "relu"), torch.relu(x.to(f64) @ w.T.to(f64) + bias.to(f64))


def maxima(a: Any, b: Any) -> tuple[Any, Any]:
    return op.mm(a, b, epilogue=rows_and_maximum, args={})[1].flatten(), (a.to(f64) @ b.to(f64)).amax(1)


def scaled(a: Any, b: Any, s: Any) -> tuple[Any, Any]:
    return op.mm(a, b, epilogue=lambda accum, s: accum * s, args={"s": s}), (a.to(f64) @ b.to(f64)) * s


def hooked(a: Any, b: Any) -> tuple[Any, Any]:
    return op.mm(a, b, hook=doubled), 2 * (a.to(f64) @ b.to(f64))


def of_rows(a: Any, b: Any, of_a: Any, of_b: Any) -> tuple[Any, Any]:
    wanted = (of_a.to(f64) * a.to(f64)) @ (b.to(f64) * of_b.to(f64))
    return op.scaled_mm(a, b, of_a, of_b, fast=True, dtype=f32), wanted


CASES: dict[str, tuple[Case, str]] = {
    "f16": (lambda: mm(whole(70, 64), whole(64, 72)), "f16-f16-kn-64x64x64-13-sm100-sm_100a"),
    "bf16 to f32": (lambda: mm(whole(70, 64, t=bf16), whole(72, 64, t=bf16).T, dtype=f32), "bf16-f32-kk-64x64x64-13"),
    "odd rows of B": (lambda: mm(whole(70, 64), whole(64, 71)), "f16-128x128x32-3-km-sm_100"),
    "bias": (lambda: with_bias(whole(70, 64), whole(64, 72), whole(72)), "-sm100-alpha-bnf16-relu-sm_100a"),
    "odd bias": (lambda: with_bias(whole(70, 64), whole(64, 71), whole(71)), "f16-128x128x32-3-km-alpha-bnf16-relu"),
    "addmm": (lambda: added(whole(70, 72), whole(70, 64), whole(64, 72)), "-sm100-beta-sm_100a"),
    "broadcast addmm": (lambda: added(whole(72), whole(70, 64), whole(64, 72)), "-sm100-o-beta-sm_100a"),
    "columns": (lambda: into_columns(whole(70, 64), whole(64, 72)), "f16-f16-mk-64x64x64-13-sm100-o-sm_100a"),
    "bmm": (lambda: batch(whole(3, 70, 64), whole(3, 64, 72)), "-sm100-b-sm_100a"),
    "bmm of a shared B": (lambda: batch(whole(3, 70, 64), whole(1, 64, 72)), "f16-f16-kn-64x64x64-13-sm100-sm_100a"),
    "bmm of a shared A": (lambda: batch(whole(1, 70, 64), whole(3, 64, 72)), "-sm100-b-sm_100a"),
    "factors": (lambda: of_factors(whole(3, 70, 64), whole(3, 64, 72), torch.tensor([1, 2, 0.5])), "-sm100-b-g-"),
    "linear": (lambda: layer(whole(2, 35, 64), whole(72, 64), whole(72)), "f16-f16-kk-64x64x64-13-sm100-bnf16-relu"),
    "exact f32": (lambda: mm(whole(70, 64, t=f32), whole(64, 72, t=f32)), "sgemm-warptile-sm_100"),
    "f32 with a bias": (
        lambda: with_bias(whole(70, 64, t=f32), whole(72, 64, t=f32).T, whole(72, t=f32)),
        "f32-f32-kk-warps",
    ),
    "tf32": (lambda: mm(whole(70, 64, t=f32), whole(64, 72, t=f32), math="tf32"), "tf32-f32-kk-64x64x32-13-sm100"),
    "odd tf32": (lambda: mm(whole(70, 63, t=f32), whole(72, 63, t=f32).T, math="tf32"), "tf32-f32-kk-64x64x32-13"),
    "f64": (lambda: mm(whole(70, 64, t=f64), whole(64, 72, t=f64)), "f64-f64-km-warps-sm_100"),
    "i8": (lambda: mm(whole(64, 64, t=i8), whole(80, 64, t=i8).T), "i8-i32-kk-warps-sm_100"),
    "f8": (lambda: mm(whole(70, 64).to(e4m3), whole(64, 72).to(torch.float8_e5m2)), "f8E4M3FN_f8E5M2-bf16-kn-64x64"),
    "odd f8": (lambda: mm(whole(70, 63).to(e4m3), whole(72, 63).to(e4m3).T), "f8E4M3FN-bf16-kk-64x64x128-13-sm100"),
    "epilogue": (lambda: scaled(whole(70, 64), whole(64, 72), whole(70, 1, t=f32)), "-sm100-g-"),
    "reduction": (lambda: maxima(whole(70, 64), whole(64, 64)), "-sm100-g-"),
    "odd reduction": (lambda: maxima(whole(70, 63), whole(63, 64)), "f16-128x128x32-3-km-f32-sm_100"),
    "hook": (lambda: hooked(whole(70, 64), whole(64, 72)), "f16-f16-kn-64x64x64-13-sm100-doubled-sm_100a"),
    "scaled_mm": (
        lambda: of_rows(whole(70, 64).to(e4m3), whole(72, 64).to(e4m3).T, whole(70, 1, t=f32), whole(1, 72, t=f32)),
        "f8E4M3FN-f32-kk-64x64x128-13-sm100-g-",
    ),
    "no K": (lambda: mm(whole(70, 0), whole(0, 72)), "-sm100-sm_100a"),
}
"""Name -> a call with its exact result, and a part of the name of its kernel on a B200."""


def computed(name: str, capability: tuple[int, int]) -> list[str]:
    """Compute a case on a GPU with a compute capability, compare the result, and return the names of the kernels."""
    torch.manual_seed(0)
    with here(Seen(capability=capability)) as seen:
        got, wanted = CASES[name][0]()
        assert torch.equal(got.to(f64), wanted.to(got.dtype).to(f64)), name
        return seen.names


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_results_are_exact_on_a_b200(name: str) -> None:
    names = computed(name, (10, 0))
    # A launcher of an earlier case is not built again.
    assert not names or any(CASES[name][1] in x for x in names)


@pytest.mark.slow
@pytest.mark.parametrize("capability", [(10, 3), (11, 0), (12, 0), (12, 1), (8, 0), (8, 9)])
@pytest.mark.parametrize("name", ["bias", "addmm", "odd rows of B", "f8", "tf32", "odd reduction", "exact f32"])
def test_results_are_exact_on_other_gpus(name: str, capability: tuple[int, int]) -> None:
    names, number = computed(name, capability), 10 * capability[0] + capability[1]
    assert all(x.endswith((f"-sm_{number}", f"-sm_{number}a")) for x in names)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_random_problems_are_exact(seed: int) -> None:
    """Extents, layouts, types and epilogues are random, and results are poisoned before."""
    rng = random.Random(seed)
    torch.manual_seed(seed)
    t = rng.choice([f16, bf16, e4m3])
    m, n, k = rng.randint(1, 150), 8 * rng.randint(1, 30), 16 * rng.randint(1, 20)
    a = whole(m, k).to(t) if rng.random() < 0.5 or t == e4m3 else whole(k, m).to(t).T
    b = whole(n, k).to(t).T if rng.random() < 0.5 or t == e4m3 else whole(k, n).to(t)
    out = torch.full((m, n), float("nan"), dtype=rng.choice([f32, bf16 if t == bf16 else f16]))
    more: dict[str, Any] = {}
    wanted = a.to(f64) @ b.to(f64)
    if rng.random() < 0.5:
        more["bias"] = whole(n, t=f32)
        wanted = wanted + more["bias"]
    if rng.random() < 0.5:
        more |= {"c": whole(m, n).to(out.dtype), "beta": 2.0}
        wanted = wanted + 2 * more["c"].to(f64)
    with here(Seen(capability=(10, 0))):
        op.mm(a, b, out, **more)
    assert torch.equal(out.to(f64), wanted.to(out.dtype).to(f64))


@pytest.mark.slow
def test_calls_are_recorded_and_gradients_use_the_same_kernels() -> None:
    a, b = whole(64, 64), whole(64, 64)
    with here(Seen(capability=(10, 0))) as seen:
        first = op.mm(a, b)
        launched = seen.first
        assert torch.equal(op.mm(a, b), first) and (seen.first, seen.again) == (launched, 1)
        x = a.clone().requires_grad_()
        op.mm(x, b).backward(torch.ones(64, 64).half())
        assert torch.equal(x.grad, b.sum(1).expand(64, 64))
        assert all("-sm100" in name for name in seen.names)


@pytest.mark.slow
@pytest.mark.parametrize("gpu", ["NVIDIA B200", "NVIDIA GeForce RTX 5090", "NVIDIA A100"])
def test_an_explained_kernel_runs_on_the_interpreter(gpu: str) -> None:
    a, b, bias = whole(70, 64), whole(64, 72), whole(72)
    found = op.explain(op.mm, a, b, bias=bias, gpu=gpu)
    reports: list[Any] = []
    got = op.mm(a, b, bias=bias, kernel=found.kernel, device="cpu", report=reports.append)
    assert torch.equal(got.to(f64), a.to(f64) @ b.to(f64) + bias.to(f64)) and len(reports) == 1


@pytest.mark.slow
def test_a_named_kernel() -> None:
    a, b = whole(128, 64), whole(64, 128)
    with here(Seen(capability=(10, 0))) as seen:
        kernel = "f16-f16-kn-128x128x64-6-sm100"
        got = op.mm(a, b, kernel=kernel)
        assert seen.names == [f"{kernel}-sm_100a"] and torch.equal(got.to(f64), a.to(f64) @ b.to(f64))


REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "kernel": (
        lambda: op.mm(whole(64, 64), whole(64, 64), kernel="f16-f16-kk-128x256-c2d"),
        "mm: kernel is 'f16-f16-kk-128x256-c2d'; on sm_100 use one of f16-f16-kn-64x64x64-13-sm100, ",
    ),
    "split_k": (
        lambda: op.mm(whole(64, 64), whole(64, 64), split_k=2),
        "mm: split_k needs the kernels of sm_90, but the GPU is sm_100; use op.Gemm with kernel_cc=100, whose run() ",
    ),
    "promote": (
        lambda: op.mm(whole(64, 64).to(e4m3), whole(64, 64).to(e4m3).T, math="promote"),
        "mm: two-level accumulation needs the kernels of sm_90, but the GPU is sm_100; use math='default' (fast=True",
    ),
    "3xtf32": (
        lambda: op.mm(whole(64, 64, t=f32), whole(64, 64, t=f32), math="3xtf32"),
        "mm: math='3xtf32' needs the kernels of sm_90, but the GPU is sm_100; omit math and accumulator",
    ),
    "accumulator": (
        lambda: op.mm(whole(64, 64), whole(64, 64), accumulator="f16"),
        "mm: accumulation in f16 needs the kernels of sm_90, but the GPU is sm_100; omit math and accumulator",
    ),
    "scaled_mm": (
        lambda: op.scaled_mm(whole(64, 64).to(e4m3), whole(64, 64).to(e4m3).T, torch.ones(1), torch.ones(1)),
        "scaled_mm: two-level accumulation needs the kernels of sm_90, but the GPU is sm_100; use math='default' (fast",
    ),
    "scales of blocks": (
        lambda: op.scaled_mm(
            whole(128, 128).to(e4m3), whole(128, 128).to(e4m3).T, torch.ones(128, 1), torch.ones(1, 1), recipe="block"
        ),
        "scaled_mm: wgmma kernels need sm_90, but the GPU is sm_100; use device",
    ),
}
"""Name -> a call that a B200 refuses, and the beginning of its error."""


@pytest.mark.parametrize("name", REFUSED)
def test_calls_that_a_b200_refuses(name: str) -> None:
    call, message = REFUSED[name]
    with here(Seen(capability=(10, 0))), pytest.raises(UnsupportedError) as e:
        call()
    assert str(e.value).startswith(message)


def test_the_target_is_that_of_the_gpu() -> None:
    """The plan of a call depends on the GPU of its arrays, and explanations name the kernel that is launched."""
    chips = {(10, 0): "sm100", (10, 3): "sm103", (11, 0): "sm110", (12, 1): "sm121"}
    a, b = whole(128, 64), whole(64, 128)
    found = list[str]()

    def planned(*given: Any) -> Any:
        found.append(plan_on(*given)[0].kernel.name)
        raise RuntimeError("planned")

    for capability, chip in chips.items():
        with pytest.MonkeyPatch.context() as patch, here(Seen(capability=capability)):
            patch.setattr(products, "plan_on", planned)
            with pytest.raises(RuntimeError, match="planned"):
                op.mm(a, b)
        assert chip in found[-1]
    explained = op.explain(op.mm, (128, 64), (64, 128), gpu="NVIDIA GB300")
    assert explained.kernel == "f16-f16-kn-64x64x64-13-sm103-sm_103a"
