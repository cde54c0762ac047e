"""Public names of the language, and modules that importing it must not load."""

from __future__ import annotations

import subprocess
import sys

import cute_dialect.lang as cute


def test_every_name_exists() -> None:
    for name in dir(cute):
        assert getattr(cute, name) is not None


def test_import_is_light() -> None:
    code = "import cute_dialect.lang as cute, sys; cute.Int32; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert not {"numpy", "xdsl", "torch", "mlir", "ml_dtypes"} & set(loaded)
