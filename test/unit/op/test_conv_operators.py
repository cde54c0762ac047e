"""Convolutions as torch operators on the interpreter: gradients and ``torch.compile``."""

# pyright: basic

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from cute_dialect import op  # noqa: E402


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use a chip with two SMs."""
    from cute_dialect.op.conv import compute

    monkeypatch.setattr(compute, "here", lambda: ("NVIDIA H200", 2))


def tensor(*shape: int, dtype: Any = torch.float16) -> Any:
    made = torch.randint(-1, 2, shape, generator=torch.Generator().manual_seed(sum(shape)))
    made = made.to(dtype)
    return (made.to(memory_format=torch.channels_last) if len(shape) == 4 else made).requires_grad_()


@pytest.mark.slow
@pytest.mark.parametrize("activation", ["relu", "silu"])
def test_gradients(activation: str) -> None:
    x, f, b = tensor(1, 16, 5, 4), tensor(8, 16, 3, 3), tensor(8, dtype=torch.float32)
    y = op.conv2d(x, f, b, 2, 1, activation=activation, device="cpu")
    grad = tensor(*y.shape).detach()
    y.backward(grad)
    exact = [t.detach().double().requires_grad_() for t in (x, f, b)]
    want = getattr(torch.nn.functional, activation)(torch.nn.functional.conv2d(*exact, 2, 1))
    want.backward(grad.double())
    for got, t in zip((y, x.grad, f.grad, b.grad), (want, *[t.grad for t in exact])):
        assert got is not None and t is not None
        assert torch.allclose(got.double(), t, rtol=0, atol=0 if activation == "relu" else 8e-3)


@pytest.mark.slow
def test_tensors_saved_for_backward(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step with gradients runs three convolutions, and the torch operator runs four."""
    from cute_dialect.op.functions import conv as functions
    from cute_dialect.op.torch.dispatch import CUTE

    seen: list[str] = []
    convolution = functions.convolution

    def counted(name: str, *given: Any) -> Any:
        seen.append(name)
        return convolution(name, *given)

    monkeypatch.setattr(functions, "convolution", counted)
    x, f, b, c = tensor(1, 16, 5, 4), tensor(8, 16, 3, 3), tensor(8, dtype=torch.float32), tensor(1, 8, 1, 1)
    how = {"alpha": 0.25, "beta": 0.5, "activation": "gelu", "device": "cpu"}
    window = [1, 1], [1, 1], [1, 1], [1, 1]
    exact = [t.detach().double().requires_grad_() for t in (x, f, b, c)]
    want = 0.25 * torch.nn.functional.conv2d(*exact[:2], padding=1) + 0.5 * exact[3] + exact[2][:, None, None]
    want = torch.nn.functional.gelu(want)
    grad = tensor(*want.shape).detach()
    wanted = torch.autograd.grad(want, exact, grad.double())
    for operator, count in ((CUTE.conv_kept.registered, 3), (CUTE.conv.registered, 4)):
        seen.clear()
        y = operator(x, f, b, c, *window, **how)
        y = y[0] if isinstance(y, tuple) else y
        for got, t in zip(torch.autograd.grad(y, (x, f, b, c), grad), wanted):
            assert float((got.double() - t).abs().max()) <= 4e-3 * float(t.abs().max())
        assert len(seen) == count
    seen.clear()
    op.conv2d(x, f, b, padding=1, activation="silu", device="cpu").sum().backward()
    assert len(seen) == 3
    tests = ["test_schema", "test_faketensor", "test_aot_dispatch_dynamic", "test_autograd_registration"]
    torch.library.opcheck(torch.ops.cute.conv_kept.default, (x, f, b, None, *window), how, test_utils=tests)


@pytest.mark.slow
def test_a_compiled_layer() -> None:
    """The layer compiles to one graph, and its result is channels-last."""
    layer = op.nn.Conv2d(16, 8, 3, padding=1, activation="relu", dtype=torch.float16, run_on="cpu")
    x = tensor(1, 16, 3, 3)
    y = torch.compile(layer, fullgraph=True, backend="aot_eager")(x)
    want = torch.relu(torch.nn.functional.conv2d(x.float(), layer.weight.float(), layer.bias.float(), padding=1))
    assert torch.allclose(y.float(), want, atol=2e-3) and y.is_contiguous(memory_format=torch.channels_last)
    assert "activation=relu" in str(layer)


def test_padding_modes_of_layers_are_refused() -> None:
    with pytest.raises(op.UnsupportedError, match="Conv2d: padding_mode='reflect' is not supported; use 'zeros'"):
        op.nn.Conv2d(16, 8, 3, padding_mode="reflect")


REFUSED: dict[str, Any] = {
    r"conv2d: out is not supported with gradients or torch\.compile; omit it": {"out": tensor(1, 8, 5, 5).detach()},
    r"conv2d: split_k is not supported with gradients or torch\.compile; omit it": {"split_k": 2},
}


@pytest.mark.parametrize("message", REFUSED)
def test_unsupported_arguments_of_operators_are_rejected(message: str) -> None:
    with pytest.raises(op.UnsupportedError, match=message):
        op.conv2d(tensor(1, 16, 5, 5), tensor(8, 16, 1, 1), device="cpu", **REFUSED[message])


@pytest.mark.slow
def test_eager_calls_do_not_reach_the_dispatcher() -> None:
    """Eager gradients use Python autograd nodes. Modes and subclasses use the operators, with equal results."""
    from torch.utils._python_dispatch import TorchDispatchMode

    x, f = tensor(1, 16, 5, 4), tensor(8, 16, 3, 3)
    seen: list[str] = []

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    y = op.conv2d(x, f, None, 1, 1, device="cpu")
    assert type(y.grad_fn).__name__ == "FunctionBackward"
    grad = tensor(*y.shape).detach()
    plain = torch.autograd.grad(y, (x, f), grad)
    with Watch():
        again = torch.autograd.grad(op.conv2d(x, f, None, 1, 1, device="cpu"), (x, f), grad)
    assert {"cute.conv.default", "cute.conv_input.default", "cute.conv_weight.default"} <= set(seen)
    assert all(torch.equal(a, b) for a, b in zip(plain, again))
    with torch.inference_mode():
        assert torch.equal(op.conv2d(x.detach(), f.detach(), None, 1, 1, device="cpu"), y)
    with torch.no_grad():
        assert not op.conv2d(x, f, None, 1, 1, device="cpu").requires_grad


@pytest.mark.slow
def test_second_derivatives() -> None:
    x, f = tensor(1, 16, 5, 4), tensor(8, 16, 3, 3)
    y = op.conv2d(x, f, None, 1, 1, device="cpu")
    grad = tensor(*y.shape)
    first = torch.autograd.grad(y, (x, f), grad, create_graph=True)
    over = [torch.ones_like(t) for t in first]
    found = torch.autograd.grad(first, (x, f, grad), over)
    exact = [t.detach().double().requires_grad_() for t in (x, f, grad)]
    y = torch.nn.functional.conv2d(*exact[:2], None, 1, 1)
    first = torch.autograd.grad(y, exact[:2], exact[2], create_graph=True)
    for got, want in zip(found, torch.autograd.grad(first, exact, [t.double() for t in over]), strict=True):
        assert torch.allclose(got.double(), want, rtol=1e-2, atol=1e-2 * float(want.abs().max()))
