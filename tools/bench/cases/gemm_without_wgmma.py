"""GEMMs without wgmma: ``cute-bench gemm_sm80``, ``sgemm`` and ``warps``, compared with ``torch.mm`` (cuBLAS).

* ``gemm_sm80``: cp.async and mma.sync.  Kernels are first checked against float64 on random normal data, with
  NaN-poisoned outputs and guarded padding.  The checks cover every variant (16, 8, 4-byte copies and single elements),
  all layouts, and partial tiles.  A hundred runs must give identical results.
* ``sgemm``: the SGEMM ladder in f32, without TF32.  The checks use odd sizes and rows not aligned to vectors.
* ``warps``: tiles, stages, prefetch and split-K of mma.sync GEMMs for f64, tf32 and 8-bit types.  Each variant is
  checked on small integers.  The fastest should be the default of
  :class:`~cute_dialect.kernels.gemm.mma_sync.WarpConfig`, or one of its ``TILES``.

Then TFLOP/s with a cold L2 are measured.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from cute_dialect.kernels.gemm.ampere import AmpereConfig, ampere_gemm_text
from cute_dialect.kernels.gemm.mma_sync import WarpConfig, warp_gemm_text
from cute_dialect.kernels.gemm.sgemm import RUNGS, sgemm_text
from cute_dialect.op.execute.kernels import share_of
from cute_dialect.op.execute.launcher import ready
from cute_dialect.runtime.progress import track
from cute_dialect.tools.bench.runner import (
    BenchError,
    Benchmark,
    Row,
    Say,
    build_kernels,
    check_exact,
    check_limit,
    check_outside,
    check_repeats,
    dtype,
    guarded,
    loaded,
    median_times,
    row,
)

if TYPE_CHECKING:  # pragma: no cover
    import torch

    from cute_dialect.runtime.launch import CompiledModule


# ------------------------------------------------------------------------------------------------ cp.async and mma.sync


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


def build_sm80(folder: str, chip: str) -> list[str]:
    return build_kernels({name: partial(ampere_gemm_text, c) for name, c in configs().items()}, folder, chip)


def run_sm80(folder: str, *, runs: int, large: bool, say: Say) -> dict[str, object]:
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


# ---------------------------------------------------------------------------------------------------------------- SGEMM


SGEMM_CHECKS = (
    (1, 1, 1, 0), (37, 41, 19, 1), (128, 128, 128, 0), (300, 260, 136, 4), (129, 515, 1000, 3), (1024, 1024, 1000, 0),
)  # fmt: skip
"""M, N, K, and the row padding in elements."""


def sizes(rung: str) -> tuple[int, ...]:
    """Return the sizes to measure; slow rungs use only the smallest."""
    if rung in ("naive", "coalesced"):
        return (2048,)
    return (2048, 4096, 8192) if rung in ("warptile", "pipelined") else (2048, 4096)


def build_sgemm(folder: str, chip: str) -> list[str]:
    return build_kernels({rung: partial(sgemm_text, rung) for rung in RUNGS}, folder, chip)


def run_sgemm(folder: str, *, runs: int, large: bool, say: Say) -> dict[str, object]:
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    rows: list[Row] = []
    for rung in track(RUNGS, "measuring", "kernels"):
        module = loaded(folder, rung)
        found = [check_sgemm(module, rung, *case) for case in SGEMM_CHECKS]
        worst, by = max(e for e, _ in found), ", ".join(sorted({k for _, k in found}))
        say(f"  correct: {rung}, {len(SGEMM_CHECKS)} shapes, largest error {worst:.2f} of K eps |A||B|, by {by}")
        rows += [measure_sgemm(module, rung, size, runs) for size in sizes(rung)]
    return {"rows": rows}


def check_sgemm(module: CompiledModule, rung: str, m: int, n: int, k: int, more: int) -> tuple[float, str]:
    """Check one case; return the largest error and the kernel variant that ran.  Raises ``BenchError``."""
    import torch

    torch.manual_seed(0)
    (_, a), (_, b), (storage, c) = (
        guarded(torch.float32, (rows, columns), (columns + more, 1)) for rows, columns in ((m, k), (k, n), (m, n))
    )
    a.normal_()
    b.normal_()
    kernel, name = module.kernel("launch"), f"{rung} {(m, n, k)}"
    check_repeats(name, lambda: kernel(a, b, c), c, 11)
    bound = k * 2.0**-24 * (a.double().abs() @ b.double().abs()) + 1e-30
    error = check_limit(name, c, a.double() @ b.double(), bound)
    check_outside(name, storage, c)
    return error, f"@{kernel.plan(a, b, c).kernel}"


def measure_sgemm(module: CompiledModule, rung: str, size: int, runs: int) -> Row:
    """Measure one rung at one size in TFLOP/s, compared with torch."""
    import torch

    a, b = (torch.randn(size, size, device="cuda") for _ in range(2))
    c, reference = torch.empty_like(a), torch.empty_like(a)
    kernel = module.kernel("launch")
    times = median_times(
        [("ours", lambda: kernel(a, b, c)), ("torch", lambda: torch.mm(a, b, out=reference))],
        traffic=3 * size * size * 4, runs=runs, rounds=10,
    )  # fmt: skip
    ours, peer = (2e-6 * size**3 / times[k] for k in ("ours", "torch"))
    return row(f"sgemm {rung} {size}³", "TFLOP/s", ours, peer, us=times["ours"])


# ------------------------------------------------------------------------------------------------- variants of mma.sync


class Variant(NamedTuple):
    """The tuned fields of a configuration."""

    tile: tuple[int, int] = (128, 128)
    warps: tuple[int, int] = (4, 2)
    stages: int = 3
    ahead: bool = False
    half: bool = False
    """Use stages of 64 bytes along K."""
    parts: int = 1


VARIANTS = (
    Variant(),
    Variant(ahead=True),
    Variant(stages=4, ahead=True),
    Variant((128, 64)),
    Variant((128, 64), ahead=True),
    Variant((128, 64), stages=4, half=True),
    Variant((64, 128), (2, 2)),
    Variant((64, 128), (2, 2), ahead=True),
    Variant((64, 128), (2, 4)),
    Variant((64, 64), (2, 2)),
    Variant((64, 64), (2, 2), ahead=True),
    Variant((64, 64), (2, 2), 5, ahead=True),
    Variant((32, 64), (2, 2), 5),
    Variant(parts=4),
    Variant((64, 64), (2, 2), parts=2),
    Variant((64, 64), (2, 2), parts=4),
    Variant((64, 64), (2, 2), parts=12),
)
_KINDS = (("f64", "f64"), ("tf32", "f32"), ("i8", "i32"), ("f8E4M3FN", "bf16"))
_SIZES = {"f64": (513, 1024, 4096, 8192)}
"""Sizes M = N = K by element type; default: one odd size."""
_MUCH_K = (256, 192, 8192)
"""M, N, K of a problem with few tiles."""


def warp_configs() -> dict[str, WarpConfig]:
    """Return the configurations to build by name: A contiguous along K, B along N."""
    found: list[WarpConfig] = []
    for element, output in _KINDS:
        for v in VARIANTS:
            depth = {"f64": 8, "tf32": 16}.get(element, 64) if v.half else 0
            c = WarpConfig(element, output, ("k", "mn"), False, v.tile, v.warps, v.stages, k=depth, ahead=v.ahead)
            found.append(c._replace(parts=v.parts))
    return {c.name: c for c in found}


def build_warps(folder: str, chip: str) -> list[str]:
    return build_kernels({name: partial(warp_gemm_text, c) for name, c in warp_configs().items()}, folder, chip)


def run_warps(folder: str, *, runs: int, large: bool, say: Say) -> dict[str, object]:
    rows: list[Row] = []
    for element, output in track(_KINDS, "measuring", "element types"):
        names = [
            n for n, c in warp_configs().items() if c.element == element and os.path.isdir(os.path.join(folder, n))
        ]
        for shape in (*((size,) * 3 for size in _SIZES.get(element, (513,))), _MUCH_K):
            if min(shape) < 8192 or large:
                rows += _measured(folder, names, element, output, shape, runs, say)
    return {"rows": rows}


def _measured(
    folder: str, names: Iterable[str], element: str, output: str, shape: Sequence[int], runs: int, say: Say
) -> list[Row]:
    """Check and measure the kernels of an element type on one problem (M, N, K)."""
    import torch

    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = True
    m, n, k = shape
    size = m if m == n == k else f"{m}x{n}x{k}"
    a, b = (torch.randint(-2, 3, x, device="cuda").float().to(dtype(element)) for x in ((m, k), (k, n)))
    c = torch.empty(m, n, device="cuda", dtype=dtype(output))
    # b is (K, N) for torch, and (N, K) with contiguous columns for the kernel.
    calls: list[tuple[str, Callable[[], object]]] = []
    wanted = (a.double() @ b.double()).to(c.dtype)
    for name in names:
        kernel = ready(loaded(folder, name), share_of(warp_configs()[name]))
        c.fill_(77)
        kernel(a, b.t(), c)
        check_exact(f"{name} {size}", c, wanted)
        calls.append((name, lambda kernel=kernel: kernel(a, b.t(), c)))
    if element in ("f64", "tf32"):
        calls.append(("torch", lambda: torch.mm(a, b)))
    traffic = (a.numel() + b.numel()) * a.element_size() + c.numel() * c.element_size()
    times = median_times(calls, traffic=traffic, runs=runs)
    flop = 2e-6 * m * n * k
    peer = flop / times["torch"] if "torch" in times else None
    rows: list[Row] = []
    for name in names:
        ours, title = flop / times[name], f"warps {name} {size}"
        say(f"  {name} {size}: {ours:.1f} TFLOP/s{'' if peer is None else f', {ours / peer:.3f} of torch'}")
        rows.append(
            {"name": title, "ours": ours, "unit": "TFLOP/s"} if peer is None else row(title, "TFLOP/s", ours, peer)
        )
    return rows


BENCHMARKS = {
    "gemm_sm80": Benchmark(build_sm80, run_sm80),
    "sgemm": Benchmark(build_sgemm, run_sgemm),
    "warps": Benchmark(build_warps, run_warps),
}
