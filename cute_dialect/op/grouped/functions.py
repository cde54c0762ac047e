"""``grouped_mm``: products of groups of rows with a matrix each, of groups of columns, of steps of K; one launch."""

# Arrays are of any library.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from cute_dialect.kernels.activations import Spelled, spelled
from cute_dialect.op.gemm import bmm
from cute_dialect.op.grouped.call import SCHEDULES, Given, computed
from cute_dialect.op.grouped.known import KnownGroups
from cute_dialect.op.keywords import check_keywords
from cute_dialect.runtime.settings import flag

__all__ = ["grouped_mm"]


def grouped_mm(
    a: Any,
    b: Any,
    offs: Any = None,
    *,
    lengths: Any = None,
    row_groups: Any = None,
    out: Any = None,
    c: Any = None,
    bias: Any = None,
    alpha: Any = 1.0,
    beta: float = 1.0,
    activation: Spelled = "",
    epilogue: Any = None,
    args: Mapping[str, Any] | None = None,
    rest: str = "keep",
    schedule: str = "auto",
    gather: Any = None,
    dtype: object = None,
    math: str = "default",
    accumulator: object = None,
    kernel: object = None,
    device: object = None,
    stream: object = None,
    **run: Any,
) -> Any:
    """Return the products of groups, ``activation(alpha * a_g @ b_g + beta * c + bias)``, in one launch.

    What groups are the ranks say: rows of ``a`` (T, K) with their own matrix of ``b`` (G, K, N), as in a layer of
    experts: (T, N); columns of ``b`` (K, T) with theirs of ``a`` (G, M, K): (M, T); or steps of K of both, (M, T) and
    (T, N): (G, M, N).  ``offs``: where each ends, (G,) int32 where the arrays are, rising, any numbers; (G + 1,) begins
    with 0.  The host never looks at them: nothing waits, and a CUDA graph is replayed with other ones.  Empty groups
    are fine.  ``row_groups``, (T,) int32, says the group of each row instead, sorted, -1 for none; ``lengths``, (G,)
    int32, how many of its rows each matrix of ``a`` (G, M, K) uses.  Any of them may be a list (``schedule="host"``
    wants that; other schedules are the interpreter's).  ``rest``: rows of no group ``keep`` what they hold, or become
    ``zero``.

    ``gather``: (M,) int32, the row of ``a`` that each row is which is multiplied: a kernel brings them together first.
    ``bias``: (N,), (M, 1), or (G, N), one each a group; ``alpha``: a number, or f32 of one element or of (G,).
    ``epilogue``: a function of the sums; of groups of columns it has one result.  The rest is as in
    :func:`cute_dialect.op.gemm.mm`.  What a matrix holds behind a group's end, a NaN, say, does not reach the group.

    Of lists, ``grouped_mm([a0, a1], [b0, b1])``, it is the list of the products, each of its own M, N, K and strides,
    of matrices anywhere, by one launch (more where contiguous modes differ, or some lie between whole 16 bytes;
    :func:`cute_dialect.op.explain` says so).  ``out`` and ``c`` are lists then, ``bias`` is a list of (N,) or (M, 1),
    or one for all, ``alpha`` a number, a list, or f32 of (G,); ``schedule``: the host tells each block its tile
    (``auto``), or ``device``, the kernel finds it.

    On the interpreter, and where ``CUTE_OP_CHECK=1`` is set before the first call (which waits for the GPU), groups
    that do not rise or reach beyond the operands are reported; else what they give is not defined.  Raises subclasses
    of OpError.
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
    if plain and not _tracing():
        done = KNOWN.again(tensors, how)
        if done is not None:
            return done
    if schedule not in SCHEDULES:  # the interpreter's
        schedule, run = "auto", {**run, "schedule": schedule}
    groups = {n: x for n, x in (("offs", offs), ("lengths", lengths), ("row_groups", row_groups)) if x is not None}
    if isinstance(a, list | tuple):
        from cute_dialect.op.grouped.lists import listed_mm

        lists = Given(
            a, b, groups, out, c, bias, alpha, beta, applied, epilogue, args, rest, schedule, dtype, math,
            accumulator, kernel, gather=gather,
        )  # fmt: skip
        return listed_mm(lists, device, stream, run)
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
    given = Given(
        a, b, groups, out, c, bias, alpha, beta, applied, epilogue, args, rest, schedule, dtype, math, accumulator,
        kernel, gather=gather,
    )  # fmt: skip
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(a, torch.Tensor):
        return computed("grouped_mm", given, device, stream, run)
    if _dispatched(torch, given):
        from cute_dialect.op.grouped.operators import by_operator

        return by_operator("grouped_mm", given, device, stream, run)
    if not plain or a.dtype == torch.float32 or not all(torch.is_tensor(t) for t in tensors) or _checked():
        return computed("grouped_mm", given, device, stream, run)
    return computed("grouped_mm", given, known=(KNOWN, tensors, how))


KNOWN = KnownGroups()
"""The calls that were computed."""


def _tracing() -> bool:
    """Tell whether ``torch.compile`` traces this call."""
    torch = sys.modules.get("torch")
    return torch is not None and torch.compiler.is_dynamo_compiling()


def _checked() -> bool:
    """Tell whether each call's groups are looked at."""
    return flag("CUTE_OP_CHECK", False)


def _dispatched(torch: Any, g: Given) -> bool:
    """Tell whether torch's dispatcher computes a call: where there are gradients, or tensors without memory."""
    of_groups = g.groups.values()
    given = [t for t in (g.a, g.b, g.out, g.c, g.bias, *of_groups, *(g.args or {}).values()) if torch.is_tensor(t)]
    plain = (torch.Tensor, torch.nn.Parameter)
    return (
        torch.compiler.is_dynamo_compiling()
        or (torch.is_grad_enabled() and any([t.requires_grad for t in given]))
        or any([type(t) not in plain for t in given])
    )
