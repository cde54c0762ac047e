"""Quantization to 8-bit types with f32 scales: ``op.quantize``, ``op.dequantize``, norms with 8-bit results.

One scale is shared by the array, a row, 128 columns of a row, or 128 x 128 elements of a matrix.  The shape of the
scales identifies these regions.  :func:`cute_dialect.op.scaled_mm` takes the results as its operands.
"""

# torch is not installed where types are checked; arrays may belong to any library.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import sys
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from cute_dialect.kernels.rows.norm_quantize import choose_config
from cute_dialect.kernels.rows.quantize import BLOCK, quantize_text
from cute_dialect.op.arrays.dtypes import element_name
from cute_dialect.op.arrays.library import call_operator
from cute_dialect.op.errors import DtypeError, UnsupportedError
from cute_dialect.op.execute.array_call import RowCall, RowKernel, is_contiguous
from cute_dialect.op.execute.call_cache import KnownCalls, number
from cute_dialect.op.execute.recording import needs_gradients
from cute_dialect.op.execute.rows import norm_quantize_kernel
from cute_dialect.op.keywords import check_keywords
from cute_dialect.op.problems.rows import (
    QUANTIZED,
    WIDE,
    NormQuantization,
    QuantizeProblem,
    regions_of_block,
    regions_of_scales,
    shape_of_scales,
)
from cute_dialect.runtime.arrays import view_of

if TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Callable
    from typing import Unpack

    from cute_dialect.op.signature_types import Array, Interpreted
    from cute_dialect.runtime.arrays import ArrayView


_KNOWN = {name: KnownCalls(tf32=False) for name in ("quantize", "dequantize", "rms_norm", "layer_norm")}
"""Cached calls by function."""


def quantize(
    x: Array, dtype: object = "f8E4M3FN", *, block: object = None, scale: Array = None, device: object = None,
    stream: object = None, **run: Unpack[Interpreted],
) -> tuple[Array, Array]:  # fmt: skip
    """Return 8-bit values and their f32 scales, so that ``x`` is close to ``values * scales``.

    The scale of a region is its largest magnitude divided by the largest value of ``dtype``.  It is 1 if no magnitude
    exceeds 2 ** -110.  A region with NaN or an infinity has that scale, and dequantizes to NaN.  There is no gradient.

    Args:
        x: an array of f16, bf16 or f32.
        dtype: e4m3 (``"f8E4M3FN"``), e5m2 (``"f8E5M2"``) or int8, by name or as a type.
        block: elements that share a scale.  None: all, but a row in norms with ``quantize``; ``"row"``: a row along
            the last dimension, scales (…, 1); 128: 128 columns of a row, scales (…, N / 128), rounded up; (128, 128): a
            tile of a matrix, scales (M / 128, N / 128).
        scale: given scales of one of these shapes, f32; the result has them as its second element.
        device, stream, run: as in :func:`cute_dialect.op.mm`.

    Raises:
        OpError: if the arguments are not supported.
    """
    if run:
        check_keywords("quantize", quantize, run)
    element = element_name(dtype)
    if element not in QUANTIZED:
        raise DtypeError(f"quantize: dtype {element} is not supported; use one of {', '.join(QUANTIZED)}")
    regions = regions_of_block(block, scale is not None)
    torch = sys.modules.get("torch")
    if torch is not None and torch.compiler.is_compiling():
        from cute_dialect.op.torch.dispatch import CUTE  # late: torch

        def compute() -> object:
            if scale is None:
                return CUTE.quantize(x, element, regions)
            return CUTE.quantize_scaled(x, element, scale), scale

        return call_operator("quantize", compute, x, device, stream, run)
    if scale is None:
        return with_own_scales(x, element, regions, device, stream, run)
    return with_given_scales(x, element, scale, device, stream, run), scale


def dequantize(
    q: Array, scales: Array, dtype: object = "bf16", *, device: object = None, stream: object = None,
    **run: Unpack[Interpreted],
) -> Array:  # fmt: skip
    """Return ``q * scales``, the inverse of :func:`quantize`.

    Args:
        q: an array of e4m3, e5m2 or int8.
        scales: f32, of a shape that :func:`quantize` returns for an array of this shape.
        dtype: type of the result: bf16, f16 or f32.
        device, stream, run: as in :func:`cute_dialect.op.mm`.

    Raises:
        OpError: if the arguments are not supported.
    """
    if run:
        check_keywords("dequantize", dequantize, run)
    element = element_name(dtype)
    if element not in WIDE:
        raise DtypeError(f"dequantize: dtype {element} is not supported; use one of {', '.join(WIDE)}")
    torch = sys.modules.get("torch")
    if torch is not None and torch.compiler.is_compiling():
        from cute_dialect.op.torch.dispatch import CUTE  # late: torch

        return call_operator("dequantize", lambda: CUTE.dequantize(q, scales, element), q, device, stream, run, "q")
    return dequantized(q, scales, element, device, stream, run)


def with_own_scales(
    x: Array, element: str, regions: str, device: object = None, stream: object = None, run: Interpreted | None = None
) -> tuple[Any, Any]:
    """Quantize an array and compute its scales.

    Args:
        element: type of the result.
        regions: "array", "row", "block" or "tile".
    """

    def compute() -> tuple[object, object]:
        one = RowCall("quantize", {"x": x}, device, (), WIDE, stream=stream, run=run)
        one.length()
        shape = one.x.shape
        with one.on():
            made = shape_of_scales(regions, shape)
            q, scales = one.result(shape, element), one.result(made, "f32")
            if 0 in shape:
                scales[...] = 1.0
            else:
                source, target, s = one.matrix("x"), one.matrix_of(q), _as_matrix(view_of(scales))
                if regions == "array":
                    _find_scale(one, source, s, element)
                    _launch(one, "given", "block", source, target, _broadcast(s, source.shape), element)
                else:
                    _launch(one, "quantize", regions, source, target, s, element)
        return q, scales

    usual = device is None and stream is None and not run
    return _KNOWN["quantize"].call((element, regions), (x,), compute) if usual else compute()


def with_given_scales(
    x: Array, element: str, scale: Array, device: object = None, stream: object = None, run: Interpreted | None = None
) -> Any:
    """Quantize an array with given scales."""
    return _converted("quantize", "x", x, "scale", scale, element, device, stream, run)


def dequantized(
    q: Array, scales: Array, element: str, device: object = None, stream: object = None, run: Interpreted | None = None
) -> Any:
    """Multiply quantized values by their scales."""
    return _converted("dequantize", "q", q, "scales", scales, element, device, stream, run)


def _converted(
    call: str, name: str, x: Any, name_of_scales: str, scales: Any, element: str, device: object, stream: object,
    run: Interpreted | None,
) -> Any:  # fmt: skip
    """Convert an array with given scales, which are not computed."""

    def compute() -> object:
        taken = WIDE if call == "quantize" else QUANTIZED
        arrays = {name: x, name_of_scales: scales}
        one = RowCall(call, arrays, device, (name_of_scales,), taken, stream=stream, run=run)
        one.length()
        view = one.views[name_of_scales]
        if view.dtype != "f32":
            raise one.wrong_type(name_of_scales, "f32")
        regions = regions_of_scales(call, name, one.x.shape, name_of_scales, view.shape)
        with one.on():
            y = one.result(one.x.shape, element)
            if 0 not in one.x.shape:
                s = _as_matrix(view if len(view.shape) == 2 or is_contiguous(view) else one.packed(name_of_scales))
                source, target = one.matrix(name), one.matrix_of(y)
                if regions in ("array", "row"):
                    s, regions = _broadcast(s, source.shape), "block"
                if call == "quantize":
                    _launch(one, "given", regions, source, target, s, element)
                else:
                    _launch(one, "dequantize", regions, target, source, s, one.element)
        return y

    usual = device is None and stream is None and not run
    return _KNOWN[call].call(element, (x, scales), compute) if usual else compute()


# ------------------------------------------------------------------------------------------------------------- launches


def _as_matrix(scales: ArrayView) -> ArrayView:
    """Return scales as a matrix with a row per row of regions."""
    if len(scales.shape) == 2:
        return scales
    columns = scales.shape[-1] if scales.shape else 1
    return scales._replace(shape=(prod(scales.shape) // max(1, columns), columns), strides=(columns, 1))


def _broadcast(scales: ArrayView, shape: tuple[int, ...]) -> ArrayView:
    """Return one scale, or one per row, as a matrix with a scale per block."""
    (rows, columns), step = shape, scales.strides[0] if scales.shape[0] > 1 else 0
    return scales._replace(shape=(rows, -(-columns // BLOCK)), strides=(step, 0))


def _find_scale(one: RowCall, x: ArrayView, s: ArrayView, element: str) -> None:
    """Launch the two kernels that find the scale of a whole array."""
    if is_contiguous(x) and prod(x.shape) < 1 << 31:
        x = x._replace(shape=(1, prod(x.shape)), strides=(prod(x.shape), 1))
    p = QuantizeProblem("maximum", "part", x.dtype, "i8", *x.shape)
    parts = view_of(one.result(p.scales, "f32"))
    one.launch(RowKernel(p.config.name, quantize_text, (p.config,)), x, parts)
    count = prod(p.scales)
    row = parts._replace(shape=(1, count), strides=(count, 1))
    _launch(one, "scale", "row", row, None, s, element)


def _launch(
    one: RowCall, task: str, regions: str, x: ArrayView, q: ArrayView | None, s: ArrayView, result: str
) -> None:
    """Launch a kernel.  Contiguous rows of whole blocks are passed as one row per block."""
    (rows, n), views = x.shape, [v for v in (x, q) if v is not None]
    is_flat = all([is_contiguous(v) for v in views]) and (s.strides == (0, 0) or is_contiguous(s))
    if regions == "block" and n % BLOCK == 0 and rows * n < 1 << 38 and is_flat:
        rows, regions = rows * n // BLOCK, "blocks"
        views = [v._replace(shape=(rows, BLOCK), strides=(BLOCK, 1)) for v in views]
        s = s._replace(shape=(rows, 1), strides=(0 if s.strides == (0, 0) else 1, 1))
    c = QuantizeProblem(task, regions, x.dtype, result, *views[0].shape).config
    one.launch(RowKernel(c.name, quantize_text, (c,)), *views, s)


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
        return quantized_norm(call, operands, eps, to, norm, device)

    return known.recorded(how, operands.present, launch) if usual else launch()


def quantized_norm(
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
