"""Reference convolutions in f64, computed by a loop over filter taps."""

# pyright: basic

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]


class How(NamedTuple):
    """Parameters of a convolution, one per spatial dimension. ``flip`` reverses the filter."""

    before: tuple[int, ...]
    after: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int = 1
    flip: bool = False

    @property
    def arguments(self) -> dict[str, Any]:
        """Return the keyword arguments of the ``op`` functions."""
        return {
            "stride": self.stride, "padding": tuple(zip(self.before, self.after)), "dilation": self.dilation,
            "groups": self.groups, "mode": "convolution" if self.flip else "cross_correlation",
        }  # fmt: skip


def how(padding: Any = 1, stride: int = 1, dilation: int = 1, groups: int = 1, rank: int = 2) -> How:
    """Return a convolution with the same parameters along every dimension."""
    return How((padding,) * rank, (padding,) * rank, (stride,) * rank, (dilation,) * rank, groups)


def _spans(h: How, taps: Sequence[int], at: Sequence[int], result: Sequence[int]) -> tuple[slice, ...]:
    """Return the slices of the padded image that one filter tap reads."""
    found: list[slice] = []
    for t, tap, d, u, n in zip(taps, at, h.dilation, h.stride, result):
        seen = (t - 1 - tap if h.flip else tap) * d
        found.append(slice(seen, seen + (n - 1) * u + 1, u))
    return tuple(found)


def _padded(x: Array, h: How) -> Array:
    return np.pad(x.astype(np.float64), ((0, 0), *zip(h.before, h.after), (0, 0)))


def extents(x: Sequence[int], f: Sequence[int], h: How) -> tuple[int, ...]:
    """Return the spatial extents of the result."""
    of_each = zip(x[1:-1], f[1:-1], h.before, h.after, h.stride, h.dilation)
    return tuple([(n + b + a - d * (t - 1) - 1) // u + 1 for n, t, b, a, u, d in of_each])


def forward(x: Array, f: Array, h: How) -> Array:
    """Return the convolution of ``x`` (N, …, C) with ``f`` (K, …, C / groups)."""
    result, taps = extents(x.shape, f.shape, h), f.shape[1:-1]
    padded, out = _padded(x, h), np.zeros((x.shape[0], *result, f.shape[0]))
    k, c = f.shape[0] // h.groups, f.shape[-1]
    for g in range(h.groups):
        for at in itertools.product(*map(range, taps)):
            seen = padded[(slice(None), *_spans(h, taps, at, result), slice(g * c, (g + 1) * c))]
            out[..., g * k : (g + 1) * k] += seen @ f[(slice(g * k, (g + 1) * k), *at)].astype(np.float64).T
    return out


def gradients(x: Array, f: Array, y: Array, h: How) -> tuple[Array, Array]:
    """Return the gradients of ``x`` and ``f`` for the given gradient of the result."""
    result, taps = y.shape[1:-1], f.shape[1:-1]
    padded, y = _padded(x, h), y.astype(np.float64)
    of_x, of_f = np.zeros_like(padded), np.zeros(f.shape)
    k, c = f.shape[0] // h.groups, f.shape[-1]
    for g in range(h.groups):
        ours = slice(g * k, (g + 1) * k)
        for at in itertools.product(*map(range, taps)):
            seen = (slice(None), *_spans(h, taps, at, result), slice(g * c, (g + 1) * c))
            of_x[seen] += y[..., ours] @ f[(ours, *at)].astype(np.float64)
            of_f[(ours, *at)] = y[..., ours].reshape(-1, k).T @ padded[seen].reshape(-1, c)
    inner = tuple([slice(b, b + n) for b, n in zip(h.before, x.shape[1:-1])])
    return of_x[(slice(None), *inner)], of_f


def small(rng: np.random.Generator, *shape: int, dtype: Any = np.float16) -> Array:
    """Return integers from -1 to 1, for which the accumulators are exact."""
    return rng.integers(-1, 2, shape).astype(dtype)
