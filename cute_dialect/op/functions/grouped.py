"""``grouped_mm``: GEMMs over groups of rows, columns or steps of K, in one launch."""

# Arrays belong to any library.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cute_dialect.kernels.epilogue.activations import Spelled, spelled
from cute_dialect.op.epilogue.combination import LinearCombination
from cute_dialect.op.execute.call_cache import KnownCalls, is_traced
from cute_dialect.op.execute.grouped import SCHEDULES, computed
from cute_dialect.op.functions.gemm import bmm
from cute_dialect.op.functions.grouped_lists import listed_mm
from cute_dialect.op.keywords import check_keywords
from cute_dialect.op.problems.grouped import GROUPS, GroupedArguments
from cute_dialect.runtime.settings import flag

if TYPE_CHECKING:
    from cute_dialect.op.signature_types import Array, Epilogue, Factor


__all__ = ["grouped_mm"]


def grouped_mm(
    a: Array,
    b: Array,
    offs: Array = None,
    *,
    lengths: Array = None,
    row_groups: Array = None,
    out: Array = None,
    c: Array = None,
    bias: Array = None,
    alpha: Factor = 1.0,
    beta: float = 1.0,
    activation: Spelled = "",
    epilogue: Epilogue = None,
    args: Mapping[str, Any] | None = None,
    rest: str = "keep",
    schedule: str = "auto",
    gather: Array = None,
    dtype: object = None,
    math: str = "default",
    accumulator: object = None,
    kernel: object = None,
    device: object = None,
    stream: object = None,
    **run: Any,
) -> Array:
    """Compute the GEMMs of groups, ``activation(alpha * a_g @ b_g + beta * c + bias)``, in one launch.

    The ranks of ``a`` and ``b`` select the kind of grouping:

    * ``(T, K) @ (G, K, N)`` gives (T, N).  Each group is a range of rows of ``a`` with its own matrix of ``b``, as in a
      mixture of experts.
    * ``(G, M, K) @ (K, T)`` gives (M, T).  Each group is a range of columns of ``b`` with its own matrix of ``a``.
    * ``(M, T) @ (T, N)`` gives (G, M, N).  Each group is a range of steps of K.
    * ``(G, M, K) @ (G, K, N)`` with ``lengths`` gives (G, M, N).  Each group is the first rows of a matrix of ``a``.
    * ``[a0, a1] @ [b0, b1]`` gives a list.  Each GEMM has its own M, N, K and strides.  One launch computes all whose
      operands are contiguous along the same modes; :func:`cute_dialect.op.explain` lists the launches.

    The host never reads the group sizes, so nothing waits, and a CUDA graph can be replayed with other sizes.  Groups
    may be empty.  Values of ``a`` and ``b`` past the end of a group, even NaN, do not affect it.

    The interpreter reports group sizes that decrease or exceed the operands.  On a GPU they give undefined results
    unless ``CUTE_OP_CHECK=1`` is set before the first call, which waits for the GPU.

    Args:
        a: operand of rank 2 or 3, or a list of arrays.
        b: operand of rank 2 or 3, or a list of arrays.
        offs: end of each group, i32 of (G,), or of (G + 1,) beginning with 0, on the device of ``a``; must not
            decrease.
        lengths: number of rows that each matrix of ``a`` uses, i32 of (G,).
        row_groups: group of each row, i32 of (T,), sorted; -1 for rows of no group.
        out: memory for the result; a list for lists.
        c: matrix to add, times ``beta``; a list for lists.
        bias: (N,), (M, 1), or (G, N) for one bias per group; for lists one for all, or a list.
        alpha: a number, or f32 of one element or of (G,); for lists also a list.
        beta: factor of ``c``.
        activation: name of an activation, or "".
        epilogue: function of the accumulator; with groups of columns it has one result.
        args: arguments of ``epilogue``.
        rest: "keep" leaves rows of no group as they are, "zero" sets them to 0.
        schedule: "host" requires offs, lengths or row_groups as a list. For lists of arrays, "auto" assigns tiles
            to blocks on the host, "device" in the kernel. Other values are schedules of the interpreter.
        gather: row of ``a`` for each row to multiply, i32 of (M,); a kernel gathers the rows first.
        dtype, math, accumulator, kernel, device, stream, run: see :func:`cute_dialect.op.functions.gemm.mm`.

    Raises:
        OpError: if the arguments are not supported.
    """
    if run:
        check_keywords("grouped_mm", grouped_mm, run)
    applied = spelled(activation)
    plain = (
        out is None and c is None and epilogue is None and gather is None and kernel is None and device is None
        and stream is None and args is None and accumulator is None and not run and math == "default"
        and schedule == "auto" and beta == 1.0 and (type(alpha) is float or type(alpha) is int) and alpha != 0
    )  # fmt: skip
    tensors = [t for t in (a, b, bias, offs, lengths, row_groups) if t is not None] if plain else []
    how = () if not plain else (
        alpha, applied, rest, dtype, bias is None, offs is None, lengths is None, row_groups is None
    )  # fmt: skip
    if plain and not is_traced():
        done = KNOWN.again(how, *tensors)
        if done is not None:
            return done
    if schedule not in SCHEDULES:  # Other values are schedules of the interpreter.
        schedule, run = "auto", {**run, "schedule": schedule}
    groups = {n: x for n, x in zip(GROUPS, (offs, lengths, row_groups)) if x is not None}
    extras = LinearCombination(alpha, beta, c, bias, applied, math=math, accumulator=accumulator)
    given = GroupedArguments(
        a, b, groups, out, extras, epilogue, args, rest, schedule, dtype, kernel, gather=gather
    )  # fmt: skip
    if isinstance(a, list | tuple):
        return listed_mm(given, device, stream, run)
    if not groups and len(getattr(a, "shape", ())) == 3 and len(getattr(b, "shape", ())) == 3:
        more: dict[str, Any] = {
            "alpha": alpha,
            "beta": beta,
            "c": c,
            "bias": bias,
            "activation": applied,
            "epilogue": epilogue,
        }
        more |= {"args": args, "dtype": dtype, "math": math, "accumulator": accumulator, "kernel": kernel}
        return bmm(a, b, out, device=device, stream=stream, **more, **run)
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(a, torch.Tensor):
        return computed("grouped_mm", given, device, stream, run)

    def compute() -> Any:
        if _dispatched(torch, given):
            from cute_dialect.op.torch import dispatch  # late: torch

            return dispatch.grouped_product("grouped_mm", given, device, stream, run)
        return computed("grouped_mm", given, device, stream, run)

    if not plain or not all(torch.is_tensor(t) for t in tensors) or _checked() or is_traced():
        return compute()
    return KNOWN.computed(how, tensors, compute)


KNOWN = KnownCalls()
"""Cached calls."""


def _checked() -> bool:
    """Return True if the group sizes of each call are checked."""
    return flag("CUTE_OP_CHECK", False)


def _dispatched(torch: Any, g: GroupedArguments) -> bool:
    """Return True if torch's dispatcher must handle a call, because of gradients or tensors without memory."""
    of_groups = g.groups.values()
    arrays = g.a, g.b, g.out, g.extras.c, g.extras.bias, *of_groups, *(g.args or {}).values()
    given: list[Any] = [t for t in arrays if torch.is_tensor(t)]
    plain = (torch.Tensor, torch.nn.Parameter)
    return (
        torch.compiler.is_dynamo_compiling()
        or (torch.is_grad_enabled() and any([t.requires_grad for t in given]))
        or any([type(t) not in plain for t in given])
    )
