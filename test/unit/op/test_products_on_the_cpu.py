"""``mm`` and ``bmm`` of CPU tensors with ``device="cpu"``, from arguments to results."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from products_on_the_cpu import noted  # noqa: E402

import cute_dialect.lang as cute  # noqa: E402
from cute_dialect import op  # noqa: E402
from cute_dialect.op.select import gemm_dispatch  # noqa: E402
from cute_dialect.op.select.candidates import menu  # noqa: E402
from cute_dialect.op.select.kernel_choice import Choice, Problem  # noqa: E402

f16 = torch.float16
mm, bmm = partial(op.mm, device="cpu"), partial(op.bmm, device="cpu")


@pytest.fixture(autouse=True)
def launched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the names of the kernels that ran on the interpreter."""
    return noted(monkeypatch)


def integers(*shape: int, dtype: torch.dtype = f16, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return torch.randint(-2, 3, shape, generator=generator).to(dtype)


def exact(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a.double() @ b.double()


A, B = integers(3, 40, 72), integers(3, 72, 88)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("a", "b"),
    [
        (A, B),
        (A.mT.contiguous().mT, B.mT.contiguous().mT),
        (A[:1], B),
        (A[:1].expand(3, -1, -1), B),
        (A[:1].expand(3, -1, -1), B[:1].expand(3, -1, -1)),
        (integers(3, 80, 72)[:, :40], B[:1]),  # The batch is not contiguous, so it cannot be folded into rows.
        (integers(3, 40, 80)[..., :72], B),
    ],
)
def test_bmm(launched: list[str], a: torch.Tensor, b: torch.Tensor) -> None:
    assert torch.equal(bmm(a, b).double(), exact(a, b))
    (name,) = launched
    assert "b" in name.split("-")[4]


@pytest.mark.slow
@pytest.mark.parametrize("b", [B[:1], B[:1].expand(3, -1, -1)])
def test_batch_folded_into_one_gemm(launched: list[str], b: torch.Tensor) -> None:
    out = torch.full((3, 40, 88), float("nan"), dtype=f16)
    c = integers(40, 88)
    bias = integers(88).float()
    assert bmm(A, b, out, c=c, bias=bias, activation="relu") is out
    assert torch.equal(out.double(), (exact(A, b) + c + bias).clamp(min=0))
    assert torch.equal(bmm(integers(5, 1, 72), B[:1]).double(), exact(integers(5, 1, 72), B[:1]))  # M of 1
    assert len(launched) == 2 and not any("b" in name.split("-")[4] for name in launched)


def test_one_matrix_is_mm(launched: list[str]) -> None:
    a, b = A[:1].mT.contiguous().mT, B[:1]
    assert torch.equal(bmm(a, b).double(), exact(a, b))
    assert torch.equal(mm(a[0], b[0]).double(), exact(a, b)[0])
    assert len(launched) == 2 and launched[0] == launched[1]


@pytest.mark.slow
def test_epilogues() -> None:
    def above(x: Any, row: Any, column: Any) -> Any:
        return x if column > row else 0.0

    c, rows = integers(3, 40, 88), integers(40, 1).float()
    found = bmm(A, B, alpha=0.5, beta=2.0, c=c, bias=rows, hook=above, dtype=torch.float32)
    assert torch.equal(found.double(), torch.triu(0.5 * exact(A, B) + 2 * c + rows, 1))
    # B is shared, so A is folded into one matrix, but hooks get row indices within one matrix.
    found = bmm(A, B[:1], c=c[0], beta=3.0, hook=above, dtype=torch.float32)
    assert torch.equal(found.double(), torch.triu(exact(A, B[:1]) + 3 * c[0], 1))
    same = c.clone()
    assert bmm(A, B, same, c=same) is same and torch.equal(same.double(), exact(A, B) + c)


@pytest.mark.slow
@pytest.mark.parametrize(("m", "n", "k", "padded"), [(40, 88, 71, True), (39, 87, 72, True), (17, 33, 5, False)])
@pytest.mark.parametrize("offset", [0, 1])
def test_rows_not_readable_by_tma(launched: list[str], m: int, n: int, k: int, padded: bool, offset: int) -> None:
    """Copies are padded if that is predicted to be faster, but not with an epilogue or at odd multiples of 2 bytes."""
    a, b = (torch.cat([x.new_zeros(offset), x.flatten()])[offset:].view(x.shape) for x in
            (integers(3, m, k), integers(3, k, n)))  # fmt: skip
    assert torch.equal(bmm(a, b).double(), exact(a, b))
    assert torch.equal(bmm(a, b[:1].expand(3, -1, -1)).double(), exact(a, b[:1]))
    assert torch.equal(bmm(a[:1], b).double(), exact(a[:1], b))
    c = integers(3, m, n)
    found = bmm(a, b, alpha=2.0, c=c, activation="relu")
    assert torch.equal(found.double(), (2 * exact(a, b) + c).clamp(min=0))
    copies = padded and not offset
    assert [name == "any" for name in launched] == [*[not copies] * 3, True]
    found = bmm(a, b, hook=lambda x, row, column: x + cute.Float32(row - column))
    places = torch.arange(m)[:, None] - torch.arange(n)
    assert torch.equal(found, (exact(a, b) + places).to(found.dtype))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dtype", "m", "n", "k"),
    [(torch.float32, 40, 88, 72), (torch.float32, 39, 87, 33), (torch.float8_e4m3fn, 40, 87, 36)],
)
def test_copied_operands(dtype: torch.dtype, m: int, n: int, k: int) -> None:
    """Operands that must be K-major with aligned rows are copied."""
    a, b = integers(2, m, k, dtype=dtype), integers(2, k, n, dtype=dtype)
    for x, y in ((a, b), (a.mT.contiguous().mT, b.mT.contiguous().mT)):
        want = exact(x, y)
        assert torch.equal(bmm(x, y).double(), want)
        assert torch.equal(mm(x[0], y[0]).double(), want[0])
    out = torch.full((2, m, n + 1), float("nan"), dtype=torch.bfloat16)[..., :n]
    assert bmm(a, b, out) is out and torch.equal(out.double(), exact(a, b))


@pytest.mark.slow
@pytest.mark.parametrize(("batch", "dtype"), [(2, torch.bfloat16), (0, torch.float16), (0, torch.float32)])
@pytest.mark.parametrize("how", [{}, {"activation": "relu"}, {"split_k": 1}])
@pytest.mark.parametrize("n", [21, 22])
def test_padding_of_results_is_not_written(batch: int, dtype: torch.dtype, how: dict[str, Any], n: int) -> None:
    """TMA stores write whole units of 16 bytes. Rows that end inside a unit are stored without TMA, or copied."""
    lead = (batch,) if batch else ()
    m, k = 9, 32
    a, b = torch.ones((*lead, m, k), dtype=dtype), torch.ones((*lead, k, 24), dtype=dtype)[..., :n]
    base = torch.full((*lead, m, 32), 7, dtype=dtype)
    f = op.bmm if batch else op.mm
    if dtype == torch.float32:
        how = {**how, "math": "tf32"}
    f(a, b, out=base[..., :n], device="cpu", **how)
    assert (base[..., :n] == k).all()
    assert (base[..., n:] == 7).all()


def test_empty_arrays(launched: list[str]) -> None:
    for a, b in ((A[:0], B[:0]), (A[:, :0], B), (A[..., :0], B[:, :0])):
        found = bmm(a, b, bias=torch.ones(88))
        assert found.shape == (a.shape[0], a.shape[1], 88) and bool((found == 1).all())
    assert len(launched) == 1  # With an empty K the GEMM still runs, and its accumulator is 0.


@pytest.mark.slow
@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("batch", [False, True])
def test_transposed_problem(monkeypatch: pytest.MonkeyPatch, swapped: bool, batch: bool) -> None:
    """The problem and its transpose, with every epilogue. Rows of one are columns of the other."""

    def chosen(problem: Problem, *_: object, **__: object) -> Choice:
        found = menu(problem)
        wanted = (
            i for i in range(len(found)) if tuple(found.kernel(i)[:2]) == (64, 96) and found.swapped[i] == swapped
        )
        choice = found.choice(next(wanted))
        assert choice.swapped == swapped
        return choice

    def above(x: Any, row: Any, column: Any) -> Any:
        return x if column > row else 0.0

    monkeypatch.setattr(gemm_dispatch, "choose", chosen)
    function = bmm if batch else mm
    a, b, c = (integers(*((3,) if batch else ()), *shape) for shape in ((39, 72), (72, 88), (39, 88)))
    columns, rows = integers(88).float(), integers(39, 1)
    product = exact(a, b)
    assert torch.equal(function(a, b).double(), product)
    assert torch.equal(function(a, b, bias=columns, activation="relu").double(), (product + columns).clamp(min=0))
    assert torch.equal(function(a, b, bias=rows, alpha=0.5).double(), 0.5 * product + rows)
    assert torch.equal(function(a, b, c=c, beta=2.0).double(), product + 2 * c)
    out = function(a, b, c=c, bias=columns, hook=above, dtype=torch.bfloat16)
    assert torch.equal(out.double(), torch.triu(product + c + columns, 1).to(torch.bfloat16).double())
