"""``cute-bench transpose``: ``B = A^T`` compared with torch's copy of a transposed matrix.

Kernels with tiles of different heights are built for each element type.  They are first checked bitwise on random bits:
shapes with partial tiles, rows not aligned to vectors, column-major sources, poisoned and guarded outputs.  Then TB/s
at 8192² and 16384² are measured.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from cute_dialect.kernels.transpose import transpose_text
from cute_dialect.runtime.progress import track
from cute_dialect.tools.bench.checks import BenchError, check_outside, guarded
from cute_dialect.tools.bench.peers import dtype
from cute_dialect.tools.bench.runner import Row, Say, build_kernels, loaded, median_times, row

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.runtime.launch import CompiledModule

__all__ = ["SIZES", "VARIANTS", "build", "run"]

VARIANTS = (("f32", 1), ("f32", 2), ("f32", 4), ("f16", 1), ("f16", 2), ("i8", 1), ("f64", 4))
"""Element type, and height of the tile in units of 128 bytes."""
SIZES = (8192, 16384)
CASES = (
    ((1, 1), (1, 1), (1, 1), 0),
    ((257, 129), (129, 1), (257, 1), 0),
    ((1000, 1040), (1040, 1), (1008, 1), 0),
    ((1000, 1040), (1056, 1), (1024, 1), 0),
    ((513, 640), (1, 513), (520, 1), 0),
    ((640, 512), (512, 1), (640, 1), 1),
    ((4096, 8192), (8192, 1), (4096, 1), 0),
)
"""Shape of A, strides of A, strides of B, and offset of A in elements from an aligned address."""


def build(folder: str, chip: str) -> list[str]:
    """Compile all kernels into ``folder/ELEMENT-ROWS``; return the reports of ptxas."""
    return build_kernels({f"{e}-{height}": partial(transpose_text, e, height) for e, height in VARIANTS}, folder, chip)


def run(folder: str, *, runs: int, large: bool, say: Say) -> dict[str, object]:
    """Check and measure the kernels of :func:`build`.  Raises ``BenchError`` if a result is wrong."""
    rows: list[Row] = []
    for element, height in track(VARIANTS, "measuring", "kernels"):
        name = f"{element}-{height}"
        module = loaded(folder, name)
        chosen = {check(module, element, *case) for case in CASES}
        say(f"  bitwise equal: {name}, {len(CASES)} shapes, by {', '.join(sorted(chosen))}")
        rows += [measure(module, name, element, size, runs) for size in SIZES]
    return {"rows": rows}


def check(
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


def measure(module: CompiledModule, name: str, element: str, size: int, runs: int) -> Row:
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
