"""The ``cute-opt`` program: read MLIR with cute ops, run passes and print the result.

:class:`Job` reads the input, splits it, and parses, verifies, transforms and prints each chunk
(:mod:`.split_input`).  :mod:`.opt_options` parses the command line, :mod:`.instrumentation` prints the IR between
passes and measures time, and :mod:`cute_dialect.pipelines.runner` runs the passes.  Imports are local to the functions
that need them, because they dominate the run time on small files.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

from cute_dialect.files import not_mlir
from cute_dialect.ir.diagnostics import (
    Diagnostic,
    DiagnosticEngine,
    Position,
    Source,
    StreamHandler,
    did_you_mean,
    limit_message,
    render,
)
from cute_dialect.passes.outside import OutsideError
from cute_dialect.passes.pipeline_text import PassElement, PipelineTextError, parse_options, parse_pipeline
from cute_dialect.pipelines.registry import PipelineError, named_pipeline, with_options
from cute_dialect.runtime.settings import SettingError, flag, missing_package
from cute_dialect.tools.opt_options import (
    CommandLineError,
    OptOptions,
    PassFlag,
    PipelineFlag,
    help_text,
    parse_arguments,
    pass_help,
    passes_text,
    pipelines_text,
    versions_text,
)
from cute_dialect.tools.programs import collect_rarely, leave

if TYPE_CHECKING:
    from xdsl.context import Context

    from cute_dialect.passes.pipeline_text import Element
    from cute_dialect.pipelines.runner import Step
    from cute_dialect.pipelines.validation import Validator
    from cute_dialect.pipelines.worker import Worker
    from cute_dialect.tools.instrumentation import CodeSize, IRDumper, Timing

SEPARATOR = "// -----"
STDIN = "<stdin>"
REPORT_TO = "this is a bug of cute-opt, please report it with the file and the command above"


class Failure(Exception):
    """A failure of the whole command, with its diagnostic."""

    def __init__(self, diagnostic: Diagnostic, source: Source | None = None):
        super().__init__(diagnostic.message)
        self.diagnostic = diagnostic
        self.source = source


class Chunk(NamedTuple):
    """A chunk of the input.

    ``line_offset`` is the number of lines before the chunk.  ``number`` counts from 1, or is None if the input is not
    split.
    """

    text: str
    line_offset: int
    number: int | None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``cute-opt`` with these arguments (default: ``sys.argv``) and return the exit status."""
    start = perf_counter()
    as_program = arguments is None
    if as_program:
        gc.disable()  # Imports produce no garbage.
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words or "-debug" in words
    try:
        debug = flag("CUTE_OPT_TRACEBACK", False) or debug
        options = parse_arguments(words)
        status = _command(options, words, start, as_program=as_program)
        sys.stdout.flush()
    except SettingError as e:
        sys.stderr.write(f"cute-opt: error: {e}\n")
        status = 1
    except (CommandLineError, OutsideError) as e:
        sys.stderr.write(f"cute-opt: error: {e}\nTry 'cute-opt --help'.\n")
        status = 1
    except Failure as e:
        sources = {e.source.name: e.source} if e.source is not None else {}
        sys.stderr.write(render(e.diagnostic, sources, _color()))
        status = 1
    except BrokenPipeError:
        sys.stdout = None  # The reader closed the pipe, so the interpreter must not flush stdout at exit.
        status = 1
    except KeyboardInterrupt:
        sys.stderr.write("cute-opt: interrupted\n")
        status = 130
    except Exception as e:
        if debug:
            raise
        missing = missing_package(e)
        note = "" if missing is not None else f"cute-opt: note: {REPORT_TO} (--debug shows where)\n"
        what = f"internal error: {type(e).__name__}: {e}" if missing is None else f"error: {missing}"
        sys.stderr.write(f"cute-opt: {what}\n{note}")
        status = 1
    if as_program:
        leave(status)
    return status


def _command(options: OptOptions, words: Sequence[str], start: float, *, as_program: bool) -> int:
    """Run the command and return its exit status."""
    if "help" in options.values:
        topic = options.value("help")
        sys.stdout.write(pass_help(topic, options.passes) if topic else help_text(options.passes))
        return 0
    if options.flag("version") or options.flag("list-passes") or options.flag("list-pipelines"):
        if options.flag("version"):
            sys.stdout.write(versions_text())
        if options.flag("list-passes"):
            sys.stdout.write(passes_text(options.passes))
        if options.flag("list-pipelines"):
            sys.stdout.write(pipelines_text())
        return 0
    if _goes_upstream(options):
        from cute_dialect.pipelines.worker import start as start_worker  # late: start-up

        start_worker()
    job = Job(options, words, start)
    if as_program:
        collect_rarely()
    if options.flag("show-dialects"):
        sys.stdout.write("Available Dialects: " + ", ".join(sorted(job.context().registered_dialect_names)) + "\n")
        return 0
    return job.run()


def _goes_upstream(options: OptOptions) -> bool:
    """Return True if the options alone imply upstream MLIR.  Passes given by name are checked later."""
    return options.value("emit", "mlir") != "mlir" or any(
        isinstance(item, PipelineFlag) and item.named and item.text.startswith("nvptx") for item in options.run
    )


class Job:
    """A run of ``cute-opt``: its options and the state that all chunks share."""

    def __init__(self, options: OptOptions, words: Sequence[str], start: float):
        from importlib import import_module

        import_module("cute_dialect.ir.parsing")  # Import here so that --mlir-timing includes it.

        self.options = options
        self.words = words
        self.worker: Worker | None = None
        self.emit = options.value("emit", "mlir")
        self.debug = options.flag("debug") or flag("CUTE_OPT_TRACEBACK", False)
        self.timing: Timing | None = None
        self.printer: IRDumper | None = None
        self.size: CodeSize | None = None
        self.statistics: dict[str, int] = {}
        if options.flag("mlir-timing"):
            from cute_dialect.tools.instrumentation import Timing  # late: start-up

            self.timing = Timing(start)
        if options.flag("code-size"):
            from cute_dialect.tools.instrumentation import CodeSize  # late: start-up

            self.size = CodeSize()
        if any(name.startswith("mlir-print-ir-") for name in (*options.flags, *options.values)):
            from cute_dialect.tools.instrumentation import IRDumper  # late: start-up

            self.printer = IRDumper(options)
        self.steps = self._steps()
        if options.flag("dump-pass-pipeline"):
            self._dump_pipeline()
        if self.printer is not None:
            self.printer.warn_of_absent(self.steps)
        if self.validator() is not None and not any(step.instance is not None for step in self.steps):
            raise CommandLineError("--validate needs at least one pass that runs in xDSL; add a pass or --pipeline")
        self._lap("import", start)

    def run(self) -> int:
        """Process the input and write the output; return the exit status."""
        if not any(step.info.upstream for step in self.steps):
            return self._run()
        from cute_dialect.pipelines.worker import borrowed  # late: start-up

        with borrowed() as self.worker:
            return self._run()

    def _run(self) -> int:
        name, text = self._read()
        whole = Source(name, text)
        ok = True
        outputs: list[str | bytes] = []
        out_file = self.options.value("o")
        quiet = self.options.flag("verify-diagnostics") and not out_file
        for chunk in self._chunks(text):
            result = self.chunk(chunk, name, whole)
            ok &= result is not None
            if result is None or quiet:
                continue
            if out_file and out_file != "-":
                outputs.append(result)
            else:
                _write_stdout(result, outputs)
                outputs.append(b"")
        if self.timing is not None:
            sys.stderr.write(self.timing.table())
        if self.size is not None:
            sys.stderr.write(self.size.table())
        if self.options.flag("mlir-pass-statistics"):
            from cute_dialect.tools.instrumentation import statistics_text  # late: start-up

            sys.stderr.write(statistics_text(self.statistics))
        if ok and out_file and out_file != "-":
            _write_file(out_file, outputs)
        return 0 if ok else 1

    def chunk(self, chunk: Chunk, name: str, whole: Source) -> str | bytes | None:
        """Process one chunk and return the printed result, or None after an error."""
        sources = {name: whole}
        shown = StreamHandler(sys.stderr, sources, _color())
        expecting = self.options.flag("verify-diagnostics")
        engine = DiagnosticEngine(None if expecting else shown, name)
        source = Source(name, chunk.text, chunk.line_offset) if chunk.line_offset or chunk.number else whole
        from cute_dialect.tools.split_input import process  # late: start-up

        try:
            result = process(self, engine, source, sources, chunk)
        except CommandLineError:
            raise
        except Exception as e:
            if self.debug:
                raise
            message = limit_message(e)
            if message is None:
                self._internal_error(e, chunk, engine, shown)
                return None
            engine.error(f"{message}, while printing", source.position(0))
            result = None
        if not expecting:
            return result
        from cute_dialect.tools.verify_diagnostics import compare  # late: start-up

        problems = compare(chunk.text, name, engine.seen, chunk.line_offset)
        for problem in problems:
            shown(problem)
        return None if problems else (result if result is not None else "")

    def context(self) -> Context:
        """Create a context with the dialects selected by ``--dialects``."""
        from cute_dialect.ir.context import make_context  # late: start-up

        return make_context(
            self.options.value("dialects", "all"),  # pyright: ignore[reportArgumentType]  (checked by parse_arguments)
            allow_unregistered=self.options.flag("allow-unregistered-dialect"),
        )

    def validator(self) -> Validator | None:
        """Return the validator of ``--validate``, or None.

        Raises:
            CommandLineError: the value of ``--validate`` is invalid.
        """
        if "validate" not in self.options.values:
            return None
        from cute_dialect.pipelines.validation import ValidateOptionError, Validator  # late: start-up

        try:
            return Validator.from_text(self.options.value("validate"))
        except ValidateOptionError as e:
            raise CommandLineError(f"option '--validate': {e}") from None

    # ---------------------------------------------------------------------------------------------------------- input

    def _read(self) -> tuple[str, str]:
        """Return the name and the text of the input."""
        path = self.options.input
        name = STDIN if path == "-" else path
        if path.endswith(".py"):
            cure = 'print cute.compile(f, arguments, device="cpu").mlir("trace") in the program'
            raise Failure(_error(name, not_mlir("cute-opt", path, cure)))
        try:
            if path == "-":
                if sys.stdin.isatty():
                    sys.stderr.write("cute-opt: reading from the terminal; give a file name to read a file\n")
                data = sys.stdin.buffer.read() if hasattr(sys.stdin, "buffer") else sys.stdin.read().encode()
            else:
                with open(path, "rb") as f:
                    data = f.read()
        except OSError as e:
            hint = ""
            if isinstance(e, FileNotFoundError):
                folder = os.path.dirname(path) or "."
                hint = did_you_mean(os.path.basename(path), os.listdir(folder) if os.path.isdir(folder) else ())
            raise Failure(_error(name, f"cannot open the input file: {e.strerror}{hint}")) from None
        try:
            return name, data.decode("utf-8")
        except UnicodeDecodeError as e:
            line = data.count(b"\n", 0, e.start) + 1
            column = e.start - (data.rfind(b"\n", 0, e.start) + 1) + 1
            message = f"the input is not UTF-8: byte 0x{data[e.start]:02x}"
            raise Failure(Diagnostic("error", message, Position(name, line, column))) from None

    def _chunks(self, text: str) -> list[Chunk]:
        if not self.options.flag("split-input-file"):
            return [Chunk(text, 0, None)]
        chunks: list[Chunk] = []
        piece: list[str] = []
        start = 0
        lines = text.split("\n")
        for number, line in enumerate(lines):
            if line.rstrip() == SEPARATOR:
                chunks.append(Chunk("\n".join([*piece, ""]), start, len(chunks) + 1))
                piece = []
                start = number + 1
            else:
                piece.append(line)
        chunks.append(Chunk("\n".join(piece), start, len(chunks) + 1))
        return chunks

    # ----------------------------------------------------------------------------------------------------------- steps

    def _steps(self) -> list[Step]:
        """Return the resolved passes to run.

        Raises:
            Failure: with a position in the text of the pipeline.
        """
        run = list(self.options.run)
        if not run and self.emit != "mlir":
            run.append(PipelineFlag(True, "nvptx"))
        if not run and not self.options.flag("lineinfo"):
            return []
        from cute_dialect.pipelines.runner import ResolveError, resolve  # late: start-up

        elements: list[tuple[Element, Source | None]] = []
        more = {"lineinfo": "true"} if self.options.flag("lineinfo") else {}
        if more and not any(isinstance(item, PipelineFlag) and item.named for item in run):
            raise CommandLineError("option '--lineinfo' needs a named pipeline; add --pipeline")
        for item in run:
            label = f"<--{item.name}>" if isinstance(item, PassFlag) else "<--pass-pipeline>"
            text = item.options if isinstance(item, PassFlag) else item.text
            try:
                if isinstance(item, PassFlag):
                    elements.append((PassElement(item.name, parse_options(item.options)), None))
                elif item.named:
                    row, values = named_pipeline(with_options(item.text, more))
                    elements += [(element, None) for element in row.elements(values)]
                else:
                    source = Source(label, item.text)
                    elements += [(element, source) for element in parse_pipeline(item.text)]
            except PipelineTextError as e:
                source = Source(label, text)
                raise Failure(Diagnostic("error", e.message, source.position(e.offset)), source) from None
            except PipelineError as e:
                raise CommandLineError(str(e)) from None
        try:
            dialects = self.options.value("dialects", "all")
            steps = resolve([element for element, _ in elements], dialects, self.options.passes)
        except ResolveError as e:
            source = next((s for s in (s for _, s in elements) if s is not None), None)
            if source is None:
                raise CommandLineError(e.message) from None
            raise Failure(Diagnostic("error", e.message, source.position(e.element.offset)), source) from None
        if self.emit == "llvm" and all(isinstance(item, PipelineFlag) and item.named for item in self.options.run):
            last = next((i for i, s in enumerate(steps) if s.name == "attach-nvvm-target"), len(steps))
            steps = steps[:last]
        return steps

    def _dump_pipeline(self) -> None:
        """Print the pipeline in the format of mlir-opt."""
        from cute_dialect.pipelines.runner import pipeline_of  # late: start-up

        sys.stderr.write(f"Pass Manager with {len(self.steps)} passes:\n{pipeline_of(self.steps)}\n\n")

    # ------------------------------------------------------------------------------------------------------------ rest

    def _lap(self, name: str, since: float) -> float:
        return self.timing.lap(name, since) if self.timing is not None else since

    def _internal_error(self, e: Exception, chunk: Chunk, engine: DiagnosticEngine, shown: StreamHandler) -> None:
        """Report an internal error with a reproducer: the input file and the command line."""
        import tempfile

        what, origin = "", ""
        command = [word for word in self.words if word != self.options.input]
        cause: BaseException = e
        from cute_dialect.pipelines.runner import PassCrash, steps_text  # late: start-up

        if isinstance(e, PassCrash):
            what = f" in pass '{e.pass_name}'"
            cause = e.__cause__ or e
            flags = {
                w for w in command if w.lstrip("-").startswith(("allow-unregistered-dialect", "dialects", "core-only"))
            }
            flags |= {f"--load={name}" for name in self.options.passes.modules}
            command = [*sorted(flags), steps_text(self.steps[: e.steps])]
            origin = self.steps[e.steps - 1].info.origin
        else:
            command = [_quote(word) for word in command]
        handle, path = tempfile.mkstemp(prefix="cute-opt-", suffix=".mlir")
        with os.fdopen(handle, "w", encoding="utf-8") as f:
            f.write(chunk.text)
        report_to = f"the pass comes from {origin}, where this is a bug" if origin else REPORT_TO
        message = f"internal error{what}: {type(cause).__name__}: {str(cause).strip() or 'no message'}"
        notes = (
            Diagnostic(
                "note",
                f"the input was written to {path}; to reproduce the error: cute-opt {path} {' '.join(command)}",
                engine.position(None),
            ),
            Diagnostic("note", f"{report_to} (--debug shows where)", engine.position(None)),
        )
        shown(Diagnostic("error", message, engine.position(None), notes))


def _quote(word: str) -> str:
    return f"'{word}'" if any(c in word for c in " ()*|<>;&$") else word


def _error(name: str, message: str) -> Diagnostic:
    return Diagnostic("error", message, Position(name))


def _color() -> bool:
    return sys.stderr.isatty() and not os.environ.get("NO_COLOR")


def _write_stdout(result: str | bytes, before: Sequence[str | bytes]) -> None:
    if isinstance(result, bytes):
        sys.stdout.flush()
        sys.stdout.buffer.write(result)
        return
    if before:
        sys.stdout.write(SEPARATOR + "\n")
    sys.stdout.write(result)


def _write_file(path: str, outputs: Sequence[str | bytes]) -> None:
    """Write a file atomically, through a temporary file that is renamed.

    Special files such as ``/dev/null`` and pipes are written directly, and symbolic links are followed.

    Raises:
        Failure: the file cannot be written.
    """
    separator = (SEPARATOR + "\n").encode()
    data = separator.join(o.encode() if isinstance(o, str) else o for o in outputs)
    target = os.path.realpath(path)
    temporary = ""
    try:
        if os.path.exists(target) and not os.path.isfile(target):
            with open(path, "wb") as f:
                f.write(data)
            return
        os.makedirs(os.path.dirname(target), exist_ok=True)
        name = os.path.join(os.path.dirname(target), f".cute-opt-{os.urandom(8).hex()}")
        with open(name, "xb") as f:
            temporary = name
            f.write(data)
        if os.path.exists(target):
            os.chmod(temporary, os.stat(target).st_mode & 0o7777)
        os.replace(temporary, target)
    except OSError as e:
        if temporary and os.path.exists(temporary):
            os.unlink(temporary)
        raise Failure(_error(path, f"cannot write the output file: {e.strerror}")) from None


if __name__ == "__main__":
    sys.exit(main())
