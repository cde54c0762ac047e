"""TMA copies of tiles through shared memory and back on the GPU, exact, with tensor maps encoded at launch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tma_support import CASES, Case, arrays, multicast_arrays

from cute_dialect.runtime import driver as cuda
from cute_dialect.runtime import load

FOLDER = "tma"
"""Folder of the kernels; see ``folder``."""


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_tiles(folder: Path, case: Case) -> None:
    kernel = load(folder / case.name).kernel("launch")
    for seed in range(3):
        a, b, want = arrays(case, seed)
        kernel(a, b)
        assert np.array_equal(b, want)  # type: ignore[arg-type]


def test_multicast(folder: Path) -> None:
    a, b, want = multicast_arrays(200)
    load(folder / "multicast").kernel("launch")(a, b)
    assert np.array_equal(b, want)  # type: ignore[arg-type]


@pytest.mark.parametrize("shape", [(1, 8), (128, 64), (129, 72), (1000, 520), (77, 33), (5, 1), (4096, 4096)])
def test_copy_of_any_matrix(folder: Path, shape: tuple[int, int]) -> None:
    torch = pytest.importorskip("torch", reason="NOT RUN: torch is not installed")
    kernel = load(folder / "tma_copy").kernel("launch")
    a = torch.randn(shape, device="cuda").half()
    storage = torch.full((shape[0] + 2, shape[1]), 7, device="cuda").half()
    b = storage[1:-1]
    plan = kernel.plan(a, b)
    possible = shape[1] % 8 == 0
    assert plan.kernel == ("copy_tma" if possible else "copy_any")
    assert possible or "positive multiple of 16 bytes" in plan.rejected[0]
    kernel(a, b)
    torch.cuda.synchronize()
    assert torch.equal(a, b)
    assert (storage[0] == 7).all() and (storage[-1] == 7).all()


def test_maps_follow_the_addresses(folder: Path) -> None:
    torch = pytest.importorskip("torch", reason="NOT RUN: torch is not installed")
    kernel = load(folder / "tma_copy").kernel("launch")
    gpu = cuda.driver()
    made: list[int] = []
    encode = gpu.encode_map

    def counted(address: int, *rest: object) -> bytes:
        made.append(address)
        return encode(address, *rest)  # type: ignore[arg-type]

    gpu.encode_map = counted  # type: ignore[method-assign]
    try:
        pairs = [[torch.randn(256, 192, device="cuda").half() for _ in range(2)] for _ in range(3)]
        for _ in range(4):
            for a, b in pairs:
                a.normal_()
                kernel(a, b)
                torch.cuda.synchronize()
                assert torch.equal(a, b)
    finally:
        del gpu.encode_map  # type: ignore[method-assign]
    # Each map is encoded once and cached. The first call may prepare the launch twice.
    assert sorted(set(made)) == sorted({t.data_ptr() for pair in pairs for t in pair})
    assert len(made) <= 8


def test_a_call_again_costs_little(folder: Path) -> None:
    """A cached call succeeds without ``_find_ready``, which evaluates the host program and encodes maps."""
    torch = pytest.importorskip("torch", reason="NOT RUN: torch is not installed")
    kernel = load(folder / "tma_copy").kernel("launch")
    a, b = (torch.randn(256, 192, device="cuda").half() for _ in range(2))
    kernel(a, b)
    kernel(a, b)
    torch.cuda.synchronize()
    prepared = kernel._find_ready  # pyright: ignore[reportPrivateUsage]
    kernel._find_ready = None  # type: ignore[assignment, method-assign]
    try:
        a.normal_()
        kernel(a, b)
        torch.cuda.synchronize()
        assert torch.equal(a, b)
    finally:
        kernel._find_ready = prepared  # type: ignore[method-assign]
