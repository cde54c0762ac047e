"""``op.mm`` and ``op.bmm`` on the GPU: all kinds of matrices, compared with float64."""

from __future__ import annotations

from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch")

from batched_products import FOR_ALL, SHAPES  # noqa: E402

from cute_dialect.op.functions import gemm  # noqa: E402


@pytest.fixture(autouse=True)
def _prebuilt(prebuilt: Callable[[str], None]) -> None:
    prebuilt("gemm")


def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a.double() @ b.double()


def limit(out: torch.Tensor, k: int) -> float:
    eps = {torch.float16: 4e-3, torch.bfloat16: 4e-2, torch.float32: 1e-2}[out.dtype]
    return eps * k**0.5


K_MAJOR = [
    (4096, 512, 256), (2048, 2048, 2048), (128, 8192, 8192), (5000, 4096, 1024), (129, 257, 65), (1, 1, 1),
    (333, 1000, 511),
]  # fmt: skip
CASES = [
    *[(dtype, True, shape) for dtype in (torch.float16, torch.bfloat16) for shape in K_MAJOR],
    *[(torch.float16, False, shape) for shape in ((5000, 4096, 1024), (129, 257, 65), (333, 1001, 512), (1, 1, 1))],
]


@pytest.mark.parametrize(("dtype", "k_major", "shape"), CASES)
def test_mm(dtype: torch.dtype, k_major: bool, shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    torch.manual_seed(m + n + k)
    a = torch.randn(m, k, device="cuda", dtype=dtype)
    b = torch.randn(n, k, device="cuda", dtype=dtype).t() if k_major else torch.randn(k, n, device="cuda", dtype=dtype)
    out = gemm.mm(a, b)
    assert float((out.double() - product(a, b)).abs().max()) <= limit(out, k)


def test_rows_of_a_larger_matrix() -> None:
    """Views of a larger matrix: strides and offsets that TMA accepts, and one that it does not."""
    whole = torch.randn(4096, 1032, device="cuda", dtype=torch.float16)
    b = torch.randn(2048, 1024, device="cuda", dtype=torch.float16).t()
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


def test_bias_and_gelu_in_the_kernel() -> None:
    """Bias and GELU are fused into the kernel that ``cute-bench gemm`` measures, with more than one wave of tiles."""
    a = torch.randn(5000, 1024, device="cuda", dtype=torch.float16)
    b = torch.randn(4096, 1024, device="cuda", dtype=torch.float16).t()
    for _ in range(3):  # The second and third call are cached calls on other memory.
        bias = torch.randn(4096, device="cuda", dtype=torch.float16)
        out = gemm.mm(a, b, bias=bias, activation="gelu")
        exact = torch.nn.functional.gelu(product(a, b) + bias.double())
        assert float((out.double() - exact).abs().max()) <= limit(out, 1024)


@pytest.mark.parametrize("of_a, of_b", FOR_ALL)
@pytest.mark.parametrize("shape", SHAPES)
def test_bmm(shape: tuple[int, int, int, int], of_a: str, of_b: str) -> None:
    """Exact integer results; one matrix is broadcast over the batch by an extent of 1 and by a stride of 0."""
    matrices, m, n, k = shape
    a = torch.randint(-2, 3, (matrices if of_a == "all" else 1, m, k), device="cuda").half()
    b = torch.randint(-2, 3, (matrices if of_b == "all" else 1, k, n), device="cuda").half()
    exact = product(a, b)
    for x, y in ((a, b), (a.expand(matrices, -1, -1), b.expand(matrices, -1, -1))):
        out = torch.full((matrices, m, n), float("nan"), device="cuda", dtype=torch.float16)
        assert gemm.bmm(x, y, out) is out and torch.equal(out.double(), exact.expand(matrices, -1, -1))


def test_calls_that_were_made_before() -> None:
    """Every specialization, split-K included, is replayed on other memory, on two streams and in a CUDA graph."""
    kinds = []
    for m, n, k in ((2048, 2048, 2048), (128, 8192, 8192), (4096, 512, 256)):
        a, b = (torch.randint(-1, 2, s, device="cuda").half() for s in ((3, m, k), (3, n, k)))
        kinds.append((a, b.mT, [x.double() @ y.double().T for x, y in zip(a, b)]))
    other = torch.cuda.Stream()
    for turn in range(4):
        for a, b, exact in kinds:
            for i in range(3):
                with torch.cuda.stream(other if (turn + i) % 2 else torch.cuda.current_stream()):
                    torch.cuda.synchronize()
                    out = torch.full_like(exact[i], float("nan"), dtype=torch.float16)
                    assert gemm.mm(a[i], b[i], out) is out and torch.equal(out.double(), exact[i])
                    assert torch.equal(gemm.mm(a[i], b[i]).double(), exact[i])
    assert len(gemm.PLAIN[2]) >= 2 * len(kinds)
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        results = [gemm.mm(a[0], b[0]) for a, b, _ in kinds]
    for _ in range(3):
        for x in results:
            x.fill_(float("nan"))
        graph.replay()
        torch.cuda.synchronize()
        assert all(torch.equal(x.double(), exact[0]) for x, (_, _, exact) in zip(results, kinds))


def test_torch_does_it_for_rows_that_tma_cannot_read() -> None:
    a = torch.randn(129, 65, device="cuda", dtype=torch.float16)
    b = torch.randn(257, 65, device="cuda", dtype=torch.float16).t()
    c, bias = torch.randn(129, 257, device="cuda", dtype=torch.float16), torch.randn(129, 1, device="cuda")
    out = gemm.mm(a, b, alpha=0.5, beta=2.0, c=c, bias=bias, activation="silu")
    exact = torch.nn.functional.silu(0.5 * product(a, b) + 2.0 * c.double() + bias.double())
    assert float((out.double() - exact).abs().max()) <= limit(out, 65)
