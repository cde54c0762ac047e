"""A quicker import: compiled modules found where they are, and modules that a run does not need met if ever needed.

Python looks a module up in listings of folders and builds its way to the compiled file in some ten steps, which takes
as long as running a module of fifty lines; :func:`found_at_once` opens the compiled file where it must be.

xDSL imports modules for what a run of our programs does not do: ``ctypes``, of which one function for floats makes use,
and the import of ``.irdl`` files as Python modules, with a tenth of the standard library behind it
(``importlib.resources``, ``tempfile``, ``shutil``, ``random``), together a twentieth of what importing xDSL takes.
numpy attaches its help to its functions, and imports types for type checkers: a quarter of what importing it takes.
"""

from __future__ import annotations

import _imp
import marshal
import os
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import MAGIC_NUMBER
from types import CodeType, ModuleType

__all__ = ["found_at_once", "import_numpy", "met_later", "modules_met_later"]


@contextmanager
def found_at_once(*packages: str) -> Generator[None]:
    """Inside, modules of these packages are read from where they are compiled to, if that is newer than the source.

    What is not there, or not as expected, is found as ever.
    """
    tag: str | None = sys.implementation.cache_tag
    if not tag or sys.pycache_prefix is not None or sys.flags.optimize:
        yield
        return
    finder = _Compiled(tuple(f"{package}." for package in packages), tag)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class _Compiled:
    """A finder of compiled modules, beside their source and of its time and size."""

    def __init__(self, prefixes: tuple[str, ...], tag: str):
        self._prefixes = prefixes
        self._tag = tag

    def find_spec(self, name: str, path: Sequence[str] | None, target: object = None) -> ModuleSpec | None:
        """The module's specification; None if Python had better find it."""
        if not name.startswith(self._prefixes) or path is None or len(path) != 1:
            return None
        last = name.rpartition(".")[2]
        source, compiled = f"{path[0]}/{last}.py", f"{path[0]}/__pycache__/{last}.{self._tag}.pyc"
        try:
            with open(compiled, "rb", 0) as f:
                data = f.read()
            now = os.stat(source)
        except OSError:
            return None
        written = (int(now.st_mtime) & 0xFFFFFFFF).to_bytes(4, "little")
        size = (now.st_size & 0xFFFFFFFF).to_bytes(4, "little")
        if data[:16] != MAGIC_NUMBER + b"\0\0\0\0" + written + size:
            return None
        spec = ModuleSpec(name, _Loader(name, source, data), origin=source)
        spec.has_location = True
        spec.cached = compiled
        return spec


class _Loader(SourceFileLoader):
    """Loads what was read."""

    def __init__(self, name: str, source: str, data: bytes):
        super().__init__(name, source)
        self._data = data

    def get_code(self, fullname: str) -> CodeType | None:
        """The module's code; read again if it is asked for again."""
        data, self._data = self._data, b""
        if not data:
            return super().get_code(fullname)
        code: CodeType = marshal.loads(memoryview(data)[16:])
        getattr(_imp, "_fix_co_filename")(code, self.path)  # noqa: B009  (as the import system does)
        return code


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
        if isinstance(sys.modules.get(name), _Later):
            del sys.modules[name]


def import_numpy() -> None:
    """Import numpy, which a short run asks for no help, without the help of what is written in C; nor its types.

    Does nothing where numpy is imported by now.  A module that is not there in this version of numpy is not missed.
    """
    if "numpy" in sys.modules:
        return
    nothing = {name: ModuleType(name) for name in ("numpy._core._add_newdocs", "numpy._core._add_newdocs_scalars")}
    nothing["numpy._typing"] = _Later("numpy._typing", {"NDArray": list})
    sys.modules.update(nothing)
    try:
        with found_at_once("numpy"):
            import_module("numpy")
    finally:
        for name, module in nothing.items():
            if sys.modules.get(name) is module:
                del sys.modules[name]


class _Later(ModuleType):
    """Stands for a module until it is asked for something."""

    def __init__(self, name: str, known: dict[str, object]):
        super().__init__(name)
        self.__dict__.update(known)

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):  # the import system asks
            raise AttributeError(name)
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), name)


class _NoFiles:
    """A finder of modules that finds none."""

    def __init__(self, *ignored: object):
        pass

    def find_spec(self, *ignored: object) -> None:
        """Nothing."""
