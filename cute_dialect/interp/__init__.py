"""CPU interpreter: runs lowered kernels with numpy, without a GPU and without MLIR.

    from cute_dialect.interp import InterpError, Pointer, run_function, run_kernel

The input is the output of `cute-to-base` (arith, scf, cf, llvm, vector, math, nvvm and gpu ops), so a run also tests
the lowering. A kernel is compiled once into closures (`exec.program`, `exec.compiler`, `instructions`). Groups of lanes
then execute them (`exec.group`, `exec.schedule`, `exec.launch`): one warp per group, or many blocks in lockstep if the
result cannot differ. Memory has real addresses and every access is checked (`memory`). A module is data: only its IR is
executed, under step and memory limits.
"""

from __future__ import annotations

from cute_dialect.exports import exports

__getattr__, __dir__ = exports(__name__)
