"""``op.explain`` reports how ``op.mm`` and ``op.bmm`` would run, without a GPU, a compiler or torch."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from cute_dialect import op
from cute_dialect.op.execute import kernel_cache, kernels
from cute_dialect.op.select import gemm_dispatch
from cute_dialect.op.select.backends import capability_named
from cute_dialect.op.select.candidates import menu, suits
from cute_dialect.op.select.cost_model import COSTS, predict, ranked
from cute_dialect.op.select.kernel_choice import Choice, Problem, save, tuned

GPU = "NVIDIA H20"
"""A GPU without measurements."""
E4 = ml_dtypes.float8_e4m3fn


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use an empty settings folder, and fail if anything is compiled."""

    def compiled(*_: object, **__: object) -> None:
        raise AssertionError("something is compiled")

    monkeypatch.setenv("CUTE_CONFIG_DIR", str(tmp_path))
    monkeypatch.setattr(kernel_cache, "load_or_compile", compiled)
    monkeypatch.setattr(kernels, "library", compiled)
    tuned.cache_clear()
    gemm_dispatch.forget_plans()


def test_text_of_an_explanation() -> None:
    found = op.explain(op.mm, (3000, 3072), (3072, 5000), gpu=GPU)
    p = Problem(3000, 5000, 3072, major_b="n")
    everything = ranked(p)
    assert found.problem == p and found.choice == everything[0][1] and found.microseconds == everything[0][0]
    assert list(found.others) == everything[1:5] and found.why == "predicted to be the fastest"
    assert found.flops == 2 * 3000 * 5000 * 3072 and found.bytes == 2 * (3000 * 3072 + 3072 * 5000 + 3000 * 5000)
    # An SM performs 4096 operations per cycle.
    assert found.bound == pytest.approx(found.flops / (4096 * 132 * COSTS.ghz * 1e3))
    c = found.choice.config  # type: ignore[union-attr]
    assert found.shared_memory == c.smem_bytes and found.grid <= 132
    m, n = (5000, 3000) if found.choice.swapped else (3000, 5000)  # type: ignore[union-attr]
    tiles = -(-m // (c.tile[0] * c.cluster_m)) * -(-n // (c.tile[1] * c.cluster_n))
    assert found.waves == pytest.approx(tiles / (132 // c.cluster)) and 0 < found.last_wave <= 1
    text = str(found)
    for said in (found.choice.name, f"{found.microseconds:.1f} us", everything[4][1].name, "GFLOP", "predicted to be"):  # type: ignore[union-attr]
        assert said in text
    assert len(op.explain(op.mm, (3000, 3072), (3072, 5000), others=9).others) == 9


def test_source_of_the_kernel_choice() -> None:
    p = Problem(2048, 2048, 2048, major_b="n")
    slow = max((c for c in menu(p) if suits(c, p)), key=lambda c: predict(c, p))
    path = save(GPU, {p.key: (slow, 1.0)})
    found = op.explain(op.mm, (2048, 2048), (2048, 2048), gpu=GPU)
    assert found.choice == slow and found.why == f"measured to be the fastest, in {path}"
    assert found.microseconds == predict(slow, p) > found.others[0][0]
    b = np.zeros((8192, 8192), np.float16).T
    assert "table of this package" in op.explain(op.mm, (8192, 8192), b, gpu="NVIDIA H200").why


@pytest.mark.parametrize(
    ("gpu", "element", "kernel", "status"),
    [
        (
            "NVIDIA B200",
            "bf16",
            "-sm100-",
            "assembled and interpreted, never run on the chip",
        ),
        ("NVIDIA GB300", "e4m3", "-sm103-", "never run on the chip"),
        ("NVIDIA GeForce RTX 5090", "f16", "-sm120-", "never run on the chip"),
        (
            "NVIDIA B200",
            "i8",
            "i8-i32-",
            "a kernel for sm_80 and later, never run on sm_100",
        ),
        ("NVIDIA A100-SXM4-80GB", "f16", "f16-128x128x32", "later, without measured times on sm_80"),
        ("NVIDIA L40S", "f16", "f16-128x128x32", "later, without measured times on sm_89"),
    ],
)
def test_other_gpus(gpu: str, element: str, kernel: str, status: str) -> None:
    """The kernel is that of a plan for the GPU."""
    b = np.zeros((96, 256), {"e4m3": E4, "i8": np.int8}.get(element, np.float16)).T
    if element == "bf16":
        b = np.zeros((96, 256), ml_dtypes.bfloat16).T
    found = op.explain(op.mm, np.zeros((128, 256), b.dtype), b, activation="relu" if element == "bf16" else "", gpu=gpu)
    assert kernel in found.kernel and found.status.endswith(status)
    assert str(found).startswith(f"mm on {gpu}: M 128, N 96, K 256") and ("relu" in found.kernel) == (element == "bf16")
    assert not found.microseconds and not found.bound  # These chips have no measured costs.


def test_groups_on_other_gpus() -> None:
    found = op.explain(op.grouped_mm, (256, 64), (4, 64, 96), offs=(4,), gpu="NVIDIA B200")
    assert found.kernel.endswith("sm100-grouped-m") and found.gpu == "NVIDIA B200"
    assert found.status.endswith("grouped_mm needs sm_90, so launch it by op.GroupedGemm with kernel_cc=100")
    with pytest.raises(op.UnsupportedError, match="groups of steps of K are not supported on sm_110; use kernel_cc=90"):
        op.explain(op.grouped_mm, (64, 256), (256, 96), offs=(4,), gpu="NVIDIA Thor")


def test_batches_on_other_gpus() -> None:
    found = op.explain(op.bmm, (4, 256, 128), (4, 128, 64), bias=(64,), gpu="NVIDIA B200")
    assert found.operation == "bmm" and "-sm100-" in found.kernel and found.problem.matrices == 4


ARRAYS = [np.zeros((64, 64), np.float16)] * 2
REFUSED: dict[str, Callable[[str], object]] = {
    "op.GroupedGemm with kernel_cc=80, or ": lambda gpu: op.explain(op.mm_array, ARRAYS, ARRAYS, gpu=gpu),
    "op.Conv2dFprop with kernel_cc=80, or ": lambda gpu: op.explain(op.conv2d, (1, 8, 8, 64), (64, 3, 3, 64), gpu=gpu),
    "device": lambda gpu: op.explain(op.linear_cross_entropy, (128, 64), (256, 64), gpu=gpu),
    "devic": lambda gpu: op.explain(op.mla_decode, (8, 1, 16, 576), (8, 512, 576), gpu=gpu),
}
"""Beginning of the cure -> a call that a B200 refuses."""


@pytest.mark.parametrize("cure", REFUSED)
def test_calls_that_other_gpus_refuse(cure: str) -> None:
    message = f"wgmma kernels need sm_90, but the GPU is sm_100; use {cure}"
    with pytest.raises(op.UnsupportedError, match=message):
        REFUSED[cure]("NVIDIA B200")
    assert REFUSED[cure]("NVIDIA H100 PCIe")


@pytest.mark.parametrize(("gpu", "chip"), [("NVIDIA B200", 100), ("NVIDIA GB300", 103), ("NVIDIA Thor", 110)])
def test_attention_on_gpus_with_tensor_memory(gpu: str, chip: int) -> None:
    q = (2, 8, 300, 64)
    found = op.explain(op.attention, q, q, q, causal=True, element="bf16", gpu=gpu)
    plan = op.Attention(element="bf16", head_size=64, causal=True, kernel_cc=chip).explain(q, q, q)
    assert found.kernel == plan.kernel and found.flops == plan.flops and found.kernels == plan.kernels
    assert found.gpu == gpu and str(found).splitlines()[0].endswith(f", on {gpu}")
    assert found.status == plan.status == "assembled and interpreted, never run on the chip"
    message = f'attention: the kernel for sm_{chip} does not support softcap, sinks; use device="cpu"'
    with pytest.raises(op.UnsupportedError, match=message):
        op.explain(op.attention, q, q, q, softcap=3.0, sinks=(8,), gpu=gpu)


@pytest.mark.parametrize("gpu", ["NVIDIA A100-SXM4-80GB", "NVIDIA L40S", "NVIDIA GeForce RTX 5090", "NVIDIA B200"])
def test_attention_that_other_gpus_refuse(gpu: str) -> None:
    q = (2, 8, 300, 64)
    functions = [op.attention_backward, op.flex_attention, *([] if "B200" in gpu else [op.attention])]
    for function in functions:
        with pytest.raises(op.UnsupportedError, match=r"kernels need sm_90, but the GPU is sm_\d+; use device"):
            op.explain(function, q, q, q, gpu=gpu)
        assert op.explain(function, q, q, q, gpu="NVIDIA H100 PCIe").kernel


def test_the_gpu_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gemm_dispatch, "other_gpu", lambda: "NVIDIA B200")
    assert op.explain(op.attention, *[(1, 1, 8, 64)] * 3).kernel.endswith("-sm100")
    assert "-sm100-" in op.explain(op.mm, (128, 64), (64, 128)).kernel


def test_batches() -> None:
    found = op.explain(op.bmm, (32, 2048, 128), (32, 128, 2048), element="bf16")
    assert found.problem == Problem(2048, 2048, 128, "bf16", "bf16", "k", "n", 32) and not found.folded
    assert found.choice is not None and found.choice.config.batch
    assert found.bytes == 32 * 2 * (2 * 2048 * 128 + 2048 * 2048)
    shared = op.explain(op.bmm, (32, 2048, 128), np.broadcast_to(np.zeros((128, 2048), np.float16), (32, 128, 2048)))
    assert shared.folded and shared.problem.m == 32 * 2048 and shared.problem.matrices == 1
    assert shared.bytes == 2 * (32 * 2048 * 128 + 128 * 2048 + 32 * 2048 * 2048)
    assert "the batch is one GEMM" in str(shared)
    assert not op.explain(op.bmm, (1, 64, 64), (1, 64, 64)).folded


def test_epilogues_and_copies() -> None:
    a, b = np.zeros((100, 36), np.float32), np.zeros((36, 65), np.float32)
    found = op.explain(op.mm, a, b, bias=(65,), activation="gelu", math="tf32")
    assert found.copies == (("b", 4 * 36 * 65),) and found.by_torch
    found_exactly = op.explain(op.mm, a, b, bias=(65,), activation="gelu")
    assert found_exactly.copies == () and not found_exactly.by_torch and "FMAs of f32" in str(found_exactly)
    in_parts = op.explain(op.mm, a, b, math="3xtf32")
    assert in_parts.problem.k == 3 * 36 and in_parts.problem.sums == "two" and "three tf32 parts" in str(in_parts)
    assert "copied    b" in str(found) and "torch computes" in str(found)
    found = op.explain(op.mm, (128, 64), (64, 256), c=(128, 256), beta=0.5, bias=np.zeros(256, np.float32), alpha=2.0)
    assert found.choice is not None and found.choice.name.endswith("-alpha-beta-bn") and not found.by_torch
    found = op.explain(op.mm, (65, 33), (33, 65))
    assert found.choice is not None and [n for n, _ in found.copies] == ["a", "b"]
    found = op.explain(op.mm, (65, 33), (33, 65), bias=(65,))
    assert found.choice is None and found.others == () and "mma.sync kernel for unaligned rows" in str(found)
    f8 = np.zeros((64, 128), ml_dtypes.float8_e4m3fn)
    found = op.explain(op.mm, f8, f8.T)
    assert (found.problem.element, found.problem.output, found.copies) == ("f8E4M3FN", "bf16", ())
    assert op.explain(op.mm, (128, 64), (64, 256), dtype="f32").problem.output == "f32"


def test_columns_of_the_result_are_contiguous() -> None:
    """A column-major result selects the transposed problem."""
    out = np.zeros((4096, 128), np.float16).T
    found = op.explain(op.mm, (128, 64), (64, 4096), out, bias=(4096,))
    assert found.problem == Problem(4096, 128, 64, major_a="m", major_b="k")
    assert found.choice is not None and found.choice.config.epilogue.bias == ("n" if found.choice.swapped else "m")


def test_tensors_of_torch() -> None:
    torch = pytest.importorskip("torch")
    a = torch.empty(4096, 64, dtype=torch.bfloat16, device="meta")
    found = op.explain(op.mm, a, a.t(), dtype=torch.float32)
    assert found.problem == Problem(4096, 4096, 64, "bf16", "f32")
    assert found.choice == ranked(found.problem)[0][1]


@pytest.mark.parametrize(
    ("function", "operands", "options", "said"),
    [
        (
            op.choose,
            ((4, 4), (4, 4)),
            {},
            (
                r"explain: choose is not supported; pass op\.mm, op\.bmm, op\.mm_array, op\.grouped_mm, op\.scaled_mm,"
                r" op\.mm_packed,"
                r" op\.attention, op\.attention_backward, op\.flex_attention, op\.mla_decode,"
                r" op\.linear_cross_entropy, op\.quantize,"
                r" op\.route, a convolution or a function on rows"
            ),
        ),
        (op.mm, ((4, 5), (4, 4)), {}, r"mm: b has shape \(4, 4\), but a has shape \(4, 5\); pass b of \(5, N\)"),
        (
            op.mm,
            ((2, 4, 4), (4, 4)),
            {},
            r"mm: a has shape \(2, 4, 4\), but rank 2 is needed; use bmm",
        ),
        (op.bmm, ((2, 4, 4), (3, 4, 4)), {}, r"bmm: b has 3 matrices, but a has 2; pass 2, or one"),
        (op.bmm, ((4, 4), (4, 4)), {}, r"bmm: a has shape \(4, 4\), but rank 3 is needed; use mm for matrices"),
        (op.mm, ((4, 4), (4, 4), (4, 5)), {}, r"mm: out has shape \(4, 5\); pass out of shape \(4, 4\)"),
        (
            op.mm,
            ((0, 4), (4, 4)),
            {},
            (r"mm: a has shape \(0, 4\) and b has shape \(4, 4\); explain does not support empty matrices"),
        ),
        (op.mm, ((8, 8), np.zeros((8, 8))), {}, "mm: b has dtype f64, but a has dtype f16; pass operands of one dtype"),
        (op.mm, ((8, 8), (8, 8)), {"element": "i16"}, "mm: operands of i16 are not supported; use f16, bf16"),
        (op.mm, ((8, 8), (8, 8)), {"element": "zz"}, "explain: element is 'zz'; pass one of f16, bf16, f32, f8E4M3FN,"),
        (
            op.mm,
            ((8, 8), (8, 8)),
            {"bias": (7,)},
            r"bias has shape \(7,\); pass a bias of \(8,\), \(1, 8\)",
        ),
        (op.mm, ((8, 8), [[1.0]]), {}, r"mm: b has shape \(\[1\.0\],\), but rank 2 is needed; use matmul for vectors"),
        (
            op.mm,
            ((8, 8), 3),
            {},
            (
                r"mm: b must be an array or a shape: expected an array \(torch, cupy, numpy, or anything with DLPack "
                r"or the CUDA array interface\), got int"
            ),
        ),
    ],
)
def test_invalid_arguments_are_rejected(
    function: Any, operands: tuple[Any, ...], options: dict[str, Any], said: str
) -> None:
    with pytest.raises(op.OpError, match=said):
        op.explain(function, *operands, **options)


@pytest.mark.parametrize(
    ("gpu", "cure"),
    [
        ("nope", "pass a name such as 'NVIDIA H200', 'NVIDIA B200' or 'NVIDIA GeForce RTX 5090'"),
        ("sm_100a", "did you mean 'NVIDIA B200'?"),
        ("nvidia h200", "did you mean 'NVIDIA H200'?"),
        ("NVIDIA B20", "did you mean 'NVIDIA B200'?"),
    ],
)
@pytest.mark.parametrize("function", [op.mm, op.softmax, op.attention])
def test_unknown_gpus_are_rejected(function: Callable[..., object], gpu: str, cure: str) -> None:
    said = f"explain: gpu is {gpu!r}, whose compute capability is unknown; {cure}"
    with pytest.raises(op.ArgumentError, match=re.escape(said)):
        op.explain(function, (64, 64), (64, 64), gpu=gpu)


def test_a_measured_gpu_needs_no_known_name() -> None:
    p = Problem(2048, 2048, 2048, major_b="n")
    slow = max((c for c in menu(p) if suits(c, p)), key=lambda c: predict(c, p))
    save("Another", {p.key: (slow, 1.0)})
    assert op.explain(op.mm, (2048, 2048), (2048, 2048), gpu="Another").choice == slow


@pytest.mark.parametrize(
    ("gpu", "capability"),
    [
        ("NVIDIA RTX 5000 Ada Generation", (8, 9)),
        ("NVIDIA GeForce RTX 5090", (12, 0)),
        ("Quadro RTX 4000", (7, 5)),
        ("NVIDIA RTX A6000", (8, 6)),
        ("NVIDIA RTX 4000 SFF Ada Generation", (8, 9)),
        ("NVIDIA A10G", (8, 6)),
        ("NVIDIA A100-SXM4-80GB", (8, 0)),
        ("NVIDIA H100 80GB HBM3", (9, 0)),
        ("Tesla T4", (7, 5)),
    ],
)
def test_capabilities_of_names(gpu: str, capability: tuple[int, int]) -> None:
    assert capability_named(gpu) == capability


@pytest.mark.parametrize(("gpu", "noted"), [("NVIDIA H200", False), (GPU, True), ("", False)])
def test_times_without_measurements_are_noted(gpu: str, noted: bool) -> None:
    said = f"  note      with the costs of an NVIDIA H200, because none are measured for {gpu!r}"
    for found in (
        op.explain(op.mm, (64, 64), (64, 64), gpu=gpu),
        op.explain(op.conv2d, (8, 32, 32, 64), (64, 3, 3, 64), gpu=gpu),
        op.explain(op.mm_packed, (2, 256), op.PackedWeight(None, 256, 256, "ui4-g128-f16"), gpu=gpu),
    ):
        assert (said in str(found).splitlines()) == noted


@pytest.mark.parametrize(("gpu", "noted"), [("NVIDIA H200", False), (GPU, True), ("", False)])
def test_kernels_without_measurements_are_noted(gpu: str, noted: bool) -> None:
    said = f"  note      with the kernel and the bound of an NVIDIA H200, because none are measured for {gpu!r}"
    heads = (1, 2, 256, 64)
    for found in (
        op.explain(op.attention, heads, heads, gpu=gpu), op.explain(op.attention_backward, heads, heads, gpu=gpu),
        op.explain(op.flex_attention, heads, heads, gpu=gpu),
        op.explain(op.softmax, (8, 64), gpu=gpu), op.explain(op.gated, (8, 64), gpu=gpu, activation="silu"),
        op.explain(op.quantize, (8, 64), dtype="e4m3", gpu=gpu), op.explain(op.route, (8, 16), 2, gpu=gpu),
        op.explain(op.sample, (8, 64), gpu=gpu), op.explain(op.rms_norm, (8, 64), quantize="e4m3", gpu=gpu),
        op.explain(op.dispatch, (8, 64), (8, 2), 4, gpu=gpu),
        op.explain(op.combine, (16, 64), (8, 2), (8, 2), gpu=gpu),
    ):  # fmt: skip
        assert found.gpu == gpu and (said in str(found).splitlines()) == noted, found


@pytest.mark.slow
def test_without_torch_and_the_compiler() -> None:
    code = (
        "import sys; from cute_dialect import op; str(op.explain(op.mm, (64, 64), (64, 64))); "
        "found = {'torch', 'xdsl', 'mlir'} & {*sys.modules}; assert not found, found"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert isinstance(op.explain(op.mm, (64, 64), (64, 64)).choice, Choice)


def test_scaled_mm() -> None:
    """The arguments have the order of ``op.scaled_mm``."""
    a, b, x = np.ones((256, 512), E4), np.ones((384, 512), E4).T, np.ones
    for sa, sb, accumulator in (
        ((256, 1), (1, 384), "two"),
        ((256, 4), (3, 4), "block"),
        ((256, 4), (384, 4), "columns"),
    ):
        found = op.explain(op.scaled_mm, a, b, x(sa, np.float32), x(sb, np.float32))
        assert found.problem == Problem(256, 384, 512, "f8E4M3FN", "bf16", sums=accumulator)
        assert found.choice.config.promote and found.choice.config.scaled == (accumulator != "two")
        assert str(op.explain(op.scaled_mm, a, b, scale_b=x(sb, np.float32), scale_a=x(sa, np.float32))) == str(found)
    found = op.explain(op.scaled_mm, (256, 512), (512, 384), (1,), (1,), element="f8E4M3FN", fast=True)
    assert found.problem.sums == "" and not found.choice.config.promote
    e8 = ml_dtypes.float8_e8m0fnu
    found = op.explain(op.scaled_mm, a, b, x((256, 16), e8), x((384, 16), e8))
    assert found.kernel == "f8E4M3FN-128x128x128-3-kk-sm120-mx-bf16" and found.flops == 2 * 256 * 384 * 512


@pytest.mark.parametrize(
    ("given", "more", "message"),
    [
        ((), {}, "explain: scaled_mm needs an argument 'scale_a'; pass a, b, scale_a and scale_b"),
        (
            ((1,), (1,), 3),
            {},
            "explain() has at most 5 positional arguments (function, a, b, scale_a, scale_b), but the",
        ),
        (((1,), (1,)), {"hook": "x"}, "explain: scaled_mm is not explained with hook; omit it"),
        ((), {"out": 1, "scale_a": (1,), "scale_b": (1,)}, "explain: scaled_mm is not explained with out; omit it"),
        (((1,), (1,)), {"out": 1}, "explain() has two values of argument 'out'; pass it once"),
    ],
)
def test_refused_arguments_of_scaled_mm(given: tuple[Any, ...], more: dict[str, Any], message: str) -> None:
    with pytest.raises(op.ArgumentError) as raised:
        op.explain(op.scaled_mm, (64, 64), (64, 64), *given, **more, element="f8E4M3FN")
    assert str(raised.value).startswith(message)
