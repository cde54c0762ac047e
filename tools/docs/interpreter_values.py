"""Generator of ``docs/interpreter-values.md``, which lists each instruction that computes values.

python -m cute_dialect.tools.docs.interpreter_values            # writes docs/interpreter-values.md
python -m cute_dialect.tools.docs.interpreter_values --check    # exit status 1 if the file is out of date
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from cute_dialect.interp.instructions import conversions, float_ops, integer_ops, moves, ptx_scalars
from cute_dialect.interp.instructions.ptx_text import Row, expand
from cute_dialect.tools.docs import generate

DOCS = Path(__file__).resolve().parents[2] / "docs" / "interpreter-values.md"

INTRO = """# Values in the interpreter

This page lists each instruction that computes values, with its rounding and its undefined cases. `python -m
cute_dialect.tools.docs.interpreter_values` writes it from the tables that the interpreter uses; a test compares both.

Each row is tested with the corner values of its types against exact rational arithmetic that is rounded once
(`test/unit/interp/test_values.py`, `test/oracle/value_reference.py`). `make slow` tests more values
(`test/oracle/value_fuzz.py`). The same opcodes can be compared with a GPU:

```sh
python test/gpu/compare_values.py --build DIR        # on this machine: a PTX kernel and inputs for every opcode
python test/gpu/compare_values.py --run DIR          # on the GPU machine
```

**NaN.** PTX instructions on f32, f16 and bf16 produce the canonical NaN (`0x7fffffff`, `0x7fff`). Ops of arith, math
and llvm leave its bits unspecified, as LLVM does.

**Contraction.** ptxas may contract `add`, `sub` and `mul` without a rounding mode to `fma` (9.7.3). The interpreter
does not.

## Inline PTX

An instruction that matches no row is an error that names it.

| column | meaning |
|---|---|
| instruction | The opcode. `{…}` is optional, and `(…)` is a required choice. |
| operands | The types, result first. `t` is the opcode's last type, `s` the one before it, `w` twice as wide as `t`. |
| bound | The maximum error on the device. Without a bound, results are exact or rounded once. |
| section | The section of the PTX ISA 9.0. |

The interpreter rounds exact results to nearest where a bound is given.

The float intrinsics `llvm.nvvm.*` use the same rows: `llvm.nvvm.add.rz.ftz.f` is `add.rz.ftz.f32`. Also supported are
`mov`, loads, stores, atomics, barriers, copies and matrix instructions. Among them only `mma` rounds; see
[interpreter.md](interpreter.md#what-runs).
"""

REFUSED: tuple[tuple[str, str], ...] = (
    ("add.cc.u32", "carries between instructions (`.cc`, `addc`, `subc`, `madc`)"),
    ("cvt.pack.sat.u8.s32.b32", "`cvt.pack`"),
    ("cvt.rn.satfinite.tf32.f32", "`.satfinite` to tf32 without `.rna`, which sm_90 does not have"),
    ("max.f32x2", "the maximum of packed f32, which PTX does not have"),
    ("rcp.approx.ftz.f64", "the 20-bit approximations for f64 (`rcp.approx.ftz.f64`, `rsqrt.approx.ftz.f64`)"),
    ("fns.b32", "`fns`"),
    ("lop3.or.b32", "`lop3` with a predicate"),
    ("vadd.s32.s32.s32", "video instructions"),
    ("fma.rn.oob.f16", "`.oob`"),
)
"""(opcode, group of unsupported instructions)."""

POISON = """### Poison and undefined behavior

A broken flag gives poison (LLVM LangRef). In active threads it is reported as an error, unless `overflow="wrap"`
(shifts: always). If only selects in the same block read a result, the error is reported when a select picks it. So
`select(n < 32, x << n, 0)` is correct."""
FLAGS: tuple[tuple[str, str], ...] = (
    ("nsw, nuw on add, sub, mul, shl, trunc", "Overflow is reported."),
    ("nneg on zext and uitofp", "A negative operand is reported."),
    ("disjoint on or", "A common bit is reported."),
    ("exact on sdiv, udiv, lshr, ashr", "A remainder or a lost bit is reported."),
    ("is_zero_poison, is_int_min_poison", "Zero or the lowest number is reported."),
    ("nnan, ninf, fast", "A NaN or an infinity is reported, as operand or result."),
    ("shift by the width or more", "Reported."),
    ("fptosi, fptoui of NaN or out of range", "Reported. With `overflow='wrap'` the result is that of PTX `cvt.rzi`."),
    ("division by zero, lowest by -1", "Undefined behavior, always an error."),
    (
        "roundingmode of arith.truncf",
        "Must be `to_nearest_even` or absent. Another mode is refused, since NVPTX would ignore it.",
    ),
    ("contract, reassoc, arcp, nsz, afn", "These are permissions. The interpreter makes no use of them."),
    ("nusw, nuw on getelementptr", "An address, offset or sum of offsets that wraps in 64 bits is reported."),
    (
        "inbounds on getelementptr",
        "Like nusw. An address outside its allocation is also reported, except one past the end. An allocation is an "
        "argument's array, a global or an alloca; for a pointer of unknown origin, all of shared or local memory. A "
        "base that is not an address of memory is not checked.",
    ),
)
"""(flag or operation, treatment)."""

KINDS_OF_OPS: tuple[tuple[str, Iterable[str]], ...] = (
    ("exact integers", integer_ops.OPS),
    (
        "none, bits are moved or reinterpreted",
        (n for n in moves.OPS if not n.endswith("constant") and ".mlir." not in n),
    ),
    ("rounded once", sorted(float_ops.ROUNDED_ONCE)),
    ("computed in f64, then rounded", sorted(set(float_ops.OPS) - float_ops.ROUNDED_ONCE)),
    ("conversions, rounded once", conversions.OPS),
)


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
    """Return the page."""
    lines = [INTRO]
    for title, rows in (
        ("Integers, logic, shifts", ptx_scalars.INTEGER_ROWS),
        ("Floats, comparison, selection", ptx_scalars.FLOAT_ROWS),
        ("Conversions", conversions.ROWS),
    ):
        lines += _ptx_table(title, rows)
    lines += ["Not supported, for example:", ""]
    lines += [f"- `{opcode}`: {why}" for opcode, why in REFUSED]
    lines += ["", "## arith, math, llvm and nvvm", "", "| rounding | ops |", "|---|---|"]
    lines += [f"| {how} | {', '.join(f'`{n}`' for n in names)} |" for how, names in _named()]
    lines += ["", POISON, ""]
    lines += ["| flag or operation | treatment |", "|---|---|", *(f"| {a} | {b} |" for a, b in FLAGS), ""]
    return "\n".join(lines)


def _named() -> Iterator[tuple[str, list[str]]]:
    for how, names in KINDS_OF_OPS:
        yield how, list(names)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return its exit status."""
    description = (__doc__ or "").splitlines()[0]
    return generate("interpreter_values", description, DOCS, lambda output: {output: document()}, arguments)


if __name__ == "__main__":
    sys.exit(main())
