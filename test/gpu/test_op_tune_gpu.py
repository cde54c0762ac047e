"""``op.tune`` on a GPU: kernels are compiled and measured there, and later calls use the fastest."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from cute_dialect import op  # noqa: E402
from cute_dialect.op.select.kernel_choice import tuned  # noqa: E402


def test_a_call_is_tuned(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("xdsl", reason="kernels are compiled")
    monkeypatch.setenv("CUTE_CONFIG_DIR", str(tmp_path))
    tuned.cache_clear()
    a = torch.randint(-2, 3, (328, 1000), device="cuda").half()
    b = torch.randint(-2, 3, (1000, 840), device="cuda").half()
    bias = torch.randint(-2, 3, (840,), device="cuda").half()
    found = op.tune(op.mm, a, b, bias=bias, budget=60.0)
    assert len(found.measured) > 5 and not [why for _, why in found.left_out if why != "no time"]
    assert 0 < found.microseconds <= found.before_microseconds * 1.05
    assert (found.saved is None) == (found.kernel == found.before)
    exact = (a.double() @ b.double() + bias.double()).half()
    assert torch.equal(op.mm(a, b, bias=bias), exact)
    tuned.cache_clear()
