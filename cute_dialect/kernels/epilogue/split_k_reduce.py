"""Reduction of split-K slices with an epilogue: ``D[M,N] = f(sum over s of W[M,N,s])``, in slice order.

It follows a GEMM that wrote the partial accumulators of split-K slices, and is deterministic. With zero slices it
computes the epilogue of zeros, as for a GEMM with K = 0. A thread has four adjacent elements of a row. Rows of W are
16-byte aligned, and its N is a multiple of 4.

    launch(w, d)                                                 # arrays; the first call of a specialization compiles

>>> "gpu.launch_func @kernels::@reduce" in reduce_parts_text(ReduceConfig())
True
"""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic, reportOptionalMemberAccess=false

from typing import Any, NamedTuple

import cute_dialect.lang as cute
from cute_dialect.kernels.common.elements import number, rounded
from cute_dialect.kernels.common.traced_text import printed
from cute_dialect.kernels.epilogue.combination import Addends, Epilogue
from cute_dialect.kernels.epilogue.emit import Fused

__all__ = ["ReduceConfig", "launch", "reduce_parts_text"]

_VECTOR, _ROWS = 4, 8
"""Elements per thread, rows per block."""


class ReduceConfig(NamedTuple):
    """Configuration of the reduction."""

    sums: str = "f32"  # type of W: f32, f64 or i32
    output: str = "f16"  # type of D
    batch: bool = False  # W and D have a batch mode, which is the last one
    epilogue: Epilogue = Epilogue()

    @property
    def name(self) -> str:
        """Name of the kernel."""
        more = "-b" * self.batch + (f"-{self.epilogue.name}" if self.epilogue.active else "")
        return f"{self.sums}-{self.output}-reduce{more}"


DEFAULT = ReduceConfig()


@cute.jit
def launch(
    W: cute.Tensor, D: cute.Tensor, source: cute.Tensor | None = None, bias: cute.Tensor | None = None,
    alpha: Any = None, beta: Any = None, operands: Any = None, config: cute.Constexpr[Any] = DEFAULT,
):  # fmt: skip
    """Launch one block per 8 rows of 128 columns. The arguments after D belong to the epilogue."""
    addends = Addends(source, bias, alpha, beta, operands)
    config.epilogue.check_shapes(D, addends, pairs=False)
    m, n = D.shape[:2]
    assert W.shape[0] == m, "W and D must have the same M"
    assert W.shape[1] >= n, "W must have at least the columns of D"
    rows, columns = cute.ceil_div(m, _ROWS), cute.ceil_div(n, 32 * _VECTOR)
    matrices = D.shape[2] if config.batch else 1
    reduce(W, D, columns, addends, config).launch(
        grid=(rows * columns, matrices, 1), block=32 * _ROWS
    )  # fmt: skip


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
    c = config or DEFAULT
    batch = ",?" if c.batch else ""
    d = "?{div=4}"
    w = cute.Tensor[number(c.sums), f"(?,{d},?{batch}):({d},1,{d}{f',{d}' if c.batch else ''})", "align<16>"]
    to = cute.Tensor[number(c.output), f"(?,?{batch}):(?,1{batch})"]
    behind = c.epilogue.arguments(c.output, batch=c.batch, vectors=False)
    return cute.trace(launch, w, to, **behind, config=c)
