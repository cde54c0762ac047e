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

from cute_dialect.errors import CompileError
from cute_dialect.lang.calls.traced import Config, Traced
from cute_dialect.lang.tracing.errors import KernelTypeError
from cute_dialect.lang.tracing.tracer import active, finishes_errors
from cute_dialect.lang.values.dtypes import Int32

if TYPE_CHECKING:
    from cute_dialect.lang.calls.compiled import Compiled
    from cute_dialect.lang.calls.host import Launch, Program
    from cute_dialect.lang.calls.specializations import Specializations


class _Decorated(Traced):
    """A decorated function with generic parameters and cached calls."""

    def __getitem__(self, given: Any) -> Any:
        """Return the function with its generic parameters set: ``f[16, cute.Float32]``."""
        from cute_dialect.lang.calls.traced import applied  # late: start-up

        return applied(self, given)

    @finishes_errors
    def other(self, args: tuple[Any, ...], stream: Any, options: dict[str, Any]) -> Any:
        """Run a call that the generated fast path did not recognize."""
        left = self.recall(self, args, stream, options)
        if left is None:
            return None
        return self.call(left, options if stream is None else {**options, "stream": stream})

    def recall(self, calls: Any, args: tuple[Any, ...], stream: Any, options: dict[str, Any]) -> tuple[Any, ...] | None:
        from cute_dialect.lang.calls.cache.fast_path import other_call  # late: start-up

        return other_call(calls, args, stream, options)


class JitFunction(_Decorated):
    """A function under ``@cute.jit``. A call from Python compiles and runs it; a call in a trace inlines it."""

    kind = "jit"

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any], *, receiver: bool = False) -> Any:
        if active() is not None:
            from cute_dialect.lang.calls.host import inlined  # late: start-up

            return inlined(self, args, kwargs)
        from cute_dialect.lang.calls.options import options_of  # late: start-up
        from cute_dialect.lang.calls.specializations import read_call, split_options  # late: start-up

        own, options = split_options(self, kwargs)
        uncached = options.pop("no_cache", False)
        call = read_call(self, args, own, receiver=receiver)
        chosen = options_of(self, options.get("device"))
        table = self._new_table() if uncached else self.table
        kind = table.find(call, chosen._replace(cache=False) if uncached else chosen)
        result = kind.run(call.values, options)
        if not uncached and not own and options.keys() <= {"stream"} and kind.is_on_gpu:
            from cute_dialect.lang.calls.cache.fast_path import learn  # late: start-up
            from cute_dialect.lang.calls.options import remember_quick_calls  # late: start-up

            learn(self.methods if receiver else self, kind, args, watch=True)
            remember_quick_calls(self)
        return result

    def _new_table(self) -> Specializations:
        from cute_dialect.lang.calls.specializations import Specializations  # late: start-up

        return Specializations(self, _trace_host)


class KernelFunction(_Decorated):
    """A function under ``@cute.kernel``. A call returns a :class:`~cute_dialect.lang.calls.host.Launch`."""

    kind = "kernel"

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any], *, receiver: bool = False) -> Any:
        from cute_dialect.lang.calls.host import Launch  # late: start-up

        return Launch(self, args, kwargs, receiver=receiver, called=True)

    def find_launch(self, launch: Launch, grid: Any, sizes: dict[str, Any], options: Any = None) -> Compiled:
        """Return the specialization for a launch outside a host function."""
        from cute_dialect.lang.calls.arguments import NumberSpec  # late: start-up
        from cute_dialect.lang.calls.cache.keys import static_key  # late: start-up
        from cute_dialect.lang.calls.specializations import read_call  # late: start-up

        call = read_call(self, launch.args, launch.kwargs, receiver=launch.receiver)
        launch.values = tuple(call.values.values())
        specs = {**call.specs, **{f"grid.{axis}": NumberSpec(Int32) for axis in "xyz"}}
        config = tuple(sizes.items())
        static_key(config, "launch")
        return self.table.find(call._replace(specs=specs), options, Config(config))

    def _new_table(self) -> Specializations:
        from cute_dialect.lang.calls.specializations import Specializations  # late: start-up

        return Specializations(self, _trace_launch)


def _trace_host(*args: Any) -> Program:
    from cute_dialect.lang.calls.host import trace_host  # late: start-up

    return trace_host(*args)


def _trace_launch(*args: Any) -> Program:
    from cute_dialect.lang.calls.host import trace_launch  # late: start-up

    return trace_launch(*args)


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
        from cute_dialect.lang.calls.options import said  # late: start-up

        said(options["options"])
    if function is None:
        return lambda f: kind(f, options)
    if not callable(function) and not isinstance(function, staticmethod | classmethod):
        raise KernelTypeError(
            "F103", f"@cute.{kind.kind} decorates a function, got {type(function).__name__}; pass options by keyword"
        )
    return kind(function, options)
