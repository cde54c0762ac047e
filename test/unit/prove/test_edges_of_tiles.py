"""Reads of shared memory that are guarded by sizes: the bounds of a read must imply those of the write of its bytes."""

# ruff: noqa: F821, UP037  (the strings in annotations are names of extents)

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cute_dialect.lang as cute
from cute_dialect.prove.proof import Proof

A = cute.arch


def transposition(defect: str) -> Any:
    """Return a kernel that transposes a tile of 8 x 8, the edge of a matrix, through shared memory."""

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        m, n = x.shape[0], x.shape[1]
        i, j = A.thread_idx().x // 8, A.thread_idx().x % 8
        row, column = A.block_idx().x * 8 + i, j
        s = cute.make_tensor(A.alloc_smem(cute.Float32, 64, 16), cute.make_layout((8, 8), stride=(8, 1)))
        if defect == "writes in a loop":
            if row < m and column < n:
                for _ in range(m - 5):
                    s[i, j] = 1.0
        elif defect == "writes if an element is large":
            if row < m and column < n and x[row, column] > 5.0:
                s[i, j] = 1.0
        elif defect == "writes where the bounds fail":
            if row < m and column < n:
                y[column, row] = 0.0
            else:
                s[i, j] = 1.0
        elif defect == "writes one row less":
            if row < m - 1 and column < n:
                s[i, j] = x[row, column]
        elif defect == "writes another row":
            if row < m and column < n:
                s[i ^ 1, j] = x[row, column]
        elif row < m and column < n:
            s[i, j] = x[row, column]
        if defect != "no barrier":
            A.sync_threads()
        row, column = A.block_idx().x * 8 + j, i
        if defect == "reads one column more":
            if row < m and column <= n:
                y[column, row] = s[j, i]
        elif defect == "checks rows only":
            if row < m:
                y[column, row] = s[j, i]
        elif defect == "bounds are swapped":
            if row < n and column < m:
                y[column, row] = s[j, i]
        elif defect == "reads the untransposed element":
            if row < m and column < n:
                y[column, row] = s[i, j]
        elif defect == "reads less":
            if row < m - 1 and column < n and column < 5:
                y[column, row] = s[j, i]
        elif row < m and column < n:
            y[column, row] = s[j, i]

    return kernel


def verdict(kernel: Any) -> Proof:
    @cute.jit
    def launch(x: cute.Tensor[None, "m", "n"], y: cute.Tensor):
        kernel(x, y).launch(grid=cute.ceil_div(x.shape[0], 8), block=64)

    problems = [(np.ones((m, n), np.float32), np.zeros((9, 16), np.float32)) for m, n in ((5, 7), (9, 6), (7, 3))]
    (proof,) = cute.testing.prove(launch, problems[0], problems=problems)
    return proof


@pytest.mark.parametrize("defect", ["", "reads less"])
def test_bounds_of_reads_that_imply_those_of_writes(defect: str):
    proof = verdict(transposition(defect))
    assert proof, str(proof)


@pytest.mark.parametrize(
    "defect",
    [
        "no barrier",
        "writes one row less",
        "writes another row",
        "writes where the bounds fail",
        "writes in a loop",
        "writes if an element is large",
        "reads one column more",
        "checks rows only",
        "bounds are swapped",
        "reads the untransposed element",
    ],
)
def test_bounds_that_do_not_are_refuted(defect: str):
    proof = verdict(transposition(defect))
    assert proof.verdict == "refuted", str(proof)
