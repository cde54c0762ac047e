"""What a kernel is to who shows, compiles or saves it: a name, a text, a compiled module; texts after each stage."""

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
"""What a stage of compilation is called here -> the pass behind which it is."""


class Source(Protocol):
    """A kernel; ``name`` tells it from all others, ``chip`` is what it is compiled for, "" for the usual one."""

    @property
    def name(self) -> str:
        """Names the kernel."""
        ...

    @property
    def chip(self) -> str:
        """The chip."""
        ...

    def text(self) -> str:
        """Return the kernel's file."""
        ...

    def compiled(self, *, cpu: bool = False) -> CompiledModule:
        """Return it compiled, for a GPU or for the interpreter."""
        ...


def ir_of(source: Source, stage: str) -> str:
    """Return a kernel's file after a stage of :data:`STAGES`.  Raises UnsupportedError."""
    if stage not in STAGES:
        raise UnsupportedError(f"ir: expected a stage of {', '.join(STAGES)}, got {stage!r}")
    if stage == "cute":
        return source.text()
    from cute_dialect.pipelines import compile

    module = compile(
        source.text(), filename=f"{source.name}.mlir", chip=source.chip or None, keep_stages=True,
        emit="base" if stage != "llvm" else "ptx",
    )  # fmt: skip
    return next(s.text for s in module.artifact.stages if s.name == STAGES[stage])


def whole(source: Source) -> CompiledModule:
    """Return a kernel compiled for a GPU, with the IR that the interpreter runs, to be saved."""
    from cute_dialect.pipelines import compile
    from cute_dialect.runtime.launch import CompiledModule

    found = compile(
        source.text(), filename=f"{source.name}.mlir", chip=source.chip or None, keep_stages=True
    ).artifact  # fmt: skip
    stages = tuple([s for s in found.stages if s.name == STAGES["base"]])
    return CompiledModule(found._replace(stages=stages))
