"""Gated activations of halves, ``op.gated``, with the gradients of both halves from one kernel."""

# torch is not installed where types are checked; arrays may belong to any library.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from cute_dialect.kernels.elementwise.graph import elementwise_text
from cute_dialect.kernels.rows.config import BITS
from cute_dialect.op.arrays.library import call_operator
from cute_dialect.op.errors import ShapeError, UnsupportedError
from cute_dialect.op.execute.array_call import RowCall, RowKernel
from cute_dialect.op.execute.call_cache import KnownCalls
from cute_dialect.op.execute.recording import needs_gradients
from cute_dialect.op.keywords import check_keywords
from cute_dialect.op.problems.rows import check_activation, checked_plan

if TYPE_CHECKING:  # pragma: no cover
    from typing import Unpack

    from cute_dialect.op.signature_types import Array, Interpreted
    from cute_dialect.runtime.arrays import ArrayView

_KNOWN, _KNOWN_GRADIENTS = KnownCalls(tf32=False), KnownCalls(tf32=False)
"""Cached calls."""


def gated(
    x: Array, activation: str = "silu", *, halves: bool = True, device: object = None, stream: object = None,
    **run: Unpack[Interpreted],
) -> Array:  # fmt: skip
    """Return ``f(a) * b``, where ``a`` and ``b`` are the halves of each row of ``x``.

    It is SwiGLU with ``silu``, GeGLU with ``gelu``.  It is computed in f32 and rounded once.

    Args:
        x: (…, 2 N), f16, bf16 or f32.  The result has shape (…, N).
        activation: f: silu, gelu, gelu_tanh, relu or sigmoid.
        halves: must be True: ``a`` is the first half of a row and ``b`` the second one.
        device, stream, run: as in :func:`cute_dialect.op.mm`.

    Raises:
        OpError: if the arguments are not supported.
    """
    usual = device is None and stream is None and not run and halves is True and not _KNOWN.is_traced()
    if usual:
        done = _KNOWN.again(activation, x)
        if done is not None:
            return done
    if run:
        check_keywords("gated", gated, run)
    check_activation(activation)
    if halves is not True:
        raise UnsupportedError(
            f"gated: halves={halves!r} is not supported; for pairs of adjacent columns use "
            f"op.mm(…, epilogue=op.epilogue.library.gated({activation!r}))"
        )
    torch = sys.modules.get("torch")
    if torch is not None and (torch.compiler.is_compiling() or needs_gradients(x)):
        from cute_dialect.op.torch.dispatch import CUTE  # late: torch

        def compute() -> object:
            return call_operator("gated", lambda: CUTE.gated(x, activation), x, device, stream, run)

        return _KNOWN.differentiable(activation, (x,), compute) if usual else compute()
    return activated(x, activation, device, stream, run)


def activated(
    x: Array, activation: str, device: object = None, stream: object = None, run: Interpreted | None = None
) -> Any:
    """Compute :func:`gated` without gradients."""

    def compute() -> object:
        one = RowCall("gated", {"x": x}, device, (), tuple(BITS), stream=stream, run=run)
        n = _half(one)
        with one.on():
            y = one.result((*one.x.shape[:-1], n))
            if 0 not in one.x.shape:
                _launch(one, activation, n, *_halves(one.matrix("x")), one.matrix_of(y))
        return y

    return _KNOWN.call(activation, (x,), compute) if device is None and stream is None and not run else compute()


def gated_backward(dy: Array, x: Array, activation: str, device: object = None) -> Any:
    """Return the gradient of ``x``, given that of the result."""

    def compute() -> object:
        one = RowCall("gated_backward", {"x": x, "dy": dy}, device)
        n = _half(one)
        one.expect("dy", (*one.x.shape[:-1], n))
        dx = one.result(one.x.shape)
        if 0 not in one.x.shape:
            matrices = (*_halves(one.matrix("x")), one.matrix("dy"), *_halves(one.matrix_of(dx)))
            _launch(one, activation, n, *matrices, is_gradient=True)
        return dx

    return _KNOWN_GRADIENTS.call(activation, (dy, x), compute) if device is None else compute()


def _half(one: RowCall) -> int:
    """Return half the length of a row.  Raises ShapeError."""
    n = one.length()
    if n % 2:
        raise ShapeError(f"{one.name}: rows of x have {n} elements; pass an even number, two halves")
    return n // 2


def _halves(x: ArrayView) -> tuple[ArrayView, ArrayView]:
    """Return the two halves of the columns of a matrix."""
    rows, n = x.shape[0], x.shape[1] // 2
    first = x._replace(shape=(rows, n))
    return first, first._replace(pointer=x.pointer + n * BITS[x.dtype] // 8)


def _launch(one: RowCall, activation: str, n: int, *matrices: ArrayView, is_gradient: bool = False) -> None:
    plan = checked_plan(activation, one.element, one.count, n, is_gradient=is_gradient)
    one.launch(RowKernel(plan.name, elementwise_text, (plan,)), *matrices)
