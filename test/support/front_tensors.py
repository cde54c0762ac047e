"""Helpers for traced kernels on tensors: allocate shared memory, and run a kernel body on arrays."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from tracing import run_kernel_on_cpu, trace_kernel

from cute_dialect.lang.tracing.tracer import current, parse_type
from cute_dialect.lang.values.tensors import Tensor


def shared_tensor(text: str) -> Tensor:
    """Allocate a tensor in shared memory from a text such as ``f16, smem, align<1024>, "(8,8):(8,1)"``."""
    return Tensor.of(current().value("cute.memref.alloc_smem", (), [parse_type(f"!cute.memref<{text}>")]))


def identity_tensor(m: int = 16, n: int = 64) -> Tensor:
    """Return the tensor whose elements are its own coordinates."""
    return Tensor.static(parse_type(f'!cute.coord_tensor<"(0,0)", "({m},{n}):(1@0,1@1)">'))


def view(iterator: Any, layout: Any) -> Tensor:
    """Return the tensor of a pointer and a layout."""
    return Tensor.of(current().value("cute.make_view", [iterator.ssa, layout.ssa]))


@contextmanager
def when(condition: Any) -> Generator[None]:
    """Open an ``scf.if`` without results. Tests that do not cover control flow use it."""
    from xdsl.ir import Block, Region

    tracer, then = current(), Block()
    with tracer.into(then):
        yield
        tracer.op("scf.yield")
    tracer.op("scf.if", [condition.ssa], [], regions=[Region(then), Region()])


def run_on_arrays(body: Any, arrays: dict[str, tuple[str, Any]], threads: int = 32, chip: str = "sm_90a") -> Any:
    """Trace ``body`` with tensor parameters, run it on arrays, and return the module."""
    parameters = {name: f"!cute.memref<{text}>" for name, (text, _) in arrays.items()}
    module = trace_kernel(body, parameters, Tensor.of, threads=threads, chip=chip)
    run_kernel_on_cpu(module, [array for _, array in arrays.values()], threads=threads)
    return module
