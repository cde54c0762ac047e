"""The call cache replays matching calls at other addresses, and no other calls."""

# pyright: basic

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any
from unittest import mock

import pytest

torch = pytest.importorskip("torch")

from launched_here import Seen, here  # noqa: E402
from repeated_calls import CALLS, E4M3, E5M2, F32, exponents, near, normal, of_scales, product, small  # noqa: E402

from cute_dialect import op  # noqa: E402
from cute_dialect.op.epilogue import FakeTensor, trace  # noqa: E402
from cute_dialect.op.epilogue.combination import LinearCombination  # noqa: E402
from cute_dialect.op.execute import autocast, launcher, recording  # noqa: E402
from cute_dialect.op.execute import call_cache as module  # noqa: E402
from cute_dialect.op.execute.autocast import cast_arrays  # noqa: E402
from cute_dialect.op.execute.call_cache import KnownCalls  # noqa: E402
from cute_dialect.op.execute.launcher import Launch, launched  # noqa: E402

A, B = torch.zeros(8, 16, dtype=torch.float16), torch.zeros(16, 24, dtype=torch.float16)
OUT = torch.zeros(8, 24, dtype=torch.float16)


class Noted:
    """A kernel that computes nothing and records the addresses of its replayed launches."""

    alignment = 16

    def __init__(self, more: Any = None) -> None:
        self.launched: list[tuple[int, ...]] = []
        self.more = more

    def __call__(self, *given: Any, **_: Any) -> None:
        return None

    def repeated(self, *given: Any) -> Launch:
        return Launch(lambda *x: self.launched.append(x), given, 15, self.more, 3)


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Noted:
    """A recording kernel on stream 7."""
    monkeypatch.setattr(recording, "current_stream_of_torch", lambda: lambda device: 7)
    return Noted()


def multiplied(kernel: Noted, a: Any, b: Any, out: Any = None, *numbers: float) -> Any:
    d = torch.empty(a.shape[0], b.shape[1], dtype=a.dtype) if out is None else out
    launched(kernel, a, b, d, *numbers)
    return d


def calls_of(kernel: Noted, *more: Any) -> KnownCalls:
    """Return a call cache with one GEMM of A and B."""
    calls = KnownCalls()
    calls.recorded("how", (A, B, *more), lambda: multiplied(kernel, A, B, *more))
    assert len(calls) == 1
    return calls


def test_cached_call_is_replayed(kernel: Noted) -> None:
    calls = calls_of(kernel)
    a, b = A.clone(), B.clone()
    d = calls.again("how", a, b)
    assert d.shape == (8, 24) and d.dtype == torch.float16 and d.is_contiguous()
    assert kernel.launched.pop() == (7, a.data_ptr(), b.data_ptr(), d.data_ptr())
    kernel.more = lambda stream: (stream + 1, 0)
    calls = calls_of(kernel, OUT)
    assert calls.again("how", a, b, OUT) is OUT
    assert kernel.launched.pop() == (7, a.data_ptr(), b.data_ptr(), OUT.data_ptr(), 8, 0)
    calls.clear()
    assert calls.again("how", a, b, OUT) is None and kernel.launched == []


class Kind(torch.Tensor):
    """A tensor subclass."""


ODD = torch.zeros(8 * 16 + 1, dtype=torch.float16)[1:].view(8, 16)
OTHERS: list[tuple[Any, ...]] = [
    (A[:4], B), (A, B[:, :16]), (torch.zeros(16, 8, dtype=torch.float16).t(), B), (A.bfloat16(), B.bfloat16()),
    (A, B.bfloat16()), (A, B.to_sparse()), (A, B, OUT), (ODD, B), (A.as_subclass(Kind), B), (A.numpy(), B),
    ([[1.0]], B), (A.to_sparse(), B), (A,), (None, B),
]  # fmt: skip


@pytest.mark.parametrize("tensors", OTHERS)
def test_other_calls_are_not_replayed(kernel: Noted, tensors: tuple[Any, ...]) -> None:
    assert calls_of(kernel).again("how", *tensors) is None and kernel.launched == []


@pytest.mark.parametrize("how", ["other", None, ["how"], ("how",)])
def test_different_options_are_not_replayed(kernel: Noted, how: Any) -> None:
    calls = calls_of(kernel)
    assert calls.again(how, A, B) is None and kernel.launched == []
    calls.recorded(how, (A, B), lambda: multiplied(kernel, A, B))
    assert len(calls) == (1 if isinstance(how, list) else 2)  # A list is mutable, so it cannot be a cache key.


def test_temporary_tensors_share_an_allocation(kernel: Noted) -> None:
    def compute() -> Any:
        logs, parts, d = torch.empty(5), torch.empty(3, 8, 24), torch.empty(8, 24)
        launched(kernel, A, B, parts, logs)
        launched(kernel, logs, parts, d, parts[1])
        return d, A

    calls, a, b = KnownCalls(), A.clone(), B.clone()
    calls.recorded("how", (A, B), compute)
    d, same = calls.again("how", a, b)
    first, second = kernel.launched
    parts, logs = first[3:]
    assert same is a and first[:3] == (7, a.data_ptr(), b.data_ptr()) and parts == logs + 512
    assert second == (7, logs, parts, d.data_ptr(), parts + 8 * 24 * 4)


def test_misaligned_addresses_are_not_replayed(kernel: Noted) -> None:
    """A call recorded with 2-byte alignment is replayed for that alignment and for aligned addresses."""
    calls = calls_of(kernel)
    calls.recorded("how", (ODD, B), lambda: multiplied(kernel, ODD, B))
    assert len(calls) == 1
    for a in (ODD, A):
        assert calls.again("how", a, B) is not None and kernel.launched[-1][1] == a.data_ptr()
    assert calls.again("how", torch.zeros(8 * 16 + 2, dtype=torch.float16)[2:].view(8, 16), B) is None


def test_results_in_the_memory_of_operands(kernel: Noted) -> None:
    """A call is not replayed for a result that overlaps an operand, unless the recorded call had the same overlap."""
    memory = torch.zeros(5 * 64 * 64, dtype=torch.float16)

    def at(place: int) -> torch.Tensor:
        return memory[place:].as_strided((64, 64), (64, 1))

    a, b, out = at(0), at(64 * 64), at(2 * 64 * 64)
    calls = KnownCalls()

    def recorded(*tensors: Any) -> None:
        calls.recorded("how", tensors, lambda: (launched(kernel, *tensors), tensors[2])[1])

    recorded(a, b, out)
    assert calls.again("how", a, b, out) is out
    for place in (0, 64 * 64, 8, 64 * 64 - 64, 2 * 64 * 64 - 64):
        assert calls.again("how", a, b, at(place)) is None
    assert calls.again("how", a, b, at(3 * 64 * 64)) is not None
    assert calls.again("how", a, a, out) is out  # Two inputs may share memory.
    # The same holds for the addend, which may be the result itself.
    recorded(a, b, out, at(3 * 64 * 64))
    assert calls.again("how", a, b, out, out) is None
    recorded(a, b, out, out)
    for c in (out, at(3 * 64 * 64), at(4 * 64 * 64)):
        assert calls.again("how", a, b, out, c) is out and kernel.launched[-1][4] == c.data_ptr()
    other = at(4 * 64 * 64)
    assert calls.again("how", a, b, other, other) is other
    assert calls.again("how", a, b, out, at(2 * 64 * 64 + 64)) is None


@pytest.mark.parametrize("guards", [True, False])
def test_gradients_are_not_forgotten(kernel: Noted, monkeypatch: pytest.MonkeyPatch, guards: bool) -> None:
    """A call cached without gradients is not replayed for tensors that need them."""
    if not guards:
        monkeypatch.setattr(module, "guard_of", lambda tensors: None)
    calls = calls_of(kernel)
    a, b = A.clone().requires_grad_(), B.clone().requires_grad_()
    for x, y in ((a, B), (A, b), (a, b)):
        assert calls.again("how", A, B) is not None
        count = len(kernel.launched)
        assert calls.again("how", x, y) is None and len(kernel.launched) == count
        with torch.no_grad():
            assert calls.again("how", x, y) is not None
        assert calls.again("how", x, y) is None and len(kernel.launched) == count + 1
    calls = KnownCalls()
    calls.recorded("how", (a, b), lambda: multiplied(kernel, A, B))
    assert len(calls) == 0
    with torch.no_grad():
        calls.recorded("how", (a, b), lambda: multiplied(kernel, a, b))
        assert calls.again("how", a, b) is not None
    assert calls.again("how", a, b) is None


UNKNOWN: dict[str, Callable[[Noted], Any]] = {
    "a value is computed": lambda kernel: multiplied(kernel, A.cumsum(0), B),
    "a value is changed": lambda kernel: multiplied(kernel, A, B).add_(1),
    "a value is read": lambda kernel: (float(A[0, 0]), multiplied(kernel, A, B))[1],
    "nothing is launched": lambda kernel: torch.empty(3),
    "memory of no argument": lambda kernel: multiplied(kernel, A, OUT),
    "a result of no launch": lambda kernel: (multiplied(kernel, A, B), OUT)[1],
    "a part of a result": lambda kernel: multiplied(kernel, A, B)[1:],
    "an argument seen otherwise": lambda kernel: (multiplied(kernel, A, B), A.t())[1],
    "a list of results": lambda kernel: [multiplied(kernel, A, B)],
}


@pytest.mark.parametrize("what", UNKNOWN)
def test_calls_that_cannot_be_cached(kernel: Noted, what: str) -> None:
    calls = KnownCalls()
    calls.recorded("how", (A, B), lambda: UNKNOWN[what](kernel))
    assert len(calls) == 0
    for tensors in ((A.as_subclass(Kind), B), (A, B.to_sparse()), (A.numpy(), B)):
        calls.recorded("how", tensors, lambda: multiplied(kernel, A, B))
    assert len(calls) == 0


def test_a_tensor_that_is_passed_twice(kernel: Noted) -> None:
    """A call that passes one tensor twice has its own cache entry and guard."""
    calls = KnownCalls()
    a, b = torch.zeros(16, 16).half(), torch.zeros(16, 16).half()
    calls.recorded("how", (a, b), lambda: multiplied(kernel, a, b))
    calls.recorded("how", (a, a), lambda: multiplied(kernel, a, a))
    assert len(calls) == 2
    for x, y in ((a, a), (a, b), (b, b), (b, a)) * 2:
        d = calls.again("how", x, y)
        assert kernel.launched.pop() == (7, x.data_ptr(), y.data_ptr(), d.data_ptr())
    with mock.patch.object(module, "key_of", lambda *_: pytest.fail("a key is computed")):
        for x, y in ((a, a), (a, b), (b, b), (b, a)):
            assert calls.again("how", x, y) is not None


def test_torch_operators_between_launches(kernel: Noted, monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch operators with one or several results, views of their results, and returned arguments are replayed."""
    monkeypatch.setattr(recording, "PURE", {*recording.PURE, "aten::max"})

    def computed(a: Any, b: Any) -> Any:
        most, _ = (a.t() + 1).max(0)
        launched(kernel, most, b[2:])
        where = torch.where(b > most.sum(), b, 0)
        return a, None, most[2:], where.t(), b.expand(2, *b.shape)

    calls = KnownCalls()
    a, b = torch.rand(8, 16), torch.rand(16, 24) + 16
    calls.recorded("how", (a, b), lambda: computed(a, b), views=True)
    for _ in range(2):
        a, b = torch.rand(8, 16), torch.rand(16, 24) + 16
        same, nothing, most, where, wide = calls.again("how", a, b)
        exact = (a + 1).amax(1)
        assert same is a and nothing is None and torch.equal(most, exact[2:])
        assert torch.equal(where.t(), torch.where(b > exact.sum(), b, 0))
        assert wide.shape == (2, 16, 24) and wide.stride() == (0, 24, 1) and wide.data_ptr() == b.data_ptr()
        stream, *addresses = kernel.launched.pop()
        assert (stream, *addresses) == (7, most.data_ptr() - 8, b.data_ptr() + 2 * 24 * 4)


@pytest.mark.parametrize("fill", ["zero_", "fill_", "assign"])
def test_steps_between_launches(kernel: Noted, fill: str) -> None:
    """Copies, zero fills and allocations are replayed, and results keep their structure."""

    def compute(a: Any, b: Any) -> Any:
        wide, unused = torch.empty(8, 32, dtype=torch.float16), torch.empty(1000)
        if fill == "assign":
            wide[...] = 0
        else:
            getattr(wide, fill)(*[0] * (fill == "fill_"))
        wide[:, 16:].copy_(a)
        part, turned = wide[:, 16:].float(), b.t().contiguous()
        found = torch.empty(24, 8)
        launched(kernel, wide, part, turned.t(), b[1:], 0.5)
        launched(kernel, found, part)
        del unused
        return {"x": found.t(), "y": (wide, part), "z": turned}

    calls = KnownCalls()
    calls.recorded((), (A, B), lambda: compute(A, B))
    a, b = torch.randn(8, 16).half(), torch.randn(16, 24).half()
    done = calls.again((), a, b)
    wide, part = done["y"]
    assert list(done) == ["x", "y", "z"] and done["x"].shape == (8, 24) and done["x"].stride() == (1, 8)
    assert torch.equal(wide, torch.cat([torch.zeros(8, 16), a.float()], 1).half()) and torch.equal(part, a.float())
    assert torch.equal(done["z"], b.t()) and done["z"].is_contiguous()
    first = (7, wide.data_ptr(), part.data_ptr(), done["z"].data_ptr(), b.data_ptr() + 48, 0)
    assert kernel.launched == [first, (7, done["x"].data_ptr(), part.data_ptr())]


def test_calls_within_calls(kernel: Noted) -> None:
    """While an outer call is recorded, an inner call is computed anew, so its launches are recorded too."""
    inner, outer = calls_of(kernel), KnownCalls()

    def compute() -> Any:
        assert inner.again("how", A, B) is None
        return inner.recorded("how", (A, B), lambda: multiplied(kernel, A, B))

    outer.recorded("how", (A, B), compute)
    assert inner.again("how", A, B) is not None and outer.again("how", A, B) is not None
    assert len(kernel.launched) == 2

    def fails() -> Any:
        raise ValueError

    with pytest.raises(ValueError):
        KnownCalls().recorded("how", (A, B), fails)
    assert launcher.CURRENT.recording is None


BIAS, C = torch.zeros(24, dtype=torch.float16), torch.zeros(8, 24, dtype=torch.float16)
FUSED = LinearCombination(2.0, 0.5, C, BIAS, "gelu")


@pytest.mark.parametrize(
    "other",
    [
        {"alpha": 2}, {"alpha": -2.0}, {"beta": 0.25}, {"activation": ""}, {"c": None}, {"bias": None},
        {"math": "promote"}, {"accumulator": "f16"}, {"hook": len}, {"beta": True},
    ],
    ids=lambda x: next(iter(x)),
)  # fmt: skip
def test_keys_of_extras(other: dict[str, Any]) -> None:
    assert FUSED._replace(**other).key != FUSED.key == FUSED._replace(c=C + 1, bias=BIAS + 1).key
    zero = LinearCombination(alpha=0.0, c=C, beta=0.0)
    assert zero.key != zero._replace(alpha=-0.0).key and zero.key != zero._replace(beta=-0.0).key


# ------------------------------------------------------------------------------------------------- on the interpreter


@pytest.fixture
def seen() -> Iterator[Seen]:
    with here(Seen()) as found:
        yield found


@pytest.fixture
def idle() -> Iterator[Seen]:
    """Replace kernels by ones that compute nothing."""
    with here(Seen(works=False)) as found:
        yield found


def test_calls_in_autocast_are_others(kernel: Noted) -> None:
    """A call is replayed in ``torch.autocast`` only if it was recorded there."""
    calls = calls_of(kernel)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert calls.again("how", A, B) is None and kernel.launched == []
        calls.recorded("how", (A, B), lambda: multiplied(kernel, A, B))
        assert calls.again("how", A, B) is not None and len(calls) == 2
        with torch.autocast("cpu", enabled=False):
            assert calls.again("how", A, B) is not None
    assert calls.again("how", A, B) is not None and len(kernel.launched) == 3
    calls = KnownCalls()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        calls.recorded("how", (A, B), lambda: multiplied(kernel, A, B))
    assert calls.again("how", A, B) is None


@pytest.mark.slow
@pytest.mark.end_to_end
@pytest.mark.sample("False")
@pytest.mark.parametrize("gradients", [False, True])
def test_autocast_replays_the_converted_call(seen: Seen, gradients: bool) -> None:
    torch.manual_seed(1)
    a, b = (x.requires_grad_(gradients) for x in (normal(16, 24, dtype=F32), normal(24, 32, dtype=F32)))

    def step() -> list[Any]:
        d = op.mm(a, b)
        return [d, *(torch.autograd.grad(d, (a, b), torch.ones_like(d)) if gradients else ())]

    exact = [step() for _ in range(3)][-1]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        first = [step() for _ in range(2)][-1]
        launches = seen.first
        found = step()
    assert seen.first == launches
    assert found[0].dtype == torch.bfloat16 and [x.dtype for x in found[1:]] == [F32] * len(found[1:])
    assert all(torch.equal(x, y) for x, y in zip(found, first))
    near(tuple(x.detach() for x in found), tuple(x.detach() for x in exact), 2e-2)
    assert all(torch.equal(x, y) for x, y in zip(step(), exact))


AUTOCAST: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "mm": (op.mm, ((16, 24), (24, 32))),
    "linear": (lambda x, w, b: op.linear(x, w, b), ((16, 24), (32, 24), (32,))),
    "addmm": (lambda c, a, b: op.addmm(c, a, b, beta=0.5), ((16, 32), (16, 24), (24, 32))),
    "attention": (lambda q, k, v: op.attention(q, k, v, causal=True), ((1, 2, 20, 32),) * 3),
    "norm": (lambda x, w: op.rms_norm(x, w), ((16, 24), (24,))),
}


@pytest.mark.slow
@pytest.mark.end_to_end
@pytest.mark.sample("mm")
@pytest.mark.parametrize("name", AUTOCAST)
def test_autocast_replays_conversions(seen: Seen, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """A repeated call converts nothing in Python, and its results equal those of computed calls."""
    torch.manual_seed(3)
    call, shapes = AUTOCAST[name]
    converted: list[str] = []

    def counted(call: str, *given: Any) -> Any:
        converted.append(call)
        return cast_arrays(call, *given)

    monkeypatch.setattr(autocast, "_KNOWN", KnownCalls())
    monkeypatch.setattr(autocast, "cast_arrays", counted)

    def step(tensors: Sequence[Any], dtype: Any = torch.bfloat16) -> Any:
        with torch.autocast("cpu", dtype=dtype):
            return call(*tensors)

    given = [[torch.randn(s) for s in shapes] for _ in range(2)]
    step(given[0])
    before, launches = len(converted), seen.first
    found = step(given[1])
    assert before > 0 and len(converted) == before and seen.first == launches and seen.again > 0
    step(given[1], torch.float16)  # the type of autocast is part of the key
    assert len(converted) > before
    step([x.requires_grad_() for x in given[0]])
    before = len(converted)
    assert step(given[0]).requires_grad and len(converted) > before
    with torch.no_grad():
        step(given[0])
    monkeypatch.setattr(autocast, "_KNOWN", KnownCalls())
    want = step(given[1])
    assert found.dtype == want.dtype and torch.equal(found, want)


def second_derivatives(call: Callable[..., Any], dtype: Any, autocasts: bool) -> tuple[Any, ...]:
    """Return second derivatives of a GEMM, with gradients outside of autocast as in training."""
    torch.manual_seed(4)
    a, b = (torch.randn(s).to(dtype).requires_grad_() for s in ((8, 16), (16, 8)))
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocasts):
        d = call(a, b)
    grads = torch.autograd.grad(d, (a, b), torch.ones_like(d), create_graph=True)
    return torch.autograd.grad(sum((g.double() ** 3).sum() for g in grads), (a, b))


@pytest.mark.slow
@pytest.mark.parametrize("autocasts", [False, True])
@pytest.mark.parametrize("epilogue", [False, True])
def test_second_derivatives_of_replayed_calls(seen: Seen, autocasts: bool, epilogue: bool) -> None:
    def ours(a: Any, b: Any) -> Any:
        return op.mm(a, b, epilogue=lambda accum: accum * accum) if epilogue else op.mm(a, b)

    exact = second_derivatives(
        lambda a, b: torch.mm(a, b).square() if epilogue else torch.mm(a, b), torch.double, False
    )
    for _ in range(3):
        for x, want in zip(second_derivatives(ours, F32, autocasts), exact, strict=True):
            assert x.dtype == F32 and float((x - want).norm() / want.norm()) < (2e-2 if autocasts else 1e-5)


@pytest.mark.sample("mm-True", "linear-False")
@pytest.mark.parametrize("autocasts", [False, True])
@pytest.mark.parametrize("name", ["mm", "linear"])
def test_second_derivatives_of_activations_are_refused(idle: Seen, autocasts: bool, name: str) -> None:
    """A replayed call has no graph of the operand of its activation."""

    def ours(a: Any, b: Any) -> Any:
        return op.mm(a, b, activation="gelu") if name == "mm" else op.linear(a, b.t(), activation="gelu")

    for _ in range(3):
        with pytest.raises(op.UnsupportedError, match="an activation has no second derivative; apply"):
            second_derivatives(ours, F32, autocasts)


@pytest.mark.end_to_end
@pytest.mark.sample(every=17)
@pytest.mark.parametrize("name", CALLS)
def test_each_specialization_is_replayed(seen: Seen, name: str) -> None:
    """The second call of each specialization replays its launches, with right results at other addresses."""
    torch.manual_seed(len(name))
    call, make, wanted, tolerance = CALLS[name]
    kept = []
    for number in range(3):
        arguments = make()
        near(call(*arguments), wanted(*arguments), tolerance)
        if number == 0:
            launches = seen.first
        assert (seen.first, seen.again) == (launches, number * launches)
        kept.append(arguments)


@pytest.mark.slow
def test_padded_products(seen: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    """One launch copies the unaligned rows of both operands, and torch transposes them."""
    from cute_dialect.op.select import gemm_dispatch

    monkeypatch.setattr(gemm_dispatch, "_warps_sooner", lambda *_: False)
    gemm_dispatch.forget_plans()
    calls = [
        (op.mm, lambda: (small(37, 43), small(43, 35)), product, 0, 2),
        (lambda a, b: op.mm(a, b.t()), lambda: (small(37, 43), small(35, 43)), lambda a, b: product(a, b.t()), 0, 2),
        (op.mm, lambda: (normal(37, 43, dtype=E4M3), normal(43, 35, dtype=E4M3)), product, 1e-2, 2),
        (
            lambda a, b: op.mm(a, b, math="tf32", c=b[:1], beta=0.5),
            lambda: (normal(37, 43, dtype=F32), normal(43, 36, dtype=F32)),
            lambda a, b: product(a, b) + 0.5 * b[:1].double(), 3e-3, 2,
        ),
    ]  # fmt: skip
    try:
        for call, make, wanted, tolerance, launches in calls:
            seen.first = seen.again = 0
            for number in range(2):
                a, b = make()
                near(call(a, b), wanted(a, b), tolerance)
                assert (seen.first, seen.again) == (launches, launches * number)
    finally:
        gemm_dispatch.forget_plans()


@pytest.mark.slow
def test_different_scaled_gemms_are_not_replayed(idle: Seen) -> None:
    """Other scale shapes, scale types, biases or result types miss the cache. Scale values are read at each call."""
    a, b, x, y = of_scales("row")()
    call = lambda *more, **how: op.scaled_mm(*(more or (a, b, x, y)), **how)  # noqa: E731
    call()
    assert (idle.first, idle.again) == (1, 0)
    call()
    assert (idle.first, idle.again) == (1, 1)
    out = torch.empty(33, 48, dtype=torch.bfloat16)
    others: list[Any] = [
        lambda: call(fast=True), lambda: call(dtype="f16"), lambda: call(recipe="row"), lambda: call(out=out),
        lambda: call(bias=normal(48)), lambda: call(scale_out=2.0), lambda: call(scale_out=torch.ones(1)),
        lambda: call(a, b, x[:1], y), lambda: call(a, b, exponents(33, 1), y),
        lambda: call(a, b, torch.ones(33, 2)[:, :1], y), lambda: call(a.view(torch.uint8).view(E5M2), b, x, y),
    ]  # fmt: skip
    for number, other in enumerate(others):
        other()
        assert (idle.first, idle.again) == (2 + number, 1)
    call(out=out)
    assert idle.again == 2
    a = torch.zeros(33 * 208, dtype=torch.uint8)
    inside = a[: 33 * 96].view(torch.bfloat16).view(33, 48)
    with pytest.raises(op.LayoutError, match="out shares memory with a"):
        call(a.view(E4M3).view(33, 208), b, x, y, out=inside)
    assert idle.again == 2


@pytest.mark.slow
def test_different_epilogues_are_not_replayed(idle: Seen) -> None:
    fake = FakeTensor
    traced = trace(lambda accum, alpha, x: (accum * alpha, accum + x), {"accum": fake("f32", (40, 56)), "alpha": 0.5,
               "x": fake("f32", (56,))})  # fmt: skip
    a, b, x = normal(40, 72), normal(72, 56), normal(56, dtype=F32)

    def call(epilogue: Any = traced, alpha: Any = 0.5, x: Any = x, **how: Any) -> Any:
        return op.mm(a, b, epilogue=epilogue, args={"alpha": alpha, "x": x}, **how)

    call(), call()
    assert (idle.first, idle.again) == (1, 1)
    for number, how in enumerate(
        (
            {"alpha": 0.25}, {"alpha": 1}, {"x": x.half()}, {"x": x.view(1, 56)}, {"dtype": "f32"},
            {"math": "promote"}, {"out": torch.empty(40, 56, dtype=torch.float16)},
            {"epilogue": traced.function}, {"epilogue": traced.function},
        )
    ):  # fmt: skip
        call(**how)
        assert (idle.first, idle.again) == (2 + number, 1)
    random = trace(
        lambda accum, seed: op.epilogue.dropout(accum, 0.5, seed), {"accum": fake("f32", (40, 56)), "seed": 3}
    )
    count = idle.first
    for _ in range(2):  # Each seed would need its own cache entry, so these calls are not cached.
        op.mm(a, b, epilogue=random, args={"seed": 3})
    assert (idle.first, idle.again) == (count + 2, 1)
