"""Helper kernels of a grouped GEMM: zero rows of no group, find group boundaries, gather rows in group order.

zero_rest(out, ends)               # zero rows (or columns) past the last end, or past each matrix's own end
bounds(row_groups, begins, ends)   # boundaries of sorted groups; -1 stands for no group
gather(rows, numbers, out)         # out[i] = rows[numbers[i]]
"""


# Traced values define operators and attributes that pyright cannot check.
# pyright: basic

from typing import Any, NamedTuple

import cute_dialect.lang as cute
from cute_dialect.kernels.common.elements import number
from cute_dialect.kernels.common.traced_text import printed

_THREADS = 256
_WIDE = 1024


class ZeroConfig(NamedTuple):
    """Configuration of the zeroing kernel."""

    output: str = "f16"  # element type
    # "m", "n": rows or columns of a matrix past the last end; "rows": rows of each matrix of a batch past its own end;
    # "groups": rows whose group is -1.
    form: str = "m"

    @property
    def name(self) -> str:
        """Name of the kernel."""
        return f"zero-{self.output}-{self.form}"


class GatherConfig(NamedTuple):
    """Configuration of the gather kernel. ``element`` is the word that is copied, an integer of 8 to 32 bits."""

    element: str = "i32"

    @property
    def name(self) -> str:
        """Name of the kernel."""
        return f"gather-{self.element}"


_DEFAULT = ZeroConfig()


class BoundsConfig(NamedTuple):
    """Configuration of the kernel for group boundaries, of which there is only one."""

    @property
    def name(self) -> str:
        """Name of the kernel."""
        return "group-bounds"


@cute.kernel
def zero(C: cute.Tensor, ends: cute.Tensor, config: cute.Constexpr[Any]):
    """Zero the elements of no group; each block processes some rows."""
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
    zero(C, ends, config).launch(grid=cute.max(cute.min(C.shape[0], 1056), 1), block=_THREADS)


@printed
def zero_text(config: ZeroConfig) -> cute.Compiled:
    """Trace the kernel and its host function ``@launch``, which takes the matrix and ends, lengths, or a group per
    row.
    """
    layout = "(?,?,?):(?,1,?)" if config.form == "rows" else "(?,?):(?,1)"
    C = cute.Tensor[number(config.output), layout]
    return cute.trace(launch_zero, C, cute.Tensor[cute.Int32, "?:1"], config=config)


@cute.kernel
def bounds(row_groups: cute.Tensor, begins: cute.Tensor, ends: cute.Tensor):
    """Find group boundaries, in one block. Groups without rows begin and end at 0."""
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
    bounds(row_groups, begins, ends).launch(grid=1, block=_WIDE)


@printed
def bounds_text(config: BoundsConfig) -> cute.Compiled:
    """Trace the kernel and its host function ``@launch(row_groups, begins, ends)``."""
    numbers = cute.Tensor[cute.Int32, "?:1"]
    return cute.trace(launch_bounds, numbers, numbers, numbers)


@cute.kernel
def gather(X: cute.Tensor, numbers: cute.Tensor, Y: cute.Tensor):
    """Copy rows, one per warp. Row numbers that are out of bounds are clamped."""
    lane, warps = cute.arch.lane_idx(), _THREADS // 32
    first = cute.arch.block_idx().x * warps + cute.arch.warp_idx()
    for row in range(first, Y.shape[0], cute.arch.grid_dim().x * warps):
        source = cute.min(cute.max(numbers[row], 0), X.shape[0] - 1)
        for column in range(lane, Y.shape[1], 32):
            Y[row, column] = X[source, column]


@cute.jit(name="launch")
def launch_gather(X: cute.Tensor, numbers: cute.Tensor, Y: cute.Tensor):
    blocks = cute.ceil_div(Y.shape[0], _THREADS // 32)
    gather(X, numbers, Y).launch(grid=cute.max(cute.min(blocks, 1056), 1), block=_THREADS)


@printed
def gather_text(config: GatherConfig) -> cute.Compiled:
    """Trace the kernel and its host function ``@launch(rows, numbers, out)``."""
    rows = cute.Tensor[number(config.element), "(?,?):(?,1)"]
    return cute.trace(launch_gather, rows, cute.Tensor[cute.Int32, "?:1"], rows)
