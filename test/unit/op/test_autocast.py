"""Functions of ``op`` in ``torch.autocast`` on the interpreter, compared with torch's functions."""

# pyright: basic

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from cute_dialect import op

torch = pytest.importorskip("torch")
F = torch.nn.functional

CPU: dict[str, Any] = {"device": "cpu"}
TARGET, OFFS, MASK = torch.arange(24) % 40, torch.tensor([10, 24], dtype=torch.int32), torch.linspace(-1, 1, 400)
MASK = MASK.view(20, 20)
CASES: dict[str, tuple[Callable[..., Any], Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "mm": (op.mm, torch.mm, ((24, 32), (32, 40))),
    "epilogue": (
        lambda a, b, **k: op.mm(a, b, epilogue=lambda accum: accum * 2, **k), lambda a, b: torch.mm(a, b) * 2,
        ((24, 32), (32, 40)),
    ),
    "addmm": (op.addmm, torch.addmm, ((24, 40), (24, 32), (32, 40))),
    "bmm": (op.bmm, torch.bmm, ((2, 12, 32), (2, 32, 40))),
    "matmul": (op.matmul, torch.matmul, ((2, 12, 32), (32, 40))),
    "linear": (op.linear, F.linear, ((2, 12, 32), (40, 32), (40,))),
    "grouped_mm": (
        lambda a, b, **k: op.grouped_mm(a, b, OFFS, **k), lambda a, b: torch.cat([a[:10] @ b[0], a[10:] @ b[1]]),
        ((24, 32), (2, 32, 40)),
    ),
    "lists": (lambda a, b, **k: op.grouped_mm([a, a], [b, b], **k)[1], torch.mm, ((24, 32), (32, 40))),
    "mm_array": (lambda a, b, **k: op.mm_array([a, a], [b, b], **k)[1], torch.mm, ((24, 32), (32, 40))),
    "conv1d": (op.conv1d, F.conv1d, ((2, 16, 9), (16, 16, 3), (16,))),
    "conv2d": (op.conv2d, F.conv2d, ((2, 16, 6, 6), (16, 16, 3, 3), (16,))),
    "scaled_dot_product_attention": (
        lambda q, k, v, **n: op.scaled_dot_product_attention(q, k, v, MASK, **n),
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, MASK), ((1, 2, 20, 32),) * 3,
    ),
    "linear_cross_entropy": (
        lambda x, w, **k: op.linear_cross_entropy(x, w, TARGET, **k),
        lambda x, w: F.cross_entropy(F.linear(x, w), TARGET), ((24, 32), (40, 32)),
    ),
    "cross_entropy": (
        lambda x, **k: op.cross_entropy(x, TARGET, **k), lambda x: F.cross_entropy(x, TARGET), ((24, 40),)
    ),
    "softmax": (op.softmax, lambda x: torch.softmax(x, -1), ((24, 40),)),
    "sum": (op.sum, lambda x: x.sum(-1), ((24, 40),)),
    "exp": (op.exp, torch.exp, ((24, 40),)),
    "layer_norm": (op.layer_norm, lambda x, w, b: F.layer_norm(x, (40,), w, b), ((24, 40), (40,), (40,))),
    "rms_norm": (op.rms_norm, lambda x, w: F.rms_norm(x, (40,), w), ((24, 40), (40,))),
}  # fmt: skip


@pytest.mark.end_to_end
@pytest.mark.sample(every=60)
@pytest.mark.filterwarnings("ignore:Mismatch dtype")
@pytest.mark.parametrize("first", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", CASES)
def test_types_and_values_are_those_of_torch(name: str, first: Any) -> None:
    torch.manual_seed(1)
    ours, torchs, shapes = CASES[name]
    tensors = [torch.randn(s, dtype=first if i == 0 else None).requires_grad_() for i, s in enumerate(shapes)]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found, want = ours(*tensors, **CPU), torchs(*tensors)
    assert found.dtype == want.dtype
    grad = torch.randn_like(want)
    gradients = (torch.autograd.grad(y, tensors, grad) for y in (found, want))
    for x, y, t in zip(*gradients, tensors, strict=True):
        assert x.dtype == t.dtype
        # torch's own convolution of bf16 has errors of up to 0.5 % of the largest gradient on some CPUs.
        torch.testing.assert_close(x, y, rtol=2e-2, atol=max(2e-2, 5e-3 * float(y.abs().max())))
    torch.testing.assert_close(found, want, rtol=2e-2, atol=2e-2)


def biased(q: Any, k: Any, v: Any, bias: Any, **run: Any) -> Any:
    return op.flex_attention(q, k, v, score_mod=lambda s, b, h, i, j: s + bias[h, j], **run)


QKV = ((1, 2, 20, 32),) * 3
CASTS: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...], int]] = {
    "mm": (lambda a, b, c, **k: op.mm(a, b, bias=c, **k), ((24, 32), (32, 40), (40,)), 2),
    "bmm": (op.bmm, ((2, 12, 32), (2, 32, 40)), 2),
    "linear": (lambda x, w, b, **k: op.linear(x, w, b, "gelu", **k), ((24, 32), (40, 32), (40,)), 2),
    "conv2d": (op.conv2d, ((2, 16, 6, 6), (16, 16, 3, 3), (16,)), 2),
    "grouped_mm": (lambda a, b, **k: op.grouped_mm(a, b, OFFS, **k), ((24, 32), (2, 32, 40)), 2),
    "linear_cross_entropy": (lambda x, w, **k: op.linear_cross_entropy(x, w, TARGET, **k), ((24, 32), (40, 32)), 2),
    "attention": (lambda q, k, v, **n: op.attention(q, k, v, causal=True, **n), QKV, 3),
    "mask": (lambda q, k, v, m, **n: op.attention(q, k, v, mask=m, **n), (*QKV, (1, 2, 20, 20)), 4),
    "sinks": (lambda q, k, v, s, **n: op.attention(q, k, v, sinks=s, **n), (*QKV, (2,)), 3),
    "flex_attention": (biased, (*QKV, (2, 20)), 3),
}  # fmt: skip
"""Functions, shapes of their tensors, and the number of tensors that autocast converts."""

MIXED = {
    "f32": (torch.float32,) * 4,
    "mixed": (torch.float32, torch.bfloat16, torch.float16, torch.float32),
    "f16": (torch.float16,) * 3 + (torch.float32,),
}


@pytest.mark.end_to_end
@pytest.mark.sample("mixed-mask", "mixed-mm")
@pytest.mark.parametrize("name", CASTS)
@pytest.mark.parametrize("types", MIXED)
def test_gradients_are_those_of_explicit_conversions(types: str, name: str) -> None:
    """Results and gradients have the same bits, and gradients the types of the arguments."""
    torch.manual_seed(3)
    call, shapes, count = CASTS[name]
    ours = [torch.randn(s).to(t).requires_grad_() for s, t in zip(shapes, MIXED[types])]
    theirs = [t.detach().clone().requires_grad_() for t in ours]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = call(*ours, **CPU)
    want = call(*[t.to(torch.bfloat16) if i < count else t for i, t in enumerate(theirs)], **CPU)
    assert found.dtype == want.dtype and torch.equal(found, want)
    grad = torch.randn(want.shape).to(want.dtype)
    gradients = (torch.autograd.grad(y, x, grad) for y, x in ((found, ours), (want, theirs)))
    for x, y, t in zip(*gradients, ours, strict=True):
        assert x.dtype == t.dtype and torch.equal(x, y)


@pytest.mark.slow
def test_unconverted_arguments() -> None:
    """Types other than f32 and 16-bit floats, and calls with ``out``, are not converted."""
    a, b = torch.randn(8, 16, dtype=torch.float64), torch.randn(16, 8, dtype=torch.float64)
    out = torch.empty(8, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert op.mm(a, b, device="cpu").dtype == torch.float64 == torch.mm(a, b).dtype
        assert op.mm(a.float(), b.float(), out, device="cpu") is out
        with torch.autocast("cpu", enabled=False):
            assert op.mm(a.float(), b.float(), device="cpu").dtype == torch.float32
        assert torch.is_autocast_enabled("cpu")
    assert torch.equal(out, op.mm(a.float(), b.float(), device="cpu"))


@pytest.mark.parametrize(("device", "name"), [
    *[("CUDA", n) for n in ("exp", "layer_norm", "log", "log_softmax", "logsumexp", "nll_loss", "rms_norm", "rsqrt")],
    *[("CUDA", n) for n in ("softmax", "softplus", "sum")], ("CPU", "cross_entropy_loss"),
])  # fmt: skip
def test_functions_in_f32_are_those_of_torch(device: str, name: str) -> None:
    from cute_dialect.op.execute.autocast import _F32

    registered = torch._C._dispatch_get_registrations_for_dispatch_key(f"Autocast{device}")
    names = {x.removeprefix("aten::").partition(".")[0] for x in registered}
    known = _F32[device.lower()]
    assert name in names
    assert {"nll_loss": "cross_entropy", "cross_entropy_loss": "cross_entropy"}.get(name, name) in known
    elements = ("abs", "erf", "exp2", "gelu", "mean", "relu", "sigmoid", "silu", "sqrt", "tanh")
    assert not names & {*elements} and not {*known} & {*elements}


def conversions(weight: Any, run: Callable[[], object]) -> int:
    """Return the number of conversions of a tensor of the weight's shape."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True) as found:
        run()
    shape = list(weight.shape)
    return sum(e.name == "aten::_to_copy" and e.input_shapes[0] == shape for e in found.events())


def autocast(**options: Any) -> Any:
    return torch.autocast("cpu", dtype=torch.bfloat16, **options)


LINEARS = {"ours": lambda x, w: op.linear(x, w, **CPU), "torch": F.linear}


@pytest.mark.slow
@pytest.mark.parametrize("linear", LINEARS.values(), ids=LINEARS)
def test_weights_are_converted_as_often_as_by_torch(linear: Callable[..., Any]) -> None:
    x, w = torch.randn(8, 16), torch.nn.Parameter(torch.randn(24, 16))

    def twice(**options: Any) -> None:
        with autocast(**options):
            linear(x, w), linear(2 * x, w)

    def nested() -> None:
        with autocast():
            twice(), twice()

    def separate() -> None:
        twice(), twice()

    def without_gradients() -> None:
        with torch.no_grad():
            twice()

    counts = [conversions(w, run) for run in (twice, nested, separate, without_gradients)]
    assert counts == [1, 1, 2, 1]
    assert conversions(w, lambda: twice(cache_enabled=False)) == 2
    w = w.detach()  # torch converts tensors without gradients at each call
    assert conversions(w, twice) == 2


@pytest.mark.slow
@pytest.mark.parametrize("name", ["linear", "conv2d", "grouped_mm", "lists"])
def test_gradients_of_a_weight_that_is_used_twice(name: str) -> None:
    """Each use has the same converted weight, whose gradients are added in its type, as in torch."""
    torch.manual_seed(5)
    call, _, shapes = CASES[name]
    x, w, *_ = (torch.randn(s, requires_grad=True) for s in shapes)
    with autocast():
        with torch.no_grad():
            call(x, w, **CPU)  # converts the weight, which gets gradients all the same
        found = call(x, w, **CPU).float() - call(2 * x, w, **CPU).float().square()
    u, v = (t.detach().clone().requires_grad_() for t in (x, w))
    of_v = v.bfloat16()
    want = call(u.bfloat16(), of_v, **CPU).float() - call((2 * u).bfloat16(), of_v, **CPU).float().square()
    assert torch.equal(found, want)
    gradients = (torch.autograd.grad(y.sum(), t) for y, t in ((found, (x, w)), (want, (u, v))))
    for ours, theirs in zip(*gradients, strict=True):
        assert ours.dtype == torch.float32 and torch.equal(ours, theirs)


@pytest.mark.slow
def test_a_changed_weight_is_converted_again() -> None:
    x, w = torch.eye(16), torch.nn.Parameter(torch.randn(24, 16))
    with autocast():
        first = op.linear(x, w, **CPU)
        with torch.no_grad():
            w.mul_(2)
        assert torch.equal(op.linear(x, w, **CPU), 2 * first)
        w.data = w.detach() * 2
        assert torch.equal(op.linear(x, w, **CPU), 4 * first)
        half = torch.float16
        with torch.autocast("cpu", dtype=half):
            assert op.linear(x, w, **CPU).dtype is half
        with torch.inference_mode():
            assert torch.equal(op.linear(x, w, **CPU), 4 * first)


@pytest.mark.slow
def test_converted_weights_end_with_autocast() -> None:
    x, w = torch.randn(8, 16), torch.nn.Parameter(torch.randn(24, 16))
    with autocast(), torch.no_grad():
        op.linear(x, w, **CPU)
        kept = [weakref.ref(t) for t in gc.get_objects() if type(t) is torch.Tensor and t.shape == w.shape]
        kept = [t for t in kept if t().dtype is torch.bfloat16]
        assert kept
    assert not any(t() is not None for t in kept)


@pytest.mark.slow
def test_compile() -> None:
    torch.manual_seed(1)

    def block(x: Any, w: Any, g: Any, v: Any) -> Any:
        y = op.rms_norm(op.linear(x, w, **CPU), (40,), g, **CPU)
        return op.softmax(op.mm(op.exp(y, **CPU), v, **CPU), **CPU)

    tensors = [torch.randn(s).requires_grad_() for s in ((24, 32), (40, 32), (40,), (40, 32))]
    compiled = torch.compile(block, fullgraph=True, backend="aot_eager")
    for enabled in (True, False):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=enabled):
            found, want = compiled(*tensors), block(*tensors)
        assert found.dtype == want.dtype == (torch.bfloat16 if enabled else torch.float32)
        torch.testing.assert_close(found, want)
        gradients = (torch.autograd.grad(y.float().square().sum(), tensors) for y in (found, want))
        for x, y in zip(*gradients, strict=True):
            assert x.dtype == torch.float32
            torch.testing.assert_close(x, y)


@pytest.mark.slow
def test_modules_train_in_mixed_precision() -> None:
    torch.manual_seed(1)
    run: dict[str, Any] = {"run_on": "cpu"}
    norm, attention, mlp = op.nn.RMSNorm(64, **run), op.nn.Attention(64, 2, **run), op.nn.MLP(64, 128, **run)
    experts, conv = op.nn.Experts(64, 32, 4, 2, **run), op.nn.Conv2d(16, 8, 3, **run)
    x = torch.randn(2, 9, 64, requires_grad=True)

    def block(x: Any) -> Any:
        x = attention(norm(x), x)
        return mlp(norm(x), x)

    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = block(x)
        assert found.dtype == torch.float32  # the residual keeps its type
        assert mlp(found).dtype == experts(found).dtype == conv(torch.randn(1, 16, 6, 6)).dtype == torch.bfloat16
        assert norm(found.bfloat16()).dtype == torch.bfloat16
    want = block(x.bfloat16())
    assert float((found - want.float()).detach().norm() / found.detach().norm()) < 2e-2
    (found.sum() + experts(found.bfloat16()).float().sum()).backward()
    parameters = [p for m in (norm, attention, mlp, experts) for p in m.parameters()]
    assert all(p.grad is not None and p.grad.dtype == torch.float32 for p in parameters)
    assert x.grad.dtype == torch.float32
