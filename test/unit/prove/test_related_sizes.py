"""Roles whose numbers of steps are computed in different ways: elements of arrays, products and distances of sizes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cute_dialect.lang as cute
from cute_dialect.prove.proof import Proof

A = cute.arch
STAGES = 2


class Ring:
    """A ring of two stages of 32 numbers between the warps of a block, for one of them."""

    def __init__(self, slots: Any, full: Any, empty: Any, x: Any, y: Any):
        self.slots, self.full, self.empty, self.x, self.y = slots, full, empty, x, y
        self.slot, self.phase, self.lane = cute.Int32(0), cute.Int32(0), A.thread_idx().x % 32

    def start_at(self, done: Any) -> None:
        """Continue after a number of steps."""
        self.slot, self.phase = done & 1, (done >> 1) & 1

    def advance(self) -> None:
        self.phase = self.phase ^ self.slot
        self.slot = self.slot ^ 1

    def write(self, waits: bool = True) -> None:
        if waits:
            A.mbarrier_wait(self.empty + self.slot, self.phase ^ 1)
        self.slots[self.lane, self.slot] = self.x[self.lane, 0]
        A.mbarrier_arrive(self.full + self.slot)
        self.advance()

    def read(self) -> None:
        A.mbarrier_wait(self.full + self.slot, self.phase)
        self.y[self.lane, A.block_idx().x] = self.slots[self.lane, self.slot]
        A.mbarrier_arrive(self.empty + self.slot)
        self.advance()


def verdict(
    writer: Callable[..., None], reader: Callable[..., None], problems: list[tuple[int, int, int]], path: str = ""
) -> Proof:
    """Return the verdict on two roles. Problems are rows, columns of x, and the first element of an array."""

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor, lengths: cute.Tensor, others: cute.Tensor, rows: cute.Int32):
        tid = A.thread_idx().x
        warp = A.make_warp_uniform(tid // 32)
        slots = cute.make_tensor(A.alloc_smem(cute.Float32, 64, 16), cute.make_layout((32, STAGES)))
        full, empty = A.alloc_smem(cute.Int64, STAGES, 8), A.alloc_smem(cute.Int64, STAGES, 8)
        if tid == 0:
            for s in cute.range_constexpr(STAGES):
                A.mbarrier_init(full + s, 32)
                A.mbarrier_init(empty + s, 32)
        A.sync_threads()
        ring = Ring(slots, full, empty, x, y)
        if warp == 0:
            writer(ring, rows, x.shape[1], lengths, others)
        else:
            reader(ring, rows, x.shape[1], lengths, others)

    @cute.jit
    def launch(x: cute.Tensor, y: cute.Tensor, lengths: cute.Tensor, others: cute.Tensor, rows: cute.Int32):
        kernel(x, y, lengths, others, rows).launch(grid=2, block=64)

    calls = []
    for rows, columns, length in problems:
        x, of = np.ones((32, columns), np.float32), np.array([length, length + 1], np.int32)
        calls.append((x, np.zeros((32, 2), np.float32), of, of[::-1].copy(), rows))
    (proof,) = cute.testing.prove(launch, calls[0], problems=calls, certificate=path or None)
    if path:
        (line,) = cute.testing.recheck(launch, calls[0], path)
        assert "certificate accepted" in line
    return proof


PROBLEMS = [(2, 3, 4), (1, 1, 3), (3, 9, 2)]


def by_length(write: str = "") -> tuple[Callable[..., None], Callable[..., None]]:
    """Return roles with a number of steps that is an element of an array."""

    def writer(ring: Ring, rows: Any, columns: Any, lengths: Any, others: Any) -> None:
        if write == "the array is written" and ring.lane == 40:
            lengths[A.block_idx().x] = 1
        if write == "an address is written" and ring.lane == 40:
            by_address(lengths)[A.block_idx().x] = 1
        if write == "an address is read":
            if ring.lane == 40:
                lengths[A.block_idx().x] = 1
            lengths = by_address(lengths)
        if write == "another array":
            lengths = others
        at = A.block_idx().x ^ 1 if write == "another element" else A.block_idx().x
        length = lengths[at]
        if write == "one step fewer":
            length = length - 1
        for _ in range(length):
            ring.write()

    def reader(ring: Ring, rows: Any, columns: Any, lengths: Any, others: Any) -> None:
        if write == "an address is read":
            lengths = by_address(lengths)
        for _ in range(lengths[A.block_idx().x]):
            ring.read()

    return writer, reader


def by_address(x: Any) -> Any:
    """Return an array at the address of another one, an integer."""
    return cute.make_tensor(cute.make_ptr(cute.Int32, x.iterator.toint(), "gmem", assumed_align=4), cute.make_layout(2))


def test_a_number_of_steps_from_an_array_is_the_same_in_all_roles():
    proof = verdict(*by_length(), PROBLEMS)
    assert proof, str(proof)


@pytest.mark.parametrize("defect", ["another array", "another element", "one step fewer"])
def test_other_elements_are_refuted(defect: str):
    proof = verdict(*by_length(defect), PROBLEMS)
    assert proof.verdict == "refuted" and "deadlock" in proof.reason, str(proof)


@pytest.mark.parametrize("write", ["the array is written", "an address is written", "an address is read"])
def test_an_array_that_the_kernel_writes_is_unknown(write: str):
    proof = verdict(*by_length(write), PROBLEMS)
    assert proof.verdict == "not proved" and "the bounds of a loop are not known" in proof.reason, str(proof)


def by_product(guard: str = "") -> tuple[Callable[..., None], Callable[..., None]]:
    """Return roles with `(rows - 1) * columns` steps, of which one peels the first step."""

    def writer(ring: Ring, rows: Any, columns: Any, lengths: Any, others: Any) -> None:
        for _ in range((rows - 1) * columns):
            ring.write()

    def reader(ring: Ring, rows: Any, columns: Any, lengths: Any, others: Any) -> None:
        if rows > (0 if guard == "one row" else 1) and columns > (-1 if guard == "no columns" else 0):
            ring.read()
            for _ in range((rows - 1) * columns - 1):
                ring.read()

    return writer, reader


def test_a_product_is_positive_if_its_factors_are():
    proof = verdict(*by_product(), PROBLEMS)
    assert proof, str(proof)
    assert "((rows - 1) * x.shape[1]) < 2^31" in proof.assumed


def test_a_product_with_a_factor_of_zero_is_not():
    proof = verdict(*by_product("one row"), [(1, 3, 2)])
    assert proof.verdict == "refuted" and "deadlock" in proof.reason, str(proof)
    proof = verdict(*by_product("no columns"), PROBLEMS)
    assert "x.shape[1] >= 1" in proof.assumed, str(proof)


def by_distance(ahead: int = STAGES, late: int = 0) -> tuple[Callable[..., None], Callable[..., None]]:
    """Return roles with `rows - columns` steps. One of them fills the first stages without a wait."""

    def writer(ring: Ring, rows: Any, columns: Any, lengths: Any, others: Any) -> None:
        steps = rows - columns
        done = cute.min(steps, ahead)
        for _ in range(done):
            ring.write(waits=False)
        if steps > 0:
            ring.start_at(done)
        for _ in range(done, steps):
            ring.write()

    def reader(ring: Ring, rows: Any, columns: Any, lengths: Any, others: Any) -> None:
        for _ in range(rows - columns - late):
            ring.read()

    return writer, reader


DISTANCES = [(9, 3, 1), (4, 1, 1), (12, 2, 1), (3, 2, 1)]


def test_a_comparison_of_a_distance_decides_the_length_of_a_loop():
    proof = verdict(*by_distance(), DISTANCES)
    assert proof, str(proof)


@pytest.mark.parametrize(("ahead", "late"), [(STAGES + 1, 0), (STAGES, STAGES + 1), (STAGES, -1)])
def test_a_wrong_distance_is_refuted(ahead: int, late: int):
    proof = verdict(*by_distance(ahead, late), DISTANCES)
    assert proof.verdict == "refuted", str(proof)


@pytest.mark.parametrize("roles", [by_length, by_product, by_distance])
def test_certificates_are_accepted(roles: Callable[..., Any], tmp_path: Path):
    assert verdict(*roles(), DISTANCES, str(tmp_path / "ring.cert"))
