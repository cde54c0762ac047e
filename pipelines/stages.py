"""From source text to a compiled module, stage by stage, every artefact at hand.

    text ─parse─▶ xDSL module ─cute passes─▶ base IR ─text─▶ upstream MLIR ─▶ PTX ─ptxas─▶ cubin
                                                └─▶ manifest (parameters, host programs)

:func:`compile_module` is what ``cute_dialect.pipelines.compile`` calls.  The passes are run by
:mod:`cute_dialect.pipelines.runner`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cached_property
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, get_args

from cute_dialect.arch.targets import DEFAULT_CHIP
from cute_dialect.pipelines.collector import collector_paused
from cute_dialect.runtime.artifact import Artifact, CodeObject, Stage, save_artifact
from cute_dialect.runtime.launch import CompiledModule
from cute_dialect.runtime.settings import missing_package

if TYPE_CHECKING:  # pragma: no cover
    from xdsl.context import Context
    from xdsl.dialects.builtin import ModuleOp

    from cute_dialect.ir.diagnostics import Diagnostic, DiagnosticEngine, Source
    from cute_dialect.passes.pipeline_text import Element, PassElement
    from cute_dialect.pipelines.cache import Cache
    from cute_dialect.pipelines.isolate import Worker
    from cute_dialect.pipelines.runner import IR, Step
    from cute_dialect.runtime.launch import Lowered
    from cute_dialect.runtime.manifest import Manifest

__all__ = [
    "CompileError",
    "Emit",
    "Timing",
    "compile_elsewhere",
    "compile_module",
    "compiled_before",
    "lower_to_base",
    "lowered_when_asked",
    "parse_module",
    "read_text",
    "text_key",
]

Emit: TypeAlias = Literal["auto", "cubin", "ptx", "base"]
"""The end of a compilation: ``base`` stops after cute-to-base (for the CPU), ``ptx`` at PTX, ``cubin`` needs a ptxas,
``auto`` uses one if it is there.
"""


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
) -> CompiledModule:
    """Compile cute or base IR; see ``cute_dialect.pipelines.compile``.  ``timings`` receives what each stage took.

    ``before_code`` gets the module when all but its code is there, and may raise; not called where nothing is compiled.

    Text and files go through the compile cache (:mod:`cute_dialect.pipelines.cache`) unless stages are kept; so does a
    module of which ``text`` says all that its code depends on.  ``ptxas``: further options of that.
    """
    _check_keywords(
        source, pipeline, chip, features, opt_level, lineinfo, asserts, emit, filename, keep_stages, save, cache
    )
    options = _given_options(chip, opt_level, features)
    options |= {"lineinfo": "true"} if lineinfo else {}
    options |= {} if asserts else {"asserts": "false"}

    def fresh(made: list[Timing] | None = None) -> CompiledModule:
        try:
            with collector_paused():
                return _compile(source, pipeline, options, emit, filename, keep_stages, save, made, before_code, ptxas)
        except ModuleNotFoundError as e:
            hint = missing_package(e)
            if hint is None:
                raise
            raise CompileError(f"error: {hint}") from e

    if not cache or keep_stages or save is not None:
        return fresh(timings)
    return _cached(source, filename, _key_parts(pipeline, options, emit, ptxas), fresh, timings, text)


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
    """Check the types of keywords, which come from Python.  Raises :class:`CompileError`, which names the keyword."""
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
            raise CompileError(
                f"error: {name}: expected {what}, got {shown if len(shown) <= 80 else shown[:77] + '...'}"
            )


def compiled_before(
    source: str | os.PathLike[str], *, pipeline: str = "nvptx", chip: str | None = None, emit: Emit = "auto"
) -> CompiledModule | None:
    """Return what :func:`compile_module` finds in the compile cache, without importing the compiler, or ``None``."""
    from cute_dialect.pipelines.cache import default_cache, key_of

    disk = default_cache()
    given = _given_text(source, None) if disk is not None else None
    if disk is None or given is None:
        return None
    parts = _key_parts(pipeline, {} if chip is None else {"chip": chip}, emit)
    return _found(disk, key_of(_with_source(parts, given)), given, pipeline)


def text_key(text: str, *, emit: Emit, chip: str | None, opt_level: int | None, ptxas: Sequence[str] = ()) -> str:
    """Return the key under which :func:`compile_module` keeps a module of which ``text`` says all."""
    from cute_dialect.pipelines.cache import key_of

    return key_of(_with_source(_key_parts("nvptx", _given_options(chip, opt_level), emit, ptxas), (text, "-")))


def compile_elsewhere(
    module: ModuleOp, *, emit: Emit, chip: str | None, opt_level: int | None, lineinfo: bool, cache: bool,
    text: str | None, ptxas: Sequence[str] = (),
) -> CompiledModule:  # fmt: skip
    """Compile as :func:`compile_module` does, in another process, so that several threads compile at a time."""
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
            return CompiledModule(artifact, lowered=lowered_when_asked(lambda: module))
        except UpstreamError:
            pass  # here it is said as it always is
    return compile_module(
        module, emit=emit, chip=chip, opt_level=opt_level, lineinfo=lineinfo, cache=cache, text=text, ptxas=ptxas
    )


def compile_text_elsewhere(source: str, filename: str) -> CompiledModule:
    """Compile a text as :func:`compile_module` does by default, in another process, so that several threads compile at
    a time.  What the compile cache has is taken from there.
    """
    from cute_dialect.pipelines.cache import default_cache, key_of
    from cute_dialect.pipelines.isolate import borrowed
    from cute_dialect.pipelines.upstream_error import UpstreamError
    from cute_dialect.runtime.artifact import read_artifact

    given, disk = (source, filename), default_cache()
    if disk is None or not disk.has(key_of(_with_source(_key_parts("nvptx", {}, "auto"), given))):
        try:
            with borrowed("serve_compilations") as worker:
                files = worker.compiled({"source": source, "filename": filename})
            artifact = read_artifact("-", files.__getitem__)
            return CompiledModule(artifact, lowered=_lowered_again(_reading(*given), "nvptx"))
        except UpstreamError:
            pass  # here it is said as it always is
    return compile_module(source, filename=filename)


def _given_options(chip: str | None, opt_level: int | None, features: str | None = None) -> dict[str, str]:
    given = {"chip": chip, "features": features, "O": None if opt_level is None else str(opt_level)}
    return {k: v for k, v in given.items() if v is not None}


def _key_parts(pipeline: str, options: dict[str, str], emit: Emit, ptxas: Sequence[str] = ()) -> list[str]:
    return [pipeline, repr(sorted(options.items())), emit, *([repr(tuple(ptxas))] if ptxas else [])]


def _with_source(parts: Sequence[str], given: tuple[str, str]) -> list[str]:
    """Add the text of the source to the parts of a key; and its name, where the code names it."""
    text, name = given
    return [*parts, text, name] if any("lineinfo" in part for part in parts) else [*parts, text]


_MEMORY: dict[str, CompiledModule] = {}
_MEMORY_LIMIT = 128


def _cached(
    source: str | os.PathLike[str] | ModuleOp,
    filename: str | None,
    options: Sequence[str],
    fresh: Callable[[list[Timing] | None], CompiledModule],
    timings: list[Timing] | None,
    text: str | None = None,
) -> CompiledModule:
    """Take the module from memory, from the disk, or make it anew."""
    from cute_dialect.pipelines.cache import default_cache, key_of

    start = perf_counter()
    disk = default_cache()
    given: tuple[str, str] | None = None
    if disk is not None:
        given = (text, filename or "-") if text is not None else _given_text(source, filename)
    if disk is None or given is None:
        return fresh(timings)
    key = key_of(_with_source(options, given))
    found = _found(disk, key, given, options[0])
    if found is None:
        with disk.locked(key):  # of the processes that want it one compiles it
            found = _found(disk, key, given, options[0])
            if found is None:
                found = fresh(timings)
                disk.put(key, found.artifact)
        _remember(key, found)
    elif timings is not None:
        timings.append(Timing("cache", perf_counter() - start))
    return found


def _found(disk: Cache, key: str, given: tuple[str, str], pipeline: str) -> CompiledModule | None:
    found = _MEMORY.get(key)
    if found is None:
        artifact = disk.get(key)
        if artifact is None:
            return None
        found = CompiledModule(artifact, lowered=_lowered_again(_reading(*given), pipeline))
    _remember(key, found)
    return found


def _remember(key: str, module: CompiledModule) -> None:
    while len(_MEMORY) >= _MEMORY_LIMIT:
        del _MEMORY[next(iter(_MEMORY))]
    _MEMORY[key] = module


def lowered_when_asked(module: Callable[[], ModuleOp], pipeline: str = "nvptx") -> Lowered:
    """Return what lowers a module, which is made when that is asked for."""
    return _lowered_again(lambda _: module().clone(), pipeline)


def _lowered_again(read: Callable[[_Work], ModuleOp], pipeline: str) -> Lowered:
    """Return the lowered module of a compiled one, made when it is asked for: all of it, or as much as a kernel needs.

    ``read`` gives a module to be lowered in place.
    """
    kept: dict[str | None, ModuleOp] = {}

    def lowered(kernel: str | None) -> ModuleOp:
        if kernel not in kept:
            work = _Work(pipeline, {}, None)
            module = read(work)
            if kernel is not None:
                _drop_others(module, kernel)
            kept[kernel] = work.run_cute(module, None)
        return kept[kernel]

    return lowered


def _reading(text: str, name: str) -> Callable[[_Work], ModuleOp]:
    """Return what parses a text that is known to be sound."""
    return lambda work: work.parse(text, name, verified=True)


def _cloning(module: ModuleOp) -> Callable[[_Work], ModuleOp]:
    """Return what gives a copy of a module."""
    return lambda _: module.clone()


def _drop_others(module: ModuleOp, kernel: str) -> None:
    """Take out the other kernels, and what launches kernels."""
    for op in list(module.ops):
        if op.name == "gpu.module":
            for inner in [o for b in op.regions[0].blocks for o in b.ops]:
                known = {**inner.attributes, **inner.properties}
                name = getattr(known.get("sym_name"), "data", kernel)
                if (
                    inner.name == "gpu.func"
                    and not known.keys().isdisjoint(("kernel", "gpu.kernel"))
                    and name != kernel
                ):
                    inner.detach()
                    inner.erase(safe_erase=False)
        elif op.name == "func.func" and any(inner.name == "gpu.launch_func" for inner in op.walk()):
            op.detach()
            op.erase(safe_erase=False)


def _given_text(source: str | os.PathLike[str] | ModuleOp, filename: str | None) -> tuple[str, str] | None:
    """Read the text of a source and its name; ``None`` for a module, and for a file that cannot be read."""
    if isinstance(source, str) and _is_text(source):
        return source, filename or "-"
    if isinstance(source, (str, os.PathLike)):
        path = os.fspath(source)
        try:
            with open(path, encoding="utf-8") as f:
                return f.read(), filename or path
        except (OSError, UnicodeDecodeError):
            return None
    return None


def _is_text(source: str) -> bool:
    return "\n" in source or "{" in source or source.lstrip().startswith('"')


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
) -> CompiledModule:
    from cute_dialect.pipelines.build_manifest import build_manifest
    from cute_dialect.runtime.manifest import ManifestError

    if emit != "base":
        from cute_dialect.pipelines.isolate import start

        start()
    work = _Work(pipeline, options, timings, tuple(ptxas))
    stages = work.stages if keep_stages or save is not None else None
    module, text = work.read(source, filename)
    if stages is not None:
        stages.append(Stage("input", text if text is not None else _text(module)))
    again = _lowered_again(_cloning(module.clone()) if text is None else _reading(text, work.name), pipeline)
    if emit != "base":
        work.take_ptx_of(module)
    module = work.run_cute(module, stages, for_chip=emit != "base" or bool(options))
    try:
        manifest = build_manifest(
            module,
            work.context,
            chip=work.option("attach-nvvm-target", "chip", DEFAULT_CHIP),
            features=work.option("attach-nvvm-target", "features", ""),
            opt_level=int(work.option("attach-nvvm-target", "opt-level", "3")),
        )
    except ManifestError as e:
        raise CompileError(f"{work.name}: error: {e}") from e
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
    """Return the base IR of a module as generic text for upstream: the passes of ``pipeline`` up to the hand-off.

    Raises :class:`CompileError`.
    """
    work = _Work(pipeline, {}, None)
    module, _ = work.read(source, filename)
    return _text(work.run_cute(module, None), generic=True)


def read_text(path: str | os.PathLike[str]) -> str:
    """Return the text of a file.  Raises :class:`CompileError`."""
    path = os.fspath(path)
    try:
        with open(path, encoding="utf-8") as f:
            return f.read()
    except OSError as e:
        raise CompileError(f"{path}: error: cannot read it: {e.strerror}") from e
    except UnicodeDecodeError as e:
        raise CompileError(f"{path}: error: not UTF-8 text (byte {e.start})") from e


def parse_module(text: str, filename: str = "-") -> ModuleOp:
    """Parse a module of cute and upstream ops.  Base IR in a form that only upstream reads goes through upstream.

    Raises :class:`CompileError` with positions.
    """
    work = _Work("base", {}, None)
    return work.parse(text, filename)


class _Work:
    """One compilation: its steps, its diagnostics, its clock."""

    def __init__(
        self, pipeline: str, options: dict[str, str], timings: list[Timing] | None, ptxas: tuple[str, ...] = ()
    ):
        self._timings = timings
        self._ptxas = ptxas
        self._last = perf_counter()
        from cute_dialect.ir.diagnostics import DiagnosticEngine
        from cute_dialect.pipelines.registry import PipelineError, named_pipeline

        try:
            self._row, chosen = named_pipeline(pipeline)
            self._options = chosen | options
            self._passes = _flat(self._row.elements(self._options))
        except PipelineError as e:
            raise CompileError(f"error: {e}") from e
        self.engine: DiagnosticEngine = DiagnosticEngine()
        self.sources: dict[str, Source] = {}
        self.stages: list[Stage] = []
        self.name = "-"
        self.tick("start")

    @cached_property
    def context(self) -> Context:
        """All dialects; xDSL is imported here, after a file that cannot be read was met."""
        from cute_dialect.ir.context import make_context

        return make_context("all", allow_unregistered=True)

    def tick(self, stage: str) -> None:
        """Note the time since the last one."""
        now = perf_counter()
        if self._timings is not None:
            self._timings.append(Timing(stage, now - self._last))
        self._last = now

    def take_ptx_of(self, module: ModuleOp) -> None:
        """Take the version of PTX that the module's atoms need, if the default is older and none is given."""
        features = self.option("attach-nvvm-target", "features", "")
        if "features" in self._options or not features.startswith("+ptx"):
            return
        least = 0
        for atom in {op.result_types[0] for op in module.walk() if op.name == "cute.atom"}:
            row: Any = getattr(atom, "row", None)  # of the table of atoms
            version: object = getattr(row() if callable(row) else row, "ptx_version", "0")
            least = max(least, int(str(version).replace(".", "")))
        if least > int(features.removeprefix("+ptx")):
            self._passes = _flat(self._row.elements(self._options | {"features": f"+ptx{least}"}))

    def option(self, pass_name: str, key: str, default: str) -> str:
        """Return an option that the pipeline gives to a pass."""
        return next((e.options.get(key, default) for e in self._passes if e.name == pass_name), default)

    def _steps(self, *, base: bool) -> list[Step]:
        """Return the steps up to base IR, or those from there on; what is not among them is not even imported."""
        from cute_dialect.passes.registry import PASSES
        from cute_dialect.pipelines.runner import ResolveError, resolve

        to_base = 1 + max(i for i, e in enumerate(self._passes) if PASSES[e.name].scope == "cute")
        try:
            return resolve(self._passes[to_base:] if base else self._passes[:to_base])
        except ResolveError as e:
            raise CompileError(f"error: {e}") from e

    def failure(self) -> CompileError:
        """Make an error of all errors so far, with their source lines."""
        from cute_dialect.ir.diagnostics import render

        errors = [d for d in self.engine.seen if d.severity == "error"]
        return CompileError("".join(render(d, self.sources) for d in errors).rstrip("\n"), errors)

    def remarks(self) -> list[str]:
        """List what the passes had to say that is no error: ``FILE:LINE:COL: remark: …``."""
        return [f"{d.position}: {d.severity}: {d.message}" for d in self.engine.seen if d.severity != "error"]

    # ------------------------------------------------------------------------------------------------------ reading

    def read(self, source: str | os.PathLike[str] | ModuleOp, filename: str | None) -> tuple[ModuleOp, str | None]:
        """Read the module, and its text if it came as text.  Raises :class:`CompileError`."""
        if isinstance(source, str) and _is_text(source):
            text = source
            self.name = filename or "-"
        elif isinstance(source, (str, os.PathLike)):
            self.name = filename or os.fspath(source)
            text = read_text(source)
        else:
            self.name = filename or "-"
            return source.clone(), None  # the passes work in place
        module = self.parse(text, self.name)
        self.tick("parse")
        return module, text

    def parse(self, text: str, name: str, *, verified: bool = False) -> ModuleOp:
        """Parse and verify; ``verified``: the text is known to be sound."""
        from cute_dialect.ir.diagnostics import DiagnosticEngine, Source
        from cute_dialect.ir.parsing import parse_module as parse
        from cute_dialect.ir.verifier import verify

        self.engine = DiagnosticEngine(file=name)
        self.sources[name] = Source(name, text)
        module = parse(self.context, self.sources[name], self.engine)
        if module is None:
            retold = _through_upstream(text)
            quiet = DiagnosticEngine(file=name)
            module = parse(self.context, Source(name, retold), quiet) if retold is not None else None
            if module is None:
                raise self.failure()
            self.engine = DiagnosticEngine(file=name)
        if not verified and not verify(module, self.engine):
            raise self.failure()
        return module

    # ------------------------------------------------------------------------------------------------------- passes

    def run_cute(self, module: ModuleOp, stages: list[Stage] | None, *, for_chip: bool = False) -> ModuleOp:
        """Run the passes of ours, in place; base IR has nothing for them to do.

        ``for_chip``: whether a chip must have all instructions; the CPU has them all.
        """
        from cute_dialect.pipelines.runner import IR

        if not _has_cute(module):
            if stages is not None:
                stages.append(Stage("cute-to-base", _text(module, generic=True)))
            return module
        steps = self._steps(base=False)
        self._run(IR(module), [step for step in steps if for_chip or step.name != "cute-check-target"], stages)
        return module

    def to_code(
        self, module: ModuleOp, manifest: Manifest, emit: Emit, stages: list[Stage] | None
    ) -> tuple[CodeObject, ...]:
        """Take base IR to PTX and cubin, in place."""
        from cute_dialect.pipelines.isolate import borrowed
        from cute_dialect.pipelines.runner import IR
        from cute_dialect.pipelines.upstream import is_available
        from cute_dialect.pipelines.upstream_error import UpstreamMissing

        if not is_available():
            raise CompileError(f"error: {UpstreamMissing.HINT}")
        ir = IR(module)
        with borrowed() as worker:
            self._run(ir, self._steps(base=True), stages, worker)
            if ir.upstream is None:
                return ()
            ptx = ir.upstream.ptx()
        return tuple(
            self._assemble(name, ptx[name], manifest["chip"], emit) for name in manifest["modules"] if name in ptx
        )

    def _run(self, ir: IR, steps: Sequence[Step], stages: list[Stage] | None, worker: Worker | None = None) -> None:
        from cute_dialect.pipelines.runner import Runner

        runner = Runner(
            self.context,
            self.engine,
            verify_each=False,
            observers=(_Keep(self, stages),),
            sources=self.sources,
            worker=worker,
        )
        if not runner.run(ir, steps):
            raise self.failure()

    def _assemble(self, module: str, ptx: str, chip: str, emit: Emit) -> CodeObject:
        from cute_dialect.pipelines.cuda_programs import PtxasError, PtxasMissing
        from cute_dialect.pipelines.ptxas import assemble

        if emit == "ptx":
            return CodeObject(module, ptx, None, None, "")
        try:
            done = assemble(ptx, chip, extra=self._ptxas)
        except PtxasMissing as e:
            if emit == "cubin":
                raise CompileError(f"error: {e}") from e
            return CodeObject(module, ptx, None, None, f"not assembled: {e}\n")
        except PtxasError as e:
            raise CompileError(f"{self.name}: error: {e}") from e
        self.tick("ptxas")
        return CodeObject(module, ptx, done.cubin, done.to_json(), done.report())


class _Keep:
    """Observes the runner: times each pass and keeps the IR after it."""

    def __init__(self, work: _Work, stages: list[Stage] | None):
        self._work = work
        self._stages = stages

    def before(self, step: Step, ir: IR) -> None:
        """Do nothing: what counts is after a pass."""

    def after(self, step: Step, ir: IR, ok: bool, seconds: float, verify_seconds: float) -> None:
        """Note the time; keep the IR, generic where it must be read again."""
        self._work.tick(step.name)
        if ok and self._stages is not None and step.name != "emit-gpu-binary":
            self._stages.append(Stage(step.name, ir.text(generic=step.name == "cute-to-base")))
            self._work.tick("print")


def _through_upstream(text: str) -> str | None:
    """Have upstream read base IR and print its generic form; ``None`` if it cannot."""
    from cute_dialect.ir.text_limits import text_overflow
    from cute_dialect.pipelines.isolate import borrowed
    from cute_dialect.pipelines.upstream import is_available
    from cute_dialect.pipelines.upstream_error import UpstreamError

    if not is_available() or text_overflow(text) is not None:
        return None
    try:
        with borrowed() as worker:
            return worker.module(text).text(generic=True)
    except UpstreamError:
        return None


def _has_cute(module: ModuleOp) -> bool:
    # math.fma: cute-to-base lowers that of 16-bit floats, too, which upstream would round twice.
    for op in module.walk():
        if op.name.startswith(("cute.", "cute_nvgpu.")) or op.name == "math.fma":
            return True
        types = [*op.result_types, *(a.type for r in op.regions for b in r.blocks for a in b.args)]
        if any(t.name.startswith("cute") for t in types):
            return True
    return False


def _flat(elements: Sequence[Element]) -> list[PassElement]:
    """List the passes of a named pipeline, which nests in ``builtin.module`` only."""
    from cute_dialect.passes.pipeline_text import PassElement

    out: list[PassElement] = []
    for e in elements:
        out += [e] if isinstance(e, PassElement) else _flat(e.elements)
    return out


def _text(module: ModuleOp, *, generic: bool = False) -> str:
    from cute_dialect.ir.printing import ir_text

    return ir_text(module, generic=generic)
