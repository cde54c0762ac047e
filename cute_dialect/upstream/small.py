"""index, nvgpu, ub and vector: dialects whose ops all come from upstream's tables."""

from xdsl.ir import Dialect

from cute_dialect.upstream.attrs import attrs
from cute_dialect.upstream.op import make_ops
from cute_dialect.upstream.opaque_types import opaque_types


def _make(name: str) -> Dialect:
    return Dialect(name, list(make_ops(name).values()), [*opaque_types(name), *attrs(name).values()])


def __getattr__(name: str) -> Dialect:
    """`INDEX`, `NVGPU`, `UB` or `VECTOR`, made when asked for."""
    if name in ("INDEX", "NVGPU", "UB", "VECTOR"):
        globals()[name] = made = _make(name.lower())
        return made
    raise AttributeError(f"module 'small' has no '{name}'")
