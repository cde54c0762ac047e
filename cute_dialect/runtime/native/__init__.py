"""C++ extension that replays recorded calls, compiled on the user's machine.

``replay.cpp`` has five types:

* ``Kernels``: a function that launches one or more kernels at other addresses;
* ``Run``: a function that replays a recorded call, i.e. its allocations, launches, copies, fills and torch operators;
* ``Node``: a function that replays a recorded call and adds a C++ autograd node;
* ``Call``: the guard of a recorded call, with its ``Run`` or ``Node``;
* ``Calls``: a function that tries the last calls of a cache.

They do what the generated functions of :mod:`cute_dialect.runtime.fast_call` and ``op.execute`` do, which remain in use
without the extension.  :func:`prepare`, called when a call on a GPU is recorded, loads the extension from the cache.
If it is not there, another process compiles it, tries it and puts it into the cache, while calls run in Python.  A
background thread then loads it, and the caches of calls forget their recordings (:func:`when_loaded`), so that the next
call of each specialization is recorded again for C++.

A wheel cannot contain the extension, because it depends on the releases of torch and Python.
"""

# torch is not installed where types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory
from threading import Lock, Thread
from typing import Any

from cute_dialect.errors import CuteError
from cute_dialect.files import replace_file
from cute_dialect.runtime.settings import flag, user_folder

__all__ = ["BuildError", "build", "loaded", "prepare", "when_loaded"]

_SOURCE = Path(__file__).with_name("replay.cpp")
_NAME = "cute_replay"
_LIMIT = 600
"""Maximum number of seconds that the compiler may take."""


class BuildError(CuteError, RuntimeError):
    """The extension cannot be compiled or loaded."""


class _State:
    """The extension of this process."""

    module: Any = None
    is_prepared = False
    lock = Lock()
    listeners: list[Callable[[], object]] = []


def loaded() -> Any:
    """Return the extension, or None if it has not been loaded."""
    return _State.module


def when_loaded(listener: Callable[[], object]) -> None:
    """Call a function each time that this process loads the extension, in the thread that loads it.

    :func:`loaded` returns the extension before the first listener runs.
    """
    _State.listeners.append(listener)


def prepare() -> None:
    """Load the extension from the cache, or else compile it in the background; once per process.

    ``CUTE_NATIVE=0`` turns it off, and so does ``CUTE_CACHE=0``.  An extension that could not be compiled is not tried
    again until the cache is cleared.
    """
    if _State.is_prepared:
        return
    with _State.lock:
        if _State.is_prepared:
            return
        _State.is_prepared = True
    if not flag("CUTE_NATIVE", True) or not flag("CUTE_CACHE", True):
        return
    try:
        path = _path()
        if path.exists():
            _load_for_all(path)
        elif not _log_of(path).exists() and _compiler() is not None:
            Thread(target=_build_quietly, args=(path,), name="cute-native", daemon=True).start()
    except (OSError, CuteError, ImportError):
        return


def build() -> Any:
    """Return the extension; compile it first if necessary.  Imports torch.  Raises BuildError."""
    if _State.module is None:
        try:
            import_module("torch")
        except ImportError as e:
            raise BuildError(f"the extension {_NAME} needs torch, which cannot be imported: {e}; install torch") from e
        _State.is_prepared = True
        try:
            path = _path()
            if not path.exists():
                # The process that compiles also tries the extension, and it outlives this one.
                folders = os.pathsep.join(filter(None, sys.path))
                _run([sys.executable, "-c", _BUILDER], {**os.environ, "PYTHONPATH": folders})
            _load_for_all(path)
        except (OSError, ImportError, subprocess.SubprocessError) as e:
            raise BuildError(f"the extension {_NAME} cannot be built: {e}") from e
    return _State.module


_BUILDER = """
import sys, torch
from cute_dialect.runtime import native
try:
    native.compile_extension()
except Exception as e:
    sys.exit(str(e))
"""
"""Program that compiles the extension."""


def _build_quietly(path: Path) -> None:
    """Compile and load the extension in a background thread; calls stay in Python if this fails."""
    try:
        build()
    except BuildError as e:
        try:
            replace_file(_log_of(path), str(e).encode())
        except OSError:
            return


def _path() -> Path:
    """Return the path of the extension for this source, torch and Python."""
    torch = sys.modules["torch"]
    key = (_SOURCE.read_bytes(), torch.__version__, str(torch.version.git_version), sysconfig.get_config_var("SOABI"))
    digest = hashlib.sha256(repr(key).encode()).hexdigest()[:24]
    cache = Path(user_folder("CUTE_CACHE_DIR", "XDG_CACHE_HOME", ".cache"))
    return cache / "native" / f"{_NAME}-{digest}.so"


def _log_of(path: Path) -> Path:
    """Return the file with the compiler's messages after a failure."""
    return path.with_suffix(".log")


def _compiler() -> str | None:
    """Return the C++ compiler: ``$CXX``, or else the first of c++, g++ and clang++ in the search path."""
    names = (os.environ.get("CXX", ""), "c++", "g++", "clang++")
    return next((found for name in names if (found := which(name))), None)


def _load_for_all(path: Path) -> None:
    """Load the extension for all calls of this process, and run the listeners."""
    with _State.lock:
        if _State.module is not None:  # Another thread loaded it.
            return
        _State.module = _load(path)
    for listener in _State.listeners:
        listener()


def _load(path: Path) -> Any:
    spec = spec_from_file_location(_NAME, path, loader=ExtensionFileLoader(_NAME, str(path)))
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def compile_extension() -> None:
    """Compile the extension, try it in this process, and put it into the cache.

    One process compiles at a time, at low priority.  Raises BuildError, OSError and SubprocessError.
    """
    path = _path()
    path.parent.mkdir(parents=True, exist_ok=True)
    os.nice(5)
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if path.exists():
            return
        with TemporaryDirectory() as folder:
            made = Path(folder) / path.name
            _run(_compile_command(made), os.environ)
            _try(_load(made))
            replace_file(path, made.read_bytes())


def _compile_command(to: Path) -> list[str]:
    """Return the compiler's command line.  Raises BuildError if there is no compiler, or no header of Python."""
    torch = sys.modules["torch"]
    compiler = _compiler()
    headers = sysconfig.get_paths()["include"]
    if compiler is None:
        raise BuildError("no C++ compiler was found; install g++, or set CXX")
    if not Path(headers, "Python.h").exists():
        raise BuildError(f"{headers} has no Python.h; install the headers of Python (python3-dev)")
    root = Path(str(torch.__file__)).parent
    abi = int(getattr(torch._C, "_GLIBCXX_USE_CXX11_ABI", True))
    return [
        compiler, "-std=c++20", "-O1", "-fPIC", "-shared", "-w", f"-D_GLIBCXX_USE_CXX11_ABI={abi}", str(_SOURCE),
        f"-I{root / 'include'}", f"-I{headers}", f"-L{root / 'lib'}", "-lc10", "-ltorch_cpu", "-ltorch_python",
        "-o", str(to),
    ]  # fmt: skip


def _run(command: list[str], environment: Mapping[str, str]) -> None:
    """Run a program.  Raises BuildError with its messages if it fails."""
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=_LIMIT, env=environment, stdin=subprocess.DEVNULL,
        start_new_session=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise BuildError(f"{command[0]} failed with code {done.returncode}: {done.stderr[-4000:].strip()}")


def _try(module: Any) -> None:
    """Replay a call with gradients on the CPU.  Raises BuildError if the result is wrong."""
    torch = sys.modules["torch"]
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    made, like = [((2, 3), (3, 1), torch.empty(0))], torch.empty(1)
    steps = [((1, (), (), 0, False, True), (0, (), (), 0, False, True))]
    copy = module.Run(1, steps, made, like, int, 15, [1], False, [0], [], [])

    class Calls:
        again = None

    def forward(t: Any) -> tuple[Any, ...]:
        return (copy(t),)

    def gradients(needs: object, saved: tuple[Any, ...], grads: tuple[Any, ...]) -> object:
        return (grads[0] * saved[0],)

    node = module.Node(1, forward, [0], [0], [0], 1, True, None, False, (), (True,), None, None, Calls, gradients)
    y = node(x)
    (y * 2).sum().backward()
    if not torch.equal(y, x) or not torch.equal(x.grad, 2 * x) or y is x:
        raise BuildError("the compiled extension computes wrong gradients")
