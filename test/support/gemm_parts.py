"""Random configurations of the Hopper GEMMs: each must be rejected, or compute the exact result in the interpreter.

A configuration that :meth:`check` accepts is traced, compiled and run on small integers, whose results are exact in all
types.  All checks are enabled and the schedule is random.  The workspace initially contains NaN, and the padding
between rows must not be written.
"""

# pyright: basic

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

from cute_dialect.kernels.common.elements import FACTORS, OUTPUTS, factors, outputs_of
from cute_dialect.kernels.epilogue.combination import Epilogue
from cute_dialect.kernels.gemm import gemm_text
from cute_dialect.kernels.gemm.config import BITS, GemmConfig, SkinnyConfig, SplitConfig
from cute_dialect.kernels.gemm.few_rows import few_rows_text
from cute_dialect.kernels.gemm.host import arguments_of
from cute_dialect.pipelines import compile

DTYPES: dict[str, Any] = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "tf32": np.float32, "i8": np.int8,
    "ui8": np.uint8, "i32": np.int32, "f8E4M3FN": ml_dtypes.float8_e4m3fn, "f8E5M2": ml_dtypes.float8_e5m2,
}  # fmt: skip
EPILOGUES = (
    Epilogue(), Epilogue(alpha="arg"), Epilogue(bias="n", activation="relu"), Epilogue(beta=1.0),
    Epilogue(alpha=2.0, beta="arg", bias="m"),
)  # fmt: skip
ALL = ("race", "sync", "oob", "uninit")
Config = GemmConfig | SplitConfig | SkinnyConfig

OPTIONS: dict[str, tuple[Any, ...]] = {
    "element": tuple(FACTORS), "output": tuple(x for x in OUTPUTS if x != "f64"),
    "major_a": ("k", "m"), "major_b": ("k", "n"), "major_c": ("n", "m"),
    "tile": tuple((m, n, k) for m in (64, 128, 192, 256) for n in (8, 16, 24, 32, 48, 64, 96, 128) for k in (1, 2)),
    "stages": (2, 3, 4), "cluster_m": (1, 2, 4), "cluster_n": (1, 2, 4), "group": (1, 2, 8), "sms": (4, 9),
    "deferred": (True, False), "early": (True, False), "serpentine": (True, False), "batch": (False, True),
    "promote": (False, True), "stream_b": (False, True), "epilogue": EPILOGUES,
    "schedule": ("cooperative", "pingpong"), "stream_k": (False, True), "buffers": (1, 2, 3),
    "accumulator": ("", "f16"), "scaled": (False, True), "saturate": (False, True), "direct": (False, True),
    "scales": ("f32", "ui8"), "dependent": (False, True), "parts": (1, 2, 3),
    "scaled_columns": (False, True), "prefetch": (False, True),
}  # fmt: skip
"""Values of each option of a :class:`GemmConfig`, and split-K slices. ``tile`` counts K in units of 64 bytes."""
FEW: dict[str, tuple[Any, ...]] = {
    "element": ("f16", "bf16", "tf32", "f8E4M3FN", "f8E5M2"), "output": ("f16", "bf16", "f32"), "rows": (64, 128),
    "columns": (16, 32, 40, 64, 96, 128), "stages_a": (2, 3, 4), "stages": (2, 3, 4), "share": (1, 2),
    "parts": (1, 2, 4), "hint": (True, False),
    "direct": (False, True), "live": (0, 16, 32), "l2": (64, 128, 256), "epilogue": EPILOGUES,
    "major_a": ("k", "m"), "major_b": ("k", "n"), "major_c": ("n", "m"),
}  # fmt: skip
"""Values of each option of a :class:`SkinnyConfig`."""
_USUAL = {"element": "f16", "output": "f16", "tile": (64, 64, 2), "cluster_m": 1, "deferred": False}
"""Default values that are not the first of their list."""


def drawn(rng: np.random.Generator) -> tuple[dict[str, Any], Config]:
    """Draw a configuration and its options."""
    few = rng.random() < 0.2
    options, often = FEW if few else OPTIONS, rng.choice([0.15, 0.3, 0.5])
    taken: dict[str, Any] = {}
    for name, values in options.items():
        usual = _USUAL.get(name, values[0])
        taken[name] = values[rng.integers(len(values))] if rng.random() < often else usual
    if few:
        return taken, SkinnyConfig(**taken)
    # Adjust options that are rarely compatible, because most random combinations would be rejected.
    if rng.random() < 0.8:
        allowed = outputs_of(taken["element"])
        taken["output"] = taken["output"] if taken["output"] in allowed else allowed[rng.integers(len(allowed))]
        if taken["scaled"]:
            element = str(rng.choice(["f8E4M3FN", "f8E5M2", "f8E5M2_f8E4M3FN"]))
            taken |= {"element": element, "output": "bf16", "promote": True, "serpentine": False, "batch": False}
            tile = (int(rng.choice([64, 128])), int(rng.choice([48, 64, 80])), 2)
            taken |= {"major_a": "k", "major_b": "k", "major_c": "n", "deferred": False, "tile": tile}
        taken["scaled_columns"] = taken["scaled"] and taken["scaled_columns"]
    m, n, halves = taken["tile"]
    fields = {k: v for k, v in taken.items() if k != "parts"}
    config = GemmConfig(**fields | {"tile": (m, n, 512 * halves // BITS[taken["element"]])})
    if taken["parts"] == 1:
        return taken, config
    return taken, SplitConfig(config._replace(sms=132), taken["parts"])  # All blocks are co-resident.


def accepted(rng: np.random.Generator) -> tuple[dict[str, Any], Config, int]:
    """Draw until a configuration is accepted. Also return the number of rejected ones."""
    refused = 0
    while True:
        taken, config = drawn(rng)
        try:
            config.check()
            return taken, config, refused
        except ValueError as e:
            assert len(str(e)) > 20, f"{config} is refused without a reason: {e}"
            refused += 1


def _matrix(
    rng: np.random.Generator, element: str, rows: int, columns: int, matrices: int, row_major: bool, unit: int
) -> np.ndarray:
    """Return small integers of shape (rows, columns, matrices).

    The stride of contiguous lines is a multiple of ``unit`` elements, sometimes with additional padding.
    """
    lines, length = (rows, columns) if row_major else (columns, rows)
    pitch = -(-length // unit) * unit + unit * int(rng.integers(0, 2))
    storage = rng.integers(0 if element.startswith("u") else -1, 2, (matrices, lines, pitch)).astype(DTYPES[element])
    found = storage[:, :, :length].transpose(1, 2, 0)
    return found if row_major else found.transpose(1, 0, 2)


def _exact(c: GemmConfig, a: np.ndarray, b: np.ndarray, given: dict[str, Any]) -> np.ndarray:
    """Return the exact result in float64, of shape (M, N, matrices)."""
    a, b = a.astype(np.float64), b.astype(np.float64)
    if c.scaled:
        of_a, of_b = (2.0 ** (given[n].astype(np.float64) - 127) if c.scales == "ui8" else given[n].astype(np.float64)
                      for n in ("scale_a", "scale_b"))  # fmt: skip
        of_k = np.arange(a.shape[1]) // 128
        columns = np.arange(b.shape[0]) // (1 if c.scaled_columns else 128)
        a, b = a * of_a[:, of_k, None], b * of_b[columns][:, of_k, None]
    sums, e = np.einsum("mkl,nkl->mnl", a, b), c.epilogue
    sums = sums * (given["alpha"] if e.alpha == "arg" else e.alpha)
    if e.beta != 0.0:
        sums = sums + given["source"].reshape(sums.shape).astype(np.float64) * (given["beta"] if e.beta == "arg" else 1)
    if e.bias:
        sums = sums + (given["bias"][:, None, None] if e.bias == "m" else given["bias"][None, :, None])
    return np.maximum(sums, 0) if e.activation == "relu" else sums


def _sizes(rng: np.random.Generator, config: Config, c: GemmConfig) -> tuple[int, int, int, int]:
    """Return small extents: some whole tiles and a partial one."""
    parts = config.parts if isinstance(config, SplitConfig | SkinnyConfig) else 1
    (m, n, k), few = c.tile, isinstance(config, SkinnyConfig)
    across = 1 if few else int(rng.integers(1, 4)) if m * c.cluster_m <= 128 else 1
    along = int(rng.integers(1, 4)) if n * c.cluster_n <= 64 else 1
    rows, columns = (m * across, n * along) if few else (m * across * c.cluster_m, n * along * c.cluster_n)
    rows, columns = rows - int(rng.integers(0, m)), columns - int(rng.integers(0, n))
    if few and config.live:
        rows = min(rows, config.live)
    if c.epilogue.active and columns % 2:  # Epilogues need an even N.
        columns += 1
    depth = k * parts * int(rng.integers(1, 5 if m * n <= 128 * 64 else 3)) - int(rng.integers(0, k))
    return rows, columns, max(depth, k * (parts - 1) + 1), 2 if c.batch else 1


def wrong(rng: np.random.Generator, config: Config) -> str:
    """Compile and run a configuration; return a description of the error, or ""."""
    few = config if isinstance(config, SkinnyConfig) else None
    c = few.base if few else config.base if isinstance(config, SplitConfig) else config
    m, n, k, matrices = _sizes(rng, config, c)
    name = f"{m}x{n}x{k}, {matrices} matrices"
    text = few_rows_text(few) if few else gemm_text(config)
    kernel = compile(text, filename="parts.mlir", emit="base").kernel("launch")
    of_a, of_b = factors(c.element)
    a = _matrix(rng, of_a, m, k, matrices, c.major_a == "k", 128 // BITS[of_a])
    b = _matrix(rng, of_b, n, k, matrices, c.major_b == "k", 128 // BITS[of_b])
    unit = 1 if c.direct else 128 // BITS[c.output]
    out = _matrix(rng, c.output, m, n, matrices, c.major_c == "n", unit)
    storage = out.base
    while storage.base is not None:
        storage = storage.base
    storage[...] = 77
    given: dict[str, Any] = {}
    more = c.epilogue.arguments(c.output) if few else arguments_of(config)
    tiles = -(-m // (c.tile[0] * c.cluster_m)) * -(-n // (c.tile[1] * c.cluster_n)) * c.cluster * matrices
    for which in more:
        if which == "workspace":
            size = config.workspace(tiles) if isinstance(config, SplitConfig) else c.sms * c.tile[0] * c.tile[1]
            given[which] = np.full(size, np.nan, np.float32)
        elif which in ("flags", "counters"):
            given[which] = np.zeros(c.sms if which == "flags" else 2 * tiles, np.int32)
        elif which in ("scale_a", "scale_b"):
            rows = m if which == "scale_a" else n if c.scaled_columns else -(-n // 128)
            exponents = rng.integers(126, 129, (rows, -(-k // 128)))
            given[which] = exponents.astype(np.uint8) if c.scales == "ui8" else 2.0 ** (exponents - 127.0)
            given[which] = given[which].astype(np.uint8 if c.scales == "ui8" else np.float32)
        elif which == "source":
            given[which] = _matrix(rng, c.output, m, n, matrices, c.major_c == "n", 128 // BITS[c.output])
        elif which == "bias":
            given[which] = rng.integers(-3, 4, m if c.epilogue.bias == "m" else n).astype(np.float32)
        else:
            given[which] = 2.0
    if not c.batch:
        a, b, out = (x[:, :, 0] for x in (a, b, out))
        given |= {name: x[:, :, 0] for name, x in given.items() if name == "source"}
    # SkinnyConfig with ``live`` multiplies rows that are never loaded, but does not store their results.
    checks = tuple(x for x in ALL if x != "uninit" or not (few and few.live))
    kernel(a, b, out, *given.values(), device="cpu", checks=checks, schedule="random", seed=int(rng.integers(99)))
    shaped = [x.reshape(*x.shape[:2], matrices) for x in (a, b)]
    exact = _exact(c, *shaped, given)
    if BITS[c.output] == 8 and c.output.endswith("i8"):
        exact = exact.clip(0 if c.output == "ui8" else -128, 255 if c.output == "ui8" else 127)
    differing = out.reshape(exact.shape) != exact.astype(DTYPES[c.output])
    if differing.any():
        first = np.argwhere(differing)[0].tolist()
        return f"{name}: {int(differing.sum())} of {differing.size} elements are wrong, the first {first}"
    rows, columns = (m, n) if c.major_c == "n" else (n, m)
    if not c.direct:  # TMA stores units of 16 bytes.
        columns += -columns % (128 // BITS[c.output])
    pads = np.ones(storage.shape, bool)
    pads[:matrices, :rows, :columns] = False
    if (storage[pads] != 77).any():
        return f"{name}: the padding between rows of C is written"
    counters = [given[x] for x in ("counters",) if x in given]
    return f"{name}: counters are left" if any(x.any() for x in counters) else ""


def pairs(taken: dict[str, Any]) -> Iterator[tuple[tuple[str, str], tuple[str, str]]]:
    """Yield all pairs of options of a configuration."""
    items = sorted((name, str(value)) for name, value in taken.items())
    for i, one in enumerate(items):
        for other in items[i + 1 :]:
            yield one, other
