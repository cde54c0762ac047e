"""Several kernels of the language in one module, for tests that run each of them by name."""

# pyright: basic

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import cute_dialect.lang as cute


class Use(NamedTuple):
    """A kernel, its tensor and number arguments (annotations or values), and the number of threads per block."""

    kernel: Any
    arguments: Sequence[Any]
    threads: int = 32


def module_text(uses: Sequence[Use], chip: str = "sm_90a") -> str:
    """Return the text of a module with these kernels and a host function that launches all of them."""

    @cute.jit
    def all_of_them(arguments: list):
        for use, given in zip(uses, arguments):
            use.kernel(*given).launch(grid=1, block=use.threads)

    return cute.trace(all_of_them, [list(use.arguments) for use in uses], chip=chip).mlir()


class SharedTile(NamedTuple):
    """A tile of f16 in shared memory: its layout as text, its alignment, and the swizzle of its pointer."""

    layout: str
    align: int = 16
    swizzle: Any = None

    def make(self) -> Any:
        """Allocate the tile inside a kernel."""
        return cute.smem_tensor(cute.Float16, cute.layout(self.layout), self.align, self.swizzle)
