"""One call of a function on rows: its arrays read and checked, seen as matrices, kernels found and launched.

Arrays are of torch, numpy, or whatever else a kernel takes.  Calls of torch tensors on a GPU are cached
(:meth:`RowCall.remember`), copies included.
"""

# torch is not there where the types are checked; arrays are of any library.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from cute_dialect.kernels.row_config import BITS
from cute_dialect.op.arrays import gpu_here, read_all
from cute_dialect.op.compiled import Libraries, by_name
from cute_dialect.op.errors import DtypeError, LayoutError, ShapeError
from cute_dialect.op.known import KnownCalls
from cute_dialect.op.product import options_of
from cute_dialect.op.recording import Recording, launched
from cute_dialect.runtime.arrays import ArrayView, view_of
from cute_dialect.runtime.call_options import check_options

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.op.product import Interpreted
    from cute_dialect.runtime.launch import CallOptions, CompiledModule

__all__ = ["RowCall", "RowKernel", "library"]


class RowKernel(NamedTuple):
    """A kernel by its name, which tells it from all others, the function and arguments that make its text, and the
    host function.
    """

    name: str
    make: Callable[..., str]
    args: tuple[Any, ...]
    host: str = "launch"

    @property
    def chip(self) -> str:
        """The usual chip."""
        return ""

    def text(self) -> str:
        """Return the kernel's file."""
        return self.make(*self.args)

    def compiled(self, *, cpu: bool = False) -> CompiledModule:
        """Return it compiled, for a GPU or for the interpreter."""
        return library(self, cpu=cpu)


_LIBRARIES = Libraries()


def library(kernel: RowKernel, *, cpu: bool = False, elsewhere: bool = False) -> CompiledModule:
    """Return a compiled kernel: from the folder ``CUTE_KERNELS`` or the compile cache where it is there, else compiled,
    or (``elsewhere``) compiled in another process; ``cpu``: as far as the interpreter needs it.
    """
    text = partial(kernel.make, *kernel.args)
    return _LIBRARIES.get((kernel.name, cpu), lambda: by_name(kernel.name, text, elsewhere, cpu))


class RowCall:
    """A call on arrays, of which those that are None are not there.

    The first array is the one whose type, shape and place the others have; ``others``: names of those with types of
    their own; ``stream``, and ``run``, what the interpreter is told, as of :func:`cute_dialect.op.gemm.mm`.  Raises
    subclasses of :class:`cute_dialect.op.OpError`.
    """

    def __init__(
        self, name: str, arrays: Mapping[str, Any], device: object = None, others: Sequence[str] = (),
        elements: Sequence[str] = tuple(BITS), *, stream: object = None, run: Interpreted | None = None,
    ) -> None:  # fmt: skip
        self.name, self.arrays = name, dict(arrays)
        self._steps: list[tuple[Any, ...]] = []
        self._made: list[Any] = []
        self._stream, self._run = stream, run or {}
        options: dict[str, Any] = {key: value for key, value in self._run.items() if key != "report"}
        check_options(cast("CallOptions", {"device": "gpu" if device is None else device, **options}))
        self._where, self.views = read_all(name, arrays, device, stream)
        self.cpu, self.gpu, self._library = self._where.cpu, self._where.gpu, self._where.library
        self.first, self.x = next(iter(self.views.items()))
        self.element = self.x.dtype
        if self.element not in elements:
            raise DtypeError(f"{name}: expected {self.first} of {', '.join(elements)}, got {self.element}")
        for key, view in self.views.items():
            if view.dtype != self.element and key not in others:
                raise DtypeError(f"{name}: expected {key} of {self.element}, as {self.first}, got {view.dtype}")

    # -------------------------------------------------------------------------------------------------------- shapes

    def length(self, dim: int = -1) -> int:
        """Return how long rows are.  Raises ShapeError for another dimension than the last."""
        rank = len(self.x.shape)
        if rank == 0:
            raise ShapeError(f"{self.name}: expected {self.first} of rank 1 or more, got a scalar")
        if dim not in (-1, rank - 1):
            raise ShapeError(
                f"{self.name}: expected the last dimension, -1 or {rank - 1}, got dim={dim}: "
                f"{self.first}.transpose({dim}, -1) makes it the last"
            )
        return self.x.shape[-1]

    @property
    def count(self) -> int:
        """How many rows there are."""
        return prod(self.x.shape[:-1])

    def expect(self, key: str, shape: tuple[int, ...]) -> None:
        """Raise ShapeError where an array that is there has another shape."""
        view = self.views.get(key)
        if view is not None and view.shape != shape:
            raise ShapeError(f"{self.name}: expected {key} of {shape}, got {view.shape}")

    # ------------------------------------------------------------------------------------------------------- matrices

    def matrix(self, key: str) -> ArrayView:
        """Return an array as a matrix of its rows: where it lies, or, where no matrix lies so, a copy."""
        view = self.views[key]
        found = _as_matrix(view)
        if found is None:
            found = _as_matrix(self._copied(view))
            assert found is not None
        return found

    def matrix_of(self, array: Any) -> ArrayView:
        """Return a result as a matrix of its rows."""
        found = _as_matrix(view_of(array))
        assert found is not None
        return found

    def view_of(self, array: Any) -> ArrayView:
        """Return a result as it lies."""
        return view_of(array)

    def contiguous(self, view: ArrayView) -> ArrayView:
        """Return a copy of an array without gaps."""
        return self._copied(view)

    def numbers(self, array: Any) -> ArrayView:
        """Return a new result of any shape as a vector."""
        view = view_of(array)
        return view._replace(shape=(prod(view.shape),), strides=(1,))

    def flat(self, key: str) -> ArrayView:
        """Return an array of any shape as a vector, perhaps a copy."""
        view = self.views[key]
        steps = [step for size, step in zip(view.shape, view.strides) if size != 1]
        plain = [step for size, step in zip(view.shape, _packed(view.shape)) if size != 1]
        return self.numbers(view if steps == plain else self._copied(view))

    def indices(self, count: int, shape: Sequence[int]) -> ArrayView:
        """Return the integers below ``count`` as a new array of i32 of a shape."""
        made = self._library.indices(count, self.x).reshape(tuple(shape))
        self._made.append(made)
        return view_of(made)

    def _copied(self, view: ArrayView) -> ArrayView:
        """Return a contiguous copy."""
        made = self._library.copied(view, _packed(view.shape))
        if view.library == "torch":
            self._made.append(made.keep)
            self._steps.append((self._library.native(made), self._library.native(view)))
        return made

    def packed(self, key: str) -> ArrayView:
        """Return a copy of an array, without gaps."""
        return self._copied(self.views[key])

    def on_host(self, key: str) -> list[int]:
        """Return the integers of a vector, waiting for them where they are on a GPU."""
        return [int(n) for n in self._library.native(self.views[key]).tolist()]

    def wrong_type(self, key: str, wanted: str) -> DtypeError:
        """Return the error of an array of another type than it must have."""
        return DtypeError(f"{self.name}: expected {key} of {wanted}, got {self.views[key].dtype}")

    def vector(self, key: str) -> ArrayView | None:
        """Return a vector that begins at whole 16 bytes, perhaps a copy; None where it is not there."""
        view = self.views.get(key)
        if view is None:
            return None
        if view.pointer % 16 or view.strides[-1] != 1:
            view = self._copied(view)
        return view._replace(strides=(1,))

    def result(self, shape: Sequence[int], element: str = "", out: str = "") -> Any:
        """Return the array that is given for a result by the name ``out``, or a new one.  Raises LayoutError."""
        given = self.views.get(out)
        if given is None:
            made = self._library.empty(self.name, shape, element or self.element, self.arrays[self.first])
            self._made.append(made)
            return made
        self.expect(out, tuple(shape))
        if 0 not in given.shape and (_as_matrix(given) is None or 0 in _steps(given)):
            raise LayoutError(
                f"{self.name}: expected {out} with contiguous rows at one distance from each other, got strides "
                f"{given.strides}"
            )
        return self.arrays[out]

    def ordered_result(self, shape: Sequence[int], order: Sequence[int], element: str = "") -> Any:
        """Return a new contiguous result whose dimensions are in memory in some order, the outermost first."""
        if list(order) == sorted(order):
            return self.result(shape, element)
        steps, step = [0] * len(shape), 1
        for i in reversed(order):
            steps[i], step = step, step * shape[i]
        view = self._library.strided(shape, steps, element or self.element, self.x)
        # A tensor of its own: views cannot be written in place where they are the result of an autograd function.
        made = view.keep if view.library == "torch" else self._library.native(view)
        self._made.append(made)
        return made

    # -------------------------------------------------------------------------------------------------------- launching

    def on(self) -> AbstractContextManager[object]:
        """Make the call's stream the current one of the arrays' library."""
        if self._stream is None or self.cpu:
            return nullcontext()
        return self._library.on(self._stream, self.gpu)

    def check_gpu(self) -> None:
        """Raise DeviceError where the arrays are to be copied to a GPU, and there is none."""
        if not self.cpu and self.x.device < 0:
            gpu_here(self.name)

    def module(self, kernel: RowKernel) -> CompiledModule:
        """Return a compiled kernel, for where the arrays are."""
        return library(kernel, cpu=self.cpu)

    def launch(self, kernel: RowKernel, *given: Any) -> None:
        """Launch a kernel on views, arrays and numbers; views of None are left out."""
        args = tuple([x for x in given if x is not None])
        self.check_gpu()
        found = self.module(kernel).kernel(kernel.host)
        report = launched(found, *args, **options_of(self._where, self._stream, self._run))
        if report is not None and "report" in self._run:
            self._run["report"](report)
        self._steps.append((found, args, {}))

    def remember(self, known: KnownCalls, how: object, tensors: Sequence[Any], result: Any) -> None:
        """Cache the call, if it is one of torch tensors on a GPU: ``known.again(how, *tensors)`` then replays it.

        ``tensors``: all that the call reads, and the output if one was given; ``result``: what the call returns.
        """
        if self.x.library != "torch" or self.cpu or not self._steps:
            return
        recording = Recording(tensors)
        for t in self._made:
            recording.make(t)
        for step in self._steps:
            if len(step) == 2:
                recording.copy(*step)
            else:
                recording.note(*step)
        known.remember(how, tensors, recording, result)


def _steps(view: ArrayView) -> list[int]:
    return [step for size, step in zip(view.shape, view.strides) if size > 1]


def _as_matrix(view: ArrayView) -> ArrayView | None:
    """Return an array as the matrix of its rows; None where these are not contiguous or not at one distance."""
    *outer, n = view.shape
    rows, step = prod(outer), max(1, n)
    if n > 1 and view.strides[-1] != 1:
        return None
    last = None
    for size, stride in reversed(list(zip(outer, view.strides))):
        if size == 1:
            continue
        if last is None:
            step, last = stride, stride * size
        elif stride != last:
            return None
        else:
            last = stride * size
    return view._replace(shape=(rows, n), strides=(step, 1))


def _packed(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of an array without gaps."""
    return tuple([prod(shape[i + 1 :]) for i in range(len(shape))])
