"""Elementwise ``C = A + B`` over row-major matrices.

There are two kernels with one body: ``add`` for matrices of any alignment, and ``add_v`` for rows and pointers that
allow 128-bit accesses. Tiles within the matrix are copied without predicates; at the edge each value has one.

    launch(a, b, c)                                      # c = a + b
    launch(a, b, c, streaming_tile("f16"), False)        # one vector per thread, consecutive blocks along a row

>>> seed_tile("f32").layout_tv
((32,4),(4,4)):((64,4),(16,1))
"""

# Traced values define operators and element types that pyright cannot check.
# pyright: reportArgumentType=false, reportOperatorIssue=false, reportOptionalMemberAccess=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any, NamedTuple

import cute_dialect.lang as cute
from cute_dialect.kernels.common.traced_text import printed
from cute_dialect.lang.values.dtypes import type_of_mlir

BITS = {"f32": 32, "f16": 16, "bf16": 16}
"""Supported element types -> their bits."""


class Tile(NamedTuple):
    """Tile of a block: the (rows, columns) of its threads and of the values of a thread, both row-major."""

    threads: tuple[int, int] = (4, 32)
    values: tuple[int, int] = (4, 4)

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, columns) of the tile of a block."""
        return self.threads[0] * self.values[0], self.threads[1] * self.values[1]

    @property
    def layout_tv(self) -> Any:
        """(thread, value) -> column-major index in the tile."""
        threads, values = (cute.make_layout(x, order=(1, 0)) for x in self)
        return cute.make_layout_tv(threads, values)[1]


def seed_tile(element: str) -> Tile:
    """Return the tile with threads (4, 32) and values (4, 128 bits): 16 rows per block, four vectors per thread."""
    return Tile((4, 32), (4, 128 // BITS[element]))


def streaming_tile(element: str) -> Tile:
    """Return the tile with one vector per thread and one row per block, which has the highest bandwidth."""
    return Tile((1, 256), (1, 128 // BITS[element]))


def add_tile(mA: cute.Tensor, mB: cute.Tensor, mC: cute.Tensor, tile: Tile, rows_first: bool):
    """Add this block's tile of the matrices."""
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()

    # This block's tile of the matrices and of the coordinate tensor.
    gA, gB, gC = (cute.zipped_divide(m, tile.shape) for m in (mA, mB, mC))
    gX = cute.zipped_divide(cute.make_identity_tensor(mC.shape), tile.shape)
    _, along = gX.shape[1]
    where = block if rows_first else (block // along, block % along)
    bA, bB, bC, bX = (g[(None, None), where] for g in (gA, gB, gC, gX))

    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), mA.element_type)
    copy = cute.make_tiled_copy(atom, tile.layout_tv, tile.shape).get_slice(thread)
    tA, tB, tX = (copy.partition_S(b) for b in (bA, bB, bX))
    tC = copy.partition_D(bC)

    # If the last coordinate of the tile is in bounds, all are.
    m, n = tile.shape
    whole = cute.elem_less(bX[m - 1, n - 1], mC.shape)
    if whole:
        fA, fB, fC = (cute.make_fragment_like(t) for t in (tA, tB, tC))
        cute.copy(atom, tA, fA)
        cute.copy(atom, tB, fB)
        fC.store(fA.load() + fB.load())
        cute.copy(atom, fC, tC)
    elif tile.values[0] == 1:
        add_edge(atom, tA, tB, tC, tX, mC.shape)
    else:
        for row in range(tile.values[0]):
            at = ((None, (None, row)), None, None)
            add_edge(atom, tA[at], tB[at], tC[at], tX[at], mC.shape)


def add_edge(atom: cute.CopyAtom, tA: cute.Tensor, tB: cute.Tensor, tC: cute.Tensor, tX: cute.Tensor, shape: Any):
    """Add the elements that are in bounds; each value has a predicate."""
    inside = cute.make_fragment_like(tX, cute.Boolean)
    for i in range(cute.size(inside)):
        inside[i] = cute.elem_less(tX[i], shape)
    fA, fB, fC = (cute.make_fragment_like(t) for t in (tA, tB, tC))
    cute.copy(atom, tA, fA, pred=inside)
    cute.copy(atom, tB, fB, pred=inside)
    fC.store(fA.load() + fB.load())
    cute.copy(atom, fC, tC, pred=inside)


@cute.kernel
def add(
    mA: cute.Tensor, mB: cute.Tensor, mC: cute.Tensor, tile: cute.Constexpr[Tile], rows_first: cute.Constexpr[bool]
):
    """Add matrices of any alignment."""
    add_tile(mA, mB, mC, tile, rows_first)


@cute.kernel
def add_v(
    mA: cute.Tensor, mB: cute.Tensor, mC: cute.Tensor, tile: cute.Constexpr[Tile], rows_first: cute.Constexpr[bool]
):
    """Add matrices with 16-byte aligned rows."""
    add_tile(mA, mB, mC, tile, rows_first)


ROWS = "(?,?):(?,1)"


@cute.jit
def launch(
    mA: cute.Tensor[None, ROWS], mB: cute.Tensor[None, ROWS], mC: cute.Tensor[None, ROWS],
    tile: cute.Constexpr[Tile | None] = None, rows_first: cute.Constexpr[bool] = True,
):  # fmt: skip
    """Launch one block per tile, with vector accesses if the matrices allow it.

    With ``rows_first``, consecutive blocks go down the rows (the order of the divided tensor's modes), otherwise along
    them.
    """
    assert mA.shape == mC.shape, "A and C must have the same shape"
    assert mB.shape == mC.shape, "B and C must have the same shape"
    vector = 128 // mC.element_type.width
    tile = Tile((4, 32), (4, vector)) if tile is None else tile
    aligned = [cute.promise(m, f"(?,?):(?{{div={vector}}},1)", align=16) for m in (mA, mB, mC)]
    add_v(*aligned, tile, rows_first).launch(
        grid=cute.size(cute.zipped_divide(mC, tile.shape), mode=[1]), block=cute.size(tile.threads),
        fallback=add(mA, mB, mC, tile, rows_first),
    )  # fmt: skip


@printed
def elementwise_add_text(element: str = "f32", tile: Tile | None = None, *, rows_first: bool = True) -> cute.Compiled:
    """Trace the kernels and the host function.

    Raises:
        ValueError: if the element type is not in :data:`BITS`.
    """
    if element not in BITS:
        raise ValueError(f"elementwise_add: element type '{element}' is not supported; use one of {', '.join(BITS)}")
    matrix: Any = cute.Tensor[type_of_mlir(element), ROWS]
    return cute.trace(launch, matrix, matrix, matrix, tile, rows_first)
