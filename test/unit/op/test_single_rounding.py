"""Every kernel for a GEMM with an epilogue rounds its result once, compared with float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cute_dialect import op
from cute_dialect.op.epilogue import gelu, pairs, silu, sum_squares

torch: Any = pytest.importorskip("torch")
F: Any = torch.nn.functional

BITS = {torch.bfloat16: 7, torch.float16: 10}
"""Result types, and the bits of their mantissa after the binary point."""


def normal(*shape: int, kind: Any = torch.bfloat16, scale: float = 1.0) -> Any:
    """Return random normal numbers, the same ones for each shape."""
    generator = torch.Generator().manual_seed(sum(shape))
    return (torch.randn(*shape, generator=generator) * scale).to(kind)


def strided(x: Any, pitch: int, offset: int = 0) -> Any:
    """Return a copy of a matrix with row stride ``pitch``, which starts ``offset`` elements into its buffer."""
    memory = torch.zeros(x.shape[0] * pitch + offset + 8, dtype=x.dtype)
    found = memory[offset:].as_strided(x.shape, (pitch, 1))
    return found.copy_(x)


def check(found: Any, exact: Any, terms: Any) -> None:
    """Check that the error is within half a unit in the last place plus the f32 accumulation error. ``terms`` is the
    sum of the magnitudes of all addends.
    """
    bits, least = BITS[found.dtype], torch.finfo(found.dtype).tiny
    unit = 2.0 ** (torch.floor(torch.log2(exact.abs().clamp(min=least))) - bits)
    error = (found.double() - exact).abs()
    worst = float((error / (0.5 * unit + terms * 2.0**-20)).max())
    assert worst <= 1.0, worst


def problem(m: int, n: int, k: int, kind: Any = torch.bfloat16) -> tuple[Any, ...]:
    """Return A, B, C and a bias."""
    return (
        normal(m, k, kind=kind),
        normal(k, n, kind=kind, scale=k**-0.5),
        normal(m, n, kind=kind),
        normal(n, kind=kind),
    )


def wanted(
    a: Any, b: Any, c: Any = None, bias: Any = None, activation: str = "", alpha: float = 1.0, beta: float = 1.0
) -> Any:
    """Return the exact result and the sum of the magnitudes of the addends."""
    x, terms = alpha * (a.double() @ b.double()), abs(alpha) * (a.double().abs() @ b.double().abs())
    for t, factor in ((c, beta), (bias, 1.0)):
        if t is not None:
            x, terms = x + factor * t.double(), terms + abs(factor) * t.double().abs()
    f: Callable[[Any], Any] = {
        "": lambda t: t,
        "relu": F.relu,
        "gelu": F.gelu,
        "silu": F.silu,
        "hardswish": F.hardswish,
    }[activation]
    return f(x), terms


SIZES = {
    "whole tiles": (64, 64, 64),
    "rows of no 16 bytes": (33, 18, 17),
    "few rows": (3, 64, 128),
    "few odd rows": (3, 19, 33),
    "an odd number of columns": (24, 37, 48),
}
ADDED = {
    "bias": {"bias": True},
    "gelu": {"bias": True, "activation": "gelu"},
    "all": {"bias": True, "c": True, "alpha": -0.75, "beta": 2.5, "activation": "silu"},
    "c": {"c": True},
}


@pytest.mark.sample("rows of no 16 bytes-bias-torch.bfloat16")
@pytest.mark.parametrize("kind", BITS, ids=str)
@pytest.mark.parametrize("added", ADDED)
@pytest.mark.parametrize("size", SIZES)
def test_mm(size: str, added: str, kind: Any) -> None:
    a, b, c, bias = problem(*SIZES[size], kind=kind)
    how = ADDED[added] | {n: t for n, t in (("c", c), ("bias", bias)) if n in ADDED[added]}
    check(op.mm(a, b, **how, device="cpu"), *wanted(a, b, **how))


@pytest.mark.slow
@pytest.mark.parametrize("lying", ["address", "rows", "columns of A", "columns of B", "columns of D", "rows of D"])
def test_any_strides(lying: str) -> None:
    a, b, c, bias = problem(40, 24, 32)
    out = None
    if lying == "address":
        a = strided(a, 40, 1)
    elif lying == "rows":
        b = strided(b, 27)
    elif lying == "columns of A":
        a = strided(a.T, 41).T
    elif lying == "columns of B":
        b = strided(b.T, 33).T
    else:
        out = strided(c, 25) if lying == "rows of D" else strided(c.T, 41).T
    how = {"c": c, "bias": bias, "activation": "hardswish", "beta": 0.5}
    check(op.mm(a, b, out, **how, device="cpu"), *wanted(a, b, **how))


@pytest.mark.slow
@pytest.mark.parametrize("n", [64, 40, 21])
def test_split_k(n: int) -> None:
    a, b, _, bias = problem(16, n, 512)
    aligned = n % 8 == 0
    found = op.mm(a, b, bias=bias, activation="gelu", device="cpu", **({"split_k": 2} if aligned else {}))
    check(found, *wanted(a, b, bias=bias, activation="gelu"))


@pytest.mark.slow
@pytest.mark.parametrize("n", [32, 18])
@pytest.mark.parametrize("one", [True, False])
def test_batches(n: int, one: bool) -> None:
    a, b = normal(3, 20, 24), normal(1 if one else 3, 24, n, scale=0.2)
    c, bias = normal(3, 20, n), normal(n)
    found = op.bmm(a, b, c=c, beta=0.75, bias=bias, activation="silu", device="cpu")
    check(found, *wanted(a, b, c, bias, "silu", beta=0.75))


@pytest.mark.slow
@pytest.mark.parametrize("n", [32, 18])
def test_lists_and_groups(n: int) -> None:
    a, b, bias = normal(3, 20, 24), normal(3, 24, n, scale=0.2), normal(n)
    found = op.mm_array(list(a), list(b), bias=bias, activation="gelu", device="cpu")
    for x, y, z in zip(found, a, b):
        check(x, *wanted(y, z, bias=bias, activation="gelu"))
    found = op.grouped_mm(
        a.flatten(0, 1), b, torch.tensor([20, 40, 60], dtype=torch.int32), bias=bias, activation="gelu", device="cpu"
    )
    for x, y, z in zip(found.view(3, 20, n), a, b):
        check(x, *wanted(y, z, bias=bias, activation="gelu"))


@pytest.mark.slow
@pytest.mark.parametrize("n", [64, 18])
@pytest.mark.parametrize("kind", [torch.float32, torch.float16])
def test_a_source_of_another_type(n: int, kind: Any) -> None:
    """C is added in its own type, without rounding to the result type."""
    a, b, _, bias = problem(32, n, 32)
    c = normal(32, n, kind=kind, scale=3.0)
    check(op.addmm(c, a, b, bias=bias, beta=1.5, device="cpu"), *wanted(a, b, c, bias, beta=1.5))


@pytest.mark.slow
@pytest.mark.end_to_end  # The call compiles a kernel.
@pytest.mark.sample("kind0-18")
@pytest.mark.parametrize("n", [64, 18])
@pytest.mark.parametrize("kind", [torch.float32, torch.float16])
def test_operands_are_not_read_if_alpha_is_0(n: int, kind: Any) -> None:
    a, b, _, _ = problem(16, n, 16)
    c = normal(16, n, kind=kind, scale=3.0)
    a[0, 0] = float("nan")
    check(op.addmm(c, a, b, alpha=0.0, device="cpu"), c.double(), c.double().abs())


@pytest.mark.slow
@pytest.mark.parametrize("n", [64, 18])
def test_traced_epilogues(n: int) -> None:
    """Pairs of columns, reductions and further results, for aligned and misaligned rows."""
    a, b, _, bias = problem(24, n, 40 if n == 64 else 17)

    def gated(accum: Any) -> Any:
        gate, up = pairs(accum)
        return silu(gate) * up

    exact, terms = wanted(a, b)
    gate, up = exact[:, 0::2], exact[:, 1::2]
    check(op.mm(a, b, epilogue=gated, device="cpu"), F.silu(gate) * up, (1 + terms[:, 0::2]) * (1 + terms[:, 1::2]))

    def several(accum: Any, bias: Any) -> Any:
        pre = accum + bias
        return {"D": gelu(pre), "pre": pre, "squares": sum_squares(pre, -1)}

    found = op.mm(a, b, epilogue=several, args={"bias": bias}, device="cpu")
    exact, terms = wanted(a, b, bias=bias)
    check(found["pre"], exact, terms)
    check(found["D"], F.gelu(exact), terms)
    assert torch.allclose(found["squares"].double().flatten(), exact.square().sum(-1), rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("n", [32, 18])
def test_factors_of_other_types(n: int) -> None:
    """Exact f32, scaled 8-bit floats, and integers, with 16-bit results."""
    a, b, _, bias = problem(16, n, 32)
    x, y = a.float(), b.float()
    check(
        op.mm(x, y, bias=bias, activation="gelu", dtype=torch.bfloat16, device="cpu"),
        *wanted(a, b, bias=bias, activation="gelu"),
    )
    p, q = (
        torch.randint(-8, 9, s, generator=torch.Generator().manual_seed(n)).to(torch.int8) for s in ((16, 32), (32, n))
    )
    found = op.mm(p, q, alpha=0.0625, bias=bias, activation="silu", dtype=torch.bfloat16, device="cpu")
    check(found, *wanted(p, q, bias=bias, activation="silu", alpha=0.0625))
    p, q = normal(16, 32, kind=torch.float8_e4m3fn), normal(n, 32, kind=torch.float8_e4m3fn).T
    check(op.mm(p, q, bias=bias, activation="gelu", device="cpu"), *wanted(p, q, bias=bias, activation="gelu"))


@pytest.mark.slow
@pytest.mark.parametrize(("channels", "filters"), [(8, 16), (3, 6), (5, 16)])
@pytest.mark.parametrize("source", [torch.bfloat16, torch.float32])
def test_convolutions(channels: int, filters: int, source: Any) -> None:
    x = normal(2, channels, 6, 6).to(memory_format=torch.channels_last)
    f = normal(filters, channels, 3, 3, scale=0.2).to(memory_format=torch.channels_last)
    bias, c = normal(filters), normal(2, filters, 6, 6, kind=source).to(memory_format=torch.channels_last)
    found = op.conv2d(x, f, bias, padding=1, c=c, beta=0.5, activation="gelu", device="cpu")
    exact = F.conv2d(x.double(), f.double(), bias.double(), padding=1) + 0.5 * c.double()
    terms = F.conv2d(x.double().abs(), f.double().abs(), bias.double().abs(), padding=1) + 0.5 * c.double().abs()
    check(found, F.gelu(exact), terms)


@pytest.mark.slow
@pytest.mark.parametrize("n", [32, 18])
def test_plans(n: int) -> None:
    a, b, c, _ = problem(32, n, 32 if n == 32 else 18)
    plan = op.Gemm(element="bf16", layout="row")
    d = torch.empty_like(c)
    plan.run(a, b, c, d, 0.75, -1.5, device="cpu")
    check(d, *wanted(a, b, c, alpha=0.75, beta=-1.5))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["relu", "relu6", "hardswish", "hardsigmoid", "gelu", "silu"])
@pytest.mark.parametrize("n", [32, 18])
def test_gradients_use_the_exact_operand(name: str, n: int) -> None:
    """Rounding would move operands across a jump of the derivative, with errors of 3 to 6 %. The error must be below
    0.4 %.
    """
    m, k = 207, 17 if n == 18 else 32
    x, w, b, g = normal(m, k), normal(n, k, scale=k**-0.5), normal(n), normal(m, n)
    ours, exact = ([t.clone().requires_grad_() for t in (x, w, b)], [t.double().requires_grad_() for t in (x, w, b)])
    found = torch.autograd.grad(op.linear(*ours, name, device="cpu"), ours, g)
    right = torch.autograd.grad(getattr(F, name)(F.linear(*exact)), exact, g.double())
    for p, q in zip(found, right):
        assert float((p.double() - q).norm() / q.norm()) < 4e-3
