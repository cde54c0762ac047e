"""The arrays of a call: of one library, in one place, read as they lie; and what their library does to them.

torch tensors, numpy arrays, cupy's, and whatever else speaks DLPack or the CUDA array interface become
:class:`~cute_dialect.runtime.arrays.ArrayView`; a library only allocates results and makes the copies that no kernel
can do without.  No library is imported that the caller has not imported.
"""

# torch and cupy are not there where the types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

from cute_dialect.op.dtypes import torch_name
from cute_dialect.op.errors import DeviceError, DtypeError, LayoutError, UnsupportedError
from cute_dialect.runtime.arrays import ArrayView, NotAnArray, OutsideMemory, numpy_dtype, stream_of, view_of
from cute_dialect.runtime.call_options import device_number

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.runtime.driver import Driver

__all__ = ["Library", "Where", "aligned_strides", "gpu_here", "on_stream", "read_all"]

# --------------------------------------------------------------------------------------------------------- libraries


def aligned_strides(shape: Sequence[int], mode: int, item: int) -> tuple[int, ...]:
    """Return strides of a matrix (or batch) that TMA reads, contiguous along a mode (1: rows), without gaps but that.

    >>> aligned_strides((3, 5, 7), 1, 2), aligned_strides((5, 7), 0, 4)
    ((40, 8, 1), (1, 8))
    """
    unit = max(1, 16 // item)
    rows, columns = shape[-2:]
    line, lines = (columns, rows) if mode == 1 else (rows, columns)
    step = -(-line // unit) * unit
    inner = (step, 1) if mode == 1 else (1, step)
    return inner if len(shape) == 2 else (step * lines, *inner)


class Library:
    """A library of arrays; this one is any that has DLPack or the CUDA array interface, and can do no more."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name

    def empty(self, call: str, shape: Sequence[int], element: str, value: Any) -> Any:
        """Return a new array beside ``value``.  Raises UnsupportedError."""
        space = getattr(value, "__array_namespace__", None)
        if space is None:
            raise UnsupportedError(f"{call}: expected out, as nothing is known that makes arrays of {self.name}")
        space = space()
        return space.empty(tuple(shape), dtype=getattr(space, torch_name(element)), device=value.device)

    def strided(self, shape: Sequence[int], strides: Sequence[int], element: str, like: ArrayView) -> ArrayView:
        """Return new memory beside ``like``.  Raises UnsupportedError."""
        raise UnsupportedError(
            "expected matrices that a kernel reads in place (see op.explain), as nothing is known that copies arrays "
            f"of {self.name}"
        )

    def native(self, view: ArrayView) -> Any:
        """Return the library's array that lies as a view says, whose address is that of the array it was read of."""
        self.strided((), (), "", view)

    def copied(self, source: ArrayView, strides: Sequence[int], element: str = "") -> ArrayView:
        """Return a copy with other strides, and of another type perhaps."""
        made = self.strided(source.shape, strides, element or source.dtype, source)
        self.native(made)[...] = self.native(source)
        return made

    def zeros(self, shape: Sequence[int], element: str, like: ArrayView) -> ArrayView:
        """Return a new matrix of zeros, contiguous along rows."""
        made = self.strided(shape, aligned_strides(shape, 1, numpy_dtype(element).itemsize), element, like)
        self.clear(made)
        return made

    def indices(self, count: int, like: ArrayView) -> Any:
        """Return the integers below ``count`` as an array of i32 beside ``like``.  Raises UnsupportedError."""
        raise UnsupportedError(f"random numbers need arrays of torch, numpy or cupy, got arrays of {self.name}")

    def clear(self, view: ArrayView) -> None:
        """Write zeros."""
        self.native(view)[...] = 0

    def on(self, stream: object, device: int) -> AbstractContextManager[object]:
        """Make a stream the current one."""
        return nullcontext()


class _Torch(Library):
    """torch."""

    def empty(self, call: str, shape: Sequence[int], element: str, value: Any) -> Any:
        torch = sys.modules["torch"]
        return torch.empty(tuple(shape), device=value.device, dtype=getattr(torch, torch_name(element)))

    def strided(self, shape: Sequence[int], strides: Sequence[int], element: str, like: ArrayView) -> ArrayView:
        torch = sys.modules["torch"]
        dtype, device = getattr(torch, torch_name(element)), cast(Any, like.keep).device
        return view_of(torch.empty_strided(tuple(shape), tuple(strides), device=device, dtype=dtype))

    def native(self, view: ArrayView) -> Any:
        return cast(Any, view.keep).detach().as_strided(view.shape, view.strides)

    def indices(self, count: int, like: ArrayView) -> Any:
        torch = sys.modules["torch"]
        return torch.arange(count, dtype=torch.int32, device=cast(Any, like.keep).device)

    def clear(self, view: ArrayView) -> None:
        self.native(view).zero_()

    def on(self, stream: object, device: int) -> AbstractContextManager[object]:
        torch = sys.modules["torch"]
        if not isinstance(stream, torch.cuda.Stream):
            stream = torch.cuda.ExternalStream(stream_of(stream), device=device)
        return torch.cuda.stream(stream)


class _Numpy(Library):
    """numpy; and cupy, which is like it."""

    def empty(self, call: str, shape: Sequence[int], element: str, value: Any) -> Any:
        with nullcontext() if self.name == "numpy" else value.device:
            return self._module().empty(tuple(shape), dtype=numpy_dtype(element))

    def strided(self, shape: Sequence[int], strides: Sequence[int], element: str, like: ArrayView) -> ArrayView:
        size = 0 if 0 in shape else sum((n - 1) * step for n, step in zip(shape, strides)) + 1
        flat = view_of(self.empty("", (max(1, size),), element, like.keep))
        return view_of(self.native(flat._replace(shape=tuple(shape), strides=tuple(strides))))

    def indices(self, count: int, like: ArrayView) -> Any:
        with nullcontext() if self.name == "numpy" else cast(Any, like.keep).device:
            return self._module().arange(count, dtype="int32")

    def native(self, view: ArrayView) -> Any:
        keep = cast(Any, view.keep)
        steps = tuple([step * keep.dtype.itemsize for step in view.strides])
        # As numpy describes bytes of ml_dtypes (``<f1``) it cannot read them: they are strided as bytes.
        plain = keep.view("u1") if keep.dtype.itemsize == 1 else keep
        return self._module().lib.stride_tricks.as_strided(plain, view.shape, steps).view(keep.dtype)

    def on(self, stream: object, device: int) -> AbstractContextManager[object]:
        if self.name == "numpy":
            return nullcontext()
        return self._module().cuda.ExternalStream(stream_of(stream), device)

    def _module(self) -> Any:
        return sys.modules[self.name]


def _library(view: ArrayView, value: object) -> Library:
    """Return the library of an array."""
    name = type(value).__module__.partition(".")[0]
    if view.library == "torch":
        return _Torch("torch")
    if view.library == "numpy" or name == "cupy":
        return _Numpy("numpy" if view.library == "numpy" else "cupy")
    return Library(name if name != "builtins" else type(value).__name__)


def on_stream(view: ArrayView, stream: object) -> AbstractContextManager[object]:
    """Make a stream the current one of torch, whose new memory is then the stream's, where an array is torch's."""
    return _Torch("torch").on(stream, view.device) if stream is not None and view.library == "torch" else nullcontext()


# ------------------------------------------------------------------------------------------------------------ reading


class Where(NamedTuple):
    """Where a call is computed: ``device`` as a kernel takes it (None: the GPU where the arrays are), the library of
    its arrays, whether it is the interpreter, and the GPU (0 for arrays that are copied there).
    """

    device: int | Literal["cpu"] | None
    library: Library
    cpu: bool
    gpu: int


def gpu_here(call: str = "") -> Driver:
    """Return the driver of the GPUs here; ``call``: who asks.  Raises DeviceError where there is none, before anything
    is compiled or copied.
    """
    from cute_dialect.runtime.driver import NoGpuError, driver

    try:
        return driver()
    except NoGpuError:
        who = f"{call}: " if call else ""
        raise DeviceError(f'{who}no GPU here: device="cpu" runs it on the interpreter') from None


def read_all(
    call: str, arrays: Mapping[str, Any], device: object = None, stream: object = None
) -> tuple[Where, dict[str, ArrayView]]:
    """Read the arrays of a call, those that are not None, and say where it is computed.

    Raises DtypeError for what is no array, LayoutError for what has no strides, and DeviceError where arrays are of
    several libraries or in several places, or not where ``device`` says.
    """
    where = None if device is None else device_number(device)
    raw = 0 if stream is None else stream_of(stream)
    views: dict[str, ArrayView] = {}
    first = library = None
    for name, value in arrays.items():
        if value is None:
            continue
        view = views[name] = _read(call, name, value, raw)
        found = _library(view, value)
        if library is None or first is None:
            first, library = name, found
        elif found.name != library.name:
            raise DeviceError(f"{call}: expected {name} of {library}, as {first}, got an array of {found}")
        elif view.device != views[first].device:
            raise DeviceError(
                f"{call}: expected {name} on {_place(views[first])}, as {first}, got one on {_place(view)}"
            )
        _check_place(call, name, view, where)
    assert first is not None and library is not None
    gpu = views[first].device if views[first].device >= 0 else where if isinstance(where, int) else 0
    return Where(where, library, where == "cpu", gpu), views


def _read(call: str, name: str, value: Any, stream: int) -> ArrayView:
    layout = getattr(value, "layout", None)
    if layout is not None and type(value).__module__.partition(".")[0] == "torch" and "strided" not in str(layout):
        raise LayoutError(f"{call}: expected {name} with strides, got a tensor of {layout}")
    try:
        return view_of(value, stream)
    except NotAnArray as e:
        error = LayoutError if isinstance(e, OutsideMemory) else DtypeError
        raise error(f"{call}: {name}: {e}") from None


def _place(view: ArrayView) -> str:
    return "the CPU" if view.device < 0 else f"cuda:{view.device}"


def _check_place(call: str, name: str, view: ArrayView, where: int | Literal["cpu"] | None) -> None:
    """Check that a kernel on ``where`` reaches an array."""
    if where == "cpu":
        if view.device >= 0:
            raise DeviceError(f'{call}: expected {name} on the CPU for device="cpu", got one on {_place(view)}')
    elif view.device < 0 and view.library != "numpy":
        gpu_here(call)
        raise DeviceError(
            f"{call}: expected {name} on a GPU, got one on the CPU: {name}.cuda() is there, "
            'device="cpu" runs it on the interpreter'
        )
    elif view.device >= 0 and where is not None and view.device != where:
        raise DeviceError(f"{call}: expected {name} on cuda:{where}, as device says, got one on {_place(view)}")
