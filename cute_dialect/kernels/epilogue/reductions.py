"""Reductions of partial results that a GEMM wrote to memory, in a fixed order.

**Split-K** (:func:`reduce_parts_text`): ``D[M,N] = f(sum over s of W[M,N,s])``, with an epilogue ``f``. It follows a
GEMM that wrote the partial accumulators of split-K slices. With zero slices it computes the epilogue of zeros, as for a
GEMM with K = 0. A thread has four adjacent elements of a row. Rows of W are 16-byte aligned, and its N is a multiple of
4.

    launch_reduce(w, d)                                          # arrays; the first call of a specialization compiles

**Epilogue reductions** (:func:`combine_parts_text`): ``R[i,l] = f over p of P[p,i,l]``, the sum, maximum or minimum. A
GEMM writes one partial result per row (column) and group of columns (rows), see
:class:`~cute_dialect.kernels.epilogue.graph.Output`. Each thread takes every eighth partial result (every 256th if
there is one result per block), followed by a tree reduction in shared memory.

    launch_combine(p, r)

>>> CombineConfig("max", "f16", 1).name, ReduceConfig("f32", "bf16", batch=True).name
('combine-max-f16-1', 'f32-bf16-reduce-b')
>>> "gpu.launch_func @kernels::@reduce" in reduce_parts_text(ReduceConfig())
True
"""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic, reportOptionalMemberAccess=false

from typing import Any, NamedTuple

import cute_dialect.lang as cute
from cute_dialect.kernels.common.elements import number, rounded
from cute_dialect.kernels.common.kernel_names import differing
from cute_dialect.kernels.common.traced_text import printed
from cute_dialect.kernels.epilogue.combination import Addends, Epilogue
from cute_dialect.kernels.epilogue.emit import Fused
from cute_dialect.kernels.epilogue.graph import REDUCTIONS

_VECTOR, _ROWS = 4, 8
"""Elements per thread, rows per block."""


class ReduceConfig(NamedTuple):
    """Configuration of the reduction of split-K slices."""

    sums: str = "f32"  # type of W: f32, f64 or i32
    output: str = "f16"  # type of D
    batch: bool = False  # W and D have a batch mode, which is the last one
    epilogue: Epilogue = Epilogue()

    @property
    def name(self) -> str:
        """Name of the kernel."""
        return f"{self.sums}-{self.output}-reduce{differing(self, {'batch': '-b'})}{self.epilogue.suffix}"


_REDUCE = ReduceConfig()


@cute.jit(name="launch")
def launch_reduce(
    W: cute.Tensor, D: cute.Tensor, source: cute.Tensor | None = None, bias: cute.Tensor | None = None,
    alpha: Any = None, beta: Any = None, operands: Any = None, config: cute.Constexpr[Any] = _REDUCE,
):  # fmt: skip
    """Launch one block per 8 rows of 128 columns. The arguments after D belong to the epilogue."""
    addends = Addends(source, bias, alpha, beta, operands)
    config.epilogue.check_shapes(D, addends, pairs=False)
    m, n = D.shape[:2]
    assert W.shape[0] == m, "W and D must have the same M"
    assert W.shape[1] >= n, "W must have at least the columns of D"
    rows, columns = cute.ceil_div(m, _ROWS), cute.ceil_div(n, 32 * _VECTOR)
    matrices = D.shape[2] if config.batch else 1
    reduce(W, D, columns, addends, config).launch(grid=(rows * columns, matrices, 1), block=32 * _ROWS)


@cute.kernel(name="reduce")
def reduce(W: Any, D: Any, columns: cute.Int32, addends: Addends, config: cute.Constexpr[Any]):
    """Reduce this thread's elements, apply the epilogue and store the result."""
    block, matrix, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    if config.batch:
        W, D = W[None, None, None, matrix], D[None, None, matrix]
        if addends.source is not None:
            addends = addends._replace(source=addends.source[None, None, matrix])
    row = block // columns * _ROWS + thread // 32
    vector = block % columns * 32 + thread % 32
    kind = number(config.output)
    if (row < D.shape[0]) & (vector * _VECTOR < D.shape[1]):
        acc = cute.make_rmem_tensor(_VECTOR, W.element_type)
        acc.fill(0)
        for s in range(W.shape[2]):
            line = W[row, None, s]
            part = cute.local_tile(line, (_VECTOR,), (vector,))
            held = cute.make_rmem_tensor(_VECTOR, W.element_type)
            cute.autovec_copy(part, held)
            for i in range(_VECTOR):
                acc[i] = acc[i] + held[i]
        ids = cute.local_tile(cute.make_identity_tensor(D.shape), (1, _VECTOR), (row, vector))[0, None]
        if config.epilogue.active:
            whole = acc.element_type.is_integer and kind.is_integer
            fused = Fused(config.epilogue, addends, pairs=False, whole=whole, wide=config.sums == "f64")
            acc = fused.taken(acc)
            fused.apply_each(acc, ids, matrix if config.batch else None)
        out = cute.make_rmem_tensor(_VECTOR, kind)
        out.store(rounded(acc, kind))
        for i in range(_VECTOR):
            column = vector * _VECTOR + i
            if column < D.shape[1]:
                D[row, column] = out[i]


@printed
def reduce_parts_text(config: ReduceConfig | None = None) -> cute.Compiled:
    """Trace the kernel and the host function ``launch(W, D, …)``."""
    c = config or _REDUCE
    batch = ",?" if c.batch else ""
    d = "?{div=4}"
    w = cute.Tensor[number(c.sums), f"(?,{d},?{batch}):({d},1,{d}{f',{d}' if c.batch else ''})", "align<16>"]
    to = cute.Tensor[number(c.output), f"(?,?{batch}):(?,1{batch})"]
    behind = c.epilogue.arguments(c.output, batch=c.batch, vectors=False)
    return cute.trace(launch_reduce, w, to, **behind, config=c)


# ------------------------------------------------------------------------------------------------ epilogue reductions

_THREADS = 256

_AT_ONCE = 8
"""Partial results that a thread loads before it combines them."""


class CombineConfig(NamedTuple):
    """Configuration of an epilogue reduction."""

    operation: str = "sum"  # "sum", "max" or "min"
    output: str = "f32"  # type of R
    # Results per block: 32 for many results, 8 (a memory sector) for some results of many partial results, 1 for few
    # results of many partial results.
    across: int = 32
    apart: bool = False  # of two matrices, write the results of the second to S
    # Programmatic dependent launch: the kernel starts while the one that writes P ends, and waits for it.
    dependent: bool = False

    @property
    def name(self) -> str:
        """Name of the kernel."""
        more = differing(self, {"apart": "-2", "dependent": "-pdl"})
        return f"combine-{self.operation}-{self.output}-{self.across}{more}"


_COMBINE = CombineConfig()


@cute.jit(name="launch")
def launch_combine(
    P: cute.Tensor, R: cute.Tensor, S: cute.Tensor | None = None, config: cute.Constexpr[Any] = _COMBINE
):
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
    c = config or _COMBINE
    kind = number(c.output)
    parts, results = cute.Tensor[cute.Float32, "(?,?,?):(?,?,?)"], cute.Tensor[kind, "(?,?):(?,?)"]
    more = (results,) if c.apart else ()
    return cute.trace(launch_combine, parts, results, *more, config=c)
