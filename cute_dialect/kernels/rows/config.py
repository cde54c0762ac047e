"""Partitioning of rows: threads, blocks and registers of a row, for a class of row lengths.

A thread reads vectors of 16 bytes. A class is an operation, an element type and a :class:`RowConfig`; the row length is
dynamic. The class fixes the number of vectors (``chunks``) per thread. All threads have all chunks except the last one,
which only some have. A class therefore covers the lengths that need that many chunks, and only the last one needs a
bounds check.

>>> [row_class("softmax", "bf16", n)[:3] for n in (100, 768, 4095, 4096, 5120)]
[(8, 2, 16), (32, 3, 4), (128, 4, 1), (128, 4, 1), (160, 4, 1)]
>>> row_class("softmax", "bf16", 5000) == row_class("softmax", "bf16", 5001)
True
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from cute_dialect.arch.targets import DEFAULT_TARGET
from cute_dialect.kernels.common.kernel_names import by

BITS = {"f32": 32, "f16": 16, "bf16": 16}
"""Supported element types -> their bits."""

TWO = "rd"
"""The operands that are second rows: a residual (r), which is added first, or the gradient of a result (d)."""

MAX_THREADS, MAX_CLUSTER = DEFAULT_TARGET.threads, DEFAULT_TARGET.cluster

SHARED_MEMORY = 224 * 1024
"""Bytes of shared memory available to the blocks of an SM, besides the buffers of partial results."""

PART = 32
"""Elements in registers that a thread processes while it waits for the next ones."""

PROCESSORS = 132
"""Multiprocessors of an H100 or H200."""

MANY = 1 << 20
"""Default number of rows: enough to fill a GPU with any number of rows per block."""

LONG_ROW = 16384
"""Rows longer than this are partitioned according to :data:`LONG`."""


FEW_VECTORS = 512
"""Vectors of each block above which another block shares one of few rows."""


class RowPartition(NamedTuple):
    """A partitioning of long rows."""

    threads: int  # of a block
    chunks: int  # largest number of chunks of a row per thread
    together: int = 1  # rows that a thread processes at once
    cluster: int = 1  # largest number of blocks of a cluster
    groups: int = 0  # parts, as in RowConfig
    kept: int = 0  # chunks in registers; -1 for all
    above: int = LONG_ROW  # use this partitioning for longer rows only


LONG: dict[tuple[str, int], tuple[RowPartition, ...]] = {
    ("softmax", 16): (
        RowPartition(512, 8), RowPartition(512, 8, cluster=8, groups=1, kept=-1), RowPartition(1024, 8, cluster=8),
    ),
    ("softmax", 32): (RowPartition(512, 8, cluster=8, groups=1, kept=-1, above=32768),),
    ("layernorm", 16): (
        RowPartition(512, 8, groups=6, kept=2), RowPartition(512, 4, together=2, cluster=8, groups=2, kept=2),
        RowPartition(1024, 4, together=3, cluster=8),
    ),
    ("layernorm", 32): (RowPartition(1024, 8, groups=2, kept=2), RowPartition(512, 8, cluster=8, groups=1, kept=-1)),
    # Rows of any alignment load separate weights, so processing two at once gains nothing.
    ("odd layernorm", 16): (RowPartition(512, 8, cluster=8, groups=6, kept=2),),
    ("odd layernorm", 32): (
        RowPartition(1024, 8, groups=2, kept=2), RowPartition(512, 8, cluster=8, groups=1, kept=-1),
    ),
    # With a second matrix to read, registers hold half of a row, and the row is kept there.
    ("two", 16): (
        RowPartition(512, 4, cluster=8, groups=1, kept=-1), RowPartition(1024, 4, cluster=8, groups=1, kept=-1),
    ),
    ("two", 32): (
        RowPartition(512, 4, cluster=8, groups=1, kept=-1), RowPartition(1024, 4, cluster=8, groups=1, kept=-1),
    ),
}  # fmt: skip
"""Operation and bits of an element -> partitionings; the first that fits is used."""


HINTS = ("", "L1::evict_first", "L1::no_allocate")
"""L1 eviction priorities of loads in PTX. The first one is the default of the GPU."""


class RowConfig(NamedTuple):
    """Partitioning of the rows of a class."""

    threads: int  # threads of each block that share a row
    chunks: int = 1  # largest number of vectors of a row per thread
    rows: int = 1  # rows per block
    cluster: int = 1  # blocks that share a row
    shared: int = 0  # chunks in shared memory; the others are in registers
    # If not 0, a row is processed in parts as they arrive; those in shared memory form this many parts.
    groups: int = 0
    together: int = 1  # rows that a thread processes at once, so that weights are loaded once for all of them
    resident: int = 0  # resident blocks per SM, which limits registers; 0 for as many as have 1024 threads
    stages: int = 0  # rows in flight in shared memory, for blocks that iterate over rows
    hint: int = 0  # index in HINTS of the L1 eviction priority; if not 0, lines are evict-first in the L2 too

    @property
    def block(self) -> int:
        return self.threads * self.rows

    @property
    def in_parts(self) -> bool:
        """Return True if a row is processed in parts."""
        return self.groups > 0

    @property
    def is_long(self) -> bool:
        """Return True if a row is too long to keep it and the result in registers."""
        return self.shared > 0 or self.groups > 0

    @property
    def sharing(self) -> int:
        """Threads that share a row."""
        return self.threads * self.cluster

    @property
    def warps(self) -> int:
        """Warps that share a row, over all blocks."""
        return max(1, self.threads // 32) * self.cluster

    @property
    def name(self) -> str:
        """The configuration as a part of a name: its numbers without trailing defaults."""
        used = max(i for i, (x, plain) in enumerate(zip(self, RowConfig(0))) if i < 2 or x != plain) + 1
        return by(self[:used])


def _power_of_two(n: int) -> int:
    return 1 << max(0, (n - 1).bit_length())


def width(element: str) -> int:
    """Return the number of elements in a vector of 16 bytes.

    >>> width("f16"), width("f32")
    (8, 4)
    """
    if element not in BITS:
        raise ValueError(f"element type '{element}' is not supported; use one of {', '.join(BITS)}")
    return 128 // BITS[element]


def capacity(element: str, config: RowConfig) -> range:
    """Return the row lengths of a class. With vectors that begin at any element, all chunks but the last are full.

    >>> capacity("f16", RowConfig(128, 4))
    range(3080, 4104)
    """
    w, step = width(element), config.sharing
    first = ((config.chunks - 1) * step + 1) * w
    return range(1 if config.chunks == 1 else first, (config.chunks * step + 1) * w)


def short_threads(element: str, n: int) -> int:
    """Return the number of threads, up to a warp, that share a short row of ``n`` elements.

    Up to four vectors get a thread each, because a block then holds the most rows without idle lanes. Longer rows get
    two vectors per thread.

    >>> [short_threads("bf16", n) for n in (3, 7, 8, 16, 19, 24, 48, 64, 200, 768)]
    [1, 2, 1, 2, 2, 4, 4, 8, 16, 32]
    """
    vectors = max(1, n // width(element))
    alone = vectors <= 4 or 7 <= vectors <= 8  # no other split leaves so few lanes idle
    threads = _power_of_two(vectors if alone else -(-vectors // 2))
    return min(32, max(threads, fewest_threads(element, n)))


def fewest_threads(element: str, n: int) -> int:
    """Return the smallest number of threads worth using for a row of ``n`` elements.

    Elements outside of whole vectors are loaded one per thread, so two threads share that work unless there are few.
    """
    w = width(element)
    return 2 if n % w and n > w // 2 else 1


def has_two(takes: str) -> bool:
    """Return True if the operation reads two rows."""
    return any(x in takes for x in TWO)


def longest(op: str, element: str, takes: str = "") -> int:
    """Return the length of the longest rows that an operation supports."""
    kind = "two" if has_two(takes) else "odd layernorm" if op == "layernorm" else "softmax"
    w, ways = width(element), LONG.get((kind, BITS[element]), ())
    return max([MAX_THREADS * 8 * w, *(x.threads * x.chunks * x.cluster * w for x in ways)]) + w - 1


def row_class(op: str, element: str, n: int, takes: str = "", rows: int = MANY) -> RowConfig:
    """Return the class of ``rows`` rows of ``n`` elements, with the partitioning that was fastest on an H200.

    ``takes`` lists the optional operands, as ``OPERANDS`` of the operation does. Clusters of blocks share each of few
    long rows.

    >>> row_class("layernorm", "f16", 131072)      # two rows at a time, half in shared memory, half in registers
    RowConfig(threads=512, chunks=4, rows=1, cluster=8, shared=2, groups=2, together=2, resident=0, stages=0, hint=0)
    >>> [row_class("logsumexp_backward", "bf16", 100_000, rows=rows)[:4] for rows in (1, 30, 1000)]
    [(1024, 2, 1, 8), (1024, 4, 1, 4), (512, 7, 1, 4)]

    Raises:
        ValueError: if no cluster can hold such a row.
    """
    w = width(element)
    if n < 1:
        raise ValueError(f"rows must have at least one element, got {n}")
    vectors = max(1, n // w)
    two = has_two(takes)
    if vectors <= 96:  # rows of a warp or a part of one
        threads = 16 if 32 < vectors <= 48 and not two else short_threads(element, n)
        return RowConfig(threads, -(-vectors // threads), 128 // threads)
    spread = None if two else _few_rows(vectors, rows)
    if spread is not None:
        return spread
    kind = "layernorm" if op == "layernorm" else "softmax"
    kind = "two" if two else "odd layernorm" if kind == "layernorm" and n % w else kind
    found = _long(kind, element, vectors) if n >= LONG_ROW + w or two else None
    if found is not None:
        return found
    if op == "layernorm" and element != "f32" and vectors <= 128 and n % w == 0 and not two:
        return RowConfig(64, 2, shared=2, groups=1)  # 9 % faster than registers for 1024 columns on an H200
    # f32 elements need a register each, so use more threads with fewer elements each.
    chunks = max(4 if element != "f32" and vectors > 128 and not two else 2, -(-vectors // 512))
    if chunks > 8:
        chunks = -(-vectors // MAX_THREADS)
    if chunks > 8:
        raise ValueError(f"{op} supports rows of at most {longest(op, element, takes)} elements, got {n}")
    # three blocks of 320 threads fill an SM; two of fewer than 512 do not
    if vectors > 320 * chunks and vectors <= 512 * chunks:
        return RowConfig(512, -(-vectors // 512))
    threads = 32 * -(-vectors // (32 * chunks))
    return RowConfig(threads, -(-vectors // threads))


def _few_rows(vectors: int, rows: int) -> RowConfig | None:
    """Return the class of few long rows, with a cluster of blocks for each row, or None."""
    cluster = 1
    while cluster < MAX_CLUSTER and 2 * cluster * rows <= PROCESSORS and vectors > FEW_VECTORS * cluster:
        cluster *= 2
    threads = min(MAX_THREADS, _power_of_two(-(-vectors // (2 * cluster))))
    chunks = -(-vectors // (threads * cluster))
    return RowConfig(threads, chunks, cluster=cluster) if cluster > 1 and chunks <= 4 else None


def _long(op: str, element: str, vectors: int) -> RowConfig | None:
    """Return the class of long rows, or None without an entry in :data:`LONG`."""
    w = width(element)
    for way in LONG.get((op, BITS[element]), ()):
        cluster = _power_of_two(-(-vectors // (way.threads * way.chunks)))
        if (vectors + 1) * w <= (way.above + w if op != "two" else 8192) or cluster > way.cluster:
            continue
        chunks = -(-vectors // (way.threads * cluster))
        kept = min(chunks if way.kept < 0 else way.kept, chunks)
        groups = max(1, min(way.groups, chunks - kept)) if way.groups else 0
        return RowConfig(way.threads, chunks, 1, cluster, chunks - kept, groups, way.together)
    return None


def check(op: str, element: str, config: RowConfig, takes: str = "") -> None:
    """Raise ValueError if no kernel supports a configuration."""
    w = width(element)
    c = config
    if c.threads > 32 and c.threads % 32:
        raise ValueError(f"threads is {c.threads}; more than a warp must be a multiple of 32")
    for what, x, most in (("threads", min(c.threads, 32), 32), ("cluster", c.cluster, MAX_CLUSTER)):
        if x != _power_of_two(x) or not 1 <= x <= most:
            raise ValueError(f"{what} is {x}; it must be a power of two up to {most}")
    if c.rows > 1 and (c.threads > 32 or c.cluster > 1):
        raise ValueError(f"rows is {c.rows}; a row that more than a warp shares needs rows=1")
    if c.cluster > 1 and (c.threads < 32 or c.threads & (c.threads - 1)):
        raise ValueError(f"threads is {c.threads}; the blocks of a cluster need a power of two of at least 32")
    if not 1 <= c.block <= MAX_THREADS:
        raise ValueError(f"a block has {c.block} threads; it must have 1 to {MAX_THREADS}")
    if (c.is_long or c.together > 1) and c.rows > 1:
        raise ValueError(f"rows is {c.rows}; shared, groups or together > 1 need rows=1")
    if c.together > 1 and ("norm" not in op or has_two(takes)):
        raise ValueError(f"together > 1 does not support {'a second row' if 'norm' in op else op}")
    if c.shared and has_two(takes):
        raise ValueError("a second row needs rows in registers (shared=0)")
    if c.chunks < 1 or not 0 <= c.shared <= c.chunks:
        raise ValueError(f"chunks must be at least 1 and shared at most chunks, got {c.chunks} and {c.shared}")
    if c.groups < 0 or (c.groups > 1 and c.groups > c.shared):
        raise ValueError(f"groups is {c.groups}; it must be at most {max(1, c.shared)}")
    if (found := shared_bytes(element, c)) > SHARED_MEMORY:
        raise ValueError(
            f"rows need {found} bytes of shared memory per block; at most {SHARED_MEMORY} are available, use fewer "
            "chunks in shared memory"
        )
    assert w


def shared_bytes(element: str, config: RowConfig) -> int:
    """Return the bytes of shared memory that the rows of a block need.

    >>> shared_bytes("f16", RowConfig(512, 8, shared=8))
    65536
    """
    return config.together * config.shared * config.threads * width(element) * BITS[element] // 8


class Plan:
    """Static parameters of a kernel: an operation, an element type, a class.

    ``takes`` lists the optional operands, as ``OPERANDS`` of the operation does. ``whole`` rows consist of aligned
    vectors in all matrices. Otherwise rows have any alignment, and the elements before the first vector and after the
    last, the *edges*, are distributed one by one.

    Chunk ``i`` of a thread is vector ``i * sharing + thread`` of the row, so that a warp reads 512 contiguous bytes.
    The first ``shared`` chunks are in shared memory, the others in registers.
    """

    def __init__(self, op: str, element: str, config: RowConfig, takes: str = "", whole: bool = True):
        c = config
        self.op, self.element, self.config, self.takes, self.whole = op, element, c, takes, whole
        self.width, self.chunks, self.shared = width(element), c.chunks, c.shared
        self.step = c.sharing * self.width
        # In shared memory, chunks are as far apart as the vectors of a block.
        self.block_step = c.threads * self.width
        self.share = self.block_step * c.shared
        self.edges = 0 if whole else -(-2 * self.width // c.sharing)
        self.weights = sum(x in takes for x in "wb")
        self.resident = c.resident or max(1, 1024 // c.block)
        if c.shared:
            self.resident = min(self.resident, max(1, SHARED_MEMORY // max(1, shared_bytes(element, c))))
        values = c.chunks * self.width * c.together
        # True if a thread has registers for all its elements as f32 when rows are in shared memory.
        self.spare = not c.in_parts and values + 28 <= DEFAULT_TARGET.sm_registers // (c.block * self.resident)

    @property
    def groups(self) -> list[tuple[int, int]]:
        """The parts in which a row arrives in shared memory: first chunk and number of chunks."""
        groups = max(1, self.config.groups)
        ends = [self.shared * i // groups for i in range(groups + 1)]
        return [(start, end - start) for start, end in pairwise(ends)] if self.shared else []

    @property
    def parts(self) -> list[tuple[int, int]]:
        """The parts in which a row is reduced: those in shared memory as they arrive, then those in registers."""
        most = max(1, PART // self.width) if self.config.in_parts else self.chunks
        return self.groups + [(i, min(most, self.chunks - i)) for i in range(self.shared, self.chunks, most)]

    @property
    def spans(self) -> list[tuple[int, int]]:
        """The parts in which a row is written, up to eight elements per thread. The last chunk is a part of its own."""
        most, last = 8 // self.width, self.chunks - 1
        ends = pairwise(sorted({0, min(self.shared, last), last}))
        return [(i, min(most, end - i)) for begin, end in ends for i in range(begin, end, most)] + [(last, 1)]

    @property
    def early(self) -> int:
        """Number of weight spans that are loaded during the exchange between warps, as far as registers allow."""
        c = self.config
        if c.in_parts:
            return 1 if self.weights == 1 else 0
        fit = self.weights * self.chunks * 128 <= 32 * 32
        return len(self.spans) if c.shared and fit else 0

    @property
    def messages(self) -> bool:
        """Return True if the blocks of a cluster exchange messages by ``st.async`` instead of using cluster barriers.

        Messages are 12 % faster for softmax, 2 % for LayerNorm in registers, and 4 % for RMSNorm partly in registers.
        RMSNorm with a whole row in shared memory loads its weights meanwhile and is 3 to 6 % faster with the barrier.
        """
        c = self.config
        return c.cluster > 1 and (self.op != "rmsnorm" or c.shared < c.chunks)
