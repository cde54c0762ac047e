"""Ahead-of-time compilation: ``cute.compile``, in parallel or in the background, and example arguments of functions.

``cute-check`` and editors trace functions with their examples::

    @cute.example(lambda: (cute.runtime.make_fake_compact_tensor(cute.Float32, (cute.sym_int(),)), 2.0))
    @cute.jit
    def scale(x, by): ...
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from cute_dialect.errors import CompileError
from cute_dialect.lang.calls.compiled import Compiled
from cute_dialect.lang.calls.decorators import JitFunction, KernelFunction
from cute_dialect.lang.calls.options import CompileOption, default_device, options_of, said
from cute_dialect.lang.calls.runtime_tensor import make_fake_compact_tensor, sym_int
from cute_dialect.lang.calls.specializations import head_of, read_call
from cute_dialect.lang.calls.traced import BoundMethod, Traced, generic_names
from cute_dialect.lang.tracing.errors import KernelTypeError
from cute_dialect.lang.tracing.tracer import finishes_errors
from cute_dialect.lang.values.annotations import TensorAnnotation, annotations_of, is_number_type
from cute_dialect.lang.values.dtypes import NumericType

if TYPE_CHECKING:
    import concurrent.futures
    from collections.abc import Callable

    from cute_dialect.lang.values.signature_types import Int, Shape


class _Compile:
    """Compile a function before it is called.

    ``cute.compile(f, x, y)`` or ``cute.compile[cute.OptLevel(2)](f, x, y)``.  Arguments are arrays, tensors without
    memory, numbers or element types.  ``cute.trace`` takes the same arguments and generates no machine code.
    """

    __slots__ = ("_options", "_traced")

    def __init__(self, options: tuple[CompileOption, ...] = (), *, traced: bool = False):
        self._options = options
        self._traced = traced

    def __getitem__(self, options: CompileOption | tuple[CompileOption, ...]) -> _Compile:
        """Return the compiler with options set: ``cute.compile[cute.OptLevel(2)](f, x)``."""
        given = options if isinstance(options, tuple) else (options,)
        for option in given:
            made = option() if isinstance(option, type) else option
            if not isinstance(made, CompileOption):
                raise KernelTypeError("F103", f"cute.compile[…] takes options such as cute.OptLevel(3), got {option!r}")
        return _Compile((*self._options, *[o() if isinstance(o, type) else o for o in given]), traced=self._traced)

    def __repr__(self) -> str:
        name = "cute.trace" if self._traced else "cute.compile"
        return f"{name}[{', '.join(map(repr, self._options))}]" if self._options else name

    @finishes_errors
    def __call__(
        self, function: Callable[..., Any], *args: Any, chip: str | None = None, options: str = "", cache: bool = True,
        grid: Shape = None, block: Shape = None, cluster: Shape = None, smem: Int | None = None,
        device: str | int | None = None, **kwargs: Any,
    ) -> Compiled:  # fmt: skip
        """Compile a function for these arguments: arrays, tensors without memory, numbers or element types.

        A function with a parameter named like one of the options below receives that argument itself.

        Args:
            function: a function under ``@cute.jit`` or ``@cute.kernel``.
            chip: the target architecture; by default that of the current GPU.
            options: options as text, such as ``"--opt-level 2"``.
            cache: use the compile cache on disk.
            grid, block, cluster, smem: sizes of the launch; a kernel needs grid and block.
            device: the default device of the result's calls; ``"cpu"`` generates no machine code.
        """
        sizes = {"grid": grid, "block": block, "cluster": cluster, "smem": smem}
        return self._compile(function, args, kwargs, sizes, chip, options, cache, device)

    def _compile(
        self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], sizes: dict[str, Any], chip: str | None,
        options: str, cache: bool, device: Any,
    ) -> Compiled:  # fmt: skip
        traced, receiver = _traced(function)
        own = head_of(traced).signature.parameters
        if device is not None and "device" in own:
            kwargs["device"], device = device, None
        if isinstance(traced, JitFunction):
            kwargs.update({k: v for k, v in sizes.items() if v is not None})
        else:
            kwargs.update({k: sizes.pop(k) for k in list(sizes) if k in own and sizes[k] is not None})
        made = options_of(traced, device, said(options, self._options), chip=chip, cache=cache)
        if isinstance(traced, KernelFunction):
            if sizes.get("grid") is None or sizes.get("block") is None:
                raise KernelTypeError(
                    "F115", f"cute.compile: the kernel '{traced.name}' needs grid and block",
                    hint="cute.compile(kernel, …, grid=…, block=…)",
                )  # fmt: skip
            from cute_dialect.lang.calls.host import Launch  # late: start-up

            launch = Launch(traced, (*receiver, *args), kwargs, receiver=bool(receiver))
            found = traced.find_launch(launch, sizes.pop("grid"), sizes, made)
        else:
            call = read_call(traced, (*receiver, *args), kwargs, partial=True, receiver=bool(receiver))
            found = traced.table.find(call, made)
        if device is not None:
            found = found.on(device)
        if not self._traced:
            found.kernel(cpu=_on_cpu() if device is None else device == "cpu")
        return found


compile = _Compile()
trace = _Compile(traced=True)
"""Like :data:`compile`, but only traces: the IR is in ``.mlir()``, and machine code is generated on demand."""


def explain(function: Callable[..., Any], *args: Any, **kwargs: Any) -> str:
    """Return a report of a function's trace: the static parts of its arguments and the ops of each source line.

    ``args`` and ``kwargs`` are those of ``cute.compile``.
    """
    return compile(function, *args, **kwargs).explain()


def _on_cpu() -> bool:
    """Return True if calls run on the interpreter by default, so that machine code is not needed yet."""
    return default_device() == "cpu"


def _traced(function: Any) -> tuple[Traced, tuple[Any, ...]]:
    """Return the decorated function, and its receiver if it is a method."""
    if isinstance(function, Traced):
        return function, ()
    if isinstance(function, BoundMethod):
        return function.function, (function.__self__,)
    call = getattr(type(function), "__call__", None)  # noqa: B004  (it may be decorated)
    if isinstance(call, Traced):
        return call, (function,)
    is_compiled = isinstance(function, Compiled)
    raise CompileError(
        "F102", f"cute.compile takes a function decorated with @cute.jit or @cute.kernel, got {function!r}",
        hint="pass the @cute.jit function, not the compiled one" if is_compiled else "decorate the function",
    )  # fmt: skip


def compile_async(function: Callable[..., Any], *args: Any, **kwargs: Any) -> concurrent.futures.Future[Compiled]:
    """Compile in the background: ``cute.compile_async(f, x).result()``.

    Tracing runs in a thread of this process, compilation in another process.
    """
    import contextvars

    return _pool().submit(contextvars.copy_context().run, _elsewhere, function, *args, **kwargs)


def precompile(calls: Iterable[tuple[Any, Sequence[Any]]], workers: int | None = None) -> list[Compiled]:
    """Compile many specializations in parallel. Errors are raised when all are done.

    Tracing runs in this process, one function after another.  On a terminal a progress bar is shown
    (``CUTE_PROGRESS``). ``Ctrl-C`` starts no further compilation.

    Args:
        calls: pairs of a function and its arguments.
        workers: number of compiling processes; by default one per available CPU.
    """
    import concurrent.futures  # late: start-up

    from cute_dialect.runtime.progress import Task  # late: start-up

    count = workers if workers is not None else len(os.sched_getaffinity(0))
    pool = concurrent.futures.ThreadPoolExecutor(count, thread_name_prefix="cute-compile")
    made: list[concurrent.futures.Future[Compiled]] = []
    wanted = list(calls)
    try:
        with Task("compiling", len(wanted), "kernels") as task:
            for function, args in wanted:
                try:
                    kind = trace(function, *args)
                except Exception as e:
                    made.append(concurrent.futures.Future())
                    made[-1].set_exception(e)
                else:
                    made.append(pool.submit(_ready, kind))
            for done in concurrent.futures.as_completed(made):
                name = "" if done.exception() is not None else done.result().name
                task.advance(name=name)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
    return [m.result() for m in made]


def _elsewhere(function: Any, *args: Any, **kwargs: Any) -> Compiled:
    return _ready(trace(function, *args, **kwargs))


def _ready(kind: Compiled) -> Compiled:
    kind.kernel(cpu=kind.device == "cpu" or (kind.device is None and _on_cpu()), elsewhere=True)
    return kind


@lru_cache(maxsize=1)
def _pool() -> concurrent.futures.ThreadPoolExecutor:
    import concurrent.futures  # late: start-up

    return concurrent.futures.ThreadPoolExecutor(thread_name_prefix="cute-compile")


# ---------------------------------------------------------------------------------------------------- example arguments


T = TypeVar("T")
ALIGNED = 16
"""Alignment of tensors created from annotations, in bytes. NumPy and torch arrays have the same."""


class Example(NamedTuple):
    """An example call: a function that returns the argument tuple (receiver first), and a kernel's grid and block."""

    arguments: Callable[[], Any]
    launch: dict[str, Any]


def example(arguments: Callable[[], Any], **launch: Any) -> Callable[[T], T]:
    """Add example arguments to a function. Place it above ``@cute.jit`` or ``@cute.kernel``, once per specialization.

    Args:
        arguments: a function that returns the tuple of arguments, called when the example is traced.
        launch: grid and block of a kernel.

    Example:
        >>> from cute_dialect.lang.calls.decorators import jit
        >>> @example(lambda: (1,))
        ... @jit
        ... def twice(n): return 2 * n
    """
    if not callable(arguments):
        raise KernelTypeError(
            "F112", f"cute.example needs a function that returns the arguments, got {arguments!r}",
            hint="cute.example(lambda: (x, y))",
        )  # fmt: skip

    def add(function: T) -> T:
        if not isinstance(function, Traced):
            raise CompileError(
                "F102", f"cute.example must decorate a function under @cute.jit or @cute.kernel, got {function!r}",
                hint="place it above the other decorator",
            )  # fmt: skip
        function.__dict__.setdefault("_examples", []).insert(0, Example(arguments, launch))
        return function

    return add


def examples_of(function: Traced) -> list[Example]:
    """Return the examples of a function: those given, or one derived from its annotations, or none.

    Annotations suffice if each parameter without a default is a tensor with an element type and extents, or a number
    type. Named extents become symbols, and tensors are compact with the last mode contiguous.  A kernel gets one block
    of 128 threads.
    """
    given: list[Example] = function.__dict__.get("_examples", [])
    if given:
        return given
    made = _of_annotations(function)
    launch = {"grid": 1, "block": 128} if isinstance(function, KernelFunction) else {}
    return [Example(lambda: made, launch)] if made is not None else []


def _of_annotations(function: Traced) -> tuple[Any, ...] | None:
    if isinstance(function.function, staticmethod | classmethod) or generic_names(function):
        return None
    found = annotations_of(function.function, {})
    symbols: dict[str, Any] = {}
    out: list[Any] = []
    for p in inspect.signature(function.function).parameters.values():
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) or p.default is not p.empty:
            break
        made = _argument(found.get(p.name), symbols) if p.kind is not p.KEYWORD_ONLY else None
        if made is None:
            return None
        out.append(made)
    return tuple(out)


def _argument(annotation: object, symbols: dict[str, Any]) -> Any:
    """Return an example argument for an annotation, or None if the annotation is not specific enough."""
    if isinstance(annotation, NumericType) and is_number_type(annotation):
        return annotation(1)  # Numbers are run-time arguments, so any value will do.
    if not isinstance(annotation, TensorAnnotation) or annotation.dims is None:
        return None
    if not isinstance(annotation.dtype, NumericType):
        return None
    shape = [_extent(d, symbols) for d in annotation.dims]
    order = tuple(range(len(shape) - 1, -1, -1))
    return make_fake_compact_tensor(annotation.dtype, shape, stride_order=order, assumed_align=ALIGNED)


def _extent(dim: object, symbols: dict[str, Any]) -> Any:
    name, divisor = dim if isinstance(dim, tuple) else (dim, 1)
    if isinstance(name, int):
        return name
    if name is None:
        return sym_int(divisor)
    return symbols.setdefault(str(name), sym_int(divisor))
