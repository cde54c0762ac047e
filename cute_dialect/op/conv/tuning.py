"""Tuning of convolutions: ``op.tune(op.conv2d, x, f, padding=1)`` measures the fastest kernels."""

# torch is not installed where types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cute_dialect.op.conv.choice import ConvRequest, choice_of, config_of, kernels_for, problem_of
from cute_dialect.op.conv.kernel_override import plain
from cute_dialect.op.conv.report import explained
from cute_dialect.op.errors import UnsupportedError
from cute_dialect.op.select import gemm_dispatch, tuning
from cute_dialect.op.select.candidates import differing
from cute_dialect.op.select.cost_model import costs_of
from cute_dialect.op.select.kernel_choice import Choice
from cute_dialect.op.select.tuning import Tuned

__all__ = ["tuned_convolution"]

_NEAR = 24
"""Number of kernels that are measured, those that are predicted to be the fastest."""


def tuned_convolution(
    function: Callable[..., Any], given: Sequence[Any], call: Mapping[str, Any], until: float, save: bool,
    say: Callable[[str], None] | None,
) -> Tuned:  # fmt: skip
    """Measure kernels for a call of a convolution; see :func:`cute_dialect.op.functions.tune.tune`.

    Raises UnsupportedError if im2col loads do not support the problem, or operands would be copied.
    """
    import torch

    name = function.__name__
    arrays = [x for x in given if not isinstance(x, list | tuple)]  # without the shape of a gradient
    tuning.check_place(*arrays[:2])
    found = explained(name, given, call)
    if found.config is None or found.copies:
        what = "pass a convolution that im2col loads support, with operands that are not copied"
        raise UnsupportedError(f"tune: {found.kernel} cannot be tuned ({found.why}); {what}")
    gpu, sms = gemm_dispatch.gpu_of(arrays[0].get_device())
    asked = ConvRequest(found.geometry, found.element, found.output)
    costs = costs_of(gpu, sms)
    fastest = plain(found.config)
    rule = choice_of(fastest)
    near = differing((choice_of(config) for _, config in kernels_for(asked, costs)), _NEAR)
    choices = tuple(dict.fromkeys((rule, *near)))
    epilogue = found.config.base.epilogue
    made = {c: config_of(asked._replace(epilogue=epilogue), c) for c in choices}
    kernels = {c: config for c, config in made.items() if config is not None}
    first = function(*given, **call)

    def memory_of() -> Any:
        return torch.empty_like(first)

    def run_of(choice: Choice, memory: Any) -> Callable[[], Any]:
        return lambda: function(*given, out=memory, kernel=choice, **call)

    measured = tuning.contest(
        problem_of(asked), rule, kernels, first, memory_of, run_of, traffic=found.bytes, until=until, say=say
    )
    return tuning.kept(measured, gpu, found.flops, asked.key) if save else measured
