"""Mixtures of experts: ``op.route``, ``op.dispatch`` and ``op.combine``.

``op.route`` chooses the experts of each token and their weights.  ``op.dispatch`` copies the rows of the tokens in the
order of experts, ready for ``op.grouped_mm``.  ``op.combine`` sums the results of each token.
"""

# torch is not installed where types are checked; arrays may belong to any library.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import sys
from math import prod
from typing import TYPE_CHECKING, Any

from cute_dialect.kernels.rows.dispatch import CombineConfig, sort_blocks
from cute_dialect.op.arrays.library import call_operator
from cute_dialect.op.errors import ShapeError
from cute_dialect.op.execute.array_call import RowCall
from cute_dialect.op.execute.call_cache import KnownCalls, number
from cute_dialect.op.execute.recording import needs_gradients
from cute_dialect.op.execute.routing import (
    combine_gradient_kernel,
    combine_kernel,
    copy_kernel,
    count_kernel,
    gradient_kernel,
    route_kernel,
    sort_kernel,
)
from cute_dialect.op.keywords import check_keywords
from cute_dialect.op.problems.routing import (
    DISPATCHED,
    NUMBERS,
    ROUTED,
    SPELLINGS,
    RouteSettings,
    check_experts,
    rows_config,
    sort_config,
)

if TYPE_CHECKING:  # pragma: no cover
    from typing import Unpack

    from cute_dialect.op.signature_types import Array, Interpreted

_KNOWN = {
    name: KnownCalls(tf32=False) for name in ("route", "route_backward", "dispatch", "combine", "combine_backward")
}
"""Cached calls by function."""


def route(
    logits: Array, k: int, score: str = "softmax", *, bias: Array = None, groups: int | None = None,
    top_groups: int | None = None, normalise: bool = True, scale: float = 1.0, device: object = None,
    stream: object = None, **run: Unpack[Interpreted],
) -> tuple[Array, Array]:  # fmt: skip
    """Return the weights and the indices of the best ``k`` experts of each token, as ``(weights, experts)``.

    Experts are listed by decreasing score; of equal scores the lower expert precedes.  NaN is the greatest score.  The
    weights have gradients with respect to the logits.

    Args:
        logits: (…, E), f16, bf16 or f32, with at most 512 experts.
        k: experts per token, at most 32.  The results are (…, k), f32 and i32.
        score: ``softmax`` over all experts, or ``sigmoid`` of each.
        bias: (E,), f32, added to the scores to choose experts.  It does not affect their weights, and has no gradient.
        groups: number of groups of E / groups consecutive experts, at most 32; needs ``top_groups``.
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
        check_keywords("route", route, run, spellings=SPELLINGS)
    settings = RouteSettings.of(k, score, groups, top_groups, normalise, scale)
    torch = sys.modules.get("torch")
    if torch is not None and (torch.compiler.is_compiling() or needs_gradients(logits)):
        from cute_dialect.op.torch.dispatch import CUTE  # late: torch

        def call() -> Any:
            return call_operator(
                "route", lambda: CUTE.route(logits, bias, *settings), logits, device, stream, run, "logits"
            )

        return known.differentiable(how, tensors, call) if usual else call()
    return routed(logits, bias, settings, device, stream, run)


def routed(
    logits: Array, bias: Array, settings: RouteSettings, device: object = None, stream: object = None,
    run: Interpreted | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    """Compute :func:`route` without gradients."""

    def compute() -> tuple[object, object]:
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
        return weights, chosen

    if device is not None or stream is not None or run:
        return compute()
    how = (*settings[:-1], number(settings.scale))
    return _KNOWN["route"].call(how, (logits,) if bias is None else (logits, bias), compute)


def route_backward(
    dweights: Array, logits: Array, experts: Array, settings: RouteSettings, device: object = None
) -> Any:
    """Return the gradient of the logits, given that of the weights and the chosen experts."""

    def compute() -> object:
        arrays = {"logits": logits, "dweights": dweights, "experts": experts}
        one = RowCall("route_backward", arrays, device, ("dweights", "experts"), ROUTED)
        # A bias and groups affect the choice of experts only.
        c = settings._replace(groups=None, top_groups=None).config(one.element, one.length())
        dlogits = one.result(one.x.shape)
        if one.count:
            matrices = one.matrix("dweights"), one.matrix("logits"), one.matrix("experts"), one.matrix_of(dlogits)
            one.launch(gradient_kernel(c), *matrices, float(settings.scale))
        return dlogits

    how = (*settings[:-1], number(settings.scale))
    return compute() if device is not None else _KNOWN["route_backward"].call(how, (dweights, logits, experts), compute)


# ------------------------------------------------------------------------------------------------- dispatch and combine


def dispatch(
    x: Array, experts: Array, num_experts: int, *, device: object = None, stream: object = None,
    **run: Unpack[Interpreted],
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Return the rows of the tokens, sorted by expert for ``op.grouped_mm``, as ``(rows, offs, order)``.

    The sort is stable: the rows of an expert are in the order of the tokens.  ``x`` has a gradient.

    Args:
        x: (…, C), the tokens: f16, bf16, f32, e4m3, e5m2 or int8.
        experts: (…, k), i32 or i64, the experts of each token, as :func:`route` returns them.  Indices outside of
            ``range(num_experts)`` drop a pair of token and expert: its row is zero, after the rows of all experts.
        num_experts: E, the number of experts, at most 512.
        device, stream, run: as in :func:`cute_dialect.op.mm`.

    Returns:
        ``rows`` (tokens * k, C); ``offs`` (E,) i32, the end of the rows of each expert, for
        :func:`cute_dialect.op.grouped_mm`; ``order`` (…, k) i32, the row of each pair, or ``-1 - row`` of a dropped
        one, for :func:`combine`.

    Raises:
        OpError: if the arguments are not supported.
    """
    known = _KNOWN["dispatch"]
    usual = device is None and stream is None and not run and not known.is_traced()
    if usual:
        done = known.again(num_experts, x, experts)
        if done is not None:
            return done
    if run:
        check_keywords("dispatch", dispatch, run)
    torch = sys.modules.get("torch")
    if torch is not None and (torch.compiler.is_compiling() or needs_gradients(x)):
        from cute_dialect.op.torch.dispatch import CUTE  # late: torch

        count = check_experts(num_experts)

        def call() -> Any:
            return call_operator("dispatch", lambda: CUTE.dispatch(x, experts, count), x, device, stream, run)

        return known.differentiable(num_experts, (x, experts), call) if usual else call()
    return dispatched(x, experts, num_experts, device, stream, run)


def combine(
    y: Array, order: Array, weights: Array = None, *, device: object = None, stream: object = None,
    **run: Unpack[Interpreted],
) -> Array:  # fmt: skip
    """Return the weighted sum of the rows of each token, the transpose of :func:`dispatch`.

    The rows of a token are added in f32, in the order of its experts, and rounded once: the result does not depend on
    the order of execution.  ``y`` and ``weights`` have gradients.

    Args:
        y: (tokens * k, C), f16, bf16 or f32, the rows in the order of experts.
        order: (…, k), i32, of :func:`dispatch`.  Dropped pairs do not count.
        weights: (…, k), f32, of :func:`route`; default: 1.
        device, stream, run: as in :func:`cute_dialect.op.mm`.

    Returns:
        (…, C), of the type of ``y``.

    Raises:
        OpError: if the arguments are not supported.
    """
    known, tensors = _KNOWN["combine"], (y, order) if weights is None else (y, order, weights)
    usual = device is None and stream is None and not run and not known.is_traced()
    if usual:
        done = known.again(len(tensors), *tensors)
        if done is not None:
            return done
    if run:
        check_keywords("combine", combine, run)
    torch = sys.modules.get("torch")
    if torch is not None and (torch.compiler.is_compiling() or needs_gradients(y, weights)):
        from cute_dialect.op.torch.dispatch import CUTE  # late: torch

        def call() -> Any:
            return call_operator("combine", lambda: CUTE.combine(y, order, weights), y, device, stream, run, "y")

        return known.differentiable(len(tensors), tensors, call) if usual else call()
    return combined(y, order, weights, device, stream, run)


def dispatched(
    x: Array, experts: Array, num_experts: int, device: object = None, stream: object = None,
    run: Interpreted | None = None,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """Compute :func:`dispatch` without gradients."""
    e = check_experts(num_experts)

    def compute() -> tuple[object, object, object]:
        one = RowCall(
            "dispatch", {"x": x, "experts": experts}, device, ("experts",), DISPATCHED, stream=stream, run=run
        )
        n, found = one.length(), one.views["experts"]
        if found.dtype not in NUMBERS:
            raise one.wrong_type("experts", " or ".join(NUMBERS))
        if found.shape[:-1] != one.x.shape[:-1] or not found.shape:
            wanted = ", ".join([*map(str, one.x.shape[:-1]), "k"])
            raise ShapeError(
                f"dispatch: experts has shape {found.shape}; it must have ({wanted}), because x has {one.x.shape}"
            )
        c, pairs = rows_config("dispatch", one.element, n, found.shape, False), prod(found.shape)
        blocks, rounds = sort_blocks(pairs)
        with one.on():
            rows, offs, order = one.result((pairs, n)), one.result((e,), "i32"), one.result(found.shape, "i32")
            numbers, counts = one.flat("experts"), None
            if blocks > 1:
                counts = one.matrix_of(one.result((blocks, e + 1), "i32"))
                one.launch(count_kernel(sort_config(found.dtype, e, False)), numbers, counts, rounds)
            sort = sort_kernel(sort_config(found.dtype, e, blocks == 1))
            one.launch(sort, numbers, counts, one.view_of(offs), one.numbers(order), rounds)
            if pairs and n:
                one.launch(copy_kernel(c), one.matrix("x"), one.matrix_of(order), one.matrix_of(rows))
        return rows, offs, order

    usual = device is None and stream is None and not run
    return _KNOWN["dispatch"].call(num_experts, (x, experts), compute) if usual else compute()


def combined(
    y: Array, order: Array, weights: Array = None, device: object = None, stream: object = None,
    run: Interpreted | None = None,
) -> Any:  # fmt: skip
    """Compute :func:`combine` without gradients."""
    tensors = (y, order) if weights is None else (y, order, weights)

    def compute() -> object:
        one, c = _sum_of("combine", {"y": y, "order": order, "weights": weights}, device, stream, run)
        shape = one.views["order"].shape
        one.expect("y", (prod(shape), one.x.shape[-1]))
        with one.on():
            out = one.result((*shape[:-1], one.x.shape[-1]))
            if 0 not in one.x.shape:
                factors = None if weights is None else one.matrix("weights")
                one.launch(combine_kernel(c), one.matrix("y"), one.matrix("order"), factors, one.matrix_of(out))
        return out

    usual = device is None and stream is None and not run
    return _KNOWN["combine"].call(len(tensors), tensors, compute) if usual else compute()


def combine_backward(
    dout: Array, y: Array, order: Array, weights: Array = None, device: object = None
) -> tuple[Any, Any]:
    """Return the gradients of the rows and of the weights, or None without weights.  Dropped rows have the gradient 0.

    Args:
        dout: (…, C), the gradient of the combined rows.
        y: (tokens * k, C), the rows; None without weights.
    """
    tensors = (dout, order) if weights is None else (dout, y, order, weights)

    def compute() -> Any:
        arrays = {"dout": dout, "y": None if weights is None else y, "order": order, "weights": weights}
        one, c = _sum_of("combine_backward", arrays, device)
        shape, n = one.views["order"].shape, one.x.shape[-1]
        one.expect("dout", (*shape[:-1], n))
        one.expect("y", (prod(shape), n))
        dy, dweights = one.result((prod(shape), n)), None
        if weights is not None:
            dweights = one.result(shape, "f32")
        if one.count:
            of_weights = (None, None) if weights is None else (one.matrix("weights"), one.matrix_of(dweights))
            rows = None if weights is None else one.matrix("y")
            one.launch(
                combine_gradient_kernel(c), one.matrix("dout"), rows, one.matrix("order"), of_weights[0],
                one.matrix_of(dy), of_weights[1],
            )  # fmt: skip
        return dy if weights is None else (dy, dweights)

    done = compute() if device is not None else _KNOWN["combine_backward"].call(len(tensors), tensors, compute)
    return done if weights is not None else (done, None)


def _sum_of(
    call: str, arrays: dict[str, Any], device: object, stream: object = None, run: Interpreted | None = None
) -> tuple[RowCall, CombineConfig]:
    """Check the arrays of a sum of rows or its gradient, and return its configuration."""
    one = RowCall(call, arrays, device, ("order", "weights"), ROUTED, stream=stream, run=run)
    order = one.views["order"]
    if order.dtype != "i32":
        raise one.wrong_type("order", "i32")
    if not order.shape:
        raise ShapeError(f"{call}: order is a scalar; pass the order that dispatch returns")
    has_weights = arrays["weights"] is not None
    if has_weights and one.views["weights"].dtype != "f32":
        raise one.wrong_type("weights", "f32")
    one.expect("weights", order.shape)
    return one, rows_config(call, one.element, one.length(), order.shape, has_weights)
