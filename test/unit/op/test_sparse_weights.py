"""``op.mm_sparse`` and the compression of 2:4 sparse weights on the interpreter, compared with exact integers."""

from __future__ import annotations

import io
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from launched_here import Seen, here

from cute_dialect import op
from cute_dialect.kernels.epilogue.combination import Epilogue
from cute_dialect.kernels.gemm.config import GemmConfig
from cute_dialect.kernels.gemm.sparse import SparseConfig, compress, sparse_gemm_text
from cute_dialect.op.execute.array_call import RowKernel

BF16: Any = ml_dtypes.bfloat16


def weights(n: int, k: int, dtype: Any = np.float16, seed: int = 0) -> Any:
    """Integers, of which two of four at most are not zero, at random positions."""
    rng = np.random.default_rng([n, k, seed])
    groups = rng.integers(-3, 4, (n, k // 4, 4))
    kept = rng.random(groups.shape).argsort(-1) < 2
    return (groups * kept).reshape(n, k).astype(dtype)


def integers(*shape: int, dtype: Any = np.float16) -> Any:
    return np.random.default_rng(shape).integers(-3, 4, shape).astype(dtype)


@pytest.mark.parametrize(("n", "k", "dtype"), [(8, 16, np.float16), (72, 144, BF16)])
def test_compression(n: int, k: int, dtype: Any) -> None:
    """The kept elements are those of the NumPy function, and the inverse restores the weights."""
    wide = np.full((n, k + 8), np.nan, dtype)
    wide[:, :k] = w = weights(n, k, dtype)
    packed = op.compress_2_4(wide[:, :k], device="cpu", checks="all")
    assert packed.shape == (n, k) and repr(packed) == f"SparseWeight({n} x {k})"
    np.testing.assert_array_equal(packed.kept, compress(w, "f16")[0])
    np.testing.assert_array_equal(op.expand_2_4(packed, device="cpu", checks="all"), w)


@pytest.mark.end_to_end
@pytest.mark.sample("16-72-144-float16-True")
@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize("dtype", [np.float16, BF16])
@pytest.mark.parametrize(("m", "n", "k"), [(16, 72, 144), (1, 8, 16), (37, 200, 400), (5, 64, 256)])
def test_product(m: int, n: int, k: int, dtype: Any, has_bias: bool) -> None:
    """Products of small integers are exact."""
    w, x, bias = weights(n, k, dtype), integers(m, k, dtype=dtype), integers(n, dtype=dtype)
    packed = op.compress_2_4(w, device="cpu")
    y = op.mm_sparse(x, packed, bias if has_bias else None, device="cpu", checks="all")
    exact = x.astype(np.float64) @ w.T.astype(np.float64) + bias.astype(np.float64) * has_bias
    np.testing.assert_array_equal(y, exact.astype(dtype))


BASE = GemmConfig(tile=(64, 32, 64), stages=2, major_c="m", cluster_m=1, deferred=False)
CONFIGS = {
    "two consumers": BASE._replace(tile=(128, 64, 64), deferred=True),
    "two instructions of rows": BASE._replace(tile=(256, 16, 64), stages=3),
    "pingpong": BASE._replace(schedule="pingpong", sms=1),
    "B shared": BASE._replace(cluster_m=2, sms=2),
    "A shared": BASE._replace(cluster_n=2, sms=2, buffers=1),
    "several tiles, deferred": BASE._replace(deferred=True, sms=1),
    "bias": BASE._replace(epilogue=Epilogue(bias="m", bias_type="f16")),
}


@pytest.mark.slow
@pytest.mark.end_to_end
@pytest.mark.sample("A shared")
@pytest.mark.parametrize("name", CONFIGS)
def test_kernel(name: str) -> None:
    """Every schedule and cluster, with NaN in the results before, in padding columns, and all schedules of threads."""
    c = SparseConfig(CONFIGS[name])
    n, m, k = 136, 72, 272
    w, x, bias = weights(n, k), integers(m, k), integers(n)
    packed = op.compress_2_4(w, device="cpu")
    found = np.full((m, n + 8), np.nan, np.float16)
    kernel: Any = RowKernel(c.name, sparse_gemm_text, (c,)).compiled(cpu=True).kernel("launch")
    more = [bias] if c.base.epilogue.bias else []
    kernel(packed.kept, x, found[:, :n].T, packed.metadata, *more, device="cpu", checks="all")
    exact = x.astype(np.float64) @ w.T.astype(np.float64) + (bias if more else 0)
    np.testing.assert_array_equal(found[:, :n], exact)
    assert np.isnan(found[:, n:]).all()


@pytest.mark.slow
@pytest.mark.parametrize("schedule", ["adversarial", "reverse", "random"])
def test_schedules(schedule: str) -> None:
    c, (n, m, k) = SparseConfig(CONFIGS["two consumers"]), (128, 64, 400)
    w, x = weights(n, k), integers(m, k)
    packed, found = op.compress_2_4(w, device="cpu"), np.full((m, n), np.nan, np.float16)
    kernel: Any = RowKernel(c.name, sparse_gemm_text, (c,)).compiled(cpu=True).kernel("launch")
    kernel(packed.kept, x, found.T, packed.metadata, device="cpu", checks="all", schedule=schedule, seed=1)
    np.testing.assert_array_equal(found, x.astype(np.float64) @ w.T.astype(np.float64))


@pytest.mark.slow
@pytest.mark.end_to_end
def test_torch() -> None:
    torch = pytest.importorskip("torch")
    w, x = torch.tensor(weights(24, 64)), torch.tensor(integers(2, 3, 64)).requires_grad_()
    bias = torch.tensor(integers(24)).requires_grad_()
    packed = op.compress_2_4(w, device="cpu")
    y, dy = op.mm_sparse(x, packed, bias, device="cpu"), torch.tensor(integers(2, 3, 24))
    (y * dy).sum().backward()
    assert torch.equal(y, (x.double() @ w.double().T + bias.double()).half())
    assert torch.equal(x.grad, (dy.double() @ w.double()).half())
    assert torch.equal(bias.grad, dy.double().sum((0, 1)).half())

    def product(x: Any, kept: Any, metadata: Any) -> Any:
        return op.mm_sparse(x, op.SparseWeight(kept, metadata), bias, device="cpu")

    compiled = torch.compile(product, fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(x, *packed), y)
    given = (x.detach(), *packed, bias.detach())
    torch.library.opcheck(torch.ops.cute.mm_sparse.default, given, test_utils=("test_schema", "test_faketensor"))


def test_explanation() -> None:
    packed = op.SparseWeight(np.zeros((4096, 2048), np.float16), np.zeros((64, 8192), np.int32))
    found = op.explain(op.mm_sparse, (4096, 4096), packed)
    assert found.kernel == "sparse-f16-256x128-q3-c2-d-b1" and found.flops == 2 * 4096**3
    assert str(found).startswith("mm_sparse of 4096 x 4096 f16 and 4096 x 4096 2:4 sparse\n")


W = weights(16, 32)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: op.compress_2_4(np.ones((8, 16), np.float16), device="cpu"), op.ArgumentError, "32 groups of four"),
        (lambda: op.compress_2_4(W[:, :8], device="cpu"), op.ShapeError, r"\(16, 8\); pass a multiple of 8 rows and"),
        (lambda: op.compress_2_4(W[:4], device="cpu"), op.ShapeError, r"\(4, 32\); pass a multiple of 8 rows"),
        (lambda: op.compress_2_4(W[0], device="cpu"), op.ShapeError, "it must have rank 2"),
        (lambda: op.compress_2_4(W.astype("f4"), device="cpu"), op.DtypeError, "w has dtype f32; it must have one of"),
        (lambda: op.mm_sparse(W, W), op.DtypeError, "w is of type ndarray; pass the result of op.compress_2_4"),
        (
            lambda: op.mm_sparse(W, op.SparseWeight(W, np.zeros((1, 8), np.int32)), device="cpu"), op.ShapeError,
            "metadata has shape",
        ),
        (
            lambda: op.mm_sparse(W[:, :16], op.compress_2_4(W, device="cpu"), device="cpu"), op.ShapeError,
            "but w has 32 columns",
        ),
        (
            lambda: op.mm_sparse(W.astype(BF16), op.compress_2_4(W, device="cpu"), device="cpu"), op.DtypeError,
            "w.kept has dtype f16; it must have bf16",
        ),
    ],
)  # fmt: skip
def test_errors(call: Any, error: type[op.OpError], words: str) -> None:
    with pytest.raises(error, match=words):
        call()


@pytest.mark.end_to_end
def test_saved_and_moved() -> None:
    """``torch.load`` reads the weights with its safe reader, and ``to`` moves them."""
    torch = pytest.importorskip("torch")
    packed, file = op.compress_2_4(torch.tensor(weights(8, 16)), device="cpu"), io.BytesIO()
    torch.save({"w": packed}, file)
    file.seek(0)
    found = torch.load(file, weights_only=True)["w"]
    assert type(found) is op.SparseWeight and found.shape == packed.shape
    assert all(torch.equal(x, y) if hasattr(x, "ndim") else x == y for x, y in zip(found, packed))
    there = packed.to("meta")
    assert type(there) is op.SparseWeight and all(getattr(x, "is_meta", True) for x in there)
    assert there.shape == packed.shape and packed.to(torch.device("cpu")).kept is packed.kept
    with pytest.raises(op.ArgumentError, match=r"device is torch\.float16; pass a device"):
        packed.to(torch.float16)
    with pytest.raises(op.ArgumentError, match="type ndarray; only torch tensors can be moved"):
        packed._replace(kept=packed.kept.numpy()).to("cpu")


@pytest.mark.end_to_end  # torch.compile is imported.
def test_a_graph_cannot_compress() -> None:
    torch = pytest.importorskip("torch")
    w = torch.from_numpy(W)
    for call, name in (
        (lambda: op.compress_2_4(w, device="cpu"), "compress_2_4"),
        (lambda: op.pack_weight(w.to(torch.int8), w[:, :1], device="cpu"), "pack_weight"),
    ):
        with pytest.raises(RuntimeError, match=f"{name} is not supported in a graph; call it before torch.compile"):
            torch.compile(call, fullgraph=True, backend="eager")()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("gpu", "chip"), [("NVIDIA B200", "sm100"), ("NVIDIA GB300", "sm103"), ("NVIDIA Thor", "sm110")]
)
@pytest.mark.parametrize("has_bias", [True, False])
def test_kernels_of_tensor_memory(gpu: str, chip: str, has_bias: bool) -> None:
    """Random problems are exact; the call copies the metadata to the order of the lanes."""
    rng = np.random.default_rng([ord(chip[-1]), has_bias])
    m, n, k = int(rng.integers(1, 200)), 8 * int(rng.integers(1, 50)), 16 * int(rng.integers(1, 30))
    dtype = BF16 if has_bias else np.float16
    w, x, bias = weights(n, k, dtype), integers(m, k, dtype=dtype), integers(n, dtype=dtype)
    packed, more = op.compress_2_4(w, device="cpu"), bias if has_bias else None
    found = op.explain(op.mm_sparse, x, packed, bias=more, gpu=gpu)
    assert f"-{chip}-sparse" in found.kernel and found.status == "assembled and interpreted, never run on the chip"
    y = op.mm_sparse(x, packed, more, kernel=found.kernel, device="cpu", checks=["race", "uninit", "strict"])
    exact = x.astype(np.float64) @ w.T.astype(np.float64) + bias.astype(np.float64) * has_bias
    np.testing.assert_array_equal(y, exact.astype(dtype))


@pytest.mark.slow
def test_the_gpu_selects_the_kernel() -> None:
    torch = pytest.importorskip("torch")
    w, x, bias = torch.tensor(weights(72, 144)), torch.tensor(integers(3, 5, 144)), torch.tensor(integers(72))
    packed = op.compress_2_4(w, device="cpu")
    with here(Seen(capability=(10, 3))) as seen:
        y = op.mm_sparse(x, packed, bias)
        assert torch.equal(y, (x.double() @ w.double().T + bias.double()).half())
        assert seen.names == ["f16-f16-kk-256x64x128-8-sm103-sparse-bf16"]
        assert torch.equal(op.expand_2_4(packed), w) and seen.names[-1] == "sparse-compress-f16-expand"


def test_kernels_of_tensor_memory_are_explained() -> None:
    packed = op.SparseWeight(np.zeros((4096, 2048), np.float16), np.zeros((64, 8192), np.int32))
    text = str(op.explain(op.mm_sparse, (4096, 4096), packed, gpu="NVIDIA B200"))
    assert "kernel    f16-f16-kk-256x192x128-5-sm100-sparse\n" in text and "twice as many multiply-adds" in text
    # 5 tiles of 256 x 192, of which a block has half, in 32 steps of 128 at 8192 multiply-adds per cycle.
    assert f"MMA       {5 * 128 * 192 * 4096 // 8192} cycles: 5 tiles of 256 x 192 per pair of blocks" in text
    with pytest.raises(op.UnsupportedError, match="wgmma kernels need sm_90, but the GPU is sm_120"):
        op.explain(op.mm_sparse, (64, 4096), packed, gpu="NVIDIA GeForce RTX 5090")
    with pytest.raises(
        op.UnsupportedError, match="kernel 'x-sm100-sparse' does not match this call; omit kernel, or use 'f"
    ):
        op.mm_sparse(integers(2, 32), op.compress_2_4(W, device="cpu"), kernel="x-sm100-sparse", device="cpu")
    with pytest.raises(
        op.UnsupportedError, match="mm_sparse: kernel 'x' does not match this call; omit kernel, or use 's"
    ):
        op.mm_sparse(integers(2, 32), op.compress_2_4(W, device="cpu"), kernel="x", device="cpu")
