"""The kernels that ``mm`` and ``bmm`` choose."""

from __future__ import annotations

from typing import Any

import pytest

from cute_dialect.kernels.epilogue.combination import Epilogue
from cute_dialect.op.arrays.dtypes import check_types
from cute_dialect.op.arrays.operand_views import Matrix
from cute_dialect.op.errors import DtypeError, ShapeError
from cute_dialect.op.execute import kernels as compiled
from cute_dialect.op.problems.operands import bias_mode
from cute_dialect.op.select.gemm_dispatch import any_config, way_of


def row_major(rows: int, columns: int, item: int = 2, ld: int = 0, address: int = 0) -> Matrix:
    return Matrix((rows, columns), (ld or columns, 1), item, address)


def transposed(m: Matrix) -> Matrix:
    return Matrix(m.shape[::-1], m.stride[::-1], m.item, m.address)


def ask(a: Matrix, b: Matrix, out: Matrix, dtype: str = "f16", result: str = "", **more: Any) -> str:
    """Return the name of the chosen kernel."""
    way = way_of(a, b, out, dtype, result or dtype, **more)
    p = way.problem
    return way.choice.name if way.choice is not None else f"any {p.element}-{p.major_a}-{p.major_b}"


def test_majors() -> None:
    a, b, out = row_major(4096, 4096), row_major(4096, 4096), row_major(4096, 4096)
    # b has shape (K, N), so its transpose is K-major
    taken = [ask(x, y, out) for x in (a, transposed(a)) for y in (transposed(b), b)]
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
def test_rows_not_readable_by_tma(a: Matrix, b: Matrix, out: Matrix) -> None:
    """Padded copies and wgmma take less time than loads of single elements."""
    odd = a._replace(address=2), b._replace(address=2)  # the kernel that pads rows reads words
    assert [ask(*odd, out, t) for t in ("f16", "bf16")] == ["any f16-k-n", "any bf16-k-n"]
    for result, more in (("f16", {}), ("f32", {}), ("f16", {"arithmetic": "f16"}), ("f16", {"arithmetic": "two"})):
        way = way_of(a, b, out._replace(item=4) if result == "f32" else out, "f16", result, **more)
        assert way.choice is not None and way.copied  # Other accumulator and result types need kernels with TMA.


def test_long_unaligned_gemms_use_split_k() -> None:
    """A 171x38x40824 GEMM of misaligned rows would use only 12 blocks of 40824 iterations without split-K."""
    a, b, out = transposed(row_major(40824, 171)), row_major(40824, 38), row_major(171, 38)
    way = way_of(a, b, out, "bf16", "bf16")
    assert way.choice is not None and way.choice.parts > 1 and way.copied == ("a", "b")
    assert ask(row_major(171, 6), row_major(6, 38), out, "bf16").startswith("any")


def test_padded_copies_of_unaligned_rows() -> None:
    """Copies take less time than loads of single elements along a long K; rows at odd addresses cannot be padded."""
    b, out = row_major(640, 38), row_major(171, 38)
    way = way_of(row_major(171, 640), b, out, "bf16", "bf16")
    assert way.choice is not None and way.choice.config.direct and way.copied == ("b",)
    assert ask(row_major(171, 640), b._replace(address=2), out, "bf16").startswith("any")
    tall = row_major(1 << 21, 641)  # more than 2 GiB
    assert ask(tall, row_major(641, 64), row_major(1 << 21, 64), "bf16").startswith("any")


def test_types() -> None:
    f32, f8 = row_major(64, 64, 4), row_major(64, 64, 1)
    taken = [
        ask(f32, transposed(f32), f32, "f32", arithmetic="tf32"),
        ask(f8, transposed(f8), row_major(64, 64), "f8E4M3FN", "bf16"),
        ask(row_major(64, 64), row_major(64, 64), f32, "f16", "f32"),
    ]
    assert [n.split("-")[:2] for n in taken] == [["tf32", "f32"], ["f8E4M3FN", "bf16"], ["f16", "f32"]]
    with pytest.raises(DtypeError, match="a result of i32 is not supported for f32 operands; use f16, bf16 or f32"):
        check_types("f32", "i32", "tf32")
    with pytest.raises(DtypeError, match="operands of i32 are not supported; use f16, bf16"):
        check_types("i32", "i32")


def test_epilogues_have_kernels_of_their_own() -> None:
    a = row_major(4096, 4096)
    e = Epilogue(alpha="arg", bias="n", activation="gelu")
    assert ask(a, a, a, epilogue=e) == ask(a, a, a) + "-alpha-bn-gelu"
    odd = row_major(4096, 4097)
    way = way_of(a, odd, odd, "f16", "f16", e)
    # mma.sync reads misaligned rows of 4097 elements and applies the epilogue
    assert not way.by_torch and way.choice is None


def test_copied_operands() -> None:
    """With 8- and 32-bit elements, one operand must be K-major. The other one is not copied."""
    f32 = row_major(2048, 2048, 4)
    odd = row_major(2048, 2049, 4)
    wide = row_major(2048, 4096, 4)
    for a, b, out, copied, majors in (
        (f32, transposed(f32), f32, (), "kk"),
        (f32, f32, f32, (), "kn"),
        (transposed(f32), transposed(f32), f32, (), "mk"),
        (transposed(f32), f32, f32, ("b",), "mk"),
        (transposed(f32), wide, wide, ("a",), "kn"),
        (odd, transposed(odd), f32, ("a", "b"), "kk"),
        (f32, transposed(row_major(2049, 2048, 4)), odd, (), "kk"),
        (f32._replace(address=4), f32, f32, ("a",), "kn"),
    ):
        way = way_of(a, b, out, "f32", "f32", arithmetic="tf32")
        assert way.copied == copied and way.problem.major_a + way.problem.major_b == majors
        assert way.choice is not None and way.choice.config.direct == (out is odd)
        # Operands of the exact f32 kernel are copied, unless copies take longer, as for these 17 columns of tiles.
        way = way_of(a, b, out, "f32", "f32")
        wanted = (("a", a, 1), ("b", b, 1), ("out", out, 1))
        large = tuple([n for n, x, mode in wanted if not (x.along(mode) and x.suits_tma())])
        assert way.copied == (() if out is odd else large)
        assert way.kernel.name == ("f32-f32-kk-exact-64x64" if out is odd else "f32-f32-kn-exact")
    # Epilogues that the transposed problem, whose rows go through registers, does not support.
    source = Epilogue(beta="arg")
    assert way_of(f32, f32, f32, "f32", "f32", source, arithmetic="tf32").copied == ("b",)
    assert way_of(transposed(f32), transposed(f32), f32, "f32", "f32", source, arithmetic="tf32").copied == ()
    odd_f16 = row_major(2048, 50257)
    way = way_of(row_major(2048, 2048), transposed(row_major(50257, 2048)), odd_f16, "f16", "f16")
    assert way.copied == () and way.choice is not None and way.choice.config.direct
    f8 = row_major(2048, 2048, 1)
    assert way_of(f8, f8, row_major(2048, 2048), "f8E4M3FN", "bf16").copied == ()
    assert way_of(f8, f8, f8, "f8E4M3FN", "f8E4M3FN").copied == ("b",)  # 8-bit results cannot be stored column-major
    small = row_major(65, 67, 4)
    assert ask(small, transposed(small), row_major(65, 65, 4), "f32") == "any f32-k-k"
    assert ask(small, transposed(small), row_major(65, 65, 4), "f32", arithmetic="tf32") == "any tf32-k-k"
    assert ask(row_major(65, 67, 8), row_major(67, 65, 8), row_major(65, 65, 8), "f64") == "any f64-k-n"


def test_batches() -> None:
    """Some batches are folded into one GEMM. Check the problem that the kernel gets."""
    a, out = row_major(64, 32)._replace(matrices=8, step=64 * 32), row_major(64, 48)._replace(matrices=8, step=64 * 48)
    b = row_major(32, 48)
    for x, y, z, folded, sizes in (
        (a, b, out, True, (512, 48, 32, 1)),
        (a, b._replace(matrices=8, step=32 * 48), out, False, (64, 48, 32, 8)),
        (a._replace(step=0), b._replace(matrices=8, step=32 * 48), out, False, (64, 48, 32, 8)),
        (a._replace(step=80 * 32), b, out, False, (64, 48, 32, 8)),
        (a, b, out._replace(step=80 * 48), False, (64, 48, 32, 8)),
        (transposed(row_major(32, 64))._replace(matrices=8, step=64 * 32), b, out, False, (64, 48, 32, 8)),
        (a._replace(matrices=1, step=0), b, out._replace(matrices=1, step=0), True, (64, 48, 32, 1)),
    ):
        way = way_of(x, y, z, "f16", "f16")
        p = way.problem
        assert way.folded == folded and (p.m, p.n, p.k, p.matrices) == sizes
        assert way.choice is not None and way.choice.config.batch == (p.matrices > 1)
        way.choice.config.check()
    # Epilogues that index rows need row indices within one matrix, so the batch is not folded.
    for e in (Epilogue(bias="m"), Epilogue(hook=lambda x, row, column: x)):
        assert not way_of(a, b, out, "f16", "f16", e).folded
    assert way_of(a, b, out, "f16", "f16", Epilogue(bias="n")).folded
    odd = row_major(64, 33)._replace(matrices=8, step=64 * 33)
    way = way_of(odd, b._replace(shape=(33, 48), matrices=8, step=33 * 48), out, "f16", "f16")
    assert way.choice is not None and way.copied == ("a",) and way.problem.matrices == 8
    # Matrices that do not start at a 16-byte boundary.
    steps = a._replace(step=64 * 32 + 4)
    assert way_of(steps, b._replace(matrices=8, step=32 * 48), out, "f16", "f16").copied == ("a",)


def test_bias_shapes() -> None:
    assert [bias_mode("mm", s, 64, 128) for s in ((128,), (1, 128), (64, 1))] == ["n", "n", "m"]
    with pytest.raises(ShapeError, match=r"mm: bias has shape \(64,\); pass a bias of \(128,\), \(1, 128\)"):
        bias_mode("mm", (64,), 64, 128)


def test_a_matrix_without_a_contiguous_mode() -> None:
    with pytest.raises(ValueError, match=r"a matrix has strides \(128, 2\); one of them must be 1"):
        ask(Matrix((64, 64), (128, 2), 2, 0), row_major(64, 64), row_major(64, 64))


def test_a_prebuilt_kernel_is_loaded_by_its_name(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    from cute_dialect.pipelines import compile

    text = """gpu.module @kernels {
      gpu.func @launch() kernel attributes {known_block_size = array<i32: 32, 1, 1>} { gpu.return }
    }"""
    compile(text, emit="ptx").save(f"{tmp_path}/f16-128x128x32-3-kk")
    monkeypatch.setenv("CUTE_KERNELS", str(tmp_path))
    compiled.kernel_of.cache_clear()
    config = any_config("f16", "f16", ("k", "k"), False, Epilogue())
    assert "launch" in repr(compiled.kernel_of(config))
    compiled.kernel_of.cache_clear()
