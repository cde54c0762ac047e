"""Attention plans for chips with tensor memory: results, explanations, and refused calls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from launched_here import Seen, here

import cute_dialect.op as op
from cute_dialect.op.errors import UnsupportedError
from cute_dialect.op.execute.call_cache import KnownCalls
from cute_dialect.op.functions import attention as functions
from cute_dialect.op.problems.attention import Form
from cute_dialect.op.select.backends import SM100
from cute_dialect.op.select.sm100_model import attention_lines, attention_steps

CHECKS = ["race", "uninit", "strict"]
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "heads": ({"head_size": 256}, "heads of 256"),
    "window": ({"head_size": 64, "window": (8, 0)}, "a window with a left side"),
    "softcap and dropout": ({"head_size": 64, "softcap": 5.0, "dropout_p": 0.5}, "softcap, dropout"),
    "bytes": ({"head_size": 64, "element": "f8E4M3FN"}, "f8E4M3FN operands"),
    "scale": ({"head_size": 64, "scale": -1.0}, "scale <= 0"),
    "slices": ({"head_size": 64, "split_keys": 2}, "split_keys"),
}
"""Name -> the arguments of a plan, and what it does not support."""


def operands(element: type[np.floating[Any]], *shapes: tuple[int, ...]) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape).astype(element) for shape in shapes]


@pytest.mark.parametrize("name", REFUSED)
def test_other_calls_are_refused(name: str) -> None:
    given, what = REFUSED[name]
    with pytest.raises(UnsupportedError, match="attention: kernel_cc=100 does not support ") as e:
        op.Attention(**{"element": "bf16", "kernel_cc": 100, **given})
    assert str(e.value).endswith(f"does not support {what}; use kernel_cc=90")


def test_other_chips_and_kernels_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="Attention: kernel_cc=120 is not supported; use 90, 100, 103 or 110"):
        op.Attention(element="bf16", head_size=64, kernel_cc=120)
    with pytest.raises(UnsupportedError, match="omit kernel, or use 'attention-bf16-64-full-sm103'"):
        op.Attention(element="bf16", head_size=64, kernel="attention-bf16-64-right-sm103", kernel_cc=103)
    with pytest.raises(UnsupportedError, match="the GPU is sm_90; use kernel_cc=90, or device="):
        SM100.check_gpu((9, 0), "Attention.run")
    with pytest.raises(UnsupportedError, match="the GPU is sm_103; use kernel_cc=103, or device="):
        SM100.check_gpu((10, 3), "Attention.run")


def test_explanations_have_budgets_and_bounds() -> None:
    plan = op.Attention(element="f16", head_size=64, kernel_cc=110, lse=True)
    found = plan.explain((2, 4, 300, 64), (2, 2, 300, 64))
    text = str(found)
    assert found.kernel == "attention-f16-64-full-sm110-lse" and found.kernels is not None
    assert found.kernels[0].chip == "sm_110a" and found.status == "assembled and interpreted, never run on the chip"
    assert "165136 of 232448 bytes of shared memory, 512 of 512 columns of tensor memory, 128 registers" in text
    assert "registers per thread: load and MMA 80, softmax 176, correction 80" in text
    assert "16 of 256 queries" in text and "by the " in text and "20 SMs at 1.58 GHz" in text


def test_bounds_follow_from_the_steps() -> None:
    """4096 keys in 32 steps per block: 16 blocks and 4 heads are 2048 steps without a mask, and 17 of 32 with one."""
    form = Form("bf16", "bhsd", False, 1, 4, 1, 4096, 4096, 128, 0.1, "full", True, 0, 0, False, None)
    plan = op.Attention(element="bf16", head_size=128, kernel_cc=100).explain((1, 4, 4096, 128), (1, 4, 4096, 128))
    config: Any = plan.config
    assert attention_steps(config, form) == (2048, 32)
    causal = config._replace(mask="right"), form._replace(mask="right")
    assert attention_steps(*causal) == (4 * sum(range(2, 34, 2)), 32)
    lines = dict(attention_lines(config, form, 0))
    assert lines["MMA"].startswith(f"{32 * 256 * 128 * 256 / 4096:.0f} cycles: 32.0 steps of the busiest SM")


def test_settings_are_those_of_the_plan(tmp_path: Path) -> None:
    plan = op.Attention(element="bf16", head_size=96, causal=True, kernel_cc=103)
    again = op.Attention.of_settings(plan.settings())
    assert again.chip == 103 and again.settings() == plan.settings()


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["bhsd", "bshd"])
@pytest.mark.parametrize("causal", [False, "top_left", "bottom_right"])
def test_results_agree_with_the_reference(causal: bool | str, layout: str) -> None:
    shapes = [(2, 4, 150, 72), (2, 2, 200, 72), (2, 2, 200, 72)]
    if layout == "bshd":
        shapes = [(b, s, h, d) for b, h, s, d in shapes]
    q, k, v = operands(np.float16, *shapes)
    plan = op.Attention(element="f16", head_size=72, causal=causal, layout=layout, lse=True, kernel_cc=100)
    out = np.full(q.shape, np.nan, np.float16)
    done = plan.run(q, k, v, out, device="cpu", checks=CHECKS)
    wanted, log = plan.reference(q, k, v)
    np.testing.assert_allclose(out.astype(float), wanted, rtol=0, atol=2e-3)
    np.testing.assert_allclose(done.lse, log, rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_a_call_without_keys_and_a_saved_plan(tmp_path: Path) -> None:
    plan = op.Attention(element="f16", head_size=64, kernel_cc=100)
    q, k, v = operands(np.float16, (1, 1, 20, 64), (1, 1, 0, 64), (1, 1, 0, 64))
    assert (plan.run(q, k, v, device="cpu").out == 0).all()
    q, k, v = operands(np.float16, (1, 1, 20, 64), (1, 1, 30, 64), (1, 1, 30, 64))
    first = plan.run(q, k, v, device="cpu").out
    loaded = op.load(plan.save(str(tmp_path / "saved")))
    assert loaded.chip == 100 and np.array_equal(loaded.run(q, k, v, device="cpu").out, first)


@pytest.mark.slow
@pytest.mark.parametrize("causal", [False, "bottom_right"])
def test_a_named_kernel_is_interpreted(causal: bool | str) -> None:
    q, k, v = operands(np.float16, (2, 4, 70, 40), (2, 2, 90, 40), (2, 2, 90, 40))
    kernel = f"attention-f16-64-{'right' if causal else 'full'}-sm100-lse"
    out, lse = op.attention(q, k, v, causal=causal, lse=True, kernel=kernel, device="cpu", checks=CHECKS)
    wanted, log = op.Attention(element="f16", head_size=40, causal=causal, lse=True).reference(q, k, v)
    np.testing.assert_allclose(out.astype(float), wanted, rtol=0, atol=2e-3)
    np.testing.assert_allclose(lse, log, rtol=1e-5, atol=1e-5)


def test_another_named_kernel_is_refused() -> None:
    q, k, v = operands(np.float16, (1, 1, 7, 64), (1, 1, 9, 64), (1, 1, 9, 64))
    with pytest.raises(UnsupportedError, match="the kernel for sm_110 does not support softcap; use device"):
        op.attention(q, k, v, softcap=2.0, kernel="attention-f16-64-full-sm110", device="cpu")
    with pytest.raises(UnsupportedError, match="omit kernel, or use 'attention-f16-64-full-sm110'"):
        op.attention(q, k, v, kernel="attention-f16-64-full-sm110-lse", device="cpu")


@pytest.mark.slow
@pytest.mark.parametrize(("capability", "chip"), [((10, 0), "sm100"), ((10, 3), "sm103"), ((11, 0), "sm110")])
def test_the_gpu_selects_the_kernel(capability: tuple[int, int], chip: str, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(functions, "_KNOWN", KnownCalls())
    with here(Seen(capability=capability)) as seen:
        q, k, v = (torch.randn(1, 2, n, 64, dtype=torch.bfloat16) for n in (60, 80, 80))
        out = op.attention(q, k, v, causal=True)
        assert seen.names == [f"attention-bf16-64-right-{chip}"]
        wanted = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        torch.testing.assert_close(out, wanted, rtol=0, atol=2e-2)


@pytest.mark.slow
@pytest.mark.parametrize("causal", [False, "top_left", "bottom_right"])
def test_packed_sequences(causal: bool | str) -> None:
    """The kernel for tensor memory and that of sm_90 agree; a call without ``max_seqlen_q`` has more blocks."""
    begins = [np.cumsum([0, *lengths]).astype(np.int32) for lengths in ((40, 0, 90), (70, 20, 60))]
    q, k, v = operands(np.float16, *((int(x[-1]), h, 40) for x, h in zip((*begins, begins[1]), (4, 2, 2))))
    how: dict[str, Any] = {"causal": causal, "cu_seqlens_q": begins[0], "cu_seqlens_k": begins[1], "lse": True}
    wanted, logs = op.attention(q, k, v, device="cpu", **how)
    kernel = f"attention-f16-64-{'right' if causal else 'full'}-sm103-lse-packed"
    for more in ({}, {"max_seqlen_q": 90}):
        out, lse = op.attention(q, k, v, kernel=kernel, device="cpu", checks=CHECKS, **how, **more)
        np.testing.assert_allclose(out.astype(float), wanted.astype(float), rtol=0, atol=2e-3)
        np.testing.assert_allclose(lse, logs, rtol=1e-5, atol=1e-5)
    plan = op.Attention(element="f16", head_size=40, causal=causal, kernel_cc=103)
    sequences = {"cu_seqlens_q": begins[0], "cu_seqlens_k": begins[1]}
    assert plan.explain(q, k, v, **sequences).kernel == kernel.replace("-lse", "")
    out = plan.run(q, k, v, device="cpu", **sequences).out
    np.testing.assert_allclose(out.astype(float), wanted.astype(float), rtol=0, atol=2e-3)


def test_bounds_of_packed_sequences_are_those_of_equal_lengths() -> None:
    shapes = (900, 8, 64), (1200, 2, 64), (1200, 2, 64)
    how = {"cu_seqlens_q": (4,), "cu_seqlens_k": (4,), "max_seqlen_q": 700, "gpu": "NVIDIA B200", "element": "bf16"}
    found = op.explain(op.attention, *shapes, **how)
    assert found.kernel == "attention-bf16-64-full-sm100-packed" and "sequences of equal lengths" in str(found)
    same = op.explain(
        op.attention, *((3, x // 3, h, d) for x, h, d in shapes), layout="bshd", **dict([*how.items()][3:])
    )
    lines = {line.split()[0]: line for line in str(same).splitlines()}
    assert all(lines[name] in str(found) for name in ("MMA", "softmax", "shared", "L2"))


@pytest.mark.parametrize("capability", [(8, 0), (12, 0)])
def test_gpus_without_a_kernel_are_refused(capability: tuple[int, int]) -> None:
    torch = pytest.importorskip("torch")
    x = torch.zeros(1, 1, 8, 64, dtype=torch.bfloat16)
    with here(Seen(capability=capability)):
        number = 10 * capability[0] + capability[1]
        with pytest.raises(UnsupportedError, match=f"kernels need sm_90, but the GPU is sm_{number}; use device"):
            op.attention(x, x, x)


def test_gradients_without_wgmma_are_those_of_matmuls() -> None:
    torch = pytest.importorskip("torch")
    from cute_dialect.op.operators.attention import gradients_by_kernels
    from cute_dialect.op.operators.attention_matmuls import Mask, Saved

    x, log = torch.zeros(1, 1, 8, 64).half(), torch.zeros(1, 1, 8)
    saved, mask = Saved(x, x, x, None, None, x, log), Mask("", -1, -1, None, "bhsd", None)
    with here(Seen(capability=(10, 0))):
        assert gradients_by_kernels(saved, x, None, mask, False, "cuda") is None


def test_other_functions_of_attention_need_wgmma() -> None:
    torch = pytest.importorskip("torch")
    x = torch.zeros(1, 1, 8, 64, dtype=torch.bfloat16)
    log = torch.zeros(1, 1, 8)
    cache = torch.zeros(1, 16, 576, dtype=torch.bfloat16)
    with here(Seen(capability=(10, 0))):
        for call in (
            lambda: op.flex_attention(x, x, x),
            lambda: op.attention_backward(x, x, x, x, x, log),
            lambda: op.Attention(element="bf16", head_size=64).run(x, x, x),
            lambda: op.mla_decode(cache[:, :1, None], cache),
        ):
            with pytest.raises(UnsupportedError, match="wgmma kernels need sm_90, but the GPU is sm_100; use "):
                call()
