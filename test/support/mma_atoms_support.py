"""Expected results of each MMA atom, computed with numpy from the atom table. The CPU and the GPU tests share them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cute_dialect.algebra.evaluation import evaluate, size
from cute_dialect.arch.elements import bits_of

if TYPE_CHECKING:
    from mma_atom_kernels import MmaCase

    from cute_dialect.algebra.values import Layout
    from cute_dialect.arch.atom import MmaAtom

RANGE = {
    "b1": (0, 1), "ui4": (0, 15), "i4": (-8, 7), "ui8": (0, 200), "i8": (-128, 127), "ui16": (0, 9), "i16": (-9, 9),
}  # fmt: skip
NUMPY = {
    "f64": np.float64, "f32": np.float32, "tf32": np.float32, "f16": np.float16, "i8": np.int8, "ui8": np.uint8,
    "i16": np.int16, "ui16": np.uint16, "i32": np.int32, "ui32": np.uint32,
}  # fmt: skip
ML_DTYPES = {"bf16": "bfloat16", "f8E4M3FN": "float8_e4m3fn", "f8E5M2": "float8_e5m2"}


def dtype(element: str) -> np.dtype:
    """Return the numpy type of an element type."""
    if element in ML_DTYPES:
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, ML_DTYPES[element]))
    return np.dtype(NUMPY[element])


def numbers(rng: np.random.Generator, element: str, shape: tuple[int, ...]) -> np.ndarray:
    """Return small integers that are exact in the element type and whose dot products are exact in the accumulator."""
    low, high = RANGE.get(element, (-3, 3))
    return rng.integers(low, high + 1, shape)


def positions(case: MmaCase, operand: str) -> np.ndarray:
    """Return the table's map ``(thread, value) -> row + rows*column`` of an operand as an array."""
    return positions_of(case.atom.layout(operand))


def positions_of(layout: Layout) -> np.ndarray:
    """Return a thread-value layout as an array."""
    threads, values = layout
    first = np.array([evaluate(t, threads) for t in range(size(threads))])  # type: ignore[arg-type]
    second = np.array([evaluate(v, values) for v in range(size(values))])  # type: ignore[arg-type]
    return first[:, None] + second[None, :]


def words(case: MmaCase, operand: str, tile: np.ndarray) -> np.ndarray:
    """Return the registers of each thread for a tile of elements smaller than a byte."""
    element = case.atom.element(operand)
    bits = bits_of(element)
    flat = (tile.T.reshape(-1) & ((1 << bits) - 1)).astype(np.uint64)[positions(case, operand)]
    parts = flat.reshape(flat.shape[0], -1, 32 // bits)
    packed = sum(parts[:, :, j] << np.uint64(bits * j) for j in range(32 // bits))
    return np.ascontiguousarray(packed.astype(np.uint32).view(np.int32))  # type: ignore[union-attr]


def product(atom: MmaAtom, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Return ``a * b^T + c`` over integers, including the bit operation and the saturation of the atom."""
    kind = atom.emit.kind
    bit_op = kind == "mma_sync" and atom.emit["bit_op"]
    if bit_op:
        x, y = a[:, None, :], b[None, :, :]
        return ((x ^ y) if bit_op == "xor" else (x & y)).sum(-1) + c
    d = a @ b.T + c
    if kind in ("mma_sync", "wgmma") and atom.emit["saturate"]:
        return np.clip(d, -(1 << 31), (1 << 31) - 1)
    return d


def register_arrays(case: MmaCase) -> tuple[list[np.ndarray], np.ndarray]:
    """Return the arguments A, B, C, D of a kernel with operands in registers (D poisoned), and the expected D."""
    atom = case.atom
    m, n, k = case.tile
    rng = np.random.default_rng(sum(map(ord, case.name)))
    a, b = numbers(rng, atom.a, (m, k)), numbers(rng, atom.b, (n, k))
    c = rng.integers(-5, 6, (m, n))
    if atom.d == "ui32":
        c = np.abs(c)
    if atom.emit.kind == "mma_sync" and atom.emit["saturate"]:
        c = rng.choice([-1, 1], (m, n)) * ((1 << 31) - 40) + c
    wanted = product(atom, a, b, c)
    held = dtype(atom.c)
    operands = [words(case, x, t) if case.words else t.astype(dtype(atom.element(x))) for x, t in (("A", a), ("B", b))]
    poison = np.full((m, n), 0xA5, np.uint8).repeat(held.itemsize, 1).view(held)
    return [*operands, c.astype(held), poison], wanted


def sparse_rows(rng: np.random.Generator, element: str, m: int, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a sparse matrix and its compressed form, with random zeros.

    The results are the dense matrix ``(m, k)``, its kept elements ``(m, k/2)``, and the 4 metadata bits of each group.
    """
    group = {32: 2, 4: 8}.get(bits_of(element), 4)
    values = numbers(rng, element, (m, k // 2))
    dense = np.zeros((m, k), values.dtype)
    bits = np.zeros((m, k // group), np.uint32)
    for r in range(m):
        kept = iter(values[r])
        for g in range(k // group):
            first, second = sorted(rng.choice(4, 2, replace=False).tolist())
            if group == 2:  # The metadata selects halves of a 32-bit number.
                first, second = (0, 1) if rng.integers(2) == 0 else (2, 3)
            bits[r, g] = first | second << 2
            for quarter in (first, second):
                each = group // 4  # Number of elements per index.
                where = [quarter * each + i for i in range(each)] if each else [quarter // 2] * (quarter % 2 == 0)
                for at in where:
                    dense[r, g * group + at] = next(kept)
        assert next(kept, None) is None
    return dense, values, bits


def sparse_arrays(case: MmaCase) -> tuple[list[np.ndarray], np.ndarray]:
    """Return the arguments A, B, E, C, D of a kernel with a sparse A (D poisoned), and the expected D."""
    atom = case.atom
    m, n, k = case.tile
    rng = np.random.default_rng(sum(map(ord, case.name)))
    dense, a, bits = sparse_rows(rng, atom.a, m, k)
    b = numbers(rng, atom.b, (n, k))
    c = rng.integers(-5, 6, (m, n))
    if atom.emit["saturate"]:
        c = rng.choice([-1, 1], (m, n)) * ((1 << 31) - 40) + c
    wanted = dense @ b.T + c
    if atom.emit["saturate"]:
        wanted = np.clip(wanted, -(1 << 31), (1 << 31) - 1)
    operands = [words(case, x, t) if case.words else t.astype(dtype(atom.element(x))) for x, t in (("A", a), ("B", b))]
    held = dtype(atom.c)
    poison = np.full((m, n), 0xA5, np.uint8).repeat(held.itemsize, 1).view(held)
    return [*operands, metadata_words(atom.a, bits), c.astype(held), poison], wanted


def metadata_words(element: str, bits: np.ndarray) -> np.ndarray:
    """Pack the 4 metadata bits of each group of a row into words, the first group lowest.

    A word is i16 with 4 groups, or i32 with 8 groups for small elements.
    """
    word, signed = (np.uint16, np.int16) if bits_of(element) >= 16 else (np.uint32, np.int32)
    per = 2 * np.dtype(word).itemsize
    whole = (bits.reshape(len(bits), -1, per) << (4 * np.arange(per, dtype=np.uint32))).sum(-1)
    return np.ascontiguousarray(whole.astype(word)).view(signed)


def wgmma_sparse_arrays(case: MmaCase, more: int = 1) -> tuple[list[object], np.ndarray]:
    """Return the arguments A, B, E, D (and the flag) of a wgmma kernel with a sparse A, and the expected D."""
    atom = case.atom
    m, n, k = case.tile
    rng = np.random.default_rng(sum(map(ord, case.name)))
    dense, a, bits = sparse_rows(rng, atom.a, m, k)
    b = numbers(rng, atom.b, (n, k))
    wanted = (dense @ b.T) * (2 if more else 1)
    held = dtype(atom.d)
    poison = np.full((m, n), 0xA5, np.uint8).repeat(held.itemsize, 1).view(held)
    arrays: list[object] = [a.astype(dtype(atom.a)), b.astype(dtype(atom.b)), metadata_words(atom.a, bits), poison]
    return arrays + ([more] if case.flag else []), wanted


def wgmma_arrays(case: MmaCase, more: int = 1) -> tuple[list[object], np.ndarray]:
    """Return the arguments A, B, D (and the flag) of a wgmma kernel, D poisoned, and the expected D."""
    atom = case.atom
    m, n, k = case.tile
    rng = np.random.default_rng(sum(map(ord, case.name)))
    a, b = numbers(rng, atom.a, (m, k)), numbers(rng, atom.b, (n, k))
    wanted = (a @ b.T) * (2 if more else 1)
    held = dtype(atom.d)
    poison = np.full((m, n), 0xA5, np.uint8).repeat(held.itemsize, 1).view(held)
    arrays: list[object] = [a.astype(dtype(atom.a)), b.astype(dtype(atom.b)), poison]
    return arrays + ([more] if case.flag else []), wanted
