"""Trace a Python function whose parameters are numbers, and evaluate the trace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from evaluate_ops import evaluate

from cute_dialect.lang.calls.function_traces import kernel_function
from cute_dialect.lang.control.runtime import converted
from cute_dialect.lang.tracing.tracer import LaunchFacts, empty_module, parse_type, trace_boundary
from cute_dialect.lang.values.dtypes import Boolean, Float32, Int32, Numeric

KINDS = {int: Int32, float: Float32, bool: Boolean}


class Traced:
    """The trace of a function. ``run(*numbers)`` evaluates it, and ``block`` contains its ops."""

    def __init__(self, f: Callable[..., Any], kinds: Sequence[Any]):
        """Trace ``f``.

        ``kinds`` has an entry per parameter: a number type, or ``("is", value)`` for a static value.
        """
        self.module = empty_module()
        dynamic = [k for k in kinds if not isinstance(k, tuple)]
        named = [(f"a{i}", parse_type(k.mlir_type)) for i, k in enumerate(dynamic)]
        with kernel_function(self.module, "k", named, launch=LaunchFacts(), chip="sm_90a") as (tracer, values):
            wrapped = iter([k.of(v) for k, v in zip(dynamic, values)])
            arguments = [k[1] if isinstance(k, tuple) else next(wrapped) for k in kinds]
            self.result = trace_boundary(converted(f), *arguments)
            self.block = tracer.entry
        self.values = values
        self.module.verify()

    def run(self, *numbers: Any) -> Any:
        """Return the result for these run-time numbers."""
        env = dict(zip(self.values, numbers))
        evaluate(self.block, env)
        return plain(self.result, env)

    @property
    def ops(self) -> list[str]:
        """Return the names of all ops except constants."""
        return [op.name for op in self.block.parent_op().walk() if op.name not in ("arith.constant", "gpu.func")]


def plain(value: Any, env: dict[Any, Any]) -> Any:
    """Return a value with its run-time values replaced by numbers."""
    if isinstance(value, Numeric):
        number = value.value if value.is_static else env[value.value]
        return bool(number) if type(value) is Boolean else number
    if isinstance(value, tuple | list):
        parts = [plain(v, env) for v in value]
        return type(value)(parts) if type(value) in (tuple, list) else type(value)(*parts)
    if isinstance(value, dict):
        return {k: plain(v, env) for k, v in value.items()}
    return value
