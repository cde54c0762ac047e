"""The ``cute-bench`` program: build, check and measure kernels; measure the compiler.

cute-bench opt                                   cute-opt: start-up, text to PTX, large files (no GPU)
cute-bench algebra                               the layout algebra compared with other packages (no GPU)
cute-bench interp                                the CPU interpreter: lane-ops per second (no GPU)
cute-bench gemm --batched                        batched GEMMs compared with torch.bmm
cute-bench energy                                power, clock and pJ per FLOP of large GEMM kernels
cute-bench chain                                 small GEMMs in sequence, with programmatic dependent launch
cute-bench prologue                              time from the start of a kernel to its first wgmma
cute-bench tune FILE:NAME                        tune a function decorated with @cute.autotune (--help: more)
cute-bench warps                                 tile sizes of mma.sync GEMMs for f64, tf32 and 8-bit types
cute-bench choose                                the time to choose a GEMM kernel (no GPU)
cute-bench attention --tune                      tiles, stages and schedules of attention compared with torch
cute-bench op --groups rows                      cute_dialect.op compared with torch and torch.compile
cute-bench op --random conv --seed 1             200 random problems: conv, rows, epilogue, attention or host
cute-bench op --random conv --count 9 --plan     small random problems, checked on the interpreter (no GPU)
cute-bench lang                                  the language: import, trace, compile, call (more with a GPU)
cute-bench elementwise_add --build DIR           compile; needs the compiler, no GPU
cute-bench elementwise_add --run DIR             check and measure; needs the driver and torch, no compiler
cute-bench elementwise_add                       both, in a temporary folder
cute-bench accuracy --run DIR                    errors against float64 of the kernels of "all", compared with torch
cute-bench all --run DIR --json results.json     all benchmarks: one table, one file
cute-bench elementwise_add --run DIR --json result.json
cute-bench gemm --fit --random 160 --seed 1 --json sweep.json    time many kernels on random problems (--build, --run)
cute-bench gemm --fit sweep.json                 fit the cost model of kernel selection to a sweep (no GPU)
cute-bench gemm --regret sweep.json              compare the selected kernels with the fastest of a sweep (no GPU)
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportMissingImports=false

from __future__ import annotations

import argparse
import datetime
import importlib.util
import os
import platform
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any, cast

from cute_dialect.pipelines.upstream import is_available
from cute_dialect.pipelines.upstream_error import UpstreamMissing
from cute_dialect.runtime.progress import reporting
from cute_dialect.tools.bench.options import CPU_CASES, OptionError, build_parser, check_options, tunes_gemm
from cute_dialect.tools.user_errors import report_user_error

__all__ = ["main"]

SAY = partial(print, flush=True)
"""Print a line at once, so that the last line identifies a kernel that hangs."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``cute-bench`` and return the exit status."""
    argv = sys.argv[1:] if argv is None else argv
    if argv[:1] == ["tune"]:
        return _module("tune").main(argv[1:])
    options = build_parser((__doc__ or "").partition("\n\n")[2]).parse_args(argv)
    try:
        with reporting(options.progress, options.progress_json):
            return _main(options, argv)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except Exception as e:
        if not report_user_error(e, "cute-bench"):
            raise
        return 1


def _main(options: argparse.Namespace, argv: Sequence[str]) -> int:
    check_options(options)
    if options.name in CPU_CASES:
        return _cpu_case(options)
    if options.fit is not None or options.regret is not None:
        return _sweep_case(options, argv)
    if options.name == "op" and options.random is not None:
        return _random_case(options, argv)
    return _gpu_case(options)


def _gpu_case(options: argparse.Namespace) -> int:
    """Build or run a benchmark, or both."""
    if options.tune and options.name not in ("gemm", "attention"):
        raise OptionError(f"--tune applies only to gemm and attention, got {options.name}")
    name, more = _module_of(options)
    case = _module(name if "." in name else f"cases.{name}")
    for group in options.groups or ():
        if group not in case.groups():
            raise OptionError(f"--groups: unknown group {group!r}; choose from {', '.join(case.groups())}")
    made = options.run if not options.build else None
    _require(compiles=made is None, measures=bool(options.run) or not options.build, made=made)
    folder = options.build or options.run or tempfile.mkdtemp(prefix="cute-bench-")
    if options.build or not options.run:
        for line in case.build(folder, options.chip, **more):
            print(line)
        if options.build and not options.run:
            return 0
    measured = case.run(folder, runs=options.runs, large=not options.no_large, say=SAY, **more)
    result = {"machine": _machine(), **measured}
    machine = result["machine"]
    if options.tune and name == "gemm_tune":
        print(f"saved: {case.save_best(result, machine['gpu'])}")
    title = f"{machine['gpu']}, torch {machine['torch']}: median times; the L2 cache is flushed if it matters"
    runner = _module("runner")
    lines = case.table(result) if hasattr(case, "table") else runner.row_table(result)
    runner.print_table(title, lines, left=3 if name == "elementwise_add" else 1)
    if options.name == "all":
        result = {"machine": machine, "date": _today(), "results": result["rows"]}
    return _finish(options, result)


def _module_of(options: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    """Return the name of the module of a GPU benchmark, and its further options."""
    if tunes_gemm(options):
        return "gemm_tune", {"shapes": options.shapes, "element": options.element or "f16"}
    if options.random is not None:
        return "random.gemm", {"count": options.random, "seed": options.seed or 0}
    if options.batched:
        return "gemm_batched", {"kernels": options.kernels or 1}
    more = {"attention": {"tune": options.tune}, "op": {"chosen": options.groups or ()}}
    return options.name, more.get(options.name, {})


def _module(name: str) -> Any:
    """Return a module of ``bench``, which is imported when it is used: it needs numpy, and compiles or measures."""
    return import_module(f"cute_dialect.tools.bench.{name}")


def _finish(options: argparse.Namespace, result: Mapping[str, object]) -> int:
    """Write the results and report wrong ones; return the exit status."""
    if options.json:
        _module("runner").write_json(options.json, result)
    wrong = cast("list[str]", result.get("wrong", []))
    for line in wrong:
        print(f"cute-bench: error: {line}", file=sys.stderr)
    return 1 if wrong else 0


def _random_case(options: argparse.Namespace, argv: Sequence[str]) -> int:
    """Run ``op --random``; return 1 if a result is wrong or a problem is rejected, else 0."""
    _require(compiles=True, measures=not options.plan)
    if options.plan and importlib.util.find_spec("torch") is None:
        raise OptionError("--plan needs torch (pip install torch); it does not need a GPU")
    count, seed, random = options.count or 200, options.seed or 0, _module("random")
    if options.plan:
        return _finish(options, random.plan(options.random, count, seed, SAY))
    measured = random.run(options.random, count, seed, runs=options.runs, say=SAY)
    return _finish(options, _dated(argv, measured))


def _sweep_case(options: argparse.Namespace, argv: Sequence[str]) -> int:
    """Run ``--fit`` or ``--regret`` and return the exit status."""
    if options.random is not None:
        return _make_sweep(options, argv)
    fit = _module("fit")
    if options.regret:
        return _finish(options, fit.regret(options.regret, costs=options.costs, say=print))
    more = {"costs": options.costs, "output": options.output, "command": _command(argv)}
    return _finish(options, fit.fit_files(options.fit, seed=options.seed or 0, say=SAY, **more))


def _make_sweep(options: argparse.Namespace, argv: Sequence[str]) -> int:
    """Build or time the kernels of a sweep, or both; return the exit status."""
    _require(compiles=not options.run, measures=not options.build, made=options.run)
    sweep, seed = _module("sweep"), options.seed or 0
    deadline = time.monotonic() + (options.budget or float("inf"))
    folder = options.run or options.build or tempfile.mkdtemp(prefix="cute-bench-")
    if options.run:
        plan = sweep.read_plan(folder, options.random, seed)
    else:
        costs = _module("fit").costs_to_build_for(options.costs, None if options.build else _gpu_and_sms())
        near = None if options.kernels == "all" else options.kernels or sweep.NEAR
        plan = sweep.plan(options.random, seed, costs, near)
        plan = sweep.build(folder, options.chip, plan, deadline=deadline, say=SAY)
        if options.build:
            return 0
    measured = sweep.run(folder, plan, runs=max(options.runs // 9, 7), deadline=deadline, say=SAY)
    _finish(options, _dated(argv, measured))
    SAY(f"to fit the cost model, run: cute-bench gemm --fit {options.json}")
    return 0


def _gpu_and_sms() -> tuple[str, int]:
    import torch

    return torch.cuda.get_device_name(0), torch.cuda.get_device_properties(0).multi_processor_count


def _today() -> str:
    return datetime.date.today().isoformat()


def _command(argv: Sequence[str]) -> str:
    return shlex.join(["cute-bench", *argv])


def _dated(argv: Sequence[str], measured: Mapping[str, object]) -> dict[str, object]:
    """Add the machine, the date and the command line to results."""
    return {"machine": _machine(), "date": _today(), "command": _command(argv), **measured}


def _cpu_case(options: argparse.Namespace) -> int:
    _require(compiles=options.name in ("opt", "lang"), measures=False)
    case = _module(f"cases.{options.name}")
    more = {"long": options.long} if options.name == "lang" else {}
    result = case.run(runs=min(options.runs, 20), say=SAY, **more)
    _module("runner").print_table(f"cute-bench {options.name}", case.table(result))
    return _finish(options, {"machine": _cpu_machine(), **result})


def _cpu_machine() -> dict[str, str]:
    return {
        "cpu": platform.processor() or platform.machine(),
        "cores": str(os.cpu_count()),
        "python": platform.python_version(),
    }


def _require(*, compiles: bool, measures: bool, made: str | None = None) -> None:
    """Raise OptionError if a package, a GPU or the build folder is missing."""
    if compiles and not is_available():
        raise OptionError(UpstreamMissing.HINT)
    if not measures:
        return
    try:
        import torch
    except ImportError:
        raise OptionError("measuring needs torch (pip install torch); to compile only, use --build") from None
    if not torch.cuda.is_available():
        raise OptionError("torch finds no GPU; to compile only, use --build")
    if made is not None and not os.path.isdir(made):
        raise OptionError(f"--run: folder '{made}' does not exist; create it with --build")


def _machine() -> dict[str, str]:
    import torch

    return {
        "gpu": torch.cuda.get_device_name(0),
        "torch": torch.__version__,
        "python": platform.python_version(),
        **_gpu_state(),
    }


def _gpu_state() -> dict[str, str]:
    """Query driver version, limits and clocks with ``nvidia-smi``."""
    keys = ("driver_version", "power.limit", "clocks.max.sm", "clocks.max.mem")
    command = ["nvidia-smi", f"--query-gpu={','.join(keys)}", "--format=csv,noheader", "--id=0"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return {}
    return dict(zip(keys, (x.strip() for x in said.split(","))))


if __name__ == "__main__":
    sys.exit(main())
