"""The stub of a package defines its public names for type checkers, `import *`, `dir` and completion."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PACKAGES = {
    "cute_dialect.kernels.gemm": "gemm_text",
    "cute_dialect.algebra": "composition", "cute_dialect.arch": "ATOMS", "cute_dialect.interp": "run_kernel",
    "cute_dialect.lang": "Int32", "cute_dialect.lang.nvgpu": "CopyUniversalOp", "cute_dialect.op": "mm",
    "cute_dialect.op.epilogue": "trace", "cute_dialect.viz": "draw",
}  # fmt: skip
"""Package -> one of its names, of a module that the package does not import."""

IMPORTED = {
    "cute_dialect.algebra": {
        "arithmetic", "evaluation", "layout", "leaf", "text", "trees", "values", "verify",
    },
}  # fmt: skip
"""Package -> modules that it imports itself. A layout needs them to be built and called."""


def stub(package: str) -> dict[str, tuple[str, str]]:
    """Map each public name of a package to its module in the stub and its name in that module."""
    names: dict[str, tuple[str, str]] = {}
    for node in ast.parse((ROOT / package.replace(".", "/") / "__init__.pyi").read_text()).body:
        if isinstance(node, ast.ImportFrom):
            assert all(alias.asname == alias.name for alias in node.names), node.lineno
            names.update({alias.name: (node.module or "", alias.name) for alias in node.names})
        elif isinstance(node, ast.Assign):
            names[ast.unparse(node.targets[0])] = names[ast.unparse(node.value)]
    return names


def test_every_stub_is_of_a_package_here() -> None:
    tops = [ROOT / top for top in ("cute_dialect", "passes", "pipelines", "tools")]
    stubs = {p.parent.relative_to(ROOT).as_posix().replace("/", ".") for top in tops for p in top.rglob("*.pyi")}
    assert stubs == {*PACKAGES}


@pytest.mark.parametrize("package", PACKAGES)
def test_names_are_defined_in_the_module_of_the_stub(package: str) -> None:
    """The stub imports each name from the module that defines it."""
    names = stub(package)
    assert names
    for name, (module, own) in names.items():
        value = getattr(import_module(package), name)
        if module == package:
            assert inspect.ismodule(value) and value.__name__ == f"{package}.{own}", name
            continue
        home = (ROOT / package.replace(".", "/") / name).with_suffix(".py")
        assert not home.exists(), f"{package}.{name} would be the module {home.name} once anything imports that"
        if inspect.isclass(value) or inspect.isfunction(value):
            assert (value.__module__, value.__name__) == (module, own), name


@pytest.mark.parametrize("package", PACKAGES)
def test_star_import_and_dir_match_the_stub(package: str) -> None:
    found: dict[str, object] = {}
    exec(f"from {package} import *", found)
    assert sorted(found.keys() - {"__builtins__"}) == dir(import_module(package)) == sorted(stub(package))


@pytest.mark.sample(every=4)
@pytest.mark.parametrize("package", PACKAGES)
def test_packages_import_lazily(package: str) -> None:
    start = f"'{package}.'"
    own = {f"{package}.{module}" for module in IMPORTED.get(package, ())}
    code = (
        f"import sys, {package} as p; names = lambda: {{m for m in sys.modules if m.startswith({start})}}; "
        f"own = {own or 'set()'}; assert names() == own, names(); p.{PACKAGES[package]}; assert names() > own"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_operations_import_lazily() -> None:
    """Importing `op` needs no torch, numpy or compiler; choosing a kernel needs no torch or compiler."""
    code = (
        "import sys; from cute_dialect import op; found = {'torch', 'numpy', 'xdsl', 'mlir'} & {*sys.modules}; "
        "assert not found, found; op.mm, op.bmm; from cute_dialect.op import Problem, choose; "
        "choose(Problem(64, 64, 64)); found = {'torch', 'xdsl', 'mlir'} & {*sys.modules}; assert not found, found"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_name_that_is_missing() -> None:
    from cute_dialect import algebra

    with pytest.raises(AttributeError, match=r"^module 'cute_dialect\.algebra' has no attribute 'compose_all'$"):
        algebra.compose_all  # pyright: ignore  # noqa: B018
