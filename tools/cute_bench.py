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

# torch may be missing when types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false, reportUnknownParameterType=false

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any, cast

from cute_dialect.arch.targets import DEFAULT_CHIP
from cute_dialect.runtime.progress import add_options, reporting
from cute_dialect.runtime.settings import SettingError
from cute_dialect.tools.argparse_once import Once

__all__ = ["main"]

_CASES: Mapping[str, str] = {
    "accuracy": "cute_dialect.tools.bench.cases.accuracy",
    "all": "cute_dialect.tools.bench.cases.all",
    "attention": "cute_dialect.tools.bench.cases.attention",
    "chain": "cute_dialect.tools.bench.cases.chain",
    "elementwise_add": "cute_dialect.tools.bench.cases.elementwise_add",
    "energy": "cute_dialect.tools.bench.cases.energy",
    "gemm": "cute_dialect.tools.bench.cases.gemm",
    "gemm_skinny": "cute_dialect.tools.bench.cases.gemm_skinny",
    "gemm_sm80": "cute_dialect.tools.bench.cases.gemm_sm80",
    "gemm_tune": "cute_dialect.tools.bench.cases.gemm_tune",
    "launch": "cute_dialect.tools.bench.cases.launch",
    "op": "cute_dialect.tools.bench.cases.op",
    "prologue": "cute_dialect.tools.bench.cases.prologue",
    "rows": "cute_dialect.tools.bench.cases.rows",
    "rows_sweep": "cute_dialect.tools.bench.cases.rows_sweep",
    "sgemm": "cute_dialect.tools.bench.cases.sgemm",
    "transpose": "cute_dialect.tools.bench.cases.transpose",
    "warps": "cute_dialect.tools.bench.cases.warps",
}
"""Map benchmarks to modules with ``build(folder, chip)`` and ``run(folder, runs=, large=, say=)``."""

_CPU_CASES: Mapping[str, str] = {
    "algebra": "cute_dialect.tools.bench.cases.algebra",
    "choose": "cute_dialect.tools.bench.cases.choose",
    "interp": "cute_dialect.tools.bench.cases.interp",
    "lang": "cute_dialect.tools.bench.cases.lang",
    "opt": "cute_dialect.tools.bench.cases.opt",
}
"""Map benchmarks without a GPU to modules with ``run(runs=, say=)`` and ``table(result)``."""


_ELEMENTS = ("f16", "bf16", "f8E4M3FN", "tf32")


def build_parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(
        prog="cute-bench",
        description="Measure kernels and compare them with torch.",
        epilog=(__doc__ or "").partition("\n\n")[2],
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    p.register("action", None, Once)
    p.add_argument("name", choices=sorted([*_CASES, *_CPU_CASES]), help="benchmark")
    p.add_argument("--build", metavar="DIR", help="compile into DIR only")
    p.add_argument("--run", metavar="DIR", help="check and measure the kernels in DIR only")
    p.add_argument("--json", metavar="FILE", help="write the results to FILE")
    p.add_argument("--chip", default=DEFAULT_CHIP, help=f"GPU architecture to build for (default: {DEFAULT_CHIP})")
    p.add_argument("--runs", type=int, default=100, metavar="N", help="timed runs per case (default: 100)")
    p.add_argument(
        "--tune", action="store_true", help="search for the best configurations; gemm: save them for this GPU"
    )
    p.add_argument(
        "--random", metavar="N|GROUP",
        help="gemm: N random problems instead of the named ones; op: random problems of GROUP (conv, rows, epilogue, "
        "attention, host)",
    )  # fmt: skip
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


def _searches(options: argparse.Namespace) -> bool:
    """Return True if GEMM configurations are tuned."""
    return options.name == "gemm_tune" or (options.tune and options.name != "attention")


def _contradiction(options: argparse.Namespace) -> str:
    """Return the error message for options that cannot be combined, or an empty string."""
    if options.name in _CPU_CASES and (options.build or options.run):
        return f"{options.name} runs on the CPU; it cannot be combined with --build or --run"
    if options.long and options.name != "lang":
        return f"--long applies only to lang, got {options.name}"
    if (options.shapes or options.element) and not _searches(options):
        return "--shapes and --element apply only to --tune and gemm_tune"
    if options.groups is not None and options.name != "op":
        return f"--groups applies only to op, got {options.name}"
    if options.batched and (options.name != "gemm" or options.tune or options.random is not None):
        return "--batched applies only to gemm without --tune and --random"
    if options.batched and (options.fit is not None or options.regret is not None):
        return "--batched cannot be combined with --fit or --regret"
    if options.batched and options.kernels == "all":
        return "--kernels: expected a number with --batched, got all"
    wrong = _contradiction_of_random(options)
    if wrong:
        return wrong
    if options.seed is not None and options.random is None and options.fit is None:
        return "--seed applies only to --random and --fit"
    wrong = _contradiction_of_sweeps(options)
    if wrong:
        return wrong
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
        from cute_dialect.tools.bench.random import GROUPS

        if options.random not in GROUPS:
            more = "; random GEMMs are cute-bench gemm --random N" if options.random == "gemm" else ""
            return f"--random: {options.random!r} is not a group of op; use one of {', '.join(GROUPS)}{more}"
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


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``cute-bench`` and return the exit status."""
    argv = sys.argv[1:] if argv is None else argv
    if argv[:1] == ["tune"]:
        return import_module("cute_dialect.tools.bench.tune").main(argv[1:])
    options = build_parser().parse_args(argv)
    try:
        with reporting(options.progress, options.progress_json):
            return _main(options, argv)
    except SettingError as e:
        print(f"cute-bench: error: {e}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


def _main(options: argparse.Namespace, argv: Sequence[str]) -> int:
    wrong = _contradiction(options) or (_unwritable(options.json) if options.json else "")
    if wrong:
        print(f"cute-bench: error: {wrong}", file=sys.stderr)
        return 1
    if options.runs < 1:
        print("cute-bench: error: --runs must be at least 1", file=sys.stderr)
        return 1
    if options.name in _CPU_CASES:
        return _cpu_case(options)
    if options.fit is not None or options.regret is not None:
        return _sweep_case(options, argv)
    if options.name == "op" and options.random is not None:
        return _random_case(options, argv)
    if options.tune and options.name not in ("gemm", "attention"):
        print(f"cute-bench: error: --tune applies only to gemm and attention, got {options.name}", file=sys.stderr)
        return 1
    tuning = _searches(options)
    case = import_module(_CASES["gemm_tune" if tuning else options.name])
    more: dict[str, Any] = {"shapes": options.shapes, "element": options.element or "f16"} if tuning else {}
    if options.name == "attention":
        more = {"tune": options.tune}
    if options.random is not None:
        case = import_module("cute_dialect.tools.bench.random.gemm")
        more = {"count": options.random, "seed": options.seed or 0}
    if options.batched:
        case = import_module("cute_dialect.tools.bench.cases.gemm_batched")
        more = {"kernels": options.kernels or 1}
    if options.name == "op":
        unknown = [g for g in options.groups or () if g not in case.groups()]
        if unknown:
            print(f"cute-bench: error: --groups: unknown group {unknown[0]!r}; choose from {', '.join(case.groups())}",
                  file=sys.stderr)  # fmt: skip
            return 1
        more = {"groups": options.groups or ()}
    measures = bool(options.run) or not options.build
    made = options.run if not options.build else None
    missing = _missing(compiles=made is None, measures=measures, made=made)
    if missing is not None:
        print(f"cute-bench: error: {missing}", file=sys.stderr)
        return 1
    try:
        if options.build or not options.run:
            import tempfile

            folder = options.build or tempfile.mkdtemp(prefix="cute-bench-")
            for line in case.build(folder, options.chip, **more):
                print(line)
            if options.build and not options.run:
                return 0
        else:
            folder = options.run
        say = partial(print, flush=True)  # Flush each line, so that the last line identifies a kernel that hangs.
        measured = case.run(folder, runs=options.runs, large=not options.no_large, say=say, **more)
        result = {"machine": _machine(), **measured}
        if options.tune and tuning:
            print(f"saved: {case.save_best(result, result['machine']['gpu'])}")
    except Exception as e:
        if not _report_user_error(e):
            raise
        return 1
    _table(result)
    wrong = cast("list[str]", result.get("wrong", []))
    if options.json:
        if options.name == "all":
            result = {"machine": result["machine"], "date": _today(), "results": result["rows"]}
        _write_json(options.json, result)
    for line in wrong:
        print(f"cute-bench: error: {line}", file=sys.stderr)
    return 1 if wrong else 0


def _report_user_error(error: Exception) -> bool:
    """Print a user error and return True; return False for an internal error."""
    from cute_dialect.tools.cute_run import user_message

    text = user_message(error)
    if text is not None:
        print(text.replace("cute-run:", "cute-bench:", 1), file=sys.stderr)
    return text is not None


def _random_case(options: argparse.Namespace, argv: Sequence[str]) -> int:
    """Run ``op --random``; return 1 if a result is wrong or a problem is rejected, else 0."""
    import shlex

    from cute_dialect.tools.bench import random as bench_random

    missing = _missing(compiles=True, measures=not options.plan)
    if missing is None and options.plan and importlib.util.find_spec("torch") is None:
        missing = "--plan needs torch (pip install torch); it does not need a GPU"
    if missing is not None:
        print(f"cute-bench: error: {missing}", file=sys.stderr)
        return 1
    count, seed, say = options.count or 200, options.seed or 0, partial(print, flush=True)
    try:
        if options.plan:
            result = bench_random.plan(options.random, count, seed, say)
        else:
            measured = bench_random.run(options.random, count, seed, runs=options.runs, say=say)
            command = shlex.join(["cute-bench", *argv])
            result = {"machine": _machine(), "date": _today(), "command": command, **measured}
    except Exception as e:
        if not _report_user_error(e):
            raise
        return 1
    if options.json:
        _write_json(options.json, result)
    wrong = cast("list[str]", result["wrong"])
    for line in wrong:
        print(f"cute-bench: error: {line}", file=sys.stderr)
    return 1 if wrong else 0


def _sweep_case(options: argparse.Namespace, argv: Sequence[str]) -> int:
    """Run ``--fit`` or ``--regret`` and return the exit status."""
    import shlex

    from cute_dialect.tools.bench.fit import fit_files, regret

    command = shlex.join(["cute-bench", *argv])
    try:
        if options.random is not None:
            return _make_sweep(options, command)
        if options.regret:
            result = regret(options.regret, costs=options.costs, say=print)
        else:
            result = fit_files(
                options.fit,
                seed=options.seed or 0,
                costs=options.costs,
                output=options.output,
                command=command,
                say=partial(print, flush=True),
            )
        if options.json:
            _write_json(options.json, result)
    except Exception as e:
        if not _report_user_error(e):
            raise
        return 1
    return 0


def _make_sweep(options: argparse.Namespace, command: str) -> int:
    """Build or time the kernels of a sweep, or both; return the exit status."""
    import tempfile
    import time

    from cute_dialect.tools.bench import sweep as bench_gemm_sweep
    from cute_dialect.tools.bench.fit import costs_to_build_for

    missing = _missing(compiles=not options.run, measures=not options.build, made=options.run)
    if missing is not None:
        print(f"cute-bench: error: {missing}", file=sys.stderr)
        return 1
    deadline = time.monotonic() + (options.budget or float("inf"))
    say = partial(print, flush=True)
    seed = options.seed or 0
    folder = options.run or options.build or tempfile.mkdtemp(prefix="cute-bench-")
    if options.run:
        plan = bench_gemm_sweep.read_plan(folder, options.random, seed)
    else:
        costs = costs_to_build_for(options.costs, None if options.build else _gpu_and_sms())
        near = None if options.kernels == "all" else options.kernels or bench_gemm_sweep.NEAR
        plan = bench_gemm_sweep.plan(options.random, seed, costs, near)
        plan = bench_gemm_sweep.build(folder, options.chip, plan, deadline=deadline, say=say)
        if options.build:
            return 0
    runs = max(options.runs // 9, 7)
    measured = bench_gemm_sweep.run(folder, plan, runs=runs, deadline=deadline, say=say)
    _write_json(options.json, {"machine": _machine(), "date": _today(), "command": command, **measured})
    say(f"to fit the cost model, run: cute-bench gemm --fit {options.json}")
    return 0


def _gpu_and_sms() -> tuple[str, int]:
    import torch

    return torch.cuda.get_device_name(0), torch.cuda.get_device_properties(0).multi_processor_count


def _today() -> str:
    import datetime

    return datetime.date.today().isoformat()


def _cpu_case(options: argparse.Namespace) -> int:
    missing = _missing(compiles=options.name in ("opt", "lang"), measures=False)
    if missing is not None:
        print(f"cute-bench: error: {missing}", file=sys.stderr)
        return 1
    case = import_module(_CPU_CASES[options.name])
    more = {"long": options.long} if options.name == "lang" else {}
    result = case.run(runs=min(options.runs, 20), say=partial(print, flush=True), **more)
    head, *rows = case.table(result)
    _print_table(f"cute-bench {options.name}", head, rows, left=1)
    if options.json:
        _write_json(options.json, {"machine": _cpu_machine(), **result})
    return 0


def _cpu_machine() -> dict[str, str]:
    import os
    import platform

    return {
        "cpu": platform.processor() or platform.machine(),
        "cores": str(os.cpu_count()),
        "python": platform.python_version(),
    }


def _unwritable(path: str) -> str:
    """Return the error message for a file that cannot be written, or an empty string."""
    import os

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


def _write_json(path: str, result: Mapping[str, object]) -> None:
    with open(path, "w", encoding="utf-8") as f:
        json.dump(result, f, indent=1)
        f.write("\n")


def _missing(*, compiles: bool, measures: bool, made: str | None = None) -> str | None:
    """Return the error message for a missing package, GPU or build folder, or None."""
    if compiles:
        from cute_dialect.pipelines.upstream import is_available
        from cute_dialect.pipelines.upstream_error import UpstreamMissing

        if not is_available():
            return UpstreamMissing.HINT
    if not measures:
        return None
    try:
        import torch
    except ImportError:
        return "measuring needs torch (pip install torch); to compile only, use --build"
    if not torch.cuda.is_available():
        return "torch finds no GPU; to compile only, use --build"
    if made is not None and not os.path.isdir(made):
        return f"--run: folder '{made}' does not exist; create it with --build"
    return None


def _machine() -> dict[str, str]:
    import platform

    import torch

    return {
        "gpu": torch.cuda.get_device_name(0),
        "torch": torch.__version__,
        "python": platform.python_version(),
        **_gpu_state(),
    }


def _gpu_state() -> dict[str, str]:
    """Query driver version, limits and clocks with ``nvidia-smi``."""
    import subprocess

    keys = ("driver_version", "power.limit", "clocks.max.sm", "clocks.max.mem")
    command = ["nvidia-smi", f"--query-gpu={','.join(keys)}", "--format=csv,noheader", "--id=0"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return {}
    return dict(zip(keys, (x.strip() for x in said.split(","))))


def _table(result: Mapping[str, object]) -> None:
    """Print the rows as a table.  The add benchmark has its own columns."""
    machine = cast("dict[str, str]", result["machine"])
    title = f"{machine['gpu']}, torch {machine['torch']}: median times; the L2 cache is flushed if it matters"
    found = cast("list[dict[str, object]]", result["rows"])
    if found and "name" in found[0]:
        known = ("name", "group", "operation", "ours", "peer", "unit", "ratio")
        keys = [k for k in dict.fromkeys(k for r in found for k in r) if k not in known]
        lines = [
            (
                str(r["name"]),
                *(f"{x:.4g}" if isinstance(x := r.get(k, ""), float) else str(x) for k in keys),
                f"{cast(float, r['ours']):.4g}",
                "" if r["peer"] is None else f"{cast(float, r['peer']):.4g}",
                str(r["unit"]),
                "" if r["ratio"] is None else f"{cast(float, r['ratio']):.3f}",
            )
            for r in found
        ]
        _print_table(title, ("name", *keys, "ours", "peer", "unit", "ratio"), lines, left=1)
        return
    head = ("element", "layout", "kernel", "size", "us", "torch us", "TB/s", "of torch")
    rows = [
        (
            str(r["element"]),
            str(r["layout"]),
            f"@{r['kernel']}",
            f"{r['size']}²",
            f"{cast(float, r['microseconds']):.1f}",
            f"{cast(float, r['torch_microseconds']):.1f}",
            f"{cast(float, r['terabytes']):.3f}",
            f"{cast(float, r['ratio']):.3f}",
        )
        for r in cast("list[dict[str, object]]", result["rows"])
    ]
    _print_table(title, head, rows, left=3)
    host = cast("dict[str, float]", result["host_microseconds"])
    print(f"host time of a call: {host['ours']:.2f} us, torch.add {host['torch']:.2f} us")


def _print_table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]], *, left: int) -> None:
    """Print a table, with rich if it is installed; the first ``left`` columns are left-aligned."""
    try:
        from rich.console import Console
        from rich.table import Table
    except ImportError:
        print(title)
        widths = [max(len(c) for c in column) for column in zip(head, *rows)]
        for row in (head, *rows):
            print("  ".join(c.rjust(w) for c, w in zip(row, widths)))
        return
    table = Table(title=title)
    for i, name in enumerate(head):
        table.add_column(name, justify="left" if i < left else "right")
    for row in rows:
        table.add_row(*row)
    Console(width=None if sys.stdout.isatty() else 100).print(table)


if __name__ == "__main__":
    sys.exit(main())
