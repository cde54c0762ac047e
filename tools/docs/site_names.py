"""Generator of the site's reference pages: a table of public names per package, and docstrings through autodoc."""

from __future__ import annotations

import ast
import inspect
from importlib import import_module
from itertools import pairwise
from pathlib import Path

__all__ = ["PACKAGES", "literal_blocks", "names_text", "public_names"]

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = (
    "cute_dialect.lang",
    "cute_dialect.lang.nvgpu",
    "cute_dialect.op",
    "cute_dialect.op.epilogue",
    "cute_dialect.algebra",
    "cute_dialect.arch",
    "cute_dialect.interp",
    "cute_dialect.viz",
    "cute_dialect.kernels.gemm",
    "cute_dialect.pipelines",
    "cute_dialect.pipelines.embed",
    "cute_dialect.runtime",
    "cute_dialect.runtime.progress",
)
"""Packages and modules with public names, listed in a stub ``__init__.pyi`` or in ``__all__``."""

MORE = {"cute_dialect.runtime": ("cute_dialect.runtime.launch",)}
"""Modules that define the classes of objects that a package's functions return."""


def public_names(package: str) -> list[str]:
    """Return the public names of a package in the order of its stub, or else of ``__all__``."""
    stub = ROOT.joinpath(*package.split("."), "__init__.pyi")
    if not stub.exists():
        return list(import_module(package).__all__)
    names: dict[str, None] = {}
    for node in ast.parse(stub.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom):
            names.update((alias.asname or alias.name, None) for alias in node.names)
        elif isinstance(node, ast.Assign):
            names.update((target.id, None) for target in node.targets if isinstance(target, ast.Name))
    return list(names)


def literal_blocks(text: str) -> str:
    """Convert a docstring to reStructuredText: indented text below a paragraph becomes a code block.

    >>> literal_blocks("Adds.\\n\\n    add(1, 2)\\n\\nAnd more.")
    'Adds.\\n\\n::\\n\\n    add(1, 2)\\n\\nAnd more.'
    """
    paragraphs = text.split("\n\n")
    out = paragraphs[:1]
    for before, paragraph in pairwise(paragraphs):
        if paragraph.startswith("    ") and not before.startswith((" ", "*", "-", "..")) and not before.endswith("::"):
            out.append("::")
        out.append(paragraph)
    return "\n\n".join(out)


def _opening(value: object) -> str:
    """Return the first paragraph of a docstring on one line."""
    return (inspect.getdoc(value) or "").split("\n\n")[0].replace("\n", " ")


def names_text(package: str, described: set[int]) -> str:
    """Return the page of a package's public names in reStructuredText for Sphinx's autodoc.

    ``described`` holds the identities of the classes described on earlier pages; those of this page are added.
    """
    groups: dict[str, dict[str, list[str]]] = {"Functions": {}, "Classes": {}, "Values": {}, "Modules": {}}
    entries: dict[str, str] = {}
    for module in (package, *MORE.get(package, ())):
        for name in sorted(public_names(module), key=str.lower):
            value = getattr(import_module(module), name)
            if inspect.ismodule(value):
                where = f":doc:`{value.__name__}`" if value.__name__ in PACKAGES else f"``{value.__name__}``"
                groups["Modules"][name] = [where, _opening(value)]
            elif inspect.isclass(value):
                again = "   :no-index:\n" if id(value) in described else ""
                described.add(id(value))
                groups["Classes"][name] = [f":py:class:`~{module}.{name}`", _opening(value)]
                entries[name] = f".. autoclass:: {module}.{name}\n   :members:\n{again}"
            elif callable(value):
                groups["Functions"][name] = [f":py:func:`~{module}.{name}`", _opening(value)]
                entries[name] = f".. autofunction:: {module}.{name}\n"
            else:
                groups["Values"][name] = [f"``{name}``", f"of type ``{type(value).__name__}``"]
    out = [package, "=" * len(package), "", literal_blocks(inspect.getdoc(import_module(package)) or ""), ""]
    for title, rows in groups.items():
        if rows:
            out += [title, "-" * len(title), "", ".. list-table::", "   :widths: 30 70", ""]
            for first, second in rows.values():
                out += [f"   * - {first}", f"     - {second}"]
            out += ["", *(entries[name] for name in rows if name in entries), ""]
    return "\n".join(out)
