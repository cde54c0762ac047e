"""Explanations of GEMMs on GPUs other than Hopper, which plans can use.

``mm`` and ``bmm`` launch kernels of sm_90.  On another GPU the explanation is that of the plan with the ``kernel_cc``
of the GPU::

    explain(mm, (4096, 4096), (4096, 4096), gpu="NVIDIA B200")    # the kernel of op.Gemm(…, kernel_cc=100)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from cute_dialect.op.errors import LayoutError, UnsupportedError
from cute_dialect.op.explanations.gemm import GemmExplanation
from cute_dialect.op.plans.gemm import Gemm
from cute_dialect.op.plans.report import explained
from cute_dialect.op.problems.gemm import CheckedGemm
from cute_dialect.op.problems.operands import matrix
from cute_dialect.op.select.backends import KERNEL_CCS, LATEST, MMA_SYNC, UNMEASURED, WGMMA
from cute_dialect.runtime.arrays import ArrayView


def explain_elsewhere(
    name: str,
    views: Mapping[str, ArrayView],
    checked: CheckedGemm,
    activation: str,
    gpu: str,
    others: int,
    capability: tuple[int, int],
) -> GemmExplanation:
    """Explain the plan of a GEMM for a GPU that does not run the kernels of ``mm``.

    Args:
        name: "mm" or "bmm".
        views: the operands ``a`` and ``b``, and ``out`` and ``c`` if they are given.
        checked: the checked problem.
        activation: name of the activation, or an empty text.
        gpu: name of the GPU.
        others: number of further candidates to list.
        capability: compute capability of the GPU.

    Raises UnsupportedError if no plan has such a kernel.
    """
    number = 10 * capability[0] + capability[1]
    chips = [b.chip for b in UNMEASURED if b.runs_on(capability)] or [cc for cc in KERNEL_CCS if cc == number]
    if not chips:
        WGMMA.check_gpu(capability, name)
    if checked.arithmetic not in ("", "exact", "tf32"):
        raise UnsupportedError(
            f"{name}: math and accumulator are not explained for sm_{number}; set them in op.Gemm with "
            f"kernel_cc={chips[0]}, and call its explain()"
        )
    a, b, c = views["a"], views["b"], views.get("c")
    element = "tf32" if checked.arithmetic == "tf32" else ""
    given: dict[str, Any] = {
        "element_A": element or a.dtype,
        "layout_A": _layout(a),
        "element_B": element or b.dtype,
        "layout_B": _layout(b),
        "element_C": "void" if c is None else c.dtype,
        "layout_C": None if c is None else _layout(c),
        "element_D": checked.result,
        "layout_D": _layout(views["out"]) if "out" in views else "row",
    }
    try:
        plan = Gemm(**given, kernel_cc=chips[0])
    except (LayoutError, UnsupportedError):
        if chips[0] < LATEST.chip:
            raise
        plan = Gemm(**given, kernel_cc=MMA_SYNC.chip)  # Kernels of sm_80 run on later GPUs.
    if activation:
        plan.activation = activation
    found = explained(plan, a, b, others)
    status = found.status or ("" if number < LATEST.chip else f"a kernel for sm_80 and later, never run on sm_{number}")
    launch = f"{name} needs sm_90, so launch it by op.Gemm with kernel_cc={plan.chip}"
    return replace(found, operation=name, gpu=gpu, bound=0.0, status="; ".join([x for x in (status, launch) if x]))


def _layout(x: ArrayView) -> str:
    return "row" if matrix(x).along(1) else "column"
