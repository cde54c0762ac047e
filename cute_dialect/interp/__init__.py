"""The interpreter: runs lowered kernels on the CPU with numpy, without GPU and without MLIR.

    from cute_dialect.interp import InterpError, Pointer, run_function, run_kernel

It takes the output of `cute-to-base` (arith, scf, cf, llvm, vector, math, nvvm and gpu ops), so that the lowering
itself is what runs.  A kernel is compiled once into closures (`program`, `control`, `cfg`, `ops`), then executed by
groups of lanes (`group`, `schedule`, `launch`): a warp each, or many blocks at once when the kernel cannot tell the
difference.  Memory has real addresses and every access is checked (`memory`).  The file is data: nothing in it is
executed but its IR, under step and memory limits.
"""

from __future__ import annotations

from cute_dialect.exports import exports

__getattr__, __dir__ = exports(__name__)
