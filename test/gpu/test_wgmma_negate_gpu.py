"""Prebuilt wgmma kernels with negated operands on the GPU: exact results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from negate_support import CASES, arrays

from cute_dialect.runtime import load

FOLDER = "negate"
"""Folder of the kernels; see ``folder``."""


@pytest.mark.parametrize("name", CASES)
def test_signs(folder: Path, name: str) -> None:
    a, b, d, wanted = arrays(CASES[name][1])
    load(folder / name).kernel("k")(a, b, d, grid=(1, 1, 1))
    assert np.array_equal(d, wanted)
