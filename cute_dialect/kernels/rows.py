"""Row kernels as text: sum, softmax, RMSNorm and LayerNorm of the rows of a matrix.

The number of rows and the distance from row to row are known at run time, the length ``n`` of a row is part of the
kernel.  A row is read once and written once; in between it stays in registers, as ``f32``.  How many threads share a
row is the :class:`RowConfig`: some lanes of a warp, a warp, a block, or the blocks of a cluster, whose shared memories
then hold the partial results.  There is one exchange between warps in every kernel: softmax and LayerNorm combine pairs
(maximum, sum) and (sum, squared deviations) that each warp has made for itself.

>>> text = row_kernel("softmax", "f16", 1000)
>>> "gpu.func @softmax_v" in text      # rows of whole vectors; @softmax takes any row stride
True
>>> default_config("softmax", "f32", 4096)
RowConfig(threads=512, rows=1, cluster=1, stages=0, together=1, resident=0, groups=1, kept=0)
"""

from __future__ import annotations

from typing import NamedTuple

from cute_dialect.arch.targets import DEFAULT_TARGET

__all__ = ["BITS", "OPS", "RowConfig", "default_config", "row_kernel", "vector_width"]

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


def _power_of_two(n: int) -> int:
    return 1 << max(0, (n - 1).bit_length())


def default_config(op: str, element: str, n: int) -> RowConfig:
    """Return how a row of ``n`` elements is shared out, as ``cute-bench rows_sweep`` found it best on an H200.

    Raises ValueError where registers cannot hold it.

    >>> [default_config("rmsnorm", "f32", n)[:3] for n in (100, 1024, 4096, 32768, 131072)]
    [(8, 16, 1), (128, 1, 1), (512, 1, 1), (1024, 1, 1), (512, 1, 8)]
    >>> default_config("layernorm", "f16", 131072)      # two rows at a time, half in shared memory, half in registers
    RowConfig(threads=512, rows=1, cluster=8, stages=1, together=2, resident=0, groups=2, kept=16)
    """
    _check(op, element, n)
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
        return RowConfig(
            way.threads, 1, cluster, 1, way.together, groups=max(1, min(way.groups, chunks - kept)), kept=kept * width
        )
    return None


def _check(op: str, element: str, n: int) -> None:
    if op not in OPS:
        raise ValueError(f"expected an operation of {', '.join(OPS)}, got '{op}'")
    if element not in BITS:
        raise ValueError(f"expected an element type of {', '.join(BITS)}, got '{element}'")
    if n < 1:
        raise ValueError(f"expected rows of at least one element, got {n}")


def vector_width(element: str, n: int) -> int:
    """Return elements of one access: up to 128 bits, and a row is a whole number of them.

    >>> vector_width("f16", 1000), vector_width("f16", 1002), vector_width("f32", 999)
    (8, 2, 1)
    """
    most = 128 // BITS[element]
    return min(most, n & -n)


def row_kernel(
    op: str, element: str = "f32", n: int = 1024, config: RowConfig | None = None, *, eps: float = 1e-5, sms: int = 132
) -> str:
    """Return the file for ``sum``, ``softmax``, ``rmsnorm`` or ``layernorm`` over rows of ``n`` elements.

    ``@sum(x, y)`` with ``y`` of one element a row; ``@softmax(x, y)``; ``@rmsnorm(x, w, y)``: ``x / rms(x) * w``;
    ``@layernorm(x, w, b, y)``: ``(x - mean) / deviation * w + b``, where ``w`` and ``b`` have ``n`` elements.  ``eps``
    is added to the mean square and the variance.  All tensors have the same element type, sums are ``f32``.
    ``sms``: how many SMs the GPU has, where a block works on more than one row.
    Raises ValueError for a configuration that does not fit.
    """
    _check(op, element, n)
    c = default_config(op, element, n) if config is None else config
    for what, x, most in (("threads", c.threads, MAX_THREADS), ("cluster", c.cluster, MAX_CLUSTER)):
        if x != _power_of_two(x) or not 1 <= x <= most:
            raise ValueError(f"expected {what} to be a power of two up to {most}, got {x}")
    if c.rows > 1 and (c.threads > 32 or c.cluster > 1):
        raise ValueError(f"expected one row a block where more than a warp shares it, got {c.rows}")
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
    from cute_dialect.kernels.row_emitter import SHARED_MEMORY, shared_bytes
    from cute_dialect.kernels.row_ops import RowKernel
    from cute_dialect.kernels.script import Script

    if c.stages and (found := shared_bytes(op, element, n, c)) > SHARED_MEMORY:
        raise ValueError(f"expected rows and weights of at most {SHARED_MEMORY} bytes a block, got {found}")
    b = Script()
    emitters = [RowKernel(b, op, element, n, c, w, eps, sms) for w in sorted({1, width})]
    names = [op, f"{op}_v"][: len(emitters)]
    for emitter, name in zip(emitters, names):
        emitter.name_types()
        emitter.kernel(name)
    emitters[0].launch(names[1:])
    return b.script(_head(op, element, n, c, width))


def _head(op: str, element: str, n: int, c: RowConfig, width: int) -> str:
    what = {
        "sum": "y[i] = sum of row i of x",
        "softmax": "y = softmax of each row of x",
        "rmsnorm": "y = x / sqrt(mean of its row's squares + eps) * w",
        "layernorm": "y = (x - mean of its row) / sqrt(variance of its row + eps) * w + b",
    }[op]
    shared = f"{c.threads} threads" + (f" of each of {c.cluster} blocks" if c.cluster > 1 else "")
    lines = [f"{what}, for rows of {n} {element}; any number of rows, any distance between them.", ""]
    lines.append(f"A row is shared by {shared}" + (f", {c.rows} rows are in a block." if c.rows > 1 else "."))
    if width > 1:
        bits = width * BITS[element]
        lines[-1] += f"  @{op}_v takes rows that begin at multiples of {bits // 8} bytes"
        lines.append(f"and moves {bits} bits at a time; the launch takes it when the arguments allow it.")
    return "\n".join(f"// {line}".rstrip() for line in lines)
