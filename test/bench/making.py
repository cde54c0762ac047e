"""Benchmark of op construction: ``python test/bench/making.py [TIMES]``.

The result types come from the memo of ``dialect/inference.py``, because each iteration has the same operand types.
The result is the minimum user CPU time of 5 runs, with Python's garbage collector off, as during compilation.
"""

from __future__ import annotations

import gc
import resource
import sys

from xdsl.dialects.test import TestOp
from xdsl.parser import Parser

from cute_dialect.dialect.inference import make_inferred
from cute_dialect.ir.context import make_context

OPS = {
    "arith.addi": ("i32", "i32"),
    "arith.cmpi": ("i32", "i32"),
    "cute.slice": (
        '!cute.memref<f32, gmem, align<16>, "((4,8),(?,?)):((1,4),(?{div=8},?))">',
        '!cute.coord<"((_,_),(?,3))">',
    ),
    "cute.memref.load": ('!cute.memref<f32, gmem, "(?,?):(?,1)">', '!cute.coord<"(?,?)">'),
}
PROPERTIES = {"arith.cmpi": {"predicate": "1 : i64"}}


def cpu() -> float:
    """Return the user CPU time of this process so far, in microseconds."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_utime * 1e6


def main(times: int) -> None:
    """Print one line per op."""
    gc.disable()
    context = make_context("all")
    for name, types in OPS.items():
        op_class = context.get_optional_op(name)
        assert op_class is not None
        properties = {k: Parser(context, v).parse_attribute() for k, v in PROPERTIES.get(name, {}).items()}
        least = float("inf")
        for _ in range(5):
            values = TestOp.create(result_types=[Parser(context, t).parse_attribute() for t in types]).results
            start = cpu()
            for _ in range(times):
                make_inferred(op_class, values, properties)
            least = min(least, (cpu() - start) / times)
        print(f"{name}: {least:.1f} µs")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20000)
