"""``cute-opt --validate``: check that each pass preserves the results of the functions in a file.

The validator keeps a copy of the module before a pass of this project.  After the pass it runs both versions on the
same random numbers (:mod:`cute_dialect.interp.validation`).  It reports an error at the first op whose result differs::

    a.mlir:4:8: error: pass 'cute-expand-ops' changes what @f does: 'cute.size' gives 13, expected 42,
    for argument #0 = (7,6)

Kernels cannot be compared, because nothing here calls them.  The same holds for functions with ops that need a GPU or
memory.  One remark reports each of them.  Passes of upstream MLIR are not checked.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation

from cute_dialect.interp.validation.validate import ValidationFailure, validation_report
from cute_dialect.ir.diagnostics import DiagnosticEngine
from cute_dialect.passes.base import PassError

SAMPLES = 20
"""Number of inputs for each function."""


class ValidateOptionError(ValueError):
    """The value of ``--validate`` is invalid."""


class Validator:
    """Compares a module before and after each pass, and reports differences to the engine."""

    def __init__(self, samples: int = SAMPLES, seed: int = 0):
        self._samples = samples
        self._seed = seed
        self._before: ModuleOp | None = None
        self._remarked: set[str] = set()

    @classmethod
    def from_text(cls, text: str) -> Validator:
        """Parse ``samples=N,seed=S``; each part is optional.  Raises ValidateOptionError.

        >>> Validator.from_text("samples=5")._samples
        5
        """
        values = {"samples": SAMPLES, "seed": 0}
        for part in text.split(",") if text else ():
            key, _, value = part.partition("=")
            if key not in values or not re.fullmatch(r"\d{1,9}", value) or (key == "samples" and not int(value)):
                raise ValidateOptionError(f"expected samples=N,seed=S with numbers (N from 1), got '{text}'")
            values[key] = int(value)
        return cls(values["samples"], values["seed"])

    def before(self, module: ModuleOp) -> None:
        """Keep a copy of the module before a pass."""
        self._before = module.clone()
        for old, new in zip(module.walk(), self._before.walk(), strict=True):
            new.location = old.location

    def after(self, name: str, module: ModuleOp, rerun: Callable[[ModuleOp], None], engine: DiagnosticEngine) -> bool:
        """Compare after pass ``name``; ``rerun`` applies it to another module.

        Return True if there is no difference.
        """
        before = self._before
        assert before is not None
        self._before = None
        try:
            report = validation_report(before, module, self._samples, self._seed, rerun)
        except PassError:  # the pass rejects part of the program, so the differing op is not searched for
            report = validation_report(before, module, self._samples, self._seed)
        functions = {_name(op): op for op in before.walk() if op.name in ("func.func", "gpu.func")}
        for function, reason in report.skipped.items():
            self._remark(engine, functions[function], f"@{function} is not validated: {reason}")
        for function, op in functions.items():
            if op.name == "gpu.func":
                self._remark(engine, op, f"@{function} is not validated: a kernel needs memory and threads to run")
        if report.failure is None:
            return True
        failure = report.failure
        engine.error(_message(name, failure), failure.op or functions[failure.function])
        return False

    def _remark(self, engine: DiagnosticEngine, op: Operation, message: str) -> None:
        if message not in self._remarked:
            self._remarked.add(message)
            engine.remark(message, op)


def _message(name: str, failure: ValidationFailure) -> str:
    inputs = ", ".join(f"argument #{i} = {a}" for i, a in enumerate(failure.arguments)) or "no argument"
    what = failure.message
    if failure.op is not None and failure.gives:
        what = f"'{failure.op.name}' gives {failure.gives}"
    return f"pass '{name}' changes what @{failure.function} does: {what}, for {inputs}"


def _name(op: Operation) -> str:
    name = op.properties.get("sym_name", op.attributes.get("sym_name"))
    return name.data if isinstance(name, StringAttr) else ""
