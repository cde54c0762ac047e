"""Command line of ``cute-bench``: the benchmarks by name, the options, and combinations that are not allowed."""

from __future__ import annotations

import argparse
import os
import re

from cute_dialect.arch.targets import DEFAULT_CHIP
from cute_dialect.runtime.progress import add_options
from cute_dialect.tools.argparse_once import Once

__all__ = ["CASES", "CPU_CASES", "RANDOM_GROUPS", "OptionError", "build_parser", "check_options", "tunes_gemm"]

CASES = (
    "accuracy", "all", "attention", "chain", "elementwise_add", "energy", "gemm", "gemm_skinny", "gemm_sm80",
    "gemm_tune", "launch", "op", "prologue", "rows", "rows_sweep", "sgemm", "transpose", "warps",
)  # fmt: skip
"""Benchmarks: modules of ``bench.cases`` with ``build(folder, chip)`` and ``run(folder, runs=, large=, say=)``."""

CPU_CASES = ("algebra", "choose", "interp", "lang", "opt")
"""Benchmarks without a GPU: modules of ``bench.cases`` with ``run(runs=, say=)`` and ``table(result)``."""

RANDOM_GROUPS = ("conv", "rows", "epilogue", "attention", "host")
"""Groups of ``op --random``: modules of ``bench.random`` with ``draw(rng, number)``, and ``host``."""

_ELEMENTS = ("f16", "bf16", "f8E4M3FN", "tf32")


class OptionError(Exception):
    """An option that is invalid, or cannot be combined with another one."""


def build_parser(examples: str) -> argparse.ArgumentParser:
    """Return the parser; ``examples`` end the help text."""
    p = argparse.ArgumentParser(
        prog="cute-bench",
        description="Measure kernels and compare them with torch.",
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    p.register("action", None, Once)
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
        "attention, host)",
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
