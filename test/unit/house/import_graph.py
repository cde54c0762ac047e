"""Import graph of the package: cycles, imports inside functions; and counters of its sources.

Imports inside functions count as edges, because a late import is also a dependency. Imports for type checking do not
count. A name imported from a package with a stub counts as an import of the module that defines it::

    python test/unit/house/import_graph.py            # counts per package, and the counters
    python test/unit/house/import_graph.py interp     # cycles and late imports of one package, with lines
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[3]
TOP = ("passes", "pipelines", "tools")
REASON = re.compile(r"# late: (torch|start-up)\b")
ANY = re.compile(r"\bAny\b")
WITH_STATEMENTS = (ast.stmt, ast.excepthandler, ast.match_case)


MANY = 10
"""Number of parameters from which on a function is counted."""
FOREIGN = frozenset({"cute_dialect.flash_attn", "cute_dialect.flash_mla", "cute_dialect.op.functions.optimizers"})
"""Modules whose public functions have the parameters of another library's functions, so that these are not counted.

``flash_attn`` and ``flash_mla`` have the functions of FlashAttention and FlashMLA.  ``flash_attn`` also implements
operators of torch; ``optimizers`` has those of torch.
"""


class Import(NamedTuple):
    """An import: the imported module, its line, and whether it is inside a function without justification."""

    target: str
    line: int
    is_late: bool


def modules() -> dict[str, Path]:
    """Return the files of the package by module name."""
    found: dict[str, Path] = {}
    for folder, name in ((ROOT / "cute_dialect", "cute_dialect"), *((ROOT / d, f"cute_dialect.{d}") for d in TOP)):
        for path in sorted(folder.rglob("*.py")):
            relative = path.relative_to(folder)
            if name == "cute_dialect" and relative.parts[0] in TOP:
                continue  # Symbolic links are skipped.
            found[".".join([name, *relative.with_suffix("").parts]).removesuffix(".__init__")] = path
    return found


MODULES = modules()


@cache
def exported(package: str) -> dict[str, str]:
    """Return the public names of a package and the modules that define them, from its stub."""
    path = MODULES[package]
    stub = path.with_suffix(".pyi")
    if path.name != "__init__.py" or not stub.exists():
        return {}
    names: dict[str, str] = {}
    for node in ast.walk(ast.parse(stub.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            names.update({alias.asname or alias.name: node.module for alias in node.names})
    return names


def targets(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    """Yield the modules of the package that a statement imports."""
    for alias in node.names:
        if isinstance(node, ast.Import):
            name = alias.name
        else:
            assert node.level == 0 and node.module is not None, "use absolute imports"
            name = f"{node.module}.{alias.name}"
            if name not in MODULES:
                name = exported(node.module).get(alias.name, node.module) if node.module in MODULES else node.module
        if name in MODULES:
            yield name


class Source(NamedTuple):
    """Imports of a module, other than for type checking, and its counts."""

    imports: tuple[Import, ...]
    lines: int
    fmt_skips: int
    anys: int
    many_parameters: tuple[str, ...]
    """Functions with many parameters."""


@cache
def source(module: str) -> Source:
    """Read and parse a module."""
    return parse(MODULES[module].read_text(), module in FOREIGN)


def parse(text: str, foreign: bool = False) -> Source:
    """Parse the text of a module, which is ``foreign`` if it is one of ``FOREIGN``."""
    found: list[Import] = []
    wide: list[str] = []
    lines = text.splitlines()
    nodes: list[tuple[ast.AST, bool]] = [(ast.parse(text), False)]
    while nodes:
        node, inside = nodes.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            statement = "\n".join(lines[node.lineno - 1 : node.end_lineno])
            is_late = inside and REASON.search(statement) is None
            found += [Import(name, node.lineno, is_late) for name in targets(node)]
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            inside = True
            is_exempt = foreign and not node.name.startswith("_")
            if len(node.args.posonlyargs + node.args.args + node.args.kwonlyargs) >= MANY and not is_exempt:
                wide.append(node.name)
        nodes += [(inner, inside) for inner in ast.iter_child_nodes(node) if isinstance(inner, WITH_STATEMENTS)]
    return Source(tuple(found), len(lines), text.count("# fmt: skip"), len(ANY.findall(text)), tuple(wide))


def imports(module: str) -> tuple[Import, ...]:
    """Return the modules of the package that a module imports, except for type checking."""
    return source(module).imports


def package_of(module: str) -> str:
    """Return the package of a module, or `cute_dialect` for a top-level module."""
    parts = module.split(".")
    path = MODULES[module]
    return parts[1] if len(parts) > 2 or (len(parts) == 2 and path.name == "__init__.py") else parts[0]


def cycles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Return the strongly connected components of more than one module, by Tarjan's algorithm."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []
    for start in graph:
        if start in index:
            continue
        work = [(start, iter(sorted(graph[start])))]
        index[start] = low[start] = len(index)
        stack.append(start)
        while work:
            node, rest = work[-1]
            for other in rest:
                if other not in index:
                    index[other] = low[other] = len(index)
                    stack.append(other)
                    work.append((other, iter(sorted(graph[other]))))
                    break
                if other in stack:
                    low[node] = min(low[node], index[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    at = stack.index(node)
                    component, stack[at:] = stack[at:], []
                    if len(component) > 1:
                        found.append(sorted(component))
    return found


def import_graph() -> dict[str, set[str]]:
    """Return the modules that each module imports, other than itself."""
    return {module: {i.target for i in imports(module)} - {module} for module in MODULES}


def in_cycles() -> Counter[str]:
    """Return the number of modules in cycles, per package."""
    return Counter(package_of(module) for cycle in cycles(import_graph()) for module in cycle)


def late_imports() -> Counter[str]:
    """Return the number of import statements inside functions without a comment that justifies them, per package."""
    return Counter(package_of(module) for module in MODULES for _ in {i.line for i in imports(module) if i.is_late})


def counters() -> dict[str, int]:
    """Count files, lines, and constructs that should become rarer, in all sources."""
    found = [source(module) for module in MODULES]
    return {
        "files": len(found),
        "lines": sum(s.lines for s in found),
        "# fmt: skip": sum(s.fmt_skips for s in found),
        "Any": sum(s.anys for s in found),
        "late imports": sum(late_imports().values()),
        f"functions with {MANY} or more parameters": sum(len(s.many_parameters) for s in found),
        "modules in cycles": sum(in_cycles().values()),
    }


def main() -> None:
    if len(sys.argv) == 1:
        print("modules in cycles:", dict(sorted(in_cycles().items())))
        print("late imports:", dict(sorted(late_imports().items())))
        print("counters:", counters())
        return
    found = cycles(import_graph())
    for cycle in found:
        if sys.argv[1] in map(package_of, cycle):
            print(f"cycle of {len(cycle)} modules:")
            for module in cycle:
                edges = sorted({i.target for i in imports(module)} & set(cycle) - {module})
                print(f"  {module} -> {' '.join(edges)}")
    for module, path in MODULES.items():
        if package_of(module) == sys.argv[1]:
            for i in sorted({i for i in imports(module) if i.is_late}, key=lambda i: i.line):
                in_cycle = any(module in cycle and i.target in cycle for cycle in found)
                print(f"{path.relative_to(ROOT)}:{i.line}: {i.target}{'' if in_cycle else ' (in no cycle)'}")


if __name__ == "__main__":
    main()
