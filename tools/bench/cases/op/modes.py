"""``cute-bench op --groups modes``: pointer-array GEMM, batched split-K, and math modes of plans."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from cute_dialect import op
from cute_dialect.op.execute.variants import Variant
from cute_dialect.tools.bench.checks import check_exact, check_limit
from cute_dialect.tools.bench.peers import dtype, operator, unread
from cute_dialect.tools.bench.runner import Text, Trial

__all__ = ["CASES", "Mode"]


class Mode(NamedTuple):
    """``matrices`` GEMMs of (M, K) and (K, N), as an array of pointers (``array``) or a batch.

    ``split`` is the number of split-K slices and ``math`` the math mode of the plan.  B is contiguous along K for i8,
    else along N.
    """

    m: int
    n: int
    k: int
    element: str = "f16"
    matrices: int = 1
    array: bool = False
    split: tuple[str, int] = ("serial", 1)
    math: str = "multiply_add"

    @property
    def operation(self) -> str:
        """The kind and the element type, for example ``array f16``."""
        what = "array" if self.array else f"split-K {self.split[0]}" if self.split[1] > 1 else self.math
        return f"{what} {self.element}"

    @property
    def name(self) -> str:
        parts = f", {self.split[1]} parts" if self.split[1] > 1 else ""
        return f"{self.operation} {self.matrices}x{self.m}x{self.n}x{self.k}{parts}"

    def plan(self) -> op.Gemm:
        """Return the plan of the call."""
        of_b = "column" if self.element == "i8" else "row"
        result = "i32" if self.element == "i8" else self.element
        plan = op.Gemm(element=self.element, element_C=result, layout_A="row", layout_B=of_b, layout_C="row")
        plan.math_operation = self.math
        return plan

    def kernels(self) -> Mapping[str, Text]:
        """Return the kernels of the call by name, with functions that generate their texts."""
        m, n, k, result = self.m, self.n, self.k, "i32" if self.element == "i8" else self.element
        operand, plan, found = partial(unread, self.element), self.plan(), list[Variant]()
        columns = self.element == "i8"
        if self.array:
            count = range(self.matrices)
            a, d = [operand(m, k) for _ in count], [unread(result, m, n) for _ in count]
            b = [operand(n, k).T if columns else operand(k, n) for _ in count]
            arguments = plan.arguments(a, b, None, d, device="cpu")
            found = [arguments.operation.variant_for(arguments.operands, array=True)]
        else:
            batch = (self.matrices,) if self.matrices > 1 else ()
            b = operand(n, k).T if columns and not batch else operand(*batch, k, n)
            a, d = operand(*batch, m, k), unread(result, *batch, m, n)
            found = plan.arguments(a, b, None, d, split_k=self.split, device="cpu").sources()
        return {variant.name: variant.text for variant in found}

    def trial(self) -> Trial:
        """Create operands of normally distributed values or small integers."""
        import torch

        torch.manual_seed(0)
        torch.backends.cuda.matmul.allow_tf32 = False
        kind = dtype(self.element)

        def normal(rows: int, columns: int) -> Any:
            size = (self.matrices, rows, columns)
            if self.element == "i8":
                return torch.randint(-128, 128, size, device="cuda", dtype=kind)
            return torch.randn(size, device="cuda").to(kind)

        a, b = normal(self.m, self.k), normal(self.k, self.n)
        if self.element == "i8":
            b = normal(self.n, self.k).mT
        d = torch.empty(
            self.matrices, self.m, self.n, device="cuda", dtype=torch.int32 if self.element == "i8" else kind
        )
        plan = self.plan()
        if self.array:
            of_a, of_b, of_d = ([x.clone() for x in t] if t is not d else list(d.clone()) for t in (a, b, d))
            ours = plan.bind(of_a, of_b, None, of_d)
        elif self.matrices > 1:
            of_d, ours = d, plan.bind(a, b, None, d, split_k=self.split)
        else:
            of_d, ours = d, plan.bind(a[0], b[0], None, d[0], split_k=self.split)

        def loop() -> None:
            for x, y in zip(a, b):
                torch.mm(x, y)

        peers: dict[str, Callable[[], object]] = {"torch": lambda: torch.bmm(a, b)}
        if self.element == "i8":
            peers = {"torch": lambda: operator("_int_mm")(a[0], b[0])}
        elif self.array:
            peers["loop of torch.mm"] = loop

        def check() -> float:
            ours()
            worst = 0.0
            for x, y, z in zip(a, b, of_d):
                rows = slice(0, self.m, max(1, self.m // 32))
                exact, found = x[rows].double() @ y.double(), z[rows].double()
                if self.element == "i8":
                    check_exact(self.name, found, exact)
                    continue
                scale = exact.square().mean().sqrt()
                unit = {"f16": 2.0**-11, "bf16": 2.0**-8, "f32": 2.0**-24}[self.element]
                narrow = {"multiply_add_fast_f16": 2.0**-11, "multiply_add_fast_bf16": 2.0**-8}.get(self.math, 0.0)
                limit = 1.01 * unit * exact.abs() + (6 * narrow + self.k * 2.0**-24) * (scale + exact.abs())
                worst = max(worst, check_limit(self.name, found, exact, limit))
            return worst

        traffic = sum(t.numel() * t.element_size() for t in (a, b, d))
        work = 2.0 * self.matrices * self.m * self.n * self.k
        return Trial(check, ours, peers, traffic, work, "TFLOP/s")


CASES = (
    Mode(512, 512, 512, matrices=128, array=True),
    Mode(1024, 1024, 4096, matrices=16, array=True),
    Mode(2048, 2048, 128, "bf16", matrices=32, array=True),
    Mode(256, 256, 256, "f32", matrices=64, array=True),
    Mode(256, 256, 16384, matrices=4, split=("parallel", 8)),
    Mode(256, 256, 16384, matrices=4, split=("serial", 8)),
    *(Mode(4096, 4096, 4096, "f32", math=f"multiply_add_{math}") for math in ("fast_f32", "fast_f16", "fast_bf16")),
    Mode(4096, 4096, 4096, "i8", math="multiply_add_saturate"),
)
