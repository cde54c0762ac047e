"""wgmma on the interpreter: operands stored by CuTe layouts and read through descriptors, compared with NumPy."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from interp_support import DSMEM, kernel, run_kernel

from cute_dialect.algebra.evaluation import evaluate
from cute_dialect.algebra.values import AnyLayout
from cute_dialect.arch.descriptors import derive, smem_tile
from cute_dialect.interp import InterpError, Pointer
from cute_dialect.interp.memory.buffers import SMEM_ORIGIN

DTYPES = {
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "tf32": np.dtype(np.float32),
    "e4m3": np.dtype(ml_dtypes.float8_e4m3fn),
    "e5m2": np.dtype(ml_dtypes.float8_e5m2),
    "s8": np.dtype(np.int8),
}
DEPTH = {1: 32, 2: 16, 4: 8}
ROWS_B = 32768  # byte offset of B


def image(layout: AnyLayout, tile: np.ndarray) -> np.ndarray:
    """Return the elements of a tile in the order of its layout."""
    out = np.zeros(tile.size, tile.dtype)
    for x in range(tile.shape[0]):
        for k in range(tile.shape[1]):
            out[evaluate((x, k), layout)] = tile[x, k]
    return out


HEAD = """
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %tk = arith.constant 1000 : i32
    %n = arith.constant 65536 : i32
    %d = llvm.mlir.addressof @dsmem : !llvm.ptr<3>
    %bar = llvm.getelementptr %d[65536] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %first = arith.cmpi eq, %tid, %c0 : i32
    scf.if %first {
      nvvm.mbarrier.init %bar, %c1 : !llvm.ptr<3>, i32
      nvvm.fence.mbarrier.init
      nvvm.mbarrier.arrive.expect_tx %bar, %n : !llvm.ptr<3>, i32
      %sc = llvm.addrspacecast %d : !llvm.ptr<3> to !llvm.ptr<7>
      nvvm.cp.async.bulk.shared.cluster.global %sc, %image, %bar, %n : !llvm.ptr<7>, !llvm.ptr<1>
    }
    nvvm.barrier0
    nvvm.mbarrier.try_wait.parity %bar, %c0, %tk : !llvm.ptr<3>, i32, i32
"""


def struct(d: str, n: int) -> str:
    element, count = {"f32": ("f32", n // 2), "f16": ("i32", n // 4), "s32": ("i32", n // 2)}[d]
    return f"!llvm.struct<({', '.join([element] * count)})>"


def stores(source: str, d: str, n: int) -> str:
    """Return ops that store all accumulator registers of a thread to `out[tid][register]`."""
    element, count = {"f32": ("f32", n // 2), "f16": ("i32", n // 4), "s32": ("i32", n // 2)}[d]
    lines = [
        f"%cnt = arith.constant {count} : i32",
        "%row = arith.muli %tid, %cnt : i32",
        "%q = llvm.getelementptr %out[%row] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32",
    ]
    for i in range(count):
        lines.append(f"%e{i} = llvm.extractvalue {source}[{i}] : {struct(d, n)}")
        lines.append(f"%p{i} = llvm.getelementptr %q[{i}] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32")
        lines.append(f"llvm.store %e{i}, %p{i} : {element}, !llvm.ptr<1>")
    return "\n".join([*lines, "llvm.return"])


def unpack(out: np.ndarray, d: str, n: int) -> np.ndarray:
    """Return the 64 x n result, gathered from the registers by the fragment layout in the PTX ISA."""
    got = np.zeros((64, n), {"f32": np.float32, "f16": np.float16, "s32": np.int32}[d])
    for tid in range(128):
        warp, lane = tid // 32, tid % 32
        regs = out[tid].view(got.dtype)
        for i, v in enumerate(regs):
            row = 16 * warp + lane // 4 + 8 * (i // 2 % 2)
            got[row, 8 * (i // 4) + 2 * (lane % 4) + i % 2] = v
    return got


CASES = [
    # types of A, B and D; N; majors of A and B; swizzle widths of A and B
    ("f16", "f16", "f32", 64, "k", "k", 128, 128),
    ("f16", "f16", "f16", 32, "k", "k", 64, 128),
    ("bf16", "bf16", "f32", 128, "mn", "mn", 128, 128),
    ("f16", "f16", "f32", 128, "k", "mn", 32, 64),
    ("f16", "f16", "f32", 64, "mn", "k", 64, 0),
    ("f16", "f16", "f32", 64, "mn", "mn", 0, 0),
    ("tf32", "tf32", "f32", 24, "k", "k", 128, 64),
    ("e4m3", "e5m2", "f32", 96, "k", "k", 128, 32),
    ("s8", "s8", "s32", 16, "k", "k", 32, 0),
]


def tiles(case: tuple[str, str, str, int, str, str, int, int]) -> tuple[np.ndarray, np.ndarray, np.ndarray, list]:
    """Return A, B, the shared-memory image, and the descriptors of each step along K."""
    a, b, _, n, ma, mb, wa, wb = case
    size = DTYPES[a].itemsize
    k = 64 if size == 2 else 32 if size == 4 else 128
    rng = np.random.default_rng(3)
    A = rng.integers(-3, 4, (64, k)).astype(DTYPES[a])
    B = rng.integers(-3, 4, (n, k)).astype(DTYPES[b])
    raw = np.zeros(65536, np.uint8)
    steps: list[list[int]] = []
    for at, tile, major, width in ((0, A, ma, wa), (ROWS_B, B, mb, wb)):
        x = max(tile.shape[0], (width or 16) // size if major == "mn" else 8)
        assert x == tile.shape[0]
        layout = smem_tile(major, width, 8 * size, tile.shape)
        placed = image(layout, tile).view(np.uint8)
        raw[at : at + len(placed)] = placed
        view = derive(layout, 8 * size, major)
        base = view.descriptor.at(SMEM_ORIGIN + at).bits
        steps.append([base + int(evaluate((0, i), view.steps)) for i in range(k // DEPTH[size])])
    return A, B, raw, list(zip(*steps))


@pytest.mark.sample(every=5)
@pytest.mark.parametrize("case", CASES, ids=lambda c: "-".join(map(str, c)))
@pytest.mark.parametrize("schedule", ["round-robin", "adversarial"])
def test_wgmma(case: tuple[str, str, str, int, str, str, int, int], schedule: str) -> None:
    a, b, d, n, ma, mb, _, _ = case
    A, B, raw, steps = tiles(case)
    body = [HEAD, f"%u = llvm.mlir.undef : {struct(d, n)}", "nvvm.wgmma.fence.aligned"]
    acc = "%u"
    layouts = f"<{'row' if ma == 'k' else 'col'}>", f"<{'col' if mb == 'k' else 'row'}>"
    for i, (da, db) in enumerate(steps):
        body.append(f"%da{i} = arith.constant {da} : i64")
        body.append(f"%db{i} = arith.constant {db} : i64")
        scale = "one" if i else "zero"
        body.append(
            f"%m{i} = nvvm.wgmma.mma_async %da{i}, %db{i}, {acc}, #nvvm.shape<m = 64, n = {n}, "
            f"k = {DEPTH[A.dtype.itemsize]}>, D [<{d}>, #nvvm.wgmma_scale_out<{scale}>], "
            f"A [<{a}>, #nvvm.wgmma_scale_in<one>, {layouts[0]}], B [<{b}>, #nvvm.wgmma_scale_in<one>, {layouts[1]}] "
            f": {struct(d, n)} -> {struct(d, n)}"
        )
        acc = f"%m{i}"
    body += ["nvvm.wgmma.commit.group.sync.aligned", "nvvm.wgmma.wait.group.sync.aligned 0", stores(acc, d, n)]
    registers = n // 4 if d == "f16" else n // 2
    out = np.zeros((128, registers), np.int32)
    module = kernel("\n".join(body), "%image: !llvm.ptr<1>, %out: !llvm.ptr<1>", DSMEM)
    run_kernel(
        module, "k", [Pointer(raw), Pointer(out)], block=(128,), dynamic_smem=65600, schedule=schedule, checks=["race"]
    )
    want = A.astype(np.float64) @ B.astype(np.float64).T
    assert np.array_equal(unpack(out, d, n).astype(np.float64), want)


ASM = (
    "{{ .reg .pred p; setp.ne.b32 p, {flag}, 0; wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 "
    "{{$0, $1, $2, $3}}, {a}, {b}, p, 1, {sign}, {tail}; }}"
)


@pytest.mark.parametrize("flag", [0, 1])
@pytest.mark.parametrize("registers", [False, True])
def test_inline_text(flag: int, registers: bool) -> None:
    """Inline-PTX wgmma with a run-time scale-d, a negated B, and A in registers or shared memory."""
    A, B, raw, steps = tiles(("f16", "f16", "f32", 8, "k", "k", 128, 128))
    if registers:
        # Lane 4g + t holds two f16 in register r: row 16 warp + g + 8(r mod 2), columns from 2t + 8(r div 2).
        regs = np.zeros((128, 4, 2), np.float16)
        for tid in range(128):
            for r in range(4):
                row = 16 * (tid // 32) + tid % 32 // 4 + 8 * (r % 2)
                col = 2 * (tid % 4) + 8 * (r // 2)
                regs[tid, r] = A[row, col : col + 2]
        raw[49152 : 49152 + 2048] = regs.reshape(-1).view(np.uint8)
        load = """
            %ap = llvm.getelementptr %d[49152] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
            %aq = llvm.getelementptr %ap[%tid] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, vector<4xi32>
            %av = llvm.load %aq : !llvm.ptr<3> -> vector<4xi32>
        """ + "\n".join(
            f"%i{r} = arith.constant {r} : i32\n%a{r} = llvm.extractelement %av[%i{r} : i32] : vector<4xi32>"
            for r in range(4)
        )
        text = ASM.format(flag="$13", a="{$8, $9, $10, $11}", b="$12", sign="-1", tail="0")
        inputs, constraints, types = "%a0, %a1, %a2, %a3, %db, %f", "r,r,r,r,l,r", "i32, i32, i32, i32, i64, i32"
    else:
        load = f"%da = arith.constant {steps[0][0]} : i64"
        text = ASM.format(flag="$10", a="$8", b="$9", sign="-1", tail="0, 0")
        inputs, constraints, types = "%da, %db, %f", "l,l,r", "i64, i64, i32"
    s = struct("f32", 8)
    body = f"""
        {HEAD}
        {load}
        %db = arith.constant {steps[0][1]} : i64
        %f = arith.constant {flag} : i32
        %ten = arith.constant 10.0 : f32
        nvvm.wgmma.fence.aligned
        %r = llvm.inline_asm has_side_effects asm_dialect = att "{text}", "=f,=f,=f,=f,0,1,2,3,{constraints}"
             %ten, %ten, %ten, %ten, {inputs} : (f32, f32, f32, f32, {types}) -> {s}
        nvvm.wgmma.commit.group.sync.aligned
        %w0 = llvm.extractvalue %r[0] : {s}
        %w1 = llvm.extractvalue %r[1] : {s}
        %w2 = llvm.extractvalue %r[2] : {s}
        %w3 = llvm.extractvalue %r[3] : {s}
        %t = llvm.inline_asm has_side_effects asm_dialect = att "wgmma.wait_group.sync.aligned 0;",
             "=f,=f,=f,=f,0,1,2,3" %w0, %w1, %w2, %w3 : (f32, f32, f32, f32) -> {s}
        {stores("%t", "f32", 8)}
    """
    out = np.zeros((128, 4), np.int32)
    module = kernel(body, "%image: !llvm.ptr<1>, %out: !llvm.ptr<1>", DSMEM)
    run_kernel(module, "k", [Pointer(raw), Pointer(out)], block=(128,), dynamic_smem=65600, checks=["race"])
    want = -(A[:, :16].astype(np.float64) @ B[:, :16].astype(np.float64).T) + 10.0 * flag
    assert np.array_equal(unpack(out, "f32", 8), want)


def chain(before: str, after: str) -> str:
    s = struct("f32", 8)
    return f"""
        {HEAD}
        %da = arith.constant {(1 << 62) | (64 << 32) | (1 << 16) | (SMEM_ORIGIN >> 4)} : i64
        %u = llvm.mlir.undef : {s}
        {before}
        %m = nvvm.wgmma.mma_async %da, %da, %u, #nvvm.shape<m = 64, n = 8, k = 16>,
          D [<f32>, #nvvm.wgmma_scale_out<zero>], A [<f16>, #nvvm.wgmma_scale_in<one>, <row>],
          B [<f16>, #nvvm.wgmma_scale_in<one>, <col>] : {s} -> {s}
        {after}
        {stores("%m", "f32", 8)}
    """


FENCE, COMMIT, WAIT = (
    "nvvm.wgmma.fence.aligned",
    "nvvm.wgmma.commit.group.sync.aligned",
    "nvvm.wgmma.wait.group.sync.aligned 0",
)


@pytest.mark.parametrize(
    ("before", "after", "kind", "text"),
    [
        (FENCE, f"{COMMIT}\n{WAIT}", "", ""),
        ("", f"{COMMIT}\n{WAIT}", "wgmma", "missing wgmma.fence"),
        (FENCE, COMMIT, "wgmma", "used before its wgmma has been waited for"),
        (FENCE, WAIT, "wgmma", "used before its wgmma has been waited for"),
        (FENCE, f"{COMMIT}\n{WAIT[:-1]}1", "wgmma", "used before its wgmma has been waited for"),
    ],
    ids=["right", "no fence", "no wait", "no commit", "waits for too little"],
)
def test_protocol(before: str, after: str, kind: str, text: str) -> None:
    raw, out = np.zeros(65536, np.uint8), np.zeros((128, 4), np.int32)
    module = kernel(chain(before, after), "%image: !llvm.ptr<1>, %out: !llvm.ptr<1>", DSMEM)
    args = [Pointer(raw), Pointer(out)]
    if not kind:
        run_kernel(module, "k", args, block=(128,), dynamic_smem=65600)
        return
    with pytest.raises(InterpError) as e:
        run_kernel(module, "k", args, block=(128,), dynamic_smem=65600)
    assert e.value.kind == kind and text in str(e.value)


def test_needs_a_whole_warpgroup() -> None:
    raw, out = np.zeros(65536, np.uint8), np.zeros((96, 4), np.int32)
    module = kernel(chain(FENCE, f"{COMMIT}\n{WAIT}"), "%image: !llvm.ptr<1>, %out: !llvm.ptr<1>", DSMEM)
    with pytest.raises(InterpError, match="needs a warpgroup of 128 threads"):
        run_kernel(module, "k", [Pointer(raw), Pointer(out)], block=(96,), dynamic_smem=65600)


def test_descriptor_outside_of_shared_memory() -> None:
    raw, out = np.zeros(65536, np.uint8), np.zeros((128, 4), np.int32)
    text = (
        chain(FENCE, f"{COMMIT}\n{WAIT}")
        .replace("(64 << 32)", "")
        .replace(
            str((1 << 62) | (64 << 32) | (1 << 16) | (SMEM_ORIGIN >> 4)),
            str((1 << 62) | (16383 << 32) | (1 << 16) | 64),
        )
    )
    module = kernel(text, "%image: !llvm.ptr<1>, %out: !llvm.ptr<1>", DSMEM)
    with pytest.raises(InterpError, match="wgmma reads bytes"):
        run_kernel(module, "k", [Pointer(raw), Pointer(out)], block=(128,), dynamic_smem=65600)
