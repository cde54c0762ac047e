"""An open CuTe compiler in Python: a ``cute`` dialect, its passes, an interpreter, a launcher, and kernels."""

from __future__ import annotations

from cute_dialect.tracebacks import install as _shorten_tracebacks

_shorten_tracebacks()


def __getattr__(name: str) -> str:
    # The version stands in pyproject.toml alone; to look for it takes longer than to import this package.
    if name == "__version__":
        from importlib.metadata import version

        return version("cute-dialect")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
