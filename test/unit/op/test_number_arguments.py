"""Numbers passed as settings, such as eps: Booleans, NaN and numbers outside the limits are refused."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan
from typing import Any

import numpy as np
import pytest
import torch

from cute_dialect import op

X, W = torch.ones(2, 16).half(), torch.ones(16).half()
TARGETS = torch.zeros(2, dtype=torch.int64)
CPU: dict[str, Any] = {"device": "cpu"}
Call = Callable[[Any], object]

EPS: dict[str, Call] = {
    "rms_norm": lambda n: op.rms_norm(X, W, n, **CPU),
    "rms_norm with a residual": lambda n: op.rms_norm(X, W, eps=n, residual=X, **CPU),
    "rms_norm with 8-bit results": lambda n: op.rms_norm(X, W, eps=n, quantize="f8E4M3FN", **CPU),
    "layer_norm": lambda n: op.layer_norm(X, W, W, n, **CPU),
    "layer_norm in torch's order": lambda n: op.layer_norm(X, (16,), W, W, n, **CPU),
    "layer_norm of two dimensions": lambda n: op.layer_norm(X, (2, 16), eps=n, **CPU),
}
NUMBERS: dict[str, Call] = EPS | {
    "cross_entropy label_smoothing": lambda n: op.cross_entropy(X, TARGETS, label_smoothing=n, **CPU),
    "linear_cross_entropy label_smoothing": lambda n: op.linear_cross_entropy(X, X, TARGETS, label_smoothing=n, **CPU),
    "leaky_relu negative_slope": lambda n: op.leaky_relu(X, n, **CPU),
    "elu alpha": lambda n: op.elu(X, n, **CPU),
    "mm alpha": lambda n: op.mm(X, X.T, alpha=n, **CPU),
    "mm beta": lambda n: op.mm(X, X.T, c=X[:, :2], beta=n, **CPU),
    "conv2d alpha": lambda n: op.conv2d(X.view(1, 8, 2, 2), X.view(4, 8, 1, 1), alpha=n, **CPU),
}
WHOLE: dict[str, Call] = {
    "cross_entropy": lambda n: op.cross_entropy(X, TARGETS, ignore_index=n, **CPU),
    "cross_entropy of smoothed labels": lambda n: op.cross_entropy(
        X, TARGETS, ignore_index=n, label_smoothing=0.5, **CPU
    ),
    "linear_cross_entropy": lambda n: op.linear_cross_entropy(X, X, TARGETS, ignore_index=n, **CPU),
}


@pytest.mark.parametrize("call", NUMBERS)
@pytest.mark.parametrize("number", [True, False, np.True_, "x", [1.0], 1 + 2j, np.ones(3)], ids=repr)
def test_other_values_than_numbers_are_refused(call: str, number: object) -> None:
    with pytest.raises(op.OpError, match=rf"^{call.split()[0]}: \w+ (is|has) .*pass a number"):
        NUMBERS[call](number)


@pytest.mark.parametrize("call", EPS)
@pytest.mark.parametrize("number", [nan, inf, -1e-5, np.float32(nan)], ids=str)
def test_eps_outside_its_limits_is_refused(call: str, number: float) -> None:
    with pytest.raises(op.ArgumentError, match=rf"^{call.split()[0]}: eps is .*; pass a finite number of at least 0$"):
        EPS[call](number)


@pytest.mark.parametrize("call", WHOLE)
@pytest.mark.parametrize("number", [True, None, 1.0, nan, "x", np.ones(2)], ids=str)
def test_ignore_index_is_an_integer(call: str, number: object) -> None:
    with pytest.raises(op.DtypeError, match=rf"^{call.split()[0]}: ignore_index is .*; pass an integer$"):
        WHOLE[call](number)


@pytest.mark.parametrize("call", WHOLE)
def test_ignore_index_has_32_bits(call: str) -> None:
    with pytest.raises(op.ArgumentError, match="ignore_index is 2147483648; pass an integer of 32 bits"):
        WHOLE[call](2**31)


@pytest.mark.parametrize("name", ["temperature", "top_k", "top_p", "min_p"])
def test_settings_of_sampling_are_no_booleans(name: str) -> None:
    with pytest.raises(op.ArgumentError, match=f"^sample: {name} is True; pass "):
        op.sample(X, **{name: True}, **CPU)


@pytest.mark.slow
def test_numbers_of_libraries_are_accepted() -> None:
    x = torch.randn(3, 16)
    for eps in (0, 0.0, np.float32(0.5), np.int64(1), torch.tensor(0.25)):
        wanted = torch.nn.functional.rms_norm(x, (16,), None, float(eps))
        torch.testing.assert_close(op.rms_norm(x, eps=eps, **CPU), wanted)
    targets = torch.tensor([1, 7, 3])
    wanted = torch.nn.functional.cross_entropy(x, targets, ignore_index=7)
    torch.testing.assert_close(op.cross_entropy(x, targets, ignore_index=np.int64(7), **CPU), wanted)
