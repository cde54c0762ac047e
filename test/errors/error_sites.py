"""Every place that raises an error for the user is reached by a test, or has a comment that explains why not.

A *site* is, in the modules below :data:`SCANNED`, one of

* ``raise Error(…)``, unless the class is in :data:`NOT_FOR_USERS`; in the language also errors that are returned;
* ``parser.raise_error("…")`` and ``context.error("…")``;
* a sentence that a function of type ``str | None`` returns.  Such functions of the verifier return an error message or
  None.

The sites are found in the syntax tree.  :func:`install` wraps each site's expression, when its module is imported, in a
call that records the site.  The modules are otherwise unchanged.  A site is thus reached only if its own expression is
evaluated.  Line coverage could not show that, because half of the sites are branches of a conditional expression.
A site that no input can reach has a comment ``# unreachable: why`` on its line or just above it, which must be true.

Modules are compiled once, when they are imported, so ``python test/errors/error_sites.py`` runs in a separate process.
It runs ``test/errors``, the other files of invalid input, ``error_cases`` and the unit tests that expect an exception,
and prints the failures.  ``python test/errors/error_sites.py lang`` checks the modules of the language instead, and
runs ``test/errors/lang`` and :data:`UNIT_TESTS_OF_THE_LANGUAGE`.  With ``op``, as in ``make slow``, it checks the
operations and runs the tests of errors of ``test/unit/op``.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import io
import re
import shlex
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, NamedTuple

import pytest

if TYPE_CHECKING:
    from cute_dialect.ir.diagnostics import Diagnostic

TEST = Path(__file__).parents[1]
CORPUS = TEST / "errors"
PACKAGE = TEST.parent / "cute_dialect"

SCANNED = ("", "algebra", "arch", "cute_nvgpu", "dialect", "ir", "passes", "upstream")
"""Scanned folders of the package, with their subfolders; ``""`` is the package folder itself."""

LANGUAGE = ("lang", "compat")
"""Folders of the language, which are checked separately."""

OPERATIONS = ("op",)
"""Folders of the operations, which are checked separately."""

NOT_SCANNED = {
    "arch/__main__.py": "lists the atoms, reads nothing",
    "files.py": "says of a path what the system does; the programs that write files have tests",
    "flash_attn.py": "imports torch; test/unit/op/test_flash_attn.py has its errors",
    "flash_mla.py": "imports torch; test/unit/op/test_mla.py has its errors",
    "compat/torch_cpu.py": "answers torch's questions about GPUs for programs that are run on the interpreter",
}

NOT_FOR_USERS = {
    "AssertionError": "a bug of ours",
    "AttributeError": "the protocol of __getattr__",
    "IndexError": "the protocol of sequences",
    "KeyError": "the protocol of mappings",
    "NotImplementedError": "an abstract method",
    "TypeError": "a Python function called with wrong arguments",
    "SystemExit": "the exit status of a program",
    "Needed": "caught: a function is traced again with what it asked for as constants",
    "NoDigest": "caught: a kind is traced anew in each process, which is a remark",
    "NeedsMemory": "caught: a tensor goes from registers to local memory, which is a remark",
}

NOTE = "__note_error__"
"""The name that the wrapped expressions call."""

_WORDS = re.compile(r"[a-z]{2,} | [a-z]{2,}")
"""Two words separated by a blank, as in every sentence. IR such as ``1 : i32`` does not match."""

_UNREACHABLE = re.compile(r"# unreachable: \S")


class Site(NamedTuple):
    """A place that raises an error, with its position, and whether a comment marks it as unreachable."""

    path: str
    line: int
    column: int
    excused: bool


class _Wrapper(ast.NodeTransformer):
    """Finds the sites of a module and wraps each in a call of :data:`NOTE`."""

    def __init__(self, path: str):
        self.path = path
        self.text = (PACKAGE / path).read_text(encoding="utf-8")
        self.lines = self.text.split("\n")
        self.sites: list[Site] = []
        self.comments: set[int] = {n for n, line in enumerate(self.lines, 1) if _UNREACHABLE.search(line)}
        """Lines with an "unreachable" comment. After the module is visited, only those without a site remain."""
        self._gives_message: list[bool] = []
        self._is_language = path.partition("/")[0] in LANGUAGE

    def _excuses(self, first: int, last: int) -> set[int]:
        """Return the lines with an "unreachable" comment, in this range or in the comment just above it."""
        while first > 1 and self.lines[first - 2].lstrip().startswith("#"):
            first -= 1
        return {n for n, line in enumerate(self.lines[first - 1 : last], first) if _UNREACHABLE.search(line)}

    def _wrapped(self, e: ast.expr, at: ast.AST) -> ast.expr:
        excuses = self._excuses(at.lineno, at.end_lineno)  # pyright: ignore
        self.comments -= excuses
        site = Site(self.path, e.lineno, e.col_offset, bool(excuses))
        self.sites.append(site)
        arguments: list[ast.expr] = [ast.Constant(site[:3]), e]
        return ast.copy_location(ast.Call(ast.Name(NOTE, ast.Load()), arguments, []), e)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self._gives_message.append(node.returns is not None and ast.unparse(node.returns) == "str | None")
        self.generic_visit(node)
        self._gives_message.pop()
        return node

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.exc, ast.Call) and not self._is_site(node.exc):
            error = ast.unparse(node.exc.func).rpartition(".")[2]
            if error not in NOT_FOR_USERS or (error == "TypeError" and self._is_language):
                node.exc = self._wrapped(node.exc, node)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if self._is_language:
            name = ast.unparse(node.func).rpartition(".")[2]
            return self._wrapped(node, node) if name.endswith("Error") and name not in NOT_FOR_USERS else node
        # A call that only forwards a message (error(message)) is not a site.
        called = node.func.attr if isinstance(node.func, ast.Attribute) and node.args else ""
        if called == "raise_error" or (called == "error" and not isinstance(node.args[0], ast.Name)):
            node.args[0] = self._wrapped(node.args[0], node)
        return node

    @staticmethod
    def _is_site(node: ast.expr) -> bool:
        return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == NOTE

    def visit_Return(self, node: ast.Return) -> ast.AST:
        self.generic_visit(node)
        if node.value is not None and self._gives_message and self._gives_message[-1]:
            node.value = self._sentences(node.value)
        return node

    def _sentences(self, e: ast.expr) -> ast.expr:
        if isinstance(e, ast.IfExp):
            e.body, e.orelse = self._sentences(e.body), self._sentences(e.orelse)
        elif isinstance(e, (ast.Constant, ast.JoinedStr)) and _WORDS.search(_literal_text(e)):
            return self._wrapped(e, e)
        return e


def _literal_text(e: ast.Constant | ast.JoinedStr) -> str:
    """Return the text of a string, without the expressions of an f-string."""
    pieces = e.values if isinstance(e, ast.JoinedStr) else [e]
    return "".join([str(x.value) if isinstance(x, ast.Constant) else "{}" for x in pieces])


class Module:
    """A module with its sites wrapped: ``code``, ``sites``, and ``stray``, "unreachable" comments without a site."""

    def __init__(self, path: str):
        wrapper = _Wrapper(path)
        tree = ast.fix_missing_locations(wrapper.visit(ast.parse(wrapper.text)))
        self.code: CodeType = compile(tree, str(PACKAGE / path), "exec")
        self.sites = wrapper.sites
        self.stray = wrapper.comments


instrumented = cache(Module)


def modules(folders: Sequence[str]) -> list[str]:
    """Return the scanned modules, as paths in the package."""
    found = (p for folder in folders for p in sorted((PACKAGE / folder).glob("**/*.py" if folder else "*.py")))
    return [path for p in found if (path := p.relative_to(PACKAGE).as_posix()) not in NOT_SCANNED]


class _Loader(SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType:
        return instrumented(Path(self.path).relative_to(PACKAGE).as_posix()).code


class _Finder(MetaPathFinder):
    def __init__(self, folders: Sequence[str]) -> None:
        self._paths = {str(PACKAGE / path) for path in modules(folders)}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith("cute_dialect"):
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.origin in self._paths:
            spec.loader = _Loader(fullname, spec.origin)
        return spec


def install(folders: Sequence[str]) -> set[object]:
    """Import the modules of the package, and return a set to which each site is added when it is reached."""
    reached: set[object] = set()

    def noted(site: object, value: object) -> object:
        reached.add(site)
        return value

    assert not any(name.startswith("cute_dialect.") for name in sys.modules), "the modules are imported already"
    noted.__cute_native__ = True  # pyright: ignore
    setattr(builtins, NOTE, noted)
    sys.meta_path.insert(0, _Finder(folders))
    return reached


WITHOUT_A_TEST: dict[str, int] = {
    "lang/machine/atoms.py": 2,
    "lang/control/branches.py": 1,
    "lang/calls/compiled.py": 3,
    "lang/machine/copies.py": 3,
    "lang/values/dtypes.py": 1,
    "lang/values/forms.py": 2,
    "lang/calls/promises.py": 1,
    "lang/control/runtime_loops.py": 4,
    "lang/values/shared_memory.py": 1,
    "lang/machine/tma.py": 5,
    "lang/values/int_tuples.py": 2,
    "compat/cutlass.py": 1,
    "compat/mlir/builders.py": 4,
    "compat/mlir/llvm.py": 1,
    "compat/mlir/ir.py": 2,
}
"""Modules -> number of errors without a test. A number is lowered when a test is added, and never raised."""


def unjust(reached: set[object], folders: Sequence[str], where: str) -> Iterator[str]:
    """Yield the sites that have neither a test nor a comment, and the comments that are wrong."""
    for path in modules(folders):
        module = instrumented(path)
        untold = [site for site in module.sites if site[:3] not in reached and not site.excused]
        known = WITHOUT_A_TEST.get(path, 0)
        if len(untold) < known:
            yield f"cute_dialect/{path}: {len(untold)} errors without a test, not {known}: lower WITHOUT_A_TEST"
        if len(untold) <= known:
            untold = []
        for site in module.sites:
            place = f"cute_dialect/{path}:{site.line}:{site.column + 1}"
            if site in untold:
                yield f"{place}: an error without a test: add a case to {where}"
            elif site[:3] in reached and site.excused:
                yield f"{place}: said to be unreachable, but a test reaches it"
        for line in sorted(module.stray):
            yield f"cute_dialect/{path}:{line}: says 'unreachable' where no error is made"


# ---------------------------------------------------------------------------------------------------------- the corpus

_RUN = re.compile(r"^// RUN: cute-opt %s (.*--verify-diagnostics.*?)(?: \| .*)?$", re.M)


_MARK = re.compile(r"^// *\^$")


def files() -> Iterator[tuple[Path, list[str]]]:
    """Return the files of invalid input, which contain the expected errors, with their command-line options."""
    for path in sorted(TEST.rglob("*.mlir")):
        text = path.read_text(encoding="utf-8")
        if "expected-error" in text and "REQUIRES:" not in text:
            for found in _RUN.finditer(text):
                yield path, shlex.split(found.group(1))


def run_corpus() -> list[str]:
    """Run every file, every case of ``error_cases`` and the unit tests; return the failures."""
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
        seen.clear()
        status, said = _cute_opt([str(path), *options])
        if status != 0:
            wrong.append(f"{path.relative_to(TEST)}: {said}")
        if path.parent == CORPUS:
            wrong += _columns(path, seen)
    with tempfile.NamedTemporaryFile("w", suffix=".mlir") as empty:
        for arguments, words in COMMANDS:
            status, said = _cute_opt([empty.name, *arguments])
            if status != 1 or words not in said or "internal error" in said:
                wrong.append(f"cute-opt {' '.join(arguments)}: expected '{words}', got: {said}")
    wrong += _unit_tests(UNIT_TESTS)
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
    "passes/test_external_passes.py",
    "upstream/test_upstream_builders.py",
    "upstream/test_upstream_diagnostics.py",
)
"""Unit tests of errors that count: those of the algebra, atom tables, passes and lines of IR."""


def _expects_an_error(test: FunctionType) -> bool:
    """Return True if a test uses ``pytest.raises``; for tests of the language also through a helper function."""
    helpers: list[FunctionType] = []
    if Path(test.__code__.co_filename).parent.name in LANGUAGE:
        helpers = [f for n in test.__code__.co_names if isinstance(f := test.__globals__.get(n), FunctionType)]
    return any("raises" in f.__code__.co_names for f in (test, *helpers))


class _OnlyErrors:
    """A pytest plug-in that selects the tests that expect an exception and records failures."""

    def __init__(self) -> None:
        self.failed: list[str] = []

    def pytest_collection_modifyitems(self, items: list[pytest.Function]) -> None:
        items[:] = [i for i in items if isinstance(i, pytest.Function) and _expects_an_error(i.function)]

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.failed.append(f"{report.nodeid}: {report.longreprtext}")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.append(f"{report.nodeid}: {report.longreprtext}")


def _unit_tests(files: Sequence[str], *options: str) -> list[str]:
    """Run the tests of some files that expect an exception; return the failures."""
    paths = [str(TEST / "unit" / path) for path in files]
    plugin = _OnlyErrors()
    with contextlib.redirect_stdout(io.StringIO()):
        pytest.main(["-q", "-p", "no:cacheprovider", "-p", "no:xdist", *options, *paths], plugins=[plugin])
    return plugin.failed


def _cute_opt(arguments: list[str]) -> tuple[int, str]:
    """Run ``cute-opt`` and return its exit status and its error messages."""
    from cute_dialect.tools.cute_opt import main

    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        return main(arguments), said.getvalue()


def _columns(path: Path, seen: Iterable[Diagnostic]) -> list[str]:
    """Return the errors whose column differs from that of the ``^`` in a comment below their line, if there is one."""
    lines = path.read_text(encoding="utf-8").split("\n")
    wrong: list[str] = []
    for d in seen:
        line, column = d.position.line, d.position.col
        if d.severity != "error" or not line:
            continue
        mark = lines[line] if line < len(lines) else ""  # the line below; the list counts from 0
        if _MARK.match(mark) and mark.find("^") + 1 != column:
            wrong.append(f"{path.name}:{line}: expected the error in column {mark.find('^') + 1}, got {column}")
    return wrong


def _wrap_what_is_converted() -> None:
    """Also wrap the sites in functions that the language converts, because it compiles them from their source."""
    from cute_dialect.lang.rewrite import convert, source

    node_of, agrees = source.node_of, source._agrees  # pyright: ignore
    package = str(PACKAGE)

    def noted_node(code: CodeType, names: Mapping[str, object]) -> source.FunctionNode:
        node = node_of(code, names)
        if not code.co_filename.startswith(package):
            return node
        return ast.fix_missing_locations(_Wrapper(Path(code.co_filename).relative_to(package).as_posix()).visit(node))

    convert.node_of = noted_node
    # The compiled code contains wrapped sites, so it differs from the source text.
    source._agrees = lambda node, code: code.co_filename.startswith(package) or agrees(node, code)  # pyright: ignore


UNIT_TESTS_OF_THE_LANGUAGE = tuple(
    path.relative_to(TEST / "unit").as_posix()
    for folder in LANGUAGE
    for path in sorted((TEST / "unit" / folder).glob("test_*.py"))
    if path.name not in ("test_disk.py", "test_precompile.py")  # They start other processes, which record no sites.
)
"""Unit tests of errors that files of the corpus cannot cover."""


def run_language() -> list[str]:
    """Run the cases of the language and the unit tests of its errors; return the failures."""
    from lang_corpus import cases_of, difference, files

    wrong = [f"{case.name}:\n{text}" for path in files() for case in cases_of(path) if (text := difference(case))]
    return wrong + _unit_tests(UNIT_TESTS_OF_THE_LANGUAGE)


def run_operations() -> list[str]:
    """Run the unit tests of the operations' errors, including slow ones; return the failures."""
    return _unit_tests([f"op/{path.name}" for path in sorted((TEST / "unit" / "op").glob("test_*.py"))], "--all")


def main(arguments: Sequence[str]) -> int:
    """Print the failures. The exit status is 1 if there are any."""
    if arguments == ["lang"]:
        reached = install(LANGUAGE)
        _wrap_what_is_converted()
        wrong = [*run_language(), *unjust(reached, LANGUAGE, "test/errors/lang")]
    elif arguments == ["op"]:
        reached = install(OPERATIONS)
        wrong = [*run_operations(), *unjust(reached, OPERATIONS, "test/unit/op")]
    else:
        reached = install(SCANNED)
        wrong = [*run_corpus(), *unjust(reached, SCANNED, "test/errors/*.mlir or to error_cases.py")]
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
