"""``op.grouped_mm`` on the interpreter, compared with float64. Small integers make results exact."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from cute_dialect import op
from cute_dialect.op.problems.grouped import Shapes
from cute_dialect.op.select.grouped import average, choose_grouped

CHECKS = ["race", "uninit", "oob", "sync"]
SIZES = (5, 0, 70, 33, 1, 0)
ENDS = np.cumsum(SIZES).astype(np.int32)
PARTS = [slice(e - n, e) for n, e in zip(SIZES, ENDS.tolist())]
G, T, K, N = len(SIZES), 115, 72, 40  # The last six rows belong to no group.


def numbers(*shape: int, dtype: Any = np.float16) -> np.ndarray:
    return np.random.default_rng(sum(shape)).integers(-2, 3, shape).astype(dtype)


def wide(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float64)


def rows(a: np.ndarray, b: np.ndarray, parts: list[slice] = PARTS) -> np.ndarray:
    """Return the grouped GEMM over row ranges, with NaN in rows of no group."""
    found = np.full((len(a), b.shape[2]), np.nan)
    for g, part in enumerate(parts):
        found[part] = wide(a[part]) @ wide(b[g])
    return found


def experts() -> tuple[np.ndarray, np.ndarray]:
    a, b = numbers(T, K), numbers(G, K, N)
    a[ENDS[-1] :] = np.nan
    return a, b


@pytest.mark.slow
def test_padding_rows_are_not_written() -> None:
    a, b = experts()
    kept = np.full((T, N), np.nan, np.float16)
    assert op.grouped_mm(a, b, ENDS, out=kept, device="cpu", checks=CHECKS) is kept
    assert np.array_equal(kept, rows(a, b), equal_nan=True)
    with_zero = np.concatenate([[0], ENDS]).astype(np.int32)
    assert np.array_equal(op.grouped_mm(a, b, with_zero, rest="zero", device="cpu"), np.nan_to_num(rows(a, b)))
    turned = np.ascontiguousarray(b.transpose(0, 2, 1)).transpose(0, 2, 1)
    found = op.grouped_mm(a, turned, ENDS.tolist(), schedule="host", rest="zero", dtype="f32", device="cpu")
    assert found.dtype == np.float32 and np.array_equal(found, np.nan_to_num(rows(a, b)))


@pytest.mark.slow
def test_epilogues() -> None:
    a, b = experts()
    bias, c = numbers(G, N), numbers(T, N)
    alpha = np.arange(1, G + 1, dtype=np.float32)
    found = op.grouped_mm(
        a, b, ENDS, alpha=alpha, bias=bias, c=c, beta=2.0, activation="relu", rest="zero", device="cpu", checks=CHECKS
    )
    sums = rows(a, b)
    want = np.zeros((T, N))
    for g, part in enumerate(PARTS):
        want[part] = np.maximum(alpha[g] * sums[part] + 2 * wide(c[part]) + wide(bias[g]), 0)
    assert np.array_equal(found, want)

    def gated(accum: Any) -> Any:
        gate, up = op.epilogue.pairs(accum)
        return gate * up

    found = op.grouped_mm(a, b, ENDS, epilogue=gated, out=np.zeros((T, N // 2), np.float16), device="cpu")
    assert np.array_equal(found, np.nan_to_num(sums[:, ::2] * sums[:, 1::2]).astype(np.float16))
    found = op.grouped_mm(a.T, c, ENDS, bias=numbers(G, 1, N), alpha=alpha, dtype="f32", device="cpu")
    want = [alpha[g] * (wide(a[p]).T @ wide(c[p])) + numbers(G, 1, N)[g] for g, p in enumerate(PARTS)]
    assert np.array_equal(found, want)


@pytest.mark.slow
def test_steps_columns_and_rows_in_use() -> None:
    a, b = experts()
    grad = numbers(T, N)
    grad[ENDS[-1] :] = np.inf
    found = op.grouped_mm(a.T, grad, ENDS, device="cpu", checks=CHECKS)
    assert all(np.array_equal(found[g], wide(a[p]).T @ wide(grad[p])) for g, p in enumerate(PARTS))
    found = op.grouped_mm(b.transpose(0, 2, 1), a.T, ENDS, rest="zero", device="cpu", checks=CHECKS)
    assert np.array_equal(found, np.nan_to_num(rows(a, b)).T)
    lengths = np.array([0, 7, 40], np.int32)
    x, bias = numbers(3, 40, K), numbers(3, 1, N)
    x[1, 7:] = np.nan
    found = op.grouped_mm(x, b[:3], lengths=lengths, bias=bias, rest="zero", device="cpu", checks=CHECKS)
    for g, n in enumerate(lengths.tolist()):
        assert np.array_equal(found[g, :n], wide(x[g, :n]) @ wide(b[g]) + wide(bias[g]))
        assert (found[g, n:] == 0).all()


@pytest.mark.slow
def test_the_group_of_each_row() -> None:
    a, b = experts()
    groups = np.full(T, -1, np.int32)
    groups[3:10], groups[16:80] = 1, 4
    found = op.grouped_mm(a, b, row_groups=groups, rest="zero", device="cpu", checks=CHECKS)
    parts = [slice(0, 0), slice(3, 10), slice(0, 0), slice(0, 0), slice(16, 80), slice(0, 0)]
    assert np.array_equal(found, np.nan_to_num(rows(a, b, parts)))


@pytest.mark.slow
@pytest.mark.parametrize("element", ["float8_e4m3fn", "tf32"])
def test_types(element: str) -> None:
    kind = np.float32 if element == "tf32" else getattr(ml_dtypes, element)
    a, b = numbers(24, 36, dtype=kind), numbers(3, 36, 20, dtype=kind)  # The rows are misaligned, so they are copied.
    ends, parts = np.array([4, 4, 21], np.int32), [slice(0, 4), slice(4, 4), slice(4, 21)]
    math = "tf32" if element == "tf32" else "default"
    found = op.grouped_mm(a, b, ends, math=math, rest="zero", device="cpu", checks=CHECKS)
    assert np.array_equal(wide(found), np.nan_to_num(rows(a, b, parts)))
    if element == "float8_e4m3fn":  # Elements past the end of a group are not zero.
        found = op.grouped_mm(a.T, a[:, :20], ends, dtype="f32", device="cpu", checks=CHECKS)
        assert all(np.array_equal(found[g], wide(a[p]).T @ wide(a[p, :20])) for g, p in enumerate(parts))


@pytest.mark.slow
def test_steps_of_bytes() -> None:
    ends, parts = [4, 4, 21], [slice(0, 4), slice(4, 4), slice(4, 21)]
    a, b = numbers(24, 16, dtype=np.int8), np.abs(numbers(24, 20, dtype=np.int8)).astype(np.uint8)
    found = op.grouped_mm(a.T, b, ends, device="cpu", checks=CHECKS)
    assert found.dtype == np.int32
    assert all(np.array_equal(found[g], wide(a[p]).T @ wide(b[p])) for g, p in enumerate(parts))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["f64", "f32", "3xtf32"])
def test_types_without_wgmma(kind: str) -> None:
    dtype: Any = np.float64 if kind == "f64" else np.float32
    how: dict[str, Any] = {"device": "cpu", "checks": CHECKS, **({"math": kind} if kind == "3xtf32" else {})}
    ends, parts = np.array([4, 4, 21], np.int32), [slice(0, 4), slice(4, 4), slice(4, 21)]
    a, b, c = numbers(24, 16, dtype=dtype), numbers(3, 16, 12, dtype=dtype), numbers(24, 12, dtype=dtype)
    a[21:], bias = np.nan, numbers(3, 12, dtype=dtype)
    kept = np.full((24, 12), np.nan, dtype)
    op.grouped_mm(a, b, ends, out=kept, alpha=0.1, c=c, beta=2.0, bias=bias, activation="relu", **how)
    want = 0.1 * rows(a, b, parts) + 2 * wide(c)
    for g, part in enumerate(parts):
        want[part] += wide(bias[g])
    worst = np.nanmax(abs(kept - np.maximum(want, 0)))
    assert worst <= (0 if kind == "f64" else 1e-5) and (np.isnan(kept) == np.isnan(want)).all()
    if kind != "f64":
        return
    grad = c.copy()
    grad[21:] = np.inf
    found = op.grouped_mm(a.T, grad, ends, **how)
    assert all(np.array_equal(found[g], wide(a[p]).T @ wide(grad[p])) for g, p in enumerate(parts))
    found = op.grouped_mm(b.transpose(0, 2, 1), a.T, ends, rest="zero", **how)
    assert np.array_equal(found, np.nan_to_num(rows(a, b, parts)).T)
    which, groups = np.array([5, 5, 1, 0], np.int32), np.array([-1, 0, 2, 2], np.int32)
    found = op.grouped_mm(a, b, row_groups=groups, gather=which, rest="zero", **how)
    assert np.array_equal(found, [np.zeros(12), *(wide(a[r]) @ wide(b[g]) for r, g in ((5, 0), (1, 2), (0, 2)))])


@pytest.mark.slow
def test_a_tile_of_mma_sync() -> None:
    a, b = experts()
    plan = op.GroupedGemm(element="f16", layout="row", element_C="void", kernel_cc=80)
    plan.tile_description = TILE
    done = plan.run(a, b, offs=ENDS.tolist(), rest="zero", device="cpu", checks=CHECKS)
    assert done.kernels[0].startswith("group-problems-m") and np.array_equal(done.D, np.nan_to_num(rows(a, b)))
    with pytest.raises(
        op.UnsupportedError, match="kernel='x' is not supported for groups of f64; pass a TileDescription"
    ):
        of(a=a.astype(np.float64), b=b.astype(np.float64), kernel="x")


@pytest.mark.slow
def test_empty_groups() -> None:
    a, b = experts()
    none = np.zeros(G, np.int32)
    out = np.full((T, N), 7, np.float16)
    assert (op.grouped_mm(a, b, none, out=out, device="cpu") == 7).all()
    assert op.grouped_mm(a[:0], b, none, device="cpu").shape == (0, N)
    assert (op.grouped_mm(a.T[:, :0], a[:0], none, device="cpu") == 0).all()
    bias = numbers(N)
    found = op.grouped_mm(a[:, :0], b[:, :0], ENDS, bias=bias, rest="zero", device="cpu")
    assert (found[: ENDS[-1]] == bias).all() and (found[ENDS[-1] :] == 0).all()
    found = op.grouped_mm(a * np.float16(np.nan), b, ENDS, alpha=0.0, bias=bias, rest="zero", device="cpu")
    assert (found[: ENDS[-1]] == bias).all()


def of(**given: Any) -> Any:
    a, b = experts()
    a = given.pop("a", a)
    return op.grouped_mm(a, given.pop("b", b), given.pop("offs", ENDS), device="cpu", **given)


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"offs": ENDS.astype(np.int64)}, op.DtypeError, "offs has dtype i64; pass an i32 array or a list of integers"),
        ({"offs": ENDS[:5]}, op.ShapeError, r"offs has shape \(5,\); it must have \(6,\) or \(7,\)"),
        ({"offs": [5, 3, 7, 7, 7, 7]}, op.ShapeError, r"offs\[1\] is 3, less than offs\[0\] = 5; offs must not"),
        ({"offs": [5, 30, 70, 70, 70, 700]}, op.ShapeError, r"offs\[5\] is 700; it must be at most 115"),
        ({"offs": [1, 5, 30, 70, 70, 70, 70]}, op.ShapeError, r"offs\[0\] is 1; offs of 7 elements must begin with 0"),
        ({"offs": [0.5] * 6}, op.DtypeError, "offs must be a list of integers"),
        ({"offs": None}, op.UnsupportedError, "exactly one of offs, lengths and row_groups, got none of them"),
        ({"lengths": ENDS}, op.UnsupportedError, "exactly one of offs, lengths and row_groups, got offs, lengths"),
        ({"offs": None, "lengths": ENDS}, op.UnsupportedError, "lengths does not suit a of rank 2"),
        ({"offs": None, "row_groups": ENDS}, op.ShapeError, r"it must have \(115,\), one per row of a"),
        ({"a": numbers(T, 8)}, op.ShapeError, r"b has shape \(6, 72, 40\); it must have \(G, 8, N\)"),
        ({"a": numbers(T)}, op.ShapeError, r"must have rank 2 or 3, got shapes \(115,\) and \(6, 72, 40\)"),
        ({"a": numbers(T, K, dtype=ml_dtypes.bfloat16)}, op.DtypeError, "a has dtype bf16 and b has f16"),
        ({"rest": "drop"}, op.UnsupportedError, "rest='drop' is not supported; use 'keep' or 'zero'"),
        ({"schedule": "host"}, op.UnsupportedError, 'schedule="host" needs offs as a Python list'),
        ({"out": np.zeros((T, 8), np.float16)}, op.ShapeError, r"out has shape \(115, 8\)"),
        ({"bias": numbers(8)}, op.ShapeError, r"it must have \(40,\), \(1, 40\), \(6, 40\) or \(115, 1\)"),
        ({"alpha": numbers(3, dtype=np.float32)}, op.ShapeError, r"alpha must be a number, or an f32 array of shape"),
        ({"activation": "swish"}, op.EpilogueError, "silu is x"),
        ({"kernel": "no"}, op.UnsupportedError, "there is no kernel"),
    ],
)  # fmt: skip
def test_errors(given: dict[str, Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=f"grouped_mm: .*{said}"):
        of(**given)


TILE = op.TileDescription((64, 64, 32), 3, (2, 2, 1), op.MathInstruction((16, 8, 16), "f16", "f16", "f32"))
"""A tile for ``mma.sync``."""


@pytest.mark.slow
@pytest.mark.parametrize("kernel", [None, TILE], ids=["wgmma", "mma.sync"])
def test_an_epilogue_of_several_results(kernel: Any) -> None:
    def both(accum: Any, bias: Any) -> Any:
        E = accum + bias
        D = op.epilogue.relu(E)
        return D, E

    a, b = experts()
    bias, E = numbers(N), np.full((T, N), np.nan, np.float32)
    want = rows(a, b) + wide(bias)
    given: dict[str, Any] = {"epilogue": both, "kernel": kernel, "device": "cpu"}
    out = np.full((T, N), np.nan, np.float16)
    found, also = op.grouped_mm(a, b, ENDS, args={"bias": bias, "E": E}, out=out, checks=CHECKS, **given)
    assert found is out and also is E and np.array_equal(E, want, equal_nan=True)
    assert np.array_equal(out, np.maximum(want, 0), equal_nan=True)
    _, also = op.grouped_mm(a, b, ENDS, args={"bias": bias}, rest="zero", **given)
    assert also.dtype == np.float16 and np.array_equal(also, np.nan_to_num(want))
    x, kept = numbers(3, 40, K), np.full((3, 40, N), 7, np.float16)
    op.grouped_mm(x, b[:3], lengths=[0, 7, 40], args={"bias": bias, "E": kept}, **given)
    assert (kept[0] == 7).all() and (kept[1, 7:] == 7).all()
    assert np.array_equal(kept[1, :7], wide(x[1, :7]) @ wide(b[1]) + wide(bias))


def test_unsupported_epilogues_are_rejected() -> None:
    a, b = experts()

    def both(accum: Any) -> Any:
        D = E = accum * 2
        return D, E

    with pytest.raises(
        op.UnsupportedError, match="grouped_mm: the epilogue of groups of columns must have one result, got D, E"
    ):
        op.grouped_mm(b.transpose(0, 2, 1), a.T, ENDS, epilogue=both, device="cpu")
    with pytest.raises(op.LayoutError, match="grouped_mm: E shares memory with a"):
        of(a=a, epilogue=both, args={"E": a[:, :N]})
    turned = np.zeros((N, T), np.float16).T
    with pytest.raises(op.LayoutError, match="grouped_mm: rest='zero' needs results with contiguous rows"):
        of(epilogue=both, args={"E": turned}, rest="zero")

    def reduced(accum: Any) -> Any:
        D = accum
        total = op.epilogue.sum(accum, -1)
        return D, total

    with pytest.raises(op.UnsupportedError, match="result total of epilogue reduced is a reduction"):
        of(epilogue=reduced)

    def quantized(accum: Any) -> Any:
        D, scales = op.epilogue.quantize(accum, "i8", 32)
        return D, scales

    with pytest.raises(op.UnsupportedError, match=r"grouped_mm: quantize\(\) in epilogue quantized is not supported"):
        of(epilogue=quantized)

    def as_it_is(accum: Any) -> Any:
        return accum

    with pytest.raises(op.EpilogueError, match="bias cannot be combined with epilogue"):
        of(epilogue=as_it_is, bias=numbers(N))


def test_small_groups_have_small_tiles() -> None:
    tiles = [
        choose_grouped(average(Shapes("m", 64, 64 * each, 4096, 4096), "bf16", "bf16", ("k", "n")), "m").base.tile[0]
        for each in (8, 1024)
    ]
    assert tiles[0] == 64 and tiles[1] >= 128


def powers(*shape: int) -> np.ndarray:
    """Return powers of two, which keep accumulators exact."""
    return np.exp2(np.random.default_rng(sum(shape)).integers(-3, 4, shape)).astype(np.float32)


@pytest.mark.slow
def test_scales() -> None:
    ends, parts = np.array([4, 4, 21], np.int32), [slice(0, 4), slice(4, 4), slice(4, 21)]
    e4 = ml_dtypes.float8_e4m3fn
    a, b = numbers(24, 272, dtype=e4), numbers(3, 160, 272, dtype=e4).transpose(0, 2, 1)
    bias, options = numbers(3, 160), dict[str, Any]({"rest": "zero", "dtype": "f32", "device": "cpu"})
    sa, sb = powers(24, 1), powers(3, 160)
    want = rows(a, b, parts)
    for g, part in enumerate(parts):
        want[part] = want[part] * sa[part] * sb[g] + wide(bias[g])
    found = op.scaled_grouped_mm(a, b, sa, sb, ends, bias=bias, checks=CHECKS, **options)
    assert np.array_equal(found, np.nan_to_num(want))
    one, each = powers(1), powers(3)
    found = op.scaled_grouped_mm(a, b, one, each, ends, fast=True, **options)
    of_rows = np.zeros((24, 1))
    for g, part in enumerate(parts):
        of_rows[part] = each[g]
    assert np.array_equal(found, np.nan_to_num(rows(a, b, parts)) * one * of_rows)
    sa, sb = powers(24, 3), powers(3, 2, 3)
    x = wide(a) * np.repeat(sa, 128, 1)[:, :272]
    y = wide(b) * np.repeat(np.repeat(sb, 128, 1)[:, :160], 128, 2)[:, :, :272].transpose(0, 2, 1)
    found = op.scaled_grouped_mm(a, b, sa, sb, ends, checks=CHECKS, **options)
    assert np.array_equal(found, np.nan_to_num(rows(x, y, parts)))
    found = op.scaled_grouped_mm(a.reshape(3, 8, 272), b, sa.reshape(3, 8, 3), sb, lengths=[0, 5, 8], **options)
    for g, n in enumerate((0, 5, 8)):
        assert np.array_equal(found[g, :n], (x.reshape(3, 8, 272)[g] @ y[g])[:n]) and (found[g, n:] == 0).all()
    for given, error, said in (
        ((sa[:, :2], sb), op.ShapeError, r"scale_a has shape \(24, 2\); it must have \(1,\), \(24, 1\) or \(24, 3\)"),
        ((sa, one), op.UnsupportedError, "scale_a is per block and scale_b per tensor"),
        ((sa.astype(np.float64), sb), op.DtypeError, "scale_a has dtype f64; it must have f32"),
    ):
        with pytest.raises(error, match=f"scaled_grouped_mm: .*{said}"):
            op.scaled_grouped_mm(a, b, *given, ends, device="cpu")


def test_explained() -> None:
    found = op.explain(
        op.grouped_mm, (8192, 4096), (8, 4096, 14336), offs=(8,), element="bf16", gpu="NVIDIA H200", others=2
    )
    assert found.problem.key == "bf16-bf16-kn 8x1024x14336x4096" and found.kernel.endswith("-ragged-m")
    assert len(found.others) == 2 and found.copies == () and found.flops == 2 * 8192 * 4096 * 14336
    assert "8 groups of rows" in str(found) and "TFLOP/s" in str(found)
    a, b = experts()
    found = op.explain(op.grouped_mm, a, b[:, :, :33].copy(), row_groups=(T,), gpu="NVIDIA H200")
    assert found.copies == (("b", G * K * 33 * 2),) and "copied    b" in str(found)
    found = op.explain(op.grouped_mm, a.astype(np.float64), b.astype(np.float64), offs=(6,), gpu="NVIDIA H200")
    assert found.kernel.endswith("-list16") and "f64 without wgmma" in str(found) and found.shared_memory == 0
    with pytest.raises(op.ShapeError, match="offs has shape"):
        op.explain(op.grouped_mm, a, b, offs=[1, 2])


@pytest.mark.slow
def test_gathered_rows() -> None:
    a, b = numbers(9, 37, dtype=np.int8), numbers(3, 37, 16, dtype=np.int8)
    which = np.random.default_rng(0).integers(0, 9, 24).astype(np.int32)
    ends, parts = np.array([4, 4, 24], np.int32), [slice(0, 4), slice(4, 4), slice(4, 24)]
    for x in (a, np.ascontiguousarray(a[:, 1:])):
        found = op.grouped_mm(x, b[:, : x.shape[1]], ends, gather=which, dtype="f32", device="cpu", checks=CHECKS)
        assert np.array_equal(found, rows(x[which], b[:, : x.shape[1]], parts))
    with pytest.raises(op.DtypeError, match="gather has dtype i64; pass an i32 array or a list of integers"):
        op.grouped_mm(a, b, ends, gather=which.astype(np.int64), device="cpu")
