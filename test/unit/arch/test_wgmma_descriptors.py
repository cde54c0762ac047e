"""WGMMA descriptors: documented examples bit for bit, addresses compared with layouts, and all errors."""

from __future__ import annotations

import random
from itertools import product

import pytest

from cute_dialect.algebra.evaluation import evaluate
from cute_dialect.algebra.layout import make_layout
from cute_dialect.algebra.leaf import Dyn
from cute_dialect.algebra.tiling import tile_to_shape
from cute_dialect.algebra.values import AnyLayout, ComposedLayout, Layout, Swizzle
from cute_dialect.arch import DescriptorError, find_wgmma
from cute_dialect.arch.descriptors import (
    SWIZZLES,
    MatrixDescriptor,
    OperandView,
    choose_swizzle,
    derive,
    derive_for,
    element_swizzle,
    pattern_bytes,
    plain_atom,
    pointer_swizzle,
    smem_atom,
    smem_tile,
    swizzle_width,
)

ADDRESS = 0x2400


@pytest.mark.parametrize(
    ("major", "width", "order", "step", "bits"),
    [
        ("k", 128, None, 0, 0x4000004000010240),
        ("k", 128, None, 32, 0x4000004000010242),
        ("mn", 128, None, 0, 0x4000008000400240),
        ("k", 0, None, 0, 0x0000000800800240),
    ],
)
def test_known_descriptors(major: str, width: int, order: tuple[int, int] | None, step: int, bits: int) -> None:
    view = derive(smem_tile(major, width, "f16", (128, 64), order), "f16")
    assert view.descriptor.at(ADDRESS + step, pattern=ADDRESS).bits == bits
    assert MatrixDescriptor.of_bits(bits, major).bits == bits


@pytest.mark.parametrize(
    ("major", "width", "order", "text"),
    [
        ("k", 128, None, "((8,16),(64,1)):((64,512),(1,0))"),
        ("k", 0, None, "((8,16),(8,8)):((8,64),(1,1024))"),
        ("mn", 128, None, "((64,2),(8,8)):((1,512),(64,1024))"),
        ("mn", 128, (1, 0), "((64,2),(8,8)):((1,4096),(64,512))"),
    ],
)
def test_known_tiles(major: str, width: int, order: tuple[int, int] | None, text: str) -> None:
    tile = smem_tile(major, width, "f16", (128, 64), order)
    assert (tile.outer if isinstance(tile, ComposedLayout) else tile) == Layout(text)


def test_the_two_forms_of_the_swizzle_agree() -> None:
    for elt, size in (("f8E4M3FN", 1), ("f16", 2), ("tf32", 4)):
        for width in SWIZZLES:
            by_element, by_byte = element_swizzle(width, elt), pointer_swizzle(width)
            for offset in range(4 * 1024 // size):
                assert by_element(offset) * size == by_byte(offset * size)  # type: ignore[operator]
            assert swizzle_width(by_element, elt) == swizzle_width(by_byte) == width


def test_swizzled_rows_fall_into_different_banks() -> None:
    # The 8 rows of an 8x8 matrix, 16 bytes each, cover all 32 banks of 4 bytes.
    tile = smem_tile("k", 128, "f16", (128, 64))
    for row, k in product(range(0, 128, 8), range(0, 64, 8)):
        groups = {evaluate((row + r, k), tile) * 2 // 16 % 8 for r in range(8)}  # type: ignore[operator]
        assert groups == set(range(8))


def check_addresses(view: OperandView, tile: AnyLayout, elt: str, x: int, pointer: Swizzle | None = None) -> None:
    """Check that the descriptor addresses each element of each instruction's tile where the layout places it."""
    size = {"f8E4M3FN": 1, "i8": 1, "f16": 2, "bf16": 2, "tf32": 4}[elt]
    depth = 32 // size
    plain = tile.outer if isinstance(tile, ComposedLayout) else tile
    x_size, k_size = (int(_size(m)) for m in plain)
    for bx, bk in product(range(x_size // x), range(k_size // depth)):
        step = evaluate((bx, bk), view.steps)
        first = view.descriptor.at(ADDRESS + 16 * step, pattern=ADDRESS)  # type: ignore[operator]
        for i, j in product(range(x), range(depth)):
            expected = evaluate((bx * x + i, bk * depth + j), tile) * size  # type: ignore[operator]
            if pointer is not None:
                expected = pointer(expected)
            assert first.address(i, j, elt) - ADDRESS == expected, (bx, bk, i, j)


def _size(layout: Layout) -> int:
    from cute_dialect.algebra.evaluation import size

    return size(layout)  # type: ignore[return-value]


CASES = [
    (major, width, elt, order)
    for elt in ("f16", "tf32", "f8E4M3FN")
    for major in (("k", "mn") if elt == "f16" else ("k",))
    for width in SWIZZLES
    for order in (None, (1, 0))
]


@pytest.mark.sample(pairs=True)
@pytest.mark.parametrize(("major", "width", "elt", "order"), CASES)
def test_addresses(major: str, width: int, elt: str, order: tuple[int, int] | None) -> None:
    shape = (128, {"f16": 64, "tf32": 32, "f8E4M3FN": 128}[elt])
    tile = smem_tile(major, width, elt, shape, order)
    for x in (64, 128):
        check_addresses(derive(tile, elt, major, x=x), tile, elt, x)


@pytest.mark.parametrize("major", ["k", "mn"])
def test_swizzle_on_the_pointer(major: str) -> None:
    for width in (32, 64, 128):
        plain = tile_to_shape(plain_atom(major, width, "bf16"), (64, 64))
        view = derive(plain, "bf16", pointer_swizzle=pointer_swizzle(width))
        assert view == derive(smem_tile(major, width, "bf16", (64, 64)), "bf16")
        check_addresses(view, plain, "bf16", 64, pointer_swizzle(width))


def test_one_group_of_rows() -> None:
    # With N = 8 there is no second group, so the stride byte offset is that of a compact tile.
    for major, width in (("k", 0), ("k", 128), ("mn", 0)):
        tile = smem_tile(major, width, "f16", (8, 64))
        view = derive(tile, "f16")
        check_addresses(view, tile, "f16", 8)
        assert view.descriptor.sbo == (128 if width == 0 else 1024)


def test_padded_and_split_tiles() -> None:
    # A tile with padding between groups of rows, and a tile with interleaved stages.
    padded = Layout("((8,8),(8,8)):((8,80),(1,640))")
    check_addresses(derive(padded, "f16"), padded, "f16", 64)
    staged = ComposedLayout(Swizzle(3, 3, 3), 0, Layout("((8,8),64):((64,2048),1)"))
    view = derive(staged, "f16")
    assert view.descriptor.sbo == 4096
    check_addresses(view, staged, "f16", 64)


def random_layout(rng: random.Random) -> Layout:
    """Return a random (64, 32) layout, two modes per dimension, with extents and strides close to canonical ones."""
    unit = rng.choice([8, 16, 32, 64])
    if rng.random() < 0.5:
        x = ((8, 8), (unit, rng.choice([8 * unit, 16 * unit, 64, 512])))
        k = ((8, 4), (1, rng.choice([8, 16, 64, 512, 1024])))
    else:
        a = rng.choice([8, 16, 32, 64])
        x = ((a, 64 // a), (1, rng.choice([a, 8 * a, 64, 512])))
        k = ((8, 4), (rng.choice([a, 8, 64]), rng.choice([64, 128, 512, 1024])))
    return make_layout(Layout(*x), Layout(*k))


@pytest.mark.slow
def test_accepted_layouts_have_correct_descriptors() -> None:
    rng = random.Random(7)
    accepted = 0
    for _ in range(400):
        layout, width = random_layout(rng), rng.choice(SWIZZLES)
        try:
            view = derive(layout, "f16", pointer_swizzle=pointer_swizzle(width))
        except DescriptorError:
            continue
        accepted += 1
        check_addresses(view, layout, "f16", 64, pointer_swizzle(width))
    assert 20 < accepted < 300


@pytest.mark.parametrize(
    ("layout", "elt", "options", "message"),
    [
        (Layout("(64,16):(1,64)"), "f8E4M3FN", {"major": "mn"}, "major: expected a k-major operand of 8-bit elements"),
        (Layout("(64,16):(1,64)"), "tf32", {}, "major: expected a k-major operand of 32-bit elements"),
        (Layout("(64,16):(16,1)"), "f64", {}, "element: expected elements of 8, 16 or 32 bits, got 64"),
        (Layout("(64,16):(2,128)"), "f16", {}, "major: expected a contiguous mode"),
        (Layout("(64,64):(64,1)"), "f16", {}, "X[:8]: expected stride 16 bytes without a swizzle, got 128"),
        (
            Layout("(64,64):(64,1)"),
            "f16",
            {"pointer_swizzle": Swizzle(2, 4, 3)},
            "X[:8]: expected stride 64 bytes for a 64-byte swizzle, got 128",
        ),
        (
            Layout("((8,8),(8,8)):((64,4096),(1,8192))"),
            "f16",
            {"pointer_swizzle": Swizzle(3, 4, 3)},
            "K[:2]: expected stride 16 bytes for a 128-byte swizzle, got 16384",
        ),
        (Layout("(64,24):(24,1)"), "f16", {}, "K: expected a multiple of 16 elements (32 bytes), got 24"),
        (
            Layout("(60,16):(16,1)"),
            "f16",
            {},
            "X: expected a tile extent that is a multiple of 8 and divides 60, got 60",
        ),
        (
            Layout("(128,16):(16,1)"),
            "f16",
            {"x": 96},
            "X: expected a tile extent that is a multiple of 8 and divides 128, got 96",
        ),
        (Layout("(64,(4,4)):(16,(1,8))"), "f16", {}, "K: expected runs of 8 contiguous elements (16 bytes)"),
        (
            Layout("(64,16):(20,1)"),
            "f16",
            {},
            "X: expected strides that are multiples of 8 elements (16 bytes), got 20",
        ),
        (
            Layout("((8,2,4),(8,2)):((8,64,1024),(1,512))"),
            "f16",
            {},
            "X[8:]: expected one stride, got (2,4):(8,128) in units of 16 bytes",
        ),
        (
            Layout("((8,4,2),(8,2)):((1,64,1024),(8,512))"),
            "f16",
            {"major": "mn"},
            "X[1:]: expected one stride",
        ),
        (
            Layout("(64,(8,2)):(1,(64,512))"),
            "f16",
            {"pointer_swizzle": Swizzle(2, 4, 3)},
            "K[:8]: expected stride 64 bytes for a 64-byte swizzle, got 128",
        ),
        (
            Layout("((8,8),(8,2)):((1,512),(64,4096))"),
            "f16",
            {"pointer_swizzle": Swizzle(3, 4, 3)},
            "X[:8]: expected stride 16 bytes for a 128-byte swizzle, got 1024",
        ),
        (Layout("((8,8),(8,2)):((8,64),(1,1048576))"), "f16", {}, "LBO: expected 0 to 262128 bytes"),
        (Layout("((8,8),(8,2)):((8,-64),(1,512))"), "f16", {}, "SBO: expected 0 to 262128 bytes, got -128"),
        (Layout("64:1"), "f16", {}, "expected a layout of rank 2 (X,K), got 64:1"),
        (Layout((64, Dyn()), (16, 1)), "f16", {}, "expected a static layout, got (64,?):(16,1)"),
        (Layout("(64,16):(1@0,1@1)"), "f16", {}, "expected integer strides"),
        (Layout("(64,16):(16,1)"), "f16", {"major": "row"}, "major: expected 'k' or 'mn', got 'row'"),
        (ComposedLayout(Swizzle(3, 4, 3), 0, Layout("(64,64):(64,1)")), "f16", {}, "swizzle: expected one of S<0,4,3>"),
        (ComposedLayout(Swizzle(3, 3, 3), 8, Layout("(64,64):(64,1)")), "f16", {}, "at offset 0, got offset 8"),
        (
            ComposedLayout(Swizzle(3, 3, 3), 0, Layout("(64,64):(64,1)")),
            "f16",
            {"pointer_swizzle": Swizzle(3, 4, 3)},
            "expected one swizzle",
        ),
        (ComposedLayout(Layout("4096:1"), 0, Layout("(64,64):(64,1)")), "f16", {}, "expected a swizzled or plain"),
    ],
)
def test_refusals(layout: AnyLayout, elt: str, options: dict[str, object], message: str) -> None:
    with pytest.raises(DescriptorError) as error:
        derive(layout, elt, **options)  # type: ignore[arg-type]
    assert message in str(error.value)


def test_derive_for_an_atom() -> None:
    atom = find_wgmma(128, ("f32", "bf16", "bf16"), majors=("k", "mn"))
    view = derive_for(atom, "A", smem_tile("k", 128, "bf16", (128, 64)))
    assert view.steps == Layout("(2,4):(512,2)")
    with pytest.raises(DescriptorError, match="expected runs"):
        derive_for(atom, "B", smem_tile("k", 128, "bf16", (128, 64)))
    with pytest.raises(DescriptorError, match="A: expected an atom that reads A from shared memory"):
        derive_for(find_wgmma(128, ("f32", "bf16", "bf16"), "rmem"), "A", smem_tile("k", 128, "bf16", (64, 64)))


def test_base_offset() -> None:
    descriptor = derive(smem_tile("k", 128, "f16", (64, 64)), "f16").descriptor
    assert descriptor.alignment == 1024
    assert descriptor.at(0x2400).base_offset == 0
    assert [descriptor.at(0x2400 + 128 * i).base_offset for i in range(8)] == list(range(8))
    assert descriptor.at(0x2400 + 96, pattern=0x2400).base_offset == 0


@pytest.mark.parametrize(
    ("tile", "major", "elt", "width", "reason"),
    [
        ((128, 64), "k", "f16", 128, "rows of 128 bytes along K divide 128"),
        ((128, 96), "k", "f16", 64, "rows of 64 bytes along K divide 192; 128 does not"),
        ((128, 48), "k", "f16", 32, "rows of 32 bytes along K divide 96; 64 and 128 do not"),
        ((128, 24), "k", "f16", 0, "rows of 16 bytes along K divide 48; 32, 64 and 128 do not"),
        ((96, 64), "mn", "bf16", 64, "rows of 64 bytes along X divide 192; 128 does not"),
        ((64, 128), "k", "f8E5M2", 128, "rows of 128 bytes along K divide 128"),
    ],
)
def test_choose_swizzle(tile: tuple[int, int], major: str, elt: str, width: int, reason: str) -> None:
    assert choose_swizzle(tile, major, elt) == (width, reason)
    view = (
        derive(smem_tile(major, width, elt, tile), elt, major)
        if tile[1] % (256 // (8 if "8" in elt else 16)) == 0
        else None
    )
    assert view is None or view.descriptor.width == width


@pytest.mark.parametrize(
    ("tile", "major", "elt", "message"),
    [
        ((128, 4), "k", "f16", "K: expected a multiple of 16 bytes"),
        ((12, 64), "k", "f16", "X: expected a multiple of 8 rows, got 12"),
        ((128, 64), "mn", "i8", "major: expected a k-major tile"),
        ((128, 64), "col", "i8", "major: expected 'k' or 'mn', got 'col'"),
    ],
)
def test_choose_swizzle_refuses(tile: tuple[int, int], major: str, elt: str, message: str) -> None:
    with pytest.raises(DescriptorError) as error:
        choose_swizzle(tile, major, elt)
    assert message in str(error.value)


def test_layout_atoms() -> None:
    for elt, per_unit in (("f8E4M3FN", 16), ("f16", 8), ("tf32", 4)):
        for width, units in zip(SWIZZLES, (1, 2, 4, 8)):
            row = per_unit * units
            assert plain_atom("k", width, elt) == Layout((8, row), (row, 1))
            assert plain_atom("mn", width, elt) == Layout((row, 8), (1, row))
            assert pattern_bytes(width) == (16, 256, 512, 1024)[SWIZZLES.index(width)]
    assert evaluate((3, 10), smem_atom("k", 128, "f16")) == 210
    assert evaluate((9, 16), smem_tile("k", 128, "f16", (128, 64))) * 2 == 1200  # type: ignore[operator]
    with pytest.raises(DescriptorError, match="K: expected a multiple of 64"):
        smem_tile("k", 128, "f16", (128, 96))
    with pytest.raises(DescriptorError, match="swizzle: expected a swizzle of 0, 32, 64 or 128 bytes, got 16"):
        pointer_swizzle(16)
    with pytest.raises(DescriptorError, match="swizzle: expected one of"):
        swizzle_width(Swizzle(3, 3, 3))
