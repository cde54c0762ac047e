"""Test kernels that move tiles with TMA, through shared memory and back, with a copy by threads in between.

Each kernel loads a tile with TMA.  Its threads copy the tile element by element to a second buffer of the same layout.
TMA then stores that buffer or reduces it into global memory.  Both directions of TMA are therefore compared with the
dialect's definition of a swizzled tensor.  Unit tests run the kernels on the CPU; GPU tests run those that
:func:`build_all` compiles.
"""

# pyright: basic

from __future__ import annotations

from typing import Any, NamedTuple

import cute_dialect.lang as cute
from cute_dialect.lang.nvgpu import cpasync


class Case(NamedTuple):
    """A tile copy.

    ``gmem`` is the dynamic layout of both arrays, and ``shape`` their shape in the modes of ``gmem``. ``tile`` holds
    the extents of a tile and ``smem`` its layout. ``order`` lists the modes from innermost to outermost in memory.
    """

    name: str
    element: str
    gmem: str
    tile: tuple[int, ...]
    smem: str
    swizzle: int
    shape: tuple[int, ...]
    order: tuple[int, ...]
    reduction: str = ""
    oob: str = ""


CASES = (
    Case("f16_k", "f16", "(?,?):(?,1)", (64, 64), "(64,64):(64,1)", 128, (150, 104), (1, 0)),
    Case("f16_two_boxes", "f16", "(?,?):(?,1)", (32, 128), "(32,(64,2)):(64,(1,2048))", 128, (70, 200), (1, 0)),
    Case("bf16_mn", "bf16", "(?,?):(1,?)", (64, 32), "(64,32):(1,64)", 128, (136, 40), (0, 1)),
    Case("f32_64", "f32", "(?,?):(?,1)", (16, 16), "(16,16):(16,1)", 64, (33, 36), (1, 0)),
    Case("i8_32", "i8", "(?,?):(?,1)", (40, 32), "(40,32):(32,1)", 32, (90, 80), (1, 0)),
    Case("f32_plain", "f32", "(?,?):(?,1)", (8, 20), "(8,20):(20,1)", 0, (20, 44), (1, 0)),
    Case("f16_batch", "f16", "(?,?,?):(?,1,?)", (32, 64, 1), "(32,64,1):(64,1,0)", 128, (40, 72, 3), (1, 0, 2)),
    Case("f32_vector", "f32", "?:1", (64,), "64:1", 0, (200,), (0,)),
    Case("f32_add", "f32", "(?,?):(?,1)", (32, 32), "(32,32):(32,1)", 128, (50, 40), (1, 0), "add"),
    Case("f16_max", "f16", "(?,?):(?,1)", (32, 64), "(32,64):(64,1)", 128, (50, 72), (1, 0), "max"),
    Case("i32_xor", "i32", "(?,?):(?,1)", (16, 32), "(16,32):(32,1)", 128, (20, 36), (1, 0), "xor"),
)


NUMBERS = {
    "f16": cute.Float16, "bf16": cute.BFloat16, "f32": cute.Float32, "i32": cute.Int32, "i8": cute.Int8,
}  # fmt: skip


def kernel_text(case: Case) -> str:
    """Return the text of a module with the kernel ``@move`` and the host function ``@launch`` (A, B)."""
    dtype = NUMBERS[case.element]
    swizzle = cute.Swizzle({32: 1, 64: 2, 128: 3}[case.swizzle], 4, 3) if case.swizzle else None
    n = cute.size(cute.layout(case.smem))

    @cute.kernel
    def move(load: Any, mA: Any, store: Any, mB: Any):
        there, here = (
            cute.smem_tensor(dtype, cute.layout(case.smem), max(128, 8 * case.swizzle), swizzle) for _ in range(2)
        )
        bar = cute.arch.alloc_smem(cute.Int64, 1)
        where = (None, cute.arch.block_idx().x)
        from_, to = (cute.zipped_divide(x, case.tile)[where] for x in (mA, mB))
        tid = cute.arch.thread_idx().x
        if tid == 0:
            cute.arch.mbarrier_init(bar, 1)
            cute.arch.mbarrier_init_fence()
        cute.arch.sync_threads()
        if tid == 0:
            cute.arch.mbarrier_arrive_and_expect_tx(bar, n * dtype.width // 8)
            cute.copy(load, from_, there, tma_bar_ptr=bar)
        cute.arch.mbarrier_wait(bar, 0)
        for i in range(tid, n, 64):
            here[i] = there[i]
        cute.arch.fence_proxy("async.shared", space="cta")
        cute.arch.sync_threads()
        if tid == 0:
            cute.copy(store, here, to)
            cute.arch.cp_async_bulk_commit_group()
            cute.arch.cp_async_bulk_wait_group(0)

    @cute.jit
    def launch(mA: Any, mB: Any):
        layout = cute.layout(case.smem)
        if swizzle is not None:
            layout = cute.make_composed_layout(swizzle, 0, layout)
        loads = cpasync.make_tiled_tma_atom(cpasync.G2S(), mA, layout, case.tile, oob=case.oob or "zero")
        back = cpasync.CopyReduceBulkTensorTileS2GOp(case.reduction) if case.reduction else cpasync.S2G()
        stores = cpasync.make_tiled_tma_atom(back, mB, layout, case.tile)
        tiles = cute.size(cute.zipped_divide(stores[1], case.tile), mode=[1])
        move(*loads, *stores).launch(grid=tiles, block=64)

    matrix = cute.Tensor[dtype, case.gmem]
    return cute.trace(launch, matrix, matrix).mlir()


def element_bytes(element: str) -> int:
    return {"f16": 2, "bf16": 2, "f32": 4, "i32": 4, "i8": 1}[element]


def build_all(folder: str, chip: str) -> list[str]:
    """Compile every case into ``folder/tma/NAME`` and return the messages of ptxas."""
    from pathlib import Path

    from cute_dialect.pipelines import compile as compile_cute

    said: list[str] = []
    for name, text in (*((case.name, kernel_text(case)) for case in CASES), ("multicast", multicast_text())):
        module = compile_cute(text, chip=chip, filename=f"{name}.mlir", save=Path(folder) / "tma" / name)
        said.append(f"tma/{name}: {module.report.strip()}")
    return said


def arrays(case: Case, seed: int = 0) -> tuple[object, object, object]:
    """Return A, B before the launch, and the expected B, as numpy arrays with rows padded for TMA."""
    import numpy as np

    from cute_dialect.runtime.arrays import numpy_dtype

    rng = np.random.default_rng(seed)
    dtype = numpy_dtype(case.element)

    def make() -> np.ndarray:
        # Allocate from outermost to innermost dimension, pad the innermost to 16 bytes, then permute the modes.
        outer_first = [case.shape[m] for m in reversed(case.order)]
        pad = -outer_first[-1] % (16 // dtype.itemsize) if len(outer_first) > 1 else 0
        whole = np.zeros([*outer_first[:-1], outer_first[-1] + pad], dtype)
        view = whole[..., : outer_first[-1]]
        view[...] = rng.integers(-60, 60, view.shape).astype(dtype)
        return view.transpose([list(reversed(case.order)).index(m) for m in range(len(case.order))])

    a, b = make(), make()
    functions = {"": lambda x, y: x, "add": np.add, "max": np.maximum, "xor": np.bitwise_xor}
    want = functions[case.reduction](a, b).astype(dtype)
    return a, b, want


def multicast_text() -> str:
    """Return a module in which clusters of two blocks read tiles of 64 x 64 of A (f16) by multicast.

    Each block loads half of the tile for both blocks and writes the whole tile. Tile t of A is written to rows 128 t to
    128 t + 63 of B, and to the 64 rows after them.
    """

    @cute.kernel
    def move(load: Any, mA: Any, store: Any, mB: Any):
        layout = cute.make_layout(((32, 2), 64), stride=((64, 2048), 1))
        tile = cute.smem_tensor(cute.Float16, layout, 1024, cute.Swizzle(3, 4, 3))
        bar = cute.arch.alloc_smem(cute.Int64, 1)
        first = cute.arch.thread_idx().x == 0
        # Two consecutive blocks form a cluster. Block i loads half i of A, which is half (cluster rank) of its tile.
        where = (None, cute.arch.block_idx().x)
        half, whole = cute.zipped_divide(mA, (32, 64))[where], cute.zipped_divide(mB, (64, 64))[where]
        if first:
            cute.arch.mbarrier_init(bar, 1)
            cute.arch.mbarrier_init_fence()
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()
        if first:
            cute.arch.mbarrier_arrive_and_expect_tx(bar, 64 * 64 * 2)
            mine = tile[(None, cute.arch.block_idx_in_cluster()), None]
            cute.copy(load, half, mine, tma_bar_ptr=bar, mcast_mask=3)
        cute.arch.mbarrier_wait(bar, 0)
        if first:
            cute.copy(store, tile, whole)
            cute.arch.cp_async_bulk_commit_group()
            cute.arch.cp_async_bulk_wait_group(0)
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()

    @cute.jit
    def launch(mA: Any, mB: Any):
        layout = cute.layout("S<3,4,3> o 0 o (64,64):(64,1)")
        loads = cpasync.make_tiled_tma_atom(cpasync.G2SMulticast(), mA, layout, (64, 64), 2)
        stores = cpasync.make_tiled_tma_atom(cpasync.S2G(), mB, layout, (64, 64))
        tiles = cute.size(cute.zipped_divide(stores[1], (64, 64)), mode=[1])
        move(*loads, *stores).launch(grid=tiles, block=32, cluster=(2, 1, 1))

    matrix = cute.Tensor[cute.Float16, "(?,64):(64,1)", "align<16>"]
    return cute.trace(launch, matrix, matrix).mlir()


def multicast_arrays(tiles: int) -> tuple[object, object, object]:
    """Return A, B before the launch, and the expected B, as numpy arrays."""
    import numpy as np

    a = np.random.default_rng(0).standard_normal((64 * tiles, 64)).astype(np.float16)
    return a, np.zeros((128 * tiles, 64), np.float16), np.repeat(a.reshape(tiles, 1, 64, 64), 2, axis=1).reshape(-1, 64)
