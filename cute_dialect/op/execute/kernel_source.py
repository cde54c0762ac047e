"""Interface of a kernel that can be shown, compiled and saved: a name, a text, and a compiled module."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from cute_dialect.op.errors import UnsupportedError

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.runtime.launch import CompiledModule

__all__ = ["STAGES", "Source", "ir_of", "whole"]

STAGES = {
    "cute": "input", "expanded": "cute-expand-ops", "arch": "convert-cute-algo-to-arch", "base": "cute-to-base",
    "llvm": "one-shot-convert-to-llvm",
}  # fmt: skip
"""Names of compilation stages -> the pass after which the text is taken."""


class Source(Protocol):
    """A kernel with a unique ``name``; ``chip`` is its target, "" for the default."""

    @property
    def name(self) -> str:
        """Name of the kernel."""
        ...

    @property
    def chip(self) -> str:
        """Target of the kernel."""
        ...

    def text(self) -> str:
        """Return the source text of the kernel."""
        ...

    def compiled(self, *, cpu: bool = False) -> CompiledModule:
        """Return the kernel compiled for the GPU or for the interpreter."""
        ...


def ir_of(source: Source, stage: str) -> str:
    """Return the text of a kernel after a stage of :data:`STAGES`.  Raises UnsupportedError."""
    if stage not in STAGES:
        raise UnsupportedError(f"ir: stage {stage!r} is unknown; use one of {', '.join(STAGES)}")
    if stage == "cute":
        return source.text()
    from cute_dialect.pipelines import compile  # late: start-up

    module = compile(
        source.text(), filename=f"{source.name}.mlir", chip=source.chip or None, keep_stages=True,
        emit="base" if stage != "llvm" else "ptx",
    )  # fmt: skip
    return next(s.text for s in module.artifact.stages if s.name == STAGES[stage])


def whole(source: Source) -> CompiledModule:
    """Return a kernel compiled for the GPU together with the IR for the interpreter, to be saved."""
    from cute_dialect.pipelines import compile  # late: start-up
    from cute_dialect.runtime.launch import CompiledModule

    found = compile(
        source.text(), filename=f"{source.name}.mlir", chip=source.chip or None, keep_stages=True
    ).artifact  # fmt: skip
    stages = tuple([s for s in found.stages if s.name == STAGES["base"]])
    return CompiledModule(found._replace(stages=stages))
