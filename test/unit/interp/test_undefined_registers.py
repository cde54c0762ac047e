"""Unwritten registers under `uninit`: copies and arithmetic are allowed, but stores, addresses and branches are not."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from interp_support import DSMEM, kernel, run_kernel

from cute_dialect.interp import InterpError, Pointer
from cute_dialect.pipelines import compile as compile_cute
from cute_dialect.runtime.call_options import SCHEDULES
from cute_dialect.tools.cute_run import main

HEAD = """
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c4 = arith.constant 4 : i32
    %c8 = arith.constant 8 : i32
    %c16 = arith.constant 16 : i32
    %one = arith.constant 1.0 : f32
    %u = llvm.mlir.undef : i32
    %f = llvm.mlir.undef : f32
    %uv = llvm.mlir.undef : vector<4xi32>
    %t = arith.cmpi slt, %tid, %c16 : i32
    %p = llvm.getelementptr %a[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
"""
PUT = "llvm.store %v, %p : i32, !llvm.ptr<1>\n"


def run(body: str, schedule: str = "round-robin", width: str = "auto", threads: int = 32, check: bool = True) -> str:
    """Return the report and first thread of a kernel with one array under `uninit`, or ""."""
    module = kernel(HEAD + body + "\nllvm.return", "%a: !llvm.ptr<1>", DSMEM)
    try:
        run_kernel(
            module, "k", [Pointer(np.zeros(4096, np.int32))], block=(threads,), dynamic_smem=1024, schedule=schedule,
            width=width, checks=["uninit"] if check else [],
        )  # fmt: skip
    except InterpError as e:
        assert e.kind == "uninit", e
        return f"{e.message} {e.thread}"
    return ""


ACTS = {  # name: (body, the op that the report names)
    "store": ("%v = llvm.add %u, %c1 : i32\n" + PUT, "store of 4 bytes"),
    "store to shared memory": (
        "%d = llvm.mlir.addressof @dsmem : !llvm.ptr<3>\nllvm.store %u, %d : i32, !llvm.ptr<3>",
        "store of 4 bytes",
    ),
    "store of a vector's element": (
        "%w = llvm.insertelement %c1, %uv[%c0 : i32] : vector<4xi32>\n"
        "%q = llvm.getelementptr %a[%c0] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, vector<4xi32>\n"
        "llvm.store %w, %q : vector<4xi32>, !llvm.ptr<1>",
        "store of 16 bytes",
    ),
    "address": (
        "%q = llvm.getelementptr %a[%u] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32\n"
        "llvm.store %c1, %q : i32, !llvm.ptr<1>",
        "llvm.store",
    ),
    "address of a load": (
        "%q = llvm.getelementptr %a[%u] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32\n"
        "%v = llvm.load %q : !llvm.ptr<1> -> i32",
        "llvm.load",
    ),
    "branch": (
        "%b = arith.cmpi eq, %u, %c1 : i32\nscf.if %b {\n" + "llvm.store %c1, %p : i32, !llvm.ptr<1>\n}",
        "a branch",
    ),
    "loop bound": (
        "scf.for %i = %c0 to %u step %c1 : i32 {\nllvm.store %c1, %p : i32, !llvm.ptr<1>\n}",
        "a loop bound",
    ),
    "while": (
        "scf.while : () -> () {\n%b = arith.cmpi eq, %u, %c1 : i32\nscf.condition(%b)\n} do {\nscf.yield\n}",
        "a branch",
    ),
    "accumulator in a loop": (
        "%v = scf.for %i = %c0 to %c4 step %c1 iter_args(%s = %u) -> (i32) : i32 {\n%n = arith.addi %s, %c1 : i32\n"
        "scf.yield %n : i32\n}\n" + PUT,
        "store of 4 bytes",
    ),
    "the lanes that did not write": (
        "%v = scf.if %t -> (i32) {\nscf.yield %c1 : i32\n} else {\nscf.yield %u : i32\n}\n" + PUT,
        "store of 4 bytes",
    ),
    "select": ("%v = arith.select %t, %c1, %u : i32\n" + PUT, "store of 4 bytes"),
    "a shuffle from a lane without a value": (
        "%s = arith.select %t, %c1, %u : i32\n%m = arith.constant -1 : i32\n%k = arith.constant 31 : i32\n"
        '%v = "nvvm.shfl.sync"(%m, %s, %c16, %k) <{kind = #nvvm<shfl_kind bfly>}> : (i32, i32, i32, i32) -> i32\n'
        + PUT,
        "store of 4 bytes",
    ),
    "packed": (
        "%e = llvm.mlir.undef : vector<2xf16>\n%h = arith.constant 1.0 : f16\n"
        "%w = llvm.insertelement %h, %e[%c0 : i32] : vector<2xf16>\n%v = llvm.bitcast %w : vector<2xf16> to i32\n"
        + PUT,
        "store of 4 bytes",
    ),
    "inline arithmetic": (
        '%v = llvm.inline_asm "add.s32 $0, $1, $2;", "=r,r,r" %u, %c1 : (i32, i32) -> i32\n' + PUT,
        "store of 4 bytes",
    ),
    "inline store": ('nvvm.inline_ptx "st.global.b32 [$0], $1;" ro(%p, %u : !llvm.ptr<1>, i32)', "nvvm.inline_ptx"),
    "atomic": ("%v = llvm.atomicrmw add %p, %u monotonic : !llvm.ptr<1>, i32", "llvm.atomicrmw"),
    "freeze": ("%v = llvm.freeze %u : i32\n" + PUT, "store of 4 bytes"),
}
WHERE = {"the lanes that did not write": 16, "select": 16}  # The first reported thread, if it is not thread 0.


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("name", ACTS)
def test_uses_of_undefined_registers_are_reported(name: str, schedule: str) -> None:
    body, by = ACTS[name]
    assert run(body, schedule) == (
        f"{by} depends on register 0 of llvm.mlir.undef, which nothing has written ({WHERE.get(name, 0)}, 0, 0)"
    )


RIGHT = {
    "moved and dropped": "%v = arith.addi %u, %c1 : i32",
    "a predicated tail": (
        "%v = scf.if %t -> (i32) {\n%l = llvm.load %p : !llvm.ptr<1> -> i32\nscf.yield %l : i32\n} else {\n"
        "scf.yield %u : i32\n}\n%w = arith.muli %v, %c4 : i32\nscf.if %t {\nllvm.store %w, %p : i32, !llvm.ptr<1>\n}"
    ),
    "select takes the other": "%no = arith.constant true\n%v = arith.select %no, %c1, %u : i32\n" + PUT,
    "an element that was written": (
        "%w = llvm.insertelement %c1, %uv[%c2 : i32] : vector<4xi32>\n"
        "%v = llvm.extractelement %w[%c2 : i32] : vector<4xi32>\n" + PUT
    ),
    "all elements were written": (
        "%e = llvm.mlir.undef : vector<2xf16>\n%h = arith.constant 1.0 : f16\n"
        "%w = llvm.insertelement %h, %e[%c0 : i32] : vector<2xf16>\n"
        "%x = llvm.insertelement %h, %w[%c1 : i32] : vector<2xf16>\n%v = llvm.bitcast %x : vector<2xf16> to i32\n" + PUT
    ),
    "the half that was written": (
        "%e = llvm.mlir.undef : vector<2xi16>\n%h = arith.constant 1 : i16\n"
        "%w = llvm.insertelement %h, %e[%c1 : i32] : vector<2xi16>\n%b = llvm.bitcast %w : vector<2xi16> to i32\n"
        "%v = arith.shrui %b, %c16 : i32\n" + PUT
    ),
    "masked out": (
        "%e = llvm.mlir.undef : vector<2xi16>\n%h = arith.constant 1 : i16\n%low = arith.constant 65535 : i32\n"
        "%w = llvm.insertelement %h, %e[%c0 : i32] : vector<2xi16>\n%b = llvm.bitcast %w : vector<2xi16> to i32\n"
        "%v = arith.andi %b, %low : i32\n" + PUT
    ),
    "a shuffle from lanes that have one": (
        "%s = arith.select %t, %c1, %u : i32\n%m = arith.constant -1 : i32\n%k = arith.constant 31 : i32\n"
        '%v = "nvvm.shfl.sync"(%m, %s, %c8, %k) <{kind = #nvvm<shfl_kind bfly>}> : (i32, i32, i32, i32) -> i32\n'
        "scf.if %t {\n" + PUT + "}"
    ),
    "inline arithmetic under a branch": (
        "%s = arith.select %t, %c1, %u : i32\n"
        '%v = llvm.inline_asm "add.s32 $0, $1, $2;", "=r,r,r" %s, %c1 : (i32, i32) -> i32\nscf.if %t {\n' + PUT + "}"
    ),
    "an inline store where its predicate holds": (
        "%s = arith.select %t, %c1, %u : i32\n"
        'nvvm.inline_ptx "st.global.b32 [$0], $1;" ro(%p, %s : !llvm.ptr<1>, i32), predicate = %t'
    ),
}  # fmt: skip


@pytest.mark.parametrize("width", ["auto", "warp"])
@pytest.mark.parametrize("name", RIGHT)
def test_moves_of_undefined_registers_are_allowed(name: str, width: str) -> None:
    assert run(RIGHT[name], width=width) == ""


POISON = (
    "address",
    "address of a load",
    "branch",
    "loop bound",
    "while",
    "atomic",
    "inline store",
    "inline arithmetic",
)


@pytest.mark.parametrize("name", [n for n in ACTS if n not in POISON])
def test_undefined_registers_need_the_check(name: str) -> None:
    assert run(ACTS[name][0], check=False) == ""


LOCAL = "%r = llvm.alloca %c4 x i32 : (i32) -> !llvm.ptr\n%i = arith.remui %tid, %c4 : i32\n"
GET = "%v = llvm.load %r : !llvm.ptr -> i32\n"
AT = "%q = llvm.getelementptr %r[%i] : (!llvm.ptr, i32) -> !llvm.ptr, i32\n"


@pytest.mark.parametrize("width", ["auto", "warp"])
@pytest.mark.parametrize(
    ("body", "message"),
    [
        (AT + "%v = llvm.load %q : !llvm.ptr -> i32\n" + PUT, "byte offset 0, byte 0 of %r"),
        ("%v = llvm.load %r : !llvm.ptr -> i32\n" + PUT, "byte offset 0, byte 0 of %r"),
        (AT + "llvm.store %c1, %q : i32, !llvm.ptr\n%v = llvm.load %q : !llvm.ptr -> i32\n" + PUT, ""),
        ("llvm.store %u, %r : i32, !llvm.ptr\n" + GET + PUT, "byte offset 0, byte 0 of %r"),
        ("%v = llvm.load %r : !llvm.ptr -> i32\n%w = arith.addi %v, %c1 : i32", ""),
        (
            "%h = arith.constant 1 : i16\nllvm.store %h, %r : i16, !llvm.ptr\n" + GET + PUT,
            "byte offset 2, byte 2 of %r",
        ),
        (
            "llvm.store %c1, %r : i32, !llvm.ptr\n%b = arith.cmpi eq, %i, %c0 : i32\n"
            + AT + "%v = llvm.load %q : !llvm.ptr -> i32\nscf.if %b {\n" + PUT + "}",
            "",
        ),
        ("llvm.store %uv, %r {alignment = 4 : i64} : vector<4xi32>, !llvm.ptr\nllvm.store %c1, %r : i32, !llvm.ptr\n"
         "%v = llvm.load %r : !llvm.ptr -> i32\n" + PUT, ""),
    ],
)  # fmt: skip
def test_local_memory(body: str, message: str, width: str) -> None:
    got = run(LOCAL + body, width=width)
    want = f"store of 4 bytes depends on local memory at {message}, which nothing has written (0, 0, 0)"
    assert got == (want if message else "")


FRAGMENT = "!llvm.struct<(f32, f32, f32, f32)>"
MMA = (
    "%h = arith.constant dense<1.0> : vector<2xf16>\n%n = llvm.mlir.undef : vector<2xf16>\n"
    '%D = "nvvm.mma.sync"(A, B, C) <{shape = #nvvm.shape<m = 16, n = 8, k = 16>, layoutA = #nvvm.mma_layout<row>, '
    "layoutB = #nvvm.mma_layout<col>, operandSegmentSizes = array<i32: 4, 2, 4>}> : "
    f"({', '.join(['vector<2xf16>'] * 6)}, {', '.join(['f32'] * 4)}) -> {FRAGMENT}\n"
    f"%e = llvm.extractvalue %D[NUMBER] : {FRAGMENT}\n%v = llvm.bitcast %e : f32 to i32\n" + PUT
)


@pytest.mark.parametrize(
    ("a", "b", "c", "bad"),
    [
        ("hhhh", "hh", "1111", ""),
        ("hnhn", "hh", "1111", "23"),  # rows 8 to 15
        ("hhnh", "hh", "1111", "01"),  # rows 0 to 7, second half of K
        ("hhhh", "nh", "1111", "0123"),
        ("hhhh", "hh", "1u11", "1"),
    ],
)
def test_mma_by_rows_and_columns(a: str, b: str, c: str, bad: str) -> None:
    text = MMA.replace("A, B, C", ", ".join([*(f"%{x}" for x in a + b), *("%one" if x == "1" else "%f" for x in c)]))
    for number in range(4):
        got = run(text.replace("NUMBER", str(number)))
        want = "store of 4 bytes depends on register 0 of llvm.mlir.undef, which nothing has written (0, 0, 0)"
        assert got == (want if str(number) in bad else "")


TILE = """
!f = !cute.memref<f32, gmem, align<16>, "32:1">
!acc = !cute.memref<f32, rmem, align<16>, "(2,4):(1,2)">
gpu.module @m {
  gpu.func @k(%a: !f) kernel {
    %tid = nvvm.read.ptx.sreg.tid.x : i32
    %x = arith.constant 1.0 : f32
    %t = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
    %acc = cute.memref.alloca() : !acc
    %w = cute.make_coord() : () -> !cute.coord<"(WRITTEN)">
    cute.memref.store(%acc, %w, %x) : (!acc, !cute.coord<"(WRITTEN)">, f32) -> ()
    %r = cute.make_coord() : () -> !cute.coord<"(1,2)">
    %v = cute.memref.load(%acc, %r) : (!acc, !cute.coord<"(1,2)">) -> f32
    %s = arith.addf %v, %x : f32
    cute.memref.store(%a, %t, %s) : (!f, !cute.coord<"?">, f32) -> ()
    gpu.return
  }
}
"""


@pytest.mark.parametrize("written", ["1,2", "0,3"])
def test_a_register_tensor_is_named(written: str) -> None:
    k = compile_cute(TILE.replace("WRITTEN", written), emit="base").kernel("k")
    try:
        k(np.zeros(32, np.float32), device="cpu", grid=(1,), block=(32,), checks=["uninit"])
        got = ""
    except InterpError as e:
        got = e.message
        assert e.location
    want = "store of 4 bytes depends on element (1, 2) of %acc, which nothing has written"
    assert got == ("" if written == "1,2" else want)


EXAMPLES = Path(__file__).parents[2] / "examples"
FIRST = re.compile(  # The first MMA of a tile, which overwrites the accumulator.
    r"cute\.gemm\((%\d+), %acc, (%\d+), (%\d+)\) : \((!\w+), !acc, (!\w+), (!\w+)\) -> \(\)\n( *cute_nvgpu\.arch\.wg)"
)
UNWRITTEN_SUMS = {  # example: replacements, the line of the error, the message, the end of the report
    "sm_80": (
        "gemm_sm80.mlir", [(re.compile(r" +cute\.fill\(%acc, .*\n"), "")],
        r"cute\.copy\(%21, ",
        "store of 4 bytes depends on element ((0, 0), 0, 0) of %acc",
        '"llvm.store"(%0, %1) <{alignment = 4 : i64}> : (vector<2xf16>, !llvm.ptr<3>) -> ()\n  thread (0, 0, 0)',
    ),
    "sm_90": (
        "gemm_sm90.mlir", [(FIRST, r"cute.gemm(\1, %acc, \2, \3, %acc) : (\4, !acc, \5, \6, !acc) -> ()\n\7")],
        r"cute\.gemm\(%\d+, %acc, ",
        "the accumulator of a wgmma depends on element ((0, 0, 0), 0, 0) of %acc",
        '%0 = "nvvm.wgmma.mma_async"(%1, %2, %3) <{shape = #nvvm.shape<m = 64, n = 256, k = 16>, typeA = #nvvm.'
        "wgmma_type<f16>, typeB = #nvvm.wgmma_type<f16>, typeD = #nvvm.wgmma_type<f32>, scaleD = #nvvm.w...\n"
        "  thread (128, 0, 0)",
    ),
    "sm_90 without TMA": (
        "gemm_sm90.mlir", [(re.compile(r" +cute\.fill\(%acc, .*\n"), "")],
        r"cute\.copy\(%\d+, %acc, %of_c\)",
        "store of 8 bytes depends on element ((0, 0), 0, 0) of %acc",
        '"llvm.store"(%0, %1) <{alignment = 8 : i64}> : (vector<2xf32>, !llvm.ptr<3>) -> ()\n  thread (0, 0, 0)',
    ),
}  # fmt: skip


@pytest.mark.sample("sm_90")
@pytest.mark.parametrize("name", UNWRITTEN_SUMS)
def test_uncleared_accumulators_are_reported(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """GEMM examples that do not clear their accumulator are reported, from cute IR to the interpreter."""
    file, edits, line, message, op = UNWRITTEN_SUMS[name]
    text = (EXAMPLES / file).read_text()
    for old, new in edits:
        text, changed = old.subn(new, text)
        assert changed
    path = tmp_path / file
    path.write_text(text)
    operand = "64x60" if "without" in name else "64x64"
    arrays = ("--in", operand, "--in", operand, "--in", "64x64")
    words = (str(path), "--kernel", "launch", "--device=cpu", "--check=uninit", "--no-cache", *arrays)
    assert main(words) == 1
    number, held = next((i, s) for i, s in enumerate(text.splitlines(), 1) if re.search(line, s))
    assert capsys.readouterr().err == (
        f"cute-run: error: {path}:{number}:{held.index('cute.') + 1}: error: {message}, which nothing has written\n"
        f"  op: {op} of block (0, 0, 0)\n"
    )


BRANCH = """
!f = !cute.memref<i32, gmem, align<16>, "32:1">
!flags = !cute.memref<i32, rmem, align<16>, "(2,4):(1,2)">
gpu.module @m {
  gpu.func @k(%a: !f) kernel {
    %tid = nvvm.read.ptx.sreg.tid.x : i32
    %x = arith.constant 1 : i32
    %t = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
    %flags = cute.memref.alloca() : !flags
    %c = cute.make_coord(AT) : (i32) -> !cute.coord<"(0,?)">
    %v = cute.memref.load(%flags, %c) : (!flags, !cute.coord<"(0,?)">) -> i32
    %b = arith.cmpi eq, %v, %x : i32
    scf.if %b {
      cute.memref.store(%a, %t, %x) : (!f, !cute.coord<"?">, i32) -> ()
    }
    gpu.return
  }
}
"""


@pytest.mark.parametrize("at", ["%x", "%tid"])  # in registers; in local memory
def test_a_register_tensor_that_is_branched_on(at: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "branch.mlir"
    path.write_text(BRANCH.replace("AT", at))
    launch = ("--grid=1", "--block=4" if at == "%tid" else "--block=32")
    assert main((str(path), "--device=cpu", "--check=uninit", "--no-cache", "--in", "32", *launch)) == 1
    element = "element (0, 1) of %flags" if at == "%x" else "local memory at byte offset 0, element (0, 0) of %flags"
    assert capsys.readouterr().err == (
        f"cute-run: error: {path}:13:5: error: a branch depends on {element}, which nothing has written\n"
        "  op: scf.if\n  thread (0, 0, 0) of block (0, 0, 0)\n"
    )
