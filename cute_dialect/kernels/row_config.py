"""How rows are shared out: how many threads, blocks and registers a row gets, and what follows from that.

>>> default_config("softmax", "f32", 4096)
RowConfig(threads=512, rows=1, cluster=1, stages=0, together=1, resident=0, groups=1, kept=0)
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from cute_dialect.arch.targets import DEFAULT_TARGET

__all__ = ["BITS", "OPS", "SHARED_MEMORY", "Plan", "RowConfig", "default_config", "shared_bytes", "vector_width"]

BITS = {"f32": 32, "f16": 16, "bf16": 16}
"""Element types the kernels are made for, and their bits."""

WEIGHTS = {"sum": 0, "softmax": 0, "rmsnorm": 1, "layernorm": 2}
"""Operations, and how many vectors of weights they take."""

OPS = tuple(WEIGHTS)

VALUES = {"f32": 16, "f16": 32, "bf16": 32}
"""Elements a thread should have: four accesses of 128 bits."""

MOST_VALUES = 32
"""Elements a thread may have: so many registers hold them, and two blocks of 512 threads still fit an SM."""

WARP_ROW = 512
"""Rows up to this length belong to (a part of) one warp; sums up to twice this length."""

MAX_THREADS, MAX_CLUSTER = DEFAULT_TARGET.threads, DEFAULT_TARGET.cluster

SHARED_MEMORY = 224 * 1024
"""Bytes of shared memory that blocks of an SM may have, beside what the partial results take."""

STREAM = 8
"""Vectors a thread has under way in a sum over long rows."""

PART = 32
"""Elements in registers that a thread works on while it waits for the next ones."""

LONG_ROW = 16384
"""Rows that are longer are shared out as :data:`LONG` says."""

ALL = 1 << 20


class Way(NamedTuple):
    """A way to share out long rows: threads of a block, elements that each has of a row at most, rows together, blocks
    of a cluster at most; parts, and elements of a row in registers, as in :class:`RowConfig`.  For rows longer than
    ``above``.
    """

    threads: int
    values: int
    together: int = 1
    cluster: int = 1
    groups: int = 1
    kept: int = 0
    above: int = LONG_ROW


LONG: dict[tuple[str, int], tuple[Way, ...]] = {
    ("softmax", 16): (Way(512, 64), Way(512, 64, cluster=8, kept=ALL), Way(1024, 64, cluster=8)),
    ("softmax", 32): (Way(512, 32, cluster=8, kept=ALL, above=32768),),
    ("rmsnorm", 16): (Way(512, 64), Way(512, 64, cluster=8, kept=ALL), Way(1024, 64, cluster=8)),
    ("rmsnorm", 32): (Way(512, 32, cluster=8, kept=ALL, above=32768),),
    ("layernorm", 16): (
        Way(512, 64, groups=6, kept=16),
        Way(512, 32, together=2, cluster=8, groups=2, kept=16),
        Way(1024, 32, together=3, cluster=8),
    ),
    ("layernorm", 32): (
        Way(1024, 32, groups=2, kept=8),
        Way(512, 32, cluster=8, kept=ALL),
        Way(512, 16, together=3, cluster=8),
    ),
}
"""By operation and bits of an element; the first that has room."""


class RowConfig(NamedTuple):
    """``threads`` of each block share a row, ``rows`` rows are in a block, ``cluster`` blocks share a row.

    ``stages``: 0 for rows in registers, 1 for rows in shared memory.  With more, there are as many blocks as the GPU
    holds at once; each goes from row to row.  So many rows are in its shared memory, the one it works on and those that
    are being loaded; the weights are there too.
    ``together``: rows that a thread works on at once, so that weights are loaded once for all of them.
    ``resident``: blocks that an SM should hold, which limits their registers; 0 for 1024 threads.
    ``groups``: with one stage, the parts in which a row comes into shared memory; a thread works on what is there
    while the rest is on its way.
    ``kept``: with one stage, elements of a row that a thread has in registers, beside those in shared memory: a row of
    256 KiB is then in one SM.
    """

    threads: int
    rows: int = 1
    cluster: int = 1
    stages: int = 0
    together: int = 1
    resident: int = 0
    groups: int = 1
    kept: int = 0

    @property
    def block(self) -> int:
        """Threads of a block."""
        return self.threads * self.rows

    @property
    def in_parts(self) -> bool:
        """Tell whether a row comes in parts, some of them into registers."""
        return self.groups > 1 or self.kept > 0

    @property
    def sharing(self) -> int:
        """Threads that share a row."""
        return self.threads * self.cluster

    @property
    def warps(self) -> int:
        """Warps that share a row, in all blocks."""
        return max(1, self.threads // 32) * self.cluster


def _power_of_two(n: int) -> int:
    return 1 << max(0, (n - 1).bit_length())


def vector_width(element: str, n: int) -> int:
    """Return elements of one access: up to 128 bits, and a row is a whole number of them.

    >>> vector_width("f16", 1000), vector_width("f16", 1002), vector_width("f32", 999)
    (8, 2, 1)
    """
    return min(128 // BITS[element], n & -n)


def default_config(op: str, element: str, n: int) -> RowConfig:
    """Return how a row of ``n`` elements is shared out, as ``cute-bench rows_sweep`` found it best on an H200.

    Raises ValueError where registers cannot hold it.

    >>> [default_config("rmsnorm", "f32", n)[:3] for n in (100, 1024, 4096, 32768, 131072)]
    [(8, 16, 1), (128, 1, 1), (512, 1, 1), (1024, 1, 1), (512, 1, 8)]
    >>> default_config("layernorm", "f16", 131072)      # two rows at a time, half in shared memory, half in registers
    RowConfig(threads=512, rows=1, cluster=8, stages=1, together=2, resident=0, groups=2, kept=16)
    """
    check(op, element, n)
    threads = _power_of_two(-(-n // VALUES[element]))
    if n <= WARP_ROW or (op == "sum" and n <= 2 * WARP_ROW):
        threads = min(threads, 32)
        return RowConfig(threads, 128 // threads)
    if op == "sum":
        return RowConfig(min(threads, 512))
    if n > LONG_ROW and (found := _long(op, element, n)) is not None:
        return found
    if element == "f32" or n <= 2 * WARP_ROW:
        threads *= 2
    threads = min(threads, 512)
    cluster = _power_of_two(-(-n // (threads * MOST_VALUES)))
    # Fewer, larger blocks are faster, but for LayerNorm.
    if cluster > MAX_CLUSTER or (cluster > 1 and op != "layernorm"):
        threads, cluster = MAX_THREADS, min(cluster // 2, MAX_CLUSTER)
    if cluster * threads * MOST_VALUES < n:
        most = MAX_CLUSTER * MAX_THREADS * MOST_VALUES
        raise ValueError(f"expected rows of at most {most} elements, which the registers of a cluster hold, got {n}")
    return RowConfig(threads, 1, cluster)


def _long(op: str, element: str, n: int) -> RowConfig | None:
    """Return the configuration for long rows; None where nothing is said of them."""
    for way in LONG.get((op, BITS[element]), ()):
        cluster = _power_of_two(-(-n // (way.threads * way.values)))
        if n <= way.above or cluster > way.cluster:
            continue
        width = vector_width(element, n)
        chunks = n // (way.threads * cluster * width)
        kept = min(way.kept // width, chunks)
        groups = max(1, min(way.groups, chunks - kept))
        return RowConfig(way.threads, 1, cluster, 1, way.together, groups=groups, kept=kept * width)
    return None


def check(op: str, element: str, n: int, config: RowConfig | None = None) -> None:
    """Raise ValueError for what there are no kernels for."""
    if op not in OPS:
        raise ValueError(f"expected an operation of {', '.join(OPS)}, got '{op}'")
    if element not in BITS:
        raise ValueError(f"expected an element type of {', '.join(BITS)}, got '{element}'")
    if n < 1:
        raise ValueError(f"expected rows of at least one element, got {n}")
    if config is None:
        return
    c = config
    for what, x, most in (("threads", c.threads, MAX_THREADS), ("cluster", c.cluster, MAX_CLUSTER)):
        if x != _power_of_two(x) or not 1 <= x <= most:
            raise ValueError(f"expected {what} to be a power of two up to {most}, got {x}")
    if c.rows > 1 and (c.threads > 32 or c.cluster > 1):
        raise ValueError(f"expected one row a block where more than a warp shares it, got {c.rows}")
    if c.cluster > 1 and c.threads < 32:
        raise ValueError(f"expected whole warps in the blocks of a cluster, got {c.threads} threads")
    if not 1 <= c.block <= MAX_THREADS:
        raise ValueError(f"expected blocks of 1 to {MAX_THREADS} threads, got {c.block}")
    if op == "sum" and c.cluster > 1:
        raise ValueError(f"expected no cluster for a sum, got one of {c.cluster} blocks")
    if (c.stages or c.together > 1) and (op == "sum" or c.rows > 1):
        raise ValueError("expected one row a block, and no sum, where rows are in shared memory or worked on together")
    if c.together > 1 and (op == "softmax" or c.stages > 1):
        raise ValueError("expected no softmax, and at most one stage, where rows are worked on together")
    if c.in_parts and c.stages != 1:
        raise ValueError(f"expected one stage where rows come in parts or are partly in registers, got {c.stages}")
    width = vector_width(element, n)
    chunks = n // (c.sharing * width)
    if c.kept < 0 or c.kept % width or c.kept > chunks * width:
        raise ValueError(f"expected up to {chunks * width} elements in registers, by {width}, got {c.kept}")
    if c.groups < 1 or (c.groups > 1 and c.groups > chunks - c.kept // width):
        raise ValueError(f"expected a row in 1 to {max(1, chunks - c.kept // width)} parts, got {c.groups}")
    if c.stages and (found := shared_bytes(op, element, n, c)) > SHARED_MEMORY:
        raise ValueError(f"expected rows and weights of at most {SHARED_MEMORY} bytes a block, got {found}")


def shared_bytes(op: str, element: str, n: int, config: RowConfig) -> int:
    """Return bytes of shared memory that the rows and weights of a block take where it holds them.

    >>> shared_bytes("layernorm", "f16", 32768, RowConfig(1024, 1, 2, stages=3))
    163840
    """
    width = vector_width(element, n)
    values = -(-n // (config.sharing * width)) * width
    if config.in_parts:  # without what follows whole rounds, which is shorter with longer vectors
        values = n // config.sharing - config.kept
    share = values * config.threads * BITS[element] // 8
    slots = {0: 0, 1: config.together}.get(config.stages, config.stages + WEIGHTS[op])
    return slots * share


class Plan:
    """What one kernel is made for: an operation on rows of ``n`` elements, in accesses of ``width``.

    The part of a row that a thread has is ``count`` chunks of ``width`` elements, which lie ``step`` elements apart, so
    that a warp reads 512 bytes at a time.  What is left of a row after ``chunks`` whole ones, if anything, is one more
    that only the first ``tail`` threads have.  The first ``far`` chunks are in shared memory, the rest in registers.
    """

    def __init__(self, op: str, element: str, n: int, config: RowConfig, width: int, eps: float = 1e-5):
        c = config
        self.op, self.element, self.n, self.config, self.width, self.eps = op, element, n, config, width, eps
        self.step = c.sharing * width
        chunks = n // self.step
        # A sum over a long row adds up rounds of STREAM chunks as they come, before the rest.
        self.rounds = chunks // STREAM if op == "sum" and chunks >= 2 * STREAM else 0
        self.chunks = chunks - self.rounds * STREAM
        self.tail = n % self.step // width
        self.count = self.chunks + (self.tail > 0)
        self.far = self.chunks - c.kept // width if c.in_parts else self.count if c.stages else 0
        # In shared memory chunks lie as far apart as the threads of a block need.
        self.block_step = c.threads * width
        self.share = self.block_step * self.far
        self.bits = width * BITS[element]
        # Blocks that an SM should hold at once, and those that it must: single 16-bit elements take a register each
        # before they are packed.
        self.resident = c.resident or max(1, 1024 // c.block)
        if c.stages:
            self.resident = min(self.resident, max(1, SHARED_MEMORY // max(1, shared_bytes(op, element, n, c))))
        values = self.count * width * c.together
        self.min_blocks = 1 if self.bits < 32 and values > 32 else self.resident
        # Whether a thread has registers for all its elements as f32, where rows are in shared memory.
        self.spare = not c.in_parts and values + 28 <= DEFAULT_TARGET.sm_registers // (c.block * self.resident)

    @property
    def groups(self) -> list[tuple[int, int]]:
        """The parts in which a row comes into shared memory: the first chunk, and how many."""
        ends = [self.far * i // self.config.groups for i in range(self.config.groups + 1)]
        return [(start, end - start) for start, end in pairwise(ends)] if self.far else []

    @property
    def parts(self) -> list[tuple[int, int]]:
        """The parts in which a row is reduced: those in shared memory as they come, then what is in registers."""
        most = PART // self.width if self.config.in_parts else self.count
        return self.groups + [(i, min(most, self.count - i)) for i in range(self.far, self.count, most)]

    @property
    def spans(self) -> list[tuple[int, int]]:
        """The parts in which a row is written, up to eight elements of a thread; the tail is one by itself."""
        most = max(1, 8 // self.width)
        ends = pairwise(sorted({0, min(self.far, self.chunks), self.chunks}))
        whole = [(i, min(most, end - i)) for begin, end in ends for i in range(begin, end, most)]
        return whole + [(self.chunks, 1)] * (self.tail > 0)

    @property
    def early(self) -> int:
        """Spans of the weights that are loaded while the warps exchange their numbers: as many as have registers."""
        c, weights = self.config, WEIGHTS[self.op]
        if c.in_parts:
            return 1 if weights == 1 else 0
        fit = weights * self.count * self.bits <= 32 * 32
        return len(self.spans) if c.stages == 1 and fit else 0

    @property
    def messages(self) -> bool:
        """Tell whether blocks of a cluster send each other messages, by ``st.async``, rather than meet at its barrier.

        That is 12 % faster for softmax, 2 % for LayerNorm in registers, 4 % for RMSNorm partly in registers; norms with
        all of a row in shared memory, whose weights are on their way meanwhile, are 3 to 6 % faster with the barrier.
        """
        c = self.config
        return c.cluster > 1 and (self.op == "softmax" or c.stages != 1 or c.kept > 0)

    def clusters(self, sms: int) -> int:
        """Return clusters that a GPU holds at once.  The SMs of a GPC, 16 or 18 on H100 and H200, hold whole ones."""
        sms = sms // 8 * 8 if self.config.cluster > 2 else sms
        return max(1, sms * self.resident // self.config.cluster)
