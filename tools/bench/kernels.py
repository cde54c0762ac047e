"""Compiled GEMM kernels as functions of arrays."""

# torch is not installed where the types are checked.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from typing import Any

from cute_dialect.op.execute.kernels import share_of
from cute_dialect.op.execute.launcher import ready
from cute_dialect.op.select.kernel_choice import Choice
from cute_dialect.runtime.launch import CompiledModule


class Runner:
    """A GEMM kernel, called with A (M, K), B (N, K), C (M, N) and a bias if its epilogue has one.

    Batches have a third mode.
    """

    def __init__(self, choice: Choice, module: CompiledModule):
        self.choice = choice
        self._kernel = ready(module, share_of(choice))

    def __call__(self, a: Any, b: Any, c: Any, *more: Any, **options: Any) -> Any:
        if self.choice.swapped:  # The kernel computes C^T = B A^T.
            a, b, c = b, a, c.transpose(0, 1)
        return self._kernel(a, b, c, *more, **options)
