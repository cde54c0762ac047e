"""Environment variables of the project, and names of missing packages.

    CUTE_CACHE=0             no compile cache (or compile(cache=False), cute-run --no-cache)
    CUTE_CACHE_DIR=PATH      folder of the cache (default: $XDG_CACHE_HOME/cute-dialect, ~/.cache/cute-dialect)
    CUTE_CACHE_SIZE=500M     size limit of the cache in bytes; suffixes K, M, G (default: 1G)
    CUTE_PTXAS=PATH          the ptxas to use, before any other
    CUTE_KERNELS=DIR         compiled GEMM kernels for ``mm`` (``cute-bench gemm --build DIR``)
    CUTE_CONFIG_DIR=PATH     tables of tuned kernels (default: $XDG_CONFIG_HOME/cute-dialect, ~/.config/cute-dialect)
    CUTE_AUTOTUNE=0          @cute.autotune uses the stored table, or else the first candidate, and measures nothing
    CUTE_CHIP=sm_90a         target chip of kernels in Python on a machine without a GPU
    CUTE_ASSERT=1            GPU code of kernels in Python also checks promises, coordinates and steps; 0: no asserts
    CUTE_NATIVE=0            calls of op are replayed in Python; no C++ extension is compiled (docs/performance/host.md)
    CUTE_OP_CHECK=1          operations check data in GPU memory (e.g. group offsets), which waits for the GPU
    CUTE_DEVICE=cpu          default device of kernels in Python and of op: gpu or cpu (the interpreter)
    CUTE_CHECKS=race,uninit  checks of runs on the interpreter: race, uninit, oob, sync, strict; or all, auto, none
    CUTE_TRACEBACK=full      tracebacks of this package's errors include its own frames
    CUTE_DIST_TIMEOUT_MS=N   longest wait of an operation of several GPUs for a rank, in ms (default: 30000)
    CUTE_ERROR_SVG=DIR       errors about layouts draw them into this folder and name the file
    CUTE_PROGRESS=never      progress bar on standard error: auto (on a terminal), always or never
    CUTE_PROGRESS_JSON=FILE  file to which progress events are appended, one JSON object per line (docs/progress.md)
    CUTE_OPT_TRACEBACK=1     cute-opt shows the Python traceback of an internal error

An empty value counts as not set.
"""

from __future__ import annotations

import os

from cute_dialect.errors import CuteError

__all__ = [
    "SettingError",
    "count",
    "flag",
    "folder",
    "missing_package",
    "parse_size",
    "program",
    "size",
    "user_folder",
    "word",
]

_YES = ("1", "on", "true", "yes")
_NO = ("0", "off", "false", "no")
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


class SettingError(CuteError, ValueError):
    """An environment variable, or an option of the same meaning, has an invalid value."""


def flag(name: str, default: bool) -> bool:
    """Read a boolean.  Raises :class:`SettingError`."""
    text = os.environ.get(name, "")
    if not text:
        return default
    if text.lower() not in (*_YES, *_NO):
        raise SettingError(f"{name}: expected one of {', '.join((*_YES, *_NO))}, got '{text}'")
    return text.lower() in _YES


def word(name: str, choices: tuple[str, ...] = ()) -> str | None:
    """Read a word, which must be one of ``choices`` if given; ``None`` if it is not set.

    Raises :class:`SettingError`.
    """
    text = os.environ.get(name, "")
    if text and choices and text not in choices:
        raise SettingError(f"{name}: expected one of {', '.join(choices)}, got '{text}'")
    return text or None


def parse_size(text: str, name: str) -> int:
    """Read a number of bytes from ``500M``.  Raises :class:`SettingError`, which names the setting.

    >>> parse_size("2K", "SIZE"), parse_size("7", "SIZE")
    (2048, 7)
    """
    number, unit = (text[:-1], text[-1].upper()) if text[-1:].isalpha() else (text, "")
    if not (number.isascii() and number.isdigit() and len(number) < 20) or unit not in _UNITS:
        raise SettingError(f"{name}: expected a size in bytes such as 500M (K, M or G), got '{text}'")
    return int(number) * _UNITS[unit]


def size(name: str, default: int) -> int:
    """Read a size in bytes.  Raises :class:`SettingError`."""
    text = os.environ.get(name)
    return parse_size(text, name) if text else default


def count(name: str, default: int) -> int:
    """Read a positive integer.  Raises :class:`SettingError`."""
    text = os.environ.get(name)
    if not text:
        return default
    if not (text.isascii() and text.isdigit() and 0 < len(text) < 10 and int(text)):
        raise SettingError(f"{name}: expected an integer from 1 to 999999999, got '{text}'")
    return int(text)


def folder(name: str, *, there: bool = False) -> str | None:
    """Read the path of a folder; ``None`` if it is not set.  ``there``: the folder must exist.

    Raises :class:`SettingError`.
    """
    path = os.environ.get(name)
    if not path:
        return None
    if os.path.isdir(path):
        return path
    if there or os.path.lexists(path):
        what = "which does not exist" if not os.path.lexists(path) else "which is not a folder"
        raise SettingError(f"{name}: expected a folder, got '{path}', {what}")
    return path


def user_folder(name: str, base: str, home: str) -> str:
    """Return the folder for files of the user.

    The folder is ``name`` if set, else ``cute-dialect`` in the XDG base directory ``base``, else ``cute-dialect`` in
    ``home`` under the home folder.  Raises :class:`SettingError`.
    """
    given = folder(name)
    if given is not None:
        return given
    # XDG Base Directory Specification: "If an implementation encounters a relative path … it should … ignore it."
    above = os.environ.get(base, "")
    if not os.path.isabs(above):
        above = os.path.join(os.path.expanduser("~"), home)
    if not os.path.isabs(above):  # a user without a home folder: writing there fails with a clear error
        above = os.sep
    return os.path.join(above, "cute-dialect")


def program(name: str) -> str | None:
    """Read the path of a program; ``None`` if it is not set.  Raises :class:`SettingError`."""
    path = os.environ.get(name)
    if not path:
        return None
    if not os.path.isfile(path):
        what = "which is not a file" if os.path.lexists(path) else "which does not exist"
        raise SettingError(f"{name}: expected a program, got '{path}', {what}")
    if not os.access(path, os.X_OK):
        raise SettingError(f"{name}: expected a program, got '{path}', which is not executable (chmod +x)")
    return path


_PACKAGES = {
    "xdsl": ("xdsl", "xdsl==0.74.*"),
    "numpy": ("numpy", "numpy>=1.26"),
    "ml_dtypes": ("ml_dtypes", "ml_dtypes>=0.5"),
    "rich": ("rich", "rich>=13"),
    "pygls": ("pygls (extra 'lsp')", "pygls==2.1.*"),
    "lsprotocol": ("lsprotocol (extra 'lsp')", "pygls==2.1.*"),
    "cuda": ("cuda-python (cuda-bindings, extra 'cuda')", "cuda-bindings>=12.8,<14"),
}
"""Import name -> package name and pip requirement, as in ``pyproject.toml``."""


def missing_package(error: BaseException) -> str | None:
    """Return the install command for a missing dependency; ``None`` for any other error.

    >>> missing_package(ModuleNotFoundError("No module named 'numpy'", name="numpy"))
    "numpy is not installed: pip install 'numpy>=1.26'"
    """
    module = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    if module not in _PACKAGES:
        return None
    package, requirement = _PACKAGES[module]
    return f"{package} is not installed: pip install '{requirement}'"
