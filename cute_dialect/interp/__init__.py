"""CPU interpreter: runs lowered kernels with numpy, without a GPU and without MLIR.

    from cute_dialect.interp import InterpError, Pointer, run_function, run_kernel

The input is the output of `cute-to-base` (arith, scf, cf, llvm, vector, math, nvvm and gpu ops), so a run also tests
the lowering. A kernel is compiled once into closures over lanes (`compiler`, `instructions`). Groups of lanes then
execute them on a `Machine` (`machine`): one warp per group, or many blocks in lockstep if the result cannot differ.
`exec` selects the blocks and the schedule. Memory has real addresses and every access is checked (`memory`, `race`). A
module is data: only its IR is executed, under step and memory limits.
"""

from __future__ import annotations

from cute_dialect.exports import exports

__getattr__, __dir__ = exports(__name__)
