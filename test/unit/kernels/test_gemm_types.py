"""The Hopper GEMM of integers, 8-bit floats and f16 accumulators on the CPU interpreter."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from cute_dialect.errors import CompileError
from cute_dialect.kernels.common.elements import factors
from cute_dialect.kernels.epilogue.combination import Epilogue
from cute_dialect.kernels.gemm import gemm_text
from cute_dialect.kernels.gemm.config import GemmConfig, SplitConfig
from cute_dialect.op.select.kernel_choice import Choice
from cute_dialect.pipelines import compile

BYTES = GemmConfig(element="i8", output="i32", tile=(128, 128, 128), cluster_m=1, deferred=False)
DTYPES: dict[str, Any] = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "i32": np.int32, "i8": np.int8,
    "ui8": np.uint8, "f8E4M3FN": ml_dtypes.float8_e4m3fn, "f8E5M2": ml_dtypes.float8_e5m2,
}  # fmt: skip
CHECKS = ("race", "uninit", "sync", "oob")


def integers(element: str, rows: int, k: int, seed: int) -> np.ndarray:
    """Return random integers from the whole range of an 8-bit type."""
    info = np.iinfo(DTYPES[element])
    return np.random.default_rng(seed).integers(info.min, info.max + 1, (rows, k)).astype(DTYPES[element])


def saturated(x: np.ndarray, output: str) -> np.ndarray:
    """Round values to nearest even and clamp them to the range of a type. NaN becomes 0."""
    info = np.iinfo(DTYPES[output])
    exact = np.nan_to_num(x.astype(np.float64), nan=0.0, posinf=1e30, neginf=-1e30)
    return np.clip(np.rint(exact), info.min, info.max).astype(np.int64)


def run(c: GemmConfig | SplitConfig, a: np.ndarray, b: np.ndarray, out: np.ndarray, *more: object) -> None:
    compile(gemm_text(c), emit="base").kernel("launch")(a, b, out, *more, device="cpu", checks=CHECKS)


@pytest.mark.end_to_end
@pytest.mark.sample("i8-i32")
@pytest.mark.parametrize("output", ["i32", "i8", "ui8", "f16", "bf16", "f32"])
@pytest.mark.parametrize("element", ["i8", "ui8", "i8_ui8", "ui8_i8"])
def test_integers_are_exact(element: str, output: str) -> None:
    m, n, k = 72, 144, 144
    of_a, of_b = factors(element)
    a, b = integers(of_a, m, k, 1), integers(of_b, n, k, 2)
    # Most sums are large. Smaller factors keep the other ones within 11 bits, where f16 is exact.
    if output in ("f16", "i8", "ui8"):
        a[:, 1:] //= 64
        b[:, 1:] //= 64
    exact = a.astype(np.int64) @ b.astype(np.int64).T
    out = np.full((m, n), 99, DTYPES[output])
    run(BYTES._replace(element=element, output=output, deferred=output in ("f16", "bf16", "i8", "ui8")), a, b, out)
    if output in ("i8", "ui8"):
        assert (exact > 127).any() and (out == saturated(exact, output)).all()
    else:
        assert (out == exact.astype(np.float32 if output != "i32" else np.int32).astype(DTYPES[output])).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    "changed",
    [
        {"tile": (64, 16, 128)},
        {"tile": (64, 256, 128), "schedule": "pingpong", "sms": 1},
        {"tile": (192, 96, 128), "sms": 2},
        {"tile": (128, 256, 128), "cluster_m": 2},
        {"tile": (64, 48, 128), "output": "f16", "major_c": "m"},
        {"tile": (64, 96, 128), "output": "ui8", "deferred": True},
    ],
)
def test_tiles_of_integers(changed: dict[str, Any]) -> None:
    c = BYTES._replace(**changed)
    m, n, k = 200, 272, 272
    a, b = integers("i8", m, k, 3) // 32, integers("i8", n, k, 4) // 32
    exact = a.astype(np.int64) @ b.astype(np.int64).T
    out = np.full((m, n), 99, DTYPES[c.output], order="F" if c.major_c == "m" else "C")
    run(c, a, b, out)
    assert (out == (saturated(exact, c.output) if c.output == "ui8" else exact.astype(out.dtype))).all()


@pytest.mark.slow
def test_integer_epilogues() -> None:
    """Integer epilogues are exact for additions. With alpha or beta they compute in f32."""
    m, n, k = 72, 144, 144
    a, b = integers("i8", m, k, 1), integers("i8", n, k, 2)
    c, bias = integers("i8", m, n, 5).astype(np.int32) * 1000003, integers("i8", n, 1, 6)[:, 0].astype(np.int32)
    exact = a.astype(np.int64) @ b.astype(np.int64).T
    out = np.zeros((m, n), np.int32)
    run(
        BYTES._replace(epilogue=Epilogue(beta=1.0, bias="n", bias_type="i32", activation="relu")), a, b, out, c, bias
    )  # fmt: skip
    assert (out == np.maximum(exact + c + bias, 0)).all()
    scaled = BYTES._replace(epilogue=Epilogue(alpha="arg", bias="m", bias_type="f32"))
    rows = np.linspace(-7, 7, m).astype(np.float32)
    rows[3], rows[4], rows[5] = np.nan, np.inf, -np.inf
    want = exact.astype(np.float32) * np.float32(2.0**-8) + rows[:, None]
    for output in ("i32", "i8", "ui8"):
        out = np.zeros((m, n), DTYPES[output])
        run(scaled._replace(output=output), a, b, out, rows, 2.0**-8)
        assert (out == saturated(want, output)).all()
    halves = np.zeros((m, n), np.int8)
    run(BYTES._replace(output="i8", epilogue=Epilogue(alpha=0.5)), a // 64, b // 64, halves)
    sums = (a // 64).astype(np.int64) @ (b // 64).astype(np.int64).T
    assert (halves == saturated(sums / 2, "i8")).all() and (sums % 2 == 1).any()


@pytest.mark.slow
@pytest.mark.parametrize("output", ["i32", "ui8"])
def test_split_k_of_integers(output: str) -> None:
    m, n, k = 136, 272, 656
    a, b = integers("ui8", m, k, 1), integers("i8", n, k, 2)
    if output == "ui8":
        a, b = a // 64, b // 32
    exact = a.astype(np.int64) @ b.astype(np.int64).T
    want = exact if output == "i32" else saturated(exact, output)
    base = BYTES._replace(element="ui8_i8", output=output)
    split, stream = SplitConfig(base, 3), base._replace(stream_k=True, sms=4)
    for config, choice in ((split, Choice(base, 3)), (stream, Choice(stream))):
        floats, counters = choice.workspace(m, n)
        out = np.full((m, n), 99, DTYPES[output])
        run(config, a, b, out, np.full(floats, np.nan, np.float32), np.zeros(counters, np.int32))
        assert (out == want).all()


HALF = GemmConfig(accumulator="f16", cluster_m=1)
SUMS_IN_F16 = {
    "deferred": (HALF, (200, 264, 136)),
    "alone": (HALF._replace(tile=(128, 128, 64), deferred=False, output="bf16"), (72, 136, 72)),
    "turns": (HALF._replace(tile=(64, 128, 64), deferred=False, schedule="pingpong", sms=1), (200, 264, 136)),
    "f32": (HALF._replace(tile=(64, 64, 64), deferred=False, output="f32"), (72, 136, 72)),
    "fused": (HALF._replace(epilogue=Epilogue(alpha=0.5, bias="n")), (72, 264, 136)),
    "256 columns, 256 rows": (HALF._replace(tile=(256, 256, 64), stages=3, buffers=1, deferred=False), (264, 264, 72)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SUMS_IN_F16)
def test_f16_accumulators(name: str) -> None:
    """f16 accumulators are exact up to 11 bits. Beyond that each step rounds or overflows."""
    c, (m, n, k) = SUMS_IN_F16[name]
    c.check()
    rng = np.random.default_rng(m)
    a, b = (rng.integers(-2, 3, (rows, k)).astype(np.float16) for rows in (m, n))
    out = np.full((m, n), 99, DTYPES[c.output])
    bias = np.arange(n).astype(np.float32) % 64
    run(c, a, b, out, *([bias] if c.epilogue.active else []))
    exact = a.astype(np.float64) @ b.astype(np.float64).T
    exact = exact / 2 + bias if c.epilogue.active else exact
    assert (out == exact.astype(DTYPES[c.output])).all()
    ones, out = np.full((m, k), 64, np.float16), np.zeros((m, n), DTYPES[c.output])
    run(c, ones, np.full((n, k), 64, np.float16), out, *([bias] if c.epilogue.active else []))
    assert np.isinf(out.astype(np.float64)).all()


SCALED = GemmConfig(
    element="f8E4M3FN", output="f32", tile=(128, 128, 128), deferred=False, promote=True, scaled=True, serpentine=False
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.end_to_end
@pytest.mark.sample("changed2-shape2")
@pytest.mark.parametrize(
    ("changed", "shape"),
    [
        ({}, (300, 272, 400)),
        ({"tile": (64, 64, 128), "cluster_m": 1, "sms": 3}, (200, 272, 400)),
        ({"tile": (64, 32, 128), "cluster_m": 1, "output": "bf16", "element": "f8E5M2_f8E4M3FN"}, (16, 144, 272)),
        ({"tile": (256, 64, 128), "cluster_m": 1, "stages": 3}, (264, 144, 272)),
        ({"epilogue": Epilogue(bias="n"), "cluster_m": 1}, (72, 272, 144)),
        ({"scaled_columns": True}, (300, 272, 400)),
        ({"scaled_columns": True, "tile": (256, 64, 128), "cluster_m": 1, "stages": 3}, (264, 144, 272)),
        ({"scaled_columns": True, "tile": (192, 16, 128), "cluster_m": 1}, (200, 40, 144)),
        # Tiles that overlap two or three scale blocks of 128 columns.
        ({"tile": (128, 176, 128), "cluster_m": 1, "sms": 2}, (260, 724, 688)),
        ({"tile": (128, 160, 128), "stages": 5, "sms": 4}, (140, 500, 272)),
        ({"tile": (64, 48, 128), "cluster_m": 1, "cluster_n": 2, "sms": 4}, (70, 436, 1168)),
        ({"tile": (64, 80, 128), "cluster_m": 1}, (60, 244, 656)),
        # Tiles that are stored during the main loop of the next tile.
        ({"tile": (64, 48, 128), "cluster_m": 1, "sms": 2, "output": "bf16", "deferred": True}, (70, 248, 272)),
        ({"tile": (128, 80, 128), "cluster_m": 1, "sms": 2, "output": "bf16", "deferred": True}, (270, 248, 144)),
        # Two alternating accumulators, with one, two and more K steps; with and without per-column scales.
        ({"tile": (64, 96, 128), "cluster_m": 1}, (64, 100, 112)),
        ({"tile": (64, 96, 128), "cluster_m": 1}, (50, 196, 256)),
        ({"scaled_columns": True, "tile": (64, 96, 128), "cluster_m": 1, "sms": 2}, (70, 196, 912)),
        ({"scaled_columns": True, "tile": (64, 112, 128), "cluster_m": 1}, (64, 116, 400)),
    ],
)
def test_scales_of_blocks(changed: dict[str, Any], shape: tuple[int, int, int]) -> None:
    """Block scales are powers of two, so results are exact. A has one scale per row and 128 elements of K. B has one
    per 128 columns and 128 elements of K.
    """
    check_scales(SCALED._replace(**changed), *shape)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tile", "changed", "parts", "shape"),
    [
        ((64, 64, 128), {}, 4, (60, 100, 1104)),
        ((64, 96, 128), {"output": "bf16"}, 2, (64, 216, 704)),
        ((128, 80, 128), {"cluster_n": 2}, 3, (130, 324, 1312)),
        ((64, 64, 128), {"scaled_columns": True}, 2, (33, 136, 656)),
    ],
)
def test_blocks_share_k_of_scaled_products(
    tile: tuple[int, int, int], changed: dict[str, Any], parts: int, shape: tuple[int, int, int]
) -> None:  # fmt: skip
    check_scales(SplitConfig(SCALED._replace(tile=tile, cluster_m=1, **changed), parts), *shape)


def check_scales(config: GemmConfig | SplitConfig, m: int, n: int, k: int) -> None:
    """Compare a scaled GEMM with float64."""
    c = config.base if isinstance(config, SplitConfig) else config
    rng, blocks = np.random.default_rng(m), -(-k // 128)
    (of_a, of_b), out = factors(c.element), np.full((m, n), 99, DTYPES[c.output])
    a, b = (rng.integers(-2, 3, (rows, k)).astype(DTYPES[t]) for rows, t in ((m, of_a), (n, of_b)))
    sa, sb = (
        np.exp2(rng.integers(-2, 3, (rows, blocks))).astype(np.float32)
        for rows in (m, n if c.scaled_columns else -(-n // 128))
    )
    bias = rng.integers(-3, 4, n).astype(np.float32)
    shared: list[np.ndarray] = []
    if isinstance(config, SplitConfig):
        floats, counters = Choice(c, config.parts).workspace(m, n)
        shared = [np.full(floats, np.nan, np.float32), np.zeros(counters, np.int32)]
    run(config, a, b, out, *shared, sa, np.asfortranarray(sb), *([bias] if c.epilogue.active else []))
    assert not any(x.any() for x in shared[1:])
    exact = sum(
        (a[:, i : i + 128].astype(np.float64) @ b[:, i : i + 128].astype(np.float64).T)
        * sa[:, i // 128, None] * (sb[:, i // 128] if c.scaled_columns else np.repeat(sb[:, i // 128], 128)[:n])
        for i in range(0, k, 128)
    ) + bias * c.epilogue.active  # fmt: skip
    assert (out == exact.astype(out.dtype)).all()


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"element": "f8E4M3FN", "output": "f32", "scaled": True}, "block scales need 8-bit floats, promote=True"),
        (
            {"element": "bf16", "output": "f16", "tile": (64, 64, 64), "accumulator": "f16"},
            "only f16 elements accumulate in f16",
        ),
        (
            {"element": "f16", "output": "f16", "tile": (64, 64, 64), "accumulator": "f16", "promote": True},
            "promote needs an f32 accumulator",
        ),
        ({"element": "i8_f16"}, "'i8_f16' is not supported; use one of f16, bf16, tf32, i8"),
        ({"output": "f8E4M3FN"}, "'f8E4M3FN' is not supported .* i32, i8, ui8, f16, bf16, f32"),
        ({"deferred": True}, "deferred=True needs an output of at most 16 bits, got i32"),
        ({"promote": True}, "promote needs an f32 accumulator, got i32"),
        ({"output": "i8", "tile": (64, 48, 128)}, "tile N is 48; it must be a multiple of 32 for output i8"),
        ({"major_b": "n"}, "wgmma transposes 16-bit elements only"),
    ],
)
def test_unsupported_configurations_are_rejected(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        BYTES._replace(**changed).check()


@pytest.mark.slow
def test_mixed_signs_use_mixed_sign_instructions() -> None:
    """Operands of mixed signedness need PTX 8.4. Other kernels use the default version, or the requested one."""
    small = BYTES._replace(tile=(64, 32, 128), stages=2)
    assert ".version 8.3" in compile(gemm_text(small)).ptx
    mixed = gemm_text(small._replace(element="ui8_i8"))
    assert ".version 8.4" in compile(mixed).ptx and ".u8.s8" in compile(mixed).ptx
    with pytest.raises(CompileError, match="has no wgmma"):
        compile(mixed, features="+ptx83")
