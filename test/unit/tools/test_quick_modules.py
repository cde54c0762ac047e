"""Modules that are met at their first use."""

# pyright: reportPrivateImportUsage=false, reportUnknownMemberType=false

import inspect
import os
import py_compile
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module, invalidate_caches
from pathlib import Path
from types import ModuleType

import pytest

from cute_dialect.tools.quick_modules import found_at_once, import_numpy, met_later, modules_met_later

PROGRAM = """
import sys
from cute_dialect.tools.quick_modules import modules_met_later

with modules_met_later():
    import xdsl.parser
    from xdsl.utils import bitwise_casts

    early = [m for m in ("ctypes", "xdsl.utils.dialect_loader", "importlib.resources", "tempfile") if m in sys.modules]
    bits = bitwise_casts.convert_f32_to_u32(1.0)
    late = "ctypes" in sys.modules
    finders = [type(f).__name__ for f in sys.meta_path]
    from xdsl.utils.dialect_loader import IRDLDialectFinder
print(early, bits, late, finders, IRDLDialectFinder.__module__)
"""


def test_of_xdsl() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    early, _, rest = done.stdout.partition("]")
    assert early == "["
    assert rest.startswith(" 1065353216 True ") and "NoFiles" not in rest and "IRDLDialectFinder'" not in rest
    assert rest.rstrip().endswith("xdsl.utils.dialect_loader")


def test_what_is_imported_stays() -> None:
    import ctypes

    import xdsl.dialects
    from xdsl.utils import bitwise_casts

    finders = list(sys.meta_path)
    with modules_met_later():
        assert sys.modules["ctypes"] is ctypes and bitwise_casts.ctypes is ctypes
        assert sys.modules["xdsl.dialects"] is xdsl.dialects
    assert sys.meta_path == finders


NUMPY = """
import sys
from cute_dialect.tools.quick_modules import import_numpy

import_numpy()
early = [m for m in ("numpy._core._add_newdocs", "numpy._typing") if m in sys.modules]
import numpy as np
import numpy.typing
from numpy._typing import ArrayLike, NDArray

values = np.linalg.eigvalsh(np.array([[2.0, 0.0], [0.0, 3.0]]))
print(early, values.tolist(), NDArray.__module__, np.random.default_rng(1).integers(0, 9, 3).shape)
"""


def test_numpy_without_help_and_types() -> None:
    done = subprocess.run([sys.executable, "-c", NUMPY], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("[] [2.0, 3.0] ") and done.stdout.endswith(" (3,)\n")
    before = set(sys.modules)
    import_numpy()  # is imported by now
    assert set(sys.modules) == before


def test_stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "asked.py").write_text("answer = 42\nother = 1\n")
    (tmp_path / "asking.py").write_text("import asked\nfrom asked import other\ndef ask(): return asked.answer\n")
    met_later("asked", "asking", other=7)
    import asking  # pyright: ignore

    assert "asked" not in sys.modules and asking.other == 7
    assert asking.ask() == 42 and sys.modules["asked"].answer == 42
    with pytest.raises(AttributeError):
        asking.asked.nothing  # noqa: B018
    monkeypatch.delitem(sys.modules, "asked")
    monkeypatch.delitem(sys.modules, "asking")
    (tmp_path / "asking.py").write_text("import asked\nraise RuntimeError\n")
    with pytest.raises(RuntimeError):
        met_later("asked", "asking")
    assert "asked" not in sys.modules


@pytest.fixture
def imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], ModuleType]]:
    """Imports a module of the package ``held`` in ``tmp_path`` anew."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "held" / "inner").mkdir(parents=True)
    (tmp_path / "held" / "__init__.py").touch()
    (tmp_path / "held" / "inner" / "__init__.py").write_text("value = 'inner'\n")
    source = tmp_path / "held" / "one.py"
    source.write_text("value = 'old'\n")
    py_compile.compile(str(source), doraise=True)

    def give(name: str) -> ModuleType:
        for known in [m for m in sys.modules if m.startswith("held.")]:
            del sys.modules[known]
        invalidate_caches()
        return import_module(f"held.{name}")

    yield give
    for known in [m for m in sys.modules if m == "held" or m.startswith("held.")]:
        del sys.modules[known]


def found_here(module: ModuleType) -> bool:
    return type(module.__spec__.loader).__module__.endswith("quick_modules")  # pyright: ignore


def test_as_python_finds_it(imported: Callable[[str], ModuleType]) -> None:
    expected = imported("one")
    with found_at_once("held"):
        module = imported("one")
        assert found_here(module) and not found_here(expected)
        assert not found_here(imported("inner"))
        with pytest.raises(ModuleNotFoundError):
            imported("two")
    for name in ("value", "__name__", "__file__", "__cached__", "__package__"):
        assert getattr(module, name) == getattr(expected, name)
    assert module.__spec__ is not None and expected.__spec__ is not None
    for name in ("name", "origin", "cached", "has_location", "parent", "submodule_search_locations"):
        assert getattr(module.__spec__, name) == getattr(expected.__spec__, name)
    assert inspect.getsource(module) == "value = 'old'\n"
    loader = module.__spec__.loader
    assert loader is not None and loader.get_code("held.one").co_filename == module.__file__  # pyright: ignore
    assert not found_here(imported("one"))


def test_only_of_these_packages(imported: Callable[[str], ModuleType]) -> None:
    with found_at_once("hel", "other"):
        assert not found_here(imported("one"))


def test_not_what_is_older_than_its_source(imported: Callable[[str], ModuleType], tmp_path: Path) -> None:
    source = tmp_path / "held" / "one.py"
    compiled = Path(imported("one").__cached__)
    with found_at_once("held"):
        source.write_text("value = 'longer'\n")
        os.utime(source, (1, 1))
        module = imported("one")
        assert module.value == "longer" and not found_here(module)
        py_compile.compile(str(source), doraise=True)
        assert found_here(imported("one"))
        data = compiled.read_bytes()
        for other in (b"\0" + data[1:], data[:4] + b"\1" + data[5:], data[:8] + b"\x09" + data[9:], data[:10], b""):
            compiled.write_bytes(other)
            sys.dont_write_bytecode, before = True, sys.dont_write_bytecode
            try:
                module = imported("one")
            finally:
                sys.dont_write_bytecode = before
            assert module.value == "longer" and not found_here(module)
        compiled.unlink()
        source.unlink()
        with pytest.raises(ModuleNotFoundError):
            imported("one")


def test_not_where_compiled_files_are_elsewhere(
    imported: Callable[[str], ModuleType], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path / "away"))
    with found_at_once("held"):
        assert not found_here(imported("one"))
