"""Refusals under ``torch.compile``: users see the message of the eager call, and CPU tensors need ``device="cpu"``."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from cute_dialect import flash_attn, flash_mla, op  # noqa: E402
from cute_dialect.op.operators.table import OPERATORS  # noqa: E402

Call = Callable[..., object]


def message_of(error: BaseException) -> str:
    """Return the message of an error of ``op``, or the one that an error of torch.compile shows."""
    if isinstance(error, op.OpError):
        return str(error)
    found = re.search(r"(?:raised exception|got) \w+Error\((.*)\)$", str(error), re.MULTILINE)
    assert found is not None, str(error)
    return str(eval(found[1]))


def refusal(call: Call, *given: object, compiled: bool | None, **named: object) -> str:
    """Return the message of a refused call: of an eager one if ``compiled`` is None, else with it as ``fullgraph``."""
    torch.compiler.reset()
    function = call if compiled is None else torch.compile(call, fullgraph=compiled, backend="eager", dynamic=False)
    with pytest.raises(Exception) as caught:
        function(*given, **named)
    return message_of(caught.value)


mm: Any = op.mm  # called with wrong arguments
attention: Any = op.attention
x, h, q = torch.ones(4, 8), torch.ones(4, 8, dtype=torch.float16), torch.ones(1, 2, 4, 8, dtype=torch.float16)
i4, latent = torch.zeros(4, dtype=torch.int64), torch.ones(1, 64, 1, 576, dtype=torch.float16)
REFUSED: dict[str, tuple[Call, str]] = {
    "dim": (lambda: op.softmax(x, dim=0, device="cpu"), "softmax: dim=0 is not the last dimension"),
    "shapes": (lambda: op.mm(h, h, device="cpu"), "mm: "),
    "linear": (lambda: op.linear(h, x[:, :3].half(), device="cpu"), "linear: x has shape (4, 8)"),
    "missing": (lambda: mm(h, device="cpu"), "mm() needs an argument 'b'"),
    "unknown": (lambda: attention(q, q, q, softcapp=1.0, device="cpu"), "did you mean 'softcap'"),
    "other library": (lambda: attention(q, q, q, attn_mask=q, device="cpu"), "use mask"),
    "activation": (lambda: op.mm(h, h.t(), activation="gellu", device="cpu"), "did you mean gelu"),
    "rank": (lambda: op.conv2d(q, h, device="cpu"), "conv2d: f has shape (4, 8); pass an array of rank 4"),
    "window": (lambda: op.conv2d(q, q, stride=0, device="cpu"), "conv2d: stride is 0"),
    "device": (lambda: op.softmax(x, device="tpu"), "softmax: device: expected 'gpu'"),
    "flash": (lambda: flash_attn.flash_attn_func(q[0], q, q), "flash_attn_func: q has shape (2, 4, 8)"),
    "flash dtype": (
        lambda: flash_attn.flash_attn_func(q.double(), q, q),
        "flash_attn_func: q has dtype f64; it must have one of",
    ),
    "flash types": (
        lambda: flash_attn.flash_attn_varlen_func(q[0], q[0].float(), q[0], i4[:2].int(), i4[:2].int()),
        "flash_attn_varlen_func: k has dtype f32; it must have f16, like q",
    ),
    "flash cache": (
        lambda: flash_attn.flash_attn_with_kvcache(q, q, q.bfloat16()),
        "flash_attn_with_kvcache: v_cache has dtype",
    ),
    "flash mla": (
        lambda: flash_mla.flash_mla_with_kvcache(latent.float(), latent, None, None, 512),
        "flash_mla_with_kvcache: q has dtype f32; it must have one of bf16, f16",
    ),
    "quantize": (lambda: op.quantize(x, "f9", device="cpu"), "quantize: dtype f9 is not supported"),
    "sample": (lambda: op.sample(x, temperature=-1.0, device="cpu"), "sample: temperature is -1.0"),
    "loss": (lambda: op.cross_entropy(x, i4, reduction="avg", device="cpu"), "cross_entropy: reduction='avg'"),
    "weights": (lambda: op.mm_sparse(h, h, device="cpu"), "mm_sparse: w is of type Tensor"),
    "optimizer": (lambda: op.adamw_([x], [x], [x], [i4], step=1, device="cpu"), "adamw_: exp_avg_sqs[0]"),
}


@pytest.mark.sample("True-rank")
@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("fullgraph", [True, False])
def test_refusals_keep_their_message(name: str, fullgraph: bool) -> None:
    call, shown = REFUSED[name]
    assert shown in refusal(call, compiled=fullgraph)
    assert shown in refusal(call, compiled=None)


i32 = torch.int32
wide, angles, sums = torch.ones(4, 128, dtype=torch.float16), torch.ones(8, 8), torch.zeros(1, 2, 4)


weights: dict[str, Any] = {}
"""A sparse and a packed weight, which :func:`make_weights` computes."""


def make_weights() -> None:
    if not weights:
        weights["sparse"] = op.compress_2_4(torch.tensor([1.0, 0, 1, 0]).repeat(64, 16).half(), device="cpu")
        weights["packed"] = op.pack_weight(torch.zeros(16, 128).to(torch.int8), torch.ones(16, 1).half(), device="cpu")


CALLS: dict[str, Callable[[dict[str, Any]], object]] = {
    "mm": lambda run: op.mm(h, h.t(), **run),
    "bmm": lambda run: op.bmm(h[None], h.t()[None], **run),
    "addmm": lambda run: op.addmm(h[:, :4], h, h.t(), **run),
    "baddbmm": lambda run: op.baddbmm(h[None, :, :4], h[None], h.t()[None], **run),
    "linear": lambda run: op.linear(h, h, **run),
    "matmul": lambda run: op.matmul(h, h.t(), **run),
    "grouped_mm": lambda run: op.grouped_mm(h, h.t()[None], torch.tensor([4], dtype=i32), **run),
    "conv": lambda run: op.conv2d(q, q, **run),
    "conv_input": lambda run: op.conv2d_input((1, 2, 4, 8), q, q[:, :1, :1, :1], **run),
    "conv_weight": lambda run: op.conv2d_weight(q, (1, 2, 4, 8), q[:, :1, :1, :1], **run),
    "attention": lambda run: op.attention(q, q, q, **run),
    "flex_attention": lambda run: op.flex_attention(q, q, q, **run),
    "cascade_attention": lambda run: op.cascade_attention(q, q, q, q, q, **run),
    "merge_attention": lambda run: op.merge_attention(q, sums, **run),
    "merge_attention_": lambda run: op.merge_attention_(q, sums, q.clone(), sums, **run),
    "rope": lambda run: op.rope(torch.ones(1, 1, 4, 16).half(), angles, angles, **run),
    "append_kv": lambda run: op.append_kv(q, q, q[:, :, :1], q[:, :, :1], i4[:1].int(), **run),
    "mla_decode": lambda run: op.mla_decode(torch.ones(1, 1, 1, 576).half(), torch.ones(1, 64, 576).half(), **run),
    "quantize": lambda run: op.quantize(x, "int8", **run),
    "quantize_scaled": lambda run: op.quantize(x, "int8", scale=x[:, :1], **run),
    "dequantize": lambda run: op.dequantize(x.to(torch.int8), x[:, :1], torch.float32, **run),
    "mm_packed": lambda run: op.mm_packed(wide, weights["packed"], **run),
    "unpack_weight": lambda run: op.unpack_weight(weights["packed"], **run),
    "mm_sparse": lambda run: op.mm_sparse(torch.ones(4, 64).half(), weights["sparse"], **run),
    "expand_2_4": lambda run: op.expand_2_4(weights["sparse"], **run),
    "norm_quantize": lambda run: op.rms_norm(x, x[0], quantize="int8", **run),
    "sample": lambda run: op.sample(x, seed=1, **run),
    "topk": lambda run: op.topk(x, 2, **run),
    "embedding": lambda run: op.embedding(i4, x, **run),
    "adamw_": lambda run: op.adamw_([x.clone()], [x], [x.clone()], [x.clone()], step=1, **run),
    "gated": lambda run: op.gated(x, "silu", **run),
    "route": lambda run: op.route(x, 2, **run),
    "dispatch": lambda run: op.dispatch(h, i4[:, None], 2, **run),
    "combine": lambda run: op.combine(h, torch.arange(4, dtype=i32)[:, None], **run),
    "softmax": lambda run: op.softmax(x, **run),
    "log_softmax": lambda run: op.log_softmax(x, **run),
    "row_number": lambda run: op.sum(x, **run),
    "rms_norm": lambda run: op.rms_norm(x, x[0], **run),
    "layer_norm": lambda run: op.layer_norm(x, x[0], x[0], **run),
    "rms_norm_residual": lambda run: op.rms_norm(x, x[0], residual=x, **run),
    "layer_norm_residual": lambda run: op.layer_norm(x, x[0], x[0], residual=x, **run),
    "cross_entropy": lambda run: op.cross_entropy(x, i4, **run),
    "linear_cross_entropy": lambda run: op.linear_cross_entropy(h, h, i4, **run),
}
"""Calls of the operators without those of gradients; each takes the device."""
WEIGHTED = {"mm_packed", "unpack_weight", "mm_sparse", "expand_2_4"}
INNER = {"group_bounds", "scaled_gradient"}
"""Operators that no function calls before the gradients."""


def test_every_operator_is_called() -> None:
    ends = ("_backward", "_kept", "_slope", "_out")
    assert set(CALLS) | INNER == {row.name for row in OPERATORS if not row.name.endswith(ends)}


@pytest.mark.sample("softmax")
@pytest.mark.parametrize("name", CALLS)
def test_cpu_tensors_need_the_device(name: str) -> None:
    if name in WEIGHTED:
        make_weights()
    for compiled in (None, True):
        shown = refusal(CALLS[name], {}, compiled=compiled)
        assert 'pass device="cpu" to run on the interpreter' in shown
