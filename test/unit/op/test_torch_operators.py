"""``torch.ops.cute`` on the interpreter: gradients compared with float64, ``opcheck``, ``torch.compile`` and export."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch_calls import CALLS  # noqa: E402

import cute_dialect.op.operators.table  # noqa: E402, F401  (torch.ops.cute is there)
from cute_dialect import op  # noqa: E402
from cute_dialect.op.functions import gemm  # noqa: E402

f16, f32 = torch.float16, torch.float32
mm, bmm = partial(op.mm, device="cpu"), partial(op.bmm, device="cpu")


@pytest.fixture(autouse=True)
def tf32() -> Iterator[None]:
    """Compute f32 as tf32, which is faster here and exact for small integers."""
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = True
    yield
    torch.backends.cuda.matmul.allow_tf32 = before


def integers(*shape: int, dtype: torch.dtype = f16, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return torch.randint(-2, 3, shape, generator=generator).to(dtype)


def check(function: Callable[..., Any], exact: Callable[..., Any], *given: torch.Tensor, within: float = 0.0) -> None:
    """Compare results and gradients. Integers must be exact."""
    ours = [t.clone().requires_grad_() for t in given]
    doubles = [t.double().requires_grad_() for t in given]
    found, want = function(*ours), exact(*doubles)
    assert found.shape == want.shape and found.requires_grad
    weights = integers(*found.shape, seed=9)
    (found * weights.to(found.dtype)).sum().backward()
    (want * weights.double()).sum().backward()
    for got, wanted in ((found, want), *((x.grad, y.grad) for x, y in zip(ours, doubles))):
        assert got is not None and wanted is not None and got.shape == wanted.shape
        assert float((got.double() - wanted).detach().abs().max()) <= within
    assert all(x.grad is not None and x.grad.dtype == x.dtype for x in ours)


@pytest.mark.end_to_end
@pytest.mark.sample("dtype0-out0")
@pytest.mark.parametrize(("dtype", "out"), [(f16, f16), (torch.bfloat16, f32), (f32, f32)])
def test_products(dtype: torch.dtype, out: torch.dtype) -> None:
    a, b = integers(24, 40, dtype=dtype), integers(40, 32, dtype=dtype)
    check(lambda a, b: mm(a, b, alpha=0.5, dtype=out), lambda a, b: 0.5 * a @ b, a, b)
    check(lambda a, b: mm(a.t(), b.t(), dtype=out), lambda a, b: a.t() @ b.t(), a.t().contiguous(), b.t().contiguous())


@pytest.mark.slow
@pytest.mark.parametrize(("of_a", "of_b"), [(3, 3), (1, 3), (3, 1), (1, 1)])
def test_batches(of_a: int, of_b: int) -> None:
    """The gradient of a shared matrix is summed over the batch."""
    a, b = integers(of_a, 24, 40), integers(of_b, 40, 32)
    check(lambda a, b: bmm(a, b, alpha=2.0), lambda a, b: 2.0 * torch.matmul(a, b), a, b)
    check(
        lambda a, b: bmm(a.expand(3, -1, -1), b.expand(3, -1, -1)),
        lambda a, b: torch.matmul(a.expand(3, -1, -1), b.expand(3, -1, -1)),
        a, b,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(24, 32), (1, 32), (32,), (24, 1), ()])
@pytest.mark.parametrize("rows", [False, True])
def test_operators_with_addend_and_bias(shape: tuple[int, ...], rows: bool) -> None:
    a, b, c, bias = (
        integers(24, 40),
        integers(40, 32),
        integers(*shape, dtype=f32),
        integers(24, 1) if rows else integers(32),
    )
    check(
        lambda a, b, c, bias: op.addmm(
            c, a, b, beta=2.0, alpha=0.5, bias=bias, activation="relu", device="cpu", dtype=f32
        ),
        lambda a, b, c, bias: torch.relu(2 * c + 0.5 * a @ b + bias),
        a, b, c, bias,
    )  # fmt: skip
    batch = integers(2, 24, 32, dtype=f32)[..., : shape[-1] if shape else 1]
    check(
        lambda a, b, c, bias: op.baddbmm(c, a, b, bias=bias, device="cpu", dtype=f32),
        lambda a, b, c, bias: torch.matmul(a, b) + c + bias,
        integers(2, 24, 40), b[None], batch, bias,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("activation", ["gelu", "gelu_tanh", "silu", "tanh", "sigmoid", "softplus"])
def test_activations(activation: str) -> None:
    """Derivatives use the pre-activation values that the forward pass saved."""
    x, weight, bias = integers(2, 12, 40, dtype=f32), integers(32, 40, dtype=f32) / 8, integers(32, dtype=f32)
    gelu_tanh = partial(torch.nn.functional.gelu, approximate="tanh")
    functions = {"gelu_tanh": gelu_tanh, "tanh": torch.tanh, "sigmoid": torch.sigmoid}
    exact = functions.get(activation) or getattr(torch.nn.functional, activation)
    check(
        lambda x, w, b: op.linear(x, w, b, activation, device="cpu"),
        lambda x, w, b: exact(torch.nn.functional.linear(x, w, b)),
        x, weight, bias, within=3e-2,  # Gradient GEMMs use tf32, with 10 mantissa bits.
    )  # fmt: skip
    c = integers(12, 32, dtype=f32)
    check(
        lambda x, w, c, b: mm(x, w, c=c, beta=0.5, bias=b, alpha=0.5, activation=activation),
        lambda x, w, c, b: exact(0.5 * x @ w + 0.5 * c + b),
        x[0], weight.t(), c, bias, within=3e-2,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("a", "b"), [((40,), (40,)), ((24, 40), (40,)), ((40,), (3, 40, 32)), ((2, 1, 24, 40), (3, 40, 32))], ids=str
)  # fmt: skip
def test_matmul(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    check(partial(op.matmul, device="cpu"), torch.matmul, integers(*a), integers(*b, seed=1))


@pytest.mark.slow
def test_the_second_derivative() -> None:
    a, b = integers(24, 40, dtype=f32), integers(40, 32, dtype=f32)
    found: list[torch.Tensor] = []
    for function, kind in ((mm, f32), (torch.matmul, torch.float64)):
        x, y = a.to(kind).requires_grad_(), b.to(kind).requires_grad_()
        (first,) = torch.autograd.grad(function(x, y).square().sum(), x, create_graph=True)
        found += torch.autograd.grad((first * first.detach().sign()).sum(), y)
    assert torch.equal(found[0].double(), found[1])
    x = a.clone().requires_grad_()
    (first,) = torch.autograd.grad(mm(x, b, activation="silu").sum(), x, create_graph=True)
    with pytest.raises(
        op.UnsupportedError,
        match=("mm: an activation has no second derivative; apply the activation with torch instead"),
    ):
        first.sum().backward()


@pytest.mark.slow
def test_operators_are_used_only_if_gradients_are_needed() -> None:
    a, b = integers(24, 40).requires_grad_(), integers(40, 32)
    assert mm(a, b).requires_grad and not mm(a.detach(), b).requires_grad
    out = torch.empty(24, 32, dtype=f16)
    with torch.no_grad():
        assert mm(a, b, out) is out and not mm(a, b).requires_grad
        assert torch.equal(mm(a, b, hook=lambda x, row, column: x), out)
    with torch.inference_mode():
        assert torch.equal(mm(a, b), out)
    code = (
        "import sys, torch; from cute_dialect import op; a = torch.ones(16, 16).half(); op.mm(a, a, device='cpu'); "
        "assert 'cute_dialect.op.operators.table' not in sys.modules; "
        "op.mm(a.requires_grad_(), a, device='cpu').sum().backward(); assert a.grad.shape == (16, 16)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_arguments_without_gradients_are_rejected() -> None:
    a, b = integers(24, 40).requires_grad_(), integers(40, 32)
    for options, said in (
        ({"out": torch.empty(24, 32, dtype=f16)}, "mm: out is not supported with gradients"),
        ({"hook": lambda x, row, column: x}, "mm: hook is not supported with gradients"),
        ({"checks": ["race"]}, "mm: checks is not supported with gradients"),
    ):
        with pytest.raises(op.UnsupportedError, match=said):
            mm(a, b, **options)  # pyright: ignore[reportArgumentType]
    e4m3 = torch.zeros(24, 48).to(torch.float8_e4m3fn).requires_grad_()
    with pytest.raises(op.DtypeError, match="mm: a has dtype f8E4M3FN, which has no gradients"):
        mm(e4m3, e4m3.t())
    with pytest.raises(op.ShapeError, match=r"mm: b has shape \(41, 32\), but a .*; pass b of \(40, N\)"):
        mm(a, integers(41, 32))
    with pytest.raises(op.DeviceError, match="no GPU was found"):
        op.mm(a, b)


A, B, BIAS, C = (
    integers(24, 40, dtype=f32),
    integers(40, 32, dtype=f32),
    integers(32, dtype=f32),
    integers(24, 32, dtype=f32),
)
ops = torch.ops.cute
SAMPLES: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = [
    (ops.mm, (A, B), {}),
    (ops.mm, (A, B, C, BIAS), {"alpha": 0.5, "beta": 2.0, "activation": "relu"}),
    (ops.mm, (A.half(), B.half(), None, BIAS), {"dtype": torch.bfloat16, "activation": "silu"}),
    (ops.bmm, (A[None], B[None].expand(2, -1, -1)), {}),
    (ops.bmm, (torch.stack([A, A]), B[None], C), {"beta": 0.5}),
    (ops.mm_out, (A, B, torch.zeros(24, 32), C), {}),
    (ops.bmm_out, (A[None], B[None], torch.zeros(1, 24, 32)), {"alpha": 2.0}),
    (ops.mm_kept, (A, B, C, BIAS), {"alpha": 0.5, "beta": 2.0, "activation": "gelu", "math": "tf32"}),
    (ops.bmm_kept, (torch.stack([A, A]).half(), B[None].half()), {"activation": "silu", "dtype": f32}),
    (ops.mm_slope, (C, 2 * C, "gelu"), {}),
    (ops.bmm_slope, (torch.stack([C, C]), torch.stack([C, -C]), "leaky_relu(0.5)"), {}),
    (ops.addmm, (C, A, B, BIAS), {"beta": 0.5}),
    (ops.baddbmm, (C, A[None], B[None]), {}),
    (ops.linear, (A[None], B.t().contiguous(), BIAS, "relu"), {}),
    (ops.matmul, (A[None, None], torch.stack([B, B])), {}),
]


@pytest.mark.slow
def test_tensors_saved_for_backward(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step with gradients runs three GEMMs, and the torch operator runs four. The derivative kernel reduces a
    per-column bias. A per-row bias and 8-bit results have gradients too.
    """
    seen: list[str] = []
    product = gemm.product

    def counted(name: str, *given: Any, **more: Any) -> Any:
        seen.append(name)
        return product(name, *given, **more)

    monkeypatch.setattr(gemm, "product", counted)
    for shape, call, products in (
        ((32,), mm, 3), ((24, 1), mm, 3), ((1, 32), mm, 3), ((32,), partial(ops.mm, device="cpu"), 4),
    ):  # fmt: skip
        x, y, bias = (t.clone().requires_grad_() for t in (A.half(), B.half(), integers(*shape)))
        wide = [t.detach().double().requires_grad_() for t in (x, y, bias)]
        seen.clear()
        call(x, y, bias=bias, activation="silu").backward(C.half())
        assert len(seen) == products
        torch.nn.functional.silu(wide[0] @ wide[1] + wide[2]).backward(C.double())
        for got, want in zip((x, y, bias), wide):
            assert got.grad is not None and want.grad is not None
            assert float((got.grad.double() - want.grad).abs().max()) < 2e-3 * float(want.grad.abs().max())
    kept = ops.mm_kept(A.half(), B.half(), activation="gelu", dtype=torch.float8_e4m3fn, device="cpu")
    assert kept[0].dtype == torch.float8_e4m3fn and torch.equal(kept[1], A.half() @ B.half())
    x = A.clone().requires_grad_()
    ops.mm_kept(x, B, activation="gelu", device="cpu")[1].sum().backward()
    assert x.grad is not None and torch.equal(x.grad, torch.ones(24, 32) @ B.t())
    wrong = integers(24, 31, dtype=f32)
    with pytest.raises(op.ShapeError, match=r"mm: c has shape \(24, 31\); pass an array that broadcasts to \(24, 32\)"):
        mm(x, B, c=wrong, activation="gelu")


@pytest.mark.slow
@pytest.mark.parametrize("gradients", [False, True])
@pytest.mark.parametrize("number", range(len(SAMPLES)), ids=lambda i: f"{i}-{SAMPLES[i][0].__name__}")
def test_opcheck(number: int, gradients: bool) -> None:
    operator, given, more = SAMPLES[number]
    if gradients and operator in (ops.mm_out, ops.bmm_out, ops.mm_slope, ops.bmm_slope):
        return  # ``out`` operators have no gradients, and slopes have no second derivatives.

    def own(t: Any) -> Any:
        return t.detach().clone().requires_grad_(gradients) if isinstance(t, torch.Tensor) else t

    given = tuple([own(t) for t in given])
    composed = operator in (ops.addmm, ops.baddbmm, ops.linear, ops.matmul)
    tests = [
        "test_schema",
        "test_faketensor",
        "test_aot_dispatch_dynamic",
        *([] if composed else ["test_autograd_registration"]),
    ]
    torch.library.opcheck(operator.default, given, {"device": "cpu", **more}, test_utils=tests)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("dynamic", [False, True])
def test_compile(backend: str, dynamic: bool) -> None:
    """Operators compile to one graph, with and without gradients, and with ``out``."""
    torch.compiler.reset()

    def f(x: Any, w: Any, b: Any, s: Any) -> Any:
        y = op.linear(x, w, b, "gelu", device="cpu")
        z = op.bmm(y, y.mT, device="cpu", alpha=0.125)
        return op.matmul(z, op.addmm(s, x[0], w.t(), beta=2.0, device="cpu"), device="cpu").relu()

    def plain(x: Any, w: Any, b: Any, s: Any) -> Any:
        y = torch.nn.functional.gelu(torch.nn.functional.linear(x, w, b))
        return torch.matmul(0.125 * y @ y.mT, 2 * s + x[0] @ w.t()).relu()

    compiled = torch.compile(f, fullgraph=True, backend=backend, dynamic=dynamic)
    given = [integers(2, 24, 40, dtype=f32) / 4, integers(32, 40, dtype=f32) / 4, integers(32, dtype=f32), C]
    ours, doubles = [t.clone().requires_grad_() for t in given], [t.double().requires_grad_() for t in given]
    found, want = compiled(*ours), plain(*doubles)
    scale = float(want.detach().abs().max())
    assert float((found.double() - want).detach().abs().max()) < 4e-3 * scale
    found.sum().backward()
    want.sum().backward()
    for x, y in zip(ours, doubles):
        assert x.grad is not None and y.grad is not None
        assert float((x.grad.double() - y.grad).abs().max()) < 4e-3 * float(y.grad.abs().max())
    with torch.no_grad():
        assert torch.equal(compiled(*given), f(*given))

    def into(a: Any, b: Any, out: Any) -> Any:
        return op.mm(a, b, out, bias=BIAS, device="cpu") + 1

    out = torch.zeros(24, 32)
    assert torch.equal(
        torch.compile(into, fullgraph=True, backend=backend, dynamic=dynamic)(A, B, out), A @ B + BIAS + 1
    )
    assert torch.equal(out, A @ B + BIAS)


COMPILED: dict[str, Any] = {
    "linear": lambda x: op.linear(x, x, activation="gelu", device="cpu"),
    "softmax": lambda x: op.softmax(x, device="cpu"),
    "rms_norm": lambda x: op.rms_norm(x, device="cpu"),
    "sum": lambda x: op.sum(x, device="cpu"),
    "add": lambda x: op.add(x, x, device="cpu"),
    "mm": lambda x: op.mm(x, x.t(), device="cpu"),
    "attention": lambda x: op.attention(x[None, None], x[None, None], x[None, None], device="cpu"),
    "conv2d": lambda x: op.conv2d(x.view(1, 8, 8, 4), x[:8].view(4, 8, 2, 4), device="cpu"),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("error:Dynamo detected")
@pytest.mark.sample("softmax")
@pytest.mark.parametrize("name", COMPILED)
def test_functions_compile_to_one_graph(name: str) -> None:
    """Functions with gradients compile to one graph, without a Dynamo warning."""
    torch.compiler.reset()
    ours = torch.randn(8, 32).half().requires_grad_()
    plain = ours.detach().clone().requires_grad_()
    found, want = torch.compile(COMPILED[name], fullgraph=True, backend="aot_eager")(ours), COMPILED[name](plain)
    assert torch.equal(found, want)
    found.sum().backward()
    want.sum().backward()
    assert ours.grad is not None and torch.equal(ours.grad, plain.grad)


@pytest.mark.slow
def test_compile_is_the_first_call() -> None:
    code = (
        "import torch; from cute_dialect import op\n"
        "f = torch.compile(lambda a, b: op.mm(a, b, device='cpu'), fullgraph=True, backend='eager')\n"
        "a = torch.ones(16, 16).half(); assert torch.equal(f(a, a), torch.full((16, 16), 16.0).half())"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.slow
def test_module() -> None:
    """A layer trains like torch's."""
    torch.manual_seed(0)
    ours = op.nn.Linear(40, 32, activation="relu", run_on="cpu")
    theirs = torch.nn.Linear(40, 32)
    with torch.no_grad():
        for p in ours.parameters():
            p.copy_(integers(*p.shape, dtype=f32))
    theirs.load_state_dict(ours.state_dict())
    x = integers(2, 12, 40, dtype=f32)
    for layer, f in ((ours, lambda y: y), (theirs, torch.relu)):
        step = torch.optim.SGD(layer.parameters(), lr=0.5)
        f(layer(x)).sum().backward()
        step.step()
    assert all(torch.equal(p, q) for p, q in zip(ours.parameters(), theirs.parameters()))
    assert repr(ours) == "Linear(in_features=40, out_features=32, bias=True, activation=relu)"
    program = torch.export.export(ours, (x,))
    assert "torch.ops.cute.mm" in program.graph_module.code
    assert torch.equal(program.module()(x), ours(x))
    with torch.no_grad():
        assert op.nn.Linear(40, 32, bias=False, run_on="cpu")(x).shape == (2, 12, 32)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["added", "batch", "plain", "doubles", "module", "visited"])
def test_calls_of_the_gpu_tests(name: str) -> None:
    found, exact = CALLS[name]("cpu", "cpu")
    assert len(found) == len(exact) and all(torch.equal(x.double(), y) for x, y in zip(found, exact))
