"""Public definitions have a docstring, and a function's begins with a verb.

A definition is public if no part of its name begins with an underscore.  A method that overrides a documented one of
the package, or one of ``INHERITED``, needs no docstring of its own.  A property is a value, so its docstring may name
it.  The files are read as text: nothing is imported.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeAlias

import pytest

ROOT = Path(__file__).parents[3]

WORDS = """
    A After All An And Another Any As At Because Before Behind Beside Between Both But By Each Either Every Few
    For From How If In Inside Into Is Its It Like Many More Most Much Neither No None Not Nothing Of Off On One
    Only Or Other Our Out Outside Over Per Same Several Since Some Such That The Their Them Then There These
    They This Those Through To Towards Two Three Four Under Until Up What Whatever When Where Whether Which
    While Who Whom Whose Why With Without Yes

    Called Compact Computed Contiguous Core Dynamic Exclusive Further Guaranteed Inclusive Local Logical Pure Random
    Rolled Shared Static Strong Strongly Tiled Unsigned Weak Whole

    Accesses Accumulator Alignment Argument Arguments Atomics Atoms Bits Bitwise Byte Bytes Chunks Clusters Columns
    Consumer Coordinate Coordinates Descriptor Difference Dimensions Division Element Elements Entry Extents
    Fields Floats Fragments Granules Heading Indices Instructions Integers Kernel Kernels Lane Lanes Layout
    Layouts Leaf Leaves Levels Median Memory Microseconds Mode Modes Number Numbers Op Operand Operands Ops
    Options Pieces Producer Product Quotient Registers Remainder Results Row Rows Sectors Sizes Slots Stages
    Strides Symbol Tensor Threads Transactions Types Units Values Vector Warp Warps Width
"""
NO_VERB = frozenset(WORDS.split())
"""First words of a docstring that says what something is, where it should say what the function does."""

METHODS = """
    apply fold is_speculatable mapping_type_vars materialize_constant match_and_rewrite parse parse_parameter
    parse_parameters print print_parameter print_parameters verify verify_
"""
INHERITED = frozenset(METHODS.split())
"""Methods of xDSL's classes, which state what they do: in a class with a base of a library's they need no docstring."""

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


class Module(NamedTuple):
    """A file of the package and what is in it."""

    path: str
    tree: ast.Module


@cache
def modules() -> list[Module]:
    """Parse every file of the package, links not followed."""
    files = [p for top in ("cute_dialect", "passes", "pipelines", "tools") for p in sorted((ROOT / top).rglob("*.py"))]
    own = [p for p in files if p.resolve() == p]
    return [Module(p.relative_to(ROOT).as_posix(), ast.parse(p.read_text())) for p in own]


@cache
def documented() -> dict[str, tuple[frozenset[str], tuple[str, ...]]]:
    """Map a class of the package to its methods that have a docstring, and to the names of its bases."""
    classes: dict[str, tuple[frozenset[str], tuple[str, ...]]] = {}
    for module in modules():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef):
                # ``class ForOp(scf.ForOp)``: a base of its own name is a library's
                bases = tuple(["" if name_of(base) == node.name else name_of(base) for base in node.bases])
                stated = [d.name for d in node.body if isinstance(d, Function) and ast.get_docstring(d)]
                known, others = classes.get(node.name, (frozenset[str](), ()))
                classes[node.name] = (known | {*stated}, (*others, *bases))
    return classes


def name_of(expression: ast.expr) -> str:
    """Return the last name of an expression: ``C`` of ``m.C[T](x)``."""
    match expression:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Subscript(value=inner) | ast.Call(func=inner):
            return name_of(inner)
        case _:
            return ""


def is_inherited(method: str, bases: tuple[str, ...]) -> bool:
    """Tell whether a method is documented above these bases: in the package, or by a library whose class it extends."""
    seen: set[str] = set()
    todo = [*bases]
    while todo:
        base = todo.pop()
        if base in seen:
            continue
        seen.add(base)
        if base in documented():
            stated, above = documented()[base]
            if method in stated:
                return True
            todo += above
        elif base not in {"ABC", "Generic", "NamedTuple", "Protocol"} and method in INHERITED:
            return True
    return False


def faults(module: Module) -> Iterator[str]:
    """Yield what is wrong in a file, one line each: ``path:line: name: fault``."""
    if module.tree.body and not ast.get_docstring(module.tree):
        yield f"{module.path}:1: the module has no docstring"
    yield from _faults(module, module.tree, "", ())


def _faults(module: Module, scope: ast.Module | ast.ClassDef, prefix: str, bases: tuple[str, ...]) -> Iterator[str]:
    for node in scope.body:
        if not isinstance(node, ast.ClassDef | Function) or node.name.startswith("_"):
            continue
        name, at = f"{prefix}{node.name}", f"{module.path}:{node.lineno}"
        text = ast.get_docstring(node)
        if isinstance(node, ast.ClassDef):
            if not text:
                yield f"{at}: {name}: no docstring"
            yield from _faults(module, node, f"{name}.", tuple([name_of(base) for base in node.bases]))
            continue
        marks = {name_of(mark) for mark in node.decorator_list}
        if marks & {"overload", "setter"}:
            continue
        if not text:
            if not is_inherited(node.name, bases):
                yield f"{at}: {name}: no docstring"
        elif not marks & {"property", "cached_property"} and not is_verb(first := text.split()[0]):
            yield f"{at}: {name}: expected a verb as the first word, got {first!r}"


def is_verb(word: str) -> bool:
    """Tell whether a first word may be a verb: a capitalised word that is not known to be another.

    >>> is_verb("Return"), is_verb("Whether"), is_verb("`cp.async`")
    (True, False, False)
    """
    return word.isalpha() and word[0].isupper() and word[1:].islower() and word not in NO_VERB


def test_docstrings() -> None:
    found = [fault for module in modules() for fault in faults(module)]
    assert not found, "\n" + "\n".join(found)


@pytest.mark.parametrize(
    "text, expected",
    [
        ('"""M."""\ndef f():\n    """Return it."""\n', []),
        ("x = 1\n", ["m.py:1: the module has no docstring"]),
        ('"""M."""\ndef f(): pass\n', ["m.py:2: f: no docstring"]),
        (
            '"""M."""\ndef f():\n    """What it gives."""\n',
            ["m.py:2: f: expected a verb as the first word, got 'What'"],
        ),
        ('"""M."""\nclass C:\n    def f(self): pass\n', ["m.py:2: C: no docstring", "m.py:3: C.f: no docstring"]),
        ('"""M."""\nclass C:\n    """A c."""\n    @property\n    def f(self):\n        """The f."""\n', []),
        ('"""M."""\ndef _f(): pass\nclass _C:\n    def f(self): pass\n', []),
    ],
)
def test_faults_are_found(text: str, expected: list[str]) -> None:
    assert list(faults(Module("m.py", ast.parse(text)))) == expected
