"""Costs of the kernel language: ``cute-bench lang`` gives the median and minimum.

It needs torch and the ``examples`` folder:

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
# pyright: reportMissingModuleSource=false

from __future__ import annotations

import os
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any, cast

import cute_dialect.lang as cute
from cute_dialect.lang.calls.compiled import compile_traced
from cute_dialect.lang.calls.options import Options
from cute_dialect.lang.calls.specializations import read_call
from cute_dialect.op.select.timing import compare, host_overhead
from cute_dialect.runtime.progress import Task
from cute_dialect.tools.bench.runner import Benchmark, Row, Say

if TYPE_CHECKING:  # pragma: no cover
    pass


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
}
