"""The epilogue library on the interpreter, compared with the same functions on numpy arrays in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cute_dialect import op
from cute_dialect.op.epilogue import library
from cute_dialect.op.errors import EpilogueError

M, N, K = 40, 96, 24
ARRAYS = {
    "bias": (N,), "aux": (M, N), "C": (M, N), "skip": (M, N), "scale_a": (M, 1), "scale_b": (1, N),
}  # fmt: skip
NAMES = [n for n in library.__all__ if n not in ("activated", "derived", "gated")]


@pytest.mark.slow
@pytest.mark.parametrize("name", [*NAMES, "gated"])
def test_each(name: str) -> None:
    f: Any = library.gated("silu") if name == "gated" else getattr(library, name)
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-1, 2, s).astype(np.float16) for s in ((M, K), (K, N)))
    code = f.__code__
    args: dict[str, Any] = {}
    for p in code.co_varnames[1 : code.co_argcount]:
        args[p] = rng.integers(-2, 3, ARRAYS[p]).astype(np.float16) if p in ARRAYS else 0.5
    wide = {p: x.astype(np.float64) if isinstance(x, np.ndarray) else x for p, x in args.items()}
    want = f(a.astype(np.float64) @ b.astype(np.float64), **wide)
    found = op.mm(a, b, epilogue=f, args=args, dtype=np.float32, device="cpu")
    for x in want if isinstance(want, dict) else [None]:
        got, y = (found, want) if x is None else (found[x], want[x])
        assert got.shape == y.shape and np.allclose(got, y, rtol=1e-5, atol=1e-5), x


def test_names() -> None:
    assert library.gated("gelu").__name__ == "gated_gelu" and library.gated("gelu") is library.gated("gelu")
    assert library.DGELU_BGRAD.__name__ == "DGELU_BGRAD" and library.RELU_AUX_BIAS.__name__ == "RELU_AUX_BIAS"
    with pytest.raises(EpilogueError, match=r'"swish" is unknown; did you mean hardswish\? Choose one of elu, '):
        library.gated("swish")
