"""``cute-bench warps``: tiles, stages, prefetch and split-K of mma.sync GEMMs for f64, tf32 and 8-bit types.

Each variant is checked on small integers, whose results are exact.  All variants of a problem then run with a cold L2
in alternating rounds, f64 and tf32 also against ``torch.mm``.  The fastest should be the default of
:class:`~cute_dialect.kernels.mma_sync_gemm.WarpConfig`, or one of its ``TILES``.
"""

# torch may be missing when types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false, reportUnknownParameterType=false

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple

from cute_dialect.kernels.mma_sync_gemm import WarpConfig, warp_gemm_text
from cute_dialect.op.execute.kernels import run_any
from cute_dialect.op.select.timing import compare
from cute_dialect.runtime.progress import track
from cute_dialect.tools.bench.cases.elementwise_add import BenchError
from cute_dialect.tools.bench.parallel import in_processes

__all__ = ["VARIANTS", "Variant", "build", "configs", "run"]

_DTYPES = {
    "f64": "float64", "tf32": "float32", "f32": "float32", "i8": "int8", "i32": "int32",
    "f8E4M3FN": "float8_e4m3fn", "bf16": "bfloat16",
}  # fmt: skip


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
    names = list(configs())
    return in_processes(partial(_build_one, folder=folder, chip=chip), names, names)


def _build_one(name: str, folder: str, chip: str) -> str:
    from cute_dialect.pipelines import compile as compile_cute

    module = compile_cute(warp_gemm_text(configs()[name]), chip=chip, filename=f"{name}.mlir")
    module.save(os.path.join(folder, name))
    return f"{name}: {module.report.strip()}"


def run(folder: str, *, runs: int, large: bool, say: Callable[[str], None]) -> dict[str, object]:
    """Check and measure the kernels of :func:`build`.  Raises ``BenchError`` if a result is wrong."""
    rows: list[dict[str, object]] = []
    for element, output in track(_KINDS, "measuring", "element types"):
        names = [n for n, c in configs().items() if c.element == element and os.path.isdir(os.path.join(folder, n))]
        for shape in (*((size,) * 3 for size in _SIZES.get(element, (513,))), _MUCH_K):
            if min(shape) < 8192 or large:
                rows += _measured(folder, names, element, output, shape, runs, say)
    return {"rows": rows}


def _measured(
    folder: str, names: Iterable[str], element: str, output: str, shape: Sequence[int], runs: int,
    say: Callable[[str], None],
) -> list[dict[str, object]]:  # fmt: skip
    """Check and measure the kernels of an element type on one problem (M, N, K)."""
    import torch

    from cute_dialect.runtime import load

    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = True
    kind = getattr(torch, _DTYPES[element])
    m, n, k = shape
    size = m if m == n == k else f"{m}x{n}x{k}"
    a, b = (torch.randint(-2, 3, x, device="cuda").float().to(kind) for x in ((m, k), (k, n)))
    c = torch.empty(m, n, device="cuda", dtype=getattr(torch, _DTYPES[output]))
    # b is (K, N) for torch, and (N, K) with contiguous columns for the kernel.
    calls: list[tuple[str, Callable[[], object]]] = []
    wanted = (a.double() @ b.double()).to(c.dtype)
    for name in names:
        kernel = run_any(configs()[name], load(os.path.join(folder, name)))
        c.fill_(77)
        kernel(a, b.t(), c)
        if not torch.equal(c, wanted):
            raise BenchError(f"{name} {size}: integer results are not exact")
        calls.append((name, lambda kernel=kernel: kernel(a, b.t(), c)))
    if element in ("f64", "tf32"):
        calls.append(("torch", lambda: torch.mm(a, b)))
    traffic = (a.numel() + b.numel()) * a.element_size() + c.numel() * c.element_size()
    times = compare(calls, traffic=traffic, runs=runs)
    flop = 2e-6 * m * n * k
    peer = flop / times["torch"].median if "torch" in times else None
    rows: list[dict[str, object]] = []
    for name, _ in calls:
        ours = flop / times[name].median
        if name != "torch":
            ratio = {} if peer is None else {"peer": peer, "ratio": ours / peer}
            rows.append({"name": f"warps {name} {size}", "ours": ours, "unit": "TFLOP/s", **ratio})
            say(f"  {name} {size}: {ours:.1f} TFLOP/s{'' if peer is None else f', {ours / peer:.3f} of torch'}")
    return rows
