"""Thirty random epilogues of small integers on the interpreter, exactly equal to the same function in numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from cute_dialect import op
from cute_dialect.op.epilogue import cast, clamp, column, d_relu, leaky_relu, maximum, minimum, relu, row, where

M, N, K = 72, 104, 40
TYPES = [np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16), np.dtype(np.float32), np.dtype(np.int8)]
SHAPES = {"row": (N,), "flat": (1, N), "column": (M, 1), "aux": (M, N), "one": (1, 1)}

UNARY: list[Callable[[Any], Any]] = [
    relu, d_relu, abs, lambda x: -x, lambda x: clamp(x, -3.0, 5.0), lambda x: leaky_relu(x, 0.5),
    lambda x: cast(x, "f16"), lambda x: x / 2.0, lambda x: where(x > 1.0, x - 2.0, 3.0),
]  # fmt: skip
BINARY: list[Callable[[Any, Any], Any]] = [
    lambda x, y: x + y, lambda x, y: x - y, maximum, minimum, lambda x, y: where(x <= y, x, y + 1.0),
    lambda x, y: where((x > y) | (y == 0.0), x, -y),
]  # fmt: skip


class Program:
    """A random function. Its steps are drawn once and can be replayed on any argument."""

    def __init__(self, seed: int):
        rng = np.random.default_rng(seed)
        self.names = [f"x{i}" for i in range(rng.integers(1, 4))]
        self.kinds = {n: str(rng.choice([*SHAPES, "number"])) for n in self.names}
        self.types = {n: TYPES[rng.integers(len(TYPES))] for n in self.names}
        self.orders = {n: str(rng.choice(["rows", "columns", "steps"])) for n in self.names}
        self.steps: list[tuple[int, int, int]] = []
        count = 3 + len(self.names)  # the accumulator, its row and its column
        for _ in range(rng.integers(4, 10)):
            function = int(rng.integers(len(UNARY) + len(BINARY)))
            self.steps.append((function, int(rng.integers(count)), int(rng.integers(count))))
            count += 1
        self.results = sorted({int(x) for x in rng.integers(3 + len(self.names), count, rng.integers(0, 3))})
        self.rng = rng

    def function(self) -> Callable[..., Any]:
        """Return the function, with unique parameter names."""
        space: dict[str, Any] = {"run": self.run}
        exec(f"def program(accum, {', '.join(self.names)}): return run(accum, {', '.join(self.names)})", space)
        return space["program"]

    def run(self, accum: Any, *inputs: Any) -> Any:
        values = [accum, row(accum) % 7, column(accum) // 16, *inputs]
        for function, i, j in self.steps:
            if function < len(UNARY):
                values.append(UNARY[function](values[i] + 0.0 * accum))
            else:
                values.append(BINARY[function - len(UNARY)](values[i] + 0.0, values[j] + 0.0 * accum))
        # Every value must be used in the result.
        last = minimum(maximum(values[-1] + values[3], -500.0), 500.0)
        return {"D": last, **{f"r{k}": values[k] for k in self.results}}

    def arguments(self) -> dict[str, Any]:
        """Return arguments filled with small integers."""
        found: dict[str, Any] = {}
        for name, kind in self.kinds.items():
            if kind == "number":
                found[name] = float(self.rng.integers(-3, 4))
                continue
            values = self.rng.integers(-3, 4, SHAPES[kind]).astype(self.types[name])
            if self.orders[name] == "columns":
                values = np.asfortranarray(values)
            elif self.orders[name] == "steps":
                values = np.repeat(values, 2, axis=-1)[..., ::2]
            found[name] = values
        return found


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(30))
def test_a_random_graph(seed: int) -> None:
    program = Program(seed)
    function, rng = program.function(), np.random.default_rng(seed)
    a, b = (rng.integers(-1, 2, s).astype(np.float16) for s in ((M, K), (K, N)))
    if seed % 3 == 0:
        a, b = np.asfortranarray(a), np.asfortranarray(b)
    out = np.full((M, N), np.nan, np.float32, order="F" if seed % 5 == 0 else "C")
    args = program.arguments()
    memory = {f"r{k}": np.full((M, N), np.nan, np.float32, order="CF"[k % 2]) for k in program.results}
    found = op.mm(a, b, out, epilogue=function, args={**args, **memory}, device="cpu")
    wide = {n: x.astype(np.float64) if isinstance(x, np.ndarray) else x for n, x in args.items()}
    wanted = function(a.astype(np.float64) @ b.astype(np.float64), **wide)
    assert list(found) == list(wanted) and found["D"] is out
    for name, want in wanted.items():
        assert (found[name] == want).all(), name


def test_random_graphs_differ() -> None:
    """The thirty graphs give thirty different kernels and cover every kind of input, type and operation."""
    programs = [Program(seed) for seed in range(30)]
    assert {k for p in programs for k in p.kinds.values()} == {*SHAPES, "number"}
    assert {t for p in programs for t in p.types.values()} == {*TYPES}
    assert {f for p in programs for f, _, _ in p.steps} == set(range(len(UNARY) + len(BINARY)))
