"""Explanation of the kernel choice of a convolution plan."""

# Arrays may belong to any library.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from cute_dialect.kernels.conv.config import WGRAD
from cute_dialect.op.arrays.dtypes import SIZES
from cute_dialect.op.arrays.image_layouts import channels_first, last, strides_of, views_last
from cute_dialect.op.conv.choice import chosen_with_time
from cute_dialect.op.execute.launch_sequence import Split
from cute_dialect.op.explanations.conv import ConvExplanation
from cute_dialect.op.problems.conv import ConvOptions, planned_geometry
from cute_dialect.op.problems.operands import Operands, read
from cute_dialect.op.pycutlass.conv_arguments import parts_of
from cute_dialect.op.select.gemm_dispatch import here
from cute_dialect.runtime.arrays import ArrayView

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.op.plans.conv import Conv2d
    from cute_dialect.op.signature_types import Array

__all__ = ["explained"]


def explained(plan: Conv2d, A: Array, B: Array, D: Array, how: ConvOptions, split: Split) -> ConvExplanation:
    """Return the kernel of a plan for arrays or shapes, with its predicted time."""
    turn = channels_first("Conv2d.explain", how.data_format, 2, "")
    x, y = (_view(n, t, kind.element, turn) for n, t, kind in zip("AB", (A, B), (plan.kinds.a, plan.kinds.b)))
    shape = None if D is None else last(tuple(D.shape), turn)
    g = planned_geometry("Conv2d.explain", plan.kind, (x.shape, y.shape), shape, how)
    z = _view("D", g.output, plan.kinds.d.element, False)
    rows = z._replace(shape=g.matrix, strides=(g.matrix[1], 1))
    td, algorithm = plan.way_of(g, Operands(x, y, rows))
    operation = plan.operation_of(td, algorithm)
    operation.check_problem("Conv2d.explain", g)
    asked = plan.asked_of(g, algorithm)
    gpu, sms = here()
    config = operation.config(g) if operation.im2col else None
    time = 0.0
    if config is not None and asked is not None and plan.tile_description is None:
        found = chosen_with_time(asked, gpu, sms)
        time = 0.0 if found is None else found[0]
    name = config.name if config is not None else operation.product().name
    why = f"{algorithm}, " + ("set by the plan" if plan.iterator_algorithm else "chosen for its operands")
    why += ", its tile_description" * (plan.tile_description is not None)
    copies: tuple[tuple[str, int], ...] = ()
    if config is None and not g.is_product:
        image = y if g.kind == WGRAD else x
        size = (g.matrix[0] if g.kind == "dgrad" else prod(g.result[:-1])) * g.taps * image.shape[-1]
        copies = (("columns", size * SIZES[image.dtype]),)
    if split.parts > 1:
        parts = parts_of(operation, g, split)
        why += f"; {parts} split-K slices" + (f" ({split.parts} requested)" if parts < split.parts else "")
    moved = sum(prod(v.shape) * SIZES[v.dtype] for v in (x, y, z))
    element = plan.kinds.a.element
    return ConvExplanation(
        operation=f"Conv2d {plan.kind}", gpu=gpu, kernel=name, why=why, microseconds=time, copies=copies, flops=g.flops,
        bytes=moved, kernels=() if config is None else (config,), geometry=g, element=element,
        output=plan.kinds.d.element, config=config,
    )  # fmt: skip


def _view(name: str, array: Any, element: str, turn: bool) -> ArrayView:
    """Return a view of an operand, or of a contiguous array of a shape."""
    if isinstance(array, tuple | list) and not isinstance(array, ArrayView):
        shape = last(tuple(array), turn)
        element = "f32" if element == "tf32" else element
        return ArrayView(0, shape, strides_of(shape), element, -1, "numpy", None)
    return views_last(read("Conv2d.explain", name, array), turn)
