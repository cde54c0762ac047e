"""Processing of one chunk of ``cute-opt`` input: parse, verify, run the passes, print."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ModuleOp

from cute_dialect.ir.diagnostics import Diagnostic, DiagnosticEngine, Position, Source
from cute_dialect.ir.parsing import parse_module
from cute_dialect.ir.printing import ir_text
from cute_dialect.ir.text_limits import text_overflow
from cute_dialect.ir.verifier import VerifiedForms, verify

if TYPE_CHECKING:
    from cute_dialect.pipelines.runner import IR, Runner
    from cute_dialect.pipelines.worker import Worker
    from cute_dialect.tools.cute_opt import Chunk, Job


SOURCE_NAMES = "mlir-use-nameloc-as-prefix"
"""Option that prints values with their names from the source."""


def process(
    job: Job, engine: DiagnosticEngine, source: Source, sources: dict[str, Source], chunk: Chunk
) -> str | bytes | None:
    """Return the printed chunk, or None if an error was reported to ``engine``."""
    options = job.options
    now = perf_counter()
    if not job.steps and job.printer is None and job.size is None:
        module = _parse(job, engine, source)
        if module is None:
            return None
        now = perf_counter()
        text = ir_text(
            module,
            generic=options.flag("mlir-print-op-generic"),
            debuginfo=options.flag("mlir-print-debuginfo"),
            source_names=options.flag(SOURCE_NAMES),
        )
        _lap(job, "print", now)
        return text

    from cute_dialect.pipelines.runner import IR, Runner  # late: start-up

    context = job.context()
    observers = [o for o in (job.printer, job.timing, job.size) if o is not None]
    runner = Runner(
        context,
        engine,
        verify_each=options.flag("verify-each", True),
        legality=options.flag("verify-legality"),
        observers=observers,
        sources=sources,
        validator=job.validator(),
        worker=job.worker,
    )
    if job.steps and job.steps[0].info.upstream and not _mentions_cute(source.text) and _may_skip_xdsl(job):
        ir = _parse_upstream(job.worker, runner, source)
        now = _lap(job, "parse", now)
    else:
        module = _parse(job, engine, source, runner.known)
        ir = IR(module, source_names=options.flag(SOURCE_NAMES)) if module is not None else None
    if ir is None:
        return None
    if job.printer is not None:
        job.printer.start(ir, chunk.number)
    if job.size is not None:
        job.size.start(ir)
    ok = runner.run(ir, job.steps)
    if job.timing is not None and runner.hand_over_seconds:
        job.timing.add("hand over to upstream MLIR", runner.hand_over_seconds)
    for name, count in runner.pass_context.statistics.items():
        job.statistics[name] = job.statistics.get(name, 0) + count
    if not ok:
        return None
    if job.size is not None and ir.upstream is not None:
        job.size.objects(ir.upstream.objects())
    now = perf_counter()
    result = _emit(job, engine, ir)
    _lap(job, "print", now)
    return result


def _lap(job: Job, name: str, since: float) -> float:
    return job.timing.lap(name, since) if job.timing is not None else since


def _parse(job: Job, engine: DiagnosticEngine, source: Source, known: VerifiedForms | None = None) -> ModuleOp | None:
    """Parse and verify with xDSL."""
    now = perf_counter()
    core_only = job.options.flag("core-only")
    module = parse_module(job.context(), source, engine, core_only=core_only)
    now = _lap(job, "parse", now)
    if module is None:
        return None
    ok = verify(module, engine, known=known)
    _lap(job, "verify", now)
    if not ok:
        return None
    if job.options.flag("verify-roundtrip") and not _roundtrip(job, engine, module, source.name):
        return None
    return module


# ----------------------------------------------------------------------------------------------- straight to upstream


def _mentions_cute(text: str) -> bool:
    # Quoted function names also need xDSL: cute-check-target reports names that are invalid in PTX, where LLVM aborts.
    return "cute." in text or "cute_nvgpu" in text or "<cute" in text or 'func @"' in text


def _may_skip_xdsl(job: Job) -> bool:
    """Return True if upstream MLIR may parse the file, because no option needs the xDSL module."""
    options = job.options
    plain = not (options.flag("allow-unregistered-dialect") or options.flag("verify-roundtrip"))
    return plain and options.value("dialects", "all") != "cute"


def _parse_upstream(worker: Worker | None, runner: Runner, source: Source) -> IR | None:
    """Parse with upstream MLIR, which is faster, if all ops are base ops and all passes run upstream."""
    from cute_dialect.pipelines.runner import IR  # late: start-up
    from cute_dialect.pipelines.upstream import UpstreamError  # late: start-up

    assert worker is not None
    overflow = text_overflow(source.text)
    if overflow is not None:
        runner.pass_context.diagnostics.error(overflow.message, source.position(overflow.start, overflow.end))
        return None
    try:
        return IR(upstream=worker.module(source.text, source.name))
    except UpstreamError as e:
        runner.report(e, "parse", source.line_offset)
        return None


# ------------------------------------------------------------------------------------------------------------ roundtrip


def _roundtrip(job: Job, engine: DiagnosticEngine, module: ModuleOp, name: str) -> bool:
    """Check that ``print(parse(print(M))) == print(M)``, and that the generic form parses to an equal module."""
    at = Position(name)
    custom = ir_text(module)
    for form, text in (("custom", custom), ("generic", ir_text(module, generic=True))):
        inner = DiagnosticEngine()
        again = parse_module(job.context(), Source(f"<{form} form>", text), inner)
        if again is None:
            first = inner.seen[0]
            line = Source("", text).line(first.position.line) or ""
            engine.error(f"roundtrip: the {form} form does not parse: {first.message}, in: {line.strip()}", at)
            return False
        printed = ir_text(again)
        if printed != custom:
            old, new = next(
                (pair for pair in zip(custom.split("\n"), printed.split("\n")) if pair[0] != pair[1]), ("", "")
            )
            message = f"roundtrip: the {form} form changes when it is parsed and printed again"
            engine.error(message, at, _difference(engine, old, new))
            return False
        same = {a: b for one, other in zip(again.walk(), module.walk()) for a, b in zip(one.results, other.results)}
        if not again.is_structurally_equivalent(module, {**same}):  # Uses may precede definitions.
            engine.error(f"roundtrip: the {form} form parses to a different module", at)
            return False
    return True


def _difference(engine: DiagnosticEngine, old: str, new: str) -> tuple[Diagnostic, Diagnostic]:
    return (engine.note(f"printed: {old.strip()}"), engine.note(f"read back: {new.strip()}"))


# ----------------------------------------------------------------------------------------------------------------- emit


def _emit(job: Job, engine: DiagnosticEngine, ir: IR) -> str | bytes | None:
    """Return the module in the format selected by ``--emit``."""
    options = job.options
    if job.emit == "mlir":
        return ir.text(
            generic=options.flag("mlir-print-op-generic"),
            debuginfo=options.flag("mlir-print-debuginfo"),
            local_scope=options.flag("mlir-print-local-scope"),
        )
    if ir.upstream is None:
        engine.error(
            f"--emit={job.emit} needs a pipeline that ends in upstream MLIR; add --pipeline, or remove all passes"
        )
        return None
    from cute_dialect.pipelines.upstream import UpstreamError  # late: start-up

    try:
        if job.emit == "llvm":
            parts = ir.upstream.llvm_ir()
            if not parts:
                engine.error(
                    "--emit=llvm: no function is in the llvm dialect; add one-shot-convert-to-llvm as the last pass"
                )
                return None
            return "\n".join(parts.values())
        objects = ir.upstream.objects()
    except UpstreamError as e:
        engine.error(e.message)
        return None
    if not objects:
        engine.error(
            f"--emit={job.emit}: no gpu.binary found; it needs a gpu.module and emit-gpu-binary as the last pass"
        )
        return None
    if job.emit == "ptx":
        texts = [o.data.decode() for o in objects if o.format == "isa"]
        if not texts:
            engine.error("--emit=ptx: emit-gpu-binary emitted no PTX; set its option compilation-target=isa")
            return None
        return "\n".join(texts)
    if len(objects) != 1:
        names = ", ".join("@" + o.module for o in objects)
        engine.error(f"--emit=cubin: one cubin fits in a file, found {len(objects)} gpu.modules: {names}")
        return None
    (only,) = objects
    if only.format == "bin":
        return only.data
    from cute_dialect.pipelines.ptxas import PtxasError, assemble  # late: start-up

    try:
        return assemble(only.data.decode(), only.chip).cubin
    except PtxasError as e:
        engine.error(str(e))
        return None
