"""Rows of a table by their indices, ``op.embedding``."""

# torch is not installed where types are checked; arrays may belong to any library.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import sys
from math import prod
from typing import TYPE_CHECKING

from cute_dialect.kernels.rows.embedding import EmbeddingConfig, gather_text, gradient_text, links_text, zero_text
from cute_dialect.op.arrays.library import call_operator
from cute_dialect.op.errors import ArgumentError, ShapeError, UnsupportedError
from cute_dialect.op.execute.array_call import RowCall, RowKernel
from cute_dialect.op.execute.call_cache import KnownCalls
from cute_dialect.op.execute.recording import needs_gradients
from cute_dialect.op.keywords import check_keywords
from cute_dialect.op.problems.routing import NUMBERS, ROUTED
from cute_dialect.runtime.call_options import index_of

if TYPE_CHECKING:  # pragma: no cover
    from typing import Unpack

    from cute_dialect.op.signature_types import Array, Interpreted

_KNOWN, _KNOWN_GRADIENTS = KnownCalls(tf32=False), KnownCalls(tf32=False)
"""Cached calls."""

_LIMIT = 1 << 31
"""Rows of the table, tokens, and vectors of a result."""

_SPELLINGS = {
    "max_norm": "normalize the weight before the call",
    "norm_type": "normalize the weight before the call",
    "scale_grad_by_freq": "it is not supported",
    "sparse": "gradients are dense",
}
"""Arguments of ``torch.nn.functional.embedding``."""


def embedding(
    input: Array,
    weight: Array,
    padding_idx: int | None = None,
    *,
    device: object = None,
    stream: object = None,
    **run: Unpack[Interpreted],
) -> Array:
    """Return rows of ``weight`` by their indices, like ``torch.nn.functional.embedding``.

    The gradient of a row is summed in f32 in the order of the tokens, and rounded once: equal calls give equal bits.

    Args:
        input: (…), i32 or i64.  An index outside of the rows of ``weight`` gives a row of NaN, and has no gradient.
        weight: (V, C), f16, bf16 or f32.
        padding_idx: index of a row without a gradient; negative ones count from the end.
        device, stream, run: as in :func:`cute_dialect.op.mm`.

    Returns:
        (…, C), of the type of ``weight``.

    Raises:
        OpError: if the arguments are not supported.
    """
    if run:
        check_keywords("embedding", embedding, run, spellings=_SPELLINGS)
    torch = sys.modules.get("torch")
    if torch is not None and (torch.compiler.is_compiling() or needs_gradients(weight)):
        from cute_dialect.op.torch.dispatch import CUTE  # late: torch

        padding = -1 if padding_idx is None else check_padding(padding_idx, weight.shape[0])

        def compute() -> Array:
            return call_operator(
                "embedding", lambda: CUTE.embedding(weight, input, padding), weight, device, stream, run, "weight"
            )

        if device is None and stream is None and not run and not _KNOWN.is_traced():
            return _KNOWN.differentiable(padding, (weight, input), compute)
        return compute()
    if padding_idx is not None:
        check_padding(padding_idx, weight.shape[0])
    return gathered(weight, input, device, stream, run)


def check_padding(padding_idx: object, rows: int) -> int:
    """Return the index of the row without a gradient.  Raises ArgumentError."""
    found = index_of(padding_idx)
    if found is None or not -rows <= found < rows:
        raise ArgumentError(f"embedding: padding_idx is {padding_idx!r}; pass an index of the {rows} rows, or None")
    return found % rows


def gathered(
    weight: Array, input: Array, device: object = None, stream: object = None, run: Interpreted | None = None
) -> Array:
    """Compute :func:`embedding` without gradients."""

    def compute() -> Array:
        arrays = {"weight": weight, "input": input}
        one = RowCall("embedding", arrays, device, ("input",), ROUTED, stream=stream, run=run)
        if len(one.x.shape) != 2:
            raise ShapeError(f"embedding: weight has shape {one.x.shape}; it must have rank 2")
        (rows, columns), c = one.x.shape, _config(one, "input")
        shape = one.views["input"].shape
        _check_size("embedding", c, rows, prod(shape), columns)
        with one.on():
            out = one.result((*shape, columns))
            if prod(shape) and columns:
                kernel = RowKernel(c.name, gather_text, (c,))
                one.launch(kernel, one.flat("input"), one.matrix("weight"), one.matrix_of(out))
        return out

    usual = device is None and stream is None and not run
    return _KNOWN.call("gather", (weight, input), compute) if usual else compute()


def embedding_backward(dout: Array, input: Array, rows: int, padding: int, device: object = None) -> Array:
    """Return the gradient of the table.

    Args:
        dout: (…, C), the gradient of the result.
        rows: V, the number of rows of the table.
        padding: index without a gradient, or -1.
    """

    def compute() -> Array:
        one = RowCall("embedding_backward", {"dout": dout, "input": input}, device, ("input",), ROUTED)
        columns, c = one.length(), _config(one, "input")
        one.expect("input", one.x.shape[:-1])
        _check_size("embedding", c, rows, one.count, columns)
        table = one.result((rows, columns))
        if rows and columns:
            one.launch(RowKernel(f"{c.name}-zero", zero_text, (c,), "launch_zero"), one.matrix_of(table))
            if one.count:
                indices, links = one.flat("input"), one.view_of(one.result((one.count,), "i32"))
                kernel = RowKernel(f"{c.name}-links", links_text, (c,), "launch_links")
                one.launch(kernel, indices, links, rows, padding)
                kernel = RowKernel(f"{c.name}-gradient", gradient_text, (c,), "launch_gradient")
                one.launch(kernel, one.matrix("dout"), indices, links, one.matrix_of(table))
        return table

    how = (rows, padding)
    return _KNOWN_GRADIENTS.call(how, (dout, input), compute) if device is None else compute()


def _config(one: RowCall, name: str) -> EmbeddingConfig:
    """Return the configuration for the types of a call.  Raises DtypeError."""
    if one.views[name].dtype not in NUMBERS:
        raise one.wrong_type(name, " or ".join(NUMBERS))
    return EmbeddingConfig(one.element, one.views[name].dtype)


def _check_size(call: str, c: EmbeddingConfig, rows: int, tokens: int, columns: int) -> None:
    """Raise UnsupportedError for sizes that exceed the limits of the kernels."""
    vectors = -(-columns // c.vector)
    if max(rows, tokens) >= _LIMIT or max(rows, tokens) * vectors >= _LIMIT * 256:
        raise UnsupportedError(f"{call}: {tokens} rows of a table of {rows} x {columns} exceed the limits; split them")
