"""``torch.ops.cute.grouped_mm`` and ``op.nn.GroupedLinear`` on the interpreter, compared with torch for each group."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from cute_dialect import op  # noqa: E402
from cute_dialect.op.arrays import library as arrays  # noqa: E402
from cute_dialect.op.execute import grouped as calls  # noqa: E402
from cute_dialect.op.execute import recording  # noqa: E402
from cute_dialect.op.execute.call_cache import KnownCalls  # noqa: E402
from cute_dialect.op.functions import grouped as functions  # noqa: E402

ENDS = torch.tensor([5, 5, 30, 37], dtype=torch.int32)
PARTS = [slice(0, 5), slice(5, 5), slice(5, 30), slice(30, 37)]


def small(*shape: int, seed: int = 0) -> Any:
    made = torch.randint(-2, 3, shape, generator=torch.Generator().manual_seed(seed + sum(shape)))
    return made.half().requires_grad_()


def same(found: tuple[Any, ...], wanted: tuple[Any, ...]) -> bool:
    return all(torch.equal(x.float(), y) for x, y in zip(found, wanted, strict=True))


def gradients(result: Any, of: tuple[Any, ...], grad: Any) -> tuple[Any, ...]:
    return torch.autograd.grad(result, of, grad.to(result.dtype))


def by_torch(a: Any, b: Any, bias: Any, parts: list[slice] = PARTS) -> Any:
    rows = [torch.zeros(b.shape[-1])] * len(a)
    for g, part in enumerate(parts):
        of_group = torch.relu(a[part].float() @ b[g].float() + bias[g].float())
        rows[part] = of_group.unbind()
    return torch.stack(rows)


@pytest.mark.slow
def test_gradients_of_rows() -> None:
    a, b, bias, grad = small(40, 24), small(4, 24, 16), small(4, 16), small(40, 16, seed=1).detach()
    with torch.no_grad():
        a[37:] = float("nan")
        grad[37:] = float("inf")
    found = op.grouped_mm(a, b, ENDS, bias=bias, activation="relu", rest="zero", device="cpu")
    wanted = by_torch(a, b, bias)
    assert torch.equal(found.float(), wanted)
    exact = gradients(wanted, (a, b, bias), torch.where(torch.arange(40)[:, None] < 37, grad, 0))
    assert same(gradients(found, (a, b, bias), grad), tuple(x.float() for x in exact))


def _compiled_cases() -> dict[str, tuple[Any, ...]]:
    """Return operands and groups of each kind of grouping."""
    lengths, row_groups = torch.tensor([0, 3, 8], dtype=torch.int32), torch.full((24,), -1, dtype=torch.int32)
    row_groups[2:9], row_groups[16:24] = 0, 2
    return {
        "rows": (small(40, 24), small(4, 24, 16), {"offs": ENDS}),
        "bias": (small(40, 24), small(4, 24, 16), {"offs": ENDS, "bias": small(4, 16).detach()}),
        "steps": (small(24, 40), small(40, 16), {"offs": ENDS}),
        "columns": (small(4, 16, 24), small(24, 40), {"offs": ENDS}),
        "lengths": (small(3, 8, 24), small(3, 24, 16), {"lengths": lengths}),
        "row_groups": (small(24, 24), small(3, 24, 16), {"row_groups": row_groups}),
    }


@pytest.mark.slow
@pytest.mark.parametrize("case", _compiled_cases())
def test_gradients_inside_compile(case: str) -> None:
    a, b, groups = _compiled_cases()[case]

    def loss(a: Any, b: Any) -> Any:
        return op.grouped_mm(a, b, **groups, rest="zero", device="cpu").float().square().sum()

    torch._dynamo.reset()
    compiled = torch.compile(loss, backend="aot_eager", fullgraph=True)
    found, wanted = (torch.autograd.grad(f(a, b), (a, b)) for f in (compiled, loss))
    assert all(torch.equal(x, y) for x, y in zip(found, wanted, strict=True))


@pytest.mark.slow
def test_gradients_by_the_group_of_each_row() -> None:
    a, b, bias, grad = small(24, 24), small(3, 24, 16), small(3, 16), small(24, 16, seed=1).detach()
    groups = torch.full((24,), -1, dtype=torch.int32)
    groups[2:9], groups[16:24] = 0, 2
    found = op.grouped_mm(a, b, row_groups=groups, bias=bias, activation="relu", rest="zero", device="cpu")
    wanted = by_torch(a, b, bias, [slice(2, 9), slice(0, 0), slice(16, 24)])
    of = (a, b, bias)
    assert torch.equal(found.float(), wanted)
    assert same(gradients(found, of, grad), tuple(x.float() for x in gradients(wanted, of, grad)))


@pytest.mark.slow
def test_gradients_of_steps_columns_and_rows_in_use() -> None:
    x, y, grad = small(40, 24), small(40, 16), small(4, 24, 16, seed=1).detach()
    found = op.grouped_mm(x.t(), y, ENDS, device="cpu")
    wanted = torch.stack([x[p].float().t() @ y[p].float() for p in PARTS])
    assert same(gradients(found, (x, y), grad), tuple(t.float() for t in gradients(wanted, (x, y), grad)))
    w, grad = small(4, 16, 24), small(16, 40, seed=1).detach()
    found = op.grouped_mm(w, x.t(), ENDS, rest="zero", device="cpu")
    wanted = torch.cat([*[w[g].float() @ x[p].float().t() for g, p in enumerate(PARTS)], torch.zeros(16, 3)], 1)
    assert same(gradients(found, (x, w), grad), tuple(t.float() for t in gradients(wanted, (x, w), grad)))
    a, b, lengths = small(3, 8, 24), small(3, 24, 16), torch.tensor([0, 3, 8], dtype=torch.int32)
    found = op.grouped_mm(a, b, lengths=lengths, rest="zero", device="cpu")
    inside = (torch.arange(8) < lengths[:, None])[..., None]
    wanted, grad = torch.where(inside, a.float() @ b.float(), 0), small(3, 8, 16, seed=1).detach()
    assert same(gradients(found, (a, b), grad), tuple(t.float() for t in gradients(wanted, (a, b), grad)))


@pytest.mark.slow
def test_the_operator_and_the_module() -> None:
    layer = op.nn.GroupedLinear(4, 24, 16, activation="gelu", dtype=torch.float16, run_on="cpu")
    x = small(40, 24)
    found = layer(x, ENDS)
    wanted = torch.cat([
        *(torch.nn.functional.gelu(x[p].float() @ layer.weight[g].float().t() + layer.bias[g].float())
          for g, p in enumerate(PARTS)), torch.zeros(3, 16),
    ])  # fmt: skip
    assert found.float().allclose(wanted, atol=4e-3)
    of = (x, layer.weight, layer.bias)
    grad = torch.ones_like(found)
    for mine, exact in zip(gradients(found, of, grad), gradients(wanted, of, grad)):
        assert mine.float().allclose(exact.float(), atol=3e-2)
    assert "4 groups, in_features=24" in repr(layer)
    given = (x.detach(), small(4, 24, 16).detach(), ENDS)
    torch.library.opcheck(torch.ops.cute.grouped_mm, given, {"rest": "zero", "device": "cpu"})
    with pytest.raises(op.UnsupportedError, match="out cannot be used when gradients are required"):
        op.grouped_mm(x, given[1], ENDS, out=torch.zeros(40, 16).half(), device="cpu")
    with pytest.raises(op.DtypeError, match="a has dtype f8E4M3FN, which has no gradients"):
        b = torch.zeros(4, 24, 16).to(torch.float8_e4m3fn).requires_grad_()
        op.grouped_mm(torch.zeros(40, 24).to(torch.float8_e4m3fn), b, ENDS, device="cpu")


class Noted:
    """A kernel that computes nothing and records the addresses of its replayed launches."""

    alignment = 16

    def __init__(self) -> None:
        self.launched: list[tuple[int, ...]] = []

    def __call__(self, *given: Any, **_: Any) -> None:
        return None

    def by_address(self, *given: Any) -> Any:
        return lambda *addresses: self.launched.append(addresses)


def test_cached_calls_are_launched_directly(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Noted()
    monkeypatch.setattr(functions, "KNOWN", KnownCalls())
    monkeypatch.setattr(arrays, "_check_place", lambda *_: None)
    monkeypatch.setattr(calls, "gpu_of", lambda _: ("NVIDIA H200", 132))
    monkeypatch.setattr(calls, "kernel_of", lambda config, cpu=False: kernel)
    monkeypatch.setattr(recording, "current_stream_of_torch", lambda: lambda device: 77)
    a, b, offs = torch.zeros(8, 16).half(), torch.zeros(3, 16, 8).half(), torch.zeros(3, dtype=torch.int32)
    given = {"alpha": 2.0, "activation": "relu"}
    op.grouped_mm(a, b, offs, **given)
    assert not kernel.launched
    x = torch.ones(8, 16).half()
    for turn in range(3):  # The first hit uses the lookup, and the later ones a guard.
        found = op.grouped_mm(x, b, offs, **given)
        assert found.shape == (8, 8) and len(kernel.launched) == turn + 1
        assert {*map(torch.Tensor.data_ptr, (x, b, found, offs))} <= {*kernel.launched[-1]}
    x.requires_grad_()
    for turn in range(3):  # The first call is computed, and the later ones are replayed with gradients.
        found = op.grouped_mm(x, b, offs, **given)
        assert found.requires_grad and len(kernel.launched) == turn + 3
    with torch.no_grad():
        assert op.grouped_mm(x, b, offs, **given) is not None and len(kernel.launched) == 6
    away = torch.zeros(132).half()[4:].view(8, 16)  # Another alignment misses the cache.
    op.grouped_mm(away, b, offs, **given)
    assert len(kernel.launched) == 6
