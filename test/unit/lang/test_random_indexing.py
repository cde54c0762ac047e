"""Indexing and slicing of random layouts, with static and dynamic leaves, compared with reference offsets."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pytest
from tracing import run_kernel_on_cpu, trace_kernel

from cute_dialect import lang as cute
from cute_dialect.lang.values.dtypes import Int32
from cute_dialect.lang.values.tensors import Tensor

Tree = Any


def random_layout(rng: random.Random, depth: int = 0) -> tuple[Tree, Tree]:
    """Return a random shape and strides."""
    if depth == 2 or rng.random() < 0.4:
        return rng.randint(1, 4), rng.choice([0, 1, 2, 3, 5, 8, 16, 40])
    modes = [random_layout(rng, depth + 1) for _ in range(rng.randint(1, 3))]
    return tuple(s for s, _ in modes), tuple(d for _, d in modes)


def size(shape: Tree) -> int:
    """Return the number of coordinates of a shape."""
    return int(np.prod([size(s) for s in shape])) if isinstance(shape, tuple) else shape


def offset(coord: Tree, shape: Tree, stride: Tree) -> int:
    """Return the offset of a coordinate. An integer is a linear index, first leaf fastest."""
    if not isinstance(shape, tuple):
        return coord * stride
    if not isinstance(coord, tuple):
        parts: list[int] = []
        for i, s in enumerate(shape):
            last = i == len(shape) - 1
            parts.append(coord if last else coord % size(s))
            coord = coord // size(s)
        coord = tuple(parts)
    return sum(offset(c, s, d) for c, s, d in zip(coord, shape, stride))


def random_coord(rng: random.Random, shape: Tree, holes: bool) -> Tree:
    """Return a random coordinate, no deeper than the shape. With ``holes``, some modes are None."""
    if holes and rng.random() < 0.35:
        return None
    if isinstance(shape, tuple) and rng.random() < 0.75:
        return tuple(random_coord(rng, s, holes) for s in shape)
    return rng.randrange(size(shape))


def offsets(coord: Tree, shape: Tree, stride: Tree) -> list[int]:
    """Return the offsets of all coordinates that match one with open modes, first open leaf fastest."""
    if coord is None:
        return [offset(i, shape, stride) for i in range(size(shape))]
    if isinstance(coord, tuple):
        parts = [offsets(c, s, d) for c, s, d in zip(coord, shape, stride)]
        return [sum(reversed(p)) for p in itertools.product(*reversed(parts))]
    return [offset(coord, shape, stride)]


def some_dynamic(rng: random.Random, tree: Tree, zero: Any) -> Tree:
    """Return the tree with some integers replaced by run-time values."""
    if isinstance(tree, tuple):
        return tuple(some_dynamic(rng, t, zero) for t in tree)
    return tree if tree is None or rng.random() < 0.5 else zero + tree


def holds_none(tree: Tree) -> bool:
    """Return True if a mode is None."""
    return any(map(holds_none, tree)) if isinstance(tree, tuple) else tree is None


@pytest.mark.sample(every=2)
@pytest.mark.parametrize("seed", range(4))
def test_reads_and_slices(seed: int) -> None:
    rng = random.Random(seed)
    expected: list[float] = []

    def body(x: Any, out: Any, zero: Any) -> None:
        for _ in range(30):
            shape, stride = random_layout(rng)
            fixed = rng.random() < 0.5
            t = cute.make_tensor(x.iterator, cute.make_layout(
                shape, stride=stride if fixed else some_dynamic(rng, stride, zero)))  # fmt: skip
            coord = random_coord(rng, shape, holes=rng.random() < 0.6)
            where = some_dynamic(rng, coord, zero)
            found = t[where]
            at = offsets(coord, shape, stride)
            if holds_none(coord):
                values = found.load()
                assert values.size == len(at)
                if len(at) <= 32:
                    out[len(expected)] = values.to(Int32).reduce("add")
                    expected.append(sum(at))
                i = rng.randrange(len(at))
                out[len(expected)] = found[zero + i]
                expected.append(at[i])
                out[len(expected)] = values[i]
                expected.append(at[i])
            else:
                out[len(expected)] = found
                expected.append(at[0])

    wrap = lambda v: Tensor.of(v) if "memref" in str(v.type) else Int32.of(v)  # noqa: E731
    parameters = {"x": '!cute.memref<f32, gmem, "4096:1">', "out": '!cute.memref<f32, gmem, "256:1">', "zero": "i32"}
    module = trace_kernel(body, parameters, wrap, threads=1)
    out = np.zeros(256, np.float32)
    run_kernel_on_cpu(module, [np.arange(4096, dtype=np.float32), out, 0], threads=1)
    assert out[: len(expected)].tolist() == expected
