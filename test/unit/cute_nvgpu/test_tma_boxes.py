"""Boxes of TMA copies for random tiles, compared with a brute-force mapping of the same layouts."""

from __future__ import annotations

import random
from itertools import product

import pytest

from cute_dialect.algebra import text
from cute_dialect.algebra.evaluation import evaluate, size
from cute_dialect.algebra.values import Layout
from cute_dialect.arch.errors import TmaError
from cute_dialect.arch.tma import boxes, derive


def moved(
    coords: Layout, smem: Layout, counts: tuple[int, ...], strides: tuple[int, ...]
) -> dict[int, tuple[int, ...]]:
    """Map each shared-memory element to its TMA coordinates as the instructions do (PTX ISA 5.5, tiled mode)."""
    out: dict[int, tuple[int, ...]] = {}
    for at, offset in boxes(coords, smem, counts, strides):
        place = offset
        for point in product(*(range(c) for c in reversed(counts))):
            inner_first = tuple(reversed(point))
            assert place not in out, "two boxes write one element"
            out[place] = tuple(a + p * s for a, p, s in zip(at, inner_first, strides))
            place += 1
    return out


def wanted(coords: Layout, smem: Layout, rank: int) -> dict[int, tuple[int, ...]]:
    """Return the same mapping from the definition of a copy: element i goes to element i."""
    n = size(smem)
    assert isinstance(n, int) and n == size(coords)
    out: dict[int, tuple[int, ...]] = {}
    for i in range(n):
        where, c = evaluate(i, smem), evaluate(i, coords)
        assert isinstance(where, int)
        flat = c if isinstance(c, tuple) else (c,)
        out[where] = tuple(int(x) for x in (*flat, *[0] * rank)[:rank])  # type: ignore[arg-type]
    return out


def random_tile(rng: random.Random) -> tuple[Layout, Layout, tuple[int, ...], str]:
    """Return a random global layout, shared-memory layout, tile shape and element type."""
    element = rng.choice(["f16", "f32", "i8"])
    unit = {"f16": 8, "f32": 4, "i8": 16}[element]
    rank = rng.randint(1, 3)
    order = rng.sample(range(rank), rank)
    tile = [rng.choice([1, 2, 4, 8]) for _ in range(rank)]
    tile[order[0]] = unit * rng.choice([1, 2, 4, 8])
    # The contiguous mode may be split; the mode of pieces comes last.
    cut = rng.choice([1, 1, 2])
    inner = tile[order[0]] // cut if tile[order[0]] // cut % unit == 0 else tile[order[0]]
    cut = tile[order[0]] // inner
    shape: list[object] = list(tile)
    stride: list[object] = [0] * rank
    step = 1
    for i, mode in enumerate(order):
        stride[mode] = step
        step *= inner if i == 0 else tile[mode]
    if cut > 1:
        shape[order[0]], stride[order[0]] = (inner, cut), (1, step)
    gshape = tuple(rng.randint(1, 3) * t + rng.randint(1, 5) for t in tile)
    gstride = [0] * rank
    step = 1
    for mode in order:
        gstride[mode] = step
        step = -(-step * gshape[mode] // unit) * unit
    gmem = Layout(gshape, tuple(gstride))
    return gmem, Layout(tuple(shape), tuple(stride)), tuple(tile), element  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(40))
def test_boxes_of_derived_maps(seed: int) -> None:
    rng = random.Random(seed)
    gmem, smem, tile, element = random_tile(rng)
    try:
        spec = derive(gmem, smem, tile, element)
    except TmaError as e:
        assert "multiple of 128 bytes" in str(e)  # A copy of several boxes needs larger boxes.
        return
    coords = Layout(tile, spec.coordinates.stride)
    counts = tuple(d.count for d in spec.dims)
    got = moved(coords, smem, counts, spec.element_strides)
    assert got == wanted(coords, smem, spec.rank)


def test_element_strides() -> None:
    coords, smem = text.parse_layout("(8,64):(2@1,1@0)"), text.parse_layout("(8,64):(64,1)")
    assert moved(coords, smem, (64, 8), (1, 2)) == wanted(coords, smem, 2)
    with pytest.raises(TmaError, match="every 2"):
        list(boxes(coords, smem, (64, 8), (1, 1)))


@pytest.mark.parametrize(
    ("coords", "smem", "counts", "message"),
    [
        ("(8,64,2):(1@1,1@0,1@2)", "(8,128):(128,1)", (64, 8), "expected the same number of modes on both sides"),
        ("(8,64):(1@2,1@0)", "(8,64):(64,1)", (64, 8), "expected coordinates in the 2 dimensions of the tensor map"),
        ("(8,64):(1@1,1@0)", "(8,64):(1,1)", (64, 8), "the elements of (8,64):(1,1) overlap"),
        ("(8,64):(1@1,1@0)", "(8,64):(64,-1)", (64, 8), "strides in shared memory must be positive"),
        ("(8,96):(1@1,1@0)", "(8,96):(96,1)", (64, 8), "expected 64 elements at stride 1 in shared memory"),
        ("(8,48):(1@1,1@0)", "(8,48):(48,1)", (64, 8), "got 48"),
    ],
)
def test_mismatched_arguments_are_rejected(coords: str, smem: str, counts: tuple[int, ...], message: str) -> None:
    with pytest.raises(TmaError) as error:
        list(boxes(text.parse_layout(coords), text.parse_layout(smem), counts))
    assert message in str(error.value)
