"""Multi-head latent attention (MLA) for decoding on Hopper: all heads share one key head, whose values are its columns.

A row of the cache has 576 columns: the latent vector of 512 columns, which is key and value of all heads, and 64 rotary
columns of the key. A block takes 64 rows of Q, which are (query, head) pairs, and loads each tile of 64 keys once for
both matmuls: ``S = Q K^T`` over 576 columns, and ``O += P V`` over 512. Two consumer warpgroups share the work
(:mod:`.latent_consumer`).

The time is bound by memory for up to about 64 (query, head) pairs of a sequence, and by the tensor cores for more.

    launch(q, cache, out, …)                  # (S, D, H, B) views; the cache has one head
"""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic, reportOptionalMemberAccess=false

from typing import Any

import cute_dialect.lang as cute
from cute_dialect.kernels.attention.latent_config import LATENT, PARTS, LatentConfig
from cute_dialect.kernels.attention.latent_consumer import LatentConsumer, LatentOperands
from cute_dialect.kernels.attention.latent_producer import BOX, CacheSlots, LatentGatherProducer, LatentProducer
from cute_dialect.kernels.attention.producer import load_map, start_block
from cute_dialect.kernels.attention.tiles import Problem, Tiles
from cute_dialect.kernels.common.elements import number
from cute_dialect.kernels.common.traced_text import printed
from cute_dialect.lang import hopper, pipeline, utils
from cute_dialect.lang.nvgpu import cpasync, warpgroup
from cute_dialect.lang.values.signature_types import LayoutLike

DEFAULT = LatentConfig()

_REGISTERS = (40, 232)
"""Registers per thread of the producer warpgroup and of a consumer."""


@cute.jit
def launch(
    Q: cute.Tensor,
    KV: cute.Tensor,
    out: cute.Tensor,
    lse: cute.Tensor | None,
    scale: cute.Float32,
    parts: cute.Int32 | None = None,
    used: cute.Tensor | None = None,
    table: cute.Tensor | None = None,
    config: cute.Constexpr[LatentConfig] = DEFAULT,
):
    """Launch the kernel of a configuration.

    Args:
        Q, KV, out: (S, D, H, B) tensors. KV has one head, and one matrix per page if there are pages.
        lse: Log-sum-exp of each row, (S, H, B), or None.
        scale: Factor of the scores, times ``log2(e)``; above 0.
        parts: Number of slices of the keys (split-KV). The f32 ``out`` and ``lse`` then have ``parts`` times as many
            sequences, those of the first slice first.
        used: Number of keys of each sequence, or None.
        table: Pages of each sequence, (pages, B), or None.
        config: The configuration.
    """
    c = config
    c.check()
    dtype, modes, source = number(c.element), warpgroup.OperandMajorMode, warpgroup.OperandSource
    one, two, tile, values = (1, 1, 1), (1, c.consumers, 1), (64, c.tile_n), (64, LATENT // c.consumers)
    mmas = tuple(
        [
            hopper.make_trivial_tiled_mma(dtype, dtype, modes.K, major, cute.Float32, layout, shape, a)
            for major, layout, shape, a in (
                (modes.K, one, tile, source.SMEM),
                (modes.K, one, tile, source.RMEM),
                (modes.MN, two, values, source.RMEM),
                (modes.MN, two, values, source.SMEM),
            )
        ]
    )
    rows = utils.LayoutEnum.ROW_MAJOR
    rings = (
        hopper.make_smem_layout_a(rows, (c.tile_m, None, LATENT), dtype, 1),
        hopper.make_smem_layout_b(rows, (None, c.tile_n, c.head), dtype, 2),
        hopper.make_smem_layout_a(rows, (c.tile_m, None, c.tile_n), dtype, 2),
    )
    box = hopper.make_smem_layout_b(rows, (None, c.rows_loaded, BOX), dtype, 1)
    tma = load_map(KV, box, (c.rows_loaded, BOX), promotion=256)
    queries, heads, batch = Q.shape[0], Q.shape[2], Q.shape[3]
    keys = KV.shape[0] * (table.shape[0] if c.page else 1)
    tiles = cute.ceil_div(queries * heads, c.tile_m)
    problem = Problem(
        queries,
        keys,
        1,
        heads,
        batch,
        (None, None),
        0,
        0,
        tiles,
        Problem.units_of(c.plain, tiles, 1, batch, parts),
        parts,
        used,
        0 if c.used else None,
        table=table,
    )
    mla((KV if c.gathers else tma), rings, mmas, Q, out, lse, problem, scale, config).launch(
        grid=Tiles(c.plain, problem).grid(), block=c.threads, pdl=True
    )


@cute.kernel(min_blocks=1)
def mla(
    cache: Any,
    rings: tuple[LayoutLike, ...],
    mmas: tuple[cute.TiledMma, ...],
    Q: cute.Tensor,
    out: cute.Tensor,
    lse: cute.Tensor | None,
    problem: Problem,
    scale: cute.Float32,
    config: cute.Constexpr[LatentConfig],
):
    c, tiles = config, Tiles(config.plain, problem)
    warp_group, warp = cute.arch.warpgroup_idx(), cute.arch.warp_idx() % 4
    if cute.arch.thread_idx().x == 0 and not c.gathers:
        cpasync.prefetch_descriptor(cache[0])
    sQ, sKV, sP = (cute.smem_tensor(number(c.element), ring.outer, 1024, ring.inner) for ring in rings)
    most = cute.smem_tensor(cute.Float32, cute.make_layout((c.tile_m, 2)), 16)
    total = cute.smem_tensor(cute.Float32, cute.make_layout((2, 128, 2), stride=(128, 1, 256)), 16)
    pipes = [[_pipe(c, columns) for columns in PARTS] for _ in range(2)]
    own = start_block(c.clears)
    if warp_group == 0:
        cute.arch.setmaxregister_decrease(_REGISTERS[0])
        slots = CacheSlots(pipes, 1)
        if c.gathers:
            LatentGatherProducer(c, tiles, cache, sKV, slots).run()
        elif c.clears:
            if warp == 0:
                LatentProducer(c, tiles, cache, sKV, slots, own).run()
        elif warp == 0 and cute.arch.elect_one():
            LatentProducer(c, tiles, cache, sKV, slots).run()
    else:
        cute.arch.setmaxregister_increase(_REGISTERS[1])
        operands = LatentOperands(sQ, sKV, sP, most, total, *mmas)
        if warp_group == 1:
            LatentConsumer(tiles, 0, operands, CacheSlots(pipes, 0), Q, out, lse, scale).run()
        else:
            LatentConsumer(tiles, 1, operands, CacheSlots(pipes, 0), Q, out, lse, scale).run()


def _pipe(c: LatentConfig, columns: int) -> pipeline.PipelineAsync:
    """Return the pipeline of a part of a tile of the cache, which one consumer releases."""
    if c.gathers:
        return pipeline.PipelineCpAsync.create(num_stages=1, producer_group=128, consumer_group=128, defer_sync=True)
    consumer = pipeline.CooperativeGroup(pipeline.Agent.WarpGroup, 1)
    return pipeline.PipelineTmaAsync.create(
        num_stages=1, producer_group=1, consumer_group=consumer, tx_count=2 * c.tile_n * columns, defer_sync=True
    )


def layouts_of(c: LatentConfig) -> dict[str, Any]:
    """Return the annotations of the launch arguments."""
    layout = "(?,?,?,?):(?{div=8},1,?{div=8},?{div=8})"
    matrix = cute.Tensor[number(c.element), layout, "align<16>"]
    return {
        "Q": matrix,
        "KV": matrix,
        "out": cute.Tensor[cute.Float32, layout, "align<16>"] if c.split else matrix,
        "lse": cute.Tensor[cute.Float32, "(?,?,?):(?,?,?)"] if c.lse else None,
        "scale": cute.Float32,
        "parts": cute.Int32 if c.split else None,
        "used": cute.Tensor[cute.Int32, "?:1"] if c.used else None,
        "table": cute.Tensor[cute.Int32, "(?,?):(?,?)"] if c.page else None,
    }


@printed
def latent_text(config: LatentConfig | None = None) -> cute.Compiled:
    """Trace the kernel ``@mla`` and its host function ``@launch``.

    The launch takes Q, the cache, the result, then those parameters of :func:`launch` that the configuration uses.

    Raises:
        ValueError: if the configuration is not supported.
    """
    c = DEFAULT if config is None else config
    c.check()
    return cute.trace(launch, **layouts_of(c), config=c)
