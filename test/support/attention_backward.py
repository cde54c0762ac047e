"""Backward of attention on the interpreter: runs of its kernels, and a float64 reference."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from cute_dialect.kernels.attention.backward import backward_launches
from cute_dialect.kernels.attention.backward_config import BackwardConfig
from cute_dialect.pipelines import compile

CHECKS = ("race", "uninit", "sync", "oob")
DTYPES: dict[str, Any] = {"bf16": ml_dtypes.bfloat16, "f16": np.float16}
TYPES: dict[str, Any] = {"f32": np.float32, "i32": np.int32}


def normal(*shape: int, dtype: Any = ml_dtypes.bfloat16, seed: int = 0) -> Any:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(dtype)


def visible(queries: int, keys: int, left: int | None, right: int | None, shift: int) -> Any:
    """Return the (queries, keys) pairs that a mask shows. Query 0 is aligned with key ``shift``."""
    own, at = np.arange(queries)[:, None] + shift, np.arange(keys)[None]
    seen = np.ones((queries, keys), bool)
    if left is not None:
        seen &= at >= own - left
    if right is not None:
        seen &= at <= own + right
    return seen


def forward(q: Any, k: Any, v: Any, scale: float, seen: Any) -> tuple[Any, Any]:
    """Return the result and the log-sum-exps of (S, H, D) arrays, in float64."""
    q, k, v = (x.astype(np.float64).swapaxes(0, 1) for x in (q, k, v))
    k, v = (np.repeat(x, len(q) // len(x), 0) for x in (k, v))
    scores = np.where(seen, q @ k.swapaxes(1, 2) * scale, -np.inf)
    most = scores.max(-1, keepdims=True, initial=-1e30)
    powers = np.exp(scores - most)
    total = powers.sum(-1, keepdims=True)
    with np.errstate(divide="ignore"):
        logs = np.where(total > 0, most + np.log(total), -np.inf)[..., 0]
    return np.where(total > 0, powers @ v / np.where(total > 0, total, 1), 0).swapaxes(0, 1), logs.T


def gradients(q: Any, k: Any, v: Any, dout: Any, dlse: Any, scale: float, seen: Any) -> tuple[Any, Any, Any]:
    """Return dq, dk and dv of (S, H, D) arrays, in float64."""
    out, lse = forward(q, k, v, scale, seen)
    heads = k.shape[1]
    q, k, v, dout, out = (x.astype(np.float64).swapaxes(0, 1) for x in (q, k, v, dout, out))
    k, v = (np.repeat(x, len(q) // heads, 0) for x in (k, v))
    lse = lse.T[..., None]
    p = np.where(seen & (lse > -np.inf), np.exp(q @ k.swapaxes(1, 2) * scale - np.where(lse > -np.inf, lse, 0)), 0)
    delta = (dout * out).sum(-1, keepdims=True) - (0 if dlse is None else dlse.T[..., None])
    ds = p * (dout @ v.swapaxes(1, 2) - delta) * scale
    dk, dv = ds.swapaxes(1, 2) @ q, p.swapaxes(1, 2) @ dout
    dk, dv = (x.reshape(heads, -1, *x.shape[1:]).sum(1) for x in (dk, dv))
    return (ds @ k).swapaxes(0, 1), dk.swapaxes(0, 1), dv.swapaxes(0, 1)


def run(c: BackwardConfig, operands: dict[str, Any], numbers: dict[str, Any], **options: Any) -> tuple[Any, Any, Any]:
    """Run the kernels on (B, S, H, D) arrays with poisoned results and workspaces, and return dq, dk and dv.

    Args:
        c: Configuration.
        operands: q, k, v, out, dout (B, S, H, D), lse, dlse (B, S, H), of_queries, of_keys.
        numbers: queries, keys, scale, left and right, and the slices ``parts`` of a split configuration.
        options: Options of the interpreter.
    """
    dtype = operands["q"].dtype
    results = {f"d{x}": np.full(operands[x].shape, np.nan, dtype) for x in "qkv"}
    batch, rows, heads, _ = operands["q"].shape
    _, key_rows, key_heads, _ = operands["k"].shape
    sequences = len(operands["of_queries"]) - 1 if c.packed else batch
    spaces = {
        name: np.full(shape, np.nan if kind == "f32" else 1 << 30, TYPES[kind])
        for name, (kind, shape) in c.workspaces(rows, heads, sequences, key_rows, key_heads).items()
    }
    given = {**operands, **results}
    given = {
        name: x if x.ndim == 1 else x.transpose(1, 2, 0) if x.ndim == 3 else x.transpose(1, 3, 2, 0)
        for name, x in given.items() if x is not None
    }  # fmt: skip
    given |= spaces | numbers
    for launch in backward_launches(c):
        module = compile(launch.text(c), emit="base", filename=f"{launch.name}.mlir")
        module.kernel(launch.host)(*[given[name] for name in launch.operands], device="cpu", checks=CHECKS, **options)
    return results["dq"], results["dk"], results["dv"]


def errors(found: Any, want: Any) -> list[float]:
    """Return the largest error of each gradient relative to its largest value."""
    return [
        float(np.abs(x.astype(np.float64) - y).max() / max(float(np.abs(y).max()), 1e-30)) for x, y in zip(found, want)
    ]


def dense(
    c: BackwardConfig, batch: int, heads: int, key_heads: int, queries: int, keys: int, size: int,
    window: tuple[int, int] = (0, 0), parts: int = 1, size_v: int = 0, **options: Any,
) -> list[float]:  # fmt: skip
    """Return the errors of the gradients of random (B, S, H, D) arrays."""
    return errors(*dense_gradients(c, batch, heads, key_heads, queries, keys, size, window, parts, size_v, **options))


def dense_gradients(
    c: BackwardConfig, batch: int, heads: int, key_heads: int, queries: int, keys: int, size: int,
    window: tuple[int, int] = (0, 0), parts: int = 1, size_v: int = 0, **options: Any,
) -> tuple[Any, Any]:  # fmt: skip
    """Return the gradients of random (B, S, H, D) arrays, and their values in float64.

    Args:
        size_v: Elements per head of v, or 0 for those of q and k.
    """
    dtype, size_v = DTYPES[c.element], size_v or size
    q, dout = (normal(batch, queries, heads, n, dtype=dtype, seed=i) for i, n in ((0, size), (3, size_v)))
    k, v = (normal(batch, keys, key_heads, n, dtype=dtype, seed=i) for i, n in ((1, size), (2, size_v)))
    dlse = normal(batch, queries, heads, dtype=np.float32, seed=4) if c.dlse else None
    bounds = [x if is_bounded else None for x, is_bounded in zip(window, c.bounded)]
    seen = visible(queries, keys, bounds[0], bounds[1], keys - queries if c.from_end else 0)
    scale = float(np.float32(size**-0.5))
    both = [forward(*x, scale, seen) for x in zip(q, k, v)]
    operands = {
        "q": q, "k": k, "v": v, "out": np.stack([x[0] for x in both]).astype(dtype), "dout": dout,
        "lse": np.stack([x[1] for x in both]).astype(np.float32), "dlse": dlse,
    }  # fmt: skip
    numbers = {"queries": queries, "keys": keys, "scale": scale, "left": window[0], "right": window[1], "parts": parts}
    found = run(c, operands, numbers, **options)
    each = [gradients(q[i], k[i], v[i], dout[i], None if dlse is None else dlse[i], scale, seen) for i in range(batch)]
    return found, [np.stack(x) for x in zip(*each)]


def packed(
    c: BackwardConfig, lengths: list[tuple[int, int]], heads: int, key_heads: int, size: int,
    window: tuple[int, int] = (0, 0), parts: int = 1, **options: Any,
) -> list[float]:  # fmt: skip
    """Return the errors of the gradients of packed sequences of (queries, keys).

    One sequence at a time is finite. The others are NaN, so that an access to them shows. The gradients of queries
    without keys, and of keys without queries, must be 0 nevertheless.
    """
    dtype, scale = DTYPES[c.element], float(np.float32(size**-0.5))
    begins = [np.cumsum([0, *x]).astype(np.int32) for x in zip(*lengths)]
    longest = [max(x) for x in zip(*lengths)]
    numbers = {"queries": longest[0], "keys": longest[1], "scale": scale, "left": window[0], "right": window[1]}
    numbers |= {"parts": parts}
    worst = [0.0, 0.0, 0.0]
    for one, (queries, keys) in enumerate(lengths):
        if not queries or not keys:
            continue
        mine, theirs = (slice(int(b[one]), int(b[one + 1])) for b in begins)
        q, dout = (normal(queries, heads, size, dtype=dtype, seed=i) for i in (0, 3))
        k, v = (normal(keys, key_heads, size, dtype=dtype, seed=i) for i in (1, 2))
        dlse = normal(queries, heads, dtype=np.float32, seed=4) if c.dlse else None
        bounds = [x if is_bounded else None for x, is_bounded in zip(window, c.bounded)]
        seen = visible(queries, keys, bounds[0], bounds[1], keys - queries if c.from_end else 0)
        out, lse = forward(q, k, v, scale, seen)
        operands: dict[str, Any] = {"of_queries": begins[0], "of_keys": begins[1]}
        parts = {"q": q, "k": k, "v": v, "out": out.astype(dtype), "dout": dout, "lse": lse.astype(np.float32)}
        if dlse is not None:
            parts["dlse"] = dlse
        for name, part in parts.items():
            at, b = (theirs, begins[1]) if name in ("k", "v") else (mine, begins[0])
            whole = np.full((1, int(b[-1]), *part.shape[1:]), np.nan, part.dtype)
            whole[0, at] = part
            operands[name] = whole
        operands.setdefault("dlse", None)
        for (_, count), first, end in zip(lengths, begins[0], begins[0][1:]):
            if not count:
                operands["lse"][0, first:end] = -np.inf
        found = run(c, operands, numbers, **options)
        for i, (many, count) in enumerate(lengths):
            if not count:
                assert not found[0][0, begins[0][i] : begins[0][i + 1]].any()
            if not many:
                assert not any([x[0, begins[1][i] : begins[1][i + 1]].any() for x in found[1:]])
        want = gradients(q, k, v, dout, dlse, scale, seen)
        here = errors([found[0][0, mine], found[1][0, theirs], found[2][0, theirs]], want)
        worst = [max(a, b) for a, b in zip(worst, here)]
    return worst
