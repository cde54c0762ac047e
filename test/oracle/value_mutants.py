"""Mutation test of runs over a prime field: shipped kernels with one wrong element, term, factor or bound.

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
from xdsl.ir import Operation

import cute_dialect.lang as cute
from cute_dialect.interp import InterpError
from cute_dialect.interp.errors import location_text
from cute_dialect.interp.field import LOG2_E, FieldArray
from cute_dialect.kernels.attention.config import AttentionConfig
from cute_dialect.kernels.attention.forward import attention_text
from cute_dialect.kernels.conv.config import Window
from cute_dialect.kernels.conv.direct import DirectConfig, direct_text
from cute_dialect.kernels.gemm import gemm_text
from cute_dialect.kernels.gemm.ampere import AmpereConfig, ampere_gemm_text
from cute_dialect.kernels.gemm.config import GemmConfig
from cute_dialect.kernels.gemm.sgemm import sgemm_text
from cute_dialect.pipelines import compile as compile_cute
from cute_dialect.runtime.launch import CompiledModule, Kernel

Reference = Callable[..., None]


class Subject(NamedTuple):
    """A kernel: its text and name, the arguments of two problems, and what it computes."""

    text: Callable[[], object]
    kernel: str
    problems: Callable[[], list[Sequence[object]]]
    reference: Reference
    only_products: bool = False
    """Mutate products, their operands and scales, ldmatrix and asynchronous copies only.

    Bounds, and addresses of loads and stores, are left to `mutants.py`. Many are equal, because accesses of 16 bytes
    are predicated, and because registers that a kernel clears are 0 in the interpreter.
    """

    def has(self, mutation: Mutation) -> bool:
        """Return True if a mutation is run."""
        return not self.only_products or (mutation.kind == "value" and "address of llvm" not in mutation.what)


def _gemm(
    text: Callable[[], object], kernel: str, shapes: Sequence[tuple[int, int, int]], dtype: str, *, output: str = "",
    is_transposed: bool = True, only_products: bool = False,
) -> Subject:  # fmt: skip
    """Return a GEMM for two shapes (M, N, K). With ``is_transposed``, B is (N, K)."""

    def problems() -> list[Sequence[object]]:
        return [
            [
                np.zeros((m, k), dtype),
                np.zeros((n, k) if is_transposed else (k, n), dtype),
                np.zeros((m, n), output or dtype),
            ]
            for m, n, k in shapes
        ]

    def reference(a: FieldArray, b: FieldArray, c: FieldArray) -> None:
        c[:] = a @ (b.T if is_transposed else b)

    return Subject(text, kernel, problems, reference, only_products)


WINDOW = Window((3, 2), (1, 1), (1, 0))
CONV = DirectConfig(
    "f16", "f16", WINDOW, 5, 6, vectors=(1, 1, 2), groups=1, tile=(3, 7), warps=(1, 2), held=False, atoms=1, rolled=True
)


def _convolution() -> Subject:
    def problems() -> list[Sequence[object]]:
        found: list[Sequence[object]] = []
        for height, width in ((7, 6), (6, 13)):
            x, w = np.zeros((2, height, width, 5), np.float16), np.zeros((6, 6, 5), np.float16)
            y = np.zeros((2, *WINDOW.result((height, width)), 6), np.float16)
            found.append((x.T, w.T, y.T))
        return found

    def reference(x: FieldArray, w: FieldArray, y: FieldArray) -> None:
        (c, width, height, images), (p, q) = x.shape, y.shape[1:3]
        padded = FieldArray(np.zeros((c, width + 3, height + 3, images), np.int64), x.algebra)
        at = WINDOW.before[1], WINDOW.before[0]
        padded[:, at[0] : at[0] + width, at[1] : at[1] + height] = x
        y[:] = 0
        for r in range(3):
            for s in range(2):
                taps = FieldArray(w.elements[:, r * 2 + s], x.algebra).T
                y[:] = y + (taps @ padded[:, s : s + p, r : r + q].reshape(c, -1)).reshape(*y.shape)

    return Subject(lambda: direct_text(CONV), "direct", problems, reference, True)


def _attention() -> Subject:
    """Attention forward of two heads with a causal mask: online softmax over several tiles of keys."""
    c = AttentionConfig("f16", 64, "right", tile_m=64, tile_n=32, sms=1)

    def problems() -> list[Sequence[object]]:
        found: list[Sequence[object]] = []
        for queries, keys in ((64, 96), (100, 130)):
            q, out = (np.zeros((1, queries, 2, 64), np.float16).transpose(1, 3, 2, 0) for _ in range(2))
            k, v = (np.zeros((1, keys, 1, 64), np.float16).transpose(1, 3, 2, 0) for _ in range(2))
            found.append((q, k, v, out, queries, float(np.float32(0.125 * LOG2_E)), 0, 0))
        return found

    def reference(q: FieldArray, k: FieldArray, v: FieldArray, out: FieldArray, *numbers: float) -> None:
        for h in range(2):
            scores = q[:, :, h, 0] @ k[:, :, 0, 0].T
            scores[np.arange(k.shape[0])[None, :] > np.arange(q.shape[0])[:, None]] = -np.inf
            e = ((scores - scores.max(1, keepdims=True)) * numbers[1]).exp2()
            out[:, :, h, 0] = (e @ v[:, :, 0, 0]) / e.sum(1, keepdims=True)

    return Subject(lambda: attention_text(c), "attention", problems, reference, True)


SMALL = GemmConfig(tile=(64, 128, 64), stages=2, deferred=False, sms=2)
SUBJECTS = {
    "sgemm": _gemm(
        lambda: sgemm_text("smem"), "sgemm", ((63, 64, 33), (64, 95, 64)), "f4", is_transposed=False
    ),
    "sm_80 f16": _gemm(
        lambda: ampere_gemm_text(AmpereConfig()), "gemm_16", ((128, 128, 96), (130, 136, 72)), "f2", only_products=True
    ),
    "sm_90 f16": _gemm(lambda: gemm_text(SMALL), "gemm", ((64, 128, 128), (100, 136, 200)), "f2"),
    "sm_90 fp8": _gemm(
        lambda: gemm_text(SMALL._replace(element="f8E4M3FN", tile=(64, 128, 128))), "gemm",
        ((64, 128, 256), (100, 144, 400)), "float8_e4m3fn", output="f2",
    ),
    "convolution f16": _convolution(),
    "attention f16": _attention(),
}  # fmt: skip
_PADDING = "one step more adds products of the zeros that pad K"
EQUAL: dict[tuple[str, str], str] = {("sgemm.mlir:93:7", "a loop ends one step later"): _PADDING}
"""Equivalent mutants: location and change -> the reason."""


class Verdict(NamedTuple):
    """The classification of a mutant: differs, report, equal or missed, and its explanation."""

    how: str
    why: str


def decides_rescaling(op: Operation) -> str | None:
    """Return why a product of an online softmax may be another one: it only decides if the maximum is replaced."""
    if op.name != "arith.mulf" or any(use.operation.name != "arith.cmpf" for use in op.results[0].uses):
        return None
    return "the product only decides if the maximum is replaced, and a softmax is the same for any maximum"


def verdict(name: str, module: ModuleOp, compiled: CompiledModule, mutation: Mutation) -> Verdict:
    """Run a mutant at both shapes."""
    subject = SUBJECTS[name]
    changed = mutated(module, subject.kernel, mutation)
    f: Kernel = CompiledModule(compiled.artifact, lambda _: changed).kernel("launch")

    for problem in subject.problems():
        try:
            cute.testing.assert_equivalent(
                f, subject.reference, [problem], runs=1, bound=1.0, explain=False, allow_unchecked=True
            )
        except AssertionError as e:
            return Verdict("differs", str(e).rpartition(": ")[2])
        except InterpError as e:
            if e.kind in ("argument", "unsupported", "internal", "function", "field"):
                raise  # The mutant did not run.
            return Verdict("report", str(e).partition("\n")[0])
    op = next(o for i, o in enumerate(find(module, subject.kernel).walk()) if i == mutation.place)
    reason = EQUAL.get((location_text(op), mutation.what)) or (decides_rescaling(op) if "attention" in name else None)
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
        compiled = compile_cute(subject.text(), emit="base", filename=f"{name.replace(' ', '-')}.mlir")
        module = cast("ModuleOp", compiled.lowered(subject.kernel))
        kernel = find(module, subject.kernel)
        for mutation in value_mutations(kernel):
            if not subject.has(mutation):
                continue
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
