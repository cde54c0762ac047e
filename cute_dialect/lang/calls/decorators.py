"""The decorators ``@cute.jit`` (host functions) and ``@cute.kernel`` (kernels).

Decorating a function compiles nothing.  The first call with new argument types compiles a specialization::

    @cute.kernel
    def double(x, y):
        i = cute.arch.thread_idx().x
        y[i] = x[i] * 2

    @cute.jit
    def run(x, y):
        double(x, y).launch(grid=1, block=32)

    run(x, y)                  # compiles on the first call of a specialization, then launches
    run(x, y, device="cpu")    # runs on the interpreter
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, overload

from cute_dialect.errors import CompileError, CuteError, UsageError
from cute_dialect.lang.tracing.errors import KernelTypeError
from cute_dialect.lang.tracing.tracer import active, finish_error, finishes_errors

if TYPE_CHECKING:
    from cute_dialect.lang.calls.compiled import Compiled
    from cute_dialect.lang.calls.host import Launch
    from cute_dialect.lang.calls.specializations import CacheInfo, Kinds

__all__ = ["JitFunction", "KernelFunction", "jit", "kernel"]


class Traced:
    """Base class of decorated functions: the Python function and the options of the decorator."""

    # __call__ is an instance attribute, so that Python calls generated code directly.
    __slots__ = ("__call__", "__dict__", "__weakref__", "binds", "methods")
    __call__: Callable[..., Any]

    kind = ""

    def __init__(self, function: Any, options: dict[str, Any]):
        self.function = function
        self.options = options
        self.__call__ = self._called
        self.methods = MethodCalls(self)
        """The function's calls as a method, whose first argument is the receiver."""
        self.binds = not isinstance(function, staticmethod | classmethod)
        """True if access through an instance binds that instance as the first argument."""
        for name in ("__name__", "__qualname__", "__module__", "__doc__"):
            if hasattr(function, name):
                self.__dict__[name] = getattr(function, name)
        self.__dict__["__wrapped__"] = function

    @property
    def name(self) -> str:
        """The function's name in compiled code."""
        own = self.options.get("name") or getattr(self.function, "__name__", "kernel")
        prefix = self.options.get("prefix")
        return f"{prefix}_{own}" if prefix else own

    def set_name_prefix(self, prefix: str) -> None:
        """Prefix the function's name in code compiled from now on with ``prefix`` and ``_``."""
        if not prefix.isidentifier():
            raise UsageError(f"set_name_prefix: prefix must be an identifier, got {prefix!r}")
        self.options["prefix"] = prefix

    def __repr__(self) -> str:
        return f"<@cute.{self.kind} {getattr(self.function, '__qualname__', self.function)}>"

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        if self.binds:
            return self if instance is None else BoundMethod(self, instance)
        return self if isinstance(self.function, staticmethod) else BoundMethod(self, owner)

    def __getitem__(self, given: Any) -> Any:
        """Return the function with its generic parameters set: ``f[16, cute.Float32]``."""
        from cute_dialect.lang.calls.generics import applied

        return applied(self, given)

    @finishes_errors
    def _called(self, *args: Any, **kwargs: Any) -> Any:
        return self.call(args, kwargs)

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any], *, receiver: bool = False) -> Any:
        """Run a call that no cached call matches. ``receiver``: the first argument is the receiver of a method."""
        raise NotImplementedError

    @property
    def table(self) -> Kinds:
        """The table of compiled specializations."""
        found = self.__dict__.get("_table")
        if found is None:
            found = self.__dict__.setdefault("_table", self._new_table())
        return found

    def _new_table(self) -> Kinds:
        raise NotImplementedError

    def kinds(self) -> list[Compiled]:
        """Return the compiled specializations, least recently used first."""
        return list(self.table)

    def cache_info(self) -> CacheInfo:
        """Return the number of lookups that found a specialization (``hits``) or compiled one (``misses``), and the
        size.
        """
        return self.table.info()

    def cache_clear(self) -> None:
        """Discard the compiled specializations in memory. The compile cache on disk keeps them."""
        self.forget()
        self.table.clear()

    def forget(self) -> None:
        """Discard the cached call, so that the next call looks up its specialization again."""
        self.__dict__.pop("_recent", None)
        self.__call__ = self._called
        self.methods = MethodCalls(self)

    @finishes_errors
    def other(self, args: tuple[Any, ...], stream: Any, options: dict[str, Any]) -> Any:
        """Run a call that the generated fast path did not recognize."""
        from cute_dialect.lang.calls.cache.fast_path import other_call

        left = other_call(self, args, stream, options)
        if left is None:
            return None
        return self.call(left, options if stream is None else {**options, "stream": stream})


class MethodCalls:
    """The calls of a function as a method, whose first argument is the receiver. They have a fast path too."""

    # As in Traced: __call__ is an instance attribute, so that Python calls generated code directly.
    __slots__ = ("__call__", "__dict__")
    __call__: Callable[..., Any]

    def __init__(self, function: Traced):
        self.function = function
        self.__call__ = self._called

    @finishes_errors
    def _called(self, *args: Any, **kwargs: Any) -> Any:
        return self.function.call(args, kwargs, receiver=True)

    @finishes_errors
    def other(self, args: tuple[Any, ...], stream: Any, options: dict[str, Any]) -> Any:
        """Run a call that the generated fast path did not recognize."""
        from cute_dialect.lang.calls.cache.fast_path import other_call

        left = other_call(self, args, stream, options)
        if left is None:
            return None
        return self._called(*left, **(options if stream is None else {**options, "stream": stream}))


class BoundMethod:
    """A decorated method bound to its receiver, which is a compile-time constant."""

    __slots__ = ("__self__", "function")

    def __init__(self, function: Traced, receiver: object):
        self.function = function
        self.__self__ = receiver

    @property
    def __func__(self) -> Traced:
        return self.function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return self.function.methods(self.__self__, *args, **kwargs)
        except CuteError as error:
            finish_error(error)
            raise

    def __getattr__(self, name: str) -> Any:
        return getattr(self.function, name)

    def __repr__(self) -> str:
        return f"<bound {self.function!r} of {self.__self__!r}>"


class JitFunction(Traced):
    """A function under ``@cute.jit``. A call from Python compiles and runs it; a call in a trace inlines it."""

    kind = "jit"

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any], *, receiver: bool = False) -> Any:
        if active() is not None:
            from cute_dialect.lang.calls.host import inlined

            return inlined(self, args, kwargs)
        from cute_dialect.lang.calls.options import options_of
        from cute_dialect.lang.calls.specializations import read_call, split_options

        own, options = split_options(self, kwargs)
        call = read_call(self, args, own, receiver=receiver)
        kind = self.table.find(call, options_of(self, options.get("device")))
        result = kind.run(call.values, options)
        if not own and options.keys() <= {"stream"} and kind.is_on_gpu:
            from cute_dialect.lang.calls.cache.fast_path import learn
            from cute_dialect.lang.calls.target import remember_quick_calls

            learn(self.methods if receiver else self, kind, args, watch=True)
            remember_quick_calls(self)
        return result

    def _new_table(self) -> Kinds:
        from cute_dialect.lang.calls.specializations import Kinds

        return Kinds(self, "trace_host")


class KernelFunction(Traced):
    """A function under ``@cute.kernel``. A call returns a :class:`~cute_dialect.lang.calls.host.Launch`."""

    kind = "kernel"

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any], *, receiver: bool = False) -> Any:
        from cute_dialect.lang.calls.host import Launch

        return Launch(self, args, kwargs, receiver=receiver, called=True)

    def find_launch(self, launch: Launch, grid: Any, sizes: dict[str, Any], options: Any = None) -> Compiled:
        """Return the specialization for a launch outside a host function."""
        from cute_dialect.lang.calls.arguments import NumberSpec
        from cute_dialect.lang.calls.constant_keys import static_key
        from cute_dialect.lang.calls.specializations import read_call
        from cute_dialect.lang.values.dtypes import Int32

        call = read_call(self, launch.args, launch.kwargs, receiver=launch.receiver)
        launch.values = tuple(call.values.values())
        specs = {**call.specs, **{f"grid.{axis}": NumberSpec(Int32) for axis in "xyz"}}
        config = tuple(sizes.items())
        static_key(config, "launch")
        return self.table.find(call._replace(specs=specs), options, Config(config))

    def _new_table(self) -> Kinds:
        from cute_dialect.lang.calls.specializations import Kinds

        return Kinds(self, "trace_launch")


class Config:
    """The sizes of a launch, as part of a specialization's key."""

    __slots__ = ("items",)

    def __init__(self, items: tuple[tuple[str, Any], ...]):
        self.items = items

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Config) and repr(self.items) == repr(other.items)

    def __hash__(self) -> int:
        return hash(repr(self.items))


def plain(function: Any) -> Any:
    """Return the undecorated Python function."""
    while True:
        if isinstance(function, staticmethod | classmethod | Traced):
            function = function.__wrapped__
        else:
            return function


@overload
def jit(function: Callable[..., Any], /) -> JitFunction: ...
@overload
def jit(
    *, inline: bool = True, debug: bool = False, options: str = "", name: str | None = None
) -> Callable[[Callable[..., Any]], JitFunction]: ...
def jit(function: Any = None, /, **options: Any) -> Any:
    """Decorate a host function, which computes layouts and grids and launches kernels.

    Args:
        inline: must be True; a call in a trace is always inlined.
        debug: enable all run-time checks on the GPU, as ``EnableAssertions(True)`` does.
        options: compilation options as text, such as ``"--opt-level 2"``.
        name: the name in compiled code; by default the function's own.

    Example:
        >>> @jit
        ... def run(x, y): ...
        >>> run
        <@cute.jit run>
    """
    return _decorate(JitFunction, function, options, ("inline", "debug", "options", "name"))


@overload
def kernel(function: Callable[..., Any], /) -> KernelFunction: ...
@overload
def kernel(
    *, max_threads: int | None = None, min_blocks: int | None = None, max_regs: int | None = None,
    cluster: tuple[int, int, int] | None = None, name: str | None = None,
) -> Callable[[Callable[..., Any]], KernelFunction]: ...  # fmt: skip
def kernel(function: Any = None, /, **options: Any) -> Any:
    """Decorate a kernel: the code that each thread of a launch runs.

    Args:
        max_threads: upper bound on the threads per block of any launch (PTX ``.maxntid``).
        min_blocks: number of blocks that should fit on one SM (PTX ``.minnctapersm``).
        max_regs: upper bound on the registers per thread (PTX ``.maxnreg``).
        cluster: default cluster size in blocks, ``(x, y, z)``.
        name: the name in compiled code; by default the function's own.
    """
    return _decorate(KernelFunction, function, options, ("max_threads", "min_blocks", "max_regs", "cluster", "name"))


def _decorate(kind: type[Traced], function: Any, options: dict[str, Any], known: tuple[str, ...]) -> Any:
    for name in options:
        if name not in known:
            raise KernelTypeError("F103", f"@cute.{kind.kind} has no option '{name}'; options: {', '.join(known)}")
    if options.get("inline", True) is not True:
        raise CompileError(
            "F103", "inline=False is not supported: a call in a trace is always inlined", hint="remove inline="
        )
    if options.get("options"):
        from cute_dialect.lang.calls.options import said

        said(options["options"])
    if function is None:
        return lambda f: kind(f, options)
    if not callable(function) and not isinstance(function, staticmethod | classmethod):
        raise KernelTypeError(
            "F103", f"@cute.{kind.kind} decorates a function, got {type(function).__name__}; pass options by keyword"
        )
    return kind(function, options)
