"""Embedding: rows of a table by their indices, and the gradient of the table.

The gradient of a row of the table is the sum over the tokens with its index, in f32 and in the order of the tokens, so
that its bits are always the same. A first kernel links the tokens of equal index: ``links[t]`` is the next such token,
or T if there is none. It is stored as ``-1 - next`` unless ``t`` is the first one. A second kernel follows the links of
each first token. Rows of no token are filled with zeros before.

    launch(indices, table, out)
    launch_zero(dtable)
    launch_links(indices, links, rows, padding)
    launch_gradient(dout, indices, links, dtable)
"""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic, reportArgumentType=false, reportOptionalMemberAccess=false

from typing import NamedTuple

import cute_dialect.lang as cute
from cute_dialect.kernels.common.elements import number, vector_width
from cute_dialect.kernels.common.traced_text import printed
from cute_dialect.kernels.rows.quantize import vector_of
from cute_dialect.lang.values.signature_types import Int

__all__ = ["EmbeddingConfig", "gather_text", "gradient_text", "links_text", "zero_text"]

_THREADS = 256


class EmbeddingConfig(NamedTuple):
    """Configuration of the kernels.

    >>> EmbeddingConfig().name
    'embedding-bf16-i64'
    """

    element: str = "bf16"  # of the table
    index: str = "i64"  # type of the indices: i32 or i64

    @property
    def vector(self) -> int:
        """Elements of a vector of 16 bytes."""
        return vector_width(self.element)

    @property
    def name(self) -> str:
        """Unique name of the kernel."""
        return f"embedding-{self.element}-{self.index}"


DEFAULT = EmbeddingConfig()


def _units(columns: Int, c: EmbeddingConfig) -> tuple[Int, Int, Int]:
    """Return the row of a thread, and the columns of its vector: the first one and that after the last one."""
    across = cute.ceil_div(columns, c.vector)
    unit = cute.arch.block_idx().x.to(cute.Int64) * _THREADS + cute.arch.thread_idx().x
    row = unit // across
    begin = (unit - row * across).to(cute.Int32) * c.vector
    return row, begin, cute.min(begin + c.vector, columns.to(cute.Int32))


def _grid(rows: Int, columns: Int, c: EmbeddingConfig) -> Int:
    """Return the number of blocks for one thread per vector."""
    return cute.ceil_div(rows * cute.ceil_div(columns, c.vector), _THREADS)


def _gathered(indices: cute.Tensor, table: cute.Tensor, out: cute.Tensor, c: EmbeddingConfig, w: int) -> None:
    row, begin, end = _units(out.shape[1], c)
    if row < out.shape[0]:
        index = indices[row]
        is_valid = (index >= 0) & (index < table.shape[0])
        for column in range(begin, end, w):
            held = cute.make_rmem_tensor(w, table.element_type)
            held.fill(float("nan"))
            if is_valid:
                cute.autovec_copy(vector_of(table, index, column, w), held)
            cute.autovec_copy(held, vector_of(out, row, column, w))


def _cleared(table: cute.Tensor, c: EmbeddingConfig, w: int) -> None:
    row, begin, end = _units(table.shape[1], c)
    if row < table.shape[0]:
        for column in range(begin, end, w):
            held = cute.make_rmem_tensor(w, table.element_type)
            held.fill(0)
            cute.autovec_copy(held, vector_of(table, row, column, w))


def _summed(
    dout: cute.Tensor, indices: cute.Tensor, links: cute.Tensor, table: cute.Tensor, c: EmbeddingConfig, w: int
) -> None:
    row, begin, end = _units(table.shape[1], c)
    if row < dout.shape[0]:
        link = links[row]
        if link >= 0:
            for column in range(begin, end, w):
                total, token, following = cute.full(w, 0.0, cute.Float32), row.to(cute.Int32), link
                while token < dout.shape[0]:
                    held = cute.make_rmem_tensor(w, dout.element_type)
                    cute.autovec_copy(vector_of(dout, token, column, w), held)
                    total = total + held.load().to(cute.Float32)
                    token = following
                    if token < dout.shape[0]:
                        following = -1 - links[token]
                made = cute.make_rmem_tensor(w, table.element_type)
                made.store(total.to(table.element_type))
                cute.autovec_copy(made, vector_of(table, indices[row], column, w))


@cute.kernel(name="gather_v")
def gather_by_vector(
    indices: cute.Tensor, table: cute.Tensor, out: cute.Tensor, config: cute.Constexpr[EmbeddingConfig]
):
    _gathered(indices, table, out, config, config.vector)


@cute.kernel(name="gather")
def gather_by_element(
    indices: cute.Tensor, table: cute.Tensor, out: cute.Tensor, config: cute.Constexpr[EmbeddingConfig]
):
    _gathered(indices, table, out, config, 1)


@cute.kernel(name="zero_v")
def zero_by_vector(table: cute.Tensor, config: cute.Constexpr[EmbeddingConfig]):
    _cleared(table, config, config.vector)


@cute.kernel(name="zero")
def zero_by_element(table: cute.Tensor, config: cute.Constexpr[EmbeddingConfig]):
    _cleared(table, config, 1)


@cute.kernel(name="embedding_gradient_v")
def sum_by_vector(
    dout: cute.Tensor,
    indices: cute.Tensor,
    links: cute.Tensor,
    table: cute.Tensor,
    config: cute.Constexpr[EmbeddingConfig],
):
    _summed(dout, indices, links, table, config, config.vector)


@cute.kernel(name="embedding_gradient")
def sum_by_element(
    dout: cute.Tensor,
    indices: cute.Tensor,
    links: cute.Tensor,
    table: cute.Tensor,
    config: cute.Constexpr[EmbeddingConfig],
):
    _summed(dout, indices, links, table, config, 1)


@cute.kernel
def link_tokens(indices: cute.Tensor, links: cute.Tensor, rows: cute.Int64, padding: cute.Int64):
    thread, count = cute.arch.thread_idx().x, cute.size(indices)
    token = cute.arch.block_idx().x * _THREADS + thread
    held = cute.smem_tensor(cute.Int32, cute.make_layout(_THREADS))
    own = cute.Int32(-1)
    if token < count:
        index = indices[token].to(cute.Int64)
        own = cute.where((index >= 0) & (index < rows) & (index != padding), index, -1).to(cute.Int32)
    following, is_first = cute.Int32(count), own >= 0
    for start in range(0, count, _THREADS):
        cute.arch.sync_threads()
        found = cute.Int32(-2)
        if start + thread < count:
            index = indices[start + thread].to(cute.Int64)
            found = cute.where((index >= 0) & (index < rows), index, -2).to(cute.Int32)
        held[thread] = found
        cute.arch.sync_threads()
        for i in range(_THREADS):
            is_equal = held[i] == own
            is_first = is_first & ~(is_equal & (start + i < token))
            following = cute.where(is_equal & (start + i > token), cute.min(following, start + i), following)
    if token < count:
        links[token] = cute.where(is_first, following, -1 - following)


@cute.jit
def launch(
    indices: cute.Tensor, table: cute.Tensor, out: cute.Tensor, config: cute.Constexpr[EmbeddingConfig] = DEFAULT
):
    """Launch a thread per vector of ``out``.

    Args:
        indices: (T,). An index outside of the table gives a row of NaN.
        table: (V, C).
        out: (T, C), the result.
    """
    c, grid = config, _grid(out.shape[0], out.shape[1], config)
    vtable, vout = cute.promise_vectors(table, c.vector), cute.promise_vectors(out, c.vector)
    gather_by_vector(indices, vtable, vout, c).launch(
        grid=grid, block=_THREADS, fallback=gather_by_element(indices, table, out, c)
    )


@cute.jit
def launch_zero(table: cute.Tensor, config: cute.Constexpr[EmbeddingConfig] = DEFAULT):
    """Fill a matrix with zeros."""
    c = config
    zero_by_vector(cute.promise_vectors(table, c.vector), c).launch(
        grid=_grid(table.shape[0], table.shape[1], c), block=_THREADS, fallback=zero_by_element(table, c)
    )


@cute.jit
def launch_links(indices: cute.Tensor, links: cute.Tensor, rows: cute.Int64, padding: cute.Int64):
    """Link the tokens of equal index.

    Args:
        indices: (T,).
        links: (T,), i32, the result.
        rows: Number of rows of the table.
        padding: Index without a gradient, or -1.
    """
    link_tokens(indices, links, rows, padding).launch(grid=cute.ceil_div(cute.size(links), _THREADS), block=_THREADS)


@cute.jit
def launch_gradient(
    dout: cute.Tensor,
    indices: cute.Tensor,
    links: cute.Tensor,
    table: cute.Tensor,
    config: cute.Constexpr[EmbeddingConfig] = DEFAULT,
):
    """Launch a thread per vector of ``dout``.

    Args:
        dout: (T, C), the gradient of the rows.
        indices: (T,).
        links: (T,), the result of :func:`launch_links`.
        table: (V, C), the gradient of the table, with zeros in rows of no token.
    """
    c, grid = config, _grid(dout.shape[0], dout.shape[1], config)
    vdout, vtable = cute.promise_vectors(dout, c.vector), cute.promise_vectors(table, c.vector)
    sum_by_vector(vdout, indices, links, vtable, c).launch(
        grid=grid, block=_THREADS, fallback=sum_by_element(dout, indices, links, table, c)
    )


_MATRIX = "(?,?):(?{i64},1)"


@printed
def gather_text(config: EmbeddingConfig | None = None) -> cute.Compiled:
    """Trace the kernels ``@gather_v`` and ``@gather``, and their host function ``@launch``."""
    c = config or DEFAULT
    matrix = cute.Tensor[number(c.element), _MATRIX]
    return cute.trace(launch, cute.Tensor[number(c.index), "?:1"], matrix, matrix, config=c)


@printed
def zero_text(config: EmbeddingConfig | None = None) -> cute.Compiled:
    """Trace the kernels ``@zero_v`` and ``@zero``, and their host function ``@launch_zero``."""
    c = config or DEFAULT
    return cute.trace(launch_zero, cute.Tensor[number(c.element), _MATRIX], config=c)


@printed
def links_text(config: EmbeddingConfig | None = None) -> cute.Compiled:
    """Trace the kernel ``@link_tokens`` and its host function ``@launch_links``."""
    indices = cute.Tensor[number((config or DEFAULT).index), "?:1"]
    return cute.trace(launch_links, indices, cute.Tensor[cute.Int32, "?:1"], cute.Int64, cute.Int64)


@printed
def gradient_text(config: EmbeddingConfig | None = None) -> cute.Compiled:
    """Trace the kernels ``@embedding_gradient_v`` and ``@embedding_gradient``, and their host function."""
    c = config or DEFAULT
    matrix, links = cute.Tensor[number(c.element), _MATRIX], cute.Tensor[cute.Int32, "?:1"]
    return cute.trace(launch_gradient, matrix, cute.Tensor[number(c.index), "?:1"], links, matrix, config=c)
