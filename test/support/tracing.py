"""Tracing of kernel bodies without the language boundary, for tests of values and the IR that they emit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cute_dialect.lang.calls.function_traces import kernel_function
from cute_dialect.lang.tracing.tracer import LaunchFacts, empty_module, parse_type, trace_boundary


def trace_kernel(
    body: Callable[..., Any],
    parameters: Mapping[str, str],
    wrap: Callable[[Any], Any] = lambda ssa: ssa,
    *,
    threads: int = 32,
    grid: int | None = None,
    chip: str = "sm_90a",
) -> Any:
    """Return the module (an xDSL ``ModuleOp``) of a kernel ``k``, which calls ``body`` with its wrapped parameters."""
    module = empty_module()
    named = [(name, parse_type(text)) for name, text in parameters.items()]
    facts = LaunchFacts((grid, 1, 1), (threads, 1, 1))
    with kernel_function(module, "k", named, launch=facts, chip=chip) as (_, values):
        trace_boundary(body, *(wrap(v) for v in values))
    return module


def text_of(module: Any) -> str:
    """Return the module's text."""
    from cute_dialect.ir.printing import ir_text

    return ir_text(module, source_names=True)


def run_kernel_on_cpu(module: Any, args: Sequence[Any], *, grid: int = 1, threads: int = 32) -> Any:
    """Compile the module for the interpreter and run its kernel ``k`` on numpy arrays."""
    from cute_dialect.pipelines import compile

    return compile(module, emit="base").kernel("k")(*args, grid=(grid,), block=(threads,), device="cpu")
