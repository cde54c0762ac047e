"""Backward of attention on Hopper: dq, dk and dv from q, k, v, out, lse and dout, without storing the scores.

Three kernels run one after the other. :func:`backward_launches` returns them with their operands::

    for launch in backward_launches(config):
        kernel = compile(launch.text(config)).kernel(launch.host)
        kernel(*[operands[name] for name in launch.operands])

Operands by name, in the order of a launch. A launch lists only those that the configuration uses.

============================  =========================================================================================
``q``, ``dq``                 (Sq, D, Hq, B) views in the element type; the head dimension is contiguous, and rows begin
                              at multiples of 16 bytes. Packed sequences have B = 1, and Sq counts the rows of all.
``out``, ``dout``             as ``q``
``k``, ``v``, ``dk``, ``dv``  (Sk, D, Hk, B) views, likewise
``lse``, ``dlse``             (Sq, Hq, B) views of f32: log-sum-exps of the forward pass, and their gradient
``stats``, ``dq_sum``,        uninitialized workspaces: C-contiguous arrays of the types and shapes that
``turns``, ``kv_sum``,        :meth:`.backward_config.BackwardConfig.workspaces` returns, at multiples of 16 bytes
``taken``
``of_queries``, ``of_keys``   (B + 1,) arrays of i32: boundaries of packed sequences
``queries``                   queries of a sequence; the largest number for packed sequences
``keys``                      keys of a sequence; the largest number for packed sequences
``parts``                     slices of the steps of a key tile; only read if the configuration is ``split``
``scale``                     factor of the scores
``captured 0``, …             inputs of the functions of scores: numbers, and arrays of any strides
``sums 0``, …                 f32 accumulators of the gradients of captured arrays, zeroed, for each of
                              :attr:`.backward_config.BackwardConfig.learned`
``q_num_blocks``, …           the arrays of :class:`.tiles.BlockLists` with queries and keys exchanged
``kv_num_blocks``, …          these arrays as they are, if the configuration is ``deterministic``; both must list the
                              same pairs of blocks
``state``, ``threshold``,     see :class:`.dropout.DropoutOperands`; only read if the configuration has ``dropout``
``kept``
``left``, ``right``           keys that a query sees before and after its own; only bounded sides are read
============================  =========================================================================================

The kernels write every element of dq, dk and dv, including those of rows without keys and keys without queries (0).
The caller handles empty arrays itself: each of B, Hq, Sq and Sk must be positive.
"""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic, reportOptionalMemberAccess=false

from collections.abc import Callable
from typing import Any, NamedTuple

import cute_dialect.lang as cute
from cute_dialect.kernels.attention.backward_config import BackwardConfig
from cute_dialect.kernels.attention.backward_consumer import BackwardConsumer
from cute_dialect.kernels.attention.backward_producer import BackwardProducer, DqWriter
from cute_dialect.kernels.attention.backward_rows import (
    Workspaces,
    begins_type,
    delta_text,
    dq_sum_type,
    dq_text,
    kv_sum_type,
    matrix_type,
    stats_type,
    taken_type,
    turns_type,
)
from cute_dialect.kernels.attention.backward_tiles import KeyProblem, KeyTiles, TileQueue
from cute_dialect.kernels.attention.dropout import DropoutOperands, dropout_operands, dropout_types
from cute_dialect.kernels.attention.producer import TmaMatrix, load_map, start_block
from cute_dialect.kernels.attention.score_graph import captured_types
from cute_dialect.kernels.attention.tiles import BlockLists
from cute_dialect.kernels.common.elements import number
from cute_dialect.kernels.common.traced_text import printed
from cute_dialect.lang import hopper, pipeline, utils
from cute_dialect.lang.nvgpu import cpasync, warpgroup
from cute_dialect.lang.values.signature_types import LayoutLike

DEFAULT = BackwardConfig()

_REGISTERS = (24, 240)
"""Registers per thread of the producer warpgroup and of a consumer."""

_LISTED = (40, 232)
"""Registers with a block mask, whose lists the producer and the writers read, too."""


class BackwardLaunch(NamedTuple):
    """One of the launches of the backward."""

    name: str  # name of the configuration and the kernel
    text: Callable[[BackwardConfig], str]  # its source, traced for a configuration
    host: str  # name of its host function
    operands: tuple[str, ...]  # names of the arguments of its host function


def backward_launches(c: BackwardConfig) -> tuple[BackwardLaunch, ...]:
    """Return the launches of a configuration, in order.

    >>> [launch.operands for launch in backward_launches(BackwardConfig())][2]
    ('dq_sum', 'dq', 'queries', 'scale')
    """
    turns = ("turns",) if c.deterministic else ()
    of_queries, of_keys = (("of_queries",), ("of_keys",)) if c.packed else ((), ())
    dlse = ("dlse",) if c.dlse else ()
    kv_sum, parts = (("kv_sum",), ("parts",)) if c.split else ((), ())
    taken = ("taken",) if c.dynamic else ()
    inputs = 0 if c.functions is None else len(c.functions.graph.inputs)
    captured = [f"captured {i}" for i in range(inputs)]
    first = ("out", "dout", "lse", *dlse, "stats", "dq_sum", *turns, *kv_sum, *taken, *of_queries, "queries")
    if c.query_reads:
        first = (*first, "keys", *captured)
    main = ("q", "k", "v", "dout", "stats", "dq_sum", *turns, *(kv_sum or ("dk", "dv")), *taken, *of_queries, *of_keys)
    numbers = ("queries", "keys", *parts, "scale", "left", "right")
    others = captured + [f"sums {i}" for i in c.learned]
    lists = (("q", "kv") if c.deterministic else ("q",)) if c.block_n else ()
    for x in lists:
        others += [f"{x}_num_blocks", f"{x}_indices", f"full_{x}_num_blocks", f"full_{x}_indices"]
    others += ["state", "threshold", "kept"] if c.dropout else []
    last = ("dq_sum", "dq", *of_queries, "queries", "scale")
    if c.split:
        last = ("dq_sum", "kv_sum", "dq", "dk", "dv", *of_queries, *of_keys, "queries", "keys", "scale")
    return (
        BackwardLaunch(f"{(c if c.query_reads else c.plain).name}-delta", delta_text, "launch_delta", first),
        BackwardLaunch(c.name, backward_text, "launch", (*main, *numbers, *others)),
        BackwardLaunch(f"{c.plain._replace(dynamic=False).name}-dq", dq_text, "launch_dq", last),
    )


@cute.jit
def launch(
    Q: cute.Tensor, K: cute.Tensor, V: cute.Tensor, dO: cute.Tensor, stats: cute.Tensor, dq_sum: cute.Tensor,
    turns: cute.Tensor | None, kv_sum: cute.Tensor | None, dK: cute.Tensor | None, dV: cute.Tensor | None,
    taken: cute.Tensor | None, of_queries: cute.Tensor | None, of_keys: cute.Tensor | None, queries: cute.Int32,
    keys: cute.Int32, parts: cute.Int32 | None, scale: cute.Float32, left: cute.Int32, right: cute.Int32,
    captured: tuple[Any, ...] | None = None, sums: tuple[cute.Tensor, ...] | None = None,
    blocks: tuple[cute.Tensor, ...] | None = None, state: cute.Tensor | None = None,
    threshold: cute.Int32 | None = None, kept: cute.Float32 | None = None,
    config: cute.Constexpr[BackwardConfig] = DEFAULT,
):  # fmt: skip
    """Launch the main kernel of a configuration. The module describes the arguments."""
    c = config
    c.check()
    dtype = number(c.element)
    modes, source = warpgroup.OperandMajorMode, warpgroup.OperandSource
    # The consumers split the keys, or the head dimension; for dq, the queries of a tile or the head dimension.
    by_rows, by_columns, columns = (c.consumers, 1, 1), (1, c.consumers, 1), c.head // c.consumers
    columns_v = c.value_head // c.consumers
    scores = (by_rows, (64, c.tile_m))
    if c.splits_head:
        scores = (by_columns, (64, c.tile_m // c.consumers)) if c.halves else ((1, 1, 1), (64, c.tile_m))
    dk, dv = ((by_columns, (64, n)) if c.splits_head else (by_rows, (64, c.head)) for n in (columns, columns_v))
    dq = (by_rows, (64, c.head)) if c.dq_by_rows else (by_columns, (64, columns))
    a_operand = (modes.MN, source.SMEM) if c.halves else (modes.K, source.RMEM)
    mma_dk, mma_dv = (
        hopper.make_trivial_tiled_mma(dtype, dtype, a_operand[0], modes.MN, cute.Float32, *shape, a_operand[1])
        for shape in (dk, dv)
    )
    mmas = (
        hopper.make_trivial_tiled_mma(dtype, dtype, modes.K, modes.K, cute.Float32, *scores),
        mma_dk,
        mma_dv,
        hopper.make_trivial_tiled_mma(dtype, dtype, modes.K, modes.MN, cute.Float32, *dq),
    )
    heads = c.head, c.value_head, c.head, c.value_head
    columns_read = dq[1][1], c.value_head, dk[1][1], dv[1][1]
    rows_of = c.tile_n, c.tile_n, c.tile_m, c.tile_m
    stages = 1, 1, c.q_stages, c.grad_stages
    rings = tuple([_ring(c, *each) for each in zip(rows_of, heads, columns_read, stages)])
    tmas = tuple([load_map(x, ring, tile) for x, ring, tile in zip((K, V, Q, dO), rings, zip(rows_of, heads))])
    batch = cute.size(of_keys) - 1 if c.packed else K.shape[3]
    count = cute.ceil_div(keys, c.tile_n)
    problem = KeyProblem(
        queries, keys, K.shape[2], Q.shape[2] // K.shape[2], (of_queries, of_keys), left, right,
        count, KeyProblem.units_of(c, count, K.shape[2], batch, parts), parts,
        None if blocks is None else BlockLists(*blocks[:4]),
        None if blocks is None or not c.deterministic else BlockLists(*blocks[4:]),
    )  # fmt: skip
    backward(
        tmas,
        rings,
        mmas,
        Workspaces(stats, dq_sum, turns, kv_sum, taken),
        (dK, dV),
        problem,
        scale,
        (captured, sums, dropout_operands(state, threshold, kept)),
        config,
    ).launch(grid=KeyTiles(c, problem).grid(), block=c.threads, pdl=True)


def _ring(c: BackwardConfig, rows: int, head: int, columns: int, stages: int) -> LayoutLike:
    """Return the swizzled layout of the stages of an operand.

    Args:
        c: Configuration.
        rows, head: Rows and columns of a tile.
        columns: Columns that one MMA reads, a multiple of those that the swizzle permutes.
        stages: Number of stages.
    """
    dtype = number(c.element)
    kind = hopper.get_smem_layout_atom(utils.LayoutEnum.ROW_MAJOR, dtype, columns)
    return cute.tile_to_shape(warpgroup.make_smem_layout_atom(kind, dtype), (rows, head, stages), order=(0, 1, 2))


@cute.kernel(min_blocks=1)
def backward(
    tmas: tuple[TmaMatrix, ...], rings: tuple[LayoutLike, ...], mmas: tuple[cute.TiledMma, ...], spaces: Workspaces,
    results: tuple[cute.Tensor | None, cute.Tensor | None], problem: KeyProblem, scale: cute.Float32,
    inputs: tuple[Any, Any, DropoutOperands | None], config: cute.Constexpr[BackwardConfig],
):  # fmt: skip
    c, tiles = config, KeyTiles(config, problem)
    warp_group, warp = cute.arch.warpgroup_idx(), cute.arch.warp_idx() % 4
    registers = _LISTED if c.block_n and not c.lean else _REGISTERS
    if cute.arch.thread_idx().x == 0:
        for atom, _ in tmas:
            cpasync.prefetch_descriptor(atom)
    operands = [cute.smem_tensor(atom.value_type, ring.outer, 1024, ring.inner) for (atom, _), ring in zip(tmas, rings)]
    sK, _, sQ, sG = operands
    dtype = number(c.element)
    x_layout = hopper.make_smem_layout_a(utils.LayoutEnum.ROW_MAJOR, (c.tile_m, None, c.tile_n), dtype, c.ds_stages)
    sX = cute.smem_tensor(dtype, x_layout.outer, 1024, x_layout.inner)
    sXt = cute.make_tensor(sX.iterator, cute.select(x_layout.outer, [1, 0, 2]))
    sPt = sXt
    if c.halves:
        sP = cute.smem_tensor(dtype, x_layout.outer, 1024, x_layout.inner)
        sPt = cute.make_tensor(sP.iterator, cute.select(x_layout.outer, [1, 0, 2]))
    s_dq = cute.smem_tensor(cute.Float32, cute.make_layout((4, 128, c.piece // 4, c.consumers)), 128)
    s_stats = cute.smem_tensor(cute.Float32, cute.make_layout((c.stats_values, c.q_stages)), 128)
    s_keys = None
    if c.key_reads:
        s_keys = cute.smem_tensor(cute.Int32, cute.make_layout((64 * c.consumers, len(c.key_reads))), 128)
    s_steps = cute.smem_tensor(cute.Int32, cute.make_layout((2, c.q_stages)), 8) if c.block_n else None
    s_places = cute.smem_tensor(cute.Int32, cute.make_layout((2, c.consumers)), 8) if c.block_n else None
    everyone = pipeline.CooperativeGroup(pipeline.Agent.WarpGroup, c.consumers)
    pipes = [
        pipeline.PipelineTmaAsync.create(
            num_stages=stages, producer_group=1, consumer_group=everyone, tx_count=size, defer_sync=True
        )
        for stages, size in (
            (1, c.key_bytes), (1, c.value_bytes), (c.q_stages, c.query_bytes + 4 * c.stats_values),
            (c.grad_stages, c.grad_bytes),
        )
    ]  # fmt: skip
    queue = None if spaces.taken is None else TileQueue.create(c, spaces.taken)
    own = start_block(c.packed)
    if warp_group == 0:
        cute.arch.setmaxregister_decrease(registers[0])
        if warp == 0:
            producers = [pipe.make_producer() for pipe in pipes]
            producer = BackwardProducer(c, tiles, tmas, operands, producers, spaces.stats, s_stats, own, s_steps, queue)
            if c.packed or cute.arch.elect_one():
                producer.run()
        elif warp <= c.consumers:
            DqWriter(c, tiles, warp - 1, s_dq, spaces, s_places, queue).run()
    else:
        cute.arch.setmaxregister_increase(registers[1])
        consumers = [pipe.make_consumer() for pipe in pipes]
        smem = (*operands, _transposed(sK), _transposed(sQ), _transposed(sG), sX, sXt, sPt, s_stats, s_dq)
        BackwardConsumer(
            tiles, warp_group - 1, mmas, smem, consumers, results, scale, inputs, (s_steps, s_places, s_keys), queue
        ).run()


def _transposed(x: cute.Tensor) -> cute.Tensor:
    """Return the view of tiles in shared memory as MN-major operands."""
    return cute.make_tensor(x.iterator, cute.select(x.layout, [1, 0, 2]))


@printed
def backward_text(config: BackwardConfig | None = None) -> cute.Compiled:
    """Trace the kernel ``@backward`` and its host function ``@launch``."""
    c = config or DEFAULT
    matrix, begins = matrix_type(c), begins_type(c)
    result = None if c.split else matrix
    return cute.trace(
        launch, matrix, matrix, matrix, matrix, stats_type(c), dq_sum_type(c), turns_type(c), kv_sum_type(c), result,
        result, taken_type(c), begins, begins, cute.Int32, cute.Int32, cute.Int32 if c.split else None, cute.Float32,
        cute.Int32, cute.Int32, captured_types(c.functions), _sums_types(c), _lists_types(c),
        **dropout_types(c.dropout), config=c,
    )  # fmt: skip


def _sums_types(c: BackwardConfig) -> object:
    """Return the annotations of the accumulators of captured arrays, or None without any."""
    ranks = () if c.functions is None else c.functions.ranks
    modes = [",".join("?" * ranks[i]) for i in c.learned]
    return tuple([cute.Tensor[cute.Float32, f"({x}):({x})"] for x in modes]) or None


def _lists_types(c: BackwardConfig) -> object:
    """Return the annotations of the lists of a block mask, or None."""
    counts, indices = (cute.Tensor[cute.Int32, f"({x}):({x})"] for x in ("?,?,?", "?,?,?,?"))
    return (counts, indices) * (4 if c.deterministic else 2) if c.block_n else None
