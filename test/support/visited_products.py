"""Plans with traced epilogues for the GPU tests: their parameters, their operands, and the kernels that they use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from cute_dialect import op
from cute_dialect.op import epilogue
from cute_dialect.op.epilogue import pairs, relu


def combined(accum: Any, alpha: Any, C: Any, beta: Any, bias: Any) -> Any:
    """Compute two results with scalars, a per-element argument and a per-column argument."""
    F = alpha * accum + beta * C
    D = relu(F + 1) + bias
    return D, F


def reduced(accum: Any, bias: Any) -> Any:
    """Reduce over rows, over columns and over all elements."""
    x = accum + bias
    return {"D": x, "rows": epilogue.sum(x, -1), "columns": epilogue.max(accum, -2), "all": epilogue.sum(accum)}


def gated(accum: Any) -> Any:
    """Combine each pair of columns into one."""
    gate, up = pairs(accum)
    return relu(gate) + up


class Visited(NamedTuple):
    """A GEMM with the epilogue ``function``; ``shape`` is (M, N, K), ``plan`` holds arguments of ``op.Gemm``."""

    name: str
    function: Callable[..., Any]
    shape: tuple[int, int, int] = (264, 400, 272)
    plan: dict[str, Any] = {}
    batch: int = 0
    split: Any = None

    def planned(self) -> op.Gemm:
        plan = op.Gemm(**{"element": "f16", "layout": "row", **self.plan})
        plan.epilogue_visitor = self.function
        return plan

    def operands(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return A and B, and the arguments of the epilogue, as small integers."""
        m, n, k = self.shape
        rng, many = np.random.default_rng(m + n + k), (self.batch,) if self.batch else ()
        kind = np.float32 if self.plan.get("element") == "f32" else np.float16

        def integers(*shape: int, dtype: Any = kind) -> np.ndarray[Any, Any]:
            return rng.integers(-1, 2, shape).astype(dtype)

        made = {"A": integers(*many, m, k), "B": integers(*many, k, n)}
        bias = integers(n, dtype=np.float32)
        args = {"combined": {"alpha": 0.5, "C": integers(*many, m, n), "beta": 2.0, "bias": bias},
                "reduced": {"bias": bias}, "gated": {}}  # fmt: skip
        return made, args[self.function.__name__]


CASES = [
    Visited("rows", combined),
    Visited("columns", combined, plan={"layout_C": "column"}),
    Visited("f32 results", combined, plan={"element_C": "f32"}),
    Visited("a batch", combined, (136, 200, 72), batch=3),
    Visited("few rows", combined, (8, 4096, 512)),
    Visited("odd", combined, (333, 101, 65)),
    Visited("sm_80", combined, plan={"kernel_cc": 80}),
    Visited("exact f32", combined, (333, 101, 65), plan={"element": "f32"}),
    Visited("parts, serial", combined, (256, 256, 4096), split=("serial", 4)),
    Visited("parts, parallel", combined, (264, 400, 4104), split=("parallel", 3)),
    Visited("reductions", reduced, (1000, 600, 128)),
    Visited("reductions, columns", reduced, (1000, 600, 128), plan={"layout_C": "column"}),
    Visited("reductions of a batch", reduced, (136, 200, 72), batch=3),
    Visited("pairs", gated, (264, 512, 272)),
]


def texts() -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield the name and the text of each kernel."""
    for case in CASES:
        made, args = case.operands()
        found = case.planned().arguments(**made, visitor_args=args, split_k=case.split)
        for variant in found.sources():
            yield variant.name, variant.text
