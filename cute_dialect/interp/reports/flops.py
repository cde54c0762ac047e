"""Floating-point operation counts for ``reports=["flops"]``.

An addition, subtraction, multiplication or division counts 1 per lane, a fused multiply-add 2, each times the elements
of a vector. An MMA of shape (M, N, K) counts 2·M·N·K, once for the warp or warpgroup that executes it. Comparisons,
conversions and functions such as ``exp`` count 0, as is usual.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import TYPE_CHECKING

from cute_dialect.interp.errors import op_name, op_text

if TYPE_CHECKING:
    from xdsl.ir import Operation

    from cute_dialect.interp.compiler.steps import GenStep, Step
    from cute_dialect.interp.machine.group import Group, Wait
    from cute_dialect.interp.values import Regs

__all__ = ["FlopCount", "flops_of"]

_ONE = re.compile(r"(arith|llvm)\.f?(add|sub|mul|div)f?")
_TWO = re.compile(r"(math|llvm\.intr|nvvm)\.(fma|fmuladd)(\.\w+)*")
_SHAPE = re.compile(r"m\s*=\s*(\d+)\D+n\s*=\s*(\d+)\D+k\s*=\s*(\d+)|\.m(\d+)n(\d+)k(\d+)")
_PTX_FMA = re.compile(r"\bfma\.rn[.\w]*?\.(f16x2|bf16x2|f32x2|f16|bf16|f32|f64)")
_WARP, _WARPGROUP = 32, 128


class FlopCount:
    """Counts of a launch per op: scalar operations, and operations of tensor cores."""

    def __init__(self) -> None:
        self.scalar: dict[Operation, float] = {}
        self.tensor: dict[Operation, float] = {}

    @property
    def total(self) -> float:
        return sum(self.scalar.values()) + sum(self.tensor.values())

    def step(self, step: Step, op: Operation) -> Step:
        """Wrap a step so that it also counts. Returns the step itself if its op is not counted."""
        found = self._table(op)
        if found is None:
            return step
        per_lane, table = found

        def counted(R: Regs, g: Group) -> None:
            table[op] += per_lane * g.mask.n
            step(R, g)

        return counted

    def blocking(self, gen: GenStep, op: Operation) -> GenStep:
        """Wrap a step that may wait so that it also counts."""
        found = self._table(op)
        if found is None:
            return gen
        per_lane, table = found

        def counted(R: Regs, g: Group) -> Generator[Wait, None, None]:
            table[op] += per_lane * g.mask.n
            yield from gen(R, g)

        return counted

    def _table(self, op: Operation) -> tuple[float, dict[Operation, float]] | None:
        """Return the count of an op per lane and the table it belongs to, None if it is not counted."""
        found = flops_of(op)
        if found is None:
            return None
        table = self.tensor if found[1] else self.scalar
        table.setdefault(op, 0.0)
        return found[0], table


def flops_of(op: Operation) -> tuple[float, bool] | None:
    """Return the operations of an op per lane, and whether tensor cores execute them. None if it has none."""
    name = op_name(op)
    if _ONE.fullmatch(name) and _is_float(op):
        return float(_elements(op)), False
    if _TWO.fullmatch(name):
        return 2.0 * _elements(op), False
    if not ("mma" in name or name == "llvm.inline_asm"):
        return None
    text = str(op) if name == "llvm.inline_asm" or "shape" in op.properties else op_text(op)
    if "mma" not in text:
        fmas = _PTX_FMA.findall(text)
        return (float(sum(4 if f.endswith("x2") else 2 for f in fmas)), False) if fmas else None
    found = [[int(n) for n in m.groups() if n is not None] for m in _SHAPE.finditer(text)]
    if not found or not re.search(r"mma[._]async|mma\.sync|mma\.sp", text):
        return None
    lanes = _WARPGROUP if "wgmma" in text else _WARP
    return sum(2.0 * m * n * k for m, n, k in found) / lanes, True


def _is_float(op: Operation) -> bool:
    return any(c in str(op.results[0].type) for c in ("f16", "f32", "f64", "bf16", "f8", "tf32"))


def _elements(op: Operation) -> int:
    shape = re.match(r"vector<(\d+(?:x\d+)*)x", str(op.results[0].type))
    count = 1
    for n in shape[1].split("x") if shape is not None else ():
        count *= int(n)
    return count
