"""Quantization to 8-bit types with f32 scales, and its inverse.

A region of a matrix has one scale: its largest magnitude divided by the largest value of the 8-bit type. Regions are
rows, blocks of 128 columns of a row, or tiles of 128 x 128. The threads of a region keep it in registers, so that it is
read once; rows that are too long for that are read twice. With given scales nothing is reduced, and the regions only
distribute the work.

Each program has two kernels with one body: ``quantize_v`` for rows of whole aligned vectors, and ``quantize`` for any
rows, which are read element by element.

    launch(x, q, scales)

>>> choose_config("row", "bf16", "f8E4M3FN", 4096)[3:6], choose_config("block", "bf16", "i8", 4096)[3:6]
((128, 4, 1), (16, 1, 4))
"""

# Traced values define operators and element types that pyright cannot check.
# pyright: basic, reportArgumentType=false, reportOptionalMemberAccess=false, reportOptionalOperand=false

from collections.abc import Callable
from typing import Any, NamedTuple

import cute_dialect.lang as cute
from cute_dialect.kernels.common.elements import BITS, number, rounded
from cute_dialect.kernels.common.traced_text import printed
from cute_dialect.kernels.epilogue.functions import LARGEST
from cute_dialect.kernels.rows.memory import combined, part, widened

__all__ = [
    "BLOCK", "QuantizeConfig", "choose_config", "launch", "over_threads", "quantize_text", "scales_of", "vector_of",
]  # fmt: skip

BLOCK = 128
"""Columns of a block, and rows and columns of a tile."""

_THREADS = 256
"""Threads per block, unless a row needs more."""

_MAX_THREADS, _MAX_CHUNKS = 1024, 8

_UNITS = 4
"""Blocks that a thread processes at once."""

_MANY = 64
"""Elements per thread from which on they do not fit into registers as f32, and are converted twice."""

_LEAST = 2.0**-110
"""If no magnitude of a region is greater, its scale is 1, as in :func:`cute_dialect.op.epilogue.quantize`."""

_PARTIAL = 8192
"""Elements per thread block that finds a partial maximum of a whole array."""


class QuantizeConfig(NamedTuple):
    """Configuration of the kernel.

    >>> QuantizeConfig().name
    'quantize-bf16-f8E4M3FN-quantize-128x4x1x1x0'
    """

    element: str = "bf16"  # of x
    result: str = "f8E4M3FN"  # of q
    task: str = "quantize"
    """``quantize``; ``given``: with given scales; ``dequantize``: from q to x; ``maximum``: only the largest
    magnitudes; ``scale``: only the scales, of maxima."""
    threads: int = 128  # threads of a region
    chunks: int = 4  # vectors per thread
    units: int = 1  # regions that a thread processes at once
    rows: int = 1  # rows of a region
    block: int = 0  # columns of a region; 0: whole rows
    is_streamed: bool = False  # rows of any length, which are read twice

    @property
    def vector(self) -> int:
        """Elements of a vector, which has 16 bytes in the wider type."""
        return 128 // max(BITS[self.element], 8 if self.task == "maximum" else BITS[self.result])

    @property
    def group(self) -> int:
        """Threads per block."""
        return max(self.threads, _THREADS) if self.threads <= 32 else self.threads

    @property
    def reduces(self) -> bool:
        """Return True unless the scales are given."""
        return self.task not in ("given", "dequantize")

    @property
    def capacity(self) -> int:
        """The largest number of columns of a region in registers."""
        return self.threads * self.chunks * self.vector // self.rows

    @property
    def name(self) -> str:
        """Unique name of the kernel."""
        sizes = "x".join(str(n) for n in (self.threads, self.chunks, self.units, self.rows, self.block))
        return f"quantize-{self.element}-{self.result}-{self.task}-{sizes}{'-streamed' if self.is_streamed else ''}"


def choose_config(regions: str, element: str, result: str, n: int, task: str = "quantize") -> QuantizeConfig:
    """Return the configuration for rows of ``n`` elements.

    Args:
        regions: ``row``, ``block``, ``tile``; ``blocks`` for rows that are blocks; ``part`` for partial maxima of a
            whole array.
    """
    c = QuantizeConfig(element, result, task)
    if regions == "tile":
        return c._replace(threads=_THREADS, chunks=BLOCK * BLOCK // (_THREADS * c.vector), rows=BLOCK, block=BLOCK)
    if regions in ("block", "blocks"):
        block = BLOCK if regions == "block" else 0
        return c._replace(threads=BLOCK // c.vector, chunks=1, units=_UNITS, block=block)
    if regions == "part":
        return c._replace(threads=_THREADS, chunks=_PARTIAL // (_THREADS * c.vector), block=_PARTIAL)
    vectors = -(-n // c.vector)
    threads = 4
    while threads < _MAX_THREADS and -(-vectors // threads) > (1 if threads < 32 else 4):
        threads *= 2
    chunks = max(1, -(-vectors // threads))
    if chunks > _MAX_CHUNKS:
        return c._replace(threads=_MAX_THREADS, chunks=4, is_streamed=True)
    return c._replace(threads=threads, chunks=chunks)


class _Region(NamedTuple):
    """A region, from the view of one of its threads."""

    row: Any  # the first row
    begin: Any  # the first column
    end: Any  # the column after the last one
    column: Any  # column of its scale
    thread: Any  # index of this thread


def _region_of(unit: Any, x: Any, c: QuantizeConfig, thread: Any) -> _Region:
    n = x.shape[1]
    if c.block == 0:
        return _Region(unit, 0, n, 0, thread)
    across = cute.ceil_div(n, c.block)
    row = unit // across
    column = unit - row * across
    begin = column * c.block
    return _Region(row * c.rows, begin, cute.min(begin + c.block, n), column, thread)


def _pieces(region: _Region, c: QuantizeConfig, w: int) -> list[tuple[Any, Any]]:
    """Return row and column of each vector of ``w`` elements of a thread."""
    count = c.chunks * (c.vector // w)
    if c.rows == 1:
        return [(region.row, region.begin + (region.thread + i * c.threads) * w) for i in range(count)]
    across = c.block // w
    row, column = region.row + region.thread // across, region.begin + region.thread % across * w
    return [(row + i * (c.threads // across), column) for i in range(count)]


def vector_of(t: Any, row: Any, column: Any, w: int) -> Any:
    """Return ``w`` elements of a row, which are aligned if there are several."""
    at = t[row, None].iterator + column
    return cute.make_tensor(at.align(w * t.element_type.width // 8), cute.make_layout(w))


def _load(t: Any, region: _Region, c: QuantizeConfig, w: int) -> Any:
    """Load the elements of a thread; those outside of the region are 0."""
    held = cute.make_rmem_tensor(c.chunks * c.vector, t.element_type)
    held.fill(0)
    for i, (row, column) in enumerate(_pieces(region, c, w)):
        if (row < t.shape[0]) & (column < region.end):
            cute.autovec_copy(vector_of(t, row, column, w), part(held, i * w, w))
    return held


def _store(held: Any, factor: Any, t: Any, region: _Region, c: QuantizeConfig, w: int) -> None:
    """Multiply the elements of a thread by the factor, round and store them."""
    # Many 16-bit elements are converted again, because those in f32 would need twice the registers.
    is_converted_again = w > 1 and held.element_type.width == 16 and cute.size(held) >= _MANY
    for i, (row, column) in enumerate(_pieces(region, c, w)):
        wide = cute.make_rmem_tensor(w, cute.Float32)
        wide.store(widened(part(held, i * w, w), is_converted_again) * factor)
        made = cute.make_rmem_tensor(w, t.element_type)
        made.store(rounded(wide, t.element_type))
        if (row < t.shape[0]) & (column < region.end):
            cute.autovec_copy(made, vector_of(t, row, column, w))


def _largest(held: Any) -> Any:
    """Return the largest magnitude of some elements; NaN if one is NaN."""
    return combined(held, cute.max, lambda v: cute.math.absf(v.to(cute.Float32)))


def over_threads(x: Any, combine: Callable[..., Any], threads: int) -> Any:
    """Return a reduction over the threads of a region, which are a part of a warp or a block."""
    x = cute.arch.warp_reduction(x, combine, min(32, threads))
    if threads <= 32:
        return x
    warps, warp, lane = threads // 32, cute.arch.canonical_warp_idx_sync(), cute.arch.lane_idx()
    table = cute.smem_tensor(cute.Float32, cute.make_layout(warps), byte_alignment=4)
    if lane == 0:
        table[warp] = x
    cute.arch.sync_threads()
    return cute.arch.warp_reduction(table[lane % warps], combine, warps)


def scales_of(amax: Any, result: str) -> tuple[Any, Any]:
    """Return the scale of a region and its inverse. They are NaN if the maximum is."""
    is_small = amax <= _LEAST
    scale = cute.where(is_small, 1.0, amax / LARGEST[result])
    return scale, cute.where(is_small, 1.0, 1.0 / scale)


def _finish(region: _Region, amax: Any, held: Any, x: Any, q: Any, s: Any, c: QuantizeConfig, w: int) -> Any:
    """Store the scale of a region, and its elements if they are in registers. Return the inverse scale."""
    scale, inverse = (amax, amax) if c.task == "maximum" else scales_of(amax, c.result)
    if (region.thread == 0) & (region.row < x.shape[0]):
        s[region.row // c.rows, region.column] = scale
    if held is not None and c.task == "quantize":
        _store(held, inverse, q, region, c, w)
    return inverse


def _convert(region: _Region, held: Any, x: Any, q: Any, s: Any, c: QuantizeConfig, w: int) -> None:
    """Convert the elements of a thread with a given scale."""
    if region.row < x.shape[0]:
        scale = s[region.row // c.rows, region.column]
        if c.task == "dequantize":
            _store(held, scale, x, region, c, w)
        else:
            _store(held, 1.0 / scale, q, region, c, w)


def _stream(region: _Region, x: Any, q: Any, s: Any, c: QuantizeConfig, w: int) -> None:
    """Process a row that does not fit into registers."""
    step = c.threads * c.chunks * c.vector
    steps = cute.ceil_div(region.end, step)
    own = cute.Float32(0)
    for i in range(steps):
        own = cute.max(own, _largest(_load(x, region._replace(begin=i * step), c, w)))
    inverse = _finish(region, over_threads(own, cute.max, c.threads), None, x, q, s, c, w)
    if c.task == "quantize":
        for i in range(steps):
            there = region._replace(begin=i * step)
            _store(_load(x, there, c, w), inverse, q, there, c, w)


def _process(x: Any, q: Any, s: Any, c: QuantizeConfig, w: int) -> None:
    """Process the regions of a thread. All loads precede the stores."""
    thread, groups = cute.arch.thread_idx().x, c.group // c.threads
    first = cute.arch.block_idx().x * (groups * c.units) + thread // c.threads
    source = q if c.task == "dequantize" else x
    regions = [_region_of(first + i * groups, x, c, thread % c.threads) for i in range(c.units)]
    if c.is_streamed:
        _stream(regions[0], x, q, s, c, w)
    else:
        held = [_load(source, region, c, w) for region in regions]
        for region, values in zip(regions, held):
            if c.reduces:
                _finish(region, over_threads(_largest(values), cute.max, c.threads), values, x, q, s, c, w)
            else:
                _convert(region, values, x, q, s, c, w)


@cute.kernel(name="quantize_v")
def by_vector(x: cute.Tensor, q: Any, s: cute.Tensor, config: cute.Constexpr[QuantizeConfig]):
    _process(x, q, s, config, config.vector)


@cute.kernel(name="quantize")
def by_element(x: cute.Tensor, q: Any, s: cute.Tensor, config: cute.Constexpr[QuantizeConfig]):
    _process(x, q, s, config, 1)


@cute.jit
def launch(x: cute.Tensor, q: Any, s: cute.Tensor, config: cute.Constexpr[QuantizeConfig]):
    """Launch one group of threads per region.

    Args:
        x: (M, N), the matrix.
        q: (M, N), 8 bits; None to compute only scales.
        s: Scale of each region, f32; given scales may have strides of 0.
        config: The configuration.
    """
    c, (m, n) = config, x.shape
    if q is not None:
        assert q.shape[0] == m, "q must have as many rows as x"
        assert q.shape[1] == n, "q must have rows as long as those of x"
    if c.block == 0 and not c.is_streamed:
        assert n <= c.capacity, f"the kernel is for rows of at most {c.capacity} elements"
    across = cute.ceil_div(n, c.block) if c.block else 1
    units = cute.ceil_div(m, c.rows) * across
    grid = cute.ceil_div(units, c.group // c.threads * c.units)
    vx = cute.promise_vectors(x, c.vector)
    vq = None if q is None else cute.promise_vectors(q, c.vector)
    by_vector(vx, vq, s, c).launch(grid=grid, block=c.group, fallback=by_element(x, q, s, c))


@printed
def quantize_text(config: QuantizeConfig | None = None) -> cute.Compiled:
    """Trace the kernels ``@quantize_v`` and ``@quantize``, and their host function ``@launch``."""
    c = config or QuantizeConfig()
    matrix = "(?,?):(?{i64},1)"
    has_result = c.task not in ("maximum", "scale")
    q = cute.Tensor[number(c.result), matrix] if has_result else None
    return cute.trace(launch, cute.Tensor[number(c.element), matrix], q, cute.Tensor[cute.Float32, "(?,?):(?,?)"], c)
