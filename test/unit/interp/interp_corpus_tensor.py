"""Correct kernels with tensor memory and tcgen05, mutated by `test_broken_tensor_kernels`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from interp_corpus import CONSTANTS, FULL, MAP, Kernel
from numpy.typing import NDArray
from tensor_programs import Bytes, call, rows

from cute_dialect.interp import Pointer, TensorMap
from cute_dialect.interp.machine.tcgen05 import TABLES
from cute_dialect.interp.memory.arguments import Argument
from cute_dialect.interp.memory.buffers import SMEM_ORIGIN

STRICT = ("race", "oob", "uninit", "sync", "strict")
HIGH = 1 << 46 | 2 << 61 | 64 << 32 | 1 << 16  # version 1, 128-byte swizzle, 8 rows of 128 bytes
SHAPE = 128 // 16 << 24 | 32 // 8 << 17 | 1 << 4  # f16 x f16 -> f32, 128 x 32, both K-major


BEFORE, AFTER = call("fence.before.thread.sync"), call("fence.after.thread.sync")


def mma(a: str, b: str, enable: str, d: str = "%acc", shape: str = "%shape") -> str:
    """Return an MMA of kind f16 with operands in shared memory."""
    return call(
        "mma.shared",
        f"{d}, {a}, {b}, {shape}, {enable}, %c0, %c1, %c0",
        "!llvm.ptr<6>, i64, i64, i32, i1, i32, i32, i32",
    )


def commit(bar: str) -> str:
    """Return a commit to an mbarrier."""
    return call("commit.shared.cg1", bar, "!llvm.ptr<3>")


def wait(bar: str, phase: str) -> str:
    """Return a wait for a phase of an mbarrier."""
    return f"nvvm.mbarrier.try_wait.parity {bar}, {phase}, %tk : !llvm.ptr<3>, i32, i32"


# -- a persistent GEMM: two tiles of 128 x 32, a ring of two stages, two accumulators ----------------------------------
# warp 0 loads by TMA, one thread of warp 1 multiplies, warps 4 to 7 store the tiles


def _gemm() -> str:
    lines = [
        CONSTANTS,
        FULL,
        f"""
    %stages = arith.constant 2 : i32
    %kt = arith.constant 3 : i32
    %tiles = arith.constant 3 : i32
    %columns = arith.constant 64 : i32
    %bytes = arith.constant 20480 : i32
    %stagebytes = arith.constant 20480 : i32
    %stageunits = arith.constant 1280 : i32
    %high = arith.constant {HIGH} : i64
    %shape = arith.constant {SHAPE} : i32
    %first1 = arith.constant false
    %yes = arith.constant true
    %no = arith.constant false
    %full_ = llvm.getelementptr %d[40960] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %empty = llvm.getelementptr %full_[16] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %accfull = llvm.getelementptr %full_[32] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %accempty = llvm.getelementptr %full_[48] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %slot = llvm.getelementptr %full_[64] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %first = arith.cmpi eq, %tid, %c0 : i32
    %warp = arith.divui %tid, %c32 : i32
    %allocates = arith.cmpi eq, %warp, %c1 : i32
    scf.if %first {{""",
    ]
    for name, count in (("full_", "%c1"), ("empty", "%c1"), ("accfull", "%c1"), ("accempty", "%c128")):
        lines.append(f"""
      %{name}1 = llvm.getelementptr %{name}[1] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i64
      nvvm.mbarrier.init %{name}, {count} : !llvm.ptr<3>, i32
      nvvm.mbarrier.init %{name}1, {count} : !llvm.ptr<3>, i32""")
    lines.append(f"""
      nvvm.fence.mbarrier.init
    }}
    scf.if %allocates {{
      {call("alloc.shared.cg1", "%slot, %columns", "!llvm.ptr<3>, i32")} // alloc
      {call("relinq.alloc.permit.cg1")} // relinquish
    }}
    nvvm.barrier0 // start
    {AFTER} // start
    %base = llvm.load %slot : !llvm.ptr<3> -> i32
    %issues = arith.cmpi eq, %tid, %c32 : i32
    scf.if %first {{
      %pp:2 = scf.for %t = %c0 to %tiles step %c1 iter_args(%s0 = %c0, %p0 = %c1) -> (i32, i32) : i32 {{
        %p:2 = scf.for %i = %c0 to %kt step %c1 iter_args(%s = %s0, %ph = %p0) -> (i32, i32) : i32 {{
          %e = llvm.getelementptr %empty[%s] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i64
          {wait("%e", "%ph")} // empty
          %f = llvm.getelementptr %full_[%s] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i64
          nvvm.mbarrier.arrive.expect_tx %f, %bytes : !llvm.ptr<3>, i32
          %at = arith.muli %s, %stagebytes : i32
          %k = arith.muli %i, %c64 : i32
          %n = arith.muli %t, %c32 : i32
          %sa = llvm.getelementptr %d[%at] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
          %sb = llvm.getelementptr %sa[16384] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
          %ac = llvm.addrspacecast %sa : !llvm.ptr<3> to !llvm.ptr<7>
          %bc = llvm.addrspacecast %sb : !llvm.ptr<3> to !llvm.ptr<7>
          nvvm.cp.async.bulk.tensor.shared.cluster.global %ac, %ta, %f, box[%k, %c0] : !llvm.ptr<7>, !llvm.ptr
          nvvm.cp.async.bulk.tensor.shared.cluster.global %bc, %tb, %f, box[%k, %n] : !llvm.ptr<7>, !llvm.ptr
          {_advance()}
          scf.yield %s1, %ph1 : i32, i32
        }}
        scf.yield %p#0, %p#1 : i32, i32
      }}
    }}
    scf.if %issues {{
      %origin = arith.constant {SMEM_ORIGIN >> 4} : i32
      %pp:4 = scf.for %t = %c0 to %tiles step %c1 iter_args(%s0 = %c0, %p0 = %c0, %buf = %c0, %ap = %c1) \
-> (i32, i32, i32, i32) : i32 {{
        %ae = llvm.getelementptr %accempty[%buf] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i64
        {wait("%ae", "%ap")} // accumulator empty
        %shift = arith.muli %buf, %c32 : i32
        %column = arith.addi %base, %shift : i32
        %acc = llvm.inttoptr %column : i32 to !llvm.ptr<6>
        %p:3 = scf.for %i = %c0 to %kt step %c1 iter_args(%s = %s0, %ph = %p0, %on = %no) -> (i32, i32, i1) : i32 {{
          %f = llvm.getelementptr %full_[%s] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i64
          {wait("%f", "%ph")} // full
          {AFTER} // full
          %off = arith.muli %s, %stageunits : i32
          %da = arith.addi %origin, %off : i32""")
    for k in range(4):
        lines.append(f"""
          %ka{k} = arith.constant {2 * k} : i32
          %da{k} = arith.addi %da, %ka{k} : i32
          %kb{k} = arith.constant {1024 + 2 * k} : i32
          %db{k} = arith.addi %da, %kb{k} : i32
          %xa{k} = arith.extui %da{k} : i32 to i64
          %xb{k} = arith.extui %db{k} : i32 to i64
          %la{k} = arith.ori %xa{k}, %high : i64
          %lb{k} = arith.ori %xb{k}, %high : i64
          {mma(f"%la{k}", f"%lb{k}", "%yes" if k else "%on")} // mma{k}""")
    lines.append(f"""
          %e = llvm.getelementptr %empty[%s] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i64
          {commit("%e")} // stage
          {_advance()}
          scf.yield %s1, %ph1, %yes : i32, i32, i1
        }}
        %af = llvm.getelementptr %accfull[%buf] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i64
        {commit("%af")} // accumulator
        {_advance("buf", "ap")}
        scf.yield %p#0, %p#1, %buf1, %ap1 : i32, i32, i32, i32
      }}
    }}
    %stores = arith.cmpi uge, %warp, %c4 : i32
    scf.if %stores {{
      %quarter = arith.subi %warp, %c4 : i32
      %c21 = arith.constant 21 : i32
      %lane = arith.shli %quarter, %c21 : i32
      %row = arith.subi %tid, %c128 : i32
      %pitch = arith.constant 96 : i32
      %r0 = arith.muli %row, %pitch : i32
      %mine = arith.addi %base, %lane : i32
      %pp:2 = scf.for %t = %c0 to %tiles step %c1 iter_args(%buf = %c0, %ap = %c0) -> (i32, i32) : i32 {{
        %af = llvm.getelementptr %accfull[%buf] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i64
        {wait("%af", "%ap")} // accumulator full
        {AFTER} // accumulator full
        %shift = arith.muli %buf, %c32 : i32
        %at = arith.addi %mine, %shift : i32
        %at1 = arith.addi %at, %c16 : i32
        %t0 = llvm.inttoptr %at : i32 to !llvm.ptr<6>
        %t1 = llvm.inttoptr %at1 : i32 to !llvm.ptr<6>
        %v0 = {call("ld.32x32b.x16", "%t0, %no", "!llvm.ptr<6>, i1", "vector<16xi32>")}
        %v1 = {call("ld.32x32b.x16", "%t1, %no", "!llvm.ptr<6>, i1", "vector<16xi32>")}
        {call("wait.ld")} // loaded
        {BEFORE} // loaded
        %ae = llvm.getelementptr %accempty[%buf] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i64
        nvvm.mbarrier.arrive %ae : !llvm.ptr<3> // accumulator empty
        %n = arith.muli %t, %c32 : i32
        %o0 = arith.addi %r0, %n : i32
        %q0 = llvm.getelementptr %c[%o0] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
        %q1 = llvm.getelementptr %q0[16] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
        llvm.store %v0, %q0 {{alignment = 64 : i64}} : vector<16xi32>, !llvm.ptr<1>
        llvm.store %v1, %q1 {{alignment = 64 : i64}} : vector<16xi32>, !llvm.ptr<1>
        {_advance("buf", "ap")}
        scf.yield %buf1, %ap1 : i32, i32
      }}
    }}
    nvvm.barrier0 // end
    scf.if %allocates {{
      %whole = llvm.inttoptr %base : i32 to !llvm.ptr<6>
      {call("dealloc.cg1", "%whole, %columns", "!llvm.ptr<6>, i32")} // dealloc
    }}
    llvm.return
    """)
    return "\n".join(lines)


def _advance(at: str = "s", phase: str = "ph") -> str:
    """Return the step to the next of two buffers."""
    return f"""%next_{at} = arith.addi %{at}, %c1 : i32
          %wrap_{at} = arith.cmpi eq, %next_{at}, %stages : i32
          %{at}1 = arith.select %wrap_{at}, %c0, %next_{at} : i32
          %flip_{at} = arith.extui %wrap_{at} : i1 to i32
          %{phase}1 = arith.xori %{phase}, %flip_{at} : i32"""


def _gemm_args() -> tuple[list[Argument], Callable[[], bool]]:
    rng = np.random.default_rng(1)
    a = rng.integers(-4, 5, (128, 192)).astype(np.float16)
    b = rng.integers(-4, 5, (96, 192)).astype(np.float16)
    c = np.zeros((128, 96), np.float32)
    ta = TensorMap("f16", (192, 128), (384,), (64, 128), swizzle=128, pointer=Pointer(a))
    tb = TensorMap("f16", (192, 96), (384,), (64, 32), swizzle=128, pointer=Pointer(b))
    return [ta, tb, Pointer(c)], lambda: np.array_equal(c, a.astype(np.float32) @ b.astype(np.float32).T)


# -- scores, their conversion to f16 in place, and a second product with A in tensor memory ----------------------------


def _image(*matrices: NDArray[np.generic]) -> tuple[Bytes, list[int]]:
    """Return matrices as an image of shared memory without swizzle, and their descriptors."""
    parts: list[Bytes] = []
    found: list[int] = []
    at = 0
    for m in matrices:
        part, descriptor = rows(np.ascontiguousarray(m).view(np.uint8), at)
        parts.append(part)
        found.append(descriptor)
        at += part.size
    return np.concatenate(parts), found


def _setup(bars: Sequence[tuple[str, str]], size: int, columns: int) -> str:
    """Return the start of a kernel of 128 threads: barriers, allocation, and an image in shared memory at byte 1024."""
    lines = [
        CONSTANTS,
        FULL,
        f"""
    %columns = arith.constant {columns} : i32
    %c21 = arith.constant 21 : i32
    %c2048 = arith.constant 2048 : i32
    %size = arith.constant {size} : i32
    %yes = arith.constant true
    %no = arith.constant false
    %smem = llvm.getelementptr %d[1024] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %warp = arith.divui %tid, %c32 : i32
    %issues = arith.cmpi eq, %tid, %c0 : i32
    %allocates = arith.cmpi eq, %warp, %c0 : i32""",
    ]
    for i, (name, _) in enumerate(bars):
        lines.append(f"%{name} = llvm.getelementptr %d[{8 + 8 * i}] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8")
    inits = "\n".join(f"nvvm.mbarrier.init %{name}, {count} : !llvm.ptr<3>, i32" for name, count in bars)
    lines.append(f"""
    scf.if %issues {{
      {inits}
    }}
    scf.if %allocates {{
      {call("alloc.shared.cg1", "%d, %columns", "!llvm.ptr<3>, i32")} // alloc
    }}
    %sixteen = arith.muli %tid, %c16 : i32
    scf.for %i = %sixteen to %size step %c2048 : i32 {{
      %from = llvm.getelementptr %a[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i8
      %to = llvm.getelementptr %smem[%i] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
      %v = llvm.load %from {{alignment = 16 : i64}} : !llvm.ptr<1> -> vector<4xi32>
      llvm.store %v, %to {{alignment = 16 : i64}} : vector<4xi32>, !llvm.ptr<3>
    }}
    nvvm.fence.proxy {{kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}}
    nvvm.barrier0 // start
    {AFTER} // start
    %base = llvm.load %d : !llvm.ptr<3> -> i32
    %lane = arith.shli %warp, %c21 : i32
    %mine = arith.addi %base, %lane : i32""")
    return "\n".join(lines)


def _column(name: str, base: str, offset: int) -> str:
    """Return the definition of a pointer to a column of tensor memory."""
    return f"""%{name}_o = arith.constant {offset} : i32
    %{name}_a = arith.addi {base}, %{name}_o : i32
    %{name} = llvm.inttoptr %{name}_a : i32 to !llvm.ptr<6>"""


END = f"""
    {BEFORE} // end
    nvvm.barrier0 // end
    scf.if %allocates {{
      %whole = llvm.inttoptr %base : i32 to !llvm.ptr<6>
      {call("dealloc.cg1", "%whole, %columns", "!llvm.ptr<6>, i32")} // dealloc
    }}
    llvm.return
    """


def _chain_matrices() -> list[NDArray[np.generic]]:
    rng = np.random.default_rng(5)
    return [rng.integers(-2, 3, shape).astype(np.float16) for shape in ((128, 16), (32, 16), (16, 32))]


def _chain() -> str:
    image, (q, k, v) = _image(*_chain_matrices())
    lines = [_setup((("scores", "%c1"), ("stored", "%c128"), ("done", "%c1")), image.size, 64)]
    shapes = [128 // 16 << 24 | n // 8 << 17 | 1 << 4 for n in (32, 16)]
    step = 2 * (16 * 16) >> 4  # units from one K of 16 to the next: two columns of core matrices of 16 rows
    lines.append(f"""
    %q = arith.constant {q} : i64
    %k = arith.constant {k} : i64
    %v0 = arith.constant {v} : i64
    %v1 = arith.constant {v + step} : i64
    %shape = arith.constant {shapes[0]} : i32
    %shape1 = arith.constant {shapes[1]} : i32
    {_column("acc", "%base", 0)}
    {_column("p1", "%base", 8)}
    {_column("o", "%base", 32)}
    {_column("s", "%mine", 0)}
    {_column("s1", "%mine", 16)}
    {_column("mo", "%mine", 32)}
    scf.if %issues {{
      {mma("%q", "%k", "%no")} // scores
      {commit("%scores")} // scores
    }}
    {wait("%scores", "%c0")} // scores
    {AFTER} // scores
    %s0v = {call("ld.32x32b.x16", "%s, %no", "!llvm.ptr<6>, i1", "vector<16xi32>")}
    %s1v = {call("ld.32x32b.x16", "%s1, %no", "!llvm.ptr<6>, i1", "vector<16xi32>")}
    {call("wait.ld")} // scores
    %z0 = llvm.mlir.poison : vector<16xi32>""")
    for i in range(16):
        of = f"%s{i // 8}v"
        lines.append(f"""
    %lo{i} = llvm.extractelement {of}[%c{2 * i % 16}_ : i32] : vector<16xi32>
    %hi{i} = llvm.extractelement {of}[%c{2 * i % 16 + 1}_ : i32] : vector<16xi32>
    %lf{i} = llvm.bitcast %lo{i} : i32 to f32
    %hf{i} = llvm.bitcast %hi{i} : i32 to f32
    %pk{i} = llvm.call_intrinsic "llvm.nvvm.ff2f16x2.rn"(%hf{i}, %lf{i}) : (f32, f32) -> vector<2xf16>
    %pi{i} = llvm.bitcast %pk{i} : vector<2xf16> to i32
    %z{i + 1} = llvm.insertelement %pi{i}, %z{i}[%c{i}_ : i32] : vector<16xi32>""")
    lines.insert(1, "\n".join(f"%c{i}_ = arith.constant {i} : i32" for i in range(16)))
    lines.append(f"""
    {call("st.32x32b.x16", "%s, %z16, %no", "!llvm.ptr<6>, vector<16xi32>, i1")} // P
    {call("wait.st")} // P
    {BEFORE} // P
    nvvm.mbarrier.arrive %stored : !llvm.ptr<3> // P
    scf.if %issues {{
      {wait("%stored", "%c0")} // P
      {AFTER} // P
      {_second("%acc", "%v0", "%no")} // O0
      {_second("%p1", "%v1", "%yes")} // O1
      {commit("%done")} // O
    }}
    {wait("%done", "%c0")} // O
    {AFTER} // O
    %ov = {call("ld.32x32b.x16", "%mo, %no", "!llvm.ptr<6>, i1", "vector<16xi32>")}
    {call("wait.ld")} // O
    %to16 = llvm.getelementptr %b[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, !llvm.array<16 x i32>
    llvm.store %ov, %to16 {{alignment = 64 : i64}} : vector<16xi32>, !llvm.ptr<1>""")
    return "\n".join(lines) + END


def _second(a: str, b: str, enable: str) -> str:
    """Return an MMA with A in tensor memory."""
    return call(
        "mma.tensor",
        f"%o, {a}, {b}, %shape1, {enable}, %c0, %c1, %c0",
        "!llvm.ptr<6>, !llvm.ptr<6>, i64, i32, i1, i32, i32, i32",
    )


def _padded(image: Bytes) -> Bytes:
    out = np.zeros(-(-image.size // 2048) * 2048, np.uint8)
    out[: image.size] = image
    return out


def _chain_args() -> tuple[list[Argument], Callable[[], bool]]:
    q, k, v = (m.astype(np.float64) for m in _chain_matrices())
    image, _ = _image(*_chain_matrices())
    o = np.zeros((128, 16), np.float32)
    p = (q @ k.T).astype(np.float16).astype(np.float64)
    return [Pointer(_padded(image)), Pointer(o)], lambda: np.array_equal(o, (p @ v.T).astype(np.float32))


# -- block scaling: 3 blocks of K of 128 with scale factors of 32 elements, in two buffers of tensor memory ------------

BLOCKS = 3


def _scaled_matrices() -> tuple[list[NDArray[np.generic]], NDArray[np.float64]]:
    rng = np.random.default_rng(7)
    matrices: list[NDArray[np.generic]] = []
    total = np.zeros((128, 32))
    for _ in range(BLOCKS):
        a, b = (rng.integers(0x28, 0x48, (r, 128)).astype(np.uint8) for r in (128, 32))
        sa, sb = (rng.integers(124, 131, (128, 4)).astype(np.uint8) for _ in range(2))
        matrices += [a, b, *(s.reshape(4, 32, 4).transpose(1, 0, 2).reshape(32, 16) for s in (sa, sb))]
        va, vb = (TABLES["e4m3"][x].reshape(len(x), 4, 32) for x in (a, b))
        fa, fb = (TABLES["ue8m0"][x] for x in (sa, sb[:32]))
        total += np.einsum("mcv,ncv,mc,nc->mn", va, vb, fa, fb)
    return matrices, total


def scaled(a: str, b: str, shape: str, enable: str, buffer: int) -> str:
    """Return a block-scaled MMA of kind mxf8f6f4."""
    return call(
        "mma.shared.mxf8f6f4.block_scale",
        f"%acc, {a}, {b}, {shape}, {enable}, %sa{buffer}, %sb{buffer}, %c1, %c0",
        "!llvm.ptr<6>, i64, i64, i32, i1, !llvm.ptr<6>, !llvm.ptr<6>, i32, i32",
    )


def copy(to: str, source: str) -> str:
    """Return a copy of scale factors."""
    return call("cp.32x128b_warpx4.cg1", f"{to}, {source}", "!llvm.ptr<6>, i64")


def _scaled() -> str:
    image, found = _image(*_scaled_matrices()[0])
    lines = [_setup((("buffer0", "%c1"), ("buffer1", "%c1"), ("done", "%c1")), image.size, 64)]
    lines.append(_column("acc", "%base", 0))
    lines.append(_column("mo", "%mine", 0))
    for i in range(2):
        lines.append(_column(f"sa{i}", "%base", 32 + 8 * i))
        lines.append(_column(f"sb{i}", "%base", 36 + 8 * i))
    for k in range(4):
        lines.append(f"%shape{k} = arith.constant {0x08080000 | 1 << 23 | k << 29 | k << 4} : i32")
    steps = [2 * 16 * r >> 4 for r in (128, 32)]
    lines.append("scf.if %issues {")
    for block in range(BLOCKS):
        buffer = block % 2
        a, b, sa, sb = found[4 * block : 4 * block + 4]
        lines.append(f"%fa{block} = arith.constant {sa} : i64\n%fb{block} = arith.constant {sb} : i64")
        if block >= 2:
            lines.append(f"{wait(f'%buffer{buffer}', '%c0')} // buffer of block {block}")
            lines.append(f"{AFTER} // buffer of block {block}")
        lines.append(f"{copy(f'%sa{buffer}', f'%fa{block}')} // A of block {block}")
        lines.append(f"{copy(f'%sb{buffer}', f'%fb{block}')} // B of block {block}")
        for k in range(4):
            x = f"{block}_{k}"
            lines.append(f"%a{x} = arith.constant {a + k * steps[0]} : i64")
            lines.append(f"%b{x} = arith.constant {b + k * steps[1]} : i64")
            enable = "%yes" if block or k else "%no"
            lines.append(f"{scaled(f'%a{x}', f'%b{x}', f'%shape{k}', enable, buffer)} // mma {x}")
        if block < BLOCKS - 2:
            lines.append(f"{commit(f'%buffer{buffer}')} // block {block}")
    lines.append(f"""{commit("%done")} // done
    }}
    {wait("%done", "%c0")} // done
    {AFTER} // done
    %ov = {call("ld.32x32b.x32", "%mo, %no", "!llvm.ptr<6>, i1", "vector<32xi32>")}
    {call("wait.ld")} // done
    %to32 = llvm.getelementptr %b[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, !llvm.array<32 x i32>
    llvm.store %ov, %to32 {{alignment = 128 : i64}} : vector<32xi32>, !llvm.ptr<1>""")
    return "\n".join(lines) + END


def _scaled_args() -> tuple[list[Argument], Callable[[], bool]]:
    matrices, want = _scaled_matrices()
    image, _ = _image(*matrices)
    o = np.zeros((128, 32), np.float32)
    return [Pointer(_padded(image)), Pointer(o)], lambda: np.allclose(o, want, rtol=1e-6)


# -- a GEMM of 256 x 32 or 128 x 32 by a pair of blocks: each loads its rows of A and half of B, a ring of two stages --


def pair_mma(a: str, b: str, enable: str, group: str = "%c2") -> str:
    """Return an MMA of kind f16 of a pair of blocks."""
    return call(
        "mma.shared",
        f"%acc, {a}, {b}, %shape, {enable}, %c0, {group}, %c0",
        "!llvm.ptr<6>, i64, i64, i32, i1, i32, i32, i32",
    )


def multicast(bar: str, mask: str = "%both") -> str:
    """Return a commit to the mbarriers of a mask of blocks."""
    return call("commit.mc.shared.cg2", f"{bar}, {mask}", "!llvm.ptr<3>, i16")


LEADER = """%fi = llvm.ptrtoint %f : !llvm.ptr<3> to i32
          %fm = arith.andi %fi, %evenmask : i32
          %fl = llvm.inttoptr %fm : i32 to !llvm.ptr<3>"""


def _pair(m: int) -> str:
    """Return the kernel. For m = 128 the second half of the columns of D is in lanes 64 to 127."""
    rows_, columns = m // 2, 32 if m == 256 else 16
    lines = [
        CONSTANTS,
        FULL,
        f"""
    %stages = arith.constant 2 : i32
    %kt = arith.constant 3 : i32
    %columns = arith.constant 32 : i32
    %bytes = arith.constant {2 * (128 * rows_ + 2048)} : i32
    %rows = arith.constant {rows_} : i32
    %stagebytes = arith.constant 18432 : i32
    %stageunits = arith.constant 1152 : i32
    %evenmask = arith.constant -16777217 : i32
    %both = arith.constant 3 : i16
    %one = arith.constant 1 : i16
    %high = arith.constant {HIGH} : i64
    %shape = arith.constant {m // 16 << 24 | 32 // 8 << 17 | 1 << 4} : i32
    %yes = arith.constant true
    %no = arith.constant false
    %rank = nvvm.read.ptx.sreg.cluster.ctarank : i32
    %leads = arith.cmpi eq, %rank, %c0 : i32
    %full_ = llvm.getelementptr %d[36864] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %empty = llvm.getelementptr %full_[16] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %accfull = llvm.getelementptr %full_[32] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %slot = llvm.getelementptr %full_[64] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %first = arith.cmpi eq, %tid, %c0 : i32
    %warp = arith.divui %tid, %c32 : i32
    %allocates = arith.cmpi eq, %warp, %c1 : i32
    scf.if %first {{
      %full1 = llvm.getelementptr %full_[1] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i64
      %empty1 = llvm.getelementptr %empty[1] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i64
      nvvm.mbarrier.init %full_, %c1 : !llvm.ptr<3>, i32
      nvvm.mbarrier.init %full1, %c1 : !llvm.ptr<3>, i32
      nvvm.mbarrier.init %empty, %c1 : !llvm.ptr<3>, i32
      nvvm.mbarrier.init %empty1, %c1 : !llvm.ptr<3>, i32
      nvvm.mbarrier.init %accfull, %c1 : !llvm.ptr<3>, i32
      nvvm.fence.mbarrier.init
    }}
    scf.if %allocates {{
      {call("alloc.shared.cg2", "%slot, %columns", "!llvm.ptr<3>, i32")} // alloc
      {call("relinq.alloc.permit.cg2")} // relinquish
    }}
    nvvm.cluster.arrive {{aligned}} // start
    nvvm.cluster.wait {{aligned}} // start
    {AFTER} // start
    %base = llvm.load %slot : !llvm.ptr<3> -> i32
    %acc = llvm.inttoptr %base : i32 to !llvm.ptr<6>
    %ismma = arith.cmpi eq, %tid, %c32 : i32
    %issues = arith.andi %ismma, %leads : i1
    scf.if %first {{
      %p:2 = scf.for %i = %c0 to %kt step %c1 iter_args(%s = %c0, %ph = %c1) -> (i32, i32) : i32 {{
        %e = llvm.getelementptr %empty[%s] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i64
        {wait("%e", "%ph")} // empty
        %f = llvm.getelementptr %full_[%s] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i64
        scf.if %leads {{
          nvvm.mbarrier.arrive.expect_tx %f, %bytes : !llvm.ptr<3>, i32
        }}
        {LEADER}
        %at = arith.muli %s, %stagebytes : i32
        %k = arith.muli %i, %c64 : i32
        %m = arith.muli %rank, %rows : i32
        %n = arith.muli %rank, %c16 : i32
        %sa = llvm.getelementptr %d[%at] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
        %sb = llvm.getelementptr %sa[16384] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
        %ac = llvm.addrspacecast %sa : !llvm.ptr<3> to !llvm.ptr<7>
        %bc = llvm.addrspacecast %sb : !llvm.ptr<3> to !llvm.ptr<7>
        {pair_load("%ac", "%ta", "%k, %m")}
        {pair_load("%bc", "%tb", "%k, %n")}
        {_advance()}
        scf.yield %s1, %ph1 : i32, i32
      }}
    }}
    scf.if %issues {{
      %origin = arith.constant {SMEM_ORIGIN >> 4} : i32
      %p:3 = scf.for %i = %c0 to %kt step %c1 iter_args(%s = %c0, %ph = %c0, %on = %no) -> (i32, i32, i1) : i32 {{
        %f = llvm.getelementptr %full_[%s] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i64
        {wait("%f", "%ph")} // full
        {AFTER} // full
        %off = arith.muli %s, %stageunits : i32
        %da = arith.addi %origin, %off : i32""",
    ]
    for k in range(4):
        lines.append(f"""
        %ka{k} = arith.constant {2 * k} : i32
        %da{k} = arith.addi %da, %ka{k} : i32
        %kb{k} = arith.constant {1024 + 2 * k} : i32
        %db{k} = arith.addi %da, %kb{k} : i32
        %xa{k} = arith.extui %da{k} : i32 to i64
        %xb{k} = arith.extui %db{k} : i32 to i64
        %la{k} = arith.ori %xa{k}, %high : i64
        %lb{k} = arith.ori %xb{k}, %high : i64
        {pair_mma(f"%la{k}", f"%lb{k}", "%yes" if k else "%on")} // mma{k}""")
    lines.append(f"""
        %e = llvm.getelementptr %empty[%s] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i64
        {multicast("%e")} // stage
        {_advance()}
        scf.yield %s1, %ph1, %yes : i32, i32, i1
      }}
      {multicast("%accfull")} // accumulator
    }}
    %stores = arith.cmpi uge, %warp, %c4 : i32
    scf.if %stores {{
      %quarter = arith.subi %warp, %c4 : i32
      %c21 = arith.constant 21 : i32
      %lane = arith.shli %quarter, %c21 : i32
      %mine = arith.addi %base, %lane : i32
      {wait("%accfull", "%c0")} // accumulator full
      {AFTER} // accumulator full
      %t0 = llvm.inttoptr %mine : i32 to !llvm.ptr<6>
      %v0 = {call(f"ld.32x32b.x{columns}", "%t0, %no", "!llvm.ptr<6>, i1", f"vector<{columns}xi32>")}
      {call("wait.ld")} // loaded
      {BEFORE} // loaded
      %t1 = arith.subi %tid, %c128 : i32
      %row0 = arith.remui %t1, %rows : i32
      %half = arith.divui %t1, %rows : i32
      %m0 = arith.muli %rank, %rows : i32
      %row = arith.addi %row0, %m0 : i32
      %r32 = arith.muli %row, %c32 : i32
      %h16 = arith.muli %half, %c16 : i32
      %where = arith.addi %r32, %h16 : i32
      %q0 = llvm.getelementptr %c[%where] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      llvm.store %v0, %q0 {{alignment = 64 : i64}} : vector<{columns}xi32>, !llvm.ptr<1>
    }}
    nvvm.cluster.arrive {{aligned}} // end
    nvvm.cluster.wait {{aligned}} // end
    scf.if %allocates {{
      {call("dealloc.cg2", "%acc, %columns", "!llvm.ptr<6>, i32")} // dealloc
    }}
    llvm.return
    """)
    return "\n".join(lines)


def pair_load(to: str, tensor: str, at: str, bar: str = "%fl") -> str:
    """Return a TMA load that signals the mbarrier of the first block of the pair."""
    return (
        f"nvvm.cp.async.bulk.tensor.shared.cluster.global {to}, {tensor}, {bar}, box[{at}] "
        "{group = #nvvm.cta_group<cta_2>} : !llvm.ptr<7>, !llvm.ptr"
    )


def _pair_args(m: int) -> tuple[list[Argument], Callable[[], bool]]:
    rng = np.random.default_rng(2)
    a = rng.integers(-4, 5, (m, 192)).astype(np.float16)
    b = rng.integers(-4, 5, (32, 192)).astype(np.float16)
    c = np.zeros((m, 32), np.float32)
    ta = TensorMap("f16", (192, m), (384,), (64, m // 2), swizzle=128, pointer=Pointer(a))
    tb = TensorMap("f16", (192, 32), (384,), (64, 16), swizzle=128, pointer=Pointer(b))
    return [ta, tb, Pointer(c)], lambda: np.array_equal(c, a.astype(np.float32) @ b.astype(np.float32).T)


def _size(image: Bytes) -> int:
    return 1024 + _padded(image).size


TENSOR_KERNELS: dict[str, Kernel] = {
    "gemm": Kernel(_gemm(), f"%ta: {MAP}, %tb: {MAP}, %c: !llvm.ptr<1>", _gemm_args, 256, 41216, checks=STRICT),
    "chain": Kernel(
        _chain(),
        "%a: !llvm.ptr<1>, %b: !llvm.ptr<1>",
        _chain_args,
        128,
        _size(_image(*_chain_matrices())[0]),
        checks=STRICT,
    ),
    "scaled": Kernel(
        _scaled(),
        "%a: !llvm.ptr<1>, %b: !llvm.ptr<1>",
        _scaled_args,
        128,
        _size(_image(*_scaled_matrices()[0])[0]),
        checks=STRICT,
    ),
    **{
        name: Kernel(
            _pair(m),
            f"%ta: {MAP}, %tb: {MAP}, %c: !llvm.ptr<1>",
            partial(_pair_args, m),
            256,
            37120,
            2,
            2,
            checks=STRICT,
        )
        for name, m in (("pair", 256), ("pair of 128 rows", 128))
    },
}
