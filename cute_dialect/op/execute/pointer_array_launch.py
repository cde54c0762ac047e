"""Calls of pointer-array GEMMs of equal shapes: one launch if a kernel supports it, otherwise one per GEMM."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cute_dialect.op.errors import DeviceError, UnsupportedError
from cute_dialect.op.execute.arguments import Arguments, Transfer, check_gpu
from cute_dialect.op.execute.launch_sequence import ALONE, Split, Step, combined_steps
from cute_dialect.op.execute.pointer_arrays import Copies, check_results, joined, one_view
from cute_dialect.op.problems.operands import Operands
from cute_dialect.runtime.arrays import stream_of

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.interp import RunReport
    from cute_dialect.op.execute.kernels import Variant
    from cute_dialect.op.pycutlass.operation import GemmOperationUniversal
    from cute_dialect.runtime.launch import CallOptions

__all__ = ["PointerArrayArguments", "PointerArrayLaunch", "apart"]


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
        return combined_steps(self.operation.variant_for(x, array=True), x)

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
