"""Products with traced epilogues that were computed before are launched after one look-up; no other call is."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from cute_dialect.op.epilogue import FakeTensor, trace  # noqa: E402
from cute_dialect.op.epilogue import known as known_graphs  # noqa: E402
from cute_dialect.op.epilogue.known import KnownGraphs  # noqa: E402
from cute_dialect.op.known import Prepared  # noqa: E402

A, B = torch.zeros(8, 16, dtype=torch.float16), torch.zeros(16, 24, dtype=torch.float16)
D, BIAS = torch.zeros(8, 24, dtype=torch.float16), torch.zeros(24)


def example(accum: Any, alpha: Any, bias: Any) -> Any:
    F = accum * alpha
    D = F + bias
    return {"F": F, "D": D}


ARGS = {"alpha": 0.5, "bias": BIAS}
TRACED = trace(example, {"accum": FakeTensor("f32", (8, 24)), **ARGS})


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    monkeypatch.setattr(known_graphs, "current_stream_of_torch", lambda: lambda device: 7)
    return []


def calls_of(launched: list[tuple[int, ...]], out: Any = None, args: Any = ARGS, results: Any = None) -> KnownGraphs:
    calls = KnownGraphs()
    results = results or {"D": D, "F": D.float()}
    prepared = Prepared(lambda *x: launched.append(x), 15, lambda stream: (stream + 1,))
    calls.remember(A, B, out, None, TRACED, args, results, prepared, ["", "bias", "F"])
    return calls


def test_a_call_like_an_earlier_one(launched: list[tuple[int, ...]]) -> None:
    bias = BIAS.clone()
    found = calls_of(launched).again(A, B, None, None, TRACED, {"alpha": 0.5, "bias": bias})
    assert list(found) == ["F", "D"] and found["D"].dtype == torch.float16 and found["F"].dtype == torch.float32
    addresses = [t.data_ptr() for t in (A, B, found["D"])]
    assert launched == [(7, *addresses, 8, 0, bias.data_ptr(), found["F"].data_ptr())]
    # Memory that is given is checked at each call.
    f = torch.zeros(8, 24)
    for out, args in ((D, ARGS), (None, {**ARGS, "F": f})):
        assert len(calls_of(launched, out, args, {"D": D, "F": f})) == 0
    learning = {**ARGS, "bias": BIAS.clone().requires_grad_()}
    assert len(calls_of(launched, args=learning)) == 0
    calls = calls_of(launched)
    assert calls.again(A, B, None, None, TRACED, learning) is None
    with torch.no_grad():
        assert calls.again(A, B, None, None, TRACED, learning) is not None


@pytest.mark.parametrize(
    "change",
    [
        {"alpha": 0.25}, {"alpha": 1}, {"bias": BIAS.half()}, {"bias": BIAS.view(1, 24)}, {"bias": BIAS[:12]},
        {"bias": torch.zeros(25)[1:]}, {"bias": 1.0}, {"F": torch.zeros(8, 24)}, {"bias": [1.0]},
    ],
    ids=str,
)  # fmt: skip
def test_other_arguments(launched: list[tuple[int, ...]], change: dict[str, Any]) -> None:
    assert calls_of(launched).again(A, B, None, None, TRACED, {**ARGS, **change}) is None
    assert launched == []


def test_other_calls(launched: list[tuple[int, ...]]) -> None:
    same = trace(example, {"accum": FakeTensor("f32", (8, 24)), **ARGS})
    calls = calls_of(launched)
    for a, b, out, dtype, traced in (
        (A[:4], B, None, None, TRACED), (A, B, D, None, TRACED), (A, B, None, torch.float32, TRACED),
        (A, B, None, None, same), (A.numpy(), B, None, None, TRACED), (A, B, None, None, example),
    ):  # fmt: skip
        assert calls.again(a, b, out, dtype, traced, ARGS) is None
    assert launched == [] and len(calls) == 1
    odd = {**ARGS, "bias": torch.zeros(25)[1:]}
    assert len(calls_of(launched, args=odd)) == 0  # no whole 16 bytes
