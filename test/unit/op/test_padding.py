"""One launch copies operands that TMA cannot read to rows padded to 16 bytes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from products_on_the_cpu import noted  # noqa: E402

from cute_dialect import op  # noqa: E402
from cute_dialect.kernels.copies.repack_rows import dense_text, pad_text  # noqa: E402
from cute_dialect.op.execute.kernels import gap_remover  # noqa: E402
from cute_dialect.op.select import gemm_dispatch  # noqa: E402
from cute_dialect.pipelines import compile  # noqa: E402

CHECKS = ("race", "uninit", "oob", "sync")
mm, bmm = partial(op.mm, device="cpu", checks=CHECKS), partial(op.bmm, device="cpu", checks=CHECKS)


@pytest.fixture(autouse=True)
def launched(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Record the names of launched GEMMs, and make copying always pay off."""
    monkeypatch.setattr(gemm_dispatch, "predict_cut", lambda *_, **__: float("inf"))
    gemm_dispatch.forget_plans()
    yield noted(monkeypatch)
    gemm_dispatch.forget_plans()


def integers(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randint(-2, 3, shape, generator=generator).to(dtype)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dtype", "majors", "kernel"),
    [
        (torch.float32, "kn", "tf32-f32-kn"),
        (torch.int8, "mk", "i8-i32-mk"),
        (torch.float8_e4m3fn, "kk", "f8E4M3FN-bf16-kk"),
        (torch.float8_e4m3fn, "mn", "f8E4M3FN-bf16-kn"),  # One operand is also transposed.
    ],
)
def test_products(launched: list[str], dtype: torch.dtype, majors: str, kernel: str) -> None:
    m, n, k = 39, 45, 37
    a = integers(m, k, dtype=dtype) if majors[0] == "k" else integers(k, m, dtype=dtype).t()
    b = integers(n, k, dtype=dtype).t() if majors[1] == "k" else integers(k, n, dtype=dtype)
    found = mm(a, b, math="tf32") if dtype == torch.float32 else mm(a, b)
    assert torch.equal(found.double(), a.double() @ b.double())
    assert [name.startswith(kernel) for name in launched] == [True]


@pytest.mark.slow
def test_batches() -> None:
    a, b = integers(3, 39, 37), integers(3, 37, 45)
    assert torch.equal(bmm(a, b, math="tf32").double(), a.double() @ b.double())
    shared = b[:1].expand(3, -1, -1)
    assert torch.equal(bmm(a, shared, math="tf32").double(), a.double() @ shared.double())
    offset = integers(40 * 37 + 3).to(torch.int8)[1:]  # The address is not a multiple of 4 bytes.
    x, y = torch.as_strided(offset, (20, 37), (37, 1)), integers(37, 45, dtype=torch.int8)
    assert torch.equal(mm(x, y).double(), x.double() @ y.double())


def test_lines_of_any_pitch() -> None:
    kernel = compile(pad_text(2), emit="base").kernel("launch")
    rng, given, checks = np.random.default_rng(0), [], []
    for lines, length, pitch, matrices, step in ((5, 33, 37, 2, 37 * 5 + 3), (300, 16, 17, 1, 0)):
        memory = rng.integers(0, 256, (matrices - 1) * step + (lines - 1) * pitch + length).astype(np.uint8)
        wanted = np.lib.stride_tricks.as_strided(memory, (matrices, lines, length), (step, pitch, 1))
        words = np.full((matrices, lines, -(-length // 16) * 4), 7, np.uint32)
        given += [memory, words.transpose(1, 2, 0), length, pitch, step]
        checks.append((wanted, words))
    options: dict[str, Any] = {"device": "cpu", "checks": CHECKS}
    kernel(*given, **options)
    for wanted, words in checks:
        assert (words.view(np.uint8)[..., : wanted.shape[-1]] == wanted).all()


def test_registers_do_not_spill() -> None:
    assert "0 bytes spilled, 0 bytes stack" in compile(pad_text(2)).report


@pytest.mark.parametrize(
    ("rows", "columns", "pitch"), [(37, 5, 8), (1, 3, 8), (9, 201, 208), (70, 1, 8), (2, 40, 40), (4, 16, 24)]
)
def test_rows_without_gaps(rows: int, columns: int, pitch: int) -> None:
    """A thread writes 8 elements of up to 8 rows, and reads no padding, whose values are undefined."""
    x = np.full((rows, pitch), 65535, np.uint16)
    x[:, :columns] = np.arange(rows * columns).reshape(rows, columns)
    y = np.full(rows * columns + 8, 65535, np.uint16)
    gap_remover(cpu=True)(x.T[:columns], y[:-8], device="cpu", checks=CHECKS)
    assert (y[:-8] == x[:, :columns].ravel()).all() and (y[-8:] == 65535).all()


def test_rows_without_gaps_need_no_stack() -> None:
    assert "0 bytes spilled, 0 bytes stack" in compile(dense_text()).report
