"""Run time of ``cute-opt``: ``cute-bench opt`` gives the median and minimum, each run in a new process.

* ``start``: parse, verify and print a file with one function;
* ``passes``: the same file through ``cute-fold-static``, ``cute-expand-ops``, ``cute-to-base``;
* ``ptx``: ``test/examples/elementwise_add.mlir`` and the Hopper GEMM, text to PTX; the GEMM example has a second kernel
  for matrices that TMA does not support; ``warm``: the same in a warm process, without the cache;
* ``large``: files of 2,500, 5,000 and 10,000 ops through the three passes, to check that time is linear in size;
* ``import xdsl.parser`` and ``import mlir.ir`` alone, for comparison.
"""

# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false, reportMissingTypeStubs=false
# pyright: reportMissingModuleSource=false

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING

from cute_dialect.kernels.gemm import gemm_text
from cute_dialect.kernels.gemm.config import GemmConfig
from cute_dialect.pipelines import compile as compile_cute
from cute_dialect.runtime.progress import Task
from cute_dialect.tools.bench.runner import Benchmark, Row, Say, column_table

if TYPE_CHECKING:  # pragma: no cover
    pass


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


BENCHMARKS = {
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
}
