"""Measurement of the fastest kernel of a call: ``op.tune(op.mm, a, b)``."""

# torch is not installed where types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from cute_dialect.op.errors import UnsupportedError
from cute_dialect.op.functions import gemm
from cute_dialect.op.functions.conv import is_convolution
from cute_dialect.op.functions.explain import explain
from cute_dialect.op.keywords import checks_keywords
from cute_dialect.op.select import gemm_dispatch
from cute_dialect.op.select.cost_model import costs_of
from cute_dialect.op.select.kernel_choice import Choice
from cute_dialect.op.tuning import Tuned, check_place, contest, kept, space, tuned_convolution


@checks_keywords
def tune(
    function: Callable[..., Any],
    a: Any,
    b: Any,
    out: Any = None,
    *,
    budget: float = 30.0,
    save: bool = True,
    say: Callable[[str], None] | None = None,
    **call: Any,
) -> Tuned:
    """Measure kernels for a call on its own arguments; later calls like it use the fastest one.

    Kernels are compiled in other processes (:func:`cute_dialect.op.prefetch`), and their results are compared with
    that of the default choice.  All are screened with a cold L2; the three fastest and the default choice run longer.
    A kernel that is faster by one percent is saved to the user's table for this GPU, which ``mm`` looks up first.
    Nothing is written to ``out``.

    Args:
        function: ``op.mm``, ``op.bmm`` or a convolution.
        a, b, out: its first arguments, torch tensors on a GPU.
        budget: seconds after which no kernel is added.
        save: save the result for this process and others.
        say: called with lines that describe the progress.
        call: further arguments of ``function``.

    Raises DeviceError for arrays that are not on a GPU.  Raises UnsupportedError during the capture of a CUDA graph,
    and for matrices that TMA cannot read in place.
    """
    import torch

    begin = time.monotonic()
    name = getattr(function, "__name__", repr(function))
    convolves = is_convolution(function)
    if not convolves and function not in (gemm.mm, gemm.bmm):
        raise UnsupportedError(f"tune: {name} is not supported; pass op.mm, op.bmm or a convolution")
    for what in ("kernel", "split_k", "device", "stream"):
        if call.get(what) is not None:
            raise UnsupportedError(f"tune: {what} is not supported, as the arguments select the GPU; omit it")
    if convolves:
        return tuned_convolution(function, [x for x in (a, b, out) if x is not None], call, begin + budget, save, say)
    check_place(a, b)
    found = explain(function, a, b, out, **call)
    if found.choice is None or found.by_torch or found.copies:
        raise UnsupportedError(
            f"tune: {found.problem.key} has operands that TMA cannot read in place; pass 16-byte aligned matrices"
        )
    gpu, sms = gemm_dispatch.gpu_of(a.get_device())
    wanted = function(a, b, **call) if out is None else function(a, b, torch.empty_like(out), **call)
    first = wanted[0] if isinstance(wanted, tuple) else wanted["D"] if isinstance(wanted, Mapping) else wanted
    rule = gemm_dispatch.choose(found.problem, sms, gpu)
    choices = tuple(dict.fromkeys((rule, *space(found.problem, costs_of(gpu, sms)))))
    epilogue = found.choice.config.epilogue if found.choice.skinny is None else found.choice.skinny.epilogue
    epilogue = epilogue.transposed() if found.choice.swapped else epilogue
    kernels = {c: gemm_dispatch.with_epilogue(c, epilogue) if epilogue.active else c for c in choices}

    def memory_of() -> Any:
        return torch.empty_like(first if out is None else out)

    def run_of(choice: Choice, memory: Any) -> Callable[[], Any]:
        return lambda: function(a, b, memory, kernel=choice, **call)

    measured = contest(
        found.problem, rule, kernels, first, memory_of, run_of, traffic=found.bytes, until=begin + budget, say=say
    )
    return kept(measured, gpu, found.flops) if save else measured
