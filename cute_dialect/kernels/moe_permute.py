"""Kernels around a grouped product: rows that are no group's become zeros, the group of each row becomes where groups
begin and end, rows are brought in the order of their groups.

    zero_rest(out, ends)               # rows (or columns) behind the last end; of each matrix those behind its own
    bounds(row_groups, begins, ends)   # of sorted groups; -1 is none
    gather(rows, numbers, out)         # row numbers[i] is row i of what is multiplied
"""


# Traced values define operators and attributes that pyright cannot check.
# pyright: basic

from typing import Any, NamedTuple

import cute_dialect.lang as cute
from cute_dialect.kernels.gemm.elements import number
from cute_dialect.kernels.traced_text import printed

__all__ = ["BoundsConfig", "GatherConfig", "ZeroConfig", "bounds_text", "gather_text", "zero_text"]

_THREADS = 256
_WIDE = 1024


class ZeroConfig(NamedTuple):
    """What is zeroed: ``form``: ``m`` or ``n``, rows or columns of a matrix behind the last end; ``rows``: of each
    matrix of a batch; ``groups``: rows whose group is -1.  ``output``: the type of the elements.
    """

    output: str = "f16"
    form: str = "m"

    @property
    def name(self) -> str:
        """Names the kernel."""
        return f"zero-{self.output}-{self.form}"


class GatherConfig(NamedTuple):
    """Rows that are brought together; ``element``: what is copied at once, an integer of 8 to 32 bits."""

    element: str = "i32"

    @property
    def name(self) -> str:
        """Names the kernel."""
        return f"gather-{self.element}"


_DEFAULT = ZeroConfig()


class BoundsConfig(NamedTuple):
    """Where groups begin and end; there is one such kernel."""

    @property
    def name(self) -> str:
        """Names the kernel."""
        return "group-bounds"


@cute.kernel
def zero(C: cute.Tensor, ends: cute.Tensor, config: cute.Constexpr[Any]):
    """Set what is no group's to zero: a block some rows."""
    rows, columns, *matrices = C.shape
    thread, block, blocks = cute.arch.thread_idx().x, cute.arch.block_idx().x, cute.arch.grid_dim().x
    first_column = cute.Int32(0)
    if config.form == "n":
        first_column = cute.max(ends[cute.size(ends) - 1], 0)
    for row in range(block, rows, blocks):
        if matrices:
            for matrix in range(matrices[0]):
                if row >= ends[matrix]:
                    for column in range(thread, columns, _THREADS):
                        C[row, column, matrix] = C.element_type(0)
        else:
            free = cute.Boolean(True)
            if config.form == "m":
                free = row >= ends[cute.size(ends) - 1]
            elif config.form == "groups":
                free = ends[row] < 0
            if free:
                for column in range(first_column + thread, columns, _THREADS):
                    C[row, column] = C.element_type(0)


@cute.jit(name="launch")
def launch_zero(C: cute.Tensor, ends: cute.Tensor, config: cute.Constexpr[Any] = _DEFAULT):
    """Launch it."""
    zero(C, ends, config).launch(grid=cute.max(cute.min(C.shape[0], 1056), 1), block=_THREADS)


@printed
def zero_text(config: ZeroConfig) -> cute.Compiled:
    """Return the kernel and its host function ``@launch``: the matrix, and ends, lengths, or the group of each row."""
    layout = "(?,?,?):(?,1,?)" if config.form == "rows" else "(?,?):(?,1)"
    C = cute.Tensor[number(config.output), layout]
    return cute.trace(launch_zero, C, cute.Tensor[cute.Int32, "?:1"], config=config)


@cute.kernel
def bounds(row_groups: cute.Tensor, begins: cute.Tensor, ends: cute.Tensor):
    """Find where groups begin and end, by one block; those without rows begin and end at 0."""
    thread = cute.arch.thread_idx().x
    rows = cute.size(row_groups)
    groups = cute.size(ends)
    for group in range(thread, groups, _WIDE):
        begins[group] = 0
        ends[group] = 0
    cute.arch.sync_threads()
    for row in range(thread, rows, _WIDE):
        group = row_groups[row]
        before, after = row_groups[cute.max(row - 1, 0)], row_groups[cute.min(row + 1, rows - 1)]
        if (group >= 0) & (group < groups):
            if (row == 0) | (before != group):
                begins[group] = cute.Int32(row)
            if (row == rows - 1) | (after != group):
                ends[group] = cute.Int32(row + 1)


@cute.jit(name="launch")
def launch_bounds(row_groups: cute.Tensor, begins: cute.Tensor, ends: cute.Tensor):
    """Launch it."""
    bounds(row_groups, begins, ends).launch(grid=1, block=_WIDE)


@printed
def bounds_text(config: BoundsConfig) -> cute.Compiled:
    """Return the kernel and its host function ``@launch``: the group of each row, begins, ends."""
    numbers = cute.Tensor[cute.Int32, "?:1"]
    return cute.trace(launch_bounds, numbers, numbers, numbers)


@cute.kernel
def gather(X: cute.Tensor, numbers: cute.Tensor, Y: cute.Tensor):
    """Copy rows, a warp each; a number that is none counts as the nearest one."""
    lane, warps = cute.arch.lane_idx(), _THREADS // 32
    first = cute.arch.block_idx().x * warps + cute.arch.warp_idx()
    for row in range(first, Y.shape[0], cute.arch.grid_dim().x * warps):
        source = cute.min(cute.max(numbers[row], 0), X.shape[0] - 1)
        for column in range(lane, Y.shape[1], 32):
            Y[row, column] = X[source, column]


@cute.jit(name="launch")
def launch_gather(X: cute.Tensor, numbers: cute.Tensor, Y: cute.Tensor):
    """Launch it."""
    blocks = cute.ceil_div(Y.shape[0], _THREADS // 32)
    gather(X, numbers, Y).launch(grid=cute.max(cute.min(blocks, 1056), 1), block=_THREADS)


@printed
def gather_text(config: GatherConfig) -> cute.Compiled:
    """Return the kernel and its host function ``@launch``: rows, the number of each that is wanted, where to."""
    rows = cute.Tensor[number(config.element), "(?,?):(?,1)"]
    return cute.trace(launch_gather, rows, cute.Tensor[cute.Int32, "?:1"], rows)
