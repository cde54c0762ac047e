"""Compilation in worker processes, so that several threads can compile at the same time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cute_dialect.pipelines.lowered_again import cloning, lowered_again, lowered_when_asked, reading, remarks_again
from cute_dialect.pipelines.recall import key_parts, text_key, with_source
from cute_dialect.pipelines.stages import compile_module
from cute_dialect.runtime.launch import CompiledModule

if TYPE_CHECKING:  # pragma: no cover
    from xdsl.dialects.builtin import ModuleOp

    from cute_dialect.pipelines.compilation import Emit

__all__ = ["compile_elsewhere", "compile_text_elsewhere"]


def compile_elsewhere(
    module: ModuleOp, *, emit: Emit, chip: str | None, opt_level: int | None, lineinfo: bool, cache: bool,
    text: str | None, ptxas: Sequence[str] = (),
) -> CompiledModule:  # fmt: skip
    """Compile a module as :func:`compile_module` does, in a worker process."""
    from cute_dialect.ir.printing import ir_text
    from cute_dialect.pipelines.cache import default_cache
    from cute_dialect.pipelines.isolate import borrowed
    from cute_dialect.pipelines.upstream_error import UpstreamError
    from cute_dialect.runtime.artifact import read_artifact

    given: dict[str, object] = {
        "emit": emit, "chip": chip, "opt_level": opt_level, "lineinfo": lineinfo, "cache": cache, "text": text,
        "ptxas": tuple(ptxas),
    }  # fmt: skip
    disk = default_cache() if cache and text is not None else None
    if (
        disk is None
        or text is None
        or not disk.has(text_key(text, emit=emit, chip=chip, opt_level=opt_level, ptxas=ptxas))
    ):
        source = ir_text(module, source_names=True, debuginfo=True)
        try:
            with borrowed("serve_compilations") as worker:
                files = worker.compiled({"source": source, **given})
            artifact = read_artifact("-", files.__getitem__)
            return CompiledModule(artifact, lowered_when_asked(lambda: module), remarks_again(cloning(module), "nvptx"))
        except UpstreamError:
            pass  # Compiling here reports the error in the usual way.
    return compile_module(
        module, emit=emit, chip=chip, opt_level=opt_level, lineinfo=lineinfo, cache=cache, text=text, ptxas=ptxas
    )


def compile_text_elsewhere(source: str, filename: str, emit: Emit = "auto") -> CompiledModule:
    """Compile IR text as :func:`compile_module` does: from the compile cache, or in a worker process."""
    from cute_dialect.pipelines.cache import default_cache, key_of
    from cute_dialect.pipelines.isolate import borrowed
    from cute_dialect.pipelines.upstream_error import UpstreamError
    from cute_dialect.runtime.artifact import read_artifact

    given, disk = (source, filename), default_cache()
    if disk is None or not disk.has(key_of(with_source(key_parts("nvptx", {}, emit), given))):
        try:
            with borrowed("serve_compilations") as worker:
                files = worker.compiled({"source": source, "filename": filename, "emit": emit})
            artifact = read_artifact("-", files.__getitem__)
            return CompiledModule(
                artifact, lowered_again(reading(*given), "nvptx"), remarks_again(reading(*given), "nvptx")
            )
        except UpstreamError:
            pass  # Compiling here reports the error in the usual way.
    return compile_module(source, filename=filename, emit=emit)
