"""Torch for a program that expects a GPU while kernels run on the interpreter: its tensors are on the CPU.

It uses two public means of torch and modifies nothing in torch. :func:`on_cpu` is a mode
(``torch.overrides.TorchFunctionMode``) in which functions called with ``device="cuda"`` use ``"cpu"``. The module
:class:`TorchOnCpu` has every name of torch but its own ``cuda``: one device, whose streams do nothing and whose events
read the host's clock.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, nullcontext
from functools import wraps
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

from cute_dialect.lang.calls.options import current_target

if TYPE_CHECKING:
    import torch


class Address(int):
    """The address of a tensor's memory, with a reference to the tensor. The interpreter cannot read plain addresses."""

    array: Any


class Event:
    """Stand-in for ``torch.cuda.Event`` that reads the host's clock."""

    def __init__(self, enable_timing: bool = False, **_: object):
        self.time = 0.0

    def record(self, stream: object = None) -> None:
        self.time = time.perf_counter()

    def elapsed_time(self, end: Event) -> float:
        """Return the milliseconds from this event to ``end``."""
        return 1e3 * (end.time - self.time)

    def synchronize(self) -> None:
        """Do nothing."""

    wait = synchronize

    def query(self) -> bool:
        """Return True: recorded work is always complete."""
        return True


class Stream:
    """Stand-in for ``torch.cuda.Stream``; work on it completes at once."""

    cuda_stream = 0

    def __init__(self, *_: object, **__: object):
        pass

    def synchronize(self) -> None:
        """Do nothing."""

    def wait_stream(self, stream: object) -> None:
        """Do nothing."""

    def wait_event(self, event: object) -> None:
        """Do nothing."""

    def record_event(self, event: Event | None = None) -> Event:
        """Record and return an event."""
        event = event or Event()
        event.record()
        return event


class Graph:
    """Stand-in for ``torch.cuda.CUDAGraph``, which replays calls of kernels."""

    def __init__(self, keep_graph: bool = False):
        self.calls: list[Callable[[], object]] = []

    def replay(self) -> None:
        """Run the recorded calls."""
        for call in self.calls:
            call()

    def reset(self) -> None:
        """Remove the recorded calls."""
        self.calls = []


class CudaOnCpu(ModuleType):
    """``torch.cuda`` of a machine whose only device is the interpreter: sm_90a, without memory of its own."""

    CUDAGraph = Graph
    Event = Event
    Stream = Stream

    def __init__(self) -> None:
        super().__init__("torch.cuda", CudaOnCpu.__doc__)
        self._stream = Stream()

    def is_available(self) -> bool:
        """Return True: kernels can run."""
        return True

    is_initialized = is_available

    def device_count(self) -> int:
        return 1

    def current_device(self) -> int:
        return 0

    def get_device_name(self, device: object = None) -> str:
        return "CPU interpreter"

    def get_device_capability(self, device: object = None) -> tuple[int, int]:
        """Return the compute capability of the target."""
        number = current_target().removeprefix("sm_").rstrip("abcdefghijklmnopqrstuvwxyz")
        return int(number[:-1]), int(number[-1])

    def get_device_properties(self, device: object = None) -> Any:
        """Return the properties of the device; the number of SMs and the memory are those of an H100."""
        major, minor = self.get_device_capability()
        return SimpleNamespace(
            name=self.get_device_name(), major=major, minor=minor, multi_processor_count=132, total_memory=80 << 30,
            L2_cache_size=50 << 20, warp_size=32,
        )  # fmt: skip

    def synchronize(self, device: object = None) -> None:
        """Do nothing; calls of the interpreter return when they are complete."""

    empty_cache = reset_peak_memory_stats = set_device = init = synchronize

    def manual_seed(self, seed: int) -> None:
        """Seed the CPU generator of torch."""
        import torch

        torch.manual_seed(seed)

    manual_seed_all = manual_seed

    def memory_allocated(self, device: object = None) -> int:
        return 0

    max_memory_allocated = memory_reserved = memory_allocated

    def current_stream(self, device: object = None) -> Stream:
        """Return the only stream."""
        return self._stream

    default_stream = current_stream

    def stream(self, stream: object) -> Any:
        """Return a context manager that does nothing."""
        return nullcontext(stream)

    @contextmanager
    def graph(self, cuda_graph: Graph, **_: object) -> Generator[None]:
        """Record the calls of kernels in the ``with`` block in a graph. Functions of torch are refused there."""
        from cute_dialect.lang.calls.compiled import recorded_calls  # late: start-up

        with recorded_calls() as calls:
            yield
        cuda_graph.calls = calls

    def device(self, device: object) -> Any:
        """Return a context manager that does nothing."""
        return nullcontext(device)

    def __getattr__(self, name: str) -> Any:
        import torch

        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(torch.cuda, name)
        if callable(found) and not isinstance(found, type):
            raise NotImplementedError(f"torch.cuda.{name} needs a GPU, but this program runs on the interpreter")
        return found


class LibraryOnCpu(ModuleType):
    """``torch.library`` whose operators run in the mode of :func:`on_cpu`, which torch leaves before it calls them."""

    def __init__(self) -> None:
        super().__init__("torch.library", LibraryOnCpu.__doc__)

    def custom_op(self, name: str, fn: Callable[..., Any] | None = None, /, **options: Any) -> Any:
        """Register a function as an operator; without ``fn`` return a decorator."""
        import torch

        kinds = options.get("device_types")
        if kinds is not None:
            options["device_types"] = [
                "cpu" if k == "cuda" else k for k in ([kinds] if isinstance(kinds, str) else kinds)
            ]

        def make(function: Callable[..., Any]) -> Any:
            @wraps(function)
            def inside(*args: Any, **kwargs: Any) -> Any:
                with on_cpu():
                    return function(*args, **kwargs)

            return torch.library.custom_op(name, inside, **options)

        return make if fn is None else make(fn)

    def __getattr__(self, name: str) -> Any:
        import torch

        return getattr(torch.library, name)


class TorchOnCpu(ModuleType):
    """``torch`` with :class:`CudaOnCpu` as ``cuda``."""

    def __init__(self) -> None:
        super().__init__("torch", TorchOnCpu.__doc__)
        self.cuda = CudaOnCpu()
        self.library = LibraryOnCpu()

    def __getattr__(self, name: str) -> Any:
        import torch

        return getattr(torch, name)

    def __dir__(self) -> list[str]:
        import torch

        return dir(torch)


def _is_cuda(device: object) -> bool:
    return str(device).partition(":")[0] == "cuda" or (isinstance(device, int) and not isinstance(device, bool))


def _refuse_in_graph(func: Callable[..., object], args: Sequence[object], result: object) -> None:
    """Raise NotImplementedError if a function of torch, called while a graph is recorded, computes a tensor."""
    import torch

    name = getattr(func, "__name__", str(func))
    if not isinstance(result, torch.Tensor):
        return
    held = {a.untyped_storage().data_ptr() for a in args if isinstance(a, torch.Tensor)}
    writes = name.endswith("_") and not name.endswith("__")
    if writes or result.untyped_storage().data_ptr() not in held:
        raise NotImplementedError(
            f"torch.cuda.graph: torch.{name} in a graph is not supported on the interpreter, which records calls of "
            "kernels only; call it before the graph"
        )


@contextmanager
def on_cpu() -> Generator[None]:
    """Context manager in which torch functions that are called with a CUDA device use the CPU."""
    import torch
    from torch.overrides import TorchFunctionMode  # pyright: ignore[reportMissingModuleSource]

    to: Any = torch.Tensor.to
    is_cuda: Any = torch.Tensor.is_cuda.__get__  # pyright: ignore[reportAttributeAccessIssue]
    device_of: Any = torch.Tensor.device.__get__  # pyright: ignore[reportAttributeAccessIssue]

    from cute_dialect.lang.calls.compiled import is_recording  # late: start-up

    class OnCpu(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = dict(kwargs or {})
            if "device" in kwargs and kwargs["device"] is not None and _is_cuda(kwargs["device"]):
                kwargs["device"] = "cpu"
            if func is torch.Tensor.cuda or func is torch.Tensor.pin_memory:
                return args[0]
            if func is to:
                args = tuple("cpu" if isinstance(a, str | torch.device) and _is_cuda(a) else a for a in args)
            if func == is_cuda:
                return True
            if func == device_of:
                return torch.device("cuda", 0)
            kwargs.pop("pin_memory", None)
            if func is torch.Tensor.data_ptr:
                found = Address(func(*args, **kwargs))
                is_packed = getattr(torch, "float4_e2m1fn_x2", None) is args[0].dtype  # two elements per byte
                found.array = args[0].view(torch.uint8) if is_packed else args[0]
                return found
            if func is torch._scaled_mm and args[2].dtype in (torch.float8_e8m0fnu, torch.float8_e4m3fn):
                a, b, scale_a, scale_b = args[:4]
                return block_scaled_mm(a, b, scale_a, scale_b).to(kwargs.get("out_dtype") or torch.bfloat16)
            result = func(*args, **kwargs)
            if is_recording():
                _refuse_in_graph(func, args, result)
            return result

    with OnCpu():
        yield


def block_scaled_mm(a: torch.Tensor, b: torch.Tensor, scale_a: torch.Tensor, scale_b: torch.Tensor) -> torch.Tensor:
    """Return ``torch._scaled_mm`` with block scales, which torch has on GPUs only, in float64.

    Args:
        a, b: (M, K) and (K, N), 8-bit floats or packed 4-bit floats.
        scale_a, scale_b: scales in blocks of 128 rows x 4, for 32 elements along K, or for 16 of 4-bit floats.
    """
    return _scaled_values(a, scale_a) @ _scaled_values(b.t(), scale_b).t()


def _scaled_values(matrix: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """Return a matrix (rows, K) times its scales, in float64."""
    import torch

    if matrix.dtype is torch.float4_e2m1fn_x2:
        positive = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6], dtype=torch.float64)
        codes = matrix.contiguous().view(torch.uint8).long()
        values = torch.cat((positive, -positive))[torch.stack((codes & 15, codes >> 4), -1).flatten(1)]
    else:
        values = matrix.double()
    rows, k = values.shape
    vector = 32 if matrix.dtype is not torch.float4_e2m1fn_x2 or scales.dtype is torch.float8_e8m0fnu else 16
    blocks = scales.view(torch.uint8).reshape(-(-rows // 128), -(-k // vector // 4), 32, 4, 4)
    plain = blocks.permute(0, 3, 2, 1, 4).reshape(blocks.shape[0] * 128, -1)[:rows, : -(-k // vector)]
    return values * plain.contiguous().view(scales.dtype).double().repeat_interleave(vector, 1)[:, :k]


def import_with(python: Callable[..., Any]) -> Callable[..., Any]:
    """Return an ``__import__`` function for a program, in which torch is :class:`TorchOnCpu`.

    ``python`` imports all other modules.
    """
    made: list[TorchOnCpu] = []

    def importing(name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:
        found = python(name, globals, locals, fromlist, level)
        if level or name.partition(".")[0] != "torch":
            return found
        if not made:
            made.append(TorchOnCpu())
        if found.__name__ == "torch":
            return made[0]
        return {"torch.cuda": made[0].cuda, "torch.library": made[0].library}.get(found.__name__, found)

    return importing
