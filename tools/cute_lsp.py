"""The ``cute-lsp`` program: a language server for MLIR with cute ops and for Python kernels."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Sequence

from cute_dialect.tools.command_line import new_parser

EPILOG = """\
An editor starts this program and communicates with it by the Language Server Protocol over standard input and output.
docs/editors.md describes the set-up of VS Code, Neovim and other editors.  For Neovim 0.11:

    vim.lsp.config("cute", { cmd = { "cute-lsp" }, filetypes = { "mlir", "python" } })
    vim.lsp.enable("cute")

.mlir: diagnostics of cute-opt --pipeline=base for the text in the editor, with "did you mean" as a quick fix; types,
drawings of layouts and documentation on hover; definitions, references and symbols; completion of ops, types,
attributes and passes; inlay hints for types that the text omits.

Python: a file that mentions cute_dialect is imported as cute-check does, and its functions with an example
(@cute.example) or complete annotations are traced: diagnostics, the values of names with their layouts, and
documentation and completion of the language's names.  Other servers provide definitions and types of Python.  Each
check runs in its own process and is stopped after --timeout.

Needs pip install 'cute-dialect[lsp]'.
"""


def build_parser() -> argparse.ArgumentParser:
    p = new_parser(
        "cute-lsp", "A language server for MLIR with cute ops and for kernels in Python.", EPILOG, allow_abbrev=True
    )
    p.add_argument(
        "--pipeline", default="base", metavar="NAME", help="pipeline for .mlir; 'none' only verifies (default: base)"
    )
    p.add_argument(
        "--chip", default="", metavar="sm_90a", help="GPU architecture for Python kernels (default: $CUTE_CHIP)"
    )
    p.add_argument(
        "--delay", type=float, default=0.15, metavar="S", help="seconds without a change before a check (default: 0.15)"
    )
    p.add_argument(
        "--timeout", type=float, default=60, metavar="S", help="time limit of a check in seconds (default: 60)"
    )
    p.add_argument(
        "--pictures",
        choices=("auto", "always", "never"),
        default="auto",
        help="show drawings of layouts on hover; auto: except in terminal editors",
    )
    p.add_argument("--log", metavar="FILE", help="write a log to FILE")
    p.add_argument("--stdio", action="store_true", help="use standard input and output (always the case)")
    return p


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``cute-lsp`` and return the exit status."""
    parser = build_parser()
    options = parser.parse_args(argv)
    if options.chip:
        from cute_dialect.arch.targets import TARGETS  # late: start-up

        if options.chip not in TARGETS:
            parser.error(f"--chip: expected one of {', '.join(TARGETS)}, got {options.chip!r}")
    if options.pipeline != "none":
        from cute_dialect.pipelines.registry import PipelineError, named_pipeline  # late: start-up

        try:
            named_pipeline(options.pipeline)
        except PipelineError as e:
            parser.error(f"--pipeline: {e}")
    if not options.delay >= 0 or not options.timeout > 0:
        parser.error("--delay must be at least 0 and --timeout above 0")
    if options.log is not None:
        try:
            handler = logging.FileHandler(options.log)
        except OSError as e:
            parser.error(f"--log: {options.log}: {e.strerror}")
        logging.basicConfig(handlers=[handler], level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    else:
        logging.basicConfig(level=logging.ERROR)
    try:
        from cute_dialect.tools.lsp.features import make_server  # late: start-up
        from cute_dialect.tools.lsp.server import Settings  # late: start-up
    except ModuleNotFoundError as e:
        from cute_dialect.runtime.settings import missing_package  # late: start-up

        missing = missing_package(e)
        if missing is None:
            raise
        print(f"cute-lsp: error: {missing}", file=sys.stderr)
        return 1
    server = make_server(Settings(options.pipeline, options.chip, options.delay, options.timeout, options.pictures))
    received, sent = os.dup(0), os.dup(1)  # Output of print must not mix with protocol messages.
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    server.start_io(os.fdopen(received, "rb"), os.fdopen(sent, "wb"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
