"""``op.scaled_mm`` on the GPU compared with a float64 product that applies the scales."""

from __future__ import annotations

from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch")

from typed_products import SCALED  # noqa: E402

from cute_dialect import op  # noqa: E402


@pytest.fixture(autouse=True)
def _prebuilt(prebuilt: Callable[[str], None]) -> None:
    prebuilt("types")


def shapes_of(m: int, n: int, k: int, recipe: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the shapes of the scales."""
    blocks = -(-k // 128)
    shapes = {"tensor": ((1,), (1,)), "row": ((m, 1), (1, n)), "block": ((m, blocks), (-(-n // 128), blocks))}
    return shapes.get(recipe, ((m, blocks), (n, blocks)))


def exact(
    a: torch.Tensor, b: torch.Tensor, of_a: torch.Tensor, of_b: torch.Tensor, recipe: str
) -> torch.Tensor:  # fmt: skip
    """Compute the scaled product of (M, K) and (N, K) in f64."""
    x, y, sa, sb = a.double(), b.double(), of_a.double(), of_b.double()
    if not recipe.startswith("block"):
        return x @ y.t() * sa * sb
    (n, k), sb = y.shape, sb if recipe == "block1x128" else sb.repeat_interleave(128, 0)
    x, y = x * sa.repeat_interleave(128, 1)[:, :k], y * sb[:n].repeat_interleave(128, 1)[:, :k]
    return x @ y.t()


@pytest.mark.parametrize("case", SCALED, ids=str)
def test_scaled(case: tuple[int, int, int, str, bool]) -> None:
    """Operands are small integers and scales are powers of two, so the result is exact."""
    m, n, k, recipe, fast = case
    generator = torch.Generator("cuda").manual_seed(m + n + k)

    def integers(*shape: int) -> torch.Tensor:
        return torch.randint(-3, 4, shape, device="cuda", generator=generator).float()

    a, b = (integers(rows, k).to(torch.float8_e4m3fn) for rows in (m, n))
    sa, sb = (torch.exp2(integers(*s)) for s in shapes_of(m, n, k, recipe))
    for scale_a in (sa, sa.t().contiguous().t()):
        found = op.scaled_mm(a, b.t(), scale_a, sb, recipe=recipe, fast=fast, dtype=torch.float32)
        assert torch.equal(found.double(), exact(a, b, sa, sb, recipe))
    plan = op.ScaledGemm(element="f8E4M3FN", element_D="f32", recipe=recipe, fast=fast)
    assert torch.equal(plan.run(a, b.t(), sa, sb).D, found)
    again = torch.full_like(found, torch.nan)
    plan.bind(a, b.t(), sa, sb, D=again)()
    assert torch.equal(again, found)


@pytest.mark.parametrize("case", [c for c in SCALED if c[3] != "tensor"], ids=str)
def test_scales_that_are_exponents(case: tuple[int, int, int, str, bool]) -> None:
    m, n, k, recipe, fast = case
    generator = torch.Generator("cuda").manual_seed(m + n + k)
    a, b = (
        torch.randint(-3, 4, (rows, k), device="cuda", generator=generator).float().to(torch.float8_e4m3fn)
        for rows in (m, n)
    )
    given = [
        torch.randint(124, 131, s, device="cuda", generator=generator, dtype=torch.uint8).view(torch.float8_e8m0fnu)
        for s in shapes_of(m, n, k, recipe)
    ]
    found = op.scaled_mm(a, b.t(), *given, fast=fast, dtype=torch.float32)
    sa, sb = (torch.exp2(x.view(torch.uint8).double() - 127) for x in given)
    assert torch.equal(found.double(), exact(a, b, sa, sb, recipe))
