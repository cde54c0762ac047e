"""Products that were computed before are launched after one look-up; no other call is."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from cute_dialect.op import known as module  # noqa: E402
from cute_dialect.op.known import KnownCalls, Prepared  # noqa: E402

A, B = torch.zeros(8, 16, dtype=torch.float16), torch.zeros(16, 24, dtype=torch.float16)
OUT = torch.zeros(8, 24, dtype=torch.float16)


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """What was launched, on stream 7."""
    monkeypatch.setattr(module, "current_stream_of_torch", lambda: lambda device: 7)
    return []


def calls_of(launched: list[tuple[int, ...]], out: Any = None, dtype: Any = None, **more: Any) -> KnownCalls:
    """Remembers one product, of A and B."""
    calls = KnownCalls()
    d = torch.zeros(8, 24, dtype=torch.float16) if out is None else out
    calls.remember(A, B, out, dtype, d, Prepared(lambda *x: launched.append(x), 15, **more))
    return calls


def test_a_call_like_an_earlier_one(launched: list[tuple[int, ...]]) -> None:
    calls = calls_of(launched)
    a, b = A.clone(), B.clone()
    d = calls.again(a, b, None, None)
    assert d.shape == (8, 24) and d.dtype == torch.float16 and d.is_contiguous()
    assert launched == [(7, a.data_ptr(), b.data_ptr(), d.data_ptr())]
    calls = calls_of(launched, OUT, more=lambda stream: (stream + 1, 0))
    assert calls.again(a, b, OUT, None) is OUT
    assert launched[1] == (7, a.data_ptr(), b.data_ptr(), OUT.data_ptr(), 8, 0)
    calls.clear()
    assert calls.again(a, b, OUT, None) is None and len(launched) == 2


class Kind(torch.Tensor):
    """A tensor of another class."""


@pytest.mark.parametrize(
    ("a", "b", "out", "dtype"),
    [
        (A[:4], B, None, None),
        (A, B[:, :16], None, None),
        (torch.zeros(16, 8, dtype=torch.float16).t(), B, None, None),
        (A.bfloat16(), B.bfloat16(), None, None),
        (A, B.bfloat16(), None, None),
        (A, B.requires_grad_(False).to_sparse(), None, None),
        (A, B, OUT, None),
        (A, B, None, torch.float32),
        (torch.zeros(8 * 16 + 1, dtype=torch.float16)[1:].view(8, 16), B, None, None),  # an odd address
        (A.as_subclass(Kind), B, None, None),
        (A.numpy(), B, None, None),
        ([[1.0]], B, None, None),
        (A.to_sparse(), B, None, None),
    ],
)
def test_other_calls(launched: list[tuple[int, ...]], a: Any, b: Any, out: Any, dtype: Any) -> None:
    assert calls_of(launched).again(a, b, out, dtype) is None
    assert launched == []


def test_results_that_are_given(launched: list[tuple[int, ...]]) -> None:
    """Of another layout or type, and in the memory of an operand."""
    square = torch.zeros(16, 16, dtype=torch.float16)
    calls = KnownCalls()
    calls.remember(square, square, OUT[:, :16], None, OUT[:, :16], Prepared(lambda *x: launched.append(x), 15))
    for out in (OUT, OUT[:, 8:], torch.zeros(8, 16, dtype=torch.float16), OUT[:, :16].float(), None):
        if out is None or out.stride() != (24, 1) or out.shape != (8, 16) or out.dtype != torch.float16:
            assert calls.again(square, square, out, None) is None
    assert launched == []
    calls.remember(square, square, square, None, square, Prepared(lambda *x: launched.append(x), 15))
    assert calls.again(square, square, square, None) is None and launched == []


def test_what_is_not_remembered(launched: list[tuple[int, ...]]) -> None:
    odd = torch.zeros(8 * 16 + 1, dtype=torch.float16)[1:].view(8, 16)
    for a in (odd, A.as_subclass(Kind)):
        calls = KnownCalls()
        calls.remember(a, B, None, None, OUT, Prepared(lambda *x: launched.append(x), 15))
        assert len(calls) == 0
