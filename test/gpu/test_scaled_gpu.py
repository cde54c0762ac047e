"""``op.scaled_mm`` on the GPU, against float64 with the scales."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from typed_products import SCALED  # noqa: E402

from cute_dialect import op  # noqa: E402


@pytest.fixture(autouse=True)
def kernels(artifacts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The prebuilt kernels (``python test/gpu/build.py DIR``)."""
    if not (artifacts / "types").exists():
        pytest.skip(f"NOT RUN: {artifacts}/types is missing; build it: python test/gpu/build.py {artifacts}")
    monkeypatch.setenv("CUTE_KERNELS", str(artifacts / "types"))


@pytest.mark.parametrize("case", SCALED, ids=str)
def test_scaled(case: tuple[int, int, int, str, bool]) -> None:
    """Small integers and scales that are powers of two: sums are exact."""
    m, n, k, recipe, fast = case
    generator = torch.Generator("cuda").manual_seed(m + n + k)

    def integers(*shape: int) -> torch.Tensor:
        return torch.randint(-3, 4, shape, device="cuda", generator=generator).float()

    a, b = (integers(rows, k).to(torch.float8_e4m3fn) for rows in (m, n))
    blocks = -(-k // 128)
    shapes = {"tensor": ((1,), (1,)), "row": ((m, 1), (1, n)), "block": ((m, blocks), (-(-n // 128), blocks))}
    sa, sb = (torch.exp2(integers(*s)) for s in shapes[recipe])
    for scale_a in (sa, sa.t().contiguous().t()):
        found = op.scaled_mm(a, b.t(), scale_a, sb, recipe=recipe, fast=fast, dtype=torch.float32)
        x, y = a.double(), b.double()
        if recipe == "block":
            x = x * sa.double().repeat_interleave(128, 1)[:, :k]
            y = y * sb.double().repeat_interleave(128, 0)[:n].repeat_interleave(128, 1)[:, :k]
            assert torch.equal(found.double(), x @ y.t())
        else:
            assert torch.equal(found.double(), x @ y.t() * sa.double() * sb.double())


@pytest.mark.parametrize("case", [c for c in SCALED if c[3] in ("block", "row")], ids=str)
def test_scales_that_are_exponents(case: tuple[int, int, int, str, bool]) -> None:
    m, n, k, recipe, fast = case
    blocks = -(-k // 128)
    shapes = ((m, blocks), (-(-n // 128), blocks)) if recipe == "block" else ((m, 1), (1, n))
    generator = torch.Generator("cuda").manual_seed(m + n + k)
    a, b = (
        torch.randint(-3, 4, (rows, k), device="cuda", generator=generator).float().to(torch.float8_e4m3fn)
        for rows in (m, n)
    )
    given = [
        torch.randint(124, 131, s, device="cuda", generator=generator, dtype=torch.uint8).view(torch.float8_e8m0fnu)
        for s in shapes
    ]
    found = op.scaled_mm(a, b.t(), *given, fast=fast, dtype=torch.float32)
    sa, sb = (torch.exp2(x.view(torch.uint8).double() - 127) for x in given)
    if recipe == "block":
        x = a.double() * sa.repeat_interleave(128, 1)[:, :k]
        y = b.double() * sb.repeat_interleave(128, 0)[:n].repeat_interleave(128, 1)[:, :k]
        assert torch.equal(found.double(), x @ y.t())
    else:
        assert torch.equal(found.double(), a.double() @ b.double().t() * sa * sb)
