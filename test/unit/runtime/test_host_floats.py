"""Float arithmetic in host programs rounds as numpy does."""

from __future__ import annotations

import random

import numpy as np
import pytest

from cute_dialect.runtime.host_program import FLOAT_BINARY, evaluate_float, rounded, to_float

TYPES = {"f16": np.float16, "f32": np.float32, "f64": np.float64}
FUNCTIONS = {"addf": np.add, "subf": np.subtract, "mulf": np.multiply, "divf": np.divide}


@pytest.mark.parametrize("kind", TYPES)
def test_arithmetic_rounds_like_numpy(kind: str) -> None:
    rng = random.Random(kind)
    special = [0.0, -0.0, float("inf"), float("-inf"), float("nan"), 1e-7, 65504.0, 3e38]
    for _ in range(2000):
        a, b = (rng.choice(special) if rng.random() < 0.2 else rng.gauss(0, 1) * 10 ** rng.randint(-8, 8) for _ in "ab")
        for name in FLOAT_BINARY:
            with np.errstate(all="ignore"):
                x, y = TYPES[kind](a), TYPES[kind](b)
                wanted = float(FUNCTIONS[name](x, y))
            got = evaluate_float(name, kind, [a, b])
            assert np.float64(got).tobytes() == np.float64(wanted).tobytes() or (got != got and wanted != wanted)
        assert evaluate_float("negf", kind, [a]).hex() == (-rounded(a, kind)).hex()


@pytest.mark.parametrize("kind", TYPES)
def test_integers_become_floats_rounded_once(kind: str) -> None:
    rng = random.Random(1)
    for _ in range(2000):
        n = rng.getrandbits(rng.randint(1, 63)) * rng.choice((1, -1))
        with np.errstate(all="ignore"):
            wanted = float(np.int64(n).astype(TYPES[kind]))
        assert to_float(n, kind) == wanted
    assert to_float((1 << 61) + (1 << 37) + 1, "f32") == float((1 << 61) + (1 << 38))
