"""``cute-drop-asserts``: kernels without the assertions in them, for code that is to be fast rather than checked.

``cf.assert`` in a kernel costs a comparison and a branch, and what it compares.  Assertions of host functions stay:
the launcher decides them before it launches.

Before::

    %ok = arith.cmpi slt, %i, %n : i32
    cf.assert %ok, "i is beyond the end"

After::

    %ok = arith.cmpi slt, %i, %n : i32

What only the assertion used is taken out by ``base-prepare``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cute_dialect.ir.editing import all_ops
from cute_dialect.passes.base import Pass, PassContext

if TYPE_CHECKING:
    from xdsl.ir import Operation

_HELP = __doc__ or ""
"""The text of ``--help``: in the class, ``__doc__`` would be its own docstring."""


class DropAssertsPass(Pass):
    """Take the assertions out of kernels."""

    name = "cute-drop-asserts"
    summary = "take cf.assert out of kernels"
    description = _HELP
    anchor = ("gpu.module",)

    def run(self, op: Operation, ctx: PassContext) -> None:
        for inner in all_ops(op):
            if inner.name == "cf.assert":
                inner.detach()
                inner.erase()
