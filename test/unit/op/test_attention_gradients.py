"""Gradients of attention, through the result and through ``lse``, compared with float64."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from attention_gradients import Call, drawn, exact, inputs  # noqa: E402

from cute_dialect import op  # noqa: E402
from cute_dialect.op.operators import attention as gradients  # noqa: E402
from cute_dialect.op.operators import attention_matmuls  # noqa: E402
from cute_dialect.op.operators.attention_matmuls import Mask, Saved, attention_of  # noqa: E402


def mask_of(call: Call) -> Mask:
    left, right = [-1 if x is None else x for x in call.window or (None, None)]
    causal = {False: "", True: "top_left"}.get(call.causal, str(call.causal))  # type: ignore[call-overload]
    return Mask(causal, left, right, call.scale, call.layout, None)


def like_results(call: Call, given: list[Any], seed: int) -> tuple[Any, Any]:
    """Return random gradients of the result and of the logsumexp."""
    torch.manual_seed(seed)
    q = given[0]
    rows = q.shape[:-1] if not call.lengths and call.layout == "bhsd" else [*q.shape[:-3], q.shape[-2], q.shape[-3]]
    return torch.randn_like(q), torch.randn(rows, dtype=torch.float64) if call.of_lse else None


@pytest.mark.slow
@pytest.mark.parametrize("most", [attention_matmuls.MOST, 200], ids=["at once", "in pieces"])
def test_random_calls(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """200 random calls with windows on both sides, shared key heads, packed sequences and rows without keys."""
    monkeypatch.setattr(attention_matmuls, "MOST", most)
    lonely = 0
    for seed in range(200):
        call = drawn(seed, 24, (8, 16))
        given, begins = inputs(call, torch.float32, "cpu", seed)
        grad, grad_lse = like_results(call, given, seed)
        saved = Saved(*[x.detach() for x in given], begins.get("cu_seqlens_q"), begins.get("cu_seqlens_k"),
                      grad, torch.empty(0))  # fmt: skip
        found: list[Any] = list(gradients.gradients(saved, grad, grad_lse, mask_of(call))[:3])
        if call.equal:
            found = [found[0] + found[1] + found[2]]
        want = exact(call, given, grad, grad_lse)
        for x, y in zip(found, want, strict=True):
            torch.testing.assert_close(x.double(), y, rtol=1e-4, atol=1e-4, msg=str(call))
        lonely += not call.lengths and bool((want[0] == 0).flatten(0, -2).all(-1).any())
    assert lonely > 20


@pytest.mark.slow
def test_second_derivatives() -> None:
    """Gradients with ``create_graph=True`` are differentiable."""
    for seed in range(20):
        call = drawn(seed, 6, (8,))
        given, begins = inputs(call, torch.float64, "cpu", seed)
        if call.equal or (call.lengths and max(map(min, call.lengths)) == 0):
            continue
        grad, grad_lse = like_results(call, given, seed)

        def first(*tensors: Any, call: Call = call, begins: Any = begins, g: Any = grad, gl: Any = grad_lse) -> Any:
            saved = Saved(*tensors, begins.get("cu_seqlens_q"), begins.get("cu_seqlens_k"), g, g)
            out, lse = attention_of(saved, mask_of(call))
            lse = torch.where(lse > -1e30, lse, 0)
            return (out * g).sum() + (0 if gl is None else (lse * gl).sum())

        found = torch.autograd.grad(first(*given), given, create_graph=True)
        for x, y in zip(found, exact(call, given, grad, grad_lse)):
            torch.testing.assert_close(x, y, rtol=1e-5, atol=1e-5)


CASES = [
    # The gradient through lse alone is 100 times that through the result.
    Call(1, 2, 2, 16, 16, 64, False, None, None, "bhsd", True),
    # Queries 0 … 7 see no key.
    Call(1, 2, 1, 20, 12, 64, "bottom_right", None, None, "bhsd", False),
    Call(2, 1, 1, 20, 12, 64, False, (2, 1), None, "bshd", True),
    Call(1, 2, 1, 0, 0, 64, True, None, None, "bhsd", True, ((9, 5), (0, 4), (3, 3))),
    Call(1, 1, 1, 17, 17, 64, True, None, None, "bhsd", False, (), True),
]


@pytest.mark.slow
@pytest.mark.parametrize("call", CASES)
def test_calls_on_the_interpreter(call: Call) -> None:
    given, begins = inputs(call, torch.float16, "cpu")
    out, lse = op.attention(*given, lse=True, device="cpu", **begins, **call.options())
    torch.manual_seed(1)
    grad, grad_lse = torch.randn_like(out), torch.randn_like(lse) if call.of_lse else None
    results = [(out, grad)] if grad_lse is None else [(out, grad), (lse, grad_lse)]
    leaves = list({id(x): x for x in given}.values())
    found = torch.autograd.grad([x for x, _ in results], leaves, [g for _, g in results])
    for x, y in zip(found, exact(call, given, grad, grad_lse), strict=True):
        assert float((x.double() - y).norm()) < 2e-3 * float(y.norm()) + 1e-6
    if call.of_lse and not call.equal:  # only through the logsumexp
        out, lse = op.attention(*given, lse=True, device="cpu", **begins, **call.options())
        (dq,) = torch.autograd.grad(lse, leaves[:1], grad_lse)
        (want, *_) = exact(call, given, torch.zeros_like(grad), grad_lse)
        assert float((dq.double() - want).norm()) < 2e-3 * float(want.norm())


@pytest.mark.slow
def test_second_derivatives_of_a_call() -> None:
    q, k, v = (torch.randn(1, 1, 5, 8).half().requires_grad_() for _ in range(3))
    out = op.attention(q, k, v, causal=True, device="cpu")
    (dq,) = torch.autograd.grad(out.float().square().sum(), q, create_graph=True)
    (found,) = torch.autograd.grad(dq.float().square().sum(), q)
    a = q.detach().double().requires_grad_()
    b, c = (x.detach().double() for x in (k, v))
    mask = torch.ones(5, 5, dtype=torch.bool).tril()
    of = ((a @ b.mT * 8**-0.5).masked_fill(~mask, -1e300).softmax(-1) @ c).square().sum()
    (da,) = torch.autograd.grad(of, a, create_graph=True)
    (want,) = torch.autograd.grad(da.square().sum(), a)
    assert float((found.double() - want).norm()) < 2e-2 * float(want.norm())


@pytest.mark.slow
@pytest.mark.parametrize("most", [attention_matmuls.MOST, 100], ids=["at once", "in pieces"])
@pytest.mark.parametrize(
    ("softcap", "slopes", "kind", "expanded", "sinks"),
    [
        (2.0, None, None, (), False), (0.0, (4,), None, (), True), (0.0, (2, 4), torch.float32, (1, 4, 9, 1), False),
        (1.5, None, torch.bool, (9, 12), True), (0.0, None, torch.float16, (2, 1, 1, 12), True),
    ],
)  # fmt: skip
def test_functions_of_scores(
    most: int, softcap: float, slopes: Any, kind: Any, expanded: Any, sinks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gradients of q, k, v, the sinks and an added mask, also if it is expanded, and of rows without a visible key."""
    monkeypatch.setattr(attention_matmuls, "MOST", most)
    torch.manual_seed(3)
    q, k, v = (torch.randn(2, h, s, d).half() for h, s, d in ((4, 9, 16), (2, 12, 16), (2, 12, 24)))
    more: dict[str, Any] = {}
    if slopes is not None:
        more["alibi_slopes"] = torch.rand(slopes)
    if kind is not None:
        more["mask"] = torch.rand(expanded) > 0.4 if kind == torch.bool else torch.randn(expanded).to(kind)
        if kind == torch.bool:
            more["mask"][0] = False
    if sinks:
        more["sinks"] = torch.randn(4).half()
    learned = {n: x for n, x in more.items() if x.is_floating_point() and n != "alibi_slopes"}
    leaves = [x.requires_grad_() for x in (q, k, v, *learned.values())]
    out, lse = op.attention(q, k, v, softcap=softcap, lse=True, device="cpu", **more)
    grad, of_lse = torch.randn_like(out), torch.randn_like(lse)
    of_lse = torch.where(lse.isinf(), 0, of_lse)
    found = torch.autograd.grad([out, lse], leaves, [grad, of_lse])
    a, b, c, *others = [x.detach().double().requires_grad_() for x in leaves]
    exact_more = dict(zip(learned, others))
    scores = a @ b.repeat_interleave(2, 1).mT / 4
    scores = softcap * torch.tanh(scores / softcap) if softcap else scores
    if slopes is not None:
        away = (torch.arange(9)[:, None] + 3 - torch.arange(12)).abs()
        scores = scores - more["alibi_slopes"].double().reshape(-1, 4, 1, 1) * away
    if kind == torch.bool:
        scores = scores.masked_fill(~more["mask"], -1e300)
    elif kind is not None:
        scores = scores + exact_more["mask"]
    last = (
        exact_more["sinks"].reshape(1, 4, 1, 1).expand(2, 4, 9, 1) if sinks else scores.new_full((2, 4, 9, 1), -1e300)
    )
    logs = torch.cat([scores, last], -1).logsumexp(-1)
    wanted = (scores - logs[..., None]).exp() @ c.repeat_interleave(2, 1)
    want = torch.autograd.grad([wanted, logs], [a, b, c, *others], [grad.double(), of_lse.double()])
    for x, y in zip(found, want, strict=True):
        assert x.shape == y.shape and float((x.double() - y).norm()) < 3e-3 * float(y.norm())


@pytest.mark.slow
def test_compiled_functions_of_scores() -> None:
    """The compiled graph has no breaks and the gradients of the eager call."""
    torch.manual_seed(3)
    q, k = (torch.randn(1, h, 9, 16).half().requires_grad_() for h in (4, 2))
    sinks, mask = torch.randn(4).requires_grad_(), torch.randn(9, 9).requires_grad_()

    def call(*given: Any) -> Any:
        a, b, s, m = given
        return op.attention(a, b, b, causal=True, softcap=2.0, sinks=s, mask=m, device="cpu").float().square().sum()

    given = (q, k, sinks, mask)
    compiled = torch.compile(call, fullgraph=True, backend="aot_eager")
    for x, y in zip(
        torch.autograd.grad(compiled(*given), given), torch.autograd.grad(call(*given), given), strict=True
    ):
        torch.testing.assert_close(x, y)


def test_slopes_have_no_gradient() -> None:
    q, slopes = torch.zeros(1, 2, 4, 16).half(), torch.zeros(2, requires_grad=True)
    with pytest.raises(op.UnsupportedError, match=r"alibi_slopes has no gradient; pass alibi_slopes.detach\(\)"):
        op.attention(q, q, q, alibi_slopes=slopes, device="cpu")
