"""Configurations of Hopper GEMMs: element types, majors, tile, cluster, schedule, split-K, few rows and groups.

:class:`GemmConfig` describes a kernel that computes whole tiles (:mod:`cute_dialect.kernels.gemm.hopper`),
:class:`SplitConfig` one whose blocks split K. :class:`SkinnyConfig` is that of a kernel for few rows
(:mod:`cute_dialect.kernels.gemm.few_rows`), :class:`GroupedConfig` that of a grouped GEMM
(:mod:`cute_dialect.kernels.gemm.grouped`).

>>> config = GemmConfig()
>>> config.tile, config.stages, config.smem_bytes
((128, 256, 64), 4, 229440)
>>> SplitConfig(parts=4).workspace(8192 // 256)           # f32 values for 32 tiles
4194304
>>> config = SkinnyConfig(columns=128, stages_a=3, stages=9, parts=2)
>>> config.name, config.smem_bytes
('f16-f16-kk-128x128-y-p2-q3.9-h', 229568)
>>> GroupedConfig(GemmConfig(early=False, serpentine=False, deferred=False), "k").batched
(False, False, True)
"""

from __future__ import annotations

from functools import cache
from math import gcd
from typing import NamedTuple

from cute_dialect.arch.targets import DEFAULT_TARGET
from cute_dialect.kernels.common.elements import BITS, FACTORS, outputs_of, sums_of
from cute_dialect.kernels.common.kernel_names import differing
from cute_dialect.kernels.epilogue.combination import Epilogue
from cute_dialect.kernels.epilogue.fragment_layout import Lanes, lanes_of

BLOCK = 128
"""Extent of a scaling block: 128 elements of K, and 128 columns of B where scales are per block."""

EVICT_FIRST = 0x12F0000000000000
"""L2 cache policy ``createpolicy.fractional.L2::evict_first`` for all bytes (CUTLASS ``TMA::CacheHintSm90``)."""


def at_once(sms: int, cluster: int) -> int:
    """Return the number of clusters of ``cluster`` blocks that are resident at once on Hopper, one block per SM.

    A cluster must fit in one GPC, and a GPC has 10 to 18 SMs. Some GPCs therefore have SMs left over: an H200 with 132
    SMs ran 30 clusters of four blocks at once.

    >>> [at_once(132, cluster) for cluster in (1, 2, 4, 8)]
    [132, 66, 30, 14]
    """
    whole = max(1, sms // cluster)
    return max(1, whole * 10 // 11) if cluster == 4 else max(1, whole * 7 // 8) if cluster > 4 else whole


def part_of(tile: tuple[int, int], blocks: int, *, k_major: bool, bits: int = 16) -> tuple[int, int]:
    """Return the shape (rows, K) of the slice that each block loads of a multicast tile of A or B.

    A slice is contiguous in the swizzled layout of the tile. A K-major tile is split into groups of 8 rows of 128
    bytes. An MN-major tile is split into chunks of 64 rows (128 for ``bits`` = 8). If the chunks do not divide evenly
    among the blocks, each block loads at least 8 lines of K of every chunk.

    >>> part_of((96, 64), 4, k_major=True), part_of((128, 64), 2, k_major=False), part_of((96, 64), 4, k_major=False)
    ((24, 64), (64, 64), (96, 16))
    """
    rows, k = tile
    if k_major or rows % (gcd(rows, 128 if bits == 8 else 64) * blocks) == 0:
        return rows // blocks, k
    return rows, k // blocks


def blocks_of(columns: int) -> list[range]:
    """Return, for each group of 8 columns of a tile, the range of scaling blocks that can contain it.

    Tiles of ``columns`` columns are adjacent, so a tile may start in the middle of a scaling block of 128 columns.
    Block 0 is the one that contains the first column of the tile.

    >>> blocks_of(64)[0], blocks_of(160)[3], blocks_of(160)[4], blocks_of(176)[-1]
    (range(0, 1), range(0, 1), range(0, 2), range(1, 3))
    """
    last = BLOCK - gcd(columns, BLOCK)  # the largest offset of a tile's first column in its scaling block
    return [range(i // BLOCK, (last + i) // BLOCK + 1) for i in range(0, columns, 8)]


@cache
def selects(columns: int) -> int:
    """Return the number of instructions per stage and 64 rows in which a lane selects the scale of a column.

    For each scaling block after the first that a group of columns may be in, a lane needs two selects. For each block
    but the first of these it also needs a comparison.

    >>> [selects(columns) for columns in (64, 128, 144, 176, 192)]
    [0, 0, 21, 27, 3]
    """
    every = gcd(columns, BLOCK)
    possible = [len(x) for x in blocks_of(columns)[:: every // 8] if len(x) > 1]
    return sum(2 * count - 1 for count in possible)


def _check_shared_memory(needed: int, parts: str = "") -> None:
    """Raise ValueError if a block cannot have ``needed`` bytes. ``parts`` lists what needs them."""
    if needed > (most := DEFAULT_TARGET.shared):
        raise ValueError(
            f"the kernel needs {needed} bytes of shared memory{parts}; at most {most} are available, use fewer stages"
        )


LETTERS = {
    "batch": "b", "deferred": "d", "promote": "p", "schedule": "t", "stream_k": "k", "major_c": "w", "accumulator": "a",
    "scaled": "x", "array": "v", "saturate": "y", "scales": "e", "direct": "o", "dependent": "l", "scaled_columns": "f",
    "prefetch": "j",
}  # fmt: skip
"""Fields of :class:`GemmConfig` -> letters in a kernel's name, if they differ from the defaults (``deferred``: False).
"""


class GemmConfig(NamedTuple):
    """Configuration of a Hopper GEMM kernel. ``check`` raises an error if no such kernel exists."""

    # Types: ``element`` of A and B, two names joined by an underscore if they differ (see ``elements.py``); ``output``
    # of C.
    element: str = "f16"
    output: str = "f16"
    # The contiguous mode of each matrix. ``major_b`` may be "n" for 16-bit elements only. ``major_c`` = "m" is for
    # 16-bit results, and also serves row-major results of the transposed problem, ``C^T = B A^T``.
    major_a: str = "k"  # "k" or "m"
    major_b: str = "k"  # "k" or "n"
    major_c: str = "n"  # "n" or "m"
    tile: tuple[int, int, int] = (128, 256, 64)  # (M, N, K) of a block, in elements
    stages: int = 4
    cluster_m: int = 2  # blocks along M, which share a tile of B by multicast
    cluster_n: int = 1  # blocks along N, which share a tile of A by multicast
    group: int = 8  # cluster rows of a raster group
    sms: int = 132  # multiprocessors of the GPU
    deferred: bool = True  # store a tile while the next one is multiplied
    early: bool = True  # issue the first loads before the cluster barrier
    serpentine: bool = True  # odd raster groups traverse N in reverse, odd tiles traverse K in reverse
    batch: bool = False  # A, B and C have a batch mode; its extent may be 1 for A or B (broadcast)
    # Two-level accumulation: the tensor cores accumulate within a stage, f32 registers across stages. 8-bit floats need
    # it, because their tensor-core accumulators keep fewer bits.
    promote: bool = False
    fallback: bool = False  # compile a second, simple kernel for matrices that TMA cannot read
    stream_b: bool = False  # mark B as evict-first in the L2, for a B that is read once
    epilogue: Epilogue = Epilogue()
    # "cooperative": the consumers share a tile, 64 rows each (128 of 256). "pingpong": each consumer has a tile of 64
    # or 128 rows, and they alternate between the main loop and the epilogue (``hopper.Pingpong``).
    schedule: str = "cooperative"
    stream_k: bool = False  # all blocks share the tiles of the last wave (``split_k.Stream``)
    buffers: int = 2  # staging buffers of 8 KiB per consumer, for storing C
    accumulator: str = ""  # "f16" for f16 operands: half the registers, and a rounding error that grows with K
    scaled: bool = (
        False  # block scales: per row of A and per 128 columns of B, for each 128 of K (see ``block_scaling.py``)
    )
    array: bool = False  # pointer-array batch: matrices at arbitrary addresses (see ``operands.places_of``)
    saturate: bool = False  # integer accumulators saturate to i32 instead of wrapping
    direct: bool = False  # store elements of C from registers, for a C that TMA cannot write
    scales: str = "f32"  # type of block scales; "ui8" for e8m0 exponents
    # Programmatic dependent launch: the kernel may start while the previous one runs, and waits for it before it
    # touches a matrix. The next launch may start in the same way.
    dependent: bool = False
    scaled_columns: bool = False  # block scales of B are per column instead of per 128 columns
    # Load the matrices that the epilogue reads early: those of the next chunk before a chunk is stored or, if the
    # epilogue is applied to a whole tile, those of the tile before its main loop.
    prefetch: bool = False

    @property
    def cluster_name(self) -> str:
        """The part of a kernel's name that stands for the cluster, such as ``c2`` or ``c2n2``."""
        m = f"c{self.cluster_m}" * (self.cluster_m > 1 or self.cluster_n == 1)
        return m + f"n{self.cluster_n}" * (self.cluster_n > 1)

    @property
    def sums(self) -> str:
        """The accumulator type."""
        return sums_of(self.element, self.accumulator)

    @property
    def bits(self) -> int:
        """Bits of an element of A and B."""
        return BITS[self.element]

    @property
    def through_registers(self) -> bool:
        """Return True if consumers load A to registers. ``wgmma`` reads M-major A from shared memory for 16-bit
        elements only.
        """
        return self.bits != 16 and self.major_a == "m"

    @property
    def lanes(self) -> Lanes:
        """The mapping of lanes of a warpgroup to rows of the tile."""
        return lanes_of(self.bits if self.through_registers else 0)

    @property
    def consumers(self) -> int:
        """Number of consumer warpgroups: one per 64 rows (128 for a tile of 256), or two with a tile each for
        pingpong.
        """
        return 2 if self.schedule == "pingpong" or self.tile[0] == 256 else self.tile[0] // 64

    @property
    def sharers(self) -> int:
        """Number of consumer warpgroups that share a tile."""
        return 1 if self.schedule == "pingpong" else self.consumers

    @property
    def atoms(self) -> int:
        """Number of ``wgmma`` instructions that cover a warpgroup's rows."""
        return self.tile[0] // 64 // self.sharers

    @property
    def accumulators(self) -> int:
        """Number of tensor-core accumulators of a warpgroup.

        With two-level accumulation there are two if registers allow. The MMAs of one stage then overlap with adding the
        accumulator of the previous stage to the f32 accumulator.
        """
        # In clusters, ptxas serializes wgmma where the scales of several column blocks are selected.
        several = self.scaled and not self.scaled_columns and 128 % self.tile[1] != 0 and self.cluster > 1
        if not self.promote or self.sharers > 2 or self.through_registers or several:
            return 1
        sums = self.atoms * self.tile[1] // 2
        return 2 if 3 * sums + self._waiting + self.of_columns <= self.most_registers else 1

    @property
    def _waiting(self) -> int:
        """Registers of converted results that wait for a deferred store."""
        return self.atoms * self.tile[1] * BITS[self.output] // 64 if self.deferred else 0

    @property
    def of_columns(self) -> int:
        """Registers for per-column scales and for their products with row scales."""
        return 40 if self.scaled_columns else 0

    @property
    def threads(self) -> int:
        """Threads of a block: a producer warpgroup and the consumers."""
        return 128 * (1 + self.consumers)

    @property
    def cluster(self) -> int:
        return self.cluster_m * self.cluster_n

    @property
    def at_once(self) -> int:
        """Number of blocks that are resident at once."""
        return at_once(self.sms, self.cluster) * self.cluster

    @property
    def sharing(self) -> int:
        """Number of blocks of a cluster that share A or B with a given block, including itself."""
        return self.cluster_m + self.cluster_n - 1

    @property
    def stage_bytes(self) -> int:
        """Bytes of A and B in one stage."""
        m, n, k = self.tile
        return (m + n) * k * self.bits // 8

    @property
    def k_bytes(self) -> int:
        """Bytes of K in a stage."""
        return self.tile[2] * self.bits // 8

    @property
    def chunk(self) -> int:
        """Columns of C in a full chunk, the unit of a store: rows of 128 bytes, or 64 columns of 128 bytes."""
        return 1024 // BITS[self.output]

    @property
    def columns(self) -> int:
        """Columns of C in a tile: half of the accumulator's columns if the epilogue combines pairs of columns."""
        return self.tile[1] // 2 if self.epilogue.half else self.tile[1]

    @property
    def part(self) -> int:
        """Accumulator columns that the epilogue processes in one call."""
        if BITS[self.output] != 32 or self.epilogue.whole_tiles:
            return self.tile[1]
        return self.widths[0] * (2 if self.epilogue.half else 1)

    @property
    def widths(self) -> tuple[int, ...]:
        """Columns of each chunk of a tile. The last chunks are half and quarter chunks.

        >>> GemmConfig(tile=(128, 176, 64)).widths
        (64, 64, 32, 16)
        """
        whole, rest = divmod(self.columns, self.chunk)
        return (self.chunk,) * whole + tuple(w for w in (self.chunk // 2, self.chunk // 4) if rest & w)

    @property
    def beside(self) -> tuple[int, ...]:
        """Indices of the epilogue's extra outputs that are stored like C, through shared memory and TMA."""
        graph = self.epilogue.graph
        alike = BITS[self.output] == 16 and not (self.direct or self.stream_k or self.array)
        alike = alike and not (self.major_c == "m" and self.through_registers)
        if graph is None or not alike or graph.paired or graph.block or graph.zero_factor is not None:
            return ()
        like_c = self.output, self.batch, self.major_c
        return tuple(
            [i for i, x in enumerate(graph.outputs) if i and x.tma and (x.element, x.batch, x.order) == like_c]
        )

    @property
    def by_columns(self) -> bool:
        """Return True if C can be stored with contiguous columns."""
        return BITS[self.output] == 16 or (BITS[self.output] == 32 and (self.through_registers or self.direct))

    @property
    def smem_bytes(self) -> int:
        """Shared memory of a block in bytes: the ring of stages, the consumers' staging buffers and the barriers."""
        m, n, k = self.tile
        ring = sum(-(-self.stages * rows * k * self.bits // 8 // 1024) * 1024 for rows in (m, n))
        return ring + self.consumers * self.buffers * 64 * 128 + self.stages * 16

    @property
    def registers(self) -> int:
        """Registers per thread for accumulators, results that wait to be stored, and fragments of A in flight."""
        sums = self.atoms * self.tile[1] // 2 // (2 if self.sums == "f16" else 1)
        sums = sums * (1 + self.accumulators if self.promote else 1) + self.of_columns
        return sums + self._waiting + (16 * self.atoms if self.through_registers else 0)

    @property
    def most_registers(self) -> int:
        """Register budget for ``registers``. The remaining registers hold addresses and loads in flight."""
        return 96 if self.consumers == 3 else 176 if (self.stream_k or self.scaled) and self.atoms == 2 else 192

    def check_epilogue(self) -> None:
        """Raise ValueError if the epilogue does not suit the tile or the layout of C."""
        n = self.tile[1]
        self.epilogue.check()
        if self.epilogue.split and (self.major_c != "n" or self.stream_k or self.fallback or self.array):
            raise ValueError("a reshaped result needs major_c='n' and no stream_k, fallback or array")
        if self.epilogue.split and not self.direct and not self.epilogue.suits_tma(self.widths):
            raise ValueError(f"chunks of {self.widths} columns cross a mode of the reshaped result; use direct=True")
        if self.epilogue.reduces and self.part != self.tile[1] and len(set(self.widths)) > 1:
            raise ValueError(
                f"a row reduction needs chunks of one width, but tile N {n} has {self.widths}; "
                f"use a multiple of {self.chunk}"
            )
        if self.epilogue.block and self.tile[1] % self.epilogue.block:
            raise ValueError(f"tile N is {n}; it must be a multiple of the scaling block {self.epilogue.block}")
        if self.epilogue.whole_tiles and (self.major_c != "n" or self.sums != "f32" or self.epilogue.paired):
            raise ValueError(
                "an epilogue over whole rows or blocks of columns needs major_c='n', an f32 accumulator and "
                "no pairs of columns"
            )
        if self.epilogue.paired and not self.epilogue.half and (self.major_c != "n" or self.tile[1] % 16):
            raise ValueError(
                f"an epilogue over pairs of columns needs major_c='n' and a tile N that is a multiple of 16, "
                f"got major_c={self.major_c!r}, tile N {n}"
            )
        if self.epilogue.half and (self.major_c != "n" or sum(self.widths) != self.columns):
            raise ValueError(
                f"an epilogue that halves the columns needs major_c='n' and a tile N that is a multiple of "
                f"{self.chunk // 2}, got major_c={self.major_c!r}, tile N {n}"
            )
        if self.epilogue.active and self.fallback:
            raise ValueError("fallback=True cannot be combined with an epilogue, which the fallback kernel lacks")

    def check(self) -> None:
        """Raise ValueError if no kernel supports this configuration."""
        m, n, k = self.tile
        self.check_epilogue()
        if self.direct and ((self.epilogue.active and not self.epilogue.split) or self.fallback or self.array):
            raise ValueError("direct=True cannot be combined with an epilogue, fallback or array")
        if self.element not in FACTORS:
            raise ValueError(f"element {self.element!r} is not supported; use one of {', '.join(FACTORS)}")
        if self.output not in outputs_of(self.element):
            raise ValueError(
                f"output {self.output!r} is not supported for element {self.element!r}; use one of "
                f"{', '.join(outputs_of(self.element))}"
            )
        if k * self.bits not in (512, 1024):
            raise ValueError(
                f"tile K is {k}; it must be {1024 // self.bits} elements (128 bytes) or {512 // self.bits}"
            )
        if self.saturate and (self.sums != "i32" or self.stream_k):
            raise ValueError(f"saturate needs an i32 accumulator and no stream_k, got {self.sums}")
        if self.schedule not in ("cooperative", "pingpong"):
            raise ValueError(f"schedule is {self.schedule!r}; use 'cooperative' or 'pingpong'")
        if self.schedule == "pingpong" and (self.deferred or self.promote or m * n > 128 * 128 or m > 128):
            how = ", deferred" * self.deferred + ", promoted" * self.promote
            raise ValueError(
                f"schedule 'pingpong' needs a tile of at most 128 x 128 or 64 x 256, without deferred or "
                f"promote, got {m} x {n}{how}"
            )
        if self.deferred and BITS[self.output] == 32:
            raise ValueError(f"deferred=True needs an output of at most 16 bits, got {self.output}")
        if self.promote and self.sums != "f32":
            raise ValueError(f"promote needs an f32 accumulator, got {self.sums}")
        if self.accumulator and (self.accumulator, self.element) != ("f16", "f16"):
            raise ValueError(
                f"accumulator {self.accumulator!r} is not supported for element {self.element!r}; only f16 "
                "elements accumulate in f16"
            )
        if self.scaled and (not self.promote or self.bits != 8 or self.batch or self.serpentine or k != 128):
            raise ValueError(
                "block scales need 8-bit floats, promote=True, a tile K of 128, no batch and no serpentine, "
                f"got {self.element}, tile K {k}{', batch' * self.batch}{', serpentine' * self.serpentine}"
                f"{'' if self.promote else ', promote=False'}"
            )
        if self.scaled_columns and not self.scaled:
            raise ValueError("scaled_columns=True needs scaled=True")
        if self.array and not self.batch:
            raise ValueError("array=True needs batch=True")
        if self.scales not in ("f32", "ui8"):
            raise ValueError(f"scales is {self.scales!r}; use 'f32' or 'ui8' (e8m0 exponents)")
        if self.accumulator and self.stream_k:
            raise ValueError("stream_k needs an f32 or i32 accumulator, got f16")
        if self.stream_k and (self.schedule != "cooperative" or self.batch or self.promote):
            raise ValueError(
                "stream_k needs the cooperative schedule, no batch and no promote, got "
                f"{self.schedule}{', batch' * self.batch}{', promote' * self.promote}"
            )
        if not {self.cluster_m, self.cluster_n} <= {1, 2, 4, 8} or self.cluster > 8:
            raise ValueError(
                f"a cluster of {self.cluster_m} x {self.cluster_n} blocks is not supported; each extent must "
                "be 1, 2, 4 or 8 and the cluster at most 8 blocks"
            )
        if m not in (64, 128, 192, 256) or n % 8 or not 8 <= n <= 256:
            raise ValueError(
                f"a tile of {m} x {n} is not supported; M must be 64, 128, 192 or 256 and N a multiple of 8 up to 256"
            )
        if n % 16 and (BITS[self.output] != 32 or self.major_b != "k" or (self.sums == "i32" and n > 24)):
            raise ValueError(
                f"tile N is {n}; it must be a multiple of 16 (with a 32-bit output and K-major B also of 8, "
                "or 8 and 24 with an i32 accumulator)"
            )
        if BITS[self.output] == 8 and n % 32:
            raise ValueError(f"tile N is {n}; it must be a multiple of 32 for output {self.output}")
        registers = self.registers
        if registers > self.most_registers:
            raise ValueError(
                f"a tile of {m} x {n} needs {registers} accumulator registers per thread; at most "
                f"{self.most_registers} are available"
            )
        for name, size, blocks, major in (
            ("rows", m, self.cluster_n, self.major_a), ("columns", n, self.cluster_m, self.major_b)
        ):  # fmt: skip
            if major != "k" and part_of((size, k), blocks, k_major=False, bits=self.bits)[1] < 8:
                raise ValueError(f"tile K is {k}; each of {blocks} blocks that share {name} must load at least 8 of K")
            if major == "k" and size % (8 * blocks):
                raise ValueError(
                    f"the tile has {size} {name}; {blocks} blocks share them, so use a multiple of {8 * blocks}"
                )
        if self.major_c not in ("m", "n") or (self.major_c == "m" and not self.by_columns):
            raise ValueError(
                f"major_c {self.major_c!r} is not supported for output {self.output}; use 'n', or 'm' with a "
                "16-bit output"
            )
        if self.buffers < 1:
            raise ValueError(f"buffers is {self.buffers}; it must be at least 1")
        self._check_majors()
        barriers = self.stages * 16
        staging = self.smem_bytes - self.stages * self.stage_bytes - barriers
        _check_shared_memory(
            self.smem_bytes, f" ({self.stages} stages of {self.stage_bytes}, C {staging}, barriers {barriers})"
        )

    def _check_majors(self) -> None:
        """Raise ValueError unless ``wgmma``, or a warp's loads, can read A and B in these majors."""
        if self.bits == 16:
            return
        if self.major_b != "k":
            raise ValueError(f"B of {self.element} must be K-major; wgmma transposes 16-bit elements only")
        if self.through_registers and (self.scaled or self.saturate or self.epilogue.half or self.epilogue.reduces):
            raise ValueError(
                f"M-major A of {self.element} cannot be combined with scaled, saturate, pairs of columns or reductions"
            )


class SplitConfig(NamedTuple):
    """Configuration of a split-K GEMM: several blocks share a tile (:mod:`cute_dialect.kernels.gemm.split_k`)."""

    base: GemmConfig = GemmConfig(cluster_m=1, cluster_n=2, deferred=False, serpentine=False)  # at most 192 tile rows
    parts: int = 4  # split-K slices of a tile, one block each

    @property
    def piece(self) -> int:
        """Columns of a tile that a block reduces at once, chosen so that most of the blocks reduce some.

        >>> [SplitConfig(GemmConfig(tile=(128, 128, 64)), parts).piece for parts in (2, 3, 8)]
        [64, 32, 16]
        """
        return self.piece_of(self.base.tile[1], self.base.chunk, self.parts)

    @staticmethod
    def piece_of(columns: int, chunk: int, parts: int) -> int:
        """Return the columns of a piece: a chunk, half a chunk or a quarter, and at least 16."""
        widths = [w for w in (chunk, chunk // 2, chunk // 4) if w >= 16 and columns % w == 0]
        return max(widths, key=lambda w: (min(parts, columns // w), w))

    @staticmethod
    def finishers_of(columns: int, chunk: int, parts: int) -> int:
        """Return the number of blocks of a tile that reduce and store columns of it.

        >>> SplitConfig.finishers_of(64, 64, 32)
        4
        """
        return min(parts, columns // SplitConfig.piece_of(columns, chunk, parts))

    def workspace(self, tiles: int) -> int:
        """Return the workspace size for ``tiles`` tiles, in f32 elements."""
        return tiles * self.parts * self.base.tile[0] * self.base.tile[1]

    def check(self) -> None:
        """Raise ValueError if no kernel supports this configuration."""
        base = self.base
        base.check()
        if base.epilogue.split:
            raise ValueError("split-K cannot be combined with a reshaped result; use a single slice")
        if base.epilogue.paired or base.epilogue.whole_tiles:
            raise ValueError(
                "split-K cannot be combined with an epilogue over pairs of columns, blocks or whole rows; "
                "use a single slice"
            )
        if base.saturate:
            raise ValueError("split-K cannot saturate, because partial sums would not; use a single slice")
        if base.array or base.deferred or base.atoms != 1:
            raise ValueError(f"split-K needs at most 192 tile rows, array=False and deferred=False, got {base}")
        if base.accumulator:
            raise ValueError("split-K needs an f32 or i32 accumulator, got f16")
        if base.schedule != "cooperative" or base.stream_k:
            raise ValueError(f"split-K needs the cooperative schedule and no stream_k, got {base}")
        if self.parts < 2:
            raise ValueError(f"split-K needs at least 2 slices, got parts={self.parts}")


class SkinnyConfig(NamedTuple):
    """Configuration of a Hopper GEMM for few rows (``major_c`` = "m": for few columns)."""

    element: str = "f16"  # of A and B
    output: str = "f16"  # type of C
    rows: int = 128  # of a tile
    columns: int = 64  # of a tile
    stages_a: int = 9  # stages of A, 128 bytes of K each
    stages: int = 9  # stages of B
    share: int = 1  # blocks of a cluster that share A by multicast
    parts: int = 1  # split-K slices of a tile, one block of the cluster each
    hint: bool = True  # mark B as evict-first in the L2
    direct: bool = False  # store C from registers instead of through shared memory and TMA
    live: int = 0  # rows of A to load if M is smaller than a tile, since TMA fills out-of-bounds rows slowly; 0 for all
    l2: int = 128  # bytes of B that the L2 fetches at once: 64, 128 or 256
    epilogue: Epilogue = Epilogue()
    # The contiguous modes: A "k" or "m", B "k" or "n" (elements other than 16-bit: "k" only), C "n" or "m". C along "m"
    # also serves problems with few columns, as the transposed problem ``C^T = B A^T``.
    major_a: str = "k"
    major_b: str = "k"
    major_c: str = "n"
    dependent: bool = False  # programmatic dependent launch, as in GemmConfig

    @property
    def depth(self) -> int:
        """Elements of K in a stage: 128 bytes."""
        return 1024 // BITS[self.element]

    @property
    def base(self) -> GemmConfig:
        """The equivalent :class:`GemmConfig`, for functions that serve all GEMMs."""
        return GemmConfig(
            element=self.element,
            output=self.output,
            tile=(self.rows, self.columns, self.depth),
            stages=self.stages,
            cluster_m=1,
            cluster_n=self.share,
            deferred=False,
            major_a=self.major_a,
            major_b=self.major_b,
            major_c=self.major_c,
            epilogue=self.epilogue,
        )

    @property
    def cluster(self) -> int:
        """Blocks of a cluster: the split-K slices of a tile are adjacent, then the tiles that share A."""
        return self.share * self.parts

    @property
    def consumers(self) -> int:
        """Number of consumer warpgroups."""
        return self.rows // 64

    @property
    def threads(self) -> int:
        """Threads of a block: the consumers, and two producer warps."""
        return 128 * self.consumers + 64

    @property
    def rows_a(self) -> int:
        """Rows of A that are loaded."""
        return self.live or self.rows

    @property
    def part_a(self) -> int:
        """Rows of A that one block loads."""
        return self.rows_a // self.share

    @property
    def chunk(self) -> int:
        """Columns of C stored at once: rows of 128 or 64 bytes, or 64 elements of each of 64, 32 or 16 columns."""
        piece = self.columns // self.pieces
        if self.major_c == "m":
            return next((width for width in (64, 32) if piece % width == 0), 16)
        whole = 1024 // BITS[self.output]
        return whole if piece % whole == 0 else whole // 2

    @property
    def pieces(self) -> int:
        """Pieces of a consumer's columns that different blocks finish."""
        return max(1, self.parts // self.consumers)

    @property
    def inbox(self) -> tuple[int, int]:
        """Size of the inbox: f32 values from each sender, and the number of senders."""
        return 64 * self.columns // self.pieces * max(1, self.consumers // self.parts), self.parts - 1

    @property
    def smem_bytes(self) -> int:
        """Shared memory of a block in bytes: the rings, the inbox and the barriers."""
        values, senders = self.inbox
        rings = 128 * (self.stages_a * self.rows + self.stages * self.columns)
        return rings + 4 * values * senders + 16 * (self.stages_a + self.stages)

    @property
    def name(self) -> str:
        """Name of the kernel: types, majors of the problem, tile and cluster; ``w`` stands for few columns."""
        majors = self.major_a + self.major_b
        if self.major_c == "m":
            majors = ("k" if self.major_b == "k" else "m") + ("k" if self.major_a == "k" else "n")
        more = differing(self, {"major_c": "w", "share": "-a{}", "parts": "-p{}"}) + f"-q{self.stages_a}.{self.stages}"
        words = {"hint": "-h", "direct": "-e", "live": "-l{}", "l2": "-f{}"}
        more += differing(self, words, hint=False)
        more += (self.epilogue.transposed() if self.major_c == "m" else self.epilogue).suffix
        return f"{self.element}-{self.output}-{majors}-{self.rows}x{self.columns}-y{more}"

    def check(self) -> None:
        """Raise ValueError if no kernel supports this configuration."""
        self.epilogue.check()
        if self.epilogue.paired or self.epilogue.whole_tiles:
            raise ValueError(
                "the kernel for few rows does not support an epilogue over pairs of columns, blocks or whole rows"
            )
        if self.element not in ("f16", "bf16", "tf32", "f8E4M3FN", "f8E5M2") or self.output not in (
            "f16",
            "bf16",
            "f32",
        ):
            raise ValueError(
                f"{self.element} operands with {self.output} results are not supported; use f16, bf16, tf32 or 8-bit "
                "float operands and f16, bf16 or f32 results"
            )
        if self.rows not in (64, 128, 192) or self.columns % 8 or not 8 <= self.columns <= 256:
            raise ValueError(
                f"a tile of {self.rows} x {self.columns} is not supported; rows must be 64, 128 or 192 and columns a "
                "multiple of 8 up to 256"
            )
        if min(self.stages_a, self.stages) < 2:
            raise ValueError(f"stages_a and stages must be at least 2, got {self.stages_a} and {self.stages}")
        if self.l2 not in (64, 128, 256):
            raise ValueError(f"l2 is {self.l2}; it must be 64, 128 or 256 bytes")
        if self.major_a not in ("k", "m") or self.major_b not in ("k", "n") or self.major_c not in ("n", "m"):
            majors = f"{self.major_a}, {self.major_b}, {self.major_c}"
            raise ValueError(f"majors of A, B, C are {majors}; A must be along k or m, B along k or n, C along n or m")
        if (self.major_a, self.major_b) != ("k", "k") and BITS[self.element] != 16:
            raise ValueError(f"A and B of {self.element} must be K-major; wgmma transposes 16-bit elements only")
        if self.major_a == "m" and (self.live or self.share > 1):
            raise ValueError(
                "M-major A needs whole tiles (live=0) and share=1, got "
                f"{self.live or self.rows} of {self.rows} rows, share={self.share}"
            )
        if self.major_b == "n" and self.columns % 16:
            raise ValueError(f"columns is {self.columns}; N-major B needs a multiple of 16")
        if self.live % 8 or not 0 <= self.live <= self.rows or (self.live and self.share > 1):
            raise ValueError(
                f"live is {self.live}; it must be a multiple of 8 up to the {self.rows} rows of a tile, with share=1 "
                f"(got share={self.share})"
            )
        if self.share < 1 or self.rows % (8 * self.share) or self.cluster > 8:
            raise ValueError(
                "a cluster has at most 8 blocks, and each block that shares A must load a multiple of 8 rows; got "
                f"{self.cluster} blocks, of which {self.share} share {self.rows} rows"
            )
        units = self.consumers * self.pieces
        if self.parts < 1 or units % self.parts or self.columns % (8 * self.pieces):
            raise ValueError(
                f"parts is {self.parts}; it must divide the {self.consumers} warpgroups of a tile or be a multiple of "
                f"them, with pieces of a multiple of 8 of {self.columns} columns"
            )
        piece = self.columns // self.pieces
        if not self.direct and (piece % self.chunk or self.output == "f32"):
            chunks = "16 columns" if self.major_c == "m" else "64 bytes"
            raise ValueError(
                f"TMA stores need a 16-bit output and chunks of {chunks}, got {piece} columns of {self.output}; "
                "use direct=True"
            )
        _check_shared_memory(self.smem_bytes)


def deepest(config: SkinnyConfig) -> SkinnyConfig:
    """Return the configuration with as many stages as fit in shared memory. B may have one stage more than A.

    >>> deepest(SkinnyConfig(columns=224))[4:6], deepest(SkinnyConfig(rows=64))[4:6]
    ((5, 5), (14, 14))
    """
    fixed = config._replace(stages_a=0, stages=0).smem_bytes + 2048  # 2048: upper bound of the alignment padding
    room = DEFAULT_TARGET.shared - fixed
    of_a, of_b = 128 * config.rows + 16, 128 * config.columns + 16
    stages = min(32, room // (of_a + of_b))
    if stages < 1:
        raise ValueError(
            f"no stage of a tile of {config.rows} x {config.columns} fits in shared memory; use a smaller tile"
        )
    return config._replace(stages_a=stages, stages=stages + (stages * (of_a + of_b) + of_b <= room))


FORMS = ("m", "n", "k", "rows")
"""The extent that varies between groups. Groups are ranges of rows of A and C (``m``), of columns of B and C (``n``) or
of K (``k``). With ``rows``, group g uses the first rows of matrix g of a batch."""

TABLE = 256
"""Entries of the tile table. With more groups than entries, several groups share an entry."""

_TABLE_BYTES = (TABLE + 1 + 8) * 4


class GroupedConfig(NamedTuple):
    """Configuration of a grouped GEMM, ``C_g = A_g B_g^T``.

    A matrix that is not divided into groups has a third mode, of extent G.
    """

    base: GemmConfig = GemmConfig(early=False, serpentine=False)
    form: str = "m"  # one of FORMS
    begins: bool = False  # pass the start of each group as an argument; otherwise it starts where the previous one ends

    @property
    def batched(self) -> tuple[bool, bool, bool]:
        """True for those of A, B and C that have a third mode."""
        return self.form in ("n", "rows"), self.form in ("m", "rows"), self.form in ("k", "rows")

    @property
    def smem_bytes(self) -> int:
        """Shared memory of a block in bytes."""
        return self.base.smem_bytes + (0 if self.form == "k" else _TABLE_BYTES)

    def check(self) -> None:
        """Raise ValueError if no kernel supports this configuration."""
        c = self.base
        c.check()
        if self.form not in FORMS:
            raise ValueError(f"form is {self.form!r}; use one of {', '.join(FORMS)}")
        if c.batch or c.stream_k or c.fallback or c.early or c.serpentine:
            raise ValueError(f"grouped GEMMs do not support batch, stream_k, fallback, early or serpentine, got {c}")
        if c.through_registers or c.direct or c.array or c.dependent:
            raise ValueError(
                f"grouped GEMMs do not support direct, array, dependent or M-major A that is not 16-bit, got {c}"
            )
        cut = {"m": [c.major_a == "m"], "n": [c.major_b == "n"], "k": [c.major_a == "k", c.major_b == "k"]}
        if any(cut.get(self.form, ())):  # group boundaries would violate TMA's 16-byte alignment
            raise ValueError(
                f"form {self.form!r} needs operands contiguous along the extent that is not divided into "
                f"groups, got A along {c.major_a}, B along {c.major_b}"
            )
        if c.scaled and (self.form not in ("m", "rows") or c.scaled_columns):
            what = "columns" if c.scaled_columns else repr(self.form)
            raise ValueError(f"block scales need form 'm' or 'rows' and scales per 128 columns, got {what}")
        if self.form == "k" and c.deferred:
            raise ValueError("form 'k' needs deferred=False, because a group may have no K steps")
        graph = c.epilogue.graph
        if graph is not None and (graph.reduces or c.epilogue.whole_tiles):
            raise ValueError("the epilogue of a grouped GEMM cannot reduce rows or columns or use whole rows or blocks")
        if graph is not None and len(graph.outputs) > 1 and self.form == "n":
            raise ValueError("form 'n' supports one epilogue output; others would overwrite the next group")
        if self.begins and self.form == "rows":
            raise ValueError("form 'rows' needs begins=False, because every group starts at row 0")
        _check_shared_memory(self.smem_bytes)
