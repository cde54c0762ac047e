"""What ``cute-explore`` shows: a kernel of a file of IR, or a function of a Python file, with arguments for a run."""

from __future__ import annotations

import argparse
import os
import runpy
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from cute_dialect.explore.collect import compiled
from cute_dialect.explore.runs import Run, copy_of, default_text, run

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from cute_dialect.front.compiled import Compiled
    from cute_dialect.runtime.launch import CompiledModule, Kernel

__all__ = ["ExploreError", "Subject", "of_mlir", "of_python"]


class ExploreError(Exception):
    """A mistake of a user of ``cute-explore``, as one message."""


class Subject(NamedTuple):
    """What is shown: its name, what was compiled, its source files, and its run."""

    name: str
    trace: ModuleOp
    module: CompiledModule
    sources: Sequence[str]
    run: Run


def of_mlir(options: argparse.Namespace) -> Subject:
    """Return the kernel of a file of IR.  Raises CompileError, ExploreError."""
    from cute_dialect.pipelines.stages import parse_module, read_text

    text = read_text(options.file)
    trace = parse_module(text, options.file)
    module = compiled(trace, filename=options.file, pipeline=options.pipeline, chip=options.chip)
    return Subject(os.path.basename(options.file), trace, module, [options.file], _run(module, options, None, None))


def _run(
    module: CompiledModule, options: argparse.Namespace, name: str | None, arguments: Sequence[object] | None
) -> Run:
    """Run a kernel with arguments, those of the command line or random ones; say why where that is not possible."""
    from cute_dialect.runtime.binding import LaunchError
    from cute_dialect.tools.run_call import RunError, only_kernel
    from cute_dialect.tools.run_inputs import SpecError

    if options.no_run:
        return Run(why_not="Not run: --no-run.")
    try:
        kernel = module.kernel(name or options.kernel or only_kernel(module))
        given = arguments if arguments is not None else _arguments(kernel, options)
        return run(kernel, given, blocks=options.blocks)
    except (LaunchError, RunError, SpecError) as e:
        if options.inputs or (options.kernel and not name):
            raise ExploreError(str(e)) from e
        return Run(why_not=f"Not run: {e}")


def _arguments(kernel: Kernel, options: argparse.Namespace) -> list[object]:
    from cute_dialect.tools.run_call import values_of
    from cute_dialect.tools.run_inputs import make_arguments

    given: list[str] = list(options.inputs)
    if not given:
        for name, param in zip(kernel.target.names, kernel.params):
            text = default_text(param, options.size)
            if text is not None:
                given.append(f"{name}={text}")
    return values_of(make_arguments(kernel.params, kernel.target.names, given, options.seed))


# -------------------------------------------------------------------------------------------------------------- Python


class _Call(NamedTuple):
    """A call that a program made, or that an example stands for; without arguments they are made up."""

    name: str
    made: Compiled
    arguments: Sequence[object] | None


def of_python(options: argparse.Namespace) -> Subject:
    """Return a function of a Python file: one with an example, else one that the program calls.

    Raises CuteError, CompileError, ExploreError.
    """
    calls = _examples(options) if not options.arguments else []
    calls = calls or _program(options)
    names = list(dict.fromkeys(c.name for c in calls))
    if options.function is not None:
        calls = [c for c in calls if c.name == options.function]
        if not calls:
            raise ExploreError(f"--function: expected one of {', '.join(names) or 'none'}, got {options.function!r}")
    if not calls:
        raise ExploreError(
            f"{options.file}: expected a function under @cute.jit or @cute.kernel that has an example or enough "
            "annotations, or that the file calls when it is run: none was found (cute-explore --help)"
        )
    if options.function is None and len(names) > 1:
        print(f"cute-explore: shown is {calls[0].name}; --function also has: {', '.join(names[1:])}", file=sys.stderr)
    name, made, arguments = calls[0]
    trace = made.module()
    module = compiled(trace, filename=options.file, chip=options.chip or made.options.chip)
    return Subject(name, trace, module, [options.file], _run(module, options, made.outcome.name, arguments))


def _examples(options: argparse.Namespace) -> list[_Call]:
    """Return the functions that have examples, traced with them."""
    from cute_dialect.front.compiling import trace
    from cute_dialect.front.errors import CuteError
    from cute_dialect.front.examples import examples_of
    from cute_dialect.tools.check_python import functions_of, imported

    with _arguments_of(options.file, ()):
        module, wrong = imported(options.file)
    if module is None:
        raise ExploreError(wrong[0].text)
    found: list[_Call] = []
    for name, function in functions_of(module):
        try:
            examples = examples_of(function)
        except CuteError:  # annotations that mean something where it is called
            continue
        for one in examples[:1]:
            given = one.arguments()
            args = cast("tuple[Any, ...]", given) if isinstance(given, tuple) else (given,)
            called: Any = function
            if "." in name and args:
                called, args = getattr(args[0], name.rpartition(".")[2]), args[1:]
            made = trace(called, *args, chip=options.chip, **one.launch)
            found.append(_Call(name, made, _with_memory(made, args)))
    return found


def _with_memory(made: Compiled, args: tuple[Any, ...]) -> Sequence[object] | None:
    """Return copies of the arguments of an example; None where they have no memory."""
    from cute_dialect.front.arguments import unpack
    from cute_dialect.front.errors import CuteError
    from cute_dialect.runtime.binding import LaunchError

    try:
        return _copies(unpack(made.specs, made.arguments(args, {})))
    except (CuteError, LaunchError):
        return None


def _copies(leaves: Sequence[object]) -> list[object]:
    return [copy_of(leaf) for leaf in leaves]


def _program(options: argparse.Namespace) -> list[_Call]:
    """Run the file as a program on the interpreter; return the calls that it makes, one of each kind."""
    from cute_dialect.front.compiled import observed
    from cute_dialect.front.target import running_on

    found: dict[int, _Call] = {}

    def observe(made: Compiled, leaves: Sequence[object]) -> None:
        if made.outcome.outputs is None and id(made) not in found:
            found[id(made)] = _Call(made.name, made, _copies(leaves))

    _as_program(options.file, options.arguments, lambda: observed(observe), lambda: running_on("cpu"))
    return list(found.values())


@contextmanager
def _arguments_of(file: str, arguments: Sequence[str]) -> Generator[None]:
    """Let a file find these arguments in ``sys.argv``, not ours."""
    argv, sys.argv = sys.argv, [file, *arguments]
    try:
        yield
    finally:
        sys.argv = argv


def _as_program(file: str, arguments: Sequence[str], *around: Callable[[], Any]) -> None:
    try:
        with ExitStack() as stack:
            stack.enter_context(_arguments_of(file, arguments))
            for one in around:
                stack.enter_context(one())
            stack.enter_context(redirect_stdout(sys.stderr))
            runpy.run_path(file, run_name="__main__")
    except SystemExit as e:
        if e.code not in (None, 0):
            raise ExploreError(f"{file}: it ended with {e.code} when it was run; its arguments go after --") from e
    except FileNotFoundError as e:
        raise ExploreError(f"{e.filename}: {e.strerror}") from e
