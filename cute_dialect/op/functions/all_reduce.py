"""Sums over the ranks of a group, ``op.distributed.all_reduce``."""

# torch is not installed where types are checked; arrays may belong to any library.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, NamedTuple

from cute_dialect.kernels.common.elements import BITS
from cute_dialect.kernels.distributed.all_reduce import all_reduce_text
from cute_dialect.op.arrays.library import break_graph
from cute_dialect.op.errors import LayoutError, ShapeError, UnsupportedError
from cute_dialect.op.execute.array_call import RowCall, RowKernel, is_contiguous
from cute_dialect.op.execute.local_group import LocalGroup
from cute_dialect.op.execute.rank_groups import Simulated, group_of, hash_of
from cute_dialect.op.execute.rank_memory import MemoryShape
from cute_dialect.op.execute.recording import needs_gradients
from cute_dialect.op.keywords import check_keywords
from cute_dialect.op.problems.rows import check_eps
from cute_dialect.op.select.all_reduce import SLOT_BYTES, AllReduceProblem, choose_all_reduce, longest_row

if TYPE_CHECKING:  # pragma: no cover
    from typing import Unpack

    from cute_dialect.op.execute.rank_groups import Group
    from cute_dialect.op.signature_types import Array, Interpreted
    from cute_dialect.runtime.arrays import ArrayView

ELEMENTS = ("f16", "bf16", "f32")
"""Supported types."""

_LIMIT = 1 << 30
"""Largest number of elements. Kernels count in 32 bits, up to some rows beyond the last one."""

_EPS = 2.0**-23
"""Default eps of the norm, as of ``op.rms_norm``."""


class NormedSum(NamedTuple):
    """A sum over ranks and its norm."""

    norm: Array
    sum: Array


def all_reduce(
    x: Array,
    residual: Array = None,
    weight: Array = None,
    eps: float = _EPS,
    *,
    group: object = None,
    device: object = None,
    stream: object = None,
    **run: Unpack[Interpreted],
) -> Array:
    """Return the sum of ``x`` over the ranks of a group, optionally with a residual and RMSNorm, in one kernel.

    All ranks must make the same calls in the same order.  The sum is computed in f32 in the order of the ranks, then
    the residual is added, and the result is rounded once: all ranks get the same bits.

    Args:
        x: a contiguous array of f16, bf16 or f32, of the same shape and type on all ranks.
        residual: an array like ``x`` that is added once, equal on all ranks. ``world.run`` compares it.
        weight: (C,), the weight of the norm of the last dimension, equal on all ranks. ``world.run`` compares it.
        eps: added to the mean square; finite and at least 0.
        group: a process group of torch, its name, a device mesh of one dimension, or a rank of a ``LocalGroup``; by
            default the ranks of ``world.run`` of ``cute.testing.ranks``, and else torch's default group.
        device, stream, run: as in :func:`cute_dialect.op.mm`.

    Returns:
        The sum; with ``weight`` a pair ``(norm, sum)``, where the norm is that of the rounded sum.

    Raises:
        OpError: if the arguments are not supported.
        DistributedError: if ranks make different calls, or an earlier call has failed. On the CPU, ``world.run``
            also raises it if residuals or weights differ, or if the call itself fails.
    """
    if run:
        check_keywords("all_reduce", all_reduce, run)
    break_graph("all_reduce")
    if needs_gradients(x, residual, weight):
        raise UnsupportedError("all_reduce: gradients are not supported; call it under torch.no_grad()")
    check_eps("all_reduce", eps)
    of_group = group_of("all_reduce", group)
    one = RowCall(
        "all_reduce", {"x": x, "residual": residual, "weight": weight}, device, (), ELEMENTS, stream=stream, run=run
    )
    if one.cpu and not isinstance(of_group, Simulated):
        raise UnsupportedError(
            "all_reduce: x is in CPU memory, but the ranks of the group are GPUs; pass tensors of the GPU, or use "
            "cute.testing.ranks"
        )
    size, columns = prod(one.x.shape), _check_shapes(one)
    pointers = [view.pointer for view in one.views.values()]
    p = AllReduceProblem(
        one.element, of_group.ranks, size, columns, residual is not None, not any(a % 16 for a in pointers)
    )
    text = _text(one, columns, float(eps))
    of_group.agree(text)
    with one.on():
        total = one.result(one.x.shape)
        normed = one.result(one.x.shape) if weight is not None else None
        if size:
            _launch(one, of_group, p, text, float(eps), total, normed)
    return total if normed is None else NormedSum(normed, total)


def _check_shapes(one: RowCall) -> int:
    """Return the length of the rows of the norm, 0 without a norm.  Raises OpError."""
    shape = one.x.shape
    one.expect("residual", shape)
    columns = 0
    if "weight" in one.views:
        columns = one.length()
        one.expect("weight", (columns,))
        most = longest_row(one.element)
        if columns > most:
            raise UnsupportedError(
                f"all_reduce: rows of {columns} {one.element} are longer than {most}, the limit of the norm; omit "
                "weight, and call op.rms_norm"
            )
        if columns == 0 and prod(shape[:-1]):
            raise ShapeError(f"all_reduce: x has shape {shape}; rows of the norm must not be empty")
    if prod(shape) >= _LIMIT:
        raise UnsupportedError(f"all_reduce: x has {prod(shape)} elements; it must have less than {_LIMIT}")
    for name, view in one.views.items():
        if 0 not in view.shape and not is_contiguous(view):
            raise LayoutError(f"all_reduce: {name} has strides {view.strides}; pass {name}.contiguous()")
    return columns


def _text(one: RowCall, columns: int, eps: float) -> str:
    """Return the call as text, which must be equal on all ranks."""
    extras = ["a residual"] if "residual" in one.views else []
    extras += [f"a norm with eps={eps!r}"] if columns else []
    return f"all_reduce of {one.x.shape} {one.element}" + (f" with {' and '.join(extras)}" if extras else "")


def _launch(
    one: RowCall, group: Group, p: AllReduceProblem, text: str, eps: float, total: Array, normed: Array
) -> None:
    """Launch the kernel of a call."""
    c, length, blocks, _ = choose_all_reduce(p, cpu=one.cpu, channels=group.channels, shares_gpu=group.shares_gpu)
    size = BITS[one.element] // 8
    slot = max(4096, length * size) if one.cpu else SLOT_BYTES
    shape = MemoryShape(2 * group.channels * group.ranks, slot, 2 * group.channels, group.channels)
    memory = group.memory("all_reduce", shape, one.x).of_type(one.element, size)
    x, residual, weight = (_vector(one.views.get(name), one) for name in ("x", "residual", "weight"))
    protocol = f"{text} {length} {blocks} {c.two_shot}"  # not c.vectors, which depends on addresses
    kernel = RowKernel(c.name, all_reduce_text, (c,))
    for name, argument in (("residual", residual), ("weight", weight)):
        if argument is not None and isinstance(group, Simulated):
            group.compare("all_reduce", name, argument)
    one.launch(
        kernel,
        *(x, residual, weight, one.numbers(total), None if normed is None else one.numbers(normed)),
        *(
            length,
            eps if c.norm else None,
            *memory,
            group.rank,
            hash_of(protocol),
            group.limit,
            blocks,
        ),
    )


def _vector(view: ArrayView | None, one: RowCall) -> ArrayView | None:
    """Return an array as a vector."""
    return None if view is None else one.numbers(view)


def reset(group: object = None) -> None:
    """Make a group usable again after a call has failed. All ranks must call it.

    Args:
        group: as in :func:`all_reduce`, or a ``LocalGroup``, whose ranks then need no call of their own.
    """
    (group if isinstance(group, LocalGroup) else group_of("reset", group)).reset()


def check(group: object = None) -> None:
    """Raise DistributedError if a call that has ended has failed on this rank.

    Each call of a function of ``op.distributed`` does so, too.  Synchronize before it to include all calls.

    Args:
        group: as in :func:`all_reduce`, or a ``LocalGroup`` for all its ranks.
    """
    (group if isinstance(group, LocalGroup) else group_of("check", group)).check("check")
