"""The dialects dlti, index, memref, nvgpu and vector, built entirely from upstream's tables."""

from xdsl.ir import Dialect, Operation

from cute_dialect.upstream.attrs import attrs
from cute_dialect.upstream.lazy import TableDialect
from cute_dialect.upstream.op import make_ops
from cute_dialect.upstream.opaque_types import opaque_types


def _make(name: str) -> Dialect:
    own: tuple[type[Operation], ...] = ()
    if name == "vector":
        from cute_dialect.upstream.vector_transfer import OPS

        own = OPS
    return TableDialect(name, make_ops(name, own), attrs(name), opaque_types(name))


def __getattr__(name: str) -> Dialect:
    """Return the dialect `DLTI`, `INDEX`, `MEMREF`, `NVGPU` or `VECTOR`, built on first access."""
    if name in ("DLTI", "INDEX", "MEMREF", "NVGPU", "VECTOR"):
        globals()[name] = made = _make(name.lower())
        return made
    raise AttributeError(f"module 'table_dialects' has no '{name}'")
