"""Choice of the kernel of an all-reduce: one-shot or two-shot, rows, and blocks.

>>> choose_all_reduce(AllReduceProblem("bf16", 8, 1 << 16))[1:]
(4096, 16, 'one-shot: 131,072 bytes are at most 262,144 bytes for 8 ranks')
>>> choose_all_reduce(AllReduceProblem("bf16", 8, 1 << 20))[1:]
(4096, 32, 'two-shot: 2,097,152 bytes are more than 262,144 bytes for 8 ranks')
"""

from __future__ import annotations

from typing import NamedTuple

from cute_dialect.kernels.common.elements import BITS, vector_width
from cute_dialect.kernels.distributed.all_reduce import AllReduceConfig

ONE_SHOT_BYTES = {1: 1 << 62, 2: 1 << 20, 4: 512 << 10, 8: 256 << 10, 32: 128 << 10}
"""Largest number of ranks -> bytes of a vector up to which one-shot is chosen. The bounds are not measured.

One-shot sends (ranks - 1) times the vector in one step, two-shot twice the vector in two steps.
"""

BLOCKS, BLOCKS_ON_CPU = 64, 2
"""Channels, the largest number of blocks. On the interpreter there are few, each with several rows."""

SLOT_BYTES = 32 << 10
"""Bytes of a slot of the staging memory on GPUs, the longest row."""

_THREADS, _THREADS_ON_CPU = 512, 64
_UNITS = 2
"""Vectors of a row per thread, without a norm."""


class AllReduceProblem(NamedTuple):
    """An all-reduce, without its arrays."""

    element: str
    ranks: int
    size: int  # elements of the vector
    columns: int = 0  # length of a row of the norm, 0 without a norm
    residual: bool = False
    vectors: bool = True  # arrays begin at multiples of 16 bytes


class AllReduceChoice(NamedTuple):
    """The kernel of an all-reduce, the length of its rows, its number of blocks, and the reason for the algorithm.

    All but ``config.vectors`` and ``config.units`` are equal on all ranks, whose arrays may be aligned differently.
    """

    config: AllReduceConfig
    length: int
    blocks: int
    why: str


def longest_row(element: str) -> int:
    """Return the longest row of a norm that a slot of the staging memory holds on a GPU.

    >>> longest_row("bf16"), longest_row("f32")
    (16384, 8192)
    """
    return SLOT_BYTES * 8 // BITS[element]


def choose_all_reduce(
    p: AllReduceProblem, *, cpu: bool = False, channels: int = BLOCKS, shares_gpu: bool = False
) -> AllReduceChoice:
    """Return the kernel of an all-reduce.

    Args:
        cpu: on the interpreter.
        channels: the largest number of blocks on GPUs.
        shares_gpu: several ranks have one GPU.
    """
    size = p.size * BITS[p.element] // 8
    limit = next((b for most, b in ONE_SHOT_BYTES.items() if p.ranks <= most), 0)
    two_shot = size > limit
    why = f"{'two' if two_shot else 'one'}-shot: {size:,} bytes are {'more than' if two_shot else 'at most'} "
    why += f"{limit:,} bytes for {p.ranks} ranks" if p.ranks > 1 else "any limit for 1 rank"
    most, threads = (BLOCKS_ON_CPU, _THREADS_ON_CPU) if cpu else (channels, _THREADS)
    unit, rows_of_block = vector_width(p.element), p.ranks if two_shot else 1
    length = p.columns
    if not length:  # A row per block and rank, of one vector per thread at least.
        shared = -(-p.size // (most * rows_of_block * unit)) * unit
        length = min(max(shared, threads * unit), threads * unit * _UNITS)
    vectors = p.vectors and p.columns % unit == 0
    units = -(-length // (threads * (unit if vectors else 1)))
    config = AllReduceConfig(
        p.element, p.ranks, threads, units, two_shot, vectors, p.residual, bool(p.columns), cooperative=not shares_gpu
    )
    rows = -(-p.size // length)
    return AllReduceChoice(config, length, min(most, -(-rows // rows_of_block)), why)
