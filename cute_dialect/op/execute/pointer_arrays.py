"""Matrices at separate addresses as one array with a third mode, and the table of their positions.

A batched kernel steps along the third mode of its matrices.  Here that mode begins at the lowest address, and its
stride divides all distances, so each matrix has a coordinate.  A table lists the coordinates of A, B, D and C for
each GEMM (:func:`cute_dialect.kernels.gemm.operands.places_of`).  A tensor map accepts such a mode, so one map serves
all matrices.

>>> def matrix(pointer: int) -> ArrayView:
...     return ArrayView(pointer, (3, 8), (8, 1), "f16", -1, "numpy", None)
>>> of, places = one_view([matrix(4096), matrix(1024), matrix(9216)])
>>> of.pointer, of.shape, of.strides, places
(1024, (9, 3, 8), (512, 8, 1), [3, 0, 8])
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable, Sequence
from math import gcd
from threading import Lock
from typing import Any, NamedTuple, TypeAlias

from cute_dialect.op.arrays.dtypes import SIZES
from cute_dialect.op.arrays.memory import NOWHERE, new_memory, pool_of
from cute_dialect.op.arrays.operand_views import overlap
from cute_dialect.op.errors import LayoutError
from cute_dialect.op.execute.launcher import CURRENT
from cute_dialect.op.problems.operands import Operands
from cute_dialect.runtime.arrays import ArrayView, view_of
from cute_dialect.runtime.host_memory import host_bytes, is_writable, span
from cute_dialect.runtime.launch_plan import ReadOnlyError

_STEP = 1 << 20
"""Maximum stride of the third mode in bytes.  It fits 32 bits in elements, and 2^31 strides reach 2 PiB."""
_KEPT = 256
"""Limit of cached tables on GPUs."""
_PLACES = 16
"""Limit of sets of addresses whose tables a launch keeps."""
_SLOT = 256
"""Alignment in bytes of copies of host matrices, modulo the alignment of the matrices."""


def one_view(views: Sequence[ArrayView]) -> tuple[ArrayView, list[int]] | None:
    """Return matrices of one shape as a batch (places, M, N), and the position of each.

    Returns None if they are too far apart, or if their distances are not multiples of the element size.
    """
    low, item = min(v.pointer for v in views), SIZES[views[0].dtype]
    unit = gcd(_STEP, *[v.pointer - low for v in views])
    if unit % item:
        return None
    places = [(v.pointer - low) // unit for v in views]
    if max(places) >= 2**31 - 1:
        return None
    first = views[0]
    keep: object = tuple([v.keep for v in views])
    found = first._replace(
        pointer=low, shape=(max(places) + 1, *first.shape), strides=(unit // item, *first.strides), keep=keep
    )
    return found, places


def check_results(call: str, found: Sequence[Operands]) -> None:
    """Raise LayoutError if a result shares memory with another result, or with an operand of another GEMM."""
    pieces: list[tuple[int, int, bool, int, str, ArrayView]] = []
    for i, x in enumerate(found):
        for name, view in (("D", x.d), ("A", x.a), ("B", x.b), ("C", x.c)):
            if view is not None:
                start, size = span(view)
                pieces.append((start, start + size, name == "D", i, name, view))
    pieces.sort(key=lambda p: p[:2])
    open_: list[tuple[int, int, bool, int, str, ArrayView]] = []
    for p in pieces:
        open_ = [q for q in open_ if q[1] > p[0]]
        for q in open_:
            if p[3] != q[3] and (p[2] or q[2]) and overlap(p[5], q[5]):
                raise LayoutError(f"{call}: {p[4]} of matrix {p[3]} shares memory with {q[4]} of matrix {q[3]}")
        # One of several read-only operands at the same address is enough.
        if p[2] or not any(q[:3] == p[:3] and q[3] == p[3] for q in open_):
            open_.append(p)


def joined(found: Sequence[Operands]) -> Operands:
    """Return GEMMs as one batch, with the table of their positions."""
    import numpy as np

    rows: list[list[int]] = []
    made: dict[str, ArrayView] = {}
    for name in "abdc":
        views = [getattr(x, name) for x in found]
        if views[0] is None:  # Operands of a traced epilogue are ordered like the GEMMs.
            rows.append([0] * len(views) if found[0].graph is None else list(range(len(views))))
            continue
        both = one_view(views)
        assert both is not None  # apart() has checked it.
        view, places = both
        memory: Any = views[0].keep
        if view.device < 0 and getattr(memory, "ndim", 0) == 1 and memory.dtype == "uint8":  # memory of Copies
            start, size = span(view)
            at = start - memory.ctypes.data
            view = view._replace(keep=memory[at : at + size])
        elif view.device < 0:  # The matrices are parts of one array.
            view = view._replace(keep=memory)
        made[name] = view
        rows.append(places)
    # Kernels of D^T = B^T A^T read the second half, in which A and B are swapped.
    a, b, d, c = rows
    return found[0]._replace(**made, places=table_like(np.array((a, b, d, c, b, a, d, c), np.int32), found[0].d))


def table_like(host: Any, like: ArrayView) -> ArrayView:
    """Return a contiguous NumPy array of words in the memory space of another array.  Equal contents share memory."""
    view = view_of(host)
    if like.device < 0 or like.library == NOWHERE:
        return view
    key = (like.device, like.library == "torch", view.dtype, host.shape, host.tobytes())
    with _LOCK:
        known = _TABLES.get(key)
        if known is not None:
            _TABLES.move_to_end(key)
            _pin(known)
            return known
    found = _uploaded(host, like)._replace(shape=view.shape, strides=view.strides, dtype=view.dtype)
    _pin(found)
    with _LOCK:
        _TABLES[key] = found
        many = len(_TABLES) > _KEPT
    if many:  # Wait for running launches, which may read tables that are freed.
        _wait_for_all(like)
        with _LOCK:
            while len(_TABLES) > _KEPT // 2:
                _TABLES.popitem(last=False)
    return found


_PINNED: dict[int, ArrayView] = {}
"""Tables that captured CUDA graphs read, by address.  A graph may be replayed until the process ends."""


def _pin(table: ArrayView) -> None:
    """Keep a table on a GPU if a CUDA graph is being captured."""
    torch = sys.modules.get("torch") if table.device >= 0 else None
    if torch is not None and isinstance(table.keep, torch.Tensor) and torch.cuda.is_current_stream_capturing():
        _PINNED[table.pointer] = table


PlacedLaunch: TypeAlias = "tuple[Callable[..., object], tuple[int, ...], ArrayView]"
"""A launch at known addresses, ``launch(stream, *given, *others)``: launch, given and table."""


class LaunchByTables:
    """Launches whose tables depend on addresses: ``launch(stream, *addresses)``.

    Tables are written when addresses are new, and found by their addresses afterwards.

    Args:
        count: number of leading addresses on which tables depend; the others are passed to each launch.
        placed: returns the launches at such addresses.  It may raise AddressMismatch.
        like: an array in the memory where tables are.
        is_numeric: launches get ``CURRENT.numbers`` before the other addresses.
    """

    def __init__(
        self,
        count: int,
        placed: Callable[[tuple[int, ...]], Sequence[PlacedLaunch]],
        like: ArrayView,
        is_numeric: bool = False,
    ) -> None:
        self._count, self._placed, self._like, self._is_numeric = count, placed, like, is_numeric
        self._known: dict[tuple[int, ...], Sequence[PlacedLaunch]] = {}

    def __call__(self, stream: int, *addresses: int) -> None:
        first, others = addresses[: self._count], addresses[self._count :]
        found = self._known.get(first)
        if found is None:
            found = self._add(first)
        if self._is_numeric:
            others = (*CURRENT.numbers, *others)
        for launch, given, table in found:
            _pin(table)
            launch(stream, *given, *others)

    def _add(self, addresses: tuple[int, ...]) -> Sequence[PlacedLaunch]:
        found = self._placed(addresses)
        if len(self._known) >= _PLACES:
            if self._like.device >= 0:
                _wait_for_all(self._like)  # Running launches may read tables that are freed.
            self._known.clear()
        self._known[addresses] = found
        return found


class TableLaunch(NamedTuple):
    """A launch of some GEMMs of a table: ``launch(stream, a, b, d, problems, turns, 0, *more)``."""

    launch: Callable[..., object]
    here: Any  # mask of the GEMMs that it computes
    turns: int  # address of the tile schedule
    more: tuple[int, ...]  # further fixed addresses
    keep: object = None  # the arrays at the fixed addresses


def table_launch(
    table: Any, operands: Sequence[tuple[int, Any, int]], parts: Sequence[TableLaunch], like: ArrayView
) -> LaunchByTables:
    """Return ``launch(stream, *addresses)``, which computes the GEMMs of a table on matrices at other addresses.

    The addresses of an operand are given in the order of its GEMMs.  Each is written to the table as the distance from
    the lowest one.

    Args:
        table: the GEMMs.
        operands: for A, B and D the column of the table, the indices of the GEMMs that access it, and its bytes per
            element.
        like: an array in the memory where tables are.
    """
    import numpy as np

    def placed(addresses: tuple[int, ...]) -> list[PlacedLaunch]:
        there, bases = table.copy(), list[int]()
        unused = addresses[-1]
        for column, live, item in operands:
            mine = np.array(addresses[: len(live)], np.int64)
            addresses = addresses[len(live) :]
            # Kernels do not read an operand that no GEMM has, so any address will do.
            bases.append(int(mine.min()) if len(live) else bases[0] if bases else unused)
            there[live, column] = (mine - bases[-1]) // item
        found: list[PlacedLaunch] = []
        for part in parts:
            mine = there
            if not part.here.all():
                mine = there.copy()
                mine[~part.here, 0] = 0
            problems = table_like(mine, like)
            found.append((part.launch, (*bases, problems.pointer, part.turns, 0, *part.more), problems))
        return found

    return LaunchByTables(sum([len(live) for _, live, _ in operands]), placed, like)


def _wait_for_all(like: ArrayView) -> None:
    """Wait until a GPU has finished all its work."""
    torch = sys.modules.get("torch")
    if torch is not None and like.library == "torch":
        torch.cuda.synchronize(like.device)
    else:
        pool_of(like.device).wait()


def _uploaded(host: Any, like: ArrayView) -> ArrayView:
    memory = new_memory(like, host.nbytes // SIZES["i32"], "i32")
    pool_of(like.device).to_device(memory.pointer, host.ctypes.data, host.nbytes)
    return memory


_TABLES: OrderedDict[object, ArrayView] = OrderedDict()
_LOCK = Lock()


class Copies:
    """Copies of host matrices, in one allocation each for A, B, C and D, so that one view reaches all of them.

    :meth:`back` copies the results back.  With ``bias``, the biases are copied, too.
    """

    def __init__(self, found: Sequence[Operands], *, bias: bool = False):
        import numpy as np

        there: list[dict[str, ArrayView]] = [{} for _ in found]
        for names in (("a",), ("b",), ("d", "c"), ("bias",) * bias):  # C and D may be the same matrix.
            pieces: dict[tuple[int, int], int] = {}
            size = 0
            for x in found:
                for view in (getattr(x, name) for name in names):
                    if view is not None and (key := span(view)) not in pieces:
                        pieces[key] = -(-size // _SLOT) * _SLOT + key[0] % _SLOT
                        size = pieces[key] + key[1]
            memory = np.zeros(size + _SLOT, np.uint8)
            first = -(-memory.ctypes.data // _SLOT) * _SLOT
            for (start, length), at in pieces.items():
                host_bytes(first + at, length)[:] = host_bytes(start, length)
            for i, x in enumerate(found):
                for name in names:
                    view = getattr(x, name)
                    if view is not None:
                        start, _ = key = span(view)
                        place = first + pieces[key] + view.pointer - start
                        there[i][name] = view._replace(pointer=place, library="numpy", keep=memory)
        for x in found:
            if not is_writable(x.d):
                raise ReadOnlyError("D")
        self.there = [x._replace(**made) for x, made in zip(found, there)]
        self._results = [(x.d, y.d) for x, y in zip(found, self.there)]

    def back(self) -> None:
        """Copy the results back to the caller's arrays."""
        for to, source in self._results:
            _elements(to)[...] = _elements(source)


def _elements(view: ArrayView) -> Any:
    """Return the elements of a matrix in CPU memory as bytes."""
    import numpy as np

    (start, size), item = span(view), SIZES[view.dtype]
    strides = (*[s * item for s in view.strides], 1)
    return np.ndarray((*view.shape, item), np.uint8, host_bytes(start, size), view.pointer - start, strides)
