"""References in docstrings and comments resolve: ``:mod:``, ``:class:``, ``:func:``, ``:data:`` and file names."""

from __future__ import annotations

import ast
import re
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
FILES = sorted(
    file for folder in ("cute_dialect", "passes", "pipelines", "tools") for file in (ROOT / folder).rglob("*.py")
)
ROLE = re.compile(r":(?:mod|class|func|data|meth|attr|exc|obj):`~?!?([\w.]+)`")
CLASS = re.compile(r"^ *class (\w+)", re.M)
FILE = re.compile(r"``((?:\w+/)*\w+\.py)``")


def module_name(file: Path) -> str:
    parts = file.relative_to(ROOT).with_suffix("").parts
    name = ".".join(parts if parts[0] == "cute_dialect" else ("cute_dialect", *parts))
    return name.removesuffix(".__init__")


@cache
def resolves(name: str) -> bool:
    """Return True if a dotted name is a module or an attribute of one."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        try:
            found: object = import_module(".".join(parts[:count]))
        except ImportError:
            continue
        for part in parts[count:]:
            annotated = any(part in vars(k).get("__annotations__", {}) for k in getattr(found, "__mro__", ()))
            if not hasattr(found, part):
                return annotated or part in _instance_attributes(found)
            found = getattr(found, part)
        return True
    return False


def _instance_attributes(found: object) -> set[str]:
    """Return the attributes that the methods of a class assign."""
    import inspect

    try:
        source = inspect.getsource(found)  # type: ignore[arg-type]
    except (TypeError, OSError):
        return set()
    return set(re.findall(r"self\.(\w+)", source))


@cache
def imported_names(text: str) -> set[str]:
    """Return the names that the ``from`` imports of a module define."""
    return {a.asname or a.name for n in ast.walk(ast.parse(text)) if isinstance(n, ast.ImportFrom) for a in n.names}


def referred(file: Path) -> list[str]:
    """Return the references of a file that do not resolve."""
    text, module, lost = file.read_text(), module_name(file), list[str]()
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    scopes = [module, *[f"{module}.{name}" for name in CLASS.findall(text)]]
    for match in ROLE.finditer(text):
        name = match[1]
        if name.startswith("."):
            dots = len(name) - len(name.lstrip("."))
            tried = [".".join([*package.split(".")[: len(package.split(".")) - dots + 1], name.lstrip(".")])]
        elif name.split(".")[0] == "cute_dialect":
            tried = [name]
        else:
            tried = [*[f"{scope}.{name}" for scope in scopes], name]
        if not any(map(resolves, tried)) and name.split(".")[0] not in imported_names(text):
            lost.append(f"{file.relative_to(ROOT)}:{text.count(chr(10), 0, match.start()) + 1}: {match[0]}")
    for match in FILE.finditer(text):
        places = (file.parent, file.parent.parent, ROOT, ROOT / "cute_dialect", ROOT / "test")
        if not any((place / match[1]).exists() for place in places) and "/" in match[1]:
            lost.append(f"{file.relative_to(ROOT)}:{text.count(chr(10), 0, match.start()) + 1}: {match[0]}")
    return lost


@pytest.mark.parametrize("folder", sorted({str(f.parent.relative_to(ROOT)) for f in FILES}))
def test_references_resolve(folder: str) -> None:
    lost = [line for file in FILES if str(file.parent.relative_to(ROOT)) == folder for line in referred(file)]
    assert not lost, "\n".join(lost)
