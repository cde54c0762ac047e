"""Copies by atoms and tiled copies: traced, run, compared with numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tracing import run_kernel_on_cpu, text_of, trace_kernel

import cute_dialect.lang as cute
from cute_dialect.front.tensors import Tensor
from cute_dialect.front.trace import current, parse_type

nvgpu = cute.nvgpu
arch = cute.arch


def smem(text: str) -> Tensor:
    """Allocate a tensor in shared memory: ``f16, smem, align<1024>, "(8,8):(8,1)"``."""
    return Tensor.of(current().value("cute.memref.alloc_smem", (), [parse_type(f"!cute.memref<{text}>")]))


def rmem(text: str) -> Tensor:
    """Allocate a register tensor."""
    return Tensor.of(current().value("cute.memref.alloca", (), [parse_type(f"!cute.memref<{text}>")]))


def like(t: Tensor) -> Tensor:
    """Allocate registers like a tensor."""
    return Tensor.of(current().value("cute.make_fragment_like", [t.ssa]))


def run(body: Any, arrays: dict[str, tuple[str, Any]], threads: int = 32) -> None:
    """Trace ``body`` of tensors and run it on arrays."""
    parameters = {name: f"!cute.memref<{text}>" for name, (text, _) in arrays.items()}
    module = trace_kernel(body, parameters, Tensor.of, threads=threads)
    run_kernel_on_cpu(module, [array for _, array in arrays.values()], threads=threads)


@pytest.mark.parametrize("bits", [None, 32, 128])
def test_universal(bits: int | None) -> None:
    def body(x: Tensor, y: Tensor) -> None:
        atom = cute.make_copy_atom(nvgpu.CopyUniversalOp(), cute.Float32, num_bits_per_copy=bits)
        tiled = cute.make_tiled_copy_tv(
            atom, cute.make_layout((4, 8), stride=(8, 1)), cute.make_layout((2, 4), stride=(4, 1))
        )
        assert tiled.size == 32 and tiled.tiler_mn == (8, 32)
        thr = tiled.get_slice(arch.thread_idx().x)
        source, destination = thr.partition_S(x), thr.partition_D(y)
        held = like(source)
        cute.copy(tiled, source, held)
        cute.copy(atom, held, destination)

    x = np.arange(16 * 64, dtype=np.float32).reshape(16, 64)
    y = np.zeros_like(x)
    layout = 'f32, gmem, align<16>, "(16,64):(64,1)"'
    run(body, {"x": (layout, x), "y": (layout, y)})
    assert (x == y).all()
