"""GEMM with packed weights: ``op.mm_packed``, and the functions that pack weights of 4 or 8 bits.

Weights are integers, or e4m3, with scales: ``w = (q - z) s``.  Packing orders them once, so that a thread of the kernel
reads its fragments as they are; see :mod:`cute_dialect.kernels.gemm.weight_packing`.  ``pack_weight`` takes one number
per element, ``pack_gptq`` and ``pack_awq`` take the words of such checkpoints.
"""

# torch is not installed where types are checked; arrays may belong to any library.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import sys
from numbers import Integral
from typing import TYPE_CHECKING

from cute_dialect.kernels.gemm.mixed_input import FLOATS, mixed_input_text
from cute_dialect.kernels.gemm.weight_packing import PackConfig, UnpackConfig, pack_text, unpack_text
from cute_dialect.op.arrays.dtypes import element_name
from cute_dialect.op.arrays.library import break_graph, call_operator, gpu_here
from cute_dialect.op.errors import ArgumentError, DtypeError, ShapeError, UnsupportedError
from cute_dialect.op.execute.array_call import RowCall, RowKernel
from cute_dialect.op.execute.call_cache import KnownCalls
from cute_dialect.op.execute.recording import needs_gradients
from cute_dialect.op.functions.gemm import mm
from cute_dialect.op.keywords import check_keywords
from cute_dialect.op.problems.compressed_weights import PackedWeight
from cute_dialect.op.problems.operands import check_overlap
from cute_dialect.op.problems.packed_weights import (
    ACTIVATIONS,
    RESULTS,
    SCALES,
    Format,
    check_bits,
    check_problem,
    check_zero,
    checked_packed,
    group_of,
    stored_type,
)
from cute_dialect.op.select.gemm_dispatch import gpu_of
from cute_dialect.op.select.mixed_input import choose_plan

if TYPE_CHECKING:  # pragma: no cover
    from typing import Unpack

    from cute_dialect.op.signature_types import Array, Interpreted
    from cute_dialect.runtime.arrays import ArrayView

_KNOWN, _KNOWN_UNPACKED = KnownCalls(tf32=False), KnownCalls(tf32=False)
"""Cached calls of ``mm_packed`` and ``unpack_weight``."""


# -------------------------------------------------------------------------------------------------------------- packing


def pack_weight(
    w: Array,
    scales: Array,
    zeros: Array = None,
    *,
    bits: int | None = None,
    group: int | None = None,
    device: object = None,
    stream: object = None,
    **run: Unpack[Interpreted],
) -> PackedWeight:
    """Pack weights for :func:`mm_packed`: ``(w - zeros) * scales``.

    Args:
        w: (N, K), int8, uint8 or float8_e4m3fn, one weight per element.  With ``bits=4`` int8 holds -8 to 7 and uint8 0
            to 15; other values wrap.  If a float is NaN, all weights with its scale are.
        scales: (N, K / group), rounded up, or (N, 1) or (N,) for one scale per row: f16, bf16 or f32.
        zeros: zero points of the type of ``w`` with the shape of ``scales``, or one integer; None: 0.
            The middle of the range of uint8 is 8, or 128 with 8 bits.  Floats have none.
        bits: 4 or 8; default: 4, or 8 for floats.
        group: columns that share a scale: 32, 64 or 128; default: determined by the shape of ``scales``.
        device, stream, run: as in :func:`cute_dialect.op.mm`.

    Raises:
        OpError: if the arguments are not supported.
    """
    if run:
        check_keywords("pack_weight", pack_weight, run)
    break_graph("pack_weight")
    if isinstance(zeros, bool):
        raise ArgumentError(f"pack_weight: zeros is {zeros}; pass an array, one integer, or None for 0")
    zero = None
    if zeros is None or isinstance(zeros, Integral):
        zero, zeros = int(zeros or 0), None
    arrays = {"w": w, "scales": scales, "zeros": zeros}
    others = ("scales", "zeros")
    one = RowCall("pack_weight", arrays, device, others, ("i8", "ui8", *FLOATS), stream=stream, run=run)
    is_float = one.element in FLOATS
    if is_float and (zero is None or zero or bits not in (None, 8)):
        raise ArgumentError("pack_weight: weights of f8E4M3FN have no zero points, and 8 bits; omit zeros and bits")
    if zero is None and one.views["zeros"].dtype != one.element:
        raise one.wrong_type("zeros", f"{one.element}, like w")
    bits = check_bits("pack_weight", (8 if is_float else 4) if bits is None else bits)
    if len(one.x.shape) != 2:
        raise ShapeError(f"pack_weight: w has shape {one.x.shape}; it must have rank 2")
    n, k = one.x.shape
    check_problem("pack_weight", n, k)
    s = _scales(one, "scales", n)
    group = group_of("pack_weight", k, s.shape[1], group)
    if is_float:
        q = one.matrix("w")._replace(dtype="ui8")  # its bits
        return _packed(one, PackConfig(one.element, group, s.dtype, source="ui8"), n, k, q, s, None)
    c = PackConfig(stored_type(bits), group, s.dtype, source=one.element)
    if zero is not None:
        middle = 0 if one.element == "i8" else c.middle
        if check_zero("pack_weight", zero, bits, is_signed=one.element == "i8") != middle:
            c = c._replace(zeros="plain", offset=zero + c.middle if one.element == "i8" else zero)
        return _packed(one, c, n, k, one.matrix("w"), s, None)
    z = _scales(one, "zeros", n)
    if z.shape != s.shape:
        raise ShapeError(f"pack_weight: zeros has shape {z.shape}; it must have {s.shape}, like scales")
    return _packed(one, c._replace(zeros="rows"), n, k, one.matrix("w"), s, z)


_SPELLINGS = {
    "g_idx": "omit it: groups of scattered rows (desc_act) are not supported, others have k // group",
    "desc_act": "omit it: groups of scattered rows are not supported", "group_size": "use group", "wbits": "use bits",
    "zeros": "use qzeros", "sym": "omit qzeros if the zero points are the middle of the range",
}  # fmt: skip
"""Arguments of other libraries -> what to use instead."""


def pack_gptq(
    qweight: Array,
    scales: Array,
    qzeros: Array = None,
    *,
    bits: int = 4,
    group: int | None = None,
    zero_offset: int = 1,
    device: object = None,
    stream: object = None,
    **run: Unpack[Interpreted],
) -> PackedWeight:
    """Pack the weights of a layer of a GPTQ checkpoint for :func:`mm_packed`.

    Rows must be in their original order: layers quantized with ``desc_act`` have groups of scattered rows, which are
    not supported.

    Args:
        qweight: (K * bits / 32, N), int32, packed along K.
        scales: (K / group, N), rounded up: f16, bf16 or f32.
        qzeros: (K / group, N * bits / 32), int32, packed along N; None: the middle of the range, 8 or 128.
        bits: 4 or 8.
        group: rows of K that share a scale; default: determined by the shape of ``scales``.
        zero_offset: added to the zero points: 1 for the usual format, 0 for ``gptq_v2``.  With 8 bits the sum is taken
            modulo 256: a stored zero point of 255 means 0.  With 4 bits 15 means 16.
        device, stream, run: as in :func:`cute_dialect.op.mm`.

    Raises:
        OpError: if the arguments are not supported.
    """
    if run:
        check_keywords("pack_gptq", pack_gptq, run, spellings=_SPELLINGS)
    break_graph("pack_gptq")
    if type(zero_offset) is not int or zero_offset not in (0, 1):
        raise ArgumentError(f"pack_gptq: zero_offset={zero_offset!r} is not supported; use 0 or 1")
    bits = check_bits("pack_gptq", bits)
    arrays = {"qweight": qweight, "scales": scales, "qzeros": qzeros}
    one = RowCall("pack_gptq", arrays, device, ("scales",), ("i32",), stream=stream, run=run)
    return _from_words(one, "gptq", bits, group, zero_offset)


def pack_awq(
    qweight: Array,
    scales: Array,
    qzeros: Array = None,
    *,
    group: int | None = None,
    device: object = None,
    stream: object = None,
    **run: Unpack[Interpreted],
) -> PackedWeight:
    """Pack the 4-bit weights of a layer of an AWQ checkpoint for :func:`mm_packed`.

    Args:
        qweight: (K, N / 8), int32, packed along N in the order 0, 2, 4, 6, 1, 3, 5, 7 (``gemm`` version).
        scales: (K / group, N), rounded up: f16, bf16 or f32.
        qzeros: (K / group, N / 8), int32, packed like ``qweight``; None: 8.
        group: rows of K that share a scale; default: determined by the shape of ``scales``.
        device, stream, run: as in :func:`cute_dialect.op.mm`.

    Raises:
        OpError: if the arguments are not supported.
    """
    if run:
        check_keywords("pack_awq", pack_awq, run, spellings=_SPELLINGS)
    break_graph("pack_awq")
    arrays = {"qweight": qweight, "scales": scales, "qzeros": qzeros}
    one = RowCall("pack_awq", arrays, device, ("scales",), ("i32",), stream=stream, run=run)
    return _from_words(one, "awq", 4, group, 0)


def _from_words(one: RowCall, layout: str, bits: int, group: object, offset: int) -> PackedWeight:
    """Pack the words of a checkpoint."""
    call = one.name
    for name, view in one.views.items():
        if len(view.shape) != 2:
            raise ShapeError(f"{call}: {name} has shape {view.shape}; it must have rank 2")
    per, (k, n) = 32 // bits, one.x.shape
    k, n = (k * per, n) if layout == "gptq" else (k, n * per)
    check_problem(call, n, k)
    s = _scale_type(one)
    if s.shape[1] != n:
        raise ShapeError(f"{call}: scales has shape {s.shape}, but qweight holds {n} columns; pass (groups, {n})")
    group = group_of(call, k, s.shape[0], group, "rows")
    c = PackConfig(stored_type(bits), group, s.dtype, layout, "ui8", "words" if "qzeros" in one.views else "", offset)
    s = s._replace(shape=s.shape[::-1], strides=s.strides[::-1])
    if not c.zeros:
        return _packed(one, c._replace(offset=0), n, k, one.matrix("qweight"), s, None)
    if n % per:
        raise ShapeError(f"{call}: {n} columns are not a multiple of {per}, so that qzeros cannot hold them")
    one.expect("qzeros", (s.shape[1], n // per))
    return _packed(one, c, n, k, one.matrix("qweight"), s, one.matrix("qzeros"))


def _packed(
    one: RowCall, c: PackConfig, n: int, k: int, q: ArrayView, scales: ArrayView, zeros: ArrayView | None
) -> PackedWeight:
    """Launch the packing kernel."""
    found = Format(c.weight, c.group, c.scale, bool(c.zeros))
    with one.on():
        data = one.result(found.shape(n, k), "i32")
        one.launch(RowKernel(c.name, pack_text, (c,), "pack"), q, scales, zeros, one.view_of(data))
    return PackedWeight(data, n, k, str(found))


def _scale_type(one: RowCall) -> ArrayView:
    """Return the scales.  Raises DtypeError."""
    view = one.views["scales"]
    if view.dtype not in SCALES:
        raise one.wrong_type("scales", "f16, bf16 or f32")
    return view


def _scales(one: RowCall, name: str, n: int) -> ArrayView:
    """Return the scales or zero points of rows as a matrix.  Raises DtypeError, ShapeError."""
    view = one.views[name] if name == "zeros" else _scale_type(one)
    if len(view.shape) == 1:
        view = view._replace(shape=(*view.shape, 1), strides=(*view.strides, 1))
    if len(view.shape) != 2 or view.shape[0] != n:
        raise ShapeError(f"{one.name}: {name} has shape {view.shape}, but w has {n} rows; pass ({n}, groups) or ({n},)")
    return view


# ------------------------------------------------------------------------------------------------------------ unpacking


def unpack_weight(
    packed: PackedWeight,
    dtype: object = None,
    *,
    device: object = None,
    stream: object = None,
    **run: Unpack[Interpreted],
) -> Array:
    """Return packed weights as an (N, K) matrix of floats.

    Args:
        packed: the result of :func:`pack_weight`, :func:`pack_gptq` or :func:`pack_awq`.
        dtype: f16, bf16 or f32; default: the type of the scales.
        device, stream, run: as in :func:`cute_dialect.op.mm`.

    Raises:
        OpError: if the arguments are not supported.
    """
    if run:
        check_keywords("unpack_weight", unpack_weight, run)
    found = checked_packed("unpack_weight", packed)
    element = found.scale if dtype is None else element_name(dtype)
    if element not in RESULTS:
        raise DtypeError(f"unpack_weight: dtype {element} is not supported; use one of {', '.join(RESULTS)}")
    torch = sys.modules.get("torch")
    if torch is not None and torch.compiler.is_compiling():
        from cute_dialect.op.torch.dispatch import CUTE  # late: torch

        def unpack() -> Array:
            return CUTE.unpack_weight(packed.data, packed.n, packed.k, packed.format, element)

        return call_operator("unpack_weight", unpack, packed.data, device, stream, run, "packed.data")
    return unpacked(packed, element, device, stream, run)


def unpacked(
    packed: PackedWeight, element: str, device: object = None, stream: object = None, run: Interpreted | None = None
) -> Array:
    """Unpack weights that are checked."""
    how = (packed.n, packed.k, packed.format, element)

    def compute() -> Array:
        found = checked_packed("unpack_weight", packed)
        one = RowCall("unpack_weight", {"packed.data": packed.data}, device, (), ("i32",), stream=stream, run=run)
        c = UnpackConfig(*found, output=element)
        with one.on():
            w = one.result(packed.shape, element)
            one.launch(
                RowKernel(c.name, unpack_text, (c,), "unpack"), one.aligned_matrix("packed.data"), one.matrix_of(w)
            )
        return w

    usual = device is None and stream is None and not run
    return _KNOWN_UNPACKED.call(how, (packed.data,), compute) if usual else compute()


# ----------------------------------------------------------------------------------------------------------------- GEMM


def mm_packed(
    x: Array,
    packed: PackedWeight,
    bias: Array = None,
    *,
    out: Array = None,
    dtype: object = None,
    device: object = None,
    stream: object = None,
    **run: Unpack[Interpreted],
) -> Array:
    """Return ``x @ w.T + bias`` for packed weights ``w``.

    With up to 32 rows of ``x`` (64 in groups of 128), or one scale per row of the weights, weights are converted to the
    type of ``x`` without rounding, and scales multiply f32 sums of groups.  With more rows, weights are rounded to the
    type of ``x``, as by ``unpack_weight(packed, x.dtype)``.  With many rows they may be unpacked first, for an ordinary
    GEMM, if that is predicted to be faster; ``op.explain(op.mm_packed, x, packed)`` reports the choice.

    Args:
        x: (…, K), f16 or bf16.
        packed: (N, K) weights: the result of :func:`pack_weight`, :func:`pack_gptq` or :func:`pack_awq`.
        bias: (N,), of the type of the result.
        out: (…, N) array for the result; default: a new array.
        dtype: type of the result without ``out``: f16, bf16 or f32; default: that of ``x``.
        device, stream, run: as in :func:`cute_dialect.op.mm`.

    Raises:
        OpError: if the arguments are not supported.
    """
    if run:
        check_keywords("mm_packed", mm_packed, run)
    torch = sys.modules.get("torch")
    if torch is not None and (torch.compiler.is_compiling() or needs_gradients(x, bias)):
        from cute_dialect.op.torch.dispatch import CUTE  # late: torch

        if out is not None:
            raise UnsupportedError("mm_packed: out is not supported with gradients or torch.compile; omit it")
        found = checked_packed("mm_packed", packed)
        element = "" if dtype is None else element_name(dtype)

        def compute() -> Array:
            return CUTE.mm_packed(x, packed.data, bias, packed.n, packed.k, str(found), element)

        return call_operator("mm_packed", compute, x, device, stream, run)
    return multiplied(x, packed, bias, out, dtype, device, stream, run)


def multiplied(
    x: Array,
    packed: PackedWeight,
    bias: Array,
    out: Array = None,
    dtype: object = None,
    device: object = None,
    stream: object = None,
    run: Interpreted | None = None,
) -> Array:
    """Compute :func:`mm_packed` without gradients."""
    checked_packed("mm_packed", packed)

    def compute() -> Array:
        return _multiplied(x, packed, bias, out, dtype, device, stream, run or {})

    if device is not None or stream is not None or run:
        return compute()
    how = (packed[1:], dtype, bias is None, out is None)
    return _KNOWN.call(how, (x, packed.data, *[t for t in (bias, out) if t is not None]), compute)


def _multiplied(
    x: Array,
    packed: PackedWeight,
    bias: Array,
    out: Array,
    dtype: object,
    device: object,
    stream: object,
    run: Interpreted,
) -> Array:
    """Check the arguments of :func:`multiplied`, and launch its kernels."""
    found = checked_packed("mm_packed", packed)
    arrays = {"x": x, "packed.data": packed.data, "bias": bias, "out": out}
    one = RowCall("mm_packed", arrays, device, ("packed.data", "bias", "out"), ACTIVATIONS, stream=stream, run=run)
    if one.length() != packed.k:
        raise ShapeError(
            f"mm_packed: x has shape {one.x.shape}, but packed has {packed.k} columns; pass (…, {packed.k})"
        )
    if one.views["packed.data"].dtype != "i32":
        raise one.wrong_type("packed.data", "i32")
    given = one.views.get("out")
    element = given.dtype if given is not None else one.element if dtype is None else element_name(dtype)
    if element not in RESULTS:
        raise DtypeError(f"mm_packed: the result has dtype {element}; it must have one of {', '.join(RESULTS)}")
    if dtype is not None and element != element_name(dtype):
        raise DtypeError(f"mm_packed: dtype is {element_name(dtype)}, but out has {element}; omit dtype")
    if bias is not None:
        one.expect("bias", (packed.n,))
        if one.views["bias"].dtype != element:
            raise one.wrong_type("bias", f"{element}, like the result")
    m, n, k = one.count, *packed.shape
    if given is not None:
        check_overlap("mm_packed", one.views, c="")
    with one.on():
        y = one.result((*one.x.shape[:-1], n), element, "out")
        c = None
        if m:
            if not one.cpu:
                gpu_here("mm_packed")
            sms = 132 if one.cpu else gpu_of(one.gpu)[1]
            c = choose_plan(m, n, k, found, one.element, element, bias is not None, sms).config
        if m and c is None:
            w = unpacked(packed, one.element, device, stream, run)
            mm(
                one.native(one.matrix("x")),
                w.T,
                one.native(one.matrix_of(y)),
                bias=bias,
                device=device,
                stream=stream,
                **(run or {}),
            )
            return y
        if c is not None:
            d = one.matrix_of(y)
            if d.pointer % 16 or d.strides[0] % 8:
                c = c._replace(staged=False)
            kernel = RowKernel(c.name, mixed_input_text, (c,))
            one.launch(kernel, one.aligned_matrix("x"), one.aligned_matrix("packed.data"), d, one.vector("bias"))
    return y
