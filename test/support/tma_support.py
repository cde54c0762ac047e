"""Kernels that move tiles by TMA, made for tests: through shared memory and back, with a step by the threads between.

The kernel loads a tile by TMA, its threads copy it element by element to a second buffer of the same layout, and TMA
stores that (or reduces it into global memory).  So both directions of TMA meet what the dialect says of a swizzled
tensor.  Run on the CPU by unit tests, on the GPU from what :func:`build_all` compiled.
"""

from __future__ import annotations

from typing import NamedTuple


class Case(NamedTuple):
    """``gmem``: layout of both arrays, dynamic; ``tile``: extents; ``smem``: layout of a tile; ``shape``: of the arrays
    (in modes of ``gmem``); ``order``: modes from innermost to outermost in memory."""

    name: str
    element: str
    gmem: str
    tile: str
    smem: str
    swizzle: int
    shape: tuple[int, ...]
    order: tuple[int, ...]
    reduction: str = ""
    oob: str = ""


CASES = (
    Case("f16_k", "f16", "(?,?):(?,1)", "[64:1;64:1]", "(64,64):(64,1)", 128, (150, 104), (1, 0)),
    Case("f16_two_boxes", "f16", "(?,?):(?,1)", "[32:1;128:1]", "(32,(64,2)):(64,(1,2048))", 128, (70, 200), (1, 0)),
    Case("bf16_mn", "bf16", "(?,?):(1,?)", "[64:1;32:1]", "(64,32):(1,64)", 128, (136, 40), (0, 1)),
    Case("f32_64", "f32", "(?,?):(?,1)", "[16:1;16:1]", "(16,16):(16,1)", 64, (33, 36), (1, 0)),
    Case("i8_32", "i8", "(?,?):(?,1)", "[40:1;32:1]", "(40,32):(32,1)", 32, (90, 80), (1, 0)),
    Case("f32_plain", "f32", "(?,?):(?,1)", "[8:1;20:1]", "(8,20):(20,1)", 0, (20, 44), (1, 0)),
    Case("f16_batch", "f16", "(?,?,?):(?,1,?)", "[32:1;64:1;1:1]", "(32,64,1):(64,1,0)", 128, (40, 72, 3), (1, 0, 2)),
    Case("f32_vector", "f32", "?:1", "[64:1]", "64:1", 0, (200,), (0,)),
    Case("f32_add", "f32", "(?,?):(?,1)", "[32:1;32:1]", "(32,32):(32,1)", 128, (50, 40), (1, 0), "add"),
    Case("f16_max", "f16", "(?,?):(?,1)", "[32:1;64:1]", "(32,64):(64,1)", 128, (50, 72), (1, 0), "max"),
    Case("i32_xor", "i32", "(?,?):(?,1)", "[16:1;32:1]", "(16,32):(32,1)", 128, (20, 36), (1, 0), "xor"),
)


def kernel_text(case: Case) -> str:
    """The file: kernel ``@move`` and host function ``@launch`` (A, B)."""
    from cute_dialect.kernels.builder import Builder

    b = Builder()
    gmem = f'!cute.memref<{case.element}, gmem, "{case.gmem}">'
    swizzle = {"swizzle": case.swizzle} if case.swizzle else {}
    bits = {0: "", 32: ", S<1,4,3>", 64: ", S<2,4,3>", 128: ", S<3,4,3>"}[case.swizzle]
    align = max(128, 8 * case.swizzle)
    with b.host("launch", {"mA": gmem, "mB": gmem}) as (m_a, m_b):
        tile, layout = b.tile(case.tile), b.layout(case.smem)
        oob = {"oob": f'"{case.oob}"'} if case.oob else {}
        load, c_a = b.results("cute_nvgpu.make_tma_load", m_a, layout, tile, **swizzle, **oob)
        if case.reduction:
            kind = {"reduction": f'"{case.reduction}"'}
            store, c_b = b.results("cute_nvgpu.make_tma_reduce", m_b, layout, tile, **swizzle, **kind)
        else:
            store, c_b = b.results("cute_nvgpu.make_tma_store", m_b, layout, tile, **swizzle)
        tiles = b.op("cute.size", b.op("cute.zipped_divide", c_b, tile), mode="array<i32: 1>")
        grid = b.op("cute.get_scalars", tiles, type="i32")
        b.launch("move", [load, c_a, store, c_b], grid=grid, threads=64)
    parameters = {"load": load.type, "mA": c_a.type, "store": store.type, "mB": c_b.type}
    with b.kernel("move", parameters, threads=64) as (load, c_a, store, c_b):
        smem = f'!cute.memref<{case.element}, smem, align<{align}>{bits}, "{case.smem}">'
        there, here = b.alloc_smem(smem), b.alloc_smem(smem)
        bar = b.iterator(b.alloc_smem('!cute.memref<i64, smem, "1:0">'))
        tile = b.tile(case.tile)
        where = b.coord((None, b.block_id()))
        tile_a, tile_b = (b.op("cute.slice", b.op("cute.zipped_divide", c, tile), where) for c in (c_a, c_b))
        tid = b.thread_id()
        n = _elements(case)
        with b.if_(tid.eq(0)):
            b.run("mbarrier_init", bar, 1)
            b.run("fence_mbarrier_init")
        b.run("barrier")
        with b.if_(tid.eq(0)):
            b.run("mbarrier_arrive_expect_tx", bar, n * element_bytes(case.element))
            b.copy(b.op("cute.atom.set_value", load, bar, field='"tma_bar"'), tile_a, there)
        b.run("mbarrier_wait", bar, 0)
        with b.for_(tid, n, 64) as loop:
            b.store(here, loop.iv, b.load(there, loop.iv))
        b.run("fence_proxy_async")
        b.run("barrier")
        with b.if_(tid.eq(0)):
            b.copy(store, here, tile_b)
            b.run("bulk_commit_group")
            b.run("bulk_wait_group", n=0)
    return b.text()


def element_bytes(element: str) -> int:
    """Bytes of an element."""
    return {"f16": 2, "bf16": 2, "f32": 4, "i32": 4, "i8": 1}[element]


def _elements(case: Case) -> int:
    from cute_dialect.algebra.evaluation import size
    from cute_dialect.algebra.text import parse_layout

    n = size(parse_layout(case.smem))
    assert isinstance(n, int)
    return n


def build_all(folder: str, chip: str) -> list[str]:
    """Compile every case into ``folder/tma/NAME``; gives what ptxas says."""
    from pathlib import Path

    from cute_dialect.pipelines import compile as compile_cute

    said: list[str] = []
    for name, text in (*((case.name, kernel_text(case)) for case in CASES), ("multicast", multicast_text())):
        module = compile_cute(text, chip=chip, filename=f"{name}.mlir", save=Path(folder) / "tma" / name)
        said.append(f"tma/{name}: {module.report.strip()}")
    return said


def arrays(case: Case, seed: int = 0) -> tuple[object, object, object]:
    """A, B as they are before the launch, and B as it must be after it; numpy, rows padded as TMA wants."""
    import numpy as np

    from cute_dialect.runtime.arrays import numpy_dtype

    rng = np.random.default_rng(seed)
    dtype = numpy_dtype(case.element)

    def make() -> np.ndarray:
        # Outermost dimension first, the innermost padded to 16 bytes; then the modes in their order.
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
    """The file: clusters of two blocks read tiles of 64 x 64 of A (f16) together, each half of it for both, and each
    block writes the whole tile: rows 128 t to 128 t + 63 and the 64 after them of B are tile t of A."""
    from cute_dialect.kernels.builder import Builder

    b = Builder()
    gmem = '!cute.memref<f16, gmem, align<16>, "(?,64):(64,1)">'
    with b.host("launch", {"mA": gmem, "mB": gmem}) as (m_a, m_b):
        tile, layout = b.tile("[64:1;64:1]"), b.layout("(64,64):(64,1)")
        load, c_a = b.results("cute_nvgpu.make_tma_load", m_a, layout, tile, swizzle=128, multicast=2)
        store, c_b = b.results("cute_nvgpu.make_tma_store", m_b, layout, tile, swizzle=128)
        tiles = b.op("cute.size", b.op("cute.zipped_divide", c_b, tile), mode="array<i32: 1>")
        b.launch("move", [load, c_a, store, c_b], grid=b.op("cute.get_scalars", tiles, type="i32"), threads=32)
    parameters = {"load": load.type, "mA": c_a.type, "store": store.type, "mB": c_b.type}
    with b.kernel("move", parameters, threads=32, cluster=(2, 1, 1)) as (load, c_a, store, c_b):
        smem = b.alloc_smem('!cute.memref<f16, smem, align<1024>, S<3,4,3>, "((32,2),64):((64,2048),1)">')
        bar = b.iterator(b.alloc_smem('!cute.memref<i64, smem, "1:0">'))
        rank, block, first = b.arch("cluster_rank"), b.block_id(), b.thread_id().eq(0)
        halves = b.op("cute.zipped_divide", c_a, b.tile("[32:1;64:1]"))
        # Two blocks after one another are a cluster: half number block is half number rank of their tile.
        half = b.op("cute.slice", halves, b.coord((None, block)))
        tile = b.op("cute.slice", b.op("cute.zipped_divide", c_b, b.tile("[64:1;64:1]")), b.coord((None, block)))
        with b.if_(first):
            b.run("mbarrier_init", bar, 1)
            b.run("fence_mbarrier_init")
        b.run("cluster_arrive")
        b.run("cluster_wait")
        with b.if_(first):
            b.run("mbarrier_arrive_expect_tx", bar, 64 * 64 * 2)
            atom = b.op("cute.atom.set_value", load, bar, field='"tma_bar"')
            atom = b.op("cute.atom.set_value", atom, b.constant(3, "i16"), field='"multicast_mask"')
            b.copy(atom, half, b.slice(smem, (None, rank), None))
        b.run("mbarrier_wait", bar, 0)
        with b.if_(first):
            b.copy(store, smem, tile)
            b.run("bulk_commit_group")
            b.run("bulk_wait_group", n=0)
        b.run("cluster_arrive")
        b.run("cluster_wait")
    return b.text()


def multicast_arrays(tiles: int) -> tuple[object, object, object]:
    """A, B before the launch, and B after it; numpy."""
    import numpy as np

    a = np.random.default_rng(0).standard_normal((64 * tiles, 64)).astype(np.float16)
    return a, np.zeros((128 * tiles, 64), np.float16), np.repeat(a.reshape(tiles, 1, 64, 64), 2, axis=1).reshape(-1, 64)
