"""The Hopper GEMM on the CPU interpreter: every operand layout and type, and sizes that do not divide into tiles."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from cute_dialect.kernels.gemm import gemm_text
from cute_dialect.kernels.gemm.config import GemmConfig, SplitConfig
from cute_dialect.kernels.gemm.hopper import launch
from cute_dialect.op.select.gemm_dispatch import choose
from cute_dialect.op.select.kernel_choice import Choice, Problem
from cute_dialect.pipelines import compile
from cute_dialect.runtime.launch_plan import LaunchError

BASE = GemmConfig()
SINGLE = GemmConfig(cluster_m=1, deferred=False)
FP8 = GemmConfig(element="f8E4M3FN", output="bf16", tile=(128, 256, 128))
CASES = {
    "multi": (BASE, (200, 264, 136)),
    "one tile of K": (BASE, (264, 520, 64)),
    "bf16": (BASE._replace(element="bf16", output="bf16"), (136, 264, 72)),
    "single": (SINGLE, (200, 264, 136)),
    "A M-major": (BASE._replace(major_a="m"), (200, 264, 136)),
    "B N-major": (BASE._replace(major_b="n"), (200, 264, 136)),
    "both MN-major": (SINGLE._replace(major_a="m", major_b="n"), (200, 264, 136)),
    "batch": (BASE._replace(batch=True), (136, 264, 72, 3)),
    "f16 in, bf16 out": (SINGLE._replace(output="bf16"), (72, 264, 136)),
    "fp8": (FP8, (200, 264, 272)),
    "fp8, two levels": (FP8._replace(tile=(128, 128, 128), promote=True, deferred=False), (200, 264, 272)),
    "fp8, two levels, deferred": (
        FP8._replace(tile=(128, 48, 128), promote=True, deferred=True, sms=2),
        (200, 264, 272),
    ),
    "fp8, two accumulators": (FP8._replace(tile=(64, 64, 128), promote=True, sms=2), (200, 136, 400)),
    "fp8, two accumulators, two warpgroups": (
        FP8._replace(tile=(128, 64, 128), deferred=False, promote=True, sms=2),
        (264, 136, 656),
    ),
    "tf32": (GemmConfig(element="tf32", output="f32", tile=(128, 256, 32), deferred=False), (200, 264, 72)),
    "A shared along N": (BASE._replace(cluster_m=1, cluster_n=2), (200, 520, 136)),
    "three chunks a tile": (BASE._replace(tile=(128, 192, 64), cluster_m=1, sms=2), (300, 400, 136)),
    "64 rows": (SINGLE._replace(tile=(64, 256, 64)), (72, 264, 136)),
}
DTYPES = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "tf32": np.float32,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
}  # fmt: skip


def operands(c: GemmConfig, shape: tuple[int, ...], *, integers: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return A (L, M, K), B (L, N, K) and a poisoned C (L, M, N)."""
    m, n, k, matrices = (*shape, 1)[:4]
    rng = np.random.default_rng(sum(shape))

    def matrix(rows: int) -> np.ndarray:
        values = rng.integers(-2, 3, (matrices, rows, k)) if integers else rng.standard_normal((matrices, rows, k))
        return values.astype(DTYPES[c.element])

    return matrix(m), matrix(n), np.full((matrices, m, n), np.nan, DTYPES[c.output])


def with_major(x: np.ndarray, k_major: bool) -> np.ndarray:
    """Return the same values with either of the last two modes contiguous."""
    return x if k_major else x.transpose(0, 2, 1).copy().transpose(0, 2, 1)


@pytest.mark.end_to_end
@pytest.mark.sample("single-integers")
@pytest.mark.parametrize("integers", [True, False], ids=["integers", "normal"])
@pytest.mark.parametrize("name", CASES)
def test_product(name: str, integers: bool) -> None:
    c, shape = CASES[name]
    module = compile(gemm_text(c), filename=f"{name}.mlir", emit="base")
    a, b, out = operands(c, shape, integers=integers)
    given = (with_major(a, c.major_a == "k"), with_major(b, c.major_b == "k"), out)
    arguments = [x.transpose(1, 2, 0) if c.batch else x[0] for x in given]
    module.kernel("launch")(*arguments, device="cpu")
    exact = a.astype(np.float64) @ b.astype(np.float64).transpose(0, 2, 1)
    got = out.astype(np.float64)
    if integers:
        assert (got == exact.astype(DTYPES[c.output]).astype(np.float64)).all()
        return
    # The tensor core truncates each tf32 factor to 10 mantissa bits.
    limit = (
        2 ** (-9 if c.element == "tf32" else 0) if c.element == "tf32" else 2 * float(ml_dtypes.finfo(out.dtype).eps)
    )
    assert np.abs(got - exact).max() <= limit * 4 * shape[2] ** 0.5


@pytest.mark.slow
@pytest.mark.parametrize("cluster_n", [1, 2])
def test_split_k(cluster_n: int) -> None:
    """Two runs on one workspace are bitwise equal, so the first run must reset the counters."""
    config = SplitConfig(SplitConfig().base._replace(cluster_n=cluster_n, tile=(128, 128, 64), stages=6), 2)
    choice = Choice(config.base, config.parts)
    module = compile(gemm_text(config), emit="base")
    shape = (136, 264, 328)
    a, b, out = (x[0] for x in operands(config.base, shape, integers=False))
    floats, counters = choice.workspace(*shape[:2])
    workspace, counts = np.full(floats, np.nan, np.float32), np.zeros(counters, np.int32)
    results: list[bytes] = []
    for schedule in ("round-robin", "random"):
        out[:] = np.nan
        module.kernel("launch")(a, b, out, workspace, counts, device="cpu", schedule=schedule)
        assert (counts == 0).all()
        results.append(out.tobytes())
    exact = a.astype(np.float64) @ b.astype(np.float64).T
    assert np.abs(out - exact).max() <= 8e-3 * shape[2] ** 0.5
    assert results[0] == results[1]


PINGPONG = SINGLE._replace(schedule="pingpong", tile=(64, 256, 64))
TURNS = {
    "64x256": (PINGPONG._replace(sms=2), (200, 264, 136)),
    "an odd number of tiles": (PINGPONG._replace(sms=1), (136, 200, 328)),
    "one tile": (PINGPONG, (64, 64, 200)),
    "128x128, cluster": (PINGPONG._replace(tile=(128, 128, 64), stages=5, cluster_m=2, sms=2), (300, 264, 136)),
    "192 columns": (PINGPONG._replace(tile=(64, 192, 64), sms=2), (200, 264, 40)),
    "f32": (PINGPONG._replace(tile=(128, 128, 64), output="f32", sms=2), (200, 264, 72)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", TURNS)
def test_pingpong_consumers(name: str) -> None:
    c, shape = TURNS[name]
    module = compile(gemm_text(c), filename="pingpong.mlir", emit="base")
    a, b, out = (x[0] for x in operands(c, shape, integers=True))
    module.kernel("launch")(a, b, out, device="cpu", checks=("race", "sync", "oob", "uninit"))
    assert (out == (a.astype(np.float64) @ b.astype(np.float64).T).astype(out.dtype)).all()


STREAM = SINGLE._replace(stream_k=True, tile=(64, 64, 64))
SHARED = {
    "one tile of four, by three blocks": (STREAM._replace(sms=3), (64, 256, 448)),
    "two tiles of five, by three blocks": (STREAM._replace(sms=3, deferred=True), (64, 320, 456)),
    "three of eight, by five": (STREAM._replace(sms=5, early=False), (100, 256, 320)),
    "all of two, by five": (STREAM._replace(sms=5), (64, 128, 448)),
    "fewer steps than blocks": (STREAM._replace(sms=7), (64, 64, 136)),
    "too few steps to share": (STREAM._replace(sms=3), (64, 256, 64)),
    "nothing left over": (STREAM._replace(sms=2), (64, 256, 136)),
    "a cluster": (BASE._replace(stream_k=True, tile=(64, 128, 64), sms=6), (250, 256, 200)),
    "f32": (STREAM._replace(sms=3, output="f32"), (64, 256, 320)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SHARED)
def test_the_last_wave_is_shared(name: str) -> None:
    """Two runs on one workspace are bitwise equal, so the first run must reset the flags."""
    c, (m, n, k) = SHARED[name]
    floats, flags = Choice(c).workspace(m, n)
    kernel = compile(gemm_text(c), filename="stream.mlir", emit="base").kernel("launch")
    a, b, out = (x[0] for x in operands(c, (m, n, k), integers=False))
    workspace, seen = np.full(floats, np.nan, np.float32), np.zeros(flags, np.int32)
    results: set[bytes] = set()
    for schedule in ("round-robin", "random"):
        out[:] = np.nan
        kernel(a, b, out, workspace, seen, device="cpu", schedule=schedule, checks=("sync", "oob", "uninit"))
        assert (seen == 0).all()
        results.add(out.tobytes())
    exact = a.astype(np.float64) @ b.astype(np.float64).T
    assert np.abs(out - exact).max() <= 8e-3 * k**0.5
    assert len(results) == 1
    shares = not any(word in name for word in ("too few", "nothing"))
    assert np.isnan(workspace).all() != shares


@pytest.mark.slow
def test_stream_k_wave_has_no_race() -> None:
    c, (m, n, k) = SHARED["one tile of four, by three blocks"]
    floats, flags = Choice(c).workspace(m, n)
    kernel = compile(gemm_text(c), filename="stream.mlir", emit="base").kernel("launch")
    a, b, out = (x[0] for x in operands(c, (m, n, k), integers=True))
    kernel(a, b, out, np.zeros(floats, np.float32), np.zeros(flags, np.int32), device="cpu", checks=("race",))
    assert (out == (a.astype(np.float64) @ b.astype(np.float64).T).astype(out.dtype)).all()


def test_the_generator_prints_the_example() -> None:
    example = Path(__file__).parents[2] / "examples" / "gemm_sm90.mlir"
    assert gemm_text() == example.read_text()


@pytest.mark.parametrize(
    ("problem", "name"),
    [
        (Problem(8192, 8192, 8192), "f16-f16-kk-128x224-c2dw"),
        (Problem(2048, 2048, 2048, "bf16", "bf16"), "bf16-bf16-kk-128x128-c1t-q6"),
        (Problem(128, 8192, 8192), "f16-f16-kk-128x64-y-q9.10-h"),
        (Problem(8192, 8192, 8192, "f8E4M3FN", "bf16"), "f8E4M3FN-bf16-kk-128x256-c2dw"),
        (Problem(4096, 4096, 4096, major_a="m", major_b="n"), "f16-f16-mn-128x256-c2d"),
    ],
)
def test_kernels_of_measured_problems(problem: Problem, name: str) -> None:
    choice = choose(problem, gpu="NVIDIA H200")
    assert choice.name == name
    (choice.skinny or choice.config).check()


def test_rows_that_tma_cannot_read_are_refused_with_the_reason() -> None:
    module = compile(gemm_text(SINGLE), emit="base")
    a, b, c = np.zeros((64, 60), np.float16), np.zeros((256, 60), np.float16), np.zeros((64, 256), np.float16)
    with pytest.raises(LaunchError, match=r"multiple of 8"):
        module.kernel("launch")(a, b, c, device="cpu")
    with pytest.raises(LaunchError, match="A and B must have the same K"):
        module.kernel("launch")(np.zeros((64, 64), np.float16), np.zeros((256, 72), np.float16), c, device="cpu")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"tile": (128, 256, 16)}, "tile K is 16; it must be 64 elements"),
        ({"tile": (100, 256, 64)}, "M must be 64, 128, 192 or 256"),
        ({"tile": (128, 200, 64)}, "tile N is 200; it must be a multiple of 16"),
        ({"tile": (128, 264, 64)}, "a tile of 128 x 264 is not supported"),
        ({"tile": (256, 256, 64)}, "a tile of 256 x 256 needs 384 accumulator registers per thread; at most 192"),
        ({"tile": (192, 128, 64), "deferred": False, "promote": True, "stages": 3}, "per thread; at most 96"),
        (
            {"tile": (128, 16, 64), "cluster_m": 4},
            "the tile has 16 columns; 4 blocks share them, so use a multiple of 32",
        ),
        ({"major_c": "k"}, "major_c 'k' is not supported"),
        ({"output": "f32"}, "deferred=True needs an output of at most 16 bits"),
        ({"output": "f32", "deferred": False, "major_c": "m"}, "major_c 'm' is not supported for output f32"),
        ({"buffers": 0}, "buffers is 0; it must be at least 1"),
        ({"cluster_m": 3}, "a cluster of 3 x 1 blocks is not supported"),
        ({"cluster_m": 4, "cluster_n": 4}, "a cluster of 4 x 4 blocks is not supported"),
        ({"stages": 5}, "at most 232448 are available"),
        ({"element": "f8E4M3FN", "tile": (128, 256, 128), "major_b": "n"}, "16-bit elements only"),
        ({"element": "f64"}, "element 'f64' is not supported"),
        ({"stream_k": True, "batch": True}, "stream_k needs the cooperative schedule"),
        ({"schedule": "turns"}, "schedule is 'turns'"),
        ({"schedule": "pingpong", "tile": (64, 256, 64)}, "without deferred or promote"),
        ({"schedule": "pingpong", "deferred": False}, "at most 128 x 128 or 64 x 256"),
    ],
)
def test_invalid_configurations_are_rejected(change: dict[str, object], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        gemm_text(BASE._replace(**change))  # type: ignore[arg-type]


@pytest.mark.slow
def test_tma_rounds_to_tf32() -> None:
    """A TMA load of tf32 elements rounds to nearest, ties to even."""
    c = CASES["tf32"][0]
    module = compile(gemm_text(c), emit="base")
    a, b, out = np.zeros((64, 32), np.float32), np.eye(256, 32, dtype=np.float32), np.zeros((64, 256), np.float32)
    a[0, :4] = [1 + 2**-11, 1 + 3 * 2**-11, 1 + 2**-11 + 2**-20, -1 - 2**-12]
    module.kernel("launch")(a, b, out, device="cpu")
    assert out[0, :4].tolist() == [1.0, 1 + 2**-9, 1 + 2**-10, -1.0]


COLUMNS = SINGLE._replace(tile=(64, 64, 64), major_c="m", sms=2)
M_MAJOR = SINGLE._replace(tile=(64, 64, 64), major_a="m", sms=2)
ARRAYS = {
    "two blocks, many tiles": (GemmConfig(tile=(64, 128, 64), stages=3, sms=2), (200, 136, 200)),
    "batch": (M_MAJOR._replace(batch=True), (72, 72, 72, 3)),
    "turns": (M_MAJOR._replace(schedule="pingpong"), (200, 136, 72)),
    "the last wave shared": (M_MAJOR._replace(stream_k=True, sms=5), (104, 256, 320)),
    "K shared": (SplitConfig(SINGLE._replace(tile=(64, 128, 64), serpentine=False), 2), (104, 136, 200)),
    "K in more parts than chunks": (
        SplitConfig(SINGLE._replace(tile=(64, 64, 64), serpentine=False), 6),
        (70, 72, 456),
    ),
    "K in parts, major": (
        SplitConfig(M_MAJOR._replace(tile=(64, 128, 64), sms=132, major_b="n", serpentine=False), 4),
        (64, 136, 328),
    ),
    "A shared along N": (BASE._replace(tile=(128, 64, 64), cluster_m=1, cluster_n=2, sms=2), (136, 200, 136)),
    "tf32": (SINGLE._replace(element="tf32", output="f32", tile=(64, 64, 32)), (72, 72, 40)),
    "a last chunk of 16 columns": (SINGLE._replace(tile=(64, 80, 64), sms=2), (100, 136, 136)),
    "48 columns": (SINGLE._replace(tile=(128, 48, 64), sms=2), (130, 136, 72)),
    "80 columns, N-major": (SINGLE._replace(tile=(64, 80, 64), major_b="n", sms=2), (100, 136, 136)),
    "96 columns of a cluster": (SINGLE._replace(tile=(64, 96, 64), cluster_m=2, sms=4), (200, 136, 136)),
    "tf32, 48 columns": (SINGLE._replace(element="tf32", output="f32", tile=(64, 48, 32), sms=2), (72, 72, 40)),
    "256 rows": (SINGLE._replace(tile=(256, 80, 64), sms=2), (300, 136, 72)),
    "256 rows, deferred": (
        SINGLE._replace(tile=(256, 112, 64), sms=2, deferred=True, buffers=1),
        (300, 136, 72),
    ),
    "256 rows in a cluster": (SINGLE._replace(tile=(256, 48, 64), cluster_n=2, sms=4), (300, 136, 136)),
    "256 rows, the last wave shared": (SINGLE._replace(tile=(256, 48, 64), sms=3, stream_k=True), (256, 96, 448)),
    "a cluster of four along M": (SINGLE._replace(tile=(64, 64, 64), cluster_m=4, sms=8), (500, 136, 136)),
    "a cluster along M and N": (
        SINGLE._replace(tile=(64, 64, 64), cluster_m=2, cluster_n=2, sms=8, early=False),
        (300, 304, 200),
    ),
    "a cluster of 2 x 4": (
        SINGLE._replace(tile=(64, 64, 64), cluster_m=2, cluster_n=4, sms=16, deferred=True),
        (300, 600, 200),
    ),
    "a cluster of 2 x 2, in turns": (
        SINGLE._replace(tile=(64, 128, 64), cluster_m=2, cluster_n=2, sms=8, schedule="pingpong"),
        (300, 600, 200),
    ),
    "a cluster of 2 x 2, A M-major": (
        SINGLE._replace(tile=(128, 64, 64), cluster_m=2, cluster_n=2, sms=8, major_a="m"),
        (400, 304, 136),
    ),
    "96 columns of a cluster of four, N-major": (
        SINGLE._replace(tile=(64, 96, 64), cluster_m=4, sms=8, major_b="n"),
        (500, 136, 136),
    ),
    "16 columns of a cluster of 8, N-major": (
        SINGLE._replace(tile=(64, 16, 64), cluster_m=8, sms=16, major_b="n", stages=6),
        (600, 24, 200),
    ),
    "a cluster of 2 x 4, both other majors": (
        COLUMNS._replace(tile=(128, 80, 64), cluster_m=2, cluster_n=4, sms=16, major_a="m", major_b="n", deferred=True),
        (304, 400, 136),
    ),
    "K shared, a cluster of 2 x 2": (
        SplitConfig(SINGLE._replace(tile=(64, 64, 64), serpentine=False, cluster_m=2, cluster_n=2), 2),
        (140, 136, 456),
    ),
    "columns, a cluster of 4 x 2": (
        COLUMNS._replace(cluster_m=4, cluster_n=2, sms=16),
        (600, 300, 136),
    ),
    "columns": (COLUMNS, (104, 136, 136)),
    "columns, 16 of them": (COLUMNS._replace(tile=(64, 16, 64)), (104, 3, 136)),
    "columns, 256 rows": (COLUMNS._replace(tile=(256, 80, 64), deferred=True), (304, 136, 72)),
    "columns of 3 warpgroups, both other majors": (
        COLUMNS._replace(tile=(192, 96, 64), major_a="m", major_b="n", deferred=True),
        (208, 136, 136),
    ),
    "columns, turns": (COLUMNS._replace(tile=(64, 48, 64), schedule="pingpong"), (200, 136, 136)),
    "columns, turns, 128 rows": (
        COLUMNS._replace(tile=(128, 112, 64), schedule="pingpong", stages=5),
        (304, 136, 136),
    ),
    "columns, the last wave shared": (COLUMNS._replace(tile=(64, 48, 64), sms=3, stream_k=True), (128, 96, 448)),
    "columns, fp8": (
        COLUMNS._replace(tile=(64, 48, 128), element="f8E4M3FN", output="bf16"),
        (72, 72, 272),
    ),
    "columns, batch": (COLUMNS._replace(tile=(64, 48, 64), batch=True), (72, 72, 72, 3)),
    "K shared, 48 columns": (SplitConfig(SINGLE._replace(tile=(64, 48, 64), serpentine=False), 3), (72, 72, 456)),
    "K shared, parts that do not divide the pieces": (
        SplitConfig(SINGLE._replace(tile=(64, 128, 64), serpentine=False), 3),
        (72, 136, 456),
    ),
    "K shared, more parts than are added at once": (
        SplitConfig(SINGLE._replace(tile=(64, 32, 64), serpentine=False), 18),
        (72, 72, 1160),
    ),
    "K shared, columns": (SplitConfig(COLUMNS._replace(sms=132, serpentine=False), 4), (72, 70, 456)),
    "K shared, a cluster": (
        SplitConfig(SINGLE._replace(tile=(64, 64, 64), serpentine=False, cluster_m=2), 4),
        (140, 136, 456),
    ),
    "K shared, f32": (
        SplitConfig(SINGLE._replace(tile=(64, 64, 64), serpentine=False, output="f32"), 4),
        (70, 72, 456),
    ),
    "K shared, tf32": (
        SplitConfig(SINGLE._replace(tile=(64, 32, 32), serpentine=False, element="tf32", output="f32"), 2),
        (70, 72, 456),
    ),
}


@pytest.mark.end_to_end
@pytest.mark.sample("turns")
@pytest.mark.parametrize("name", ARRAYS)
def test_called_with_arrays(name: str) -> None:
    """Kernels called with arrays pass every check, including the assumptions about their integer arguments."""
    config, shape = ARRAYS[name]
    c = config.base if isinstance(config, SplitConfig) else config
    a, b, poisoned = operands(c, shape, integers=True)
    out = with_major(poisoned, c.major_c == "n")
    given = (with_major(a, c.major_a == "k"), with_major(b, c.major_b == "k"), out)
    arguments = [x.transpose(1, 2, 0) if c.batch else x[0] for x in given]
    more: dict[str, np.ndarray] = {}
    if c is not config or c.stream_k:
        floats, counters = Choice(c, getattr(config, "parts", 1)).workspace(*shape[:2])
        more["workspace"] = np.full(floats, np.nan, np.float32)
        more["counters" if c is not config else "flags"] = np.zeros(counters, np.int32)
    launch(*arguments, **more, config=config, device="cpu", checks=("race", "sync", "oob", "uninit"))
    assert (out == (a.astype(np.float64) @ b.astype(np.float64).transpose(0, 2, 1)).astype(out.dtype)).all()


BATCHES = {
    "A for all": (SINGLE._replace(batch=True, tile=(64, 64, 64), sms=2), 1, 3),
    "B for all": (SINGLE._replace(batch=True, tile=(64, 64, 64), sms=2), 3, 1),
    "A of a cluster for all": (BASE._replace(batch=True, tile=(64, 128, 64), sms=2), 1, 3),
    "turns, B for all": (SINGLE._replace(batch=True, tile=(64, 64, 64), sms=2, schedule="pingpong"), 3, 1),
    "odd rows, A for all": (SINGLE._replace(batch=True, fallback=True), 1, 3),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BATCHES)
def test_broadcast_matrix_in_a_batch(name: str) -> None:
    config, of_a, of_b = BATCHES[name]
    a, b, out = operands(config, (72, 136, 35 if config.fallback else 72, 3), integers=True)
    a, b = a[:of_a], b[:of_b]
    arguments = [x.transpose(1, 2, 0) for x in (a, b, out)]
    launch(*arguments, config=config, device="cpu", checks=("race", "sync", "oob", "uninit"))
    assert (out == (a.astype(np.float64) @ b.astype(np.float64).transpose(0, 2, 1)).astype(out.dtype)).all()
    with pytest.raises(LaunchError, match="A must have as many matrices as C, or one for all"):
        launch(np.zeros((2, *a.shape[1:]), np.float16).transpose(1, 2, 0), *arguments[1:], config=config, device="cpu")


@pytest.mark.slow
def test_matrices_without_elements() -> None:
    """An empty M or N launches nothing. An empty K raises an error, because C would have to be zeroed."""
    a, b, c = (np.zeros(x, np.float16) for x in ((0, 64), (64, 64), (0, 64)))
    for config, more in ((SINGLE, ()), (STREAM, (np.zeros(64 * 64, np.float32), np.zeros(132, np.int32)))):
        kernel = compile(gemm_text(config), emit="base").kernel("launch")
        kernel(a, b, c, *more, device="cpu")
        empty = np.zeros((64, 0), np.float16)
        with pytest.raises(LaunchError, match="K is 0" if more else "TMA does not support this array"):
            kernel(empty, empty, np.zeros((64, 64), np.float16), *more, device="cpu")


def test_mismatched_arrays_are_rejected() -> None:
    a, b, c = np.zeros((64, 64), np.float16), np.zeros((128, 64), np.float16), np.zeros((64, 128), np.float16)
    small = SINGLE._replace(tile=(64, 128, 64))
    for arrays, config, says in (
        ((a, b, c.astype(np.float32)), small, "C must be a matrix of f16"),
        ((a, b, c), small._replace(element="tf32", tile=(64, 128, 32)), "A must be a matrix of tf32"),
        ((a, b, np.asfortranarray(c)), small, "C must be contiguous along mode 1"),
        ((a, b, c), small._replace(major_b="n"), "B must be contiguous along mode 0"),
        ((a, b, c), small._replace(batch=True), "A must be a batch of matrices of f16"),
        ((a, b, c), small._replace(stream_k=True), "arguments after C must be workspace, flags; got none"),
        ((a, b, c), small._replace(stages=40), "at most 232448 are available"),
    ):
        with pytest.raises(ValueError, match=says):
            launch(*arrays, config=config, device="cpu")
    with pytest.raises(ValueError, match="arguments after C must be none; got alpha"):
        launch(a, b, c, alpha=2.0, config=small, device="cpu")


@pytest.mark.slow
def test_split_k_results_are_deterministic() -> None:
    config = SplitConfig(SINGLE._replace(tile=(64, 64, 64), serpentine=False), 6)
    kernel = compile(gemm_text(config), emit="base").kernel("launch")
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((64, 456)).astype(np.float16) for _ in range(2))
    results: set[bytes] = set()
    workspace, counters = np.full(config.workspace(1), np.nan, np.float32), np.zeros(2, np.int32)
    for seed in range(4):
        out = np.full((64, 64), np.nan, np.float16)
        kernel(a, b, out, workspace, counters, device="cpu", schedule="random", seed=seed)
        assert not counters.any()
        results.add(out.tobytes())
    assert len(results) == 1


def test_split_k_needs_two_slices() -> None:
    with pytest.raises(ValueError, match="needs at least 2 slices, got parts=1"):
        SplitConfig(SINGLE._replace(tile=(64, 128, 64), serpentine=False), 1).check()
