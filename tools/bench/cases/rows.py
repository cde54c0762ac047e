"""``cute-bench rows``: row sum, softmax, RMSNorm and LayerNorm compared with torch, in bytes per second.

Kernels are first checked against float64 for f32, f16 and bf16: few and many rows, padded and misaligned rows, poisoned
outputs.  Then TB/s with a cold L2 are measured for 2^28 elements of each row length; each row counts as read once and,
except for sums, written once.  Torch processes the same data in the same process.  ``cute-bench rows_sweep`` measures
other assignments of rows to threads.
"""

# torch may be missing when types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false, reportUnknownParameterType=false

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from cute_dialect.kernels.row_config import RowConfig, row_class
from cute_dialect.kernels.row_sums import sum_class
from cute_dialect.op.select.timing import compare
from cute_dialect.runtime.progress import track
from cute_dialect.tools.bench.cases.elementwise_add import BenchError

if TYPE_CHECKING:  # pragma: no cover
    import torch

    from cute_dialect.runtime.launch import Kernel

__all__ = ["CASES", "Case", "build", "build_one", "class_of", "run"]

TORCH_NAMES = {"f32": "float32", "f16": "float16", "bf16": "bfloat16"}
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
        for e in TORCH_NAMES
        for n in (1024, 4096, 32768, 131072)
    ),
)


def class_of(case: Case) -> RowConfig:
    """Return the default configuration of a case, which assigns rows to threads."""
    return sum_class(case.element, case.n) if case.op == "sum" else row_class(case.op, case.element, case.n)


CHECKS = ((1, 0, 0), (7, 8, 0), (133, 1, 0), (133, 8, 1))
"""Rows, row padding in elements, offset in elements of the first row."""


def build(folder: str, chip: str) -> list[str]:
    """Compile all kernels into ``folder/OP-ELEMENT-N``; return the reports of ptxas."""
    found = {c.folder: (c, class_of(c)) for c in CASES}
    names = track(list(found), "compiling", "kernels")
    return [build_one(os.path.join(folder, name), *found[name], chip) for name in names]


def build_one(folder: str, case: Case, config: RowConfig, chip: str) -> str:
    """Compile one kernel."""
    from cute_dialect.kernels.row_sums import sum_text
    from cute_dialect.kernels.rows import row_text
    from cute_dialect.pipelines import compile as compile_cute

    text = (sum_text if case.op == "sum" else row_text)(case.op, case.element, case.n, config)
    module = compile_cute(text, chip=chip, filename=f"{case.folder}.mlir")
    module.save(folder)
    lines = [x for x in module.report.strip().splitlines() if case.op in x]
    return f"{os.path.basename(folder)} {config.name}: {'; '.join(lines)}"


def run(folder: str, *, runs: int, large: bool, say: Callable[[str], None]) -> dict[str, object]:
    """Check and measure the kernels of :func:`build`.  Raises ``BenchError`` if a result is wrong."""
    from cute_dialect.runtime import load

    kernels = {c.folder: load(os.path.join(folder, c.folder)).kernel(c.op) for c in CASES}
    rows: list[dict[str, object]] = []
    for case in track(CASES, "measuring", "cases"):
        kernel = kernels[case.folder]
        chosen = {check(kernel, case, *shape) for shape in CHECKS}
        data = Data(case, case.rows)
        error = data.check(kernel)
        say(f"  correct: {case}, error {error:.2f} times the limit, by {', '.join(f'@{c}' for c in sorted(chosen))}")
        rows.append(measure([("ours", kernel)], data, runs)[0])
        say(f"    {rows[-1]['ours']:.3f} TB/s, torch {rows[-1]['peer']:.3f}, {rows[-1]['ratio']:.3f} of torch's speed")
        del data
        _empty_cache()
    return {"rows": rows}


def _empty_cache() -> None:
    import torch

    torch.cuda.empty_cache()


class Data:
    """The tensors of a case and torch's operation on them."""

    def __init__(self, case: Case, rows: int, padding: int = 0, offset: int = 0):
        import torch

        self.case = case
        torch.manual_seed(rows + case.n)
        self.dtype: torch.dtype = getattr(torch, TORCH_NAMES[case.element])
        self.x = self._matrix(rows, padding, offset)
        self.x.normal_()
        count = {"rmsnorm": 1, "layernorm": 2}.get(case.op, 0)
        self.weights = [torch.randn(case.n, device="cuda", dtype=self.dtype) for _ in range(count)]
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
        """Run and compare; return the largest error relative to the limit.  Raises :class:`BenchError`."""
        import torch

        self.y.fill_(float("nan"))
        kernel(*self.given)
        torch.cuda.synchronize()
        worst, step = 0.0, max(1, (1 << 25) // self.case.n)
        for start in range(0, len(self.x), step):
            part = slice(start, start + step)
            wanted = self.reference(part)
            scale = wanted.square().mean().sqrt()
            spacing = torch.finfo(self.y.dtype).smallest_normal / 1024  # the spacing of subnormal f16 numbers is 2^-24
            limit = LIMITS[self.case.element] * (wanted.abs() + scale) + spacing
            share = float(((self.y[part].double() - wanted).abs() / limit).max())
            if not share <= 1:
                raise BenchError(f"{self.case}: from row {start} on the error is {share:.2f} times the limit")
            worst = max(worst, share)
        return worst


def check(kernel: Kernel, case: Case, rows: int, padding: int, offset: int) -> str:
    """Check a small matrix and return the kernel variant that ran.  Raises :class:`BenchError`."""
    data = Data(case, rows, padding, offset)
    data.check(kernel)
    return kernel.plan(*data.given).kernel


def measure(kernels: Sequence[tuple[str, Kernel]], data: Data, runs: int) -> list[dict[str, object]]:
    """Return one row of the result per kernel."""
    case = data.case

    def launch(kernel: Kernel) -> Callable[[], object]:
        return lambda: kernel(*data.given)

    contestants = [(name, launch(k)) for name, k in kernels]
    times = compare([*contestants, ("torch", data.peer())], traffic=case.traffic, runs=runs)
    peer = case.traffic / times["torch"].median / 1e6
    out: list[dict[str, object]] = []
    for name, _ in kernels:
        ours = case.traffic / times[name].median / 1e6
        title = str(case) if name == "ours" else f"{case} {name}"
        out.append({"name": title, "ours": ours, "peer": peer, "unit": "TB/s", "ratio": ours / peer})
    return out
