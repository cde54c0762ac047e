"""Final step of an epilogue reduction: ``R[i,l] = f over p of P[p,i,l]``, the sum, maximum or minimum of partial
results.

A GEMM writes one partial result per row (column) and group of columns (rows), see
:class:`~cute_dialect.kernels.epilogue.graph.Output`. This kernel combines them in a fixed order. Each thread takes
every eighth partial result (every 256th if there is one result per block), followed by a tree reduction in shared
memory.

    launch(p, r)                                                 # arrays; the first call of a specialization compiles

>>> CombineConfig("max", "f16", 1).name
'combine-max-f16-1'
"""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic, reportOptionalMemberAccess=false

from typing import Any, NamedTuple

import cute_dialect.lang as cute
from cute_dialect.kernels.common.elements import number
from cute_dialect.kernels.common.traced_text import printed
from cute_dialect.kernels.epilogue.graph import REDUCTIONS

__all__ = ["CombineConfig", "combine_parts_text", "launch"]

_THREADS = 256

_AT_ONCE = 8
"""Partial results that a thread loads before it combines them."""


class CombineConfig(NamedTuple):
    """Configuration of the reduction."""

    operation: str = "sum"  # "sum", "max" or "min"
    output: str = "f32"  # type of R
    # Results per block: 32 for many results, 8 (a memory sector) for some results of many partial results, 1 for few
    # results of many partial results.
    across: int = 32
    apart: bool = False  # of two matrices, write the results of the second to S
    dependent: bool = (
        False  # programmatic dependent launch: starts while the kernel that writes P ends, and waits for it
    )

    @property
    def name(self) -> str:
        """Name of the kernel."""
        return f"combine-{self.operation}-{self.output}-{self.across}{'-2' * self.apart}{'-pdl' * self.dependent}"


DEFAULT = CombineConfig()


@cute.jit
def launch(P: cute.Tensor, R: cute.Tensor, S: cute.Tensor | None = None, config: cute.Constexpr[Any] = DEFAULT):
    """Launch one block per ``across`` results."""
    assert P.shape[1] == R.shape[0], "P must have partial results for each row of R"
    if S is not None:
        assert S.shape[0] == R.shape[0], "R and S must have the same number of results"
        assert P.shape[2] == 2, "P must have partial results of two matrices"
    else:
        assert P.shape[2] == R.shape[1], "P must have partial results for each matrix of R"
    blocks = cute.ceil_div(R.shape[0], config.across)
    combine(P, R, S, config).launch(grid=(blocks, P.shape[2], 1), block=_THREADS, pdl=config.dependent)


@cute.kernel(name="combine")
def combine(P: Any, R: Any, S: Any, config: cute.Constexpr[Any]):
    """Combine the partial results of this block."""
    if config.dependent:
        cute.arch.griddepcontrol_wait()
    block, matrix, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    f = {"sum": _add, "max": cute.max, "min": cute.min}[config.operation]
    across, lines = config.across, _THREADS // config.across
    lane, line = thread % across, thread // across
    at = block * across + lane
    identity = cute.Float32(REDUCTIONS[config.operation])
    total = identity
    if at < R.shape[0]:
        last = P.shape[0] - 1
        for part in range(line, P.shape[0], lines * _AT_ONCE):
            # Load all before using any, so that the loads are in flight together.
            found = [P[cute.min(part + i * lines, last), at, matrix] for i in range(_AT_ONCE)]
            for i in cute.range_constexpr(_AT_ONCE):
                total = f(total, cute.where(part + i * lines <= last, found[i], identity))
    held = cute.smem_tensor(cute.Float32, cute.make_layout((lines, across), stride=(across, 1)))
    held[line, lane] = total
    for i in cute.range_constexpr(lines.bit_length() - 1):
        left = lines >> (i + 1)
        cute.arch.sync_threads()
        if line < left:
            held[line, lane] = f(held[line, lane], held[line + left, lane])
    if (line == 0) & (at < R.shape[0]):  # the thread itself wrote this element
        found = held[0, lane].to(number(config.output))
        if S is None:
            R[at, matrix] = found
        elif matrix == 0:
            R[at, 0] = found
        else:
            S[at, 0] = found


def _add(x: Any, y: Any) -> Any:
    return x + y


@printed
def combine_parts_text(config: CombineConfig | None = None) -> cute.Compiled:
    """Trace the kernel and the host function ``launch(P, R)``, or ``launch(P, R, S)`` for two matrices apart.

    P is f32 with any strides, and R has the configured type.
    """
    c = config or DEFAULT
    kind = number(c.output)
    parts, results = cute.Tensor[cute.Float32, "(?,?,?):(?,?,?)"], cute.Tensor[kind, "(?,?):(?,?)"]
    more = (results,) if c.apart else ()
    return cute.trace(launch, parts, results, *more, config=c)
