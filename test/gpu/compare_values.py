"""Bitwise comparison of scalar instructions on the interpreter and the GPU, on corner values and random bits.

python test/gpu/compare_values.py --build DIR     without a GPU: write kernels, inputs and interpreter results
python test/gpu/compare_values.py --run DIR       on the GPU machine: run the kernels, print each result that differs

Every opcode of `cute_dialect.interp.instructions.ptx.SCALAR_ROWS` has a kernel of hand-written PTX. The kernels of
arith and math ops are compiled by upstream MLIR. All NaNs count as equal. Approximate instructions must stay within
the error bound that the PTX ISA states.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import random
import sys
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "oracle"))

import value_reference

LANES = 96  # inputs per instruction, one per thread
OPERANDS, RESULTS = 4, 2  # 64-bit cells that each thread reads and writes
_BODY = """.visible .entry {name}(.param .u64 in, .param .u64 out)
{{
  .reg .b16 %h<9>; .reg .b32 %r<9>; .reg .b64 %d<9>; .reg .pred %p<9>; .reg .b64 %c<9>;
  .reg .b64 %in; .reg .b64 %out; .reg .b32 %t;
  mov.u32 %t, %tid.x;
  ld.param.u64 %in, [in];
  ld.param.u64 %out, [out];
  mad.wide.u32 %in, %t, {read}, %in;
  mad.wide.u32 %out, %t, {written}, %out;
{lines}
  ret;
}}
"""
_HEADER = ".version 8.3\n.target sm_90a\n.address_size 64\n"


class Case(NamedTuple):
    """An instruction: its kernel, its name, the opcode that selects the comparison, and its types."""

    kernel: str
    name: str
    opcode: str
    results: tuple[str, ...]
    sources: tuple[str, ...]


def _ptx(case: Case) -> str:
    """Return a PTX kernel in which each thread executes one instruction on its own cells."""
    lines: list[str] = []

    def register(kind: str, i: int) -> str:
        return f"%{ {1: 'p', 8: 'r', 16: 'h', 32: 'r', 64: 'd'}[value_reference.SIZES[kind]] }{i}"

    for i, kind in enumerate(case.sources):
        r = register(kind, i + RESULTS)
        lines.append(f"ld.global.b64 %c{i}, [%in+{8 * i}];")
        lines.append({"p": f"setp.ne.u64 {r}, %c{i}, 0;", "d": f"mov.b64 {r}, %c{i};"}.get(
            r[1], f"cvt.u{16 if r[1] == 'h' else 32}.u64 {r}, %c{i};"))  # fmt: skip
    left = "|".join(register(k, i) for i, k in enumerate(case.results))
    right = [register(k, i + RESULTS) for i, k in enumerate(case.sources)]
    if case.opcode.startswith("lop3"):
        right[-1] = "0xCA"
    lines.append(f"{case.opcode} {left}, {', '.join(right)};")
    for i, kind in enumerate(case.results):
        r = register(kind, i)
        lines.append({"p": f"selp.u64 %c8, 1, 0, {r};", "d": f"mov.b64 %c8, {r};"}.get(
            r[1], f"cvt.u64.u{16 if r[1] == 'h' else 32} %c8, {r};"))  # fmt: skip
        lines.append(f"st.global.b64 [%out+{8 * i}], %c8;")
    body = "\n".join(f"  {line}" for line in lines)
    return _BODY.format(name=case.kernel, read=8 * OPERANDS, written=8 * RESULTS, lines=body)


OPS: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    *(
        (f"arith.{op}f %a, %b : {t}", opcode.format(t), t, (t, t))
        for t in ("f16", "bf16", "f32", "f64")
        for op, opcode in (
            ("add", "add.rn.{}"), ("mul", "mul.rn.{}"), ("div", "div.rn.{}"), ("maxnum", "max.{}"),
            ("minnum", "min.{}"), ("maximum", "max.NaN.{}"), ("minimum", "min.NaN.{}"),
        )
    ),
    *((f"math.fma %a, %b, %c : {t}", f"fma.rn.{t}", t, (t, t, t)) for t in ("f16", "bf16", "f32", "f64")),
    *((f"arith.truncf %a : {s} to {t}", f"cvt.rn.{t}.{s}", t, (s,))
      for s, t in (("f64", "f32"), ("f64", "f16"), ("f64", "bf16"), ("f32", "f16"), ("f32", "bf16"))),
    *((f"arith.{'s' if s[0] == 's' else 'u'}itofp %a : i{s[1:]} to {t}", f"cvt.rn.{t}.{s}", t, (s,))
      for s in ("s32", "u32", "s64", "u64") for t in ("f16", "bf16", "f32", "f64")),
    *((f"arith.fpto{'s' if t[0] == 's' else 'u'}i %a : {s} to i{t[1:]}", f"cvt.rzi.{t}.{s}", t, (s,))
      for s in ("f16", "f32", "f64") for t in ("s32", "u32", "s64", "u64")),
    *((f"arith.{op} %a, %b : i{n}", opcode, opcode.rpartition(".")[2], (opcode.rpartition(".")[2],) * 2)
      for n in (32, 64) for op, opcode in (
          ("addi", f"add.s{n}"), ("muli", f"mul.lo.s{n}"), ("maxui", f"max.u{n}"), ("minsi", f"min.s{n}"))),
)  # fmt: skip
"""(op on %a, %b, %c; equivalent opcode; result type; operand types)."""


def _ir_type(kind: str) -> str:
    return kind if kind in value_reference.LAYOUTS else f"i{kind[1:]}"


def _ops_module(cases: Sequence[Case], texts: Sequence[str]) -> str:
    """Return a module with one kernel per op, each with the interface of `_ptx`."""
    kernels: list[str] = []
    for case, text in zip(cases, texts):
        lines = [
            '%t = "nvvm.read.ptx.sreg.tid.x"() : () -> i32',
            f"%k = llvm.mlir.constant({OPERANDS} : i32) : i32",
            "%at = arith.muli %t, %k : i32",
            "%p = llvm.getelementptr %in[%at] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i64",
        ]
        for i, (letter, kind) in enumerate(zip("abc", case.sources)):
            t, n = _ir_type(kind), value_reference.SIZES[kind]
            lines.append(f"%p{i} = llvm.getelementptr %p[{i}] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i64")
            cell = f"%{letter}" if n == 64 and t[0] == "i" else f"%w{i}"
            lines.append(f"{cell} = llvm.load %p{i} : !llvm.ptr<1> -> i64")
            cut = cell
            if n < 64:
                cut = f"%{letter}" if t[0] == "i" else f"%n{i}"
                lines.append(f"{cut} = arith.trunci {cell} : i64 to i{n}")
            if t[0] != "i":
                lines.append(f"%{letter} = arith.bitcast {cut} : i{n} to {t}")
        lines.append(f"%r = {text}")
        t, n = _ir_type(case.results[0]), value_reference.SIZES[case.results[0]]
        lines.append(
            f"%q = arith.bitcast %r : {t} to i{n}"
            if t[0] != "i"
            else f"%z = llvm.mlir.constant(0 : i{n}) : i{n}\n%q = arith.ori %r, %z : i{n}"
        )
        lines.append(
            f"%x = arith.extui %q : i{n} to i64"
            if n < 64
            else "%z0 = llvm.mlir.constant(0 : i64) : i64\n%x = arith.ori %q, %z0 : i64"
        )
        lines.append(f"%k2 = llvm.mlir.constant({RESULTS} : i32) : i32\n%to = arith.muli %t, %k2 : i32")
        lines.append("%o = llvm.getelementptr %out[%to] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i64")
        lines.append("llvm.store %x, %o : i64, !llvm.ptr<1>\ngpu.return")
        kernels.append(
            f"gpu.func @{case.kernel}(%in: !llvm.ptr<1>, %out: !llvm.ptr<1>) kernel {{\n" + "\n".join(lines) + "\n}"
        )
    return "gpu.module @m {\n" + "\n".join(kernels) + "\n}\n"


def _op_results(case: Case, text: str, rows: Sequence[tuple[int, ...]]) -> list[list[int]]:
    """Return the interpreter's results of an op."""
    from value_fuzz import column
    from xdsl.parser import Parser

    from cute_dialect.interp import run_function
    from cute_dialect.interp.types import float_leaf
    from cute_dialect.ir.context import make_context

    letters = "abc"[: len(case.sources)]
    args = ", ".join(f"%{x}: {_ir_type(k)}" for x, k in zip(letters, case.sources))
    out = _ir_type(case.results[0])
    module = Parser(
        make_context("base"), f"func.func @f({args}) -> {out} {{\n%r = {text}\nfunc.return %r : {out} }}", "op"
    ).parse_module()
    given: list[np.ndarray] = []
    for i, kind in enumerate(case.sources):
        bits = column([r[i] for r in rows], f"u{value_reference.SIZES[kind]}")
        given.append(bits.view(float_leaf(kind).dtype) if kind in value_reference.LAYOUTS else bits)
    got = np.ascontiguousarray(run_function(module, "f", given, overflow="wrap")[0])
    return [got.view(np.dtype(f"u{got.dtype.itemsize}")).tolist()]


def _instructions() -> Iterator[tuple[Case, list[tuple[int, ...]], list[list[int]]]]:
    """Return every opcode with its inputs and the interpreter's results."""
    from value_fuzz import function, inputs, results
    from xdsl.parser import Parser

    from cute_dialect.interp.instructions.ptx import SCALAR_ROWS
    from cute_dialect.interp.instructions.ptx_text import Words, expand
    from cute_dialect.ir.context import make_context

    n = 0
    for row in SCALAR_ROWS:
        codes = list(expand(row.syntax))
        for part in (codes[i : i + 16] for i in range(0, len(codes), 16)):
            text = "".join(function(f"f{i}", row, opcode) for i, opcode in enumerate(part))
            module = Parser(make_context("base"), text, "values.mlir").parse_module()
            for i, opcode in enumerate(part):
                kinds, sources = row.kinds(Words(opcode))
                rows = inputs(random.Random(f"gpu {opcode}"), opcode, sources, LANES)
                yield (
                    Case(f"k{n}", opcode, opcode, kinds, sources),
                    rows,
                    results(module, f"f{i}", kinds, sources, rows),
                )
                n += 1


def build(folder: str) -> None:
    """Write a cubin for all instructions, a cubin for all ops, the inputs, and the interpreter's results."""
    from value_fuzz import inputs

    from cute_dialect.pipelines import compile
    from cute_dialect.pipelines.ptxas import assemble

    cases: list[Case] = []
    cells: list[np.ndarray] = []
    wanted: list[np.ndarray] = []

    def keep(case: Case, rows: Sequence[tuple[int, ...]], got: Sequence[Sequence[int]]) -> None:
        cases.append(case)
        cells.extend(np.array([r[i] for r in rows], f"u{_bytes(k)}").view(np.uint8) for i, k in enumerate(case.sources))
        wanted.extend(np.array(v, f"u{_bytes(k)}").view(np.uint8) for v, k in zip(got, case.results))

    for case, rows, got in _instructions():
        keep(case, rows, got)
    ptx = assemble(_HEADER + "\n".join(map(_ptx, cases)), opt_level=1)
    ops = [Case(f"op{i}", text, opcode, (result,), sources) for i, (text, opcode, result, sources) in enumerate(OPS)]
    for case, (text, *_) in zip(ops, OPS):
        rows = inputs(random.Random(text), case.opcode, case.sources, LANES)
        if "fpto" in text:  # An out-of-range conversion is poison, so LLVM may produce any value.
            rows = [
                r for r in rows if value_reference.accepts(f"setp.num.{case.sources[0]}", "pred", (r[0], r[0]), 1)
            ] or rows
            rows = [*rows, *[rows[0]] * (LANES - len(rows))]
        keep(case, rows, _op_results(case, text, rows))
    compiled = compile(_ops_module(ops, [text for text, *_ in OPS]), filename="ops.mlir")
    with open(os.path.join(folder, "instructions.cubin"), "wb") as f:
        f.write(ptx.cubin)
    compiled.save(os.path.join(folder, "ops"))
    with open(os.path.join(folder, "cases.json"), "w", encoding="utf-8") as f:
        json.dump([list(c) for c in cases], f)
    np.savez_compressed(os.path.join(folder, "values.npz"), cells=np.concatenate(cells), wanted=np.concatenate(wanted))
    print(f"{len(cases)} kernels")


def _bytes(kind: str) -> int:
    return max(value_reference.SIZES[kind] // 8, 1)


def run(folder: str) -> int:
    """Run every kernel and return the number of results that differ."""
    from cute_dialect.runtime.driver import driver
    from cute_dialect.runtime.host_program import LaunchShape

    gpu = driver()
    gpu.enter(0)
    with open(os.path.join(folder, "cases.json"), encoding="utf-8") as f:
        cases = [Case(k, n, o, tuple(r), tuple(s)) for k, n, o, r, s in json.load(f)]
    data = np.load(os.path.join(folder, "values.npz"))
    cells, wanted = data["cells"], data["wanted"]
    modules: dict[str, int] = {}
    for name, path in (("instructions", "instructions.cubin"), ("ops", os.path.join("ops", "kernel.cubin"))):
        with open(os.path.join(folder, path), "rb") as f:
            modules[name] = gpu.load_module(f.read())
    source, target = gpu.allocate(8 * OPERANDS * LANES), gpu.allocate(8 * RESULTS * LANES)
    shape = LaunchShape(block=(LANES, 1, 1))
    addresses = [ctypes.c_uint64(source), ctypes.c_uint64(target)]
    parameters = (ctypes.c_void_p * 2)(*(ctypes.addressof(a) for a in addresses))
    at = out_at = compared = different = wrong_kernels = nans = 0
    for case in cases:
        given = np.zeros((LANES, OPERANDS), np.uint64)
        for i, kind in enumerate(case.sources):
            size = LANES * _bytes(kind)
            given[:, i] = cells[at : at + size].view(f"u{_bytes(kind)}")
            at += size
        got = np.zeros((LANES, RESULTS), np.uint64)
        gpu.to_device(source, given.ctypes.data, given.nbytes)
        function = gpu.get_function(modules["ops" if case.kernel.startswith("op") else "instructions"], case.kernel)
        gpu.launch(function, shape, parameters)
        gpu.synchronize(0)
        gpu.to_host(got.ctypes.data, target, got.nbytes)
        bad = 0
        for n, kind in enumerate(case.results):
            size = LANES * _bytes(kind)
            want = wanted[out_at : out_at + size].view(f"u{_bytes(kind)}").tolist()
            out_at += size
            mask = (1 << value_reference.SIZES[kind]) - 1
            for lane in range(LANES):
                compared += 1
                ours, theirs = want[lane], int(got[lane, n]) & mask
                if ours == theirs:
                    continue
                operands = [int(v) for v in given[lane, : len(case.sources)]]
                if value_reference.is_approximate(case.opcode.split(".")):
                    if value_reference.accepts(case.opcode, kind, operands, theirs, n):
                        continue
                elif value_reference.same(kind, theirs, ours):
                    nans += 1
                    continue
                bad += 1
                if bad <= 4:
                    shown = " ".join(f"{v:#x}" for v in operands)
                    print(f"{case.name}: {shown}: result {n}: interpreter {ours:#x}, GPU {theirs:#x}")
        different += bad
        wrong_kernels += bad > 0
    print(f"{compared} results of {len(cases)} instructions, {nans} of them NaNs of other bits:", end=" ")
    print(f"{different} differ, in {wrong_kernels} instructions")
    return different


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--build", metavar="DIR")
    parser.add_argument("--run", metavar="DIR")
    options = parser.parse_args()
    if options.build:
        os.makedirs(options.build, exist_ok=True)
        build(options.build)
    if options.run:
        raise SystemExit(bool(run(options.run)))


if __name__ == "__main__":
    main()
