"""Mutation test of runs over a prime field: shipped GEMMs with one wrong element, term, factor or bound.

    python test/oracle/value_mutants.py                         # all mutants, as in make slow
    python test/oracle/value_mutants.py --only sgemm --share 0.1

A mutant is run at two shapes. It is *found* if its values differ from those of the kernel, or the run ends with a
report. Otherwise it must be equal to the kernel for a reason in `EQUAL`, or it is *missed*, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import collections
import sys
from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple, cast

import numpy as np
from mutations import Mutation, find, mutated, value_mutations
from xdsl.dialects.builtin import ModuleOp

import cute_dialect.lang as cute
from cute_dialect.interp import InterpError
from cute_dialect.interp.errors import location_text
from cute_dialect.interp.field import FieldArray
from cute_dialect.kernels.gemm.sgemm import sgemm_text
from cute_dialect.pipelines import compile as compile_cute
from cute_dialect.runtime.launch import CompiledModule, Kernel


class Subject(NamedTuple):
    """A GEMM: its text, its kernel, two shapes (M, N, K), the element type, and the axes of B."""

    text: Callable[[], str]
    kernel: str
    shapes: tuple[tuple[int, int, int], ...]
    dtype: str
    is_transposed: bool

    def problem(self, shape: tuple[int, int, int]) -> list[np.ndarray]:
        """Return operands and result."""
        m, n, k = shape
        b = (n, k) if self.is_transposed else (k, n)
        return [np.zeros(s, self.dtype) for s in ((m, k), b, (m, n))]


SUBJECTS = {
    "sgemm": Subject(lambda: sgemm_text("smem"), "sgemm", ((63, 64, 33), (64, 95, 64)), "f4", False),
}
_PADDING = "one step more adds products of the zeros that pad K"
EQUAL: dict[tuple[str, str], str] = {("sgemm.mlir:93:7", "a loop ends one step later"): _PADDING}
"""Equivalent mutants: location and change -> the reason."""


class Verdict(NamedTuple):
    """The classification of a mutant: differs, report, equal or missed, and its explanation."""

    how: str
    why: str


def verdict(name: str, module: ModuleOp, compiled: CompiledModule, mutation: Mutation) -> Verdict:
    """Run a mutant at both shapes."""
    subject = SUBJECTS[name]
    changed = mutated(module, subject.kernel, mutation)
    f: Kernel = CompiledModule(compiled.artifact, lambda _: changed).kernel("launch")

    def reference(a: FieldArray, b: FieldArray, c: FieldArray) -> None:
        c[:] = a @ (b.T if subject.is_transposed else b)

    for shape in subject.shapes:
        try:
            cute.testing.assert_equivalent(f, reference, [subject.problem(shape)], runs=1)
        except AssertionError as e:
            return Verdict("differs", str(e).rpartition("\n  ")[2])
        except InterpError as e:
            return Verdict("report", str(e).partition("\n")[0])
    op = next(o for i, o in enumerate(find(module, subject.kernel).walk()) if i == mutation.place)
    reason = EQUAL.get((location_text(op), mutation.what))
    if reason is not None:
        return Verdict("equal", reason)
    return Verdict("missed", "the values are those of the kernel at both shapes")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the mutants and print the counts. Return 1 if one is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", default="", help="subjects whose name holds this")
    parser.add_argument("--share", type=float, default=1.0, help="of the mutants, chosen by --seed (default: all)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--verbose", action="store_true", help="one line per mutant")
    options = parser.parse_args(argv)
    random = Random(options.seed)
    counts: collections.Counter[str] = collections.Counter()
    for name, subject in SUBJECTS.items():
        if options.only not in name:
            continue
        compiled = compile_cute(subject.text(), emit="base", filename=f"{name}.mlir")
        module = cast("ModuleOp", compiled.lowered(subject.kernel))
        kernel = find(module, subject.kernel)
        for mutation in value_mutations(kernel):
            if options.share < 1 and random.random() >= options.share:
                continue
            found = verdict(name, module, compiled, mutation)
            counts[f"{name}: {found.how}"] += 1
            if options.verbose or found.how == "missed":
                op = next(o for i, o in enumerate(kernel.walk()) if i == mutation.place)
                print(f"{found.how:8} {name}: {mutation.what} ({location_text(op)}): {found.why}", flush=True)
    for name, n in sorted(counts.items()):
        print(f"{n:5} {name}")
    return 1 if any(name.endswith("missed") for name in counts) else 0


if __name__ == "__main__":
    sys.exit(main())
