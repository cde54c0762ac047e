"""``cute-bench warps``: tiles, stages, prefetch and split-K of mma.sync GEMMs for f64, tf32 and 8-bit types.

Each variant is checked on small integers, whose results are exact.  All variants of a problem then run with a cold L2
in alternating rounds, f64 and tf32 also against ``torch.mm``.  The fastest should be the default of
:class:`~cute_dialect.kernels.gemm.mma_sync.WarpConfig`, or one of its ``TILES``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple

from cute_dialect.kernels.gemm.mma_sync import WarpConfig, warp_gemm_text
from cute_dialect.op.execute.kernels import run_any
from cute_dialect.runtime.progress import track
from cute_dialect.tools.bench.checks import check_exact
from cute_dialect.tools.bench.peers import dtype
from cute_dialect.tools.bench.runner import Row, Say, build_kernels, loaded, median_times, row

__all__ = ["VARIANTS", "Variant", "build", "configs", "run"]


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


def configs() -> dict[str, WarpConfig]:
    """Return the configurations to build by name: A contiguous along K, B along N."""
    found: list[WarpConfig] = []
    for element, output in _KINDS:
        for v in VARIANTS:
            depth = {"f64": 8, "tf32": 16}.get(element, 64) if v.half else 0
            c = WarpConfig(element, output, ("k", "mn"), False, v.tile, v.warps, v.stages, k=depth, ahead=v.ahead)
            found.append(c._replace(parts=v.parts))
    return {c.name: c for c in found}


def build(folder: str, chip: str) -> list[str]:
    """Compile all kernels into ``folder/NAME``, in parallel processes; return the reports of ptxas."""
    return build_kernels({name: partial(warp_gemm_text, c) for name, c in configs().items()}, folder, chip)


def run(folder: str, *, runs: int, large: bool, say: Say) -> dict[str, object]:
    """Check and measure the kernels of :func:`build`.  Raises ``BenchError`` if a result is wrong."""
    rows: list[Row] = []
    for element, output in track(_KINDS, "measuring", "element types"):
        names = [n for n, c in configs().items() if c.element == element and os.path.isdir(os.path.join(folder, n))]
        for shape in (*((size,) * 3 for size in _SIZES.get(element, (513,))), _MUCH_K):
            if min(shape) < 8192 or large:
                rows += _measured(folder, names, element, output, shape, runs, say)
    return {"rows": rows}


def _measured(
    folder: str, names: Iterable[str], element: str, output: str, shape: Sequence[int], runs: int,
    say: Say,
) -> list[Row]:  # fmt: skip
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
        kernel = run_any(configs()[name], loaded(folder, name))
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
