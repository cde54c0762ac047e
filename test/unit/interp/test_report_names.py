"""Tensor names and coordinates in reports on shared and local memory of kernels lowered from cute IR."""

from __future__ import annotations

import itertools
from typing import cast

import numpy as np
import pytest
from interp_support import kernel, run_kernel

from cute_dialect.algebra import text
from cute_dialect.algebra.evaluation import evaluate
from cute_dialect.algebra.values import IntTuple
from cute_dialect.interp import InterpError, Pointer
from cute_dialect.interp.memory.allocations import Allocation, Allocations
from cute_dialect.pipelines import compile as compile_cute

HEAD = """
!f = !cute.memref<f32, gmem, align<16>, "32:1">
!two = !cute.memref<f32, smem, align<128>, "(4,(8,2)):(1,(4,40))">
"""


def run(body: str, threads: int = 32) -> str:
    """Return the report of a cute kernel with one array of 32 elements, or ""."""
    module = compile_cute(
        HEAD + "gpu.module @m {\n  gpu.func @k(%a: !f) kernel {\n" + body + "\n    gpu.return\n  }\n}\n", emit="base"
    )
    try:
        a = np.zeros(32, np.float32)
        module.kernel("k")(a, device="cpu", grid=(1,), block=(threads,), checks=["race", "uninit"])
    except InterpError as e:
        return str(e)
    return ""


THREAD = """
    %tid = nvvm.read.ptx.sreg.tid.x : i32
    %t = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
    %x = arith.constant 1.0 : f32
    %first = cute.memref.alloc_smem() : !cute.memref<f16, smem, align<128>, "64:1">
    %tile = cute.memref.alloc_smem() : !two"""


@pytest.mark.parametrize(
    ("type_", "coord"),
    [
        ('!cute.memref<f16, smem, "(8,(4,8)):(1,(8,32))">', (3, (1, 5))),
        ('!cute.memref<f32, smem, align<1024>, S<3,4,3>, "(64,32):(32,1)">', (13, 7)),
        ('!cute.memref<f16, smem, "S<3,3,3> o 0 o (16,64):(64,1)">', (9, 33)),
        ('!cute.memref<f8E4M3FN, smem, align<16>, "(3,5):(8,1)">', (2, 4)),
        ('!cute.memref<i64, smem, "(4,2):(1,4)">', (2, 1)),
    ],
)
def test_coordinates(type_: str, coord: IntTuple) -> None:
    """The report recovers the coordinate from the address that the layout gives it."""
    quoted = type_.split('"')[1]
    index = evaluate(coord, text.parse_composed_layout(quoted))
    assert isinstance(index, int)
    bits = {"f16": 16, "f32": 32, "f8E": 8, "i64": 64}[type_[13:16]]
    byte = index * bits // 8
    if "S<3,4,3>, " in type_:
        byte ^= (byte >> 3) & 0x70
    a = Allocation("%s", 4096, 16384, type_)
    want = str(coord).replace("'", "")
    assert Allocations([a]).place(4096 + byte) == f", element {want} of %s"


def test_every_element_of_a_swizzled_tile() -> None:
    a = Allocation("%s", 0, 1024, '!cute.memref<f16, smem, align<1024>, S<2,4,3>, "(8,32):(32,1)">')
    seen: set[int] = set()
    for i, j in itertools.product(range(8), range(32)):
        byte = 2 * (32 * i + j)
        byte ^= (byte >> 3) & 0x30
        assert a.element(byte) == a.element(byte + 1) == f"element ({i}, {j})"
        seen.add(byte)
    assert len(seen) == 256


def test_bytes_without_a_coordinate() -> None:
    padded = Allocation("%s", 64, 96, '!cute.memref<f32, smem, "(4,3):(1,8)">')
    known = Allocations([padded, Allocation("%t", 160, 8)])
    assert known.place(64 + 4 * 5) == ", byte 20 of %s"  # padding between two columns
    assert known.place(161) == ", byte 1 of %t"
    assert known.place(171) == ", 3 bytes past the end of %t" and known.place(3) == ""
    assert Allocation("%u", 0, 8, '!cute.memref<f32, smem, "(?,3):(1,8)">').element(0) == ""


def test_a_race_names_the_element() -> None:
    """Thread 1 writes the element that thread 0 reads. The tile starts 128 bytes after another buffer."""
    body = (
        THREAD
        + """
    cute.memref.store(%tile, %t, %x) : (!two, !cute.coord<"?">, f32) -> ()
    %one = arith.constant 1 : i32
    %n = arith.addi %tid, %one : i32
    %i = arith.remui %n, %ntid : i32
    %c = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
    %v = cute.memref.load(%tile, %c) : (!two, !cute.coord<"?">) -> f32
    cute.memref.store(%a, %t, %v) : (!f, !cute.coord<"?">, f32) -> ()"""
    )
    report = run(body.replace("%x = arith", "%ntid = nvvm.read.ptx.sreg.ntid.x : i32\n    %x = arith"))
    assert "race on shared memory at byte offset 132, element (1, (0, 0)) of %tile" in report
    assert "thread (0, 0, 0) of block (0, 0, 0)" in report and "by thread (1, 0, 0)" in report
    # The element at (3, (7, 1)) of a layout with a gap.
    report = run(
        THREAD
        + """
    %c = arith.constant 63 : i32
    %k = cute.make_coord(%c) : (i32) -> !cute.coord<"?">
    %v = cute.memref.load(%tile, %k) : (!two, !cute.coord<"?">) -> f32
    cute.memref.store(%a, %t, %v) : (!f, !cute.coord<"?">, f32) -> ()"""
    )
    assert f"byte offset {128 + 4 * (3 + 28 + 40)}, element (3, (7, 1)) of %tile: nothing has written" in report


def test_past_the_end() -> None:
    report = run(
        THREAD
        + """
    %c = arith.constant 160 : i32
    %k = cute.make_coord(%c) : (i32) -> !cute.coord<"?">
    cute.memref.store(%tile, %k, %x) : (!two, !cute.coord<"?">, f32) -> ()"""
    )
    assert "out-of-bounds store of 4 bytes in shared memory" in report and "past the end of %tile" in report


def test_an_mbarrier_has_the_name_of_its_tensor() -> None:
    report = run(
        """
    %bars = cute.memref.alloc_smem() : !cute.memref<i64, smem, "(2,2):(1,2)">
    %i = cute.make_int_tuple() : () -> !cute.int_tuple<"3">
    %p = cute.get_iter(%bars) : !cute.memref<i64, smem, "(2,2):(1,2)">
    %q = cute.add_offset(%p, %i) : (!cute.ptr<i64, smem>, !cute.int_tuple<"3">) -> !cute.ptr<i64, smem>
    %c1 = arith.constant 1 : i32
    %c0 = arith.constant 0 : i32
    %tid = nvvm.read.ptx.sreg.tid.x : i32
    %z = arith.cmpi eq, %tid, %c0 : i32
    scf.if %z {
      cute_nvgpu.arch.mbarrier_init(%q, %c1) : (!cute.ptr<i64, smem>, i32) -> ()
    }
    nvvm.barrier0
    cute_nvgpu.arch.mbarrier_wait(%q, %c0) : (!cute.ptr<i64, smem>, i32) -> ()"""
    )
    assert "deadlock" in report and "mbarrier at shared memory byte offset 24, element (1, 1) of %bars" in report


def test_a_register_tensor_in_local_memory() -> None:
    """An index past the end of a register tensor in local memory is reported by name."""
    body = """
    %tid = nvvm.read.ptx.sreg.tid.x : i32
    %t = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
    %x = arith.constant 1.0 : f32
    %regs = cute.memref.alloca() : !cute.memref<f32, rmem, align<16>, "(2,4):(1,2)">
    %more = cute.memref.alloca() : !cute.memref<f32, rmem, align<16>, "64:1">
    cute.memref.store(%more, %t, %x) : (!cute.memref<f32, rmem, align<16>, "64:1">, !cute.coord<"?">, f32) -> ()
    cute.memref.store(%regs, %t, %x) : (!cute.memref<f32, rmem, align<16>, "(2,4):(1,2)">, !cute.coord<"?">, f32) -> ()
    %v = cute.memref.load(%regs, %t) : (!cute.memref<f32, rmem, align<16>, "(2,4):(1,2)">, !cute.coord<"?">) -> f32
    %w = cute.memref.load(%more, %t) : (!cute.memref<f32, rmem, align<16>, "64:1">, !cute.coord<"?">) -> f32
    %s = arith.addf %v, %w : f32
    cute.memref.store(%a, %t, %s) : (!f, !cute.coord<"?">, f32) -> ()"""
    assert run(body, 8) == ""
    report = run(body, 9)
    assert "out-of-bounds store of 4 bytes in local memory" in report and "thread (8, 0, 0)" in report
    assert "0 bytes past the end of %regs" in report


def test_globals_of_base_ir() -> None:
    """If there are several shared globals and no `cute.smem`, reports name the globals."""
    both = "".join(
        f'"llvm.mlir.global"() <{{addr_space = 3 : i32, alignment = 16 : i64, global_type = !llvm.array<{n} x i8>, '
        f'linkage = #llvm.linkage<"internal">, sym_name = "{name}"}}> ({{}}) : () -> ()\n'
        for name, n in (("s", 64), ("t", 128))
    )
    body = """
      %s = llvm.mlir.addressof @s : !llvm.ptr<3>
      %t = llvm.mlir.addressof @t : !llvm.ptr<3>
      %p = llvm.getelementptr %t[%tid] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
      %v = llvm.load %p : !llvm.ptr<3> -> i32
      %w = llvm.load %s : !llvm.ptr<3> -> i32
      llvm.store %v, %a : i32, !llvm.ptr<1>
      llvm.return"""
    with pytest.raises(InterpError, match="at byte offset 64, byte 0 of @t: nothing has written") as e:
        run_kernel(
            kernel(body, "%a: !llvm.ptr<1>", both), "k", [Pointer(np.zeros(4, np.int32))], 1, 4, checks=["uninit"]
        )
    assert cast("tuple[int, int, int]", e.value.thread) == (0, 0, 0)
