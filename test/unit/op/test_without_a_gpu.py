"""Without a GPU, all public functions and plans raise an error before they compile anything."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from random_calls import element_functions

from cute_dialect import op
from cute_dialect.op.execute import kernel_cache
from cute_dialect.op.select import gemm_dispatch
from cute_dialect.pipelines import compiler
from cute_dialect.runtime import driver as cuda

A, B, ROWS = np.ones((32, 64), np.float16), np.ones((64, 48), np.float16), np.ones((8, 16), np.float32)
EXPERTS, OFFS = np.ones((2, 64, 48), np.float16), np.array([16, 32], np.int32)
A8, B8 = A.astype(ml_dtypes.float8_e4m3fn), np.ones((48, 64), ml_dtypes.float8_e4m3fn).T
EXPERTS8, ONE = np.ones((2, 48, 64), ml_dtypes.float8_e4m3fn).swapaxes(1, 2), np.ones((1,), np.float32)
LSE, USED, ANGLES = np.ones((1, 2, 64), np.float32), np.zeros((1,), np.int32), np.ones((64, 32), np.float32)
SPARSE = op.SparseWeight(np.zeros((64, 64), np.float16), np.full((1, 256), 0x44444444, np.int32))
PACKED = op.PackedWeight(np.zeros((1, 1056), np.int32), 64, 128, "ui4-g128-f16")
HEADS, TARGETS = np.ones((1, 2, 64, 64), np.float16), np.zeros((8,), np.int64)


def doubled(x: Any) -> Any:
    return x + x


def images(rank: int) -> tuple[np.ndarray, np.ndarray]:
    """Return an image and filters. With padding 1 the convolution keeps the image's shape."""
    return np.ones((1, *[8] * rank, 16), np.float16), np.ones((16, *[3] * rank, 16), np.float16)


def convolutions(rank: int) -> dict[str, Callable[[], object]]:
    """Return the convolution calls of a rank."""
    x, f = images(rank)
    name = f"conv{rank}d"
    return {
        name: lambda: getattr(op, name)(x, f, padding=1),
        f"{name}_input": lambda: getattr(op, f"{name}_input")(x.shape, f, x, padding=1),
        f"{name}_weight": lambda: getattr(op, f"{name}_weight")(x, f.shape, x, padding=1),
    }


CALLS: dict[str, Callable[[], object]] = {
    "mm": lambda: op.mm(A, B),
    "addmm": lambda: op.addmm(B[0], A, B),
    "linear": lambda: op.linear(A, B.T),
    "bmm": lambda: op.bmm(A[None], B[None]),
    "baddbmm": lambda: op.baddbmm(B[0], A[None], B[None]),
    "matmul": lambda: op.matmul(A, B),
    "mm_array": lambda: op.mm_array([A], [B]),
    "int_mm": lambda: op.int_mm(A.astype(np.int8), B.astype(np.int8)),
    "grouped_mm": lambda: op.grouped_mm(A, EXPERTS, OFFS),
    "scaled_mm": lambda: op.scaled_mm(A8, B8, ONE, ONE),
    "scaled_grouped_mm": lambda: op.scaled_grouped_mm(A8, EXPERTS8, ONE, ONE, OFFS),
    **convolutions(1),
    **convolutions(2),
    **convolutions(3),
    "attention": lambda: op.attention(HEADS, HEADS, HEADS),
    "scaled_dot_product_attention": lambda: op.scaled_dot_product_attention(HEADS, HEADS, HEADS),
    "attention_backward": lambda: op.attention_backward(HEADS, HEADS, HEADS, HEADS, HEADS, LSE),
    "merge_attention": lambda: op.merge_attention(HEADS[None], LSE[None]),
    "merge_attention_": lambda: op.merge_attention_(HEADS, LSE, HEADS.copy(), LSE.copy()),
    "cascade_attention": lambda: op.cascade_attention(HEADS, HEADS[:1], HEADS[:1], HEADS, HEADS),
    "flex_attention": lambda: op.flex_attention(HEADS, HEADS, HEADS),
    "create_block_mask": lambda: op.create_block_mask(lambda b, h, i, j: i >= j, None, None, 128, 128),
    "mla_decode": lambda: op.mla_decode(np.ones((1, 1, 16, 576), np.float16), np.ones((1, 64, 576), np.float16)),
    "rope": lambda: op.rope(HEADS, ANGLES, ANGLES),
    "append_kv": lambda: op.append_kv(HEADS, HEADS.copy(), HEADS[:, :, :1], HEADS[:, :, :1], USED),
    "mm_packed": lambda: op.mm_packed(A.repeat(2, 1), PACKED),
    "pack_awq": lambda: op.pack_awq(np.zeros((128, 8), np.int32), np.ones((1, 64), np.float16)),
    "pack_gptq": lambda: op.pack_gptq(np.zeros((16, 64), np.int32), np.ones((1, 64), np.float16)),
    "pack_weight": lambda: op.pack_weight(np.zeros((64, 128), np.int8), np.ones((64, 1), np.float16)),
    "unpack_weight": lambda: op.unpack_weight(PACKED),
    "mm_sparse": lambda: op.mm_sparse(A.repeat(2, 1), SPARSE),
    "compress_2_4": lambda: op.compress_2_4(np.zeros((64, 128), np.float16)),
    "expand_2_4": lambda: op.expand_2_4(SPARSE),
    "quantize": lambda: op.quantize(ROWS),
    "dequantize": lambda: op.dequantize(ROWS.astype(ml_dtypes.float8_e4m3fn), ONE),
    "gated": lambda: op.gated(ROWS),
    "route": lambda: op.route(ROWS, 2),
    "dispatch": lambda: op.dispatch(ROWS, TARGETS[:, None], 2),
    "sample": lambda: op.sample(ROWS),
    "topk": lambda: op.topk(ROWS, 2),
    "embedding": lambda: op.embedding(TARGETS, ROWS),
    "adamw_": lambda: op.adamw_(*[[x.copy()] for x in (ROWS, ROWS, ROWS, ROWS)], 1),
    "combine": lambda: op.combine(ROWS, np.zeros((8, 1), np.int32)),
    "softmax": lambda: op.softmax(ROWS),
    "log_softmax": lambda: op.log_softmax(ROWS),
    "rms_norm": lambda: op.rms_norm(ROWS),
    "layer_norm": lambda: op.layer_norm(ROWS, residual=ROWS),
    "sum": lambda: op.sum(ROWS),
    "mean": lambda: op.mean(ROWS),
    "max": lambda: op.max(ROWS),
    "logsumexp": lambda: op.logsumexp(ROWS),
    "cross_entropy": lambda: op.cross_entropy(ROWS, TARGETS, ROWS[0]),
    "linear_cross_entropy": lambda: op.linear_cross_entropy(ROWS, ROWS, TARGETS),
    "transpose": lambda: op.transpose(ROWS),
    "elementwise": lambda: op.elementwise(doubled)(ROWS),
    "add": lambda: op.add(ROWS, 1.0),
    "sub": lambda: op.sub(ROWS, ROWS),
    "mul": lambda: op.mul(ROWS, ROWS),
    "div": lambda: op.div(ROWS, ROWS),
}
PLANS: dict[str, Callable[[], object]] = {
    "Gemm": lambda: op.Gemm(element="f16", layout="row").run(A, B),
    "Gemm of several": lambda: op.Gemm(element="f16", layout="row").run([A, A], [B, B]),
    "GroupedGemm": lambda: op.GroupedGemm(element="f16", layout="row").run([A], [B]),
    "GroupedGemm of groups": lambda: op.GroupedGemm(element="f16", layout="row").run(A, EXPERTS, offs=OFFS),
    "ScaledGemm": lambda: op.ScaledGemm(element="f8E4M3FN", recipe="tensor").run(A8, B8, ONE, ONE),
    "Conv2d": lambda: op.Conv2d("fprop", element="f16").run(*images(2), padding=1),
    "Conv2dFprop": lambda: op.Conv2dFprop(element="f16").run(*images(2), padding=1),
    "Conv2dDgrad": lambda: op.Conv2dDgrad(element="f16").run(*images(2), padding=1),
    "Conv2dWgrad": lambda: op.Conv2dWgrad(element="f16").run(
        images(2)[0], images(2)[0], size=images(2)[1].shape, padding=1
    ),
    "Attention": lambda: op.Attention(element="f16", head_size=64).run(HEADS, HEADS, HEADS),
}
OF_TWO = ("maximum", "minimum")
OF_THREE = ("clamp", "where")
OF_ONE = sorted(element_functions() - {*OF_TWO, *OF_THREE})
CALLS |= {name: partial(getattr(op, name), ROWS) for name in OF_ONE}
CALLS |= {name: partial(getattr(op, name), ROWS, ROWS) for name in OF_TWO}
CALLS |= {"clamp": partial(op.clamp, ROWS, 0.0, 1.0), "where": partial(op.where, ROWS > 0, ROWS, ROWS)}

COMPUTE_NOTHING = {
    "attention_dropout_mask", "choose", "explain", "get_allocated_size", "get_memory_pool", "load", "prefetch",
    "scale_blocks", "tune",
}  # fmt: skip
"""Public functions that launch no kernel, and ``tune``, which accepts only torch tensors on a GPU."""


@pytest.fixture(autouse=True)
def nothing(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Pretend that there is no GPU, and fail if anything is compiled."""

    def failing(*_: object, **__: object) -> None:
        raise AssertionError("something is compiled")

    def none() -> None:
        raise cuda.NoGpuError("no driver")

    monkeypatch.setattr(kernel_cache, "load_or_compile", failing)
    monkeypatch.setattr(compiler, "compile_lazily", failing)
    monkeypatch.setattr(cuda, "driver", none)
    gemm_dispatch.forget_gpus()
    yield
    gemm_dispatch.forget_gpus()


def test_every_function_and_plan_is_covered() -> None:
    public = {n: getattr(op, n) for n in dir(op)}
    functions = {n for n, x in public.items() if inspect.isfunction(x) or isinstance(x, op.Elementwise)}
    assert functions - COMPUTE_NOTHING == set(CALLS)
    plans = {n for n, x in public.items() if inspect.isclass(x) and hasattr(x, "run") and hasattr(x, "of_settings")}
    assert plans == {name.partition(" ")[0] for name in PLANS}


@pytest.mark.sample(every=35)
@pytest.mark.parametrize("name", [*CALLS, *PLANS])
def test_no_gpu(name: str) -> None:
    with pytest.raises(op.DeviceError) as told:
        (CALLS | PLANS)[name]()
    who, said = str(told.value).split(": ", 1)
    assert said == 'no GPU was found; pass device="cpu" to run on the interpreter'
    assert who


def test_no_gpu_for_a_tensor_of_torch() -> None:
    torch = pytest.importorskip("torch")
    a = torch.zeros(64, 64).half()
    for call in (lambda: op.mm(a, a), lambda: op.softmax(a)):
        with pytest.raises(op.DeviceError, match=r'^(mm|softmax): no GPU was found; pass device="cpu"'):
            call()
