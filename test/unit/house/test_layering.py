"""Modules import only from layers to the left of their own in ``LAYERS``."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from cute_dialect.cute_nvgpu import FAMILIES, TO_NVGPU, Family

ROOT = Path(__file__).parents[3]
LAYERS = (
    "type_text", "errors", "exports", "files", "spaces", "algebra", "symbolic", "arch", "viz", "runtime", "tracebacks",
    "ir",
    "upstream", "dialect", "passes", "cute_nvgpu", "interp", "pipelines", "prove", "lang", "compat", "kernels", "op",
    "flash_attn", "flash_mla", "explore", "tools",
)  # fmt: skip
XDSL_FREE = LAYERS[: LAYERS.index("ir")]
VENDOR = ("mlir", "cuda", "torch", "cupy")
VENDOR_FREE = LAYERS[: LAYERS.index("pipelines")]
DRIVER = ("runtime",)
"""Layers before ``pipelines`` that may import cuda-python; it is the CUDA driver to them."""


INNER_LAYERS = {
    "interp": (
        "errors", "types", "values", "rounding", "field", "memory", "reports", "machine", "race", "compiler",
        "instructions", "exec", "validation",
    ),
    "lang": (
        "tracing", "values", "rewrite", "control", "machine", "calls", "nvgpu", "arch", "math", "runtime",
        "utils", "hopper", "blackwell", "blockscaled", "pipeline", "ranks", "compat", "cuda", "extras", "testing",
        "torch",
    ),
    "op": (
        "errors", "signature_types", "keywords", "arrays", "epilogue", "problems", "select", "execute",
        "compiler", "conv", "rows", "explanations", "kernel_prefetch", "tuning", "pycutlass", "plans", "torch",
        "functions", "operators", "distributed", "emit", "nn",
    ),
}  # fmt: skip
"""The layers within a package: its modules and folders import only those to their left."""

RECORDS = ("cute_nvgpu.FAMILIES", "cute_nvgpu.TO_NVGPU", "cute_nvgpu.Family")
"""Records that dialect and passes may import from the families. The records name everything else as strings."""

PUBLIC_PATHS = ("compat", "cuda", "extras", "testing", "torch")
"""Modules of ``lang`` that only import the public names of a module of ``compat``."""

BY_NAME = {
    "cute_dialect.passes.algo_to_arch": "tile_of_op, module_of_atom",
    "cute_dialect.passes.to_base": "lower_of_op, TO_NVGPU",
    "cute_dialect.cute_nvgpu.tiled_mma_lowering": "module_of_atom",
}
"""The modules that import what a record names -> what they ask for."""


def layer_of(module: str) -> str | None:
    """Return the layer of a module of the package, or None if it has none."""
    parts = module.split(".")[1:]
    if not parts:
        return None
    if ".".join(parts).startswith(RECORDS):
        return "ir"  # Records contain only strings.
    if parts[0] == "lang" and parts[1:2] and parts[1] in PUBLIC_PATHS:
        return "compat"
    if parts[0] in ("universe", "__main__", "__version__"):
        return None
    return parts[0]


WITH_STATEMENTS = (ast.stmt, ast.excepthandler, ast.match_case)
"""Nodes that contain statements. An import never stands in an expression."""


def modules() -> Iterator[tuple[str, Path]]:
    for folder, name in (
        (ROOT / "cute_dialect", "cute_dialect"),
        *((ROOT / d, f"cute_dialect.{d}") for d in ("passes", "pipelines", "tools")),
    ):
        for path in sorted(folder.rglob("*.py")):
            relative = path.relative_to(folder)
            if folder.name == "cute_dialect" and relative.parts[0] in ("passes", "pipelines", "tools"):
                continue  # Symbolic links are skipped.
            dotted = ".".join([name, *relative.with_suffix("").parts])
            yield dotted.removesuffix(".__init__"), path


@cache
def text_of(path: Path) -> str:
    return path.read_text()


@cache
def imports(path: Path) -> list[tuple[str, int]]:
    """Return the modules that a file imports, also inside functions, with their lines, except for type checking."""
    found: list[tuple[str, int]] = []
    nodes: list[ast.AST] = [ast.parse(text_of(path))]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.Import):
            found += [(alias.name, node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module is not None and node.level == 0:
            found += [(f"{node.module}.{alias.name}", node.lineno) for alias in node.names]
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        nodes += [inner for inner in ast.iter_child_nodes(node) if isinstance(inner, WITH_STATEMENTS)]
    return found


MODULES = dict(modules())


@pytest.mark.sample(every=7)
@pytest.mark.parametrize("layer", LAYERS)
def test_imports_go_left(layer: str) -> None:
    wrong: list[str] = []
    for module in MODULES:
        if layer_of(module) == layer:
            wrong += [f"{module} {what}" for what in wrong_imports(module, layer)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("package", INNER_LAYERS)
def test_imports_within_a_package_go_left(package: str) -> None:
    order, prefix = INNER_LAYERS[package], f"cute_dialect.{package}."
    wrong: list[str] = []
    for module, path in MODULES.items():
        mine = module.removeprefix(prefix).split(".")[0]
        if module.startswith(prefix) and mine in order:
            for name, line in imports(path):
                inner = name.removeprefix(prefix).split(".")[0] if name.startswith(prefix) else ""
                if inner in order[order.index(mine) + 1 :]:
                    wrong.append(f"{module} line {line}: {mine} imports {name} of the later layer {inner}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("package", INNER_LAYERS)
def test_every_module_of_a_package_has_a_layer(package: str) -> None:
    prefix = f"cute_dialect.{package}."
    found = {m.removeprefix(prefix).split(".")[0] for m in MODULES if m.startswith(prefix)}
    assert found - set(INNER_LAYERS[package]) == set()


def wrong_imports(module: str, layer: str) -> Iterator[str]:
    """Return the imports of a module that its layer forbids, with their lines."""
    for name, line in imports(MODULES[module]):
        top = name.split(".")[0]
        if top == "cute_dialect":
            other = layer_of(name)
            if other is not None and LAYERS.index(other) > LAYERS.index(layer):
                yield f"line {line}: {layer} imports {name} of the later layer {other}"
        elif top == "cuda" and layer in DRIVER:
            continue
        elif (top == "xdsl" and layer in XDSL_FREE) or (top in VENDOR and layer in VENDOR_FREE):
            yield f"line {line}: {layer} imports {name}"
        elif top in ("passes", "pipelines", "tools"):
            yield f"line {line}: import cute_dialect.{name}"


def test_every_layer_is_seen() -> None:
    assert {layer_of(m) for m in MODULES} >= {"algebra", "runtime", "dialect", "passes", "interp", "pipelines", "tools"}


def test_records_hold_strings_only() -> None:
    """The records import no module of the package, because every program reads them when it starts."""
    assert not {n for n, _ in imports(MODULES["cute_dialect.cute_nvgpu"]) if n.startswith("cute_dialect")}


def modules_of(family: Family) -> set[str]:
    """Return the modules that a record names, except the ``atoms`` module of another family."""
    return {*family.types, *family.ops, *family.to_arch.values(), *family.to_base.values()} | (
        {family.atoms} if family.atoms.startswith(family.name) else set()
    )


def test_every_module_of_a_family_is_recorded() -> None:
    recorded = {f.module(m) for f in FAMILIES for m in modules_of(f)}
    assert {m for m in MODULES if m.startswith("cute_dialect.cute_nvgpu.")} == {*recorded, TO_NVGPU}


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.name)
def test_families_import_only_recorded_families(family: Family) -> None:
    """A family imports only its own modules and the families that its record names."""
    allowed = {m for f in FAMILIES if f.name in (family.name, *family.uses) for m in modules_of(f)}
    for module in modules_of(family):
        for name, line in imports(MODULES[family.module(module)]):
            if name.startswith("cute_dialect.cute_nvgpu."):
                assert name.split(".")[2] in allowed, f"{module} line {line}: see 'uses' in the record"


@pytest.mark.end_to_end
def test_families_are_imported_by_name_in_listed_modules() -> None:
    """``BY_NAME`` lists the modules that look up a family's module and import it by name."""
    found: set[str] = set()
    lookups = re.compile(r"cute_dialect\.(dialect\.registry\.\w+_of_|cute_nvgpu\.TO_)")
    for module, path in MODULES.items():
        asks = any(lookups.match(n) for n, _ in imports(path))
        if asks and "import_module(" in text_of(path):
            found.add(module)
    assert found == set(BY_NAME)


def test_folders_of_unit_tests_match_the_package() -> None:
    """Each layer has a folder of unit tests, and ``house`` tests the repository."""
    unit = ROOT / "test" / "unit"
    single_modules = {"type_text", "errors", "exports", "files", "spaces", "tracebacks", "flash_attn", "flash_mla"}
    assert {p.parent.name for p in unit.rglob("test_*.py")} == {*LAYERS, "house"} - single_modules
    assert list(unit.glob("test_*.py")) == []
