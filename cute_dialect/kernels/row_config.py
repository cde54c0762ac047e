"""How rows are shared out: how many threads, blocks and registers a row gets, for a class of lengths.

A thread reads vectors of 16 bytes.  A class is an operation, an element type and a :class:`RowConfig`; the length of a
row is known at run time.  It fixes how many vectors a thread has (``chunks``): all of them but the last, which only
some threads have.  So a class holds the lengths whose vectors need that many chunks, and only the last one is tested.

>>> [row_class("softmax", "bf16", n)[:3] for n in (100, 768, 4095, 4096, 5120)]
[(8, 2, 16), (32, 3, 4), (128, 4, 1), (128, 4, 1), (160, 4, 1)]
>>> row_class("softmax", "bf16", 5000) == row_class("softmax", "bf16", 5001)
True
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from cute_dialect.arch.targets import DEFAULT_TARGET

__all__ = [
    "BITS", "HINTS", "OPS", "SHARED_MEMORY", "Plan", "RowConfig", "capacity", "check", "fewest_threads", "longest",
    "row_class", "shared_bytes", "short_threads", "width",
]  # fmt: skip

BITS = {"f32": 32, "f16": 16, "bf16": 16}
"""Element types the kernels are made for, and their bits."""

OPS = {
    "softmax": "", "log_softmax": "", "rmsnorm": "wr", "layernorm": "wbr", "softmax_backward": "d",
    "log_softmax_backward": "d",
}  # fmt: skip
"""Operations, and what they can take beside the row: weights (w) and a bias (b) of a row's length; a second row, which
is added first, a residual (r), or is the gradient of a result (d).
"""

TWO = "rd"
"""Of these, second rows."""

MAX_THREADS, MAX_CLUSTER = DEFAULT_TARGET.threads, DEFAULT_TARGET.cluster

SHARED_MEMORY = 224 * 1024
"""Bytes of shared memory that blocks of an SM may have, beside what the partial results take."""

PART = 32
"""Elements in registers that a thread works on while it waits for the next ones."""

LONG_ROW = 16384
"""Rows that are longer are shared out as :data:`LONG` says."""


class Way(NamedTuple):
    """A way to share out long rows: threads of a block, chunks that each has of a row at most, rows together, blocks of
    a cluster at most; parts, as in :class:`RowConfig`, and chunks in registers (-1: all).  For rows longer than
    ``above``.
    """

    threads: int
    chunks: int
    together: int = 1
    cluster: int = 1
    groups: int = 0
    kept: int = 0
    above: int = LONG_ROW


LONG: dict[tuple[str, int], tuple[Way, ...]] = {
    ("softmax", 16): (
        Way(512, 8), Way(512, 8, cluster=8, groups=1, kept=-1), Way(1024, 8, cluster=8),
    ),
    ("softmax", 32): (Way(512, 8, cluster=8, groups=1, kept=-1, above=32768),),
    ("layernorm", 16): (
        Way(512, 8, groups=6, kept=2), Way(512, 4, together=2, cluster=8, groups=2, kept=2),
        Way(1024, 4, together=3, cluster=8),
    ),
    ("layernorm", 32): (Way(1024, 8, groups=2, kept=2), Way(512, 8, cluster=8, groups=1, kept=-1)),
    # Rows that begin anywhere load weights for each; nothing is gained by two at once.
    ("odd layernorm", 16): (Way(512, 8, cluster=8, groups=6, kept=2),),
    ("odd layernorm", 32): (Way(1024, 8, groups=2, kept=2), Way(512, 8, cluster=8, groups=1, kept=-1)),
    # With a second matrix to read there are registers for half of a row, and it goes there.
    ("two", 16): (Way(512, 4, cluster=8, groups=1, kept=-1), Way(1024, 4, cluster=8, groups=1, kept=-1)),
    ("two", 32): (Way(512, 4, cluster=8, groups=1, kept=-1), Way(1024, 4, cluster=8, groups=1, kept=-1)),
}  # fmt: skip
"""By operation and bits of an element; the first that has room."""
_LIKE = {op: "layernorm" if op == "layernorm" else "softmax" for op in OPS}


HINTS = ("", "L1::evict_first", "L1::no_allocate")
"""L1 eviction priorities of loads, in PTX; the first one is the default of the GPU."""


class RowConfig(NamedTuple):
    """``threads`` of each block share a row, and have up to ``chunks`` vectors of it; ``rows`` rows are in a block,
    ``cluster`` blocks share a row.

    ``shared``: the first so many chunks are in shared memory, the others in registers.
    ``groups``: not 0: a row comes in parts, those in shared memory in so many; a thread works on what is there while
    the rest is on its way.
    ``together``: rows that a thread works on at once, so that weights are loaded once for all of them.
    ``resident``: blocks that an SM should hold, which limits their registers; 0: as many as have 1024 threads.
    ``stages``: rows that are under way at once in shared memory, where blocks go from row to row.
    ``hint``: the index in :data:`HINTS` of the L1 eviction priority of loads; not 0: their lines leave L2 first, too.
    """

    threads: int
    chunks: int = 1
    rows: int = 1
    cluster: int = 1
    shared: int = 0
    groups: int = 0
    together: int = 1
    resident: int = 0
    stages: int = 0
    hint: int = 0

    @property
    def block(self) -> int:
        """Threads of a block."""
        return self.threads * self.rows

    @property
    def in_parts(self) -> bool:
        """Tell whether a row comes in parts, some of them into registers."""
        return self.groups > 0

    @property
    def is_long(self) -> bool:
        """Tell whether a thread has more of a row than it has registers for it and the result."""
        return self.shared > 0 or self.groups > 0

    @property
    def sharing(self) -> int:
        """Threads that share a row."""
        return self.threads * self.cluster

    @property
    def warps(self) -> int:
        """Warps that share a row, in all blocks."""
        return max(1, self.threads // 32) * self.cluster

    @property
    def name(self) -> str:
        """The configuration as a part of a name: the numbers, without the last ones that say nothing."""
        used = max(i for i, (x, plain) in enumerate(zip(self, RowConfig(0))) if i < 2 or x != plain) + 1
        return "x".join(map(str, self[:used]))


def _power_of_two(n: int) -> int:
    return 1 << max(0, (n - 1).bit_length())


def width(element: str) -> int:
    """Return elements of a vector of 16 bytes.  Raises ValueError for other element types.

    >>> width("f16"), width("f32")
    (8, 4)
    """
    if element not in BITS:
        raise ValueError(f"expected an element type of {', '.join(BITS)}, got '{element}'")
    return 128 // BITS[element]


def capacity(element: str, config: RowConfig) -> range:
    """Return the lengths that a class is for: in vectors that begin at any element all chunks but the last are whole.

    >>> capacity("f16", RowConfig(128, 4))
    range(3080, 4104)
    """
    w, step = width(element), config.sharing
    first = ((config.chunks - 1) * step + 1) * w
    return range(1 if config.chunks == 1 else first, (config.chunks * step + 1) * w)


def short_threads(element: str, n: int) -> int:
    """Return the number of threads, up to a warp, that share a short row of ``n`` elements.

    Four vectors or fewer get a thread each, because a block then holds the most rows without idle lanes.  Longer rows
    get two vectors per thread.

    >>> [short_threads("bf16", n) for n in (3, 7, 8, 16, 19, 24, 48, 64, 200, 768)]
    [1, 2, 1, 2, 2, 4, 4, 8, 16, 32]
    """
    vectors = max(1, n // width(element))
    alone = vectors <= 4 or 7 <= vectors <= 8  # no other split leaves so few lanes idle
    threads = _power_of_two(vectors if alone else -(-vectors // 2))
    return min(32, max(threads, fewest_threads(element, n)))


def fewest_threads(element: str, n: int) -> int:
    """Return the smallest number of threads worth using for a row of ``n`` elements.

    Single threads load the elements outside of whole vectors, so two threads share that work unless there are few.
    """
    w = width(element)
    return 2 if n % w and n > w // 2 else 1


def has_two(takes: str) -> bool:
    """Tell whether two rows are read."""
    return any(x in takes for x in TWO)


def longest(op: str, element: str, takes: str = "") -> int:
    """Return the length of the longest rows that an operation takes."""
    kind = "two" if has_two(takes) else f"odd {op}" if op == "layernorm" else _LIKE[op]
    w, ways = width(element), LONG.get((kind, BITS[element]), ())
    return max([MAX_THREADS * 8 * w, *(x.threads * x.chunks * x.cluster * w for x in ways)]) + w - 1


def row_class(op: str, element: str, n: int, takes: str = "") -> RowConfig:
    """Return the class of rows of ``n`` elements, shared out as measured to be best on an H200.

    ``takes``: what the operation takes beside the row, of :data:`OPS`.  Raises ValueError where no cluster of blocks
    can hold such a row.

    >>> row_class("layernorm", "f16", 131072)      # two rows at a time, half in shared memory, half in registers
    RowConfig(threads=512, chunks=4, rows=1, cluster=8, shared=2, groups=2, together=2, resident=0, stages=0, hint=0)
    """
    if op not in OPS:
        raise ValueError(f"expected an operation of {', '.join(OPS)}, got '{op}'")
    w = width(element)
    if n < 1:
        raise ValueError(f"expected rows of at least one element, got {n}")
    vectors = max(1, n // w)
    two = has_two(takes)
    if vectors <= 96:  # rows of (a part of) a warp
        threads = 16 if 32 < vectors <= 48 and not two else short_threads(element, n)
        return RowConfig(threads, -(-vectors // threads), 128 // threads)
    kind = "two" if two else "odd layernorm" if op == "layernorm" and n % w else _LIKE[op]
    found = _long(kind, element, vectors) if n >= LONG_ROW + w or two else None
    if found is not None:
        return found
    # More threads, with fewer elements each, where elements take registers of their own.
    chunks = max(4 if element != "f32" and vectors > 128 and not two else 2, -(-vectors // 512))
    if chunks > 8:
        chunks = -(-vectors // MAX_THREADS)
    if chunks > 8:
        raise ValueError(f"expected rows of at most {longest(op, element, takes)} elements for {op}, got {n}")
    if vectors > 320 * chunks and vectors <= 512 * chunks:  # three blocks of 320 fill an SM, two of less than 512 not
        return RowConfig(512, -(-vectors // 512))
    threads = 32 * -(-vectors // (32 * chunks))
    return RowConfig(threads, -(-vectors // threads))


def _long(op: str, element: str, vectors: int) -> RowConfig | None:
    """Return the class of long rows; None where nothing is said of them."""
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
    """Raise ValueError for what there are no kernels for."""
    if op not in OPS:
        raise ValueError(f"expected an operation of {', '.join(OPS)}, got '{op}'")
    w = width(element)
    unknown = [x for x in takes if x not in OPS[op]]
    if unknown:
        raise ValueError(f"{op}: expected to take some of '{OPS[op]}', got '{takes}'")
    c = config
    if c.threads > 32 and c.threads % 32:
        raise ValueError(f"expected whole warps, got {c.threads} threads")
    for what, x, most in (("threads", min(c.threads, 32), 32), ("cluster", c.cluster, MAX_CLUSTER)):
        if x != _power_of_two(x) or not 1 <= x <= most:
            raise ValueError(f"expected {what} to be a power of two up to {most}, got {x}")
    if c.rows > 1 and (c.threads > 32 or c.cluster > 1):
        raise ValueError(f"expected one row a block where more than a warp shares it, got {c.rows}")
    if c.cluster > 1 and (c.threads < 32 or c.threads & (c.threads - 1)):
        raise ValueError(f"expected a power of two of warps in the blocks of a cluster, got {c.threads} threads")
    if not 1 <= c.block <= MAX_THREADS:
        raise ValueError(f"expected blocks of 1 to {MAX_THREADS} threads, got {c.block}")
    if (c.is_long or c.together > 1) and c.rows > 1:
        raise ValueError("expected one row a block where rows are in shared memory, in parts or worked on together")
    if c.together > 1 and ("softmax" in op or has_two(takes)):
        raise ValueError(f"expected no {op if 'softmax' in op else 'residual'} where rows are worked on together")
    if c.shared and has_two(takes):
        raise ValueError("expected rows in registers where two are read")
    if c.chunks < 1 or not 0 <= c.shared <= c.chunks:
        raise ValueError(f"expected at least one chunk, and no more in shared memory, got {c.chunks} and {c.shared}")
    if c.groups < 0 or (c.groups > 1 and c.groups > c.shared):
        raise ValueError(f"expected a row in up to {max(1, c.shared)} parts, got {c.groups}")
    if (found := shared_bytes(element, c)) > SHARED_MEMORY:
        raise ValueError(f"expected rows of at most {SHARED_MEMORY} bytes a block in shared memory, got {found}")
    assert w


def shared_bytes(element: str, config: RowConfig) -> int:
    """Return bytes of shared memory that the rows of a block take.

    >>> shared_bytes("f16", RowConfig(512, 8, shared=8))
    65536
    """
    return config.together * config.shared * config.threads * width(element) * BITS[element] // 8


class Plan:
    """What one kernel is made for: an operation, an element type, a class.

    ``takes``: what it takes beside the row, of :data:`OPS`.  ``whole``: rows are whole aligned vectors, in all
    matrices; else they begin and end anywhere: what lies before the first vector and after the last, the *edges*, is
    dealt out one by one.

    Chunk ``i`` of a thread is vector ``i * sharing + thread`` of the row, so that a warp reads 512 bytes at a time.
    The first ``shared`` chunks are in shared memory, the rest in registers.
    """

    def __init__(self, op: str, element: str, config: RowConfig, takes: str = "", whole: bool = True):
        c = config
        self.op, self.element, self.config, self.takes, self.whole = op, element, c, takes, whole
        self.width, self.chunks, self.shared = width(element), c.chunks, c.shared
        self.step = c.sharing * self.width
        # In shared memory chunks lie as far apart as the threads of a block need.
        self.block_step = c.threads * self.width
        self.share = self.block_step * c.shared
        self.edges = 0 if whole else -(-2 * self.width // c.sharing)
        self.weights = sum(x in takes for x in "wb")
        self.resident = c.resident or max(1, 1024 // c.block)
        if c.shared:
            self.resident = min(self.resident, max(1, SHARED_MEMORY // max(1, shared_bytes(element, c))))
        values = c.chunks * self.width * c.together
        # Whether a thread has registers for all its elements as f32, where rows are in shared memory.
        self.spare = not c.in_parts and values + 28 <= DEFAULT_TARGET.sm_registers // (c.block * self.resident)

    @property
    def groups(self) -> list[tuple[int, int]]:
        """The parts in which a row comes into shared memory: the first chunk, and how many."""
        groups = max(1, self.config.groups)
        ends = [self.shared * i // groups for i in range(groups + 1)]
        return [(start, end - start) for start, end in pairwise(ends)] if self.shared else []

    @property
    def parts(self) -> list[tuple[int, int]]:
        """The parts in which a row is reduced: those in shared memory as they come, then what is in registers."""
        most = max(1, PART // self.width) if self.config.in_parts else self.chunks
        return self.groups + [(i, min(most, self.chunks - i)) for i in range(self.shared, self.chunks, most)]

    @property
    def spans(self) -> list[tuple[int, int]]:
        """The parts in which a row is written, up to eight elements of a thread; the last chunk is one by itself."""
        most, last = 8 // self.width, self.chunks - 1
        ends = pairwise(sorted({0, min(self.shared, last), last}))
        return [(i, min(most, end - i)) for begin, end in ends for i in range(begin, end, most)] + [(last, 1)]

    @property
    def early(self) -> int:
        """Spans of the weights that are loaded while the warps exchange their numbers: as many as have registers."""
        c = self.config
        if c.in_parts:
            return 1 if self.weights == 1 else 0
        fit = self.weights * self.chunks * 128 <= 32 * 32
        return len(self.spans) if c.shared and fit else 0

    @property
    def messages(self) -> bool:
        """Tell whether blocks of a cluster send each other messages, by ``st.async``, rather than meet at its barrier.

        That is 12 % faster for softmax, 2 % for LayerNorm in registers, 4 % for RMSNorm partly in registers; RMSNorm
        with all of a row in shared memory, whose weights are on their way meanwhile, is 3 to 6 % faster with the
        barrier.
        """
        c = self.config
        return c.cluster > 1 and (self.op != "rmsnorm" or c.shared < c.chunks)
