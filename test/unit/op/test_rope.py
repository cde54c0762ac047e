"""``op.rope`` and ``op.append_kv`` on the interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cute_dialect import op

F16 = np.float16


def normal(*shape: int, seed: int = 0, dtype: Any = F16) -> Any:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(dtype)


COS, SIN = normal(40, 16, seed=7, dtype=np.float32), normal(40, 16, seed=8, dtype=np.float32)


def reference(x: Any, positions: Any, interleaved: bool = False) -> Any:
    """Return the embedding of (B, S, H, D) at positions (B, S)."""
    y = x.astype(np.float64)
    a, b = (slice(0, 32, 2), slice(1, 32, 2)) if interleaved else (slice(0, 16), slice(16, 32))
    c, s = COS[positions][:, :, None], SIN[positions][:, :, None]
    first, second = y[..., a] * c - y[..., b] * s, y[..., a] * s + y[..., b] * c
    y[..., a], y[..., b] = first, second
    return y


@pytest.mark.sample("True")
@pytest.mark.parametrize("interleaved", [False, True])
def test_a_pair_in_place(interleaved: bool) -> None:
    q, k = normal(2, 5, 4, 64), normal(2, 5, 2, 40, seed=1)
    want = [reference(x, np.array([[3], [20]]) + np.arange(5), interleaved) for x in (q, k)]
    offsets = np.array([3, 20], np.int32)
    found = op.rope(
        (q, k), COS, SIN, offsets=offsets, interleaved=interleaved, layout="bshd", out=(q, k), device="cpu",
        checks="all",
    )  # fmt: skip
    assert found[0] is q and found[1] is k
    for x, y in zip(found, want):
        np.testing.assert_allclose(x, y, rtol=0, atol=6e-3)


@pytest.mark.slow
def test_positions_and_gradients() -> None:
    torch = pytest.importorskip("torch")
    positions = np.array([[5, 0, 39, 7], [1, 2, 3, 4]], np.int32)
    x = normal(2, 3, 4, 32)
    want = reference(x.swapaxes(1, 2), positions).swapaxes(1, 2)
    np.testing.assert_allclose(op.rope(x, COS, SIN, positions=positions, device="cpu"), want, rtol=0, atol=6e-3)
    flat = op.rope(x[0].swapaxes(0, 1).copy(), COS, SIN, positions=positions[0], device="cpu")
    np.testing.assert_allclose(flat.swapaxes(0, 1), want[0], rtol=0, atol=6e-3)
    given = torch.tensor(x).requires_grad_()
    tables = [torch.tensor(t) for t in (COS, SIN, positions)]
    out = op.rope(given, *tables[:2], positions=tables[2], device="cpu")
    grad = torch.tensor(normal(2, 3, 4, 32, seed=3))
    (found,) = torch.autograd.grad(out, given, grad)
    c, s = (torch.tensor(t[positions])[:, None] for t in (COS, SIN))
    a, b = grad.float().split(16, -1)
    torch.testing.assert_close(found.float(), torch.cat([a * c + b * s, b * c - a * s], -1), rtol=0, atol=6e-3)


@pytest.mark.slow
def test_a_pair_with_gradients_and_a_compiled_call() -> None:
    torch = pytest.importorskip("torch")
    q, k, cache = (torch.from_numpy(normal(1, 1, n, 16, seed=n)) for n in (2, 3, 8))
    angles, used = (torch.full((4, 8), 0.6), torch.full((4, 8), 0.8)), torch.tensor([1], dtype=torch.int32)
    leaves = q[:, :, :1].requires_grad_(), k[:, :, :1]
    found = op.rope(leaves, *angles, device="cpu")
    wanted = [op.rope(x.detach(), *angles, device="cpu") for x in leaves]
    assert all(torch.equal(x, y) for x, y in zip(found, wanted)) and found[0].requires_grad

    @torch.compile(fullgraph=True, backend="eager")
    def append(k_cache: Any, v_cache: Any, k: Any) -> Any:
        op.append_kv(k_cache, v_cache, k, k, used, device="cpu")
        return k_cache + 0

    caches = cache, cache.clone()
    assert torch.equal(append(*caches, k)[:, :, 1:4], k) and torch.equal(caches[1][:, :, 1:4], k)


def test_out_with_gradients() -> None:
    torch = pytest.importorskip("torch")
    x, table = torch.zeros(1, 1, 2, 16).half().requires_grad_(), torch.zeros(2, 8)
    with pytest.raises(op.UnsupportedError, match="rope: out is not supported with gradients or"):
        op.rope(x, table, table, out=torch.zeros_like(x), device="cpu")
    with pytest.raises(op.UnsupportedError, match="rope: cos and sin have no gradients"):
        op.rope(x.detach(), table.requires_grad_(), table, device="cpu")


@pytest.mark.sample("8")
@pytest.mark.parametrize("page", [8, None])
def test_append(page: int | None) -> None:
    """New rows are written behind those in use, on their pages; other rows do not change."""
    k, v = normal(2, 5, 3, 64), normal(2, 5, 3, 24, seed=1)
    used = np.array([3, 14], np.int32)
    shape = (9, page) if page else (2, 24)
    caches = [np.full((*shape, 3, x.shape[-1]), 9, F16) for x in (k, v)]
    table = np.array([[4, 2, -1], [7, 0, 3]], np.int32) if page else None
    op.append_kv(*caches, k, v, used, page_table=table, cos=COS, sin=SIN, layout="bshd", device="cpu", checks="all")
    positions = used[:, None] + np.arange(5)
    for cache, want in zip(caches, (reference(k, positions), v)):
        for b in range(2):
            for i, p in enumerate(positions[b]):
                row = cache[b, p] if table is None or page is None else cache[table[b, p // page], p % page]
                np.testing.assert_allclose(row, want[b, i], rtol=0, atol=6e-3)
                row[:] = 9
        assert (cache == 9).all()


@pytest.mark.slow
def test_append_without_rotation() -> None:
    k, caches = normal(1, 2, 3, 16), [np.zeros((1, 2, 8, 16), F16) for _ in range(2)]
    op.append_kv(*caches, k, k, np.array([4], np.int32), device="cpu")
    assert (caches[0][:, :, 4:7] == k).all() and (caches[1][:, :, :4] == 0).all()


WIDE = np.zeros((2, 3, 16, 33), F16)[..., :32]
OTHER = np.zeros((2, 3, 16, 32), F16)
X, USED, CACHE = np.zeros((2, 3, 4, 32), F16), np.zeros(2, np.int32), np.zeros((2, 3, 16, 32), F16)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda: op.rope((X, X, X), COS, SIN, device="cpu"),
            op.ShapeError,
            "x is a tuple of length 3; pass an array, or",
        ),
        (
            lambda: op.rope([X], COS, SIN, device="cpu"),
            op.ShapeError,
            "x is a list of length 1; pass an array, or a pair",
        ),
        (lambda: op.rope((X, X), COS, SIN, out=X, device="cpu"), op.ShapeError, "but out is not; pass a pair as out"),
        (lambda: op.rope(X[0, 0], COS, SIN, device="cpu"), op.ShapeError, "pass an array of rank 4, or"),
        (lambda: op.rope(X[..., :12], COS, SIN, device="cpu"), op.UnsupportedError, "x has head size 12; pass a"),
        (lambda: op.rope(X, COS, SIN[1:], device="cpu"), op.ShapeError, r"pass two of \(P, R / 2\)"),
        (lambda: op.rope(X, COS[:, :9], SIN[:, :9], device="cpu"), op.ShapeError, "cos has 9 columns; pass a multiple"),
        (lambda: op.rope(X[..., :24], COS, SIN, device="cpu"), op.ShapeError, "up to half the head size 24"),
        (lambda: op.rope(X, COS, SIN.astype(F16), device="cpu"), op.DtypeError, "pass two of f32 or f16"),
        (lambda: op.rope((X, X[:, :, 1:]), COS, SIN, device="cpu"), op.ShapeError, "pass equal numbers"),
        (lambda: op.rope(X, COS, SIN, positions=USED, device="cpu"), op.ShapeError, r"array of \(4,\) or \(2, 4\)"),
        (lambda: op.rope(X, COS, SIN, positions=USED.astype(np.int64), device="cpu"), op.DtypeError, "pass an i32"),
        (lambda: op.rope(X, COS, SIN, offsets=USED[:1], device="cpu"), op.ShapeError, "one number per sequence"),
        (lambda: op.rope(X, COS, SIN, positions=USED, offsets=USED, device="cpu"), op.UnsupportedError, "one of them"),
        (lambda: op.rope(X, COS, SIN, layout="sbhd", device="cpu"), op.LayoutError, "layout is 'sbhd'; use"),
        (lambda: op.rope(X, COS, SIN, out=normal(2, 3, 4, 33)[..., :32], device="cpu"), op.LayoutError, "out has"),
        (
            lambda: op.rope(X, COS, SIN, offsets=USED.astype(np.int64), device="cpu"),
            op.DtypeError,
            "offsets has dtype i64",
        ),
        (
            lambda: op.rope(X, COS[:3], SIN[:3], device="cpu"),
            op.ShapeError,
            "cos has 3 rows, none for position 3; pass",
        ),
        (lambda: op.rope(X, COS, SIN, offsets=USED + 37, device="cpu"), op.ShapeError, "none for position 40"),
        (
            lambda: op.rope(X, COS, SIN, positions=np.full((1, 4), -1, np.int32), device="cpu"),
            op.ShapeError,
            "none for position -1",
        ),
        (
            lambda: op.append_kv(CACHE, OTHER, X, X, USED + 13, device="cpu"),
            op.ShapeError,
            "a length of 13, and k has 4",
        ),
        (lambda: op.append_kv(CACHE, OTHER, X, X, USED - 1, device="cpu"), op.ShapeError, "a length of -1"),
        (
            lambda: op.append_kv(CACHE, OTHER, X, X, USED, cos=COS[:3], sin=SIN[:3], device="cpu"),
            op.ShapeError,
            "for po",
        ),
        (
            lambda: op.append_kv(CACHE, OTHER, X, X, USED, page_table=USED[:, None] + 2, device="cpu"),
            op.ShapeError,
            r"append_kv: page_table\[0, 0\] is 2; pass pages from 0 to 1",
        ),
        (lambda: op.append_kv(CACHE, CACHE, X, X, USED, device="cpu"), op.LayoutError, "are the same memory; pass two"),
        (lambda: op.append_kv(WIDE, OTHER, X, X, USED, device="cpu"), op.LayoutError, "k_cache has strides"),
        (lambda: op.append_kv(CACHE[:1], OTHER[:1], X, X, USED, device="cpu"), op.ShapeError, "has 1 sequences"),
        (lambda: op.append_kv(CACHE[:, :1], OTHER, X, X, USED, device="cpu"), op.ShapeError, "3 heads of 32, like k"),
        (
            lambda: op.append_kv(CACHE, OTHER, X, X, USED, cos=COS, device="cpu"),
            op.UnsupportedError,
            "cos is given",
        ),
        (lambda: op.append_kv(CACHE, OTHER, X, X, USED, page_table=USED, device="cpu"), op.ShapeError, "pass i32 of"),
        (lambda: op.append_kv(CACHE, OTHER, X, X, USED[:1], device="cpu"), op.ShapeError, "one number per sequence"),
    ],
)
def test_errors(call: Any, error: type[op.OpError], words: str) -> None:
    with pytest.raises(error, match=words):
        call()
