"""Kernels for short contiguous rows on the interpreter, compared with numpy in float64, without register spills."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cute_dialect.kernels.rows.forward import OPERATIONS
from cute_dialect.kernels.rows.packed import is_packed_length, packed_entropy_text, packed_text
from cute_dialect.kernels.rows.packed_norm_gradients import packed_norm_text
from cute_dialect.pipelines import compile as compile_cute

CHECKS = ("race", "uninit", "sync", "oob")
DTYPES: dict[str, Any] = {"f32": np.float32, "f16": np.float16}
LIMITS = {"f32": 2e-6, "f16": 2.0**-11}
NUMBERS = ("sum", "mean", "max", "logsumexp")
EPS = 1e-5


def aligned(element: str, count: int, seed: int | None) -> np.ndarray:
    """Return random numbers, or NaN without a seed, at a 16-byte aligned address."""
    item = np.dtype(DTYPES[element]).itemsize
    found = np.zeros(count * item + 16, np.uint8)
    found = found[-found.ctypes.data % 16 :][: count * item].view(DTYPES[element])
    found[:] = np.nan if seed is None else np.random.default_rng(seed).standard_normal(count)
    return found


def reference(op: str, x: np.ndarray, more: dict[str, np.ndarray]) -> np.ndarray:
    top = x.max(-1, keepdims=True)
    powers = np.exp(x - top)
    of_row = powers.sum(-1, keepdims=True)
    if op in NUMBERS:
        return {"sum": x.sum(-1), "mean": x.mean(-1), "max": top[:, 0], "logsumexp": (top + np.log(of_row))[:, 0]}[op]
    if op == "max_backward":
        return (x == top) / (x == top).sum(-1, keepdims=True) * more["g"][:, None]
    if op == "softmax_backward":
        return x * (more["d"] - (x * more["d"]).sum(-1, keepdims=True))
    if op == "log_softmax_backward":
        return more["d"] - np.exp(x) * more["d"].sum(-1, keepdims=True)
    if "norm" in op:
        x = x - x.mean(-1, keepdims=True) * (op == "layernorm")
        y = x / np.sqrt(np.square(x).mean(-1, keepdims=True) + EPS)
        return y * more.get("w", 1.0) + more.get("b", 0.0)
    if op == "log_softmax":
        return x - top - np.log(of_row)
    return powers / of_row * (more["g"][:, None] if op == "logsumexp_backward" else 1.0)


@pytest.mark.sample(every=9)
@pytest.mark.parametrize(
    ("element", "n", "rows"), [("f16", 1, 77), ("f16", 3, 1003), ("f16", 12, 700), ("f32", 5, 1100)]
)
@pytest.mark.parametrize("op", [*OPERATIONS, *NUMBERS])
def test_equal_to_numpy(op: str, element: str, n: int, rows: int) -> None:
    """Rows end within a vector. The output buffer holds NaN before the launch."""
    takes = OPERATIONS[op].OPERANDS if op in OPERATIONS else ""
    x = aligned(element, rows * n, 0)
    sizes = {"d": rows * n, "r": rows * n, "g": rows, "w": n, "b": n}
    more = {k: aligned(element, sizes[k], 1 + i) for i, k in enumerate(takes)}
    y = aligned(element, rows if op in NUMBERS else rows * n, None)
    sums = [aligned(element, rows * n, None)] if "r" in takes else []
    if op == "max_backward":
        x[:] = np.round(x * 2)
    eps = [EPS] if "norm" in op else []
    given = [more[k] for k in "rdgwb" if k in takes]
    function = compile_cute(packed_text(op, element, n, takes), emit="base").kernel("launch")
    function(x, *given, y, *sums, *eps, device="cpu", checks=CHECKS)
    if sums:
        assert np.array_equal(sums[0], (x.astype(np.float32) + more["r"].astype(np.float32)).astype(x.dtype))
        x = sums[0]
    wide = {k: v.astype(np.float64).reshape((rows, n) if k in "dr" else -1) for k, v in more.items()}
    wanted = reference(op, x.astype(np.float64).reshape(rows, n), wide)
    limit = LIMITS[element] * (np.abs(wanted) + np.sqrt(np.square(wanted).mean()) + 1e-3)
    assert (np.abs(y.astype(np.float64).reshape(wanted.shape) - wanted) <= limit).all()


@pytest.mark.parametrize("element", DTYPES)
def test_equal_elements(element: str) -> None:
    """If all elements of a row are equal, the mean is exact and the layer norm is 0."""
    for op in ("mean", "layernorm"):
        x = np.repeat(aligned(element, 9, 3), 7)
        y = aligned(element, 9 if op == "mean" else 63, None)
        function = compile_cute(packed_text(op, element, 7), emit="base").kernel("launch")
        store = aligned(element, 63, 0)
        store[:] = x
        function(store, y, *([EPS] if op == "layernorm" else []), device="cpu")
        assert np.array_equal(y, x[::7] if op == "mean" else np.zeros(63))


@pytest.mark.parametrize("element", DTYPES)
def test_cross_entropy(element: str) -> None:
    n, rows, ignored = 3, 301, -100
    x, g = aligned(element, n * rows, 5), aligned(element, rows, 6)
    target = np.random.default_rng(0).integers(0, n, rows)
    target[::7] = ignored
    losses, lse, dx = aligned("f32", rows, None), aligned("f32", rows, None), aligned(element, n * rows, None)
    compile_cute(packed_entropy_text(element, n), emit="base").kernel("launch_entropy")(
        x, target, losses, lse, ignored, device="cpu", checks=CHECKS
    )
    wide = x.astype(np.float64).reshape(rows, n)
    log = np.log(np.exp(wide).sum(-1))
    kept = target != ignored
    picked = np.take_along_axis(wide, np.where(kept, target, 0)[:, None], 1)[:, 0]
    assert np.allclose(lse, log, rtol=1e-5, atol=1e-5)
    assert np.allclose(losses, np.where(kept, log - picked, 0), rtol=1e-5, atol=1e-5)
    count = np.array([kept.sum()], np.float32)
    compile_cute(packed_entropy_text(element, n, element, True), emit="base").kernel("launch_entropy_backward")(
        x, target, lse, g, count, dx, ignored, device="cpu", checks=CHECKS
    )
    wanted = (np.exp(wide - log[:, None]) - (target[:, None] == np.arange(n))) * np.where(kept, g, 0)[:, None] / count
    assert np.allclose(dx.reshape(rows, n), wanted, rtol=2 * LIMITS[element], atol=LIMITS[element] / rows)


@pytest.mark.sample("63-35-layernorm-wbr", "21-99-rmsnorm-w")
@pytest.mark.parametrize("takes", ["wbr", "w", ""])
@pytest.mark.parametrize("op", ["layernorm", "rmsnorm"])
@pytest.mark.parametrize(("n", "rows"), [(6, 701), (21, 99), (63, 35)])
def test_gradients_of_norms(op: str, takes: str, n: int, rows: int) -> None:
    """One block processes several tiles, and the last tile is partial."""
    pitch = -(-n // 4) * 4
    x, d, r = (aligned("f32", n * rows, seed) for seed in range(3))
    w, dx = aligned("f32", n, 3), aligned("f32", n * rows, None)
    parts = aligned("f32", 2 * len(takes.strip("r")) * pitch, None).reshape(2, -1)[:1]
    given = [x, *[w] * ("w" in takes), d, *[r] * ("r" in takes), dx, parts if takes else 1, EPS]
    compile_cute(packed_norm_text(op, "f32", n, takes), emit="base").kernel("launch")(
        *given, device="cpu", checks=CHECKS
    )
    x, d, r = (t.astype(np.float64).reshape(rows, n) for t in (x, d, r))
    x = x - x.mean(-1, keepdims=True) * (op == "layernorm")
    by = 1 / np.sqrt(np.square(x).mean(-1, keepdims=True) + EPS)
    g = d * (w if "w" in takes else 1.0)
    wanted = g - g.mean(-1, keepdims=True) * (op == "layernorm") - x * by * (g * x * by).mean(-1, keepdims=True)
    wanted = wanted * by + (r if "r" in takes else 0.0)
    assert np.abs(dx.reshape(rows, n) - wanted).max() <= 1e-5 * np.abs(wanted).max()
    for i, sums in enumerate([(d * x * by).sum(0), d.sum(0)][: len(takes.strip("r"))]):
        assert np.allclose(parts[0, pitch * i : pitch * i + n], sums, rtol=1e-5, atol=1e-4)


@pytest.mark.sample("layernorm-f32-63", "softmax-f16-39")
@pytest.mark.parametrize(
    ("op", "element", "n"),
    [
        ("layernorm", "f16", 15),
        ("layernorm", "f32", 15),
        ("layernorm", "bf16", 127),
        ("layernorm", "f32", 63),
        ("softmax", "f16", 39),
    ],
)
def test_registers_do_not_spill(op: str, element: str, n: int) -> None:
    texts = [packed_text(op, element, n, OPERATIONS[op].OPERANDS)] if n < 40 else []
    if op == "layernorm":
        texts.append(packed_norm_text(op, element, n, "wbr"))
    for text in texts:
        report = compile_cute(text).report
        assert "0 bytes spilled, 0 bytes stack" in report, report


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("softmax", "f16", 8), "rows of 8 f16 elements are not packed"),
        (("median", "f16", 3), "operation 'median' is not supported; use one of softmax"),
        (("rmsnorm", "f16", 3, "b"), "rmsnorm: operands 'b' are not supported; use some of 'wr'"),
    ],
)
def test_unsupported_rows(arguments: tuple[Any, ...], message: str) -> None:
    assert not is_packed_length("f16", 8)
    with pytest.raises(ValueError, match=message):
        packed_text(*arguments)
