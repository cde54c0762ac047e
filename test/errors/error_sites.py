"""Every place that makes an error for the user, and which of them a run reaches.

A *site* is, in the modules of :data:`SCANNED`, one of

* ``raise Error(…)``, unless the class is of :data:`NOT_FOR_USERS`;
* ``parser.raise_error("…")`` and ``context.error("…")``;
* a sentence that a function of type ``str | None`` returns: the verifier's functions give what is wrong, or None.

They are found in the syntax tree.  :func:`install` makes the modules be imported with each site's expression wrapped in
a call that notes the site and its message; nothing else about them changes.  So "reached" means that this very
expression was evaluated, not that a line near it was.  Modules are compiled once, when they are imported: a process of
its own is needed, ``python test/errors/error_sites.py`` runs ``test/errors`` and the other files of wrong input in one.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import re
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, NamedTuple

import pytest

if TYPE_CHECKING:
    from cute_dialect.ir.diagnostics import Diagnostic

TEST = Path(__file__).parents[1]
CORPUS = TEST / "errors"
PACKAGE = TEST.parent / "cute_dialect"

SCANNED = (".", "algebra", "arch", "ir", "ops", "upstream", "passes", "passes/lowering")
"""Folders of the package whose modules are looked at."""

NOT_SCANNED = {
    "upstream/generate.py": "a tool of this project's developers, it makes upstream/tables",
    "arch/__main__.py": "lists the atoms, reads nothing",
}

NOT_FOR_USERS = {
    "AssertionError": "a bug of ours",
    "AttributeError": "the protocol of __getattr__",
    "IndexError": "the protocol of sequences",
    "KeyError": "the protocol of mappings",
    "NotImplementedError": "an abstract method",
    "TypeError": "a Python function called with wrong arguments",
    "NeedsMemory": "caught: a tensor goes from registers to local memory, which is a remark",
}

NOTE = "__note_error__"
"""The name that the wrapped expressions call."""


class Site(NamedTuple):
    """One place: module, function, line, and the words of its message that are literal (what varies is ``…``)."""

    path: str
    where: str
    line: int
    words: str
    nth: int = 1
    """Which of the sites of the function with the same words."""

    @property
    def key(self) -> str:
        """What names the site while lines move: ``ops/base.py CuteOp.check_types: expected …, got …``."""
        return f"{self.path} {self.where}: {self.words}" + (f" #{self.nth}" if self.nth > 1 else "")


def _name(e: ast.expr) -> str:
    return e.id if isinstance(e, ast.Name) else e.attr if isinstance(e, ast.Attribute) else ""


def _words(e: ast.expr) -> str:
    """The literal words of a message, from the first string of an expression.

    >>> _words(ast.parse('f"expected {a}, got {b} and so on"', mode="eval").body)
    'expected …, got … and so on'
    """
    if isinstance(e, ast.Constant):
        return str(e.value) if isinstance(e.value, str) else "…"
    if isinstance(e, ast.JoinedStr):
        return "".join(_words(v) if isinstance(v, ast.Constant) else "…" for v in e.values)
    if isinstance(e, ast.Call):
        return _words(e.args[0]) if e.args else ""
    if isinstance(e, ast.BinOp):
        return _words(e.left) + _words(e.right)
    if isinstance(e, ast.IfExp):
        return f"{_words(e.body)} | {_words(e.orelse)}"
    return "…"


class _Wrapper(ast.NodeTransformer):
    """Finds the sites of a module and wraps each in a call of :data:`NOTE`."""

    def __init__(self, path: str):
        self.path = path
        self.sites: list[Site] = []
        self._scope: list[str] = []
        self._gives_message: list[bool] = []

    def _wrapped(self, e: ast.expr) -> ast.expr:
        words = _words(e)
        where = ".".join(self._scope)
        nth = 1 + sum(s.where == where and s.words == words for s in self.sites)
        self.sites.append(Site(self.path, where, e.lineno, words, nth))
        key = ast.Constant(self.sites[-1].key)
        return ast.copy_location(ast.Call(ast.Name(NOTE, ast.Load()), [key, e], []), e)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        self._scope.append(node.name)
        self.generic_visit(node)
        self._scope.pop()
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self._scope.append(node.name)
        self._gives_message.append(node.returns is not None and ast.unparse(node.returns) == "str | None")
        self.generic_visit(node)
        self._gives_message.pop()
        self._scope.pop()
        return node

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.exc, ast.Call) and _name(node.exc.func) not in NOT_FOR_USERS:
            node.exc = self._wrapped(node.exc)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        # What only hands on a message that it was given (error(message)) is no site.
        called = node.func.attr if isinstance(node.func, ast.Attribute) and node.args else ""
        if called == "raise_error" or (called == "error" and not isinstance(node.args[0], ast.Name)):
            node.args[0] = self._wrapped(node.args[0])
        return node

    def visit_Return(self, node: ast.Return) -> ast.AST:
        self.generic_visit(node)
        if node.value is not None and self._gives_message and self._gives_message[-1]:
            node.value = self._sentences(node.value)
        return node

    def _sentences(self, e: ast.expr) -> ast.expr:
        if isinstance(e, ast.IfExp):
            e.body, e.orelse = self._sentences(e.body), self._sentences(e.orelse)
        elif isinstance(e, (ast.Constant, ast.JoinedStr)) and " " in _words(e):
            return self._wrapped(e)
        return e


def _instrumented(path: str) -> tuple[ast.Module, list[Site]]:
    wrapper = _Wrapper(path)
    tree = wrapper.visit(ast.parse((PACKAGE / path).read_text(encoding="utf-8")))
    return ast.fix_missing_locations(tree), wrapper.sites


def modules() -> list[str]:
    """The modules that are looked at, as paths in the package."""
    found = (p.relative_to(PACKAGE).as_posix() for folder in SCANNED for p in sorted((PACKAGE / folder).glob("*.py")))
    return [path for path in found if path not in NOT_SCANNED]


def sites() -> list[Site]:
    """Every site, in the order of the text."""
    return sorted(site for path in modules() for site in _instrumented(path)[1])


class _Loader(SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType:
        tree, _ = _instrumented(Path(self.path).relative_to(PACKAGE).as_posix())
        return compile(tree, self.path, "exec")


class _Finder(MetaPathFinder):
    def __init__(self) -> None:
        self._paths = {str(PACKAGE / path) for path in modules()}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith("cute_dialect"):
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.origin in self._paths:
            spec.loader = _Loader(fullname, spec.origin)
        return spec


def install(note: Callable[[str, str], None]) -> None:
    """Import the package's modules so that each site calls ``note(key, message)`` when it is reached."""
    import builtins

    def noted(key: str, value: object) -> object:
        note(key, str(value))
        return value

    assert not any(name.startswith("cute_dialect.") for name in sys.modules), "the modules are imported already"
    setattr(builtins, NOTE, noted)
    sys.meta_path.insert(0, _Finder())


# ---------------------------------------------------------------------------------------------------------- the corpus

_RUN = re.compile(r"^// RUN: cute-opt %s (.*--verify-diagnostics.*?)(?: \| .*)?$", re.M)


_MARK = re.compile(r"^// *\^$")


def files() -> Iterator[tuple[Path, list[str]]]:
    """The files of wrong input, which say themselves what is wrong with them, and the options they are run with."""
    for path in sorted(TEST.rglob("*.mlir")):
        text = path.read_text(encoding="utf-8")
        if "expected-error" in text and "REQUIRES:" not in text:
            for found in _RUN.finditer(text):
                yield path, shlex.split(found.group(1))


def run_corpus(note: Callable[[str, str, str], None]) -> list[str]:
    """Run every file and every case of ``error_cases``; calls ``note(key, message, source)``; gives what went wrong."""
    here = ""
    install(lambda key, message: note(key, message, here))
    from error_cases import CALLS, COMMANDS, EXPRESSIONS, namespace

    from cute_dialect.tools import verify_diagnostics

    compare = verify_diagnostics.compare
    seen: list[Diagnostic] = []

    def remembered(text: str, file: str, found: Iterable[Diagnostic], line_offset: int = 0) -> list[Diagnostic]:
        found = list(found)
        seen.extend(found)
        return compare(text, file, found, line_offset)

    verify_diagnostics.compare = remembered
    wrong: list[str] = []
    for path, options in files():
        here = path.relative_to(TEST).as_posix()
        seen.clear()
        status, said = _cute_opt([str(path), *options])
        if status != 0:
            wrong.append(f"{here}: {said}")
        if path.parent == CORPUS:
            wrong += _columns(path, seen)
    here = "error_cases.py"
    with tempfile.NamedTemporaryFile("w", suffix=".mlir") as empty:
        for arguments, words in COMMANDS:
            status, said = _cute_opt([empty.name, *arguments])
            if status != 1 or words not in said or "internal error" in said:
                wrong.append(f"cute-opt {' '.join(arguments)}: expected '{words}', got: {said}")
    here = "unit tests"
    wrong += _unit_tests()
    here = "error_cases.py"
    names = namespace()
    calls = [(call.__name__, call, words) for call, words in CALLS]
    calls += [(text, lambda text=text: eval(text, names), words) for text, words in EXPRESSIONS]
    for name, call, words in calls:
        try:
            call()
        except Exception as e:
            if words not in str(e):
                wrong.append(f"{name}: expected '{words}', got {type(e).__name__}: {e}")
        else:
            wrong.append(f"{name}: expected '{words}', got no error")
    return wrong


UNIT_TESTS = (
    "algebra",
    "arch",
    "cute_nvgpu/test_make_tiled_copies.py",
    "cute_nvgpu/test_mma_ops.py",
    "cute_nvgpu/test_sparse_mma.py",
    "cute_nvgpu/test_sync_ops.py",
    "cute_nvgpu/test_tma_boxes.py",
    "dialect",
    "passes/test_outside_passes.py",
    "upstream/test_upstream_builders.py",
    "upstream/test_upstream_diagnostics.py",
)
"""Files of unit tests whose tests of errors count: of the algebra, of tables of atoms, of passes, of lines of IR."""


class _OnlyErrors:
    """A pytest plug-in: of the tests collected, those that expect an exception."""

    def __init__(self) -> None:
        self.failed: list[str] = []

    def pytest_collection_modifyitems(self, items: list[pytest.Function]) -> None:
        items[:] = [i for i in items if isinstance(i, pytest.Function) and "raises" in i.function.__code__.co_names]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.append(f"{report.nodeid}: {report.longreprtext}")


def _unit_tests() -> list[str]:
    """Run the tests of :data:`UNIT_TESTS` that expect an exception; what failed."""
    paths = [str(TEST / "unit" / path) for path in UNIT_TESTS]
    plugin = _OnlyErrors()
    with contextlib.redirect_stdout(io.StringIO()):
        pytest.main(["-q", "-p", "no:cacheprovider", "-p", "no:xdist", *paths], plugins=[plugin])
    return plugin.failed


def _cute_opt(arguments: list[str]) -> tuple[int, str]:
    """Exit status and what is said."""
    from cute_dialect.tools.cute_opt import main

    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        return main(arguments), said.getvalue()


def _columns(path: Path, seen: Iterable[Diagnostic]) -> list[str]:
    """Errors whose column is not that of the ``^`` in a comment under their line, where there is one."""
    lines = path.read_text(encoding="utf-8").split("\n")
    wrong: list[str] = []
    for d in seen:
        line, column = d.position.line, d.position.col
        if d.severity != "error" or not line:
            continue
        mark = lines[line] if line < len(lines) else ""  # the line after it: the list counts from 0
        if _MARK.match(mark) and mark.find("^") + 1 != column:
            wrong.append(f"{path.name}:{line}: expected the error in column {mark.find('^') + 1}, got {column}")
    return wrong


def main() -> int:
    """Print as JSON what went wrong, and of each site reached the first messages with the file they come from."""
    reached: dict[str, list[tuple[str, str]]] = {}

    def note(key: str, message: str, source: str) -> None:
        seen = reached.setdefault(key, [])
        if len(seen) < 3 and all(m != message for m, _ in seen):
            seen.append((message, source))

    wrong = run_corpus(note)
    json.dump({"wrong": wrong, "reached": reached}, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
