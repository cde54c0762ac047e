"""The source code found for a function is the code that Python runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cute_dialect.lang.rewrite.source import compiled_in, node_of


def test_a_method_of_an_imported_module_is_called(tmp_path: Path) -> None:
    """CPython compiles ``module.name()`` differently depending on whether the module is imported at the top level."""
    text = (
        "try:\n    import math as m\nexcept ImportError:\n    m = None\n\n\ndef f(x):\n    return m.floor(m.sqrt(x))\n"
    )
    path = tmp_path / "imports.py"
    path.write_text(text)
    found: dict[str, Any] = {}
    exec(compile(text, str(path), "exec"), found)
    assert node_of(found["f"].__code__, found).name == "f"


IMPORTS = [
    "from os import (  # for paths\n    path as p,\n    sep,\n)\n", "import os.path, \\\n    os.path as p\n",
    "if True:\n    from os import path as p\n", 'TEXT = """\nimport x as p\n"""\np = __import__("os").path\n',
    "def g():\n    import os as p\n    return p\n\n\np = g().path\n", "import os\n\np = os.path\n",
]  # fmt: skip


@pytest.mark.parametrize("imports", IMPORTS)
def test_imports_are_found_in_every_form(imports: str, tmp_path: Path) -> None:
    text = imports + "\n\ndef f(x):\n    return p.join(p.dirname(x), x)\n"
    path = tmp_path / "imports.py"
    path.write_text(text)
    found: dict[str, Any] = {}
    exec(compile(text, str(path), "exec"), found)
    assert found["f"]("a/b") == "a/a/b"
    assert node_of(found["f"].__code__, found).name == "f"


def test_local_names_may_shadow_imports(tmp_path: Path) -> None:
    text = "import os as p\n\n\ndef f(x):\n    p = x\n    return p.strip()\n"
    path = tmp_path / "imports.py"
    path.write_text(text)
    found: dict[str, Any] = {}
    exec(compile(text, str(path), "exec"), found)
    assert node_of(found["f"].__code__, found).name == "f"


class Made:
    def other(self) -> Made:
        return Made()


def test_a_method_names_its_class() -> None:
    code = Made.other.__code__
    assert node_of(code, Made.other.__globals__).name == "other"
    assert compiled_in(node_of(code, {}), code, ()).co_names == code.co_names
