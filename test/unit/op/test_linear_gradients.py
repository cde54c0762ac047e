"""First and second gradients of ``op.linear`` for any rank of ``x``, with and without a bias or an activation."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from cute_dialect import op  # noqa: E402

ACTIVATIONS: dict[str, Any] = {
    "": lambda x: x, "relu": torch.relu, "gelu": torch.nn.functional.gelu, "silu": torch.nn.functional.silu,
}  # fmt: skip


def near(found: Any, want: Any, share: float = 3e-3) -> None:
    assert found.shape == want.shape
    assert float((found.double() - want).detach().norm()) <= share * float(want.detach().norm())


@pytest.mark.slow
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("shape", [(6, 16), (2, 3, 16), (16,)], ids=str)
def test_gradients(shape: tuple[int, ...], activation: str) -> None:
    torch.manual_seed(len(shape))
    for bias in (False, True):
        leaves = [torch.randn(*s).half().requires_grad_() for s in (shape, (24, 16), (24,))][: 2 + bias]
        exact = [x.detach().double().requires_grad_() for x in leaves]
        result = op.linear(*leaves, activation=activation, device="cpu")
        wanted = ACTIVATIONS[activation](torch.nn.functional.linear(*exact))
        near(result, wanted)
        grad = torch.randn_like(result)
        for x, y in zip(torch.autograd.grad(result, leaves, grad), torch.autograd.grad(wanted, exact, grad.double())):
            near(x, y)


def test_gradients_of_the_saved_operand_are_refused() -> None:
    x, weight = torch.zeros(2, 8).half(), torch.zeros(8, 8).half().requires_grad_()
    *_, kept = op.linear(x, weight, activation="gelu", device="cpu").grad_fn.saved_tensors
    with pytest.raises(op.UnsupportedError, match="linear: an activation has no second derivative"):
        kept.sum().backward()


@pytest.mark.slow
def test_only_required_gradients_are_computed() -> None:
    x, w = torch.randn(2, 3, 16).half(), torch.randn(24, 16).half().requires_grad_()
    result = op.linear(x, w, device="cpu")
    result += 1
    (found,) = torch.autograd.grad(result.sum(), w)
    near(found, x.double().sum((0, 1)).expand(24, 16))
    assert found.is_contiguous()


@pytest.mark.slow
def test_second_derivatives() -> None:
    leaves = [torch.randn(*s).half().requires_grad_() for s in ((2, 3, 16), (24, 16))]
    exact = [x.detach().double().requires_grad_() for x in leaves]
    found = []
    for (x, w), result in ((leaves, op.linear(*leaves, device="cpu")), (exact, torch.nn.functional.linear(*exact))):
        (dx,) = torch.autograd.grad(result.double().square().sum(), x, create_graph=True)
        found += torch.autograd.grad(dx.double().sum(), w)
    near(*found)
    result = op.linear(*leaves, activation="gelu", device="cpu")
    (dx,) = torch.autograd.grad(result.sum(), leaves[0], create_graph=True)
    with pytest.raises(op.UnsupportedError, match="an activation has no second derivative"):
        dx.sum().backward()
