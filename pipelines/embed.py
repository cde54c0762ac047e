"""Lowering inside another compiler: cute ops in a module of upstream MLIR's Python bindings.

The module holds cute ops in generic form, which upstream treats as ops of an unregistered dialect::

    context.allow_unregistered_dialects = True
    module = ir.Module.parse(text, context)
    lowered = lower(module)                                    # same context; no cute ops or types are left

    passes = PassManager("builtin.module", context)            # or, in place, as a step of an upstream pipeline
    passes.add(as_upstream_pass("base", context), name="cute")
    passes.add("canonicalize")
    passes.run(module.operation)

The IR is converted to text and back.  Each resulting op keeps the upstream location of the op that it was lowered
from, and errors carry the location of their op.
"""

# The mlir package's stubs are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import FileLineColLoc

from cute_dialect.ir.context import make_context
from cute_dialect.ir.diagnostics import Diagnostic, DiagnosticEngine, Position, Source, render
from cute_dialect.ir.parsing import op_name, parse_module
from cute_dialect.ir.verifier import verify
from cute_dialect.passes.base import PassContext, run_pass
from cute_dialect.passes.pipeline_text import PipelineTextError, parse_pipeline
from cute_dialect.passes.strong_atomics import StrongAtomicsPass
from cute_dialect.pipelines.handoff import handoff_text
from cute_dialect.pipelines.registry import PIPELINES, PipelineError, named_pipeline
from cute_dialect.pipelines.runner import IR, PassCrash, ResolveError, Runner, Step, is_cute, resolve
from cute_dialect.pipelines.upstream import UpstreamError, UpstreamModule
from cute_dialect.pipelines.worker import borrowed
from cute_dialect.upstream.registry import BASE_DIALECTS

if TYPE_CHECKING:  # pragma: no cover
    import mlir.ir as ir
    from mlir.passmanager import ExternalPass
    from xdsl.ir import Attribute

__all__ = ["EmbedError", "as_upstream_pass", "load_dialects", "lower"]

_TEXT = "<module in upstream MLIR>"
"""File name of the intermediate text."""

_OP = re.compile(r'\s*(?:%[\w$.:-]+(?:, %[\w$.:-]+)* = )?"[\w$.-]+"\(')
"""Matches a line that starts an op in generic form."""

_FILE = re.compile(r'"((?:[^"\\]|\\.)*)":(\d+):(\d+)')


class EmbedError(Exception):
    """The module cannot be lowered.

    ``diagnostics`` are the errors, each with the position of its op in the caller's module.  ``message``,
    ``filename``, ``line`` and ``col`` (0: unknown) belong to the first one.
    """

    def __init__(self, diagnostics: Sequence[Diagnostic]):
        super().__init__("".join(render(d) for d in diagnostics).rstrip("\n"))
        self.diagnostics = tuple(diagnostics)
        self.message = diagnostics[0].message
        self.filename, self.line, self.col, _ = diagnostics[0].position


def lower(module: ir.Module, pipeline: str | Sequence[str] = "base") -> ir.Module:
    """Return a lowered copy of a module in the same context; ``module`` itself does not change.

    ``pipeline`` is a named pipeline with options (``base``, ``host``, ``nvptx=chip=sm_90a``), a textual pipeline
    (``builtin.module(…)``), or a list of passes with options (``["cute-expand-ops", "cute-to-base"]``).

    Raises :class:`EmbedError` for an unknown pass, invalid cute IR, or an error of a pass.

    >>> m = ir.Module.parse('''%s = "cute.static"() : () -> !cute.shape<"(4,8)">
    ... %n = "cute.size"(%s) : (!cute.shape<"(4,8)">) -> !cute.int_tuple<"32">''', context)      # doctest: +SKIP
    >>> lower(m, ["cute-fold-static"])                                                           # doctest: +SKIP
    """
    return _lower(module.operation, _steps(pipeline))


def as_upstream_pass(
    pipeline: str | Sequence[str], context: ir.Context | None = None
) -> Callable[[ir.Operation, ExternalPass], None]:
    """Wrap passes of this project as one module pass for ``PassManager.add`` of upstream.

    ``pipeline`` is as for :func:`lower`, or the name of a pass (``cute-to-base``).  ``context`` is the context in
    which the pass will run; default: the current one.  An error is emitted at its op, and the pass fails.  Raises
    :class:`EmbedError` for an unknown pass.
    """
    import mlir.ir as ir

    steps = _steps(pipeline)
    if context is None:
        context = ir.Context.current
    if context is None:  # some builds return None without a current context, others raise ValueError
        raise ValueError("as_upstream_pass: no context is given, and none is current; pass context=")
    load_dialects(context)

    def run(op: ir.Operation, external: ExternalPass) -> None:
        try:
            if op.name != "builtin.module":
                raise _error(f"this pass runs on builtin.module, got '{op.name}'", str(op.location))
            _replace(op, _lower(op, steps))
        except EmbedError as e:
            for d in e.diagnostics:
                _emit(d, op.context)
            external.signal_pass_failure()
        except PassCrash as e:
            op.location.emit_error(f"internal error in pass '{e.pass_name}': {e.__cause__}")
            external.signal_pass_failure()

    run.__name__ = pipeline if isinstance(pipeline, str) else ",".join(pipeline)
    return run


def load_dialects(context: ir.Context) -> None:
    """Load the dialects that lowered modules use, because MLIR forbids loading dialects while passes run."""
    for name in BASE_DIALECTS:
        context.get_dialect_descriptor(name)


# ------------------------------------------------------------------------------------------------------------- passes


def _steps(pipeline: str | Sequence[str]) -> list[Step]:
    from cute_dialect.passes.outside import PassTable  # late: start-up

    try:
        if not isinstance(pipeline, str):
            return resolve(parse_pipeline(",".join(pipeline)))
        name = pipeline.partition("{")[0]
        if "(" in pipeline or (name not in PIPELINES and PassTable().get(name) is not None):
            return resolve(parse_pipeline(pipeline))
        row, options = named_pipeline(pipeline)
        return resolve(row.elements(options))
    except (PipelineError, PipelineTextError, ResolveError) as e:
        raise _error(str(e)) from e


def _lower(op: ir.Operation, steps: Sequence[Step]) -> ir.Module:
    import mlir.ir as ir

    here = next((i for i, s in enumerate(steps) if s.info.upstream), len(steps))
    if not any(s.info.scope == "cute" or s.info.origin for s in steps[:here]):
        here = 0  # upstream can run these passes itself
    text = _Crossing(op).run(steps[:here], steps[here:]) if here else _generic(op)
    try:
        lowered = ir.Module.parse(text, op.context)
    except ir.MLIRError as e:
        raise _from_mlir(e) from e
    return _run_upstream(lowered, steps[here:])


def _run_upstream(module: ir.Module, steps: Sequence[Step]) -> ir.Module:
    import mlir.ir as ir

    context = module.context
    try:
        for step in steps:
            upstream = UpstreamModule(context, module, _TEXT)
            if step.path:
                upstream.run_pipeline(str(step))
            elif step.name == "emit-gpu-binary":  # LLVM may abort the process here
                with borrowed() as worker:
                    alone = worker.module(upstream.text(generic=True, debuginfo=True), _TEXT)
                    alone.run(step.name, dict(step.options))
                    module = ir.Module.parse(alone.text(generic=True, debuginfo=True), context)
            else:
                upstream.run(step.name, dict(step.options))
    except UpstreamError as e:
        position = Position("" if e.filename == _TEXT else e.filename, e.line, e.col)
        raise EmbedError([Diagnostic("error", e.message, position)]) from e
    return module


def _replace(op: ir.Operation, lowered: ir.Module) -> None:
    """Replace the contents of a module by those of another one."""
    block = op.regions[0].blocks[0]
    for old in reversed(list(block.operations)):
        old.operation.erase()
    for new in list(lowered.body.operations):
        block.append(new)
    attributes = lowered.operation.attributes
    for name in list(attributes):
        op.attributes[name] = attributes[name]


# ----------------------------------------------------------------------------------------------------------- round trip


class _Crossing:
    """Text of an upstream module, with the location of the op on each line."""

    def __init__(self, op: ir.Operation):
        import mlir.ir as ir

        self._source = Source(_TEXT, _generic(op))
        locations: list[str] = []

        def note(op: ir.Operation) -> ir.WalkResult:
            locations.append(str(op.location))
            return ir.WalkResult.ADVANCE

        op.walk(note, ir.WalkOrder.PRE_ORDER)
        self._of_line: list[str] = ["loc(unknown)"]
        """Line -> location, from line 1; a line without an op has the location of the op before it"""
        left = iter(locations)
        for line in self._source.text.split("\n"):
            self._of_line.append(next(left, "loc(unknown)") if _OP.match(line) else self._of_line[-1])

    def run(self, steps: Sequence[Step], following: Sequence[Step]) -> str:
        """Run the passes on the text and return the resulting text.  Raises EmbedError."""
        engine = DiagnosticEngine(file=_TEXT)
        context = make_context("all", allow_unregistered=True)
        module = parse_module(context, self._source, engine)
        ir = IR(module)
        if module is None or not verify(module, engine) or not Runner(context, engine).run(ir, steps):
            raise EmbedError([self._relocated(d) for d in engine.seen if d.severity == "error"])
        assert ir.module is not None
        left = next((op for op in ir.module.walk() if is_cute(op)), None) if following else None
        if left is not None:
            engine.error(
                f"pass '{following[0].name}' runs in upstream MLIR, which does not know '{op_name(left)}'"
                + ("" if left.name.startswith("cute") else " with cute types")
                + ": lower it first, with cute-to-base",
                left,
            )
            raise EmbedError([self._relocated(engine.seen[-1])])
        # LLVM compiles the result, and would otherwise weaken its atomics.
        run_pass(StrongAtomicsPass(), ir.module, PassContext(context))
        return handoff_text(ir.module, location_texts=self._locations(op.location for op in ir.module.walk()))

    def _locations(self, used: Iterable[Attribute]) -> dict[Attribute, str]:
        """Map each location in the text to the original location."""
        places = [at for at in used if isinstance(at, FileLineColLoc) and at.filename.data == _TEXT]
        return {at: self._of_line[at.line.data] for at in places}

    def _relocated(self, d: Diagnostic) -> Diagnostic:
        """Move a diagnostic from the text to the module."""
        position = d.position
        if position.file == _TEXT:
            position = _position(self._of_line[position.line])
        notes = tuple(self._relocated(n) for n in d.notes if not n.context)
        return d._replace(position=position, notes=notes)


def _generic(op: ir.Operation) -> str:
    """Print the generic form, with full types and attributes, one op per line, without locations."""
    return str(op.get_asm(print_generic_op_form=True, use_local_scope=True, large_elements_limit=None))


def _position(location: str) -> Position:
    """Return the first file, line and column in a location."""
    found = _FILE.search(location)
    return Position(found.group(1), int(found.group(2)), int(found.group(3))) if found else Position("<unknown>")


def _error(message: str, location: str = "") -> EmbedError:
    return EmbedError([Diagnostic("error", message, _position(location))])


def _from_mlir(e: Exception) -> EmbedError:
    diagnostics = getattr(e, "error_diagnostics", ())
    found = [Diagnostic("error", d.message, _position(str(d.location))) for d in diagnostics]
    return EmbedError(found or [Diagnostic("error", str(e), Position("<unknown>"))])


def _emit(d: Diagnostic, context: ir.Context) -> None:
    import mlir.ir as ir

    file, line, col, _ = d.position
    with context:
        at = ir.Location.file(file, line, col) if line else ir.Location.unknown()
        at.emit_error(d.message)
