"""Exact f32, ``mma.sync`` (f64 and others) and 3xTF32 kernels on the GPU, compared with float64 and exact integers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from type_kernels import EXACT, FEW, REGISTERS, THREE, WARP  # noqa: E402

from cute_dialect.kernels.common.elements import factors  # noqa: E402
from cute_dialect.kernels.gemm.mma_sync import WarpConfig  # noqa: E402
from cute_dialect.kernels.gemm.simt import ExactConfig  # noqa: E402
from cute_dialect.kernels.gemm.split_tf32 import padded  # noqa: E402
from cute_dialect.runtime import load  # noqa: E402

DTYPES = {
    "f64": torch.float64, "tf32": torch.float32, "i8": torch.int8, "ui8": torch.uint8, "i32": torch.int32,
    "f8E4M3FN": torch.float8_e4m3fn, "bf16": torch.bfloat16, "f32": torch.float32, "f16": torch.float16,
}  # fmt: skip


FOLDER = "type_kernels"


@pytest.fixture
def kernels(folder: Path) -> Any:
    """Return a function from names to kernels."""
    return lambda name: load(str(folder / name)).kernel("launch")


def with_major(x: torch.Tensor, k_major: bool) -> torch.Tensor:
    return x if k_major else x.mT.contiguous().mT


def rms(x: torch.Tensor, exact: torch.Tensor) -> float:
    return float((x.double() - exact).square().mean().sqrt())


@pytest.mark.parametrize("config", EXACT, ids=lambda c: c.name)
def test_exact(kernels: Any, config: ExactConfig) -> None:
    launch = kernels(config.name)
    for m, n, k in ((1024, 768, 512), (513, 1001, 77), (1, 1, 1), (4096, 4096, 1024)):
        matrices = 3 if config.batch else 1
        a = with_major(torch.randn(matrices, m, k, device="cuda"), config.major_a == "k")
        b = with_major(torch.randn(matrices, n, k, device="cuda"), config.major_b == "k")
        c = torch.full((matrices, m, n), float("nan"), device="cuda")
        bias = torch.randn(n, device="cuda")
        fused = config.epilogue.active
        given = [x.permute(1, 2, 0) if config.batch else x[0] for x in (a, b, c)]
        size, counters = config.workspace(m, n, matrices)
        memory = [torch.empty(size, device="cuda"), torch.zeros(counters, device="cuda", dtype=torch.int32)]
        launch(*given, *(memory if size else ()), *((bias, 0.5) if fused else ()))
        assert not bool(memory[1].any())
        exact, bound = a.double() @ b.double().mT, a.double().abs() @ b.double().mT.abs()
        if fused:
            exact, bound = (exact / 2 + bias.double()).clamp(min=0), bound + bias.abs()
        assert bool(((c.double() - exact).abs() <= (k + 2) * 2.0**-24 * bound).all()), (m, n, k)


@pytest.mark.parametrize("config", WARP, ids=lambda c: c.name)
def test_by_warps(kernels: Any, config: WarpConfig) -> None:
    """Exact results of the ``mma.sync`` kernels on integers."""
    launch, generator = kernels(config.name), torch.Generator("cuda").manual_seed(0)
    for m, n, k in ((1024, 768, 512), (513, 1001, 77), (130, 66, 34), (1, 1, 1), (4096, 4096, 1024)):
        matrices = 3 if config.batch else 1

        def matrix(element: str, rows: int, major: str, matrices: int = matrices, k: int = k) -> torch.Tensor:
            low, high = {"f64": (-(2**20), 2**20), "ui8": (0, 256), "i8": (-128, 128)}.get(element, (-3, 4))
            if config.output == "i8":
                low, high = -3, 4
            x = torch.randint(low, high, (matrices, rows, k), device="cuda", generator=generator)
            return with_major(x.float().to(DTYPES[element]) if element != "f64" else x.double(), major == "k")

        of_a, of_b = factors(config.element)
        a, b = matrix(of_a, m, config.majors[0]), matrix(of_b, n, config.majors[1])
        exact = a.double() @ b.double().mT
        if config.output == "i8":
            exact = exact.clamp(-128, 127)
        size, counters = config.workspace(m, n, matrices)
        memory = (
            torch.full((size,), float("nan"), device="cuda"),
            torch.zeros(counters, device="cuda", dtype=torch.int32),
        )
        for _ in range(5 if size else 1):
            c = torch.full((matrices, m, n), 77, device="cuda").to(DTYPES[config.output])
            given = [x.permute(1, 2, 0) if config.batch else x[0] for x in (a, b, c)]
            launch(*given, *(memory if size else ()))
            assert torch.equal(c.double(), exact.to(c.dtype).double()), (m, n, k)
            assert not bool(memory[1].any())


@pytest.mark.parametrize("name", REGISTERS)
def test_through_registers(kernels: Any, name: str) -> None:
    """Exact results on integers, with partial tiles, when A passes through registers or C has any layout."""
    launch, c = kernels(name), REGISTERS[name]
    generator = torch.Generator("cuda").manual_seed(0)
    most = 100 if c.output == "i32" else 1
    for m, n, k in ((1024, 768, 512), (528, 1040, 80), (4096, 2048, 1024), (16, 16, 16), (8192, 8192, 128)):
        matrices = 3 if c.batch else 1
        a, b = (
            torch.randint(-most, most + 1, (matrices, rows, k), device="cuda", generator=generator).float()
            for rows in (m, n)
        )
        n += c.direct  # TMA cannot store rows of this length.
        b = torch.nn.functional.pad(b, (0, 0, 0, n - b.shape[1]), value=1.0)
        x, y = (with_major(t.to(DTYPES[c.element]), major == "k") for t, major in ((a, c.major_a), (b, c.major_b)))
        shape = (matrices, m, n) if c.major_c == "n" else (matrices, n, m)
        out = torch.full(shape, 77, device="cuda").to(DTYPES[c.output])
        out = out if c.major_c == "n" else out.mT
        launch(*(t.permute(1, 2, 0) if c.batch else t[0] for t in (x, y, out)))
        exact = a.double() @ b.double().mT
        assert torch.equal(out.double(), exact.to(out.dtype).double()), (m, n, k)


@pytest.mark.parametrize("name", FEW)
def test_few_rows_and_columns(kernels: Any, name: str) -> None:
    """Exact, repeatable results on integers, with few rows or columns in one tile and in two."""
    launch, c = kernels(name), FEW[name]
    generator = torch.Generator("cuda").manual_seed(0)
    for m, n, k in ((c.live or 128, 4096, 4096), (16, 1032, 1008), (16 if c.live else 136, 264, 8192), (8, 8, 512)):
        x, y = (
            with_major(
                torch.randint(-1, 2, (rows, k), device="cuda", generator=generator).float().to(DTYPES[c.element]),
                major == "k",
            )
            for rows, major in ((m, c.major_a), (n, c.major_b))
        )
        exact, before = x.double() @ y.double().mT, None
        for _ in range(10):
            out = torch.full((m, n) if c.major_c == "n" else (n, m), 77, device="cuda").to(DTYPES[c.output])
            out = out if c.major_c == "n" else out.mT
            launch(x, y, out)
            assert torch.equal(out.double(), exact.to(out.dtype).double()), (m, n, k)
            assert before is None or torch.equal(out, before)
            before = out


@pytest.mark.parametrize("name", THREE)
@pytest.mark.parametrize("k", [512, 4096, 8192])
def test_three_products_of_tf32(kernels: Any, name: str, k: int) -> None:
    """3xTF32 with a second accumulator has at most twice the error of torch's f32 matmul.

    With one accumulator, whose sums are truncated, the error grows with K: 27 times at 4096, 39 times at 8192 (H200).
    """
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.manual_seed(0)
    a, b = torch.randn(1024, k, device="cuda"), torch.randn(1536, k, device="cuda")
    parts = []
    for x, order in ((a, "a"), (b, "b")):
        parts.append(torch.empty(x.shape[0], 3 * padded(k), device="cuda"))
        kernels(f"split_{order}")(x, parts[-1])
    c = torch.empty(1024, 1536, device="cuda")
    kernels(name)(*parts, c)
    exact = a.double() @ b.double().t()
    ours, theirs = rms(c, exact), rms(a @ b.t(), exact)
    print(f"{name} K {k}: RMS error {ours:.3g}, torch's f32 {theirs:.3g}, ratio {ours / theirs:.2f}")
    assert ours <= (2 if name == "three" else max(20, k / 128)) * theirs
