"""Row sum, softmax, RMSNorm and LayerNorm compared with torch: ``cute-bench rows`` and ``rows_sweep``.

Kernels are first checked against float64 for f32, f16 and bf16: few and many rows, padded and misaligned rows, poisoned
outputs.  Then TB/s with a cold L2 are measured for 2^28 elements of each row length.  Each row counts as read once and,
except for sums, written once.

``rows_sweep`` builds the default assignment of rows to threads and blocks and those of :func:`space`.  All kernels of a
case run in alternating rounds with torch; the report shows the best three and the default.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from cute_dialect.kernels.rows.config import SHARED_MEMORY, RowConfig, row_class, shared_bytes, width
from cute_dialect.kernels.rows.forward import row_text
from cute_dialect.kernels.rows.sums import sum_class, sum_text
from cute_dialect.runtime.progress import track
from cute_dialect.tools.bench.runner import (
    BenchError,
    Benchmark,
    Row,
    Say,
    Text,
    build_kernels,
    check_close,
    dtype,
    loaded,
    median_times,
    normal,
    row,
)

if TYPE_CHECKING:  # pragma: no cover
    import torch

    from cute_dialect.runtime.launch import Kernel


BYTES = {"f32": 4, "f16": 2, "bf16": 2}
ELEMENTS = 1 << 28
EPS = 1e-5
LIMITS = {"f32": 4e-6, "f16": 1.1e-3, "bf16": 9e-3}
"""Maximum error relative to the element and to the RMS of the rows: about one unit in the last place."""


class Case(NamedTuple):
    """A kernel and the matrix to measure it with."""

    op: str
    element: str
    n: int
    rows: int

    @property
    def folder(self) -> str:
        """The folder of the kernel."""
        return f"{self.op}-{self.element}-{self.n}"

    @property
    def traffic(self) -> int:
        """The minimum number of bytes to move."""
        per_row = self.n + 1 if self.op == "sum" else 2 * self.n
        weights = {"rmsnorm": 1, "layernorm": 2}.get(self.op, 0) * self.n
        return BYTES[self.element] * (self.rows * per_row + weights)

    def __str__(self) -> str:
        return f"{self.op} {self.element} {self.rows}x{self.n}"


CASES = (
    *(Case("sum", e, n, ELEMENTS // n) for e in ("f32", "f16") for n in (1024, 4096, 32768)),
    *(Case("sum", e, 1024, 1024) for e in ("f32", "f16")),
    *(
        Case(op, e, n, ELEMENTS // n)
        for op in ("softmax", "rmsnorm", "layernorm")
        for e in BYTES
        for n in (1024, 4096, 32768, 131072)
    ),
)


def class_of(case: Case) -> RowConfig:
    """Return the default configuration of a case, which assigns rows to threads."""
    return sum_class(case.element, case.n) if case.op == "sum" else row_class(case.op, case.element, case.n)


CHECKS = ((1, 0, 0), (7, 8, 0), (133, 1, 0), (133, 8, 1))
"""Rows, row padding in elements, offset in elements of the first row."""


def text_of(case: Case, config: RowConfig) -> Text:
    """Return the function that generates the kernel of a case."""
    return partial(sum_text if case.op == "sum" else row_text, case.op, case.element, case.n, config)


def build(folder: str, chip: str) -> list[str]:
    return build_kernels({c.folder: text_of(c, class_of(c)) for c in CASES}, folder, chip)


def run(folder: str, *, runs: int, large: bool, say: Say) -> dict[str, object]:
    import torch

    rows: list[Row] = []
    for case in track(CASES, "measuring", "cases"):
        kernel = loaded(folder, case.folder).kernel(case.op)
        chosen = {check(kernel, case, *shape) for shape in CHECKS}
        data = Data(case, case.rows)
        error = data.check(kernel)
        say(f"  correct: {case}, error {error:.2f} times the limit, by {', '.join(f'@{c}' for c in sorted(chosen))}")
        rows.append(measure([("ours", kernel)], data, runs)[0])
        say(f"    {rows[-1]['ours']:.3f} TB/s, torch {rows[-1]['peer']:.3f}, {rows[-1]['ratio']:.3f} of torch's speed")
        del data
        torch.cuda.empty_cache()
    return {"rows": rows}


class Data:
    """The tensors of a case and torch's operation on them."""

    def __init__(self, case: Case, rows: int, padding: int = 0, offset: int = 0):
        import torch

        self.case = case
        torch.manual_seed(rows + case.n)
        self.dtype = dtype(case.element)
        self.x = self._matrix(rows, padding, offset)
        self.x.normal_()
        count = {"rmsnorm": 1, "layernorm": 2}.get(case.op, 0)
        self.weights = [normal(case.element, case.n) for _ in range(count)]
        if case.op == "sum":
            self.y = torch.full((rows,), float("nan"), device="cuda", dtype=self.dtype)
        else:
            self.y = self._matrix(rows, padding, offset)

    def _matrix(self, rows: int, padding: int, offset: int) -> torch.Tensor:
        import torch

        n = self.case.n
        storage = torch.full((rows * (n + padding) + offset,), float("nan"), device="cuda", dtype=self.dtype)
        return torch.as_strided(storage, (rows, n), (n + padding, 1), offset)

    @property
    def given(self) -> list[object]:
        """Return the arguments of the kernel."""
        return [self.x, *self.weights, self.y, *([EPS] if self.weights else [])]

    def peer(self) -> Callable[[], object]:
        """Return a function that calls torch's operation."""
        import torch
        import torch.nn.functional as F

        x, n, op = self.x, self.case.n, self.case.op
        if op == "sum":
            out = torch.empty_like(self.y)
            return lambda: torch.sum(x, 1, out=out)
        if op == "softmax":
            out = torch.empty_like(self.y)
            return lambda: torch.softmax(x, 1, out=out)
        if op == "rmsnorm":
            return lambda: F.rms_norm(x, (n,), self.weights[0], EPS)
        return lambda: F.layer_norm(x, (n,), self.weights[0], self.weights[1], EPS)

    def reference(self, part: slice) -> torch.Tensor:
        """Return some rows of the result in float64."""
        import torch

        x, w, op = self.x[part].double(), [w.double() for w in self.weights], self.case.op
        if op == "sum":
            return x.sum(1)
        if op == "softmax":
            return torch.softmax(x, 1)
        if op == "rmsnorm":
            return x * torch.rsqrt((x * x).mean(1, keepdim=True) + EPS) * w[0]
        centered = x - x.mean(1, keepdim=True)
        return centered * torch.rsqrt((centered * centered).mean(1, keepdim=True) + EPS) * w[0] + w[1]

    def check(self, kernel: Kernel) -> float:
        """Run and compare; return the largest error relative to the limit.  Raises ``BenchError``."""
        import torch

        self.y.fill_(float("nan"))
        kernel(*self.given)
        torch.cuda.synchronize()
        worst, step = 0.0, max(1, (1 << 25) // self.case.n)
        spacing = torch.finfo(self.y.dtype).smallest_normal / 1024  # the spacing of subnormal f16 numbers is 2^-24
        for start in range(0, len(self.x), step):
            part = slice(start, start + step)
            name, unit = f"{self.case}, from row {start} on", LIMITS[self.case.element]
            worst = max(worst, check_close(name, self.y[part], self.reference(part), unit, least=spacing))
        return worst


def check(kernel: Kernel, case: Case, rows: int, padding: int, offset: int) -> str:
    """Check a small matrix and return the kernel variant that ran.  Raises ``BenchError``."""
    data = Data(case, rows, padding, offset)
    data.check(kernel)
    return kernel.plan(*data.given).kernel


def measure(kernels: Sequence[tuple[str, Kernel]], data: Data, runs: int) -> list[Row]:
    """Return one row of the result per kernel."""
    case = data.case
    contestants = [(name, lambda k=kernel: k(*data.given)) for name, kernel in kernels]
    times = median_times([*contestants, ("torch", data.peer())], traffic=case.traffic, runs=runs)
    speed = {name: case.traffic / t / 1e6 for name, t in times.items()}
    titles = {name: str(case) if name == "ours" else f"{case} {name}" for name, _ in kernels}
    return [row(title, "TB/s", speed[name], speed["torch"]) for name, title in titles.items()]


# ---------------------------------------------------------------------------------------------------------------- sweep


def space(case: Case) -> list[RowConfig]:
    """Return the search space: rows in registers or, from 2 KiB, in shared memory.

    A thread has 8 to 32 elements of a row, or up to 64 if rows are in shared memory.
    """
    found: list[RowConfig] = []
    w = width(case.element)
    for cluster in (1, 2, 4, 8):
        for threads in (32, 64, 96, 128, 160, 192, 256, 320, 384, 512, 1024):
            values = case.n / (threads * cluster)
            alone = cluster == 1 or (case.op != "sum" and threads >= 128 and threads & (threads - 1) == 0)
            if not 8 <= values <= 64 or not alone:
                continue
            chunks = -(-(case.n // w) // (threads * cluster))
            if values <= 32 or threads <= 512:
                found += [
                    RowConfig(threads, chunks, rows, cluster) for rows in ((1, 2, 4, 8) if threads == 32 else (1,))
                ]
            if case.op != "sum" and case.n * BYTES[case.element] >= 2048:
                found += [
                    RowConfig(threads, chunks, 1, cluster, shared, groups)
                    for shared in {chunks, chunks // 2, 0}
                    for groups in {0, 1, max(1, shared)}
                    if shared == chunks or groups
                ]
    default = class_of(case)
    return [c for c in dict.fromkeys(found) if c != default and shared_bytes(case.element, c) <= SHARED_MEMORY]


def _built(folder: str, case: Case) -> list[RowConfig]:
    """Return the configurations of a case with a kernel in the folder, the default first."""
    prefix = f"{case.folder}-"
    names = [name.removeprefix(prefix) for name in sorted(os.listdir(folder)) if name.startswith(prefix)]
    default = class_of(case)
    return sorted((RowConfig(*map(int, name.split("x"))) for name in names), key=lambda c: c != default)


def build_sweep(folder: str, chip: str) -> list[str]:
    wanted = {f"{case.folder}-{c.name}": text_of(case, c) for case in CASES for c in (class_of(case), *space(case))}
    return build_kernels(wanted, folder, chip)


def run_sweep(folder: str, *, runs: int, large: bool, say: Say) -> dict[str, object]:
    """Check and measure the kernels of :func:`build_sweep`; wrong kernels are reported and skipped."""
    rows: list[Row] = []
    for case in track(CASES, "measuring", "cases"):
        configs = _built(folder, case)
        if not configs:
            continue
        data = Data(case, case.rows)
        kernels: list[tuple[str, Kernel]] = []
        for c in configs:
            kernel = loaded(folder, f"{case.folder}-{c.name}").kernel(case.op)
            try:
                data.check(kernel)
                kernels.append((c.name, kernel))
            except BenchError as e:
                say(f"  WRONG {c.name}: {e}")
        found = measure(kernels, data, runs)
        best = sorted(found, key=lambda r: -r["ours"])
        rows += [r for r in found if r is found[0] or r in best[:3]]
        listed = ", ".join(f"{r['name'].split()[-1]} {r['ours']:.3f}" for r in best)
        say(f"  {case}: torch {found[0]['peer']:.3f}; {listed}")
        del data
    return {"rows": rows}


BENCHMARKS = {"rows": Benchmark(build, run), "rows_sweep": Benchmark(build_sweep, run_sweep)}
