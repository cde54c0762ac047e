"""``op.distributed.install``: operators of ``torch.ops.symm_mem`` on simulated ranks, else those of torch."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import cute_dialect.lang as cute
from cute_dialect import op
from cute_dialect.op.functions import symm_mem

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:.*[Oo]verrid.*")]


@pytest.fixture
def installed() -> Iterator[None]:
    """Replace the operators for tensors in CPU memory."""
    symm_mem.install_for("CPU")
    yield
    op.distributed.uninstall()


def integers(*shape: int) -> torch.Tensor:
    return torch.randint(-4, 5, shape, generator=torch.Generator().manual_seed(0)).half()


def on_ranks(call) -> list:
    found = {}
    with cute.testing.ranks(2) as world:
        world.run(lambda rank: found.update({rank: call(rank)}))
    return [found[0], found[1]]


@pytest.mark.parametrize("gather_dim", [0, 1])
def test_fused_all_gather_matmul(installed: None, gather_dim: int) -> None:
    a, b = integers(2, 3, 4, 16), integers(2, 2, 16, 24)
    fused = torch.ops.symm_mem.fused_all_gather_matmul
    for return_a in (True, False):
        found = on_ranks(lambda r, more=return_a: fused(a[r], list(b[r]), gather_dim, "", return_A=more))
        whole = torch.cat([a[0], a[1]], gather_dim)
        for r, (gathered, products) in enumerate(found):
            assert torch.equal(gathered, whole) if return_a else gathered is None
            assert all(torch.equal(p, (whole.float() @ x.float()).half()) for p, x in zip(products, b[r]))
    (_, (product,)), _ = on_ranks(lambda r: fused(a[r], [b[r, 0]], gather_dim, "", return_A=False))
    assert torch.equal(product, (whole.float() @ b[0, 0].float()).half())


@pytest.mark.parametrize("scatter_dim", [0, 1])
@pytest.mark.parametrize("reduce_op", ["sum", "avg"])
def test_fused_matmul_reduce_scatter(installed: None, reduce_op: str, scatter_dim: int) -> None:
    a, b = integers(2, 4, 6, 16), integers(2, 16, 24)
    found = on_ranks(lambda r: torch.ops.symm_mem.fused_matmul_reduce_scatter(a[r], b[r], reduce_op, scatter_dim, ""))
    total = sum((a[r].float() @ b[r].float()).half().float() for r in range(2)) / (2 if reduce_op == "avg" else 1)
    want = total.half().chunk(2, scatter_dim)
    assert all(torch.equal(x, y) for x, y in zip(found, want))


def test_all_reduces(installed: None) -> None:
    x = integers(2, 5, 7)
    for name in ("one_shot_all_reduce", "two_shot_all_reduce_"):
        copies = x.clone()
        found = on_ranks(lambda r, name=name, t=copies: getattr(torch.ops.symm_mem, name)(t[r], "sum", ""))
        if name == "one_shot_all_reduce":
            assert all(torch.equal(t, x[0] + x[1]) for t in found)


def test_refused_calls_run_the_kernel_of_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[object, ...]] = []

    def kernel(*args: object, **more: object) -> str:
        calls.append((args, more))
        return "torch"

    a, b = integers(4, 16).float(), integers(16, 8).float()
    gathered = symm_mem._gathered_matmul
    assert on_ranks(lambda r: symm_mem._or_torch(gathered, kernel, a, [b], 0, ""))[0] == "torch"
    assert on_ranks(lambda r: symm_mem._or_torch(gathered, kernel, a, [b], 1, "", return_A=False))[1] == "torch"
    assert len(calls) == 4 and calls[-1][1] == {"return_A": False}
    with pytest.raises(op.DtypeError):
        on_ranks(lambda r: symm_mem._or_torch(gathered, None, a, [b], 0, ""))

    def fails(*_: object) -> None:
        raise op.DistributedError("rank 1 sent nothing")

    with pytest.raises(op.DistributedError):
        symm_mem._or_torch(fails, kernel)


def test_install_and_uninstall_for_gpus() -> None:
    """Shapes of fake tensors are those of torch's operators, before and after."""
    name = "symm_mem::fused_all_gather_matmul"

    def registered() -> str:
        lines = torch._C._dispatch_dump(name).splitlines()
        return next(line for line in lines if line.startswith("CUDA"))

    before = registered()
    op.distributed.install()
    op.distributed.install()
    try:
        assert "symm_mem.py" in registered() and registered() != before
        assert symm_mem._kernel_of_torch("fused_matmul_reduce_scatter", "CUDA") is not None
    finally:
        op.distributed.uninstall()
    assert registered() == before
    op.distributed.uninstall()
