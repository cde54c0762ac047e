"""Routing of a mixture of experts: ``op.route`` chooses the experts of each token and their weights."""

# torch is not installed where types are checked; arrays may belong to any library.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from cute_dialect.kernels.rows.route import RouteConfig, gradient_text, route_text
from cute_dialect.op.execute.array_call import RowCall, RowKernel
from cute_dialect.op.execute.call_cache import KnownCalls, number
from cute_dialect.op.execute.recording import needs_gradients
from cute_dialect.op.keywords import check_keywords
from cute_dialect.op.problems.routing import ROUTED, RouteSettings

if TYPE_CHECKING:  # pragma: no cover
    from typing import Unpack

    from cute_dialect.op.signature_types import Array, Interpreted

_KNOWN = {name: KnownCalls(tf32=False) for name in ("route", "route_backward")}
"""Cached calls by function."""


def route(
    logits: Array, k: int, score: str = "softmax", *, bias: Array = None, groups: int | None = None,
    top_groups: int | None = None, normalise: bool = True, scale: float = 1.0, device: object = None,
    stream: object = None, **run: Unpack[Interpreted],
) -> tuple[Array, Array]:  # fmt: skip
    """Return the weights and the numbers of the best ``k`` experts of each token, as ``(weights, experts)``.

    Experts are listed by decreasing score; of equal scores the lower expert precedes.  NaN is the greatest score.  The
    weights have gradients with respect to the logits.

    Args:
        logits: (…, E), f16, bf16 or f32, with at most 512 experts.
        k: experts per token, at most 32.  The results are (…, k), f32 and i32.
        score: ``softmax`` over all experts, or ``sigmoid`` of each.
        bias: (E,), f32, added to the scores to choose experts.  It does not affect their weights, and has no gradient.
        groups: number of groups of E / groups consecutive experts, at most 32; default: 1.
        top_groups: number of groups from which the experts of a token are chosen.  The score of a group is its best
            score, or with ``bias`` the sum of its two best scores.
        normalise: divide the weights of a token by their sum, plus 1e-20 for ``sigmoid``.
        scale: factor of the weights.
        device, stream, run: as in :func:`cute_dialect.op.mm`.

    Raises:
        OpError: if the arguments are not supported.
    """
    known, how = _KNOWN["route"], (k, score, groups, top_groups, normalise, number(scale))
    tensors = (logits,) if bias is None else (logits, bias)
    usual = device is None and stream is None and not run and not known.is_traced()
    if usual:
        done = known.again(how, *tensors)
        if done is not None:
            return done
    if run:
        check_keywords("route", route, run)
    settings = RouteSettings(k, score, groups, top_groups, normalise, scale)
    torch = sys.modules.get("torch")
    if torch is not None and (torch.compiler.is_compiling() or needs_gradients(logits)):
        from cute_dialect.op.torch.dispatch import CUTE  # late: torch

        def call() -> Any:
            return CUTE.route(logits, bias, *settings)

        return known.differentiable(how, tensors, call) if usual else call()
    return routed(logits, bias, settings, device, stream, run)


def routed(
    logits: Array, bias: Array, settings: RouteSettings, device: object = None, stream: object = None,
    run: Interpreted | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    """Compute :func:`route` without gradients."""
    known = _KNOWN["route"]
    usual = device is None and stream is None and not run and not known.is_traced()
    one = RowCall("route", {"logits": logits, "bias": bias}, device, ("bias",), ROUTED, stream=stream, run=run)
    experts = one.length()
    c = settings.config(one.element, experts, bias is not None)
    if bias is not None and one.views["bias"].dtype != "f32":
        raise one.wrong_type("bias", "f32")
    one.expect("bias", (experts,))
    shape = (*one.x.shape[:-1], c.k)
    with one.on():
        weights, chosen = one.result(shape, "f32"), one.result(shape, "i32")
        if one.count:
            added = None if bias is None else one.matrix("bias")
            results = one.matrix_of(weights), one.matrix_of(chosen)
            one.launch(route_kernel(c), one.matrix("logits"), added, *results, float(settings.scale))
    if usual:
        how = (*settings[:-1], number(settings.scale))
        one.remember(known, how, (logits,) if bias is None else (logits, bias), (weights, chosen))
    return weights, chosen


def route_backward(
    dweights: Array, logits: Array, experts: Array, settings: RouteSettings, device: object = None
) -> Any:
    """Return the gradient of the logits, given that of the weights and the chosen experts."""
    known, how = _KNOWN["route_backward"], (*settings[:-1], number(settings.scale))
    usual = device is None and not known.is_traced()
    if usual:
        done = known.again(how, dweights, logits, experts)
        if done is not None:
            return done
    arrays = {"logits": logits, "dweights": dweights, "experts": experts}
    one = RowCall("route_backward", arrays, device, ("dweights", "experts"), ROUTED)
    # A bias and groups affect the choice of experts only.
    c = settings._replace(groups=None, top_groups=None).config(one.element, one.length())
    dlogits = one.result(one.x.shape)
    if one.count:
        matrices = one.matrix("dweights"), one.matrix("logits"), one.matrix("experts"), one.matrix_of(dlogits)
        one.launch(gradient_kernel(c), *matrices, float(settings.scale))
    if usual:
        one.remember(known, how, (dweights, logits, experts), dlogits)
    return dlogits


def route_kernel(c: RouteConfig) -> RowKernel:
    """Return the kernel of a configuration."""
    return RowKernel(c.name, route_text, (c,))


def gradient_kernel(c: RouteConfig) -> RowKernel:
    """Return the kernel of the gradient."""
    return RowKernel(f"{c.name}-gradient", gradient_text, (c,), "launch_gradient")
