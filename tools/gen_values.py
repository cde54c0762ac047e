"""Writes ``docs/interpreter-values.md``: each instruction that computes values, from the interpreter's own tables.

python -m cute_dialect.tools.gen_values            # writes docs/interpreter-values.md
python -m cute_dialect.tools.gen_values --check    # exit status 1 if the file is not what would be written
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from cute_dialect.interp.ops import (
    bits,
    conversions,
    data,
    dot,
    floats,
    integer,
    ptx_convert,
    ptx_floats,
    ptx_integers,
)
from cute_dialect.interp.ops.ptx_rows import Row, expand

DOCS = Path(__file__).resolve().parents[1] / "docs" / "interpreter-values.md"

INTRO = """# Values in the interpreter

Written by `python -m cute_dialect.tools.gen_values` from the tables that the interpreter runs by; a test compares.
Every row is driven with the corner values of its types (`test/unit/interp/test_values.py`) against exact rational
arithmetic that is rounded once (`test/oracle/value_reference.py`), with more of them in `make slow`
(`test/oracle/value_fuzz.py`), and against a GPU:

    python test/gpu/compare_values.py --build DIR        # here: a PTX kernel and inputs for every opcode
    python test/gpu/compare_values.py --run DIR          # on the GPU machine

NaN: what f32, f16 and bf16 instructions of PTX compute is the canonical NaN (`0x7fffffff`, `0x7fff`); ops of arith,
math and llvm leave its bits open, as LLVM does. `add`, `sub` and `mul` without a rounding mode may be contracted to
`fma` by ptxas (9.7.3); the interpreter does not contract.

## Inline PTX

`{…}` may stand there, one of `(…)` must; what is in no row is refused by name. Operands: the result first, `t` the
last type of the opcode, `s` the one before it, `w` twice as wide as `t`. Results are exact or rounded once, but for
those with a bound: the device may be that far off the exact result (the section states it), the interpreter rounds it
to nearest. Sections are those of the PTX ISA 9.0. The float intrinsics `llvm.nvvm.*` are these rows, too:
`llvm.nvvm.add.rz.ftz.f` is `add.rz.ftz.f32`. Besides: `mov`, loads, stores, atomics, barriers, copies and matrix
instructions, which round nothing (`mma` does: `interpreter.md`).
"""

REFUSED: tuple[tuple[str, str], ...] = (
    ("add.cc.u32", "carries between instructions: `.cc`, `addc`, `subc`, `madc`"),
    ("cvt.rs.f16x2.f32", "stochastic rounding, f4, f6 and ue8m0 formats: not on sm_90"),
    ("cvt.pack.sat.u8.s32.b32", "`cvt.pack`"),
    ("cvt.rn.satfinite.tf32.f32", "`.satfinite` to tf32 but with `.rna`: not on sm_90"),
    ("max.f32x2", "packed f32 and minimum of three: not on sm_90"),
    ("rcp.approx.ftz.f64", "the f64 approximations of 20 bits: `rcp.approx.ftz.f64`, `rsqrt.approx.ftz.f64`"),
    ("fns.b32", "`fns`"),
    ("lop3.or.b32", "`lop3` with a predicate"),
    ("vadd.s32.s32.s32", "video instructions"),
    ("fma.rn.oob.f16", "`.oob`"),
)
"""(an opcode, what is refused)."""

POISON = """What makes poison (LLVM LangRef). A result that nothing but selects of its block read is reported where one
picks it, so that `select(n < 32, x << n, 0)` is right. Reported in active threads, unless `overflow="wrap"` (shifts:
always)."""
FLAGS: tuple[tuple[str, str], ...] = (
    ("nsw, nuw on add, sub, mul, shl, trunc", "overflow: reported"),
    ("nneg on zext and uitofp", "a negative operand: reported"),
    ("disjoint on or", "a common bit: reported"),
    ("exact on sdiv, udiv, lshr, ashr", "a rest, a lost bit: reported"),
    ("is_zero_poison, is_int_min_poison", "zero, the lowest number: reported"),
    ("nnan, ninf, fast", "a NaN, an infinity, as operand or result: reported"),
    ("a shift by the width or more", "reported"),
    ("fptosi, fptoui out of range or of NaN", "reported; with `overflow='wrap'` as PTX `cvt.rzi`"),
    ("division by zero, lowest by -1", "undefined behaviour: always an error"),
    ("roundingmode of arith.truncf", "`to_nearest_even` or none; another is refused: NVPTX would ignore it"),
    ("contract, reassoc, arcp, nsz, afn", "permissions; the interpreter uses none of them"),
    ("nusw, nuw on getelementptr", "an address, offset or sum of offsets that wraps in 64 bits: reported"),
    (
        "inbounds on getelementptr",
        "as nusw; an address outside its allocation, but for one past the end: reported. An allocation is an "
        "argument's array, a global, an alloca; all of shared or local memory where the pointer's origin is not known. "
        "A base that is no address of memory is not looked at",
    ),
)
"""(promise, what happens when it is broken)."""

KINDS_OF_OPS: tuple[tuple[str, Iterable[str]], ...] = (
    ("integers, exact", (*integer.OPS, *bits.OPS, *dot.OPS)),
    ("moved and reinterpreted", (n for n in data.OPS if not n.endswith("constant") and ".mlir." not in n)),
    ("rounded once", sorted(floats.ROUNDED_ONCE)),
    ("computed in f64, then rounded", sorted(set(floats.OPS) - floats.ROUNDED_ONCE)),
    ("conversions, rounded once", conversions.OPS),
)  # fmt: skip


def _ptx_table(title: str, rows: Sequence[Row]) -> Iterator[str]:
    count = sum(len(list(expand(row.syntax))) for row in rows)
    yield f"### {title} ({count} opcodes)"
    yield ""
    yield "| instruction | operands | bound | section |"
    yield "|---|---|---|---|"
    for row in rows:
        yield f"| `{row.syntax}` | `{row.operands}` | {row.bound} | {row.section} |"
    yield ""


def document() -> str:
    """Return the whole page."""
    lines = [INTRO]
    for title, rows in (
        ("Integers, logic, shifts", ptx_integers.ROWS),
        ("Floats, comparison, selection", ptx_floats.ROWS),
        ("Conversions", ptx_convert.ROWS),
    ):
        lines += _ptx_table(title, rows)
    lines += ["Refused, for instance:", ""]
    lines += [f"- `{opcode}`: {why}" for opcode, why in REFUSED]
    lines += ["", "## arith, math, llvm and nvvm", "", "| how | ops |", "|---|---|"]
    lines += [f"| {how} | {', '.join(f'`{n}`' for n in names)} |" for how, names in _named()]
    lines += ["", POISON, ""]
    lines += ["| promise | broken |", "|---|---|", *(f"| {a} | {b} |" for a, b in FLAGS), ""]
    return "\n".join(lines)


def _named() -> Iterator[tuple[str, list[str]]]:
    for how, names in KINDS_OF_OPS:
        yield how, list(names)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; give the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit status 1 if the file is not current")
    options = parser.parse_args(arguments)
    text = document()
    if options.check:
        return int(not DOCS.exists() or DOCS.read_text(encoding="utf-8") != text)
    DOCS.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
