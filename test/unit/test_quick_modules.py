"""Modules that are met at their first use."""

# pyright: reportPrivateImportUsage=false, reportUnknownMemberType=false

import subprocess
import sys
from pathlib import Path

import pytest

from cute_dialect.tools.quick_modules import met_later, modules_met_later

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
