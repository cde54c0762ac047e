"""Cache keys of traced modules: the text without locations, the pipeline and its options.

Code that only moved hits the cache, unless its kernels have assertions, which print their source lines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Operation

    from cute_dialect.lang.calls.options import Options
    from cute_dialect.pipelines.compilation import Emit
    from cute_dialect.pipelines.request import CompileRequest
    from cute_dialect.runtime.launch import CompiledModule

__all__ = ["CompileResult", "artifact_key", "compile_traced", "kernel_assertions"]


class CompileResult(NamedTuple):
    """A compiled module, and its cache key; None if it is not cached."""

    module: CompiledModule
    key: str | None


def artifact_key(module: ModuleOp, options: Options, emit: Emit) -> str:
    """Return the cache key of a traced module."""
    return _request(_text(module), options, emit).key_of_text()


def _request(source: str | ModuleOp, options: Options, emit: Emit) -> CompileRequest:
    """Return the request for a traced module, or for its text."""
    from cute_dialect.pipelines.request import CompileRequest  # late: start-up

    if emit == "base":
        return CompileRequest(source, emit=emit, cache=options.cache, ptxas=options.ptxas)
    return CompileRequest(
        source, chip=options.chip, opt_level=options.opt_level, lineinfo=options.lineinfo, emit=emit,
        cache=options.cache, ptxas=options.ptxas,
    )  # fmt: skip


def _text(module: ModuleOp) -> str:
    """Return the text of a module, with the source lines of its kernels' assertions, which GPU code prints."""
    from cute_dialect.ir.printing import ir_text  # late: start-up

    text = ir_text(module, source_names=True)
    places = [place for op in kernel_assertions(module) for place in _places(op)] if "cf.assert" in text else []
    return "".join([text, *places])


def kernel_assertions(module: ModuleOp) -> list[Operation]:
    """Return the assertions in a module's kernels."""
    from cute_dialect.ir.editing import all_ops  # late: start-up

    kernels = [op for op in module.ops if op.name == "gpu.module"]
    return [op for kernel in kernels for op in all_ops(kernel) if op.name == "cf.assert"]


def _places(op: Operation) -> list[str]:
    from cute_dialect.ir.diagnostics import location_frames  # late: start-up

    return [f"// {f.function} {f.position.file}:{f.position.line}\n" for f in location_frames(op.location)]


def compile_traced(
    module: ModuleOp, options: Options, emit: Emit, *, keep_stages: bool = False, elsewhere: bool = False
) -> CompileResult:
    """Compile a traced module, or load it from the compile cache.

    ``elsewhere``: compile in another process.  Raises :class:`cute_dialect.errors.CompileError`.
    """
    from cute_dialect.pipelines.compiler import compile_in_worker, compile_module  # late: start-up

    text = _text(module) if options.cache and emit != "base" and not keep_stages and not options.lineinfo else None
    request = _request(module, options, emit)._replace(text=text, keep_stages=keep_stages)
    made = compile_in_worker(request) if elsewhere else compile_module(request)
    return CompileResult(made, None if text is None else request.key_of_text())
