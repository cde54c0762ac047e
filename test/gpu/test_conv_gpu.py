"""Convolutions and their gradients on the GPU: exact results on small integers."""

# pyright: basic

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from conv_calls import CALLS, FUSED, PLANS, SINGLE, plans, served  # noqa: E402

from cute_dialect import op  # noqa: E402


@pytest.fixture(autouse=True)
def _prebuilt(prebuilt: Callable[[str], None]) -> None:
    prebuilt("conv")


def integers(*shape: int) -> Any:
    """Return small random integers of shape (N, C, …), stored channels-last."""
    made = torch.randint(-1, 2, shape, generator=torch.Generator().manual_seed(sum(shape)))
    return made.half().cuda().movedim(-1, 1)


def exactly(name: str) -> tuple[Any, Any, Any, dict[str, Any]]:
    """Return the image, the filter, the output gradient, and the exact f64 result for each kind."""
    of_x, of_f, h = CALLS[name]
    rank = len(of_x) - 2
    x, f = integers(*of_x), integers(*of_f)
    pads = [n for pair in reversed(tuple(zip(h.before, h.after))) for n in pair]
    exact = [t.double().requires_grad_() for t in (x, f)]
    taps = exact[1].flip(tuple(range(2, rank + 2))) if h.flip else exact[1]
    conv = getattr(torch.nn.functional, f"conv{rank}d")
    want = conv(torch.nn.functional.pad(exact[0], pads), taps, None, h.stride, 0, h.dilation, h.groups)
    y = integers(want.shape[0], *want.shape[2:], want.shape[1])
    want.backward(y.double())
    return x, f, y, {"fprop": want.detach(), "dgrad": exact[0].grad, "wgrad": exact[1].grad}


def call(kind: str, x: Any, f: Any, y: Any, **more: Any) -> Any:
    """Call the convolution function for ``kind``."""
    functions = [getattr(op, f"conv{x.dim() - 2}d{name}") for name in ("", "_input", "_weight")]
    if kind == "fprop":
        return functions[0](x, f, **more)
    if kind == "dgrad":
        return functions[1](x.shape, f, y, **more)
    return functions[2](x, f.shape, y, **{"dtype": "f32", **more})


@pytest.mark.parametrize(("name", "kind"), served())
def test_convolution(name: str, kind: str) -> None:
    """The first call and two cached calls give exact results."""
    x, f, y, exact = exactly(name)
    for _ in range(3):
        got = call(kind, x, f, y, **CALLS[name][2].arguments)
        # The f64 result is rounded once to f16, which cannot hold every sum.
        assert torch.equal(got.double(), exact[kind].to(got.dtype).double())


@pytest.mark.parametrize(("name", "kind"), FUSED)
def test_what_becomes_of_sums_that_lie_elsewhere(name: str, kind: str) -> None:
    x, f, y, exact = exactly(name)
    c = torch.randint(-3, 4, exact[kind].shape, device="cuda").to(torch.float32 if kind == "wgrad" else torch.float16)
    c = c.to(memory_format=torch.channels_last)
    for _ in range(3):
        got = call(kind, x, f, y, c=c, alpha=2.0, **CALLS[name][2].arguments)
        assert torch.equal(got.double(), (2 * exact[kind] + c.double()).to(got.dtype).double())


def test_what_becomes_of_the_sums_of_single_channels() -> None:
    of_x, of_f, h = SINGLE
    x, f = integers(*of_x), integers(*of_f)
    c, bias = integers(*of_x), torch.arange(of_f[0], dtype=torch.float32, device="cuda") - 30
    exact = torch.nn.functional.conv2d(x.double(), f.double(), bias.double(), padding=1, groups=h.groups) + c.double()
    for _ in range(3):
        got = op.conv2d(x, f, bias, c=c, activation="relu", **h.arguments)
        assert torch.equal(got.double(), exact.relu())


@pytest.mark.parametrize("number", range(len(PLANS)))
def test_plans(number: int) -> None:
    """Plans for each algorithm and for split-K give exact results: run, bound, and on numpy arrays after sync()."""
    name, plan, arrays, more = plans()[number]
    x, f, y, exact = exactly(name)
    wanted = exact[plan.kind].movedim(1, -1)
    last = {n: t.movedim(1, -1) for n, t in (("x", x), ("f", f), ("y", y))}
    given = [last[n] for n in {"fprop": "xf", "dgrad": "yf", "wgrad": "yx"}[plan.kind]]
    assert [tuple(t.shape) for t in given] == [t.shape for t in arrays]
    done = plan.run(*given, **more)
    assert torch.equal(done.D.double(), wanted.to(done.D.dtype).double())
    done.D.fill_(float("nan"))
    plan.bind(*given, None, done.D, **more)()
    torch.cuda.synchronize()
    assert torch.equal(done.D.double(), wanted.to(done.D.dtype).double())
    from_host = plan.run(*[t.cpu().numpy() for t in given], **more, sync=False)
    from_host.sync()
    assert torch.equal(torch.from_numpy(from_host.D).double(), wanted.to(done.D.dtype).double().cpu())
