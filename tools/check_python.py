"""``cute-check`` of Python files: trace ``@cute.jit`` and ``@cute.kernel`` functions with examples."""

from __future__ import annotations

import importlib.util
import inspect
import linecache
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterator
from importlib.machinery import SourceFileLoader
from types import CodeType, ModuleType
from typing import Any, NamedTuple, cast

from cute_dialect.errors import CompileError
from cute_dialect.lang.calls.compile import examples_of, trace
from cute_dialect.lang.calls.decorators import KernelFunction
from cute_dialect.lang.calls.traced import Traced
from cute_dialect.pipelines.compilation import LoweringError
from cute_dialect.tools.check_mlir import finding_of
from cute_dialect.tools.check_report import Finding, Related


class Unchecked(NamedTuple):
    """A function without an example or complete annotations; ``parameters`` is their text."""

    name: str
    line: int
    decorator: str
    parameters: str

    @property
    def advice(self) -> str:
        """Python code of an example to add, with a placeholder for each parameter."""
        launch = ", grid=1, block=128" if self.decorator == "kernel" else ""
        given = f"({self.parameters},)" if self.parameters and "," not in self.parameters else f"({self.parameters})"
        head = f"@cute.example(lambda: {given}{launch})"
        return f"{head}\n@cute.{self.decorator}\ndef {self.name}({self.parameters}): ..."


class Checked(NamedTuple):
    """The result for a file: findings, number of checked functions, and functions not checked."""

    found: list[Finding]
    checked: int
    unchecked: list[Unchecked]


def check_python(file: str, chip: str | None, remarks: bool, verbose: bool, text: str | None = None) -> Checked:
    """Check the functions of a file.

    Args:
        chip: the GPU architecture; None for the default.
        remarks: also report performance remarks.
        verbose: print the state of each function to standard error.
        text: the text in an editor, if it may differ from the file on disk.
    """
    module, wrong = imported(file, text)
    if module is None:
        return Checked(wrong, 0, [])
    found: list[Finding] = []
    unchecked: list[Unchecked] = []
    checked = 0
    for name, function in functions_of(module):
        try:
            examples = examples_of(function)
        except CompileError as e:
            found.append(_of_error(e, file))
            continue
        if not examples:
            unchecked.append(_unchecked(name, function, file))
            if verbose:
                print(f"{file}: {name}: not checked; it has no example and incomplete annotations", file=sys.stderr)
        for n, one in enumerate(examples):
            checked += 1
            findings = _check(file, name, function, one.arguments, one.launch, chip, remarks)
            # Two functions may launch the same kernel, so drop duplicate findings.
            found += [f for f in findings if not any(f[:8] == g[:8] for g in found)]
            if verbose:
                which = f", example {n + 1}" if len(examples) > 1 else ""
                state = "checked" if not any(f.severity == "error" for f in findings) else "wrong"
                print(f"{file}: {name}{which}: {state}", file=sys.stderr)
    return Checked(found, checked, unchecked)


def _unchecked(name: str, function: Traced, file: str) -> Unchecked:
    parameters = ", ".join(inspect.signature(cast("Callable[..., object]", function.function)).parameters)
    decorator = "kernel" if isinstance(function, KernelFunction) else "jit"
    return Unchecked(name.rpartition(".")[2], _place(function, file)[1], decorator, parameters)


class _Text(SourceFileLoader):
    """A module loader that uses the given text instead of that of the file."""

    def __init__(self, name: str, path: str, text: str):
        super().__init__(name, path)
        self._text = text
        linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)

    def get_code(self, fullname: str) -> CodeType:
        """Compile the text without caching bytecode on disk."""
        return compile(self._text, self.path, "exec", dont_inherit=True)


def imported(file: str, text: str | None = None) -> tuple[ModuleType | None, list[Finding]]:
    """Import a file as a module; an exception becomes a finding at its line."""
    name = f"cute_check_{os.path.splitext(os.path.basename(file))[0]}"
    path = os.path.abspath(file)
    loader = _Text(name, path, text) if text is not None else None
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    if spec is None or spec.loader is None or not (loader or os.path.isfile(file)):
        return None, [_plain(file, 0, 0, "cannot read the file: it does not exist")]
    module = importlib.util.module_from_spec(spec)
    folder = os.path.dirname(os.path.abspath(file))
    sys.path.insert(0, folder)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except CompileError as e:
        return None, [_of_error(e, file)]
    except SyntaxError as e:
        return None, [_plain(e.filename or file, e.lineno or 0, e.offset or 0, f"SyntaxError: {e.msg}")]
    except (Exception, SystemExit) as e:
        frames = [f for f in traceback.extract_tb(e.__traceback__) if os.path.abspath(f.filename) == spec.origin]
        line = (frames[-1].lineno or 0) if frames else 0
        col = (frames[-1].colno or 0) + 1 if frames else 0
        return None, [_plain(file, line, col, f"cannot import the file: {type(e).__name__}: {e}")]
    finally:
        sys.path.remove(folder)
        sys.modules.pop(name, None)
    return module, []


def functions_of(module: ModuleType) -> Iterator[tuple[str, Traced]]:
    """Yield the decorated functions and methods of a module in source order."""
    seen: set[int] = set()
    found: list[tuple[int, str, Traced]] = []

    def add(name: str, value: Any) -> None:
        own = getattr(value, "__module__", None) == module.__name__
        if isinstance(value, Traced) and own and id(value) not in seen:
            seen.add(id(value))
            code = getattr(value.function, "__code__", None)
            found.append((code.co_firstlineno if code is not None else 0, name, value))

    for name, value in list(vars(module).items()):
        add(name, value)
        if isinstance(value, type) and value.__module__ == module.__name__:
            for inner, method in list(vars(value).items()):
                add(f"{name}.{inner}", method)
    yield from ((name, value) for _, name, value in sorted(found, key=lambda f: f[0]))


def _check(
    file: str, name: str, function: Traced, arguments: Any, launch: dict[str, Any], chip: str | None, remarks: bool
) -> list[Finding]:
    try:
        given = arguments()
        args = cast("tuple[Any, ...]", given) if isinstance(given, tuple) else (given,)
    except CompileError as e:
        return [_of_error(e, file)]
    except Exception as e:
        return [_plain(*_place(function, file), f"the example of {name} raises {type(e).__name__}: {e}")]
    called: Any = function
    if "." in name:  # The first argument of a method is its receiver.
        if not args:
            return [
                _plain(*_place(function, file), f"the example of {name} has no receiver; pass it as the first argument")
            ]
        called, args = getattr(args[0], name.rpartition(".")[2]), args[1:]
    try:
        made = trace(called, *args, chip=chip, **launch)
        made.kernel(cpu=True)
    except LoweringError as e:
        if e.diagnostics:
            return [finding_of(d, {}) for d in e.diagnostics]
        return [_plain(*_place(function, file), str(e))]
    except CompileError as e:
        return [_of_error(e, file)]
    if not remarks:
        return []
    return [_remark(text, *_place(function, file)) for text in made.remarks]


def _remark(text: str, file: str, line: int, col: int) -> Finding:
    """Convert a remark to a finding at the location in its text, or else at its function."""
    named = re.match(r"(.*?):(\d+):(\d+): remark (.*)", text, re.DOTALL)
    if named is None:
        return _plain(file, line, col, text, "remark")
    return _plain(named[1], int(named[2]), int(named[3]), named[4], "remark")


def _place(function: Traced, file: str) -> tuple[str, int, int]:
    code = getattr(function.function, "__code__", None)
    return (file, code.co_firstlineno, 1) if code is not None else (file, 0, 0)


def _plain(file: str, line: int, col: int, message: str, severity: str = "error") -> Finding:
    at = f"{file}:{line}:{col}" if line else file
    code = "python" if severity == "error" else "remark"
    return Finding(severity, code, message, file, line, col, 0, 0, (), "", f"{at}: {severity}: {message}")


def _of_error(e: CompileError, file: str) -> Finding:
    """Convert an error of the language to a finding; without a location it refers to the file."""
    place = e.place
    related = [Related(text, p.file, p.line, p.col) if p is not None else Related(text) for text, p in e.notes]
    related += [Related("called from here", p.file, p.line, p.col) for p in e.calls]
    at = place[:5] if place is not None else (file, 0, 0, 0, 0)
    text = str(e) if place is not None else f"{file}: {e}"
    return Finding("error", e.code, e.message, *at, tuple(related), e.hint, text)
