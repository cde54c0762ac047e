"""Arrays of a call: views of torch, numpy, cupy, DLPack and CUDA array interface objects.

Arrays become :class:`~cute_dialect.runtime.arrays.ArrayView` without a copy.  Their library allocates results and
makes the copies that some kernels need.  All arrays of a call belong to one library and one device.  No library is
imported unless the caller has imported it.
"""

# torch and cupy are not installed where types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

from cute_dialect.lang.calls.options import default_device
from cute_dialect.op.arrays.dtypes import torch_name
from cute_dialect.op.errors import DeviceError, DtypeError, LayoutError, OptionError, UnsupportedError
from cute_dialect.runtime import call_options
from cute_dialect.runtime.arrays import ArrayView, NotAnArray, OutsideMemory, numpy_dtype, stream_of, view_of
from cute_dialect.runtime.call_options import device_number

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.op.signature_types import Array
    from cute_dialect.runtime.driver import Driver

__all__ = [
    "Library",
    "Where",
    "aligned_strides",
    "check_options",
    "chosen_device",
    "gpu_here",
    "on_stream",
    "read_all",
]

# --------------------------------------------------------------------------------------------------------- libraries


def aligned_strides(shape: Sequence[int], mode: int, item: int) -> tuple[int, ...]:
    """Return the strides of a matrix or batch with 16-byte aligned lines, contiguous along a mode (1: within rows).

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
    """An array library; this base class supports any library with DLPack or the CUDA array interface."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name

    def empty(self, call: str, shape: Sequence[int], element: str, value: Any) -> Any:
        """Return a new array on the device of ``value``.  Raises UnsupportedError."""
        space = getattr(value, "__array_namespace__", None)
        if space is None:
            raise UnsupportedError(f"{call}: cannot allocate an array of {self.name}; pass out")
        space = space()
        return space.empty(tuple(shape), dtype=getattr(space, torch_name(element)), device=value.device)

    def strided(self, shape: Sequence[int], strides: Sequence[int], element: str, like: ArrayView) -> ArrayView:
        """Return new memory on the device of ``like``.  Raises UnsupportedError."""
        raise UnsupportedError(
            f"cannot copy an array of {self.name} into the layout that the kernel needs; pass arrays that it reads in "
            "place, see op.explain"
        )

    def native(self, view: ArrayView) -> Any:
        """Return an array of the library with the layout of a view, at the address of the array that was read."""
        self.strided((), (), "", view)

    def copied(self, source: ArrayView, strides: Sequence[int], element: str = "") -> ArrayView:
        """Return a copy with other strides, optionally of another type."""
        made = self.strided(source.shape, strides, element or source.dtype, source)
        self.native(made)[...] = self.native(source)
        return made

    def zeros(self, shape: Sequence[int], element: str, like: ArrayView) -> ArrayView:
        """Return a new matrix of zeros with contiguous rows."""
        made = self.strided(shape, aligned_strides(shape, 1, numpy_dtype(element).itemsize), element, like)
        self.clear(made)
        return made

    def indices(self, call: str, count: int, like: ArrayView) -> Any:
        """Return the integers below ``count`` as an i32 array on the device of ``like``.  Raises UnsupportedError."""
        raise UnsupportedError(
            f"{call}: random numbers are not supported for arrays of {self.name}; pass torch, numpy or cupy arrays"
        )

    def random_state(self, call: str, value: Any, name: str = "rng_state") -> Any:
        """Return a new seed and offset, an i64 array (2,) on the device of ``value``.  Raises UnsupportedError.

        Args:
            name: argument of the call that has them, for the message.
        """
        raise UnsupportedError(f"{call}: no random numbers can be drawn for arrays of {self.name}; pass {name}")

    def clear(self, view: ArrayView) -> None:
        """Fill an array with zeros."""
        self.native(view)[...] = 0

    def on(self, stream: object, device: int) -> AbstractContextManager[object]:
        """Return a context manager that makes a stream current."""
        return nullcontext()


class _Torch(Library):
    def empty(self, call: str, shape: Sequence[int], element: str, value: Any) -> Any:
        torch = sys.modules["torch"]
        return torch.empty(tuple(shape), device=value.device, dtype=getattr(torch, torch_name(element)))

    def strided(self, shape: Sequence[int], strides: Sequence[int], element: str, like: ArrayView) -> ArrayView:
        torch = sys.modules["torch"]
        dtype, device = getattr(torch, torch_name(element)), cast(Any, like.keep).device
        return view_of(torch.empty_strided(tuple(shape), tuple(strides), device=device, dtype=dtype))

    def native(self, view: ArrayView) -> Any:
        return cast(Any, view.keep).detach().as_strided(view.shape, view.strides)

    def indices(self, call: str, count: int, like: ArrayView) -> Any:
        torch = sys.modules["torch"]
        return torch.arange(count, dtype=torch.int32, device=cast(Any, like.keep).device)

    def random_state(self, call: str, value: Any, name: str = "rng_state") -> Any:
        return sys.modules["torch"].randint(1 << 62, (2,), device=value.device)

    def clear(self, view: ArrayView) -> None:
        self.native(view).zero_()

    def on(self, stream: object, device: int) -> AbstractContextManager[object]:
        torch = sys.modules["torch"]
        if not isinstance(stream, torch.cuda.Stream):
            stream = torch.cuda.ExternalStream(stream_of(stream), device=device)
        return torch.cuda.stream(stream)


class _Numpy(Library):
    """numpy, and cupy, which has the same interface."""

    def empty(self, call: str, shape: Sequence[int], element: str, value: Any) -> Any:
        with nullcontext() if self.name == "numpy" else value.device:
            return self._module().empty(tuple(shape), dtype=numpy_dtype(element))

    def strided(self, shape: Sequence[int], strides: Sequence[int], element: str, like: ArrayView) -> ArrayView:
        size = 0 if 0 in shape else sum((n - 1) * step for n, step in zip(shape, strides)) + 1
        flat = view_of(self.empty("", (max(1, size),), element, like.keep))
        return view_of(self.native(flat._replace(shape=tuple(shape), strides=tuple(strides))))

    def indices(self, call: str, count: int, like: ArrayView) -> Any:
        with nullcontext() if self.name == "numpy" else cast(Any, like.keep).device:
            return self._module().arange(count, dtype="int32")

    def random_state(self, call: str, value: Any, name: str = "rng_state") -> Any:
        with nullcontext() if self.name == "numpy" else value.device:
            return self._module().random.randint(0, 1 << 62, 2, dtype="int64")

    def native(self, view: ArrayView) -> Any:
        keep = cast(Any, view.keep)
        steps = tuple([step * keep.dtype.itemsize for step in view.strides])
        # numpy cannot read the type code of 8-bit ml_dtypes (``<f1``), so the view is strided as bytes.
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


def scalar(call: str, name: str, number: float, value: Array) -> Array:
    """Return a number as an f32 array () of the library and device of ``value``, or None if that is not an array.

    Args:
        call, name: the function and the argument, for errors.
    """
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return torch.full((), number, dtype=torch.float32, device=value.device)
    try:
        found = _library(view_of(value), value)
    except NotAnArray:
        return None
    if not isinstance(found, _Numpy):
        raise UnsupportedError(f"{call}: {name} is a number; pass an f32 array of {found}")
    made = found.empty(call, (), "f32", value)
    made[...] = number
    return made


def random_state(call: str, value: Any, name: str = "rng_state") -> Any:
    """Return a new seed and offset, an i64 array (2,), from the default generator of an array's library and device.

    Return None if ``value`` is not an array, which the call reports.

    ``torch.manual_seed`` determines those of tensors, also in captured CUDA graphs, which draw new ones at each replay.

    Args:
        call: name of the function, for errors.
        value: an array of the call.
        name: argument of the call that has the seed.
    """
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return _Torch("torch").random_state(call, value)
    try:
        found = _library(view_of(value), value)
    except NotAnArray:
        return None
    return found.random_state(call, value, name)


def on_stream(view: ArrayView, stream: object) -> AbstractContextManager[object]:
    """Return a context manager that makes a stream torch's current one, so that new tensors belong to it.

    It does nothing if the array is not a torch tensor or there is no stream.
    """
    return _Torch("torch").on(stream, view.device) if stream is not None and view.library == "torch" else nullcontext()


# ------------------------------------------------------------------------------------------------------------ reading


class Where(NamedTuple):
    """The device and the array library of a call."""

    device: int | Literal["cpu"] | None  # as a kernel takes it; None: the GPU of the arrays
    library: Library
    cpu: bool  # the call runs on the interpreter
    gpu: int  # 0 for arrays that are copied to the GPU


def gpu_here(call: str = "") -> Driver:
    """Return the driver.  Raises DeviceError if there is no GPU, before anything is compiled or copied.

    Args:
        call: name of the calling function, for the message.
    """
    from cute_dialect.runtime.driver import NoGpuError, driver

    try:
        return driver()
    except NoGpuError:
        who = f"{call}: " if call else ""
        raise DeviceError(f'{who}no GPU was found; pass device="cpu" to run on the interpreter') from None


def chosen_device(device: Any) -> Any:
    """Return the device of a call: ``"cpu"`` if none is given and ``CUTE_DEVICE=cpu`` is set, else the given one."""
    return "cpu" if device is None and default_device() == "cpu" else device


def is_autocast(x: object) -> bool:
    """Return True within ``torch.autocast`` for the device of a torch tensor; False for other arrays."""
    torch: Any = sys.modules.get("torch")
    if torch is None or not isinstance(x, torch.Tensor):
        return False
    device = cast(Any, x).device.type
    return device in ("cuda", "cpu") and torch.is_autocast_enabled(device)


def check_options(call: str, device: object, options: Mapping[str, object]) -> None:
    """Check the device and the options of the interpreter.  Raises OptionError, whose message names the call."""
    try:
        call_options.check_options({**options, "device": "gpu" if device is None else device})
    except call_options.OptionError as e:
        raise OptionError(f"{call}: {e.args[0]}") from None


def is_compiling() -> bool:
    """Return True while torch.compile or torch.export traces a call."""
    torch = sys.modules.get("torch")
    return torch is not None and torch.compiler.is_compiling()


def break_graph(call: str) -> None:
    """Break the graph of torch.compile at a function, which ``fullgraph=True`` reports."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.compiler.is_compiling():
        torch._dynamo.graph_break(msg=f"{call} is not supported in a graph; call it before torch.compile")


def call_operator(
    call: str, compute: Callable[[], Any], x: Any, device: object = None, stream: object = None,
    run: Mapping[str, object] | None = None, name: str = "x",
) -> Any:  # fmt: skip
    """Call a torch operator for a function of ``op``, whose options it checks.

    Operators run on the device of their tensors, and have no options of the interpreter.  Tensors on the CPU need
    ``device="cpu"``, as in calls without operators.

    Args:
        call: name of the function, for errors.
        compute: calls the operator.
        x: a tensor of the call.
        device, stream, run: arguments of the function.
        name: name of ``x``, for errors.

    Raises:
        UnsupportedError: if there are options of the interpreter.
        OptionError, DeviceError: if the device or the stream is invalid.
    """
    refuse_options(call, run or {})
    if device is not None:
        check_options(call, device, {})
    if device is not None or x.is_cpu:
        # Tensors of torch.vmap have a device, but no memory.
        place = ArrayView(0, (), (), "", x.device.index if x.is_cuda else -1, "torch", x)
        where = chosen_device(device)
        _check_place(call, name, place, None if where is None else device_number(where))
    with operator_stream(call, stream, x):
        return compute()


_REFUSED = (
    "is not supported with gradients, torch.compile or torch.vmap; omit it, or call under torch.no_grad() with plain "
    "tensors"
)


def refuse_options(call: str, options: Mapping[str, object], reason: str = _REFUSED) -> None:
    """Raise UnsupportedError for an option that is not None, because torch operators do not have it."""
    for name, given in options.items():
        if given is not None:
            raise UnsupportedError(f"{call}: {name} {reason}")


def operator_stream(call: str, stream: object, x: Any) -> AbstractContextManager[object]:
    """Make a stream current for torch operators on a tensor.  Raises OptionError."""
    if stream is None:
        return nullcontext()
    torch = sys.modules["torch"]
    if torch.compiler.is_compiling() and isinstance(stream, torch.cuda.Stream):
        return torch.cuda.stream(stream)
    stream_handle(call, stream)
    return _Torch("torch").on(stream, x.device.index) if x.is_cuda else nullcontext()


def stream_handle(call: str, stream: object) -> int:
    """Return the driver handle of a stream.  Raises OptionError."""
    try:
        return stream_of(stream)
    except TypeError as e:
        raise OptionError(f"{call}: {e}") from None


_REQUIRED = frozenset(("a", "b", "x", "f", "grad_y", "q", "k", "v", "target"))
"""Names of operands that no call can leave out."""


def read_all(
    call: str, arrays: Mapping[str, Any], device: object = None, stream: object = None
) -> tuple[Where, dict[str, ArrayView]]:
    """Return the device of a call and views of its arrays that are not None.

    Raises DtypeError if an argument is not an array or a required one is None, and LayoutError if it has no strides.
    Raises DeviceError if arrays belong to several libraries or devices, or are not on ``device``.
    """
    where = None if device is None else device_number(device)
    raw = 0 if stream is None else stream_handle(call, stream)
    views: dict[str, ArrayView] = {}
    first = library = None
    for name, value in arrays.items():
        if value is None:
            if name in _REQUIRED or name.startswith("argument "):
                raise DtypeError(f"{call}: {name} is None; pass an array")
            continue
        view = views[name] = _read(call, name, value, raw)
        found = _library(view, value)
        if library is None or first is None:
            first, library = name, found
        elif found.name != library.name:
            raise DeviceError(
                f"{call}: {name} is an array of {found}, but {first} is one of {library}; pass arrays of one library"
            )
        elif view.device != views[first].device:
            raise DeviceError(
                f"{call}: {name} is on {_place(view)}, but {first} is on {_place(views[first])}; "
                "move both to one device"
            )
        _check_place(call, name, view, where)
    assert first is not None and library is not None
    gpu = views[first].device if views[first].device >= 0 else where if isinstance(where, int) else 0
    return Where(where, library, where == "cpu", gpu), views


def _read(call: str, name: str, value: Any, stream: int) -> ArrayView:
    layout = getattr(value, "layout", None)
    if layout is not None and type(value).__module__.partition(".")[0] == "torch" and "strided" not in str(layout):
        raise LayoutError(f"{call}: {name} is a tensor of {layout}; pass a strided tensor")
    try:
        return view_of(value, stream)
    except NotAnArray as e:
        error = LayoutError if isinstance(e, OutsideMemory) else DtypeError
        raise error(f"{call}: {name}: {e}") from None


def _place(view: ArrayView) -> str:
    return "the CPU" if view.device < 0 else f"cuda:{view.device}"


def _check_place(call: str, name: str, view: ArrayView, where: int | Literal["cpu"] | None) -> None:
    """Raise DeviceError if kernels on ``where`` cannot access an array."""
    if where == "cpu":
        if view.device >= 0:
            raise DeviceError(
                f'{call}: {name} is on {_place(view)}, but device="cpu" (or CUTE_DEVICE=cpu) selects the interpreter; '
                f'move {name} to the CPU, or pass device="gpu"'
            )
    elif view.device < 0 and view.library != "numpy":
        if not is_compiling():
            gpu_here(call)
        raise DeviceError(
            f"{call}: {name} is on the CPU; move it to a GPU with {name}.cuda(), "
            'or pass device="cpu" to run on the interpreter'
        )
    elif view.device >= 0 and where is not None and view.device != where:
        raise DeviceError(
            f"{call}: {name} is on {_place(view)}, but device is cuda:{where}; move {name}, or omit device"
        )
