"""``cute-bench transpose``: ``B = A^T`` compared with torch's copy of a transposed matrix.

Kernels with tiles of different heights are built for each element type.  They are first checked bitwise on random bits:
shapes with partial tiles, rows not aligned to vectors, column-major sources, poisoned and guarded outputs.  Then TB/s
at 8192² and 16384² are measured.
"""

# torch may be missing when types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false, reportUnknownParameterType=false

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from cute_dialect.op.select.timing import compare
from cute_dialect.runtime.progress import track
from cute_dialect.tools.bench.cases.elementwise_add import BenchError

if TYPE_CHECKING:  # pragma: no cover
    import torch

    from cute_dialect.runtime.launch import CompiledModule

__all__ = ["SIZES", "VARIANTS", "build", "run"]

VARIANTS = (("f32", 1), ("f32", 2), ("f32", 4), ("f16", 1), ("f16", 2), ("i8", 1), ("f64", 4))
"""Element type, and height of the tile in units of 128 bytes."""
TORCH_NAMES = {"f32": "float32", "f16": "float16", "i8": "int8", "f64": "float64"}
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
    from cute_dialect.kernels.transpose import transpose_text
    from cute_dialect.pipelines import compile as compile_cute

    reports: list[str] = []
    for element, rows in track(VARIANTS, "compiling", "kernels"):
        name = f"{element}-{rows}"
        module = compile_cute(transpose_text(element, rows), chip=chip, filename=f"{name}.mlir")
        module.save(os.path.join(folder, name))
        reports.append(f"{name}: {module.report.strip()}")
    return reports


def run(folder: str, *, runs: int, large: bool, say: Callable[[str], None]) -> dict[str, object]:
    """Check and measure the kernels of :func:`build`.  Raises ``BenchError`` if a result is wrong."""
    from cute_dialect.runtime import load

    rows: list[dict[str, object]] = []
    for element, height in track(VARIANTS, "measuring", "kernels"):
        name = f"{element}-{height}"
        module = load(os.path.join(folder, name))
        chosen = {check(module, element, *case) for case in CASES}
        say(f"  bitwise equal: {name}, {len(CASES)} shapes, by {', '.join(sorted(chosen))}")
        rows += [measure(module, name, element, size, runs) for size in SIZES]
    return {"rows": rows}


def _strided(
    element: str, shape: tuple[int, int], strides: tuple[int, int], offset: int, *, random: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Allocate memory with set or random bits and guards of 256 bytes; return it and the matrix inside it."""
    import torch

    dtype: torch.dtype = getattr(torch, TORCH_NAMES[element])
    guard = 256 // dtype.itemsize
    last = sum((n - 1) * s for n, s in zip(shape, strides)) + 1
    total = (2 * guard + offset + last) * dtype.itemsize
    if random:
        storage = torch.randint(0, 256, (total,), dtype=torch.uint8, device="cuda")
    else:
        storage = torch.full((total,), 0xFF, dtype=torch.uint8, device="cuda")
    return storage, torch.as_strided(storage.view(dtype), shape, strides, guard + offset)


def check(
    module: CompiledModule,
    element: str,
    shape: tuple[int, int],
    a_strides: tuple[int, int],
    b_strides: tuple[int, int],
    offset: int,
) -> str:
    """Check one case and return the kernel variant that ran.  Raises :class:`BenchError`."""
    import torch

    _, a = _strided(element, shape, a_strides, offset, random=True)
    storage, b = _strided(element, (shape[1], shape[0]), b_strides, 0, random=False)
    bits: torch.dtype = getattr(torch, f"int{8 * a.dtype.itemsize}")
    kernel = module.kernel("transpose")
    kernel(a, b)
    torch.cuda.synchronize()
    if not torch.equal(b.view(bits), a.view(bits).t()):
        raise BenchError(f"{element} {shape} {a_strides} to {b_strides}: elements differ from A's")
    b.view(bits).fill_(-1)
    if not bool((storage == 0xFF).all()):
        raise BenchError(f"{element} {shape}: bytes outside the matrix were written")
    return f"@{kernel.plan(a, b).kernel}"


def measure(module: CompiledModule, name: str, element: str, size: int, runs: int) -> dict[str, object]:
    """Measure one module at one size in TB/s, compared with torch."""
    import torch

    dtype: torch.dtype = getattr(torch, TORCH_NAMES[element])
    a = torch.zeros(size * size * dtype.itemsize, dtype=torch.uint8, device="cuda").random_(0, 100).view(dtype)
    a = a.view(size, size)
    b, reference = torch.empty_like(a), torch.empty_like(a)
    traffic = 2 * size * size * dtype.itemsize
    kernel = module.kernel("transpose")
    times = compare(
        [("ours", lambda: kernel(a, b)), ("torch", lambda: reference.copy_(a.t()))], traffic=traffic, runs=runs
    )
    ours, peer = (traffic / times[k].median / 1e6 for k in ("ours", "torch"))
    return {
        "name": f"transpose {name} {size}²",
        "us": times["ours"].median,
        "ours": ours,
        "peer": peer,
        "unit": "TB/s",
        "ratio": ours / peer,
    }
