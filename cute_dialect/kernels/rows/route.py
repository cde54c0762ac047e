"""Routing of a mixture of experts: the best k experts of each row of logits, their weights, and the gradient.

A warp has a row, and a lane has the experts ``lane``, ``lane + 32``, … in registers. Scores become unsigned integers of
the same order. Each of k rounds finds the largest integer and the lowest expert that has it, with two ``redux.sync``.
Lane j keeps the result of round j.

    launch(logits, bias, weights, experts, scale)
    launch_gradient(dweights, logits, experts, dlogits, scale)
"""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic

from typing import Any, NamedTuple

import cute_dialect.lang as cute
from cute_dialect.kernels.common.elements import number
from cute_dialect.kernels.common.traced_text import printed

__all__ = ["MOST_CHOSEN", "MOST_EXPERTS", "RouteConfig", "gradient_text", "route_text"]

MOST_EXPERTS, MOST_CHOSEN = 512, 32
"""Largest numbers of experts, and of chosen experts and of groups, which are one per lane."""

_WARPS = 4
"""Rows per block."""

_LEAST = 1e-20
"""Added to the sum of sigmoid scores before they are divided by it."""

_ALL = 0xFFFFFFFF


class RouteConfig(NamedTuple):
    """Configuration of the kernels.

    >>> RouteConfig().name, RouteConfig(score="sigmoid", bias=True, groups=8, top_groups=4).name
    ('route-bf16-128-8-softmax', 'route-bf16-128-8-sigmoid-bias-groups8x4')
    """

    element: str = "bf16"  # of the logits
    experts: int = 128  # length of a row
    k: int = 8  # experts per row
    score: str = "softmax"  # or "sigmoid"
    bias: bool = False  # a bias is added to the scores to choose experts
    groups: int = 1  # groups of consecutive experts
    top_groups: int = 1  # groups that may be chosen per row
    normalise: bool = True  # divide the weights of a row by their sum

    @property
    def slots(self) -> int:
        """Experts per lane."""
        return -(-self.experts // 32)

    @property
    def name(self) -> str:
        """Unique name of the kernel."""
        flags = ["bias"] * self.bias + [f"groups{self.groups}x{self.top_groups}"] * (self.groups > 1)
        words = ["route", self.element, str(self.experts), str(self.k), self.score, *flags]
        return "-".join([*words, *["plain"] * (not self.normalise)])


DEFAULT = RouteConfig()


def ordered(x: Any) -> Any:
    """Return an integer greater than 0 with the order of f32 numbers. -0 equals 0, and NaN is the greatest."""
    bits = cute.where(x == 0.0, 0.0, x).bitcast(cute.Uint32)
    flip = cute.where(bits >> 31 != 0, cute.Uint32(_ALL), cute.Uint32(1 << 31))
    return cute.where(x != x, cute.Uint32(_ALL), bits ^ flip)


def unordered(key: Any) -> Any:
    """Return the number of an integer of :func:`ordered`."""
    flip = cute.where(key >> 31 != 0, cute.Uint32(1 << 31), cute.Uint32(_ALL))
    return (key ^ flip).bitcast(cute.Float32)


def _best(keys: list[Any], numbers: list[Any]) -> tuple[Any, Any]:
    """Return the largest key of a warp, and the lowest number that has it."""
    own = keys[0]
    for key in keys[1:]:
        own = cute.max(own, key)
    top = cute.arch.warp_redux_sync(own, "max")
    lowest = cute.Int32(1 << 30)
    for key, n in zip(keys[::-1], numbers[::-1]):
        lowest = cute.where(key == top, n, lowest)
    return top, cute.arch.warp_redux_sync(lowest, "min")


def _without(keys: list[Any], numbers: list[Any], chosen: Any) -> list[Any]:
    """Return the keys with that of one number replaced by 0, which is less than that of any score."""
    return [cute.where(n == chosen, cute.Uint32(0), key) for key, n in zip(keys, numbers)]


def _limited(keys: list[Any], experts: list[Any], c: RouteConfig, lane: Any) -> list[Any]:
    """Return the keys with those of all but the best groups replaced by 0.

    The score of a group is its best score, or with a bias the sum of its two best.
    """
    size = c.experts // c.groups
    groups = [e // size for e in experts]
    of_lane = cute.Uint32(0)
    for g in range(c.groups):
        inside = [cute.where(n == g, key, cute.Uint32(0)) for key, n in zip(keys, groups)]
        top, at = _best(inside, experts)
        if c.bias and size > 1:
            second, _ = _best(_without(inside, experts, at), experts)
            top = ordered(unordered(top) + unordered(second))
        of_lane = cute.where(lane == g, top, of_lane)
    is_open = cute.Uint32(0)
    scores = [of_lane]
    for _ in range(c.top_groups):
        _, at = _best(scores, [lane])
        is_open = is_open | (cute.Uint32(1) << at.to(cute.Uint32))
        scores = _without(scores, [lane], at)
    return [cute.where((is_open >> n.to(cute.Uint32)) & 1 != 0, key, cute.Uint32(0)) for key, n in zip(keys, groups)]


def _row(t: Any, row: Any, experts: list[Any], c: RouteConfig, missing: float) -> list[Any]:
    """Load the elements of a lane as f32; those past the end of the row are ``missing``."""
    found = []
    for i, e in enumerate(experts):
        x = cute.make_rmem_tensor(1, cute.Float32)
        x.fill(missing)
        if 32 * i + 32 <= c.experts or e < c.experts:
            x[0] = t[row, e].to(cute.Float32)
        found.append(x[0])
    return found


def _sum(x: Any) -> Any:
    return cute.arch.warp_reduction(x, lambda a, b: a + b)


def _largest(x: Any) -> Any:
    return cute.arch.warp_reduction(x, cute.max)


def sigmoid(x: Any) -> Any:
    """Return the sigmoid of an f32 number."""
    return 1.0 / (1.0 + cute.math.exp(0.0 - x))


class Scores(NamedTuple):
    """Scores of a row: of the expert of this lane, and what its gradient depends on."""

    own: Any  # score of the expert of this lane; 0 for lanes without one
    total: Any  # sum that the scores are divided by, or 1
    most: Any  # the logit that is subtracted from those of a softmax


def _scores(logit: Any, row: list[Any], c: RouteConfig, lane: Any) -> Scores:
    """Return scores.

    Args:
        logit: logit of the expert of this lane.
        row: logits of the lane's part of the row, for a softmax over all experts.
    """
    has_one = lane < c.k
    if c.score == "sigmoid":
        own = cute.where(has_one, sigmoid(logit), 0.0)
        return Scores(own, _sum(own) + _LEAST if c.normalise else cute.Float32(1.0), cute.Float32(0.0))
    if c.normalise:
        most = _largest(cute.where(has_one, logit, -float("inf")))
        own = cute.where(has_one, cute.math.exp(logit - most), 0.0)
        return Scores(own, _sum(own), most)
    most, total = _statistics(row)
    return Scores(cute.where(has_one, cute.math.exp(logit - most), 0.0), total, most)


def _statistics(row: list[Any]) -> tuple[Any, Any]:
    """Return the largest logit of a row, and the sum of the exponentials of the differences from it."""
    most = row[0]
    for x in row[1:]:
        most = cute.max(most, x)
    most = _largest(most)
    total = cute.Float32(0.0)
    for x in row:
        total = total + cute.math.exp(x - most)
    return most, _sum(total)


@cute.kernel
def route(
    logits: cute.Tensor,
    bias: Any,
    weights: cute.Tensor,
    experts: cute.Tensor,
    scale: cute.Float32,
    config: cute.Constexpr[RouteConfig],
):
    c, lane = config, cute.arch.lane_idx()
    row = cute.arch.block_idx().x * _WARPS + cute.arch.warp_idx()
    numbers = [lane + 32 * i for i in range(c.slots)]
    if row < logits.shape[0]:
        held = _row(logits, row, numbers, c, -float("inf"))
        if c.bias:
            added = _row(bias, 0, numbers, c, 0.0)
            if c.score == "sigmoid":
                held = [sigmoid(x) + b for x, b in zip(held, added)]
            else:
                most, total = _statistics(held)
                held = [cute.math.exp(x - most) / total + b for x, b in zip(held, added)]
        keys = [cute.where(e < c.experts, ordered(x), cute.Uint32(0)) for x, e in zip(held, numbers)]
        if c.groups > 1:
            keys = _limited(keys, numbers, c, lane)
        chosen = cute.Int32(0)
        for j in range(c.k):
            _, at = _best(keys, numbers)
            chosen = cute.where(lane == j, at, chosen)
            keys = _without(keys, numbers, at)
        if c.bias and c.score == "softmax" and not c.normalise:
            held = _row(logits, row, numbers, c, -float("inf"))
        scores = _scores(logits[row, chosen].to(cute.Float32), held, c, lane)
        if lane < c.k:
            weights[row, lane] = scores.own / scores.total * scale
            experts[row, lane] = chosen


@cute.kernel
def route_gradient(
    dweights: cute.Tensor,
    logits: cute.Tensor,
    experts: cute.Tensor,
    dlogits: cute.Tensor,
    scale: cute.Float32,
    config: cute.Constexpr[RouteConfig],
):
    c, lane = config, cute.arch.lane_idx()
    row = cute.arch.block_idx().x * _WARPS + cute.arch.warp_idx()
    numbers = [lane + 32 * i for i in range(c.slots)]
    if row < logits.shape[0]:
        is_of_all = c.score == "softmax" and not c.normalise
        held = _row(logits, row, numbers, c, -float("inf")) if is_of_all else []
        own = cute.min(lane, c.k - 1)
        chosen, given = experts[row, own], dweights[row, own] * scale
        scores = _scores(logits[row, chosen].to(cute.Float32), held, c, lane)
        share = scores.own / scores.total
        mean = cute.Float32(0.0)
        if c.normalise or is_of_all:
            mean = _sum(share * given)
        if is_of_all:
            at_chosen = share * given
        elif c.score == "softmax":
            at_chosen = share * (given - mean)
        else:
            at_chosen = share * (given - mean) * (1.0 - scores.own)
        found = [0.0 - cute.math.exp(x - scores.most) / scores.total * mean for x in held]
        found = found or [cute.Float32(0.0) for _ in numbers]
        for j in range(c.k):
            at, value = cute.arch.shuffle_sync(chosen, j), cute.arch.shuffle_sync(at_chosen, j)
            found = [cute.where(e == at, x + value, x) for x, e in zip(found, numbers)]
        for e, x in zip(numbers, found):
            if e < c.experts:
                dlogits[row, e] = x.to(dlogits.element_type)


@cute.jit
def launch(
    logits: cute.Tensor,
    bias: Any,
    weights: cute.Tensor,
    experts: cute.Tensor,
    scale: cute.Float32,
    config: cute.Constexpr[RouteConfig] = DEFAULT,
):
    """Launch a warp per row.

    Args:
        logits: (T, E).
        bias: (1, E), f32, or None.
        weights: (T, k), f32, the result.
        experts: (T, k), i32, the result.
        scale: Factor of the weights.
    """
    assert logits.shape[1] == config.experts, "logits must have a column for each expert"
    grid = cute.ceil_div(logits.shape[0], _WARPS)
    route(logits, bias, weights, experts, scale, config).launch(grid=grid, block=32 * _WARPS)


@cute.jit
def launch_gradient(
    dweights: cute.Tensor,
    logits: cute.Tensor,
    experts: cute.Tensor,
    dlogits: cute.Tensor,
    scale: cute.Float32,
    config: cute.Constexpr[RouteConfig] = DEFAULT,
):
    """Launch a warp per row.

    Args:
        dweights: (T, k), f32, the gradient of the weights.
        logits: (T, E).
        experts: (T, k), i32, the chosen experts.
        dlogits: (T, E), the result.
        scale: Factor of the weights.
    """
    assert logits.shape[1] == config.experts, "logits must have a column for each expert"
    grid = cute.ceil_div(logits.shape[0], _WARPS)
    route_gradient(dweights, logits, experts, dlogits, scale, config).launch(grid=grid, block=32 * _WARPS)


def _matrix(element: str) -> Any:
    return cute.Tensor[number(element), "(?,?):(?{i64},1)"]


@printed
def route_text(config: RouteConfig | None = None) -> cute.Compiled:
    """Trace the kernel ``@route`` and its host function ``@launch``."""
    c = config or DEFAULT
    matrix, bias = _matrix(c.element), _matrix("f32") if c.bias else None
    return cute.trace(launch, matrix, bias, _matrix("f32"), _matrix("i32"), cute.Float32, config=c)


@printed
def gradient_text(config: RouteConfig | None = None) -> cute.Compiled:
    """Trace the kernel ``@route_gradient`` and its host function ``@launch_gradient``."""
    c = config or DEFAULT
    matrix = _matrix(c.element)
    return cute.trace(launch_gradient, _matrix("f32"), matrix, _matrix("i32"), matrix, cute.Float32, config=c)
