"""``runtime`` plans a launch when neither xDSL nor the compiler can be imported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cute_dialect.pipelines import compile as compile_cute
from cute_dialect.runtime.artifact import CodeObject

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

ALONE = """
import sys

class OnlyTheRuntime:
    # Finds nothing itself, and hides modules that a launch must not need from later finders.
    def find_spec(self, name, path=None, target=None):
        top, _, rest = name.partition(".")
        ours = ("runtime", "algebra", "arch", "errors", "exports", "files", "spaces", "tracebacks", "type_text")
        if top in ("xdsl", "mlir", "torch", "cupy", "ml_dtypes", "rich", "cuda"):
            raise ImportError(f"{name} is not installed here")
        if top == "cute_dialect" and rest and rest.split(".")[0] not in ours:
            raise ImportError(f"{name} is no part of the runtime")
        return None

sys.meta_path.insert(0, OnlyTheRuntime())
import numpy as np
"""

PLAN = """
from cute_dialect.runtime import load
from cute_dialect.runtime.arrays import ArrayView

def on_gpu(array):
    strides = tuple(s // array.itemsize for s in array.strides)
    return ArrayView(1 << 32, array.shape, strides, names[array.dtype.name], 0, "cuda", array)

names = {"float32": "f32", "float16": "f16", "int32": "i32"}
kernel = load(folder).kernel(name)
plan = kernel.plan(*[on_gpu(np.zeros(shape, dtype)) for shape, dtype in arrays])
for part in plan:
    print(part)
"""

CASES = {
    "elementwise_add": ("add", [((300, 520), "float32")] * 3),
    "tma_copy": ("launch", [((300, 520), "float16")] * 2),
    "row_sum": ("sum", [((300, 4096), "float32"), ((300,), "float32")]),
}


def saved(example: str, folder: Path) -> str:
    """Return a folder with an example that is compiled for planning only. Its machine code is a placeholder."""
    module = compile_cute(EXAMPLES / f"{example}.mlir", emit="base", cache=False)
    code = tuple(CodeObject(m, "// ptx", b"\x7fELF", None, "") for m in module.manifest["modules"])
    module.artifact = module.artifact._replace(code=code)
    return module.save(folder)


@pytest.mark.sample("elementwise_add")
@pytest.mark.parametrize("example", CASES)
def test_a_launch_is_planned(example: str, tmp_path: Path) -> None:
    """The kernel, grid, parameters and tensor maps equal those planned in this process."""
    folder = saved(example, tmp_path / example)
    name, arrays = CASES[example]
    given = f"folder, name, arrays = {folder!r}, {name!r}, {arrays!r}\n"
    alone = run(ALONE + given + PLAN)
    assert alone.returncode == 0, alone.stderr
    whole = run("import numpy as np, xdsl\n" + given + PLAN)
    assert whole.returncode == 0, whole.stderr
    assert alone.stdout == whole.stdout
    lines = alone.stdout.splitlines()
    assert lines[2].startswith("LaunchShape("), lines  # The host function computes this grid.
    assert "Packed(buffers=(b" in alone.stdout


def test_the_cpu_needs_the_compiler(tmp_path: Path) -> None:
    folder = saved("elementwise_add", tmp_path / "add")
    done = run(
        f"{ALONE}folder = {folder!r}\n"
        "from cute_dialect.runtime import load\n"
        "a = np.zeros((4, 4), np.float32)\n"
        "load(folder).kernel('add')(a, a, a, device='cpu')\n"
    )
    said = "LaunchError: running on the CPU needs the compiler's packages: pip install xdsl (cute_dialect.pipelines"
    assert done.returncode == 1 and said in done.stderr, done.stderr


def test_every_module_of_the_runtime_can_be_imported_alone() -> None:
    done = run(
        ALONE + "import pkgutil, importlib, cute_dialect.runtime as r\n"
        "for m in pkgutil.walk_packages(r.__path__, 'cute_dialect.runtime.'): importlib.import_module(m.name)\n"
        "print(sorted({m.split('.')[1] for m in sys.modules if m.startswith('cute_dialect.')}))\n"
    )
    assert done.stdout == "['arch', 'errors', 'exports', 'files', 'runtime', 'tracebacks', 'type_text']\n", done.stderr


def run(code: str) -> subprocess.CompletedProcess[str]:
    """Run code in a new Python process."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
