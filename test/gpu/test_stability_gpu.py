"""Fifty random odd shapes of ``mm`` compared with float64, and a thousand bitwise equal runs of each kernel family."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="NOT RUN: torch is not installed")

from cute_dialect.op.functions import gemm  # noqa: E402
from cute_dialect.op.select.kernel_choice import Choice, Problem  # noqa: E402
from cute_dialect.runtime import load  # noqa: E402
from cute_dialect.tools.bench.cases import gemm as bench_gemm  # noqa: E402
from cute_dialect.tools.bench.cases import rows as bench_rows  # noqa: E402
from cute_dialect.tools.bench.cases.gemm import Runner  # noqa: E402

Run = Callable[[], None]
Built = Callable[[str], Path]
ODD = random.Random(20)
SHAPES = [tuple(ODD.randrange(1, 1200) | 1 for _ in range(3)) for _ in range(50)]
"""(M, N, K), all odd, so that neither TMA nor 16-byte ``cp.async`` can load the rows."""
REPEATS = 1000
ROWS = (
    ("sum", "f32", 32768), ("sum", "f16", 4096), ("softmax", "f16", 4096), ("softmax", "f32", 131072),
    ("softmax", "bf16", 32768), ("softmax", "f16", 131072), ("rmsnorm", "f16", 32768), ("rmsnorm", "bf16", 131072),
    ("layernorm", "f32", 1024), ("layernorm", "f32", 32768), ("layernorm", "f16", 32768), ("layernorm", "bf16", 131072),
)  # fmt: skip
OTHERS = {
    "elementwise_add/f32-stream": "add", "elementwise_add/f16-seed": "add", "transpose/f32-2": "transpose",
    "transpose/f16-2": "transpose", "sgemm/pipelined": "launch", "gemm_sm80/f16-128x128x32-3-kk": "launch",
    "gemm_sm80/bf16-128x128x32-3-kk": "launch",
}  # fmt: skip


@pytest.mark.parametrize("k_major", [True, False], ids=["B along K", "B along N"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_odd_shapes(built: Built, monkeypatch: pytest.MonkeyPatch, shape: tuple[int, int, int], k_major: bool) -> None:
    monkeypatch.setenv("CUTE_KERNELS", str(built("gemm_sm80")))
    m, n, k = shape
    torch.manual_seed(m + n + k)
    a = torch.randn(m, k, device="cuda", dtype=torch.float16)
    b = torch.randn(k, n, device="cuda", dtype=torch.float16)
    b = b.t().contiguous().t() if k_major else b
    guard = torch.full((m * n + 128,), float("nan"), device="cuda", dtype=torch.float16)
    out = guard[64 : 64 + m * n].view(m, n)
    gemm.mm(a, b, out=out)
    exact = a.double() @ b.double()
    # The bound is half a unit in the last place of f16 plus the error of the f32 sum.
    limit = 2.0**-11 * exact.abs() + k * 2.0**-23 * (a.double().abs() @ b.double().abs()) + 2.0**-24
    assert bool(((out.double() - exact).abs() <= limit).all())
    assert bool(guard[:64].isnan().all()) and bool(guard[64 + m * n :].isnan().all())


def same_bits(out: torch.Tensor, run: Run) -> None:
    """Launch :data:`REPEATS` times into poisoned memory and check that all results are equal and finite."""
    bits = torch.int32 if out.element_size() == 4 else torch.int16
    out.fill_(float("nan"))
    run()
    first = out.clone()
    assert bool(first.isfinite().all())
    differing = torch.zeros((), device="cuda", dtype=torch.int64)
    for _ in range(REPEATS - 1):
        out.fill_(float("nan"))
        run()
        differing += (out.view(bits) != first.view(bits)).any()
    assert int(differing) == 0


def sm90() -> dict[str, Choice]:
    """Return the Hopper kernels without an epilogue."""
    return {name: c for name, c in bench_gemm.choices().items() if not c.config.epilogue.active}


@pytest.mark.parametrize("name", list(sm90()))
def test_gemm_sm90_repeats(built: Built, name: str) -> None:
    choice = sm90()[name]
    run = Runner(choice, load(built("gemm") / name))
    c = choice.config
    rows = 16 if choice.skinny is not None else 128 if choice.parts > 1 else 1024
    problem = Problem(rows, 1024, 2048, c.element, c.output, *choice.majors)
    a, b, out = bench_gemm.inputs(problem, integers=False)
    same_bits(out, lambda: run(a, b, out))


@pytest.mark.parametrize(("op", "element", "n"), ROWS)
def test_rows_repeat(built: Built, op: str, element: str, n: int) -> None:
    case = bench_rows.Case(op, element, n, max(300, (1 << 22) // n))
    kernel = load(built("rows") / case.folder).kernel(op)
    data = bench_rows.Data(case, case.rows)
    same_bits(data.y, lambda: kernel(*data.given))


@pytest.mark.parametrize("name", list(OTHERS))
def test_others_repeat(built: Built, name: str) -> None:
    family, _, variant = name.partition("/")
    kernel = load(built(family) / variant).kernel(OTHERS[name])
    dtype = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}.get(variant.split("-")[0])
    torch.manual_seed(1)
    a, b = (torch.randn(777, 520, device="cuda").to(dtype or torch.float32) for _ in range(2))
    if family == "transpose":
        out = torch.empty(520, 777, device="cuda", dtype=a.dtype)
        same_bits(out, lambda: kernel(a, out))
    elif family == "elementwise_add":
        out = torch.empty_like(a)
        same_bits(out, lambda: kernel(a, b, out))
    else:
        right = b.t().contiguous() if family == "sgemm" else b  # SGEMM takes B as (K, N), the other kernels as (N, K).
        out = torch.empty(777, 777, device="cuda", dtype=a.dtype)
        same_bits(out, lambda: kernel(a, right, out))
