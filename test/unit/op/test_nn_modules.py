"""Modules of ``op.nn`` for transformer blocks on the interpreter, compared with torch's functions in float64."""

# pyright: basic

from __future__ import annotations

import io
import subprocess
import sys
from typing import Any

import pytest

from cute_dialect import op

torch = pytest.importorskip("torch")
F = torch.nn.functional


def relative(found: Any, exact: Any) -> float:
    return float((found.detach().double() - exact.detach()).norm() / exact.detach().norm())


@pytest.mark.end_to_end
@pytest.mark.sample("False")
@pytest.mark.parametrize("residual", [False, True])
def test_norms(residual: bool) -> None:
    torch.manual_seed(1)
    x, more = torch.randn(2, 5, 48).bfloat16(), torch.randn(2, 5, 48).bfloat16() if residual else None
    total = x.double() if more is None else (x + more).double()
    for layer in (op.nn.RMSNorm(48, run_on="cpu"), op.nn.LayerNorm(48, run_on="cpu")):
        torch.nn.init.normal_(layer.weight)  # f32: the layer converts it
        found = layer(x, more)
        if residual:
            found, added = found
            assert torch.equal(added, x + more)
        weight = layer.weight.bfloat16().double()
        if isinstance(layer, torch.nn.RMSNorm):
            exact = F.rms_norm(total, (48,), weight, 2.0**-23)
        else:
            exact = F.layer_norm(total, (48,), weight, layer.bias.double())
        assert relative(found, exact) < 5e-3


def exact_attention(layer: Any, x: Any) -> Any:
    joined = (x @ layer.qkv.weight.to(x.dtype).T).view(*x.shape[:2], -1, layer.head_dim).transpose(1, 2)
    q, k, v = joined.split([layer.heads, layer.kv_heads, layer.kv_heads], 1)
    if layer.rope_base is not None:
        half = layer.head_dim // 2
        turns = torch.arange(x.shape[1]).double()[:, None] * layer.rope_base ** (-torch.arange(half).double() / half)
        turned = []
        for y in (q, k):
            a, b = y[..., :half], y[..., half:]
            turned.append(torch.cat((a * turns.cos() - b * turns.sin(), b * turns.cos() + a * turns.sin()), -1))
        q, k = turned
    seen = F.scaled_dot_product_attention(q, k, v, is_causal=bool(layer.causal), enable_gqa=True)
    return seen.transpose(1, 2).flatten(2) @ layer.out.weight.to(x.dtype).T


@pytest.mark.slow
@pytest.mark.parametrize(("causal", "base"), [(True, 10_000.0), (False, None)])
def test_attention(causal: bool, base: float | None) -> None:
    torch.manual_seed(2)
    layer: Any = op.nn.Attention(64, 4, 2, causal=causal, rope_base=base, run_on="cpu")
    x, residual = (torch.randn(2, 19, 64).bfloat16().requires_grad_() for _ in range(2))
    found = layer(x, residual)
    y = x.detach().double().requires_grad_()
    exact = exact_attention(layer, y) + residual.detach().double()
    grad = torch.randn_like(found)
    found.backward(grad)
    exact_x, exact_weight = torch.autograd.grad(exact, (y, layer.qkv.weight), grad.double())
    assert relative(found, exact) < 1e-2
    assert relative(x.grad, exact_x) < 2e-2
    assert layer.qkv.weight.grad.dtype == torch.float32
    assert relative(layer.qkv.weight.grad, exact_weight.double()) < 2e-2
    assert torch.equal(residual.grad, grad)
    assert relative(layer(x), exact - residual.detach().double()) < 1e-2
    assert "heads=4, kv_heads=2, head_dim=16" in repr(layer)


@pytest.mark.slow
@pytest.mark.parametrize("gated", [True, False])
def test_mlp(gated: bool) -> None:
    torch.manual_seed(3)
    layer: Any = op.nn.MLP(40, 56, activation="silu" if gated else "gelu", gated=gated, bias=True, run_on="cpu")
    x, residual = (torch.randn(3, 7, 40).bfloat16() for _ in range(2))
    hidden = F.linear(x.double(), layer.up.weight.double(), layer.up.bias.double())
    if gated:
        a, b = hidden.chunk(2, -1)
        hidden = F.silu(a) * b
    else:
        hidden = F.gelu(hidden)
    exact = F.linear(hidden, layer.down.weight.double(), layer.down.bias.double())
    assert relative(layer(x), exact) < 1e-2
    assert relative(layer(x, residual), exact + residual.double()) < 1e-2


@pytest.mark.slow
def test_experts() -> None:
    torch.manual_seed(4)
    layer: Any = op.nn.Experts(32, 24, 4, 2, run_on="cpu")
    x = torch.randn(3, 7, 32).bfloat16().requires_grad_()
    found = layer(x)
    grad = torch.randn_like(found)
    found.backward(grad)
    logits = (x.detach().double() @ layer.router.weight.detach().bfloat16().double().T).bfloat16().double()
    chosen = logits.topk(2).indices  # The experts are those of the rounded logits.
    y = x.detach().double().requires_grad_()
    scores = (y @ layer.router.weight.double().T).softmax(-1).gather(-1, chosen)
    exact = torch.zeros(3, 7, 32, dtype=torch.float64)
    for i in range(2):
        up, down = layer.up.weight.double()[chosen[..., i]], layer.down.weight.double()[chosen[..., i]]
        a, b = (up @ y[..., None])[..., 0].chunk(2, -1)
        weight = (scores[..., i] / scores.sum(-1))[..., None]
        exact = exact + weight * (down @ (F.silu(a) * b)[..., None])[..., 0]
    exact_x, exact_up, exact_router = torch.autograd.grad(
        exact, (y, layer.up.weight, layer.router.weight), grad.double()
    )
    assert relative(found, exact) < 1e-2
    assert relative(x.grad, exact_x) < 2e-2
    assert relative(layer.up.weight.grad, exact_up.double()) < 2e-2
    assert relative(layer.router.weight.grad, exact_router.double()) < 3e-2


def test_arguments() -> None:
    with pytest.raises(op.ArgumentError, match="heads=4 is not a multiple of kv_heads=3"):
        op.nn.Attention(64, 4, 3)
    with pytest.raises(op.ArgumentError, match="dim=66 is not a multiple of heads=4; pass head_dim"):
        op.nn.Attention(66, 4)
    with pytest.raises(op.ArgumentError, match="heads of 24 elements cannot have rotary positions"):
        op.nn.Attention(96, 4)
    for heads in (0, 4.0, -1):
        with pytest.raises(op.ArgumentError, match=r"Attention: heads is .*; pass a positive int"):
            op.nn.Attention(64, heads)  # type: ignore[arg-type]
    with pytest.raises(op.ArgumentError, match="MLP: hidden is -1; pass a positive int"):
        op.nn.MLP(64, -1)
    with pytest.raises(op.ArgumentError, match="top_k=5 exceeds the number of experts, 4"):
        op.nn.Experts(64, 64, 4, 5)
    layer = op.nn.Attention(64, 4, run_on="cpu")
    with pytest.raises(op.ArgumentError, match=r"Attention: x has shape \(2, 3, 64\) and dtype torch.float32; pass"):
        layer(torch.ones(2, 3, 64))
    with pytest.raises(op.ArgumentError, match=r"x has shape \(3, 64\)"):
        layer(torch.ones(3, 64).half())
    x = torch.ones(2, 64).half()
    with pytest.raises(op.ArgumentError, match=r"residual has shape .* and dtype torch.float32; it must be"):
        op.nn.MLP(64, 32, run_on="cpu")(x, x.float())
    with pytest.raises(op.OpError, match="gate"):
        op.nn.MLP(64, 128, gate=True)  # type: ignore[call-arg]


@pytest.mark.parametrize("shape", [(1, 0, 64), (0, 3, 64)])
def test_no_tokens(shape: tuple[int, ...]) -> None:
    x = torch.ones(shape).half()
    assert op.nn.Attention(64, 4, run_on="cpu")(x, x).shape == shape


def packed_linear(bits: int, group: int | None, dtype: Any) -> tuple[Any, Any]:
    """Return a packed layer, and its weights in float64, rounded as the layer rounds them."""
    torch.manual_seed(bits)
    linear = torch.nn.Linear(72, 40).to(dtype)
    size, most = group or 72, 2 ** (bits - 1) - 1
    columns = []
    for part in linear.weight.detach().split(size, 1):
        scale = (part.float().abs().amax(1) / most).to(dtype).double()[:, None]
        columns.append((part.double() / scale).round().clamp(-most - 1, most) * scale)
    return op.nn.PackedLinear.from_linear(linear, bits=bits, group=group, run_on="cpu"), torch.cat(columns, 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bits", "group", "dtype"),
    [(4, 32, torch.float16), (8, None, torch.bfloat16), (4, 128, torch.float32), (8, 64, torch.float16)],
)
def test_packed_linear(bits: int, group: int | None, dtype: Any) -> None:
    layer, weight = packed_linear(bits, group, dtype)
    x = torch.randn(3, 5, 72).to(torch.bfloat16 if dtype is torch.bfloat16 else torch.float16).requires_grad_()
    found = layer(x)
    exact = x.detach().double() @ weight.T + layer.bias.double()
    assert relative(found, exact) < (1e-2 if x.dtype is torch.bfloat16 else 2e-3)
    found.sum().backward()
    assert relative(x.grad, weight.sum(0).expand(3, 5, 72)) < 1e-2 and bool((layer.bias.grad == 15).all())
    copy = op.nn.PackedLinear(72, 40, format=layer.format, dtype=dtype, run_on="cpu")
    copy.load_state_dict(saved_and_loaded(layer))
    assert torch.equal(copy(x), found)


def saved_and_loaded(layer: Any) -> Any:
    """Return the state of a layer after a round trip through the safe reader of torch."""
    file = io.BytesIO()
    torch.save(layer.state_dict(), file)
    file.seek(0)
    return torch.load(file, weights_only=True)


@pytest.mark.slow
def test_sparse_linear() -> None:
    torch.manual_seed(5)
    linear = torch.nn.Linear(64, 24).half()
    layer = op.nn.SparseLinear.from_linear(linear, prune=True, run_on="cpu")
    weight = linear.weight.detach().double()
    small = weight.view(24, 16, 4).abs().argsort(2)[..., :2]
    weight = weight.view(24, 16, 4).scatter(2, small, 0.0).view(24, 64)
    x = torch.randn(3, 5, 64).half()
    found = layer(x)
    assert relative(found, x.double() @ weight.T + linear.bias.double()) < 2e-3
    copy = op.nn.SparseLinear(64, 24, run_on="cpu")
    copy.load_state_dict(saved_and_loaded(layer))
    assert torch.equal(copy(x), found)
    with pytest.raises(
        op.ArgumentError, match=r"^SparseLinear.from_linear: .* more than two nonzero elements; pass prune=True"
    ):
        op.nn.SparseLinear.from_linear(linear, run_on="cpu")


LINEAR, X32 = torch.nn.Linear(64, 24), torch.ones(3, 64)
CPU: dict[str, Any] = {"run_on": "cpu", "dtype": torch.float16}


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: op.nn.PackedLinear.from_linear(LINEAR, bits=5), op.OpError, "PackedLinear.from_linear: bits"),
        (lambda: op.nn.PackedLinear.from_linear(LINEAR, group=48), op.ArgumentError, "group is 48; pass 32, 64, 128"),
        (lambda: op.nn.PackedLinear.from_linear(LINEAR.bias), op.ArgumentError, "pass a torch.nn.Linear"),
        (
            lambda: op.nn.PackedLinear(64, 24, format="ui5"),
            op.ArgumentError,
            "format is 'ui5'; pass .* a GROUP of g32, g64, g128, row",
        ),
        (lambda: op.nn.PackedLinear(64, 24, format=["i8"]), op.ArgumentError, r"format is \['i8'\]; pass"),
        (
            lambda: op.nn.PackedLinear.from_linear(LINEAR, run_on="tpu"),
            op.OptionError,
            "^PackedLinear.from_linear: run_on",
        ),
        (
            lambda: op.nn.PackedLinear(64, 24, run_on="cpu")(X32),
            op.DtypeError,
            "^PackedLinear: input has dtype torch.float32; pass input.half",
        ),
        (
            lambda: op.nn.PackedLinear(64, 24, run_on="cpu")(X32[:, :9].half()),
            op.ShapeError,
            r"^PackedLinear: input has shape \(3, 9\), but weight has 64 columns",
        ),
        (
            lambda: op.nn.SparseLinear(64, 24, run_on="cpu")(X32),
            op.DtypeError,
            "^SparseLinear: input has dtype torch.float32, the weights torch.float16; pass input.to",
        ),
        (
            lambda: op.nn.SparseLinear(64, 24, run_on="cpu")(X32[:, :9].half()),
            op.ShapeError,
            r"^SparseLinear: input has shape \(3, 9\), but weight has",
        ),
        (lambda: op.nn.PackedLinear(64.0, 24), op.ArgumentError, "in_features is 64.0; pass a positive int"),
        (lambda: op.nn.PackedLinear.from_packed(LINEAR), op.DtypeError, "from_packed: packed is of type Linear"),
        (lambda: op.nn.PackedLinear(64, 24).set_extra_state("i8-row-f16"), op.ArgumentError, 'format="i8-row-f16"'),
        (
            lambda: op.nn.SparseLinear(60, 24),
            op.ShapeError,
            "weight has shape .*; pass a multiple of 8 rows and of 16 columns",
        ),
        (
            lambda: op.nn.SparseLinear.from_linear(LINEAR, run_on="cpu"),
            op.DtypeError,
            "^SparseLinear.from_linear: linear.weight has ",
        ),
    ],
)
def test_refused_weights(call: Any, error: type[op.OpError], words: str) -> None:
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize(
    ("layer", "words"),
    [
        (lambda: op.nn.Linear(32, 8, **CPU), r"^Linear: input has shape \(3, 64\) and weight has shape"),
        (lambda: op.nn.MLP(32, 8, **CPU), r"^MLP: x has shape \(3, 64\) and weight has shape"),
        (lambda: op.nn.Experts(32, 8, 4, 2, **CPU), r"^Experts: x has shape \(3, 64\) and weight"),
        (lambda: op.nn.LayerNorm(32, **CPU), r"^LayerNorm: normalized_shape is \(32,\), but input has shape"),
        (lambda: op.nn.RMSNorm(32, **CPU), r"^RMSNorm: normalized_shape is \(32,\), but x has shape"),
        (lambda: op.nn.Embedding(9, 8, **CPU), "^Embedding: input has dtype f16"),
        (lambda: op.nn.Conv2d(8, 8, 3, **CPU), r"^Conv2d: input has shape \(3, 64\)"),
        (lambda: op.nn.Linear(64, 8, dtype=torch.float16, run_on="tpu"), "^Linear: run_on"),
    ],
)
def test_errors_name_the_layer(layer: Any, words: str) -> None:
    with pytest.raises(op.OpError, match=words):
        layer()(X32.half())


def test_sum_of_another_length() -> None:
    layer, x = op.nn.Linear(32, 8, **CPU), X32.half()
    with pytest.raises(op.ShapeError, match=r"^Linear.add: input has shape \(3, 64\); pass \(…, 32\)"):
        layer.add(x, x[:, :8])


@pytest.mark.slow  # Two processes are started.
@pytest.mark.parametrize(
    "first", ["import torch; import cute_dialect.op", "from cute_dialect import op; import torch; op.mm"]
)
def test_packed_weights_are_safe_to_load(first: str, tmp_path: Any) -> None:
    """``torch.load(weights_only=True)`` needs no names of classes."""
    layer, _ = packed_linear(4, 32, torch.float16)
    torch.save({"w": layer.packed}, tmp_path / "w.pt")
    code = f"{first}; import sys; print(torch.load(sys.argv[1], weights_only=True)['w'])"
    command = [sys.executable, "-c", code, str(tmp_path / "w.pt")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == repr(layer.packed)
