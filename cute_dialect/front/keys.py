"""Keys of the compile cache for traced modules: what is in them, and what is not.

A module's key is its text without locations, the pipeline and its options: code that only moved finds what was
compiled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from cute_dialect.front.compiled import Options
    from cute_dialect.pipelines.stages import Emit
    from cute_dialect.runtime.launch import CompiledModule

__all__ = ["artifact_key", "compile_traced"]


def artifact_key(module: ModuleOp, options: Options, emit: Emit) -> str:
    """Return the key of a traced module."""
    from cute_dialect.pipelines.cache import key_of

    return key_of(["traced", repr(tuple(options[:2])), emit, _text(module)])


def _text(module: ModuleOp) -> str:
    from cute_dialect.ir.printing import ir_text

    return ir_text(module, source_names=True)


def compile_traced(module: ModuleOp, options: Options, emit: Emit, *, keep_stages: bool = False) -> CompiledModule:
    """Compile a traced module, or take it from the compile cache.

    Raises :class:`cute_dialect.pipelines.stages.CompileError`.
    """
    from cute_dialect.pipelines.stages import compile_module

    chip = (
        {} if emit == "base" else {"chip": options.chip, "opt_level": options.opt_level, "lineinfo": options.lineinfo}
    )
    return compile_module(
        module, emit=emit, keep_stages=keep_stages, cache=options.cache, **chip,  # pyright: ignore[reportArgumentType]
        text=None if emit == "base" or keep_stages or options.lineinfo else _text(module),
    )  # fmt: skip
