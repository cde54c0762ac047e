"""Hopper GEMM with packed weights: ``D[M,N] = X[M,K] * dequantized(W)[N,K]^T``, X of 16 bits and W of 4 or 8 bits.

The kernel computes ``D^T = W X^T`` by ``wgmma``: W is operand A, which each thread converts in registers, and X is
operand B in shared memory. A consumer warpgroup owns 64 rows of W. Weights are packed in advance
(:mod:`cute_dialect.kernels.gemm.weight_packing`), so that a *chunk*, 64 rows times 128 of K with its scales and zero
points, is contiguous. One bulk copy loads it, and 16 bytes of it are a thread's fragments.

A 4-bit integer ``q`` becomes an f16 by two bit operations: ``0x6400 | q`` is ``1024 + q``, from which ``1024 + z`` is
subtracted. This is exact, and so is ``128 + q`` for bf16. The bits of an e4m3 are those of a bf16 that is multiplied by
``2^120``. Scales are applied in one of two ways:

- to the f32 accumulator of each group of K, hence weights are not rounded. It is complete before the next group begins.
- ``scaled``: to the converted weights, which are rounded to the type of X as by ``unpack``. There is one accumulator,
  so that tiles may be large, and groups of 32 cost no more than groups of 128.

A scale per row multiplies the result. The next weights are converted while the MMAs of 64 of K run.

If there are few tiles, the blocks of a cluster share the K of a tile (split-K). They exchange partial accumulators
through distributed shared memory, as in :mod:`cute_dialect.kernels.gemm.few_rows`.

>>> MixedConfig(columns=16, parts=2).name
'mixed-ui4-g128-f16-f16-f16-128x16-q8-p2-h'
"""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic, reportOptionalMemberAccess=false, reportOptionalSubscript=false

from typing import NamedTuple

import cute_dialect.lang as cute
from cute_dialect.kernels.common.elements import BITS, number
from cute_dialect.kernels.common.kernel_names import differing
from cute_dialect.kernels.common.traced_text import printed
from cute_dialect.kernels.gemm.config import EVICT_FIRST
from cute_dialect.kernels.gemm.few_rows import SW128
from cute_dialect.lang import hopper, pipeline
from cute_dialect.lang.nvgpu import BulkCopyOp, cpasync, warpgroup
from cute_dialect.lang.values.signature_types import Int, Number

ROWS = 64
"""Rows of W of a chunk, and of a consumer warpgroup."""

DEPTH = 128
"""K of a chunk and of a stage."""

_LINE = 64
"""K of a swizzled line of 128 bytes of X; a stage has two slots of lines."""

GROUPS = (32, 64, 128, 0)
"""Elements of K that share a scale; 0: a whole row."""

WEIGHTS = {"ui4": 4, "i8": 8, "f8E4M3FN": 8}
"""Stored types of weights -> bits. Signed 4-bit weights are stored with 8 added, unsigned 8-bit ones with 128
subtracted."""

FLOATS = ("f8E4M3FN",)
"""Stored types without zero points."""


class Chunk(NamedTuple):
    """Contents of a chunk in 32-bit words: weights, then the scales and the zero points of each group of K."""

    weight: str
    group: int
    scale: str
    zeros: bool

    @property
    def groups(self) -> int:
        """Groups of a chunk; 0 if a scale is shared by a row."""
        return DEPTH // self.group if self.group else 0

    @property
    def weights(self) -> int:
        """Words of weights."""
        return ROWS * DEPTH * WEIGHTS[self.weight] // 32

    @property
    def scales(self) -> int:
        """Words of the scales of a group."""
        return ROWS * BITS[self.scale] // 32

    @property
    def zero_points(self) -> int:
        """Words of the zero points of a group, which have 8 bits."""
        return ROWS // 4 if self.zeros else 0

    @property
    def words(self) -> int:
        return self.weights + self.groups * (self.scales + self.zero_points)

    def line(self, k: int) -> int:
        """Return the words of 64 rows: their chunks, then scales and zero points that a row shares."""
        tail = 0 if self.group else self.scales + self.zero_points
        return -(-k // DEPTH) * self.words + tail


class MixedConfig(NamedTuple):
    """Configuration of the kernel."""

    weight: str = "ui4"  # stored type of W, see WEIGHTS
    group: int = 128  # elements of K that share a scale, see GROUPS
    scale: str = "f16"  # type of the scales: f16, bf16 or f32
    zeros: bool = False  # there are zero points; otherwise they are 8 or, for 8 bits, 128 above the least weight
    element: str = "f16"  # type of X: f16 or bf16
    output: str = "f16"  # type of D: f16, bf16 or f32
    rows: int = 128  # rows of W of a tile
    columns: int = 8  # rows of X of a tile
    live: int = 0  # rows of X to load if M is smaller than a tile, since TMA fills out-of-bounds rows slowly; 0 for all
    stages: int = 8
    parts: int = 1  # split-K slices of a tile, one block of the cluster each
    scaled: bool = False  # multiply weights by their scales, and round them, before the MMA
    hint: bool = True  # mark W as evict-first in the L2
    bias: bool = False  # add a bias per row of W
    staged: bool = False  # store D, 16-byte aligned and of 16 bits, through shared memory by 16 bytes

    @property
    def consumers(self) -> int:
        """Number of consumer warpgroups."""
        return self.rows // ROWS

    @property
    def threads(self) -> int:
        """Threads of a block: the consumers, and a producer warp, or warpgroup if consumers need its registers."""
        return 128 * self.consumers + (128 if self.takes_registers else 32)

    @property
    def takes_registers(self) -> bool:
        """Return True if the consumers need more registers than the threads of a block have on average."""
        return self.columns > 64

    @property
    def unit(self) -> int:
        """K of a group of MMAs that run while the next weights are converted."""
        return 32 if self.group == 32 and not self.scaled else 64

    @property
    def scales_sums(self) -> bool:
        """Return True if scales multiply the accumulator of each group."""
        return self.group > 0 and not self.scaled

    @property
    def chunk(self) -> Chunk:
        return Chunk(self.weight, self.group, self.scale, self.zeros)

    @property
    def pieces(self) -> int:
        """Pieces of the accumulators, of 64 x 8, that different blocks of a cluster finish."""
        return self.consumers * self.columns // 8

    @property
    def owned(self) -> int:
        """Pieces that one block finishes."""
        return max(1, self.pieces // self.parts)

    @property
    def stage_bytes(self) -> int:
        return self.consumers * 4 * self.chunk.words + 2 * DEPTH * self.columns

    @property
    def exchange_bytes(self) -> int:
        """Shared memory of the split-K reduction in bytes: the inbox."""
        return 2048 * self.owned * (self.parts - 1)

    @property
    def loaded(self) -> int:
        """Rows of X that are loaded."""
        return self.live or self.columns

    @property
    def tx_bytes(self) -> int:
        """Bytes that fill a stage."""
        return self.stage_bytes - 2 * DEPTH * (self.columns - self.loaded)

    @property
    def smem_bytes(self) -> int:
        """Shared memory of a block in bytes: the ring, the inbox and the barriers."""
        return self.stages * (self.stage_bytes + 16) + self.exchange_bytes

    @property
    def name(self) -> str:
        """Unique name of the kernel."""
        group = f"g{self.group}" if self.group else "row"
        what = f"mixed-{self.weight}-{group}-{self.scale}-{self.element}-{self.output}-{self.rows}x{self.columns}"
        return what + differing(
            self,
            {
                "stages": "-q{}",
                "parts": "-p{}",
                "live": "-l{}",
                "scaled": "-s",
                "hint": "-h",
                "zeros": "-z",
                "bias": "-bias",
                "staged": "-t",
            },
            stages=0,
            hint=False,
        )

    def check(self) -> None:
        """Raise ValueError if the kernel does not support this configuration."""
        for name, value, allowed in (
            ("weight", self.weight, tuple(WEIGHTS)),
            ("group", self.group, GROUPS),
            ("scale", self.scale, ("f16", "bf16", "f32")),
            ("element", self.element, ("f16", "bf16")),
            ("output", self.output, ("f16", "bf16", "f32")),
            ("rows", self.rows, (64, 128, 256)),
            ("columns", self.columns, (8, *range(16, 257, 16))),
            ("parts", self.parts, (1, 2, 4, 8)),
        ):
            if value not in allowed:
                raise ValueError(f"{name} is {value!r}; it must be one of {', '.join(map(str, allowed))}")
        if self.takes_registers and (self.rows != 128 or self.scales_sums):
            raise ValueError("more than 64 columns need 128 rows, and scaled weights unless a row shares a scale")
        if self.staged and (self.output == "f32" or self.columns < 16 or self.parts > 1):
            raise ValueError("staged needs results of 16 bits, 16 or more columns, and parts=1")
        if self.scaled and not self.group:
            raise ValueError("a scale per row multiplies the result; scaled needs groups")
        if max(self.pieces, self.parts) % min(self.pieces, self.parts):
            raise ValueError(f"parts is {self.parts}; it must divide {self.pieces}, the pieces of 64 x 8")
        if not 0 <= self.live <= self.columns:
            raise ValueError(f"live is {self.live}; it must be 0 to {self.columns}, the columns of a tile")
        if self.stages < 2:
            raise ValueError(f"stages is {self.stages}; it must be at least 2")
        if self.zeros and self.weight in FLOATS:
            raise ValueError(f"weights of {self.weight} have no zero points")


DEFAULT = MixedConfig()


@cute.jit
def launch(
    X: cute.Tensor,
    W: cute.Tensor,
    D: cute.Tensor,
    bias: cute.Tensor | None = None,
    config: cute.Constexpr[MixedConfig] = DEFAULT,
):
    """Launch one cluster per tile.

    Args:
        X: (M, K), contiguous along K.
        W: (ceil(N / 64), words) of Int32: the packed weights.
        D: (M, N), contiguous along N.
        bias: (N,), or None.
        config: The configuration.
    """
    c = config
    k_tiles = cute.ceil_div(X.shape[1], DEPTH)
    words = W.shape[1] - (0 if c.group else c.chunk.scales + c.chunk.zero_points)
    assert words == k_tiles * c.chunk.words, "W was packed for another K"
    assert W.shape[0] == cute.ceil_div(D.shape[1], ROWS), "W was packed for another N"
    assert X.shape[0] == D.shape[0], "X and D must have the same number of rows"
    kind, modes = number(c.element), warpgroup.OperandMajorMode
    mma = hopper.make_trivial_tiled_mma(
        kind,
        kind,
        modes.K,
        modes.K,
        cute.Float32,
        (c.consumers, 1, 1),
        (64, c.columns),
        warpgroup.OperandSource.RMEM,
    )
    if c.live:
        assert X.shape[0] <= c.live, f"X has more than {c.live} rows"
    lines = cute.make_layout((c.loaded, _LINE), stride=(_LINE, 1))
    tma = cpasync.make_tiled_tma_atom(
        cpasync.G2S(), X, cute.make_composed_layout(SW128, 0, lines), (c.loaded, _LINE), l2_promotion=256
    )
    grid = (cute.ceil_div(X.shape[0], c.columns), cute.ceil_div(D.shape[1], c.rows) * c.parts, 1)
    mixed_input(tma, W, D, bias, mma, k_tiles, c).launch(grid=grid, block=c.threads, cluster=(1, c.parts, 1), pdl=True)


@cute.kernel(min_blocks=1)
def mixed_input(
    tma: tuple[cute.CopyAtom, cute.Tensor],
    W: cute.Tensor,
    D: cute.Tensor,
    bias: cute.Tensor | None,
    mma: cute.TiledMma,
    k_tiles: cute.Int32,
    config: cute.Constexpr[MixedConfig],
):
    """Compute one tile, or this block's split-K slice of it."""
    c = config
    place = _WorkTile(c, k_tiles)
    if cute.arch.thread_idx().x == 0:
        cpasync.prefetch_descriptor(tma[0])
    lines = cute.make_layout((c.columns, _LINE, 2 * c.stages), stride=(_LINE, 1, c.columns * _LINE))
    sX = cute.smem_tensor(number(c.element), lines, 1024, SW128)
    sW = cute.smem_tensor(cute.Uint32, cute.make_layout((c.chunk.words, c.consumers, c.stages)), 128)
    pipe = pipeline.PipelineTmaAsync.create(
        num_stages=c.stages,
        producer_group=1,
        consumer_group=4 * c.consumers,
        tx_count=c.tx_bytes,
        defer_sync=True,
    )
    exchange = _Exchange(c, place) if c.parts > 1 else None
    cute.arch.griddepcontrol_wait()
    cute.arch.griddepcontrol_launch_dependents()
    cute.arch.sync_threads()
    if exchange is not None:
        exchange.arrive()
    group = cute.arch.warpgroup_idx()
    if group == c.consumers:
        if c.takes_registers:
            cute.arch.setmaxregister_decrease(40)
        if cute.arch.warp_idx() == 4 * c.consumers and cute.arch.elect_one():
            _produce(c, tma, W, sX, sW, pipe.make_producer(), place)
        if exchange is not None:
            exchange.wait()
            exchange.meet(sends=False)
    else:
        if c.takes_registers:
            cute.arch.setmaxregister_increase(232)
        sums = _Products(c, mma, sX, sW, W, group, place).run(pipe)
        store = _Store(c, D, bias, W, group, place)
        if c.staged:
            _StagedStore(c, mma, sX, store).run(sums, group)
        elif exchange is None:
            for piece in cute.range_constexpr(c.columns // 8):
                store(sums, piece)
        else:
            exchange.wait()
            exchange.send(sums, group)
            exchange.meet()
            exchange.receive(sums, group, store)


class _WorkTile:
    """Coordinates of a tile and of this block's slice of K. Adjacent blocks share a tile."""

    def __init__(self, c: MixedConfig, k_tiles: Int):
        self.column, block, _ = cute.arch.block_idx()
        self.row, self.part, self.first, self.steps, self.k_tiles = block, 0, 0, k_tiles, k_tiles
        if c.parts > 1:
            self.row, self.part = block // c.parts, block % c.parts
            self.first = self.part * k_tiles // c.parts
            self.steps = (self.part + 1) * k_tiles // c.parts - self.first


def _produce(
    c: MixedConfig,
    tma: tuple[cute.CopyAtom, cute.Tensor],
    W: cute.Tensor,
    sX: cute.Tensor,
    sW: cute.Tensor,
    ring: pipeline.PipelineProducer,
    place: _WorkTile,
) -> None:
    """Load the chunks of all consumers and the tile of X of each stage."""
    atom, coords = tma
    bulk = cute.make_copy_atom(BulkCopyOp(), cute.Uint32)
    lines = cute.make_layout((c.loaded, _LINE, 2 * c.stages), stride=(_LINE, 1, c.columns * _LINE))
    slots, tiles = cpasync.tma_partition(
        atom,
        0,
        cute.make_layout(1),
        cute.group_modes(cute.make_tensor(sX.iterator, lines), 0, 2),
        cute.group_modes(cute.flat_divide(coords, (c.loaded, _LINE)), 0, 2),
    )
    last, policy = W.shape[0] - 1, EVICT_FIRST if c.hint else None
    for i in range(place.steps):
        slot = ring.acquire_and_advance()
        step = place.first + i
        for group in cute.range_constexpr(c.consumers):
            # The last tile may have fewer row blocks than consumers; its surplus consumers repeat the last one.
            row = cute.min(place.row * c.consumers + group, last)
            chunk = cute.local_tile(W[row, None], (c.chunk.words,), (step,))
            cute.copy(bulk, chunk, sW[None, group, slot.index], tma_bar_ptr=slot.barrier, cache_policy=policy)
        for line in cute.range_constexpr(2):
            tile, to = tiles[None, place.column, step * 2 + line], slots[None, slot.index * 2 + line]
            cute.copy(atom, tile, to, tma_bar_ptr=slot.barrier)


class _Products:
    """Main loop of a warpgroup: 64 rows of W times the tile of X."""

    def __init__(
        self,
        c: MixedConfig,
        mma: cute.TiledMma,
        sX: cute.Tensor,
        sW: cute.Tensor,
        W: cute.Tensor,
        group: Int,
        place: _WorkTile,
    ):
        self.c, self.mma, self.place, self.group = c, mma, place, group
        part = mma.get_slice(group * 128)
        self.b = mma.make_fragment_B(part.partition_B(sX))
        shape = mma.partition_shape_C((c.rows, c.columns))
        self.sums = mma.make_fragment_C(shape)
        # The accumulator of a group of K, which is then multiplied by its scales.
        self.held = mma.make_fragment_C(shape) if c.scales_sums else self.sums
        of_a = mma.partition_shape_A((c.rows, c.unit))
        self.a = [mma.make_fragment_A(of_a) for _ in range(2)]
        self.words, self.W = sW, W
        self.warp, self.lane = cute.arch.warp_idx() % 4, cute.arch.lane_idx()
        self.scales = (cute.Float32(0), cute.Float32(0))
        # ptxas would load a constant mask again for each bit operation, so the masks depend on a parameter.
        self.masks = tuple(_opaque(x, place.k_tiles) for x in (0x000F000F, 0x00F000F0))
        self.subtract = _Converter(c, self.masks)
        if not c.group and c.zeros:
            row = cute.min(place.row * c.consumers + group, W.shape[0] - 1)
            tail = W[row, None].iterator + (place.k_tiles * c.chunk.words + c.chunk.scales)
            self.subtract = _Converter(c, self.masks, *self.zeros_at(tail))

    def run(self, pipe: pipeline.PipelineTmaAsync) -> cute.Tensor:
        """Multiply all stages, and return the accumulator."""
        c, ring = self.c, pipe.make_consumer()
        self.sums.fill(0)
        if c.scales_sums:
            self.held.fill(0)
        before = cute.Int32(0)
        for i in range(self.place.steps):
            slot = ring.wait_and_advance()
            fragments = _Fragments(self, slot.index)
            for unit in cute.range_constexpr(DEPTH // c.unit):
                starts = c.scales_sums and unit * c.unit % c.group == 0
                if starts and c.group == DEPTH:
                    warpgroup.wait_group(1)  # complete the MMAs that read these registers
                fragments.convert(unit, cute.recast_tensor(self.a[unit % 2], cute.Uint32))
                if starts:  # a group, so that the previous one ends
                    warpgroup.wait_group(0, self.held)
                    self._add()
                    if unit == 0:
                        self._release(pipe, before, i)
                    at = c.chunk.weights + unit * c.unit // c.group * c.chunk.scales
                    self.scales = pair_of_scales(c, fragments.chunk + at, self.row)
                self._multiply(unit, slot.index, starts=starts)
                if not c.scales_sums:  # the MMAs of this unit run while the next one is converted
                    warpgroup.wait_group(1)
                    if unit == 0:
                        self._release(pipe, before, i)
            before = slot.index
        warpgroup.wait_group(0, self.held)
        if c.scales_sums:
            self._add()
        return self.sums

    def _multiply(self, unit: int, slot: Int, *, starts: bool) -> None:
        """Issue the MMAs of a unit of K, which may start a group."""
        c, first = self.c, unit * self.c.unit // 16
        warpgroup.fence()
        for step in cute.range_constexpr(c.unit // 16):
            line, k = divmod(first + step, _LINE // 16)
            a, b = self.a[unit % 2][None, None, step], self.b[None, None, k, slot * 2 + line]
            cute.gemm(self.mma, self.held, a, b, accumulate=step > 0 or not starts)
        warpgroup.commit_group()

    def _release(self, pipe: pipeline.PipelineTmaAsync, before: Int, i: Int) -> None:
        """Release the slot of the stage before stage ``i``."""
        cute.arch.sync_warp()
        if (i > 0) & (self.lane == 0):
            cute.arch.mbarrier_arrive(pipe.empty(before))

    def _add(self) -> None:
        """Add the accumulator of the previous group, multiplied by its scales."""
        for j in range(self.c.columns // 8):  # held in registers, so the passes unroll this loop
            for i in cute.range_constexpr(4):
                self.sums[j * 4 + i] = cute.fma(self.held[j * 4 + i], self.scales[i // 2], self.sums[j * 4 + i])

    @property
    def row(self) -> Int:
        """Index of this thread's pair of rows, 8 rows apart, in a row block."""
        return self.warp * 8 + self.lane // 4

    def zeros_at(self, words: cute.Pointer) -> tuple[Number, Number]:
        """Return the zero points of this thread's rows."""
        both = (cute.recast_ptr(words, dtype=cute.Uint16) + self.row).align(2)
        found = cute.make_tensor(both, cute.make_layout(1))[0].to(cute.Uint32)
        return found & 0xFF, found >> 8


class _Fragments:
    """A thread's weights of a chunk: loads, and conversion to fragments of A."""

    def __init__(self, products: _Products, slot: Int):
        self.products, self.c = products, products.c
        self.chunk = products.words[None, products.group, slot].iterator
        self.vectors = WEIGHTS[self.c.weight] // 4  # of 16 bytes, of 64 of K
        self.held: dict[int, cute.Tensor] = {}
        self.subtract, self.scales = products.subtract, None

    def _load(self, half: int) -> None:
        """Load the words of 64 of K."""
        p, words = self.products, cute.make_rmem_tensor((4, self.vectors), cute.Uint32)
        for i in cute.range_constexpr(self.vectors):
            at = self.chunk + (((half * self.vectors + i) * 4 + p.warp) * 128 + p.lane * 4)
            cute.autovec_copy(cute.make_tensor(at.align(16), cute.make_layout(4)), words[None, i])
        self.held[half] = words

    def convert(self, unit: int, to: cute.Tensor) -> None:
        """Convert a unit of K to registers."""
        c = self.c
        for step in cute.range_constexpr(c.unit // 16):
            k = unit * c.unit + step * 16
            if k // 64 not in self.held:
                self._load(k // 64)
            if c.group and (k % c.group == 0 or (step == 0 and self.scales is None)):
                self._begin_group(k // c.group)
            words = self.held[k // 64]
            found = self.subtract.convert([words[k % 64 // 16 * self.vectors + i] for i in range(self.vectors)])
            for i in cute.range_constexpr(4):
                to[step * 4 + i] = found[i] if self.scales is None else self.scales(found[i], i % 2)

    def _begin_group(self, group: int) -> None:
        """Load the zero points and scales of a group, as far as weights are computed with them."""
        c, p = self.c, self.products
        if c.zeros:
            at = c.chunk.weights + c.chunk.groups * c.chunk.scales + group * c.chunk.zero_points
            self.subtract = _Converter(c, p.masks, *p.zeros_at(self.chunk + at))
        if c.scaled:
            self.scales = _Scales(c, self.chunk + (c.chunk.weights + group * c.chunk.scales), p.row)


class _Scales:
    """Multiplication of pairs of weights by the scale of one of a thread's two rows, rounded to the type of X."""

    def __init__(self, c: MixedConfig, words: cute.Pointer, row: Int):
        self.kind, self.is_direct = c.element, c.scale == c.element
        if self.is_direct:
            both = cute.make_tensor((words + row).align(4), cute.make_layout(1))[0]
            self.factors = [cute.arch.prmt(both, both, selector) for selector in (0x1010, 0x3232)]
        else:
            self.factors = list(pair_of_scales(c, words, row))

    def __call__(self, x: cute.Uint32, row: int) -> cute.Uint32:
        y, kind = self.factors[row], self.kind
        if self.is_direct:
            text = f"mul.{kind}x2 $0, $1, $2;"
        elif kind == "bf16":
            text = (
                "{ .reg .b32 l, h; .reg .f32 x, y; shl.b32 l, $1, 16; and.b32 h, $1, 0xffff0000; mov.b32 x, l; "
                "mov.b32 y, h; mul.f32 x, x, $2; mul.f32 y, y, $2; cvt.rn.bf16x2.f32 $0, y, x; }"
            )
        else:
            text = (
                "{ .reg .b16 l, h; .reg .f32 x, y; mov.b32 {l, h}, $1; cvt.f32.f16 x, l; cvt.f32.f16 y, h; "
                "mul.f32 x, x, $2; mul.f32 y, y, $2; cvt.rn.f16x2.f32 $0, y, x; }"
            )
        return cute.arch.inline_ptx(text, x, y, result=cute.Uint32, side_effects=False)


def pair_of_scales(c: MixedConfig, words: cute.Pointer, row: Int) -> tuple[Number, Number]:
    """Return the scales of a pair of rows as f32."""
    kind = number(c.scale)
    at = (cute.recast_ptr(words, dtype=kind) + row * 2).align(kind.width // 4)
    both = cute.make_rmem_tensor(2, kind)
    cute.autovec_copy(cute.make_tensor(at, cute.make_layout(2)), both)
    return both[0].to(cute.Float32), both[1].to(cute.Float32)


class _Converter:
    """Conversion of packed weights to pairs of 16-bit floats. ``zeros`` are the zero points of a thread's two rows.

    Registers 0 and 2 of a fragment are of the first row, 1 and 3 of the second one.
    """

    def __init__(self, c: MixedConfig, masks: tuple[cute.Uint32, ...], *zeros: Int):
        self.c, self.half, self.masks = c, c.element == "f16", masks
        if c.weight in FLOATS:
            return
        middle = 8 if c.weight == "ui4" else 128
        first, second = (cute.Uint32(z) for z in (zeros or (middle, middle)))
        one, base = 0x00010001, 0x64006400 if self.half else 0x43004300
        if c.weight == "ui4":
            self.first = first * one + base
            # In f16, the nibbles of the second row are multiplied by 16: (1024 + 16 q) / 16 - (64 + z).
            self.second = second * (16 * one) + 0xD400D400 if self.half else second * one + base
        elif self.half:
            self.first, self.second = first * one + base, second * one + base
        elif zeros:
            self.first, self.second = (_pair_of_bf16(z) for z in (first, second))

    def convert(self, words: list[cute.Uint32]) -> list[cute.Uint32]:
        """Return the four registers of a fragment."""
        if self.c.weight == "ui4":
            return self._nibbles(words[0])
        convert = self._floats if self.c.weight in FLOATS else self._bytes
        return [r for w in words for r in convert(w)]

    def _nibbles(self, w: cute.Uint32) -> list[cute.Uint32]:
        low, high = self.masks
        if self.half:
            found = []
            for x in (w, w >> 8):
                found.append(_sub("f16x2", (x & low) | 0x64006400, self.first))
                found.append(_fma_f16x2((x & high) | 0x64006400, 0x2C002C00, self.second))
            return found
        by = (self.first, self.second)
        return [_sub("bf16x2", ((w >> 4 * i) & low) | 0x43004300, by[i % 2]) for i in range(4)]

    def _floats(self, w: cute.Uint32) -> list[cute.Uint32]:
        if self.half:
            text = "{{ .reg .b16 x, y; mov.b32 {{x, y}}, $1; cvt.rn.f16x2.e4m3x2 $0, {}; }}"
            return [cute.arch.inline_ptx(text.format(r), w, result=cute.Uint32, side_effects=False) for r in "xy"]
        found = []
        for selector in (0x1404, 0x3424):
            x = cute.arch.prmt(w, 0, selector)  # the high bytes of two numbers
            found.append(_scale_bf16((x & 0x80008000) | ((x >> 4) & 0x07F007F0), _E4M3))
        return found

    def _bytes(self, w: cute.Uint32) -> list[cute.Uint32]:
        by = (self.first, self.second) if self.half or self.c.zeros else (None, None)
        if self.half:
            w = w ^ 0x80808080
            return [_sub("f16x2", cute.arch.prmt(w, 0x64646464, s), y) for s, y in zip((0x4140, 0x4342), by)]
        found = []
        for selector, y in zip((0x4140, 0x4342), by):
            # 128 + (x mod 128), minus 128 or, for a negative x, 256.
            x = cute.arch.prmt(w, 0x43434343, selector)
            x = _sub("bf16x2", x & 0xFF7FFF7F, x & 0xFF80FF80)
            found.append(x if y is None else _sub("bf16x2", x, y))
        return found


def _opaque(x: int, natural: Int) -> cute.Uint32:
    """Return a constant as the result of an instruction on a number that is not negative."""
    text = f"{{ .reg .b32 y; shr.s32 y, $1, 31; or.b32 $0, y, {x}; }}"
    return cute.arch.inline_ptx(text, natural, result=cute.Uint32, side_effects=False)


def _sub(kind: str, x: cute.Uint32, y: cute.Uint32) -> cute.Uint32:
    # Instructions on pairs do not accept immediates, hence the register.
    text = f"{{ .reg .b32 y; mov.b32 y, $2; sub.{kind} $0, $1, y; }}"
    return cute.arch.inline_ptx(text, x, y, result=cute.Uint32, side_effects=False)


_E4M3 = 0x7B807B80
"""Two bf16 of 2^120: the exponents of bf16 and e4m3 are biased by 127 and 7."""


def _scale_bf16(x: cute.Uint32, y: int) -> cute.Uint32:
    text = f"{{ .reg .b32 y; mov.b32 y, {y}; mul.bf16x2 $0, $1, y; }}"
    return cute.arch.inline_ptx(text, x, result=cute.Uint32, side_effects=False)


def _fma_f16x2(x: cute.Uint32, y: int, z: Int) -> cute.Uint32:
    text = f"{{ .reg .b32 y, z; mov.b32 y, {y}; mov.b32 z, $2; fma.rn.f16x2 $0, $1, y, z; }}"
    return cute.arch.inline_ptx(text, x, z, result=cute.Uint32, side_effects=False)


def _pair_of_bf16(z: Int) -> cute.Uint32:
    """Return ``z - 128`` as two bf16."""
    x = (z.to(cute.Int32) - 128).to(cute.Float32)
    return cute.arch.inline_ptx("cvt.rn.bf16x2.f32 $0, $1, $1;", x, result=cute.Uint32, side_effects=False)


class _Store:
    """Epilogue of a warpgroup, for a piece of 64 x 8 at a time."""

    def __init__(
        self, c: MixedConfig, D: cute.Tensor, bias: cute.Tensor | None, W: cute.Tensor, group: Int, place: _WorkTile
    ):
        self.c, self.D = c, D
        lane, warp = cute.arch.lane_idx(), cute.arch.warp_idx() % 4
        self.block = block = place.row * c.consumers + group
        self.first = place.column * c.columns
        # Rows of W are columns of D.
        self.row, self.column = place.column * c.columns + lane % 4 * 2, block * ROWS + warp * 16 + lane // 4
        self.scales = None
        if not c.group:
            tail = W[cute.min(block, W.shape[0] - 1), None].iterator + place.k_tiles * c.chunk.words
            self.scales = pair_of_scales(c, tail, warp * 8 + lane // 4)
        self.bias = []
        if c.bias:
            for half in cute.range_constexpr(2):
                value = cute.Float32(0)
                if self.column + 8 * half < D.shape[1]:
                    value = bias[self.column + 8 * half].to(cute.Float32)
                self.bias.append(value)

    def __call__(self, sums: cute.Tensor, piece: int) -> None:
        """Scale, round and store a piece."""
        for i in cute.range_constexpr(4):
            half, x = i // 2, self.value(sums[piece * 4 + i], i // 2)
            row, column = self.row + piece * 8 + i % 2, self.column + 8 * half
            if (row < self.D.shape[0]) & (column < self.D.shape[1]):
                self.D[row, column] = x.to(self.D.element_type)

    def value(self, x: cute.Float32, half: int) -> cute.Float32:
        """Return a result of one of this thread's two rows of W."""
        if self.scales is not None:
            x = x * self.scales[half]
        return x + self.bias[half] if self.c.bias else x


class _StagedStore:
    """Epilogue of a warpgroup through the memory of X: 64 columns of D are a line of 128 bytes, swizzled."""

    def __init__(self, c: MixedConfig, mma: cute.TiledMma, sX: cute.Tensor, store: _Store):
        self.c, self.store, self.kind = c, store, number(c.output)
        self.lines = cute.recast_ptr(sX.iterator, dtype=self.kind)
        # (rows of W, rows of X)
        layout = cute.make_layout(((ROWS, c.consumers), c.columns), stride=((1, ROWS * c.columns), ROWS))
        to = cute.make_tensor(self.lines, layout)
        atom = cute.make_copy_atom(cute.nvgpu.warp.StMatrix8x8x16bOp(True, 4), self.kind)
        self.copy = cute.make_tiled_copy_C(atom, mma).get_slice(cute.arch.thread_idx().x)
        self.to = self.copy.partition_D(to)

    def run(self, sums: cute.Tensor, group: Int) -> None:
        """Round and store the tile of a warpgroup."""
        c, store = self.c, self.store
        values = cute.make_rmem_tensor(c.columns // 2, self.kind)
        for j in cute.range_constexpr(c.columns // 2):
            values[j] = store.value(sums[j], j % 4 // 2).to(self.kind)
        cute.arch.barrier(1, 128 * c.consumers)  # no consumer reads X any more
        cute.copy(self.copy, self.copy.retile(cute.make_tensor(values.iterator, sums.layout)), self.to)
        cute.arch.barrier(2 + group, 128)
        thread = cute.arch.thread_idx().x % 128
        chunk, first = thread % 8, thread // 8
        layout = cute.make_layout((8, 8, c.columns), stride=(1, 8, ROWS))
        lines = cute.make_tensor(self.lines + group * (ROWS * c.columns), layout)
        column = store.block * ROWS + chunk * 8
        for i in cute.range_constexpr(c.columns // 16):
            line = first + i * 16
            row = store.first + line
            if (row < store.D.shape[0]) & (column < store.D.shape[1]):
                eight = cute.make_rmem_tensor(8, self.kind)
                cute.autovec_copy(lines[None, chunk, line], eight)
                cute.autovec_copy(eight, cute.local_tile(store.D[row, None], (8,), (store.block * 8 + chunk,)))


class _Exchange:
    """Split-K reduction through distributed shared memory. Each piece of 64 x 8 has an owner, which reduces it.

    Values are sent by 16 bytes between two barriers of the cluster. ``st.async``, of 4 bytes, takes longer: with 128
    rows of X and two slices, 6 us.
    """

    def __init__(self, c: MixedConfig, place: _WorkTile):
        self.c, self.place = c, place
        size = 512 * c.owned * (c.parts - 1)
        self.inbox = cute.smem_tensor(cute.Float32, cute.make_layout(size), 16).iterator
        self.copy = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cute.Float32, num_bits_per_copy=128)

    def _owner(self, group: Int, piece: int) -> Int:
        """Return the split-K slice whose block finishes a piece."""
        c = self.c
        return (group * (c.columns // 8) + piece) * c.parts // c.pieces

    def _slot(self, inbox: cute.Pointer, group: Int, piece: int, sender: Int) -> cute.Tensor:
        """Return this thread's four values of a piece in an inbox."""
        c = self.c
        index = (group * (c.columns // 8) + piece) % c.owned
        at = inbox + ((sender * c.owned + index) * 128 + cute.arch.thread_idx().x % 128) * 4
        return cute.make_tensor(at.align(16), cute.make_layout(4))

    def _values(self, sums: cute.Tensor, piece: int) -> cute.Tensor:
        return cute.make_tensor(sums.iterator + piece * 4, cute.make_layout(4))

    def send(self, sums: cute.Tensor, group: Int) -> None:
        """Send the pieces that other blocks finish."""
        c, part = self.c, self.place.part
        for piece in cute.range_constexpr(c.columns // 8):
            owner = self._owner(group, piece)
            if owner != part:
                # Senders are counted from the owner on.
                sender = (part + (c.parts - 1) - owner) % c.parts
                far = cute.arch.map_dsmem_ptr(self.inbox, owner)
                cute.copy(self.copy, self._values(sums, piece), self._slot(far, group, piece, sender))

    def arrive(self) -> None:
        """Signal that this block has started."""
        cute.arch.cluster_arrive_relaxed()

    def wait(self) -> None:
        """Wait until all blocks of the cluster have started."""
        cute.arch.cluster_wait()

    def meet(self, *, sends: bool = True) -> None:
        """Wait until all blocks of the cluster have sent their pieces; ``sends``: this thread has sent some."""
        cute.arch.cluster_arrive(relaxed=not sends)
        cute.arch.cluster_wait()

    def receive(self, sums: cute.Tensor, group: Int, store: _Store) -> None:
        """Add the received partial accumulators in a fixed order, and store the result."""
        c = self.c
        for piece in cute.range_constexpr(c.columns // 8):
            if self._owner(group, piece) == self.place.part:
                mine = self._values(sums, piece)
                found = [cute.make_rmem_tensor(4, cute.Float32) for _ in range(c.parts - 1)]
                for sender in cute.range_constexpr(c.parts - 1):
                    cute.copy(self.copy, self._slot(self.inbox, group, piece, sender), found[sender])
                for values in found:
                    mine.store(mine.load() + values.load())
                store(sums, piece)


@printed
def mixed_input_text(config: MixedConfig | None = None) -> cute.Compiled:
    """Trace the kernel ``@mixed_input`` and its host function ``@launch(X, W, D)``, with a bias if there is one."""
    c = config or DEFAULT
    c.check()
    bias = cute.Tensor[number(c.output), "?:1"] if c.bias else None
    rows = ("(?,?):(?{i64 div=8},1)", "align<16>") if c.staged else ("(?,?):(?{i64},1)",)
    return cute.trace(
        launch,
        cute.Tensor[number(c.element), "(?,?):(?{div=8},1)", "align<16>"],
        cute.Tensor[cute.Int32, "(?,?):(?{div=4},1)", "align<16>"],
        cute.Tensor[number(c.output), *rows],
        bias,
        config=c,
    )
