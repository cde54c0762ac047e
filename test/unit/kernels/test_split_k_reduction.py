"""Split-K reduction on the CPU interpreter: exact for any size and number of slices, including zero."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from cute_dialect.kernels.epilogue.combination import Epilogue
from cute_dialect.kernels.epilogue.reductions import ReduceConfig, reduce_parts_text
from cute_dialect.pipelines import compile

CHECKS = ("race", "uninit", "oob")
TYPES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64, "i32": np.int32,
         "i8": np.int8}  # fmt: skip


@pytest.mark.sample("f32-f16-epilogue0-False")
@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize(
    ("sums", "output", "epilogue"),
    [
        ("f32", "f16", Epilogue()),
        ("f32", "bf16", Epilogue(alpha="arg", beta="arg", bias="n", activation="relu")),
        ("f64", "f64", Epilogue(alpha="arg", beta="arg")),
        ("i32", "i32", Epilogue(beta=1.0)),
        ("i32", "i8", Epilogue(alpha="arg", bias="m")),
    ],
)
def test_reduction_of_split_k_slices(sums: str, output: str, epilogue: Epilogue, batch: bool) -> None:
    rng = np.random.default_rng(5)
    config = ReduceConfig(sums, output, batch, epilogue)
    kernel = compile(reduce_parts_text(config), emit="base").kernel("launch")
    for m, n, parts in ((9, 130, 3), (1, 5, 1), (8, 128, 2), (3, 7, 0)):
        wide = -(-n // 4) * 4
        more = (2,) if batch else ()
        w = rng.integers(-9, 10, (*more, parts, m, wide)).astype(TYPES[sums])
        c = rng.integers(-9, 10, (*more, m, n)).astype(TYPES[output])
        d = np.full_like(c, 77)
        alpha, beta = (1.0 + 2.0**-40, 3.0) if sums == "f64" else (0.5, 2.0)
        exact = w[..., :n].astype(float).sum(-3)
        exact = exact * (alpha if epilogue.alpha == "arg" else 1)
        given: list[object] = []
        if epilogue.beta != 0.0:
            exact = exact + (beta if epilogue.beta == "arg" else 1) * c.astype(float)
            given.append(c.transpose(1, 2, 0) if batch else c)
        if epilogue.bias:
            bias = rng.integers(-9, 10, n if epilogue.bias == "n" else m).astype(np.float32)
            exact = exact + (bias if epilogue.bias == "n" else bias[:, None])
            given.append(bias)
        exact = np.maximum(exact, 0) if epilogue.activation else exact
        given += [x for x, there in ((alpha, epilogue.alpha), (beta, epilogue.beta)) if there == "arg"]
        views = (w.transpose(2, 3, 1, 0), d.transpose(1, 2, 0)) if batch else (w.transpose(1, 2, 0), d)
        kernel(*views, *given, device="cpu", checks=CHECKS)
        if np.issubdtype(d.dtype, np.integer):
            exact = np.clip(np.rint(exact), np.iinfo(d.dtype).min, np.iinfo(d.dtype).max)
        np.testing.assert_array_equal(d, exact.astype(d.dtype))
