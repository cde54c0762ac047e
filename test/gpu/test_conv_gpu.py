"""Convolutions and their gradients on the GPU: small integers, exactly."""

# pyright: basic

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from conv_calls import CALLS, served  # noqa: E402

from cute_dialect import op  # noqa: E402


@pytest.fixture(autouse=True)
def kernels(artifacts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The prebuilt kernels (``python test/gpu/build.py DIR``)."""
    if not (artifacts / "conv").exists():
        pytest.skip(f"NOT RUN: {artifacts}/conv is missing; build it: python test/gpu/build.py {artifacts}")
    monkeypatch.setenv("CUTE_KERNELS", str(artifacts / "conv"))


def integers(*shape: int) -> Any:
    """Small ones, channels last in memory, first in the shape."""
    made = torch.randint(-1, 2, shape, generator=torch.Generator().manual_seed(sum(shape)))
    return made.half().cuda().movedim(-1, 1)


@pytest.mark.parametrize(("name", "kind"), served())
def test_convolution(name: str, kind: str) -> None:
    of_x, of_f, h = CALLS[name]
    rank = len(of_x) - 2
    x, f = integers(*of_x), integers(*of_f)
    pads = [n for pair in reversed(tuple(zip(h.before, h.after))) for n in pair]
    exact = [t.double().requires_grad_() for t in (x, f)]
    taps = exact[1].flip(tuple(range(2, rank + 2))) if h.flip else exact[1]
    conv = getattr(torch.nn.functional, f"conv{rank}d")
    want = conv(torch.nn.functional.pad(exact[0], pads), taps, None, h.stride, 0, h.dilation)
    y = integers(want.shape[0], *want.shape[2:], want.shape[1])
    want.backward(y.double())
    functions = [getattr(op, f"conv{rank}d{more}") for more in ("", "_input", "_weight")]
    for _ in range(3):
        if kind == "fprop":
            got, exactly = functions[0](x, f, **h.arguments), want
        elif kind == "dgrad":
            got, exactly = functions[1](x.shape, f, y, **h.arguments), exact[0].grad
        else:
            got, exactly = functions[2](x, f.shape, y, dtype="f32", **h.arguments), exact[1].grad
        assert exactly is not None
        # Sums that f16 does not hold are rounded once.
        assert torch.equal(got.double(), exactly.detach().to(got.dtype).double())
