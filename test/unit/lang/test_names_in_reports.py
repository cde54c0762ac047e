"""Reports of the interpreter use the names of the user's variables and show no IR."""

from __future__ import annotations

import numpy as np
import pytest

import cute_dialect.lang as cute


@cute.struct
class Storage:
    first: cute.struct.MemRange[cute.Float32, 64]
    second: cute.struct.MemRange[cute.Float32, 64]


@cute.kernel
def of_tensor(x: cute.Tensor):
    tile = cute.smem_tensor(cute.Float32, cute.make_layout(64))
    thread = cute.arch.thread_idx().x
    tile[thread] = x[thread]
    x[thread] = tile[63 - thread]


@cute.kernel
def of_array(x: cute.Tensor):
    line = cute.make_tensor(cute.utils.SmemAllocator().allocate_array(cute.Float32, 64), cute.make_layout(64))
    thread = cute.arch.thread_idx().x
    line[thread] = x[thread]
    x[thread] = line[63 - thread]


@cute.kernel
def of_structure(x: cute.Tensor):
    storage = cute.utils.SmemAllocator().allocate(Storage)
    half = storage.second.get_tensor(cute.make_layout(64))
    thread = cute.arch.thread_idx().x
    half[thread] = x[thread]
    x[thread] = half[63 - thread]


@cute.kernel
def of_registers(x: cute.Tensor):
    acc = cute.make_rmem_tensor(4, cute.Float32)
    x[0] = acc[3]


@cute.jit
def run(x: cute.Tensor, kernel: cute.Constexpr):
    kernel(x).launch(grid=1, block=64)


@pytest.mark.parametrize(
    "kernel,place",
    [
        (of_tensor, "element 63 of 'tile'"), (of_array, "byte 252 of 'line'"),
        (of_structure, "byte 508 of 'storage'"), (of_registers, "element 3 of 'acc'"),
    ],
)  # fmt: skip
def test_reports_name_variables(kernel: object, place: str) -> None:
    with pytest.raises(cute.InterpError) as caught:
        run(np.zeros(64, np.float32), kernel, device="cpu", checks="all")
    assert place in caught.value.message
    assert "llvm." not in str(caught.value) and "%" not in str(caught.value)
    assert caught.value.op_text  # The attribute keeps the op.
