"""Cached calls with gradients: from the second step on, forward and backward passes replay their launches."""

# pyright: basic

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
from launched_here import Here, Seen, here  # noqa: E402
from repeated_calls import image, normal  # noqa: E402
from torch.nn.attention.flex_attention import create_block_mask as torch_block_mask  # noqa: E402

from cute_dialect import op  # noqa: E402
from cute_dialect.op.arrays import library as arrays  # noqa: E402
from cute_dialect.op.execute import attention_backward, recording  # noqa: E402
from cute_dialect.op.execute import rows as row_launch  # noqa: E402
from cute_dialect.op.execute.array_call import RowCall  # noqa: E402
from cute_dialect.op.execute.call_cache import KnownCalls  # noqa: E402
from cute_dialect.op.functions import attention as attention_calls  # noqa: E402
from cute_dialect.op.functions import row_gradients as row_gradients  # noqa: E402
from cute_dialect.op.functions import rows  # noqa: E402
from cute_dialect.op.operators import attention as attention_operators  # noqa: E402
from cute_dialect.op.operators import rows as row_operators  # noqa: E402
from cute_dialect.op.operators.attention_matmuls import Gradients  # noqa: E402
from cute_dialect.op.torch import autograd  # noqa: E402

GPU = ("NVIDIA H200", 132)
flex_calls: Any = import_module("cute_dialect.op.functions.flex_attention")


@pytest.fixture
def seen() -> Iterator[Seen]:
    """Record the launches, which run on the interpreter."""
    caches = {name: KnownCalls() for name in rows._KNOWN}
    of_gradients = {name: KnownCalls() for name in row_gradients._KNOWN}
    with (
        here(Seen()) as found,
        patch.object(row_operators, "_device", lambda x: None),
        patch.object(row_launch, "gpu_of", lambda _: GPU),
        patch.object(arrays, "gpu_here", lambda name: None),
        patch.dict(rows._KNOWN, caches),
        patch.dict(row_gradients._KNOWN, of_gradients),
        patch.object(rows, "_LOSSES", KnownCalls()),
    ):
        for function in (op.add, op.mul):
            function._known.clear()
            function.slopes.clear()
        yield found
        for function in (op.add, op.mul):
            function._known.clear()
            function.slopes.clear()


CALLS: dict[str, tuple[Callable[..., Any], Callable[..., Any], Callable[[], tuple[Any, ...]]]] = {
    "mm": (op.mm, torch.mm, lambda: (normal(16, 24), normal(24, 32))),
    "addmm": (op.addmm, torch.addmm, lambda: (normal(16, 32), normal(16, 24), normal(24, 32))),
    "matmul": (op.matmul, torch.matmul, lambda: (normal(2, 8, 24), normal(24, 32))),
    "linear": (op.linear, F.linear, lambda: (normal(2, 8, 24), normal(32, 24), normal(32))),
    "linear with gelu": (
        lambda x, w, b: op.linear(x, w, b, "gelu"), lambda x, w, b: F.gelu(F.linear(x, w, b)),
        lambda: (normal(16, 24), normal(32, 24), normal(32)),
    ),
    "linear with relu": (
        lambda x, w, b: op.linear(x, w, b, "relu"), lambda x, w, b: F.linear(x, w, b).relu(),
        lambda: (normal(16, 24), normal(32, 24), normal(32)),
    ),
    "softmax": (op.softmax, lambda x: x.softmax(-1), lambda: (normal(4, 40),)),
    "rms_norm": (op.rms_norm, lambda x, w: F.rms_norm(x, (40,), w, 2.0**-23), lambda: (normal(4, 40), normal(40))),
    "layer_norm": (
        op.layer_norm, lambda x, w, b: F.layer_norm(x, (40,), w, b), lambda: (normal(4, 40), normal(40), normal(40)),
    ),
    "cross_entropy": (op.cross_entropy, F.cross_entropy, lambda: (normal(4, 40), torch.tensor([3, 0, 39, 7]))),
    "sum": (op.sum, lambda x: x.sum(-1), lambda: (normal(4, 40),)),
    "mean": (op.mean, lambda x: x.mean(-1), lambda: (normal(4, 40),)),
    "max": (op.max, lambda x: x.amax(-1), lambda: (normal(4, 40),)),
    "add": (op.add, torch.add, lambda: (normal(4, 40), normal(4, 40))),
    "mul": (op.mul, torch.mul, lambda: (normal(4, 40), normal(40))),
    "conv2d": (
        lambda x, f, b: op.conv2d(x, f, b, 1, 1), lambda x, f, b: F.conv2d(x, f, b, 1, 1),
        lambda: (image(2, 64, 8, 8), image(32, 64, 3, 3), normal(32)),
    ),
}  # fmt: skip


def leaves(tensors: tuple[Any, ...]) -> list[Any]:
    return [t.detach().requires_grad_() if t.is_floating_point() else t for t in tensors]


def learning(tensors: list[Any]) -> list[Any]:
    return [t for t in tensors if t.requires_grad]


def step(call: Callable[..., Any], tensors: list[Any]) -> list[Any]:
    """Return the result and the gradients of a call."""
    y = call(*tensors)
    generator = torch.Generator().manual_seed(1)
    grad = torch.randn(y.shape, generator=generator).to(y.dtype)
    return [y.detach(), *torch.autograd.grad(y, learning(tensors), grad)]


def near(found: list[Any], exact: list[Any]) -> None:
    for x, y in zip(found, exact, strict=True):
        assert x.shape == y.shape
        torch.testing.assert_close(x.double(), y, rtol=2e-2, atol=2e-2 * max(1.0, float(y.abs().max())))


@pytest.mark.sample("softmax", "linear")
@pytest.mark.parametrize("name", CALLS)
def test_steps(seen: Seen, name: str) -> None:
    call, exact, make = CALLS[name]
    for number in range(3):
        tensors = leaves(make())
        wide = [t.detach().double().requires_grad_() if t.requires_grad else t for t in tensors]
        before = seen.first
        near(step(call, tensors), step(exact, wide))
        assert (seen.first == before) == (number > 0)
    with torch.no_grad():
        assert not call(*tensors).requires_grad


@pytest.mark.slow
def test_gradients_of_some_arguments(seen: Seen) -> None:
    a, b = leaves((normal(16, 24), normal(24, 32)))
    for x, y in ((a, b), (a.detach(), b), (a, b.detach()), (a, b)) * 2:
        d = op.mm(x, y)
        d.sum().backward()
        assert d.shape == (16, 32)
    near([a.grad, b.grad], [6 * (torch.ones(16, 32).double() @ b.detach().double().t()),
                            6 * (a.detach().double().t() @ torch.ones(16, 32).double())])  # fmt: skip


def test_the_graph_of_a_replayed_call(seen: Seen) -> None:
    """Second derivatives, several backward passes, hooks, and tensors that are modified before the backward pass."""
    a, b = leaves((normal(16, 24), normal(24, 32)))
    grad = normal(16, 32)
    for _ in range(3):
        step(op.mm, [a, b])
    d = op.mm(a, b)
    found = [torch.autograd.grad(d, (a, b), grad, retain_graph=True) for _ in range(2)]
    assert all(torch.equal(x, y) for x, y in zip(*found))
    hooked: list[Any] = []
    d.grad_fn.register_hook(lambda inputs, outputs: hooked.append((len(inputs), len(outputs))))
    torch.autograd.grad(d, (a, b), grad)
    assert hooked == [(2, 1)]
    with pytest.raises(RuntimeError, match="second time"):
        torch.autograd.grad(d, (a, b), grad)
    d = op.mm(a, b)
    with torch.no_grad():
        b += 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        torch.autograd.grad(d, a, grad)

    def penalty(mm: Any, x: Any, y: Any, g: Any) -> Any:
        of_x, of_y = torch.autograd.grad(mm(x, y), (x, y), g, create_graph=True)
        return torch.autograd.grad((of_x**2).sum() + (of_y**2).sum(), (x, y))

    g = grad.clone().requires_grad_()
    wide = [t.detach().double().requires_grad_() for t in (a, b, g)]
    near(penalty(op.mm, a, b, g), penalty(torch.mm, *wide))


@pytest.mark.slow
def test_missing_and_strided_gradients(seen: Seen) -> None:
    x, w = leaves((normal(4, 40), normal(40)))
    for _ in range(3):
        y, s = op.rms_norm(x, w, residual=x.detach())
        y.sum().backward(retain_graph=True)
        s.t()[:3].sum().backward()
    d = op.mm(*leaves((normal(16, 24), normal(24, 32))))
    for grad in (torch.ones(1, 1, dtype=d.dtype).expand(16, 32), normal(32, 16).t(), normal(16, 32)):
        d.backward(grad, retain_graph=True)


@pytest.mark.slow
def test_replay_at_other_addresses(seen: Seen) -> None:
    """A tensor with another alignment is a new call."""
    memory = normal(24 * 16 + 8)
    b = normal(24, 32)
    for offset in (0, 8, 1, 0, 1, 8):
        a = memory[offset : offset + 16 * 24].view(16, 24).detach().requires_grad_()
        d = op.mm(a, b)
        (found,) = torch.autograd.grad(d, a, torch.ones_like(d))
        near([d.detach(), found], [a.detach().double() @ b.double(), torch.ones(16, 32).double() @ b.double().t()])


@pytest.mark.slow
def test_epilogues(seen: Seen) -> None:
    """Named results, and a value that is saved for the backward pass although it is no result."""

    def gated(accum: Any, x: Any) -> Any:
        return {"D": op.epilogue.silu(accum) * x, "most": op.epilogue.sum(accum, -1)}

    traced = op.epilogue.trace(gated, {"accum": op.epilogue.FakeTensor("f32", (16, 32)),
                                       "x": op.epilogue.FakeTensor("f16", (16, 32))})  # fmt: skip
    for number in range(3):
        a, b, x = leaves((normal(16, 24), normal(24, 32), normal(16, 32)))
        before = seen.first
        found = op.mm(a, b, epilogue=traced, args={"x": x})
        grads = torch.autograd.grad(found["D"].sum() + found["most"].sum(), (a, b, x))
        assert (seen.first == before) == (number > 0)
        wide = [t.detach().double().requires_grad_() for t in (a, b, x)]
        accum = wide[0] @ wide[1]
        exact = torch.autograd.grad((F.silu(accum) * wide[2]).sum() + accum.sum(), wide)
        near([found["D"].detach(), *grads], [(F.silu(accum) * wide[2]).detach(), *exact])


@torch.library.custom_op("cute_test::attention_backward", mutates_args=())
def multiplied(grad: torch.Tensor, k: torch.Tensor, v: torch.Tensor, factor: float) -> list[torch.Tensor]:
    """Replace the gradient kernel of attention."""
    return [grad * factor, k * 3, v * 4]


@pytest.mark.slow
def test_gradients_of_attention(seen: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    """The backward pass calls a torch operator on views of saved tensors."""

    def kernel(saved: Any, grad: Any, grad_lse: Any, mask: Any, of_bias: bool) -> Any:
        given = [x.transpose(1, 2) for x in (grad, saved.k, saved.v)]
        found = torch.ops.cute_test.attention_backward.default(*given, 2.0)
        return Gradients(*[x.transpose(1, 2) for x in found])

    attended = attention_calls.attended
    monkeypatch.setattr(attention_calls, "_KNOWN", KnownCalls())
    monkeypatch.setattr(attention_calls, "attended", lambda *given, device, **more: attended(*given, **more))
    monkeypatch.setattr(attention_operators, "gradients_by_kernels", kernel)
    monkeypatch.setattr(recording, "PURE", {*recording.PURE, "cute_test::attention_backward"})
    seen.works = False
    kernels: list[int] = []
    for number in range(3):
        q, k, v = leaves(tuple(normal(1, 2, 64, 64) for _ in range(3)))
        kernels.clear()
        grad, before = normal(1, 2, 64, 64), seen.first
        result, _ = op.attention(q, k, v, causal=True, lse=True)
        counted = patch.object(
            attention_operators, "gradients_by_kernels", lambda *given: kernels.append(1) or kernel(*given)
        )
        with counted:
            found = torch.autograd.grad(result, (q, k, v), grad)
        assert (seen.first == before) == (number > 0) == (not kernels)
        assert all(torch.equal(x, y) for x, y in zip(found, (2 * grad, 3 * k, 4 * v), strict=True))


class Idle:
    """The module of a row kernel that is not compiled."""

    def __init__(self, seen: Seen) -> None:
        self.seen = seen

    def kernel(self, name: str) -> Here:
        return Here(None, self.seen)


@pytest.mark.slow
def test_gradients_of_flex_attention(seen: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    """The backward pass depends on a setting of torch, and is replayed without its Python function."""
    ordered: list[bool] = [False]
    computed: list[object] = []
    of_replay = autograd._Replay.gradients
    monkeypatch.setattr(autograd._Replay, "gradients", lambda *given: computed.append(1) or of_replay(*given))
    monkeypatch.setattr(torch, "are_deterministic_algorithms_enabled", lambda: ordered[0])
    monkeypatch.setattr(attention_backward.BackwardDispatch, "resident", lambda self, _: self)
    monkeypatch.setattr(attention_backward, "driver", lambda: SimpleNamespace(multiprocessors=lambda _: 132))
    monkeypatch.setattr(flex_calls, "_KNOWN", KnownCalls())
    monkeypatch.setattr(RowCall, "module", lambda self, kernel: Idle(seen))
    seen.works = False
    document, slopes = torch.tensor([0] * 30 + [1] * 34), torch.tensor([0.5, 0.25])
    mask = torch_block_mask(lambda b, h, i, j: document[i] == document[j], None, None, 64, 64, "cpu", 128)
    launches: list[tuple[int, int, int]] = []
    for ordered[0] in (False, False, False, True, True, False, True, False):
        q, k, v = leaves(tuple(normal(1, 2, 64, 64) for _ in range(3)))
        seen.first = seen.again = 0
        computed.clear()
        y = op.flex_attention(q, k, v, lambda s, b, h, i, j: s + slopes[h] * (j - i), mask)
        found = torch.autograd.grad(y, (q, k, v), normal(1, 2, 64, 64))
        assert [x.shape for x in found] == [q.shape] * 3
        launches.append((seen.first, seen.again, len(computed)))
    assert [first for first, *_ in launches] == [4, 0, 0, 3, 0, 0, 0, 0]
    assert [again for _, again, _ in launches] == [0, 4, 4, 1, 4, 4, 4, 4]
    # The function records a pass.  In C++, it also looks up a pass that was not among the last ones.
    assert [launches[i][2] for i in (0, 2, 3, 6, 7)] == [1, 0, 1, 0, 0]


def test_observed_calls_are_not_replayed(seen: Seen) -> None:
    from torch.utils._python_dispatch import TorchDispatchMode

    class Counting(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            names.append(str(func))
            return func(*args, **(kwargs or {}))

    names: list[str] = []
    a, b = leaves((normal(16, 24), normal(24, 32)))
    for _ in range(3):
        step(op.mm, [a, b])
    with Counting():
        op.mm(a, b)
    assert any("cute.mm" in name for name in names)


def test_replayed_nodes_have_the_returned_outputs_only(seen: Seen) -> None:
    """The logsumexp of cross entropy is saved, and is no output of a replayed node."""
    x, target = normal(4, 40).requires_grad_(), torch.tensor([3, 0, 39, 7])
    names = []
    for _ in range(2):
        loss = op.cross_entropy(x, target)
        names.append(loss.grad_fn.name())
        (found,) = torch.autograd.grad(loss, x)
        wide = x.detach().double().requires_grad_()
        (exact,) = torch.autograd.grad(F.cross_entropy(wide, target), wide)
        torch.testing.assert_close(found.double(), exact, rtol=2e-2, atol=1e-3)
    assert names == ["FunctionBackward", "ReplayedBackward"] and len(loss.grad_fn._input_metadata) == 1
