"""Limits of GEMM kernels: reading B, launches, the prologue, and power.

* ``cute-bench gemm_skinny``: GEMMs with few rows, bound by reading B, compared with torch.  The state of the L2 cache
  matters.  Each kernel is timed after the L2 was overwritten, as in other benchmarks (``write``: dirty lines are
  written back while B is read), and after it was filled by reading (``read``).  A row sum of B gives the time of
  reading alone, and an empty kernel the time of a launch between two events.
* ``cute-bench chain``: twenty GEMMs of N x N f16 matrices, each of which multiplies the result of the previous one,
  captured in a CUDA graph and replayed.  A row is the time per GEMM with and without programmatic dependent launch,
  compared with ``torch.mm``.  First, the results of both are compared bitwise.
* ``cute-bench prologue``: time from a block's first instruction to its first load, first ``wgmma`` and end, for the
  kernels of ``chain``.  Counters added to the PTX record the clock of the SM (``%clock64``).  A row is the median over
  blocks and launches; it excludes the launch time before the first instruction.
* ``cute-bench energy``: power, clock and energy per FLOP of kernels that are launched without pause on random normal
  data.  A large GEMM reaches the power limit of the GPU, so its energy per FLOP determines its speed.
"""

from __future__ import annotations

import os
import re
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from cute_dialect.kernels.gemm import gemm_text
from cute_dialect.kernels.gemm.config import GemmConfig, SkinnyConfig, SplitConfig
from cute_dialect.kernels.gemm.few_rows import few_rows_text
from cute_dialect.kernels.rows.sums import sum_text
from cute_dialect.op.execute.kernels import text_of
from cute_dialect.op.select.cost_model import best, costs_of
from cute_dialect.op.select.kernel_choice import Choice, Problem
from cute_dialect.pipelines import compile as compile_cute
from cute_dialect.pipelines.ptxas import assemble
from cute_dialect.runtime import driver
from cute_dialect.runtime.artifact import save_artifact
from cute_dialect.runtime.progress import track
from cute_dialect.tools.bench.cases.gemm import Runner, build_choices, check, inputs, peer_of, runner_of
from cute_dialect.tools.bench.profile import steady_load
from cute_dialect.tools.bench.runner import (
    BenchError,
    Benchmark,
    Row,
    Say,
    build_kernels,
    check_exact,
    check_limit,
    check_repeats,
    in_processes,
    loaded,
    median_times,
    normal,
    row,
)

if TYPE_CHECKING:  # pragma: no cover
    import torch
    from numpy.typing import NDArray


# ------------------------------------------------------------------------------------------------------------ reading B


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


def build_skinny(folder: str, chip: str) -> list[str]:
    texts: dict[str, Callable[[], str]] = {
        c.name: partial(few_rows_text, c) if isinstance(c, SkinnyConfig) else partial(text_of, c) for c in SPACE
    }
    texts |= {"empty": partial(str, _EMPTY), "sum": partial(sum_text, "sum", "f16", 8192)}
    return build_kernels(texts, folder, chip)


def run_skinny(folder: str, *, runs: int, large: bool, say: Say) -> dict[str, object]:
    """Check and measure the kernels of :func:`build_skinny`; return a row per kernel, shape and state of the L2."""
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
    return {"sum": lambda a, b, c: total(b, y), "empty": lambda a, b, c: nothing(a, grid=(1, 1, 1), block=(128, 1, 1))}


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


# --------------------------------------------------------------------------------------------------- dependent launches


CHAIN_SIZES = (128, 256, 512, 1024, 2048)
LINKS = 20


def chain_kernels(size: int) -> list[Choice]:
    """Return the kernel with the lowest predicted time, without and with dependent launch.

    >>> [c.config.dependent for c in chain_kernels(512)]
    [False, True]
    """
    found = best(Problem(size, size, size), costs_of("NVIDIA H200", 132))
    if found.skinny is not None:
        found = Choice(found.config._replace(tile=(64, 64, 64), stages=8, cluster_m=1, deferred=False))
    return [found, found._replace(config=found.config._replace(dependent=True))]


def build_chain(folder: str, chip: str) -> list[str]:
    return build_kernels(
        {c.name: partial(plain_text, c) for size in CHAIN_SIZES for c in chain_kernels(size)}, folder, chip
    )


def plain_text(choice: Choice) -> str:
    """Return the text of a kernel with its own setting of dependent launch, which ``op`` would override."""
    return gemm_text(SplitConfig(choice.config, choice.parts) if choice.parts > 1 else choice.config)


def run_chain(folder: str, *, runs: int, large: bool, say: Say) -> dict[str, object]:
    import torch

    rows: list[Row] = []
    for size in track(CHAIN_SIZES, "measuring", "sizes"):
        torch.manual_seed(0)
        factor, first = normal("f16", size, size) * size**-0.5, normal("f16", size, size)
        usual, dependent = [runner_of(folder, c) for c in chain_kernels(size)]
        chains: list[tuple[str, Callable[[Any, Any, Any], object]]] = [
            ("usual", usual),
            ("dependent", dependent),
            ("torch", lambda x, y, out: torch.mm(x, y.t(), out=out)),
        ]
        made = {name: _captured(call, first, factor) for name, call in chains}
        for graph, _ in made.values():
            graph.replay()
        torch.cuda.synchronize()
        if not torch.equal(made["usual"][1], made["dependent"][1]):
            raise BenchError(f"chain {size}: dependent launch changes the results")
        calls = [(name, graph.replay) for name, (graph, _) in made.items()]
        times = {n: t / LINKS for n, t in median_times(calls, traffic=2**40, runs=runs).items()}
        for name in ("usual", "dependent"):
            rows.append(row(f"chain {name} {size}", "us", times[name], times["torch"]))
            say(f"  {name} {size}: {times[name]:.2f} us per GEMM, torch {times['torch']:.2f}, {rows[-1]['ratio']:.3f}")
    return {"rows": rows}


def _captured(call: Callable[[Any, Any, Any], object], first: Any, factor: Any) -> tuple[Any, Any]:
    """Return a CUDA graph of a chain of GEMMs, and its output tensor."""
    import torch

    results = [torch.empty_like(first) for _ in range(2)]

    def chain() -> None:
        x = first
        for i in range(LINKS):
            call(x, factor, results[i % 2])
            x = results[i % 2]

    side = torch.cuda.Stream()
    with torch.cuda.stream(side):  # Allocations of the first call must not be captured.
        chain()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        chain()
    return graph, results[(LINKS - 1) % 2]


# ------------------------------------------------------------------------------------------------------------- prologue


PROLOGUE_SIZES = (128, 256, 512, 1024, 4096)
FIELDS = ("begin", "load", "wgmma", "end", "time", "sm")
"""64-bit fields that a block records: clocks of the first instruction, first load, first ``wgmma`` and last
instruction; ``%globaltimer`` nanoseconds at the first instruction; the SM."""
_MOST = 4096
"""Maximum number of recorded blocks."""
_NEVER = (1 << 64) - 1
_GLOBAL = "block_clocks"


def prologue_kernel(size: int) -> Choice:
    """Return the kernel of a GEMM with M = N = K = ``size``."""
    return chain_kernels(size)[0]


def with_clocks(ptx: str) -> str:
    """Insert counters into the PTX of a kernel, for the first threads of the producer and of the first consumer.

    >>> text = ".address_size 64\\n.visible .entry f(\\n)\\n{\\n\\twgmma.mma_async x;\\n\\tret;\\n}\\n"
    >>> [line.strip() for line in with_clocks(text).splitlines() if "+16]" in line]
    ['@%at_consumer red.global.min.u64 [%at+16], %at_now;']
    """
    size = 8 * len(FIELDS)
    head = f""".reg .b64 %at, %at_base, %at_now; .reg .b32 %at_x, %at_block; .reg .pred %at_consumer, %at_first;
mov.u64 %at_now, %clock64; mov.u32 %at_x, %tid.x; mov.u32 %at_block, %ctaid.x;
setp.eq.u32 %at_consumer, %at_x, 128; setp.eq.u32 %at_first, %at_x, 0;
mul.wide.u32 %at, %at_block, {size}; mov.u64 %at_base, {_GLOBAL}; add.s64 %at, %at, %at_base;
@%at_first st.global.u64 [%at], %at_now; mov.u64 %at_now, %globaltimer;
@%at_first st.global.u64 [%at+{8 * FIELDS.index("time")}], %at_now; mov.u32 %at_x, %smid; cvt.u64.u32 %at_now, %at_x;
@%at_first st.global.u64 [%at+{8 * FIELDS.index("sm")}], %at_now;
"""

    def noted(field: str, how: str, thread: str) -> str:
        at = 8 * FIELDS.index(field)
        return f"mov.u64 %at_now, %clock64;\n{thread} red.global.{how}.u64 [%at+{at}], %at_now;\n"

    start = ptx.index("{\n", ptx.index(".entry")) + 2
    before, body = ptx[:start], ptx[start:]
    load = noted("load", "min", "")  # Only one thread issues loads.
    body = re.sub(r"(?m)^(.*\bcp\.async\.bulk\.tensor\S*shared)", lambda m: load + m[1], body)
    wgmma = noted("wgmma", "min", "@%at_consumer")
    body = re.sub(r"(?m)^(\s*)(wgmma\.mma_async)", lambda m: m[1] + wgmma + m[1] + m[2], body)
    body = re.sub(r"(?m)^(\s*)ret;", lambda m: noted("end", "max", "@%at_consumer") + m[0], body)
    declared = f".visible .global .align 8 .b64 {_GLOBAL}[{_MOST * len(FIELDS)}];\n"
    return re.sub(r"(?m)^(\.address_size.*)$", lambda m: f"{m[1]}\n{declared}", before, count=1) + head + body


def build_prologue(folder: str, chip: str) -> list[str]:
    found = {c.name: c for c in map(prologue_kernel, PROLOGUE_SIZES)}
    return in_processes(_build_one, [(c, folder, chip) for c in found.values()], list(found))


def _build_one(job: tuple[Choice, str, str]) -> str:
    """Compile a kernel and assemble it with counters."""
    choice, folder, chip = job
    text = plain_text(choice)
    artifact = compile_cute(text, chip=chip, filename=f"{choice.name}.mlir").artifact
    (code,) = artifact.code
    ptx = with_clocks(code.ptx)
    done = assemble(ptx, chip)
    code = code._replace(ptx=ptx, cubin=done.cubin, ptxas=done.to_json(), report=done.report())
    save_artifact(artifact._replace(code=(code,)), os.path.join(folder, choice.name))
    return f"{choice.name}: {done.report().strip().splitlines()[-1]}"


def run_prologue(folder: str, *, runs: int, large: bool, say: Say) -> dict[str, object]:
    import torch

    rows: list[Row] = []
    for size in track(PROLOGUE_SIZES, "measuring", "sizes"):
        torch.manual_seed(0)
        a, b = (normal("f16", size, size) for _ in range(2))
        c = torch.full_like(a, float("nan"))
        choice = prologue_kernel(size)
        module = loaded(folder, choice.name)
        runner = Runner(choice, module)
        runner(a, b, c)
        wanted = a.double() @ b.double().t()
        check_limit(f"prologue {size}", c, wanted, 2**-9 * float(wanted.abs().max()))
        noted = [_noted(module, lambda run=runner, of=(a, b, c): run(*of)) for _ in range(runs)]
        found = medians(noted)
        for what, us in found.items():
            rows.append(
                {
                    "name": f"{size} to {what}",
                    "kernel": choice.name,
                    "ours": us,
                    "peer": None,
                    "unit": "us",
                    "ratio": None,
                }
            )
        say(f"  {size} {choice.name}: " + ", ".join([f"{field} {us:.2f} us" for field, us in found.items()]))
    return {"rows": rows}


def medians(noted: Sequence[NDArray[Any]]) -> dict[str, float]:
    """Return the microseconds from a block's first instruction to its first load, first ``wgmma`` and end.

    They are medians over blocks and launches.  Each array is (blocks, FIELDS).  The SM clock is derived
    from consecutive launches.

    >>> import numpy as np
    >>> medians([np.array([[t, t + 200, t + 400, t + 2000, t // 2, 3]], np.uint64) for t in (0, 10**6)])
    {'load': 0.1, 'wgmma': 0.2, 'end': 1.0}
    """
    first, last = ({int(x[5]): x for x in launch} for launch in (noted[0], noted[-1]))
    rates = [
        (float(last[sm][0]) - float(x[0])) / (float(last[sm][4]) - float(x[4])) for sm, x in first.items() if sm in last
    ]
    clock = statistics.median(rates) * 1e3  # cycles per microsecond
    blocks = [x for launch in noted for x in launch]
    return {
        field: round(statistics.median([float(x[i] - x[0]) for x in blocks]) / clock, 3)
        for i, field in enumerate(FIELDS)
        if field in ("load", "wgmma", "end")
    }


def _noted(module: Any, launch: Callable[[], object]) -> NDArray[Any]:
    """Return the records of the blocks of a launch, (blocks, FIELDS)."""
    import torch

    gpu = driver.driver()
    address = gpu.get_variable(module.driver_module(0), _GLOBAL)
    values = np.full((_MOST, len(FIELDS)), _NEVER, np.uint64)
    values[:, FIELDS.index("end")] = 0
    gpu.to_device(address, values.ctypes.data, values.nbytes)
    launch()
    torch.cuda.synchronize()
    gpu.to_host(values.ctypes.data, address, values.nbytes)
    return values[values[:, 0] != _NEVER]


# ---------------------------------------------------------------------------------------------------------------- power


ENERGY_PROBLEM = Problem(8192, 8192, 8192)
SECONDS = 1.2
_CONFIG = GemmConfig()
_SWAPPED = _CONFIG._replace(major_c="m", major_a="k", major_b="k")
ENERGY_KERNELS = tuple(
    Choice(config)
    for config in (
        _CONFIG,  # 128x256 tile, B is multicast to two blocks
        _CONFIG._replace(cluster_m=1),
        _CONFIG._replace(cluster_m=1, cluster_n=2),
        _CONFIG._replace(group=4),
        _CONFIG._replace(group=16),
        _CONFIG._replace(deferred=False),
        _SWAPPED,
        _CONFIG._replace(tile=(128, 224, 64)),
        _CONFIG._replace(tile=(128, 192, 64), cluster_m=2, cluster_n=2),
        _CONFIG._replace(tile=(128, 192, 64), cluster_m=4),
        _CONFIG._replace(tile=(128, 128, 64), cluster_m=2, cluster_n=2, stages=6),
        _CONFIG._replace(tile=(256, 128, 64), deferred=False),
    )
)
"""Variants with more or less data sharing: clusters, tiles, tile order, time of the stores."""


def build_energy(folder: str, chip: str) -> list[str]:
    return build_choices(ENERGY_KERNELS, folder, chip)


def run_energy(folder: str, *, runs: int, large: bool, say: Say) -> dict[str, object]:
    a, b, c = inputs(ENERGY_PROBLEM, integers=False)
    peer, _ = peer_of(ENERGY_PROBLEM, a, b)
    m, n, k = ENERGY_PROBLEM[:3]
    flop = 2.0 * m * n * k
    steady_load(peer, flop, SECONDS)  # Warm up, so that leakage is equal for all kernels.
    found = {"torch": steady_load(peer, flop, SECONDS)}
    for choice in track(ENERGY_KERNELS, "measuring", "kernels"):
        runner = runner_of(folder, choice)
        check(runner, (1024, 1024, 1024), integers=True, repeats=2)
        time.sleep(0.3)
        found[choice.name] = steady_load(lambda runner=runner: runner(a, b, c), flop, SECONDS)
        say(f"  {choice.name}: {found[choice.name]}")
    peers = found["torch"]["TFLOP/s"]
    rows = [
        row(
            f"gemm f16 {m}x{n}x{k}", "TFLOP/s", x["TFLOP/s"], peers, kernel=name, W=x["W"], MHz=x["MHz"],
            **{"pJ/FLOP": x["W"] / x["TFLOP/s"]},
        )
        for name, x in found.items()
    ]  # fmt: skip
    return {"rows": rows}


BENCHMARKS = {
    "gemm_skinny": Benchmark(build_skinny, run_skinny),
    "chain": Benchmark(build_chain, run_chain),
    "prologue": Benchmark(build_prologue, run_prologue),
    "energy": Benchmark(build_energy, run_energy),
}
