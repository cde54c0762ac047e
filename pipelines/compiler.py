"""The compiler: from source text to a compiled module, from the compile cache if it is there.

    text ─parse─▶ xDSL module ─cute passes─▶ base IR ─text─▶ upstream MLIR ─▶ PTX ─ptxas─▶ cubin
                                                └─▶ manifest (parameters, host programs)

``cute_dialect.pipelines.compile`` calls :func:`compile_module`, which looks the module up in memory and in the compile
cache (:mod:`.cache`) before it runs a :class:`.compilation.Compilation`.  :func:`compile_in_worker` does the same in
another process (:mod:`.worker`), so that several threads can compile at the same time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, NoReturn, get_args

from cute_dialect.errors import CompileError
from cute_dialect.pipelines.cache import Cache, default_cache, given_options, key_of, key_parts, text_key, with_source
from cute_dialect.pipelines.compilation import (
    Compilation,
    Emit,
    LoweringError,
    Timing,
    collector_paused,
    is_text,
    text_of,
)
from cute_dialect.pipelines.lazy_lowering import cloning, lowered_again, lowered_when_asked, reading, remarks_again
from cute_dialect.pipelines.upstream_error import UpstreamError
from cute_dialect.pipelines.worker import borrowed, receive, send, start
from cute_dialect.runtime.artifact import Artifact, Stage, artifact_files, read_artifact, save_artifact
from cute_dialect.runtime.launch import CompiledModule
from cute_dialect.runtime.settings import missing_package

if TYPE_CHECKING:  # pragma: no cover
    from xdsl.dialects.builtin import ModuleOp

__all__ = [
    "compile_in_worker",
    "compile_module",
    "compile_text_in_worker",
    "compiled_before",
    "lower_to_base",
    "parse_module",
    "serve_compilations",
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


# ------------------------------------------------------------------------------------------------------ compiled before


def compiled_before(
    source: str | os.PathLike[str], *, pipeline: str = "nvptx", chip: str | None = None, emit: Emit = "auto"
) -> CompiledModule | None:
    """Look up a compiled module in the compile cache, without importing the compiler; None if it is not there."""
    disk = default_cache()
    given = _given_text(source, None) if disk is not None else None
    if disk is None or given is None:
        return None
    parts = key_parts(pipeline, {} if chip is None else {"chip": chip}, emit)
    return _found(disk, key_of(with_source(parts, given)), given, pipeline)


_MEMORY: dict[tuple[str, str], CompiledModule] = {}
"""Modules by cache key and name of the source, which the messages of the interpreter show."""
_MEMORY_LIMIT = 128


def cached(
    source: str | os.PathLike[str] | ModuleOp,
    filename: str | None,
    options: Sequence[str],
    fresh: Callable[[list[Timing] | None], CompiledModule],
    timings: list[Timing] | None,
    text: str | None = None,
) -> CompiledModule:
    """Return the compiled module from memory or disk, or compile it."""
    start = perf_counter()
    disk = default_cache()
    given: tuple[str, str] | None = None
    if disk is not None:
        given = (text, filename or "-") if text is not None else _given_text(source, filename)
    if disk is None or given is None:
        return fresh(timings)
    key = key_of(with_source(options, given))
    found = _found(disk, key, given, options[0])
    if found is None:
        with disk.locked(key):  # only one of the processes that need the module compiles it
            found = _found(disk, key, given, options[0])
            if found is None:
                found = fresh(timings)
                disk.put(key, found.artifact)
                _remember((key, given[1]), found)
                return found
    elif timings is not None:
        timings.append(Timing("cache", perf_counter() - start))
    if isinstance(source, (str, os.PathLike)) or "remarks" not in found.manifest:
        return found
    # The text of a traced module has no locations, so the entry may be that of another file.
    again = cloning(source)
    return CompiledModule(found.artifact, lowered_again(again, options[0]), remarks_again(again, options[0]))


def _found(disk: Cache, key: str, given: tuple[str, str], pipeline: str) -> CompiledModule | None:
    found = _MEMORY.get((key, given[1]))
    if found is None:
        artifact = disk.get(key)
        if artifact is None:
            return None
        again = reading(*given)
        found = CompiledModule(artifact, lowered_again(again, pipeline), remarks_again(again, pipeline))
    _remember((key, given[1]), found)
    return found


def _remember(key: tuple[str, str], module: CompiledModule) -> None:
    while len(_MEMORY) >= _MEMORY_LIMIT:
        del _MEMORY[next(iter(_MEMORY))]
    _MEMORY[key] = module


def _given_text(source: str | os.PathLike[str] | ModuleOp, filename: str | None) -> tuple[str, str] | None:
    """Return the text and name of a source; ``None`` for a module or an unreadable file."""
    if isinstance(source, str) and is_text(source):
        return source, filename or "-"
    if isinstance(source, (str, os.PathLike)):
        path = os.fspath(source)
        try:
            with open(path, encoding="utf-8") as f:
                return f.read(), filename or path
        except (OSError, ValueError):  # unreadable, not UTF-8, or a NUL in the path
            return None
    return None


# ---------------------------------------------------------------------------------------------------------- in a worker


def compile_in_worker(
    module: ModuleOp, *, emit: Emit, chip: str | None, opt_level: int | None, lineinfo: bool, cache: bool,
    text: str | None, ptxas: Sequence[str] = (),
) -> CompiledModule:  # fmt: skip
    """Compile a module as :func:`compile_module` does, in a worker process."""
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
        source = text_of(module, source_names=True, debuginfo=True)
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


def compile_text_in_worker(source: str, filename: str, emit: Emit = "auto") -> CompiledModule:
    """Compile IR text as :func:`compile_module` does: from the compile cache, or in a worker process."""
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


def serve_compilations() -> NoReturn:  # pragma: no cover  (another process)
    """Compile: read requests from standard input, and reply on standard output until the input ends."""
    sink = os.dup(1)
    os.dup2(2, 1)
    while (request := receive(0)) is not None:
        method, arguments = request
        if method == "drop":
            continue
        try:
            keywords, settings = arguments
            for name in [n for n in os.environ if n.startswith("CUTE_") and n not in settings]:
                del os.environ[name]
            os.environ.update(settings)
            reply = ("ok", artifact_files(compile_module(**keywords).artifact))
        except CompileError as e:
            reply = ("error", (str(e),))
        except Exception as e:
            reply = ("error", (f"{type(e).__name__}: {e}",))
        send(sink, reply)
    os._exit(0)
