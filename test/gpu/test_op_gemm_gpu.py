"""``cute_dialect.op.gemm.mm`` on the GPU: every kind of matrix, against the float64 product."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from cute_dialect.op import gemm  # noqa: E402


@pytest.fixture(autouse=True)
def kernels(artifacts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The prebuilt kernels (``python test/gpu/build.py DIR``)."""
    if not (artifacts / "gemm").exists():
        pytest.skip(f"NOT RUN: {artifacts}/gemm is missing; build it: python test/gpu/build.py {artifacts}")
    monkeypatch.setenv("CUTE_KERNELS", str(artifacts / "gemm"))


def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a.double() @ b.double()


def limit(out: torch.Tensor, k: int) -> float:
    eps = {torch.float16: 4e-3, torch.bfloat16: 4e-2, torch.float32: 1e-2}[out.dtype]
    return eps * k**0.5


@pytest.mark.parametrize("k_major", [True, False], ids=["k", "n"])
@pytest.mark.parametrize(
    ("m", "n", "k"),
    [
        (4096, 512, 256),
        (2048, 2048, 2048),
        (128, 8192, 8192),
        (5000, 4096, 1024),
        (129, 257, 65),
        (1, 1, 1),
        (333, 1000, 511),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["f16", "bf16"])
def test_mm(m: int, n: int, k: int, dtype: torch.dtype, k_major: bool) -> None:
    if dtype == torch.bfloat16 and not k_major:
        dtype = torch.float16  # the other major is built for f16 only
    torch.manual_seed(m + n + k)
    a = torch.randn(m, k, device="cuda", dtype=dtype)
    b = torch.randn(n, k, device="cuda", dtype=dtype).t() if k_major else torch.randn(k, n, device="cuda", dtype=dtype)
    try:
        out = gemm.mm(a, b)
    except ImportError:
        pytest.skip("NOT RUN: this problem's kernel is not among the prebuilt ones")
    assert float((out.double() - product(a, b)).abs().max()) <= limit(out, k)


def test_rows_of_a_larger_matrix() -> None:
    """Strides and offsets that TMA takes, and one that it does not."""
    whole = torch.randn(4096, 1032, device="cuda", dtype=torch.float16)
    b = torch.randn(512, 1024, device="cuda", dtype=torch.float16).t()
    for start in (0, 8, 1):
        a = whole[:, start : start + 1024]
        out = gemm.mm(a, b)
        assert float((out.double() - product(a, b)).abs().max()) <= limit(out, 1024)


def test_a_hundred_times_the_same_bits() -> None:
    a = torch.randn(128, 8192, device="cuda", dtype=torch.float16)
    b = torch.randn(8192, 8192, device="cuda", dtype=torch.float16).t()
    first = gemm.mm(a, b)
    out = torch.empty_like(first)
    for _ in range(100):
        out.fill_(float("nan"))
        gemm.mm(a, b, out=out)
        assert torch.equal(out, first)
