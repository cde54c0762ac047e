"""Persistent, warp-specialized GEMM for sm_100: ``C[M,N] = A[M,K] * B[N,K]^T`` with TMA, tcgen05 and tensor memory.

Warps 0 to 3 are the epilogue, warp 4 loads, and warp 5 multiplies. One thread of warp 4 fills a ring of stages in
shared memory by TMA, 128 bytes of K each. One thread of warp 5 issues the MMAs. Their accumulators are in tensor
memory, which holds two: the epilogue of a tile runs while the next tile is multiplied.

    full[s]:      the producer sets the expected bytes; then the bytes arrive
    empty[s]:     the commit of the MMAs that have read the stage
    complete[a]:  the commit of the last MMAs of a tile
    loaded[a]:    128 arrivals, when the epilogue has loaded the accumulator to registers

A tile of 256 rows is computed by a pair of blocks of a cluster. Each block loads its 128 rows of A and half of the
columns of B, and stores its 128 rows of C. The even block expects the bytes of both and issues the MMAs of both, whose
commits arrive at both. So a block reads half of B from shared memory and from the L2.

A warp of the epilogue loads 16 rows of a chunk of columns at a time, in the register layout of ``wgmma`` accumulators.
The code of :mod:`~cute_dialect.kernels.gemm.epilogue_store` then applies the epilogue, and stores the chunk by TMA.

    element                  MMA K   accumulator   majors of A and B
    f16, bf16                16      f32           any
    tf32                     8       f32           k
    f8E4M3FN …               32      f32           any
    the same, scaling mx     32      f32           k
    f4E2M1FN, mx or nv       64      f32           k

With ``scaling``, :func:`launch_scaled` takes the scale factors of A and B, which
:mod:`~cute_dialect.kernels.gemm.tcgen05_scales` brings to tensor memory. If two accumulators and the factors need more
than 512 columns, the accumulators share some. The epilogue loads the shared columns of a tile first, so that the next
tile can begin.

TMA needs 16-byte aligned addresses and row strides. Extents are arbitrary. The kernel has been assembled and
interpreted, but never run on the chip.

>>> Sm100Config(tile=(128, 128)).name, Sm100Config(tile=(128, 128)).columns
('f16-f16-kk-128x128x64-4-sm100', 256)
"""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic, reportOptionalMemberAccess=false

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import cute_dialect.lang as cute
from cute_dialect.arch.targets import TARGETS
from cute_dialect.kernels.common.elements import BITS, factors, number, rounded
from cute_dialect.kernels.common.kernel_names import by, differing
from cute_dialect.kernels.common.traced_text import printed
from cute_dialect.kernels.epilogue.combination import Addends, Epilogue, extents_of
from cute_dialect.kernels.epilogue.emit import Fused
from cute_dialect.kernels.epilogue.fragment_layout import OF_TENSOR_MEMORY, Lanes, lanes_of
from cute_dialect.kernels.gemm.config import GemmConfig
from cute_dialect.kernels.gemm.epilogue_store import BUFFER, Staging, Stores
from cute_dialect.kernels.gemm.host import (
    arguments_of,
    as_read,
    beside_maps,
    check_arguments,
    elements_of,
    layouts_of,
    load_map,
    ring_of,
    store_map,
    with_modes,
)
from cute_dialect.kernels.gemm.mainloop import Operand, Place, Tiles
from cute_dialect.kernels.gemm.tcgen05_scales import (
    BYTES,
    FACTORS,
    FP4,
    ROWS,
    SETS,
    VECTORS,
    ScaleBlocks,
    ScaledMmas,
    ScaleOperand,
    blocks_of,
)
from cute_dialect.kernels.gemm.tcgen05_scales import load_map as factor_map
from cute_dialect.lang import blackwell, hopper, pipeline, utils
from cute_dialect.lang.nvgpu import cpasync, tcgen05

CHIP = "sm_100a"
"""Default target for which the kernels are compiled. Those of other chips with tensor memory have the same code."""
COLUMNS = 512
"""Columns of tensor memory of a block."""
ELEMENTS = ("f16", "bf16", "tf32", "f8E4M3FN", "f8E5M2")
"""Types of A and B."""
TILES = ((128, 256), (128, 192), (128, 128), (128, 64), (64, 128), (64, 64), (256, 256), (256, 192), (256, 128))
"""Tiles (M, N) that plans use. The first is chosen of tiles with equal bounds."""
SCALED_TILES = tuple([(m, n) for m, n in TILES if m > 64])
"""Tiles (M, N) that plans use for operands with scale factors."""
LOADER, MULTIPLIER, THREADS = 4, 5, 192
"""The warp that loads, the warp that multiplies, and the threads of a block."""
LANE = 1 << 16
"""Elements between two lanes of tensor memory."""


class Sm100Config(NamedTuple):
    """Configuration of a GEMM for sm_100."""

    element: str = "f16"  # type of A and B, two names joined by an underscore if they differ
    output: str = "f16"  # type of C
    major_a: str = "k"  # contiguous mode of A, "k" or "m"
    major_b: str = "k"  # contiguous mode of B, "k" or "n"
    tile: tuple[int, int] = (128, 256)  # (M, N) of a block, or of a pair of blocks if M is 256
    stages: int = 4  # stages in shared memory
    accumulators: int = 2  # accumulators in tensor memory
    group: int = 8  # tile rows of a raster group
    sms: int = 0  # multiprocessors of the GPU, 0 for those of the chip
    batch: bool = False  # A, B and C have a batch mode; its extent may be 1 for A or B (broadcast)
    epilogue: Epilogue = Epilogue()
    buffers: int = 2  # staging buffers of 8 KiB, for storing C
    direct: bool = False  # store elements of C from registers, for a C that TMA cannot write
    chip: str = CHIP  # target for which the kernel is compiled
    scaling: str = ""  # scale factors of A and B: "mx" or "nv"; empty for none

    @property
    def processors(self) -> int:
        """Multiprocessors of the GPU."""
        return self.sms or TARGETS[self.chip].sms

    @property
    def elements(self) -> tuple[str, str]:
        """Types of A and of B."""
        return factors(self.element)

    @property
    def stored(self) -> str:
        """Element type, or types, of the tensors A and B: bytes for elements of 4 bits."""
        return "ui8" if self.element == FP4 else self.element

    @property
    def line(self) -> int:
        """Elements of a tensor along K in a stage: 128 bytes."""
        return 1024 // BITS[self.stored]

    @property
    def packed(self) -> int:
        """Elements of A or B per element of its tensor: 2 of f4E2M1FN per byte."""
        return 2 if self.element == FP4 else 1

    @property
    def depth(self) -> int:
        """K of a stage: 128 bytes."""
        return self.line * self.packed

    @property
    def blocks_of_scales(self) -> ScaleBlocks:
        """Blocks of scale factors of a tile; none without scaling."""
        return blocks_of(self.scaling, self.depth, self.tile[1]) if self.scaling else ScaleBlocks(0, 0)

    @property
    def blocks(self) -> int:
        """Number of blocks that compute a tile: 2 for a pair."""
        return 2 if self.tile[0] == 256 else 1

    @property
    def loaded(self) -> tuple[int, int]:
        """Rows of A and columns of B that a block loads."""
        return self.tile[0] // self.blocks, self.tile[1] // self.blocks

    @property
    def base(self) -> GemmConfig:
        """The equivalent :class:`GemmConfig`, for functions that serve all GEMMs."""
        return GemmConfig(
            self.stored,
            self.output,
            self.major_a,
            self.major_b,
            tile=(self.loaded[0], self.tile[1], self.line),
            stages=self.stages,
            cluster_m=self.blocks,
            deferred=False,
            batch=self.batch,
            epilogue=self.epilogue,
            buffers=self.buffers,
            direct=self.direct,
        )

    @property
    def atoms(self) -> int:
        """Number of times that a warp of the epilogue loads 16 rows."""
        return self.loaded[0] // 64

    @property
    def columns_of_scales(self) -> int:
        """Columns of tensor memory of the scale factors."""
        return SETS * self.blocks_of_scales.columns

    @property
    def overlap(self) -> int:
        """Columns that two accumulators share because tensor memory cannot hold both and the scale factors."""
        needed = 2 * self.tile[1] + self.columns_of_scales
        return max(0, needed - COLUMNS) if self.scaling and self.accumulators == 2 else 0

    @property
    def slots(self) -> int:
        """Number of accumulators that tiles use at once: overlapping ones take turns."""
        return 1 if self.overlap else self.accumulators

    @property
    def distance(self) -> int:
        """Columns between the first columns of two accumulators."""
        return self.tile[1] - self.overlap

    @property
    def columns(self) -> int:
        """Columns of tensor memory to allocate: a power of two, at least 32."""
        needed = self.accumulators * self.tile[1] - self.overlap + self.columns_of_scales
        return max(32, 1 << (needed - 1).bit_length())

    @property
    def widths(self) -> tuple[int, ...]:
        """Columns of each chunk of a tile of C, the unit of a store."""
        base = self.base
        return (16,) * (base.columns // 16) if self.direct else base.widths

    @property
    def columns_at_once(self) -> int:
        """Accumulator columns that the epilogue processes in one call."""
        return self.tile[1] if self.epilogue.whole_tiles else self.widths[0] * (2 if self.epilogue.half else 1)

    @property
    def stage_bytes(self) -> int:
        """Bytes of A and B, and of their scale factors, in a stage of a block."""
        return sum(self.loaded) * 128 + self.blocks_of_scales.stage_bytes

    @property
    def shared_bytes(self) -> int:
        """Bytes of shared memory of a block: the ring, the staging buffers, the mbarriers and the address."""
        barriers = 16 * self.slots + 8 * (self.blocks - 1)  # A pair has one more, for its deallocation.
        return self.stages * (self.stage_bytes + 16) + self.buffers * BUFFER + barriers + 4

    @property
    def most_stages(self) -> int:
        """Number of stages of this tile that fit in shared memory, at most 16."""
        rest = self._replace(stages=0).shared_bytes
        return min(16, (TARGETS[self.chip].shared - rest) // (self.stage_bytes + 16))

    @property
    def name(self) -> str:
        """Name of the kernel."""
        words = {"batch": "-b", "direct": "-o", "accumulators": "-a{}", "sms": "-s{}", "group": "-g{}"}
        words |= {"buffers": "-u{}", "scaling": "-{}"}
        tile = by((*self.tile, self.depth))
        majors = self.major_a + self.major_b
        start = f"{self.element}-{self.output}-{majors}-{tile}-{self.stages}-sm{TARGETS[self.chip].number}"
        return start + differing(self, words) + self.epilogue.suffix

    def check(self) -> None:
        """Raise ValueError if no kernel supports this configuration."""
        a, b = self.elements
        floats = {"f8E4M3FN", "f8E5M2"}
        if not ((a == b and a in (*ELEMENTS, FP4)) or {a, b} <= floats):
            raise ValueError(
                f"element {self.element!r} is not supported; use one of {', '.join((*ELEMENTS, FP4))}, or two 8-bit "
                "floats"
            )
        scalings = ("mx", "nv") if a == FP4 else ("", "mx") if {a, b} <= floats else ("",)
        if self.scaling not in scalings:
            raise ValueError(
                f"scaling={self.scaling!r} is not supported for {self.element}; use "
                f"{' or '.join(repr(x) for x in scalings)}"
            )
        if self.output not in ("f16", "bf16", "f32"):
            raise ValueError(f"output {self.output!r} is not supported; use f16, bf16 or f32")
        if self.major_a not in ("k", "m") or self.major_b not in ("k", "n"):
            raise ValueError(f"majors are {self.major_a}, {self.major_b}; use 'k' or 'm' for A, 'k' or 'n' for B")
        if a == "tf32" and (self.major_a, self.major_b) != ("k", "k"):
            raise ValueError("tf32 operands must be contiguous along K")
        if self.scaling:
            self._check_scaling()
        m, n = self.tile
        if m not in (64, 128, 256) or n % 32 or not 32 <= n <= 256:
            raise ValueError(
                f"a tile of {m} x {n} is not supported; M must be 64, 128, or 256 for a pair of blocks, and N a "
                "multiple of 32 up to 256"
            )
        if m == 256 and n % 64 and self.major_b == "n" and BITS[self.element] == 8:
            raise ValueError(
                f"a tile of {m} x {n} is not supported for an N-major B of 8 bits, of whose columns each "
                "block loads half; N must be a multiple of 64"
            )
        if self.accumulators not in (1, 2, 4) or self.columns > COLUMNS:
            scales = self.columns_of_scales
            raise ValueError(
                f"{self.accumulators} accumulators of {n} columns{f' and {scales} of scale factors' * (scales > 0)} "
                f"are not supported; use 1, 2 or 4, in {COLUMNS} columns of tensor memory"
            )
        if self.stages < 2:
            raise ValueError(f"stages is {self.stages}; use at least 2")
        if self.buffers < 1:
            raise ValueError(f"buffers is {self.buffers}; it must be at least 1")
        target = TARGETS[self.chip]
        if self.shared_bytes > target.shared:
            raise ValueError(
                f"{self.stages} stages need {self.shared_bytes} bytes of shared memory, but sm_{target.number} has "
                f"{target.shared} per block; use at most {self.most_stages} stages"
            )
        self.base.check_epilogue()
        if self.epilogue.reduces and len(set(self.widths)) > 1 and not self.epilogue.whole_tiles:
            raise ValueError(f"tile N is {n}; a row reduction needs a multiple of {self.base.chunk}")

    def _check_scaling(self) -> None:
        (m, n), majors = self.tile, (self.major_a, self.major_b)
        if majors != ("k", "k"):
            raise ValueError(f"majors are {', '.join(majors)}; operands with scale factors must be contiguous along K")
        if m not in (128, 256) or n not in (64, 128, 192, 256):
            raise ValueError(
                f"a tile of {m} x {n} is not supported with scale factors; M must be 128, or 256 for a pair of blocks, "
                "and N 64, 128, 192 or 256"
            )
        if self.batch:
            raise ValueError("a batch is not supported with scale factors; multiply one pair of matrices per call")


DEFAULT = Sm100Config()


@cute.jit(options=f"--gpu-arch {CHIP}")
def launch(
    A: cute.Tensor,
    B: cute.Tensor,
    C: cute.Tensor,
    source: cute.Tensor | None = None,
    bias: cute.Tensor | None = None,
    alpha: cute.Float32 | None = None,
    beta: cute.Float32 | None = None,
    operands: object = None,
    config: cute.Constexpr[Sm100Config] = DEFAULT,
):
    """Launch persistent blocks, at most one per multiprocessor. The arguments after C belong to the epilogue."""
    _launch(A, B, C, (None, None), Addends(source, bias, alpha, beta, operands), config)


@cute.jit(name="launch", options=f"--gpu-arch {CHIP}")
def launch_scaled(
    A: cute.Tensor,
    B: cute.Tensor,
    C: cute.Tensor,
    scale_a: cute.Tensor,
    scale_b: cute.Tensor,
    addends: Mapping[str, object] | None = None,
    config: cute.Constexpr[Sm100Config] = DEFAULT,
):
    """Launch persistent blocks, at most one per multiprocessor, with scale factors of A and B.

    Args:
        A, B, C: Matrices (M, K), (N, K) and (M, N); f4E2M1FN matrices are bytes (M, K/2) and (N, K/2).
        scale_a, scale_b: The bytes of the factors in blocks of 128 rows x 4; see
            :mod:`cute_dialect.kernels.gemm.tcgen05_scales`.
        addends: Arguments of the epilogue by name: ``source``, ``bias``, ``alpha``, ``beta`` and ``operands``.
        config: The kernel; its ``scaling`` is "mx" or "nv".
    """
    _launch(A, B, C, (scale_a, scale_b), Addends(**(addends or {})), config)


def _launch(
    A: cute.Tensor,
    B: cute.Tensor,
    C: cute.Tensor,
    scales: tuple[cute.Tensor | None, cute.Tensor | None],
    addends: Addends,
    config: Sm100Config,
) -> None:
    config.check()
    c = config.base
    C = with_modes(c, C)
    check_arguments(c, A, B, C, addends._asdict() | {"places": None})
    extents = extents_of(C)
    c.epilogue.check_shapes(C, addends, pairs=not c.direct)
    if c.epilogue.reduces or c.epilogue.whole_tiles:
        addends = addends._replace(extents=extents[:2])
    if c.epilogue.whole_rows:
        assert extents[1] <= c.tile[1], "N must be at most the tile N, because the epilogue needs whole rows"
    if c.epilogue.reduces:
        c.epilogue.check_parts(extents[1], addends, config.columns_at_once)
    A, B, C = as_read(c, A, B, C)
    (m, n), k = config.loaded, config.line
    rings = ring_of(A, (m, k), c), ring_of(B, (n, k), c)
    group = tcgen05.CtaGroup(config.blocks)
    loads = load_map(c, A, (m, k), 1, group), load_map(c, B, (n, k), 1, group)
    stores = {width: None if c.direct else store_map(c, C, width) for width in dict.fromkeys(config.widths)}
    raster = utils.GroupedRaster(
        cute.ceil_div(extents[:2], (config.tile[0], c.columns)),
        config.group,
        cluster=config.blocks,
        sms=config.processors,
        matrices=extents[2] if c.batch else None,
    )
    mma = tiled_mma(config, A, B)
    factors = scale_maps(config, A, B, scales, group)
    steps = cute.ceil_div(A.shape[1], k)
    outputs = Outputs(stores, beside_maps(c, addends), C if c.direct else None)
    gemm(loads, factors, outputs, mma, rings, raster, steps, addends, config).launch(
        grid=raster.persistent_grid(), block=THREADS, cluster=(config.blocks, 1, 1)
    )


def scale_maps(
    c: Sm100Config,
    A: cute.Tensor,
    B: cute.Tensor,
    scales: tuple[cute.Tensor | None, cute.Tensor | None],
    group: tcgen05.CtaGroup,
) -> tuple[tuple[cute.CopyAtom, cute.Tensor], ...]:
    """Return the TMA atoms that load the scale factors of A and B, and their coordinates. Check the factors."""
    found = []
    for name, x, matrix in zip(("scale_a", "scale_b"), scales, (A, B)):
        if (x is None) == bool(c.scaling):
            what = f"needs {name}" if c.scaling else f"has no scale factors; omit {name}"
            raise ValueError(f"launch: a configuration with scaling={c.scaling!r} {what}")
        if x is None:
            continue
        if x.element_type is not cute.Uint8 or cute.rank(x) != 1:
            raise ValueError(f"launch: {name} must be a vector of ui8, blocks of 128 rows x 4 factors, got {x}")
        rows = matrix.shape[0]
        along_k = cute.ceil_div(matrix.shape[1] * c.packed, VECTORS[c.scaling] * FACTORS)
        assert cute.size(x) == cute.ceil_div(rows, ROWS) * along_k * BYTES, (
            f"{name} must have 512 bytes per 128 rows of the matrix and {VECTORS[c.scaling] * FACTORS} of K"
        )
        found.append(factor_map(x, rows, along_k, c.blocks_of_scales.along_k, group))
    return tuple(found)


def tiled_mma(c: Sm100Config, A: cute.Tensor, B: cute.Tensor) -> cute.TiledMma:
    """Return the MMA of a tile."""
    (a, b), group = (number(x) for x in c.elements), tcgen05.CtaGroup(c.blocks)
    if c.scaling:
        k, factors = tcgen05.OperandMajorMode.K, cute.Float8E8M0FNU if c.scaling == "mx" else cute.Float8E4M3FN
        return blackwell.make_blockscaled_trivial_tiled_mma(a, b, k, k, factors, VECTORS[c.scaling], group, c.tile)
    majors, source = (hopper.major(A), hopper.major(B)), tcgen05.OperandSource.SMEM
    if BITS[c.element] == 16:
        op = tcgen05.MmaF16BF16Op(a, cute.Float32, (*c.tile, 16), group, source, *majors)
    elif c.element == "tf32":
        op = tcgen05.MmaTF32Op((*c.tile, 8), group, source, *majors)
    else:
        op = tcgen05.MmaF8F6F4Op(a, b, cute.Float32, (*c.tile, 32), group, source, *majors)
    return cute.make_tiled_mma(cute.make_mma_atom(op))


class Outputs(NamedTuple):
    """The matrices that a kernel stores."""

    tmas: Stores  # C, by TMA
    beside: Mapping[int, Stores]  # extra outputs that are stored like C, by output index
    target: cute.Tensor | None  # C, for stores without TMA


@cute.kernel(min_blocks=1)
def gemm(
    loads: Sequence[tuple[cute.CopyAtom, cute.Tensor]],
    scales: Sequence[tuple[cute.CopyAtom, cute.Tensor]],
    outputs: Outputs,
    mma: cute.TiledMma,
    rings: Sequence[cute.ComposedLayout],
    raster: utils.GroupedRaster,
    steps: cute.Int32,
    addends: Addends,
    config: cute.Constexpr[Sm100Config],
):
    """Compute every n-th tile of C, n being the number of blocks, or of pairs."""
    c, (m, n), k = config.base, config.loaded, config.line

    def fetches(
        tiles: Tiles, sA: cute.Tensor, sB: cute.Tensor
    ) -> Callable[[pipeline.Slot, Place, cute.Int32 | int], None]:
        a = Operand(loads[0], sA, (m, k), 1, 0, k_major=c.major_a == "k", batch=c.batch)
        b = Operand(loads[1], sB, (n, k), 1, 0, k_major=c.major_b == "k", batch=c.batch)

        def fetch(stage: pipeline.Slot, place: Place, i: cute.Int32 | int) -> None:
            a.fetch(stage.index, stage.barrier, place.row, i, place.of[0])
            b.fetch(stage.index, stage.barrier, place.column * config.blocks + tiles.rank, i, place.of[1])

        return fetch

    def result(staging: cute.Pointer) -> TmemResult:
        if not c.direct and cute.arch.thread_idx().x == 0:
            for tmas in (outputs.tmas, *outputs.beside.values()):
                for tma in tmas.values():
                    cpasync.prefetch_descriptor(tma[0])
        fused = Fused(c.epilogue, addends, pairs=not c.direct, batch=c.batch)
        return TmemResult(config, outputs, staging, fused)

    def held() -> Held:
        blocks = config.blocks_of_scales
        rows = 1, blocks.of_b
        factors = [ScaleOperand(scale, config.stages, n, blocks.along_k) for scale, n in zip(scales, rows)]

        def products(operands: Sequence[cute.Tensor], memory: cute.Pointer) -> Mmas | ScaledMmas:
            if config.scaling:
                return ScaledMmas(mma, config.scaling, operands, factors, memory)
            return Mmas(mma, operands, config.tile)

        return Held(factors, products)

    work = Work(lambda: Tiles(c, raster), fetches, result, held)
    take_roles(config, (*loads, *scales), rings, steps, work, Sizes(config.stage_bytes, config.columns, k))


class Work(NamedTuple):
    """The tiles of a kernel, the loads of their operands, the MMAs, and the stores of their results."""

    tiles: Callable[[], Any]  # returns the tiles; all threads call it
    fetches: Callable[[Any, cute.Tensor, cute.Tensor], Callable[[pipeline.Slot, Any, cute.Int32 | int], None]]
    # of the tiles and the stages of A and B: the function that loads K step i of a place to a stage
    result: Callable[..., Any]  # of the staging buffers: the TmemResult
    held: Callable[[], "Held"]  # returns the operands in tensor memory; all threads call it


class HeldOperand(Protocol):
    """An operand that is loaded with A and B, and then copied to tensor memory."""

    def fetch(self, stage: cute.Int32, barrier: cute.Pointer, first: cute.Int32, k: cute.Int32 | int) -> None:
        """Issue the load of a stage, from block ``first`` of rows on."""
        ...


class Held(NamedTuple):
    """Operands in tensor memory, of A and then of B, and the MMAs that read them."""

    operands: Sequence[HeldOperand]
    products: Callable[[Sequence[cute.Tensor], cute.Pointer], "Mmas | ScaledMmas"]
    # of A and B by MMAs, and of tensor memory behind the accumulators: the MMAs


class Sizes(NamedTuple):
    """Sizes of a block."""

    stage_bytes: int  # bytes of a stage
    columns: int  # columns of tensor memory
    line: int  # elements of B along K in a stage
    buffers: int | None = None  # staging buffers, by default those of the configuration


def take_roles(
    config: Sm100Config,
    loads: Sequence[tuple[cute.CopyAtom, cute.Tensor]],
    rings: Sequence[cute.ComposedLayout],
    steps: cute.Int32,
    work: Work,
    sizes: Sizes,
) -> None:
    """Allocate the memory of a block, and load, multiply and store its tiles.

    Args:
        config: The configuration.
        loads: TMA atoms and coordinates of A, B and all other operands.
        rings: Layouts of the stages of A and B.
        steps: Steps of K.
        work: The operands and results.
        sizes: Sizes of a block.
    """
    (m, n), k = config.loaded, config.line
    columns, pair = config.tile[1], config.blocks == 2
    warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    if warp == LOADER and cute.arch.elect_one():
        for atom, _ in loads:
            cpasync.prefetch_descriptor(atom)
    sA, sB = (cute.smem_tensor(atom.value_type, ring.outer, 1024, ring.inner) for (atom, _), ring in zip(loads, rings))
    buffers = config.buffers if sizes.buffers is None else sizes.buffers
    staging = cute.arch.alloc_smem(cute.Uint8, buffers * BUFFER, alignment=1024) if buffers else None
    held = work.held()
    slot = cute.arch.alloc_smem(cute.Int32, 1)
    done = cute.arch.alloc_smem(cute.Int64, 1) if pair else None
    cluster = cute.tiled_divide(cute.make_layout((config.blocks, 1, 1)), (config.blocks,))  # (V, M, N, K)
    producer, consumer = pipeline.PipelineTmaUmma.create(
        num_stages=config.stages,
        producer_group=1,
        consumer_group=1,
        tx_count=sizes.stage_bytes * config.blocks,
        cta_layout_vmnk=cluster,
        defer_sync=True,
    ).make_participants()
    multiplier, reader = pipeline.PipelineUmmaAsync.create(
        num_stages=config.slots,
        producer_group=1,
        consumer_group=128 * config.blocks,
        cta_layout_vmnk=cluster,
        defer_sync=True,
    ).make_participants()
    barrier = pipeline.NamedBarrier(0, THREADS)
    tmem = utils.TmemAllocator(slot, barrier, MULTIPLIER, is_two_cta=pair, two_cta_tmem_dealloc_mbar_ptr=done)
    if pair:
        pipeline.pipeline_init_arrive((config.blocks, 1))
        pipeline.pipeline_init_wait((config.blocks, 1))
    tmem.allocate(sizes.columns)
    tmem.relinquish_alloc_permit()
    tmem.wait_for_alloc()
    memory = tmem.retrieve_ptr(cute.Float32)
    tiles = work.tiles()

    if warp == LOADER and cute.arch.elect_one():
        fetch = work.fetches(tiles, sA, sB)
        for tile in range(tiles.first, tiles.count(), tiles.step):
            place = tiles.place(tile)
            for i in range(steps):
                stage = producer.acquire_and_advance()
                fetch(stage, place, i)
                for operand, first in zip(held.operands, (place.row, place.column * columns // ROWS)):
                    operand.fetch(stage.index, stage.barrier, first, i)
        if pair:
            producer.tail()  # Commits of the other block still arrive here.
    elif warp == MULTIPLIER and tiles.rank == 0 and cute.arch.elect_one():
        operands = cute.tiled_divide(sA, (m, k // 4)), cute.tiled_divide(sB, (n, sizes.line // 4))
        behind = memory + (config.accumulators * columns - config.overlap) if held.operands else memory
        products = held.products(operands, behind)
        for tile in range(tiles.first, tiles.count(), tiles.step):
            turn = multiplier.state.phase ^ 1 if config.overlap else None  # Accumulators that overlap take turns.
            result = multiplier.acquire_and_advance()
            acc = products.accumulator(memory + (result.index if turn is None else turn) * config.distance)
            first = products.first(tiles, tile)
            for i in range(steps):
                stage = products.wait(consumer)
                products.multiply(acc, stage.index, first, i > 0)
                stage.release()
            result.commit()
    elif warp < LOADER:
        out = work.result(staging)
        for tile in range(tiles.first, tiles.count(), tiles.step):
            place = tiles.place(tile)
            ahead = out.ahead(place)
            if config.overlap:
                second = reader.state.phase
                result = reader.wait_and_advance()
                if second == 0:
                    out.tile(memory, place, ahead, result.release, shared=range(config.distance, columns))
                else:
                    out.tile(memory + config.distance, place, ahead, result.release, shared=range(config.overlap))
            else:
                result = reader.wait_and_advance()
                out.tile(memory + result.index * columns, place, ahead, result.release)
        out.finish()
        if config.overlap:  # The last loads follow the release of the accumulator.
            tcgen05.fence_before_thread_sync()
    cute.arch.sync_threads()
    tmem.free(memory)


class Mmas:
    """MMAs of a stage without scale factors.

    Args:
        mma: The MMA.
        operands: A and B in shared memory, by MMAs.
        tile: M and N of a tile.
    """

    def __init__(self, mma: cute.TiledMma, operands: Sequence[cute.Tensor], tile: tuple[int, int]):
        self.mma, (a, b) = mma, operands
        self.a, self.b = mma.make_fragment_A(a), mma.make_fragment_B(b)
        self.layout = mma.make_fragment_C(mma.partition_shape_C(tile)).layout

    def accumulator(self, memory: cute.Pointer) -> cute.Tensor:
        """Return the accumulator at an address."""
        return cute.make_tensor(memory, self.layout)

    def first(self, tiles: Tiles, tile: cute.Int32 | int) -> int:
        """Return the first column of scale factors; there are none."""
        return 0

    def wait(self, consumer: pipeline.PipelineConsumer) -> pipeline.Slot:
        """Return the next stage when it is full."""
        return consumer.wait_and_advance()

    def multiply(
        self, acc: cute.Tensor, stage: cute.Int32, first: cute.Int32 | int, accumulate: cute.Boolean | bool
    ) -> None:
        """Multiply a stage and add it to the accumulator, or overwrite the accumulator."""
        at = (None, None, None, stage)
        cute.gemm(self.mma, acc, self.a[at], self.b[at], accumulate=accumulate)


class TmemResult(Staging):
    """Epilogue and store of accumulators in tensor memory, through the staging buffers in ``memory``."""

    def __init__(self, config: Sm100Config, outputs: Outputs, memory: cute.Pointer, fused: Fused):
        self.config, self.thread = config, cute.arch.thread_idx().x
        super().__init__(config.base, outputs.tmas, memory, 0, fused, outputs.target, outputs.beside)

    @property
    def lanes(self) -> Lanes:
        return OF_TENSOR_MEMORY if self.config.loaded[0] == 128 else lanes_of(0)

    @property
    def atoms(self) -> int:
        return self.config.atoms

    def row(self, place: Place, atom: int) -> cute.Int32:
        """Return the first row of the 16 rows that warp 0 loads at once."""
        return place.row * self.c.tile[0] + atom * 16

    def _pieces(self) -> list[tuple[int, int, int]]:
        starts = [sum(self.config.widths[:i]) for i in range(len(self.config.widths))]
        found = [(atom, start, w) for atom in range(self.atoms) for start, w in zip(starts, self.config.widths)]
        # The compiler loads each per-column operand once for all rows, and must hold it from the first to the last use.
        return found if self.beside or self.c.epilogue.whole_tiles else sorted(found, key=lambda x: x[1])

    def tile(
        self, acc: cute.Pointer, place: Place, ahead: Any, release: Callable[[], None], shared: range = range(0)
    ) -> None:
        """Apply the epilogue to a tile and store it.

        Args:
            acc: The accumulator.
            place: The tile.
            ahead: Operands that :meth:`ahead` prefetched.
            release: Called when the accumulator is in registers, or its ``shared`` columns are, which come first.
            shared: Columns at one end that the accumulator of the next tile shares.
        """
        pieces, at_once = self._pieces(), self.config.columns_at_once
        wide = at_once // self.twice  # columns of C that are computed at once
        values = None
        by_parts = len(shared) > 0 and not (self.beside or self.c.epilogue.whole_tiles)
        if by_parts and shared.start > 0:
            pieces = sorted(pieces, key=lambda x: -x[1])
        starts = [i for i, (_, column, _) in enumerate(pieces) if column % wide == 0]
        if by_parts:
            first, end = shared.start - at_once, shared.stop
            starts = [i for i in starts if first < pieces[i][1] * self.twice < end]
        last = max(starts)
        for i in cute.range_constexpr(len(pieces)):
            atom, column, width = pieces[i]
            if column % wide == 0:
                count = min(at_once, self.c.tile[1] - column * self.twice)
                values = self._load(acc, atom, column * self.twice, count)
                if i == last:
                    release()
                values = self.fuse(values, count, place, atom, column, ahead)
            found = self.stores[width].registers(values, (column % wide) // 2)
            out = cute.make_rmem_tensor_like(found, self.kind)
            out.store(rounded(found, self.kind))
            self.put_piece(i, out, place, pieces)

    def _load(self, acc: cute.Pointer, atom: int, column: int, count: int) -> cute.Tensor:
        """Load ``count`` columns of a warp's 16 rows to registers, in the layout of ``wgmma`` accumulators."""
        values = cute.make_rmem_tensor(count // 2, cute.Float32)
        done = 0
        while done < count:
            width = min(128, 1 << (count - done).bit_length() - 1)
            layout = cute.make_layout(((16, 4), width), stride=((LANE, 32 * LANE), 1))
            part = cute.make_tensor(acc + (16 * LANE * atom + column + done), layout)
            op = tcgen05.Ld16x256bOp(tcgen05.Repetition(width // 8))
            load = tcgen05.make_tmem_copy(cute.make_copy_atom(op, cute.Float32), part).get_slice(self.thread)
            target = cute.make_tensor(values.iterator + done // 2, cute.make_layout((width // 2, 1, 1)))
            cute.copy(load, load.partition_S(part), target)
            done += width
        return values


@printed
def sm100_gemm_text(config: Sm100Config | None = None) -> cute.Compiled:
    """Trace the kernel and ``launch(A, B, C)``, followed by the scale factors and the arguments of the epilogue."""
    config = config or DEFAULT
    config.check()
    c = config.base
    align = ["align<16>"] * 2 + [f"align<{BITS[c.output] // 8 if c.direct else 16}>"]
    matrices = [cute.Tensor[number(e), *x] for e, x in zip(elements_of(c), zip(layouts_of(c), align))]
    factors = cute.Tensor[cute.Uint8, "?:1", "align<16>"]
    if config.scaling:
        return cute.trace(launch_scaled, *matrices, factors, factors, addends=arguments_of(c), config=config)
    return cute.trace(launch, *matrices, **arguments_of(c), config=config)
