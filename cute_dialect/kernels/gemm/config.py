"""The configuration of a Hopper GEMM: types, majors, tile, cluster, schedule; who shares the K of a tile.

>>> config = GemmConfig()
>>> config.tile, config.stages, config.smem_bytes
((128, 256, 64), 4, 229440)
>>> SplitConfig(parts=4).workspace(8192 // 256)           # f32 values for 32 tiles
4194304
"""

from __future__ import annotations

from functools import cache
from math import gcd
from typing import NamedTuple

from cute_dialect.arch.targets import DEFAULT_TARGET
from cute_dialect.kernels.gemm.elements import BITS, FACTORS, outputs_of, sums_of
from cute_dialect.kernels.gemm.epilogue import Epilogue
from cute_dialect.kernels.gemm.lanes import Lanes, lanes_of

__all__ = ["BITS", "BLOCK", "EVICT_FIRST", "GemmConfig", "SplitConfig", "at_once", "blocks_of", "selects"]

BLOCK = 128
"""Columns of B that have a scale in common where blocks have scales, and elements of K."""

EVICT_FIRST = 0x12F0000000000000
"""The L2 policy ``createpolicy.fractional.L2::evict_first`` of all bytes (CUTLASS ``TMA::CacheHintSm90``)."""


def at_once(sms: int, cluster: int) -> int:
    """Return how many clusters of so many blocks, one a multiprocessor, run at once on Hopper.

    Its multiprocessors come in groups of 10 to 18, and a cluster is in one: of four blocks 30 ran at once on an H200 of
    132 (its groups leave out a few).

    >>> [at_once(132, cluster) for cluster in (1, 2, 4, 8)]
    [132, 66, 30, 14]
    """
    whole = max(1, sms // cluster)
    return max(1, whole * 10 // 11) if cluster == 4 else max(1, whole * 7 // 8) if cluster > 4 else whole


def part_of(tile: tuple[int, int], blocks: int, *, k_major: bool, bits: int = 16) -> tuple[int, int]:
    """Return what each of the blocks that share a tile of A or B, (rows, K), brings of it for all of them.

    It lies in shared memory as the whole does: 8 rows of 128 bytes; where rows are contiguous, chunks of 64 rows, or
    of 128 of ``bits`` 8 (of fewer, where those do not divide the tile), or of all chunks some lines of K, 8 at least.

    >>> part_of((96, 64), 4, k_major=True), part_of((128, 64), 2, k_major=False), part_of((96, 64), 4, k_major=False)
    ((24, 64), (64, 64), (96, 16))
    """
    rows, k = tile
    if k_major or rows % (gcd(rows, 128 if bits == 8 else 64) * blocks) == 0:
        return rows // blocks, k
    return rows, k // blocks


def blocks_of(columns: int) -> list[range]:
    """Return of each 8 columns of a tile which of its blocks of 128 columns may have them: tiles of so many columns
    follow one another, so that a block may begin in the middle of one.

    >>> blocks_of(64)[0], blocks_of(160)[3], blocks_of(160)[4], blocks_of(176)[-1]
    (range(0, 1), range(0, 1), range(0, 2), range(1, 3))
    """
    last = BLOCK - gcd(columns, BLOCK)  # a tile's first column in its block
    return [range(i // BLOCK, (last + i) // BLOCK + 1) for i in range(0, columns, 8)]


@cache
def selects(columns: int) -> int:
    """Return how often a lane chooses among the factors of blocks, for each 64 rows and a step: a comparison, and two
    factors for each block but the first that some columns may have.

    >>> [selects(columns) for columns in (64, 128, 144, 176, 192)]
    [0, 0, 21, 27, 3]
    """
    every = gcd(columns, BLOCK)
    possible = [len(x) for x in blocks_of(columns)[:: every // 8] if len(x) > 1]
    return sum(2 * count - 1 for count in possible)


class GemmConfig(NamedTuple):
    """The configuration of a kernel.

    ``element``: of A and B, two with an underscore where they differ (:mod:`cute_dialect.kernels.gemm.elements`);
    ``output``: of C; ``tile``: (M, N, K) of a block, elements: 64, 128, 192 or 256 rows,
    columns in multiples of 16; ``cluster_m``: blocks along M that share B; ``cluster_n``: along N, that share A;
    ``group``: cluster rows in one raster group; ``sms``: of the chip; ``deferred``: a finished tile is stored while the
    next one is multiplied.  ``major_a``: ``k`` or ``m``, the contiguous mode of A; ``major_b``: ``k`` or ``n`` (other
    than ``k`` with 16-bit elements only); ``major_c``: ``n``, or ``m`` (results of 16 bits), which also serves
    row-major results of the swapped problem, ``C^T = B A^T``.  ``batch``: A, B and C have a third mode, of matrices;
    that of A or B may be 1, for all.  ``promote``: accumulate in two levels, the products of one stage in the tensor
    cores, their sums in f32 registers (8-bit floats, whose tensor-core accumulators keep fewer bits).  ``early``: the
    first loads do not wait for the
    cluster.  ``serpentine``: odd raster groups walk N backwards, odd tiles K.  ``schedule``: ``cooperative``, the
    consumers share a tile, 64 rows each (128 of 256), or ``pingpong``, they take turns with a tile of 64 or 128 rows
    each (:mod:`cute_dialect.kernels.gemm.pingpong`).  ``stream_k``: the tiles of the last wave are shared by all blocks
    (:mod:`cute_dialect.kernels.gemm.stream`).  ``stream_b``: lines of B are the first to leave the L2 (where B is read
    once).  ``epilogue``: what becomes of the sums, see :mod:`cute_dialect.kernels.gemm.epilogue`.  ``fallback``: the
    file has a second, simple kernel, which is launched for matrices that TMA cannot read.  ``buffers``: of 8 KiB for
    each consumer, through which its results go.  ``accumulator``: ``f16`` for sums in f16, of f16 operands: half the
    registers, and an error that grows with K.  ``scaled``: the sums of each stage have a factor for each
    row of A and one for 128 columns, or for each (``scaled_columns``), see
    :class:`~cute_dialect.kernels.gemm.parts.Scales`.  ``array``: of a ``batch``,
    whose matrices lie anywhere (:func:`~cute_dialect.kernels.gemm.operands.places_of`).  ``saturate``: sums of integers
    stick at the ends of i32, they wrap else.  ``direct``: lanes store single elements to C, which may have any rows
    then.  ``scales``: of blocks, f32, or ``ui8`` for exponents of two (e8m0).  ``dependent``: the kernel may begin
    while the launch before it still runs, and waits for it before it touches a matrix; the launch after it may begin
    likewise (programmatic dependent launch).
    """

    element: str = "f16"
    output: str = "f16"
    major_a: str = "k"
    major_b: str = "k"
    major_c: str = "n"
    tile: tuple[int, int, int] = (128, 256, 64)
    stages: int = 4
    cluster_m: int = 2
    cluster_n: int = 1
    group: int = 8
    sms: int = 132
    deferred: bool = True
    early: bool = True
    serpentine: bool = True
    batch: bool = False
    promote: bool = False
    fallback: bool = False
    stream_b: bool = False
    epilogue: Epilogue = Epilogue()
    schedule: str = "cooperative"
    stream_k: bool = False
    buffers: int = 2
    accumulator: str = ""
    scaled: bool = False
    array: bool = False
    saturate: bool = False
    direct: bool = False
    scales: str = "f32"
    dependent: bool = False
    scaled_columns: bool = False

    @property
    def sums(self) -> str:
        """The type of the sums."""
        return sums_of(self.element, self.accumulator)

    @property
    def bits(self) -> int:
        """Bits of an element of A and B."""
        return BITS[self.element]

    @property
    def through_registers(self) -> bool:
        """Tell whether A is read to registers, since wgmma reads such elements of shared memory along K only."""
        return self.bits != 16 and self.major_a == "m"

    @property
    def lanes(self) -> Lanes:
        """Which rows the lanes of a warp group have."""
        return lanes_of(self.bits if self.through_registers else 0)

    @property
    def consumers(self) -> int:
        """Warp groups that multiply: 64 rows each (128 of a tile of 256), or a tile each."""
        return 2 if self.schedule == "pingpong" or self.tile[0] == 256 else self.tile[0] // 64

    @property
    def sharers(self) -> int:
        """Warp groups that multiply one tile."""
        return 1 if self.schedule == "pingpong" else self.consumers

    @property
    def atoms(self) -> int:
        """Instructions for the rows of a warp group."""
        return self.tile[0] // 64 // self.sharers

    @property
    def accumulators(self) -> int:
        """Of a warp group: two in turn where sums are promoted and there are registers for them, so that a stage is
        multiplied while the one before it is added up.
        """
        # ptxas waits for each instruction where factors of several blocks are chosen among, in clusters.
        several = self.scaled and not self.scaled_columns and 128 % self.tile[1] != 0 and self.cluster > 1
        if not self.promote or self.sharers > 2 or self.through_registers or several:
            return 1
        sums = self.atoms * self.tile[1] // 2
        return 2 if 3 * sums + self._waiting + self.of_columns <= self.most_registers else 1

    @property
    def _waiting(self) -> int:
        """Registers of results that wait to be stored."""
        return self.atoms * self.tile[1] * BITS[self.output] // 64 if self.deferred else 0

    @property
    def of_columns(self) -> int:
        """Registers of scales of columns, and of what is multiplied by them."""
        return 40 if self.scaled_columns else 0

    @property
    def threads(self) -> int:
        """Threads of a block: the producer's warp group and the consumers'."""
        return 128 * (1 + self.consumers)

    @property
    def cluster(self) -> int:
        """Blocks of a cluster."""
        return self.cluster_m * self.cluster_n

    @property
    def at_once(self) -> int:
        """Blocks that run at once."""
        return at_once(self.sms, self.cluster) * self.cluster

    @property
    def sharing(self) -> int:
        """Blocks of a cluster that have A or B in common with one, itself among them."""
        return self.cluster_m + self.cluster_n - 1

    @property
    def stage_bytes(self) -> int:
        """Bytes of A and B in one stage."""
        m, n, k = self.tile
        return (m + n) * k * self.bits // 8

    @property
    def chunk(self) -> int:
        """Columns of C that are stored at once: 128 bytes, or 64 columns of 128 bytes."""
        return 1024 // BITS[self.output]

    @property
    def columns(self) -> int:
        """Columns of C of a tile: half of the tile's where an epilogue makes one of two."""
        return self.tile[1] // 2 if self.epilogue.half else self.tile[1]

    @property
    def part(self) -> int:
        """Columns of a row that an epilogue is given at once."""
        if BITS[self.output] != 32 or self.epilogue.whole_tiles:
            return self.tile[1]
        return self.widths[0] * (2 if self.epilogue.half else 1)

    @property
    def widths(self) -> tuple[int, ...]:
        """Columns of the chunks in which a tile is stored: the last ones are halves and quarters.

        >>> GemmConfig(tile=(128, 176, 64)).widths
        (64, 64, 32, 16)
        """
        whole, rest = divmod(self.columns, self.chunk)
        return (self.chunk,) * whole + tuple(w for w in (self.chunk // 2, self.chunk // 4) if rest & w)

    @property
    def beside(self) -> tuple[int, ...]:
        """The results of the epilogue beside C that leave as C does, through shared memory by TMA: their numbers."""
        graph = self.epilogue.graph
        alike = self.major_c == "n" and not self.direct and len(set(self.widths)) == 1 and BITS[self.output] == 16
        if graph is None or not alike or graph.paired or graph.block or graph.zero_factor is not None:
            return ()
        one = [
            i for i, x in enumerate(graph.outputs) if i and x.tma and (x.element, x.batch) == (self.output, self.batch)
        ]
        return tuple(one)

    @property
    def by_columns(self) -> bool:
        """Tell whether results can be stored by columns."""
        return BITS[self.output] == 16 or (BITS[self.output] == 32 and (self.through_registers or self.direct))

    @property
    def smem_bytes(self) -> int:
        """Shared memory of a block, bytes: the ring, the staging buffers of the consumers, the barriers."""
        m, n, k = self.tile
        ring = sum(-(-self.stages * rows * k * self.bits // 8 // 1024) * 1024 for rows in (m, n))
        return ring + self.consumers * self.buffers * 64 * 128 + self.stages * 16

    @property
    def registers(self) -> int:
        """Registers of a thread that hold sums, results that wait to be stored, and A on its way."""
        sums = self.atoms * self.tile[1] // 2 // (2 if self.sums == "f16" else 1)
        sums = sums * (1 + self.accumulators if self.promote else 1) + self.of_columns
        return sums + self._waiting + (16 * self.atoms if self.through_registers else 0)

    @property
    def most_registers(self) -> int:
        """Registers that there are for them: the rest of a thread's is for addresses and what is under way."""
        return 96 if self.consumers == 3 else 176 if (self.stream_k or self.scaled) and self.atoms == 2 else 192

    def check(self) -> None:
        """Raise ValueError unless there is such a kernel."""
        m, n, k = self.tile
        self.epilogue.check()
        if self.epilogue.split and (self.major_c != "n" or self.stream_k or self.fallback or self.array):
            raise ValueError("expected a kernel that stores rows, of tiles of one block each, for a reshaped result")
        if self.epilogue.split and not self.direct and not self.epilogue.suits_tma(self.widths):
            raise ValueError(f"expected chunks of {self.widths} columns in one mode of a reshaped result each")
        if self.direct and ((self.epilogue.active and not self.epilogue.split) or self.fallback or self.array):
            raise ValueError("expected no epilogue, fallback or array where C has any rows")
        if self.epilogue.reduces and self.part != self.tile[1] and len(set(self.widths)) > 1:
            raise ValueError(f"expected chunks of as many columns each where rows are reduced, got {self.widths}")
        if self.epilogue.block and self.tile[1] % self.epilogue.block:
            raise ValueError(f"expected columns in multiples of {self.epilogue.block}, which have a scale, got {n}")
        if self.epilogue.whole_tiles and (self.major_c != "n" or self.sums != "f32" or self.epilogue.paired):
            raise ValueError(
                "expected contiguous rows of C, sums in f32, and no pairs, for whole rows and blocks of them"
            )
        if self.epilogue.paired and not self.epilogue.half and (self.major_c != "n" or self.tile[1] % 16):
            raise ValueError(
                "expected contiguous rows of C, and whole 16 columns, where an epilogue takes pairs of them"
            )
        if self.epilogue.half and (self.major_c != "n" or sum(self.widths) != self.columns):
            raise ValueError(
                f"expected rows of C, and columns in multiples of {self.chunk // 2}, where two become one, "
                f"got {n} columns and C along {self.major_c}"
            )
        if self.epilogue.active and self.fallback:
            raise ValueError("expected no epilogue with a fallback, whose kernel has none")
        if self.element not in FACTORS:
            raise ValueError(f"expected elements of {', '.join(FACTORS)}, got {self.element}")
        if self.output not in outputs_of(self.element):
            raise ValueError(f"expected a result of {', '.join(outputs_of(self.element))}, got {self.output}")
        if k * self.bits not in (512, 1024):
            raise ValueError(
                f"expected a tile of {1024 // self.bits} elements (128 bytes) along K, or half of that, got {k}"
            )
        if self.saturate and (self.sums != "i32" or self.stream_k):
            raise ValueError(f"expected sums of integers, of one block each, to saturate, got {self.sums}")
        if self.schedule not in ("cooperative", "pingpong"):
            raise ValueError(f"expected a schedule of cooperative or pingpong, got {self.schedule!r}")
        if self.schedule == "pingpong" and (self.deferred or self.promote or m * n > 128 * 128 or m > 128):
            how = ", deferred" * self.deferred + ", promoted" * self.promote
            raise ValueError(
                f"expected at most 128 x 128 or 64 x 256 elements, none deferred or promoted, got {m} x {n}{how}"
            )
        if self.deferred and BITS[self.output] == 32:
            raise ValueError(f"expected no deferred store of {self.output}, whose sums would have to wait as they are")
        if self.promote and self.sums != "f32":
            raise ValueError(f"expected sums in f32 to promote, got {self.sums}")
        if self.accumulator and (self.accumulator, self.element) != ("f16", "f16"):
            raise ValueError(f"expected sums in f32 for {self.element}, got {self.accumulator}")
        if self.scaled and (not self.promote or self.bits != 8 or self.batch or self.serpentine or k != 128):
            raise ValueError(
                "expected promoted sums of 8-bit floats of 128 of K, no batch and no serpentine with scales of blocks, "
                f"got {self.element}, {k} of K{', a batch' * self.batch}{', serpentine' * self.serpentine}"
                f"{'' if self.promote else ', not promoted'}"
            )
        if self.scaled_columns and not self.scaled:
            raise ValueError("expected scales of blocks where each column of B has its own")
        if self.array and not self.batch:
            raise ValueError("expected a batch where matrices lie anywhere")
        if self.scales not in ("f32", "ui8"):
            raise ValueError(f"expected scales of f32 or ui8 (exponents), got {self.scales}")
        if self.accumulator and self.stream_k:
            raise ValueError("expected sums in f32 or integers where blocks share them, got f16")
        if self.stream_k and (self.schedule != "cooperative" or self.batch or self.promote):
            raise ValueError(
                "expected a cooperative schedule, no batch and no promotion where the last wave is shared, got "
                f"{self.schedule}{', a batch' * self.batch}{', promoted' * self.promote}"
            )
        if not {self.cluster_m, self.cluster_n} <= {1, 2, 4, 8} or self.cluster > 8:
            raise ValueError(f"expected a cluster of 1, 2, 4 or 8 blocks, got {self.cluster_m} x {self.cluster_n}")
        if m not in (64, 128, 192, 256) or n % 8 or not 8 <= n <= 256:
            raise ValueError(f"expected a tile of 64, 128, 192 or 256 rows and up to 256 columns, got {m} x {n}")
        if n % 16 and (BITS[self.output] != 32 or self.major_b != "k" or (self.sums == "i32" and n > 24)):
            raise ValueError(
                "expected columns in multiples of 16 (of results of 32 bits and B along K also of 8, where sums are "
                f"integers 8 and 24), got {n}"
            )
        if BITS[self.output] == 8 and n % 32:
            raise ValueError(f"expected a multiple of 32 columns of {self.output}, got {n}")
        registers = self.registers
        if registers > self.most_registers:
            raise ValueError(f"expected at most {self.most_registers} registers of sums, got {registers} for {m} x {n}")
        for name, size, blocks, major in (
            ("rows", m, self.cluster_n, self.major_a), ("columns", n, self.cluster_m, self.major_b)
        ):  # fmt: skip
            if major != "k" and part_of((size, k), blocks, k_major=False, bits=self.bits)[1] < 8:
                raise ValueError(f"expected 8 of K for each of {blocks} blocks that share {name}, got {k}")
            if major == "k" and size % (8 * blocks):
                raise ValueError(f"expected {name} in 8s for each of {blocks} blocks that share them, got {size}")
        if self.major_c not in ("m", "n") or (self.major_c == "m" and not self.by_columns):
            raise ValueError(f"expected C along n, or along m of 16-bit elements, got {self.major_c} of {self.output}")
        if self.buffers < 1:
            raise ValueError(f"expected a staging buffer, got {self.buffers}")
        self._check_majors()
        if self.smem_bytes > DEFAULT_TARGET.shared:
            most, barriers = DEFAULT_TARGET.shared, self.stages * 16
            staging = self.smem_bytes - self.stages * self.stage_bytes - barriers
            raise ValueError(
                f"expected at most {most} bytes of shared memory, got {self.smem_bytes} ({self.stages} stages of "
                f"{self.stage_bytes}, C {staging}, barriers {barriers}): fewer stages"
            )

    def _check_majors(self) -> None:
        """Raise ValueError unless wgmma, or a warp, reads A and B as they lie."""
        if self.bits == 16:
            return
        if self.major_b != "k":
            raise ValueError(f"expected K-major B of {self.element}: only 16-bit elements can be transposed")
        if self.through_registers and (self.scaled or self.saturate or self.epilogue.half or self.epilogue.reduces):
            raise ValueError(f"expected no scales, saturation, pairs or reductions with M-major A of {self.element}")


class SplitConfig(NamedTuple):
    """A kernel whose blocks share the K of a tile (:mod:`cute_dialect.kernels.gemm.split`).

    ``base``: tile, types and majors (up to 192 rows); ``parts``: blocks that share a tile.
    """

    base: GemmConfig = GemmConfig(cluster_m=1, cluster_n=2, deferred=False, serpentine=False)
    parts: int = 4

    @property
    def piece(self) -> int:
        """Columns of a tile that a block finishes at once: as few as let most of the parts finish some.

        >>> [SplitConfig(GemmConfig(tile=(128, 128, 64)), parts).piece for parts in (2, 3, 8)]
        [64, 32, 16]
        """
        return self.piece_of(self.base.tile[1], self.base.chunk, self.parts)

    @staticmethod
    def piece_of(columns: int, chunk: int, parts: int) -> int:
        """Return the columns of a piece, of chunks that are halved up to twice, 16 at least."""
        widths = [w for w in (chunk, chunk // 2, chunk // 4) if w >= 16 and columns % w == 0]
        return max(widths, key=lambda w: (min(parts, columns // w), w))

    @staticmethod
    def finishers_of(columns: int, chunk: int, parts: int) -> int:
        """Return how many of the blocks of a tile finish columns of it.

        >>> SplitConfig.finishers_of(64, 64, 32)
        4
        """
        return min(parts, columns // SplitConfig.piece_of(columns, chunk, parts))

    def workspace(self, tiles: int) -> int:
        """Return floats that ``tiles`` tiles need."""
        return tiles * self.parts * self.base.tile[0] * self.base.tile[1]

    def check(self) -> None:
        """Raise ValueError unless there is such a kernel."""
        base = self.base
        base.check()
        if base.epilogue.split:
            raise ValueError("expected no blocks that share K where a result is reshaped")
        if base.epilogue.paired or base.epilogue.whole_tiles:
            raise ValueError("expected no blocks that share K where an epilogue takes pairs of columns, or whole rows")
        if base.saturate:
            raise ValueError("expected no blocks that share K where sums saturate")
        if base.array or base.deferred or base.atoms != 1:
            raise ValueError(f"expected up to 192 rows, no matrices anywhere and no deferred store, got {base}")
        if base.accumulator:
            raise ValueError("expected sums in f32 or integers where blocks share them, got f16")
        if base.schedule != "cooperative" or base.stream_k:
            raise ValueError(f"expected no other schedule where blocks share all of K, got {base}")
        if self.parts < 2:
            raise ValueError(f"expected two parts of K or more, got {self.parts}")
