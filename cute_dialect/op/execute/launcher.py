"""Launches of compiled kernels: the order and form of their arguments, and the workspace that their blocks share.

A recipe is plain data.  A saved plan stores it as JSON and runs without the compiler
(:mod:`~cute_dialect.op.execute.saved`).

>>> of_stream = Recipe("k", share=Share(0, 0, 4194304, 128))
>>> of_stream.share.of((1000, 1000)), Recipe.from_json(of_stream.to_json()) == of_stream
((4194304, 128), True)
"""

# torch is not installed where types are checked.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from threading import local
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

from cute_dialect.op.arrays.dtypes import SIZES
from cute_dialect.op.arrays.memory import new_memory
from cute_dialect.op.arrays.operand_views import columns_first
from cute_dialect.op.problems.operands import Operands
from cute_dialect.runtime.arrays import ArrayView, current_stream_of_torch, stream_of, view_of

if TYPE_CHECKING:  # pragma: no cover
    from typing import Unpack

    from cute_dialect.interp import RunReport
    from cute_dialect.kernels.epilogue.graph import Graph
    from cute_dialect.op.execute.recording import Recording
    from cute_dialect.runtime.launch import CallOptions, CompiledModule, Kernel


class Launch(NamedTuple):
    """A prepared launch, ``launch(stream, *addresses)``."""

    launch: Callable[..., object]
    given: tuple[Any, ...]  # arrays, and numbers, whose address is 0
    mask: int  # bits that are 0 in the addresses
    more: Callable[[int], tuple[int, ...]] | None = None  # returns the workspace's addresses for a stream
    behind: int = 0  # number of addresses before those of the workspace


class _Current(local):
    """The state of this thread."""

    recording: Recording | None = None
    """While it is set no call is replayed, because a replay is not recorded."""
    numbers: tuple[int, ...] = ()
    """Bits of the floats that differ between calls of a specialization, for launches that read them."""


CURRENT = _Current()


def launched(kernel: Any, *given: Any, **options: Any) -> Any:
    """Launch a kernel, record the launch if a call is being recorded, and return the kernel's result.

    Args:
        kernel: a kernel of the runtime, or an object with ``repeated(*given)``, which returns a :class:`Launch` or
            None.
    """
    report = kernel(*given, **options)
    recording = CURRENT.recording
    if recording is not None:
        recording.note(kernel, given, options)
    return report


def unrecorded() -> AbstractContextManager[object]:
    """Suspend recording, for work that is done once for many calls."""
    if CURRENT.recording is None:
        return nullcontext()
    modes: Any = import_module("torch.utils._python_dispatch")
    return modes._disable_current_modes()


class Share(NamedTuple):
    """The global workspace that the blocks of a launch share."""

    # The workspace is per tile of `rows` x `columns` of D, or for all of D if `rows` is 0.
    rows: int
    columns: int
    floats: int  # f32 elements
    counters: int  # i32 counters, which are zero before and after a launch
    chunk: int = 0  # D has a third mode; for each of its indices, this many of the second mode are computed at a time

    def of(self, shape: Sequence[int]) -> tuple[int, int]:
        """Return the numbers of floats and counters for D of a shape (m, n[, matrices]) as the kernel sees it."""
        m, n, *batch = shape
        if self.chunk:
            taps, *batch = batch
            n = -(-n // self.chunk) * self.chunk * taps
        tiles = -(-m // self.rows) * -(-n // self.columns) * (batch[0] if batch else 1) if self.rows else 1
        return tiles * self.floats, tiles * self.counters


class Recipe(NamedTuple):
    """The calling convention of a kernel.

    Its arguments are, in order: A, B, D, the workspace of ``share``, C, the bias, the operands of a graph, and alpha
    and beta.  With ``array``, the table of positions comes last.
    """

    name: str  # name of the kernel
    transposed: bool = False  # the kernel computes D^T = B^T A^T
    b_by_k: bool = False  # it takes B as (K, N), not as (N, K)
    batch: bool = False  # matrices have a third mode
    share: Share | None = None
    source: bool = False  # it takes C
    bias: str = ""  # index of the bias, "m" or "n"
    numbers: tuple[str, ...] = ()  # "alpha", "beta", if they are arguments
    tma: bool = True  # addresses and row strides are multiples of 16 bytes
    sums: bool = False  # it adds up split-K slices: A has the slices in the kernel's layout, and there is no B
    array: bool = False  # matrices are at separate addresses
    interleaved: bool = False  # columns are in runs of 32
    operands: tuple[str, ...] = ()  # kinds of the graph's inputs and results, in place of C, bias and numbers
    at_once: int = 0  # columns of the kernel's result that are reduced together
    taken: bool = False  # operands are already in the kernel's layout, with the batch mode last
    scales: bool = False  # blocks of A and B have scales

    def arguments(self, x: Operands) -> tuple[Any, ...]:
        """Return the arguments of the kernel, without the workspace."""
        a, b, d, c = x.a, x.b, x.d, x.c
        if self.taken:
            numbers = [getattr(x, name) for name in self.numbers]
            behind = [v for v, there in ((c, self.source), (x.bias, bool(self.bias))) if there]
            return (a, b, d, *behind, *x.behind[: len(self.operands)], *numbers)
        if self.transposed:
            a, b, d = b.transposed(), a.transposed(), d.transposed()
            c = None if c is None else c.transposed()
        b = b if self.b_by_k else b.transposed()
        to = self._form(d) if x.stored is None else x.stored
        given: list[object] = [x.a, to] if self.sums else [self._form(a), self._form(b), to]
        scales = x.scales if self.scales else ()
        given += reversed(scales) if self.transposed else scales
        if self.source:
            assert c is not None
            given.append(self._form(c))
        if self.bias:
            given.append(x.bias)
        behind = x.behind[: len(self.operands)]
        given += transposed_operands(x.graph, behind) if self.transposed and x.graph is not None else behind
        given += [getattr(x, name) for name in self.numbers]
        if self.array and x.places is not None:
            count, step = x.places.shape[1], 4 * SIZES["i32"] if self.transposed else 0
            given.append(x.places._replace(pointer=x.places.pointer + count * step, shape=(4, count)))
        return tuple(given)

    def _form(self, view: ArrayView) -> ArrayView:
        """Return a matrix, or a batch with its mode last.  A matrix for all batch indices is a batch of one."""
        if self.interleaved:
            m, n = view.shape
            return view._replace(shape=(m, 32, n // 32), strides=(32, 1, 32 * m))
        if not self.batch:
            return view if len(view.shape) == 2 else view._replace(shape=view.shape[1:], strides=view.strides[1:])
        if len(view.shape) == 2:
            (m, n), (row, column) = view.shape, view.strides
            return view._replace(shape=(m, n, 1), strides=(row, column, max(m * row, n * column)))
        (matrices, m, n), (step, row, column) = view.shape, view.strides
        if (matrices == 1 or step == 0) and not self.array:
            return view._replace(shape=(m, n, 1), strides=(row, column, max(m * row, n * column)))
        return view._replace(shape=(m, n, matrices), strides=(row, column, step))

    def to_json(self) -> dict[str, object]:
        """Return the recipe as data."""
        fields: dict[str, object] = self._asdict()
        return fields | {"share": None if self.share is None else list(self.share)}

    @classmethod
    def from_json(cls, fields: Mapping[str, object]) -> Recipe:
        """Return the recipe of :meth:`to_json`.  Raises TypeError for other fields."""
        values = cast("dict[str, Any]", dict(fields))
        share = values.get("share")
        values["share"] = None if share is None else Share(*share)
        values |= {name: tuple(values.get(name, ())) for name in ("numbers", "operands")}
        return cls(**values)


def transposed_operands(graph: Graph, given: Sequence[Any]) -> tuple[Any, ...]:
    """Return the operands of an epilogue graph, inputs and then results other than D, for the transposed result."""
    inputs, outputs = graph.inputs, graph.outputs[1:]
    kinds = [*((x.kind, x.split) for x in inputs), *(("" if x.reduce else "aux", x.split) for x in outputs)]
    return tuple([
        columns_first(operand, split) if kind == "aux" and isinstance(operand, ArrayView) else operand
        for operand, (kind, split) in zip(given, kinds)
    ])  # fmt: skip


class WorkspaceKernel:
    """A kernel whose blocks share a workspace, which its launches pass after A, B and D."""

    def __init__(self, kernel: Kernel, share: Share):
        self.kernel, self.share = kernel, share
        self._shared: dict[tuple[int, int, int, int], tuple[ArrayView, ArrayView]] = {}

    def __call__(self, *given: Any, stream: object = None, **options: Unpack[CallOptions]) -> RunReport | None:
        """Launch on arrays that are all in GPU memory, or with ``device="cpu"`` in CPU memory."""
        d = view_of(given[2])
        memory = self._new(d, *self.share.of(d.shape)) if d.device < 0 else self.memory(d, stream_of(stream, (d,)))
        return self.kernel(*given[:3], *memory, *given[3:], stream=stream, **options)

    def bind(self, *given: Any) -> Callable[..., None]:
        """Return a function that only launches on these arrays, with a workspace of its own."""
        d = view_of(given[2])
        return self.kernel.bind(*given[:3], *self._new(d, *self.share.of(d.shape)), *given[3:])

    def repeated(self, *given: Any) -> Launch | None:
        """Return a prepared launch for torch tensors like these at other addresses, or None."""
        d = view_of(given[2])._replace(keep=None)
        sizes = self.share.of(d.shape)
        memory = self._kept(d, current_stream_of_torch()(d.device), *sizes)

        def addresses(stream: int) -> tuple[int, ...]:
            workspace, counters = self._kept(d, stream, *sizes)
            return workspace.pointer, counters.pointer

        launch = self.kernel.by_address(*given[:3], *memory, *given[3:])
        return None if launch is None else Launch(launch, given, self.kernel.alignment - 1, addresses, 3)

    def memory(self, d: ArrayView, stream: int) -> tuple[ArrayView, ArrayView]:
        """Return the workspace and the counters for a launch on a stream, cached per stream.

        A launch that a CUDA graph captures has its own, because its counters are reset only when the graph is replayed.
        """
        return self._kept(d, stream, *self.share.of(d.shape))

    def _kept(self, d: ArrayView, stream: int, floats: int, counters: int) -> tuple[ArrayView, ArrayView]:
        torch = sys.modules.get("torch") if d.library == "torch" else None
        if torch is not None and torch.cuda.is_current_stream_capturing():
            return self._new(d, floats, counters)
        key = (d.device, stream, floats, counters)
        found = self._shared.get(key)
        if found is None:
            found = self._shared[key] = self._new(d, floats, counters)
        return found

    def _new(self, d: ArrayView, floats: int, counters: int) -> tuple[ArrayView, ArrayView]:
        with unrecorded():
            return new_memory(d, floats, "f32"), new_memory(d, counters, "i32", zero=True)


Ready: TypeAlias = "Kernel | WorkspaceKernel"
"""A compiled kernel, which takes its arguments without the workspace."""


def ready(module: CompiledModule, share: Share | None) -> Ready:
    """Return the kernel of a compiled module, ready to launch."""
    kernel = module.kernel("launch")
    return kernel if share is None else WorkspaceKernel(kernel, share)


class Launcher:
    """A kernel with its calling convention."""

    def __init__(self, kernel: Ready, recipe: Recipe):
        self.kernel, self.recipe = kernel, recipe

    def __call__(self, x: Operands, stream: object = None, **options: Unpack[CallOptions]) -> RunReport | None:
        """Launch on operands that are all in GPU memory, or with ``device="cpu"`` in CPU memory."""
        return launched(self.kernel, *self.recipe.arguments(x), stream=stream, **options)

    def bind(self, x: Operands) -> Callable[..., None]:
        """Return a function that only launches on these operands, with a workspace of its own."""
        return self.kernel.bind(*self.recipe.arguments(x))
