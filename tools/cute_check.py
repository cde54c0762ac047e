"""The ``cute-check`` program: trace Python kernels and verify ``.mlir`` files without a GPU.

It serves editors, hooks and CI.

cute-check kernels.py gemm.mlir
cute-check --json src/*.py
cute-check --sarif -o report.sarif src/*.py
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from textwrap import indent
from typing import TYPE_CHECKING

from cute_dialect.runtime.progress import add_options, reporting, track
from cute_dialect.runtime.settings import SettingError
from cute_dialect.tools.check_report import Finding, as_json, as_sarif, as_text
from cute_dialect.tools.command_line import new_parser

if TYPE_CHECKING:
    from cute_dialect.tools.check_python import Unchecked

EPILOG = """\
Python: the file is imported as a module, without the block under `if __name__ == "__main__"`.  Each function under
@cute.jit or @cute.kernel is traced and lowered if it has an example

    @cute.example(lambda: (cute.runtime.make_fake_compact_tensor(cute.Float32, (cute.sym_int(),)), 2.0))
    @cute.jit
    def scale(x, by): ...

or complete annotations (cute.Tensor["f32", "m", "n"], cute.Int32).  The example of a kernel also takes grid= and
block=.  The first argument of a method is its receiver.

.mlir: the file is parsed, verified and run through a pipeline (--pipeline, default base).

Exit status: 0 if there are no errors, 1 if there are, 2 for an invalid command line.
As a pre-commit hook: id cute-check of this repository, or, if it is installed,
  - {id: cute-check, name: cute-check, entry: cute-check, language: system, files: '\\.(py|mlir)$'}
"""


def build_parser() -> argparse.ArgumentParser:
    p = new_parser(
        "cute-check",
        "Trace kernels of Python files and verify .mlir files; print errors as FILE:LINE:COL.",
        EPILOG,
        allow_abbrev=True,
    )
    p.add_argument("files", nargs="+", metavar="FILE", help=".py or .mlir")
    forms = p.add_mutually_exclusive_group()
    forms.add_argument("--json", action="store_true", help="print a JSON list with one object per diagnostic")
    forms.add_argument("--sarif", action="store_true", help="print SARIF 2.1.0 for code hosts")
    p.add_argument("-o", "--output", metavar="FILE", help="write the diagnostics to FILE instead of standard output")
    p.add_argument("--chip", metavar="sm_90a", help="GPU architecture for Python kernels (default: $CUTE_CHIP)")
    p.add_argument(
        "--pipeline", default="base", metavar="NAME", help="pipeline for .mlir; 'none' only verifies (default: base)"
    )
    p.add_argument(
        "--remarks", action="store_true", help="also print performance remarks; they do not change the exit status"
    )
    p.add_argument("-v", "--verbose", action="store_true", help="list each function and whether it was checked")
    add_options(p)
    return p


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``cute-check`` and return the exit status."""
    parser = build_parser()
    options = parser.parse_args(argv)
    if options.chip is not None:
        from cute_dialect.arch.targets import TARGETS  # late: start-up

        if options.chip not in TARGETS:
            parser.error(f"--chip: expected one of {', '.join(TARGETS)}, got {options.chip!r}")
    for file in options.files:
        if not file.endswith((".py", ".mlir")):
            parser.error(f"expected files that end in .py or .mlir, got '{file}'")
    try:
        with reporting(options.progress, options.progress_json):
            found, checked, advice = _check(options)
    except SettingError as e:
        parser.error(str(e))
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    for line in advice:
        print(line, file=sys.stderr)
    text = as_json(found) if options.json else as_sarif(found) if options.sarif else as_text(found)
    if options.output is not None:
        try:
            with open(options.output, "w", encoding="utf-8") as f:
                f.write(text)
        except OSError as e:
            print(f"cute-check: error: {options.output}: {e.strerror}", file=sys.stderr)
            return 2
    else:
        sys.stdout.write(text)
    errors = sum(f.severity == "error" for f in found)
    if not (options.json or options.sarif):
        what = f"{errors} error{'s' * (errors != 1)}" if errors else "no errors"
        files = f"{len(options.files)} file{'s' * (len(options.files) != 1)}"
        print(f"{what} in {files}; functions and modules checked: {checked}", file=sys.stderr)
    return 1 if errors else 0


def _check(options: argparse.Namespace) -> tuple[list[Finding], int, list[str]]:
    """Check the files.

    Returns the findings, the number of checked functions and modules, and advice for files without a checked function.
    """
    found: list[Finding] = []
    checked = 0
    advice: list[str] = []
    for file in track(options.files, "checking", "files"):
        if file.endswith(".py"):
            from cute_dialect.tools.check_python import check_python  # late: start-up

            findings, count, unchecked = check_python(file, options.chip, options.remarks, options.verbose)
            if unchecked and not count:
                advice.append(_advice(file, unchecked))
        else:
            from cute_dialect.tools.check_mlir import check_mlir  # late: start-up

            findings, count = check_mlir(file, options.pipeline), 1
        found += findings
        checked += count
    return found, checked, advice


def _advice(file: str, unchecked: Sequence[Unchecked]) -> str:
    """Return advice for a file in which no function could be checked."""
    names = ", ".join(u.name for u in unchecked)
    first = next((u for u in unchecked if u.decorator == "jit"), unchecked[0])
    return (
        f"{file}: {names} not checked: no example and incomplete annotations. Add"
        f' an example of its arguments, or annotations such as cute.Tensor["f32", "m", "n"]; {file}:{first.line}:\n\n'
        f"{indent(first.advice, '    ')}\n\n"
        "Replace the names in the example by values: a numpy or torch array, a number, or a tensor without memory\n"
        "(cute.runtime.make_fake_compact_tensor(cute.Float32, (cute.sym_int(), 64))). See cute-check --help.\n"
    )


def as_program() -> None:
    """Run ``cute-check`` as a program; files may import modules from the current folder."""
    sys.path.insert(0, os.getcwd())
    sys.exit(main())


if __name__ == "__main__":
    as_program()
