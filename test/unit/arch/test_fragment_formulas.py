"""Layouts of the atom table compared with the fragment formulas of the PTX ISA, for all lanes and values.

Each formula is written as its section of the PTX ISA prints it, with groupID = lane >> 2 and threadID_in_group =
lane % 4. The formulas share no common rule, so that a mistake in one cannot hide in all.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cute_dialect.algebra.evaluation import evaluate
from cute_dialect.algebra.values import Layout
from cute_dialect.arch import ATOMS, CopyAtom, MmaAtom
from cute_dialect.arch.elements import bits_of

Formula = Callable[[int, int], tuple[int, int]]
"""(lane, value) -> (row, column)"""


def g(lane: int) -> int:
    return lane >> 2


def t(lane: int) -> int:
    return lane % 4


# A: (m, k).  B: (k, n), rows are k.  C: (m, n).
def C16(x: int, i: int) -> tuple[int, int]:
    return (g(x) if i < 2 else g(x) + 8), t(x) * 2 + (i & 1)


def C8(x: int, i: int) -> tuple[int, int]:
    return g(x), t(x) * 2 + (i & 1)


# (M, K, bits of an element) -> A, B, C; PTX ISA 9.7.14.5.2 to 9.7.14.5.13.
WARP: dict[tuple[int, int, int], tuple[Formula, Formula, Formula]] = {
    (8, 4, 64): (lambda x, i: (x >> 2, x % 4), lambda x, i: (x % 4, x >> 2), C8),
    (8, 16, 8): (lambda x, i: (g(x), t(x) * 4 + i), lambda x, i: (t(x) * 4 + i, g(x)), C8),
    (8, 32, 4): (lambda x, i: (g(x), t(x) * 8 + i), lambda x, i: (t(x) * 8 + i, g(x)), C8),
    (8, 128, 1): (lambda x, i: (g(x), t(x) * 32 + i), lambda x, i: (t(x) * 32 + i, g(x)), C8),
    (16, 4, 32): (lambda x, i: (g(x) if i == 0 else g(x) + 8, t(x)), lambda x, i: (t(x), g(x)), C16),
    (16, 4, 64): (lambda x, i: (g(x) if i == 0 else g(x) + 8, t(x)), lambda x, i: (t(x), g(x)), C16),
    (16, 8, 16): (
        lambda x, i: (g(x) if i < 2 else g(x) + 8, t(x) * 2 + (i & 1)),
        lambda x, i: (t(x) * 2 + i, g(x)),
        C16,
    ),
    (16, 8, 32): (
        lambda x, i: (g(x) if i in (0, 2) else g(x) + 8, t(x) if i in (0, 1) else t(x) + 4),
        lambda x, i: (t(x) if i == 0 else t(x) + 4, g(x)),
        C16,
    ),
    (16, 8, 64): (
        lambda x, i: (g(x) if i in (0, 2) else g(x) + 8, t(x) if i in (0, 1) else t(x) + 4),
        lambda x, i: (t(x) if i == 0 else t(x) + 4, g(x)),
        C16,
    ),
    (16, 16, 16): (
        lambda x, i: (
            g(x) if 0 <= i < 2 or 4 <= i < 6 else g(x) + 8,
            t(x) * 2 + (i & 1) if i < 4 else t(x) * 2 + (i & 1) + 8,
        ),
        lambda x, i: (t(x) * 2 + (i & 1) if i < 2 else t(x) * 2 + (i & 1) + 8, g(x)),
        C16,
    ),
    (16, 16, 64): (
        lambda x, i: (g(x) if i % 2 == 0 else g(x) + 8, i * 2 + t(x) if i % 2 == 0 else i * 2 - 2 + t(x)),
        lambda x, i: (t(x) + i * 4, g(x)),
        C16,
    ),
    (16, 16, 8): (
        lambda x, i: (g(x) if i < 4 else g(x) + 8, t(x) * 4 + (i & 3)),
        lambda x, i: (t(x) * 4 + i, g(x)),
        C16,
    ),
    (16, 32, 8): (
        lambda x, i: (
            g(x) if 0 <= i < 4 or 8 <= i < 12 else g(x) + 8,
            t(x) * 4 + (i & 3) if i < 8 else t(x) * 4 + (i & 3) + 16,
        ),
        lambda x, i: (t(x) * 4 + (i & 3) if i < 4 else t(x) * 4 + (i & 3) + 16, g(x)),
        C16,
    ),
    (16, 32, 4): (
        lambda x, i: (g(x) if i < 8 else g(x) + 8, t(x) * 8 + (i & 7)),
        lambda x, i: (t(x) * 8 + i, g(x)),
        C16,
    ),
    (16, 64, 4): (
        lambda x, i: (
            g(x) if 0 <= i < 8 or 16 <= i < 24 else g(x) + 8,
            t(x) * 8 + (i & 7) if i < 16 else t(x) * 8 + (i & 7) + 32,
        ),
        lambda x, i: (t(x) * 8 + (i & 7) if i < 8 else t(x) * 8 + (i & 7) + 32, g(x)),
        C16,
    ),
    (16, 128, 1): (
        lambda x, i: (g(x) if i < 32 else g(x) + 8, t(x) * 32 + (i & 31)),
        lambda x, i: (t(x) * 32 + i, g(x)),
        C16,
    ),
    (16, 256, 1): (
        lambda x, i: (
            g(x) if 0 <= i < 32 or 64 <= i < 96 else g(x) + 8,
            t(x) * 32 + (i & 31) if i < 64 else t(x) * 32 + (i & 31) + 128,
        ),
        lambda x, i: (t(x) * 32 + (i & 31) if i < 32 else t(x) * 32 + (i & 31) + 128, g(x)),
        C16,
    ),
}

# The 2880 wgmma rows are built only by the tests that use them, which keeps collection fast.
_OTHERS = [ATOMS[n] for n in ATOMS if not n.startswith(("SM90_64x", "SM90_SPARSE_64x"))]
_SYNC = [a for a in _OTHERS if isinstance(a, MmaAtom) and a.family == "mma_sync"]
WARP_ATOMS = [a.name for a in _SYNC if a.threads == 32]
QUAD_PAIR_ATOMS = [a.name for a in _SYNC if a.threads == 8]


def table(layout: Layout) -> list[list[int]]:
    """Evaluate a thread-value layout at all coordinates, as ``[thread][value]``."""
    threads, values = layout[0], layout[1]
    column = [evaluate(i, values) for i in range(_size(values))]
    return [[evaluate(x, threads) + v for v in column] for x in range(_size(threads))]  # type: ignore[operator]


def _size(layout: Layout) -> int:
    from cute_dialect.algebra.evaluation import size

    return size(layout)  # type: ignore[return-value]


def mma(name: str) -> MmaAtom:
    atom = ATOMS[name]
    assert isinstance(atom, MmaAtom)
    return atom


def copy(name: str) -> CopyAtom:
    atom = ATOMS[name]
    assert isinstance(atom, CopyAtom)
    return atom


def check(atom: MmaAtom, a: Formula, b: Formula, c: Formula) -> None:
    m, n, k = atom.shape_mnk
    for layout, formula, rows, columns, swapped in (
        (atom.layout_a, a, m, k, False),
        (atom.layout_b, b, n, k, True),
        (atom.layout_c, c, m, n, False),
    ):
        expected = []
        have = table(layout)
        for x, values in enumerate(have):
            lane = evaluate(x, atom.thr_id)
            pairs = [formula(lane, i) for i in range(len(values))]  # type: ignore[arg-type]
            # An atom stores B as (n, k), the PTX ISA as (k, n).
            expected.append([col + rows * row if swapped else row + rows * col for row, col in pairs])
        assert have == expected
        assert sorted(v for values in have for v in values) == list(range(rows * columns))


def held_bits(atom: MmaAtom) -> int:
    """Return the bits of an element of A in a register: a byte for the 4-bit and 6-bit floats of ``kind::f8f6f4``."""
    return atom.registers_a.bits // atom.registers_a.values


@pytest.mark.parametrize("name", WARP_ATOMS)
def test_warp_fragments(name: str) -> None:
    atom = mma(name)
    m, n, k = atom.shape_mnk
    assert n == 8
    check(atom, *WARP[m, k, held_bits(atom)])


def test_every_formula_is_used() -> None:
    used = {(a.shape_mnk[0], a.shape_mnk[2], held_bits(a)) for a in map(mma, WARP_ATOMS)}
    assert used == set(WARP)


# PTX ISA 9.7.14.5.1: the first quad-pair consists of the threads with %laneid 0-3 and 16-19.
def _low(lane: int) -> bool:
    return lane < 16


QUAD_PAIR_A: dict[str, Formula] = {
    "k": lambda x, i: (x % 4 if _low(x) else x % 4 + 4, i),
    "mn": lambda x, i: (i % 4 if _low(x) else i % 4 + 4, x % 4),
}
QUAD_PAIR_B: dict[str, Formula] = {
    "mn": lambda x, i: (x % 4, i if _low(x) else i + 4),
    "k": lambda x, i: (i, x % 4 if _low(x) else x % 4 + 4),
}
QUAD_PAIR_C: dict[str, Formula] = {
    "f16": lambda x, i: (x % 4 if _low(x) else x % 4 + 4, i),
    "f32": lambda x, i: (
        (x & 1) + (i & 2) if _low(x) else (x & 1) + (i & 2) + 4,
        (i & 4) + (x & 2) + (i & 1),
    ),
}


@pytest.mark.parametrize("name", QUAD_PAIR_ATOMS)
def test_quad_pair_fragments(name: str) -> None:
    atom = mma(name)
    check(atom, QUAD_PAIR_A[atom.major_a], QUAD_PAIR_B[atom.major_b], QUAD_PAIR_C[atom.c])


def test_quad_pair_lanes() -> None:
    thr_id = mma(QUAD_PAIR_ATOMS[0]).thr_id
    assert [evaluate(i, thr_id) for i in range(8)] == [0, 1, 2, 3, 16, 17, 18, 19]


# PTX ISA 9.7.15.5.1: the %warpid within the warpgroup is thread / 32.
WGMMA_A: dict[int, Formula] = {
    16: lambda x, i: (
        16 * (x // 32) + (x % 32) // 4 + (8 if i in (2, 3, 6, 7) else 0),
        2 * (x % 4) + (i & 1) + (8 if i >= 4 else 0),
    ),
    32: lambda x, i: (16 * (x // 32) + (x % 32) // 4 + (8 if i in (1, 3) else 0), x % 4 + (4 if i >= 2 else 0)),
    8: lambda x, i: (
        16 * (x // 32) + (x % 32) // 4 + (8 if 4 <= i < 8 or i >= 12 else 0),
        4 * (x % 4) + (i & 3) + (16 if i >= 8 else 0),
    ),
}


def WGMMA_D(x: int, i: int) -> tuple[int, int]:
    return 16 * (x // 32) + (x % 32) // 4 + (8 if i % 4 >= 2 else 0), 8 * (i // 4) + 2 * (x % 4) + (i & 1)


WGMMA_ATOMS = [n for n in ATOMS if n.startswith("SM90_64x")]


def test_warpgroup_accumulators() -> None:
    by_n = {}
    for name in WGMMA_ATOMS:
        atom = mma(name)
        n = atom.shape_mnk[1]
        assert by_n.setdefault(n, atom.layout_c) == atom.layout_c
    assert sorted(by_n) == list(range(8, 257, 8))
    for n in (8, 24, 64, 256):
        have = table(by_n[n])
        for x, values in enumerate(have):
            assert values == [r + 64 * c for r, c in (WGMMA_D(x, i) for i in range(len(values)))]
        assert sorted(v for values in have for v in values) == list(range(64 * n))


@pytest.mark.parametrize("name", [n for n in WGMMA_ATOMS if n.startswith("SM90_64x16x") and "_RS_" in n])
def test_warpgroup_register_a(name: str) -> None:
    atom = mma(name)
    have = table(atom.layout_a)
    for x, values in enumerate(have):
        pairs = [WGMMA_A[bits_of(atom.a)](x, i) for i in range(len(values))]
        assert values == [r + 64 * c for r, c in pairs]
    assert sorted(v for values in have for v in values) == list(range(64 * atom.shape_mnk[2]))


@pytest.mark.sample(every=6)
@pytest.mark.parametrize("name", [n for n in WGMMA_ATOMS if n.startswith("SM90_64x16x")])
def test_warpgroup_shared_operands(name: str) -> None:
    # Each thread's layout covers the whole tile.
    atom = mma(name)
    _, n, k = atom.shape_mnk
    for layout, rows in ((atom.layout_b, n), *(((atom.layout_a, 64),) if atom.source_a == "smem" else ())):
        have = table(layout)
        assert len(have) == 128
        assert all(values == list(range(rows * k)) for values in have)


# ------------------------------------------------------------------------------------------------------------- copies


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("matrices", [1, 2, 4])
@pytest.mark.parametrize("store", [False, True])
def test_matrix_copies(matrices: int, transposed: bool, store: bool) -> None:
    # PTX ISA 9.7.14.5.15: thread t holds elements of row t/4 of each matrix; bit = 16*element + 128*row + 1024*matrix.
    from cute_dialect.arch import find_matrix_copy

    atom = find_matrix_copy(matrices, transposed, store)
    memory, held = (atom.dst, atom.src) if store else (atom.src, atom.dst)
    have = table(atom.in_elements("src" if store else "dst", 16))
    for lane, values in enumerate(have):
        expected = []
        for j in range(matrices):
            for e in range(2):
                row, column = lane // 4, 2 * (lane % 4) + e
                if transposed:
                    row, column = column, row
                expected.append(column + 8 * row + 64 * j)
        assert values == expected
    rows = table(memory)
    for lane, bits in enumerate(rows):
        # Threads 0-7 address the rows of matrix 0, threads 8-15 those of matrix 1 …; further threads repeat them.
        assert bits[0] == 128 * (lane % (8 * matrices)) and bits == list(range(bits[0], bits[0] + 128))
    assert {b for bits in table(held) for b in bits} == set(range(1024 * matrices))
    assert atom.ref == held


def test_movmatrix_transposes() -> None:
    atom = copy("SM75_U32x1_MOVM_T")
    src, dst = table(atom.in_elements("src", 16)), table(atom.in_elements("dst", 16))
    where = {position: (lane, e) for lane, values in enumerate(src) for e, position in enumerate(values)}
    matrix = [[where[e + 8 * r] for e in range(8)] for r in range(8)]
    for lane, values in enumerate(dst):
        got = [where[v] for v in values]
        assert got == [matrix[2 * (lane % 4) + e][lane // 4] for e in range(2)]


@pytest.mark.parametrize("mask", [1, 4])
def test_transposing_shuffles(mask: int) -> None:
    # A lane with the mask bit clear gets the first value of both lanes, one with the bit set the second.
    atom = copy(f"SM50_Shuffle_U32_2x2Trans_XOR{mask}")
    src, dst = table(atom.in_elements("src", 32)), table(atom.in_elements("dst", 32))
    for lane in range(32):
        low, high = lane & ~mask, lane | mask
        which = 1 if lane & mask else 0
        assert dst[lane] == [src[low][which], src[high][which]]


@pytest.mark.parametrize("name", [n for n in ATOMS if "CP_ASYNC" in n or n.startswith("UniversalCopy")])
def test_one_thread_copies(name: str) -> None:
    atom = copy(name)
    size = int("".join(c for c in name.split("_")[-2 if name.endswith("ZFILL") else -1] if c.isdigit()))
    bits = size * 8 if "CP_ASYNC" in name else size
    assert table(atom.src) == table(atom.dst) == [list(range(bits))]
    assert atom.bits == bits


def test_dot_products() -> None:
    for name in ("SM61_DP4A", "SM61_DP2A"):
        atom = mma(name)
        k = atom.shape_mnk[2]
        assert table(atom.layout_a) == table(atom.layout_b) == [list(range(k))]
        assert table(atom.layout_c) == [[0]]
