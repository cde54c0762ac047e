"""Named pipelines, the hand-off to upstream MLIR, and machine code.

    from cute_dialect.pipelines import compile

    add = compile("add.mlir").kernel("add")
    add(a, b, c)

What it gives launches, and can be saved for a machine that only launches (:mod:`cute_dialect.runtime`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # pragma: no cover
    import os

    from xdsl.dialects.builtin import ModuleOp

    from cute_dialect.pipelines.stages import Emit
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

    ``source``: the text, the path of a file, or an xDSL module (which is left as it is).
    ``pipeline``: a named pipeline with options, ``nvptx`` or ``nvptx=chip=sm_90a,O=2``; ``chip``, ``features`` (e.g.
    ``+ptx86``) and ``opt_level`` override them.
    ``lineinfo``: PTX and cubin say which line of the source each instruction is from, for profilers and debuggers.
    ``asserts``: false leaves ``cf.assert`` out of the kernels' GPU code; one that fails there ends the kernel, and all
    of the GPU's context, after file, line, function, block, thread and message were printed to standard error.  The
    interpreter and host functions decide all of them.
    ``emit``: ``auto`` (PTX, and a cubin if there is a ptxas), ``cubin``, ``ptx``, or ``base``, which stops before
    upstream MLIR: such a module runs on the CPU interpreter only.
    ``keep_stages`` keeps the IR after each stage; ``save`` also writes everything to a folder.
    ``cache``: text and files that were compiled before, by any process, are taken from the compile cache
    (``cute-cache --help``) unless this is false or ``keep_stages`` or ``save`` ask for more.
    Raises ``CompileError``; its message shows file, line, column and the source line.

    >>> compile("test/examples/elementwise_add.mlir").kernel("add")      # doctest: +SKIP
    <kernel @add(a: !cute.memref<f32, gmem, "(?,?):(?,1)">, …)>
    """
    from cute_dialect.pipelines.stages import compile_module

    return compile_module(
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
