"""Base IR on request: of a whole compiled module, or of one kernel when the interpreter first runs it.

A compiled module keeps its text or its module, and lowers it when the interpreter, or a user, asks for base IR.
:func:`compile_lazily` lowers nothing in advance: a call runs only one variant of a kernel, and launches read the
manifest, which depends on the parameters and the shared memory of a kernel but not on its code.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from cute_dialect.pipelines.compilation import Compilation, collector_paused
from cute_dialect.runtime.artifact import Artifact
from cute_dialect.runtime.launch import CompiledModule

if TYPE_CHECKING:  # pragma: no cover
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Operation, Region

    from cute_dialect.runtime.launch import Lowered

__all__ = ["cloning", "compile_lazily", "is_kernel", "lowered_again", "lowered_when_asked", "reading", "remarks_again"]


def lowered_when_asked(module: Callable[[], ModuleOp], pipeline: str = "nvptx") -> Lowered:
    """Return a function that builds and lowers a module on request."""
    return lowered_again(lambda _: module().clone(), pipeline)


def lowered_again(read: Callable[[Compilation], ModuleOp], pipeline: str) -> Lowered:
    """Return a function that lowers a compiled module on request, in whole or for one kernel.

    ``read`` returns a module that may be lowered in place.
    """
    kept: dict[str | None, ModuleOp] = {}

    def lowered(kernel: str | None) -> ModuleOp:
        if kernel not in kept:
            with collector_paused():
                work = Compilation(pipeline, {}, None)
                module = read(work)
                if kernel is not None:
                    _drop_others(module, kernel)
                kept[kernel] = work.run_cute(module, None)
        return kept[kernel]

    return lowered


def remarks_again(read: Callable[[Compilation], ModuleOp], pipeline: str) -> Callable[[], list[str]]:
    """Return a function that lowers a module, which may be changed in place, for the remarks of the passes."""

    def remarks() -> list[str]:
        with collector_paused():
            work = Compilation(pipeline, {}, None)
            work.run_cute(read(work), None)
        return work.remarks()

    return remarks


def reading(text: str | Callable[[], str], name: str) -> Callable[[Compilation], ModuleOp]:
    """Return a function that parses a text (or the result of a function) that is known to be valid."""
    return lambda work: work.parse(text if isinstance(text, str) else text(), name, verified=True)


def cloning(module: ModuleOp) -> Callable[[Compilation], ModuleOp]:
    """Return a function that copies a module."""
    return lambda _: module.clone()


def is_kernel(op: Operation) -> bool:
    """Return True if an op is a kernel that has not been lowered."""
    names = (*op.attributes, *op.properties)
    return op.name == "gpu.func" and ("kernel" in names or "gpu.kernel" in names)


def _drop_others(module: ModuleOp, kernel: str) -> None:
    """Remove the other kernels and the host functions that launch kernels."""
    for op in list(module.ops):
        if op.name == "gpu.module":
            for inner in [o for b in op.regions[0].blocks for o in b.ops]:
                name = getattr({**inner.attributes, **inner.properties}.get("sym_name"), "data", kernel)
                if is_kernel(inner) and name != kernel:
                    inner.detach()
                    inner.erase(safe_erase=False)
        elif op.name == "func.func" and any(inner.name == "gpu.launch_func" for inner in op.walk()):
            op.detach()
            op.erase(safe_erase=False)


# --------------------------------------------------------------------------------------------------- without its code

_SHARED = ("cute.memref.alloc_smem", "cute.smem_base")
"""Ops in a kernel body that affect the manifest."""


def compile_lazily(source: str | ModuleOp, filename: str, *, chip: str | None = None) -> CompiledModule:
    """Compile like ``cute_dialect.pipelines.compile(source, emit="base")``, but lower each kernel on its first run.

    Errors of the passes are raised then.  A module is kept by reference and must not be changed.

    Raises :class:`cute_dialect.errors.CompileError`.
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
