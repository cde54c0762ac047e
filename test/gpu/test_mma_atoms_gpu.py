"""Each MMA atom of the dialect runs on the GPU, compiled from cute text, with exact results for every element.

``test/gpu/build.py`` builds the kernels. The same kernels also run on the CPU interpreter.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from mma_atom_kernels import MmaCase, register_cases, sparse_cases, wgmma_cases, wgmma_sparse_cases
from mma_atoms_support import register_arrays, sparse_arrays, wgmma_arrays, wgmma_sparse_arrays

from cute_dialect.runtime import load
from cute_dialect.runtime.launch import CompiledModule

FOLDER = "mma_atoms"


@pytest.fixture(scope="module")
def registers(folder: Path) -> CompiledModule:
    return load(folder / "registers")


@pytest.fixture(scope="module")
def sparse(folder: Path) -> CompiledModule:
    return load(folder / "sparse")


@pytest.fixture(scope="module")
def wgmma(folder: Path) -> CompiledModule:
    return load(folder / "wgmma")


@pytest.fixture(scope="module")
def wgmma_sparse(folder: Path) -> CompiledModule:
    return load(folder / "wgmma_sparse")


@pytest.mark.parametrize("case", list(register_cases()), ids=lambda c: c.name)
def test_atoms_in_registers(registers: CompiledModule, case: MmaCase) -> None:
    arrays, wanted = register_arrays(case)
    registers.kernel(case.name)(*arrays, grid=(1, 1, 1))
    assert np.array_equal(arrays[-1].astype(np.float64), wanted)


@pytest.mark.parametrize("case", list(sparse_cases()), ids=lambda c: c.name)
def test_atoms_with_a_sparse_operand(sparse: CompiledModule, case: MmaCase) -> None:
    arrays, wanted = sparse_arrays(case)
    sparse.kernel(case.name)(*arrays, grid=(1, 1, 1))
    assert np.array_equal(arrays[-1].astype(np.float64), wanted)


@pytest.mark.parametrize("case", list(wgmma_cases()), ids=lambda c: c.name)
def test_wgmma(wgmma: CompiledModule, case: MmaCase) -> None:
    for more in (1, 0) if case.flag else (1,):
        arrays, wanted = wgmma_arrays(case, more)
        wgmma.kernel(case.name)(*arrays, grid=(1, 1, 1))
        assert np.array_equal(np.asarray(arrays[2]).astype(np.float64), wanted)


@pytest.mark.parametrize("case", list(wgmma_sparse_cases()), ids=lambda c: c.name)
def test_wgmma_with_a_sparse_operand(wgmma_sparse: CompiledModule, case: MmaCase) -> None:
    for more in (1, 0) if case.flag else (1,):
        arrays, wanted = wgmma_sparse_arrays(case, more)
        wgmma_sparse.kernel(case.name)(*arrays, grid=(1, 1, 1))
        assert np.array_equal(np.asarray(arrays[3]).astype(np.float64), wanted)
