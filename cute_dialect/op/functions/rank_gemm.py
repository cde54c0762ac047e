"""GEMMs of several ranks that send while they multiply: ``op.distributed.all_gather_matmul`` and its relatives."""

# torch is not installed where types are checked; arrays may belong to any library.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cute_dialect.kernels.distributed.gather_gemm import PIECES, gather_gemm_text
from cute_dialect.kernels.distributed.scatter_gemm import scatter_gemm_text
from cute_dialect.kernels.distributed.tile_signals import COUNTERS
from cute_dialect.op.arrays.library import break_graph
from cute_dialect.op.errors import ArgumentError, ShapeError, UnsupportedError
from cute_dialect.op.execute.array_call import RowCall, RowKernel
from cute_dialect.op.execute.rank_groups import Simulated, group_of, hash_of
from cute_dialect.op.execute.rank_memory import MemoryShape
from cute_dialect.op.execute.recording import needs_gradients
from cute_dialect.op.functions.elementwise import add
from cute_dialect.op.functions.gemm import mm
from cute_dialect.op.keywords import check_keywords
from cute_dialect.op.select.rank_gemm import RankGemmProblem, choose_rank_gemm

if TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Callable
    from typing import Unpack

    from cute_dialect.op.execute.rank_groups import Group
    from cute_dialect.op.signature_types import Array, Interpreted
    from cute_dialect.runtime.arrays import ArrayView

ELEMENTS = ("f16", "bf16")
"""Supported types."""

_MOST_BYTES = 2 << 30
"""Bytes of a half of the staging memory. Kernels count its elements in 32 bits."""


class Options(NamedTuple):
    """Options of a call and of its gradients."""

    group: object
    device: object
    stream: object
    run: Interpreted

    def mm(self, a: Array, b: Array, alpha: float = 1.0) -> Array:
        """Return the GEMM of this rank."""
        return mm(a, b, alpha=alpha, device=self.device, stream=self.stream, **self.run)

    def gather(self, a: Array, b: Array, *, return_a: bool) -> Array:
        """Call :func:`all_gather_matmul`."""
        group, device, stream, run = self
        return all_gather_matmul(a, b, return_a=return_a, group=group, device=device, stream=stream, **run)

    def scatter(self, a: Array, b: Array, op: str = "sum") -> Array:
        """Call :func:`matmul_reduce_scatter`."""
        group, device, stream, run = self
        return matmul_reduce_scatter(a, b, op=op, group=group, device=device, stream=stream, **run)

    def reduce(self, a: Array, b: Array) -> Array:
        """Call :func:`matmul_all_reduce`."""
        group, device, stream, run = self
        return matmul_all_reduce(a, b, group=group, device=device, stream=stream, **run)

    def add(self, x: Array, bias: Array) -> Array:
        """Return the sum of a matrix and a vector on this rank."""
        return add(x, bias, device=self.device)


class GatheredProduct(NamedTuple):
    """The product of a gathered matrix, and the matrix."""

    product: Array
    gathered: Array


def all_gather_matmul(
    a: Array,
    b: Array,
    *,
    return_a: bool = False,
    group: object = None,
    device: object = None,
    stream: object = None,
    **run: Unpack[Interpreted],
) -> Array:
    """Return the rows of ``a`` of all ranks, times ``b``, in one kernel that sends rows while it multiplies others.

    All ranks must make the same calls in the same order.  A rank may have another number of columns of ``b``.

    Args:
        a: (m, K) of f16 or bf16, of the same shape on all ranks.
        b: (K, N), the columns of this rank. A transposed (N, K) matrix is not copied.
        return_a: also return the gathered ``a``, which has no gradient.
        group: as in :func:`cute_dialect.op.distributed.all_reduce`.
        device, stream, run: as in :func:`cute_dialect.op.mm`.

    Returns:
        (ranks m, N), the rows of rank 0 first; with ``return_a`` a pair with the gathered ``a`` (ranks m, K).

    Raises:
        OpError: if the arguments are not supported.
        DistributedError: if ranks make different calls, or an earlier call has failed.
    """
    if needs_gradients(a, b):
        from cute_dialect.op.torch.rank_gemm import AllGatherMatmul  # late: torch

        how = _options("all_gather_matmul", all_gather_matmul, group, device, stream, run)
        product, gathered = AllGatherMatmul.apply(a, b, return_a, how)
        return GatheredProduct(product, gathered) if return_a else product
    call = _Call("all_gather_matmul", all_gather_matmul, a, b, group, device, stream, run)
    n, (m, k), columns = call.group.ranks, call.a.shape, call.b.shape[1]
    if n == 1:
        product = mm(a, b, device=device, stream=stream, **run)
        return GatheredProduct(product, call.copied_a()) if return_a else product
    p = RankGemmProblem(call.name, call.element, n, n * m, columns, k, call.major_b, returns_a=bool(return_a))
    text = f"all_gather_matmul of ({m}, {k}) {call.element}" + (" with return_a=True" if return_a else "")
    with call.one.on():
        c = call.one.result((n * m, columns))
        gathered = call.one.result((n * m, k)) if return_a else None
        of_ranks = _split(call.one.matrix_of(c), n)
        call.launch(p, text, call.a, of_ranks, None if gathered is None else _split(call.one.matrix_of(gathered), n))
    return GatheredProduct(c, gathered) if return_a else c


def matmul_reduce_scatter(
    a: Array,
    b: Array,
    *,
    op: str = "sum",
    group: object = None,
    device: object = None,
    stream: object = None,
    **run: Unpack[Interpreted],
) -> Array:
    """Return this rank's rows of the sum of ``a @ b`` over the ranks, in one kernel that sends while it multiplies.

    Each rank's product is rounded to the type of ``a``; products are added in f32 in the order of the ranks, and
    rounded once.  All ranks must make the same calls in the same order.

    Args:
        a: (M, K) of f16 or bf16, the part of K of this rank. M is a multiple of the number of ranks.
        b: (K, N). A transposed (N, K) matrix is not copied.
        op: "sum", or "avg" for the sum divided by the number of ranks.
        group: as in :func:`cute_dialect.op.distributed.all_reduce`.
        device, stream, run: as in :func:`cute_dialect.op.mm`.

    Returns:
        (M / ranks, N): rank r has rows ``r M / ranks`` and following.

    Raises:
        OpError: if the arguments are not supported.
        DistributedError: if ranks make different calls, or an earlier call has failed.
    """
    if op not in ("sum", "avg"):
        raise ArgumentError(f"matmul_reduce_scatter: op is {op!r}; pass 'sum' or 'avg'")
    if needs_gradients(a, b):
        from cute_dialect.op.torch.rank_gemm import MatmulReduceScatter  # late: torch

        how = _options("matmul_reduce_scatter", matmul_reduce_scatter, group, device, stream, run)
        return MatmulReduceScatter.apply(a, b, op, how)
    call = _Call("matmul_reduce_scatter", matmul_reduce_scatter, a, b, group, device, stream, run)
    n, (rows, k), columns = call.group.ranks, call.a.shape, call.b.shape[1]
    if rows % n:
        raise ShapeError(f"matmul_reduce_scatter: a has {rows} rows; pass a multiple of {n}, the number of ranks")
    if n == 1:
        return mm(a, b, device=device, stream=stream, **run)
    p = RankGemmProblem(call.name, call.element, n, rows, columns, k, call.major_b, average=op == "avg")
    text = f"matmul_reduce_scatter of {rows} rows and {columns} columns of {call.element} with op={op!r}"
    with call.one.on():
        c = call.one.result((rows // n, columns))
        call.launch(p, text, _split(call.a, n), _split(call.one.matrix_of(c), 1), None)
    return c


def matmul_all_reduce(
    a: Array,
    b: Array,
    *,
    group: object = None,
    device: object = None,
    stream: object = None,
    **run: Unpack[Interpreted],
) -> Array:
    """Return the sum of ``a @ b`` over the ranks, in one kernel that sends tiles while it multiplies.

    Rounding is that of :func:`matmul_reduce_scatter`; all ranks get the same bits.  All ranks must make the same calls
    in the same order.

    Args:
        a: (M, K) of f16 or bf16, the part of K of this rank.
        b: (K, N). A transposed (N, K) matrix is not copied.
        group: as in :func:`cute_dialect.op.distributed.all_reduce`.
        device, stream, run: as in :func:`cute_dialect.op.mm`.

    Returns:
        (M, N).

    Raises:
        OpError: if the arguments are not supported.
        DistributedError: if ranks make different calls, or an earlier call has failed.
    """
    if needs_gradients(a, b):
        from cute_dialect.op.torch.rank_gemm import MatmulAllReduce  # late: torch

        how = _options("matmul_all_reduce", matmul_all_reduce, group, device, stream, run)
        return MatmulAllReduce.apply(a, b, how)
    call = _Call("matmul_all_reduce", matmul_all_reduce, a, b, group, device, stream, run)
    n, (rows, k), columns = call.group.ranks, call.a.shape, call.b.shape[1]
    if n == 1:
        return mm(a, b, device=device, stream=stream, **run)
    p = RankGemmProblem(call.name, call.element, n, rows, columns, k, call.major_b)
    text = f"matmul_all_reduce of {rows} rows and {columns} columns of {call.element}"
    with call.one.on():
        c = call.one.result((rows, columns))
        call.launch(p, text, _split(call.a, p.matrices), _split(call.one.matrix_of(c), p.matrices), None)
    return c


def _options(
    name: str, function: Callable[..., Array], group: object, device: object, stream: object, run: Interpreted
) -> Options:
    """Return the options of a call and of its gradients."""
    check_keywords(name, function, run)
    break_graph(name)
    return Options(group, device, stream, run)


def _split(x: ArrayView, parts: int) -> ArrayView:
    """Return a matrix as several matrices of its rows, (rows of one, columns, parts)."""
    (rows, columns), (stride, _) = x.shape, x.strides
    return x._replace(shape=(rows // parts, columns, parts), strides=(stride, 1, rows // parts * stride))


class _Call:
    """The operands and the group of a call.  Raises OpError if they are not supported."""

    def __init__(
        self,
        name: str,
        function: Callable[..., Array],
        a: Array,
        b: Array,
        group: object,
        device: object,
        stream: object,
        run: Interpreted,
    ) -> None:
        self.name = name
        if run:
            check_keywords(name, function, run)
        break_graph(name)
        self.group: Group = group_of(name, group)
        self.one = RowCall(name, {"a": a, "b": b}, device, (), ELEMENTS, stream=stream, run=run)
        self.element = self.one.element
        if self.one.cpu and not isinstance(self.group, Simulated):
            raise UnsupportedError(
                f"{name}: a is in CPU memory, but the ranks of the group are GPUs; pass tensors of the GPU, or use "
                "cute.testing.ranks"
            )
        shapes = {key: view.shape for key, view in self.one.views.items()}
        for key, shape in shapes.items():
            if len(shape) != 2 or 0 in shape:
                raise ShapeError(f"{name}: {key} has shape {shape}; pass a matrix that is not empty")
        if shapes["a"][1] != shapes["b"][0]:
            raise ShapeError(
                f"{name}: a has shape {shapes['a']} and b {shapes['b']}; the columns of a must be as many as the rows "
                "of b"
            )
        with self.one.on():
            self.a = self.one.aligned_matrix("a")
            self.b, self.major_b = self._read_b()

    def _read_b(self) -> tuple[ArrayView, str]:
        """Return b and the name of its contiguous mode. It is copied if TMA cannot read it."""
        b = self.one.views["b"]
        k, (of_k, of_columns) = b.shape[0], b.strides
        if of_k == 1 and b.pointer % 16 == 0 and of_columns % 8 == 0 and of_columns >= k > 1:
            return b, "k"
        return self.one.aligned_matrix("b"), "n"

    def copied_a(self) -> Array:
        """Return a copy of a."""
        with self.one.on():
            return self.one.native(self.one.packed("a"))

    def launch(self, p: RankGemmProblem, text: str, a: ArrayView, c: ArrayView, gathered: ArrayView | None) -> None:
        """Launch the kernel of a problem on matrices of all ranks.

        Args:
            text: the call as text, which must be equal on all ranks.
        """
        group, one = self.group, self.one
        config, slots, _ = choose_rank_gemm(
            p, cpu=one.cpu, multiprocessors=group.multiprocessors, shares_gpu=group.shares_gpu
        )
        needed = 2 * p.held
        if needed > _MOST_BYTES:
            raise UnsupportedError(
                f"{self.name}: the ranks exchange {needed / 2**30:.1f} GiB in a call; the limit is 2 GiB, call it for "
                "parts of the rows"
            )
        group.agree(text)
        shape = MemoryShape(2, max(needed, 1 << (12 if one.cpu else 20)), 2 * max(slots, 64), COUNTERS + PIECES)
        memory = group.memory(self.name, shape, one.x).of_type(self.element, 2)
        tile = config.base.tile[: 1 if p.kind == "gather" else 2]
        check = hash_of(f"{text} {p.kind} {tile} {config.base.cluster_m} {config.slab}")
        b = self.b._replace(shape=self.b.shape[::-1], strides=self.b.strides[::-1])
        kernel = RowKernel(config.name, gather_gemm_text if p.kind == "gather" else scatter_gemm_text, (config,))
        one.launch(kernel, a, b, c, gathered, *memory, group.rank, check, group.limit)
