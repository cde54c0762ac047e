"""Which kernel ``mm`` takes for which matrices."""

from __future__ import annotations

import pytest

from cute_dialect.kernels.gemm.epilogue import Epilogue
from cute_dialect.op import gemm
from cute_dialect.op.fused import Matrix, bias_mode


def row_major(rows: int, columns: int, item: int = 2, ld: int = 0, address: int = 0) -> Matrix:
    return Matrix((rows, columns), (ld or columns, 1), item, address)


def transposed(m: Matrix) -> Matrix:
    return Matrix(m.shape[::-1], m.stride[::-1], m.item, m.address)


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the kernels that are asked for; nothing is compiled."""
    names: list[str] = []
    monkeypatch.setattr(gemm, "runner", lambda choice: names.append(choice.name))
    monkeypatch.setattr(gemm, "any_rows", lambda *key: names.append("any " + "-".join(key)))
    gemm._kernel_for.cache_clear()
    yield names
    gemm._kernel_for.cache_clear()


def ask(a: Matrix, b: Matrix, out: Matrix, dtype: str = "torch.float16", result: str = "") -> None:
    gemm._kernel_for(a, b, out, dtype, result or dtype)


def test_majors(taken: list[str]) -> None:
    a, b, out = row_major(4096, 4096), row_major(4096, 4096), row_major(4096, 4096)
    for x in (a, transposed(a)):
        for y in (transposed(b), b):  # b is (K, N): a transposed one is contiguous along K
            ask(x, y, out)
    assert [n.split("-")[2] for n in taken] == ["kk", "kn", "mk", "mn"]


@pytest.mark.parametrize(
    ("a", "b", "out"),
    [
        (row_major(100, 63), row_major(63, 64), row_major(100, 64)),  # rows of 126 bytes
        (row_major(100, 64, address=8), row_major(64, 64), row_major(100, 64)),
        (row_major(100, 64), row_major(64, 65), row_major(100, 65)),
        (row_major(100, 64, ld=66), row_major(64, 64), row_major(100, 64)),
    ],
)
def test_rows_that_tma_cannot_read(taken: list[str], a: Matrix, b: Matrix, out: Matrix) -> None:
    ask(a, b, out)
    ask(a, b, out, "torch.bfloat16")
    assert taken == ["any f16-k-n", "any bf16-k-n"]


def test_types(taken: list[str]) -> None:
    f32, f8 = row_major(64, 64, 4), row_major(64, 64, 1)
    ask(f32, transposed(f32), f32, "torch.float32")
    ask(f8, transposed(f8), row_major(64, 64), "torch.float8_e4m3fn", "torch.bfloat16")
    ask(row_major(64, 64), row_major(64, 64), f32, "torch.float16", "torch.float32")
    assert [n.split("-")[:2] for n in taken] == [["tf32", "f32"], ["f8E4M3FN", "bf16"], ["f16", "f32"]]
    with pytest.raises(ValueError, match="expected a result and a bias of float16"):
        ask(f32, f32, f32, "torch.float32", "torch.int32")
    with pytest.raises(ValueError, match="expected elements of float16"):
        ask(f32, f32, f32, "torch.int32")


def test_epilogues_have_kernels_of_their_own(taken: list[str]) -> None:
    a = row_major(4096, 4096)
    e = Epilogue(alpha="arg", bias="n", activation="gelu")
    gemm._kernel_for(a, a, a, "torch.float16", "torch.float16", e)
    assert taken == ["f16-f16-kn-128x256-c2d-alpha-bn-gelu"]


def test_bias_shapes() -> None:
    assert [bias_mode(s, 64, 128) for s in ((128,), (1, 128), (64, 1))] == ["n", "n", "m"]
    with pytest.raises(ValueError, match=r"expected a bias of shape \(128,\) or \(64, 1\), got \(64,\)"):
        bias_mode((64,), 64, 128)


def test_a_matrix_without_a_contiguous_mode(taken: list[str]) -> None:
    with pytest.raises(ValueError, match="contiguous mode, got strides"):
        ask(Matrix((64, 64), (128, 2), 2, 0), row_major(64, 64), row_major(64, 64))


def test_a_prebuilt_kernel_is_loaded_by_its_name(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    from cute_dialect.pipelines import compile

    text = """gpu.module @kernels {
      gpu.func @launch() kernel attributes {known_block_size = array<i32: 32, 1, 1>} { gpu.return }
    }"""
    compile(text, emit="ptx").save(f"{tmp_path}/f16-128x128x32-3-kk")
    monkeypatch.setenv("CUTE_KERNELS", str(tmp_path))
    gemm.any_rows.cache_clear()
    assert "launch" in repr(gemm.any_rows("f16", "k", "k"))
    gemm.any_rows.cache_clear()
