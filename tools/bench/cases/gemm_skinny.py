"""``cute-bench gemm_skinny``: GEMMs with few rows, bound by reading B, compared with ``torch``.

The state of the L2 cache matters here.  Each kernel is timed after the L2 was overwritten, as in other benchmarks
(``write``: dirty lines are written back while B is read), and after it was filled by reading (``read``).  A row sum of
B gives the time of reading alone, and an empty kernel the time of a launch between two events.
"""

# torch may be missing when types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false, reportUnknownParameterType=false

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from cute_dialect.kernels.gemm.config import GemmConfig
from cute_dialect.kernels.gemm.few_rows_config import SkinnyConfig
from cute_dialect.op.select.kernel_choice import Choice
from cute_dialect.op.select.timing import compare
from cute_dialect.runtime.progress import track
from cute_dialect.tools.bench.cases.elementwise_add import BenchError

if TYPE_CHECKING:  # pragma: no cover
    import torch

__all__ = ["SHAPES", "SPACE", "build", "run"]

SHAPES = ((128, 8192, 8192), (64, 8192, 8192), (16, 8192, 8192), (128, 4096, 4096), (128, 28672, 4096))
"""(M, N, K)"""
_FLAT = GemmConfig(cluster_m=1, deferred=False, serpentine=False, tile=(128, 128, 64), stages=6)
_WHOLE = SkinnyConfig(stages=10)
_HALF = SkinnyConfig(columns=128, stages_a=6, stages=6, parts=2)
_FEW = SkinnyConfig(rows=64, stages_a=14, stages=14)
SPACE: tuple[Choice | SkinnyConfig, ...] = (
    Choice(_FLAT, 2),
    _WHOLE,
    _WHOLE._replace(l2=128),
    _HALF,
    _HALF._replace(columns=64, stages_a=8, stages=9),
    _WHOLE._replace(columns=224, stages_a=4, stages=5),
    _WHOLE._replace(columns=224, stages_a=4, stages=5, l2=128),
    _FEW,
    _FEW._replace(live=16),
    _FEW._replace(live=16, l2=128),
)
_EMPTY = """gpu.module @kernels {
  gpu.func @empty(%x: !cute.memref<f16, gmem, align<16>, "(?,?):(?{div=8},1)">) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    gpu.return
  }
}
"""  # noqa: E501


def _text(choice: Choice | SkinnyConfig) -> str:
    from cute_dialect.kernels.gemm.few_rows import few_rows_text
    from cute_dialect.op.execute.kernels import text_of

    return few_rows_text(choice) if isinstance(choice, SkinnyConfig) else text_of(choice)


def build(folder: str, chip: str) -> list[str]:
    """Compile the space into ``folder/NAME``; return the reports of ptxas."""
    from cute_dialect.kernels.row_sums import sum_text
    from cute_dialect.pipelines import compile as compile_cute

    texts = {c.name: _text(c) for c in SPACE} | {"empty": _EMPTY, "sum": sum_text("sum", "f16", 8192)}
    said: list[str] = []
    for name in track(list(texts), "compiling", "kernels"):
        text = texts[name]
        module = compile_cute(text, chip=chip, filename=f"{name}.mlir")
        module.save(os.path.join(folder, name))
        said.append(f"{name}: {module.report.strip().splitlines()[-1]}")
    return said


def run(folder: str, *, runs: int, large: bool, say: Callable[[str], None]) -> dict[str, object]:
    """Check and measure the kernels of :func:`build`; return a row per kernel, shape and state of the L2."""
    from cute_dialect.op.execute.kernels import Runner
    from cute_dialect.runtime import load

    rows: list[dict[str, object]] = []
    calls: dict[str, Callable[[torch.Tensor, torch.Tensor, torch.Tensor], object]] = {}
    for choice in SPACE:
        module = load(os.path.join(folder, choice.name))
        calls[choice.name] = Runner(choice, module) if isinstance(choice, Choice) else module.kernel("launch")
    for shape in track(SHAPES, "measuring", "shapes"):
        m, n, k = shape
        found = {c.name: calls[c.name] for c in SPACE if suits(c, shape)}
        matrices = _matrices(m, n, k)
        right: dict[str, Callable[[torch.Tensor, torch.Tensor, torch.Tensor], object]] = {}
        for name, call in found.items():
            say(f"  {m}x{n}x{k} {name}")
            try:
                _check(name, call, matrices)
            except BenchError as e:
                say(f"  wrong result: {e}")
            else:
                right[name] = call
        for how in ("write", "read"):
            reference = _time("torch", lambda a, b, c: _mm(a, b, c), matrices, how, runs)
            if shape == SHAPES[0]:
                read, empty = (_time(x, call, matrices, how, runs) for x, call in _bounds(folder, n).items())
                say(f"  {how}: row sum of B {read:.2f} us, an empty launch {empty:.2f} us")
            for name, call in right.items():
                ours = _time(name, call, matrices, how, runs)
                row = {"name": f"{m}x{n}x{k} {how}", "kernel": name, "ours": ours, "peer": reference}
                rows.append({**row, "unit": "us", "ratio": reference / ours})
                say(f"  {m}x{n}x{k} {how:5} {name:36} {ours:7.2f} us, torch {reference:7.2f}, {reference / ours:.3f}")
    return {"rows": rows}


def _bounds(folder: str, n: int) -> dict[str, Callable[[torch.Tensor, torch.Tensor, torch.Tensor], object]]:
    """Load the kernel that only reads B and the empty kernel."""
    import torch

    from cute_dialect.runtime import load

    total = load(os.path.join(folder, "sum")).kernel("sum")
    nothing = load(os.path.join(folder, "empty")).kernel("empty")
    y = torch.empty(n, device="cuda", dtype=torch.float16)
    return {
        "sum": lambda a, b, c: total(b, y),
        "empty": lambda a, b, c: nothing(a, grid=(1, 1, 1), block=(128, 1, 1)),
    }


def suits(choice: Choice | SkinnyConfig, shape: tuple[int, int, int]) -> bool:
    """Return True if a kernel fits a shape: its tile height, and a grid of about one block per SM."""
    m, n, _ = shape
    if isinstance(choice, SkinnyConfig):
        c = choice
        rows = c.rows if not c.live else c.live
        few = m <= 64 and rows <= 64
        blocks = -(-n // (c.columns * c.share)) * c.share * c.parts
        return m <= rows and (m > 64 or few) and 100 <= blocks <= 132
    tile = choice.config.tile
    return -(-m // tile[0]) * -(-n // tile[1]) * choice.parts <= choice.config.sms


def _mm(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
    import torch

    torch.mm(a, b.t(), out=c)


def _matrices(m: int, n: int, k: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    import torch

    made = (torch.randn(rows, k, device="cuda").half() for rows in (m, n))
    a, b = made
    return a, b, torch.full((m, n), float("nan"), device="cuda", dtype=torch.float16)


def _check(
    name: str,
    call: Callable[[torch.Tensor, torch.Tensor, torch.Tensor], object],
    matrices: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
) -> None:
    """Compare random normal data with f32, and small integers exactly."""
    import torch

    a, b, c = matrices
    call(a, b, c)
    again = c.clone()
    c.fill_(float("nan"))
    call(a, b, c)
    if not torch.equal(c, again):
        raise BenchError(f"{name}: two runs differ")
    error = float((c.float() - a.float() @ b.float().t()).abs().max()) / a.shape[1] ** 0.5
    if not error < 2e-2:
        raise BenchError(f"{name}: the maximum error is {error:.2e} sqrt(K)")
    x, y = (torch.randint(-2, 3, t.shape, device="cuda").to(t.dtype) for t in (a, b))
    call(x, y, c)
    wrong = int((c != (x.float() @ y.float().t()).to(c.dtype)).sum())
    if wrong:
        raise BenchError(f"{name}: {wrong} elements are wrong on integer data")


def _time(
    name: str,
    call: Callable[[torch.Tensor, torch.Tensor, torch.Tensor], object],
    matrices: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
    how: str,
    runs: int,
) -> float:
    """Return the median time in microseconds."""
    return compare([(name, lambda: call(*matrices))], traffic=0, runs=runs, flush=how)[name].median
