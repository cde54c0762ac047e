"""The private xDSL names that ``cute_dialect/ir/xdsl_compat.py`` uses exist, and no other module uses any."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from inspect import get_annotations
from pathlib import Path

import pytest
from unit.house.test_layering import MODULES, text_of
from xdsl.context import Context
from xdsl.ir import Block, Operation
from xdsl.ir.core import Use
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.mlir_lexer import MLIRLexer

COMPAT = "cute_dialect.ir.xdsl_compat"
NAMES: dict[type, str] = {
    MLIRLexer: "_unescaped_characters_regex",
    Parser: """
        _current_token _consume_token _parse_token _parse_optional_token _resume_from _parse_alias_def _parse_block
        _parse_builtin_densearray_attr _parse_dense_literal_type _parse_dialect_type_or_attribute_body
        _parse_extended_type_or_attribute _parse_file_metadata_dictionary _parse_generic_operation _parse_location
        _parse_optional_integer_or_float_type _register_ssa_definition _parse_dialect_symbol_body _raw_scan_balanced""",
    Printer: "_print_results",
    Context: """
        _get_known_op _registered_dialects _loaded_dialects _loaded_ops _loaded_attrs _loaded_types""",
    Operation: "_operands _operand_uses _next_op _prev_op",
    Block: "_first_op _last_op",
    Use: "_next_use _prev_use",
}
"""Private names that xDSL must have, by class."""


@cache
def private_names(cls: type) -> set[str]:
    """Return the private names, fields included, that a class inherits from xDSL."""
    found: set[str] = set()
    for base in cls.__mro__:
        if base.__module__.split(".")[0] == "xdsl":
            found |= {*vars(base), *get_annotations(base), *vars(base).get("__slots__", ())}
    return {name for name in found if name.startswith("_") and not name.endswith("__")}


@pytest.mark.parametrize(("cls", "name"), [(cls, name) for cls, names in NAMES.items() for name in names.split()])
def test_xdsl_has_the_private_name(cls: type, name: str) -> None:
    assert name in private_names(cls), f"this version of xDSL has no {cls.__module__}.{cls.__name__}.{name}"


def test_every_name_that_is_used_is_listed() -> None:
    used: set[str] = set()
    for node in ast.walk(ast.parse(MODULES[COMPAT].read_text())):
        word = node.attr if isinstance(node, ast.Attribute) else node.value if isinstance(node, ast.Constant) else None
        if isinstance(word, str) and word.startswith("_") and word.isidentifier() and not word.endswith("_"):
            used.add(word)
    assert used == {name for names in NAMES.values() for name in names.split()}


def is_of_the_class(node: ast.expr) -> bool:
    """Return True if an expression is ``self``, ``cls`` or ``super()``."""
    if isinstance(node, ast.Call) and not node.args and not node.keywords:
        return isinstance(node.func, ast.Name) and node.func.id == "super"
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def named(node: ast.ClassDef) -> Iterator[tuple[str, int]]:
    """Return the names that a class defines or reads from ``self``, ``cls`` and ``super()``, with their lines."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.FunctionDef):
            yield inner.name, inner.lineno
        elif isinstance(inner, ast.Attribute) and is_of_the_class(inner.value):
            yield inner.attr, inner.lineno
    for statement in node.body:
        if isinstance(statement, ast.Assign):
            yield from ((target.id, target.lineno) for target in statement.targets if isinstance(target, ast.Name))
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            yield statement.target.id, statement.lineno


def taken(path: Path, module: str) -> list[str]:
    """Return each use or override, in a module's classes, of a private name inherited from xDSL."""
    found: list[str] = []
    for node in ast.parse(text_of(path)).body:
        if isinstance(node, ast.ClassDef) and node.bases:
            private = private_names(getattr(import_module(module), node.name))
            found += [f"{path}:{line}: {node.name} uses {name}" for name, line in named(node) if name in private]
    return found


@pytest.mark.end_to_end
def test_no_other_module_uses_one() -> None:
    found: list[str] = []
    for module, path in MODULES.items():
        if module != COMPAT:
            text = text_of(path)
            assert "reportPrivateUsage" not in text, f"{module}: pyright finds private names of others, if it is let"
            if "xdsl" in text:
                found += taken(path, module)
    assert not found, "\n".join(found)


def test_a_class_that_overrides_a_private_method_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "private_parser.py"
    path.write_text(
        "from xdsl.parser import Parser\n"
        "class Mine(Parser):\n"
        "    def _parse_block(self):\n"
        "        return super()._parse_block()\n"
        "    def _mine(self):\n"
        "        return self._current_token\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert [line.split(":")[1] for line in taken(path, "private_parser")] == ["3", "6", "4"]
