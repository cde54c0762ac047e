"""A step of AdamW for a list of parameters in one launch, in place.

A table in global memory holds the size of each parameter, and the offsets of the parameter, its gradient and its two
moments, in elements from one base address for each kind. A second table assigns to each block a parameter and a chunk
of it. A block reads the offsets, and updates up to :data:`CHUNK` elements in f32:

    p -= lr * weight_decay * p
    m += (1 - beta1) * (g - m)
    v  = beta2 * v + (1 - beta2) * g * g
    p -= lr / (1 - beta1^step) * m / (sqrt(v / (1 - beta2^step)) + eps)

    launch(params, grads, averages, squares, table, blocks, numbers, arrays)

>>> blocks_of([3, 5000]).tolist()
[[0, 0], [1, 0], [1, 1]]
"""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic, reportArgumentType=false, reportOptionalMemberAccess=false

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import cute_dialect.lang as cute
from cute_dialect.kernels.common.elements import BITS, number
from cute_dialect.kernels.common.traced_text import printed
from cute_dialect.lang.values.signature_types import Number, Value

if TYPE_CHECKING:  # pragma: no cover
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["CHUNK", "AdamwArrays", "AdamwConfig", "AdamwNumbers", "adamw_text", "blocks_of"]

CHUNK = 4096
"""Elements of a parameter that a block updates."""

_THREADS = 256

COLUMNS = ("count", "params", "grads", "averages", "squares")
"""Columns of the table: the number of elements, then offsets in elements."""


def blocks_of(counts: Sequence[int]) -> "NDArray[np.int32]":
    """Return the parameter and the chunk of each block, for parameters of ``counts`` elements."""
    import numpy as np

    chunks = np.array([-(-n // CHUNK) for n in counts], np.int64)
    parameters = np.repeat(np.arange(len(chunks)), chunks)
    starts = np.repeat(np.cumsum(chunks) - chunks, chunks)
    return np.stack([parameters, np.arange(len(parameters)) - starts], 1).astype(np.int32)


class AdamwConfig(NamedTuple):
    """Configuration of the kernel.

    >>> AdamwConfig().name, AdamwConfig("f32", "f32", vector=1, arrays=("step",)).name
    ('adamw-bf16-f32-8', 'adamw-f32-f32-1-step')
    """

    element: str = "bf16"  # of parameters and gradients
    state: str = "f32"  # of the moments
    vector: int = 8  # elements that a thread loads at once; 1 for any alignment
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
    """Load vectors from memory to registers, or store them, up to the end of the parameter.

    Args:
        vectors: An array in memory, the offset of its parameter, and the registers of each vector.
        i: Index of the first element in the parameter.
        count: Elements of the parameter. Those loaded from there on are 0.
    """
    w = cute.size(vectors[0][2])
    if cute.const_expr(w == 1):
        for t, base, held in vectors:
            _move_element(t, base + i, held, 0, store)
    elif i + w <= count:
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
    blocks: cute.Tensor,
    numbers: AdamwNumbers,
    arrays: AdamwArrays,
    config: cute.Constexpr[AdamwConfig],
):
    x, w = numbers, config.vector
    block = cute.arch.block_idx().x
    parameter, start = blocks[block, 0], blocks[block, 1].to(cute.Int64) * CHUNK
    count = table[parameter, 0] - start
    kinds = (params, grads, averages, squares)
    bases = [table[parameter, i + 1] + start for i in range(4)]
    lr = x.lr if arrays.lr is None else arrays.lr[0].to(cute.Float32)
    step = x.step if arrays.step is None else arrays.step[0].to(cute.Float32)
    size, root = lr / _rest(step * x.log1), cute.math.sqrt(_rest(step * x.log2))
    factor = x.sign if arrays.grad_scale is None else x.sign / arrays.grad_scale[0].to(cute.Float32)
    is_live = cute.Boolean(True) if arrays.found_inf is None else arrays.found_inf[0].to(cute.Float32) == 0.0
    for i in range(cute.arch.thread_idx().x * w, CHUNK, _THREADS * w):
        if is_live & (i < count):
            held = [cute.make_rmem_tensor(w, t.element_type) for t in kinds]
            vectors = list(zip(kinds, bases, held))
            _move(vectors, i, count)
            p, g, m, v = (t.load().to(cute.Float32) for t in held)
            g = g * factor
            p = p - p * (lr * x.decay)
            m = m + (g - m) * x.rest1
            v = v * x.beta2 + g * g * x.rest2
            p = p - m * size / (cute.math.sqrt(v) / root + x.eps)
            for to, value in ((held[0], p), (held[2], m), (held[3], v)):
                to.store(value.to(to.element_type))
            for changed in (vectors[0], *vectors[2:]):
                _move([changed], i, count, store=True)


@cute.jit
def launch(
    params: cute.Tensor,
    grads: cute.Tensor,
    averages: cute.Tensor,
    squares: cute.Tensor,
    table: cute.Tensor,
    blocks: cute.Tensor,
    numbers: AdamwNumbers,
    arrays: AdamwArrays,
    config: cute.Constexpr[AdamwConfig] = DEFAULT,
):
    """Launch a block per row of ``blocks``.

    Args:
        params, grads, averages, squares: The lowest addresses of the arrays of each kind, as vectors.
        table: (T, 5), i64; see :data:`COLUMNS`.
        blocks: (B, 2), i32: parameter and chunk.
        numbers, arrays: The settings.
    """
    adamw(params, grads, averages, squares, table, blocks, numbers, arrays, config).launch(
        grid=blocks.shape[0], block=_THREADS
    )


@printed
def adamw_text(config: AdamwConfig | None = None) -> cute.Compiled:
    """Trace the kernel ``@adamw`` and its host function ``@launch``."""
    c = config or DEFAULT

    def vector(element: str) -> Value:
        return cute.Tensor[number(element), "?:1", f"align<{min(16, c.vector * BITS[element] // 8)}>"]

    one = cute.Tensor[cute.Float32, "?:1"]
    arrays = AdamwArrays(*[one if name in c.arrays else None for name in AdamwArrays._fields])
    kinds = [vector(c.element), vector(c.element), vector(c.state), vector(c.state)]
    table, blocks = cute.Tensor[cute.Int64, "(?,5):(5,1)"], cute.Tensor[cute.Int32, "(?,2):(2,1)"]
    return cute.trace(launch, *kinds, table, blocks, AdamwNumbers(*[cute.Float32] * 10), arrays, config=c)
