"""Print the shipped kernels as IR into test/examples, after a change of their source or comments.

python -m cute_dialect.tools.docs.examples            write the files; names those whose code changed
python -m cute_dialect.tools.docs.examples --check    exit status 1 if a file is not current
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from cute_dialect.kernels.copies.transpose import transpose_text
from cute_dialect.kernels.elementwise.add import elementwise_add_text
from cute_dialect.kernels.gemm import gemm_text
from cute_dialect.kernels.gemm.ampere import AmpereConfig, ampere_gemm_text
from cute_dialect.kernels.gemm.sgemm import RUNGS, sgemm_text
from cute_dialect.kernels.rows.config import RowConfig
from cute_dialect.kernels.rows.sums import sum_text

EXAMPLES = Path(__file__).resolve().parents[2] / "test" / "examples"


def texts() -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each file."""
    yield "elementwise_add.mlir", elementwise_add_text()
    yield "transpose.mlir", transpose_text()
    yield "row_sum.mlir", sum_text("sum", "f32", 4096, RowConfig(256, 4))
    for rung in RUNGS:
        yield f"sgemm_{rung}.mlir", sgemm_text(rung)
    yield "gemm_sm80.mlir", ampere_gemm_text(AmpereConfig(vectors=(8, 1)))
    yield "gemm_sm90.mlir", gemm_text()


def code_of(text: str) -> str:
    """Return IR without its comments."""
    return "\n".join(line.rstrip() for line in re.sub(r"//.*", "", text).split("\n") if line.strip())


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m cute_dialect.tools.docs.examples",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--check", action="store_true", help="write nothing; exit status 1 if a file is not current")
    options = parser.parse_args(arguments)
    stale = False
    for name, text in texts():
        path = EXAMPLES / name
        old = path.read_text() if path.exists() else ""
        if old == text:
            continue
        stale = True
        change = "comments" if code_of(old) == code_of(text) else "code"
        print(f"{name}: the {change} {'differs' if change == 'code' else 'differ'}")
        if not options.check:
            path.write_text(text)
    return int(stale and options.check)


if __name__ == "__main__":
    sys.exit(main())
