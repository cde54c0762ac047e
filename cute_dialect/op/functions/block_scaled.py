"""GEMMs with a scale for each 32 or 16 elements along K (MXFP8, MXFP4, NVFP4), which the MMA applies.

The kernels of sm_100 (:mod:`cute_dialect.kernels.gemm.sm100`) read the scales in the layout of torch, blocks of 128
rows x 4 scales, those of sm_120 (:mod:`cute_dialect.kernels.gemm.sm120`) as matrices (rows, K / 32) or (rows, K / 16).
Scales in the other layout are copied first. The interpreter runs the kernel of sm_120.
"""

# Arrays may belong to any library.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from cute_dialect.kernels.epilogue.combination import Epilogue
from cute_dialect.kernels.gemm.sm100 import SCALED_TILES, Sm100Config, sm100_gemm_text
from cute_dialect.kernels.gemm.sm120 import Sm120Config, sm120_gemm_text
from cute_dialect.kernels.gemm.tcgen05_scales import FP4
from cute_dialect.op.arrays.dtypes import element_name, listed
from cute_dialect.op.arrays.library import aligned_strides
from cute_dialect.op.epilogue.bind import bound
from cute_dialect.op.errors import DtypeError, ShapeError, UnsupportedError
from cute_dialect.op.execute.array_call import RowCall, RowKernel
from cute_dialect.op.explanations.gemm import Explanation
from cute_dialect.op.keywords import type_name
from cute_dialect.op.plans.report import explained
from cute_dialect.op.plans.scaled import ScaledGemm
from cute_dialect.op.problems.block_scaled import (
    FP8,
    WIDTHS,
    Scaling,
    as_blocks,
    as_matrix,
    bytes_of,
    check_block_scaled,
    check_signs,
    levels_of,
)
from cute_dialect.op.problems.operands import Operands, fits_results
from cute_dialect.op.problems.scaled import EXPONENTS, scales_epilogue
from cute_dialect.op.select.backends import NEVER_RUN, SM120, UNMEASURED, Backend, capability_named, unknown_gpu
from cute_dialect.op.select.kernel_choice import Problem
from cute_dialect.op.select.sm100_model import bound_of_tile
from cute_dialect.runtime.arrays import ArrayView

if TYPE_CHECKING:
    from cute_dialect.op.signature_types import Array, Factor, Interpreted

_RESULTS = ("bf16", "f16", "f32")


class BlockScaled(NamedTuple):
    """Operands of a GEMM with block scales."""

    a: Array
    b: Array
    scale_a: Array  # scales of blocks, or a pair: scales of blocks, and the factor of the matrix
    scale_b: Array
    recipe: object = None
    bias: Array = None
    scale_out: Factor = None
    dtype: object = None  # type of the result


class _Extras(NamedTuple):
    """The epilogue of a call."""

    epilogue: Epilogue
    operands: tuple[Array | Factor, ...]  # arrays and numbers that a kernel takes after the scales


def block_scaled_mm(
    call: str, given: BlockScaled, out: Array, device: object, stream: object, run: Interpreted
) -> Array:
    """Return ``((scale_a * a) @ (scale_b * b) + bias) * scale_out``."""
    (scale_a, whole_a), (scale_b, whole_b) = (
        levels_of(call, name, getattr(given, name)) for name in ("scale_a", "scale_b")
    )
    a, b = given.a, given.b
    scaling = check_block_scaled(call, (a, b, scale_a, scale_b), given.recipe)
    (m, k), n = a.shape, b.shape[1]
    is_signed = element_name(scale_a.dtype) == "f8E4M3FN"
    arrays = {"a": a, "b": b.T} if scaling.packed == 1 else {"a": bytes_of(a), "b": bytes_of(b.T)}
    arrays |= {"scale_a": bytes_of(scale_a), "scale_b": bytes_of(scale_b), "out": out, "bias": given.bias}
    arrays |= {"scale_a[1]": whole_a, "scale_b[1]": whole_b}
    one = RowCall(call, arrays, device, list(arrays)[1:], (*FP8, "ui8"), stream=stream, run=run)
    dtype = given.dtype
    result = element_name(dtype) if dtype is not None else one.views["out"].dtype if out is not None else "bf16"
    if result not in _RESULTS or (out is not None and one.views["out"].dtype != result):
        raise DtypeError(f"{call}: the result has dtype {result}; use one of {', '.join(_RESULTS)}, that of out")
    if given.bias is not None:
        one.expect("bias", (n,))
        if one.views["bias"].dtype != "f32":
            raise one.wrong_type("bias", "f32")
    backend = _backend_of(call, one, scaling)
    blocks = -(-k * scaling.packed // scaling.width)
    with one.on():
        for name, x, rows in (("scale_a", scale_a, m), ("scale_b", scale_b, n)):
            if one.cpu and is_signed:
                check_signs(call, name, as_matrix(bytes_of(x), rows, blocks))
            form = as_blocks if backend.has_tensor_memory else as_matrix
            one.views[name] = one.view_of(form(bytes_of(x), rows, blocks))
        y = one.result((m, n), result, "out")
        if 0 in (m, n):
            return y
        args = {"scale_a": whole_a, "scale_b": whole_b, "bias": given.bias, "scale_out": given.scale_out}
        if k == 0:  # There is nothing to scale.
            return _of_no_products(y, args)
        extras = _extras_of(call, args, one, y)
        views = [one.aligned_matrix("a"), one.aligned_matrix("b"), one.matrix_of(y)]
        of = (one.views["a"].dtype, one.views["b"].dtype)
        if backend.has_tensor_memory:
            x = Operands(views[0], views[1].transposed(), views[2], along=extras.epilogue.bias)
            direct = not fits_results(x, flipped=False)
            config: Sm100Config | Sm120Config = _sm100(of, (m, n, k), scaling, result, backend.target, direct=direct)
            scales = [one.vector(name) for name in ("scale_a", "scale_b")]
            make = sm100_gemm_text
        else:
            config, make = _sm120(of, (m, n), scaling, result, backend.target), sm120_gemm_text
            scales = [one.matrix(name) for name in ("scale_a", "scale_b")]
        config = config._replace(epilogue=extras.epilogue)
        one.launch(RowKernel(config.name, make, (config,), target=backend.target), *views, *scales, *extras.operands)
    return y


def scale_blocks(scales: Array) -> Array:
    """Return scales in blocks of 128 rows x 4, the layout of torch and cuBLAS, as a new vector.

    Args:
        scales: A matrix (rows, K / 32) or (rows, K / 16). The padding of the last blocks is 0.

    Raises:
        DtypeError: if ``scales`` is no array of f8E4M3FN or float8_e8m0fnu, or of their bytes.
        ShapeError: if ``scales`` is no matrix.
    """
    if not hasattr(scales, "shape") or not hasattr(scales, "dtype"):
        raise DtypeError(f"scale_blocks: scales is of type {type_name(scales)}; pass an array")
    if element_name(scales.dtype) not in (EXPONENTS, "f8E4M3FN", "ui8"):
        raise DtypeError(
            f"scale_blocks: scales has dtype {element_name(scales.dtype)}; pass {EXPONENTS} or f8E4M3FN, or their bytes"
        )
    if len(scales.shape) != 2:
        raise ShapeError(f"scale_blocks: scales has shape {tuple(scales.shape)}; pass a matrix (rows, blocks along K)")
    return as_blocks(bytes_of(scales), *scales.shape).view(scales.dtype)


def _of_no_products(y: Array, args: Mapping[str, Array | Factor]) -> Array:
    """Fill a result whose K is 0."""
    y[...] = 0 if args["bias"] is None else args["bias"]
    if args["scale_out"] is not None:
        y[...] *= args["scale_out"]
    return y


def _extras_of(call: str, args: Mapping[str, Array | Factor], one: RowCall, y: Array) -> _Extras:
    """Return the epilogue of a call: a bias alone, or a graph with the factors of matrices and of the result."""
    if all([args[name] is None for name in ("scale_a", "scale_b", "scale_out")]):
        bias = one.vector("bias")
        return _Extras(Epilogue(bias="" if bias is None else "n"), () if bias is None else (bias,))
    shape = tuple(y.shape)
    traced, found = scales_epilogue(shape, args)

    def no_other(shape: tuple[int, ...], element: str) -> Array:
        raise AssertionError(f"{call}: the epilogue has one result, not one of {shape} {element}")

    made = bound(traced, found, y, shape, no_other)
    made.check_memory(call, one.matrix_of(y), {"a": one.views["a"], "b": one.views["b"]})
    return _Extras(
        Epilogue(graph=made.graph), tuple([one.view_of(t) if hasattr(t, "shape") else t for t in made.operands])
    )


def explain_block_scaled(call: str, given: BlockScaled, gpu: str = "") -> Explanation:
    """Explain a call on a GPU with a name, by default on that of its arrays or on the first one.

    Without a GPU with a kernel it is on sm_120, whose kernel the interpreter runs.
    """
    (scale_a, _), (scale_b, _) = (levels_of(call, name, getattr(given, name)) for name in ("scale_a", "scale_b"))
    a, b = given.a, given.b
    scaling = check_block_scaled(call, (a, b, scale_a, scale_b), given.recipe)
    backend = _backend_named(call, gpu, scaling) if gpu else _backend_here(a)
    elements, result = [element_name(x.dtype) for x in (a, b)], "bf16"
    result = result if given.dtype is None else element_name(given.dtype)
    if not backend.has_tensor_memory:
        of = elements[0], elements[1]
        config = _sm120(of, (a.shape[0], b.shape[1]), scaling, result, backend.target)
        config = config._replace(epilogue=Epilogue(bias="" if given.bias is None else "n"))
        return Explanation(
            operation=call,
            gpu=config.chip,
            kernel=config.name,
            why=f"scales of blocks of {scaling.width} along K",
            flops=2 * a.shape[0] * b.shape[1] * a.shape[1] * config.packed,
            status=NEVER_RUN,
        )
    elements = ["ui8"] * 2 if scaling.packed == 2 else elements
    recipe = next(name for name, width in WIDTHS.items() if width == scaling.width)
    plan = ScaledGemm(
        element_A=elements[0], element_B=elements[1], element_D=result, recipe=recipe, kernel_cc=backend.chip
    )
    # The call copies operands that TMA cannot read, and scales that have padding.
    views = [
        ArrayView(0, tuple(x.shape), aligned_strides(x.shape, mode, 1), element, -1, "numpy", None)
        for x, element, mode in zip((a, b), elements, (1, 0))
    ]
    return replace(explained(plan, views[0], views[1]), operation=call)


def _backend_here(a: Array) -> Backend:
    from cute_dialect.runtime.driver import NoGpuError, driver  # late: start-up

    device = getattr(a, "device", None)
    try:
        capability = driver().capability(getattr(device, "index", None) or 0)
    except NoGpuError:
        return SM120
    return next((b for b in UNMEASURED if b.runs_on(capability)), SM120)


def _backend_named(call: str, gpu: str, scaling: Scaling) -> Backend:
    """Return the kernels for a GPU with a name.  Raises ArgumentError for unknown names, UnsupportedError."""
    capability = capability_named(gpu)
    if capability is None:
        raise unknown_gpu(gpu)
    return _backend_for(call, capability, scaling)


def _element_of(elements: tuple[str, str], scaling: Scaling) -> str:
    a, b = (FP4, FP4) if scaling.packed == 2 else elements
    return a if a == b else f"{a}_{b}"


def _sm120(
    elements: tuple[str, str], extents: tuple[int, int], scaling: Scaling, result: str, chip: str
) -> Sm120Config:
    """Return the kernel of sm_120 for the types of A and B, and for M and N."""
    m, n = extents
    wide = (128, 64) if scaling.name == "nv" else (128, 128)
    tile = wide if m > 64 and n > 64 else (64, 64)
    found = Sm120Config(_element_of(elements, scaling), tile, output=result, scaling=scaling.name, chip=chip)
    return found._replace(stages=min(4, found.most_stages))


def _sm100(
    elements: tuple[str, str], extents: tuple[int, int, int], scaling: Scaling, result: str, chip: str, *, direct: bool
) -> Sm100Config:
    """Return the kernel of sm_100 for the types of A and B, and for M, N and the columns of the array A."""
    m, n, k = extents
    recipe = next(name for name, width in WIDTHS.items() if width == scaling.width)
    element = _element_of(elements, scaling)
    problem = Problem(m, n, k * scaling.packed, element, result, "k", "k", 1, recipe)
    tile = min(SCALED_TILES, key=lambda tile: bound_of_tile(tile, problem, chip))
    found = Sm100Config(element, result, tile=tile, stages=2, chip=chip, scaling=scaling.name, direct=direct)
    return found._replace(stages=found.most_stages)


def _backend_of(call: str, one: RowCall, scaling: Scaling) -> Backend:
    """Return the kernels for the GPU, those of sm_120 for the interpreter.  Raises UnsupportedError."""
    one.check_gpu()
    if one.cpu:
        return SM120
    from cute_dialect.runtime.driver import driver  # late: start-up

    return _backend_for(call, driver().capability(one.gpu), scaling)


def _backend_for(call: str, capability: tuple[int, int], scaling: Scaling) -> Backend:
    """Return the kernels for a compute capability.  Raises UnsupportedError."""
    for backend in UNMEASURED:
        if backend.runs_on(capability):
            return backend
    (major, minor), chips = capability, listed(tuple([f"sm_{b.chip}" for b in UNMEASURED]))
    raise UnsupportedError(
        f"{call}: scales of blocks of {scaling.width} along K need {chips}, but the GPU is sm_{major}{minor}; use one "
        'scale per matrix, per row, or per block of 128 along K, or device="cpu"'
    )
