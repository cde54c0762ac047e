"""Subjects of ``cute-explore``: a kernel of an IR file or a function of a Python file, with arguments for a run."""

from __future__ import annotations

import argparse
import os
import runpy
import sys
import traceback
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, redirect_stdout
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from cute_dialect.errors import CompileError
from cute_dialect.explore.collect import compiled
from cute_dialect.explore.runs import Run, copy_of, default_text, run
from cute_dialect.lang.calls.arguments import unpack
from cute_dialect.lang.calls.compile import examples_of, trace
from cute_dialect.lang.calls.compiled import observed
from cute_dialect.lang.calls.options import running_on
from cute_dialect.pipelines.compilation import read_text
from cute_dialect.pipelines.compiler import parse_module
from cute_dialect.runtime.launch_plan import LaunchError
from cute_dialect.tools.check_python import functions_of, imported
from cute_dialect.tools.run_call import RunError, only_kernel, values_of
from cute_dialect.tools.run_inputs import SpecError, make_arguments

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from cute_dialect.lang.calls.compile import Example
    from cute_dialect.lang.calls.compiled import Compiled
    from cute_dialect.lang.calls.traced import Traced
    from cute_dialect.runtime.launch import CompiledModule, Kernel


class ExploreError(Exception):
    """A user error of ``cute-explore``."""


class SourceError(ExploreError):
    """An error in the file to show; the message starts with its location."""


class Subject(NamedTuple):
    """A subject to show: its name, IR, compiled module, source files and run."""

    name: str
    trace: ModuleOp
    module: CompiledModule
    sources: Sequence[str]
    run: Run


def of_mlir(options: argparse.Namespace) -> Subject:
    """Compile the kernel of an IR file.

    Raises:
        CompileError: the file does not compile.
        ExploreError: the file or the options are invalid.
    """
    trace = parse_module(read_text(options.file), options.file)
    if not list(trace.ops):
        raise SourceError(f"{options.file}: error: the file defines no kernel and no function")
    module = compiled(trace, filename=options.file, pipeline=options.pipeline, chip=options.chip)
    return Subject(os.path.basename(options.file), trace, module, [options.file], _run(module, options, None, None))


def _run(
    module: CompiledModule, options: argparse.Namespace, name: str | None, arguments: Sequence[object] | None
) -> Run:
    """Run a kernel with the given arguments or random ones; a run that is not possible records the reason."""
    if options.no_run:
        return Run(why_not="Not run: --no-run.")
    try:
        kernel = module.kernel(name or options.kernel or only_kernel(module))
        given = arguments if arguments is not None else _arguments(kernel, options)
        return run(kernel, given, blocks=options.blocks)
    except (LaunchError, RunError, SpecError) as e:
        wrong_blocks = options.blocks is not None and not isinstance(e, RunError)
        if options.inputs or wrong_blocks or (options.kernel and not name):
            raise ExploreError(str(e)) from e
        return Run(why_not=f"Not run: {e}")


def _arguments(kernel: Kernel, options: argparse.Namespace) -> list[object]:
    given: list[str] = list(options.inputs)
    if not given:
        for name, param in zip(kernel.target.names, kernel.params):
            text = default_text(param, options.size)
            if text is not None:
                given.append(f"{name}={text}")
    return values_of(make_arguments(kernel.params, kernel.target.names, given, options.seed))


# -------------------------------------------------------------------------------------------------------------- Python


class _Call(NamedTuple):
    """A recorded call of a program or an example.  Without arguments, random ones are generated."""

    made: Compiled
    arguments: Sequence[object] | None


def of_python(options: argparse.Namespace) -> Subject:
    """Select a function of a Python file: one with an example, or else one that the program calls.

    Raises:
        CompileError: the function does not compile.
        ExploreError: the file or the options are invalid.
    """
    found: dict[str, Callable[[], _Call]] = _examples(options) if not options.arguments else {}
    if not found or options.function not in (None, *found):
        found |= _program(options)
    if options.function not in (None, *found):
        raise ExploreError(f"--function: expected one of {', '.join(found) or 'none'}, got {options.function!r}")
    if not found:
        raise SourceError(
            f"{options.file}: error: no function to show: add @cute.example or annotations to a function under "
            "@cute.jit or @cute.kernel, or call one when the file runs (see cute-explore --help)"
        )
    name = options.function or next(iter(found))
    if options.function is None and len(found) > 1:
        others = ", ".join([other for other in found if other != name])
        print(f"cute-explore: showing {name}; other values of --function: {others}", file=sys.stderr)
    made, arguments = found[name]()
    trace = made.module()
    module = compiled(trace, filename=options.file, chip=options.chip or made.options.chip)
    return Subject(name, trace, module, [options.file], _run(module, options, made.outcome.name, arguments))


def _examples(options: argparse.Namespace) -> dict[str, Callable[[], _Call]]:
    """Map the functions with examples to callbacks that trace them with their first example."""
    with _arguments_of(options.file, ()), redirect_stdout(sys.stderr):
        module, wrong = imported(options.file)
    if module is None:
        raise SourceError(wrong[0].text)
    found: dict[str, Callable[[], _Call]] = {}
    for name, function in functions_of(module):
        try:
            examples = examples_of(function)
        except CompileError:  # The annotations are not resolvable here.
            continue
        if examples:
            found[name] = partial(_example_call, options, name, function, examples[0])
    return found


def _example_call(options: argparse.Namespace, name: str, function: Traced, example: Example) -> _Call:
    try:
        given = example.arguments()
    except CompileError:
        raise
    except Exception as e:
        code = function.function.__code__
        place = f"{options.file}:{code.co_firstlineno}:1"
        raise SourceError(f"{place}: error: the example of {name} raises {type(e).__name__}: {e}") from e
    args = cast("tuple[Any, ...]", given) if isinstance(given, tuple) else (given,)
    called: Any = function
    if "." in name and args:  # The first argument of a method is its receiver.
        called, args = getattr(args[0], name.rpartition(".")[2]), args[1:]
    made = trace(called, *args, chip=options.chip, **example.launch)
    return _Call(made, _with_memory(made, args))


def _with_memory(made: Compiled, args: tuple[Any, ...]) -> Sequence[object] | None:
    """Return copies of the arguments of an example, or None if they are fake tensors without data."""
    try:
        return _copies(unpack(made.specs, made.arguments(args, {})))
    except (CompileError, LaunchError):
        return None


def _copies(leaves: Sequence[object]) -> list[object]:
    return [copy_of(leaf) for leaf in leaves]


def _program(options: argparse.Namespace) -> dict[str, Callable[[], _Call]]:
    """Run the file as a program on the interpreter; return the first call of each function that it calls."""
    found: dict[str, Callable[[], _Call]] = {}

    def observe(made: Compiled, leaves: Sequence[object]) -> None:
        if made.outcome.outputs is None and made.name not in found:
            found[made.name] = partial(_Call, made, _copies(leaves))

    with _arguments_of(options.file, options.arguments), observed(observe), running_on("cpu"):
        _execute(options.file)
    return found


@contextmanager
def _arguments_of(file: str, arguments: Sequence[str]) -> Generator[None]:
    """Set ``sys.argv`` for a program."""
    argv, sys.argv = sys.argv, [file, *arguments]
    try:
        yield
    finally:
        sys.argv = argv


def _execute(file: str) -> None:
    """Run a file as a program, with its output redirected to standard error.

    Raises:
        CompileError: a kernel does not compile.
        ExploreError: the program fails.
    """
    try:
        with redirect_stdout(sys.stderr):
            runpy.run_path(file, run_name="__main__")
    except SystemExit as e:
        if e.code not in (None, 0):
            raise ExploreError(f"{file}: the program exited with {e.code}; pass its arguments after --") from e
    except CompileError:
        raise
    except FileNotFoundError as e:
        raise ExploreError(f"{e.filename}: {e.strerror}") from e
    except Exception as e:
        lines = [f.lineno for f in traceback.extract_tb(e.__traceback__) if f.filename == file]
        place = f"{file}:{lines[-1]}:1" if lines else file
        raise SourceError(f"{place}: error: the program raises {type(e).__name__}: {e}") from e
