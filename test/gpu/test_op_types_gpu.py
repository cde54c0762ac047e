"""``op.mm`` of integers and 8-bit floats, in all result types, on the GPU compared with the exact product."""

from __future__ import annotations

from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch")

from typed_products import CASES, TypedProduct, exact  # noqa: E402

from cute_dialect import op  # noqa: E402


@pytest.fixture(autouse=True)
def _prebuilt(prebuilt: Callable[[str], None]) -> None:
    prebuilt("types")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_product(case: TypedProduct) -> None:
    a, b = case.operands("cuda")
    more = case.more("cuda")
    for _ in range(2):  # The second call is a cached call.
        out = op.mm(a, b, **more)
        assert out.dtype == case.out
        assert torch.equal(out.double(), exact(case, a, b, more))


def test_int_mm_is_torchs() -> None:
    a, b = TypedProduct(torch.int8, torch.int8, torch.int32, (4096, 4096, 1024)).operands("cuda")
    assert torch.equal(op.int_mm(a, b), torch._int_mm(a, b))
