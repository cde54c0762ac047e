"""Batched GEMMs that the GPU tests run with ``bmm``, and the kernels selected for them."""

from __future__ import annotations

from collections.abc import Iterator

from cute_dialect.kernels.gemm.ampere import AmpereConfig, ampere_gemm_text
from cute_dialect.op.arrays.operand_views import Matrix
from cute_dialect.op.execute.kernels import text_of
from cute_dialect.op.select.gemm_dispatch import way_of

SHAPES = [
    (32, 256, 320, 128), (128, 128, 128, 64), (16, 1024, 1024, 256), (3, 200, 264, 72), (5, 33, 67, 31),
    (1, 64, 64, 64),
]  # fmt: skip
"""(L, M, N, K)"""
FOR_ALL = [("all", "all"), ("all", "one"), ("one", "all")]
"""Each of A and B is either one matrix per batch entry ("all") or one matrix for the whole batch ("one")."""
GPU = "NVIDIA H200"


def texts() -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each kernel, for f16 with contiguous rows."""
    found: dict[str, str] = {}
    for matrices, m, n, k in SHAPES:
        for of_a, of_b in FOR_ALL:
            a, b, out = (
                Matrix(shape, (shape[1], 1), 2, 0, matrices if of == "all" else 1, shape[0] * shape[1] * (of == "all"))
                for shape, of in (((m, k), of_a), ((k, n), of_b), ((m, n), "all"))
            )
            way = way_of(a, b, out, "f16", "f16", None, GPU)
            if way.choice is not None:
                found[way.choice.name] = text_of(way.choice)
            else:
                config = AmpereConfig("f16", majors=("k", "mn"), batch=way.problem.matrices > 1)
                found[config.name] = ampere_gemm_text(config)
    yield from found.items()
