"""``cute-bench op --groups products``: GEMMs of ``op.mm`` and ``op.bmm``, with and without bias and gelu."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from cute_dialect import op
from cute_dialect.op.execute.kernels import text_of
from cute_dialect.tools.bench.checks import check_close
from cute_dialect.tools.bench.peers import compiled, normal
from cute_dialect.tools.bench.runner import Text, Trial

__all__ = ["CASES", "Product"]

LIMITS = {"f16": 2.0**-10, "bf16": 2.0**-7}
"""Maximum error relative to the element and to the RMS of the result: about one unit in the last place."""


class Product(NamedTuple):
    """``a @ b`` of (M, K) and (K, N), batched if ``matrices`` > 1, with a bias and gelu if ``fused``."""

    m: int
    n: int
    k: int
    element: str = "f16"
    matrices: int = 1
    fused: bool = False

    @property
    def operation(self) -> str:
        """``mm``, ``bmm`` or ``mm + bias + gelu``."""
        return f"{'bmm' if self.matrices > 1 else 'mm'}{' + bias + gelu' if self.fused else ''}"

    @property
    def name(self) -> str:
        batch = f"{self.matrices}x" if self.matrices > 1 else ""
        return f"{self.operation} {self.element} {batch}{self.m}x{self.n}x{self.k}"

    def kernels(self) -> Mapping[str, Text]:
        """Return the selected kernel by name, with a function that generates its text."""
        a, b = (self.m, self.k), (self.k, self.n)
        more: dict[str, Any] = {"element": self.element}
        function: Callable[..., object] = op.mm
        if self.matrices > 1:
            function, a, b = op.bmm, (self.matrices, *a), (self.matrices, *b)
        if self.fused:
            more |= {"bias": (self.n,), "activation": "gelu"}
        choice = op.explain(function, a, b, **more).choice
        assert choice is not None
        return {choice.name: partial(text_of, choice)}

    def trial(self) -> Trial:
        """Create operands of normally distributed values."""
        import torch

        torch.manual_seed(0)
        batch = (self.matrices,) if self.matrices > 1 else ()
        a, b = normal(self.element, *batch, self.m, self.k), normal(self.element, *batch, self.k, self.n)
        bias = normal(self.element, self.n) if self.fused else None
        function: Callable[..., Any] = op.bmm if batch else op.mm

        def ours() -> torch.Tensor:
            return function(a, b) if bias is None else function(a, b, bias=bias, activation="gelu")

        def peer(a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
            if bias is None:
                return torch.matmul(a, b)
            return torch.nn.functional.gelu(torch.addmm(bias, a, b))

        def check() -> float:
            # Compare all columns of some rows of each matrix.
            rows = slice(0, self.m, max(1, self.m // 64))
            wanted = a[..., rows, :].double() @ b.double()
            if bias is not None:
                wanted = torch.nn.functional.gelu(wanted + bias.double())
            return check_close(self.name, ours()[..., rows, :], wanted, LIMITS[self.element])

        size = 2 * self.matrices * (self.m * self.k + self.k * self.n + self.m * self.n)
        work = 2.0 * self.matrices * self.m * self.n * self.k
        return Trial(check, ours, compiled(peer, a, b, bias), size, work, "TFLOP/s")


CASES = (
    *(Product(s, s, s, e) for e in LIMITS for s in (4096, 8192)),
    Product(8192, 28672, 4096, "bf16"),
    *(Product(s, s, s, "f16", fused=True) for s in (4096, 8192)),
    Product(8192, 28672, 4096, "f16", fused=True),
    *(Product(m, m, k, "f16", n) for n, m, k in ((32, 2048, 128), (128, 512, 512), (16, 1024, 4096), (512, 128, 64))),
)
