"""Attention on caches: lengths in use, pages, few queries, and slices of the keys, compared with float64."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from cute_dialect import op
from cute_dialect.kernels.attention.config import AttentionConfig
from cute_dialect.kernels.attention.forward import attention_text
from cute_dialect.op.problems.attention import check_pages
from cute_dialect.runtime.arrays import view_of

CHECKS = ("race", "uninit", "sync", "oob")


def cache(lengths: list[int], page: int, heads: int, size: int, seed: int = 0) -> tuple[Any, Any, Any, list[Any]]:
    """Return pages of keys and values, the page table, and the keys and values of each sequence.

    Pages are in random order.  Elements past the end of a sequence are NaN, and table entries are -1.
    """
    rng = np.random.default_rng(seed)
    most = -(-max(lengths) // page)
    keys, values = (np.full((len(lengths) * most + 1, page, heads, size), np.nan, np.float16) for _ in range(2))
    table, order = np.full((len(lengths), most), -1, np.int32), rng.permutation(len(keys))
    sequences, n = [], 0
    for b, length in enumerate(lengths):
        k, v = (rng.standard_normal((length, heads, size)).astype(np.float16) for _ in range(2))
        sequences.append((k, v))
        for j in range(0, length, page):
            table[b, j // page] = at = order[n]
            n += 1
            keys[at, : length - j], values[at, : length - j] = k[j : j + page], v[j : j + page]
    return keys, values, table, sequences


def reference(
    q: Any, k: Any, v: Any, left: int | None = None, causal: bool | str = False, chunk: int = 0
) -> tuple[Any, Any]:
    """Return the result and the logsumexp of (S, H, D); the last query is aligned with the last key.

    With ``causal="top_left"`` the first query is aligned with the first key.
    """
    share = q.shape[1] // k.shape[1]
    a, b, c = (np.repeat(x.astype(np.float64), n, 1).swapaxes(0, 1) for x, n in ((q, 1), (k, share), (v, share)))
    scores = a @ b.swapaxes(1, 2) * q.shape[-1] ** -0.5
    own, at = np.arange(len(q))[:, None], np.arange(len(k))[None]
    own = own if causal == "top_left" else own + len(k) - len(q)
    hidden = (at > own) & bool(causal)
    if chunk:
        hidden |= at // chunk != own // chunk
    if left is not None:
        hidden |= at < own - left
    scores = np.where(hidden, -np.inf, scores)
    most = scores.max(-1, keepdims=True, initial=-1e30)
    powers = np.exp(scores - most)
    total = powers.sum(-1, keepdims=True)
    with np.errstate(divide="ignore"):
        logs = np.where(total > 0, most + np.log(total), -np.inf)
    return (powers @ c / np.where(total > 0, total, 1)).swapaxes(0, 1), logs[..., 0]


def check(result: Any, logs: Any, q: Any, sequences: list[Any], **given: Any) -> None:
    """Compare (B, S, H, D) and (B, H, S) with the reference."""
    for b, (k, v) in enumerate(sequences):
        want, want_logs = reference(q[b], k, v, **given)
        assert (np.abs(result[b] - want) <= 2.0**-10 * (np.abs(want) + 0.5)).all()
        same = logs[b] == want_logs
        assert (same | (np.abs(logs[b] - np.where(same, 0, want_logs)) < 1e-5)).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "queries", "share", "split"),
    [
        (16, 5, 4, 3), (64, 1, 3, 1), (8, 16, 8, 1), (128, 3, 1, 2), (256, 2, 4, 1), (1, 2, 4, 2), (1, 1, 4, 1),
        (12, 70, 1, 1),
    ],
)  # fmt: skip
def test_pages(page: int, queries: int, share: int, split: int) -> None:
    """Heads that share keys are rows of one tile; a sequence is empty, and NaN follows the others."""
    keys, values, table, sequences = cache([150, 0, 33], page, 2, 64)
    q = np.random.default_rng(9).standard_normal((3, queries, 2 * share, 64)).astype(np.float16)
    used = np.array([150, 0, 33], np.int32)
    given: dict[str, Any] = {"causal": "bottom_right", "window": (100, None), "layout": "bshd", "lse": True}
    result, logs = op.attention(
        q, keys, values, seqused_k=used, page_table=table, split_keys=split, device="cpu", checks=CHECKS, **given
    )
    check(result, logs, q, sequences, left=100, causal=True)


@pytest.mark.slow
@pytest.mark.parametrize("split", [1, 2])
def test_packed_queries_on_pages(split: int) -> None:
    """Queries of several lengths are packed, as for a batch of prompts and generated tokens."""
    keys, values, table, sequences = cache([40, 70, 20], 16, 1, 64)
    lengths = [1, 7, 20]
    begins = np.cumsum([0, *lengths]).astype(np.int32)
    q = np.random.default_rng(9).standard_normal((28, 4, 64)).astype(np.float16)
    result, logs = op.attention(
        q, keys, values, cu_seqlens_q=begins, max_seqlen_q=20, seqused_k=np.array([40, 70, 20], np.int32),
        page_table=table, causal="bottom_right", layout="bshd", lse=True, split_keys=split, device="cpu", checks=CHECKS,
    )  # fmt: skip
    for (i, j), one in zip(pairwise(begins), sequences):
        check(result[None, i:j], logs[None, :, i:j], q[None, i:j], [one], causal=True)


@pytest.mark.slow
@pytest.mark.parametrize("split", [1, 3])
def test_lengths_in_use(split: int) -> None:
    rng = np.random.default_rng(4)
    q, k, v = (rng.standard_normal((2, s, h, 64)).astype(np.float16) for s, h in ((9, 4), (80, 2), (80, 2)))
    lengths = [80, 13]
    sequences = [(k[b, :n].copy(), v[b, :n].copy()) for b, n in enumerate(lengths)]
    k[1, 13:] = v[1, 13:] = np.nan
    given: dict[str, Any] = {"seqused_k": np.array(lengths, np.int32), "layout": "bshd", "lse": True}
    result, logs = op.attention(q, k, v, **given, split_keys=split, device="cpu", checks=CHECKS)
    check(result, logs, q, sequences)
    # An offset array for both sides, with slices of the keys.
    begins, flat = np.array([0, 80, 93], np.int32), [np.concatenate([s[i] for s in sequences]) for i in range(2)]
    of_queries = np.array([0, 9, 18], np.int32)
    result, logs = op.attention(
        q.reshape(18, 4, 64), *flat, cu_seqlens_q=of_queries, cu_seqlens_k=begins, max_seqlen_q=9, lse=True,
        split_keys=split, device="cpu", checks=CHECKS,
    )  # fmt: skip
    check(result.reshape(q.shape), logs.reshape(4, 2, 9).swapaxes(0, 1), q, sequences)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("queries", "sizes", "page", "split", "tiles"),
    [
        pytest.param(1, (32, 32), 16, 2, "32-full", id="1 query"),
        pytest.param(3, (24, 24), 10, None, "32-right", id="rows of pages"),
        pytest.param(150, (32, 32), 0, None, "32-right", id="150 queries"),
        pytest.param(70, (32, 64), 0, None, "32-right", id="longer values"),
        pytest.param(70, (96, 16), 0, None, "96-right", id="shorter values"),
    ],
)
def test_heads_of_32(queries: int, sizes: tuple[int, int], page: int, split: int | None, tiles: str) -> None:
    rng, used = np.random.default_rng(7), np.array([150, 33], np.int32)
    keys, values, table, sequences = cache([150, 33], page or 160, 2, max(sizes))
    keys, values = keys[..., : sizes[0]].copy(), values[..., : sizes[1]].copy()
    sequences = [(k[..., : sizes[0]], v[..., : sizes[1]]) for k, v in sequences]
    q = rng.standard_normal((2, queries, 4, sizes[0])).astype(np.float16)
    given: dict[str, Any] = {"seqused_k": used, "causal": "bottom_right", "layout": "bshd", "split_keys": split}
    if page:
        given["page_table"] = table
    else:
        keys, values = (x[table[:, 0]] for x in (keys, values))
    assert op.explain(op.attention, q, keys, values, **given).kernel.startswith(f"attention-f16-{tiles}")
    result, logs = op.attention(q, keys, values, **given, lse=True, device="cpu", checks=CHECKS)
    check(result, logs, q, sequences, causal=True)


def test_explained_shapes_and_arrays() -> None:
    """Lengths are shapes, and the page table is an array."""
    given: dict[str, Any] = {"seqused_k": (2,), "page_table": TABLE, "layout": "bshd"}
    assert op.explain(op.attention, Q, K, K, **given).config.page == 16


@pytest.mark.slow
def test_sinks_of_packed_sequences() -> None:
    """A sink is a key of the first slice only."""
    rng, begins = np.random.default_rng(4), np.array([0, 9, 18, 20], np.int32)
    q, k, v = (rng.standard_normal((20, 2, 64)).astype(np.float16) for _ in range(3))
    sinks = np.array([1, 2], np.float32)
    result, logs = op.attention(
        q, k, v, cu_seqlens_q=begins, cu_seqlens_k=begins, max_seqlen_q=9, sinks=sinks, lse=True, split_keys=3,
        kernel=AttentionConfig(tile_m=64, tile_n=16), device="cpu",
    )  # fmt: skip
    for i, j in pairwise(begins):
        want, log = reference(q[i:j], k[i:j], v[i:j])
        total = np.logaddexp(log, sinks[:, None])
        assert (np.abs(result[i:j] - want * np.exp(log - total).T[..., None]) < 1e-3).all()
        assert (np.abs(logs[:, i:j] - total) < 1e-5).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("queries", "keys", "heads", "causal", "given", "split"),
    [
        pytest.param(5, 150, (8, 2), "bottom_right", {"chunk": 40, "used": [140, 4, 33], "grown": 3}, 2,
                     id="5 queries in chunks"),
        pytest.param(1, 150, (8, 2), "bottom_right", {"used": [140, 0, 33], "grown": 3}, 2, id="1 query"),
        pytest.param(150, 150, (2, 1), "top_left", {"chunk": 48}, None, id="150 queries in chunks"),
        pytest.param(150, 100, (2, 1), "bottom_right", {"chunk": 33, "left": 20}, None, id="queries before all keys"),
        pytest.param(
            200, 300, (2, 2), "bottom_right", {"pad": [0, 280, 77], "queries": [3, 200, 130]}, None, id="padding",
        ),
        pytest.param(
            9, 300, (4, 2), "bottom_right", {"pad": [0, 90, 77], "used": [200, 80, 300], "queries": [3, 0, 9]}, 3,
            id="padding and 9 queries",
        ),
    ],
)  # fmt: skip
def test_parts_of_sequences(
    queries: int, keys: int, heads: tuple[int, int], causal: str, given: dict[str, Any], split: int | None
) -> None:
    """Numbers of queries and keys, keys to skip, and chunks; NaN is before and after the keys and the queries."""
    rng, arrays = np.random.default_rng(6), dict[str, Any]()
    q, k, v = (
        rng.standard_normal((3, s, h, 64)).astype(np.float16)
        for s, h in ((queries, heads[0]), (keys, heads[1]), (keys, heads[1]))
    )
    ends = [n + given.get("grown", 0) for n in given.get("used", [keys] * 3)]
    first, rows, sequences = given.get("pad", [0] * 3), given.get("queries", [queries] * 3), list[Any]()
    for b, (i, j, n) in enumerate(zip(first, ends, rows)):
        sequences.append([x.copy() for x in (q[b, :n], k[b, i:j], v[b, i:j])])
        q[b, n:] = np.nan
        for x in (k, v):
            x[b, :i] = x[b, j:] = np.nan
    for name, key in (("seqused_k", "used"), ("leftpad_k", "pad"), ("seqused_q", "queries")):
        arrays |= {name: np.array(given[key], np.int32)} if key in given else {}
    window = (given["left"], None) if "left" in given else None
    result, logs = op.attention(
        q, k, v, **arrays, seqused_k_offset=given.get("grown", 0), attention_chunk=given.get("chunk", 0), causal=causal,
        window=window, lse=True, layout="bshd", split_keys=split, device="cpu", checks=CHECKS,
    )  # fmt: skip
    how = {"causal": causal, "chunk": given.get("chunk", 0), "left": given.get("left")}
    for b, (x, *one) in enumerate(sequences):
        check(result[None, b, : len(x)], logs[None, b, :, : len(x)], x[None], [one], **how)


@pytest.mark.slow
@pytest.mark.parametrize("page", [0, 2], ids=["TMA", "gathered"])
def test_packed_queries_have_no_barriers(page: int) -> None:
    """Consumers load packed queries, so that only the slots of keys and values have barriers, two each."""
    c = AttentionConfig(tile_m=64, q_stages=1, pack=True, used=page > 0, page=page)
    text = str(attention_text(c))
    assert len(re.findall(r"arch\.mbarrier_init\(", text)) == 2 * 2 * c.stages


def test_few_queries_are_packed() -> None:
    found = op.explain(op.attention, (16, 32, 4, 128), (16, 4, 8192, 128), element="bf16", causal="bottom_right")
    assert found.config.pack and found.config.tile_m == 64 and found.tiles == 16 * 4
    assert not op.explain(op.attention, (1, 32, 128, 128), (1, 4, 128, 128)).config.pack
    paged = op.explain(
        op.attention, (8, 1, 32, 128), (100, 64, 8, 128), page_table=(8, 40), seqused_k=(8,), layout="bshd"
    )
    with pytest.raises(ValueError, match="page=12 with tile_n=128 needs pack=True"):
        paged.config._replace(page=12, pack=False).check()
    ignored: dict[str, Any] = {"deterministic": True, "max_seqlen_k": 9}
    assert op.explain(op.attention, (1, 4, 9, 64), (1, 4, 9, 64), **ignored).kernel.endswith("64x128-q1")
    for page, queries, tile in ((1, 1, (64, 4)), (4, 1, (64, 4)), (1, 4, (128, 3)), (24, 1, (128, 3))):
        pages = -(-16384 // page)
        one = op.explain(
            op.attention, (16, queries, 32, 128), (pages * 16, page, 8, 128), page_table=(16, pages), seqused_k=(16,),
            layout="bshd", causal="bottom_right",
        )  # fmt: skip
        assert one.config.gathers and (one.config.tile_n, one.config.stages) == tile
    assert paged.config.page == 64 and paged.form.keys == 2560 and paged.way.parts > 1


Q, K = np.zeros((2, 1, 4, 64), np.float16), np.zeros((6, 16, 2, 64), np.float16)
TABLE, USED = np.zeros((2, 3), np.int32), np.array([48, 3], np.int32)


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"page_table": TABLE.astype(np.int64)}, op.DtypeError, "page_table has dtype i64; pass an i32 array"),
        ({"page_table": TABLE + 6}, op.ShapeError, r"page_table\[0, 0\] is 6; pass pages from 0 to 5"),
        ({"page_table": TABLE[:1]}, op.ShapeError, r"pass an array of shape \(2, pages\)"),
        ({"k": K[:, :0], "v": K[:, :0]}, op.ShapeError, "k has pages of 0 keys; pass pages of 1 or more"),
        ({"k": K[0], "v": K[0]}, op.ShapeError, r"of rank 4, \(pages, page size, H, D\)"),
        ({"seqused_k": USED.astype(np.int64)}, op.DtypeError, "seqused_k has dtype i64; pass an i32 array"),
        ({"seqused_k": USED[:1]}, op.ShapeError, r"pass one length per sequence, \(2,\)"),
        ({"seqused_k": USED[::-1]}, op.LayoutError, "pass a contiguous array"),
        ({"seqused_k": USED + 1}, op.ShapeError, "seqused_k has a length of 49; pass lengths from 0 to 48"),
        (
            {"cu_seqlens_k": USED},
            op.UnsupportedError,
            "cu_seqlens_k cannot be combined with page_table",
        ),
        ({"block_table": TABLE}, op.ArgumentError, "'block_table'; use page_table"),
        ({"seqused_k_offset": 1}, op.ShapeError, "seqused_k has a length of 48; pass lengths from 0 to 47"),
        ({"seqused_k_offset": -1}, op.UnsupportedError, "seqused_k_offset is -1; pass an int of 0 or more"),
        ({"seqused_k": None, "seqused_k_offset": 1}, op.UnsupportedError, "is 1, but there is no seqused_k; omit"),
        ({"attention_chunk": 2.5}, op.UnsupportedError, "attention_chunk is 2.5; pass an int of 0 or more"),
        ({"seqused_q": USED}, op.ShapeError, "seqused_q has a length of 48; pass lengths from 0 to 1"),
        ({"leftpad_k": USED}, op.UnsupportedError, "leftpad_k cannot be combined with page_table; omit one"),
    ],
)
def test_errors(given: dict[str, Any], error: type[op.OpError], words: str) -> None:
    arguments: dict[str, Any] = {"q": Q, "k": K, "v": K, "page_table": TABLE, "seqused_k": USED, "layout": "bshd"}
    with pytest.raises(error, match=words):
        op.attention(**(arguments | given), device="cpu")


def test_entries_past_the_last_key_are_not_checked() -> None:
    check_pages("attention", view_of(np.array([[0, 1, 9], [5, -1, -1]], np.int32)), 6, [range(2), range(1)])


def test_caches_have_no_gradients() -> None:
    torch = pytest.importorskip("torch")
    q, k = torch.zeros(2, 1, 4, 64, dtype=torch.float16, requires_grad=True), torch.zeros(2, 16, 4, 64).half()
    with pytest.raises(op.UnsupportedError, match="seqused_k is not supported with gradients; use"):
        op.attention(q, k, k, seqused_k=torch.tensor([1, 1], dtype=torch.int32), layout="bshd", device="cpu")
