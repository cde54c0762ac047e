"""Multi-head latent attention on the interpreter, compared with float64: caches, pages, lengths and slices of keys."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from cute_dialect import op
from cute_dialect.kernels.attention.latent import latent_text
from cute_dialect.kernels.attention.latent_config import LatentConfig, default_latent_config, latent_config_named
from cute_dialect.pipelines import compile

CHECKS = ("race", "uninit", "sync", "oob")
SCALE = 192**-0.5


def cache(lengths: list[int], page: int, dtype: Any = np.float16) -> tuple[Any, Any, list[Any]]:
    """Return a cache of pages in random order, its table, and the rows of each sequence.

    Rows past the end of a sequence are NaN, and table entries are -1.  Without pages there is no table.
    """
    rng = np.random.default_rng([len(lengths), page])
    rows = [rng.standard_normal((length, 576)).astype(dtype) for length in lengths]
    if not page:
        found = np.full((len(lengths), max(lengths) + 3, 576), np.nan, dtype)
        for b, length in enumerate(lengths):
            found[b, :length] = rows[b]
        return found, None, rows
    most = -(-max(lengths) // page)
    found, n = np.full((len(lengths) * most + 1, page, 576), np.nan, dtype), 0
    table, order = np.full((len(lengths), most), -1, np.int32), rng.permutation(len(found))
    for b, length in enumerate(lengths):
        for j in range(0, length, page):
            table[b, j // page] = at = order[n]
            found[at, : length - j] = rows[b][j : j + page]
            n += 1
    return found, table, rows


def reference(q: Any, rows: Any, scale: float, causal: bool) -> tuple[Any, Any]:
    """Return the result and the logsumexp of (S, H, 576); the last query is aligned with the last key."""
    k = rows.astype(np.float64)
    scores = np.einsum("shd,kd->hsk", q.astype(np.float64), k) * scale
    own = np.arange(len(q))[:, None] + len(k) - len(q)
    scores = np.where((np.arange(len(k))[None] > own) & causal, -np.inf, scores)
    most = scores.max(-1, keepdims=True, initial=-1e30)
    powers = np.exp(scores - most)
    total = powers.sum(-1, keepdims=True)
    with np.errstate(divide="ignore"):
        logs = np.where(total > 0, most + np.log(total), -np.inf)
    return (powers @ k[:, :512] / np.where(total > 0, total, 1)).swapaxes(0, 1), logs[..., 0]


def check(result: Any, logs: Any, q: Any, rows: list[Any], scale: float, causal: bool = False) -> None:
    """Compare (B, S, H, 512) and (B, H, S) with the reference."""
    unit = 2.0**-10 if result.dtype == np.float16 else 2.0**-7
    assert np.isfinite(result.astype(np.float32)).all()
    for b, one in enumerate(rows):
        want, want_logs = reference(q[b], one, scale, causal)
        assert (np.abs(result[b] - want) <= unit * (np.abs(want) + 0.5)).all()
        same = logs[b] == want_logs
        assert (same | (np.abs(logs[b] - np.where(same, 0, want_logs)) < 1e-6 * (10 + np.abs(want_logs)))).all()


@pytest.mark.end_to_end  # The kernels of attention and of the combination are compiled and run.
@pytest.mark.sample("64-1-16-2-random")
@pytest.mark.parametrize(
    ("page", "queries", "heads", "split", "schedule"),
    [
        (0, 1, 64, 1, "adversarial"), (0, 2, 40, 3, "reverse"), (64, 1, 16, 2, "random"), (16, 2, 16, 1, "adversarial"),
        (128, 3, 24, 2, "forward"), (1, 2, 16, 2, "random"), (12, 1, 70, 1, "reverse"), (8, 5, 16, 1, "random"),
    ],
)  # fmt: skip
def test_caches(page: int, queries: int, heads: int, split: int, schedule: str) -> None:
    """A sequence is empty, and NaN follows the others."""
    lengths = [70, 0] if (page, heads) == (64, 16) else [150, 0, 64, 3]
    values, table, rows = cache(lengths, page)
    q = np.random.default_rng(9).standard_normal((len(lengths), queries, heads, 576)).astype(np.float16)
    options: dict[str, Any] = {"schedule": schedule} if schedule != "forward" else {}
    result, logs = op.mla_decode(
        q, values, page_table=table, seqused_k=np.array(lengths, np.int32), causal=True, scale=SCALE, lse=True,
        split_keys=split, kernel=None if split > 1 else LatentConfig(sms=2), device="cpu", checks=CHECKS, **options,
    )  # fmt: skip
    check(result, logs, q, rows, SCALE, causal=True)


@pytest.mark.end_to_end
@pytest.mark.slow
@pytest.mark.parametrize("keys", [1, 64, 65, 129, 320])
def test_dense_caches(keys: int) -> None:
    """Numbers of steps are even and odd; a block has several tiles, so that slots are used again."""
    rng = np.random.default_rng(keys)
    q = rng.standard_normal((1, 3, 40, 576)).astype(ml_dtypes.bfloat16)
    rows = rng.standard_normal((1, keys, 576)).astype(ml_dtypes.bfloat16)
    out = np.full((1, 3, 40, 512), np.nan, ml_dtypes.bfloat16)
    result, logs = op.mla_decode(
        q, rows[:, :, None], lse=True, out=out, kernel=LatentConfig(sms=1), device="cpu", checks=CHECKS,
        schedule="adversarial",
    )  # fmt: skip
    assert result is out
    check(result, logs, q, list(rows), 576**-0.5)


@pytest.mark.slow
def test_large_scores_rescale_the_accumulator() -> None:
    """Maxima grow in each step, in steps of both consumers."""
    rng = np.random.default_rng(5)
    q = np.abs(rng.standard_normal((1, 1, 64, 576))).astype(np.float16)
    rows = rng.standard_normal((1, 260, 576)).astype(np.float16)
    rows[0, ::-1, :100] += np.linspace(0, 8, 260, dtype=np.float16)[:, None]  # steps go from the last key to the first
    result, logs = op.mla_decode(q, rows, scale=0.1, lse=True, split_keys=1, device="cpu", checks=CHECKS)
    check(result, logs, q, list(rows), 0.1)


def test_empty_caches() -> None:
    q = np.ones((2, 1, 16, 576), np.float16)
    result, logs = op.mla_decode(q, np.ones((2, 0, 576), np.float16), lse=True, device="cpu")
    assert not result.any() and (logs == -np.inf).all()
    assert op.mla_decode(q[:, :0], np.ones((2, 5, 576), np.float16), device="cpu").shape == (2, 0, 16, 512)


def test_explanation_has_both_bounds() -> None:
    few = op.explain(op.mla_decode, (64, 1, 16, 576), (64, 4096, 576), element="bf16")
    many = op.explain(op.mla_decode, (64, 1, 128, 576), (9000, 64, 576), page_table=(64, 128), max_seqlen_k=4096)
    assert few.bound == few.memory_bound > few.compute_bound and few.way.parts == 2
    assert many.bound == many.compute_bound > many.memory_bound and many.way.parts == 1
    assert many.flops == 2 * 64 * 128 * 4096 * 1088 and many.bytes == 2 * 64 * (4096 * 576 + 128 * 1088)
    assert "of 64 keys, loaded by TMA" in str(many) and "73.8 us" in str(many) and "(66.6 us)" in str(many)
    with pytest.raises(op.ArgumentError, match="mla_decode is not explained with out; omit it"):
        op.explain(op.mla_decode, (1, 1, 16, 576), (1, 64, 576), (1, 1, 16, 512))
    paged = op.explain(op.mla_decode, (1, 2, 16, 576), (9, 1, 1, 576), page_table=(1, 300), causal=True)
    assert "copied by cp.async" in str(paged) and paged.kernel == "mla-f16-576-right-lse-split-64x64-page1"


Q, CACHE = np.zeros((2, 1, 16, 576), np.float16), np.zeros((6, 16, 576), np.float16)
TABLE, USED = np.zeros((2, 3), np.int32), np.array([48, 3], np.int32)


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"q": Q[..., :512].copy()}, op.ShapeError, r"pass an array of shape \(B, S, H, 576\)"),
        ({"cache": CACHE[..., :512].copy()}, op.ShapeError, "cache has rows of 512 columns; pass rows of 576"),
        ({"cache": np.zeros((6, 16, 2, 576), np.float16)}, op.ShapeError, r"\(pages, page size, 1, 576\)"),
        ({"page_table": None}, op.ShapeError, "cache has 6 sequences, but q has 2"),
        ({"cache": np.zeros((6, 16, 580), np.float16)[..., :576]}, op.LayoutError, "pass contiguous rows"),
        ({"page_table": TABLE.astype(np.int64)}, op.DtypeError, "mla_decode: page_table has dtype i64"),
        ({"page_table": TABLE + 6}, op.ShapeError, r"page_table\[0, 0\] is 6; pass pages from 0 to 5"),
        ({"seqused_k": USED + 1}, op.ShapeError, "mla_decode: seqused_k has a length of 49"),
        ({"scale": 0}, op.UnsupportedError, "scale is 0; pass a finite int or float above 0"),
        ({"causal": "top_left"}, op.UnsupportedError, "causal is 'top_left'; use True or False"),
        ({"max_seqlen_k": 1.5}, op.ShapeError, "max_seqlen_k is 1.5; pass an integer"),
        ({"split_keys": 0}, op.UnsupportedError, "split_keys is 0; pass an int of 1 or more"),
        ({"kernel": "mla-bf16-576-full-64x64"}, op.UnsupportedError, 'use "mla-f16-576-full-used-64x64-page16"'),
        ({"kernel": 3}, op.UnsupportedError, "pass a kernel name or a LatentConfig"),
        ({"out": np.zeros((2, 1, 16, 576), np.float16)}, op.ShapeError, "out has shape"),
        ({"block_table": TABLE}, op.ArgumentError, "'block_table'; use page_table"),
        ({"k_cache": CACHE}, op.ArgumentError, "'k_cache'; use cache"),
        ({"q": Q.astype(np.float32)}, op.DtypeError, "q has dtype f32"),
    ],
)
def test_errors(given: dict[str, Any], error: type[op.OpError], words: str) -> None:
    arguments: dict[str, Any] = {"q": Q, "cache": CACHE, "page_table": TABLE, "seqused_k": USED}
    with pytest.raises(error, match=words):
        op.mla_decode(**(arguments | given), device="cpu")


def test_functions_of_flash_mla() -> None:
    """No sequence has keys, so that only the arguments are tested."""
    torch = pytest.importorskip("torch")
    from cute_dialect.flash_mla import flash_mla_with_kvcache, get_mla_metadata

    q, pages = torch.zeros(2, 1, 16, 576).half(), torch.zeros(3, 64, 1, 576).half()
    table, used = torch.zeros(2, 0, dtype=torch.int32), torch.zeros(2, dtype=torch.int32)
    metadata, splits = get_mla_metadata(used, 16, 1)
    out, lse = flash_mla_with_kvcache(q, pages, table, used, 512, metadata, splits, causal=True)
    assert out.shape == (2, 1, 16, 512) and not out.any() and (lse == -torch.inf).all()
    with pytest.raises(op.UnsupportedError, match="head_dim_v is 576; pass 512"):
        flash_mla_with_kvcache(q, pages, table, used, 576)
    with pytest.raises(op.UnsupportedError, match="indices is not supported; omit it"):
        flash_mla_with_kvcache(q, pages, table, used, 512, indices=table)
    with pytest.raises(op.UnsupportedError, match="attn_sink is not supported; omit it"):
        flash_mla_with_kvcache(q, pages, table, used, 512, attn_sink=q)
    with pytest.raises(op.ArgumentError, match="has no argument 'block_tables'; did you mean 'block_table'"):
        flash_mla_with_kvcache(q, pages, table, used, 512, attn_sink=None, block_tables=table)
    with pytest.raises(op.DtypeError, match="flash_mla_with_kvcache: q is of type ndarray; pass a torch tensor"):
        flash_mla_with_kvcache(q.numpy(), pages, table, used, 512)
    with pytest.raises(op.ShapeError, match=r"^flash_mla_with_kvcache: cache_seqlens has a length of 5"):
        flash_mla_with_kvcache(q, pages, table, used + 5, 512)
    with pytest.raises(
        op.ShapeError, match=r"^flash_mla_with_kvcache: block_table\[0, 0\] is 3; pass pages from 0 to 2"
    ):
        flash_mla_with_kvcache(q, pages, torch.full((2, 1), 3, dtype=torch.int32), used + 5, 512)
    with pytest.raises(op.UnsupportedError, match=r"^flash_mla_with_kvcache: softmax_scale is 0.0"):
        flash_mla_with_kvcache(q, pages, table, used, 512, softmax_scale=0.0)
    with pytest.raises(op.ShapeError, match=r"^flash_mla_with_kvcache: k_cache has rows of 64 columns"):
        flash_mla_with_kvcache(q, pages[..., :64], table, used, 512)


@pytest.mark.slow
def test_flash_mla_passes_its_arguments() -> None:
    torch = pytest.importorskip("torch")
    from cute_dialect.flash_mla import flash_mla_with_kvcache

    pages, table, rows = cache([70, 20], 64)
    q = torch.randn(2, 2, 16, 576, generator=torch.Generator().manual_seed(1)).half()
    used = torch.tensor([70, 20], dtype=torch.int32)
    arrays = torch.from_numpy(pages)[:, :, None], torch.from_numpy(table)
    out, lse = flash_mla_with_kvcache(q, *arrays, used, 512, softmax_scale=SCALE, causal=True)
    check(out.numpy(), lse.numpy(), q.numpy(), rows, SCALE, causal=True)


def test_there_are_no_gradients() -> None:
    torch = pytest.importorskip("torch")
    q = torch.zeros(2, 1, 16, 576, dtype=torch.float16, requires_grad=True)
    with pytest.raises(op.UnsupportedError, match="mla_decode: results have no gradients"):
        op.mla_decode(q, torch.zeros(2, 16, 576).half(), device="cpu")


@pytest.mark.slow
def test_torch_compiles_calls() -> None:
    """The operator computes the values, and its results have the strides that torch.compile expects."""
    torch = pytest.importorskip("torch")
    q, rows = torch.randn(1, 2, 16, 576).half(), torch.randn(1, 70, 576).half()
    used = torch.tensor([66], dtype=torch.int32)

    def call(q: Any, rows: Any) -> Any:
        return op.mla_decode(q, rows, seqused_k=used, causal=True, lse=True, device="cpu")

    result, logs = torch.compile(call, fullgraph=True, backend="eager")(q, rows)
    check(result.numpy(), logs.numpy(), q.numpy(), [rows[0, :66].numpy()], 576**-0.5, causal=True)
    view = q.transpose(1, 2).contiguous().transpose(1, 2)
    for x in (q, view):
        torch.library.opcheck(
            torch.ops.cute.mla_decode, (x, rows, None, used, None, True, None, True),
            test_utils=("test_schema", "test_faketensor"),
        )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    "config",
    [LatentConfig(), LatentConfig(mask="right", lse=True, split=True, used=True, page=64), LatentConfig(page=1)],
)
def test_wgmma_is_not_serialized(config: LatentConfig) -> None:
    report = compile(latent_text(config), filename=f"{config.name}.mlir").report
    assert "C75" not in report, report


def test_names_of_configurations() -> None:
    default = default_latent_config()
    changed: list[tuple[str, Any]] = [
        ("element", "f16"), ("mask", "right"), ("lse", True), ("split", True), ("used", True), ("page", 64),
        ("lazy", False), ("sms", 1),
    ]  # fmt: skip
    others = [default._replace(**{field: value}) for field, value in changed]
    assert len({c.name for c in (default, *others)}) == 1 + len(others)
    assert all([latent_config_named(c.name) == c for c in others])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"element": "f32"}, "use 'bf16' or 'f16'"), ({"head": 512}, "head is 512; use 576"),
        ({"mask": "left"}, "use 'full' or 'right'"), ({"tile_n": 128}, "the tile is 64x128; use 64x64"),
        ({"split": True}, "split=True needs lse=True"), ({"sms": 0}, "use 0 or more, and 1 or more"),
    ],
)  # fmt: skip
def test_configurations_that_no_kernel_supports(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LatentConfig()._replace(**fields).check()
