"""Each MMA atom of the dialect, run from cute text on the CPU interpreter and compared with exact results."""

from __future__ import annotations

import numpy as np
import pytest
from mma_atom_kernels import (
    MmaCase,
    descriptor,
    kernels,
    register_cases,
    sparse_cases,
    wgmma_cases,
    wgmma_sparse_cases,
)
from mma_atoms_support import register_arrays, sparse_arrays, wgmma_arrays, wgmma_sparse_arrays

import cute_dialect.lang as cute
from cute_dialect.arch import ATOMS, MmaAtom, mma_atom
from cute_dialect.pipelines import compile as compile_cute
from cute_dialect.runtime.launch import CompiledModule

REGISTERS = list(register_cases())
SPARSE = list(sparse_cases())
WGMMA = [c for c in wgmma_cases() if c.atom.shape_mnk[1] in (8, 64, 256)]
WGMMA_SPARSE = [c for c in wgmma_sparse_cases() if c.atom.shape_mnk[1] in (8, 64, 256)]


@pytest.mark.parametrize("case", [*REGISTERS, *SPARSE, *WGMMA, *WGMMA_SPARSE], ids=lambda c: c.name)
def test_language_descriptor_matches_the_table(case: MmaCase) -> None:
    atom = cute.make_mma_atom(case.op)
    assert mma_atom(case.row) == atom.type.row  # type: ignore[attr-defined]


@pytest.mark.slow
def test_every_row_of_the_table_has_a_descriptor() -> None:
    """All but those of sm_120 with 2:4 sparsity, or with E8M0 factors of ``mxf4nvf4``, which the language lacks."""
    atoms = [atom for atom in (ATOMS[name] for name in ATOMS) if isinstance(atom, MmaAtom)]
    rows = [
        atom
        for atom in atoms
        if not (atom.arch.startswith("sm_120") and atom.family == "mma_sp")
        and not (dict(atom.emit.pieces).get("kind") == "mxf4nvf4" and "UE8M0" in atom.name)
    ]
    made = [cute.make_mma_atom(descriptor(row)).type.row for row in rows]  # type: ignore[attr-defined]
    # An atom that two GPU generations share is listed once, under the older generation.
    assert all(m.name.partition("_")[2] == row.name.partition("_")[2] for m, row in zip(made, rows))
    assert len({m.name for m in made}) == len(rows) - 19


@pytest.fixture(scope="module")
def registers() -> CompiledModule:
    return compile_cute(kernels(REGISTERS), emit="base")


@pytest.mark.parametrize("case", REGISTERS, ids=lambda c: c.name)
def test_atoms_in_registers(registers: CompiledModule, case: MmaCase) -> None:
    arrays, wanted = register_arrays(case)
    registers.kernel(case.name)(*arrays, grid=(1, 1, 1), device="cpu")
    assert np.array_equal(arrays[-1].astype(np.float64), wanted)


@pytest.fixture(scope="module")
def sparse() -> CompiledModule:
    return compile_cute(kernels(SPARSE), emit="base")


@pytest.mark.parametrize("case", SPARSE, ids=lambda c: c.name)
def test_atoms_with_a_sparse_operand(sparse: CompiledModule, case: MmaCase) -> None:
    arrays, wanted = sparse_arrays(case)
    sparse.kernel(case.name)(*arrays, grid=(1, 1, 1), device="cpu")
    assert np.array_equal(arrays[-1].astype(np.float64), wanted)


@pytest.mark.sample(
    "SM90_64x64x16_F16F16F16_SS_TN", "SM90_64x64x32_F32E4M3E4M3_RS_TN", "SM90_64x64x32_S32U8S8_SS_TN_SATURATE"
)
@pytest.mark.parametrize("case", WGMMA, ids=lambda c: c.name)
def test_wgmma(case: MmaCase) -> None:
    module = compile_cute(kernels([case]), emit="base")
    for more in (1, 0) if case.flag else (1,):
        arrays, wanted = wgmma_arrays(case, more)
        module.kernel(case.name)(*arrays, grid=(1, 1, 1), device="cpu")
        assert np.array_equal(np.asarray(arrays[2]).astype(np.float64), wanted)


@pytest.mark.sample(every=36)
@pytest.mark.parametrize("case", WGMMA_SPARSE, ids=lambda c: c.name)
def test_wgmma_with_a_sparse_operand(case: MmaCase) -> None:
    module = compile_cute(kernels([case]), emit="base")
    for more in (1, 0) if case.flag else (1,):
        arrays, wanted = wgmma_sparse_arrays(case, more)
        module.kernel(case.name)(*arrays, grid=(1, 1, 1), device="cpu")
        assert np.array_equal(np.asarray(arrays[3]).astype(np.float64), wanted)
