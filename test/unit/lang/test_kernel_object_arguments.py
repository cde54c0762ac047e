"""A kernel receives its own copy of an object with dynamic parts that a host function passes."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

import cute_dialect.lang as cute


@dataclasses.dataclass
class Work:
    """A work description with dynamic parts."""

    tiles: Any
    scale: Any
    name: str = "work"
    parts: list[Any] = dataclasses.field(default_factory=list)


class Tree:
    """An object that contains itself."""

    def __init__(self, value: Any):
        self.value = value
        self.me = self


@cute.kernel
def fill(out: cute.Tensor, work: Any, tree: Any, both: Any):
    i = cute.arch.thread_idx().x
    work.scale = work.scale + 1  # This changes the kernel's copy only.
    assert tree.me is tree and both[0] is both[1]
    out[i] = work.tiles * 100 + work.scale * 10 + work.parts[1] + tree.value + both[0][0]


@cute.jit
def run(out: cute.Tensor, n: cute.Int32):
    work = Work(n + 1, 2, parts=[7, n])
    pair = [n]
    fill(out, work, Tree(n * 1000), (pair, pair)).launch(grid=1, block=8)
    assert work.scale == 2


def test_objects_are_flattened_and_rebuilt() -> None:
    out = np.zeros(8, np.int32)
    run(out, 3, device="cpu")
    assert (out == 4 * 100 + 3 * 10 + 3 + 3000 + 3).all()
    text = cute.compile(run, out, 3, device="cpu").mlir("trace")
    assert "gpu.func @fill(%out" in text and text.split("gpu.func @fill")[1].split(")")[0].count("i32,") <= 4
