"""GEMM with 2:4 sparse weights: ``op.mm_sparse``, and ``op.compress_2_4`` and ``op.expand_2_4``.

Two of each four consecutive weights of a row may be nonzero.  ``wgmma.mma_async.sp`` multiplies the kept half at twice
the rate; see :mod:`cute_dialect.kernels.gemm.sparse`.  On GPUs with tensor memory the MMA is ``tcgen05.mma.sp``
(:mod:`cute_dialect.kernels.gemm.sparse_sm100`), which needs the metadata in another order: a call copies them.
"""

# torch is not installed where types are checked; arrays may belong to any library.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

from cute_dialect.kernels.epilogue.combination import Epilogue
from cute_dialect.kernels.gemm.sparse import CompressConfig, compress_text, expand_text, sparse_gemm_text
from cute_dialect.kernels.gemm.sparse_sm100 import sparse_sm100_text
from cute_dialect.op.arrays.library import break_graph, call_operator
from cute_dialect.op.errors import ArgumentError, ShapeError, UnsupportedError
from cute_dialect.op.execute.array_call import RowCall, RowKernel
from cute_dialect.op.execute.call_cache import KnownCalls
from cute_dialect.op.execute.recording import needs_gradients
from cute_dialect.op.keywords import check_keywords
from cute_dialect.op.problems.compressed_weights import SparseWeight
from cute_dialect.op.problems.sparse_weights import (
    ELEMENTS,
    check_problem,
    check_sparse,
    choose_config,
    metadata_by_lanes,
    metadata_shape,
)
from cute_dialect.op.select.backends import WGMMA, Backend, chip_of, of_tensor_memory, unmeasured
from cute_dialect.op.select.gemm_dispatch import gpu_of
from cute_dialect.op.select.kernel_choice import Problem
from cute_dialect.op.select.sm100_model import choose_sparse
from cute_dialect.runtime.arrays import ArrayView

if TYPE_CHECKING:  # pragma: no cover
    from typing import Unpack

    from cute_dialect.op.signature_types import Array, Interpreted

_KNOWN, _KNOWN_EXPANDED = KnownCalls(tf32=False), KnownCalls(tf32=False)
"""Cached calls of ``mm_sparse`` and ``expand_2_4``."""


def compress_2_4(w: Array, *, device: object = None, stream: object = None, **run: Unpack[Interpreted]) -> SparseWeight:
    """Compress weights with at most two nonzero elements in each four consecutive ones of a row, for :func:`mm_sparse`.

    The call waits for the GPU, because it checks the weights.

    Args:
        w: (N, K), f16 or bf16, or torch's ``SparseSemiStructuredTensor``.  N is a multiple of 8, K of 16.
        device, stream, run: as in :func:`cute_dialect.op.mm`.

    Raises:
        OpError: if the arguments are not supported, or a group of four has more nonzero elements.
    """
    if run:
        check_keywords("compress_2_4", compress_2_4, run)
    return compressed("compress_2_4", "w", w, "set the others to 0", device, stream, run)


def compressed(
    call: str,
    name: str,
    w: Array,
    cure: str,
    device: object = None,
    stream: object = None,
    run: Interpreted | None = None,
) -> SparseWeight:
    """Compute :func:`compress_2_4` for ``call``, whose argument is ``name``.

    Args:
        cure: advice for weights with more nonzero elements, for the message of the error.
    """
    break_graph(call)
    if type(w).__name__.startswith("SparseSemiStructuredTensor"):
        w = w.to_dense()
    one = RowCall(call, {name: w}, device, (), ELEMENTS, stream=stream, run=run)
    if len(one.x.shape) != 2:
        raise ShapeError(f"{call}: {name} has shape {one.x.shape}; it must have rank 2")
    n, k = one.x.shape
    check_problem(call, n, k, name)
    c = CompressConfig(one.element)
    with one.on():
        kept, words, wrong = one.result((n, k // 2)), one.result(metadata_shape(n, k), "i32"), one.indices(1, (1,))
        kernel = RowKernel(c.name, compress_text, (c,), "launch_compress", target_here(one))
        one.launch(kernel, one.aligned_matrix(name), one.matrix_of(kept), one.matrix_of(words), wrong)
        found = int(one.native(wrong)[0])  # pyright: ignore[reportIndexIssue]
    if found:
        raise ArgumentError(
            f"{call}: {found} groups of four consecutive weights have more than two nonzero elements; {cure}"
        )
    return SparseWeight(kept, words)


def expand_2_4(w: SparseWeight, *, device: object = None, stream: object = None, **run: Unpack[Interpreted]) -> Array:
    """Return compressed weights as an (N, K) matrix; the inverse of :func:`compress_2_4`.

    Args:
        w: the result of :func:`compress_2_4`.
        device, stream, run: as in :func:`cute_dialect.op.mm`.

    Raises:
        OpError: if the arguments are not supported.
    """
    if run:
        check_keywords("expand_2_4", expand_2_4, run)
    check_sparse("expand_2_4", w)
    torch = sys.modules.get("torch")
    if torch is not None and torch.compiler.is_compiling():
        from cute_dialect.op.torch.dispatch import CUTE  # late: torch

        return call_operator("expand_2_4", lambda: CUTE.expand_2_4(*w), w.kept, device, stream, run, "w.kept")
    return expanded(w, device, stream, run)


def expanded(w: SparseWeight, device: object = None, stream: object = None, run: Interpreted | None = None) -> Array:
    """Compute :func:`expand_2_4` for weights that are checked."""

    def compute() -> Array:
        arrays = {"w.kept": w.kept, "w.metadata": w.metadata}
        one = _call("expand_2_4", arrays, ("w.metadata",), device, stream, run)
        c = CompressConfig(one.element)
        with one.on():
            dense = one.result(w.shape)
            kernel = RowKernel(f"{c.name}-expand", expand_text, (c,), "launch_expand", target_here(one))
            one.launch(kernel, one.aligned_matrix("w.kept"), one.matrix("w.metadata"), one.matrix_of(dense))
        return dense

    if device is not None or stream is not None or run:
        return compute()
    return _KNOWN_EXPANDED.call(w.shape, tuple(w), compute)


def mm_sparse(
    x: Array,
    w: SparseWeight,
    bias: Array = None,
    *,
    kernel: str | None = None,
    device: object = None,
    stream: object = None,
    **run: Unpack[Interpreted],
) -> Array:
    """Return ``x @ w.T + bias`` for 2:4 sparse weights ``w``.

    Args:
        x: (…, K), f16 or bf16.
        w: (N, K) weights, the result of :func:`compress_2_4`, of the type of ``x``.
        bias: (N,), of the type of ``x``.
        kernel: on the interpreter, the name of a kernel for another GPU, as :func:`cute_dialect.op.explain` reports it.
        device, stream, run: as in :func:`cute_dialect.op.mm`.

    Raises:
        OpError: if the arguments are not supported.
    """
    if run:
        check_keywords("mm_sparse", mm_sparse, run)
    check_sparse("mm_sparse", w)
    torch = sys.modules.get("torch")
    if torch is not None and (torch.compiler.is_compiling() or needs_gradients(x, bias)):
        from cute_dialect.op.torch.dispatch import CUTE  # late: torch

        if kernel is not None:
            raise UnsupportedError("mm_sparse: kernel is not supported in a graph or with gradients; omit it")
        return call_operator("mm_sparse", lambda: CUTE.mm_sparse(x, *w, bias), x, device, stream, run)
    return multiplied(x, w, bias, device, stream, run, kernel)


def target_here(one: RowCall) -> str:
    """Return the target of kernels for any GPU, or "" for the default target."""
    return "" if one.cpu or WGMMA.runs_on(one.capability()) else chip_of(one.capability())


def _backend(one: RowCall, kernel: str | None) -> Backend | None:
    """Return the backend of a GPU with tensor memory, or that of a named kernel; None for the kernels of sm_90."""
    if one.cpu:
        named = re.search(r"-sm(\d+)-sparse", kernel or "")
        return None if named is None else unmeasured(int(named[1]))
    return of_tensor_memory(one.capability())


def _by_tensor_memory(one: RowCall, x: ArrayView, y: ArrayView, backend: Backend, kernel: str | None) -> None:
    """Launch the kernel of a chip with tensor memory on ``x`` and the transposed result."""
    w, bias = SparseWeight(one.native(one.views["w.kept"]), one.native(one.views["w.metadata"])), one.vector("bias")
    (n, k), element = w.shape, one.element
    epilogue = Epilogue(bias="" if bias is None else "m", bias_type="f32" if bias is None else element)
    config = choose_sparse(Problem(n, x.shape[0], k, element, element, "k", "k", 1), backend.target, epilogue)
    if kernel not in (None, config.name):
        raise UnsupportedError(
            f"mm_sparse: kernel {kernel!r} does not match this call; omit kernel, or use {config.name!r}"
        )
    words = one.view_of(metadata_by_lanes(w.metadata, n, k))
    made = RowKernel(config.name, sparse_sm100_text, (config,), target=backend.target)
    one.launch(made, one.aligned_matrix("w.kept"), x, y, words, bias)


def multiplied(
    x: Array,
    w: SparseWeight,
    bias: Array,
    device: object = None,
    stream: object = None,
    run: Interpreted | None = None,
    kernel: str | None = None,
) -> Array:
    """Compute :func:`mm_sparse` without gradients, for weights that are checked."""

    def compute() -> Array:
        arrays = {"x": x, "w.kept": w.kept, "w.metadata": w.metadata, "bias": bias}
        one, (n, k) = _call("mm_sparse", arrays, ("w.metadata",), device, stream, run), w.shape
        if one.length() != k:
            raise ShapeError(f"mm_sparse: x has shape {one.x.shape}, but w has {k} columns; pass (…, {k})")
        one.expect("bias", (n,))
        with one.on():
            y = one.result((*one.x.shape[:-1], n))
            if one.count:
                one.check_gpu()
                to, backend = one.matrix_of(y), _backend(one, kernel)
                transposed = to._replace(shape=to.shape[::-1], strides=(1, n))
                if backend is not None:
                    _by_tensor_memory(one, one.aligned_matrix("x"), transposed, backend, kernel)
                    return y
                sms = 132 if one.cpu else gpu_of(one.gpu)[1]
                c = choose_config(one.count, n, one.element, has_bias=bias is not None, sms=sms)
                if kernel not in (None, c.name):
                    raise UnsupportedError(
                        f"mm_sparse: kernel {kernel!r} does not match this call; omit kernel, or use {c.name!r}"
                    )
                made, words = RowKernel(c.name, sparse_gemm_text, (c,)), one.matrix("w.metadata")
                matrices = one.aligned_matrix("w.kept"), one.aligned_matrix("x"), transposed
                one.launch(made, *matrices, words, one.vector("bias"))
        return y

    if device is not None or stream is not None or run or kernel is not None:
        return compute()
    return _KNOWN.call(bias is None, tuple([t for t in (x, *w, bias) if t is not None]), compute)


def _call(
    name: str,
    arrays: dict[str, Array],
    others: tuple[str, ...],
    device: object,
    stream: object,
    run: Interpreted | None,
) -> RowCall:
    """Check the types of arrays, the metadata among them."""
    one = RowCall(name, arrays, device, others, ELEMENTS, stream=stream, run=run)
    if one.views["w.metadata"].dtype != "i32":
        raise one.wrong_type("w.metadata", "i32")
    return one
