"""Negated operands of wgmma (``-A * B``, ``A * -B``): types, results on the CPU interpreter, and PTX."""

from __future__ import annotations

import numpy as np
import pytest
from negate_support import CASES, arrays, text

from cute_dialect.pipelines import compile as compile_cute


@pytest.mark.sample(every=4)
@pytest.mark.parametrize("name", CASES)
def test_signs(name: str) -> None:
    source, negate = CASES[name]
    module = compile_cute(text(source, negate))
    a, b, d, wanted = arrays(negate)
    module.kernel("k")(a, b, d, device="cpu", grid=(1, 1, 1))
    assert np.array_equal(d, wanted)
    scales = ",".join("-1" if f"negate_{x}" in negate else "1" for x in "ab")
    (instruction,) = [line for line in module.ptx.splitlines() if "wgmma.mma_async" in line]
    assert f",{scales}" in instruction.replace(" ", "").partition("},")[2]
    assert " 0 bytes spilled" in module.report
