"""Warp collectives, ldmatrix/stmatrix and mma.sync on the interpreter, compared with NumPy."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from interp_support import DSMEM, kernel, run_kernel

from cute_dialect.interp import InterpError, Pointer

STORE = """
    %o = arith.muli %cta, %ntid : i32
    %i = arith.addi %o, %tid : i32
    %p = llvm.getelementptr %a[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %r, %p : i32, !llvm.ptr<1>
    llvm.return
"""
FULL = "%full = arith.constant -1 : i32\n"


def run(body: str, lanes: int = 64, width: str = "auto") -> np.ndarray:
    a = np.zeros(lanes, np.int32)
    run_kernel(kernel(FULL + body + STORE, "%a: !llvm.ptr<1>"), "k", [Pointer(a)], block=(lanes,), width=width)
    return a


def shfl_oracle(kind: str, lane: int, b: int, c: int) -> tuple[int, bool]:
    """Return the result of shfl.sync, computed with the pseudocode of the PTX ISA."""
    segmask, cval = (c >> 8) & 31, c & 31
    top, low = (lane & segmask) | (cval & ~segmask & 31), lane & segmask
    if kind == "up":
        j = lane - b
        ok = j >= top
    elif kind == "down":
        j = lane + b
        ok = j <= top
    elif kind == "bfly":
        j = lane ^ b
        ok = j <= top
    else:
        j = low | (b & ~segmask)
        ok = j <= top
    return (j if ok else lane), ok


@pytest.mark.parametrize("kind", ["bfly", "up", "down", "idx"])
@pytest.mark.parametrize(("offset", "clamp"), [(1, 31), (5, 31), (16, 31), (3, 0), (2, 0x1807), (1, 0x1C03)])
def test_shuffle(kind: str, offset: int, clamp: int) -> None:
    body = f"""
        %b = arith.constant {offset} : i32
        %c = arith.constant {clamp} : i32
        %k = arith.constant 1000 : i32
        %s = "nvvm.shfl.sync"(%full, %tid, %b, %c) <{{kind = #nvvm<shfl_kind {kind}>, return_value_and_is_valid}}>
            : (i32, i32, i32, i32) -> !llvm.struct<(i32, i1)>
        %v = llvm.extractvalue %s[0] : !llvm.struct<(i32, i1)>
        %ok = llvm.extractvalue %s[1] : !llvm.struct<(i32, i1)>
        %w = arith.extui %ok : i1 to i32
        %x = arith.muli %w, %k : i32
        %r = arith.addi %v, %x : i32
    """
    want = []
    for t in range(64):
        j, ok = shfl_oracle(kind, t % 32, offset, clamp)
        want.append(t // 32 * 32 + j + 1000 * ok)
    assert run(body).tolist() == want
    assert run(body, width="warp").tolist() == want


@pytest.mark.parametrize("width", ["auto", "warp"])
def test_butterfly_reduction_over_many_blocks(width: str) -> None:
    steps = "".join(
        f"""
        %o{k} = arith.constant {16 >> k} : i32
        %s{k} = "nvvm.shfl.sync"(%full, %x{k}, %o{k}, %c31) <{{kind = #nvvm<shfl_kind bfly>}}>
            : (i32, f32, i32, i32) -> f32
        %x{k + 1} = arith.addf %x{k}, %s{k} : f32
        """
        for k in range(5)
    )
    module = kernel(
        FULL
        + f"""
        %c31 = arith.constant 31 : i32
        %o = arith.muli %cta, %ntid : i32
        %i = arith.addi %o, %tid : i32
        %p = llvm.getelementptr %a[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
        %x0 = llvm.load %p : !llvm.ptr<1> -> f32
        {steps}
        llvm.store %x5, %p : f32, !llvm.ptr<1>
        llvm.return
        """,
        "%a: !llvm.ptr<1>",
    )
    a = np.random.default_rng(0).integers(-50, 50, (20, 3, 32)).astype(np.float32)
    want = np.broadcast_to(a.sum(axis=2, keepdims=True), a.shape).copy()
    run_kernel(module, "k", [Pointer(a)], grid=(20,), block=(96,), width=width)
    assert np.array_equal(a, want)


def test_a_partial_last_warp() -> None:
    """With 40 threads the second warp has 8 lanes. A full member mask that includes the missing lanes is allowed."""
    body = """
        %c1 = arith.constant 1 : i32
        %v = arith.constant 1 : i32
        %r = "nvvm.redux.sync"(%v, %full) <{kind = #nvvm<redux_kind add>, abs = false, nan = false}> : (i32, i32) -> i32
    """
    assert run(body, 40).tolist() == [32] * 32 + [8] * 8


@pytest.mark.parametrize(
    ("kind", "f"),
    [
        ("add", lambda v: int(v.sum())),
        ("max", lambda v: int(v.max())),
        ("min", lambda v: int(v.min())),
        ("umax", lambda v: int(v.view(np.uint32).max().view(np.int32))),
        ("umin", lambda v: int(v.view(np.uint32).min().view(np.int32))),
        ("and", lambda v: int(np.bitwise_and.reduce(v))),
        ("or", lambda v: int(np.bitwise_or.reduce(v))),
        ("xor", lambda v: int(np.bitwise_xor.reduce(v))),
    ],
)
def test_redux(kind: str, f) -> None:
    body = f"""
        %c7 = arith.constant 7919 : i32
        %c9 = arith.constant 100000 : i32
        %v0 = arith.muli %tid, %c7 : i32
        %v = arith.subi %v0, %c9 : i32
        %r = "nvvm.redux.sync"(%v, %full) <{{kind = #nvvm<redux_kind {kind}>, abs = false, nan = false}}>
            : (i32, i32) -> i32
    """
    v = (np.arange(64) * 7919 - 100000).astype(np.int32).reshape(2, 32)
    assert run(body).tolist() == [f(v[0])] * 32 + [f(v[1])] * 32


def test_vote_match_elect() -> None:
    body = """
        %c3 = arith.constant 3 : i32
        %c1 = arith.constant 1 : i32
        %c2 = arith.constant 2 : i32
        %k = arith.remsi %tid, %c3 : i32
        %pred = arith.cmpi eq, %k, %c1 : i32
        %bal = "nvvm.vote.sync"(%full, %pred) <{kind = #nvvm<vote_sync_kind ballot>}> : (i32, i1) -> i32
        %any = "nvvm.vote.sync"(%full, %pred) <{kind = #nvvm<vote_sync_kind any>}> : (i32, i1) -> i1
        %all = "nvvm.vote.sync"(%full, %pred) <{kind = #nvvm<vote_sync_kind all>}> : (i32, i1) -> i1
        %m = "nvvm.match.sync"(%full, %k) <{kind = #nvvm<match_sync_kind any>}> : (i32, i32) -> i32
        %e = "nvvm.elect.sync"() : () -> i1
        %x = arith.xori %bal, %m : i32
        %ea = arith.extui %e : i1 to i32
        %aa = arith.extui %any : i1 to i32
        %al = arith.extui %all : i1 to i32
        %t0 = arith.addi %x, %ea : i32
        %t1 = arith.addi %t0, %aa : i32
        %al2 = arith.muli %al, %c2 : i32
        %r = arith.addi %t1, %al2 : i32
    """
    want = []
    for t in range(64):
        base = t // 32 * 32
        ballot = sum(1 << s for s in range(32) if (base + s) % 3 == 1)
        match = sum(1 << s for s in range(32) if (base + s) % 3 == t % 3)
        want.append((ballot ^ match) + (t % 32 == 0) + 1)
    assert (run(body).view(np.uint32).tolist()) == want


def test_ballot_of_a_divergent_part() -> None:
    """In a divergent branch the member mask must contain exactly the lanes of that branch."""
    body = """
        %c8 = arith.constant 8 : i32
        %c255 = arith.constant 255 : i32
        %z = arith.constant 0 : i32
        %low = arith.cmpi slt, %tid, %c8 : i32
        %r = scf.if %low -> (i32) {
          %t = arith.constant true
          %b = "nvvm.vote.sync"(%MASK, %t) <{kind = #nvvm<vote_sync_kind ballot>}> : (i32, i1) -> i32
          scf.yield %b : i32
        } else {
          scf.yield %z : i32
        }
    """
    assert run(body.replace("MASK", "c255"), 32).tolist() == [255] * 8 + [0] * 24
    with pytest.raises(InterpError, match="the member mask contains lane 8, which is still running"):
        run(body.replace("MASK", "full"), 32)


ROW = "eltType = #nvvm.ld_st_matrix_elt_type<b16>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>"


@pytest.mark.parametrize("layout", ["row", "col"])
@pytest.mark.parametrize("num", [1, 2, 4])
def test_ldmatrix_then_stmatrix_is_the_identity(num: int, layout: str) -> None:
    struct = "i32" if num == 1 else f"!llvm.struct<({', '.join(['i32'] * num)})>"
    parts = "" if num == 1 else "\n".join(f"%x{i} = llvm.extractvalue %x[{i}] : {struct}" for i in range(num))
    names = "%x" if num == 1 else ", ".join(f"%x{i}" for i in range(num))
    module = kernel(
        f"""
        %d = llvm.mlir.addressof @dsmem : !llvm.ptr<3>
        %c8 = arith.constant 8 : i32
        %c512 = arith.constant 512 : i32
        %e = arith.muli %tid, %c8 : i32
        %g = llvm.getelementptr %a[%e] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i16
        %v = llvm.load %g {{alignment = 16 : i64}} : !llvm.ptr<1> -> vector<8xi16>
        %s = llvm.getelementptr %d[%e] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i16
        llvm.store %v, %s {{alignment = 16 : i64}} : vector<8xi16>, !llvm.ptr<3>
        "nvvm.barrier0"() : () -> ()
        %x = "nvvm.ldmatrix"(%s) <{{{ROW}, layout = #nvvm.mma_layout<{layout}>, num = {num} : i32}}>
            : (!llvm.ptr<3>) -> {struct}
        {parts}
        """
        + f"""
        %t = llvm.getelementptr %s[%c512] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
        "nvvm.stmatrix"(%t, {names}) <{{{ROW}, layout = #nvvm.mma_layout<{layout}>}}>
            : (!llvm.ptr<3>{", i32" * num}) -> ()
        "nvvm.barrier0"() : () -> ()
        %w = llvm.load %t {{alignment = 16 : i64}} : !llvm.ptr<3> -> vector<8xi16>
        %q = llvm.getelementptr %o[%e] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i16
        llvm.store %w, %q {{alignment = 16 : i64}} : vector<8xi16>, !llvm.ptr<1>
        %f = llvm.getelementptr %r[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
        llvm.store {names.split(",")[-1].strip()}, %f : i32, !llvm.ptr<1>
        llvm.return
        """,
        "%a: !llvm.ptr<1>, %o: !llvm.ptr<1>, %r: !llvm.ptr<1>",
        DSMEM,
    )
    a = np.arange(256, dtype=np.int16).reshape(4, 8, 8)
    o, r = np.zeros((4, 8, 8), np.int16), np.zeros(32, np.int32)
    run_kernel(module, "k", [Pointer(a), Pointer(o), Pointer(r)], block=(32,), dynamic_smem=1024)
    assert np.array_equal(o[:num], a[:num])
    mat = a[num - 1] if layout == "row" else a[num - 1].T
    pairs = r.view(np.int16).reshape(32, 2)
    assert all(pairs[t].tolist() == mat[t // 4, 2 * (t % 4) : 2 * (t % 4) + 2].tolist() for t in range(32))


def test_misaligned_ldmatrix() -> None:
    body = f"""
        %d = llvm.mlir.addressof @dsmem : !llvm.ptr<3>
        %s = llvm.getelementptr %d[%tid] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i64
        %x = "nvvm.ldmatrix"(%s) <{{{ROW}, layout = #nvvm.mma_layout<row>, num = 1 : i32}}> : (!llvm.ptr<3>) -> i32
        llvm.return
    """
    with pytest.raises(InterpError, match="misaligned ldmatrix of 16 bytes"):
        run_kernel(kernel(body, "", DSMEM), "k", [], block=(32,), dynamic_smem=1024)


# -- mma.sync: fragment layouts of each shape, from the formulas of the PTX ISA ---------------------------------------


def a_16bit(lane: int, i: int) -> tuple[int, int]:
    """Return the row and column in A (m16n8k16) of fragment element i of 8, from the PTX ISA."""
    g, t = lane >> 2, lane & 3
    row = g if i in (0, 1, 4, 5) else g + 8
    return row, t * 2 + (i & 1) + (8 if i >= 4 else 0)


def b_16bit(lane: int, i: int) -> tuple[int, int]:
    g, t = lane >> 2, lane & 3
    return t * 2 + (i & 1) + (8 if i >= 2 else 0), g


def a_8bit(lane: int, i: int) -> tuple[int, int]:
    """Return the row and column in A (m16n8k32) of fragment element i of 16."""
    g, t = lane >> 2, lane & 3
    row = g if i < 4 or 8 <= i < 12 else g + 8
    return row, t * 4 + (i & 3) + (16 if i >= 8 else 0)


def b_8bit(lane: int, i: int) -> tuple[int, int]:
    g, t = lane >> 2, lane & 3
    return t * 4 + (i & 3) + (16 if i >= 4 else 0), g


def a_tf32(lane: int, i: int) -> tuple[int, int]:
    """Return the row and column in A (m16n8k8) of fragment element i of 4."""
    g, t = lane >> 2, lane & 3
    return (g if i in (0, 2) else g + 8), (t if i < 2 else t + 4)


def b_tf32(lane: int, i: int) -> tuple[int, int]:
    g, t = lane >> 2, lane & 3
    return (t if i == 0 else t + 4), g


def c_frag(lane: int, i: int) -> tuple[int, int]:
    g, t = lane >> 2, lane & 3
    return (g if i < 2 else g + 8), t * 2 + (i & 1)


CASES = {
    "f16": (16, np.float16, a_16bit, b_16bit, np.float32),
    "bf16": (16, ml_dtypes.bfloat16, a_16bit, b_16bit, np.float32),
    "tf32": (8, np.float32, a_tf32, b_tf32, np.float32),
    "s8": (32, np.int8, a_8bit, b_8bit, np.int32),
    "u8": (32, np.uint8, a_8bit, b_8bit, np.int32),
    "e4m3": (32, ml_dtypes.float8_e4m3fn, a_8bit, b_8bit, np.float32),
}


@pytest.mark.parametrize("width", ["auto", "warp"])
@pytest.mark.parametrize("name", CASES)
def test_mma_sync(name: str, width: str) -> None:
    k, dtype, fa, fb, acc = CASES[name]
    rng = np.random.default_rng(0)
    A, B = (rng.integers(-4 if name != "u8" else 0, 5, s).astype(dtype) for s in ((16, k), (k, 8)))
    C = rng.integers(-100, 100, (16, 8)).astype(acc)
    per = 4 // A.itemsize
    frag_a = np.array([[A[fa(t, i)] for i in range(4 * per)] for t in range(32)], dtype).view(np.int32)
    frag_b = np.array([[B[fb(t, i)] for i in range(2 * per)] for t in range(32)], dtype).view(np.int32)
    frag_c = np.array([[C[c_frag(t, i)] for i in range(4)] for t in range(32)], acc)
    ct = "f32" if acc is np.float32 else "i32"
    struct = f"!llvm.struct<({', '.join([ct] * 4)})>"
    load = ""
    for arr, count, t in (("a", 4, "i32"), ("b", 2, "i32"), ("c", 4, ct)):
        load += f"%n{arr} = arith.constant {count} : i32\n%e{arr} = arith.muli %tid, %n{arr} : i32\n"
        load += f"%q{arr} = llvm.getelementptr %{arr}[%e{arr}] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32\n"
        for i in range(count):
            load += f"%q{arr}{i} = llvm.getelementptr %q{arr}[{i}] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32\n"
            load += f"%{arr}{i} = llvm.load %q{arr}{i} : !llvm.ptr<1> -> {t}\n"
    registers = "%a0, %a1, %a2, %a3, %b0, %b1, %c0, %c1, %c2, %c3"
    types = f"{', '.join(['i32'] * 6)}, {', '.join([ct] * 4)}"
    if name == "e4m3":
        op = (
            f'%d = "llvm.call_intrinsic"({registers}) <{{fastmathFlags = #llvm.fastmath<none>, '
            f'intrin = "llvm.nvvm.mma.m16n8k32.row.col.f32.e4m3.e4m3.f32", op_bundle_sizes = array<i32>, '
            f"operandSegmentSizes = array<i32: 10, 0>}}> : ({types}) -> {struct}"
        )
    else:
        op = (
            f'%d = "nvvm.mma.sync"({registers}) <{{layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, '
            f"multiplicandAPtxType = #nvvm.mma_type<{name}>, multiplicandBPtxType = #nvvm.mma_type<{name}>, "
            f"operandSegmentSizes = array<i32: 4, 2, 4>, shape = #nvvm.shape<m = 16, n = 8, k = {k}>}}> "
            f": ({types}) -> {struct}"
        )
    store = "".join(
        f"%d{i} = llvm.extractvalue %d[{i}] : {struct}\nllvm.store %d{i}, %qc{i} : {ct}, !llvm.ptr<1>\n"
        for i in range(4)
    )
    module = kernel(load + op + "\n" + store + "llvm.return", "%a: !llvm.ptr<1>, %b: !llvm.ptr<1>, %c: !llvm.ptr<1>")
    run_kernel(module, "k", [Pointer(frag_a), Pointer(frag_b), Pointer(frag_c)], block=(32,), width=width)
    D = np.zeros((16, 8), acc)
    for t in range(32):
        for i in range(4):
            D[c_frag(t, i)] = frag_c[t, i]
    wide = np.float64 if acc is np.float32 else np.int64
    assert np.array_equal(D, (A.astype(wide) @ B.astype(wide) + C).astype(acc))


def test_packed_conversions() -> None:
    """cvt.rn.f16x2 and cvt to e4m3x2 put the first operand in the upper half."""
    module = kernel(
        """
        %h = "nvvm.convert.f32x2.to.f16x2"(%x, %y) <{relu = false, rnd = #nvvm.fp_rnd_mode<rn>,
            sat = #nvvm.sat_mode<none>}> : (f32, f32) -> vector<2xf16>
        %e = "nvvm.convert.f32x2.to.f8x2"(%x, %y) <{dstTy = f8E4M3FN, relu = false, rnd = #nvvm.fp_rnd_mode<rn>,
            sat = #nvvm.sat_mode<satfinite>}> : (f32, f32) -> i16
        llvm.store %h, %a : vector<2xf16>, !llvm.ptr<1>
        %q = llvm.getelementptr %a[4] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8
        llvm.store %e, %q : i16, !llvm.ptr<1>
        llvm.return
        """,
        "%a: !llvm.ptr<1>, %x: f32, %y: f32",
    )
    a = np.zeros(8, np.uint8)
    run_kernel(module, "k", [Pointer(a), 1000.0, -1.5], block=(1,))
    assert a[:4].view(np.float16).tolist() == [-1.5, 1000.0]
    assert a[4:6].view(ml_dtypes.float8_e4m3fn).astype(np.float32).tolist() == [-1.5, 448.0]
