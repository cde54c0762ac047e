"""Gradients through ``epilogue=``, compared with torch's gradients of the same function in float64."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from launched_here import Seen, here  # noqa: E402

from cute_dialect import op  # noqa: E402
from cute_dialect.op import epilogue  # noqa: E402
from cute_dialect.op.epilogue import (  # noqa: E402
    gelu,
    pairs,
    permute,
    relu,
    reshape,
    silu,
    where,
)
from cute_dialect.op.functions import gemm  # noqa: E402
from cute_dialect.op.torch import epilogue as gradients_of  # noqa: E402

f16, f32 = torch.float16, torch.float32
mm, bmm, linear = (partial(f, device="cpu") for f in (op.mm, op.bmm, op.linear))


def integers(*shape: int, dtype: torch.dtype = f16, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return torch.randint(-1, 2, shape, generator=generator).to(dtype)


def results(found: Any) -> list[torch.Tensor]:
    return list(found.values()) if isinstance(found, dict) else list(found) if isinstance(found, tuple) else [found]


def check(
    multiply: Callable[..., Any], function: Callable[..., Any], a: torch.Tensor, b: torch.Tensor, args: dict[str, Any],
    within: float = 0.0, used: slice = slice(None),
) -> None:  # fmt: skip
    """Compare the results and the gradients of all operands."""

    def learning(t: Any) -> Any:
        return t.detach().clone().requires_grad_(t.dtype != torch.bool) if isinstance(t, torch.Tensor) else t

    def wide(t: Any) -> Any:
        return t.double() if isinstance(t, torch.Tensor) and t.dtype != torch.bool else t

    ours = [learning(t) for t in (a, b)], {n: learning(t) for n, t in args.items()}
    theirs = [learning(t.double()) for t in (a, b)], {n: learning(wide(t)) for n, t in args.items()}
    found = results(multiply(*ours[0], epilogue=function, args=ours[1]))
    x, y = theirs[0]
    want = results(function(x @ (y.mT if multiply is linear else y), **theirs[1]))
    for i, (got, wanted) in list(enumerate(zip(found, want)))[used]:
        weight = integers(*got.shape, seed=i + 1)
        (got * weight.to(got.dtype)).sum().backward(retain_graph=True)
        (wanted * weight.double()).sum().backward(retain_graph=True)
    of_args = [(ours[1][n], theirs[1][n]) for n in args if isinstance(args[n], torch.Tensor)]
    for got, wanted in (*zip(ours[0], theirs[0]), *of_args):
        if not got.requires_grad:
            continue
        assert got.grad is not None and got.grad.dtype == got.dtype and got.grad.shape == got.shape
        assert float((got.grad.double() - wanted.grad).abs().max()) <= within


def example(accum: Any, alpha: Any, C: Any, beta: Any, bias: Any) -> Any:
    F = alpha * accum + beta * C
    D = relu(F + 1) * 2.0 + bias
    return D, F


@pytest.mark.end_to_end
@pytest.mark.parametrize("call", [mm, pytest.param(linear, marks=pytest.mark.slow)])
def test_gradients_of_each_argument_type(call: Any) -> None:
    a, b = integers(24, 40), integers(40, 32)
    args = {"alpha": torch.tensor([2.0]), "C": integers(24, 32), "beta": 2.0, "bias": integers(32, dtype=f32)}
    if call is mm:
        return check(mm, example, a, b, args)
    args |= {"bias": integers(24, 1, dtype=f32), "alpha": 2.0, "beta": torch.tensor(0.5), "C": integers(24, 1)}
    check(linear, example, a, b.t().contiguous(), args, used=slice(0, 1))


@pytest.mark.slow
def test_gradients_of_pairs_and_reductions() -> None:
    def swiglu(accum: Any, bias: Any, scale: Any, skip: Any) -> Any:
        gate, up = pairs(accum / 8.0 + bias)
        return silu(gate * scale) * up + skip

    a, b = integers(24, 40), integers(40, 64)
    args = {"bias": integers(64, dtype=f32), "scale": torch.tensor([0.5]), "skip": integers(24, 32)}
    check(mm, swiglu, a, b, args, within=4e-2)

    def sums(accum: Any, bias: Any, mask: Any) -> Any:
        x = where(mask, accum + bias, 0.0)
        return {"D": x, "rows": epilogue.sum(x, -1), "all": epilogue.sum(accum)}

    check(mm, sums, a, b, {"bias": integers(64), "mask": integers(24, 64) > 0})


@pytest.mark.slow
def test_whole_rows() -> None:
    def softmax(accum: Any, bias: Any) -> Any:
        x = accum * 0.25 + bias
        power = epilogue.exp(x - epilogue.max(x, -1, whole_rows=True))
        return power / epilogue.sum(power, -1, whole_rows=True)

    generator = torch.Generator().manual_seed(1)
    a, b, bias = (torch.randn(shape, generator=generator).half() for shape in ((24, 40), (40, 32), (32,)))
    check(mm, softmax, a, b, {"bias": bias}, within=2e-2)


@pytest.mark.slow
def test_batches() -> None:
    def f(accum: Any, per: Any, row: Any, column: Any, skip: Any) -> Any:
        return accum * per + row * column - skip

    args = {"per": integers(2, 1, 1, dtype=f32), "row": integers(2, 1, 32), "column": integers(24, 1)}
    args["skip"] = integers(32)
    check(bmm, f, integers(2, 24, 40), integers(2, 40, 32), args)
    check(bmm, f, integers(2, 24, 40), integers(1, 40, 32), {**args, "per": 2.0})


@pytest.mark.slow
def test_functions_of_the_table() -> None:
    """Derivative rules of arithmetic, and of activations with parameters."""
    e = epilogue

    def f(accum: Any, x: Any) -> Any:
        y = accum * 0.25
        z = e.exp(-e.abs(y)) + e.sqrt(y * y + 1.0) + e.rsqrt(y * y + 1.0) - e.log(y * y + 1.0) + e.exp2(y * 0.1)
        z = z + e.erf(y) + gelu(y) / (1.0 + x * x) + e.maximum(y, x) - e.minimum(y, x * 0.5)
        return z + e.prelu(y, x) + e.elu(y, 0.5) + e.leaky_relu(y, 0.125) + e.multiply_add(x, y, 1.0)

    # No two values are equal, because the derivative of a maximum is ambiguous there.
    generator = torch.Generator().manual_seed(0)
    a, b, x = (torch.randn(shape, generator=generator) for shape in ((16, 24), (24, 32), (32,)))
    check(mm, f, a.half(), b.half(), {"x": x}, within=6e-2)


@pytest.mark.slow
def test_arguments_without_gradients_are_rejected() -> None:
    a, b = (t.requires_grad_() for t in (integers(24, 40), integers(40, 32)))

    def most(accum: Any) -> Any:
        return {"D": accum, "m": epilogue.max(accum, -1)}

    found = mm(a, b, epilogue=most)
    with pytest.raises(op.EpilogueError, match=r"result m uses max\(\), which has no gradient"):
        found["m"].sum().backward()
    mm(a, b, epilogue=most)["D"].sum().backward()
    ones = torch.ones(24, 32)
    assert a.grad is not None and torch.equal(a.grad.double(), ones.double() @ b.double().t())
    with pytest.raises(op.EpilogueError, match=r"d_mish\(\) has no derivative, but gradients are required"):
        mm(a, b, epilogue=lambda accum: epilogue.d_mish(accum))
    with pytest.raises(op.EpilogueError) as e:
        mm(a, b, epilogue=lambda accum: epilogue.quantize(accum)[0])
    assert str(e.value) == (
        "mm: epilogue <lambda>: quantize() has no derivative; call it under torch.no_grad(), or pass arguments "
        "without requires_grad"
    )
    with pytest.raises(op.UnsupportedError, match="out= and result arrays in args cannot be used"):
        mm(a, b, torch.zeros(24, 32).half(), epilogue=lambda accum: accum)
    d = mm(a, b, epilogue=lambda accum: epilogue.mish(accum))
    with pytest.raises(op.EpilogueError) as e:
        torch.autograd.grad(d.sum(), a, create_graph=True)
    assert str(e.value) == (
        "mm: epilogue gradient of <lambda>: d_mish() has no derivative, but gradients are required; "
        "call it under torch.no_grad(), or pass arguments without requires_grad"
    )


def check_twice(function: Callable[..., Any], args: dict[str, torch.Tensor], within: float) -> None:
    """Compare the gradients of a gradient penalty with torch's in float64."""
    generator = torch.Generator().manual_seed(2)
    a, b = (torch.randn(shape, generator=generator) / 4 for shape in ((16, 24), (24, 32)))
    found: list[list[torch.Tensor]] = []
    for wide in (False, True):
        x, y = (t.half().to(torch.float64 if wide else f16).requires_grad_() for t in (a, b))
        more = {n: t.to(torch.float64 if wide else t.dtype).requires_grad_() for n, t in args.items()}
        d = function(x @ y, **more) if wide else mm(x, y, epilogue=function, args=more, dtype=f32)
        operands = (x, y, *more.values())
        first = torch.autograd.grad((d * d).sum(), operands, create_graph=True)
        found.append(list(torch.autograd.grad(sum((g * g).sum() for g in first), operands)))
    for got, wanted in zip(*found):
        assert float((got.double() - wanted).abs().max()) <= within * float(wanted.abs().max())


@pytest.mark.slow
def test_second_derivatives() -> None:
    """Second derivatives of activations, per-row arguments, pairs and dropout."""

    def f(accum: Any, bias: Any, scale: Any) -> Any:
        gate, up = pairs(accum + bias)
        return epilogue.dropout(gelu(gate) * up * scale, 0.25, 7)

    generator = torch.Generator().manual_seed(3)
    bias, scale = (torch.randn(shape, generator=generator) for shape in ((32,), (16, 1)))
    check_twice(f, {"bias": bias, "scale": scale}, 2e-2)


@pytest.mark.slow
def test_curves() -> None:
    """Derivative rules of activations match finite differences."""
    import numpy as np

    from cute_dialect.op.epilogue.derivative import SECOND

    x, step = np.array([-4.0, -2.5, -1.0, -0.3, 0.2, 0.7, 1.5, 3.5]), 1e-5
    for name, rule in SECOND.items():
        of: Any = partial(getattr(epilogue, name), **{})
        more = () if name not in ("d_leaky_relu", "d_elu") else (0.3,)
        found = rule(1.0, of(x, *more), x, *more)[0]
        want = (of(x + step, *more) - of(x - step, *more)) / (2 * step)
        assert np.allclose(0.0 if found is None else found, want, atol=1e-8), name
        if more:
            found = rule(1.0, of(x, *more), x, *more)[1]
            want = (of(x, 0.3 + step) - of(x, 0.3 - step)) / (2 * step)
            assert np.allclose(found, want, atol=1e-8), name


def heads(accum: Any, bias: Any, scale: Any) -> Any:
    D = permute(reshape(accum + bias, (24, 2, 16)), (1, 0, 2)) * scale
    return D


def several_shapes(accum: Any, skip: Any, t: Any) -> Any:
    """Return two results of other shapes, which use arguments of further shapes."""
    x = reshape(accum * reshape(permute(t, (1, 0, 2)), (24, 32)), (24, 2, 16))
    D = permute(x, (1, 0, 2))
    F = permute(relu(x) * skip, (2, 1, 0))
    return D, F


def gated_heads(accum: Any, skip: Any) -> Any:
    gate, up = pairs(accum)
    D = permute(reshape(relu(gate) * up, (24, 2, 8)), (1, 0, 2)) + skip
    return D


def heads_of_batches(accum: Any, scale: Any) -> Any:
    D = permute(reshape(accum, (2, 24, 2, 16)), (0, 2, 1, 3)) * scale
    return D


@pytest.mark.slow
def test_other_shapes() -> None:
    """Gradients pass through ``reshape`` and ``permute``, and gradients of broadcast arguments are summed."""
    a, b = integers(24, 40), integers(40, 32)
    check(mm, heads, a, b, {"bias": integers(24, 1), "scale": integers(2, 1, 1)})
    check(mm, several_shapes, a, b, {"skip": integers(1, 2, 16), "t": integers(2, 24, 16)})
    check(mm, gated_heads, a, b, {"skip": integers(2, 24, 8)})
    check(bmm, heads_of_batches, integers(2, 24, 40), integers(2, 40, 32), {"scale": integers(2, 2, 1, 1)})


def normal(*shape: int, dtype: torch.dtype = f16) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape))).to(dtype)


def dropped(accum: Any, seed: Any, bias: Any) -> Any:
    return epilogue.dropout(gelu(accum + bias), 0.25, seed)


def with_sums(accum: Any, bias: Any) -> Any:
    x = accum + bias
    return {"D": x, "rows": epilogue.sum(x * x, -1), "all": epilogue.sum(accum)}


def with_pre(accum: Any, bias: Any) -> Any:
    pre = accum + bias
    return {"D": silu(pre), "pre": pre}


KEPT: dict[str, tuple[Callable[..., Any], tuple[int, int, int], dict[str, Any], torch.dtype, str]] = {
    "vectors": (lambda accum, bias: gelu(accum + bias), (150, 264, 40), {"bias": normal(264)}, f16, "add"),
    "odd": (
        lambda accum, bias, skip: gelu(accum + bias) + skip, (67, 133, 40),
        {"bias": normal(133), "skip": normal(67, 133)}, torch.bfloat16, "add",
    ),
    "linear": (
        lambda accum, bias, skip: accum + bias + skip, (150, 136, 40),
        {"bias": normal(136), "skip": normal(150, 136)}, f16, "",
    ),
    "the result": (lambda accum, bias: relu(accum + bias), (140, 72, 40), {"bias": normal(72)}, f16, "D"),
    "a result": (with_pre, (140, 72, 40), {"bias": normal(72)}, f16, "pre"),
    "sums": (with_sums, (150, 264, 40), {"bias": normal(264)}, f16, "D"),
    "seed": (dropped, (150, 136, 40), {"seed": 77, "bias": normal(136)}, f16, "add"),
    "f32": (
        lambda accum, row, column: gelu(accum * row) * column, (70, 136, 40),
        {"row": normal(136, dtype=f32), "column": normal(70, 1, dtype=f32)}, f32, "accum",
    ),
    "pairs": (
        lambda accum, s: (lambda p: silu(p[0]) * p[1] * s)(pairs(accum)), (130, 144, 40), {"s": normal(130, 1)}, f16,
        "accum",
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", KEPT)
def test_tensors_saved_for_backward(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """The forward pass saves at most one graph value, and a step runs three GEMMs."""
    function, (m, n, k), args, dtype, kept = KEPT[name]
    seen: list[str] = []
    found: list[str] = []
    product, kept_of = gemm.product, gradients_of.kept_of

    def counted(call: str, *given: Any, **more: Any) -> Any:
        seen.append(call)
        return product(call, *given, **more)

    def told(*given: Any) -> Any:
        it = kept_of(*given)
        assert it is not None
        found.append(it.name if it.name != "kept" else it.forward.graph.nodes[it.node].op)
        return it

    monkeypatch.setattr(gemm, "product", counted)
    monkeypatch.setattr(gradients_of, "kept_of", told)
    gradients_of._kept_of.cache_clear()
    tensors = [normal(m, k, dtype=dtype), (normal(k, n, dtype=f32) / k**0.5).to(dtype)]
    tensors += [t for t in args.values() if isinstance(t, torch.Tensor)]
    gradients: list[list[torch.Tensor]] = []
    for kind in (None, torch.float64):
        x = [t.to(kind or t.dtype).requires_grad_() for t in tensors]
        rest = iter(x[2:])
        given = {q: next(rest) if isinstance(t, torch.Tensor) else t for q, t in args.items()}
        d = results(function(x[0] @ x[1], **given) if kind else mm(x[0], x[1], epilogue=function, args=given))
        weights = [normal(*t.shape, dtype=f32) for t in d]
        gradients.append(list(torch.autograd.grad(d, x, [w.to(t.dtype) for w, t in zip(weights, d)])))
    assert seen == ["mm"] * 3 and found == [kept]
    for got, want in zip(*gradients):
        within = 2e-3 if dtype == f32 else 5e-3 if dtype == f16 else 2e-2
        assert float((got.double() - want).abs().max()) <= within * float(want.abs().max())


@pytest.mark.slow
def test_more_than_a_launch_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gradients that need more blocks than one launch allows raise an error."""
    from cute_dialect.op.torch import gradients

    monkeypatch.setattr(gradients, "_MOST", 4)
    a, b = integers(24, 16).requires_grad_(), integers(16, 128)

    def curved(accum: Any) -> Any:
        return gelu(accum)

    mm(a, b, epilogue=curved).sum().backward()  # 2 blocks
    d = mm(a.repeat(20, 1), b, epilogue=curved)
    with pytest.raises(op.UnsupportedError) as e:
        d.sum().backward()
    assert str(e.value) == (
        "gradient of curved: shape (480, 128) is too large for one launch; it may have fewer than 4 blocks of "
        "128 x 64 elements"
    )


@pytest.mark.slow
def test_incoming_gradients_with_other_layouts() -> None:
    """Incoming gradients may be column-major, strided or of another type. Arguments may need gradients when operands do
    not.
    """
    a, b, bias = (t.requires_grad_() for t in (normal(40, 72), normal(72, 136), normal(136, dtype=f32)))
    wide = [t.detach().double().requires_grad_() for t in (a, b, bias)]
    g = normal(80, 136)
    for grad in (g[:40].t().contiguous().t(), g[::2]):
        d = mm(a, b, epilogue=lambda accum, bias: gelu(accum / 8.0 + bias), args={"bias": bias})
        want = torch.nn.functional.gelu(wide[0] @ wide[1] / 8 + wide[2])
        for got, exact in zip(
            torch.autograd.grad(d, (a, b, bias), grad), torch.autograd.grad(want, wide, grad.double())
        ):
            assert float((got.double() - exact).abs().max()) <= 5e-3 * float(exact.abs().max())
    d = mm(a.detach(), b.detach(), epilogue=lambda accum, bias: gelu(accum / 8.0 + bias), args={"bias": bias})
    want = torch.nn.functional.gelu(wide[0].detach() @ wide[1].detach() / 8 + wide[2])
    (got,), (exact,) = torch.autograd.grad(d, bias, g[:40]), torch.autograd.grad(want, wide[2], g[:40].double())
    assert got.dtype == f32 and float((got - exact).abs().max()) <= 5e-3 * float(exact.abs().max())
    narrow = mm(a, b, epilogue=lambda accum: relu(accum), dtype=torch.float8_e4m3fn)
    assert narrow.dtype == torch.float8_e4m3fn and narrow.requires_grad


@pytest.mark.slow
def test_training_steps_are_replayed() -> None:
    """A step on new data replays five kernels: three GEMMs, the derivative, and its column sums."""

    def f(accum: Any, bias: Any, skip: Any) -> Any:
        return gelu(accum + bias) + skip

    traced = epilogue.trace(f, {"accum": torch.empty(72, 136), "bias": normal(136), "skip": normal(72, 136)})
    seen = Seen()
    with here(seen):
        for step in range(3):
            generator = torch.Generator().manual_seed(step)
            shapes = (72, 64), (64, 136), (136,), (72, 136), (72, 136)
            *tensors, grad = (torch.randn(shape, generator=generator).half() / 4 for shape in shapes)
            a, b, bias, skip = (t.requires_grad_() for t in tensors)
            d = op.mm(a, b, epilogue=traced, args={"bias": bias, "skip": skip})
            found = torch.autograd.grad(d, (a, b, bias, skip), grad)
            x, y, v, w = wide = [t.detach().double().requires_grad_() for t in tensors]
            want = torch.autograd.grad(torch.nn.functional.gelu(x @ y + v) + w, wide, grad.double())
            for got, exact in zip(found, want):
                assert float((got.double() - exact).abs().max()) <= 5e-3 * float(exact.abs().max())
            assert (seen.first, seen.again) == (5, 5 * step)
