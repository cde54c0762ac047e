"""The elementwise kernel on the CPU interpreter, compared with numpy and with the layout functions."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from cute_dialect.kernels.elementwise.add import BITS, elementwise_add_text, launch, seed_tile, streaming_tile
from cute_dialect.pipelines import compile as compile_cute
from cute_dialect.runtime.launch import CompiledModule, LaunchError

EXAMPLE = Path(__file__).parents[2] / "examples" / "elementwise_add.mlir"
DTYPES = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
POISON = 0xA5


def matrix(element: str, rows: int, columns: int, ld: int, seed: int | None) -> tuple[np.ndarray, np.ndarray]:
    """Return a poisoned buffer with guard elements, and the matrix in it: random normal numbers unless ``seed`` is
    None.
    """
    dtype = np.dtype(DTYPES[element])
    guard = 64 // dtype.itemsize
    buffer = np.full((2 * guard + rows * ld) * dtype.itemsize + 16, POISON, np.uint8)
    skip = -buffer.ctypes.data % 16
    storage = buffer[skip : skip + (2 * guard + rows * ld) * dtype.itemsize].view(dtype)
    inside = np.lib.stride_tricks.as_strided(storage[guard:], (rows, columns), (ld * dtype.itemsize, dtype.itemsize))
    if seed is not None:
        inside[...] = np.random.default_rng(seed).standard_normal((rows, columns)).astype(dtype)
    return storage, inside


@pytest.fixture(scope="module")
def modules() -> dict[str, CompiledModule]:
    tiles = {"seed": seed_tile, "stream": streaming_tile}
    return {
        f"{element}-{name}": compile_cute(
            elementwise_add_text(element, tile(element), rows_first=name == "seed"), emit="base"
        )
        for element in BITS
        for name, tile in tiles.items()
    }


def test_the_trace_is_the_example() -> None:
    assert elementwise_add_text() == EXAMPLE.read_text()


SHAPES = [(1, 1, 1), (1, 5, 8), (17, 129, 129), (16, 128, 128), (33, 300, 304), (40, 298, 298), (5, 1030, 1032)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", [f"{e}-{t}" for e in BITS for t in ("seed", "stream")])
def test_sum_is_exact_and_stays_in_bounds(
    modules: dict[str, CompiledModule], name: str, shape: tuple[int, int, int]
) -> None:
    rows, columns, ld = shape
    element = name.split("-")[0]
    (_, a), (_, b) = matrix(element, rows, columns, ld, 1), matrix(element, rows, columns, ld, 2)
    storage, c = matrix(element, rows, columns, ld, None)
    modules[name].kernel("add")(a, b, c, device="cpu")
    expected = a + b
    assert np.array_equal(c.view(np.uint8 if c.itemsize == 1 else f"u{c.itemsize}"), expected.view(f"u{c.itemsize}"))
    c.view(f"u{c.itemsize}")[...] = int.from_bytes(bytes([POISON]) * c.itemsize, "little")
    assert (storage.view(np.uint8) == POISON).all(), "padding or guards were written"


@pytest.mark.parametrize(
    ("ld", "offset", "kernel"),
    [(256, 0, "add_v"), (260, 0, "add_v"), (257, 0, "add"), (256, 1, "add"), (258, 0, "add")],
)
def test_launch_selects_the_fastest_valid_kernel(
    modules: dict[str, CompiledModule], ld: int, offset: int, kernel: str
) -> None:
    storage = np.zeros(20 * ld + 64, np.float32)
    start = (-storage.ctypes.data % 16) // 4 + offset
    a = np.lib.stride_tricks.as_strided(storage[start:], (16, 256), (4 * ld, 4))
    assert modules["f32-seed"].kernel("add").plan(a, a, a).kernel == kernel


OFFSETS = """
!copy = !cute.tiled_copy<!cute_nvgpu.atom.universal_copy<i32>, layout_copy_tv = <"((32,4),(4,4)):((64,4),(16,1))">, tiler_mn = <"[16:1;128:1]">>
!src = !cute.memref<i32, gmem, "(16,128):({stride},1)">
!part = !cute.memref<i32, gmem, "((1,(4,4)),1,1):((0,(1,{stride})),0,0)">
!out = !cute.memref<i32, gmem, "(128,16):(16,1)">
gpu.module @m {{
  gpu.func @offsets(%src: !src, %out: !out) kernel attributes {{known_block_size = array<i32: 128, 1, 1>}} {{
    %tid = nvvm.read.ptx.sreg.tid.x : i32
    %atom = cute.atom() : !cute_nvgpu.atom.universal_copy<i32>
    %copy = cute.make_tiled_copy(%atom) : !copy
    %thr = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
    %p = cute.tiled.copy.partition_S(%copy, %src, %thr) : (!copy, !src, !cute.coord<"?">) -> !part
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c16 = arith.constant 16 : i32
    scf.for %i = %c0 to %c16 step %c1 : i32 {{
      %ci = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
      %x = cute.memref.load(%p, %ci) : (!part, !cute.coord<"?">) -> i32
      %co = cute.make_coord(%tid, %i) : (i32, i32) -> !cute.coord<"(?,?)">
      cute.memref.store(%out, %co, %x) : (!out, !cute.coord<"(?,?)">, i32) -> ()
    }}
    gpu.return
  }}
}}
"""  # noqa: E501


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("ld", [128, 129, 304, 1000, 4099])
@pytest.mark.parametrize("static", [False, True])
def test_lowered_offsets_match_the_layouts(ld: int, static: bool) -> None:
    """Each element holds its own offset, so each (thread, value) pair must load the offset that the layout gives."""
    source = np.arange(16 * ld, dtype=np.int32)
    view = np.lib.stride_tricks.as_strided(source, (16, 128), (4 * ld, 4))
    out = np.full((128, 16), -1, np.int32)
    module = compile_cute(OFFSETS.format(stride=ld if static else "?"), emit="base")
    module.kernel("offsets")(view, out, device="cpu", grid=(1, 1, 1))
    t, v = np.meshgrid(np.arange(128), np.arange(16), indexing="ij")
    # TV = ((32,4),(4,4)):((64,4),(16,1)) gives a column-major index in the 16 x 128 tile.
    index = 64 * (t % 32) + 4 * (t // 32) + 16 * (v % 4) + v // 4
    assert np.array_equal(out, (index % 16) * ld + index // 16)


@pytest.mark.slow
def test_called_from_python() -> None:
    """The default tile and another one give right results, and a wrong shape raises an error."""
    for element, tile in (("f32", None), ("f16", streaming_tile("f16")), ("bf16", None)):
        (_, a), (_, b) = matrix(element, 19, 261, 264, 1), matrix(element, 19, 261, 264, 2)
        _, c = matrix(element, 19, 261, 261, None)
        launch(a, b, c, tile, tile is None, device="cpu")
        assert np.array_equal(c.view(f"u{c.itemsize}"), (a + b).view(f"u{c.itemsize}"))
    x = np.zeros((4, 8), np.float32)
    with pytest.raises(LaunchError, match="A and C must have the same shape"):
        launch(x, x, np.zeros((4, 9), np.float32), device="cpu")
