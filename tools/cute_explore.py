"""The ``cute-explore`` program: an HTML page of a kernel with its source, IR, machine code and profile.

    cute-explore examples/row_sum.py -o row_sum.html
    cute-explore test/examples/transpose.mlir --in 100x70 -o transpose.html

Exit status: 0 if the page was written, 1 for an error, 2 for an invalid command line.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cute_dialect.arch.targets import DEFAULT_CHIP
from cute_dialect.errors import CompileError
from cute_dialect.files import replace_file
from cute_dialect.runtime.progress import Task, add_options, reporting
from cute_dialect.tools.command_line import new_parser
from cute_dialect.tools.programs import report_user_error

if TYPE_CHECKING:
    from cute_dialect.explore.runs import Run

EPILOG = """\
.mlir: arguments are given as for cute-run (--in a=64x128, --in b=b.npy).  They are also used for a .py file whose
example has no memory.  Without --in, dynamic extents are 128 (--size) and arrays hold random numbers.

.py: a function with an example (@cute.example, or complete annotations: see cute-check --help) is traced with it.  If
there is none, the file runs as a program on the CPU interpreter, with the arguments after --, and the page shows the
functions that it calls:  cute-explore gemm.py -- --m 256

The page needs no server and no network.  PTX needs upstream MLIR, SASS needs ptxas and nvdisasm (pip install
nvidia-cuda-nvcc nvidia-cuda-nvdisasm); the page reports missing tools.
"""


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a number of at least 1, got {text!r}")
    return int(text)


def build_parser() -> argparse.ArgumentParser:
    p = new_parser(
        "cute-explore", "Write one HTML page of a kernel: source, IR of each stage, PTX, SASS and profile.", EPILOG
    )
    p.add_argument("file", metavar="FILE", help=".py or .mlir")
    p.add_argument("-o", "--output", metavar="FILE.html", help="output file (default: FILE's name with .html)")
    p.add_argument("--kernel", metavar="NAME", help=".mlir: kernel or host function to run")
    p.add_argument("--function", metavar="NAME", help=".py: function to show (default: the first)")
    p.add_argument(
        "--in", dest="inputs", action="append", default=[], metavar="TEXT", help="an argument, as for cute-run"
    )
    p.add_argument("--size", type=_positive, default=128, metavar="N", help="value of dynamic extents (default: 128)")
    p.add_argument("--blocks", metavar="WHICH", help="run only these blocks, such as 0,5,16:32 or sample:16:0")
    p.add_argument("--seed", type=int, default=0, help="seed of the random inputs")
    p.add_argument(
        "--no-run",
        action="store_true",
        help="do not run the kernel; the page then has no accesses, timeline or roofline",
    )
    p.add_argument("--chip", help=f"GPU architecture (default: {DEFAULT_CHIP})")
    p.add_argument("--pipeline", default="nvptx", metavar="NAME[=K=V,…]", help=".mlir: named pipeline")
    p.add_argument(
        "-q", "--quiet", action="store_true", help="print errors only; no progress bar unless --progress is given"
    )
    add_options(p)
    return p


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``cute-explore`` and return the exit status."""
    given = list(sys.argv[1:] if argv is None else argv)
    at = given.index("--") if "--" in given else len(given)
    parser = build_parser()
    options = parser.parse_args(given[:at])
    options.arguments = given[at + 1 :]
    if not options.file.endswith((".py", ".mlir")):
        parser.error(f"expected a file that ends in .py or .mlir, got '{options.file}'")
    if options.arguments and options.file.endswith(".mlir"):
        parser.error("arguments after -- go to a Python program, not to a .mlir file")
    options.output = options.output or f"{os.path.splitext(os.path.basename(options.file))[0]}.html"
    if os.path.isdir(options.output) or not options.output.endswith((".html", ".htm")):
        parser.error(f"-o: expected a file that ends in .html, got '{options.output}'")
    from cute_dialect.tools.explore_subjects import ExploreError, SourceError  # late: start-up

    try:
        with reporting(options.progress or ("never" if options.quiet else None), options.progress_json):
            path = explore(options)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except (CompileError, SourceError) as e:
        print(e, file=sys.stderr)
        return 1
    except ExploreError as e:
        print(f"cute-explore: error: {e}", file=sys.stderr)
        return 1
    except Exception as e:
        if not report_user_error(e, "cute-explore"):
            raise
        return 1
    if not options.quiet:
        print(f"wrote {path}; open it in a browser")
    return 0


def explore(options: argparse.Namespace) -> str:
    """Write the page and return its path."""
    from cute_dialect.explore.collect import collect  # late: start-up
    from cute_dialect.explore.drawings import drawings_of  # late: start-up
    from cute_dialect.explore.page import (  # late: start-up
        measured,  # late: start-up
        page,
        page_data,
    )
    from cute_dialect.tools.explore_subjects import ExploreError, of_mlir, of_python  # late: start-up

    with Task("exploring", 3, "parts") as task:
        subject = of_python(options) if options.file.endswith(".py") else of_mlir(options)
        task.advance(name="compiled and run")
        made = collect(subject.module, subject.trace, subject.sources)
        task.advance(name="stages")
        found = measured(made, subject.trace, subject.run)
        drawings = drawings_of(subject.trace, made.groups)
        task.advance(name="drawings")
    facts = " · ".join(_facts(made.code.kernels, subject.run, subject.module.manifest["chip"]))
    file = os.path.basename(options.file)
    title = file if subject.name in (file, "__call__") else f"{subject.name} — {file}"
    data = page_data(title, facts, made, drawings, found)
    try:
        replace_file(Path(options.output), page(data).encode())
    except OSError as e:
        raise ExploreError(f"{options.output}: cannot write the file: {e.strerror}") from e
    return options.output


def _facts(kernels: Sequence[Mapping[str, object]], run: Run, chip: str) -> list[str]:
    """Return the facts next to the title: chip, registers, launch."""
    registers = [f"{k['name']}: {k['registers']} registers" for k in kernels[:2]]
    more = [f"{len(kernels) - 2} more kernels"] if len(kernels) > 2 else []
    return [chip, *registers, *more, *([run.arguments] if run.arguments else [])]


def as_program() -> None:
    """Run ``cute-explore`` as a program; files may import modules from the current folder."""
    sys.path.insert(0, os.getcwd())
    sys.exit(main())


if __name__ == "__main__":
    as_program()
