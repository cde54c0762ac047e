"""Benchmarks of the compiler, which need no GPU: ``cute-bench opt``, ``choose``, ``algebra``, ``interp`` and ``lang``.

``opt`` gives the median and minimum run time of ``cute-opt``, each run in a new process:

* ``start``: parse, verify and print a file with one function;
* ``passes``: the same file through ``cute-fold-static``, ``cute-expand-ops``, ``cute-to-base``;
* ``ptx``: ``test/examples/elementwise_add.mlir`` and the Hopper GEMM, text to PTX; the GEMM example has a second kernel
  for matrices that TMA does not support; ``warm``: the same in a warm process, without the cache;
* ``large``: files of 2,500, 5,000 and 10,000 ops through the three passes, to check that time is linear in size;
* ``import xdsl.parser`` and ``import mlir.ir`` alone, for comparison.

``choose`` gives the user time in microseconds of kernel selection for the problems of ``gemm --random``, by element
type and layout: the first selection in a process, which builds the menu of kernels; the first selection for each
problem, which takes the kernel with the lowest predicted time (:func:`cute_dialect.op.select.cost_model.best`); and
ranking the whole menu.

``algebra`` gives CPU microseconds per call of the eager layout algebra, the best of several rounds over the same
inputs.  Each call gets a new random layout, so that nothing is memoized.  It is compared with ``pycute``
(``pip install --no-deps nvidia-cutlass``, BSD-3) and ``tensor-layouts`` if they are installed.

``interp`` gives the speed of the CPU interpreter with and without checks, the best of several runs in CPU seconds
without compilation.  A lane-op is one op of the lowered kernel for one thread; a wgmma or a TMA copy counts as one.

``lang`` gives the median and minimum costs of the kernel language.  It needs torch and the ``examples`` folder:

* ``import``: ``import cute_dialect.lang as cute`` and the use of a name, in a new process, without the start of Python;
* ``decorate``: ``@cute.kernel`` on a function;
* ``trace``: ``examples/elementwise_add.py`` and the Hopper GEMM, in a warm process;
* ``to PTX``: the same, compiled to PTX without the disk cache;
* ``from disk``: the first call in a new process that finds its code in the disk cache, measured after ``import torch``
  (without a GPU: until the code is loaded);
* ``call``, ``bound``: with three torch tensors (without a GPU only ``call``, on the interpreter); also of a method,
  with tensors of ``from_dlpack``, with a tuple, and of a function that reads a global dict;
* ``row sum``: ``examples/row_sum.py`` compared with ``torch.sum``, on the GPU, and the host time of a call;
* with ``--long``: 10,000 compilations of one function, and the growth of the process after the first 1,000.
"""

# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false, reportMissingTypeStubs=false
# pyright: reportUnknownArgumentType=false, reportMissingModuleSource=false

from __future__ import annotations

import os
import runpy
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from random import Random
from statistics import mean, median
from time import perf_counter, process_time_ns
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

import cute_dialect.lang as cute
from cute_dialect.algebra import complements, compose, evaluation, inverses, layout, tiling
from cute_dialect.algebra.values import Layout, raw_layout
from cute_dialect.kernels.copies.transpose import transpose_text
from cute_dialect.kernels.elementwise.add import elementwise_add_text
from cute_dialect.kernels.gemm import gemm_text
from cute_dialect.kernels.gemm.ampere import ampere_gemm_text
from cute_dialect.kernels.gemm.config import GemmConfig
from cute_dialect.kernels.gemm.sgemm import sgemm_text
from cute_dialect.lang.calls.compiled import compile_traced
from cute_dialect.lang.calls.options import Options
from cute_dialect.lang.calls.specializations import read_call
from cute_dialect.op.select import candidates as menus
from cute_dialect.op.select import cost_model
from cute_dialect.op.select.kernel_choice import Problem
from cute_dialect.op.select.timing import compare, host_overhead
from cute_dialect.pipelines import compile as compile_cute
from cute_dialect.runtime.progress import Task, track
from cute_dialect.tools.bench.cases.gemm import of_menu, random_problems
from cute_dialect.tools.bench.runner import Benchmark, Row, Say, column_table

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.interp import RunReport
    from cute_dialect.runtime.launch import Kernel


# ------------------------------------------------------------------------------------------------------------- cute-opt


ONE = """\
func.func @g(%a: !cute.layout<"(?,8):(8,1)">, %c: !cute.coord<"(?,3)">) -> !cute.int_tuple<"?"> {
  %i = cute.layout_eval(%c, %a) : (!cute.coord<"(?,3)">, !cute.layout<"(?,8):(8,1)">) -> !cute.int_tuple<"?">
  return %i : !cute.int_tuple<"?">
}
"""
PASSES = ("--cute-fold-static", "--cute-expand-ops", "--cute-to-base")


def large_file(n: int) -> str:
    """Return a function of ``n`` ops: evaluation, division, size, and arithmetic on the results."""
    layout, coord = '!cute.layout<"(?,8):(8,1)">', '!cute.coord<"(?,3)">'
    head = f'func.func @f(%l: {layout}, %c: {coord}, %s: !cute.shape<"(4,2)">, %x: i32) -> i32 {{'
    divided = '!cute.layout<"((4,2),(?,4)):((8,1),(32,2))">'
    lines = [head]
    last = "%x"
    for i in range(n // 5):
        lines += [
            f'  %a{i} = cute.layout_eval(%c, %l) : ({coord}, {layout}) -> !cute.int_tuple<"?">',
            f'  %b{i} = cute.zipped_divide(%l, %s) : ({layout}, !cute.shape<"(4,2)">) -> {divided}',
            f'  %d{i} = cute.size (%b{i}) : ({divided}) -> !cute.int_tuple<"?">',
            f'  %e{i} = cute.get_scalars (%d{i}) : !cute.int_tuple<"?">',
            f"  %g{i} = arith.addi %e{i}, {last} : i32",
        ]
        last = f"%g{i}"
    return "\n".join([*lines, f"  return {last} : i32", "}", ""])


def timed(command: Sequence[str], runs: int) -> tuple[float, float]:
    """Return the median and minimum seconds of a command.  Raises ``CalledProcessError`` if it fails."""
    times: list[float] = []
    for _ in range(runs + 1):
        start = perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        times.append(perf_counter() - start)
    return median(times[1:]), min(times[1:])  # The first run fills the file system caches.


def warm(text: str, runs: int) -> tuple[float, float]:
    """Return the median and minimum seconds from text to PTX in this warm process."""
    times: list[float] = []
    for _ in range(runs + 1):
        start = perf_counter()
        compile_cute(text, emit="ptx", cache=False)
        times.append(perf_counter() - start)
    return median(times[1:]), min(times[1:])


def run_opt(*, runs: int, say: Say) -> dict[str, object]:
    """Measure all cases and return the rows."""
    opt = [sys.executable, "-m", "cute_dialect.tools.cute_opt"]
    examples = Path(__file__).resolve().parents[3] / "test" / "examples"
    rows: list[Row] = []

    def row(name: str, command: Sequence[str], count: int) -> None:
        add(name, timed(command, count), count)

    def add(name: str, seconds: tuple[float, float], count: int) -> None:
        say(f"  {name}: {seconds[0]:.3f} s, least {seconds[1]:.3f} s")
        rows.append({"name": name, "seconds": seconds[0], "least": seconds[1], "runs": count})
        task.advance(name=name)

    total = 12 if examples.exists() else 9
    with tempfile.TemporaryDirectory() as folder, Task("measuring", total, "programs") as task:
        one = Path(folder) / "one.mlir"
        one.write_text(ONE)
        row("import xdsl.parser", [sys.executable, "-c", "import xdsl.parser"], runs)
        row("import mlir.ir", [sys.executable, "-c", "import mlir.ir"], runs)
        row("start: one function", [*opt, str(one)], runs)
        row("passes: one function", [*opt, str(one), *PASSES], runs)
        gemm = Path(folder) / "gemm.mlir"
        gemm.write_text(gemm_text(GemmConfig()))
        to_ptx = ["--pipeline", "--emit=ptx"]
        if examples.exists():
            row("ptx: elementwise_add", [*opt, str(examples / "elementwise_add.mlir"), *to_ptx], runs)
        row("ptx: Hopper GEMM", [*opt, str(gemm), *to_ptx], runs)
        if examples.exists():
            row("ptx: Hopper GEMM with its fallback", [*opt, str(examples / "gemm_sm90.mlir"), *to_ptx], runs)
            add("warm: elementwise_add", warm((examples / "elementwise_add.mlir").read_text(), runs), runs)
        add("warm: Hopper GEMM", warm(gemm.read_text(), runs), runs)
        for n in (2500, 5000, 10000):
            path = Path(folder) / f"large{n}.mlir"
            path.write_text(large_file(n))
            row(
                f"large: {n} ops, three passes",
                [*opt, str(path), *PASSES, "-o", str(Path(folder) / "out")],
                max(1, runs // 5),
            )
    return {"rows": rows}


# -------------------------------------------------------------------------------------------------------- kernel choice


_PROBLEMS = 160


def run_choose(*, runs: int, say: Say) -> dict[str, object]:
    """Measure each selection ``runs`` times and return the minimum times."""
    kinds: dict[str, list[Problem]] = {}
    for p in map(of_menu, random_problems(_PROBLEMS, 1)):
        for q in (p, p._replace(matrices=16)):
            batch = " batches" if q.matrices > 1 else ""
            kinds.setdefault(f"{q.element}-{q.output}-{q.major_a}{q.major_b}{batch}", []).append(q)
    rows: list[Row] = []
    for kind, found in track(sorted(kinds.items()), "measuring", "kinds"):
        first = min(_first(found[0]) for _ in range(runs))
        each = [_least(lambda p=p: cost_model.best.__wrapped__(p), runs) for p in found]
        whole = [_least(lambda p=p: cost_model.ranked(p), runs) for p in found]
        kernels = len(menus.menu(found[0]))
        row: Row = {
            "kind": kind, "kernels": kernels, "first": first, "mean": mean(each), "longest": max(each),
            "all": mean(whole),
        }  # fmt: skip
        rows.append(row)
    longest = max(cast(float, r["longest"]) for r in rows)
    say(f"  {len(rows)} kinds; the longest selection took {longest:.0f} us")
    return {"rows": rows}


def _first(problem: Problem) -> float:
    for module in (cost_model, menus):
        module.forget()
    return _time(lambda: cost_model.best(problem))


def _least(work: Callable[[], object], runs: int) -> float:
    return min(_time(work) for _ in range(runs))


def _time(work: Callable[[], object]) -> float:
    begin = process_time_ns()
    work()
    return (process_time_ns() - begin) / 1e3


# ------------------------------------------------------------------------------------------------------- layout algebra


# The other packages may be missing when types are checked.


PEERS = ("pycute", "tensor_layouts")
INPUTS = 1000


def random_nested(rng: Random) -> Layout:
    """Return a random compact layout of rank 2 and depth 2, similar to tiles and thread-value layouts."""
    extents = [rng.choice([2, 4, 8]) for _ in range(4)]
    order = list(range(4))
    rng.shuffle(order)
    strides, p = [0] * 4, 1
    for i in order:
        strides[i] = p
        p *= extents[i]
    a, b, c, d = strides
    return raw_layout(((extents[0], extents[1]), (extents[2], extents[3])), ((a, b), (c, d)))


def rearranged(rng: Random, a: Layout) -> Layout:
    """Return a random layout of the same size that can be composed with ``a``."""
    n = evaluation.size(a)
    assert type(n) is int
    extents = [2, 2, 4, n // 16]
    order = list(range(4))
    rng.shuffle(order)
    starts = [1, 2, 4, 16]
    s = [extents[i] for i in order]
    d = [starts[i] for i in order]
    return raw_layout(((s[0], s[1]), (s[2], s[3])), ((d[0], d[1]), (d[2], d[3])))


def cpu_us(f: Callable[..., object], inputs: list[tuple[object, ...]], rounds: int) -> float:
    """Return the CPU microseconds per call of the best round."""
    best = float("inf")
    for _ in range(rounds):
        start = time.process_time()
        for operands in inputs:
            f(*operands)
        best = min(best, time.process_time() - start)
    return best / len(inputs) * 1e6


class Function(NamedTuple):
    """A function, the equivalents by package (a name, or a callable over the package), and the inputs."""

    name: str
    ours: Callable[..., object]
    peers: dict[str, str]
    inputs: list[tuple[object, ...]]


def functions() -> list[Function]:
    """Return the cases."""
    rng = Random(0)
    layouts = [random_nested(rng) for _ in range(INPUTS)]
    pairs: list[tuple[object, ...]] = [(a, rearranged(rng, a)) for a in layouts]
    tiles: list[tuple[object, ...]] = [
        (raw_layout((16, 32), rng.choice([(1, 16), (32, 1)])), (4, 8)) for _ in range(INPUTS)
    ]
    nested: list[tuple[object, ...]] = [(a, (rng.choice([2, 4]), rng.choice([2, 4]))) for a in layouts]
    gaps: list[tuple[object, ...]] = [
        (raw_layout((2, (2, 3)), (4 * k, (1, 24 * k))), 144 * k) for k in (rng.randrange(1, 50) for _ in range(INPUTS))
    ]
    indices: list[tuple[object, ...]] = [(rng.randrange(200), a) for a in layouts]
    singles: list[tuple[object, ...]] = [(a,) for a in layouts]
    same: dict[str, dict[str, str]] = {
        name: dict.fromkeys(PEERS, name) for name in ("zipped_divide", "complement", "right_inverse")
    }
    return [
        Function("composition", compose.composition, {"pycute": "composition", "tensor_layouts": "compose"}, pairs),
        Function("zipped_divide, flat modes", tiling.zipped_divide, same["zipped_divide"], tiles),
        Function("zipped_divide, nested modes", tiling.zipped_divide, same["zipped_divide"], nested),
        Function("complement", complements.complement, same["complement"], gaps),
        Function("right_inverse", inverses.right_inverse, same["right_inverse"], singles),
        Function("left_inverse", inverses.left_inverse, dict.fromkeys(PEERS, "left_inverse"), singles),
        Function("coalesce", layout.coalesce, dict.fromkeys(PEERS, "coalesce"), singles),
        Function("evaluate", evaluation.evaluate, dict.fromkeys(PEERS, "()"), indices),
        Function("cosize", evaluation.cosize, dict.fromkeys(PEERS, "cosize"), singles),
    ]


def _peer_call(peer: object, name: str) -> Callable[..., object]:
    if name == "()":
        return lambda c, a: a(c)
    return getattr(peer, name)


def run_algebra(*, runs: int, say: Say) -> dict[str, object]:
    """Measure all cases; return the rows and the installed packages."""
    peers: dict[str, object] = {}
    for name in PEERS:
        try:
            peers[name] = import_module(name)
        except ImportError:
            say(f"  {name} is not installed and not compared")
    rows: list[Row] = []
    for case in track(functions(), "measuring", "functions"):
        row: dict[str, object] = {"name": case.name, "ours": cpu_us(case.ours, case.inputs, runs)}
        for peer_name, peer in peers.items():
            make: Callable[..., object] = peer.Layout  # pyright: ignore[reportAttributeAccessIssue]
            theirs = [
                tuple([make(x.shape, x.stride) if isinstance(x, Layout) else x for x in operands])
                for operands in case.inputs
            ]
            row[peer_name] = cpu_us(_peer_call(peer, case.peers[peer_name]), theirs, runs)
        rows.append(row)
    return {"peers": list(peers), "unit": "us per call", "rows": rows}


def algebra_table(result: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Return the header and the rows of the table."""
    peers, rows = result["peers"], result["rows"]
    assert isinstance(peers, list) and isinstance(rows, list)
    head = ("us per call", "ours", *[x for p in peers for x in (str(p), "ratio")])
    out: list[tuple[str, ...]] = [head]
    for r in rows:
        cells = [str(r["name"]), f"{r['ours']:.2f}"]
        for p in peers:
            cells += [f"{r[p]:.2f}", f"{r[p] / r['ours']:.1f}"]
        out.append(tuple(cells))
    return out


# ---------------------------------------------------------------------------------------------------------- interpreter


MODES: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("plain", (), ()),
    ("race", ("race", "uninit"), ()),
    ("reports", (), ("banks", "coalescing")),
)


class Kernel_(NamedTuple):
    """A kernel file, its kernel or host function, its arrays, and the number of 128x128x64 GEMM tile steps."""

    name: str
    text: Callable[[], str]
    kernel: str
    arrays: Callable[[], list[np.ndarray]]
    steps: int = 0


def _random(*shapes: tuple[int, int], dtype: type = np.float16) -> Callable[[], list[np.ndarray]]:
    def make() -> list[np.ndarray]:
        rng = np.random.default_rng(0)
        return [rng.integers(-3, 4, s).astype(dtype) for s in shapes]

    return make


_SM90 = GemmConfig(tile=(128, 128, 64), cluster_m=1, deferred=False)
KERNELS = (
    Kernel_("elementwise add, f32 1024x1024", elementwise_add_text, "", _random(*[(1024, 1024)] * 3, dtype=np.float32)),
    Kernel_("transpose, f32 512x512", transpose_text, "launch", _random((512, 512), (512, 512), dtype=np.float32)),
    Kernel_(
        "SGEMM, shared memory, 128x128x64",
        partial(sgemm_text, "smem"),
        "launch",
        _random((128, 64), (64, 128), (128, 128), dtype=np.float32),
    ),
    Kernel_("GEMM sm_80, f16 128x128x128", ampere_gemm_text, "launch", _random((128, 128), (128, 128), (128, 128))),
    Kernel_(
        "GEMM sm_90, f16 128x128x256 (one block)",
        partial(gemm_text, _SM90),
        "launch",
        _random((128, 256), (128, 256), (128, 128)),
        4,
    ),
    Kernel_(
        "GEMM sm_90, f16 512x512x256 (16 blocks)",
        partial(gemm_text, _SM90),
        "launch",
        _random((512, 256), (512, 256), (512, 512)),
        64,
    ),
)


def _compiled(case: Kernel_) -> Kernel:
    module = compile_cute(case.text(), emit="base")
    names = [h["name"] for h in module.manifest["hosts"]]
    return module.kernel(case.kernel or names[0])


def run_interp(*, runs: int, say: Say, cases: Sequence[Kernel_] = KERNELS) -> dict[str, object]:
    """Measure each kernel in each mode."""
    rows: list[Row] = []
    for case in track(cases, "measuring", "kernels"):
        say(f"  {case.name}")
        kernel = _compiled(case)
        for mode, checks, reports in MODES:
            best: RunReport | None = None
            for _ in range(max(1, min(runs, 3))):
                arrays = case.arrays()
                started = time.process_time()
                report = kernel(*arrays, device="cpu", checks=checks, reports=reports)
                assert report is not None
                report.seconds = time.process_time() - started
                if best is None or report.seconds < best.seconds:
                    best = report
            assert best is not None
            rows.append(
                {
                    "name": case.name,
                    "mode": mode,
                    "seconds": best.seconds,
                    "blocks": best.blocks,
                    "lanes": best.lanes,
                    "lane_ops": best.lane_ops,
                    "lane_ops_per_second": best.lane_ops / best.seconds,
                    "ms_per_tile_step": 1e3 * best.seconds / case.steps if case.steps else None,
                }
            )
    return {"rows": rows}


# --------------------------------------------------------------------------------------------------------- the language


# torch may be missing when types are checked, and the examples are imported by path.


EXAMPLES = Path(__file__).resolve().parents[3] / "examples"

IMPORT = """\
from time import perf_counter
start = perf_counter()
import cute_dialect.lang as cute
cute.jit, cute.Int32
print(perf_counter() - start)
"""

FROM_DISK = """\
import runpy, sys
from time import perf_counter
import torch
n, device = 64, sys.argv[2]
x, y, z = (torch.ones(n, n, device=device) for _ in range(3))
start = perf_counter()
import cute_dialect.lang as cute
add = runpy.run_path(sys.argv[1])["elementwise_add"]
if device == "cuda":
    add(x, y, z)
else:
    cute.compile(add, x, y, z, chip="sm_90a").compiled_module
print(perf_counter() - start)
"""


def run_lang(*, runs: int, say: Say, long: bool = False) -> dict[str, object]:
    """Measure all costs and return the rows.  Raises ``FileNotFoundError`` without the examples of the repository."""
    with Task("measuring", unit="times") as task:
        return _run_lang(task, runs, say, long)


def _run_lang(task: Task, runs: int, say: Say, long: bool) -> dict[str, object]:
    import torch

    if not EXAMPLES.is_dir():
        raise FileNotFoundError(f"cute-bench lang needs the examples of the repository; {EXAMPLES} does not exist")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    rows: list[Row] = []

    def add(name: str, seconds: list[float], limit: float | None = None) -> None:
        row: dict[str, object] = {
            "name": name,
            "seconds": median(seconds),
            "least": min(seconds),
            "limit": limit,
            "runs": len(seconds),
        }
        rows.append(row)
        say(f"  {name}: {1e3 * median(seconds):.4g} ms")
        task.advance(name=name)

    add("import", [_process("-c", IMPORT) for _ in range(runs)], 0.080)
    add("decorate", _times(_decorate, runs))
    kinds = {"elementwise": _elementwise(device), "Hopper GEMM": _gemm(device)}
    for name, limit in (("elementwise", 0.008), ("Hopper GEMM", 0.040)):
        add(f"trace: {name}", _times(kinds[name][0], runs), limit)
    for name, limit in (("elementwise", 0.25), ("Hopper GEMM", 0.45)):
        add(f"to PTX: {name}", _times(kinds[name][1], min(runs, max(3, runs // 2))), limit)
    with tempfile.TemporaryDirectory() as folder:
        again = ["-c", FROM_DISK, str(EXAMPLES / "elementwise_add.py"), device]
        # Like an installed package, the process finds compiled bytecode.
        kept = {"CUTE_CACHE_DIR": folder, "PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": f"{folder}/python"}
        _process(*again, **kept)
        _process(*again, **kept)
        add("from disk", [_process(*again, **kept) for _ in range(min(runs, max(3, runs // 2)))], 0.060)
    _calls(device, add, runs)
    result: dict[str, object] = {"rows": rows, "device": device}
    if long:
        result["growth"] = growth(10_000, say)
    return result


def _process(*arguments: str, **environment: str) -> float:
    """Run Python and return the seconds that it prints."""
    done = subprocess.run(
        [sys.executable, *arguments], check=True, capture_output=True, text=True, env={**os.environ, **environment}
    )
    return float(done.stdout.split()[-1])


def _times(work: Callable[[], object], runs: int) -> list[float]:
    work()
    times: list[float] = []
    for _ in range(runs):
        start = perf_counter()
        work()
        times.append(perf_counter() - start)
    return times


def _decorate() -> None:
    def kernel(x: object) -> None:
        """Do nothing."""

    cute.kernel(kernel)


def _elementwise(device: str) -> tuple[Callable[[], object], Callable[[], object]]:
    import torch

    add = runpy.run_path(str(EXAMPLES / "elementwise_add.py"))["elementwise_add"]
    return _stages(add, tuple(torch.ones(256, 256, device=device) for _ in range(3)), receiver=False)


def _gemm(device: str) -> tuple[Callable[[], object], Callable[[], object]]:
    import torch

    gemm = runpy.run_path(str(EXAMPLES / "gemm_sm90.py"))["HopperGemm"]()
    matrices = tuple(torch.ones(256, 256, device=device, dtype=torch.float16) for _ in range(3))
    return _stages(type(gemm).__call__, (gemm, *matrices), receiver=True)


def _stages(
    traced: Any, arguments: tuple[Any, ...], *, receiver: bool
) -> tuple[Callable[[], object], Callable[[], object]]:
    """Return a function that traces, and one that compiles to PTX."""
    options = Options("sm_90a", cache=False)

    def trace() -> Any:
        traced.table.clear()
        return traced.table.find(read_call(traced, arguments, {}, receiver=receiver), options)

    return trace, lambda: compile_traced(trace().program.module, options, "ptx")


def _calls(device: str, add: Callable[..., None], runs: int) -> None:
    """Measure calls with three torch tensors, and the row sum compared with torch."""
    import torch

    kernel = runpy.run_path(str(EXAMPLES / "elementwise_add.py"))["elementwise_add"]
    x, y, z = (torch.ones(16, 128, device=device) for _ in range(3))
    compiled = cute.compile(kernel, x, y, z, device=device)
    if device == "cpu":
        add("call: on the interpreter", _times(lambda: compiled(x, y, z), runs))
        return

    def host(call: Callable[[], object]) -> list[float]:
        call()
        return [1e-6 * host_overhead(call, calls=200, rounds=1) for _ in range(50)]

    add("call: three tensors", host(lambda: compiled(x, y, z)), 4.5e-6)
    add("call: of the function itself", host(lambda: kernel(x, y, z)), 4.5e-6)
    for name, call in _other_calls(kernel, x, y, z).items():
        add(f"call: {name}", host(call), 6e-6)
    add("bound call", host(compiled.bind(x, y, z)), 3.3e-6)
    row_sum = runpy.run_path(str(EXAMPLES / "row_sum.py"))["row_sum"]
    x, out = torch.randn(1024, 1024, device=device), torch.empty(1024, device=device)
    ours = cute.compile(row_sum, x, out)
    peers = [("ours", lambda: ours(x, out)), ("torch.sum", lambda: torch.sum(x, 1, out=out))]
    for name, call in peers:
        call()
        torch.testing.assert_close(out.double(), x.double().sum(1), rtol=1e-4, atol=1e-3)
        add(f"row sum 1024x1024, a call's host time: {name}", host(call))
    for name, sample in compare(peers, traffic=4 * x.numel()).items():
        add(f"row sum 1024x1024, on the GPU: {name}", [1e-6 * sample.median])


def _other_calls(add: Any, x: Any, y: Any, z: Any) -> dict[str, Callable[[], object]]:
    """Return calls with arguments that are unpacked, or with captured values that must be checked."""

    class Adder:
        def __init__(self) -> None:
            self.tile = (128, 128, 64)
            self.stages = 4
            self.dtype = cute.Float32

        @cute.jit
        def __call__(self, x: cute.Tensor, y: cute.Tensor, z: cute.Tensor) -> None:
            add(x, y, z)

    @cute.jit
    def contained(arrays: Any) -> None:
        add(*arrays)

    @cute.jit
    def configured(x: cute.Tensor, y: cute.Tensor, z: cute.Tensor) -> None:
        assert config["tile"][0] == 128
        add(x, y, z)

    config: dict[str, Any] = {"tile": [128, 128], "stages": 4}
    adder, wrapped = Adder(), [cute.from_dlpack(t) for t in (x, y, z)]
    return {
        "a method": lambda: adder(x, y, z),
        "tensors of from_dlpack": lambda: add(*wrapped),
        "a tuple": lambda: contained((x, y, z)),
        "a function that names a dict": lambda: configured(x, y, z),
    }


def growth(count: int, say: Say) -> dict[str, object]:
    """Compile one function ``count`` times with different constants and return the growth of the process.

    ``bytes`` is the resident memory at the end minus that after the first tenth.
    """
    import torch

    add = runpy.run_path(str(EXAMPLES / "hello.py"))
    x = torch.ones(8)

    @cute.jit
    def shifted(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, number: cute.Constexpr[int]) -> None:
        add["add_kernel"](a, b, c).launch(grid=number, block=128)

    start, at = 0, perf_counter()
    for i in range(1, count + 1):
        cute.compile(shifted, x, x, x, i, device="cpu", cache=False)
        if i % max(1, count // 10) == 0:
            now = _resident()
            start = start or now
            say(f"  {i} compilations: {now / 2**20:.1f} MiB, {(perf_counter() - at) / i * 1e3:.1f} ms each")
    return {"count": count, "bytes": _resident() - start}


def _resident() -> int:
    """Return the resident memory of this process in bytes, after a garbage collection."""
    import gc

    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def lang_table(result: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Return the header and the rows of the table."""
    rows = cast("list[Row]", result["rows"])
    made = [
        (r["name"], _ms(r["seconds"]), _ms(r["least"]), _ms(r["limit"]) if r["limit"] is not None else "") for r in rows
    ]
    grown = cast("dict[str, int] | None", result.get("growth"))
    if grown is not None:
        made.append((f"{grown['count']} compilations: MiB more", f"{grown['bytes'] / 2**20:.1f}", "", ""))
    return [("what", "median ms", "least ms", "at most"), *made]


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.4g}"


BENCHMARKS = {
    "lang": Benchmark(None, run_lang, lang_table),
    "opt": Benchmark(
        None,
        run_opt,
        column_table(
            {
                "what": lambda r: r["name"],
                "median s": lambda r: f"{r['seconds']:.3f}",
                "least s": lambda r: f"{r['least']:.3f}",
            }
        ),
    ),
    "choose": Benchmark(
        None,
        run_choose,
        column_table(
            {
                "kind": lambda r: r["kind"],
                "kernels": lambda r: str(r["kernels"]),
                "first of a process, us": lambda r: f"{r['first']:.0f}",
                "first of a problem, us": lambda r: f"{r['mean']:.0f}",
                "longest": lambda r: f"{r['longest']:.0f}",
                "ranking all, us": lambda r: f"{r['all']:.0f}",
            }
        ),
    ),
    "algebra": Benchmark(None, run_algebra, algebra_table),
    "interp": Benchmark(
        None,
        run_interp,
        column_table(
            {
                "kernel": lambda r: r["name"],
                "mode": lambda r: r["mode"],
                "CPU s": lambda r: f"{r['seconds']:.2f}",
                "blocks": lambda r: str(r["blocks"]),
                "M lane-ops": lambda r: f"{r['lane_ops'] / 1e6:.2f}",
                "M lane-ops/s": lambda r: f"{r['lane_ops_per_second'] / 1e6:.2f}",
                "ms per 128x128x64": lambda r: "" if (x := r["ms_per_tile_step"]) is None else f"{x:.0f}",
            }
        ),
    ),
}
