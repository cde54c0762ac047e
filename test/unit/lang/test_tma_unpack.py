"""TMA loads that unpack 4-bit and 6-bit floats, compared with numpy."""

# Values of the language are checked when a kernel is traced.
# pyright: basic, reportAttributeAccessIssue=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cute_dialect.lang as cute
from cute_dialect.errors import CuteError
from cute_dialect.interp import InterpError

cpasync, arch = cute.nvgpu.cpasync, cute.arch
ROWS, K = 16, 256
WIDTHS = {cute.Float4E2M1FN: 4, cute.Float6E2M3FN: 6, cute.Float6E3M2FN: 6}


@cute.kernel
def load_tile(load: Any, source: Any, layout: Any, y: Any, dtype: cute.Constexpr, options: cute.Constexpr) -> None:
    """Load a tile, and copy ``held`` bytes of each 16 bytes of shared memory, without padding."""
    held, counted, first = options
    s = cute.smem_tensor(cute.Int8, getattr(layout, "outer", layout), 1024, getattr(layout, "inner", None))
    bar, thread = arch.alloc_smem(cute.Int64, 1), arch.thread_idx().x
    if thread == 0:
        arch.mbarrier_init(bar, 1)
        arch.mbarrier_init_fence()
    arch.sync_threads()
    if arch.elect_one():
        arch.mbarrier_arrive_and_expect_tx(bar, counted)
    tile = cute.local_tile(cute.domain_offset((0, first), source), (ROWS, K), (0, 0))
    cute.copy(load, tile, s, tma_bar_ptr=bar)
    arch.mbarrier_wait(bar, 0)
    for i in range(thread, ROWS * K // 16, 32):
        row, unit = i // (K // 16), i % (K // 16)
        for j in cute.range_constexpr(held):
            y[row, unit, j] = s[row, 16 * unit + j]


@cute.jit
def loaded(x: Any, y: Any, dtype: cute.Constexpr, options: cute.Constexpr, swizzled: cute.Constexpr = True) -> None:
    """``x`` holds the bytes of a matrix of ``dtype``."""
    shape = (x.shape[0], x.shape[1] * 8 // dtype.width)
    pointer = cute.recast_ptr(x.iterator, dtype=dtype)
    matrix = cute.make_tensor(pointer, cute.make_layout(shape, stride=(shape[1], 1)))
    layout = cute.make_layout((ROWS, K), stride=(K, 1))
    if swizzled:
        rows = cute.make_layout((ROWS, (128, K // 128)), stride=(128, (1, 128 * ROWS)))
        layout = cute.make_composed_layout(cute.make_swizzle(3, 4, 3), 0, rows)
    load, source = cpasync.make_tiled_tma_atom(cpasync.G2S(), matrix, layout, (ROWS, K), internal_type=cute.Int8)
    load_tile(load, source, layout, y, dtype, options).launch(grid=1, block=32)


def arrays(dtype: Any, rows: int, k: int) -> list[Any]:
    """Return random bytes of a matrix, at an address that is a multiple of 32, and the array of the result."""
    width = k * WIDTHS[dtype] // 8
    memory = np.random.default_rng(k).integers(0, 256, rows * width + 31, np.uint8)
    x = memory[-memory.ctypes.data % 32 :][: rows * width].reshape(rows, width)
    return [x.view(np.int8), np.full((ROWS, K // 16, 2 * WIDTHS[dtype]), 99, np.int8)]


def run(dtype: Any, rows: int = ROWS, k: int = K, swizzled: bool = True, **given: Any) -> Any:
    bits = WIDTHS[dtype]
    options = given.get("held", 2 * bits), given.get("counted", ROWS * K * bits // 8), given.get("first", 0)
    x, y = arrays(dtype, rows, k)
    if "held" in given:
        y = np.zeros((ROWS, K // 16, given["held"]), np.int8)
    compiled = cute.compile(loaded, x, y, dtype, options, swizzled, chip="sm_100a", device="cpu")
    compiled(x, y, checks=["race", "uninit"])
    return x, y, compiled


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("swizzled", [True, False])
@pytest.mark.parametrize(("rows", "k", "first"), [(ROWS, K, 0), (11, 384, 128), (20, 640, 256)])
@pytest.mark.parametrize("dtype", WIDTHS)
def test_unpacked_tiles(dtype: Any, rows: int, k: int, first: int, swizzled: bool) -> None:
    """Rows and columns out of bounds are zeros."""
    x, y, _ = run(dtype, rows, k, swizzled, first=first)
    want = np.zeros(y.shape, np.int8)
    part = x.reshape(rows, k // 16, -1)[:ROWS, first // 16 :][:, : K // 16]
    want[: part.shape[0], : part.shape[1]] = part
    np.testing.assert_array_equal(y, want)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", WIDTHS)
def test_the_barrier_counts_packed_bytes(dtype: Any) -> None:
    with pytest.raises(InterpError, match="deadlock"):
        run(dtype, counted=ROWS * K)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", WIDTHS)
def test_the_prover_counts_packed_bytes(dtype: Any) -> None:
    """A load that unpacks is proved with the bytes of global memory at its barrier, and refuted with others."""
    x, y = arrays(dtype, ROWS, K)
    bits = WIDTHS[dtype]
    for counted, holds in ((ROWS * K * bits // 8, True), (ROWS * K, False)):
        with cute.target("sm_100a"):
            (proof,) = cute.testing.prove(loaded, (x, y, dtype, (2 * bits, counted, 0), True))
        assert bool(proof) is holds


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "held"), [(cute.Float4E2M1FN, 9), (cute.Float6E3M2FN, 13)])
def test_padding_is_not_written(dtype: Any, held: int) -> None:
    with pytest.raises(InterpError, match=r"unwritten|uninitialized|nothing has written"):
        run(dtype, held=held)


@pytest.mark.slow
def test_first_coordinates_are_multiples_of_128() -> None:
    with pytest.raises(
        InterpError, match="the first coordinate of a load that unpacks must be a multiple of 128, got 64"
    ):
        run(cute.Float4E2M1FN, first=64)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", WIDTHS)
def test_the_map_is_one_that_unpacks(dtype: Any) -> None:
    """One instruction per 128 columns, and the code of the driver in the host function."""
    made = run(dtype)[2]
    assert made.ptx.count("cp.async.bulk.tensor.2d.shared::cta.global.tile") == 2
    code = 14 if WIDTHS[dtype] == 4 else 15
    assert f"value = {code} : i32" in made.mlir("base")


ERRORS = {
    "elements f6E2M3FN are packed in global memory only: use a load that unpacks them": (cute.Float6E2M3FN, {}),
    "internal_type must be the element type Float8E5M2, got Int8": (cute.Float8E5M2, {"internal_type": cute.Int8}),
    "internal_type must be the element type Float4E2M1FN, got Float16": (
        cute.Float4E2M1FN,
        {"internal_type": cute.Float16},
    ),
    "expected 128 elements in the box of a load that unpacks, got 64": (
        cute.Float4E2M1FN,
        {"internal_type": cute.Int8, "columns": 64},
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("message", ERRORS)
def test_errors(message: str) -> None:
    dtype, given = ERRORS[message]
    columns = given.pop("columns", 128)

    @cute.jit
    def launch(x: Any) -> None:
        matrix = cute.make_tensor(
            cute.recast_ptr(x.iterator, dtype=dtype), cute.make_layout((64, 256), stride=(256, 1))
        )
        smem = cute.make_layout((8, columns), stride=(columns, 1))
        cpasync.make_tiled_tma_atom(cpasync.G2S(), matrix, smem, (8, columns), **given)

    with pytest.raises(CuteError, match=message):
        cute.trace(launch, cute.Tensor[cute.Int8, "(64,512):(512,1)"], chip="sm_100a")
