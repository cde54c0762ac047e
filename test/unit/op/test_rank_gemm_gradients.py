"""Gradients of GEMMs of several ranks, and the linear layers, on simulated ranks against float64 on one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import cute_dialect.lang as cute
from cute_dialect import op

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.slow
D, RANKS = op.distributed, 2


def integers(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randint(-3, 4, shape, generator=torch.Generator().manual_seed(seed)).half()


def results_and_gradients(
    forward: Callable[[int], torch.Tensor], of: Callable[[int], list[torch.Tensor]], grads: torch.Tensor
) -> tuple[list[torch.Tensor], list[tuple[torch.Tensor, ...]]]:
    """Return the results of all ranks, and their gradients with respect to tensors. Gradients are a second run."""
    results: dict[int, torch.Tensor] = {}
    found: dict[int, tuple[torch.Tensor, ...]] = {}
    with cute.testing.ranks(RANKS) as world:
        world.run(lambda r: results.update({r: forward(r)}))
        world.run(lambda r: found.update({r: torch.autograd.grad(results[r], of(r), grads[r])}))
    return [results[r] for r in range(RANKS)], [found[r] for r in range(RANKS)]


def test_all_gather_matmul() -> None:
    a, b, grads = integers(2, 9, 16).requires_grad_(), integers(2, 16, 24).requires_grad_(), integers(2, 18, 24, seed=1)
    rows, columns = a.unbind(), b.unbind()
    results, found = results_and_gradients(
        lambda r: D.all_gather_matmul(rows[r], columns[r]), lambda r: [rows[r], columns[r]], grads
    )
    whole = a.detach().double().flatten(0, 1)
    parts = (grads.double() @ b.detach().double().transpose(1, 2)).half().float().sum(0).half()
    for r in range(RANKS):
        assert torch.equal(results[r].double(), (whole @ b[r].detach().double()).half().double())
        assert torch.equal(found[r][0], parts.chunk(2)[r])
        assert torch.equal(found[r][1], (whole.T @ grads[r].double()).half())


def test_backward_would_add_unfinished_gradients() -> None:
    a, b, found = integers(2, 8, 16).requires_grad_(), integers(16, 8).requires_grad_(), {}
    rows = [x.detach().requires_grad_() for x in a]
    with cute.testing.ranks(RANKS) as world:
        world.run(lambda r: found.update({r: D.all_gather_matmul(rows[r], b)}))
        with pytest.raises(op.UnsupportedError, match=r"use torch.autograd.grad\(y, inputs, dy\)"):
            world.run(lambda r: found[r].sum().backward())


@pytest.mark.parametrize("hidden", [5, 20])
def test_a_result_with_rows_that_are_not_aligned_is_an_operand(hidden: int) -> None:
    x, up, down = integers(2, 8, 32), integers(2, 32, hidden, seed=1), integers(2, hidden, 24, seed=2)
    found: dict[int, torch.Tensor] = {}

    def block(rank: int) -> None:
        found[rank] = D.matmul_reduce_scatter(D.all_gather_matmul(x[rank], up[rank]), down[rank])

    with cute.testing.ranks(RANKS) as world:
        world.run(block)
    products = (x.double().flatten(0, 1) @ up.double()).half().double() @ down.double()
    want = products.half().float().sum(0).half()
    assert torch.equal(torch.cat([found[r] for r in range(RANKS)]), want)


@pytest.mark.parametrize("mean", ["sum", "avg"])
def test_matmul_reduce_scatter(mean: str) -> None:
    a, b, grads = integers(2, 18, 16).requires_grad_(), integers(2, 16, 24).requires_grad_(), integers(2, 9, 24, seed=1)
    rows, columns = a.unbind(), b.unbind()
    _, found = results_and_gradients(
        lambda r: D.matmul_reduce_scatter(rows[r], columns[r], op=mean), lambda r: [rows[r], columns[r]], grads
    )
    whole = grads.double().flatten(0, 1) / (2 if mean == "avg" else 1)
    for r in range(RANKS):
        assert torch.equal(found[r][0], (whole @ b[r].detach().double().T).half())
        assert torch.equal(found[r][1], (a[r].detach().double().T @ whole).half())


def test_matmul_all_reduce() -> None:
    a, b = integers(2, 9, 16).requires_grad_(), integers(2, 16, 24).requires_grad_()
    grads, rows, columns = integers(9, 24, seed=1).expand(2, -1, -1), a.unbind(), b.unbind()
    results, found = results_and_gradients(
        lambda r: D.matmul_all_reduce(rows[r], columns[r]), lambda r: [rows[r], columns[r]], grads
    )
    assert torch.equal(results[0], results[1])
    for r in range(RANKS):
        assert torch.equal(found[r][0], (grads[r].double() @ b[r].detach().double().T).half())
        assert torch.equal(found[r][1], (a[r].detach().double().T @ grads[r].double()).half())


@pytest.mark.parametrize("sequence_parallel", [True, False])
def test_a_block_of_linear_layers(sequence_parallel: bool) -> None:
    """Results and gradients are those of one process with the whole weights."""
    how = op.nn.ParallelOptions(sequence_parallel=sequence_parallel, dtype=torch.float16, run_on="cpu")
    up = [op.nn.ColumnParallelLinear(16, 24, how=how) for _ in range(RANKS)]
    down = [op.nn.RowParallelLinear(24, 8, how=how) for _ in range(RANKS)]
    down[1].load_state_dict({**down[1].state_dict(), "bias": down[0].bias.detach()})
    x = (integers(2, 6, 16) / 4).requires_grad_() if sequence_parallel else (integers(12, 16) / 4).requires_grad_()
    inputs = x.unbind() if sequence_parallel else [x * 1 for _ in range(RANKS)]
    shape = (2, 6, 8) if sequence_parallel else (12, 8)
    grads = integers(*shape, seed=1) / 4
    grads = grads if sequence_parallel else grads.expand(2, -1, -1)

    def parameters(r: int) -> list[torch.Tensor]:
        return [inputs[r], up[r].weight, up[r].bias, down[r].weight, down[r].bias]

    results, found = results_and_gradients(lambda r: down[r](op.relu(up[r](inputs[r]))), parameters, grads)

    exact = [
        t.detach().double().requires_grad_()
        for t in (
            x,
            torch.cat([m.weight for m in up]),
            torch.cat([m.bias for m in up]),
            torch.cat([m.weight for m in down], 1),
            down[0].bias,
        )
    ]
    rows = exact[0].flatten(0, -2)
    y = torch.nn.functional.linear(torch.relu(torch.nn.functional.linear(rows, exact[1], exact[2])), *exact[3:])
    whole = torch.cat(results) if sequence_parallel else results[0]
    torch.testing.assert_close(whole.double(), y.detach(), rtol=0.01, atol=0.01)
    wants = torch.autograd.grad(y, exact, (grads.flatten(0, 1) if sequence_parallel else grads[0]).double())
    of_x, *of_up, of_down, of_bias = zip(*found)
    for got, want in (
        (torch.stack(of_x) if sequence_parallel else of_x[0], wants[0]),
        (torch.cat(of_up[0]), wants[1]),
        (torch.cat(of_up[1]), wants[2]),
        (torch.cat(of_down, 1), wants[3]),
        (of_bias[0] + of_bias[1] if sequence_parallel else of_bias[0], wants[4]),
    ):
        torch.testing.assert_close(got.double(), want, rtol=0.02, atol=0.02 * float(want.abs().max()))


def test_layers_name_themselves_in_errors() -> None:
    layer = op.nn.RowParallelLinear(24, 8, how=op.nn.ParallelOptions(dtype=torch.float16, run_on="cpu"))
    assert "24, 8, bias=True, sequence_parallel=True" in repr(layer)
    with pytest.raises(op.ShapeError, match=r"RowParallelLinear: input has shape \(4, 8\); pass \(…, 24\)"):
        layer(torch.zeros(4, 8).half())
    with pytest.raises(op.ArgumentError, match="RowParallelLinear: there is no group of ranks"):
        layer(torch.zeros(4, 24).half())
