"""Unknown keyword arguments raise the same class with the same form of message in all functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cute_dialect import op

A, B, L = np.ones((8, 16), "f2"), np.ones((16, 8), "f2"), np.ones((2, 8, 8), "f2")
IMAGE, TAPS = np.ones((1, 8, 8, 8), "f2"), np.ones((8, 3, 3, 8), "f2")
CALLS: dict[str, tuple[Any, ...]] = {
    "mm": (A, B), "bmm": (L, L), "addmm": (A @ B, A, B), "baddbmm": (L, L, L), "int_mm": (A, B), "linear": (A, A),
    "matmul": (A, B), "mm_array": ([A], [B]), "scaled_mm": (A, B, A, B), "grouped_mm": (A, L),
    "scaled_grouped_mm": (A, L, A, L), "softmax": (A,), "log_softmax": (A,), "rms_norm": (A,), "layer_norm": (A,),
    "transpose": (A,), "sum": (A,), "mean": (A,), "max": (A,), "logsumexp": (A,), "cross_entropy": (A, A),
    "attention": (L, L, L), "conv2d": (IMAGE, TAPS), "conv2d_input": ((1, 8, 8, 8), TAPS, IMAGE),
    "conv2d_weight": (IMAGE, (8, 3, 3, 8), IMAGE), "conv1d": (L, L), "conv1d_input": ((2, 8, 8), L, L),
    "conv1d_weight": (L, (2, 8, 8), L), "conv3d": (IMAGE, TAPS), "conv3d_input": ((1, 8), TAPS, IMAGE),
    "conv3d_weight": (IMAGE, (8, 3), IMAGE), "elementwise": (np.exp, A), "add": (A, A), "mul": (A, A),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("device", ["cpu", None])
def test_an_argument_that_no_function_has(name: str, device: str | None) -> None:
    more = {} if device is None else {"device": device}
    with pytest.raises(op.ArgumentError) as e:
        getattr(op, name)(*CALLS[name], devise="cpu", **more)
    assert isinstance(e.value, op.OpError) and isinstance(e.value, TypeError)
    assert str(e.value).startswith(f"{name}() has no argument 'devise'; did you mean 'device'? Arguments: "), e.value


def test_what_else_a_message_has() -> None:
    with pytest.raises(op.ArgumentError) as e:
        op.mm(A, B, bais=1)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    options = "blocks, checks, max_steps, progress, report, reports, schedule, seed"
    assert str(e.value) == (
        "mm() has no argument 'bais'; did you mean 'bias'? Arguments: a, b, out, alpha, beta, c, bias, activation, "
        'hook, epilogue, args, dtype, math, accumulator, kernel, split_k, device, stream; with device="cpu" also '
        + options
    )
    with pytest.raises(op.ArgumentError, match=r"linear\(\) has no argument 'zzzz'; Arguments: x, weight, bias"):
        op.linear(A, A, zzzz=1)
    with pytest.raises(op.ArgumentError, match=r"attention\(\) has no argument 'softcap'; .*causal, scale, window"):
        op.attention(L, L, L, softcap=30.0)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
