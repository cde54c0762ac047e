"""Cases and matrices for the fallback of the Hopper GEMM, shared by the CPU and the GPU tests."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from cute_dialect.kernels.gemm.config import GemmConfig

SINGLE = GemmConfig(cluster_m=1, deferred=False, fallback=True)
FP8 = SINGLE._replace(tile=(128, 256, 128), output="bf16")
CASES = {
    "rows of 200 bytes": (SINGLE, (72, 100, 100)),
    "odd rows": (SINGLE, (65, 131, 101)),
    "K of 1": (SINGLE, (64, 64, 1)),
    "bf16": (SINGLE._replace(element="bf16", output="bf16"), (66, 70, 35)),
    "both MN-major": (SINGLE._replace(major_a="m", major_b="n"), (66, 70, 35)),
    "batch": (SINGLE._replace(batch=True), (66, 70, 35, 3)),
    "f16 in f32 out": (SINGLE._replace(output="f32", tile=(128, 128, 64)), (66, 70, 35)),
    "e4m3": (FP8._replace(element="f8E4M3FN"), (66, 70, 67)),
    "e5m2": (FP8._replace(element="f8E5M2"), (66, 70, 67)),
    "tf32": (SINGLE._replace(element="tf32", output="f32", tile=(128, 256, 32)), (66, 70, 35)),
}
DTYPES = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "tf32": np.float32,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn, "f8E5M2": ml_dtypes.float8_e5m2,
}  # fmt: skip


def arrays(name: str) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    """Return A, B and a poisoned C as the kernel takes them, C as ``[matrix, m, n]``, and the expected C.

    The elements are small integers, so the results are exact in every type.
    """
    c, shape = CASES[name]
    m, n, k, matrices = (*shape, 1)[:4]
    rng = np.random.default_rng(sum(shape))
    a, b = (rng.integers(-2, 3, (matrices, rows, k)).astype(DTYPES[c.element]) for rows in (m, n))
    out = np.full((matrices, m, n), np.nan, DTYPES[c.output])
    given = [
        x if major == "k" else x.transpose(0, 2, 1).copy().transpose(0, 2, 1)
        for x, major in ((a, c.major_a), (b, c.major_b))
    ]
    exact = a.astype(np.float64) @ b.astype(np.float64).transpose(0, 2, 1)
    return [x.transpose(1, 2, 0) if c.batch else x[0] for x in (*given, out)], out, exact
