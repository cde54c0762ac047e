"""Products that were computed before are launched after one look-up; no other call is."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from cute_dialect.op import known as module  # noqa: E402
from cute_dialect.op.known import Extras, KnownCalls, Prepared  # noqa: E402

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


BIAS, C = torch.zeros(24, dtype=torch.float16), torch.zeros(8, 24, dtype=torch.float16)
FUSED = Extras(2.0, 0.5, C, BIAS, "gelu")


def fused_calls(launched: list[tuple[int, ...]], extras: Extras = FUSED, numbers: int = 2) -> KnownCalls:
    """Remembers one product with what becomes of its sums."""
    calls = KnownCalls()
    prepared = Prepared(lambda *x: launched.append(x), 15, lambda stream: (stream + 1, stream + 2), numbers)
    calls.remember(A, B, None, None, OUT, prepared, extras)
    return calls


def test_a_call_with_extras(launched: list[tuple[int, ...]]) -> None:
    calls = fused_calls(launched)
    c, bias = C.clone(), BIAS.clone()
    d = calls.again_with(A, B, None, None, FUSED._replace(c=c, bias=bias))
    addresses = [t.data_ptr() for t in (A, B, d)]
    assert launched == [(7, *addresses, 8, 9, c.data_ptr(), bias.data_ptr(), 0, 0)]
    assert calls.again(A, B, None, None) is None  # the plain product is another
    # beta is 0: nothing is read of c.
    other = Extras(c=C, beta=0.0, activation="relu")
    d = fused_calls(launched, other, 0).again_with(A, B, None, None, other)
    assert launched[-1] == (7, A.data_ptr(), B.data_ptr(), d.data_ptr(), 8, 9)


def hook(x: Any, row: Any, column: Any) -> Any:
    return x


@pytest.mark.parametrize(
    "other",
    [
        {"alpha": 2}, {"alpha": -2.0}, {"beta": 0.25}, {"activation": ""}, {"hook": hook}, {"c": None}, {"bias": None},
        {"c": C[0]}, {"c": C.float()}, {"c": C.t().contiguous().t()}, {"c": 3.0}, {"alpha": "2"},
        {"bias": BIAS.float()}, {"bias": BIAS.view(1, 24)}, {"bias": BIAS.as_subclass(Kind)},
        {"bias": torch.zeros(25, dtype=torch.float16)[1:]},
    ],
    ids=lambda x: next(iter(x)),
)  # fmt: skip
def test_other_extras(launched: list[tuple[int, ...]], other: dict[str, Any]) -> None:
    assert fused_calls(launched).again_with(A, B, None, None, FUSED._replace(**other)) is None
    assert launched == []


def test_zeros_with_a_sign(launched: list[tuple[int, ...]]) -> None:
    zero = Extras(alpha=0.0, c=C)
    calls = fused_calls(launched, zero)
    assert calls.again_with(A, B, None, None, zero) is not None
    assert calls.again_with(A, B, None, None, zero._replace(alpha=-0.0)) is None


def test_results_in_the_memory_of_operands(launched: list[tuple[int, ...]]) -> None:
    """Also where they do not begin together; the result may be c, if it lies as c does."""
    memory = torch.zeros(4 * 64 * 64, dtype=torch.float16)

    def at(place: int, rows: int = 64, columns: int = 64) -> torch.Tensor:
        return memory[place:].as_strided((rows, columns), (64, 1))

    calls = KnownCalls()
    a, b, out = at(0), at(64 * 64), at(2 * 64 * 64)
    calls.remember(a, b, out, None, out, Prepared(lambda *x: launched.append(x), 15))
    assert calls.again(a, b, out, None) is out
    for place in (0, 64 * 64, 8, 64 * 64 - 64, 2 * 64 * 64 - 64):
        assert calls.again(a, b, at(place), None) is None
    assert calls.again(a, b, at(3 * 64 * 64), None) is not None and len(launched) == 2
    for c in (out, at(3 * 64 * 64)):
        extras = Extras(c=c)
        calls.remember(a, b, out, None, out, Prepared(lambda *x: launched.append(x), 15), extras)
        assert calls.again_with(a, b, out, None, Extras(c=out)) is out
        assert calls.again_with(a, b, out, None, Extras(c=at(2 * 64 * 64 + 64))) is None
    row = out[:1].expand(64, 64)  # begins where out does, and is another matrix
    calls.remember(a, b, out, None, out, Prepared(lambda *x: launched.append(x), 15), Extras(c=row))
    assert calls.again_with(a, b, out, None, Extras(c=row)) is None
    bias = memory[2 * 64 * 64 :][:64]
    calls.remember(a, b, out, None, out, Prepared(lambda *x: launched.append(x), 15), Extras(bias=bias))
    assert calls.again_with(a, b, out, None, Extras(bias=bias)) is None


@pytest.mark.parametrize("guards", [True, False])
def test_gradients_are_not_forgotten(
    launched: list[tuple[int, ...]], monkeypatch: pytest.MonkeyPatch, guards: bool
) -> None:
    """Tensors that get gradients are no call like one of tensors that do not, but where gradients are off."""
    if not guards:
        monkeypatch.setattr(module, "guard_of", lambda tensors: None)
    calls = calls_of(launched)
    a, b = A.clone().requires_grad_(), B.clone().requires_grad_()
    for x, y in ((a, B), (A, b), (a, b)):
        assert calls.again(A, B, None, None) is not None
        count = len(launched)
        assert calls.again(x, y, None, None) is None and len(launched) == count
        with torch.no_grad():
            assert calls.again(x, y, None, None) is not None
        assert calls.again(x, y, None, None) is None and len(launched) == count + 1
    with torch.no_grad():
        calls.remember(a, b, None, None, OUT, Prepared(lambda *x: launched.append(x), 15))
        assert calls.again(a, b, None, None) is not None
    assert calls.again(a, b, None, None) is None
    calls = fused_calls(launched)
    c = C.clone().requires_grad_()
    assert calls.again_with(A, B, None, None, FUSED._replace(c=C.clone())) is not None
    assert calls.again_with(A, B, None, None, FUSED._replace(c=c)) is None
    assert calls.again_with(a, B, None, None, FUSED) is None
    with torch.no_grad():
        assert calls.again_with(a, B, None, None, FUSED._replace(c=c)) is not None
