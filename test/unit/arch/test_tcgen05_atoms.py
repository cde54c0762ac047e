"""Descriptors, MMA atoms and tensor-memory copies of tcgen05, compared with independent definitions."""

from __future__ import annotations

import random

import pytest

from cute_dialect.algebra.evaluation import evaluate
from cute_dialect.algebra.values import ComposedLayout, Layout, Swizzle
from cute_dialect.arch import ATOMS, AtomError, CopyAtom, DescriptorError, mma_atom
from cute_dialect.arch.atom import MmaAtom
from cute_dialect.arch.descriptors import TCGEN05, derive, pattern_bytes, smem_tile
from cute_dialect.arch.table import generated_names
from cute_dialect.arch.tcgen05 import accumulator_layout, find_tcgen05, source_layout
from cute_dialect.arch.tcgen05_descriptors import FORMATS, InstructionDescriptor, matrix_bits, matrix_of_bits
from cute_dialect.arch.tcgen05_kinds import KINDS
from cute_dialect.arch.tmem import SHAPES, strides, tmem_atom, window, words

E4M3 = "f8E4M3FN"

# --------------------------------------------------------------------------------------------- instruction descriptors


@pytest.mark.parametrize(
    ("bits", "kind", "types", "m", "n", "scale"),
    [
        (0x08400010, "f16", ("f32", "f16", "f16"), 128, 256, ""),
        (0x08400490, "f16", ("f32", "bf16", "bf16"), 128, 256, ""),
        (0x10400490, "f16", ("f32", "bf16", "bf16"), 256, 256, ""),
        (0x08200910, "tf32", ("f32", "tf32", "tf32"), 128, 128, ""),
        (0x041004A0, "i8", ("i32", "i8", "i8"), 64, 64, ""),
        (0x08C00000, "mxf8f6f4", ("f32", E4M3, E4M3), 128, 256, "f8E8M0FNU"),
        (0x08400480, "mxf4nvf4", ("f32", "f4E2M1FN", "f4E2M1FN"), 128, 256, "ue4m3"),
        (0x10A00480, "mxf4", ("f32", "f4E2M1FN", "f4E2M1FN"), 256, 128, "f8E8M0FNU"),
    ],
)
def test_known_instruction_descriptors(
    bits: int, kind: str, types: tuple[str, str, str], m: int, n: int, scale: str
) -> None:
    descriptor = InstructionDescriptor(kind, *types, m, n, scale=scale)
    assert descriptor.bits == bits
    assert InstructionDescriptor.of_bits(bits, kind) == descriptor


def test_fields_of_instruction_descriptors() -> None:
    """Each field is at its place, and decoding inverts encoding."""
    plain = {"selector": 1 << 0, "sparse": 1 << 2, "saturate": 1 << 3, "max_shift": 1 << 30}
    common = {"negate_a": 1 << 13, "negate_b": 1 << 14}
    scaled = {"sf_b": 1 << 4, "sf_a": 1 << 29, "k96": 1 << 31}
    one = InstructionDescriptor("i8", "i32", "ui8", "ui8", 16, 8)
    other = InstructionDescriptor("mxf4", "f32", "f4E2M1FN", "f4E2M1FN", 128, 64, scale="f8E8M0FNU")
    assert one.bits == 2 << 4 | 1 << 17 | 1 << 24
    for base, fields in ((one, {**plain, **common}), (other, {**common, **scaled})):
        for name, bit in fields.items():
            values = base.__class__(**{**_fields(base), name: 1})
            assert values.bits == base.bits | bit, name
            assert InstructionDescriptor.of_bits(values.bits, base.kind) == values
    for major, bit in (("major_a", 1 << 15), ("major_b", 1 << 16)):
        assert InstructionDescriptor(**{**_fields(one), major: "mn"}).bits == one.bits | bit


def _fields(descriptor: InstructionDescriptor) -> dict[str, str | int | bool]:
    return {name: getattr(descriptor, name) for name in InstructionDescriptor.__slots__}


def test_random_words_decode_or_fail() -> None:
    """Decoding a random word gives a descriptor of the same bits, or an error that names a field."""
    rng = random.Random(1)
    decoded = 0
    for _ in range(2000):
        bits, kind = rng.getrandbits(32), rng.choice(list(FORMATS))
        try:
            found = InstructionDescriptor.of_bits(bits, kind)
        except DescriptorError as e:
            assert e.mode
        else:
            decoded += 1
            assert found.bits == bits
    assert decoded > 10


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "f64"}, "kind: expected one of f16, tf32"),
        ({"a": "f32"}, "A: expected one of f16, bf16 for kind f16, got f32"),
        ({"m": 8}, "M: expected a multiple of 16 up to 496, got 8"),
        ({"n": 12}, "N: expected a multiple of 8 up to 504, got 12"),
        ({"d": "bf16"}, "D: expected f16, f32, i32, got bf16"),
        ({"scale": "ue4m3"}, "scale factors: expected none for kind f16, got ue4m3"),
        ({"selector": 4}, "sparsity selector: expected 0 to 3, got 4"),
        ({"major_b": "n"}, "major of B: expected 'k' or 'mn', got 'n'"),
    ],
)
def test_wrong_instruction_descriptors(change: dict[str, str | int], message: str) -> None:
    right: dict[str, str | int] = {"kind": "f16", "d": "f32", "a": "f16", "b": "f16", "m": 128, "n": 64}
    with pytest.raises(DescriptorError) as e:
        InstructionDescriptor(**{**right, **change})  # type: ignore[arg-type]
    assert str(e.value).startswith(message)


# -------------------------------------------------------------------------------------------------- matrix descriptors


@pytest.mark.parametrize(("width", "code"), [(0, 0), (32, 6), (64, 4), (128, 2)])
@pytest.mark.parametrize(("elt", "major"), [("bf16", "k"), ("bf16", "mn"), (E4M3, "k"), (E4M3, "mn"), ("tf32", "k")])
def test_matrix_descriptors(width: int, code: int, elt: str, major: str) -> None:
    """The descriptor reads the elements where the layout puts them, and differs from that of wgmma as stated."""
    layout = smem_tile(major, width, elt, (128, 128))
    view = derive(layout, elt, major, rules=TCGEN05)
    bits = matrix_bits(view.descriptor)
    assert bits >> 46 & 7 == 1 and bits >> 61 == code
    assert matrix_of_bits(bits, major) == view.descriptor
    hopper = view.descriptor.bits
    assert bits & (1 << 46) - 1 == hopper & (1 << 46) - 1
    start = 4 * pattern_bytes(128)
    held = view.descriptor.at(start)
    size = 2 if elt == "bf16" else 4 if elt == "tf32" else 1
    rng = random.Random(width)
    for _ in range(200):
        x, k = rng.randrange(128), rng.randrange(32 // size)
        offset = evaluate((x, k), layout)
        assert isinstance(offset, int)
        assert held.address(x, k, elt) == start + offset * size


def test_wide_swizzle() -> None:
    """MN-major 32-bit elements lie in units of 32 bytes: byte address bits 7 and 8 change bits 5 and 6."""
    plain = Layout(((32, 4), (4, 2)), ((1, 256), (32, 128)))
    view = derive(ComposedLayout(Swizzle(2, 3, 2), 0, plain), "tf32", "mn", rules=TCGEN05)
    assert view == derive(plain, "tf32", "mn", pointer_swizzle=Swizzle(2, 5, 2), rules=TCGEN05)
    assert (view.descriptor.lbo, view.descriptor.sbo, view.descriptor.atom) == (1024, 512, 32)
    bits = matrix_bits(view.descriptor)
    assert bits >> 61 == 1 and matrix_of_bits(bits, "mn") == view.descriptor
    for x in range(128):
        for k in range(8):
            byte = 4 * (x % 32 + x // 32 * 256 + k % 4 * 32 + k // 4 * 128)
            assert view.descriptor.address(x, k, "tf32") == byte ^ (byte >> 7 & 3) << 5


@pytest.mark.parametrize(
    ("layout", "elt", "major", "swizzle", "message"),
    [
        ("(32,8):(1,32)", "tf32", "mn", Swizzle(3, 4, 3), "swizzle: expected the swizzle S<2,5,2> on bytes for an mn-"),
        ("(64,16):(1,64)", "f16", "mn", Swizzle(2, 5, 2), "swizzle: expected a swizzle that keeps 16 bytes together"),
        ("(64,16):(64,1)", "f16", "k", Swizzle(2, 5, 2), "swizzle: expected a swizzle that keeps 16 bytes together"),
    ],
)
def test_swizzles_of_other_majors(layout: str, elt: str, major: str, swizzle: Swizzle, message: str) -> None:
    with pytest.raises(DescriptorError) as e:
        derive(Layout(layout), elt, major, pointer_swizzle=swizzle, rules=TCGEN05)
    assert str(e.value).startswith(message)


def test_wrong_matrix_descriptors() -> None:
    good = 0x4000404000010240
    assert matrix_of_bits(good).start == 0x2400
    for bits, message in (
        (good ^ 1 << 46, "version: expected 1, got 0, which wgmma uses"),
        (good | 1 << 47, "version: expected 1, got 3"),
        (good | 1 << 52, "bit 52: expected 0"),
        (good | 1 << 57, "matrix descriptor: reserved bit 57 is set"),
        (good | 1 << 61, "swizzle: expected one of 0, 1, 2, 4, 6, got 3"),
    ):
        with pytest.raises(DescriptorError) as e:
            matrix_of_bits(bits)
        assert str(e.value).startswith(message)


# ----------------------------------------------------------------------------------------------------------- MMA atoms


def test_names_of_atoms() -> None:
    every = list(generated_names())
    names = [n for n in every if "_SPARSE_" not in n and "_WS_" not in n]
    # Shapes: 96 if A is in shared memory, 64 in tensor memory; integers have 50 and 49.  Majors: both for 16 bits and
    # tf32; for f8f6f4 those of 8-bit elements only, 7 of the 5 types.
    f16, tf32, narrow, integer = 3 * (4 * 96 + 2 * 64), 4 * 96 + 2 * 64, 2 * (49 * 96 + 35 * 64), 8 * (4 * 50 + 2 * 49)
    assert len(names) == len(set(names)) == f16 + tf32 + narrow + integer
    # A sparse A needs one M and 16 N (one block), or one M and 8 N (a pair), for all types, sources and majors.
    sparse = 24 * (3 * 6 + 6 + 2 * (49 + 35) + 8 * 6)
    # MMAs with ws have 3 M, or one with A in tensor memory, and 3 N.
    ws = 3 * (3 * (3 * 4 + 4 + 2 * 49 + 8 * 4) + 3 * 2 + 2 + 2 * 35 + 8 * 2)
    assert len(every) == len(set(every)) == len(names) + sparse + ws
    # SS: 3 types, 4 majors, 2 M with 32 N (one block) and 2 M with 16 N (a pair).
    half = [n for n in names if "F16_SS_" in n and "F8" not in n]
    assert len(half) == 1152
    assert len([n for n in names if "TF32" in n and "_SS_" in n]) == 384
    assert len([n for n in names if "_S32" in n and "_SS_" in n and "SATURATE" not in n]) == 800
    assert ATOMS["SM100_128x256x16_F32BF16BF16_SS"] is ATOMS["SM100_128x256x16_F32BF16BF16_SS_TN"]
    with pytest.raises(AtomError, match="did you mean SM100_128x256x16_F32BF16BF16_SS_TN"):
        ATOMS["SM100_128x256x16_F32BF16BF16_SS_TNX"]


def _sample_of_names() -> list[str]:
    return random.Random(3).sample(sorted(generated_names()), 60)


@pytest.mark.parametrize(
    "names", [_sample_of_names(), pytest.param(list(generated_names()), marks=pytest.mark.slow)], ids=["some", "all"]
)
def test_traits_of_atoms(names: list[str]) -> None:
    """A pair divides the rows of A, B and D; the thread is the rank of the block."""
    for name in names:
        atom = mma_atom(name)
        m, n, k = atom.shape_mnk
        pair = atom.threads
        ws = "_WS_" in name
        assert ("_2SM_" in name) == (pair == 2) and (m in (32 if ws else 64, 64, 128) if pair == 1 else m in (128, 256))
        half = 2 if "_SPARSE_" in name else 1
        for layout, rows, columns in ((atom.layout_a, m, k // half), (atom.layout_b, n, k), (atom.layout_c, m, n)):
            own = rows // pair
            assert str(layout) == f"({pair},({own},{columns})):({own if pair == 2 else 0},(1,{rows}))"
        kind = next(x for x in KINDS if x.name == atom.emit["kind"])
        types, majors = (atom.d, atom.a, atom.b), (atom.major_a, atom.major_b)
        saturate = bool(atom.emit["saturate"])
        form = "ws" if ws else "sp" if half == 2 else ""
        same = find_tcgen05(kind.name, pair, atom.shape_mnk, types, atom.source_a, majors, saturate, form=form)
        assert same.name == name
        assert k == kind.depth * half


@pytest.mark.parametrize(
    ("kind", "group", "shape", "types", "message"),
    [
        (
            "f16",
            1,
            (64, 64, 32),
            ("f32", "f16", "f16"),
            "the shape is 64x64x32 with cta_group 1; kind f16 with a sparse",
        ),
        ("f16", 1, (128, 64, 16), ("f32", "f16", "f16"), "the shape is 128x64x16 with cta_group 1; kind f16 with a"),
        ("i8", 2, (256, 48, 64), ("i32", "i8", "i8"), "the shape is 256x48x64 with cta_group 2; kind i8 with a sparse"),
        ("tf32", 4, (128, 64, 16), ("f32", "tf32", "tf32"), "cta_group is 4; use 1, or 2 for a pair of blocks"),
        ("f16", 1, (128, 64, 32), ("f32", "f16", "bf16"), "kind f16 has no D, A, B = f32, f16, bf16"),
        ("mxf8f6f4", 1, (64, 64, 64), ("f32", E4M3, E4M3), "the shape is 64x64x64 with cta_group 1; kind mxf8f6f4"),
        ("mxf5", 1, (128, 64, 64), ("f32", E4M3, E4M3), "'mxf5' is not a kind of tcgen05.mma with block scales"),
    ],
)
def test_sparse_atoms_that_do_not_exist(
    kind: str, group: int, shape: tuple[int, int, int], types: tuple[str, str, str], message: str
) -> None:
    with pytest.raises(AtomError) as e:
        find_tcgen05(kind, group, shape, types, form="sp")
    assert str(e.value).startswith(message)


@pytest.mark.parametrize(
    ("kind", "group", "shape", "types", "more", "message"),
    [
        ("f32", 1, (128, 64, 8), ("f32", "f32", "f32"), {}, "'f32' is not a kind of tcgen05.mma; use one of f16, tf32"),
        ("f16", 1, (128, 64, 16), ("f16", "bf16", "bf16"), {}, "kind f16 has no D, A, B = f16, bf16, bf16; use A and"),
        ("f16", 3, (128, 64, 16), ("f32", "f16", "f16"), {}, "cta_group is 3; use 1, or 2 for a pair of blocks"),
        ("f16", 1, (256, 64, 16), ("f32", "f16", "f16"), {}, "M is 256; use 64 or 128 for cta_group 1"),
        ("f16", 2, (256, 24, 16), ("f32", "f16", "f16"), {}, "N is 24; use one of 16, 32, 48"),
        ("i8", 1, (128, 24, 32), ("i32", "i8", "i8"), {}, "N is 24; use one of 8, 16, 32, 48"),
        ("f16", 1, (128, 64, 8), ("f32", "f16", "f16"), {}, "K is 8; use 16 for kind f16"),
        ("f16", 1, (128, 24, 16), ("f32", "f16", "f16"), {"source_a": "tmem"}, "N is 24; use one of 16, 32, 48"),
        ("f16", 1, (128, 64, 16), ("f32", "f16", "f16"), {"source_a": "rmem"}, "A is in rmem; use smem or tmem"),
        (
            "f16",
            1,
            (128, 64, 16),
            ("f32", "f16", "f16"),
            {"source_a": "tmem", "majors": ("mn", "k")},
            "the majors of A in tensor memory and B of type f16 are mn and k; use k",
        ),
        (
            "f8f6f4",
            1,
            (128, 64, 32),
            ("f32", E4M3, "f4E2M1FN"),
            {"majors": ("k", "mn")},
            "the majors of A of type f8E4M3FN and B of type f4E2M1FN are k and mn; use k",
        ),
        ("f16", 1, (128, 64, 16), ("f32", "f16", "f16"), {"saturate": True}, "saturate needs integers, got D of type"),
    ],
)
def test_atoms_that_do_not_exist(
    kind: str,
    group: int,
    shape: tuple[int, int, int],
    types: tuple[str, str, str],
    more: dict[str, object],
    message: str,
) -> None:
    with pytest.raises(AtomError) as e:
        find_tcgen05(kind, group, shape, types, **more)  # type: ignore[arg-type]
    assert str(e.value).startswith(message)


def _atom(group: int, m: int, n: int, source: str = "smem") -> MmaAtom:
    return find_tcgen05("f16", group, (m, n, 16), ("f32", "bf16", "bf16"), source)


def _place(group: int, m: int, n: int, i: int, j: int) -> int:
    if (group, m) == (1, 64):
        return i % 16 + 32 * (i // 16) + 128 * j
    if (group, m) == (2, 128):
        return i + 64 * (j // (n // 2)) + 128 * (j % (n // 2))
    return i + 128 * j


def test_accumulators() -> None:
    """Lane and column of each element of a block's accumulator: PTX ISA, data path layouts A, B, D and F."""
    for group, m in ((1, 128), (1, 64), (2, 256), (2, 128)):
        n = 96
        layout = accumulator_layout(_atom(group, m, n))
        for i in range(m // group):
            for j in range(n):
                assert evaluate((i, j), layout) == _place(group, m, n, i, j)
    assert evaluate((20, 3), source_layout(_atom(1, 64, 32, "tmem"))) == 36 + 128 * 3
    assert evaluate((20, 3), source_layout(_atom(2, 128, 32, "tmem"))) == 20 + 128 * 3


# -------------------------------------------------------------------------------------------------- loads and stores


def position(shape: str, n: int, t: int, r: int) -> tuple[int, int]:
    """Return the lane and the column of register r of thread t: PTX ISA, tcgen05.ld, figures of the shapes."""
    if shape == "32x32b":
        return t, r
    if shape == "16x64b":
        return t // 4 + 8 * (t % 2), 2 * r + t // 2 % 2
    if shape == "16x128b":
        return t // 4 + 8 * (r % 2), 4 * (r // 2) + t % 4
    if shape == "16x256b":
        return t // 4 + 8 * (r // 2 % 2), 8 * (r // 4) + 2 * (t % 4) + r % 2
    return t % 16, r + (n if t >= 16 else 0)


@pytest.mark.parametrize("most", [4, pytest.param(128, marks=pytest.mark.slow)])
def test_words_of_threads(most: int) -> None:
    """Each register of each thread holds the word of the window that the ISA names, in all 148 atoms."""
    seen = 0
    for shape in SHAPES.values():
        for n in (i for i in shape.repetitions if i <= most):
            for direction in ("load", "store"):
                for packed in (False, True):
                    atom = tmem_atom(direction, shape.name, n, packed)
                    seen += 1
                    assert ATOMS[atom.name] is atom
                    held, whole = (atom.dst, atom.src) if direction == "load" else (atom.src, atom.dst)
                    assert str(whole) == f"(32,{1024 * n * shape.registers}):(0,1)"
                    assert held == words(shape.name, n)
            _check_words(shape.name, n, shape.registers * n)
    assert most < 128 or seen == 148


def _check_words(shape: str, n: int, registers: int) -> None:
    lane_step, column_step = strides(32)
    places = window(shape, n, 32)
    held, packed = words(shape, n), window(shape, n, 16, packed=True)
    lane_16, column_16 = strides(16)
    for t in range(32):
        for r in range(registers):
            lane, column = position(shape, n, t, r)
            bit = evaluate((t, 32 * r), held)
            assert isinstance(bit, int)
            assert evaluate(bit // 32, places) == lane * lane_step + column * column_step
            for half in range(2):
                # The lower half of two consecutive columns.
                wanted = lane * lane_16 + (2 * column + half) * column_16
                assert evaluate(bit // 16 + half, packed) == wanted


def test_copies_that_do_not_exist() -> None:
    with pytest.raises(AtomError, match=r"^8x8b is not a shape of tensor memory; use one of 16x256b"):
        tmem_atom("load", "8x8b", 1)
    with pytest.raises(AtomError, match=r"^16x256b has no x64; use one of x1, x2, x4, x8, x16, x32"):
        tmem_atom("store", "16x256b", 64)
    found = ATOMS["SM100_TMEM_LOAD_16dp32b4x_16b"]
    assert isinstance(found, CopyAtom) and found.ptx.endswith("$d, [$a], 8;")
