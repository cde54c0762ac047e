"""``torch.vmap`` of GEMMs runs one batched GEMM with exact results, and unsupported cases raise errors."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from cute_dialect import op  # noqa: E402
from cute_dialect.op.functions import gemm  # noqa: E402

vmap = torch.vmap
mm, bmm, linear = (partial(f, device="cpu") for f in (op.mm, op.bmm, op.linear))


def integers(*shape: int) -> torch.Tensor:
    return torch.randint(-2, 3, shape, generator=torch.Generator().manual_seed(sum(shape))).half()


A, B, W = integers(3, 8, 16), integers(3, 16, 24), integers(24, 16)
LONG_A, LONG_B = integers(2, 3, 8, 16), integers(2, 3, 16, 24)
C, BIAS, GRAD = integers(3, 24), integers(24), integers(3, 8, 24)


def exact(*x: torch.Tensor) -> torch.Tensor:
    return x[0].double() @ x[1].double()


@pytest.mark.sample(every=7)
@pytest.mark.parametrize(
    ("mapped", "want", "batches"),
    [
        (lambda: vmap(mm)(A, B), lambda: exact(A, B), 1),
        (lambda: vmap(mm, (0, None))(A, B[0]), lambda: exact(A, B[0]), 1),
        (lambda: vmap(mm, (None, 2), 1)(A[0], B.permute(1, 2, 0)), lambda: exact(A[0], B).movedim(0, 1), 1),
        (lambda: vmap(vmap(mm))(LONG_A, LONG_B), lambda: exact(LONG_A, LONG_B), 1),
        (lambda: vmap(bmm)(LONG_A, LONG_B), lambda: exact(LONG_A, LONG_B), 1),
        (lambda: vmap(bmm, (0, None))(LONG_A, B), lambda: exact(LONG_A, B), 1),
        (lambda: vmap(bmm, (None, 0))(A[:1], LONG_B), lambda: exact(A[:1], LONG_B), 1),
        (lambda: vmap(bmm, (0, None))(LONG_A, B[:1]), lambda: exact(LONG_A, B[:1]), 1),
        (lambda: vmap(lambda x: linear(x, W, BIAS, "relu"))(A), lambda: (exact(A, W.T) + BIAS).relu(), 1),
        (lambda: vmap(lambda x, c: mm(x, B[0], c=c, beta=2.0))(A, C), lambda: exact(A, B[0]) + 2 * C[:, None], 1),
        (lambda: vmap(lambda c: mm(A[0], B[0], c=c))(C), lambda: exact(A[0], B[0]) + C[:, None], 1),
        (lambda: vmap(lambda x, c: bmm(x, B, c=c))(LONG_A, C[:2]), lambda: exact(LONG_A, B) + C[:2, None, None], 1),
        (lambda: vmap(lambda x: bmm(x, B, c=GRAD))(LONG_A), lambda: exact(LONG_A, B) + GRAD, 1),
        (lambda: vmap(lambda x, v: linear(x, W, v))(A, C), lambda: exact(A, W.T) + C[:, None], 0),
    ],
)
def test_products(
    monkeypatch: pytest.MonkeyPatch, mapped: Callable[[], Any], want: Callable[[], Any], batches: int
) -> None:
    """All GEMMs share one launch, unless each matrix has its own bias."""
    seen: list[str] = []
    product = gemm.product

    def counted(name: str, *given: Any, **more: Any) -> Any:
        seen.append(name)
        return product(name, *given, **more)

    monkeypatch.setattr(gemm, "product", counted)
    found = mapped()
    assert found.shape == want().shape and torch.equal(found.double(), want())
    assert seen == ["bmm"] * batches or not batches


@pytest.mark.slow
def test_gradients() -> None:
    """Gradients of mapped and shared operands, with the derivatives of activations."""
    x, w = A.clone().requires_grad_(), B[0].clone().requires_grad_()
    vmap(mm, (0, None))(x, w).backward(GRAD)
    assert x.grad is not None and w.grad is not None
    assert torch.equal(x.grad.double(), exact(GRAD, B[0].T))
    assert torch.equal(w.grad.double(), exact(A.mT, GRAD).sum(0))
    for name, a, b in (("mm", A, B), ("bmm", LONG_A, LONG_B)):
        kept: Any = partial(getattr(torch.ops.cute, f"{name}_kept"), activation="relu", device="cpu")
        slope: Any = partial(getattr(torch.ops.cute, f"{name}_slope"), activation="relu", device="cpu")
        grad = GRAD if name == "mm" else torch.stack([GRAD, GRAD])
        result, sums = vmap(lambda a, b: kept(a, b))(a, b)  # noqa: B023
        assert torch.equal(sums.double(), exact(a, b)) and torch.equal(result, sums.clip(0))
        found, columns = vmap(lambda g, s: slope(g, s))(grad, sums)  # noqa: B023
        want = grad.double() * (exact(a, b) > 0)
        assert torch.equal(found.double(), want) and torch.equal(columns.double(), want.sum(-2, keepdim=True))
    one, biases = B[0].clone().requires_grad_(), integers(3, 24)
    found = vmap(lambda a, c: mm(a, one, bias=c, activation="silu"), (0, 0))(A, biases)
    found.backward(GRAD)
    wide = B[0].double().requires_grad_()
    torch.nn.functional.silu(exact(A, wide) + biases.double()[:, None]).backward(GRAD.double())
    assert one.grad is not None and wide.grad is not None
    assert float((one.grad.double() - wide.grad).abs().max()) < 4e-3 * float(wide.grad.abs().max())


def test_invalid_arguments_are_rejected() -> None:
    def doubled(accum: Any) -> Any:
        return 2 * accum

    cases: list[tuple[Callable[[], object], str]] = [
        (
            lambda: vmap(lambda x, y: mm(x, y, epilogue=doubled))(A, B),
            "mm: epilogue is not supported with gradients, torch.compile or torch.vmap; omit it, or call "
            "under torch.no_grad() with plain tensors",
        ),
        (
            lambda: torch.func.grad(lambda w: mm(A[0], w).sum())(B[0]),
            "mm: torch.func.grad does not support operators of torch.library; use backward() or torch.autograd.grad",
        ),
        (
            lambda: torch.func.grad(lambda q: op.attention(q, q, q, device="cpu").sum())(
                torch.zeros(1, 2, 4, 16).half()
            ),
            "attention: torch.func.grad does not support operators of torch.library; use backward() or "
            "torch.autograd.grad",
        ),
        (
            lambda: vmap(lambda q: op.attention(q, q, q, device="cpu"))(torch.zeros(2, 1, 2, 4, 16).half()),
            "attention: q: torch tensors without storage, such as those of torch.vmap, are not supported",
        ),
    ]
    for call, said in cases:
        with pytest.raises(op.OpError) as told:
            call()
        assert str(told.value) == said
