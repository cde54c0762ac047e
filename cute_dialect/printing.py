"""Printing IR: one function, so that every tool prints alike.

The text is xDSL's, with the prefix of an op's name left out where upstream MLIR leaves it out: ``module``, and
``return`` and ``call`` right inside a ``func.func``.
"""

from __future__ import annotations

from io import StringIO

from xdsl.ir import Operation
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove


class IRPrinter(Printer):
    """xDSL's printer, op names shortened as upstream does in custom form."""

    def print_op(self, op: Operation) -> None:
        """Print an op, its name shortened if the op around it allows."""
        if self.print_generic_format or type(op).print is Operation.print or not _elided(op):
            super().print_op(op)
            return
        scope = bool(op.get_traits_of_type(IsolatedFromAbove))
        self._print_results(op)
        if scope:
            self.enter_scope()
        self.print_string(op.name.split(".", 1)[1])
        op.print(self)
        if self.print_debuginfo:
            self.print_string(" ")
            self.print_attribute(op.location)
        if scope:
            self.exit_scope()


def _elided(op: Operation) -> bool:
    """Whether upstream leaves out the dialect of this op's name here."""
    parent = op.parent_op()
    if op.name.startswith("builtin."):
        return parent is None or parent.name == "builtin.module"
    return parent is not None and parent.name == "func.func" and op.name.startswith("func.")


def ir_text(op: Operation, *, generic: bool = False, debuginfo: bool = False) -> str:
    """The text of an op; ends with a newline.  ``debuginfo`` adds ``loc(…)`` to every op and block argument."""
    out = StringIO()
    IRPrinter(stream=out, print_generic_format=generic, print_debuginfo=debuginfo).print_op(op)
    out.write("\n")
    return out.getvalue()
