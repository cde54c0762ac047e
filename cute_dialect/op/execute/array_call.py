"""A call of kernels on arrays: check the arrays, view them as matrices of rows, and launch.

Row functions, elementwise functions and attention use it.

Arrays belong to torch, NumPy or any library that kernels accept.
"""

# torch is not installed where types are checked. Arrays belong to any library.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from cute_dialect.kernels.rows.config import BITS
from cute_dialect.kernels.rows.packed import is_packed_length
from cute_dialect.lang.ranks import current_rank
from cute_dialect.op.arrays.library import check_options, chosen_device, gpu_here, read_all
from cute_dialect.op.errors import DtypeError, LayoutError, ShapeError
from cute_dialect.op.execute.gemm import options_of
from cute_dialect.op.execute.kernel_cache import compiled_kernel
from cute_dialect.op.execute.launcher import launched
from cute_dialect.op.select.backends import Backend
from cute_dialect.runtime.arrays import ArrayView, numpy_dtype, view_of

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.interp import RunReport
    from cute_dialect.op.signature_types import Array, Interpreted
    from cute_dialect.runtime.launch import CompiledModule


class RowKernel(NamedTuple):
    """A kernel: its unique name, the function and the arguments that generate its text, and its host function."""

    name: str
    make: Callable[..., str]
    args: tuple[Any, ...]
    host: str = "launch"
    target: str = ""  # chip for which the kernel is compiled, "" for the default

    @property
    def chip(self) -> str:
        """The chip, "" for the default."""
        return self.target

    def text(self) -> str:
        """Return the source text of the kernel."""
        return self.make(*self.args)

    def compiled(self, *, cpu: bool = False) -> CompiledModule:
        """Return the kernel compiled for the GPU or for the interpreter."""
        return library(self, cpu=cpu)


def library(kernel: RowKernel, *, cpu: bool = False, elsewhere: bool = False) -> CompiledModule:
    """Return a compiled kernel, from the folder ``CUTE_KERNELS``, the compile cache or the compiler.

    ``elsewhere`` compiles it in another process, ``cpu`` for the interpreter.
    """
    text = partial(kernel.make, *kernel.args)
    chip = kernel.chip or None
    return compiled_kernel(kernel.name, text, key=kernel.name, chip=chip, elsewhere=elsewhere, cpu=cpu)


def _assign(target: Array, source: Array) -> None:
    """Copy an array to another one of the same shape and library."""
    target[...] = source


def check_elements(call: str, found: Mapping[str, str], allowed: Sequence[str], others: Sequence[str] = ()) -> None:
    """Raise DtypeError unless the first array has one of the ``allowed`` types, and the following ones the same type.

    Args:
        found: element types of arrays by name.
        others: names of arrays whose type may differ.
    """
    (first, element), *_ = found.items()
    if element not in allowed:
        raise DtypeError(f"{call}: {first} has dtype {element}; it must have one of {', '.join(allowed)}")
    for name, other in found.items():
        if other != element and name not in others:
            raise DtypeError(f"{call}: {name} has dtype {other}; it must have {element}, like {first}")


class RowCall:
    """A call on arrays.  Arrays that are None are absent.

    Args:
        name: name of the function, for errors.
        arrays: arrays by name; the first determines dtype, shape and device of the others.
        device: None for the GPU, "cpu" for the interpreter.
        others: names of arrays whose dtype may differ.
        elements: supported dtypes of the first array.
        stream: stream of the launches.
        run: options of the interpreter; see :func:`cute_dialect.op.functions.gemm.mm`.

    Raises:
        OpError: if an array is not supported.
    """

    def __init__(
        self, name: str, arrays: Mapping[str, Any], device: object = None, others: Sequence[str] = (),
        elements: Sequence[str] = tuple(BITS), *, stream: object = None, run: Interpreted | None = None,
    ) -> None:  # fmt: skip
        self.name, self.arrays = name, dict(arrays)
        self._stream, self._run, device = stream, run or {}, chosen_device(device)
        options: dict[str, Any] = {key: value for key, value in self._run.items() if key != "report"}
        check_options(name, device, options)
        self._where, self.views = read_all(name, arrays, device, stream)
        self.cpu, self.gpu, self._library = self._where.cpu, self._where.gpu, self._where.library
        self.first, self.x = next(iter(self.views.items()))
        self.element = self.x.dtype
        check_elements(name, {key: view.dtype for key, view in self.views.items()}, elements, others)

    # -------------------------------------------------------------------------------------------------------- shapes

    def length(self, dim: int = -1) -> int:
        """Return the length of a row.  Raises ShapeError unless `dim` is the last dimension."""
        rank = len(self.x.shape)
        if rank == 0:
            raise ShapeError(f"{self.name}: {self.first} is a scalar; it must have rank 1 or more")
        if dim not in (-1, rank - 1):
            raise ShapeError(
                f"{self.name}: dim={dim} is not the last dimension, {rank - 1}; pass "
                f"{self.first}.transpose({dim}, -1) and dim=-1"
            )
        return self.x.shape[-1]

    @property
    def count(self) -> int:
        """Number of rows."""
        return prod(self.x.shape[:-1])

    def expect(self, key: str, shape: tuple[int, ...]) -> None:
        """Raise ShapeError if an array is present and has another shape."""
        view = self.views.get(key)
        if view is not None and view.shape != shape:
            raise ShapeError(f"{self.name}: {key} has shape {view.shape}; it must have {shape}")

    # ------------------------------------------------------------------------------------------------------- matrices

    def matrix(self, key: str) -> ArrayView:
        """Return an array as a matrix of its rows, copied if its strides do not allow a view."""
        view = self.views[key]
        found = _as_matrix(view)
        if found is None:
            found = _as_matrix(self._copied(view))
            assert found is not None
        return found

    def aligned_matrix(self, key: str) -> ArrayView:
        """Return an array as a matrix whose rows begin at multiples of 16 bytes, copied if necessary."""
        view, unit = self.matrix(key), 16 // numpy_dtype(self.views[key].dtype).itemsize
        step = view.strides[0]
        if view.pointer % 16 == 0 and (view.shape[0] == 1 or (step > 0 and step % unit == 0)):
            return view if view.shape[0] > 1 else view._replace(strides=(-(-view.shape[1] // unit) * unit, 1))
        return self._copied(view, (-(-view.shape[1] // unit) * unit, 1))

    def native(self, view: ArrayView) -> object:
        """Return a view as an array of the call's library."""
        return self._library.native(view)

    def matrix_of(self, array: Any) -> ArrayView:
        """Return a result as a matrix of its rows."""
        found = _as_matrix(view_of(array))
        assert found is not None
        return found

    def view_of(self, array: Any) -> ArrayView:
        return view_of(array)

    def contiguous(self, view: ArrayView) -> ArrayView:
        """Return a contiguous copy of an array."""
        return self._copied(view)

    def numbers(self, array: Any) -> ArrayView:
        """Return a new result of any shape as a vector."""
        view = view_of(array)
        return view._replace(shape=(prod(view.shape),), strides=(1,))

    def packed_rows(self, *arrays: ArrayView | None) -> list[ArrayView | None] | None:
        """Return matrices as vectors of all their elements, for kernels of packed rows.

        Returns None if those kernels do not support the row length, or if a matrix is not contiguous or not aligned.
        """
        return self.flat_matrices(*arrays) if is_packed_length(self.element, self.x.shape[-1]) else None

    def flat_matrices(self, *arrays: ArrayView | None) -> list[ArrayView | None] | None:
        """Return matrices as vectors of all their elements; None if one is not contiguous, not aligned or too large."""
        if prod(self.x.shape) >= 1 << 30:
            return None
        for view in arrays:
            if view is not None and (view.pointer % 16 or not is_contiguous(view)):
                return None
        return [None if view is None else view._replace(shape=(prod(view.shape),), strides=(1,)) for view in arrays]

    def flat(self, key: str) -> ArrayView:
        """Return an array of any shape as a vector, copied if necessary."""
        view = self.views[key]
        return self.numbers(view if is_contiguous(view) else self._copied(view))

    def indices(self, count: int, shape: Sequence[int]) -> ArrayView:
        """Return the integers below ``count`` as a new i32 array of a shape."""
        return view_of(self._library.indices(self.name, count, self.x).reshape(tuple(shape)))

    def _copied(self, view: ArrayView, strides: tuple[int, ...] | None = None) -> ArrayView:
        """Return a copy, contiguous by default.

        In ``world.run``, a kernel that is queued may compute the array, so it is copied when the next launch begins.
        """
        found, here = self._library.copied(view, strides or _packed(view.shape)), current_rank()
        if here is not None and self.cpu:
            world, rank = here
            target, source = self._library.native(found), self._library.native(view)
            world.check_before(rank, partial(_assign, target, source))
        return found

    def packed(self, key: str) -> ArrayView:
        """Return a contiguous copy of an array."""
        return self._copied(self.views[key])

    def on_host(self, key: str) -> list[Any]:
        """Copy the elements of an array to the host, as a flat list.  Waits for the GPU."""
        return self._library.native(self.views[key]).reshape(-1).tolist()

    def wrong_type(self, key: str, wanted: str) -> DtypeError:
        """Return the error for an array of the wrong dtype."""
        return DtypeError(f"{self.name}: {key} has dtype {self.views[key].dtype}; it must have {wanted}")

    def vector(self, key: str) -> ArrayView | None:
        """Return a contiguous vector aligned to 16 bytes, copied if necessary, or None if it is absent."""
        view = self.views.get(key)
        if view is None:
            return None
        if view.pointer % 16 or view.strides[-1] != 1:
            view = self._copied(view)
        return view._replace(strides=(1,))

    def result(self, shape: Sequence[int], element: str = "", out: str = "") -> Any:
        """Return the array passed as ``out``, or allocate one.  Raises LayoutError."""
        given = self.views.get(out)
        if given is None:
            return self._library.empty(self.name, shape, element or self.element, self.arrays[self.first])
        self.expect(out, tuple(shape))
        if 0 not in given.shape and (_as_matrix(given) is None or 0 in _steps(given)):
            raise LayoutError(
                f"{self.name}: {out} has strides {given.strides}; its rows must be contiguous, at a constant stride"
            )
        return self.arrays[out]

    def ordered_result(self, shape: Sequence[int], order: Sequence[int], element: str = "") -> Any:
        """Allocate a contiguous result with its dimensions in a given memory order, the outermost first."""
        if list(order) == sorted(order):
            return self.result(shape, element)
        steps, step = [0] * len(shape), 1
        for i in reversed(order):
            steps[i], step = step, step * shape[i]
        view = self._library.strided(shape, steps, element or self.element, self.x)
        # Allocate a tensor, not a view: the result of an autograd function could not be written in place as a view.
        return view.keep if view.library == "torch" else self._library.native(view)

    # -------------------------------------------------------------------------------------------------------- launching

    def on(self) -> AbstractContextManager[object]:
        """Make the call's stream current in the arrays' library."""
        if self._stream is None or self.cpu:
            return nullcontext()
        return self._library.on(self._stream, self.gpu)

    def check_gpu(self) -> None:
        """Raise DeviceError if host arrays need a GPU and there is none."""
        if not self.cpu and self.x.device < 0:
            gpu_here(self.name)

    def capability(self) -> tuple[int, int]:
        """Return the compute capability of the GPU.  Raises DeviceError if there is none."""
        return gpu_here(self.name).capability(self.gpu)

    def check_backend(self, backend: Backend) -> None:
        """Raise DeviceError if the call needs a GPU and there is none, or UnsupportedError if it lacks instructions."""
        if not self.cpu:
            backend.check_gpu(self.capability(), self.name)

    def module(self, kernel: RowKernel) -> CompiledModule:
        """Return the compiled kernel for the device of the arrays."""
        return library(kernel, cpu=self.cpu)

    def launch(self, kernel: RowKernel, *given: Any) -> None:
        """Launch a kernel on views, arrays and numbers.  Arguments that are None are dropped."""
        args = tuple([x for x in given if x is not None])
        self.check_gpu()
        self.run(partial(launched, self.module(kernel).kernel(kernel.host)), *args)

    def run(self, kernel: Callable[..., RunReport | None], *given: object) -> None:
        """Launch a compiled kernel on the call's stream, and pass its report on."""
        report = kernel(*given, **options_of(self._where, self._stream, self._run))
        if report is not None and "report" in self._run:
            self._run["report"](report)


def _steps(view: ArrayView) -> list[int]:
    return [step for size, step in zip(view.shape, view.strides) if size > 1]


def _as_matrix(view: ArrayView) -> ArrayView | None:
    """Return an array as the matrix of its rows, or None if they are not contiguous or have no constant stride."""
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


def is_contiguous(view: ArrayView) -> bool:
    """Return True if the elements of an array are consecutive in memory."""
    steps = [step for size, step in zip(view.shape, view.strides) if size != 1]
    return steps == [step for size, step in zip(view.shape, _packed(view.shape)) if size != 1]


def _packed(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of a contiguous array."""
    return tuple([prod(shape[i + 1 :]) for i in range(len(shape))])
