"""Lowered modules of compiled code, produced on request: a whole module, or the part that one kernel needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from cute_dialect.pipelines.compilation import Compilation
from cute_dialect.pipelines.gc_pause import collector_paused

if TYPE_CHECKING:  # pragma: no cover
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Operation

    from cute_dialect.runtime.launch import Lowered

__all__ = ["cloning", "is_kernel", "lowered_again", "lowered_when_asked", "reading", "remarks_again"]


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
