"""Compilation options, as objects, as text, and combined; the target architecture, and the default device of calls.

::

    cute.compile[cute.OptLevel(2), cute.GenerateLineInfo(True)](f, x)
    cute.compile(f, x, options="--opt-level 2 --generate-line-info")
    @cute.jit(options="--opt-level 2")              # for every specialization; options of cute.compile override it

    CUTE_CHIP=sm_90a     the architecture if there is no GPU to query
    CUTE_DEVICE=cpu      calls run on the interpreter

>>> with target("sm_80"):
...     current_target()
'sm_80'
"""

from __future__ import annotations

import shlex
import weakref
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from cute_dialect.arch.targets import DEFAULT_CHIP, TARGETS, default_features, find_target
from cute_dialect.errors import CompileError
from cute_dialect.lang.tracing.tracer import active
from cute_dialect.runtime.driver import CudaError, NoGpuError, driver
from cute_dialect.runtime.settings import flag, word

if TYPE_CHECKING:
    from cute_dialect.lang.calls.traced import Traced

# ---------------------------------------------------------------------------------------------------- target and device


_chosen: ContextVar[str | None] = ContextVar("cute_dialect_target", default=None)
_quick: weakref.WeakSet[Any] = weakref.WeakSet()
"""Functions with a cached call, which is recognized without querying the target."""


@contextmanager
def target(chip: str) -> Generator[None]:
    """Compile for ``chip`` within the ``with`` block: ``with cute.target("sm_80"): …``."""
    find_target(chip, default_features(chip))
    forget_quick_calls()
    token = _chosen.set(chip)
    try:
        yield
    finally:
        _chosen.reset(token)
        forget_quick_calls()


def remember_quick_calls(function: Any) -> None:
    """Register a function with a cached call."""
    _quick.add(function)


def forget_quick_calls() -> None:
    """Discard all cached calls, so that each function looks up its specialization at the next call."""
    for function in list(_quick):
        function.forget()
    _quick.clear()


def current_target() -> str:
    """Return the target architecture: that of :func:`target`, of the GPU, of ``CUTE_CHIP``, or sm_90a."""
    tracer = active()
    if tracer is not None:
        return tracer.chip
    return _chosen.get() or _gpus_chip() or word("CUTE_CHIP") or DEFAULT_CHIP


@lru_cache(maxsize=1)
def _gpus_chip() -> str | None:
    """Return the architecture of the first GPU, or None."""
    try:
        major, minor = driver().capability(0)
    except (NoGpuError, CudaError):
        return None
    return f"sm_{major}{minor}{'a' if major >= 9 else ''}"


_devices: list[str] = []
"""The devices set by ``running_on``, innermost last."""


def default_device() -> str:
    """Return the device of calls without ``device=``."""
    return _devices[-1] if _devices else word("CUTE_DEVICE", ("gpu", "cpu")) or "gpu"


_without_checks: list[bool] = []


def default_checks() -> str:
    """Return the checks of calls on the interpreter that name none: ``CUTE_CHECKS``, else ``auto``."""
    return "none" if _without_checks else word("CUTE_CHECKS") or "auto"


@contextmanager
def without_checks() -> Generator[None]:
    """Run calls that name no checks without any, in all threads: times are measured."""
    _without_checks.append(True)
    try:
        yield
    finally:
        _without_checks.pop()


@contextmanager
def running_on(device: str) -> Generator[None]:
    """Set the device of calls without ``device=`` within the ``with`` block, in all threads."""
    _devices.append(device)
    try:
        yield
    finally:
        _devices.remove(device)


# -------------------------------------------------------------------------------------------------------------- options


class Options(NamedTuple):
    """All options with which a specialization is compiled."""

    chip: str
    opt_level: int | None = None
    cache: bool = True
    lineinfo: bool = False
    assertions: bool = False
    """True if GPU code checks promises, coordinates, loop steps and this package's own assertions."""
    asserts: bool = True
    """True if GPU code checks the ``assert`` statements of the user's kernels."""
    interpreted: bool = False
    """True if compiled for the interpreter, which always checks asserts, promises, coordinates and loop steps."""
    ptxas: tuple[str, ...] = ()
    """Additional ptxas options."""


class CompileOption:
    """Base class of the options of ``cute.compile[…]``."""

    def __init__(self, value: bool | int | str = True):
        self.value = value

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.value!r})"


class OptLevel(CompileOption):
    """Optimization level of ptxas, 0 to 3."""


class GenerateLineInfo(CompileOption):
    """Emit line information that maps machine code to source lines."""


class KeepPTX(CompileOption):
    """Accepted for compatibility: PTX is always kept, as ``Compiled.ptx``."""


class KeepCUBIN(CompileOption):
    """Accepted for compatibility: the cubin is always kept, as ``Compiled.cubin``."""


class EnableAssertions(CompileOption):
    """Select the run-time checks in GPU code.

    By default only ``assert`` statements are checked.  True adds promises (``cute.assume``), coordinates and loop
    steps. False removes all checks.
    """


class EnableTVMFFI(CompileOption):
    """Accepted for compatibility; it has no effect."""


class GPUArch(CompileOption):
    """The target architecture: ``GPUArch("sm_90a")``."""


class PtxasOptions(CompileOption):
    """Additional ptxas options: ``PtxasOptions("-dlcm=cg --maxrregcount 128")``."""


_WORDS = {
    "opt-level": OptLevel, "O": OptLevel, "generate-line-info": GenerateLineInfo, "enable-assertions": EnableAssertions,
    "keep-ptx": KeepPTX, "keep-cubin": KeepCUBIN, "enable-tvm-ffi": EnableTVMFFI, "gpu-arch": GPUArch,
    "ptxas-options": PtxasOptions,
}  # fmt: skip
_WITH_VALUE = (OptLevel, GPUArch, PtxasOptions)
_OWN = ("-o", "--output-file", "-arch", "--gpu-name", "-c", "--compile-only", "-O", "--opt-level", "-lineinfo")
"""ptxas options that the compiler sets itself."""


def said(text: str, given: Sequence[CompileOption] = ()) -> dict[type[CompileOption], Any]:
    """Return options given as objects and as text. The text overrides the objects.  Raises F103.

    >>> said("--opt-level 2 --keep-ptx")
    {<class 'cute_dialect.lang.calls.options.OptLevel'>: 2, <class 'cute_dialect.lang.calls.options.KeepPTX'>: True}
    """
    found = {type(o): o.value for o in given}
    words = iter(shlex.split(text))
    for option in words:
        name, _, value = option.lstrip("-").partition("=")
        if len(name) == 2 and name[0] == "O":
            name, value = "O", name[1]
        kind = _WORDS.get(name)
        if kind is EnableAssertions and value in ("true", "false"):
            found[kind] = value == "true"
            continue
        if kind is None or (value and kind not in _WITH_VALUE):
            names = ", ".join(f"--{n}" for n in _WORDS if len(n) > 1)
            raise CompileError("F103", f"options: unknown option '{option}'", hint=f"options: {names}")
        if kind in _WITH_VALUE:
            value = value or next(words, "")
            found[kind] = int(value) if kind is OptLevel and value.isdigit() else value
        else:
            found[kind] = True
    level = found.get(OptLevel)
    if level is not None and (type(level) is not int or level not in (0, 1, 2, 3)):
        raise CompileError("F103", f"OptLevel must be 0, 1, 2 or 3, got {level!r}")
    return found


def options_of(
    traced: Traced, device: object, own: Mapping[type[CompileOption], Any] | None = None, *, chip: str | None = None,
    cache: bool = True,
) -> Options:  # fmt: skip
    """Return the options with which a call on a device compiles its specialization.

    Args:
        traced: the decorated function, whose own options come first.
        device: the device of the call; None is the default device.
        own: options of this compilation, which override the decorator's.
        chip: the target architecture; by default that of the current GPU.
        cache: use the compile cache on disk.
    """
    text = traced.options.get("options")
    all_said = {**(said(text) if text else {}), **(own or {})}
    enabled = all_said.get(EnableAssertions)
    debug = bool(traced.options.get("debug")) or flag("CUTE_ASSERT", False)
    debug = debug if enabled is None else bool(enabled)
    asserts = debug or (__debug__ and flag("CUTE_ASSERT", True) if enabled is None else bool(enabled))
    return Options(
        chip or _chip(all_said.get(GPUArch)) or current_target(), all_said.get(OptLevel), cache,
        lineinfo=bool(all_said.get(GenerateLineInfo)), assertions=debug, asserts=asserts,
        interpreted=(device or default_device()) == "cpu", ptxas=_ptxas(all_said.get(PtxasOptions)),
    )  # fmt: skip


def _chip(name: object) -> str | None:
    if name is None or name in TARGETS:
        return name  # pyright: ignore[reportReturnType]
    raise CompileError("F103", f"GPUArch must be one of {', '.join(TARGETS)}, got {name!r}")


def _ptxas(text: object) -> tuple[str, ...]:
    if text is None:
        return ()
    words = tuple(shlex.split(text)) if isinstance(text, str) else ()
    if not words or not words[0].startswith("-"):
        raise CompileError("F103", f"PtxasOptions takes text such as '-dlcm=cg', got {text!r}")
    for option in words:
        if option.partition("=")[0] in _OWN or option[:2] == "-O":
            raise CompileError("F103", f"PtxasOptions: '{option}' is set by the compiler and cannot be given")
    return words
