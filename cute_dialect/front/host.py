"""Tracing host functions, and kernels where they are launched; both into one module."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from cute_dialect.front.arguments import Spec, named, rebuild
from cute_dialect.front.dtypes import Int32, Numeric
from cute_dialect.front.errors import CompileError, KernelTypeError, Place
from cute_dialect.front.jit import KernelFunction, plain
from cute_dialect.front.module import empty_module, host_function, kernel_function, trace_boundary
from cute_dialect.front.trace import LaunchFacts, Tracer, active, parse_type
from cute_dialect.front.values import Form, form_of
from cute_dialect.front.where import user_places

if TYPE_CHECKING:
    from collections.abc import Callable

    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import SSAValue

__all__ = ["Launch", "Program", "converted", "trace_host"]

try:
    from cute_dialect.front.convert import converted  # pyright: ignore
except ImportError:

    def converted(f: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function as it is traced."""
        return f


class Program(NamedTuple):
    """What a trace made: the module, the name of its host function, and what the function returned."""

    module: ModuleOp
    name: str
    result: object


def trace_host(function: Callable[..., Any], name: str, specs: Mapping[str, Spec], call: Any, chip: str) -> Program:
    """Trace a host function whose parameters have these specs.

    ``call``: an ``inspect.BoundArguments`` that is given the traced values.
    """
    module = empty_module()
    name = symbol(name)
    parameters = [(symbol(n), parse_type(text)) for n, text in named(specs)]
    with host_function(module, name, parameters, chip=chip) as (tracer, values):
        pending: list[Launch] = []
        tracer.state["pending"] = pending
        call.arguments.update(rebuild(specs, values))
        result = trace_boundary(converted(function), *call.args, **call.kwargs)
        for launch in pending:
            raise CompileError(
                "F110",
                f"{launch.describe()} is never launched",
                place=launch.place,
                hint="add .launch(grid=…, block=…)",
            )
    return Program(module, name, result)


def symbol(name: str) -> str:
    """Return a name that a symbol may have.

    >>> symbol("<lambda>"), symbol("cfg.a[0]")
    ('lambda', 'cfg_a_0')
    """
    made = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_") or "kernel"
    return made if not made[0].isdigit() else f"_{made}"


class Launch:
    """A call of a kernel that waits for ``.launch(…)``."""

    def __init__(self, kernel: KernelFunction, args: tuple[Any, ...], kwargs: dict[str, Any]):
        self.kernel = kernel
        self.args = args
        self.kwargs = kwargs
        tracer = active()
        self.place: Place | None = None
        if tracer is not None:
            if tracer.kind != "host":
                raise CompileError("F114", f"{self.describe()} is called in a kernel: only host functions launch")
            self.place = next(iter(user_places()), None)
            tracer.state["pending"].append(self)

    def describe(self) -> str:
        """Return how messages name it."""
        return f"the kernel '{self.kernel.name}'"

    def __repr__(self) -> str:
        return f"<{self.describe()} with its arguments, to be launched>"

    def launch(
        self, *, grid: Any = None, block: Any = None, cluster: Any = None, smem: Any = None, stream: Any = None,
        cooperative: bool = False, pdl: bool = False, fallback: Launch | None = None, **options: Any,
    ) -> None:  # fmt: skip
        """Launch the kernel: ``grid`` blocks of ``block`` threads, each a number or up to three.

        ``cluster``: the blocks of a cluster, static.  ``smem``: bytes of shared memory beside what the kernel
        allocates.  ``stream``: the call's by default.
        """
        tracer = active()
        if tracer is None:
            raise CompileError("F100", f"{self.describe()} is launched outside of a host function (@cute.jit)")
        tracer.state["pending"].remove(self)
        for value, what in ((cooperative, "cooperative"), (pdl, "pdl"), (fallback, "fallback"), (stream, "stream")):
            if value:
                raise CompileError("F118", f"{what}= is not supported yet")
        if options:
            raise TypeError(f"launch() got an unexpected keyword argument '{next(iter(options))}'")
        _launch(tracer, self, _three(grid, "grid"), _three(block, "block"), _static_three(cluster), smem)


def _three(value: Any, what: str) -> tuple[Any, Any, Any]:
    if value is None:
        raise KernelTypeError("F115", f"the launch says no {what}", hint=f"{what}=128, or {what}=(x, y, z)")
    entries = list(value) if isinstance(value, tuple | list) else [value]
    if not 1 <= len(entries) <= 3:
        raise KernelTypeError("F115", f"{what} has one to three entries, got {len(entries)}")
    made: list[Any] = []
    for entry in entries:
        if isinstance(entry, Numeric) and type(entry).is_integer:
            made.append(int(entry) if entry.is_static else entry)
        elif hasattr(entry, "__index__") and not isinstance(entry, bool | Numeric):
            made.append(int(entry))
        else:
            raise KernelTypeError("F115", f"{what} takes integers, got {entry!r}")
    x, y, z = (*made, 1, 1)[:3]
    return x, y, z


def _static_three(value: Any) -> tuple[int, int, int]:
    if value is None:
        return (1, 1, 1)
    x, y, z = _three(value, "cluster")
    if not all(isinstance(n, int) for n in (x, y, z)):
        raise KernelTypeError("F115", "cluster takes numbers that are known while compiling")
    return x, y, z


def _launch(tracer: Tracer, launch: Launch, grid: Sequence[Any], block: Sequence[Any], cluster: Any, smem: Any) -> None:
    import inspect

    from xdsl.dialects.builtin import SymbolRefAttr

    function = plain(launch.kernel.function)
    signature = inspect.signature(function)
    try:
        call = signature.bind(*launch.args, **launch.kwargs)
    except TypeError as e:
        raise KernelTypeError("F116", f"{launch.describe()}: {e}") from None
    call.apply_defaults()
    facts = LaunchFacts(_facts(grid), _facts(block), cluster)
    passing = _Passing()
    forms = {name: passing.add(name, value) for name, value in call.arguments.items()}
    name = _unique(tracer, symbol(launch.kernel.name))
    parameters = [(n, v.type) for n, v in zip(passing.names, passing.values)]
    with kernel_function(tracer.module, name, parameters, launch=facts, chip=tracer.chip) as (_, values):
        for parameter, (form, at) in forms.items():
            call.arguments[parameter] = form.make([values[i] for i in at])
        trace_boundary(converted(function), *call.args, **call.kwargs)
    sizes = [Int32(n).ssa for n in (*grid, *block, *(cluster if cluster != (1, 1, 1) else ()))]
    sized = [Int32(smem).ssa] if smem is not None else []
    more = [1, 1, 1] if cluster != (1, 1, 1) else [0, 0, 0]
    tracer.op(
        "gpu.launch_func", [*sizes, *sized, *passing.values], (), {"kernel": SymbolRefAttr("kernels", [name])},
        segments=[0, 1, 1, 1, 1, 1, 1, *more, len(sized), len(passing.values), 0],
    )  # fmt: skip


def _facts(sizes: Sequence[Any]) -> Any:
    return tuple(n if isinstance(n, int) else None for n in sizes)


class _Passing:
    """The parameters of a kernel: one for each SSA value, in order of first use."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.values: list[SSAValue] = []
        self._at: dict[SSAValue, int] = {}

    def add(self, name: str, value: object) -> tuple[Form, list[int]]:
        """Add the leaves of a value; returns its form and where they are."""
        form = form_of(value)
        leaves = form.take(value)
        where: list[int] = []
        for i, leaf in enumerate(leaves):
            if leaf not in self._at:
                self._at[leaf] = len(self.values)
                self.values.append(leaf)
                self.names.append(self._free(symbol(name) if len(leaves) == 1 else f"{symbol(name)}_{i}"))
            where.append(self._at[leaf])
        return form, where

    def _free(self, name: str) -> str:
        while name in self.names:
            name += "_"
        return name


def _unique(tracer: Tracer, name: str) -> str:
    from cute_dialect.front.module import device_block

    taken = {op.properties["sym_name"].data for op in device_block(tracer.module).ops if "sym_name" in op.properties}
    if name not in taken:
        return name
    return next(made for i in range(1, 1 << 20) if (made := f"{name}_{i}") not in taken)
