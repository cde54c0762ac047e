"""Norms with 8-bit results: ``op.rms_norm(…, quantize=…)`` and ``op.layer_norm(…, quantize=…)``."""

# torch is not installed where types are checked; arrays may belong to any library.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from cute_dialect.kernels.rows.norm_quantize import choose_config
from cute_dialect.op.arrays.library import call_operator
from cute_dialect.op.errors import UnsupportedError
from cute_dialect.op.execute.array_call import RowCall
from cute_dialect.op.execute.call_cache import KnownCalls, number
from cute_dialect.op.execute.recording import needs_gradients
from cute_dialect.op.functions.quantize import with_own_scales
from cute_dialect.op.problems.rows import WIDE, NormQuantization, shape_of_scales
from cute_dialect.op.rows.kernels import norm_quantize_kernel

if TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Callable

    from cute_dialect.runtime.arrays import ArrayView

_KNOWN = {name: KnownCalls(tf32=False) for name in ("rms_norm", "layer_norm")}
"""Cached calls by function."""


class Operands(NamedTuple):
    """Arrays of a norm; all but ``x`` may be None."""

    x: Any
    residual: Any
    weight: Any
    bias: Any

    @property
    def takes(self) -> str:
        """The operands other than ``x``, as letters."""
        named = (("w", self.weight), ("b", self.bias), ("r", self.residual))
        return "".join([letter for letter, t in named if t is not None])

    @property
    def present(self) -> tuple[Any, ...]:
        """The arrays that are not None."""
        return tuple([t for t in self if t is not None])


def norm_quantized(
    call: str, operands: Operands, eps: float, dtype: object, block: object, norm: Callable[[], Any], device: object
) -> Any:
    """Return the quantized norm and its scales, followed by the sum of ``x`` and the residual if there is one.

    Args:
        call: ``rms_norm`` or ``layer_norm``.
        dtype, block: the arguments ``quantize`` and ``block``.
        norm: computes the norm without quantization, for rows that do not fit into registers.

    Raises:
        OpError: if the arguments are not supported.
    """
    known, how = _KNOWN[call], (operands.takes, number(eps), dtype, block)
    usual = device is None and not known.is_traced()
    if usual:
        done = known.again(how, *operands.present)
        if done is not None:
            return done
    if needs_gradients(*operands):
        raise UnsupportedError(f"{call}: quantize has no gradient; call it under torch.no_grad(), or omit quantize")
    to = NormQuantization.of(call, dtype, block)
    torch = sys.modules.get("torch")
    if torch is not None and torch.compiler.is_compiling():
        from cute_dialect.op.torch.dispatch import CUTE  # late: torch

        def compute() -> object:
            return CUTE.norm_quantize(call, *operands, eps, *to)

        q, scales, total = call_operator(call, compute, operands.x, device)
        return (q, scales) if operands.residual is None else (q, scales, total)

    def launch() -> object:
        return computed(call, operands, eps, to, norm, device)

    return known.recorded(how, operands.present, launch) if usual else launch()


def computed(
    call: str, operands: Operands, eps: float, to: NormQuantization, norm: Callable[[], Any], device: object = None
) -> Any:
    """Compute the results of :func:`norm_quantized`."""
    one = RowCall(call, operands._asdict(), device, (), WIDE)
    n = one.length()
    one.expect("residual", one.x.shape)
    one.expect("weight", (n,))
    one.expect("bias", (n,))
    c = choose_config(call, one.element, to.element, to.regions, n, operands.takes)
    if c is None or n == 0:
        found = norm()
        y, *total = found if isinstance(found, tuple) else (found,)
        return (*with_own_scales(y, to.element, to.regions, device), *total)
    q, scales = one.result(one.x.shape, to.element), one.result(shape_of_scales(to.regions, one.x.shape), "f32")
    total = None if operands.residual is None else one.result(one.x.shape)
    if 0 not in one.x.shape:
        rows = [None if t is None else one.matrix(name) for name, t in list(operands._asdict().items())[:2]]
        vectors = [_as_row(one.vector(name)) for name in ("weight", "bias")]
        written = one.matrix_of(q), one.matrix_of(scales), None if total is None else one.matrix_of(total)
        one.launch(norm_quantize_kernel(c), *rows, *vectors, *written, float(eps))
    return (q, scales) if total is None else (q, scales, total)


def _as_row(vector: ArrayView | None) -> ArrayView | None:
    """Return a vector as a matrix of one row."""
    if vector is None:
        return None
    return vector._replace(shape=(1, *vector.shape), strides=(vector.shape[0], 1))
