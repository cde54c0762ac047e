"""``cute-bench elementwise_add``: C = A + B for f32, f16 and bf16 compared with ``torch.add``.

Kernels of two value layouts are built for each element type: ``seed_tile`` (``seed``) and ``streaming_tile``, the one
with the highest bandwidth (``stream``).  Results must equal torch's bitwise on random normal data, for shapes with and
without partial tiles, padded and misaligned rows, and more than 2^31 elements.  Outputs are poisoned; padding and guard
bytes must not change.  Then bandwidth at 4096² and 16384² and the host time of a call are measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, cast

from cute_dialect.kernels.elementwise import elementwise_add_text, seed_tile, streaming_tile
from cute_dialect.op.select.timing import host_overhead
from cute_dialect.runtime.progress import track
from cute_dialect.tools.bench.checks import BenchError, check_outside, guarded
from cute_dialect.tools.bench.peers import dtype, normal
from cute_dialect.tools.bench.runner import Row, Say, build_kernels, loaded, median_times

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.runtime.launch import CompiledModule

__all__ = ["CASES", "LARGE", "Case", "build", "check", "run", "table"]

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


CASES = (
    Case(1, 1, 1), Case(17, 129, 129), Case(64, 4096, 4096), Case(1000, 1000, 1040), Case(1000, 1000, 1037),
    Case(100, 512, 512, 1), Case(12345, 4321, 4321), Case(16384, 16384, 16384),
)  # fmt: skip
LARGE = Case(3 << 15, 1 << 15, 1 << 15)
"""3·2^30 elements, so that offsets exceed 32 bits."""
SIZES = (4096, 16384)


def build(folder: str, chip: str) -> list[str]:
    """Compile all kernels into ``folder/ELEMENT-LAYOUT``; return the reports of ptxas."""
    texts = {f"{e}-seed": partial(elementwise_add_text, e, seed_tile(e), rows_first=True) for e in ELEMENTS}
    texts |= {f"{e}-stream": partial(elementwise_add_text, e, streaming_tile(e), rows_first=False) for e in ELEMENTS}
    return build_kernels({name: texts[name] for name in NAMES}, folder, chip)


def run(folder: str, *, runs: int, large: bool, say: Say) -> dict[str, object]:
    """Check and measure the kernels of :func:`build`.  Raises ``BenchError`` if a result is wrong."""
    import torch

    modules = {name: loaded(folder, name) for name in NAMES}
    checked: list[str] = []
    for name in track(NAMES, "checking", "kernels"):
        for case in (*CASES, *((LARGE,) if large and name.startswith("f16") else ())):
            chosen = check(modules[name], name.split("-")[0], case)
            checked.append(f"{name} {case}: {chosen}")
            say(f"  bitwise equal to torch.add: {name} {case}, by @{chosen}")
            torch.cuda.empty_cache()
    rows = [measure(modules[name], name, size, runs) for name in track(NAMES, "measuring", "kernels") for size in SIZES]
    return {"checked": checked, "rows": rows, "host_microseconds": overhead(modules["f32-seed"])}


def check(module: CompiledModule, element: str, case: Case) -> str:
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


def measure(module: CompiledModule, name: str, size: int, runs: int) -> Row:
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
    return {
        "ours": host_overhead(lambda: kernel(a, b, c)),
        "torch": host_overhead(lambda: torch.add(a, b, out=c)),
    }


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
