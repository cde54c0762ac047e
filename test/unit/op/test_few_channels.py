"""Convolutions with few channels per group, and depthwise filter gradients, on the interpreter, compared with f64."""

# pyright: basic

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from conv_reference import How, forward, gradients, how, small

from cute_dialect import op
from cute_dialect.kernels.epilogue.reductions import CombineConfig

CHECKS: Any = {"device": "cpu", "checks": ("race", "uninit", "oob", "sync")}


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the names of the launched kernels, except those that add partial sums."""
    from cute_dialect.op.conv import depthwise, direct, few_channels

    found = list[str]()
    for module in (depthwise, direct, few_channels):
        given = module.kernel_of

        def noted(config: Any, cpu: bool = False, given: Any = given) -> Any:
            if not isinstance(config, CombineConfig):
                found.append(config.name)
            return given(config, cpu)

        monkeypatch.setattr(module, "kernel_of", noted)
    return found


@pytest.fixture
def tiles(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Prefer image tiles to a GEMM."""
    from cute_dialect.op.conv import few_channels

    few_channels.few_channels.cache_clear()
    monkeypatch.setattr(few_channels, "_is_faster", lambda *_: True)
    yield
    few_channels.few_channels.cache_clear()


def window(rng: np.random.Generator, most: int = 4) -> tuple[tuple[int, ...], How]:
    """Return random filter taps and a window, with strides and dilations up to 3."""
    taps = tuple(int(n) for n in rng.integers(1, most + 1, 2))
    before, after = (tuple(int(n) for n in rng.integers(0, 4, 2)) for _ in range(2))
    strides, dilations = (tuple(int(n) for n in rng.integers(1, 4, 2)) for _ in range(2))
    return taps, How(before, after, strides, dilations, 1, bool(rng.integers(2)))


def fits(extents: tuple[int, ...], taps: tuple[int, ...], h: How) -> bool:
    spans = zip(extents, h.before, h.after, h.dilation, taps)
    return min(n + b + a - d * (t - 1) for n, b, a, d, t in spans) >= 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_random_groups(seed: int, kernels: list[str]) -> None:
    """1 to 9 groups of 1 to 40 channels and filters, with any window: forward and both gradients."""
    rng = np.random.default_rng(seed)
    while True:
        taps, h = window(rng)
        extents = tuple(int(n) for n in rng.integers(1, 13, 2))
        groups = int(rng.choice([2, 3, 9]))
        c, k = (int(n) for n in rng.choice([1, 2, 3, 4, 6, 8, 12, 16, 20, 40], 2))
        if fits(extents, taps, h) and (c, k) != (1, 1) and groups * max(c, k) <= 200:
            break
    h = h._replace(groups=groups)
    x, f = small(rng, 2, *extents, c * groups), small(rng, k * groups, *taps, c)
    want = forward(x, f, h)
    y = small(rng, *want.shape)
    dx, df = gradients(x, f, y, h)
    out = np.full(want.shape, np.nan, np.float16)  # every element must be stored
    assert op.conv2d(x, f, **h.arguments, **CHECKS, out=out) is out and (out == want).all()
    out = np.full(dx.shape, np.nan, np.float16)
    assert (op.conv2d_input(x.shape, f, y, **h.arguments, **CHECKS, out=out) == dx).all()
    out = np.full(df.shape, np.nan, np.float16)
    assert (op.conv2d_weight(x, f.shape, y, **h.arguments, **CHECKS, out=out) == df).all()
    if max(c, k) <= 32:  # an im2col GEMM may serve wider groups
        assert [name.split("-")[:2] for name in kernels] == [["direct", kind] for kind in ("fprop", "dgrad", "wgrad")]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_random_depthwise(seed: int, kernels: list[str]) -> None:
    """Any channel count, windows up to 7x7 and uneven padding: forward and both gradients."""
    rng = np.random.default_rng(100 + seed)
    while True:
        taps, h = window(rng, 7)
        extents = tuple(int(n) for n in rng.integers(1, 15, 2))
        if fits(extents, taps, h):
            break
    c, dtype = int(rng.choice([3, 5, 18, 66])), (np.float16, np.float32)[seed % 2]
    h = h._replace(groups=c)
    x, f = small(rng, 2, *extents, c, dtype=dtype), small(rng, c, *taps, 1, dtype=dtype)
    want = forward(x, f, h)
    y = small(rng, *want.shape, dtype=dtype)
    dx, df = gradients(x, f, y, h)
    assert (op.conv2d(x, f, **h.arguments, **CHECKS) == want).all()
    assert (op.conv2d_input(x.shape, f, y, **h.arguments, **CHECKS) == dx).all()
    assert (op.conv2d_weight(x, f.shape, y, **h.arguments, **CHECKS) == df).all()
    assert len(kernels) == 3 and all(name.startswith("depthwise") for name in kernels)


@pytest.mark.slow
@pytest.mark.parametrize("multiplier", [2, 4])
def test_filters_of_each_channel(multiplier: int, kernels: list[str]) -> None:
    """Depthwise convolutions with several filters per channel."""
    rng = np.random.default_rng(multiplier)
    h = How((1, 2), (1, 0), (2, 1), (1, 2), 6, multiplier == 2)
    x, f = small(rng, 2, 9, 7, 6), small(rng, 6 * multiplier, 3, 2, 1)
    want = forward(x, f, h)
    y = small(rng, *want.shape)
    dx, df = gradients(x, f, y, h)
    assert (op.conv2d(x, f, **h.arguments, **CHECKS) == want).all()
    assert (op.conv2d_input(x.shape, f, y, **h.arguments, **CHECKS) == dx).all()
    assert (op.conv2d_weight(x, f.shape, y, **h.arguments, **CHECKS) == df).all()
    assert len(kernels) == 3 and all(f"m{multiplier}" in name for name in kernels)


@pytest.mark.slow
def test_narrow_without_groups(kernels: list[str], tiles: None) -> None:
    """With 5x5 filters of 16 channels, the gradients use image tiles too."""
    rng, h = np.random.default_rng(5), how(2)
    x, f = small(rng, 2, 9, 37, 16), small(rng, 16, 5, 5, 16)
    want = forward(x, f, h)
    y = small(rng, *want.shape)
    dx, df = gradients(x, f, y, h)
    assert (op.conv2d(x, f, **h.arguments, **CHECKS) == want).all()
    assert (op.conv2d_input(x.shape, f, y, **h.arguments, **CHECKS) == dx).all()
    assert (op.conv2d_weight(x, f.shape, y, **h.arguments, **CHECKS) == df).all()
    assert [name.split("-")[:2] for name in kernels] == [["direct", kind] for kind in ("fprop", "dgrad", "wgrad")]


@pytest.mark.slow
@pytest.mark.parametrize("c", [4, 8, 1])
def test_infinities_stay_in_their_group(c: int) -> None:
    """A NaN in one group or at one pixel reaches only the results that depend on it. Padding and other tiles do not
    spread it.
    """
    rng, h = np.random.default_rng(6), how(1, groups=8)
    x, f = small(rng, 1, 9, 11, 8 * c), small(rng, 8 * c, 3, 3, c)
    y = small(rng, *forward(x, f, h).shape)
    x[0, 4, 10, 2 * c] = y[0, 5, 5, 5 * c] = np.nan
    want = forward(x, f, h)
    dx, df = gradients(x, f, y, h)
    for got, exact in (
        (op.conv2d(x, f, **h.arguments, **CHECKS), want),
        (op.conv2d_input(x.shape, f, y, **h.arguments, **CHECKS), dx),
        (op.conv2d_weight(x, f.shape, y, **h.arguments, **CHECKS), df),
    ):
        finite = np.isfinite(exact)
        assert (got[finite] == exact[finite]).all() and np.isnan(got[~finite]).all() and not finite.all()


@pytest.mark.slow
def test_epilogues_and_padded_views(kernels: list[str]) -> None:
    """Bias, addition and activation run in the kernel. Filter gradients are finished separately, and rows may have
    gaps.
    """
    rng, h = np.random.default_rng(8), how(1, groups=4)
    x, f = small(rng, 2, 5, 6, 36)[..., 2:34], small(rng, 48, 3, 3, 8)
    want = forward(x, f, h)
    bias, c = np.arange(48, dtype=np.float32) - 20, small(rng, *want.shape)
    got = op.conv2d(x, f, bias, **h.arguments, c=c, activation="relu", **CHECKS)
    assert (got == np.maximum(want + c + bias, 0)).all()
    y = small(rng, 2, 5, 6, 52)[..., 1:49]
    dx, df = gradients(x, f, y, h)
    whole = np.full((2, 5, 6, 40), np.nan, np.float16)
    op.conv2d_input(x.shape, f, y, **h.arguments, c=x, beta=2.0, out=whole[..., 4:36], **CHECKS)
    assert (whole[..., 4:36] == dx + 2 * x.astype(np.float64)).all() and np.isnan(whole[..., 36:]).all()
    d = small(rng, *f.shape)
    assert (op.conv2d_weight(x, f.shape, y, **h.arguments, c=d, alpha=2.0, **CHECKS) == 2 * df + d).all()
    assert len(kernels) == 3


@pytest.mark.slow
def test_split_k_selects_the_gemm(kernels: list[str]) -> None:
    """The tile kernels have no split-K, so the im2col GEMM is chosen."""
    rng, h = np.random.default_rng(9), how(1, groups=2)
    x, f = small(rng, 1, 4, 4, 64), small(rng, 64, 3, 3, 32)
    got = op.conv2d(x, f, **h.arguments, split_k=2, **CHECKS)
    assert (got == forward(x, f, h)).all() and not kernels


@pytest.mark.slow
def test_loops_that_move_registers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Depthwise kernels that process one row per iteration, and load rows one to three iterations ahead.

    With ``rotate``, an iteration of the gradient of filters covers several rows.
    """
    from cute_dialect.op.conv import depthwise, few_channels

    given, of_weights = few_channels.depthwise_config, few_channels.depthwise_weights_of
    options = {"ahead": 1, "shift": True, "rotate": False}

    def moved(*args: Any) -> Any:
        config = given(*args)
        if config is None:
            return None
        tile = 6 * config.tile[0], config.tile[1]
        return config._replace(rolled=True, shift=True, ahead=options["ahead"], tile=tile)

    def weights(g: Any, element: str, sms: int) -> Any:
        found = of_weights(g, element, sms)
        return found and depthwise.depthwise_launch(g, found.config._replace(**options), sms)

    monkeypatch.setattr(few_channels, "depthwise_config", moved)
    monkeypatch.setattr(few_channels, "depthwise_weights_of", weights)
    rng = np.random.default_rng(11)
    for ahead, shift, rotate, stride, dilation in (
        (1, True, False, (1, 1), (2, 1)), (2, False, False, (2, 3), (1, 1)), (3, True, False, (3, 1), (2, 2)),
        (1, True, True, (1, 1), (2, 1)), (2, True, True, (2, 3), (1, 1)), (3, True, True, (3, 1), (2, 2)),
    ):  # fmt: skip
        options.update(ahead=ahead, shift=shift, rotate=rotate)
        h = How((2, 1), (1, 2), stride, dilation, 10, ahead == 2)
        x, f = small(rng, 2, 11, 9, 10), small(rng, 10, 3, 4, 1)
        want = forward(x, f, h)
        y = small(rng, *want.shape)
        dx, df = gradients(x, f, y, h)
        few_channels.few_channels.cache_clear()
        assert (op.conv2d(x, f, **h.arguments, **CHECKS) == want).all()
        assert (op.conv2d_input(x.shape, f, y, **h.arguments, **CHECKS) == dx).all()
        assert (op.conv2d_weight(x, f.shape, y, **h.arguments, **CHECKS) == df).all()
    few_channels.few_channels.cache_clear()


ROWS = [  # channels, filters, groups, taps, window
    (9, 7, 1, (5, 3), How((2, 1), (1, 2), (2, 2), (2, 1), 1)),
    pytest.param(5, 3, 3, (3, 2), How((2, 1), (1, 2), (1, 1), (1, 1), 3), marks=pytest.mark.slow),
    pytest.param(13, 6, 2, (3, 3), How((1, 1), (1, 1), (2, 1), (1, 2), 2, True), marks=pytest.mark.slow),
    pytest.param(20, 24, 2, (4, 1), How((2, 0), (1, 0), (3, 1), (1, 1), 2, True), marks=pytest.mark.slow),
]


@pytest.mark.slow
@pytest.mark.parametrize(("c", "k", "groups", "taps", "h"), ROWS)
def test_loops_over_filter_rows_and_padded_groups(
    c: int, k: int, groups: int, taps: tuple[int, ...], h: How, kernels: list[str], tiles: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Image tiles with a loop over the filter rows, on copies whose groups have a multiple of 8 channels."""
    from cute_dialect.op.conv import few_channels

    given = few_channels.direct_config

    def rolled(*args: Any) -> Any:
        config = given(*args)
        assert config is not None
        vectors = 8, config.vectors[1] if config.gradient else 8, config.vectors[2]
        return config._replace(rolled=True, held=False, padded=True, vectors=vectors)

    monkeypatch.setattr(few_channels, "direct_config", rolled)
    rng = np.random.default_rng(c)
    x, f = small(rng, 2, 7, 6, c * groups), small(rng, k * groups, *taps, c)
    want = forward(x, f, h)
    y = small(rng, *want.shape)
    out = np.full(want.shape, np.nan, np.float16)
    assert (op.conv2d(x, f, **h.arguments, **CHECKS, out=out) == want).all()
    out = np.full(x.shape, np.nan, np.float16)
    assert (op.conv2d_input(x.shape, f, y, **h.arguments, **CHECKS, out=out) == gradients(x, f, y, h)[0]).all()
    assert len(kernels) == 2 and all("rpx" in name for name in kernels)


@pytest.mark.slow
def test_gradients_of_filters_of_few_channels(kernels: list[str], tiles: None) -> None:
    """With 3 and 11 channels without groups, no im2col columns are written to memory."""
    rng = np.random.default_rng(12)
    for c, k, taps in ((3, 21, (2, 5)), (11, 43, (6, 6))):
        h = how(2)
        x, f = small(rng, 2, 9, 8, c), small(rng, k, *taps, c)
        y = small(rng, *forward(x, f, h).shape)
        assert (op.conv2d_weight(x, f.shape, y, **h.arguments, **CHECKS) == gradients(x, f, y, h)[1]).all()
    assert len(kernels) == 2 and all(name.startswith("direct-wgrad") for name in kernels)


@pytest.mark.slow
@pytest.mark.parametrize(("c", "k", "taps"), [(25, 2, (5, 5)), (65, 67, (1, 2))])
def test_partial_sums_of_odd_groups_are_not_rounded(
    c: int, k: int, taps: tuple[int, int], kernels: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sum of each image exceeds 4096, where f16 is inexact, but the total is small. Rounded partial sums would be
    wrong, in tiles and in columns of one image.
    """
    from cute_dialect.op.conv import im2col_gemm

    monkeypatch.setattr(im2col_gemm, "MOST", 1)
    rng = np.random.default_rng(2)
    h = how(1)._replace(groups=2)
    x, f = small(rng, 2, 5, 6, 2 * c), small(rng, 2 * k, *taps, c)
    y = small(rng, *forward(x, f, h).shape)
    x[1], y[0], y[1] = x[0], y[0] + 512, small(rng, *y.shape[1:]) - y[0] - 512
    x, y = np.abs(x), y.astype(np.float16)
    alone = [np.abs(gradients(x[i : i + 1], f, y[i : i + 1], h)[1]).max() for i in range(2)]
    assert min(alone) > 4096
    got = op.conv2d_weight(x, f.shape, y, **h.arguments, **CHECKS)
    assert (got == gradients(x, f, y, h)[1]).all()
    assert bool(kernels) == (c == 25)


@pytest.mark.parametrize(
    ("stride", "dilation"),
    [((1, 2), (1, 2)), *(pytest.param(*x, marks=pytest.mark.slow) for x in [((3, 2), (1, 4)), ((2, 4), (2, 2))])],
)
def test_loop_over_filter_rows_without_columns(
    stride: tuple[int, int], dilation: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dilated filter skips columns of the image, whose gradient is 0."""
    from cute_dialect.op.conv import dispatch
    from cute_dialect.op.conv.direct import direct_config
    from cute_dialect.op.problems.conv import geometry

    rng, h = np.random.default_rng(8), How((1, 1), (1, 1), stride, dilation)
    x, f = small(rng, 1, 7, 9, 8), small(rng, 8, 4, 2, 8)
    y = small(rng, *forward(x, f, h).shape)
    a = h.arguments
    g = geometry("conv2d_input", "dgrad", x.shape, f.shape, a["stride"], a["padding"], a["dilation"], 1)
    config = direct_config(g, "f16", "f16")
    assert config is not None
    config = config._replace(held=False, rolled=True, atoms=1)
    assert any(not one.taps for one in config.classes) and any(one.rows > 1 for one in config.classes)
    monkeypatch.setattr(dispatch, "few_channels", lambda *_: config)
    out = np.full(x.shape, np.nan, np.float16)
    assert (op.conv2d_input(x.shape, f, y, **a, **CHECKS, out=out) == gradients(x, f, y, h)[0]).all()


@pytest.mark.slow
@pytest.mark.parametrize("stride", [1, 2])
def test_blocks_of_several_tiles(stride: int, kernels: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of large problems load the filters once for several tiles. The last block has fewer tiles."""
    from cute_dialect.kernels.conv import direct as kernel
    from cute_dialect.op.execute.kernel_cache import LIBRARIES
    from cute_dialect.op.execute.kernels import kernel_of

    def forget() -> None:
        kernel_of.cache_clear()
        LIBRARIES.clear()

    rng = np.random.default_rng(20 + stride)
    h = how(1, stride, groups=3)
    x, f = small(rng, 3, 41, 33, 15), small(rng, 21, 3, 3, 5)
    want = forward(x, f, h)
    y = small(rng, *want.shape)
    monkeypatch.setattr(kernel, "_MULTIPROCESSORS", 1)
    monkeypatch.setattr(kernel, "_ROUNDS", 1)
    forget()
    try:
        out = np.full(want.shape, np.nan, np.float16)
        assert (op.conv2d(x, f, **h.arguments, **CHECKS, out=out) == want).all()
        out = np.full(x.shape, np.nan, np.float16)
        assert (op.conv2d_input(x.shape, f, y, **h.arguments, **CHECKS, out=out) == gradients(x, f, y, h)[0]).all()
    finally:
        forget()
    assert len(kernels) == 2


def test_choices() -> None:
    """im2col loads read padded copies of odd groups, and image tiles 9 and 3 channels, which TMA cannot read."""
    odd = op.explain(op.conv2d, (19, 79, 79, 324), (40, 5, 7, 81), stride=2, padding=(1, 6), dilation=2, groups=4)
    assert "96 channels and 16 filters" in odd.why and [n for n, _ in odd.copies] == ["x", "f"]
    large = op.explain(op.conv2d, (22, 77, 77, 138), (114, 7, 7, 69), padding=3, groups=2)
    assert large.config is not None and large.config.groups and "96 channels and 64 filters" in large.why
    pixels = op.explain(op.conv2d_input, (106, 55, 55, 3), (9, 1, 1, 3), (106, 55, 55, 9))
    assert pixels.kernel.startswith("direct-dgrad-f16-f16-1x1-c3k9")
    column = op.explain(op.conv2d_input, (80, 174, 174, 8), (16, 7, 1, 8), (80, 174, 174, 16), padding=(3, 0))
    assert column.kernel.startswith("direct-dgrad-f16-f16-7x1-p3x0-c8k16")
    wide = op.explain(op.conv2d, (18, 59, 82, 24), (888, 6, 6, 24), padding=2)
    assert "-w32" in wide.kernel and [n for n, _ in wide.copies] == ["x", "f"]


def check_all_directions(rng: np.random.Generator, x: np.ndarray, f: np.ndarray, h: Any) -> None:
    """Compare fprop, dgrad and wgrad, and fprop with bias and relu, with exact integers. Outputs are poisoned."""
    want = forward(x, f, h)
    y = small(rng, *want.shape)
    dx, df = gradients(x, f, y, h)
    out = np.full(want.shape, np.nan, np.float16)
    assert (op.conv2d(x, f, **h.arguments, **CHECKS, out=out) == want).all()
    out = np.full(dx.shape, np.nan, np.float16)
    assert (op.conv2d_input(x.shape, f, y, **h.arguments, **CHECKS, out=out) == dx).all()
    out = np.full(df.shape, np.nan, np.float16)
    assert (op.conv2d_weight(x, f.shape, y, **h.arguments, **CHECKS, out=out) == df).all()
    bias = np.arange(f.shape[0], dtype=np.float32) - f.shape[0] // 2
    assert (op.conv2d(x, f, bias, **h.arguments, activation="relu", **CHECKS) == np.maximum(want + bias, 0)).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("taps", "stride", "apart"), [((2, 2), 1, False), ((1, 2), 2, False), ((1, 1), 1, False), ((2, 2), 2, True)]
)
def test_odd_groups_of_many_channels(
    taps: tuple[int, int], stride: int, apart: bool, kernels: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The im2col columns of a group get padded rows for TMA, or each group has its own launch."""
    from cute_dialect.op.conv import dispatch
    from cute_dialect.op.conv.gemm_time import of_group

    monkeypatch.setattr(dispatch, "grouped_gemm", lambda x, *_: of_group(x.geometry) if apart else None)
    rng = np.random.default_rng(30)
    h = how(0, stride, groups=2)
    x, f = small(rng, 2, 5, 6, 2 * 65), small(rng, 2 * 67, *taps, 65)
    check_all_directions(rng, x, f, h)
    assert not kernels


@pytest.mark.slow
@pytest.mark.parametrize(
    ("c", "k", "groups", "stride", "kinds"),
    [(37, 24, 2, 1, "w"), (69, 57, 2, 1, "fdw"), (70, 64, 2, 2, "fw"), (64, 57, 3, 1, "fdw")],
)
def test_padded_groups(
    c: int, k: int, groups: int, stride: int, kinds: str, kernels: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Copies with 8 or 64 channels and filters more per group, and results without the padding."""
    from cute_dialect.op.conv import compute, dispatch, gemm_time

    found, given = list[str](), compute.kernel_of
    monkeypatch.setattr(dispatch, "few_channels", lambda *_: None)
    monkeypatch.setattr(compute, "kernel_of", lambda c, cpu: found.append(c.name) or given(c, cpu))
    monkeypatch.setattr(
        dispatch, "grouped_gemm", lambda *of: min(gemm_time._padded_groups(*of), default=(0.0, None))[1]
    )
    rng, h = np.random.default_rng(c), how(1, stride, groups=groups)
    x, f = small(rng, 1, 4, 5, c * groups), small(rng, k * groups, 2, 3, c)
    y = small(rng, *forward(x, f, h).shape)
    dx, df = gradients(x, f, y, h)
    if "f" in kinds:
        x[0, 2, 3, c - 1] = np.nan  # does not reach the other group
        want = forward(x, f, h)
        finite, out = np.isfinite(want), np.full(want.shape, -7, np.float16)
        op.conv2d(x, f, **h.arguments, **CHECKS, out=out)
        assert (out[finite] == want[finite]).all() and np.isnan(out[~finite]).all() and not finite.all()
        x[0, 2, 3, c - 1] = 1
        df = gradients(x, f, y, h)[1]
    if "d" in kinds:
        out = np.full(dx.shape, np.nan, np.float16)
        assert (op.conv2d_input(x.shape, f, y, **h.arguments, **CHECKS, out=out) == dx).all()
    out = np.full(df.shape, np.nan, np.float16)
    assert (op.conv2d_weight(x, f.shape, y, **h.arguments, **CHECKS, out=out) == df).all()
    assert [name[0] for name in found] == list(kinds) and not kernels


@pytest.mark.slow
@pytest.mark.parametrize(("c", "k", "stride"), [(8, 8, 1), (13, 4, 1), (13, 4, 2), (24, 6, 1)])
def test_one_tap(c: int, k: int, stride: int, kernels: list[str], tiles: None) -> None:
    """With 1x1 filters, the pixels of all images form one row, even with gaps between images. With a stride, images
    stay separate.
    """
    rng, h = np.random.default_rng(40 + c), how(0, stride)
    x, f = small(rng, 2, 23, 31, c + 3)[:, :, :, 2 : 2 + c][:, : 22 + stride], small(rng, k, 1, 1, c)
    check_all_directions(rng, x, f, h)
    assert len(kernels) == 4 and all(name.startswith("direct") for name in kernels)


@pytest.mark.slow
@pytest.mark.parametrize("most", [0, 1 << 20])
def test_results_per_block(most: int, kernels: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of 1 and of 8 results add the partial sums of depthwise and grouped filter gradients."""
    from cute_dialect.op.conv import few_channels

    monkeypatch.setattr(few_channels, "_FEW_ROWS", 0)
    monkeypatch.setattr(few_channels, "_MANY_ROWS", most)
    rng = np.random.default_rng(50)
    for c, k, groups in ((1, 1, 8), (5, 7, 2)):
        h = how(1, groups=groups)
        x, f = small(rng, 2, 13, 11, c * groups), small(rng, k * groups, 3, 3, c)
        y = small(rng, *forward(x, f, h).shape)
        out = np.full(f.shape, np.nan, np.float16)
        assert (op.conv2d_weight(x, f.shape, y, **h.arguments, **CHECKS, out=out) == gradients(x, f, y, h)[1]).all()
    assert len(kernels) == 2
