"""Gradients of elementwise functions by derivative kernels, compared with float64."""

# pyright: basic

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from cute_dialect import op  # noqa: E402
from cute_dialect.op import epilogue as e  # noqa: E402
from cute_dialect.op.torch import elementwise as gradients  # noqa: E402

BF16, F32 = torch.bfloat16, torch.float32


def normal(*shape: int, dtype: Any = BF16) -> Any:
    generator = torch.Generator().manual_seed(sum(shape) + len(shape))
    return (torch.randn(shape, generator=generator) + 0.01).to(dtype)


def two(x: Any, y: Any) -> Any:
    return e.relu(x + y), x * y


def scaled(x: Any, y: Any, s: Any) -> Any:
    return e.gelu(x * s + y)


CASES = [
    (op.add, lambda x, y: x + y, (normal(6, 16), normal(6, 16))),
    (op.add, lambda x, y: x + y, (normal(6, 16), normal(6, 1))),
    (op.sub, lambda x, y: x - y, (normal(6, 16, dtype=F32), normal(1, dtype=F32))),
    (op.mul, lambda x, y: x * y, (normal(6, 16), normal(7 * 16)[:96].view(6, 16))),
    (op.mul, lambda x, y: x * y, (normal(6, 16), normal(16, dtype=F32))),
    (op.div, lambda x, y: x / y, (normal(6, 16), normal(6, 16).abs() + 1)),
    (op.elementwise(scaled), lambda x, y, s: torch.nn.functional.gelu(x * s + y), (normal(6, 16), normal(16), 0.5)),
    (op.elementwise(two), lambda x, y: (torch.relu(x + y), x * y), (normal(6, 16), normal(6, 16).flip(0))),
]


@pytest.mark.sample("function0-<lambda>-given0")
@pytest.mark.parametrize(("function", "exact", "given"), CASES)
def test_values(function: Any, exact: Any, given: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """One kernel computes all gradients that differ from the incoming gradient, and torch recomputes nothing."""
    monkeypatch.setattr(gradients, "_gradients_by_torch", lambda *_: pytest.fail("computed by torch"))
    arrays = [x.clone().requires_grad_() if isinstance(x, torch.Tensor) else x for x in given]
    wide = [x.double().requires_grad_() if isinstance(x, torch.Tensor) else x for x in given]
    results, wanted = function(*arrays, device="cpu"), exact(*wide)
    results, wanted = (x if isinstance(x, tuple) else (x,) for x in (results, wanted))
    grads = [normal(*x.shape, dtype=x.dtype) for x in results]
    leaves = [[x for x in some if isinstance(x, torch.Tensor)] for some in (arrays, wide)]
    found = torch.autograd.grad(results, leaves[0], grads)
    for x, leaf, y in zip(found, leaves[0], torch.autograd.grad(wanted, leaves[1], [g.double() for g in grads])):
        assert x.shape == leaf.shape and x.dtype == leaf.dtype
        torch.testing.assert_close(x.double(), y, rtol=2e-2, atol=2e-2)


def test_gradients_of_an_addition_are_views() -> None:
    x, y = normal(6, 16).requires_grad_(), normal(6, 16).requires_grad_()
    grad = normal(6, 16)
    of_x, of_y = torch.autograd.grad(op.add(x, y, device="cpu"), (x, y), grad)
    assert of_x.data_ptr() == of_y.data_ptr() == grad.data_ptr()


def test_one_result_of_two_and_second_derivatives() -> None:
    x, y = normal(6, 16, dtype=F32).requires_grad_(), normal(6, 16, dtype=F32).flip(0).requires_grad_()
    _, product = op.elementwise(two, x, y, device="cpu")
    found = torch.autograd.grad(product, (x, y), torch.ones_like(product), create_graph=True)
    torch.testing.assert_close(found, (y, x))
    again = torch.autograd.grad(found[0].sum(), y)[0]
    torch.testing.assert_close(again, torch.ones_like(y))
    _, product = op.elementwise(two, x, y, device="cpu")
    torch.testing.assert_close(torch.autograd.grad(product, x, torch.ones_like(product))[0], y.detach())


def test_functions_without_a_rule_are_differentiated_by_torch() -> None:
    """A number that Python code branches on is not an argument of the derivative."""
    x = normal(6, 16, dtype=F32).requires_grad_()
    powers = op.elementwise(lambda t, s: t * 2.0 if s > 1.0 else t * 3.0)
    for s, factor in ((2.0, 2.0), (0.5, 3.0)):
        (found,) = torch.autograd.grad(powers(x, s, device="cpu"), x, torch.ones(6, 16))
        torch.testing.assert_close(found, torch.full((6, 16), factor))


def test_an_addition_saves_no_arrays() -> None:
    x, y = (normal(2, 8, dtype=F32).requires_grad_() for _ in range(2))
    z = op.add(x, y, device="cpu")
    assert z.grad_fn.saved_tensors == () and op.mul(x, y, device="cpu").grad_fn.saved_tensors != ()
    dx, dy = torch.autograd.grad(z, (x, y), torch.ones_like(z), create_graph=True)
    assert torch.equal(dx, torch.ones_like(x)) and torch.equal(dy, dx)
    both = op.elementwise(lambda a, b: (a + b, a * b))(x, y, device="cpu")  # only the first result is a sum
    dx, dy = torch.autograd.grad(both, (x, y), [torch.ones_like(z), torch.ones_like(z)])
    torch.testing.assert_close(dx, 1 + y.detach())
    torch.testing.assert_close(dy, 1 + x.detach())
