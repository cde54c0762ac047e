"""Tiles, partitions, offsets and recasts of tensors, run on the CPU interpreter and compared with NumPy indexing."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError, VerifyException

from cute_dialect.ir.context import make_context
from cute_dialect.passes.base import PassContext, PassError, run_pass
from cute_dialect.passes.registry import load
from cute_dialect.pipelines import compile as compile_cute

MAT = '!cute.memref<f32, gmem, "(?,?):(?,?)">'


def strided(rows: int, columns: int, strides: tuple[int, int]) -> np.ndarray:
    """Return a matrix of distinct numbers with these strides, in elements."""
    last = (rows - 1) * strides[0] + (columns - 1) * strides[1]
    store = np.arange(last + 1, dtype=np.float32)
    return np.lib.stride_tricks.as_strided(store, (rows, columns), (4 * strides[0], 4 * strides[1]))


def gather(ops: str, result: str, n: str, matrix: np.ndarray, *scalars: int, coord: bool = False) -> np.ndarray:
    """Run ``ops`` in one thread and return the elements of ``%r`` in colexicographic order.

    ``ops`` may use the matrix ``%a`` and the scalars ``%i0``, ``%i1`` …
    """
    args = "".join(f", %i{k}: i32" for k in range(len(scalars)))
    load = (
        f'%v = cute.memref.load(%r, %c) : ({result}, !cute.coord<"?">) -> f32'
        if not coord
        else f"""%p = cute.memref.load(%r, %c) : ({result}, !cute.coord<"?">) -> !cute.int_tuple<"(?,?)">
        %ps:2 = cute.get_scalars(%p) : !cute.int_tuple<"(?,?)">
        %thousand = arith.constant 1000 : i32
        %w0 = arith.muli %ps#0, %thousand : i32
        %w1 = arith.addi %w0, %ps#1 : i32
        %v = arith.sitofp %w1 : i32 to f32"""
    )
    text = f"""
!a = {MAT}
module attributes {{gpu.container_module}} {{
  gpu.module @m {{
    gpu.func @k(%a: !a, %o: !cute.memref<f32, gmem, "?:1">{args}) kernel attributes {{known_block_size = array<i32: 1, 1, 1>}} {{
      {ops}
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %n = arith.constant {n} : i32
      scf.for %i = %c0 to %n step %c1 : i32 {{
        %c = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
        {load}
        cute.memref.store(%o, %c, %v) : (!cute.memref<f32, gmem, "?:1">, !cute.coord<"?">, f32) -> ()
      }}
      gpu.return
    }}
  }}
}}
"""  # noqa: E501
    out = np.full(int(n), -1, np.float32)
    compile_cute(text, emit="base").kernel("k")(matrix, out, *scalars, grid=(1, 1, 1), device="cpu")
    return out


SHAPES = [(37, 29, (29, 1)), (40, 24, (25, 1)), (33, 17, (1, 35)), (16, 64, (3, 50))]


@pytest.mark.parametrize("case", SHAPES, ids=str)
def test_local_tile_is_a_slice_of_the_matrix(case: tuple[int, int, tuple[int, int]]) -> None:
    rows, columns, strides = case
    a = strided(rows, columns, strides)
    ops = """
      %t = cute.static : !cute.tile<"[8:1;4:1]">
      %at = cute.make_coord(%i0, %i1) : (i32, i32) -> !cute.coord<"(?,?)">
      %r = cute.local_tile(%a, %t, %at) : (!a, !cute.tile<"[8:1;4:1]">, !cute.coord<"(?,?)">) -> !cute.memref<f32, gmem, "(8,4):(?,?)">
"""  # noqa: E501
    for i, j in ((0, 0), (1, 3), (rows // 8 - 1, columns // 4 - 1)):
        got = gather(ops, '!cute.memref<f32, gmem, "(8,4):(?,?)">', "32", a, i, j)
        assert np.array_equal(got.reshape(4, 8).T, a[8 * i : 8 * i + 8, 4 * j : 4 * j + 4])


def test_projection_drops_missing_modes() -> None:
    a = strided(32, 24, (25, 1))
    ops = """
      %t = cute.static : !cute.tile<"[8:1;5:1;4:1]">
      %at = cute.make_coord(%i0, %i0) : (i32, i32) -> !cute.coord<"(?,?,_)">
      %p = cute.static : !cute.coord<"(1,_,1)">
      %b = cute.local_tile(%a, %t, %at, %p) : (!a, !cute.tile<"[8:1;5:1;4:1]">, !cute.coord<"(?,?,_)">, !cute.coord<"(1,_,1)">) -> !cute.memref<f32, gmem, "(8,4,?):(?,?,?{div=4})">
      %s = cute.make_coord(%i1) : (i32) -> !cute.coord<"(_,_,?)">
      %r = cute.slice(%b, %s) : !cute.memref<f32, gmem, "(8,4,?):(?,?,?{div=4})">, !cute.coord<"(_,_,?)">
"""  # noqa: E501
    got = gather(ops, '!cute.memref<f32, gmem, "(8,4):(?,?)">', "32", a, 2, 5)
    assert np.array_equal(got.reshape(4, 8).T, a[16:24, 20:24])


@pytest.mark.parametrize("thread", [0, 1, 9, 31])
def test_local_partition_deals_elements_to_threads(thread: int) -> None:
    a = strided(8, 16, (17, 1))
    ops = """
      %z = cute.static : !cute.coord<"(0,0)">
      %t = cute.static : !cute.tile<"[8:1;16:1]">
      %b = cute.local_tile(%a, %t, %z) : (!a, !cute.tile<"[8:1;16:1]">, !cute.coord<"(0,0)">) -> !cute.memref<f32, gmem, "(8,16):(?,?)">
      %th = cute.static : !cute.layout<"(4,8):(8,1)">
      %k = cute.make_coord(%i0) : (i32) -> !cute.coord<"?">
      %r = cute.local_partition(%b, %th, %k) : (!cute.memref<f32, gmem, "(8,16):(?,?)">, !cute.layout<"(4,8):(8,1)">, !cute.coord<"?">) -> !cute.memref<f32, gmem, "(2,2):(?{div=4},?{div=8})">
"""  # noqa: E501
    got = gather(ops, '!cute.memref<f32, gmem, "(2,2):(?{div=4},?{div=8})">', "4", a, thread)
    m, n = thread // 8, thread % 8
    assert np.array_equal(got.reshape(2, 2).T, a[m::4, n::8])


def test_domain_offset_moves_the_origin() -> None:
    a = strided(20, 30, (31, 1))
    ops = """
      %at = cute.make_coord(%i0, %i1) : (i32, i32) -> !cute.coord<"(?,?)">
      %m = cute.domain_offset(%a, %at) : (!a, !cute.coord<"(?,?)">) -> !a
      %t = cute.static : !cute.tile<"[4:1;4:1]">
      %z = cute.static : !cute.coord<"(1,2)">
      %r = cute.local_tile(%m, %t, %z) : (!a, !cute.tile<"[4:1;4:1]">, !cute.coord<"(1,2)">) -> !cute.memref<f32, gmem, "(4,4):(?,?)">
"""  # noqa: E501
    got = gather(ops, '!cute.memref<f32, gmem, "(4,4):(?,?)">', "16", a, 3, 5)
    assert np.array_equal(got.reshape(4, 4).T, a[7:11, 13:17])


def test_coordinate_tensors_are_tiled_like_matrices() -> None:
    a = strided(40, 24, (25, 1))
    ids = '!cute.coord_tensor<"(0,0)", "(40,24):(1@0,1@1)">'
    block = '!cute.coord_tensor<"(?{div=8},?{div=4})", "(8,4):(1@0,1@1)">'
    part = '!cute.coord_tensor<"(?,?)", "(2,2):(4@0,2@1)">'
    ops = f"""
      %o0 = cute.static : !cute.int_tuple<"(0,0)">
      %l0 = cute.static : !cute.layout<"(40,24):(1@0,1@1)">
      %ids = cute.make_view(%o0, %l0) : {ids}
      %t = cute.static : !cute.tile<"[8:1;4:1]">
      %at = cute.make_coord(%i0, %i1) : (i32, i32) -> !cute.coord<"(?,?)">
      %b = cute.local_tile(%ids, %t, %at) : ({ids}, !cute.tile<"[8:1;4:1]">, !cute.coord<"(?,?)">) -> {block}
      %th = cute.static : !cute.layout<"(4,2):(1,4)">
      %k = cute.make_coord(%i2) : (i32) -> !cute.coord<"?">
      %r = cute.local_partition(%b, %th, %k) : ({block}, !cute.layout<"(4,2):(1,4)">, !cute.coord<"?">) -> {part}
"""
    got = gather(ops, part, "4", a, 3, 2, 6, coord=True)
    expected = [1000 * (24 + 2 + 4 * m) + 8 + 1 + 2 * n for n in range(2) for m in range(2)]
    assert got.tolist() == expected


@pytest.mark.parametrize(("element", "bits"), [("i16", 16), ("i8", 8), ("i64", 64)])
def test_recast_reads_the_same_bytes(element: str, bits: int) -> None:
    rows = 4
    columns = 16 * 32 // bits
    row = "?" if bits == 64 else f"?{{div={64 // bits}}}"
    seen = f'!cute.memref<{element}, gmem, {"" if bits == 64 else "align<8>, "}"(4,{columns}):({row},1)">'
    text = f"""
module attributes {{gpu.container_module}} {{
  gpu.module @m {{
    gpu.func @k(%a: !cute.memref<i32, gmem, align<8>, "(4,16):(?{{div=2}},1)">, %o: !cute.memref<{element}, gmem, "?:1">) kernel attributes {{known_block_size = array<i32: 1, 1, 1>}} {{
      %r = cute.recast_tensor(%a) : !cute.memref<i32, gmem, align<8>, "(4,16):(?{{div=2}},1)"> to {seen}
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %n = arith.constant {rows * columns} : i32
      scf.for %i = %c0 to %n step %c1 : i32 {{
        %c = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
        %v = cute.memref.load(%r, %c) : ({seen}, !cute.coord<"?">) -> {element}
        cute.memref.store(%o, %c, %v) : (!cute.memref<{element}, gmem, "?:1">, !cute.coord<"?">, {element}) -> ()
      }}
      gpu.return
    }}
  }}
}}
"""  # noqa: E501
    rng = np.random.default_rng(bits)
    a = np.lib.stride_tricks.as_strided(rng.integers(0, 1 << 31, 128, np.int32), (4, 16), (18 * 4, 4))
    out = np.zeros(rows * columns, f"i{bits // 8}")
    compile_cute(text, emit="base").kernel("k")(a, out, grid=(1, 1, 1), device="cpu")
    expected = np.ascontiguousarray(a).view(f"i{bits // 8}")
    assert np.array_equal(out.reshape(columns, rows).T, expected)


S = '!cute.memref<f16, smem, "(8,16):(16,1)">'
ERRORS = {
    '%r = cute.memref.alloc_smem() : !cute.memref<f16, gmem, "8:1">': "expected an smem tensor, got",
    '%r = cute.memref.alloc_smem() : !cute.memref<f16, smem, "?:1">': "expected a static layout, got ?:1",
    '%r = cute.memref.alloc_smem() : !cute.memref<i4, smem, "7:1">': "expected whole bytes, got 7 elements of i4",
    '%r = cute.memref.alloc_smem() : !cute.memref<f16, smem, align<128>, S<3,4,3>, "64:1">': "write align<1024>",
    '%r = cute.memref.alloc_smem() : !cute.memref<f32, smem, "60000:1">': "expected at most 232448 bytes",
    "%r = cute.smem_base() : !cute.ptr<i8, smem, align<2048>>": "expected !cute.ptr<i8, smem, align<1024>>",
    f'%r = cute.local_tile(%s, %c1, %c2) : ({S}, !cute.coord<"1">, !cute.coord<"(1,1)">) -> {S}': "operand #1 must be",
    f'%r = cute.local_tile(%s, %t, %t) : ({S}, !cute.tile<"[4:1;4:1]">, !cute.tile<"[4:1;4:1]">) -> {S}': "operand #2",
    f'%r = cute.local_tile(%s, %t, %c3) : ({S}, !cute.tile<"[4:1;4:1]">, !cute.coord<"(1,1,1)">) -> {S}': "rank at most",  # noqa: E501
    f'%r = cute.local_tile(%s, %t, %c2) : ({S}, !cute.tile<"[4:1;4:1]">, !cute.coord<"(1,1)">) -> {S}': "result #0: expected",  # noqa: E501
    f'%r = cute.local_tile(%c1, %t, %c2) : (!cute.coord<"1">, !cute.tile<"[4:1;4:1]">, !cute.coord<"(1,1)">) -> {S}': "operand #0 must be a tensor",  # noqa: E501
    f'%r = cute.local_partition(%s, %th, %c2) : ({S}, !cute.layout<"(4,8):(8,1)">, !cute.coord<"(1,1)">) -> {S}': "must be a thread index",  # noqa: E501
    f'%r = cute.local_partition(%s, %t, %c1) : ({S}, !cute.tile<"[4:1;4:1]">, !cute.coord<"1">) -> {S}': "operand #1 must be a !cute.layout",  # noqa: E501
    f'%r = cute.local_partition(%s, %dl, %c1) : ({S}, !cute.layout<"?:1">, !cute.coord<"1">) -> {S}': "expected a static thread layout",  # noqa: E501
    f'%r = cute.domain_offset(%s, %c3) : ({S}, !cute.coord<"(1,1,1)">) -> {S}': "weakly congruent to the shape (8,16)",
    f'%r = cute.recast_tensor(%s) : {S} to !cute.memref<i32, smem, "(8,8):(8,1)">': "at least the 4 bytes of i32, got 2",  # noqa: E501
    f'%r = cute.recast_tensor(%s) : {S} to !cute.memref<i8, smem, "(8,8):(8,1)">': "result #0: expected",
}


@pytest.mark.parametrize("op", ERRORS, ids=lambda op: ERRORS[op][:40])
def test_error_messages(op: str) -> None:
    text = f"""
func.func @f(%s: {S}, %c1: !cute.coord<"1">, %c2: !cute.coord<"(1,1)">, %c3: !cute.coord<"(1,1,1)">,
             %t: !cute.tile<"[4:1;4:1]">, %th: !cute.layout<"(4,8):(8,1)">, %dl: !cute.layout<"?:1">) {{
  {op}
  return
}}
"""
    with pytest.raises((VerifyException, ParseError)) as caught:
        Parser(make_context(), text).parse_module().verify()
    assert ERRORS[op] in str(caught.value)


def test_buffers_that_do_not_fit_are_listed() -> None:
    text = """
module attributes {gpu.container_module} {
  gpu.module @m {
    gpu.func @k() kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
      %as = cute.memref.alloc_smem() : !cute.memref<f32, smem, align<16>, "(128,256):(256,1)">
      %bs = cute.memref.alloc_smem() : !cute.memref<f32, smem, align<16>, "(128,200):(200,1)">
      gpu.return
    }
  }
}
"""
    with pytest.raises(PassError, match=r"233472 bytes .* at most 232448 .*: %as 131072 bytes, %bs 102400 bytes"):
        lower(text)


def test_shared_memory_belongs_to_kernels() -> None:
    text = """
func.func @f() {
  %s = cute.memref.alloc_smem() : !cute.memref<f32, smem, "8:1">
  return
}
"""
    with pytest.raises(PassError, match=r"expected 'cute.memref.alloc_smem' in a kernel"):
        lower(text)


def test_four_bit_elements_are_copied_as_bytes_or_rejected() -> None:
    whole = '!cute.memref<i4, gmem, align<4>, "(8):(1)">'
    odd = '!cute.memref<i4, gmem, "(7):(1)">'
    for t, n in ((whole, 8), (odd, 7)):
        v = f"vector<{n}xi4>"
        text = f"func.func @f(%a: {t}) -> {v} {{\n %v = cute.memref.load_vec %a : {t}\n return %v : {v}\n}}"
        if t is odd:
            with pytest.raises(PassError, match="elements of 4 bits must form whole contiguous bytes"):
                lower(text)
        else:
            assert "vector<4xi8>" in lower(text)


def lower(text: str) -> str:
    from io import StringIO

    from xdsl.printer import Printer

    module = Parser(make_context(), text).parse_module()
    module.verify()
    for name in ("cute-fold-static", "cute-expand-ops", "convert-cute-algo-to-arch", "cute-to-base"):
        run_pass(load(name)(), module, PassContext(make_context()))
    out = StringIO()
    Printer(out).print_op(module)
    return out.getvalue()
