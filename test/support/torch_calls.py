"""Differentiable calls on torch tensors, run on the GPU or in the interpreter, and the kernels that they use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import torch

from cute_dialect import op
from cute_dialect.op.epilogue import pairs, relu, silu
from cute_dialect.op.execute import array_call as row_calls
from cute_dialect.op.execute import gemm as product
from cute_dialect.op.functions import gemm_array as matrix_lists
from cute_dialect.op.pycutlass import operation

f16, bf16, f32, f64 = torch.float16, torch.bfloat16, torch.float32, torch.float64
Result = tuple[list[torch.Tensor], list[torch.Tensor]]
"""Results followed by gradients: computed values and exact values."""


def integers(*shape: int, dtype: torch.dtype = f16, device: str = "cuda", seed: int = 0) -> torch.Tensor:
    """Return small integers."""
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return torch.randint(-2, 3, shape, generator=generator).to(dtype).to(device)


def both(function: Callable[..., Any], exact: Callable[..., Any], *given: torch.Tensor) -> Result:
    """Compute results and gradients with a function and, in float64, with an exact one."""
    found: list[list[torch.Tensor]] = []
    for f, kind in ((function, None), (exact, f64)):
        leaves = [t.detach().to(kind or t.dtype, copy=True).requires_grad_() for t in given]
        y = f(*leaves)
        y.backward(integers(*y.shape, dtype=f32, device=str(y.device), seed=5).to(y.dtype))
        found.append([y.detach(), *(t.grad for t in leaves if t.grad is not None)])
    return found[0], found[1]


def layer(device: str, run_on: str | None) -> Result:
    """Compute a linear layer with bias and gelu."""
    x, w, b = (integers(*s, device=device) for s in ((4, 64, 512), (384, 512), (384,)))
    return both(
        lambda x, w, b: op.linear(x, w / 16, b, "gelu", device=run_on),
        lambda x, w, b: torch.nn.functional.gelu(torch.nn.functional.linear(x, w / 16, b)),
        x, w, b,
    )  # fmt: skip


def added(device: str, run_on: str | None) -> Result:
    """Compute ``addmm`` with a per-column addend and relu."""
    a, b, c = integers(128, 256, device=device), integers(256, 192, device=device), integers(192, device=device)
    return both(
        lambda a, b, c: op.addmm(c, a, b, beta=2.0, alpha=0.5, activation="relu", device=run_on, dtype=f32),
        lambda a, b, c: torch.relu(2 * c + 0.5 * a @ b),
        a, b, c,
    )  # fmt: skip


def batch(device: str, run_on: str | None) -> Result:
    """Compute a batched GEMM in which all batch entries share one matrix."""
    a, b = integers(3, 64, 72, device=device, dtype=bf16), integers(1, 72, 96, device=device, dtype=bf16)
    return both(lambda a, b: op.bmm(a, b, device=run_on, dtype=f32), torch.matmul, a, b)


def plain(device: str, run_on: str | None) -> Result:
    """Compute a GEMM without gradients."""
    a, b = integers(64, 72, device=device), integers(72, 96, device=device)
    return [op.mm(a, b, device=run_on)], [a.double() @ b.double()]


def module(device: str, run_on: str | None) -> Result:
    """Compute ``linear`` with gradients of the weights."""
    x, w = integers(64, 72, device=device), integers(96, 72, device=device)
    return both(lambda w: op.linear(x, w, device=run_on), lambda w: x.double() @ w.t(), w)


def products(device: str, run_on: str | None) -> Result:
    """Compute a GEMM with gradients of both operands."""
    a, b = integers(64, 72, device=device), integers(72, 96, device=device)
    return both(lambda a, b: op.mm(a, b, device=run_on), lambda a, b: a @ b, a, b)


def doubles(device: str, run_on: str | None) -> Result:
    """Compute a GEMM of f64 whose row strides are not multiples of 16 bytes."""
    a, b = integers(6, 5, device=device, dtype=f64), integers(5, 7, device=device, dtype=f64)
    return both(lambda a, b: op.mm(a, b, alpha=0.5, device=run_on), lambda a, b: 0.5 * a @ b, a, b)


def visited(device: str, run_on: str | None) -> Result:
    """Compute a traced epilogue with gradients of all arguments, per column and per element."""

    def f(accum: Any, bias: Any, skip: Any) -> Any:
        return relu(accum + bias) * 0.5 + skip

    shapes = (64, 72), (72, 96), (96,), (64, 96)
    return both(
        lambda a, b, v, s: op.mm(a, b, epilogue=f, args={"bias": v, "skip": s}, device=run_on),
        lambda a, b, v, s: f(a @ b, v, s), *(integers(*s, device=device) for s in shapes),
    )  # fmt: skip


def gated(device: str, run_on: str | None) -> Result:
    """Compute SwiGLU with interleaved weights."""

    def f(accum: Any) -> Any:
        gate, up = pairs(accum / 16.0)
        return silu(gate) * up

    return both(
        lambda a, b: op.mm(a, b, epilogue=f, device=run_on), lambda a, b: f(a @ b),
        integers(64, 72, device=device), integers(72, 192, device=device),
    )  # fmt: skip


def kept(device: str, run_on: str | None) -> Result:
    """Compute a GEMM of several tiles. Its gradients need a saved value, and sums over rows and over columns."""

    def f(accum: Any, bias: Any, scale: Any) -> Any:
        return relu(accum + bias) * scale

    shapes = (300, 40), (40, 136), (136,), (300, 1)
    return both(
        lambda a, b, v, s: op.mm(a, b, epilogue=f, args={"bias": v, "scale": s}, device=run_on),
        lambda a, b, v, s: f(a @ b, v, s), *(integers(*s, device=device) for s in shapes),
    )  # fmt: skip


def mapped(place: str, device: str | None) -> Result:
    """Compute GEMMs in ``torch.vmap``, with gradients, after a plain call that is cached."""
    a, b = integers(2, 64, 72, device=place), integers(72, 96, device=place)
    x, w = a.clone().requires_grad_(), b.clone().requires_grad_()
    plain = op.mm(a[0], b, device=device)
    both = torch.vmap(lambda p, q: op.mm(p, q, device=device))(a, torch.stack([b, 2 * b]))
    found = torch.vmap(lambda p, q: op.mm(p, q, device=device), (0, None))(x, w)
    grad = integers(2, 64, 96, device=place)
    found.backward(grad)
    exact = a.double() @ b.double()
    of_x, of_w = grad.double() @ b.double().T, (a.double().mT @ grad.double()).sum(0)
    twice = torch.stack([exact[0], 2 * exact[1]])
    return [plain, both, found.detach(), x.grad, w.grad], [exact[0], twice, exact, of_x, of_w]  # type: ignore[list-item]


def listed(place: str, device: str | None) -> Result:
    """Compute GEMMs of lists with gradients, and one with a traced epilogue."""
    a, b = ([integers(*shape, device=place, seed=i) for i in range(3)] for shape in ((64, 72), (72, 96)))
    xs, ws = ([t.clone().requires_grad_() for t in x] for x in (a, b))
    bias = integers(96, dtype=f32, device=place).requires_grad_()
    found = op.mm_array(xs, ws, bias=bias, activation="relu", device=device)
    grads = [integers(64, 96, device=place, seed=i + 9) for i in range(3)]
    torch.autograd.backward(found, grads)
    each = integers(3, 1, 96, dtype=f32, device=place)
    visited = op.mm_array(a, b, epilogue=lambda accum, each: 2 * accum + each, args={"each": each}, device=device)
    sums = [x.double() @ y.double() for x, y in zip(a, b)]
    wide = [(s + bias.detach().double()).relu() for s in sums]
    slopes = [g.double() * (y > 0) for g, y in zip(grads, wide)]
    exact = [*wide, *(s @ y.double().T for s, y in zip(slopes, b)), *(x.double().T @ s for s, x in zip(slopes, a))]
    exact += [sum(s.sum(0) for s in slopes), *(2 * s + e.double() for s, e in zip(sums, each))]  # type: ignore[list-item]
    got = [*(t.detach() for t in found), *(t.grad for t in (*xs, *ws, bias)), *visited]
    return got, exact  # type: ignore[return-value]


CALLS: dict[str, Callable[[str, str | None], Result]] = {
    "layer": layer, "added": added, "batch": batch, "plain": plain, "doubles": doubles, "module": module,
    "products": products, "visited": visited, "gated": gated, "kept": kept, "mapped": mapped, "listed": listed,
}  # fmt: skip


def texts() -> Iterator[tuple[str, str]]:
    """Yield the names and texts of the kernels that the calls use on an H200, without computing anything."""
    found: dict[str, Callable[[], str]] = {}

    def launcher_of(variant: Any, cpu: bool = False) -> Callable[..., None]:
        found[variant.name] = variant.text
        return lambda *_, **__: None

    def row_kernel(kernel: Any, **_: Any) -> Any:
        found[kernel.name] = kernel.text
        return SimpleNamespace(kernel=lambda name: lambda *_, **__: None)

    def planned(variant: Any, **_: Any) -> Any:
        found[variant.name] = variant.text
        return SimpleNamespace(kernel=lambda name: lambda *_, **__: None)

    before = product.launcher_of, operation.compiled, row_calls.library
    row_calls.library = row_kernel
    product.launcher_of = launcher_of  # type: ignore[assignment]
    operation.compiled = planned
    matrix_lists._made.cache_clear()  # Cached plans hold launchers.
    try:
        for call in CALLS.values():
            call("cpu", "cpu")
    finally:
        product.launcher_of, operation.compiled, row_calls.library = before
        matrix_lists._made.cache_clear()
    for name, text in found.items():
        yield name, text()
