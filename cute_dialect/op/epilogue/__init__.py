"""What becomes of the sums of a product, as a Python function: ``op.epilogue.trace``, and the functions that it uses.

    from cute_dialect.op.epilogue import relu

    def residual(accum, bias, skip):
        return relu(accum + bias) + skip

    d = op.mm(a, b, epilogue=residual, args={"bias": v, "skip": x})

The public names stand in the stub beside this file; each is imported when it is first used.
"""

from __future__ import annotations

from cute_dialect.exports import exports

__getattr__, __dir__ = exports(__name__)
