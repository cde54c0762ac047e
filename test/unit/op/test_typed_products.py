"""``op.mm`` and ``op.int_mm`` of integers and 8-bit floats, with the interpreter in place of the GPU."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from products_on_the_cpu import put_in_place  # noqa: E402
from typed_products import BF16, E4, E5, F16, F32, I8, I32, U8, TypedProduct, exact, rounded, texts  # noqa: E402

from cute_dialect import op  # noqa: E402
from cute_dialect.op.errors import DtypeError  # noqa: E402
from cute_dialect.op.select.candidates import menu  # noqa: E402
from cute_dialect.op.select.kernel_choice import Problem  # noqa: E402

SMALL = (40, 96, 80)


@pytest.fixture(autouse=True)
def launched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the names of the kernels that ran on the interpreter."""
    return put_in_place(monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "kernel"),
    [
        (TypedProduct(I8, I8, I32, SMALL), "i8-i32-kk"),
        (TypedProduct(I8, U8, I32, SMALL), "i8_ui8-i32-kk"),
        (TypedProduct(U8, I8, BF16, SMALL), "ui8_i8-bf16-kk"),
        (TypedProduct(I8, I8, I8, SMALL, fused=True), "i8-i8-kk"),
        (TypedProduct(U8, U8, U8, SMALL, fused=True), "ui8-ui8-kk"),
        (TypedProduct(E5, E5, BF16, SMALL), "f8E5M2-bf16-kk"),
        (TypedProduct(E4, E5, F16, SMALL), "f8E4M3FN_f8E5M2-f16-kk"),
        (TypedProduct(E4, E4, E4, SMALL), "f8E4M3FN-f8E4M3FN-kk"),
        (TypedProduct(F16, F16, E4, SMALL, fused=True), "f16-f8E4M3FN-kk"),
        (TypedProduct(BF16, BF16, E5, SMALL), "bf16-f8E5M2-kk"),
    ],
    ids=lambda x: x.name if isinstance(x, TypedProduct) else "",
)
def test_products(launched: list[str], case: TypedProduct, kernel: str) -> None:
    a, b = case.operands("cpu")
    more = case.more("cpu")
    out = op.mm(a, b, **more)
    assert out.dtype == case.out and torch.equal(out.double(), exact(case, a, b, more))
    assert [name.startswith(kernel) for name in launched] == [True]


@pytest.mark.slow
def test_defaults() -> None:
    for case in (TypedProduct(I8, U8, I32, SMALL), TypedProduct(E5, E4, BF16, SMALL)):
        assert op.mm(*case.operands("cpu")).dtype == case.out
    a, b = TypedProduct(U8, U8, I32, SMALL).operands("cpu")
    assert torch.equal(op.int_mm(a, b).double(), a.double() @ b.double())
    assert op.int_mm(a, b, dtype=F32).dtype == F32
    stacked = op.bmm(torch.stack([a, a]), torch.stack([b, b]))
    assert stacked.dtype == I32 and torch.equal(stacked[1].double(), a.double() @ b.double())


@pytest.mark.slow
@pytest.mark.parametrize(("m", "n", "k"), [(40, 88, 71), (39, 87, 72), (1, 1, 1)])
def test_any_rows_and_majors(m: int, n: int, k: int) -> None:
    """Integer operands give exact results for misaligned rows too."""
    for case in (TypedProduct(I8, I8, I32, (m, n, k)), TypedProduct(E4, E5, F32, (m, n, k))):
        a, b = case.operands("cpu")
        c = (torch.arange(m * n).reshape(m, n) * 1000003 % 2**30).to(case.out)
        want = a.double() @ b.double()
        assert torch.equal(op.mm(a, b, dtype=case.out).double(), want)
        assert torch.equal(op.mm(a.t().contiguous().t(), b.contiguous(), dtype=case.out).double(), want)
        if case.out == I32:
            assert torch.equal(op.mm(a, b, c=c).double(), want + c.double())
    a, b = TypedProduct(I8, I8, I8, (m, n, k)).operands("cpu")
    bias = torch.linspace(-200, 200, n)
    found = op.mm(a, b, bias=bias, alpha=0.5, dtype=U8)
    assert torch.equal(found.double(), rounded(0.5 * (a.double() @ b.double()) + bias.double(), U8))
    eights = op.mm(a.float().to(E4), b.float().to(E4), bias=bias * 4, dtype=E4)
    assert torch.equal(eights.double(), rounded(a.double() @ b.double() + 4 * bias.double(), E4))


def test_invalid_arguments_are_rejected(launched: list[str]) -> None:
    a, b = TypedProduct(I8, I8, I32, SMALL).operands("cpu")
    with pytest.raises(
        DtypeError,
        match=("mm: a result of f8E4M3FN is not supported for i8 operands; use i32, i8, ui8, f16, bf16 or f32"),
    ):
        op.mm(a, b, dtype=E4)
    with pytest.raises(
        DtypeError,
        match=("mm: a result of i32 is not supported for f16 operands; use f16, bf16, f32, f8E4M3FN or f8E5M2"),
    ):
        op.mm(a.to(F16), b.to(F16), dtype=I32)
    with pytest.raises(DtypeError, match="mm: b has dtype f16, but a has dtype i8; pass operands of one dtype"):
        op.mm(a, b.to(F16))
    with pytest.raises(DtypeError, match="int_mm: b has dtype i16; pass an array of i8 or ui8"):
        op.int_mm(a, b.to(torch.int16))
    assert launched == []


def test_menus() -> None:
    """Every kernel of a type's menu is valid, for the problem and for its transpose."""
    for element, output in (("i8_ui8", "f16"), ("i8", "i32"), ("f8E5M2_f8E4M3FN", "f8E4M3FN"), ("f16", "f8E5M2")):
        choices = list(menu(Problem(512, 512, 512, element, output)))
        assert len(choices) > 300
        for choice in choices[::7]:
            (choice.skinny or choice.config).check()
            assert choice.name.startswith(f"{element}-{output}-kk-")
            assert choice.swapped == (choice.config.element != element) or element == "f16"


@pytest.mark.slow
def test_kernels_of_the_gpu_tests() -> None:
    names = [name for name, _ in texts()]
    assert len(names) > 25 and len(set(names)) == len(names)
