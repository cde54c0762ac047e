"""Methods that a later module defines are defined by the module that the class names."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

import cute_dialect.lang.values.tensors  # noqa: F401 (declares the methods of all classes)
from cute_dialect.lang.values.dynamic import LATER_METHODS


@pytest.mark.parametrize("cls", LATER_METHODS, ids=lambda cls: cls.__name__)
def test_modules_define_the_methods_that_the_class_lists(cls: type) -> None:
    for module, names in LATER_METHODS[cls].items():
        import_module(f"cute_dialect.lang.values.{module}")
        for name in names:
            assert "_loading" not in getattr(cls, name).__qualname__, f"{cls.__name__}.{name} of {module}"


@pytest.mark.parametrize("text", ["dtypes.Float16.inf + 1", "2 - dtypes.Int8.exactly(1)", "dtypes.Int32(3)"])
def test_the_first_call_loads_the_module(text: str) -> None:
    code = (
        "import sys; from cute_dialect.lang.values import dtypes; before = {*sys.modules}; "
        f"{text}; print(*sys.modules, *before)"
    )
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert loaded.count("cute_dialect.lang.values.numeric") == 1
