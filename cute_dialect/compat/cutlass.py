"""Names for programs written for CuTe DSL: ``import cute_dialect.lang.compat as cutlass``.

::

    python -m cute_dialect.lang.compat FILE [ARGS…]                 runs an unmodified program on the GPU
    python -m cute_dialect.lang.compat --device=cpu FILE [ARGS…]    on the interpreter

The program is not modified: its imports of ``cutlass`` resolve to this module, in this process only
(:mod:`cute_dialect.compat.run_program`).  ``docs/porting.md`` lists the differences between the two languages.
"""

from __future__ import annotations

from importlib import import_module

_MODULES = {
    "cute": "cute_dialect.lang",
    "base_dsl": "cute_dialect.compat.dsl",
    "cutlass_dsl": "cute_dialect.compat.dsl",
    **{name: f"cute_dialect.lang.{name}" for name in ("cuda", "pipeline", "testing", "torch", "utils")},
}
_NAMES = {
    "const_expr": ("cute_dialect.lang.control.builtins", "const_expr"),
    "dynamic_expr": ("cute_dialect.lang.control.builtins", "dynamic_expr"),
    "dsl_user_op": ("cute_dialect.lang.control.builtins", "dsl_user_op"),
    "as_numeric": ("cute_dialect.lang.values.numeric", "as_number"),
    "dtype": ("cute_dialect.lang.calls.runtime_tensor", "number_type"),
    "range": ("cute_dialect.lang.control.loops", "loop_range"),
    "range_constexpr": ("cute_dialect.lang.control.loops", "range_constexpr"),
    "range_dynamic": ("cute_dialect.lang.control.loops", "loop_range"),
    "T": ("cute_dialect.compat.extras", "T"),
}


def __getattr__(name: str) -> object:
    if name in _MODULES:
        found: object = import_module(_MODULES[name])
    elif name in _NAMES:
        module, own = _NAMES[name]
        found = getattr(import_module(module), own)
    elif name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    else:
        own = import_module("cute_dialect.compat.dsl")
        found = getattr(own if name in own.__all__ else import_module("cute_dialect.lang"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*_MODULES, *_NAMES, *dir(import_module("cute_dialect.lang"))})
