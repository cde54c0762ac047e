"""Runs an unmodified program written for CuTe DSL. Its imports are redirected, in this process only.

* ``cutlass`` and its modules, and ``cute_viz``: a finder on ``sys.meta_path`` creates modules that forward to this
  package.
* Modules in the program's source tree (``from cute.ampere.kernel.dense_gemm.tensorop_gemm import …``): the file with
  the last name.  It must be in the program's folder, and no other finder may provide the module.
* ``cuda.bindings.driver``: :mod:`cute_dialect.compat.cuda` if cuda-python is not installed.
* ``torch`` on the interpreter: :mod:`cute_dialect.compat.torch_cpu`, for files in the program's folder. torch itself is
  not modified.

Names of CuTe DSL that are not supported, those of later architectures and of its own compiler, resolve to placeholders
(:func:`refused`).
"""

from __future__ import annotations

import argparse
import ast
import builtins
import re
import sys
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location, spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from cute_dialect.lang.calls.options import running_on, target
from cute_dialect.lang.tracing.errors import KernelTypeError
from cute_dialect.runtime.driver import CudaError, driver
from cute_dialect.runtime.settings import word

# --------------------------------------------------------------------------------------------------------- placeholders


STATEMENTS = "builds a loop explicitly, which is not supported; use 'for' or 'while'"
VENDOR = "belongs to NVIDIA's compiler and is not available"


class _Refused(type):
    """Metaclass of placeholder classes."""

    why: str

    def __call__(cls, *args: object, **kwargs: object) -> NoReturn:
        base = next(c for c in cls.__mro__ if c.__module__ == __name__)
        raise KernelTypeError("F280", f"{base.__name__} {cls.why}")

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return refused(f"{cls.__name__}.{name}", cls.why)


def refused(name: str, why: str) -> type:
    """Return a placeholder class for a name, which raises an error with the reason when used.

    >>> issubclass(refused("cutlass.cute.experimental", VENDOR).kind, object)
    True
    """
    return _Refused(name, (), {"__module__": __name__, "why": why})


# --------------------------------------------------------------------------------------------------- redirected imports


MODULES = {
    "cute_viz": "cute_dialect.viz",
    "cutlass": "cute_dialect.compat.cutlass",
    "cutlass._mlir": "cute_dialect.compat.mlir",
    "cutlass._mlir.dialects": "cute_dialect.compat.mlir",
    "cutlass._mlir.dialects.arith": "cute_dialect.compat.mlir.builders",
    "cutlass._mlir.dialects.llvm": "cute_dialect.compat.mlir.llvm",
    "cutlass._mlir.dialects.math": "cute_dialect.compat.mlir.builders",
    "cutlass._mlir.dialects.nvvm": "cute_dialect.compat.mlir.llvm",
    "cutlass._mlir.dialects.vector": "cute_dialect.compat.mlir.builders",
    "cutlass._mlir.ir": "cute_dialect.compat.mlir.ir",
    "cutlass._mlir._mlir_libs": "cute_dialect.compat.mlir",
    "cutlass._mlir._mlir_libs._cutlass_ir": "cute_dialect.compat.mlir",
    "cutlass._mlir._mlir_libs._cutlass_ir._mlir": "cute_dialect.compat.mlir",
    "cutlass._mlir._mlir_libs._cutlass_ir._mlir.ir": "cute_dialect.compat.mlir.ir",
    "cutlass.base_dsl": "cute_dialect.compat.cutlass",
    "cutlass.base_dsl.arch": "cute_dialect.compat.cutlass",
    "cutlass.base_dsl.common": "cute_dialect.compat.cutlass",
    "cutlass.base_dsl.dsl": "cute_dialect.compat.cutlass",
    "cutlass.base_dsl.typing": "cute_dialect.compat.cutlass",
    "cutlass.cute": "cute_dialect.lang",
    "cutlass.base_dsl.runtime": "cute_dialect.compat.cutlass",
    "cutlass.base_dsl.runtime.cuda": "cute_dialect.compat.cuda",
    "cutlass.cute.arch": "cute_dialect.compat.legacy_arch",
    "cutlass.cute.arch.nvvm_wrappers": "cute_dialect.compat.legacy_arch",
    "cutlass.cute.arch.smem": "cute_dialect.compat.legacy_arch",
    "cutlass.cute.atom": "cute_dialect.lang",
    "cutlass.cute.core": "cute_dialect.lang",
    "cutlass.cute.tensor": "cute_dialect.lang",
    "cutlass.cute.math": "cute_dialect.lang.math",
    "cutlass.cute.nvgpu": "cute_dialect.lang.nvgpu",
    "cutlass.cute.nvgpu.common": "cute_dialect.lang.nvgpu.common",
    "cutlass.cute.nvgpu.cpasync": "cute_dialect.lang.nvgpu.cpasync",
    "cutlass.cute.nvgpu.tcgen05": "cute_dialect.lang.nvgpu.tcgen05",
    "cutlass.cute.nvgpu.tcgen05.copy": "cute_dialect.lang.nvgpu.tcgen05",
    "cutlass.cute.nvgpu.tcgen05.mma": "cute_dialect.lang.nvgpu.tcgen05",
    "cutlass.cute.nvgpu.warp": "cute_dialect.lang.nvgpu.warp",
    "cutlass.cute.nvgpu.warp.copy": "cute_dialect.lang.nvgpu.warp",
    "cutlass.cute.nvgpu.warp.mma": "cute_dialect.lang.nvgpu.warp",
    "cutlass.cute.nvgpu.warpgroup": "cute_dialect.lang.nvgpu.warpgroup",
    "cutlass.cute.runtime": "cute_dialect.lang.runtime",
    "cutlass.cute.testing": "cute_dialect.compat.testing",
    "cutlass.cute.typing": "cute_dialect.compat.cutlass",
    "cutlass.cutlass_dsl": "cute_dialect.compat.cutlass",
    "cutlass.cuda": "cute_dialect.compat.cuda",
    "cutlass.pipeline": "cute_dialect.lang.pipeline",
    "cutlass.testing": "cute_dialect.compat.testing",
    "cutlass.torch": "cute_dialect.compat.torch",
    "cutlass.utils": "cute_dialect.lang.utils",
    "cutlass.utils.blackwell_helpers": "cute_dialect.lang.blackwell",
    "cutlass.utils.blockscaled_layout": "cute_dialect.lang.blockscaled",
    "cutlass.utils.hardware_info": "cute_dialect.lang.utils",
    "cutlass.utils.hopper_helpers": "cute_dialect.lang.hopper",
    "cutlass.utils.layout": "cute_dialect.lang.utils",
    "cutlass.utils.sm100": "cute_dialect.lang.blackwell",
    "cutlass.utils.tensor_helpers": "cute_dialect.compat.torch",
}
"""Maps the modules of CuTe DSL to the modules of this package."""
NAMES: Mapping[str, str] = dict.fromkeys(
    ("cutlass.utils.create_cute_tensor_for_fp8", "cutlass.utils.is_fp8_dtype"), MODULES["cutlass.utils.tensor_helpers"]
)
"""Maps names that a module of CuTe DSL imports from another one to the module of this package."""
REFUSED = {
    "cutlass.for_generate": STATEMENTS,
    "cutlass.while_generate": STATEMENTS,
    "cutlass.yield_out": STATEMENTS,
    "cutlass.cutlass_dsl.for_generate": STATEMENTS,
    "cutlass.cutlass_dsl.while_generate": STATEMENTS,
    "cutlass.cutlass_dsl.yield_out": STATEMENTS,
    "cutlass.cute.experimental": VENDOR,
    "cutlass._mlir.dialects.cute": VENDOR,
    "cutlass._mlir.dialects.scf": STATEMENTS,
    "cutlass._mlir.dialects.cute_nvgpu": VENDOR,
    "cutlass.base_dsl.tvm_ffi_builder": VENDOR,
    "cutlass.cute._tvm_ffi_args_spec_converter": VENDOR,
    "cutlass.cutlass_dsl.tvm_ffi_provider": VENDOR,
}
"""Modules and names that can be imported but not used, with the reason."""
_ULTRA = "is an MMA of sm_103 with K = 96, which is not supported"
_HELPER = "is a helper for Blackwell that is not provided"
_TENSOR_MEMORY = {
    **dict.fromkeys(("SM103MmaMXF4Op", "SM103MmaMXF4NVF4Op"), _ULTRA),
    **dict.fromkeys(("make_umma_smem_desc", "get_tmem_copy_properties", "is_tmem_load", "is_tmem_store"), _HELPER),
}
_HELPERS = ("get_smem_layout_atom_ab",)
REFUSED.update(
    {
        f"cutlass.cute.nvgpu.tcgen05{module}.{name}": why
        for name, why in _TENSOR_MEMORY.items()
        for module in ("", ".copy", ".mma")
    }
)
REFUSED.update({f"cutlass.utils.blackwell_helpers.{name}": _HELPER for name in _HELPERS})
_DRIVER = "cuda.bindings.driver"


class _Answering(Loader):
    """Loader of a module whose names are looked up on access."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        made = ModuleType(spec.name, self.doc(spec.name))
        made.__path__ = []
        return made

    def exec_module(self, module: ModuleType) -> None:
        def get(name: str) -> object:
            if name.startswith("__"):
                raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
            return self.answer(f"{module.__name__}.{name}", name)

        module.__dict__["__getattr__"] = get

    def doc(self, module: str) -> str:
        """Return the docstring of a module."""
        raise NotImplementedError

    def answer(self, full: str, name: str) -> object:
        """Return the value of a name; ``full`` is the name qualified by its module."""
        raise NotImplementedError


class _Forwarding(_Answering):
    """Loader of a module that forwards its attributes to another module."""

    def __init__(self, target: str):
        self.target = target

    def doc(self, module: str) -> str:
        return f"Answered by {self.target}."

    def answer(self, full: str, name: str) -> object:
        if full in MODULES:
            return import_module(full)
        if full in REFUSED:
            return refused(full, REFUSED[full])
        return getattr(import_module(NAMES.get(full, self.target)), name)


class _Refusing(_Answering):
    """Loader of a module whose names raise an error when used."""

    def __init__(self, why: str):
        self.why = why

    def doc(self, module: str) -> str:
        return f"{module} {self.why}."

    def answer(self, full: str, name: str) -> object:
        return refused(full, self.why)


class _Package(Loader):
    """Loader of an empty package."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        made = ModuleType(spec.name)
        made.__path__ = []
        return made

    def exec_module(self, module: ModuleType) -> None:
        return


class _Own(SourceFileLoader):
    """Loader of a file in the program's folder, whose imports are redirected like the program's."""

    def __init__(self, name: str, path: str, namespace: dict[str, Any]):
        super().__init__(name, path)
        self.namespace = namespace

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__["__builtins__"] = self.namespace
        super().exec_module(module)


class CutlassFinder(MetaPathFinder):
    """Finder of ``cutlass`` and ``cute_viz``. It precedes installed packages of these names."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Return the spec of a module of these packages.  Raises ModuleNotFoundError for an unknown module."""
        if fullname.partition(".")[0] not in ("cutlass", "cute_viz"):
            return None
        why = next((REFUSED[m] for m in REFUSED if fullname == m or fullname.startswith(f"{m}.")), None)
        if why is not None:
            return spec_from_loader(fullname, _Refusing(why), is_package=True)
        if fullname not in MODULES:
            known = ", ".join(m for m in MODULES if m.count(".") < 2)
            raise ModuleNotFoundError(f"'{fullname}' is not available; available modules: {known}, …", name=fullname)
        return spec_from_loader(fullname, _Forwarding(MODULES[fullname]), is_package=True)


class BesideFinder(MetaPathFinder):
    """Finder of modules in the program's folder, and of the CUDA driver, if no other finder provides them."""

    def __init__(self, folder: Path, namespace: dict[str, Any]):
        self.folder = folder
        self.namespace = namespace
        self.packages: set[str] = set()
        self.files: dict[str, Path] = {}

    def read(self, source: str) -> None:
        """Record the dotted imports of a file whose last name is a file in the folder."""
        for name in _dotted_imports(source):
            parts = name.split(".")
            path = self.folder / f"{parts[-1]}.py"
            if len(parts) < 2 or name in self.files or not path.is_file():
                continue
            self.files[name] = path
            self.packages |= {".".join(parts[:k]) for k in range(1, len(parts))}
            self.read(path.read_text())

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Return the spec of a module that no other finder provides, or None."""
        if fullname in self.files:
            loader = _Own(fullname, str(self.files[fullname]), self.namespace)
            return spec_from_loader(fullname, loader, is_package=False)
        if fullname in self.packages or _DRIVER.startswith(f"{fullname}."):
            return spec_from_loader(fullname, _Package(), is_package=True)
        if fullname == _DRIVER:
            return spec_from_loader(fullname, _Forwarding("cute_dialect.compat.cuda"), is_package=True)
        return None


class _DriverOnCpu(ModuleType):
    """A module of cuda-python for a program on the interpreter, where its driver need not be installed."""

    def __init__(self, module: ModuleType):
        super().__init__(module.__name__)
        self.__dict__["_module"] = module

    def __getattr__(self, name: str) -> object:
        module: ModuleType = self.__dict__["_module"]
        if module.__name__ == _DRIVER and name in ("cuInit", "cuDeviceGetCount"):
            return getattr(import_module("cute_dialect.compat.cuda"), name)
        found = getattr(module, name)
        is_package = isinstance(found, ModuleType) and f"{_DRIVER}.".startswith(f"{found.__name__}.")
        return _DriverOnCpu(found) if is_package else found


def _import_driver(
    name: str,
    globals: Mapping[str, object] | None = None,
    locals: Mapping[str, object] | None = None,
    fromlist: Sequence[str] = (),
    level: int = 0,
) -> ModuleType:
    """Import a module; the driver of cuda-python is that for the interpreter."""
    found = builtins.__import__(name, globals, locals, fromlist, level)
    return _DriverOnCpu(found) if not level and f"{_DRIVER}.".startswith(f"{found.__name__}.") else found


class SiblingFinder(MetaPathFinder):
    """Finder of modules and packages in the program's folder, whose imports are redirected like the program's.

    A module may also be named by the path of the folder: ``kernels.gemm.utils`` is ``utils.py`` in a folder
    ``…/kernels/gemm``.
    """

    def __init__(self, folder: Path, namespace: dict[str, Any]):
        self.folder = folder
        self.namespace = namespace

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Return the spec of a file in the program's folder or a package there, or None."""
        *packages, name = fullname.split(".")
        is_here = packages and self.folder.parts[-len(packages) :] == tuple(packages)
        folder = self.folder if is_here else self.folder.joinpath(*packages)
        file, package = folder / f"{name}.py", folder / name / "__init__.py"
        found = package if package.is_file() else file
        if not found.is_file():
            return None
        loader = _Own(fullname, str(found), self.namespace)
        return spec_from_file_location(
            fullname, found, loader=loader, submodule_search_locations=[str(found.parent)] if found == package else None
        )


def _dotted_imports(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (a.name for a in node.names)


@contextmanager
def answered_imports(folder: Path, *, cpu: bool) -> Generator[tuple[dict[str, Any], BesideFinder]]:
    """Redirect the imports of programs in a folder; yields the builtins to run them with, and the finder of files.

    ``cpu``: redirect ``torch`` for the interpreter.
    """
    namespace = dict(vars(builtins))
    if cpu:
        from cute_dialect.compat.torch_cpu import import_with  # late: start-up

        namespace["__import__"] = import_with(_import_driver)
    first: list[MetaPathFinder] = [CutlassFinder(), SiblingFinder(folder, namespace)]
    last = BesideFinder(folder, namespace)
    before, modules = list(sys.meta_path), set(sys.modules)
    replaced = {n: m for n, m in sys.modules.items() if n.partition(".")[0] == "cutlass"}
    for name in replaced:
        del sys.modules[name]
    sys.meta_path[:] = [*first, *before, last]  # pyright: ignore[reportArgumentType]
    try:
        yield namespace, last
    finally:
        sys.meta_path[:] = before
        for name in [n for n in sys.modules if n not in modules or n in replaced]:
            spec = getattr(sys.modules[name], "__spec__", None)
            if isinstance(getattr(spec, "loader", None), _Forwarding | _Refusing | _Package | _Own):
                del sys.modules[name]
        sys.modules.update(replaced)


def run(path: Path, arguments: Sequence[str] = (), *, cpu: bool = False) -> dict[str, Any]:
    """Run a program with arguments like ``python FILE ARGS…``, and return its globals.

    ``cpu``: run its kernels on the interpreter, with a stand-in for torch's CUDA module. Programs that name sm_120
    are then compiled for sm_120a, and others with ``tcgen05`` for sm_100a, unless ``CUTE_CHIP`` is set.
    """
    path = path.resolve()
    source = path.read_text()
    wanted = _target_of(source)
    chip = target(wanted) if cpu and wanted and not word("CUTE_CHIP") else nullcontext()
    code = compile(source, str(path), "exec", dont_inherit=True)
    module = ModuleType("__main__")
    module.__file__ = str(path)
    saved = sys.argv, list(sys.path), sys.modules.get("__main__")
    sys.argv = [str(path), *arguments]
    sys.path.insert(0, str(path.parent))
    sys.modules["__main__"] = module
    device = running_on("cpu") if cpu else nullcontext()
    try:
        with device, chip, answered_imports(path.parent, cpu=cpu) as (namespace, beside), _torch_mode(cpu):
            beside.read(source)
            module.__dict__["__builtins__"] = namespace
            exec(code, module.__dict__)
    finally:
        sys.argv, sys.path[:], main_module = saved
        if main_module is not None:
            sys.modules["__main__"] = main_module
    return module.__dict__


def _target_of(source: str) -> str:
    """Return the target of a program for Blackwell, or an empty string.

    >>> _target_of("import cutlass.utils.blackwell_helpers as sm120_utils"), _target_of("import cutlass")
    ('sm_120a', '')
    """
    if re.search(r"sm_?120", source):
        return "sm_120a"
    is_blackwell = re.search(r"^\s*(from|import) .*\b(tcgen05|blackwell_helpers)\b", source, re.MULTILINE)
    return "sm_100a" if is_blackwell else ""


@contextmanager
def _torch_mode(cpu: bool) -> Generator[None]:
    from importlib.util import find_spec

    if not cpu or find_spec("torch") is None:
        yield
        return
    from cute_dialect.compat.torch_cpu import on_cpu  # late: start-up

    with on_cpu():
        yield


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``python -m cute_dialect.lang.compat`` and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m cute_dialect.lang.compat", description="Run a program that was written for CuTe DSL."
    )
    parser.add_argument("--device", choices=["gpu", "cpu"], help="cpu: the interpreter (default without a GPU)")
    parser.add_argument("file", type=Path)
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="arguments of the program")
    args = parser.parse_args(argv)
    if not args.file.is_file():
        parser.error(f"file not found: {args.file}")
    device = args.device or word("CUTE_DEVICE", ("gpu", "cpu")) or ("gpu" if _has_gpu() else "cpu")
    run(args.file, args.arguments, cpu=device == "cpu")
    return 0


def _has_gpu() -> bool:
    try:
        driver()
    except (CudaError, ImportError):
        return False
    return True
