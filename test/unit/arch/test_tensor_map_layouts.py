"""Tensor maps derived from layouts: a simulated TMA puts each element where the shared-memory layout places it."""

from __future__ import annotations

import random
from itertools import product

import pytest

from cute_dialect.algebra.evaluation import evaluate, size
from cute_dialect.algebra.leaf import Dyn, divisibility
from cute_dialect.algebra.text import parse_layout
from cute_dialect.algebra.trees import tree_leaves
from cute_dialect.algebra.values import AnyLayout, Basis, ComposedLayout, Layout, Swizzle, raw_layout
from cute_dialect.arch import TmaError
from cute_dialect.arch.descriptors import pointer_swizzle, smem_tile
from cute_dialect.arch.tensor_map import Im2colMapSpec, TensorDim, TensorMapSpec, im2col_for_convolution
from cute_dialect.arch.tma import derive, scalars


def tma_coordinates(layout: Layout, coord: object, rank: int) -> list[int]:
    """Convert a value of a layout with basis strides to ``rank`` TMA coordinates."""
    out = [0] * rank

    def walk(value: object, path: tuple[int, ...]) -> None:
        if isinstance(value, tuple):
            for i, v in enumerate(value):
                walk(v, (*path, i))
        elif value:
            assert len(path) == 1
            out[path[0]] += value  # type: ignore[operator]

    walk(evaluate(coord, layout), ())  # type: ignore[arg-type]
    return out


def load_box(spec: TensorMapSpec, memory: dict[int, int], at: list[int], start: int) -> dict[int, int]:
    """Simulate one TMA load: map each byte address in shared memory to its element, -1 outside the tensor."""
    size_ = spec.element_bits // 8
    result: dict[int, int] = {}
    counts = [d.count for d in spec.dims]
    for n, point in enumerate(product(*(range(c) for c in reversed(counts)))):
        inside, offset = True, 0
        for d, base, i in zip(spec.dims, at, reversed(point)):
            x = base + i * d.element_stride
            inside &= 0 <= x < d.extent  # type: ignore[operator]
            offset += x * d.stride  # type: ignore[operator]
        address = start + n * size_
        if spec.swizzle:
            address ^= (address >> 7 & spec.swizzle // 16 - 1) << 4
        result[address] = memory[offset] if inside else -1
    return result


def check(
    gmem: Layout,
    smem: AnyLayout,
    tile: tuple[int, ...],
    elt: str,
    coords: list[tuple[int, ...]],
    pointer: Swizzle | None = None,
    **options: object,
) -> TensorMapSpec:
    """Simulate the loads of the tiles at ``coords``, including all CTAs of a multicast, and check every address."""
    spec = derive(gmem, smem, tile, elt, pointer_swizzle=pointer, **options)  # type: ignore[arg-type]
    memory = {i: i for i in range(int(evaluate(size(gmem) - 1, gmem)) + 1)}  # type: ignore[operator,arg-type]
    sizes = [int(size(m)) for m in gmem]  # type: ignore[arg-type]
    for tile_coord in coords:
        origin = tuple(c * t for c, t in zip(tile_coord, tile))
        first = tma_coordinates(spec.coordinates, origin, spec.rank)
        got: dict[int, int] = {}
        for box in range(spec.boxes):
            step = tma_coordinates(spec.steps, box, spec.rank)
            start = evaluate(box, spec.offsets) * (spec.element_bits // 8)  # type: ignore[operator]
            for cta in range(spec.multicast):
                part = tma_coordinates(spec.slices, cta, spec.rank) if spec.multicast > 1 else [0] * spec.rank
                at = [sum(x) for x in zip(first, step, part)]
                got |= load_box(spec, memory, at, start + cta * spec.box_bytes)
        assert len(got) == spec.boxes * spec.multicast * spec.box_elements
        for point in product(*(range(t) for t in tile)):
            element = tuple(o + p for o, p in zip(origin, point))
            inside = all(e < s for e, s in zip(element, sizes))
            address = evaluate(point, smem) * (spec.element_bits // 8)  # type: ignore[operator]
            if pointer is not None:
                address = pointer(address)
            assert got[address] == (evaluate(element, gmem) if inside else -1), (tile_coord, point)
    return spec


def test_worked_example() -> None:
    gmem = Layout("(4096,1024):(1024,1)")
    spec = derive(gmem, smem_tile("k", 128, "f16", (128, 64)), (128, 64), "f16")
    assert (spec.extents, spec.strides, spec.box, spec.element_strides) == ((1024, 4096), (2048,), (64, 128), (1, 1))
    assert spec.box_bytes == 16384 and spec.boxes == 1 and spec.swizzle == 128 and spec.smem_alignment == 1024
    assert str(spec.coordinates) == "(4096,1024):(1@1,1@0)"
    assert spec.data_type == "FLOAT16" and spec.unproven == ()


def test_a_mode_of_stride_0_has_no_dimension() -> None:
    gmem = parse_layout("(256,64,((4,3),2)):(64,1,((0,16384),49152))")  # Four query heads share one key head.
    spec = derive(gmem, parse_layout("(64,64,1):(64,1,0)"), (64, 64, 1), "f16")
    assert (spec.extents, spec.strides) == ((64, 256, 3, 2), (128, 32768, 98304))
    assert str(spec.coordinates) == "(256,64,((4,3),2)):(1@1,1@0,((0@0,1@2),1@3))"
    dynamic = derive(
        parse_layout("(?,64,((?,?),?)):(64,1,((0,?{div=8}),?{div=8}))"), parse_layout("(64,64):(64,1)"), (64, 64), "f16"
    )
    assert dynamic.rank == 4 and dynamic.bind([256, 4, 3, 2, 16384, 49152]).extents == (64, 256, 3, 2)


def test_dynamic_tensor() -> None:
    gmem = parse_layout("(?,?):(?{div=8},1)")
    spec = derive(gmem, smem_tile("k", 128, "f16", (128, 64)), (128, 64), "f16")
    assert spec.box == (64, 128)
    assert str(spec.coordinates) == "(?,?):(1@1,1@0)"
    assert len(scalars(gmem)) == 3
    assert spec.unproven == (
        "dimension 0: the extent is 1 to 2^32",
        "dimension 1: the extent is 1 to 2^32",
        "dimension 1: the stride is positive and below 2^40 bytes",
    )
    bound = spec.bind([300, 200, 208], address=0x7F0000000010)
    assert bound.extents == (200, 300) and bound.strides == (416,) and bound.unproven == ()
    assert bound.coordinates == Layout((300, 200), (Basis(1, (1,)), Basis(1, (0,))))
    for values, address, message in (
        ([300, 200, 204], None, "dimension 1: expected a stride that is a positive multiple of 16 bytes, got 408 (204"),
        ([300, 0, 208], None, "dimension 0: expected 1 to 4294967296 elements, got 0"),
        ([300, 200, 1 << 39], None, "dimension 1: expected a stride below 2^40 bytes"),
        ([300, 200], None, "gmem: expected 3 values"),
        ([300, 200, 208], 0x18, "address: expected an address aligned to 16 bytes, got 0x18"),
    ):
        with pytest.raises(TmaError) as error:
            spec.bind(values, address)
        assert message in str(error.value)
    loose = derive(parse_layout("(?,?):(?,1)"), Layout("(128,64):(64,1)"), (128, 64), "f16")
    assert "dimension 1: the stride is a multiple of 16 bytes" in loose.unproven


@pytest.mark.sample(pairs=True)
@pytest.mark.parametrize("elt", ["f8E4M3FN", "f16", "tf32"])
@pytest.mark.parametrize("width", [0, 32, 64, 128])
@pytest.mark.parametrize("major", ["k", "mn"])
def test_simulated_loads(elt: str, width: int, major: str) -> None:
    unit = {"f8E4M3FN": 16, "f16": 8, "tf32": 4}[elt]
    gmem = Layout((100, 160), (160, 1)) if major == "k" else Layout((100, 160), (1, 112))
    tile = (64, 8 * unit) if major == "k" else (8 * unit, 32)
    for order in (None, (1, 0)):
        spec = check(gmem, smem_tile(major, width, elt, tile, order), tile, elt, [(0, 0), (1, 1)])
        assert spec.box[0] == (width or 16) // (16 // unit)
        assert spec.boxes * spec.box_elements == tile[0] * tile[1]


def test_swizzle_on_the_pointer() -> None:
    plain = Layout("(32,64):(64,1)")
    check(Layout("(64,128):(128,1)"), plain, (32, 64), "bf16", [(0, 0), (1, 1)], pointer_swizzle(128))


def test_more_modes() -> None:
    # A batch mode, nested modes, a tile without one of the modes, and modes of extent 1.
    batch = Layout((64, 48, 3), (48, 1, 64 * 48))
    spec = check(batch, Layout((32, 16, 1), (16, 1, 0)), (32, 16, 1), "f32", [(0, 0, 0), (1, 2, 2)])
    assert spec.box == (16, 32, 1) and str(spec.coordinates) == "(64,48,3):(1@1,1@0,1@2)"
    nested = Layout(((8, 6), (16, 4)), ((64, 512), (1, 16)))
    spec = check(nested, Layout((16, 16), (16, 1)), (16, 16), "f32", [(0, 0), (2, 3)])
    assert spec.box == (16, 8, 2, 1) and spec.extents == (16, 8, 6, 4)
    single = Layout((64, 48, 1), (48, 1, 5))
    spec = check(single, Layout((32, 16, 1), (16, 1, 0)), (32, 16, 1), "f32", [(0, 0, 0)])
    assert spec.rank == 2


def test_more_than_five_modes_share_a_dimension() -> None:
    gmem = Layout((8, 16, 2, 3, 2, 2, 3), (1, 8, 128, 256, 768, 1536, 3072))
    tile = (8, 16, 1, 1, 1, 1, 1)
    coords = [(0, 0, 1, 2, 1, 1, 2), (0, 0, 0, 1, 1, 0, 1)]
    spec = check(gmem, Layout(tile), tile, "f16", coords)
    assert spec.rank == 5 and spec.box == (8, 16, 1, 1, 1)
    assert spec.dims[4].modes == ((4,), (5,), (6,)) and spec.strides[3] == 2 * 768
    with pytest.raises(TmaError, match="share one dimension because a tensor map has at most 5"):
        derive(Layout((8, 16, 2, 3, 2, 2, 3), (1, 8, 128, 256, 768, 1536, Dyn(div=8))), Layout(tile), tile, "f16")


def test_long_boxes_are_cut() -> None:
    spec = check(Layout((512, 32), (32, 1)), Layout((512, 32), (32, 1)), (512, 32), "f16", [(0, 0)])
    assert spec.box == (32, 256) and spec.boxes == 2
    spec = check(Layout((4, 1024), (1024, 1)), Layout((4, 512), (512, 1)), (4, 512), "f16", [(0, 1)])
    assert spec.box == (256, 1) and spec.boxes == 8


def test_gaps_take_more_boxes() -> None:
    # Groups of 8 rows lie 4 KiB apart, as in two interleaved stages.
    spec = check(Layout((64, 64), (64, 1)), Layout("((8,4),64):((64,2048),1)"), (32, 64), "f16", [(0, 0), (1, 0)])
    assert spec.box == (64, 8) and spec.boxes == 4 and str(spec.offsets) == "(4):(2048)"


def test_element_strides() -> None:
    # The tile takes every second row of the tensor.
    gmem = Layout((64, 32), (32, 1))
    spec = derive(gmem, Layout((16, 32), (32, 1)), (Layout((16,), (2,)), Layout(32)), "f32")
    assert spec.box == (32, 32) and spec.element_strides == (1, 2) and spec.box_bytes == 16 * 32 * 4
    memory = {i: i for i in range(64 * 32)}
    got = load_box(spec, memory, [0, 8], 0)
    assert [got[4 * 32 * r] for r in range(16)] == [32 * (8 + 2 * r) for r in range(16)]


@pytest.mark.parametrize(("ctas", "box", "slices"), [(2, (64, 64), "2:64@1"), (4, (64, 32), "4:32@1")])
def test_multicast(ctas: int, box: tuple[int, ...], slices: str) -> None:
    gmem = Layout("(256,128):(128,1)")
    spec = check(gmem, smem_tile("k", 128, "f16", (128, 64)), (128, 64), "f16", [(1, 1)], multicast=ctas)
    assert spec.box == box and str(spec.slices) == slices


def test_multicast_over_two_dimensions() -> None:
    spec = check(Layout("(32,64):(64,1)"), Layout("(2,64):(64,1)"), (2, 64), "f32", [(3, 0)], multicast=4)
    assert spec.box == (32, 1) and str(spec.slices) == "(2,2):(32@0,1@1)"


def test_random_tiles() -> None:
    rng = random.Random(3)
    for _ in range(60):
        rows, columns = rng.choice([8, 16, 32]), rng.choice([16, 32, 64])
        k_major = rng.random() < 0.5
        gmem = Layout((80, 96), (96, 1) if k_major else (1, 80))
        inner = rng.choice([8, 16])
        if k_major:
            smem = Layout((rows, (inner, columns // inner)), (inner, (1, rows * inner)))
            if rng.random() < 0.3:
                smem = Layout((rows, columns), (columns, 1))
        else:
            smem = Layout(((8, rows // 8), columns), ((1, 8 * columns), 8))
        width = rng.choice([0, 32])
        swizzled = width and (inner == 16 if k_major else False) and type(smem.shape[1]) is tuple  # type: ignore[index]
        check(gmem, smem, (rows, columns), "bf16", [(0, 0), (1, 1)], pointer_swizzle(32) if swizzled else None)


GMEM = Layout("(256,128):(128,1)")


@pytest.mark.parametrize(
    ("gmem", "smem", "tile", "elt", "options", "message"),
    [
        (
            GMEM,
            Layout("(64,64):(1,64)"),
            (64, 64),
            "f16",
            {},
            "dimension 0: expected stride 1 in global memory, got 128 along mode 0",
        ),
        (
            GMEM,
            Layout("(64,4):(4,1)"),
            (64, 4),
            "f16",
            {},
            "dimension 0: expected a box whose rows are a multiple of 16 bytes, got 8",
        ),
        (
            GMEM,
            Layout("(64,64):(64,1)"),
            (64, 64),
            "f16",
            {"pointer_swizzle": Swizzle(2, 4, 3)},
            "dimension 0: expected rows of at most 64 bytes, the width of the swizzle, got 128",
        ),
        (
            Layout("(256,100):(100,1)"),
            Layout("(64,16):(16,1)"),
            (64, 16),
            "f16",
            {},
            "dimension 1: expected a stride that is a positive multiple of 16 bytes, got 200 (100 elements)",
        ),
        (
            Layout("(256,128):(0,1)"),
            Layout("(64,16):(16,1)"),
            (64, 16),
            "f16",
            {},
            "dimension 1: expected a stride that is a positive",
        ),
        (
            Layout((4, 16), (1 << 38, 1)),
            Layout("(4,16):(16,1)"),
            (4, 16),
            "f32",
            {},
            "dimension 1: expected a stride below 2^40 bytes, got",
        ),
        (
            GMEM,
            Layout("(64,64):(64,1)"),
            (64, 32),
            "f16",
            {},
            "mode 1: 64:1 has extent 64, but the tile has 32",
        ),
        (
            GMEM,
            Layout("(64,64,3):(64,1,4096)"),
            (64, 64),
            "f16",
            {},
            "smem: (64,64,3):(64,1,4096) has 3 modes, but the tile has 2",
        ),
        (GMEM, Layout("(64,64):(0,1)"), (64, 64), "f16", {}, "mode 0: strides in shared memory must be positive"),
        (
            GMEM,
            Layout("(64,64):(32,1)"),
            (64, 64),
            "f16",
            {},
            "smem: the elements of",
        ),
        (
            GMEM,
            Layout("(64,64):(128,2)"),
            (64, 64),
            "f16",
            {},
            "smem: expected the layout in shared memory to begin with stride 1",
        ),
        (
            GMEM,
            Layout("(1,1):(0,0)"),
            (1, 1),
            "f16",
            {},
            "stride 1 along a mode of the tensor, got a tile of one element",
        ),
        (GMEM, Layout((64, Dyn()), (64, 1)), (64, 64), "f16", {}, "smem: expected a static layout"),
        (
            GMEM,
            ComposedLayout(Swizzle(3, 4, 3), 0, Layout("(64,64):(64,1)")),
            (64, 64),
            "f16",
            {},
            "smem: swizzle: expected one of",
        ),
        (
            GMEM,
            ComposedLayout(Swizzle(3, 3, 3), 64, Layout("(64,64):(64,1)")),
            (64, 64),
            "f16",
            {},
            "smem: expected a plain layout or a swizzled one at offset 0",
        ),
        (
            GMEM,
            ComposedLayout(Swizzle(3, 3, 3), 0, Layout("(64,64):(64,1)")),
            (64, 64),
            "f16",
            {"pointer_swizzle": Swizzle(3, 4, 3)},
            "smem: expected one swizzle",
        ),
        (
            GMEM,
            Layout("(64,64):(64,1)"),
            (64, 64),
            "i4",
            {},
            "element: expected elements of whole bytes, got i4: recast the tensor to ui8",
        ),
        (
            GMEM,
            Layout("(64,64):(64,1)"),
            (64, 64),
            "f16",
            {"multicast": 3},
            "multicast: expected a number of CTAs that divides the box (64, 64)",
        ),
        (
            GMEM,
            Layout("(64,64):(64,1)"),
            (64, 64),
            "f16",
            {"multicast": 0},
            "multicast: expected a positive number of CTAs",
        ),
        (
            GMEM,
            Layout("(64,16):(16,1)"),
            (64, 16),
            "f16",
            {"multicast": 64},
            "box: expected boxes of a multiple of 128 bytes",
        ),
        (
            GMEM,
            Layout("(64,64):(64,1)"),
            (64, 64),
            "f16",
            {"interleave": 16},
            "rank: expected at least 3 dimensions with interleave, got 2",
        ),
        (
            GMEM,
            Layout("(64,64):(64,1)"),
            (64, 64),
            "f16",
            {"interleave": 8},
            "interleave: expected one of 0, 16, 32, got 8",
        ),
        (
            GMEM,
            Layout("(64,64):(64,1)"),
            (64, 64),
            "f16",
            {"interleave": 32},
            "swizzle: expected a swizzle of 32 bytes with interleave 32, got 0",
        ),
        (GMEM, Layout("(64,64,2):(64,1,4096)"), (64, 64, 2), "f16", {}, "tile: the tile (64, 64, 2) has rank 3"),
        (
            GMEM,
            ComposedLayout(Swizzle(3, 3, 3), 0, Layout("(64,32):(32,1)")),
            (64, 32),
            "f16",
            {},
            "dimension 0: expected rows of 128 bytes, the width of the swizzle, got 64: TMA stores each row at ",
        ),
        (
            parse_layout("((?,?),64):((64,?),1)"),
            Layout("(16,64):(64,1)"),
            (16, 64),
            "f16",
            {},
            "mode 0: the extents of the tile in the tensor must be static",
        ),
        (
            Layout((2, 2, 2, 2, 16, 4), (64, 128, 256, 512, 1, 1024)),
            Layout((2, 2, 2, 2, 16, 1), (16, 32, 64, 128, 1, 0)),
            (2, 2, 2, 2, 16, 1),
            "f16",
            {},
            "box: expected a box of at most 4 dimensions, as the tensor has other modes, got 5",
        ),
        (
            Layout("128:1"),
            Layout("(64):(1)"),
            (64,),
            "f16",
            {},
            "gmem: the shape of the global layout must be a tuple of modes, got 128:1",
        ),
        (
            Layout((8, 8), (Dyn(), Dyn())),
            Layout("(8,8):(8,1)"),
            (8, 8),
            "f16",
            {},
            "dimension 0: expected stride 1 in global memory, got ?",
        ),
    ],
)
def test_refusals(
    gmem: Layout, smem: AnyLayout, tile: tuple[int, ...], elt: str, options: dict[str, object], message: str
) -> None:
    with pytest.raises(TmaError) as error:
        derive(gmem, smem, tile, elt, **options)  # type: ignore[arg-type]
    assert message in str(error.value)


UNPACKS = {"element": "f4E2M1FN", "unpack": 16}


@pytest.mark.parametrize(
    ("dims", "options", "message"),
    [
        ([(64, 1, 16)] * 0, {}, "rank: expected 1 to 5 dimensions, got 0"),
        ([(64, 1, 16), *[(2, 16, 1)] * 5], {}, "rank: expected 1 to 5 dimensions, got 6"),
        ([(64, 1, 512)], {}, "dimension 0: expected 1 to 256 elements in the box, got 512"),
        ([((1 << 32) + 1, 1, 16)], {}, "dimension 0: expected 1 to 4294967296 elements, got 4294967297"),
        ([(64, 2, 16)], {}, "dimension 0: expected stride 1, contiguous elements, got 2"),
        ([(64, 1, 16, 2)], {}, "dimension 0: expected element stride 1 in the contiguous dimension, got 2"),
        ([(64, 1, 16), (64, 64, 16, 9)], {}, "dimension 1: expected 1 to 8 as element stride, got 9"),
        (
            [(16, 1, 16), (4, 24, 1), (4, 96, 1)],
            {"interleave": 32, "swizzle": 32},
            "dimension 1: expected a stride that is a positive multiple of 32 bytes, got 48",
        ),
        (
            [(16, 1, 16), (4, 16, 1), (4, 64, 1)],
            {"interleave": 16},
            "dimension 0: expected rows of 16 bytes, the interleave, got 32",
        ),
        ([(16, 1, 16)], {"swizzle": 16}, "swizzle: expected one of 0, 32, 64, 128, got 16"),
        ([(16, 1, 16)], {"element": "b1"}, "element: expected elements of whole bytes"),
        ([(64, 1, 64)], {"l2_promotion": 32}, "L2 promotion: expected one of 0, 64, 128, 256, got 32"),
        ([(64, 1, 64)], {"oob_fill": "one"}, "out-of-bounds fill: expected one of zero, nan, got one"),
        (
            [(64, 1, 64)],
            {"element": "i8", "oob_fill": "nan"},
            "out-of-bounds fill: expected a float type of 16 bits or more for NaN, got i8",
        ),
        ([(128, 1, 64)], UNPACKS, "dimension 0: expected 128 elements in the box of a load that unpacks, got 64"),
        ([(192, 1, 128)], UNPACKS, "dimension 0: expected a multiple of 128 elements for loads that unpack, got 192"),
        (
            [(128, 1, 128), (4, 160, 4)],
            UNPACKS,
            "dimension 1: expected a stride that is a positive multiple of 32 bytes, got 80 (160 elements)",
        ),
        ([(128, 1, 128)], UNPACKS | {"swizzle": 64}, "swizzle: expected one of 0, 128, got 64"),
        ([(128, 1, 128)], UNPACKS | {"unpack": 8}, "unpack: expected one of 0, 16, got 8"),
        ([(128, 1, 128)], UNPACKS | {"element": "f16"}, "element of a load that unpacks: expected one of f4E2M1FN, "),
        ([(128, 1, 128)], {"element": "f6E3M2FN"}, "element: elements f6E3M2FN are packed in global memory only: use"),
    ],
)
def test_limits(dims: list[tuple[int, ...]], options: dict[str, object], message: str) -> None:
    with pytest.raises(TmaError) as error:
        TensorMapSpec(**({"element": "f16", "dims": tuple(TensorDim(*d) for d in dims)} | options))  # type: ignore
    assert message in str(error.value)


@pytest.mark.parametrize(("elt", "row", "code"), [("f4E2M1FN", 64, "16U4_ALIGN16B"), ("f6E2M3FN", 96, "16U6_ALIGN16B")])
def test_loads_that_unpack(elt: str, row: int, code: str) -> None:
    """Boxes of 128 elements, which take 128 bytes of shared memory and count as packed bytes."""
    swizzled = smem_tile("k", 128, "ui8", (64, 256))
    spec = derive(Layout((Dyn(), Dyn()), (Dyn(div=128), 1)), swizzled, (64, 256), elt, unpack=16)
    assert (spec.box, spec.box_bytes, spec.data_type) == ((128, 64), 64 * row, code)
    assert (spec.boxes, spec.offsets, spec.steps) == (2, Layout("(2):(8192)"), raw_layout((2,), (Basis(128, (0,)),)))
    assert spec.unproven[0] == "dimension 0: the extent is 1 to 2^32 and a multiple of 128"
    assert spec.bind([64, 384, 512], address=32).strides == (row * 4,)
    with pytest.raises(TmaError, match="expected an address aligned to 32 bytes, got 0x10"):
        spec.bind([64, 384, 512], address=16)
    with pytest.raises(TmaError, match="expected a multiple of 128 elements for loads that unpack, got 320"):
        spec.bind([64, 320, 512])
    plain = derive(Layout((64, 256), (256, 1)), Layout("(64,256):(256,1)"), (64, 256), elt, unpack=16)
    assert plain.box == (128, 1) and plain.boxes == 128


def test_interleave() -> None:
    # NC/8HWC8: channels in groups of 8 f16 elements, 16 bytes.
    dims = (TensorDim(8, 1, 8), TensorDim(56, 8, 56), TensorDim(56, 448, 2), TensorDim(8, 25088, 1))
    assert TensorMapSpec("f16", dims, interleave=16).box_bytes == 8 * 56 * 2 * 2


def test_im2col() -> None:
    spec = im2col_for_convolution(
        "f16",
        (64, 56, 56, 8),
        (3, 3),
        padding=(1, 1),
        stride=(2, 2),
        dilation=(1, 1),
        channels=64,
        pixels=128,
        swizzle=128,
    )
    assert spec.lower == (-1, -1) and spec.upper == (-1, -1) and spec.element_strides == (1, 2, 2, 1)
    assert spec.strides == (128, 7168, 401408) and spec.box_bytes == 16384
    # Base pixels range from -1 to 56 - 1 - 1. With filter taps 0 … 2 the last one reaches the padding.
    wide = im2col_for_convolution(
        "f16", (8, 20, 20, 1), (5, 3), padding=(2, 1), stride=(1, 1), dilation=(2, 1), channels=8, pixels=64
    )
    assert wide.upper == (2 - 8, 1 - 2)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"extents": (64, 8), "element_pitches": (64,)}, "rank: expected 3 to 5 dimensions, got 2"),
        ({"element_pitches": (64, 3584)}, "strides: expected 3 strides, got 2"),
        (
            {"element_pitches": (60, 3584, 200704)},
            "dimension 1: expected a stride that is a positive multiple of 16 bytes",
        ),
        ({"lower": (-129, 0)}, "lower corner[0]: expected -128 to 127 at rank 4, got -129"),
        ({"upper": (0,)}, "upper corner: expected 2 offsets, got 1"),
        ({"channels": 512}, "channels: expected 1 to 256 channels, got 512"),
        ({"pixels": 2048}, "pixels: expected 1 to 1024 pixels, got 2048"),
        ({"channels": 128}, "channels: expected rows of at most 128 bytes, the width of the swizzle, got 256"),
        ({"element_strides": (1, 9, 1, 1)}, "dimension 1: expected 1 to 8 as element stride, got 9"),
        ({"element_strides": (1, 1)}, "element strides: expected 4 element strides, got 2"),
        ({"extents": (64, 0, 56, 8)}, "dimension 1: expected 1 to 4294967296 elements, got 0"),
    ],
)
def test_im2col_refuses(changes: dict[str, object], message: str) -> None:
    good: dict[str, object] = {
        "element": "f16",
        "extents": (64, 56, 56, 8),
        "element_pitches": (64, 3584, 200704),
        "lower": (-1, -1),
        "upper": (-1, -1),
        "channels": 64,
        "pixels": 128,
        "swizzle": 128,
    }
    assert Im2colMapSpec(**good).box_bytes == 16384  # type: ignore[arg-type]
    with pytest.raises(TmaError) as error:
        Im2colMapSpec(**(good | changes))  # type: ignore[arg-type]
    assert message in str(error.value)


def test_convolution_needs_numbers_for_each_dimension() -> None:
    with pytest.raises(TmaError, match="filter: expected 2 numbers for 4 dimensions, got 1"):
        im2col_for_convolution(
            "f16", (64, 56, 56, 8), (3,), padding=(1, 1), stride=(1, 1), dilation=(1, 1), channels=64, pixels=128
        )


def test_leaves_are_numbered_extents_first() -> None:
    gmem = parse_layout("(?,?{div=8}):(?{div=16},1)")
    assert [divisibility(d) for d in scalars(gmem)] == [1, 8, 16]
    assert len(tree_leaves(gmem.shape)) == 2
