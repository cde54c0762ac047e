"""Convolution functions on the interpreter: forward and both gradients, compared with a loop over filter taps."""

# pyright: basic

from __future__ import annotations

import random
from typing import Any, cast

import numpy as np
import pytest
from conv_reference import How, forward, gradients, how, small
from products_on_the_cpu import noted

from cute_dialect import op

CHECKS: Any = {"device": "cpu", "checks": ("race", "uninit", "oob", "sync")}
CASES: dict[str, tuple[tuple[int, ...], tuple[int, ...], How, Any, str]] = {
    "f16": ((1, 4, 5, 72), (64, 3, 3, 72), how(), np.float16, "fdw"),
    "f16, 20 channels, stride": ((1, 5, 4, 20), (12, 3, 3, 20), how(1, 2), np.float16, "fdw"),
    "tf32, backwards": ((1, 3, 3, 16), (8, 2, 2, 16), How((1, 0), (0, 1), (1, 1), (1, 2), 1, True), np.float32, "fd"),
    "f16, groups": ((1, 3, 3, 96), (128, 2, 2, 48), how(groups=2), np.float16, "fdw"),
    "f64, groups, backwards": (
        (1, 3, 3, 4),
        (4, 2, 2, 2),
        How((1, 1), (0, 0), (1, 2), (1, 1), 2, True),
        np.float64,
        "",
    ),
    "f16, depthwise": ((1, 5, 6, 8), (8, 3, 2, 1), How((1, 0), (0, 2), (1, 1), (1, 2), 8), np.float16, ""),
    "f16, 67 channels": ((2, 4, 5, 67), (35, 2, 2, 67), how(), np.float16, "fdw"),
    "f16, one tap": ((1, 3, 3, 64), (72, 1, 1, 64), how(0), np.float16, ""),
}
"""Image, filters, window, dtype, and the passes that use im2col TMA loads: forward (f), input gradient (d) and filter
gradient (w).
"""


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the names of the launched im2col kernels, on a chip with two SMs."""
    from cute_dialect.kernels.conv.config import ConvConfig
    from cute_dialect.op.conv import compute, dispatch
    from cute_dialect.op.conv.choice import served

    found: list[str] = []
    given, tiles = compute.kernel_of, dispatch.few_channels

    def few(asked: Any, sms: int) -> Any:
        """Return the kernel of image tiles only where there is no other; further tests cover them."""
        g = asked.geometry
        wide = max(g.filter[0] // g.groups, g.filter[-1]) > 32
        return None if g.groups == 1 or (wide and served(asked)) else tiles(asked, sms)

    monkeypatch.setattr(dispatch, "few_channels", few)

    def told(config: Any, cpu: bool = False) -> Any:
        if isinstance(config, ConvConfig):  # further kernels combine partial reductions
            found.append(config.kind)
        return given(config, cpu)

    monkeypatch.setattr(compute, "here", lambda: ("NVIDIA H200", 2))
    monkeypatch.setattr(compute, "kernel_of", told)
    return found


@pytest.mark.end_to_end
@pytest.mark.sample("f16")
@pytest.mark.parametrize("name", CASES)
def test_forward_and_gradients(name: str, launched: list[str]) -> None:
    of_x, of_f, h, dtype, kinds = CASES[name]
    rng = np.random.default_rng(3)
    x, f = small(rng, *of_x, dtype=dtype), small(rng, *of_f, dtype=dtype)
    want = forward(x, f, h)
    y = small(rng, *want.shape, dtype=dtype)
    dx, df = gradients(x, f, y, h)
    how_ = {**h.arguments, **CHECKS, "math": "tf32" if dtype is np.float32 else "default"}
    assert (op.conv2d(x, f, **how_) == want).all()
    assert (op.conv2d_input(x.shape, f, y, **how_) == dx).all()
    assert (op.conv2d_weight(x, f.shape, y, **how_) == df).all()
    assert [kind[0] for kind in launched] == list(kinds)


@pytest.mark.slow
def test_gradients_are_added(launched: list[str]) -> None:
    """Strided input gradients and filter gradients are scaled and added to ``c``."""
    rng, h = np.random.default_rng(4), how(1, 2)
    x, f, y = small(rng, 1, 5, 4, 40), small(rng, 8, 3, 3, 40), small(rng, 1, 3, 2, 8)
    dx, df = gradients(x, f, y, h)
    c, d = small(rng, *x.shape), small(rng, *f.shape)
    assert (op.conv2d_input(x.shape, f, y, **h.arguments, c=c, alpha=2.0, device="cpu") == 2 * dx + c).all()
    before = d.copy()
    assert op.conv2d_weight(x, f.shape, y, **h.arguments, c=d, beta=2.0, out=d, device="cpu") is d
    assert (d == df + 2 * before).all() and launched == ["dgrad", "wgrad"]


@pytest.mark.slow
def test_a_kernel_for_one_tap_in_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """A grouped 1x1 convolution is one GEMM, batched over the groups."""
    rng, names = np.random.default_rng(10), noted(monkeypatch)
    x, f, h = small(rng, 1, 3, 4, 32), small(rng, 48, 1, 1, 16), how(0, groups=2)
    instruction = op.MathInstruction([64, 64, 16], "f16", "f16", "f32")
    tile = op.TileDescription([128, 64, 64], 3, None, instruction)
    assert (op.conv2d(x, f, **h.arguments, kernel=tile, device="cpu") == forward(x, f, h)).all()
    assert names == ["f16-f16-kk-128x64-c1bd-q3"]
    with pytest.raises(
        op.UnsupportedError, match=(r'conv2d: there is no kernel "fast" for f16-f16-kk 2x12x24x16; see op\.explain')
    ):
        op.conv2d(x, f, **h.arguments, kernel="fast", device="cpu")


@pytest.mark.slow
def test_epilogues(launched: list[str]) -> None:
    """Bias, activation, ``c`` and scalars work with im2col loads and with stored columns, and so does a per-channel
    sum.
    """
    rng = np.random.default_rng(5)
    x, f = small(rng, 1, 4, 3, 16), small(rng, 64, 2, 3, 16)
    bias, c = np.arange(64, dtype=np.float32) - 30, small(rng, 1, 5, 3, 64)
    sums = forward(x, f, how())
    got = op.conv2d(x, f, bias, padding=1, alpha=2.0, c=c, beta=0.5, activation="relu", **CHECKS)
    assert (got == np.maximum(2 * sums + 0.5 * c + bias, 0)).all()
    exact = op.conv2d(*(t.astype(np.float32) for t in (x, f)), bias, padding=1, c=c.astype(np.float32), device="cpu")
    assert (exact == sums + c + bias).all() and launched == ["fprop"]

    def residual(accum: Any, bias: Any, c: Any) -> Any:
        D = op.epilogue.relu(accum + bias) + c
        total = op.epilogue.sum(D, -2)
        return D, total

    d, total = op.conv2d(x, f, padding=1, epilogue=residual, args={"bias": bias, "c": c}, **CHECKS)
    want = np.maximum(sums + bias, 0) + c
    assert (d == want).all() and d.shape == want.shape
    assert (total == want.sum((0, 1, 2))).all() and total.shape == (1, 1, 1, 64)


@pytest.mark.slow
def test_epilogues_with_several_results(launched: list[str]) -> None:
    """Strided input gradients, filter gradients and groups store further results in the kernel."""
    rng = np.random.default_rng(6)

    def beside(accum: Any, c: Any) -> Any:
        D = 2 * accum + c
        aux = accum + 1
        return D, aux

    x, f, h = small(rng, 1, 5, 4, 40), small(rng, 8, 3, 3, 40), how(1, 2)
    y, c = small(rng, *forward(x, f, h).shape), small(rng, *x.shape)
    exact = gradients(x, f, y, h)[0]
    d, aux = op.conv2d_input(x.shape, f, y, **h.arguments, epilogue=beside, args={"c": c}, **CHECKS)
    assert (d == 2 * exact + c).all() and (aux == exact + 1).all()
    x, f, h = small(rng, 2, 3, 2, 72), small(rng, 64, 2, 2, 72), how()
    y, c = small(rng, *forward(x, f, h).shape), small(rng, *f.shape)
    exact = gradients(x, f, y, h)[1]
    d, aux = op.conv2d_weight(x, f.shape, y, **h.arguments, epilogue=beside, args={"c": c}, **CHECKS)
    assert (d == 2 * exact + c).all() and (aux == exact + 1).all()
    x, f, h = small(rng, 1, 4, 3, 80), small(rng, 48, 3, 3, 40), how(groups=2)
    exact, bias = forward(x, f, h), np.arange(48, dtype=np.float32) - 20
    c = small(rng, *exact.shape)
    got = op.conv2d(x, f, bias, **h.arguments, c=c, activation="relu", **CHECKS)
    assert (got == np.maximum(exact + c + bias, 0)).all() and launched == ["dgrad", "wgrad", "fprop"]


@pytest.mark.slow
def test_grouped_filter_gradients_with_split_pixels() -> None:
    """Split-K slices of grouped filter gradients are added per tile before the epilogue."""
    rng, h = np.random.default_rng(9), how(groups=2)
    x, f = small(rng, 2, 9, 11, 96), small(rng, 128, 3, 2, 48)
    y, c = small(rng, *forward(x, f, h).shape), small(rng, *f.shape)
    df = gradients(x, f, y, h)[1]
    assert op.explain(op.conv2d_weight, x, f.shape, y, padding=1, groups=2, split_k=2).config.parts == 2
    assert (op.conv2d_weight(x, f.shape, y, **h.arguments, split_k=2, **CHECKS) == df).all()
    assert (op.conv2d_weight(x, f.shape, y, **h.arguments, c=c, beta=2.0, split_k=2, **CHECKS) == df + 2 * c).all()
    large = op.explain(op.conv2d_weight, (32, 28, 28, 256), (256, 3, 3, 64), (32, 28, 28, 256), padding=1, groups=4)
    assert large.config.parts > 2


@pytest.mark.slow
def test_epilogues_of_depthwise_convolutions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Depthwise kernels apply bias, ``c`` and an activation, but no per-channel sums."""
    from cute_dialect.op.conv import depthwise

    names, given = list[str](), depthwise.kernel_of
    monkeypatch.setattr(depthwise, "kernel_of", lambda config, cpu: names.append(config.name) or given(config, cpu))
    rng, h = np.random.default_rng(8), How((1, 0), (0, 2), (1, 1), (1, 2), 8)
    x, f = small(rng, 1, 5, 6, 8), small(rng, 8, 3, 2, 1)
    want, bias = forward(x, f, h), np.arange(8, dtype=np.float32) - 3
    c = small(rng, *want.shape)
    got = op.conv2d(x, f, bias, **h.arguments, c=c, activation="relu", **CHECKS)
    assert (got == np.maximum(want + c + bias, 0)).all()

    def beside(accum: Any, c: Any) -> Any:
        D = op.epilogue.relu(2 * accum + c)
        aux = accum + 1
        return D, aux

    d, aux = op.conv2d(x, f, **h.arguments, epilogue=beside, args={"c": c}, **CHECKS)
    assert (d == np.maximum(2 * want + c, 0)).all() and (aux == want + 1).all()
    assert names[0].endswith("-beta1-bn-relu") and "-g-" in names[1]

    def summed(accum: Any) -> Any:
        D = accum
        total = op.epilogue.sum(accum, -2)
        return D, total

    d, total = op.conv2d(x, f, **h.arguments, epilogue=summed, **CHECKS)
    assert (d == want).all() and (total == want.sum((0, 1, 2))).all() and names[2].startswith("depthwise-f16-f32-")


@pytest.mark.slow
def test_torch(launched: list[str]) -> None:
    """Torch tensors are NCHW, and results are channels-last in memory for any operand layout."""
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(7)
    x, f = small(rng, 1, 4, 4, 40), small(rng, 8, 3, 3, 40)
    want = forward(x, f, how())
    given = [torch.from_numpy(t).permute(0, 3, 1, 2) for t in (x, f)]
    for tensors in (given, [t.contiguous() for t in given]):
        got = op.conv2d(*tensors, padding=1, **CHECKS)
        assert got.is_contiguous(memory_format=torch.channels_last)
        assert (got.permute(0, 2, 3, 1).numpy() == want).all()
    out = torch.full((1, 8, 4, 4), float("nan"), dtype=torch.float16)
    assert op.conv2d(*given, padding=1, out=out, **CHECKS) is out
    assert (out.permute(0, 2, 3, 1).numpy() == want).all() and len(launched) == 3


def test_explained() -> None:
    """``explain`` reports kernel, reason and copies for arrays or shapes, forward and gradients, without a run."""
    found = op.explain(op.conv2d, (8, 56, 56, 64), (64, 3, 3, 64), padding=1)
    assert found.kernel.startswith("fprop-f16-f16-3x3-p1x1-") and not found.copies and found.microseconds > 1
    assert "M 25088, N 64, K 576" in str(found) and found.flops == 2 * 25088 * 64 * 576
    strided = op.explain(op.conv2d_input, (8, 57, 56, 64), (64, 3, 3, 64), (8, 29, 28, 64), stride=2, padding=1)
    assert strided.kernel.startswith("dgrad-f16-f16-3x3-p1x1-s2x2m1x0-") and "4 of them" in str(strided)
    few = op.explain(op.conv2d_weight, half(2, 7, 7, 3), (8, 3, 3, 3), half(2, 5, 5, 8))
    assert few.config is None and few.kernel.startswith("direct-wgrad-f16-3x3-c3k8-") and not few.copies
    assert op.explain(op.conv1d, (1, 9, 64), (64, 1, 64)).kernel == "a GEMM"
    few = op.explain(op.conv2d, (8, 9, 9, 32), (24, 3, 3, 16), groups=2)
    assert few.kernel.startswith("direct-fprop-f16-f16-3x3-c16k12-") and few.why == "a group has few channels"
    wide = op.explain(op.conv2d, (8, 9, 9, 96), (96, 3, 3, 48), groups=2)
    assert wide.config is not None and wide.kernel == wide.config.name
    few = op.explain(op.conv2d_weight, (8, 9, 9, 32), (32, 3, 3, 1), (8, 7, 7, 32), groups=32)
    assert few.kernel.startswith("depthwise-wgrad-f16-3x3-") and "rows of partial sums" in few.why
    parts = op.explain(op.conv2d_weight, (8, 28, 28, 64), (64, 3, 3, 64), (8, 26, 26, 64), split_k=7)
    assert parts.config.parts == 6  # No kernel has 7 slices.
    assert op.explain(op.conv2d, (1, 9, 9, 64), (64, 3, 3, 1), groups=64).kernel == "depthwise-f16-f16-3x3-1x2"
    with pytest.raises(
        op.UnsupportedError, match=("explain: conv2d_input needs size, f, grad_y, got 2 arguments; pass these")
    ):
        op.explain(op.conv2d_input, (8, 57, 56, 64), (64, 3, 3, 64))
    with pytest.raises(op.ArgumentError, match=r"mm\(\) has no argument 'stride'; did you mean"):
        op.explain(op.mm, (8, 8), (8, 8), stride=2)


def half(*shape: int) -> np.ndarray[Any, Any]:
    return np.full(shape, 7, np.float16)


X, F = half(2, 7, 7, 64), half(32, 3, 3, 64)
ERRORS: dict[str, tuple[type[op.OpError], Any]] = {
    "conv2d: f has 64 channels, but x has 64 channels in 2 groups; pass f with 32 channels": (
        op.ShapeError, lambda: op.conv2d(X, F, groups=2)
    ),
    "conv2d: a filter of 5 x 5, dilation 2, does not fit an input of 7 x 7 with padding 0": (
        op.ShapeError, lambda: op.conv2d(X, half(32, 5, 5, 64), dilation=2)
    ),
    "conv2d: x has shape (7, 7, 64); pass an array of rank 4": (op.ShapeError, lambda: op.conv2d(X[0], F)),
    "conv2d: f has dtype f32, but x has dtype f16; pass operands of one dtype": (
        op.DtypeError, lambda: op.conv2d(X, F.astype(np.float32)),
    ),
    "conv2d: stride is 0; pass one number or 2 numbers, each 1 or more": (
        op.ShapeError, lambda: op.conv2d(X, F, stride=0)
    ),
    "conv2d: padding is -1; pass one number or 2 numbers, each 0 or more": (
        op.ShapeError, lambda: op.conv2d(X, F, padding=-1)
    ),
    'conv2d: stride is (2, 2), but padding "same" needs stride 1; pass numbers': (
        op.ShapeError, lambda: op.conv2d(X, F, stride=2, padding="same")
    ),
    "conv2d: padding is 'full'; pass numbers, pairs, \"same\" or \"valid\"": (
        op.ShapeError, lambda: op.conv2d(X, F, padding="full")
    ),
    "conv2d: 64 channels and 32 filters do not divide into 3 groups; pass multiples of groups": (
        op.ShapeError, lambda: op.conv2d(X, F, groups=3)
    ),
    "conv2d: groups is 0; pass an integer of 1 or more": (op.ShapeError, lambda: op.conv2d(X, F, groups=0)),
    "conv2d: the filter has no taps (0 x 3); pass a filter with at least one": (
        op.ShapeError, lambda: op.conv2d(X, F[:, :0]),
    ),
    "conv2d: bias has shape (64,); pass a bias of (32,)": (op.ShapeError, lambda: op.conv2d(X, F, half(64))),
    "conv2d: out has shape (2, 5, 5, 33); pass out of shape (2, 5, 5, 32)": (
        op.ShapeError, lambda: op.conv2d(X, F, out=half(2, 5, 5, 33))
    ),
    "conv2d: out shares memory with x; pass a separate out (only c may be out)": (
        op.LayoutError, lambda: op.conv2d(X, half(64, 1, 1, 64), out=X)
    ),
    "conv2d: dtype is f32, but out has dtype f16; omit dtype": (
        op.DtypeError, lambda: op.conv2d(X, F, out=half(2, 5, 5, 32), dtype="f32")
    ),
    "conv2d: c has shape (2, 5, 4, 32); pass an array that broadcasts to (2, 5, 5, 32)": (
        op.ShapeError, lambda: op.conv2d(X, F, c=half(2, 5, 4, 32))
    ),
    "conv2d: data_format is 'HWNC'; use NCHW or NHWC": (
        op.UnsupportedError, lambda: op.conv2d(X, F, data_format="HWNC")
    ),
    "conv2d: mode is 'both'; use cross_correlation or convolution": (
        op.UnsupportedError, lambda: op.conv2d(X, F, mode="both")
    ),
    "conv2d: alpha is 'two'; pass a number": (op.DtypeError, lambda: op.conv2d(X, F, alpha=cast(Any, "two"))),
    "conv2d: bias cannot be combined with epilogue; compute it in the epilogue function": (
        op.EpilogueError, lambda: op.conv2d(X, F, half(32), epilogue=lambda accum: accum)
    ),
    "conv2d: c has shape (2, 1, 1, 32); pass an array of (2, 5, 5, 32), one value per channel, or a number": (
        op.EpilogueError, lambda: op.conv2d(X, F, epilogue=lambda accum, c: accum + c, args={"c": half(2, 1, 1, 32)})
    ),
    "conv2d: pairs() is not supported in an epilogue of a convolution; use op.mm": (
        op.EpilogueError, lambda: op.conv2d(X, F, epilogue=lambda accum: op.epilogue.pairs(accum)[0])
    ),
    "conv2d: args has D; pass the array for the result as out": (
        op.EpilogueError, lambda: op.conv2d(X, F, epilogue=lambda accum: accum, args={"D": half(2, 5, 5, 32)})
    ),
    "conv2d_input: grad_y has shape (2, 4, 5, 32); pass grad_y of shape (2, 5, 5, 32)": (
        op.ShapeError, lambda: op.conv2d_input(X.shape, F, half(2, 4, 5, 32))
    ),
    "conv2d_input: input_size is (7, 7); pass a shape of 4 numbers": (
        op.ShapeError, lambda: op.conv2d_input((7, 7), F, half(2, 5, 5, 32))
    ),
    "conv2d_weight: grad_y has shape (2, 4, 5, 32); pass grad_y of shape (2, 5, 5, 32)": (
        op.ShapeError, lambda: op.conv2d_weight(X, F.shape, half(2, 4, 5, 32))
    ),
}  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int8])
@pytest.mark.parametrize("c, groups, taps", [(16, 1, 3), (16, 1, 1), (32, 2, 3), (8, 8, 3)])
def test_filter_gradients_of_empty_batches_are_zero(c: int, groups: int, taps: int, dtype: Any) -> None:
    """Without images no kernel runs, and the result is 0, or ``beta`` times the addend."""
    groups = 1 if dtype == np.int8 else groups  # Integer convolutions do not support groups.
    k, left = c, 7 - taps
    x, y, shape = np.zeros((0, 6, 6, c), dtype), np.zeros((0, left, left, k), dtype), (k, taps, taps, c // groups)
    kind = np.int32 if dtype == np.int8 else dtype
    out = np.full(shape, 77, kind)
    assert op.conv2d_weight(x, shape, y, groups=groups, out=out, device="cpu") is out and not out.any()
    added = np.ones(shape, kind)
    assert (op.conv2d_weight(x, shape, y, groups=groups, c=added, beta=2.0, device="cpu") == 2).all()


def test_convolution_over_zero_channels_returns_the_addend() -> None:
    x, f, y = np.zeros((2, 6, 6, 0), np.float16), np.zeros((8, 3, 3, 0), np.float16), np.zeros((2, 4, 4, 0), np.float16)
    bias = np.arange(8, dtype=np.float16)
    assert (op.conv2d(x, f, bias, device="cpu") == bias).all()
    assert not op.conv2d_input((2, 6, 6, 8), np.zeros((0, 3, 3, 8), np.float16), y, device="cpu").any()


@pytest.mark.parametrize("message", ERRORS)
def test_errors(message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors are raised before anything is compiled or written."""
    from cute_dialect.op.conv import compute

    def failing(*_: object, **__: object) -> None:
        raise AssertionError("something is computed")

    monkeypatch.setattr(compute, "_launch", failing)
    kind, call = ERRORS[message]
    with pytest.raises(kind) as caught:
        _on_the_cpu(call, monkeypatch)
    assert str(caught.value) == message


def _on_the_cpu(call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Call functions with ``device="cpu"``."""
    for name in ("conv2d", "conv2d_input", "conv2d_weight"):
        function = getattr(op, name)
        monkeypatch.setattr(op, name, lambda *a, _f=function, **k: _f(*a, device="cpu", **k), raising=False)
    call()


class Launch:
    """A fake kernel that records its name."""

    def __init__(self, name: str, names: list[str]) -> None:
        self.name, self.names = name, names

    def __call__(self, *_: Any, **__: Any) -> None:
        self.names.append(self.name)


def drawn(rng: random.Random, torch: Any) -> tuple[str, tuple[Any, ...], dict[str, Any]]:
    """Return the name of a function, its arguments, and its options."""
    rank, kind = rng.choice([1, 2, 2, 3]), rng.choice(["", "_input", "_weight"])
    groups = rng.choice([1, 1, 2, 8])
    c, k = (groups * rng.choice([1, 2, 8, 24, 32, 64]) for _ in range(2))
    taps = [rng.choice([1, 2, 3, 7]) for _ in range(rank)]
    size = [t + rng.randrange(3, 12) for t in taps]
    stride, padding = rng.choice([1, 1, 2]), rng.choice([0, 1])
    out = [(n + 2 * padding - t) // stride + 1 for n, t in zip(size, taps)]
    x, f, y = (torch.empty(s, dtype=torch.bfloat16) for s in ((2, *size, c), (k, *taps, c // groups), (2, *out, k)))
    more: dict[str, Any] = rng.choice(
        [{}, {"alpha": 0.5}, {"alpha": 0.0}, {"beta": 0.5, "c": {"": y, "_input": x}.get(kind, f)}]
    )
    if kind == "" and rng.random() < 0.3:
        more = {"bias": torch.empty(k), "activation": "relu"}
    arrays = {"": (x, f), "_input": (tuple(x.shape), f, y), "_weight": (x, tuple(f.shape), y)}[kind]
    return f"conv{rank}d{kind}", arrays, {"stride": stride, "padding": padding, "groups": groups, **more}


@pytest.mark.parametrize("seed", range(3))
def test_explanations_name_the_kernels_that_run(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    torch = pytest.importorskip("torch")
    from cute_dialect.op.conv import channel_padding, compute, depthwise, direct, few_channels, im2col_gemm
    from cute_dialect.op.execute import gemm, tma_copies

    names: list[str] = []
    for module in (channel_padding, compute, depthwise, direct, few_channels, im2col_gemm):
        monkeypatch.setattr(module, "kernel_of", lambda config, *_: Launch(config.name, names))
    monkeypatch.setattr(gemm, "launcher_of", lambda variant, _: Launch(variant.name, names))
    for name in ("padder", "gap_remover"):
        monkeypatch.setattr(tma_copies, name, lambda *_: Launch("copy", names))
    rng, kinds = random.Random(seed), set[str]()
    for _ in range(12):
        function, arrays, more = drawn(rng, torch)
        del names[:]
        first = {"conv1d": "NWC", "conv2d": "NHWC", "conv3d": "NDHWC"}[function[:6]]
        getattr(op, function)(*arrays, **more, data_format=first, device="cpu")
        shapes = [x if isinstance(x, tuple) else tuple(x.shape) for x in arrays]
        told = {n: tuple(x.shape) if hasattr(x, "shape") else x for n, x in more.items()}
        found = op.explain(getattr(op, function), *shapes, element="bf16", **told)
        im2col = [n for n in names if n.startswith(("fprop", "dgrad", "wgrad", "direct", "depthwise"))]
        assert found.kernel in names or (not im2col and "GEMM" in found.kernel), (function, shapes, more, found, names)
        kinds.add(found.kernel.split("-")[0])
    assert len(kinds) > 3
