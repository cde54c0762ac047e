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
cute-bench op --random conv --seed 1             200 random problems: conv, rows, attention, … (see --random)
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
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from cute_dialect.arch.targets import DEFAULT_CHIP
from cute_dialect.pipelines.upstream import UpstreamMissing, is_available
from cute_dialect.runtime.progress import add_options, reporting
from cute_dialect.tools.command_line import new_parser
from cute_dialect.tools.programs import run_program

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.tools.bench.runner import Benchmark

SAY = partial(print, flush=True)
"""Print a line at once, so that the last line identifies a kernel that hangs."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``cute-bench`` and return the exit status."""
    argv = sys.argv[1:] if argv is None else argv
    if argv[:1] == ["tune"]:
        return _module("tune").main(argv[1:])
    options = build_parser((__doc__ or "").partition("\n\n")[2]).parse_args(argv)

    def work() -> int:
        with reporting(options.progress, options.progress_json):
            check_options(options)
            if options.name in CPU_CASES:
                return _cpu_case(options)
            if options.fit is not None or options.regret is not None:
                return _sweep_case(options, argv)
            if options.name == "op" and options.random is not None:
                return _random_case(options, argv)
            return _gpu_case(options, argv)

    return run_program("cute-bench", work)


def _gpu_case(options: argparse.Namespace, argv: Sequence[str]) -> int:
    """Build or run a benchmark, or both."""
    if options.tune and options.name not in ("gemm", "attention"):
        raise OptionError(f"--tune applies only to gemm and attention, got {options.name}")
    name, more = _benchmark(options)
    cases = _module(f"cases.{CASES.get(name, 'gemm')}")
    case = cases.BENCHMARKS[name]
    for group in options.groups or ():
        if group not in cases.groups():
            raise OptionError(f"--groups: unknown group {group!r}; choose from {', '.join(cases.groups())}")
    made = options.run if not options.build else None
    _require(compiles=made is None, measures=bool(options.run) or not options.build, made=made)
    folder = options.build or options.run or tempfile.mkdtemp(prefix="cute-bench-")
    if options.build or not options.run:
        lines = case.build(folder, options.chip, **more)
        for line in lines:
            print(line)
        if options.build and not options.run:
            return int(any(line.startswith("failed: ") for line in lines))
    measured = case.run(folder, runs=options.runs, large=not options.no_large, say=SAY, **more)
    result = _dated(argv, measured)
    machine = result["machine"]
    if options.tune and name == "gemm_tune":
        print(f"saved: {cases.save_best(result, machine['gpu'])}")
    _print(
        case, result, f"{machine['gpu']}, torch {machine['torch']}: median times; the L2 cache is flushed if it matters"
    )
    if options.name == "all":
        result = {"machine": machine, "date": result["date"], "results": result["rows"]}
    return _finish(options, result)


def _print(case: Benchmark, result: Mapping[str, Any], title: str) -> None:
    runner = _module("runner")
    runner.print_table(title, (case.table or runner.row_table)(result))


def _benchmark(options: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    """Return the name of a GPU benchmark, and its further options."""
    if tunes_gemm(options):
        return "gemm_tune", {"shapes": options.shapes, "element": options.element or "f16"}
    if options.random is not None:
        return "gemm_random", {"count": options.random, "seed": options.seed or 0}
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
    count, seed, random = options.count or 200, options.seed or 0, _module("random_problems")
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
    """Return the command line without ``--json``, which does not affect the results.

    >>> _command(["op", "--groups", "rows", "--json", "rows.json"])
    'cute-bench op --groups rows'
    """
    where = argv.index("--json") if "--json" in argv else len(argv)
    return shlex.join(["cute-bench", *argv[:where], *argv[where + 2 :]])


def _dated(argv: Sequence[str], measured: Mapping[str, object]) -> dict[str, Any]:
    """Add the machine, the date and the command line to results."""
    return {"machine": _machine(), "date": _today(), "command": _command(argv), **measured}


def _cpu_case(options: argparse.Namespace) -> int:
    _require(compiles=options.name in ("opt", "lang"), measures=False)
    case = _module(f"cases.{CPU_CASES[options.name]}").BENCHMARKS[options.name]
    more = {"long": options.long} if options.name == "lang" else {}
    result = case.run(runs=min(options.runs, 20), say=SAY, **more)
    _print(case, result, f"cute-bench {options.name}")
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


# -------------------------------------------------------------------------------------------------------------- options


CASES = {
    "accuracy": "all",
    "all": "all",
    "attention": "op.attention",
    "chain": "gemm_limits",
    "elementwise_add": "elementwise",
    "energy": "gemm_limits",
    "gemm": "gemm",
    "gemm_skinny": "gemm_limits",
    "gemm_sm80": "gemm_without_wgmma",
    "gemm_tune": "gemm",
    "launch": "host_time",
    "op": "op",
    "prologue": "gemm_limits",
    "rows": "rows",
    "rows_sweep": "rows",
    "sgemm": "gemm_without_wgmma",
    "transpose": "elementwise",
    "warps": "gemm_without_wgmma",
}
"""Benchmarks, and the modules of ``bench.cases`` that list them in ``BENCHMARKS``."""

CPU_CASES = {"algebra": "algebra", "choose": "choose", "interp": "interp", "lang": "lang", "opt": "cute_opt"}
"""Benchmarks without a GPU, and their modules of ``bench.cases``."""

RANDOM_GROUPS = ("conv", "rows", "epilogue", "attention", "decode", "mixed", "block", "host")
"""Groups of ``op --random``."""

_ELEMENTS = ("f16", "bf16", "f8E4M3FN", "tf32")


class OptionError(Exception):
    """An option that is invalid, or cannot be combined with another one."""


def build_parser(examples: str) -> argparse.ArgumentParser:
    """Return the parser; ``examples`` end the help text."""
    p = new_parser("cute-bench", "Measure kernels and compare them with torch.", examples)
    p.add_argument("name", choices=sorted([*CASES, *CPU_CASES]), help="benchmark")
    p.add_argument("--build", metavar="DIR", help="compile into DIR only")
    p.add_argument("--run", metavar="DIR", help="check and measure the kernels in DIR only")
    p.add_argument("--json", metavar="FILE", help="write the results to FILE")
    p.add_argument("--chip", default=DEFAULT_CHIP, help=f"GPU architecture to build for (default: {DEFAULT_CHIP})")
    p.add_argument("--runs", type=int, default=100, metavar="N", help="timed runs per case (default: 100)")
    p.add_argument(
        "--tune", action="store_true", help="search for the best configurations; gemm: save them for this GPU"
    )
    p.add_argument(
        "--random",
        metavar="N|GROUP",
        help="gemm: N random problems instead of the named ones; op: random problems of GROUP (conv, rows, epilogue, "
        "attention, decode, mixed, block, host)",
    )
    p.add_argument("--count", type=_count, metavar="N", help="op --random: number of problems (default: 200)")
    p.add_argument("--plan", action="store_true", help="op --random: check small problems on the interpreter (no GPU)")
    p.add_argument("--groups", nargs="+", metavar="GROUP", help="op: groups of cases to run")
    p.add_argument("--batched", action="store_true", help="gemm: batched GEMMs compared with torch.bmm")
    p.add_argument("--seed", type=int, metavar="S", help="seed of --random and --fit (default: 0)")
    p.add_argument(
        "--fit",
        nargs="*",
        metavar="FILE",
        help="gemm: fit the cost model of kernel selection to sweeps; with --random and no files: record a sweep, time "
        "many kernels on N problems, into the file of --json",
    )
    p.add_argument(
        "--kernels",
        type=_kernels,
        metavar="N",
        help="--fit --random: time the N kernels predicted fastest (default: 20) and some others, or all; "
        "--batched: time the N fastest (default: the selected kernel)",
    )
    p.add_argument(
        "--budget", type=_seconds, metavar="SECONDS", help="--fit --random: stop building or timing after SECONDS"
    )
    p.add_argument(
        "--regret", nargs="+", metavar="FILE", help="gemm: compare the selected kernels with the fastest of sweeps"
    )
    p.add_argument("--costs", metavar="FILE", help="--fit, --regret: cost model (default: that of the GPU)")
    p.add_argument("--output", metavar="FILE", help="--fit: cost model to write (default: the user's for the GPU)")
    p.add_argument(
        "--shapes", nargs="+", type=_shape, metavar="MxNxK", default=[], help="--tune, gemm_tune: problems to tune"
    )
    p.add_argument("--element", choices=_ELEMENTS, help="--tune, gemm_tune: element type (default: f16)")
    p.add_argument("--long", action="store_true", help="lang: also compile 10,000 times and check memory use")
    p.add_argument("--no-large", action="store_true", help="skip the check of more than 2^31 elements (24 GB)")
    add_options(p)
    return p


def _count(text: str) -> int:
    """Parse a number of problems for argparse."""
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"expected a number of problems, got {text!r}")
    return int(text)


def _kernels(text: str) -> int | str:
    """Parse a number of kernels or ``all`` for argparse."""
    if text != "all" and (not text.isdecimal() or int(text) < 2):
        raise argparse.ArgumentTypeError(f"expected a number of at least 2, or all, got {text!r}")
    return text if text == "all" else int(text)


def _seconds(text: str) -> float:
    """Parse a positive number of seconds for argparse."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"expected a positive number of seconds, got {text!r}")
    return seconds


def _shape(text: str) -> tuple[int, int, int]:
    """Parse ``MxNxK`` for argparse."""
    parts = text.split("x")
    if len(parts) != 3 or not all(part.isdecimal() and int(part) for part in parts):
        raise argparse.ArgumentTypeError(f"expected three sizes like 128x8192x8192, got {text!r}")
    m, n, k = map(int, parts)
    return m, n, k


def tunes_gemm(options: argparse.Namespace) -> bool:
    """Return True if GEMM configurations are tuned."""
    return options.name == "gemm_tune" or (options.tune and options.name != "attention")


def check_options(options: argparse.Namespace) -> None:
    """Check the options and convert the argument of ``gemm --random`` to a number.

    Raises:
        OptionError: options cannot be combined, have an invalid value, or the file of ``--json`` cannot be written.
    """
    wrong = _contradiction(options) or _unwritable(options.json)
    if not wrong and options.runs < 1:
        wrong = "--runs must be at least 1"
    if wrong:
        raise OptionError(wrong)


def _contradiction(options: argparse.Namespace) -> str:
    """Return the error message for options that cannot be combined, or an empty string."""
    if options.name in CPU_CASES and (options.build or options.run):
        return f"{options.name} runs on the CPU; it cannot be combined with --build or --run"
    if options.long and options.name != "lang":
        return f"--long applies only to lang, got {options.name}"
    if (options.shapes or options.element) and not tunes_gemm(options):
        return "--shapes and --element apply only to --tune and gemm_tune"
    if options.groups is not None and options.name != "op":
        return f"--groups applies only to op, got {options.name}"
    if options.batched and (options.name != "gemm" or options.tune or options.random is not None):
        return "--batched applies only to gemm without --tune and --random"
    if options.batched and (options.fit is not None or options.regret is not None):
        return "--batched cannot be combined with --fit or --regret"
    if options.batched and options.kernels == "all":
        return "--kernels: expected a number with --batched, got all"
    wrong = _contradiction_of_random(options) or _contradiction_of_sweeps(options)
    if wrong:
        return wrong
    if options.seed is not None and options.random is None and options.fit is None:
        return "--seed applies only to --random and --fit"
    if re.fullmatch(r"sm_\d+[af]?", options.chip) is None:
        return f"--chip: expected sm_<number>, e.g. sm_90a, got {options.chip!r}"
    return ""


def _contradiction_of_random(options: argparse.Namespace) -> str:
    """Return the error message for the options of random problems, or an empty string.

    This also converts the argument of ``gemm --random`` to a number.
    """
    if options.random is None:
        return "--count and --plan apply only to op --random" if options.count or options.plan else ""
    if options.name == "op":
        if options.random not in RANDOM_GROUPS:
            more = "; random GEMMs are cute-bench gemm --random N" if options.random == "gemm" else ""
            return f"--random: {options.random!r} is not a group of op; use one of {', '.join(RANDOM_GROUPS)}{more}"
        if options.groups is not None or options.build or options.run:
            return "--random cannot be combined with --groups, --build or --run"
        if options.plan and options.random == "host":
            return "--plan runs on the interpreter, which cannot measure group host; choose another group"
        return ""
    if options.name != "gemm" or options.tune:
        return "--random applies only to op and to gemm without --tune"
    if options.count or options.plan:
        return "--count and --plan apply only to op --random"
    try:
        options.random = _count(options.random)
    except argparse.ArgumentTypeError as e:
        return f"argument --random: {e}"
    return ""


def _contradiction_of_sweeps(options: argparse.Namespace) -> str:
    """Return the error message for the options of sweeps, or an empty string."""
    name = "--fit" if options.fit is not None else "--regret" if options.regret is not None else ""
    given = [n for n in ("kernels", "budget", "costs", "output") if getattr(options, n) is not None]
    if not name:
        given = [n for n in given if n != "kernels" or not options.batched]
        return f"--{given[0]} applies only to --fit" if given else ""
    if options.name != "gemm" or options.tune:
        return f"{name} applies only to gemm without --tune"
    if options.fit is not None and options.regret is not None:
        return "--fit cannot be combined with --regret"
    if options.fit or options.regret:
        if options.random is not None or options.build or options.run:
            return f"{name} FILE reads a sweep; it cannot be combined with --random, --build or --run"
        extra = [n for n in given if n not in (("costs", "output") if options.fit else ("costs",))]
        return f"--{extra[0]} cannot be combined with {name} FILE" if extra else ""
    if options.random is None:
        return "--fit: expected sweep files, or --random N to record a sweep"
    if options.output is not None:
        return "--output applies only to --fit FILE"
    if options.build and options.run:
        return "--build cannot be combined with --run"
    if options.run and (options.kernels is not None or options.costs is not None):
        return "--kernels and --costs select kernels to build; they cannot be combined with --run"
    if not options.build and not options.json:
        return "--fit --random needs --json FILE to write the sweep"
    return ""


def _unwritable(path: str | None) -> str:
    """Return the error message for a file that cannot be written, or an empty string."""
    if path is None:
        return ""
    try:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        is_new = not os.path.exists(path)
        with open(path, "a", encoding="utf-8"):
            pass
        if is_new:
            os.unlink(path)
        return ""
    except OSError as e:
        return f"--json: cannot write {path}: {e.strerror}"


if __name__ == "__main__":
    sys.exit(main())
