"""The kinds of a host function: found by what of the arguments is static, compiled at the first call of each."""

from __future__ import annotations

import inspect
import os
from typing import TYPE_CHECKING, Any

from cute_dialect.front.arguments import Spec, spec_of, unpack
from cute_dialect.front.jit import JitFunction, plain

if TYPE_CHECKING:
    from cute_dialect.front.host import Program
    from cute_dialect.runtime.launch import CompiledModule, Kernel

__all__ = ["Kind", "Kinds"]


class Kind:
    """One kind: what of its arguments is static, and what was compiled for it."""

    def __init__(self, program: Program):
        self.program = program
        self._kernels: dict[bool, Kernel] = {}
        self._module: CompiledModule | None = None

    def kernel(self, cpu: bool) -> Kernel:
        """Return its host function, ready to call; for the CPU no machine code is made."""
        found = self._kernels.get(cpu)
        if found is None:
            from cute_dialect.pipelines import compile

            module = compile(self.program.module, emit="base" if cpu else "auto")
            found = self._kernels[cpu] = module.kernel(self.program.name)
        return found


class Kinds:
    """All kinds of one function."""

    def __init__(self, function: JitFunction):
        self.function = function
        self._kinds: dict[Any, Kind] = {}
        self._plain = plain(function.function)
        self._signature = inspect.signature(self._plain)

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Find or make the kind of these arguments, and launch."""
        own = self._signature.parameters
        options = {k: kwargs.pop(k) for k in list(kwargs) if k not in own and k in CALL_OPTIONS}
        call = self._signature.bind(*args, **kwargs)
        call.apply_defaults()
        values = call.arguments
        specs = {n: spec_of(v, own[n].annotation, n) for n, v in values.items()}
        given = list(values.values())
        kind = self._find(specs, call)
        device = options.pop("device", None) or os.environ.get("CUTE_DEVICE") or "gpu"
        return kind.kernel(device == "cpu")(*unpack(list(specs.values()), given), device=device, **options)

    def _find(self, specs: dict[str, Spec], call: inspect.BoundArguments) -> Kind:
        key = tuple(specs.items())
        kind = self._kinds.get(key)
        if kind is None:
            from cute_dialect.front.host import trace_host

            program = trace_host(self._plain, self.function.name, specs, call, "sm_90a")
            kind = self._kinds[key] = Kind(program)
        return kind


CALL_OPTIONS = (
    "stream", "device", "checks", "reports", "schedule", "seed", "max_steps", "blocks", "progress", "unwritten",
)  # fmt: skip
