"""Modules that xDSL imports for what a run of our programs does not do: met at their first use, if ever.

``ctypes``, of which one function for floats makes use, and the import of ``.irdl`` files as Python modules, with a
tenth of the standard library behind it (``importlib.resources``, ``tempfile``, ``shutil``, ``random``), are together a
twentieth of what importing xDSL takes.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType

__all__ = ["met_later", "modules_met_later"]


@contextmanager
def modules_met_later() -> Generator[None]:
    """Inside, xDSL is without ``ctypes`` until it needs it, and never looks for a module in an ``.irdl`` file."""
    met_later("ctypes", "xdsl.utils.bitwise_casts")
    met_later("xdsl.utils.dialect_loader", "xdsl.dialects", IRDLDialectFinder=_NoFiles)
    finders = [finder for finder in sys.meta_path if isinstance(finder, _NoFiles)]
    for finder in finders:
        sys.meta_path.remove(finder)
    yield


def met_later(name: str, user: str, **known: object) -> None:
    """Import ``user``, which imports ``name``, but let that be imported when ``user`` asks it for something not known.

    Does nothing where one of the two is imported by now.
    """
    if name in sys.modules or user in sys.modules:
        return
    sys.modules[name] = _Later(name, known)
    try:
        import_module(user)
    finally:
        del sys.modules[name]


class _Later(ModuleType):
    """Stands for a module until it is asked for something."""

    def __init__(self, name: str, known: dict[str, object]):
        super().__init__(name)
        self.__dict__.update(known)

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):  # the import system asks
            raise AttributeError(name)
        return getattr(import_module(self.__name__), name)


class _NoFiles:
    """A finder of modules that finds none."""

    def __init__(self, *ignored: object):
        pass

    def find_spec(self, *ignored: object) -> None:
        """Nothing."""
