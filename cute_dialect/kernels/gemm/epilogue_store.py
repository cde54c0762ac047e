"""Output path of a Hopper GEMM: epilogue, conversion, shared memory, TMA store.

The accumulator has the ``wgmma`` layout, in which each warp owns 16 rows. It is stored in *chunks* of columns through
staging buffers of 8 KiB. For a row-major C each warp stores its own 16 rows (:class:`RowStore`). For a column-major C
the warpgroup stores 64 elements of each column (:class:`ColumnStore`).
"""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic, reportOptionalMemberAccess=false

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias

import cute_dialect.lang as cute
from cute_dialect.kernels.common.elements import number, rounded
from cute_dialect.kernels.epilogue.emit import Fused, Leaving
from cute_dialect.kernels.epilogue.fragment_layout import Lanes, lanes_of
from cute_dialect.kernels.epilogue.graph import parts_of
from cute_dialect.kernels.gemm.config import GemmConfig
from cute_dialect.kernels.gemm.mainloop import Place
from cute_dialect.lang.nvgpu import cpasync

BUFFER = 8192
"""Bytes of a staging buffer: 64 rows of 128 bytes."""

Stores: TypeAlias = Mapping[int, Any]
"""TMA atom and coordinate tensor per chunk width; None for stores without TMA."""

_BARRIER = 4
"""The first of three named barriers, one per consumer, around the store of whole columns."""


def swizzle_of(bytes: int) -> Any:
    """Return the shared-memory swizzle of rows of 32, 64 or 128 bytes, common to TMA and the stores of a warp."""
    return cute.make_swizzle({128: 3, 64: 2, 32: 1}[bytes], 4, 3)


def order_of_digits(split: str) -> list[int]:
    """Return the order of modes in which a reshaped result is stored: one of rows, one of columns, then all others.

    >>> order_of_digits("?,?/64,?/")
    [0, 2, 1, 3]
    """
    rows, columns, matrices = (len(part) for part in parts_of(split))
    return [0, rows, *range(1, rows), *range(rows + 1, rows + columns + matrices)]


def place_of_digits(split: str, extents: Any, at: Any) -> tuple[Any, ...]:
    """Return the coordinates of an element of a reshaped result, in the order of :func:`order_of_digits`.

    Args:
        split: The modes of the reshaped result.
        extents: Their extents, in that order.
        at: Row, column and matrix.
    """
    order = order_of_digits(split)
    flat: list[Any] = [None] * len(order)
    first = 0
    for place, part in zip(at, parts_of(split)):
        rest = place
        for i in range(len(part)):
            last = i == len(part) - 1
            extent = None if last else extents[order.index(first + i)]
            flat[first + i] = rest if last else rest % extent
            rest = rest if last else rest // extent
        first += len(part)
    return tuple([flat[i] for i in order])


class ChunkStore:
    """Store of a chunk of a warp: 16 rows of some columns, from registers through shared memory to C by TMA.

    With ``transposed``, columns are contiguous in C.
    """

    def __init__(self, tma: Any, chunk: int, *, transposed: bool = False, lanes: Lanes | None = None):
        self.atom, self.coords = tma
        self.split = ""
        self.lane, self.chunk = cute.arch.lane_idx(), chunk
        self.lanes = lanes = lanes or lanes_of(0)
        kind = self.atom.value_type
        if kind.width == 16:
            store = cute.make_copy_atom(cute.nvgpu.warp.StMatrix8x8x16bOp(transposed, 4), kind)
        else:  # two adjacent elements at once, for bytes and words
            pair = 2 * kind.width if kind.width == 8 else None
            store = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), kind, num_bits_per_copy=pair)
        # A warp's part of an accumulator: 16 rows of a chunk, or of 16 columns.
        strides = ((32, lanes.staged), (16, lanes.staged_half, 128))

        def tiled(columns: int) -> tuple[Any, Any]:
            thread_values = cute.make_layout(((4, lanes.shape), (2, 2, columns // 8)), stride=strides)
            values = cute.make_layout(((2, 2, columns // 8), 1, 1), stride=((1, 2, 4), 0, 0))
            return cute.make_tiled_copy(store, thread_values, (16, columns)).get_slice(self.lane), values

        self.copy, self.values = tiled(chunk)
        self.sixteen: Any
        self.sixteen, self.sixteen_values = tiled(16) if kind.width == 16 else (None, None)

    def registers(self, values: Any, first: int) -> Any:
        """Return the registers of a chunk, from register ``first`` on."""
        return cute.make_tensor(values.iterator + first, self.values)

    def store(self, values: Any, here: Any, there: Any, leave: Any = None) -> None:
        """Store the registers of a chunk through a staging buffer.

        Args:
            values: The registers.
            here: The staging buffer.
            there: Returns the coordinates in C of the warp's first element.
            leave: Stores the buffer in place of TMA.
        """
        cute.copy(self.copy, self.copy.retile(values), self.copy.partition_D(here))
        cute.arch.fence_proxy("async.shared", space="cta")
        cute.arch.sync_warp()
        if leave is not None:
            leave(self, here)
        elif self.lane == 0:
            self.by_tma(here, there())

    def by_tma(self, here: Any, at: tuple[Any, ...]) -> None:
        """Issue the TMA store of a staging buffer, in one thread."""
        row, *others = at
        rows = 16 // len(self.lanes.boxes)
        for i, first in enumerate(self.lanes.boxes):
            box = here if rows == 16 else cute.flat_divide(here, (rows, self.chunk))[None, None, i, 0]
            place = (row + first, *others)
            place = place_of_digits(self.split, self.coords.shape, place) if self.split else place
            _leave(self.atom, self.coords, box, (rows, self.chunk), place)
        cute.arch.cp_async_bulk_commit_group()

    def storing(self) -> Any:
        """Return True in the thread that issues the stores."""
        return self.lane == 0

    def wait(self, under_way: int) -> None:
        """Wait until at most ``under_way`` stores still read their buffers."""
        if self.storing():
            cute.arch.cp_async_bulk_wait_group(under_way, read=True)


def _leave(atom: Any, coords: Any, here: Any, box: tuple[int, int], at: tuple[Any, ...]) -> None:
    """Issue the TMA store of a box of shared memory, in one thread."""
    tiles = cute.flat_divide(cute.domain_offset(at, coords), box)
    first = (None, None, *(0,) * (cute.rank(tiles) - 2))
    source, target = cpasync.tma_partition(
        atom, 0, cute.make_layout(1), cute.group_modes(here, 0, 2), cute.group_modes(tiles[first], 0, 2)
    )
    cute.copy(atom, source, target)


class RowStore(ChunkStore):
    """Store for a row-major C: each warp stores 16 rows of a chunk.

    ``memory`` holds ``buffers`` staging buffers. With ``anew``, the addresses of a thread's elements are recomputed for
    each tile, because no registers are left to hold them.
    """

    def __init__(self, tma: Any, width: int, memory: Any, buffers: int, group: Any, lanes: Lanes):
        super().__init__(tma, width, lanes=lanes)
        self.anew = False
        kind, self.warp = self.atom.value_type, cute.arch.warp_idx() % 4
        start, size = cute.recast_ptr(memory, swizzle_of(width * kind.width // 8), kind), BUFFER * 8 // kind.width
        self.staged = cute.make_tensor(
            start, cute.make_layout((16, width, 4, buffers), stride=(width, 1, size // 4, size))
        )

    def put(self, values: Any, buffer: Any, at: tuple[Any, ...], under_way: int, leave: Any = None) -> None:
        """Store the registers of a chunk, once at most ``under_way`` stores still read their buffers.

        ``at`` is the coordinate in C of the warpgroup's first element. For ``leave`` see :meth:`store`.
        """
        here = self.begin(buffer, at, under_way)
        row, *others = at
        self.store(values, here, lambda: (row + self.lanes.of_warp(self.warp), *others), leave)

    def begin(self, buffer: Any, at: tuple[Any, ...], under_way: int) -> Any:
        """Wait until at most ``under_way`` stores still read their buffers, and return the warp's part of a buffer."""
        self.wait(under_way)
        cute.arch.sync_warp()
        # 0 for every tile, since rows are below 2^31, but ptxas does not know it and cannot hoist the addresses
        if self.anew:
            buffer = buffer + (at[0] >> 31)
        return self.staged[None, None, self.warp, buffer]

    def stage(self, values: Any, here: Any, i: Any) -> None:
        """Write the registers of the ``i``-th 16 columns to a staging buffer."""
        values = cute.make_tensor(values.iterator, self.sixteen_values)
        part = cute.flat_divide(here, (16, 16))[None, None, 0, i]
        cute.copy(self.sixteen, self.sixteen.retile(values), self.sixteen.partition_D(part))

    def end(self, here: Any, at: tuple[Any, ...]) -> None:
        """Issue the TMA store of a staging buffer that :meth:`stage` filled."""
        row, *others = at
        cute.arch.fence_proxy("async.shared", space="cta")
        cute.arch.sync_warp()
        if self.lane == 0:
            self.by_tma(here, (row + self.lanes.of_warp(self.warp), *others))


class ColumnStore(ChunkStore):
    """Store for a column-major C: the warpgroup stores 64 elements of each column.

    ``group`` is the index of the warpgroup. The other arguments are those of :class:`RowStore`.
    """

    def __init__(self, tma: Any, width: int, memory: Any, buffers: int, group: Any, lanes: Lanes):
        super().__init__(tma, width, transposed=True, lanes=lanes)
        self.barrier, self.warp = _BARRIER + group, cute.arch.warp_idx() % 4
        self.leads = cute.arch.thread_idx().x % 128 == 0
        kind = self.atom.value_type
        self.lines = lines = 1024 // kind.width  # elements of 128 bytes
        start, size = cute.recast_ptr(memory, swizzle_of(128), kind), BUFFER * 8 // kind.width
        rows: Any = (64, 1) if lines == 64 else ((lines, 64 // lines), (1, size * lines // 64))
        layout = cute.make_layout((rows[0], width, buffers), stride=(rows[1], lines, size))
        self.staged = cute.make_tensor(start, layout)
        if lanes.paired:  # two adjacent elements of a column at once; all four warps form one copy
            store = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), kind, num_bits_per_copy=2 * kind.width)
            threads, along = (4, lanes.shape, lanes.warps[0]), (128, lanes.rows, lanes.warps[1])
            thread_values = cute.make_layout((threads, (2, 2, width // 8)), stride=(along, (1, 64, 512)))
            self.columns = cute.make_tiled_copy(store, thread_values, (64, width)).get_slice(
                cute.arch.thread_idx().x % 128
            )

    def storing(self) -> Any:
        """Return True in the thread that issues the stores."""
        return self.leads

    def put(self, values: Any, buffer: Any, at: tuple[Any, ...], under_way: int, leave: Any = None) -> None:
        """Store the registers of a chunk; see :meth:`RowStore.put`."""
        self.wait(under_way)
        cute.arch.barrier(self.barrier, 128)
        whole = self.staged[None, None, buffer]
        if self.lanes.paired:
            cute.copy(self.columns, self._paired(values), self.columns.partition_D(whole))
        else:
            here = cute.flat_divide(whole, (16, self.chunk))[None, None, self.warp, 0]
            cute.copy(self.copy, self.copy.retile(values), self.copy.partition_D(here))
        cute.arch.fence_proxy("async.shared", space="cta")
        cute.arch.barrier(self.barrier, 128)
        if leave is not None:
            leave(self, whole)
        elif self.leads:
            self.by_tma(whole, at)

    def begin(self, buffer: Any, at: tuple[Any, ...], under_way: int) -> Any:
        """Wait until at most ``under_way`` stores still read their buffers, and return a buffer."""
        self.wait(under_way)
        cute.arch.barrier(self.barrier, 128)
        return self.staged[None, None, buffer]

    def stage(self, values: Any, here: Any, i: Any) -> None:
        """Write the registers of the ``i``-th 16 columns to a staging buffer."""
        values = cute.make_tensor(values.iterator, self.sixteen_values)
        part = cute.flat_divide(here, (16, 16))[None, None, self.warp, i]
        cute.copy(self.sixteen, self.sixteen.retile(values), self.sixteen.partition_D(part))

    def end(self, here: Any, at: tuple[Any, ...]) -> None:
        """Issue the TMA store of a staging buffer that :meth:`stage` filled."""
        cute.arch.fence_proxy("async.shared", space="cta")
        cute.arch.barrier(self.barrier, 128)
        if self.leads:
            self.by_tma(here, at)

    def by_tma(self, here: Any, at: tuple[Any, ...]) -> None:
        """Issue the TMA stores of a staging buffer, in one thread."""
        row, *others = at
        for i in range(64 // self.lines):
            box = cute.flat_divide(here, (self.lines, self.chunk))[None, None, i, 0] if self.lines < 64 else here
            _leave(self.atom, self.coords, box, (self.lines, self.chunk), (row + self.lines * i, *others))
        cute.arch.cp_async_bulk_commit_group()

    def _paired(self, values: Any) -> Any:
        """Return the registers of a chunk with the two rows of each column adjacent."""
        found = cute.make_rmem_tensor(self.values, self.atom.value_type)
        for j in cute.range_constexpr(self.chunk // 8):
            for column in cute.range_constexpr(2):
                for half in cute.range_constexpr(2):
                    found[j * 4 + (column * 2 + half)] = values[j * 4 + (half * 2 + column)]
        return found


class DirectStore:
    """Store element by element, for a C that TMA cannot write. The methods are those of :class:`RowStore`."""

    def __init__(self, target: Any, width: int, lanes: Lanes):
        self.target, self.width, self.lanes = target, width, lanes
        self.lane, self.warp = cute.arch.lane_idx(), cute.arch.warp_idx() % 4
        self.values = cute.make_layout((2, 2, width // 8), stride=(1, 2, 4))

    def registers(self, values: Any, first: int) -> Any:
        """Return the registers of a chunk, from register ``first`` on."""
        return cute.make_tensor(values.iterator + first, self.values)

    def put(self, values: Any, buffer: Any, at: tuple[Any, ...], under_way: int) -> None:
        """Store the registers of a chunk; see :meth:`RowStore.put`."""
        row, column, *matrix = at
        c = self.target[None, None, matrix[0]] if matrix else self.target
        rows, columns = cute.size(c, mode=[0]), cute.size(c, mode=[1])
        first = column + self.lane % 4 * 2
        for half in cute.range_constexpr(2):
            place = row + self.lanes.row(self.lane, half, self.warp)
            if place < rows:
                line = c[place, None]
                for j in cute.range_constexpr(self.width // 8):
                    for i in cute.range_constexpr(2):
                        if first + (8 * j + i) < columns:
                            line[first + (8 * j + i)] = values[4 * j + (2 * half + i)]

    def wait(self, under_way: int) -> None:
        """Do nothing: no buffers are in use."""


class Staging:
    """Epilogue of a warpgroup's rows, and their store through staging buffers. Subclasses have the accumulator.

    Args:
        c: The configuration.
        tmas: TMA atom and coordinate tensor per chunk width.
        memory: The staging buffers of all warpgroups.
        group: Index of the warpgroup.
        fused: The epilogue.
        target: C, for stores without TMA.
        ``beside``: TMA atom and coordinate tensor of extra outputs stored like C, by output index and chunk width. Each
            chunk is stored while the epilogue is applied, and the outputs alternate between the same buffers.
    """

    def __init__(
        self,
        c: GemmConfig,
        tmas: Stores,
        memory: cute.Pointer,
        group: cute.Int32 | int,
        fused: Fused,
        target: cute.Tensor | None = None,
        beside: Mapping[int, Stores] = MappingProxyType({}),
    ):
        self.c, self.fused, self.group = c, fused, group
        staged = c.buffers * c.consumers
        kind = RowStore if c.major_c == "n" else ColumnStore
        self.beside = {
            n: {w: kind(tma, w, memory, staged, group, self.lanes) for w, tma in tmas.items()}
            for n, tmas in beside.items()
        }
        self.stores = {
            w: DirectStore(target, w, self.lanes) if c.direct else kind(tma, w, memory, staged, group, self.lanes)
            for w, tma in tmas.items()
        }
        if c.epilogue.whole_rows or self.beside:
            for store in (x for of in (self.stores, *self.beside.values()) for x in of.values()):
                if isinstance(store, RowStore):
                    store.anew = True
        if c.epilogue.split:
            for store in self.stores.values():
                if isinstance(store, ChunkStore):
                    store.split = c.epilogue.split
        self.kind = number(c.output)
        self.wide = self.kind.width == 32
        self.twice = c.tile[1] // c.columns

    @property
    def lanes(self) -> Lanes:
        """Mapping of lanes to rows."""
        return self.c.lanes

    @property
    def atoms(self) -> int:
        """Number of MMAs that cover the rows."""
        return self.c.atoms

    @property
    def chunks(self) -> int:
        """Number of chunks of a tile, for the rows of one MMA."""
        return len(self.c.widths)

    @property
    def by_chunks(self) -> bool:
        """Return True if the epilogue is applied to each chunk just before it is stored."""
        return self.c.epilogue.active and not self.c.epilogue.whole_tiles

    def row(self, place: Place, atom: int) -> Any:
        """Return the first row of an MMA's 64 rows in C."""
        first = atom if self.c.sharers == 1 else atom * self.c.sharers + self.group
        return place.row * self.c.tile[0] + first * 64

    def at(self, place: Place, atom: int, column: Any) -> tuple[Any, ...]:
        """Return the coordinates in C of a column of the tile, for the first row of an MMA."""
        found = (self.row(place, atom), place.column * self.c.columns + column)
        return found if place.matrix is None else (*found, place.of[2])

    def ahead(self, place: Place) -> Any:
        """Prefetch the epilogue's per-row and per-column operands of a tile.

        With ``prefetch``, also load the matrices of an epilogue that is not applied :attr:`by_chunks`. Such an epilogue
        would otherwise wait for each pair of elements.
        """
        c = self.c
        if not c.epilogue.active:
            return None
        warp = cute.arch.warp_idx() % 4
        starts = [self.of_sums(place, atom, 0) for atom in range(self.atoms)]
        rows, first = [row + self.lanes.of_warp(warp) for row, _ in starts], starts[0][1]
        found = self.fused.ahead(c.tile[1], rows, first * self.twice, place.of[3])
        if found is None or self.by_chunks or not c.prefetch:
            return found
        return found._replace(matrices=[self.fetch(place, atom, 0, c.tile[1]) for atom in range(self.atoms)])

    def fetch(self, place: Place, atom: int, column: int, width: int) -> Any:
        """Load the matrices that the epilogue reads for some columns."""
        row, first = self.of_sums(place, atom, column)
        row = row + self.lanes.of_warp(cute.arch.warp_idx() % 4)
        return self.fused.fetch(width, row, first, place.of[3])

    def fuse(
        self, values: Any, columns: int, place: Place, atom: int, column: Any, ahead: Any = None, fetched: Any = None
    ) -> Any:
        """Apply the epilogue to some columns, and return the result in the type that the epilogue computes in.

        Extra outputs are stored if these are all columns of the tile.

        Args:
            values: The accumulator registers.
            columns: Number of accumulator columns.
            place: The tile.
            atom: The MMA to which the rows belong.
            column: The first column of C in the tile.
            ahead: Operands that :meth:`ahead` prefetched. ``column`` must then be known at compile time.
            fetched: Elements that :meth:`fetch` loaded.
        """
        c = self.c
        if c.epilogue.active:
            values = self.fused.taken(values)
            row, first = self.of_sums(place, atom, column)
            row = row + self.lanes.of_warp(cute.arch.warp_idx() % 4)
            leaving = {n: self._leaving(n, place, atom, column, columns) for n in self.beside}
            at = 0 if ahead is None else column * self.twice
            self.fused.apply(
                values,
                columns,
                row,
                first * self.twice,
                place.of[3],
                self.end(place),
                leaving,
                ahead,
                atom,
                at,
                fetched,
            )
        return values

    def _leaving(self, number: int, place: Place, atom: int, column: Any, columns: int) -> Leaving:
        """Return the store of an extra output, for the rows of an MMA and ``columns`` columns from ``column`` on."""
        widths, order, several = self.c.widths, list(self.beside).index(number), len(self.beside)
        starts = [sum(widths[:i]) for i in range(len(widths))]
        first = starts.index(column)  # of the chunks
        here = [i for i in range(first, len(widths)) if starts[i] < column + columns]

        def way(chunk: int) -> tuple[RowStore | ColumnStore, tuple[Any, ...]]:
            return self.beside[number][widths[here[chunk]]], self.at(place, atom, starts[here[chunk]])

        def buffer_of(chunk: int) -> tuple[Any, int]:
            """Return the buffer of a chunk, and the number of stores that may still read theirs."""
            turn = atom * self.chunks + here[chunk]
            # If chunks are stored one by one, each chunk of C follows the same chunk of the extra outputs.
            turn = turn * (several + 1) + order if self.by_chunks else turn * several + order
            buffers = self.c.buffers
            # The previous tile may have used the first chunk's buffer last.
            under_way = buffers - 1 if turn or len(self._pieces()) * (1 + several) % buffers == 0 else 0
            return self.group * buffers + turn % buffers, under_way

        def begin(chunk: int) -> Any:
            (store, at), (buffer, under_way) = way(chunk), buffer_of(chunk)
            return store.begin(buffer, at, under_way)

        def stage(buffer: Any, values: Any, i: Any) -> None:
            next(iter(self.beside[number].values())).stage(self._rounded(values), buffer, i)

        def end(buffer: Any, chunk: int) -> None:
            store, at = way(chunk)
            store.end(buffer, at)

        def put(values: Any, chunk: int) -> None:
            (store, at), (buffer, under_way) = way(chunk), buffer_of(chunk)
            store.put(store.registers(self._rounded(values), 0), buffer, at, under_way)

        return Leaving(tuple(widths[i] for i in here), begin, stage, end, put)

    def _rounded(self, values: Any) -> Any:
        """Return registers of f32 values converted to the type of C."""
        made = cute.make_rmem_tensor_like(values, self.kind)
        made.store(rounded(values, self.kind))
        return made

    def of_sums(self, place: Place, atom: int, column: Any) -> tuple[Any, Any]:
        """Return the row and column of an element that are passed to the epilogue."""
        row, first, *_ = self.at(place, atom, column)
        return row, first

    def end(self, place: Any) -> Any:
        """Return the row before which extra outputs are stored, or None for no limit."""
        return None

    def _pieces(self) -> list[tuple[int, int, int]]:
        """List the chunks of a warpgroup: MMA, first column, number of columns."""
        widths = self.c.widths
        return [(atom, sum(widths[:i]), w) for atom in range(self.atoms) for i, w in enumerate(widths)]

    def words(self, values: Any) -> Any:
        """Convert 32-bit values to the result type."""
        if values.element_type is self.kind:
            return values
        found = cute.make_rmem_tensor_like(values, self.kind)
        found.store(rounded(values, self.kind))
        return found

    def put_piece(
        self, i: int, values: Any, place: Place, pieces: Sequence[tuple[int, int, int]] | None = None
    ) -> None:
        """Store the registers of the ``i``-th chunk, through the staging buffer whose turn it is.

        ``pieces`` are the chunks in the order in which they are stored, by default that of :meth:`_pieces`.
        """
        pieces, buffers, several = pieces or self._pieces(), self.c.buffers, len(self.beside)
        atom, column, width = pieces[i]
        # The previous tile may have used the first chunk's buffer last. Extra outputs precede C.
        turn = i * (several + 1) + several if self.by_chunks else i + len(pieces) * several
        under_way = buffers - 1 if turn or len(pieces) % buffers == 0 else 0
        self.put(values, turn % buffers, width, place, atom, column, under_way)

    def put(self, values: Any, buffer: int, width: int, place: Place, atom: int, column: Any, under_way: int) -> None:
        """Store the registers of a chunk, once at most ``under_way`` stores still read their buffers."""
        slot = self.group * self.c.buffers + buffer
        self.stores[width].put(values, slot, self.at(place, atom, column), under_way)

    def finish(self) -> None:
        """Wait until the stores have read their buffers."""
        next(iter(self.stores.values())).wait(0)


class Result(Staging):
    """Epilogue and store of accumulators in registers, ``sums``. The other arguments are those of :class:`Staging`."""

    def __init__(
        self,
        c: GemmConfig,
        tmas: Stores,
        memory: cute.Pointer,
        sums: cute.Tensor,
        group: cute.Int32 | int,
        fused: Fused,
        target: cute.Tensor | None = None,
        beside: Mapping[int, Stores] = MappingProxyType({}),
    ):
        super().__init__(c, tmas, memory, group, fused, target, beside)
        self.sums = sums
        half = cute.make_rmem_tensor(c.atoms * c.columns // 2, self.kind) if self.twice == 2 and not self.wide else None
        self.out = sums if self.wide else cute.make_rmem_tensor_like(sums, self.kind) if half is None else half

    def _registers(self, values: Any, atom: int, column: int, width: int) -> Any:
        return self.stores[width].registers(values, (self.c.columns * atom + column) // 2)

    @property
    def by_chunks(self) -> bool:
        """Return True if the epilogue is applied to each chunk just before it is stored.

        This needs registers for one chunk only; applied to a whole tile of 256 x 192, the epilogue spills. A deferred
        store cannot wait that long, because the next tile needs the accumulator.
        """
        c, e = self.c, self.c.epilogue
        together = e.whole_tiles or e.reduces or e.paired or self.twice != 1
        return e.active and not (self.wide or c.deferred or together)

    def convert(self, place: Place, ahead: Any = None) -> None:
        """Apply the epilogue to the accumulator of a tile, and convert it to elements of C.

        32-bit results, and epilogues applied :attr:`by_chunks`, are left to :meth:`store`. ``ahead`` holds the operands
        that :meth:`ahead` prefetched.
        """
        if self.by_chunks:
            return
        if self.wide:
            for atom in cute.range_constexpr(self.atoms if self.c.epilogue.whole_tiles else 0):
                start = self.sums.iterator + self.c.tile[1] // 2 * atom
                values = cute.make_tensor(start, cute.make_layout(self.c.tile[1] // 2))
                self.fuse(values, self.c.tile[1], place, atom, 0, ahead)
            return
        columns, found = self.c.tile[1], []
        for atom in cute.range_constexpr(self.atoms):
            start = self.sums.iterator + columns // 2 * atom
            values = cute.make_tensor(start, cute.make_layout(columns // 2))
            fetched = ahead.matrices[atom] if ahead is not None and ahead.matrices else None
            found.append(self.fuse(values, columns, place, atom, 0, ahead, fetched))
        for piece in cute.range_constexpr(len(self._pieces())):
            atom, column, width = self._pieces()[piece]
            sums = self.stores[width].registers(found[atom], column // 2)
            self._registers(self.out, atom, column, width).store(rounded(sums, self.kind))

    def store(self, place: Place, half: int | None = None, ahead: Any = None) -> None:
        """Store a tile, or its first (0) or second (1) half. For ``ahead`` see :meth:`convert`."""
        pieces = self._pieces()
        middle = len(pieces) // 2
        start, stop = (0, len(pieces)) if half is None else ((0, middle), (middle, len(pieces)))[half]
        prefetches = self.c.prefetch and self.by_chunks
        following = self.fetch(place, *pieces[start]) if prefetches else None
        for i in cute.range_constexpr(start, stop):
            atom, column, width = pieces[i]
            fetched, following = following, None
            if prefetches and i + 1 < stop:
                following = self.fetch(place, *pieces[i + 1])
            if self.wide and self.twice == 2:
                start = self.sums.iterator + (self.c.tile[1] * atom + 2 * column) // 2
                values = cute.make_tensor(start, cute.make_layout(width))
                values = self.stores[width].registers(self.fuse(values, 2 * width, place, atom, column, ahead), 0)
            elif self.by_chunks:
                start = self.sums.iterator + (self.c.tile[1] * atom + column) // 2
                values = cute.make_tensor(start, cute.make_layout(width // 2))
                values = self.fuse(values, width, place, atom, column, ahead, fetched)
                found = self.stores[width].registers(values, 0)
                values = self._registers(self.out, atom, column, width)
                values.store(rounded(found, self.kind))
            else:
                values = self._registers(self.out, atom, column, width)
                # Except for whole rows, apply the epilogue only now: its operands need registers.
                if self.wide and not self.c.epilogue.whole_tiles:
                    values = self.words(self.fuse(values, width, place, atom, column, ahead))
            self.put_piece(i, values, place)
