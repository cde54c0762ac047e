"""Cost of an epilogue per element of the accumulator: instructions, special functions, memory traffic.

The counts come from the epilogue's graph; :mod:`cute_dialect.op.select.cost_model` converts them to microseconds.

>>> work_of(Epilogue(bias="n", activation="gelu"), "bf16")
Work(instructions=15.5, specials=1.0, read=0, written=0, scattered=0, reduced=0.0, prefetched=0)
>>> work_of(Epilogue(), "bf16")
Work(instructions=0.0, specials=0.0, read=0.0, written=0.0, scattered=0.0, reduced=0.0, prefetched=0.0)
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from cute_dialect.kernels.common.elements import BITS
from cute_dialect.kernels.epilogue.combination import Epilogue

__all__ = ["NO_WORK", "Work", "work_of"]


class Work(NamedTuple):
    """Work of an epilogue per element of the accumulator."""

    instructions: float = 0.0  # of the FMA and integer pipes; those of half the rate count twice
    specials: float = 0.0  # exponentials, reciprocals and roots
    read: float = 0.0  # bits of matrices like the result
    written: float = 0.0  # bits of results other than D that kernels may store like D
    scattered: float = 0.0  # bits of other results
    reduced: float = 0.0  # number of row reductions
    prefetched: float = 0.0  # bits of ``read`` that kernels which store by chunks may prefetch

    @property
    def prefetch_limit(self) -> int:
        """Most accumulator registers per thread of kernels that prefetch; with more, registers spill."""
        return 0 if not self.prefetched else 128 if self.instructions <= 40 else 96


NO_WORK = Work()

_COUNTS: dict[str, tuple[float, float]] = {
    "accum": (0, 0), "constant": (0, 0), "load": (0, 0), "even": (0, 0), "odd": (0, 0), "interleave": (0, 0),
    "row": (0, 0), "column": (0, 0), "matrix": (0, 0), "identity": (0, 0), "negative": (0, 0), "abs": (0, 0),
    "relu": (2, 0), "leaky_relu": (3, 0), "prelu": (3, 0), "relu6": (4, 0), "hardsigmoid": (5, 0), "hardswish": (8, 0),
    "sigmoid": (3, 2), "silu": (6, 2), "tanh": (14, 2), "gelu": (13, 1), "gelu_tanh": (9, 2), "softplus": (30, 2),
    "elu": (28, 1), "mish": (11, 2), "square_relu": (3, 0), "d_relu": (4, 0), "d_leaky_relu": (4, 0), "d_relu6": (4, 0),
    "d_hardsigmoid": (4, 0), "d_hardswish": (5, 0), "d_sigmoid": (6, 2), "d_silu": (14, 4), "d_tanh": (8, 2),
    "d_gelu": (20, 2), "d_gelu_tanh": (20, 4), "d_softplus": (3, 2), "d_elu": (5, 1), "d_mish": (18, 2),
    "divide": (10, 1), "floor_divide": (14, 1), "remainder": (16, 1), "sqrt": (8, 1), "rsqrt": (4, 1), "exp": (3, 1),
    "exp2": (2, 1), "log": (10, 1), "erf": (20, 1), "maximum": (2, 0), "minimum": (2, 0), "power_of_two": (4, 0),
    "cast": (2, 0), "random": (30, 0), "whole": (4, 0), "block": (4, 0), "hook": (4, 0),
}  # fmt: skip
"""Operation of a graph -> instructions and special functions; other operations are one instruction."""
_VECTOR = 2.5
"""Instructions per element of a per-column vector: an exchange between lanes, and a conversion."""
_REDUCED = 3.0
"""Instructions per element of a reduction."""


@lru_cache(maxsize=1024)
def work_of(epilogue: Epilogue | None, output: str) -> Work:
    """Return the work of an epilogue; none for None.

    Args:
        output: element of the result, and of a source that does not belong to a graph.
    """
    graph = None if epilogue is None else epilogue.as_graph()
    if graph is None:
        return NO_WORK
    counts = [_COUNTS.get(node.op, (1.0, 0.0)) for node in graph.nodes]
    share = [0.5 if half else 1.0 for half in graph.halves]
    vectors = sum(_VECTOR - 1.0 for x in graph.inputs if x.kind == "row")
    reduced = sum(_REDUCED for x in graph.outputs if x.reduce)
    own = {} if epilogue is None or epilogue.graph is not None else {"f32": BITS[output]}
    read = sum(
        own.get(x.element, BITS.get(x.element, 32)) * (0.5 if x.half else 1.0)
        for x in graph.inputs if x.kind == "aux"
    )  # fmt: skip
    bits = [
        (x.tma and x.element in ("", output) and BITS[output] == 16, BITS[x.element or output] * share[x.node])
        for x in graph.outputs[1:] if not x.reduce and not x.block
    ]  # fmt: skip
    return Work(
        sum(n * part for (n, _), part in zip(counts, share)) + vectors + reduced,
        sum(n * part for (_, n), part in zip(counts, share)),
        read,
        sum(n for like, n in bits if like),
        sum(n for like, n in bits if not like),
        float(sum(x.reduce != "" and x.axis == "n" for x in graph.outputs)),
        0 if epilogue is None or BITS[output] == 32 else _prefetched_bits(epilogue),
    )


def _prefetched_bits(epilogue: Epilogue) -> int:
    """Return the bits of a 16-bit matrix that may be prefetched; more matrices take too many registers."""
    graph = epilogue.graph
    if graph is None or graph.paired or graph.reduces or epilogue.whole_tiles:
        return 0
    read = [x for x in graph.inputs if x.kind == "aux"]
    bits = sum(BITS.get(x.element, 32) for x in read)
    return bits if bits <= 16 and all(x.pairs for x in read) else 0
