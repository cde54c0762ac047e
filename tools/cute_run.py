"""The ``cute-run`` program: compile a file, run one of its kernels and check the result.

    cute-run add.mlir --kernel add --in 64x4096 --in 64x4096 --check 'c == a + b'
    cute-run add.mlir --kernel add --device cpu --in a=a.npy --in b=b.npy --out c=c.npy
    cute-run build/add --kernel add --in 12345x4321:ld=4400 --repeat 50          (a compiled folder)
    cute-run host.mlir --host                                                    (runs @main on the CPU)

Exit status: 0 if the kernel ran and all checks hold, 1 otherwise.  Errors start with ``file:line:col`` if the location
is known.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from cute_dialect.runtime import load
from cute_dialect.runtime.settings import word

if TYPE_CHECKING:  # pragma: no cover
    import numpy as np
    from numpy.typing import NDArray

    from cute_dialect.interp import RunReport
    from cute_dialect.interp.validation.equivalence import Contents, Side
    from cute_dialect.pipelines.compilation import Emit
    from cute_dialect.runtime.launch import CompiledModule
    from cute_dialect.tools.run_report import Report, Result

from cute_dialect.arch.targets import DEFAULT_CHIP
from cute_dialect.files import not_mlir
from cute_dialect.runtime.progress import add_options, reporting
from cute_dialect.tools.check_expressions import FUNCTIONS, KEYWORDS, REFERENCES, CheckError
from cute_dialect.tools.command_line import new_parser
from cute_dialect.tools.programs import collect_rarely, leave, run_program
from cute_dialect.tools.run_call import SANITIZERS, Call, RunError, RunRequest, make_call, read_request, values_of

_EPILOG = """\
arguments (--in, in the order of the parameters or as NAME=TEXT):
  64x4096xf32      an array; the element type defaults to that of the parameter; followed by any of
    =randn =rand =randint =zeros =ones =arange =poison :const=3.5     initial values
    :ld=4100         leading dimension in elements          :strides=1,64   all strides
    :offset=3        offset in elements from an aligned address
  data.npy         a file          42 or (3,4)    for a parameter that is not a tensor
The letters a, b, c … are aliases of the parameters in order, in --in, --out and --check.
Arrays that are not given have the shape of the last one and are filled with poison (NaN).
The check uninit, on by default in short runs on the CPU, reports reads of poison.

checks (--check EXPR, may be repeated; all are validated before anything runs):
  'c == a + b'                          bitwise equality of every element (NaN equals NaN)
  'allclose(c, a @ b.T, rtol=1e-3)'     equality of floats up to rounding
  names      the parameters, their letters, and in_NAME: the array before the run
  operators  + - * / // % @ & | ^ == != < <= > >= and not, .T, [slices]
  functions  {functions}
  keywords   {keywords}
  instead of an expression, over the arrays in order: {references}
  on the CPU, sanitizers: {sanitizers}, or all, auto, none; auto is the default
             (race and uninit, which stop in long runs)
"""


def _epilog() -> str:
    functions = ", ".join(FUNCTIONS)
    at = functions.index(" ", 66)
    return _EPILOG.format(
        functions=f"{functions[:at]}\n             {functions[at + 1 :]}",
        keywords=", ".join(KEYWORDS),
        references=", ".join(
            f"{name} ({text.format(*'abc')})" for name, (_, text) in REFERENCES.items() if name != "gemm"
        )
        + ", gemm",
        sanitizers=",".join(SANITIZERS),
    )


def _count(text: str) -> int:
    """Parse a non-negative number for argparse."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a number of at least 0, got {text!r}")
    return int(text)


def build_parser() -> argparse.ArgumentParser:
    p = new_parser(
        "cute-run",
        "Compile a file of cute or base IR and run a kernel of it on the GPU or on the CPU interpreter.",
        _epilog(),
    )
    p.add_argument("file", nargs="?", help="a .mlir file, or the folder of a compiled kernel")
    p.add_argument("--kernel", metavar="NAME", help="kernel or host function (default: the only one)")
    p.add_argument("--list", action="store_true", help="list the kernels and their parameters")
    p.add_argument("--device", choices=("auto", "gpu", "cpu"), default="auto", help="auto: the GPU if there is one")
    p.add_argument(
        "--in",
        "--arg",
        "--out-arg",
        dest="inputs",
        action="append",
        default=[],
        metavar="TEXT",
        help="an argument of the kernel",
    )
    p.add_argument("--out", action="append", default=[], metavar="NAME=FILE.npy", help="save an argument after the run")
    p.add_argument(
        "--check",
        action="append",
        default=[],
        metavar="EXPR",
        help="check, e.g. 'c == a + b', or one of add, copy, gemm; on the CPU also any of race,oob,uninit,sync,strict",
    )
    p.add_argument(
        "--report",
        action="append",
        default=[],
        metavar="NAMES",
        help="on the CPU, any of banks,coalescing,occupancy,timeline (timeline needs --timeline or --report-json)",
    )
    p.add_argument(
        "--timeline", metavar="FILE", help="draw the timeline of the warps on the CPU to FILE (.svg, .html, .png)"
    )
    p.add_argument("--report-json", metavar="FILE", help="write the report to FILE as JSON ('-': standard output)")
    p.add_argument(
        "--schedule",
        default="round-robin",
        metavar="NAME",
        help="warp schedule on the CPU: round-robin, reverse, random (by --seed), adversarial, or the replay:... that "
        "cute-prove prints",
    )
    p.add_argument(
        "--max-steps",
        type=int,
        metavar="N",
        help="on the CPU, report a loop that makes no progress in N ops of a warp (default: 10^6)",
    )
    p.add_argument(
        "--blocks",
        metavar="WHICH",
        help="run only these blocks on the CPU: 0,5,16:32 or sample:16[:SEED]; checks cover the elements they write",
    )
    p.add_argument(
        "--field",
        metavar="PRIME",
        help="on the CPU, check values exactly modulo a prime, or 'auto': random residues replace random numbers",
    )
    p.add_argument("--grid", metavar="X,Y,Z", help="grid dimensions (default: those of the host function)")
    p.add_argument("--block", metavar="X,Y,Z", help="block dimensions (default: those of the host function)")
    p.add_argument("--smem", type=_count, metavar="BYTES", help="dynamic shared memory in bytes")
    p.add_argument("--seed", type=_count, default=0, help="seed of the random inputs")
    p.add_argument(
        "--repeat", type=_count, default=0, metavar="N", help="launch N more times and print the median time"
    )
    p.add_argument("--keep", metavar="DIR", help="write the output of each compilation stage to DIR")
    p.add_argument("--pipeline", default="nvptx", metavar="NAME[=K=V,…]", help="named pipeline (default: nvptx)")
    p.add_argument("--chip", help=f"GPU architecture (default: {DEFAULT_CHIP})")
    p.add_argument("--lineinfo", action="store_true", help="emit line information for profilers")
    p.add_argument("--no-cache", action="store_true", help="ignore the compile cache")
    p.add_argument(
        "--host",
        nargs="?",
        const="main",
        metavar="FUNC",
        help="run a host function (default: main) on the CPU instead of a kernel",
    )
    p.add_argument(
        "-q", "--quiet", action="store_true", help="print errors only; no progress bar unless --progress is given"
    )
    add_options(p)
    return p


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``cute-run`` with these arguments (default: ``sys.argv``) and return the exit status."""
    if argv is not None:
        return _main(argv, as_program=False)
    gc.disable()  # Imports produce no garbage.
    leave(_main(None, as_program=True))


def _main(argv: Sequence[str] | None, *, as_program: bool) -> int:
    parser = build_parser()
    options = parser.parse_args(argv)
    if options.file is None and options.host is not None:  # --host FILE
        options.file, options.host = options.host, "main"
    if options.file is None:
        parser.error("the following arguments are required: file")
    for option, given in (("--kernel", options.kernel), ("--check", options.check), ("--in", options.inputs)):
        if options.host is not None and given:
            parser.error(f"{option} applies to kernels and cannot be combined with --host")
    if options.report_json is not None and not options.report:
        parser.error("--report-json needs --report=NAMES; choose from banks,coalescing,occupancy,timeline")

    def work() -> int:
        with reporting(options.progress or ("never" if options.quiet else None), options.progress_json):
            return _run(options, as_program)

    return run_program("cute-run", work)


# ---------------------------------------------------------------------------------------------------------- the run


def _run(options: argparse.Namespace, as_program: bool) -> int:
    if options.file.endswith(".py"):
        raise RunError(not_mlir("cute-run", options.file, f"run python {options.file}"))
    if options.host is not None:
        _run_host(options)
        return 0
    if options.list:
        _list(_open(options, "base"))
        return 0
    request = read_request(options)
    device = _device(options.device)
    if device == "gpu":
        _refuse_what_cpus_do(request, options)
    began = time.perf_counter()
    calls: list[Call] = []

    def settle(module: CompiledModule) -> None:
        calls.append(make_call(module, request, options))

    module = _open(options, _emit(device, request, options), settle)
    if not calls:
        settle(module)
    compiled = time.perf_counter() - began - calls[0].seconds
    call = calls[0]._replace(kernel=module.kernel(calls[0].kernel.name))  # The kernel now has machine code.
    run = None
    if options.field is not None:
        return 0 if _check_field(call, request, options) else 1
    if device == "gpu":
        result = _run_gpu(call, request, max(5, options.repeat))
    else:
        if as_program:
            collect_rarely()
        result, run = _run_cpu(call, request, options)
    return 0 if _report(module, call, request, result, run, compiled, options) else 1


def _refuse_what_cpus_do(request: RunRequest, options: argparse.Namespace) -> None:
    if request.sanitizers or request.reports:
        names = ", ".join([*(request.sanitizers or ()), *request.reports])
        raise RunError(f"{names}: available on the CPU interpreter only; use --device=cpu")
    if options.field is not None:
        raise RunError("--field: available on the CPU interpreter only; use --device=cpu")
    if options.blocks is not None:
        raise RunError("--blocks: available on the CPU interpreter only; use --device=cpu")


def _emit(device: str, request: RunRequest, options: argparse.Namespace) -> Emit:
    """Return the last compilation stage.  The CPU needs machine code only to report occupancy (registers)."""
    if device == "gpu" or options.keep:
        return "auto"
    if "occupancy" in request.reports:
        from cute_dialect.pipelines.upstream import is_available  # late: start-up

        return "auto" if is_available() else "base"
    return "base"


def _report(
    module: CompiledModule,
    call: Call,
    request: RunRequest,
    result: Result,
    run: RunReport | None,
    compiled: float,
    options: argparse.Namespace,
) -> bool:
    """Print the report and save outputs; return True if all checks hold."""
    from cute_dialect.tools.run_inputs import Tensor  # late: start-up
    from cute_dialect.tools.run_report import Report  # late: start-up

    tensors = [a for a in call.arguments if isinstance(a, Tensor)]
    report = Report(options.quiet)
    report.summary(options.file, module, call, result, compiled)
    if run is not None:
        report.interpreter(run)
    written = run.written_elements if run is not None and options.blocks is not None else None
    ok = report.tensors(tensors, written)
    ok = report.checks(request.expressions, call.kernel.target.names, call.arguments, written) and ok
    for tensor in tensors:
        if tensor.name in call.outs:
            _save(call.outs[tensor.name], tensor.array)
            report.line(f"  saved   {tensor.name} to {call.outs[tensor.name]}")
    if run is not None:
        _print_profile(report, run, options.report_json)
        if options.timeline is not None:
            from cute_dialect.viz.timeline import draw_timeline  # late: start-up

            draw_timeline(run, file=options.timeline)
            report.line(f"  timeline {options.timeline}")
    if options.keep:
        report.line(f"  stages  {options.keep}")
    return ok


def _open(
    options: argparse.Namespace, emit: Emit, settle: Callable[[CompiledModule], None] | None = None
) -> CompiledModule:
    """Load a compiled folder or a cache entry, or compile the file.

    A file that is compiled is passed to ``settle`` before machine code is generated.
    """
    if os.path.isdir(options.file):
        return load(options.file)
    from cute_dialect.pipelines.compilation import (
        CompileRequest,  # late: start-up
        read_text,  # late: start-up
    )
    from cute_dialect.pipelines.compiler import compile_module, compiled_before  # late: start-up
    from cute_dialect.pipelines.registry import with_options  # late: start-up

    source, chip = _Path(options.file), options.chip
    pipeline = with_options(options.pipeline, {"lineinfo": "true"} if options.lineinfo else {})
    cache = not options.no_cache and not options.keep
    request = CompileRequest(source, pipeline=pipeline, chip=chip, emit=emit, save=options.keep, cache=cache)
    found = compiled_before(request) if cache else None
    if found is not None:
        return found
    read_text(source)
    return compile_module(request, before_code=settle if emit != "base" and not options.keep else None)


class _Path(os.PathLike[str]):
    """A file name, distinguished by type from source text."""

    def __init__(self, name: str):
        self._name = name

    def __fspath__(self) -> str:
        return self._name


def _list(module: CompiledModule) -> None:
    for name in [*module.names, *(h["name"] for h in module.manifest["hosts"])]:
        kernel = module.kernel(name)
        print(f"@{name}" + (f"  (launched by @{kernel.target.host['name']})" if kernel.target.host else ""))
        several = len(kernel.target.launches) > 1
        for choice in kernel.target.launches:
            if several:
                print(f"    launches @{choice.kernel['name']}")
            for variant in choice.variants:
                print(f"    tried first: @{variant['name']}")
        for parameter, param in zip(kernel.target.names, kernel.params):
            print(f"    {parameter}: {param['type']}")


def _device(name: str) -> str:
    from cute_dialect.runtime.driver import NoGpuError, driver  # late: start-up

    if name == "cpu":
        return "cpu"
    try:
        driver()
    except NoGpuError:
        if name == "gpu":
            raise
        return "cpu"
    return "gpu"


def _run_cpu(call: Call, request: RunRequest, options: argparse.Namespace) -> tuple[Result, RunReport | None]:
    from cute_dialect.tools.run_inputs import Tensor  # late: start-up
    from cute_dialect.tools.run_report import Result  # late: start-up

    run = call.kernel(
        *values_of(call.arguments),
        device="cpu",
        grid=request.grid,
        block=request.block,
        smem=request.smem,
        checks=request.sanitizers or word("CUTE_CHECKS") or "auto",
        reports=request.reports,
        schedule=options.schedule,
        seed=options.seed,
        max_steps=options.max_steps,
        blocks=options.blocks,
        unwritten=[a.name for a in call.arguments if isinstance(a, Tensor) and a.init == "poison"],
    )
    return Result("", 1e6 * run.seconds if run is not None else 0.0, 0), run


def _check_field(call: Call, request: RunRequest, options: argparse.Namespace) -> bool:
    """Check the expressions over a field and print the verdict; return True if they hold."""
    from cute_dialect.interp.validation.equivalence import Subject, compare  # late: start-up
    from cute_dialect.tools.run_check import compare_over_field  # late: start-up
    from cute_dialect.tools.run_inputs import Tensor, letters  # late: start-up
    from cute_dialect.tools.run_report import Report  # late: start-up

    names = call.kernel.target.names
    tensors = [a for a in call.arguments if isinstance(a, Tensor)]
    plain = {n: a for n, a in zip(names, call.arguments) if not isinstance(a, Tensor)}

    def run(algebra: object, lines: bool) -> RunReport | None:
        checks = request.sanitizers or ("none" if not lines else ())
        return call.kernel(
            *values_of(call.arguments),
            device="cpu",
            grid=request.grid,
            block=request.block,
            smem=request.smem,
            checks=(*checks, "race") if lines else checks,
            schedule=options.schedule,
            seed=options.seed,
            max_steps=options.max_steps,
            field=algebra,
        )

    def sides(before: Contents, after: Contents) -> list[Side]:
        now, first = {**plain, **after}, {**plain, **before}
        known = letters(names)
        values: dict[str, object] = {f"in_{name}": first[names[i]] for name, i in known.items()}
        values.update({name: now[names[i]] for name, i in known.items()})
        every = [n for n, a in zip(names, call.arguments) if isinstance(a, Tensor)]
        return [side for text in request.expressions for side in compare_over_field(text, values, every)]

    fixed = [t.name for t in tensors if t.init not in ("random", "randn", "rand", "randint", "poison")]
    subject = Subject(run, {t.name: t.array for t in tensors}, fixed)
    try:
        verdict = compare(subject, sides, prime=request.prime, seed=options.seed)
    except CheckError as e:
        raise RunError(f"--check: {e}") from e
    report = Report(options.quiet)
    text = " and ".join(request.expressions)
    if verdict.difference is None:
        report.line(f"  check   {text}: ok, {verdict}")
        return True
    report.error(f"check {text!r} failed: {verdict}")
    return False


def _print_profile(report: Report, run: RunReport, path: str | None) -> None:
    """Print the profile counters and warnings of the interpreter."""
    for text in run.warnings:
        report.line(f"  warning {text}")
    if path is not None:
        import json

        found = run.profile.json() if run.profile is not None else {}
        if run.timeline is not None:
            found["timeline"] = run.timeline.json()
        text = json.dumps(found, indent=2)
        if path == "-":
            print(text)
            return
        try:
            os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
            with open(path, "w", encoding="utf-8") as f:
                f.write(text + "\n")
        except OSError as e:
            raise RunError(f"--report-json: cannot write {path}: {e.strerror}") from e
        return
    if run.profile is None:
        return
    from rich.console import Console

    if run.profile.lines:
        report.table(run.profile.table(), Console(width=None if sys.stdout.isatty() else 120))
    if "occupancy" in run.profile.reports:
        report.line(f"  occupancy {run.profile.occupancy}")


def _run_gpu(call: Call, request: RunRequest, repeat: int) -> Result:
    """Run on copies of the whole allocations, including padding and guards, to detect stray writes."""
    import statistics

    from cute_dialect.runtime.arrays import view_of  # late: start-up
    from cute_dialect.runtime.driver import driver  # late: start-up
    from cute_dialect.runtime.host_memory import Staged  # late: start-up
    from cute_dialect.tools.run_inputs import Tensor  # late: start-up
    from cute_dialect.tools.run_report import Result  # late: start-up

    gpu = driver()
    gpu.set_context(gpu.primary_context(0))
    tensors = [a for a in call.arguments if isinstance(a, Tensor)]
    storages = [view_of(a.storage) for a in tensors]
    with Staged(gpu, storages, [a.name for a in tensors]) as copies:
        places = iter(copies.views)
        values: list[object] = []
        for a in call.arguments:
            if not isinstance(a, Tensor):
                values.append(a)
                continue
            pointer = next(places).pointer + (a.array.ctypes.data - a.storage.ctypes.data)
            values.append(view_of(a.array)._replace(pointer=pointer, device=0, library="staged"))
        launch = call.kernel.bind(*values, grid=request.grid, block=request.block, smem=request.smem)
        launch(0)
        gpu.synchronize(0)
        copies.back()
        events = [(gpu.new_event(), gpu.new_event()) for _ in range(repeat)]
        for start, end in events:  # Launches are queued without waiting, so host time is excluded.
            gpu.record(start)
            launch(0)
            gpu.record(end)
        return Result(gpu.name(0), statistics.median(gpu.elapsed(*pair) for pair in events), repeat)


def _save(path: str, array: NDArray[np.generic]) -> None:
    import numpy as np

    try:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        np.save(path, np.ascontiguousarray(array))
    except OSError as e:
        raise RunError(f"cannot write {path}: {e.strerror}") from e


# -------------------------------------------------------------------------------------------------------------- host


def _run_host(options: argparse.Namespace) -> None:
    from cute_dialect.pipelines.compilation import read_text  # late: start-up
    from cute_dialect.pipelines.compiler import lower_to_base  # late: start-up
    from cute_dialect.pipelines.worker import run_host  # late: start-up

    if os.path.isdir(options.file):
        raise RunError("--host runs a .mlir file, not a compiled folder")
    read_text(_Path(options.file))
    run_host(lower_to_base(_Path(options.file), pipeline="host"), options.host, options.file)


if __name__ == "__main__":
    sys.exit(main())
