"""Options of functions whose calls run as torch operators: they are checked, or refused, and never ignored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from cute_dialect import op  # noqa: E402

X, Y = torch.ones(4, 16).requires_grad_(), torch.ones(4, 16)
H = torch.ones(4, 16, dtype=torch.float16).requires_grad_()
CLASSES = torch.zeros(4, dtype=torch.int64)
CHOSEN = torch.zeros(4, 2, dtype=torch.int32)
ORDER = torch.arange(8, dtype=torch.int32).reshape(4, 2)
HEADS = torch.ones(1, 2, 16, 64, dtype=torch.float16).requires_grad_()
PACKED = op.PackedWeight(torch.zeros(1, 1056, dtype=torch.int32), 64, 128, "ui4-g128-f16")
TABLE = torch.ones(16, 32)

CALLS: dict[str, Callable[..., Any]] = {
    "softmax": lambda **o: op.softmax(X, **o),
    "log_softmax": lambda **o: op.log_softmax(X, **o),
    "sum": lambda **o: op.sum(X, **o),
    "logsumexp": lambda **o: op.logsumexp(X, **o),
    "rms_norm": lambda **o: op.rms_norm(X, **o),
    "layer_norm": lambda **o: op.layer_norm(X, residual=Y, **o),
    "cross_entropy": lambda **o: op.cross_entropy(X, CLASSES, **o),
    "cross_entropy of smoothed labels": lambda **o: op.cross_entropy(X, CLASSES, label_smoothing=0.1, **o),
    "linear_cross_entropy": lambda **o: op.linear_cross_entropy(X, Y, CLASSES, **o),
    "gated": lambda **o: op.gated(X, "silu", **o),
    "route": lambda **o: op.route(X, 2, **o),
    "dispatch": lambda **o: op.dispatch(X, CHOSEN, 2, **o),
    "combine": lambda **o: op.combine(torch.ones(8, 16).requires_grad_(), ORDER, **o),
    "rope": lambda **o: op.rope(HEADS, TABLE, TABLE, **o),
    "attention": lambda **o: op.attention(HEADS, HEADS, HEADS, **o),
    "merge_attention": lambda **o: op.merge_attention(torch.ones(2, 3, 8).requires_grad_(), torch.ones(2, 3), **o),
    "mm_packed": lambda **o: op.mm_packed(torch.ones(4, 128, dtype=torch.float16).requires_grad_(), PACKED, **o),
    "flex_attention": lambda **o: op.flex_attention(HEADS, HEADS, HEADS, **o),
    "mm": lambda **o: op.mm(H, H.t(), **o),
    "grouped_mm": lambda **o: op.grouped_mm(H, H.t()[None], [4], **o),
    "conv2d": lambda **o: op.conv2d(HEADS, HEADS, **o),
}
WITHOUT_A_STREAM = (
    "softmax", "log_softmax", "sum", "logsumexp", "rms_norm", "layer_norm", "cross_entropy",
    "cross_entropy of smoothed labels", "linear_cross_entropy",
)  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_devices_are_checked(name: str) -> None:
    call = name.partition(" ")[0]
    with pytest.raises(op.OptionError, match=f"^{call}: device: expected .*, got 'tpu'"):
        CALLS[name](device="tpu")


@pytest.mark.parametrize("learns", [False, True])
def test_streams_of_lists_and_epilogues_are_checked(learns: bool) -> None:
    a = H.detach().requires_grad_(learns)
    calls: dict[str, Callable[..., Any]] = {
        "mm": lambda **o: op.mm(a, a.t(), epilogue=lambda accum: 2 * accum, **o),
        "mm_array": lambda **o: op.mm_array([a], [a.t()], **o),
        "grouped_mm": lambda **o: op.grouped_mm([a], [a.t()], **o),
    }
    for name, call in calls.items():
        with pytest.raises(op.OptionError, match=f"^{name}: stream: expected a stream of torch"):
            call(device="cpu", stream="foo")


@pytest.mark.parametrize("name", [n for n in CALLS if n not in WITHOUT_A_STREAM])
def test_streams_and_options_of_the_interpreter_are_not_ignored(name: str) -> None:
    with pytest.raises(op.OptionError, match=f"^{name}: stream: expected a stream of torch"):
        CALLS[name](device="cpu", stream="foo")
    for option in ({"checks": ["race"]}, {"report": print}, {"seed": 3}):
        with pytest.raises(op.UnsupportedError, match=f"^{name}: {next(iter(option))} .*no_grad"):
            CALLS[name](device="cpu", **option)


def test_operators_of_cpu_tensors_do_not_run_on_a_gpu() -> None:
    for function, name in ((lambda: op.softmax(X, device="gpu"), "x"), (lambda: op.route(X, 2, device=0), "logits")):
        with pytest.raises(op.DeviceError, match=f"GPU|{name} is on the CPU; move it to a GPU with {name}.cuda"):
            function()


def test_streams_are_checked_without_gradients() -> None:
    with pytest.raises(op.OptionError, match=r"^gated: stream: expected a stream of torch"):
        op.gated(Y, "silu", device="cpu", stream="foo")


@pytest.mark.slow
@pytest.mark.end_to_end
def test_devices_inside_compile() -> None:
    def compiled(device: str) -> Any:
        return torch.compile(lambda x: op.route(x, 2, device=device)[0], backend="eager")(Y)

    assert torch.equal(compiled("cpu"), op.route(Y, 2, device="cpu")[0])
    with pytest.raises(op.OptionError, match=r"^route: device: expected .*, got 'tpu'"):
        compiled("tpu")


@pytest.mark.sample("softmax", "rms_norm", "combine")
@pytest.mark.parametrize("name", ["softmax", "rms_norm", "layer_norm", "gated", "route", "combine"])
def test_second_derivatives_are_refused(name: str) -> None:
    x = torch.randn(8, 16, requires_grad=True)
    calls: dict[str, Callable[[], Any]] = {
        "gated": lambda: op.gated(x, "silu", device="cpu"),
        "route": lambda: op.route(x, 2, device="cpu")[0],
        "combine": lambda: op.combine(x, ORDER, torch.ones(4, 2).requires_grad_(), device="cpu"),
    }
    result = calls[name]() if name in calls else getattr(op, name)(x, device="cpu")
    (grad,) = torch.autograd.grad(result.square().sum(), x, create_graph=True)
    with pytest.raises(op.UnsupportedError, match=rf"^{name}: second derivatives are not supported; omit create_graph"):
        grad.sum().backward()
