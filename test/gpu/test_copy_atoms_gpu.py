"""Each copy atom of the dialect runs once on the GPU and must move each element as its table row states."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from copy_atom_kernels import CopyCase, cases
from copy_atoms_support import run_case

from cute_dialect.runtime import load

FOLDER = "copy_atoms"


@pytest.mark.parametrize("case", list(cases()), ids=lambda c: c.name)
def test_each_atom_moves_what_its_table_says(folder: Path, case: CopyCase) -> None:
    source, out, expected = run_case(case)
    load(folder).kernel(case.name)(source, out, grid=(1, 1, 1))
    assert np.array_equal(out.view(f"u{out.itemsize}"), expected.view(f"u{out.itemsize}"))
