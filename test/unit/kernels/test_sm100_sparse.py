"""The GEMM for sm_100 with a 2:4 sparse A: exact results, every schedule of threads, and mutants."""

# pyright: basic

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

import ml_dtypes
import numpy as np
import pytest
from test_sm100_mutants import CHANGED, CHECKS, REMOVED, SCHEDULES, Mutant

from cute_dialect.interp import InterpError
from cute_dialect.kernels.epilogue.combination import Epilogue
from cute_dialect.kernels.gemm.sm100 import Sm100Config
from cute_dialect.kernels.gemm.sparse import compress, order_by_lanes
from cute_dialect.kernels.gemm.sparse_sm100 import SparseSm100Config, sparse_sm100_text
from cute_dialect.pipelines.compilation import LoweringError
from cute_dialect.pipelines.compiler import compile_lazily

BIAS = Epilogue(bias="m", bias_type="f16")
CONFIGS = {
    "block": Sm100Config(tile=(128, 64), stages=3, sms=1, epilogue=BIAS),
    "pair": Sm100Config(tile=(256, 64), stages=2, sms=2),
    "wide": Sm100Config(tile=(128, 192), stages=2, output="f32"),
    "bf16 of a pair": Sm100Config("bf16", "bf16", tile=(256, 128), stages=4, epilogue=BIAS, chip="sm_103a"),
    "one accumulator": Sm100Config(tile=(128, 224), stages=2, accumulators=1, chip="sm_110a"),
}
"""Name -> the GEMM."""
EXTENTS = {"block": (200, 160, 656), "pair": (300, 130, 528)}
"""M, N and K: several tiles, with rows, columns and K past the ends."""


def problem(name: str, m: int, n: int, k: int) -> tuple[list[np.ndarray], np.ndarray]:
    """Return the arguments of a launch, without C, and the exact result."""
    rng = np.random.default_rng([m, n, k])
    kept = rng.random((m, k // 4, 4)).argsort(-1) < 2
    kind = np.float16 if CONFIGS[name].element == "f16" else ml_dtypes.bfloat16
    whole, b = (rng.integers(-3, 4, kept.shape) * kept).reshape(m, k), rng.integers(-3, 4, (n, k))
    a, metadata = compress(whole.astype(kind), CONFIGS[name].element)
    words = np.full((-(-m // 128) * 128, -(-k // 128) * 8), 0x4444, np.int16)
    words[:m, : metadata.shape[1]] = metadata
    bias = rng.integers(-3, 4, m) * bool(CONFIGS[name].epilogue.bias)
    wanted = whole.astype(float) @ b.T.astype(float) + bias[:, None]
    given = [a, b.astype(kind), order_by_lanes(words)]
    return given + [bias.astype(np.float16)] * bool(CONFIGS[name].epilogue.bias), wanted


def report(name: str, lines: list[str], schedule: str, extents: tuple[int, int, int]) -> str:
    """Return the report of a kernel, or "wrong result", or "" for a correct one."""
    (m, n, _), c = extents, CONFIGS[name]
    (a, b, words, *bias), wanted = problem(name, *extents)
    kind = {"f16": np.float16, "f32": np.float32, "bf16": ml_dtypes.bfloat16}[c.output]
    out = np.full((n, m + 3), np.nan, kind)
    given = (a, b, out[:, :m].T, words, *bias)
    try:
        compiled = compile_lazily("\n".join(lines), "mutant", chip=c.chip)
        compiled.kernel("launch")(*given, device="cpu", checks=CHECKS, schedule=schedule, seed=1)
    except (InterpError, LoweringError) as e:
        return str(e).splitlines()[0]
    assert np.isnan(out[:, m:].astype(np.float32)).all(), "padding was written"
    return "" if np.array_equal(out[:, :m].T, wanted.astype(out.dtype)) else "wrong result"


@cache
def kernel(name: str) -> list[str]:
    return sparse_sm100_text(SparseSm100Config(CONFIGS[name])).splitlines()


@pytest.mark.slow
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("name", EXTENTS)
def test_the_kernel_is_clean(name: str, schedule: str) -> None:
    assert report(name, kernel(name), schedule, EXTENTS[name]) == ""


@pytest.mark.slow
@pytest.mark.parametrize("name", set(CONFIGS) - set(EXTENTS))
def test_other_tiles_and_types(name: str) -> None:
    assert report(name, kernel(name), "round-robin", (264, 200, 272)) == ""


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_random_problems_are_exact(seed: int) -> None:
    rng = np.random.default_rng(seed)
    m, n, k = (int(rng.integers(1, most)) * unit for most, unit in ((50, 8), (200, 1), (30, 16)))
    name = ("block", "pair")[seed % 2]
    assert report(name, kernel(name), SCHEDULES[seed % 4], (m, n, k)) == ""


CHANGED_METADATA = (
    (r"(mbarrier_arrive_expect_tx\(%\w+, )%c(\d+)_i32", r"\1%c2048_i32", "the bytes of the metadata only"),
    (r"(arith.xori %arg\d+, )%c1_i32", r"\1%c0_i32", "one set of metadata"),
    (r"^( *)(.*cute.copy\(.*tmem_copy.*)", r"", "no copy of metadata"),
)
"""Changes of the metadata: a pattern, its replacement, and a name."""


def mutants(name: str) -> Iterator[Mutant]:
    for i, line in enumerate(kernel(name)):
        found = re.search(r"cute_nvgpu\.arch\.(\w+)\(", line)
        if found and found[1] in REMOVED:
            yield Mutant(i, "", f"without {found[1]}")
        for pattern, replacement, what in (*CHANGED, *CHANGED_METADATA):
            if re.search(pattern, line):
                yield Mutant(i, re.sub(pattern, replacement, line), what)


def caught(name: str, x: Mutant) -> str:
    """Return the first report of a mutant, or "" if no schedule has one."""
    lines = [*kernel(name)[: x.line], x.replacement, *kernel(name)[x.line + 1 :]]
    return next((found for s in SCHEDULES if (found := report(name, lines, s, EXTENTS[name]))), "")


EQUIVALENT = {
    0: "tcgen05.alloc is synchronous",
    1: "tcgen05.alloc is synchronous",
    2: "the fence after the wait for the first stage of the tile precedes the first copy, too",
    -1: "tcgen05.dealloc is synchronous, and all loads are complete at the barrier",
}
"""Index among the fences -> reason why the kernel is correct without it."""


@pytest.mark.slow
def test_no_mutant_is_missed() -> None:
    found = list(mutants("block"))
    fences = [x for x in found if x.what == "without tcgen05_fence"]
    assert {what for *_, what in CHANGED_METADATA} <= {x.what for x in found}
    assert {x for x in found if not caught("block", x)} == {fences[i] for i in EQUIVALENT}


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (Sm100Config(tile=(64, 64)), "a tile of 64 x 64 with 2 accumulators is not supported; M must be 128"),
        (Sm100Config(tile=(128, 256)), "a tile of 128 x 256 with 2 accumulators is not supported"),
        (Sm100Config("tf32", "f32", tile=(128, 64)), "element 'tf32' with output 'f32' is not supported"),
        (Sm100Config(tile=(128, 64), batch=True), "a sparse GEMM has K-major operands, and no batch"),
        (Sm100Config(tile=(128, 64), epilogue=Epilogue(bias="n")), "use a bias per row, or none"),
        (Sm100Config(tile=(128, 192), stages=4), "stages is 4; use 2 to 3 for a tile of 128 x 192"),
    ],
)
def test_other_configurations_are_refused(config: Sm100Config, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        SparseSm100Config(config).check()
