"""Hopper convolutions in the language: GEMMs whose rows are pixels, by im2col TMA, mbarriers and wgmma.

The kernel is that of :mod:`cute_dialect.kernels.gemm.hopper`, with the same consumers, epilogues and stores; its
producer brings columns of pixels (:class:`~cute_dialect.kernels.conv.columns.Columns`) where a GEMM's brings rows of A.
A step of K is 64 channels (of 16 bits) of one tap: TMA moves all pixels of a tile by the tap's offset and fills in
zeros for the padding, so that the image is never copied.

    fprop    Y (N P Q, K)  = X (pixels, taps and channels)        F (K, taps and channels)^T
    dgrad    X (N H W, C)  = Y (pixels, taps and results)         F (C, taps and results)^T

Arrays are given the contiguous mode first, as TMA wants images: (C, W, H, N).

    launch(x, f, y, config=ConvConfig(GemmConfig(), Window((3, 3), (1, 1), (1, 1))))

>>> from cute_dialect.kernels.conv.config import Window
>>> from cute_dialect.kernels.gemm.config import GemmConfig
>>> "wgmma<64x256x16" in conv_text(ConvConfig(GemmConfig(), Window((3, 3), (1, 1), (1, 1))))
True
"""

# Operators and attributes are those of values in a trace.
# pyright: basic, reportOptionalMemberAccess=false

from math import prod
from typing import Any

import cute_dialect.lang as cute
from cute_dialect.kernels.conv.columns import Columns, Filter, Grid, Steps
from cute_dialect.kernels.conv.config import DGRAD, FPROP, ConvConfig
from cute_dialect.kernels.gemm.elements import number
from cute_dialect.kernels.gemm.epilogue import Addends
from cute_dialect.kernels.gemm.fused import Fused
from cute_dialect.kernels.gemm.hopper import REGISTERS, ROLES, WORK, Loads, work_of
from cute_dialect.kernels.gemm.host import arguments_of, load_map, ring_of, store_map, store_widths
from cute_dialect.kernels.gemm.parts import Operand, Products, Scales, Shared, Tiles
from cute_dialect.kernels.gemm.result import BUFFER, Result
from cute_dialect.lang import hopper, pipeline, utils
from cute_dialect.lang.nvgpu import cpasync, warpgroup

__all__ = ["conv_text", "launch"]


@cute.jit
def launch(
    image: cute.Tensor, filter: cute.Tensor, result: cute.Tensor, workspace: cute.Tensor | None = None,
    flags: cute.Tensor | None = None, counters: cute.Tensor | None = None, source: cute.Tensor | None = None,
    bias: cute.Tensor | None = None, alpha: cute.Float32 | None = None, beta: cute.Float32 | None = None,
    operands: Any = None, config: cute.Constexpr[Any] = None,
):  # fmt: skip
    """Launch the kernel of a configuration.

    ``image``: (C, W, …, N); ``filter``: (K, C, taps), for gradients of images (C, K, taps), or (K, taps and channels
    [, groups]) where they are flat; ``result``: (pixels, K [, groups]); what stands behind is for those that want it.
    """
    config.check()
    c, window = config.base, config.window
    addends = Addends(source, bias, alpha, beta, operands)
    shared = Shared(workspace, counters if flags is None else flags)
    c.epilogue.check_shapes(result, addends)
    if c.epilogue.reduces:
        addends = addends._replace(extents=(result.shape[0], result.shape[1]))
        c.epilogue.check_parts(result.shape[1], addends, c.part)
    m, n, k = c.tile
    channels, *extents, images = image.shape
    rows = _rows(config, extents)
    assert result.shape[0] == images * prod(rows), "the result must have a row for each pixel"
    assert filter.shape[0] == result.shape[1], "the filter must have as many rows as the result has columns"
    blocks = cute.ceil_div(channels, config.width)
    if config.flat:
        if config.groups:
            blocks = cute.ceil_div(channels // filter.shape[2], config.width)
        assert filter.shape[1] == blocks * (config.width * prod(window.taps)), "the filter must have all taps"
    else:
        assert filter.shape[1] == channels, "the filter and the image must have the same channels"
        assert filter.shape[2] == prod(window.taps), "the filter must have all taps"
    a_kind = number(c.element)
    mma = hopper.make_trivial_tiled_mma(
        a_kind, a_kind, cute.nvgpu.OperandMajorMode.K, hopper.major(filter), number(c.sums), (c.sharers, 1, 1), (64, n)
    )
    rings = _columns_ring(config, (m, k), a_kind), ring_of(filter, (n, k), c)
    lower, upper = config.corners
    tma_a = cpasync.make_im2col_tma_atom(
        cpasync.CopyBulkTensorIm2colG2SOp(), image, channels=config.width, pixels=m // c.cluster_n, lower=lower[::-1],
        upper=upper[::-1], pixel_strides=None if config.kind == DGRAD else window.strides[::-1],
        swizzle=0 if config.width * c.bits == 128 else config.width * c.bits // 8,
    )  # fmt: skip
    of_filter = c._replace(batch=not config.flat or config.groups)
    tma_b = load_map(of_filter, filter, (n, k), c.cluster_m)
    tmas_c = {width: store_map(c, result, width) for width in store_widths(config.gemm)}
    raster = utils.GroupedRaster(
        cute.ceil_div(result.shape[:2], (m * c.cluster_m, n * c.cluster_n)), c.group, serpentine=c.serpentine,
        cluster=c.cluster, sms=c.at_once, matrices=result.shape[2] if c.batch else None,
    )  # fmt: skip
    k_tiles = cute.ceil_div(blocks * prod(window.taps), config.boxes)
    grid = WORK[work_of(config.gemm)].grid(raster, k_tiles, config.parts)
    pixels = Grid(tuple(rows[::-1]), blocks)
    conv(tma_a, tma_b, tmas_c, mma, rings, raster, pixels, k_tiles, shared, addends, config).launch(
        grid=grid, block=c.threads, cluster=(c.cluster, 1, 1)
    )


def _rows(config: ConvConfig, extents: Any) -> list[Any]:
    """Return the extents of the pixels that are rows, of an image's, which are W first."""
    w, (lower, upper) = config.window, config.corners
    if config.kind == DGRAD:
        return [extent + (high - low) for extent, low, high in zip(reversed(extents), lower, upper)]
    return [
        (extent + (before + after - d * (taps - 1) - 1)) // u + 1
        for extent, taps, before, after, u, d in zip(
            reversed(extents), w.taps, w.before, w.after, w.strides, w.dilations
        )
    ]


def _columns_ring(config: ConvConfig, tile: tuple[int, int], kind: Any) -> Any:
    """Return the layout of the image's stages: lines of as many channels as a load brings."""
    kinds = warpgroup.SmemLayoutAtomKind
    line = {1024: kinds.K_SW128, 512: kinds.K_SW64, 256: kinds.K_SW32, 128: kinds.K_INTER}
    atom = warpgroup.make_smem_layout_atom(line[config.width * config.base.bits], kind)
    return cute.tile_to_shape(atom, (*tile, config.base.stages), order=(0, 1, 2))


@cute.kernel(min_blocks=1)
def conv(
    tma_a: Any, tma_b: Any, tmas_c: dict[int, Any], mma: cute.TiledMma, rings: Any, raster: utils.GroupedRaster,
    grid: Grid, k_tiles: cute.Int32, shared: Shared, addends: Addends, config: cute.Constexpr[Any],
):  # fmt: skip
    """Compute this block's tiles."""
    c = config.base
    _, n, k = c.tile
    warp_group, warp = cute.arch.warpgroup_idx(), cute.arch.warp_idx() % 4
    tiles = Tiles(c, raster)
    work = WORK[work_of(config.gemm)](config.gemm, tiles, k_tiles, shared)
    if cute.arch.thread_idx().x == 0:
        for atom in (tma_a, tma_b[0], *(atom for atom, _ in tmas_c.values())):
            cpasync.prefetch_descriptor(atom)

    # Shared memory: the stages of A and B, buffers for 64 rows of C each; then the barriers full and empty.
    sA, sB = (
        cute.smem_tensor(atom.value_type, layout.outer, 1024, layout.inner)
        for atom, layout in ((tma_a, rings[0]), (tma_b[0], rings[1]))
    )
    staging = cute.arch.alloc_smem(cute.Uint8, c.consumers * c.buffers * BUFFER, alignment=1024)
    of_a, of_b = tiles.sharers()
    steps = Steps(config, grid)
    a = Columns(config, tma_a, sA, grid, steps, c.cluster_n, tiles.column, of_a if c.cluster_n > 1 else None)
    brought = Operand(
        tma_b, sB, (n, k), c.cluster_m, tiles.row, k_major=c.major_b == "k", mask=of_b,
        batch=not config.flat or config.groups,
    )  # fmt: skip
    b = Filter(config, brought, steps)
    pipe = pipeline.PipelineTmaAsync.create(
        num_stages=c.stages, producer_group=1,
        consumer_group=pipeline.CooperativeGroup(pipeline.Agent.WarpGroup, c.sharing * c.sharers),
        tx_count=c.stage_bytes, cta_layout_vmnk=cute.make_layout((1, c.cluster_m, c.cluster_n, 1)), defer_sync=True,
    )  # fmt: skip
    producer, consumer = pipe.make_participants()
    loads = Loads(c, a, b, producer, tiles, k_tiles)
    blocks = cute.make_layout(c.cluster)
    pipeline.pipeline_init_arrive(blocks, is_relaxed=True)
    if c.cluster == 1:
        pipeline.pipeline_init_wait(blocks)
    loads.early(work.first)
    if c.cluster > 1:
        pipeline.pipeline_init_wait(blocks)

    # Warp group 0 produces, the others consume.
    if warp_group == 0:
        if c.consumers in REGISTERS:
            cute.arch.setmaxregister_decrease(REGISTERS[c.consumers][0])
        if warp == 0 and cute.arch.elect_one():
            work.produce(loads)
    else:
        if c.consumers in REGISTERS:
            cute.arch.setmaxregister_increase(REGISTERS[c.consumers][1])
        group = warp_group - 1
        products = Products(c, mma, sA, sB, 0 if c.schedule == "pingpong" else group * 128, Scales())
        fused = Fused(c.epilogue, addends, pairs=True, whole=number(c.output).is_integer, batch=c.batch)
        result = Result(c, tmas_c, staging, products.sums, group, fused)
        work.consume(ROLES[c.schedule](c, consumer, products, result, tiles, k_tiles))
    if c.cluster > 1:
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()


def conv_text(config: ConvConfig) -> str:
    """Return the kernel ``@conv`` and its host function ``@launch`` as text.  Raises ValueError for a bad
    configuration.
    """
    config.check()
    c, rank = config.base, len(config.window.taps)
    kind, d = number(c.element), f"?{{div={128 // c.bits}}}"
    image = f"({','.join('?' * (rank + 2))}):({','.join(['1'] + [d] * (rank + 1))})"
    if config.flat:
        filter = f"(?,?,?):({d},1,{d})" if config.groups else f"(?,?):({d},1)"
    else:
        filter = f"(?,?,?):({d},1,{d})" if config.kind == FPROP else f"(?,?,?):(1,{d},{d})"
    e = f"?{{div={128 // number(c.output).width}}}"
    result = f"(?,?,?):({e},1,{e})" if c.batch else f"(?,?):({e},1)"
    arrays = [(kind, image), (kind, filter), (number(c.output), result)]
    tensors = [cute.Tensor[element, layout, "align<16>"] for element, layout in arrays]
    return cute.trace(launch, *tensors, **arguments_of(config.gemm), config=config).mlir(aliases=True, comments=True)
