"""``cute-bench elementwise_add``: C = A + B for f32, f16 and bf16 compared with ``torch.add``.

Kernels of two value layouts are built for each element type: ``seed_tile`` (``seed``) and ``streaming_tile``, the one
with the highest bandwidth (``stream``).  Results must equal torch's bitwise on random normal data, for shapes with and
without partial tiles, padded and misaligned rows, and more than 2^31 elements.  Outputs are poisoned; padding and guard
bytes must not change.  Then bandwidth at 4096² and 16384² and the host time of a call are measured.
"""

# torch may be missing when types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false, reportUnknownParameterType=false

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from cute_dialect.op.select.timing import compare, host_overhead
from cute_dialect.runtime.progress import track

if TYPE_CHECKING:  # pragma: no cover
    import torch

    from cute_dialect.runtime.launch import CompiledModule, Kernel

__all__ = ["CASES", "Case", "Row", "build", "run"]

TORCH_NAMES = {"f32": "float32", "f16": "float16", "bf16": "bfloat16"}
BYTES = {"f32": 4, "f16": 2, "bf16": 2}


class Case(NamedTuple):
    """A matrix: rows, columns, row stride in elements, and offset in elements from an aligned address."""

    rows: int
    columns: int
    ld: int
    offset: int = 0

    def __str__(self) -> str:
        padded = f", rows of {self.ld}" if self.ld != self.columns else ""
        return f"({self.rows}, {self.columns}{padded}{f', offset {self.offset}' if self.offset else ''})"


CASES = (
    Case(1, 1, 1),
    Case(17, 129, 129),
    Case(64, 4096, 4096),
    Case(1000, 1000, 1040),
    Case(1000, 1000, 1037),
    Case(100, 512, 512, 1),
    Case(12345, 4321, 4321),
    Case(16384, 16384, 16384),
)
LARGE = Case(3 << 15, 1 << 15, 1 << 15)
"""3·2^30 elements, so that offsets exceed 32 bits."""
SIZES = (4096, 16384)


class Row(NamedTuple):
    element: str
    layout: str
    kernel: str
    size: int
    microseconds: float
    torch_microseconds: float
    terabytes: float
    ratio: float
    """Bandwidth relative to torch."""


def build(folder: str, chip: str) -> list[str]:
    """Compile all kernels into ``folder/ELEMENT-LAYOUT``; return the reports of ptxas."""
    from cute_dialect.kernels.elementwise import elementwise_add_text, seed_tile, streaming_tile
    from cute_dialect.pipelines import compile as compile_cute

    reports: list[str] = []
    for element in track(list(TORCH_NAMES), "compiling", "element types"):
        for layout, tile in (("seed", seed_tile(element)), ("stream", streaming_tile(element))):
            text = elementwise_add_text(element, tile, rows_first=layout == "seed")
            name = f"{element}-{layout}"
            module = compile_cute(text, chip=chip, filename=f"{name}.mlir")
            module.save(os.path.join(folder, name))
            reports.append(f"{name}: {module.report.strip()}")
    return reports


def run(folder: str, *, runs: int, large: bool, say: Callable[[str], None]) -> dict[str, object]:
    """Check and measure the kernels of :func:`build`.  Raises ``BenchError`` if a result is wrong."""
    import torch

    from cute_dialect.runtime import load

    names = [f"{e}-{layout}" for e in TORCH_NAMES for layout in ("seed", "stream")]
    modules = {name: load(os.path.join(folder, name)) for name in names}
    checked: list[str] = []
    for name in track(names, "checking", "kernels"):
        module = modules[name]
        for case in (*CASES, *((LARGE,) if large and name.startswith("f16") else ())):
            chosen = check(module, name.split("-")[0], case)
            checked.append(f"{name} {case}: {chosen}")
            say(f"  bitwise equal to torch.add: {name} {case}, by @{chosen}")
            torch.cuda.empty_cache()
    rows = [row for name in track(names, "measuring", "kernels") for row in measure(modules[name], name, runs)]
    return {
        "checked": checked,
        "rows": [r._asdict() for r in rows],
        "host_microseconds": overhead(modules["f32-seed"]),
    }


class BenchError(Exception):
    """A wrong result, which makes its time meaningless."""


def _poisoned(case: Case, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Allocate memory with all bits set, including guards of 256 bytes, and return it and the matrix inside it."""
    import torch

    item = dtype.itemsize
    guard = 256 // item
    total = guard + case.offset + (case.rows - 1) * case.ld + case.columns + guard
    storage = torch.full((total * item,), 0xFF, dtype=torch.uint8, device="cuda").view(dtype)
    return storage, torch.as_strided(storage, (case.rows, case.columns), (case.ld, 1), guard + case.offset)


def check(module: CompiledModule, element: str, case: Case) -> str:
    """Compare one case with torch and return the kernel variant that ran.  Raises :class:`BenchError`."""
    import torch

    dtype: torch.dtype = getattr(torch, TORCH_NAMES[element])
    bits = torch.int32 if dtype.itemsize == 4 else torch.int16
    torch.manual_seed(0)
    (_, a), (_, b) = _poisoned(case, dtype), _poisoned(case, dtype)
    a.normal_()
    b.normal_()
    storage, c = _poisoned(case, dtype)
    kernel = module.kernel("add")
    kernel(a, b, c)
    torch.cuda.synchronize()
    step = max(1, (1 << 28) // case.columns)  # Compare in slices, to limit the memory of the reference.
    for start in range(0, case.rows, step):
        rows = slice(start, start + step)
        expected = torch.add(a[rows], b[rows])
        if not torch.equal(c[rows].contiguous().view(bits), expected.view(bits)):
            wrong = int((c[rows].contiguous().view(bits) != expected.view(bits)).sum())
            raise BenchError(f"{element} {case}: {wrong} elements after row {start} differ from torch.add")
    c.view(bits).fill_(-1)
    if not bool((storage.view(bits) == -1).all()):
        raise BenchError(f"{element} {case}: bytes outside the matrix were written")
    return kernel.plan(a, b, c).kernel


def measure(module: CompiledModule, name: str, runs: int) -> list[Row]:
    """Measure the bandwidth of one module and of torch for each size."""
    import torch

    element, layout = name.split("-")
    dtype: torch.dtype = getattr(torch, TORCH_NAMES[element])
    rows: list[Row] = []
    for size in SIZES:
        a, b = (torch.randn(size, size, device="cuda", dtype=dtype) for _ in range(2))
        c, reference = torch.empty_like(a), torch.empty_like(a)
        traffic = 3 * size * size * BYTES[element]
        kernel = module.kernel("add")
        ours, theirs = _compare(kernel, a, b, c, reference, traffic, runs)
        chosen = kernel.plan(a, b, c).kernel
        rows.append(Row(element, layout, chosen, size, ours, theirs, traffic / ours / 1e6, theirs / ours))
    return rows


def _compare(
    kernel: Kernel,
    a: torch.Tensor,
    b: torch.Tensor,
    c: torch.Tensor,
    reference: torch.Tensor,
    traffic: int,
    runs: int,
) -> tuple[float, float]:
    """Return the median times of the kernel and of torch in microseconds."""
    import torch

    times = compare(
        [("ours", lambda: kernel(a, b, c)), ("torch", lambda: torch.add(a, b, out=reference))],
        traffic=traffic,
        runs=runs,
    )
    return times["ours"].median, times["torch"].median


def overhead(module: CompiledModule) -> dict[str, float]:
    """Return the host times of a call and of torch's, on a matrix so small that GPU time is hidden."""
    import torch

    a, b = (torch.randn(16, 128, device="cuda") for _ in range(2))
    c = torch.empty_like(a)
    kernel = module.kernel("add")
    return {
        "ours": host_overhead(lambda: kernel(a, b, c)),
        "torch": host_overhead(lambda: torch.add(a, b, out=c)),
    }
