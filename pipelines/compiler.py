"""The compiler: from source text to a compiled module, from the compile cache if it is there.

    text ─parse─▶ xDSL module ─cute passes─▶ base IR ─text─▶ upstream MLIR ─▶ PTX ─ptxas─▶ cubin
                                                └─▶ manifest (parameters, host programs)

``cute_dialect.pipelines.compile`` calls :func:`compile_module`, which looks the module up in memory and in the compile
cache (:mod:`.cache`) before it runs a :class:`.compilation.Compilation`.  :func:`compile_in_worker` does the same in
another process (:mod:`.worker`), so that several threads can compile at the same time.

A compiled module keeps its text or its module, and lowers it when the interpreter, or a user, asks for base IR.
:func:`compile_lazily` lowers nothing in advance: a call runs only one variant of a kernel, and launches read the
manifest, which depends on the parameters and the shared memory of a kernel but not on its code.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING, NoReturn, cast

from cute_dialect.errors import CompileError
from cute_dialect.pipelines.cache import Cache, default_cache
from cute_dialect.pipelines.compilation import (
    Compilation,
    CompileRequest,
    LoweringError,
    Timing,
    collector_paused,
    text_of,
)
from cute_dialect.pipelines.upstream import UpstreamError
from cute_dialect.pipelines.worker import borrowed, receive, send, start
from cute_dialect.runtime.artifact import Artifact, Stage, artifact_files, read_artifact, save_artifact
from cute_dialect.runtime.launch import CompiledModule
from cute_dialect.runtime.settings import missing_package

if TYPE_CHECKING:  # pragma: no cover
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Operation, Region

    from cute_dialect.runtime.launch import Lowered

__all__ = [
    "cloning",
    "compile_in_worker",
    "compile_lazily",
    "compile_module",
    "compiled_before",
    "is_kernel",
    "lower_to_base",
    "lowered_again",
    "lowered_when_asked",
    "parse_module",
    "reading",
    "remarks_again",
    "serve_compilations",
]


# --------------------------------------------------------------------------------------------------- base IR on request


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


# ------------------------------------------------------------------------------------------------------------ compiling


def compile_module(
    request: CompileRequest,
    *,
    timings: list[Timing] | None = None,
    before_code: Callable[[CompiledModule], None] | None = None,
) -> CompiledModule:
    """Compile cute or base IR; see :func:`cute_dialect.pipelines.compile`.

    Texts and files use the compile cache (:mod:`cute_dialect.pipelines.cache`) unless stages are kept.  A module uses
    it if the request describes it by a text.

    Args:
        request: the source and the options.
        timings: receives the time of each stage.
        before_code: called with the module before code generation, and may raise; not called on a cache hit.
    """
    request.check()

    def fresh(made: list[Timing] | None = None) -> CompiledModule:
        try:
            with collector_paused():
                return _compile(request, made, before_code)
        except ModuleNotFoundError as e:
            hint = missing_package(e)
            if hint is None:
                raise
            raise LoweringError(f"error: {hint}") from e

    return _cached(request, fresh, timings) if request.is_cached else fresh(timings)


def _compile(
    request: CompileRequest,
    timings: list[Timing] | None,
    before_code: Callable[[CompiledModule], None] | None,
) -> CompiledModule:
    """Run all stages."""
    emit, pipeline = request.emit, request.pipeline
    if emit != "base":
        start()
    work = Compilation(pipeline, request.options, timings, tuple(request.ptxas))
    work.located = request.located
    stages = work.stages if request.keep_stages or request.save is not None else None
    module, text = work.read(request.source, request.filename)
    if stages is not None and not request.located:
        stages.append(Stage("input", text if text is not None else text_of(module)))
    again = lowered_again(cloning(module.clone()) if text is None else reading(text, work.name), pipeline)
    if emit != "base":
        work.take_ptx_of(module)
    module = work.run_cute(module, stages, for_chip=emit != "base" or bool(request.options))
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
    if request.save is not None:
        save_artifact(artifact, request.save)
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


def compiled_before(request: CompileRequest) -> CompiledModule | None:
    """Look up a compiled module in the compile cache, without importing the compiler; None if it is not there."""
    disk = default_cache()
    given = request.given() if disk is not None else None
    return None if disk is None or given is None else _found(disk, request, given)


_MEMORY: dict[tuple[str, str], CompiledModule] = {}
"""Modules by cache key and name of the source, which the messages of the interpreter show."""
_MEMORY_LIMIT = 128
_MEMORY_LOCK = threading.Lock()
"""Held while an entry is added or evicted: candidates are compiled in threads."""


def _cached(
    request: CompileRequest, fresh: Callable[[list[Timing] | None], CompiledModule], timings: list[Timing] | None
) -> CompiledModule:
    """Return the compiled module from memory or disk, or compile it."""
    begin = perf_counter()
    disk = default_cache()
    given = request.given() if disk is not None else None
    if disk is None or given is None:
        return fresh(timings)
    found = _found(disk, request, given)
    if found is None:
        key = request.key_of(given)
        with disk.locked(key):  # only one of the processes that need the module compiles it
            found = _found(disk, request, given)
            if found is None:
                found = fresh(timings)
                disk.put(key, found.artifact)
                _remember((key, given[1]), found)
                return found
    elif timings is not None:
        timings.append(Timing("cache", perf_counter() - begin))
    if isinstance(request.source, (str, os.PathLike)) or "remarks" not in found.manifest:
        return found
    # The text of a traced module has no locations, so the entry may be that of another file.
    return _with_lowering(found.artifact, cloning(request.source), request)


def _found(disk: Cache, request: CompileRequest, given: tuple[str, str]) -> CompiledModule | None:
    key = request.key_of(given)
    found = _MEMORY.get((key, given[1]))
    if found is None:
        artifact = disk.get(key)
        if artifact is None:
            return None
        found = _with_lowering(artifact, reading(*given), request)
    _remember((key, given[1]), found)
    return found


def _with_lowering(
    artifact: Artifact, read: Callable[[Compilation], ModuleOp], request: CompileRequest
) -> CompiledModule:
    """Return a compiled module that lowers its source again for base IR and remarks."""
    return CompiledModule(artifact, lowered_again(read, request.pipeline), remarks_again(read, request.pipeline))


def _remember(key: tuple[str, str], module: CompiledModule) -> None:
    with _MEMORY_LOCK:
        while len(_MEMORY) >= _MEMORY_LIMIT:
            del _MEMORY[next(iter(_MEMORY))]
        _MEMORY[key] = module


# ---------------------------------------------------------------------------------------------------------- in a worker


def compile_in_worker(request: CompileRequest) -> CompiledModule:
    """Compile as :func:`compile_module` does: from the compile cache, or in a worker process."""
    source, given = request.source, request.given()
    disk = default_cache() if request.is_cached else None
    if disk is None or given is None or not disk.has(request.key_of(given)):
        read = cloning(source) if not isinstance(source, str | os.PathLike) else None
        sent = source if read is None else text_of(cast("ModuleOp", source), source_names=True, debuginfo=True)
        try:
            with borrowed("serve_compilations") as worker:
                files = worker.compiled(request._replace(source=sent, ptxas=tuple(request.ptxas))._asdict())
            artifact = read_artifact("-", files.__getitem__)
            if read is None and given is not None:
                read = reading(*given)
            return CompiledModule(artifact) if read is None else _with_lowering(artifact, read, request)
        except UpstreamError:
            pass  # Compiling here reports the error in the usual way.
    return compile_module(request)


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
            reply = ("ok", artifact_files(compile_module(CompileRequest(**keywords)).artifact))
        except CompileError as e:
            reply = ("error", (str(e),))
        except Exception as e:
            reply = ("error", (f"{type(e).__name__}: {e}",))
        send(sink, reply)
    os._exit(0)
