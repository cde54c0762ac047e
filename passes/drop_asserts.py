"""``cute-drop-asserts``: remove the assertions from kernels, for speed.

``cf.assert`` in a kernel costs a comparison, a branch, and the computation of its condition.  Assertions in host
functions stay; the launcher evaluates them before the launch.

Before::

    %ok = arith.cmpi slt, %i, %n : i32
    cf.assert %ok, "i is beyond the end"

After::

    %ok = arith.cmpi slt, %i, %n : i32

``base-prepare`` removes the unused condition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cute_dialect.ir.editing import all_ops
from cute_dialect.passes.base import Pass, PassContext

if TYPE_CHECKING:
    from xdsl.ir import Operation

_HELP = __doc__ or ""
"""Text of ``--help``: inside the class, ``__doc__`` would be the docstring of the class."""


class DropAssertsPass(Pass):
    """Remove the assertions from kernels."""

    name = "cute-drop-asserts"
    summary = "remove cf.assert from kernels"
    scope = "base"
    description = _HELP
    anchor = ("gpu.module",)

    def run(self, op: Operation, ctx: PassContext) -> None:
        for inner in all_ops(op):
            if inner.name == "cf.assert":
                inner.detach()
                inner.erase()
