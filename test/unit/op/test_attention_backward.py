"""``op.attention_backward`` on the interpreter, and its place among the gradients of torch calls."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from attention_gradients import Call, exact, inputs  # noqa: E402

from cute_dialect import op  # noqa: E402
from cute_dialect.kernels.attention.backward_config import BackwardConfig  # noqa: E402
from cute_dialect.op.operators import attention as operators  # noqa: E402
from cute_dialect.op.operators.attention_matmuls import Mask, Saved  # noqa: E402

CASES = [
    Call(1, 2, 1, 20, 40, 64, True, None, None, "bhsd", True),
    Call(2, 1, 1, 70, 40, 40, "bottom_right", None, -0.1, "bshd", False),
    Call(1, 2, 2, 33, 150, 128, False, (20, 5), None, "bshd", True),
]


@pytest.mark.slow
@pytest.mark.parametrize("call", CASES)
def test_gradients(call: Call) -> None:
    given = [x.detach() for x in inputs(call, torch.float16, "cpu")[0]]
    options: dict[str, Any] = {**call.options(), "device": "cpu"}
    out, lse = op.attention(*given, lse=True, **options)
    torch.manual_seed(1)
    grad, grad_lse = torch.randn_like(out), torch.randn_like(lse) if call.of_lse else None
    found = op.attention_backward(grad, *given, out, lse, grad_lse, **options)
    for x, y in zip(found, exact(call, given, grad, grad_lse), strict=True):
        assert float((x.double() - y).norm()) < 2e-3 * float(y.norm())


def test_calls_with_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls that the kernels support use them; torch has faster ones for full and square causal masks."""
    launched: list[str] = []
    monkeypatch.setattr(operators, "_by_kernels", lambda *_: launched.append("kernels"))
    monkeypatch.setattr(operators, "_flash", lambda *_: launched.append("flash") or (None,) * 3)
    monkeypatch.setattr(operators, "_has_flash", lambda _: True)
    monkeypatch.setattr(operators, "_turned_back", lambda x, _: x)
    q, k = torch.zeros(1, 2, 8, 64), torch.zeros(1, 2, 16, 64)
    saved, lse = Saved(q, q, q, None, None, q, q[..., 0]), q[..., 0]
    operators.gradients(saved, q, None, Mask("top_left", -1, -1, None, "bhsd", None))
    operators.gradients(saved, q, None, Mask("", 5, -1, None, "bhsd", None))
    operators.gradients(saved._replace(k=k, v=k), q, None, Mask("bottom_right", -1, -1, None, "bhsd", None))
    operators.gradients(saved, q, lse, Mask("top_left", -1, -1, None, "bhsd", None))
    assert launched == ["flash", "kernels", "flash", "kernels", "flash", "kernels"]


Q, LSE = torch.zeros(1, 2, 8, 64).half(), torch.zeros(1, 2, 8)


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"out": Q[:, :1]}, op.ShapeError, r"out has shape \(1, 1, 8, 64\); it must have \(1, 2, 8, 64\)"),
        ({"dout": Q[..., :32]}, op.ShapeError, r"dout has shape \(1, 2, 8, 32\); it must have"),
        ({"lse": LSE[..., 1:]}, op.ShapeError, r"lse has shape \(1, 2, 7\); it must have \(1, 2, 8\)"),
        ({"dlse": LSE.half()}, op.DtypeError, "dlse has dtype f16; pass an array of f32"),
        ({"scale": 0.0}, op.UnsupportedError, "attention_backward: scale 0 is not supported; use torch's autograd"),
        ({"kernel": 3}, op.UnsupportedError, "kernel is 3; pass a kernel name or a BackwardConfig"),
        ({"kernel": BackwardConfig(tile_m=128, q_stages=1)}, op.UnsupportedError, "must be at least 2"),
        ({"attn_mask": Q}, op.ArgumentError, "attention_backward has no argument|has no argument 'attn_mask'"),
    ],
)
def test_errors(given: dict[str, Any], error: type[op.OpError], words: str) -> None:
    arguments: dict[str, Any] = {"dout": Q, "q": Q, "k": Q, "v": Q, "out": Q, "lse": LSE, **given}
    with pytest.raises(error, match=words):
        op.attention_backward(**arguments, device="cpu")
