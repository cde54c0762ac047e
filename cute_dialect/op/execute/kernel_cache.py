"""Compiled kernels: once per process in memory, once per machine in the compile cache.

:func:`compiled_kernel` takes the generator of a kernel's text with its arguments, ``partial(gemm_text, config)``.  Its
function and arguments are the key in memory.  On disk the key is::

    H(the function, its arguments, the chip, this package's sources)  ->  the key of the compiled module

A process that needs a kernel compiled by an earlier process neither traces it nor imports the compiler.  Texts that
involve user functions (a ``hook``) are generated and looked up by their contents.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING

from cute_dialect.lang.calls.cache.digests import NoDigest, Walk
from cute_dialect.op.errors import UnsupportedError
from cute_dialect.pipelines.cache import default_cache, key_of_sources, same_tools, tools
from cute_dialect.pipelines.compilation import CompileRequest
from cute_dialect.pipelines.compiler import compile_in_worker, compile_module, lowered_again, reading
from cute_dialect.runtime import load, settings
from cute_dialect.runtime.launch import CompiledModule

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.pipelines.cache import Cache
    from cute_dialect.pipelines.compilation import Emit

_FILE = "made.json"
_FORMAT = 1


EMITS: Mapping[str, Emit] = {"ptxas": "auto", "driver": "ptx", "interpreter": "base"}
"""Assembler backend -> last compilation stage."""

_CHOSEN = ["ptxas"]


def backend(name: str | None = None) -> str:
    """Return the assembler backend of later compilations; with a ``name``, select it first.

    - ``ptxas``: ptxas if it is installed, otherwise the driver.
    - ``driver``: the driver, at the first launch of a kernel.  It needs no ptxas, reports no registers and delays the
      first launch.
    - ``interpreter``: no machine code.

    Raises UnsupportedError for another name.
    """
    if name is not None:
        if name not in EMITS:
            raise UnsupportedError(f"backend: {name!r} is not supported; use one of {', '.join(EMITS)}")
        _CHOSEN[0] = name
    return _CHOSEN[0]


class Libraries:
    """Compiled kernels by key, shared by the threads of a process.

    A thread that requests a kernel while another thread compiles it waits for the result.  If compilation fails, the
    next request tries again.
    """

    def __init__(self) -> None:
        self._made: dict[object, Future[CompiledModule]] = {}
        self._lock = Lock()

    def get(self, key: object, make: Callable[[], CompiledModule]) -> CompiledModule:
        """Return the kernel for ``key``; call ``make`` if there is none yet."""
        with self._lock:
            found = self._made.get(key)
            mine = found is None
            if found is None:
                found = self._made[key] = Future()
        if mine:
            try:
                found.set_result(make())
            except BaseException as e:
                with self._lock:
                    del self._made[key]
                found.set_exception(e)
        return found.result()

    def clear(self) -> None:
        """Remove all kernels."""
        with self._lock:
            self._made.clear()


LIBRARIES = Libraries()
"""The compiled kernels of this process."""


def compiled_kernel(
    name: str, text: partial[str], *, key: object = None, chip: str | None = None, elsewhere: bool = False,
    cpu: bool = False,
) -> CompiledModule:  # fmt: skip
    """Return a compiled kernel.

    Args:
        name: the kernel's name, which is its folder in ``CUTE_KERNELS`` and the name of its text in messages.
        text: a function of this package with its arguments.
        key: identifies the text together with the function; default: the arguments.
        chip: default: the default chip.
        ``elsewhere``: compile in another process; only for the default chip.
        cpu: compile for the interpreter.

    Raises CompileError.
    """
    of = _typed(text.args) if key is None else key
    return LIBRARIES.get(
        (text.func, of, chip, cpu), lambda: load_or_compile(name, text, chip=chip, elsewhere=elsewhere, cpu=cpu)
    )


def _typed(args: Sequence[object]) -> object:
    """Return arguments with their types, because configurations of two types are equal if their fields are."""
    return tuple([(type(x), x) for x in args])


def load_or_compile(
    name: str, text: partial[str], *, chip: str | None = None, elsewhere: bool = False, cpu: bool = False
) -> CompiledModule:
    """Return a kernel from the folder ``CUTE_KERNELS`` (written by ``cute-bench gemm --build``), from the compile
    cache, or compiled.  The arguments are those of :func:`compiled_kernel`.
    """
    if cpu:  # A kernel built for a GPU may lack code that the interpreter runs.
        from cute_dialect.kernels.common.traced_text import traced_by  # late: start-up
        from cute_dialect.pipelines.compiler import compile_lazily  # late: start-up

        found = traced_by(text)
        source = found if isinstance(found, str) else found.program.module
        return compile_lazily(source, f"{name}.mlir", chip=chip)
    kernels = settings.folder("CUTE_KERNELS", there=True)
    if kernels is not None and os.path.isdir(os.path.join(kernels, name)):
        return load(os.path.join(kernels, name))
    return compiled_text(text, f"{name}.mlir", chip=chip, elsewhere=elsewhere)


def compiled_text(
    text: partial[str], filename: str, *, chip: str | None = None, elsewhere: bool = False
) -> CompiledModule:
    """Return the compiled module of ``text()``, from the compile cache if it is there.

    ``filename`` is the name of the text in messages.
    """
    disk, emit = default_cache(), EMITS[backend()]
    place = None if disk is None else _place(text, emit, chip)
    if disk is not None and place is not None:
        found = _found(disk, place, text, filename)
        if found is not None:
            return found
    request = CompileRequest(text(), filename=filename, chip=chip, emit=emit)
    module = compile_in_worker(request) if elsewhere and chip is None else compile_module(request)
    if disk is not None and place is not None:
        entry = {"format": _FORMAT, "artifact": request.key_of_text(), "tools": tools()}
        disk.put_files(place, {_FILE: (json.dumps(entry, indent=1) + "\n").encode()})
    return module


def _place(text: partial[str], emit: str, chip: str | None) -> str | None:
    """Return the cache key of a text, or None if the text depends on more than this package and data."""
    walk = Walk()
    try:
        walk.say("made", emit, chip, f"{text.func.__module__}:{text.func.__qualname__}")
        walk.add(text.args, "the arguments")
        walk.add(text.keywords, "the arguments")
    except (NoDigest, RecursionError):
        return None
    return None if walk.codes else key_of_sources(["made", walk.digest()])


def _found(disk: Cache, place: str, text: partial[str], filename: str) -> CompiledModule | None:
    """Return the compiled module if the cache has it, made by the same tool releases."""
    files = disk.files(place)
    if files is None or _FILE not in files:
        return None
    try:
        entry = json.loads(files[_FILE])
        if entry["format"] != _FORMAT or not same_tools(entry["tools"]):
            return None
        artifact = disk.get(entry["artifact"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return None  # not an entry in this format
    return (
        None if artifact is None else CompiledModule(artifact, lowered=lowered_again(reading(text, filename), "nvptx"))
    )
