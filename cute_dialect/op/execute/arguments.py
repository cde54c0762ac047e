"""The operands of one call: checked, then launched and waited for.

Arrays on a GPU are used in place.  NumPy arrays are copied to the GPU, and :meth:`Arguments.sync` copies the results
back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from cute_dialect.op.arrays.library import check_options, chosen_device, gpu_here, on_stream
from cute_dialect.op.arrays.memory import NOWHERE, pool_of
from cute_dialect.op.errors import DeviceError, UnsupportedError
from cute_dialect.op.execute.gemm import Step, combined_steps, operation_steps
from cute_dialect.op.execute.pointer_arrays import Copies, check_results, joined, one_view
from cute_dialect.op.problems.operands import Operands, check_tma
from cute_dialect.op.select.descriptions import ALONE, GemmCoord, Split
from cute_dialect.runtime.arrays import ArrayView, stream_of
from cute_dialect.runtime.call_options import device_number
from cute_dialect.runtime.driver import CurrentContext
from cute_dialect.runtime.host_memory import Staged

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.interp import RunReport
    from cute_dialect.op.execute.kernels import Variant
    from cute_dialect.op.execute.saved import Fields
    from cute_dialect.op.pycutlass.operation import GemmOperationUniversal
    from cute_dialect.runtime.host_memory import Staged
    from cute_dialect.runtime.launch import CallOptions


class Arguments:
    """Checked operands of an operation, with :meth:`launch` and :meth:`sync`."""

    def __init__(
        self, operation: GemmOperationUniversal, operands: Operands, D: Any, stream: object, options: CallOptions,
        split: Split = ALONE, call: str = "GemmArguments", results: Mapping[str, Any] | None = None,
    ):  # fmt: skip
        self.operation, self.operands, self.D, self.split, self.call = operation, operands, D, split, call
        # D and the other results of a traced epilogue, by name.
        self.results: dict[str, Any] = {"D": D, **(results or {})}
        if operation.by_tma:
            check_tma(call, operands, operation.by_tma, has_direct=operation.backend.has_tensor_memory)
        check_options(call, options.get("device"), options)
        self.stream, self.options = stream, options
        self.on_cpu = on_the_cpu(options)
        self.launched: list[Step] = []
        self._transfer: Transfer | None = None
        self._wait: Callable[[], None] | None = None

    @property
    def problem_size(self) -> GemmCoord:
        """The extents (M, N, K) of the GEMM."""
        m, n = self.operands.d.shape[-2:]
        return GemmCoord(m, n, self.operands.a.shape[-1])

    @property
    def problem(self) -> str:
        """The extents of batch, M, N and K as text, which distinguishes calls of different sizes."""
        m, n, k = self.problem_size
        return "x".join(map(str, (*self.operands.d.shape[:-2], m, n, k)))

    def sources(self) -> list[Variant]:
        """Return the kernels that the call launches.  No memory is allocated."""
        x = self.operands
        return [step.variant for step in self.launched or self.steps(x._replace(d=x.d._replace(library=NOWHERE)))]

    def taken(self) -> Fields:
        """Return the chosen tile as data."""
        return {"tile": self.operation.tile_description.to_json()}

    @property
    def is_copied(self) -> bool:
        """True if the arrays were copied to the GPU and the results are not copied back yet."""
        return self._transfer is not None

    def launch(self) -> RunReport | None:
        """Launch without waiting.  On the CPU, run the interpreter and return its report."""
        x, options = self.operands, self.options
        if self.on_cpu:
            return self._launch(x, None)
        check_gpu(self.call, self.operation, x)
        if x.d.device < 0:
            self._transfer = Transfer(x, options.get("device"))
            self.options, x = _without_device(options), self._transfer.operands
        raw = 0 if self.stream is None and self._transfer is not None else stream_of(self.stream, (x.d,))
        self._launch(x, raw)
        self._waits_for(x.d.device, raw)
        return None

    def _launch(self, x: Operands, stream: object) -> RunReport | None:
        """Launch the steps in order and return the report of the last one."""
        report = None
        with on_stream(x.d, None if self.on_cpu else self.stream):
            self.launched = self.steps(x)  # The steps keep their shared memory alive.
            launchers = [self.operation.launcher(variant, self.on_cpu) for variant, _ in self.launched]
            for launcher, (_, operands) in zip(launchers, self.launched):
                report = launcher(operands, stream, **self.options)
        return report

    def steps(self, x: Operands) -> list[Step]:
        """Return the launches for these operands."""
        return operation_steps(self.operation, x, self.split)

    def bind(self) -> Callable[..., None]:
        """Return a function that only launches the kernels on these operands, which must be in GPU memory."""
        check_bound(self.call, self.operands.d.device)
        check_gpu(self.call, self.operation, self.operands)
        return in_order(self._bound())

    def _bound(self) -> Sequence[Callable[..., None]]:
        """Return the prepared launches."""
        return [self.operation.launcher(v, False).bind(x) for v, x in self.steps(self.operands)]

    def _waits_for(self, device: int, stream: int) -> None:
        self._wait = wait_for(device, stream)

    def sync(self) -> None:
        """Wait for the launch; results in NumPy arrays are valid afterwards."""
        wait, self._wait = self._wait, None
        if wait is not None:
            wait()
        transfer, self._transfer = self._transfer, None
        if transfer is not None:
            transfer.back()
        self.launched = [step._replace(operands=self.operands) for step in self.launched]  # Release their memory.


def wait_for(device: int, stream: int) -> Callable[[], None]:
    """Return a function that waits for all launches on a stream."""

    def wait() -> None:
        from cute_dialect.runtime.driver import driver  # here, because a replayed call may not wait

        gpu = driver()
        with CurrentContext(gpu, device):
            gpu.synchronize(stream)

    return wait


def on_the_cpu(options: CallOptions) -> bool:
    """Return True if the call runs on the interpreter. ``CUTE_DEVICE=cpu`` sets the device in options."""
    device = chosen_device(options.get("device"))
    if device is not None:
        options["device"] = device
    return str(options.get("device")) == "cpu"


def check_gpu(call: str, operation: GemmOperationUniversal, x: Operands) -> None:
    """Raise DeviceError if there is no GPU, or UnsupportedError if it lacks instructions of the operation."""
    operation.backend.check_gpu(gpu_here(call).capability(max(0, x.d.device)), call)


def check_bound(call: str, device: int) -> None:
    """Raise DeviceError if the arrays of a prepared call are in CPU memory (``device`` is negative)."""
    if device < 0:
        raise DeviceError(f"{call}: the arrays are in CPU memory; pass arrays on a GPU")


def in_order(calls: Sequence[Callable[..., None]], held: object = None) -> Callable[..., None]:
    """Return a function of a stream that makes prepared launches in order.

    ``held`` is memory that they use and that must live as long as the function.
    """
    if len(calls) == 1 and held is None:
        return calls[0]

    def call(stream: object = None) -> None:
        for each in calls:
            each(stream)

    call.held = held  # type: ignore[attr-defined]
    return call


def _without_device(options: CallOptions) -> CallOptions:
    return cast("CallOptions", {k: v for k, v in options.items() if k != "device"})


class Transfer:
    """Copies of host arrays on a GPU."""

    def __init__(self, x: Operands, device: object = None):
        gpu = gpu_here()
        number = 0 if device is None else device_number(cast(Any, device)) or 0
        found = {n: cast("ArrayView | None", getattr(x, n)) for n in ("a", "b", "d", "c", "bias", "places")}
        found |= {f"operand {i}": v for i, v in enumerate(x.behind) if isinstance(v, ArrayView)}
        found |= {f"result {i}": v.result for i, v in enumerate(x.reduced)}
        found |= {f"scale {i}": v for i, v in enumerate(x.scales)}
        views = [v for v in found.values() if v is not None and v.device < 0]
        names = [n for n, v in found.items() if v is not None and v.device < 0]
        with CurrentContext(gpu, cast(int, number)):
            self._copies: Staged = Staged(pool_of(cast(int, number)), views, names)  # type: ignore[arg-type]
        there = dict(zip(names, [v._replace(device=cast(int, number)) for v in self._copies.views]))
        behind = tuple([there.get(f"operand {i}", v) for i, v in enumerate(x.behind)])
        reduced = tuple([v._replace(result=there.get(f"result {i}", v.result)) for i, v in enumerate(x.reduced)])
        scales = tuple([there.get(f"scale {i}", v) for i, v in enumerate(x.scales)])
        matrices = {n: v for n, v in there.items() if " " not in n}
        self.operands = x._replace(behind=behind, reduced=reduced, scales=scales, **matrices)  # type: ignore[arg-type]

    def back(self) -> None:
        """Copy the results back, and free the copies."""
        try:
            self._copies.back()
        finally:
            self._copies.free()


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

    def _bound(self) -> Sequence[Callable[..., None]]:
        return [each.bind() for each in self.each]

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
        return combined_steps(self.operation.variant_for(x, array=True), x)

    def _bound(self) -> Sequence[Callable[..., None]]:
        return [self.operation.launcher(v, False).bind(x) for v, x in self.steps(joined(self.found))]

    def sync(self) -> None:
        """Wait for the launch; results in NumPy arrays are valid afterwards."""
        super().sync()
        copies, self._copies = self._copies, None
        if copies is not None:
            copies.back()
