"""Explanations of ``op.mm_packed`` and ``op.mm_sparse``, which :func:`cute_dialect.op.explain`
returns.

>>> packed = PackedWeight(None, 8192, 8192, "ui4-g128-bf16")
>>> found = explain_mm_packed(None, (1, 8192), packed, "bf16", None, None)
>>> found.bytes // packed.n, round(found.bound, 1)
(4228, 8.5)
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from cute_dialect.kernels.epilogue.combination import Epilogue
from cute_dialect.kernels.gemm.mixed_input import MixedConfig, mixed_input_text
from cute_dialect.kernels.gemm.sparse import SparseConfig, sparse_gemm_text
from cute_dialect.kernels.gemm.sparse_sm100 import SparseSm100Config, sparse_sm100_text
from cute_dialect.kernels.gemm.weight_packing import UnpackConfig, unpack_text
from cute_dialect.op.arrays.dtypes import element_name
from cute_dialect.op.errors import DtypeError, ShapeError
from cute_dialect.op.execute.array_call import RowKernel
from cute_dialect.op.explanations.gemm import Explanation, GemmExplanation, Line
from cute_dialect.op.explanations.rows import DRAM
from cute_dialect.op.problems.compressed_weights import PackedWeight, SparseWeight
from cute_dialect.op.problems.packed_weights import ACTIVATIONS, RESULTS, checked_packed
from cute_dialect.op.problems.sparse_weights import ELEMENTS, check_sparse
from cute_dialect.op.problems.sparse_weights import choose_config as choose_sparse
from cute_dialect.op.select import sm100_model
from cute_dialect.op.select.backends import Backend
from cute_dialect.op.select.kernel_choice import Problem
from cute_dialect.op.select.mixed_input import choose_plan

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.op.signature_types import Array

_FLOPS = 800.0
"""TFLOP/s of 16-bit tensor cores that GEMMs reach on an H200."""


@dataclass(frozen=True, kw_only=True)
class PackedExplanation(Explanation):
    """The kernel of a GEMM with packed weights, or of unpacking them and of the ordinary GEMM."""

    m: int
    packed: PackedWeight
    element: str
    config: MixedConfig | None  # None if the weights are unpacked
    gemm: GemmExplanation | None  # explanation of the ordinary GEMM, or None
    other: float  # predicted time of the other way in microseconds

    def _title(self) -> str:
        p = self.packed
        return f"{self.operation} of {self.m} x {p.k} {self.element} and {p.n} x {p.k} {p.format}"

    def _layout(self) -> Iterator[Line]:
        c = self.config
        if c is None:
            yield "then", self.gemm.kernel if self.gemm is not None else "an ordinary GEMM"
            return
        split = f", {c.parts} split-K slices" if c.parts > 1 else ""
        yield "tile", f"{c.rows} rows of w, {c.columns} rows of x{split}, {c.stages} stages of 128"

    def _limits(self) -> str:
        return f"{self.bytes / 1e6:.3g} MB, {self.flops / 1e9:.3g} GFLOP (an H200)"

    def _after(self) -> Iterator[Line]:
        yield "else", f"{self.other:.1f} us  {'unpacked weights and a GEMM' if self.config else 'packed weights'}"


def explain_mm_packed(
    mm: Callable[[tuple[int, int], tuple[int, int]], GemmExplanation] | None,
    x: Array,
    packed: PackedWeight,
    element: str,
    bias: object,
    dtype: object,
) -> PackedExplanation:
    """Explain ``mm_packed``.

    Args:
        mm: explains the ordinary GEMM, given its operands.
        x: an array, or its shape.
        packed: packed weights; ``data`` may be None.
        element: type of ``x`` if it is a shape.
        bias: the bias, its shape, or None.
        dtype: type of the result; None: that of ``x``.

    Raises the errors of the function.
    """
    found = checked_packed("mm_packed", packed)
    shape = tuple(x if isinstance(x, tuple | list) else x.shape)
    element = element if isinstance(x, tuple | list) else element_name(x.dtype)
    result = element if dtype is None else element_name(dtype)
    if not shape or 0 in shape or shape[-1] != packed.k:
        raise ShapeError(f"mm_packed: x has shape {shape}; pass rows of {packed.k} elements")
    for name, kind, allowed in (("x", element, ACTIVATIONS), ("the result", result, RESULTS)):
        if kind not in allowed:
            raise DtypeError(f"mm_packed: {name} has dtype {kind}; it must have one of {', '.join(allowed)}")
    m, (n, k) = prod(shape[:-1]), packed.shape
    size, gemm = 4 * prod(found.shape(n, k)) + 2 * m * k + 2 * m * n, None
    plan = choose_plan(m, n, k, found, element, result, bias is not None, exact=True)
    c = plan.config
    if c is None:
        u = UnpackConfig(*found, output=element)
        gemm = mm((m, k), (n, k)) if mm is not None else None
        kernels = (RowKernel(u.name, unpack_text, (u,), "unpack"), *((gemm and gemm.kernels) or ()))
    else:
        kernels = (RowKernel(c.name, mixed_input_text, (c,)),)
    flops = 2 * m * n * k
    return PackedExplanation(
        operation="mm_packed",
        kernel=kernels[0].name,
        why="" if c else "unpacked weights and a GEMM are predicted to be faster",
        microseconds=plan.microseconds,
        flops=flops,
        bytes=size,
        bound=max(size / DRAM, flops / _FLOPS) / 1e6,
        kernels=kernels,
        m=m,
        packed=packed,
        element=element,
        config=c,
        gemm=gemm,
        other=plan.other,
    )


@dataclass(frozen=True, kw_only=True)
class SparseExplanation(Explanation):
    """The kernel of a GEMM with 2:4 sparse weights."""

    m: int
    shape: tuple[int, int]  # of the weights
    element: str
    config: SparseConfig | SparseSm100Config
    bounds: tuple[Line, ...] = ()  # static bounds of a chip without measurements

    def _title(self) -> str:
        n, k = self.shape
        return f"{self.operation} of {self.m} x {k} {self.element} and {n} x {k} 2:4 sparse"

    def _layout(self) -> Iterator[Line]:
        c = self.config.base
        yield "tile", f"{c.tile[0]} rows of w, {c.tile[1]} rows of x, {c.stages} stages of 128"

    def _limits(self) -> str:
        return f"{self.bytes / 1e6:.3g} MB, {self.flops / 1e9:.3g} GFLOP{'' if self.bounds else ' (an H200)'}"

    def _after(self) -> Iterator[Line]:
        yield from self.bounds


def explain_mm_sparse(
    x: Array, w: SparseWeight, element: str, bias: object, backend: Backend | None = None
) -> SparseExplanation:
    """Explain ``mm_sparse``.  Raises the errors of the function.

    Args:
        x: an array, or its shape.
        w: compressed weights.
        element: type of ``x`` if it is a shape.
        bias: the bias, its shape, or None.
        backend: that of a chip with tensor memory; None for the kernels of sm_90.
    """
    check_sparse("mm_sparse", w)
    shape = tuple(x if isinstance(x, tuple | list) else x.shape)
    element = element if isinstance(x, tuple | list) else element_name(x.dtype)
    n, k = w.shape
    if not shape or 0 in shape or shape[-1] != k:
        raise ShapeError(f"mm_sparse: x has shape {shape}; pass rows of {k} elements")
    if element not in ELEMENTS:
        raise DtypeError(f"mm_sparse: x has dtype {element}; it must have one of {', '.join(ELEMENTS)}")
    m = prod(shape[:-1])
    flops, size = 2 * m * n * k, n * k * 9 // 8 + 2 * m * k + 2 * m * n
    if backend is not None:
        epilogue = Epilogue() if bias is None else Epilogue(bias="m", bias_type=element)
        problem = Problem(n, m, k, element, element, "k", "k", 1)
        config = sm100_model.choose_sparse(problem, backend.target, epilogue)
        bounds = sm100_model.sparse_bounds(config, problem)
        return SparseExplanation(
            operation="mm_sparse",
            kernel=config.name,
            flops=flops,
            bytes=size,
            kernels=(RowKernel(config.name, sparse_sm100_text, (config,), target=backend.target),),
            status=backend.status,
            m=m,
            shape=(n, k),
            element=element,
            config=config,
            bounds=sm100_model.bound_lines(config.base, bounds, is_sparse=True),
        )
    c = choose_sparse(m, n, element, has_bias=bias is not None)
    return SparseExplanation(
        operation="mm_sparse",
        kernel=c.name,
        flops=flops,
        bytes=size,
        bound=max(size / DRAM, flops / (2 * _FLOPS)) / 1e6,
        kernels=(RowKernel(c.name, sparse_gemm_text, (c,)),),
        m=m,
        shape=(n, k),
        element=element,
        config=c,
    )
