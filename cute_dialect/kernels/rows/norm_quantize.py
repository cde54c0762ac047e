"""RMSNorm and LayerNorm with 8-bit results: norm, scales and quantization in one pass over the rows.

The threads of a row keep it in registers. Norms are computed in f32 and are rounded once, to the 8-bit type. A scale
belongs to a row or to 128 columns, which adjacent lanes of a warp hold.

    launch(x, residual, weight, bias, q, scales, total, eps)

>>> choose_config("rms_norm", "bf16", "f8E4M3FN", "row", 4096, "wr").name
'rms_norm-quantize-bf16-f8E4M3FN-row-wr-128x4'
"""

# Traced values define operators and element types that pyright cannot check.
# pyright: basic, reportArgumentType=false, reportOptionalMemberAccess=false, reportOptionalOperand=false

from collections.abc import Callable
from typing import Any, NamedTuple

import cute_dialect.lang as cute
from cute_dialect.kernels.common.elements import number, rounded, vector_width
from cute_dialect.kernels.common.traced_text import printed
from cute_dialect.kernels.rows.memory import combined, part
from cute_dialect.kernels.rows.quantize import BLOCK, over_threads, scales_of, vector_of

__all__ = ["NormQuantizeConfig", "choose_config", "launch", "norm_quantize_text"]

_THREADS = 256
"""Threads per block, unless a row needs more."""

_MAX_THREADS, _MAX_CHUNKS = 1024, 4


class NormQuantizeConfig(NamedTuple):
    """Configuration of the kernel."""

    norm: str = "rms_norm"  # or "layer_norm"
    element: str = "bf16"  # of x
    result: str = "f8E4M3FN"  # of q
    regions: str = "row"  # elements that share a scale: "row", or "block" of 128 columns
    takes: str = "w"  # operands: w (weight), b (bias), r (residual)
    threads: int = 128  # threads per row
    chunks: int = 4  # vectors per thread

    @property
    def vector(self) -> int:
        """Elements of a vector of 16 bytes."""
        return vector_width(self.element)

    @property
    def group(self) -> int:
        """Threads per block."""
        return max(self.threads, _THREADS) if self.threads <= 32 else self.threads

    @property
    def capacity(self) -> int:
        """The largest number of columns."""
        return self.threads * self.chunks * self.vector

    @property
    def name(self) -> str:
        """Unique name of the kernel."""
        words = [f"{self.norm}-quantize", self.element, self.result, self.regions, *[self.takes] * bool(self.takes)]
        return "-".join([*words, f"{self.threads}x{self.chunks}"])


def choose_config(norm: str, element: str, result: str, regions: str, n: int, takes: str) -> NormQuantizeConfig | None:
    """Return the configuration for rows of ``n`` elements; None if a row does not fit into registers."""
    c = NormQuantizeConfig(norm, element, result, regions, takes)
    vectors = -(-n // c.vector)
    threads = BLOCK // c.vector if regions == "block" else 4
    while threads < _MAX_THREADS and -(-vectors // threads) > (1 if threads < 32 else _MAX_CHUNKS):
        threads *= 2
    chunks = max(1, -(-vectors // threads))
    return c._replace(threads=threads, chunks=chunks) if chunks <= _MAX_CHUNKS else None


class _Row(NamedTuple):
    """A row, from the view of one of its threads."""

    row: Any
    exists: Any
    columns: list[Any]  # the first column of each vector


def _load(t: Any, row: Any, columns: list[Any], n: Any, is_there: Any, w: int, c: NormQuantizeConfig) -> Any:
    """Load the elements of a thread; those past the end of the row are 0."""
    held = cute.make_rmem_tensor(c.chunks * c.vector, t.element_type)
    held.fill(0)
    for i, column in enumerate(columns):
        for k in cute.range_constexpr(0, c.vector, w):
            if is_there & (column + k < n):
                cute.autovec_copy(vector_of(t, row, column + k, w), part(held, i * c.vector + k, w))
    return held


def _store(held: Any, t: Any, own: _Row, n: Any, w: int, c: NormQuantizeConfig) -> None:
    """Store the elements of a thread."""
    for i, column in enumerate(own.columns):
        for k in cute.range_constexpr(0, c.vector, w):
            if own.exists & (column + k < n):
                cute.autovec_copy(part(held, i * c.vector + k, w), vector_of(t, own.row, column + k, w))


def _sum(held: Any, term: Callable[..., Any], c: NormQuantizeConfig) -> Any:
    """Return the sum of a term over the elements of a row."""
    return over_threads(combined(held, _add, term), _add, c.threads)


def _add(a: Any, b: Any) -> Any:
    return a + b


def _normed(held: Any, columns: list[Any], weight: Any, bias: Any, eps: Any, n: Any, w: int, c: Any) -> Any:
    """Return the norm of the elements of a thread in f32."""
    wide = cute.make_rmem_tensor(c.chunks * c.vector, cute.Float32)
    wide.store(held.load().to(cute.Float32))
    share = 1.0 / n.to(cute.Float32)
    if c.norm == "layer_norm":
        mean = _sum(wide, lambda v: v, c) * share
        for i, column in enumerate(columns):
            for k in cute.range_constexpr(c.vector):
                # Elements past the end of the row have no part in the variance.
                at = i * c.vector + k
                wide[at] = cute.where(column + k < n, wide[at] - mean, 0.0)
    factor = cute.math.rsqrt(_sum(wide, lambda v: v * v, c) * share + eps)
    for i, column in enumerate(columns):
        own = part(wide, i * c.vector, c.vector)
        own.store(own.load() * factor)
        for vector, is_factor in ((weight, True), (bias, False)):
            if vector is not None:
                loaded = _load(vector, 0, [column], n, True, w, c._replace(chunks=1)).load().to(cute.Float32)
                own.store(own.load() * loaded if is_factor else own.load() + loaded)
    return wide


def _process(
    x: Any, residual: Any, weight: Any, bias: Any, q: Any, scales: Any, total: Any, eps: Any, c: Any, w: int
) -> None:
    """Process a row. Threads of rows that do not exist take part in reductions."""
    thread, n = cute.arch.thread_idx().x, x.shape[1].to(cute.Int32)
    row = cute.arch.block_idx().x * (c.group // c.threads) + thread // c.threads
    thread = thread % c.threads
    own = _Row(row, row < x.shape[0], [(thread + i * c.threads) * c.vector for i in range(c.chunks)])
    held = _load(x, row, own.columns, n, own.exists, w, c)
    if residual is not None:
        added = _load(residual, row, own.columns, n, own.exists, w, c)
        held.store((held.load().to(cute.Float32) + added.load().to(cute.Float32)).to(x.element_type))
        _store(held, total, own, n, w, c)
    wide = _normed(held, own.columns, weight, bias, eps, n, w, c)
    made = cute.make_rmem_tensor(c.chunks * c.vector, q.element_type)
    lanes = BLOCK // c.vector
    amax = over_threads(_largest(wide), cute.max, c.threads) if c.regions == "row" else None
    for i, column in enumerate(own.columns):
        values, of_block = part(wide, i * c.vector, c.vector), amax
        if c.regions == "block":
            of_block = cute.arch.warp_reduction(_largest(values), cute.max, lanes)
        scale, inverse = scales_of(of_block, c.result)
        is_first = thread == 0 if c.regions == "row" else thread % lanes == 0
        if (i == 0 or c.regions == "block") and own.exists & is_first & (column < n):
            scales[row, 0 if c.regions == "row" else column // BLOCK] = scale
        values.store(values.load() * inverse)
        part(made, i * c.vector, c.vector).store(rounded(values, q.element_type))
    _store(made, q, own, n, w, c)


def _largest(held: Any) -> Any:
    """Return the largest magnitude of some elements; NaN if one is NaN."""
    return combined(held, cute.max, cute.math.absf)


@cute.kernel(name="norm_quantize_v")
def by_vector(
    x: cute.Tensor, residual: Any, weight: Any, bias: Any, q: cute.Tensor, scales: cute.Tensor, total: Any,
    eps: cute.Float32, config: cute.Constexpr[NormQuantizeConfig],
):  # fmt: skip
    _process(x, residual, weight, bias, q, scales, total, eps, config, config.vector)


@cute.kernel(name="norm_quantize")
def by_element(
    x: cute.Tensor, residual: Any, weight: Any, bias: Any, q: cute.Tensor, scales: cute.Tensor, total: Any,
    eps: cute.Float32, config: cute.Constexpr[NormQuantizeConfig],
):  # fmt: skip
    _process(x, residual, weight, bias, q, scales, total, eps, config, 1)


@cute.jit
def launch(
    x: cute.Tensor, residual: Any, weight: Any, bias: Any, q: cute.Tensor, scales: cute.Tensor, total: Any,
    eps: cute.Float32, config: cute.Constexpr[NormQuantizeConfig],
):  # fmt: skip
    """Launch one group of threads per row.

    Args:
        x: (M, N).
        residual: (M, N), added to ``x`` first, or None.
        weight, bias: (1, N), or None.
        q: (M, N), 8 bits, the result.
        scales: (M, 1) or (M, N / 128), f32, the result.
        total: (M, N), the sum of ``x`` and the residual, the result; or None.
        eps: Added to the mean square or the variance.
        config: The configuration.
    """
    c, (m, n) = config, x.shape
    assert n <= c.capacity, f"the kernel is for rows of at most {c.capacity} elements"
    vectors = [None if t is None else cute.promise_vectors(t, c.vector) for t in (x, residual, weight, bias, q)]
    last = None if total is None else cute.promise_vectors(total, c.vector)
    by_vector(*vectors, scales, last, eps, c).launch(
        grid=cute.ceil_div(m, c.group // c.threads), block=c.group,
        fallback=by_element(x, residual, weight, bias, q, scales, total, eps, c),
    )  # fmt: skip


@printed
def norm_quantize_text(config: NormQuantizeConfig | None = None) -> cute.Compiled:
    """Trace the kernels ``@norm_quantize_v`` and ``@norm_quantize``, and their host function ``@launch``."""
    c = config or NormQuantizeConfig()
    layout = "(?,?):(?{i64},1)"
    matrix = cute.Tensor[number(c.element), layout]
    w, b, r = (matrix if name in c.takes else None for name in "wbr")
    q, scales = cute.Tensor[number(c.result), layout], cute.Tensor[cute.Float32, layout]
    return cute.trace(launch, matrix, r, w, b, q, scales, r, cute.Float32, c)
