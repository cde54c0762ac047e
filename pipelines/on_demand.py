"""Compilation for the interpreter that lowers each kernel on its first run.

A call runs only one variant of a kernel.  Launches read the manifest, which depends on the parameters and the shared
memory of a kernel but not on its code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cute_dialect.pipelines.compilation import Compilation
from cute_dialect.pipelines.gc_pause import collector_paused
from cute_dialect.pipelines.lowered_again import cloning, is_kernel, lowered_again
from cute_dialect.runtime.artifact import Artifact
from cute_dialect.runtime.launch import CompiledModule

if TYPE_CHECKING:  # pragma: no cover
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Region

__all__ = ["compile_on_demand"]

_SHARED = ("cute.memref.alloc_smem", "cute.smem_base")
"""Ops in a kernel body that affect the manifest."""


def compile_on_demand(source: str | ModuleOp, filename: str, *, chip: str | None = None) -> CompiledModule:
    """Compile like ``cute_dialect.pipelines.compile(source, emit="base")``, but lower each kernel on its first run.

    Errors of the passes are raised then.  A module is kept by reference and must not be changed.

    Raises :class:`cute_dialect.pipelines.stages.CompileError`.
    """
    with collector_paused():
        work = Compilation("nvptx", {} if chip is None else {"chip": chip}, None)
        module = work.read(source, filename)[0] if isinstance(source, str) else source
        outlines = work.run_cute(_outlines(module), None)
        manifest = work.manifest(outlines)
        return CompiledModule(Artifact(manifest, (), ()), lowered=lowered_again(cloning(module), "nvptx"))


def _outlines(module: ModuleOp) -> ModuleOp:
    """Return a copy of a module whose kernels contain only their shared memory allocations."""
    bodies = {op: op.regions[0] for op in module.walk() if is_kernel(op)}
    try:
        for function, body in bodies.items():
            function.detach_region(body)
            function.add_region(_outline(body))
        return module.clone()
    finally:
        for function, body in bodies.items():
            for region in list(function.regions):
                function.detach_region(region)
            function.add_region(body)


def _outline(body: Region) -> Region:
    """Return the body of a kernel reduced to its shared memory allocations."""
    from xdsl.dialects.gpu import ReturnOp
    from xdsl.ir import Block, Region

    given = body.blocks[0].args
    block = Block(arg_types=[x.type for x in given])
    for arg, like in zip(block.args, given):
        arg.name_hint, arg.location = like.name_hint, like.location
    block.add_ops([*(op.clone() for op in body.walk() if op.name in _SHARED), ReturnOp([])])
    return Region(block)
