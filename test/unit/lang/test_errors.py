"""The hierarchy of errors: CuteError is the root, and the classes are reachable from ``cute`` or ``op``."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import cute_dialect.lang as cute
from cute_dialect import op

PAGE = Path(__file__).resolve().parents[3] / "docs/language.md"


def error_classes(package: object) -> dict[str, type[Exception]]:
    found = {name: getattr(package, name) for name in dir(package)}
    return {n: c for n, c in found.items() if inspect.isclass(c) and issubclass(c, Exception)}


@pytest.mark.parametrize("package", [cute, op], ids=["cute", "op"])
def test_every_public_error_is_a_cute_error(package: object) -> None:
    classes = error_classes(package)
    assert classes and all(issubclass(c, cute.CuteError) for c in classes.values())
    assert all(c.__name__ == name for name, c in classes.items())


def test_errors_of_op() -> None:
    assert op.OpError is cute.OpError
    for name, found in error_classes(op).items():
        assert issubclass(found, op.OpError)
        own = getattr(cute, name, None)
        if own is not None and issubclass(own, cute.LaunchError):
            assert issubclass(found, own), name
    assert issubclass(op.ArgumentError, TypeError)


def test_the_page_names_every_class() -> None:
    section = PAGE.read_text().partition("\n## Errors\n")[2].partition("\n| codes |")[0]
    named = set(re.findall(r"`(\w+)`", section))
    assert set(error_classes(cute)) - {"CuteError", "NotAnArray"} <= named
    classes = [n for n in named if n.endswith("Error") and n not in ("TypeError", "ValueError", "UnboundLocalError")]
    assert all(hasattr(cute, n) for n in classes)


def test_lowering_errors_are_compile_errors() -> None:
    from cute_dialect.pipelines import compile

    with pytest.raises(cute.CompileError, match="nothing") as caught:
        compile("module { cute.nothing }")
    assert isinstance(caught.value, cute.LoweringError) and caught.value.diagnostics
