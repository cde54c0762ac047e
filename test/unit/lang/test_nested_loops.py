"""Conversion time of nested loops is linear in their depth."""

# pyright: reportPrivateUsage=false

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cute_dialect.lang as cute
from cute_dialect.lang.rewrite import analysis


def test_nested_loops_convert_in_linear_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    depth, walked = 8, 0
    statement = analysis._Analysis.statement

    def counted(self: Any, s: Any, out: frozenset[str]) -> frozenset[str]:
        nonlocal walked
        walked += 1
        return statement(self, s, out)

    monkeypatch.setattr(analysis._Analysis, "statement", counted)
    lines = ["def count(n):", "    total = 0"]
    lines += [f"{'    ' * (i + 1)}for i{i} in range(n):" for i in range(depth)]
    lines += [f"{'    ' * (depth + 1)}total += 1", "    return total", ""]
    path = tmp_path / "nested_loops.py"
    path.write_text("\n".join(lines))
    spec = importlib.util.spec_from_file_location("nested_loops", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    @cute.kernel
    def kernel(out: cute.Tensor, n: cute.Int32):
        out[0] = module.count(n)

    out = np.zeros(1, np.int32)
    kernel(out, 1).launch(grid=1, block=1, device="cpu")
    assert out[0] == 1
    assert 0 < walked < 6 * depth  # Walking each body four times per enclosing loop would take 4**8 walks.
