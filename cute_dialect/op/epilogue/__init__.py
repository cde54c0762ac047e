"""Epilogues of a GEMM as Python functions: ``op.epilogue.trace`` and the functions that epilogues call.

    from cute_dialect.op.epilogue import relu

    def residual(accum, bias, skip):
        return relu(accum + bias) + skip

    d = op.mm(a, b, epilogue=residual, args={"bias": v, "skip": x})

The stub ``__init__.pyi`` lists the public names.  Each one is imported on first use.
"""

from __future__ import annotations

from cute_dialect.exports import exports

__getattr__, __dir__ = exports(__name__)
