"""``cute-check`` of ``.mlir`` files: parse, verify and run a pipeline like ``cute-opt``."""

from __future__ import annotations

from time import perf_counter

from cute_dialect.ir.diagnostics import Diagnostic, DiagnosticEngine, Position, Source, limit_message, render
from cute_dialect.passes.outside import OutsideError
from cute_dialect.tools.check_report import Finding, Related
from cute_dialect.tools.cute_opt import Chunk, CommandLineError, Failure, Job
from cute_dialect.tools.opt_options import parse_arguments
from cute_dialect.tools.split_input import process


def check_mlir(file: str, pipeline: str) -> list[Finding]:
    """Return the findings of a file.

    Args:
        pipeline: the pipeline to run, or "none" to verify only.
    """
    try:
        with open(file, encoding="utf-8") as f:
            source = Source(file, f.read())
    except (OSError, UnicodeDecodeError) as e:
        why = e.strerror if isinstance(e, OSError) else "not UTF-8 text"
        return [finding_of(Diagnostic("error", f"cannot read the file: {why}", Position(file)), {})]
    return [finding_of(d, {file: source}) for d in check_source(source, pipeline)]


def check_source(source: Source, pipeline: str) -> list[Diagnostic]:
    """Return the diagnostics of ``cute-opt`` for a text; ``pipeline`` is as for :func:`check_mlir`."""
    file = source.name
    words = [file] if pipeline == "none" else [file, f"--pipeline={pipeline}"]
    engine = DiagnosticEngine(None, file)
    try:
        job = Job(parse_arguments(words), words, perf_counter())
        process(job, engine, source, {file: source}, Chunk(source.text, 0, None))
    except (CommandLineError, OutsideError) as e:
        return [Diagnostic("error", str(e), Position(file))]
    except Failure as e:
        return [e.diagnostic]
    except Exception as e:
        message = limit_message(e)
        if message is None:
            raise
        engine.error(message, source.position(0))
    return engine.seen


def finding_of(d: Diagnostic, sources: dict[str, Source]) -> Finding:
    """Convert a diagnostic of IR to a finding."""
    p = d.position
    related = tuple(Related(n.message, n.position.file, n.position.line, n.position.col) for n in d.notes)
    text = render(d, sources)
    return Finding(
        d.severity, "mlir", d.message, p.file, p.line, p.col, p.line if p.end else 0, p.end, related, "", text
    )
