"""`tcgen05.mma.sp` as intrinsics, compared with a decoder of the metadata that follows the formulas of the PTX ISA."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import numpy as np
import pytest
from tensor_programs import Program, Words, rows
from test_tensor_memory import CODES, KINDS, descriptor, halves, random_rows, result, split

from cute_dialect.interp import InterpError
from cute_dialect.interp.values import Array

SPARSE = 4  # the bit of the instruction descriptor
PATTERNS = {"tf32": (0b0100, 0b1110)}  # the others: two indices in ascending order
PAIRS = tuple(i | j << 2 for j in range(4) for i in range(j))


def random_metadata(rng: np.random.Generator, kind: str, count: int) -> Array:
    """Return the four bits of each group of the rows of one instruction."""
    groups = 16 if CODES[kind][0] in ("f8f6f4", "i8") else 8
    return rng.choice(np.array(PATTERNS.get(kind, PAIRS)), (count, groups))


def expanded(kept: Array, bits: Array, kind: str) -> Array:
    """Return rows at full K."""
    out: list[list[float]] = []
    for row, own in zip(kept.tolist(), bits.tolist()):
        dense: list[float] = []
        for g, b in enumerate(own):
            if kind == "tf32":
                dense += [row[g], 0.0] if b == 0b0100 else [0.0, row[g]]
                continue
            four = [0.0] * 4
            four[b & 3], four[b >> 2] = row[2 * g], row[2 * g + 1]
            dense += four
        out.append(dense)
    return np.array(out)


def metadata_words(bits: Array, kind: str, selector: int) -> Words:
    """Return two columns of tensor memory for 128 rows."""
    out = np.full((128, 2), 0x33333333, np.uint64)  # 0011 is invalid for every kind
    for row in range(128):
        number = sum(int(b) << 4 * g for g, b in enumerate(bits[row]))
        if CODES[kind][0] in ("f8f6f4", "i8"):
            out[row] = number & 0xFFFFFFFF, number >> 32
            continue
        for half in range(2):
            lane, shift = row % 8 + 8 * half + 16 * (row // 16), 16 * (row // 8 % 2)
            kept = int(out[lane, selector]) & ~(0xFFFF << shift)
            out[lane, selector] = kept | (number >> 16 * half & 0xFFFF) << shift
    return out.astype(np.uint32)


CASES = [
    ("f16", "f32", 1),
    ("bf16", "f32", 0),
    ("f16", "f16", 1),
    ("tf32", "f32", 1),
    ("e4m3", "f32", 0),
    ("e2m1", "f32", 0),
    ("s8", "s32", 0),
]


def program(
    kind: str, d: str, selector: int, *, tensor: bool, pair: bool, more: int = 0, e: int = 44
) -> tuple[Array, Array]:
    """Run one MMA of 128 rows per block and 32 columns, and return D and the product."""
    blocks = 2 if pair else 1
    rng = np.random.default_rng(len(kind) + selector)
    (ra, va), (rb, vb) = random_rows(rng, kind, 128 * blocks), random_rows(rng, kind, 32, 4)
    bits = random_metadata(rng, kind, 128 * blocks)
    held = np.zeros((blocks, 128, 64), np.uint32)
    for i in range(blocks):
        held[i, :, 44:46] = metadata_words(bits[128 * i : 128 * i + 128], kind, selector)
    if tensor:
        held[:, :, 36:44] = ra.view(np.uint32).reshape(blocks, 128, 8)
    if pair:
        image, (da, db) = halves(split(ra), split(rb))
    else:
        (ia, da), (ib, db) = rows(ra, 0), rows(rb, ra.size)
        image = np.concatenate([ia, ib])
    p = Program()
    a = p.tensor(36) if tensor else p.number(da, "i64")
    operands = [(p.tensor(e), "!llvm.ptr<6>"), *p.codes(KINDS.index(CODES[kind][0]), blocks, 0)]
    shape = descriptor(128 * blocks, 32, kind, kind, d, SPARSE + selector + more)
    p.mma(f"sp.{'tensor' if tensor else 'shared'}", a, db, shape, False, operands)
    words, _ = p.run(image, 32, held.reshape(128 * blocks, 64))
    return result(words, d), expanded(va, bits, kind) @ vb.T


@pytest.mark.sample(every=4)
@pytest.mark.parametrize("pair", [False, True])
@pytest.mark.parametrize(
    ("kind", "d", "selector", "tensor"),
    [(*case, tensor) for case in CASES for tensor in (False, True) if not (tensor and case[0] == "e2m1")],
)
def test_products(kind: str, d: str, selector: int, tensor: bool, pair: bool) -> None:
    """A is in shared or in tensor memory, where 4-bit elements would have another format."""
    got, wanted = program(kind, d, selector, tensor=tensor, pair=pair)
    assert np.array_equal(got, wanted.astype(np.float16).astype(float) if d == "f16" else wanted)


@pytest.mark.parametrize(
    ("kind", "more", "e", "message"),
    [
        ("f16", 2, 44, "the sparsity selector .* is 2; use 0 or 1"),
        ("e4m3", 1, 44, "the sparsity selector .* is 1; it must be 0 for this kind"),
        ("f16", 0, 45, "the metadata of A are at lane 0, column 45; they must be at lane 0 and an even column"),
        ("f16", 1, 44, "the metadata of row 0, group 0 of A is 0011; it must be one of"),
        ("f16", 0, 30, "reads its metadata of A from column 30, which it overwrites with its accumulator"),
        ("f16", 64 << 20, 44, "M .* is 192; use 128"),
    ],
)
def test_faults(kind: str, more: int, e: int, message: str) -> None:
    with pytest.raises(InterpError, match=message):
        program(kind, "f32", 0, tensor=False, pair=False, more=more, e=e)


def test_inline_ptx_of_a_sparse_mma() -> None:
    """The operands of the text are those of the intrinsic."""
    rng = np.random.default_rng(0)
    (ra, va), (rb, vb) = random_rows(rng, "f16", 128), random_rows(rng, "f16", 16, 4)
    bits = random_metadata(rng, "f16", 128)
    held = np.zeros((128, 32), np.uint32)
    held[:, 24:26] = metadata_words(bits, "f16", 1)
    (ia, da), (ib, db) = rows(ra, 0), rows(rb, ra.size)
    p = Program()
    names = [p.tensor(0), p.number(da, "i64"), p.number(db, "i64"), p.tensor(24)]
    names.append(p.number(descriptor(128, 16, "f16", "f16", "f32", SPARSE | 1)))
    for i in (0, 3):
        p.lines.append(f"%a{i} = llvm.ptrtoint {names[i]} : !llvm.ptr<6> to i32")
    text = "{ .reg .pred p; setp.ne.b32 p, 0, 0; tcgen05.mma.sp.cta_group::1.kind::f16 [$0], $1, $2, [$3], $4, p; }"
    p.lines.append(
        f'llvm.inline_asm has_side_effects "{text}", "r,l,l,r,r" %a0, {names[1]}, {names[2]}, %a3, {names[4]} : '
        "(i32, i64, i64, i32, i32) -> ()"
    )
    words, _ = p.run(np.concatenate([ia, ib]), 16, held)
    assert np.array_equal(result(words, "f32"), expanded(va, bits, "f16") @ vb.T)


def test_a_dense_descriptor_is_refused() -> None:
    with pytest.raises(InterpError, match=r"the sparsity bit \(2\) .* is 0; it must be 1"):
        program("f16", "f32", 0, tensor=False, pair=False, more=-SPARSE)
