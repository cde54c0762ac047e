"""``op.route`` on the interpreter, compared with float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cute_dialect import op
from cute_dialect.kernels.rows.route import RouteConfig, route_text
from cute_dialect.op.execute.array_call import RowKernel

torch = pytest.importorskip("torch")


def logits_of(rows: int, experts: int, dtype: Any = np.float32) -> Any:
    """Multiples of 1/4, so that many are equal."""
    x = np.random.default_rng([rows, experts]).standard_normal((rows, experts)) * 2
    return (np.round(x * 4) / 4).astype(dtype)


def exact_choice(scores: Any, k: int, groups: int, top: int, is_summed: bool) -> Any:
    """Return the best experts of each row; of equal scores the lower one precedes."""
    scores = np.asarray(scores).astype(np.float64)
    if top < groups:
        inside = np.sort(scores.reshape(len(scores), groups, -1), -1)[:, :, ::-1]
        of_groups = inside[:, :, :2].sum(-1) if is_summed else inside[:, :, 0]
        order = np.argsort(-of_groups, -1, kind="stable")
        for row, closed in enumerate(order[:, top:]):
            scores[row].reshape(groups, -1)[closed] = -np.inf
    return np.argsort(-scores, -1, kind="stable")[:, :k]


def exact_weights(x: Any, chosen: Any, score: str, normalise: bool, scale: float) -> Any:
    """Return the weights of torch tensors in f64."""
    scores = torch.softmax(x, -1) if score == "softmax" else torch.sigmoid(x)
    found = scores.gather(-1, chosen)
    if normalise:
        found = found / found.sum(-1, keepdim=True)
    return found * scale


SETTINGS: list[dict[str, Any]] = [
    {"k": 3}, {"k": 1, "normalise": False}, {"k": 4, "score": "sigmoid", "scale": 2.5},
    {"k": 2, "score": "sigmoid", "normalise": False}, {"k": 4, "groups": 4, "top_groups": 2},
    {"k": 3, "score": "sigmoid", "groups": 8, "top_groups": 3, "bias": True, "scale": 0.5},
    {"k": 2, "groups": 4, "top_groups": 1, "bias": True, "normalise": False},
]  # fmt: skip


@pytest.mark.sample(every=5)
@pytest.mark.parametrize("rows, experts", [(5, 40), (1, 8), (6, 64), (3, 200)])
@pytest.mark.parametrize("settings", SETTINGS, ids=lambda s: "-".join(f"{k}={v}" for k, v in s.items()))
def test_weights_experts_and_gradients(rows: int, experts: int, settings: dict[str, Any]) -> None:
    """Equal logits, lanes without an expert, and rows that are not a multiple of the rows of a block."""
    how: dict[str, Any] = {
        "score": "softmax",
        "normalise": True,
        "scale": 1.0,
        "groups": 1,
        "top_groups": 1,
        **settings,
    }
    bias: Any = None
    if settings.get("bias"):
        bias = torch.randint(-2, 3, (experts,)).float()
    x = torch.tensor(logits_of(rows, experts))
    given = x.clone().requires_grad_()
    more: dict[str, Any] = {**settings, "bias": bias, "device": "cpu"}
    weights, chosen = op.route(given, **more)
    checked = op.route(x, **more, checks="all")
    assert torch.equal(weights, checked[0]) and torch.equal(chosen, checked[1])
    scores = x.double()
    if bias is not None:
        # Scores are rounded to f32 before the bias is added.
        scores = torch.softmax(scores, -1) if how["score"] == "softmax" else torch.sigmoid(scores)
        scores = scores.float() + bias
    found = chosen.numpy()
    if bias is None:
        want = exact_choice(scores, how["k"], how["groups"], how["top_groups"], False)
        np.testing.assert_array_equal(found, want)
    else:
        # Roundings may exchange scores that differ by a few units in the last place.
        best = exact_choice(scores, how["k"], how["groups"], how["top_groups"], True)
        of_found, of_best = (np.take_along_axis(scores.numpy(), i, -1) for i in (found, best))
        np.testing.assert_allclose(of_found, of_best, rtol=0, atol=1e-6)
    assert chosen.dtype == torch.int32 and weights.dtype == torch.float32
    wide = x.double().requires_grad_()
    exact = exact_weights(wide, chosen.long(), how["score"], how["normalise"], how["scale"])
    torch.testing.assert_close(weights.double(), exact, rtol=1e-6, atol=1e-7)
    g = torch.randn(weights.shape)
    (dx,), (wanted,) = torch.autograd.grad(weights, given, g), torch.autograd.grad(exact, wide, g.double())
    torch.testing.assert_close(dx.double(), wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_types_ranks_and_strides(dtype: Any) -> None:
    x = torch.tensor(logits_of(12, 48)).to(dtype).reshape(2, 48, 6).transpose(1, 2)
    weights, chosen = op.route(x, 5, device="cpu")
    assert weights.shape == chosen.shape == (2, 6, 5)
    want = exact_choice(x.double().reshape(12, 48), 5, 1, 1, False)
    np.testing.assert_array_equal(chosen.reshape(12, 5), want)
    exact = exact_weights(x.double(), chosen.long(), "softmax", True, 1.0)
    torch.testing.assert_close(weights.double(), exact, rtol=1e-6, atol=1e-7)
    sliced = torch.tensor(logits_of(4, 50)).to(dtype)[:, 1:34]
    np.testing.assert_array_equal(op.route(sliced, 2, device="cpu")[1], exact_choice(sliced.double(), 2, 1, 1, False))


def test_special_values() -> None:
    """NaN is the greatest score, zeros of both signs are equal, and experts of -inf have the weight 0."""
    inf = np.inf
    x = np.array([[0.0, -0.0, -1.0, 0.0], [-inf, -inf, 2.0, -inf], [1.0, np.nan, inf, -inf]], np.float32)
    weights, chosen = op.route(x, 2, device="cpu")
    np.testing.assert_array_equal(chosen, [[0, 1], [2, 0], [1, 2]])
    np.testing.assert_array_equal(weights[:2], [[0.5, 0.5], [1, 0]])
    assert np.isnan(weights[2]).all()
    weights, _ = op.route(np.full((1, 3), -200, np.float32), 2, "sigmoid", device="cpu")
    np.testing.assert_array_equal(weights, [[0, 0]])
    weights, chosen = op.route(np.zeros((0, 4), np.float32), 2, device="cpu")
    assert weights.shape == chosen.shape == (0, 2)


@pytest.mark.parametrize("schedule", ["adversarial", "reverse", "random"])
def test_schedules(schedule: str) -> None:
    c = RouteConfig("f32", 70, 3, bias=True, groups=7, top_groups=2)
    kernel: Any = RowKernel(c.name, route_text, (c,)).compiled(cpu=True).kernel("launch")
    x, bias = logits_of(5, 70), np.zeros((1, 70), np.float32)
    weights, experts = np.full((5, 3), np.nan, np.float32), np.full((5, 3), -1, np.int32)
    kernel(x, bias, weights, experts, 1.0, device="cpu", checks=("race", "uninit"), schedule=schedule, seed=2)
    again, chosen = op.route(x, 3, groups=7, top_groups=2, bias=bias[0], device="cpu")
    np.testing.assert_array_equal(weights, again)
    np.testing.assert_array_equal(experts, chosen)


@pytest.mark.slow
@pytest.mark.end_to_end
def test_operators() -> None:
    x = torch.tensor(logits_of(3, 16)).requires_grad_()
    weights, chosen = op.route(x, 2, device="cpu")
    how = (2, "softmax", None, None, True, 1.0)
    utils = ("test_schema", "test_faketensor", "test_autograd_registration")
    torch.library.opcheck(torch.ops.cute.route.default, (x, None, *how), test_utils=utils)
    given = (torch.ones(3, 2), x.detach(), chosen, *how)
    torch.library.opcheck(torch.ops.cute.route_backward.default, given, test_utils=utils[:2])

    def loss(x: Any) -> Any:
        return op.route(x, 2, device="cpu")[0].square().sum()

    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    (found,) = torch.autograd.grad(compiled(x), x)
    (wanted,) = torch.autograd.grad(weights.square().sum(), x)
    torch.testing.assert_close(found, wanted)
    assert not chosen.requires_grad


def test_explanation() -> None:
    found = op.explain(op.route, (64, 256), 8, score="sigmoid", groups=8, top_groups=4, element="f32", bias=(256,))
    assert found.kernel == "route-f32-256-8-sigmoid-bias-groups8x4" and found.bytes == 64 * (1024 + 64)
    assert str(found).startswith("route of 64 x 256 f32 to 8 experts\n") and "8 experts per lane" in str(found)


X = np.zeros((3, 16), np.float32)
BAD: dict[str, Any] = {"kk": 2}


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: op.route(X, 0, device="cpu"), op.ArgumentError, "k is 0; pass a positive number"),
        (lambda: op.route(X, 17, device="cpu"), op.ArgumentError, "k=17 exceeds the 16 experts; pass at most 16"),
        (lambda: op.route(np.zeros((1, 64), "f4"), 33), op.ArgumentError, "k=33 exceeds the limit of 32; pass at most"),
        (lambda: op.route(np.zeros((1, 513), "f4"), 2), op.ShapeError, "have 513 experts; 1 to 512 are supported"),
        (lambda: op.route(X, 2, "relu", device="cpu"), op.UnsupportedError, "score='relu' is not supported; use 'soft"),
        (lambda: op.route(X, 2, groups=3, top_groups=1, device="cpu"), op.ArgumentError, "groups=3 does not divide"),
        (lambda: op.route(X, 2, groups=True, device="cpu"), op.ArgumentError, "groups is True; pass 1 to 32, or None"),
        (lambda: op.route(X, 2, top_groups=2, device="cpu"), op.ArgumentError, "top_groups=2 needs groups"),
        (lambda: op.route(X, 2, groups=4, device="cpu"), op.ArgumentError, "groups=4 needs top_groups; pass"),
        (lambda: op.route(X, 2, normalise="no", device="cpu"), op.ArgumentError, "normalise is 'no'; pass True or"),
        (lambda: op.route(X, device="cpu"), op.ArgumentError, r"route\(\) needs an argument 'k'; required"),
        (lambda: op.route(X, topk=2, device="cpu"), op.ArgumentError, r"route\(\) has no argument 'topk'; pass k"),
        (lambda: op.route(X, 2, groups=2, top_groups=4, device="cpu"), op.ArgumentError, "top_groups=4 exceeds groups"),
        (
            lambda: op.route(X, 9, groups=4, top_groups=2, device="cpu"), op.ArgumentError,
            "k=9 exceeds the 8 experts of top_groups=2 of 4 groups; pass at most 8",
        ),
        (lambda: op.route(X, 2, scale=np.inf, device="cpu"), op.ArgumentError, "scale is inf; pass a finite number"),
        (lambda: op.route(X, 2, bias=X[0, :8], device="cpu"), op.ShapeError, "bias has shape"),
        (lambda: op.route(X, 2, bias=X[0].astype("f2"), device="cpu"), op.DtypeError, "bias has dtype f16; it must"),
        (lambda: op.route(X.astype(np.int8), 2, device="cpu"), op.DtypeError, "logits has dtype i8; it must have one"),
        (lambda: op.route(X, 2, device="cpu", **BAD), op.ArgumentError, r"route\(\) has no argument 'kk'"),
        (lambda: op.explain(op.route, (0, 4), 2), op.ShapeError, "must not be empty"),
        (lambda: op.explain(op.route, (2, 4), 2, element="i8"), op.DtypeError, "logits has dtype i8"),
        (lambda: op.explain(op.route, (2, 4)), op.ArgumentError, "k is None; pass a positive number"),
        (lambda: op.explain(op.route, (2, 4), 2, device="cpu"), op.ArgumentError, "not explained with device; omit"),
    ],
)  # fmt: skip
def test_errors(call: Any, error: type[op.OpError], words: str) -> None:
    with pytest.raises(error, match=words):
        call()


def test_numbers_of_numpy() -> None:
    found = op.route(X, np.int64(2), groups=np.int32(4), top_groups=np.int64(2), scale=np.float32(0.5), device="cpu")
    wanted = op.route(X, 2, groups=4, top_groups=2, scale=0.5, device="cpu")
    assert all(np.array_equal(x, y) for x, y in zip(found, wanted, strict=True))
