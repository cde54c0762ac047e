"""Shipped kernels on small problems, the subjects of `mutants.py`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from cute_dialect.kernels.attention.backward import backward_launches, backward_text
from cute_dialect.kernels.attention.backward_config import BackwardConfig, default_backward_config
from cute_dialect.kernels.attention.block_mask import block_counts_text
from cute_dialect.kernels.attention.combine import CombineConfig as PartsConfig
from cute_dialect.kernels.attention.combine import combine_text, merge_text
from cute_dialect.kernels.attention.config import AttentionConfig
from cute_dialect.kernels.attention.dropout import kept_of_arrays, kept_share, threshold_of
from cute_dialect.kernels.attention.forward import attention_text
from cute_dialect.kernels.attention.latent import latent_text
from cute_dialect.kernels.attention.latent_config import LatentConfig
from cute_dialect.kernels.attention.score_graph import ScoreGraph
from cute_dialect.kernels.common.philox import drawn_of_arrays
from cute_dialect.kernels.conv.config import Window
from cute_dialect.kernels.conv.direct import DirectConfig, direct_text
from cute_dialect.kernels.conv.few_results import FewResultsConfig, few_results_text
from cute_dialect.kernels.copies.repack_rows import dense_text
from cute_dialect.kernels.copies.transpose import transpose_text
from cute_dialect.kernels.copies.transpose_narrow import narrow_text
from cute_dialect.kernels.copies.transpose_unaligned import UnalignedPlan, unaligned_text
from cute_dialect.kernels.elementwise.adamw import CHUNK, AdamwConfig, adamw_text, table_of
from cute_dialect.kernels.elementwise.add import elementwise_add_text, seed_tile
from cute_dialect.kernels.epilogue.graph import Builder, Input, Output
from cute_dialect.kernels.gemm import gemm_text
from cute_dialect.kernels.gemm.ampere import AmpereConfig, ampere_gemm_text
from cute_dialect.kernels.gemm.config import GemmConfig, SkinnyConfig, SplitConfig
from cute_dialect.kernels.gemm.few_rows import few_rows_text
from cute_dialect.kernels.gemm.mixed_input import MixedConfig, mixed_input_text
from cute_dialect.kernels.gemm.sgemm import sgemm_text
from cute_dialect.kernels.gemm.sm120 import Sm120Config, sm120_gemm_text
from cute_dialect.kernels.gemm.sparse import SparseConfig, compress, compress_text, expand_text, sparse_gemm_text
from cute_dialect.kernels.rows.config import RowConfig
from cute_dialect.kernels.rows.dispatch import (
    PAIRS,
    CombineConfig,
    SortConfig,
    combine_gradient_text,
    copy_text,
    count_text,
    sort_text,
)
from cute_dialect.kernels.rows.dispatch import combine_text as combine_rows_text
from cute_dialect.kernels.rows.embedding import EmbeddingConfig, gather_text, gradient_text, links_text, zero_text
from cute_dialect.kernels.rows.forward import row_text
from cute_dialect.kernels.rows.norm_quantize import NormQuantizeConfig, norm_quantize_text
from cute_dialect.kernels.rows.packed import packed_text
from cute_dialect.kernels.rows.packed_norm_gradients import packed_norm_text
from cute_dialect.kernels.rows.route import RouteConfig, route_text
from cute_dialect.kernels.rows.sample import SampleConfig, sample_text
from cute_dialect.kernels.rows.streamed import elements_text, statistics_text
from cute_dialect.kernels.rows.sums import sum_text
from cute_dialect.kernels.rows.topk import TopkConfig, topk_text
from cute_dialect.op.epilogue.score_functions import with_slopes
from cute_dialect.op.functions.optimizers import AdamwSettings
from cute_dialect.pipelines import compile as compile_cute

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from attention_backward import forward as attention_forward
from attention_backward import gradients as attention_gradients
from attention_backward import visible
from quantized_weights import TYPES, packed, weights

EXAMPLES = Path(__file__).parents[1] / "examples"
DTYPES = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "tf32": np.float32,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
}  # fmt: skip

Problem = Callable[[], list[Any]]
"""Function that allocates the arguments of a launch."""


@dataclass(frozen=True)
class Subject:
    """A kernel, the arguments of a few launches, and a check of the outputs.

    `kernel` is the host function, or the kernel if there is none. Each of `problems` returns arguments. `right` returns
    True if the outputs among them are correct.

    `once` is the reason why a staging buffer may be filled without a wait, empty if it may not. `ahead` is the reason
    why the last read of a step needs no barrier after it. `covered` is the reason why the first of several waits of
    a producer for empty slots covers the others, empty if it does not. `passed` is the reason why a wait for a full
    slot after a named barrier is not needed, empty if it is. `begin` is the reason why a producer's waits for empty
    slots at the begin of a tile may be covered by others, empty if they may not. `lower` is the reason why a loop that
    counts fewer elements for a bound makes no difference. `read` is the reason why the first store to shared memory
    after a named barrier may come before it, empty if it may not. `long` returns the arguments of a launch in which
    each mbarrier has more uses than a warpgroup has threads, None if no mutant needs it.
    """

    name: str
    text: Callable[[], str]
    kernel: str
    problems: Sequence[Problem]
    right: Callable[[Sequence[np.ndarray]], bool]
    once: str = ""
    ahead: str = ""
    covered: str = ""
    passed: str = ""
    lower: str = ""
    begin: str = ""
    read: str = ""
    long: Problem | None = None


def _integers(rng: np.random.Generator, shape: tuple[int, ...], element: str) -> np.ndarray:
    return rng.integers(-2, 3, shape).astype(DTYPES[element])


def _product(arrays: Sequence[np.ndarray]) -> bool:
    a, b, c = (x.astype(np.float64) for x in arrays[:3])
    return bool((c == (a @ b.T).astype(arrays[2].dtype).astype(np.float64)).all())


def _gemm(
    name: str,
    text: Callable[[], str],
    *shapes: tuple[int, int, int],
    element: str = "f16",
    output: str = "f16",
    more: Callable[[], list[np.ndarray]] = list,
    once: str = "",
) -> Subject:
    """C = A B^T of small integers, whose sums are exact. C is NaN before the launch."""

    def make(shape: tuple[int, int, int]) -> list[np.ndarray]:
        m, n, k = shape
        rng = np.random.default_rng(m + n + k)
        a, b = _integers(rng, (m, k), element), _integers(rng, (n, k), element)
        return [a, b, np.full((m, n), np.nan, DTYPES[output]), *more()]

    return Subject(name, text, "launch", [partial(make, s) for s in shapes], _product, once)


def _sgemm(name: str, *shapes: tuple[int, int, int], ahead: str = "") -> Subject:
    def make(shape: tuple[int, int, int]) -> list[np.ndarray]:
        m, n, k = shape
        rng = np.random.default_rng(m + n + k)
        a, b = _integers(rng, (m, k), "f32"), _integers(rng, (k, n), "f32")
        return [a, b, np.full((m, n), np.nan, np.float32)]

    def right(arrays: Sequence[np.ndarray]) -> bool:
        a, b, c = arrays
        return bool((c == a @ b).all())

    return Subject(
        f"sgemm {name}", lambda: sgemm_text(name), "launch", [partial(make, s) for s in shapes], right, ahead=ahead
    )


def _rows(name: str, op: str, element: str, shape: tuple[int, int], config: RowConfig | None = None) -> Subject:
    rows, n = shape
    weights = {"rmsnorm": 1, "layernorm": 2}.get(op, 0)

    def make() -> list[Any]:
        rng = np.random.default_rng(n)
        x = rng.standard_normal((rows, n)).astype(DTYPES[element])
        w = [rng.standard_normal(n).astype(DTYPES[element]) for _ in range(weights)]
        y = np.full(rows if op in ("sum", "mean") else (rows, n), np.nan, DTYPES[element])
        return [x, *w, y, *([1e-5] if weights else [])]

    def right(arrays: Sequence[Any]) -> bool:
        x, *w, y = (a.astype(np.float64) for a in arrays[: weights + 2])
        if op in ("sum", "mean"):
            exact = x.sum(1) if op == "sum" else x.mean(1)
        elif op == "softmax":
            e = np.exp(x - x.max(1, keepdims=True))
            exact = e / e.sum(1, keepdims=True)
        elif op == "rmsnorm":
            exact = x / np.sqrt((x**2).mean(1, keepdims=True) + 1e-5) * w[0]
        else:
            exact = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5) * w[0] + w[1]
        scale = np.abs(exact).max()
        return bool(np.abs(y - exact).max() <= {"f32": 1e-5, "f16": 2e-3, "bf16": 2e-2}[element] * scale)

    return Subject(
        name, lambda: (sum_text if op in ("sum", "mean") else row_text)(op, element, n, config), op, [make], right
    )


def _add() -> Subject:
    def make(shape: tuple[int, int]) -> list[np.ndarray]:
        rng = np.random.default_rng(0)
        a, b = (_integers(rng, shape, "f32") for _ in range(2))
        return [a, b, np.full(shape, np.nan, np.float32)]

    return Subject(
        "elementwise add",
        lambda: elementwise_add_text("f32", seed_tile("f32")),
        "add",
        [partial(make, s) for s in ((19, 261), (32, 256), (17, 260), (33, 513))],
        lambda x: bool((x[2] == x[0] + x[1]).all()),
    )


def _transpose(element: str, *shapes: tuple[int, int]) -> Subject:
    def make(shape: tuple[int, int]) -> list[np.ndarray]:
        a = _integers(np.random.default_rng(0), shape, element)
        return [a, np.full(shape[::-1], np.nan, DTYPES[element])]

    return Subject(
        f"transpose {element} {shapes[0][0]}x{shapes[0][1]}",
        lambda: transpose_text(element),
        "launch",
        [partial(make, s) for s in shapes],
        lambda x: bool((x[1] == x[0].T).all()),
    )


def _unaligned(*shapes: tuple[int, int]) -> Subject:
    """Transpose with aligned rows on neither side; shapes are those of A."""

    def make(shape: tuple[int, int]) -> list[np.ndarray]:
        a = _integers(np.random.default_rng(0), shape, "f16")
        return [a, np.full(shape[::-1], np.nan, np.float16)]

    text, problems = partial(unaligned_text, "f16", UnalignedPlan(4, 4, 64)), [partial(make, s) for s in shapes]
    return Subject("transpose of unaligned rows", text, "launch", problems, lambda x: bool((x[1] == x[0].T).all()))


def _packed_norm(n: int, *shapes: int) -> Subject:
    """Gradients of a layer norm without weights, whose rows are shared by lanes."""

    def make(rows: int) -> list[Any]:
        x, d = (np.random.default_rng(seed).standard_normal(rows * n).astype(np.float32) for seed in range(2))
        return [x, d, np.full(rows * n, np.nan, np.float32), np.full((1, -(-n // 4) * 4), np.nan, np.float32), 1e-5]

    def right(arrays: Sequence[Any]) -> bool:
        x, d, y, parts = (a.astype(np.float64) for a in arrays[:4])
        x, d = x.reshape(-1, n), d.reshape(-1, n)
        x = x - x.mean(1, keepdims=True)
        by = 1 / np.sqrt((x**2).mean(1, keepdims=True) + 1e-5)
        x = x * by
        exact = (d - d.mean(1, keepdims=True) - x * (d * x).mean(1, keepdims=True)) * by
        close = np.abs(y - exact.reshape(-1)).max() <= 1e-5 * np.abs(exact).max()
        return bool(close and np.allclose(parts[0, :n], d.sum(0), rtol=1e-4, atol=1e-4))

    text = partial(packed_norm_text, "layernorm", "f32", n, "b")
    return Subject(f"packed gradients of {n} columns", text, "launch", [partial(make, s) for s in shapes], right)


def _narrow(n: int, unit: int, tall: bool, *shapes: int) -> Subject:
    """Transpose from or to (rows, n). The narrow matrix is passed as a vector."""

    def make(rows: int) -> list[np.ndarray]:
        a = _integers(np.random.default_rng(n), (rows, n) if tall else (n, rows), "f16")
        out = np.full(a.size, np.nan, np.float16)
        return [a.reshape(-1), out.reshape(n, rows)] if tall else [out, a]

    return Subject(
        f"transpose {'from' if tall else 'to'} {n} columns", lambda: narrow_text("f16", n, unit, tall), "launch",
        [partial(make, s) for s in shapes], lambda x: bool((x[1] == x[0].reshape(-1, n).T).all()),
    )  # fmt: skip


def _packed(op: str, n: int, *shapes: int) -> Subject:
    def make(rows: int) -> list[np.ndarray]:
        x = np.random.default_rng(n).standard_normal(rows * n).astype(np.float16)
        return [x, np.full(rows if op == "sum" else rows * n, np.nan, np.float16)]

    def right(arrays: Sequence[np.ndarray]) -> bool:
        x, y = (a.astype(np.float64) for a in arrays)
        x = x.reshape(-1, n)
        e = np.exp(x - x.max(1, keepdims=True))
        exact = x.sum(1) if op == "sum" else (e / e.sum(1, keepdims=True)).reshape(-1)
        return bool(np.abs(y - exact).max() <= 2e-3 * np.abs(exact).max())

    return Subject(
        f"packed {op} of {n} columns",
        lambda: packed_text(op, "f16", n),
        "launch",
        [partial(make, s) for s in shapes],
        right,
    )


def _streamed(step: str, n: int) -> Subject:
    """One of the two softmax kernels for rows of any length, with two slices per row."""
    rows, width = 2, 1 if n % 4 else 4
    half = -(-(n // width) // 2) * width

    def exact(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        x = x.astype(np.float64)
        parts = np.zeros((rows, 5))
        for i, own in enumerate((x[:, :half], x[:, half:])):
            m = own.max(1)
            parts[:, 2 * i], parts[:, 2 * i + 1] = m, np.exp(own - m[:, None]).sum(1)
        parts[:, 4] = x[:, 0]
        e = np.exp(x - x.max(1, keepdims=True))
        return parts, e / e.sum(1, keepdims=True)

    def make() -> list[Any]:
        x = np.random.default_rng(n).standard_normal((rows, n)).astype(np.float32)
        if step == "statistics":
            return [x, np.full((rows, 5), np.nan, np.float32)]
        return [x, np.full((rows, n), np.nan, np.float32), exact(x)[0].astype(np.float32), rows]

    def right(arrays: Sequence[np.ndarray]) -> bool:
        wanted = exact(arrays[0])[0 if step == "statistics" else 1]
        return bool(np.abs(arrays[1] - wanted).max() <= 1e-5 * np.abs(wanted).max())

    text = statistics_text if step == "statistics" else elements_text
    return Subject(f"streamed {step} of {n} columns", lambda: text("softmax", "f32"), f"launch_{step}", [make], right)


def _route() -> Subject:
    """Choose 3 of 40 experts; logits are multiples of 1/4, of which many are equal."""

    def make(rows: int) -> list[Any]:
        x = (np.random.default_rng(rows).integers(-6, 7, (rows, 40)) / 4).astype(np.float32)
        return [x, np.full((rows, 3), np.nan, np.float32), np.full((rows, 3), -1, np.int32), 1.0]

    def right(arrays: Sequence[Any]) -> bool:
        x, weights, experts = arrays[:3]
        wanted = np.argsort(-x, -1, kind="stable")[:, :3]
        e = np.exp(np.take_along_axis(x, wanted, -1).astype(np.float64))
        exact = e / e.sum(-1, keepdims=True)
        return bool((experts == wanted).all() and np.abs(weights - exact).max() <= 1e-6)

    text = partial(route_text, RouteConfig("f32", 40, 3))
    return Subject("routing, a warp a row", text, "launch", [partial(make, n) for n in (5, 8)], right)


def _dispatch_order(experts: np.ndarray, count: int) -> np.ndarray:
    """Return the row of each pair of token and expert; those of no expert are dropped."""
    keys = np.where((experts >= 0) & (experts < count), experts, count).ravel()
    order = np.empty(keys.size, np.int32)
    order[np.argsort(keys, kind="stable")] = np.arange(keys.size)
    return np.where(keys < count, order, -1 - order).astype(np.int32)


def _dispatch_sort(experts: int, is_alone: bool, *pairs: int) -> Subject:
    """Sort pairs by expert, in one block or with the counts of several, in rounds of 512 pairs per block."""
    rounds = 2

    def make(count: int) -> list[Any]:
        chosen = np.random.default_rng(count).integers(-1, experts, count).astype(np.int32)
        counts = np.zeros((-(-count // (rounds * PAIRS)), experts + 1), np.int32)
        np.add.at(counts, (np.arange(count) // (rounds * PAIRS), np.where(chosen < 0, experts, chosen)), 1)
        results = [np.full(experts, -9, np.int32), np.full(count, -9, np.int32)]
        return [chosen, *([] if is_alone else [counts]), *results, rounds]

    def right(arrays: Sequence[Any]) -> bool:
        chosen, (*_, offs, order, _) = arrays[0], arrays
        ends = np.cumsum(np.bincount(chosen + 1, minlength=experts + 1)[1:])
        return bool((offs == ends).all() and (order == _dispatch_order(chosen, experts)).all())

    text = partial(sort_text, SortConfig("i32", experts, is_alone))
    name = f"sort of pairs by {experts} experts in {'one block' if is_alone else 'several blocks'}"
    return Subject(name, text, "launch_sort", [partial(make, n) for n in pairs], right)


def _combine_gradient(*columns: int) -> Subject:
    """Gradients of the sums of two rows per token."""

    def make(n: int) -> list[Any]:
        rng = np.random.default_rng(n)
        order = _dispatch_order(rng.integers(-1, 3, (4, 2)), 3).reshape(4, 2)
        dout, y, weights = (rng.standard_normal(shape).astype(np.float32) for shape in ((4, n), (8, n), (4, 2)))
        return [dout, y, order, weights, np.full_like(y, np.nan), np.full_like(weights, np.nan)]

    def right(arrays: Sequence[Any]) -> bool:
        dout, y, order, weights, dy, dweights = arrays
        rows, is_there = np.maximum(order, -1 - order), order >= 0
        of_y = np.zeros_like(y)
        of_y[rows] = np.where(is_there, weights, 0)[..., None] * dout[:, None]
        of_weights = np.where(is_there, (y[rows] * dout[:, None]).sum(-1), 0)
        return bool(np.allclose(dy, of_y, atol=1e-5) and np.allclose(dweights, of_weights, atol=1e-4))

    text = partial(combine_gradient_text, CombineConfig("f32", 2, True, 64))
    host, problems = "launch_combine_gradient", [partial(make, n) for n in columns]
    return Subject("gradient of the sums of rows", text, host, problems, right)


def _norm_quantize(rows: int, n: int) -> Subject:
    """Layer norm with int8 results, whose rows are shared by two warps."""

    def make() -> list[Any]:
        x = np.random.default_rng(n).standard_normal((rows, n)).astype(np.float32)
        return [x, np.full((rows, n), -128, np.int8), np.full((rows, 1), np.nan, np.float32), 1e-5]

    def right(arrays: Sequence[Any]) -> bool:
        x, q, scales = (a.astype(np.float64) for a in arrays[:3])
        exact = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
        wanted = np.abs(exact).max(1, keepdims=True) / 127
        return bool(np.abs(scales / wanted - 1).max() < 1e-5 and np.abs(q - exact / wanted).max() < 0.501)

    text = partial(norm_quantize_text, NormQuantizeConfig("layer_norm", "f32", "i8", "row", "", 64, 2))
    return Subject(f"LayerNorm of {n} columns to int8", text, "launch", [make], right)


def _sample(n: int) -> Subject:
    """Draw tokens of two rows with two warps."""

    def make() -> list[Any]:
        x = (np.random.default_rng(n).integers(-6, 7, (2, n)) / 4).astype(np.float32)
        return [x, np.full(2, -1, np.int32), 1.0, 0, 1.0, 0.0, 5, 2]

    def right(arrays: Sequence[Any]) -> bool:
        x, tokens = arrays[:2]
        powers = np.exp(x.astype(np.float64))
        up_to = np.cumsum(powers, -1) / powers.sum(-1, keepdims=True)
        drawn = drawn_of_arrays(np.zeros((2, 1)), 5, 2)
        return bool((tokens == (up_to <= drawn).sum(-1)).all())

    text = partial(sample_text, SampleConfig("f32", 64, 64))
    return Subject(f"sample of {n} logits", text, "launch", [make], right)


_LOWER = "a lower bound on the k-th element adds candidates, whose ranks decide"


def _topk(n: int, capacity: int, k: int) -> Subject:
    """Select elements of two rows with two warps, from candidates or from passes over the row."""

    def make() -> list[Any]:
        x = np.random.default_rng(n).integers(-6, 7, (2, n)).astype(np.float32)
        x[:, [0, -1]] = 9, 8  # The first and the last segment have elements that are selected.
        return [x, np.full((2, k), np.nan, np.float32), np.full((2, k), -1, np.int64)]

    def right(arrays: Sequence[Any]) -> bool:
        x, values, indices = arrays
        order = np.argsort(-x, axis=-1, kind="stable")[:, :k]
        return bool((indices == order).all() and (values == np.take_along_axis(x, order, -1)).all())

    text = partial(topk_text, TopkConfig("f32", 64, 64, capacity=capacity))
    return Subject(f"topk of {n} elements, {capacity} candidates", text, "launch", [make], right, lower=_LOWER)


def _sample_of_candidates(n: int) -> Subject:
    """Draw tokens of two rows with top-k and top-p."""

    def make() -> list[Any]:
        x = (np.random.default_rng(n).integers(-6, 7, (2, n)) / 4).astype(np.float32)
        x[:, [0, -1]] = 3  # The first and the last segment have tokens that are kept.
        return [x, np.full(2, -1, np.int32), 1.0, 60, 0.9, 0.0, 5, 2]

    def right(arrays: Sequence[Any]) -> bool:
        x, tokens = arrays[:2]
        drawn = drawn_of_arrays(np.zeros((2, 1)), 5, 2)
        for row, token, u in zip(x.astype(np.float64), tokens, drawn[:, 0]):
            order = np.argsort(-row, kind="stable")[:60]
            sums = np.exp(row[order]).cumsum()
            order = np.sort(order[sums - np.exp(row[order]) < 0.9 * sums[-1]])
            up_to = np.exp(row[order]).cumsum()
            if token != order[(up_to <= u * up_to[-1]).sum()]:
                return False
        return True

    text = partial(sample_text, SampleConfig("f32", 64, 64, "kp"))
    return Subject(f"sample of the candidates of {n} logits", text, "launch", [make], right, lower=_LOWER)


def _adamw(vector: int) -> Subject:
    """Update three parameters in one allocation; NaN between them stays."""
    counts, offsets, size = (5, CHUNK + 4, 64), (0, 16, CHUNK + 64), CHUNK + 128
    inside = np.zeros(size, bool)
    for n, at in zip(counts, offsets):
        inside[at : at + n] = True

    def make() -> list[Any]:
        rng = np.random.default_rng(vector)
        memory = [np.where(inside, x, np.nan).astype(np.float32) for x in rng.random((4, size))]
        table = table_of(counts, [[at] * 4 for at in offsets])
        return [*memory, table, *AdamwSettings(3.0, 0.01).numbers()]

    def right(arrays: Sequence[Any]) -> bool:
        _, g, m, v = (x.astype(np.float64) for x in make()[:4])
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        p = make()[0] * (1 - 1e-4) - 0.01 / (1 - 0.9**3) * m / (np.sqrt(v / (1 - 0.999**3)) + 1e-8)
        close = [np.allclose(x, y, 1e-5, 1e-6, equal_nan=True) for x, y in zip((arrays[0], *arrays[2:4]), (p, m, v))]
        return all(close)

    text = partial(adamw_text, AdamwConfig("f32", "f32", vector))
    return Subject(f"AdamW with vectors of {vector}", text, "launch", [make], right)


def _links(tokens: int) -> Subject:
    """Link tokens of equal index; some indices are outside of the table, and one has no gradient."""
    indices = np.random.default_rng(tokens).integers(-1, 40, tokens)

    def right(arrays: Sequence[Any]) -> bool:
        first: set[int] = set()
        for t, index in enumerate(indices):
            following = np.flatnonzero(indices[t + 1 :] == index)
            to = t + 1 + int(following[0]) if len(following) else tokens
            if not 0 <= index < 38 or index == 3:
                if arrays[1][t] >= 0:
                    return False
            elif arrays[1][t] != (-1 - to if index in first else to):
                return False
            first.add(int(index))
        return True

    def make() -> list[Any]:
        return [indices, np.full(tokens, -7, np.int32), 38, 3]

    return Subject(f"links of {tokens} tokens", links_text, "launch_links", [make], right)


def _indices(count: int, rows: int) -> np.ndarray:
    """Return indices of rows, some of which are outside of the table, the first and the last one among them."""
    found = np.random.default_rng(count).integers(-1, rows + 1, count)
    found[:4] = 0, rows - 1, rows, -1
    return found


def _gather(rows: int, *shapes: tuple[int, int]) -> Subject:
    """Rows of a table by their indices, NaN for indices outside of it; shapes are (tokens, columns)."""

    def make(shape: tuple[int, int]) -> list[np.ndarray]:
        table = np.random.default_rng(rows).standard_normal((rows, shape[1])).astype(np.float16)
        return [_indices(shape[0], rows), table, np.full(shape, 7, np.float16)]

    def right(arrays: Sequence[np.ndarray]) -> bool:
        indices, table, out = arrays
        is_there = (indices >= 0) & (indices < rows)
        return bool(np.array_equal(out, np.where(is_there[:, None], table[indices % rows], np.nan), equal_nan=True))

    text = partial(gather_text, EmbeddingConfig("f16"))
    return Subject("rows of a table", text, "launch", [partial(make, x) for x in shapes], right)


def _embedding_gradient(rows: int, *shapes: tuple[int, int]) -> Subject:
    """Sums of the tokens of equal index; shapes are (tokens, columns). Rows of no token are not written."""

    def make(shape: tuple[int, int]) -> list[np.ndarray]:
        tokens, columns = shape
        indices, links = _indices(tokens, rows), np.full(tokens, -1 - tokens, np.int32)
        for index in range(rows):
            of = np.flatnonzero(indices == index)
            links[of] = -1 - np.append(of[1:], tokens)
            links[of[:1]] = -1 - links[of[:1]]
        dout = _integers(np.random.default_rng(tokens), (tokens, columns), "f16")
        return [dout, indices, links, np.full((rows, columns), 7, np.float16)]

    def right(arrays: Sequence[np.ndarray]) -> bool:
        dout, indices, _, table = arrays
        wanted = np.array([dout[indices == i].sum(0) if (indices == i).any() else dout[0] * 0 + 7 for i in range(rows)])
        return bool((table == wanted).all())

    text = partial(gradient_text, EmbeddingConfig("f16"))
    return Subject("gradient of a table", text, "launch_gradient", [partial(make, x) for x in shapes], right)


def _zeros(*shapes: tuple[int, int]) -> Subject:
    """Fill the first columns of a matrix with zeros."""

    def make(shape: tuple[int, int]) -> list[np.ndarray]:
        return [np.full((shape[0], shape[1] + 8), 7, np.float16)[:, : shape[1]]]

    def right(arrays: Sequence[np.ndarray]) -> bool:
        return bool((arrays[0] == 0).all() and arrays[0].base is not None and (arrays[0].base[:, -8:] == 7).all())

    text = partial(zero_text, EmbeddingConfig("f16"))
    return Subject("zeros of a table", text, "launch_zero", [partial(make, x) for x in shapes], right)


def _compression(expands: bool, *shapes: tuple[int, int]) -> Subject:
    """Compress a 2:4 sparse matrix with two groups of three nonzero elements, or expand one."""

    def make(shape: tuple[int, int]) -> list[Any]:
        m, k = shape
        rng = np.random.default_rng(m)
        kept = rng.random((m, k // 4, 4)).argsort(-1) < 2
        a = (rng.integers(1, 5, kept.shape) * kept).reshape(m, k).astype(np.float16)
        words = np.full((-(-m // 64), -(-k // 64) * 128), -1, np.int32)
        if expands:
            half = np.zeros((m, k // 2), np.float16)
            compile_cute(compress_text(), emit="base").kernel("launch_compress")(
                a, half, words, np.zeros(1, np.int32), device="cpu"
            )
            return [half, words, np.full_like(a, np.nan), a]
        a[0, :4] = a[-1, -4:] = 1, 2, 3, 0  # groups of different blocks
        return [a, np.full((m, k // 2), np.nan, np.float16), words, np.array([5], np.int32)]

    made = {s: make(s) for s in shapes}

    def right(arrays: Sequence[np.ndarray]) -> bool:
        if expands:
            return bool((arrays[2] == made[arrays[2].shape][3]).all())
        a, half, words, wrong = arrays
        m, k = a.shape
        exact = np.pad(a, ((0, -m % 64), (0, -k % 64)))
        exact[[0, m - 1], [2, k - 2]] = 0
        reference = compress(exact, "f16")
        codes = words.view(np.uint32).reshape(-1, -(-k // 64), 4, 8, 4, 1) >> np.array([0, 16], np.uint32)
        # (block, tile, warp, row, column, half) -> (row of the matrix, 16 columns)
        codes = (codes & 0xFFFF).transpose(0, 2, 5, 3, 1, 4).reshape(reference.metadata.shape)
        is_right = (codes == reference.metadata.view(np.uint16)).all() and wrong[0] == 7
        return bool(is_right and (half == reference.kept[:m, : k // 2]).all())

    host, text = ("launch_expand", expand_text) if expands else ("launch_compress", compress_text)
    problems = [partial(lambda x: [a.copy() for a in x[: 3 if expands else 4]], x) for x in made.values()]
    return Subject(f"2:4 {'expansion' if expands else 'compression'}", text, host, problems, right)


def _merge(columns: int, *rows: int) -> Subject:
    """Merge two partial results of attention in place; some have no keys."""

    def make(count: int) -> list[np.ndarray]:
        rng = np.random.default_rng(count)
        arrays = [rng.standard_normal(x).astype(np.float32) for x in 2 * ((count, columns + 4), (count,))]
        arrays[::2] = [x[:, :columns] for x in arrays[::2]]
        for i, log in enumerate(arrays[1::2]):
            log[i::3] = -np.inf  # every third row of each result; the third row of both
            log[2::3] = -np.inf
        arrays[0][np.isneginf(arrays[1])] = arrays[2][np.isneginf(arrays[3])] = 0
        return arrays

    def right(arrays: Sequence[np.ndarray]) -> bool:
        out, lse, other, other_lse = (x.astype(np.float64) for x in make(len(arrays[0])))
        logs = np.logaddexp(lse, other_lse)
        weights = [
            np.exp(np.where(np.isneginf(logs), -np.inf, x - np.where(np.isneginf(logs), 0, logs)))
            for x in (lse, other_lse)
        ]
        exact = weights[0][:, None] * out + weights[1][:, None] * other
        return bool(np.allclose(arrays[0], exact, atol=1e-5) and np.allclose(arrays[1], logs, atol=1e-5))

    text = partial(merge_text, PartsConfig("f32", columns))
    return Subject(f"merge of {columns} columns", text, "launch_pair", [partial(make, n) for n in rows], right)


def _parts(together: bool, parts: int, *queries: int) -> Subject:
    """Combine the slices of attention with split keys, for two heads of 132 elements."""
    head = 132

    def make(count: int) -> list[np.ndarray]:
        rng = np.random.default_rng(count)
        partials = rng.standard_normal((parts, count * 2, 136)).astype(np.float32)[..., :head]
        logs = rng.standard_normal((parts, count * 2)).astype(np.float32)
        logs[:, 1::5] = logs[0, 2::5] = -np.inf
        logs[[0, -1], [3, 4]] += 200  # powers relative to the log-sum-exp of another slice would overflow
        partials[np.isneginf(logs)] = 0
        out = np.full((1, 2, count, 136), np.nan, np.float32)[..., :head]
        return [partials.T, logs.T, out.transpose(2, 3, 1, 0), np.full((1, 2, count), np.nan, np.float32).T]

    def right(arrays: Sequence[np.ndarray]) -> bool:
        partials, logs, out, lse = (x.astype(np.float64) for x in arrays)
        most = np.maximum(logs.max(1, keepdims=True), -1e30)
        total = np.exp(logs - most).sum(1, keepdims=True)
        with np.errstate(divide="ignore"):
            wanted = (most + np.log(total))[:, 0]
        weights = np.exp(logs - most) / np.where(total > 0, total, 1)
        exact = np.einsum("drp,rp->rd", partials, weights).reshape(2, -1, head)
        return bool(
            np.allclose(out[..., 0].transpose(2, 0, 1), exact, atol=1e-5)
            and np.allclose(lse[..., 0].T.ravel(), np.where(total[:, 0] > 0, wanted, -np.inf), atol=1e-5)
        )

    text = partial(combine_text, PartsConfig("f32", 160, lse=True, together=together))
    name = f"slices of attention, {'a block' if together else 'a warp'} a row"
    return Subject(name, text, "launch", [partial(make, n) for n in queries], right)


def _dispatch_count(experts: int, *pairs: int) -> Subject:
    """Count the pairs of each expert, in two rounds of 512 pairs per block."""
    rounds = 2

    def make(count: int) -> list[Any]:
        chosen = np.random.default_rng(count).integers(-1, experts + 1, count).astype(np.int32)
        return [chosen, np.full((-(-count // (rounds * PAIRS)), experts + 1), -9, np.int32), rounds]

    def right(arrays: Sequence[Any]) -> bool:
        chosen, counts, _ = arrays
        keys, wanted = np.where((chosen < 0) | (chosen >= experts), experts, chosen), np.zeros_like(counts)
        np.add.at(wanted, (np.arange(len(keys)) // (rounds * PAIRS), keys), 1)
        return bool((counts == wanted).all())

    text = partial(count_text, SortConfig("i32", experts))
    return Subject(f"counts of {experts} experts", text, "launch_count", [partial(make, n) for n in pairs], right)


def _dispatch_rows(combines: bool, *shapes: tuple[int, int]) -> Subject:
    """Copy tokens to the rows of their two experts, or sum these rows with weights; shapes are (tokens, columns)."""

    def make(shape: tuple[int, int]) -> list[np.ndarray]:
        tokens, n = shape
        rng = np.random.default_rng(tokens)
        order = _dispatch_order(rng.integers(-1, 3, (tokens, 2)), 3).reshape(tokens, 2)
        x, y = (rng.standard_normal((rows, n)).astype(np.float32) for rows in (tokens, 2 * tokens))
        if combines:
            return [y, order, rng.random((tokens, 2)).astype(np.float32), np.full_like(x, np.nan)]
        return [x, order, np.full_like(y, 7)]

    def right(arrays: Sequence[np.ndarray]) -> bool:
        order = arrays[1]
        is_there, rows = order >= 0, np.maximum(order, -1 - order)
        if combines:
            y, _, weights, out = arrays
            exact = (np.where(is_there, weights, 0)[..., None] * y[rows]).sum(1)
            return bool(np.allclose(out, exact, atol=1e-5))
        x, _, out = arrays
        wanted = np.zeros_like(out)
        wanted[rows[is_there]] = np.repeat(x[:, None], 2, 1)[is_there]
        return bool((out == wanted).all())

    config = CombineConfig("f32", 2, combines)
    text, host = (combine_rows_text, "launch_combine") if combines else (copy_text, "launch_copy")
    name = "sums of rows of experts" if combines else "copies to rows of experts"
    return Subject(name, partial(text, config), host, [partial(make, x) for x in shapes], right)


def _tma_copy() -> Subject:
    def make() -> list[np.ndarray]:
        a = _integers(np.random.default_rng(0), (72, 136), "f16")
        return [a, np.full(a.shape, np.nan, np.float16)]

    return Subject(
        "tma copy", (EXAMPLES / "tma_copy.mlir").read_text, "launch", [make], lambda x: bool((x[1] == x[0]).all())
    )


def _conv(name: str, config: DirectConfig, *extents: tuple[int, int]) -> Subject:
    """Convolve two images of each extents, with filters of (k, r, s, c)."""
    c, k, (r, s) = config.channels, config.filters, config.window.taps

    def make(shape: tuple[int, int]) -> list[np.ndarray]:
        rng = np.random.default_rng(sum(shape))
        x, f = _integers(rng, (2, *shape, c), "f16"), _integers(rng, (k, r * s, c), "f16")
        y = np.full((2, *config.window.result(shape), k), np.nan, np.float16)
        return [x.T, f.T, y.T]

    def right(arrays: Sequence[np.ndarray]) -> bool:
        x, f, y = (a.T for a in arrays)
        before, after = config.window.before, config.window.after
        image = np.pad(x.astype(np.float64), ((0, 0), *zip(before, after), (0, 0)))
        seen = np.lib.stride_tricks.sliding_window_view(image, (r, s), (1, 2))  # (N, P, Q, C, R, S)
        seen = seen[:, :: config.window.strides[0], :: config.window.strides[1]]
        return bool((np.einsum("npqcrs,krsc->npqk", seen, f.reshape(k, r, s, c).astype(np.float64)) == y).all())

    return Subject(name, lambda: direct_text(config), "launch", [partial(make, x) for x in extents], right)


SMALL = GemmConfig(tile=(64, 128, 64), stages=2, cluster_m=2, deferred=False, sms=2)
"""One cluster of two blocks computes four tiles, so that ring and staging buffers are reused."""
SM120 = Sm120Config("f16", tile=(32, 64), warps=(1, 2), stages=2)
SINGLE = SMALL._replace(cluster_m=1)
SKINNY = SkinnyConfig(columns=192, stages_a=2, stages=4)
"""A tile has three chunks, so the third one reuses a staging buffer."""
ONCE = "a block fills each of its two staging buffers once: no bulk copy has read them before"
"""Reason for subjects whose tile, or a block's part of it, has two chunks."""
SPLIT = SplitConfig(SplitConfig().base._replace(cluster_n=1, tile=(64, 256, 64), stages=2), 2)


DIRECT = DirectConfig(
    "f16", "f16", Window((3, 2), (1, 1), (1, 0)), 5, 6, vectors=(1, 1, 2), groups=1, tile=(3, 7), warps=(1, 2),
    held=False, atoms=1, rolled=True,
)  # fmt: skip


def _few_results(config: FewResultsConfig, *pixels: int) -> Subject:
    """Sum the channels of each group, for some numbers of pixels, with two blocks."""
    g, c, k = config.groups, config.depth, config.width

    def make(count: int) -> list[Any]:
        rng = np.random.default_rng(count)
        x, f = _integers(rng, (count, g * c), "f16"), _integers(rng, (g * c * k,), "f16")
        return [x.T, f, np.full((count, g * k), np.nan, np.float16).T, 2]

    def right(arrays: Sequence[Any]) -> bool:
        x, f, y = (a.astype(np.float64) for a in arrays[:3])
        exact = np.einsum("gcp,gkc->gkp", x.reshape(g, c, -1), f.reshape(g, k, c)).reshape(g * k, -1)
        return bool((y == exact).all())

    return Subject(
        "convolution of few results", lambda: few_results_text(config), "launch", [partial(make, n) for n in pixels],
        right,
    )  # fmt: skip


def _dense(*shapes: tuple[int, int]) -> Subject:
    """Copy rows of a pitch of 16 elements to rows without gaps."""

    def make(shape: tuple[int, int]) -> list[np.ndarray]:
        x = np.random.default_rng(sum(shape)).integers(0, 1 << 16, (shape[0], 16)).astype(np.uint16)
        return [x.T[: shape[1]], np.zeros(shape[0] * shape[1], np.uint16)]

    def right(arrays: Sequence[np.ndarray]) -> bool:
        return bool((arrays[1] == arrays[0].T.ravel()).all())

    return Subject("rows without gaps", dense_text, "launch_dense", [partial(make, x) for x in shapes], right)


COVERED = (
    "consumers release K of a tile, and Q of a step, after their last read of the slots for which the producer"
    " waits next: the first wait orders the loads into these slots, too (acquire patterns)"
)


def _rows_of_sums(sums: np.ndarray, c: BackwardConfig, *, by_rows: bool) -> np.ndarray:
    """Return the rows of accumulators in a workspace as (rows, heads, elements).

    Args:
        by_rows: True if the consumers split the rows of a tile, False if they split the elements of a row.
    """
    # Accumulators of a tile: consumer, register / 4, thread, register % 4.
    order = (1, 2, 4, 7, 5, 0, 3, 6, 8) if by_rows else (1, 4, 7, 5, 0, 2, 3, 6, 8)
    return sums.reshape(*sums.shape[:2], 2, -1, 4, 8, 4, 2, 2).transpose(order).reshape(-1, len(sums), c.head)


def _attention_backward(name: str, c: BackwardConfig, heads: int, queries: int, keys: int, parts: int = 1) -> Subject:
    """Main kernel of the backward of attention for one key head, with ``parts`` slices."""
    size, scale, tiles = c.head, float(np.float32(c.head**-0.5)), -(-queries // c.tile_m)
    key_tiles = -(-keys // c.tile_n)
    rng = np.random.default_rng(queries)
    q, dout = (rng.standard_normal((queries, heads, size)).astype(np.float16) for _ in range(2))
    k, v = (rng.standard_normal((keys, 1, size)).astype(np.float16) for _ in range(2))
    seen = visible(queries, keys, None, 0 if c.mask == "right" else None, 0)
    out, lse = attention_forward(q, k, v, scale, seen)
    wanted = attention_gradients(q, k, v, dout, None, scale, seen)
    stats = np.zeros((heads, tiles, 2, c.tile_m), np.float32)
    for h in range(heads):
        for at, rows, fill in ((0, lse[:, h] / np.log(2), np.inf), (1, (dout[:, h] * out[:, h]).sum(-1), 0.0)):
            whole = np.full(tiles * c.tile_m, fill)
            whole[:queries] = rows
            stats[h, :, at] = whole.reshape(tiles, c.tile_m)

    def make() -> list[Any]:
        given: dict[str, Any] = {
            x: np.array(y).transpose(0, 2, 1)[..., None] for x, y in (("q", q), ("k", k), ("v", v), ("dout", dout))
        }
        given |= {x: np.full(given[x[1:]].shape, np.nan, np.float16) for x in ("dk", "dv")}
        given |= {"kv_sum": np.zeros((2, key_tiles, c.tile_n * size), np.float32), "parts": parts}
        given |= {"stats": stats.reshape(heads, tiles, -1).copy(), "queries": queries, "keys": keys, "scale": scale}
        given |= {"dq_sum": np.zeros((heads, tiles, c.tile_m * size), np.float32), "left": 0, "right": 0}
        return [given[x] for x in backward_launches(c)[1].operands]

    def right(arrays: Sequence[Any]) -> bool:
        given = dict(zip(backward_launches(c)[1].operands, arrays))

        found = [_rows_of_sums(given["dq_sum"], c, by_rows=c.dq_by_rows)[:queries] * scale]
        if c.split:
            both = _rows_of_sums(given["kv_sum"], c, by_rows=not c.splits_head)[:keys]
            found += [both[:, :1] * scale, both[:, 1:]]
        else:
            found += [given[x][..., 0].transpose(0, 2, 1) for x in ("dk", "dv")]
        return all(
            [bool(np.abs(x.astype(np.float64) - y).max() <= 2e-3 * np.abs(y).max()) for x, y in zip(found, wanted)]
        )

    return Subject(name, lambda: backward_text(c), "launch", [make], right, covered=COVERED)


def _latent_attention(name: str, c: LatentConfig, heads: int, *lengths: int) -> Subject:
    """Latent attention of one query per sequence, on pages; rows past the end of a sequence are NaN."""
    rng, page, scale = np.random.default_rng(heads), c.page, 0.05
    q = rng.standard_normal((len(lengths), 1, heads, 576)).astype(DTYPES[c.element])
    most = -(-max(lengths) // page)
    cache = np.full((len(lengths) * most, page, 1, 576), np.nan, q.dtype)
    table = rng.permutation(len(cache)).reshape(len(lengths), most).astype(np.int32)
    used, wanted = np.array(lengths, np.int32), []
    for b, length in enumerate(lengths):
        rows = rng.standard_normal((length, 576)).astype(q.dtype)
        for i in range(0, length, page):
            cache[table[b, i // page], : length - i, 0] = rows[i : i + page]
        scores = q[b, 0].astype(np.float64) @ rows.astype(np.float64).T * scale
        powers = np.exp(scores - scores.max(1, keepdims=True))
        wanted.append(powers @ rows[:, :512].astype(np.float64) / powers.sum(1, keepdims=True))

    def make() -> list[Any]:
        out = np.full((len(lengths), 1, heads, 512), np.nan, q.dtype)
        views = [x.copy().transpose(1, 3, 2, 0) for x in (q, cache, out)]
        return [*views, scale / np.log(2), used.copy(), table.T.copy(order="F")]

    def right(arrays: Sequence[Any]) -> bool:
        found = arrays[2].transpose(3, 0, 2, 1)[:, 0].astype(np.float64)
        return bool(np.abs(found - np.array(wanted)).max() <= 4e-3)

    passed = (
        "the other consumer has waited for this part before the named barrier, which passes on what it has learnt"
        " (synchronizes-with, causality order)"
    )
    read = (
        "the MMAs that read the previous queries have completed for the whole warpgroup (wgmma.commit_group) before a"
        " consumer passes its probabilities, for which the other one waits before its tile ends (bar)"
    )
    long = (lambda: _latent_attention(name, c, heads, 258 * c.tile_n).problems[0]()) if c.gathers else None
    return Subject(name, lambda: latent_text(c), "launch", [make], right, passed=passed, read=read, long=long)


def _attention_of_bytes(name: str, c: AttentionConfig, *lengths: tuple[int, int]) -> Subject:
    """Attention of 8-bit floats with scores that are integers: rounded probabilities are powers of two.

    Args:
        lengths: Queries and keys of each sequence. Those of packed sequences are followed by keys of NaN.
    """
    rng, kind = np.random.default_rng(1), DTYPES[c.element]
    rows = np.cumsum([(0, 0), *lengths], 0).astype(np.int32)
    q, k, v = (np.zeros((n, c.head), np.float64) for n in (rows[-1, 0], rows[-1, 1] + 40, rows[-1, 1] + 40))
    for x in q:
        x[rng.permutation(c.head)[:4]] = rng.choice((-1, 1), 4)
    k[:], v[:] = rng.integers(-1, 2, k.shape), rng.integers(-3, 4, v.shape)
    exact = np.zeros_like(q)
    for (a, b), (m, n) in zip(rows, lengths):
        seen = visible(m, n, None, 0 if c.mask == "right" else None, n - m if c.from_end else 0)
        weights = np.where(seen, np.exp2(q[a : a + m] @ k[b : b + n].T), 0)
        exact[a : a + m] = weights @ v[b : b + n] / np.maximum(weights.sum(1, keepdims=True), 1e-9)
    k[rows[-1, 1] :] = v[rows[-1, 1] :] = np.nan
    if not c.packed:
        k, v = k[: rows[-1, 1]], v[: rows[-1, 1]]

    def make() -> list[Any]:
        arrays = [x.astype(kind)[..., None, None] for x in (q, k, v)]
        arrays.append(np.full(arrays[0].shape, np.nan, np.float32))
        begins = [rows[:, 0].copy(), rows[:, 1].copy()] if c.packed else []
        return [*arrays, *begins, int(max(m for m, _ in lengths)), 1.0, 0, 0]

    def right(arrays: Sequence[Any]) -> bool:
        return bool(np.abs(arrays[3][..., 0, 0] - exact).max() <= 1e-5)

    covered = (
        "the first keys of a tile wait for keys of the tile before, which consumers read after they have released the"
        " queries of the tile before that: the first wait orders their load, too (acquire patterns)"
    )
    return Subject(name, lambda: attention_text(c), "launch", [make], right, covered=covered)


def _functions() -> ScoreGraph:
    """Return a bias that depends on the distance of query and key, and a mask of documents."""
    make = Builder()
    slope, document = (make.array(Input("captured", element)) for element in ("f32", "i32"))
    away = make.call("abs", make.call("subtract", make.place("row"), make.place("column")))
    score = make.call("add", make.accum(), make.call("multiply", make.element(slope, make.place("head")), away))
    visible = make.call("equal", *[make.element(document, make.place(x)) for x in ("row", "column")])
    return ScoreGraph(make.graph([Output(score), Output(visible)]), ("score", "visible"))


SLOPE = np.array([-0.125, 0.0625, 0.25], np.float32)
DOCUMENT = np.repeat([0, 1, 0, 2], [150, 50, 56, 200]).astype(np.int32)
"""Documents of :func:`_functions`. With blocks of 128, one is full, and others are partial or hidden."""


def _block_lists(seen: np.ndarray, m: int, n: int) -> list[np.ndarray]:
    """Return the lists of blocks of ``n`` keys that each block of ``m`` queries sees: partial ones, then full ones.

    Args:
        seen: (heads, queries, keys)
    """
    heads, *sizes = seen.shape
    blocks = [-(-x // size) for x, size in zip(sizes, (m, n))]
    pairs = np.zeros((heads, blocks[0] * m, blocks[1] * n), bool)
    pairs[:, : sizes[0], : sizes[1]] = seen
    pairs = pairs.reshape(heads, blocks[0], m, blocks[1], n)
    full, lists = pairs.all((2, 4)), list[np.ndarray]()
    for listed in (pairs.any((2, 4)) & ~full, full):
        order = np.argsort(~listed, 2, kind="stable").astype(np.int32)
        lists += [listed.sum(2, dtype=np.int32).T[..., None], np.array(order.T, order="F")[..., None]]
    return lists


def attention_subject(
    name: str, c: AttentionConfig, queries: int, keys: int, *, heads: int = 1, parts: int = 1,
    sequences: Sequence[tuple[int, int, int]] = (),
) -> Subject:  # fmt: skip
    """Attention of one key head in 16 bits, with the operands that the configuration has.

    Args:
        sequences: Queries, end of the keys, and first key of each sequence. Keys outside are NaN.
    """
    rng, (left, right), chunk = np.random.default_rng(queries), (90, 0 if c.mask == "right" else 20), 70
    sequences = sequences or ((queries, keys, 0),)
    count, state, dropped = len(sequences), np.array([7, 1], np.int64), 0.25
    q = rng.standard_normal((count, heads, queries, c.head)).astype(np.float16)
    k, v = (rng.standard_normal((count, 1, keys, c.head)).astype(np.float16) for _ in range(2))
    scale = float(np.float32(c.head**-0.5))
    exact, logs = np.full(q.shape, np.nan), np.full(q.shape[:3], np.nan)
    seen = np.ones((queries, keys), bool)
    for b, (m, end, first) in enumerate(sequences):
        k[b, :, :first] = v[b, :, :first] = k[b, :, end:] = v[b, :, end:] = np.nan
        n = end - first
        row, column = np.arange(m)[:, None], np.arange(n)
        shift = n - m if c.from_end else 0
        seen = visible(m, n, left if c.bounded[0] else None, right if c.bounded[1] else None, shift)
        if c.chunked:
            seen &= (row + shift) // chunk == column // chunk
        if c.has_mask:
            seen &= DOCUMENT[:m, None] == DOCUMENT[:n]
        scores = q[b, :, :m].astype(np.float64) @ k[b, :, first:end].astype(np.float64).swapaxes(1, 2) * scale
        if c.has_score:
            scores += SLOPE[:heads, None, None] * np.abs(row - column)
        scores = np.where(seen, scores, -np.inf)
        powers = np.exp(scores - np.maximum(scores.max(-1, keepdims=True), -1e30))
        total = powers.sum(-1, keepdims=True)
        with np.errstate(divide="ignore"):
            logs[b, :, :m] = np.log(total)[..., 0] + scores.max(-1)
        if c.dropout:
            powers = powers * kept_of_arrays(state, dropped, (1, heads, m, n))[0] / kept_share(dropped)
        exact[b, :, :m] = powers @ v[b, :, first:end].astype(np.float64) / np.where(total > 0, total, 1)
    tables = list[np.ndarray]()
    if c.page:
        most = -(-keys // c.page)
        order = rng.permutation(count * most).astype(np.int32)
        pages = np.full((2, count * most, 1, c.page, c.head), np.nan, np.float16)
        for b in range(count):
            for i in range(most):
                rows = slice(i * c.page, (i + 1) * c.page)
                for page, x in zip(pages, (k, v)):
                    page[order[b * most + i], :, : len(x[b, 0, rows])] = x[b, :, rows]
        (k, v), tables = pages, [order.reshape(count, most).T]

    def make() -> list[Any]:
        arrays = [np.array(x).transpose(2, 3, 1, 0) for x in (q, k, v)]
        out = np.full((parts * count, *q.shape[1:]), np.nan, np.float32 if c.split else np.float16)
        arrays.append(out.transpose(2, 3, 1, 0))
        if c.lse:
            arrays.append(np.full(out.shape[:3], np.nan, np.float32).transpose(2, 1, 0))
        arguments: list[Any] = [*arrays, queries, scale * (1 if c.has_score else 1 / np.log(2)), left, right]
        arguments += [parts] * c.split
        lengths = np.array(sequences, np.int32).T.copy()
        arguments += [lengths[1], 0] if c.used else []
        arguments += [lengths[0]] * c.used_q + [lengths[2]] * c.padded + [chunk] * c.chunked
        arguments += [x.copy("K") for x in tables]
        arguments += [SLOPE[:heads].copy(), DOCUMENT.copy()] if c.functions else []
        arguments += _block_lists(seen[None].repeat(heads, 0), c.block_m, c.block_n) if c.block_n else []
        return arguments + ([state.copy(), threshold_of(dropped), kept_share(dropped)] if c.dropout else [])

    def right_result(arrays: Sequence[Any]) -> bool:
        found = arrays[3].astype(np.float64).transpose(3, 2, 0, 1).reshape(parts, *q.shape)
        lse = arrays[4].astype(np.float64).transpose(2, 1, 0).reshape(parts, *q.shape[:3]) if c.lse else logs[None]
        total = lse[0] if parts == 1 else np.logaddexp.reduce(lse, 0)
        weights = np.exp(lse - np.where(np.isneginf(total), 0, total)) if parts > 1 else np.ones_like(lse)
        out = (found * weights[..., None]).sum(0)
        return bool(
            np.allclose(out, exact, rtol=0, atol=4e-3, equal_nan=True)
            and np.allclose(total, logs, atol=1e-3, equal_nan=True)
        )

    begin = (
        "consumers release the queries of a tile, and the values of a step, after they have read the keys of the steps"
        " before: waits for these order the first loads of a tile, too (acquire patterns); a load that is not ordered"
        " is reported"
    )
    return Subject(name, lambda: attention_text(c), "launch", [make], right_result, begin=begin)


PLAIN = AttentionConfig("f16", 64, tile_m=128, tile_n=64, stages=2, q_stages=2, sms=1)
"""One block computes several tiles of queries, with more steps of keys than there are stages."""
FUNCTIONS = PLAIN._replace(tile_m=64, q_stages=1, functions=_functions())
GATHERED = PLAIN._replace(tile_m=64, q_stages=1, page=2, pack=True, used=True, mask="right", from_end=True)


def _attention_backward_of_functions(
    name: str, c: BackwardConfig, queries: int, keys: int, parts: int = 1, heads: int = 1
) -> Subject:
    """Main kernel of the backward of attention with functions of scores.

    Args:
        heads: Number of heads, each with its own keys. The first of several does not see the last block of keys. The
            second of three sees no keys, so that a block can take several tiles without steps one after the other.
    """
    assert c.functions is not None and (heads == 1 or (c.block_n and not c.split))
    size, scale, tiles = c.head, float(np.float32(c.head**-0.5)), -(-queries // c.tile_m)
    rng = np.random.default_rng(queries)
    q, dout = (rng.standard_normal((heads, queries, size)).astype(np.float16) for _ in range(2))
    k, v = (rng.standard_normal((heads, keys, size)).astype(np.float16) for _ in range(2))
    seen = np.repeat(DOCUMENT[None, :queries, None] == DOCUMENT[:keys], heads, 0)
    if heads > 1:
        seen[0, :, (keys - 1) // c.block_n * c.block_n :] = False
        seen[1 : heads - 1] = False
    away = np.abs(np.arange(queries)[:, None] - np.arange(keys))
    q64, k64, v64, dout64 = (x.astype(np.float64) for x in (q, k, v, dout))
    scores = np.where(seen, q64 @ k64.swapaxes(1, 2) * scale + SLOPE[:heads, None, None] * away, -np.inf)
    most = np.maximum(scores.max(2), -1e30)
    powers = np.exp(scores - most[..., None])
    total = powers.sum(2)
    powers /= np.where(total > 0, total, 1)[..., None]
    delta = (dout64 * (powers @ v64)).sum(2)
    slopes = powers * (dout64 @ v64.swapaxes(1, 2) - delta[..., None])
    dq, dk, dv = slopes @ k64 * scale, slopes.swapaxes(1, 2) @ q64 * scale, powers.swapaxes(1, 2) @ dout64
    wanted = dq, dk, dv, (slopes * away).sum((1, 2))
    stats = np.zeros((heads, tiles, 2 + len(c.query_reads), c.tile_m), np.float32)
    with np.errstate(divide="ignore"):
        logs = np.where(total > 0, (most + np.log(total)) / np.log(2), np.inf)
    for at in range(2, 2 + len(c.query_reads)):  # documents of the queries
        stats[:, :, at] = np.resize(DOCUMENT, tiles * c.tile_m).reshape(tiles, c.tile_m).view(np.float32)
    for at, rows, fill in ((0, logs, np.inf), (1, delta, 0.0)):
        whole = np.full((heads, tiles * c.tile_m), fill)
        whole[:, :queries] = rows
        stats[:, :, at] = whole.reshape(heads, tiles, c.tile_m)
    words = stats[:, :, 2:].view(np.int32)
    flags = (words == words[..., :1]).all(2).reshape(heads, tiles, -1, 32).all(3).astype(np.int32).view(np.float32)
    flags = np.pad(flags, [(0, 0), (0, 0), (0, 4 - flags.shape[2])]) if c.has_row_flags else flags[..., :0]
    stats = np.concatenate([stats.reshape(heads, tiles, -1), flags], 2)

    def make() -> list[Any]:
        given: dict[str, Any] = {
            x: np.array(y).transpose(1, 2, 0)[..., None] for x, y in (("q", q), ("k", k), ("v", v), ("dout", dout))
        }
        given |= {x: np.full_like(given[x[1:]], np.nan) for x in ("dk", "dv")}
        given |= {"kv_sum": np.zeros((2, -(-keys // c.tile_n), c.tile_n * size), np.float32), "parts": parts}
        given |= {"stats": stats.copy(), "queries": queries, "keys": keys, "scale": scale}
        given |= {"dq_sum": np.zeros((heads, tiles, c.tile_m * size), np.float32), "left": 0, "right": 0}
        given |= {"captured 0": SLOPE[:heads].copy(), "captured 1": DOCUMENT.copy()}
        given["sums 0"] = np.zeros(heads, np.float32)
        if c.dynamic:
            given["taken"] = np.zeros(1, np.int32)
        if c.deterministic:
            given["turns"] = np.zeros((heads, tiles, c.consumers), np.int32)
        if c.block_n:
            for x, lists in (
                ("q", _block_lists(seen.swapaxes(1, 2), c.block_n, c.block_m)),
                ("kv", _block_lists(seen, c.block_m, c.block_n)),
            ):
                names = f"{x}_num_blocks", f"{x}_indices", f"full_{x}_num_blocks", f"full_{x}_indices"
                given |= dict(zip(names, lists))
        return [given[x] for x in backward_launches(c)[1].operands]

    def right(arrays: Sequence[Any]) -> bool:
        given = dict(zip(backward_launches(c)[1].operands, arrays))

        found = [_rows_of_sums(given["dq_sum"], c, by_rows=c.dq_by_rows)[:queries].swapaxes(0, 1) * scale]
        if c.split:
            both = _rows_of_sums(given["kv_sum"], c, by_rows=not c.splits_head)[:keys].swapaxes(0, 1)
            found += [both[:1] * scale, both[1:]]
        else:
            found += [given[x][..., 0].transpose(2, 0, 1) for x in ("dk", "dv")]
        found.append(given["sums 0"])
        return all(
            [bool(np.abs(x.astype(np.float64) - y).max() <= 3e-3 * np.abs(y).max()) for x, y in zip(found, wanted)]
        )

    return Subject(name, lambda: backward_text(c), "launch", [make], right, covered=COVERED)


def _with_small(subject: Subject, small: Subject) -> Subject:
    """Return a subject with one more problem, whose queries have another shape."""
    shape = small.problems[0]()[0].shape

    def right(arrays: Sequence[Any]) -> bool:
        return (small if arrays[0].shape == shape else subject).right(arrays)

    return replace(subject, problems=[*subject.problems, *small.problems], right=right)


BYTES = AttentionConfig("f8E4M3FN", 64, packed=True, output="f32", tile_n=96, q_stages=2, sms=1)
"""One block computes two tiles in three steps of keys, and a tile in one step. Each warp has a piece to transpose."""


def _mixed(name: str, c: MixedConfig, *shapes: tuple[int, int, int]) -> Subject:
    """D = X W^T of small integers and scales that are powers of 2, whose sums are exact."""

    def make(shape: tuple[int, int, int]) -> list[Any]:
        m, n, k = shape
        is_float = c.weight == "f8E4M3FN"
        size = -(-n // 64) * 64, -(-k // 128) * 128
        w = weights(*size, 8 if is_float else 4, c.group, c.scale, zeros=c.zeros, is_float=is_float)
        if is_float:
            w.q[:] = np.random.default_rng(n).integers(-4, 5, size).astype(ml_dtypes.float8_e4m3fn).view(np.uint8)
        rng = np.random.default_rng(k)
        w = w._replace(scales=(2.0 ** rng.integers(-1, 2, w.scales.shape)).astype(w.scales.dtype))
        x = _integers(rng, (m, k), c.element)
        exact = x.astype(np.float64) @ w.exact()[:n, :k].T
        output = TYPES[c.output]
        return [x, packed(w, c.scale), np.full((m, n), np.nan, output), exact.astype(output)]

    made = {shape: make(shape) for shape in shapes}

    def right(arrays: Sequence[Any]) -> bool:
        exact = next(x[3] for x in made.values() if x[3].shape == arrays[2].shape and np.array_equal(x[0], arrays[0]))
        return bool((arrays[2] == exact).all())

    problems = [partial(lambda x: [a.copy() for a in x[:3]], x) for x in made.values()]
    return Subject(name, lambda: mixed_input_text(c), "launch", problems, right)


def _sparse(name: str, c: GemmConfig, *shapes: tuple[int, int, int]) -> Subject:
    """C = A B^T of small integers with a 2:4 sparse A; shapes are (M, N, K)."""

    def make(shape: tuple[int, int, int]) -> list[Any]:
        m, n, k = shape
        rng = np.random.default_rng(m + n + k)
        kept = rng.random((m, k // 4, 4)).argsort(-1) < 2
        a = (rng.integers(-2, 3, kept.shape) * kept).reshape(m, k).astype(np.float16)
        kept, words = np.zeros((m, k // 2), np.float16), np.zeros((-(-m // 64), -(-k // 128) * 256), np.int32)
        compress = compile_cute(compress_text(), emit="base").kernel("launch_compress")
        compress(a, kept, words, np.zeros(1, np.int32), device="cpu")
        exact = _integers(rng, (n, k), "f16")
        return [kept, exact, np.full((n, m), np.nan, np.float16).T, words, a]

    made = {s: make(s) for s in shapes}

    def right(arrays: Sequence[np.ndarray]) -> bool:
        _, b, c = arrays[:3]
        a = made[c.shape[0], c.shape[1], b.shape[1]][4]
        return bool((c == a.astype(np.float64) @ b.T.astype(np.float64)).all())

    def fresh(s: tuple[int, int, int]) -> list[Any]:
        kept, b, c, words, _ = made[s]
        return [kept.copy(), b.copy(), np.full(c.shape[::-1], np.nan, np.float16).T, words.copy()]

    text = partial(sparse_gemm_text, SparseConfig(c))
    return Subject(name, text, "launch", [partial(fresh, s) for s in shapes], right)


SPARSE = GemmConfig(tile=(64, 32, 64), stages=2, major_c="m", cluster_m=1, deferred=False, sms=1)


MIXED = MixedConfig(rows=64, stages=2, output="f32", zeros=True)


def _block_counts(queries: int, keys: int) -> Subject:
    """Visible pairs in the blocks of a causal mask."""
    make = Builder()
    visible = make.call("greater_equal", make.place("row"), make.place("column"))
    functions = ScoreGraph(make.graph([Output(visible)]), ("visible",))
    shape = (-(-keys // 64), -(-queries // 64), 1, 1)
    pairs = np.zeros((shape[1] * 64, shape[0] * 64), np.int32)
    pairs[:queries, :keys] = np.tri(queries, keys, dtype=np.int32)
    wanted = pairs.reshape(shape[1], 64, shape[0], 64).sum((1, 3))

    def arguments() -> list[Any]:
        return [np.full(shape, -1, np.int32, order="F"), queries, keys, 64, 64]

    def right(arrays: Sequence[Any]) -> bool:
        return bool(np.array_equal(arrays[0][:, :, 0, 0].T, wanted))

    return Subject("block counts", lambda: block_counts_text(functions), "launch", [arguments], right)


BACKWARD = default_backward_config("f16", 64, "right")._replace(ahead=1, sms=1)
"""One block computes a pair of key tiles, with more steps than stages."""
SLOPED = with_slopes(_functions(), (0,))
OF_FUNCTIONS = BackwardConfig("f16", 64, functions=SLOPED, sms=2)
"""The backward of :func:`_functions` with the gradient of the slope, to which two blocks add."""
LATENT = LatentConfig("f16", used=True, page=64, sms=1)
"""One block computes the tiles of three sequences, of two, five and one steps.

The first one ends within a tile, so that the barrier of its loads is used before any proxy fence of a consumer. So does
the second one, whose loads must wait for consumers. It uses both slots repeatedly, and only its waits for slot 1 order
the loads of slot 1. The last one ends with a tile.
"""
HALVES = default_backward_config("f16", 192, "right")._replace(sms=1)


def _partials(m: int, n: int, parts: int) -> Callable[[], list[np.ndarray]]:
    return lambda: [np.full(parts * m * n, np.nan, np.float32), np.zeros(2, np.int32)]


def subjects() -> list[Subject]:
    """Return every family of shipped kernels, including each variant with its own synchronization."""
    return [
        _add(),
        _transpose("f32", (61, 75), (64, 64), (128, 97), (65, 96), (68, 100), (132, 96)),
        _transpose("f16", (72, 136), (128, 128), (136, 104)),
        _narrow(3, 1, True, 1051, 965),
        _narrow(4, 8, False, 520),
        _packed("softmax", 3, 1051, 965),
        _packed("sum", 6, 301, 69),
        _packed_norm(21, 97, 22),
        _unaligned((33, 37), (41, 70)),
        _route(),
        _dispatch_sort(40, True, 900, 2 * PAIRS),
        _dispatch_sort(40, False, 2 * PAIRS + 1, 4 * PAIRS),
        _combine_gradient(36, 256, 13),
        _sample(1300),
        _sample_of_candidates(1300),
        _topk(1301, 2048, 7),
        _adamw(4),
        _adamw(1),
        _links(300),
        _gather(11, (50, 44), (64, 48)),
        _embedding_gradient(11, (50, 44), (40, 48)),
        _zeros((50, 44), (64, 48)),
        _compression(False, (70, 80), (64, 128)),
        _compression(True, (70, 80), (64, 128)),
        _merge(132, 11, 16),
        _merge(60, 9),
        _parts(False, 3, 11, 8),
        _parts(True, 35, 3),
        _dispatch_count(40, 2 * PAIRS + 1, 4 * PAIRS),
        _dispatch_rows(False, (50, 42), (64, 32)),
        _dispatch_rows(True, (50, 42), (64, 32)),
        _sparse("sparse GEMM", SPARSE, (72, 40, 272)),
        _sparse("sparse GEMM, B shared", SPARSE._replace(cluster_m=2, sms=2), (136, 40, 400)),
        _topk(600, 32, 9),
        _norm_quantize(2, 500),
        _norm_quantize(2, 501),
        _tma_copy(),
        *[_sgemm(r, (70, 66, 33), (64, 65, 32)) for r in ("naive", "coalesced", "smem")],
        _sgemm("tile1d", (66, 70, 17), (64, 64, 16)),
        *[_sgemm(r, (132, 132, 40), (128, 128, 24)) for r in ("tile2d", "vector", "warptile")],
        _sgemm(
            "pipelined",
            (128, 128, 40),
            (132, 132, 72),
            ahead="the last read of a step is of the next stage, which is not the one that is filled after the barrier",
        ),
        _rows("row sum, a warp a row", "sum", "f32", (5, 200)),
        _rows("row mean, a block a row", "mean", "f32", (3, 1000)),
        _streamed("statistics", 40),
        _streamed("statistics", 41),
        _streamed("elements", 40),
        _streamed("elements", 41),
        _rows("softmax, a block a row", "softmax", "f32", (3, 1000)),
        _rows("softmax, a cluster a row", "softmax", "f16", (3, 2048), RowConfig(128, 1, cluster=2)),
        _rows("RMSNorm in shared memory", "rmsnorm", "f16", (5, 1024), RowConfig(128, shared=1)),
        _rows(
            "LayerNorm, two rows at once",
            "layernorm",
            "f32",
            (5, 1024),
            RowConfig(128, 2, shared=1, groups=1, together=2),
        ),
        _mixed("GEMM, packed weights", MIXED, (3, 60, 392)),
        _mixed("GEMM, packed weights, groups of 32", MIXED._replace(group=32, zeros=False), (3, 64, 520)),
        _mixed("GEMM, packed weights, one scale per row", MIXED._replace(group=0), (3, 64, 520)),
        _mixed("GEMM, packed weights, scaled", MIXED._replace(group=64, scaled=True), (3, 60, 392)),
        _mixed(
            "GEMM, packed weights, scaled, staged",
            MIXED._replace(
                rows=128, columns=16, group=32, scale="f32", zeros=False, scaled=True, output="f16", staged=True
            ),
            (13, 120, 520),
        ),
        _mixed("GEMM, packed weights, split-K", MIXED._replace(parts=2, live=5), (5, 64, 1288)),
        _mixed(
            "GEMM, packed weights, e4m3",
            MIXED._replace(weight="f8E4M3FN", group=32, scale="f32", zeros=False),
            (3, 60, 392),
        ),
        _mixed(
            "GEMM, packed weights, e4m3, scaled",
            MIXED._replace(weight="f8E4M3FN", group=32, scale="f32", zeros=False, scaled=True),
            (3, 64, 392),
        ),
        _conv("direct convolution, a loop over filter rows", DIRECT, (7, 6), (6, 14)),
        _dense((37, 13), (256, 16), (163, 9)),
        _few_results(FewResultsConfig("f16", "f16", 2, 67, 3, vector=2, pixels=2), 37, 32),
        _attention_backward("attention backward", BACKWARD, 1, 270, 200),
        _attention_of_bytes("attention of 8-bit floats", BYTES, (150, 200), (10, 30)),
        _latent_attention("latent attention", LATENT, 16, 100, 292, 64),
        _latent_attention("latent attention, rows copied by threads", LATENT._replace(page=2), 16, 100, 320),
        _block_counts(150, 90),
        attention_subject("attention, causal", PLAIN._replace(mask="right", lse=True), 300, 200, heads=2),
        attention_subject("attention with dropout", PLAIN._replace(tile_m=64, dropout=True), 100, 150),
        attention_subject(
            "attention, chunks of padded sequences",
            PLAIN._replace(mask="both", chunked=True, used=True, used_q=True, padded=True, from_end=True),
            150,
            200,
            sequences=((150, 200, 9), (40, 130, 70)),
        ),
        attention_subject(
            "attention, rows of pages copied by threads",
            GATHERED,
            40,
            150,
            heads=2,
            sequences=((40, 149, 0), (40, 70, 0)),
        ),
        *[
            _with_small(attention_subject(f"attention with functions{name}", c, *shape, parts=parts), small)
            for name, c, shape, parts in (
                ("", FUNCTIONS, (100, 300), 1),
                (", slices", FUNCTIONS._replace(split=True, lse=True), (100, 400), 2),
                (", a block mask", FUNCTIONS._replace(block_m=128, block_n=128), (270, 200), 1),
            )
            for small in (attention_subject("", c, 128, 128, parts=parts),)
        ],
        *[
            _with_small(_attention_backward_of_functions(f"attention backward with functions{name}", c, *shape), small)
            for name, c, shape in (
                ("", OF_FUNCTIONS, (270, 300)),
                (", slices", OF_FUNCTIONS._replace(split=True), (270, 300, 2)),
                (
                    ", a block mask",
                    OF_FUNCTIONS._replace(block_m=128, block_n=128, dynamic=True, sms=1),
                    (270, 300, 1, 3),
                ),
                (
                    ", small blocks",
                    OF_FUNCTIONS._replace(tile_n=64, halves=True, block_m=64, block_n=64),
                    (270, 200, 1, 2),
                ),
            )
            for small in (_attention_backward_of_functions("", c, 128, 128, *shape[2:]),)
        ],
        _attention_backward("attention backward, slices", BACKWARD._replace(split=True), 1, 270, 200, 2),
        _attention_backward("attention backward, halves", HALVES, 1, 130, 100),
        _gemm("GEMM sm_80", lambda: ampere_gemm_text(AmpereConfig()), (136, 136, 200), (128, 128, 64)),
        _gemm("GEMM sm_120", lambda: sm120_gemm_text(SM120), (40, 72, 264), (32, 64, 64)),
        _gemm("GEMM sm_90", lambda: gemm_text(SMALL), (256, 256, 320)),
        _gemm("GEMM sm_90, one block", lambda: gemm_text(SINGLE), (100, 200, 200)),
        _gemm("GEMM sm_90, deferred", lambda: gemm_text(SINGLE._replace(deferred=True, sms=1)), (192, 256, 136)),
        _gemm(
            "GEMM sm_90, ping-pong",
            lambda: gemm_text(SINGLE._replace(schedule="pingpong", tile=(64, 128, 64), stages=3)),
            (192, 256, 200),
        ),
        _gemm("GEMM sm_90, few rows", lambda: few_rows_text(SKINNY), (100, 264, 344)),
        _gemm(
            "GEMM sm_90, few rows, parts",
            lambda: few_rows_text(SKINNY._replace(columns=128, parts=2)),
            (100, 136, 1000),
            once=ONCE,
        ),
        _gemm(
            "GEMM sm_90, K shared by blocks",
            lambda: gemm_text(SPLIT),
            (64, 256, 640),
            more=_partials(64, 256, 2),
            once=ONCE,
        ),
    ]
