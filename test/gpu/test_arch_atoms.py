"""Each MMA atom and each per-thread or per-warp copy atom runs on the GPU and must match the layouts of its table row.

The PTX kernels are generated from the table rows alone. Operands are small random integers, exact in every type.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence

import numpy as np
import pytest
from arch_support import copy_kernel, header, mma_kernel, transfer_kernel

from cute_dialect.algebra.evaluation import evaluate, size
from cute_dialect.algebra.values import AnyLayout, ComposedLayout, Layout
from cute_dialect.arch import ATOMS, CopyAtom, MmaAtom
from cute_dialect.arch.atom import Registers
from cute_dialect.arch.descriptors import SWIZZLES, choose_swizzle, derive_for, row_bytes, smem_tile
from cute_dialect.arch.elements import bits_of
from cute_dialect.runtime import driver as cuda
from cute_dialect.runtime.host_program import LaunchShape

HERE = {name: atom for name, atom in ATOMS.items() if int(re.findall(r"\d+", atom.arch)[0]) <= 90}
"""The atoms of an sm_90 GPU, the only one on which these tests run."""
WORD = {16: np.uint16, 32: np.uint32, 64: np.uint64}
FLOAT8 = {"f8E4M3FN": "float8_e4m3fn", "f8E5M2": "float8_e5m2"}
RANGE = {"b1": (0, 1), "ui4": (0, 15), "i4": (-8, 7), "ui8": (0, 7), "ui16": (0, 7)}


def ptx_version(version: str) -> str:
    return max(version, "8.0", key=lambda v: tuple(map(int, v.split("."))))


def launch(
    ptx: str, name: str, threads: int, inputs: Sequence[np.ndarray], out_bytes: int, blocks: int = 1
) -> np.ndarray:
    """Launch a kernel with parameters ``(out, inputs …)`` and return its output bytes. The output is poisoned first."""
    gpu = cuda.driver()
    gpu.enter(0)
    function = gpu.get_function(gpu.load_module(ptx.encode() + b"\0"), name)
    out = np.full(out_bytes, 0xA5, dtype=np.uint8)
    arrays = [out, *inputs]
    pointers = [gpu.allocate(a.nbytes) for a in arrays]
    for p, a in zip(pointers, arrays):
        gpu.to_device(p, a.ctypes.data, a.nbytes)
    values = [ctypes.c_uint64(p) for p in pointers]
    parameters = (ctypes.c_void_p * len(values))(*(ctypes.addressof(v) for v in values))
    gpu.launch(function, LaunchShape((blocks, 1, 1), (threads, 1, 1)), parameters)
    gpu.synchronize(0)
    gpu.to_host(out.ctypes.data, pointers[0], out.nbytes)
    for p in pointers:
        gpu.free(p)
    return out


# ------------------------------------------------------------------------------------------------- values and registers


def encode(elt: str, values: np.ndarray) -> np.ndarray:
    """Encode small integers as bits of the element type."""
    if elt == "f64":
        return values.astype(np.float64).view(np.uint64)
    if elt == "i64":
        return values.astype(np.int64).view(np.uint64)
    if elt in ("f32", "tf32"):
        return values.astype(np.float32).view(np.uint32).astype(np.uint64)
    if elt == "f16":
        return values.astype(np.float16).view(np.uint16).astype(np.uint64)
    if elt == "bf16":
        return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint64)
    if elt in FLOAT8:
        import ml_dtypes

        return values.astype(np.float32).astype(getattr(ml_dtypes, FLOAT8[elt])).view(np.uint8).astype(np.uint64)
    return (values & ((1 << bits_of(elt)) - 1)).astype(np.uint64)


def decode(elt: str, bits: np.ndarray) -> np.ndarray:
    """Decode accumulator bits to numbers."""
    if elt == "f64":
        return bits.astype(np.uint64).view(np.float64)
    if elt == "f32":
        return bits.astype(np.uint32).view(np.float32).astype(np.float64)
    if elt == "f16":
        return bits.astype(np.uint16).view(np.float16).astype(np.float64)
    if elt == "bf16":
        return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return bits.astype(np.uint32).view(np.int32 if elt == "i32" else np.uint32).astype(np.float64)


def pack(held: Registers, elt: str, values: np.ndarray) -> np.ndarray:
    """Pack element bits (threads, values) into registers (threads, registers), first value in the lowest bits."""
    bits = bits_of(elt)
    parts = values.reshape(values.shape[0], held.count, held.values)
    words = np.zeros(parts.shape[:2], dtype=np.uint64)
    for j in range(held.values):
        words |= parts[:, :, j] << np.uint64(bits * j)
    return words.astype(WORD[held.bits])


def unpack(held: Registers, elt: str, words: np.ndarray) -> np.ndarray:
    bits = bits_of(elt)
    wide = words.astype(np.uint64)
    parts = [wide >> np.uint64(bits * j) & np.uint64((1 << bits) - 1) for j in range(held.values)]
    return np.stack(parts, axis=-1).reshape(words.shape[0], -1)


def positions(layout: Layout) -> np.ndarray:
    """Evaluate a thread-value layout to an array (threads, values)."""
    threads, values = layout
    first = np.array([evaluate(t, threads) for t in range(size(threads))])  # type: ignore[arg-type]
    second = np.array([evaluate(v, values) for v in range(size(values))])  # type: ignore[arg-type]
    return first[:, None] + second[None, :]


def integers(rng: np.random.Generator, elt: str, shape: tuple[int, ...]) -> np.ndarray:
    low, high = RANGE.get(elt, (-3, 3))
    return rng.integers(low, high + 1, shape)


def expected(atom: MmaAtom, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    op = atom.emit.kind == "mma_sync" and atom.emit["bit_op"]
    if op:
        x, y = a[:, None, :], b[None, :, :]
        return ((x ^ y) if op == "xor" else (x & y)).sum(-1) + c
    d = a @ b.T + c
    if atom.emit.kind in ("mma_sync", "mma_sp", "wgmma", "wgmma_sp") and atom.emit["saturate"]:
        return np.clip(d, -(1 << 31), (1 << 31) - 1)
    return d


def accumulators(rng: np.random.Generator, atom: MmaAtom) -> np.ndarray:
    shape = atom.tile("C")
    if atom.emit.kind in ("mma_sync", "mma_sp", "wgmma", "wgmma_sp") and atom.emit["saturate"]:
        # Accumulators start close to the limits of i32, so that most results saturate.
        return rng.choice([-1, 1], shape) * ((1 << 31) - 8) + rng.integers(-3, 4, shape)
    return rng.integers(-5, 6, shape)


# ------------------------------------------------------------------------------------------------------- register atoms

REGISTER_ATOMS = [n for n, a in HERE.items() if isinstance(a, MmaAtom) and a.source_b == "rmem" and not a.metadata]


@pytest.mark.parametrize("name", REGISTER_ATOMS)
def test_mma_in_registers(name: str) -> None:
    atom = ATOMS[name]
    assert isinstance(atom, MmaAtom)
    rng = np.random.default_rng(len(name))
    groups = 4 if atom.threads == 8 else 1  # Each quad-pair of the warp computes its own MMA.
    threads = atom.threads * groups
    lanes = np.array([[evaluate(t, atom.thr_id) + 4 * g for t in range(atom.threads)] for g in range(groups)])  # type: ignore
    held = {op: atom.registers(op) for op in "ABCD"}
    words = {op: np.zeros((threads, held[op].count), dtype=WORD[held[op].bits]) for op in "ABC"}
    wanted = []
    for g in range(groups):
        tiles = {op: integers(rng, atom.element(op), atom.tile(op)) for op in "AB"}
        tiles["C"] = accumulators(rng, atom)
        wanted.append(expected(atom, tiles["A"], tiles["B"], tiles["C"]))
        for op, tile in tiles.items():
            flat = encode(atom.element(op), tile.T.reshape(-1))  # column-major
            words[op][lanes[g]] = pack(held[op], atom.element(op), flat[positions(atom.layout(op))])
    ptx = header(ptx_version(atom.ptx_version), "sm_90a") + mma_kernel(atom)
    out_bytes = threads * held["D"].count * held["D"].bits // 8
    out = launch(ptx, "probe", threads, [np.ascontiguousarray(words[op]) for op in "ABC"], out_bytes)
    got = unpack(held["D"], atom.d, out.view(WORD[held["D"].bits]).reshape(threads, -1))
    for g in range(groups):
        d = np.empty(wanted[g].size)
        d[positions(atom.layout_c)] = decode(atom.d, got[lanes[g]])
        assert np.array_equal(d.reshape(wanted[g].T.shape).T, wanted[g])


SPARSE_ATOMS = [n for n, a in HERE.items() if isinstance(a, MmaAtom) and a.family == "mma_sp"]


def metadata(rng: np.random.Generator, atom: MmaAtom, a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return random sparsity metadata E ``(M, columns)``, and A with its dropped elements set to zero."""
    held = atom.metadata
    assert held is not None
    m, _, k = atom.shape_mnk
    known = list(held.kept.items())
    chosen = rng.integers(0, len(known), (m, k // held.group))
    full = np.zeros((m, k // held.group, held.group), a.dtype)
    where = np.array([elements for _, elements in known])[chosen]
    np.put_along_axis(full, where, a.reshape(where.shape), axis=-1)
    bits = np.array([b for b, _ in known])[chosen].reshape(m, -1, held.groups)
    return (bits << 4 * np.arange(held.groups)).sum(-1), full.reshape(m, k)


def metadata_registers(atom: MmaAtom, words: np.ndarray, selector: int) -> np.ndarray:
    """Put E into the registers of the threads that the selector picks. All other threads hold different metadata."""
    held = atom.metadata
    assert held is not None
    own = words.T.reshape(-1)[positions(held.layout)].astype(np.uint64)
    registers = pack(held.registers, held.element, own)
    asked = np.arange(atom.threads) % 4 // (4 // held.selectors) == selector
    registers[~asked] = 0x44444444
    return registers


@pytest.mark.parametrize("name", SPARSE_ATOMS)
def test_sparse_mma_in_registers(name: str) -> None:
    atom = ATOMS[name]
    assert isinstance(atom, MmaAtom) and atom.metadata is not None
    rng = np.random.default_rng(len(name))
    held = atom.registers_d
    for selector in range(atom.metadata.selectors):
        tiles = {op: integers(rng, atom.element(op), atom.tile(op)) for op in "AB"}
        tiles["C"] = accumulators(rng, atom)
        inputs = [
            pack(
                atom.registers(op),
                atom.element(op),
                encode(atom.element(op), t.T.reshape(-1))[positions(atom.layout(op))],
            )
            for op, t in tiles.items()
        ]
        words, full = metadata(rng, atom, tiles["A"])
        inputs.append(metadata_registers(atom, words, selector))
        ptx = header(ptx_version(atom.ptx_version), "sm_90a") + mma_kernel(atom, selector=selector)
        out = launch(ptx, "probe", 32, list(map(np.ascontiguousarray, inputs)), 32 * held.count * held.bits // 8)
        d = np.empty(tiles["C"].size)
        d[positions(atom.layout_c)] = decode(atom.d, unpack(held, atom.d, out.view(WORD[held.bits]).reshape(32, -1)))
        assert np.array_equal(d.reshape(tiles["C"].T.shape).T, expected(atom, full, tiles["B"], tiles["C"])), selector


# ---------------------------------------------------------------------------------------------------------------- wgmma

WGMMA = [n for n in ATOMS if n.startswith("SM90_64x")]
WGMMA_SPARSE = [n for n in ATOMS if n.startswith("SM90_SPARSE_64x")]


def offsets(layout: AnyLayout) -> np.ndarray:
    """Return the element offsets of a tile (X, K), swizzled or not."""
    plain = layout.outer if isinstance(layout, ComposedLayout) else layout
    out = positions(plain)
    if isinstance(layout, ComposedLayout):
        s = layout.inner
        out = out ^ ((out >> s.shift) & (((1 << s.bits) - 1) << s.base))  # type: ignore[union-attr]
    return out


def run_wgmma(atom: MmaAtom, widths: tuple[int, int] | None, step: int, selector: int = 0) -> None:
    """Run one wgmma on k step ``step`` of tiles with these swizzle widths. None selects the widest that fit.

    ``selector`` is the sparsity selector of a sparse A.
    """
    rng = np.random.default_rng(len(atom.name))
    m, n, k = atom.shape_mnk
    size_ = bits_of(atom.a) // 8
    image = np.zeros(0, dtype=np.uint8)
    tiles = {"C": accumulators(rng, atom)}
    descriptors = {"A": 0, "B": 0}
    words = {}
    for op, x, major, source in (("A", m, atom.major_a, atom.source_a), ("B", n, atom.major_b, "smem")):
        elt = atom.element(op)
        k = atom.tile(op)[1]
        if source == "rmem":
            tiles[op] = integers(rng, elt, (x, k))
            flat = encode(elt, tiles[op].T.reshape(-1))
            words[op] = pack(atom.registers(op), elt, flat[positions(atom.layout(op))])
            continue
        width = choose_swizzle((x, 4 * k), major, elt).width if widths is None else widths[op == "B"]
        depth = max((step + 1) * k, row_bytes(width) // size_ if major == "k" else 0)
        smem = smem_tile(major, width, elt, (x, depth))
        full = integers(rng, elt, (x, depth))
        tiles[op] = full[:, step * k : (step + 1) * k]
        view = derive_for(atom, op, smem)
        data = np.zeros(full.size, dtype={1: np.uint8, 2: np.uint16, 4: np.uint32}[size_])
        data[offsets(smem)] = encode(elt, full)
        start = -(-image.size // 1024) * 1024
        image = np.concatenate([image, np.zeros(start - image.size, dtype=np.uint8), data.view(np.uint8)])
        # A step is 32 bytes along K. B of a sparse MMA advances two steps per instruction.
        at = start + 16 * evaluate((0, step * k * size_ // 32), view.steps)  # type: ignore[operator]
        descriptors[op] = view.descriptor.at(at, pattern=start).bits
    flat = encode(atom.c, tiles["C"].T.reshape(-1))
    words["C"] = pack(atom.registers_c, atom.c, flat[positions(atom.layout_c)])
    image = np.concatenate([image, np.zeros(-image.size % 512, dtype=np.uint8)])
    ptx = header(ptx_version(atom.ptx_version), "sm_90a")
    ptx += mma_kernel(atom, "probe", (descriptors["A"], descriptors["B"]), image.size, selector)
    empty = np.zeros(4, dtype=np.uint8)
    inputs = [words.get("A", empty), empty, words["C"], image]
    if atom.metadata is not None:
        bits, tiles["A"] = metadata(rng, atom, tiles["A"])
        inputs.insert(3, metadata_registers(atom, bits, selector))
    held = atom.registers_d
    out = launch(ptx, "probe", 128, list(map(np.ascontiguousarray, inputs)), 128 * held.count * held.bits // 8)
    got = decode(atom.d, unpack(held, atom.d, out.view(WORD[held.bits]).reshape(128, -1)))
    d = np.empty(m * n)
    d[positions(atom.layout_c)] = got
    wanted = expected(atom, tiles["A"], tiles["B"], tiles["C"])
    assert np.array_equal(d.reshape(n, m).T, wanted)


@pytest.mark.parametrize("name", WGMMA)
def test_wgmma(name: str) -> None:
    atom = ATOMS[name]
    assert isinstance(atom, MmaAtom)
    run_wgmma(atom, None, 0)


@pytest.mark.parametrize("name", WGMMA_SPARSE)
def test_wgmma_with_a_sparse_operand(name: str) -> None:
    atom = ATOMS[name]
    assert isinstance(atom, MmaAtom) and atom.metadata is not None
    for selector in range(atom.metadata.selectors):
        run_wgmma(atom, None, 0, selector)


@pytest.mark.parametrize("width_b", [0, 64, 128])
@pytest.mark.parametrize("width_a", SWIZZLES)
@pytest.mark.parametrize(
    "name",
    [
        "SM90_SPARSE_64x64x32_F32F16F16_SS_TN",
        "SM90_SPARSE_64x64x16_F32TF32TF32_SS_TN",
        "SM90_SPARSE_64x64x64_S32U8S8_SS_TN",
    ],
)
def test_layouts_of_wgmma_with_a_sparse_operand(name: str, width_a: int, width_b: int) -> None:
    atom = ATOMS[name]
    assert isinstance(atom, MmaAtom)
    for step in (0, 1):
        run_wgmma(atom, (width_a, width_b), step)


@pytest.mark.parametrize("width_b", SWIZZLES)
@pytest.mark.parametrize("width_a", SWIZZLES)
@pytest.mark.parametrize(
    "name",
    [
        n
        for n in WGMMA
        if n.startswith("SM90_64x64x")
        and "_SS_" in n
        and "SAT" not in n
        and n.split("_")[2] in ("F32F16F16", "F32TF32TF32", "S32U8S8")
    ],
)
def test_wgmma_layouts(name: str, width_a: int, width_b: int) -> None:
    atom = ATOMS[name]
    assert isinstance(atom, MmaAtom)
    for step in (0, 1, 3):
        run_wgmma(atom, (width_a, width_b), step)


# --------------------------------------------------------------------------------------------------------------- copies

WARP_COPIES = [
    n
    for n, a in HERE.items()
    if isinstance(a, CopyAtom) and a.family in ("ldmatrix", "stmatrix", "movmatrix", "shuffle")
]


@pytest.mark.parametrize("name", WARP_COPIES)
def test_warp_copies(name: str) -> None:
    atom = ATOMS[name]
    assert isinstance(atom, CopyAtom) and atom.registers is not None
    unit = int(atom.element[1:])
    rng = np.random.default_rng(1)
    src, dst = positions(atom.in_elements("src", unit)), positions(atom.in_elements("dst", unit))
    total = int(max(src.max(), dst.max())) + 1
    data = rng.integers(0, 1 << 16, total).astype(WORD[unit])
    given = data if atom.src_space == "smem" else data[src]
    out_bytes = (total if atom.dst_space == "smem" else dst.size) * unit // 8
    ptx = header(ptx_version(atom.ptx_version), "sm_90a") + copy_kernel(atom)
    out = launch(ptx, "probe", 32, [np.ascontiguousarray(given)], out_bytes).view(WORD[unit])
    wanted = data if atom.dst_space == "smem" else data[dst]
    assert np.array_equal(out, wanted.reshape(-1))


THREAD_COPIES = [
    n
    for n, a in HERE.items()
    if isinstance(a, CopyAtom) and a.family in ("universal", "cp_async", "bulk", "bulk_reduce")
]


REDUCED = {
    "F32": "f32", "F16": "f16", "BF16": "bf16", "F64": "f64", "S32": "i32", "U32": "ui32", "S64": "i64", "U64": "i64",
    "B32": "ui32", "B64": "i64",
}  # fmt: skip
REDUCTIONS = {
    "ADD": np.add, "MIN": np.minimum, "MAX": np.maximum, "AND": np.bitwise_and, "OR": np.bitwise_or,
    "XOR": np.bitwise_xor,
    "INC": lambda new, old: np.where(old >= new, 0, old + 1),
    "DEC": lambda new, old: np.where((old == 0) | (old > new), new, old - 1),
}  # fmt: skip
"""Operation of a reduction -> function that computes the new contents of the destination."""


@pytest.mark.parametrize("name", THREAD_COPIES)
def test_thread_copies(name: str) -> None:
    atom = ATOMS[name]
    assert isinstance(atom, CopyAtom)
    rng = np.random.default_rng(2)
    moved = 256 if atom.sizes else atom.bits // 8
    if atom.family == "bulk_reduce":
        _, _, _, operation, _, ptx_type = name.split("_")
        elt = REDUCED[ptx_type]
        word = WORD[bits_of(elt)]
        values, before = (rng.integers(0, 100, moved * 8 // bits_of(elt)) for _ in range(2))
        given = np.concatenate([encode(elt, values).astype(word), encode(elt, before).astype(word)]).view(np.uint8)
        wanted = encode(elt, REDUCTIONS[operation](values, before)).astype(word).view(np.uint8)
    else:
        given = rng.integers(0, 256, moved).astype(np.uint8)
        wanted = given.copy()
        if atom.family == "cp_async" and atom.emit["zfill"]:
            wanted[moved // 2 :] = 0  # The kernel copies only the first half and fills the rest with zeros.
    ptx = header(ptx_version(atom.ptx_version), "sm_90a") + transfer_kernel(atom, moved)
    blocks = 2 if atom.src_space == "smem" and atom.dst_space == "cluster" else 1
    assert np.array_equal(launch(ptx, "probe", 1, [given], moved, blocks), wanted)


@pytest.mark.parametrize("name", ["SM50_PREFETCH_L1", "SM50_PREFETCH_L2", "SM90_BULK_PREFETCH"])
def test_prefetches(name: str) -> None:
    # A prefetch has no visible result: it must run and leave the data unchanged.
    atom = ATOMS[name]
    assert isinstance(atom, CopyAtom)
    given = np.arange(256, dtype=np.uint8)
    ptx = header("8.0", "sm_90a") + transfer_kernel(atom, given.size)
    assert np.array_equal(launch(ptx, "probe", 1, [given], given.size), given)
