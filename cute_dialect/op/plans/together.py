"""Equal products whose matrices lie anywhere, computed by one launch (:class:`Together`).

A kernel of a batch goes along the third mode of its matrices.  Here that mode begins at the lowest address and has
steps of a unit that divides all distances, so every matrix is one of its coordinates, and a table says which: of A, of
B, of D and of C for each product (:func:`cute_dialect.kernels.gemm.operands.places_of`).  A tensor map takes such a
mode as any other, so one map serves all matrices.

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

from cute_dialect.op.elements import SIZES
from cute_dialect.op.errors import DeviceError, LayoutError, UnsupportedError
from cute_dialect.op.memory import NOWHERE, new_memory, pool_of
from cute_dialect.op.overlap import overlap
from cute_dialect.op.plans.arguments import Arguments, Transfer, check_gpu
from cute_dialect.op.plans.calling_convention import Operands
from cute_dialect.op.plans.launch_sequence import ALONE, Split, Step, combined_steps
from cute_dialect.runtime.arrays import ArrayView, stream_of
from cute_dialect.runtime.binding import ReadOnlyError
from cute_dialect.runtime.device_memory import host_bytes, is_writable, span

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.interp import RunReport
    from cute_dialect.op.plans.generators import Variant
    from cute_dialect.op.plans.operation import GemmOperationUniversal
    from cute_dialect.runtime.launch import CallOptions

__all__ = ["Copies", "Matrices", "Together", "apart", "check_results", "one_view", "table_like"]

_STEP = 1 << 20
"""The longest step of the third mode, bytes: it fits 32 bits in elements, and 2^31 of them reach 2 PiB."""
_KEPT = 256
"""Tables that are kept on GPUs."""
_SLOT = 256
"""Bytes of which copies of matrices in CPU memory begin at multiples, as far as the matrices do."""


def one_view(views: Sequence[ArrayView]) -> tuple[ArrayView, list[int]] | None:
    """Return matrices of one shape as a batch, (places, M, N), and the place of each; None where they are too far apart
    or lie between elements.
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
    """Return why products take a launch each; nothing where one launch computes them all."""
    first = found[0]
    if 0 in first.d.shape:
        return "there is nothing to compute"
    if operation.in_parts:
        return "f32 is split in parts first"
    if first.a.shape[-1] == 0 or first.alpha == 0.0:
        return "nothing is multiplied"
    for x in found:
        for name, v, w in (("A", x.a, first.a), ("B", x.b, first.b), ("C", x.c, first.c), ("D", x.d, first.d)):
            if v is not None and w is not None and (v.strides, v.dtype) != (w.strides, w.dtype):
                return f"{name} have several strides"
    for name in "abcd":
        if getattr(first, name) is not None and one_view([getattr(x, name) for x in found]) is None:
            return f"{name.upper()} are too far apart, or lie between elements"
    try:
        operation.variant_for(first, array=True)
    except UnsupportedError as e:
        return f"the kernel takes one matrix ({e})"
    return ""


def check_results(call: str, found: Sequence[Operands]) -> None:
    """Raise LayoutError where a result shares memory with another one, or with an operand of another product."""
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
        # Of operands that only are read, and lie at one place, one is enough.
        if p[2] or not any(q[:3] == p[:3] and q[3] == p[3] for q in open_):
            open_.append(p)


class Matrices(Arguments):
    """The operands of equal products: of one launch, or of one each.

    ``apart``: why there are several launches, nothing where there is one; ``launches``: how many.
    """

    def __init__(
        self, operation: GemmOperationUniversal, found: Sequence[Operands], D: Sequence[Any], stream: object,
        options: CallOptions, split: Split = ALONE, call: str = "GemmArguments",
        results: Mapping[str, Any] | None = None,
    ):  # fmt: skip
        super().__init__(operation, found[0], list(D), stream, options, split, call, results)
        check_results(call, found)
        self.apart = apart(operation, found) if split.parts == 1 else "blocks share K"
        self.each: list[Arguments] = []
        if self.apart:
            self.each = [Arguments(operation, x, d, stream, options, split, call) for x, d in zip(found, D)]
        else:
            self.each = [Together(operation, found, D, stream, options, call)]

    def sources(self) -> list[Variant]:
        """Return the kernels that are launched."""
        return [v for each in self.each for v in each.sources()]

    @property
    def launches(self) -> int:
        """How many launches there are."""
        return len(self.each)

    def launch(self) -> RunReport | None:
        """Launch and wait for nothing; on the CPU, run and return the last report."""
        report = None
        for each in self.each:
            report = each.launch()
        self.launched = self.each[-1].launched
        return report

    def bind(self) -> Callable[..., None]:
        """Return what launches on these operands, which are on a GPU, and does no more."""
        calls = [each.bind() for each in self.each]
        if len(calls) == 1:
            return calls[0]

        def call(stream: object = None) -> None:
            for each in calls:
                each(stream)

        return call

    def sync(self) -> None:
        """Wait for the launches; results in numpy arrays are then there."""
        for each in self.each:
            each.sync()


class Together(Arguments):
    """The operands of equal products, which one launch computes; see :func:`apart` for which."""

    def __init__(
        self, operation: GemmOperationUniversal, found: Sequence[Operands], D: Any, stream: object,
        options: CallOptions, call: str = "GemmArguments",
    ):  # fmt: skip
        for x in found:
            super().__init__(operation, x, D, stream, options, call=call)
        self.found = tuple(found)
        self._copies: Copies | None = None

    def launch(self) -> RunReport | None:
        """Launch and wait for nothing; on the CPU, run and return the interpreter's report."""
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
        """Return the kernels that are launched."""
        return [self.operation.variant_for(self.operands, array=True)]

    def steps(self, x: Operands) -> list[Step]:
        """Return the launch."""
        return combined_steps(self.operation, self.operation.variant_for(x, array=True), x)

    def bind(self) -> Callable[..., None]:
        """Return what launches on these operands, which are on a GPU, and does no more."""
        if self.found[0].d.device < 0:
            raise DeviceError("bind: expected arrays in GPU memory, got one in CPU memory")
        check_gpu(self.call, self.operation, self.found[0])
        x = joined(self.found)
        return self.bound(self.steps(x))

    def sync(self) -> None:
        """Wait for the launch; results in numpy arrays are then there."""
        super().sync()
        copies, self._copies = self._copies, None
        if copies is not None:
            copies.back()


def joined(found: Sequence[Operands]) -> Operands:
    """Return products as those of one batch, with the table of their places."""
    import numpy as np

    rows: list[list[int]] = []
    made: dict[str, ArrayView] = {}
    for name in "abdc":
        views = [getattr(x, name) for x in found]
        if views[0] is None:  # what a traced epilogue has of each is in order
            rows.append([0] * len(views) if found[0].graph is None else list(range(len(views))))
            continue
        both = one_view(views)
        assert both is not None  # apart() has asked
        view, places = both
        memory: Any = views[0].keep
        if view.device < 0 and getattr(memory, "ndim", 0) == 1 and memory.dtype == "uint8":  # bytes of Copies
            start, size = span(view)
            at = start - memory.ctypes.data
            view = view._replace(keep=memory[at : at + size])
        elif view.device < 0:  # matrices of one array
            view = view._replace(keep=memory)
        made[name] = view
        rows.append(places)
    # Kernels of D^T = B^T A^T have another order: A is B^T.
    a, b, d, c = rows
    return found[0]._replace(**made, places=table_like(np.array((a, b, d, c, b, a, d, c), np.int32), found[0].d))


def table_like(host: Any, like: ArrayView) -> ArrayView:
    """Return a numpy array without gaps, of words, where another array is; the same memory for the same numbers."""
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
    if many:  # launches that are under way may read what is given back
        _wait_for_all(like)
        with _LOCK:
            while len(_TABLES) > _KEPT // 2:
                _TABLES.popitem(last=False)
    return found


def _wait_for_all(like: ArrayView) -> None:
    """Wait until a GPU has done all that it was given."""
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
    """Copies of matrices in CPU memory that lie in one piece of it each for A, B, C and D, which a kernel can reach
    over; results go :meth:`back`.  ``bias``: so do the biases of all.
    """

    def __init__(self, found: Sequence[Operands], *, bias: bool = False):
        import numpy as np

        there: list[dict[str, ArrayView]] = [{} for _ in found]
        for names in (("a",), ("b",), ("d", "c"), ("bias",) * bias):  # C may be D
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
        """Copy results to where they belong."""
        for to, source in self._results:
            _elements(to)[...] = _elements(source)


def _elements(view: ArrayView) -> Any:
    """Return the elements of a matrix in CPU memory, as bytes."""
    import numpy as np

    (start, size), item = span(view), SIZES[view.dtype]
    strides = (*[s * item for s in view.strides], 1)
    return np.ndarray((*view.shape, item), np.uint8, host_bytes(start, size), view.pointer - start, strides)
