"""Explanations of steps of optimizers, which :func:`cute_dialect.op.explain` returns.

>>> print(explain_adamw([(4096, 4096), (4096,), (11008, 4096)], "bf16"))
adamw_ of 3 parameters, 61870080 elements
  kernel    adamw-bf16-f32-8: 15105 blocks of up to 4096 elements of a parameter
  bound     332.6 us: 1.36 GB (DRAM, an H200)
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# Arrays belong to any library.

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from cute_dialect.kernels.common.elements import BITS
from cute_dialect.kernels.elementwise.adamw import CHUNK, ELEMENTS, LISTS, AdamwArrays, AdamwConfig, adamw_text
from cute_dialect.op.errors import ArgumentError, DtypeError, ShapeError
from cute_dialect.op.execute.array_call import RowKernel
from cute_dialect.op.explanations.gemm import Explanation, Line
from cute_dialect.op.explanations.rows import DRAM, shape_and_type
from cute_dialect.op.signature_types import Array

ADAMW = "adamw_"
"""Name of the function in errors."""


@dataclass(frozen=True, kw_only=True)
class AdamwExplanation(Explanation):
    """The launches of a step of AdamW: one for all parameters of equal types and alignment."""

    parameters: int
    elements: int
    blocks: tuple[int, ...]  # of each launch

    def _title(self) -> str:
        return f"{self.operation} of {self.parameters} parameters, {self.elements} elements"

    def _after(self) -> Iterator[Line]:
        for kernel, blocks in list(zip(self.kernels or (), self.blocks))[1:]:
            yield "then", f"{kernel.name}: {_words(blocks)}"

    def _limits(self) -> str:
        return f"{self.bytes / 1e9:.3g} GB (DRAM, an H200)"


def explain_adamw(
    params: Sequence[Array],
    element: str = "f32",
    grads: Sequence[Array] | None = None,
    exp_avgs: Sequence[Array] | None = None,
    exp_avg_sqs: Sequence[Array] | None = None,
    arrays: Sequence[str] = (),
) -> AdamwExplanation:
    """Explain a step of AdamW.  Raises the errors of the function for lists, shapes and types.

    Args:
        params, grads, exp_avgs, exp_avg_sqs: lists of arrays or of shapes; default: like ``params``, with f32 moments.
        element: type of parameters that are given as shapes.
        arrays: the arguments that are arrays in place of numbers, fields of ``AdamwArrays``.
    """
    given = dict(zip(LISTS, (params, grads, exp_avgs, exp_avg_sqs)))
    for name, x in given.items():
        if (x is not None or name == "params") and not isinstance(x, list | tuple):
            raise ArgumentError(f"{ADAMW}: {name} is of type {type(x).__name__}; pass a list of arrays or shapes")
        if x is not None and len(x) != len(params):
            raise ArgumentError(f"{ADAMW}: {name} has {len(x)} arrays for {len(params)} params; pass one for each")
    kept = [i for i in range(len(params)) if grads is None or grads[i] is not None]
    if not kept:
        raise ShapeError(f"{ADAMW}: there are no parameters with a gradient; pass at least one")
    counts: Counter[AdamwConfig] = Counter()
    blocks: Counter[AdamwConfig] = Counter()
    for i in kept:
        own = [x if x is None else x[i] for x in given.values()]
        shape, kind = shape_and_type(ADAMW, f"params[{i}]", own[0], element, ELEMENTS)
        state = "f32"
        for name, x, allowed in zip(LISTS[1:], own[1:], ((kind,), (kind, "f32"), (kind, "f32"))):
            if x is None:
                continue
            other, found = shape_and_type(ADAMW, f"{name}[{i}]", x, kind if name == "grads" else "f32", allowed)
            if other != shape:
                raise ShapeError(f"{ADAMW}: {name}[{i}] has shape {other}; it must have {shape}, like params[{i}]")
            if name == "exp_avg_sqs" and own[2] is not None and found != state:
                raise DtypeError(f"{ADAMW}: {name}[{i}] has dtype {found}; it must have {state}")
            state = state if name == "grads" else found
        is_aligned = all([_address(x) % 16 == 0 for x in own])
        vector = 128 // min(BITS[kind], BITS[state]) if is_aligned else 1
        config = AdamwConfig(kind, state, vector, tuple([n for n in AdamwArrays._fields if n in arrays]))
        counts[config] += prod(shape)
        blocks[config] += -(-prod(shape) // CHUNK)
    # A step reads and writes a parameter and its moments, and reads its gradient.
    size = sum([n * (3 * BITS[c.element] + 4 * BITS[c.state]) // 8 for c, n in counts.items()])
    kernels = tuple([RowKernel(c.name, adamw_text, (c,)) for c in counts])
    return AdamwExplanation(
        operation=ADAMW,
        kernel=kernels[0].name,
        why=_words(next(iter(blocks.values()))),
        bytes=size,
        bound=size / DRAM / 1e6,
        kernels=kernels,
        parameters=len(kept),
        elements=sum(counts.values()),
        blocks=tuple(blocks.values()),
    )


def _words(blocks: int) -> str:
    return f"{blocks} block{'s'[: blocks > 1]} of up to {CHUNK} elements of a parameter"


def _address(x: Array) -> int:
    """Return the address of a tensor or a NumPy array; 0 for a shape."""
    if hasattr(x, "data_ptr"):
        return x.data_ptr()
    return x.ctypes.data if hasattr(x, "ctypes") else 0
