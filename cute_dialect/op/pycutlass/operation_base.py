"""Base of described operations: names and texts, compiled kernels, and launches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from cute_dialect.op.execute.kernel_source import ir_of
from cute_dialect.op.execute.kernels import Variant, compiled, share_of
from cute_dialect.op.execute.launcher import Launcher, ready
from cute_dialect.op.execute.saved import SavedKernels, module_of

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.interp import RunReport
    from cute_dialect.runtime.launch import CompiledModule

__all__ = ["DescribedOperation", "Launchable"]


class Launchable(Protocol):
    """The arguments of a call."""

    def launch(self) -> RunReport | None:
        """Launch, or on the CPU run the interpreter and return its report."""
        ...


class DescribedOperation:
    """Base of operations, whose kernels are :meth:`variants`.

    ``saved`` holds compiled kernels of a saved plan; None to compile them.
    """

    saved: SavedKernels | None

    def __init__(self, saved: SavedKernels | None = None):
        self.saved = saved
        self._launchers: dict[tuple[Variant, bool], Launcher] = {}

    def variants(self) -> list[Variant]:
        """Return the kernels for any numbers."""
        raise NotImplementedError

    def first(self) -> Variant:
        """Return the kernel that names and texts refer to."""
        return self.variants()[0]

    def module(self, variant: Variant, on_cpu: bool = False) -> CompiledModule:
        """Return a compiled kernel."""
        return module_of(variant, self.saved, cpu=on_cpu)

    def launcher(self, variant: Variant, on_cpu: bool) -> Launcher:
        """Return a compiled kernel with its calling convention."""
        found = self._launchers.get((variant, on_cpu))
        if found is None:
            kernel = ready(self.module(variant, on_cpu), share_of(variant.configured))
            found = self._launchers[variant, on_cpu] = Launcher(kernel, variant.recipe())
        return found

    def compile(self, alpha: float = 1.0, beta: float = 0.0) -> None:
        """Compile the kernels for the GPU, for these numbers."""
        for variant in self.variants():
            compiled(variant)

    def run(self, arguments: Launchable) -> RunReport | None:
        """Launch the arguments, or on the CPU run the interpreter and return its report."""
        return arguments.launch()

    @property
    def name(self) -> str:
        """Name of the kernel."""
        return self.first().name

    def procedural_name(self) -> str:
        return self.name

    def ir(self, stage: str = "cute") -> str:
        """Return the text of the kernel after a stage: ``cute``, ``expanded``, ``arch``, ``base`` or ``llvm``.

        Raises UnsupportedError for other stages.
        """
        return ir_of(self.first(), stage)

    @property
    def ptx(self) -> str:
        """The PTX text."""
        return self.module(self.first()).ptx

    @property
    def report(self) -> str:
        """The report of ptxas: registers and spills."""
        return self.module(self.first()).report

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"
