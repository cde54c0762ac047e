"""``cute-bench tune``: tune the constants of functions decorated with @cute.autotune, on one or two machines.

cute-bench tune kernels.py:row_sum                  compile all candidates and measure them
cute-bench tune kernels.py:row_sum --build DIR      only compile, into a compile cache in DIR; needs no GPU
cute-bench tune kernels.py:row_sum --run DIR        only measure; needs the driver, no compiler

The function row_sum_arguments() in the same file returns the calls to measure: a list of tuples of arguments.  numpy
arrays are copied to the GPU.  The fastest constants are saved in the user's table for this GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from cute_dialect.arch.targets import DEFAULT_CHIP
from cute_dialect.files import replace_file
from cute_dialect.runtime.progress import add_options, reporting, track
from cute_dialect.runtime.settings import SettingError


class _TuneToolError(Exception):
    """A user error of ``cute-bench tune``."""


def build_parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(
        prog="cute-bench tune",
        description="Tune the constants of functions decorated with @cute.autotune.",
        epilog=(__doc__ or "").partition("\n\n")[2],
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    p.add_argument("function", metavar="FILE:NAME", help="a Python file and the name of a function in it")
    p.add_argument("--arguments", metavar="NAME", help="function that returns the arguments (default: NAME_arguments)")
    way = p.add_mutually_exclusive_group()
    way.add_argument("--build", metavar="DIR", help="compile into DIR only")
    way.add_argument("--run", metavar="DIR", help="measure the kernels in DIR only")
    p.add_argument("--chip", default=DEFAULT_CHIP, help=f"GPU architecture to build for (default: {DEFAULT_CHIP})")
    p.add_argument("--no-save", action="store_true", help="do not save the results in the user's table")
    p.add_argument("--json", metavar="FILE", help="write the results to FILE")
    add_options(p)
    return p


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return the exit status: 0, 1 for an error, 2 for invalid arguments."""
    options = build_parser().parse_args(argv)
    try:
        with reporting(options.progress, options.progress_json):
            return _main(options)
    except SettingError as e:
        print(f"cute-bench tune: error: {e}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


def _main(options: argparse.Namespace) -> int:
    folder = options.build or options.run
    if folder is not None:
        os.environ |= {"CUTE_CACHE_DIR": os.path.abspath(folder), "CUTE_CACHE": "1"}
    if options.build is not None:
        os.environ |= {"CUTE_CHIP": options.chip, "CUTE_DEVICE": "gpu"}
    from cute_dialect.lang.calls.autotune import TuneError, shown  # late: start-up
    from cute_dialect.runtime.driver import CudaError, driver  # late: start-up

    try:
        function, calls = _read(options.function, options.arguments)
        if options.build is not None:
            for number, call in enumerate(track(calls, "building", "calls"), 1):
                failed = function.compile(*call)
                count = len(function.candidates) - len(failed)
                print(f"{number} of {len(calls)}: {count} candidates compiled into {folder}")
                for candidate, why in failed:
                    print(f"  skipped: {shown(candidate)}: {why}")
            return 0
        driver()
        found: list[dict[str, object]] = []
        for call in track(calls, "tuning", "calls"):
            tuned = function.tune(*_on_the_gpu(call), save=not options.no_save)
            print(tuned)
            found.append({"key": tuned.key, "chosen": {n: repr(v) for n, v in tuned.chosen.items()},
                          "microseconds": tuned.microseconds,
                          "measured": [[shown(c), us, runs] for c, us, runs in tuned.measured]})  # fmt: skip
        if options.json is not None:
            replace_file(Path(options.json), f"{json.dumps(found, indent=1)}\n".encode())
    except (_TuneToolError, TuneError, CudaError, OSError) as e:
        print(f"cute-bench tune: error: {e}", file=sys.stderr)
        return 1
    return 0


def _read(what: str, arguments: str | None) -> tuple[Any, list[tuple[Any, ...]]]:
    """Return the function and the arguments of its calls.  Raises _TuneToolError."""
    from importlib.util import module_from_spec, spec_from_file_location

    from cute_dialect.lang.calls.autotune import Autotuned  # late: start-up

    file, _, name = what.rpartition(":")
    if not file:
        raise _TuneToolError(f"expected FILE:NAME of a function decorated with @cute.autotune, got {what!r}")
    spec = spec_from_file_location(Path(file).stem, file)
    if spec is None or spec.loader is None or not Path(file).is_file():
        raise _TuneToolError(f"expected a Python file, got {file!r}")
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # Processes that compile kernels look up the module.
    sys.path.insert(0, str(Path(file).resolve().parent))
    spec.loader.exec_module(module)
    function = getattr(module, name, None)
    if not isinstance(function, Autotuned):
        known = ", ".join(sorted([n for n, v in vars(module).items() if isinstance(v, Autotuned)])) or "none"
        raise _TuneToolError(f"{file}: no function {name!r} is decorated with @cute.autotune (available: {known})")
    made = getattr(module, arguments or f"{name}_arguments", None)
    if not callable(made):
        raise _TuneToolError(
            f"{file}: expected a function {arguments or f'{name}_arguments'}() that returns the arguments of calls"
        )
    found: object = made()
    calls = cast("list[object]", found)
    if not isinstance(found, list) or not calls or not all(isinstance(c, tuple) for c in calls):
        raise _TuneToolError(f"{file}: expected a list of tuples of arguments, got {type(calls).__name__}")
    return function, cast("list[tuple[Any, ...]]", calls)


def _on_the_gpu(call: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the arguments with numpy arrays copied to the GPU by torch or cupy."""
    import numpy as np

    if not any(isinstance(x, np.ndarray) for x in call):
        return call
    try:
        import torch  # pyright: ignore[reportMissingImports]

        def copied(x: Any) -> Any:
            return torch.from_numpy(x).cuda()  # pyright: ignore
    except ModuleNotFoundError:
        try:
            import cupy  # pyright: ignore[reportMissingImports]
        except ModuleNotFoundError:
            raise _TuneToolError("copying numpy arrays to the GPU needs torch or cupy; install one of them") from None

        def copied(x: Any) -> Any:
            return cupy.asarray(x)  # pyright: ignore

    return tuple([copied(x) if isinstance(x, np.ndarray) else x for x in call])
