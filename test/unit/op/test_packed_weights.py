"""``op.mm_packed`` and the functions that pack weights on the interpreter, compared with float64."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from quantized_weights import awq, gptq, weights

from cute_dialect import op
from cute_dialect.arch.targets import DEFAULT_TARGET
from cute_dialect.op.functions import packed_weights
from cute_dialect.op.problems.packed_weights import format_of
from cute_dialect.op.select.mixed_input import candidates, choose_config, choose_plan

BF16 = ml_dtypes.bfloat16
W = weights(72, 200, 4, 128, "f16", zeros=False)
PACKED = op.PackedWeight(None, 8192, 8192, "ui4-g128-bf16")


def normal(*shape: int, dtype: Any = np.float16) -> Any:
    x = np.random.default_rng([*shape]).standard_normal(shape)
    return x.astype(np.float32).astype(dtype)


def check(found: Any, x: Any, w: Any, bias: Any = 0.0) -> None:
    """Compare a result with float64. It is rounded once, from accumulators of f32."""
    wide = x.astype(np.float64)
    exact, scale = wide @ w.T + np.asarray(bias, np.float64), np.abs(wide) @ np.abs(w).T
    unit = {np.dtype(np.float32): 1e-6, np.dtype(BF16): 2.0**-8}.get(found.dtype, 2.0**-11)
    assert found.shape == exact.shape
    assert (np.abs(found.astype(np.float64) - exact) <= unit * np.abs(exact) + 1e-5 * scale).all()


@pytest.mark.end_to_end
@pytest.mark.sample("4-32-f32-True")
@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize(("bits", "group", "scale"), [(4, 32, "f32"), (8, 64, "bf16"), (4, 0, "f16"), (8, 0, "f32")])
def test_one_integer_per_element(bits: int, group: int, scale: str, signed: bool) -> None:
    w = weights(70, 130, bits, group, scale, zeros=True)
    q, zeros = (w.signed, (w.zeros - w.middle).astype(np.int8)) if signed else (w.q.astype("u1"), w.zeros.astype("u1"))
    p = op.pack_weight(q, w.scales, zeros, bits=bits, device="cpu")
    assert p.shape == (70, 130) and p.format.endswith("-z")
    x = normal(3, 130, dtype=BF16)
    check(op.mm_packed(x, p, dtype="f32", device="cpu", checks=["race", "uninit"]), x, w.exact())
    np.testing.assert_allclose(op.unpack_weight(p, "f32", device="cpu"), w.exact(), rtol=1e-6)


@pytest.mark.slow
@pytest.mark.end_to_end
@pytest.mark.sample("32-bf16-bfloat16")
@pytest.mark.parametrize(("group", "scale", "dtype"), [(0, "f32", BF16), (32, "bf16", BF16), (64, "f16", np.float16)])
def test_floats(group: int, scale: str, dtype: Any) -> None:
    """Weights of e4m3. A NaN makes its row of weights NaN, and with groups the unpacked weights of its group."""
    w = weights(70, 130, 8, group, scale, zeros=False, is_float=True)
    p = op.pack_weight(w.floats, w.scales, device="cpu")
    assert p.format == f"f8E4M3FN-{f'g{group}' if group else 'row'}-{scale}"
    x = normal(3, 130, dtype=dtype)
    check(op.mm_packed(x, p, dtype="f32", device="cpu", checks=["race", "uninit"]), x, w.exact())
    np.testing.assert_allclose(op.unpack_weight(p, "f32", device="cpu"), w.exact(), rtol=1e-6)
    w.q[5, 129] = 0xFF
    p = op.pack_weight(w.floats, w.scales, device="cpu")
    is_nan = np.isnan(op.mm_packed(x, p, device="cpu").astype(np.float32))
    assert is_nan[:, 5].all() and is_nan.sum() == 3
    is_nan = np.isnan(op.unpack_weight(p, "f32", device="cpu"))
    assert is_nan[5, 128:].all() and is_nan.sum() == (130 if group == 0 else 2)


@pytest.mark.parametrize("zeros", [None, 0, -3, np.int64(-3)])
def test_zero_point_of_all_groups(zeros: Any) -> None:
    p = op.pack_weight(W.signed, W.scales, zeros, device="cpu")
    assert p.format == ("ui4-g128-f16-z" if zeros else "ui4-g128-f16")
    exact = W._replace(zeros=np.full(W.scales.shape, 8 + (zeros or 0))).exact()
    np.testing.assert_allclose(op.unpack_weight(p, "f32", device="cpu"), exact, rtol=1e-6)


def test_unsigned_weights_have_the_zero_point_0() -> None:
    p = op.pack_weight(W.q.astype(np.uint8), W.scales, device="cpu")
    exact = W._replace(zeros=np.zeros(W.scales.shape, int)).exact()
    np.testing.assert_allclose(op.unpack_weight(p, "f32", device="cpu"), exact, rtol=1e-6)
    assert op.pack_weight(W.q.astype(np.uint8), W.scales, 8, device="cpu").format == "ui4-g128-f16"


@pytest.mark.parametrize("zeros", [True, False])
def test_checkpoints(zeros: bool) -> None:
    w = weights(72, 192, 4, 64, "f16", zeros=zeros)
    if zeros:
        w.zeros[w.zeros == 0] = 1  # the usual GPTQ format holds zero points less 1
    for p in (
        op.pack_gptq(*gptq(w), device="cpu"), op.pack_gptq(*gptq(w, 0), zero_offset=0, device="cpu"),
        op.pack_awq(*awq(w), group=64, device="cpu"),
    ):  # fmt: skip
        np.testing.assert_allclose(op.unpack_weight(p, "f32", device="cpu"), w.exact(), rtol=1e-6)
    p = op.pack_weight(W.signed, W.scales, bits=np.int64(4), group=np.int32(128), device="cpu")  # type: ignore[arg-type]
    np.testing.assert_allclose(op.unpack_weight(p, "f32", device="cpu"), W.exact(), rtol=1e-6)
    byte = weights(72, 128, 8, 128, "bf16", zeros=False)
    p = op.pack_gptq(*gptq(byte), bits=8, device="cpu")
    np.testing.assert_allclose(op.unpack_weight(p, "f32", device="cpu"), byte.exact(), rtol=1e-6)


@pytest.mark.slow
@pytest.mark.end_to_end
@pytest.mark.parametrize(("bits", "zero"), [(4, 16), (8, 0)])
def test_the_largest_stored_zero_point(bits: int, zero: int) -> None:
    """Zero points have a byte: 255 + 1 is 0, as for readers that mask the sum, and 15 + 1 is 16."""
    w = weights(72, 128, bits, 64, "f16", zeros=True)
    q, s, z = gptq(w)
    p = op.pack_gptq(q, s, np.full_like(z, -1), bits=bits, device="cpu")
    exact = w._replace(zeros=np.full(w.zeros.shape, zero)).exact()
    np.testing.assert_allclose(op.unpack_weight(p, "f32", device="cpu"), exact, rtol=1e-6)
    x = normal(3, 128)
    check(op.mm_packed(x, p, dtype="f32", device="cpu"), x, exact)


@pytest.mark.slow
@pytest.mark.end_to_end
def test_shapes_and_strides() -> None:
    p, w = op.pack_weight(W.signed, W.scales, device="cpu"), W.exact()
    bias = normal(72)
    for x in (
        normal(200), normal(2, 3, 200), normal(3, 208)[:, :200], normal(3, 201)[:, 1:], normal(200, 3).T,
        normal(0, 200), normal(1, 200),
    ):  # fmt: skip
        check(op.mm_packed(x, p, device="cpu"), x, w)
    x, out = normal(2, 3, 200), np.full((2, 3, 80), np.nan, np.float32)
    assert op.mm_packed(x, p, bias.astype(np.float32), out=out[..., :72], device="cpu").base is out
    check(out[..., :72], x, w, bias)
    assert np.isnan(out[..., 72:]).all()
    odd = weights(65, 131, 4, 32, "f16", zeros=False)
    x = normal(2, 131)
    check(op.mm_packed(x, op.pack_weight(odd.signed, odd.scales, device="cpu"), device="cpu"), x, odd.exact())


@pytest.mark.slow
@pytest.mark.end_to_end
def test_many_rows_are_multiplied_by_unpacked_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    def unpacks(*problem: Any) -> Any:
        return choose_plan(*problem)._replace(config=None)

    monkeypatch.setattr(packed_weights, "choose_plan", unpacks)
    p, w = op.pack_weight(W.signed, W.scales, device="cpu"), W.exact()
    rounded = w.astype(np.float16).astype(np.float64)
    x, bias = normal(2, 40, 200), normal(72)
    check(op.mm_packed(x, p, bias, device="cpu"), x, rounded, bias)
    out = np.full((2, 40, 72), np.nan, np.float32)
    assert op.mm_packed(x, p, out=out, device="cpu") is out
    check(out, x, rounded)


@pytest.mark.parametrize("is_packed", [True, False])
def test_both_ways_agree(monkeypatch: pytest.MonkeyPatch, is_packed: bool) -> None:
    """Weights that bf16 holds exactly: unpacking does not round, so that both ways have one reference."""
    w = weights(72, 136, 4, 32, "f16", zeros=True)
    w = w._replace(scales=np.full_like(w.scales, 0.25))
    p = op.pack_weight(w.q.astype("u1"), w.scales, w.zeros.astype("u1"), device="cpu")
    launched = choose_config(5, 72, 136, format_of("", p.format), "bf16", "f32") if is_packed else None

    def forced(*problem: Any) -> Any:
        return choose_plan(*problem)._replace(config=launched)

    monkeypatch.setattr(packed_weights, "choose_plan", forced)
    x, out = normal(5, 136, dtype=BF16), np.full((5, 72), np.nan, np.float32)
    assert op.mm_packed(x, p, out=out, device="cpu") is out
    check(out, x, w.exact())


@pytest.mark.parametrize(
    ("m", "n", "k", "format", "is_packed"),
    [
        (1, 8192, 8192, "ui4-g128-bf16", True),
        (64, 14336, 4096, "ui4-g32-bf16", True),
        (1024, 8192, 8192, "ui4-g128-bf16", True),
        (2048, 8192, 8192, "ui4-g32-bf16", True),
        (32768, 8192, 8192, "ui4-g128-bf16", False),
        (4096, 5120, 1280, "ui4-g32-bf16", False),
        (300, 2048, 8191, "ui4-g32-f16", True),
        (8, 131, 131, "ui4-g32-f32-z", True),
    ],
)
def test_the_way_that_is_predicted_to_be_faster(m: int, n: int, k: int, format: str, is_packed: bool) -> None:
    plan = choose_plan(m, n, k, format_of("", format), "bf16", "bf16")
    exact = choose_plan(m, n, k, format_of("", format), "bf16", "bf16", exact=True)
    assert (plan.config is not None) is is_packed and 0 < plan.microseconds < plan.other + 1.5
    assert plan.config == exact.config and plan.other <= exact.other


@pytest.mark.slow
def test_torch() -> None:
    torch: Any = pytest.importorskip("torch")
    p = op.pack_weight(torch.tensor(W.signed), torch.tensor(W.scales), device="cpu")
    w = torch.tensor(W.exact())
    x, bias = torch.randn(2, 3, 200).half().requires_grad_(), torch.randn(72).half().requires_grad_()

    def layer(x: Any, bias: Any) -> Any:
        return op.mm_packed(x, p, bias, device="cpu") * 2

    for f in (layer, torch.compile(layer, backend="aot_eager", fullgraph=True)):
        x.grad = bias.grad = None
        y, g = f(x, bias), torch.randn(2, 3, 72).half()
        assert torch.allclose(y.double(), 2 * (x.double() @ w.T + bias.double()), atol=0.05, rtol=4e-3)
        y.backward(g)
        assert torch.allclose(x.grad.double(), 2 * g.double() @ w, atol=0.05, rtol=4e-3)
        assert torch.allclose(bias.grad.double(), 2 * g.double().sum((0, 1)), atol=0.02, rtol=4e-3)
    for expanded in (torch.ones(()), torch.randn(72), torch.randn(3, 1), torch.randn(2, 1, 1)):
        x.grad, g = None, expanded.half().expand(2, 3, 72)
        op.mm_packed(x, p, device="cpu").backward(g)
        assert torch.allclose(x.grad.double(), g.double() @ w, atol=0.05, rtol=4e-3)
    operator, schema = torch.ops.cute.mm_packed.default, ("test_schema", "test_faketensor")
    with pytest.MonkeyPatch.context() as m:
        m.setenv("CUTE_DEVICE", "cpu")
        torch.library.opcheck(operator, (x, p.data, bias, p.n, p.k, p.format, ""), test_utils=schema)
        torch.library.opcheck(
            torch.ops.cute.unpack_weight.default, (p.data, p.n, p.k, p.format, "bf16"), test_utils=schema
        )


def test_explanation() -> None:
    found = op.explain(op.mm_packed, (4, 8192), PACKED, element="bf16")
    assert "mm_packed of 4 x 8192 bf16 and 8192 x 8192 ui4-g128-bf16" in str(found)
    assert found.config.columns == 8 and found.kernels[0].name == found.kernel
    assert f"predicted {found.microseconds:.1f} us" in str(found) and "34.7 MB" in str(found)
    assert f"else      {found.other:.1f} us  unpacked weights and a GEMM" in str(found)
    many = op.explain(op.mm_packed, (32768, 8192), PACKED, element="bf16", bias=(8192,))
    assert many.kernel == "unpack-ui4-g128-bf16-bf16" and len(many.kernels) == 2 and many.gemm.kernel in str(many)
    assert "us  packed weights" in str(many) and many.microseconds < many.other


@pytest.mark.parametrize("format", ["ui4-g128-bf16", "ui4-g32-f32-z", "f8E4M3FN-row-f32", "i8-g64-f16-z"])
@pytest.mark.parametrize(
    ("n", "k"), [(8192, 8192), (14336, 4096), (4096, 14336), (64, 128), (1000, 1000), (128256, 4096)]
)
def test_candidates_fit_a_block(format: str, n: int, k: int) -> None:
    for m in (1, 9, 17, 33, 64, 65, 129, 300, 1535):
        for time, c in candidates(m, n, k, format_of("", format), "bf16", "bf16"):
            c.check()
            assert time > 0 and c.smem_bytes + 1024 <= DEFAULT_TARGET.shared
            assert -(-k // 128) >= c.parts
            blocks = -(-n // c.rows) * -(-m // c.columns) * c.parts
            assert c.parts == 1 or blocks <= 264
            assert c.live == 0 or m <= c.live < c.columns
            assert c.scaled is (c.group > 0 and m > (64 if c.group == 128 else 32))


X = normal(2, 200)
BOTH = normal(2, 80)
GOOD = op.PackedWeight(np.zeros((2, 2 * (1024 + 32)), np.int32), 72, 200, "ui4-g128-f16")
FLOATS = W.signed.astype(ml_dtypes.float8_e4m3fn)
QWEIGHT, SCALES, QZEROS = gptq(weights(72, 256, 4, 128, "f16", zeros=False))


@pytest.mark.parametrize(
    ("call", "kind", "said"),
    [
        (
            lambda: op.pack_weight(W.signed, W.scales[:, :1].T),
            op.ShapeError,
            "scales has shape (1, 72), but w has 72 rows; pass (72, groups) or (72,)",
        ),
        (
            lambda: op.pack_weight(W.signed, np.ones((72, 9), np.float16)),
            op.ShapeError,
            "pack_weight: scales has 9 columns, but K is 200; pass one of 7 (groups of 32), 4 (groups of 64), 2 (",
        ),
        (
            lambda: op.pack_weight(W.signed, W.scales, group=64),
            op.ShapeError,
            "scales has 2 columns, but groups of 64 of K = 200 need 4",
        ),
        (
            lambda: op.pack_weight(W.signed, W.scales, group=48),
            op.ArgumentError,
            "group=48 is not supported; use 32, 64, 128, or None with one scale per row",
        ),
        (
            lambda: op.pack_gptq(QWEIGHT[:5], np.ones((3, 72), np.float16)),
            op.ShapeError,
            "pack_gptq: scales has 3 rows, but K is 40; pass one of 2 (groups of 32), 1 (one group of K = 40)",
        ),
        (lambda: op.pack_weight(W.signed, W.scales, bits=3), op.ArgumentError, "bits=3 is not supported; use 4 or 8"),
        (
            lambda: op.pack_weight(W.signed, W.scales, 9),
            op.ArgumentError,
            "zeros=9 is outside of the range of w; use -8 to 7",
        ),
        (
            lambda: op.pack_weight(W.signed, W.scales, W.scales),
            op.DtypeError,
            "zeros has dtype f16; it must have i8, like w",
        ),
        (
            lambda: op.pack_weight(W.signed, W.scales, W.signed[:, :1]),
            op.ShapeError,
            "zeros has shape (72, 1); it must have (72, 2), like scales",
        ),
        (
            lambda: op.pack_weight(W.scales, W.scales),
            op.DtypeError,
            "w has dtype f16; it must have one of i8, ui8, f8E4M3FN",
        ),
        (
            lambda: op.pack_weight(FLOATS, W.scales, 1),
            op.ArgumentError,
            "pack_weight: weights of f8E4M3FN have no zero points, and 8 bits; omit zeros and bits",
        ),
        (lambda: op.pack_weight(FLOATS, W.scales, bits=4), op.ArgumentError, "have no zero points, and 8 bits"),
        (lambda: op.pack_weight(FLOATS, W.scales, FLOATS[:, :2]), op.ArgumentError, "have no zero points, and 8 bits"),
        (
            lambda: op.pack_weight(W.signed, W.signed[:, :2]),
            op.DtypeError,
            "scales has dtype i8; it must have f16, bf16 or f32",
        ),
        (lambda: op.pack_weight(W.signed[0], W.scales), op.ShapeError, "w has shape (200,); it must have rank 2"),
        (
            lambda: op.pack_weight(W.signed[:0], W.scales[:0]),
            op.ShapeError,
            "w has shape (0, 200); it must not be empty",
        ),
        (
            lambda: op.pack_weight(W.signed, W.scales, zero=1),
            op.ArgumentError,
            "pack_weight() has no argument 'zero'; did you mean 'zeros'?",
        ),
        (
            lambda: op.pack_gptq(QWEIGHT, SCALES.T),
            op.ShapeError,
            "pack_gptq: scales has shape (72, 2), but qweight holds 72 columns; pass (groups, 72)",
        ),
        (
            lambda: op.pack_gptq(QWEIGHT, SCALES, QWEIGHT),
            op.ShapeError,
            "pack_gptq: qzeros has shape (32, 72); it must have (2, 9)",
        ),
        (
            lambda: op.pack_gptq(QWEIGHT, SCALES, g_idx=QWEIGHT),  # type: ignore[call-arg]
            op.ArgumentError,
            "pack_gptq() has no argument 'g_idx'; omit it: groups of scattered rows (desc_act) are not supported",
        ),
        (
            lambda: op.pack_gptq(QWEIGHT, SCALES, zero_offset=2),
            op.ArgumentError,
            "pack_gptq: zero_offset=2 is not supported; use 0 or 1",
        ),
        (
            lambda: op.pack_gptq(QWEIGHT[0], SCALES),
            op.ShapeError,
            "pack_gptq: qweight has shape (72,); it must have rank 2",
        ),
        (
            lambda: op.pack_gptq(QWEIGHT[:, :70], SCALES[:, :70], QWEIGHT[:2, :9]),
            op.ShapeError,
            "pack_gptq: 70 columns are not a multiple of 8, so that qzeros cannot hold them",
        ),
        (
            lambda: op.pack_awq(W.signed, SCALES),
            op.DtypeError,
            "pack_awq: qweight has dtype i8; it must have one of i32",
        ),
        (
            lambda: op.mm_packed(X, W.signed),
            op.DtypeError,
            "mm_packed: packed is of type ndarray; pass the result of op.pack_weight, op.pack_gptq or",
        ),
        (
            lambda: op.mm_packed(X, GOOD._replace(n=200)),
            op.ShapeError,
            "mm_packed: packed.data has shape (2, 2112), but 200 x 200 weights of ui4-g128-f16 need",
        ),
        (
            lambda: op.mm_packed(X, GOOD._replace(format="x")),
            op.ArgumentError,
            "mm_packed: packed has the format 'x', which is unknown; pass the result of op.pack_weight",
        ),
        (
            lambda: op.mm_packed(X[:, :9], GOOD),
            op.ShapeError,
            "mm_packed: x has shape (2, 9), but packed has 200 columns; pass (…, 200)",
        ),
        (
            lambda: op.mm_packed(X.astype("f4"), GOOD),
            op.DtypeError,
            "mm_packed: x has dtype f32; it must have one of f16, bf16",
        ),
        (lambda: op.mm_packed(X, GOOD, X[0, :9]), op.ShapeError, "mm_packed: bias has shape (9,); it must have (72,)"),
        (
            lambda: op.mm_packed(X, GOOD, np.ones(72, "f4")),
            op.DtypeError,
            "mm_packed: bias has dtype f32; it must have f16, like the result",
        ),
        (
            lambda: op.mm_packed(X, GOOD, dtype="i8"),
            op.DtypeError,
            "mm_packed: the result has dtype i8; it must have one of f16, bf16, f32",
        ),
        (
            lambda: op.mm_packed(X, GOOD, out=np.ones((2, 72), "f2"), dtype="f32"),
            op.DtypeError,
            "mm_packed: dtype is f32, but out has f16; omit dtype",
        ),
        (
            lambda: op.pack_weight(W.signed, W.scales, True),
            op.ArgumentError,
            "pack_weight: zeros is True; pass an array, one integer, or None for 0",
        ),
        (
            lambda: op.mm_packed(X, GOOD, out=X[:, 100:172]),
            op.LayoutError,
            "mm_packed: out shares memory with x; pass a separate out",
        ),
        (
            lambda: op.mm_packed(X, GOOD, BOTH[0, :72], out=BOTH[:, :72]),
            op.LayoutError,
            "mm_packed: out shares memory with bias; pass a separate out",
        ),
        (
            lambda: op.mm_packed(X, GOOD, out=np.ones((2, 71), "f2")),
            op.ShapeError,
            "mm_packed: out has shape (2, 71); it must have (2, 72)",
        ),
        (
            lambda: op.mm_packed(X, GOOD._replace(data=GOOD.data.astype("f4"))),
            op.DtypeError,
            "mm_packed: packed.data has dtype f32; it must have i32",
        ),
        (
            lambda: op.unpack_weight(GOOD, "i8"),
            op.DtypeError,
            "unpack_weight: dtype i8 is not supported; use one of f16, bf16, f32",
        ),
        (
            lambda: op.explain(op.mm_packed, (3, 5), PACKED),
            op.ShapeError,
            "mm_packed: x has shape (3, 5); pass rows of 8192 elements",
        ),
        (
            lambda: op.explain(op.mm_packed, (3, 8192), PACKED, dtype="i8"),
            op.DtypeError,
            "mm_packed: the result has dtype i8; it must have one of f16, bf16, f32",
        ),
    ],
)
def test_refusals(call: Any, kind: type[Exception], said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUTE_DEVICE", "cpu")
    with pytest.raises(kind, match=re.escape(said)):
        call()


@pytest.mark.end_to_end
def test_saved_and_moved() -> None:
    """``torch.load`` reads the weights with its safe reader, and ``to`` moves them."""
    torch = pytest.importorskip("torch")
    packed, file = op.pack_weight(torch.zeros(8, 64).char(), torch.ones(8, 1).half(), device="cpu"), io.BytesIO()
    torch.save({"w": packed}, file)
    file.seek(0)
    found = torch.load(file, weights_only=True)["w"]
    assert type(found) is op.PackedWeight and found.shape == packed.shape
    assert all(torch.equal(x, y) if hasattr(x, "ndim") else x == y for x, y in zip(found, packed))
    there = packed.to("meta")
    assert type(there) is op.PackedWeight and all(getattr(x, "is_meta", True) for x in there)
    assert there.shape == packed.shape and packed.to(torch.device("cpu")).data is packed.data
    with pytest.raises(op.ArgumentError, match=r"device is torch\.float16; pass a device"):
        packed.to(torch.float16)
    with pytest.raises(op.ArgumentError, match="type ndarray; only torch tensors can be moved"):
        packed._replace(data=packed.data.numpy()).to("cpu")


@pytest.mark.slow  # It imports torch in another process.
def test_safe_to_load() -> None:
    """The classes are registered where torch is imported first."""
    pytest.importorskip("torch")
    code = (
        "import torch; from cute_dialect import op; "
        "assert {op.PackedWeight, op.SparseWeight} <= set(torch.serialization.get_safe_globals())"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
