"""From source text to a compiled module, stage by stage, every artefact at hand.

    text ─parse─▶ xDSL module ─cute passes─▶ base IR ─text─▶ upstream MLIR ─▶ PTX ─ptxas─▶ cubin
                                                └─▶ manifest (parameters, host programs)

:func:`compile_module` is what ``cute_dialect.pipelines.compile`` calls.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from cute_dialect.pipelines.artifact import Artifact, CodeObject, Stage, save_artifact
from cute_dialect.pipelines.launch import CompiledModule

if TYPE_CHECKING:  # pragma: no cover
    from xdsl.dialects.builtin import ModuleOp

    from cute_dialect.diagnostics import Diagnostic, Source
    from cute_dialect.passes.pipeline_text import PassElement
    from cute_dialect.pipelines.manifest import Manifest
    from cute_dialect.pipelines.upstream import UpstreamModule

__all__ = ["CompileError", "Emit", "compile_module", "parse_module"]

Emit: TypeAlias = Literal["auto", "cubin", "ptx", "base"]
"""How far: ``base`` stops after cute-to-base (for the CPU), ``ptx`` at PTX, ``cubin`` needs a ptxas, ``auto`` uses one
if it is there."""


class CompileError(Exception):
    """The source cannot be compiled.  ``diagnostics`` have positions; the message shows them with their lines."""

    def __init__(self, message: str, diagnostics: Sequence[Diagnostic] = ()):
        super().__init__(message)
        self.diagnostics = tuple(diagnostics)


class Timing(NamedTuple):
    """Seconds that a stage took."""

    stage: str
    seconds: float


def compile_module(
    source: str | os.PathLike[str] | ModuleOp,
    *,
    pipeline: str = "nvptx",
    chip: str | None = None,
    features: str | None = None,
    opt_level: int | None = None,
    emit: Emit = "auto",
    filename: str | None = None,
    keep_stages: bool = False,
    save: str | os.PathLike[str] | None = None,
    timings: list[Timing] | None = None,
) -> CompiledModule:
    """Compile cute or base IR; see ``cute_dialect.pipelines.compile``."""
    from cute_dialect.pipelines.manifest import ManifestError, build_manifest
    from cute_dialect.pipelines.registry import PipelineError, named_pipeline

    clock = _Clock(timings)
    try:
        row, options = named_pipeline(pipeline)
        given = {"chip": chip, "features": features, "O": None if opt_level is None else str(opt_level)}
        options |= {k: v for k, v in given.items() if v is not None}
        elements = row.elements(options)
    except PipelineError as e:
        raise CompileError(str(e)) from e
    passes = [(e.name, dict(e.options)) for e in _flat(elements)]
    target = next((o for n, o in passes if n == "attach-nvvm-target"), {})
    stages: list[Stage] | None = [] if keep_stages or save is not None else None

    module, name, text = _read(source, filename)
    clock.tick("parse")
    if stages is not None:
        stages.append(Stage("input", text if text is not None else _text(module)))
    module = _run_cute_passes(module, [(n, o) for n, o in passes if not _is_upstream(n)], stages, clock, name, text)
    try:
        manifest = build_manifest(
            module,
            chip=target.get("chip", "sm_90a"),
            features=target.get("features", ""),
            opt_level=int(target.get("opt-level", "3")),
        )
    except ManifestError as e:
        raise CompileError(str(e)) from e
    clock.tick("manifest")
    code: tuple[CodeObject, ...] = ()
    if emit != "base":
        code = _to_code(module, manifest, [(n, o) for n, o in passes if _is_upstream(n)], emit, stages, clock, name)
    artifact = Artifact(manifest, code, tuple(stages or ()))
    if save is not None:
        save_artifact(artifact, save)
        clock.tick("save")
    return CompiledModule(artifact, lowered=_constant(module))


def _constant(module: ModuleOp) -> Callable[[], ModuleOp]:
    return lambda: module


class _Clock:
    def __init__(self, timings: list[Timing] | None):
        self._timings = timings
        self._last = perf_counter()

    def tick(self, stage: str) -> None:
        now = perf_counter()
        if self._timings is not None:
            self._timings.append(Timing(stage, now - self._last))
        self._last = now


# ------------------------------------------------------------------------------------------------------ xDSL's part


def parse_module(text: str, filename: str = "-") -> ModuleOp:
    """Parse a module of cute and upstream ops.  Base IR in a form that only upstream reads goes through upstream.

    Raises :class:`CompileError` with positions.
    """
    from cute_dialect.context import make_context
    from cute_dialect.diagnostics import DiagnosticEngine, Source
    from cute_dialect.parsing import parse_module as parse

    context = make_context("all", allow_unregistered=True)
    source = Source(filename, text)
    engine = DiagnosticEngine(file=filename)
    module = parse(context, source, engine)
    if module is not None and not engine.errors:
        return module
    retold = _through_upstream(text)
    if retold is not None:
        again = parse(context, Source(filename, retold), DiagnosticEngine(file=filename))
        if again is not None:
            return again
    raise _failure(engine, source)


def _through_upstream(text: str) -> str | None:
    """The generic form of base IR, as upstream reads and prints it; ``None`` if it cannot."""
    from cute_dialect.pipelines.upstream import UpstreamError, UpstreamModule, is_available

    if not is_available():
        return None
    try:
        return UpstreamModule.from_text(text).text(generic=True)
    except UpstreamError:
        return None


def _failure(engine: object, source: Source | None) -> CompileError:
    from cute_dialect.diagnostics import DiagnosticEngine, render

    assert isinstance(engine, DiagnosticEngine)
    errors = [d for d in engine.seen if d.severity == "error"]
    sources = {source.name: source} if source is not None else {}
    return CompileError("".join(render(d, sources) for d in errors).rstrip("\n"), errors)


def _read(source: str | os.PathLike[str] | ModuleOp, filename: str | None) -> tuple[ModuleOp, str, str | None]:
    """The module, the name of its file, its text if it came as text."""
    if isinstance(source, str) and ("\n" in source or "{" in source or source.lstrip().startswith('"')):
        name = filename or "-"
        return parse_module(source, name), name, source
    if isinstance(source, (str, os.PathLike)):
        path = os.fspath(source)
        try:
            with open(path, encoding="utf-8") as f:
                text = f.read()
        except OSError as e:
            raise CompileError(f"{path}: cannot read it: {e.strerror}") from e
        except UnicodeDecodeError as e:
            raise CompileError(f"{path}: not UTF-8 text (byte {e.start})") from e
        return parse_module(text, filename or path), filename or path, text
    return source.clone(), filename or "-", None  # the passes work in place


def _run_cute_passes(
    module: ModuleOp,
    passes: list[tuple[str, dict[str, str]]],
    stages: list[Stage] | None,
    clock: _Clock,
    name: str,
    text: str | None,
) -> ModuleOp:
    """Verify and run the passes that xDSL runs; base IR has nothing for them to do."""
    from cute_dialect.context import make_context
    from cute_dialect.diagnostics import Diagnostic, DiagnosticEngine, Source, op_position
    from cute_dialect.passes import registry
    from cute_dialect.passes.base import PassContext, PassError, run_pass

    if not _has_cute(module):
        if stages is not None:
            stages.append(Stage("cute-to-base", _text(module, generic=True)))
        return module
    from cute_dialect.verifier import verify

    source = Source(name, text) if text is not None else None
    engine = DiagnosticEngine(file=name)
    verify(module, engine)
    clock.tick("verify")
    if engine.errors:
        raise _failure(engine, source)
    context = PassContext(make_context("all", allow_unregistered=True), engine)
    for pass_name, options in passes:
        try:
            run_pass(registry.load(pass_name).from_text(options), module, context)
        except PassError as e:
            position = op_position(e.op) if e.op is not None else None
            engine.emit(Diagnostic("error", e.message, engine.position(position), e.notes))
        clock.tick(pass_name)
        if engine.errors:
            raise _failure(engine, source)
        if stages is not None:
            stages.append(Stage(pass_name, _text(module, generic=pass_name == "cute-to-base")))
            clock.tick("print")
    return module


def _has_cute(module: ModuleOp) -> bool:
    for op in module.walk():
        if op.name.startswith(("cute.", "cute_nvgpu.")):
            return True
        types = [*op.result_types, *(a.type for r in op.regions for b in r.blocks for a in b.args)]
        if any(t.name.startswith("cute") for t in types):
            return True
    return False


def _text(module: ModuleOp, *, generic: bool = False, debuginfo: bool = False) -> str:
    from cute_dialect.printing import ir_text

    return ir_text(module, generic=generic, debuginfo=debuginfo)


# --------------------------------------------------------------------------------------------------- upstream's part


def _is_upstream(pass_name: str) -> bool:
    from cute_dialect.passes.registry import PASSES

    return pass_name not in PASSES or PASSES[pass_name].upstream


def _flat(elements: Sequence[object]) -> list[PassElement]:
    from cute_dialect.passes.pipeline_text import NestElement, PassElement

    out: list[PassElement] = []
    for e in elements:
        if isinstance(e, PassElement):
            out.append(e)
        elif isinstance(e, NestElement):
            out += _flat(e.elements)
    return out


def _to_code(
    module: ModuleOp,
    manifest: Manifest,
    passes: list[tuple[str, dict[str, str]]],
    emit: Emit,
    stages: list[Stage] | None,
    clock: _Clock,
    name: str,
) -> tuple[CodeObject, ...]:
    """The hand-off, PTX and cubin.  Raises :class:`CompileError`, with the place in the source if it is known."""
    from cute_dialect.pipelines.upstream import UpstreamError, UpstreamMissing

    text = _text(module, generic=True)
    clock.tick("print")
    try:
        upstream = _run_upstream(text, passes, stages, clock, name)
    except UpstreamMissing as e:
        raise CompileError(str(e)) from e
    except UpstreamError as e:
        raise _located(module, passes, name, e) from e
    ptx = upstream.ptx()
    clock.tick("ptx")
    return tuple(_assemble(m, ptx[m], manifest["chip"], emit, clock) for m in manifest["modules"] if m in ptx)


def _run_upstream(
    text: str,
    passes: list[tuple[str, dict[str, str]]],
    stages: list[Stage] | None,
    clock: _Clock,
    name: str,
) -> UpstreamModule:
    from cute_dialect.pipelines.upstream import UpstreamModule

    upstream = UpstreamModule.from_text(text, name)
    clock.tick("hand-off")
    for pass_name, options in passes:
        upstream.run(pass_name, options)
        clock.tick(pass_name)
        if stages is not None and pass_name != "emit-gpu-binary":
            stages.append(Stage(pass_name, upstream.text()))
    return upstream


def _located(
    module: ModuleOp, passes: list[tuple[str, dict[str, str]]], name: str, error: Exception
) -> CompileError:
    """The error of upstream with a place in the user's source: say it again, with locations in the text."""
    from cute_dialect.diagnostics import Diagnostic, Position
    from cute_dialect.pipelines.upstream import UpstreamError

    assert isinstance(error, UpstreamError)
    try:
        _run_upstream(_text(module, generic=True, debuginfo=True), passes, None, _Clock(None), name)
    except UpstreamError as e:
        position = Position(e.filename if e.line else name, e.line, e.col)
        diagnostic = Diagnostic("error", f"upstream MLIR: {e.message}", position)
        return CompileError(f"{position}: error: {diagnostic.message}", [diagnostic])
    return CompileError(f"{name}: error: upstream MLIR: {error.message}")


def _assemble(module: str, ptx: str, chip: str, emit: Emit, clock: _Clock) -> CodeObject:
    from cute_dialect.pipelines.ptxas import PtxasError, PtxasMissing, assemble

    if emit == "ptx":
        return CodeObject(module, ptx, None, None, "")
    try:
        done = assemble(ptx, chip)
    except PtxasMissing as e:
        if emit == "cubin":
            raise CompileError(str(e)) from e
        return CodeObject(module, ptx, None, None, f"not assembled: {e}\n")
    except PtxasError as e:
        raise CompileError(str(e)) from e
    clock.tick("ptxas")
    return CodeObject(module, ptx, done.cubin, done.to_json(), done.report())
