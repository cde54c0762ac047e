"""Autotuning of a plan: ``plan.tune`` measures which kernel is the fastest for its operands."""

# torch is not installed where the types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cute_dialect.kernels.common.elements import BITS
from cute_dialect.op import tuning
from cute_dialect.op.errors import UnsupportedError
from cute_dialect.op.execute.arguments import Arguments
from cute_dialect.op.select import gemm_dispatch
from cute_dialect.op.select.configurations import described
from cute_dialect.op.select.cost_model import costs_of
from cute_dialect.op.select.kernel_choice import Choice
from cute_dialect.op.select.plan_tiles import problem_of
from cute_dialect.op.tuning import Tuned
from cute_dialect.runtime.arrays import view_of

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.op.plans.gemm import Gemm

__all__ = ["tuned_plan"]


def tuned_plan(
    plan: Gemm, taken: Arguments, budget: float, save: bool, say: Callable[[str], None] | None
) -> Tuned:  # fmt: skip
    """Measure kernels for checked arguments of a plan; see :func:`cute_dialect.op.functions.tune.tune`."""
    import torch

    begin, x = time.monotonic(), taken.operands
    if plan.tile_description is not None:
        raise UnsupportedError("Gemm.tune: tile_description already sets the kernel; set it to None")
    if taken.operation.choice is None:
        raise UnsupportedError(
            f"Gemm.tune: the operands need kernel {taken.operation.name}, but only wgmma kernels can be tuned"
        )
    if 0 in (*x.d.shape, x.a.shape[-1]) or x.alpha == 0.0:
        sizes = *x.d.shape, x.a.shape[-1]
        raise UnsupportedError(
            f"Gemm.tune: nothing is multiplied (extents {sizes}, alpha {x.alpha}); pass matrices that are not empty"
        )
    batch = len(x.d.shape) == 3
    asked, (m, n) = plan.asked(batch=batch).of_parts(), x.d.shape[-2:]
    matrices = x.d.shape[0] if batch else 1
    k = x.a.shape[-1]
    problem = problem_of(asked, m, n, k, matrices)
    gpu, sms = gemm_dispatch.gpu_of(x.d.device)
    rule = gemm_dispatch.choose(problem, sms, gpu)

    def memory_of() -> Any:
        return torch.empty_strided(x.d.shape, x.d.strides, dtype=taken.D.dtype, device=taken.D.device)

    def arguments(choice: Choice, memory: Any) -> Arguments:
        operation = plan.operation_of(described(choice, asked))
        return Arguments(
            operation, x._replace(d=view_of(memory)), memory, taken.stream, taken.options, call="Gemm.tune"
        )

    def run_of(choice: Choice, memory: Any) -> Callable[[], Any]:
        return prepared(arguments(choice, memory))

    def kernel_of(choice: Choice) -> Choice | None:
        try:
            found = plan.operation_of(described(choice, asked)).variant_for(x).kernel
        except UnsupportedError:
            return None
        return found if isinstance(found, Choice) else None

    choices = dict.fromkeys((rule, *tuning.space(problem, costs_of(gpu, sms))))
    kernels = {c: kernel for c in choices if (kernel := kernel_of(c)) is not None}
    first = memory_of()
    prepared(arguments(rule, first))()
    elements = matrices * (m * k + k * n) * BITS[problem.element] + matrices * m * n * BITS[problem.output]
    found = tuning.contest(
        problem, rule, kernels, first, memory_of, run_of, traffic=elements // 8,
        until=begin + budget, say=say,
    )  # fmt: skip
    return tuning.kept(found, gpu, 2 * matrices * m * n * k) if save else found


def prepared(arguments: Arguments) -> Callable[[], Any]:
    """Return a function that only launches."""
    return arguments.bind()
