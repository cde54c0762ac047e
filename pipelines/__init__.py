"""Named pipelines, the hand-off to upstream MLIR, and machine code.

    from cute_dialect.pipelines import compile

    add = compile("add.mlir").kernel("add")
    add(a, b, c)

The compiled module launches kernels. It can be saved for machines without a compiler (:mod:`cute_dialect.runtime`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # pragma: no cover
    import os

    from xdsl.dialects.builtin import ModuleOp

    from cute_dialect.pipelines.compilation import Emit
    from cute_dialect.runtime.launch import CompiledModule

__all__ = ["compile"]


def compile(
    source: str | os.PathLike[str] | ModuleOp,
    *,
    pipeline: str = "nvptx",
    chip: str | None = None,
    features: str | None = None,
    opt_level: int | None = None,
    lineinfo: bool = False,
    asserts: bool = True,
    emit: Emit = "auto",
    filename: str | None = None,
    keep_stages: bool = False,
    save: str | os.PathLike[str] | None = None,
    cache: bool = True,
) -> CompiledModule:
    """Compile a module of cute or base IR.

    Args:
        source: IR text, the path of a file, or an xDSL module, which is not modified.
        pipeline: a named pipeline with its options, such as ``nvptx`` or ``nvptx=chip=sm_90a,O=2``.
        chip: overrides the pipeline's chip; so do ``features`` (such as ``+ptx86``) and ``opt_level``.
        lineinfo: add line tables to PTX and cubin, for profilers and debuggers.
        asserts: compile ``cf.assert`` into GPU code. A failing assertion prints file, line, function, block, thread
            and message to standard error, then ends the kernel and the CUDA context. The interpreter and host
            functions check assertions in any case.
        emit: ``auto`` (PTX, and a cubin if ptxas is installed), ``cubin``, ``ptx``, or ``base``, which stops before
            upstream MLIR; such a module runs on the CPU interpreter only.
        filename: the name of the source in messages.
        keep_stages: keep the IR after each stage.
        save: also write the module to this folder.
        cache: look the module up in the compile cache (``cute-cache --help``). ``keep_stages`` and ``save`` skip it.

    Raises:
        CompileError: its message shows file, line, column and the source line.

    >>> compile("test/examples/elementwise_add.mlir").kernel("add")      # doctest: +SKIP
    <kernel @add(a: !cute.memref<f32, gmem, "(?,?):(?,1)">, …)>
    """
    from cute_dialect.pipelines.compilation import CompileRequest  # late: start-up
    from cute_dialect.pipelines.compiler import compile_module  # late: start-up

    return compile_module(
        CompileRequest(
            source,
            pipeline=pipeline,
            chip=chip,
            features=features,
            opt_level=opt_level,
            lineinfo=lineinfo,
            asserts=asserts,
            emit=emit,
            filename=filename,
            keep_stages=keep_stages,
            save=save,
            cache=cache,
        )
    )
