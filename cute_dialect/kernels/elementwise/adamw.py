"""A step of AdamW for a list of parameters in one launch, in place.

A table in global memory has a row for each block: the number of elements that it updates, and the offsets of its first
element in the parameters, the gradients and the two moments, from one base address for each kind. A block updates its
elements in f32:

    p -= lr * weight_decay * p
    m += (1 - beta1) * (g - m)
    v  = beta2 * v + (1 - beta2) * g * g
    p -= lr / (1 - beta1^step) * m / (sqrt(v / (1 - beta2^step)) + eps)

    launch(params, grads, averages, squares, table, numbers, arrays)

>>> table_of([3, 5], [[0] * 4, [16] * 4], chunk=4).tolist()
[[3, 0, 0, 0, 0], [4, 16, 16, 16, 16], [1, 20, 20, 20, 20]]
"""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic, reportArgumentType=false, reportOptionalMemberAccess=false, reportOptionalSubscript=false

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import cute_dialect.lang as cute
from cute_dialect.kernels.common.elements import BITS, number
from cute_dialect.kernels.common.traced_text import printed
from cute_dialect.lang.values.signature_types import Number, Value

if TYPE_CHECKING:  # pragma: no cover
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["CHUNK", "AdamwArrays", "AdamwConfig", "AdamwNumbers", "adamw_text", "table_of"]

CHUNK = 4096
"""Elements that a block updates. Larger chunks were slower on an H200."""

_THREADS, _VECTORS = 256, 2
"""Threads of a block, and the vectors of each array that a thread loads before it computes the first of them."""


def table_of(
    counts: Sequence[int], offsets: "Sequence[Sequence[int]] | NDArray[np.int64]", chunk: int = CHUNK
) -> "NDArray[np.int64]":
    """Return the table: the elements of each block, and its four offsets.

    Args:
        counts: Elements of each parameter.
        offsets: Offsets of each parameter, its gradient and its moments, in elements.
        chunk: Elements of a block, a multiple of the vector.
    """
    import numpy as np

    sizes = np.array(counts, np.int64)
    chunks = -(-sizes // chunk)
    parameters = np.repeat(np.arange(len(sizes)), chunks)
    starts = (np.arange(len(parameters)) - np.repeat(np.cumsum(chunks) - chunks, chunks)) * chunk
    table = np.zeros((len(parameters), 5), np.int64)
    table[:, 0] = np.minimum(sizes[parameters] - starts, chunk)
    table[:, 1:] = np.array(offsets, np.int64).reshape(-1, 4)[parameters] + starts[:, None]
    return table


class AdamwConfig(NamedTuple):
    """Configuration of the kernel.

    >>> AdamwConfig().name, AdamwConfig("f32", "f32", vector=1, arrays=("step",)).name
    ('adamw-bf16-f32-4', 'adamw-f32-f32-1-step')
    """

    element: str = "bf16"  # of parameters and gradients
    state: str = "f32"  # of the moments
    vector: int = 4  # elements of each array that a thread loads at once; 1 for any alignment
    arrays: tuple[str, ...] = ()  # fields of AdamwArrays that are given

    @property
    def name(self) -> str:
        """Unique name of the kernel."""
        return "-".join(["adamw", self.element, self.state, str(self.vector), *self.arrays])


class AdamwNumbers(NamedTuple):
    """Factors, which are computed in double precision."""

    lr: cute.Float32
    decay: cute.Float32  # weight_decay
    beta2: cute.Float32
    rest1: cute.Float32  # 1 - beta1
    rest2: cute.Float32  # 1 - beta2
    log1: cute.Float32  # logarithm of beta1
    log2: cute.Float32
    eps: cute.Float32
    step: cute.Float32
    sign: cute.Float32  # of the gradients; -1 to maximize


class AdamwArrays(NamedTuple):
    """Arrays of one element in place of numbers, or None."""

    lr: cute.Tensor | None = None
    step: cute.Tensor | None = None
    grad_scale: cute.Tensor | None = None  # divides the gradients
    found_inf: cute.Tensor | None = None  # if not 0, nothing changes


DEFAULT = AdamwConfig()


def _rest(y: Number) -> cute.Float32:
    """Return ``1 - exp(y)`` for ``y < 0``, exact to a few roundings also near 0."""
    series = cute.Float32(1.0)
    for i in range(12, 1, -1):
        series = 1.0 + y * series * (1.0 / i)
    return cute.where(y > -1.0, 0.0 - y * series, 1.0 - cute.math.exp(y))


def _part(t: cute.Tensor, offset: Value, count: int) -> cute.Tensor:
    """Return consecutive elements, which are aligned."""
    at = t.iterator + offset
    return cute.make_tensor(at.align(min(16, count * t.element_type.width // 8)), cute.make_layout(count))


def _move(
    vectors: Sequence[tuple[cute.Tensor, Value, cute.Tensor]], i: Value, count: Value, store: bool = False
) -> None:
    """Load vectors from memory to registers, or store them, up to the end of the block's elements.

    Args:
        vectors: An array in memory, the offset of the block's elements, and the registers of each vector.
        i: Index of the first element among those of the block.
        count: Elements of the block. Those loaded from there on are 0.
    """
    w = cute.size(vectors[0][2])
    if i + w <= count:
        for t, base, held in vectors:
            whole = _part(t, base + i, w)
            cute.autovec_copy(*((held, whole) if store else (whole, held)))
    else:
        for t, base, held in vectors:
            for j in cute.range_constexpr(w):
                if i + j < count:
                    _move_element(t, base + i + j, held, j, store)
                elif not store:
                    held[j] = t.element_type(0)


def _move_element(t: cute.Tensor, offset: Value, held: cute.Tensor, j: int, store: bool) -> None:
    element = _part(t, offset, 1)
    if store:
        element[0] = held[j]
    else:
        held[j] = element[0]


@cute.kernel
def adamw(
    params: cute.Tensor,
    grads: cute.Tensor,
    averages: cute.Tensor,
    squares: cute.Tensor,
    table: cute.Tensor,
    numbers: AdamwNumbers,
    arrays: AdamwArrays,
    config: cute.Constexpr[AdamwConfig],
):
    x, w = numbers, config.vector
    block = cute.arch.block_idx().x
    kinds = (params, grads, averages, squares)
    count, *bases = (table[block, i] for i in range(5))
    count = count.to(cute.Int32)
    lr = x.lr if arrays.lr is None else arrays.lr[0].to(cute.Float32)
    step = x.step if arrays.step is None else arrays.step[0].to(cute.Float32)
    size, root = lr / _rest(step * x.log1), 1.0 / cute.math.sqrt(_rest(step * x.log2))
    factor = x.sign if arrays.grad_scale is None else x.sign / arrays.grad_scale[0].to(cute.Float32)
    if cute.const_expr(arrays.found_inf is not None):
        count = count if arrays.found_inf[0].to(cute.Float32) == 0.0 else cute.Int32(0)
    for i in range(cute.arch.thread_idx().x * w, count, _THREADS * _VECTORS * w):
        loaded = []
        for n in cute.range_constexpr(_VECTORS):
            held = [cute.make_rmem_tensor(w, t.element_type) for t in kinds]
            loaded.append(list(zip(kinds, bases, held)))
            _move(loaded[n], i + n * (_THREADS * w), count)
        for n, vectors in enumerate(loaded):
            held = [vector for _, _, vector in vectors]
            p, g, m, v = (t.load().to(cute.Float32) for t in held)
            g = g * factor
            p = p - p * (lr * x.decay)
            m = m + (g - m) * x.rest1
            v = v * x.beta2 + g * g * x.rest2
            # A rounded quotient would take most of the instructions.
            p = p - m * size * cute.math.rcp(cute.math.sqrt(v) * root + x.eps, fastmath=True)
            for to, value in ((held[0], p), (held[2], m), (held[3], v)):
                to.store(value.to(to.element_type))
            for changed in (vectors[0], *vectors[2:]):
                _move([changed], i + n * (_THREADS * w), count, store=True)


@cute.jit
def launch(
    params: cute.Tensor,
    grads: cute.Tensor,
    averages: cute.Tensor,
    squares: cute.Tensor,
    table: cute.Tensor,
    numbers: AdamwNumbers,
    arrays: AdamwArrays,
    config: cute.Constexpr[AdamwConfig] = DEFAULT,
):
    """Launch a block per row of ``table``.

    Args:
        params, grads, averages, squares: The lowest addresses of the arrays of each kind, as vectors.
        table: (B, 5), i64; see :func:`table_of`.
        numbers, arrays: The settings.
    """
    adamw(params, grads, averages, squares, table, numbers, arrays, config).launch(grid=table.shape[0], block=_THREADS)


@printed
def adamw_text(config: AdamwConfig | None = None) -> cute.Compiled:
    """Trace the kernel ``@adamw`` and its host function ``@launch``."""
    c = config or DEFAULT

    def vector(element: str) -> Value:
        return cute.Tensor[number(element), "?:1", f"align<{min(16, c.vector * BITS[element] // 8)}>"]

    one = cute.Tensor[cute.Float32, "?:1"]
    arrays = AdamwArrays(*[one if name in c.arrays else None for name in AdamwArrays._fields])
    kinds = [vector(c.element), vector(c.element), vector(c.state), vector(c.state)]
    table = cute.Tensor[cute.Int64, "(?,5):(5,1)"]
    return cute.trace(launch, *kinds, table, AdamwNumbers(*[cute.Float32] * 10), arrays, config=c)
