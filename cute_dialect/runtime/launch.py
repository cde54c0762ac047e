"""Compiled modules and their callable kernels.

    module = load("build/add")                       # or compile(...)
    add = module.kernel("add")
    add(a, b, c)                                     # torch or CuPy tensors, on their current stream
    add(a, b, c, stream=s)                           # numpy arrays are copied to the GPU and back
    add(a, b, c, device="cpu")                       # the interpreter; numpy arrays or CPU tensors
    call = add.bind(a, b, c); call(); call(stream)   # checked once, then only launched

A call binds the arguments to the parameters of the host function and evaluates its program.  Each launch uses the
first kernel variant whose type constraints hold; the launches run in order on one stream.  If no variant fits, or TMA
does not support an array, the launch's fallback runs, or else the fallback of the host function.

Prepared launches are cached by shapes, strides, types and alignment.  A cached call on a GPU writes the addresses into
its parameter buffers, encodes tensor maps for new addresses, and launches; on the interpreter it runs the cached plans.
Calls with torch tensors are recognized by generated code (:mod:`cute_dialect.runtime.fast_call`).  The launcher needs
the driver and numpy or torch, but neither xDSL nor MLIR.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from importlib import import_module
from math import prod
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypedDict, TypeVar, cast

from cute_dialect.runtime import driver as cuda
from cute_dialect.runtime.arrays import ArrayView, stream_of
from cute_dialect.runtime.artifact import Artifact, CodeObject, save_artifact
from cute_dialect.runtime.bound_call import BoundCall, Ready
from cute_dialect.runtime.call_options import check_options, device_number, dim3, shared_bytes
from cute_dialect.runtime.fast_call import (
    MISSING,
    Constants,
    Otherwise,
    QuickCall,
    address_call,
    number_key,
    quick_call,
    torch_key,
)
from cute_dialect.runtime.host_memory import Staged
from cute_dialect.runtime.launch_plan import (
    LATER,
    Arguments,
    DeviceError,
    LaunchError,
    Plan,
    ShapeOverrides,
    Target,
    find_target,
    only,
    prepare,
    read_arguments,
)
from cute_dialect.runtime.manifest import Manifest, Param, required_alignment
from cute_dialect.runtime.settings import missing_package

if TYPE_CHECKING:  # pragma: no cover
    from pathlib import Path
    from typing import Unpack

    from cute_dialect.interp import Progress, RunReport

__all__ = ["CompiledModule", "Kernel"]

_CACHE_LIMIT = 256
_RECENT = 4
"""Number of recent specializations that are tried by comparison before the cache lookup.

A kernel often alternates between a few shapes, and a failed comparison ends early.
"""
_RUN_ON_CPU = "cute_dialect.pipelines.cpu:run_on_cpu"
_READ_BASE_IR = "cute_dialect.pipelines.compiler:parse_module"
"""Functions of the interpreter by name.  They need xDSL, which a machine that only launches kernels may lack."""
_T = TypeVar("_T")
Lowered: TypeAlias = Callable[[str | None], object]
"""Builds the lowered xDSL module, or the part that the named kernel needs."""


class CallOptions(TypedDict, total=False):
    """Keyword options of a kernel call; see :class:`KernelCall`."""

    grid: Sequence[int] | None
    block: Sequence[int] | None
    smem: int | None
    device: str | int
    checks: Sequence[str] | str | None
    reports: Sequence[str]
    schedule: str
    seed: int
    max_steps: int | None
    resident: int | None
    blocks: Sequence[int] | str | None
    progress: Callable[[Progress], None] | None
    unwritten: Sequence[str]
    field: object


class KernelCall(Protocol):
    """Signature of a kernel call."""

    def __call__(self, *args: object, stream: object = None, **options: Unpack[CallOptions]) -> RunReport | None:
        """Launch on ``args``.

        On arrays in GPU memory, the call returns at once.  With numpy arrays, it waits and copies the results back;
        arrays that share memory share their copy, and read-only arrays may be inputs.

        Args:
            stream: a stream of torch, CuPy or cuda-python, or its handle; default: the current
                stream of the arrays' library.
            grid, block, smem: override the host function; ``smem`` in bytes.
            device: ``"gpu"``, the number of a GPU, or ``"cpu"`` (the interpreter, which returns its report).

        Only with ``device="cpu"``:
            checks: race, oob, uninit, sync, strict, as ``"race,sync"`` or a tuple; or all, auto, none.  Default:
                ``CUTE_CHECKS``, or none if it is not set.
            reports: banks, coalescing, occupancy, timeline, flops.
            schedule, seed: order of the warps.
            max_steps: ops of a warp after which a loop must make progress; default 10^6.
            resident: number of blocks that run at once; default: what the chip holds.
            blocks: blocks to run: block numbers, or a string such as ``"0,5,16:32"`` or ``"sample:16"``.
            progress: function called with the progress of the run.
            unwritten: names of arrays without initial values; ``uninit`` reports reads of elements not yet written.
            field: a prime, to compute with residues in the bits of floats instead of rounded numbers.

        Raises :class:`LaunchError` or a subclass if an argument does not match its type, ``NoGpuError``,
        ``CudaError``.
        """
        ...


class CompiledModule:
    """Compiled kernels with everything needed to launch them.

    Created by :func:`cute_dialect.pipelines.compile` or :func:`cute_dialect.runtime.load`.
    """

    def __init__(
        self, artifact: Artifact, lowered: Lowered | None = None, remarks: Callable[[], list[str]] | None = None
    ):
        """Create a module. ``remarks`` computes the remarks again, for an artifact from the compile cache.

        Equal kernels of two files share an entry of the cache, which names the file that was compiled first.
        """
        self.artifact = artifact
        self._lowered = lowered
        self._remarks = remarks
        self._functions: dict[tuple[int, str], cuda.Handle] = {}
        self._modules: dict[tuple[int, str], cuda.Handle] = {}
        self._smem: dict[tuple[int, str], int] = {}
        self._large: set[tuple[int, str]] = set()
        self._lock = threading.Lock()

    @property
    def manifest(self) -> Manifest:
        """Kernels, parameters and host programs."""
        return self.artifact.manifest

    @property
    def ptx(self) -> str:
        return self.artifact.ptx

    @property
    def names(self) -> list[str]:
        """Names of the kernels."""
        return [k["name"] for k in self.manifest["kernels"]]

    @property
    def report(self) -> str:
        """ptxas report (registers, spills, warnings); empty if ptxas was not available."""
        return "\n".join(c.report for c in self.artifact.code if c.report)

    @property
    def remarks(self) -> list[str]:
        """Remarks of the passes as ``FILE:LINE:COL: …``, e.g. a register tensor that was moved to local memory."""
        if self._remarks is not None and "remarks" in self.manifest:
            self.artifact = self.artifact._replace(manifest={**self.manifest, "remarks": self._remarks()})
            self._remarks = None
        return self.manifest.get("remarks", [])

    def kernel(self, name: str) -> Kernel:
        """Return a kernel with its variants and launch rule, or a host function, by name.

        Raises :class:`LaunchError` for an unknown name.
        """
        if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise LaunchError(f"kernel: name must be a string, got {name!r}")
        return Kernel(self, find_target(self.manifest, name))

    def save(self, folder: str | os.PathLike[str]) -> str:
        """Write the module to a folder for :func:`cute_dialect.runtime.load` and return its path."""
        _ = self.remarks  # Names the files of this module.
        return save_artifact(self.artifact, folder)

    def lowered(self, kernel: str | None = None) -> object:
        """Return the xDSL module after ``cute-to-base``, for the interpreter.

        ``kernel`` is the only kernel needed; others may be missing.
        Raises :class:`LaunchError` if the module was saved without its stages.
        """
        if self._lowered is not None:
            return self._lowered(kernel)
        for stage in self.artifact.stages:
            if stage.name == "cute-to-base":
                return _load_by_name(_READ_BASE_IR)(stage.text, stage.name)
        raise LaunchError("this compiled module was saved without its stages, so it cannot run on the CPU")

    # ----------------------------------------------------------------------------------------------------- the GPU

    def function(self, device: int, plan: Plan) -> cuda.Handle:
        """Return the planned kernel on ``device`` as a ``CUfunction`` of cuda-python; the first call loads the code.

        The kernel's limits on shared memory and cluster size are raised as the plan requires, and never lowered.
        """
        key = (device, plan.kernel)
        with self._lock:
            gpu = cuda.driver()
            function = self._functions.get(key)
            if function is None:
                function = gpu.get_function(self._loaded(gpu, device, plan.module, plan.kernel), plan.kernel)
                self._functions[key] = function
            entry = next(k for k in self.manifest["kernels"] if k["name"] == plan.kernel)
            cluster = plan.shape.preferred_cluster or entry["cluster"] or plan.shape.cluster
            if cluster and prod(cluster) > cuda.PORTABLE_CLUSTER and key not in self._large:
                gpu.allow_large_cluster(function)
                self._large.add(key)
            smem = plan.shape.smem
            if smem > self._smem.get(key, cuda.SMEM_WITHOUT_OPT_IN):
                limit = gpu.smem_limit(device)
                if smem > limit:
                    raise LaunchError(
                        f"@{plan.kernel} needs {smem} bytes of dynamic shared memory; this GPU has {limit} per block"
                    )
                gpu.allow_smem(function, smem)
                self._smem[key] = smem
        return function

    def driver_module(self, device: int = 0, name: str | None = None) -> cuda.Handle:
        """Load a ``gpu.module`` on a GPU and return its ``CUmodule``; default: the first ``gpu.module``.

        Raises :class:`LaunchError` if there is no machine code, ``NoGpuError`` without a GPU, and ``CudaError``.
        """
        gpu = cuda.driver()
        with cuda.CurrentContext(gpu, device), self._lock:
            name = self.manifest["modules"][0] if name is None else name
            return self._loaded(gpu, device, name, name)

    def _loaded(self, gpu: cuda.Driver, device: int, name: str, asked: str) -> cuda.Handle:
        """Load the code of a ``gpu.module``; ``asked`` is its name in messages.

        The caller holds the lock, and the context of ``device`` is current.
        """
        where = (device, name)
        if where not in self._modules:
            code = next((c for c in self.artifact.code if c.module == name), None)
            if code is None:
                raise LaunchError(
                    f"@{asked} has no machine code (it was compiled with emit='base'); compile it with "
                    "emit='auto', or run it on the CPU: device='cpu'"
                )
            self._modules[where] = _load_code(gpu, code, self.manifest["chip"], device)
        return self._modules[where]


def _load_code(gpu: cuda.Driver, code: CodeObject, chip: str, device: int) -> cuda.Handle:
    """Load the cubin, or else let the driver assemble the PTX; the context of ``device`` is current."""
    first: cuda.CudaError | None = None
    if code.cubin is not None:
        try:
            return gpu.load_module(code.cubin)
        except cuda.CudaError as e:
            first = e
    try:
        return gpu.load_module(code.ptx.encode() + b"\0")
    except cuda.CudaError as e:
        major, minor = gpu.capability(device)
        also = f"; its cubin: {first}" if first else ""
        raise LaunchError(
            f"cannot load code for {chip} on {gpu.name(device)} (sm_{major}{minor}): {e}{also}; compile it for this "
            "GPU's chip"
        ) from e


class Kernel:
    """A callable kernel of a module.  Its parameters are those of the host function that launches it, if any.

    A kernel without a host function takes its own parameters and needs ``grid``; it also needs ``block``
    unless its block size is fixed.  :class:`KernelCall` describes arguments and options.
    """

    # Each kernel has its own ``__call__``, so Python calls the generated code directly.
    __slots__ = ("__call__", "__dict__")
    __call__: KernelCall

    def __init__(self, module: CompiledModule, target: Target):
        self.module = module
        self.target = target
        self._mask = max(16, required_alignment(target.kernels)) - 1
        self._ready: dict[object, Ready] = {}
        self._planned: dict[object, tuple[Plan, ...]] = {}  # on the interpreter
        self._quick: dict[object, QuickCall] = {}
        self._recent: tuple[QuickCall, ...] = ()
        self.__call__ = self._first_call

    @property
    def name(self) -> str:
        """Name by which the kernel was looked up."""
        return self.target.name

    @property
    def params(self) -> list[Param]:
        """Parameters of a call."""
        return self.target.params

    @property
    def alignment(self) -> int:
        """Alignment in bytes, at least 16.  Addresses that are equal modulo this number share a cached launch."""
        return self._mask + 1

    def __repr__(self) -> str:
        takes = ", ".join(f"{n}: {p['type']}" for n, p in zip(self.target.names, self.params))
        return f"<kernel @{self.name}({takes})>"

    def export(
        self,
        folder: str | os.PathLike[str],
        formats: Sequence[str] = ("ptx", "cubin", "c", "py"),
        *,
        name: str | None = None,
    ) -> dict[str, Path]:
        """Write the kernel to a folder for other programs, and return the files by name.

        Args:
            folder: destination folder.
            formats: ``"ptx"``, ``"cubin"``, ``"mlir"`` (if stages were kept), ``"c"`` (header and source
                over the CUDA driver, with the same checks and variants as a call), ``"py"`` (a module with a typed
                function ``launch``).
            name: name of files and functions; default: the kernel's name.

        Raises :class:`~cute_dialect.runtime.export.c_text.ExportError`.
        """
        from cute_dialect.runtime.export.folder import export  # late: start-up

        return export(self.module.artifact, self.target, folder, formats, name)

    def _first_call(self, *args: object, stream: object = None, **options: Unpack[CallOptions]) -> RunReport | None:
        return self._call(args, stream, **options)

    def _other_call(self, args: tuple[object, ...], stream: object, options: dict[str, object]) -> RunReport | None:
        """Handle a call that the most recent fast path does not match."""
        args = tuple([a for a in args if a is not MISSING])
        if not options:
            for quick in self._recent[1:]:
                if quick.again(args, stream):
                    return None
        return self._call(args, stream, **cast("CallOptions", options))

    def _use(self, quick: QuickCall) -> None:
        """Try this specialization first from now on."""
        self._recent = (quick, *[q for q in self._recent if q is not quick][: _RECENT - 1])
        self.__call__ = quick.call

    def _call(
        self,
        args: tuple[object, ...],
        stream: object,
        *,
        grid: Sequence[int] | None = None,
        block: Sequence[int] | None = None,
        smem: int | None = None,
        device: str | int = "gpu",
        checks: Sequence[str] | str | None = None,
        reports: Sequence[str] = (),
        schedule: str = "round-robin",
        seed: int = 0,
        max_steps: int | None = None,
        resident: int | None = None,
        blocks: Sequence[int] | str | None = None,
        progress: Callable[[Progress], None] | None = None,
        unwritten: Sequence[str] = (),
        field: object = None,
    ) -> RunReport | None:
        """Handle a call that no recent fast path matches."""
        given: CallOptions = {
            "device": device,
            "checks": checks,
            "reports": reports,
            "schedule": schedule,
            "seed": seed,
            "blocks": blocks,
            "progress": progress,
            "unwritten": unwritten,
            "resident": resident,
            "field": field,
        }
        check_options(given)
        where = device_number(device)
        raw = 0 if stream is None else stream_of(stream)
        if where == "cpu":
            arguments = read_arguments(self.target, args, raw)
            run = cast("Callable[..., RunReport | None]", _load_by_name(_RUN_ON_CPU))
            return run(
                self.module,
                self._find_plans(arguments, _overrides(grid, block, smem)),
                arguments.views,
                self.target,
                checks=checks,
                reports=reports,
                schedule=schedule,
                seed=seed,
                max_steps=max_steps,
                resident=resident,
                blocks=blocks,
                progress=progress,
                unwritten=unwritten,
                field=field,
            )
        usual = grid is None and block is None and smem is None and where is None
        key = torch_key(args, self._mask) if usual else None
        if key is not None and self._call_known(key, args, stream):
            return None
        gpu = cuda.driver()
        arguments = read_arguments(self.target, args, raw)
        number, host = self._device(arguments, where)
        with cuda.CurrentContext(gpu, number):
            if host:
                self._call_with_copies(gpu, arguments, number, host, raw, _overrides(grid, block, smem))
                return None
            ready = self._find_ready(arguments, number, _overrides(grid, block, smem))
            if ready.empty:
                return None
            if stream is None:
                raw = stream_of(None, tuple(v for v in arguments.views if v))
            ready.launch(_addresses(arguments), raw)
        if key is not None:
            quick = quick_call(ready, args, self._mask, self._other_call)
            if quick is not None:
                _remember(self._quick, key, quick)
                self._use(quick)
        return None

    def _call_known(self, key: object, args: tuple[object, ...], stream: object) -> bool:
        """Launch through a remembered specialization.  Return False if there is none."""
        quick = self._quick.get(key)
        if quick is None or not quick.again(args, stream):
            return False
        self._use(quick)
        return True

    def bind(
        self,
        *args: object,
        grid: Sequence[int] | None = None,
        block: Sequence[int] | None = None,
        smem: int | None = None,
    ) -> BoundCall:
        """Prepare a launch on these arrays (in GPU memory) and numbers, checked once.

        Use ``call = k.bind(a, b, c)``, then ``call()`` or ``call(stream)``, which only calls the driver.
        Raises the errors of a call, and :class:`DeviceError` for arrays on the CPU.
        """
        gpu = cuda.driver()
        arguments = read_arguments(self.target, args)
        number, host = self._device(arguments, None)
        if host:
            name = self.target.names[host[0]]
            raise DeviceError(f"argument {name}: expected an array in GPU memory, got one on the CPU")
        with cuda.CurrentContext(gpu, number):
            ready = self._make_ready(arguments, number, _overrides(grid, block, smem))
        return BoundCall(ready, args, arguments.views, _addresses(arguments))

    def quick(
        self, args: tuple[object, ...], given: tuple[object, ...], otherwise: Otherwise, constants: Constants
    ) -> QuickCall | None:
        """Build a fast path for calls like the last one, which passed ``args``; its caller received ``given``.

        Other calls are passed to ``otherwise``.  Return ``None`` if no fast path applies, e.g. for arrays on the CPU.
        """
        if torch_key(args, self._mask) is None:
            return None
        arguments = read_arguments(self.target, args)
        number, host = self._device(arguments, None)
        if host:
            return None
        ready = self._find_ready(arguments, number, ShapeOverrides())
        return quick_call(ready, given, self._mask, otherwise, constants)

    def by_address(self, *args: object, numbers: bool = False) -> Callable[..., None] | None:
        """Return ``launch(stream, address, …)``, with one address per argument, which launches on other arrays.

        The arrays must match those in ``args`` (shape, strides, type, alignment, GPU); this is not checked.  Numbers
        keep their values; pass 0 as their address.  ``stream`` is the driver's handle.  Return ``None`` if the launch
        is empty or an array is on the CPU.  Raises the errors of a call.

        Args:
            numbers: pass the bits of each float as its address, so that floats may change.  The host function may
                only pass them to kernels.
        """
        if numbers:
            floats = [p["kind"] == "scalar" and p.get("element", "").startswith("f") for p in self.target.params]
            args = tuple([LATER if i < len(floats) and floats[i] else x for i, x in enumerate(args)])
        arguments = read_arguments(self.target, args)
        number, host = self._device(arguments, None)
        if host:
            return None
        gpu = cuda.driver()
        with cuda.CurrentContext(gpu, number):
            ready = self._find_ready(arguments, number, ShapeOverrides())
        return None if ready.empty else address_call(ready, len(args))

    def _find_ready(self, arguments: Arguments, device: int, shape: ShapeOverrides) -> Ready:
        """Return the cached launch for such arguments, prepared on the first call."""
        key = (device, self._key(arguments, shape))
        return _find(self._ready, key, lambda: self._make_ready(arguments, device, shape))

    def _find_plans(self, arguments: Arguments, shape: ShapeOverrides) -> tuple[Plan, ...]:
        """Return the cached launches of such arguments on the interpreter, planned on the first call."""
        return _find(self._planned, self._key(arguments, shape), lambda: self._plans(arguments, shape))

    def _key(self, arguments: Arguments, shape: ShapeOverrides) -> object:
        """Return the properties of a call that its launches depend on: all but the upper bits of addresses."""
        views = arguments.views
        return (
            tuple([v and (v.shape, v.strides, v.dtype, v.pointer & self._mask) for v in views]),
            tuple([None if v else number_key(a) for v, a in zip(views, arguments.values)]),
            shape,
        )

    def plan(
        self,
        *args: object,
        grid: Sequence[int] | None = None,
        block: Sequence[int] | None = None,
        smem: int | None = None,
    ) -> Plan:
        """Return the only launch of a call: kernel, grid, block, parameter bytes, and why variants were rejected.

        Raises the errors of a call, and :class:`LaunchError` if the call has several launches or none.
        """
        return only(self.plans(*args, grid=grid, block=block, smem=smem))

    def plans(
        self,
        *args: object,
        grid: Sequence[int] | None = None,
        block: Sequence[int] | None = None,
        smem: int | None = None,
    ) -> tuple[Plan, ...]:
        """Return all launches of a call, in order.  Raises the errors of a call."""
        return self._plans(read_arguments(self.target, args), _overrides(grid, block, smem))

    def _plans(self, arguments: Arguments, shape: ShapeOverrides) -> tuple[Plan, ...]:
        return prepare(self.module.manifest, self.target, arguments, shape)

    def _make_ready(self, arguments: Arguments, device: int, shape: ShapeOverrides) -> Ready:
        plans = self._plans(arguments, shape)
        functions = [self.module.function(device, plan) for plan in plans if not plan.empty]
        return Ready(cuda.driver(), plans, functions, device)

    def _device(self, arguments: Arguments, number: int | None) -> tuple[int, list[int]]:
        """Return the GPU to run on and the positions of the arrays in CPU memory (numpy only)."""
        host: list[int] = []
        for i, view in enumerate(arguments.views):
            if view is None:
                continue
            name = self.target.names[i]
            if view.device < 0:
                if view.library != "numpy":
                    raise DeviceError(
                        f"argument {name}: expected a tensor on the GPU, got one on the CPU ({view.library}); move it "
                        "there (.cuda()), pass a numpy array (it is copied), or use device='cpu'"
                    )
                host.append(i)
            elif number is None:
                number = view.device
            elif view.device != number:
                raise DeviceError(f"argument {name}: expected an array on GPU {number}, got one on GPU {view.device}")
        return number or 0, host

    def _call_with_copies(
        self,
        gpu: cuda.Driver,
        arguments: Arguments,
        device: int,
        host: list[int],
        stream: int,
        shape: ShapeOverrides,
    ) -> None:
        """Run with numpy arrays: copy each array's memory to the GPU, launch, and copy the elements back."""
        views: list[ArrayView | None] = list(arguments.views)
        names = [self.target.names[i] for i in host]
        with Staged(gpu, [cast(ArrayView, views[i]) for i in host], names) as copies:
            for i, view in zip(host, copies.views):
                views[i] = view
            copied = Arguments(arguments.values, tuple(views))
            ready = self._make_ready(copied, device, shape)
            if ready.empty:
                return
            ready.launch(_addresses(copied), stream)
            gpu.synchronize(stream)
            copies.back()


def _addresses(arguments: Arguments) -> list[int]:
    """Return the address of each argument; 0 if it has none."""
    return [
        v.pointer if v is not None else a if isinstance(a, int) else 0
        for v, a in zip(arguments.views, arguments.values)
    ]


def _find(cache: dict[object, _T], key: object, make: Callable[[], _T]) -> _T:
    """Return the cached value of a key, built on first use."""
    try:
        found = cache.get(key)
    except TypeError:  # an unhashable argument, e.g. a list as a shape
        return make()
    if found is None:
        found = make()
        _remember(cache, key, found)
    return found


def _remember(cache: dict[object, _T], key: object, value: _T) -> None:
    if len(cache) >= _CACHE_LIMIT:
        cache.clear()
    cache[key] = value


def _overrides(grid: object, block: object, smem: object) -> ShapeOverrides:
    """Check the launch shape of a call.  Raises ``OptionError``."""
    return ShapeOverrides(dim3("grid", grid), dim3("block", block), shared_bytes(smem))


def _load_by_name(name: str) -> Callable[..., object]:
    """Import a function ``module:function`` that needs xDSL.  Raises :class:`LaunchError` if xDSL is not installed."""
    module, _, function = name.partition(":")
    try:
        return cast("Callable[..., object]", getattr(import_module(module), function))
    except ImportError as e:
        hint = f"running on the CPU needs the compiler's packages: pip install xdsl ({e})"
        raise LaunchError(missing_package(e) or hint) from e
