"""``cute-bench gemm``: the Hopper GEMM beside ``torch.mm`` (cuBLAS).

Checked first, on random normal and on small-integer data, outputs poisoned: shapes that are no multiples of a tile, the
float64 product as reference, integers bit for bit, three runs alike.  Then TFLOP/s with a cold L2, each contestant on
its own for a share of the runs (power and clock are its own), in turns.
"""

# torch is not there where the types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false, reportUnknownParameterType=false

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from math import exp, log
from typing import TYPE_CHECKING

from cute_dialect.tools.bench_add import BenchError
from cute_dialect.tools.bench_timing import compare

if TYPE_CHECKING:  # pragma: no cover
    import torch

    from cute_dialect.kernels.gemm_sm90 import GemmConfig
    from cute_dialect.pipelines.launch import CompiledModule

__all__ = ["SIZES", "build", "configs", "run"]

TORCH_NAMES = {"f16": "float16", "bf16": "bfloat16"}
CHECKS = (
    (64, 256, 64),
    (128, 256, 192),
    (200, 264, 72),
    (256, 512, 64),
    (1000, 1000, 1000),
    (2048, 2048, 2048),
    (4096, 512, 8),
)
SIZES = (
    (2048, 2048, 2048),
    (4096, 4096, 4096),
    (8192, 8192, 8192),
    (16384, 8192, 8192),
    (8192, 28672, 4096),
    (4096, 4096, 14336),
    (128, 8192, 8192),
)
"""(M, N, K)"""


def configs() -> Mapping[str, GemmConfig]:
    """The kernels that are built: name to configuration."""
    from cute_dialect.kernels.gemm_sm90 import GemmConfig

    found: dict[str, GemmConfig] = {}
    for element in TORCH_NAMES:
        base = GemmConfig(element=element, output=element)
        found[f"{element}-multi"] = base
        found[f"{element}-single"] = base._replace(cluster_m=1, deferred=False)
    return found


def build(folder: str, chip: str) -> list[str]:
    """Compile all kernels into ``folder/NAME``; gives what ptxas says."""
    from cute_dialect.kernels.gemm_sm90 import gemm_sm90
    from cute_dialect.pipelines import compile as compile_cute

    said: list[str] = []
    for name, config in configs().items():
        module = compile_cute(gemm_sm90(config), chip=chip, filename=f"{name}.mlir", save=os.path.join(folder, name))
        said.append(f"{name}: {module.report.strip()}")
    return said


def run(folder: str, *, runs: int, large: bool, say: Callable[[str], None]) -> dict[str, object]:
    """Check and measure what :func:`build` made.  Raises ``BenchError`` when a result is wrong."""
    from cute_dialect.pipelines import load

    modules = {name: load(os.path.join(folder, name)) for name in sorted(os.listdir(folder))}
    for name, module in modules.items():
        for shape in CHECKS:
            for integers in (False, True):
                error = check(module, name.split("-")[0], shape, integers=integers)
                say(f"  right: {name} {shape} {'integers, exact' if integers else f'normal, error {error:.1e}'}")
    rows: list[dict[str, object]] = []
    for name, module in modules.items():
        for integers in (False, True):
            found = [measure(module, name, shape, runs, integers=integers) for shape in SIZES]
            rows += found
            ratios = [float(str(r["ratio"])) for r in found[:6]]
            mean = exp(sum(map(log, ratios)) / len(ratios))
            say(f"  {name} {'integers' if integers else 'normal'}: geometric mean of the six large {mean:.3f}")
    return {"rows": rows}


def inputs(
    shape: tuple[int, int, int], element: str, *, integers: bool
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """A (M, K), B (N, K) and a poisoned C (M, N)."""
    import torch

    m, n, k = shape
    dtype: torch.dtype = getattr(torch, TORCH_NAMES[element])
    torch.manual_seed(m + n + k)

    def matrix(rows: int) -> torch.Tensor:
        if integers:
            return torch.randint(-2, 3, (rows, k), device="cuda").to(dtype)
        return torch.randn(rows, k, device="cuda", dtype=dtype)

    return matrix(m), matrix(n), torch.full((m, n), float("nan"), device="cuda", dtype=dtype)


def check(module: CompiledModule, element: str, shape: tuple[int, int, int], *, integers: bool) -> float:
    """The largest error beside the float64 product, relative to its scale.  Raises :class:`BenchError`."""
    import torch

    a, b, c = inputs(shape, element, integers=integers)
    kernel = module.kernel("launch")
    kernel(a, b, c)
    first = c.clone()
    for _ in range(2):
        c.fill_(float("nan"))
        kernel(a, b, c)
    torch.cuda.synchronize()
    if not torch.equal(first, c):
        raise BenchError(f"{element} {shape}: runs on the same data differ")
    exact = a.double() @ b.double().T
    if integers:
        if not torch.equal(c, exact.to(c.dtype)):
            wrong = int((c != exact.to(c.dtype)).sum())
            raise BenchError(f"{element} {shape}: {wrong} elements are wrong on integer data")
        return 0.0
    scale = float(shape[2]) ** 0.5
    error = float((c.double() - exact).abs().max()) / scale
    limit = 4 * torch.finfo(c.dtype).eps
    if not error < limit:  # NaN too
        raise BenchError(f"{element} {shape}: error {error:.2e} of sqrt(K), expected less than {limit:.1e}")
    return error


def measure(
    module: CompiledModule, name: str, shape: tuple[int, int, int], runs: int, *, integers: bool
) -> dict[str, object]:
    """One row of the result."""
    import torch

    m, n, k = shape
    element = name.split("-")[0]
    a, b, c = inputs(shape, element, integers=integers)
    peer = torch.empty_like(c)
    kernel = module.kernel("launch")
    times = compare(
        [("torch", lambda: torch.mm(a, b.T, out=peer)), ("ours", lambda: kernel(a, b, c))],
        traffic=2 * (m * k + n * k + m * n),
        runs=runs,
        rounds=3,
    )
    if not torch.allclose(c.float(), peer.float(), rtol=2e-2, atol=2e-2 * k**0.5):
        raise BenchError(f"{name} {shape}: differs from torch.mm")
    flop = 2e-6 * m * n * k
    ours, theirs = flop / times["ours"].median, flop / times["torch"].median
    return {
        "name": f"gemm {name} {m}x{n}x{k} {'int' if integers else 'normal'}",
        "ours": ours,
        "peer": theirs,
        "unit": "TFLOP/s",
        "ratio": ours / theirs,
    }
