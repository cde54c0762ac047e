"""Functions of the operator ``torch.ops.cute.grouped_mm``.

The gradients of a grouped GEMM are grouped GEMMs again.  The forms m (rows), n (columns) and k (steps of K) are the
gradients of one another.
"""

# torch is not installed where the types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import torch

from cute_dialect.kernels.gemm.moe_permute import BoundsConfig
from cute_dialect.op.arrays.dtypes import element_name
from cute_dialect.op.epilogue.combination import LinearCombination
from cute_dialect.op.epilogue.functions import activated
from cute_dialect.op.errors import DtypeError, UnsupportedError
from cute_dialect.op.execute.grouped import computed, kernel_of
from cute_dialect.op.execute.launcher import launched
from cute_dialect.op.functions import grouped as functions
from cute_dialect.op.problems.grouped import GROUPS, GroupedArguments, shapes_of
from cute_dialect.op.torch.gradients import result_dtype, summed
from cute_dialect.op.torch.registry import CUTE

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.op.torch.autograd import Context


def _groups(offs: torch.Tensor | None, lengths: torch.Tensor | None, row_groups: torch.Tensor | None) -> dict[str, Any]:
    return {n: x for n, x in zip(GROUPS, (offs, lengths, row_groups)) if x is not None}


_PLAIN = (torch.Tensor, torch.nn.Parameter, type(None))


def forward(
    a: torch.Tensor, b: torch.Tensor, offs: torch.Tensor | None = None, lengths: torch.Tensor | None = None,
    row_groups: torch.Tensor | None = None, c: torch.Tensor | None = None, bias: torch.Tensor | None = None,
    begins: torch.Tensor | None = None, *, alpha: float = 1.0, beta: float = 1.0, activation: str = "",
    rest: str = "keep", dtype: torch.dtype | None = None, device: str = "", math: str = "default",
) -> torch.Tensor:  # fmt: skip
    groups = _groups(offs, lengths, row_groups)
    if begins is None and all([type(t) in _PLAIN for t in (a, b, *groups.values(), c, bias)]):
        return functions.grouped_mm(
            a, b, **groups, c=c, bias=bias, alpha=alpha, beta=beta, activation=activation, rest=rest, dtype=dtype,
            device=device or None, math=math,
        )  # fmt: skip
    given = GroupedArguments(
        a, b, groups, None, LinearCombination(alpha, beta, c, bias, activation, math=math), rest=rest, dtype=dtype,
        begins=begins,
    )  # fmt: skip
    return computed("grouped_mm", given, device or None)


def fake(
    a: torch.Tensor, b: torch.Tensor, offs: torch.Tensor | None = None, lengths: torch.Tensor | None = None,
    row_groups: torch.Tensor | None = None, *_: object, dtype: torch.dtype | None = None, **__: object,
) -> torch.Tensor:  # fmt: skip
    groups = {n: x.shape for n, x in _groups(offs, lengths, row_groups).items()}
    s = shapes_of("grouped_mm", a.shape, b.shape, groups)
    return a.new_empty(s.result, dtype=result_dtype(a, dtype))


def bounds(row_groups: torch.Tensor, groups: int, device: str) -> tuple[torch.Tensor, torch.Tensor]:
    begins, ends = (torch.empty(groups, dtype=torch.int32, device=row_groups.device) for _ in range(2))
    options: dict[str, Any] = {"device": "cpu"} if device == "cpu" else {}
    launched(kernel_of(BoundsConfig(), device == "cpu"), row_groups.contiguous(), begins, ends, **options)
    return begins, ends


# ---------------------------------------------------------------------------------------------------------- gradients


def keep(ctx: Context, inputs: tuple[Any, ...], keyword_only_inputs: Mapping[str, Any], output: torch.Tensor) -> None:
    a, b, offs, lengths, row_groups, c, bias, begins = inputs
    if a.dtype.itemsize == 1:
        raise DtypeError(
            f"grouped_mm: a has dtype {element_name(a.dtype)}, which has no gradients; call it under torch.no_grad()"
        )
    named = keyword_only_inputs
    if begins is not None:
        raise UnsupportedError("grouped_mm: second derivatives with row_groups are not supported")
    activation = named["activation"]
    sums = activation not in ("", "relu")
    ctx.options = {n: named[n] for n in ("alpha", "beta", "activation", "device", "math")}
    ctx.added = [None if t is None else (t.shape, t.dtype) for t in (c, bias)]
    result = output if activation == "relu" else None
    ctx.save_for_backward(a, b, offs, lengths, row_groups, *((c, bias) if sums else (None, None)), result)


def backward(ctx: Context, grad: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
    a, b, offs, lengths, row_groups, c, bias, result = ctx.saved_tensors
    options = dict(ctx.options)
    activation, alpha, beta = options.pop("activation"), options.pop("alpha"), options.pop("beta")
    groups = _groups(offs, lengths, row_groups)
    s = shapes_of("grouped_mm", a.shape, b.shape, {n: x.shape for n, x in groups.items()})
    # Grouped GEMMs skip rows and columns of no group. Sums of the gradient and batched GEMMs do not, so mask them.
    # In torch.compile, the arguments that end with defaults are not among those of the node.
    needs, mask = (*ctx.needs_input_grad, *(False,) * 8)[:8], None
    if s.form == "rows" or needs[5] or needs[6]:
        mask = _inside(s.form, a, b, offs, lengths, row_groups)
        grad = grad if mask is None else torch.where(mask, grad, 0)
    if activation == "relu":
        grad = torch.where(result > 0, grad, 0)
    elif activation:
        pre = CUTE.grouped_mm(a, b, offs, lengths, row_groups, c, bias, alpha=alpha, beta=beta,
                      rest="zero", dtype=torch.float32, **options)  # fmt: skip
        derivative: Any = activated(activation, derivative=True)
        grad = (grad * derivative(pre)).to(grad.dtype)
    g = grad.to(a.dtype)
    g = g if g.stride(-1) == 1 or g.stride(-2) == 1 else g.contiguous()
    of_a = of_b = None
    some = {"alpha": alpha, "rest": "zero", "dtype": a.dtype, **options}
    begins = None
    if row_groups is not None and (needs[1] or needs[6]):
        begins, ends = CUTE.group_bounds(row_groups, b.shape[0], options["device"])
    else:
        ends = offs
    if needs[0]:
        if s.form == "n":
            of_a = CUTE.grouped_mm(g, b.t(), offs, **some)
        else:
            of_a = CUTE.grouped_mm(g, b.mT, offs, lengths, row_groups, **some)
    if needs[1]:
        if s.form == "rows":  # Rows past the lengths are zeroed in both operands.
            x = torch.where(cast(torch.Tensor, mask), a, 0)
            of_b = CUTE.bmm(x.mT, g, alpha=alpha, dtype=b.dtype, **options)
        elif s.form == "m":
            of_b = CUTE.grouped_mm(a.t(), g, ends, begins=begins, **some)
        else:
            of_b = CUTE.grouped_mm(a.mT, g, offs, **some)
    of_c, of_bias = (None if kind is None or not needs[5 + i] else kind for i, kind in enumerate(ctx.added))
    if of_c is not None:
        of_c = summed(grad if beta == 1.0 else grad * beta, *of_c)
    if of_bias is not None:
        shape, dtype = of_bias
        each = s.form != "n" and tuple(shape) == (s.groups, s.n) and tuple(shape) != (1, s.n)
        if each and s.form == "m":  # A GEMM with ones sums the rows of each group.
            ones = g.new_ones(g.shape[0], 8)
            of_bias = CUTE.grouped_mm(ones.t(), g, ends, begins=begins, dtype=torch.float32, **options)[:, 0].to(dtype)
        else:
            of_bias = (
                summed(grad, torch.Size((s.groups, 1, s.n)), dtype).reshape(shape)
                if each
                else summed(grad, shape, dtype)
            )
    return of_a, of_b, None, None, None, of_c, of_bias, None


def _inside(form: str, a: torch.Tensor, b: torch.Tensor, offs: Any, lengths: Any, row_groups: Any) -> Any:
    """Return the mask of the result's elements that belong to a group, or None if all do."""
    if form == "k":
        return None
    if form == "n":
        return torch.arange(b.shape[1], device=b.device) < offs[-1]
    if form == "rows":
        return (torch.arange(a.shape[1], device=a.device) < lengths[:, None])[..., None]
    inside = row_groups >= 0 if row_groups is not None else torch.arange(a.shape[0], device=a.device) < offs[-1]
    return inside[:, None]


def fake_bounds(row_groups: torch.Tensor, groups: int, device: str) -> tuple[torch.Tensor, torch.Tensor]:
    return row_groups.new_empty(groups), row_groups.new_empty(groups)
