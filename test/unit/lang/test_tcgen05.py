"""Tensor memory in the language: the atoms of each descriptor, sizes of allocations, and refused requests."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import cute_dialect.lang as cute
from cute_dialect.errors import UsageError
from cute_dialect.lang import blackwell, pipeline, utils
from cute_dialect.lang.nvgpu import cpasync, tcgen05
from cute_dialect.lang.tracing.errors import KernelTypeError

MN = tcgen05.OperandMajorMode.MN


@pytest.mark.parametrize(
    ("op", "text"),
    [
        (
            tcgen05.MmaF16BF16Op(cute.BFloat16, cute.Float32, (128, 64, 16), b_major_mode=MN, negate_a=True),
            "tcgen05_mma<128x64x16, (f32,bf16,bf16,f32), A = smem, major = (k, mn), negate_a>",
        ),
        (
            tcgen05.MmaTF32Op((64, 32, 8), a_src=tcgen05.OperandSource.TMEM),
            "tcgen05_mma<64x32x8, (f32,tf32,tf32,f32), A = tmem, major = (k, k)>",
        ),
        (
            tcgen05.MmaF8F6F4Op(cute.Float8E4M3FN, cute.Float8E5M2, cute.Float16, (128, 32, 32)),
            "tcgen05_mma<128x32x32, (f16,f8E4M3FN,f8E5M2,f16), A = smem, major = (k, k)>",
        ),
        (
            tcgen05.MmaI8Op(cute.Int8, cute.Uint8, (128, 32, 32), saturate=True),
            "tcgen05_mma<128x32x32, (i32,i8,ui8,i32), A = smem, major = (k, k), saturate>",
        ),
        (
            tcgen05.MmaF16BF16Op(cute.Float16, cute.Float32, (256, 64, 16), tcgen05.CtaGroup.TWO),
            "tcgen05_mma<256x64x16, (f32,f16,f16,f32), A = smem, major = (k, k), cta_group = 2>",
        ),
        (
            tcgen05.MmaWsOp(cute.Int8, cute.Int8, cute.Int32, (32, 64, 32), saturate=True),
            "tcgen05_mma<32x64x32, (i32,i8,i8,i32), A = smem, major = (k, k), saturate, ws>",
        ),
        (
            tcgen05.MmaSparseOp(cute.Float16, cute.Float16, cute.Float32, (256, 64, 32), tcgen05.CtaGroup.TWO),
            "tcgen05_mma_sp<256x64x32, (f32,f16,f16,f32), A = smem, major = (k, k), cta_group = 2>",
        ),
        (
            tcgen05.MmaSparseOp(
                *(cute.Float4E2M1FN,) * 2, cute.Float32, (128, 64, 128), sf_dtype=cute.Float8E4M3FN, sf_vec=16
            ),
            "tcgen05_mma_sp<128x64x128, (f32,f4E2M1FN,f4E2M1FN,f32), A = smem, major = (k, k), kind = mxf4nvf4, "
            "sf = ue4m3, vec = 16>",
        ),
    ],
)
def test_mma_atoms(op: tcgen05.MmaF16BF16Op, text: str) -> None:
    assert str(cute.make_mma_atom(op).type) == f"!cute_nvgpu.atom.{text}"


def test_copy_atoms() -> None:
    for shape in ("32x32b", "16x64b", "16x128b", "16x256b", "16x32bx2"):
        load, store = (getattr(tcgen05, f"{way}{shape}Op") for way in ("Ld", "St"))
        made = cute.make_copy_atom(load(tcgen05.Repetition.x8), cute.Float32)
        assert str(made.type) == f"!cute_nvgpu.atom.tmem_load<f32, {shape}, x8>"
        made = cute.make_copy_atom(store(tcgen05.Repetition.x4, tcgen05.Unpack.UNPACK_32b_IN_16b), cute.Float16)
        assert str(made.type) == f"!cute_nvgpu.atom.tmem_store<f16, {shape}, x4, unpack>"


def test_shared_layouts_have_the_shape_of_the_mma() -> None:
    mma = blackwell.make_trivial_tiled_mma(
        cute.Float16, tcgen05.OperandMajorMode.K, MN, cute.Float32, tcgen05.CtaGroup.ONE, (128, 64)
    )
    a = blackwell.make_smem_layout_a(mma, (128, 64, 64), cute.Float16, 3)
    assert str(a.outer) == "((128,16),1,4,(1,3)):((64,1),8192,16,(0,8192))" and str(a.inner) == "S<3,4,3>"
    b = blackwell.make_smem_layout_b(mma, (128, 64, 64), cute.Float16, 3)
    assert str(b.outer) == "((64,16),1,4,(1,3)):((1,64),0,1024,(0,4096))"


def _kernel(body: Callable[[], object]) -> Callable[[], object]:
    """Return a function that traces ``body`` in a kernel for sm_100a."""

    @cute.kernel
    def kernel() -> None:
        body()

    return lambda: cute.trace(kernel, grid=1, block=128, chip="sm_100a")


def _slot() -> cute.Pointer:
    return cute.arch.alloc_smem(cute.Int32, 1)


REFUSED: dict[str, tuple[str, Callable[[], object]]] = {
    "F250: tcgen05.MmaTF32Op: cta_group must be CtaGroup.ONE or CtaGroup.TWO, got 2": (
        "group", lambda: cute.make_mma_atom(tcgen05.MmaTF32Op((256, 32, 8), 2))  # pyright: ignore
    ),
    "F250: CopyBulkTensorTileG2SOp: cta_group must be CtaGroup.ONE or CtaGroup.TWO, got 2": (
        "load", lambda: cpasync.CopyBulkTensorTileG2SOp(2)  # pyright: ignore
    ),
    "F250: MmaTF32Op: M is 64; use 128 or 256 for cta_group 2": (
        "rows", lambda: cute.make_mma_atom(tcgen05.MmaTF32Op((64, 32, 8), tcgen05.CtaGroup.TWO))
    ),
    "F250: MmaF16BF16Op: N is 20; use one of 8, 16, 24": (
        "extent", lambda: cute.make_mma_atom(tcgen05.MmaF16BF16Op(cute.Float16, cute.Float32, (128, 20, 16)))
    ),
    "F251: cute.arch.alloc_tmem: the number of columns must be one of 32, 64, 128, 256, 512, got 48": (
        "columns", _kernel(lambda: cute.arch.alloc_tmem(48, _slot()))
    ),
    "F254: PipelineTmaUmma: cta_layout_vmnk must have the modes (V, M, N, K), got": (
        "cluster",
        _kernel(
            lambda: pipeline.PipelineTmaUmma.create(
                num_stages=1, producer_group=1, consumer_group=1, tx_count=16, cta_layout_vmnk=cute.make_layout(2)
            )
        ),
    ),
    "F251: cute.nvgpu.tcgen05.make_tmem_copy: atom must be a load or store of tensor memory": (
        "atom",
        _kernel(
            lambda: tcgen05.make_tmem_copy(
                cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cute.Float32),
                cute.make_rmem_tensor((4,), cute.Float32),
            )
        ),
    ),
}  # fmt: skip
"""Message -> a name, and the refused request."""


@pytest.mark.parametrize("message", REFUSED, ids=lambda message: REFUSED[message][0])
def test_refused_requests(message: str) -> None:
    with pytest.raises(KernelTypeError) as raised:
        REFUSED[message][1]()
    assert f"{raised.value.code}: {raised.value.message}".startswith(message)


def test_an_allocator_of_a_pair_needs_a_barrier() -> None:
    with pytest.raises(UsageError, match="is_two_cta needs two_cta_tmem_dealloc_mbar_ptr, a pointer to an Int64"):
        _kernel(lambda: utils.TmemAllocator(_slot(), pipeline.NamedBarrier(1, 128), is_two_cta=True))()


def test_shared_layouts_of_a_pair_hold_the_part_of_a_block() -> None:
    k = tcgen05.OperandMajorMode.K
    mma = blackwell.make_trivial_tiled_mma(cute.Float16, k, k, cute.Float32, tcgen05.CtaGroup.TWO, (256, 64))
    assert mma.size == 2 and str(mma.thr_id) == "2:1"
    assert mma.partition_shape_C((256, 64)) == ((128, 64), 1, 1)
    a = blackwell.make_smem_layout_a(mma, (256, 64, 64), cute.Float16, 2)
    assert str(a.outer) == "((128,16),1,4,(1,2)):((64,1),8192,16,(0,8192))"
    b = blackwell.make_smem_layout_b(mma, (256, 64, 64), cute.Float16, 2)
    assert str(b.outer) == "((32,16),1,4,(1,2)):((64,1),2048,16,(0,2048))"


ROW, COLUMN = utils.LayoutEnum.ROW_MAJOR, utils.LayoutEnum.COL_MAJOR


@pytest.mark.parametrize(
    ("tile", "is_pair", "layout", "dtype", "source", "want"),
    [
        ((128, 256), True, ROW, cute.Float16, None, "(128, 32)"),
        ((128, 64), False, COLUMN, cute.Float32, None, "(128, 32)"),
        ((64, 128), False, ROW, cute.Float16, None, "(64, 64)"),
        ((64, 128), True, ROW, cute.Float16, None, "(64, (32,2):(1,64))"),
        ((128, 128), False, ROW, cute.Float16, (ROW, cute.Float16), "(128, 32)"),
        ((128, 256), False, ROW, cute.Float16, (ROW, cute.Float16), "(128, 64)"),
        ((128, 256), False, ROW, cute.Float32, (ROW, cute.Float32), "(128, 32)"),
        ((128, 48), False, ROW, cute.Float16, None, "(128, 48)"),
    ],
)
def test_epilogue_tiles(
    tile: tuple[int, int], is_pair: bool, layout: utils.LayoutEnum, dtype: type[cute.Numeric],
    source: tuple[utils.LayoutEnum, type[cute.Numeric]] | None, want: str,
) -> None:  # fmt: skip
    more = {} if source is None else {"layout_c": source[0], "elem_ty_c": source[1]}
    m, n = blackwell.compute_epilogue_tile_shape(tile, is_pair, layout, dtype, **more)
    assert f"({m}, {n})" == want


@pytest.mark.parametrize(
    ("rows", "is_pair", "columns", "dtype", "want"),
    [
        (128, False, 32, cute.Float32, "f32, 32x32b, x32"),
        (128, True, 48, cute.Float32, "f32, 32x32b, x16"),
        (64, False, 64, cute.Float32, "f32, 16x256b, x8"),
        (64, True, 64, cute.Float32, "f32, 32x32b, x32"),
        (128, False, 32, cute.Float16, "f16, 32x32b, x16, pack"),
    ],
)
def test_loads_of_epilogue_tiles(rows: int, is_pair: bool, columns: int, dtype: type[cute.Numeric], want: str) -> None:
    made = blackwell.get_tmem_load_op((rows, 128), ROW, cute.Float16, dtype, (rows, columns), is_pair)
    assert str(made.type) == f"!cute_nvgpu.atom.tmem_load<{want}>"


@pytest.mark.parametrize("blocks", [1, 2])
def test_loads_of_clusters(blocks: int) -> None:
    group = tcgen05.CtaGroup(blocks)
    thr_id = cute.make_layout(blocks)
    several = cpasync.CopyBulkTensorTileG2SMulticastOp(group)
    for atom in (blackwell.cluster_shape_to_tma_atom_A, blackwell.cluster_shape_to_tma_atom_B):
        assert atom((2, 1), thr_id) == several
    if blocks == 1:
        assert blackwell.cluster_shape_to_tma_atom_A((1, 1), thr_id) == cpasync.CopyBulkTensorTileG2SOp()


def test_columns_are_counted_on_the_host() -> None:
    found: list[int] = []

    @cute.kernel
    def kernel() -> None:
        pass

    @cute.jit
    def host(x: cute.Tensor) -> None:
        mma = cute.make_tiled_mma(tcgen05.MmaF16BF16Op(cute.Float16, cute.Float32, (128, 96, 16)))
        found.append(utils.get_num_tmem_alloc_cols(mma.make_fragment_C(mma.partition_shape_C((128, 96)))))
        with pytest.raises(KernelTypeError, match="can only be used in a kernel"):
            cute.make_tiled_mma(cute.nvgpu.warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 8, 16))).make_fragment_C(
                (4, 1, 1)
            )
        kernel().launch(grid=1, block=32)

    with cute.target("sm_100a"):
        host(np.zeros(4, np.float32), device="cpu")
    assert found == [128]


def test_an_epilogue_tile_of_few_columns() -> None:
    with pytest.raises(UsageError, match="the tile has 4 columns; use at least 8"):
        blackwell.compute_epilogue_tile_shape((128, 4), False, ROW, cute.Float16)


def test_columns_of_allocations() -> None:
    found: list[int] = []

    @cute.kernel
    def kernel() -> None:
        for m, n in ((128, 32), (128, 96), (64, 256)):
            op = tcgen05.MmaF16BF16Op(cute.Float16, cute.Float32, (m, n, 16))
            mma = cute.make_tiled_mma(op)
            acc = mma.make_fragment_C(mma.partition_shape_C((m, n)))
            found.append(utils.get_num_tmem_alloc_cols(acc))
            found.append(utils.get_num_tmem_alloc_cols([acc, acc], rounding=False))

    cute.trace(kernel, grid=1, block=128, chip="sm_100a")
    assert found == [32, 64, 128, 192, 256, 512]


def test_other_chips_are_named() -> None:
    with cute.target("sm_90a"), pytest.raises(KernelTypeError, match=r"needs .*sm_100.*, but the target is sm_90a"):

        @cute.kernel
        def kernel() -> None:
            cute.arch.alloc_tmem(32, _slot())

        cute.trace(kernel, grid=1, block=32, chip="sm_90a")
