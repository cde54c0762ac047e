"""Expected effect of each copy atom, from the PTX ISA text. The CPU and the GPU tests share it."""

from __future__ import annotations

import ml_dtypes
import numpy as np
from copy_atom_kernels import CopyCase

LANE = np.arange(32)


def fragment(matrices: int, transposed: bool) -> np.ndarray:
    """Return the offset of each register value within the matrices, indexed by ``[thread, value]``.

    Element ``e`` of row ``r`` of matrix ``j`` is at offset ``e+8r+64j``. For ldmatrix, register ``j`` of lane ``t``
    holds elements ``2(t%4)`` and ``2(t%4)+1`` of row ``t/4`` of matrix ``j``. When transposed, it holds element ``t/4``
    of rows ``2(t%4)`` and ``2(t%4)+1``.
    """
    where = np.zeros((32, 2 * matrices), np.int64)
    for t in range(32):
        for j in range(matrices):
            for half in range(2):
                row, element = t // 4, 2 * (t % 4) + half
                if transposed:
                    row, element = element, row
                where[t, 2 * j + half] = element + 8 * row + 64 * j
    return where


def values_of(case: CopyCase) -> int:
    """Return the number of f16 values that one thread holds in registers or moves."""
    if case.name == "movm":
        return 2
    if case.name.startswith("cp_async"):
        return int(case.name.split("_")[3]) // 2
    return 2 * int(case.name.split("_")[1][1:])


def sample(n: int) -> np.ndarray:
    """Return ``n`` different f16 numbers."""
    return (np.arange(n) + 1).astype(np.uint16).view(np.float16)


def _shuffled(case: CopyCase) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    kind = case.name.split("_")[1]
    if kind == "broadcast":
        source = np.arange(7, 39, dtype=np.float32).reshape(32, 1)
        return source, np.full((32, 1), np.nan, np.float32), np.full((32, 1), 7, np.float32)
    source = np.arange(64, dtype=np.float32).reshape(32, 2)
    expected = source.copy()
    for t in range(32):
        partner = t ^ int(kind)
        # Transpose the 2x2 block that a lower and an upper lane hold.
        if t & int(kind):
            expected[t] = source[partner, 1], source[t, 1]
        else:
            expected[t] = source[t, 0], source[partner, 0]
    return source, np.full((32, 2), np.nan, np.float32), expected


REDUCTIONS = {
    "add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "inc": lambda old, new: np.where(old >= new, 0, old + 1),
    "dec": lambda old, new: np.where((old == 0) | (old > new), new, old - 1),
}  # fmt: skip
DTYPES = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64, "s32": np.int32,
    "s64": np.int64, "u32": np.uint32, "u64": np.uint64, "b32": np.int32, "b64": np.int64,
}  # fmt: skip


def _reduced(case: CopyCase) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    *_, operation, ptx_type = case.name.split("_")
    dtype = DTYPES[ptx_type]
    rng = np.random.default_rng(len(case.name))
    low = 0 if ptx_type[0] == "u" else -50
    new, old = (rng.integers(low, 50, 64).astype(dtype) for _ in range(2))
    if ptx_type[0] == "u":  # Include numbers that are negative when read as signed.
        new[::3], old[::5] = ~new[::3], ~old[::5]
    return new, old, np.asarray(REDUCTIONS[operation](old, new)).astype(dtype)


def run_case(case: CopyCase) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the input, a poisoned output and the expected output."""
    if case.name == "bulk":
        whole = np.arange(1024, dtype=np.float32)
        return whole, np.full(1024, np.nan, np.float32), whole
    if case.name.startswith("bulk_reduce"):
        return _reduced(case)
    if case.name.startswith("bulk_"):
        pitch = 32 if case.name == "bulk_rows" else 48
        values = np.arange(16 * pitch, dtype=np.float32).reshape(16, pitch)
        whole = np.full((16, pitch), -1, np.float32)
        whole[:, :32] = values[:, :32]
        return values[:, :32], np.full((16, pitch), -1, np.float32)[:, :32], whole[:, :32]
    if case.name.startswith("shuffle"):
        return _shuffled(case)
    n = values_of(case)
    source = sample(32 * n)
    if case.name.startswith("cp_async"):
        expected = source.reshape(32, n).copy()
        if case.zfill:
            expected[LANE % 3 == 0] = 0
        return source, np.full(32 * n, np.nan, np.float16), expected.reshape(-1)
    if case.name == "movm":
        matrix = source[fragment(1, False).argsort(axis=None)].reshape(8, 8)  # [row, element]
        return source.reshape(32, 2), np.full((32, 2), np.nan, np.float16), matrix.T.reshape(-1)[fragment(1, False)]
    where = fragment(n // 2, case.name.endswith("_t"))
    if case.store:
        expected = np.zeros(32 * n, np.float16)
        expected[where] = source.reshape(32, n)
        return source.reshape(32, n), np.full(32 * n, np.nan, np.float16), expected
    return source, np.full((32, n), np.nan, np.float16), source[where]
