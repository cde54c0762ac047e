"""Pass execution on a module, before and after the hand-off to upstream MLIR.

A pipeline is a list of elements (:mod:`cute_dialect.passes.pipeline_text`).  :func:`resolve` checks the whole
pipeline and returns its steps; :class:`Runner` runs them::

    steps = resolve(parse_pipeline("builtin.module(cute-fold-static,cute-to-base,base-prepare)"))
    ir = IR(module)
    ok = Runner(context, engine).run(ir, steps)
    print(ir.text())

The IR starts as an xDSL module.  The first step that only upstream can run causes the hand-off: the module is printed
with its locations and parsed by upstream MLIR in another process, where it stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from time import perf_counter
from typing import TYPE_CHECKING, Protocol

from xdsl.context import Context
from xdsl.dialects.builtin import FunctionType, ModuleOp
from xdsl.ir import Attribute, Operation
from xdsl.utils.exceptions import DiagnosticException

from cute_dialect.algebra.leaf import AlgebraError
from cute_dialect.ir.diagnostics import DiagnosticEngine, Position, Source, did_you_mean, limit_message
from cute_dialect.ir.parsing import one_line, op_name
from cute_dialect.ir.printing import ir_text
from cute_dialect.ir.verifier import VerifiedForms, verify
from cute_dialect.passes.base import Pass, PassContext, PassError, PassOptionError, anchored, run_pass
from cute_dialect.passes.outside import OutsideError, PassTable
from cute_dialect.passes.pipeline_text import Element, NestElement, PassElement, options_text
from cute_dialect.passes.registry import PassInfo
from cute_dialect.pipelines.handoff import LINE_INFO_PASS, CallSites, handoff_text
from cute_dialect.pipelines.upstream import UpstreamError

if TYPE_CHECKING:
    from cute_dialect.pipelines.validation import Validator
    from cute_dialect.pipelines.worker import Worker, WorkerModule

HANDED_OVER = "<IR handed to upstream MLIR>"
"""File name in errors about the text of the hand-off."""


class ResolveError(ValueError):
    """A pipeline is invalid; ``element`` is its first invalid element."""

    def __init__(self, message: str, element: Element):
        super().__init__(message)
        self.message = message
        self.element = element


class PassCrash(Exception):
    """A pass raised an unexpected exception, which is a bug.

    The cause is chained; ``steps`` counts the started steps.
    """

    def __init__(self, pass_name: str, steps: int):
        super().__init__(pass_name)
        self.pass_name = pass_name
        self.steps = steps


class Step:
    """One pass to run.

    ``path`` names the nested ops that it runs on; ``instance`` is None for a pass of upstream.
    """

    def __init__(self, info: PassInfo, options: Mapping[str, str], path: tuple[str, ...], instance: Pass | None):
        self.info = info
        self.options = options
        self.path = path
        self.instance = instance

    @property
    def name(self) -> str:
        return self.info.name

    def __str__(self) -> str:
        """Return the step as a textual pipeline."""
        text = str(PassElement(self.name, self.options))
        for op in reversed(("builtin.module", *self.path)):
            text = f"{op}({text})"
        return text


class IR:
    """A module: an xDSL module, or a module of upstream MLIR after the hand-off."""

    def __init__(
        self,
        module: ModuleOp | None = None,
        upstream: WorkerModule | None = None,
        *,
        source_names: bool = False,
    ):
        self.module = module
        self.upstream = upstream
        self.source_names = source_names

    def text(self, *, generic: bool = False, debuginfo: bool = False, local_scope: bool = False) -> str:
        if self.upstream is not None:
            return self.upstream.text(generic=generic, debuginfo=debuginfo, local_scope=local_scope)
        assert self.module is not None
        return ir_text(self.module, generic=generic, debuginfo=debuginfo, source_names=self.source_names)


class Observer(Protocol):
    """An observer of a run, called around each step, e.g. to print IR or measure time."""

    def before(self, step: Step, ir: IR) -> None:
        """Called before a step runs."""
        ...

    def after(self, step: Step, ir: IR, ok: bool, seconds: float, verify_seconds: float) -> None:
        """Called after a step has run; ``seconds`` excludes the verifier."""
        ...


def resolve(elements: Iterable[Element], dialects: str = "all", passes: PassTable | None = None) -> list[Step]:
    """Return the steps of a pipeline.

    Raises ResolveError for an unknown pass, a wrong option or nesting, or a pass of this project after one of
    upstream.
    """
    steps: list[Step] = []
    _collect(elements, (), dialects, passes or PassTable(), steps)
    return steps


def _collect(
    elements: Iterable[Element], path: tuple[str, ...], dialects: str, passes: PassTable, steps: list[Step]
) -> None:
    for element in elements:
        if isinstance(element, NestElement):
            inner = path if element.op_name == "builtin.module" else (*path, element.op_name)
            if "." not in element.op_name and passes.get(element.op_name) is not None:
                raise ResolveError(f"'{element.op_name}' is a pass: write its options in braces", element)
            _collect(element.elements, inner, dialects, passes, steps)
            continue
        try:
            info = passes.get(element.name)
            if info is None:
                raise ResolveError(passes.unknown(element.name, dialects), element)
        except OutsideError as e:
            raise ResolveError(str(e), element) from None
        if not info.goes_with(dialects):
            raise ResolveError(f"pass '{element.name}' is not available with --dialects={dialects}", element)
        if info.upstream and info.anchor and path:
            raise ResolveError(f"pass '{element.name}' runs on {info.anchor[0]}, not on {path[-1]}", element)
        after = next((s.name for s in steps if s.info.upstream), None)
        if not info.upstream and not info.both and after is not None:
            raise ResolveError(
                f"pass '{element.name}' cannot run after '{after}', which hands the IR over to upstream MLIR; "
                f"run '{element.name}' first",
                element,
            )
        steps.append(Step(info, element.options, path, _instance(element, info, passes)))


def _instance(element: PassElement, info: PassInfo, passes: PassTable) -> Pass | None:
    if info.upstream:
        for key in element.options:
            if info.options is not None and key not in info.options:
                names = ", ".join(info.options) or "none"
                raise ResolveError(
                    f"pass '{info.name}' has no option '{key}'{did_you_mean(key, info.options)} (its options: {names})",
                    element,
                )
        return None
    try:
        return passes.load(info).from_text(element.options)
    except (PassOptionError, OutsideError) as e:
        raise ResolveError(str(e), element) from None


class Runner:
    """Runs steps and reports errors to ``engine``.

    Args:
        verify_each: run the verifier after each pass.
        legality: check that only ops which are legal after a pass are left.
        sources: receives the text of the hand-off, so that errors can quote it.
        validator: runs each function before and after each pass of this project, and compares the results.
        worker: runs the passes of upstream; may be omitted if there are none.
    """

    def __init__(
        self,
        context: Context,
        engine: DiagnosticEngine,
        *,
        verify_each: bool = True,
        legality: bool = False,
        observers: Sequence[Observer] = (),
        sources: dict[str, Source] | None = None,
        validator: Validator | None = None,
        worker: Worker | None = None,
    ):
        self.pass_context = PassContext(context, engine)
        self._engine = engine
        self._verify_each = verify_each
        self._legality = legality
        self._observers = observers
        self._sources = sources
        self._validator = validator
        self.known = VerifiedForms()
        """Ops that the verifier has already accepted."""
        self._worker = worker
        self._call_sites: CallSites | None = None
        self.hand_over_seconds = 0.0
        """Seconds that the hand-off to upstream took, including the import of MLIR."""

    def run(self, ir: IR, steps: Sequence[Step]) -> bool:
        """Run the steps in order until one fails; return True if all succeeded.  Raises PassCrash."""
        self._call_sites = CallSites() if any(step.name == LINE_INFO_PASS for step in steps) else None
        for number, step in enumerate(steps, 1):
            for observer in self._observers:
                observer.before(step, ir)
            if self._validator is not None and ir.module is not None and step.instance is not None:
                self._validator.before(ir.module)
            handed = ir.upstream is not None
            counted = dict(self.pass_context.statistics)
            start = perf_counter()
            try:
                ok = self._step(ir, step)
                same = (
                    step.instance is not None
                    and step.instance.counts_changes
                    and counted == self.pass_context.statistics
                )
                middle = perf_counter()
                ok = ok and self._check(
                    ir, step, verified=same or (ir.module is not None and _is_handed(steps[number:]))
                )
            except Exception as e:
                message = limit_message(e)
                if message is None:
                    raise PassCrash(step.name, number) from e
                self._engine.error(f"{message}, in pass '{step.name}'", ir.module)
                ok, middle = False, perf_counter()
            end = perf_counter()
            seconds = middle - start - (self.hand_over_seconds if ir.upstream is not None and not handed else 0.0)
            for observer in self._observers:
                observer.after(step, ir, ok, seconds, end - middle)
            if not ok:
                return False
        return True

    def _step(self, ir: IR, step: Step) -> bool:
        if ir.upstream is not None or step.instance is None:
            return self._upstream_step(ir, step)
        assert ir.module is not None
        before = self._engine.errors
        for target in _targets(ir.module, step):
            context = (self._engine.note(f"while running pass '{step.name}'", target, context=True),)
            try:
                run_pass(step.instance, target, self.pass_context)
            except PassError as e:
                self._engine.error(one_line(e.message), e.op if e.op is not None else target, (*e.notes, *context))
                return False
            except (DiagnosticException, AlgebraError) as e:
                self._engine.error(one_line(str(e)), target, context)
                return False
        return self._engine.errors == before

    def _check(self, ir: IR, step: Step, *, verified: bool) -> bool:
        if ir.module is None or step.instance is None or ir.upstream is not None:
            return True
        if self._verify_each and not verified and not verify(ir.module, self._engine, show_op=True, known=self.known):
            return False
        return (not self._legality or self._legal(ir.module, step)) and (
            self._validator is None or self._validate(self._validator, ir.module, step)
        )

    def _legal(self, module: ModuleOp, step: Step) -> bool:
        assert step.instance is not None
        shown = 0
        for op in step.instance.legal_after(module):
            self._engine.error(f"'{op_name(op)}' op is not legal after pass '{step.name}'", op)
            shown += 1
            if shown == 10:
                break
        return shown == 0

    def _validate(self, validator: Validator, module: ModuleOp, step: Step) -> bool:
        quiet = PassContext(self.pass_context.context)

        def rerun(other: ModuleOp) -> None:
            self._apply(other, step, quiet)

        return validator.after(step.name, module, rerun, self._engine)

    def _apply(self, module: ModuleOp, step: Step, context: PassContext) -> None:
        """Run a step of this project.  Raises PassError."""
        assert step.instance is not None
        for target in _targets(module, step):
            run_pass(step.instance, target, context)

    # ------------------------------------------------------------------------------------------------------- upstream

    def _upstream_step(self, ir: IR, step: Step) -> bool:
        if ir.upstream is None and not self._hand_over(ir, step):
            return False
        assert ir.upstream is not None
        try:
            if step.path:
                ir.upstream.run_pipeline(str(step))
            else:
                ir.upstream.run(step.name, dict(step.options))
        except UpstreamError as e:
            self.report(e, step.name)
            return False
        return True

    def _hand_over(self, ir: IR, step: Step) -> bool:
        assert ir.module is not None and self._worker is not None
        left = first_cute(ir.module)
        if left is not None:
            self._engine.error(
                f"pass '{step.name}' runs in upstream MLIR, which does not know '{op_name(left)}'"
                + ("" if left.name.startswith("cute") else " with cute types")
                + ": lower it first, with cute-to-base",
                left,
            )
            return False
        start = perf_counter()
        text = handoff_text(ir.module, call_sites=self._call_sites)
        if self._sources is not None:
            self._sources[HANDED_OVER] = Source(HANDED_OVER, text)
        try:
            ir.upstream = self._worker.module(text, HANDED_OVER, self._call_sites)
        except UpstreamError as e:
            self.report(e, step.name)
            return False
        ir.module = None
        self.hand_over_seconds = perf_counter() - start
        return True

    def report(self, error: UpstreamError, pass_name: str, line_offset: int = 0) -> None:
        """Report an error of upstream; a position in the handed-over text is mapped back to the source."""
        at = Position(error.filename, error.line + line_offset, error.col) if error.line > 0 else None
        if at is not None and error.filename == HANDED_OVER:
            handed = self._sources.get(HANDED_OVER) if self._sources is not None else None
            found = _LOC.search((handed.line(error.line) if handed is not None else None) or "")
            if found is not None:
                at = Position(found.group(1), int(found.group(2)), int(found.group(3)))
            elif handed is None:
                at = None
        if at is not None and self._call_sites is not None:
            at = at._replace(file=self._call_sites.plain(at.file))
        note = self._engine.note(f"while running pass '{pass_name}' in upstream MLIR", at, context=True)
        self._engine.error(one_line(error.message), at, (note,))


def _is_handed(following: Sequence[Step]) -> bool:
    """Return True if the next step is the hand-off, apart from passes on base IR.

    Upstream verifies the module then, so verification here would be redundant.
    """
    following = [step for step in following if step.instance is None or step.info.scope != "base"]
    return bool(following) and following[0].instance is None


def _targets(module: ModuleOp, step: Step) -> list[Operation]:
    """Return the ops that a step runs on."""
    targets: list[Operation] = [module]
    for name in step.path:
        targets = [found for target in targets for found in anchored(target, (name,))]
    return targets


_LOC = re.compile(r'loc\((?:"[^"\\]*"\()?"([^"\\]*)":(\d+):(\d+)\)+\s*$')
"""Matches the location at the end of a line of the handed-over text."""


def is_cute(op: Operation) -> bool:
    """Return True if an op belongs to a cute dialect or has values of its types."""
    if op.name.startswith(("cute.", "cute_nvgpu.")):
        return True
    types: list[Attribute] = [*op.result_types, *op.operand_types]
    types += [a.type for r in op.regions for b in r.blocks for a in b.args]
    for attribute in op.properties.values():
        types += (
            [attribute, *attribute.inputs, *attribute.outputs] if isinstance(attribute, FunctionType) else [attribute]
        )
    return any(t.name.startswith("cute") for t in types)


def first_cute(module: ModuleOp) -> Operation | None:
    """Return the first op for which :func:`is_cute` holds.

    A cheaper search first rules out modules without such an op.  It skips operands, because their types also occur on
    results or block arguments.
    """
    if not _holds_cute(module, set()):
        return None
    return next((op for op in module.walk() if is_cute(op)), None)


def _holds_cute(op: Operation, plain: set[int]) -> bool:
    """Return True if an op or a nested op is a cute op, or has a cute attribute, result or block argument.

    ``plain`` holds the ids of types known not to be cute types.
    """
    if op.name.startswith("cute"):
        return True
    has: list[Attribute] = list(op.properties.values())
    for result in op.results:
        has.append(result.type)
    for region in op.regions:
        for block in region.blocks:
            for argument in block.args:
                has.append(argument.type)
            inner = block.first_op
            while inner is not None:
                if _holds_cute(inner, plain):
                    return True
                inner = inner.next_op
    for attribute in has:
        if id(attribute) not in plain:
            parts = (*attribute.inputs, *attribute.outputs) if isinstance(attribute, FunctionType) else (attribute,)
            if any(part.name.startswith("cute") for part in parts):
                return True
            plain.add(id(attribute))
    return False


def steps_text(steps: Sequence[Step]) -> str:
    """Return the steps as command line flags, for a command that reproduces a run."""
    out: list[str] = []
    for step in steps:
        if step.path:
            return f"--pass-pipeline='{pipeline_of(steps)}'"
        out.append(f"--{step.name}" + (f"={options_text(step.options)}" if step.options else ""))
    return " ".join(f"'{flag}'" if " " in flag else flag for flag in out)


def pipeline_of(steps: Sequence[Step]) -> str:
    """Return the steps as a textual pipeline; adjacent steps on the same ops share one nest."""
    parts: list[str] = []
    for path, group in groupby(steps, key=lambda s: s.path):
        text = ",".join(str(PassElement(step.name, step.options)) for step in group)
        for op in reversed(path):
            text = f"{op}({text})"
        parts.append(text)
    return f"builtin.module({','.join(parts)})"
