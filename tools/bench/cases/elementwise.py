"""Sums of two matrices and transposes compared with torch: ``cute-bench elementwise_add`` and ``transpose``.

``elementwise_add`` builds two value layouts for f32, f16 and bf16: ``seed_tile`` (``seed``) and ``streaming_tile``, the
one with the highest bandwidth (``stream``).  Results must equal torch's bitwise on random normal data, for shapes with
and without partial tiles, padded and misaligned rows, and more than 2^31 elements.  Then bandwidth at 4096² and 16384²
and the host time of a call are measured.

``transpose`` builds tiles of different heights for each element type.  They are checked bitwise on random bits: shapes
with partial tiles, rows not aligned to vectors, column-major sources.  Then TB/s at 8192² and 16384² are measured.

Outputs are poisoned before each check; padding and guard bytes must not change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, cast

from cute_dialect.kernels.copies.transpose import transpose_text
from cute_dialect.kernels.elementwise.add import elementwise_add_text, seed_tile, streaming_tile
from cute_dialect.op.select.timing import host_overhead
from cute_dialect.runtime.progress import track
from cute_dialect.tools.bench.runner import (
    BenchError,
    Benchmark,
    Row,
    Say,
    build_kernels,
    check_outside,
    dtype,
    guarded,
    loaded,
    median_times,
    normal,
    row,
)

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.runtime.launch import CompiledModule


ELEMENTS = ("f32", "f16", "bf16")
NAMES = tuple(f"{element}-{layout}" for element in ELEMENTS for layout in ("seed", "stream"))


class Case(NamedTuple):
    """A matrix: rows, columns, row stride in elements, and offset in elements from an aligned address."""

    rows: int
    columns: int
    ld: int
    offset: int = 0

    def __str__(self) -> str:
        padded = f", rows of {self.ld}" if self.ld != self.columns else ""
        return f"({self.rows}, {self.columns}{padded}{f', offset {self.offset}' if self.offset else ''})"


ADD_CASES = (
    Case(1, 1, 1), Case(17, 129, 129), Case(64, 4096, 4096), Case(1000, 1000, 1040), Case(1000, 1000, 1037),
    Case(100, 512, 512, 1), Case(12345, 4321, 4321), Case(16384, 16384, 16384),
)  # fmt: skip
LARGE = Case(3 << 15, 1 << 15, 1 << 15)
"""3·2^30 elements, so that offsets exceed 32 bits."""
ADD_SIZES = (4096, 16384)


def build_add(folder: str, chip: str) -> list[str]:
    texts = {f"{e}-seed": partial(elementwise_add_text, e, seed_tile(e), rows_first=True) for e in ELEMENTS}
    texts |= {f"{e}-stream": partial(elementwise_add_text, e, streaming_tile(e), rows_first=False) for e in ELEMENTS}
    return build_kernels({name: texts[name] for name in NAMES}, folder, chip)


def run_add(folder: str, *, runs: int, large: bool, say: Say) -> dict[str, object]:
    import torch

    modules = {name: loaded(folder, name) for name in NAMES}
    checked: list[str] = []
    for name in track(NAMES, "checking", "kernels"):
        for case in (*ADD_CASES, *((LARGE,) if large and name.startswith("f16") else ())):
            chosen = check_add(modules[name], name.split("-")[0], case)
            checked.append(f"{name} {case}: {chosen}")
            say(f"  bitwise equal to torch.add: {name} {case}, by @{chosen}")
            torch.cuda.empty_cache()
    rows = [
        measure_add(modules[name], name, size, runs)
        for name in track(NAMES, "measuring", "kernels")
        for size in ADD_SIZES
    ]
    return {"checked": checked, "rows": rows, "host_microseconds": overhead(modules["f32-seed"])}


def check_add(module: CompiledModule, element: str, case: Case) -> str:
    """Compare one case with torch and return the kernel variant that ran.  Raises :class:`BenchError`."""
    import torch

    bits = torch.int32 if element == "f32" else torch.int16
    torch.manual_seed(0)
    (_, a), (_, b), (storage, c) = (
        guarded(dtype(element), (case.rows, case.columns), (case.ld, 1), case.offset) for _ in range(3)
    )
    a.normal_()
    b.normal_()
    kernel = module.kernel("add")
    kernel(a, b, c)
    torch.cuda.synchronize()
    step = max(1, (1 << 28) // case.columns)  # Compare in slices, to limit the memory of the reference.
    for start in range(0, case.rows, step):
        rows = slice(start, start + step)
        wrong = int((c[rows].view(bits) != torch.add(a[rows], b[rows]).view(bits)).sum())
        if wrong:
            raise BenchError(f"{element} {case}: {wrong} elements after row {start} differ from torch.add")
    check_outside(f"{element} {case}", storage, c)
    return kernel.plan(a, b, c).kernel


def measure_add(module: CompiledModule, name: str, size: int, runs: int) -> Row:
    """Measure the bandwidth of one module and of torch."""
    import torch

    element, layout = name.split("-")
    a, b = (normal(element, size, size) for _ in range(2))
    c, reference = torch.empty_like(a), torch.empty_like(a)
    traffic = 3 * a.numel() * a.element_size()
    kernel = module.kernel("add")
    times = median_times(
        [("ours", lambda: kernel(a, b, c)), ("torch", lambda: torch.add(a, b, out=reference))],
        traffic=traffic,
        runs=runs,
    )
    ours, peer = times["ours"], times["torch"]
    return {
        "element": element, "layout": layout, "kernel": kernel.plan(a, b, c).kernel, "size": size,
        "microseconds": ours, "torch_microseconds": peer, "terabytes": traffic / ours / 1e6, "ratio": peer / ours,
    }  # fmt: skip


def overhead(module: CompiledModule) -> dict[str, float]:
    """Return the host times of a call and of torch's, on a matrix so small that GPU time is hidden."""
    import torch

    a, b = (torch.randn(16, 128, device="cuda") for _ in range(2))
    c = torch.empty_like(a)
    kernel = module.kernel("add")
    return {"ours": host_overhead(lambda: kernel(a, b, c)), "torch": host_overhead(lambda: torch.add(a, b, out=c))}


def table(result: Mapping[str, object]) -> list[Sequence[str]]:
    """Return the header and the lines of the table, with the host times last."""
    lines: list[Sequence[str]] = [("element", "layout", "kernel", "size", "us", "torch us", "TB/s", "of torch")]
    for r in cast("list[Row]", result["rows"]):
        times = (f"{r['microseconds']:.1f}", f"{r['torch_microseconds']:.1f}")
        speed = (f"{r['terabytes']:.3f}", f"{r['ratio']:.3f}")
        lines.append((r["element"], r["layout"], f"@{r['kernel']}", f"{r['size']}²", *times, *speed))
    host = cast("dict[str, float]", result["host_microseconds"])
    lines.append(("f32", "host time", "", "16x128", f"{host['ours']:.2f}", f"{host['torch']:.2f}", "", ""))
    return lines


# ------------------------------------------------------------------------------------------------------------ transpose


VARIANTS = (("f32", 1), ("f32", 2), ("f32", 4), ("f16", 1), ("f16", 2), ("i8", 1), ("f64", 4))
"""Element type, and height of the tile in units of 128 bytes."""
SIZES = (8192, 16384)
TRANSPOSE_CASES = (
    ((1, 1), (1, 1), (1, 1), 0),
    ((257, 129), (129, 1), (257, 1), 0),
    ((1000, 1040), (1040, 1), (1008, 1), 0),
    ((1000, 1040), (1056, 1), (1024, 1), 0),
    ((513, 640), (1, 513), (520, 1), 0),
    ((640, 512), (512, 1), (640, 1), 1),
    ((4096, 8192), (8192, 1), (4096, 1), 0),
)
"""Shape of A, strides of A, strides of B, and offset of A in elements from an aligned address."""


def build_transpose(folder: str, chip: str) -> list[str]:
    return build_kernels({f"{e}-{height}": partial(transpose_text, e, height) for e, height in VARIANTS}, folder, chip)


def run_transpose(folder: str, *, runs: int, large: bool, say: Say) -> dict[str, object]:
    rows: list[Row] = []
    for element, height in track(VARIANTS, "measuring", "kernels"):
        name = f"{element}-{height}"
        module = loaded(folder, name)
        chosen = {check_transpose(module, element, *case) for case in TRANSPOSE_CASES}
        say(f"  bitwise equal: {name}, {len(TRANSPOSE_CASES)} shapes, by {', '.join(sorted(chosen))}")
        rows += [measure_transpose(module, name, element, size, runs) for size in SIZES]
    return {"rows": rows}


def check_transpose(
    module: CompiledModule, element: str, shape: tuple[int, int], a_strides: tuple[int, int],
    b_strides: tuple[int, int], offset: int,
) -> str:  # fmt: skip
    """Check one case and return the kernel variant that ran.  Raises :class:`BenchError`."""
    import torch

    memory, a = guarded(dtype(element), shape, a_strides, offset)
    memory.random_(0, 256)
    storage, b = guarded(dtype(element), shape[::-1], b_strides)
    bits: torch.dtype = getattr(torch, f"int{8 * a.dtype.itemsize}")
    kernel = module.kernel("transpose")
    kernel(a, b)
    torch.cuda.synchronize()
    if not torch.equal(b.view(bits), a.view(bits).t()):
        raise BenchError(f"{element} {shape} {a_strides} to {b_strides}: elements differ from A's")
    check_outside(f"{element} {shape}", storage, b)
    return f"@{kernel.plan(a, b).kernel}"


def measure_transpose(module: CompiledModule, name: str, element: str, size: int, runs: int) -> Row:
    """Measure one module at one size in TB/s, compared with torch."""
    import torch

    kind = dtype(element)
    a = torch.zeros(size * size * kind.itemsize, dtype=torch.uint8, device="cuda").random_(0, 100).view(kind)
    a = a.view(size, size)
    b, reference = torch.empty_like(a), torch.empty_like(a)
    traffic = 2 * size * size * kind.itemsize
    kernel = module.kernel("transpose")
    times = median_times(
        [("ours", lambda: kernel(a, b)), ("torch", lambda: reference.copy_(a.t()))], traffic=traffic, runs=runs
    )
    ours, peer = (traffic / times[k] / 1e6 for k in ("ours", "torch"))
    return row(f"transpose {name} {size}²", "TB/s", ours, peer, us=times["ours"])


BENCHMARKS = {
    "elementwise_add": Benchmark(build_add, run_add, table),
    "transpose": Benchmark(build_transpose, run_transpose),
}
