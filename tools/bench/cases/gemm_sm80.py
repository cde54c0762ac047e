"""``cute-bench gemm_sm80``: GEMM with cp.async and mma.sync compared with ``torch.mm`` (cuBLAS).

Kernels are first checked against float64 on random normal data, with NaN-poisoned outputs and guarded padding.  The
checks cover every variant (16, 8, 4-byte copies and single elements), all layouts, and partial tiles.  A hundred
runs must give identical results.  Then TFLOP/s with a cold L2 are measured.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from cute_dialect.kernels.gemm.ampere import AmpereConfig, ampere_gemm_text
from cute_dialect.runtime.progress import track
from cute_dialect.tools.bench.checks import BenchError, check_limit, check_outside, check_repeats, guarded
from cute_dialect.tools.bench.peers import dtype
from cute_dialect.tools.bench.runner import Row, Say, build_kernels, loaded, median_times, row

if TYPE_CHECKING:  # pragma: no cover
    import torch

    from cute_dialect.runtime.launch import CompiledModule

__all__ = ["CHECKS", "SIZES", "Case", "build", "check", "configs", "repeat", "run"]


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
    return build_kernels({name: partial(ampere_gemm_text, c) for name, c in configs().items()}, folder, chip)


def run(folder: str, *, runs: int, large: bool, say: Say) -> dict[str, object]:
    """Check and measure the kernels of :func:`build`.  Raises ``BenchError`` if a result is wrong."""
    modules = {name: loaded(folder, name) for name in configs() if os.path.isdir(os.path.join(folder, name))}
    for name, module in modules.items():
        for case in CHECKS:
            taken, error = check(module, name, case)
            say(f"  correct: {name} {case.shape} by @{taken}, error {error:.2f} times the tolerance")
        repeat(module, name)
        say(f"  identical results in 100 runs: {name}")
    pairs = [(name, shape) for name in modules for shape in SIZES]
    return {"rows": [measure(modules[name], name, shape, runs) for name, shape in track(pairs, "measuring", "sizes")]}


def _operands(
    name: str, shape: tuple[int, int, int], pads: tuple[int, int, int] = (0, 0, 0), offset: int = 0
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return A (M, K) and B (N, K) of normally distributed values, C, and the memory of C."""
    element, majors = name.split("-")[0], name.split("-")[3]
    m, n, k = shape

    def matrix(rows: int, columns: int, pad: int) -> tuple[torch.Tensor, torch.Tensor]:
        return guarded(dtype(element), (rows, columns), (columns + pad, 1), offset)

    a, b = (
        matrix(*((rows, k) if major == "k" else (k, rows)), pad)[1].normal_()
        for rows, major, pad in zip((m, n), majors, pads)
    )
    storage, c = matrix(m, n, pads[2])
    return a if majors[0] == "k" else a.T, b if majors[1] == "k" else b.T, c, storage


def check(module: CompiledModule, name: str, case: Case) -> tuple[str, float]:
    """Return the variant that ran, and the maximum error relative to the tolerance.  Raises :class:`BenchError`.

    The tolerance is the sum of half a unit in the last place of the result, ``2^-20`` of the sum of the magnitudes, and
    ``2^-24``, the spacing of subnormal f16 numbers.
    """
    import torch

    torch.manual_seed(sum(case.shape))
    a, b, c, storage = _operands(name, case.shape, case.pads, case.offset)
    kernel = module.kernel("gemm")
    kernel(a, b, c)
    torch.cuda.synchronize()
    exact = a.double() @ b.double().T
    allowed = torch.finfo(c.dtype).eps / 2 * exact.abs() + 2.0**-20 * (a.double().abs() @ b.double().abs().T)
    share = check_limit(f"{name} {case}", c, exact, allowed + 2.0**-24)
    check_outside(f"{name} {case}", storage, c)
    taken = kernel.plan(a, b, c).kernel
    if case.kernel and name.split("-")[3] == "kk" and taken != case.kernel:
        raise BenchError(f"{name} {case}: expected @{case.kernel}, got @{taken}")
    return taken, share


def repeat(module: CompiledModule, name: str) -> None:
    """Run a hundred times on the same data.  Raises :class:`BenchError` if two results differ."""
    a, b, c, _ = _operands(name, (1000, 1032, 520))
    kernel = module.kernel("gemm")
    check_repeats(name, lambda: kernel(a, b, c), c, 100)


def measure(module: CompiledModule, name: str, shape: tuple[int, int, int], runs: int) -> Row:
    """Return one row of the result."""
    import torch

    m, n, k = shape
    torch.manual_seed(0)
    a, b, _, _ = _operands(name, shape)
    c, peer = (torch.empty(m, n, device="cuda", dtype=a.dtype) for _ in range(2))
    kernel = module.kernel("gemm")
    times = median_times(
        [("torch", lambda: torch.mm(a, b.T, out=peer)), ("ours", lambda: kernel(a, b, c))],
        traffic=2 * (m * k + n * k + m * n),
        runs=runs,
    )
    ours, theirs = (2e-6 * m * n * k / times[x] for x in ("ours", "torch"))
    return row(f"gemm_sm80 {name} {m}x{n}x{k} @{kernel.plan(a, b, c).kernel}", "TFLOP/s", ours, theirs)
