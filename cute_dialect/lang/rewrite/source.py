"""Source and bytecode of functions: the syntax tree, checked against the code, and whose code it is.

The source is compiled unmodified and compared with the function's code object.  A file that changed after its import
raises F101, so the tree always matches the running program.

*Convertible* code is the user's and this package's kernel code, but no other libraries.  The *user's* code excludes
this package and installed ones: a specialization watches it for changes.  :func:`convert_package` adds a package to
both.

>>> def f(x):
...     return math.floor(x) + limit
>>> [(r.name, r.attributes) for r in reads_of(f.__code__)]
[('math', ('floor',)), ('limit', ())]
"""

from __future__ import annotations
import __future__

import ast
import copy
import linecache
import re
import sys
import sysconfig
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, reduce
from opcode import opmap
from operator import or_
from pathlib import Path
from sys import version_info
from types import CodeType, ModuleType
from typing import Any, NamedTuple, TypeAlias, TypeVar

from cute_dialect.errors import Place
from cute_dialect.files import PACKAGE
from cute_dialect.lang.tracing.errors import SyntaxErrorInKernel
from cute_dialect.lang.tracing.source_location import is_kernel_code

F = TypeVar("F", bound=Callable[..., Any])
_LIBRARIES = tuple(
    str(Path(p)) + "/" for key in ("stdlib", "platstdlib", "purelib", "platlib") if (p := sysconfig.get_path(key))
)
_SITE = ("/site-packages/", "/dist-packages/")
_ASKED_FOR: set[str] = set()
_convertible: dict[tuple[str, str], bool] = {}


def native(f: F) -> F:
    """Exclude a function from conversion: it runs as plain Python and sees run-time values as objects.

    >>> @native
    ... def table(n):
    ...     return [i * i for i in range(n)]
    """
    f.__cute_native__ = True  # pyright: ignore
    return f


def convert_package(name: str) -> None:
    """Convert the functions of an installed package or module too, when kernels call them."""
    _ASKED_FOR.add(name)
    _convertible.clear()


def asked_for() -> frozenset[str]:
    """Return the packages given to :func:`convert_package`."""
    return frozenset(_ASKED_FOR)


def is_convertible(path: str, module: str | None) -> bool:
    """Return True if the functions of a file are converted: the user's code, and this package's kernel code."""
    key = (path, module or "")
    known = _convertible.get(key)
    if known is None:
        known = _convertible[key] = _is_convertible(path, module or "")
    return known


def is_asked_for(module: str | None) -> bool:
    """Return True if a module, or a package above it, was given to :func:`convert_package`."""
    parts = (module or "").split(".")
    return any(".".join(parts[: k + 1]) in _ASKED_FOR for k in range(len(parts)))


def _is_convertible(path: str, module: str) -> bool:
    if is_asked_for(module):
        return True
    if path.startswith("<"):
        return not path.startswith(("<frozen", "<string>"))
    if path.startswith(PACKAGE):
        return is_kernel_code(path)
    return not (path.startswith(_LIBRARIES) or any(s in path for s in _SITE))


def has_convertible_globals(names: Mapping[str, Any]) -> bool:
    """Return True if these are the globals of a user's module."""
    name = names.get("__name__", "")
    file = names.get("__file__")
    if name.split(".")[0] == "cute_dialect":
        return False
    if name not in sys.modules or name == "__main__":
        return True
    # A module that a program makes has neither a file nor a spec.
    return names.get("__spec__") is None if file is None else is_convertible(file, name)


@lru_cache(maxsize=4096)
def is_convertible_class(cls: type) -> bool:
    """Return True for a user-defined class, or one of this package's kernel code."""
    module = sys.modules.get(cls.__module__)
    if module is None or cls.__module__ == "__main__":
        return True
    file = getattr(module, "__file__", None)
    return file is not None and is_convertible(file, cls.__module__)


# ----------------------------------------------------------------------------------------------------- the user's code


@lru_cache(maxsize=1024)
def is_installed(filename: str) -> bool:
    """Return True if a file belongs to Python, to an installed package, or to this package."""
    return filename.startswith(("<frozen", *_LIBRARIES, PACKAGE))


def is_users_function(function: Any) -> bool:
    """Return True if a function is user code, or of a package given to :func:`convert_package`."""
    code = getattr(function, "__code__", None)
    if code is None:
        return False
    return not is_installed(code.co_filename) or is_asked_for(getattr(function, "__module__", None))


@lru_cache(maxsize=1024)
def is_users_class(kind: type) -> bool:
    """Return True if a class is defined outside installed packages."""
    if kind.__module__ == "__main__":
        return True
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return file is not None and not is_installed(file)


def is_users_module(module: ModuleType) -> bool:
    """Return True if a module is user code. It may have no file."""
    file = getattr(module, "__file__", None)
    if file is not None:
        return not is_installed(file)
    return module.__name__.partition(".")[0] not in sys.stdlib_module_names


# -------------------------------------------------------------------------------------------------------------- parsing


_ONE = threading.Lock()


def parsed(text: str, mode: str = "exec") -> Any:
    """Return the AST of a text, as ``ast.parse`` does.

    >>> parsed("1 + 1", mode="eval").body.op.__class__.__name__
    'Add'
    """
    with _ONE:
        return ast.parse(text, mode=mode)


# --------------------------------------------------------------------------------------------------------- code objects


_GLOBAL, _NAME, _CONST, _IMPORT_NAME = (opmap[n] for n in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_CONST", "IMPORT_NAME"))
_NAMES = {_NAME, opmap.get("LOAD_FROM_DICT_OR_GLOBALS", _NAME)}
_SMALL_INT = opmap.get("LOAD_SMALL_INT", -1)
_ATTRIBUTES = {opmap[n] for n in ("LOAD_ATTR", "LOAD_METHOD") if n in opmap}
_EXTENDED, _CACHE, _NOP = opmap["EXTENDED_ARG"], opmap.get("CACHE", 0), opmap["NOP"]
_ATTRIBUTE_SHIFT = int(version_info >= (3, 12))
"""The lowest bit of the argument of LOAD_GLOBAL (since 3.11) and LOAD_ATTR (since 3.12) is a flag."""


class Read(NamedTuple):
    """A read of a global name or an imported module, with the chain of attributes read from it.

    ``level`` is the level of the import, or -1 for a name.
    """

    name: str
    attributes: tuple[str, ...]
    level: int = -1


def codes_in(code: CodeType) -> Iterator[CodeType]:
    """Yield a code object and, recursively, the code objects of its nested functions."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes_in(constant)


@lru_cache(maxsize=4096)
def reads_of(code: CodeType) -> tuple[Read, ...]:
    """Return the reads of a function and its nested functions, without duplicates, in code order."""
    return tuple(dict.fromkeys(r for c in codes_in(code) for r in _reads(c)))


def _reads(code: CodeType) -> Iterator[Read]:
    raw, names, consts = code.co_code, code.co_names, code.co_consts
    above = 0
    name: str | None = None
    attributes: list[str] = []
    loaded: list[object] = []
    for at in range(0, len(raw), 2):
        op = raw[at]
        if op in (_CACHE, _NOP):
            continue
        arg = raw[at + 1] | above
        if op == _EXTENDED:
            above = arg << 8
            continue
        above = 0
        if op in _ATTRIBUTES and name is not None:
            attributes.append(names[arg >> _ATTRIBUTE_SHIFT if op == opmap["LOAD_ATTR"] else arg])
            continue
        if name is not None:
            yield Read(name, tuple(attributes))
            name = None
        if op == _GLOBAL or op in _NAMES:
            name, attributes = names[arg >> 1 if op == _GLOBAL else arg], []
        elif op == _CONST:
            loaded.append(consts[arg])
        elif op == _SMALL_INT:
            loaded.append(arg)
        elif op == _IMPORT_NAME:
            level = loaded[-2] if len(loaded) > 1 else 0
            yield Read(names[arg], (), level if isinstance(level, int) else 0)
    if name is not None:
        yield Read(name, tuple(attributes))


_texts: dict[int, tuple[weakref.ref[CodeType], tuple[str, ...]]] = {}


def text_of(code: CodeType) -> tuple[str, ...]:
    """Return the source lines of a function without comments, blank lines and indentation; () if there is no source.

    The text is part of the compile key because bytecode does not contain the annotations of local variables, which
    convert values.  A line keeps its ``#`` if that may be part of a string.  The file is read once, before the function
    is converted.
    """
    key = id(code)
    known = _texts.get(key)
    if known is None or known[0]() is not code:
        known = _texts[key] = (weakref.ref(code, lambda _: _texts.pop(key, None)), _text(code))
    return known[1]


def _text(code: CodeType) -> tuple[str, ...]:
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename)
    last = max((line for c in codes_in(code) for _, _, line in c.co_lines() if line), default=0)
    found: list[str] = []
    before = ""
    for line in lines[code.co_firstlineno - 1 : last]:
        text = line.strip()
        if (text := text if _may_be_quoted(line, before) else line.partition("#")[0].strip()) != "":
            found.append(text)
        before = line
    return tuple(found)


def _may_be_quoted(line: str, before: str) -> bool:
    """Return True if the first ``#`` of a line may be part of a string, possibly one opened on an earlier line."""
    head, _, tail = line.partition("#")
    return "'" in head or '"' in head or "'''" in tail or '"""' in tail or before.endswith("\\\n")


def content_of(code: CodeType) -> tuple[object, ...]:
    """Return everything in a code object that affects execution. Source positions are left out."""
    return (
        code.co_name, code.co_code, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, code.co_flags,
        code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_exceptiontable,
        tuple([_constant(c) for c in code.co_consts]),
    )  # fmt: skip


def _constant(value: object) -> object:
    if isinstance(value, CodeType):
        return content_of(value)
    if isinstance(value, tuple):
        return ("tuple", *[_constant(x) for x in value])
    if isinstance(value, frozenset):
        return ("frozenset", *sorted(map(repr, map(_constant, value))))
    return (type(value).__name__, value.hex() if isinstance(value, float) else repr(value))


# --------------------------------------------------------------------------------------------------------- syntax trees


FunctionNode: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_FUTURE = reduce(or_, (getattr(__future__, name).compiler_flag for name in __future__.all_feature_names))
_NO_TYPES: dict[str, Any] = {"type_params": []} if sys.version_info >= (3, 12) else {}
BOUND_TO_THE_FRAME = (":=", "yield", "await", "super", "locals", "globals", "vars", "dir", "eval", "exec")
"""Words that mark an expression as bound to its frame: it sets names, suspends, or inspects the frame.

Such an expression cannot move into a function of its own.  A text without these words has no such expression
(``_moves`` on its definition).
"""
_LOOK_AHEAD = 200
"""Maximum number of lines after the last line with code that may belong to a function (closing brackets, ``pass``)."""


def class_of(qualname: str) -> str | None:
    """Return the class whose private names (``__x``) are visible in a function with this qualified name.

    >>> class_of("Outer.method.<locals>.helper"), class_of("f.<locals>.g")
    ('Outer', None)
    """
    parts = qualname.split(".")
    for at in range(len(parts) - 2, -1, -1):
        if parts[at] != "<locals>" and parts[at + 1] != "<locals>":
            return parts[at]
    return None


def node_of(code: CodeType, module_globals: Mapping[str, object]) -> FunctionNode:
    """Return the definition of a function, without decorators, defaults and parameter annotations.

    Its positions are those of the file.  Raises F102 if there is no source, F101 if the source has changed.
    """
    path = code.co_filename
    linecache.checkcache(path)
    lines = linecache.getlines(path, dict(module_globals))
    if not lines:
        raise SyntaxErrorInKernel(
            "F102", f"'{code.co_name}' cannot be compiled because its source is not available: {path}",
            hint="put the function into a file or a notebook cell; without source, only code without run-time "
            "conditions and loops works",
        )  # fmt: skip
    found = _lambda(code, lines) if code.co_name == "<lambda>" else _definition(code, lines)
    if found is None:
        raise _changed(code)
    return found


def _changed(code: CodeType) -> SyntaxErrorInKernel:
    return SyntaxErrorInKernel(
        "F101", f"'{code.co_name}' does not match its source because {code.co_filename} changed after it was "
        "imported", hint="restart Python, or reload the module",
        place=Place(code.co_filename, code.co_firstlineno, 1),
    )  # fmt: skip


def _definition(code: CodeType, lines: list[str]) -> FunctionNode | None:
    first = code.co_firstlineno
    if first > len(lines):
        return None
    head = lines[first - 1]
    indented = head[:1] in " \t\f"
    before = "\n" * (first - 2) + "if 1:\n" if indented else "\n" * (first - 1)
    for last in range(_last_line(code), min(len(lines), _last_line(code) + _LOOK_AHEAD) + 1):
        try:
            text = "".join(lines[first - 1 : last])
            tree: ast.Module = parsed(before + text)
        except (SyntaxError, ValueError):
            continue
        body: list[ast.stmt] = tree.body
        if indented:
            assert isinstance(tree.body[0], ast.If)
            body = tree.body[0].body
        node = body[0] if body else None
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or node.name != code.co_name:
            return None
        _strip(node)
        node._moves = not any(word in text for word in BOUND_TO_THE_FRAME)  # pyright: ignore
        return node if _agrees(node, code) else None
    return None


def _lambda(code: CodeType, lines: list[str]) -> FunctionNode | None:
    found: list[ast.Lambda] = []
    for node in ast.walk(_tree("".join(lines))):
        if isinstance(node, ast.Lambda) and node.lineno == code.co_firstlineno:
            node = copy.deepcopy(node)
            _strip(node)
            if _agrees(node, code):
                found.append(node)
    if len(found) > 1:  # The same text occurs twice in the line; columns tell the occurrences apart.
        found = [n for n in found if list(compiled_in(n, code, ()).co_positions()) == list(code.co_positions())]
    return found[0] if found else None


@lru_cache(maxsize=16)
def _tree(text: str) -> ast.Module:
    try:
        return parsed(text)
    except SyntaxError:
        return ast.Module([], [])


def _last_line(code: CodeType) -> int:
    return max(max({at[1] or 0 for at in c.co_positions()}, default=0) for c in codes_in(code)) or code.co_firstlineno


def _strip(node: FunctionNode) -> None:
    args = node.args
    args.defaults = []
    args.kw_defaults = [None] * len(args.kwonlyargs)
    for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg):
        if arg is not None:
            arg.annotation = None
    if not isinstance(node, ast.Lambda):
        node.decorator_list = []
        node.returns = None
        if hasattr(node, "type_params"):
            node.type_params = []  # pyright: ignore


def compiled_in(node: FunctionNode, code: CodeType, more: tuple[str, ...], imported: Sequence[str] = ()) -> CodeType:
    """Compile a definition with the cells of ``code`` and the names ``more`` as free variables.

    ``imported``: names that the module imports. Python compiles calls of their attributes differently.
    """
    p = {"lineno": node.lineno, "col_offset": 0, "end_lineno": node.lineno, "end_col_offset": 0}
    inner: ast.stmt = ast.Return(node, **p) if isinstance(node, ast.Lambda) else node
    owner = class_of(code.co_qualname)
    outer: list[ast.stmt] = []
    if owner is None and not isinstance(node, ast.Lambda) and node.name not in code.co_freevars:
        outer = [ast.Global([node.name], **p)]  # Inside the function its own name is the module's global.
    if owner is not None:
        if owner not in code.co_freevars:
            outer = [ast.Global([owner], **p)]
        inner = ast.ClassDef(name=owner, bases=[], keywords=[], body=[inner], decorator_list=[], **p, **_NO_TYPES)
        if isinstance(node, ast.Lambda):
            inner.body = [ast.Expr(node, **p)]
    parameters = ast.arguments(
        posonlyargs=[], args=[ast.arg(arg=name, **p) for name in (*more, *code.co_freevars)], vararg=None,
        kwonlyargs=[], kw_defaults=[], kwarg=None, defaults=[],
    )  # fmt: skip
    factory = ast.FunctionDef(
        name="factory", args=parameters, body=[*outer, inner], decorator_list=[], returns=None, **p, **_NO_TYPES
    )
    flags = code.co_flags & _FUTURE
    top: list[ast.stmt] = [ast.Import([ast.alias(name=name, **p)], **p) for name in imported]
    made = compile(ast.Module([*top, factory], []), code.co_filename, "exec", flags=flags, dont_inherit=True)
    for inner_code in codes_in(_first(made)):
        if inner_code.co_name == code.co_name and inner_code is not _first(made):
            return inner_code
    raise AssertionError(f"no code of '{code.co_name}'")


def _first(module: CodeType) -> CodeType:
    return next(c for c in module.co_consts if isinstance(c, CodeType))


def _agrees(node: FunctionNode, code: CodeType) -> bool:
    """Return True if a definition compiles to ``code``."""
    if "@pytest_ar" in code.co_names:  # pytest rewrites assert statements before it compiles them.
        return True
    lines = linecache.getlines(code.co_filename)
    # CPython checks only the name, so a local variable named like an import counts too.
    read = {n for c in codes_in(code) for n in (*c.co_names, *c.co_varnames, *c.co_cellvars, *c.co_freevars)}
    guess = tuple(n for n in _imports_of_text(code.co_filename, lines) if n in read)
    if _same_code(compiled_in(node, code, (), guess), code):
        return True
    certain = tuple(n for n in _imports_of_tree("".join(lines)) if n in read)
    return certain != guess and _same_code(compiled_in(node, code, (), certain), code)


_IMPORT = re.compile(r"^[ \t]*(?:from[ \t]+\S+[ \t]+)?import[ \t]+(\([^)]*\)|(?:[^\n\\]|\\\n)*)", re.MULTILINE)
_IMPORTED = re.compile(r"([^\W\d]\w*)[\w.]*(?:\s+as\s+(\w+))?")


_imports: dict[str, tuple[list[str], frozenset[str]]] = {}
"""For each file: its lines when last read, and the names bound by its import statements."""


def _imports_of_text(path: str, lines: list[str]) -> frozenset[str]:
    """Return the names bound by a file's import statements, whatever their scope."""
    known = _imports.get(path)
    if known is None or known[0] is not lines:
        found: set[str] = set()
        for statement in _IMPORT.finditer("".join(lines)):
            for name, other in _IMPORTED.findall(re.sub(r"#.*", "", statement[1])):
                found.add(other or name)
        known = _imports[path] = lines, frozenset(found)
    return known[1]


@lru_cache(maxsize=64)
def _imports_of_tree(text: str) -> tuple[str, ...]:
    """Return the names that a module imports outside functions and classes."""
    found: dict[str, None] = {}
    todo: list[ast.AST] = list(_tree(text).body)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            found |= {a.asname or a.name.split(".")[0]: None for a in node.names if a.name != "*"}
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.expr):
            todo += ast.iter_child_nodes(node)
    return tuple(found)


def _same_code(a: CodeType, b: CodeType) -> bool:
    if a.co_code != b.co_code or a.co_names != b.co_names or a.co_varnames != b.co_varnames:
        return False
    if len(a.co_consts) != len(b.co_consts):
        return False
    for x, y in zip(a.co_consts, b.co_consts):
        if isinstance(x, CodeType) and isinstance(y, CodeType):
            if not _same_code(x, y):
                return False
        elif type(x) is not type(y) or repr(x) != repr(y):
            return False
    return True
