"""One compilation: the request for it, reading the source, running passes, producing code.

>>> CompileRequest("module {}", chip="sm_90a", opt_level=2).options
{'chip': 'sm_90a', 'O': '2'}
>>> CompileRequest("module {}").given()
('module {}', '-')
"""

from __future__ import annotations

import gc
import os
from collections.abc import Collection, Generator, Sequence
from contextlib import contextmanager
from functools import cached_property
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, get_args

from cute_dialect.arch.targets import DEFAULT_CHIP
from cute_dialect.errors import CompileError
from cute_dialect.ir.diagnostics import DiagnosticEngine, Source, render
from cute_dialect.ir.text_limits import text_overflow
from cute_dialect.passes.pipeline_text import PassElement
from cute_dialect.passes.registry import PASSES
from cute_dialect.pipelines.cache import key_of
from cute_dialect.pipelines.ptxas import PtxasError, PtxasMissing, assemble
from cute_dialect.pipelines.registry import PipelineError, named_pipeline
from cute_dialect.pipelines.upstream import UpstreamError, UpstreamMissing, is_available
from cute_dialect.pipelines.worker import borrowed
from cute_dialect.runtime.artifact import CodeObject, Stage
from cute_dialect.runtime.manifest import ManifestError

if TYPE_CHECKING:  # pragma: no cover
    from xdsl.context import Context
    from xdsl.dialects.builtin import ModuleOp

    from cute_dialect.ir.diagnostics import Diagnostic, DiagnosticEngine, Source
    from cute_dialect.passes.pipeline_text import Element, PassElement
    from cute_dialect.pipelines.runner import IR, Step
    from cute_dialect.pipelines.worker import Worker
    from cute_dialect.runtime.manifest import Manifest

__all__ = [
    "Compilation",
    "CompileRequest",
    "Emit",
    "LoweringError",
    "Timing",
    "collector_paused",
    "is_text",
    "read_text",
    "text_of",
]


Emit: TypeAlias = Literal["auto", "cubin", "ptx", "base"]
"""The last stage of a compilation: ``base`` is the IR after cute-to-base, for the CPU; ``cubin`` needs ptxas; ``auto``
produces a cubin if ptxas is installed, else PTX.
"""


class LoweringError(CompileError):
    """A module cannot be compiled: it does not parse or verify, or a pass or a program such as ptxas fails.

    ``diagnostics`` have positions; the message shows them with their lines.
    """

    def __init__(self, message: str, diagnostics: Sequence[Diagnostic] = ()):
        super().__init__("", message)
        self.args = (message,)
        self.diagnostics = tuple(diagnostics)

    def __str__(self) -> str:
        return self.message


class Timing(NamedTuple):
    """Duration of a stage."""

    stage: str
    seconds: float


def read_text(path: str | os.PathLike[str]) -> str:
    """Return the text of a file.  Raises :class:`LoweringError`."""
    path = os.fspath(path)
    try:
        with open(path, encoding="utf-8") as f:
            return f.read()
    except OSError as e:
        raise LoweringError(f"{path}: error: cannot read it: {e.strerror}") from e
    except UnicodeDecodeError as e:
        raise LoweringError(f"{path}: error: not UTF-8 text (byte {e.start})") from e
    except ValueError as e:  # a NUL in the path
        raise LoweringError(f"{path!r}: error: cannot read it: {e}") from e


def is_text(source: str) -> bool:
    """Return True if ``source`` is IR text, False if it is the path of a file."""
    return "\n" in source or "{" in source or source.lstrip().startswith('"')


@contextmanager
def collector_paused() -> Generator[None]:
    """Disable the garbage collector, and restore its state afterwards.

    A compilation allocates some hundred thousand objects that live until its end. Collections in between free nothing
    and take a sixth of its time.

    If several threads are inside, the first one that entered enables it again for all.

    >>> with collector_paused():
    ...     gc.isenabled()
    False
    """
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


class Compilation:
    """One compilation: its passes, diagnostics and timings."""

    def __init__(
        self, pipeline: str, options: dict[str, str], timings: list[Timing] | None, ptxas: tuple[str, ...] = ()
    ):
        self._timings = timings
        self._ptxas = ptxas
        self._last = perf_counter()

        try:
            self._row, chosen = named_pipeline(pipeline)
            self._options = chosen | options
            self._passes = _flat(self._row.elements(self._options))
        except PipelineError as e:
            raise LoweringError(f"error: {e}") from e
        self.engine: DiagnosticEngine = DiagnosticEngine()
        self.sources: dict[str, Source] = {}
        self.stages: list[Stage] = []
        self.name = "-"
        self.located: Collection[str] = ()
        """Names of the stages to keep in readable form, with locations. If empty, all stages are kept without."""
        self.tick("start")

    @cached_property
    def context(self) -> Context:
        """The context with all dialects.  Created on first use, so that unreadable files are reported before that."""
        from cute_dialect.ir.context import make_context  # late: start-up

        return make_context("all", allow_unregistered=True)

    def tick(self, stage: str) -> None:
        """Record the time since the previous call as the duration of ``stage``."""
        now = perf_counter()
        if self._timings is not None:
            self._timings.append(Timing(stage, now - self._last))
        self._last = now

    def take_ptx_of(self, module: ModuleOp) -> None:
        """Raise the PTX version to the one that the module's atoms need, unless the user gave one."""
        features = self.option("attach-nvvm-target", "features", "")
        if "features" in self._options or not features.startswith("+ptx"):
            return
        least = 0
        for atom in {op.result_types[0] for op in module.walk() if op.name == "cute.atom"}:
            row: Any = getattr(atom, "row", None)  # From the table of atoms.
            version: object = getattr(row() if callable(row) else row, "ptx_version", "0")
            least = max(least, int(str(version).replace(".", "")))
        if least > int(features.removeprefix("+ptx")):
            self._passes = _flat(self._row.elements(self._options | {"features": f"+ptx{least}"}))

    def option(self, pass_name: str, key: str, default: str) -> str:
        """Return the value of a pass option in this pipeline."""
        return next((e.options.get(key, default) for e in self._passes if e.name == pass_name), default)

    def manifest(self, module: ModuleOp) -> Manifest:
        """Return the manifest of base IR.  Raises :class:`LoweringError`."""
        from cute_dialect.pipelines.build_manifest import build_manifest  # late: start-up

        try:
            return build_manifest(
                module,
                self.context,
                chip=self.option("attach-nvvm-target", "chip", DEFAULT_CHIP),
                features=self.option("attach-nvvm-target", "features", ""),
                opt_level=int(self.option("attach-nvvm-target", "opt-level", "3")),
            )
        except ManifestError as e:
            raise LoweringError(f"{self.name}: error: {e}") from e

    def _steps(self, *, base: bool) -> list[Step]:
        """Return the steps up to base IR or, with ``base``, those after it.  Only their passes are imported."""
        from cute_dialect.pipelines.runner import ResolveError, resolve  # late: start-up

        to_base = 1 + max(i for i, e in enumerate(self._passes) if PASSES[e.name].scope == "cute")
        try:
            return resolve(self._passes[to_base:] if base else self._passes[:to_base])
        except ResolveError as e:
            raise LoweringError(f"error: {e}") from e

    def failure(self) -> LoweringError:
        """Return an error that shows all diagnostics so far with their source lines."""
        errors = [d for d in self.engine.seen if d.severity == "error"]
        return LoweringError("".join(render(d, self.sources) for d in errors).rstrip("\n"), errors)

    def remarks(self) -> list[str]:
        """Return warnings and remarks of the passes as ``FILE:LINE:COL: remark: …``."""
        return [f"{d.position}: {d.severity}: {d.message}" for d in self.engine.seen if d.severity != "error"]

    # ------------------------------------------------------------------------------------------------------ reading

    def read(self, source: str | os.PathLike[str] | ModuleOp, filename: str | None) -> tuple[ModuleOp, str | None]:
        """Read the module, and its text if it came as text.  Raises :class:`LoweringError`."""
        if isinstance(source, str) and is_text(source):
            text = source
            self.name = filename or "-"
        elif isinstance(source, (str, os.PathLike)):
            self.name = filename or os.fspath(source)
            text = read_text(source)
        else:
            self.name = filename or "-"
            return source.clone(), None  # Passes modify their module.
        module = self.parse(text, self.name)
        self.tick("parse")
        return module, text

    def parse(self, text: str, name: str, *, verified: bool = False) -> ModuleOp:
        """Parse and verify a module.  ``verified``: skip the verifier."""
        from cute_dialect.ir.parsing import parse_module as parse  # late: start-up
        from cute_dialect.ir.verifier import verify  # late: start-up

        self.engine = DiagnosticEngine(file=name)
        self.sources[name] = Source(name, text)
        module = parse(self.context, self.sources[name], self.engine)
        if module is None:
            converted = _through_upstream(text)
            quiet = DiagnosticEngine(file=name)
            module = parse(self.context, Source(name, converted), quiet) if converted is not None else None
            if module is None:
                raise self.failure()
            self.engine = DiagnosticEngine(file=name)
        if not verified and not verify(module, self.engine):
            raise self.failure()
        return module

    # ------------------------------------------------------------------------------------------------------- passes

    def run_cute(self, module: ModuleOp, stages: list[Stage] | None, *, for_chip: bool = False) -> ModuleOp:
        """Run the passes that lower to base IR, in place.  Base IR is returned unchanged.

        ``for_chip``: check that the target chip has all instructions. The interpreter has all of them.
        """
        from cute_dialect.pipelines.runner import IR  # late: start-up

        if not _has_cute(module):
            if stages is not None:
                shown = IR(module).text(debuginfo=True) if self.located else text_of(module, generic=True)
                stages.append(Stage("cute-to-base", shown))
            return module
        steps = self._steps(base=False)
        ir = IR(module, source_names=bool(self.located))
        self._run(ir, [step for step in steps if for_chip or step.name != "cute-check-target"], stages)
        return module

    def to_code(
        self, module: ModuleOp, manifest: Manifest, emit: Emit, stages: list[Stage] | None
    ) -> tuple[CodeObject, ...]:
        """Compile base IR to PTX and cubin.  Modifies the module."""
        from cute_dialect.pipelines.runner import IR  # late: start-up

        if not is_available():
            raise LoweringError(f"error: {UpstreamMissing.HINT}")
        ir = IR(module, source_names=bool(self.located))
        with borrowed() as worker:
            self._run(ir, self._steps(base=True), stages, worker)
            if ir.upstream is None:
                return ()
            ptx = ir.upstream.ptx()
        return tuple(
            self._assemble(name, ptx[name], manifest["chip"], emit) for name in manifest["modules"] if name in ptx
        )

    def _run(self, ir: IR, steps: Sequence[Step], stages: list[Stage] | None, worker: Worker | None = None) -> None:
        from cute_dialect.pipelines.runner import Runner  # late: start-up

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
        if emit == "ptx":
            return CodeObject(module, ptx, None, None, "")
        try:
            done = assemble(ptx, chip, extra=self._ptxas)
        except PtxasMissing as e:
            if emit == "cubin":
                raise LoweringError(f"error: {e}") from e
            return CodeObject(module, ptx, None, None, f"not assembled: {e}\n")
        except PtxasError as e:
            raise LoweringError(f"{self.name}: error: {e}") from e
        self.tick("ptxas")
        return CodeObject(module, ptx, done.cubin, done.to_json(), done.report())


class _Keep:
    """An observer of the runner that times each pass and keeps the IR after it."""

    def __init__(self, work: Compilation, stages: list[Stage] | None):
        self._work = work
        self._stages = stages

    def before(self, step: Step, ir: IR) -> None:
        """Ignore the start of a pass."""

    def after(self, step: Step, ir: IR, ok: bool, seconds: float, verify_seconds: float) -> None:
        """Record the time, and keep the IR."""
        self._work.tick(step.name)
        wanted = self._work.located
        if ok and self._stages is not None and step.name != "emit-gpu-binary" and (not wanted or step.name in wanted):
            located = bool(wanted)
            generic = step.name == "cute-to-base" and not located
            self._stages.append(Stage(step.name, ir.text(generic=generic, debuginfo=located, local_scope=located)))
            self._work.tick("print")


def _through_upstream(text: str) -> str | None:
    """Parse base IR with upstream MLIR and return its generic form, or None on errors."""
    if not is_available() or text_overflow(text) is not None:
        return None
    try:
        with borrowed() as worker:
            return worker.module(text).text(generic=True)
    except UpstreamError:
        return None


def _has_cute(module: ModuleOp) -> bool:
    from cute_dialect.passes.check_target import name_error  # late: start-up

    # cute-to-base also lowers math.fma of 16-bit floats, which upstream would round twice.
    for op in module.walk():
        if op.name.startswith(("cute.", "cute_nvgpu.")) or op.name == "math.fma":
            return True
        types = [*op.result_types, *(a.type for r in op.regions for b in r.blocks for a in b.args)]
        if any(t.name.startswith("cute") for t in types):
            return True
        if name_error(op) is not None:  # cute-check-target reports the name; LLVM would abort.
            return True
    return False


def _flat(elements: Sequence[Element]) -> list[PassElement]:
    """Return the passes of a named pipeline, without its nesting in ``builtin.module``."""
    out: list[PassElement] = []
    for e in elements:
        out += [e] if isinstance(e, PassElement) else _flat(e.elements)
    return out


def text_of(module: ModuleOp, *, generic: bool = False, source_names: bool = False, debuginfo: bool = False) -> str:
    """Return a module as text; see :func:`cute_dialect.ir.printing.ir_text`."""
    from cute_dialect.ir.printing import ir_text  # late: start-up

    return ir_text(module, generic=generic, source_names=source_names, debuginfo=debuginfo)


class CompileRequest(NamedTuple):
    """A compilation; for the fields without a comment see :func:`cute_dialect.pipelines.compile`."""

    source: str | os.PathLike[str] | ModuleOp
    pipeline: str = "nvptx"
    chip: str | None = None
    features: str | None = None
    opt_level: int | None = None
    lineinfo: bool = False
    asserts: bool = True
    emit: Emit = "auto"
    filename: str | None = None
    keep_stages: bool = False
    save: str | os.PathLike[str] | None = None
    cache: bool = True
    text: str | None = None
    """A complete description of a module, for the cache key; without it, a module is not cached."""
    ptxas: Sequence[str] = ()
    """Further options of ptxas."""
    located: Collection[str] = ()
    """Names of the stages to keep in readable form, with the location of each op."""

    @property
    def options(self) -> dict[str, str]:
        """The options of the pipeline that are set, as strings."""
        given = {
            "chip": self.chip,
            "features": self.features,
            "O": None if self.opt_level is None else str(self.opt_level),
            "lineinfo": "true" if self.lineinfo else None,
            "asserts": None if self.asserts else "false",
        }
        return {k: v for k, v in given.items() if v is not None}

    @property
    def is_cached(self) -> bool:
        """True if the compile cache may have the module."""
        return self.cache and not self.keep_stages and self.save is None

    def given(self) -> tuple[str, str] | None:
        """Return the text and the name of the source; None for a module without ``text`` or an unreadable file."""
        source = self.source
        if self.text is not None:
            return self.text, self.filename or "-"
        if isinstance(source, str) and is_text(source):
            return source, self.filename or "-"
        if isinstance(source, (str, os.PathLike)):
            path = os.fspath(source)
            try:
                with open(path, encoding="utf-8") as f:
                    return f.read(), self.filename or path
            except (OSError, ValueError):  # unreadable, not UTF-8, or a NUL in the path
                return None
        return None

    def key_of(self, given: tuple[str, str]) -> str:
        """Return the key in the compile cache for the text and the name of the source.

        The name is part of it if line info or an assertion records it.
        """
        text, name = given
        options = repr(sorted(self.options.items()))
        parts = [self.pipeline, options, self.emit, *([repr(tuple(self.ptxas))] if self.ptxas else [])]
        is_named = "cf.assert" in text or any("lineinfo" in part for part in parts)
        return key_of([*parts, text, name] if is_named else [*parts, text])

    def key_of_text(self) -> str:
        """Return the key of a request whose source is a text."""
        given = self.given()
        assert given is not None
        return self.key_of(given)

    def check(self) -> None:
        """Check the types of the fields.  Raises :class:`LoweringError`, which names the field."""
        path = (str, os.PathLike)
        level, emit, source = self.opt_level, self.emit, self.source
        wanted: Sequence[tuple[str, bool, str]] = (
            ("source", isinstance(source, path) or hasattr(source, "walk"), "a text, a path or an xDSL module"),
            ("pipeline", _is_text(self.pipeline), "a text like 'nvptx=chip=sm_90a'"),
            ("chip", self.chip is None or _is_text(self.chip), "a text like 'sm_90a'"),
            ("features", self.features is None or _is_text(self.features), "a text like '+ptx83'"),
            ("opt_level", level is None or (type(level) is int and 0 <= level <= 3), "0, 1, 2 or 3"),
            ("lineinfo", _is_bool(self.lineinfo), "True or False"),
            ("asserts", _is_bool(self.asserts), "True or False"),
            ("emit", _is_text(emit) and emit in get_args(Emit), "one of 'auto', 'cubin', 'ptx', 'base'"),
            ("filename", self.filename is None or _is_text(self.filename), "a text"),
            ("keep_stages", _is_bool(self.keep_stages), "True or False"),
            ("save", self.save is None or isinstance(self.save, path), "the path of a folder"),  # pyright: ignore[reportUnnecessaryIsInstance]
            ("cache", _is_bool(self.cache), "True or False"),
        )
        for name, right, what in wanted:
            if not right:
                shown = repr(getattr(self, name))
                raise LoweringError(
                    f"error: {name}: expected {what}, got {shown if len(shown) <= 80 else shown[:77] + '...'}"
                )


def _is_text(x: object) -> bool:
    return isinstance(x, str)


def _is_bool(x: object) -> bool:
    return isinstance(x, bool)
