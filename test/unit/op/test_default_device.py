"""``CUTE_DEVICE=cpu`` runs the operations on the interpreter, like ``device="cpu"``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from refused_calls import OnGpu

from cute_dialect import op

A = np.ones((16, 16), np.float16)
ROWS = np.ones((4, 64), np.float32)

CALLS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], float]] = {
    "mm": (op.mm, (A, A), 16.0),
    "bmm": (op.bmm, (A[None], A[None]), 16.0),
    "linear": (op.linear, (A, A), 16.0),
    "softmax": (op.softmax, (ROWS,), 1 / 64),
    "sum": (op.sum, (ROWS,), 64.0),
    "add": (op.add, (ROWS, ROWS), 2.0),
    "relu": (op.relu, (ROWS,), 1.0),
    "mm_array": (op.mm_array, ([A, A], [A, A]), 16.0),
    "grouped_mm": (op.grouped_mm, ([A, A], [A, A]), 16.0),
}


@pytest.fixture(autouse=True)
def on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUTE_DEVICE", "cpu")


@pytest.mark.parametrize("name", CALLS)
def test_numpy(name: str) -> None:
    call, arguments, value = CALLS[name]
    result = call(*arguments)
    for found in result if isinstance(result, list | tuple) else [result]:
        assert np.allclose(found, value)


def test_a_plan() -> None:
    d = np.zeros_like(A)
    op.Gemm(element="f16", layout="row").run(A, A, A, d, beta=0.0)
    assert (d == 16).all()


def test_torch() -> None:
    torch = pytest.importorskip("torch")
    a = torch.ones(16, 16, dtype=torch.float16, requires_grad=True)
    result = op.mm(a, torch.ones(16, 16, dtype=torch.float16))
    assert bool((result == 16).all())
    result.sum().backward()
    assert bool((a.grad == 16).all())


def test_arrays_on_a_gpu_are_refused() -> None:
    with pytest.raises(
        op.DeviceError, match=r'a is on cuda:0, but .* selects the interpreter; .* or pass device="gpu"'
    ):
        op.mm(OnGpu(16, 16), OnGpu(16, 16))


def test_the_setting_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    from cute_dialect.runtime.settings import SettingError

    monkeypatch.setenv("CUTE_DEVICE", "tpu")
    with pytest.raises(SettingError, match="CUTE_DEVICE"):
        op.mm(A, A)
