"""Implicit-GEMM convolutions on Hopper, whose rows are pixels, by im2col TMA, mbarriers and wgmma.

The kernel is that of :mod:`cute_dialect.kernels.gemm.hopper`, with the same consumers, epilogues and stores. Its
producer loads pixels (:class:`~cute_dialect.kernels.conv.im2col_loads.Columns`) instead of rows of A. A K step is 64
channels (of 16 bits) of one tap. TMA shifts the pixels of a tile by the offset of the tap and fills the padding with
zeros, so that no im2col matrix is written.

    fprop    Y (N P Q, K)  = X (pixels, taps and channels)        F (K, taps and channels)^T
    dgrad    X (N H W, C)  = Y (pixels, taps and results)         F (C, taps and results)^T
    wgrad    F (K, C R S)  = Y (K, pixels)                        X (channels and taps, pixels)^T

Groups are matrices of a batch. In images their channels are adjacent.

Arrays have the contiguous mode first, as TMA expects of images: (C, W, H, N).

    launch(x, f, y, config=ConvConfig(GemmConfig(), Window((3, 3), (1, 1), (1, 1))))

>>> from cute_dialect.kernels.conv.config import Window
>>> from cute_dialect.kernels.gemm.config import GemmConfig
>>> "wgmma<64x256x16" in conv_text(ConvConfig(GemmConfig(), Window((3, 3), (1, 1), (1, 1))))
True
"""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic, reportOptionalMemberAccess=false

from math import prod
from typing import Any

import cute_dialect.lang as cute
from cute_dialect.kernels.common.elements import factors, number
from cute_dialect.kernels.common.traced_text import printed
from cute_dialect.kernels.conv.config import DGRAD, WGRAD, ConvConfig
from cute_dialect.kernels.conv.im2col_loads import Chunks, Columns, Filter, Grid, Pixels, Steps
from cute_dialect.kernels.conv.stores import (
    GroupPlaces,
    PixelPlaces,
    PixelResult,
    ResidueCooperative,
    ResidueLoads,
    ResidueWork,
    TapPlaces,
    WeightResult,
)
from cute_dialect.kernels.epilogue.combination import Addends
from cute_dialect.kernels.epilogue.emit import Fused
from cute_dialect.kernels.gemm.block_scaling import Scales
from cute_dialect.kernels.gemm.epilogue_store import Result
from cute_dialect.kernels.gemm.hopper import ROLES, WORK, Loads, allocate, ring_between, take_roles, work_of
from cute_dialect.kernels.gemm.host import arguments_of, load_map, ring_of, store_map, store_widths
from cute_dialect.kernels.gemm.mainloop import Operand, Products, Shared, Tiles
from cute_dialect.lang import hopper, pipeline, utils
from cute_dialect.lang.nvgpu import cpasync, warpgroup


@cute.jit
def launch(
    image: cute.Tensor, filter: cute.Tensor, result: cute.Tensor, workspace: cute.Tensor | None = None,
    flags: cute.Tensor | None = None, counters: cute.Tensor | None = None, source: cute.Tensor | None = None,
    bias: cute.Tensor | None = None, alpha: cute.Float32 | None = None, beta: cute.Float32 | None = None,
    operands: Any = None, config: cute.Constexpr[Any] = None,
):  # fmt: skip
    """Launch the kernel of a configuration.

    Args:
        image: (C, W, …, N).
        filter: (K, C, taps), or (C, K, taps) for dgrad. If ``config.flat``, (K, taps and channels [, groups]).
        result: (pixels, K [, groups]).
        workspace: f32 scratch for partial accumulators (split-K, stream-K).
        flags, counters: Zeroed i32 semaphores of stream-K and split-K.
        source, bias, alpha, beta, operands: Arguments of the epilogue.
        config: The configuration.
    """
    config.check()
    c, window = config.base, config.window
    addends = Addends(source, bias, alpha, beta, operands)
    shared = Shared(workspace, counters if flags is None else flags)
    if not config.placed:
        c.epilogue.check_shapes(result, addends)
    if c.epilogue.reduces:
        addends = addends._replace(extents=(result.shape[0], result.shape[1]))
        c.epilogue.check_parts(result.shape[1], addends, c.part)
    m, n, k = c.tile
    channels, *extents, images = image.shape
    rows = _rows(config, extents)
    if config.kind == WGRAD:
        taps = Grid(tuple(rows[::-1]), cute.ceil_div(result.shape[1] if config.groups else channels, 64))
        _launch_weights(image, filter, result, taps, shared, addends, config)
        return
    if config.strided:
        tall, wide = images * prod(rows), result.shape[0]
        assert result.shape[-1] == images, "image and result must have the same number of images"
        for extent, seen, u, left in zip(result.shape[-2:0:-1], rows, window.strides, window.left):
            assert cute.ceil_div(extent, u) == seen, "the extents of the result must match the configuration"
            assert extent % u == left, "the extents of the result must match the configuration"
        addends = _addends(config, addends, None, None, (cute.size(result) // wide, filter.shape[0]))
    else:
        tall, wide = result.shape[0], result.shape[1]
        if config.groups:
            addends = _addends(config, addends, tall, wide, (tall, wide * result.shape[2]))
        assert tall == images * prod(rows), "the result must have one row per pixel"
    if config.strided:  # stores write 16 bytes at once
        assert filter.shape[0] <= wide, "the result must have one column per row of the filter"
    else:
        assert filter.shape[0] == wide, "the filter must have as many rows as the result has columns"
    blocks = cute.ceil_div(channels, config.width)
    if config.groups:
        blocks = cute.ceil_div(channels // result.shape[2], config.width)
    if config.flat:
        assert filter.shape[1] == blocks * (config.width * prod(window.taps)), "the filter must have the window's taps"
    else:
        assert filter.shape[1] == channels, "the filter and the image must have the same channels"
        assert filter.shape[2] == prod(window.taps), "the filter must have the window's taps"
    a_kind, b_kind = (number(e) for e in factors(c.element))
    mma = hopper.make_trivial_tiled_mma(
        a_kind, b_kind, cute.nvgpu.OperandMajorMode.K, hopper.major(filter), number(c.sums), (c.sharers, 1, 1), (64, n)
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
    stored = {} if config.strided else {width: store_map(c, result, width) for width in store_widths(config.gemm)}
    raster = utils.GroupedRaster(
        cute.ceil_div((tall, wide), (m * c.cluster_m, n * c.cluster_n)), c.group, serpentine=c.serpentine,
        cluster=c.cluster, sms=c.at_once,
        matrices=config.residues if config.strided else result.shape[2] if c.batch else None,
    )  # fmt: skip
    k_tiles = cute.ceil_div(blocks * prod(window.taps), config.boxes)
    grid = (
        raster.persistent_grid() if config.strided else WORK[work_of(config.gemm)].grid(raster, k_tiles, config.parts)
    )
    pixels = Grid(tuple(rows[::-1]), blocks)
    image_of = result if config.strided else None
    conv(tma_a, tma_b, stored, mma, rings, raster, pixels, k_tiles, shared, addends, image_of, config).launch(
        grid=grid, block=c.threads, cluster=(c.cluster, 1, 1)
    )


def _addends(config: ConvConfig, addends: Addends, rows: Any, columns: Any, whole: tuple[Any, Any]) -> Addends:
    """Check an epilogue's arguments against a D of size ``whole``, and return them with the extents that the kernel
    uses.

    These are ``rows`` and ``columns``, those of one group or of one tap.
    """
    epilogue = config.base.epilogue
    if not epilogue.active:
        return addends
    epilogue.check_extents(*whole, addends)
    return addends if rows is None else addends._replace(extents=(rows, columns))


def _launch_weights(
    image: Any, gradient: Any, result: Any, pixels: Grid, shared: Shared, addends: Addends, config: ConvConfig
) -> None:
    """Launch wgrad: ``gradient`` (K, pixels), ``result`` (K, C, taps)."""
    c, window = config.base, config.window
    m, n, k = c.tile
    rows = image.shape[-1] * prod(pixels.extents)
    assert gradient.shape[1] == rows, "the gradient must have one row per output pixel"
    assert gradient.shape[0] == result.shape[0], "both gradients must have the same number of filters"
    groups = result.shape[3] if config.groups else 1
    assert result.shape[1] * groups == image.shape[0], "the result and the image must have the same channels"
    if config.groups:
        assert gradient.shape[2] == groups, "both gradients must have the same number of groups"
    assert result.shape[2] == prod(window.taps), "the result must have the window's taps"
    kind, major = number(c.element), cute.nvgpu.OperandMajorMode.MN
    mma = hopper.make_trivial_tiled_mma(kind, kind, major, major, number(c.sums), (c.sharers, 1, 1), (64, n))
    of_columns = utils.LayoutEnum.COL_MAJOR
    rings = ring_of(gradient, (m, k), c), hopper.make_smem_layout_a(of_columns, (n, None, k), kind, c.stages)
    tma_b = cpasync.make_im2col_tma_atom(
        cpasync.CopyBulkTensorIm2colG2SOp(), image, channels=64, pixels=k, lower=window.lower[::-1],
        upper=window.upper[::-1], pixel_strides=window.strides[::-1], swizzle=128,
    )  # fmt: skip
    whole = result.shape[0] * groups, result.shape[1] * result.shape[2]
    addends = _addends(config, addends, result.shape[0], result.shape[1], whole)
    tma_a = load_map(c, gradient, (m, k), c.cluster_n)
    stored = {width: store_map(c._replace(batch=True), result, width) for width in store_widths(config.gemm)}
    columns = pixels.blocks * (64 * prod(window.taps))
    raster = utils.GroupedRaster(
        cute.ceil_div((result.shape[0], columns), (m * c.cluster_m, n * c.cluster_n)), c.group,
        serpentine=c.serpentine, cluster=c.cluster, sms=c.at_once, matrices=groups if config.groups else None,
    )  # fmt: skip
    k_tiles = cute.ceil_div(rows, k)
    grid = WORK[work_of(config.gemm)].grid(raster, k_tiles, config.parts)
    conv(tma_a, tma_b, stored, mma, rings, raster, pixels, k_tiles, shared, addends, None, config).launch(
        grid=grid, block=c.threads, cluster=(c.cluster, 1, 1)
    )


def _rows(config: ConvConfig, extents: Any) -> list[Any]:
    """Return the extents of the pixels that are GEMM rows. ``extents`` are those of the image, W first."""
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
    """Return the shared-memory layout of the image's stages. A line has the channels of one load."""
    kinds = warpgroup.SmemLayoutAtomKind
    line = {1024: kinds.K_SW128, 512: kinds.K_SW64, 256: kinds.K_SW32, 128: kinds.K_INTER}
    atom = warpgroup.make_smem_layout_atom(line[config.width * config.base.bits], kind)
    return cute.tile_to_shape(atom, (*tile, config.base.stages), order=(0, 1, 2))


@cute.kernel(min_blocks=1)
def conv(
    tma_a: Any, tma_b: Any, tmas_c: dict[int, Any], mma: cute.TiledMma, rings: Any, raster: utils.GroupedRaster,
    grid: Grid, k_tiles: cute.Int32, shared: Shared, addends: Addends, image: Any, config: cute.Constexpr[Any],
):  # fmt: skip
    """Compute this block's tiles. ``image`` is the result of a strided dgrad."""
    c = config.base
    m, n, k = c.tile
    tiles = Tiles(c, raster)
    steps = Steps(config, grid)
    walked: Any = (lambda place: steps.steps(place.matrix)) if config.strided else k_tiles
    work = (ResidueWork if config.strided else WORK[work_of(config.gemm)])(config.gemm, tiles, walked, shared)
    atoms = [x[0] if isinstance(x, tuple) else x for x in (tma_a, tma_b)]
    if cute.arch.thread_idx().x == 0:
        for atom in (*atoms, *(atom for atom, _ in tmas_c.values())):
            cpasync.prefetch_descriptor(atom)

    sA, sB, staging = allocate(c, atoms, rings)
    of_a, of_b = tiles.sharers()
    if config.kind == WGRAD:
        a = Operand(tma_a, sA, (m, k), c.cluster_n, tiles.column, k_major=False, mask=of_a, batch=config.groups)
        channels = tmas_c[next(iter(tmas_c))][1].shape[1] if config.groups else 0
        b = Chunks(config, tma_b, sB, grid, steps, channels)
    else:
        a = Columns(config, tma_a, sA, grid, steps, c.cluster_n, tiles.column, of_a if c.cluster_n > 1 else None)
        brought = Operand(
            tma_b, sB, (n, k), c.cluster_m, tiles.row, k_major=c.major_b == "k", mask=of_b,
            batch=not config.flat or config.groups,
        )  # fmt: skip
        b = Filter(config, brought, steps)
    producer, consumer = ring_between(c)
    loads = (ResidueLoads if config.strided else Loads)(c, a, b, producer, tiles, walked)
    blocks = cute.make_layout(c.cluster)
    pipeline.pipeline_init_arrive(blocks, is_relaxed=True)
    if c.cluster == 1:
        pipeline.pipeline_init_wait(blocks)
    loads.early(work.first)
    if c.cluster > 1:
        pipeline.pipeline_init_wait(blocks)

    def consume(group: Any) -> None:
        products = Products(c, mma, sA, sB, 0 if c.schedule == "pingpong" else group * 128, Scales())
        places: Any = None
        if config.strided:
            places = PixelPlaces(image, Pixels(grid), steps)
        elif config.placed:
            places = (TapPlaces if config.kind == WGRAD else GroupPlaces)(steps, addends.extents)
        whole = number(c.output).is_integer
        fused = Fused(c.epilogue, addends, pairs=True, whole=whole, batch=False, places=places)
        given = staging, products.sums, group, fused
        if config.strided:
            result = PixelResult(c, image, Pixels(grid), steps, *given)
        elif config.kind == WGRAD:
            result = WeightResult(config, steps, tmas_c, *given)
        else:
            result = Result(c, tmas_c, *given)
        role = ResidueCooperative if config.strided else ROLES[c.schedule]
        work.consume(role(c, consumer, products, result, tiles, walked))

    take_roles(c, lambda: work.produce(loads), consume)


@printed
def conv_text(config: ConvConfig) -> cute.Compiled:
    """Trace the kernel ``@conv`` and its host function ``@launch``.

    Raises:
        ValueError: if the configuration is not supported.
    """
    config.check()
    c, rank = config.base, len(config.window.taps)
    (kind, other), d = (number(e) for e in factors(c.element)), f"?{{div={128 // c.bits}}}"
    image = f"({','.join('?' * (rank + 2))}):({','.join(['1'] + [d] * (rank + 1))})"
    if config.flat:
        filter = f"(?,?,?):({d},1,{d})" if config.groups else f"(?,?):({d},1)"
    else:
        filter = f"(?,?,?):({d},1,{d})" if c.major_b == "k" else f"(?,?,?):(1,{d},{d})"
    e = f"?{{div={128 // number(c.output).width}}}"
    result = f"(?,?,?):({e},1,{e})" if c.batch else f"(?,?):({e},1)"
    if config.strided:
        result = image.replace(d, e)
    elif config.kind == WGRAD:
        group = ",?" * config.groups
        filter = f"(?,?{group}):(1,{d}{f',{d}' * config.groups})"
        result = f"(?,?,?{group}):({e},1,{e}{f',{e}' * config.groups})"
    arrays = [(kind, image), (other, filter), (number(c.output), result)]
    tensors = [cute.Tensor[element, layout, "align<16>"] for element, layout in arrays]
    one = config._replace(base=c._replace(batch=False)).gemm  # D is one matrix over all groups or pixels
    return cute.trace(launch, *tensors, **arguments_of(one), config=config)
