"""``cute-bench op --groups grouped``: mixture-of-experts layers, masked rows and pointer-array GEMM.

The layers are bf16, forward and weight gradient, and scaled 8-bit floats.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cute_dialect import op
from cute_dialect.op.epilogue.combination import LinearCombination
from cute_dialect.op.execute.grouped import planned
from cute_dialect.op.execute.kernels import name_of, text_of
from cute_dialect.op.problems.grouped import GroupedArguments, Shapes
from cute_dialect.op.select.grouped import average, choose_grouped
from cute_dialect.tools.bench.runner import Text, Trial, check_limit, normal, unread

if TYPE_CHECKING:  # pragma: no cover
    import torch


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

    def kernels(self) -> Mapping[str, Text]:
        majors = ("m", "n") if self.steps else ("k", "n")
        found = choose_grouped(average(self.shapes, "bf16", "bf16", majors), self.shapes.form, gpu="NVIDIA H200")
        return {name_of(found): partial(text_of, found)}

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
        import torch

        torch.manual_seed(0)
        ends = self.ends()
        offs = torch.tensor(ends, dtype=torch.int32, device="cuda")
        x = normal("bf16", self.rows, self.k)
        y = normal("bf16", self.rows, self.n) if self.steps else normal("bf16", self.groups, self.k, self.n)
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
                worst = max(worst, _check_product(self.name, have, wanted, length))
            return worst

        grouped: Any = getattr(torch.nn.functional, "grouped_mm", None)
        peers: dict[str, Callable[[], Any]] = {}
        if grouped is not None:
            peers["torch"] = lambda: grouped(a, y, offs=offs)
        used = sum(end > begin for begin, end in zip([0, *ends], ends))
        matrices = (self.groups if self.steps else used) * self.k * self.n
        traffic = 2 * (self.rows * (self.k + self.n) + matrices)
        return Trial(check, ours, peers, traffic, 2.0 * self.rows * self.n * self.k, "TFLOP/s")


def _check_product(name: str, found: torch.Tensor, wanted: torch.Tensor, terms: int, unit: float = 2.0**-8) -> float:
    """Return the error relative to a limit: the rounding of the result, and of sums of ``terms`` products."""
    return check_limit(name, found, wanted, 1.01 * unit * wanted.abs() + 8 * terms**0.5 * 2.0**-13)


def _kernels(given: GroupedArguments) -> Mapping[str, Text]:
    """Return the kernels of a call.  The operands may be uninitialized."""
    return {name_of(c): partial(text_of, c) for c, _ in planned("cute-bench", given, "cpu").launches}


class ScaledGroups(NamedTuple):
    """``scaled_grouped_mm`` of ``rows`` e4m3 tokens, divided evenly among ``groups`` experts of (n, k), to bf16.

    ``recipe`` is ``row`` or ``block``.
    """

    groups: int
    rows: int
    n: int
    k: int
    recipe: str

    @property
    def operation(self) -> str:
        """The function and the recipe, for example ``scaled_grouped_mm row``."""
        return f"scaled_grouped_mm {self.recipe}"

    @property
    def name(self) -> str:
        return f"{self.operation} {self.groups}x{self.rows}x{self.n}x{self.k}"

    def ends(self) -> list[int]:
        """Return the end offsets of the groups."""
        return [self.rows // self.groups * (g + 1) for g in range(self.groups)]

    def scales(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the shapes of the scales."""
        if self.recipe == "row":
            return (self.rows, 1), (self.groups, self.n)
        blocks = -(-self.k // 128)
        return (self.rows, blocks), (self.groups, -(-self.n // 128), blocks)

    def kernels(self) -> Mapping[str, Text]:
        a = unread("f8E4M3FN", self.rows, self.k)
        b = unread("f8E4M3FN", self.groups, self.n, self.k).transpose(0, 2, 1)
        sa, sb = (unread("f32", *shape) for shape in self.scales())
        block = self.recipe == "block"
        return _kernels(GroupedArguments(
            a, b, {"offs": self.ends()}, dtype="bf16", scales={"scale_a": sa, "scale_b": sb},
            extras=LinearCombination(math="default" if block else "promote", accumulator="block" if block else None),
        ))  # fmt: skip

    def trial(self) -> Trial:
        """Create normally distributed operands and scales around one."""
        import torch

        torch.manual_seed(0)
        a, b = normal("f8E4M3FN", self.rows, self.k), normal("f8E4M3FN", self.groups, self.n, self.k)
        sa, sb = (torch.rand(shape, device="cuda") + 0.5 for shape in self.scales())
        offs = torch.tensor(self.ends(), dtype=torch.int32, device="cuda")

        def ours() -> torch.Tensor:
            return op.scaled_grouped_mm(a, b.mT, sa, sb, offs)

        def check() -> float:
            found, worst, begin = ours(), 0.0, 0
            for g, end in enumerate(self.ends()):
                rows = slice(begin, end, max(1, (end - begin) // 16))
                begin = end
                if g % max(1, self.groups // 8):
                    continue
                x, y = a[rows].double(), b[g].double()
                if self.recipe == "block":
                    x = x * sa[rows].double().repeat_interleave(128, 1)[:, : self.k]
                    wide = sb[g].double().repeat_interleave(128, 0)[: self.n]
                    y = y * wide.repeat_interleave(128, 1)[:, : self.k]
                else:
                    x, y = x * sa[rows].double(), y * sb[g].double()[:, None]
                wanted, spread = x @ y.t(), (x.square() @ y.t().square()).sqrt()
                # The result is rounded to bf16.  Tensor cores truncate sums to 13 bits (see :mod:`.gemm`).
                limit = 1.01 * 2.0**-8 * wanted.abs() + 6 * 4 * 2.0**-14 * (wanted.abs() + spread)
                worst = max(worst, check_limit(self.name, found[rows], wanted, limit))
            return worst

        peers: dict[str, Callable[[], Any]] = {}
        grouped: Any = getattr(torch, "_scaled_grouped_mm", None)
        if grouped is not None and self.recipe == "row":
            peers["torch"] = lambda: grouped(
                a, b.mT, sa[:, 0].contiguous(), sb, offs=offs, out_dtype=torch.bfloat16, use_fast_accum=False
            )
        traffic = self.rows * (self.k + 2 * self.n) + self.groups * self.n * self.k
        return Trial(check, ours, peers, traffic, 2.0 * self.rows * self.n * self.k, "TFLOP/s")


class Masked(NamedTuple):
    """Batches of ``groups`` bf16 matrices with ``most`` rows, of which 1 to ``used`` are valid, as in decoding."""

    groups: int
    most: int
    used: int
    n: int
    k: int

    operation = "grouped_mm lengths"

    @property
    def name(self) -> str:
        return f"{self.operation} {self.groups}x{self.used}/{self.most}x{self.n}x{self.k}"

    def lengths(self) -> list[int]:
        """Return the number of valid rows of each matrix."""
        return [int(x) for x in np.random.default_rng(0).integers(1, self.used + 1, self.groups)]

    def kernels(self) -> Mapping[str, Text]:
        a, b = unread("bf16", self.groups, self.most, self.k), unread("bf16", self.groups, self.k, self.n)
        return _kernels(GroupedArguments(a, b, {"lengths": self.lengths()}))

    def trial(self) -> Trial:
        """Create operands of normally distributed values; torch multiplies all rows."""
        import torch

        torch.manual_seed(0)
        used = self.lengths()
        a, b = normal("bf16", self.groups, self.most, self.k), normal("bf16", self.groups, self.k, self.n)
        lengths = torch.tensor(used, dtype=torch.int32, device="cuda")

        def ours() -> torch.Tensor:
            return op.grouped_mm(a, b, lengths=lengths)

        def check() -> float:
            found, worst = ours(), 0.0
            for g in range(0, self.groups, max(1, self.groups // 8)):
                wanted = a[g, : used[g]].double() @ b[g].double()
                worst = max(worst, _check_product(self.name, found[g, : used[g]], wanted, self.k))
            return worst

        traffic = 2 * (sum(used) * (self.k + self.n) + self.groups * self.k * self.n)
        return Trial(check, ours, {"torch bmm": lambda: torch.bmm(a, b)}, traffic, float(traffic), "TB/s")


class Lists(NamedTuple):
    """Pointer-array GEMM of f16 problems with random M, N and K of 128 to 1024, compared with a loop of torch.mm."""

    products: int
    multiple: int = 128

    operation = "grouped_mm list"

    @property
    def name(self) -> str:
        return f"{self.operation} {self.products} of 128..1024 by {self.multiple}"

    def sizes(self) -> list[tuple[int, int, int]]:
        """Return M, N and K of each problem."""
        units = np.random.default_rng(0).integers(128 // self.multiple, 1024 // self.multiple + 1, (self.products, 3))
        return [(int(m), int(n), int(k)) for m, n, k in units * self.multiple]

    def kernels(self) -> Mapping[str, Text]:
        a = [np.empty((m, k), np.float16) for m, _, k in self.sizes()]
        b = [np.empty((k, n), np.float16) for _, n, k in self.sizes()]
        arguments: Any = op.GroupedGemm(element="f16", layout="row", precompute_mode="host").arguments(
            a, b, device="cpu"
        )
        return {v.name: v.text for v in arguments.variants}

    def trial(self) -> Trial:
        import torch

        torch.manual_seed(0)
        a = [normal("f16", m, k) for m, _, k in self.sizes()]
        b = [normal("f16", k, n) for _, n, k in self.sizes()]

        def ours() -> list[torch.Tensor]:
            return op.grouped_mm(a, b)

        def check() -> float:
            return max(
                _check_product(self.name, found, x.double() @ y.double(), x.shape[1], 2.0**-11)
                for x, y, found in zip(a, b, ours())
            )

        flops = sum([2.0 * m * n * k for m, n, k in self.sizes()])
        traffic = sum([2 * (m * k + k * n + m * n) for m, n, k in self.sizes()])
        peers = {"torch loop": lambda: [x @ y for x, y in zip(a, b)]}
        return Trial(check, ours, peers, traffic, flops, "TFLOP/s")


CASES = (
    *(Grouped(8, 8192, 14336, 4096, skew) for skew in ("even", "zipf")),
    *(Grouped(128, 65536, 1536, 2048, skew) for skew in ("even", "zipf", "empty")),
    Grouped(256, 4096, 4096, 7168),
    Grouped(8, 8192, 14336, 4096, steps=True), Grouped(128, 65536, 1536, 2048, steps=True),
    Grouped(128, 65536, 1536, 2048, "zipf", steps=True),
    ScaledGroups(8, 8192, 14336, 4096, "row"), ScaledGroups(128, 65536, 1536, 2048, "row"),
    ScaledGroups(4, 32768, 4096, 7168, "block"), ScaledGroups(4, 32768, 7168, 2048, "block"),
    ScaledGroups(8, 32768, 4096, 7168, "block"),
    Masked(32, 128, 64, 4096, 4096), Masked(32, 128, 128, 4096, 4096), Masked(8, 1024, 128, 7168, 2048),
    Lists(20), Lists(128), Lists(20, 8),
)  # fmt: skip

GROUPS = {"grouped": CASES}
