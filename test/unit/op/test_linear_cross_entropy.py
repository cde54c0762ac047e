"""``op.linear_cross_entropy`` on the interpreter, compared with float64."""

# pyright: basic, reportCallIssue=false, reportArgumentType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cute_dialect import op
from cute_dialect.op.functions import linear_cross_entropy
from cute_dialect.op.problems.linear_cross_entropy import Settings, default_chunk

torch: Any = pytest.importorskip("torch")
F = torch.nn.functional
TorchDispatchMode: Any = pytest.importorskip("torch.utils._python_dispatch").TorchDispatchMode

LIMITS = {torch.float16: 4e-3, torch.bfloat16: 2e-2, torch.float32: 1e-5}


def normal(*shape: int, seed: int = 0, dtype: Any = torch.bfloat16) -> Any:
    made = np.random.default_rng([seed, *shape]).standard_normal(shape)
    return torch.from_numpy(made).to(dtype)


def data(rows: int, k: int, classes: int, dtype: Any, bias: bool = True) -> tuple[list[Any], Any]:
    """Return x, weight and the bias with gradients, and targets of which some are ignored."""
    arrays = [normal(rows, k, dtype=dtype), normal(classes, k, seed=1, dtype=dtype) / 4]
    arrays += [normal(classes, seed=2, dtype=dtype)] if bias else []
    target = torch.from_numpy(np.random.default_rng(rows).integers(0, classes, rows))
    target[1::4] = -100
    return [t.detach().requires_grad_() for t in arrays], target


def exact(arrays: list[Any], target: Any, grad: Any = None, **how: Any) -> list[Any]:
    """Return the loss and the gradients in float64."""
    wide = [t.detach().double().requires_grad_() for t in arrays]
    loss = F.cross_entropy(F.linear(*wide), target, **how)
    return [loss.detach(), *torch.autograd.grad(loss, wide, None if grad is None else grad.double())]


def check(arrays: list[Any], target: Any, chunk: int | None, grad: Any = None, **how: Any) -> None:
    loss = op.linear_cross_entropy(*arrays[:2], target, *arrays[2:], chunk=chunk, device="cpu", **how)
    found = [loss, *torch.autograd.grad(loss, arrays, grad)]
    assert loss.dtype == torch.float32
    for ours, wanted, like in zip(found, exact(arrays, target, grad, **how), [loss, *arrays]):
        assert ours.shape == wanted.shape and ours.dtype == like.dtype
        limit = LIMITS[arrays[0].dtype] * wanted.abs().max().item() + 1e-6
        torch.testing.assert_close(ours.double(), wanted, rtol=0, atol=limit)


@pytest.mark.slow  # test_gradients_of_separate_losses has three chunks, too
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_three_chunks(reduction: str) -> None:
    arrays, target = data(20, 24, 43, torch.bfloat16)
    check(arrays, target, 8, torch.tensor(1 / 3), reduction=reduction)


@pytest.mark.slow
@pytest.mark.end_to_end
@pytest.mark.sample("torch.bfloat16")
@pytest.mark.parametrize("dtype", LIMITS, ids=str)
def test_label_smoothing(dtype: Any) -> None:
    arrays, target = data(9, 40, 21, dtype, bias=False)
    check(arrays, target, None, label_smoothing=0.2)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", LIMITS, ids=str)
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("chunk", [1, 5, 8, 100])
@pytest.mark.parametrize("k, classes", [(1, 1), (7, 3), (64, 130)])
def test_sizes(k: int, classes: int, chunk: int, smoothing: float, dtype: Any) -> None:
    arrays, target = data(13, k, classes, dtype)
    for reduction in ("mean", "sum"):
        check(arrays, target, chunk, reduction=reduction, label_smoothing=smoothing)
    check(arrays, target, chunk, normal(13, dtype=torch.float32), reduction="none", label_smoothing=smoothing)


@pytest.mark.slow
@pytest.mark.parametrize("k, classes", [(1, 3), (8, 1)])
def test_a_weight_of_one_row_or_column(k: int, classes: int) -> None:
    """Epilogues would broadcast the matrices of its gradient."""
    arrays, target = data(9, k, classes, torch.bfloat16, bias=False)
    loss = op.linear_cross_entropy(*arrays, target, chunk=4, device="cpu")
    for ours, wanted in zip(torch.autograd.grad(loss, arrays), exact(arrays, target)[1:]):
        torch.testing.assert_close(ours.double(), wanted, rtol=0, atol=2e-2 * wanted.abs().max().item() + 1e-6)


@pytest.mark.slow
def test_gradients_of_separate_losses() -> None:
    """The backward pass computes the logits again, with the gradient of each row."""
    arrays, target = data(10, 24, 43, torch.bfloat16)
    check(arrays, target, 4, normal(10, dtype=torch.float32), reduction="none")


@pytest.mark.slow
def test_more_dimensions_and_fewer_gradients() -> None:
    (x, weight, _), target = data(12, 24, 43, torch.bfloat16)
    wanted = exact([x, weight], target)
    shaped, weight = x.detach().view(3, 4, 24), weight.detach()
    loss = op.linear_cross_entropy(shaped, weight, target.view(3, 4), device="cpu")
    assert not loss.requires_grad and abs(loss - wanted[0]) < 1e-2
    loss = op.linear_cross_entropy(shaped.requires_grad_(), weight, target.view(3, 4), device="cpu")
    loss.backward()
    assert weight.grad is None and shaped.grad.shape == shaped.shape
    torch.testing.assert_close(shaped.grad.view(12, 24).double(), wanted[1], rtol=0, atol=1e-3)
    losses = op.linear_cross_entropy(shaped.detach(), weight, target.view(3, 4), reduction="none", device="cpu")
    assert losses.shape == (3, 4) and (losses.view(12)[1::4] == 0).all()


@pytest.mark.slow
@pytest.mark.end_to_end
@pytest.mark.sample("mean")
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_no_targets_and_no_rows(reduction: str) -> None:
    """Without targets a mean is NaN and gradients are 0, as in torch."""
    for rows in (6, 0):
        arrays, target = data(rows, 24, 43, torch.bfloat16)
        target.fill_(-100)
        loss = op.linear_cross_entropy(*arrays[:2], target, arrays[2], reduction=reduction, chunk=4, device="cpu")
        assert loss.isnan() if reduction == "mean" else (loss == 0).all()
        loss.sum().backward()
        assert all([(t.grad == 0).all() and t.grad.shape == t.shape for t in arrays])


@pytest.mark.slow
def test_small_gradients_of_f16() -> None:
    """A mean over many rows divides gradients of f16 to values that f16 would round to 0."""
    arrays, target = data(512, 8, 16, torch.float16, bias=False)
    arrays[0].data *= 0.01
    (found,) = torch.autograd.grad(op.linear_cross_entropy(*arrays, target, device="cpu") * 2.0**14, arrays[:1])
    wanted = exact(arrays, target)[1] * 2.0**14
    torch.testing.assert_close(found.double(), wanted, rtol=0, atol=4e-3 * wanted.abs().max().item())


@pytest.mark.slow
def test_the_gradient_of_the_weight_is_rounded_once() -> None:
    """Sixteen chunks have no larger error than one rounding of the exact sum of the chunks."""
    rows, grad = normal(64, 24), normal(64, 8, seed=1)
    arrays = {"x": rows, "weight": normal(8, 24)}
    one = linear_cross_entropy.RowCall("linear_cross_entropy", arrays, "cpu")
    of_weight = linear_cross_entropy.WeightGradient(one, 8, 24)
    for i in range(16):
        part = slice(4 * i, 4 * i + 4)
        of_weight.add(grad[part], rows[part], i == 0, i == 15, "cpu")
    wanted = grad.double().T @ rows.double()
    assert ((of_weight.result.double() - wanted).abs() <= wanted.abs() * 2.0**-8 + 1e-3).all()


@pytest.mark.end_to_end
def test_numpy_has_losses_only() -> None:
    arrays, target = data(9, 24, 43, torch.float32)
    given = [t.detach().numpy() for t in arrays]
    for reduction in ("mean", "none"):
        found = op.linear_cross_entropy(
            *given[:2], target.numpy(), given[2], reduction=reduction, chunk=4, device="cpu", label_smoothing=0.1
        )
        wanted = F.cross_entropy(F.linear(*arrays), target, reduction=reduction, label_smoothing=0.1)
        assert isinstance(found, np.ndarray)
        np.testing.assert_allclose(found, wanted.detach().numpy(), rtol=1e-4, atol=1e-5)
    nothing = np.full_like(target.numpy(), -100)
    assert np.isnan(op.linear_cross_entropy(*given[:2], nothing, device="cpu"))


class Allocations(TorchDispatchMode):
    """The largest number of elements of a tensor that an operation returns."""

    largest = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        for t in found if isinstance(found, tuple | list) else (found,):
            if isinstance(t, torch.Tensor):
                self.largest = max(self.largest, t.untyped_storage().nbytes() // t.element_size())
        return found


@pytest.mark.slow
@pytest.mark.end_to_end
def test_no_tensor_has_all_logits() -> None:
    """The largest tensors are the weight and its gradient, of 384 elements; all logits are 3072."""
    arrays, target = data(64, 8, 48, torch.bfloat16, bias=False)
    how = Settings(-100, "mean", 0.0, 8)
    with Allocations() as seen, torch.no_grad():
        found = linear_cross_entropy.losses_and_gradients(
            *arrays, target, None, how, needs=(True, True, False), device="cpu"
        )
    assert found.weight.shape == (48, 8) and 48 * 8 <= seen.largest <= 64 * 8


@pytest.mark.slow
def test_compiled() -> None:
    arrays, target = data(10, 24, 43, torch.bfloat16)

    @torch.compile(fullgraph=True, backend="aot_eager")
    def loss(x: Any, weight: Any, bias: Any) -> Any:
        return op.linear_cross_entropy(x, weight, target, bias, chunk=4, device="cpu")

    found = torch.autograd.grad(loss(*arrays) * 2, arrays)
    for ours, wanted in zip(found, exact(arrays, target)[1:]):
        torch.testing.assert_close(ours.double(), 2 * wanted, rtol=0, atol=3e-2 * wanted.abs().max().item())


@pytest.mark.slow
@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_operator(reduction: str) -> None:
    (x, weight, bias), target = data(6, 16, 24, torch.float32)
    checks = ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")
    args = (x, weight, target, bias, -100, reduction, 0.0, 4, True, True, True)
    torch.library.opcheck(torch.ops.cute.linear_cross_entropy, args, test_utils=checks)


@pytest.mark.slow
def test_no_second_derivative() -> None:
    arrays, target = data(6, 16, 24, torch.bfloat16)
    loss = op.linear_cross_entropy(*arrays[:2], target, device="cpu").square()
    (grad,) = torch.autograd.grad(loss, arrays[0], create_graph=True)
    with pytest.raises(RuntimeError):
        torch.autograd.grad(grad.sum(), arrays[1])


X, W, T = normal(6, 16), normal(24, 16), torch.zeros(6, dtype=torch.int64)


@pytest.mark.parametrize("args, how, error, message", [
    ((X, W[:, :8], T), {}, op.ShapeError,
     "weight has shape (24, 8); it must have (classes, 16), as x has shape (6, 16)"),
    ((X, W[:0], T), {}, op.ShapeError, "weight has shape (0, 16); it must not be empty"),
    ((X, W, T[:5]), {}, op.ShapeError, "target has shape (5,); it must have (6,)"),
    ((X, W, T, X[0]), {}, op.ShapeError, "bias has shape (16,); it must have (24,)"),
    ((X, W.half(), T), {}, op.DtypeError, "weight has dtype f16; it must have bf16, like x"),
    ((X, W, T.int()), {}, op.DtypeError, "target has dtype i32; it must have i64"),
    ((X, W, T + 24), {}, op.ArgumentError,
     "target has the class 24, but weight has 24 classes; pass 0 to 23, or ignore_index=-100"),
    ((X, W, T), {"reduction": "max"}, op.UnsupportedError,
     "reduction='max' is not supported; use 'mean', 'sum' or 'none'"),
    ((X, W, T), {"chunk": 0}, op.ArgumentError, "chunk is 0; pass a positive number of rows, or None"),
    ((X, W, T), {"label_smoothing": 2.0}, op.UnsupportedError, "label_smoothing is 2.0; it must be between 0 and 1"),
])  # fmt: skip
def test_refusals(args: tuple[Any, ...], how: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error) as found:
        op.linear_cross_entropy(*args, device="cpu", **how)
    assert str(found.value) == f"linear_cross_entropy: {message}"


def test_a_keyword_of_another_library() -> None:
    with pytest.raises(op.ArgumentError, match=r"linear_cross_entropy\(\) has no argument 'softcap'"):
        op.linear_cross_entropy(X, W, T, softcap=30.0)


def test_default_chunks() -> None:
    chunk = default_chunk
    assert [chunk(8192, 4096, 128256, 2), chunk(8192, 2048, 32000, 2), chunk(100, 64, 1000, 2), chunk(0, 8, 8, 4)] == [
        2048, 4096, 100, 1,
    ]  # fmt: skip


def test_explain_lists_the_steps_of_a_chunk() -> None:
    found = op.explain(op.linear_cross_entropy, (8192, 4096), (128256, 4096), element="bf16")
    assert [label for label, _ in found.steps] == ["logits", "loss", "gradient", "of x", "of weight"]
    assert (found.chunks, found.chunk, found.flops) == (4, 2048, 6 * 8192 * 4096 * 128256)
    assert str(found).startswith(
        "linear_cross_entropy of 8192 rows of 4096 bf16, 128256 classes\n"
        "  chunks    4 of up to 2048 rows; 525 MB for the logits of a chunk\n"
    )
    assert op.explain(op.linear_cross_entropy, X, W, chunk=4).chunks == 2
    assert op.explain(op.linear_cross_entropy, (8, 1), (3, 1), chunk=4).chunks == 2


@pytest.mark.parametrize("args, how, error, message", [
    ((X, W[:, :8]), {}, op.ShapeError,
     "x has shape (6, 16) and weight has shape (24, 8); pass (rows, K) and (classes, K) of at least one element"),
    ((X.int(), W.int()), {}, op.UnsupportedError, "x has dtype i32; it must have one of f32, f16, bf16"),
])  # fmt: skip
def test_refused_explanations(args: Any, how: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error) as found:
        op.explain(op.linear_cross_entropy, *args, **how)
    assert str(found.value) == f"linear_cross_entropy: {message}"


def test_an_array_without_reshape() -> None:
    class Exported:
        """An array that has DLPack only."""

        def __init__(self, of: Any) -> None:
            self.shape, self.__dlpack__, self.__dlpack_device__ = of.shape, of.__dlpack__, of.__dlpack_device__

    with pytest.raises(op.DtypeError, match=r"x is a Exported without reshape\(\); pass an array of torch"):
        op.linear_cross_entropy(*[Exported(t.numpy()) for t in (X.float(), W.float(), T)], device="cpu")
