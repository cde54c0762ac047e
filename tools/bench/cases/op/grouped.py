"""``cute-bench op --groups grouped``: mixture-of-experts layers in bf16, forward and weight gradient.

:mod:`cute_dialect.tools.bench.cases.op.grouped_more` adds 8-bit floats, masked rows and pointer-array GEMM.
"""

# torch may be missing when types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from cute_dialect import op
from cute_dialect.op.grouped.choosing import average, choose
from cute_dialect.op.grouped.kernels import name_of, text_of
from cute_dialect.op.grouped.shapes import Shapes
from cute_dialect.tools.bench.cases.elementwise_add import BenchError
from cute_dialect.tools.bench.cases.op import Trial
from cute_dialect.tools.bench.cases.op.grouped_more import CASES as MORE

__all__ = ["CASES", "Grouped"]

_ALIGNED = 8
"""Rows of a group are multiples of this number, as the peer requires."""


class Grouped(NamedTuple):
    """``rows`` sorted tokens for ``groups`` experts of (k, n).

    ``skew`` is the distribution of tokens: ``even``, ``zipf``, or ``empty`` (30 % of the experts have none).  ``steps``
    selects the weight gradient, whose groups are ranges of K.
    """

    groups: int
    rows: int
    n: int
    k: int
    skew: str = "even"
    steps: bool = False

    @property
    def operation(self) -> str:
        """The operation and the distribution, for example ``grouped_mm dW zipf``."""
        return f"grouped_mm{' dW' * self.steps} {self.skew}"

    @property
    def name(self) -> str:
        return f"{self.operation} {self.groups}x{self.rows}x{self.n}x{self.k}"

    @property
    def shapes(self) -> Shapes:
        """The shapes of the grouped GEMM."""
        if self.steps:
            return Shapes("k", self.groups, self.k, self.n, self.rows)
        return Shapes("m", self.groups, self.rows, self.n, self.k)

    def kernels(self) -> Mapping[str, Callable[[], str]]:
        """Return the kernel of the call by name, with a function that generates its text."""
        majors = ("m", "n") if self.steps else ("k", "n")
        found = choose(average(self.shapes, "bf16", "bf16", majors), self.shapes.form, gpu="NVIDIA H200")
        return {name_of(found): lambda: text_of(found)}

    def ends(self) -> list[int]:
        """Return the end offsets of the groups, which cover all rows."""
        rng, units = np.random.default_rng(0), self.rows // _ALIGNED
        if self.skew == "even":
            shares = np.ones(self.groups)
        else:
            shares = 1 / np.arange(1, self.groups + 1) if self.skew == "zipf" else np.ones(self.groups)
            rng.shuffle(shares)
            if self.skew == "empty":
                shares[rng.permutation(self.groups)[: self.groups * 3 // 10]] = 0
        ends = np.round(np.cumsum(shares) / shares.sum() * units).astype(int) * _ALIGNED
        ends[-1] = self.rows
        return [int(x) for x in ends]

    def trial(self) -> Trial:
        """Create operands of normally distributed values."""
        import torch

        torch.manual_seed(0)
        ends = self.ends()
        offs = torch.tensor(ends, dtype=torch.int32, device="cuda")
        kind: Any = {"device": "cuda", "dtype": torch.bfloat16}
        x = torch.randn(self.rows, self.k, **kind)
        y = torch.randn(self.rows, self.n, **kind) if self.steps else torch.randn(self.groups, self.k, self.n, **kind)
        a = x.t() if self.steps else x

        def ours() -> torch.Tensor:
            return op.grouped_mm(a, y, offs)

        def check() -> float:
            found, worst = ours(), 0.0
            for g, (begin, end) in enumerate(zip([0, *ends], ends)):
                if g % max(1, self.groups // 8) or begin == end:
                    continue
                part = slice(begin, end)
                wanted = x[part].double().t() @ y[part].double() if self.steps else x[part].double() @ y[g].double()
                have = found[g] if self.steps else found[part]
                length = (end - begin) if self.steps else self.k
                limit = 1.01 * 2.0**-8 * wanted.abs() + 8 * length**0.5 * 2.0**-13
                worst = max(worst, float(((have.double() - wanted).abs() / limit).max()))
            if not worst <= 1:
                raise BenchError(f"{self.name}: the error is {worst:.2f} times the limit")
            return worst

        grouped: Any = getattr(torch.nn.functional, "grouped_mm", None)
        peers: dict[str, Callable[[], Any]] = {}
        if grouped is not None:
            peers["torch"] = lambda: grouped(a, y, offs=offs)
        used = sum(end > begin for begin, end in zip([0, *ends], ends))
        matrices = (self.groups if self.steps else used) * self.k * self.n
        traffic = 2 * (self.rows * (self.k + self.n) + matrices)
        return Trial(check, ours, peers, traffic, 2.0 * self.rows * self.n * self.k, "TFLOP/s")


CASES = (
    *(Grouped(8, 8192, 14336, 4096, skew) for skew in ("even", "zipf")),
    *(Grouped(128, 65536, 1536, 2048, skew) for skew in ("even", "zipf", "empty")),
    Grouped(256, 4096, 4096, 7168),
    Grouped(8, 8192, 14336, 4096, steps=True), Grouped(128, 65536, 1536, 2048, steps=True),
    Grouped(128, 65536, 1536, 2048, "zipf", steps=True),
    *MORE,
)  # fmt: skip
