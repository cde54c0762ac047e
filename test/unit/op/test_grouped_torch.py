"""``torch.ops.cute.grouped_mm`` and ``op.nn.GroupedLinear`` on the interpreter: gradients against torch's own products,
group by group.
"""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from cute_dialect import op  # noqa: E402
from cute_dialect.op.grouped import functions  # noqa: E402
from cute_dialect.op.grouped.known import KnownGroups, Launch  # noqa: E402

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
    with pytest.raises(op.DtypeError, match="f8E4M3FN has no gradients"):
        b = torch.zeros(4, 24, 16).to(torch.float8_e4m3fn).requires_grad_()
        op.grouped_mm(torch.zeros(40, 24).to(torch.float8_e4m3fn), b, ENDS, device="cpu")


def test_calls_that_are_known() -> None:
    launched: list[tuple[int, ...]] = []

    def launch(*given: int) -> None:
        launched.append(given)

    calls = KnownGroups(lambda number: 77)
    a, b, offs, result = torch.zeros(8, 16), torch.zeros(3, 16, 8), torch.zeros(4, dtype=torch.int32), torch.zeros(8, 8)
    first = [Launch(launch, [a.data_ptr(), b.data_ptr(), result.data_ptr(), offs.data_ptr() + 4, None])]
    assert calls.again([a, b, offs], "as ever") is None
    assert calls.remember([a, b, offs], "as ever", result, first)
    others = [torch.ones(8, 16), torch.ones(3, 16, 8), torch.ones(4, dtype=torch.int32)]
    found = calls.again(others, "as ever")
    x, y, ends = (t.data_ptr() for t in others)
    assert found.shape == (8, 8) and launched == [(77, x, y, found.data_ptr(), ends + 4, 0)]
    assert calls.again(others, "otherwise") is None and calls.again([*others[:2], offs.long()], "as ever") is None
    assert calls.again([torch.ones(129)[1:].view(8, 16), *others[1:]], "as ever") is None  # another alignment
    own = [Launch(launch, [a.data_ptr(), torch.ones(3).data_ptr()])]
    assert not calls.remember([a, b, offs], "copied", result, own)
    assert not calls.remember([a, a, offs], "twice", result, first) and len(calls) == 1


def test_a_call_that_is_known_is_launched_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    launched: list[tuple[int, ...]] = []
    calls = KnownGroups(lambda number: 77)
    monkeypatch.setattr(functions, "KNOWN", calls)
    a, b, offs, result = torch.zeros(8, 16), torch.zeros(3, 16, 8), torch.zeros(3, dtype=torch.int32), torch.zeros(8, 8)
    how = (2.0, "relu", "keep", None, True, False, True, True)
    there = [x.data_ptr() for x in (a, b, result, offs)]
    assert calls.remember([a, b, offs], how, result, [Launch(lambda *given: launched.append(given), there)])
    given = {"alpha": 2.0, "activation": "relu"}
    x = torch.ones(8, 16)
    for turn in range(3):  # found, then guarded
        found = op.grouped_mm(x, b, offs, **given)
        assert found.shape == (8, 8) and len(launched) == turn + 1
        assert launched[-1] == (77, x.data_ptr(), b.data_ptr(), found.data_ptr(), offs.data_ptr())
    assert calls.again([x, b, offs], (3.0, *how[1:])) is None
    x.requires_grad_()
    assert calls.again([x, b, offs], how) is None and len(launched) == 3  # gradients are torch's dispatcher's
    with torch.no_grad():
        assert op.grouped_mm(x, b, offs, **given) is not None and len(launched) == 4
    away = torch.zeros(132)[4:].view(8, 16)  # begins at a whole 16 bytes, but not where the others do
    assert op.grouped_mm(away, b, offs, **given) is not None and len(launched) == 5
