"""The report of ``cute-run``: launches, tensors and checks."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, cast

import numpy as np

from cute_dialect.tools.check_expressions import CheckError
from cute_dialect.tools.run_call import Call, RunError
from cute_dialect.tools.run_check import check
from cute_dialect.tools.run_inputs import Argument, Tensor, letters

if TYPE_CHECKING:  # pragma: no cover
    from numpy.typing import NDArray
    from rich.console import Console
    from rich.table import Table

    from cute_dialect.interp import RunReport
    from cute_dialect.runtime.launch import CompiledModule
    from cute_dialect.runtime.launch_plan import Plan

Written: TypeAlias = "Mapping[str, NDArray[np.bool_]]"


class Result(NamedTuple):
    """The result of a run.

    ``gpu`` is the name of the GPU, empty for the CPU.  ``microseconds`` is the median kernel time of ``repeats``
    launches, or the time of the interpreter.
    """

    gpu: str
    microseconds: float
    repeats: int


def quantity(n: float) -> str:
    """Format a number with three digits and a unit.

    >>> quantity(1234567), quantity(12)
    ('1.23 M', '12')
    """
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if n >= size:
            return f"{n / size:.3g} {unit}"
    return f"{n:.0f}"


class Report:
    """Prints the report, or only errors if ``quiet``.  Errors go to standard error."""

    def __init__(self, quiet: bool):
        self._quiet = quiet

    def line(self, text: str) -> None:
        if not self._quiet:
            print(text)

    def table(self, table: Table, console: Console) -> None:
        if not self._quiet:
            console.print(table)

    def error(self, text: str) -> None:
        print(f"cute-run: error: {text}", file=sys.stderr)

    def summary(self, file: str, module: CompiledModule, call: Call, result: Result, seconds: float) -> None:
        """Print the kernel, its launches, its resources and the time."""
        where = f"for {module.manifest['chip']} on {result.gpu}" if result.gpu else "on the CPU interpreter"
        if len(call.plans) != 1:
            launches = f"{len(call.plans)} launches" if call.plans else "no launch"
            self.line(f"@{call.kernel.name} of {file} {where}: {launches}")
        for plan in call.plans:
            self.line(f"@{plan.kernel} of {file} {where}")
            self._launch(plan)
        for text in module.remarks:
            self.line(f"  {text}")
        for name in dict.fromkeys(plan.kernel for plan in call.plans):
            self._resources(module, name)
        if all(plan.empty for plan in call.plans):
            self.line("  time    no launch: " + ("no elements" if call.plans else "all launch conditions are false"))
            return
        count = result.repeats or 1
        what = f"median of {count} launches" if result.repeats else "interpreting one launch"
        if len(call.plans) > 1:
            what = f"{'median of' if result.repeats else 'interpreting'} {count} calls"
        us = result.microseconds
        took = f"{us:.1f} us" if us < 1e5 else f"{us / 1e6:.2f} s"
        self.line(f"  time    {took} ({what}); {'loaded' if os.path.isdir(file) else 'compiled'} in {seconds:.2f} s")

    def _launch(self, plan: Plan) -> None:
        s = plan.shape
        self.line(f"  grid    {_dims(s.grid)}, block {_dims(s.block)}, {s.smem} bytes of dynamic shared memory")
        for text in plan.rejected:
            self.line(f"  skipped {text}")

    def _resources(self, module: CompiledModule, name: str) -> None:
        for code in module.artifact.code:
            kernels = cast("list[dict[str, int | str]]", code.ptxas["kernels"]) if code.ptxas else []
            for k in kernels:
                if k["name"] == name:
                    spilled = int(k["spill_stores"]) + int(k["spill_loads"])
                    self.line(
                        f"  ptxas   {k['registers']} registers, {spilled} bytes spilled, {k['smem']} bytes shared, "
                        f"{k.get('code', 0)} bytes of code"
                    )

    def interpreter(self, run: RunReport) -> None:
        """Print the amount of work and the speed of the interpreter."""
        of = f" of {run.all_blocks}" if run.blocks < run.all_blocks else ""
        rate = f"{quantity(run.lane_ops_per_second)} lane-ops/s"
        self.line(f"  cpu     {run.blocks}{of} blocks, {quantity(run.lane_ops)} lane-ops, {rate}")

    def tensors(self, tensors: Sequence[Tensor], written: Written | None = None) -> bool:
        """Print one line per tensor; return True if no byte outside the tensors was written."""
        clean = True
        for t in tensors:
            state = "read" if np.array_equal(_bytes(t.array), _bytes(t.before)) else "written"
            if written is not None and t.name in written:
                state = f"{np.count_nonzero(written[t.name])} of {t.array.size} elements written"
            strides = tuple(s // t.array.itemsize for s in t.array.strides)
            self.line(
                f"  {t.name:7} {_dims(t.array.shape)}:{_dims(strides)} {t.array.dtype.name}, {state}; {_stats(t.array)}"
            )
            outside = t.outside_written()
            if outside:
                clean = False
                self.error(f"{outside} bytes outside {t.name} were written")
        return clean

    def checks(
        self,
        expressions: Sequence[str],
        names: Sequence[str],
        arguments: Sequence[Argument],
        written: Written | None = None,
    ) -> bool:
        """Evaluate the checks and return True if all hold.

        Args:
            written: masks of the elements to compare, by parameter name; None compares all elements.

        Raises:
            RunError: a check is invalid.
        """
        values: dict[str, object] = {}
        before: dict[str, object] = {}
        known: dict[str, NDArray[np.bool_]] = {}
        for name, index in letters(names).items():
            a = arguments[index]
            if written is not None and names[index] in written:
                known[name] = written[names[index]]
            if isinstance(a, Tensor):
                values[name] = a.array
                before[f"in_{name}"] = a.before
            elif isinstance(a, (int, float)):
                values[name] = a
        values = {**before, **values}  # A parameter named in_x takes precedence.
        tensors = [n for n, a in zip(names, arguments) if isinstance(a, Tensor)]
        ok = True
        for expression in expressions:
            try:
                result = check(expression, values, tensors, None if written is None else known)
            except CheckError as e:
                raise RunError(f"--check: {e}") from e
            if result.ok:
                self.line(f"  check   {expression}: ok, {result.detail}")
            else:
                ok = False
                self.error(f"check {expression!r} failed: {result.detail}")
        return ok


def _bytes(array: NDArray[np.generic]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _dims(values: Sequence[int]) -> str:
    return "(" + ", ".join(str(v) for v in values) + ")"


def _stats(array: NDArray[np.generic]) -> str:
    if array.size == 0:
        return "no elements"
    values = array.astype(np.float64)
    nans = int(np.count_nonzero(np.isnan(values)))
    if nans == values.size:
        return "all NaN"
    text = f"min {np.nanmin(values):.6g}, max {np.nanmax(values):.6g}, mean {np.nanmean(values):.6g}"
    return text + (f", {nans} NaN" if nans else "")
