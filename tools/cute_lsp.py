"""``cute-lsp``: a language server for MLIR with cute ops and for kernels in Python; ``cute-lsp --help`` says more."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Sequence

from cute_dialect.tools.argparse_once import Once

__all__ = ["main"]

EPILOG = """\
An editor starts this program and speaks the Language Server Protocol with it over standard input and output; nothing
is to be seen on a terminal.  docs/editors.md has the set-up of VS Code, Neovim and others.  In short, for Neovim 0.11:

    vim.lsp.config("cute", { cmd = { "cute-lsp" }, filetypes = { "mlir", "python" } })
    vim.lsp.enable("cute")

.mlir: what cute-opt --pipeline=base says of the text in the editor, saved or not, underlined, with "did you mean" as a
quick fix; types, layouts as drawings and documentation under the pointer; definitions, references and symbols; ops,
types, attributes and passes completed; types that the text does not say as inlay hints.

Python: files that mention cute_dialect are run as a module, as cute-check does it, and functions are traced that have
an example (@cute.example) or annotations that say enough: what is wrong, what names were bound to with their layouts,
documentation and completion of the names of the language.  Definitions and types of Python are left to other servers.
Each check is a process of its own; --timeout ends it.

Needs pip install 'cute-dialect[lsp]'.
"""


def build_parser() -> argparse.ArgumentParser:
    """Make the parser of the command line."""
    p = argparse.ArgumentParser(
        prog="cute-lsp",
        description="A language server for MLIR with cute ops and for kernels in Python.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    p.register("action", None, Once)
    p.add_argument("--pipeline", default="base", metavar="NAME", help="for .mlir; 'none' verifies only (default: base)")
    p.add_argument(
        "--chip", default="", metavar="sm_90a", help="what kernels in Python are traced for (default: $CUTE_CHIP)"
    )
    p.add_argument(
        "--delay", type=float, default=0.15, metavar="S", help="seconds of quiet before a check (default: 0.15)"
    )
    p.add_argument("--timeout", type=float, default=60, metavar="S", help="seconds that a check may take (default: 60)")
    p.add_argument(
        "--pictures",
        choices=("auto", "always", "never"),
        default="auto",
        help="drawings of layouts in what is shown under the pointer; auto: not for editors in terminals",
    )
    p.add_argument("--log", metavar="FILE", help="write there what goes on")
    p.add_argument("--stdio", action="store_true", help="as it is anyway; some clients say so")
    return p


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``cute-lsp``; give the exit status."""
    parser = build_parser()
    options = parser.parse_args(argv)
    if options.chip:
        from cute_dialect.arch.targets import TARGETS

        if options.chip not in TARGETS:
            parser.error(f"--chip: expected one of {', '.join(TARGETS)}, got {options.chip!r}")
    if options.pipeline != "none":
        from cute_dialect.pipelines.registry import PipelineError, named_pipeline

        try:
            named_pipeline(options.pipeline)
        except PipelineError as e:
            parser.error(f"--pipeline: {e}")
    if not options.delay >= 0 or not options.timeout > 0:
        parser.error("--delay and --timeout: expected seconds, got a number below 0")
    if options.log is not None:
        try:
            handler = logging.FileHandler(options.log)
        except OSError as e:
            parser.error(f"--log: {options.log}: {e.strerror}")
        logging.basicConfig(handlers=[handler], level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    else:
        logging.basicConfig(level=logging.ERROR)
    try:
        from cute_dialect.tools.lsp.features import make_server
        from cute_dialect.tools.lsp.server import Settings
    except ModuleNotFoundError as e:
        from cute_dialect.runtime.settings import missing_package

        missing = missing_package(e)
        if missing is None:
            raise
        print(f"cute-lsp: error: {missing}", file=sys.stderr)
        return 1
    server = make_server(Settings(options.pipeline, options.chip, options.delay, options.timeout, options.pictures))
    received, sent = os.dup(0), os.dup(1)  # nothing that prints may write between messages
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    server.start_io(os.fdopen(received, "rb"), os.fdopen(sent, "wb"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
