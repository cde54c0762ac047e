"""Results of arith, math, llvm and inline PTX ops, compared with exact arithmetic rounded once; poison."""

from __future__ import annotations

import itertools
import math
import random
import re
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
import pytest
import value_fuzz
import value_reference as ref
from interp_support import parse

from cute_dialect.arch.targets import find_target, instruction_needs, lacking
from cute_dialect.interp import InterpError, run_function
from cute_dialect.interp.instructions.calls import ptx_name
from cute_dialect.interp.instructions.ptx import SCALAR_ROWS
from cute_dialect.interp.instructions.ptx_text import Words, expand
from cute_dialect.interp.rounding import exact_f64, fma_f64
from cute_dialect.pipelines.ptxas import assemble
from cute_dialect.tools.docs import interpreter_values

# ----------------------------------------------------------------------------------------------------------- inline PTX


@pytest.mark.slow
def test_every_ptx_instruction() -> None:
    """Each opcode of each row is tested on corner values and random bit patterns of its types."""
    compared, wrong = value_fuzz.differences(12, 0)
    assert wrong == []
    assert compared > 12 * 3000


def test_rows_do_not_overlap() -> None:
    """Each opcode with its number of operands is in exactly one row of the table."""
    opcodes = [(o, row.count) for row in SCALAR_ROWS for o in expand(row.syntax)]
    assert len(opcodes) == len(set(opcodes))


def test_the_assembler_takes_every_opcode() -> None:
    """ptxas accepts all expansions of all rows, in one kernel for sm_90a and one for sm_100a."""
    letter = {1: "p", 8: "r", 16: "h", 32: "r", 64: "d"}
    lines: dict[str, list[str]] = {"sm_90a": [], "sm_100a": []}
    hopper = find_target("sm_90a", "+ptx83")
    for row, opcode in value_fuzz.opcodes():
        results, sources = row.kinds(Words(opcode))
        left = "|".join(f"%{'h' if k == 'e2m1x2' else letter[ref.SIZES[k]]}{i}" for i, k in enumerate(results))
        right = [f"%{'h' if k == 'e2m1x2' else letter[ref.SIZES[k]]}{i + 2}" for i, k in enumerate(sources)]
        right = [*right[:-1], "0xCA"] if opcode.startswith("lop3") else right
        needs = instruction_needs(opcode, len(right) + 1)
        chip = "sm_100a" if any(lacking(hopper, opcode, n) for n in needs) else "sm_90a"
        lines[chip].append(value_fuzz.instruction(opcode, left, right))
    assert len(lines["sm_100a"]) > 80
    registers = ".reg .b16 %h<9>; .reg .b32 %r<9>; .reg .b64 %d<9>; .reg .pred %p<9>;"
    for (chip, texts), version in zip(lines.items(), ("8.3", "8.8")):
        body = "\n".join(texts)
        assemble(
            f".version {version}\n.target {chip}\n.address_size 64\n"
            f".visible .entry k() {{ {registers}\n{body}\nret; }}\n",
            chip=chip,
        )


def test_approximate_rows_have_a_bound() -> None:
    for row in SCALAR_ROWS:
        assert bool(row.bound) == (".approx" in row.syntax or ".full" in row.syntax), row.syntax


def test_the_page_of_values_is_current() -> None:
    assert interpreter_values.main(["--check"]) == 0, "run python -m cute_dialect.tools.docs.interpreter_values"


@pytest.mark.parametrize("opcode", [o for o, _ in interpreter_values.REFUSED])
def test_instructions_listed_as_unsupported_are_rejected(opcode: str) -> None:
    text = f'func.func @f(%a: i32) -> i32 {{ %r = nvvm.inline_ptx "{opcode} $0, $1;" ro(%a : i32) -> i32\nfunc.return %r : i32 }}'
    with pytest.raises(InterpError) as e:
        run_function(parse(text), "f", [1])
    assert e.value.message == f"the PTX instruction {opcode} is not modelled by the interpreter"


@pytest.mark.parametrize(
    ("instruction", "hint"),
    [
        ("discard.global.L2 [$1], 128", "the bytes would be undefined afterwards; write them instead"),
        ("elect.sync _|p, -1", "use cute.arch.elect_one()"),
        ("atom.global.cas.b32 $0, [$1], 0, 5", "use cute.arch.atomic_cas()"),
        ("bra L", "use an if or a loop of the language"),
    ],
)
def test_instructions_that_are_not_modelled_name_a_replacement(instruction: str, hint: str) -> None:
    text = f'func.func @f(%a: i64) -> i32 {{ %r = nvvm.inline_ptx "{instruction};" ro(%a : i64) -> i32\nfunc.return %r : i32 }}'
    with pytest.raises(InterpError) as e:
        run_function(parse(text), "f", [1])
    opcode = instruction.split()[0]
    assert e.value.kind == "unsupported"
    assert e.value.message == f"the PTX instruction {opcode} is not modelled by the interpreter; {hint}"


@pytest.mark.parametrize(
    ("instruction", "message"),
    [
        ("add.rz.f16 $0, $1, $2;", "the PTX instruction add.rz.f16 is not modelled by the interpreter"),
        ("add.sat.u32 $0, $1, $2;", "the PTX instruction add.sat.u32 is not modelled by the interpreter"),
        ("setp.lo.s32 $0, $1, $2;", "the PTX instruction setp.lo.s32 is not modelled by the interpreter"),
        ("add.cc.u32 $0, $1, $2;", "the PTX instruction add.cc.u32 is not modelled by the interpreter"),
        ("fma.f32 $0, $1, $2, $1;", "the PTX instruction fma.f32 is not modelled by the interpreter"),
        ("cvt.rs.f16.f32 $0, $1, $2;", "the PTX instruction cvt.rs.f16.f32 is not modelled by the interpreter"),
        ("add.s64 $0, $1, $2;", "add.s64: the register is i32; s64 needs 64 bits"),
        ("add.s32 $0, $1, 1.0;", "add.s32: literal 1.0 is not of type s32"),
        ("add.f32 $0, $1, 1;", "add.f32: literal 1 is not of type f32"),
        ("add.s32 $0, $1;", "add.s32 takes 3 operands, got $0, $1"),
    ],
)
def test_invalid_ptx_is_rejected(instruction: str, message: str) -> None:
    """Unknown modifiers and registers of the wrong size are rejected, as in ptxas."""
    text = f'func.func @f(%a: i32, %b: i32) -> i32 {{ %r = nvvm.inline_ptx "{instruction}" ro(%a, %b : i32, i32) -> i32\nfunc.return %r : i32 }}'
    with pytest.raises(InterpError) as e:
        run_function(parse(text), "f", [1, 2])
    assert e.value.message == message


def test_literals() -> None:
    body = "; ".join(f"add.s32 $0, $0, {n}" for n in ("017", "0b101", "0x1F", "4294967295", "-2U"))
    text = f'func.func @f(%a: i32) -> i32 {{ %r = nvvm.inline_ptx "mov.b32 $0, $1; {body};" ro(%a : i32) -> i32\nfunc.return %r : i32 }}'
    assert run_function(parse(text), "f", [100]) == (100 + 15 + 5 + 31 - 1 - 2,)


def test_division_by_zero_in_ptx() -> None:
    text = 'func.func @f(%a: i32, %b: i32) -> i32 { %r = nvvm.inline_ptx "div.s32 $0, $1, $2;" ro(%a, %b : i32, i32) -> i32\nfunc.return %r : i32 }'
    assert run_function(parse(text), "f", [-(2**31), -1]) == (-(2**31),)
    with pytest.raises(InterpError) as e:
        run_function(parse(text), "f", [1, 0])
    assert (e.value.kind, e.value.message) == (
        "division",
        "div.s32: division by zero, whose result is undefined in PTX",
    )


@pytest.mark.parametrize(
    ("intrinsic", "instruction"),
    [
        ("ex2.approx.ftz.f", "ex2.approx.ftz.f32"),
        ("fmax.ftz.nan.xorsign.abs.f", "max.ftz.NaN.xorsign.abs.f32"),
        ("fmin.d", "min.f64"),
        ("add.rz.ftz.f", "add.rz.ftz.f32"),
        ("fma.rp.d", "fma.rp.f64"),
        ("sqrt.rm.f", "sqrt.rm.f32"),
        ("div.full.ftz", "div.full.ftz.f32"),
        ("round.ftz.f", "cvt.rni.ftz.f32.f32"),
        ("fabs.f", "abs.f32"),
    ],
)
def test_nvvm_intrinsics_are_their_instructions(intrinsic: str, instruction: str) -> None:
    """An intrinsic applies the modifiers in its name, like the PTX instruction."""
    assert ptx_name(intrinsic) == instruction
    words = instruction.split(".")
    kind = words[-1]
    n = {"add": 2, "max": 2, "min": 2, "div": 2, "fma": 3}.get(words[0], 1)
    args = ", ".join(f"%a{i}: {kind}" for i in range(n))
    names = ", ".join(f"%a{i}" for i in range(n))
    text = (
        f"func.func @f({args}) -> {kind} {{\n"
        f'%r = llvm.call_intrinsic "llvm.nvvm.{intrinsic}"({names}) : ({", ".join([kind] * n)}) -> {kind}\n'
        f"func.return %r : {kind} }}"
    )
    rows = value_fuzz.inputs(random.Random(3), instruction, [kind] * n, 60)
    got = run_function(parse(text), "f", [_floats([r[i] for r in rows], kind) for i in range(n)])[0]
    for row, bits in zip(rows, _bits(np.asarray(got))):
        assert ref.accepts(instruction, kind, row, bits), (row, bits)


@pytest.mark.parametrize(
    ("op", "instruction", "sources", "result"),
    [
        ('"nvvm.convert.f32x2.to.f16x2"(%a, %b) <{{relu = true, rnd = #nvvm.fp_rnd_mode<rz>, sat = #nvvm.sat_mode<none>}}>', "cvt.rz.relu.f16x2.f32", 2, "vector<2xf16>"),
        ('"nvvm.convert.f32x2.to.bf16x2"(%a, %b) <{{relu = false, rnd = #nvvm.fp_rnd_mode<rn>, sat = #nvvm.sat_mode<satfinite>}}>', "cvt.rn.satfinite.bf16x2.f32", 2, "vector<2xbf16>"),
        ('"nvvm.convert.f32x2.to.f8x2"(%a, %b) <{{dstTy = f8E5M2, relu = true, rnd = #nvvm.fp_rnd_mode<rn>, sat = #nvvm.sat_mode<satfinite>}}>', "cvt.rn.satfinite.relu.e5m2x2.f32", 2, "i16"),
        ('"nvvm.convert.float.to.tf32"(%a) <{{relu = true, rnd = #nvvm.fp_rnd_mode<rn>, sat = #nvvm.sat_mode<none>}}>', "cvt.rn.relu.tf32.f32", 1, "i32"),
        ('"nvvm.convert.float.to.tf32"(%a) <{{relu = false, rnd = #nvvm.fp_rnd_mode<rna>, sat = #nvvm.sat_mode<satfinite>}}>', "cvt.rna.satfinite.tf32.f32", 1, "i32"),
    ],
)  # fmt: skip
def test_nvvm_conversions_obey_their_attributes(op: str, instruction: str, sources: int, result: str) -> None:
    args = ", ".join(f"%{x}: f32" for x in "ab"[:sources])
    text = f"func.func @f({args}) -> {result} {{ %r = {op.format()} : ({', '.join(['f32'] * sources)}) -> {result}\nfunc.return %r : {result} }}"
    rows = value_fuzz.inputs(random.Random(5), instruction, ["f32"] * sources, 60)
    given = [_floats([r[i] for r in rows], "f32") for i in range(sources)]
    kind = instruction.split(".")[-2]
    raw = np.ascontiguousarray(run_function(parse(text), "f", given)[0]).view(f"u{ref.SIZES[kind] // 8}").reshape(-1)
    for row, bits in zip(rows, raw.tolist()):
        assert ref.accepts(instruction, kind, row, bits), (row, bits)
    alone = run_function(parse(text), "f", [g[0] for g in given])[0]
    assert np.asarray(alone).tobytes()[: raw.itemsize] == raw[:1].tobytes()


def test_an_intrinsic_without_an_instruction_is_refused() -> None:
    text = 'func.func @f(%a: f32) -> f32 { %r = llvm.call_intrinsic "llvm.nvvm.sqrt.ru.f"(%a) : (f32) -> f32\nfunc.return %r : f32 }'
    with pytest.raises(InterpError, match=r"PTX instruction sqrt\.ru\.f32 is not modelled"):
        run_function(parse(text), "f", [1.0])


# ---------------------------------------------------------------------------------------------------- arith, math, llvm

FORMATS = {"f16": np.float16, "bf16": None, "f32": np.float32, "f64": np.float64}


def _floats(bits: Sequence[int], name: str) -> np.ndarray:
    import ml_dtypes

    dtype = np.dtype(ml_dtypes.bfloat16 if name == "bf16" else FORMATS[name])
    return np.array(bits, np.dtype(f"u{dtype.itemsize}")).view(dtype)


def _bits(a: np.ndarray) -> list[int]:
    return np.ascontiguousarray(a).view(np.dtype(f"u{a.dtype.itemsize}")).reshape(-1).tolist()


def _rows(rng: random.Random, names: Sequence[str], count: int) -> list[tuple[int, ...]]:
    """Return rows of corner values, or of pairs of them, followed by random rows."""
    pairs = itertools.product(*(value_fuzz.corners(n) for n in names)) if len(names) < 3 else iter(())
    some = list(pairs)
    rng.shuffle(some)
    return [*some[:count], *(tuple(value_fuzz.value(rng, n) for n in names) for _ in range(count))]


def _check(op: str, names: Sequence[str], result: str, want: Callable[[Sequence[int]], int], count: int = 60) -> None:
    """Run `op` (with %a, %b, %c) on corner and random values, and compare each result."""
    letters = "abc"[: len(names)]
    args = ", ".join(f"%{x}: {n}" for x, n in zip(letters, names))
    text = f"func.func @f({args}) -> {result} {{ %r = {op}\nfunc.return %r : {result} }}"
    rows = _rows(random.Random(op), [n.replace("i", "s") for n in names], count)
    given = [
        _floats([r[i] for r in rows], n) if n in FORMATS else value_fuzz.column([r[i] for r in rows], f"s{n[1:]}")
        for i, n in enumerate(names)
    ]
    got = np.asarray(run_function(parse(text), "f", given, overflow="wrap")[0])
    kind = result if result in FORMATS else f"u{result[1:]}"
    for row, bits in zip(rows, _bits(got)):
        assert ref.same(kind, bits, want(row)), (op, [hex(v) for v in row], hex(bits), hex(want(row)))


@pytest.mark.sample(every=11)
@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(
    ("op", "instruction"),
    [
        ("arith.addf %a, %b", "add"),
        ("arith.subf %a, %b", "sub"),
        ("arith.mulf %a, %b", "mul"),
        ("arith.divf %a, %b", "div"),
        ("llvm.fmul %a, %b", "mul"),
        ("arith.maximumf %a, %b", "max.NaN"),
        ("arith.minimumf %a, %b", "min.NaN"),
        ("arith.maxnumf %a, %b", "max"),
        ("arith.minnumf %a, %b", "min"),
        ("math.copysign %b, %a", "copysign"),
        ("arith.negf %a", "neg"),
        ("math.absf %a", "abs"),
        ("math.sqrt %a", "sqrt"),
        ("math.fma %a, %b, %c", "fma"),
        ('"llvm.intr.maxnum"(%a, %b)', "max"),
        ('"llvm.intr.fma"(%a, %b, %c)', "fma"),
    ],
)
def test_float_ops_are_rounded_once(op: str, instruction: str, name: str) -> None:
    n = op.count("%")
    words = instruction.split(".")
    typed = f"{op} : {name}" if not op.startswith('"') else f"{op} : ({', '.join([name] * n)}) -> {name}"
    _check(typed, [name] * n, name, lambda row: ref._float(words, name, row))


@pytest.mark.sample(every=2)
@pytest.mark.parametrize(
    ("source", "target"),
    [(s, t) for s in FORMATS for t in FORMATS if (t, s) in {("f16", "f32"), ("f16", "f64"), ("bf16", "f32"), ("bf16", "f64"), ("f32", "f64")}],
)  # fmt: skip
def test_truncations_and_extensions(source: str, target: str) -> None:
    """f64 to bf16 rounds once. 1 + 2^-8 + 2^-40 is above the tie, but rounding to f32 first would lose the last bit."""
    _check(
        f"arith.truncf %a : {source} to {target}",
        [source],
        target,
        lambda row: ref.convert(["rn"], source, target, row[0]),
    )
    _check(
        f"arith.extf %a : {target} to {source}", [target], source, lambda row: ref.convert([], target, source, row[0])
    )


@pytest.mark.sample(every=5)
@pytest.mark.parametrize("target", FORMATS)
@pytest.mark.parametrize("source", ["i8", "i16", "i32", "i64"])
def test_integers_to_floats(source: str, target: str) -> None:
    for letter, kind in (("s", "si"), ("u", "ui")):
        name = f"{letter}{source[1:]}"
        _check(
            f"arith.{kind}tofp %a : {source} to {target}",
            [source],
            target,
            lambda row, name=name: ref.convert(["rn"], name, target, row[0]),
        )


@pytest.mark.parametrize("target", ["i16", "i32", "i64"])
@pytest.mark.parametrize("source", FORMATS)
def test_float_to_integer_conversions_match_cvt(source: str, target: str) -> None:
    """With overflow="wrap" results saturate. NaN gives 0, or only the top bit if either type has 64 bits (PTX ISA, cvt)."""
    for letter, kind in (("s", "si"), ("u", "ui")):
        name = f"{letter}{target[1:]}"
        _check(f"arith.fpto{kind} %a : {source} to {target}", [source], target,
               lambda row, name=name: ref.convert(["rzi"], source, name, row[0]) % (1 << int(target[1:])))  # fmt: skip


WHOLE = {"floor": "rm", "ceil": "rp", "trunc": "rz", "roundeven": "rn", "round": "rna"}


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("op", WHOLE)
def test_roundings_to_whole_numbers(op: str, name: str) -> None:
    def want(row: Sequence[int]) -> int:
        x = ref.decode(row[0], name)
        if not isinstance(x.size, Fraction):
            return ref.encode(x, name)
        return ref.encode(ref.Number(x.negative, Fraction(ref.whole(x.size, WHOLE[op], x.negative))), name)

    _check(f"math.{op} %a : {name}", [name], name, want)


@pytest.mark.parametrize(
    ("op", "exact"),
    [("exp2", "ex2"), ("log2", "lg2"), ("rsqrt", "rsqrt"), ("sin", "sin"), ("cos", "cos"), ("tanh", "tanh")],
)
def test_functions_of_f32(op: str, exact: str) -> None:
    """Results are within one unit in the last place of the exact result."""
    rng = random.Random(op)
    rows = [v for v in value_fuzz.corners("f32")] + [value_fuzz.value(rng, "f32") for _ in range(150)]
    rows = [
        v
        for v in rows
        if ref.decode(v, "f32").nan or ref.decode(v, "f32").infinite or abs(ref.decode(v, "f32").value) < 2**20
    ]
    text = f"func.func @f(%a: f32) -> f32 {{ %r = math.{op} %a : f32\nfunc.return %r : f32 }}"
    got = _bits(np.asarray(run_function(parse(text), "f", [_floats(rows, "f32")])[0]))
    for bits, result in zip(rows, got):
        x, y = ref.function(exact, ref.decode(bits, "f32")), ref.decode(result, "f32")
        if x.nan or x.infinite or x.size == 0:
            assert (y.nan and x.nan) or y == x, hex(bits)
        elif abs(x.value) > ref.largest("f32"):
            assert y.infinite
        else:
            assert abs(y.value - x.value) <= ref.ulp(abs(x.value), "f32"), hex(bits)


@pytest.mark.slow
def test_f64_by_every_mode() -> None:
    """`exact_f64` and the fast fma match the reference on products that cancel and on extreme values, in every mode."""
    rng = random.Random(1)
    rows = value_fuzz.inputs(rng, "fma.rn.f64", ["f64"] * 3, 120)
    columns = [_floats([r[i] for r in rows], "f64") for i in range(3)]
    for mode in ("rn", "rz", "rm", "rp"):
        got = _bits(exact_f64("fma", mode, *columns))
        for row, bits in zip(rows, got):
            assert ref.same("f64", bits, ref._float(["fma", mode], "f64", row)), (mode, row)
    for row, bits in zip(rows, _bits(fma_f64(*columns))):
        assert ref.same("f64", bits, ref._float(["fma", "rn"], "f64", row)), row


# ------------------------------------------------------------------------------------------------------------- poison


def _run(body: str, params: str, result: str, args: Sequence[object], **options: str) -> tuple[object, ...]:
    return run_function(parse(f"func.func @f({params}) -> {result} {{ {body} }}"), "f", args, **options)  # type: ignore[arg-type]


# ruff: noqa: E501 - a row of BROKEN is an op, its result type, operands that give poison, operands that do not, the message
BROKEN = [
    ("llvm.zext nneg %a : i32 to i64", "i64", [-1], [1], "llvm.zext: -1 is negative, which nneg forbids"),
    ("llvm.uitofp nneg %a : i32 to f32", "f32", [-7], [7], "llvm.uitofp: -7 is negative, which nneg forbids"),
    ("llvm.or disjoint %a, %a : i32", "i32", [6], [0], "llvm.or: 6 and 6 share bits, which disjoint forbids"),
    ("llvm.trunc %a overflow<nsw> : i32 to i8", "i8", [128], [-128], "llvm.trunc: 128 overflows i8, which nsw forbids"),
    ("llvm.trunc %a overflow<nuw> : i32 to i8", "i8", [-1], [255], "llvm.trunc: -1 overflows i8, which nuw forbids"),
    ("arith.trunci %a overflow<nsw> : i32 to i8", "i8", [200], [-3], "arith.trunci: 200 overflows i8, which nsw forbids"),
    ("arith.trunci %a overflow<nsw> : i32 to i1", "i1", [1], [-1], "arith.trunci: 1 overflows i1, which nsw forbids"),
    ('"llvm.intr.ctlz"(%a) <{is_zero_poison = true}> : (i32) -> i32', "i32", [0], [1], "llvm.intr.ctlz: 0 gives poison (is_zero_poison)"),
    ('"llvm.intr.cttz"(%a) <{is_zero_poison = true}> : (i32) -> i32', "i32", [0], [2], "llvm.intr.cttz: 0 gives poison (is_zero_poison)"),
    ('"llvm.intr.abs"(%a) <{is_int_min_poison = true}> : (i32) -> i32', "i32", [-(2**31)], [-5], "llvm.intr.abs: -2147483648 gives poison (is_int_min_poison)"),
    ("llvm.sdiv exact %a, %b : i32", "i32", [7, 2], [6, 2], "llvm.sdiv: 7 by 2 leaves a remainder, which exact forbids"),
    ("llvm.udiv exact %a, %b : i32", "i32", [-1, 2], [-2, 2], "llvm.udiv: 4294967295 by 2 leaves a remainder, which exact forbids"),
    ("llvm.lshr exact %a, %b : i32", "i32", [5, 1], [4, 1], "llvm.lshr: 5 by 1 loses bits, which exact forbids"),
    ("arith.shrsi %a, %b exact : i32", "i32", [-3, 1], [-4, 1], "arith.shrsi: -3 by 1 loses bits, which exact forbids"),
    ("llvm.shl %a, %b : i32", "i32", [1, 32], [1, 31], "llvm.shl: shift of i32 by 32 bits"),
    ("arith.shrui %a, %b : i32", "i32", [1, -1], [1, 0], "arith.shrui: shift of i32 by 4294967295 bits"),
    ("arith.addi %a, %b overflow<nuw> : i32", "i32", [-1, 1], [1, 1], "arith.addi: 4294967295 + 1 overflows i32, which nuw forbids"),
    ("arith.fptosi %x : f32 to i32", "i32", [3e9], [-2147483648.0], "arith.fptosi: 3e+09 is outside i32, so the result is poison"),
    ("arith.fptosi %x : f32 to i64", "i64", [math.nan], [1.5], "arith.fptosi: nan is outside i64, so the result is poison"),
    ("arith.fptoui %x : f32 to i32", "i32", [-1.0], [-0.5], "arith.fptoui: -1.0 is outside i32, so the result is poison"),
    ("llvm.fptoui %x : f32 to i8", "i8", [256.0], [255.9], "llvm.fptoui: 256.0 is outside i8, so the result is poison"),
    ("arith.addf %x, %y fastmath<nnan> : f32", "f32", [math.nan, 1.0], [math.inf, 1.0], "arith.addf: nan, nan, forbidden by nnan"),
    ("arith.mulf %x, %y fastmath<ninf> : f32", "f32", [3e38, 10.0], [3e38, 0.5], "arith.mulf: inf, forbidden by ninf"),
    ("llvm.fsub %x, %y {fastmathFlags = #llvm.fastmath<fast>} : f32", "f32", [math.inf, math.inf], [1.0, 2.0], "llvm.fsub: inf, inf, nan, forbidden by nnan and ninf"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "result", "bad", "good", "message"), BROKEN, ids=[b[0] for b in BROKEN])
def test_broken_promises(op: str, result: str, bad: list[object], good: list[object], message: str) -> None:
    """A violated flag is reported for a scalar and for one of several lanes, but not if the result is unused."""
    names = [n for n in ("%a", "%b", "%x", "%y") if n in op]
    params = ", ".join(f"{n}: {'f32' if n in ('%x', '%y') else 'i32'}" for n in names)
    body = f"%r = {op}\nfunc.return %r : {result}"
    _run(body, params, result, good)
    lanes = [np.array([g, b, g], np.float32 if isinstance(b, float) else np.int32) for g, b in zip(good, bad)]
    for args in (bad, lanes):
        with pytest.raises(InterpError) as e:
            _run(body, params, result, args)
        assert e.value.message == message
        assert e.value.kind in ("poison", "overflow", "arithmetic")
    unused = f"%r = {op}\n%z = llvm.mlir.zero : {result}\nfunc.return %z : {result}"
    _run(unused, params, result, bad)


@pytest.mark.parametrize(("op", "result", "bad", "good", "message"), BROKEN, ids=[b[0] for b in BROKEN])
def test_poison_that_a_select_discards(
    op: str, result: str, bad: list[object], good: list[object], message: str
) -> None:
    """`select(x in range, op(x), 0)` is valid. A select that picks the poison is reported."""
    names = [n for n in ("%a", "%b", "%x", "%y") if n in op]
    params = ", ".join(["%k: i1", *(f"{n}: {'f32' if n in ('%x', '%y') else 'i32'}" for n in names)])
    for arms, harmless in (("%r, %z", False), ("%z, %r", True)):
        body = f"%r = {op}\n%z = llvm.mlir.zero : {result}\n%s = arith.select %k, {arms} : {result}\nfunc.return %s : {result}"
        _run(body, params, result, [harmless, *bad])
        lanes = [np.array([g, b, g], np.float32 if isinstance(b, float) else np.int32) for g, b in zip(good, bad)]
        _run(body, params, result, [np.array([not harmless, harmless, harmless]), *lanes])
        for args in ([not harmless, *bad], [np.array([harmless, not harmless, harmless]), *lanes]):
            with pytest.raises(InterpError) as e:
                _run(body, params, result, args)
            assert e.value.message == message


BIG = 1 << 62
# (flags, indices and element type, values of %i and %j that violate the flags, values that do not, message)
ADDRESSES = [
    ("nusw", "[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i32", (BIG, 0), (-8, 0), "+ 4611686018427387904 * 4 wraps, which nusw"),
    ("nusw", "[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8", (-BIG, 0), (-1, 0), "+ -4611686018427387904 * 1 wraps, which nusw"),
    ("nusw", "[%i, %j] : (!llvm.ptr<1>, i64, i64) -> !llvm.ptr<1>, !llvm.array<2 x i16>", (BIG // 4, BIG - 1), (BIG // 4, 0), "* 4 + 4611686018427387903 * 2 wraps, which nusw"),
    ("nusw", "[%i, %j] : (!llvm.ptr<1>, i64, i64) -> !llvm.ptr<1>, !llvm.array<2 x i16>", (-BIG // 2, BIG), (0, -2), "wraps, which nusw"),
    ("nuw", "[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8", (-1, 0), (BIG, 0), "+ -1 * 1 wraps, which nuw"),
    ("nuw", "[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i32", (-1, 0), (3, 0), "+ -1 * 4 wraps, which nuw"),
    ("nuw", "[%i, %j] : (!llvm.ptr<1>, i64, i64) -> !llvm.ptr<1>, !llvm.array<2 x i16>", (8, -1), (8, 1), "+ 8 * 4 + -1 * 2 wraps, which nuw"),
    ("nuw", "[%i, -1] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, !llvm.array<2 x i16>", (8, 0), None, "+ 8 * 4 + -1 * 2 wraps, which nuw"),
    ("nusw|nuw", "[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i32", (BIG, 0), (BIG // 4, 0), "wraps, which nusw"),
    ("nusw|nuw", "[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i32", (-1, 0), (1, 0), "+ -1 * 4 wraps, which nuw"),
    ("inbounds", "[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i32", (BIG, 0), (16, 0), "* 4 wraps, which inbounds"),
    ("inbounds", "[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i32", (17, 0), (0, 0), "byte offset 0 + 17 * 4 is outside argument 0 of 64 bytes, which inbounds forbids"),
    ("inbounds", "[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i32", (-1, 0), (15, 0), "byte offset 0 + -1 * 4 is outside argument 0 of 64 bytes, which inbounds forbids"),
    ("inbounds", "[%i, %j] : (!llvm.ptr<1>, i64, i64) -> !llvm.ptr<1>, !llvm.array<2 x i16>", (17, -2), (16, -2), "byte offset 0 + 17 * 4 + -2 * 2 is outside argument 0 of 64 bytes"),
    ("inbounds|nuw", "[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, !llvm.struct<(i32, f32)>", (9, 0), (8, 0), "byte offset 0 + 9 * 8 is outside argument 0 of 64 bytes"),
    ("inbounds", "[%i, 1] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, !llvm.struct<(i32, f32)>", (8, 0), (7, 0), "byte offset 0 + 8 * 8 + 4 * 1 is outside argument 0 of 64 bytes"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("flags", "gep", "bad", "good", "message"), ADDRESSES, ids=[f"{a[0]} {a[1]}" for a in ADDRESSES]
)
def test_promises_of_addresses(
    flags: str, gep: str, bad: tuple[int, int], good: tuple[int, int] | None, message: str
) -> None:
    """A violated flag is reported for a scalar and for one lane, but not without flags or if the address is unused."""
    from cute_dialect.interp import Pointer

    array = Pointer(np.zeros(16, np.int32))
    params = "%p: !llvm.ptr<1>, %i: i64, %j: i64"
    read = "%n = llvm.ptrtoint %r : !llvm.ptr<1> to i64\nfunc.return %n : i64"
    body = f"%r = llvm.getelementptr {flags} %p{gep}\n{read}"
    if good is not None:
        _run(body, params, "i64", [array, *good])
        lanes = [np.array([g, b, g], np.int64) for g, b in zip(good, bad)]
    else:
        lanes = [np.array([b, b], np.int64) for b in bad]
    for args in (list(bad), lanes):
        with pytest.raises(InterpError) as e:
            _run(body, params, "i64", [array, *args])
        assert e.value.kind == "poison"
        assert e.value.message.startswith("llvm.getelementptr: ") and message in e.value.message, e.value.message
    _run(body.replace(flags, ""), params, "i64", [array, *lanes])
    _run(body, params, "i64", [array, *lanes], overflow="wrap")
    _run(f"%r = llvm.getelementptr {flags} %p{gep}\nfunc.return %i : i64", params, "i64", [array, *lanes])
    picks = body.replace("%n =", "%s = arith.select %k, %r, %p : !llvm.ptr<1>\n%n =").replace("toint %r", "toint %s")
    _run(picks, f"{params}, %k: i1", "i64", [array, *lanes, False])
    with pytest.raises(InterpError, match=re.escape(message)):
        _run(picks, f"{params}, %k: i1", "i64", [array, *lanes, True])


@pytest.mark.parametrize(
    ("start", "count", "said"),
    [
        ("%a", 0, ""),
        ("%a", 64, ""),
        ("%a", 65, "byte offset 0 + 65 * 1 is outside @a of 64 bytes"),
        ("%b", -1, "byte offset 0 + -1 * 1 is outside @b of 32 bytes"),
        ("%far", 65, "byte offset 0 + 65 * 1 is outside @a of 64 bytes"),
        ("%generic", 65, "byte offset 0 + 65 * 1 is outside @a of 64 bytes"),
        ("%past", 0, ""),
        ("%past", -1, "byte offset 65 + -1 * 1 is outside @a of 64 bytes"),
        ("%any", 32, ""),
        ("%any", -65, "byte offset 64 + -65 * 1 is outside shared memory of 96 bytes"),
        ("%stack", 16, ""),
        ("%stack", 17, "byte offset 0 + 17 * 1 is outside %stack of 16 bytes"),
        ("%second", -1, "byte offset 0 + -1 * 1 is outside %second of 16 bytes"),
        ("%table", 8, ""),
        ("%table", 9, "byte offset 0 + 9 * 1 is outside global @table of 8 bytes"),
        ("%q", 12, ""),
        ("%q", 13, "byte offset 4 + 13 * 1 is outside argument 0 of 16 bytes"),
        ("%outside", 0, ""),
        ("%outside", -4, "is in no allocation, which inbounds forbids"),
        ("%null", 0, ""),
        ("%number", 4, ""),
    ],
)
def test_allocation_of_an_address(start: str, count: int, said: str) -> None:
    """An address is attributed to the allocation of its base pointer, which also bounds accesses."""
    from interp_support import kernel, run_kernel

    from cute_dialect.interp import Pointer

    globals_ = "\n".join(
        f'"llvm.mlir.global"() <{{addr_space = {space} : i32, alignment = 16 : i64, global_type = !llvm.array<{n} x i8>, '
        f'linkage = #llvm.linkage<internal>, sym_name = "{name}"}}> ({{}}) : () -> ()'
        for name, n, space in (("a", 64, 3), ("b", 32, 3), ("table", 8, 1))
    )
    body = f"""
      %one = arith.constant 1 : i32
      %c16 = arith.constant 16 : i32
      %zero = arith.constant 0 : i64
      %some = arith.constant 4096 : i64
      %count = arith.constant {count} : i64
      %a = llvm.mlir.addressof @a : !llvm.ptr<3>
      %b = llvm.mlir.addressof @b : !llvm.ptr<3>
      %table = llvm.mlir.addressof @table : !llvm.ptr<1>
      %far = llvm.addrspacecast %a : !llvm.ptr<3> to !llvm.ptr<7>
      %generic = llvm.addrspacecast %a : !llvm.ptr<3> to !llvm.ptr
      %past = llvm.getelementptr %a[65] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
      %k = arith.cmpi eq, %tid, %c16 : i32
      %any = arith.select %k, %a, %b : !llvm.ptr<3>
      %stack = llvm.alloca %c16 x i8 : (i32) -> !llvm.ptr
      %second = llvm.alloca %c16 x i8 : (i32) -> !llvm.ptr
      %q = llvm.getelementptr %p[1] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
      %outside = llvm.getelementptr %p[5] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
      %null = llvm.inttoptr %zero : i64 to !llvm.ptr
      %number = llvm.inttoptr %some : i64 to !llvm.ptr
      %r = llvm.getelementptr inbounds {start}[%count] : (TYPE, i64) -> TYPE, i8
      %n = llvm.ptrtoint %r : TYPE to i64
      llvm.store %n, %out : i64, !llvm.ptr<1>
      llvm.return"""
    space = {"%a": "<3>", "%b": "<3>", "%past": "<3>", "%any": "<3>", "%far": "<7>"}.get(start, "<1>")
    generic = start in ("%generic", "%stack", "%second", "%null", "%number")
    module = kernel(
        body.replace("TYPE", "!llvm.ptr" if generic else f"!llvm.ptr{space}"),
        "%p: !llvm.ptr<1>, %out: !llvm.ptr<1>",
        globals_,
    )
    args = [Pointer(np.zeros(4, np.int32)), Pointer(np.zeros(1, np.int64))]
    if not said:
        run_kernel(module, "k", args, grid=1, block=32)
        return
    with pytest.raises(InterpError) as e:
        run_kernel(module, "k", args, grid=1, block=32)
    assert e.value.kind == "poison" and said in e.value.message, e.value.message


@pytest.mark.parametrize("lanes", [False, True])
def test_promises_of_vectors_of_addresses(lanes: bool) -> None:
    from cute_dialect.interp import Pointer

    body = """%r = llvm.getelementptr inbounds %p[%i] : (!llvm.ptr<1>, vector<2xi64>) -> vector<2x!llvm.ptr<1>>, i32
      %n = llvm.ptrtoint %r : vector<2x!llvm.ptr<1>> to vector<2xi64>
      func.return %n : vector<2xi64>"""

    def run(*index: int) -> None:
        given = np.array([[0, 1], index] if lanes else index, np.int64)
        _run(body, "%p: !llvm.ptr<1>, %i: vector<2xi64>", "vector<2xi64>", [Pointer(np.zeros(4, np.int32)), given])

    run(4, 0)
    with pytest.raises(InterpError, match=re.escape("byte offset 0 + 5 * 4 is outside argument 0 of 16 bytes")):
        run(4, 5)


def test_a_loop_that_moves_from_one_array_to_another() -> None:
    """A loop-carried pointer is not bounded by its first array, and a pointer one past the end is valid."""
    from interp_support import kernel, run_kernel

    from cute_dialect.interp import Pointer

    globals_ = "\n".join(
        f'"llvm.mlir.global"() <{{addr_space = 3 : i32, alignment = 16 : i64, global_type = !llvm.array<64 x i8>, '
        f'linkage = #llvm.linkage<internal>, sym_name = "{name}"}}> ({{}}) : () -> ()'
        for name in "ab"
    )
    body = """
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %c4 = arith.constant 4 : i32
      %a = llvm.mlir.addressof @a : !llvm.ptr<3>
      %b = llvm.mlir.addressof @b : !llvm.ptr<3>
      %l, %m = scf.for %i = %c0 to %c4 step %c1 iter_args(%x = %a, %y = %p) -> (!llvm.ptr<3>, !llvm.ptr<1>) : i32 {
        %r = llvm.getelementptr inbounds|nuw %x[64] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
        %n = llvm.ptrtoint %r : !llvm.ptr<3> to i32
        llvm.store %n, %p : i32, !llvm.ptr<1>
        %z = llvm.getelementptr inbounds|nuw %y[1] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
        scf.yield %b, %z : !llvm.ptr<3>, !llvm.ptr<1>
      }
      %before = llvm.getelementptr inbounds %m[-1] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
      llvm.store %c4, %before : i32, !llvm.ptr<1>
      llvm.return"""
    a = np.zeros(4, np.int32)
    run_kernel(kernel(body, "%p: !llvm.ptr<1>", globals_), "k", [Pointer(a)], grid=1, block=1)
    assert a[3] == 4
    with pytest.raises(InterpError, match=re.escape("byte offset 12 + 1 * 4 is outside argument 0 of 12 bytes")):
        run_kernel(kernel(body, "%p: !llvm.ptr<1>", globals_), "k", [Pointer(a[:3])], grid=1, block=1)


@pytest.mark.parametrize("lanes", [False, True])
def test_poison_that_the_last_of_some_selects_discards(lanes: bool) -> None:
    """A select that picks poison gives poison. If a later select discards it, there is no error."""
    params = "%k: i1, %l: i1, %a: i32, %b: i32"
    chain = """%r = llvm.shl %a, %b : i32
        %z = llvm.mlir.zero : i32
        %s = arith.select %k, %r, %z : i32
        %t = arith.select %l, %z, %s : i32
        func.return %t : i32"""
    for k, m, bad in ((1, 0, True), (1, 1, False), (0, 0, False), (0, 1, False)):
        args: list[object] = [bool(k), bool(m), 1, 32]
        if lanes:
            args = [np.array([not k, k], np.bool_), np.array([True, m], np.bool_), np.array([1, 1], np.int32), 32]
        if not bad:
            _run(chain, params, "i32", args)
            continue
        with pytest.raises(InterpError) as e:
            _run(chain, params, "i32", args)
        assert e.value.message == "llvm.shl: shift of i32 by 32 bits"
    used = chain.replace("func.return %t", "%u = arith.addi %s, %z : i32\nfunc.return %t")
    with pytest.raises(InterpError, match="shift of i32 by 32 bits"):
        _run(used, params, "i32", [True, True, 1, 32])


def test_rounding_mode_of_truncf() -> None:
    """NVPTX always selects cvt.rn, so other rounding modes are rejected."""
    nearest = "%r = arith.truncf %a to_nearest_even : f32 to f16\nfunc.return %r : f16"
    assert _run(nearest, "%a: f32", "f16", [1.0]) == (1.0,)
    with pytest.raises(InterpError) as e:
        _run(nearest.replace("to_nearest_even", "downward"), "%a: f32", "f16", [1.0])
    assert e.value.message == "rounding mode downward is not supported, because NVPTX ignores it; use to_nearest_even"


def test_fields_beyond_what_the_isa_allows() -> None:
    """bfe positions and lengths above 255 are rejected, because GPUs do not truncate them to 8 bits for 64-bit fields."""
    text = """func.func @f(%x: i64, %n: i32) -> i64 {
      %c1 = arith.constant 1 : i32
      %r = nvvm.inline_ptx "bfe.u64 $0, $1, $2, $3;" ro(%x, %n, %c1 : i64, i32, i32) -> i64
      func.return %r : i64 }"""
    assert run_function(parse(text), "f", [np.int64(6), np.int32(255)])[0] == 0
    with pytest.raises(InterpError, match=re.escape("bfe: position and length must be in [0, 255], got 256")):
        run_function(parse(text), "f", [np.int64(6), np.int32(256)])
