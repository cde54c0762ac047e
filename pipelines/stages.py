"""Stages of a compilation, from source text to a compiled module.

    text ─parse─▶ xDSL module ─cute passes─▶ base IR ─text─▶ upstream MLIR ─▶ PTX ─ptxas─▶ cubin
                                                └─▶ manifest (parameters, host programs)

``cute_dialect.pipelines.compile`` calls :func:`compile_module`.  A compilation is a
:class:`cute_dialect.pipelines.compilation.Compilation`.  :mod:`cute_dialect.pipelines.recall` looks up earlier
compilations, and :mod:`cute_dialect.pipelines.elsewhere` compiles in other processes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, get_args

from cute_dialect.errors import CompileError
from cute_dialect.pipelines.compilation import Compilation, Emit, LoweringError, Timing, read_text, text_of
from cute_dialect.pipelines.gc_pause import collector_paused
from cute_dialect.pipelines.lowered_again import cloning, lowered_again, reading
from cute_dialect.pipelines.recall import cached, given_options, key_parts
from cute_dialect.runtime.artifact import Artifact, Stage, save_artifact
from cute_dialect.runtime.launch import CompiledModule
from cute_dialect.runtime.settings import missing_package

if TYPE_CHECKING:  # pragma: no cover
    from xdsl.dialects.builtin import ModuleOp

__all__ = [
    "CompileError",
    "Emit",
    "LoweringError",
    "Timing",
    "compile_module",
    "lower_to_base",
    "parse_module",
    "read_text",
]


def compile_module(
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
    timings: list[Timing] | None = None,
    cache: bool = True,
    before_code: Callable[[CompiledModule], None] | None = None,
    text: str | None = None,
    ptxas: Sequence[str] = (),
    located: Collection[str] = (),
) -> CompiledModule:
    """Compile cute or base IR; see ``cute_dialect.pipelines.compile``.

    Args:
        timings: receives the time of each stage.
        before_code: called with the module before code generation, and may raise; not called on a cache hit.
        text: complete description of a module for the cache key.
        ptxas: further options of ptxas.
        located: names of the stages to keep in readable form, with the location of each op.

    Texts and files use the compile cache (:mod:`cute_dialect.pipelines.cache`) unless stages are kept.  A module uses
    it if ``text`` is given.
    """
    _check_keywords(
        source, pipeline, chip, features, opt_level, lineinfo, asserts, emit, filename, keep_stages, save, cache
    )
    options = given_options(chip, opt_level, features)
    options |= {"lineinfo": "true"} if lineinfo else {}
    options |= {} if asserts else {"asserts": "false"}

    def fresh(made: list[Timing] | None = None) -> CompiledModule:
        try:
            with collector_paused():
                return _compile(
                    source, pipeline, options, emit, filename, keep_stages, save, made, before_code, ptxas, located
                )
        except ModuleNotFoundError as e:
            hint = missing_package(e)
            if hint is None:
                raise
            raise LoweringError(f"error: {hint}") from e

    if not cache or keep_stages or save is not None:
        return fresh(timings)
    return cached(source, filename, key_parts(pipeline, options, emit, ptxas), fresh, timings, text)


def _check_keywords(
    source: object,
    pipeline: object,
    chip: object,
    features: object,
    opt_level: object,
    lineinfo: object,
    asserts: object,
    emit: object,
    filename: object,
    keep_stages: object,
    save: object,
    cache: object,
) -> None:
    """Check the types of the keywords.  Raises :class:`LoweringError`, which names the keyword."""
    path = (str, os.PathLike)
    wanted: Sequence[tuple[str, object, bool, str]] = (
        ("source", source, isinstance(source, path) or hasattr(source, "walk"), "a text, a path or an xDSL module"),
        ("pipeline", pipeline, isinstance(pipeline, str), "a text like 'nvptx=chip=sm_90a'"),
        ("chip", chip, chip is None or isinstance(chip, str), "a text like 'sm_90a'"),
        ("features", features, features is None or isinstance(features, str), "a text like '+ptx83'"),
        ("opt_level", opt_level, opt_level is None or (type(opt_level) is int and 0 <= opt_level <= 3), "0, 1, 2 or 3"),
        ("lineinfo", lineinfo, isinstance(lineinfo, bool), "True or False"),
        ("asserts", asserts, isinstance(asserts, bool), "True or False"),
        ("emit", emit, isinstance(emit, str) and emit in get_args(Emit), "one of 'auto', 'cubin', 'ptx', 'base'"),
        ("filename", filename, filename is None or isinstance(filename, str), "a text"),
        ("keep_stages", keep_stages, isinstance(keep_stages, bool), "True or False"),
        ("save", save, save is None or isinstance(save, path), "the path of a folder"),
        ("cache", cache, isinstance(cache, bool), "True or False"),
    )
    for name, value, right, what in wanted:
        if not right:
            shown = repr(value)
            raise LoweringError(
                f"error: {name}: expected {what}, got {shown if len(shown) <= 80 else shown[:77] + '...'}"
            )


def _compile(
    source: str | os.PathLike[str] | ModuleOp,
    pipeline: str,
    options: dict[str, str],
    emit: Emit,
    filename: str | None,
    keep_stages: bool,
    save: str | os.PathLike[str] | None,
    timings: list[Timing] | None,
    before_code: Callable[[CompiledModule], None] | None,
    ptxas: Sequence[str] = (),
    located: Collection[str] = (),
) -> CompiledModule:

    if emit != "base":
        from cute_dialect.pipelines.isolate import start

        start()
    work = Compilation(pipeline, options, timings, tuple(ptxas))
    work.located = located
    stages = work.stages if keep_stages or save is not None else None
    module, text = work.read(source, filename)
    if stages is not None and not located:
        stages.append(Stage("input", text if text is not None else text_of(module)))
    again = lowered_again(cloning(module.clone()) if text is None else reading(text, work.name), pipeline)
    if emit != "base":
        work.take_ptx_of(module)
    module = work.run_cute(module, stages, for_chip=emit != "base" or bool(options))
    manifest = work.manifest(module)
    remarks = work.remarks()
    if remarks:
        manifest["remarks"] = remarks
    work.tick("manifest")
    if before_code is not None:
        before_code(CompiledModule(Artifact(manifest, (), ())))
        work.tick("arguments")
    code = work.to_code(module, manifest, emit, stages) if emit != "base" else ()
    artifact = Artifact(manifest, code, tuple(stages or ()))
    if save is not None:
        save_artifact(artifact, save)
        work.tick("save")
    return CompiledModule(artifact, lowered=again if emit != "base" else lambda _: module)


def lower_to_base(
    source: str | os.PathLike[str] | ModuleOp, *, pipeline: str = "host", filename: str | None = None
) -> str:
    """Return a module lowered by ``pipeline`` up to the hand-off, as generic base IR for upstream.

    Raises :class:`LoweringError`.
    """
    work = Compilation(pipeline, {}, None)
    module, _ = work.read(source, filename)
    return text_of(work.run_cute(module, None), generic=True)


def parse_module(text: str, filename: str = "-") -> ModuleOp:
    """Parse a module of cute and upstream ops.  Base IR in a syntax that only upstream reads is parsed there.

    Raises :class:`LoweringError` with positions.
    """
    work = Compilation("base", {}, None)
    return work.parse(text, filename)
