"""An open CuTe compiler in Python: a ``cute`` dialect, its passes, an interpreter, a launcher, and kernels."""

from __future__ import annotations

import os

from cute_dialect.tracebacks import install as _shorten_tracebacks

_shorten_tracebacks()

# In a checkout without symbolic links (Git for Windows, ZIP archives), passes, pipelines and tools are in the
# parent folder.
if not os.path.isdir(os.path.join(__path__[0], "passes")):
    __path__.append(os.path.dirname(__path__[0]))


def __getattr__(name: str) -> str:
    # The version is in pyproject.toml only, and looking it up takes longer than importing this package.
    if name == "__version__":
        from importlib.metadata import version

        return version("cute-dialect")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
