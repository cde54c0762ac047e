"""``cute-bench gemm_skinny``: GEMMs with few rows, bound by reading B, compared with ``torch``.

The state of the L2 cache matters here.  Each kernel is timed after the L2 was overwritten, as in other benchmarks
(``write``: dirty lines are written back while B is read), and after it was filled by reading (``read``).  A row sum of
B gives the time of reading alone, and an empty kernel the time of a launch between two events.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from cute_dialect.kernels.gemm.config import GemmConfig
from cute_dialect.kernels.gemm.few_rows import few_rows_text
from cute_dialect.kernels.gemm.few_rows_config import SkinnyConfig
from cute_dialect.kernels.rows.sums import sum_text
from cute_dialect.op.execute.kernels import Runner, text_of
from cute_dialect.op.select.kernel_choice import Choice
from cute_dialect.runtime.progress import track
from cute_dialect.tools.bench.checks import BenchError, check_exact, check_limit, check_repeats
from cute_dialect.tools.bench.peers import normal
from cute_dialect.tools.bench.runner import Row, Say, build_kernels, loaded, median_times, row

if TYPE_CHECKING:  # pragma: no cover
    import torch

__all__ = ["SHAPES", "SPACE", "build", "run"]

SHAPES = ((128, 8192, 8192), (64, 8192, 8192), (16, 8192, 8192), (128, 4096, 4096), (128, 28672, 4096))
"""(M, N, K)"""
Call: TypeAlias = Callable[..., object]
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


def build(folder: str, chip: str) -> list[str]:
    """Compile the space into ``folder/NAME``; return the reports of ptxas."""
    texts: dict[str, Callable[[], str]] = {
        c.name: partial(few_rows_text, c) if isinstance(c, SkinnyConfig) else partial(text_of, c) for c in SPACE
    }
    texts |= {"empty": partial(str, _EMPTY), "sum": partial(sum_text, "sum", "f16", 8192)}
    return build_kernels(texts, folder, chip)


def run(folder: str, *, runs: int, large: bool, say: Say) -> dict[str, object]:
    """Check and measure the kernels of :func:`build`; return a row per kernel, shape and state of the L2."""
    rows: list[Row] = []
    calls: dict[str, Call] = {}
    for choice in SPACE:
        module = loaded(folder, choice.name)
        calls[choice.name] = Runner(choice, module) if isinstance(choice, Choice) else module.kernel("launch")
    for shape in track(SHAPES, "measuring", "shapes"):
        m, n, k = shape
        title = f"{m}x{n}x{k}"
        operands = normal("f16", m, k), normal("f16", n, k), normal("f16", m, n)
        right: dict[str, Call] = {}
        for name in dict.fromkeys(c.name for c in SPACE if suits(c, shape)):
            say(f"  {title} {name}")
            try:
                _check(name, calls[name], *operands)
            except BenchError as e:
                say(f"  wrong result: {e}")
            else:
                right[name] = calls[name]
        for how in ("write", "read"):
            time = partial(_time, operands, how, runs)
            reference = time("torch", _mm)
            if shape == SHAPES[0]:
                read, empty = (time(name, call) for name, call in _bounds(folder, n).items())
                say(f"  {how}: row sum of B {read:.2f} us, an empty launch {empty:.2f} us")
            for name, call in right.items():
                rows.append(row(f"{title} {how}", "us", time(name, call), reference, kernel=name))
                ours, ratio = rows[-1]["ours"], rows[-1]["ratio"]
                say(f"  {title} {how:5} {name:36} {ours:7.2f} us, torch {reference:7.2f}, {ratio:.3f}")
    return {"rows": rows}


def _bounds(folder: str, n: int) -> dict[str, Call]:
    """Load the kernel that only reads B and the empty kernel."""
    total = loaded(folder, "sum").kernel("sum")
    nothing = loaded(folder, "empty").kernel("empty")
    y = normal("f16", n)
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


def _check(name: str, call: Call, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
    """Compare random normal data with f32, and small integers exactly."""
    import torch

    check_repeats(name, lambda: call(a, b, c), c, 2)
    check_limit(name, c, (a.float() @ b.float().t()).double(), 2e-2 * a.shape[1] ** 0.5)
    x, y = (torch.randint(-2, 3, t.shape, device="cuda").to(t.dtype) for t in (a, b))
    call(x, y, c)
    check_exact(name, c, x.float() @ y.float().t())


def _time(operands: tuple[Any, ...], how: str, runs: int, name: str, call: Call) -> float:
    """Return the median time in microseconds; ``how`` is the state of the L2."""
    return median_times([(name, lambda: call(*operands))], traffic=0, runs=runs, flush=how)[name]
