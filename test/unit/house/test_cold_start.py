"""Imports at start-up: files without extensions import none, and the tables of lazily imported names are correct."""

import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest
from xdsl.ir import Attribute, Operation

from cute_dialect.dialect.registry import (
    EXTENSIONS,
    get_core_dialect,
    get_cute_dialect,
    get_cute_nvgpu_dialect,
    module_of_op,
    module_of_type,
)
from cute_dialect.ir.context import make_context
from cute_dialect.passes import algo_to_arch, to_base

ROOT = Path(__file__).resolve().parents[3]
CORE_DIALECT = {"base", "asm", "typed_values", "make", "access", "algebra", "sizes", "arith", "tile"} | {
    "inference", "diag", "views", "memory", "tiled", "tensor_lifting", "registry", "types",
    "memory_types", "atom_types", "dialect",
}  # fmt: skip
CORE_LOWERING = {
    "accumulators", "bits", "build", "carried", "control", "copying", "core", "fills", "folding", "fragments",
    "functions", "insertion", "memory", "printing", "thread_slices", "types", "walk", "widen",
}  # fmt: skip
NOT_NEEDED = (
    "numpy", "ml_dtypes", "rich", "torch", "asyncio", "argparse", "unittest", "cute_dialect.interp",
    "cute_dialect.kernels", "cute_dialect.arch.table", "xdsl.dialects.llvm", "xdsl.dialects.gpu",
    "xdsl.dialects.memref", "xdsl.dialects.vector", "xdsl.dialects.linalg", "mlir.dialects.gpu", "mlir.dialects.llvm",
)  # fmt: skip
ALL_OPS = [*get_cute_dialect().operations, *get_cute_nvgpu_dialect().operations]
ALL_ATTRIBUTES = [*get_cute_dialect().attributes, *get_cute_nvgpu_dialect().attributes]


def imported(arguments: list[str], tool: str = "cute_opt", expected: str = "cute_dialect.ir.parsing") -> set[str]:
    """Run a tool in a new process and return the modules that it imports. ``expected`` must be one of them."""
    program = (
        "import os, sys\n"
        "leave = os._exit\n"
        "def report(status):\n"
        "    os.write(1, '\\n'.join(['', 'MODULES', *sys.modules]).encode())\n"
        "    leave(status)\n"
        "os._exit = report\n"
        f"sys.argv = {[tool, *arguments]!r}\n"
        f"from cute_dialect.tools.{tool} import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT)
    assert "Traceback" not in done.stderr and "internal error" not in done.stderr, done.stderr
    found = set(done.stdout.partition("\nMODULES\n")[2].split("\n"))
    assert expected in found
    return found


def test_elementwise_imports_no_extension(tmp_path: Path) -> None:
    out = tmp_path / "add.mlir"
    source = str(ROOT / "test/examples/elementwise_add.mlir")
    passes = ["--cute-fold-static", "--cute-expand-ops", "--convert-cute-algo-to-arch", "--cute-to-base"]
    modules = imported([source, *passes, "-o", str(out)])
    assert "llvm.func" in out.read_text()
    own = {m.rpartition(".")[2] for m in modules if m.startswith("cute_dialect.dialect.")}
    assert own <= CORE_DIALECT, f"not needed: {sorted(own - CORE_DIALECT)}"
    lowering = {m.rpartition(".")[2] for m in modules if m.startswith("cute_dialect.passes.lowering.")}
    assert lowering <= CORE_LOWERING, f"not needed: {sorted(lowering - CORE_LOWERING)}"
    assert not modules.intersection(NOT_NEEDED)
    assert {m for m in modules if m.startswith("cute_dialect.cute_nvgpu")} == {"cute_dialect.cute_nvgpu"}
    assert not any(m == "mlir" or m.startswith("mlir.") for m in modules)


@pytest.mark.slow
def test_elementwise_to_ptx_imports_no_extension(tmp_path: Path) -> None:
    pytest.importorskip("mlir.ir")
    out = tmp_path / "add.ptx"
    source = str(ROOT / "test/examples/elementwise_add.mlir")
    modules = imported([source, "--pipeline=nvptx=chip=sm_90a", "--emit=ptx", "-o", str(out)])
    assert ".visible .entry add" in out.read_text()
    assert not modules.intersection(NOT_NEEDED)
    assert not any(m == "mlir" or m.startswith("mlir.") for m in modules)  # Upstream MLIR runs in another process.


RUN_NEEDS_NOT = ("torch", "cupy", "rich", "asyncio", "unittest", "mlir", "cute_dialect.kernels")
ADD = str(ROOT / "test/examples/elementwise_add.mlir")


@pytest.mark.slow
def test_a_run_on_the_cpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run on the CPU generates no machine code, so it imports no MLIR, progress bars or tables."""
    monkeypatch.setenv("CUTE_CACHE", "1")
    monkeypatch.setenv("CUTE_CACHE_DIR", str(tmp_path))
    out = tmp_path / "c.npy"
    given = ["--in", "17x128", "--in", "17x128", "--check", "add", "--out", f"c={out}"]
    for _ in range(2):  # The second run loads the kernel from the cache.
        out.unlink(missing_ok=True)
        run = [ADD, "--kernel=add", "--device=cpu", *given]
        modules = imported(run, "cute_run", "cute_dialect.interp")
        assert out.exists()
        assert not modules.intersection(RUN_NEEDS_NOT), sorted(modules.intersection(RUN_NEEDS_NOT))


@pytest.mark.slow
def test_missing_arguments_are_reported_before_imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Missing arguments are reported before numpy and the interpreter are imported; cached kernels need no xDSL."""
    monkeypatch.setenv("CUTE_CACHE", "1")
    monkeypatch.setenv("CUTE_CACHE_DIR", str(tmp_path))
    heavy = {"numpy", "cute_dialect.interp", *RUN_NEEDS_NOT}
    for number, given in enumerate(([], [], ["--in", "4y8"], ["--in", "z=4"])):
        run = [ADD, "--kernel=add", "--device=cpu", *given]
        modules = imported(run, "cute_run", "cute_dialect.runtime.launch")
        assert not modules.intersection(heavy)
        assert ("xdsl" in modules) == (number == 0)
    modules = imported([str(tmp_path / "none.mlir"), "--device=cpu"], "cute_run", "cute_dialect.pipelines.compiler")
    assert "xdsl" not in modules and "numpy" not in modules
    modules = imported([ADD, "--grid=one"], "cute_run", "cute_dialect.tools.cute_run")
    assert "cute_dialect.runtime.launch" not in modules


def test_plain_files_import_no_cute_dialect(tmp_path: Path) -> None:
    source = tmp_path / "f.mlir"
    source.write_text("func.func @f(%a: i32) -> i32 {\n  return %a : i32\n}\n")
    modules = imported([str(source), "-o", str(tmp_path / "out.mlir")])
    assert not any(m.startswith(("cute_dialect.dialect", "cute_dialect.algebra")) for m in modules)
    assert "xdsl.dialects.arith" not in modules


@pytest.mark.parametrize("op", ALL_OPS, ids=lambda op: op.name)
def test_module_of_op(op: type[Operation]) -> None:
    core = {o.name for o in get_core_dialect("cute").operations}
    where = module_of_op(op.name)
    if op.name in core:
        assert where is None, f"{op.name} is a core op; cute_dialect/dialect/registry.py says {where}"
        return
    assert where is not None, f"{op.name}: expected its name in a record"
    assert op in import_module(where).OPS, f"{op.name}: the record says {where}, which does not hold it"


@pytest.mark.parametrize("attribute", ALL_ATTRIBUTES, ids=lambda a: a.name)
def test_module_of_type(attribute: type[Attribute]) -> None:
    core = {a.name for n in ("cute", "cute_nvgpu") for a in get_core_dialect(n).attributes}
    where = module_of_type(attribute.name)
    assert (where is None) == (attribute.name in core), f"{attribute.name}: see cute_dialect/dialect/registry.py"
    if where is not None:
        module = import_module(where)
        assert attribute in module.ATTRS


def test_an_editable_install_is_a_path() -> None:
    """With this configuration setuptools writes a path file. A finder would import ``pathlib`` at each start."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    assert settings["package-dir"] == {"": "."}
    assert settings["packages"]["find"] == {"include": ["cute_dialect*"]}


def test_names_of_records_exist() -> None:
    """Each op and type that a family's record lists exists and is listed once."""
    ops, types = {op.name for op in ALL_OPS}, {a.name for a in ALL_ATTRIBUTES}
    listed = [n for f in EXTENSIONS for table in (f.types, f.ops) for names in table.values() for n in names]
    assert len(set(listed)) == len(listed)
    for name in listed:
        assert name in ops | types or (name.endswith("*") and any(o.startswith(name[:-1]) for o in ops)), name


def test_every_handler_is_found() -> None:
    """The lazy look-up finds each handler in the modules that the records name."""
    for find, of in ((algo_to_arch.handler_of, "to_arch"), (to_base.handler_of, "to_base")):
        for f in EXTENSIONS:
            for module in dict.fromkeys(getattr(f, of).values()):
                for op, handler in getattr(import_module(f.module(module)), of.upper()).items():
                    if op != "cute.tiled_copy":
                        assert find(op) is handler, f"{op}: see the record of {f.name}"


def test_context_has_all_dialects() -> None:
    """A new context finds each op and type by name without loading its dialect; a loaded dialect lists them all."""
    for op in ALL_OPS:
        assert make_context().get_optional_op(op.name) is op
    context = make_context()
    assert context.get_optional_op("cute.no_such_op") is None
    assert context.get_optional_type("cute_nvgpu.no_such_type") is None
    assert {op for op in context.loaded_ops if op.name.startswith("cute")} == set(ALL_OPS)
    copy = make_context().clone()
    for attribute in ALL_ATTRIBUTES:
        found = copy.get_optional_type(attribute.name) or copy.get_optional_attr(attribute.name)
        assert found is not None and found.name == attribute.name
    assert make_context("base").get_optional_op("cute.gemm") is None
