"""Launcher of a compiled GEMM on GPU arrays or on the interpreter.  It does not need the compiler."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast

from cute_dialect.op.arrays.memory import new_memory
from cute_dialect.op.execute.calling_convention import Recipe
from cute_dialect.op.problems.plan_operands import Operands
from cute_dialect.runtime.arrays import ArrayView, stream_of

if TYPE_CHECKING:  # pragma: no cover
    from typing import Unpack

    from cute_dialect.interp import RunReport
    from cute_dialect.runtime.launch import CallOptions, CompiledModule

__all__ = ["Launcher"]


class Launcher:
    """A kernel with its calling convention.  It keeps one workspace per stream."""

    def __init__(self, module: CompiledModule, recipe: Recipe):
        self.module, self.recipe = module, recipe
        self.kernel = module.kernel("launch")
        self._shared: dict[tuple[int, int, int, int], tuple[ArrayView, ArrayView]] = {}

    def __call__(self, x: Operands, stream: object = None, **options: Unpack[CallOptions]) -> RunReport | None:
        """Launch on operands that are all in GPU memory, or with ``device="cpu"`` in CPU memory."""
        if self.recipe.share is None:
            shared: Sequence[ArrayView] = ()
        elif x.d.device < 0:
            shared = self._new(x)
        else:
            shared = self.memory(x, stream_of(stream, (x.d,)))
        return self.kernel(*self.recipe.arguments(x, shared), stream=stream, **options)

    def bind(self, x: Operands) -> Callable[..., None]:
        """Return a function that only launches on these operands, with a workspace of its own."""
        shared = self._new(x) if self.recipe.share is not None else ()
        return self.kernel.bind(*self.recipe.arguments(x, shared))

    def by_address(self, x: Operands, stream: int) -> Callable[..., None] | None:
        """Return a launch for operands like these at other addresses: ``launch(stream, a, b, d[, c][, bias])``.

        The addresses are those of :meth:`~cute_dialect.op.execute.calling_convention.Recipe.arrays`.  Returns None if
        there is nothing to launch, or if blocks share a workspace.
        """
        if self.recipe.share is not None:
            return None
        launch = self.kernel.by_address(*self.recipe.arguments(x))
        if launch is None:
            return None
        zeros = (0,) * len(self.recipe.numbers)
        swapped = self.recipe.transposed and not self.recipe.sums

        def by_address(stream: int, a: int, b: int, *others: int) -> None:
            first, second = (b, a) if swapped else (a, b)
            launch(stream, first, second, *others, *zeros)

        return by_address if zeros or swapped else launch

    def memory(self, x: Operands, stream: int) -> Sequence[ArrayView]:
        """Return the workspace that the blocks of a launch share."""
        if self.recipe.share is None:
            return ()
        floats, counters = self.recipe.of_shared(x)
        if _captured(x.d):  # The counters are zeroed by the graph, so the workspace cannot be shared with other calls.
            return self._new(x)
        key = (x.d.device, stream, floats, counters)
        found = self._shared.get(key)
        if found is None:
            found = self._shared[key] = self._new(x)
        return found

    def _new(self, x: Operands) -> tuple[ArrayView, ArrayView]:
        floats, counters = self.recipe.of_shared(x)
        return new_memory(x.d, floats, "f32"), new_memory(x.d, counters, "i32", zero=True)


def _captured(view: ArrayView) -> bool:
    """Return True if a CUDA graph captures the current stream."""
    torch = sys.modules.get("torch")
    return torch is not None and view.library == "torch" and cast(bool, torch.cuda.is_current_stream_capturing())
