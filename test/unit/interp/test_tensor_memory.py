"""tcgen05 instructions and tensor memory: layouts, arithmetic and descriptors, compared with numpy."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from interp_support import DSMEM, kernel, run_kernel
from numpy.typing import NDArray
from tensor_programs import IMAGE, Bytes, Program, Words, call, rows

from cute_dialect.arch.targets import TARGETS
from cute_dialect.interp import InterpError, Pointer
from cute_dialect.interp.machine.tcgen05 import TABLES, Form, decode_shape
from cute_dialect.interp.machine.tensor_memory import SHAPES, fragment

Floats = NDArray[np.float64]


# -- loads and stores --------------------------------------------------------------------------------------------------


def word_of(shape: str, t: int, r: int, offset: int) -> tuple[int, int]:
    """Return (lane, column) of register r of thread t."""
    return {
        "32x32b": (t, r),
        "16x64b": (t // 4 + 8 * (t % 2), 2 * r + t // 2 % 2),
        "16x128b": (t // 4 + 8 * (r % 2), 4 * (r // 2) + t % 4),
        "16x256b": (t // 4 + 8 * (r // 2 % 2), 8 * (r // 4) + 2 * (t % 4) + r % 2),
        "16x32bx2": (t % 16, r + (offset if t >= 16 else 0)),
    }[shape]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_words_of_a_fragment(shape: str, packed: bool) -> None:
    count = 1
    while SHAPES[shape] * count <= 128:
        f = fragment(shape, count, count, packed)
        found = set[tuple[int, int]]()
        for t in range(32):
            for r in range(SHAPES[shape] * count):
                lane, column = word_of(shape, t, r, 0)
                split = count if shape == "16x32bx2" and t >= 16 else 0
                for h in range(2) if packed else (0,):
                    at = (t, r, h) if packed else (t, r)
                    want = (lane, (2 * column + h if packed else column) + split)
                    assert (f.lanes[at], f.columns[at]) == want
                    found.add((int(f.lanes[at]), int(f.columns[at])))
        inside = {
            (lane, c)
            for rect in f.rects
            for lane in range(128)
            if rect.lanes >> lane & 1
            for c in range(rect.first, rect.end)
        }
        assert found == inside
        count *= 2


TRANSFER = """
    %d = llvm.mlir.addressof @dsmem : !llvm.ptr<3>
    %columns = arith.constant 512 : i32
    %no = arith.constant false
    %packed = arith.constant {packed}
    %offset = arith.constant {offset} : i64
    {alloc}
    nvvm.bar.warp.sync %all : i32
    %base = llvm.load %d : !llvm.ptr<3> -> i32
    %t = llvm.inttoptr %base : i32 to !llvm.ptr<6>
    %g = llvm.getelementptr %a[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, !llvm.array<{columns} x i32>
    %v = llvm.load %g {{alignment = 4 : i64}} : !llvm.ptr<1> -> {in_type}
    {store}
    {wait_st}
    %w = {load}
    {wait_ld}
    %q = llvm.getelementptr %b[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, !llvm.array<{registers} x i32>
    llvm.store %w, %q {{alignment = 4 : i64}} : {out_type}, !llvm.ptr<1>
    {dealloc}
    llvm.return
"""


def transfer(shape: str, count: int, *, stores: bool, packed: bool = False) -> tuple[Words, Words]:
    """Return the registers of `shape` and the words of 32 lanes, one of them written and the other read.

    With `stores`, registers are stored in the shape and loaded as 32x32b; else the reverse.
    """
    registers = SHAPES[shape] * count
    offset = 2 * count if packed else count
    f = fragment(shape, count, offset, packed)
    columns = 1
    while columns < max(r.end for r in f.rects):
        columns *= 2
    kinds = [f"vector<{n}xi32>" if n > 1 else "i32" for n in (columns, registers)]
    between = ", %offset" if shape == "16x32bx2" else ""
    types = ", i64" if between else ""
    if stores:
        kinds.reverse()
    own = (
        call(f"st.{shape}.x{count}", f"%t{between}, %v, %packed", f"!llvm.ptr<6>{types}, {kinds[0]}, i1")
        if stores
        else call(f"ld.{shape}.x{count}", f"%t{between}, %packed", f"!llvm.ptr<6>{types}, i1", kinds[1])
    )
    plain = (
        call(f"ld.32x32b.x{columns}", "%t, %no", "!llvm.ptr<6>, i1", kinds[1])
        if stores
        else call(f"st.32x32b.x{columns}", "%t, %v, %no", f"!llvm.ptr<6>, {kinds[0]}, i1")
    )
    text = TRANSFER.format(
        packed="true" if packed else "false",
        offset=offset,
        alloc=call("alloc.shared.cg1", "%d, %columns", "!llvm.ptr<3>, i32"),
        store=own if stores else plain,
        load=plain if stores else own,
        wait_st=call("wait.st"),
        wait_ld=call("wait.ld"),
        dealloc=call("dealloc.cg1", "%t, %columns", "!llvm.ptr<6>, i32"),
        in_type=kinds[0],
        out_type=kinds[1],
        columns=registers if stores else columns,
        registers=columns if stores else registers,
    )
    rng = np.random.default_rng(count)
    sizes = (registers, columns) if stores else (columns, registers)
    a = rng.integers(0, 1 << 32, (32, sizes[0]), np.uint64).astype(np.uint32)
    b = np.zeros((32, sizes[1]), np.uint32)
    module = kernel("%all = arith.constant -1 : i32\n" + text, "%a: !llvm.ptr<1>, %b: !llvm.ptr<1>", DSMEM)
    run_kernel(module, "k", [Pointer(a), Pointer(b)], 1, 32, dynamic_smem=16, checks=["race", "strict"])
    return (a, b) if stores else (b, a)


CASES = [
    (s, n) for s in SHAPES for n in (1, 2, 4, 8, 16, 32, 64, 128) if SHAPES[s] * n <= (128 if s == "32x32b" else 64)
]


@pytest.mark.sample("16x256b-2-True", "16x32bx2-4-False", "32x32b-1-True")
@pytest.mark.parametrize("stores", [False, True])
@pytest.mark.parametrize(("shape", "count"), CASES)
def test_registers_of_a_shape(shape: str, count: int, stores: bool) -> None:
    registers, words = transfer(shape, count, stores=stores)
    for t in range(32):
        for r in range(SHAPES[shape] * count):
            assert registers[t, r] == words[word_of(shape, t, r, count)]


@pytest.mark.sample("16x64b-2-True", "32x32b-4-False")
@pytest.mark.parametrize("stores", [False, True])
@pytest.mark.parametrize(("shape", "count"), [(s, n) for s, n in CASES if SHAPES[s] * n <= 32 and s != "16x32bx2"])
def test_packed_registers(shape: str, count: int, stores: bool) -> None:
    registers, words = transfer(shape, count, stores=stores, packed=True)
    for t in range(32):
        for r in range(SHAPES[shape] * count):
            lane, column = word_of(shape, t, r, 2 * count)
            low, high = (int(words[lane, 2 * column + h]) & 0xFFFF for h in range(2))
            assert registers[t, r] == low | high << 16


# -- MMA ---------------------------------------------------------------------------------------------------------------

BYTES = np.arange(256, dtype=np.uint8)
NUMPY = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32, "s8": np.int8, "u8": np.uint8}
CODES = {
    "f16": ("f16", 0),
    "bf16": ("f16", 1),
    "tf32": ("tf32", 2),
    "s8": ("i8", 1),
    "u8": ("i8", 0),
    "e4m3": ("f8f6f4", 0),
    "e5m2": ("f8f6f4", 1),
    "e2m3": ("f8f6f4", 3),
    "e3m2": ("f8f6f4", 4),
    "e2m1": ("f8f6f4", 5),
}
KINDS = ("f16", "tf32", "f8f6f4", "i8")
RESULTS = {"f16": 0, "f32": 1, "s32": 2}


def random_rows(rng: np.random.Generator, kind: str, count: int, units: int = 2) -> tuple[Bytes, Floats]:
    """Return rows of 16-byte units of small elements as bytes, and their values."""
    if kind in ("e2m3", "e3m2", "e2m1"):
        bits = 4 if kind == "e2m1" else 6
        codes = rng.integers(0, 1 << bits, (count, units, 16))
        raw = np.zeros((count, units, 16), np.uint8)
        for unit in np.ndindex(count, units):
            whole = sum(int(c) << bits * i for i, c in enumerate(codes[unit]))
            raw[unit] = np.frombuffer(whole.to_bytes(16, "little"), np.uint8)
        return raw.reshape(count, -1), TABLES[kind][codes].reshape(count, -1)
    if kind in ("e4m3", "e5m2"):
        codes = rng.integers(0, 0x48, (count, 16 * units)) | rng.integers(0, 2, (count, 16 * units)) << 7
        raw = codes.astype(np.uint8)
        return raw, TABLES[kind][raw]
    if kind in ("s8", "u8"):
        raw = rng.integers(0, 256, (count, 16 * units)).astype(np.uint8)
        return raw, raw.view(NUMPY[kind]).astype(np.float64)
    numbers = rng.integers(-8, 9, (count, 16 * units // np.dtype(NUMPY[kind]).itemsize)).astype(NUMPY[kind])
    return np.ascontiguousarray(numbers).view(np.uint8), numbers.astype(np.float64)


def descriptor(m: int, n: int, a: str, b: str, d: str, more: int = 0) -> int:
    """Return an instruction descriptor."""
    return m // 16 << 24 | n // 8 << 17 | CODES[b][1] << 10 | CODES[a][1] << 7 | RESULTS[d] << 4 | more


def result(words: Words, d: str) -> Floats:
    """Return accumulators as numbers."""
    if d == "f16":
        return (words & 0xFFFF).astype(np.uint16).view(np.float16).astype(np.float64)
    return words.view(np.int32 if d == "s32" else np.float32).astype(np.float64)


def lanes_of(m: int) -> list[int]:
    return list(range(128)) if m == 128 else [r % 16 + 32 * (r // 16) for r in range(64)]


def multiply(
    a: str,
    b: str,
    d: str,
    m: int,
    n: int,
    *,
    more: int = 0,
    name: str = "shared",
    extra: tuple[int, ...] = (),
    initial: Floats | None = None,
    schedule: str = "round-robin",
) -> tuple[Floats, Floats, Floats]:
    """Run one MMA and return D, A and B. `initial` is the accumulator, for which f32 is assumed."""
    rng = np.random.default_rng(m + n)
    (ra, va), (rb, vb) = random_rows(rng, a, m), random_rows(rng, b, n)
    (ia, da), (ib, db) = rows(ra, 0), rows(rb, ra.size)
    p = Program()
    operands = [(p.number(x, "i64"), "i64") for x in extra] + p.codes(KINDS.index(CODES[a][0]), 1, 0)
    p.mma(name, p.number(da, "i64"), db, descriptor(m, n, a, b, d, more), initial is not None, operands)
    tensor = None
    if initial is not None:
        tensor = np.zeros((128, n), np.uint32)
        tensor[lanes_of(m)] = initial.astype(np.float32).view(np.uint32)
    words, _ = p.run(np.concatenate([ia, ib]), n, tensor, schedule=schedule)
    return result(words[lanes_of(m)], d), va, vb


TYPES = [
    ("f16", "f16", "f32"),
    ("f16", "f16", "f16"),
    ("bf16", "bf16", "f32"),
    ("tf32", "tf32", "f32"),
    ("s8", "s8", "s32"),
    ("u8", "s8", "s32"),
    ("e4m3", "e4m3", "f32"),
    ("e5m2", "e4m3", "f16"),
    ("e2m1", "e4m3", "f32"),
    ("e2m3", "e3m2", "f32"),
    ("e3m2", "e2m1", "f32"),
]


@pytest.mark.sample("f16-f16-f32-128-16", "e2m3-e3m2-f32-64-16")
@pytest.mark.parametrize(("m", "n"), [(128, 16), (64, 16), (128, 256), (64, 8)])
@pytest.mark.parametrize(("a", "b", "d"), TYPES)
def test_products(a: str, b: str, d: str, m: int, n: int) -> None:
    got, va, vb = multiply(a, b, d, m, n)
    want = va @ vb.T
    assert np.array_equal(
        got, want.astype(np.float16) if d == "f16" else want.astype(np.float32) if d == "f32" else want
    )


@pytest.mark.parametrize("schedule", ["reverse", "adversarial"])
def test_accumulator_and_its_scale(schedule: str) -> None:
    initial = np.random.default_rng(3).integers(-64, 64, (128, 16)).astype(np.float64)
    got, a, b = multiply("f16", "f16", "f32", 128, 16, initial=initial, schedule=schedule)
    assert np.array_equal(got, a @ b.T + initial)
    got, a, b = multiply(
        "f16", "f16", "f32", 128, 16, initial=initial, name="shared.scale_d", extra=(3,), schedule=schedule
    )
    assert np.array_equal(got, a @ b.T + initial / 8)


def test_negation_of_one_operand() -> None:
    got, a, b = multiply("bf16", "bf16", "f32", 128, 16, more=1 << 14)
    assert np.array_equal(got, -(a @ b.T))
    got, a, b = multiply("bf16", "bf16", "f32", 128, 16, more=3 << 13)
    assert np.array_equal(got, a @ b.T)


def test_saturation_of_integers() -> None:
    initial = np.full((128, 8), 2**31 - 1)
    for saturates in (False, True):
        rng = np.random.default_rng(0)
        (ra, va), (rb, vb) = random_rows(rng, "u8", 128), random_rows(rng, "u8", 8)
        (ia, da), (ib, db) = rows(ra, 0), rows(rb, ra.size)
        p = Program()
        shape = descriptor(128, 8, "u8", "u8", "s32", 8 * saturates)
        p.mma("shared", p.number(da, "i64"), db, shape, True, p.codes(3, 1, 0))
        words, _ = p.run(np.concatenate([ia, ib]), 8, initial.astype(np.uint32))
        want = (va @ vb.T).astype(np.int64) + initial
        want = np.clip(want, -(2**31), 2**31 - 1) if saturates else want.astype(np.int32)
        assert np.array_equal(words.view(np.int32), want)


def test_disabled_lanes_keep_their_words() -> None:
    rng = np.random.default_rng(0)
    (ra, va), (rb, vb) = random_rows(rng, "f16", 128), random_rows(rng, "f16", 8)
    (ia, da), (ib, db) = rows(ra, 0), rows(rb, ra.size)
    p = Program()
    p.constants.append("%mask = arith.constant dense<[5, 0, -1, 0]> : vector<4xi32>")
    shape = descriptor(128, 8, "f16", "f16", "f32")
    more = [("%mask", "vector<4xi32>"), *p.codes(0, 0)]
    p.mma("shared.disable_output_lane.cg1", p.number(da, "i64"), db, shape, False, more)
    words, _ = p.run(np.concatenate([ia, ib]), 8, np.full((128, 8), 7, np.uint32))
    kept = [0, 2, *range(64, 96)]
    want = (va @ vb.T).astype(np.float32).view(np.uint32)
    want[kept] = 7
    assert np.array_equal(words, want)


@pytest.mark.parametrize(("kind", "m"), [("f16", 128), ("f16", 64), ("e4m3", 128), ("tf32", 64)])
def test_a_from_tensor_memory(kind: str, m: int) -> None:
    rng = np.random.default_rng(m)
    (ra, va), (rb, vb) = random_rows(rng, kind, m), random_rows(rng, kind, 16)
    image, db = rows(rb, 0)
    tensor = np.zeros((128, 32), np.uint32)
    tensor[lanes_of(m), 24:32] = ra.view(np.uint32)
    p = Program()
    shape = descriptor(m, 16, kind, kind, "f32")
    p.mma("tensor", p.tensor(24), db, shape, False, p.codes(KINDS.index(CODES[kind][0]), 1, 0))
    words, _ = p.run(image, 16, tensor)
    assert np.array_equal(result(words[lanes_of(m)], "f32"), (va @ vb.T).astype(np.float32))


@pytest.mark.parametrize("m", [32, 64, 128])
def test_weight_stationary(m: int) -> None:
    rng = np.random.default_rng(m)
    (ra, va), (rb, vb) = random_rows(rng, "bf16", m), random_rows(rng, "bf16", 64)
    (ia, da), (ib, db) = rows(ra, 0), rows(rb, ra.size)
    p = Program()
    p.mma("ws.shared", p.number(da, "i64"), db, descriptor(m, 64, "bf16", "bf16", "f32"), False, p.codes(0, 0, 0))
    width = 64 * m // 128
    words, _ = p.run(np.concatenate([ia, ib]), width)
    d = result(words, "f32").reshape(128 // m, m, width).transpose(1, 0, 2).reshape(m, 64)
    assert np.array_equal(d, va @ vb.T)


# -- block scaling and copies ------------------------------------------------------------------------------------------

COPIES = {
    "128x256b": (128, 8, lambda i: [i]),
    "128x128b": (128, 4, lambda i: [i]),
    "64x128b_warpx2_02_13": (64, 4, lambda i: [i, i + 64]),
    "64x128b_warpx2_01_23": (64, 4, lambda i: [i, i + 32] if i < 32 else [i + 32, i + 64]),
    "32x128b_warpx4": (32, 4, lambda i: [i, i + 32, i + 64, i + 96]),
}


@pytest.mark.sample("32x128b_warpx4", "128x256b")
@pytest.mark.parametrize("name", COPIES)
def test_copies_to_tensor_memory(name: str) -> None:
    count, columns, lanes = COPIES[name]
    source = np.random.default_rng(0).integers(0, 256, (count, 4 * columns)).astype(np.uint8)
    image, at = rows(source, 0)
    p = Program()
    p.lines.append(call(f"cp.{name}.cg1", f"{p.tensor(0)}, {p.number(at, 'i64')}", "!llvm.ptr<6>, i64"))
    words, _ = p.run(image, columns)
    for i in range(count):
        for lane in lanes(i):
            assert np.array_equal(words[lane], source[i].view(np.uint32))


def scale_atoms(codes: Bytes) -> Bytes:
    """Return scale factors of (rows, 4) as an atom of 32 rows of 16 bytes for each 128 rows, 512 bytes each."""
    blocks = codes.reshape(-1, 4, 32, 4).transpose(0, 2, 1, 3)
    return np.ascontiguousarray(blocks).reshape(-1, 32, 16)


@pytest.mark.sample("mxf8f6f4-32-ue8m0-1-128-32", "mxf4nvf4-16-ue4m3-0-128-32")
@pytest.mark.parametrize(("m", "n"), [(128, 32), (128, 128), (128, 256)])
@pytest.mark.parametrize(
    ("kind", "vector", "scale", "first"),
    [
        ("mxf8f6f4", 32, "ue8m0", 0),
        ("mxf8f6f4", 32, "ue8m0", 1),
        ("mxf8f6f4", 32, "ue8m0", 3),
        ("mxf4", 32, "ue8m0", 0),
        ("mxf4", 32, "ue8m0", 2),
        ("mxf4nvf4", 32, "ue8m0", 2),
        ("mxf4nvf4", 16, "ue4m3", 0),
        ("mxf4nvf4", 16, "ue8m0", 0),
    ],
)
def test_block_scaling(kind: str, vector: int, scale: str, first: int, m: int, n: int) -> None:
    rng = np.random.default_rng(n + first)
    padded = max(n, 128)
    sa, sb = (
        (rng.integers(120, 135, (x, 4)) if scale == "ue8m0" else rng.integers(0x28, 0x50, (x, 4))).astype(np.uint8)
        for x in (m, padded)
    )
    if kind == "mxf8f6f4":
        (ra, va), (rb, vb) = random_rows(rng, "e4m3", m), random_rows(rng, "e5m2", n)
        count, shape = 1, 1 << 10
    else:
        ra, rb = (rng.integers(0, 256, (x, 32)).astype(np.uint8) for x in (m, n))
        va, vb = (TABLES["e2m1"][np.stack([r & 15, r >> 4], -1).reshape(len(r), 64)] for r in (ra, rb))
        count, shape = 64 // vector, 1 << 10 | 1 << 7
    factors_a, factors_b = (TABLES[scale][s[:, first : first + count]] for s in (sa, sb[:n]))
    want = np.einsum("mcv,ncv,mc,nc->mn", va.reshape(m, count, -1), vb.reshape(n, count, -1), factors_a, factors_b)
    (ia, da), (ib, db) = rows(ra, 0), rows(rb, ra.size)
    images, at = [ia, ib], ra.size + rb.size
    p = Program()
    column = 256
    for codes in (sa, sb):
        for atom in scale_atoms(codes):
            image, source = rows(atom, at)
            images.append(image)
            at += atom.size
            operands = f"{p.tensor(column)}, {p.number(source, 'i64')}"
            p.lines.append(call("cp.32x128b_warpx4.cg1", operands, "!llvm.ptr<6>, i64"))
            column += 4
    shape |= m // 16 << 24 | n // 8 << 17 | (scale == "ue8m0") << 23 | first << 29 | first << 4
    more = [(p.tensor(256), "!llvm.ptr<6>"), (p.tensor(260), "!llvm.ptr<6>"), *p.codes(1, 0)]
    size = f".block{vector}" if kind == "mxf4nvf4" else ""
    p.mma(f"shared.{kind}.block_scale{size}", p.number(da, "i64"), db, shape, False, more)
    words, _ = p.run(np.concatenate(images), n)
    assert np.array_equal(result(words, "f32"), want.astype(np.float32))


# -- descriptors -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bits", "form", "m", "n", "types"),
    [
        (0x08400010, Form("f16"), 128, 256, ("f32", "f16", "f16")),
        (0x08400490, Form("f16"), 128, 256, ("f32", "bf16", "bf16")),
        (0x10400490, Form("f16", 2), 256, 256, ("f32", "bf16", "bf16")),
        (0x08200910, Form("tf32"), 128, 128, ("f32", "tf32", "tf32")),
        (0x041004A0, Form("i8"), 64, 64, ("s32", "s8", "s8")),
        (0x08C00000, Form("mxf8f6f4", 1, 32), 128, 256, ("f32", "e4m3", "e4m3")),
        (0x08400480, Form("mxf4nvf4", 1, 16), 128, 256, ("f32", "e2m1", "e2m1")),
        (0x10A00480, Form("mxf4", 2, 32), 256, 128, ("f32", "e2m1", "e2m1")),
    ],
)
def test_instruction_descriptors(bits: int, form: Form, m: int, n: int, types: tuple[str, ...]) -> None:
    s = decode_shape(bits, form)
    assert (s.m, s.n, (s.d, s.a, s.b)) == (m, n, types)


def test_reduction_of_a_load() -> None:
    text = (
        "tcgen05.ld.red.sync.aligned.32x32b.x4.max.abs.f32 {$0, $1, $2, $3}, $4, [$5]; tcgen05.wait::ld.sync.aligned;"
    )
    body = f"""
    %all = arith.constant -1 : i32
    %d = llvm.mlir.addressof @dsmem : !llvm.ptr<3>
    %columns = arith.constant 32 : i32
    %no = arith.constant false
    {call("alloc.shared.cg1", "%d, %columns", "!llvm.ptr<3>, i32")}
    nvvm.bar.warp.sync %all : i32
    %base = llvm.load %d : !llvm.ptr<3> -> i32
    %t = llvm.inttoptr %base : i32 to !llvm.ptr<6>
    %g = llvm.getelementptr %a[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, !llvm.array<4 x i32>
    %v = llvm.load %g {{alignment = 16 : i64}} : !llvm.ptr<1> -> vector<4xi32>
    {call("st.32x32b.x4", "%t, %v, %no", "!llvm.ptr<6>, vector<4xi32>, i1")}
    {call("wait.st")}
    %r = llvm.inline_asm has_side_effects "{text}", "=f,=f,=f,=f,=f,r" %base : (i32) -> \
!llvm.struct<(f32, f32, f32, f32, f32)>
    %m = llvm.extractvalue %r[4] : !llvm.struct<(f32, f32, f32, f32, f32)>
    %q = llvm.getelementptr %b[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    llvm.store %m, %q : f32, !llvm.ptr<1>
    {call("dealloc.cg1", "%t, %columns", "!llvm.ptr<6>, i32")}
    llvm.return
    """
    a = np.random.default_rng(0).standard_normal((32, 4)).astype(np.float32)
    b = np.zeros(32, np.float32)
    module = kernel(body, "%a: !llvm.ptr<1>, %b: !llvm.ptr<1>", DSMEM)
    run_kernel(module, "k", [Pointer(a), Pointer(b)], 1, 32, dynamic_smem=16, checks="all")
    assert np.array_equal(b, np.abs(a).max(axis=1))


def test_scale_factors_in_one_quarter_of_the_lanes() -> None:
    rng = np.random.default_rng(0)
    (ra, _), (rb, _) = random_rows(rng, "e4m3", 128), random_rows(rng, "e4m3", 32)
    (ia, da), (ib, db) = rows(ra, 0), rows(rb, ra.size)
    p = Program()
    more = [(p.tensor(256), "!llvm.ptr<6>"), (p.tensor(260), "!llvm.ptr<6>"), *p.codes(1, 0)]
    p.mma("shared.mxf8f6f4.block_scale", p.number(da, "i64"), db, 0x08880000 & ~(63 << 17) | 4 << 17, False, more)
    with pytest.raises(InterpError, match="reads a scale factor of A from tensor memory that nothing has written"):
        p.run(np.concatenate([ia, ib]), 32, checks=("race", "uninit"))


def test_operands_that_nothing_has_written() -> None:
    p = Program()
    end = (IMAGE + 6144) >> 4  # past the image, which fills the first 4096 bytes
    p.mma("shared", p.number(end | 128 << 16 | 8 << 32 | 1 << 46, "i64"), 0, 0x08020010, False, p.codes(0, 1, 0))
    with pytest.raises(InterpError, match=r"reads bytes .* of shared memory|version"):
        p.run(np.zeros(4096, np.uint8), 8)
    raw, descriptor = rows(np.zeros((128, 32), np.uint8), 0)
    p = Program()
    p.mma("shared", p.number(descriptor, "i64"), descriptor - (512 >> 4), 0x08020010, False, p.codes(0, 1, 0))
    with pytest.raises(InterpError, match=r"reads B from shared memory at byte offset .*: nothing has written it"):
        p.run(raw, 8, checks=("uninit",))


def test_flops_and_timeline() -> None:
    (ra, _), (rb, _) = (random_rows(np.random.default_rng(0), "f16", r) for r in (128, 16))
    (ia, da), (ib, db) = rows(ra, 0), rows(rb, ra.size)
    p = Program()
    for accumulates in (False, True):
        p.mma(
            "shared", p.number(da, "i64"), db, descriptor(128, 16, "f16", "f16", "f32"), accumulates, p.codes(0, 1, 0)
        )
    _, report = p.run(np.concatenate([ia, ib]), 16, reports=("flops", "timeline"))
    assert report.flops is not None
    assert report.timeline is not None
    assert report.flops.total == 2 * 2 * 128 * 16 * 16
    assert [x.shape for x in report.timeline.products] == ["m128n16k16 f32 f16 f16"] * 2


def test_two_warps_that_allocate_at_once() -> None:
    body = f"""
    %d = llvm.mlir.addressof @dsmem : !llvm.ptr<3>
    %columns = arith.constant 32 : i32
    %warp = arith.divui %tid, %columns : i32
    %slot = llvm.getelementptr %d[%warp] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    {call("alloc.shared.cg1", "%slot, %columns", "!llvm.ptr<3>, i32")}
    llvm.return
    """
    with pytest.raises(InterpError, match=r"two warps of a block execute tcgen05.alloc at the same time"):
        run_kernel(kernel(body, "", DSMEM), "k", [], 1, 64, dynamic_smem=16, checks=["race"])


@pytest.mark.slow
def test_tensor_memory_limits_the_resident_blocks() -> None:
    """Blocks wait for the last one, which cannot start: two blocks of 256 columns fit an SM."""
    body = f"""
    %d = llvm.mlir.addressof @dsmem : !llvm.ptr<3>
    %columns = arith.constant 256 : i32
    %all = arith.constant -1 : i32
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    {call("alloc.shared.cg1", "%d, %columns", "!llvm.ptr<3>, i32")}
    nvvm.bar.warp.sync %all : i32
    %base = llvm.load %d : !llvm.ptr<3> -> i32
    %t = llvm.inttoptr %base : i32 to !llvm.ptr<6>
    %grid = nvvm.read.ptx.sreg.nctaid.x : i32
    %last = arith.subi %grid, %one : i32
    %islast = arith.cmpi eq, %cta, %last : i32
    scf.if %islast {{
      llvm.store %one, %a atomic release {{alignment = 4 : i64}} : i32, !llvm.ptr<1>
    }} else {{
      scf.while : () -> () {{
        %f = llvm.load %a atomic acquire {{alignment = 4 : i64}} : !llvm.ptr<1> -> i32
        %unset = arith.cmpi eq, %f, %zero : i32
        scf.condition(%unset)
      }} do {{
        scf.yield
      }}
    }}
    {call("dealloc.cg1", "%t, %columns", "!llvm.ptr<6>, i32")}
    llvm.return
    """
    module = kernel(body, "%a: !llvm.ptr<1>", DSMEM)
    sms = TARGETS["sm_100a"].sms
    for blocks in (2 * sms, 2 * sms + 1):
        flag = Pointer(np.zeros(1, np.int32))
        if blocks == 2 * sms:
            run_kernel(module, "k", [flag], blocks, 32, dynamic_smem=16, chip="sm_100a", schedule="reverse")
            continue
        with pytest.raises(InterpError, match=r"256 columns of tensor memory at once .* 2 blocks an SM"):
            run_kernel(module, "k", [flag], blocks, 32, dynamic_smem=16, chip="sm_100a")


def test_alloc_waits_for_free_columns() -> None:
    alloc = call("alloc.shared.cg1", "%d, %columns", "!llvm.ptr<3>, i32")
    body = f"""
    %d = llvm.mlir.addressof @dsmem : !llvm.ptr<3>
    %columns = arith.constant 512 : i32
    {alloc}
    {alloc}
    llvm.return
    """
    with pytest.raises(InterpError, match=r"waits for 512 free columns of tensor memory .0 are free") as e:
        run_kernel(kernel(body, "", DSMEM), "k", [], 1, 32, dynamic_smem=16)
    assert e.value.kind == "deadlock"


def mn_major(values: NDArray[np.generic], start: int, swizzle: int) -> tuple[Bytes, int]:
    """Return (rows, K) with contiguous columns of 8 rows, or 32 rows with 32-byte atoms, and the descriptor."""
    count, k = values.shape
    size = values.dtype.itemsize
    image = np.zeros(values.size * size, np.uint8)
    run, deep, pitch = (32, 4, 128) if swizzle else (16 // size, 8, 16)
    block = deep * pitch
    for x in range(count):
        for c in range(k):
            at = (x // run) * (k // deep) * block + (c // deep) * block + c % deep * pitch + x % run * size
            at ^= (at >> 7 & 3) << 5 if swizzle else 0
            image[at : at + size] = np.frombuffer(values[x, c].tobytes(), np.uint8)
    inner, outer = block >> 4, (k // deep) * block >> 4
    lbo, sbo = (outer, inner) if swizzle else (inner, outer)
    return image, (IMAGE + start >> 4) | lbo << 16 | sbo << 32 | 1 << 46 | swizzle << 61


@pytest.mark.parametrize(("kind", "swizzle"), [("f16", 0), ("bf16", 0), ("tf32", 1)])
def test_mn_major_operands(kind: str, swizzle: int) -> None:
    rng = np.random.default_rng(1)
    k = 8 if kind == "tf32" else 16
    a, b = (rng.integers(-8, 9, (r, k)).astype(NUMPY[kind]) for r in (128, 32))
    ia, da = mn_major(a, 0, swizzle)
    ib, db = mn_major(b, ia.size, swizzle)
    p = Program()
    shape = descriptor(128, 32, kind, kind, "f32", 3 << 15)
    p.mma("shared", p.number(da, "i64"), db, shape, False, p.codes(KINDS.index(CODES[kind][0]), 1, 0))
    words, _ = p.run(np.concatenate([ia, ib]), 32)
    assert np.array_equal(result(words, "f32"), a.astype(np.float64) @ b.astype(np.float64).T)


@pytest.mark.parametrize(
    ("kind", "swizzle", "message"),
    [("tf32", 0, "tf32 needs 1"), ("f16", 1, "only tf32 may use it")],
)
def test_swizzles_of_mn_major_operands(kind: str, swizzle: int, message: str) -> None:
    a = np.zeros((128, 8 if kind == "tf32" else 16), NUMPY[kind])
    ia, da = mn_major(a, 0, 0)
    da |= swizzle << 61
    p = Program()
    shape = descriptor(128, 32, kind, kind, "f32", 3 << 15)
    p.mma("shared", p.number(da, "i64"), da, shape, False, p.codes(KINDS.index(CODES[kind][0]), 1, 0))
    with pytest.raises(InterpError, match=message):
        p.run(ia, 32)


UNSUPPORTED = {
    "shift.down.cg1": ("%p", "!llvm.ptr<6>"),
    "cp.4x256b.cg1": ("%p, %l", "!llvm.ptr<6>, i64"),
    "mma.ws.sp.shared": (
        "%p, %l, %l, %i, %b, %p, %i, %i, %i",
        "!llvm.ptr<6>, i64, i64, i32, i1, !llvm.ptr<6>, i32, i32, i32",
    ),
}


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_unsupported_instructions(name: str) -> None:
    body = f"""
    %l = arith.constant 0 : i64
    %i = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %b = arith.constant false
    %p = llvm.inttoptr %i : i32 to !llvm.ptr<6>
    {call(name, *UNSUPPORTED[name])}
    llvm.return
    """
    with pytest.raises(InterpError, match="not supported") as e:
        run_kernel(kernel(body, "", DSMEM), "k", [], 1, 32)
    assert e.value.kind == "unsupported"


def test_registers_may_be_moved_before_the_wait_but_not_used() -> None:
    count = 128
    inserts = "\n".join(
        f"""%i{i} = arith.constant {i} : i32
    %e{i} = llvm.extractelement %w[%i{i} : i32] : vector<{count}xi32>
    %v{i + 1} = llvm.insertelement %e{i}, %v{i}[%i{count - 1 - i}_ : i32] : vector<{count}xi32>"""
        for i in range(count)
    )
    indices = "\n".join(f"%i{i}_ = arith.constant {i} : i32" for i in range(count))
    body = f"""
    %all = arith.constant -1 : i32
    %d = llvm.mlir.addressof @dsmem : !llvm.ptr<3>
    %columns = arith.constant {count} : i32
    %no = arith.constant false
    {indices}
    {call("alloc.shared.cg1", "%d, %columns", "!llvm.ptr<3>, i32")}
    nvvm.bar.warp.sync %all : i32
    %base = llvm.load %d : !llvm.ptr<3> -> i32
    %t = llvm.inttoptr %base : i32 to !llvm.ptr<6>
    %g = llvm.getelementptr %a[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, !llvm.array<{count} x i32>
    %x = llvm.load %g {{alignment = 16 : i64}} : !llvm.ptr<1> -> vector<{count}xi32>
    {call(f"st.32x32b.x{count}", "%t, %x, %no", f"!llvm.ptr<6>, vector<{count}xi32>, i1")}
    {call("wait.st")}
    %w = {call(f"ld.32x32b.x{count}", "%t, %no", "!llvm.ptr<6>, i1", f"vector<{count}xi32>")}
    %v0 = llvm.mlir.poison : vector<{count}xi32>
    {inserts}
    {call("wait.ld")} // wait
    %q = llvm.getelementptr %b[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, !llvm.array<{count} x i32>
    llvm.store %v{count}, %q {{alignment = 16 : i64}} : vector<{count}xi32>, !llvm.ptr<1>
    {call("dealloc.cg1", "%t, %columns", "!llvm.ptr<6>, i32")}
    llvm.return
    """
    a = np.arange(32 * count, dtype=np.int32).reshape(32, count)
    b = np.zeros_like(a)
    pointers = "%a: !llvm.ptr<1>, %b: !llvm.ptr<1>"
    run_kernel(kernel(body, pointers, DSMEM), "k", [Pointer(a), Pointer(b)], 1, 32, dynamic_smem=16, checks="all")
    assert np.array_equal(b, a[:, ::-1])
    broken = kernel(body.replace(f"{call('wait.ld')} // wait", ""), pointers, DSMEM)
    with pytest.raises(InterpError, match=r"missing tcgen05.wait::ld"):
        run_kernel(broken, "k", [Pointer(a), Pointer(b)], 1, 32, dynamic_smem=16)


# -- pairs of blocks ---------------------------------------------------------------------------------------------------


def halves(*parts: tuple[Bytes, Bytes]) -> tuple[Bytes, list[int]]:
    """Return the images of two blocks, and the descriptors, which are the same for both."""
    images: list[list[Bytes]] = [[], []]
    found: list[int] = []
    at = 0
    for both in parts:
        for image, part in zip(images, both):
            data, one = rows(part, at)
            image.append(data)
        found.append(one)
        at += data.size
    return np.stack([np.concatenate(i) for i in images]), found


def split(raw: Bytes) -> tuple[Bytes, Bytes]:
    first, second = np.split(raw, 2)
    return first, second


@pytest.mark.parametrize("m", [128, 256])
def test_pair_with_a_in_tensor_memory(m: int) -> None:
    rng = np.random.default_rng(m)
    (ra, va), (rb, vb) = random_rows(rng, "bf16", m), random_rows(rng, "bf16", 32)
    image, (db,) = halves(split(rb))
    a = ra.view(np.uint32).reshape(2, m // 2, 8)
    tensor = np.zeros((2, 128, 64), np.uint32)
    tensor[:, :, 40:48] = a if m == 256 else np.concatenate([a, a], axis=1)
    p = Program()
    p.mma("tensor", p.tensor(40), db, descriptor(m, 32, "bf16", "bf16", "f32"), False, p.codes(0, 2, 0))
    words, _ = p.run(image, 32 if m == 256 else 16, tensor.reshape(256, 64))
    d = result(words, "f32")
    if m == 128:
        d = d.reshape(2, 2, 64, 16).transpose(0, 2, 1, 3).reshape(128, 32)
    assert np.array_equal(d, va @ vb.T)


def test_pair_with_block_scaling() -> None:
    rng = np.random.default_rng(0)
    (ra, va), (rb, vb) = random_rows(rng, "e4m3", 256), random_rows(rng, "e4m3", 64)
    sa, sb = (rng.integers(122, 133, (r, 4)).astype(np.uint8) for r in (256, 128))
    atoms = [scale_atoms(x)[0] for x in (*split(sa), sb)]
    image, (da, db, fa, fb) = halves(split(ra), split(rb), (atoms[0], atoms[1]), (atoms[2], atoms[2]))
    p = Program()
    for column, source in ((256, fa), (260, fb)):
        operands = f"{p.tensor(column)}, {p.number(source, 'i64')}"
        p.lines.append(call("cp.32x128b_warpx4.cg2", operands, "!llvm.ptr<6>, i64"))
    more = [(p.tensor(256), "!llvm.ptr<6>"), (p.tensor(260), "!llvm.ptr<6>"), *p.codes(2, 0)]
    shape = 256 // 16 << 24 | 64 // 8 << 17 | 1 << 23 | 2 << 29 | 2 << 4
    p.mma("shared.mxf8f6f4.block_scale", p.number(da, "i64"), db, shape, False, more)
    words, _ = p.run(image, 64)
    factors = [TABLES["ue8m0"][x[:, 2:3]] for x in (sa, sb[:64])]
    want = (va * factors[0]) @ (vb * factors[1]).T
    assert np.array_equal(result(words, "f32"), want.astype(np.float32))
