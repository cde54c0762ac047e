"""Pointer-array GEMMs of equal shapes, computed by one launch (:class:`PointerArrayLaunch`).

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
from collections.abc import Callable, Mapping, Sequence
from math import gcd
from threading import Lock
from typing import TYPE_CHECKING, Any

from cute_dialect.op.arrays.elements import SIZES
from cute_dialect.op.arrays.memory import NOWHERE, new_memory, pool_of
from cute_dialect.op.arrays.overlap import overlap
from cute_dialect.op.errors import DeviceError, LayoutError, UnsupportedError
from cute_dialect.op.execute.calling_convention import Operands
from cute_dialect.op.execute.launch_sequence import ALONE, Split, Step, combined_steps
from cute_dialect.op.pycutlass.arguments import Arguments, Transfer, check_gpu
from cute_dialect.runtime.arrays import ArrayView, stream_of
from cute_dialect.runtime.binding import ReadOnlyError
from cute_dialect.runtime.device_memory import host_bytes, is_writable, span

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.interp import RunReport
    from cute_dialect.op.execute.variants import Variant
    from cute_dialect.op.pycutlass.operation import GemmOperationUniversal
    from cute_dialect.runtime.launch import CallOptions

__all__ = ["Copies", "PointerArrayArguments", "PointerArrayLaunch", "apart", "check_results", "one_view", "table_like"]

_STEP = 1 << 20
"""Maximum stride of the third mode in bytes.  It fits 32 bits in elements, and 2^31 strides reach 2 PiB."""
_KEPT = 256
"""Limit of cached tables on GPUs."""
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
    )  # fmt: skip
    return found, places


def apart(operation: GemmOperationUniversal, found: Sequence[Operands]) -> str:
    """Return the reason for separate launches, or "" if one launch computes all GEMMs."""
    first = found[0]
    if 0 in first.d.shape:
        return "the results are empty"
    if operation.in_parts:
        return "f32 is split into tf32 parts first"
    if first.a.shape[-1] == 0 or first.alpha == 0.0:
        return "K or alpha is 0"
    for x in found:
        for name, v, w in (("A", x.a, first.a), ("B", x.b, first.b), ("C", x.c, first.c), ("D", x.d, first.d)):
            if v is not None and w is not None and (v.strides, v.dtype) != (w.strides, w.dtype):
                return f"the matrices of {name} have different strides"
    for name in "abcd":
        if getattr(first, name) is not None and one_view([getattr(x, name) for x in found]) is None:
            return f"the matrices of {name.upper()} are too far apart, or not whole elements apart"
    try:
        operation.variant_for(first, array=True)
    except UnsupportedError as e:
        return f"the kernel does not support pointer arrays ({e})"
    return ""


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


class PointerArrayArguments(Arguments):
    """The operands of equal GEMMs, computed by one launch or by one each.

    ``apart`` is the reason for several launches, "" for one; ``launches`` is their number.
    """

    def __init__(
        self, operation: GemmOperationUniversal, found: Sequence[Operands], D: Sequence[Any], stream: object,
        options: CallOptions, split: Split = ALONE, call: str = "GemmArguments",
        results: Mapping[str, Any] | None = None,
    ):  # fmt: skip
        super().__init__(operation, found[0], list(D), stream, options, split, call, results)
        check_results(call, found)
        self.apart = apart(operation, found) if split.parts == 1 else "the call uses split-K"
        self.each: list[Arguments] = []
        if self.apart:
            self.each = [Arguments(operation, x, d, stream, options, split, call) for x, d in zip(found, D)]
        else:
            self.each = [PointerArrayLaunch(operation, found, D, stream, options, call)]

    def sources(self) -> list[Variant]:
        """Return the kernels to launch."""
        return [v for each in self.each for v in each.sources()]

    @property
    def launches(self) -> int:
        """Number of launches."""
        return len(self.each)

    def launch(self) -> RunReport | None:
        """Launch without waiting.  On the CPU, run the interpreter and return its last report."""
        report = None
        for each in self.each:
            report = each.launch()
        self.launched = self.each[-1].launched
        return report

    def bind(self) -> Callable[..., None]:
        """Return a function that only launches the kernels on these operands, which must be in GPU memory."""
        calls = [each.bind() for each in self.each]
        if len(calls) == 1:
            return calls[0]

        def call(stream: object = None) -> None:
            for each in calls:
                each(stream)

        return call

    def sync(self) -> None:
        """Wait for the launches; results in NumPy arrays are valid afterwards."""
        for each in self.each:
            each.sync()


class PointerArrayLaunch(Arguments):
    """The operands of equal GEMMs that one launch computes; :func:`apart` lists the conditions."""

    def __init__(
        self, operation: GemmOperationUniversal, found: Sequence[Operands], D: Any, stream: object,
        options: CallOptions, call: str = "GemmArguments",
    ):  # fmt: skip
        for x in found:
            super().__init__(operation, x, D, stream, options, call=call)
        self.found = tuple(found)
        self._copies: Copies | None = None

    def launch(self) -> RunReport | None:
        """Launch without waiting.  On the CPU, run the interpreter and return its report."""
        if not self.on_cpu:
            check_gpu(self.call, self.operation, self.found[0])
        if self.found[0].d.device >= 0:
            x = joined(self.found)
            raw = stream_of(self.stream, (self.found[0].d,))
            self._launch(x, raw)
            self._waits_for(x.d.device, raw)
            return None
        copies = Copies(self.found)
        if self.on_cpu:
            report = self._launch(joined(copies.there), None)
            copies.back()
            return report
        self._copies, self._transfer = copies, Transfer(joined(copies.there), self.options.get("device"))
        x = self._transfer.operands
        options, self.options = self.options, {k: v for k, v in self.options.items() if k != "device"}  # type: ignore[assignment]
        try:
            self._launch(x, 0)
        finally:
            self.options = options
        self._waits_for(x.d.device, 0)
        return None

    def sources(self) -> list[Variant]:
        """Return the kernels to launch."""
        return [self.operation.variant_for(self.operands, array=True)]

    def steps(self, x: Operands) -> list[Step]:
        """Return the launch."""
        return combined_steps(self.operation, self.operation.variant_for(x, array=True), x)

    def bind(self) -> Callable[..., None]:
        """Return a function that only launches the kernels on these operands, which must be in GPU memory."""
        if self.found[0].d.device < 0:
            raise DeviceError("bind: an array is in CPU memory; bind() needs arrays in GPU memory")
        check_gpu(self.call, self.operation, self.found[0])
        x = joined(self.found)
        return self.bound(self.steps(x))

    def sync(self) -> None:
        """Wait for the launch; results in NumPy arrays are valid afterwards."""
        super().sync()
        copies, self._copies = self._copies, None
        if copies is not None:
            copies.back()


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
    from cute_dialect.runtime.arrays import view_of

    view = view_of(host)
    if like.device < 0 or like.library == NOWHERE:
        return view
    key = (like.device, like.library == "torch", view.dtype, host.shape, host.tobytes())
    with _LOCK:
        known = _TABLES.get(key)
        if known is not None:
            _TABLES.move_to_end(key)
            return known
    found = _uploaded(host, like)._replace(shape=view.shape, strides=view.strides, dtype=view.dtype)
    with _LOCK:
        _TABLES[key] = found
        many = len(_TABLES) > _KEPT
    if many:  # Wait for running launches, which may read tables that are freed.
        _wait_for_all(like)
        with _LOCK:
            while len(_TABLES) > _KEPT // 2:
                _TABLES.popitem(last=False)
    return found


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
