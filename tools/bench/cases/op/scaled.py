"""``cute-bench op --groups scaled``: e4m3 GEMMs with scales per tensor, per row and per block."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from cute_dialect import op
from cute_dialect.op.execute.kernels import text_of
from cute_dialect.op.functions.scaled import scaled_kernel
from cute_dialect.tools.bench.checks import BenchError, check_limit
from cute_dialect.tools.bench.peers import normal, operator
from cute_dialect.tools.bench.runner import Text, Trial

__all__ = ["CASES", "Scaled"]


class Scaled(NamedTuple):
    """``scaled_mm`` of (M, K) and (K, N), contiguous along K, to bf16; ``recipe``: ``tensor``, ``row`` or ``block``."""

    m: int
    n: int
    k: int
    recipe: str
    fast: bool = False

    @property
    def operation(self) -> str:
        """The function and the recipe, for example ``scaled_mm row fast``."""
        return f"scaled_mm {self.recipe}{' fast' * self.fast}"

    @property
    def name(self) -> str:
        return f"{self.operation} {self.m}x{self.n}x{self.k}"

    def kernels(self) -> Mapping[str, Text]:
        """Return the kernel of the call by name, with a function that generates its text."""
        choice = scaled_kernel(self.m, self.n, self.k, self.recipe, fast=self.fast, gpu="NVIDIA H200")
        return {choice.name: partial(text_of, choice)}

    def trial(self) -> Trial:
        """Create operands of normally distributed values and scales around one."""
        import torch

        torch.manual_seed(0)
        a, b = (normal("f8E4M3FN", rows, self.k) for rows in (self.m, self.n))
        blocks = -(-self.k // 128)
        shapes = {
            "tensor": ((1,), (1,)),
            "row": ((self.m, 1), (1, self.n)),
            "block": ((self.m, blocks), (-(-self.n // 128), blocks)),
        }
        sa, sb = (torch.rand(s, device="cuda") + 0.5 for s in shapes[self.recipe])

        def ours() -> torch.Tensor:
            return op.scaled_mm(a, b.t(), sa, sb, recipe=self.recipe, fast=self.fast)

        def check() -> float:
            rows = slice(0, self.m, max(1, self.m // 64))
            x, y = a[rows].double(), b.double()
            if self.recipe == "block":
                x = x * sa[rows].double().repeat_interleave(128, 1)[:, : self.k]
                y = y * sb.double().repeat_interleave(128, 0)[: self.n].repeat_interleave(128, 1)[:, : self.k]
                wanted, s = x @ y.t(), sa
            else:
                s = sa[rows].double() if self.recipe == "row" else sa.double()
                wanted = x @ y.t() * s * sb.double()
            # The result is rounded to bf16.  Tensor cores truncate sums of 32 products to 13 bits, over all of K or
            # over 128 of it.  They accumulate like a random walk: the largest of millions is six times the RMS.
            spread = (x.square() @ y.t().square()).sqrt()
            spread = spread if self.recipe == "block" else spread * s * sb.double()
            of_sums = (self.k / 32 if self.fast else 6 * 4) * 2.0**-14
            limit = 1.01 * 2.0**-8 * wanted.abs() + of_sums * (wanted.abs() + spread)
            return check_limit(self.name, ours()[rows], wanted, limit)

        scaled_mm = operator("_scaled_mm")

        def with_scales(x: torch.Tensor, y: torch.Tensor) -> Callable[[], torch.Tensor]:
            return lambda: scaled_mm(a, b.t(), x, y, out_dtype=torch.bfloat16, use_fast_accum=self.fast)

        peers: dict[str, Callable[[], Any]] = {}
        if self.recipe == "block":
            # cuBLASLt needs scales of A with contiguous columns, and scales of B padded to four blocks along K.
            of_b = torch.zeros(sb.shape[0], -(-blocks // 4) * 4, device="cuda")
            of_b[:, :blocks] = sb
            peers["torch"] = with_scales(sa.t().contiguous().t(), of_b[:, :blocks].t())
            same = (peers["torch"]()[:64].double() - ours()[:64].double()).norm() / ours()[:64].double().norm()
            if not float(same) <= 2.0**-7:
                raise BenchError(f"{self.name}: the result of torch differs by {float(same):.3g}")
        else:
            peers["torch"] = with_scales(sa, sb) if self.recipe == "row" else with_scales(sa[0], sb[0])
        traffic = self.m * self.k + self.n * self.k + 2 * self.m * self.n
        return Trial(check, ours, peers, traffic, 2.0 * self.m * self.n * self.k, "TFLOP/s")


CASES = (
    *(
        Scaled(m, n, k, recipe, fast) for recipe in ("tensor", "row") for fast in (True, False)
        for m, n, k in ((4096, 4096, 4096), (8192, 8192, 8192), (8192, 7168, 4096))
    ),
    *(
        Scaled(m, n, k, "block") for m in (64, 128, 4096)
        for n, k in ((2112, 7168), (24576, 1536), (7168, 16384), (4096, 7168))
    ),
)  # fmt: skip
