"""Tile choice for GEMMs without wgmma, and the choice between such a kernel and copying the operands."""

from __future__ import annotations

import random

import pytest

from cute_dialect.kernels.epilogue.combination import Epilogue
from cute_dialect.kernels.gemm.config import BITS
from cute_dialect.kernels.gemm.mma_sync import WarpConfig
from cute_dialect.op.arrays.operand_views import Matrix
from cute_dialect.op.select.gemm_dispatch import Plan, any_config, way_of
from cute_dialect.op.select.kernel_choice import Problem
from cute_dialect.op.select.mma_sync_model import Cut, copies, cut_for, predict_cut

ELEMENTS = (("f64", "f64"), ("tf32", "f32"), ("i8", "i32"), ("ui8_i8", "i32"), ("f8E4M3FN", "bf16"))
SHARED = 227 * 1024


def lying(m: int, n: int, k: int, majors: str, item: int, pad: int = 0) -> tuple[Matrix, Matrix]:
    """Return A and B with the given majors, and with rows padded by ``pad`` elements."""
    a = Matrix((m, k), (k + pad, 1) if majors[0] == "k" else (1, m + pad), item, 0)
    return a, Matrix((k, n), (1, k + pad) if majors[1] == "k" else (n + pad, 1), item, 0)


def way(m: int, n: int, k: int, dtype: str, majors: str = "mn", pad: int = 0) -> Plan:
    """Return the dispatch of ``mm`` on an H200."""
    item, output = (4, "f32") if dtype == "f32" else (1, "i32" if dtype == "i8" else "bf16")
    out = Matrix((m, n), (n + pad, 1), 4 if output != "bf16" else 2, 0)
    return way_of(*lying(m, n, k, majors, item, pad), out, dtype, output, arithmetic="tf32" if dtype == "f32" else "")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_each_cut_is_a_kernel(seed: int) -> None:
    """For random problems, the tile fits into shared memory and every split-K slice has at least one K step."""
    rng = random.Random(seed)
    for element, output in ELEMENTS:
        m, n, k = (round(2 ** rng.uniform(0, 14)) for _ in range(3))
        p = Problem(m, n, k, element, output, rng.choice("km"), rng.choice("kn"), rng.choice((1, 1, 7)))
        cut = cut_for(p)
        config = any_config(element, output, (p.major_a, p.major_b), p.matrices > 1, Epilogue(), cut)
        assert isinstance(config, WarpConfig)
        config.check()
        assert (config.tile, config.parts, config.stages) == (cut.tile, cut.parts, cut.stages)
        item = BITS[element] // 8
        pads = [(32 if item == 8 or (major == "mn" and item == 4) else 16) // item for major in config.majors]
        lines = [
            rows * (config.depth + pad) if major == "k" else (rows + pad) * config.depth
            for rows, pad, major in zip(cut.tile, pads, config.majors)
        ]
        assert sum(lines) * item * cut.stages <= SHARED and sum(lines) * item <= cut.stage(p)
        assert cut.parts == 1 or 2 * cut.parts <= -(-k // config.depth)


@pytest.mark.slow
def test_split_k() -> None:
    of_few = cut_for(Problem(64, 64, 8192, "tf32", "f32", "m", "n"))
    assert of_few.parts > 4 and cut_for(Problem(64, 64, 8192, "tf32", "f32"), share=False).parts == 1
    assert cut_for(Problem(64, 64, 64, "tf32", "f32")).parts == 1
    many = Problem(4096, 4096, 2048, "f64", "f64")
    assert cut_for(many).parts == 1 and cut_for(many).tile == (128, 128)


def test_predicted_time_grows_with_the_work() -> None:
    p = Problem(512, 512, 512, "f8E4M3FN", "bf16")
    cut = Cut((64, 64), (2, 2))
    least = predict_cut(cut, p)
    for more in (p._replace(k=4096), p._replace(m=8192), p._replace(matrices=64), p._replace(major_a="m", k=2048)):
        assert predict_cut(cut, more) > least
    assert predict_cut(cut, p._replace(k=4096), single=True) > predict_cut(cut, p._replace(k=4096))
    integers = p._replace(k=4096, element="i8", output="i32")
    assert predict_cut(cut._replace(stages=8), integers) < predict_cut(cut._replace(stages=2), integers)
    assert copies([1000, 2000], transposed=True) > copies([3000], transposed=True) > copies([3000], transposed=False)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["f32", "f8E4M3FN"])
def test_small_products_are_not_copied(dtype: str) -> None:
    small, large = way(320, 192, 96, dtype), way(4096, 8192, 2048, dtype)
    assert small.choice is None and isinstance(small.kernel, WarpConfig) and not small.copied
    assert large.choice is not None and len(large.copied) == 1


@pytest.mark.slow
def test_unaligned_bytes_are_copied_earlier() -> None:
    """8-bit floats that are not K-major are loaded byte by byte, so copying pays off for smaller problems than with
    tf32.
    """
    sizes = 1024, 8192, 256
    assert way(*sizes, "f8E4M3FN").copied == ("a",) and way(64, 64, 64, "f8E4M3FN").copied == ()
    p = Problem(*sizes, "f8E4M3FN", "bf16", "m", "n")
    assert predict_cut(cut_for(p), p) > predict_cut(cut_for(p), p._replace(major_a="k", major_b="k"))


@pytest.mark.slow
def test_lines_that_tma_cannot_read() -> None:
    """One launch pads misaligned rows, or a kernel without TMA reads them directly."""
    assert way(2049, 2049, 2049, "i8", "kk", 0).copied == ("a", "b")
    assert way(65, 65, 65, "f32", "kn", 0).copied == ()
