"""The syntax tree of a function's source, checked against its bytecode.

The source is compiled unmodified and compared with the function's code object.  A file that changed after its import
raises F101, so the tree always matches the running program.
"""

from __future__ import annotations
import __future__

import ast
import copy
import linecache
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, reduce
from operator import or_
from types import CodeType
from typing import Any, TypeAlias

from cute_dialect.lang.tracing.errors import Place, SyntaxErrorInKernel
from cute_dialect.lang.tracing.parsing import parsed

__all__ = ["BOUND_TO_THE_FRAME", "FunctionNode", "class_of", "compiled_in", "node_of"]

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


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _codes(inner)


def _last_line(code: CodeType) -> int:
    return max(max({at[1] or 0 for at in c.co_positions()}, default=0) for c in _codes(code)) or code.co_firstlineno


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
    for inner_code in _codes(_first(made)):
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
    read = {n for c in _codes(code) for n in (*c.co_names, *c.co_varnames, *c.co_cellvars, *c.co_freevars)}
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
