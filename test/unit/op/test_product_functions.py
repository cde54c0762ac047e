"""``addmm``, ``baddbmm``, ``linear`` and ``matmul`` on CPU tensors on the interpreter, compared with torch."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from products_on_the_cpu import put_in_place  # noqa: E402

from cute_dialect import op  # noqa: E402


@pytest.fixture(autouse=True)
def launched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the names of the kernels that ran on the interpreter."""
    return put_in_place(monkeypatch)


def integers(*shape: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return torch.randint(-2, 3, shape, generator=generator).half()


@pytest.mark.slow
def test_addend_is_the_first_argument() -> None:
    a, b, c = integers(24, 40), integers(40, 32), integers(24, 32)
    out = torch.full((24, 32), float("nan")).half()
    assert op.addmm(c, a, b, beta=2.0, alpha=0.5, out=out) is out
    assert torch.equal(out.double(), 0.5 * a.double() @ b.double() + 2 * c)
    assert torch.equal(op.addmm(c[0], a, b, activation="relu").double(), (a.double() @ b.double() + c[0]).clamp(min=0))
    x, y, z = integers(2, 24, 40), integers(2, 40, 32), integers(2, 24, 32)
    assert torch.equal(op.baddbmm(z, x, y, alpha=2.0).double(), 2 * x.double() @ y.double() + z)


@pytest.mark.slow
def test_linear() -> None:
    weight, bias = integers(32, 40), integers(32)
    for shape in ((40,), (24, 40), (2, 3, 4, 40)):
        x = integers(*shape)
        found = op.linear(x, weight, bias, "relu")
        assert torch.equal(
            found.double(), torch.relu(torch.nn.functional.linear(x.double(), weight.double(), bias.double()))
        )
        assert found.shape == (*shape[:-1], 32)
    for x, w in ((integers(24, 41), weight), (integers(24, 40), integers(40)), (integers(1)[0], weight)):
        with pytest.raises(
            ValueError,
            match=r"linear: x has shape .*; pass x of \(…, K\) and weight of \(N, K\)",
        ):
            op.linear(x, w)
    with pytest.raises(ValueError, match="linear: out is not supported; use mm or addmm"):
        op.linear(integers(24, 40), weight, out=integers(24, 32))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((40,), (40,)),
        ((24, 40), (40,)),
        ((40,), (40, 32)),
        ((24, 40), (40, 32)),
        ((3, 24, 40), (40, 32)),
        ((3, 24, 40), (40,)),
        ((40,), (3, 40, 32)),
        ((3, 24, 40), (3, 40, 32)),
        ((24, 40), (3, 40, 32)),
        ((2, 3, 24, 40), (3, 40, 32)),
        ((2, 1, 24, 40), (1, 3, 40, 32)),
        ((2, 1, 24, 40), (1, 1, 40, 32)),
    ],
    ids=str,
)
def test_matmul(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    x, y = integers(*a), integers(*b, seed=1)
    found, exact = op.matmul(x, y, alpha=0.5), 0.5 * torch.matmul(x.double(), y.double())
    assert found.shape == exact.shape and torch.equal(found.double(), exact)


@pytest.mark.parametrize(
    ("a", "b", "says"),
    [
        ((24, 40), (41, 32), r"matmul: cannot multiply shapes \(24, 40\) and \(41, 32\)"),
        ((2, 24, 40), (3, 40, 32), r"cannot multiply shapes \(2, 24, 40\) and \(3, 40, 32\)"),
        ((), (40, 32), r"matmul: a has shape \(\) and b has shape \(40, 32\)"),
    ],
)
def test_mismatched_shapes_are_rejected(a: tuple[int, ...], b: tuple[int, ...], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        op.matmul(torch.zeros(a).half(), torch.zeros(b).half())
