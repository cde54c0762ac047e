"""``op.grouped_mm`` on the GPU compared with float64, on small integers with exact results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from grouped_calls import CASES, ENDS, LIST_KINDS, LISTS, OTHERS, Case, list_plan, lists_of  # noqa: E402

from cute_dialect import op  # noqa: E402
from cute_dialect.op.functions import grouped as functions  # noqa: E402


@pytest.fixture(autouse=True)
def _prebuilt(prebuilt: Callable[[str], None]) -> None:
    prebuilt("grouped")


def wanted(case: Case, a: Any, b: Any) -> Any:
    """Compute the expected result group by group."""
    ends = ENDS[case.ends]
    parts = [slice(begin, end) for begin, end in zip([0, *ends], ends)]
    a, b = a.double(), b.double()
    if case.form == "k":
        return torch.stack([a[:, p] @ b[p] for p in parts])
    if case.form == "n":
        found = torch.zeros(a.shape[1], b.shape[1], dtype=torch.float64, device=a.device)
        for g, p in enumerate(parts):
            found[:, p] = a[g] @ b[:, p]
        return found
    found = torch.zeros(a.shape[0], b.shape[2], dtype=torch.float64, device=a.device)
    with_bias = ("bias", True) in case.options
    bias = torch.arange(len(ends) * b.shape[2], device=a.device).reshape(len(ends), -1) % 8
    for g, p in enumerate(parts):
        product = a[p] @ b[g]
        found[p] = torch.relu(product + bias[g]) if with_bias else product
    return found


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_exact(case: Case) -> None:
    a, b = case.operands("cuda")
    found, exact = case.call(a, b), wanted(case, a, b)
    assert torch.equal(found.double(), exact.to(found.dtype).double())


def test_a_graph_is_replayed_with_other_ends() -> None:
    case = Case("m", "skewed")
    a, b = case.operands("cuda")
    a = torch.nan_to_num(a)
    offs = torch.tensor(ENDS["skewed"], dtype=torch.int32, device="cuda")
    out = torch.empty(a.shape[0], b.shape[2], dtype=a.dtype, device="cuda")
    op.grouped_mm(a, b, offs, out=out, rest="zero")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        op.grouped_mm(a, b, offs, out=out, rest="zero")
    for ends in ([10, 20, 30, 40, 50, 60, 70], [0, 0, 0, 0, 0, 0, 300], ENDS["skewed"]):
        offs.copy_(torch.tensor(ends, dtype=torch.int32))
        out.fill_(float("nan"))
        graph.replay()
        exact = torch.zeros_like(out)
        for g, (begin, end) in enumerate(zip([0, *ends], ends)):
            exact[begin:end] = a[begin:end].float() @ b[g].float()
        assert torch.equal(out, exact), ends


def test_rows_of_no_group_are_not_written() -> None:
    case = Case("m", "skewed")
    a, b = case.operands("cuda")
    offs = torch.tensor(ENDS["skewed"], dtype=torch.int32, device="cuda")
    for _ in range(100):
        out = torch.full((a.shape[0], b.shape[2]), float("nan"), dtype=a.dtype, device="cuda")
        op.grouped_mm(a, b, offs, out=out)
        assert bool(out[offs[-1] :].isnan().all()) and not bool(out[: offs[-1]].isnan().any())


def test_a_call_like_an_earlier_one() -> None:
    case = Case("m", "skewed", options=(("activation", "relu"), ("bias", True)))
    functions.KNOWN.clear()
    a, b = case.operands("cuda")
    for turn in range(3):
        x, y = torch.roll(a, turn, 1), torch.roll(b, 2 * turn, 1)
        found, exact = case.call(x, y), wanted(case, x, y)
        assert torch.equal(found.double(), exact.to(found.dtype).double()), turn
    assert len(functions.KNOWN) == 1


@pytest.mark.parametrize("name", OTHERS)
def test_other_calls(name: str) -> None:
    case = OTHERS[name]("cuda")
    found, exact = case.call(), case.wanted()
    assert torch.equal(found.double(), exact.to(found.dtype).double())
    again = case.call()  # The cached call gives the same result.
    assert torch.equal(found, again)


@pytest.mark.parametrize(("kind", "mode"), LIST_KINDS, ids=str)
def test_lists(kind: Any, mode: str) -> None:
    a, b = lists_of("cuda", kind)
    done = list_plan(a, b, mode).run()
    wanted = [x.double() @ y.double() for x, y in zip(a, b)]
    assert all(torch.equal(d.double(), w.to(d.dtype).double()) for d, w in zip(done.D, wanted))
    if kind == torch.int8:
        return
    found = op.grouped_mm(a, b, schedule=mode, math="exact" if kind == torch.float32 else "default")
    assert all(torch.equal(x, y) for x, y in zip(found, done.D))


def test_a_list_like_an_earlier_one() -> None:
    functions.LISTS.clear()
    for turn in range(4):
        a, b = lists_of("cuda", torch.float16)
        a = [torch.roll(x, turn, 0) for x in a]
        found = op.grouped_mm(a, b)
        wanted = [x.double() @ y.double() for x, y in zip(a, b)]
        assert all(torch.equal(d.double(), w) for d, w in zip(found, wanted)), turn
    assert len(functions.LISTS) == 1


def test_a_list_is_bound_and_replayed() -> None:
    a, b = lists_of("cuda", torch.float16)
    out = [torch.full((m, n), float("nan"), dtype=torch.float16, device="cuda") for m, n, _ in LISTS]
    call = list_plan(a, b, "host").bind(D=out)
    for _ in range(2):
        for x in a:
            x.copy_(torch.roll(x, 1, 0))
        for d in out:
            d.fill_(float("nan"))
        call()
        torch.cuda.synchronize()
        assert all(torch.equal(d.double(), x.double() @ y.double()) for d, x, y in zip(out, a, b))


def test_a_list_in_numpy_comes_back() -> None:
    a, b = ([x.numpy() for x in y] for y in lists_of("cpu", torch.float16))
    plan = list_plan(a, b, "device")
    done = plan.run(sync=False)
    done.sync()
    assert all((d.astype(float) == x.astype(float) @ y.astype(float)).all() for d, x, y in zip(done.D, a, b))
