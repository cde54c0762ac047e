"""Benchmark of the memos of the parser and the verifier: ``python test/bench/memos.py [RUNS]``.

The parser stores each line's text with its op (``ir/parsing.py``), and the verifier the forms of ops that it found
valid (``ir/verifier.py``). Each file is parsed and verified alternately with and without the memos. The results are
medians of user CPU time.
"""

from __future__ import annotations

import gc
import resource
import sys
from pathlib import Path
from statistics import median
from unittest import mock

from cute_dialect.ir.context import make_context
from cute_dialect.ir.diagnostics import DiagnosticEngine, Source
from cute_dialect.ir.parsing import LocatedParser, parse_module
from cute_dialect.ir.verifier import VerifiedForms, verify
from cute_dialect.kernels.gemm import gemm_text
from cute_dialect.kernels.gemm.config import GemmConfig
from cute_dialect.tools.bench.cases.cute_opt import large_file

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "gemm_sm90.mlir"
FILES = {"gemm_sm90.mlir": EXAMPLE.read_text(), "one GEMM": gemm_text(GemmConfig()), "10,000 ops": large_file(10000)}


def cpu() -> float:
    """Return the user CPU time of this process so far, in milliseconds."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_utime * 1e3


def measure(text: str) -> tuple[float, float]:
    """Return the milliseconds for parsing and for verifying a text."""
    engine, context = DiagnosticEngine(), make_context()
    start = cpu()
    module = parse_module(context, Source("-", text), engine)
    read = cpu()
    assert module is not None and verify(module, engine)
    return read - start, cpu() - read


def without(text: str) -> tuple[float, float]:
    """Return the same times without the memos."""
    with (
        mock.patch.object(LocatedParser, "_line", lambda *_: None),
        mock.patch.object(VerifiedForms, "holds", lambda *_: False),
    ):
        return measure(text)


def main(runs: int) -> None:
    """Print one line per file."""
    gc.disable()
    for name, text in FILES.items():
        measure(text), without(text)
        rows = [(*measure(text), *without(text), gc.collect()) for _ in range(runs)]
        parse, check, plain_parse, plain_check = (median(row[i] for row in rows) for i in range(4))
        print(
            f"{name}: parse {parse:.0f} ms, without its memo {plain_parse:.0f} ({1 - parse / plain_parse:.0%} saved); ",
            end="",
        )
        print(f"verify {check:.0f} ms, without {plain_check:.0f} ({1 - check / plain_check:.0%} saved)")


main(int(sys.argv[1]) if len(sys.argv) > 1 else 11)
