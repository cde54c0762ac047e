"""Bounds of allocations: an access through a pointer into one array that lands in another is out of bounds."""

from __future__ import annotations

import numpy as np
import pytest
from interp_support import kernel, run_kernel

from cute_dialect.interp import InterpError, Pointer
from cute_dialect.pipelines import compile as compile_cute
from cute_dialect.runtime.call_options import SCHEDULES

GLOBALS = "".join(
    f'"llvm.mlir.global"() <{{addr_space = 3 : i32, alignment = 16 : i64, global_type = !llvm.array<{n} x i8>, '
    f'linkage = #llvm.linkage<"internal">, sym_name = "{name}"}}> ({{}}) : () -> ()\n'
    for name, n in (("a", 128), ("b", 128), ("c", 256))
)
HEAD = """
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c3 = arith.constant 3 : i32
    %c4 = arith.constant 4 : i32
    %c16 = arith.constant 16 : i32
    %c64 = arith.constant 64 : i32
    %c256 = arith.constant 256 : i32
    %t = arith.cmpi slt, %tid, %c16 : i32
    %a = llvm.mlir.addressof @a : !llvm.ptr<3>
    %b = llvm.mlir.addressof @b : !llvm.ptr<3>
    %c = llvm.mlir.addressof @c : !llvm.ptr<3>
"""
AT = "llvm.getelementptr %{0}[%{1}] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32\n"
STORE = "llvm.store %tid, %p : i32, !llvm.ptr<3>\n"


def run(body: str, threads: int = 32, schedule: str = "round-robin", width: str = "auto") -> str:
    """Return the report of a kernel with three static shared-memory arrays, or ""."""
    module = kernel(HEAD + body + "\nllvm.return", "%g: !llvm.ptr<1>", GLOBALS)
    try:
        run_kernel(module, "k", [Pointer(np.zeros(64, np.int32))], block=(threads,), schedule=schedule, width=width)
    except InterpError as e:
        assert e.kind == "oob", e
        return f"{e.message} {e.thread}"
    return ""


THROUGH = {  # a pointer to element %i of @b, of 4 bytes
    "getelementptr": "%p = " + AT.format("b", "i"),
    "two of them": "%q = " + AT.format("b", "i")
    + "%p = llvm.getelementptr %q[%c0] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32\n",
    "an integer": (
        "%n = llvm.ptrtoint %b : !llvm.ptr<3> to i32\n%m = arith.muli %i, %c4 : i32\n%s = arith.addi %n, %m : i32\n"
        "%p = llvm.inttoptr %s : i32 to !llvm.ptr<3>\n"
    ),
    "a generic pointer": (
        "%q = " + AT.format("b", "i") + "%r = llvm.addrspacecast %q : !llvm.ptr<3> to !llvm.ptr\n"
        "%p = llvm.addrspacecast %r : !llvm.ptr to !llvm.ptr<3>\n"
    ),
    "select": "%q = " + AT.format("b", "i") + "%p = arith.select %t, %q, %b : !llvm.ptr<3>\n",
    "scf.if": (
        "%p = scf.if %t -> (!llvm.ptr<3>) {\n%q = " + AT.format("b", "i") + "scf.yield %q : !llvm.ptr<3>\n} else {\n"
        "scf.yield %b : !llvm.ptr<3>\n}\n"
    ),
    "scf.for": (
        "%p = scf.for %j = %c0 to %i step %c1 iter_args(%q = %b) -> (!llvm.ptr<3>) : i32 {\n%r = "
        + AT.format("q", "c1") + "scf.yield %r : !llvm.ptr<3>\n}\n"
    ),
    "a struct": (
        "%q = " + AT.format("b", "i") + "%u = llvm.mlir.undef : !llvm.struct<(ptr<3>, i32)>\n"
        "%v = llvm.insertvalue %q, %u[0] : !llvm.struct<(ptr<3>, i32)>\n"
        "%p = llvm.extractvalue %v[0] : !llvm.struct<(ptr<3>, i32)>\n"
    ),
}  # fmt: skip


@pytest.mark.sample(every=5)
@pytest.mark.parametrize("width", ["auto", "warp"])
@pytest.mark.parametrize("name", THROUGH)
def test_pointers_are_bounded_by_their_array(name: str, width: str) -> None:
    """Elements 0 to 31 are in bounds. Element 32 is in the next array, and element -1 in the previous one."""
    only = "scf.if %t {\nBODY}\n" if name in ("select", "scf.if") else "BODY"
    inside = "%k15 = arith.constant 15 : i32\n%i = arith.addi %tid, %k15 : i32\n"
    assert run(inside + only.replace("BODY", THROUGH[name] + STORE), 16, width=width) == ""
    past = "%k = arith.addi %tid, %c16 : i32\n%i = arith.addi %k, %c3 : i32\n"
    got = run(past + only.replace("BODY", THROUGH[name] + STORE), 16, width=width)
    assert got == (
        "out-of-bounds store of 4 bytes through a pointer into @b (bytes 128 to 256 of shared memory) at "
        "byte offset 256, byte 0 of @c (13, 0, 0)"
    )
    if name != "scf.for":
        before = "%i = arith.subi %tid, %c1 : i32\n"
        got = run(before + only.replace("BODY", THROUGH[name] + STORE), 16, width=width)
        assert got == (
            "out-of-bounds store of 4 bytes through a pointer into @b (bytes 128 to 256 of shared memory) at "
            "byte offset 124, byte 124 of @a (0, 0, 0)"
        )


ACCESS = {
    "load": ("%v = llvm.load %p : !llvm.ptr<3> -> i32", "load of 4 bytes"),
    "vector load": ("%v = llvm.load %p : !llvm.ptr<3> -> vector<4xi32>", "load of 16 bytes"),
    "vector that begins inside": (
        "%m = llvm.getelementptr %p[-1] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i32\n"
        "%v = llvm.load %m {alignment = 4 : i64} : !llvm.ptr<3> -> vector<2xi32>",
        "load of 8 bytes",
    ),
    "generic load": (
        "%r = llvm.addrspacecast %p : !llvm.ptr<3> to !llvm.ptr\n%v = llvm.load %r : !llvm.ptr -> i32",
        "load of 4 bytes",
    ),
    "atomic": ("%v = llvm.atomicrmw add %p, %c1 monotonic : !llvm.ptr<3>, i32", "atomic of 4 bytes"),
    "inline PTX": (
        'nvvm.inline_ptx "st.shared.b32 [$0], $1;" ro(%p, %c1 : !llvm.ptr<3>, i32)',
        "store of 4 bytes",
    ),
    "cp.async": (
        '"nvvm.cp.async.shared.global"(%p, %g) <{modifier = #nvvm<load_cache_modifier ca>, size = 16 : i32}> : '
        "(!llvm.ptr<3>, !llvm.ptr<1>) -> ()",
        "cp.async write of 16 bytes",
    ),
    "mbarrier.init": ('"nvvm.mbarrier.init"(%p, %c1) : (!llvm.ptr<3>, i32) -> ()', "mbarrier"),
    "bulk copy": (
        '"nvvm.cp.async.bulk.global.shared.cta"(%g, %p, %c16) '
        "<{operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>}> : (!llvm.ptr<1>, !llvm.ptr<3>, i32) -> ()",
        "bulk copy from 16 bytes",
    ),
}


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("name", ACCESS)
def test_every_access_is_bounded(name: str, schedule: str) -> None:
    text, verb = ACCESS[name]
    at = 252 if "inside" in name else 256
    where = f"byte {at - 128} of @b" if at < 256 else "byte 0 of @c"
    body = "%c32 = arith.addi %c16, %c16 : i32\n%e = arith.cmpi eq, %tid, %c0 : i32\nscf.if %e {\n"
    body += "%p = llvm.getelementptr %b[%c32] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32\n" + text + "\n}"
    assert run(body, schedule=schedule) == (
        f"out-of-bounds {verb} through a pointer into @b (bytes 128 to 256 of shared memory) at byte offset "
        f"{at}, {where} (0, 0, 0)"
    )


def test_swapped_pointers_are_in_bounds() -> None:
    """With double buffering by swapped pointers, each pointer may access all of shared memory."""
    body = (
        "%r:2 = scf.for %j = %c0 to %c4 step %c1 iter_args(%x = %a, %y = %b) -> (!llvm.ptr<3>, !llvm.ptr<3>) : i32 {\n"
        "%p = " + AT.format("x", "tid") + STORE + "%q = " + AT.format("y", "tid")
        + "llvm.store %c1, %q : i32, !llvm.ptr<3>\nscf.yield %y, %x : !llvm.ptr<3>, !llvm.ptr<3>\n}\n"
        "%z = " + AT.format("r#0", "tid") + "llvm.store %c1, %z : i32, !llvm.ptr<3>"
    )  # fmt: skip
    assert run(body) == ""


def test_either_of_two_arrays() -> None:
    body = "%q = arith.select %t, %a, %c : !llvm.ptr<3>\n%p = " + AT.format("q", "tid") + STORE
    assert run(body) == ""
    assert run("%q = arith.select %t, %a, %c : !llvm.ptr<3>\n%p = " + AT.format("q", "c256") + STORE).startswith(
        "out-of-bounds store of 4 bytes in shared memory (512 bytes) at byte offset "
    )


def test_local_arrays_are_separate() -> None:
    """An access past the end of a register tensor is out of bounds even if it lands in another tensor."""
    body = (
        "%r = llvm.alloca %c4 x i32 : (i32) -> !llvm.ptr\n%s = llvm.alloca %c64 x i32 : (i32) -> !llvm.ptr\n"
        "%k40 = arith.constant 40 : i32\n%i = arith.addi %tid, OFFSET : i32\n"
        "%p = llvm.getelementptr %r[%i] : (!llvm.ptr, i32) -> !llvm.ptr, i32\nllvm.store %tid, %p : i32, !llvm.ptr"
    )
    assert run(body.replace("OFFSET", "%c0"), 4) == ""
    assert run(body.replace("OFFSET", "%k40"), 4) == (
        "out-of-bounds store of 4 bytes in local memory (640 bytes) at byte offset 160, byte 16 of %s (0, 0, 0)"
    )


CUTE = """
!f = !cute.memref<f32, gmem, align<16>, "32:1">
!one = !cute.memref<f32, smem, align<128>, "32:1">
gpu.module @m {
  gpu.func @k(%a: !f) kernel {
    %tid = nvvm.read.ptx.sreg.tid.x : i32
    %x = arith.constant 1.0 : f32
    %by = arith.constant OFFSET : i32
    %first = cute.memref.alloc_smem() : !one
    %second = cute.memref.alloc_smem() : !one
    %n = arith.addi %tid, %by : i32
    %t = cute.make_coord(%n) : (i32) -> !cute.coord<"?">
    cute.memref.store(%WHICH, %t, %x) : (!one, !cute.coord<"?">, f32) -> ()
    gpu.return
  }
}
"""


@pytest.mark.parametrize(
    ("which", "offset", "message"),
    [
        ("first", 0, ""),
        ("second", 0, ""),
        (
            "first",
            1,
            "out-of-bounds store of 4 bytes through a pointer into %first (bytes 0 to 128 of shared memory) "
            "at byte offset 128, element 0 of %second",
        ),
        (
            "second",
            -1,
            "out-of-bounds store of 4 bytes through a pointer into %second (bytes 128 to 256 of shared "
            "memory) at byte offset 124, element 31 of %first",
        ),
    ],
)
def test_tensors_of_one_segment(which: str, offset: int, message: str) -> None:
    text = CUTE.replace("OFFSET", str(offset)).replace("WHICH", which)
    k = compile_cute(text, emit="base").kernel("k")
    try:
        k(np.zeros(32, np.float32), device="cpu", grid=(1,), block=(32,))
        got = ""
    except InterpError as e:
        got = e.message
        assert e.location
    assert got == message


@pytest.mark.parametrize("width", ["auto", "warp"])
def test_an_access_that_begins_before_shared_memory_and_ends_in_it(width: str) -> None:
    body = (
        "%q = llvm.getelementptr %a[%tid] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32\n"
        "%p = llvm.getelementptr %q[-4] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8\n"
        "%v = arith.constant dense<1> : vector<4xi32>\n"
        "llvm.store %v, %p {alignment = 4 : i64} : vector<4xi32>, !llvm.ptr<3>\n"
    )
    assert run(body, width=width) == (
        "out-of-bounds store of 16 bytes in shared memory (512 bytes) at byte offset -4 (0, 0, 0)"
    )


def test_a_wait_at_an_mbarrier_past_its_array() -> None:
    body = (
        '"nvvm.mbarrier.init"(%b, %c1) : (!llvm.ptr<3>, i32) -> ()\n'
        "%p = llvm.getelementptr %a[16] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i64\n"
        '"nvvm.mbarrier.arrive"(%p) : (!llvm.ptr<3>) -> ()\n'
    )
    assert run("%t0 = arith.cmpi eq, %tid, %c0 : i32\nscf.if %t0 {\n" + body + "}") == (
        "out-of-bounds mbarrier through a pointer into @a (bytes 0 to 128 of shared memory) at byte offset "
        "128, byte 0 of @b (0, 0, 0)"
    )
