"""``cute-bench op --groups elementwise``: memory-bound elementwise functions compared with torch.

TB/s counts each input and output once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from cute_dialect import op
from cute_dialect.op import epilogue
from cute_dialect.op.functions.elementwise import Elementwise
from cute_dialect.op.rows.call import RowKernel
from cute_dialect.tools.bench.checks import check_close
from cute_dialect.tools.bench.peers import compiled, normal
from cute_dialect.tools.bench.runner import Text, Trial

__all__ = ["CASES", "Elements"]

LIMITS = {"f32": 4e-6, "bf16": 9e-3}

FUNCTIONS: dict[str, tuple[Elementwise, str]] = {
    "add": (op.add, "mm"),
    "gelu": (op.elementwise(lambda x: epilogue.gelu(x)), "m"),
    "swiglu": (op.elementwise(lambda gate, up: epilogue.silu(gate) * up), "mm"),
    "bias + relu + residual": (op.elementwise(lambda x, b, r: epilogue.relu(x + b) + r), "mnm"),
}
"""The functions, and the kind of each argument: matrix ``m`` or per-column vector ``n``."""


class Elements(NamedTuple):
    """A function on matrices with a number of rows."""

    operation: str
    element: str
    m: int
    n: int

    @property
    def name(self) -> str:
        return f"{self.operation} {self.element} {self.m}x{self.n}"

    def kernels(self) -> Mapping[str, Text]:
        """Return the kernel of the call by name, with a function that generates its text."""
        made, takes = FUNCTIONS[self.operation]
        kind: Any = np.float32 if self.element == "f32" else ml_dtypes.bfloat16
        n = 32 + self.n % 16
        found: RowKernel = made.kernel(*[np.zeros((4, n) if x == "m" else (n,), kind) for x in takes])
        return {found.name: found.text}

    def trial(self) -> Trial:
        """Create operands of normally distributed values."""
        import torch

        torch.manual_seed(self.n)
        made, takes = FUNCTIONS[self.operation]
        given = [normal(self.element, *((self.m, self.n) if x == "m" else (self.n,))) for x in takes]

        def check() -> float:
            found, worst, step = made(*given), 0.0, max(1, (1 << 24) // self.n)
            for start in range(0, self.m, step):
                part = slice(start, start + step)
                wanted = made.function(*[(t[part] if t.dim() == 2 else t).double() for t in given])
                worst = max(worst, check_close(self.name, found[part], wanted, LIMITS[self.element]))
            return worst

        traffic = given[0].element_size() * (self.m * self.n * (takes.count("m") + 1) + self.n * takes.count("n"))
        return Trial(check, lambda: made(*given), compiled(made.function, *given), traffic, float(traffic), "TB/s")


CASES = [
    *(Elements(f, e, m, n) for f in FUNCTIONS for e in LIMITS for m, n in ((16384, 4096), (8192, 5120))),
    *(Elements(f, "bf16", 8191, 5003) for f in FUNCTIONS),
]
