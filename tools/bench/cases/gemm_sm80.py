"""``cute-bench gemm_sm80``: GEMM with cp.async and mma.sync compared with ``torch.mm`` (cuBLAS).

Kernels are first checked against float64 on random normal data, with NaN-poisoned outputs and guarded padding: every
variant (16, 8, 4-byte copies and single elements), shapes that are not multiples of a tile, and all layouts.  A hundred
runs must give identical results.  Then TFLOP/s with a cold L2 are measured.
"""

# torch may be missing when types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false, reportUnknownParameterType=false

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from cute_dialect.op.select.timing import compare
from cute_dialect.runtime.progress import track
from cute_dialect.tools.bench.cases.elementwise_add import BenchError

if TYPE_CHECKING:  # pragma: no cover
    import torch

    from cute_dialect.kernels.ampere_gemm import AmpereConfig
    from cute_dialect.runtime.launch import CompiledModule

__all__ = ["CHECKS", "SIZES", "Case", "build", "check", "configs", "run"]

TORCH_NAMES = {"f16": "float16", "bf16": "bfloat16"}


class Case(NamedTuple):
    """A GEMM: ``(M, N, K)``, the row padding of A, B and C, their offsets from a 16-byte aligned address
    (both in elements), and the variant that must run.
    """

    shape: tuple[int, int, int]
    pads: tuple[int, int, int] = (0, 0, 0)
    offset: int = 0
    kernel: str = ""


CHECKS = (
    Case((128, 128, 32), kernel="gemm_16"),
    Case((128, 128, 0)),
    Case((1, 1, 1), kernel="gemm"),
    Case((200, 264, 72), kernel="gemm_16"),
    Case((1000, 1000, 1000), kernel="gemm_16"),
    Case((256, 384, 512), (8, 16, 8), 8, "gemm_16"),
    Case((132, 260, 68), kernel="gemm_8"),
    Case((256, 256, 256), (0, 4, 0), kernel="gemm_8"),
    Case((130, 258, 66), kernel="gemm_4"),
    Case((256, 256, 256), (2, 2, 2), 2, "gemm_4"),
    Case((129, 257, 65), kernel="gemm"),
    Case((511, 513, 1023), kernel="gemm"),
    Case((256, 256, 256), (1, 0, 0), kernel="gemm"),
    Case((256, 256, 256), (0, 0, 0), 1, "gemm"),
    Case((2048, 2048, 2048), kernel="gemm_16"),
)
SIZES = ((1024, 1024, 1024), (2048, 2048, 2048), (4096, 4096, 4096), (8192, 8192, 8192), (4095, 4095, 4095))
"""(M, N, K)"""


def configs() -> Mapping[str, AmpereConfig]:
    """Return the configurations to build, by name."""
    from cute_dialect.kernels.ampere_gemm import AmpereConfig

    base = AmpereConfig()
    chosen = [
        base,
        base._replace(element="bf16"),
        *[base._replace(majors=m) for m in (("k", "mn"), ("mn", "k"), ("mn", "mn"))],
        base._replace(tile=(128, 128, 64)),
        base._replace(tile=(128, 256, 32), warps=(2, 4), stages=4),
    ]
    return {c.name: c for c in chosen}


def build(folder: str, chip: str) -> list[str]:
    """Compile all kernels into ``folder/NAME``; return the reports of ptxas."""
    from cute_dialect.kernels.ampere_gemm import ampere_gemm_text
    from cute_dialect.pipelines import compile as compile_cute

    reports: list[str] = []
    wanted = configs()
    for name in track(list(wanted), "compiling", "kernels"):
        config = wanted[name]
        module = compile_cute(ampere_gemm_text(config), chip=chip, filename=f"{name}.mlir")
        module.save(os.path.join(folder, name))
        reports.append(f"{name}: {module.report.strip()}")
    return reports


def run(folder: str, *, runs: int, large: bool, say: Callable[[str], None]) -> dict[str, object]:
    """Check and measure the kernels of :func:`build`.  Raises ``BenchError`` if a result is wrong."""
    from cute_dialect.runtime import load

    modules = {
        name: load(os.path.join(folder, name)) for name in configs() if os.path.isdir(os.path.join(folder, name))
    }
    for name, module in modules.items():
        for case in CHECKS:
            taken, error = check(module, name, case)
            say(f"  correct: {name} {case.shape} by @{taken}, error {error:.2f} times the tolerance")
        repeat(module, name)
        say(f"  identical results in 100 runs: {name}")
    pairs = [(name, shape) for name in modules for shape in SIZES]
    rows = [measure(modules[name], name, shape, runs) for name, shape in track(pairs, "measuring", "sizes")]
    return {"rows": rows}


def _matrix(dtype: torch.dtype, rows: int, columns: int, pad: int, offset: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Allocate a buffer of NaN, and return it and a row-major matrix in it."""
    import torch

    guard = 64
    storage = torch.full((2 * guard + rows * (columns + pad) + offset,), float("nan"), device="cuda", dtype=dtype)
    return storage, torch.as_strided(storage, (rows, columns), (columns + pad, 1), guard + offset)


def _operand(name: str, which: int, rows: int, depth: int, pad: int, offset: int) -> torch.Tensor:
    import torch

    element, majors = name.split("-")[0], name.split("-")[3]
    k_major = majors[which] == "k"
    shape = (rows, depth) if k_major else (depth, rows)
    _, x = _matrix(getattr(torch, TORCH_NAMES[element]), *shape, pad, offset)
    x.normal_()
    return x if k_major else x.T


def check(module: CompiledModule, name: str, case: Case) -> tuple[str, float]:
    """Return the variant that ran, and the maximum error relative to the tolerance.  Raises :class:`BenchError`.

    The tolerance is the sum of half a unit in the last place of the result, ``2^-20`` of the sum of the magnitudes, and
    ``2^-24``, the spacing of subnormal f16 numbers.
    """
    import torch

    m, n, k = case.shape
    torch.manual_seed(m + n + k)
    a = _operand(name, 0, m, k, case.pads[0], case.offset)
    b = _operand(name, 1, n, k, case.pads[1], case.offset)
    storage, c = _matrix(a.dtype, m, n, case.pads[2], case.offset)
    kernel = module.kernel("gemm")
    kernel(a, b, c)
    torch.cuda.synchronize()
    exact = a.double() @ b.double().T
    allowed = torch.finfo(c.dtype).eps / 2 * exact.abs() + 2.0**-20 * (a.double().abs() @ b.double().abs().T)
    error = (c.double() - exact).abs()
    share = float((error / (allowed + 2.0**-24)).max())
    if not share <= 1.0:  # This is also true for NaN.
        raise BenchError(f"{name} {case}: the error is {share:.2f} times the tolerance")
    c.fill_(float("nan"))
    if not bool(storage.isnan().all()):
        raise BenchError(f"{name} {case}: bytes outside C were written")
    taken = kernel.plan(a, b, c).kernel
    if case.kernel and name.split("-")[3] == "kk" and taken != case.kernel:
        raise BenchError(f"{name} {case}: expected @{case.kernel}, got @{taken}")
    return taken, share


def repeat(module: CompiledModule, name: str) -> None:
    """Run a hundred times on the same data.  Raises :class:`BenchError` if two results differ."""
    import torch

    a, b = _operand(name, 0, 1000, 520, 0, 0), _operand(name, 1, 1032, 520, 0, 0)
    _, c = _matrix(a.dtype, 1000, 1032, 0, 0)
    kernel = module.kernel("gemm")
    kernel(a, b, c)
    first = c.clone()
    for _ in range(99):
        c.fill_(float("nan"))
        kernel(a, b, c)
        if not torch.equal(first, c):
            raise BenchError(f"{name}: runs on the same data differ")


def measure(module: CompiledModule, name: str, shape: tuple[int, int, int], runs: int) -> dict[str, object]:
    """Return one row of the result."""
    import torch

    m, n, k = shape
    torch.manual_seed(0)
    a, b = _operand(name, 0, m, k, 0, 0), _operand(name, 1, n, k, 0, 0)
    c, peer = (torch.empty(m, n, device="cuda", dtype=a.dtype) for _ in range(2))
    kernel = module.kernel("gemm")
    times = compare(
        [("torch", lambda: torch.mm(a, b.T, out=peer)), ("ours", lambda: kernel(a, b, c))],
        traffic=2 * (m * k + n * k + m * n),
        runs=runs,
    )
    flop = 2e-6 * m * n * k
    ours, theirs = flop / times["ours"].median, flop / times["torch"].median
    return {
        "name": f"gemm_sm80 {name} {m}x{n}x{k} @{kernel.plan(a, b, c).kernel}",
        "ours": ours,
        "peer": theirs,
        "unit": "TFLOP/s",
        "ratio": ours / theirs,
    }
