"""``math=`` and ``accumulator=`` of ``op.mm`` on the interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from products_on_the_cpu import noted  # noqa: E402

from cute_dialect import op  # noqa: E402
from cute_dialect.op.arrays.dtypes import tf32_allowed  # noqa: E402


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the names of the kernels that run."""
    return noted(monkeypatch)


@pytest.fixture
def precision() -> Any:
    """Set torch's precision switch and restore it afterwards."""
    matmul = torch.backends.cuda.matmul
    before = matmul.fp32_precision
    yield matmul
    matmul.fp32_precision = before


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed + sum(shape)))


A, B = normal(40, 72), normal(72, 88)
EXACT = A.double() @ B.double()


def error(found: Any) -> float:
    return float((torch.as_tensor(found).double() - EXACT).abs().max())


@pytest.mark.slow
def test_the_default_is_torchs(launched: list[str], precision: Any) -> None:
    """The default precision of f32 follows torch's switch."""
    precision.fp32_precision = "ieee"
    assert not tf32_allowed() and error(op.mm(A, B, device="cpu")) < 2e-5
    precision.fp32_precision = "tf32"
    assert tf32_allowed() and 1e-3 < error(op.mm(A, B, device="cpu")) < 0.1
    assert error(op.mm(A, B, math="exact", device="cpu")) < 2e-5
    assert error(op.mm(A.numpy(), B.numpy(), device="cpu")) < 2e-5  # other libraries have no switch
    precision.fp32_precision = "ieee"
    assert 1e-3 < error(op.mm(A, B, math="tf32", device="cpu")) < 0.1
    assert [name.partition("-")[0] for name in launched] == ["any", "tf32", "any", "any", "tf32"]
    assert op.explain(op.mm, A, B).problem.element == "f32"


@pytest.mark.slow
def test_three_products(launched: list[str]) -> None:
    """``3xtf32`` is accurate for any major mode, at edges, and for a batch with an epilogue."""
    c = normal(40, 88)
    for a, b in ((A, B), (A.t().contiguous().t(), B.t().contiguous().t())):
        assert error(op.mm(a, b, math="3xtf32", device="cpu")) < 2e-5
    found = op.mm(A, B, c=c, alpha=2.0, activation="relu", math="3xtf32", device="cpu")
    assert float((found - (2 * EXACT + c).clamp(min=0)).abs().max()) < 5e-5
    odd = op.mm(A[:39, :71], B[:71, :87], bias=normal(87), math="3xtf32", device="cpu")
    want = A[:39, :71].double() @ B[:71, :87].double() + normal(87)
    assert float((odd - want).abs().max()) < 2e-5
    both = torch.stack([A, -A])
    for x, y in ((both, B[None]), (both, B.expand(2, -1, -1)), (A[None], torch.stack([B, -B]))):
        found = op.bmm(x, y, math="3xtf32", device="cpu")
        assert error(found[0]) < 2e-5 and error(-found[1]) < 2e-5
    assert all("tf32-f32-kk" in name and "p" in name.split("-")[4] for name in launched)


@pytest.mark.slow
@pytest.mark.parametrize(("math", "kind"), [("fast_f16", torch.float16), ("fast_bf16", torch.bfloat16)])
def test_operands_rounded_to_16_bits(launched: list[str], math: str, kind: torch.dtype) -> None:
    """Operands are rounded to f16 or bf16 and the result is f32, for any row alignment and with epilogues."""
    for a, b in ((A, B), (A.t().contiguous().t(), B), (A[:39, :71], B[:71, :87])):
        want = a.to(kind).double() @ b.to(kind).double()
        assert float((op.mm(a, b, math=math, device="cpu") - want).abs().max()) < 2e-5
        c = torch.ones(want.shape)
        found = op.mm(a, b, c=c, beta=2.0, bias=torch.ones(want.shape[1]), math=math, device="cpu")
        assert found.dtype == torch.float32 and float((found - want - 3).abs().max()) < 2e-5
    prefix = f"{'f16' if kind == torch.float16 else 'bf16'}-f32"
    # "any" is the mma.sync kernel for rows of 71 elements.
    assert all(name.startswith(prefix) or name == "any" for name in launched)
    assert op.explain(op.mm, A, B, math=math).problem.element in ("f16", "bf16")


@pytest.mark.slow
def test_exactly(launched: list[str]) -> None:
    """Results are exact for integers that f32 represents but tf32 does not, for every major mode, epilogue and hook."""
    generator = torch.Generator().manual_seed(0)
    a, b = (torch.randint(-n, n, s, generator=generator).float() for n, s in ((60000, (39, 40)), (4, (40, 87))))
    exact, c, bias = a.double() @ b.double(), torch.ones(39, 87), torch.arange(87.0)
    for x in (a, a.t().contiguous().t()):
        for y in (b, b.t().contiguous().t()):
            assert torch.equal(op.mm(x, y, math="exact", device="cpu").double(), exact)
    found = op.mm(a, b, c=c, beta=3.0, bias=bias, activation="relu", math="exact", device="cpu")
    assert torch.equal(found.double(), (exact + 3 * c + bias).clamp(min=0))
    above = op.mm(a, b, hook=lambda x, row, column: x if column > row else 0.0, math="exact", device="cpu")
    assert torch.equal(above.double(), torch.triu(exact, 1))
    assert torch.equal(op.bmm(torch.stack([a, -a]), b[None], math="exact", device="cpu")[1].double(), -exact)
    assert launched == ["any"] * 7
    halves = op.mm(a, b, math="exact", dtype=torch.bfloat16, device="cpu")
    assert torch.equal(halves, exact.float().bfloat16())


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(40, 88, 72), (39, 87, 71), (1, 1, 1)])
def test_f64(launched: list[str], shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    a, b = normal(m, k).double() / 3, normal(k, n).double() / 3
    exact = torch.from_numpy((a.numpy().astype(np.longdouble) @ b.numpy().astype(np.longdouble)).astype(np.float64))
    bias, c = normal(n).double(), normal(m, n).double()
    for x, y in ((a, b), (a.t().contiguous().t(), b.t().contiguous().t())):
        found = op.mm(x, y, device="cpu")
        assert found.dtype == torch.float64 and float((found - exact).abs().max()) < 1e-13
        found = op.mm(x, y, alpha=0.1, c=c, bias=bias, activation="relu", device="cpu")
        assert float((found - (0.1 * exact + c + bias).clamp(min=0)).abs().max()) < 1e-13
    found = op.bmm(torch.stack([a, -a]), b[None], device="cpu")
    assert float((found[1] + exact).abs().max()) < 1e-13 and launched == ["any"] * 5
    assert isinstance(op.mm(a.numpy(), b.numpy(), device="cpu"), np.ndarray)


@pytest.mark.slow
def test_accumulator_types(launched: list[str]) -> None:
    a, b = (torch.randint(-2, 3, s).half() for s in ((40, 72), (72, 88)))
    exact = a.double() @ b.double()
    for options in (
        {"accumulator": "f16"},
        {"accumulator": torch.float16},
        {"math": "promote"},
        {"accumulator": "f32"},
    ):
        assert torch.equal(op.mm(a, b, device="cpu", **options).double(), exact)
    letters = [name.split("-")[4] for name in launched]
    assert ["a" in x or "p" in x for x in letters] == [True, True, True, False]
    # These modes need wgmma, so rows that TMA cannot read are copied.
    odd = a[:39, :71], b[:71, :87]
    for options in ({"accumulator": "f16"}, {"math": "promote", "dtype": "f32"}):
        found = op.mm(*odd, device="cpu", **options)
        assert torch.equal(found.double(), odd[0].double() @ odd[1].double())
    ones = torch.full((40, 72), 64.0).half()
    assert torch.isinf(op.mm(ones, ones.t(), dtype="f32", accumulator="f16", device="cpu")).all()
    assert torch.equal(op.mm(ones, ones.t(), dtype="f32", device="cpu"), torch.full((40, 40), 72 * 4096.0))
    eights = op.mm(a.float().to(torch.float8_e4m3fn), b.float().to(torch.float8_e4m3fn), math="promote", device="cpu")
    assert torch.equal(eights.double(), exact)


@pytest.mark.parametrize(
    ("dtype", "options", "said"),
    [
        ("bf16", {"accumulator": "f16"},
         r"mm: accumulator f16 is not supported for bf16 operands \(only f16 operands have an f16 accumulator\); "
         "use f32"),
        ("f16", {"accumulator": "f64"}, "mm: accumulator f64 is not supported for f16 operands; use f32"),
        ("i8", {"accumulator": "f32"}, "mm: accumulator f32 is not supported for i8 operands; use i32"),
        ("f16", {"math": "tf32"}, "mm: math='tf32' is not supported for f16 operands; use default or promote"),
        ("f32", {"math": "promote"}, (
            "mm: math='promote' is not supported for f32 operands; use default, tf32, 3xtf32, exact, fast_f16 or "
            "fast_bf16"
        )),
        ("f64", {"math": "exact"}, "mm: math='exact' is not supported for f64 operands; use default"),
        ("f16", {"math": "fast"}, (
            "mm: math='fast' is not supported; use default, tf32, 3xtf32, exact, fast_f16, fast_bf16 or promote"
        )),
        ("f16", {"math": "promote", "accumulator": "f16"}, (
            "mm: math='promote' needs an f32 accumulator, got f16; use accumulator='f32'"
        )),
    ],
)  # fmt: skip
def test_invalid_arguments_are_rejected(launched: list[str], dtype: str, options: dict[str, Any], said: str) -> None:
    import ml_dtypes

    kinds = {"bf16": ml_dtypes.bfloat16, "f16": np.float16, "i8": np.int8, "f32": np.float32, "f64": np.float64}
    a = np.zeros((64, 64), kinds[dtype])
    with pytest.raises(op.UnsupportedError, match=said):
        op.mm(a, a, device="cpu", **options)
    assert launched == []
